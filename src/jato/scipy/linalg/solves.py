"""Factors of Cholesky and LU, solves with them, inverses and determinants.

Factorizations and solves delegate to numpy.linalg and ops.  `overwrite_*` and `check_finite` are
accepted and ignored.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jato.base.dtypes import is_complex
from jato.jit.eager import public
from jato.numpy import linalg as jlinalg
from jato.numpy.factorizations import matrices
from jato.numpy.promote import broadcast, cast, common_shape, dtype_of, promote_dtypes
from jato.ops import elementwise, structural
from jato.ops import linalg as solvers
from jato.ops.indexing import take_along
from jato.ops.linalg import TRIANGULAR_SOLVE
from jato.ops.matrices import adjoint, identity_like, lower_part, matmul, upper_part
from jato.ops.shapes import broadcast_to
from jato.ops.sort import sort

_TRANSPOSES: dict[Any, int] = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}


@public(static=("lower", "overwrite_a", "check_finite"))
def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """The upper factor U with A = U^H U, or with `lower` the lower one, A = L L^H.

    >>> import jato.numpy as jnp
    >>> cholesky(jnp.array([[4.0]]))
    Array([[2.]], dtype=float32)
    """
    return jlinalg.cholesky(a, upper=not lower)


def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Any, bool]:
    """(factor, lower) for `cho_solve`.

    >>> import jato.numpy as jnp
    >>> cho_factor(jnp.array([[4.0]]))
    (Array([[2.]], dtype=float32), False)
    """
    return cholesky(a, lower=lower), lower


def _rows_of(function: str, a: Any, b: Any) -> tuple[Any, Any, bool]:
    """(a, b as matrices with equal batch axes, was b a vector?)."""
    vector = len(b.shape) == 1 or len(b.shape) == len(a.shape) - 1
    if not b.shape or b.shape[-1 if vector else -2] != a.shape[-1]:
        raise ValueError(
            f"{function}: argument 'b' must have as many rows as the matrix, got shapes {a.shape} and "
            f"{b.shape}"
        )
    b = structural.expand_dims(b, (len(b.shape),)) if vector else b
    lead = common_shape(function, (a.shape[:-2], b.shape[:-2]))
    return broadcast(a, (*lead, *a.shape[-2:])), broadcast(b, (*lead, *b.shape[-2:])), vector


def _result(x: Any, vector: bool) -> Any:
    return structural.reshape(x, x.shape[:-1]) if vector else x


def _triangular(a: Any, b: Any, lower: bool, operation: int = 0, unit: bool = False) -> Any:
    return TRIANGULAR_SOLVE.bind(
        a, b, left_side=True, lower=lower, transpose_a=operation > 0,
        conjugate_a=operation == 2 and is_complex(dtype_of(a)), unit_diagonal=unit,
    )  # fmt: skip


@public(static=("lower",))
def _cho_solve(factor: Any, b: Any, lower: bool) -> Any:
    factor, b = promote_dtypes("cho_solve", factor, b, inexact=True)
    factor, b, vector = _rows_of("cho_solve", matrices("cho_solve", factor, True, "c_and_lower"), b)
    y = _triangular(factor, b, lower, 0 if lower else 2)
    return _result(_triangular(factor, y, lower, 2 if lower else 0), vector)


def cho_solve(
    c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """The x of A x = b, with (factor, lower) of `cho_factor(A)`.

    >>> import jato.numpy as jnp
    >>> cho_solve(cho_factor(jnp.array([[4.0]])), jnp.array([8.0]))
    Array([2.], dtype=float32)
    """
    factor, lower = c_and_lower
    return _cho_solve(factor, b, lower=bool(lower))


@public(static=("trans", "lower", "unit_diagonal", "overwrite_b", "debug", "check_finite"))
def solve_triangular(
    a: Any,
    b: Any,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Any:
    """The x of op(A) x = b for a triangular A.

    trans: 0 or "N" for A, 1 or "T" for its transpose, 2 or "C" for its adjoint.
    Raises ValueError when shapes do not fit or for another trans.

    >>> import jato.numpy as jnp
    >>> solve_triangular(jnp.array([[2.0, 0.0], [1.0, 1.0]]), jnp.array([2.0, 2.0]), lower=True)
    Array([1., 1.], dtype=float32)
    """
    if trans not in _TRANSPOSES:
        raise ValueError(f"solve_triangular: argument 'trans' must be 0, 1 or 2, got {trans!r}")
    a, b = promote_dtypes("solve_triangular", a, b, inexact=True)
    a, b, vector = _rows_of("solve_triangular", matrices("solve_triangular", a, square=True), b)
    return _result(_triangular(a, b, lower, _TRANSPOSES[trans], unit_diagonal), vector)


@public(static=("permute_l", "overwrite_a", "check_finite"))
def lu(
    a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """A = P L U: (P, L, U), or with `permute_l` (P L, U).

    >>> import jato.numpy as jnp
    >>> lu(jnp.array([[1.0, 0.0], [2.0, 2.0]]))[2]
    Array([[ 2.,  2.],
           [ 0., -1.]], dtype=float32)
    """
    a = matrices("lu", a)
    m, n = a.shape[-2:]
    k = min(m, n)
    factors, _, permutation = solvers.lu(a)
    rank = len(a.shape)
    lower = lower_part(structural.slice_in_dim(factors, 0, k, axis=-1), strict=True)
    lower = elementwise.add(lower, identity_like(lower))
    upper = upper_part(structural.slice_in_dim(factors, 0, k, axis=-2))
    shape = (*a.shape[:-1], m)
    column = broadcast_to(permutation, shape, (*range(rank - 2), rank - 1))
    row = structural.broadcasted_iota(np.dtype("int32"), shape, rank - 2)
    order = cast(elementwise.eq(column, row), dtype_of(a))
    return (matmul(order, lower), upper) if permute_l else (order, lower, upper)


@public(static=("overwrite_a", "check_finite"))
def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, Any]:
    """(factors, pivots) for `lu_solve`.

    >>> import jato.numpy as jnp
    >>> lu_factor(jnp.array([[2.0]]))[1]
    Array([0], dtype=int32)
    """
    factors, pivots, _ = solvers.lu(matrices("lu_factor", a, square=True))
    return factors, pivots


@public(static=("trans",))
def _lu_solve(factors: Any, pivots: Any, b: Any, trans: int) -> Any:
    factors, b = promote_dtypes("lu_solve", factors, b, inexact=True)
    factors, b, vector = _rows_of("lu_solve", matrices("lu_solve", factors, True, "lu_and_piv"), b)
    n = factors.shape[-1]
    pivots = broadcast(pivots, (*factors.shape[:-2], n))
    permutation = solvers.lu_pivots_to_permutation(pivots, n)
    rank = len(b.shape)
    if trans:
        y = _triangular(factors, b, False, trans)
        y = _triangular(factors, y, True, trans, True)
        permutation = _inverse_of(permutation)
        return _result(_rows(y, permutation, rank), vector)
    y = _triangular(factors, _rows(b, permutation, rank), True, 0, True)
    return _result(_triangular(factors, y, False), vector)


def _inverse_of(permutation: Any) -> Any:
    rank = len(permutation.shape)
    own = structural.broadcasted_iota(dtype_of(permutation), permutation.shape, rank - 1)
    return sort((permutation, own), dimension=-1, num_keys=1)[1]


def _rows(x: Any, permutation: Any, rank: int) -> Any:
    return take_along(x, broadcast_to(permutation, x.shape, tuple(range(rank - 1))), rank - 2)


def lu_solve(
    lu_and_piv: tuple[Any, Any],
    b: Any,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """The x of op(A) x = b, with (factors, pivots) of `lu_factor(A)`; trans as in solve_triangular.

    >>> import jato.numpy as jnp
    >>> lu_solve(lu_factor(jnp.array([[2.0]])), jnp.array([4.0]))
    Array([2.], dtype=float32)
    """
    if trans not in _TRANSPOSES:
        raise ValueError(f"lu_solve: argument 'trans' must be 0, 1 or 2, got {trans!r}")
    factors, pivots = lu_and_piv
    return _lu_solve(factors, pivots, b, trans=_TRANSPOSES[trans])


@public(static=("lower", "overwrite_a", "overwrite_b", "debug", "check_finite", "assume_a"))
def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Any:
    """The x of A x = b; assume_a="pos": A is Hermitian positive definite, `lower` the triangle read.

    >>> import jato.numpy as jnp
    >>> solve(jnp.array([[2.0]]), jnp.array([4.0]))
    Array([2.], dtype=float32)
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(
            f"solve: argument 'assume_a' must be 'gen', 'sym', 'her' or 'pos', got {assume_a!r}"
        )
    if assume_a != "pos":
        return jlinalg.solve(a, b)
    a, b = promote_dtypes("solve", a, b, inexact=True)
    a, b, vector = _rows_of("solve", matrices("solve", a, square=True), b)
    factor = solvers.cholesky(a if lower else adjoint(a), symmetrize_input=False)
    return _result(_triangular(factor, _triangular(factor, b, True), True, 2), vector)


@public(static=("overwrite_a", "check_finite"))
def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The inverses of square matrices.

    >>> import jato.numpy as jnp
    >>> inv(jnp.array([[2.0]]))
    Array([[0.5]], dtype=float32)
    """
    return jlinalg.inv(a)


@public(static=("overwrite_a", "check_finite"))
def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The determinants of square matrices.

    >>> import jato.numpy as jnp
    >>> det(jnp.array([[2.0]]))
    Array(2., dtype=float32)
    """
    return jlinalg.det(a)
