"""erf, erfc, erfinv.

erf is an odd polynomial up to 1 and 1 - e^g(x) beyond, g a polynomial for the logarithm of erfc.
erfc needs the last bits of what erf subtracts: for large x it is e^(-x^2) erfcx(x), where
(1 + 2 x) erfcx(x) lies between 1 and 1.3 and is a polynomial in q = (x - k)/(x + k), which maps
the half line to a short interval (Shepherd and Laframboise 1981).

Start reading at `erf`.
"""

from __future__ import annotations

import math

from jato.compiler.llvm.math import coefficients
from jato.compiler.llvm.math.exponential import power_of_two, reduce
from jato.compiler.llvm.math.formats import format_of
from jato.compiler.llvm.math.logarithm import assemble, split_bits, tail
from jato.loopir.formula import Value, fast_two_sum, horner, two_product, where

INFINITY, NAN = math.inf, math.nan

# erf is 1 to the last bit beyond; erfc rounds to 0 beyond.
ERF_LIMIT = {"f32": 4.0, "f64": 6.0}
ERFC_LIMIT = {"f32": 10.5, "f64": 27.3}


def erf(x: Value) -> Value:
    a = abs(x)
    bounded = a.at_most(ERF_LIMIT[x.dtype])
    g = horner(bounded, coefficients.LOG_ERFC[x.dtype])
    if x.dtype == "f64":  # there g is log(erfc) + x^2, which takes fewer terms
        g = bounded.fma(-bounded, g)
    bits, r, _ = reduce(g)
    large = 1.0 - horner(r, coefficients.EXP[x.dtype]) * power_of_two(bits, x)
    return where(a < 1.0, erf_small(a), large).copysign(x)


def erf_small(x: Value) -> Value:
    """erf x for |x| <= 1."""
    return x.fma(horner(x * x, coefficients.ERF[x.dtype]), x)


def erfc(x: Value) -> Value:
    if x.dtype == "f32":
        return erfc_wide(x.convert("f64")).convert("f32")
    a = abs(x)
    large = erfc_large(a.at_most(ERFC_LIMIT["f64"]))
    return where(a < 0.5, 1.0 - erf_small(x), where(x < 0.0, 2.0 - large, large))


def erfc_wide(x: Value) -> Value:
    """For a result in f32: one division for q and for 1/(1 + 2 a) together."""
    k = coefficients.ERFCX_CENTRE["wide"][0]
    a = abs(x).at_most(ERFC_LIMIT["f32"])
    above, weight = a + k, a.fma(2.0, 1.0)
    inverse = 1.0 / (above * weight)
    q = (a - k) * (weight * inverse)
    bits, r, _ = reduce(a * -a)
    value = horner(r, coefficients.EXP["wide"]) * power_of_two(bits, x)
    value = value * horner(q, coefficients.ERFCX["wide"]) * (above * inverse)
    return where(x < 0.0, 2.0 - value, value)


def erfc_large(a: Value) -> Value:
    """erfc for 1/2 <= a <= 27.3 in f64, every step that rounds 1 bit carried in two parts."""
    k = coefficients.ERFCX_CENTRE["f64"][0]
    q = (a - k) / (a + k)
    table = coefficients.ERFCX["f64"]
    top, top_low = fast_two_sum(a.constant(table[0]), q * horner(q, table[1:]))
    # e^-(p + p_low)
    square, square_low = two_product(a, a)
    bits, r, rest = reduce(-square)
    change = r * horner(r, coefficients.EXP["f64"][1:])
    value, value_low = fast_two_sum(a.constant(1.0), change)
    value_low = value.fma(rest - square_low, value_low)
    # top / (1 + 2 a), the remainder of the division included
    double = a * 2.0
    divisor = double + 1.0
    lost = where(a > 0.5, 1.0 - (divisor - double), 0.0)
    inverse = 1.0 / divisor
    quotient = top * inverse
    remainder = (-quotient).fma(lost, (-quotient).fma(divisor, top)) + top_low
    small = value.fma(remainder * inverse, value_low * quotient)
    # 2^n is made 2^64 too large, so that it is a normal number.
    return value.fma(quotient, small) * power_of_two(bits, a, 64) * 2.0**-64


def erfinv(x: Value) -> Value:
    """x times a polynomial in w = -log(1 - x^2), or in its square root where w is large (Giles)."""
    remaining = x.fma(-x, 1.0)
    significand, biased = split_bits(remaining.bits(), x)
    f, e = significand - 1.0, biased.as_float() - format_of(x).magic
    w = -assemble(e, f, tail(f))
    ratio = centred(w, coefficients.ERFINV_W[x.dtype])
    root = w.sqrt()
    ratio = where(
        root < ERFINV_SPLIT[x.dtype][0], ratio, centred(root, coefficients.ERFINV_ROOT[x.dtype])
    )
    if x.dtype == "f64":
        far = centred(root, coefficients.ERFINV_FAR["f64"])
        ratio = where(root < ERFINV_SPLIT["f64"][1], ratio, far)
    a = abs(x)
    end = where(a.eq(1.0), x * INFINITY, NAN)
    return where(a < 1.0, x * ratio, end)


ERFINV_SPLIT = {"f32": (math.sqrt(5.0), 9.0), "f64": (2.5, 4.0)}


def centred(x: Value, table: tuple[float, ...]) -> Value:
    """A polynomial in x - table[0]."""
    return horner(x - table[0], table[1:])
