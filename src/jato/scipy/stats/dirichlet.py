"""The Dirichlet distribution on the simplex: density prod x[i]**(alpha[i]-1) / B(alpha)."""

from __future__ import annotations

import math
from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.special.entropies import xlogy
from jato.scipy.special.gamma_functions import gammaln
from jato.scipy.stats.arguments import named_operands, positive


def _points(function: str, x: Any, alpha: Any) -> Any:
    """x with as many components as alpha: a last one that is not given fills up to 1."""
    if len(alpha.shape) != 1:
        raise ValueError(f"{function}: argument 'alpha' must be a vector, got shape {alpha.shape}")
    k = alpha.shape[0]
    if not x.shape or x.shape[0] not in (k, k - 1):
        raise ValueError(
            f"{function}: the first axis of argument 'x' must hold the {k} components, or the first "
            f"{k - 1}, got shape {x.shape}"
        )
    if x.shape[0] == k:
        return x
    return jnp.concatenate([x, 1 - jnp.sum(x, 0, keepdims=True)])


def _log_density(function: str, x: Any, alpha: Any) -> Any:
    x, alpha = named_operands(function, x=x, alpha=alpha)
    x, alpha = _points(function, x, alpha), positive(alpha)
    tolerance = max(1e-6, 8 * float(jnp.finfo(x.dtype).eps))
    outside = jnp.any(x < 0, 0) | (jnp.abs(jnp.sum(x, 0) - 1) > tolerance)
    inner = jnp.where(outside, 1 / x.shape[0], x)
    powers = xlogy(alpha.reshape(-1, *[1] * (len(x.shape) - 1)) - 1, inner)
    value = jnp.sum(powers, 0) + gammaln(jnp.sum(alpha)) - jnp.sum(gammaln(alpha))
    return jnp.where(outside & (value == value), -math.inf, value)


@public(name="dirichlet.logpdf")
def logpdf(x: Any, alpha: Any) -> Any:
    """The logarithm of the density at the points x.

    alpha: positive, of shape (k,); x: shape (k, ...), or (k-1, ...) without the last component.
    -inf unless the components are >= 0 and their sum is 1 (up to 1e-6).  ValueError for other shapes.

    >>> import jato.numpy as jnp
    >>> round(float(logpdf(jnp.array([0.25, 0.75]), jnp.array([2.0, 2.0]))), 4)
    0.1178
    """
    return _log_density("dirichlet.logpdf", x, alpha)


@public(name="dirichlet.pdf")
def pdf(x: Any, alpha: Any) -> Any:
    """The density at the points x.  See `logpdf`.

    >>> import jato.numpy as jnp
    >>> round(float(pdf(jnp.array([0.25, 0.75]), jnp.array([2.0, 2.0]))), 4)
    1.125
    """
    return jnp.exp(_log_density("dirichlet.pdf", x, alpha))
