"""Samples of the primitives that move, repeat, cut and join elements."""

from __future__ import annotations

import numpy as np

from samples.elementwise import rng_for, values
from samples.sample import Sample

DTYPES = ("float64", "float32", "int32", "bool", "complex128", "float16", "uint8")


def some(shape, dtype="float64", seed=""):
    return values(rng_for(f"{shape}{dtype}{seed}"), dtype, shape)


def one_operand(rows):
    """(shape, params) rows: all of them in float64, the first two in every dtype."""
    found = [Sample((some(shape),), params) for shape, params in rows]
    for dtype in DTYPES[1:]:
        found += [Sample((some(shape, dtype),), params) for shape, params in rows[:2]]
    return found


def reshapes():
    pairs = [
        ((2, 3, 4), (6, 4)), ((6,), (2, 3)), ((2, 3), (3, 2)), ((), (1, 1)), ((1,), ()),
        ((0, 3), (3, 0)), ((2, 1, 3), (2, 3)), ((17,), (17, 1)), ((4, 6), (8, 3)), ((12,), (2, 3, 2)),
    ]  # fmt: skip
    return one_operand([(old, {"new_sizes": new}) for old, new in pairs])


def transposes():
    rows = [((2, 3, 4), (2, 0, 1)), ((3, 2), (1, 0)), ((), ()), ((0, 2), (1, 0)), ((17, 1), (1, 0))]
    return one_operand([(shape, {"permutation": p}) for shape, p in rows])


def reversals():
    rows = [((5,), (0,)), ((2, 3), (0, 1)), ((2, 3), (1,)), ((0,), (0,)), ((), ())]
    return one_operand([(shape, {"dimensions": d}) for shape, d in rows])


def broadcasts():
    rows = [
        ((3,), (2, 3), (1,)), ((2,), (2, 3), (0,)), ((), (4,), ()), ((1, 3), (2, 3), (0, 1)),
        ((3, 1), (3, 2, 5), (0, 2)), ((), (), ()), ((1,), (0,), (0,)), ((0,), (2, 0), (1,)),
        ((1,), (1,), (0,)), ((1, 1), (2, 3), (0, 1)),
    ]  # fmt: skip
    return one_operand(
        [(s, {"shape": shape, "broadcast_dimensions": dims}) for s, shape, dims in rows]
    )


def sums():
    rows = [((2, 3), (1,)), ((17,), (0,)), ((2, 3), (0, 1)), ((2, 0), (1,)), ((3,), ()), ((), ())]
    rows += [((2, 3, 4), (0, 2)), ((0, 3), (1,))]
    return [
        s for s in one_operand([(x, {"axes": a}) for x, a in rows]) if s.operands[0].dtype != bool
    ]


def iotas():
    rows = [
        ("int32", (3,), 0), ("float32", (2, 3), 1), ("uint8", (2, 3), 0), ("complex64", (4,), 0),
        ("int32", (0,), 0), ("float16", (1, 5), 1), ("int64", (2, 2), 1),
    ]  # fmt: skip
    return [
        Sample((), {"dtype": np.dtype(d), "shape": shape, "dimension": i}) for d, shape, i in rows
    ]


def slices():
    rows = [
        ((10,), (2,), (8,), (3,)), ((4, 5), (1, 0), (3, 5), (1, 2)), ((5,), (0,), (5,), (1,)),
        ((5,), (3,), (3,), (1,)), ((0,), (0,), (0,), (1,)), ((7,), (0,), (7,), (2,)),
        ((), (), (), ()), ((6,), (1,), (6,), (7,)),
    ]  # fmt: skip
    return one_operand(
        [(shape, {"start_indices": s, "limit_indices": l, "strides": t}) for shape, s, l, t in rows]
    )


def paddings():
    rows = [
        ((3,), ((1, 2, 0),)), ((2, 3), ((0, 1, 2), (1, 0, 1))), ((4,), ((-1, -1, 0),)),
        ((3,), ((-1, 2, 1),)), ((0,), ((1, 2, 3),)), ((1,), ((0, 0, 4),)), ((2, 2), ((0, 0, 0),) * 2),
        ((), ()), ((3,), ((-2, -2, 1),)), ((4,), ((1, -3, 2),)),
    ]  # fmt: skip
    found = []
    for position, (shape, config) in enumerate(rows):
        for dtype in DTYPES if position < 2 else ("float64",):
            operands = (some(shape, dtype), some((), dtype, "value"))
            found.append(Sample(operands, {"padding_config": config}))
    return found


def joins():
    rows = [
        ([(2,), (3,)], 0), ([(2, 1), (2, 4), (2, 2)], 1), ([(0,), (3,)], 0), ([(3,)], 0),
        ([(1, 2), (3, 2)], 0), ([(0, 2), (0, 2)], 1), ([(2,), (0,), (1,)], 0),
    ]  # fmt: skip
    found = []
    for position, (shapes, dimension) in enumerate(rows):
        for dtype in DTYPES if position < 2 else ("float64",):
            operands = tuple(some(s, dtype, i) for i, s in enumerate(shapes))
            found.append(Sample(operands, {"dimension": dimension}))
    return found


def samples():
    return {
        "reshape": reshapes(),
        "optimization_barrier": one_operand([((2, 3), {}), ((), {}), ((0, 2), {}), ((17,), {})]),
        "transpose": transposes(),
        "rev": reversals(),
        "broadcast_in_dim": broadcasts(),
        "reduce_sum": sums(),
        "iota": iotas(),
        "slice": slices(),
        "pad": paddings(),
        "concatenate": joins(),
        "stop_gradient": [
            Sample((some(s, d),), smooth=False) for s in ((3,), (), (0,)) for d in DTYPES
        ],
    }
