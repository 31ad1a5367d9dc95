"""Comparisons of a root with a constant, made as comparisons of what is under the root.

    sqrt(x) < c   ->   0 <= x and x <= t     t: the largest float whose rounded root is below c
    c < sqrt(x)   ->   t < x                 t: the largest float whose rounded root is at most c

A correctly rounded root never decreases, so the two sides agree for every x, bit by bit; what has
no root (a negative x, NaN) is on the false side of both.  `abs(z) < 2` of a complex z, or a cutoff
`sqrt(d2) < r`, loses a root of some twenty cycles: Mandelbrot 1.8 -> 1.1 ms.
hypot(x, y) is sqrt(x^2 + y^2) for all squares in the middle of the range; outside, where it
scales, it lies far to one side of a bound from the middle.  Start at `compare_root`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jato.loopir.grammar import Expr

# Bounds for which squares that overflow or underflow decide the comparison rightly.
_BOUNDS = {"f32": (2.0**-40, 2.0**55), "f64": (2.0**-440, 2.0**490)}
_TYPES: dict[str, Any] = {"f32": np.float32, "f64": np.float64}


def compare_root(b: Any, op: str, x: Expr, y: Expr) -> Expr | None:
    """x < y (op "lt") or x <= y ("le") without the root, if one is a root and the other a
    constant; else None.  b: an ExpressionBuilder."""
    root, bound = (y, x) if x.op == "const" else (x, y)
    if bound.op != "const" or root.op not in ("sqrt", "hypot") or root.dtype not in _TYPES:
        return None
    least, most = _BOUNDS[root.dtype]
    if not least <= bound.attr <= most:
        return None
    below = root is x
    # Where the bound itself is on the true side, the largest square with a root up to it.
    closed = (op == "le") == below
    limit = b.const(_last_square(bound.attr, root.dtype, closed), root.dtype)
    if root.op == "sqrt":
        (square,) = root.args
        if below:
            return b.and_(b.le(square, limit), b.le(b.const(0.0, root.dtype), square))
        return b.lt(limit, square)
    u, v = root.args
    with b.exact():
        square = b.fma(u, u, b.mul(v, v))
    if below:
        return b.le(square, limit)
    # An infinite part beside NaN: hypot is infinite, the sum of squares is not.
    infinity = b.const(math.inf, root.dtype)
    return b.or_(
        b.lt(limit, square), b.or_(b.eq(b.abs(u), infinity), b.eq(b.abs(v), infinity))
    )


def _last_square(bound: float, dtype: str, closed: bool) -> float:
    """The largest float with a rounded root <= bound (closed), or < bound."""
    kind = _TYPES[dtype]
    c = kind(bound)
    inside: Callable[[Any], bool] = (
        (lambda s: np.sqrt(s) <= c) if closed else (lambda s: np.sqrt(s) < c)
    )
    square = c * c
    while inside(square):
        square = np.nextafter(square, kind(np.inf))
    while not inside(square):
        square = np.nextafter(square, kind(0))
    return float(square)
