"""sin, cos, tan over the whole range.

sin and cos are reduced modulo pi, not pi/2: sin x = sin r with |r| <= pi/2 and the sign of the
quotient's parity on r.  One polynomial serves, with two terms more than for pi/4, and the
reduction is a single value, so that the rare path can supply it too.

  |x| below a limit     Cody and Waite: x - n pi with pi in three parts and fma; the first
                        difference is exact (n times the first part has no bits below those of x)
  above                 Payne and Hanek: x times the bits of 1/pi that matter for its exponent; what
                        is dropped or overflows is multiples of 2.  f32 does this in f64, f64 in
                        integers.  The path is entered only if some lane needs it (`if_any`).

Start reading at `sin`, then `turns`.
"""

from __future__ import annotations

import math

from jato.compiler.llvm.math import coefficients
from jato.compiler.llvm.math.formats import format_of
from jato.loopir.formula import Value, fast_two_sum, horner, if_any, two_product, where

# Where the first difference of Cody and Waite is still exact and the quotient still right.
LIMIT_EXPONENT = {"f32": 17, "f64": 45}


def sin(x: Value) -> Value:
    form = format_of(x)
    shifted = x.fma(1 / math.pi, form.magic)
    r = subtract_multiple(x, shifted - form.magic, coefficients.PI[x.dtype])
    r = flip_if_odd(r, shifted)
    r = if_any(is_large(x), lambda: reflected(x, quarter=False), r)
    return sin_reduced(r)


def cos(x: Value) -> Value:
    """sin(x + pi/2): the multiple of pi taken off is half-odd."""
    form = format_of(x)
    shifted = x.fma(1 / math.pi, -0.5) + form.magic
    n = (shifted - form.magic) + 0.5
    r = subtract_multiple(x, n, coefficients.PI[x.dtype])
    r = flip_if_odd(-r, shifted)
    r = if_any(is_large(x), lambda: reflected(x, quarter=True), r)
    return sin_reduced(r)


def subtract_multiple(x: Value, n: Value, parts: tuple[float, ...]) -> Value:
    for part in parts:
        x = n.fma(-part, x)
    return x


def flip_if_odd(r: Value, shifted: Value) -> Value:
    """-r if the integer in the low bits of `shifted` is odd."""
    form = format_of(r)
    sign = shifted.bits() << (form.mantissa + form.bias.bit_length() + 1)
    return (r.bits() ^ sign).as_float()


def is_large(x: Value) -> Value:
    return abs(x) >= 2.0 ** LIMIT_EXPONENT[x.dtype]


def sin_reduced(r: Value) -> Value:
    """sin r for |r| <= pi/2, never beyond 1 and with the sign of a zero."""
    square = r * r
    value = (square * r).fma(horner(square, coefficients.SIN[r.dtype]), r)
    return abs(value).at_most(1.0).copysign(r)


def tan(x: Value) -> Value:
    """tan y or -1/tan y, where x = k pi/2 + y; y is carried in two parts."""
    form = format_of(x)
    first, second, third = coefficients.HALF_PI[x.dtype]
    shifted = x.fma(2 / math.pi, form.magic)
    k = shifted - form.magic
    partial = k.fma(-first, x)
    product, product_low = two_product(k, x.constant(second))
    y = partial - product
    y_low = k.fma(-third, ((partial - y) - product) - product_low)
    odd = (shifted.bits() & 1).ne(0)
    return if_any(is_large(x), lambda: tan_large(x), tan_reduced(y, y_low, odd))


def tan_reduced(y: Value, y_low: Value, odd: Value) -> Value:
    square = y * y
    small = (square * y).fma(horner(square, coefficients.TAN[y.dtype]), square.fma(y_low, y_low))
    t = y + small
    return where(odd, -1.0 / t, t.copysign(y))


# ---- Payne and Hanek for f32, in f64


def turns(x: Value) -> Value:
    """x / pi modulo 2, in about [-1, 1], for large x in f32; NaN for infinities.

    1/pi is cut into 29 + 29 + 53 bits, from where the multiples of 2 end: one cut for each of four
    ranges of x, 2^28 wide.  The first two products are exact in f64 (24 + 29 bits), and so is
    their sum once the first is taken modulo 2; the third is below 2^-6.
    """
    wide, magnitude = x.convert("f64"), abs(x)
    first, *others = coefficients.INVERSE_PI_CUTS["f32"]
    factors = [wide.constant(factor) for factor in first[1:]]
    for limit, *row in others:
        beyond = magnitude >= limit
        factors = [where(beyond, f, old) for f, old in zip(row, factors, strict=True)]
    part = modulo_2(wide * factors[0])
    part = modulo_2(wide.fma(factors[1], part))
    return wide.fma(factors[2], part)


