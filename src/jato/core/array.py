"""Array, the public face of arrays: isinstance, printing, and the way in from NumPy and out.

The arrays themselves are `_native.ArrayImpl`; inside a transformed function their place is taken
by tracers.  `Array` stands for both: `isinstance(x, Array)` holds for either, and its attributes
(set by numpy/methods.py) are what both have in common.

Start at `from_host` (NumPy -> array) and `to_host` (array -> NumPy).
"""

from __future__ import annotations

import operator
import sys
from typing import Any

import numpy as np
from jato import _native
from jato.base import dtypes
from jato.base.errors import ConcretizationTypeError
from jato.core.trace import Tracer
from jato.core.types import array_type

ArrayImpl = _native.ArrayImpl

# what isinstance(x, Array) means; `isinstance(x, ARRAYS)` is the quick form of it
ARRAYS = (ArrayImpl, Tracer)


class _ArrayMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, ARRAYS)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return cls is subclass or issubclass(subclass, ARRAYS)


class Array(metaclass=_ArrayMeta):
    """The type of jato's arrays, concrete or traced; for isinstance and annotations.

    Arrays are immutable.  Make them with `jato.numpy.asarray`, `zeros`, `arange` and so on, and
    change elements with `x.at[index].set(value)`, which returns a new array.

    >>> import jato.numpy as jnp
    >>> isinstance(jnp.zeros(3), jnp.ndarray)
    True
    """

    def __init__(self) -> None:
        raise TypeError("jato.Array cannot be instantiated; use jato.numpy.array or asarray")


# ---- in and out


def is_masked(x: Any) -> bool:
    """Is x a numpy.ma.MaskedArray?  Taken for an array, it would lose its mask."""
    masked = sys.modules.get("numpy.ma")  # who has a masked array has loaded this
    return masked is not None and isinstance(x, masked.MaskedArray)


def from_host(values: Any, dtype: Any = None, weak_type: bool = False) -> Any:
    """The array with the elements of a NumPy array (copied), in the canonical dtype.

    Raises TypeError for a masked array: its mask would be lost without a word.
    """
    if is_masked(values):
        raise TypeError(
            "expected an array, got a numpy.ma.MaskedArray, whose mask would be lost. "
            "Pass x.filled(value), or the data and the mask as two arrays."
        )
    host = np.asarray(values)
    target = dtypes.canonicalize(host.dtype if dtype is None else dtype)
    if target is not dtypes.key and host.dtype != target:
        host = host.astype(target)
    return _native.from_numpy(host, weak_type)


def from_number(value: bool | int | float | complex) -> Any:
    """A weakly typed 0-d array.  Raises OverflowError for an integer that does not fit."""
    dtype = dtypes.scalar_dtype(value)
    if dtype.kind == "i":
        info = np.iinfo(dtype)
        if not info.min <= value <= info.max:  # type: ignore[operator]
            raise OverflowError(
                f"Python int {value} is too large for {dtype}. Give a dtype, or enable 64 bits "
                'with jato.config.update("jax_enable_x64", True).'
            )
    return _native.from_scalar(value, array_type((), dtype, not isinstance(value, bool)))


def to_host(x: Any) -> np.ndarray[Any, Any]:
    """The elements as a NumPy array (read-only when shared).  Tracers raise."""
    return np.asarray(x)


def concrete(x: Any) -> Any:
    """`x`, or what is behind a tracer whose trace knows the numbers; None if nothing does."""
    return x.concrete() if isinstance(x, Tracer) else x


def require_concrete(x: Any, function: str, argument: str, hint: str) -> np.ndarray[Any, Any]:
    """`x` as a NumPy array.  Raises ConcretizationTypeError when it is traced."""
    known = concrete(x)
    if known is None and x is not None:
        raise ConcretizationTypeError(
            f"{function}: argument '{argument}' must be known when the function is traced, but "
            f"it is a traced value of type {x.aval} ({x.owner.describe()}). {hint} {x.origin()}"
        )
    return np.asarray(known)


def require_integer(x: Any, function: str, argument: str) -> int:
    """`x` as a Python int: sizes, axes, counts.  Raises TypeError, or ConcretizationTypeError
    for a traced value."""
    if type(x) is int:
        return x
    if isinstance(x, Tracer):
        x = require_concrete(x, function, argument, "Mark it static (static_argnums).")
    try:
        return operator.index(x)
    except TypeError:
        raise TypeError(
            f"{function}: argument '{argument}' must be an integer, got {type(x).__name__}"
        ) from None


# ---- printing


def array_repr(x: Any) -> str:
    """Array([1., 2.], dtype=float32); keys are shown with the words inside."""
    if x.dtype is dtypes.key:
        return array_str(x)
    suffix = f"dtype={dtypes.as_dtype(x.dtype).name}" + (
        ", weak_type=True)" if x.weak_type else ")"
    )
    if x.size == 0:
        return f"Array([], shape={x.shape}, {suffix}"
    width = np.get_printoptions()["linewidth"]
    text = np.array2string(
        to_host(x), prefix="Array(", suffix=",", separator=", ", max_line_width=width
    )
    last_line = len(text) - text.rfind("\n") + 1
    space = "\n" + " " * len("Array(") if last_line + len(suffix) + 1 > width else " "
    if "\n" not in text and space == " " and len("Array(") + len(text) + len(suffix) + 2 > width:
        space = "\n" + " " * len("Array(")
    return f"Array({text},{space}{suffix}"


def array_str(x: Any) -> str:
    """[1. 2.]"""
    if x.dtype is not dtypes.key:
        return str(to_host(x))
    numbers = x.__reduce__()[1][0]  # as pickle sees them: the first word is the upper half
    words = np.stack([numbers >> np.uint64(32), numbers & np.uint64(0xFFFFFFFF)], axis=-1)
    return f"Array({x.shape}, dtype={x.dtype.name}) overlaying:\n{words.astype(np.uint32)}"


def array_format(x: Any, spec: str) -> str:
    """A 0-d array formats as its number; others only with an empty format (TypeError)."""
    if x.ndim == 0 and x.dtype is not dtypes.key:
        return format(to_host(x)[()], spec)
    if spec:
        raise TypeError(
            f"the format {spec!r} is for one number, got an array of shape {x.shape}. Format its "
            "elements, or str(x)."
        )
    return array_str(x)
