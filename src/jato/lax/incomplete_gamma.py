"""The regularized incomplete gamma functions, and derivatives in their parameter.

    P(a, x) = integral of t^(a-1) exp(-t) over [0, x] / Gamma(a)          Q = 1 - P

With the prefactor D = x^a exp(-x) / Gamma(a),

    x < max(a, 1):  P = D/a * S,   S = sum of x^n / ((a+1) ... (a+n))     (DLMF 8.11.4)
    otherwise:      Q = D * F,     F a continued fraction                 (DLMF 8.9.2)

S and F are recurrences (iterations.py); their derivatives in a are carried along where they are
wanted.  Start at `igamma`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jato.control.custom_jvp import custom_jvp
from jato.control.custom_rules import SymbolicZero
from jato.core.types import type_of
from jato.jit.eager import public
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

_MAX_ITERATIONS = 10_000
# Stirling's series of lgamma(a): B(2k) / (2k (2k - 1) a^(2k-1))
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def log1p_minus(m: Any) -> Any:
    """log(1 + m) - m without cancellation near 0."""
    r = m / (m + 2.0)
    square = r * r
    terms = 17 if type_of(m).dtype == np.float64 else 8
    series = 1 / (2 * terms + 1) + square * 0.0
    for k in range(terms - 1, 0, -1):
        series = series * square + 1 / (2 * k + 1)
    near = 2.0 * r * square * series - 2.0 * square / (1.0 - r)
    inside = ops.abs(m) < 0.5
    safe = ops.select(inside, full_like(m, 0.0), m)
    return ops.select(inside, near, ops.log1p(safe) - safe)


def stirling_tail(a: Any) -> Any:
    """lgamma(a) - ((a - 1/2) log a - a + log(2 pi) / 2), for a >= 10."""
    inverse = 1.0 / a
    series = _STIRLING[-1] + inverse * 0.0
    for c in reversed(_STIRLING[:-1]):
        series = series * (inverse * inverse) + c
    return series * inverse


def _log_prefactor(a: Any, x: Any) -> Any:
    """a log x - x - lgamma(a), for a above 10 through Stirling's series, so that nothing cancels."""
    plain = a * ops.log(x) - x - ops.lgamma(a)
    large = ops.max(a, 10.0)
    relative = (x - large) / large
    half_log = 0.5 * ops.log(large / (2 * math.pi))
    far = large * log1p_minus(relative) + half_log - stirling_tail(large)
    return ops.select((a >= 10.0) & (x > 0.0), far, plain)


def _series(x: Any) -> tuple[Start, Step]:
    """S(a, x)"""

    def start(a: Any) -> State:
        one = full_like(x, 1.0)
        return one, one

    def step(i: Any, a: Any, state: State) -> State:
        term, total = state
        term = term * (x / (a + i))
        return term, total + term

    return start, step


def _fraction(x: Any) -> tuple[Start, Step]:
    """F(a, x) = 1/(x+1-a - 1(1-a)/(x+3-a - 2(2-a)/(x+5-a - ...))), by Lentz's method.

    W. Lentz, Applied Optics 15 (1976); Thompson and Barnett, J. Comput. Phys. 64 (1986).
    """
    huge = 1 / (float(np.finfo(type_of(x).dtype).tiny) * 16)

    def start(a: Any) -> State:
        b = away_from_zero(x + 1.0 - a)
        return b, full_like(x, huge), 1.0 / b, 1.0 / b

    def step(i: Any, a: Any, state: State) -> State:
        b, c, d, value = state
        numerator = i * (a - i)
        b = b + 2.0
        d = 1.0 / away_from_zero(numerator * d + b)
        c = away_from_zero(b + numerator / c)
        return b, c, d, value * (c * d)

    return start, step


