"""Elementwise functions: arithmetic, comparison, logic, bits, rounding, parts of numbers.

exp, log, the trigonometric functions and their kin are in transcendental.py.

Each function promotes its operands (promote.py) and binds one primitive, or a few.  The functions
of one operand that need nothing else are made by `unary_function`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np
from jato.base import dtypes
from jato.base.dtypes import is_bool, is_complex, is_floating, is_integer, is_unsigned
from jato.jit.eager import public
from jato.numpy.promote import (
    as_array,
    as_operand,
    as_typed,
    broadcast_operands,
    cast,
    dtype_of,
    is_weak,
    promote,
    promote_float,
    require_no_out,
    shape_of,
    unary,
    unary_float,
)
from jato.ops import convert, elementwise, structural


def unary_function(
    name: str, operation: Callable[[Any], Any], summary: str, example: str, prepare: Any = unary
) -> Any:
    """A public elementwise function of one array: `operation` on the prepared operand."""

    def function(x: Any, /) -> Any:
        return operation(prepare(name, x))

    function.__name__ = function.__qualname__ = name
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


def _require_ufunc_defaults(function: str, out: Any, where: Any) -> None:
    require_no_out(function, out)
    if where is not None:
        raise NotImplementedError(
            f"{function}: argument 'where' is not supported. Use jato.numpy.where(mask, result, x)."
        )


def _numeric(x: Any) -> Any:
    """bool -> int, since there is no arithmetic on bools."""
    return cast(x, np.int32, is_weak(x)) if is_bool(dtype_of(x)) else x


# ---- arithmetic


@public()
def add(x: Any, y: Any, /, *, out: None = None, where: None = None) -> Any:
    """x + y, elementwise; the logical or of bools.

    x, y: arrays or numbers of shapes that broadcast; the result's dtype follows promotion.
    Raises TypeError for other arguments, ShapeMismatchError when the shapes do not fit.

    >>> import jato.numpy as jnp
    >>> jnp.add(jnp.arange(3), 1)
    Array([1, 2, 3], dtype=int32)
    """
    if out is not None or where is not None:
        _require_ufunc_defaults("add", out, where)
    x, y = promote("add", x, y)
    if is_bool(dtype_of(x)):
        return elementwise.bitwise_or(x, y)
    return elementwise.add(x, y)


@public()
def subtract(x: Any, y: Any, /, *, out: None = None, where: None = None) -> Any:
    """x - y, elementwise.

    x, y: arrays or numbers of shapes that broadcast.  Raises TypeError for bools (use
    logical_xor), ShapeMismatchError when the shapes do not fit.

    >>> import jato.numpy as jnp
    >>> jnp.subtract(jnp.arange(3), 1)
    Array([-1,  0,  1], dtype=int32)
    """
    if out is not None or where is not None:
        _require_ufunc_defaults("subtract", out, where)
    x, y = promote("subtract", x, y)
    if is_bool(dtype_of(x)):
        raise TypeError("subtract: not defined for bool. Use logical_xor, or convert to integers.")
    return elementwise.sub(x, y)


@public()
def multiply(x: Any, y: Any, /, *, out: None = None, where: None = None) -> Any:
    """x * y, elementwise; the logical and of bools.

    x, y: arrays or numbers of shapes that broadcast.  Raises TypeError for other arguments,
    ShapeMismatchError when the shapes do not fit.

    >>> import jato.numpy as jnp
    >>> jnp.multiply(jnp.arange(3), 2.0)
    Array([0., 2., 4.], dtype=float32, weak_type=True)
    """
    if out is not None or where is not None:
        _require_ufunc_defaults("multiply", out, where)
    x, y = promote("multiply", x, y)
    if is_bool(dtype_of(x)):
        return elementwise.bitwise_and(x, y)
    return elementwise.mul(x, y)


@public()
def true_divide(x1: Any, x2: Any, /) -> Any:
    """x1 / x2, elementwise; integers are converted to floats first.

    x1, x2: arrays or numbers of shapes that broadcast.  Division by zero gives inf or nan.

    >>> import jato.numpy as jnp
    >>> jnp.true_divide(jnp.arange(3), 2)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return elementwise.div(*promote_float("true_divide", x1, x2))


