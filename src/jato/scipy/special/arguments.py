"""Arguments of special functions and distributions: numbers or arrays, as floats of one dtype.

Python numbers stay weakly typed: they take the dtype of the arrays beside them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jato.base.dtypes import is_complex
from jato.core.types import type_of
from jato.numpy.promote import (
    as_operand,
    broadcast_operands,
    cast,
    dtype_of,
    float_of,
    join_types,
)
from jato.ops.convert import convert_element_type


def _as_float_array(x: Any, dtype: Any, weak: bool) -> Any:
    if not hasattr(x, "dtype"):  # a Python number
        x = np.asarray(x)
        return convert_element_type(x, dtype, True) if weak else x.astype(dtype)
    return cast(x, dtype, weak)


def _real_arrays(function: str, arguments: dict[Any, Any]) -> list[Any]:
    operands = {name: as_operand(function, x, name) for name, x in arguments.items()}
    for name, x in operands.items():
        if is_complex(dtype_of(x)):
            where = f"argument '{name}'" if isinstance(name, str) else f"argument {name}"
            raise TypeError(f"{function}: expected real arguments, got {dtype_of(x)} for {where}")
    dtype, weak = join_types(*operands.values())
    return [_as_float_array(x, float_of(dtype), weak) for x in operands.values()]


def real_operands(function: str, *xs: Any) -> list[Any]:
    """Arrays of a common floating dtype, of one shape or scalars.  TypeError for complex ones."""
    return broadcast_operands(function, _real_arrays(function, dict(enumerate(xs))))


def real_operand(function: str, x: Any) -> Any:
    return real_operands(function, x)[0]


def named_operands(function: str, **arguments: Any) -> list[Any]:
    """As real_operands; errors give the names of the arguments, and shapes stay as they are."""
    return _real_arrays(function, arguments)


def computed_dtype(x: Any) -> Any:
    """The dtype in which series are summed: half precision is computed in float32."""
    dtype = type_of(x).dtype
    return dtype if dtype.itemsize >= 4 else np.dtype("float32")
