"""Orthogonal factorizations and spectra: qr, svd, eigh, eig, schur, hessenberg.

    qr      A = Q R                      eigh   A V = V diag(w), A Hermitian
    svd     A = U diag(s) V^H            eig    A V = V diag(w)
    schur   A = Q T Q^H                  hessenberg, tridiagonal, geqrf, householder_product, ormqr:
                                         LAPACK's reflectors

Matrices are the last two axes.  Derivatives: M. Giles (2008), as in linalg.py; for complex
matrices, where factors are fixed up to phases only, those of F. Q. Wan and S. X. Zhang,
"Automatic differentiation for complex valued SVD" (2019).  Where eigenvalues or singular values
coincide, the derivative of the vectors does not exist; terms of such pairs count as zero, so that
functions which do not depend on the choice of vectors are differentiated right.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import fail
from jato.core.graph import Node
from jato.core.types import Zero, array_type, tangent_type, type_of
from jato.ops import lapack
from jato.ops.convert import convert_element_type
from jato.ops.elementwise import add, conj, div, eq, imag, mul, real, select, sub
from jato.ops.elementwise import complex as complex_of
from jato.ops.families import is_zero_tangent, transposed
from jato.ops.indexing import take_along
from jato.ops.linalg import (
    LU_FACTOR,
    LU_SOLVE,
    TRIANGULAR_SOLVE,
    MatrixPrimitive,
    SingleResult,
    batch_size,
)
from jato.ops.matrices import (
    adjoint,
    column_scaled,
    conjugated,
    diagonal,
    halved,
    hermitian_from_lower,
    hermitian_part,
    identity_like,
    lower_part,
    matmul,
    on_diagonal_only,
    row_scaled,
)
from jato.ops.opaque import zero_tangents
from jato.ops.reduce import argmax
from jato.ops.shapes import broadcast_to
from jato.ops.structural import (
    broadcasted_iota,
    concatenate,
    full_like,
    pad,
    reduce_sum,
    slice_in_dim,
    stop_gradient,
)


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


# Largest number of elements of a matrix that goes to the native routines: LAPACK's workspaces, a few
# times that, are counted in 32 bits.  Larger ones go through NumPy's, which has 64.
_NATIVE_ELEMENTS = 1 << 28


def _native(*shapes: Sequence[int]) -> bool:
    return all(m * n <= _NATIVE_ELEMENTS for m, n in shapes)


class QR(MatrixPrimitive):
    """[Q, R] of [..., m, n], or [R] without `compute_q`; `full_matrices`: Q is m x m, else
    m x min(m, n)."""

    step_cost = 0.15

    def result_type(self, a: Any, *, full_matrices: bool, compute_q: bool) -> Any:
        self.check_matrices("a", a)
        *lead, m, n = a.shape
        k = m if full_matrices else min(m, n)
        types = [array_type((*lead, m, k), a.dtype), array_type((*lead, k, n), a.dtype)]
        return types if compute_q else types[1:]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, full_matrices: bool,
        compute_q: bool,
    ) -> Any:  # fmt: skip
        (change,) = tangents
        if is_zero_tangent(change):
            outs = self.bind(*primals, full_matrices=full_matrices, compute_q=compute_q)
            return outs, zero_tangents(outs)
        outs = self.bind(*primals, full_matrices=full_matrices, compute_q=True)
        moved = self.tangents(primals[0], *outs, change)
        return (outs, moved) if compute_q else (outs[1:], moved[1:])

    def prune(self, node: Any, used: Sequence[bool]) -> Any:
        if len(used) == 1 or used[0]:
            return node
        params = node.params | {"compute_q": False}
        return Node(node.primitive, node.inputs, node.outputs[1:], params, node.frame)

    def tangents(self, a: Any, q: Any, r: Any, change: Any) -> list[Any]:
        """[dQ, dR] of A = Q R."""
        m, n = type_of(a).shape[-2:]
        if m > n and type_of(q).shape[-1] == m:
            return list(self.full_tangents(q, r, change))
        if m >= n:
            return list(self.square_tangents(q, r, change))
        # A = [A1 A2] with a square A1 = Q R1, and R2 = Q^H A2
        first = slice_in_dim(r, 0, m, axis=-1)
        change_q, change_first = self.square_tangents(q, first, slice_in_dim(change, 0, m, axis=-1))
        rest = matmul(adjoint(change_q), slice_in_dim(a, m, n, axis=-1))
        rest = add(rest, matmul(adjoint(q), slice_in_dim(change, m, n, axis=-1)))
        rank = type_of(r).ndim
        return [change_q, concatenate([change_first, rest], rank - 1)]

    def full_tangents(self, q: Any, r: Any, change: Any) -> tuple[Any, Any]:
        """(dQ, dR) for a square Q = [Q1 Q2] and tall A = Q1 R1, where LAPACK's reflectors choose Q2.

        They make Q = 1 + M S M^H with M = Q1 - E and E the first columns of 1, since Q E = Q1.  From
        that, S = (E^H Q1 - 1)^-H, and Q2 = E2 + M Z^H with Z = E2^H Q1 (E^H Q1 - 1)^-1."""
        *lead, m, n = type_of(r).shape
        thin = slice_in_dim(q, 0, n, axis=-1)
        change_thin, change_r = self.square_tangents(thin, slice_in_dim(r, 0, n, axis=-2), change)
        top, bottom = slice_in_dim(thin, 0, n, axis=-2), slice_in_dim(thin, n, m, axis=-2)
        shifted = sub(top, identity_like(top))
        factors, pivots, _ = LU_FACTOR.bind(shifted)

        def solved(x: Any) -> Any:  # (E^H Q1 - 1)^-H x^H
            return LU_SOLVE.bind(shifted, factors, pivots, adjoint(x), operation=2)

        z = adjoint(solved(bottom))
        change_top = slice_in_dim(change_thin, 0, n, axis=-2)
        change_bottom = slice_in_dim(change_thin, n, m, axis=-2)
        change_z = solved(sub(change_bottom, matmul(z, change_top)))
        zero = np.zeros((), type_of(r).dtype)[()]
        below = [*((0, 0, 0) for _ in lead), (0, m - n, 0), (0, 0, 0)]
        columns = sub(thin, pad(identity_like(top), zero, below))
        rest = add(matmul(change_thin, adjoint(z)), matmul(columns, change_z))
        return concatenate([change_thin, rest], len(lead) + 1), pad(change_r, zero, below)

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

    def library_call(self, node: Any) -> tuple[str, tuple[int, ...]] | None:
        a, full = node.inputs[0].aval, node.params["full_matrices"]
        m, n = a.shape[-2:]
        if not _native((m, n), (m, m if full else 1)):
            return None
        name = "qr" if node.params["compute_q"] else "qr_r"
        return name, (a.dtype_code, batch_size(a), m, n, int(full))

    def host(self, a: np.ndarray, *, full_matrices: bool, compute_q: bool) -> list[np.ndarray]:
        return lapack.qr(a, full_matrices)[0 if compute_q else 1 :]


class PivotedQR(MatrixPrimitive):
    """[Q, R, order of columns] with A[:, order] = Q R and a falling diagonal of R."""

    def result_type(self, a: Any, *, full_matrices: bool) -> Any:
        order = array_type((*a.shape[:-2], a.shape[-1]), np.int32)
        factors = QR_FACTOR.result_type(a, full_matrices=full_matrices, compute_q=True)
        return [*factors, order]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        outs = self.bind(*primals, **params)
        if is_zero_tangent(tangents[0]):
            return outs, zero_tangents(outs)
        # the order does not change: QR of the columns in this order
        q, r, order = outs
        a, change = (_columns_taken(x, order) for x in (primals[0], tangents[0]))
        return outs, [*QR_FACTOR.tangents(a, q, r, change), *zero_tangents([order])]

    def host(self, a: np.ndarray, *, full_matrices: bool) -> list[np.ndarray]:
        return lapack.qr_pivoted(a, full_matrices)


def _columns_taken(x: Any, order: Any) -> Any:
    """Columns of the matrices x in the order of `order` [..., n]."""
    shape = type_of(x).shape
    rank = len(shape)
    places = broadcast_to(order, shape, (*range(rank - 2), rank - 1))
    return take_along(x, places, rank - 1)


class SVD(MatrixPrimitive):
    """[s] or, with `compute_uv`, [s, U, V^H], singular values falling."""

    step_cost = 0.5

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

    def prune(self, node: Any, used: Sequence[bool]) -> Any:
        if any(used[1:]):
            return node
        params = node.params | {"compute_uv": False}
        return Node(node.primitive, node.inputs, node.outputs[:1], params, node.frame)

    def library_call(self, node: Any) -> tuple[str, tuple[int, ...]] | None:
        a, full = node.inputs[0].aval, node.params["full_matrices"]
        m, n = a.shape[-2:]
        if not _native((m, n), *([(m, m), (n, n)] if full else [])):
            return None
        if node.params["compute_uv"]:
            return "svd", (a.dtype_code, batch_size(a), m, n, int(full))
        return "singular_values", (a.dtype_code, batch_size(a), m, n)

    def host(self, a: np.ndarray, *, full_matrices: bool, compute_uv: bool) -> list[np.ndarray]:
        return lapack.svd(a, full_matrices) if compute_uv else lapack.singular_values(a)


def _sums(values: Any) -> Any:
    """values[j] + values[i] at [..., i, j]."""
    shape = (*type_of(values).shape, type_of(values).shape[-1])
    rank = len(shape)
    by_column = broadcast_to(values, shape, (*range(rank - 2), rank - 1))
    return add(by_column, broadcast_to(values, shape, tuple(range(rank - 1))))


class Eigh(MatrixPrimitive):
    """[vectors, values] of Hermitian matrices, or [values] without `compute_vectors`; values rise.

    Reads the lower triangle."""

    step_cost = 0.3

    def result_type(self, a: Any, *, compute_vectors: bool) -> Any:
        self.check_matrices("a", a, square=True)
        values = _real_type(a, a.shape[:-1])
        return [array_type(a.shape, a.dtype), values] if compute_vectors else [values]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, compute_vectors: bool
    ) -> Any:
        if is_zero_tangent(tangents[0]):
            outs = self.bind(*primals, compute_vectors=compute_vectors)
            return outs, zero_tangents(outs)
        vectors, values = self.bind(*primals, compute_vectors=True)
        inner = matmul(adjoint(vectors), hermitian_from_lower(tangents[0]), vectors)
        if not compute_vectors:
            return [values], [_real_part(diagonal(inner))]
        gaps = _as(_inverse_or_zero(_differences(values)), type_of(vectors).dtype)
        change = matmul(vectors, mul(gaps, inner))
        return [vectors, values], [change, _real_part(diagonal(inner))]

    def prune(self, node: Any, used: Sequence[bool]) -> Any:
        if len(used) == 1 or used[0]:
            return node
        params = {"compute_vectors": False}
        return Node(node.primitive, node.inputs, node.outputs[1:], params, node.frame)

    def library_call(self, node: Any) -> tuple[str, tuple[int, ...]] | None:
        a = node.inputs[0].aval
        name = "eigh" if node.params["compute_vectors"] else "eigvalsh"
        params = (a.dtype_code, batch_size(a), a.shape[-1])
        return (name, params) if _native(a.shape[-2:]) else None

    def host(self, a: np.ndarray, *, compute_vectors: bool) -> list[np.ndarray]:
        return lapack.eigh(a)[0 if compute_vectors else 1 :]


class Eig(MatrixPrimitive):
    """[values, left vectors if `left`, right vectors if `right`], complex, in LAPACK's order.

    vector_derivatives: whether vectors have one.  It is that of LAPACK's choice among their
    multiples (length 1, the largest component real), which is smooth where eigenvalues differ and
    one component is the largest."""

    step_cost = 2.0

    def result_type(
        self, a: Any, *, left: bool, right: bool, vector_derivatives: bool
    ) -> Any:
        self.check_matrices("x", a, square=True)
        vectors = _complex_type(a, a.shape)
        return [_complex_type(a, a.shape[:-1])] + [vectors] * (left + right)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, left: bool, right: bool,
        vector_derivatives: bool,
    ) -> Any:  # fmt: skip
        (change,) = tangents
        params = {"left": left, "right": True, "vector_derivatives": vector_derivatives}
        if is_zero_tangent(change):
            outs = self.bind(*primals, **params | {"right": right})
            return outs, zero_tangents(outs)
        if (left or right) and not vector_derivatives:
            self.derivative_missing(
                "eigenvectors of general matrices",
                "It exists where eigenvalues differ and one component of each vector is the "
                "largest: ask for it with lax.linalg.eig(x, enable_eigvec_derivs=True). Use eigvals "
                "for the eigenvalues alone, or eigh for Hermitian matrices.",
            )
        # the derivative of the values does not depend on the scale of the vectors
        outs = self.bind(*primals, **params | {"vector_derivatives": True})
        values, vectors = outs[0], outs[-1]
        change = _as(change, type_of(vectors).dtype)
        inner = _in_basis(vectors, change)
        moved = [diagonal(inner)]
        if left:  # they are the right vectors of A^H, whose eigenvalues are conj(values)
            conjugates, basis = conj(values), outs[1]
            moved.append(
                self.vector_tangent(conjugates, basis, _in_basis(basis, adjoint(change)))
            )
        if right:
            return outs, [*moved, self.vector_tangent(values, vectors, inner)]
        return outs[:-1], moved

    @staticmethod
    def vector_tangent(values: Any, vectors: Any, inner: Any) -> Any:
        """dV = V (F * C + diag(s)) with C = V^-1 dA V and F[i, j] = 1 / (w[j] - w[i]).

        s keeps the length of each column and the imaginary part of its largest component."""
        free = matmul(vectors, mul(_inverse_or_zero(_differences(values)), inner))
        rank = type_of(vectors).ndim
        growth = reduce_sum(real(mul(conj(vectors), free)), (rank - 2,))
        largest = argmax(real(mul(conj(vectors), vectors)), rank - 2)
        rows = broadcasted_iota("int32", type_of(vectors).shape, rank - 2)
        columns = (*range(rank - 2), rank - 1)
        there = eq(rows, broadcast_to(largest, type_of(vectors).shape, columns))
        zero = full_like(free, 0)
        turn = div(
            imag(reduce_sum(select(there, free, zero), (rank - 2,))),
            real(reduce_sum(select(there, vectors, zero), (rank - 2,))),
        )
        return sub(free, column_scaled(vectors, complex_of(growth, turn)))

    def prune(self, node: Any, used: Sequence[bool]) -> Any:
        left, right = node.params["left"], node.params["right"]
        keeps_left = left and used[1]
        keeps_right = right and used[-1]
        if (keeps_left, keeps_right) == (left, right):
            return node
        kept = [True] + [keeps_left] * left + [keeps_right] * right
        outputs = [v for v, k in zip(node.outputs, kept, strict=True) if k]
        params = node.params | {"left": keeps_left, "right": keeps_right}
        return Node(node.primitive, node.inputs, outputs, params, node.frame)

    def library_call(self, node: Any) -> tuple[str, tuple[int, ...]] | None:
        a = node.inputs[0].aval
        if not _native(a.shape[-2:]):
            return None
        names = ("eigenvalues", "eig_right"), ("eig_left", "eig")
        name = names[node.params["left"]][node.params["right"]]
        return name, (a.dtype_code, batch_size(a), a.shape[-1])

    def host(
        self, a: np.ndarray, *, left: bool, right: bool, vector_derivatives: bool
    ) -> list[np.ndarray]:
        return lapack.eig(a, left, right)


def _in_basis(vectors: Any, change: Any) -> Any:
    """V^-1 dA V."""
    factors, pivots, _ = LU_FACTOR.bind(stop_gradient(vectors))
    return LU_SOLVE.bind(vectors, factors, pivots, matmul(change, vectors), operation=0)


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

    def library_call(self, node: Any) -> tuple[str, tuple[int, ...]] | None:
        a = node.inputs[0].aval
        params = (a.dtype_code, batch_size(a), *a.shape[-2:])
        return ("geqrf", params) if _native(a.shape[-2:]) else None

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

    def library_call(self, node: Any) -> tuple[str, tuple[int, ...]] | None:
        a, taus = node.inputs[0].aval, node.inputs[1].aval
        params = (a.dtype_code, batch_size(a), *a.shape[-2:], taus.shape[-1])
        return ("householder", params) if _native(a.shape[-2:]) else None

    def host(self, a: np.ndarray, taus: np.ndarray) -> list[np.ndarray]:
        return [lapack.householder_product(a, taus)]


class Tridiagonal(_NotDifferentiable):
    """[T with the reflectors beside it, its diagonal, its other band, factors of the reflectors] of
    Hermitian matrices; reads the lower triangle, or the upper one."""

    def result_type(self, a: Any, *, lower: bool) -> Any:
        self.check_matrices("a", a, square=True)
        band = (*a.shape[:-2], max(a.shape[-1] - 1, 0))
        diagonals = _real_type(a, a.shape[:-1]), _real_type(a, band)
        return [array_type(a.shape, a.dtype), *diagonals, array_type(band, a.dtype)]

    def host(self, a: np.ndarray, *, lower: bool) -> list[np.ndarray]:
        return lapack.tridiagonal(a, lower)


class MultiplyByReflectors(SingleResult):
    """a [..., m, n] with reflectors in its columns, taus [..., k], C -> op(Q) C (`left`) or C op(Q).

    op is the adjoint with `transpose`.  Linear in C; a and taus have no derivative."""

    def result_type(self, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
        self.check_matrices("a", a)
        self.check_matrices("c", c)
        rows, k = c.shape[-2 if left else -1], taus.shape[-1:]
        lead = a.shape[:-2]
        if (
            not taus.shape[:-1] == lead == c.shape[:-2]
            or rows != a.shape[-2]
            or k > (min(a.shape[-2:]),)
            or not a.dtype == taus.dtype == c.dtype
        ):
            side = "rows" if left else "columns"
            self.fail(
                f"expected c with as many {side} as a has rows, taus with at most as many elements "
                f"as a has rows and columns, and all of one dtype and batch shape, got {a}, {taus} "
                f"and {c}.",
                error=ValueError,
            )
        return array_type(c.shape, c.dtype)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = self.bind(*primals, **params)
        if not all(map(is_zero_tangent, tangents[:2])):
            self.derivative_missing("a product with respect to its reflectors")
        if is_zero_tangent(tangents[2]):
            return out, Zero(tangent_type(type_of(out)))
        return out, self.bind(*primals[:2], tangents[2], **params)

    @transposed
    def transpose(
        self, cotangent: Any, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool
    ) -> Sequence[Any]:
        # op(Q)^T = conj(op(Q)^H)
        turned = self.bind(a, taus, conjugated(cotangent), left=left, transpose=not transpose)
        return [None, None, conjugated(turned)]

    def host(
        self, a: np.ndarray, taus: np.ndarray, c: np.ndarray, *, left: bool, transpose: bool
    ) -> list[np.ndarray]:
        return [lapack.ormqr(a, taus, c, left, transpose)]


QR_FACTOR = QR("qr")
PIVOTED_QR = PivotedQR("pivoted_qr")
SVD_FACTOR = SVD("svd")
EIGH = Eigh("eigh")
EIG = Eig("eig")
SCHUR = Schur("schur")
HESSENBERG = Hessenberg("hessenberg")
GEQRF = Geqrf("geqrf")
HOUSEHOLDER_PRODUCT = HouseholderProduct("householder_product")
TRIDIAGONAL = Tridiagonal("tridiagonal")
ORMQR = MultiplyByReflectors("ormqr")


# ---- functions


class EigImplementation(enum.Enum):
    """Libraries for `eig`; here it is LAPACK."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """Algorithms for `eigh`; here it is QR's family, LAPACK's divide and conquer."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(enum.Enum):
    """Algorithms for `svd`; here it is LAPACK's divide and conquer."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def _require(function: str, argument: str, value: Any, available: Sequence[Any]) -> None:
    """NotImplementedError unless the value is None or one of those available."""
    if value is not None and value not in available:
        names = ", ".join(map(str, available))
        fail(
            NotImplementedError, function,
            f"argument '{argument}': expected None or one of {names}, which exist on a CPU, got "
            f"{value!r}.",
        )  # fmt: skip


def qr(
    x: Any, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Any, ...]:
    """A = Q R, Q with orthonormal columns, R upper triangular: (Q, R).

    x: [..., m, n]; full_matrices: Q is square, else it has min(m, n) columns; pivoting: columns
    are taken in the order of a third result, so that the diagonal of R falls; use_magma: the choice
    of a library for GPUs, not True.
    Raises: ValueError for rank below 2; TypeError for other dtypes.

    >>> q, r = qr(np.array([[0.0, 2.0], [1.0, 0.0]], np.float32))
    >>> r.shape
    (2, 2)
    """
    _require("qr", "use_magma", use_magma, (False,))
    if pivoting:
        return tuple(PIVOTED_QR.bind(x, full_matrices=bool(full_matrices)))
    return tuple(QR_FACTOR.bind(x, full_matrices=bool(full_matrices), compute_q=True))


def svd(
    x: Any, *, full_matrices: bool = True, compute_uv: bool = True, subset_by_index: Any = None,
    algorithm: Any = None,
) -> Any:  # fmt: skip
    """A = U diag(s) V^H: (U, s, V^H), or s alone without `compute_uv`; s falls.

    x: [..., m, n]; full_matrices: U and V are square, else they have min(m, n) columns;
    subset_by_index: (first, end) of the singular values wanted; algorithm: an `SvdAlgorithm`, of
    which all but DEFAULT, QR and DIVIDE_AND_CONQUER raise.
    Raises: ValueError for rank below 2; TypeError for other dtypes.

    >>> svd(np.array([[0.0, 2.0], [1.0, 0.0]], np.float32), compute_uv=False).tolist()
    [2.0, 1.0]
    """
    algorithms = SvdAlgorithm.DEFAULT, SvdAlgorithm.QR, SvdAlgorithm.DIVIDE_AND_CONQUER
    _require("svd", "algorithm", algorithm, algorithms)
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
    the lower one if `lower`; subset_by_index: (first, end) of the eigenvalues wanted;
    sort_eigenvalues: they rise also without it; implementation: an `EighImplementation`, QR or None.
    Raises: ValueError if x does not hold square matrices; TypeError for other dtypes.

    >>> v, w = eigh(np.array([[2.0, 0.0], [0.0, 1.0]], np.float32))
    >>> w.tolist()
    [1.0, 2.0]
    """
    _require("eigh", "implementation", implementation, (EighImplementation.QR,))
    EIGH.type_rule(type_of(x), compute_vectors=True)
    if symmetrize_input:
        x = hermitian_part(x)
    elif not lower:
        x = adjoint(x)
    vectors, values = EIGH.bind(x, compute_vectors=True)
    n = type_of(values).shape[-1]
    first, end = _subset("eigh", subset_by_index, n)
    if (first, end) != (0, n):
        vectors = slice_in_dim(vectors, first, end, axis=-1)
        values = slice_in_dim(values, first, end, axis=-1)
    return vectors, values


