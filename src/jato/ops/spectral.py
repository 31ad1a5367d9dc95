"""Orthogonal factorizations and spectra: qr, svd, eigh, eig, schur, hessenberg.

    qr      A = Q R                      eigh   A V = V diag(w), A Hermitian
    svd     A = U diag(s) V^H            eig    A V = V diag(w)
    schur   A = Q T Q^H                  hessenberg, householder_product: LAPACK's reflectors

Matrices are the last two axes.  Derivatives: M. Giles (2008), as in linalg.py; for complex
matrices, where factors are fixed up to phases only, those of F. Q. Wan and S. X. Zhang,
"Automatic differentiation for complex valued SVD" (2019).  Where eigenvalues or singular values
coincide, the derivative of the vectors does not exist; terms of such pairs count as zero, so that
functions which do not depend on the choice of vectors are differentiated right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import fail
from jato.core.types import Zero, array_type, tangent_type, type_of
from jato.ops import lapack
from jato.ops.convert import convert_element_type
from jato.ops.elementwise import add, div, eq, mul, real, select, sub
from jato.ops.families import is_zero_tangent
from jato.ops.linalg import LU_FACTOR, LU_SOLVE, TRIANGULAR_SOLVE, MatrixPrimitive, SingleResult
from jato.ops.matrices import (
    adjoint,
    column_scaled,
    diagonal,
    halved,
    hermitian_from_lower,
    hermitian_part,
    lower_part,
    matmul,
    on_diagonal_only,
    row_scaled,
)
from jato.ops.opaque import zero_tangents
from jato.ops.shapes import broadcast_to
from jato.ops.structural import concatenate, full_like, slice_in_dim, stop_gradient


def _real_type(x: Any, shape: tuple[int, ...]) -> Any:
    return array_type(shape, np.zeros((), x.dtype).real.dtype)


def _complex_type(x: Any, shape: tuple[int, ...]) -> Any:
    return array_type(shape, np.result_type(x.dtype, np.complex64))


def _real_part(x: Any) -> Any:
    return real(x) if dtypes.is_complex(type_of(x).dtype) else x


def _as(x: Any, dtype: Any) -> Any:
    return x if type_of(x).dtype == dtype else convert_element_type(x, dtype)


def _inverse_or_zero(x: Any) -> Any:
    """1 / x, and 0 where x is 0."""
    zero = eq(x, full_like(x, 0))
    return select(zero, full_like(x, 0), div(full_like(x, 1), select(zero, full_like(x, 1), x)))


def _differences(values: Any) -> Any:
    """values[j] - values[i] at [..., i, j]."""
    shape = (*type_of(values).shape, type_of(values).shape[-1])
    rank = len(shape)
    by_column = broadcast_to(values, shape, (*range(rank - 2), rank - 1))
    by_row = broadcast_to(values, shape, tuple(range(rank - 1)))
    return sub(by_column, by_row)


class QR(MatrixPrimitive):
    """[Q, R] of [..., m, n]; `full_matrices`: Q is m x m, else m x min(m, n)."""

    def result_type(self, a: Any, *, full_matrices: bool) -> Any:
        self.check_matrices("a", a)
        *lead, m, n = a.shape
        k = m if full_matrices else min(m, n)
        return [array_type((*lead, m, k), a.dtype), array_type((*lead, k, n), a.dtype)]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, full_matrices: bool) -> Any:
        outs = self.bind(*primals, full_matrices=full_matrices)
        (change,) = tangents
        if is_zero_tangent(change):
            return outs, zero_tangents(outs)
        m, n = type_of(primals[0]).shape[-2:]
        if full_matrices and m > n:
            self.derivative_missing(
                "the full factors of tall matrices", "Pass full_matrices=False (mode='reduced')."
            )
        q, r = outs
        if m >= n:
            return outs, list(self.square_tangents(q, r, change))
        # A = [A1 A2] with a square A1 = Q R1, and R2 = Q^H A2
        first = slice_in_dim(r, 0, m, axis=-1)
        change_q, change_first = self.square_tangents(q, first, slice_in_dim(change, 0, m, axis=-1))
        rest = matmul(adjoint(change_q), slice_in_dim(primals[0], m, n, axis=-1))
        rest = add(rest, matmul(adjoint(q), slice_in_dim(change, m, n, axis=-1)))
        rank = type_of(r).ndim
        return outs, [change_q, concatenate([change_first, rest], rank - 1)]

    @staticmethod
    def square_tangents(q: Any, r: Any, change: Any) -> tuple[Any, Any]:
        """(dQ, dR) for a square R: with C = Q^H dA R^-1, dQ = dA R^-1 - Q (C - W), W = -W^H."""
        scaled = TRIANGULAR_SOLVE.bind(
            r, change, left_side=False, lower=False, transpose_a=False, conjugate_a=False,
            unit_diagonal=False,
        )  # fmt: skip
        inner = matmul(adjoint(q), scaled)
        low = lower_part(inner, strict=True)
        turn = sub(low, adjoint(low))
        if dtypes.is_complex(type_of(q).dtype):
            own = on_diagonal_only(inner)
            turn = add(turn, sub(own, hermitian_part(own)))
        grow = sub(inner, turn)
        return sub(scaled, matmul(q, grow)), matmul(grow, r)

    def host(self, a: np.ndarray, *, full_matrices: bool) -> list[np.ndarray]:
        return lapack.qr(a, full_matrices)


class PivotedQR(MatrixPrimitive):
    """[Q, R, order of columns] with A[:, order] = Q R and a falling diagonal of R."""

    def result_type(self, a: Any, *, full_matrices: bool) -> Any:
        order = array_type((*a.shape[:-2], a.shape[-1]), np.int32)
        return [*QR_FACTOR.result_type(a, full_matrices=full_matrices), order]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        outs = self.bind(*primals, **params)
        if not is_zero_tangent(tangents[0]):
            self.derivative_missing("qr with pivoting", "Use qr(x) without pivoting.")
        return outs, zero_tangents(outs)

    def host(self, a: np.ndarray, *, full_matrices: bool) -> list[np.ndarray]:
        return lapack.qr_pivoted(a, full_matrices)


class SVD(MatrixPrimitive):
    """[s] or, with `compute_uv`, [s, U, V^H], singular values falling."""

    def result_type(self, a: Any, *, full_matrices: bool, compute_uv: bool) -> Any:
        self.check_matrices("a", a)
        *lead, m, n = a.shape
        k = min(m, n)
        values = _real_type(a, (*lead, k))
        if not compute_uv:
            return [values]
        left, right = (m, n) if full_matrices else (k, k)
        return [
            values, array_type((*lead, m, left), a.dtype), array_type((*lead, right, n), a.dtype)
        ]  # fmt: skip

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, full_matrices: bool,
        compute_uv: bool,
    ) -> Any:  # fmt: skip
        (change,) = tangents
        if is_zero_tangent(change):
            outs = self.bind(*primals, full_matrices=full_matrices, compute_uv=compute_uv)
            return outs, zero_tangents(outs)
        m, n = type_of(primals[0]).shape[-2:]
        if full_matrices and compute_uv and m != n:
            self.derivative_missing(
                "the full singular vectors of matrices that are not square",
                "Pass full_matrices=False.",
            )
        s, u, vh = self.bind(*primals, full_matrices=False, compute_uv=True)
        inner = matmul(adjoint(u), change, adjoint(vh))  # U^H dA V
        change_s = _real_part(diagonal(inner))
        if not compute_uv:
            return [s], [change_s]
        change_u, change_v = self.vector_tangents(s, u, vh, inner, change)
        return [s, u, vh], [change_s, change_u, adjoint(change_v)]

    @staticmethod
    def vector_tangents(s: Any, u: Any, vh: Any, inner: Any, change: Any) -> tuple[Any, Any]:
        """(dU, dV) of the thin factors."""
        dtype = type_of(u).dtype
        m, n = type_of(u).shape[-2], type_of(vh).shape[-1]
        values = _as(s, dtype)
        # F[i, j] = 1 / (s[j]^2 - s[i]^2), with the difference as a product: no cancellation
        sums = _sums(s)
        gaps = _as(_inverse_or_zero(mul(_differences(s), sums)), dtype)
        right, left = column_scaled(inner, values), row_scaled(inner, values)
        turn_u = mul(gaps, add(right, adjoint(right)))
        turn_v = mul(gaps, add(left, adjoint(left)))
        inverse = _as(_inverse_or_zero(s), dtype)
        if dtypes.is_complex(dtype):
            own = on_diagonal_only(inner)
            phases = halved(sub(own, adjoint(own)))
            turn_u = add(turn_u, column_scaled(phases, inverse))
        change_u, change_v = matmul(u, turn_u), matmul(adjoint(vh), turn_v)
        if m > n:  # the part of dA V outside of the span of U
            moved = matmul(change, adjoint(vh))
            outside = sub(moved, matmul(u, adjoint(u), moved))
            change_u = add(change_u, column_scaled(outside, inverse))
        if n > m:
            moved = matmul(adjoint(change), u)
            outside = sub(moved, matmul(adjoint(vh), vh, moved))
            change_v = add(change_v, column_scaled(outside, inverse))
        return change_u, change_v

    def host(self, a: np.ndarray, *, full_matrices: bool, compute_uv: bool) -> list[np.ndarray]:
        return lapack.svd(a, full_matrices) if compute_uv else lapack.singular_values(a)


def _sums(values: Any) -> Any:
    """values[j] + values[i] at [..., i, j]."""
    shape = (*type_of(values).shape, type_of(values).shape[-1])
    rank = len(shape)
    by_column = broadcast_to(values, shape, (*range(rank - 2), rank - 1))
    return add(by_column, broadcast_to(values, shape, tuple(range(rank - 1))))


class Eigh(MatrixPrimitive):
    """[vectors, values] of Hermitian matrices, values rising; reads the lower triangle."""

    def result_type(self, a: Any) -> Any:
        self.check_matrices("a", a, square=True)
        return [array_type(a.shape, a.dtype), _real_type(a, a.shape[:-1])]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        vectors, values = self.bind(*primals)
        if is_zero_tangent(tangents[0]):
            return [vectors, values], zero_tangents([vectors, values])
        inner = matmul(adjoint(vectors), hermitian_from_lower(tangents[0]), vectors)
        gaps = _as(_inverse_or_zero(_differences(values)), type_of(vectors).dtype)
        change = matmul(vectors, mul(gaps, inner))
        return [vectors, values], [change, _real_part(diagonal(inner))]

    def host(self, a: np.ndarray) -> list[np.ndarray]:
        return lapack.eigh(a)


class Eig(MatrixPrimitive):
    """[values, left vectors if `left`, right vectors if `right`], complex, in LAPACK's order.

    any_scale: the caller does not depend on the scale of the right vectors.  Only then have they a
    derivative here, since LAPACK's choice of their phase is not smooth."""

    def result_type(self, a: Any, *, left: bool, right: bool, any_scale: bool) -> Any:
        self.check_matrices("a", a, square=True)
        vectors = _complex_type(a, a.shape)
        return [_complex_type(a, a.shape[:-1])] + [vectors] * (left + right)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, left: bool, right: bool,
        any_scale: bool,
    ) -> Any:  # fmt: skip
        if is_zero_tangent(tangents[0]):
            outs = self.bind(*primals, left=left, right=right, any_scale=any_scale)
            return outs, zero_tangents(outs)
        if left or (right and not any_scale):
            self.derivative_missing(
                "eigenvectors of general matrices",
                "Use eigvals for the eigenvalues alone, or eigh for Hermitian matrices.",
            )
        values, vectors = self.bind(*primals, left=False, right=True, any_scale=True)
        change = matmul(_as(tangents[0], type_of(vectors).dtype), vectors)
        factors, pivots, _ = LU_FACTOR.bind(stop_gradient(vectors))
        inner = LU_SOLVE.bind(vectors, factors, pivots, change, operation=0)
        outs, moved = [values, vectors], [diagonal(inner)]
        if not right:
            return outs[:1], moved
        gaps = _inverse_or_zero(_differences(values))
        return outs, [*moved, matmul(vectors, mul(gaps, inner))]

    def host(
        self, a: np.ndarray, *, left: bool, right: bool, any_scale: bool
    ) -> list[np.ndarray]:
        return lapack.eig(a, left, right)


