"""The plan: what collects the steps of a program.

`PlanContext` is what the planners of kernels/ (and the `plan` rule of higher-order primitives)
are given: they name arrays by variable and add steps (steps.py).  Nothing is compiled while planning;
kernels are collected, compiled together, and then assembly.py builds the executable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from jato import _native
from jato.compiler.kernels.register_loop import LoopOperands
from jato.compiler.loops.nest import LoopNest
from jato.compiler.steps import (
    Choose,
    Copy,
    Host,
    Launch,
    Library,
    Repeat,
    Slice,
    Step,
    Swap,
    View,
    all_steps,
    writes_of,
)
from jato.core.graph import Atom, Graph, Literal, Node, Var
from jato.core.types import ArrayType


@dataclass(eq=False)
class PlanContext:
    """Collects the steps of a program; what `plan` rules are given.

    plan_graph(graph, context)   plans an optimized graph into the current block
    optimize(graph)              the graph passes
    """

    vector_bytes: int
    plan_graph: Callable[[Graph, PlanContext], None]
    optimize: Callable[[Graph], Graph]
    register_loop: Callable[[LoopOperands, int], LoopNest | None]
    steps: list[Step] = field(default_factory=list)
    constants: list[tuple[Var, Any]] = field(default_factory=list)

    # ---- steps

    def launch(self, nest: LoopNest) -> None:
        written = set(nest.outputs)
        reads = [v for v in nest.arguments if v not in written]
        self.steps.append(Launch(nest, reads, list(nest.outputs)))

    def copy(self, source: Atom, target: Var) -> None:
        self.steps.append(Copy(self.in_memory(source), target))

    def host(
        self,
        function: Callable[..., Sequence[Any]],
        reads: Sequence[Atom],
        writes: Sequence[Var],
        cost_ns: float,
    ) -> None:
        """Calls back into Python: function(*NumPy views of reads) -> arrays for `writes`."""
        self.steps.append(Host(function, [self.in_memory(a) for a in reads], list(writes), cost_ns))

    def in_memory(self, atom: Atom) -> Var:
        """The atom as an array: a literal becomes a constant."""
        if isinstance(atom, Var):
            return atom
        var = Var(atom.aval)
        self.constants.append((var, literal_array(atom)))
        return var

    def assign(self, value: Atom, target: Var) -> None:
        """Makes `target`, an array that this block has not used yet, hold `value`.

        What the block computes is computed right there; anything else is copied."""
        made = self.produced(value)
        if made is None or made is target:
            if made is None:
                self.copy(value, target)
            return
        self.steps.append(View(target, made))

    def produced(self, value: Atom) -> Var | None:
        """The array behind a value (through views), if a step of this block writes it afresh."""
        if not isinstance(value, Var):
            return None
        views = {s.target: s.source for s in self.steps if isinstance(s, View)}
        while value in views:
            value = views[value]
        for step in self.steps:
            if isinstance(step, (Launch, Library, Host, Copy)) and value in writes_of(step):
                return value
        return None

    # ---- graphs, loops, branches

    def run(self, graph: Graph, operands: Sequence[Atom]) -> list[Atom]:
        """Plans a graph (without consts) on these operands; its results."""
        body = instantiate(self.optimize(graph), operands)
        self.constants += zip(body.constvars, body.consts, strict=True)
        self.plan_graph(body, self)
        return list(body.outputs)

    @contextmanager
    def block(self) -> Iterator[list[Step]]:
        """Steps added inside go to a list of their own."""
        outer, self.steps = self.steps, []
        try:
            yield self.steps
        finally:
            self.steps = outer

    def branch(self, index: Atom, graphs: Sequence[Graph], operands: Sequence[Atom], outs: Sequence[Var]) -> None:
        """Runs one of the graphs on the operands; its results are `outs`."""
        cases = []
        for graph in graphs:
            with self.block() as steps:
                for value, out in zip(self.run(graph, operands), outs, strict=True):
                    self.assign(value, out)
            cases.append(steps)
        self.steps.append(Choose(self.in_memory(index), cases))

    def loop(
        self,
        body: Graph,
        consts: Sequence[Atom],
        inits: Sequence[Atom],
        xs: Sequence[Atom],
        finals: Sequence[Var],
        ys: Sequence[Var],
        length: int | None = None,
        reverse: bool = False,
        condition: Graph | None = None,
        condition_consts: Sequence[Atom] = (),
        per_element: bool = False,
    ) -> None:
        """A loop over a carry: `length` times, or while `condition` of the carry holds.

        body: consts, carry, slices of xs -> carry, slices of ys.  per_element: the condition is
        `any` over elements, and the body leaves elements that are done as they are."""
        states = [Var(a.aval) for a in inits]
        slices = [Var(_slice_type(x.aval)) for x in xs]
        step = instantiate(self.optimize(body), [*consts, *states, *slices])
        test = None
        if condition is not None:
            test = instantiate(self.optimize(condition), [*condition_consts, *states])
        operands = LoopOperands(
            step, test, states, inits, slices, xs, finals, ys, length, reverse, per_element
        )
        nest = self.register_loop(operands, self.vector_bytes)
        for graph in (step, test):
            if graph is not None:
                self.constants += zip(graph.constvars, graph.consts, strict=True)
        if nest is not None:
            self.launch(nest)
            return
        self.steps_of_loop(operands)

    def steps_of_loop(self, loop: LoopOperands) -> None:
        for state, init in zip(loop.carries, loop.inits, strict=True):
            self.copy(init, state)
        predicate = None
        if loop.condition is not None:
            predicate = Var(loop.condition.outputs[0].aval)
            self.plan_graph(loop.condition, self)
            self.assign(loop.condition.outputs[0], predicate)
        count = len(loop.carries)
        with self.block() as steps:
            for part, x in zip(loop.slices, loop.xs, strict=True):
                self.steps.append(_iteration_slice(part, self.in_memory(x), loop))
            parts = [Var(_slice_type(y.aval)) for y in loop.ys]
            for part, y in zip(parts, loop.ys, strict=True):
                self.steps.append(_iteration_slice(part, y, loop))
            self.plan_graph(loop.body, self)
            for part, value in zip(parts, loop.body.outputs[count:], strict=True):
                self.assign(value, part)
            self.carry(list(zip(loop.carries, loop.body.outputs[:count], strict=True)))
            if loop.condition is not None and predicate is not None:
                again = instantiate(loop.condition, loop.condition.inputs)
                self.constants += zip(again.constvars, again.consts, strict=True)
                self.plan_graph(again, self)
                self.assign(again.outputs[0], predicate)
        self.steps.append(
            Repeat(steps, -1 if loop.length is None else loop.length, predicate)
        )
        for state, final in zip(loop.carries, loop.finals, strict=True):
            self.steps.append(View(state, final))

    def carry(self, pairs: Sequence[tuple[Var, Atom]]) -> None:
        """At the end of a loop's body: each carry takes its next value, all at once."""
        ready: list[tuple[Var, Var]] = []
        taken: set[Var] = set()
        for state, following in pairs:
            if following is state:
                continue
            made = self.produced(following)
            if made is None or made in taken:
                made = Var(state.aval)
                self.copy(following, made)
            taken.add(made)
            ready.append((state, made))
        self.steps += [Swap(state, made) for state, made in ready]

    def nests(self) -> list[LoopNest]:
        found: list[LoopNest] = []
        for step in all_steps(self.steps):
            if isinstance(step, Launch):
                found.append(step.nest)
            elif isinstance(step, Library) and step.epilogue is not None:
                found.append(step.epilogue)
        return found


