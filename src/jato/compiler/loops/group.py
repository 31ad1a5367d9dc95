"""GroupSchedule: what the schedules of a fusion group have in common."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import ceil, prod
from typing import Any

from jato.base import dtypes
from jato.compiler.fusion import cost
from jato.compiler.fusion.partition import Group, memory_inputs
from jato.compiler.loops.lower import Index, Lowering
from jato.compiler.loops.nest import LoopNest, kernel_name, with_ones
from jato.compiler.loops.reductions import cone
from jato.compiler.loops.walk import loads
from jato.core.graph import Node, Var
from jato.loopir.builder import Builder
from jato.loopir.grammar import For, Kernel
from jato.loopir.index_math import Linear
from jato.ops.reduction_family import Reduction
from jato.ops.shapes import Transpose

# Bodies costing more than this are not run on several vectors at once: one vector has independent
# work enough, and four times the code takes LLVM twice as long.
HEAVY = 6.0
# Unless they cost so much that fewer than three iterations fit into the window of instructions that
# the machine looks at, and there are so many elements that it matters.  One thread, one and four
# vectors: normal 3.2 and 0.9 ns an element, Black-Scholes 3.2 and 2.0, pow 1.05 and 0.70.
LONG_CHAIN = 28.0
CHAIN_PER_ARRAY = 8.0  # with less to do for each array, memory is what one waits for
MANY_ELEMENTS = 1 << 18
VECTORS = 4


class GroupSchedule:
    """One group on its way to a loop nest.  `width`: lanes of one vector of its widest dtype."""

    def __init__(self, group: Group, vector_bytes: int):
        self.group = group
        self.nodes = group.nodes
        self.width = vector_bytes // _widest(group)
        self.unit_ns = cost.UNIT_NS * 16 / self.width

    def unroll(self) -> int:
        """Vectors at once: several where each result is a sum, whose additions wait for each other."""
        return 4 if any(n.primitive.rereads for n in self.nodes) else 1

    def level_work(self, lowering: Lowering, level: list[Node]) -> float:
        """What the loop of these reductions computes for each element."""
        nodes = cone(lowering.producer, [a for r in level for a in r.inputs])
        whole = [n for n in nodes if n.outputs[0].aval.shape == self.group.space]
        return sum(map(cost.element_cost, whole)) + len(level)

    def lanes(self, extent: int, unroll: int = 1, work: float | None = None) -> int:
        """Lanes of a loop of this extent: more vectors at once where there is enough to do.

        work: of the loop's body; None: of the whole group."""
        work = self.group.cost if work is None else work
        memory = len(memory_inputs(self.group)) + len(self.group.outputs)
        if work >= max(LONG_CHAIN, CHAIN_PER_ARRAY * memory) and prod(self.group.space) >= MANY_ELEMENTS:
            unroll = VECTORS
        elif work > HEAVY:
            unroll = 1
        wide = self.width * unroll
        return wide if unroll > 1 and extent >= 4 * wide else self.width

    def is_pointwise(self) -> bool:
        """All operands have the shape of the results or are scalars: any order of axes will do."""
        space = self.group.space
        for node in self.nodes:
            if cost.is_structural(node) or isinstance(node.primitive, Reduction):
                return False
            if node.primitive.rereads or node.outputs[0].aval.shape != space:
                return False
            if any(a.aval.shape not in ((), space) for a in node.inputs):
                return False
        return True

    def axes(self) -> tuple[list[int], list[int]]:
        """Kept and reduced axes longer than 1, those along which memory runs last."""
        reduced = self.group.reduced or ()
        order = self.memory_order
        return [a for a in order if a not in reduced], [a for a in order if a in reduced]

    @cached_property
    def memory_order(self) -> list[int]:
        """The axes longer than 1 by how far apart their neighbours are in the largest array read.

        In order, unless the group reads something transposed: x.T.sum(1) runs along the columns
        of x.T, which are the rows of x."""
        axes = [a for a, n in enumerate(self.group.space) if n != 1]
        if not any(isinstance(n.primitive, Transpose) for n in self.nodes):
            return axes
        b = Builder()
        lowering = Lowering(b, self.nodes)
        space = self.group.space
        variables = {a: b.var("i", "i64", 0, space[a] - 1) for a in axes}
        index = tuple(variables.get(a, b.index(0)) for a in range(len(space)))
        with b.block() as body:
            for node in self.levels()[0] if self.levels() else ():
                value = lowering.value(node.inputs[0], index)
                for part in (value.re, value.im) if hasattr(value, "re") else (value,):
                    b.store(b.output(f"o{len(b.buffers)}", part.dtype), 0, part)
        steps: dict[int, int] = {}
        largest = 0
        sizes = {buffer: var.aval.size for var, buffer in lowering.buffers.items()}
        for load in loads(body):
            terms = b.linear(load.args[0]).terms
            if sizes.get(load.attr, 0) > largest:
                largest = sizes[load.attr]
                steps = {a: abs(terms.get((v,), 0)) for a, v in variables.items()}
        # an axis that the array does not have costs nothing outside
        return sorted(axes, key=lambda a: (-steps[a] if steps.get(a) else -(1 << 62), a))

    def natural(self, kept: list[int], row: Sequence[Any]) -> Index:
        """An index over the kept axes in loop order, in the order of the space."""
        places = dict(zip(kept, row, strict=True))
        return tuple(places[a] for a in sorted(places))

    def combine_index(
        self, lowering: Lowering, kept: dict[int, Any], axes: list[int], inner: Sequence[Any]
    ) -> Index:
        places = {**kept, **dict(zip(axes, inner, strict=True))}
        zero = lowering.b.index(0)
        return tuple(places.get(a, zero) for a in range(len(self.group.space)))

    def levels(self) -> list[list[Node]]:
        """Reductions by how many others they have to wait for."""
        depth: dict[Node, int] = {}
        producer = {v: n for n in self.nodes for v in n.outputs}
        levels: list[list[Node]] = []
        for node in self.nodes:
            before = 0
            for a in node.inputs:
                source = producer.get(a) if type(a) is Var else None
                if source is not None:
                    before = max(before, depth[source] + cost.is_big_reduction(source))
            depth[node] = before
            if cost.is_big_reduction(node):
                while len(levels) <= before:
                    levels.append([])
                levels[before].append(node)
        return levels

    def store_wide(self, lowering: Lowering, wide: list[Var], place: Index) -> None:
        for node in cone(lowering.producer, wide):
            if node.primitive.pointwise and node.outputs[0].aval.shape == self.group.space:
                lowering.value(node.outputs[0], place)
        for var in wide:
            lowering.store(var, place)

    def store_rows(self, lowering: Lowering, row: Index) -> None:
        outputs = [v for v in self.group.outputs if v.aval.shape != self.group.space]
        for node in cone(lowering.producer, outputs):  # in order: a long chain is no deep recursion
            shape = node.outputs[0].aval.shape
            if node.primitive.pointwise and shape == self.group.rows:
                lowering.value(node.outputs[0], with_ones(lowering.b, shape, row))
        for var in self.group.outputs:
            if var.aval.shape != self.group.space:
                lowering.store(var, with_ones(lowering.b, var.aval.shape, row))

    def full_index(self, lowering: Lowering, index: Index) -> Index:
        """The index in `space` for one over its axes longer than 1."""
        return with_ones(lowering.b, self.group.space, index)

    def nest(
        self,
        lowering: Lowering,
        kind: str,
        grid: int,
        grain: int,
        elements: int,
        in_place: bool = False,
        outputs: list[Var] | None = None,
    ) -> LoopNest:
        b = lowering.b
        names = {buffer: var for var, buffer in lowering.buffers.items()}
        names.update({buffer: var for var, buffer in lowering.outputs.items()})
        kernel = b.kernel(kernel_name(kind, self.nodes), in_place=in_place)
        arguments = [names[buffer] for buffer in kernel.buffers if buffer.space != "local"]
        traffic = sum(v.aval.nbytes for v in arguments)
        work = self.group.cost * elements * self.unit_ns + traffic * cost.BYTE_NS / max(1, grid)
        stored = outputs if outputs is not None else list(self.group.outputs)
        rows = self.row_inputs(lowering, kernel, grid)
        return LoopNest(kernel, arguments, stored, grid, grain, work, traffic, in_place, rows)

    def row_inputs(
        self, lowering: Lowering, kernel: Kernel, grid: int
    ) -> dict[Var, tuple[int, int]]:
        """See LoopNest: which matrices does the outermost loop walk by rows, and how?"""
        root = kernel.body[0]
        if not isinstance(root, For):
            return {}
        matrices = {
            buffer: var
            for var, buffer in lowering.buffers.items()
            if var.aval.ndim == 2 and grid > 1
        }
        if not matrices:
            return {}
        found: dict[Var, set[tuple[int, int] | None]] = {}
        for load in loads(kernel):
            var = matrices.get(load.attr)
            if var is not None:
                walk = self.row_walk(lowering.b, root, load.args[0], var, grid)
                found.setdefault(var, set()).add(walk)
        return {
            var: walk for var, walks in found.items() if len(walks) == 1 and (walk := walks.pop())
        }

    def row_walk(
        self, b: Builder, root: For, index: Any, matrix: Var, grid: int
    ) -> tuple[int, int] | None:
        """(rows of a grid step, grid steps of a row) for one load at `index`; None: neither."""
        rows, length = matrix.aval.shape
        form = b.linear(index)
        stride = form.terms.get((root.var,), 0)
        rest = {m: c for m, c in form.terms.items() if m != (root.var,)}
        if stride == 1 and not rest and form.const == 0 and grid == rows * length:
            return 1, length
        if root.lanes != 1 or stride <= 0 or stride % length:
            return None
        if grid != ceil(rows * length / stride):
            return None
        low, high = b.range_of_linear(Linear(rest, form.const))
        return (stride // length, 1) if low >= 0 and high < stride else None


def _widest(group: Group) -> int:
    """Bytes of the widest scalar that the vector loop computes with."""
    widest = 1
    for node in group.nodes:
        for a in (*node.inputs, *node.outputs):
            if a.aval.ndim:
                name = dtypes.scalar_name(a.aval)
                size = {"c64": 4, "c128": 8, "f16": 4, "bf16": 4}.get(name, a.aval.itemsize)
                widest = max(widest, size)
    return widest
