"""Complex arithmetic and functions over pairs of real expressions.

`Complex(re, im)` is a pair of expressions of f32 (c64) or f64 (c128); `complex_op(b, opcode, ...)`
gives the result of an opcode of scalar_ops.py (and a few that only complex numbers have) on such
pairs.  The functions work on `Pair`s of Values (formula.py); real functions (exp, sin, hypot, ...)
stay opcodes, so that equal ones are shared: exp(i t) computes sin t and cos t once.

Accuracy and special values.  Products and sums are the textbook formulas, rounded as NumPy does
(never contracted: z * conj(z) is real).  c64 division and the rarer functions are computed in f64,
where neither overflow nor cancellation matters; c128 scales where it must.  Branch cuts, signed
zeros and infinities follow C99's Annex G as far as NumPy does.

Sources: W. Kahan, "Branch cuts for complex elementary functions" (1987); R. Smith, "Algorithm 116:
complex division" (1962).  Start reading at `complex_op` (at the end), then `multiply` and `exp`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from jato.loopir.formula import Value, two_product, two_sum, where
from jato.loopir.grammar import Expr

INFINITY, NAN = math.inf, math.nan


class Complex:
    """A complex value: the pair (re, im) of expressions of one float dtype."""

    __slots__ = ("im", "re")

    def __init__(self, re: Expr, im: Expr):
        self.re = re
        self.im = im

    @property
    def dtype(self) -> str:
        return "c64" if self.re.dtype == "f32" else "c128"

    def __repr__(self) -> str:
        return f"Complex({self.re!r}, {self.im!r})"


class Pair(NamedTuple):
    """A complex value while it is computed with."""

    re: Value
    im: Value

    def times(self, factor: float) -> Pair:
        return Pair(self.re * factor, self.im * factor)

    def times_i(self) -> Pair:
        return Pair(-self.im, self.re)

    def times_minus_i(self) -> Pair:
        return Pair(self.im, -self.re)

    def convert(self, dtype: str) -> Pair:
        return Pair(self.re.convert(dtype), self.im.convert(dtype))


def select(condition: Value, yes: Pair, no: Pair) -> Pair:
    return Pair(where(condition, yes.re, no.re), where(condition, yes.im, no.im))


def is_infinite(x: Value) -> Value:
    return abs(x).eq(INFINITY)


def is_finite(x: Value) -> Value:
    return abs(x) < INFINITY


Function = Callable[..., Pair]


def in_f64(function: Function) -> Function:
    """c64 arguments are converted to f64 first, and the result back."""

    def wider(*args: Pair) -> Pair:
        if args[0].re.dtype == "f64":
            return function(*args)
        return function(*[arg.convert("f64") for arg in args]).convert("f32")

    return wider


# ---- arithmetic


def add(x: Pair, y: Pair) -> Pair:
    return Pair(x.re + y.re, x.im + y.im)


def subtract(x: Pair, y: Pair) -> Pair:
    return Pair(x.re - y.re, x.im - y.im)


def multiply(x: Pair, y: Pair) -> Pair:
    """One product rounded, the other fused with the sum: bit for bit what NumPy computes.
    Only z times its own conjugate is rounded term by term: it is real."""
    re = x.re.fma(y.re, -(x.im * y.im))
    if y.re.expr is x.re.expr and y.im.expr is (-x.im).expr:
        return Pair(re, x.re * y.im + x.im * y.re)
    return Pair(re, x.re.fma(y.im, x.im * y.re))


def square(x: Pair) -> Pair:
    return multiply(x, x)


@in_f64
def divide(x: Pair, y: Pair) -> Pair:
    """Smith: divide by the larger part of y first, so that nothing overflows on the way."""
    swap = abs(y.im) > abs(y.re)
    larger, smaller = where(swap, y.im, y.re), where(swap, y.re, y.im)
    p, q = where(swap, x.im, x.re), where(swap, x.re, x.im)
    is_zero = larger.eq(0.0)
    ratio = where(is_zero, smaller, smaller / larger)  # x / 0 is (x.re / 0, x.im / 0)
    divisor = where(is_zero, abs(larger), larger + smaller * ratio)
    product = p * ratio
    im = where(swap, product - q, q - product) / divisor
    return Pair((p + q * ratio) / divisor, im)


def reciprocal(x: Pair) -> Pair:
    one = x.re.constant(1.0)
    return divide(Pair(one, one * 0.0), x)


def negative(x: Pair) -> Pair:
    return Pair(-x.re, -x.im)


def conjugate(x: Pair) -> Pair:
    return Pair(x.re, -x.im)


def absolute(x: Pair) -> Value:
    return x.re.call("hypot", x.im)


def sign(x: Pair) -> Pair:
    """x / |x|, and 0 for 0; an infinite part alone decides."""
    size = absolute(x)

    def part(value: Value) -> Value:
        end = where(is_infinite(value), value.constant(1.0).copysign(value), 0.0)
        ratio = where(is_infinite(size), end, value / size)
        return where(size.eq(0.0), 0.0, ratio)

    both = is_infinite(x.re) & is_infinite(x.im)
    return Pair(where(both, NAN, part(x.re)), where(both, NAN, part(x.im)))


# ---- exponential and trigonometric functions


def scaled_exp(x: Value) -> tuple[Value, Value]:
    """e^x = the product of two factors, the first of which does not overflow before x is twice
    as large as exp allows.
    """
    limit, shift = (80.0, 64.0) if x.dtype == "f32" else (700.0, 512.0)
    large = x > limit
    factor = where(large, x.constant(math.exp(shift)), 1.0)
    return where(large, x - shift, x).call("exp"), factor


def exp(z: Pair) -> Pair:
    size, factor = scaled_exp(z.re)
    # e^(+-inf) with an angle that is not finite: 0, or inf with a NaN angle.
    lost = is_infinite(z.re) & ~is_finite(z.im)
    re = size * where(lost, 1.0, z.im.call("cos")) * factor
    im = size * z.im.call("sin") * factor
    im = where(z.im.eq(0.0) | (lost & (z.re < 0.0)), where(is_finite(z.im), z.im, 0.0), im)
    return Pair(re, im)


@in_f64
def exp2(z: Pair) -> Pair:
    """2^re (cos, sin)(im ln 2)."""
    turned = exp(Pair(z.re * 0.0, z.im * math.log(2)))
    size = z.re.call("exp2")
    ordinary = Pair(size * turned.re, where(z.im.eq(0.0), z.im, size * turned.im))
    return select(is_finite(z.re) & (z.re < 1000.0), ordinary, exp(z.times(math.log(2))))


@in_f64
def expm1(z: Pair) -> Pair:
    """re: expm1(x) cos y - 2 sin^2(y/2), which does not cancel near 0."""
    half = (z.im * 0.5).call("sin")
    re = z.re.call("expm1") * z.im.call("cos") - half * half * 2.0
    whole = exp(z)
    return Pair(where(abs(z.re) < 1.0, re, whole.re - 1.0), whole.im)


def hyperbolic(z: Pair) -> tuple[Value, Value, Value, Value, Value]:
    """sinh re, cosh re, cos im, sin im, and a factor of the first two."""
    a = abs(z.re)
    limit, shift = (80.0, 64.0) if a.dtype == "f32" else (700.0, 512.0)
    large = a > limit
    half = (a - shift).call("exp") * 0.5
    sinh = where(large, half.copysign(z.re), z.re.call("sinh"))
    cosh = where(large, half, z.re.call("cosh"))
    factor = where(large, a.constant(math.exp(shift)), 1.0)
    return sinh, cosh, z.im.call("cos"), z.im.call("sin"), factor


def sinh(z: Pair) -> Pair:
    sinh_re, cosh_re, cos_im, sin_im, factor = hyperbolic(z)
    # Infinite re with an angle that has no direction: inf + i NaN.
    cos_im = where(is_infinite(z.re) & ~is_finite(z.im), 1.0, cos_im)
    re = where(z.re.eq(0.0) & ~is_finite(z.im), z.re, sinh_re * cos_im * factor)
    return Pair(re, where(z.im.eq(0.0), z.im, cosh_re * sin_im * factor))


def cosh(z: Pair) -> Pair:
    sinh_re, cosh_re, cos_im, sin_im, factor = hyperbolic(z)
    cos_im = where(is_infinite(z.re) & ~is_finite(z.im), 1.0, cos_im)
    on_axis = z.im.eq(0.0) | z.re.eq(0.0)
    im = where(on_axis, signed_zero(z), sinh_re * sin_im * factor)
    return Pair(cosh_re * cos_im * factor, im)


def signed_zero(z: Pair) -> Value:
    """0 with the sign of re times that of im."""
    one = z.re.constant(1.0)
    return one.copysign(z.re) * z.re.constant(0.0).copysign(z.im)


@in_f64
def tanh(z: Pair) -> Pair:
    """Kahan: with t = tan im, s = sinh re: ((1 + t^2) sqrt(1 + s^2) s + i t) / (1 + (1 + t^2) s^2)."""
    a = abs(z.re)
    t, s = z.im.call("tan"), z.re.at_most(22.0).at_least(-22.0).call("sinh")
    beta = t * t + 1.0
    divisor = (beta * s).fma(s, 1.0)
    re, im = beta * (s * s + 1.0).sqrt() * s / divisor, t / divisor
    # Far out: +-1 and 4 sin cos e^(-2 |re|).
    far = a > 22.0
    tail = z.im.call("sin") * z.im.call("cos") * (a * -2.0).call("exp") * 4.0
    tail = where(is_infinite(a), where(is_finite(z.im), tail * 0.0, 0.0), tail)
    re = where(far, re.constant(1.0).copysign(z.re), re)
    im = where(far, tail, im)
    return Pair(where(z.re.eq(0.0), z.re, re), where(z.im.eq(0.0), z.im, im))


def sin(z: Pair) -> Pair:
    return sinh(z.times_i()).times_minus_i()


def cos(z: Pair) -> Pair:
    return cosh(z.times_i())


def tan(z: Pair) -> Pair:
    return tanh(z.times_i()).times_minus_i()


@in_f64
def logistic(z: Pair) -> Pair:
    """(1 + tanh(z / 2)) / 2 would cancel; 1 / (1 + e^-z) does not."""
    e = exp(negative(z))
    return reciprocal(Pair(e.re + 1.0, e.im))


# ---- logarithms and powers


def scale_of(largest: Value) -> tuple[Value, Value]:
    """(factor, log of its inverse) that brings very large and very small numbers to where
    squares and sums neither overflow nor lose bits.
    """
    big, small = largest > 2.0**1000, largest < 2.0**-1000
    factor = where(big, largest.constant(2.0**-100), where(small, largest.constant(2.0**100), 1.0))
    shift = 100 * math.log(2)
    return factor, where(big, largest.constant(shift), where(small, largest.constant(-shift), 0.0))


def log_absolute(z: Pair) -> Value:
    """log |z|; where |z| is near 1, log1p(|z|^2 - 1) / 2 with the difference from exact squares."""
    a, b = abs(z.re), abs(z.im)
    swap = b > a
    larger, smaller = where(swap, b, a), where(swap, a, b)
    factor, shift = scale_of(larger)
    far = (larger * factor).call("hypot", smaller * factor).call("log") + shift
    first, first_low = two_product(larger, larger)
    second, second_low = two_product(smaller, smaller)
    total, rest = two_sum(first - 1.0, second)
    near = (total + (rest + (first_low + second_low))).call("log1p") * 0.5
    return where((larger > 0.5) & (larger < 1.5), near, far)


@in_f64
def log(z: Pair) -> Pair:
    return Pair(log_absolute(z), z.im.call("atan2", z.re))


@in_f64
def log2(z: Pair) -> Pair:
    return log(z).times(1 / math.log(2))


@in_f64
def log10(z: Pair) -> Pair:
    return log(z).times(1 / math.log(10))


@in_f64
def log1p(z: Pair) -> Pair:
    """log |1 + z| from (2 + x) x + y^2 where that is small."""
    total, rest = two_sum(z.re * 2.0, z.re * z.re)
    square, square_low = two_product(z.im, z.im)
    total, more = two_sum(total, square)
    near = (total + (rest + more + square_low)).call("log1p") * 0.5
    moved = Pair(z.re + 1.0, z.im)
    is_near = (abs(z.re) < 0.5) & (abs(z.im) < 0.5)
    return Pair(where(is_near, near, log_absolute(moved)), z.im.call("atan2", moved.re))


@in_f64
def sqrt(z: Pair) -> Pair:
    """With t = sqrt((|re| + |z|)/2): t + i im/(2 t), or |im|/(2 t) + i t for negative re."""
    a, b = abs(z.re), abs(z.im)
    largest = a.maximum(b)
    big, small = largest > 2.0**1000, largest < 2.0**-1000
    down = where(big, a.constant(2.0**-100), where(small, a.constant(2.0**100), 1.0))
    up = where(big, a.constant(2.0**50), where(small, a.constant(2.0**-50), 1.0))
    a_scaled, b_scaled = a * down, b * down
    t = ((a_scaled + a_scaled.call("hypot", b_scaled)) * 0.5).sqrt()
    other = b_scaled / (t * 2.0)
    t, other = t * up, where(t.eq(0.0), b, other * up)
    # An infinite part settles it.
    other = where(is_infinite(z.re) & is_finite(z.im), 0.0, other)
    t, other = where(is_infinite(z.im), INFINITY, t), where(is_infinite(z.im), INFINITY, other)
    flipped = z.re < 0.0
    return Pair(where(flipped, other, t), where(flipped, t, other).copysign(z.im))


@in_f64
def rsqrt(z: Pair) -> Pair:
    return reciprocal(sqrt(z))


@in_f64
def power(x: Pair, y: Pair) -> Pair:
    """|x|^y.re e^(-y.im arg x), turned by y.re arg x + y.im log |x|."""
    argument, logarithm = x.im.call("atan2", x.re), log_absolute(x)
    angle = y.re * argument + y.im * logarithm
    real = y.im.eq(0.0)
    angle = where(real, y.re * argument, angle)
    # |x|^y.re may overflow where the product with the other factor does not: half of it at a time.
    size = absolute(x).call("pow", where(real, y.re, y.re * 0.5))
    size = where(real, size, size * (-(y.im * argument)).call("exp") * size)
    on_axis = angle.eq(0.0)
    re = where(on_axis, size, size * angle.call("cos"))
    im = where(on_axis, angle, size * angle.call("sin"))
    # 0^y: 1 for 0, 0 for positive, NaN otherwise, as NumPy.
    x_zero = x.re.eq(0.0) & x.im.eq(0.0)
    zero = where(y.re > 0.0, 0.0, re.constant(NAN))
    re, im = where(x_zero, zero, re), where(x_zero, zero, im)
    y_zero = y.re.eq(0.0) & real
    return Pair(where(y_zero, 1.0, re), where(y_zero, 0.0, im))


# ---- inverse functions


LARGE = 2.0**500  # beyond, asin z = +-i log(2 z) to the last bit, and squares would overflow


@in_f64
def asin(z: Pair) -> Pair:
    one_minus, one_plus = sqrt_one_minus_plus(z)
    re = z.re.call("atan2", multiply(one_minus, one_plus).re)
    im = multiply(conjugate(one_minus), one_plus).im.call("asinh")
    far, logarithm = far_logarithm(z)
    re = where(far, z.re.call("atan2", abs(z.im)), re)
    im = where(far, logarithm.copysign(z.im), im)
    return Pair(re, where(z.im.eq(0.0) & (abs(z.re) <= 1.0), z.im, im))


@in_f64
def acos(z: Pair) -> Pair:
    one_minus, one_plus = sqrt_one_minus_plus(z)
    re = one_minus.re.call("atan2", one_plus.re) * 2.0
    im = multiply(conjugate(one_plus), one_minus).im.call("asinh")
    far, logarithm = far_logarithm(z)
    re = where(far, abs(z.im).call("atan2", z.re), re)
    im = where(far, logarithm.copysign(-z.im), im)
    return Pair(re, where(z.im.eq(0.0) & (abs(z.re) <= 1.0), -z.im, im))


def sqrt_one_minus_plus(z: Pair) -> tuple[Pair, Pair]:
    return sqrt(Pair(1.0 - z.re, -z.im)), sqrt(Pair(z.re + 1.0, z.im))


def far_logarithm(z: Pair) -> tuple[Value, Value]:
    """(|z| is large, log |2 z|)."""
    far = abs(z.re).maximum(abs(z.im)) > LARGE
    return far, log_absolute(z) + math.log(2)


def asinh(z: Pair) -> Pair:
    return asin(z.times_i()).times_minus_i()


def acosh(z: Pair) -> Pair:
    """i acos z or -i acos z, whichever has a positive real part."""
    w = acos(z)
    below = z.im.constant(1.0).copysign(z.im) < 0.0
    turned = select(below, w.times_minus_i(), w.times_i())
    return Pair(abs(turned.re), turned.im)


@in_f64
def atanh(z: Pair) -> Pair:
    """re: log1p(4 x / ((1 - x)^2 + y^2)) / 4 for x = |re|; im: half the angle of
    ((1 - x)(1 + x) - y^2, 2 y).
    """
    x, y = abs(z.re), abs(z.im)
    below = 1.0 - x
    distance = below * below + y * y
    re = (x * 4.0 / distance).call("log1p") * 0.25
    im = (z.im * 2.0).call("atan2", below * (x + 1.0) - y * y) * 0.5
    far = x.maximum(y) > LARGE
    size = x.call("hypot", y)
    re = where(far, where(is_infinite(x) | is_infinite(y), 0.0, x / size / size), re)
    im = where(far, im.constant(math.pi / 2).copysign(z.im), im)
    im = where(far & z.im.is_nan(), NAN, im)
    return Pair(re.copysign(z.re), im)


def atan(z: Pair) -> Pair:
    return atanh(z.times_i()).times_minus_i()


# ---- comparisons


def equal(x: Pair, y: Pair) -> Value:
    return x.re.eq(y.re) & x.im.eq(y.im)


def not_equal(x: Pair, y: Pair) -> Value:
    return x.re.ne(y.re) | x.im.ne(y.im)


def less(x: Pair, y: Pair) -> Value:
    """By the real part, then by the imaginary one, as NumPy sorts."""
    return (x.re < y.re) | (x.re.eq(y.re) & (x.im < y.im))


def less_equal(x: Pair, y: Pair) -> Value:
    return (x.re < y.re) | (x.re.eq(y.re) & (x.im <= y.im))


def is_nan(x: Pair) -> Value:
    return x.re.is_nan() | x.im.is_nan()


def maximum(x: Pair, y: Pair) -> Pair:
    return select(less_equal(y, x) | is_nan(x), x, y)


def minimum(x: Pair, y: Pair) -> Pair:
    return select(less_equal(x, y) | is_nan(x), x, y)


FUNCTIONS: dict[str, Callable[..., Pair | Value]] = {
    "add": add, "sub": subtract, "mul": multiply, "div": divide, "neg": negative,
    "abs": absolute, "sign": sign, "conj": conjugate, "square": square,
    "reciprocal": reciprocal, "real": lambda x: x.re, "imag": lambda x: x.im,
    "exp": exp, "exp2": exp2, "expm1": expm1, "log": log, "log1p": log1p, "log2": log2,
    "log10": log10, "sqrt": sqrt, "rsqrt": rsqrt, "pow": power, "logistic": logistic,
    "sin": sin, "cos": cos, "tan": tan, "sinh": sinh, "cosh": cosh, "tanh": tanh,
    "asin": asin, "acos": acos, "atan": atan, "asinh": asinh, "acosh": acosh, "atanh": atanh,
    "eq": equal, "ne": not_equal, "lt": less, "le": less_equal,
    "max": maximum, "min": minimum, "is_nan": is_nan,
}  # fmt: skip


def complex_op(b: Any, opcode: str, *args: Complex) -> Complex | Expr:
    """`opcode` of complex values: Complex, or a real or bool expression (abs, eq, ...)."""
    function = FUNCTIONS.get(opcode)
    if function is None:
        raise NotImplementedError(
            f"[{opcode}] is not defined for complex numbers; expected one of "
            f"{', '.join(sorted(FUNCTIONS))}. Try real and imag separately."
        )
    with b.exact():
        result = function(*[Pair(Value(b, x.re), Value(b, x.im)) for x in args])
    if isinstance(result, Value):
        return result.expr
    return Complex(result.re.expr, result.im.expr)
