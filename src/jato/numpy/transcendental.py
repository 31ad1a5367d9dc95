"""Elementwise functions of analysis: powers of e, logarithms, trigonometry, and their kin.

They work in floats or complex numbers; integers are converted first.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jato.base.dtypes import is_complex, is_floating
from jato.jit.eager import public
from jato.lax.bessel import bessel_i0e
from jato.numpy.makers import finfo_of, require_ufunc_defaults, select_where, unary_function
from jato.numpy.promote import as_array, cast, dtype_of, promote_float, unary_float, unary_widest_float
from jato.ops import elementwise


def _float_function(name: str, operation: Any, summary: str, example: str) -> Any:
    return unary_function(name, operation, summary, example, unary_float)


def number_like(x: Any, value: float) -> Any:
    """A constant of x's dtype."""
    return np.asarray(value, dtype_of(x))[()]


# ---- exponentials and logarithms


exp = _float_function(
    "exp", elementwise.exp, "e**x.",
    "jnp.exp(jnp.array([0.0, 1.0]))\nArray([1.       , 2.7182817], dtype=float32)",
)  # fmt: skip


exp2 = _float_function(
    "exp2", elementwise.exp2, "2**x.",
    "jnp.exp2(jnp.array([0.0, 3.0]))\nArray([1., 8.], dtype=float32)",
)  # fmt: skip


expm1 = _float_function(
    "expm1", elementwise.expm1, "e**x - 1, exact to the last bits for small x too.",
    "jnp.expm1(jnp.array([0.0]))\nArray([0.], dtype=float32)",
)  # fmt: skip


log = _float_function(
    "log", elementwise.log, "The natural logarithm; nan for negative real numbers.",
    "jnp.log(jnp.array([1.0, 0.0]))\nArray([  0., -inf], dtype=float32)",
)  # fmt: skip


log2 = _float_function(
    "log2", elementwise.log2, "The logarithm to base 2.",
    "jnp.log2(jnp.array([1.0, 8.0]))\nArray([0., 3.], dtype=float32)",
)  # fmt: skip


log10 = _float_function(
    "log10", elementwise.log10, "The logarithm to base 10.",
    "jnp.log10(jnp.array([1.0, 1000.0]))\nArray([0., 3.], dtype=float32)",
)  # fmt: skip


log1p = _float_function(
    "log1p", elementwise.log1p, "log(1 + x), exact to the last bits for small x too.",
    "jnp.log1p(jnp.array([0.0]))\nArray([0.], dtype=float32)",
)  # fmt: skip


sqrt = _float_function(
    "sqrt", elementwise.sqrt, "The square root; nan for negative real numbers.",
    "jnp.sqrt(jnp.array([4.0, 9.0]))\nArray([2., 3.], dtype=float32)",
)  # fmt: skip


cbrt = _float_function(
    "cbrt", elementwise.cbrt, "The cube root.",
    "jnp.cbrt(jnp.array([8.0, -27.0]))\nArray([ 2., -3.], dtype=float32)",
)  # fmt: skip


# ---- trigonometry


sin = _float_function(
    "sin", elementwise.sin, "The sine of x in radians.",
    "jnp.sin(jnp.array([0.0]))\nArray([0.], dtype=float32)",
)  # fmt: skip


cos = _float_function(
    "cos", elementwise.cos, "The cosine of x in radians.",
    "jnp.cos(jnp.array([0.0]))\nArray([1.], dtype=float32)",
)  # fmt: skip


tan = _float_function(
    "tan", elementwise.tan, "The tangent of x in radians.",
    "jnp.tan(jnp.array([0.0]))\nArray([0.], dtype=float32)",
)  # fmt: skip


arcsin = _float_function(
    "arcsin", elementwise.asin, "The inverse sine, in [-pi/2, pi/2]; nan outside of [-1, 1].",
    "jnp.arcsin(jnp.array([0.0, 2.0]))\nArray([ 0., nan], dtype=float32)",
)  # fmt: skip


arccos = _float_function(
    "arccos", elementwise.acos, "The inverse cosine, in [0, pi]; nan outside of [-1, 1].",
    "jnp.arccos(jnp.array([1.0, 2.0]))\nArray([ 0., nan], dtype=float32)",
)  # fmt: skip


arctan = _float_function(
    "arctan", elementwise.atan, "The inverse tangent, in [-pi/2, pi/2].",
    "jnp.arctan(jnp.array([0.0]))\nArray([0.], dtype=float32)",
)  # fmt: skip


