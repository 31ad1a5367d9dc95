"""linear_call under every transform; against JAX where it has a rule."""

import doctest

import jax
import numpy as np
import pytest
from reference_eval import as_call, close

import jato
import jato.numpy as jnp
from jato.control import linear_call as module
from jato.control.linear_call import linear_call

f32 = np.float32
X = np.array([0.3, -1.2, 2.5], f32)


@pytest.fixture(params=[False, True], ids=["eager", "call"])
def wrap(request):
    return as_call if request.param else (lambda f: f)


def quotient(x, y):
    """x / y, whose transpose is 7 times the true one, to be told from it."""
    return linear_call(lambda r, x: x / r, lambda r, ct: 7 * ct / r, y, x)


def transposed(f, example):
    return lambda y: jato.linear_transpose(f, example)(y)[0]


def test_values_and_derivatives(wrap):
    f = wrap(quotient)
    close(f(X, f32(4)), X / 4)
    close(jato.grad(f)(f32(3), f32(4)), f32(7 / 4))
    close(wrap(jato.grad(quotient))(f32(3), f32(4)), f32(7 / 4))
    close(jato.jvp(lambda x: f(x, f32(4)), (X,), (2 * X,)), (X / 4, X / 2))
    peer = lambda x: jax.custom_derivatives.linear_call(
        lambda r, x: x / r, lambda r, ct: 7 * ct / r, f32(4), x
    )
    close(jato.vjp(lambda x: f(x, f32(4)), X)[1](X), jax.vjp(peer, X)[1](X))


def test_transposed_again_it_is_the_first(wrap):
    same = lambda x: linear_call(lambda _, x: x, lambda _, ct: 7.0 * ct, (), x)
    f, factors = wrap(same), []
    for _ in range(4):
        factors.append(float(f(f32(1))))
        f = transposed(f, f32(1))
    assert factors == [1, 7, 1, 7]


def test_mapped(wrap):
    y = np.array([1, 2, 4], f32)
    close(jato.vmap(wrap(quotient))(X, y), X / y)
    close(jato.vmap(wrap(quotient), (0, None))(X, f32(2)), X / 2)
    close(jato.vmap(wrap(jato.grad(quotient)))(X, y), 7 / y)
    close(jato.vmap(wrap(jato.grad(quotient)), (None, 0))(f32(1), y), 7 / y)


def test_trees_and_captured_values(wrap):
    def f(tree):
        swap = lambda _, t: {"b": t["a"] * X, "c": t["d"]}
        back = lambda _, ct: {"a": ct["b"] * X, "d": ct["c"]}
        return linear_call(swap, back, None, tree)

    out = wrap(f)({"a": X, "d": f32(2)})
    close((out["b"], out["c"]), (X * X, f32(2)))
    gradient = jato.grad(lambda a: wrap(f)({"a": a, "d": f32(2)})["b"].sum())(X)
    close(gradient, X)


def test_messages():
    with pytest.raises(NotImplementedError, match="no derivative is defined for residual_args"):
        jato.grad(quotient, 1)(3.0, 4.0)
    with pytest.raises(
        TypeError, match="linear_args and the result of <lambda> must have equal types"
    ):
        linear_call(lambda r, x: x, lambda r, ct: jnp.concatenate([ct, ct]), (), X)


def test_doctests():
    assert doctest.testmod(module).failed == 0
