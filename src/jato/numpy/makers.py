"""Makers of elementwise functions, and the pieces that several of them share.

`unary_function` and `binary_function` make public functions from an operation, a summary and an
example.  `select_where` is the traced form of `where`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jato.base import dtypes
from jato.base.dtypes import is_bool, is_complex, is_floating
from jato.jit.eager import public
from jato.numpy.promote import (
    broadcast_operands,
    cast,
    dtype_of,
    is_weak,
    require_no_out,
    shape_of,
    unary,
    unary_float,
)
from jato.ops import elementwise, structural


def unary_function(
    name: str, operation: Callable[[Any], Any], summary: str, example: str, prepare: Any = unary
) -> Any:
    """A public elementwise function of one array: `operation` on the prepared operand."""

    def function(x: Any, /) -> Any:
        return operation(prepare(name, x))

    function.__name__ = function.__qualname__ = name
    function.__module__ = "jato.numpy"  # where pickle finds it
    note = (
        "x: array or number; integers are converted to floats."
        if prepare is unary_float
        else "x: array or number."
    )
    function.__doc__ = f"""{summary}

    {note}  Returns an array of x's shape.  Raises TypeError for other arguments and for dtypes
    on which the function is not defined.

    >>> import jato.numpy as jnp
    >>> {example.splitlines()[0]}
    {example.splitlines()[1]}
    """
    return public()(function)


def require_ufunc_defaults(function: str, out: Any, where: Any) -> None:
    require_no_out(function, out)
    if where is not None:
        raise NotImplementedError(
            f"{function}: argument 'where' is not supported. Use jato.numpy.where(mask, result, x)."
        )


def without_bool(x: Any) -> Any:
    """bool -> int, since there is no arithmetic on bools."""
    return cast(x, np.int32, is_weak(x)) if is_bool(dtype_of(x)) else x


# ---- arithmetic


def select_where(condition: Any, x: Any, y: Any) -> Any:
    """x where the bool condition holds, else y; x and y of one dtype.  Shapes are broadcast."""
    condition, x, y = broadcast_operands("where", (condition, x, y))
    return elementwise.select_n(condition, y, x)


def binary_function(function: Any, name: str, summary: str, example: str, note: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{summary}

    x, y: arrays or numbers of shapes that broadcast.  {note}

    >>> import jato.numpy as jnp
    >>> {example.splitlines()[0]}
    {example.splitlines()[1]}
    """
    return public()(function)


# ---- tests of a number


def is_nan(x: Any) -> Any:
    dtype = dtype_of(x)
    if is_complex(dtype):
        return elementwise.bitwise_or(is_nan(elementwise.real(x)), is_nan(elementwise.imag(x)))
    if is_floating(dtype):
        return elementwise.ne(x, x)
    return constant_like(x, False)


def constant_like(x: Any, value: bool) -> Any:
    return structural.full(shape_of(x), value, np.dtype("bool"))


def number_like(x: Any, value: float) -> Any:
    """A constant of x's dtype."""
    return np.asarray(value, dtype_of(x))[()]


# ---- parts of numbers


def finfo_of(dtype: Any) -> Any:
    """numpy.finfo, for bfloat16 too."""
    return np.finfo(dtype) if dtype != dtypes.bfloat16 else dtypes.ml_dtypes.finfo(dtype)
