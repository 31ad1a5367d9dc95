"""Operator notation for scalar expressions, so that numerical code reads like its formulas.

`Value` pairs a builder with an expression.  `x * y + 1.0` calls the builder's `mul` and `add`;
a Python number takes the dtype of the value it meets.  Comparisons with `<` and friends give bool
values; equality is `x.eq(y)`, because Python needs `==` for itself.

Nothing here knows what a builder is beyond "one method per opcode of scalar_ops.py".  The users
are complex.py and the expansions of compiler/llvm/math; both unwrap to plain expressions at their
boundary.

Start reading at `Value`, then `where` and `horner`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from jato.loopir.grammar import Expr

Number = int | float | bool
Operand: TypeAlias = "Value | int | float | bool"

_SIGNED = {"u32": "i32", "u64": "i64"}
BITS = {"f32": "u32", "f64": "u64"}
FLOATS = {"u32": "f32", "u64": "f64"}


class Value:
    """An expression together with the builder that makes more of them."""

    __slots__ = ("builder", "expr")

    def __init__(self, builder: Any, expr: Expr):
        self.builder = builder
        self.expr = expr

    @property
    def dtype(self) -> str:
        return self.expr.dtype

    def constant(self, number: Number, dtype: str | None = None) -> Value:
        """`number` as a constant of `dtype` (default: the dtype of self); integers wrap."""
        return Value(self.builder, self.builder.const(number, dtype or self.expr.dtype))

    def _operand(self, other: Operand) -> Expr:
        return other.expr if isinstance(other, Value) else self.constant(other).expr

    def call(self, opcode: str, *others: Operand) -> Value:
        """Any opcode by its name: x.call("exp")."""
        return self._call(opcode, *others)

    def _call(self, opcode: str, *others: Operand) -> Value:
        method = getattr(self.builder, opcode)
        return Value(self.builder, method(self.expr, *[self._operand(other) for other in others]))

    # Arithmetic.
    def __add__(self, other: Operand) -> Value:
        return self._call("add", other)

    def __radd__(self, other: Operand) -> Value:
        return self._call("add", other)

    def __sub__(self, other: Operand) -> Value:
        return self._call("sub", other)

    def __rsub__(self, other: Number) -> Value:
        return self.constant(other)._call("sub", self)

    def __mul__(self, other: Operand) -> Value:
        return self._call("mul", other)

    def __rmul__(self, other: Operand) -> Value:
        return self._call("mul", other)

    def __truediv__(self, other: Operand) -> Value:
        return self._call("div", other)

    def __rtruediv__(self, other: Number) -> Value:
        return self.constant(other)._call("div", self)

    def __neg__(self) -> Value:
        return self._call("neg")

    def __abs__(self) -> Value:
        return self._call("abs")

    def fma(self, factor: Operand, addend: Operand) -> Value:
        """self * factor + addend with one rounding."""
        return self._call("fma", factor, addend)

    def sqrt(self) -> Value:
        return self._call("sqrt")

    def trunc(self) -> Value:
        return self._call("trunc")

    def round_even(self) -> Value:
        return self._call("round_even")

    def copysign(self, sign: Operand) -> Value:
        return self._call("copysign", sign)

    def at_most(self, bound: Operand) -> Value:
        """min(self, bound) in one instruction; a NaN in self stays."""
        return Value(self.builder, self.builder.minnum(self._operand(bound), self.expr))

    def at_least(self, bound: Operand) -> Value:
        """max(self, bound) in one instruction; a NaN in self stays."""
        return Value(self.builder, self.builder.maxnum(self._operand(bound), self.expr))

    def maximum(self, other: Operand) -> Value:
        return self._call("max", other)

    # Comparison.
    def __lt__(self, other: Operand) -> Value:
        return self._call("lt", other)

    def __le__(self, other: Operand) -> Value:
        return self._call("le", other)

    def __gt__(self, other: Operand) -> Value:
        return self._call("gt", other)

    def __ge__(self, other: Operand) -> Value:
        return self._call("ge", other)

    def eq(self, other: Operand) -> Value:
        return self._call("eq", other)

    def ne(self, other: Operand) -> Value:
        return self._call("ne", other)

    def is_nan(self) -> Value:
        return self._call("is_nan")

    # Bits.
    def __and__(self, other: Operand) -> Value:
        return self._call("and_", other)

    def __or__(self, other: Operand) -> Value:
        return self._call("or_", other)

    def __xor__(self, other: Operand) -> Value:
        return self._call("xor", other)

    def __invert__(self) -> Value:
        return self._call("not_")

    def __lshift__(self, other: Operand) -> Value:
        return self._call("shl", other)

    def __rshift__(self, other: Operand) -> Value:
        """Logical, for unsigned integers."""
        return self._call("shr_logical", other)

    def shift_right_arithmetic(self, count: int) -> Value:
        """The sign is kept; the bits are unsigned before and after."""
        signed = self.bitcast(_SIGNED[self.dtype])
        return signed._call("shr_arithmetic", count).bitcast(self.dtype)

    def mulhi(self, other: Operand) -> Value:
        return self._call("mulhi", other)

    def lookup(self, table: tuple[float, ...]) -> Value:
        """table[self % 32], for a u32 and 32 numbers."""
        return Value(self.builder, self.builder.lookup(self.expr, table))

    # Conversion.
    def convert(self, dtype: str) -> Value:
        return Value(self.builder, self.builder.convert(self.expr, dtype))

    def bitcast(self, dtype: str) -> Value:
        return Value(self.builder, self.builder.bitcast(self.expr, dtype))

    def bits(self) -> Value:
        """The bits of a float as an unsigned integer."""
        return self.bitcast(BITS[self.dtype])

    def as_float(self) -> Value:
        """The float of these bits."""
        return self.bitcast(FLOATS[self.dtype])


def where(condition: Value, if_true: Operand, if_false: Operand) -> Value:
    """select; at least one of the two alternatives is a Value."""
    model = if_true if isinstance(if_true, Value) else if_false
    assert isinstance(model, Value)
    builder = condition.builder
    yes, no = model._operand(if_true), model._operand(if_false)
    return Value(builder, builder.select(condition.expr, yes, no))


def if_any(mask: Value, slow: Callable[[], Value], fast: Value) -> Value:
    builder = mask.builder
    return Value(builder, builder.if_any(mask.expr, lambda: slow().expr, fast.expr))


def horner(x: Value, coefficients: Sequence[float]) -> Value:
    """coefficients[0] + coefficients[1] x + ... ; one chain of fma: fewest nodes, best rounding."""
    result = x.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result.fma(x, coefficient)
    return result


def two_sum(x: Value, y: Value) -> tuple[Value, Value]:
    """(s, e): s = round(x + y), s + e = x + y exactly."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def fast_two_sum(x: Value, y: Value) -> tuple[Value, Value]:
    """The same in 3 operations where |x| >= |y|."""
    total = x + y
    return total, y - (total - x)


def two_product(x: Value, y: Value) -> tuple[Value, Value]:
    """(p, e): p = round(x y), p + e = x y exactly (short of underflow)."""
    product = x * y
    return product, x.fma(y, -product)