sinh = _float_function(
    "sinh", elementwise.sinh, "The hyperbolic sine.",
    "jnp.sinh(jnp.array([0.0]))\nArray([0.], dtype=float32)",
)  # fmt: skip


cosh = _float_function(
    "cosh", elementwise.cosh, "The hyperbolic cosine.",
    "jnp.cosh(jnp.array([0.0]))\nArray([1.], dtype=float32)",
)  # fmt: skip


tanh = _float_function(
    "tanh", elementwise.tanh, "The hyperbolic tangent.",
    "jnp.tanh(jnp.array([0.0, jnp.inf]))\nArray([0., 1.], dtype=float32)",
)  # fmt: skip


arcsinh = _float_function(
    "arcsinh", elementwise.asinh, "The inverse hyperbolic sine.",
    "jnp.arcsinh(jnp.array([0.0]))\nArray([0.], dtype=float32)",
)  # fmt: skip


arccosh = _float_function(
    "arccosh", elementwise.acosh, "The inverse hyperbolic cosine; nan below 1.",
    "jnp.arccosh(jnp.array([1.0, 0.0]))\nArray([ 0., nan], dtype=float32)",
)  # fmt: skip


arctanh = _float_function(
    "arctanh", elementwise.atanh, "The inverse hyperbolic tangent; nan outside of [-1, 1].",
    "jnp.arctanh(jnp.array([0.0, 2.0]))\nArray([ 0., nan], dtype=float32)",
)  # fmt: skip


asin, acos, atan, asinh, acosh, atanh = arcsin, arccos, arctan, arcsinh, arccosh, arctanh


@public()
def arctan2(x1: Any, x2: Any, /) -> Any:
    """The angle of the point (x2, x1) in [-pi, pi], by C's rules for zeros and infinities.

    x1, x2: arrays or numbers of shapes that broadcast, not complex.

    >>> import jato.numpy as jnp
    >>> jnp.arctan2(jnp.array([0.0, 1.0]), 0.0)
    Array([0.       , 1.5707964], dtype=float32)
    """
    return elementwise.atan2(*promote_float("arctan2", x1, x2))


atan2 = arctan2


@public()
def hypot(x1: Any, x2: Any, /) -> Any:
    """sqrt(x1**2 + x2**2) without overflow on the way.

    >>> import jato.numpy as jnp
    >>> jnp.hypot(jnp.array([3.0]), 4.0)
    Array([5.], dtype=float32)
    """
    x1, x2 = promote_float("hypot", x1, x2)
    if is_complex(dtype_of(x1)):
        raise TypeError("hypot: not defined for complex numbers")
    return elementwise.hypot(x1, x2)


def _scaled(factor: float) -> Any:
    return lambda x: elementwise.mul(x, factor)


deg2rad = _float_function(
    "deg2rad", _scaled(math.pi / 180), "Degrees to radians.",
    "jnp.deg2rad(jnp.array([180.0]))\nArray([3.1415927], dtype=float32)",
)  # fmt: skip


rad2deg = _float_function(
    "rad2deg", _scaled(180 / math.pi), "Radians to degrees.",
    "jnp.rad2deg(jnp.array([jnp.pi]))\nArray([180.], dtype=float32)",
)  # fmt: skip


radians, degrees = deg2rad, rad2deg


def _sinc(x: Any) -> Any:
    zero = elementwise.eq(x, number_like(x, 0))
    angle = elementwise.mul(x, number_like(x, math.pi))
    # near zero the series keeps the derivatives right: sin(t)/t = 1 - t^2/6 + ...
    safe = select_where(zero, number_like(x, 1), angle)
    series = elementwise.sub(
        number_like(x, 1), elementwise.div(elementwise.square(angle), number_like(x, 6))
    )
    return select_where(zero, series, elementwise.div(elementwise.sin(safe), safe))


sinc = _float_function(
    "sinc", _sinc, "sin(pi x) / (pi x), and 1 at zero.",
    "jnp.sinc(jnp.array([0.0]))\nArray([1.], dtype=float32)",
)  # fmt: skip


def _bessel_i0(x: Any) -> Any:
    if is_complex(dtype_of(x)):
        raise ValueError("i0: not defined for complex numbers")
    x = as_array("i0", x)
    return elementwise.mul(elementwise.exp(elementwise.abs(x)), bessel_i0e(x))


