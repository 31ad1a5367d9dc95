"""Distributions of vectors and matrices that need a matrix factorization."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import jato.numpy as jnp
from jato.base import dtypes
from jato.jit.eager import public
from jato.numpy.promote import common_shape, dtype_of, normalize_shape, promote_dtypes
from jato.random.arguments import float_dtype, sample_shape
from jato.random.continuous import normal
from jato.random.keys import single_key


@public(static=("shape", "dtype", "method", "out_sharding"))
def multivariate_normal(
    key: Any, mean: Any, cov: Any, shape: Any = None, dtype: Any = None,
    method: str = "cholesky", *, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """Samples of the normal distribution with a mean vector and a covariance matrix.

    mean: [..., n]; cov: [..., n, n], symmetric and positive semidefinite; shape: of the batch
    (default: that of mean and cov, broadcast); method: how cov is factorized, "cholesky", "eigh"
    or "svd" (the last two also for singular matrices).  Returns shape + (n,).

    >>> import jato, jato.numpy as jnp
    >>> multivariate_normal(jato.random.key(0), jnp.zeros(2), jnp.eye(2), (3,)).shape
    (3, 2)
    """
    name = "multivariate_normal"
    if method not in ("svd", "eigh", "cholesky"):
        raise ValueError(f"{name}: method must be 'svd', 'eigh' or 'cholesky', got {method!r}")
    key = single_key(name, key)
    mean, cov = promote_dtypes(name, mean, cov, inexact=True)
    dtype = float_dtype(name, dtype_of(mean) if dtype is None else dtype)
    if len(mean.shape) < 1 or len(cov.shape) < 2 or cov.shape[-2:] != mean.shape[-1:] * 2:
        raise ValueError(
            f"{name}: mean must have shape (..., n) and cov (..., n, n), got {mean.shape} and "
            f"{cov.shape}"
        )
    batches = [np.empty(s, np.bool_) for s in (mean.shape[:-1], cov.shape[:-2])]
    if shape is None:
        shape = common_shape(name, [b.shape for b in batches])
    else:
        shape = sample_shape(name, shape, *batches)
    if method == "svd":
        u, s, _ = jnp.linalg.svd(cov)
        factor = u * jnp.sqrt(s[..., None, :])
    elif method == "eigh":
        w, v = jnp.linalg.eigh(cov)
        factor = v * jnp.sqrt(w[..., None, :])
    else:
        factor = jnp.linalg.cholesky(cov)
    z = normal(key, (*shape, mean.shape[-1]), dtype)
    return mean + jnp.einsum("...ij,...j->...i", factor, z)


@public(static=("n", "shape", "dtype", "m", "out_sharding"))
def orthogonal(
    key: Any, n: int, shape: Any = (), dtype: Any = None, m: int | None = None,
    *, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """Matrices [n, m] with orthonormal rows or columns, uniform among them (Haar's measure).

    n, m: sizes (default m = n); shape: of the batch; dtype: float or complex.

    >>> import jato
    >>> orthogonal(jato.random.key(0), 3).shape
    (3, 3)
    """
    key = single_key("orthogonal", key)
    n = operator.index(n)
    m = n if m is None else operator.index(m)
    dtype = dtypes.canonicalize(np.float64 if dtype is None else dtype)
    z = normal(key, (*normalize_shape("orthogonal", shape), max(n, m), min(n, m)), dtype)
    q, r = jnp.linalg.qr(z)
    # the signs make the factorization unique, and so the distribution uniform
    signs = jnp.sign(jnp.diagonal(r, axis1=-2, axis2=-1))
    x = q * jnp.expand_dims(signs, -2)
    return jnp.swapaxes(x, -1, -2) if n < m else x
