"""Python numbers as operands: they take the dtype of the arrays beside them.

`number_as(function, x, aval)` is one number beside an array of type `aval`; `match_numbers` treats
all operands of a function.  The conversions are remembered per dtype and kind of number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import fail
from jato.core.types import type_of

NUMBERS = (bool, int, float, complex)


def match_numbers(function: str, operands: Sequence[Any]) -> list[Any]:
    """Python numbers as scalars of the other operands' dtype.

    Where that is the dtype of a Python number itself they stay one, so that they stay weak.
    TypeError if the dtype cannot hold the number: a float beside integers, a complex beside
    floats; OverflowError if an integer is out of range.
    """
    for x in operands:
        if type(x) not in NUMBERS:
            aval = type_of(x)
            return [number_as(function, y, aval) if type(y) in NUMBERS else y for y in operands]
    # numbers only: the widest kind among them
    kind = max((type(x) for x in operands), key=NUMBERS.index)
    return [kind(x) for x in operands]


def number_as(function: str, x: Any, aval: Any) -> Any:
    """A Python number as a scalar of the dtype of `aval`."""
    key = (aval.dtype_code, type(x), dtypes.x64_enabled())
    convert = _CONVERSIONS.get(key)
    if convert is None:
        convert = _CONVERSIONS[key] = _conversion(function, x, aval)
    return convert(x)


_CONVERSIONS: dict[Any, Callable[[Any], Any]] = {}


def _conversion(function: str, x: Any, aval: Any) -> Callable[[Any], Any]:
    dtype = aval.dtype
    rank = 0 if dtypes.is_bool(dtype) else 1 if dtypes.is_integer(dtype) else 2
    rank = 3 if dtypes.is_complex(dtype) else rank
    if NUMBERS.index(type(x)) > rank or not hasattr(dtype, "type"):
        fail(
            TypeError,
            function,
            f"expected a number of dtype {dtype}, got {x!r} beside {aval}.",
            "Try lax.convert_element_type; the functions of jato.numpy promote.",
        )
    kind = NUMBERS[rank]
    if dtypes.scalar_dtype(kind(0)) != dtype:
        return dtype.type
    if kind is not int:
        return kind
    info = np.iinfo(dtype)

    def checked(number: Any) -> int:
        if not info.min <= number <= info.max:
            raise OverflowError(f"{number} does not fit into {dtype}")
        return int(number)

    return checked
