"""Error functions and the normal distribution function, with their inverses and logarithms.

`erf` and its kin are primitives (ops/special.py).  ndtri is M. Wichura's algorithm AS 241 (PPND16),
Applied Statistics 37 (1988).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jato.control.custom_jvp import custom_jvp
from jato.core.types import type_of
from jato.jit.eager import public
from jato.lax.operands import narrow, wide
from jato.ops import elementwise as ops
from jato.ops.structural import full_like
from jato.scipy.special.arguments import real_operand

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@public()
def erf(x: Any) -> Any:
    """The error function, 2/sqrt(pi) times the integral of exp(-t**2) over [0, x].

    >>> float(erf(0.0))
    0.0
    """
    return ops.erf(real_operand("erf", x))


@public()
def erfc(x: Any) -> Any:
    """1 - erf(x), without cancellation for large x.

    >>> float(erfc(0.0))
    1.0
    """
    return ops.erfc(real_operand("erfc", x))


@public()
def erfinv(x: Any) -> Any:
    """The inverse of erf on [-1, 1]; NaN outside.

    >>> float(erfinv(0.0))
    0.0
    """
    return ops.erf_inv(real_operand("erfinv", x))


@public()
def erfcinv(y: Any) -> Any:
    """The inverse of erfc on [0, 2], accurate near 0; NaN outside.

    >>> float(erfcinv(1.0)) == 0.0
    True
    """
    y = real_operand("erfcinv", y)
    return narrow(ops.mul(_ndtri(ops.mul(wide(y), 0.5)), -math.sqrt(0.5)), y)


@custom_jvp
def _ndtr(x: Any) -> Any:
    return ops.mul(ops.erfc(ops.mul(x, -math.sqrt(0.5))), 0.5)


@_ndtr.defjvp
def _ndtr_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return _ndtr(x), ops.exp(-0.5 * x * x - _HALF_LOG_2PI) * t


@public()
def ndtr(x: Any) -> Any:
    """The distribution function of the standard normal distribution.

    >>> float(ndtr(0.0))
    0.5
    """
    x = real_operand("ndtr", x)
    return narrow(_ndtr(wide(x)), x)


def _terms(series_order: int) -> list[float]:
    """(-1)^k (2k - 1)!!, k = 1 ..., of the asymptotic series of ndtr."""
    coefficients, c = [], 1.0
    for k in range(1, series_order + 1):
        c *= -(2 * k - 1)
        coefficients.append(c)
    return coefficients


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def _log_ndtr(x: Any, order: int) -> Any:
    wide = type_of(x).dtype == np.float64
    switch, terms = (-20.0, max(order, 10)) if wide else (-10.0, max(order, 5))
    right, left = ops.max(x, 0.0), ops.min(x, switch)
    middle = ops.max(ops.min(x, 0.0), switch)
    # right of 0 from the other tail, so that 1 - tiny is not rounded to 1
    upper = ops.log1p(ops.neg(_ndtr(ops.neg(right))))
    centre = ops.log(_ndtr(middle))
    inverse = 1.0 / (left * left)
    series = inverse * 0.0
    for c in reversed(_terms(terms)):
        series = (series + c) * inverse
    tail = -0.5 * left * left - ops.log(ops.neg(left)) - _HALF_LOG_2PI + ops.log1p(series)
    found = ops.select(x > 0.0, upper, ops.select(x > switch, centre, tail))
    return ops.select(ops.ne(x, x), x, found)


@_log_ndtr.defjvp
def _log_ndtr_jvp(order: Any, primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    value = _log_ndtr(x, order)
    return value, ops.exp(-0.5 * x * x - _HALF_LOG_2PI - value) * t


@public(static=("series_order",))
def log_ndtr(x: Any, series_order: int = 3) -> Any:
    """The logarithm of ndtr, accurate in both tails.

    series_order: at least so many terms of the asymptotic series are used far to the left.

    >>> round(float(log_ndtr(-100.0)), 1)
    -5005.5
    """
    x = real_operand("log_ndtr", x)
    return narrow(_log_ndtr(wide(x), series_order), x)


# numerators and denominators of AS 241, lowest power first: centre, tail, far tail
_CENTRE = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
     1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
     3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
     5.2264952788528545610e3),
)  # fmt: skip
_TAIL = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
     3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
     2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
     1.05075007164441684324e-9),
)  # fmt: skip
_FAR_TAIL = (
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
     2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
     2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
     2.04426310338993978564e-15),
)  # fmt: skip


def _rational(r: Any, pair: Sequence[Sequence[float]]) -> Any:
    values = []
    for coefficients in pair:
        total = r * 0.0 + coefficients[-1]
        for c in reversed(coefficients[:-1]):
            total = total * r + c
        values.append(total)
    return values[0] / values[1]


@custom_jvp
def _ndtri(p: Any) -> Any:
    q = p - 0.5
    inner = 0.180625 - q * q
    centre = q * _rational(inner, _CENTRE)
    side = ops.min(p, 1.0 - p)
    outside = (p < 0.0) | (p > 1.0) | ops.ne(p, p)
    positive = side > 0.0
    r = ops.sqrt(ops.neg(ops.log(ops.select(positive, side, full_like(side, 0.5)))))
    near, far = _rational(r - 1.6, _TAIL), _rational(r - 5.0, _FAR_TAIL)
    size = ops.select(r <= 5.0, near, far)
    size = ops.select(positive, size, full_like(size, math.inf))
    tail = ops.select(q < 0.0, ops.neg(size), size)
    found = ops.select(ops.abs(q) <= 0.425, centre, tail)
    return ops.select(outside, full_like(found, math.nan), found)


@_ndtri.defjvp
def _ndtri_jvp(primals: Any, tangents: Any) -> Any:
    (p,), (t,) = primals, tangents
    x = _ndtri(p)
    return x, ops.exp(0.5 * x * x + _HALF_LOG_2PI) * t


@public()
def ndtri(p: Any) -> Any:
    """The inverse of ndtr on [0, 1]: the point below which lies the share p; NaN outside.

    >>> float(ndtri(0.5))
    0.0
    """
    p = real_operand("ndtri", p)
    return narrow(_ndtri(wide(p)), p)
