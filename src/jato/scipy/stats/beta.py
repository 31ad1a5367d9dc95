"""The beta distribution on [0, 1] with shapes a, b > 0: density x**(a-1) (1-x)**(b-1) / B(a, b)."""

from __future__ import annotations

from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.special.entropies import xlog1py, xlogy
from jato.scipy.special.gamma_functions import betainc, betaln
from jato.scipy.stats.arguments import on_support, standardized


def _log_density(function: str, x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    z, a, b, scale = standardized(function, loc, scale, x=x, a=a, b=b)
    constant = betaln(a, b) + jnp.log(scale)
    return on_support(
        z, (z < 0) | (z > 1), lambda z: xlogy(a - 1, z) + xlog1py(b - 1, -z) - constant, 0.5
    )


def _clipped(z: Any, a: Any, b: Any) -> Any:
    found = on_support(z, (z < 0) | (z > 1), lambda z: betainc(a, b, z), 0.5, 0)
    return jnp.where((z > 1) & (found == found), 1, found)


def _below(function: str, x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    z, a, b, _ = standardized(function, loc, scale, x=x, a=a, b=b)
    return _clipped(z, a, b)


def _beyond(function: str, x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    z, a, b, _ = standardized(function, loc, scale, x=x, a=a, b=b)
    return _clipped(1 - z, b, a)


@public(name="beta.logpdf")
def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at x.

    >>> round(float(logpdf(0.5, 2.0, 2.0)), 4)
    0.4055
    """
    return _log_density("beta.logpdf", x, a, b, loc, scale)


@public(name="beta.pdf")
def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at x.

    >>> round(float(pdf(0.5, 2.0, 2.0)), 4)
    1.5
    """
    return jnp.exp(_log_density("beta.pdf", x, a, b, loc, scale))


@public(name="beta.cdf")
def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x.

    >>> float(cdf(0.25, 1.0, 1.0))
    0.25
    """
    return _below("beta.cdf", x, a, b, loc, scale)


@public(name="beta.logcdf")
def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of cdf.

    >>> round(float(logcdf(0.25, 1.0, 1.0)), 4)
    -1.3863
    """
    return jnp.log(_below("beta.logcdf", x, a, b, loc, scale))


@public(name="beta.sf")
def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values beyond x.

    >>> float(sf(0.25, 1.0, 1.0))
    0.75
    """
    return _beyond("beta.sf", x, a, b, loc, scale)


@public(name="beta.logsf")
def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of sf.

    >>> round(float(logsf(0.25, 1.0, 1.0)), 4)
    -0.2877
    """
    return jnp.log(_beyond("beta.logsf", x, a, b, loc, scale))
