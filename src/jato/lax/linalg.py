"""jato.lax.linalg: factorizations and solves under the names of jax.lax.linalg.

Only names: they are defined in jato/ops/linalg.py and jato/ops/spectral.py, but for what is
composed of these, below.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jato.core.types import type_of
from jato.ops.elementwise import add, mul
from jato.ops.linalg import (
    cholesky as cholesky,
    lu as lu,
    lu_pivots_to_permutation as lu_pivots_to_permutation,
    triangular_solve as triangular_solve,
    tridiagonal_solve as tridiagonal_solve,
)
from jato.ops.matrices import adjoint, lower_part, matmul, swapped
from jato.ops.spectral import (
    eig as eig,
    eigh as eigh,
    hessenberg as hessenberg,
    householder_product as householder_product,
    qr as qr,
    schur as schur,
    svd as svd,
)
from jato.ops.structural import expand_dims


def cholesky_update(r_matrix: Any, w_vector: Any) -> Any:
    """The upper factor of R^T R + w w^T.

    >>> import numpy as np
    >>> cholesky_update(np.array([[3.0]], np.float32), np.array([4.0], np.float32)).tolist()
    [[5.0]]
    """
    w = expand_dims(w_vector, (type_of(w_vector).ndim,))
    total = add(matmul(adjoint(r_matrix), r_matrix), matmul(w, adjoint(w)))
    return adjoint(cholesky(total))


def symmetric_product(
    a_matrix: Any, c_matrix: Any, *, alpha: float = 1.0, beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Any:  # fmt: skip
    """alpha A A^T + beta C; only its lower triangle counts unless `symmetrize_output`.

    >>> import numpy as np
    >>> a = np.array([[1.0, 2.0]], np.float32)
    >>> symmetric_product(a, np.zeros((1, 1), np.float32)).tolist()
    [[5.0]]
    """
    dtype = type_of(a_matrix).dtype
    product = mul(matmul(a_matrix, swapped(a_matrix)), np.asarray(alpha, dtype)[()])
    total = add(product, mul(c_matrix, np.asarray(beta, dtype)[()]))
    if not symmetrize_output:
        return total
    lower = lower_part(total)
    return add(lower, swapped(lower_part(total, strict=True)))