divide = true_divide


@public()
def floor_divide(x1: Any, x2: Any, /) -> Any:
    """The largest integer at most x1 / x2, elementwise, as NumPy defines it.

    Integers divided by zero give 0; floats give inf or nan.  Raises TypeError for complex.

    >>> import jato.numpy as jnp
    >>> jnp.floor_divide(jnp.array([-3, 3]), 2)
    Array([-2,  1], dtype=int32)
    """
    x1, x2 = promote("floor_divide", x1, x2)
    if is_complex(dtype_of(x1)):
        raise TypeError("floor_divide: not defined for complex numbers")
    return elementwise.floor_divide(_numeric(x1), _numeric(x2))


@public()
def remainder(x1: Any, x2: Any, /) -> Any:
    """x1 - floor_divide(x1, x2) * x2, elementwise: the remainder with the divisor's sign.

    Integers modulo zero give 0; floats give nan.  Raises TypeError for complex.

    >>> import jato.numpy as jnp
    >>> jnp.remainder(jnp.array([-3, 3]), 2)
    Array([1, 1], dtype=int32)
    """
    x1, x2 = promote("remainder", x1, x2)
    if is_complex(dtype_of(x1)):
        raise TypeError("remainder: not defined for complex numbers")
    return elementwise.remainder(_numeric(x1), _numeric(x2))


mod = remainder


@public()
def divmod(x1: Any, x2: Any, /) -> tuple[Any, Any]:
    """(floor_divide(x1, x2), remainder(x1, x2)).

    >>> import jato.numpy as jnp
    >>> jnp.divmod(jnp.array([-3, 3]), 2)
    (Array([-2,  1], dtype=int32), Array([1, 1], dtype=int32))
    """
    return floor_divide(x1, x2), remainder(x1, x2)


@public()
def fmod(x1: Any, x2: Any, /) -> Any:
    """The remainder of x1 / x2 with the dividend's sign, as C's fmod.

    >>> import jato.numpy as jnp
    >>> jnp.fmod(jnp.array([-3, 3]), 2)
    Array([-1,  1], dtype=int32)
    """
    x1, x2 = promote("fmod", x1, x2)
    return elementwise.rem(_numeric(x1), _numeric(x2))


def _integer_power_of_arrays(x: Any, y: Any) -> Any:
    """x ** y by squaring, over all bits of y; modulo 2**bits, as all integer arithmetic."""
    dtype = dtype_of(x)
    one, zero = np.ones((), dtype)[()], np.zeros((), dtype)[()]
    result: Any = None
    bits = dtype.itemsize * 8 - (0 if is_unsigned(dtype) else 1)
    base, exponent = x, y
    for _ in range(bits):
        odd = elementwise.ne(elementwise.bitwise_and(exponent, one), zero)
        factor = select_where(odd, base, one)
        result = factor if result is None else elementwise.mul(result, factor)
        base = elementwise.mul(base, base)
        exponent = elementwise.shift_right_logical(exponent, one)
    if is_unsigned(dtype):
        return result
    # a negative power is 0, except that of 1 and -1
    unit = elementwise.eq(elementwise.abs(x), one)
    return select_where(elementwise.bitwise_or(elementwise.ge(y, zero), unit), result, zero)


def select_where(condition: Any, x: Any, y: Any) -> Any:
    """x where the bool condition holds, else y; x and y of one dtype.  Shapes are broadcast."""
    condition, x, y = broadcast_operands("where", (condition, x, y))
    return elementwise.select_n(condition, y, x)


