"""The logistic distribution: cdf(x) = 1 / (1 + exp(-z)), z = (x - loc) / scale."""

from __future__ import annotations

from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.special.entropies import expit, logit
from jato.scipy.stats.arguments import quantile_arguments, standardized


def _log_density(function: str, x: Any, loc: Any, scale: Any) -> Any:
    z, scale = standardized(function, loc, scale, x=x)
    size = jnp.abs(z)
    return -size - 2 * jnp.log1p(jnp.exp(-size)) - jnp.log(scale)


@public(name="logistic.logpdf")
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at x.

    >>> round(float(logpdf(0.0)), 4)
    -1.3863
    """
    return _log_density("logistic.logpdf", x, loc, scale)


@public(name="logistic.pdf")
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at x.

    >>> round(float(pdf(0.0)), 4)
    0.25
    """
    return jnp.exp(_log_density("logistic.pdf", x, loc, scale))


@public(name="logistic.cdf")
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x.

    >>> float(cdf(0.0))
    0.5
    """
    return expit(standardized("logistic.cdf", loc, scale, x=x)[0])


@public(name="logistic.sf")
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values beyond x.

    >>> float(sf(0.0))
    0.5
    """
    return expit(-standardized("logistic.sf", loc, scale, x=x)[0])


@public(name="logistic.ppf")
def ppf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The point up to which lies the probability x: the inverse of cdf.  NaN unless 0 <= x <= 1.

    >>> float(ppf(0.5))
    0.0
    """
    q, loc, scale = quantile_arguments("logistic.ppf", loc, scale, x=x)
    return loc + logit(q) * scale


@public(name="logistic.isf")
def isf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The point beyond which lies the probability x: the inverse of sf.  NaN unless 0 <= x <= 1.

    >>> float(isf(0.5))
    0.0
    """
    q, loc, scale = quantile_arguments("logistic.isf", loc, scale, x=x)
    return loc - logit(q) * scale
