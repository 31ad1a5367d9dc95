"""Samples of dot_general."""

from __future__ import annotations

import numpy as np

from jato.ops.contract import DOT_GENERAL
from samples.elementwise import rng_for, values
from samples.sample import Sample

# lhs shape, rhs shape, dimension numbers
DOTS = {
    "matmul": ((3, 4), (4, 5), (((1,), (0,)), ((), ()))),
    "inner": ((4,), (4,), (((0,), (0,)), ((), ()))),
    "outer": ((3,), (4,), (((), ()), ((), ()))),
    "scalars": ((), (), (((), ()), ((), ()))),
    "matrix vector": ((3, 4), (4,), (((1,), (0,)), ((), ()))),
    "batch": ((2, 3, 4), (2, 4, 5), (((2,), (1,)), ((0,), (0,)))),
    "batch elsewhere": ((3, 2, 4, 6), (4, 6, 5, 2), (((2,), (0,)), ((1, 3), (3, 1)))),
    "two contracted, crossed": ((3, 4, 5), (5, 2, 4), (((1, 2), (2, 0)), ((), ()))),
    "three contracted": ((3, 4, 5), (5, 3, 4), (((1, 0, 2), (2, 1, 0)), ((), ()))),
    "transposed both": ((4, 3), (5, 4), (((0,), (1,)), ((), ()))),
    "nothing to sum": ((3, 0), (0, 2), (((1,), (0,)), ((), ()))),
    "no rows": ((0, 4), (4, 2), (((1,), (0,)), ((), ()))),
    "only batch": ((3, 2), (3, 2), (((), ()), ((0, 1), (0, 1)))),
}


def samples():
    rng = rng_for("dot_general")
    found = []
    for name, (left, right, numbers) in DOTS.items():
        for dtype in ("float64", "float32", "float16", "int8", "uint32", "bool", "complex128"):
            for preferred in (None, np.dtype("float32")) if dtype == "float16" else (None,):
                params = {
                    "dimension_numbers": numbers,
                    "precision": None,
                    "preferred_element_type": preferred,
                }
                operands = values(rng, dtype, left), values(rng, dtype, right)
                found.append(Sample(operands, params, smooth=name != "nothing to sum", ulps=1e4))
    return {DOT_GENERAL.name: found}