@public(static=("exponent",))
def _power_static(x: Any, exponent: int) -> Any:
    x = unary("power", x)
    if is_bool(dtype_of(x)):
        x = _numeric(x)
    if is_integer(dtype_of(x)) and exponent < 0:
        raise TypeError(
            f"power: integers cannot be raised to the negative power {exponent}. Convert the base "
            "to floats first."
        )
    if exponent == 2:
        return elementwise.square(x)
    return elementwise.integer_pow(x, exponent)


@public()
def _power(x: Any, y: Any) -> Any:
    x, y = promote("power", x, y)
    if is_bool(dtype_of(x)):
        x, y = _numeric(x), _numeric(y)
    if is_integer(dtype_of(x)):
        dtype = dtype_of(x) if hasattr(x, "dtype") else dtype_of(y)
        return _integer_power_of_arrays(*(as_typed(v, dtype) for v in (x, y)))
    return elementwise.pow(x, y)


def power(x1: Any, x2: Any, /) -> Any:
    """x1 ** x2, elementwise.

    x1, x2: arrays or numbers of shapes that broadcast.  A Python integer as exponent is computed
    by multiplications.  Integers to integer powers wrap; a negative Python integer as exponent of
    integers raises TypeError, in an array it gives 0 (and 1 or -1 for the bases 1 and -1).

    >>> import jato.numpy as jnp
    >>> jnp.power(jnp.arange(4.0), 2)
    Array([0., 1., 4., 9.], dtype=float32)
    """
    if type(x2) is int and -64 < x2 < 64 and hasattr(x1, "dtype"):
        return _power_static(x1, x2)
    return _power(x1, x2)


pow = power


@public()
def float_power(x: Any, y: Any, /) -> Any:
    """x ** y, elementwise, in floats.

    >>> import jato.numpy as jnp
    >>> jnp.float_power(jnp.array([2, 3]), -1)
    Array([0.5       , 0.33333334], dtype=float32)
    """
    return elementwise.pow(*promote_float("float_power", x, y))


@public()
def negative(x: Any, /, *, out: None = None, where: None = None) -> Any:
    """-x, elementwise.  Raises TypeError for bools.

    >>> import jato.numpy as jnp
    >>> jnp.negative(jnp.arange(3))
    Array([ 0, -1, -2], dtype=int32)
    """
    if out is not None or where is not None:
        _require_ufunc_defaults("negative", out, where)
    x = unary("negative", x)
    if is_bool(dtype_of(x)):
        raise TypeError("negative: not defined for bool. Use logical_not.")
    return elementwise.neg(x)


positive = unary_function(
    "positive", lambda x: as_array("positive", x), "x itself.",
    "jnp.positive(jnp.arange(3))\nArray([0, 1, 2], dtype=int32)",
)  # fmt: skip
square = unary_function(
    "square", lambda x: elementwise.square(_numeric(x)), "x * x, elementwise.",
    "jnp.square(jnp.arange(4.0))\nArray([0., 1., 4., 9.], dtype=float32)",
)  # fmt: skip
reciprocal = unary_function(
    "reciprocal", elementwise.reciprocal, "1 / x, elementwise.",
    "jnp.reciprocal(jnp.array([1.0, 4.0]))\nArray([1.  , 0.25], dtype=float32)", unary_float,
)  # fmt: skip


def _absolute(x: Any) -> Any:
    dtype = dtype_of(x)
    return as_array("absolute", x) if is_bool(dtype) or is_unsigned(dtype) else elementwise.abs(x)


absolute = unary_function(
    "absolute", _absolute, "The absolute value; the magnitude of a complex number.",
    "jnp.absolute(jnp.array([-1.0, 2.0]))\nArray([1., 2.], dtype=float32)",
)  # fmt: skip
abs = absolute
fabs = unary_function(
    "fabs", elementwise.abs, "The absolute value as a float.",
    "jnp.fabs(jnp.array([-1, 2]))\nArray([1., 2.], dtype=float32)", unary_float,
)  # fmt: skip
sign = unary_function(
    "sign", lambda x: elementwise.sign(x), "-1, 0 or 1 by the sign; x/|x| of a complex number.",
    "jnp.sign(jnp.array([-3.0, 0.0, 2.0]))\nArray([-1.,  0.,  1.], dtype=float32)",
)  # fmt: skip


