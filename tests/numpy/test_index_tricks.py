"""Functions of index_tricks with results that depend on values."""

from __future__ import annotations

import pytest

import jato.numpy as jnp
import numpy as np


@pytest.mark.parametrize("trim", ["f", "b", "fb", "bf"])
@pytest.mark.parametrize("values", [[], [0], [1], [0, 0], [0, 2, 0, 3, 0, 0], [1, 0, 2]])
def test_trim_zeros_of_a_vector(values, trim):
    given = np.array(values, np.int32)
    np.testing.assert_array_equal(jnp.trim_zeros(jnp.array(given), trim), np.trim_zeros(given, trim))


@pytest.mark.parametrize(
    ("trim", "axis", "rows", "columns"),
    [
        ("fb", None, slice(1, 3), slice(1, 2)),
        ("fb", 0, slice(1, 3), slice(None)),
        ("fb", 1, slice(None), slice(1, 2)),
        ("f", (0, 1), slice(1, None), slice(1, None)),
        ("b", -2, slice(None, 3), slice(None)),
    ],
)
def test_trim_zeros_along_axes(trim, axis, rows, columns):
    given = np.zeros((4, 3), np.float32)
    given[1, 1], given[2, 1] = 5, np.nan
    found = jnp.trim_zeros(jnp.array(given), trim, axis)
    np.testing.assert_array_equal(found, given[rows, columns])


def test_trim_zeros_leaves_nothing_of_zeros():
    assert jnp.trim_zeros(jnp.zeros((2, 3)), axis=0).shape == (0, 3)
    assert jnp.trim_zeros(jnp.zeros((2, 3)), "f").shape == (0, 0)
