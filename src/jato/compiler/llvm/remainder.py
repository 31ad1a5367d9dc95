"""The floating-point remainder (C's fmod) in vector instructions.

    q = trunc(x / y),  r = x - q * y  in one fma

While |q| < 2^51 (f32: 2^22) q is off by at most one, so r is exact, and one correction by |y|
makes it the remainder.  Larger quotients, division by zero and infinities take the library's
function, in a branch that is entered only when a lane needs it.
"""

from __future__ import annotations

from jato.loopir.builder import Builder
from jato.loopir.grammar import Expr

LIBRARY = "library"  # attr of the "rem" that becomes a call


def expand_remainder(b: Builder, node: Expr) -> Expr:
    """x rem y of f32 or f64, sign of x."""
    x, y = node.args
    quotient = b.trunc(b.div(x, y))
    limit = 2.0**22 if node.dtype == "f32" else 2.0**51
    size = b.abs(y)
    rest = b.fma(b.neg(quotient), y, x)
    # as if x were positive: rest is then in (-|y|, 2|y|)
    rest = b.select(b.lt(x, 0.0), b.neg(rest), rest)
    rest = b.select(b.lt(rest, 0.0), b.add(rest, size), rest)
    rest = b.select(b.ge(rest, size), b.sub(rest, size), rest)
    rest = b.copysign(rest, x)
    rare = b.not_(b.lt(b.abs(quotient), limit))  # true for NaN, too
    rare = b.or_(rare, b.eq(size, float("inf")))
    return b.if_any(rare, lambda: b.library_remainder(x, y), rest)
