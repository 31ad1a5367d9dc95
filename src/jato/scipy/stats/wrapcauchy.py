"""The wrapped Cauchy distribution on [0, 2 pi] with 0 < c < 1 (NaN for another c).

density (1 - c**2) / (2 pi (1 + c**2 - 2 c cos(x)))
"""

from __future__ import annotations

import math
from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.stats.arguments import named_operands, on_support


def _log_density(function: str, x: Any, c: Any) -> Any:
    x, c = named_operands(function, x=x, c=c)
    c = jnp.where((c > 0) & (c < 1), c, math.nan)

    def formula(x: Any) -> Any:
        # 1 + c**2 - 2 c cos(x), without cancellation near c = 1 and x = 0
        spread = jnp.square(1 - c) + 4 * c * jnp.square(jnp.sin(x / 2))
        return jnp.log1p(-c) + jnp.log1p(c) - jnp.log(spread) - math.log(2 * math.pi)

    return on_support(x, (x < 0) | (x > 2 * math.pi), formula, 0)


@public(name="wrapcauchy.logpdf")
def logpdf(x: Any, c: Any) -> Any:
    """The logarithm of the density at the angle x (radians).

    >>> round(float(logpdf(0.0, 0.5)), 4)
    -0.7393
    """
    return _log_density("wrapcauchy.logpdf", x, c)


@public(name="wrapcauchy.pdf")
def pdf(x: Any, c: Any) -> Any:
    """The density at the angle x (radians).

    >>> round(float(pdf(0.0, 0.5)), 4)
    0.4775
    """
    return jnp.exp(_log_density("wrapcauchy.pdf", x, c))
