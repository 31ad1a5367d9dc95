"""Linear systems: cholesky, lu, triangular_solve and what solves with their factors.

    cholesky            A = L L^H, from the lower triangle of A
    lu                  P A = L U
    lu_solve            X of op(A) X = B, with the factors at hand
    triangular_solve    X of op(A) X = B or X op(A) = B, for a triangular A
    tridiagonal_solve   X of T X = B

Matrices are the last two axes; leading axes are batches, which a mapped axis joins.  Derivatives:
M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008).  A factorization that does not exist gives NaN, no error.  The functions
that users call are at the end; start reading at `MatrixPrimitive`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from jato.base import dtypes
from jato.base.errors import fail
from jato.core.primitive import AxisData
from jato.core.types import Zero, array_type, tangent_type, type_of
from jato.ops import lapack
from jato.ops.elementwise import add, mul, neg, sub
from jato.ops.families import is_zero_tangent, transposed
from jato.ops.indexing import take_along
from jato.ops.matrices import (
    adjoint,
    conjugated,
    halved,
    hermitian_from_lower,
    hermitian_part,
    lower_part,
    matmul,
    on_diagonal,
    real_diagonal,
    swapped,
    upper_part,
    where_matrix,
)
from jato.ops.opaque import BatchedOpaque, zero_tangents
from jato.ops.shapes import broadcast_to, instantiate, mapped_first, move_axis
from jato.ops.structural import full_like, pad, reshape, slice_in_dim, stop_gradient

_SUPPORTED = ("float32", "float64", "complex64", "complex128")


class MatrixPrimitive(BatchedOpaque):
    """Operates on the matrices in the last axes of its operands, through LAPACK."""

    def check_matrices(self, argument: str, x: Any, square: bool = False) -> None:
        """Raises TypeError or ValueError unless x holds matrices that LAPACK can take."""
        if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
            kind = "square matrices" if square else "matrices"
            self.fail(
                f"expected {argument} to hold {kind} in its last two axes, got {x}.",
                error=ValueError,
            )
        if x.dtype.name not in _SUPPORTED:
            self.fail(
                f"expected {argument} to have one of the dtypes {', '.join(_SUPPORTED)}, got {x}.",
                "Convert it with astype.",
            )

    # Nanoseconds for an element of the operand and a row or column of it, on one thread.
    step_cost: ClassVar[float] = 0.05

    def library_cost(self, node: Any) -> float:
        # multiply-adds of the factorization or of the substitutions; and the calls
        a, x = node.inputs[0].aval, node.outputs[-1].aval
        work = max(a.size, x.size) * min(a.shape[-2:])
        return 1e3 + batch_size(a) * 100.0 + self.step_cost * work

    def derivative_missing(self, what: str, hint: str = "") -> Any:
        fail(NotImplementedError, self.name, f"the derivative of {what} is not defined.", hint)


class SingleResult(MatrixPrimitive):
    """Has one result, not a list of them."""

    multiple_results = False

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> Any:
        moved = [mapped_first(x, d, axis.size) for x, d in zip(operands, dims, strict=True)]
        return self.bind(*moved, **params), 0

    def reference(self, *operands: Any, **params: Any) -> Any:
        return self.host(*map(np.ascontiguousarray, operands), **params)[0]


class Cholesky(SingleResult):
    """The lower factor of Hermitian positive definite matrices; reads the lower triangle."""

    def result_type(self, a: Any) -> Any:
        self.check_matrices("x", a, square=True)
        return array_type(a.shape, a.dtype)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        factor = self.bind(*primals)
        if is_zero_tangent(tangents[0]):
            return factor, Zero(tangent_type(type_of(factor)))
        # dL = L phi(L^-1 dA L^-H), phi: the lower triangle with its diagonal halved
        change = hermitian_from_lower(tangents[0])
        left = TRIANGULAR_SOLVE.bind(factor, change, **_LOWER)
        both = TRIANGULAR_SOLVE.bind(factor, adjoint(left), **_LOWER)
        half = add(lower_part(both, strict=True), halved(real_diagonal(both)))
        return factor, matmul(factor, half)

    def library_call(self, node: Any) -> tuple[str, tuple[int, ...]] | None:
        a = node.inputs[0].aval
        return "cholesky", (a.dtype_code, batch_size(a), a.shape[-1])

    def host(self, a: np.ndarray) -> list[np.ndarray]:
        return [lapack.cholesky(a)]


class LU(MatrixPrimitive):
    """[L below and U on and above the diagonal, row exchanges, permutation of rows] of [m, n]."""

    def result_type(self, a: Any) -> Any:
        self.check_matrices("x", a)
        *lead, m, n = a.shape
        return [
            array_type(a.shape, a.dtype),
            array_type((*lead, min(m, n)), np.int32),
            array_type((*lead, m), np.int32),
        ]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        outs = self.bind(*primals)
        if is_zero_tangent(tangents[0]):
            return outs, zero_tangents(outs)
        # With X = L^-1 P dA U^-1:  dL = L tril(X, -1),  dU = triu(X) U.
        factors, _, permutation = outs
        m, n = type_of(factors).shape[-2:]
        k = min(m, n)
        lower = _extended(lower_part(slice_in_dim(factors, 0, k, axis=-1), strict=True), m)
        upper = _extended(upper_part(slice_in_dim(factors, 0, k, axis=-2)), n)
        lower = on_diagonal(lower, 1)
        if n > m:
            # ones where U has no rows
            corner = np.arange(n) >= k
            upper = add(upper, where_matrix(np.diag(corner), full_like(upper, 1), full_like(upper, 0)))
        change = _rows_taken(tangents[0], permutation)
        change = TRIANGULAR_SOLVE.bind(lower, change, **(_LOWER | {"unit_diagonal": True}))
        change = TRIANGULAR_SOLVE.bind(upper, change, **(_LOWER | {"left_side": False, "lower": False}))
        tangent = add(
            matmul(lower, lower_part(change, strict=True)), matmul(upper_part(change), upper)
        )
        return outs, [tangent, *zero_tangents(outs[1:])]

    def library_call(self, node: Any) -> tuple[str, tuple[int, ...]] | None:
        a = node.inputs[0].aval
        return "lu", (a.dtype_code, batch_size(a), *a.shape[-2:])

    def host(self, a: np.ndarray) -> list[np.ndarray]:
        factors, pivots = lapack.lu(a)
        order = np.empty((*a.shape[:-2], a.shape[-2]), np.int32)
        order[...] = np.arange(a.shape[-2], dtype=np.int32)
        for index in np.ndindex(a.shape[:-2]):
            row = order[index]
            for i, j in enumerate(pivots[index]):
                row[i], row[j] = row[j], row[i]
        return [factors, pivots, order]


class LUSolve(SingleResult):
    """operands A, its factors and row exchanges (of `LU`), B -> X of op(A) X = B.

    operation: 0 for A, 1 for its transpose, 2 for its adjoint.  A stands for the factors in
    derivatives, so that these need no derivative of the factorization; its numbers are not read."""

    def result_type(self, a: Any, factors: Any, pivots: Any, b: Any, *, operation: int) -> Any:
        self.check_matrices("a", a, square=True)
        self.check_matrices("b", b)
        if b.shape[:-1] != a.shape[:-1] or b.dtype != a.dtype or factors.shape != a.shape:
            self.fail(f"expected b to have as many rows as a and its dtype, got {a} and {b}.")
        return array_type(b.shape, b.dtype)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, operation: int
    ) -> Any:
        a, factors, pivots, _ = primals
        x = self.bind(*primals, operation=operation)
        change_a, _, _, change_b = tangents
        # d(A^-1 B) = A^-1 (dB - dA X)
        if is_zero_tangent(change_a):
            if is_zero_tangent(change_b):
                return x, Zero(tangent_type(type_of(x)))
            change = change_b
        else:
            operated = (change_a, *_operated(change_a))[operation]
            change = sub(instantiate(change_b), matmul(operated, x))
        return x, self.bind(a, factors, pivots, change, operation=operation)

    @transposed
    def transpose(
        self, cotangent: Any, a: Any, factors: Any, pivots: Any, b: Any, *, operation: int
    ) -> Sequence[Any]:
        if operation == 2:  # (A^-H)^T = conj(A^-1)
            solved = conjugated(
                self.bind(a, factors, pivots, conjugated(cotangent), operation=0)
            )
        else:
            solved = self.bind(a, factors, pivots, cotangent, operation=1 - operation)
        return [None, None, None, solved]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> Any:
        if all(d is None for d in dims[:3]):
            b, unfold = _as_columns(operands[3], dims[3])
            return unfold(self.bind(*operands[:3], b, **params))
        return super().batch(axis, operands, dims, **params)

    def library_call(self, node: Any) -> tuple[str, tuple[int, ...]] | None:
        b = node.inputs[3].aval
        return "lu_solve", (
            b.dtype_code, batch_size(b), b.shape[-2], b.shape[-1], node.params["operation"],
        )  # fmt: skip

    def host(
        self, a: np.ndarray, factors: np.ndarray, pivots: np.ndarray, b: np.ndarray, *,
        operation: int,
    ) -> list[np.ndarray]:  # fmt: skip
        return [lapack.lu_solve(factors, pivots, b, operation)]


def _operated(a: Any) -> tuple[Any, Any]:
    return swapped(a), adjoint(a)


class TriangularSolve(SingleResult):
    """X of op(A) X = B (`left_side`) or X op(A) = B; only the triangle of A is read.

    op transposes (`transpose_a`) and conjugates (`conjugate_a`); `unit_diagonal`: ones are taken
    for the diagonal of A."""

    def result_type(self, a: Any, b: Any, *, left_side: bool, **params: bool) -> Any:
        self.check_matrices("a", a, square=True)
        self.check_matrices("b", b)
        side = -2 if left_side else -1
        if a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[side] or a.dtype != b.dtype:
            where = "rows" if left_side else "columns"
            self.fail(
                f"expected b to have the batch axes and dtype of a and as many {where} as a, got "
                f"{a} and {b}."
            )
        return array_type(b.shape, b.dtype)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: bool) -> Any:
        a, _ = primals
        x = self.bind(*primals, **params)
        change_a, change = tangents
        if is_zero_tangent(change_a):
            if is_zero_tangent(change):
                return x, Zero(tangent_type(type_of(x)))
            return x, self.bind(a, change, **params)
        part = lower_part if params["lower"] else upper_part
        operated = part(change_a, strict=params["unit_diagonal"])
        if params["transpose_a"]:
            operated = swapped(operated)
        if params["conjugate_a"]:
            operated = conjugated(operated)
        product = matmul(operated, x) if params["left_side"] else matmul(x, operated)
        change = neg(product) if is_zero_tangent(change) else sub(change, product)
        return x, self.bind(a, change, **params)

    @transposed
    def transpose(self, cotangent: Any, a: Any, b: Any, **params: bool) -> Sequence[Any]:
        flipped = params | {"transpose_a": not params["transpose_a"]}
        return [None, self.bind(a, cotangent, **flipped)]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> Any:
        if dims[0] is None and params["left_side"]:
            b, unfold = _as_columns(operands[1], dims[1])
            return unfold(self.bind(operands[0], b, **params))
        return super().batch(axis, operands, dims, **params)

    def library_call(self, node: Any) -> tuple[str, tuple[int, ...]] | None:
        b, p = node.inputs[1].aval, node.params
        return "triangular_solve", (
            b.dtype_code, batch_size(b), b.shape[-2], b.shape[-1], int(p["left_side"]),
            int(p["lower"]), int(p["transpose_a"]), int(p["conjugate_a"]), int(p["unit_diagonal"]),
        )  # fmt: skip

    def host(
        self, a: np.ndarray, b: np.ndarray, *, left_side: bool, lower: bool, transpose_a: bool,
        conjugate_a: bool, unit_diagonal: bool,
    ) -> list[np.ndarray]:  # fmt: skip
        a = a.conj() if conjugate_a else a
        return [lapack.triangular_solve(a, b, left_side, lower, transpose_a, unit_diagonal)]


class TridiagonalSolve(SingleResult):
    """dl, d, du [..., n] and B [..., n, k] -> X of T X = B; dl[0] and du[n-1] are not read.

    perturb: pivots that are almost 0 are moved away from it."""

    def result_type(self, dl: Any, d: Any, du: Any, b: Any, *, perturb: bool) -> Any:
        self.check_matrices("b", b)
        if not (dl.shape == d.shape == du.shape == b.shape[:-1]):
            self.fail(
                "expected dl, d and du to have the shape of b without its last axis, got "
                f"{dl}, {d}, {du} and {b}."
            )
        if {dl.dtype, d.dtype, du.dtype} != {b.dtype}:
            self.fail(f"expected operands of one dtype, got {dl}, {d}, {du} and {b}.")
        return array_type(b.shape, b.dtype)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, perturb: bool) -> Any:
        dl, d, du, _ = primals
        x = self.bind(*primals, perturb=perturb)
        if all(map(is_zero_tangent, tangents)):
            return x, Zero(tangent_type(type_of(x)))
        *bands, change = map(instantiate, tangents)
        change = sub(change, _tridiagonal_product(*bands, x))
        return x, self.bind(dl, d, du, change, perturb=perturb)

    @transposed
    def transpose(
        self, cotangent: Any, dl: Any, d: Any, du: Any, b: Any, *, perturb: bool
    ) -> Sequence[Any]:
        solved = self.bind(_moved(du, 1), d, _moved(dl, -1), cotangent, perturb=perturb)
        return [None, None, None, solved]

    def host(self, *operands: np.ndarray, perturb: bool) -> list[np.ndarray]:
        return [lapack.tridiagonal_solve(*operands, perturb)]


class PivotsToPermutation(SingleResult):
    """pivots [..., k] -> permutation [..., size]."""

    def result_type(self, pivots: Any, *, size: int) -> Any:
        return array_type((*pivots.shape[:-1], size), pivots.dtype)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, size: int) -> Any:
        out = self.bind(*primals, size=size)
        return out, Zero(tangent_type(type_of(out)))

    def host(self, pivots: np.ndarray, *, size: int) -> list[np.ndarray]:
        order = np.empty((*pivots.shape[:-1], size), pivots.dtype)
        order[...] = np.arange(size)
        for index in np.ndindex(pivots.shape[:-1]):
            row = order[index]
            for i, j in enumerate(pivots[index]):
                row[i], row[j] = row[j], row[i]
        return [order]


CHOLESKY = Cholesky("cholesky")
LU_FACTOR = LU("lu")
LU_SOLVE = LUSolve("lu_solve")
TRIANGULAR_SOLVE = TriangularSolve("triangular_solve")
PIVOTS_TO_PERMUTATION = PivotsToPermutation("lu_pivots_to_permutation")
TRIDIAGONAL_SOLVE = TridiagonalSolve("tridiagonal_solve")

_LOWER = {
    "left_side": True, "lower": True, "transpose_a": False, "conjugate_a": False,
    "unit_diagonal": False,
}  # fmt: skip


def _as_columns(b: Any, dim: int) -> tuple[Any, Any]:
    """b [..., n, k] with a mapped axis, this one joined with the columns; and the way back.

    One matrix for many right-hand sides is factored and read once."""
    b = move_axis(b, dim, type_of(b).ndim - 1)
    *lead, k, size = type_of(b).shape

    def unfold(x: Any) -> tuple[Any, int]:
        return reshape(x, (*lead, k, size)), len(lead) + 1

    return reshape(b, (*lead, k * size)), unfold


def batch_size(x: Any) -> int:
    return int(np.prod(x.shape[:-2], dtype=np.int64))


def _extended(x: Any, size: int) -> Any:
    """Matrices with zeros added below and to the right, up to size x size."""
    *lead, m, n = type_of(x).shape
    zero = np.zeros((), type_of(x).dtype)[()]
    return pad(x, zero, [*((0, 0, 0) for _ in lead), (0, size - m, 0), (0, size - n, 0)])


def _rows_taken(x: Any, permutation: Any) -> Any:
    """Rows of the matrices x in the order of `permutation` [..., m]."""
    shape = type_of(x).shape
    rank = len(shape)
    return take_along(x, broadcast_to(permutation, shape, tuple(range(rank - 1))), rank - 2)


def _moved(x: Any, by: int) -> Any:
    """x along its last axis one to the right (1) or left (-1), zero coming in."""
    rank = type_of(x).ndim
    zero = np.zeros((), type_of(x).dtype)[()]
    return pad(x, zero, [*((0, 0, 0) for _ in range(rank - 1)), (by, -by, 0)])


def _tridiagonal_product(dl: Any, d: Any, du: Any, x: Any) -> Any:
    shape = type_of(x).shape
    rank = len(shape)
    zero = np.zeros((), type_of(x).dtype)[()]

    def band(values: Any, rows: Any) -> Any:
        return mul(broadcast_to(values, shape, tuple(range(rank - 1))), rows)

    def rows(by: int) -> Any:
        return pad(x, zero, [*((0, 0, 0) for _ in range(rank - 2)), (by, -by, 0), (0, 0, 0)])

    return add(add(band(dl, rows(1)), band(d, x)), band(du, rows(-1)))


# ---- functions


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Any:
    """Lower factors L of Hermitian positive definite matrices: A = L L^H.

    x: [..., n, n], float or complex of 32 or 64 bits a number; symmetrize_input: A is replaced by
    (A + A^H) / 2, else only the lower triangle is read.
    Returns: [..., n, n]; NaN for matrices that are not positive definite.
    Raises: ValueError if x does not hold square matrices; TypeError for other dtypes.

    >>> cholesky(np.array([[4.0, 2.0], [2.0, 2.0]], np.float32)).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    CHOLESKY.type_rule(type_of(x))
    return CHOLESKY.bind(hermitian_part(x) if symmetrize_input else x)


