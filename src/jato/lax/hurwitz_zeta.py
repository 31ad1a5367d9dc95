"""The Hurwitz zeta function and the polygamma functions.

zeta(x, q) = sum over n >= 0 of (n + q)^-x, by the Euler-Maclaurin formula: the first terms one by
one, the rest as an integral with corrections of Bernoulli numbers (DLMF 25.11.5).
"""

from __future__ import annotations

import math
from typing import Any

from jato.control.custom_jvp import custom_jvp
from jato.jit.eager import public
from jato.lax.operands import float_operands, narrow, wide
from jato.ops import elementwise as ops
from jato.ops.structural import full_like

# B(2k) / (2k)!
_CORRECTIONS = (
    1 / 6 / math.factorial(2), -1 / 30 / math.factorial(4), 1 / 42 / math.factorial(6),
    -1 / 30 / math.factorial(8), 5 / 66 / math.factorial(10), -691 / 2730 / math.factorial(12),
    7 / 6 / math.factorial(14), -3617 / 510 / math.factorial(16),
    43867 / 798 / math.factorial(18), -174611 / 330 / math.factorial(20),
)  # fmt: skip
_DIRECT_TERMS = 10


@custom_jvp
def _zeta(x: Any, q: Any) -> Any:
    power = ops.pow
    total = power(q, -x)
    place = q
    for _ in range(_DIRECT_TERMS - 1):
        place = place + 1.0
        total = total + power(place, -x)
    place = place + 1.0
    last = power(place, -x)
    total = total + place * last / (x - 1.0) + last * 0.5
    # the k-th correction: B(2k)/(2k)! * x (x+1) ... (x+2k-2) * place^(-x-2k+1)
    term = x * (last / place)
    for k, c in enumerate(_CORRECTIONS):
        total = total + c * term
        term = term * ((x + (2 * k + 1.0)) / place) * ((x + (2 * k + 2.0)) / place)
    infinite = full_like(total, math.inf)
    invalid = full_like(total, math.nan)
    total = ops.select(ops.eq(ops.abs(x), infinite), full_like(total, 0.0), total)
    total = ops.select(ops.eq(x, infinite) & (q <= 1.0), ops.select(q < 1.0, infinite, q), total)
    whole = ops.eq(q, ops.floor(q))
    # at the poles of the terms: infinite if every power is positive (x even), else undefined
    even = ops.eq(ops.floor(x * 0.5) * 2.0, x)
    pole = ops.select(even | ops.eq(q, full_like(q, 0.0)), infinite, invalid)
    total = ops.select((q <= 0.0) & whole, pole, total)
    total = ops.select(
        (q <= 0.0) & ops.bitwise_not(whole) & ops.ne(x, ops.floor(x)), invalid, total
    )
    total = ops.select(ops.eq(x, full_like(x, 1.0)), infinite, total)
    return ops.select((x < 1.0) | ops.ne(x, x) | ops.ne(q, q), invalid, total)


@_zeta.defjvp
def _zeta_jvp(primals: Any, tangents: Any) -> Any:
    # d/dq zeta(x, q) = -x zeta(x + 1, q); in x it is no function of ours
    (x, q), (tx, tq) = primals, tangents
    unknown = ops.select(
        ops.eq(tx, full_like(tx, 0.0)), full_like(tx, 0.0), full_like(tx, math.nan)
    )
    return _zeta(x, q), -x * _zeta(x + 1.0, q) * tq + unknown


@public()
def zeta(x: Any, q: Any) -> Any:
    """The Hurwitz zeta function: the sum of (n + q)**-x over n = 0, 1, ... (floats).

    x > 1; NaN below, inf at 1.  Differentiable in q; a derivative in x is NaN.

    >>> round(float(zeta(2.0, 1.0)), 4)
    1.6449
    """
    x, q = float_operands("zeta", x=x, q=q)
    return narrow(_zeta(wide(x), wide(q)), x)


@custom_jvp
def _polygamma(m: Any, x: Any) -> Any:
    order = m + 1.0
    sign = 1.0 - 2.0 * ops.rem(order, full_like(order, 2.0))
    value = sign * ops.exp(ops.lgamma(order)) * _zeta(order, x)
    value = ops.select(ops.eq(m, full_like(m, 0.0)), ops.digamma(x), value)
    invalid = (m < 0.0) | ops.ne(m, ops.floor(m))
    return ops.select(invalid, full_like(value, math.nan), value)


@_polygamma.defjvp
def _polygamma_jvp(primals: Any, tangents: Any) -> Any:
    (m, x), (_, t) = primals, tangents
    return _polygamma(m, x), _polygamma(m + 1.0, x) * t


@public()
def polygamma(m: Any, x: Any) -> Any:
    """The m-th derivative of digamma at x (floats); NaN unless m is 0, 1, 2, ...

    For negative x the reflection is not applied beyond m = 0: scipy's values hold for x > 0.

    >>> round(float(polygamma(1.0, 1.0)), 4)
    1.6449
    """
    m, x = float_operands("polygamma", m=m, x=x)
    return narrow(_polygamma(wide(m), wide(x)), x)
