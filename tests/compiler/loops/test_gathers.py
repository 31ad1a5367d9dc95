"""Reads at places from memory, against NumPy: every type, vectors with and without idle lanes, short rows."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from watching import watch

import jato
import jato.numpy as jnp

RNG = np.random.default_rng(0)
DTYPES = ["float32", "float64", "float16", ml_dtypes.bfloat16, "int8", "uint8", "int16", "int32", "uint64", "bool", "complex64"]  # fmt: skip
SIZES = (0, 1, 2, 15, 16, 17, 31, 33, 500)


def table(shape, dtype):
    return RNG.integers(0, 2 if np.dtype(dtype) == bool else 100, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements(dtype):
    with jato.enable_x64():
        x = table(77, dtype)
        clip = jato.jit(lambda x, i: x[i])
        fill = jato.jit(lambda x, i: jnp.take(x, i, mode="fill", fill_value=1))
        for n in SIZES:
            i = RNG.integers(-77, 77, n).astype("int32")
            np.testing.assert_array_equal(clip(x, i), x[i])
            i = RNG.integers(-100, 200, n)
            inside = (i >= -77) & (i < 77)
            wanted = np.where(inside, x[np.where(inside, i, 0)], np.ones((), dtype))
            np.testing.assert_array_equal(fill(x, i), wanted)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
def test_types_of_indices(dtype):
    with jato.enable_x64():
        x = table((11, 9, 3), "float32")
        i, j = (RNG.integers(0, 9, 100).astype(dtype) for _ in range(2))
        np.testing.assert_array_equal(jato.jit(lambda x, i, j: x[i, j])(x, i, j), x[i, j])
        np.testing.assert_array_equal(jato.jit(lambda x, i, j: x[i, j, 1])(x, i, j), x[i, j, 1])
        np.testing.assert_array_equal(jato.jit(lambda x, i: x[:, i])(x, i), x[:, i])


@pytest.mark.parametrize("dtype", ["float32", "uint8", "float64"])
@pytest.mark.parametrize("length", [1, 2, 3, 5, 7, 8, 12, 15, 16, 17])
def test_short_rows(length, dtype):
    with jato.enable_x64():
        x = table((50, length), dtype)
        for n in (0, 1, 17, 1000):
            i = RNG.integers(-60, 60, n).astype("int32")
            clipped = np.clip(np.where(i < 0, i + 50, i), 0, 49)
            np.testing.assert_array_equal(jato.jit(lambda x, i: x[i])(x, i), x[clipped])
            np.testing.assert_array_equal(
                jato.jit(lambda x, i: x[i] + x[0])(x, i), x[clipped] + x[0]
            )
        i = RNG.integers(0, 50, (20, 30)).astype("int32")
        np.testing.assert_array_equal(jato.jit(lambda x, i: x[i])(x, i), x[i])
        filled = np.asarray(
            jato.jit(lambda x, i: jnp.take(x, i, 0, mode="fill", fill_value=7))(x, i - 10)
        )
        inside = (i - 10 >= -50)[..., None]
        np.testing.assert_array_equal(filled, np.where(inside, x[i - 10], np.asarray(7, dtype)))


def test_form_of_short_rows():
    x, i = table((50, 3), "float32"), np.arange(40, dtype="int32")
    assert "lanes 2" in watch(lambda x, i: x[i], x, i).patterns[0]
    # places along the rows are vectors' places
    j = RNG.integers(0, 3, (40, 3)).astype("int32")
    assert "lanes 2" not in watch(lambda x, j: jnp.take_along_axis(x[:40], j, 1), x, j).patterns[0]


@pytest.mark.parametrize("step", [-7, -3, -2, 3, 5, 1000])
def test_constant_steps(step):
    x = table((40, 2003), "float32")
    np.testing.assert_array_equal(jato.jit(lambda x: x[:, ::step] + 1)(x), x[:, ::step] + 1)
    np.testing.assert_array_equal(jato.jit(lambda x: x[::step, 1] * 2)(x), x[::step, 1] * 2)
