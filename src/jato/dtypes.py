"""jato.dtypes: element types that NumPy does not have, and questions about element types.

`issubdtype(x.dtype, prng_key)` tells arrays of random keys from arrays of numbers.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from jato.base import dtypes as _dtypes
from jato.base.dtypes import bfloat16 as bfloat16
from jato.base.dtypes import float0 as float0
from jato.numpy import (
    finfo as finfo,
    iinfo as iinfo,
    issubdtype as issubdtype,
    result_type as result_type,
)


class extended(np.generic):
    """The kind of all dtypes that hold no numbers."""


class prng_key(extended):
    """The kind of the dtype of random keys."""


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """The dtype that arrays asked for in `dtype` have: 64 bits become 32 unless they are enabled.

    >>> canonicalize_dtype("float64")
    dtype('float32')
    """
    if dtype is _dtypes.key:
        if allow_extended_dtype:
            return dtype
        raise ValueError(f"canonicalize_dtype: {dtype} is the dtype of random keys, not of numbers.")
    return _dtypes.canonicalize(dtype)


def itemsize_bits(dtype: Any) -> int:
    """The bits of an element.

    >>> itemsize_bits("int16")
    16
    """
    return 8 * operator.index(_dtypes.as_dtype(dtype).itemsize)


def scalar_type_of(x: Any) -> type:
    """bool, int, float or complex: the Python type of the kind of a value's numbers.

    >>> scalar_type_of(np.float32(1))
    <class 'float'>
    """
    dtype = getattr(x, "dtype", None)
    dtype = _dtypes.scalar_dtype(x) if dtype is None else dtype
    if _dtypes.is_bool(dtype):
        return bool
    if _dtypes.is_integer(dtype):
        return int
    if _dtypes.is_floating(dtype):
        return float
    if _dtypes.is_complex(dtype):
        return complex
    raise TypeError(f"scalar_type_of: expected a number or an array of numbers, got dtype {dtype}.")