def _split(a: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """(regular, by the series?, a, x), with harmless values where not regular."""
    regular = (a > 0.0) & (x > 0.0) & (x < math.inf) & (a < math.inf)
    one = full_like(a, 1.0)
    a = ops.select(regular, a, one)
    x = ops.select(regular, x, one)
    return regular, x < ops.max(a, 1.0), a, x


def _pair(a: Any, x: Any, lower: bool) -> Any:
    """P or Q."""
    regular, by_series, ra, rx = _split(a, x)
    prefactor = ops.exp(_log_prefactor(ra, rx))
    by_fraction = ops.bitwise_not(by_series)
    total = converged_value(*_series(rx), ra, by_series & regular, _MAX_ITERATIONS)
    fraction = converged_value(*_fraction(rx), ra, by_fraction & regular, _MAX_ITERATIONS)
    from_series, from_fraction = prefactor / ra * total, prefactor * fraction
    if lower:
        value = ops.select(by_series, from_series, 1.0 - from_fraction)
        at_zero, at_infinity = 0.0, 1.0
    else:
        value = ops.select(by_series, 1.0 - from_series, from_fraction)
        at_zero, at_infinity = 1.0, 0.0
    # a = 0 is the limit of a point mass at 0; a = inf that of one at inf
    full_at_zero, full_at_infinity = full_like(a, at_zero), full_like(a, at_infinity)
    value = ops.select(
        ops.eq(x, full_like(x, 0.0)) | ops.eq(a, full_like(a, math.inf)), full_at_zero, value
    )
    mass_at_zero = ops.eq(a, full_like(a, 0.0)) & (x > 0.0)
    ends = mass_at_zero | (ops.eq(x, full_like(x, math.inf)) & (a < math.inf))
    value = ops.select(ends, full_at_infinity, value)
    undefined = (a < 0.0) | (x < 0.0) | ops.ne(a, a) | ops.ne(x, x)
    undefined = undefined | (ops.eq(a, full_like(a, 0.0)) & ops.eq(x, full_like(x, 0.0)))
    undefined = undefined | (ops.eq(a, full_like(a, math.inf)) & ops.eq(x, full_like(x, math.inf)))
    return ops.select(undefined, full_like(value, math.nan), value)


def _negative_sample_slope(a: Any, x: Any) -> Any:
    """dP/da / (dP/dx): minus the derivative of a gamma variate x in its parameter a."""
    regular, by_series, a, x = _split(a, x)
    slope = ops.log(x) - ops.digamma(a)  # d log D / da
    by_fraction = ops.bitwise_not(by_series)
    s, ds = converged_slope(*_series(x), a, by_series & regular, _MAX_ITERATIONS)
    f, df = converged_slope(*_fraction(x), a, by_fraction & regular, _MAX_ITERATIONS)
    # P = D S/a or 1 - D F, and dP/dx = D / x
    lower = slope * (s / a) + (ds - s / a) / a
    value = ops.select(by_series, lower, ops.neg(slope * f + df)) * x
    return ops.select(regular, value, full_like(value, math.nan))


def _parameter_slope(a: Any, x: Any) -> Any:
    """dP/da."""
    at_zero = ops.eq(x, full_like(x, 0.0)) & (a > 0.0)
    density = ops.exp(_log_prefactor(a, x)) / x
    value = _negative_sample_slope(a, x) * density
    return ops.select(at_zero | ops.eq(x, full_like(x, math.inf)), full_like(value, 0.0), value)


def _with_derivatives(lower: bool) -> Any:
    @custom_jvp
    def function(a: Any, x: Any) -> Any:
        return _pair(a, x, lower)

    def rule(primals: Any, tangents: Any) -> Any:
        (a, x), (ta, tx) = primals, tangents
        sign = 1.0 if lower else -1.0
        total: Any = None
        if not isinstance(tx, SymbolicZero):
            total = sign * ops.exp(_log_prefactor(a, x) - ops.log(x)) * tx
        if not isinstance(ta, SymbolicZero):
            term = sign * _parameter_slope(a, x) * ta
            total = term if total is None else total + term
        value = function(a, x)
        return value, full_like(value, 0.0) if total is None else total

    function.defjvp(rule, symbolic_zeros=True)
    return function


_igamma = _with_derivatives(True)
_igammac = _with_derivatives(False)


@custom_jvp
def _sample_slope(a: Any, x: Any) -> Any:
    return ops.neg(_negative_sample_slope(a, x))


@_sample_slope.defjvp
def _no_second_derivative(primals: Any, tangents: Any) -> Any:
    raise TypeError(
        "random_gamma_grad: the derivative of a gamma variate in its parameter is not differentiable"
    )


@public()
def igamma(a: Any, x: Any) -> Any:
    """The regularized lower incomplete gamma function P(a, x) (floats).

    Differentiable in both.  NaN for negative arguments.

    >>> round(float(igamma(1.0, 2.0)), 4)
    0.8647
    """
    a, x = float_operands("igamma", a=a, x=x)
    return narrow(_igamma(wide(a), wide(x)), a)


@public()
def igammac(a: Any, x: Any) -> Any:
    """The regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x) (floats).

    >>> round(float(igammac(1.0, 2.0)), 4)
    0.1353
    """
    a, x = float_operands("igammac", a=a, x=x)
    return narrow(_igammac(wide(a), wide(x)), a)


@public()
def igamma_grad_a(a: Any, x: Any) -> Any:
    """The derivative of igamma in `a` (floats).

    >>> round(float(igamma_grad_a(1.0, 1.0)), 4)
    -0.4317
    """
    a, x = float_operands("igamma_grad_a", a=a, x=x)
    return narrow(_parameter_slope(wide(a), wide(x)), a)


@public()
def random_gamma_grad(a: Any, x: Any) -> Any:
    """The derivative of a sample x of the gamma distribution in its parameter a (floats).

    Implicit reparameterization: Figurnov, Mohamed and Mnih, NeurIPS 2018.

    >>> round(float(random_gamma_grad(1.0, 1.0)), 4)
    1.1736
    """
    a, x = float_operands("random_gamma_grad", a=a, sample=x)
    return narrow(_sample_slope(wide(a), wide(x)), a)