def _extremum(name: str, operation: Any, summary: str, example: str) -> Any:
    def function(x: Any, y: Any, /, *, out: None = None, where: None = None) -> Any:
        if out is not None or where is not None:
            _require_ufunc_defaults(name, out, where)
        return operation(*promote(name, x, y))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{summary}

    x, y: arrays or numbers of shapes that broadcast; complex numbers are ordered by real, then
    imaginary part.

    >>> import jato.numpy as jnp
    >>> {example.splitlines()[0]}
    {example.splitlines()[1]}
    """
    return public()(function)


maximum = _extremum(
    "maximum", elementwise.max, "The larger of x and y, elementwise; nan if either is nan.",
    "jnp.maximum(jnp.arange(3), 1)\nArray([1, 1, 2], dtype=int32)",
)  # fmt: skip
minimum = _extremum(
    "minimum", elementwise.min, "The smaller of x and y, elementwise; nan if either is nan.",
    "jnp.minimum(jnp.arange(3), 1)\nArray([0, 1, 1], dtype=int32)",
)  # fmt: skip


@public()
def fmax(x1: Any, x2: Any) -> Any:
    """The larger of x1 and x2, elementwise; the other one where one is nan.

    >>> import jato.numpy as jnp
    >>> jnp.fmax(jnp.array([1.0, jnp.nan]), 0.0)
    Array([1., 0.], dtype=float32)
    """
    x1, x2 = promote("fmax", x1, x2)
    return select_where(elementwise.bitwise_or(elementwise.gt(x1, x2), is_nan(x2)), x1, x2)


@public()
def fmin(x1: Any, x2: Any) -> Any:
    """The smaller of x1 and x2, elementwise; the other one where one is nan.

    >>> import jato.numpy as jnp
    >>> jnp.fmin(jnp.array([1.0, jnp.nan]), 0.0)
    Array([0., 0.], dtype=float32)
    """
    x1, x2 = promote("fmin", x1, x2)
    return select_where(elementwise.bitwise_or(elementwise.lt(x1, x2), is_nan(x2)), x1, x2)


@public()
def clip(arr: Any, /, min: Any = None, max: Any = None) -> Any:
    """arr limited to [min, max]; a bound that is None does not limit.

    arr, min, max: arrays or numbers of shapes that broadcast, not complex.  Where min > max the
    result is max.

    >>> import jato.numpy as jnp
    >>> jnp.clip(jnp.arange(5), 1, 3)
    Array([1, 1, 2, 3, 3], dtype=int32)
    """
    for bound in (arr, min, max):
        if bound is not None and is_complex(dtype_of(as_operand("clip", bound))):
            raise ValueError("clip: complex numbers have no order; clip the parts instead.")
    result = arr if min is None else elementwise.max(*promote("clip", arr, min))
    result = result if max is None else elementwise.min(*promote("clip", result, max))
    return as_array("clip", result)


def _named_binary(function: Any, name: str, summary: str, example: str, note: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{summary}

    x, y: arrays or numbers of shapes that broadcast.  {note}

    >>> import jato.numpy as jnp
    >>> {example.splitlines()[0]}
    {example.splitlines()[1]}
    """
    return public()(function)


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

    note = "Integers of different signedness or width are compared by value."
    return _named_binary(function, name, f"x {symbol} y, elementwise, as bools.", example, note)


