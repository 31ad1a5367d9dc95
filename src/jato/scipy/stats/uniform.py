"""The uniform distribution on [loc, loc + scale]."""

from __future__ import annotations

from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.stats.arguments import on_support, quantile_arguments, standardized


def _log_density(function: str, x: Any, loc: Any, scale: Any) -> Any:
    z, scale = standardized(function, loc, scale, x=x)
    return on_support(z, (z < 0) | (z > 1), lambda z: 0 * z - jnp.log(scale), 0)


@public(name="uniform.logpdf")
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at x.

    >>> round(float(logpdf(0.5, 0.0, 2.0)), 4)
    -0.6931
    """
    return _log_density("uniform.logpdf", x, loc, scale)


@public(name="uniform.pdf")
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at x.

    >>> round(float(pdf(0.5, 0.0, 2.0)), 4)
    0.5
    """
    return jnp.exp(_log_density("uniform.pdf", x, loc, scale))


@public(name="uniform.cdf")
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x.

    >>> float(cdf(0.5, 0.0, 2.0))
    0.25
    """
    return jnp.clip(standardized("uniform.cdf", loc, scale, x=x)[0], 0, 1)


@public(name="uniform.ppf")
def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The point up to which lies the probability q: the inverse of cdf.  NaN unless 0 <= q <= 1.

    >>> float(ppf(0.25, 0.0, 2.0))
    0.5
    """
    q, loc, scale = quantile_arguments("uniform.ppf", loc, scale, q=q)
    return loc + q * scale
