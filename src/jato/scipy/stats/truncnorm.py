"""The normal distribution cut off at a and b.

a and b are standardized, as z = (x - loc) / scale is: the support is [loc + a scale, loc + b scale].
a >= b gives NaN.
"""

from __future__ import annotations

import math
from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.special.error_functions import erf, log_ndtr
from jato.scipy.stats.arguments import log1m_exp, on_support, standardized


def _log_mass(low: Any, high: Any) -> Any:
    """log of the normal probability of [low, high], low < high, without cancellation: both ends are
    taken to the left half, or, with 0 between them, their distances from 0 are added."""
    right = low > 0
    low, high = jnp.where(right, -high, low), jnp.where(right, -low, high)
    across = high > 0
    a, b = jnp.where(across, low, -1), jnp.where(across, high, 1)
    middle = jnp.log(0.5 * (erf(b * math.sqrt(0.5)) + erf(-a * math.sqrt(0.5))))
    a, b = jnp.where(across, -2, low), jnp.where(across, -1, high)
    upper = log_ndtr(b)
    endless = a == -math.inf
    rest = log1m_exp(upper - log_ndtr(jnp.where(endless, b - 1, a)))
    return jnp.where(across, middle, upper + jnp.where(endless, 0, rest))


def _operands(function: str, x: Any, a: Any, b: Any, loc: Any, scale: Any) -> list[Any]:
    z, a, b, scale = standardized(function, loc, scale, x=x, a=a, b=b)
    valid = a < b
    return [z, jnp.where(valid, a, math.nan), jnp.where(valid, b, math.nan), scale]


def _log_density(function: str, x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    z, a, b, scale = _operands(function, x, a, b, loc, scale)
    constant = _log_mass(a, b) + jnp.log(scale) + 0.5 * math.log(2 * math.pi)
    return on_support(z, (z < a) | (z > b), lambda z: -0.5 * z * z - constant, 0)


def _log_shares(function: str, x: Any, a: Any, b: Any, loc: Any, scale: Any) -> tuple[Any, Any]:
    """log cdf, log sf"""
    z, a, b, _ = _operands(function, x, a, b, loc, scale)
    whole = _log_mass(a, b)
    below, beyond = z <= a, z >= b
    inside = jnp.where(below | beyond, _between(a, b), z)
    low, high = _log_mass(a, inside) - whole, _log_mass(inside, b) - whole
    # the larger of both from the smaller one
    more = low > high
    low_from_high = jnp.log1p(-jnp.exp(jnp.minimum(high, -0.5)))
    high_from_low = jnp.log1p(-jnp.exp(jnp.minimum(low, -0.5)))
    low, high = jnp.where(more, low_from_high, low), jnp.where(more, high, high_from_low)
    minus = -math.inf
    return (
        jnp.where(below, minus, jnp.where(beyond, 0, low)) + 0 * whole,
        jnp.where(beyond, minus, jnp.where(below, 0, high)) + 0 * whole,
    )


def _between(a: Any, b: Any) -> Any:
    """Some point between both, which may be infinite."""
    a, b = jnp.maximum(a, jnp.minimum(b, 1) - 1), jnp.minimum(b, jnp.maximum(a, -1) + 1)
    return 0.5 * (a + b)


@public(name="truncnorm.logpdf")
def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at x.

    >>> round(float(logpdf(0.0, -1.0, 1.0)), 4)
    -0.5372
    """
    return _log_density("truncnorm.logpdf", x, a, b, loc, scale)


@public(name="truncnorm.pdf")
def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at x.

    >>> round(float(pdf(0.0, -1.0, 1.0)), 4)
    0.5844
    """
    return jnp.exp(_log_density("truncnorm.pdf", x, a, b, loc, scale))


@public(name="truncnorm.logcdf")
def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of cdf.

    >>> round(float(logcdf(0.0, -1.0, 1.0)), 4)
    -0.6931
    """
    return _log_shares("truncnorm.logcdf", x, a, b, loc, scale)[0]


@public(name="truncnorm.cdf")
def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x.

    >>> round(float(cdf(0.0, -1.0, 1.0)), 4)
    0.5
    """
    return jnp.exp(_log_shares("truncnorm.cdf", x, a, b, loc, scale)[0])


@public(name="truncnorm.logsf")
def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of sf.

    >>> round(float(logsf(0.0, -1.0, 1.0)), 4)
    -0.6931
    """
    return _log_shares("truncnorm.logsf", x, a, b, loc, scale)[1]


@public(name="truncnorm.sf")
def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values beyond x.

    >>> round(float(sf(0.0, -1.0, 1.0)), 4)
    0.5
    """
    return jnp.exp(_log_shares("truncnorm.sf", x, a, b, loc, scale)[1])
