"""The exponential distribution on [0, inf): density exp(-z) / scale, z = (x - loc) / scale."""

from __future__ import annotations

from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.stats.arguments import log1m_exp, on_support, quantile_arguments, standardized


def _log_density(function: str, x: Any, loc: Any, scale: Any) -> Any:
    z, scale = standardized(function, loc, scale, x=x)
    return on_support(z, z < 0, lambda z: -z - jnp.log(scale), 0)


def _positive(function: str, x: Any, loc: Any, scale: Any) -> Any:
    return jnp.maximum(standardized(function, loc, scale, x=x)[0], 0)


@public(name="expon.logpdf")
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at x.

    >>> float(logpdf(2.0))
    -2.0
    """
    return _log_density("expon.logpdf", x, loc, scale)


@public(name="expon.pdf")
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at x.

    >>> round(float(pdf(2.0)), 4)
    0.1353
    """
    return jnp.exp(_log_density("expon.pdf", x, loc, scale))


@public(name="expon.cdf")
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x.

    >>> round(float(cdf(2.0)), 4)
    0.8647
    """
    return -jnp.expm1(-_positive("expon.cdf", x, loc, scale))


@public(name="expon.logcdf")
def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of cdf.

    >>> round(float(logcdf(2.0)), 4)
    -0.1454
    """
    z, _ = standardized("expon.logcdf", loc, scale, x=x)
    return on_support(z, z <= 0, log1m_exp, 1)


@public(name="expon.sf")
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values beyond x.

    >>> round(float(sf(2.0)), 4)
    0.1353
    """
    return jnp.exp(-_positive("expon.sf", x, loc, scale))


@public(name="expon.logsf")
def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of sf.

    >>> float(logsf(2.0))
    -2.0
    """
    return -_positive("expon.logsf", x, loc, scale)


@public(name="expon.ppf")
def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The point up to which lies the probability q: the inverse of cdf.  NaN unless 0 <= q <= 1.

    >>> round(float(ppf(0.5)), 4)
    0.6931
    """
    q, loc, scale = quantile_arguments("expon.ppf", loc, scale, q=q)
    return loc - jnp.log1p(-q) * scale
