"""Gumbel's distribution of smallest values: density exp(z - exp(z)), z = (x - loc) / scale.

It is gumbel_r of -z.
"""

from __future__ import annotations

from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.stats.arguments import quantile_arguments, standardized
from jato.scipy.stats.gumbel_r import beyond, log_below, log_beyond, log_density, quantile


def _mirrored(function: str, x: Any, loc: Any, scale: Any) -> tuple[Any, Any]:
    z, scale = standardized(function, loc, scale, x=x)
    return -z, scale


@public(name="gumbel_l.logpdf")
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at x.

    >>> float(logpdf(0.0))
    -1.0
    """
    return log_density(*_mirrored("gumbel_l.logpdf", x, loc, scale))


@public(name="gumbel_l.pdf")
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at x.

    >>> round(float(pdf(0.0)), 4)
    0.3679
    """
    return jnp.exp(log_density(*_mirrored("gumbel_l.pdf", x, loc, scale)))


@public(name="gumbel_l.cdf")
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x.

    >>> round(float(cdf(0.0)), 4)
    0.6321
    """
    return beyond(_mirrored("gumbel_l.cdf", x, loc, scale)[0])


@public(name="gumbel_l.logcdf")
def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of cdf.

    >>> round(float(logcdf(0.0)), 4)
    -0.4587
    """
    return log_beyond(_mirrored("gumbel_l.logcdf", x, loc, scale)[0])


@public(name="gumbel_l.sf")
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values beyond x.

    >>> round(float(sf(0.0)), 4)
    0.3679
    """
    return jnp.exp(log_below(_mirrored("gumbel_l.sf", x, loc, scale)[0]))


@public(name="gumbel_l.logsf")
def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of sf.

    >>> float(logsf(0.0))
    -1.0
    """
    return log_below(_mirrored("gumbel_l.logsf", x, loc, scale)[0])


@public(name="gumbel_l.ppf")
def ppf(p: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The point up to which lies the probability p: the inverse of cdf.  NaN unless 0 <= p <= 1.

    >>> round(float(ppf(0.5)), 4)
    -0.3665
    """
    p, loc, scale = quantile_arguments("gumbel_l.ppf", loc, scale, p=p)
    return loc - quantile(jnp.log1p(-p)) * scale
