"""Schedules without reductions.

    flat     one vector loop over all elements
    rows     grid over the outer axes, vector loop over the trailing axes that can be walked as one
    tiled    blocks of two axes, where a read is contiguous along another axis than the results
"""

from __future__ import annotations

from itertools import pairwise
from math import ceil, gcd, prod
from typing import Any

from jato.compiler.fusion import cost
from jato.compiler.loops.borders import MOST_COST, MOST_CUTS, cut_points
from jato.compiler.loops.group import GroupSchedule
from jato.compiler.loops.lower import Index, Lowering
from jato.compiler.loops.nest import (
    LoopNest,
    chunk_bounds,
    divides,
    long_loops,
    whole_vectors,
    with_ones,
)
from jato.compiler.loops.prefetch import loads_below, prefetch_elements, prefetch_rows
from jato.compiler.loops.tile import TILE_HEIGHT, TILE_WIDTH, TileLowering
from jato.compiler.loops.walk import lane_values, loads, mentions, statements, variables_below
from jato.core.graph import Var
from jato.loopir.builder import Builder
from jato.loopir.grammar import Expr, For, Kernel, Store
from jato.ops.reduction_family import Reduction

# A lane axis shorter than this is flattened together with the axes before it.
SHORT_AXIS = 16
# Elements of a vector loop that one grid step gets at the most, when there are few outer steps.
CHUNK = 1 << 14
# Work for an element of short rows that are computed one by one.
MOST_COPIED = 4.0
# In periods (see `periods`): the work for their vectors, whose code is written out; the vectors
# that those of one period are sorted from, at the most; and lanes that make it worth while.
MOST_PERIOD_WORK = 48.0
MOST_SORTED = 6
LEAST_LANES = 8
# Where there are few outer rows, they are cut into pieces of so many periods, or short rows.
FEW_ROWS = 64
PERIODS = 64
ROWS = 1024
# Vectors of a row of joined axes.
JOINED_VECTORS = 2
# Loops of fewer vectors are not worth cutting at the borders of their guards.
SHORTEST_CUT = 4


