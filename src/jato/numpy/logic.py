"""Comparison, logic, bits, and tests such as isnan, elementwise."""

from __future__ import annotations

from typing import Any

import numpy as np
from jato.base.dtypes import is_bool, is_complex, is_floating, is_integer, is_unsigned
from jato.jit.eager import public
from jato.numpy.makers import (
    binary_function,
    constant_like,
    is_nan,
    number_like,
    require_ufunc_defaults,
    unary_function,
    without_bool,
)
from jato.numpy.promote import (
    as_array,
    as_operand,
    broadcast_operands,
    dtype_of,
    is_weak,
    promote,
    require_no_out,
    unary,
)
from jato.ops import convert, elementwise

# ---- comparison


def _by_value(x: Any, y: Any) -> tuple[Any, Any, Any] | None:
    """Integers whose common dtype cannot hold both: (x, y, the side that may be negative or None).

    A signed integer against an unsigned one at least as wide: both as the unsigned dtype, and where
    the signed one is negative the answer is known.  A Python integer that the other operand's dtype
    cannot hold: both in the integer's own dtype.  None: promotion serves.
    """
    a, b = getattr(x, "aval", None), getattr(y, "aval", None)
    if a is not None and b is not None and a.dtype_code == b.dtype_code:
        return None
    x, y = as_operand("compare", x), as_operand("compare", y, 1)
    dx, dy = dtype_of(x), dtype_of(y)
    if not (is_integer(dx) and is_integer(dy)) or dx == dy:
        return None
    for number, dtype in ((x, dy), (y, dx)):
        if type(number) is int and np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
            return None
    if is_unsigned(dx) != is_unsigned(dy):
        unsigned, signed = (dx, dy) if is_unsigned(dx) else (dy, dx)
        if unsigned.itemsize >= signed.itemsize:
            signed_side = y if is_unsigned(dx) else x
            below = elementwise.lt(as_array("compare", signed_side), np.zeros((), signed)[()])
            return _as_dtype(x, unsigned), _as_dtype(y, unsigned), (below, signed_side is x)
    if not (is_weak(x) or is_weak(y)):
        return None
    wide = dx if dx.itemsize >= dy.itemsize else dy
    return _as_dtype(x, wide), _as_dtype(y, wide), None


def _as_dtype(x: Any, dtype: Any) -> Any:
    return convert.convert_element_type(as_array("compare", x), dtype)


def _ordered(operation: Any) -> Any:
    return lambda x, y: elementwise.in_order(operation, x, y)


def _comparison(
    name: str, operation: Any, symbol: str, x_negative: bool, y_negative: bool, example: str
) -> Any:
    """x_negative, y_negative: the answer when that side is negative and the other unsigned."""

    def function(x: Any, y: Any, /) -> Any:
        special = _by_value(x, y)
        if special is None:
            return operation(*promote(name, x, y))
        x, y, negative = special
        result = operation(*broadcast_operands(name, (x, y)))
        if negative is None:
            return result
        below, result = broadcast_operands(name, (negative[0], result))
        if x_negative if negative[1] else y_negative:
            return elementwise.bitwise_or(below, result)
        return elementwise.bitwise_and(elementwise.bitwise_not(below), result)

    note = "Integers of different signedness or width are compared by value"
    ordered = name not in ("equal", "not_equal")
    note += ";\n    complex numbers by real, then imaginary part." if ordered else "."
    return binary_function(function, name, f"x {symbol} y, elementwise, as bools.", example, note)


equal = _comparison(
    "equal", elementwise.eq, "==", False, False,
    "jnp.equal(jnp.array([1, 2, 3]), 2)\nArray([False,  True, False], dtype=bool)",
)  # fmt: skip


not_equal = _comparison(
    "not_equal", elementwise.ne, "!=", True, True,
    "jnp.not_equal(jnp.array([1, 2, 3]), 2)\nArray([ True, False,  True], dtype=bool)",
)  # fmt: skip


less = _comparison(
    "less", _ordered(elementwise.lt), "<", True, False,
    "jnp.less(jnp.array([1, 2, 3]), 2)\nArray([ True, False, False], dtype=bool)",
)  # fmt: skip


less_equal = _comparison(
    "less_equal", _ordered(elementwise.le), "<=", True, False,
    "jnp.less_equal(jnp.array([1, 2, 3]), 2)\nArray([ True,  True, False], dtype=bool)",
)  # fmt: skip


greater = _comparison(
    "greater", _ordered(elementwise.gt), ">", False, True,
    "jnp.greater(jnp.array([1, 2, 3]), 2)\nArray([False, False,  True], dtype=bool)",
)  # fmt: skip


