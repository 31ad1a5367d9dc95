"""Matrices in the last two axes: the products, transposes and triangles that the rules of linear
algebra (linalg.py, spectral.py) are written in.

Data: arrays [..., m, n]; leading axes are batch axes, equal for all operands of one call.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jato.base import dtypes
from jato.core.types import type_of
from jato.ops.contract import batch_matmul
from jato.ops.elementwise import add, conj, eq, ge, mul, select
from jato.ops.shapes import broadcast_to, scalar_of
from jato.ops.structural import broadcasted_iota, full_like, reduce_sum, transpose

_INDEX = np.dtype("int32")


def matmul(*matrices: Any) -> Any:
    """The product of matrices from left to right, for each index of the leading axes."""
    product = matrices[0]
    for matrix in matrices[1:]:
        product = batch_matmul(product, matrix)
    return product


def swapped(x: Any) -> Any:
    """The transposed matrices."""
    rank = type_of(x).ndim
    return transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def conjugated(x: Any) -> Any:
    """The complex conjugate; real arrays as they are."""
    return conj(x) if dtypes.is_complex(type_of(x).dtype) else x


def adjoint(x: Any) -> Any:
    """The conjugate transposed matrices."""
    return conjugated(swapped(x))


def _offsets(x: Any) -> tuple[Any, Any]:
    """(row, column) of each element, without the batch axes."""
    shape = type_of(x).shape[-2:]
    return broadcasted_iota(_INDEX, shape, 0), broadcasted_iota(_INDEX, shape, 1)


def where_matrix(mask: Any, x: Any, y: Any) -> Any:
    """select by a mask [m, n] for all matrices alike."""
    rank = type_of(x).ndim
    return select(broadcast_to(mask, type_of(x).shape, (rank - 2, rank - 1)), x, y)


def lower_part(x: Any, strict: bool = False) -> Any:
    """The lower triangles, zero elsewhere; `strict`: without the diagonal."""
    row, column = _offsets(x)
    mask = ge(row, add(column, _INDEX.type(1)) if strict else column)
    return where_matrix(mask, x, full_like(x, 0))


def upper_part(x: Any, strict: bool = False) -> Any:
    """The upper triangles, zero elsewhere; `strict`: without the diagonal."""
    row, column = _offsets(x)
    mask = ge(column, add(row, _INDEX.type(1)) if strict else row)
    return where_matrix(mask, x, full_like(x, 0))


def on_diagonal(x: Any, value: Any) -> Any:
    """The matrices with `value` (a number, or matrices) in place of their diagonals."""
    row, column = _offsets(x)
    if isinstance(value, (int, float)):
        value = full_like(x, value)
    return where_matrix(eq(row, column), value, x)


def identity_like(x: Any) -> Any:
    """Matrices of ones on the diagonal, in the shape and dtype of x."""
    return on_diagonal(full_like(x, 0), 1)


def diagonal(x: Any) -> Any:
    """The diagonals of [..., m, n]: [..., min(m, n)]."""
    *lead, m, n = type_of(x).shape
    return reduce_sum(on_diagonal_only(x), (len(lead) + (0 if n <= m else 1),))


def on_diagonal_only(x: Any) -> Any:
    """The matrices with zeros off the diagonal."""
    row, column = _offsets(x)
    return where_matrix(eq(row, column), x, full_like(x, 0))


def column_scaled(x: Any, factors: Any) -> Any:
    """x @ diag(factors), for factors [..., n]."""
    *lead, _, _ = shape = type_of(x).shape
    return mul(x, broadcast_to(factors, shape, (*range(len(lead)), len(lead) + 1)))


def row_scaled(x: Any, factors: Any) -> Any:
    """diag(factors) @ x, for factors [..., m]."""
    *lead, _, _ = shape = type_of(x).shape
    return mul(x, broadcast_to(factors, shape, tuple(range(len(lead) + 1))))


def hermitian_from_lower(x: Any) -> Any:
    """The Hermitian matrices whose lower triangles are those of x."""
    strict = lower_part(x, strict=True)
    return add(add(strict, adjoint(strict)), real_diagonal(x))


def real_diagonal(x: Any) -> Any:
    """Only the diagonals, and of these the real parts."""
    kept = on_diagonal_only(x)
    return hermitian_part(kept) if dtypes.is_complex(type_of(x).dtype) else kept


def hermitian_part(x: Any) -> Any:
    """(x + its adjoint) / 2."""
    return halved(add(x, adjoint(x)))


def halved(x: Any) -> Any:
    return mul(x, scalar_of(0.5, type_of(x).dtype))
