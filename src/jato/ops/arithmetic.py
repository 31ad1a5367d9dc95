"""Elementwise arithmetic: sums, products, quotients, remainders, integer powers, extrema, clamp.

Entries first, each followed by the function that users call (jax.lax's names).  Integers wrap;
division never traps.  Functions take arrays of one dtype and one shape, or scalars; a Python
number takes the dtype of the array beside it.

Rounding is in rounding.py, signs and complex parts in complex_parts.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jato.base import dtypes
from jato.core.types import type_of
from jato.ops.convert import convert_element_type
from jato.ops.elementwise_family import (
    ADD,
    Elementwise,
    is_negative_zero,
    replaces,
    scalar_value,
)
from jato.ops.numbers import NUMBERS, number_as
from jato.ops.rounding import trunc
from jato.ops.selection import eq, gt, lt, select_n
from jato.ops.shapes import scalar_of
from jato.ops.structural import full


def add(x: Any, y: Any) -> Any:
    """x + y, elementwise.  Integers wrap.

    >>> float(add(1.5, 2))
    3.5
    """
    return ADD(x, y)


def _simplify_neg(node: Any, rewriter: Any) -> Any:
    inner = rewriter.producer(node.inputs[0])  # neg(neg x) -> x
    if inner is not None and inner.primitive is NEG:
        return replaces(inner.inputs[0], node)
    return None


NEG = Elementwise(
    "neg",
    "iufc",
    lower="neg",
    jvp=(lambda g, out, x: neg(g),),
    transpose=(lambda ct, x: neg(ct),),
    reference=np.negative,
    simplify=_simplify_neg,
)


def neg(x: Any) -> Any:
    """-x, elementwise.

    >>> float(neg(1.5))
    -1.5
    """
    return NEG(x)


def _simplify_sub(node: Any, rewriter: Any) -> Any:
    value = scalar_value(node.inputs[1], rewriter)  # x - 0 -> x; not x - (-0.0)
    if type(value) in (int, float) and value == 0 and not is_negative_zero(value):
        return replaces(node.inputs[0], node)
    return None


SUB = Elementwise(
    "sub",
    "iufc",
    lower="sub",
    jvp=(lambda g, out, x, y: g, lambda g, out, x, y: neg(g)),
    transpose=(lambda ct, x, y: ct, lambda ct, x, y: neg(ct)),
    reference=np.subtract,
    simplify=_simplify_sub,
)


def sub(x: Any, y: Any) -> Any:
    """x - y, elementwise.

    >>> float(sub(3.0, 1))
    2.0
    """
    return SUB(x, y)


def _simplify_mul(node: Any, rewriter: Any) -> Any:
    for x, y in (node.inputs, reversed(node.inputs)):  # x * 1 -> x
        value = scalar_value(y, rewriter)
        if type(value) in (int, float, complex) and value == 1 and type(value) is not complex:
            return replaces(x, node)
    return None


MUL = Elementwise(
    "mul",
    "iufc",
    lower="mul",
    jvp=(lambda g, out, x, y: mul(g, y), lambda g, out, x, y: mul(x, g)),
    transpose=(lambda ct, x, y: mul(ct, y), lambda ct, x, y: mul(x, ct)),
    reference=np.multiply,
    simplify=_simplify_mul,
)


def mul(x: Any, y: Any, *, out_dtype: Any = None) -> Any:
    """x * y, elementwise; with `out_dtype` x and y are converted to that dtype first.

    >>> float(mul(3.0, 2))
    6.0
    """
    if out_dtype is not None:
        x, y = convert_element_type(x, out_dtype), convert_element_type(y, out_dtype)
    return MUL(x, y)


def _truncated_div(x: Any, y: Any) -> Any:
    if x.dtype.kind not in "iu":
        return np.true_divide(x, y)
    x, y = np.broadcast_arrays(x, y)
    quotient = np.floor_divide(x, np.where(y == 0, 1, y))
    exact = quotient * y == x
    if x.dtype.kind == "i":
        quotient = np.where(~exact & ((x < 0) != (y < 0)), quotient + 1, quotient)
    return np.where(y == 0, np.array(-1).astype(x.dtype), quotient)


def _simplify_div(node: Any, rewriter: Any) -> Any:
    value = scalar_value(node.inputs[1], rewriter)  # x / 1 -> x
    return replaces(node.inputs[0], node) if type(value) in (int, float) and value == 1 else None


DIV = Elementwise(
    "div",
    "iufc",
    lower="div",
    jvp=(
        lambda g, out, x, y: div(g, y),
        lambda g, out, x, y: neg(mul(g, div(out, y))),
    ),
    transpose=(lambda ct, x, y: div(ct, y), None),
    reference=_truncated_div,
    simplify=_simplify_div,
    cost=4.0,
)


def div(x: Any, y: Any) -> Any:
    """x / y, elementwise; integers are rounded toward zero, and x / 0 is -1 (all bits set).

    >>> float(div(3.0, 2))
    1.5
    """
    return DIV(x, y)


def _truncated_rem(x: Any, y: Any) -> Any:
    if x.dtype.kind not in "iu":
        return np.fmod(x, y)
    return np.where(y == 0, x, np.fmod(x, np.where(y == 0, 1, y)))


REM = Elementwise(
    "rem",
    "iuf",
    lower="rem",
    jvp=(lambda g, out, x, y: g, lambda g, out, x, y: neg(mul(g, trunc(div(x, y))))),
    reference=_truncated_rem,
    cost=20.0,
)


def rem(x: Any, y: Any) -> Any:
    """The remainder of div(x, y) rounded toward zero: it has the sign of x.  x rem 0 is x for
    integers, NaN for floats.

    >>> float(rem(-7.0, 3))
    -1.0
    """
    return REM(x, y)


# ---- NumPy's floor division


def _is_integer(value: Any) -> bool:
    return value.dtype[0] in "iu"


def _lower_floor_divide(b: Any, x: Any, y: Any) -> Any:
    zero = b.const(0, x.dtype)
    if _is_integer(x):
        quotient = b.div(x, y)
        if x.dtype[0] == "i":
            r = b.rem(x, y)
            below = b.and_(b.ne(r, zero), b.ne(b.lt(r, zero), b.lt(y, zero)))
            quotient = b.select(below, b.sub(quotient, 1), quotient)
        return b.select(b.eq(y, zero), zero, quotient)
    if x.dtype in ("f16", "bf16"):
        wide = _lower_floor_divide(b, b.convert(x, "f32"), b.convert(y, "f32"))
        return b.convert(wide, x.dtype)
    # as NumPy: from the exact remainder, so that no rounding can give a quotient that is too big
    r = b.rem(x, y)
    quotient = b.div(b.sub(x, r), y)
    below = b.and_(b.ne(r, zero), b.ne(b.lt(r, zero), b.lt(y, zero)))
    quotient = b.select(below, b.sub(quotient, 1.0), quotient)
    floor = b.floor(quotient)
    floor = b.select(b.gt(b.sub(quotient, floor), 0.5), b.add(floor, 1.0), floor)
    ratio = b.div(x, y)
    floor = b.select(b.eq(quotient, zero), b.copysign(zero, ratio), floor)
    return b.select(b.eq(y, zero), ratio, floor)


FLOOR_DIVIDE = Elementwise(
    "floor_divide",
    "iuf",
    lower=_lower_floor_divide,
    jvp=(None, None),
    reference=np.floor_divide,
    cost=24.0,
)


def floor_divide(x: Any, y: Any) -> Any:
    """The largest integer at most x / y, by NumPy's rules: 0 for integers where y is 0; inf or
    NaN for floats.

    >>> float(floor_divide(-7.0, 2))
    -4.0
    """
    return FLOOR_DIVIDE(x, y)


def _lower_remainder(b: Any, x: Any, y: Any) -> Any:
    zero = b.const(0, x.dtype)
    r = b.rem(x, y)
    if not _is_integer(x):
        wrong = b.and_(b.ne(r, zero), b.ne(b.lt(r, zero), b.lt(y, zero)))
        shifted = b.select(wrong, b.add(r, y), r)
        return b.select(b.eq(r, zero), b.copysign(zero, y), shifted)
    if x.dtype[0] == "i":
        wrong = b.and_(b.ne(r, zero), b.ne(b.lt(r, zero), b.lt(y, zero)))
        r = b.select(wrong, b.add(r, y), r)
    return b.select(b.eq(y, zero), zero, r)


REMAINDER = Elementwise(
    "remainder",
    "iuf",
    lower=_lower_remainder,
    jvp=(lambda g, out, x, y: g, lambda g, out, x, y: neg(mul(g, floor_divide(x, y)))),
    reference=np.remainder,
    cost=22.0,
)


def remainder(x: Any, y: Any) -> Any:
    """x - y * floor_divide(x, y): it has the sign of y.  0 for integers where y is 0, NaN for
    floats.

    >>> float(remainder(-7.0, 3))
    2.0
    """
    return REMAINDER(x, y)


# ---- powers with a static exponent


class IntegerPow(Elementwise):
    """x ** y for a static integer y, by repeated squaring."""

    def result_type(self, x: Any, *, y: int) -> Any:
        if y < 0 and dtypes.is_integer(x.dtype):
            self.fail(f"expected y >= 0 for integers, got {y} for x of type {x}.")
        return super().result_type(x)

    def reference(self, x: Any, *, y: int) -> Any:
        if dtypes.is_floating(x.dtype) and x.dtype.itemsize == 2:
            return self.reference(np.asarray(x, np.float32), y=y).astype(x.dtype)
        with np.errstate(all="ignore"):
            if y < 0:
                return np.asarray(1 / self.reference(x, y=-y), x.dtype)
            result = np.ones_like(x)
            for _ in range(y.bit_length()):
                result = result * x if y & 1 else result
                x, y = x * x, y >> 1
            return np.asarray(result)


def _lower_integer_pow(b: Any, x: Any, *, y: int) -> Any:
    small = x.dtype if x.dtype in ("f16", "bf16") else None
    x = b.convert(x, "f32") if small else x
    result = None
    factor, exponent = x, -y if y < 0 else y
    while exponent:
        if exponent & 1:
            result = factor if result is None else b.mul(result, factor)
        exponent >>= 1
        if exponent:
            factor = b.mul(factor, factor)
    if result is None:
        result = b.const(1, x.dtype)
    if y < 0:
        result = b.div(b.const(1, x.dtype), result)
    return b.convert(result, small) if small else result


def _integer_pow_jvp(g: Any, out: Any, x: Any, *, y: int) -> Any:
    if y == 0:
        return mul(g, 0)
    return g if y == 1 else mul(g, mul(integer_pow(x, y - 1), y))


def _simplify_integer_pow(node: Any, rewriter: Any) -> Any:
    return replaces(node.inputs[0], node) if node.params["y"] == 1 else None


INTEGER_POW = IntegerPow(
    "integer_pow",
    "iufc",
    lower=_lower_integer_pow,
    jvp=(_integer_pow_jvp,),
    reference=np.power,
    simplify=_simplify_integer_pow,
    cost=3.0,
)


def integer_pow(x: Any, y: int) -> Any:
    """x ** y for a Python integer y.  TypeError for y < 0 where x is an integer array.

    >>> float(integer_pow(3.0, 2))
    9.0
    """
    return INTEGER_POW(x, y=int(y))


SQUARE = Elementwise(
    "square",
    "iufc",
    lower=lambda b, x: b.mul(x, x),
    jvp=(lambda g, out, x: mul(g, mul(x, 2)),),
    reference=np.square,
)


def square(x: Any) -> Any:
    """x * x, elementwise.

    >>> float(square(3.0))
    9.0
    """
    return SQUARE(x)


def reciprocal(x: Any) -> Any:
    """1 / x, elementwise, for floats and complex numbers.

    >>> float(reciprocal(4.0))
    0.25
    """
    return integer_pow(x, -1)


# ---- larger and smaller; NaN if either is


def _tied(g: Any, x: Any, y: Any, out: Any) -> Any:
    """The share of g for x where out is x: all of it, half where y ties, none elsewhere."""
    dtype = type_of(out).dtype
    zero, half, one = (scalar_of(v, dtype) for v in (0, 0.5, 1))
    share = select_n(eq(x, out), zero, select_n(eq(y, out), one, half))
    return mul(g, share)


def _lower_extremum(opcode: str, compare: str) -> Any:
    def lower(b: Any, x: Any, y: Any) -> Any:
        if not hasattr(x, "re"):
            return b.op(opcode, x, y)
        # complex: by the real part, then by the imaginary one; NaN wins
        tied = b.and_(b.eq(x.re, y.re), b.op(compare, x.im, y.im))
        first = b.or_(b.op(compare, x.re, y.re), tied)
        nan = b.or_(b.is_nan(x.re), b.is_nan(x.im))
        return b.select(b.or_(nan, b.and_(first, b.not_(_has_nan(b, y)))), x, y)

    return lower


def _has_nan(b: Any, z: Any) -> Any:
    return b.or_(b.is_nan(z.re), b.is_nan(z.im))


MAX = Elementwise(
    "max",
    "biufc",
    lower=_lower_extremum("max", "gt"),
    jvp=(lambda g, out, x, y: _tied(g, x, y, out), lambda g, out, x, y: _tied(g, y, x, out)),
    reference=np.maximum,
)
MIN = Elementwise(
    "min",
    "biufc",
    lower=_lower_extremum("min", "lt"),
    jvp=(lambda g, out, x, y: _tied(g, x, y, out), lambda g, out, x, y: _tied(g, y, x, out)),
    reference=np.minimum,
)


def max(x: Any, y: Any) -> Any:
    """The larger, elementwise; NaN if either is.  At a tie each gets half of the derivative.

    >>> float(max(1.0, 2.0))
    2.0
    """
    return MAX(x, y)


def min(x: Any, y: Any) -> Any:
    """The smaller, elementwise; NaN if either is.  At a tie each gets half of the derivative.

    >>> float(min(1.0, 2.0))
    1.0
    """
    return MIN(x, y)


class Clamp(Elementwise):
    """min(max(x, low), high).  Complex numbers have values, but no derivative here."""

    def argument(self, i: int) -> str:
        return ("min", "x", "max")[i]


def _inside(g: Any, *conditions: Any) -> Any:
    """g where all conditions hold, else 0."""
    zero = full((), 0, type_of(g).dtype)
    for condition in conditions:
        g = select_n(condition, zero, g)
    return g


CLAMP = Clamp(
    "clamp",
    "iufc",
    lower=lambda b, low, x, high: MIN.formula(b, MAX.formula(b, x, low), high),
    jvp=(
        lambda g, out, low, x, high: _inside(g, gt(low, x), lt(low, high)),
        lambda g, out, low, x, high: _inside(g, gt(x, low), lt(x, high)),
        lambda g, out, low, x, high: _inside(g, lt(high, x)),
    ),
    reference=lambda low, x, high: np.minimum(np.maximum(x, low), high),
    cost=2.0,
)


def clamp(min: Any, x: Any, max: Any) -> Any:
    """x limited to [min, max], elementwise; NaN stays.  The derivative at the limits is 0.

    >>> float(clamp(0.0, 2.0, 1.0))
    1.0
    """
    if type(x) not in NUMBERS:
        aval = type_of(x)
        low, high = (number_as("clamp", v, aval) if type(v) in NUMBERS else v for v in (min, max))
        return CLAMP.bind(low, x, high)
    return CLAMP(min, x, max)