greater_equal = _comparison(
    "greater_equal", _ordered(elementwise.ge), ">=", False, True,
    "jnp.greater_equal(jnp.array([1, 2, 3]), 2)\nArray([False,  True,  True], dtype=bool)",
)  # fmt: skip


# ---- logic and bits


def as_bool(x: Any) -> Any:
    """x != 0 (nan is true)."""
    dtype = dtype_of(x)
    if is_bool(dtype):
        return as_array("bool", x)
    return elementwise.ne(as_array("bool", x), np.zeros((), dtype)[()])


def _logical(name: str, operation: Any, summary: str, example: str) -> Any:
    def function(x: Any, y: Any, /, *, out: None = None, where: None = None) -> Any:
        if out is not None or where is not None:
            require_ufunc_defaults(name, out, where)
        x, y = as_bool(as_operand(name, x)), as_bool(as_operand(name, y, 1))
        return operation(*broadcast_operands(name, (x, y)))

    return binary_function(function, name, summary, example, "Zero is false, the rest true.")


def _bitwise(name: str, operation: Any, summary: str, example: str) -> Any:
    def function(x: Any, y: Any, /, *, out: None = None, where: None = None) -> Any:
        if out is not None or where is not None:
            require_ufunc_defaults(name, out, where)
        x, y = promote(name, x, y)
        _require_bits(name, x)
        return operation(x, y)

    return binary_function(
        function, name, summary, example, "Raises TypeError for floats and complex numbers."
    )


def _require_bits(function: str, x: Any) -> None:
    dtype = dtype_of(x)
    if not (is_integer(dtype) or is_bool(dtype)):
        raise TypeError(f"{function}: expected integers or bools, got dtype {dtype}")


logical_and = _logical(
    "logical_and", elementwise.bitwise_and, "x and y, elementwise.",
    "jnp.logical_and(jnp.array([0, 1]), True)\nArray([False,  True], dtype=bool)",
)  # fmt: skip


logical_or = _logical(
    "logical_or", elementwise.bitwise_or, "x or y, elementwise.",
    "jnp.logical_or(jnp.array([0, 1]), False)\nArray([False,  True], dtype=bool)",
)  # fmt: skip


logical_xor = _logical(
    "logical_xor", elementwise.bitwise_xor, "Exactly one of x and y, elementwise.",
    "jnp.logical_xor(jnp.array([0, 1]), True)\nArray([ True, False], dtype=bool)",
)  # fmt: skip


logical_not = unary_function(
    "logical_not", lambda x: elementwise.bitwise_not(as_bool(x)), "not x, elementwise.",
    "jnp.logical_not(jnp.array([0, 1]))\nArray([ True, False], dtype=bool)",
)  # fmt: skip


bitwise_and = _bitwise(
    "bitwise_and", elementwise.bitwise_and, "x & y, elementwise.",
    "jnp.bitwise_and(jnp.array([5, 6]), 3)\nArray([1, 2], dtype=int32)",
)  # fmt: skip


bitwise_or = _bitwise(
    "bitwise_or", elementwise.bitwise_or, "x | y, elementwise.",
    "jnp.bitwise_or(jnp.array([5, 6]), 3)\nArray([7, 7], dtype=int32)",
)  # fmt: skip


bitwise_xor = _bitwise(
    "bitwise_xor", elementwise.bitwise_xor, "x ^ y, elementwise.",
    "jnp.bitwise_xor(jnp.array([5, 6]), 3)\nArray([6, 5], dtype=int32)",
)  # fmt: skip


def _invert(x: Any) -> Any:
    _require_bits("invert", x)
    return elementwise.bitwise_not(x)


def _bitwise_count(x: Any) -> Any:
    _require_bits("bitwise_count", x)
    dtype = dtype_of(x)
    if not is_unsigned(dtype) and not is_bool(dtype):
        x = elementwise.abs(x)  # NumPy counts the bits of the magnitude
    x = without_bool(x)
    return convert.convert_element_type(elementwise.population_count(x), np.uint8)


invert = unary_function(
    "invert", _invert, "All bits flipped, elementwise; logical not of bools.",
    "jnp.invert(jnp.array([0, 5]))\nArray([-1, -6], dtype=int32)",
)  # fmt: skip


bitwise_not = bitwise_invert = invert


bitwise_count = unary_function(
    "bitwise_count", _bitwise_count, "The number of 1 bits in the magnitude of x, as uint8.",
    "jnp.bitwise_count(jnp.array([7, 8]))\nArray([3, 1], dtype=uint8)",
)  # fmt: skip


