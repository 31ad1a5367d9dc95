"""Elementwise special functions of floats: error functions, gamma functions.

2 ULP where the opcode is (loopir/scalar_ops.py); erf_inv 4; lgamma and digamma near their zeros
only relative to the size of their terms.  Start reading at `ERF`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jato.base.errors import MissingRule
from jato.base.lazy import LazyModule
from jato.ops.accuracy import check_accuracy
from jato.ops.arithmetic import mul, neg, square
from jato.ops.transcendental import exp, function_of_one

special: Any = LazyModule("scipy.special")  # for references only

_SQRT_PI = math.sqrt(math.pi)

ERF = function_of_one(
    "erf",
    "f",
    lambda g, out, x: mul(g, mul(exp(neg(square(x))), 2 / _SQRT_PI)),
    lambda x: special.erf(x),
    16.0,
)
ERFC = function_of_one(
    "erfc",
    "f",
    lambda g, out, x: mul(g, mul(exp(neg(square(x))), -2 / _SQRT_PI)),
    lambda x: special.erfc(x),
    20.0,
)
ERF_INV = function_of_one(
    "erf_inv",
    "f",
    lambda g, out, x: mul(g, mul(exp(square(out)), _SQRT_PI / 2)),
    lambda x: np.where(x == 0, x, special.erfinv(x)),
    20.0,
    "erfinv",
)
LGAMMA = function_of_one(
    "lgamma",
    "f",
    lambda g, out, x: mul(g, digamma(x)),
    lambda x: np.where(np.isinf(x), np.inf, special.gammaln(x)),
    30.0,
)
DIGAMMA = function_of_one(
    "digamma", "f", lambda g, out, x: mul(g, trigamma(x)), lambda x: special.digamma(x), 30.0
)

# B(2k): trigamma(z) ~ 1/z + 1/(2 z^2) + sum B(2k) / z^(2k+1)   (DLMF 5.15.8)
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def _lower_trigamma(b: Any, x: Any) -> Any:
    if x.dtype in ("f16", "bf16"):
        return b.convert(_lower_trigamma(b, b.convert(x, "f32")), x.dtype)

    def const(value: float) -> Any:
        return b.const(value, x.dtype)

    # trigamma(x) = pi^2 / sin(pi x)^2 - trigamma(1 - x); upward to where the series holds
    reflected = b.lt(x, const(0.5))
    z = b.select(reflected, b.sub(const(1), x), x)
    total = const(0)
    for _ in range(12 if x.dtype == "f64" else 6):
        total = b.add(total, b.div(const(1), b.mul(z, z)))
        z = b.add(z, const(1))
    r = b.div(const(1), z)
    r2 = b.mul(r, r)
    series = const(_BERNOULLI[-1])
    for coefficient in reversed(_BERNOULLI[:-1]):
        series = b.add(b.mul(series, r2), const(coefficient))
    tail = b.add(b.mul(r2, const(0.5)), b.mul(b.mul(series, r2), r))
    total = b.add(total, b.add(r, tail))
    sine = b.sin(b.mul(b.sub(x, b.round_even(x)), const(math.pi)))
    square_pi = b.div(const(math.pi * math.pi), b.mul(sine, sine))
    return b.select(reflected, b.sub(square_pi, total), total)


def _no_derivative(g: Any, out: Any, x: Any) -> Any:
    raise MissingRule("trigamma", "jvp", "Its derivative is polygamma(2, x), which is not there.")


TRIGAMMA = function_of_one(
    "trigamma",
    "f",
    _no_derivative,
    lambda x: np.where(x == -np.inf, np.nan, special.polygamma(1, x)),
    60.0,
    _lower_trigamma,
)


# ---- the functions


def erf(x: Any) -> Any:
    """The error function (floats).

    >>> float(erf(0.0))
    0.0
    """
    return ERF(x)


def erfc(x: Any, *, accuracy: Any = None) -> Any:
    """1 - erf(x) without cancellation (floats).

    >>> float(erfc(0.0))
    1.0
    """
    if accuracy is not None:
        check_accuracy("erfc", accuracy, x)
    return ERFC(x)


def erf_inv(x: Any) -> Any:
    """The inverse of erf on [-1, 1]; NaN outside.

    >>> float(erf_inv(0.0))
    0.0
    """
    return ERF_INV(x)


def lgamma(x: Any) -> Any:
    """log |gamma(x)| (floats).

    >>> float(lgamma(1.0))
    0.0
    """
    return LGAMMA(x)


def digamma(x: Any) -> Any:
    """The derivative of lgamma (floats).

    >>> round(float(digamma(1.0)), 3)
    -0.577
    """
    return DIGAMMA(x)


def trigamma(x: Any) -> Any:
    """The derivative of digamma (floats).

    >>> round(float(trigamma(1.0)), 3)
    1.645
    """
    return TRIGAMMA(x)
