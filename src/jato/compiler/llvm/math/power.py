"""pow, and the roots: rsqrt, cbrt, hypot; nextafter.

pow is 2^(y log2 |x|) with the logarithm in more precision than the result: f64 for f32, a sum of
two f64 (some 66 bits) for f64, because an error in the exponent is multiplied by up to 1000.

Start reading at `pow`.
"""

from __future__ import annotations

import math

from jato.compiler.llvm.math import coefficients
from jato.compiler.llvm.math.exponential import power_of_two, reduce, scale
from jato.compiler.llvm.math.formats import FORMATS, format_of
from jato.compiler.llvm.math.logarithm import split, split_bits, tail
from jato.loopir.formula import Value, fast_two_sum, horner, if_any, two_product, where

INFINITY, NAN = math.inf, math.nan


def pow(x: Value, y: Value) -> Value:
    a = abs(x)
    result = pow_wide(a, y) if x.dtype == "f32" else pow_double(a, y)
    # C99's table of special values.
    half = y * 0.5
    is_integer = y.trunc().eq(y)
    is_odd = is_integer & half.trunc().ne(half)
    has_no_value = (x < 0.0) & a.ne(INFINITY) & ~is_integer
    sign = where(is_odd, x, 1.0)
    result = where(has_no_value, NAN, result.copysign(sign))
    return where(y.eq(0.0), 1.0, result)


def exact_ends(a: Value, logarithm: Value) -> Value:
    """The logarithm of a with -inf at 0, +inf at +inf and NaN for NaN."""
    return where(a.eq(0.0), -INFINITY, where(a < INFINITY, logarithm, a))


def pow_wide(a: Value, y: Value) -> Value:
    """|x|^y for f32, in f64: relative error 2^-34 of the exponent."""
    wide = a.convert("f64")
    significand, biased = split_bits(wide.bits(), wide)
    f = significand - 1.0
    e = biased.as_float() - FORMATS["f64"].magic
    log2 = (f + tail(f, "wide")).fma(1 / math.log(2), e)
    log2 = exact_ends(wide, log2)
    # 0 * y is NaN for infinite and NaN y, but 1^y is 1.
    exponent = where(log2.eq(0.0), log2, log2 * y.convert("f64"))
    exponent = exponent.at_least(-200.0).at_most(200.0)
    magic = FORMATS["f64"].magic
    shifted = exponent + magic
    r = exponent - (shifted - magic)
    value = horner(r, coefficients.EXP2["wide"])
    return (value * power_of_two(shifted.bits(), value)).convert("f32")


def pow_double(a: Value, y: Value) -> Value:
    """|x|^y for f64, some 0.6 ULP."""
    log, log_low = log_in_two_parts(a)
    log = exact_ends(a, log)
    product, product_low = two_product(log, y)
    product_low = y.fma(log_low, product_low)
    # 1^y is 1 for every y.  Out of range the low part may be NaN and is of no importance.
    is_one = log.eq(0.0)
    in_range = (abs(product) < 800.0) & ~is_one
    product = where(is_one, log, product)
    product = product.at_least(-800.0).at_most(800.0)
    bits, r, rest = reduce(product)
    # 1 + r + (r^2 ... + rest), rounded once: exact powers come out exact.
    rest = where(in_range, product_low + rest, 0.0)
    sum_high, sum_low = fast_two_sum(r.constant(1.0), r)
    small = r * r * horner(r, coefficients.EXPM1["f64"])
    small = rest.fma(sum_high + small, small)
    return scale(sum_high + (sum_low + small), bits)


