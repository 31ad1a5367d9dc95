"""Schedules without reductions.

    flat     one vector loop over all elements
    rows     grid over the outer axes, vector loop over the trailing axes that can be walked as one
    tiled    blocks of two axes, where a read is contiguous along another axis than the results
"""

from __future__ import annotations

from math import ceil, prod

from jato.compiler.fusion import cost
from jato.compiler.loops.borders import MOST_COST, MOST_CUTS, cut_points
from jato.compiler.loops.group import GroupSchedule
from jato.compiler.loops.lower import Index, Lowering
from jato.compiler.loops.nest import LoopNest, chunk_bounds, divides, grid_variables, nested, with_ones
from jato.compiler.loops.prefetch import prefetch_elements, prefetch_rows
from jato.compiler.loops.tile import TILE_HEIGHT, TILE_WIDTH, TileLowering
from jato.compiler.loops.walk import loads
from jato.core.graph import Var
from jato.loopir.builder import Builder
from jato.loopir.grammar import For
from jato.ops.reduction_family import Reduction

# A lane axis shorter than this is flattened together with the axes before it (but see short_axis.py).
SHORT_AXIS = 16
# Elements of a vector loop that one grid step gets at the most, when there are few outer steps.
CHUNK = 1 << 14
# Rows of at most so many vectors cost less than the divisions for their place, where there are several
# outer axes (kron of 64 x 64 and 32 x 32, rows of 2 vectors: 430 us, of which 300 are memory).
SHORT_ROW = 8
# ... and grid steps that must be left when the last outer axis is a loop within them.
FEWEST_RUNS = 32
# Loops of fewer vectors are not worth cutting at the borders of their guards.
SHORTEST_CUT = 4


