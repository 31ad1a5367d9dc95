"""Tables of 32 floats that lie in two registers, of which one instruction takes an element for each lane.

AVX-512 only: math/__init__.py makes lookups for no other machine (Target.has_tables).  Fewer than 16 lanes
use a part of the permutation; a scalar one lane of it, which is still faster than the formula without a
table (tanh in a scalar recurrence: 10 against 17 ns a step).

Start reading at `lookup`.
"""

from __future__ import annotations

import hashlib

from jato.compiler.llvm import instructions as ins
from jato.compiler.llvm.instructions import Code
from jato.loopir.scalar_ops import LOOKUP_ENTRIES

_HALF = LOOKUP_ENTRIES // 2  # a table lies in two registers


def table_halves(code: Code, table: tuple[float, ...]) -> tuple[str, str]:
    """The two registers of a table, loaded from a constant array: six tables as vector constants would
    take LLVM's instruction selection 1 ms."""
    numbers = [ins.constant(value, "f32") for value in table]
    name = "table_" + hashlib.blake2b(" ".join(numbers).encode(), digest_size=8).hexdigest()
    elements = ", ".join(f"float {number}" for number in numbers)
    code.function.declarations[name] = (
        f"@{name} = private unnamed_addr constant [{LOOKUP_ENTRIES} x float] [{elements}], align 64"
    )
    kind = f"<{_HALF} x float>"
    second = code.ins(f"getelementptr float, ptr @{name}, i64 {_HALF}")
    low, high = (
        code.ins(f"load {kind}, ptr {place}, align 64, !invariant.load !0")
        for place in (f"@{name}", second)
    )
    return low, high


def lookup(code: Code, index: str, halves: tuple[str, str], lanes: int) -> str:
    """table[index % 32]: a permutation of two registers by the low 5 bits of the index."""
    if lanes > _HALF:
        pieces = [
            _chosen_lanes(code, index, "i32", lanes, range(i, i + _HALF))
            for i in range(0, lanes, _HALF)
        ]
        parts = [lookup(code, piece, halves, _HALF) for piece in pieces]
        size = _HALF
        while len(parts) > 1:
            kind, size = f"<{size} x float>", 2 * size
            order = ", ".join(f"i32 {i}" for i in range(size))
            parts = [
                code.ins(f"shufflevector {kind} {x}, {kind} {y}, <{size} x i32> <{order}>")
                for x, y in zip(parts[::2], parts[1::2], strict=True)
            ]
        return parts[0]
    if not lanes:
        wide = code.ins(f"insertelement <{_HALF} x i32> poison, i32 {index}, i64 0")
    elif lanes < _HALF:
        wide = _chosen_lanes(code, index, "i32", lanes, range(_HALF))
    else:
        wide = index
    kind = f"<{_HALF} x float>"
    found = code.call(
        "llvm.x86.avx512.vpermi2var.ps.512", kind, [kind, f"<{_HALF} x i32>", kind],
        [halves[0], wide, halves[1]],
    )  # fmt: skip
    if not lanes:
        return code.ins(f"extractelement {kind} {found}, i64 0")
    return found if lanes == _HALF else _chosen_lanes(code, found, "float", _HALF, range(lanes))


def _chosen_lanes(code: Code, vector: str, scalar_type: str, lanes: int, chosen: range) -> str:
    """Some lanes of a vector; beyond its end, poison."""
    order = ", ".join(f"i32 {i}" if i < lanes else "i32 poison" for i in chosen)
    kind = f"<{lanes} x {scalar_type}>"
    return code.ins(
        f"shufflevector {kind} {vector}, {kind} poison, <{len(chosen)} x i32> <{order}>"
    )