class _NotDifferentiable(MatrixPrimitive):
    """No derivative is defined, other than zero for a zero tangent."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        outs = self.bind(*primals, **params)
        if not all(map(is_zero_tangent, tangents)):
            self.derivative_missing(self.name)
        if self.multiple_results:
            return outs, zero_tangents(outs)
        return outs, Zero(tangent_type(type_of(outs)))


class Schur(_NotDifferentiable):
    """[T] or [T, Q] with A = Q T Q^H; the real form for real matrices."""

    def result_type(self, a: Any, *, vectors: bool) -> Any:
        self.check_matrices("a", a, square=True)
        return [array_type(a.shape, a.dtype)] * (1 + vectors)

    def host(self, a: np.ndarray, *, vectors: bool) -> list[np.ndarray]:
        return lapack.schur(a, vectors)


class Hessenberg(_NotDifferentiable):
    """[H above, reflectors below the first subdiagonal; their factors]."""

    def result_type(self, a: Any) -> Any:
        self.check_matrices("a", a, square=True)
        factors = (*a.shape[:-2], max(a.shape[-1] - 1, 0))
        return [array_type(a.shape, a.dtype), array_type(factors, a.dtype)]

    def host(self, a: np.ndarray) -> list[np.ndarray]:
        return lapack.hessenberg(a)


class Geqrf(_NotDifferentiable):
    """[R above, reflectors below the diagonal; their factors] of [..., m, n]."""

    def result_type(self, a: Any) -> Any:
        self.check_matrices("a", a)
        factors = (*a.shape[:-2], min(a.shape[-2:]))
        return [array_type(a.shape, a.dtype), array_type(factors, a.dtype)]

    def host(self, a: np.ndarray) -> list[np.ndarray]:
        return lapack.geqrf(a)


class HouseholderProduct(SingleResult, _NotDifferentiable):
    """a [..., m, n] with reflectors in its columns, taus [..., k]: n columns of their product."""

    def result_type(self, a: Any, taus: Any) -> Any:
        self.check_matrices("a", a)
        m, n = a.shape[-2:]
        if m < n or taus.shape[:-1] != a.shape[:-2] or taus.shape[-1] > n or taus.dtype != a.dtype:
            self.fail(
                "expected a with at least as many rows as columns and at most as many taus as "
                f"columns, of its dtype, got {a} and {taus}."
            )
        return array_type(a.shape, a.dtype)

    def host(self, a: np.ndarray, taus: np.ndarray) -> list[np.ndarray]:
        return [lapack.householder_product(a, taus)]


QR_FACTOR = QR("qr")
PIVOTED_QR = PivotedQR("pivoted_qr")
SVD_FACTOR = SVD("svd")
EIGH = Eigh("eigh")
EIG = Eig("eig")
SCHUR = Schur("schur")
HESSENBERG = Hessenberg("hessenberg")
GEQRF = Geqrf("geqrf")
HOUSEHOLDER_PRODUCT = HouseholderProduct("householder_product")


# ---- functions


def qr(x: Any, *, pivoting: bool = False, full_matrices: bool = True) -> tuple[Any, ...]:
    """A = Q R, Q with orthonormal columns, R upper triangular: (Q, R).

    x: [..., m, n]; full_matrices: Q is square, else it has min(m, n) columns; pivoting: columns
    are taken in the order of a third result, so that the diagonal of R falls.
    Raises: ValueError for rank below 2; TypeError for other dtypes.

    >>> q, r = qr(np.array([[0.0, 2.0], [1.0, 0.0]], np.float32))
    >>> r.shape
    (2, 2)
    """
    if pivoting:
        return tuple(PIVOTED_QR.bind(x, full_matrices=bool(full_matrices)))
    return tuple(QR_FACTOR.bind(x, full_matrices=bool(full_matrices)))


def svd(
    x: Any, *, full_matrices: bool = True, compute_uv: bool = True, subset_by_index: Any = None,
    algorithm: Any = None,
) -> Any:  # fmt: skip
    """A = U diag(s) V^H: (U, s, V^H), or s alone without `compute_uv`; s falls.

    x: [..., m, n]; full_matrices: U and V are square, else they have min(m, n) columns;
    subset_by_index: (first, end) of the singular values wanted; algorithm: accepted.
    Raises: ValueError for rank below 2; TypeError for other dtypes.

    >>> svd(np.array([[0.0, 2.0], [1.0, 0.0]], np.float32), compute_uv=False).tolist()
    [2.0, 1.0]
    """
    outs = SVD_FACTOR.bind(x, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv))
    k = type_of(outs[0]).shape[-1]
    first, end = _subset("svd", subset_by_index, k)
    if (first, end) != (0, k):
        if full_matrices and compute_uv:
            fail(
                ValueError, "svd", "subset_by_index does not go together with full_matrices.",
                "Pass full_matrices=False.",
            )  # fmt: skip
        axes = (-1, -1, -2)
        outs = [slice_in_dim(v, first, end, axis=a) for v, a in zip(outs, axes, strict=False)]
    return (outs[1], outs[0], outs[2]) if compute_uv else outs[0]


def _subset(function: str, subset: Any, count: int) -> tuple[int, int]:
    if subset is None:
        return 0, count
    first, end = (int(i) for i in subset)
    if not 0 <= first <= end <= count:
        fail(
            ValueError, function,
            f"expected subset_by_index with 0 <= first <= end <= {count}, got {(first, end)}.",
        )  # fmt: skip
    return first, end


def eigh(
    x: Any, *, lower: bool = True, symmetrize_input: bool = True, sort_eigenvalues: bool = True,
    subset_by_index: Any = None, implementation: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Eigenvectors (columns) and rising eigenvalues of Hermitian matrices: (v, w).

    x: [..., n, n]; symmetrize_input: A is replaced by (A + A^H) / 2, else one triangle is read,
    the lower one if `lower`; subset_by_index: (first, end) of the eigenvalues wanted.
    Raises: ValueError if x does not hold square matrices; TypeError for other dtypes.

    >>> v, w = eigh(np.array([[2.0, 0.0], [0.0, 1.0]], np.float32))
    >>> w.tolist()
    [1.0, 2.0]
    """
    EIGH.type_rule(type_of(x))
    if symmetrize_input:
        x = hermitian_part(x)
    elif not lower:
        x = adjoint(x)
    vectors, values = EIGH.bind(x)
    n = type_of(values).shape[-1]
    first, end = _subset("eigh", subset_by_index, n)
    if (first, end) != (0, n):
        vectors = slice_in_dim(vectors, first, end, axis=-1)
        values = slice_in_dim(values, first, end, axis=-1)
    return vectors, values


