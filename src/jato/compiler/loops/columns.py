"""Schedules of reductions over leading axes, the rows being the columns of a matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import ceil, prod
from typing import Any

from jato import _native
from jato.compiler.fusion import cost
from jato.compiler.fusion.partition import Group
from jato.compiler.loops.group import HEAVY, GroupSchedule
from jato.compiler.loops.lower import Index, Lowering
from jato.compiler.loops.nest import LoopNest, nested, with_ones
from jato.compiler.loops.reductions import FOLD, cone
from jato.core.graph import Node
from jato.loopir.builder import Builder
from jato.loopir.grammar import For

# Reductions across rows at least this wide and deep sweep along the rows, with the accumulators of
# at most BLOCK columns in local memory; narrower ones keep them in registers.
WIDE_ROW = 128
DEEP = 32
BLOCK = 2048
BLOCKS_PER_THREAD = 2


class ColumnSchedule(GroupSchedule):
    """Reductions over leading axes, the rows being the columns of a matrix.

    Memory is read in long pieces of rows: for each block of columns, for each d (a few at once),
    for i (lanes): acc[i] = combine(acc[i], x[d, i]).  Accumulators of a level stay in local memory
    for the levels after it.
    """

    def __init__(self, group: Group, vector_bytes: int):
        super().__init__(group, vector_bytes)
        self.b = Builder()
        self.lowering = Lowering(self.b, self.nodes)
        self.kept, self.reduced = self.axes()
        self.extents = [group.space[a] for a in self.reduced]
        self.lane_count = self.width
        self.at_once = 4
        # finished reductions and the local buffers of their accumulators
        self.done: list[tuple[Node, list[Any]]] = []
        self.start: Any = None
        self.stop: Any = None
        self.outer_row: Index = ()

    def build(self) -> LoopNest:
        b, space = self.b, self.group.space
        length = space[self.kept[-1]]
        outer = [space[a] for a in self.kept[:-1]]
        # long pieces of rows, and a few blocks for each thread
        pieces = BLOCKS_PER_THREAD * _native.default_num_threads()
        width = min(BLOCK, max(64, ceil(length / pieces / 64) * 64))
        blocks = ceil(length / width)
        grid = prod(outer) * blocks
        g = b.var("g", "i64", 0, max(0, grid - 1))
        with b.block() as body:
            block = b.rem(g, b.index(blocks))
            self.outer_row = self.lowering.unravel(b.div(g, b.index(blocks)), tuple(outer))
            self.start = b.mul(block, b.index(width))
            self.stop = b.limited(b.add(self.start, b.index(width)), b.index(length))
            for level in self.levels():
                work = sum(
                    cost.element_cost(n)
                    for n in cone(self.lowering.producer, [a for r in level for a in r.inputs])
                )
                # a light body on several vectors at once, a heavy one on several rows at once
                self.lane_count = self.width * (1 if work > HEAVY else 4)
                self.reduce(level)
            self.lane_count = self.width
            self.store()
        b.append(For(g, b.grid_begin(), b.grid_end(), tuple(body)))
        return self.nest(
            self.lowering, "columns", grid, 1, prod(self.extents) * min(width, length)
        )

    @contextmanager
    def columns(self) -> Iterator[tuple[Any, Index]]:
        """The vector loop over the block's columns; gives (position in the block, row index)."""
        b, lowering = self.b, self.lowering
        with b.for_("i", self.start, self.stop, self.lane_count) as v, lowering.scope():
            place, row = b.sub(v, self.start), self.natural(self.kept, (*self.outer_row, v))
            for node, buffers in self.done:
                out = node.outputs[0]
                values = tuple(b.load(x, place) for x in buffers)
                result = node.primitive.finish(b, values, out.aval, **node.params)
                lowering.define(out, with_ones(b, out.aval.shape, row), result)
            yield place, row

    def index(self, row: Index, d: Sequence[Any]) -> Index:
        kept = dict(zip(sorted(self.kept), row, strict=True))
        return self.combine_index(self.lowering, kept, self.reduced, d)

    def reduce(self, level: list[Node]) -> None:
        b = self.b
        totals = self.accumulators(level)
        *outer, last = self.extents
        stretch = FOLD * self.at_once
        with nested(b, outer, 1) as d:
            if last <= 2 * stretch:
                self.sweep(level, totals, d, b.index(0), last)
            else:
                partial = self.accumulators(level, initialize=False)
                with b.for_("s", 0, ceil(last / stretch)) as s:
                    self.fill(level, partial)
                    first = b.mul(s, b.index(stretch))
                    count = b.limited(b.sub(b.index(last), first), b.index(stretch))
                    self.sweep(level, partial, d, first, count)
                    with self.columns() as (place, _):
                        self.merge(level, totals, [[b.load(x, place) for x in p] for p in partial], place)
        self.done += zip(level, totals, strict=True)

    def accumulators(self, level: list[Node], initialize: bool = True) -> list[list[Any]]:
        buffers = [
            [
                self.b.local(f"acc{len(self.b.buffers)}", x.dtype, BLOCK)
                for x in node.primitive.identity(self.b, node.inputs[0].aval, **node.params)
            ]
            for node in level
        ]
        if initialize:
            self.fill(level, buffers)
        return buffers

    def fill(self, level: list[Node], buffers: list[list[Any]]) -> None:
        with self.columns() as (place, _):
            for node, targets in zip(level, buffers, strict=True):
                values = node.primitive.identity(self.b, node.inputs[0].aval, **node.params)
                for target, value in zip(targets, values, strict=True):
                    self.b.store(target, place, value)

    def sweep(
        self, level: list[Node], buffers: list[list[Any]], d: list[Any], first: Any, count: Any
    ) -> None:
        """Takes in `count` rows from `first` on, `at_once` of them at a time and then the rest."""
        b, n = self.b, self.at_once
        whole = b.div(b._bound(count), b.index(n))
        if n > 1:
            with b.for_("q", 0, whole) as q:
                base = b.add(first, b.mul(q, b.index(n)))
                self.take_in(level, buffers, [[*d, b.add(base, k)] for k in range(n)])
        with b.for_("q", b.mul(whole, b.index(n)) if n > 1 else 0, b._bound(count)) as q:
            self.take_in(level, buffers, [[*d, b.add(first, q)]])

    def take_in(
        self, level: list[Node], buffers: list[list[Any]], rows: list[list[Any]]
    ) -> None:
        b, lowering = self.b, self.lowering
        chains = [
            [
                n
                for n in cone(lowering.producer, node.inputs)
                if n.primitive.pointwise and n.outputs[0].aval.shape == self.group.space
            ]
            for node in level
        ]
        with self.columns() as (place, row):
            found: list[list[Any]] = []
            for node, chain in zip(level, chains, strict=True):
                elements = []
                for d in rows:
                    at = self.index(row, d)
                    for n in chain:
                        lowering.value(n.outputs[0], at)
                    value = lowering.value(node.inputs[0], at)
                    elements.append(tuple(node.primitive.element(b, value, at, **node.params)))
                while len(elements) > 1:
                    elements = [
                        tuple(node.primitive.combine(b, elements[i], elements[i + 1]))
                        for i in range(0, len(elements) - 1, 2)
                    ]
                found.append(list(elements[0]))
            self.merge(level, buffers, found, place)

    def merge(
        self, level: list[Node], buffers: list[list[Any]], values: list[list[Any]], place: Any
    ) -> None:
        b = self.b
        for node, targets, new in zip(level, buffers, values, strict=True):
            old = tuple(b.load(x, place) for x in targets)
            joined = node.primitive.combine(b, old, tuple(new))
            for target, value in zip(targets, joined, strict=True):
                b.store(target, place, value)

    def store(self) -> None:
        group, lowering = self.group, self.lowering
        narrow = [v for v in group.outputs if v.aval.shape != group.space]
        wide = [v for v in group.outputs if v.aval.shape == group.space]
        if narrow:
            with self.columns() as (_, row):
                for var in narrow:
                    lowering.store(var, with_ones(self.b, var.aval.shape, row))
        if wide:
            with nested(self.b, self.extents, 1) as d, self.columns() as (_, row):
                self.store_wide(lowering, wide, self.index(row, d))
