"""The plan: from scheduled steps to a native executable.

Takes   steps in order (kernels, library routines, host calls, views) and the graph's ends.
Gives   an executable: slots for all arrays, one launch or call per step.
Runs    last.

`PlanContext` is what the planners of kernels/ (and the `plan` rule of higher-order primitives)
are given: they ask for `read`/`write` access to arrays by variable and add steps.  Nothing is
compiled while planning; kernels are collected, compiled together, and then the steps are built.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jato import _native
from jato.base.errors import invariant
from jato.compiler.loops.schedule import LoopNest
from jato.compiler.memory import Lifetime, OutputWrite, assign_donations, assign_offsets
from jato.core.graph import Graph, Literal, Var


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


Step = Launch | Library | Host | View | Copy


@dataclass(eq=False)
class PlanContext:
    """Collects the steps of a program."""

    vector_bytes: int
    steps: list[Step] = field(default_factory=list)

    def launch(self, nest: LoopNest) -> None:
        written = set(nest.outputs)
        reads = [v for v in nest.arguments if v not in written]
        self.steps.append(Launch(nest, reads, list(nest.outputs)))

    def nests(self) -> list[LoopNest]:
        found = [s.nest for s in self.steps if isinstance(s, Launch)]
        found += [s.epilogue for s in self.steps if isinstance(s, Library) and s.epilogue]
        return found


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
        self.uses = uses
        self.donated = [graph.inputs[i] for i in donated]
        self.builder = _native.ExecutableBuilder()
        self.slots: dict[Var, int] = {}
        # the variable whose memory a view shares
        self.roots: dict[Var, Var] = {
            s.target: s.source for s in self.steps if isinstance(s, View)
        }

    def root(self, var: Var) -> Var:
        while var in self.roots:
            var = self.roots[var]
        return var

    def build(self, keep_alive: Any) -> Any:
        graph, builder = self.graph, self.builder
        for var in graph.inputs:
            self.slots[var] = builder.input(var.aval)
        for var, value in zip(graph.constvars, graph.consts, strict=True):
            self.slots[var] = builder.constant(value)
        self.declare_outputs()
        arena = self.declare_temporaries()
        cost = 0.0
        for step in self.steps:
            cost += self.add(step)
        return builder.finish(arena, cost, keep_alive)

    # ---- slots

    def declare_outputs(self) -> None:
        """Fresh outputs first come, first declared; repeated ones and inputs are aliases."""
        graph, builder = self.graph, self.builder
        inputs = {v: i for i, v in enumerate(graph.inputs)}
        constants = {v: i for i, v in enumerate(graph.constvars)}
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
            if isinstance(step, View):
                continue
            for v in _reads(step):
                last_read[self.root(v)] = i
            in_place = isinstance(step, Launch) and step.nest.in_place and len(step.writes) == 1
            writes += [OutputWrite(v, i, in_place) for v in _writes(step) if v in results]
        return assign_donations(self.donated, last_read, writes, results)

    def declare_temporaries(self) -> int:
        born: dict[Var, int] = {}
        dies: dict[Var, int] = {}
        for i, step in enumerate(self.steps):
            if isinstance(step, View):
                continue
            for v in _writes(step):
                root = self.root(v)
                if root not in self.slots:
                    born.setdefault(root, i)
                    dies[root] = max(dies.get(root, i), i)
            for v in _reads(step):
                root = self.root(v)
                if root in born:
                    dies[root] = i
        lifetimes = [Lifetime(v, v.aval.nbytes, born[v], dies[v]) for v in born]
        offsets, arena = assign_offsets(lifetimes)
        for var, offset in offsets.items():
            self.slots[var] = self.builder.temp(offset)
        return arena

    def slot(self, var: Var) -> int:
        found = self.slots.get(self.root(var))
        invariant(found is not None, f"no memory was planned for {var}")
        assert found is not None
        return found

    # ---- steps

    def add(self, step: Step) -> float:
        """Adds a step; its estimated cost on one core."""
        builder = self.builder
        if isinstance(step, View):
            return 0.0
        if isinstance(step, Launch):
            return self.add_launch(step.nest)
        if isinstance(step, Copy):
            nbytes = step.source.aval.nbytes
            builder.copy(self.slot(step.target), self.slot(step.source), nbytes)
            return nbytes * 0.05
        if isinstance(step, Library):
            slots = [self.slot(v) for v in (*step.reads, *step.writes)]
            if step.epilogue is None:
                builder.library(step.name, slots, step.params, step.cost_ns)
                return step.cost_ns
            nest = step.epilogue
            use = self.uses[nest]
            builder.tiled(
                step.rows, step.grain, step.name, slots, step.params, use.address,
                [self.slot(v) for v in nest.arguments], use.params, step.cost_ns, nest.step_ns,
                use.scratch_bytes, nest.kernel.name, nest.bytes,
            )  # fmt: skip
            return step.cost_ns + nest.grid * nest.step_ns
        reads = [(self.slot(v), v.aval) for v in step.reads]
        writes = [(self.slot(v), v.aval) for v in step.writes]
        builder.host(_filling(step.function, len(reads)), reads, writes)
        return step.cost_ns

    def add_launch(self, nest: LoopNest) -> float:
        if nest.grid == 0:
            return 0.0
        use = self.uses[nest]
        self.builder.launch(
            use.address, [self.slot(v) for v in nest.arguments], use.params, nest.grid, nest.grain,
            nest.step_ns, use.scratch_bytes, nest.kernel.name, nest.bytes,
        )  # fmt: skip
        return nest.grid * nest.step_ns


def _filling(function: Callable[..., Sequence[Any]], count: int) -> Callable[..., None]:
    """A function of (input views, views to fill) from one that returns arrays."""

    def fill(*views: Any) -> None:
        results = function(*views[:count])
        for view, result in zip(views[count:], results, strict=True):
            view[...] = result

    return fill


def literal_array(atom: Literal) -> Any:
    return _native.from_scalar(atom.value, atom.aval)


def _reads(step: Step) -> list[Var]:
    if isinstance(step, (View, Copy)):
        return [step.source]
    if isinstance(step, Library) and step.epilogue is not None:
        inner = [v for v in step.epilogue.arguments if v not in step.epilogue.outputs]
        return [*step.reads, *inner]
    return step.reads


def _writes(step: Step) -> list[Var]:
    if isinstance(step, (View, Copy)):
        return [step.target]
    if isinstance(step, Library) and step.epilogue is not None:
        return [*step.writes, *step.epilogue.outputs]
    return step.writes