def eig(
    x: Any, *, compute_left_eigenvectors: bool = True, compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False, implementation: Any = None, use_magma: Any = None,
) -> list[Any]:  # fmt: skip
    """Eigenvalues of general matrices and, if wanted, left and right eigenvectors, complex.

    x: [..., n, n].  The results [w, vl, vr] satisfy x vr = vr diag(w), x^H vl = vl diag(conj(w)); a
    vector has length 1 and its largest component is real.  enable_eigvec_derivs: the vectors have
    derivatives, which are right where eigenvalues differ and no two components are the largest;
    without it differentiating them raises NotImplementedError.  implementation:
    `EigImplementation.LAPACK` or None.
    Raises: ValueError if x does not hold square matrices; TypeError for other dtypes.

    >>> [w] = eig(np.array([[2.0]], np.float32), compute_left_eigenvectors=False,
    ...           compute_right_eigenvectors=False)
    >>> w.tolist()
    [(2+0j)]
    """
    _require("eig", "implementation", implementation, (EigImplementation.LAPACK,))
    _require("eig", "use_magma", use_magma, (False,))
    left, right = bool(compute_left_eigenvectors), bool(compute_right_eigenvectors)
    derivatives = bool(enable_eigvec_derivs)
    return list(EIG.bind(x, left=left, right=right, vector_derivatives=derivatives))


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