i0 = _float_function(
    "i0",
    _bessel_i0,
    "The modified Bessel function of the first kind, order 0.",
    "jnp.i0(jnp.array([jnp.inf, jnp.nan])).shape\n(2,)",
)


# ---- sums in the log domain


def _log_add(name: str, x: Any, y: Any, power: Any, log1p_of: Any) -> Any:
    """log(exp(x) + exp(y)) = max + log1p(exp(-|x - y|)); equal infinities are their own sum."""
    x, y = promote_float(name, x, y)
    if is_complex(dtype_of(x)):
        larger = select_where(elementwise.ge(elementwise.real(x), elementwise.real(y)), x, y)
        smaller = select_where(elementwise.ge(elementwise.real(x), elementwise.real(y)), y, x)
        difference = elementwise.sub(smaller, larger)
        same = elementwise.eq(x, y)
        difference = select_where(same, number_like(difference, 0), difference)
        return elementwise.add(larger, log1p_of(power(difference)))
    larger = elementwise.max(x, y)
    difference = elementwise.sub(x, y)
    distance = elementwise.neg(elementwise.abs(difference))
    result = elementwise.add(larger, log1p_of(power(distance)))
    # inf - inf is nan: there the sum of the operands is the answer, and nan stays nan
    return select_where(elementwise.ne(difference, difference), elementwise.add(x, y), result)


@public()
def logaddexp(x1: Any, x2: Any, /, *, out: None = None, where: None = None) -> Any:
    """log(exp(x1) + exp(x2)), elementwise, without overflow.

    x1, x2: arrays or numbers of shapes that broadcast.

    >>> import jato.numpy as jnp
    >>> jnp.logaddexp(jnp.array([-jnp.inf]), 1000.0)
    Array([1000.], dtype=float32)
    """
    require_ufunc_defaults("logaddexp", out, where)
    return _log_add("logaddexp", x1, x2, elementwise.exp, elementwise.log1p)


@public()
def logaddexp2(x1: Any, x2: Any, /, *, out: None = None, where: None = None) -> Any:
    """log2(2**x1 + 2**x2), elementwise, without overflow.

    >>> import jato.numpy as jnp
    >>> jnp.logaddexp2(jnp.array([1000.0]), 1000.0)
    Array([1001.], dtype=float32)
    """
    require_ufunc_defaults("logaddexp2", out, where)
    scale = 1 / math.log(2)
    return _log_add(
        "logaddexp2", x1, x2, elementwise.exp2,
        lambda z: elementwise.mul(elementwise.log1p(z), number_like(z, scale)),
    )  # fmt: skip


@public(static=("deg",))
def angle(z: Any, deg: bool = False) -> Any:
    """The angle of complex numbers, in radians, or degrees if `deg`.

    >>> import jato.numpy as jnp
    >>> jnp.angle(jnp.array([1j, -1.0]), deg=True)
    Array([ 90., 180.], dtype=float32)
    """
    z = unary_widest_float("angle", z)
    if is_complex(dtype_of(z)):
        result = elementwise.atan2(elementwise.imag(z), elementwise.real(z))
    else:
        result = elementwise.atan2(number_like(z, 0), as_array("angle", z))
    return elementwise.mul(result, 180 / math.pi) if deg else result


def _as_dtype_of(x: Any, value: Any) -> Any:
    return cast(as_array("nan_to_num", value), dtype_of(x))


@public(static=("copy",))
def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """x with nan, inf and -inf replaced by numbers: by default 0 and the largest finite ones.

    >>> import jato.numpy as jnp
    >>> jnp.nan_to_num(jnp.array([jnp.nan, jnp.inf, 1.0]), posinf=9.0)
    Array([0., 9., 1.], dtype=float32)
    """
    x = as_array("nan_to_num", x)
    dtype = dtype_of(x)
    if is_complex(dtype):
        parts = (
            nan_to_num(part, copy, nan, posinf, neginf)
            for part in (elementwise.real(x), elementwise.imag(x))
        )
        return elementwise.complex(*parts)
    if not is_floating(dtype):
        return x
    limits = finfo_of(dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    for condition, value in (
        (elementwise.ne(x, x), nan),
        (elementwise.eq(x, number_like(x, np.inf)), high),
        (elementwise.eq(x, number_like(x, -np.inf)), low),
    ):
        x = select_where(condition, _as_dtype_of(x, value), x)
    return x
