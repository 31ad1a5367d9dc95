"""exp, exp2, expm1, logistic, sinh, cosh, tanh.

All share one reduction: x = n ln 2 + r with |r| <= ln(2)/2, a polynomial in r, and 2^n put into the
exponent bits.  n is had by adding a large constant (formats.py), so that it is at hand as a float
and as bits.

Start reading at `reduce` and `exp`.
"""

from __future__ import annotations

import math

from jato.compiler.llvm.math import coefficients
from jato.compiler.llvm.math.formats import format_of
from jato.loopir.formula import Value, fast_two_sum, horner, where

LOG2_E = 1 / math.log(2)

# Below the first exp rounds to 0, above the second it overflows.
EXP_RANGE = {"f32": (-104.0, 89.0), "f64": (-746.0, 710.0)}
EXP2_RANGE = {"f32": (-151.0, 129.0), "f64": (-1076.0, 1025.0)}
# Above these sinh and cosh overflow; (their exponent) - 2 still fits.
SINH_LIMIT = {"f32": 89.5, "f64": 710.5}
# Beyond these expm1(-x) is -1, and tanh(x / 2) is 1, to the last bit.
SATURATION = {"f32": 20.0, "f64": 40.0}


def reduce(x: Value) -> tuple[Value, Value, Value]:
    """(bits, r, rest): x = n ln 2 + r + rest, with n in the low bits of `bits`.

    The first part of ln 2 is so short that n times it is exact, and the difference is exact too.
    """
    magic = format_of(x).magic
    high, low = coefficients.LN2[x.dtype]
    shifted = x.fma(LOG2_E, magic)
    n = shifted - magic
    partial = n.fma(-high, x)
    r = n.fma(-low, partial)
    return shifted.bits(), r, n.fma(-low, partial - r)


def power_of_two(bits: Value, like: Value, shift: int = 0) -> Value:
    """2^(n + shift) for n in the low bits, where that is a normal number."""
    form = format_of(like)
    return ((bits << form.mantissa) + ((form.bias + shift) << form.mantissa)).as_float()


def scale(value: Value, bits: Value) -> Value:
    """value * 2^n for n in the low bits, through overflow and into the subnormals.

    2^n itself may be out of range: it is split into two factors, and only the second product
    rounds.
    """
    form = format_of(value)
    n = bits << form.mantissa
    half = n.shift_right_arithmetic(1) & form.exponent_mask
    first = (half + form.one_bits).as_float()
    second = ((n - half) + form.one_bits).as_float()
    return value * first * second


def exp(x: Value) -> Value:
    low, high = EXP_RANGE[x.dtype]
    bits, r, _ = reduce(x.at_least(low).at_most(high))
    return scale(horner(r, coefficients.EXP[x.dtype]), bits)


def exp2(x: Value) -> Value:
    low, high = EXP2_RANGE[x.dtype]
    x = x.at_least(low).at_most(high)
    magic = format_of(x).magic
    shifted = x + magic
    r = x - (shifted - magic)
    return scale(horner(r, coefficients.EXP2[x.dtype]), shifted.bits())


def scaled_expm1(x: Value, shift: int) -> Value:
    """2^shift (e^x - 1) for x in the range of exp.

    2^n (e^r - 1) + (2^n - 1), where r goes in first: it may cancel much of 2^n - 1, and the small
    rest of the series comes last.
    """
    bits, r, rest = reduce(x)
    tail = (r * r).fma(horner(r, coefficients.EXPM1[x.dtype]), rest)
    power = power_of_two(bits, x, shift)
    return power.fma(tail, power.fma(r, power - 2.0**shift))


def expm1(x: Value) -> Value:
    """At half its size, so that 2^n does not overflow before the result does; x itself where half
    of it might lose a bit.
    """
    bounded = x.at_least(-SATURATION[x.dtype]).at_most(EXP_RANGE[x.dtype][1])
    return where(abs(x) < 2.0**-60, x, scaled_expm1(bounded, -1) * 2.0)


def logistic(x: Value) -> Value:
    """z = e^-|x| never overflows: 1 / (1 + z) or, keeping the last bits of z, z / (1 + z).

    z is carried 2^64 too large, so that its power of two is a normal number and a subnormal
    result is rounded once, and in two parts, z + z_low; the quotient is repaired by its remainder.
    """
    bits, r, _ = reduce((-abs(x)).at_least(EXP_RANGE[x.dtype][0]))
    s = r * horner(r, coefficients.EXP[x.dtype][1:])
    p = s + 1.0
    p_low = s - (p - 1.0)
    power = power_of_two(bits, x, 64)
    z, z_low = p * power, p_low * power
    divisor, lost = fast_two_sum(x.constant(1.0), z * 2.0**-64)
    lost = z_low.fma(2.0**-64, lost)
    inverse = 1.0 / divisor
    negative = x < 0.0
    top, top_low = where(negative, z, 2.0**64), where(negative, z_low, 0.0)
    quotient = top * inverse
    remainder = (-quotient).fma(lost, (-quotient).fma(divisor, top)) + top_low
    return remainder.fma(inverse, quotient) * 2.0**-64


def sinh(x: Value) -> Value:
    """Odd polynomial up to 1, then 2 e - 1/(8 e) with e = e^|x| / 4, as in cosh."""
    square = x * x
    small = (square * x).fma(horner(square, coefficients.SINH[x.dtype]), x)
    e = quarter_exp(x)
    large = e.fma(2.0, -0.125 / e)
    return where(abs(x) < 1.0, small, large).copysign(x)


def cosh(x: Value) -> Value:
    """2 e + 1/(8 e) with e = e^|x| / 4: overflows only when the result does."""
    e = quarter_exp(x)
    return e.fma(2.0, 0.125 / e)


def quarter_exp(x: Value) -> Value:
    """e^|x| / 4, and enough to overflow twice that when |x| is large."""
    bits, r, _ = reduce(abs(x).at_most(SINH_LIMIT[x.dtype]))
    return horner(r, coefficients.EXP[x.dtype]) * power_of_two(bits, x, -2)


def tanh(x: Value) -> Value:
    """Odd polynomial up to 5/8, then 1 - 2/(e^(2|x|) + 1)."""
    square = x * x
    small = (square * x).fma(horner(square, coefficients.TANH[x.dtype]), x)
    bits, r, _ = reduce((abs(x) * 2.0).at_most(SATURATION[x.dtype]))
    e = horner(r, coefficients.EXP[x.dtype]) * power_of_two(bits, x)
    large = 1.0 - 2.0 / (e + 1.0)
    return where(abs(x) < 0.625, small, large).copysign(x)