def lu(x: Any) -> tuple[Any, Any, Any]:
    """P A = L U by elimination with row exchanges: (factors, pivots, permutation).

    x: [..., m, n].  factors: L below the diagonal (its own is ones), U on and above it; pivots
    [..., min(m, n)]: row i was exchanged with row pivots[i]; permutation [..., m]: A[permutation]
    equals L U.  Raises: ValueError for rank below 2; TypeError for other dtypes.

    >>> [v.tolist() for v in lu(np.array([[1.0, 2.0], [2.0, 2.0]], np.float32))]
    [[[2.0, 2.0], [0.5, 1.0]], [1, 1], [1, 0]]
    """
    factors, pivots, permutation = LU_FACTOR.bind(x)
    return factors, pivots, permutation


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Any:
    """The permutation of rows that a sequence of row exchanges makes.

    >>> lu_pivots_to_permutation(np.array([2, 2, 2], np.int32), 3).tolist()
    [2, 0, 1]
    """
    aval = type_of(pivots)
    *lead, k = aval.shape
    if not dtypes.is_integer(aval.dtype) or permutation_size < k:
        fail(
            ValueError, "lu_pivots_to_permutation",
            f"expected integer pivots, at most permutation_size of them, got {aval} and "
            f"{permutation_size}.",
        )  # fmt: skip
    return PIVOTS_TO_PERMUTATION.bind(pivots, size=int(permutation_size))


