"""The Laplace distribution: density exp(-|z|) / (2 scale), z = (x - loc) / scale."""

from __future__ import annotations

import math
from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.stats.arguments import standardized


def _log_density(function: str, x: Any, loc: Any, scale: Any) -> Any:
    z, scale = standardized(function, loc, scale, x=x)
    return -jnp.abs(z) - (math.log(2) + jnp.log(scale))


@public(name="laplace.logpdf")
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at x.

    >>> round(float(logpdf(0.0)), 4)
    -0.6931
    """
    return _log_density("laplace.logpdf", x, loc, scale)


@public(name="laplace.pdf")
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at x.

    >>> round(float(pdf(0.0)), 4)
    0.5
    """
    return jnp.exp(_log_density("laplace.pdf", x, loc, scale))


@public(name="laplace.cdf")
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x.

    >>> float(cdf(0.0))
    0.5
    """
    z, _ = standardized("laplace.cdf", loc, scale, x=x)
    tail = 0.5 * jnp.exp(-jnp.abs(z))
    return jnp.where(z > 0, 1 - tail, tail)
