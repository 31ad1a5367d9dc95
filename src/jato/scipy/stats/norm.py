"""The normal distribution with mean `loc` and standard deviation `scale`."""

from __future__ import annotations

import math
from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.special.error_functions import log_ndtr, ndtr, ndtri
from jato.scipy.stats.arguments import quantile_arguments, standardized


def _log_density(function: str, x: Any, loc: Any, scale: Any) -> Any:
    z, scale = standardized(function, loc, scale, x=x)
    return -0.5 * (z * z + math.log(2 * math.pi)) - jnp.log(scale)


@public(name="norm.logpdf")
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at x.

    >>> round(float(logpdf(0.0)), 4)
    -0.9189
    """
    return _log_density("norm.logpdf", x, loc, scale)


@public(name="norm.pdf")
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at x.

    >>> round(float(pdf(0.0)), 4)
    0.3989
    """
    z, scale = standardized("norm.pdf", loc, scale, x=x)
    return jnp.exp(-0.5 * z * z) * (1 / math.sqrt(2 * math.pi)) / scale


@public(name="norm.cdf")
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x.

    >>> float(cdf(0.0))
    0.5
    """
    return ndtr(standardized("norm.cdf", loc, scale, x=x)[0])


@public(name="norm.logcdf")
def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of cdf, accurate far to the left.

    >>> round(float(logcdf(0.0)), 4)
    -0.6931
    """
    return log_ndtr(standardized("norm.logcdf", loc, scale, x=x)[0])


@public(name="norm.sf")
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values beyond x.

    >>> float(sf(0.0))
    0.5
    """
    return ndtr(-standardized("norm.sf", loc, scale, x=x)[0])


@public(name="norm.logsf")
def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of sf, accurate far to the right.

    >>> round(float(logsf(0.0)), 4)
    -0.6931
    """
    return log_ndtr(-standardized("norm.logsf", loc, scale, x=x)[0])


@public(name="norm.ppf")
def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The point up to which lies the probability q: the inverse of cdf.  NaN unless 0 <= q <= 1.

    >>> float(ppf(0.5))
    0.0
    """
    q, loc, scale = quantile_arguments("norm.ppf", loc, scale, q=q)
    return ndtri(q) * scale + loc


@public(name="norm.isf")
def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The point beyond which lies the probability q: the inverse of sf.  NaN unless 0 <= q <= 1.

    >>> float(isf(0.5)) == 0.0
    True
    """
    q, loc, scale = quantile_arguments("norm.isf", loc, scale, q=q)
    return loc - ndtri(q) * scale
