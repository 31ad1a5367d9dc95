"""searchsorted and digitize against NumPy: few and many edges, both directions, ties, nan."""

from __future__ import annotations

import numpy as np
import pytest

import jato
import jato.numpy as jnp

RNG = np.random.default_rng(0)
SIZES = (1, 2, 7, 8, 9, 15, 16, 17, 64, 100)


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_digitize(size, right, dtype):
    ascending = np.sort(RNG.choice(50, size, replace=size > 50)).astype(dtype)
    x = RNG.integers(0, 55, 333).astype(dtype)
    digitize = jato.jit(lambda x, bins: jnp.digitize(x, bins, right=right))
    for bins in (ascending, ascending[::-1].copy()):
        np.testing.assert_array_equal(digitize(x, bins), np.digitize(x, bins, right=right))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("size", SIZES)
def test_searchsorted(size, side):
    edges = np.sort(RNG.integers(0, 50, size)).astype("float32")
    x = RNG.integers(-3, 55, 333).astype("float32")
    x[::7] = np.nan
    found = jato.jit(lambda e, x: jnp.searchsorted(e, x, side=side))(edges, x)
    np.testing.assert_array_equal(found, np.searchsorted(edges, x, side=side))
