"""The Cauchy distribution with median `loc`: density 1 / (pi (1 + z**2)), z = (x - loc) / scale."""

from __future__ import annotations

import math
from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.stats.arguments import log1p_square, quantile_arguments, standardized


def _log_density(function: str, x: Any, loc: Any, scale: Any) -> Any:
    z, scale = standardized(function, loc, scale, x=x)
    return -log1p_square(z) - (math.log(math.pi) + jnp.log(scale))


def _below(z: Any) -> Any:
    # 1/2 + arctan(z) / pi, without cancellation to the left
    return jnp.arctan2(1, -z) / math.pi


def _log_below(z: Any) -> Any:
    right = z > 0
    left_part = jnp.log(_below(jnp.where(right, 0, z)))
    return jnp.where(right, jnp.log1p(-_below(-jnp.where(right, z, 0))), left_part)


def _quantile(q: Any) -> Any:
    """-1 / tan(pi q), with each of the three parts of [0, 1] measured from its own zero."""
    low, high = q < 0.25, q > 0.75
    tail = jnp.where(low, q, jnp.where(high, 1 - q, 0.25))
    far = 1 / jnp.tan(math.pi * tail)
    middle = jnp.tan(math.pi * (jnp.where(low | high, 0.5, q) - 0.5))
    return jnp.where(low, -far, jnp.where(high, far, middle))


@public(name="cauchy.logpdf")
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at x.

    >>> round(float(logpdf(0.0)), 4)
    -1.1447
    """
    return _log_density("cauchy.logpdf", x, loc, scale)


@public(name="cauchy.pdf")
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at x.

    >>> round(float(pdf(0.0)), 4)
    0.3183
    """
    return jnp.exp(_log_density("cauchy.pdf", x, loc, scale))


@public(name="cauchy.cdf")
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x.

    >>> float(cdf(0.0))
    0.5
    """
    return _below(standardized("cauchy.cdf", loc, scale, x=x)[0])


@public(name="cauchy.logcdf")
def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of cdf.

    >>> round(float(logcdf(0.0)), 4)
    -0.6931
    """
    return _log_below(standardized("cauchy.logcdf", loc, scale, x=x)[0])


@public(name="cauchy.sf")
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values beyond x.

    >>> float(sf(0.0))
    0.5
    """
    return _below(-standardized("cauchy.sf", loc, scale, x=x)[0])


@public(name="cauchy.logsf")
def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of sf.

    >>> round(float(logsf(0.0)), 4)
    -0.6931
    """
    return _log_below(-standardized("cauchy.logsf", loc, scale, x=x)[0])


@public(name="cauchy.ppf")
def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The point up to which lies the probability q: the inverse of cdf.  NaN unless 0 <= q <= 1.

    >>> float(ppf(0.5))
    0.0
    """
    q, loc, scale = quantile_arguments("cauchy.ppf", loc, scale, q=q)
    return _quantile(q) * scale + loc


@public(name="cauchy.isf")
def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The point beyond which lies the probability q: the inverse of sf.  NaN unless 0 <= q <= 1.

    >>> float(isf(0.5)) == 0.0
    True
    """
    q, loc, scale = quantile_arguments("cauchy.isf", loc, scale, q=q)
    return loc - _quantile(q) * scale
