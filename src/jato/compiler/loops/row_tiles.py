"""Short rows: many rows at once, each lane one row, through transposed tiles.

    softmax of (100000, 10), 16 lanes:  tile[c, l] = x[row + l, c]        in registers
                                        for c: m = max(m, tile[c])        16 rows at once
                                        ...
                                        out[row + l, c] = result[c, l]    transposed back

A vector along a row of ten elements is half empty, and combining its lanes costs more than the
row.  Rows of one array follow each other, so the l-th lane's elements are `length` apart: a read
of one column of 16 rows would be a gather.

Takes   a group, with reductions over the last axis or without.
Gives   a loop nest, or None where rows are long or few, or a read is none of those known here.

Start reading at `RowTileSchedule`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import ceil, prod
from typing import Any

from jato.base import dtypes
from jato.compiler.fusion import cost
from jato.compiler.fusion.partition import Group, memory_inputs
from jato.compiler.loops.group import VECTORS, GroupSchedule
from jato.compiler.loops.lower import Index, Lowering, UnplacedReduction
from jato.compiler.loops.nest import LoopNest, divides, nested, with_ones
from jato.compiler.loops.reductions import accumulate, cone, values_to_save
from jato.compiler.loops.walk import variables_below
from jato.core.graph import Node, Var
from jato.loopir.builder import Builder
from jato.loopir.grammar import Buffer, Expr, For, Kernel
from jato.loopir.index_math import Linear
from jato.ops.reduce import REDUCE_MAX, REDUCE_MIN, REDUCE_PROD
from jato.ops.reduction_family import Reduction
from jato.ops.shapes import IOTA, REDUCE_SUM

# Elements of a row.  Longer ones fill vectors of their own: 100,000 rows on one thread, before and
# with tiles, in microseconds:  softmax of 8 3840, 518; of 10 1220, 486; of 24 1861, 994; of 40 2235,
# 2231; of 64 2661, 3296.  argmax of 10 1343, 295; of 64 2156, 1045.  sum of 8 227, 120; of 10 148, 138;
# of 24 162, 224.
LONGEST_ROW = 64
LONGEST_RESULT = 40  # where the results are rows too, and go back through a tile
# Light reductions: (work for each element up to which, this length).  20,000 sums of squares of differences,
# in rows and through tiles: of 12 31 and 29 us, of 16 19 and 31, of 20 36 and 44, of 32 29 and 55, of 64
# 48 and 91.  Maxima, which look for NaN: of 16 41 and 31, of 32 48 and 52, of 64 72 and 92.
_SUMS, _MAXIMA = ((2.0, 10), (6.0, 15)), ((6.0, 31),)
LONGEST_LIGHT = {
    REDUCE_SUM: _SUMS, REDUCE_PROD: _SUMS, REDUCE_MAX: _MAXIMA, REDUCE_MIN: _MAXIMA,
}  # fmt: skip
# Shorter ones are read whole and sorted into vectors.
SHORTEST_ROW = 3
SHORTEST_RESULT = 2
# A last axis that is worth rows of its own where nothing is reduced (the channels of an image), and
# the work that is written out for each of its elements.
SHORT_AXIS = 8
MOST_UNROLLED = 200.0
# Work of a row that is done for several vectors of rows at once.
MOST_LIGHT = 100.0
# Fewer rows than these do not pay for the copies.
FEWEST_ROWS = 64
# Light bodies over at least so many tiles have tiles four times as high: a copy of 64 rows of 3 takes 10 ns,
# most of it the call (cross product of 262,144 rows: 97 -> 68 us).
MANY_TILES = 64
# Rows of the outer axes for which tiles that do not depend on them are used again.
OUTER = 64

# Bytes of the vectors of machines whose tiles are transposed in registers (they have masks).
MASKED = 64
TILED = frozenset({"f32", "i32", "u32", "f64", "i64", "u64"})


class Untiled(Exception):
    """A read or write that steps over rows in another way."""


class RowTileLowering(Lowering):
    """Lowering whose elements of the rows `start` ... are in tiles of `pitch` rows.

    v: the row, over the lanes, from `start` on; outer: a variable that is the same for all rows
    of a tile."""

    def __init__(
        self, b: Builder, nodes: list[Node], pitch: int, width: int, longest: int, shortest: int
    ):
        super().__init__(b, nodes)
        self.pitch = pitch
        self.width = width
        self.longest = longest
        self.shortest = shortest
        self.v: Any = None
        self.start: Any = None
        self.outer: Expr | None = None
        # (array, terms of the position that the rows have in common, the constant among them,
        # distance of rows) -> tile
        self.read: dict[Any, Buffer] = {}
        self.written: dict[Any, Buffer] = {}
        self.columns: dict[Buffer, int] = {}  # elements of a row that are in a tile

    def place(self, var: Var, index: Index) -> tuple[Any, Expr, int] | None:
        """The tile (a key of `read` or `written`) that an element belongs to, where it is in its
        row, and how many elements the row has up to it at the most; None if the elements of
        neighbouring rows are neighbours or the same."""
        b = self.b
        form = b.linear(self.offset(var.aval.shape, index))
        step = form.terms.get((self.v,), 0)
        common: dict[Any, int] = {}
        inside: dict[Any, int] = {}
        for m, c in form.terms.items():
            if m == (self.v,):
                continue
            variables = variables_below(m)
            if self.v in variables:
                raise Untiled
            if self.outer not in variables:
                inside[m] = c
            elif len(variables) == 1:
                common[m] = c
            else:
                raise Untiled
        if 0 <= step < self.shortest:
            return None
        rest = Linear(inside, form.const)
        base = 0
        if step < 0:  # rows in the opposite order begin at the last one: the same for all its columns
            base = form.const - form.const % var.aval.shape[-1]
            rest = Linear(inside, form.const - base)
        low, high = b.range_of_linear(rest)
        # all that a copy of the row up to there reads is in the array
        least, most = b.range_of_linear(Linear(common, base))
        ends = [step * end for end in b.range(self.v)]
        if step == 0 or low < 0 or high >= self.longest:
            raise Untiled
        if least + min(ends) < 0 or most + max(ends) + high >= var.aval.size:
            raise Untiled
        if dtypes.scalar_name(var.aval) not in TILED:
            raise Untiled
        return (var, tuple(common.items()), base, step), b._from_linear(rest), high + 1

    def at(
        self, tiles: dict[Any, Buffer], key: Any, position: Expr, columns: int
    ) -> tuple[Buffer, Expr]:
        """The tile, and the place in it of the row's element at `position`."""
        b = self.b
        tile = tiles.get(key)
        if tile is None:
            dtype = dtypes.scalar_name(key[0].aval)
            size = (self.longest + self.width) * self.pitch
            tile = b.local(f"tile{len(b.buffers)}", dtype, size)
            tiles[key] = tile
        self.columns[tile] = max(columns, self.columns.get(tile, 0))
        lane = b.sub(self.v, self.start)
        return tile, b.add(b.mul(position, b.index(self.pitch)), lane)

    def load(self, var: Var, index: Index) -> Any:
        found = self.place(var, index)
        if found is None:
            return super().load(var, index)
        self.buffer(var)
        return self.b.load(*self.at(self.read, *found))

    def write(self, var: Var, index: Index, value: Any) -> None:
        found = self.place(var, index)
        if found is None:
            super().write(var, index, value)
            return
        self.output(var)
        self.b.store(*self.at(self.written, *found), value)

    def load_saved(self, var: Var, index: Index) -> Any:
        found = self.place(var, index)
        if found is None:
            return super().load_saved(var, index)
        return self.b.load(*self.at(self.written, *found))

    def copies_in(self, rows: Expr, repeated: bool) -> None:
        """Fills the tiles that differ between outer rows (`repeated`), or those that do not."""
        for key, tile in self.read.items():
            if bool(key[1]) == repeated:
                self.copy(key, tile, self.buffer(key[0]), rows, out=False)

    def copies_out(self, rows: Expr) -> None:
        for key, tile in self.written.items():
            self.copy(key, tile, self.output(key[0]), rows, out=True)

    def copy(self, key: Any, tile: Buffer, array: Buffer, rows: Expr, out: bool) -> None:
        _, common, first, step = key
        b = self.b
        base: Expr = b._from_linear(Linear(dict(common), first))
        start = b.add(base, b.mul(self.start, b.index(step)))
        columns = self.columns[tile]
        b.tile_copy(tile, array, start, step, rows, columns, self.pitch, self.width, out)


