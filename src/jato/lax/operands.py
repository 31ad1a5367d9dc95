"""Operands of the special functions of jato.lax: floats of one dtype and one shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import check
from jato.core.types import type_of
from jato.ops.convert import convert_element_type
from jato.ops.structural import broadcast_in_dim, broadcast_shapes

_PYTHON_NUMBERS = (bool, int, float)


def float_operands(function: str, **operands: Any) -> list[Any]:
    """The operands as arrays of their common floating dtype and shape.

    Python numbers take the others' dtype.  float16 and bfloat16 are computed in float32 by the
    callers (`half_precision`).  TypeError if the dtypes differ or are not floating;
    ValueError if the shapes do not broadcast.
    """
    typed = [x for x in operands.values() if type(x) not in _PYTHON_NUMBERS]
    avals = {name: type_of(x) for name, x in operands.items() if type(x) not in _PYTHON_NUMBERS}
    dtype = next(iter(avals.values())).dtype if typed else dtypes.canonicalize(np.float64)
    for name, aval in avals.items():
        check(
            dtypes.is_floating(aval.dtype) and aval.dtype == dtype,
            TypeError,
            f"{function}: argument '{name}': expected floats of one dtype ({dtype}), got "
            f"{aval.dtype}. Convert with astype.",
        )
    shape = broadcast_shapes(*(aval.shape for aval in avals.values())) if avals else ()
    result = []
    for x in operands.values():
        x = np.asarray(x, dtype) if type(x) in _PYTHON_NUMBERS else x
        own = type_of(x).shape
        if own != shape:
            dimensions = tuple(range(len(shape) - len(own), len(shape)))
            x = broadcast_in_dim(x, shape, dimensions)
        result.append(x)
    return result


def wide(x: Any) -> Any:
    """`x` in the dtype to compute in: half precision in float32."""
    aval = type_of(x)
    return convert_element_type(x, np.float32) if aval.dtype.itemsize < 4 else x


def narrow(x: Any, like: Any) -> Any:
    """`x` in the dtype of `like`."""
    aval = type_of(like)
    return x if type_of(x).dtype == aval.dtype else convert_element_type(x, aval.dtype)
