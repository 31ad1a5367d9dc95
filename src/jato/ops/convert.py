"""Conversions between dtypes: of values, of bits, and to fewer bits of precision.

float -> int saturates and takes NaN to 0; int -> int wraps; anything -> bool is "is not 0";
complex -> real takes the real part.  Start reading at `ConvertElementType`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import fail
from jato.core.types import ArrayType, Zero, array_type, tangent_type, type_of
from jato.ops.elementwise_family import Elementwise, replaces
from jato.ops.families import is_zero_tangent, kind_of, transposed
from jato.ops.shapes import move_axis

_SIZED = "iuf"  # kinds whose bits can be taken for those of another dtype


class ConvertElementType(Elementwise):
    """The value of each element as another dtype."""

    def result_type(self, x: Any, *, new_dtype: Any, weak_type: bool) -> Any:
        if kind_of(x) in "0k" and new_dtype != x.dtype:
            self.fail(f"expected numbers or bools, got {x}.", "Random keys do not convert.")
        return ArrayType(x.shape, dtypes.code_of(new_dtype), weak_type)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, new_dtype: Any, weak_type: bool
    ) -> Any:
        out = self.bind(*primals, new_dtype=new_dtype, weak_type=weak_type)
        aval = tangent_type(type_of(out))
        if is_zero_tangent(tangents[0]) or aval.dtype == dtypes.float0:
            return out, Zero(aval)
        return out, convert_element_type(tangents[0], new_dtype, weak_type)

    @transposed
    def transpose(
        self, cotangent: Any, x: Any, *, new_dtype: Any, weak_type: bool
    ) -> Sequence[Any]:
        dtype = x.aval.dtype
        if not dtypes.is_inexact(dtype):
            return [Zero(x.aval)]
        return [convert_element_type(cotangent, dtype, x.aval.weak_type)]

    def lower(
        self, b: Any, inputs: Any, index: Any, out: Any, *, new_dtype: Any, weak_type: bool
    ) -> Any:
        return b.convert(inputs[0](index), dtypes.scalar_name(out))

    def simplify(self, node: Any, rewriter: Any) -> Any:
        return replaces(node.inputs[0], node)

    def reference(self, x: Any, *, new_dtype: Any, weak_type: bool = False) -> Any:
        return convert_values(np.asarray(x), np.dtype(new_dtype))


def convert_values(x: Any, dtype: Any) -> Any:
    """The conversion in NumPy: what constants and tests use."""
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x.real if dtype.kind != "b" else x != 0
    with np.errstate(all="ignore"):
        if dtypes.is_integer(dtype) and dtypes.is_floating(x.dtype):
            info = np.iinfo(dtype)
            wide = x.astype(np.float64)
            inside = (wide > float(info.min) - 1) & (wide < float(info.max) + 1)
            if dtype.itemsize == 8:  # 2^63 - 1 is no float64
                inside &= wide < 2.0 ** (63 if dtype.kind == "i" else 64)
            kept = np.where(inside, wide, 0).astype(dtype)
            # (as numbers of the dtype: the largest of uint64 is no C long)
            bound = np.where(wide > 0, dtype.type(info.max), dtype.type(info.min))
            return np.where(inside | np.isnan(wide), kept, bound)
        return x.astype(dtype)


CONVERT = ConvertElementType(
    "convert_element_type", "biufc", lower="convert", jvp=(None,), reference=convert_values
)


def convert_element_type(operand: Any, new_dtype: Any, weak_type: bool = False) -> Any:
    """Each element as a value of new_dtype.

    float -> int saturates (NaN gives 0), int -> int wraps, complex -> real takes the real part.
    TypeError for random keys.

    >>> int(convert_element_type(2.7, "int32"))
    2
    """
    dtype = dtypes.canonicalize(new_dtype)
    aval = getattr(operand, "aval", None)
    if aval is not None and aval.dtype == dtype and aval.weak_type == weak_type:
        return operand
    return CONVERT.bind(operand, new_dtype=dtype, weak_type=bool(weak_type))


# ---- bits


class BitcastConvertType(Elementwise):
    """The bits of each element read as another dtype.

    From wider to narrower the parts form a new last axis, the lowest first; the other way the
    last axis is used up.
    """

    pointwise = False  # as it may change the shape

    def result_type(self, x: Any, *, new_dtype: Any) -> Any:
        code = dtypes.code_of(new_dtype)
        old, new = x.itemsize, array_type((), new_dtype).itemsize
        for name, aval in (("operand", x), ("new_dtype", ArrayType((), code, False))):
            if kind_of(aval) not in _SIZED and not (aval.dtype_code == x.dtype_code == code):
                self.fail(f"expected {name} of an integer or float dtype, got {aval}.")
        if old == new:
            return ArrayType(x.shape, code, False)
        if old > new:
            return ArrayType((*x.shape, old // new), code, False)
        if x.shape[-1:] != (new // old,):
            self.fail(
                f"expected operand with a last axis of {new // old} to form elements of "
                f"{dtypes.as_dtype(new_dtype)}, got {x}."
            )
        return ArrayType(x.shape[:-1], code, False)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, new_dtype: Any) -> Any:
        out = self.bind(*primals, new_dtype=new_dtype)
        return out, Zero(tangent_type(type_of(out)))

    def batch(self, axis: Any, operands: Any, dims: Any, *, new_dtype: Any) -> Any:
        x = move_axis(operands[0], dims[0], 0)
        return self.bind(x, new_dtype=new_dtype), 0

    def lower(self, b: Any, inputs: Any, index: Any, out: Any, *, new_dtype: Any) -> Any:
        x = inputs[0]
        old, new = x.aval.itemsize, out.itemsize
        name = dtypes.scalar_name(out)
        if old == new:
            return b.bitcast(x(index), name)
        wide, narrow = f"u{8 * max(old, new)}", f"u{8 * min(old, new)}"
        if old > new:
            bits = b.bitcast(x(index[:-1]), wide)
            shift = b.convert(b.mul(index[-1], b.index(8 * new)), wide)
            return b.bitcast(b.convert(b.shr_logical(bits, shift), narrow), name)
        bits = b.const(0, wide)
        for i in range(new // old):
            part = b.convert(b.bitcast(x((*index, b.index(i))), narrow), wide)
            bits = b.or_(bits, b.shl(part, b.const(8 * old * i, wide)))
        return b.bitcast(bits, name)

    def simplify(self, node: Any, rewriter: Any) -> Any:
        return replaces(node.inputs[0], node)

    def reference(self, x: Any, *, new_dtype: Any) -> Any:
        dtype = np.dtype(new_dtype)
        x = np.ascontiguousarray(x).reshape(np.shape(x))
        if x.dtype.itemsize > dtype.itemsize:
            ratio = x.dtype.itemsize // dtype.itemsize
            return x.reshape(*x.shape, 1).view(dtype).reshape(*x.shape, ratio)
        if x.dtype.itemsize < dtype.itemsize:
            return x.view(dtype).reshape(x.shape[:-1])
        return x.view(dtype)


BITCAST = BitcastConvertType(
    "bitcast_convert_type", "biuf", lower="bitcast", jvp=(None,), reference=np.asarray
)


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Any:
    """The bits of operand read as new_dtype.

    A narrower dtype gives a new last axis with the parts of each element, the lowest first; a
    wider one needs such an axis.  TypeError for bool and complex, and where sizes do not fit.

    >>> hex(bitcast_convert_type(1.0, "int32"))
    '0x3f800000'
    """
    return BITCAST.bind(operand, new_dtype=dtypes.canonicalize(new_dtype))


# ---- precision


def _mantissa_bits(name: str) -> int:
    return {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}[name]


def _lower_reduce_precision(b: Any, x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
    if x.dtype in ("f16", "bf16"):
        wide = b.convert(x, "f32")
        rounded = _lower_reduce_precision(
            b, wide, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits
        )
        return b.convert(rounded, x.dtype)
    word = "u32" if x.dtype == "f32" else "u64"
    width, stored = int(word[1:]), _mantissa_bits(x.dtype)
    bits = b.bitcast(x, word)
    result = bits
    drop = stored - mantissa_bits
    if drop > 0:  # to nearest, ties to even, on the bits: a carry moves into the exponent
        last = b.and_(b.shr_logical(bits, b.const(drop, word)), b.const(1, word))
        bias = b.add(last, b.const((1 << (drop - 1)) - 1, word))
        mask = ((1 << width) - 1) ^ ((1 << drop) - 1)
        result = b.and_(b.add(bits, bias), b.const(mask, word))
    value = b.bitcast(result, x.dtype)
    own = width - 1 - stored
    if exponent_bits < own:
        bias = (1 << (exponent_bits - 1)) - 1
        size = b.abs(value)
        largest = 2.0**bias * (2 - 2.0 ** -min(mantissa_bits, stored))
        smallest = 2.0 ** (1 - bias)
        inf = b.copysign(b.const(float("inf"), x.dtype), x)
        zero = b.copysign(b.const(0, x.dtype), x)
        value = b.select(b.gt(size, b.const(largest, x.dtype)), inf, value)
        value = b.select(b.lt(size, b.const(smallest, x.dtype)), zero, value)
    return b.select(b.is_nan(x), x, value)


def _reference_reduce_precision(x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
    own = {"float16": 5, "float64": 11}.get(x.dtype.name, 8)
    wide = x.astype(np.float64)
    _, exponent = np.frexp(wide)  # |x| in [2^(exponent-1), 2^exponent)
    exponent = np.maximum(exponent, 3 - (1 << (own - 1)))  # subnormals: that of the smallest normal
    step = np.maximum(exponent - 1 - mantissa_bits, -1074)
    value = np.ldexp(np.rint(np.ldexp(wide, -step)), step)
    if exponent_bits < own:
        bias = (1 << (exponent_bits - 1)) - 1
        largest = 2.0**bias * (2 - 2.0**-mantissa_bits)
        value = np.where(np.abs(value) > largest, np.copysign(np.inf, x), value)
        value = np.where(np.abs(value) < 2.0 ** (1 - bias), np.copysign(0.0, x), value)
    return np.where(np.isfinite(x), value, x).astype(x.dtype)


REDUCE_PRECISION = Elementwise(
    "reduce_precision",
    "f",
    lower=_lower_reduce_precision,
    jvp=(lambda g, out, x, **params: REDUCE_PRECISION.bind(g, **params),),
    transpose=(lambda ct, x, **params: REDUCE_PRECISION.bind(ct, **params),),
    reference=_reference_reduce_precision,
    cost=6.0,
)


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """operand rounded to a float format with so many exponent and mantissa bits, in its own dtype.

    Values too large become infinite, too small ones zero.  ValueError for exponent_bits < 1 or
    mantissa_bits < 0.

    >>> float(reduce_precision(1.001, 5, 2))
    1.0
    """
    if exponent_bits < 1 or mantissa_bits < 0:
        fail(
            ValueError,
            "reduce_precision",
            "expected exponent_bits >= 1 and mantissa_bits >= 0, got "
            f"{exponent_bits} and {mantissa_bits}.",
        )
    return REDUCE_PRECISION.bind(
        operand, exponent_bits=int(exponent_bits), mantissa_bits=int(mantissa_bits)
    )
