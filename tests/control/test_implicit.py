"""custom_linear_solve and custom_root under every transform; against direct solutions and JAX."""

import doctest

import jax
import numpy as np
import pytest
from reference_eval import as_call, close

import jato
import jato.numpy as jnp
from jato import lax
from jato.control import implicit

f32 = np.float32
RNG = np.random.default_rng(0)
A = (RNG.normal(size=(4, 4)) + 4 * np.eye(4)).astype(f32)
S = (A @ A.T).astype(f32)
B = RNG.normal(size=4).astype(f32)
BATCH = np.stack([A, A.T])


@pytest.fixture(params=[False, True], ids=["eager", "call"])
def wrap(request):
    return as_call if request.param else (lambda f: f)


def direct(a, b):
    """The same solution, differentiated through LU."""
    return (jnp.linalg.solve(a, b) ** 2).sum()


def by_lu(a, b):
    fixed = lax.stop_gradient(a)
    x = implicit.custom_linear_solve(
        lambda x: a @ x,
        b,
        lambda matvec, y: jnp.linalg.solve(fixed, y),
        lambda vecmat, y: jnp.linalg.solve(fixed.T, y),
    )
    return (x**2).sum()


def conjugate_gradients(matvec, y):
    def body(state):
        x, r, p, k = state
        product = matvec(p)
        step = (r @ r) / (p @ product)
        rest = r - step * product
        return x + step * p, rest, rest + (rest @ rest) / (r @ r) * p, k + 1

    more = lambda state: (state[1] @ state[1] > 1e-10) & (state[3] < 20)
    return lax.while_loop(more, body, (0 * y, y, y, 0))[0]


def by_iteration(a, b):
    return (
        implicit.custom_linear_solve(lambda x: a @ x, b, conjugate_gradients, symmetric=True) ** 2
    ).sum()


def test_linear_solve(wrap):
    f = wrap(by_lu)
    close(f(A, B), direct(A, B), 1e-4)
    close(jato.grad(f, (0, 1))(A, B), jato.grad(direct, (0, 1))(A, B), 1e-4)
    close(wrap(jato.grad(by_lu, (0, 1)))(A, B), jato.grad(direct, (0, 1))(A, B), 1e-4)
    close(jato.jvp(f, (A, B), (A.T, B)), jato.jvp(direct, (A, B), (A.T, B)), 1e-4)
    close(jato.hessian(f, 1)(A, B), jato.hessian(direct, 1)(A, B), 1e-4)
    close(wrap(jato.hessian(by_lu))(A, B), jato.hessian(direct)(A, B), 1e-3)


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_linear_solve_mapped(wrap, axes):
    args = [
        x if axis == 0 else x[0]
        for x, axis in zip((BATCH, np.stack([B, 2 * B])), axes, strict=True)
    ]
    close(jato.vmap(wrap(by_lu), axes)(*args), jato.vmap(direct, axes)(*args), 1e-4)
    mine = jato.vmap(wrap(jato.grad(by_lu, (0, 1))), axes)(*args)
    close(mine, jato.vmap(jato.grad(direct, (0, 1)), axes)(*args), 1e-4)


def test_symmetric_solve_by_iteration(wrap):
    f = wrap(by_iteration)
    symmetric = lambda a, b: direct((a + a.T) / 2, b)
    close(f(S, B), direct(S, B), 1e-3)
    close(jato.grad(f, 1)(S, B), jato.grad(direct, 1)(S, B), 1e-3)
    gradient = np.asarray(jato.grad(f)(S, B))
    close((gradient + gradient.T) / 2, jato.grad(symmetric)(S, B), 1e-2)
    summed = lambda b: jato.vmap(lambda v: f(S, v))(b).sum()
    close(
        jato.grad(summed)(np.stack([B, -B])),
        np.stack([1, -1])[:, None] * jato.grad(direct, 1)(S, B),
        1e-3,
    )


