"""Rounding, and the parts of numbers: real and imaginary, sign and magnitude, exponent and mantissa."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
from jato.base.dtypes import is_bool, is_complex, is_floating, is_integer
from jato.jit.eager import public
from jato.numpy.logic import is_inf, sign_bit
from jato.numpy.makers import finfo_of, is_nan, number_like, select_where, unary_function
from jato.numpy.promote import (
    as_array,
    as_operand,
    broadcast_operands,
    cast,
    dtype_of,
    is_weak,
    promote_float,
    require_no_out,
    shape_of,
    unary_float,
    unary_widest_float,
)
from jato.ops import convert, elementwise, structural

# ---- rounding


def _rounding(operation: Any) -> Any:
    def apply(x: Any) -> Any:
        dtype = dtype_of(x)
        if is_complex(dtype):
            raise TypeError("rounding to integers is not defined for complex numbers")
        return operation(x) if is_floating(dtype) else as_array("round", x)

    return apply


def _to_zero(x: Any) -> Any:
    down = elementwise.lt(x, number_like(x, 0))
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
    "rint", lambda x: _round_complex(unary_widest_float("rint", x), 0),
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
    factor = number_like(y, 10.0 ** builtins.abs(decimals))
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
    return elementwise.copysign(x1, x2)


@public()
def heaviside(x1: Any, x2: Any, /) -> Any:
    """The step function: 0 where x1 < 0, x2 where x1 == 0, 1 where x1 > 0.

    >>> import jato.numpy as jnp
    >>> jnp.heaviside(jnp.array([-1.0, 0.0, 1.0]), 0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    x1, x2 = promote_float("heaviside", x1, x2)
    zero = number_like(x1, 0)
    step = select_where(elementwise.lt(x1, zero), number_like(x1, 0), number_like(x1, 1))
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
    away = select_where(sign_bit(x), number_like(x, -np.inf), number_like(x, np.inf))
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
    fraction = select_where(is_inf(x), number_like(x, 0), elementwise.sub(x, whole))
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
    small = elementwise.lt(elementwise.abs(x), number_like(x, info.tiny))
    up = info.nmant + 2
    scaled = select_where(small, elementwise.mul(x, number_like(x, 2.0**up)), x)
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
        elementwise.bitwise_not(elementwise.is_finite(x)), elementwise.eq(x, number_like(x, 0))
    )
    return select_where(special, x, mantissa), select_where(special, np.int32(0), exponent)


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
    if dtype_of(x2).kind == "u" and dtype_of(x2).itemsize >= 4:
        # what does not fit the signed type of this width overflows, or is 0, long before
        x2 = elementwise.min(x2, dtype_of(x2).type(1 << 20))
    exponent = cast(x2, np.int32) if dtype_of(x2).itemsize <= 4 else cast(x2, np.int64)
    edtype = dtype_of(exponent)
    span = info.maxexp - 1
    result = x1
    for _ in range(3):
        step = elementwise.clamp(edtype.type(-span + 1), exponent, edtype.type(span))
        factor = elementwise.exp2(convert.convert_element_type(step, dtype))
        result = elementwise.mul(*broadcast_operands("ldexp", (result, factor)))
        exponent = elementwise.sub(exponent, step)
    return result
