"""repeat with counts that are traced, against NumPy: cut off, or filled with the last row."""

from __future__ import annotations

import numpy as np
import pytest

import jato
import jato.numpy as jnp

RNG = np.random.default_rng(0)


def wanted(x, counts, total, axis):
    rows = np.repeat(np.arange(x.shape[axis]), counts)[:total]
    rows = np.append(rows, np.full(total - len(rows), x.shape[axis] - 1)).astype(int)
    return np.take(x, rows, axis)


@pytest.mark.parametrize("total", [0, 1, 15, 16, 17, 200])
@pytest.mark.parametrize("shape,axis", [((1,), 0), ((17,), 0), ((40, 3), 0), ((3, 40), 1)])
def test_counts(shape, axis, total):
    x = RNG.random(shape).astype("float32")
    counts = RNG.integers(0, 4, shape[axis]).astype("int32")
    f = jato.jit(lambda x, c: jnp.repeat(x, c, axis=axis, total_repeat_length=total))
    np.testing.assert_array_equal(f(x, counts), wanted(x, counts, total, axis))
    one = np.int32(2)
    np.testing.assert_array_equal(f(x, one), wanted(x, np.full(shape[axis], 2), total, axis))
