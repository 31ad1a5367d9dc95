"""The gamma distribution on [0, inf) with shape a > 0: density x**(a-1) exp(-x) / Gamma(a)."""

from __future__ import annotations

import math
from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.special.entropies import xlogy
from jato.scipy.special.gamma_functions import gammainc, gammaincc, gammaln
from jato.scipy.stats.arguments import on_support, positive, standardized


def log_density(z: Any, a: Any) -> Any:
    """The logarithm of the density at z, of unit scale (chi2.py uses it too)."""
    a = positive(a)
    outside = (z < 0) | (z == math.inf)
    return on_support(z, outside, lambda z: xlogy(a - 1, z) - z - gammaln(a), 1)


def below(z: Any, a: Any) -> Any:
    return on_support(z, z < 0, lambda z: gammainc(a, z), 1, 0)


def beyond(z: Any, a: Any) -> Any:
    return on_support(z, z < 0, lambda z: gammaincc(a, z), 1, 1)


def _log_density(function: str, x: Any, a: Any, loc: Any, scale: Any) -> Any:
    z, a, scale = standardized(function, loc, scale, x=x, a=a)
    return log_density(z, a) - jnp.log(scale)


@public(name="gamma.logpdf")
def logpdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at x.

    >>> float(logpdf(2.0, 1.0))
    -2.0
    """
    return _log_density("gamma.logpdf", x, a, loc, scale)


@public(name="gamma.pdf")
def pdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at x.

    >>> round(float(pdf(2.0, 1.0)), 4)
    0.1353
    """
    return jnp.exp(_log_density("gamma.pdf", x, a, loc, scale))


@public(name="gamma.cdf")
def cdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x.

    >>> round(float(cdf(2.0, 1.0)), 4)
    0.8647
    """
    z, a, _ = standardized("gamma.cdf", loc, scale, x=x, a=a)
    return below(z, a)


@public(name="gamma.logcdf")
def logcdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of cdf.

    >>> round(float(logcdf(2.0, 1.0)), 4)
    -0.1454
    """
    z, a, _ = standardized("gamma.logcdf", loc, scale, x=x, a=a)
    return jnp.log(below(z, a))


@public(name="gamma.sf")
def sf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values beyond x.

    >>> round(float(sf(2.0, 1.0)), 4)
    0.1353
    """
    z, a, _ = standardized("gamma.sf", loc, scale, x=x, a=a)
    return beyond(z, a)


@public(name="gamma.logsf")
def logsf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of sf.

    >>> round(float(logsf(2.0, 1.0)), 4)
    -2.0
    """
    z, a, _ = standardized("gamma.logsf", loc, scale, x=x, a=a)
    return jnp.log(beyond(z, a))
