"""Assembly: from planned steps and compiled kernels to a native executable.

Takes   a graph's ends, the steps of plan.py, machine code for their kernels.
Gives   an executable: slots for all arrays, one launch or call per step.
Runs    last.

Start reading at `Assembler.build`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jato import _native
from jato.base.errors import invariant
from jato.compiler.loops.nest import LoopNest
from jato.compiler.memory import Lifetimes, OutputWrite, assign_donations, assign_offsets
from jato.compiler.plan import PlanContext, literal_array
from jato.compiler.steps import (
    Choose,
    Copy,
    Launch,
    Library,
    Repeat,
    Slice,
    Step,
    Swap,
    View,
    all_steps,
    blocks_of,
    is_unbounded,
    reads_of,
    writes_of,
)
from jato.core.graph import Graph, Literal, Var

# What a loop without a known number of iterations is taken to cost, in iterations.
UNKNOWN_COUNT = 1000


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
    return Assembler(graph, context, uses, donated).build(keep_alive)


class Assembler:
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
            rows=step.rows, step_rows=step.step_rows, row_steps=step.row_steps, library=step.name,
            library_slots=slots, library_params=step.params, library_cost_ns=step.cost_ns,
            address=use.address, slots=[self.slot(v) for v in nest.arguments], params=use.params,
            extent=nest.grid, grain=nest.grain, cost_ns=nest.step_ns,
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


def _filling(function: Callable[..., Sequence[Any]], count: int) -> Callable[..., None]:
    """A function of (input views, views to fill) from one that returns arrays."""

    def fill(*views: Any) -> None:
        results = function(*views[:count])
        for view, result in zip(views[count:], results, strict=True):
            view[...] = result

    return fill
