"""The regularized incomplete beta function I_x(a, b).

    I_x(a, b) = x^a (1-x)^b / (a B(a, b)) * F(a, b, x),   F a continued fraction  (DLMF 8.17.22)

which converges fast for x < (a + 1) / (a + b + 2); elsewhere I_x(a, b) = 1 - I_(1-x)(b, a).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jato.control.custom_jvp import SymbolicZero, custom_jvp
from jato.control.while_loop import while_loop
from jato.core.types import type_of
from jato.jit.eager import public
from jato.lax.incomplete_gamma import any_true, stirling_tail
from jato.lax.operands import float_operands, narrow, wide
from jato.ops import elementwise as ops
from jato.ops.structural import full_like
from jato.transforms.jvp import jvp

_MAX_ITERATIONS = 2_000


def _fraction(a: Any, b: Any, x: Any) -> Any:
    """F = 1/(1 + d1/(1 + d2/(1 + ...))), by Lentz's method, two terms a round."""
    dtype = type_of(x).dtype
    epsilon, tiny = float(np.finfo(dtype).eps), float(np.finfo(dtype).tiny) * 16

    def away_from_zero(y: Any) -> Any:
        return ops.select(ops.abs(y) < tiny, full_like(y, tiny), y)

    def step(numerator: Any, c: Any, d: Any) -> Any:
        d = 1.0 / away_from_zero(1.0 + numerator * d)
        c = away_from_zero(1.0 + numerator / c)
        return c, d, c * d

    def body(state: Any) -> Any:
        m, c, d, value, running = state
        even = m * (b - m) * x / ((a + (2.0 * m - 1.0)) * (a + 2.0 * m))
        c, d, first = step(even, c, d)
        odd = ops.neg((a + m) * (a + b + m) * x) / ((a + 2.0 * m) * (a + (2.0 * m + 1.0)))
        c, d, second = step(odd, c, d)
        value = ops.select(running, value * (first * second), value)
        return m + 1.0, c, d, value, running & (ops.abs(first * second - 1.0) > 2 * epsilon)

    def running(state: Any) -> Any:
        return any_true(state[4]) & (state[0] < float(_MAX_ITERATIONS))

    one = full_like(x, 1.0)
    d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    start = (np.ones((), dtype)[()], one, d, d, ops.eq(one, one))
    return while_loop(running, body, start)[3]


def log_beta(a: Any, b: Any) -> Any:
    """log |B(a, b)|, by Stirling's series where the larger one is large and the sum would cancel."""
    low, high = ops.min(a, b), ops.max(a, b)
    plain = ops.lgamma(low) + ops.lgamma(high) - ops.lgamma(a + b)
    stirling = (low > 0.0) & (high >= 10.0)
    p = ops.select(stirling, low, full_like(low, 1.0))
    q = ops.select(stirling, high, full_like(high, 10.0))
    # lgamma(z) = (z - 1/2) log z - z + log(2 pi) / 2 + tail(z)
    tails = stirling_tail(q) - stirling_tail(p + q)
    by_parts = ops.lgamma(p) - (q - 0.5) * ops.log1p(p / q) - p * (ops.log(p + q) - 1.0) + tails
    large = ops.max(p, 10.0)
    ratio = large / q
    both = (
        0.5 * math.log(2 * math.pi) - 0.5 * ops.log(q) - (q * ops.log1p(ratio))
        + (large - 0.5) * (ops.log(ratio) - ops.log1p(ratio)) + tails + stirling_tail(large)
    )
    return ops.select(stirling, ops.select(p >= 10.0, both, by_parts), plain)


def _log_density(a: Any, b: Any, x: Any) -> Any:
    """a log x + b log(1 - x) - log B(a, b)."""
    return a * ops.log(x) + b * ops.log1p(ops.neg(x)) - log_beta(a, b)


def _value(a: Any, b: Any, x: Any) -> Any:
    regular = (a > 0.0) & (b > 0.0) & (x > 0.0) & (x < 1.0) & (a + b < math.inf)
    half = full_like(x, 0.5)
    x0 = ops.select(regular, x, half)
    a0, b0 = (ops.select(regular, y, full_like(y, 1.0)) for y in (a, b))
    swapped = x0 > (a0 + 1.0) / (a0 + b0 + 2.0)
    p, q = ops.select(swapped, b0, a0), ops.select(swapped, a0, b0)
    y = ops.select(swapped, 1.0 - x0, x0)
    log_density = _log_density(a0, b0, x0)
    part = ops.exp(log_density) / p * _fraction(p, q, y)
    result = ops.select(swapped, 1.0 - part, part)
    inside = (a >= 0.0) & (b >= 0.0) & (a + b > 0.0)
    result = ops.select(inside & ops.eq(x, full_like(x, 0.0)), full_like(x, 0.0), result)
    result = ops.select(inside & ops.eq(x, full_like(x, 1.0)), full_like(x, 1.0), result)
    edge = ops.eq(x, full_like(x, 0.0)) | ops.eq(x, full_like(x, 1.0))
    defined = regular | ((a > 0.0) & (b > 0.0) & edge)
    return ops.select(defined, result, full_like(result, math.nan))


@custom_jvp
def _betainc(a: Any, b: Any, x: Any) -> Any:
    return _value(a, b, x)


def _betainc_jvp(primals: Any, tangents: Any) -> Any:
    (a, b, x), (ta, tb, tx) = primals, tangents
    value = _betainc(a, b, x)
    total = full_like(value, 0.0)
    if not isinstance(tx, SymbolicZero):
        total = total + ops.exp(_log_density(a, b, x) - ops.log(x) - ops.log1p(ops.neg(x))) * tx
    one = full_like(a, 1.0)
    if not isinstance(ta, SymbolicZero):
        total = total + jvp(lambda y: _value(y, b, x), (a,), (one,))[1] * ta
    if not isinstance(tb, SymbolicZero):
        total = total + jvp(lambda y: _value(a, y, x), (b,), (one,))[1] * tb
    return value, total


_betainc.defjvp(_betainc_jvp, symbolic_zeros=True)


@public()
def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function I_x(a, b) (floats), differentiable in all three.

    a, b > 0, 0 <= x <= 1; NaN elsewhere.

    >>> round(float(betainc(1.0, 1.0, 0.25)), 4)
    0.25
    """
    a, b, x = float_operands("betainc", a=a, b=b, x=x)
    return narrow(_betainc(wide(a), wide(b), wide(x)), x)
