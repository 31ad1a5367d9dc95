"""Elementwise functions of analysis: exp, log, powers, trigonometric and special functions.

Entries take floats, or complex numbers too where it says "fc", of one dtype.  Accuracy is that of
the opcodes (loopir/scalar_ops.py): 2 ULP, 4 for pow and erf_inv.  The derivative rules use the
result where that saves work: tan' = 1 + tan^2.

`_function` makes most entries; pow and trigamma, at the end, need more words.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import MissingRule
from jato.base.lazy import LazyModule
from jato.core.types import ArrayType, type_of
from jato.ops.arithmetic import INTEGER_POW, SQUARE, add, div, mul, neg, square, sub
from jato.ops.convert import convert_element_type
from jato.ops.elementwise_family import Elementwise, replaces, scalar_value
from jato.ops.families import kind_of
from jato.ops.selection import eq, select_n

special: Any = LazyModule("scipy.special")  # for references only

_LN2 = math.log(2.0)
_LN10 = math.log(10.0)
_SQRT_PI = math.sqrt(math.pi)


def _function(
    name: str,
    takes: str,
    derivative: Callable[..., Any],
    reference: Callable[..., Any],
    cost: float,
    lower: str | Callable[..., Any] | None = None,
) -> Elementwise:
    """A function of one operand; derivative(g, out, x)."""
    return Elementwise(
        name, takes, lower=lower or name, jvp=(derivative,), reference=reference, cost=cost
    )


def _one_minus_square(x: Any) -> Any:
    return mul(sub(1, x), add(1, x))


def _lower_logistic(b: Any, x: Any) -> Any:
    if not hasattr(x, "re"):
        return b.logistic(x)
    one = b.const(1, x.dtype)
    return b.div(one, b.add(one, b.exp(b.neg(x))))


# ---- exponential and logarithm
EXP = _function("exp", "fc", lambda g, out, x: mul(g, out), np.exp, 8.0)
EXP2 = _function("exp2", "fc", lambda g, out, x: mul(g, mul(out, _LN2)), np.exp2, 8.0)
EXPM1 = _function("expm1", "fc", lambda g, out, x: mul(g, add(out, 1)), np.expm1, 10.0)
LOG = _function("log", "fc", lambda g, out, x: div(g, x), np.log, 10.0)
LOG2 = _function("log2", "fc", lambda g, out, x: div(g, mul(x, _LN2)), np.log2, 12.0)
LOG10 = _function("log10", "fc", lambda g, out, x: div(g, mul(x, _LN10)), np.log10, 12.0)
LOG1P = _function("log1p", "fc", lambda g, out, x: div(g, add(x, 1)), np.log1p, 12.0)

# ---- roots
SQRT = _function("sqrt", "fc", lambda g, out, x: div(mul(g, 0.5), out), np.sqrt, 4.0)
RSQRT = _function(
    "rsqrt",
    "fc",
    lambda g, out, x: mul(g, mul(div(out, x), -0.5)),
    lambda x: 1 / np.sqrt(x),
    6.0,
)
CBRT = _function("cbrt", "f", lambda g, out, x: div(g, mul(square(out), 3)), np.cbrt, 10.0)

# ---- trigonometric functions and their inverses
SIN = _function("sin", "fc", lambda g, out, x: mul(g, cos(x)), np.sin, 12.0)
COS = _function("cos", "fc", lambda g, out, x: neg(mul(g, sin(x))), np.cos, 12.0)
TAN = _function("tan", "fc", lambda g, out, x: mul(g, add(1, square(out))), np.tan, 16.0)
ASIN = _function(
    "asin", "fc", lambda g, out, x: mul(g, rsqrt(_one_minus_square(x))), np.arcsin, 14.0
)
ACOS = _function(
    "acos", "fc", lambda g, out, x: neg(mul(g, rsqrt(_one_minus_square(x)))), np.arccos, 14.0
)
ATAN = _function("atan", "fc", lambda g, out, x: div(g, add(1, square(x))), np.arctan, 14.0)

# ---- hyperbolic functions and their inverses
SINH = _function("sinh", "fc", lambda g, out, x: mul(g, cosh(x)), np.sinh, 14.0)
COSH = _function("cosh", "fc", lambda g, out, x: mul(g, sinh(x)), np.cosh, 14.0)
TANH = _function(
    "tanh", "fc", lambda g, out, x: mul(add(g, mul(g, out)), sub(1, out)), np.tanh, 12.0
)
ASINH = _function(
    "asinh", "fc", lambda g, out, x: mul(g, rsqrt(add(square(x), 1))), np.arcsinh, 16.0
)
ACOSH = _function(
    "acosh",
    "fc",
    lambda g, out, x: mul(g, mul(rsqrt(sub(x, 1)), rsqrt(add(x, 1)))),
    np.arccosh,
    16.0,
)
ATANH = _function(
    "atanh", "fc", lambda g, out, x: div(g, _one_minus_square(x)), np.arctanh, 14.0
)
LOGISTIC = _function(
    "logistic",
    "fc",
    lambda g, out, x: mul(mul(g, out), sub(1, out)),
    lambda x: special.expit(x) if x.dtype.kind == "f" else 1 / (1 + np.exp(-x)),
    10.0,
    _lower_logistic,
)

# ---- error function and gamma function
ERF = _function(
    "erf",
    "f",
    lambda g, out, x: mul(g, mul(exp(neg(square(x))), 2 / _SQRT_PI)),
    lambda x: special.erf(x),
    16.0,
)
ERFC = _function(
    "erfc",
    "f",
    lambda g, out, x: mul(g, mul(exp(neg(square(x))), -2 / _SQRT_PI)),
    lambda x: special.erfc(x),
    20.0,
)
ERF_INV = _function(
    "erf_inv",
    "f",
    lambda g, out, x: mul(g, mul(exp(square(out)), _SQRT_PI / 2)),
    lambda x: np.where(x == 0, x, special.erfinv(x)),
    20.0,
    "erfinv",
)
LGAMMA = _function(
    "lgamma",
    "f",
    lambda g, out, x: mul(g, digamma(x)),
    lambda x: np.where(np.isinf(x), np.inf, special.gammaln(x)),
    30.0,
)
DIGAMMA = _function(
    "digamma", "f", lambda g, out, x: mul(g, trigamma(x)), lambda x: special.digamma(x), 30.0
)

# B(2k): trigamma(z) ~ 1/z + 1/(2 z^2) + sum B(2k) / z^(2k+1)   (DLMF 5.15.8)
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def _lower_trigamma(b: Any, x: Any) -> Any:
    if x.dtype in ("f16", "bf16"):
        return b.convert(_lower_trigamma(b, b.convert(x, "f32")), x.dtype)

    def const(value: float) -> Any:
        return b.const(value, x.dtype)

    # trigamma(x) = pi^2 / sin(pi x)^2 - trigamma(1 - x); upward to where the series holds
    reflected = b.lt(x, const(0.5))
    z = b.select(reflected, b.sub(const(1), x), x)
    total = const(0)
    for _ in range(12 if x.dtype == "f64" else 6):
        total = b.add(total, b.div(const(1), b.mul(z, z)))
        z = b.add(z, const(1))
    r = b.div(const(1), z)
    r2 = b.mul(r, r)
    series = const(_BERNOULLI[-1])
    for coefficient in reversed(_BERNOULLI[:-1]):
        series = b.add(b.mul(series, r2), const(coefficient))
    tail = b.add(b.mul(r2, const(0.5)), b.mul(b.mul(series, r2), r))
    total = b.add(total, b.add(r, tail))
    sine = b.sin(b.mul(b.sub(x, b.round_even(x)), const(math.pi)))
    square_pi = b.div(const(math.pi * math.pi), b.mul(sine, sine))
    return b.select(reflected, b.sub(square_pi, total), total)


def _no_derivative(g: Any, out: Any, x: Any) -> Any:
    raise MissingRule("trigamma", "jvp", "Its derivative is polygamma(2, x), which is not there.")


TRIGAMMA = _function(
    "trigamma",
    "f",
    _no_derivative,
    lambda x: np.where(x == -np.inf, np.nan, special.polygamma(1, x)),
    60.0,
    _lower_trigamma,
)


# ---- two operands


def _atan2_share(g: Any, x: Any, y: Any, of: Any) -> Any:
    return mul(g, div(of, add(square(x), square(y))))


def _hypot_share(g: Any, out: Any, of: Any) -> Any:
    return mul(g, div(of, select_n(eq(out, 0), out, type_of(out).dtype.type(1))))


ATAN2 = Elementwise(
    "atan2",
    "f",
    lower="atan2",
    jvp=(
        lambda g, out, x, y: _atan2_share(g, x, y, y),
        lambda g, out, x, y: neg(_atan2_share(g, x, y, x)),
    ),
    reference=np.arctan2,
    cost=18.0,
)
HYPOT = Elementwise(
    "hypot",
    "f",
    lower="hypot",
    jvp=(
        lambda g, out, x, y: _hypot_share(g, out, x),
        lambda g, out, x, y: _hypot_share(g, out, y),
    ),
    reference=np.hypot,
    cost=10.0,
)


class Pow(Elementwise):
    """x ** y.  Both of one dtype; or x float or complex and y an integer array."""

    def result_type(self, x: Any, y: Any) -> Any:
        if kind_of(y) in "iu" and kind_of(x) in "fc":
            shape = self.common_shape((x, y))
            return ArrayType(shape, x.dtype_code, x.weak_type)
        return super().result_type(x, y)

    def rules_of(self, primals: Sequence[Any]) -> Sequence[Callable[..., Any] | None]:
        return (_pow_base, _pow_exponent)

    def reference(self, x: Any, y: Any) -> Any:
        x, y = np.asarray(x), np.asarray(y)
        if y.dtype.kind in "iu" and x.dtype.kind in "iu":
            return _integer_power(x, y)
        with np.errstate(all="ignore"):  # np.power takes x ** 0.5 for sqrt, wrong at -inf
            wide = np.complex128 if x.dtype.kind == "c" else np.float64
            return np.asarray(np.float_power(x.astype(wide), y.astype(wide))).astype(x.dtype)

    def simplify(self, node: Any, rewriter: Any) -> Any:
        x, y = node.inputs
        exponent = scalar_value(y, rewriter)
        if x.aval is not node.outputs[0].aval or not isinstance(exponent, (int, float)):
            return None
        if exponent == 1:
            return replaces(x, node)
        if exponent == 2:
            return rewriter.bind(SQUARE, x)
        if exponent == 3 or (exponent == -1 and kind_of(x.aval) in "fc"):
            return rewriter.bind(INTEGER_POW, x, y=int(exponent))
        return None


def _integer_power(x: Any, y: Any) -> Any:
    x, y = np.broadcast_arrays(x, y)
    bits = 8 * x.dtype.itemsize
    rows = zip(x.ravel().tolist(), y.ravel().tolist(), strict=True)
    values = []
    for base, exponent in rows:
        if exponent < 0:
            value = base**-exponent if base in (1, -1) else 0
        else:
            value = builtins.pow(base, exponent, 1 << bits)
        values.append(value % (1 << bits))
    return np.array(values, np.uint64).astype(x.dtype).reshape(x.shape)


def _pow_base(g: Any, out: Any, x: Any, y: Any) -> Any:
    """y x^(y-1); 0 where y is 0, also at x = 0."""
    factor = y
    if dtypes.is_integer(type_of(y).dtype):
        factor = convert_element_type(y, type_of(x).dtype)
    share = mul(factor, pow(x, sub(y, 1)))
    zero = type_of(x).dtype.type(0)
    return mul(g, select_n(eq(y, 0), share, zero))


def _pow_exponent(g: Any, out: Any, x: Any, y: Any) -> Any:
    """log(x) x^y; 0 at x = 0."""
    one = type_of(x).dtype.type(1)
    return mul(g, mul(log(select_n(eq(x, 0), x, one)), out))


def _lower_pow(b: Any, x: Any, y: Any) -> Any:
    if y.dtype[0] not in "iu":
        return b.pow(x, y)
    if hasattr(x, "re"):
        return b.pow(x, b.convert(y, x.dtype))
    if x.dtype[0] in "iu":
        return _lower_integer_power(b, x, y)
    # a big integer loses its parity as a float: the sign is decided on the integer
    size = b.pow(b.abs(x), b.convert(y, x.dtype))
    odd = b.ne(b.and_(y, b.const(1, y.dtype)), b.const(0, y.dtype))
    negative = b.lt(b.copysign(b.const(1, x.dtype), x), b.const(0, x.dtype))
    return b.select(b.and_(odd, negative), b.neg(size), size)


def _lower_integer_power(b: Any, x: Any, y: Any) -> Any:
    one, zero = b.const(1, x.dtype), b.const(0, x.dtype)
    result, factor = one, x
    for bit in range(int(x.dtype[1:]) - (x.dtype[0] == "i")):
        taken = b.ne(b.and_(b.shr_logical(y, b.const(bit, y.dtype)), one), zero)
        result = b.select(taken, b.mul(result, factor), result)
        factor = b.mul(factor, factor)
    if x.dtype[0] == "u":
        return result
    minus_one = b.const(-1, x.dtype)
    # 1 / x^|y|, rounded toward zero
    odd = b.ne(b.and_(y, one), zero)
    unit = b.select(odd, minus_one, one)
    inverse = b.select(b.eq(x, one), one, b.select(b.eq(x, minus_one), unit, zero))
    return b.select(b.lt(y, zero), inverse, result)


POW = Pow("pow", "iufc", lower=_lower_pow, jvp=(None, None), reference=np.power, cost=30.0)


# ---- the functions


def exp(x: Any) -> Any:
    """e to the power x.

    >>> float(exp(0.0))
    1.0
    """
    return EXP(x)


def exp2(x: Any) -> Any:
    """2 to the power x.

    >>> float(exp2(3.0))
    8.0
    """
    return EXP2(x)


def expm1(x: Any) -> Any:
    """exp(x) - 1 without cancellation near 0.

    >>> float(expm1(0.0))
    0.0
    """
    return EXPM1(x)


def log(x: Any) -> Any:
    """The natural logarithm; -inf at 0, NaN for negative floats.

    >>> float(log(1.0))
    0.0
    """
    return LOG(x)


def log2(x: Any) -> Any:
    """The logarithm to base 2.

    >>> float(log2(8.0))
    3.0
    """
    return LOG2(x)


def log10(x: Any) -> Any:
    """The logarithm to base 10.

    >>> float(log10(1.0))
    0.0
    """
    return LOG10(x)


def log1p(x: Any) -> Any:
    """log(1 + x) without cancellation near 0.

    >>> float(log1p(0.0))
    0.0
    """
    return LOG1P(x)


def sqrt(x: Any) -> Any:
    """The square root; NaN for negative floats.

    >>> float(sqrt(4.0))
    2.0
    """
    return SQRT(x)


def rsqrt(x: Any) -> Any:
    """1 / sqrt(x).

    >>> float(rsqrt(4.0))
    0.5
    """
    return RSQRT(x)


def cbrt(x: Any) -> Any:
    """The real cube root.

    >>> float(cbrt(0.0))
    0.0
    """
    return CBRT(x)


def sin(x: Any) -> Any:
    """The sine of x in radians.

    >>> float(sin(0.0))
    0.0
    """
    return SIN(x)


def cos(x: Any) -> Any:
    """The cosine of x in radians.

    >>> float(cos(0.0))
    1.0
    """
    return COS(x)


def tan(x: Any) -> Any:
    """The tangent of x in radians.

    >>> float(tan(0.0))
    0.0
    """
    return TAN(x)


def asin(x: Any) -> Any:
    """The angle in [-pi/2, pi/2] whose sine is x.

    >>> float(asin(0.0))
    0.0
    """
    return ASIN(x)


def acos(x: Any) -> Any:
    """The angle in [0, pi] whose cosine is x.

    >>> float(acos(1.0))
    0.0
    """
    return ACOS(x)


def atan(x: Any) -> Any:
    """The angle in (-pi/2, pi/2) whose tangent is x.

    >>> float(atan(0.0))
    0.0
    """
    return ATAN(x)


def sinh(x: Any) -> Any:
    """The hyperbolic sine.

    >>> float(sinh(0.0))
    0.0
    """
    return SINH(x)


def cosh(x: Any) -> Any:
    """The hyperbolic cosine.

    >>> float(cosh(0.0))
    1.0
    """
    return COSH(x)


def tanh(x: Any) -> Any:
    """The hyperbolic tangent.

    >>> float(tanh(0.0))
    0.0
    """
    return TANH(x)


def asinh(x: Any) -> Any:
    """The inverse hyperbolic sine.

    >>> float(asinh(0.0))
    0.0
    """
    return ASINH(x)


def acosh(x: Any) -> Any:
    """The inverse hyperbolic cosine; NaN for floats below 1.

    >>> float(acosh(1.0))
    0.0
    """
    return ACOSH(x)


def atanh(x: Any) -> Any:
    """The inverse hyperbolic tangent.

    >>> float(atanh(0.0))
    0.0
    """
    return ATANH(x)


def logistic(x: Any) -> Any:
    """1 / (1 + exp(-x)), without overflow.

    >>> float(logistic(0.0))
    0.5
    """
    return LOGISTIC(x)


def erf(x: Any) -> Any:
    """The error function (floats).

    >>> float(erf(0.0))
    0.0
    """
    return ERF(x)


def erfc(x: Any) -> Any:
    """1 - erf(x) without cancellation (floats).

    >>> float(erfc(0.0))
    1.0
    """
    return ERFC(x)


def erf_inv(x: Any) -> Any:
    """The inverse of erf on [-1, 1]; NaN outside.

    >>> float(erf_inv(0.0))
    0.0
    """
    return ERF_INV(x)


def lgamma(x: Any) -> Any:
    """log |gamma(x)| (floats).

    >>> float(lgamma(1.0))
    0.0
    """
    return LGAMMA(x)


def digamma(x: Any) -> Any:
    """The derivative of lgamma (floats).

    >>> round(float(digamma(1.0)), 3)
    -0.577
    """
    return DIGAMMA(x)


def trigamma(x: Any) -> Any:
    """The derivative of digamma (floats).

    >>> round(float(trigamma(1.0)), 3)
    1.645
    """
    return TRIGAMMA(x)


def atan2(x: Any, y: Any) -> Any:
    """The angle of the point (y, x): atan(x / y) in the right quadrant (floats).

    >>> float(atan2(0.0, 1.0))
    0.0
    """
    return ATAN2(x, y)


def hypot(x: Any, y: Any) -> Any:
    """sqrt(x^2 + y^2) without overflow (floats).

    >>> float(hypot(3.0, 4.0))
    5.0
    """
    return HYPOT(x, y)


def pow(x: Any, y: Any) -> Any:
    """x ** y, elementwise.

    x, y: of one dtype (integers, floats or complex numbers), or y an integer array.  Integers
    wrap; a negative power of integers is 1 / x^|y| rounded toward zero.  The derivative by x is
    0 where y is 0.

    >>> float(pow(2.0, 3.0))
    8.0
    """
    if type(y) is int and type(x) not in (bool, int, float, complex):
        kind = kind_of(type_of(x))
        if kind in "fc":
            return POW.bind(x, np.int32(y))
    return POW(x, y)
