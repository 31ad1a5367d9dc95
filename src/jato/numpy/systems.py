"""jato.numpy.linalg, systems: solve, inverses, determinants, least squares, rank.

Determinants and pseudo-inverses have derivatives of their own (custom_jvp): those of the formulas
they are computed by fail for singular matrices, or cost more.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from jato.base.dtypes import is_complex
from jato.control.cond import cond
from jato.control.custom_jvp import custom_jvp
from jato.jit.eager import public
from jato.numpy.factorizations import eigh, matrices, svd
from jato.numpy.makers import finfo_of
from jato.numpy.promote import (
    broadcast,
    cast,
    common_shape,
    dtype_of,
    normalize_axes,
    promote_dtypes,
)
from jato.numpy.reductions import prod
from jato.numpy.reductions import sum as asum
from jato.ops import elementwise, structural
from jato.ops import linalg as solvers
from jato.ops.matrices import (
    adjoint,
    column_scaled,
    conjugated,
    diagonal,
    identity_like,
    matmul,
    row_scaled,
    swapped,
)
from jato.ops.reduce import reduce_and, reduce_max


class SlogdetResult(NamedTuple):
    sign: Any
    logabsdet: Any


def _real(x: Any) -> Any:
    return elementwise.real(x) if is_complex(dtype_of(x)) else x


def _number(x: Any, value: float) -> Any:
    return np.asarray(value, dtype_of(x))[()]


# ---- solve and inverses


@public()
def solve(a: Any, b: Any) -> Any:
    """The X of A X = B for square matrices; a singular one gives infinities or NaN.

    a: [..., n, n]; b: a vector [n], or matrices [..., n, k] whose leading axes are broadcast with
    those of a.  Raises ValueError when the shapes do not fit.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))
    Array([1. , 0.5], dtype=float32)
    """
    a, b = promote_dtypes("solve", a, b, inexact=True)
    matrices("solve", a, square=True)
    n = a.shape[-1]
    vector = len(b.shape) == 1
    if not b.shape or b.shape[0 if vector else -2] != n:
        raise ValueError(
            f"solve: argument 'b' must have as many rows as 'a', got shapes {a.shape} and {b.shape}"
        )
    b = structural.reshape(b, (n, 1)) if vector else b
    lead = common_shape("solve", (a.shape[:-2], b.shape[:-2]))
    if a.shape[:-2] != lead and math.prod(a.shape[:-2]) == 1:
        x = _solve_for_columns(a, b, lead)
    else:
        x = solvers.linear_solve(
            broadcast(a, (*lead, n, n)), broadcast(b, (*lead, *b.shape[-2:]))
        )
    return structural.reshape(x, (*lead, n)) if vector else x


def _solve_for_columns(a: Any, b: Any, lead: tuple[int, ...]) -> Any:
    """One matrix and several b: these become columns of one, and A is factored once."""
    n, k = b.shape[-2:]
    rank = len(lead)
    a = structural.reshape(a, (n, n))
    b = broadcast(b, (*lead, n, k))
    columns = structural.reshape(
        structural.transpose(b, (rank, *range(rank), rank + 1)), (n, math.prod(lead) * k)
    )
    x = structural.reshape(solvers.linear_solve(a, columns), (n, *lead, k))
    return structural.transpose(x, (*range(1, rank + 1), 0, rank + 1))


@public()
def inv(a: Any) -> Any:
    """The inverses of square matrices; infinities or NaN for singular ones.

    Raises ValueError unless a holds square matrices.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    a = matrices("inv", a, square=True)
    return solvers.linear_solve(a, identity_like(a))


def _split_axes(function: str, shape: tuple[int, ...], ind: int) -> tuple[int, int]:
    rows, columns = math.prod(shape[:ind]), math.prod(shape[ind:])
    if rows != columns:
        raise ValueError(
            f"{function}: the axes before and after position {ind} must have equally many elements, "
            f"got shape {shape}"
        )
    return rows, columns


@public(static=("ind",))
def tensorinv(a: Any, ind: int = 2) -> Any:
    """The inverse of a as a map from its last axes to its first `ind` ones.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.tensorinv(2 * jnp.eye(4).reshape(2, 2, 4)).shape
    (4, 2, 2)
    """
    a = promote_dtypes("tensorinv", a, inexact=True)[0]
    if ind <= 0:
        raise ValueError(f"tensorinv: argument 'ind' must be positive, got {ind}")
    rows, columns = _split_axes("tensorinv", a.shape, ind)
    found = inv(structural.reshape(a, (rows, columns)))
    return structural.reshape(found, a.shape[ind:] + a.shape[:ind])