def _slice_type(aval: Any) -> Any:
    return ArrayType(aval.shape[1:], aval.dtype_code, aval.weak_type)


def _iteration_slice(part: Var, whole: Var, loop: LoopOperands) -> Slice:
    size = part.aval.nbytes
    if loop.reverse:
        return Slice(part, whole, ((loop.length or 1) - 1) * size, -size)
    return Slice(part, whole, 0, size)


def instantiate(graph: Graph, operands: Sequence[Atom]) -> Graph:
    """A copy of the graph with operands for its inputs and fresh variables for its values."""
    env: dict[Var, Atom] = dict(zip(graph.inputs, operands, strict=True))
    constvars = [Var(v.aval) for v in graph.constvars]
    env.update(zip(graph.constvars, constvars, strict=True))

    def read(atom: Atom) -> Atom:
        return env[atom] if isinstance(atom, Var) else atom

    nodes = []
    for node in graph.nodes:
        outs = [Var(v.aval) for v in node.outputs]
        nodes.append(Node(node.primitive, map(read, node.inputs), outs, node.params, node.frame))  # type: ignore[arg-type]
        env.update(zip(node.outputs, outs, strict=True))
    given = [v for v in operands if isinstance(v, Var)]
    outputs = [read(a) for a in graph.outputs]
    return Graph(list(dict.fromkeys(given)), nodes, outputs, constvars, graph.consts, graph.name)


def literal_array(atom: Literal) -> Any:
    return _native.from_scalar(atom.value, atom.aval)
