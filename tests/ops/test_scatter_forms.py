"""Every way a scatter is computed (apart, private arrays, columns, in order) against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import jato
from jato import lax

UFUNCS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
SHAPES = [  # operand, updates
    ((100,), (40000,)), ((10, 8), (5000, 8)), ((10, 5), (9000, 5)), ((7, 3, 2), (9000, 3, 2)),
    ((300, 128), (500, 128)), ((300, 100), (500, 100)), ((5000, 4), (300, 4)), ((3,), (0,)),
    ((9, 15), (2000, 15)), ((9, 16), (2000, 16)), ((9, 17), (2000, 17)), ((9, 3), (9000, 3)),
    ((9, 63), (600, 63)), ((9, 64), (600, 64)), ((9, 65), (600, 65)), ((400, 2), (10, 2)),
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
        u = (
            rng.integers(-1, 2, updates).astype(dtype)
            if name != "mul"
            else rng.choice([-1, 1], updates).astype(dtype)
        )
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


@pytest.mark.parametrize("name", ["set", *UFUNCS])
@pytest.mark.parametrize("shape", [(40, 300), (1, 7), (17, 16), (3, 20000)])
def test_columns_that_repeat(name, shape):
    """Rows are shared among threads, updates of one row applied in order."""
    rng = np.random.default_rng(0)
    places = rng.integers(-shape[1], shape[1], 1000).astype(np.int32)
    places[-1] = places[0]
    x = rng.integers(1, 9, shape).astype("float32")
    u = rng.choice([1.0, 2.0, -1.0], (shape[0], 1000)).astype("float32")
    if name == "mul":
        u = np.sign(u)
    method = {"mul": "multiply"}.get(name, name)
    found = np.asarray(
        jato.jit(lambda x, u: getattr(x.at[:, places], method)(u))(jato.numpy.asarray(x), u)
    )
    wanted = x.copy()
    if name == "set":
        for k, place in enumerate(places):
            wanted[:, place] = u[:, k]
    else:
        UFUNCS[name].at(wanted, (slice(None), places), u)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "int8", "uint8", "int64", "uint32", "bool"]
)
def test_extrema_in_private_arrays(name, dtype):
    rng = np.random.default_rng(0)
    i = rng.integers(-3, 12, 30000).astype(np.int32)
    i[i == 4] = 5  # a place without updates
    x = rng.integers(0, 2, 10).astype(dtype)
    u = rng.integers(0, 100, 30000).astype(dtype)
    if dtype.startswith("float"):
        u = u - 50
        u[i == 7] = -np.inf
        u[np.flatnonzero(i == 3)[5]] = np.nan
        x[2] = np.nan
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    with jato.enable_x64():
        found = np.asarray(getattr(lax, f"scatter_{name}")(x, i[:, None], u, numbers))
    wanted, kept = x.copy(), (i >= 0) & (i < 10)
    with np.errstate(invalid="ignore"):
        UFUNCS[name].at(wanted, i[kept], u[kept])
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32"])
def test_batches_and_two_indices(dtype):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 9, (50, 30, 4)).astype("float32")
    i, j = (rng.integers(0, n, (50, 40)).astype(dtype) for n in (30, 4))
    u = rng.integers(0, 9, (50, 40)).astype("float32")
    batched = jato.jit(jato.vmap(lambda x, i, j, u: x.at[i, j].add(u)))
    wanted = x.copy()
    np.add.at(wanted, (np.arange(50)[:, None], i, j), u)
    np.testing.assert_array_equal(np.asarray(batched(x, i, j, u)), wanted)
    np.testing.assert_array_equal(
        np.asarray(jato.jit(lambda x, i, j: x[:, i, j])(x, i, j)), x[:, i, j]
    )


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
    order = np.argsort(-np.where(np.isnan(x), np.inf, x.astype(float)), kind="stable", axis=-1)[
        :, :20
    ]
    np.testing.assert_array_equal(positions, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, -1))
