"""Random bits equal JAX's for the same key."""

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest
from reference_rules import check_batch, hold, numpy_evaluation, value

from jato.base import dtypes
from jato.ops import random_bits as rb

SHAPES = [(), (0,), (1,), (7,), (3, 5), (2, 0, 3), (1000,)]


def raw(seed):
    return np.asarray(jax.random.key_data(jax.random.key(seed)))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("width", [8, 16, 32])
def test_bits(shape, width):
    key = raw(42)
    want = jax.random.bits(jax.random.wrap_key_data(key), shape, np.dtype(f"uint{width}"))
    with numpy_evaluation():
        got = rb.random_bits(key, width, shape)
    np.testing.assert_array_equal(value(got), want)


def test_bits_64():
    with jax.enable_x64(True):
        want = np.asarray(jax.random.bits(jax.random.key(3), (5, 3), np.uint64))
    with numpy_evaluation():
        got = rb.random_bits(raw(3), 64, (5, 3))
    np.testing.assert_array_equal(value(got), want)


@pytest.mark.parametrize("shape", [2, (3,), (2, 3), ()])
def test_split(shape):
    key = raw(7)
    want = jax.random.key_data(jax.random.split(jax.random.wrap_key_data(key), shape))
    with numpy_evaluation():
        np.testing.assert_array_equal(value(rb.random_split(key, shape)), want)


@pytest.mark.parametrize("data", [0, 1, 17, 2**31, 2**32 - 1])
def test_fold_in(data):
    key = raw(7)
    want = jax.random.key_data(jax.random.fold_in(jax.random.wrap_key_data(key), np.uint32(data)))
    with numpy_evaluation():
        np.testing.assert_array_equal(value(rb.random_fold_in(key, data)), want)
        np.testing.assert_array_equal(value(rb.random_fold_in(key, hold(np.uint32(data)))), want)


def test_wrap_and_unwrap():
    keys = jnp.arange(12, dtype=jnp.uint32).reshape(3, 2, 2)
    with numpy_evaluation():
        wrapped = rb.random_wrap(np.asarray(keys))
        assert wrapped.aval.dtype is dtypes.key and wrapped.shape == (3, 2)
        np.testing.assert_array_equal(value(rb.random_unwrap(wrapped)), keys)


def test_arrays_of_keys_give_their_own_bits():
    keys = jax.random.split(jax.random.key(1), 4)
    want = jax.vmap(lambda k: jax.random.bits(k, (3,)))(keys)
    with numpy_evaluation():
        np.testing.assert_array_equal(
            value(rb.random_bits(np.asarray(jax.random.key_data(keys)), 32, (3,))), want
        )


def test_threefry2x32():
    words = np.random.default_rng(0).integers(0, 2**32, (4, 6), dtype=np.uint32)
    with numpy_evaluation():
        y0, y1 = rb.threefry2x32(*(hold(w) for w in words))
    for i in range(6):  # jax hashes pairs (first half, second half)
        want = jax.extend.random.threefry_2x32(words[:2, i], words[2:, i])
        np.testing.assert_array_equal([value(y0)[i], value(y1)[i]], want)


def test_batch():
    keys = hold(np.array([[1, 2], [3, 4]]), "key")
    check_batch(rb.RANDOM_BITS, [keys], {"bit_width": 32, "shape": (3,)})
    check_batch(rb.RANDOM_SPLIT, [keys], {"shape": (2,)})
    check_batch(rb.RANDOM_UNWRAP, [keys], {})
    check_batch(rb.RANDOM_WRAP, [np.arange(8, dtype=np.uint32).reshape(4, 2)], {},
                vary=lambda i, k, x: x + np.uint32(k))  # fmt: skip
    scalar, row = hold(np.uint64(5), "key"), hold(np.array([1, 2, 3]), "key")
    numbers = np.array([4, 5, 6], np.uint32)
    check_batch(rb.THREEFRY2X32, [scalar, np.uint32(0), np.uint32(9)], {})
    check_batch(rb.THREEFRY2X32, [scalar, np.uint32(0), numbers], {})
    check_batch(rb.THREEFRY2X32, [row, np.uint32(1), numbers], {})


def test_errors():
    with numpy_evaluation():
        with pytest.raises(TypeError, match="random_bits: argument 'key'.*PRNGKey.*float32"):
            rb.random_bits(np.ones(2, np.float32), 32, ())
        with pytest.raises(ValueError, match="bit_width.*8, 16, 32 or 64, got 12"):
            rb.random_bits(raw(0), 12, ())
        with pytest.raises(ValueError, match="'shape': expected sizes >= 0, got \\(-1,\\)"):
            rb.random_bits(raw(0), 32, (-1,))
        with pytest.raises(TypeError, match="random_wrap: .*uint32.*got"):
            rb.random_wrap(np.ones(3, np.uint32))
