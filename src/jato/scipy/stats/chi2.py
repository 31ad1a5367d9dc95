"""The chi-squared distribution with df degrees of freedom: twice a gamma variate of shape df/2."""

from __future__ import annotations

import math
from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.stats.arguments import standardized
from jato.scipy.stats.gamma import below, beyond, log_density


def _halves(function: str, x: Any, df: Any, loc: Any, scale: Any) -> tuple[Any, Any, Any]:
    z, df, scale = standardized(function, loc, scale, x=x, df=df)
    return z / 2, df / 2, scale


def _log_density(function: str, x: Any, df: Any, loc: Any, scale: Any) -> Any:
    z, a, scale = _halves(function, x, df, loc, scale)
    return log_density(z, a) - (jnp.log(scale) + math.log(2))


@public(name="chi2.logpdf")
def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at x.

    >>> round(float(logpdf(2.0, 2.0)), 4)
    -1.6931
    """
    return _log_density("chi2.logpdf", x, df, loc, scale)


@public(name="chi2.pdf")
def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at x.

    >>> round(float(pdf(2.0, 2.0)), 4)
    0.1839
    """
    return jnp.exp(_log_density("chi2.pdf", x, df, loc, scale))


@public(name="chi2.cdf")
def cdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x.

    >>> round(float(cdf(2.0, 2.0)), 4)
    0.6321
    """
    return below(*_halves("chi2.cdf", x, df, loc, scale)[:2])


@public(name="chi2.logcdf")
def logcdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of cdf.

    >>> round(float(logcdf(2.0, 2.0)), 4)
    -0.4587
    """
    return jnp.log(below(*_halves("chi2.logcdf", x, df, loc, scale)[:2]))


@public(name="chi2.sf")
def sf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values beyond x.

    >>> round(float(sf(2.0, 2.0)), 4)
    0.3679
    """
    return beyond(*_halves("chi2.sf", x, df, loc, scale)[:2])


@public(name="chi2.logsf")
def logsf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of sf.

    >>> round(float(logsf(2.0, 2.0)), 4)
    -1.0
    """
    return jnp.log(beyond(*_halves("chi2.logsf", x, df, loc, scale)[:2]))
