"""jato.scipy.sparse.linalg: Krylov methods for A x = b, with A a function or a matrix.

cg         M. Hestenes and E. Stiefel, J. Res. NBS 49 (1952)
bicgstab   H. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992)
gmres      Y. Saad and M. Schultz, SIAM J. Sci. Stat. Comput. 7 (1986), preconditioned from the right

x and b may be pytrees; inside they are one vector.  Derivatives are those of the solution, found by
another solve (control/implicit.py).  Start at `_solved`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jato.numpy as jnp
import numpy as np
from jato.base.dtypes import is_complex
from jato.control.implicit import custom_linear_solve
from jato.control.scan import scan
from jato.control.while_loop import while_loop
from jato.numpy.promote import as_array, dtype_of, promote_dtypes
from jato.tree_util import tree_flatten, tree_unflatten

Product = Callable[[Any], Any]
Solver = Callable[[Product, Any, Any, Product, Any], Any]


# ---- pytrees as vectors


class _Vectors:
    """Between pytrees shaped like b and vectors."""

    def __init__(self, function: str, b: Any):
        leaves, self.tree = tree_flatten(b)
        if not leaves:
            raise ValueError(f"{function}: argument 'b' has no arrays")
        arrays = promote_dtypes(function, *leaves, inexact=True)
        self.function = function
        self.shapes = [x.shape for x in arrays]
        self.dtype = dtype_of(arrays[0])

    def vector(self, tree: Any, what: str) -> Any:
        leaves, structure = tree_flatten(tree)
        shapes = [np.shape(x) for x in leaves]
        if structure != self.tree or shapes != self.shapes:
            raise ValueError(
                f"{self.function}: {what} must have the structure and shapes of 'b', {self.tree} with "
                f"{self.shapes}, got {structure} with {shapes}"
            )
        parts = [jnp.ravel(jnp.asarray(x)).astype(self.dtype) for x in leaves]
        return parts[0] if len(parts) == 1 else jnp.concatenate(parts)

    def pytree(self, vector: Any) -> Any:
        leaves, start = [], 0
        for shape in self.shapes:
            size = math.prod(shape)
            leaves.append(vector[start : start + size].reshape(shape))
            start += size
        return tree_unflatten(self.tree, leaves)

    def product(self, a: Any, argument: str) -> Product:
        """The product with a matrix, or with what a function makes of pytrees, of vectors."""
        what = f"the result of {argument}"
        if callable(a):
            return lambda v: self.vector(a(self.pytree(v)), what)
        matrix = as_array(self.function, a, argument)
        if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(
                f"{self.function}: argument '{argument}' must be a function or a square matrix, got shape "
                f"{matrix.shape}"
            )
        if len(self.shapes) != 1 or self.shapes[0][:1] != matrix.shape[:1]:
            raise ValueError(
                f"{self.function}: argument 'b' must be one array of {matrix.shape[0]} rows, as '{argument}', "
                f"got shapes {self.shapes}"
            )
        return lambda v: self.vector(matrix @ self.pytree(v), what)


def _solved(
    function: str,
    solver: Solver,
    a: Any,
    b: Any,
    x0: Any,
    tol: Any,
    atol: Any,
    m: Any,
    symmetric: bool,
) -> tuple[Any, None]:
    space = _Vectors(function, b)
    right = space.vector(b, "'b'")
    start = jnp.zeros_like(right) if x0 is None else space.vector(x0, "argument 'x0'")
    precondition = (lambda v: v) if m is None else space.product(m, "M")

    def solve(product: Product, right: Any) -> Any:
        limit = jnp.maximum(tol * _norm(right), atol)
        return solver(product, right, start, precondition, limit)

    hermitian = symmetric and not is_complex(space.dtype)
    x = custom_linear_solve(space.product(a, "A"), right, solve, solve, symmetric=hermitian)
    return space.pytree(x), None


def _norm(v: Any) -> Any:
    return jnp.sqrt(jnp.vdot(v, v).real)


def _divided(x: Any, y: Any) -> Any:
    """x / y, and 0 where y is: what has converged exactly stays as it is."""
    zero = y == 0
    return jnp.where(zero, 0, x / jnp.where(zero, 1, y))


# ---- the methods, on vectors


def _by_conjugate_gradients(steps: int) -> Solver:
    def solver(product: Product, b: Any, x: Any, precondition: Product, limit: Any) -> Any:
        r = b - product(x)
        z = precondition(r)

        def unfinished(state: Any) -> Any:
            _, r, _, _, k = state
            return (_norm(r) > limit) & (k < steps)

        def step(state: Any) -> Any:
            x, r, p, gamma, k = state
            q = product(p)
            alpha = _divided(gamma, jnp.vdot(p, q))
            x, r = x + alpha * p, r - alpha * q
            z = precondition(r)
            following = jnp.vdot(r, z)
            return x, r, z + _divided(following, gamma) * p, following, k + 1

        return while_loop(unfinished, step, (x, r, z, jnp.vdot(r, z), 0))[0]

    return solver


def _by_stabilized_gradients(steps: int) -> Solver:
    def solver(product: Product, b: Any, x: Any, precondition: Product, limit: Any) -> Any:
        r = b - product(x)
        shadow, one = r, jnp.ones((), r.dtype)

        def unfinished(state: Any) -> Any:
            return (_norm(state[1]) > limit) & (state[-1] < steps) & (state[-1] >= 0)

        def step(state: Any) -> Any:
            x, r, p, q, rho, alpha, omega, k = state
            following = jnp.vdot(shadow, r)
            beta = _divided(following, rho) * _divided(alpha, omega)
            p = r + beta * (p - omega * q)
            direction = precondition(p)
            q = product(direction)
            alpha = _divided(following, jnp.vdot(shadow, q))
            s = r - alpha * q
            correction = precondition(s)
            t = product(correction)
            omega = _divided(jnp.vdot(t, s), jnp.vdot(t, t))
            x = x + alpha * direction + omega * correction
            # without a way on it stops: the count becomes negative
            stuck = (following == 0) | (alpha == 0) | ((omega == 0) & (_norm(s) > limit))
            return x, s - omega * t, p, q, following, alpha, omega, jnp.where(stuck, -1, k + 1)

        zero = jnp.zeros_like(r)
        return while_loop(unfinished, step, (x, r, zero, zero, one, one, one, 0))[0]

    return solver


def _by_minimal_residuals(steps: int, restart: int) -> Solver:
    def solver(product: Product, b: Any, x: Any, precondition: Product, limit: Any) -> Any:
        count = min(restart, b.shape[0])

        def expand(state: Any, k: Any) -> Any:
            """One more vector of the Krylov space, orthogonal to those before; twice is enough."""
            basis, matrix = state
            w = product(precondition(basis[k]))
            size = _norm(w)
            shares = jnp.zeros(count + 1, b.dtype)
            for _ in range(2):
                more = jnp.conj(basis) @ w
                w, shares = w - more @ basis, shares + more
            rest = _norm(w)
            # nothing but rounding is left: the space is whole
            rest = jnp.where(rest > size * jnp.finfo(b.dtype).eps, rest, 0)
            basis = basis.at[k + 1].set(_divided(w, rest))
            return (basis, matrix.at[:, k].set(shares.at[k + 1].set(rest))), None

        def unfinished(state: Any) -> Any:
            return (state[2] > limit) & (state[3] < steps)

        def cycle(state: Any) -> Any:
            x, r, size, k = state
            basis = jnp.zeros((count + 1, b.shape[0]), b.dtype).at[0].set(_divided(r, size))
            matrix = jnp.zeros((count + 1, count), b.dtype)
            (basis, matrix), _ = scan(expand, (basis, matrix), jnp.arange(count))
            right = jnp.zeros(count + 1, b.dtype).at[0].set(size.astype(b.dtype))
            y = jnp.linalg.lstsq(matrix, right)[0]
            x = x + precondition(y @ basis[:count])
            r = b - product(x)
            return x, r, _norm(r), k + 1

        r = b - product(x)
        return while_loop(unfinished, cycle, (x, r, _norm(r), 0))[0]

    return solver


# ---- the functions


def _steps(function: str, name: str, value: Any, default: int) -> int:
    if value is None:
        return default
    if not hasattr(value, "__index__") or value.__index__() < 0:
        raise ValueError(f"{function}: argument '{name}' must be an integer >= 0, got {value!r}")
    return int(value.__index__())


def _size(b: Any) -> int:
    return sum(math.prod(np.shape(x)) for x in tree_flatten(b)[0])


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: Any = 1e-5,
    atol: Any = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """The x of A x = b for a Hermitian, positive definite A, by conjugate gradients: (x, None).

    A: a function of pytrees like b, or a matrix; b: a pytree of arrays; x0: where to start (default:
    zeros); tol, atol: ends when norm(b - A x) <= max(tol norm(b), atol); maxiter: at most so many steps
    (default: 10 times the elements of b); M: a preconditioner, near the inverse of A, as A is given.
    Differentiable in b and in what A closes over.  ValueError for shapes that do not fit.

    >>> import jato.numpy as jnp
    >>> cg(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))[0].round(3)
    Array([1. , 0.5], dtype=float32)
    """
    steps = _steps("cg", "maxiter", maxiter, 10 * _size(b))
    return _solved("cg", _by_conjugate_gradients(steps), A, b, x0, tol, atol, M, True)


def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: Any = 1e-5,
    atol: Any = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """The x of A x = b for any regular A, by stabilized biconjugate gradients: (x, None).

    The arguments are those of `cg`.  It may end early where the method breaks down.

    >>> import jato.numpy as jnp
    >>> bicgstab(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))[0].round(3)
    Array([1. , 0.5], dtype=float32)
    """
    steps = _steps("bicgstab", "maxiter", maxiter, 10 * _size(b))
    return _solved("bicgstab", _by_stabilized_gradients(steps), A, b, x0, tol, atol, M, False)


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: Any = 1e-5,
    atol: Any = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, None]:
    """The x of A x = b for any regular A, by generalized minimal residuals: (x, None).

    restart: the dimension of the Krylov space, built anew until the residual is small, at most
    maxiter times; solve_method: "batched" or "incremental", which are the same here.  The others are
    the arguments of `cg`.  ValueError for another solve_method and restart < 1.

    >>> import jato.numpy as jnp
    >>> gmres(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))[0].round(3)
    Array([1. , 0.5], dtype=float32)
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(
            f"gmres: argument 'solve_method' must be 'batched' or 'incremental', got {solve_method!r}"
        )
    size = _steps("gmres", "restart", restart, 20)
    if size < 1:
        raise ValueError("gmres: argument 'restart' must be positive, got 0")
    steps = _steps("gmres", "maxiter", maxiter, 10 * _size(b))
    return _solved("gmres", _by_minimal_residuals(steps, size), A, b, x0, tol, atol, M, False)