def factored_solve(a: Any, factors: Any, pivots: Any, b: Any, operation: int = 0) -> Any:
    """X of op(A) X = B with the factors of `lu(a)`; derivatives go through `a` and `b`.

    >>> a = np.array([[2.0, 0.0], [0.0, 4.0]], np.float32)
    >>> factors, pivots, _ = lu(a)
    >>> factored_solve(a, factors, pivots, np.ones((2, 1), np.float32)).tolist()
    [[0.5], [0.25]]
    """
    return LU_SOLVE.bind(
        a, stop_gradient(factors), stop_gradient(pivots), b, operation=int(operation)
    )


def linear_solve(a: Any, b: Any) -> Any:
    """X of A X = B for square matrices a [..., n, n] and b [..., n, k].

    A singular matrix gives infinities or NaN.

    >>> linear_solve(np.array([[2.0]], np.float32), np.array([[4.0]], np.float32)).tolist()
    [[2.0]]
    """
    factors, pivots, _ = LU_FACTOR.bind(stop_gradient(a))
    return LU_SOLVE.bind(a, factors, pivots, b, operation=0)


def triangular_solve(
    a: Any, b: Any, *, left_side: bool = False, lower: bool = False, transpose_a: bool = False,
    conjugate_a: bool = False, unit_diagonal: bool = False,
) -> Any:  # fmt: skip
    """X of op(A) X = B (`left_side`) or X op(A) = B, for triangular matrices.

    a: [..., n, n]; b: [..., m, k], or a vector [..., n]; lower: which triangle of a is read;
    transpose_a, conjugate_a: what op does; unit_diagonal: a has ones on its diagonal.
    Raises: ValueError for other ranks; TypeError when shapes or dtypes do not fit.

    >>> a = np.array([[2.0, 0.0], [1.0, 1.0]], np.float32)
    >>> triangular_solve(a, np.ones((2, 1), np.float32), left_side=True, lower=True).tolist()
    [[0.5], [0.5]]
    """
    rank = type_of(b).ndim
    vector = rank == type_of(a).ndim - 1
    if vector:
        shape = type_of(b).shape
        b = broadcast_to(
            b,
            (*shape, 1) if left_side else (*shape[:-1], 1, shape[-1]),
            tuple(range(rank)) if left_side else (*range(rank - 1), rank),
        )
    out = TRIANGULAR_SOLVE.bind(
        a, b, left_side=bool(left_side), lower=bool(lower), transpose_a=bool(transpose_a),
        conjugate_a=bool(conjugate_a and dtypes.is_complex(type_of(a).dtype)),
        unit_diagonal=bool(unit_diagonal),
    )  # fmt: skip
    return _vector_of(out, -1 if left_side else -2) if vector else out


def _vector_of(x: Any, axis: int) -> Any:
    from_shape = type_of(x).shape
    axis += len(from_shape)
    return reshape(x, from_shape[:axis] + from_shape[axis + 1 :])


def tridiagonal_solve(
    dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False
) -> Any:
    """X of T X = B for tridiagonal matrices with the bands dl, d, du.

    dl, d, du: [..., n], of which dl[0] and du[n-1] are not read; b: [..., n, k];
    perturb_singular: pivots below eps times the largest one are given that size, so that singular
    matrices have a finite solution too (for inverse iteration).
    Raises: TypeError when shapes or dtypes differ.

    >>> one = np.ones(2, np.float32)
    >>> tridiagonal_solve(one, 2 * one, one, 3 * np.ones((2, 1), np.float32)).tolist()
    [[1.0], [1.0]]
    """
    return TRIDIAGONAL_SOLVE.bind(dl, d, du, b, perturb=bool(perturb_singular))
