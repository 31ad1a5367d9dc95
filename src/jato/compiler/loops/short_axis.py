"""Schedules without reductions whose last axis is short: the channels of a picture, vectors of three.

    joined rows   the short axis and axes before it walked as one row, where no read then divides
    periods       whole rows by whole vectors; what depends on the column alone is loaded once
    row by row    one short row after the other

One loop over all elements divides each position for its row and its column, and gathers.  Decision
0018 has the measurements.  Start at `whole_vectors_of_rows`, and at `single_rows` for what is left.
"""

from __future__ import annotations

from itertools import pairwise
from math import ceil, gcd, prod

from jato.compiler.fusion import cost
from jato.compiler.loops.elementwise import SHORT_AXIS, ElementwiseSchedule
from jato.compiler.loops.lower import Lowering
from jato.compiler.loops.nest import LoopNest, divides, long_loops, whole_vectors
from jato.compiler.loops.prefetch import loads_below
from jato.compiler.loops.walk import lane_values, loads, mentions, statements, variables_below
from jato.loopir.builder import Builder
from jato.loopir.grammar import Expr, For, Kernel, Store
from jato.ops.reduction_family import Reduction

# Vectors of a row of joined axes.
JOINED_VECTORS = 2
# In periods: the work for their vectors, whose code is written out; lanes that make it worth while;
# and the vectors that those of one period are made from, at the most.  One read of more than
# llvm/memory.py sorts is a gather, and still pays: x[:, ::5] of a picture 301 us, row by row 440.
MOST_PERIOD_WORK = 48.0
LEAST_LANES = 8
MOST_SOURCES = 6
# Work for an element of short rows that are computed one by one.
MOST_COPIED = 4.0
# Where there are few outer rows, what is in them is cut into stretches of so many periods, or short
# rows, at the most.  (Always into two or more: whether it is cut does not show in a kernel.)
FEW_ROWS = 8
PERIODS = 64
ROWS = 1024


class ShortAxisSchedule(ElementwiseSchedule):
    """Takes a group without reductions."""

    def whole_vectors_of_rows(self) -> LoopNest | None:
        """Joined rows, or periods; None where neither fits."""
        dims = self.long_dims()
        if len(dims) < 2 or dims[-1] >= SHORT_AXIS or self.is_pointwise():
            return None
        return self.joined_rows(dims) or self.in_periods(dims)

    def single_rows(self) -> LoopNest | None:
        """Short rows one by one, where they are at places that come from memory or one loop over all
        elements would divide for each; None if there is much to compute."""
        dims = self.long_dims()
        if len(dims) < 2 or dims[-1] >= SHORT_AXIS or self.is_pointwise():
            return None
        wide = [n for n in self.nodes if n.outputs[0].aval.shape == self.group.space]
        if sum(map(cost.element_cost, wide)) > MOST_COPIED:
            return None
        nest, loops = self.row_by_row(dims)
        return nest if self.reads_rows_from_memory(loops) or divides(self.flat(dims).kernel) else None

    def long_dims(self) -> list[int]:
        return [n for n in self.group.space if n != 1]

    # ---- joined rows

    def joined_rows(self, dims: list[int]) -> LoopNest | None:
        """Short rows that can be walked as one with axes before theirs; None if there are none.

        A crop, or a flip, of the rows of an image of three channels runs along `width * 3`
        elements."""
        for first in range(len(dims) - 1):
            if prod(dims[first:]) < JOINED_VECTORS * self.width:
                return None
            nest = self.by_rows(dims[:first], dims[first:]) if first else self.flat(dims)
            if not divides(nest.kernel, *long_loops(nest.kernel, prod(dims[first:]))):
                return nest
        return None

    # ---- periods

    def in_periods(self, dims: list[int]) -> LoopNest | None:
        """Short rows by whole vectors, if no vector needs a division."""
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
                places = self.lane_places(b, load.args[0], loop)
                if places is None or (len(load.args) > 1 and not neighbours(places)):
                    return False
                if any(places) and not neighbours(places):
                    vectors += ceil((max(places) - min(places) + 1) / self.width)
            for s in statements((loop,)):
                if isinstance(s, Store):
                    places = self.lane_places(b, s.index, loop)
                    if places is None or not neighbours(places):
                        return False
            if vectors > MOST_SOURCES:
                return False
        return True

    def lane_places(self, b: Builder, index: Expr, loop: For) -> list[int] | None:
        """The places of the lanes relative to each other (zeros where no lane matters), if known."""
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
        return places

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
        stretch = self.stretch_length(prod(outer), steps, PERIODS)
        grid = prod(outer) * ceil(steps / stretch)
        g = b.var("g", "i64", 0, max(0, grid - 1))
        with b.block() as body:
            place, first, last = self.stretch_bounds(b, g, stretch, steps)
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
        return self.nest(lowering, "map", grid, 1, stretch * height * length)

    def stretch_length(self, outer: int, steps: int, most: int) -> int:
        """How many steps within an outer row one grid step takes: all, unless such rows are few."""
        return steps if outer >= FEW_ROWS else min(most, ceil(steps / 2))

    def stretch_bounds(
        self, b: Builder, g: Expr, stretch: int, steps: int
    ) -> tuple[Expr, Expr, Expr]:
        """(outer row, first and last step) of grid step g."""
        if stretch == steps:
            return g, b.index(0), b.index(steps)
        count = b.index(ceil(steps / stretch))
        first = b.mul(b.rem(g, count), b.index(stretch))
        last = b.limited(b.add(first, b.index(stretch)), b.index(steps))
        return b.div(g, count), first, last

    # ---- row by row

    def reads_rows_from_memory(self, loops: list[For]) -> bool:
        """Are rows of a table read at places that come from memory, the same for a whole row?

        for r: for c in 0, 1, 2: out[r, c] = table[index[r], c]     100,000 rows of 8: 300 us on one
        thread; 820 as one loop over all elements"""
        found = False
        for loop in loops:
            data = [e for load in loads(loop.body) for e in loads_below(load.args[0])]
            if mentions([e.args[0] for e in data], loop.var):
                return False
            found = found or bool(data)
        return found

    def row_by_row(self, dims: list[int]) -> tuple[LoopNest, list[For]]:
        """Short rows one after the other, without a division for each element; the nest, and its
        loops along a row.

        for y: for x: for c in 0, 1, 2: out[y, x, c] = image[y, reflected(x), c]"""
        b = Builder()
        lowering = Lowering(b, self.nodes)
        outer, across = dims[:-2], dims[-2]
        stretch = self.stretch_length(prod(outer), across, ROWS)
        grid = prod(outer) * ceil(across / stretch)
        g = b.var("g", "i64", 0, max(0, grid - 1))
        loops: list[For] = []
        with b.block() as body:
            place, start, stop = self.stretch_bounds(b, g, stretch, across)
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
        return self.nest(lowering, "short_rows", grid, 1, stretch * dims[-1]), loops


def neighbours(places: list[int]) -> bool:
    """Do the lanes follow each other in memory, in order?"""
    return all(q - p == 1 for p, q in pairwise(places))