def test_auxiliary_values(wrap):
    halved = lambda matvec, y: ({"a": y["a"] / 2}, jnp.int32(3))

    def f(b):
        return implicit.custom_linear_solve(
            lambda x: {"a": 2 * x["a"]}, {"a": b}, halved, symmetric=True, has_aux=True
        )

    x, count = wrap(f)(B)
    close((x["a"], count), (B / 2, np.int32(3)))
    close(jato.grad(wrap(lambda b: f(b)[0]["a"].sum()))(B), np.full(4, 0.5, f32))
    close(jato.vmap(wrap(f))(B)[1], np.full(4, 3, np.int32))


def test_linear_solve_messages():
    solve = lambda matvec, y: jnp.linalg.solve(A, y)
    f = lambda b: implicit.custom_linear_solve(lambda x: A @ x, b, solve).sum()
    close(
        jato.jvp(f, (B,), (B,)),
        jax.jvp(lambda b: jax.numpy.linalg.solve(A, b).sum(), (B,), (B,)),
        1e-4,
    )
    with pytest.raises(TypeError, match="reverse mode needs transpose_solve, or symmetric=True"):
        jato.grad(f)(B)
    for run in (lambda f: f(B), lambda f: jato.jit(f)(B)):
        with pytest.raises(TypeError, match="b and the result of <lambda> must have equal types"):
            run(lambda b: implicit.custom_linear_solve(lambda x: x, b, lambda matvec, y: y[:2]))
    with pytest.raises(
        TypeError, match="b and the result of <lambda> must have the same structure"
    ):
        jato.jit(lambda b: implicit.custom_linear_solve(lambda x: (x, x), b, solve))(B)
    with pytest.raises(
        TypeError, match=r"with has_aux, <lambda> must return \(solution, auxiliary\)"
    ):
        implicit.custom_linear_solve(lambda x: x, B, lambda matvec, y: y, has_aux=True)
    with pytest.raises(TypeError, match="solve must be a function, got 3"):
        implicit.custom_linear_solve(lambda x: x, B, 3)


def newton(f, x):
    step = lambda s: (s[0] - f(s[0]) / jato.grad(f)(s[0]), s[1] + 1)
    return lax.while_loop(lambda s: (abs(f(s[0])) > 1e-6) & (s[1] < 50), step, (x, 0))[0]


def square_root(a):
    return implicit.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))


def test_root(wrap):
    close(wrap(square_root)(f32(4)), f32(2))
    close(jato.grad(wrap(square_root))(f32(4)), f32(0.25))
    close(wrap(jato.grad(square_root))(f32(4)), f32(0.25))
    close(jato.jvp(wrap(square_root), (f32(4),), (f32(2),)), (f32(2), f32(0.5)))
    close(jato.grad(wrap(jato.grad(square_root)))(f32(4)), f32(-1 / 32))
    squares = np.array([1, 4, 9], f32)
    close(jato.vmap(wrap(square_root))(squares), np.sqrt(squares))
    close(jato.vmap(wrap(jato.grad(square_root)))(squares), 0.5 / np.sqrt(squares))


def test_root_of_vectors_with_auxiliary_values(wrap):
    def f(a, b):
        def solve(_, x):
            return jnp.linalg.solve(lax.stop_gradient(a), lax.stop_gradient(b)), jnp.int32(7)

        def tangent_solve(g, y):
            return jnp.linalg.solve(jato.jacfwd(g)(y), y)

        x, count = implicit.custom_root(
            lambda x: a @ x - b, jnp.zeros(4), solve, tangent_solve, has_aux=True
        )
        return (x**2).sum(), count

    value, count = wrap(f)(A, B)
    close((value, count), (direct(A, B), np.int32(7)), 1e-4)
    found, _ = jato.grad(wrap(f), (0, 1), has_aux=True)(A, B)
    close(found, jato.grad(direct, (0, 1))(A, B), 1e-4)


def test_root_messages():
    with pytest.raises(TypeError, match="custom_root: f must be a function"):
        implicit.custom_root(1, 1.0, newton, newton)
    for run in (lambda f: f(f32(1)), lambda f: jato.jit(f)(f32(1))):
        with pytest.raises(
            TypeError, match="initial_guess and the result of <lambda> must have the same structure"
        ):
            run(lambda a: implicit.custom_root(lambda x: x - a, a, lambda f, x: (x, x), newton))


def test_doctests():
    assert doctest.testmod(implicit).failed == 0
