"""Student's t distribution with df > 0 degrees of freedom.

density (1 + z**2 / df)**(-(df + 1) / 2) / (sqrt(df) B(df/2, 1/2)), z = (x - loc) / scale
"""

from __future__ import annotations

from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.special.gamma_functions import betaln
from jato.scipy.stats.arguments import log1p_square, positive, standardized


def _log_density(function: str, x: Any, df: Any, loc: Any, scale: Any) -> Any:
    z, df, scale = standardized(function, loc, scale, x=x, df=df)
    df = positive(df)
    constant = betaln(df / 2, 0.5) + 0.5 * jnp.log(df) + jnp.log(scale)
    return -0.5 * (df + 1) * log1p_square(z / jnp.sqrt(df)) - constant


@public(name="t.logpdf")
def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at x.

    >>> round(float(logpdf(0.0, 1.0)), 4)
    -1.1447
    """
    return _log_density("t.logpdf", x, df, loc, scale)


@public(name="t.pdf")
def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at x.

    >>> round(float(pdf(0.0, 1.0)), 4)
    0.3183
    """
    return jnp.exp(_log_density("t.pdf", x, df, loc, scale))