def log_in_two_parts(a: Value) -> tuple[Value, Value]:
    """log a as a sum, relative error about 2^-65.

    s = f / (2 + f); log(1 + f) = 2 s + s^3 (2/3 + s^2 Q(s^2)).  s, s^2 and the factor with 2/3 in
    two parts each; Q's term is 2^-12 of the whole and needs no more than it has.
    """
    f, e = split(a)
    divisor, lost = fast_two_sum(f.constant(2.0), f)
    inverse = 1.0 / divisor
    s = f * inverse
    s_low = (-s).fma(lost, (-s).fma(divisor, f)) * inverse
    square, square_low = two_product(s, s)
    square_low = (s * 2.0).fma(s_low, square_low)
    two_thirds, two_thirds_low = coefficients.TWO_THIRDS["f64"]
    q = horner(square, coefficients.LOG_Q["f64"])
    factor, factor_low = fast_two_sum(s.constant(two_thirds), square * q)
    factor_low = factor_low + two_thirds_low
    cube, cube_low = two_product(square, s)
    cube_low = square.fma(s_low, square_low.fma(s, cube_low))
    term, term_low = two_product(cube, factor)
    term_low = cube.fma(factor_low, cube_low.fma(factor, term_low))
    high, low = coefficients.LN2["f64"]
    # e ln 2 is exact and larger than 2 s, or 0.
    total, total_low = fast_two_sum(e * high, s * 2.0)
    total, more = fast_two_sum(total, term)
    small = e.fma(low, total_low + more) + s_low.fma(2.0, term_low)
    return fast_two_sum(total, small)


def rsqrt(x: Value) -> Value:
    return 1.0 / x.sqrt()


def cbrt(x: Value) -> Value:
    """x r^2 with r = |x|^(-1/3): a guess from a third of the bits, two cubic steps, a correction."""
    form = format_of(x)
    a = abs(x)
    tiny = a < form.smallest_normal
    lift = 24 if x.dtype == "f32" else 54
    a = where(tiny, a * 2.0**lift, a)
    # The top 32 bits (of f64) thirded by a multiplication with 2^32 / 3.
    bits = a.bits()
    if x.dtype == "f32":
        guess = 0x54A21D2A - bits.mulhi(0x55555556)
    else:
        guess = (0x553EF0FF - (((bits >> 32) * 0x55555556) >> 32)) << 32
    r = guess.as_float()
    for _ in range(2 if x.dtype == "f32" else 3):
        h = 1.0 - (a * r) * (r * r)
        r = r.fma(h * h.fma(2 / 9, 1 / 3), r)
    square = r * r
    root = a * square
    root = (-(root * root)).fma(root, a).fma(square * (1 / 3), root)
    root = where(tiny, root * 2.0 ** (-lift // 3), root)
    return where((a > 0.0) & (a < INFINITY), root, a).copysign(x)


# Outside of these a square may have left the range of the dtype: bounds of x^2 + y^2, and for those
# outside (huge, its factor, tiny, its factor).
_HYPOT_RANGE = {"f32": (2.0**-90, 2.0**120), "f64": (2.0**-900, 2.0**1000)}
_HYPOT_SCALES = {
    "f32": (2.0**62, 2.0**-70, 2.0**-50, 2.0**100),
    "f64": (2.0**500, 2.0**-600, 2.0**-500, 2.0**600),
}


def hypot(x: Value, y: Value) -> Value:
    """sqrt(x^2 + y^2) without overflow; infinite if either is, even beside NaN."""
    square = x.fma(x, y * y)
    least, most = _HYPOT_RANGE[x.dtype]
    usual = (square > least) & (square < most)
    return if_any(~usual, lambda: where(usual, square.sqrt(), _scaled_hypot(x, y)), square.sqrt())


def _scaled_hypot(x: Value, y: Value) -> Value:
    a, b = abs(x), abs(y)
    swap = b > a
    larger, smaller = where(swap, b, a), where(swap, a, b)
    most, shrink, least, grow = _HYPOT_SCALES[x.dtype]
    huge, tiny = larger > most, larger < least
    down = where(huge, x.constant(shrink), where(tiny, x.constant(grow), 1.0))
    up = where(huge, x.constant(1 / shrink), where(tiny, x.constant(1 / grow), 1.0))
    larger, smaller = larger * down, smaller * down
    result = larger.fma(larger, smaller * smaller).sqrt() * up
    return where(a.eq(INFINITY) | b.eq(INFINITY), INFINITY, result)


def nextafter(x: Value, y: Value) -> Value:
    """The neighbour of x towards y: the bits of x plus or minus one."""
    bits = x.bits()
    away = (x > 0.0) ^ (y < x)  # from zero
    moved = where(away, bits + 1, bits - 1).as_float()
    smallest = bits.constant(1).as_float().copysign(y)
    moved = where(x.eq(0.0), smallest, moved)
    moved = where(x.eq(y), y, moved)
    return where(x.is_nan() | y.is_nan(), x + y, moved)
