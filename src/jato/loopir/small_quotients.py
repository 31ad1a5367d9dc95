"""Division of a byte by a constant, `image.astype(float32) / 255`, without a division.

    x / c   ->   q = x * (1/c);  q + (x - q * c) * (1/c)      the middle part in one rounding (fma)

A division of sixteen floats takes ten cycles, the three others together two.  One step of
correction gives the correctly rounded quotient for nearly every divisor (Markstein, "Computation
of elementary functions on the IBM RISC System/6000 processor", IBM J. Res. Dev. 34, 1990); here
all 256 dividends are tried, and where one would differ in a bit the division stays.  Start at
`divide_byte`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from jato.loopir.grammar import Expr

_RANGES = {"u8": (0, 255), "i8": (-128, 127), "bool": (0, 1)}


def divide_byte(b: Any, x: Expr, y: Expr) -> Expr | None:
    """x / y of f32, if x was converted from a byte and y is a constant; else None.

    b: an ExpressionBuilder."""
    if x.dtype != "f32" or x.op != "convert" or y.op != "const" or x.args[0].dtype not in _RANGES:
        return None
    if not _corrects(float(y.attr), *_RANGES[x.args[0].dtype]):
        return None
    inverse = b.const(float(np.float32(1) / np.float32(y.attr)), "f32")
    with b.exact():
        quotient = b.mul(x, inverse)
        rest = b.fma(b.neg(quotient), y, x)
        return b.fma(rest, inverse, quotient)


@lru_cache(maxsize=256)
def _corrects(divisor: float, low: int, high: int) -> bool:
    """Does the corrected product equal the quotient for all integers of the range?"""
    c = np.float32(divisor)
    if not 2.0**-60 < abs(c) < 2.0**60:
        return False
    x = np.arange(low, high + 1, dtype=np.float32)
    inverse = np.float32(1) / c
    q = x * inverse
    rest = (x.astype(np.float64) - q.astype(np.float64) * np.float64(c)).astype(np.float32)
    # 24 + 24 bits fit into f64; the sum is rounded there, which shows only beside a tie of f32
    total = q.astype(np.float64) + rest.astype(np.float64) * np.float64(inverse)
    beside_tie = (total.view(np.int64) & 0x1FFFFFFF) == 0x10000000
    with np.errstate(all="ignore"):
        same = total.astype(np.float32) == x / c
    zeros = np.signbit(total) == np.signbit(x / c)
    return bool(np.all(same & ~beside_tie & (zeros | (x != 0))))
