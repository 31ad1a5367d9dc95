"""Elementwise arithmetic: + - * / // % **, absolute value and sign, maximum, minimum, clip.

Each function promotes its operands (promote.py) and binds one primitive, or a few.  Comparison and
bits are in logic.py, exp, log and sin in transcendental.py, rounding in rounding.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jato.base.dtypes import is_bool, is_complex, is_integer, is_unsigned
from jato.jit.eager import public
from jato.numpy.makers import (
    is_nan,
    require_ufunc_defaults,
    select_where,
    unary_function,
    without_bool,
)
from jato.numpy.promote import (
    as_array,
    as_operand,
    as_typed,
    dtype_of,
    promote,
    promote_float,
    unary,
    unary_float,
)
from jato.ops import elementwise


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
        require_ufunc_defaults("add", out, where)
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
        require_ufunc_defaults("subtract", out, where)
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
        require_ufunc_defaults("multiply", out, where)
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
    return elementwise.floor_divide(without_bool(x1), without_bool(x2))


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
    return elementwise.remainder(without_bool(x1), without_bool(x2))


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
    return elementwise.rem(without_bool(x1), without_bool(x2))


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


@public(static=("exponent",), name="power")
def _power_static(x: Any, exponent: int) -> Any:
    x = unary("power", x)
    if is_bool(dtype_of(x)):
        x = without_bool(x)
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
        x, y = without_bool(x), without_bool(y)
    if is_integer(dtype_of(x)):
        dtype = dtype_of(x) if hasattr(x, "dtype") else dtype_of(y)
        return _integer_power_of_arrays(*(as_typed(v, dtype) for v in (x, y)))
    return elementwise.pow(x, y)


def power(x1: Any, x2: Any, /) -> Any:
    """x1 ** x2, elementwise.

    x1, x2: arrays or numbers of shapes that broadcast.  A Python or NumPy integer as exponent is
    computed by multiplications, in the dtype of x1.  Integers to integer powers wrap; a negative Python integer as exponent of
    integers raises TypeError, in an array it gives 0 (and 1 or -1 for the bases 1 and -1).

    >>> import jato.numpy as jnp
    >>> jnp.power(jnp.arange(4.0), 2)
    Array([0., 1., 4., 9.], dtype=float32)
    """
    if not hasattr(x2, "aval") and hasattr(x1, "dtype"):
        number = type(x2) is int or (np.ndim(x2) == 0 and isinstance(x2, (np.integer, np.ndarray)))
        if number and np.asarray(x2).dtype.kind in "iu" and -64 < x2 < 64:
            return _power_static(x1, int(x2))
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
        require_ufunc_defaults("negative", out, where)
    x = unary("negative", x)
    if is_bool(dtype_of(x)):
        raise TypeError("negative: not defined for bool. Use logical_not.")
    return elementwise.neg(x)


positive = unary_function(
    "positive", lambda x: as_array("positive", x), "x itself.",
    "jnp.positive(jnp.arange(3))\nArray([0, 1, 2], dtype=int32)",
)  # fmt: skip


square = unary_function(
    "square", lambda x: elementwise.square(without_bool(x)), "x * x, elementwise.",
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


def extremum(name: str, operation: Any, summary: str, example: str) -> Any:
    def function(x: Any, y: Any, /, *, out: None = None, where: None = None) -> Any:
        if out is not None or where is not None:
            require_ufunc_defaults(name, out, where)
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


maximum = extremum(
    "maximum", elementwise.max, "The larger of x and y, elementwise; nan if either is nan.",
    "jnp.maximum(jnp.arange(3), 1)\nArray([1, 1, 2], dtype=int32)",
)  # fmt: skip


minimum = extremum(
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
    return select_where(elementwise.bitwise_or(elementwise.in_order(elementwise.gt, x1, x2), is_nan(x2)), x1, x2)


@public()
def fmin(x1: Any, x2: Any) -> Any:
    """The smaller of x1 and x2, elementwise; the other one where one is nan.

    >>> import jato.numpy as jnp
    >>> jnp.fmin(jnp.array([1.0, jnp.nan]), 0.0)
    Array([0., 0.], dtype=float32)
    """
    x1, x2 = promote("fmin", x1, x2)
    return select_where(elementwise.bitwise_or(elementwise.in_order(elementwise.lt, x1, x2), is_nan(x2)), x1, x2)


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
