"""Samples of gather, scatter and the dynamic slices."""

from __future__ import annotations

import numpy as np

from jato.ops.dynamic_slices import DYNAMIC_SLICE
from jato.ops.gather_geometry import (
    CLIP,
    FILL,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
)
from samples.elementwise import rng_for, values
from samples.sample import Sample

# operand shape, indices, dimension numbers, slice sizes
GATHERS = {
    "rows": ((5, 3), [[0], [4], [-1], [5], [2], [2]], GatherDimensionNumbers((1,), (0,), (0,)), (1, 3)),
    "points": ((5, 3), [[0, 0], [4, 2], [5, 2], [1, -3]], GatherDimensionNumbers((), (0, 1), (0, 1)), (1, 1)),
    "windows": ((6, 5), [[0, 0], [2, 3], [4, 4], [-1, 1]], GatherDimensionNumbers((1, 2), (), (0, 1)), (3, 2)),
    "swapped": ((6, 5), [[0, 0], [3, 2], [4, 4]], GatherDimensionNumbers((0, 2), (), (1, 0)), (3, 2)),
    "one start": ((6,), [2], GatherDimensionNumbers((0,), (), (0,)), (3,)),
    "grid of starts": ((4, 6), [[[0], [1], [5]], [[2], [3], [9]]], GatherDimensionNumbers((0,), (1,), (1,)), (4, 1)),
    "along": ((3, 6), [[[0], [5]], [[1], [1]], [[7], [2]]],
              GatherDimensionNumbers((), (1,), (1,), (0,), (0,)), (1, 1)),
    "along with window": ((3, 6, 2), [[[0], [5]], [[1], [1]], [[4], [2]]],
                          GatherDimensionNumbers((2, 3), (), (1,), (0,), (0,)), (1, 2, 2)),
    "no starts": ((3,), np.zeros((4, 0), int), GatherDimensionNumbers((1,), (), ()), (2,)),
    "no batch rows": ((5, 3), np.zeros((0, 1), int), GatherDimensionNumbers((1,), (0,), (0,)), (1, 3)),
    "empty window": ((5, 3), [[0], [4]], GatherDimensionNumbers((1, 2), (), (0,)), (0, 3)),
}  # fmt: skip


def gathers():
    found = []
    rng = rng_for("gather")
    for shape, indices, numbers, sizes in GATHERS.values():
        indices = np.asarray(indices, np.int32)
        for mode in (CLIP, FILL):
            params = {"dimension_numbers": numbers, "slice_sizes": sizes, "mode": mode}
            for dtype in ("float64", "int32", "complex64", "bool", "float16"):
                for fill in (None, 0):
                    x = values(rng, dtype, shape)
                    found.append(
                        Sample(
                            (x, indices),
                            params | {"fill_value": fill},
                            smooth=fill == 0,
                            batch=False,
                        )
                    )
    return found


def scatters(name):
    """`lower` is not theirs, so double precision is enough here."""
    found = []
    rng = rng_for(name)
    for shape, indices, numbers, sizes in GATHERS.values():
        indices = np.asarray(indices, np.int32)
        batch = list(indices.shape[:-1])
        dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
        window = [n for d, n in enumerate(sizes) if d not in dropped]
        rank = len(batch) + len(window)
        updates_shape = tuple(
            (window if d in numbers.offset_dims else batch).pop(0) for d in range(rank)
        )
        for mode in (CLIP, FILL):
            params = {
                "dimension_numbers": ScatterDimensionNumbers(*numbers),
                "mode": mode,
                "unique_indices": False,
            }
            operands = values(rng, "float64", shape), indices, values(rng, "float64", updates_shape)
            found.append(Sample(operands, params, smooth=0 not in updates_shape, batch=False))
    return found


def dynamic_slices(update):
    found = []
    rng = rng_for("dynamic_slice")
    for dtype in ("float64", "int8", "complex128"):
        for starts in ((0, 0), (2, 1), (9, 9), (-1, -2), (-100, 3)):
            for kind in ("int32", "int64", "uint8") if min(starts) >= 0 else ("int32", "int8"):
                for sizes in ((2, 3), (4, 5), (0, 2)):
                    at = [np.array(s, kind) for s in starts]
                    x = values(rng, dtype, (4, 5))
                    if update:
                        operands = (x, values(rng, dtype, sizes), *at)
                        found.append(Sample(operands, {"negative": True}, batch=False))
                    else:
                        params = {"slice_sizes": sizes, "negative": True}
                        found.append(Sample((x, *at), params, batch=False))
    return found


def samples():
    names = ["scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"]
    return {
        "gather": gathers(),
        DYNAMIC_SLICE.name: dynamic_slices(False),
        "dynamic_update_slice": dynamic_slices(True),
        **{name: scatters(name) for name in names},
    }