def eig(
    x: Any, *, compute_left_eigenvectors: bool = True, compute_right_eigenvectors: bool = True,
    implementation: Any = None, use_magma: Any = None,
) -> list[Any]:  # fmt: skip
    """Eigenvalues of general matrices and, if wanted, left and right eigenvectors, complex.

    >>> [w] = eig(np.array([[2.0]], np.float32), compute_left_eigenvectors=False,
    ...           compute_right_eigenvectors=False)
    >>> w.tolist()
    [(2+0j)]
    """
    left, right = bool(compute_left_eigenvectors), bool(compute_right_eigenvectors)
    return list(EIG.bind(x, left=left, right=right, any_scale=False))


def schur(
    x: Any, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False,
    select_callable: Any = None,
) -> tuple[Any, Any | None]:  # fmt: skip
    """A = Q T Q^H with a (quasi) triangular T: (T, Q), or (T, None).

    Real matrices have the real form, with 2 x 2 blocks for complex pairs.

    >>> schur(np.array([[2.0]], np.float32))[0].tolist()
    [[2.0]]
    """
    if sort_eig_vals or select_callable is not None:
        fail(NotImplementedError, "schur", "sorting the eigenvalues is not supported.")
    outs = SCHUR.bind(x, vectors=bool(compute_schur_vectors))
    return outs[0], outs[1] if compute_schur_vectors else None


def hessenberg(a: Any) -> tuple[Any, Any]:
    """LAPACK's gehrd: (H with the reflectors below its subdiagonal, their factors taus).

    >>> hessenberg(np.eye(2, dtype=np.float32))[1].shape
    (1,)
    """
    out, taus = HESSENBERG.bind(a)
    return out, taus


def householder_product(a: Any, taus: Any) -> Any:
    """The first n columns of the product of the reflectors held in the columns of a [..., m, n].

    >>> householder_product(np.eye(2, dtype=np.float32), np.zeros(2, np.float32)).shape
    (2, 2)
    """
    return HOUSEHOLDER_PRODUCT.bind(a, taus)


def geqrf(a: Any) -> tuple[Any, Any]:
    """LAPACK's QR: (R above, reflectors below the diagonal; their factors taus [min(m, n)]).

    >>> geqrf(np.eye(2, dtype=np.float32))[1].shape
    (2,)
    """
    out, taus = GEQRF.bind(a)
    return out, taus