@public(static=("axes",))
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """The x with tensordot(a, x, x.ndim) = b; `axes` of a are moved to its end first.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.tensorsolve(2 * jnp.eye(4).reshape(2, 2, 4), jnp.ones((2, 2)))
    Array([0.5, 0.5, 0.5, 0.5], dtype=float32)
    """
    a, b = promote_dtypes("tensorsolve", a, b, inexact=True)
    if axes is not None:
        moved = normalize_axes("tensorsolve", axes, len(a.shape), "axes")
        a = structural.transpose(a, (*(i for i in range(len(a.shape)) if i not in moved), *moved))
    shape = a.shape[len(b.shape) :]
    size = math.prod(b.shape)
    if math.prod(shape) != size or a.shape[: len(b.shape)] != b.shape:
        raise ValueError(
            "tensorsolve: argument 'a' must have the axes of b, then equally many elements, got "
            f"shapes {a.shape} and {b.shape}"
        )
    x = solve(structural.reshape(a, (size, size)), structural.reshape(b, (size,)))
    return structural.reshape(x, shape)


# ---- determinants


def _parity(pivots: Any) -> Any:
    """Is the number of row exchanges odd?  bool [...]."""
    rank = len(pivots.shape)
    own = structural.broadcasted_iota(np.dtype("int32"), pivots.shape, rank - 1)
    exchanges = structural.reduce_sum(
        cast(elementwise.ne(pivots, own), np.dtype("int32")), (rank - 1,)
    )
    return elementwise.eq(elementwise.bitwise_and(exchanges, np.int32(1)), np.int32(1))


@custom_jvp
def _det(a: Any) -> Any:
    factors, pivots, _ = solvers.lu(a)
    product = prod(diagonal(factors), -1)
    return elementwise.select(_parity(pivots), elementwise.neg(product), product)


@_det.defjvp
def _det_jvp(primals: Any, tangents: Any) -> Any:
    """d det(A) = sum of the cofactors times dA."""
    (a,), (change,) = primals, tangents
    value = _det(a)
    regular = elementwise.ne(value, _number(value, 0))
    axes = tuple(range(len(value.shape)))
    cofactors = cond(
        reduce_and(regular, axes) if axes else regular, _cofactors_by_inverse, _cofactors_by_svd, a
    )
    return value, asum(elementwise.mul(cofactors, change), (-2, -1))


def _cofactors_by_inverse(a: Any) -> Any:
    value = _det(a)
    rank = len(value.shape)
    scale = structural.broadcast_in_dim(value, a.shape, tuple(range(rank)))
    return elementwise.mul(swapped(solvers.linear_solve(a, identity_like(a))), scale)


def _cofactors_by_svd(a: Any) -> Any:
    """Of A = U S V^H: those of U times those of S times those of V^H; A may be singular."""
    u, s, vh = svd(a)
    n = a.shape[-1]
    others = [
        prod(structural.concatenate([s[..., :i], s[..., i + 1 :]], len(s.shape) - 1), -1)
        for i in range(n)
    ]
    products = structural.concatenate([structural.expand_dims(x, (-1,)) for x in others], len(s.shape) - 1)
    phase = elementwise.mul(_det(u), _det(vh))
    scale = structural.broadcast_in_dim(phase, a.shape, tuple(range(len(phase.shape))))
    inner = matmul(column_scaled(conjugated(u), cast(products, dtype_of(u))), conjugated(vh))
    return elementwise.mul(inner, scale)


def _det_by_cofactors(a: Any) -> Any:
    """Of matrices up to 3 x 3: the sum of products is one fused loop over a batch.

    Elimination takes a pass of its own with branches for every pivot: 5000 of 3 x 3 in 110 us
    against 10.  Both are as accurate for so few terms, and this one has derivatives everywhere."""

    def at(i: int, j: int) -> Any:
        return a[..., i, j]

    def minor(i: int, j: int) -> Any:  # of the last two rows
        first = elementwise.mul(at(-2, i), at(-1, j))
        return elementwise.sub(first, elementwise.mul(at(-2, j), at(-1, i)))

    if a.shape[-1] == 1:
        return at(0, 0)
    if a.shape[-1] == 2:
        return minor(0, 1)
    first, second, third = (
        elementwise.mul(at(0, i), minor(*others)) for i, others in enumerate(((1, 2), (0, 2), (0, 1)))
    )
    return elementwise.add(elementwise.sub(first, second), third)


