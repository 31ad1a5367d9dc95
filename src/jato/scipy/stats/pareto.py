"""The Pareto distribution on [1, inf) with shape b > 0: density b / x**(b+1)."""

from __future__ import annotations

from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.stats.arguments import (
    log1m_exp,
    on_support,
    positive,
    quantile_arguments,
    standardized,
)


def _operands(function: str, x: Any, b: Any, loc: Any, scale: Any) -> tuple[Any, Any, Any]:
    z, b, scale = standardized(function, loc, scale, x=x, b=b)
    return z, positive(b), scale


def _log_density(function: str, x: Any, b: Any, loc: Any, scale: Any) -> Any:
    z, b, scale = _operands(function, x, b, loc, scale)
    constant = jnp.log(b) - jnp.log(scale)
    return on_support(z, z < 1, lambda z: constant - (b + 1) * jnp.log(z), 1)


def _exponent(function: str, x: Any, b: Any, loc: Any, scale: Any) -> Any:
    """b log(z), 0 below the support: minus the logarithm of sf."""
    z, b, _ = _operands(function, x, b, loc, scale)
    return b * jnp.log(jnp.maximum(z, 1))


@public(name="pareto.logpdf")
def logpdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at x.

    >>> round(float(logpdf(2.0, 1.0)), 4)
    -1.3863
    """
    return _log_density("pareto.logpdf", x, b, loc, scale)


@public(name="pareto.pdf")
def pdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at x.

    >>> round(float(pdf(2.0, 1.0)), 4)
    0.25
    """
    return jnp.exp(_log_density("pareto.pdf", x, b, loc, scale))


@public(name="pareto.cdf")
def cdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x.

    >>> round(float(cdf(2.0, 1.0)), 4)
    0.5
    """
    return -jnp.expm1(-_exponent("pareto.cdf", x, b, loc, scale))


@public(name="pareto.logcdf")
def logcdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of cdf.

    >>> round(float(logcdf(2.0, 1.0)), 4)
    -0.6931
    """
    y = _exponent("pareto.logcdf", x, b, loc, scale)
    return on_support(y, y <= 0, log1m_exp, 1)


@public(name="pareto.sf")
def sf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values beyond x.

    >>> round(float(sf(2.0, 1.0)), 4)
    0.5
    """
    return jnp.exp(-_exponent("pareto.sf", x, b, loc, scale))


@public(name="pareto.logsf")
def logsf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of sf.

    >>> round(float(logsf(2.0, 1.0)), 4)
    -0.6931
    """
    return -_exponent("pareto.logsf", x, b, loc, scale)


@public(name="pareto.ppf")
def ppf(q: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The point up to which lies the probability q: the inverse of cdf.  NaN unless 0 <= q <= 1.

    >>> round(float(ppf(0.5, 1.0)), 4)
    2.0
    """
    q, b, loc, scale = quantile_arguments("pareto.ppf", loc, scale, q=q, b=b)
    b = positive(b)
    return loc + jnp.exp(-jnp.log1p(-q) / b) * scale
