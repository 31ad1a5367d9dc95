"""Von Mises' distribution of angles: density exp(kappa cos(x)) / (2 pi I0(kappa)), kappa >= 0."""

from __future__ import annotations

import math
from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.special.bessel import i0e
from jato.scipy.stats.arguments import named_operands


def _log_density(function: str, x: Any, kappa: Any) -> Any:
    x, kappa = named_operands(function, x=x, kappa=kappa)
    kappa = jnp.where(kappa >= 0, kappa, math.nan)
    # cos(x) - 1, without cancellation where a large kappa makes it count
    drop = -2 * jnp.square(jnp.sin(x / 2))
    return kappa * drop - jnp.log(i0e(kappa)) - math.log(2 * math.pi)


@public(name="vonmises.logpdf")
def logpdf(x: Any, kappa: Any) -> Any:
    """The logarithm of the density at the angle x (radians, any turn).

    >>> round(float(logpdf(0.0, 1.0)), 4)
    -1.0738
    """
    return _log_density("vonmises.logpdf", x, kappa)


@public(name="vonmises.pdf")
def pdf(x: Any, kappa: Any) -> Any:
    """The density at the angle x (radians, any turn).

    >>> round(float(pdf(0.0, 1.0)), 4)
    0.3417
    """
    return jnp.exp(_log_density("vonmises.pdf", x, kappa))
