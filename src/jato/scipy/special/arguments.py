"""Arguments of the special functions: numbers or arrays, as floats of one dtype and shape."""

from __future__ import annotations

from typing import Any

from jato.base.dtypes import is_complex
from jato.numpy.promote import as_array, broadcast_operands, dtype_of, promote_dtypes


def real_operands(function: str, *xs: Any) -> list[Any]:
    """Arrays of a common floating dtype, of one shape or scalars.  TypeError for complex ones."""
    operands = promote_dtypes(
        function, *[as_array(function, x, i) for i, x in enumerate(xs)], inexact=True
    )
    if is_complex(dtype_of(operands[0])):
        raise TypeError(f"{function}: expected real arguments, got {dtype_of(operands[0])}")
    return broadcast_operands(function, operands)


def real_operand(function: str, x: Any) -> Any:
    return real_operands(function, x)[0]
