"""Samples of the primitives of random bits; keys are made by `hold`."""

from __future__ import annotations

import numpy as np
from reference_rules import hold

from jato.ops.random_bits import RANDOM_BITS
from samples.sample import Sample

KEYS = [np.array(2**40 + 7), np.arange(3) * (2**33 + 5), np.zeros((0,)), np.arange(6).reshape(2, 3)]


def keys():
    return [hold(k, "key") for k in KEYS]


def samples():
    shapes = [(), (7,), (2, 3), (0,)]
    numbers = np.arange(3, dtype=np.uint32) * np.uint32(2**31 + 1)
    raw = np.arange(6, dtype=np.uint32).reshape(3, 2) * np.uint32(2**30 + 1)
    return {
        RANDOM_BITS.name: [
            Sample((k,), {"bit_width": width, "shape": shape})
            for k in keys() for shape in shapes for width in (8, 16, 32, 64)
        ],
        "random_split": [Sample((k,), {"shape": shape}) for k in keys() for shape in shapes],
        "threefry2x32": [
            Sample(operands)
            for operands in (
                (keys()[0], np.uint32(0), np.uint32(9)), (keys()[0], np.uint32(0), numbers),
                (keys()[1], np.uint32(0), np.uint32(9)), (keys()[1], numbers, numbers),
            )
        ],
        "random_wrap": [Sample((raw,)), Sample((raw[0],)), Sample((raw[:0],))],
        "random_unwrap": [Sample((k,)) for k in keys()],
    }  # fmt: skip
