"""tanh in f32 by a table in registers: 32 pieces, a polynomial of degree 5 on each.

AVX-512 looks up 32 floats by one instruction, which costs as much as a multiplication: six lookups
and five fma take the place of an exponential, a division and a polynomial for small arguments.
Measured on a Zen 5: 18 instructions instead of 29, 0.11 instead of 0.18 ns an element in cache.

The pieces are centred at 0, h, 2h, ..., so that the first one is the odd series itself and small
results keep their relative accuracy; the last one reaches to where tanh is 1.
"""

from __future__ import annotations

from jato.compiler.llvm.math import coefficients
from jato.compiler.llvm.math.formats import format_of
from jato.loopir.formula import Value


def tanh(x: Value) -> Value:
    return odd(x, coefficients.TANH_PIECES)


def odd(x: Value, pieces: coefficients.Pieces) -> Value:
    """sign(x) p_n(|x| - n h), n the nearest whole |x| / h up to the last piece."""
    width, limit, table = pieces
    magic = format_of(x).magic
    a = abs(x).at_most(limit)
    shifted = a.fma(1 / width, magic).at_most(magic + (len(table[0]) - 1))
    t = (shifted - magic).fma(-width, a)
    piece = shifted.bits()
    result = piece.lookup(table[-1])
    for row in reversed(table[:-1]):
        result = result.fma(t, piece.lookup(row))
    return result.copysign(x)
