"""Hypergeometric functions 1F1 and 2F1 of real arguments.

Power series, led to where they converge fast and keep their digits: for 1F1 by Kummer's transformation
(DLMF 13.2.39) and the expansion at infinity (13.7.1, 13.7.2), for 2F1 by Pfaff's (15.8.1) and that to
1 - x (15.8.4).  The latter has a removable pole where c - a - b is an integer; there the value is
interpolated between neighbours (J. Pearson, S. Olver and M. Porter, "Numerical methods for the
computation of the confluent and Gauss hypergeometric functions", Numer. Algorithms 74 (2017), survey
these choices).  Derivatives in the parameters are differences of fourth order.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jato.numpy as jnp
import numpy as np
from jato.control.custom_jvp import custom_jvp
from jato.control.custom_rules import SymbolicZero
from jato.jit.eager import public
from jato.lax.iterations import Start, State, Step, converged_value
from jato.lax.operands import narrow, wide
from jato.scipy.special.arguments import real_operands
from jato.scipy.special.gamma_functions import gammaln, gammasgn
from jato.scipy.special.series import is_wide

_MAX_ITERATIONS = 10_000
_NEAR_ONE = 0.9  # up to there the series of 2F1 itself needs some hundred terms
_NODES = (-2.0, -1.0, 1.0, 2.0)


def _step_size(x: Any) -> float:
    """Where the errors of a difference of fourth order and of rounding meet."""
    return float(jnp.finfo(x.dtype).eps) ** 0.2


def _is_pole(x: Any) -> Any:
    """Is x 0, -1, -2, ...?"""
    return (x <= 0) & (jnp.floor(x) == x)


def _gamma_quotient(above: Sequence[Any], below: Sequence[Any], log_factor: Any = 0) -> Any:
    """The product of Gamma(above) / Gamma(below) times exp(log_factor); 0 at poles of those below."""
    logarithm, sign = log_factor, 1
    for x in above:
        logarithm, sign = logarithm + gammaln(x), sign * gammasgn(x)
    zero = functools.reduce(lambda p, q: p | q, [_is_pole(x) for x in below])
    for x in below:
        x = jnp.where(_is_pole(x), 1, x)
        logarithm, sign = logarithm - gammaln(x), sign * gammasgn(x)
    return jnp.where(zero, 0, sign * jnp.exp(logarithm))


def _recurrence(
    above: Sequence[Any], below: Sequence[Any], x: Any, first: Any
) -> tuple[Start, Step]:
    """first * sum of x**n prod (above)_n / (prod (below)_n n!)"""

    def start(_: Any) -> State:
        return first, first

    def step(i: Any, _: Any, state: State) -> State:
        term, total = state
        top, bottom = term * x, i
        for p in above:
            top = top * (p + (i - 1))
        for p in below:
            bottom = bottom * (p + (i - 1))
        term = jnp.where(top == 0, 0, top / bottom)
        return term, total + term

    return start, step


def _series(above: Sequence[Any], below: Sequence[Any], x: Any, active: Any, scale: Any = 1) -> Any:
    """scale * pFq(above; below; x) where `active`.

    Summed from the second term on, so that small parameters do not end it too soon.
    """
    shape = jnp.broadcast_shapes(*(jnp.shape(p) for p in (*above, *below, x, active)))
    x, active, scale = (jnp.broadcast_to(v, shape) for v in (x, active, scale))
    factor = scale * x / functools.reduce(lambda p, q: p * q, below, 1)
    for p in above:
        factor = jnp.where(p == 0, 0, factor * p)
    first = jnp.where(active, factor, 0)
    shifted = [[p + 1 for p in side] for side in (above, below)]
    # (p + 1)_n / (n + 1)!: 2 is one more parameter below, 1 one above
    start, step = _recurrence([*shifted[0], 1.0], [*shifted[1], 2.0], x, first)
    return scale + converged_value(start, step, x, active & (first != 0), _MAX_ITERATIONS)


def _parameter_slope(function: Callable[[Any], Any], p: Any) -> Any:
    h = _step_size(p) * jnp.maximum(1, jnp.abs(p))
    nodes = np.array(_NODES).reshape(-1, *[1] * p.ndim).astype(p.dtype)
    f = function(p + h * nodes)
    return (8 * (f[2] - f[1]) - (f[3] - f[0])) / (12 * h)


def _differentiable(value: Callable[..., Any], in_x: Callable[..., Any]) -> Any:
    """The function of parameters and x, with its derivatives."""
    known: Any = custom_jvp(value)

    def rule(primals: Any, tangents: Any) -> Any:
        found = known(*primals)
        total = 0 * found
        for i, (p, t) in enumerate(zip(primals, tangents, strict=True)):
            if isinstance(t, SymbolicZero):
                continue
            if i == len(primals) - 1:
                total = total + in_x(*primals) * t
            else:
                varied = lambda p: known(
                    *jnp.broadcast_arrays(*(p if j == i else q for j, q in enumerate(primals)))
                )
                total = total + _parameter_slope(varied, p) * t
        return found, total

    known.defjvp(rule, symbolic_zeros=True)
    return known


# ---- 1F1


def _kummer_value(a: Any, b: Any, x: Any) -> Any:
    finite = jnp.abs(x) < math.inf
    ends = _is_pole(a)  # a polynomial
    mirrored = (x < 0) & ~ends
    p = jnp.where(mirrored, b - a, a)
    y = jnp.where(finite, jnp.where(mirrored, -x, x), 0)
    size = jnp.abs(y)
    # the expansion where its least term is small, and where the series overflows
    least, most = (120, 1400) if is_wide(x) else (40, 160)
    decays = 2 * (jnp.abs(b - p) + 1) * (jnp.abs(1 - p) + 1) < size
    far = (((size > least) & decays) | (size > most)) & ~ends & ~_is_pole(p)
    # the series with half of the exponential taken out, on either side
    half = jnp.exp(-0.5 * jnp.where(far, 0, size))
    near = _series([p], [b], jnp.where(far, 0, y), finite & ~far, half)
    near = jnp.where(mirrored, near * half, near / half)
    place = jnp.where(far, size, 1e3)
    start, step = _recurrence([b - p, 1 - p], [], 1 / place, 1 + 0 * p)
    expansion = converged_value(start, step, place, far, 100)
    growth = jnp.where(mirrored, 0, place) + (p - b) * jnp.log(place)
    value = jnp.where(far, _gamma_quotient([b], [p], growth) * expansion, near)
    value = jnp.where(finite | (x != x), value, jnp.where(x > 0, math.inf, 0))
    singular = _is_pole(b) & ~(ends & (a >= b))
    value = jnp.where(singular, math.inf, value)
    return jnp.where((a == 0) | (x == 0), 1 + 0 * (a + b + x), value)


_kummer = _differentiable(
    _kummer_value, lambda a, b, x: jnp.where(a == 0, 0, a / b * _kummer(a + 1, b + 1, x))
)


@public()
def hyp1f1(a: Any, b: Any, x: Any) -> Any:
    """The confluent hypergeometric function 1F1(a; b; x).  Floats, differentiable in all three.

    Infinite where b is 0, -1, ... unless the series ends before (a = 0 gives 1).  Digits are lost
    where the terms of the series cancel: for large parameters of different signs.

    >>> round(float(hyp1f1(1.0, 1.0, 2.0)), 4)
    7.3891
    """
    a, b, x = jnp.broadcast_arrays(*real_operands("hyp1f1", a, b, x))
    return narrow(_kummer(wide(a), wide(b), wide(x)), x)


# ---- 2F1


def _lagrange(u: Any) -> list[Any]:
    """The weights of values at _NODES for the value at u."""
    weights = []
    for own in _NODES:
        others = [n for n in _NODES if n != own]
        weights.append(functools.reduce(lambda w, n: w * (u - n) / (own - n), others, 1 + 0 * u))
    return weights


def _near_one(a: Any, b: Any, c: Any, x: Any, active: Any) -> Any:
    """2F1 for x < 1 near 1, from two series in 1 - x.

    Their coefficients have poles, which cancel, where c - a - b is an integer: then at four
    neighbouring c, and interpolated.  The neighbours are the closer, the faster (1-x)**c varies.
    """
    excess = c - a - b
    rest = 1 - x
    logarithm = jnp.log(rest)
    h = _step_size(x) / (1 - 0.5 * logarithm)
    offset = excess - jnp.round(excess)
    singular = jnp.abs(offset) < 0.5 * h
    nodes = np.array(_NODES).reshape(-1, *[1] * x.ndim).astype(x.dtype)
    shift = jnp.where(singular, nodes * h - offset, 0)
    c, s = c + shift, excess + shift
    at_one = _gamma_quotient([c, s], [c - a, c - b])
    branch = _gamma_quotient([c, -s], [a, b], s * logarithm)
    values = at_one * _series([a, b], [1 - s], rest, active)
    values = values + branch * _series([c - a, c - b], [1 + s], rest, active)
    weights = _lagrange(offset / h)
    between = functools.reduce(
        lambda p, q: p + q, [w * v for w, v in zip(weights, values, strict=True)]
    )
    # infinite values have no sum of either sign
    return jnp.where(singular & (jnp.abs(values[0]) < math.inf), between, values[0])


def _gauss_value(a: Any, b: Any, c: Any, x: Any) -> Any:
    ends = _is_pole(a) | _is_pole(b)  # a polynomial
    mirrored = (x < 0) & ~ends
    # the larger exponent is taken out, so that the rest does not vanish by cancellation
    p = jnp.where(mirrored, jnp.maximum(a, b), a)
    q = jnp.where(mirrored, c - jnp.minimum(a, b), b)
    y = jnp.where(mirrored, x / (x - 1), x)
    direct = ends | _is_pole(q) | (jnp.abs(y) <= _NEAR_ONE)
    beyond = ~direct & ~(y < 1)
    inside = ~direct & ~beyond
    power = jnp.where(mirrored, jnp.exp(-p * jnp.log1p(jnp.where(mirrored, -x, 0))), 1)
    near = _series([p, q], [c], jnp.where(direct, y, 0), direct)
    far = _near_one(p, q, c, jnp.where(inside, y, 0.95), inside)
    value = power * jnp.where(direct, near, far)
    # at 1: Gauss's sum, if it converges
    s = c - a - b
    positive = s > 0
    total = _gamma_quotient([c, jnp.where(positive, s, 1)], [c - a, c - b])
    at_one = jnp.where(positive, total, jnp.where(s <= 0, math.inf, math.nan))
    value = jnp.where(beyond, jnp.where(y == 1, at_one, math.nan), value)
    last = jnp.where(_is_pole(a), a, -math.inf), jnp.where(_is_pole(b), b, -math.inf)
    singular = _is_pole(c) & ~(jnp.maximum(*last) >= c)
    value = jnp.where(singular & (x == x), math.inf, value)
    return jnp.where((a == 0) | (b == 0) | (x == 0), 1 + 0 * (a + b + c + x), value)


def _gauss_slope(a: Any, b: Any, c: Any, x: Any) -> Any:
    factor = a * b
    return jnp.where(factor == 0, 0, factor / c * _gauss(a + 1, b + 1, c + 1, x))


_gauss = _differentiable(_gauss_value, _gauss_slope)


@public()
def hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    """Gauss's hypergeometric function 2F1(a, b; c; x) for x <= 1.  Floats, differentiable in all.

    NaN for x > 1, unless a or b is 0, -1, ...: the series is a polynomial then.  Infinite where c is
    0, -1, ... unless the series ends before.  Digits are lost where the terms cancel: for large
    parameters of different signs, and a few where c - a - b is an integer.

    >>> round(float(hyp2f1(1.0, 1.0, 2.0, 0.5)), 4)
    1.3863
    """
    a, b, c, x = jnp.broadcast_arrays(*real_operands("hyp2f1", a, b, c, x))
    return narrow(_gauss(wide(a), wide(b), wide(c), wide(x)), x)