@public()
def left_shift(x: Any, y: Any, /) -> Any:
    """x shifted left by y bits, elementwise; 0 when y is the bit width or more.

    >>> import jato.numpy as jnp
    >>> jnp.left_shift(jnp.array([1, 2]), 3)
    Array([ 8, 16], dtype=int32)
    """
    x, y = promote("left_shift", x, y)
    _require_bits("left_shift", x)
    return elementwise.shift_left(without_bool(x), without_bool(y))


@public()
def right_shift(x1: Any, x2: Any, /) -> Any:
    """x1 shifted right by x2 bits, elementwise; signed numbers keep their sign.

    >>> import jato.numpy as jnp
    >>> jnp.right_shift(jnp.array([-8, 8]), 2)
    Array([-2,  2], dtype=int32)
    """
    x1, x2 = promote("right_shift", x1, x2)
    _require_bits("right_shift", x1)
    x1, x2 = without_bool(x1), without_bool(x2)
    if is_unsigned(dtype_of(x1)):
        return elementwise.shift_right_logical(x1, x2)
    return elementwise.shift_right_arithmetic(x1, x2)


bitwise_left_shift = left_shift


bitwise_right_shift = right_shift


# ---- tests of a number


def _is_finite(x: Any) -> Any:
    dtype = dtype_of(x)
    if is_complex(dtype):
        parts = elementwise.real(x), elementwise.imag(x)
        return elementwise.bitwise_and(*map(_is_finite, parts))
    return elementwise.is_finite(x) if is_floating(dtype) else constant_like(x, True)


def is_inf(x: Any) -> Any:
    dtype = dtype_of(x)
    if is_complex(dtype):
        return elementwise.bitwise_or(is_inf(elementwise.real(x)), is_inf(elementwise.imag(x)))
    if is_floating(dtype):
        return elementwise.eq(elementwise.abs(x), number_like(x, np.inf))
    return constant_like(x, False)


def _signed_inf(name: str, value: float) -> Any:
    def test(x: Any) -> Any:
        dtype = dtype_of(x)
        if is_complex(dtype):
            raise ValueError(f"{name}: not defined for complex numbers")
        return (
            elementwise.eq(x, number_like(x, value))
            if is_floating(dtype)
            else constant_like(x, False)
        )

    return test


def sign_bit(x: Any) -> Any:
    dtype = dtype_of(x)
    if is_complex(dtype):
        raise TypeError("signbit: not defined for complex numbers")
    if is_floating(dtype):
        integer = np.dtype(f"int{dtype.itemsize * 8}")
        x = convert.bitcast_convert_type(as_array("signbit", x), integer)
        return elementwise.lt(x, np.zeros((), integer)[()])
    if is_unsigned(dtype) or is_bool(dtype):
        return constant_like(x, False)
    return elementwise.lt(x, np.zeros((), dtype)[()])


isnan = unary_function(
    "isnan", is_nan, "Is x nan?  Complex numbers: is a part nan?",
    "jnp.isnan(jnp.array([1.0, jnp.nan]))\nArray([False,  True], dtype=bool)",
)  # fmt: skip


isfinite = unary_function(
    "isfinite", _is_finite, "Is x neither infinite nor nan?",
    "jnp.isfinite(jnp.array([1.0, jnp.nan]))\nArray([ True, False], dtype=bool)",
)  # fmt: skip


isinf = unary_function(
    "isinf", is_inf, "Is x infinite?  Complex numbers: is a part infinite?",
    "jnp.isinf(jnp.array([1.0, -jnp.inf]))\nArray([False,  True], dtype=bool)",
)  # fmt: skip


@public()
def isposinf(x: Any, /, out: None = None) -> Any:
    """Is x positive infinity?  Raises ValueError for complex numbers.

    >>> import jato.numpy as jnp
    >>> jnp.isposinf(jnp.array([jnp.inf, -jnp.inf]))
    Array([ True, False], dtype=bool)
    """
    require_no_out("isposinf", out)
    return _signed_inf("isposinf", np.inf)(unary("isposinf", x))


@public()
def isneginf(x: Any, /, out: None = None) -> Any:
    """Is x negative infinity?  Raises ValueError for complex numbers.

    >>> import jato.numpy as jnp
    >>> jnp.isneginf(jnp.array([jnp.inf, -jnp.inf]))
    Array([False,  True], dtype=bool)
    """
    require_no_out("isneginf", out)
    return _signed_inf("isneginf", -np.inf)(unary("isneginf", x))


signbit = unary_function(
    "signbit", sign_bit, "Is the sign bit set?  True for -0.0.",
    "jnp.signbit(jnp.array([-0.0, 0.0]))\nArray([ True, False], dtype=bool)",
)  # fmt: skip
