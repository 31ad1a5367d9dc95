"""Samples of the running sums, products and extrema, and of sorting."""

from __future__ import annotations

from jato.ops.cumulative import CUMSUM
from jato.ops.sort import SORT, TOP_K
from samples.elementwise import rng_for, values
from samples.sample import Sample

SHAPES = [((5,), 0), ((1,), 0), ((0,), 0), ((3, 4), 0), ((3, 4), 1), ((2, 9, 3), 1)]
TAKES = {
    CUMSUM.name: ("float64", "float32", "float16", "int8", "complex128"),
    "cumprod": ("float64", "float32", "float16", "int8", "complex128"),
    "cummax": ("float64", "float16", "uint8", "bool", "complex64"),
    "cummin": ("float64", "float16", "uint8", "bool", "complex64"),
    "cumlogsumexp": ("float64", "float16"),
}


def scans(name):
    rng = rng_for(name)
    return [
        Sample((values(rng, dtype, shape),), {"axis": axis, "reverse": reverse}, ulps=1e3)
        for shape, axis in SHAPES
        for reverse in (False, True)
        for dtype in TAKES[name]
    ]


def sorts():
    rng = rng_for("sort")
    found = []
    for shape, axis in SHAPES:
        params = {"dimension": axis, "is_stable": True, "num_keys": 1}
        for dtype in ("float64", "float16", "int8", "complex64", "bool"):
            x, y = values(rng, dtype, shape), values(rng, "float64", shape)
            found += [Sample((x,), params), Sample((x, y), params, smooth=dtype == "float64")]
    return found


def top():
    rng = rng_for("top_k")
    return [
        Sample((values(rng, dtype, shape),), {"k": min(2, shape[axis]), "axis": axis})
        for shape, axis in SHAPES
        for dtype in ("float64", "float16", "int8", "bool")
    ]


def samples():
    return {name: scans(name) for name in TAKES} | {SORT.name: sorts(), TOP_K.name: top()}