def modulo_2(x: Value) -> Value:
    return (x * 0.5).round_even().fma(-2.0, x)


def reflected_f32(x: Value, quarter: bool) -> Value:
    """r with |r| <= pi/2 and sin r = sin x (quarter: cos x)."""
    f = turns(x)
    g = abs(f)
    r = 0.5 - g if quarter else g.at_most(1.0 - g) * f.constant(1.0).copysign(f)
    return (r * math.pi).convert("f32")


def tan_large_f32(x: Value) -> Value:
    f = turns(x) * 2.0
    k = f.round_even()
    y = (f - k) * (math.pi / 2)
    first = y.convert("f32")
    return tan_reduced(first, (y - first.convert("f64")).convert("f32"), abs(k).eq(1.0))


# ---- Payne and Hanek for f64, in 64-bit integers


def tan_large(x: Value) -> Value:
    """H = 2 x / pi mod 2: the parity is whether |H| > 1/2, and then H - 1 is what is left."""
    if x.dtype == "f32":
        return tan_large_f32(x)
    high, low = fraction(x)
    high, low = (high << 1) | (low >> 63), low << 1
    odd = top_bits_differ(high)
    y, y_low = angle(where(odd, high + (1 << 63), high), low, coefficients.HALF_PI[x.dtype])
    return tan_reduced(y, y_low, odd) + (x - x)  # x - x: NaN for infinities


def reflected(x: Value, quarter: bool) -> Value:
    """r with |r| <= pi/2 and sin r = sin x (quarter: cos x) from F = x / pi mod 2.

    F in [-1, 1); sin(pi F) = sin(pi (1 - F)), and 1 - F = -1 - F (mod 2).
    """
    if x.dtype == "f32":
        return reflected_f32(x, quarter)
    high, low = fraction(x)
    if quarter:
        high = high + (1 << 62)
    outside = top_bits_differ(high)
    minus_high, minus_low = negate(high, low)
    high, low = where(outside, minus_high + (1 << 63), high), where(outside, minus_low, low)
    r, r_low = angle(high, low, coefficients.PI[x.dtype])
    return r + r_low + (x - x)


def negate(high: Value, low: Value) -> tuple[Value, Value]:
    return ~high + where(low.eq(0), high.constant(1), 0), 0 - low


def top_bits_differ(high: Value) -> Value:
    """Whether a fraction, 2^63 being 1, lies outside [-1/2, 1/2)."""
    return ((high ^ (high << 1)) >> 63).ne(0)


def angle(high: Value, low: Value, unit: tuple[float, ...]) -> tuple[Value, Value]:
    """The 128-bit fraction (signed, 2^127 is 1) times `unit`, in two parts."""
    # The nearest multiple of 2^11 converts exactly; what is left has the other bits and its sign.
    exact = (high + 0x400) & ~0x7FF
    top = exact.bitcast("i64").convert("f64") * 2.0**-63
    excess = (high - exact).bitcast("i64").convert("f64")
    rest = excess.fma(2.0**-63, low.convert("f64") * 2.0**-127)
    product, product_low = two_product(top, top.constant(unit[0]))
    return fast_two_sum(product, rest.fma(unit[0], top.fma(unit[1], product_low)))


def fraction(x: Value) -> tuple[Value, Value]:
    """x / pi modulo 2 for large x in f64, as a signed 128-bit number (high, low), 2^127 being 1.

    x = M 2^(E - c) with an integer M, so x / pi = M (2^(E - c) / pi), of which only the bits
    below 2 matter: three words from position E of the expansion of 1/pi.
    """
    form = format_of(x)
    bits = x.bits()
    lowest = form.bias + LIMIT_EXPONENT[x.dtype]  # the biased exponent that begins at word 0
    position = ((bits >> form.mantissa) & (2 * form.bias + 1)) - lowest
    significand = (bits & form.mantissa_mask) | (1 << form.mantissa)
    table = [position.constant(word) for word in coefficients.INVERSE_PI_WORDS]
    for step in (8, 4, 2, 1):
        # Barrel shifter: drop `step` words where that bit of the word number is set, and keep as
        # many as the smaller steps can still reach.
        chosen = (position & (64 * step)).ne(0)
        table = [where(chosen, table[i + step], table[i]) for i in range(step + 3)]
    shift = position & 63
    back = 64 - shift
    first, second, third = [(table[i] << shift) | (table[i + 1] >> back) for i in range(3)]
    carry_in = significand.mulhi(third)
    low = significand * second + carry_in
    carry = where(low < carry_in, low.constant(1), 0)
    high = significand * first + significand.mulhi(second) + carry
    minus_high, minus_low = negate(high, low)
    negative = (bits >> 63).ne(0)
    return where(negative, minus_high, high), where(negative, minus_low, low)
