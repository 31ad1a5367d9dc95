"""Elementwise comparison, choice and bit operations.

Like the other entries of the family: operands have one dtype and one shape, or are scalars.
Start reading at `SelectN`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jato.core.primitive import UndefinedPrimal
from jato.core.types import ArrayType, type_of
from jato.ops.elementwise_family import (
    Elementwise,
    replaces,
    scalar_value,
)
from jato.ops.families import transposed
from jato.ops.numbers import NUMBERS, match_numbers
from jato.ops.shapes import sum_to_shape
from jato.ops.structural import full


def _comparison(name: str, reference: Callable[..., Any], takes: str = "biuf") -> Elementwise:
    return Elementwise(name, takes, gives="bool", lower=name, jvp=(None, None), reference=reference)


EQ = _comparison("eq", np.equal, "biufck")
NE = _comparison("ne", np.not_equal, "biufck")
LT = _comparison("lt", np.less)
LE = _comparison("le", np.less_equal)
GT = _comparison("gt", np.greater)
GE = _comparison("ge", np.greater_equal)


def eq(x: Any, y: Any) -> Any:
    """x == y, elementwise, as bool; false where either is NaN.

    >>> bool(eq(1.0, 1.0))
    True
    """
    return EQ(x, y)


def ne(x: Any, y: Any) -> Any:
    """x != y, elementwise, as bool; true where either is NaN.

    >>> bool(ne(1.0, 1.0))
    False
    """
    return NE(x, y)


def lt(x: Any, y: Any) -> Any:
    """x < y, elementwise, as bool.

    >>> bool(lt(1.0, 2.0))
    True
    """
    return LT(x, y)


def le(x: Any, y: Any) -> Any:
    """x <= y, elementwise, as bool.

    >>> bool(le(1.0, 2.0))
    True
    """
    return LE(x, y)


def gt(x: Any, y: Any) -> Any:
    """x > y, elementwise, as bool.

    >>> bool(gt(1.0, 2.0))
    False
    """
    return GT(x, y)


def ge(x: Any, y: Any) -> Any:
    """x >= y, elementwise, as bool.

    >>> bool(ge(1.0, 2.0))
    False
    """
    return GE(x, y)


# ---- choice


class SelectN(Elementwise):
    """cases[which], elementwise.  which: bool (two cases) or int32; out of range is clamped."""

    def result_type(self, which: Any, *cases: Any) -> Any:
        if which.dtype_code == 0:
            if len(cases) > 2:
                self.fail(f"expected which of dtype int32 for {len(cases)} cases, got {which}.")
        elif which.dtype_code != 3:
            self.fail(f"expected which of dtype bool or int32, got {which}.")
        first = cases[0]
        if any(x.dtype_code != first.dtype_code for x in cases):
            self.fail(
                f"expected cases of one dtype, got {', '.join(map(str, cases))}.",
                "Try lax.convert_element_type; jato.numpy.where promotes.",
            )
        shape = self.common_shape((which, *cases))
        return ArrayType(shape, first.dtype_code, all(x.weak_type for x in cases))

    def rules_of(self, primals: Sequence[Any]) -> Sequence[Callable[..., Any] | None]:
        return (None, *(_share_of_case(i, len(primals) - 1) for i in range(len(primals) - 1)))

    @transposed
    def transpose(self, cotangent: Any, which: Any, *cases: Any) -> Sequence[Any]:
        found: list[Any] = [None]
        for i, x in enumerate(cases):
            if type(x) is not UndefinedPrimal:
                found.append(None)
                continue
            share = _share_of_case(i, len(cases))(cotangent, None, which)
            found.append(sum_to_shape(share, x.aval.shape))
        return found

    def lower(self, b: Any, inputs: Any, index: Any, out: Any) -> Any:
        which, *values = [x(index) if x.aval.shape else x(()) for x in inputs]
        if len(values) == 1:
            return values[0]
        if which.dtype == "bool":
            return b.select(which, values[1], values[0])
        result = values[-1]
        for i in range(len(values) - 2, -1, -1):
            result = b.select(b.le(which, b.const(i, "i32")), values[i], result)
        return result

    def simplify(self, node: Any, rewriter: Any) -> Any:
        which, *cases = node.inputs
        if all(x is cases[0] for x in cases):
            return replaces(cases[0], node)
        known = scalar_value(which, rewriter)
        if isinstance(known, (bool, int)):
            return replaces(cases[sorted((0, int(known), len(cases) - 1))[1]], node)
        return None

    def reference(self, which: Any, *cases: Any) -> Any:
        arrays = np.broadcast_arrays(which, *cases)
        position = np.clip(arrays[0].astype(np.int64), 0, len(cases) - 1)
        stacked = np.stack(arrays[1:])
        return np.take_along_axis(stacked, position[None], axis=0)[0].astype(cases[0].dtype)


def _share_of_case(i: int, count: int) -> Callable[..., Any]:
    """What of a tangent or cotangent goes through case i: itself there, 0 elsewhere."""

    def share(g: Any, out: Any, which: Any, *cases: Any) -> Any:
        zero = full((), 0, type_of(g).dtype)
        return SELECT_N.bind(which, *(g if j == i else zero for j in range(count)))

    return share


SELECT_N = SelectN("select_n", "biufck", lower="select", jvp=(), reference=np.where)


def select_n(which: Any, *cases: Any) -> Any:
    """cases[which], elementwise.

    which: bool (false takes the first of two cases) or int32, clamped to the cases there are.
    cases: arrays of one dtype and shape, or scalars.  TypeError otherwise.

    >>> float(select_n(True, 1.0, 2.0))
    2.0
    """
    if not cases:
        SELECT_N.fail("expected at least one case, got none.", error=ValueError)
    for x in cases:
        if type(x) in NUMBERS:
            return SELECT_N.bind(which, *match_numbers("select_n", cases))
    return SELECT_N.bind(which, *cases)


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """on_true where pred, else on_false: select_n with two cases.

    >>> float(select(True, 1.0, 2.0))
    1.0
    """
    return select_n(pred, on_false, on_true)


# ---- bits


def _simplify_not(node: Any, rewriter: Any) -> Any:
    inner = rewriter.producer(node.inputs[0])  # not(not x) -> x
    if inner is not None and inner.primitive is NOT:
        return replaces(inner.inputs[0], node)
    return None


NOT = Elementwise(
    "bitwise_not",
    "biu",
    lower="not",
    jvp=(None,),
    reference=np.invert,
    simplify=_simplify_not,
)


def _bitwise(name: str, takes: str, opcode: str, reference: Callable[..., Any]) -> Elementwise:
    return Elementwise(name, takes, lower=opcode, jvp=(None, None), reference=reference)


AND = _bitwise("bitwise_and", "biu", "and", np.bitwise_and)
OR = _bitwise("bitwise_or", "biu", "or", np.bitwise_or)
XOR = _bitwise("bitwise_xor", "biu", "xor", np.bitwise_xor)


def bitwise_not(x: Any) -> Any:
    """All bits flipped; the logical not of bools.

    >>> bool(bitwise_not(True))
    False
    """
    return NOT(x)


not_ = bitwise_not


def bitwise_and(x: Any, y: Any) -> Any:
    """The bits set in both, elementwise; the logical and of bools.

    >>> int(bitwise_and(6, 3))
    2
    """
    return AND(x, y)


def bitwise_or(x: Any, y: Any) -> Any:
    """The bits set in either, elementwise; the logical or of bools.

    >>> int(bitwise_or(6, 3))
    7
    """
    return OR(x, y)


def bitwise_xor(x: Any, y: Any) -> Any:
    """The bits set in one of the two, elementwise.

    >>> int(bitwise_xor(6, 3))
    5
    """
    return XOR(x, y)


def _bits(x: Any) -> int:
    return x.dtype.itemsize * 8


def _shift_left(x: Any, y: Any) -> Any:
    inside = (y >= 0) & (y < _bits(x))
    return np.where(inside, np.left_shift(x, np.where(inside, y, 0)), 0)


def _shift_right_logical(x: Any, y: Any) -> Any:
    inside = (y >= 0) & (y < _bits(x))
    unsigned = x.astype(f"uint{_bits(x)}")
    count = np.where(inside, y, 0).astype(unsigned.dtype)
    return np.where(inside, np.right_shift(unsigned, count), 0).astype(x.dtype)


def _shift_right_arithmetic(x: Any, y: Any) -> Any:
    count = np.where((y >= 0) & (y < _bits(x)), y, _bits(x) - 1)
    signed = x.astype(f"int{_bits(x)}")
    return np.right_shift(signed, count.astype(signed.dtype)).astype(x.dtype)


SHL = _bitwise("shift_left", "iu", "shl", _shift_left)
SHR_LOGICAL = _bitwise("shift_right_logical", "iu", "shr_logical", _shift_right_logical)
SHR_ARITHMETIC = _bitwise("shift_right_arithmetic", "iu", "shr_arithmetic", _shift_right_arithmetic)


def shift_left(x: Any, y: Any) -> Any:
    """The bits of x moved up by y places; 0 where y is negative or the width or more.

    >>> int(shift_left(3, 2))
    12
    """
    return SHL(x, y)


def shift_right_logical(x: Any, y: Any) -> Any:
    """The bits of x moved down by y places, zeros coming in; 0 where y is out of range.

    >>> int(shift_right_logical(12, 2))
    3
    """
    return SHR_LOGICAL(x, y)


def shift_right_arithmetic(x: Any, y: Any) -> Any:
    """The bits of x moved down by y places, the sign bit coming in.

    >>> int(shift_right_arithmetic(-12, 2))
    -3
    """
    return SHR_ARITHMETIC(x, y)


def _population_count(x: Any) -> Any:
    return np.bitwise_count(x.astype(f"uint{_bits(x)}"))


def _leading_zeros(x: Any) -> Any:
    unsigned = x.astype(f"uint{_bits(x)}")
    return np.array([_bits(x) - int(v).bit_length() for v in unsigned.ravel()], x.dtype).reshape(
        x.shape
    )


def _high_product(x: Any, y: Any) -> Any:
    bits = _bits(x)
    product = np.asarray(x.astype(object) * y.astype(object))
    return np.array([int(v) >> bits for v in product.ravel()], x.dtype).reshape(product.shape)


POPULATION_COUNT = Elementwise(
    "population_count", "iu", lower="popcount", jvp=(None,), reference=_population_count
)
CLZ = Elementwise("clz", "iu", lower="clz", jvp=(None,), reference=_leading_zeros)
MULHI = _bitwise("mulhi", "iu", "mulhi", _high_product)


def population_count(x: Any) -> Any:
    """The number of bits set, elementwise.

    >>> int(population_count(7))
    3
    """
    return POPULATION_COUNT(x)


def clz(x: Any) -> Any:
    """The number of zero bits above the highest one set.

    >>> int(clz(1))
    31
    """
    return CLZ(x)


def mulhi(x: Any, y: Any) -> Any:
    """The high half of the double-width product of integers.

    >>> int(mulhi(1 << 20, 1 << 20))
    256
    """
    return MULHI(x, y)
