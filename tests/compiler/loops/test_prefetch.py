"""Gathers from large arrays ask for memory ahead: values at every size, and where it is done."""

from __future__ import annotations

import numpy as np
import pytest
from watching import watch

import jato
import jato.numpy as jnp

RNG = np.random.default_rng(0)
ROWS, COLUMNS = 1800, 1900
TABLE = RNG.random(size=(ROWS, COLUMNS), dtype="float32")  # 13.7 MB


@pytest.mark.parametrize("n", (1, 15, 16, 17, 127, 128, 129, 300, 5000))
@pytest.mark.parametrize("mode", ("clip", "fill", "wrap"))
def test_elements(n, mode):
    x, i = TABLE.ravel(), RNG.integers(0, TABLE.size, n).astype("int32")
    np.testing.assert_array_equal(jato.jit(lambda x, i: jnp.take(x, i, mode=mode))(x, i), x[i])


@pytest.mark.parametrize("n", (1, 2, 17, 300, 1500))
def test_rows_and_columns(n):
    rows = RNG.integers(-ROWS, ROWS, n).astype("int32")
    columns = RNG.integers(-COLUMNS, COLUMNS, n).astype("int32")
    np.testing.assert_array_equal(jato.jit(lambda x, i: x[i] * 2)(TABLE, rows), TABLE[rows] * 2)
    np.testing.assert_array_equal(jato.jit(lambda x, i: x[:, i])(TABLE, columns), TABLE[:, columns])
    np.testing.assert_array_equal(
        jato.jit(lambda x, i, j: x[i, j] + 1)(TABLE, rows, columns), TABLE[rows, columns] + 1
    )


def test_places_from_places():
    x, i = TABLE.ravel(), RNG.integers(0, 1000, 1000).astype("int32")
    f = jato.jit(lambda x, i: x[i[i]])
    np.testing.assert_array_equal(f(x, i), x[i[i]])


def test_indices_out_of_bounds():
    x = TABLE.ravel()
    i = np.array([-(2**31), 2**31 - 1, -1, 0, x.size, x.size - 1, -x.size] * 40, "int32")
    got = jato.jit(lambda x, i: jnp.take(x, i, mode="clip"))(x, i)
    np.testing.assert_array_equal(got, np.take(x, i, mode="clip"))


def test_small_arrays_do_without():
    i = np.arange(500, dtype="int32") % 90
    small, large = TABLE.ravel()[:1000], TABLE.ravel()
    assert "prefetch" not in watch(lambda x, i: x[i], small, i).patterns[0]
    assert "prefetch" in watch(lambda x, i: x[i], large, i).patterns[0]


def test_reads_within_short_rows_do_without():
    i = RNG.integers(0, COLUMNS, (ROWS, 40)).astype("int32")
    along = watch(lambda x, i: jnp.take_along_axis(x, i, 1), TABLE, i)
    assert "prefetch" not in along.patterns[0]
    rows = np.arange(500, dtype="int32")
    assert "prefetch" in watch(lambda x, r, i: x[r, i], TABLE, rows, i[:500, 0]).patterns[0]
