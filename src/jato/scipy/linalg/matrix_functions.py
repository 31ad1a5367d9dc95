"""The exponential, the square root and other functions of matrices; Sylvester's equation.

Beyond the exponential they go through the complex Schur form: A = Z T Z^H, and a function of the
triangle T is a triangle.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import jato.numpy as jnp
from jato.base.dtypes import is_complex
from jato.control.cond import cond
from jato.control.custom_jvp import custom_jvp
from jato.control.implicit import custom_linear_solve
from jato.control.scan import scan
from jato.jit.eager import public
from jato.numpy import linalg as jlinalg
from jato.numpy.factorizations import matrices
from jato.numpy.makers import is_nan
from jato.numpy.promote import cast, dtype_of, promote_dtypes
from jato.numpy.reductions import max as amax
from jato.numpy.reductions import sum as asum
from jato.ops import elementwise, spectral, structural
from jato.ops import linalg as solvers
from jato.ops.matrices import adjoint, identity_like, matmul
from jato.ops.shapes import broadcast_to
from jato.transforms.jvp import jvp

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
    if upper:
        return solvers.triangular_solve(below, above, left_side=True)
    return solvers.linear_solve(below, above)


@public(static=("method", "compute_expm"))
def expm_frechet(A: Any, E: Any, *, method: Any = None, compute_expm: bool = True) -> Any:
    """The derivative of expm at A in the direction E: (expm(A), derivative), or the latter alone.

    A, E: square matrices (..., n, n); method: no effect.

    >>> import jato.numpy as jnp
    >>> expm_frechet(jnp.zeros((1, 1)), jnp.ones((1, 1)))
    (Array([[1.]], dtype=float32), Array([[1.]], dtype=float32))
    """
    a, e = promote_dtypes("expm_frechet", A, E, inexact=True)
    a = matrices("expm_frechet", a, square=True, argument="A")
    e = matrices("expm_frechet", e, square=True, argument="E")
    if a.shape != e.shape:
        raise ValueError(
            f"expm_frechet: arguments 'A' and 'E' must have one shape, got {a.shape} and {e.shape}"
        )
    found = jvp(expm, (a,), (e,))
    return tuple(found) if compute_expm else found[1]


# ---- Sylvester's equation


def _complex_schur(a: Any) -> tuple[Any, Any]:
    return spectral.schur(cast(a, np.result_type(dtype_of(a), np.complex64)))


def _by_schur(a: Any, b: Any, c: Any) -> tuple[Any, Any, Any]:
    """X; and the eigenvalues of A and B.  R Y + Y S = F has a triangular system for each column: R. Bartels
    and G. Stewart, "Solution of the matrix equation AX + XB = C", Comm. ACM 15 (1972)."""
    (r, u), (s, v) = _complex_schur(a), _complex_schur(b)
    f = adjoint(u) @ cast(c, dtype_of(u)) @ v
    n = s.shape[-1]
    one = jnp.eye(r.shape[-1], dtype=r.dtype)

    def column(y: Any, k: Any) -> tuple[Any, None]:
        # the columns from k on are still 0
        right = f[:, k] - y @ s[:, k]
        solved = solvers.triangular_solve(r + s[k, k] * one, right[:, None], left_side=True)
        return y.at[:, k].set(solved[:, 0]), None

    y, _ = scan(column, jnp.zeros_like(f), jnp.arange(n))
    return u @ y @ adjoint(v), jnp.diagonal(r), jnp.diagonal(s)


def _by_eigenvectors(a: Any, b: Any, c: Any) -> tuple[Any, Any, Any]:
    (p, u), (q, v) = jlinalg.eig(a), jlinalg.eig(b)
    f = jlinalg.solve(u, cast(c, dtype_of(u)) @ v)
    y = f / (p[:, None] + q)
    return jlinalg.solve(v.T, (u @ y).T).T, p, q


def _sylvester(method: str, tol: float) -> Any:
    """The solution of one equation as a function of A, B and C.

    It is the solution of a linear system in C, and differentiated as such.
    """
    by = _by_schur if method == "schur" else _by_eigenvectors

    def one(a: Any, b: Any, c: Any) -> Any:
        x, p, q = by(a, b, c)
        x = x if is_complex(dtype_of(c)) else jnp.real(x)
        return jnp.where(jnp.min(jnp.abs(p[:, None] + q)) < tol, math.nan, x)

    def solution(a: Any, b: Any, c: Any) -> Any:
        # the solvers have no derivatives of their own
        fixed_a, fixed_b = structural.stop_gradient(a), structural.stop_gradient(b)
        return custom_linear_solve(
            lambda x: a @ x + x @ b,
            c,
            lambda _, c: one(fixed_a, fixed_b, c),
            lambda _, c: one(fixed_a.T, fixed_b.T, c),
        )

    return solution


@public(static=("method", "tol"))
def solve_sylvester(A: Any, B: Any, C: Any, *, method: str = "schur", tol: float = 1e-8) -> Any:
    """The X of A X + X B = C.

    A: (..., m, m), B: (..., n, n), C: (..., m, n); leading axes broadcast.  method: "schur", or
    "eigen", with fewer digits where eigenvectors are nearly dependent.  NaN where an eigenvalue of A
    and one of B have a sum smaller than tol.  ValueError for other methods and shapes.

    >>> import jato.numpy as jnp
    >>> solve_sylvester(jnp.array([[1.0]]), jnp.array([[3.0]]), jnp.array([[8.0]]))
    Array([[2.]], dtype=float32)
    """
    if method not in ("schur", "eigen"):
        raise ValueError(
            f"solve_sylvester: argument 'method' must be 'schur' or 'eigen', got {method!r}"
        )
    a, b, c = promote_dtypes("solve_sylvester", A, B, C, inexact=True)
    a = matrices("solve_sylvester", a, square=True, argument="A")
    b = matrices("solve_sylvester", b, square=True, argument="B")
    c = matrices("solve_sylvester", c, argument="C")
    if c.shape[-2:] != (a.shape[-1], b.shape[-1]):
        raise ValueError(
            f"solve_sylvester: argument 'C' must have shape (..., {a.shape[-1]}, {b.shape[-1]}), got {c.shape}"
        )
    return jnp.vectorize(_sylvester(method, tol), signature="(m,m),(n,n),(m,n)->(m,n)")(a, b, c)


# ---- functions of triangles, one superdiagonal after the other


def _superdiagonals(first: Any, step: Any) -> Any:
    """A triangle with the diagonal of `first`, whose p-th superdiagonal is that of step(triangle so far)."""
    n = first.shape[-1]
    offset = np.arange(n) - np.arange(n)[:, None]

    def one(triangle: Any, p: Any) -> tuple[Any, None]:
        return jnp.where(offset == p, step(triangle), triangle), None

    return scan(one, first, jnp.arange(1, n))[0] if n > 1 else first


def _quotient(x: Any, y: Any) -> Any:
    zero = y == 0
    return jnp.where(zero, 0, x / jnp.where(zero, 1, y))


@custom_jvp
def _square_root(a: Any) -> Any:
    t, z = _complex_schur(a)
    roots = jnp.sqrt(jnp.diagonal(t))
    sums = roots[:, None] + roots
    found = _superdiagonals(jnp.diag(roots), lambda r: _quotient(t - r @ r, sums))
    return z @ found @ adjoint(z)


@_square_root.defjvp
def _square_root_rule(primals: Any, tangents: Any) -> Any:
    (a,), (t,) = primals, tangents
    root = _square_root(a)
    # R dR + dR R = dA
    return root, _sylvester("schur", 0.0)(root, root, cast(t, dtype_of(root)))


@public(static=("blocksize",))
def sqrtm(A: Any, blocksize: int = 1) -> Any:
    """The principal square root of a matrix (n, n), complex.

    A. Bjorck and S. Hammarling, "A Schur method for the square root of a matrix", Linear Algebra Appl.
    52 (1983).  NotImplementedError for a blocksize greater than 1, ValueError unless A is square.

    >>> import jato.numpy as jnp
    >>> sqrtm(jnp.array([[4.0]])).real
    Array([[2.]], dtype=float32)
    """
    if blocksize > 1:
        raise NotImplementedError(
            f"sqrtm: argument 'blocksize' must be 1, got {blocksize}; there are no blocks here"
        )
    return _square_root(_one_matrix("sqrtm", A))


def _one_matrix(function: str, a: Any) -> Any:
    a = matrices(function, a, square=True, argument="A")
    if len(a.shape) != 2:
        raise ValueError(f"{function}: argument 'A' must be one square matrix, got shape {a.shape}")
    return a


def funm(A: Any, func: Any, disp: bool = True) -> Any:
    """func(A), for a function of numbers that takes arrays; complex.

    A: one square matrix (n, n), else ValueError; disp: False gives (func(A), an estimate of the
    error) instead.  B. Parlett, "A recurrence among the elements of functions of triangular matrices",
    Linear Algebra Appl. 14 (1976): accurate for eigenvalues that are distinct.

    >>> import jato.numpy as jnp
    >>> funm(jnp.array([[2.0]]), lambda x: x * x).real
    Array([[4.]], dtype=float32)
    """
    a = _one_matrix("funm", A)
    t, z = _complex_schur(a)
    values = jnp.diagonal(t)
    gaps = values - values[:, None]
    first = jnp.diag(cast(func(values), dtype_of(t)))
    # from F T = T F, with the p-th superdiagonal of F still 0
    found = _superdiagonals(first, lambda f: _quotient(t @ f - f @ t, gaps))
    value = z @ found @ adjoint(z)
    if disp:
        return value
    n = t.shape[-1]
    precision = float(jnp.finfo(dtype_of(t)).eps)
    apart = jnp.where(np.triu(np.ones((n, n), bool), 1), jnp.abs(gaps), math.inf)
    least = jnp.min(apart, initial=math.inf)
    spread = jnp.max(jnp.sum(jnp.abs(jnp.triu(t, 1)), 0), initial=0)
    error = jnp.minimum(
        1, jnp.maximum(precision, jnp.where(spread > 0, precision / least * spread, 0))
    )
    return value, jnp.where(jnp.all(jnp.isfinite(value)), error, math.inf)
