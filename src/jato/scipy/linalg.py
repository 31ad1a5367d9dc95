"""jato.scipy.linalg: SciPy's linear algebra on jato's arrays.

Factorizations and solves delegate to numpy.linalg and ops; what follows is composed: solves with
factors, the matrix exponential, special matrices.  `overwrite_*` and `check_finite` are accepted
and ignored, `lapack_driver` too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jato.base.dtypes import is_complex
from jato.control.cond import cond
from jato.control.scan import scan
from jato.jit.eager import public
from jato.numpy import linalg as jlinalg
from jato.numpy.factorizations import matrices
from jato.numpy.makers import is_nan
from jato.numpy.promote import broadcast, cast, common_shape, dtype_of, promote_dtypes
from jato.numpy.reductions import max as amax
from jato.numpy.reductions import sum as asum
from jato.ops import elementwise, spectral, structural
from jato.ops import linalg as solvers
from jato.ops.indexing import take_along
from jato.ops.linalg import TRIANGULAR_SOLVE
from jato.ops.matrices import adjoint, identity_like, lower_part, matmul, upper_part
from jato.ops.shapes import broadcast_to
from jato.ops.sort import sort

_TRANSPOSES: dict[Any, int] = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}


@public(static=("lower", "overwrite_a", "check_finite"))
def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
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
def lu(a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
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


@public(static=("full_matrices", "compute_uv", "overwrite_a", "check_finite", "lapack_driver"))
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """A = U diag(s) Vh: (U, s, Vh), or s alone.

    >>> import jato.numpy as jnp
    >>> svd(jnp.array([[2.0]]), compute_uv=False)
    Array([2.], dtype=float32)
    """
    found = jlinalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)
    return tuple(found) if compute_uv else found


@public(static=("overwrite_a", "lwork", "mode", "pivoting", "check_finite"))
def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """A = Q R: (Q, R), with `pivoting` (Q, R, order of columns); mode "full", "economic" or "r".

    >>> import jato.numpy as jnp
    >>> qr(jnp.eye(2), mode="r")[0].shape
    (2, 2)
    """
    if mode not in ("full", "r", "economic"):
        raise ValueError(f"qr: argument 'mode' must be 'full', 'r' or 'economic', got {mode!r}")
    found = spectral.qr(matrices("qr", a), pivoting=pivoting, full_matrices=mode != "economic")
    return tuple(found[1:]) if mode == "r" else tuple(found)


@public(
    static=("lower", "eigvals_only", "overwrite_a", "overwrite_b", "turbo", "eigvals", "type", "check_finite")
)
def eigh(
    a: Any,
    b: Any = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: Any = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """Rising eigenvalues and eigenvectors of Hermitian matrices: (w, v), or w alone.

    Raises NotImplementedError for the generalized problem and for a range of eigenvalues.

    >>> import jato.numpy as jnp
    >>> eigh(jnp.array([[2.0]]), eigvals_only=True)
    Array([2.], dtype=float32)
    """
    if b is not None or eigvals is not None or type != 1:
        raise NotImplementedError("eigh: arguments 'b', 'eigvals' and 'type' are not supported")
    vectors, values = spectral.eigh(matrices("eigh", a, True), lower=lower, symmetrize_input=False)
    return values if eigvals_only else (values, vectors)


@public(static=("output",))
def schur(a: Any, output: str = "real") -> tuple[Any, Any]:
    """A = Z T Z^H with a triangular T ("complex"), or one with 2 x 2 blocks ("real"): (T, Z).

    >>> import jato.numpy as jnp
    >>> schur(jnp.array([[2.0]]))[0]
    Array([[2.]], dtype=float32)
    """
    if output not in ("real", "complex"):
        raise ValueError(f"schur: argument 'output' must be 'real' or 'complex', got {output!r}")
    a = matrices("schur", a, square=True)
    if output == "complex":
        a = cast(a, np.result_type(dtype_of(a), np.complex64))
    found, vectors = spectral.schur(a)
    return found, vectors


# ---- the matrix exponential

# Coefficients of the diagonal Pade approximant of order 13 to exp, and the norm up to which it is exact to
# rounding: N. Higham, "The scaling and squaring method for the matrix exponential revisited" (2005).
_PADE = [
    math.factorial(26 - i) * math.factorial(13)
    / (math.factorial(26) * math.factorial(i) * math.factorial(13 - i))
    for i in range(14)
]  # fmt: skip
_PADE_LIMIT = {4: 3.925724783138660, 8: 5.371920351148152}


@public(static=("upper_triangular", "max_squarings"))
def expm(A: Any, *, upper_triangular: bool = False, max_squarings: int = 16) -> Any:
    """The exponential of square matrices, by scaling and squaring.

    upper_triangular: A is, and so is the result; max_squarings: matrices whose norm would need
    more give NaN.  Raises ValueError unless A holds square matrices.

    >>> import jato.numpy as jnp
    >>> expm(jnp.zeros((1, 1)))
    Array([[1.]], dtype=float32)
    """
    a = matrices("expm", A, square=True, argument="A")
    if a.shape[-1] == 0:
        return a
    dtype = dtype_of(a)
    norm = amax(asum(elementwise.abs(structural.stop_gradient(a)), -2), -1)
    limit = _PADE_LIMIT[np.zeros((), dtype).real.itemsize]
    scaled = elementwise.div(norm, np.asarray(limit, dtype_of(norm))[()])
    tiny = np.asarray(1e-30, dtype_of(norm))[()]
    wanted = elementwise.ceil(elementwise.log2(elementwise.max(scaled, tiny)))
    wanted = elementwise.max(wanted, np.asarray(0, dtype_of(norm))[()])
    factor = elementwise.exp2(elementwise.neg(wanted))
    rank = len(norm.shape)
    spread = broadcast_to(cast(factor, dtype), a.shape, tuple(range(rank)))
    power = _exponential_by_pade(elementwise.mul(a, spread), upper_triangular)

    def square(x: Any, i: Any) -> tuple[Any, None]:
        more = elementwise.lt(i, wanted)
        if rank:
            mask = broadcast_to(more, x.shape, tuple(range(rank)))
            return elementwise.select(mask, matmul(x, x), x), None
        return cond(more, lambda x: matmul(x, x), lambda x: x, x), None

    steps = np.arange(max_squarings).astype(dtype_of(norm))
    if rank:
        steps = np.broadcast_to(steps.reshape(-1, *[1] * rank), (max_squarings, *norm.shape))
    result, _ = scan(square, power, steps)
    too_large = elementwise.bitwise_or(
        elementwise.gt(wanted, np.asarray(max_squarings, dtype_of(norm))[()]), is_nan(norm)
    )
    mask = broadcast_to(too_large, a.shape, tuple(range(rank)))
    return elementwise.select(mask, structural.full_like(result, np.nan), result)


def _exponential_by_pade(a: Any, upper: bool) -> Any:
    one = identity_like(a)
    c = [np.asarray(v, dtype_of(a))[()] for v in _PADE]
    a2 = matmul(a, a)
    a4 = matmul(a2, a2)
    a6 = matmul(a4, a2)

    def combined(*terms: tuple[Any, Any]) -> Any:
        total = elementwise.mul(terms[0][1], terms[0][0])
        for factor, matrix in terms[1:]:
            total = elementwise.add(total, elementwise.mul(matrix, factor))
        return total

    high = matmul(a6, combined((c[13], a6), (c[11], a4), (c[9], a2)))
    odd = elementwise.add(high, combined((c[7], a6), (c[5], a4), (c[3], a2), (c[1], one)))
    odd = matmul(a, odd)
    high = matmul(a6, combined((c[12], a6), (c[10], a4), (c[8], a2)))
    even = elementwise.add(high, combined((c[6], a6), (c[4], a4), (c[2], a2), (c[0], one)))
    above, below = elementwise.add(even, odd), elementwise.sub(even, odd)
    return _triangular(below, above, False) if upper else solvers.linear_solve(below, above)


# ---- special matrices


@public()
def block_diag(*arrs: Any) -> Any:
    """Matrices along the diagonal of a larger one, zeros elsewhere.

    >>> import jato.numpy as jnp
    >>> block_diag(jnp.array([[1, 2]]), jnp.array([3]))
    Array([[1, 2, 0],
           [0, 0, 3]], dtype=int32)
    """
    if not arrs:
        return structural.full((1, 0), 0, np.dtype("float32"))
    items = promote_dtypes("block_diag", *arrs)
    for i, x in enumerate(items):
        if len(x.shape) > 2:
            raise ValueError(
                f"block_diag: argument {i} must have rank 2 or less, got shape {x.shape}"
            )
    blocks = [structural.reshape(x, (1,) * (2 - len(x.shape)) + x.shape) for x in items]
    width = sum(x.shape[1] for x in blocks)
    rows, before = [], 0
    for x in blocks:
        zero = np.zeros((), dtype_of(x))[()]
        rows.append(structural.pad(x, zero, [(0, 0, 0), (before, width - before - x.shape[1], 0)]))
        before += x.shape[1]
    return structural.concatenate(rows, 0)


@public()
def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix with c for its first column, r (default: conj(c)) for its first row, and constant
    diagonals; c and r are vectors, or batches of them.

    >>> import jato.numpy as jnp
    >>> toeplitz(jnp.array([1, 2]), jnp.array([1, 3, 4]))
    Array([[1, 3, 4],
           [2, 1, 3]], dtype=int32)
    """
    if r is None:
        (c,) = promote_dtypes("toeplitz", c)
        r = elementwise.conj(c) if is_complex(dtype_of(c)) else c
    c, r = promote_dtypes("toeplitz", c, r)
    c, r = (x if x.shape else structural.reshape(x, (1,)) for x in (c, r))
    lead = common_shape("toeplitz", (c.shape[:-1], r.shape[:-1]))
    m, n = c.shape[-1], r.shape[-1]
    if 0 in (m, n):
        return structural.full((*lead, m, n), 0, dtype_of(c))
    rank = len(lead)
    c, r = broadcast(c, (*lead, m)), broadcast(r, (*lead, n))
    rest = structural.slice_in_dim(r, 1, n, axis=-1)
    line = structural.concatenate([structural.rev(c, (rank,)), rest], rank)
    index = np.arange(m - 1, -1, -1)[:, None] + np.arange(n)[None]
    return line[..., index]


@public(static=("n",))
def hilbert(n: int) -> Any:
    """The matrix of 1 / (i + j + 1).

    >>> hilbert(2)
    Array([[1.        , 0.5       ],
           [0.5       , 0.33333334]], dtype=float32)
    """
    i = np.arange(n)
    found = promote_dtypes("hilbert", 1.0 / (i[:, None] + i[None] + 1), inexact=True)[0]
    return structural.reshape(found, (n, n))
