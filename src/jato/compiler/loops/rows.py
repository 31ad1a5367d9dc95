"""Schedules of reductions: one row of the kept axes after the other.

For each row come the reductions, level after level (a level needs the results of the one before),
then the results.  The vector loop runs along the reduced axes (`along`) or along the last kept one,
each lane being a row of its own (`across`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, prod
from typing import Any

from jato.compiler.fusion.partition import Group
from jato.compiler.loops.group import GroupSchedule
from jato.compiler.loops.lower import Index, Lowering
from jato.compiler.loops.nest import LoopNest, divides, nested, with_ones
from jato.compiler.loops.reductions import accumulate, values_to_save
from jato.core.graph import Node
from jato.loopir.builder import Builder
from jato.loopir.grammar import For


class RowSchedule(GroupSchedule):
    """Takes a group with reductions."""

    def __init__(self, group: Group, vector_bytes: int):
        super().__init__(group, vector_bytes)
        self.saved = values_to_save(group, self.levels())

    def build(self) -> LoopNest:
        _, axes = self.axes()
        if self.memory_order[-1] in axes:
            if len(axes) > 1:
                nest = self.along(merged=True)
                if not divides(nest.kernel):
                    return nest
            return self.along(merged=False)
        return self.across()

    def along(self, merged: bool) -> LoopNest:
        """The vector loop runs along the reduced axes; one row per grid step."""
        b = Builder()
        lowering = Lowering(b, self.nodes)
        space = self.group.space
        kept, axes = self.axes()
        rows = prod(space[a] for a in kept)
        extents = [space[a] for a in axes]
        if merged:
            extents = [prod(extents)]
        g = b.var("g", "i64", 0, max(0, rows - 1))

        def index(d: Sequence[Any]) -> Index:
            inner = lowering.unravel(d[0], tuple(space[a] for a in axes)) if merged else tuple(d)
            return self.combine_index(lowering, places, axes, inner)

        with b.block() as body, lowering.scope():
            places = dict(zip(kept, lowering.unravel(g, tuple(space[a] for a in kept)), strict=True))
            row = tuple(places[a] for a in sorted(kept))
            for level in self.levels():
                lanes = self.lanes(extents[-1], 4, self.level_work(lowering, level))
                self.reduce_level(lowering, level, extents, index, row, lanes)
            self.store_rows(lowering, row)
            wide = [v for v in self.group.outputs if v.aval.shape == space]
            if wide:
                with nested(b, extents, self.lanes(extents[-1])) as d, lowering.scope():
                    self.store_wide(lowering, wide, index(d))
        b.append(For(g, b.grid_begin(), b.grid_end(), tuple(body)))
        return self.nest(lowering, "rows", rows, 1, prod(extents))

    def across(self) -> LoopNest:
        """The vector loop runs along the last kept axis: each lane is a row of its own."""
        b = Builder()
        lowering = Lowering(b, self.nodes)
        space = self.group.space
        kept, axes = self.axes()
        outer, last = kept[:-1], kept[-1]
        extents = [space[a] for a in axes]
        length = space[last]
        lanes = self.lanes(length, unroll=4)
        blocks = ceil(length / lanes)
        grid = prod(space[a] for a in outer) * blocks
        g = b.var("g", "i64", 0, max(0, grid - 1))

        with b.block() as body:
            outer_row, block = b.div(g, b.index(blocks)), b.rem(g, b.index(blocks))
            start = b.mul(block, b.index(lanes))
            stop = b.limited(b.add(start, b.index(lanes)), b.index(length))
            with b.for_("i", start, stop, lanes) as v, lowering.scope():
                outer_places = lowering.unravel(outer_row, tuple(space[a] for a in outer))
                places = dict(zip(kept, (*outer_places, v), strict=True))
                row = tuple(places[a] for a in sorted(kept))

                def index(d: Sequence[Any]) -> Index:
                    return self.combine_index(lowering, places, axes, tuple(d))

                for level in self.levels():
                    self.reduce_level(lowering, level, extents, index, row, 1)
                self.store_rows(lowering, row)
                wide = [x for x in self.group.outputs if x.aval.shape == space]
                if wide:
                    with nested(b, extents, 1) as d, lowering.scope():
                        self.store_wide(lowering, wide, index(d))
        b.append(For(g, b.grid_begin(), b.grid_end(), tuple(body)))
        return self.nest(lowering, "rows", grid, 1, prod(extents) * lanes)

    def reduce_level(
        self,
        lowering: Lowering,
        level: list[Node],
        extents: list[int],
        index: Callable[[Sequence[Any]], Index],
        row: Index,
        lanes: int,
    ) -> None:
        """One loop for all reductions of a level; makes their results known for the row."""
        b = lowering.b
        saved = [(v, out) for v, out, loop in self.saved if level[0] in loop]
        parts = accumulate(lowering, level, extents, index, lanes, saved=saved)
        lowering.saved.update(saved)
        for node, values in zip(level, parts, strict=True):
            out = node.outputs[0]
            result = node.primitive.finish(b, values, out.aval, **node.params)
            lowering.define(out, with_ones(b, out.aval.shape, row), result)
