"""Tile copies: blocks of `lanes` x `lanes` elements, transposed in registers.

A block is read row by row, each row one vector.  Rows are interleaved pair by pair until each
128-bit part holds elements of one column, then the parts are transposed among the vectors: n log n
shuffles for n vectors (64 for 16 x 16), against n^2 elements one by one.  A gather takes some
twenty cycles for each vector.

Fewer rows than `lanes`: rows beyond the last one are read from the last one again, and written over
it from the far end, so that the right one is written last.  Elements beyond the end of a row are
masked in the array; the tile has room for them.

Start reading at `_tile_copy`, then `transposed`.
"""

from __future__ import annotations

from collections.abc import Sequence

from jato.compiler.llvm import instructions as ins
from jato.compiler.llvm.instructions import Code
from jato.compiler.llvm.memory import call_void
from jato.compiler.llvm.reductions import ReduceEmitter
from jato.loopir.grammar import ITEMSIZE, TileCopy

PART_BYTES = 16


class TransposeEmitter(ReduceEmitter):
    """Adds tile copies to ReduceEmitter."""

    def _tile_copy(self, s: TileCopy) -> None:
        start, step, rows, columns = (self.scalar(e) for e in s.numbers)
        if not self.has_masks or ITEMSIZE[s.tile.dtype] not in (4, 8):
            self._element_copy(s, start, step, rows, columns)
            return
        lines = self._lines(start, step, rows, s.lanes)
        loop = self._open("0", columns, s.lanes, False)
        self._block(s, lines, step, loop.counter, columns)
        self._close(loop)

    def _lines(self, start: str, step: str, rows: str, count: int) -> list[str]:
        """Where the rows begin in the array; beyond the last one, the last one again."""
        code = self.code
        lines = [start]
        for k in range(1, count):
            more = code.ins(f"icmp slt i64 {k}, {rows}")
            distance = code.ins(f"select i1 {more}, i64 {step}, i64 0")
            lines.append(code.ins(f"add i64 {lines[-1]}, {distance}"))
        return lines

    def _block(self, s: TileCopy, lines: list[str], step: str, c: str, columns: str) -> None:
        code, lanes = self.code, s.lanes
        itemsize = ITEMSIZE[s.tile.dtype]
        kind = f"<{lanes} x {ins.MEMORY_TYPE[s.tile.dtype]}>"
        present = self._first_lanes(code, c, columns, lanes)
        inside = code.ins(f"mul i64 {c}, {lanes}")
        tile = [
            self._address(code, s.tile, code.ins(f"add i64 {inside}, {k * lanes}"))
            for k in range(lanes)
        ]
        array = [self._address(code, s.array, code.ins(f"add i64 {line}, {c}")) for line in lines]
        if s.out:
            vectors = [
                code.ins(f"load {kind}, ptr {address}, align {itemsize}") for address in tile
            ]
            made = transposed(code, vectors, kind, itemsize)
            for text, address in reversed([*zip(made, array, strict=True)]):
                self._write(code, kind, text, address, itemsize, present, lanes)
            return
        vectors = []
        ahead = code.ins(f"mul i64 {step}, {lanes * itemsize}")
        for address in array:
            types = ["ptr", "i32", f"<{lanes} x i1>", kind]
            name = f"llvm.masked.load.{ins.suffix(kind)}.p0"
            arguments = [address, str(itemsize), present, "zeroinitializer"]
            vectors.append(code.call(name, kind, types, arguments))
            # the same row of the next tile
            later = code.ins(f"getelementptr i8, ptr {address}, i64 {ahead}")
            call_void(
                code, "llvm.prefetch.p0", ["ptr", "i32", "i32", "i32"], [later, "0", "3", "1"]
            )
        for text, address in zip(transposed(code, vectors, kind, itemsize), tile, strict=True):
            self._write(code, kind, text, address, itemsize, None, lanes)

    def _element_copy(self, s: TileCopy, start: str, step: str, rows: str, columns: str) -> None:
        outer = self._open("0", rows, 1, False)
        inner = self._open("0", columns, 1, False)
        code = self.code
        kind, align = ins.MEMORY_TYPE[s.tile.dtype], ITEMSIZE[s.tile.dtype]
        r, c = outer.counter, inner.counter
        line = code.ins(f"add i64 {start}, {code.ins(f'mul i64 {r}, {step}')}")
        place = code.ins(f"add i64 {r}, {code.ins(f'mul i64 {c}, {s.lanes}')}")
        array = self._address(code, s.array, code.ins(f"add i64 {line}, {c}"))
        tile = self._address(code, s.tile, place)
        source, target = (tile, array) if s.out else (array, tile)
        value = code.ins(f"load {kind}, ptr {source}, align {align}")
        code.do(f"store {kind} {value}, ptr {target}, align {align}")
        self._close(inner)
        self._close(outer)


def transposed(code: Code, rows: Sequence[str], kind: str, itemsize: int) -> list[str]:
    """The columns of a square block given as vectors, one for each row."""
    lanes = len(rows)
    part = PART_BYTES // itemsize  # elements of a 128-bit part
    vectors = list(rows)
    # 128-bit parts: interleave single elements of neighbours, then pairs of elements
    size = 1
    while size < part:
        vectors = _interleaved(code, vectors, kind, lanes, part, size)
        size *= 2
    # vectors[q * part + k], part p: rows q * part ... of column p * part + reversed bits of k
    groups = lanes // part
    for _ in range(groups.bit_length() - 1):
        vectors = _parts_exchanged(code, vectors, kind, lanes, part)
    places = [0, 2, 1, 3] if part == 4 else [0, 1]
    return [vectors[c // part * part + places[c % part]] for c in range(lanes)]


def _interleaved(
    code: Code, vectors: list[str], kind: str, lanes: int, part: int, size: int
) -> list[str]:
    """In each group of `part` vectors and each 128-bit part: runs of `size` elements of vectors
    i and i + size side by side, the low half of them and the high half."""
    made = [""] * lanes
    for group in range(0, lanes, part):
        # the vectors' order after the earlier steps: those with equal columns are `size` apart
        for i in range(part):
            if i & size:
                continue
            first, second = vectors[group + i], vectors[group + i + size]
            for high in (0, 1):
                order = []
                for p in range(0, lanes, part):
                    for run in range(part // (2 * size)):
                        at = p + high * (part // 2) + run * size
                        order += [at + e for e in range(size)]
                        order += [lanes + at + e for e in range(size)]
                made[group + i + high * size] = _shuffle(code, first, second, kind, order)
    return made


def _parts_exchanged(code: Code, vectors: list[str], kind: str, lanes: int, part: int) -> list[str]:
    """One step of a transposition whose elements are 128-bit parts: the even parts of neighbours
    one after the other, and the odd ones, which is one instruction each."""
    made = [""] * lanes
    groups = lanes // part
    for k in range(part):
        for q in range(0, groups, 2):
            first, second = vectors[q * part + k], vectors[(q + 1) * part + k]
            for odd in (0, 1):
                order = [
                    side * lanes + p * part + e
                    for side in (0, 1)
                    for p in range(odd, groups, 2)
                    for e in range(part)
                ]
                place = q // 2 + odd * (groups // 2)
                made[place * part + k] = _shuffle(code, first, second, kind, order)
    return made


def _shuffle(code: Code, first: str, second: str, kind: str, order: Sequence[int]) -> str:
    places = ", ".join(f"i32 {i}" for i in order)
    return code.ins(
        f"shufflevector {kind} {first}, {kind} {second}, <{len(order)} x i32> <{places}>"
    )
