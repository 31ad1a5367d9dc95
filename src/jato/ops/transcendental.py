"""Elementwise functions of analysis: exp, log, roots, trigonometric and hyperbolic functions.

Entries take floats, or complex numbers too where it says "fc", of one dtype.  Accuracy is that of
the opcodes (loopir/scalar_ops.py): 2 ULP.  The derivative rules use the result where that saves
work: tan' = 1 + tan^2.

`function_of_one` makes most entries.  What the functions take as `accuracy` is in accuracy.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jato.base.lazy import LazyModule
from jato.core.types import type_of
from jato.ops.accuracy import check_accuracy
from jato.ops.arithmetic import add, div, mul, neg, square, sub
from jato.ops.elementwise_family import Elementwise
from jato.ops.selection import eq, select_n

special: Any = LazyModule("scipy.special")  # for references only

_LN2 = math.log(2.0)
_LN10 = math.log(10.0)


def function_of_one(
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
EXP = function_of_one("exp", "fc", lambda g, out, x: mul(g, out), np.exp, 8.0)
EXP2 = function_of_one("exp2", "fc", lambda g, out, x: mul(g, mul(out, _LN2)), np.exp2, 8.0)
EXPM1 = function_of_one("expm1", "fc", lambda g, out, x: mul(g, add(out, 1)), np.expm1, 10.0)
LOG = function_of_one("log", "fc", lambda g, out, x: div(g, x), np.log, 10.0)
LOG2 = function_of_one("log2", "fc", lambda g, out, x: div(g, mul(x, _LN2)), np.log2, 12.0)
LOG10 = function_of_one("log10", "fc", lambda g, out, x: div(g, mul(x, _LN10)), np.log10, 12.0)
LOG1P = function_of_one("log1p", "fc", lambda g, out, x: div(g, add(x, 1)), np.log1p, 12.0)

# ---- roots
SQRT = function_of_one("sqrt", "fc", lambda g, out, x: div(mul(g, 0.5), out), np.sqrt, 4.0)
RSQRT = function_of_one(
    "rsqrt",
    "fc",
    lambda g, out, x: mul(g, mul(div(out, x), -0.5)),
    lambda x: 1 / np.sqrt(x),
    6.0,
)
CBRT = function_of_one("cbrt", "f", lambda g, out, x: div(g, mul(square(out), 3)), np.cbrt, 10.0)

# ---- trigonometric functions and their inverses
SIN = function_of_one("sin", "fc", lambda g, out, x: mul(g, cos(x)), np.sin, 12.0)
COS = function_of_one("cos", "fc", lambda g, out, x: neg(mul(g, sin(x))), np.cos, 12.0)
TAN = function_of_one("tan", "fc", lambda g, out, x: mul(g, add(1, square(out))), np.tan, 16.0)
ASIN = function_of_one(
    "asin", "fc", lambda g, out, x: mul(g, rsqrt(_one_minus_square(x))), np.arcsin, 14.0
)
ACOS = function_of_one(
    "acos", "fc", lambda g, out, x: neg(mul(g, rsqrt(_one_minus_square(x)))), np.arccos, 14.0
)
ATAN = function_of_one("atan", "fc", lambda g, out, x: div(g, add(1, square(x))), np.arctan, 14.0)

# ---- hyperbolic functions and their inverses
SINH = function_of_one("sinh", "fc", lambda g, out, x: mul(g, cosh(x)), np.sinh, 14.0)
COSH = function_of_one("cosh", "fc", lambda g, out, x: mul(g, sinh(x)), np.cosh, 14.0)
TANH = function_of_one(
    "tanh", "fc", lambda g, out, x: mul(add(g, mul(g, out)), sub(1, out)), np.tanh, 12.0
)
ASINH = function_of_one(
    "asinh", "fc", lambda g, out, x: mul(g, rsqrt(add(square(x), 1))), np.arcsinh, 16.0
)
ACOSH = function_of_one(
    "acosh",
    "fc",
    lambda g, out, x: mul(g, mul(rsqrt(sub(x, 1)), rsqrt(add(x, 1)))),
    np.arccosh,
    16.0,
)
ATANH = function_of_one(
    "atanh", "fc", lambda g, out, x: div(g, _one_minus_square(x)), np.arctanh, 14.0
)
LOGISTIC = function_of_one(
    "logistic",
    "fc",
    lambda g, out, x: mul(mul(g, out), sub(1, out)),
    lambda x: special.expit(x) if x.dtype.kind == "f" else 1 / (1 + np.exp(-x)),
    10.0,
    _lower_logistic,
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


# ---- the functions


def exp(x: Any, *, accuracy: Any = None) -> Any:
    """e to the power x.

    >>> float(exp(0.0))
    1.0
    """
    if accuracy is not None:
        check_accuracy("exp", accuracy, x)
    return EXP(x)


def exp2(x: Any, *, accuracy: Any = None) -> Any:
    """2 to the power x.

    >>> float(exp2(3.0))
    8.0
    """
    if accuracy is not None:
        check_accuracy("exp2", accuracy, x)
    return EXP2(x)


def expm1(x: Any, *, accuracy: Any = None) -> Any:
    """exp(x) - 1 without cancellation near 0.

    >>> float(expm1(0.0))
    0.0
    """
    if accuracy is not None:
        check_accuracy("expm1", accuracy, x)
    return EXPM1(x)


def log(x: Any, *, accuracy: Any = None) -> Any:
    """The natural logarithm; -inf at 0, NaN for negative floats.

    >>> float(log(1.0))
    0.0
    """
    if accuracy is not None:
        check_accuracy("log", accuracy, x)
    return LOG(x)


def log2(x: Any, *, accuracy: Any = None) -> Any:
    """The logarithm to base 2.

    >>> float(log2(8.0))
    3.0
    """
    if accuracy is not None:
        check_accuracy("log2", accuracy, x)
    return LOG2(x)


def log10(x: Any) -> Any:
    """The logarithm to base 10.

    >>> float(log10(1.0))
    0.0
    """
    return LOG10(x)


def log1p(x: Any, *, accuracy: Any = None) -> Any:
    """log(1 + x) without cancellation near 0.

    >>> float(log1p(0.0))
    0.0
    """
    if accuracy is not None:
        check_accuracy("log1p", accuracy, x)
    return LOG1P(x)


def sqrt(x: Any, *, accuracy: Any = None) -> Any:
    """The square root; NaN for negative floats.

    >>> float(sqrt(4.0))
    2.0
    """
    if accuracy is not None:
        check_accuracy("sqrt", accuracy, x)
    return SQRT(x)


def rsqrt(x: Any, *, accuracy: Any = None) -> Any:
    """1 / sqrt(x).

    >>> float(rsqrt(4.0))
    0.5
    """
    if accuracy is not None:
        check_accuracy("rsqrt", accuracy, x)
    return RSQRT(x)


def cbrt(x: Any, *, accuracy: Any = None) -> Any:
    """The real cube root.

    >>> float(cbrt(0.0))
    0.0
    """
    if accuracy is not None:
        check_accuracy("cbrt", accuracy, x)
    return CBRT(x)


def sin(x: Any, *, accuracy: Any = None) -> Any:
    """The sine of x in radians.

    >>> float(sin(0.0))
    0.0
    """
    if accuracy is not None:
        check_accuracy("sin", accuracy, x)
    return SIN(x)


def cos(x: Any, *, accuracy: Any = None) -> Any:
    """The cosine of x in radians.

    >>> float(cos(0.0))
    1.0
    """
    if accuracy is not None:
        check_accuracy("cos", accuracy, x)
    return COS(x)


def tan(x: Any, *, accuracy: Any = None) -> Any:
    """The tangent of x in radians.

    >>> float(tan(0.0))
    0.0
    """
    if accuracy is not None:
        check_accuracy("tan", accuracy, x)
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


def tanh(x: Any, *, accuracy: Any = None) -> Any:
    """The hyperbolic tangent.

    >>> float(tanh(0.0))
    0.0
    """
    if accuracy is not None:
        check_accuracy("tanh", accuracy, x)
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


def logistic(x: Any, *, accuracy: Any = None) -> Any:
    """1 / (1 + exp(-x)), without overflow.

    >>> float(logistic(0.0))
    0.5
    """
    if accuracy is not None:
        check_accuracy("logistic", accuracy, x)
    return LOGISTIC(x)


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
