"""The compiler as one recipe: Graph in, native executable out.

`compile_graph` reads top to bottom; each line is a pass with its contract in its own file.  After
each, the intermediate form goes to `observe.stage` (and is verified when somebody listens or
`jato_verify` is set).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jato.base import observe
from jato.base.caches import weakly_cached
from jato.base.errors import MissingRule
from jato.compiler import kernel_cache
from jato.compiler.assembly import KernelUse, build_executable
from jato.compiler.fusion.cost import reduced_size
from jato.compiler.fusion.partition import Group, partition
from jato.compiler.graph.contractions import canonical_contractions
from jato.compiler.graph.convolutions import CONV_PRODUCT, canonical_convolutions
from jato.compiler.graph.inline import inline
from jato.compiler.graph.literals import materialize_literals
from jato.compiler.graph.products import GEMM
from jato.compiler.graph.simplify import simplify
from jato.compiler.kernels.conv import plan_conv
from jato.compiler.kernels.gemm import fuse_epilogues, plan_gemm
from jato.compiler.kernels.host import plan_opaque
from jato.compiler.kernels.register_loop import register_loop
from jato.compiler.kernels.scan import plan_scan
from jato.compiler.kernels.scatter import plan_scatter
from jato.compiler.loops.elementwise import SHORT_AXIS
from jato.compiler.loops.generalize import generalize
from jato.compiler.loops.lower import UnplacedReduction
from jato.compiler.loops.nest import LoopNest
from jato.compiler.loops.schedule import schedule
from jato.compiler.plan import PlanContext
from jato.compiler.steps import View
from jato.core.graph import Graph, Node, Var
from jato.core.graph_verify import verify
from jato.loopir.grammar import Kernel
from jato.loopir.verify import verify as verify_kernel
from jato.ops.cumulative import Cumulative
from jato.ops.gather_scatter import Scatter
from jato.ops.opaque import Opaque
from jato.ops.reduction_family import Reduction
from jato.ops.shapes import Reshape


@dataclass(frozen=True, eq=False)
class Program:
    """A compiled graph.

    kernels     names of its kernels, in order of launch
    compiled    how many of them were compiled for it; `reused` the others (in memory or on disk)
    """

    executable: Any
    graph: Graph
    kernels: tuple[str, ...]
    compiled: int
    reused: int
    milliseconds: dict[str, float]


def compile_graph(graph: Graph, donated: Sequence[int] = ()) -> Program:
    """Compiles a graph; `donated`: positions of inputs whose memory outputs may take over."""
    clock = _Clock()
    graph = optimize(graph)
    clock.lap("graph")
    context = PlanContext(
        kernel_cache.vector_bytes(), plan_steps, optimize_once, register_loop
    )
    plan_steps(graph, context)
    fuse_epilogues(context)
    clock.lap("schedule")
    nests = [n for n in context.nests() if n.grid > 0]
    _observe_kernels("schedule", [nest.kernel for nest in nests])
    counts = _counts(graph)
    patterns = [generalize(nest.kernel, counts, nest.written_out) for nest in nests]
    _observe_kernels("generalize", [kernel for kernel, _ in patterns])
    clock.lap("generalize")
    codes = kernel_cache.compile_kernels([kernel for kernel, _ in patterns])
    clock.lap("codegen")
    uses = {
        nest: KernelUse(code.address, params, code.scratch_bytes)
        for nest, (_, params), code in zip(nests, patterns, codes.kernels, strict=True)
    }
    executable = build_executable(graph, context, uses, donated, tuple(codes.kernels))
    clock.lap("plan")
    return Program(
        executable,
        graph,
        tuple(nest.kernel.name for nest in nests),
        codes.compiled,
        len(nests) - codes.compiled,
        clock.laps,
    )


def optimize(graph: Graph) -> Graph:
    """The graph passes, in order."""
    graph = _passed("inline", inline(graph))
    graph = _passed("simplify", simplify(graph))
    graph = _passed("convolutions", canonical_convolutions(graph))
    graph = _passed("contractions", canonical_contractions(graph))
    graph = _passed("simplify", simplify(graph))
    return _passed("literals", materialize_literals(graph))


@weakly_cached()
def optimize_once(graph: Graph) -> Graph:
    """`optimize` for graphs inside of loops and branches, which several plans may share."""
    return optimize(graph)


def plan_steps(graph: Graph, context: PlanContext) -> None:
    """Fuses, schedules and plans; fuses less where a schedule turns out impossible."""
    apart: set[Var] = set()
    scheduled: dict[object, list[LoopNest] | None] = {}  # what a new round of fusion left as it was
    while True:
        steps = partition(graph, apart)
        _observe_groups(steps)
        before = len(apart)
        for step in steps:
            key = _key(step)
            if key in scheduled:
                continue
            try:
                scheduled[key] = _plan_step(step, context.vector_bytes)
            except UnplacedReduction as problem:
                # The value is needed elsewhere than at its row: give it memory and a kernel.
                apart.add(problem.node.outputs[0])
        if len(apart) == before:
            break
    for step in steps:
        nests = scheduled[_key(step)]
        if nests is None:
            _plan_node(step, context)
        for nest in nests or ():
            context.launch(nest)


def _key(step: Group | Node) -> object:
    """Equal keys: the same loops."""
    if isinstance(step, Group):
        return tuple(step.nodes), tuple(step.outputs), step.space, step.reduced, step.split
    return step


def _plan_step(step: Group | Node, vector_bytes: int) -> list[LoopNest] | None:
    """The loop nests of a group; None for a node that is planned by itself."""
    if isinstance(step, Group):
        if all(v.aval.size == 0 for v in step.outputs):
            return []
        return schedule(step, vector_bytes)
    if isinstance(step.primitive, Cumulative):
        return plan_scan(step, vector_bytes) if step.outputs[0].aval.size else []
    return None


def _plan_node(step: Any, context: PlanContext) -> None:
    primitive = step.primitive
    if isinstance(primitive, Reshape):
        context.steps.append(View(step.inputs[0], step.outputs[0]))
    elif primitive is GEMM:
        plan_gemm(context, step)
    elif primitive is CONV_PRODUCT:
        plan_conv(context, step)
    elif isinstance(primitive, Scatter):
        plan_scatter(context, step)
    elif isinstance(primitive, Opaque):
        plan_opaque(context, step)
    else:
        try:
            primitive.plan(context, step)
        except MissingRule as error:
            raise MissingRule(primitive.name, "lower | expand | plan") from error


def _passed(name: str, graph: Graph) -> Graph:
    if observe.heard():
        verify(graph)
        observe.stage(name, graph)
    return graph


def _observe_groups(steps: Sequence[Group | Node]) -> None:
    if observe.heard():
        observe.stage("fusion", steps)


def _counts(graph: Graph) -> frozenset[int]:
    """Numbers that a program may compute with and that depend on shapes: how many elements
    reductions reduce, lengths of axes (short ones are left out: constants may equal them)."""
    found = {reduced_size(n) for n in graph.nodes if isinstance(n.primitive, Reduction)}
    for node in graph.nodes:
        for v in node.outputs:
            found.update(n for n in v.aval.shape if n >= SHORT_AXIS)
    return frozenset(found)


def _observe_kernels(name: str, kernels: Sequence[Kernel]) -> None:
    if observe.heard():
        for kernel in kernels:
            verify_kernel(kernel)
        observe.stage(name, kernels)


class _Clock:
    """Milliseconds of each part of a compilation."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self.last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = self.laps.get(name, 0.0) + 1e3 * (now - self.last)
        observe.timing(name, now - self.last)
        self.last = now


