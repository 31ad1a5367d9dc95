"""ArrayType: what is known of an array without its numbers; and symbolic zeros.

`ArrayType(shape, dtype, weak_type)` is interned in the native runtime: equal types are one
object, so that a call signature is a row of pointers.  Here are its makers and `type_of`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jato import _native
from jato.base import dtypes

ArrayType = _native.ArrayType


def array_type(shape: tuple[int, ...], dtype: Any, weak_type: bool = False) -> Any:
    """The interned type of an array of this shape and dtype (any NumPy-like spelling)."""
    return ArrayType(tuple(shape), dtypes.code_of(dtype), weak_type)


_NUMBERS = frozenset((bool, int, float, complex))


def type_of(x: Any) -> Any:
    """The ArrayType of an array, tracer, NumPy array or scalar, or Python number."""
    if type(x) in _NUMBERS:
        return ArrayType((), dtypes.code_of(dtypes.scalar_dtype(x)), True)
    aval = getattr(x, "aval", None)
    if aval is not None:
        return aval
    if isinstance(x, (bool, int, float, complex)):
        return ArrayType((), dtypes.code_of(dtypes.scalar_dtype(x)), True)
    if isinstance(x, (np.ndarray, np.generic)):
        return ArrayType(x.shape, dtypes.code_of(dtypes.canonicalize(x.dtype)), False)
    raise TypeError(
        f"expected an array or a number, got {type(x).__name__}: {str(x)[:80]}. "
        "Lists and tuples are converted with jato.numpy.asarray."
    )


class Zero:
    """A tangent or cotangent that is known to be zero and takes no memory."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


def tangent_type(aval: Any) -> Any:
    """The type of tangents: itself for floats and complex, float0 for the rest."""
    if dtypes.is_inexact(aval.dtype):
        return aval
    return array_type(aval.shape, dtypes.float0)