class ElementwiseSchedule(GroupSchedule):
    """Takes a group without reductions; `build` chooses the form."""

    def build(self) -> LoopNest:
        shape = self.group.space
        dims = [n for n in shape if n != 1]
        size = prod(shape)
        if not dims or self.is_pointwise():
            return self.flat(dims)
        if dims[-1] < SHORT_AXIS and size > dims[-1]:
            return self.short_rows(dims) or self.flat_or_rows(dims)
        for first in range(len(dims) - 1):
            nest = self.by_rows(dims[:first], dims[first:]) if first else self.flat(dims)
            if nest is not None and not divides(nest.kernel):
                return nest
        nest = self.by_rows(dims[:-1], dims[-1:]) if len(dims) > 1 else self.flat(dims)
        crossing = self.crossing_axis(dims) if len(dims) > 1 else None
        return nest if crossing is None else self.tiled(dims, crossing)

    def joined_rows(self) -> LoopNest | None:
        """Short rows that can be walked as one with axes before theirs; None if there are none.

        A crop, or a flip, of the rows of an image of three channels runs along `width * 3`
        elements."""
        dims = [n for n in self.group.space if n != 1]
        if len(dims) < 2 or dims[-1] >= SHORT_AXIS or self.is_pointwise():
            return None
        for first in range(len(dims) - 1):
            if prod(dims[first:]) < JOINED_VECTORS * self.width:
                return None
            nest = self.by_rows(dims[:first], dims[first:]) if first else self.flat(dims)
            if not divides(nest.kernel, *long_loops(nest.kernel, prod(dims[first:]))):
                return nest
        return None

    def crossing_axis(self, dims: list[int]) -> int | None:
        """The axis (of those longer than 1) along which a read is contiguous that is strided
        along the last one; None if there is no such read."""
        b = Builder()
        lowering = Lowering(b, self.nodes)
        variables = tuple(b.var("i", "i64", 0, n - 1) for n in dims)
        with b.block() as body:
            self.store_all(lowering, self.full_index(lowering, variables))
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

    def short_rows(self, dims: list[int]) -> LoopNest | None:
        """Rows at places that come from memory, one by one; None if there are none, or much work.

        for r: for c in 0, 1, 2: out[r, c] = table[index[r], c]

        A vector over several such rows would divide its position for the row, and gather: 100,000
        rows of 8 took 820 us on one thread, 3 300 us."""
        wide = [n for n in self.nodes if n.outputs[0].aval.shape == self.group.space]
        if sum(map(cost.element_cost, wide)) > MOST_COPIED:
            return None
        nest, bodies = self.row_by_row(dims, "short_rows")
        found = False
        for loop in bodies:
            data = [e for load in loads(loop.body) for e in loads_below(load.args[0])]
            if mentions([e.args[0] for e in data], loop.var):
                return None
            found = found or bool(data)
        return nest if found else None

    def flat_or_rows(self, dims: list[int]) -> LoopNest:
        """One loop over all elements, or row by row where it would divide for each of them."""
        nest = self.flat(dims)
        wide = [n for n in self.nodes if n.outputs[0].aval.shape == self.group.space]
        if not divides(nest.kernel) or sum(map(cost.element_cost, wide)) > MOST_COPIED:
            return nest
        return self.row_by_row(dims, "map")[0]

    def in_periods(self) -> LoopNest | None:
        """Short rows by whole vectors, if that needs neither a division nor a gather in each."""
        dims = [n for n in self.group.space if n != 1]
        if len(dims) < 2 or dims[-1] >= SHORT_AXIS or self.is_pointwise():
            return None
        if self.width < LEAST_LANES:
            return None
        vectors = dims[-1] // gcd(dims[-1], self.width)
        work = vectors * (1.0 + self.group.cost)
        if work > MOST_PERIOD_WORK or prod(dims[:-1]) < 4 * self.width:
            return None
        if any(isinstance(n.primitive, Reduction) for n in self.nodes):
            return None
        for count in (len(dims) - 1, 1) if len(dims) > 2 else (1,):
            if prod(dims[-1 - count : -1]) >= 4 * self.width:
                b = Builder()
                nest = self.periods(b, dims, count, vectors)
                if self.is_sorted(b, nest.kernel):
                    return nest
        return None

    def is_sorted(self, b: Builder, kernel: Kernel) -> bool:
        """Is every access of each vector contiguous, or near enough to be sorted by shuffles?"""
        root = kernel.body[0]
        assert isinstance(root, For)
        periods = root.body[0]
        assert isinstance(periods, For)
        if divides(kernel, root.var, periods.var):
            return False
        for loop in periods.body:
            if not isinstance(loop, For):
                return False
            vectors = 0
            for load in loads((loop,)):
                span = self.lane_span(b, load.args[0], loop)
                if span is None or (len(load.args) > 1 and span != self.width):
                    return False
                vectors += ceil(span / self.width) if span != self.width else 0
            for s in statements((loop,)):
                if isinstance(s, Store) and self.lane_span(b, s.index, loop) != self.width:
                    return False
            if vectors > MOST_SORTED:
                return False
        return True

    def lane_span(self, b: Builder, index: Expr, loop: For) -> int | None:
        """How many elements the places of the lanes span: `width` for neighbours in order, 0 where
        no lane matters; None where they are not known relative to each other."""
        lanes = range(loop.start.attr, loop.stop.attr)
        places = [0] * len(lanes)
        for monomial, factor in b.linear(index).terms.items():
            variables = variables_below(monomial)
            if loop.var not in variables:
                continue
            if len(monomial) != 1:
                return None
            values = lane_values(monomial[0], loop.var, lanes)
            if values is None:
                return None
            places = [p + factor * v for p, v in zip(places, values, strict=True)]
        if not any(places):
            return 0
        span = max(places) - min(places) + 1
        in_order = all(q - p == 1 for p, q in pairwise(places))
        return span if in_order or span != self.width else span + 1

    def periods(self, b: Builder, dims: list[int], count: int, vectors: int) -> LoopNest:
        """Whole rows by whole vectors: what depends on the column alone is the same in each period.

        before: for i (lanes): out[i] = x[i] * scale[i % 3]
        after:  for each 16 rows of 3: for v in 0, 1, 2: out[48 p + 16 v ...] = x[...] * scale_v
                                       with scale_v[j] = scale[(16 v + j) % 3], loaded once

        The rows are those of the last `count` axes before the short one; the last period begins
        early, where they end."""
        lowering = Lowering(b, self.nodes)
        outer, inner, length = dims[: -1 - count], dims[-1 - count : -1], dims[-1]
        rows, height = prod(inner), vectors * self.width // length
        steps = ceil(rows / height)
        pieces = self.pieces(prod(outer), steps, PERIODS)
        g = b.var("g", "i64", 0, max(0, prod(outer) * pieces - 1))
        with b.block() as body:
            place, first, last = self.piece(b, g, pieces, steps, PERIODS)
            with b.for_("p", first, last) as p:
                top = b.limited(b.mul(p, b.index(height)), b.index(rows - height))
                for v in range(vectors):
                    with b.for_("i", v * self.width, (v + 1) * self.width, self.width) as i:
                        row = b.add(top, b.div(i, b.index(length)))
                        at = lowering.unravel(row, tuple(inner))
                        at = (*lowering.unravel(place, tuple(outer)), *at)
                        column = b.rem(i, b.index(length))
                        self.store_all(lowering, self.full_index(lowering, (*at, column)))
        b.append(For(g, b.grid_begin(), b.grid_end(), tuple(body)))
        elements = rows * length if pieces == 1 else PERIODS * height * length
        return self.nest(lowering, "map", prod(outer) * pieces, 1, elements)

    def pieces(self, outer: int, steps: int, size: int) -> int:
        """Into how many pieces of `size` the steps within one of the outer rows are cut."""
        return ceil(steps / size) if outer < FEW_ROWS and steps > size else 1

    def piece(
        self, b: Builder, g: Any, pieces: int, steps: int, size: int
    ) -> tuple[Any, Any, Any]:
        """(outer row, first and last step) of grid step g."""
        if pieces == 1:
            return g, b.index(0), b.index(steps)
        first = b.mul(b.rem(g, b.index(pieces)), b.index(size))
        last = b.limited(b.add(first, b.index(size)), b.index(steps))
        return b.div(g, b.index(pieces)), first, last

    def row_by_row(self, dims: list[int], kind: str) -> tuple[LoopNest, list[For]]:
        """Short rows one after the other, without a division for each element; the nest, and its
        loops along a row.

        for y: for x: for c in 0, 1, 2: out[y, x, c] = image[y, reflected(x), c]"""
        b = Builder()
        lowering = Lowering(b, self.nodes)
        outer, across = dims[:-2], dims[-2]
        pieces = self.pieces(prod(outer), across, ROWS)
        g = b.var("g", "i64", 0, max(0, prod(outer) * pieces - 1))
        loops: list[For] = []
        with b.block() as body:
            place, start, stop = self.piece(b, g, pieces, across, ROWS)
            with b.for_("x", start, stop) as x:
                at = (*lowering.unravel(place, tuple(outer)), x)
                with b.block() as row:
                    for first, lanes in whole_vectors(dims[-1], self.width):
                        with b.for_("i", first, first + lanes, lanes) as v:
                            self.store_all(lowering, self.full_index(lowering, (*at, v)))
                for statement in row:
                    b.append(statement)
                loops = [s for s in row if isinstance(s, For)]
        b.append(For(g, b.grid_begin(), b.grid_end(), tuple(body)))
        elements = (across if pieces == 1 else ROWS) * dims[-1]
        return self.nest(lowering, kind, prod(outer) * pieces, 1, elements), loops

    def by_rows(self, outer: list[int], inner: list[int]) -> LoopNest:
        """Grid over the outer axes (and chunks of the inner loop), vector loop over the inner."""
        nest, cuts = self.rows_in_pieces(outer, inner, [])
        if 0 < len(cuts) <= MOST_CUTS and self.group.cost <= MOST_COST:
            nest, _ = self.rows_in_pieces(outer, inner, cuts)
        return nest

    def rows_in_pieces(
        self, outer: list[int], inner: list[int], cuts: list[int]
    ) -> tuple[LoopNest, list[int]]:
        """The inner loop cut at `cuts`; and where it should be (borders.py)."""
        b = Builder()
        lowering = Lowering(b, self.nodes)
        rows, length = prod(outer), prod(inner)
        chunks = ceil(length / CHUNK) if rows < 32 and length > 2 * CHUNK else 1
        g = b.var("g", "i64", 0, max(0, rows * chunks - 1))
        lanes = self.lanes(length, self.unroll())
        found: list[int] = []
        with b.block() as body:
            row, start, stop = chunk_bounds(b, g, chunks, length)
            ends = [*cuts, length]
            for first, last in zip([0, *cuts], ends, strict=True):
                if cuts:
                    start, stop = b.index(first), b.index(last)
                wide = lanes if last - first >= self.width else 1
                with b.for_("i", start, stop, wide) as v:
                    at = lowering.unravel(row, tuple(outer)) + lowering.unravel(v, tuple(inner))
                    with b.block() as inside:
                        self.store_all(lowering, self.full_index(lowering, at))
                    if wide > 1:
                        prefetch_elements(lowering, inside, v, stop)
                        bytes_of_row = length * max(o.aval.itemsize for o in self.group.outputs)
                        prefetch_rows(lowering, inside, v, g, rows * chunks, bytes_of_row)
                    for statement in inside:
                        b.append(statement)
                if chunks == 1 and not cuts and length >= SHORTEST_CUT * self.width:
                    found = cut_points(b, inside, v, length)
        b.append(For(g, b.grid_begin(), b.grid_end(), tuple(body)))
        nest = self.nest(lowering, "map", rows * chunks, 1, ceil(length / chunks))
        return nest, found

    def tiled(self, dims: list[int], crossing: int) -> LoopNest:
        """Blocks of the last axis by axis `crossing`, along which some reads are contiguous.

        before: for p: for i (lanes): out[p, i] = in[i, p]     a cache line per element read
        after:  for each block: tile[i, p] = in[i, p]  (p in lanes)
                                for p: for i (lanes): out[p, i] = tile[i, p]
        """
        b = Builder()
        others = [n for a, n in enumerate(dims[:-1]) if a != crossing]
        height, width = dims[crossing], dims[-1]
        down, across = ceil(height / TILE_HEIGHT), ceil(width / TILE_WIDTH)
        grid = prod(others) * down * across
        g = b.var("g", "i64", 0, max(0, grid - 1))
        with b.block() as body:
            block, column = b.div(g, b.index(across)), b.rem(g, b.index(across))
            other, row = b.div(block, b.index(down)), b.rem(block, b.index(down))
            left, top = b.mul(column, b.index(TILE_WIDTH)), b.mul(row, b.index(TILE_HEIGHT))
            right = b.limited(b.add(left, b.index(TILE_WIDTH)), b.index(width))
            bottom = b.limited(b.add(top, b.index(TILE_HEIGHT)), b.index(height))
            lowering = TileLowering(b, self.nodes, (left, right), (top, bottom), self.width)
            with b.block() as main:
                with b.for_("p", top, bottom) as p, b.for_("i", left, right, self.width) as v:
                    lowering.v, lowering.p = v, p
                    index = list(lowering.unravel(other, tuple(others)))
                    index.insert(crossing, p)
                    self.store_all(lowering, self.full_index(lowering, (*index, v)))
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
