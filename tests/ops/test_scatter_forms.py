"""Every way a scatter is computed (natively, private sums, columns, unique, in order) against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import jato
from jato import lax

UFUNCS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
SHAPES = [  # operand, updates
    ((100,), (40000,)), ((10, 8), (5000, 8)), ((10, 5), (9000, 5)), ((7, 3, 2), (9000, 3, 2)),
    ((300, 128), (500, 128)), ((300, 100), (500, 100)), ((5000, 4), (300, 4)), ((3,), (0,)),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["drop", "clip"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float16", "complex64"])
@pytest.mark.parametrize("name", UFUNCS)
def test_against_numpy(name, dtype, mode):
    if dtype == "complex64" and name in ("min", "max"):
        return
    rng = np.random.default_rng(0)
    scatter = jato.jit(getattr(lax, f"scatter_{name}"), static_argnums=3, static_argnames="mode")
    for shape, updates in SHAPES:
        x = rng.integers(-4, 5, shape).astype(dtype)
        u = rng.integers(-1, 2, updates).astype(dtype) if name != "mul" else rng.choice([-1, 1], updates).astype(dtype)
        low, high = -2, shape[0] + 2
        i = rng.integers(low, high, updates[0]).astype(np.int32)
        numbers = lax.ScatterDimensionNumbers(tuple(range(1, len(shape))), (0,), (0,))
        found = np.asarray(scatter(x, i[:, None], u, numbers, mode=mode))
        wanted = x.copy()
        if mode == "clip":
            i, kept = np.clip(i, 0, shape[0] - 1), slice(None)
        else:
            kept = (i >= 0) & (i < shape[0])
        UFUNCS[name].at(wanted, i[kept], u[kept])
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, wanted, err_msg=f"{shape}")  # whole numbers: exact


def test_a_negative_zero_that_nothing_is_added_to_stays():
    x = np.full(8, -0.0, np.float32)
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    i = np.full((1 << 16, 1), 3, np.int32)
    found = np.asarray(lax.scatter_add(x, i, np.ones(1 << 16, np.float32), numbers))
    assert found[3] == 1 << 16
    assert np.signbit(np.delete(found, 3)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_top_k_with_ties_and_nan(dtype):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 50, (6, 500)).astype(dtype)
    if x.dtype.kind == "f":
        x[:, ::50] = np.nan
    x = x.astype(np.float32) if dtype == "float64" else x
    values, positions = map(np.asarray, lax.top_k(x, 20))
    order = np.argsort(-np.where(np.isnan(x), np.inf, x.astype(float)), kind="stable", axis=-1)[:, :20]
    np.testing.assert_array_equal(positions, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, -1))
