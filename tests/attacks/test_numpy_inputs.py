"""NumPy arrays that a function overwrites after it has used them, and arrays with a mask."""

import numpy as np
import pytest

import jato
import jato.numpy as jnp


def overwrites(x):
    a = np.zeros(3, np.float32)
    y = x + a
    a += 1
    z = x * a
    a[:] = 50
    return y, z


def check(results):
    ones = np.ones(3, np.float32)
    for result in results:
        np.testing.assert_array_equal(np.asarray(result), np.broadcast_to(ones, result.shape))


@pytest.mark.parametrize(
    "run",
    [
        overwrites,
        jato.jit(overwrites),
        lambda x: jato.jit(lambda x: jato.lax.cond(True, overwrites, overwrites, x))(x),
        lambda x: jato.vmap(overwrites)(jnp.ones((2, 3))),
        lambda x: jato.jit(jato.vmap(overwrites))(jnp.ones((2, 3))),
        lambda x: jato.lax.scan(lambda c, _: (c, overwrites(c)), x, None, length=2)[1],
        lambda x: jato.linearize(overwrites, x)[1](x),
        lambda x: [jato.vjp(overwrites, x)[1]((x, x))[0] / 2],
        lambda x: [jato.grad(lambda x: sum(jnp.sum(y) for y in overwrites(x)))(x) / 2],
    ],
    ids="eager jit cond vmap jit_vmap scan linearize vjp grad".split(),
)
def test_an_array_counts_as_it_was_when_it_was_used(run):
    check(run(jnp.ones(3)))


def test_indices_count_as_they_were_when_they_were_used():
    def f(x):
        index = np.array([0, 1])
        first = x[index]
        index[:] = 2
        second = x[index]
        third = x.at[index].set(9)
        index[:] = 0
        return first, second, third

    first, second, third = jato.jit(f)(jnp.arange(3.0))
    assert first.tolist() == [0, 1] and second.tolist() == [2, 2] and third.tolist() == [0, 1, 9]


def test_signed_zeros_and_nans_are_told_apart():
    def f(x):
        a = np.array([0.0, np.nan], np.float32)
        y = x / a
        a *= -1
        return y, x / a

    y, z = jato.jit(f)(jnp.ones(2))
    assert y[0] == np.inf and z[0] == -np.inf


def test_an_array_used_often_is_one_constant():
    def f(x):
        a = np.arange(3, dtype=np.float32)
        return (x + a) * a - a

    assert len(jato.make_jaxpr(f)(jnp.ones(3)).consts) == 1


@pytest.mark.parametrize(
    "function",
    [jnp.sin, jnp.asarray, jnp.array, jato.jit(lambda x: x), jato.device_put, jato.grad(jnp.sum)],
    ids="sin asarray array jit device_put grad".split(),
)
def test_masked_arrays_are_refused(function):
    masked = np.ma.array(np.ones(3, np.float32), mask=[False, True, False])
    with pytest.raises(TypeError, match=r"mask would be lost"):
        function(masked)


def test_masked_arguments_are_named():
    masked = np.ma.array(np.ones(3, np.float32), mask=[False, True, False])
    with pytest.raises(TypeError, match=r"multiply: argument y: .* masked array"):
        jnp.multiply(2.0, masked)
