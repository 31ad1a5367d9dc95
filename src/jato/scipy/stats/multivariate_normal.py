"""The normal distribution of vectors, through the Cholesky factor of the covariance."""

from __future__ import annotations

import math
from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.linalg import solve_triangular
from jato.scipy.stats.arguments import named_operands


def _log_density(function: str, x: Any, mean: Any, cov: Any) -> Any:
    x, mean, cov = named_operands(function, x=x, mean=mean, cov=cov)
    # a number for the mean and the covariance: numbers are distributed
    n = mean.shape[-1] if mean.shape else 1
    if mean.shape:
        if not x.shape or x.shape[-1] not in (1, n):
            raise ValueError(
                f"{function}: the last axis of argument 'x' must have size {n}, as that of 'mean', got "
                f"shape {x.shape}"
            )
        square, log_det = _squared_distance(function, x - mean, cov, n)
    elif cov.shape:
        raise ValueError(
            f"{function}: argument 'cov' must be a number, as 'mean' is, got shape {cov.shape}"
        )
    else:
        square, log_det = jnp.square(x - mean) / cov, jnp.log(cov)
    return -0.5 * (square + n * math.log(2 * math.pi) + log_det)


def _squared_distance(function: str, offset: Any, cov: Any, n: int) -> tuple[Any, Any]:
    """offset^T cov^-1 offset, log det cov"""
    if not cov.shape:
        return jnp.sum(jnp.square(offset), -1) / cov, n * jnp.log(cov)
    if len(cov.shape) < 2 or cov.shape[-2:] != (n, n):
        raise ValueError(
            f"{function}: argument 'cov' must be a number or have shape (..., {n}, {n}), got {cov.shape}"
        )
    factor = jnp.linalg.cholesky(cov)
    if len(cov.shape) == 2:  # one factor: the offsets are the columns of one right-hand side
        columns = jnp.moveaxis(offset, -1, 0)
        solved = solve_triangular(factor, columns.reshape(n, -1), lower=True)
        square = jnp.sum(jnp.square(solved), 0).reshape(columns.shape[1:])
    else:
        solved = solve_triangular(factor, offset[..., None], lower=True)
        square = jnp.sum(jnp.square(solved[..., 0]), -1)
    diagonal = jnp.diagonal(factor, axis1=-2, axis2=-1)
    return square, 2 * jnp.sum(jnp.log(diagonal), -1)


@public(static=("allow_singular",), name="multivariate_normal.logpdf")
def logpdf(x: Any, mean: Any, cov: Any, allow_singular: None = None) -> Any:
    """The logarithm of the density at the points x.

    x: shape (..., n); mean: (..., n); cov: positive definite, (..., n, n), or a number, the variance
    of each component.  If mean and cov are numbers, so are the points.  A covariance that is not
    positive definite gives NaN.  ValueError for shapes that do not fit, NotImplementedError if
    allow_singular is given.

    >>> import jato.numpy as jnp
    >>> round(float(logpdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2))), 4)
    -1.8379
    """
    if allow_singular is not None:
        raise NotImplementedError(
            "multivariate_normal.logpdf: argument 'allow_singular' is not supported; the covariance "
            "must be positive definite"
        )
    return _log_density("multivariate_normal.logpdf", x, mean, cov)


@public(name="multivariate_normal.pdf")
def pdf(x: Any, mean: Any, cov: Any) -> Any:
    """The density at the points x.  See `logpdf`.

    >>> import jato.numpy as jnp
    >>> round(float(pdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2))), 4)
    0.1592
    """
    return jnp.exp(_log_density("multivariate_normal.pdf", x, mean, cov))
