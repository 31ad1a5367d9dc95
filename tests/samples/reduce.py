"""Samples of the reductions other than the sum."""

from __future__ import annotations

import numpy as np

from jato.ops.reduce import ARGMAX
from samples.elementwise import DTYPES, rng_for, values
from samples.sample import Sample

ROWS = [((2, 3), (1,)), ((17,), (0,)), ((2, 3), (0, 1)), ((3, 2, 4), (0, 2)), ((3,), ()), ((), ())]
NAMES = ["reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or", "reduce_xor"]
TAKES = {"reduce_max": "biufc", "reduce_min": "biufc", "reduce_prod": "iufc"}


def special_values(dtype):
    nan, inf = np.nan, np.inf
    rows = [[1, nan, 2], [nan, nan, nan], [-inf] * 3, [inf] * 3, [0.0, -0.0, -1], [5, 5, 1]]
    return np.array(rows, dtype)  # rows: NaN somewhere, everywhere, infinities, zeros, ties


def reductions(name):
    rng = rng_for(name)
    found = []
    for kind in TAKES.get(name, "biu"):
        for dtype in DTYPES[kind]:
            rows = ROWS if dtype in ("float64", "int32", "bool") else ROWS[:2]
            for shape, axes in rows:
                found.append(Sample((values(rng, dtype, shape),), {"axes": axes}, ulps=32))
            empty = np.zeros((2, 0), dtype)
            found.append(Sample((empty,), {"axes": (1,)}, smooth=False))
    if name in ("reduce_max", "reduce_min"):
        found += [
            Sample((special_values(d),), {"axes": (1,)}, smooth=False, signs=False)
            for d in ("float32", "float64", "float16")
        ]
    if name == "reduce_prod":
        found.append(Sample((np.array([[0.0, 2, 3], [0, 0, 4], [1, 2, 3]]),), {"axes": (1,)}))
    return found


def positions(name):
    rng = rng_for(name)
    found = []
    for kind in ARGMAX.takes:
        for dtype in DTYPES[kind]:
            for shape, axis in (((2, 3), 1), ((17,), 0), ((3, 2, 4), 1), ((1, 1), 0)):
                params = {"axes": (axis,), "index_dtype": np.dtype("int32")}
                found.append(Sample((values(rng, dtype, shape),), params))
    for dtype in ("float32", "float64", "float16"):
        for index_dtype in ("int32", "int64", "uint8"):
            params = {"axes": (1,), "index_dtype": np.dtype(index_dtype)}
            found.append(Sample((special_values(dtype),), params, smooth=False))
    return found


def samples():
    found = {name: reductions(name) for name in NAMES}
    found["argmax"], found["argmin"] = positions("argmax"), positions("argmin")
    return found
