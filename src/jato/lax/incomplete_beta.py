"""The regularized incomplete beta function I_x(a, b).

    I_x(a, b) = x^a (1-x)^b / (a B(a, b)) * F(a, b, x),   F a continued fraction  (DLMF 8.17.22)

which converges fast for x < (a + 1) / (a + b + 2); elsewhere I_x(a, b) = 1 - I_(1-x)(b, a).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from jato.control.custom_jvp import custom_jvp
from jato.control.custom_rules import SymbolicZero
from jato.jit.eager import public
from jato.lax.incomplete_gamma import stirling_tail
from jato.lax.iterations import (
    Start,
    State,
    Step,
    away_from_zero,
    converged_slope,
    converged_value,
)
from jato.lax.operands import float_operands, narrow, wide
from jato.ops import elementwise as ops
from jato.ops.structural import full_like

_MAX_ITERATIONS = 2_000


def _fraction(x: Any, parameters: Callable[[Any], tuple[Any, Any]]) -> tuple[Start, Step]:
    """F = 1/(1 + d1/(1 + d2/(1 + ...))), by Lentz's method, two terms a step.

    parameters: (a, b) as a function of the recurrence's parameter."""

    def advance(numerator: Any, c: Any, d: Any) -> tuple[Any, Any]:
        d = 1.0 / away_from_zero(1.0 + numerator * d)
        return away_from_zero(1.0 + numerator / c), d

    def start(p: Any) -> State:
        a, b = parameters(p)
        d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0))
        return full_like(x, 1.0), d, d

    def step(m: Any, p: Any, state: State) -> State:
        a, b = parameters(p)
        c, d, value = state
        even = m * (b - m) * x / ((a + (2.0 * m - 1.0)) * (a + 2.0 * m))
        c, d = advance(even, c, d)
        value = value * (c * d)
        odd = ops.neg((a + m) * (a + b + m) * x) / ((a + 2.0 * m) * (a + (2.0 * m + 1.0)))
        c, d = advance(odd, c, d)
        return c, d, value * (c * d)

    return start, step


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
        0.5 * math.log(2 * math.pi)
        - 0.5 * ops.log(q)
        - (q * ops.log1p(ratio))
        + (large - 0.5) * (ops.log(ratio) - ops.log1p(ratio))
        + tails
        + stirling_tail(large)
    )
    return ops.select(stirling, ops.select(p >= 10.0, both, by_parts), plain)


def _log_density(a: Any, b: Any, x: Any) -> Any:
    """a log x + b log(1 - x) - log B(a, b)."""
    return a * ops.log(x) + b * ops.log1p(ops.neg(x)) - log_beta(a, b)


class _Region(NamedTuple):
    """Arguments made harmless where the function is not regular, and swapped where F is slow."""

    regular: Any
    swapped: Any
    a: Any
    b: Any
    x: Any

    def ordered(self, a: Any, b: Any) -> tuple[Any, Any]:
        return ops.select(self.swapped, b, a), ops.select(self.swapped, a, b)

    def place(self) -> Any:
        return ops.select(self.swapped, 1.0 - self.x, self.x)


def _region(a: Any, b: Any, x: Any) -> _Region:
    regular = (a > 0.0) & (b > 0.0) & (x > 0.0) & (x < 1.0) & (a + b < math.inf)
    x = ops.select(regular, x, full_like(x, 0.5))
    a, b = (ops.select(regular, y, full_like(y, 1.0)) for y in (a, b))
    return _Region(regular, x > (a + 1.0) / (a + b + 2.0), a, b, x)


@custom_jvp
def _betainc(a: Any, b: Any, x: Any) -> Any:
    r = _region(a, b, x)
    p, q = r.ordered(r.a, r.b)
    recurrence = _fraction(r.place(), lambda p: (p, q))
    fraction = converged_value(*recurrence, p, r.regular, _MAX_ITERATIONS)
    part = ops.exp(_log_density(r.a, r.b, r.x)) / p * fraction
    result = ops.select(r.swapped, 1.0 - part, part)
    at_zero, at_one = ops.eq(x, full_like(x, 0.0)), ops.eq(x, full_like(x, 1.0))
    result = ops.select(at_zero, full_like(x, 0.0), result)
    result = ops.select(at_one, full_like(x, 1.0), result)
    defined = r.regular | ((a > 0.0) & (b > 0.0) & (at_zero | at_one))
    return ops.select(defined, result, full_like(result, math.nan))


def _slope(a: Any, b: Any, x: Any, in_a: bool) -> Any:
    """dI/da, or dI/db: that of the density's part (digamma) and that of the fraction."""
    r = _region(a, b, x)
    p, q = r.ordered(r.a, r.b)
    y = r.place()
    # part = density / p * F(p, q, y); which of p and q is the parameter depends on the swap
    own = r.swapped if not in_a else ops.bitwise_not(r.swapped)
    in_p = converged_slope(*_fraction(y, lambda v: (v, q)), p, r.regular & own, _MAX_ITERATIONS)
    in_q = converged_slope(
        *_fraction(y, lambda v: (p, v)), q, r.regular & ops.bitwise_not(own), _MAX_ITERATIONS
    )
    fraction = ops.select(own, in_p[0], in_q[0])
    slope = ops.select(own, in_p[1] - in_p[0] / p, in_q[1])
    parameter = r.a if in_a else r.b
    logarithm = ops.log(r.x) if in_a else ops.log1p(ops.neg(r.x))
    growth = logarithm - ops.digamma(parameter) + ops.digamma(r.a + r.b)
    density = ops.exp(_log_density(r.a, r.b, r.x))
    value = density / p * (growth * fraction + slope)
    value = ops.select(r.swapped, ops.neg(value), value)
    return ops.select(r.regular, value, full_like(value, 0.0))


def _betainc_jvp(primals: Any, tangents: Any) -> Any:
    (a, b, x), (ta, tb, tx) = primals, tangents
    value = _betainc(a, b, x)
    total = full_like(value, 0.0)
    if not isinstance(tx, SymbolicZero):
        total = total + ops.exp(_log_density(a, b, x) - ops.log(x) - ops.log1p(ops.neg(x))) * tx
    if not isinstance(ta, SymbolicZero):
        total = total + _slope(a, b, x, True) * ta
    if not isinstance(tb, SymbolicZero):
        total = total + _slope(a, b, x, False) * tb
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
