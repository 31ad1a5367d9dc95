"""asin, acos, atan, atan2.

asin and acos: x itself up to 1/2, beyond it asin x = pi/2 - 2 asin(sqrt((1 - x)/2)); one odd
polynomial serves both.  atan and atan2: the ratio at most 1, and pi/2 - atan(1/t) beyond.
Multiples of pi/2 enter in two parts, the second one together with the small term.

Start reading at `asin`.
"""

from __future__ import annotations

from jato.compiler.llvm.math import coefficients
from jato.compiler.llvm.math.formats import format_of
from jato.loopir.formula import Value, fast_two_sum, horner, where


def asin_half(a: Value) -> tuple[Value, Value, Value]:
    """(large, t, s) for a = |x|: t + s = asin a if a <= 1/2, else asin sqrt((1 - a)/2)."""
    large = a > 0.5
    square = where(large, a.fma(-0.5, 0.5), a * a)
    t = where(large, square.sqrt(), a)
    return large, t, t * square * horner(square, coefficients.ASIN[a.dtype])


def asin(x: Value) -> Value:
    large, t, s = asin_half(abs(x))
    high, low, _ = coefficients.HALF_PI[x.dtype]
    difference, lost = fast_two_sum(x.constant(high), t * -2.0)
    return where(large, difference + (s.fma(-2.0, low) + lost), t + s).copysign(x)


def acos(x: Value) -> Value:
    """2 p for x > 1/2, pi - 2 p for x < -1/2, pi/2 - asin x between."""
    large, t, s = asin_half(abs(x))
    p = t + s
    part = flip_sign(where(large, p * 2.0, -p), x)
    negative = x < 0.0
    bases = []
    for pi, half_pi in zip(coefficients.PI[x.dtype][:2], coefficients.HALF_PI[x.dtype][:2], strict=True):
        bases.append(where(large, where(negative, x.constant(pi), 0.0), half_pi))
    return bases[0] + (part + bases[1])


def flip_sign(value: Value, sign: Value) -> Value:
    """value, negated where `sign` is negative (-0 included)."""
    form = format_of(value)
    sign_bit = 1 << (form.mantissa + form.bias.bit_length() + 1)
    return (value.bits() ^ (sign.bits() & sign_bit)).as_float()


def atan_of_ratio(t: Value) -> Value:
    """atan t for |t| <= 1."""
    square = t * t
    return (t * square).fma(horner(square, coefficients.ATAN[t.dtype]), t)


def atan(x: Value) -> Value:
    a = abs(x)
    large = a > 1.0
    t = where(large, 1.0 / a, a)
    p = atan_of_ratio(t)
    high, low, _ = coefficients.HALF_PI[x.dtype]
    return where(large, high - (p - low), p).copysign(x)


def atan2(y: Value, x: Value) -> Value:
    """The angle of (x, y): atan of the smaller over the larger, then put into its octant.

    Where the two are equal the quotient would be 1 but for 0/0 and inf/inf.
    """
    a, b = abs(x), abs(y)
    swap = b > a
    smaller, larger = where(swap, a, b), where(swap, b, a)
    same = where(larger.eq(0.0), larger, 1.0)
    t = where(smaller.eq(larger), same, smaller / larger)
    p = atan_of_ratio(t)
    negative = x.constant(1.0).copysign(x) < 0.0
    part = where(swap ^ negative, -p, p)
    bases = []
    for pi, half_pi in zip(coefficients.PI[x.dtype][:2], coefficients.HALF_PI[x.dtype][:2], strict=True):
        bases.append(where(swap, x.constant(half_pi), where(negative, x.constant(pi), 0.0)))
    return (bases[0] + (part + bases[1])).copysign(y)