def tridiagonal(a: Any, *, lower: bool = True) -> tuple[Any, Any, Any, Any]:
    """Q^H A Q = T, tridiagonal, for Hermitian matrices, by LAPACK's sytrd or hetrd: (A, d, e, taus).

    a: [..., n, n], of which the lower triangle is read, or the upper one.  Results: T on the
    diagonal and the first band of that triangle, the reflectors that make Q beyond them; the
    diagonal d [..., n] and the band e [..., n - 1] of T, real; factors of the reflectors taus
    [..., n - 1].  Raises: ValueError if a does not hold square matrices; TypeError for other dtypes;
    NotImplementedError where its derivative is asked for.

    >>> a, d, e, taus = tridiagonal(np.array([[2.0, 1.0], [1.0, 3.0]], np.float32))
    >>> d.tolist(), np.abs(e).tolist()
    ([2.0, 3.0], [1.0])
    """
    packed, d, e, taus = TRIDIAGONAL.bind(a, lower=bool(lower))
    return packed, d, e, taus


def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Any:
    """Q C, or C Q without `left`, with the Q of reflectors (`geqrf`) and without forming it.

    a: [..., m, n], reflectors below the diagonal; taus: [..., k], their factors; c: matrices
    [..., rows, columns], with m rows, or columns without `left`; transpose: Q^H (Q^T of real ones)
    for Q.  Returns: as c.  Raises: ValueError when shapes do not fit; TypeError for other dtypes.

    >>> a, taus = geqrf(np.array([[0.0, 2.0], [1.0, 0.0]], np.float32))
    >>> np.abs(ormqr(a, taus, np.eye(2, dtype=np.float32))).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return ORMQR.bind(a, taus, c, left=bool(left), transpose=bool(transpose))


def geqrf(a: Any) -> tuple[Any, Any]:
    """LAPACK's QR: (R above, reflectors below the diagonal; their factors taus [min(m, n)]).

    >>> geqrf(np.eye(2, dtype=np.float32))[1].shape
    (2,)
    """
    out, taus = GEQRF.bind(a)
    return out, taus
