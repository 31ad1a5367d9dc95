"""Elementwise arithmetic, rounding and complex parts.

Entries first, each followed by the function that users call (jax.lax's names).  Integers wrap;
division never traps.  Functions take arrays of one dtype and one shape, or scalars; a Python
number takes the dtype of the array beside it.

Comparison, choice and bits are in selection.py; exp, log and their kin in transcendental.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import fail
from jato.core.types import type_of
from jato.ops.elementwise_family import (
    ADD,
    Elementwise,
    is_negative_zero,
    replaces,
    scalar_value,
)
from jato.ops.selection import eq, ge, select_n
from jato.ops.shapes import scalar_of
from jato.ops.structural import full_like


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


def mul(x: Any, y: Any) -> Any:
    """x * y, elementwise.

    >>> float(mul(3.0, 2))
    6.0
    """
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


# ---- sign and magnitude


def _reference_abs(x: Any) -> Any:
    if x.dtype.kind == "c":
        return np.hypot(x.real, x.imag)
    return np.abs(x)


def _abs_jvp(g: Any, out: Any, x: Any) -> Any:
    dtype = type_of(x).dtype
    if dtypes.is_complex(dtype):
        safe = select_n(eq(out, 0), out, scalar_of(1, type_of(out).dtype))
        return div(real(mul(g, conj(x))), safe)
    return select_n(ge(x, 0), neg(g), g)


ABS = Elementwise(
    "abs",
    "iufc",
    gives="real",
    lower=lambda b, x: x if x.dtype[0] == "u" else b.abs(x),
    jvp=(_abs_jvp,),
    reference=_reference_abs,
)


def abs(x: Any) -> Any:
    """The magnitude, elementwise; real for complex x.  The derivative at 0 is that from above.

    >>> float(abs(-1.5))
    1.5
    """
    return ABS(x)


def _lower_sign(b: Any, x: Any) -> Any:
    if hasattr(x, "re"):
        size = b.abs(x)
        size = b.select(b.eq(size, 0), b.const(1, size.dtype), size)
        return b.complex(b.div(x.re, size), b.div(x.im, size))
    one = b.const(1, x.dtype)
    if x.dtype[0] == "u":
        return b.select(b.ne(x, 0), one, x)
    return b.select(b.gt(x, 0), one, b.select(b.lt(x, 0), b.const(-1, x.dtype), x))


def _complex_sign_jvp(g: Any, out: Any, x: Any) -> Any:
    """Of z / |z|: the part of g at right angles to z, over |z|."""
    size = abs(x)
    size = select_n(eq(size, 0), size, scalar_of(1, type_of(size).dtype))
    along = mul(out, complex(real(mul(g, conj(out))), 0))
    return div(sub(g, along), complex(size, 0))


class Sign(Elementwise):
    """Only complex numbers have a sign with a derivative."""

    def rules_of(self, primals: Any) -> Any:
        return (_complex_sign_jvp if dtypes.is_complex(type_of(primals[0]).dtype) else None,)


def _reference_sign(x: Any) -> Any:
    return np.where(x == 0, x, np.sign(x))  # keeps -0.0, as JAX does


SIGN = Sign("sign", "iufc", lower=_lower_sign, jvp=(None,), reference=_reference_sign)


def sign(x: Any) -> Any:
    """-1, 0 or 1; signed zeros and NaN stay; x / |x| for complex numbers.

    >>> float(sign(-2.5))
    -1.0
    """
    return SIGN(x)


COPYSIGN = Elementwise(
    "copysign",
    "f",
    lower="copysign",
    jvp=(lambda g, out, x, y: mul(g, mul(sign_of_bit(x), sign_of_bit(y))), None),
    reference=np.copysign,
)


def sign_of_bit(x: Any) -> Any:
    """1 or -1 by the sign bit, for zeros and NaN too."""
    return COPYSIGN(full_like(x, 1), x)


def copysign(x: Any, y: Any) -> Any:
    """The magnitude of x with the sign of y, elementwise.

    >>> float(copysign(1.0, -0.0))
    -1.0
    """
    return COPYSIGN(x, y)


# ---- rounding


def _rounding(name: str, opcode: Any, reference: Any) -> Elementwise:
    return Elementwise(name, "f", lower=opcode, jvp=(None,), reference=reference)


FLOOR = _rounding("floor", "floor", np.floor)
CEIL = _rounding("ceil", "ceil", np.ceil)
TRUNC = _rounding("trunc", "trunc", np.trunc)


def floor(x: Any) -> Any:
    """The largest integer at most x, as a float.

    >>> float(floor(1.5))
    1.0
    """
    return FLOOR(x)


def ceil(x: Any) -> Any:
    """The smallest integer at least x, as a float.

    >>> float(ceil(1.5))
    2.0
    """
    return CEIL(x)


def trunc(x: Any) -> Any:
    """x without its fraction, as a float.

    >>> float(trunc(-1.5))
    -1.0
    """
    return TRUNC(x)


def _lower_round(b: Any, x: Any, *, to_even: bool) -> Any:
    if to_even:
        return b.round_even(x)
    whole = b.trunc(x)  # x - whole is exact, which x + 0.5 is not
    half = b.ge(b.abs(b.sub(x, whole)), b.const(0.5, x.dtype))
    return b.select(half, b.add(whole, b.copysign(b.const(1, x.dtype), x)), whole)


def _reference_round(x: Any, *, to_even: bool) -> Any:
    if to_even:
        return np.rint(x)
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole)


ROUND = Elementwise(
    "round", "f", lower=_lower_round, jvp=(None,), reference=_reference_round, cost=2.0
)


class RoundingMethod:
    """How `round` treats halves: AWAY_FROM_ZERO (0) or TO_NEAREST_EVEN (1)."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: Any, rounding_method: Any = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """To the nearest integer, as a float; halves by rounding_method.

    >>> float(round(2.5)), float(round(2.5, RoundingMethod.TO_NEAREST_EVEN))
    (3.0, 2.0)
    """
    method = int(rounding_method)
    if method not in (0, 1):
        fail(ValueError, "round", f"expected rounding_method 0 or 1, got {rounding_method!r}.")
    return ROUND(x, to_even=method == 1)


def _lower_is_finite(b: Any, x: Any) -> Any:
    return b.lt(b.abs(x), b.const(float("inf"), x.dtype))


IS_FINITE = Elementwise(
    "is_finite", "f", gives="bool", lower=_lower_is_finite, jvp=(None,), reference=np.isfinite
)


def is_finite(x: Any) -> Any:
    """Is x neither infinite nor NaN?  (floats)

    >>> bool(is_finite(1.0))
    True
    """
    return IS_FINITE(x)


class NextAfter(Elementwise):
    """The next float after x towards y; 16-bit floats step in their own format."""

    def reference(self, x: Any, y: Any) -> Any:
        x, y = np.broadcast_arrays(x, y)
        return np.where(x == y, y, np.nextafter(x, y))


def _lower_nextafter(b: Any, x: Any, y: Any) -> Any:
    if x.dtype not in ("f16", "bf16"):
        return b.nextafter(x, y)
    # the bits of a positive float, as an integer, are its rank among the positive floats
    bits = b.bitcast(x, "u16")
    one = b.const(1, "u16")
    up = b.eq(b.lt(x, y), b.gt(x, b.const(0, x.dtype)))
    stepped = b.select(up, b.add(bits, one), b.sub(bits, one))
    sign_bit = b.and_(b.bitcast(y, "u16"), b.const(0x8000, "u16"))
    stepped = b.select(b.eq(x, 0), b.or_(sign_bit, one), stepped)
    result = b.select(b.eq(x, y), y, b.bitcast(stepped, x.dtype))
    return b.select(b.or_(b.is_nan(x), b.is_nan(y)), b.add(x, y), result)


NEXTAFTER = NextAfter(
    "nextafter",
    "f",
    lower=_lower_nextafter,
    jvp=(lambda g, out, x, y: g, None),
    reference=np.nextafter,
    cost=6.0,
)


def nextafter(x: Any, y: Any) -> Any:
    """The next representable float after x in the direction of y.

    >>> float(nextafter(0.0, 1.0)) > 0
    True
    """
    return NEXTAFTER(x, y)


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


# ---- complex parts


REAL = Elementwise(
    "real",
    "c",
    gives="real",
    lower=lambda b, x: x.re,
    jvp=(lambda g, out, x: real(g),),
    transpose=(lambda ct, x: complex(ct, 0),),
    reference=np.real,
    simplify=lambda node, rewriter: _part_of_complex(node, rewriter, 0),
)
IMAG = Elementwise(
    "imag",
    "c",
    gives="real",
    lower=lambda b, x: x.im,
    jvp=(lambda g, out, x: imag(g),),
    transpose=(lambda ct, x: complex(0, neg(ct)),),
    reference=np.imag,
    simplify=lambda node, rewriter: _part_of_complex(node, rewriter, 1),
)


def _reference_complex(x: Any, y: Any) -> Any:
    x, y = np.broadcast_arrays(x, y)
    out = np.empty(x.shape, np.result_type(x, np.complex64))
    out.real, out.imag = x, y
    return out


class Complex(Elementwise):
    """Real and imaginary part to complex; there are no 16-bit complex numbers."""

    def result_code(self, aval: Any) -> int:
        if aval.itemsize == 2:
            self.fail(f"expected x and y of dtype float32 or float64, got {aval}.")
        return super().result_code(aval)


COMPLEX = Complex(
    "complex",
    "f",
    gives="complex",
    lower=lambda b, x, y: b.complex(x, y),
    jvp=(lambda g, out, x, y: complex(g, 0), lambda g, out, x, y: complex(0, g)),
    transpose=(lambda ct, x, y: real(ct), lambda ct, x, y: neg(imag(ct))),
    reference=_reference_complex,
)
CONJ = Elementwise(
    "conj",
    "c",
    lower=lambda b, x: b.complex(x.re, b.neg(x.im)),
    jvp=(lambda g, out, x: conj(g),),
    transpose=(lambda ct, x: conj(ct),),
    reference=np.conj,
)


def _part_of_complex(node: Any, rewriter: Any, i: int) -> Any:
    inner = rewriter.producer(node.inputs[0])  # real(complex(x, y)) -> x
    if inner is not None and inner.primitive is COMPLEX:
        return replaces(inner.inputs[i], node)
    return None


def real(x: Any) -> Any:
    """The real part of a complex array.

    >>> float(real(1 + 2j))
    1.0
    """
    return REAL(x)


def imag(x: Any) -> Any:
    """The imaginary part of a complex array.

    >>> float(imag(1 + 2j))
    2.0
    """
    return IMAG(x)


def complex(x: Any, y: Any) -> Any:
    """x + 1j * y, elementwise, of two float arrays (float32 or float64).

    >>> complex(1.0, 2.0).dtype.name
    'complex64'
    """
    return COMPLEX(x, y)


def conj(x: Any) -> Any:
    """The complex conjugate; real x gives a complex array.

    >>> conj(1 + 2j).dtype.name
    'complex64'
    """
    if not dtypes.is_complex(type_of(x).dtype):
        return complex(x, 0)
    return CONJ(x)
