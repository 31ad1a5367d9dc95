"""x ** y with a run-time exponent.

4 ULP (loopir/scalar_ops.py).  A static integer exponent is integer_pow (arithmetic.py).
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.core.types import ArrayType, type_of
from jato.ops.arithmetic import INTEGER_POW, SQUARE, mul, sub
from jato.ops.convert import convert_element_type
from jato.ops.elementwise_family import Elementwise, replaces, scalar_value
from jato.ops.families import kind_of
from jato.ops.selection import eq, select_n
from jato.ops.structural import full_like
from jato.ops.transcendental import log


class Pow(Elementwise):
    """x ** y.  Both of one dtype; or x float or complex and y an integer array."""

    def result_type(self, x: Any, y: Any) -> Any:
        if kind_of(y) in "iu" and kind_of(x) in "fc":
            shape = self.common_shape((x, y))
            return ArrayType(shape, x.dtype_code, x.weak_type)
        return super().result_type(x, y)

    def rules_of(self, primals: Sequence[Any]) -> Sequence[Callable[..., Any] | None]:
        return (_pow_base, _pow_exponent)

    def reference(self, x: Any, y: Any) -> Any:
        x, y = np.asarray(x), np.asarray(y)
        if y.dtype.kind in "iu" and x.dtype.kind in "iu":
            return _integer_power(x, y)
        with np.errstate(all="ignore"):  # np.power takes x ** 0.5 for sqrt, wrong at -inf
            wide = np.complex128 if x.dtype.kind == "c" else np.float64
            return np.asarray(np.float_power(x.astype(wide), y.astype(wide))).astype(x.dtype)

    def simplify(self, node: Any, rewriter: Any) -> Any:
        x, y = node.inputs
        exponent = scalar_value(y, rewriter)
        if x.aval is not node.outputs[0].aval or not isinstance(exponent, (int, float)):
            return None
        if exponent == 1:
            return replaces(x, node)
        if exponent == 2:
            return rewriter.bind(SQUARE, x)
        if exponent == 3 or (exponent == -1 and kind_of(x.aval) in "fc"):
            return rewriter.bind(INTEGER_POW, x, y=int(exponent))
        return None


def _integer_power(x: Any, y: Any) -> Any:
    x, y = np.broadcast_arrays(x, y)
    bits = 8 * x.dtype.itemsize
    rows = zip(x.ravel().tolist(), y.ravel().tolist(), strict=True)
    values = []
    for base, exponent in rows:
        if exponent < 0:
            value = base**-exponent if base in (1, -1) else 0
        else:
            value = builtins.pow(base, exponent, 1 << bits)
        values.append(value % (1 << bits))
    return np.array(values, np.uint64).astype(x.dtype).reshape(x.shape)


def _pow_base(g: Any, out: Any, x: Any, y: Any) -> Any:
    """y x^(y-1); 0 where y is 0, also at x = 0."""
    factor = y
    if dtypes.is_integer(type_of(y).dtype):
        factor = convert_element_type(y, type_of(x).dtype)
    share = mul(factor, pow(x, sub(y, 1)))
    zero = type_of(x).dtype.type(0)
    return mul(g, select_n(eq(y, 0), share, zero))


def _pow_exponent(g: Any, out: Any, x: Any, y: Any) -> Any:
    """log(x) x^y; 0 at x = 0."""
    return mul(g, mul(log(select_n(eq(x, 0), x, full_like(x, 1))), out))


def _lower_pow(b: Any, x: Any, y: Any) -> Any:
    if y.dtype[0] not in "iu":
        return b.pow(x, y)
    if hasattr(x, "re"):
        return b.pow(x, b.convert(y, x.dtype))
    if x.dtype[0] in "iu":
        return _lower_integer_power(b, x, y)
    # a big integer loses its parity as a float: the sign is decided on the integer
    size = b.pow(b.abs(x), b.convert(y, x.dtype))
    odd = b.ne(b.and_(y, b.const(1, y.dtype)), b.const(0, y.dtype))
    negative = b.lt(b.copysign(b.const(1, x.dtype), x), b.const(0, x.dtype))
    return b.select(b.and_(odd, negative), b.neg(size), size)


def _lower_integer_power(b: Any, x: Any, y: Any) -> Any:
    one, zero = b.const(1, x.dtype), b.const(0, x.dtype)
    result, factor = one, x
    for bit in range(int(x.dtype[1:]) - (x.dtype[0] == "i")):
        taken = b.ne(b.and_(b.shr_logical(y, b.const(bit, y.dtype)), one), zero)
        result = b.select(taken, b.mul(result, factor), result)
        factor = b.mul(factor, factor)
    if x.dtype[0] == "u":
        return result
    minus_one = b.const(-1, x.dtype)
    # 1 / x^|y|, rounded toward zero
    odd = b.ne(b.and_(y, one), zero)
    unit = b.select(odd, minus_one, one)
    inverse = b.select(b.eq(x, one), one, b.select(b.eq(x, minus_one), unit, zero))
    return b.select(b.lt(y, zero), inverse, result)


POW = Pow("pow", "iufc", lower=_lower_pow, jvp=(None, None), reference=np.power, cost=30.0)


def pow(x: Any, y: Any) -> Any:
    """x ** y, elementwise.

    x, y: of one dtype (integers, floats or complex numbers), or y an integer array.  Integers
    wrap; a negative power of integers is 1 / x^|y| rounded toward zero.  The derivative by x is
    0 where y is 0.

    >>> float(pow(2.0, 3.0))
    8.0
    """
    if type(y) is int and kind_of(type_of(x)) in "fc":
        return POW.bind(x, np.int32(y))
    return POW(x, y)
