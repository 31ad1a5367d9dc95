"""log, log2, log10, log1p, and the inverse hyperbolic functions asinh, acosh, atanh.

x = 2^e (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), read off the bits; log(1 + f) = f + tail, where
the tail, about -f^2/2, is a polynomial and small enough for its rounding not to matter.  f32 takes
the polynomial in f; f64 would need twenty terms of it and takes s = f / (2 + f) instead (Tang; as in
fdlibm).  The rarer functions of f32 are computed in f64 with short polynomials ("wide").

Start reading at `split` and `log`.
"""

from __future__ import annotations

import math

from jato.compiler.llvm.math import coefficients
from jato.compiler.llvm.math.formats import format_of
from jato.loopir.formula import Value, fast_two_sum, horner, where

INFINITY, NAN = math.inf, math.nan


def split_bits(bits: Value, like: Value) -> tuple[Value, Value]:
    """(1 + f, e plus magic): the significand in [sqrt(1/2), sqrt(2)) and the exponent as the bits
    of magic + e.
    """
    form = format_of(like)
    sqrt_half = like.constant(math.sqrt(0.5)).bits()
    offset = bits - sqrt_half
    significand = ((offset & form.mantissa_mask) + sqrt_half).as_float()
    return significand, offset.shift_right_arithmetic(form.mantissa) + form.magic_bits


def split(x: Value) -> tuple[Value, Value]:
    """(f, e) with x = 2^e (1 + f), subnormal x included."""
    form = format_of(x)
    tiny = x < form.smallest_normal
    lift = float(form.mantissa + 1)
    significand, biased = split_bits(where(tiny, x * 2.0**lift, x).bits(), x)
    e = biased.as_float() - where(tiny, x.constant(form.magic + lift), form.magic)
    return significand - 1.0, e


def tail(f: Value, tier: str = "") -> Value:
    """log(1 + f) - f."""
    tier = tier or f.dtype
    if tier == "f32":
        return (f * f) * horner(f, coefficients.LOG1P[tier])
    s = f / (f + 2.0)
    square = s * s
    half = f * f * 0.5
    return s.fma(square.fma(horner(square, coefficients.LOG_S[tier]), half), -half)


def with_special_values(x: Value, result: Value, zero: float = 0.0) -> Value:
    """-inf at `zero`, NaN below and for NaN, +inf at +inf."""
    outside = where(x.eq(zero), x.constant(-INFINITY), NAN)
    return where(x > zero, where(x < INFINITY, result, x), outside)


def log(x: Value) -> Value:
    f, e = split(x)
    return with_special_values(x, assemble(e, f, tail(f)))


def assemble(e: Value, f: Value, small: Value) -> Value:
    """e ln 2 + f + small."""
    high, low = coefficients.LN2[f.dtype]
    return e.fma(high, e.fma(low, small) + f)


def log2(x: Value) -> Value:
    f, e = split(x)
    return with_special_values(x, in_base(coefficients.LOG2_E[x.dtype], f, e, e * 0.0))


def log10(x: Value) -> Value:
    f, e = split(x)
    high, low = coefficients.LOG10_2[x.dtype]
    return with_special_values(x, in_base(coefficients.LOG10_E[x.dtype], f, e * high, e * low))


def in_base(factor: tuple[float, ...], f: Value, whole: Value, small: Value) -> Value:
    """whole + small + log(1 + f) * factor, the sum of the two large parts without an error."""
    high, low = factor
    product = f * high
    rest = f.fma(high, -product)
    rest = tail(f).fma(high, f.fma(low, rest)) + small
    total, lost = fast_two_sum(whole, product)
    # whole = 0 has the smaller magnitude, but then nothing is lost either
    return total + (lost + rest)


def log1p(x: Value) -> Value:
    result = log1p_of_sum(x, None, None)
    return with_special_values(x, result, -1.0).copysign(x)


def log1p_of_sum(x: Value, x_low: Value | None, extra: Value | None, tier: str = "") -> Value:
    """log(1 + x + x_low) + extra ln 2, for x > -1.

    e comes from the rounded sum 1 + x; f = x 2^-e + (2^-e - 1) is then exact up to one rounding.
    2^-e may be subnormal: it is made 2^64 too large first.
    """
    form = format_of(x)
    _, biased = split_bits((x + 1.0).bits(), x)
    # magic + e in the low bits -> the exponent bits of 2^(64 - e)
    scaled = (form.bias + 64 + form.magic_bits - biased) << form.mantissa
    power = scaled.as_float() * 2.0**-64
    f = x.fma(power, power - 1.0)
    small = tail(f, tier)
    if x_low is not None:
        small = (x_low * power).fma(1.0 - f, small)  # 1 - f for 1 / (1 + f): x_low is that small
    e = biased.as_float() - form.magic
    if extra is not None:
        e = e + extra
    return assemble(e, f, small)


def asinh(x: Value) -> Value:
    """log(1 + a + (sqrt(1 + a^2) - 1)), or log(2 a) for large a = |x|."""
    a = abs(x)
    if x.dtype == "f32":
        wide = a.convert("f64")
        square = wide * wide
        z = wide + square / ((square + 1.0).sqrt() + 1.0)
        result = log1p_of_sum(z, None, None, "wide").convert("f32")
        return where(a < INFINITY, result, a).copysign(x)
    square = a * a
    z, z_low = fast_two_sum(a, square / ((square + 1.0).sqrt() + 1.0))
    result = log_of_double(a, z, z_low)
    return where(a < INFINITY, result, a).copysign(x)


def log_of_double(a: Value, z: Value, z_low: Value) -> Value:
    """log(2 a) where a is so large that it says it all, else log(1 + z + z_low)."""
    large = a > 2.0**100  # a^2 may overflow later; 1 + a rounds to a
    z, z_low = where(large, a, z), where(large, 0.0, z_low)
    return log1p_of_sum(z, z_low, where(large, a.constant(1.0), 0.0))


def acosh(x: Value) -> Value:
    """With t = x - 1: log(1 + t + sqrt(2 t + t^2))."""
    if x.dtype == "f32":
        t = x.convert("f64") - 1.0
        z = t + t.fma(t, t * 2.0).sqrt()
        result = log1p_of_sum(z, None, None, "wide").convert("f32")
    else:
        t = x - 1.0
        square = t.fma(t, t * 2.0)
        square_low = t.fma(t, t * 2.0 - square)
        root = square.sqrt()
        root_low = ((-root).fma(root, square) + square_low) / (root * 2.0)
        z, z_low = fast_two_sum(root, t)
        result = log_of_double(x, z, where(t > 0.0, z_low + root_low, 0.0))
    return where(x >= 1.0, where(x < INFINITY, result, x), NAN)


def atanh(x: Value) -> Value:
    """log(1 + 2 a / (1 - a)) / 2 with a = |x|."""
    a = abs(x)
    if x.dtype == "f32":
        wide = a.convert("f64")
        z = wide * 2.0 / (1.0 - wide)
        result = (log1p_of_sum(z, None, None, "wide") * 0.5).convert("f32")
    else:
        divisor, lost = fast_two_sum(x.constant(1.0), -a)
        z = a * 2.0 / divisor
        remainder = (-z).fma(lost, (-z).fma(divisor, a * 2.0))
        result = log1p_of_sum(z, remainder / divisor, None) * 0.5
    return where(a < 1.0, result, where(a.eq(1.0), a.constant(INFINITY), NAN)).copysign(x)