@public()
def det(a: Any) -> Any:
    """The determinants of square matrices.  Its derivative exists for singular ones too.

    Raises ValueError unless a holds square matrices.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.det(jnp.array([[2.0, 0.0], [1.0, 4.0]]))
    Array(8., dtype=float32)
    """
    a = matrices("det", a, square=True)
    return _det_by_cofactors(a) if 1 <= a.shape[-1] <= 3 else _det(a)


@custom_jvp
def _slogdet(a: Any) -> Any:
    factors, pivots, _ = solvers.lu(a)
    return _slogdet_of(factors, pivots)


def _slogdet_of(factors: Any, pivots: Any) -> Any:
    pivot = diagonal(factors)
    sign = prod(elementwise.sign(pivot), -1)
    sign = elementwise.select(_parity(pivots), elementwise.neg(sign), sign)
    return sign, asum(elementwise.log(elementwise.abs(pivot)), -1)


@_slogdet.defjvp
def _slogdet_jvp(primals: Any, tangents: Any) -> Any:
    """d log det(A) = trace(A^-1 dA): its real part moves the size, its imaginary part the sign."""
    (a,), (change,) = primals, tangents
    factors, pivots, _ = solvers.lu(structural.stop_gradient(a))
    sign, size = _slogdet(a)
    moved = asum(diagonal(solvers.factored_solve(a, factors, pivots, change)), -1)
    if not is_complex(dtype_of(a)):
        return (sign, size), (structural.full_like(sign, 0), moved)
    turn = elementwise.sub(moved, cast(elementwise.real(moved), dtype_of(moved)))
    return (sign, size), (elementwise.mul(turn, sign), elementwise.real(moved))


@public(static=("method",))
def slogdet(a: Any, *, method: str | None = None) -> Any:
    """Sign (of modulus 1, or 0) and log of the modulus of determinants.

    method: None, "lu" or "qr"; all are computed by elimination.
    Raises ValueError unless a holds square matrices.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.slogdet(jnp.array([[1.0, 0.0], [0.0, -1.0]])).sign
    Array(-1., dtype=float32)
    """
    if method not in (None, "lu", "qr"):
        raise ValueError(f"slogdet: argument 'method' must be 'lu' or 'qr', got {method!r}")
    return SlogdetResult(*_slogdet(matrices("slogdet", a, square=True)))


# ---- least squares, pseudo-inverse, rank


def _epsilon(x: Any) -> float:
    return float(finfo_of(dtype_of(x)).eps)


@functools.partial(custom_jvp, nondiff_argnums=(1, 2))
def _pinv(a: Any, rtol: Any, hermitian: bool) -> Any:
    u, s, vh = svd(a, full_matrices=False, hermitian=hermitian)
    if s.shape[-1] == 0:
        return adjoint(a)
    limit = elementwise.mul(s[..., :1], _number(s, rtol))
    kept = elementwise.gt(s, structural.broadcast_in_dim(limit, s.shape, tuple(range(len(s.shape)))))
    one, zero = structural.full_like(s, 1), structural.full_like(s, 0)
    inverse = elementwise.select(kept, elementwise.div(one, elementwise.select(kept, s, one)), zero)
    return matmul(column_scaled(adjoint(vh), cast(inverse, dtype_of(u))), adjoint(u))


@_pinv.defjvp
def _pinv_jvp(rtol: Any, hermitian: bool, primals: Any, tangents: Any) -> Any:
    """G. Golub, V. Pereyra, "The differentiation of pseudo-inverses" (1973), for constant rank."""
    (a,), (change,) = primals, tangents
    p = _pinv(a, rtol, hermitian)
    back = adjoint(change)
    moved = elementwise.neg(matmul(p, change, p))
    left = matmul(p, adjoint(p), back)
    left = elementwise.sub(left, matmul(left, a, p))
    right = matmul(back, adjoint(p), p)
    right = elementwise.sub(right, matmul(p, a, right))
    return p, elementwise.add(elementwise.add(moved, left), right)


