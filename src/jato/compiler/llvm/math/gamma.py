"""lgamma and digamma.

Computed in f64 for f32 too (short polynomials), where the cancellation near the zeros on the
negative axis is then of no consequence.  In f64 the error is relative to the result for x > 0,
zeros at 1 and 2 (lgamma) and 1.46 (digamma) included; for x < -1/2 it is relative to the larger
of the two terms of the reflection formula.

Start reading at `lgamma`.
"""

from __future__ import annotations

import math

from jato.compiler.llvm.math import coefficients
from jato.compiler.llvm.math.error_function import centred
from jato.compiler.llvm.math.logarithm import log
from jato.compiler.llvm.math.power import log_in_two_parts
from jato.compiler.llvm.math.trigonometric import sin_reduced
from jato.loopir.formula import Value, horner, two_product, two_sum, where

INFINITY, NAN = math.inf, math.nan


def lgamma(x: Value) -> Value:
    """log |gamma(x)|: recurrence into [3/2, 3], Stirling above, reflection below -1/2."""
    if x.dtype == "f32":
        return lgamma_f64(x.convert("f64"), "wide").convert("f32")
    return lgamma_f64(x, "f64")


def lgamma_f64(x: Value, tier: str) -> Value:
    a = where(x < -0.5, -x, x)
    # a < 1/2: z = a + 2 and log(a (a + 1)) to take off; a < 3/2: z = a + 1 and log a; else z = a.
    # The polynomial is in z - 2, which is exact where z would not be.
    near, middle, far = a < 0.5, a < 1.5, a > 3.0
    above_2 = where(near, a, where(middle, a - 1.0, a - 2.0))
    argument = where(near, abs(a.fma(a, a)), where(middle | far, a, 1.0))
    logarithm, low = log_in_two_parts(argument) if tier == "f64" else (log(argument), None)
    small = above_2.fma(centred(above_2, coefficients.LGAMMA[tier]), -logarithm)
    small = small if low is None else small - low
    large = stirling(a, logarithm, low, tier)
    result = where(far, large, small)
    # lgamma(-a) = log(pi / (a |sin(pi a)|)) - lgamma(a)
    sine = sin_reduced(abs(a - a.round_even()) * math.pi)
    reflected = log(math.pi / (a * sine)) - result
    result = where(x < -0.5, reflected, result)
    return where(a.eq(0.0) | a.eq(INFINITY), INFINITY, result)


def stirling(x: Value, logarithm: Value, low: Value | None, tier: str) -> Value:
    """(x - 1/2)(log x - 1) + (log(2 pi) - 1)/2 + H(1/x^2)/x."""
    inverse = 1.0 / x
    series = inverse * horner(inverse * inverse, coefficients.STIRLING[tier])
    factor = x - 0.5
    constant = math.log(2 * math.pi) / 2 - 0.5
    if low is None:
        return factor.fma(logarithm - 1.0, series + constant)
    reduced, lost = two_sum(logarithm, x.constant(-1.0))
    product, product_low = two_product(factor, reduced)
    product_low = factor.fma(low + lost, product_low)
    total, rest = two_sum(product, x.constant(constant))
    # Near overflow the low parts are NaN while the product is infinite.
    return where(product < INFINITY, total + (series + (rest + product_low)), product)


def digamma(x: Value) -> Value:
    if x.dtype == "f32":
        return digamma_f64(x.convert("f64"), "wide").convert("f32")
    return digamma_f64(x, "f64")


def digamma_f64(x: Value, tier: str) -> Value:
    """psi(y) for y >= 1, less 1/x for 0 < x < 1 (y = x + 1), or less pi / tan(pi x) for x < 0
    (y = 1 - x).
    """
    negative = x < 0.0
    y = where(negative, 1.0 - x, where(x < 1.0, x + 1.0, x))
    root, root_low = coefficients.DIGAMMA_ROOT["f64"]
    near = ((y - root) - root_low) * centred(y, coefficients.DIGAMMA[tier])
    inverse = 1.0 / y
    square = inverse * inverse
    series = square.fma(horner(square, coefficients.DIGAMMA_SERIES[tier]), inverse * -0.5)
    value = where(y <= 2.0, near, log(y) + series)
    # pi / tan(pi x): x = k + r with |r| <= 1/2, cos(pi r) = sin(pi (1/2 - |r|)).
    r = x - x.round_even()
    sine = sin_reduced(r * math.pi)
    cosine = sin_reduced((0.5 - abs(r)) * math.pi)
    top = where(negative, cosine * math.pi, 1.0)
    bottom = where(negative, sine, x)
    correction = where(x < 1.0, top / bottom, 0.0)
    result = value - correction
    result = where(negative & r.eq(0.0), NAN, result)
    result = where(x.eq(0.0), (-x.constant(INFINITY)).copysign(-x), result)
    return where(x.eq(INFINITY), x, result)
