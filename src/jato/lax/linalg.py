"""jato.lax.linalg: factorizations and solves under the names of jax.lax.linalg.

They are defined in jato/ops/linalg.py and jato/ops/spectral.py, qdwh in polar.py; what is composed
of these in a few lines is below.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import check
from jato.core.types import type_of
from jato.lax.polar import qdwh as qdwh
from jato.lax.primitives import (
    cholesky_p as cholesky_p,
    eig_p as eig_p,
    eigh_p as eigh_p,
    hessenberg_p as hessenberg_p,
    householder_product_p as householder_product_p,
    lu_p as lu_p,
    lu_pivots_to_permutation_p as lu_pivots_to_permutation_p,
    ormqr_p as ormqr_p,
    qr_p as qr_p,
    schur_p as schur_p,
    svd_p as svd_p,
    triangular_solve_p as triangular_solve_p,
    tridiagonal_p as tridiagonal_p,
    tridiagonal_solve_p as tridiagonal_solve_p,
)
from jato.ops.elementwise import add, conj, eq, mul, select, sign
from jato.ops.linalg import (
    cholesky as cholesky,
    lu as lu,
    lu_pivots_to_permutation as lu_pivots_to_permutation,
    triangular_solve as triangular_solve,
    tridiagonal_solve as tridiagonal_solve,
)
from jato.ops.matrices import diagonal, lower_part, matmul, row_scaled, swapped, upper_part
from jato.ops.spectral import (
    EighImplementation as EighImplementation,
    EigImplementation as EigImplementation,
    SvdAlgorithm as SvdAlgorithm,
    eig as eig,
    eigh as eigh,
    hessenberg as hessenberg,
    householder_product as householder_product,
    ormqr as ormqr,
    qr as qr,
    schur as schur,
    svd as svd,
    tridiagonal as tridiagonal,
)
from jato.ops.structural import concatenate, expand_dims, full_like


def cholesky_update(r_matrix: Any, w_vector: Any) -> Any:
    """The upper factor of R^T R + w w^T: the R of the QR decomposition of R with w as a last row.

    r_matrix: [..., n, n], upper triangular; w_vector: [..., n].  Complex ones: R^H R + w w^H.
    Raises: ValueError for other shapes; TypeError for other dtypes.

    >>> import numpy as np
    >>> float(cholesky_update(np.array([[3.0]], np.float32), np.array([4.0], np.float32))[0, 0])
    5.0
    """
    r, w = type_of(r_matrix), type_of(w_vector)
    check(
        r.ndim >= 2 and r.shape[:-1] == w.shape and r.shape[-1] == r.shape[-2],
        ValueError,
        "cholesky_update: expected r_matrix to hold square matrices and w_vector a vector for each, "
        f"got {r} and {w}",
    )
    row = expand_dims(w_vector, (w.ndim - 1,))
    if dtypes.is_complex(w.dtype):
        row = conj(row)
    _, updated = qr(concatenate([upper_part(r_matrix), row], w.ndim - 1), full_matrices=False)
    # the diagonal is real; that of a factor is positive
    signs = sign(diagonal(updated))
    return row_scaled(updated, select(eq(signs, full_like(signs, 0)), full_like(signs, 1), signs))


def symmetric_product(
    a_matrix: Any, c_matrix: Any, *, alpha: float = 1.0, beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Any:  # fmt: skip
    """alpha A A^T + beta C; only its lower triangle counts unless `symmetrize_output`.

    a_matrix: [..., m, n]; c_matrix: [..., m, m], of the same dtype; alpha, beta: numbers.
    Returns: [..., m, m].  Raises: ValueError when shapes or dtypes do not fit.

    >>> import numpy as np
    >>> a = np.array([[1.0, 2.0]], np.float32)
    >>> symmetric_product(a, np.zeros((1, 1), np.float32)).tolist()
    [[5.0]]
    """
    a, c = type_of(a_matrix), type_of(c_matrix)
    check(
        a.ndim >= 2 and c.shape == (*a.shape[:-1], a.shape[-2]) and a.dtype == c.dtype,
        ValueError,
        "symmetric_product: expected c_matrix to hold square matrices of as many rows as those of "
        f"a_matrix, and its dtype, got {a} and {c}",
    )
    dtype = a.dtype
    product = mul(matmul(a_matrix, swapped(a_matrix)), np.asarray(alpha, dtype)[()])
    total = add(product, mul(c_matrix, np.asarray(beta, dtype)[()]))
    if not symmetrize_output:
        return total
    lower = lower_part(total)
    return add(lower, swapped(lower_part(total, strict=True)))
