"""argmax and argmin against NumPy: ties, zeros of both signs, infinities, nan, extreme integers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import jato
import jato.numpy as jnp

DTYPES = ["float32", "float64", "float16", ml_dtypes.bfloat16, "int8", "uint8", "int32", "uint32", "int64", "uint64", "bool"]  # fmt: skip
SHAPES = [(1,), (2,), (15,), (16,), (17,), (5000,), (200, 10), (100, 3), (10, 200), (3, 70000), (65, 64)]  # fmt: skip


def _samples(shape, dtype):
    rng = np.random.default_rng(0)
    numbers = rng.integers(0 if dtype.kind in "ub" else -3, 4, shape).astype(dtype)
    yield numbers
    if dtype.kind in "iu":
        yield np.full(shape, np.iinfo(dtype).min, dtype)
        yield np.full(shape, np.iinfo(dtype).max, dtype)
    elif dtype.kind != "b":
        zeros = np.where(rng.random(shape) < 0.5, dtype.type(-0.0), dtype.type(0.0))
        yield zeros
        for special in (np.nan, np.inf, -np.inf):
            for share in (0.03, 0.9):
                yield np.where(rng.random(shape) < share, dtype.type(special), numbers)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_against_numpy(name, dtype):
    with jato.enable_x64():
        for shape in SHAPES:
            for axis in range(len(shape)):
                f = jato.jit(lambda x, axis=axis: getattr(jnp, name)(x, axis=axis))
                for x in _samples(shape, np.dtype(dtype)):
                    wide = (
                        x.astype(np.float32)
                        if x.dtype.itemsize == 2 and x.dtype.kind not in "iu"
                        else x
                    )
                    np.testing.assert_array_equal(
                        f(x), getattr(np, name)(wide, axis=axis), f"{shape}"
                    )
