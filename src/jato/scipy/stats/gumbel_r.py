"""Gumbel's distribution of largest values: density exp(-z - exp(-z)), z = (x - loc) / scale."""

from __future__ import annotations

import math
from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.stats.arguments import log1m_exp, on_support, quantile_arguments, standardized


def log_density(z: Any, scale: Any) -> Any:
    """At a standardized z (gumbel_l.py uses it, and what follows, at -z)."""
    return on_support(z, z == -math.inf, lambda z: -(z + jnp.exp(-z)) - jnp.log(scale), 0)


def log_below(z: Any) -> Any:
    return -jnp.exp(-z)


def beyond(z: Any) -> Any:
    return -jnp.expm1(-jnp.exp(-z))


def log_beyond(z: Any) -> Any:
    # of exp(-z), which is tiny far to the right: there log(1 - exp(-y)) is log(y)
    far = z > 50
    return jnp.where(far, -z, log1m_exp(jnp.exp(-jnp.where(far, 0, z))))


def quantile(log_q: Any) -> Any:
    """The z with log_below(z) = log_q."""
    return -jnp.log(-log_q)


@public(name="gumbel_r.logpdf")
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at x.

    >>> float(logpdf(0.0))
    -1.0
    """
    return log_density(*standardized("gumbel_r.logpdf", loc, scale, x=x))


@public(name="gumbel_r.pdf")
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at x.

    >>> round(float(pdf(0.0)), 4)
    0.3679
    """
    return jnp.exp(log_density(*standardized("gumbel_r.pdf", loc, scale, x=x)))


@public(name="gumbel_r.cdf")
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x.

    >>> round(float(cdf(0.0)), 4)
    0.3679
    """
    return jnp.exp(log_below(standardized("gumbel_r.cdf", loc, scale, x=x)[0]))


@public(name="gumbel_r.logcdf")
def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of cdf.

    >>> float(logcdf(0.0))
    -1.0
    """
    return log_below(standardized("gumbel_r.logcdf", loc, scale, x=x)[0])


@public(name="gumbel_r.sf")
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values beyond x.

    >>> round(float(sf(0.0)), 4)
    0.6321
    """
    return beyond(standardized("gumbel_r.sf", loc, scale, x=x)[0])


@public(name="gumbel_r.logsf")
def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of sf.

    >>> round(float(logsf(0.0)), 4)
    -0.4587
    """
    return log_beyond(standardized("gumbel_r.logsf", loc, scale, x=x)[0])


@public(name="gumbel_r.ppf")
def ppf(p: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The point up to which lies the probability p: the inverse of cdf.  NaN unless 0 <= p <= 1.

    >>> round(float(ppf(0.5)), 4)
    0.3665
    """
    p, loc, scale = quantile_arguments("gumbel_r.ppf", loc, scale, p=p)
    return loc + quantile(jnp.log(p)) * scale
