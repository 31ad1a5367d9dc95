"""The polar decomposition A = U H by Halley's iteration, `qdwh`.

Y. Nakatsukasa, Z. Bai and F. Gygi, "Optimizing Halley's iteration for computing the matrix polar
decomposition", SIAM J. Matrix Anal. Appl. 31 (2010): each step maps the singular values s of the
iterate to s (a + b s^2) / (1 + c s^2) with weights that bring the interval [l, 1] that holds them
closest to 1.  Where c is small a Cholesky factor of 1 + c X^H X does what needs a QR factorization
of [sqrt(c) X; 1] otherwise.  Six steps are enough for a condition number of 1e16.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import check
from jato.control.cond import cond
from jato.control.while_loop import while_loop
from jato.core.types import type_of
from jato.ops.convert import convert_element_type
from jato.ops.elementwise import abs as magnitude
from jato.ops.elementwise import (
    add,
    bitwise_and,
    bitwise_or,
    cbrt,
    div,
    eq,
    ge,
    gt,
    lt,
    mul,
    select,
    sqrt,
    square,
    sub,
)
from jato.ops.linalg import cholesky, triangular_solve
from jato.ops.matrices import adjoint, halved, hermitian_part, identity_like, matmul
from jato.ops.reduce import reduce_max
from jato.ops.spectral import qr
from jato.ops.structural import concatenate, full_like, reduce_sum, slice_in_dim

_LARGE = 100.0  # the weight c from which on the Cholesky factor loses accuracy
_MOST_STEPS = 10


def qdwh(
    x: Any, *, is_hermitian: bool = False, max_iterations: int | None = None,
    eps: float | None = None, dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """x = u h with orthonormal columns of u and a Hermitian h >= 0: (u, h, steps, has converged).

    x: a matrix [m, n] of full rank, m >= n, float or complex; is_hermitian: tells no more than x
    does; max_iterations: by default 10; eps: the relative accuracy wanted, by default that of the
    dtype; dynamic_shape: None.
    Returns: u [m, n], h [n, n], an int32 and a bool.
    Raises: ValueError for other shapes and settings; TypeError for other dtypes.  There is no
    derivative in reverse mode, as of any `while_loop`.

    >>> u, h, steps, converged = qdwh(np.array([[0.0, 2.0], [3.0, 0.0]], np.float32))
    >>> np.round(np.abs(np.asarray(u)), 3).tolist(), bool(converged)
    ([[0.0, 1.0], [1.0, 0.0]], True)
    """
    aval = type_of(x)
    check(
        aval.ndim == 2 and aval.shape[0] >= aval.shape[1],
        ValueError,
        f"qdwh: expected x to be a matrix with at least as many rows as columns, got {aval}",
    )
    check(
        dtypes.is_inexact(aval.dtype) and aval.dtype.itemsize >= 4,
        TypeError,
        f"qdwh: expected x of dtype float32, float64, complex64 or complex128, got {aval}",
    )
    check(
        dynamic_shape is None,
        ValueError,
        f"qdwh: argument 'dynamic_shape': expected None, got {dynamic_shape}; pass the part of x "
        "that counts",
    )
    limit = _MOST_STEPS if max_iterations is None else int(max_iterations)
    check(limit >= 1, ValueError, f"qdwh: argument 'max_iterations' must be positive, got {limit}")
    real = np.zeros((), aval.dtype).real.dtype
    accuracy = float(np.finfo(real).eps) if eps is None else float(eps)
    check(accuracy > 0, ValueError, f"qdwh: argument 'eps' must be positive, got {eps}")
    if aval.size == 0:
        empty = matmul(adjoint(x), x)
        return x, empty, np.int32(0), np.bool_(True)
    u, steps, converged = _unitary_factor(x, real, accuracy, limit)
    # one step of Newton and Schulz: to full accuracy from half of it
    u = sub(mul(u, _number(1.5, aval.dtype)), halved(matmul(u, matmul(adjoint(u), u))))
    return u, hermitian_part(matmul(adjoint(u), x)), steps, converged


def _number(value: float, dtype: Any) -> Any:
    return np.asarray(value, dtype)[()]


def _unitary_factor(x: Any, real: Any, eps: float, limit: int) -> tuple[Any, Any, Any]:
    """(U, steps, has converged)."""
    dtype = type_of(x).dtype
    sizes = magnitude(x)
    # |A|_2 <= sqrt(|A|_1 |A|_inf); 1 for A = 0
    bound = sqrt(mul(*(reduce_max(reduce_sum(sizes, (i,)), (0,)) for i in (0, 1))))
    bound = select(eq(bound, _number(0, real)), _number(1, real), bound)
    start = div(x, convert_element_type(bound, dtype))
    closeness = _number((4 * eps) ** (1 / 3), real)

    def wanted(state: Any) -> Any:
        _, _, steps, unsettled = state
        return bitwise_and(unsettled, lt(steps, np.int32(limit)))

    def step(state: Any) -> Any:
        u, low, steps, _ = state
        a, b, c = _weights(low, real)
        following = cond(gt(c, _number(_LARGE, real)), _step_by_qr, _step_by_cholesky, u, a, b, c)
        low = div(mul(low, add(a, mul(b, square(low)))), add(mul(c, square(low)), 1))
        low = select(gt(low, _number(1, real)), _number(1, real), low)
        change, size = (_norm(v) for v in (sub(following, u), following))
        moved = ge(change, mul(size, closeness))
        wide = ge(magnitude(sub(low, 1)), _number(5 * eps, real))
        return following, low, add(steps, np.int32(1)), bitwise_or(moved, wide)

    state = start, _number(eps, real), np.int32(0), np.bool_(True)
    u, _, steps, unsettled = while_loop(wanted, step, state)
    return u, steps, eq(unsettled, np.bool_(False))


def _norm(x: Any) -> Any:
    return sqrt(reduce_sum(square(magnitude(x)), (0, 1)))


def _weights(low: Any, real: Any) -> tuple[Any, Any, Any]:
    """(a, b, c) for singular values in [low, 1]."""
    squared = square(low)
    d = cbrt(div(mul(sub(1, squared), 4), square(squared)))
    root = sqrt(add(d, 1))
    inner = add(sub(8, mul(d, 4)), div(mul(sub(2, squared), 8), mul(squared, root)))
    a = add(root, mul(sqrt(inner), 0.5))
    b = mul(square(sub(a, 1)), 0.25)
    return a, b, sub(add(a, b), 1)


def _scaled(x: Any, factor: Any) -> Any:
    return mul(x, convert_element_type(factor, type_of(x).dtype))


def _step_by_qr(u: Any, a: Any, b: Any, c: Any) -> Any:
    m, n = type_of(u).shape
    gram = full_like(u, 0, shape=(n, n))
    q, _ = qr(concatenate([_scaled(u, sqrt(c)), identity_like(gram)], 0), full_matrices=False)
    top, bottom = slice_in_dim(q, 0, m), slice_in_dim(q, m, m + n)
    weight = div(sub(a, div(b, c)), sqrt(c))
    return add(_scaled(u, div(b, c)), _scaled(matmul(top, adjoint(bottom)), weight))


def _step_by_cholesky(u: Any, a: Any, b: Any, c: Any) -> Any:
    gram = _scaled(matmul(adjoint(u), u), c)
    factor = cholesky(add(gram, identity_like(gram)))
    half = triangular_solve(factor, adjoint(u), left_side=True, lower=True)
    solved = triangular_solve(
        factor, half, left_side=True, lower=True, transpose_a=True, conjugate_a=True
    )
    return add(_scaled(u, div(b, c)), _scaled(adjoint(solved), sub(a, div(b, c))))