class RowTileSchedule(GroupSchedule):
    """Each lane is a row: of all kept axes as one, or else of the last kept axis.

    Without reductions a row is what lies along a short axis, such as the channels of an image."""

    def __init__(self, group: Group, vector_bytes: int):
        super().__init__(group, vector_bytes)
        self.saved = values_to_save(group, self.levels()) if group.reduced is not None else []
        self.vector_bytes = vector_bytes
        self.wide = [v for v in group.outputs if v.aval.shape == group.space]
        # reductions of a few elements, which are part of the expressions that use them
        self.small = [
            n for n in self.nodes if isinstance(n.primitive, Reduction) and n not in self.big()
        ]

    def big(self) -> set[Node]:
        return {n for level in self.levels() for n in level}

    def build(self) -> LoopNest | None:
        if self.vector_bytes < MASKED or not self.has_short_rows():
            return None
        space = self.group.space
        for kept, axes in self.forms():
            for count in (len(kept), 1) if len(kept) > 1 else (1,):
                fewest = FEWEST_ROWS if count == len(kept) else self.width
                if prod(space[a] for a in kept[-count:]) < fewest:
                    continue
                try:
                    nest = self.nest_over(kept[:-count], kept[-count:], axes)
                except (Untiled, UnplacedReduction):
                    continue
                if nest is not None and not divides(nest.kernel):
                    return nest
        return None

    def has_short_rows(self) -> bool:
        """Is it worth trying?"""
        if self.group.reduced is not None or self.small:
            return True
        inputs = memory_inputs(self.group)
        if all(v.aval.size <= 1 for v in inputs) and not any(n.primitive is IOTA for n in self.nodes):
            return False  # zeros of (100000, 8): 120 us through tiles, 43 as one loop
        arrays = [*inputs, *self.group.outputs]
        return not self.is_pointwise() and any(
            v.aval.ndim > 1 and 1 < v.aval.shape[-1] <= SHORT_AXIS for v in arrays
        )

    def forms(self) -> Iterator[tuple[list[int], list[int]]]:
        """Axes of the rows, and axes along them, best ones first."""
        space = self.group.space
        long_axes = [a for a, n in enumerate(space) if n != 1]
        if self.group.reduced is not None:
            kept, axes = self.axes()
            if kept and self.memory_order[-1] in axes and self.length(axes) <= self.longest_row():
                yield sorted(kept), sorted(axes)
            return
        # axes that the small reductions run along, which have to be inside the rows
        along = {
            a for n in self.small if n.inputs[0].aval.shape == space
            for a in n.primitive.axes(n.params)
        }  # fmt: skip
        inner = [[a for a in long_axes if a in along]] if along else []
        inner += [long_axes[first:] for first in range(1, len(long_axes))]
        inner += [[a] for a in long_axes[:-1] if space[a] <= SHORT_AXIS]
        inner += [[]]
        for axes in inner:
            if along.issubset(axes) and self.length(axes) <= self.longest_row():
                kept = [a for a in long_axes if a not in axes]
                if kept:
                    yield kept, axes

    def length(self, axes: list[int]) -> int:
        return prod(self.group.space[a] for a in axes)

    def longest_row(self) -> int:
        if self.wide:
            return LONGEST_RESULT
        reductions = [n for level in self.levels() for n in level]
        limits = LONGEST_LIGHT.get(reductions[0].primitive) if len(reductions) == 1 else None
        if limits is None:
            return LONGEST_ROW
        producer = {v: n for n in self.nodes for v in n.outputs}
        elements = [
            n for n in cone(producer, reductions[0].inputs)
            if n.outputs[0].aval.shape == self.group.space
        ]  # fmt: skip
        work = sum(map(cost.element_cost, elements))
        return next((longest for most, longest in limits if work <= most), LONGEST_ROW)

    def nest_over(self, outer: list[int], rows: list[int], axes: list[int]) -> LoopNest | None:
        b = Builder()
        space, width = self.group.space, self.width
        shortest = SHORTEST_RESULT if self.wide and axes else SHORTEST_ROW
        length, count = prod(space[a] for a in rows), prod(space[a] for a in outer)
        # light bodies are done for several vectors of rows at once
        pitch, longest = width, LONGEST_ROW
        if not self.levels() and not self.small and length >= 4 * width and self.light(axes):
            pitch, longest = VECTORS * width, 2 * width
        lanes = pitch
        if pitch > width and length >= MANY_TILES * pitch:
            pitch *= 4
        lowering = RowTileLowering(b, self.nodes, pitch, width, longest, shortest)
        extents = [space[a] for a in axes]
        blocks, chunks = ceil(length / pitch), ceil(count / OUTER)
        g = b.var("g", "i64", 0, max(0, blocks * chunks - 1))
        with b.block() as body:
            block = b.rem(g, b.index(blocks))
            first, end = b.index(0), b.index(1)
            if count > 1:
                first = b.mul(b.div(g, b.index(blocks)), b.index(OUTER))
                end = b.limited(b.add(first, b.index(OUTER)), b.index(count))
            start = lowering.start = b.mul(block, b.index(pitch))
            stop = b.limited(b.add(start, b.index(pitch)), b.index(length))
            present = b.sub(stop, start)
            with b.block() as each, b.for_("n", first, end) as n:
                lowering.outer = n if count > 1 else None
                with b.block() as main, b.for_("i", start, stop, lanes) as v, lowering.scope():
                    lowering.v = v
                    row = (
                        *lowering.unravel(n, tuple(space[a] for a in outer)),
                        *lowering.unravel(v, tuple(space[a] for a in rows)),
                    )
                    self.compute(lowering, row, [*outer, *rows], axes, extents)
                lowering.copies_in(present, repeated=True)
                for statement in main:
                    b.append(statement)
                lowering.copies_out(present)
            lowering.copies_in(present, repeated=False)
            for statement in each:
                b.append(statement)
        if not lowering.read and not lowering.written:
            return None
        if any(lowering.columns[tile] != prod(extents) for tile in lowering.written.values()):
            raise Untiled  # what goes back to memory is whole rows
        b.append(For(g, b.grid_begin(), b.grid_end(), tuple(body)))
        elements = prod(extents) * pitch * min(count, OUTER)
        return self.nest(lowering, "row_tiles", blocks * chunks, 1, elements)

    def light(self, axes: list[int]) -> bool:
        return self.group.cost * self.length(axes) <= MOST_LIGHT

    def compute(
        self, lowering: Lowering, row: Index, kept: list[int], axes: list[int],
        extents: list[int],
    ) -> None:  # fmt: skip
        """All results of the rows of one vector."""
        b, space = lowering.b, self.group.space

        def index(d: Sequence[Any]) -> Index:
            places = dict(zip(kept, row, strict=True))
            return self.combine_index(lowering, places, axes, tuple(d))

        for level in self.levels():
            saved = [(v, out) for v, out, loop in self.saved if level[0] in loop]
            parts = accumulate(lowering, level, extents, index, 1, saved=saved)
            lowering.saved.update(saved)
            for node, values in zip(level, parts, strict=True):
                out = node.outputs[0]
                result = node.primitive.finish(b, values, out.aval, **node.params)
                lowering.define(out, with_ones(b, out.aval.shape, row), result)
        long_rows = [space[a] for a in kept]
        for node in self.small:
            out = node.outputs[0]
            # (one that is reshaped afterwards has other axes)
            if [n for n in out.aval.shape if n != 1] == long_rows:
                lowering.value(out, with_ones(b, out.aval.shape, row))
        if self.group.reduced is not None:
            self.store_rows(lowering, row)
        if not self.wide:
            return
        if prod(extents) <= SHORT_AXIS and prod(extents) * self.group.cost <= MOST_UNROLLED:
            for place in product(*map(range, extents)):
                with lowering.scope():
                    self.store_wide(lowering, self.wide, index([b.index(i) for i in place]))
            return
        with nested(b, extents, 1) as d, lowering.scope():
            self.store_wide(lowering, self.wide, index(d))

    def row_inputs(
        self, lowering: Lowering, kernel: Kernel, grid: int
    ) -> dict[Var, tuple[int, int]]:
        return {}  # what a step reads arrives through copies of tiles
