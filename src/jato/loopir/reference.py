"""The meaning of every scalar opcode, in NumPy.

`evaluate(op, operands, dtype, attr)` applies one opcode to NumPy arrays (or scalars) of the
NumPy dtypes of `NUMPY_DTYPES`.  The interpreter runs it on whole kernels; the builder uses it to
fold constants.  Nothing here is fast, and nothing here is shared with code generation: it is the
independent half of the tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from jato.base.lazy import LazyModule

fractions: Any = LazyModule("fractions")

NUMPY_DTYPES: dict[str, np.dtype] = {
    "bool": np.dtype(np.bool_),
    "i8": np.dtype(np.int8), "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32), "i64": np.dtype(np.int64),
    "u8": np.dtype(np.uint8), "u16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32), "u64": np.dtype(np.uint64),
    "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32), "f64": np.dtype(np.float64),
}  # fmt: skip

Array = Any


def evaluate(op: str, operands: tuple[Array, ...], dtype: str, attr: Any = None) -> Array:
    """The value of one opcode; `dtype` is the result's, `attr` the opcode's attribute."""
    with np.errstate(all="ignore"):
        if op == "convert":
            return convert(operands[0], dtype)
        if op == "bitcast":
            return np.asarray(operands[0]).view(NUMPY_DTYPES[dtype])
        if op == "lookup":
            return np.asarray(attr, NUMPY_DTYPES[dtype])[np.asarray(operands[0]) % len(attr)]
        result = REFERENCE[op](*operands)
    return np.asarray(result).astype(NUMPY_DTYPES[dtype])


def convert(x: Array, dtype: str) -> Array:
    """float -> int saturates and takes NaN to 0; int -> int wraps; anything -> bool is != 0."""
    x = np.asarray(x)
    target = NUMPY_DTYPES[dtype]
    is_float = x.dtype.kind == "f" or x.dtype == NUMPY_DTYPES["bf16"]
    if dtype == "bool":
        return x != 0
    if is_float and target.kind in "iu":
        return _saturate(x.astype(np.float64), target)
    if x.dtype == np.float64 and dtype in ("f16", "bf16"):
        return _round_to_odd(x).astype(target)
    if x.dtype.kind in "iu" and dtype in ("f16", "bf16"):
        return x.astype(np.float32).astype(target)
    return x.astype(target)


def _saturate(x: Array, target: np.dtype) -> Array:
    info = np.iinfo(target)
    # 2**63 - 1 is not a double: compare with the first double above the range
    too_big = x >= float(info.max) if info.max < 2**53 else x >= float(info.max + 1)
    too_small = x <= float(info.min)
    inside = np.where(too_big | too_small | np.isnan(x), 0.0, x)
    result = inside.astype(target)
    result = np.where(too_big, target.type(info.max), result)
    result = np.where(too_small, target.type(info.min), result)
    return np.where(np.isnan(x), target.type(0), result).astype(target)


def _round_to_odd(x: Array) -> Array:
    """f64 -> f32 such that a second rounding, to 16 bits, is correct."""
    near = x.astype(np.float32)
    wide = near.astype(np.float64)
    bits = near.view(np.uint32)
    down = np.where(np.abs(wide) > np.abs(x), bits - np.uint32(1), bits)
    odd = np.where(wide != x, down | np.uint32(1), bits)
    return np.where(np.isnan(x), near, odd.astype(np.uint32).view(np.float32)).astype(np.float32)


def _fma_one(x: float, y: float, z: float, dtype: np.dtype) -> float:
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        return float(np.float64(x) * np.float64(y) + np.float64(z))
    exact = fractions.Fraction(x) * fractions.Fraction(y) + fractions.Fraction(z)
    if exact == 0:
        return float(np.float64(x) * np.float64(y) + np.float64(z)) if x * y == 0 else 0.0
    return _round_fraction(exact, dtype)


def _round_fraction(value: Any, dtype: np.dtype) -> float:
    """The nearest number of the dtype, ties to even."""
    info = np.finfo(dtype)
    digits, smallest = (24, -149) if dtype == np.float32 else (53, -1074)
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    unit = max(exponent - digits, smallest)
    scaled = value / fractions.Fraction(2) ** unit
    while abs(scaled) >= 2**digits:
        unit += 1
        scaled /= 2
    rounded = fractions.Fraction(round(scaled)) * fractions.Fraction(2) ** unit  # round() ties to even
    if abs(rounded) > fractions.Fraction(float(info.max)):
        return math.copysign(math.inf, value.numerator)
    if rounded == 0:
        return math.copysign(0.0, value.numerator)
    return float(rounded)


def _fma(x: Array, y: Array, z: Array) -> Array:
    x, y, z = np.broadcast_arrays(x, y, z)
    result = np.empty(x.shape, x.dtype)
    for position in np.ndindex(x.shape):
        a, b, c = float(x[position]), float(y[position]), float(z[position])
        result[position] = _fma_one(a, b, c, x.dtype)
    return result


def _div(x: Array, y: Array) -> Array:
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype.kind == "f":
        return x / y
    return _int_div_rem(x, y)[0]


def _rem(x: Array, y: Array) -> Array:
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype.kind == "f":
        return np.fmod(x, y)
    return _int_div_rem(x, y)[1]


def _int_div_rem(x: Array, y: Array) -> tuple[Array, Array]:
    zero = y == 0
    quotient = np.floor_divide(x, np.where(zero, y.dtype.type(1), y))
    if x.dtype.kind == "i":
        inexact = quotient * y != x
        quotient = quotient + (inexact & ((x < 0) != (y < 0))).astype(x.dtype)
        quotient = np.where(y == -1, -x, quotient)
    all_ones = ~x.dtype.type(0)
    quotient = np.where(zero, all_ones, quotient).astype(x.dtype)
    return quotient, np.where(zero, x, x - quotient * y).astype(x.dtype)


def _shift(kind: str) -> Callable[[Array, Array], Array]:
    def apply(x: Array, y: Array) -> Array:
        x, y = np.asarray(x), np.asarray(y)
        bits = x.dtype.itemsize * 8
        unsigned = np.dtype(f"u{x.dtype.itemsize}")
        amount = y.astype(unsigned)
        beyond = amount >= bits
        safe = np.where(beyond, 0, amount).astype(unsigned)
        if kind == "arithmetic":
            signed = np.dtype(f"i{x.dtype.itemsize}")
            full = np.where(beyond, bits - 1, safe).astype(signed)
            return (x.view(signed) >> full).view(x.dtype)
        raw = x.view(unsigned)
        moved = raw << safe if kind == "left" else raw >> safe
        return np.where(beyond, unsigned.type(0), moved).astype(unsigned).view(x.dtype)

    return apply


def _bits_of(x: Array) -> Array:
    return np.asarray(x).view(f"u{np.asarray(x).dtype.itemsize}")


def _per_element(function: Callable[[int, int], int]) -> Callable[[Array], Array]:
    def apply(x: Array) -> Array:
        x = np.asarray(x)
        width = x.dtype.itemsize * 8
        raw = _bits_of(x)
        values = [function(int(v), width) for v in raw.ravel()]
        return np.array(values, raw.dtype).reshape(x.shape).view(x.dtype)

    return apply


def _mulhi(x: Array, y: Array) -> Array:
    x, y = np.broadcast_arrays(x, y)
    width = x.dtype.itemsize * 8
    mask = (1 << width) - 1
    products = [
        (int(a) * int(b) >> width) & mask for a, b in zip(x.ravel(), y.ravel(), strict=True)
    ]
    return np.array(products, f"u{x.dtype.itemsize}").reshape(x.shape).view(x.dtype)


def _lgamma(x: Array) -> Array:
    return np.vectorize(_lgamma_one, otypes=[np.float64])(np.asarray(x, np.float64))


def _lgamma_one(x: float) -> float:
    if math.isinf(x):
        return math.inf
    if math.isnan(x) or (x <= 0 and x == math.floor(x)):
        return math.nan if math.isnan(x) else math.inf
    return math.lgamma(x)


def _digamma_one(x: float) -> float:
    if x == 0:
        return -math.copysign(math.inf, x)
    if math.isnan(x) or math.isinf(x):
        return x if x > 0 or math.isnan(x) else math.nan
    if x < 0:
        if x == math.floor(x):
            return math.nan
        return _digamma_one(1 - x) - math.pi / math.tan(math.pi * math.fmod(x, 1.0))
    shift = 0.0
    while x < 12:
        shift -= 1 / x
        x += 1
    r = 1 / (x * x)
    series = r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (1 / 132)))))
    return shift + math.log(x) - 0.5 / x - series


def _erfinv_one(y: float) -> float:
    if math.isnan(y) or abs(y) > 1:
        return math.nan
    if abs(y) == 1:
        return math.copysign(math.inf, y)
    if y == 0:
        return y
    # Newton on erfc of the tail, from a rough start
    tail = 1 - abs(y)
    w = -math.log(tail * (1 + abs(y)))
    x = (
        math.sqrt(max(w - 0.5 * math.log(max(w, 1e-300) * math.pi), 0.0))
        if w > 2
        else abs(y) * 0.886
    )
    for _ in range(60):
        error = (math.erf(x) - abs(y)) if abs(y) < 0.5 else (tail - math.erfc(x))
        step = error / (2 / math.sqrt(math.pi) * math.exp(-x * x))
        x -= step / (1 + x * step)
        if abs(step) <= 1e-17 * abs(x):
            break
    return math.copysign(x, y)


def _elementwise(function: Callable[[float], float]) -> Callable[[Array], Array]:
    vector = np.vectorize(function, otypes=[np.float64])
    return lambda x: vector(np.asarray(x, np.float64))


def _in_double(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda *operands: function(*(np.asarray(v).astype(np.float64) for v in operands))


REFERENCE: dict[str, Callable[..., Array]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "neg": lambda x: np.negative(x),
    "abs": np.abs,
    "fma": _fma,
    "div": _div,
    "rem": _rem,
    "max": np.maximum,
    "min": np.minimum,
    "maxnum": lambda x, y: np.where(np.asarray(x) > y, x, y),
    "minnum": lambda x, y: np.where(np.asarray(x) < y, x, y),
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "shl": _shift("left"),
    "shr_logical": _shift("logical"),
    "shr_arithmetic": _shift("arithmetic"),
    "popcount": _per_element(lambda v, width: v.bit_count()),
    "clz": _per_element(lambda v, width: width - v.bit_length()),
    "ctz": _per_element(lambda v, width: width if v == 0 else (v & -v).bit_length() - 1),
    "mulhi": _mulhi,
    "eq": lambda x, y: np.asarray(x) == y,
    "ne": lambda x, y: np.asarray(x) != y,
    "lt": lambda x, y: np.asarray(x) < y,
    "le": lambda x, y: np.asarray(x) <= y,
    "gt": lambda x, y: np.asarray(x) > y,
    "ge": lambda x, y: np.asarray(x) >= y,
    "select": np.where,
    "if_any": np.where,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round_even": np.rint,
    "copysign": np.copysign,
    "is_nan": np.isnan,
    "exp": _in_double(np.exp),
    "exp2": _in_double(np.exp2),
    "expm1": _in_double(np.expm1),
    "log": _in_double(np.log),
    "log1p": _in_double(np.log1p),
    "log2": _in_double(np.log2),
    "log10": _in_double(np.log10),
    "sin": _in_double(np.sin),
    "cos": _in_double(np.cos),
    "tan": _in_double(np.tan),
    "asin": _in_double(np.arcsin),
    "acos": _in_double(np.arccos),
    "atan": _in_double(np.arctan),
    "sinh": _in_double(np.sinh),
    "cosh": _in_double(np.cosh),
    "tanh": _in_double(np.tanh),
    "asinh": _in_double(np.arcsinh),
    "acosh": _in_double(np.arccosh),
    "atanh": _in_double(np.arctanh),
    "logistic": _in_double(
        lambda x: np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x)))
    ),
    "erf": _elementwise(math.erf),
    "erfc": _elementwise(math.erfc),
    "rsqrt": _in_double(lambda x: 1 / np.sqrt(x)),
    "cbrt": _in_double(np.cbrt),
    "erfinv": _elementwise(_erfinv_one),
    "lgamma": _lgamma,
    "digamma": _elementwise(_digamma_one),
    "atan2": _in_double(np.arctan2),
    "hypot": _in_double(np.hypot),
    "pow": np.float_power,  # np.power takes x ** 0.5 for sqrt, which differs at -inf
    "nextafter": np.nextafter,
}  # fmt: skip
