"""Samples of callbacks: integers, because their derivative is an error.

vmap has a test of its own (ops/test_callback.py), which needs arrays.
"""

from __future__ import annotations

import numpy as np
from samples.sample import Sample

from jato.core.types import array_type


class Doubled:
    """A flat function as the primitives hold it."""

    name = "doubled"

    def __call__(self, arrays):
        return [np.asarray(x) * 2 for x in arrays]


class Nothing:
    name = "nothing"

    def __call__(self, arrays):
        return []


def samples():
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    result = {"results": (array_type((2, 3), "int32"),), "vmap_method": "sequential"}
    both = {"function": Doubled(), "ordered": False, **result}
    none = {"function": Nothing(), "ordered": False, **result, "results": ()}
    return {
        "pure_callback": [Sample((x,), both, batch=False)],
        "io_callback": [Sample((x,), both, batch=False)],
        "debug_callback": [Sample((x,), none, batch=False)],
    }