class ElementwiseSchedule(GroupSchedule):
    """Takes a group without reductions; `build` chooses the form."""

    def build(self) -> LoopNest:
        shape = self.group.space
        dims = [n for n in shape if n != 1]
        if not dims or self.is_pointwise() or (dims[-1] < SHORT_AXIS and prod(shape) > dims[-1]):
            return self.flat(dims)
        for first in range(len(dims)):
            nest = self.by_rows(dims[:first], dims[first:]) if first else self.flat(dims)
            if not divides(nest.kernel):
                break
        outer, inner = dims[:first], dims[first:]
        crossing = self.crossing_axis(outer, inner) if outer else None
        return nest if crossing is None else self.tiled(outer, inner, crossing)

    def crossing_axis(self, outer: list[int], inner: list[int]) -> int | None:
        """The outer axis along which a read is contiguous that is strided along the inner axes,
        walked as one; None if there is no such read."""
        b = Builder()
        lowering = Lowering(b, self.nodes)
        dims = [*outer, prod(inner)]
        variables = tuple(b.var("i", "i64", 0, n - 1) for n in dims)
        with b.block() as body:
            at = variables[:-1] + lowering.unravel(variables[-1], tuple(inner))
            self.store_all(lowering, self.full_index(lowering, at))
        for load in loads(body):
            terms = b.linear(load.args[0]).terms
            if terms.get((variables[-1],), 0) in (0, 1, -1, 2):
                continue
            for axis, variable in enumerate(variables[:-1]):
                if terms.get((variable,)) == 1 and dims[axis] >= 4:
                    return axis
        return None

    def flat(self, dims: list[int]) -> LoopNest:
        """One vector loop over all elements."""
        b = Builder()
        lowering = Lowering(b, self.nodes)
        size = prod(dims)
        v = b.var("i", "i64", 0, max(0, size - 1))
        lanes = self.lanes(size, self.unroll())
        with b.block() as main:
            self.store_all(lowering, self.full_index(lowering, lowering.unravel(v, tuple(dims))))
        with b.block() as body:
            prefetch_elements(lowering, main, v, b.grid_end())
        body += main
        b.append(For(v, b.grid_begin(), b.grid_end(), tuple(body), lanes))
        in_place = self.is_pointwise()
        return self.nest(lowering, "map", size, max(64, 4 * lanes), 1, in_place)

    def by_rows(self, outer: list[int], inner: list[int]) -> LoopNest:
        """Grid over the outer axes (and chunks of the inner loop), vector loop over the inner."""
        nest, cuts = self.rows_in_pieces(outer, inner, [], False)
        in_runs = (
            len(outer) > 1
            and prod(inner) <= SHORT_ROW * self.width
            and prod(outer[:-1]) >= FEWEST_RUNS
            and divides(nest.kernel, *grid_variables(nest.kernel))
        )
        is_cut = 0 < len(cuts) <= MOST_CUTS and self.group.cost <= MOST_COST
        if is_cut or in_runs:
            nest, _ = self.rows_in_pieces(outer, inner, cuts if is_cut else [], in_runs)
        return nest

    def rows_in_pieces(
        self, outer: list[int], inner: list[int], cuts: list[int], in_runs: bool
    ) -> tuple[LoopNest, list[int]]:
        """The inner loop cut at `cuts`; and where it should be (borders.py).  `in_runs`: the last outer
        axis is a loop within a grid step."""
        b = Builder()
        lowering = Lowering(b, self.nodes)
        rows, length = prod(outer), prod(inner)
        runs = 1
        if in_runs:
            outer, runs = outer[:-1], outer[-1]
            rows //= runs
        chunks = ceil(length / CHUNK) if rows < 32 and length > 2 * CHUNK else 1
        g = b.var("g", "i64", 0, max(0, rows * chunks - 1))
        lanes = self.lanes(length, self.unroll())
        found: list[int] = []
        with b.block() as body:
            row, start, stop = chunk_bounds(b, g, chunks, length)
            ends = [*cuts, length]
            with nested(b, [runs] if runs > 1 else [], 1) as run:
                row_index = lowering.unravel(row, tuple(outer)) + tuple(run)
                for first, last in zip([0, *cuts], ends, strict=True):
                    if cuts:
                        start, stop = b.index(first), b.index(last)
                    wide = lanes if last - first >= self.width else 1
                    with b.for_("i", start, stop, wide) as v:
                        at = row_index + lowering.unravel(v, tuple(inner))
                        with b.block() as inside:
                            self.store_all(lowering, self.full_index(lowering, at))
                        if wide > 1:
                            prefetch_elements(lowering, inside, v, stop)
                            if runs == 1:
                                itemsize = max(o.aval.itemsize for o in self.group.outputs)
                                prefetch_rows(
                                    lowering, inside, v, g, rows * chunks, length * itemsize
                                )
                        for statement in inside:
                            b.append(statement)
                    if chunks == 1 and not cuts and length >= SHORTEST_CUT * self.width:
                        found = cut_points(b, inside, v, length)
        b.append(For(g, b.grid_begin(), b.grid_end(), tuple(body)))
        nest = self.nest(lowering, "map", rows * chunks, 1, runs * ceil(length / chunks))
        return nest, found

    def tiled(self, outer: list[int], inner: list[int], crossing: int) -> LoopNest:
        """Blocks of the inner axes, walked as one, by outer axis `crossing`, along which some reads
        are contiguous.

        before: for p: for i (lanes): out[p, i] = in[i, p]     a cache line per element read
        after:  for each block: tile[i, p] = in[i, p]  (p in lanes)
                                for p: for i (lanes): out[p, i] = tile[i, p]
        """
        b = Builder()
        others = [n for a, n in enumerate(outer) if a != crossing]
        height, width = outer[crossing], prod(inner)
        down, across = ceil(height / TILE_HEIGHT), ceil(width / TILE_WIDTH)
        grid = prod(others) * down * across
        g = b.var("g", "i64", 0, max(0, grid - 1))
        with b.block() as body:
            block, column = b.div(g, b.index(across)), b.rem(g, b.index(across))
            other, row = b.div(block, b.index(down)), b.rem(block, b.index(down))
            left, top = b.mul(column, b.index(TILE_WIDTH)), b.mul(row, b.index(TILE_HEIGHT))
            right = b.limited(b.add(left, b.index(TILE_WIDTH)), b.index(width))
            bottom = b.limited(b.add(top, b.index(TILE_HEIGHT)), b.index(height))
            lowering = TileLowering(
                b, self.nodes, g, (left, right), (top, bottom), self.width
            )
            with b.block() as main:
                with b.for_("p", top, bottom) as p, b.for_("i", left, right, self.width) as v:
                    lowering.v, lowering.p = v, p
                    index = list(lowering.unravel(other, tuple(others)))
                    index.insert(crossing, p)
                    index += lowering.unravel(v, tuple(inner))
                    self.store_all(lowering, self.full_index(lowering, tuple(index)))
            for statement in (*lowering.copies, *main):
                b.append(statement)
        b.append(For(g, b.grid_begin(), b.grid_end(), tuple(body)))
        return self.nest(lowering, "map_tiled", grid, 1, TILE_WIDTH * TILE_HEIGHT)

    def store_all(self, lowering: Lowering, index: Index) -> None:
        with lowering.scope():
            # in graph order, so that a long chain is no deep recursion
            for node in self.nodes:
                if (
                    node.outputs[0].aval.shape == self.group.space
                    and not cost.is_structural(node)
                    and not isinstance(node.primitive, Reduction)
                    and not node.primitive.rereads
                ):
                    lowering.value(node.outputs[0], index)
            for var in self.group.outputs:
                lowering.store(var, self.index_for(lowering, var, index))

    def index_for(self, lowering: Lowering, var: Var, index: Index) -> Index:
        if var.aval.shape == self.group.space:
            return index
        return with_ones(
            lowering.b,
            var.aval.shape,
            tuple(i for i, n in zip(index, self.group.space, strict=True) if n != 1),
        )
