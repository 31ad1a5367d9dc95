"""Schedules of reductions with few rows and many elements: in two stages.

The first kernel reduces chunks of the elements, the second the results of the chunks; the number of
chunks depends on the shape only, so that results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, prod
from typing import Any

from jato.compiler.fusion import cost
from jato.compiler.loops.group import GroupSchedule
from jato.compiler.loops.lower import Index, Lowering
from jato.compiler.loops.nest import LoopNest, divides, with_ones
from jato.compiler.loops.reductions import accumulate, reduce_together, store_parts
from jato.core.graph import Node, Var
from jato.loopir.builder import Builder
from jato.loopir.complex import Complex
from jato.loopir.grammar import For
from jato.ops.shapes import BroadcastInDim

MOST_CHUNKS = 256
EVEN_CHUNKS = 16
# Elements: what a thread reduces in a microsecond or two.
LEAST_CHUNK = cost.SPLIT_ELEMENTS // 8


class SplitSchedule(GroupSchedule):
    """Takes a group marked `split`."""

    def build(self) -> list[LoopNest]:
        """Chunks of the longest run of elements first, then the chunks' results."""
        _, axes = self.axes()
        merged = self.split_chunks(merged=True) if len(axes) > 1 and not self.repeats() else None
        if merged is not None and not divides(merged[0].kernel):
            return merged[1]()
        return self.split_chunks(merged=False)[1]()

    def repeats(self) -> bool:
        """Is an array repeated along some of the reduced axes?  Where all of them run as one, its
        index is a remainder of theirs."""
        _, axes = self.axes()
        for node in self.nodes:
            if not isinstance(node.primitive, BroadcastInDim):
                continue
            operand, out = node.inputs[0].aval, node.outputs[0].aval
            places = node.params["broadcast_dimensions"]
            varying = {p for p, n in zip(places, operand.shape, strict=True) if n > 1}
            if out.shape == self.group.space and 0 < len(varying & set(axes)) < len(axes):
                return True
        return False

    def split_chunks(self, merged: bool) -> tuple[LoopNest, Callable[[], list[LoopNest]]]:
        space = self.group.space
        kept, axes = self.axes()
        extents = [space[a] for a in axes]
        if merged:
            extents = [prod(extents)]
        rows = prod(space[a] for a in kept)
        inner = prod(extents[1:]) * rows
        length = prod(space[a] for a in axes[1:]) if merged else 1
        chunk = chunk_length(extents[0], inner, length)
        chunks = ceil(extents[0] / chunk)
        reductions = self.group.reductions()

        b = Builder()
        lowering = Lowering(b, self.nodes)
        partials: list[list[list[Var]]] = []  # per reduction, per accumulator: its parts
        c = b.var("c", "i64", 0, max(0, chunks - 1))
        across = bool(kept) and self.memory_order[-1] == kept[-1]
        lanes = 1 if across else self.lanes(extents[-1] if len(extents) > 1 else chunk, unroll=4)
        with b.block() as body:
            start = b.mul(c, b.index(chunk))
            stop = b.limited(b.add(start, b.index(chunk)), b.index(extents[0]))
            count = b.known_within(b.sub(stop, start), 0, chunk)
            row_lanes = self.lanes(rows) if across else 1
            with b.for_("r", 0, rows, row_lanes) as r, lowering.scope():
                row = lowering.unravel(r, tuple(space[a] for a in kept))
                places = dict(zip(kept, row, strict=True))

                def index(d: Sequence[Any]) -> Index:
                    first = b.add(start, d[0])
                    inner_index: Index = (first, *d[1:])
                    if merged:
                        inner_index = lowering.unravel(first, tuple(space[a] for a in axes))
                    return self.combine_index(lowering, places, axes, inner_index)

                parts = accumulate(
                    lowering, reductions, [count, *extents[1:]], index, lanes, bound=chunk
                )
                position = b.add(b.mul(c, b.index(rows)), r)
                for values in parts:
                    partials.append(store_parts(lowering, values, position, chunks, rows))
        b.append(For(c, b.grid_begin(), b.grid_end(), tuple(body)))
        flat = [v for per in partials for pair in per for v in pair]
        first = self.nest(lowering, "split", chunks, 1, chunk * inner, outputs=flat)
        return first, lambda: [first, self.join_chunks(reductions, partials, chunks, rows)]

    def join_chunks(
        self, reductions: list[Node], partials: list[list[list[Var]]], chunks: int, rows: int
    ) -> LoopNest:
        b = Builder()
        space = self.group.space
        kept, _ = self.axes()
        made = {v for n in reductions for v in n.outputs}
        after = [n for n in self.nodes if self.depends_on(n, made)]
        lowering = Lowering(b, [*reductions, *after])
        r = b.var("r", "i64", 0, max(0, rows - 1))
        with b.block() as body, lowering.scope():
            row = self.natural(kept, lowering.unravel(r, tuple(space[a] for a in kept)))

            def element(c: Any) -> tuple[Any, ...]:
                position = b.add(b.mul(c, b.index(rows)), r)
                values = []
                for per in partials:
                    for pair in per:
                        loaded = [lowering.load(v, (position,)) for v in pair]
                        values.append(Complex(*loaded) if len(pair) == 2 else loaded[0])
                return tuple(values)

            results = reduce_together(lowering, reductions, [chunks], lambda d: element(d[0]), 1)
            for node, values in zip(reductions, results, strict=True):
                out = node.outputs[0]
                value = node.primitive.finish(b, values, out.aval, **node.params)
                lowering.define(out, with_ones(b, out.aval.shape, row), value)
            self.store_rows(lowering, row)
        b.append(For(r, b.grid_begin(), b.grid_end(), tuple(body)))
        return self.nest(lowering, "join", rows, 1, chunks)

    def depends_on(self, node: Node, made: set[Var]) -> bool:
        if any(type(a) is Var and a in made for a in node.inputs):
            made.update(node.outputs)
            return True
        return bool(cost.is_structural(node) or not cost.is_big_reduction(node))


def chunk_length(extent: int, inner: int, row: int) -> int:
    """How much of an axis of `extent` (`inner` elements for each step along it) one chunk gets.

    At most MOST_CHUNKS, of about LEAST_CHUNK elements or more; where there are several for each thread,
    their number is about a multiple of EVEN_CHUNKS, so that threads get equal shares.  Where a `row` of
    the array is not much longer than a chunk it ends where a row ends, so that it can follow a matrix
    product by rows: then small chunks let the threads of the product end together.

    >>> chunk_length(1000, 200, 1), chunk_length(200_000, 1, 1500)
    (21, 3000)
    """
    chunk = max(ceil(LEAST_CHUNK / inner), ceil(extent / MOST_CHUNKS))
    chunks = ceil(extent / chunk)
    if chunks > EVEN_CHUNKS // 2:
        chunk = ceil(extent / min(MOST_CHUNKS, ceil(chunks / EVEN_CHUNKS) * EVEN_CHUNKS))
    rows = max(round(chunk / row), ceil(extent / (MOST_CHUNKS * row)))
    return rows * row if 2 * chunk >= row else chunk