equal = _comparison(
    "equal", elementwise.eq, "==", False, False,
    "jnp.equal(jnp.array([1, 2, 3]), 2)\nArray([False,  True, False], dtype=bool)",
)  # fmt: skip
not_equal = _comparison(
    "not_equal", elementwise.ne, "!=", True, True,
    "jnp.not_equal(jnp.array([1, 2, 3]), 2)\nArray([ True, False,  True], dtype=bool)",
)  # fmt: skip
less = _comparison(
    "less", elementwise.lt, "<", True, False,
    "jnp.less(jnp.array([1, 2, 3]), 2)\nArray([ True, False, False], dtype=bool)",
)  # fmt: skip
less_equal = _comparison(
    "less_equal", elementwise.le, "<=", True, False,
    "jnp.less_equal(jnp.array([1, 2, 3]), 2)\nArray([ True,  True, False], dtype=bool)",
)  # fmt: skip
greater = _comparison(
    "greater", elementwise.gt, ">", False, True,
    "jnp.greater(jnp.array([1, 2, 3]), 2)\nArray([False, False,  True], dtype=bool)",
)  # fmt: skip
greater_equal = _comparison(
    "greater_equal", elementwise.ge, ">=", False, True,
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
            _require_ufunc_defaults(name, out, where)
        x, y = as_bool(as_operand(name, x)), as_bool(as_operand(name, y, 1))
        return operation(*broadcast_operands(name, (x, y)))

    return _named_binary(function, name, summary, example, "Zero is false, the rest true.")


def _bitwise(name: str, operation: Any, summary: str, example: str) -> Any:
    def function(x: Any, y: Any, /, *, out: None = None, where: None = None) -> Any:
        if out is not None or where is not None:
            _require_ufunc_defaults(name, out, where)
        x, y = promote(name, x, y)
        _require_bits(name, x)
        return operation(x, y)

    return _named_binary(
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
    x = _numeric(x)
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
    return elementwise.shift_left(_numeric(x), _numeric(y))


@public()
def right_shift(x1: Any, x2: Any, /) -> Any:
    """x1 shifted right by x2 bits, elementwise; signed numbers keep their sign.

    >>> import jato.numpy as jnp
    >>> jnp.right_shift(jnp.array([-8, 8]), 2)
    Array([-2,  2], dtype=int32)
    """
    x1, x2 = promote("right_shift", x1, x2)
    _require_bits("right_shift", x1)
    x1, x2 = _numeric(x1), _numeric(x2)
    if is_unsigned(dtype_of(x1)):
        return elementwise.shift_right_logical(x1, x2)
    return elementwise.shift_right_arithmetic(x1, x2)


bitwise_left_shift = left_shift
bitwise_right_shift = right_shift


# ---- tests of a number


def is_nan(x: Any) -> Any:
    dtype = dtype_of(x)
    if is_complex(dtype):
        return elementwise.bitwise_or(is_nan(elementwise.real(x)), is_nan(elementwise.imag(x)))
    if is_floating(dtype):
        return elementwise.ne(x, x)
    return _constant_like(x, False)


def _constant_like(x: Any, value: bool) -> Any:
    return structural.full(shape_of(x), value, np.dtype("bool"))


def _is_finite(x: Any) -> Any:
    dtype = dtype_of(x)
    if is_complex(dtype):
        parts = elementwise.real(x), elementwise.imag(x)
        return elementwise.bitwise_and(*map(_is_finite, parts))
    return elementwise.is_finite(x) if is_floating(dtype) else _constant_like(x, True)


def _is_inf(x: Any) -> Any:
    dtype = dtype_of(x)
    if is_complex(dtype):
        return elementwise.bitwise_or(_is_inf(elementwise.real(x)), _is_inf(elementwise.imag(x)))
    if is_floating(dtype):
        return elementwise.eq(elementwise.abs(x), _number(x, np.inf))
    return _constant_like(x, False)


def _number(x: Any, value: float) -> Any:
    """A constant of x's dtype."""
    return np.asarray(value, dtype_of(x))[()]


def _signed_inf(name: str, value: float) -> Any:
    def test(x: Any) -> Any:
        dtype = dtype_of(x)
        if is_complex(dtype):
            raise ValueError(f"{name}: not defined for complex numbers")
        return (
            elementwise.eq(x, _number(x, value)) if is_floating(dtype) else _constant_like(x, False)
        )

    return test


def _sign_bit(x: Any) -> Any:
    dtype = dtype_of(x)
    if is_complex(dtype):
        raise TypeError("signbit: not defined for complex numbers")
    if is_floating(dtype):
        integer = np.dtype(f"int{dtype.itemsize * 8}")
        x = convert.bitcast_convert_type(as_array("signbit", x), integer)
        return elementwise.lt(x, np.zeros((), integer)[()])
    if is_unsigned(dtype) or is_bool(dtype):
        return _constant_like(x, False)
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
    "isinf", _is_inf, "Is x infinite?  Complex numbers: is a part infinite?",
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
    "signbit", _sign_bit, "Is the sign bit set?  True for -0.0.",
    "jnp.signbit(jnp.array([-0.0, 0.0]))\nArray([ True, False], dtype=bool)",
)  # fmt: skip


# ---- rounding


def _rounding(operation: Any) -> Any:
    def apply(x: Any) -> Any:
        dtype = dtype_of(x)
        if is_complex(dtype):
            raise TypeError("rounding to integers is not defined for complex numbers")
        return operation(x) if is_floating(dtype) else as_array("round", x)

    return apply


def _to_zero(x: Any) -> Any:
    down = elementwise.lt(x, _number(x, 0))
    return select_where(down, elementwise.ceil(x), elementwise.floor(x))


def _round_even(x: Any) -> Any:
    return elementwise.round(x, elementwise.RoundingMethod.TO_NEAREST_EVEN)


floor = unary_function(
    "floor", _rounding(elementwise.floor), "The largest integer at most x, in x's dtype.",
    "jnp.floor(jnp.array([-1.5, 1.5]))\nArray([-2.,  1.], dtype=float32)",
)  # fmt: skip
ceil = unary_function(
    "ceil", _rounding(elementwise.ceil), "The smallest integer at least x, in x's dtype.",
    "jnp.ceil(jnp.array([-1.5, 1.5]))\nArray([-1.,  2.], dtype=float32)",
)  # fmt: skip
trunc = unary_function(
    "trunc", _rounding(_to_zero), "x rounded toward zero.",
    "jnp.trunc(jnp.array([-1.5, 1.5]))\nArray([-1.,  1.], dtype=float32)",
)  # fmt: skip
rint = unary_function(
    "rint", lambda x: _round_complex(unary_float("rint", x), 0),
    "The nearest integer, as a float; halves go to the even one.",
    "jnp.rint(jnp.array([0.5, 1.5]))\nArray([0., 2.], dtype=float32)",
)  # fmt: skip


def _round_complex(x: Any, decimals: int) -> Any:
    if is_complex(dtype_of(x)):
        parts = elementwise.real(x), elementwise.imag(x)
        return elementwise.complex(*(_round_float(p, decimals) for p in parts))
    return _round_float(x, decimals)


def _round_float(x: Any, decimals: int) -> Any:
    if decimals == 0:
        return _round_even(x)
    dtype = dtype_of(x)
    narrow = dtype.itemsize == 2
    y = convert.convert_element_type(x, np.float32) if narrow else x
    factor = _number(y, 10.0 ** builtins.abs(decimals))
    if decimals > 0:
        y = elementwise.div(_round_even(elementwise.mul(y, factor)), factor)
    else:
        y = elementwise.mul(_round_even(elementwise.div(y, factor)), factor)
    y = convert.convert_element_type(y, dtype, is_weak(x)) if narrow else y
    # beyond 10**decimals of its precision a number is its own rounding; the factor may overflow
    finite = elementwise.is_finite(y)
    return select_where(finite, y, x)


@public(static=("decimals",))
def round(a: Any, decimals: int = 0, out: None = None) -> Any:
    """a rounded to a number of decimals; halves go to the even digit.

    a: array or number; integers are returned as they are.  decimals: integer, negative for tens.
    Raises NotImplementedError for integers with negative decimals.

    >>> import jato.numpy as jnp
    >>> jnp.round(jnp.array([1.25, 2.5]))
    Array([1., 2.], dtype=float32)
    """
    require_no_out("round", out)
    a = as_operand("round", a)
    decimals = decimals.__index__()
    dtype = dtype_of(a)
    if is_integer(dtype) or is_bool(dtype):
        if decimals < 0:
            raise NotImplementedError("round: integers with negative decimals")
        return as_array("round", a)
    return _round_complex(a, decimals)


around = round


# ---- parts of numbers


def _real(x: Any) -> Any:
    return elementwise.real(x) if is_complex(dtype_of(x)) else as_array("real", x)


def _imag(x: Any) -> Any:
    if is_complex(dtype_of(x)):
        return elementwise.imag(x)
    return structural.full(shape_of(x), 0, dtype_of(x))


def _conjugate(x: Any) -> Any:
    return elementwise.conj(x) if is_complex(dtype_of(x)) else as_array("conjugate", x)


real = unary_function(
    "real", _real, "The real part.",
    "jnp.real(jnp.array([1 + 2j]))\nArray([1.], dtype=float32)",
)  # fmt: skip
imag = unary_function(
    "imag", _imag, "The imaginary part; zeros for real numbers.",
    "jnp.imag(jnp.array([1 + 2j]))\nArray([2.], dtype=float32)",
)  # fmt: skip
conjugate = unary_function(
    "conjugate", _conjugate, "The complex conjugate.",
    "jnp.conjugate(jnp.array([1 + 2j]))\nArray([1.-2.j], dtype=complex64)",
)  # fmt: skip
conj = conjugate


@public()
def copysign(x1: Any, x2: Any, /) -> Any:
    """|x1| with the sign of x2, elementwise, as floats.

    >>> import jato.numpy as jnp
    >>> jnp.copysign(jnp.array([1.0, -2.0]), -0.0)
    Array([-1., -2.], dtype=float32)
    """
    x1, x2 = promote_float("copysign", x1, x2)
    if is_complex(dtype_of(x1)):
        raise TypeError("copysign: not defined for complex numbers")
    magnitude = elementwise.abs(x1)
    return select_where(_sign_bit(x2), elementwise.neg(magnitude), magnitude)


@public()
def heaviside(x1: Any, x2: Any, /) -> Any:
    """The step function: 0 where x1 < 0, x2 where x1 == 0, 1 where x1 > 0.

    >>> import jato.numpy as jnp
    >>> jnp.heaviside(jnp.array([-1.0, 0.0, 1.0]), 0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    x1, x2 = promote_float("heaviside", x1, x2)
    zero = _number(x1, 0)
    step = select_where(elementwise.lt(x1, zero), _number(x1, 0), _number(x1, 1))
    step = select_where(is_nan(x1), x1, step)
    return select_where(elementwise.eq(x1, zero), x2, step)


@public()
def nextafter(x: Any, y: Any, /) -> Any:
    """The next representable number after x in the direction of y.

    >>> import jato.numpy as jnp
    >>> jnp.nextafter(jnp.float32(0), 1.0) > 0
    Array(True, dtype=bool)
    """
    return elementwise.nextafter(*promote_float("nextafter", x, y))


@public()
def spacing(x: Any, /) -> Any:
    """The distance to the next number away from zero, with x's sign; nan for infinities.

    >>> import jato.numpy as jnp
    >>> jnp.spacing(jnp.float32(1)) == jnp.finfo(jnp.float32).eps
    Array(True, dtype=bool)
    """
    x = unary_float("spacing", x)
    if is_complex(dtype_of(x)):
        raise TypeError("spacing: not defined for complex numbers")
    away = select_where(_sign_bit(x), _number(x, -np.inf), _number(x, np.inf))
    return elementwise.sub(elementwise.nextafter(*broadcast_operands("spacing", (x, away))), x)


@public()
def modf(x: Any, /, out: None = None) -> tuple[Any, Any]:
    """(fractional part, integral part) of x, both with x's sign.

    >>> import jato.numpy as jnp
    >>> jnp.modf(jnp.array([1.5, -2.25]))
    (Array([ 0.5 , -0.25], dtype=float32), Array([ 1., -2.], dtype=float32))
    """
    require_no_out("modf", out)
    x = unary_float("modf", x)
    whole = _to_zero(x)
    fraction = select_where(_is_inf(x), _number(x, 0), elementwise.sub(x, whole))
    return copysign(fraction, x), whole


@public()
def frexp(x: Any, /) -> tuple[Any, Any]:
    """(mantissa, exponent) with x = mantissa * 2**exponent and 0.5 <= |mantissa| < 1.

    >>> import jato.numpy as jnp
    >>> jnp.frexp(jnp.array([1.0, 6.0]))
    (Array([0.5 , 0.75], dtype=float32), Array([1, 3], dtype=int32))
    """
    x = unary_float("frexp", x)
    dtype = dtype_of(x)
    if is_complex(dtype):
        raise TypeError("frexp: not defined for complex numbers")
    info = finfo_of(dtype)
    integer = np.dtype(f"int{dtype.itemsize * 8}")
    # a subnormal number is scaled to a normal one first
    small = elementwise.lt(elementwise.abs(x), _number(x, info.tiny))
    up = info.nmant + 2
    scaled = select_where(small, elementwise.mul(x, _number(x, 2.0**up)), x)
    bits = convert.bitcast_convert_type(as_array("frexp", scaled), integer)
    field = (1 << info.nexp) - 1
    exponent = elementwise.bitwise_and(
        elementwise.shift_right_logical(bits, integer.type(info.nmant)), integer.type(field)
    )
    bias = field // 2 - 1
    cleared = elementwise.bitwise_and(bits, integer.type(~(field << info.nmant)))
    mantissa = convert.bitcast_convert_type(
        elementwise.bitwise_or(cleared, integer.type(bias << info.nmant)), dtype
    )
    exponent = convert.convert_element_type(exponent, np.int32)
    shift = select_where(small, np.int32(bias + up), np.int32(bias))
    exponent = elementwise.sub(exponent, shift)
    special = elementwise.bitwise_or(
        elementwise.bitwise_not(elementwise.is_finite(x)), elementwise.eq(x, _number(x, 0))
    )
    return select_where(special, x, mantissa), select_where(special, np.int32(0), exponent)


def finfo_of(dtype: Any) -> Any:
    """numpy.finfo, for bfloat16 too."""
    return np.finfo(dtype) if dtype != dtypes.bfloat16 else dtypes.ml_dtypes.finfo(dtype)


@public()
def ldexp(x1: Any, x2: Any, /) -> Any:
    """x1 * 2**x2, elementwise, without overflow on the way.

    x1: floats; x2: integers.  Raises ValueError for a float x2.

    >>> import jato.numpy as jnp
    >>> jnp.ldexp(jnp.array([0.5, 0.75]), jnp.array([1, 3]))
    Array([1., 6.], dtype=float32)
    """
    x1, x2 = unary_float("ldexp", x1), as_array("ldexp", x2, 1)
    if not is_integer(dtype_of(x2)):
        raise ValueError(f"ldexp: argument 'x2' must be integers, got dtype {dtype_of(x2)}")
    dtype = dtype_of(x1)
    if is_complex(dtype):
        raise ValueError("ldexp: not defined for complex numbers")
    info = finfo_of(dtype)
    # three factors, each representable, reach from the smallest subnormal to the largest number
    exponent = cast(x2, np.int32) if dtype_of(x2).itemsize <= 4 else x2
    edtype = dtype_of(exponent)
    span = info.maxexp - 1
    result = x1
    for _ in range(3):
        step = elementwise.clamp(edtype.type(-span + 1), exponent, edtype.type(span))
        factor = elementwise.exp2(convert.convert_element_type(step, dtype))
        result = elementwise.mul(*broadcast_operands("ldexp", (result, factor)))
        exponent = elementwise.sub(exponent, step)
    return result
