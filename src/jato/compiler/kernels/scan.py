"""Cumulative operations (cumsum, cummax, ...) as loops that carry their accumulators.

Takes   a node of the family ops.cumulative.Cumulative, its operand in memory.
Gives   one kernel, or three when there are few rows and the axis is long:
            totals of chunks; running combination of the totals; each chunk from its start value

Along the last axis a row is walked element by element; along another axis the vector loop runs
over the last one and each lane carries its own accumulators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, prod
from typing import Any

from jato.base import dtypes
from jato.compiler.loops.lower import Index, Lowering
from jato.compiler.loops.nest import LoopNest
from jato.core.graph import Node, Var
from jato.core.types import array_type
from jato.loopir.builder import Builder
from jato.loopir.grammar import For

CHUNK = 1 << 14
FEW_ROWS = 8


def plan_scan(node: Node, vector_bytes: int) -> list[LoopNest]:
    shape = node.outputs[0].aval.shape
    length = shape[node.params["axis"]]
    rows = node.outputs[0].aval.size // max(1, length)
    scan = _Scan(node, vector_bytes)
    if node.params["axis"] == len(shape) - 1 and rows < FEW_ROWS and length > 2 * CHUNK:
        return scan.in_chunks(rows, length)
    return [scan.by_rows()]


class _Scan:
    def __init__(self, node: Node, vector_bytes: int):
        self.node = node
        self.primitive = node.primitive
        self.params = node.params
        self.aval = node.outputs[0].aval
        self.axis: int = node.params["axis"]
        self.reverse: bool = node.params["reverse"]
        self.vector_bytes = vector_bytes

    def identity(self, b: Builder) -> tuple[Any, ...]:
        return tuple(self.primitive.identity(b, self.node.inputs[0].aval, **self.params))

    def place(self, b: Builder, position: Any) -> Any:
        """The position along the axis of the scan's element number `position`."""
        if not self.reverse:
            return position
        return b.sub(b.index(self.aval.shape[self.axis] - 1), position)

    def element(self, lowering: Lowering, index: Index) -> tuple[Any, ...]:
        value = lowering.value(self.node.inputs[0], index)
        return tuple(self.primitive.element(lowering.b, value, index, **self.params))

    def run(
        self,
        lowering: Lowering,
        start: Any,
        stop: Any,
        inits: Sequence[Any],
        index: Callable[[Any], Index],
    ) -> None:
        """The ordered loop over scan elements [start, stop), storing each result."""
        b = lowering.b
        out = self.node.outputs[0]

        def body(i: Any, carries: tuple[Any, ...]) -> tuple[Any, ...]:
            with lowering.scope():
                place = index(self.place(b, i))
                total = self.primitive.combine(b, carries, self.element(lowering, place))
                value = self.primitive.finish(b, total, out.aval, **self.params)
                b.store(lowering.output(out), lowering.offset(out.aval.shape, place), value)
            return tuple(total)

        b.loop("s", start, stop, tuple(inits), body)

    def by_rows(self) -> LoopNest:
        shape, axis = self.aval.shape, self.axis
        b = Builder()
        lowering = Lowering(b, [])
        others = [a for a in range(len(shape)) if a != axis]
        last = axis == len(shape) - 1
        outer = others if last else others[:-1]
        width = 1 if last else max(1, self.vector_bytes // min(8, self.aval.itemsize))
        length = 1 if last else shape[-1]
        rows = prod(shape[a] for a in outer)
        blocks = ceil(length / width)
        g = b.var("g", "i64", 0, max(0, rows * blocks - 1))
        with b.block() as body:
            row = lowering.unravel(b.div(g, b.index(blocks)), tuple(shape[a] for a in outer))
            first = b.mul(b.rem(g, b.index(blocks)), b.index(width))
            limit = b.limited(b.add(first, b.index(width)), b.index(length))
            with b.for_("i", first, limit, width) as v, lowering.scope():
                places = dict(zip(outer, row, strict=True))
                if not last:
                    places[others[-1]] = v

                def index(p: Any) -> Index:
                    at = {**places, axis: p}
                    return tuple(at[a] for a in range(len(shape)))

                self.run(lowering, 0, shape[axis], self.identity(b), index)
        b.append(For(g, b.grid_begin(), b.grid_end(), tuple(body)))
        return self.nest(lowering, [self.node.outputs[0]], rows * blocks, shape[axis])

    def in_chunks(self, rows: int, length: int) -> list[LoopNest]:
        chunk = max(CHUNK, ceil(length / 256))
        chunks = ceil(length / chunk)
        probe = Builder()
        totals = [
            Var(array_type((rows * chunks,), dtypes.DTYPES[dtypes.SCALAR_NAMES.index(x.dtype)]))
            for x in self.identity(probe)
        ]
        starts = [Var(v.aval) for v in totals]
        return [
            self.chunk_totals(rows, length, chunk, chunks, totals),
            self.chunk_starts(rows, chunks, totals, starts),
            self.chunk_scans(rows, length, chunk, chunks, starts),
        ]

    def chunk_totals(
        self, rows: int, length: int, chunk: int, chunks: int, totals: list[Var]
    ) -> LoopNest:
        b = Builder()
        lowering = Lowering(b, [])
        g = b.var("g", "i64", 0, rows * chunks - 1)
        lanes = 4 * max(1, self.vector_bytes // 4)
        with b.block() as body:
            r, start, stop = self.chunk_bounds(b, g, length, chunk, chunks)
            row = lowering.unravel(r, self.aval.shape[:-1])

            def element(i: Any) -> tuple[Any, ...]:
                with lowering.scope():
                    return self.element(lowering, (*row, self.place(b, b.add(start, i))))

            sums = b.reduce(
                [b.sub(stop, start)], element,
                lambda p, q: tuple(self.primitive.combine(b, p, q)), self.identity(b), lanes=lanes,
            )  # fmt: skip
            for var, value in zip(totals, sums, strict=True):
                b.store(lowering.output(var), g, value)
        b.append(For(g, b.grid_begin(), b.grid_end(), tuple(body)))
        return self.nest(lowering, totals, rows * chunks, chunk)

    def chunk_starts(
        self, rows: int, chunks: int, totals: list[Var], starts: list[Var]
    ) -> LoopNest:
        """starts[c] = combination of totals[0 .. c)."""
        b = Builder()
        lowering = Lowering(b, [])
        r = b.var("r", "i64", 0, rows - 1)
        with b.block() as body:

            def step(c: Any, carries: tuple[Any, ...]) -> tuple[Any, ...]:
                at = b.add(b.mul(r, b.index(chunks)), c)
                for var, value in zip(starts, carries, strict=True):
                    b.store(lowering.output(var), at, value)
                loaded = tuple(lowering.load(var, (at,)) for var in totals)
                return tuple(self.primitive.combine(b, carries, loaded))

            b.loop("c", 0, chunks, self.identity(b), step)
        b.append(For(r, b.grid_begin(), b.grid_end(), tuple(body)))
        return self.nest(lowering, starts, rows, chunks)

    def chunk_scans(
        self, rows: int, length: int, chunk: int, chunks: int, starts: list[Var]
    ) -> LoopNest:
        b = Builder()
        lowering = Lowering(b, [])
        g = b.var("g", "i64", 0, rows * chunks - 1)
        with b.block() as body, lowering.scope():
            r, start, stop = self.chunk_bounds(b, g, length, chunk, chunks)
            row = lowering.unravel(r, self.aval.shape[:-1])
            inits = tuple(lowering.load(var, (g,)) for var in starts)
            self.run(lowering, start, stop, inits, lambda p: (*row, p))
        b.append(For(g, b.grid_begin(), b.grid_end(), tuple(body)))
        return self.nest(lowering, [self.node.outputs[0]], rows * chunks, chunk)

    def chunk_bounds(
        self, b: Builder, g: Any, length: int, chunk: int, chunks: int
    ) -> tuple[Any, Any, Any]:
        start = b.mul(b.rem(g, b.index(chunks)), b.index(chunk))
        stop = b.limited(b.add(start, b.index(chunk)), b.index(length))
        return b.div(g, b.index(chunks)), start, stop

    def nest(self, lowering: Lowering, outputs: list[Var], grid: int, elements: int) -> LoopNest:
        names = {buffer: var for var, buffer in lowering.buffers.items()}
        names.update({buffer: var for var, buffer in lowering.outputs.items()})
        kernel = lowering.b.kernel(self.primitive.name)
        arguments = [names[x] for x in kernel.buffers if x.space != "local"]
        traffic = sum(v.aval.nbytes for v in arguments)
        return LoopNest(kernel, arguments, outputs, grid, 1, elements * 1.2, traffic)
