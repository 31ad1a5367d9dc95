"""Floats to integers in vectors: they saturate, NaN is 0, at every border of every type."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

import jato
from jato import lax

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
BORDERS = [0.0, math.inf, math.nan, 1e30, 1e-40] + [
    2.0**bits + d for bits in (7, 8, 15, 16, 31, 32, 63, 64) for d in (-1.5, -1, -0.5, 0, 0.5, 1)
]


def saturated(x, dtype):
    info = np.iinfo(dtype)
    clipped = [
        0 if math.isnan(v) else info.max if v >= info.max else info.min if v <= info.min else int(v)
        for v in x.astype(np.float64).tolist()
    ]
    return np.array(clipped, dtype)


@pytest.mark.parametrize("source", ["float32", "float64", "float16", ml_dtypes.bfloat16])
@pytest.mark.parametrize("target", INTEGERS)
def test_borders(source, target):
    with np.errstate(all="ignore"):
        x = np.array([s * v for v in BORDERS for s in (1, -1)]).astype(source)
    with jato.enable_x64():
        convert = jato.jit(lambda x: lax.convert_element_type(x, target))
        for n in (1, 15, 16, 17, len(x)):
            np.testing.assert_array_equal(np.asarray(convert(x[:n])), saturated(x[:n], target))
