"""The plan: from scheduled steps to a native executable.

Takes   steps in order (kernels, library routines, host calls, views) and the graph's ends.
Gives   an executable: slots for all arrays, one launch or call per step.
Runs    last.

`PlanContext` is what the planners of kernels/ (and the `plan` rule of higher-order primitives)
are given: they ask for `read`/`write` access to arrays by variable and add steps.  Nothing is
compiled while planning; kernels are collected, compiled together, and then the steps are built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from jato import _native
from jato.base.errors import invariant
from jato.compiler.kernels.register_loop import LoopOperands
from jato.compiler.loops.nest import LoopNest
from jato.compiler.memory import Lifetime, OutputWrite, assign_donations, assign_offsets
from jato.core.graph import Atom, Graph, Literal, Node, Var
from jato.core.types import ArrayType


@dataclass(eq=False)
class Launch:
    """A compiled loop nest."""

    nest: LoopNest
    reads: list[Var]
    writes: list[Var]


@dataclass(eq=False)
class Library:
    """A routine of native/core/library.cpp; `epilogue` runs on each block of rows right after."""

    name: str
    reads: list[Var]
    writes: list[Var]
    params: list[int]
    cost_ns: float
    rows: int = 0
    grain: int = 0
    epilogue: LoopNest | None = None


@dataclass(eq=False)
class Host:
    """A call back into Python: function(*input arrays) -> output arrays, as NumPy arrays."""

    function: Callable[..., Sequence[Any]]
    reads: list[Var]
    writes: list[Var]
    cost_ns: float = 20_000.0


@dataclass(eq=False)
class View:
    """`target` is the same memory as `source` under another shape."""

    source: Var
    target: Var


@dataclass(eq=False)
class Copy:
    source: Var
    target: Var


@dataclass(eq=False)
class Slice:
    """`target` is the part of `base` at offset + iteration * stride bytes (of the inner loop)."""

    target: Var
    base: Var
    offset: int
    stride: int


@dataclass(eq=False)
class Swap:
    """Exchanges the memory of two temporaries: the carry of a loop and its next value."""

    first: Var
    second: Var


@dataclass(eq=False)
class Repeat:
    """Runs `body` `count` times, or while the bool `predicate` holds (the body renews it)."""

    body: list[Step]
    count: int = -1
    predicate: Var | None = None
    iteration: Var | None = None  # a 0-d int32 array that receives the iteration number


@dataclass(eq=False)
class Choose:
    """Runs the case that the int32 `index` names, clamped."""

    index: Var
    cases: list[list[Step]]


Step = Launch | Library | Host | View | Copy | Slice | Swap | Repeat | Choose

# What a loop without a known number of iterations is taken to cost, in iterations.
UNKNOWN_COUNT = 1000


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


def all_steps(steps: Sequence[Step]) -> Iterator[Step]:
    """Every step, those of loops and branches after the loop or branch itself."""
    for step in steps:
        yield step
        for block in blocks_of(step):
            yield from all_steps(block)


def blocks_of(step: Step) -> list[list[Step]]:
    if isinstance(step, Repeat):
        return [step.body]
    return step.cases if isinstance(step, Choose) else []


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


@dataclass(frozen=True, eq=False)
class KernelUse:
    """Machine code for a loop nest: where it is and its run-time parameters."""

    address: int
    params: list[int]
    scratch_bytes: int = 0


def build_executable(
    graph: Graph,
    context: PlanContext,
    uses: dict[LoopNest, KernelUse],
    donated: Sequence[int] = (),
    keep_alive: Any = None,
) -> Any:
    """The native executable of a planned program; it holds `keep_alive` (the machine code)."""
    return _Assembler(graph, context, uses, donated).build(keep_alive)


class _Assembler:
    def __init__(
        self,
        graph: Graph,
        context: PlanContext,
        uses: dict[LoopNest, KernelUse],
        donated: Sequence[int],
    ):
        self.graph = graph
        self.steps = context.steps
        self.constants = [
            *zip(graph.constvars, graph.consts, strict=True), *context.constants
        ]  # fmt: skip
        self.uses = uses
        self.donated = [graph.inputs[i] for i in donated]
        self.builder = _native.ExecutableBuilder()
        self.slots: dict[Var, int] = {}
        # the variable whose memory a view shares
        self.roots: dict[Var, Var] = {
            s.target: s.source for s in all_steps(self.steps) if isinstance(s, View)
        }

    def root(self, var: Var) -> Var:
        while var in self.roots:
            var = self.roots[var]
        return var

    def build(self, keep_alive: Any) -> Any:
        builder = self.builder
        for var in self.graph.inputs:
            self.slots[var] = builder.input(var.aval)
        for var, value in self.constants:
            self.slots[var] = builder.constant(value)
        for step in all_steps(self.steps):
            if isinstance(step, Slice):
                self.slots[step.target] = builder.view()
        self.declare_outputs()
        arena = self.declare_temporaries()
        cost = self.add_all(self.steps)
        unbounded = any(map(is_unbounded, all_steps(self.steps)))
        return builder.finish(arena, cost, keep_alive, unbounded, self.graph.name)

    # ---- slots

    def declare_outputs(self) -> None:
        """Fresh outputs first come, first declared; repeated ones and inputs are aliases."""
        graph, builder = self.graph, self.builder
        inputs = {v: i for i, v in enumerate(graph.inputs)}
        constants = {v: i for i, (v, _) in enumerate(self.constants)}
        take_over = self.donations()
        declared: dict[Var, int] = {}
        extra = len(constants)
        for j, atom in enumerate(graph.outputs):
            if isinstance(atom, Literal):
                builder.constant(literal_array(atom))
                builder.output_alias(atom.aval, "constant", extra)
                extra += 1
                continue
            root = self.root(atom)
            if root in inputs:
                builder.output_alias(atom.aval, "input", inputs[root])
            elif root in constants:
                builder.output_alias(atom.aval, "constant", constants[root])
            elif root in declared:
                builder.output_alias(atom.aval, "output", declared[root])
            else:
                source = take_over.get(root)
                self.slots[root] = builder.output(
                    atom.aval, -1 if source is None else inputs[source]
                )
                declared[root] = j

    def donations(self) -> dict[Var, Var]:
        if not self.donated:
            return {}
        last_read: dict[Var, int] = {}
        writes: list[OutputWrite] = []
        results = {self.root(a) for a in self.graph.outputs if isinstance(a, Var)}
        for i, step in enumerate(self.steps):
            inner = [step, *(s for block in blocks_of(step) for s in all_steps(block))]
            for s in inner:
                for v in reads_of(s):
                    last_read[self.root(v)] = i
            in_place = isinstance(step, Launch) and step.nest.in_place and len(step.writes) == 1
            for s in inner:
                writes += [
                    OutputWrite(self.root(v), i, in_place)
                    for v in writes_of(s)
                    if self.root(v) in results
                ]
        first = {w.var: w for w in reversed(writes)}
        return assign_donations(self.donated, last_read, list(first.values()), results)

    def declare_temporaries(self) -> int:
        offsets, arena = assign_offsets(Lifetimes(self.root, self.slots).of(self.steps))
        for var, offset in offsets.items():
            self.slots[var] = self.builder.temp(offset)
        return arena

    def slot(self, var: Var) -> int:
        root = self.root(var)
        found = self.slots.get(root)
        if found is None:
            # nothing writes an array without elements
            invariant(root.aval.size == 0, f"no memory was planned for {var}")
            found = self.slots[root] = self.builder.temp(0)
        return found

    # ---- steps

    def add_all(self, steps: Sequence[Step]) -> float:
        return sum(self.add(step) for step in steps)

    def add(self, step: Step) -> float:
        """Adds a step; its estimated cost on one core."""
        builder = self.builder
        if isinstance(step, View):
            return 0.0
        if isinstance(step, Launch):
            return self.add_launch(step.nest)
        if isinstance(step, Library):
            return self.add_library(step)
        if isinstance(step, Copy):
            nbytes = step.source.aval.nbytes
            builder.copy(self.slot(step.target), self.slot(step.source), nbytes)
            return nbytes * 0.05
        if isinstance(step, Slice):
            builder.slice(self.slot(step.target), self.slot(step.base), step.offset, step.stride)
            return 1.0
        if isinstance(step, Swap):
            builder.swap(self.slot(step.first), self.slot(step.second))
            return 1.0
        if isinstance(step, Repeat):
            return self.add_loop(step)
        if isinstance(step, Choose):
            builder.begin_branch(self.slot(step.index))
            costs = []
            for i, case in enumerate(step.cases):
                if i:
                    builder.next_case()
                costs.append(self.add_all(case))
            builder.end()
            return max(costs)
        reads = [(self.slot(v), v.aval) for v in step.reads]
        writes = [(self.slot(v), v.aval) for v in step.writes]
        builder.host(_filling(step.function, len(reads)), reads, writes)
        return step.cost_ns

    def add_loop(self, step: Repeat) -> float:
        options: dict[str, Any] = {}
        if step.predicate is not None:
            options["predicate_slot"] = self.slot(step.predicate)
        if step.iteration is not None:
            options["iteration_slot"] = self.slot(step.iteration)
            options["iteration_dtype"] = step.iteration.aval.dtype_code
        self.builder.begin_loop(count=step.count, **options)
        cost = self.add_all(step.body)
        self.builder.end()
        return cost * (step.count if step.count >= 0 else UNKNOWN_COUNT)

    def add_library(self, step: Library) -> float:
        builder = self.builder
        slots = [self.slot(v) for v in (*step.reads, *step.writes)]
        if step.epilogue is None:
            builder.library(step.name, slots, step.params, step.cost_ns)
            return step.cost_ns
        nest = step.epilogue
        use = self.uses[nest]
        builder.tiled(
            rows=step.rows, grain=step.grain, library=step.name, library_slots=slots,
            library_params=step.params, library_cost_ns=step.cost_ns, address=use.address,
            slots=[self.slot(v) for v in nest.arguments], params=use.params, cost_ns=nest.step_ns,
            scratch_bytes=use.scratch_bytes, name=nest.kernel.name, bytes=nest.bytes,
        )  # fmt: skip
        return step.cost_ns + nest.grid * nest.step_ns

    def add_launch(self, nest: LoopNest) -> float:
        if nest.grid == 0:
            return 0.0
        use = self.uses[nest]
        self.builder.launch(
            use.address, [self.slot(v) for v in nest.arguments], use.params, nest.grid, nest.grain,
            nest.step_ns, use.scratch_bytes, nest.kernel.name, nest.bytes,
        )  # fmt: skip
        return nest.grid * nest.step_ns


class Lifetimes:
    """When temporaries are alive, by position of the steps in program order.

    A value that a loop uses but does not make lives until the loop ends; the two sides of a swap
    live as one, through the whole loop."""

    def __init__(self, root: Callable[[Var], Var], placed: dict[Var, int]):
        self.root = root
        self.placed = placed
        self.clock = 0
        self.born: dict[Var, int] = {}
        self.dies: dict[Var, int] = {}
        self.swaps: list[tuple[Var, Var]] = []

    def of(self, steps: Sequence[Step]) -> list[Lifetime]:
        self.walk(steps)
        for _ in range(2):  # a carry of nested loops is swapped in each of them
            for pair in self.swaps:
                temporary = [v for v in pair if v in self.born]
                if len(temporary) < len(pair):
                    # swapped with a result, whose memory may end up here until all is done
                    for v in temporary:
                        self.born[v], self.dies[v] = 0, self.clock
                    continue
                first = min(self.born[v] for v in temporary)
                last = max(self.dies[v] for v in temporary)
                for v in temporary:
                    self.born[v], self.dies[v] = first, last
        return [Lifetime(v, v.aval.nbytes, b, self.dies[v]) for v, b in self.born.items()]

    def walk(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self.clock += 1
            if isinstance(step, View):
                continue
            for v in (*reads_of(step), *writes_of(step)):
                self.touch(v)
            if isinstance(step, Swap):
                self.swaps.append((self.root(step.first), self.root(step.second)))
            start = self.clock
            for block in blocks_of(step):
                self.walk(block)
            if isinstance(step, (Repeat, Choose)):
                self.clock += 1
            if isinstance(step, Repeat):
                inside = {
                    self.root(v)
                    for s in all_steps(step.body)
                    if not isinstance(s, View)
                    for v in (*reads_of(s), *writes_of(s))
                }
                swapped = {v for pair in self.swaps for v in pair}
                # what slices point into is read and written through them, all the time
                whole = {self.root(s.base) for s in all_steps(step.body) if isinstance(s, Slice)}
                for v in inside:
                    if v in self.born and (self.born[v] < start or v in swapped | whole):
                        self.born[v] = min(self.born[v], start)
                        self.dies[v] = self.clock
                if step.predicate is not None:
                    self.touch(step.predicate)

    def touch(self, var: Var) -> None:
        root = self.root(var)
        if root not in self.placed:
            self.born.setdefault(root, self.clock)
            self.dies[root] = self.clock


def is_unbounded(step: Step) -> bool:
    """Is it a loop of which nobody knows how often it repeats?"""
    if isinstance(step, Launch):
        return step.nest.unbounded
    return isinstance(step, Repeat) and step.count < 0


def _filling(function: Callable[..., Sequence[Any]], count: int) -> Callable[..., None]:
    """A function of (input views, views to fill) from one that returns arrays."""

    def fill(*views: Any) -> None:
        results = function(*views[:count])
        for view, result in zip(views[count:], results, strict=True):
            view[...] = result

    return fill


def literal_array(atom: Literal) -> Any:
    return _native.from_scalar(atom.value, atom.aval)


def reads_of(step: Step) -> list[Var]:
    if isinstance(step, (View, Copy)):
        return [step.source]
    if isinstance(step, Slice):
        return [step.base]
    if isinstance(step, Swap):
        return [step.first, step.second]
    if isinstance(step, Repeat):
        return [] if step.predicate is None else [step.predicate]
    if isinstance(step, Choose):
        return [step.index]
    if isinstance(step, Library) and step.epilogue is not None:
        inner = [v for v in step.epilogue.arguments if v not in step.epilogue.outputs]
        return [*step.reads, *inner]
    return step.reads


def writes_of(step: Step) -> list[Var]:
    if isinstance(step, (View, Copy)):
        return [step.target]
    if isinstance(step, (Slice, Swap, Choose)):
        return []
    if isinstance(step, Repeat):
        return [] if step.iteration is None else [step.iteration]
    if isinstance(step, Library) and step.epilogue is not None:
        return [*step.writes, *step.epilogue.outputs]
    return step.writes