@public(static=("rtol", "hermitian", "rcond"))
def pinv(a: Any, rtol: Any = None, hermitian: bool = False, *, rcond: Any = None) -> Any:
    """The Moore-Penrose inverses of matrices.

    rtol: singular values up to rtol times the largest count as 0 (default: 10 max(m, n) eps);
    hermitian: a is taken to be Hermitian; rcond: an older name of rtol.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.pinv(jnp.array([[2.0], [0.0]]))
    Array([[0.5, 0. ]], dtype=float32)
    """
    a = matrices("pinv", a)
    rtol = rcond if rtol is None else rtol
    if rtol is None:
        rtol = 10 * max(a.shape[-2:]) * _epsilon(a)
    return _pinv(a, float(rtol), bool(hermitian))


@public(static=("rcond", "numpy_resid"))
def lstsq(a: Any, b: Any, rcond: Any = None, *, numpy_resid: bool = False) -> Any:
    """The x of least norm among those that minimize |A x - b|: (x, residuals, rank, s).

    a: [m, n]; b: [m] or [m, k]; rcond: singular values below rcond times the largest count as 0
    (default: eps times max(m, n)).  residuals: squared lengths of A x - b, always computed unless
    `numpy_resid`, with which they are empty where NumPy leaves them so.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.lstsq(jnp.array([[2.0], [0.0]]), jnp.array([4.0, 1.0]))[0]
    Array([2.], dtype=float32)
    """
    a, b = promote_dtypes("lstsq", a, b, inexact=True)
    if len(a.shape) != 2 or len(b.shape) not in (1, 2) or a.shape[0] != b.shape[0]:
        raise ValueError(
            "lstsq: expected a of shape [m, n] and b of shape [m] or [m, k], got shapes "
            f"{a.shape} and {b.shape}"
        )
    m, n = a.shape
    vector = len(b.shape) == 1
    b = structural.reshape(b, (m, 1)) if vector else b
    if rcond is None:
        rcond = _epsilon(a) * max(m, n)
    elif rcond < 0:
        rcond = _epsilon(a)
    u, s, vh = svd(a, full_matrices=False)
    if s.shape[0]:
        limit = elementwise.mul(s[0], _number(s, rcond))
        kept = elementwise.bitwise_and(elementwise.ge(s, limit), elementwise.gt(s, _number(s, 0)))
    else:
        kept = elementwise.ge(s, s)
    rank = asum(cast(kept, np.dtype("int32")))
    one, zero = structural.full_like(s, 1), structural.full_like(s, 0)
    inverse = elementwise.select(kept, elementwise.div(one, elementwise.select(kept, s, one)), zero)
    x = matmul(adjoint(vh), row_scaled(matmul(adjoint(u), b), cast(inverse, dtype_of(u))))
    if numpy_resid and (m <= n or int(rank) < n):
        residuals = structural.full((0,), 0, dtype_of(s))
    else:
        difference = elementwise.abs(elementwise.sub(b, matmul(a, x)))
        residuals = asum(elementwise.square(difference), 0)
    return (structural.reshape(x, (n,)) if vector else x), residuals, rank, s


@public(static=("tol", "hermitian"))
def matrix_rank(M: Any, rtol: Any = None, *, hermitian: bool = False, tol: Any = None) -> Any:
    """The number of singular values above a limit.

    rtol: the limit relative to the largest (default: max(m, n) eps); hermitian: the matrices are,
    so that absolute eigenvalues are taken, which costs less; tol: an older name of rtol.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.matrix_rank(jnp.array([[1.0, 1.0], [2.0, 2.0]]))
    Array(1, dtype=int32)
    """
    x = promote_dtypes("matrix_rank", M, inexact=True)[0]
    if len(x.shape) < 2:
        nonzero = elementwise.ne(x, _number(x, 0))
        some = asum(cast(nonzero, np.dtype("int32")))
        return cast(elementwise.gt(some, np.int32(0)), np.dtype("int32"))
    s = elementwise.abs(eigh(x)[0]) if hermitian else svd(x, full_matrices=False, compute_uv=False)
    if s.shape[-1] == 0:
        return structural.full(s.shape[:-1], 0, np.dtype("int32"))
    rtol = tol if rtol is None else rtol
    if rtol is None:
        rtol = max(x.shape[-2:]) * _epsilon(s)
    (relative,) = promote_dtypes("matrix_rank", rtol, inexact=True)
    largest = reduce_max(s, (len(s.shape) - 1,))
    limit = elementwise.mul(largest, broadcast(cast(relative, dtype_of(s)), s.shape[:-1]))
    above = elementwise.gt(s, structural.broadcast_in_dim(limit, s.shape, tuple(range(len(s.shape) - 1))))
    return asum(cast(above, np.dtype("int32")), -1)
