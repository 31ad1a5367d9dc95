"""ExpressionBuilder: makes scalar expressions, one method per opcode.

Equal expressions are one object (hash-consing), constants are folded, and what can be decided
from the ranges of loop variables is decided here, so that no later pass needs to.  Operands are
expressions of one dtype, complex pairs (`Complex`: delegated to complex.py), or Python numbers,
which take the dtype of the other operand.

  x + 0, x * 1, 0 * x      -> x, x, 0            integers; floats only where no bit can change
  (i * 8 + j) div 8        -> i                  where 0 <= j < 8 is known
  i < 100                  -> true               where the range of i says so
  i64 sums and products    -> one expression for one address (see index_math.py)
  f16, bf16 arithmetic     -> convert to f32, operate, round back

Python's keywords get an underscore: `and_`, `or_`, `not_`.  `op(name, *operands)` calls an
opcode by its name.  Start reading at `_binary`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from jato.base.errors import invariant
from jato.loopir.complex import Complex
from jato.loopir.functions import FunctionBuilder
from jato.loopir.grammar import ITEMSIZE, Buffer, Expr
from jato.loopir.index_math import INTEGER_RANGE, Linear, wrap
from jato.loopir.nodes import COMPLEX_PARTS, FLOATS, HALF, Operand, dtype_of
from jato.loopir.root_bounds import compare_root
from jato.loopir.small_quotients import divide_byte

_OPPOSITE = {"lt": "ge", "le": "gt"}


class ExpressionBuilder(FunctionBuilder):
    """Makes expressions.  See the module's docstring."""

    # ---- loads

    def load(self, buffer: Buffer, index: Operand) -> Any:
        """The element at `index` (under a guard: 0 where the guard is false).

        Elements of buffers made as complex are Complex.  Loads of "in" buffers are
        hash-consed.  A load of an "out" or "local" buffer is a new value each time and is
        evaluated where it is first used."""
        index = self._coerce(index, "i64")
        if buffer in self._pairs:
            first = self.mul(index, 2)
            return Complex(self._load(buffer, first), self._load(buffer, self.add(first, 1)))
        return self._load(buffer, index)

    def _load(self, buffer: Buffer, index: Any) -> Expr:
        args: tuple[Expr, ...] = (index,)
        if self._guards:
            mask = self._guards[-1]
            if mask.op == "const" and not mask.attr:
                nothing: Expr = self.const(0, buffer.dtype)
                return nothing
            if mask.op != "const":
                args = (index, mask, self.const(0, buffer.dtype))
        if buffer.space == "in":
            return self._node("load", args, buffer.dtype, buffer)
        return self._fresh("load", args, buffer.dtype, buffer)

    # ---- guards and branches

    @contextmanager
    def guard(self, mask: Expr) -> Iterator[None]:
        """Loads made inside read nothing and give 0 where `mask` is false; guards nest."""
        self._guards.append(self.and_(self._guards[-1], mask) if self._guards else mask)
        try:
            yield
        finally:
            self._guards.pop()

    def guarded(self, condition: Expr, thunk: Callable[[], Any], other: Any) -> Any:
        """`thunk()` where `condition` holds, computed under its guard, else `other`."""
        if condition.op == "const":
            return thunk() if condition.attr else other
        with self.guard(condition):
            value = thunk()
            mask = self._guards[-1]
        if isinstance(value, Expr) and value.op == "load" and len(value.args) == 3:
            # the load itself gives `other`: no select
            if value.args[2] is other and _implies(value.args[1], condition):
                return value
            if value.args[1] is mask is condition and isinstance(other, Expr):
                args = (value.args[0], mask, other)
                if value.attr.space == "in":
                    return self._node("load", args, value.dtype, value.attr)
                return self._fresh("load", args, value.dtype, value.attr)
        return self.select(condition, value, other)

    def if_any(self, mask: Expr, slow: Callable[[], Expr], fast: Expr) -> Expr:
        """`slow()` where `mask`, else `fast`; slow() runs only if any lane's mask is true."""
        if mask.op == "const":
            return slow() if mask.attr else fast
        value = slow()
        invariant(value.dtype == fast.dtype, f"if_any: {value.dtype} and {fast.dtype}")
        return value if value is fast else self._node("if_any", (mask, value, fast), fast.dtype)

    # ---- arithmetic

    def add(self, x: Operand, y: Operand) -> Any:
        x, y = self._pair(x, y)
        if isinstance(x, Expr) and isinstance(y, Expr):
            if x.dtype == "i64" == y.dtype:
                form = self.linear_sum(x, y, 1)
                if form is not None:
                    return self._from_linear(form)
            if x.op == "const" and y.op != "const":
                x, y = y, x
            if y.op == "const" and _is_zero(y, negative=True):
                return x
            if y.op == "neg" and y.dtype == x.dtype and y.dtype not in HALF:
                return self.sub(x, y.args[0])
        return self._binary("add", x, y)

    def sub(self, x: Operand, y: Operand) -> Any:
        x, y = self._pair(x, y)
        if isinstance(x, Expr) and isinstance(y, Expr):
            if x.dtype == "i64" == y.dtype:
                form = self.linear_sum(x, y, -1)
                if form is not None:
                    return self._from_linear(form)
            if y.op == "const" and _is_zero(y, negative=False):
                return x
            if x is y and x.dtype not in FLOATS:
                return self.const(0, x.dtype)
            if y.op == "neg" and y.dtype == x.dtype and y.dtype not in HALF:
                return self.add(x, y.args[0])
        return self._binary("sub", x, y)

    def mul(self, x: Operand, y: Operand) -> Any:
        x, y = self._pair(x, y)
        if isinstance(x, Expr) and isinstance(y, Expr):
            if x.dtype == "i64" == y.dtype:
                form = self.linear_product(x, y)
                if form is not None:
                    return self._from_linear(form)
            if x.op == "const" and y.op != "const":
                x, y = y, x
            if y.op == "const":
                if y.attr == 1:
                    return x
                if y.attr == 0 and y.dtype not in FLOATS:
                    return y
                if y.attr == -1 and y.dtype not in HALF:
                    return self.neg(x)
        return self._binary("mul", x, y)

    def neg(self, x: Operand) -> Any:
        if isinstance(x, Expr):
            if x.dtype == "i64":
                form = self.linear_sum(self.index(0), x, -1)
                if form is not None:
                    return self._from_linear(form)
            if x.op == "neg":
                return x.args[0]
        return self._unary("neg", x)

    def abs(self, x: Operand) -> Any:
        if isinstance(x, Expr):
            if x.dtype[0] == "u" or (x.dtype[0] == "i" and self.range(x)[0] >= 0):
                return x
            if x.op in ("abs", "neg") and x.dtype not in HALF:
                return x if x.op == "abs" else self.abs(x.args[0])
        return self._unary("abs", x)

    def fma(self, x: Operand, y: Operand, z: Operand) -> Any:
        """x * y + z with one rounding."""
        dtype = next(dtype_of(v) for v in (x, y, z) if isinstance(v, (Expr, Complex)))
        args = tuple(self._coerce(v, dtype) for v in (x, y, z))
        if any(isinstance(v, Complex) for v in args):
            return self.add(self.mul(args[0], args[1]), args[2])
        invariant(
            all(v.dtype == dtype for v in args), f"fma: operands of {[v.dtype for v in args]}"
        )
        self._check_domain("fma", dtype)
        if dtype in HALF:
            return self.convert(self.fma(*map(self._widen, args)), dtype)
        if all(v.op == "const" for v in args):
            return self._fold("fma", args, dtype)
        return self._node("fma", args, dtype)

    def div(self, x: Operand, y: Operand) -> Any:
        x, y = self._pair(x, y)
        if isinstance(x, Expr) and isinstance(y, Expr):
            if y.op == "const" and y.attr == 1:
                return x
            if x.dtype == "i64" == y.dtype:
                simple = self._index_div_rem(x, y)
                if simple is not None:
                    return simple[0]
            elif y.op == "const" and y.dtype in ("f32", "f64") and _has_exact_reciprocal(y):
                return self.mul(x, self.const(1 / y.attr, y.dtype))
            of_byte = divide_byte(self, x, y)
            if of_byte is not None:
                return of_byte
        return self._binary("div", x, y)

    def rem(self, x: Operand, y: Operand) -> Any:
        x, y = self._pair(x, y)
        if isinstance(x, Expr) and isinstance(y, Expr) and x.dtype == "i64" == y.dtype:
            simple = self._index_div_rem(x, y)
            if simple is not None:
                return simple[1]
        return self._binary("rem", x, y)

    def library_remainder(self, x: Expr, y: Expr) -> Expr:
        """`rem` of floats as a call of the C library for each lane; made by code generation."""
        return self._node("rem", (x, y), x.dtype, "library")

    def _index_div_rem(self, x: Expr, y: Expr) -> tuple[Expr, Expr] | None:
        """Quotient and remainder of indices where x >= 0 and y > 0 are known.

        x = g * big + small, 0 <= small < g, g | y  ->  big div (y/g), g * (big rem (y/g)) + small
        y * whole + rest, rest >= 0                 ->  whole + rest div y, rest rem y
        (x div a) div b                             ->  x div (a * b)
        (x rem (a * b)) rem b                       ->  x rem b
        """
        low, high = self.range(x)
        y_low, _ = self.range(y)
        if low < 0 or y_low <= 0:
            return None
        if high < y_low:
            return self.index(0), x
        if y.op != "const" or x.op == "const":
            return None
        divisor = y.attr
        if divisor == 1:
            return x, self.index(0)
        split = self.split_by(x, divisor)
        if split is not None:
            big, small, factor = split
            outer, rest = self._from_linear(big), self._from_linear(small)
            ratio = self.index(divisor // factor)
            quotient, remainder = self.div(outer, ratio), self.rem(outer, ratio)
            return quotient, self.add(self.mul(remainder, factor), rest)
        whole, left = self.multiples_of(x, divisor)
        if whole.terms and self.range_of_linear(left)[0] >= 0:
            part = self._from_linear(left)
            quotient = self.add(self._from_linear(whole), self.div(part, y))
            return quotient, self.rem(part, y)
        joined = self._one_quotient(x, divisor)
        if joined is not None:
            return joined
        inner = x.args[1] if x.op in ("div", "rem") else None
        if inner is not None and inner.op == "const" and inner.attr > 0:
            if x.op == "div" and inner.attr * divisor < 1 << 62:
                total = self.index(inner.attr * divisor)
                quotient = self.div(x.args[0], total)
                return quotient, self._node("rem", (x, y), "i64")
            if x.op == "rem" and inner.attr % divisor == 0:
                return self._node("div", (x, y), "i64"), self.rem(x.args[0], y)
        return None

    def _one_quotient(self, x: Expr, divisor: int) -> tuple[Expr, Expr] | None:
        """(K + r div a) div b  ->  (a K + r) div (a b), for what is never negative."""
        form = self.linear(x)
        parts = [
            m[0] for m, c in form.terms.items()
            if c == 1 and len(m) == 1 and m[0].op == "div" and m[0].args[1].op == "const"
        ]  # fmt: skip
        if len(parts) != 1 or len(form.terms) < 2 or self.range(x)[0] < 0:
            return None
        (quotient,) = parts
        below, step = quotient.args
        low, high = self.range(below)
        rest = Linear({m: c for m, c in form.terms.items() if m != (quotient,)}, form.const)
        first, last = self.range_of_linear(rest)
        if step.attr <= 0 or low < 0 or first < 0 or (last + 1) * step.attr + high >= 1 << 62:
            return None
        total = self.add(self.mul(self._from_linear(rest), step), below)
        return (
            self.div(total, self.index(step.attr * divisor)),
            self._node("rem", (x, self.index(divisor)), "i64"),
        )

    def max(self, x: Operand, y: Operand) -> Any:
        return self._extremum("max", x, y)

    def min(self, x: Operand, y: Operand) -> Any:
        return self._extremum("min", x, y)

    def limited(self, x: Operand, limit: Operand) -> Any:
        """min(x, limit), which stays where x, not a constant, is known to be the smaller: whether a
        length is a multiple of a block's must not show in a kernel, or each has one of its own."""
        x, limit = self._pair(x, limit)
        if not (isinstance(x, Expr) and isinstance(limit, Expr)) or len({*self.range(x)}) == 1:
            return self.min(x, limit)
        return self._node("min", (x, limit), x.dtype)

    def _extremum(self, op: str, x: Operand, y: Operand) -> Any:
        x, y = self._pair(x, y)
        if x is y:
            return x
        if isinstance(x, Expr) and isinstance(y, Expr) and x.dtype == y.dtype:
            if x.dtype == "bool":
                return self.or_(x, y) if op == "max" else self.and_(x, y)
            if x.dtype not in FLOATS:
                a, b = self.range(x), self.range(y)
                if a[0] >= b[1]:
                    return x if op == "max" else y
                if b[0] >= a[1]:
                    return y if op == "max" else x
        return self._binary(op, x, y)

    def maxnum(self, x: Operand, y: Operand) -> Any:
        """The larger; the second operand if either is NaN."""
        return self._binary("maxnum", x, y)

    def minnum(self, x: Operand, y: Operand) -> Any:
        """The smaller; the second operand if either is NaN."""
        return self._binary("minnum", x, y)

    def mulhi(self, x: Operand, y: Operand) -> Any:
        return self._binary("mulhi", x, y)

    # ---- bits

    def and_(self, x: Operand, y: Operand) -> Any:
        return self._bitwise("and", x, y)

    def or_(self, x: Operand, y: Operand) -> Any:
        return self._bitwise("or", x, y)

    def xor(self, x: Operand, y: Operand) -> Any:
        x, y = self._pair(x, y)
        if x is y and isinstance(x, Expr) and x.dtype not in FLOATS:
            return self.const(0, x.dtype)
        return self._bitwise("xor", x, y)

    def _bitwise(self, op: str, x: Operand, y: Operand) -> Any:
        x, y = self._pair(x, y)
        if isinstance(x, Expr) and isinstance(y, Expr):
            if x is y and op != "xor":
                return x
            if x.op == "const":
                x, y = y, x
            if y.op == "const" and x.dtype == y.dtype and x.dtype not in FLOATS:
                ones = y.attr is True if y.dtype == "bool" else y.attr == wrap(-1, y.dtype)
                if not y.attr:
                    return y if op == "and" else x
                if ones:
                    return {"and": x, "or": y}.get(op) or self.not_(x)
        return self._binary(op, x, y)

    def not_(self, x: Operand) -> Any:
        if isinstance(x, Expr):
            if x.op == "not":
                return x.args[0]
            if x.dtype == "bool" and x.op in _OPPOSITE and x.args[0].dtype not in FLOATS:
                return getattr(self, _OPPOSITE[x.op])(*x.args)
            if x.op in ("eq", "ne"):
                return self._node("ne" if x.op == "eq" else "eq", x.args, "bool")
        return self._unary("not", x)

    def shl(self, x: Operand, y: Operand) -> Any:
        return self._shift("shl", x, y)

    def shr_logical(self, x: Operand, y: Operand) -> Any:
        return self._shift("shr_logical", x, y)

    def shr_arithmetic(self, x: Operand, y: Operand) -> Any:
        return self._shift("shr_arithmetic", x, y)

    def _shift(self, op: str, x: Operand, y: Operand) -> Any:
        x, y = self._pair(x, y)
        if isinstance(y, Expr) and y.op == "const" and y.attr == 0:
            return x
        return self._binary(op, x, y)

    def popcount(self, x: Operand) -> Any:
        return self._unary("popcount", x)

    def clz(self, x: Operand) -> Any:
        return self._unary("clz", x)

    def ctz(self, x: Operand) -> Any:
        return self._unary("ctz", x)

    # ---- comparisons and choice

    def eq(self, x: Operand, y: Operand) -> Any:
        return self._compare("eq", x, y)

    def ne(self, x: Operand, y: Operand) -> Any:
        return self._compare("ne", x, y)

    def lt(self, x: Operand, y: Operand) -> Any:
        return self._compare("lt", x, y)

    def le(self, x: Operand, y: Operand) -> Any:
        return self._compare("le", x, y)

    def gt(self, x: Operand, y: Operand) -> Any:
        """x > y, made as y < x."""
        x, y = self._pair(x, y)
        return self._compare("lt", y, x)

    def ge(self, x: Operand, y: Operand) -> Any:
        """x >= y, made as y <= x."""
        x, y = self._pair(x, y)
        return self._compare("le", y, x)

    def _compare(self, op: str, x: Operand, y: Operand) -> Any:
        x, y = self._pair(x, y)
        if isinstance(x, Expr) and isinstance(y, Expr) and x.dtype == y.dtype:
            if x.dtype not in FLOATS:
                known = self._decide(op, x, y)
                if known is not None:
                    return self.const(known, "bool")
            if x.op == "const" and op in ("eq", "ne"):
                x, y = y, x
            elif op in ("lt", "le") and (x.op == "const") != (y.op == "const"):
                without_root = compare_root(self, op, x, y)
                if without_root is not None:
                    return without_root
                without_quotient = self._compare_quotient(op, x, y)
                if without_quotient is not None:
                    return without_quotient
        return self._binary(op, x, y)

    def _compare_quotient(self, op: str, x: Expr, y: Expr) -> Any:
        """lt or le of a constant and e / n + c, for e >= 0, as a comparison of e; else None.

        A column of a row of pixels, v / 3 < 10, is v < 30."""
        if x.dtype != "i64":
            return None
        form = self.linear(y if x.op == "const" else x)
        if len(form.terms) != 1:
            return None
        ((monomial, factor),) = form.terms.items()
        quotient = monomial[0]
        if factor != 1 or len(monomial) != 1 or quotient.op != "div":
            return None
        e, divisor = quotient.args
        if divisor.op != "const" or divisor.attr <= 0 or self.range(e)[0] < 0:
            return None
        if x.op == "const":  # k <= q + c, or k < q + c
            least = x.attr - form.const + (op == "lt")
            return self.le(self.index(least * divisor.attr), e)
        most = y.attr - form.const + (op == "le")
        return self.lt(e, self.index(most * divisor.attr))

    def _decide(self, op: str, x: Expr, y: Expr) -> bool | None:
        """The comparison of integers when their ranges settle it."""
        if x is y:
            return op in ("eq", "le")
        a, b = self.range(x), self.range(y)
        low, high = a[0] - b[1], a[1] - b[0]
        if x.dtype == "i64" and low <= 0 <= high:
            difference = self.difference_range(x, y)
            low, high = difference if difference is not None else (low, high)
        if op == "lt":
            return True if high < 0 else False if low >= 0 else None
        if op == "le":
            return True if high <= 0 else False if low > 0 else None
        apart = low > 0 or high < 0
        same = low == high == 0
        if apart or same:
            return same if op == "eq" else apart
        return None

    def select(self, condition: Any, x: Any, y: Any) -> Any:
        """x where `condition` (bool), else y."""
        x, y = self._pair(x, y)
        if isinstance(condition, (bool, np.bool_)):
            condition = self.const(condition, "bool")
        invariant(condition.dtype == "bool", f"select: condition of dtype {condition.dtype}")
        if condition.op == "const":
            return x if condition.attr else y
        if isinstance(x, Complex) or isinstance(y, Complex):
            x, y = self._as_complex(x, y), self._as_complex(y, x)
            return Complex(self.select(condition, x.re, y.re), self.select(condition, x.im, y.im))
        invariant(x.dtype == y.dtype, f"select: {x.dtype} and {y.dtype}")
        if x is y:
            return x
        if condition.op == "not":
            return self.select(condition.args[0], y, x)
        if x.dtype == "bool":
            if x.op == "const":
                return self.or_(condition, y) if x.attr else self.and_(self.not_(condition), y)
            if y.op == "const":
                return self.or_(self.not_(condition), x) if y.attr else self.and_(condition, x)
        return self._node("select", (condition, x, y), x.dtype)

    def is_nan(self, x: Operand) -> Any:
        if isinstance(x, Expr) and x.dtype not in FLOATS:
            return self.const(False, "bool")
        return self._unary("is_nan", x)

    # ---- conversions

    def convert(self, x: Operand, dtype: str) -> Any:
        """The value as another dtype; complex to real takes the real part."""
        part = COMPLEX_PARTS.get(dtype)
        if part is not None:
            if isinstance(x, Complex):
                return Complex(self.convert(x.re, part), self.convert(x.im, part))
            return Complex(self.convert(x, part), self.const(0, part))
        if isinstance(x, Complex):
            if dtype == "bool":
                return self.or_(self.convert(x.re, "bool"), self.convert(x.im, "bool"))
            return self.convert(x.re, dtype)
        if not isinstance(x, Expr):
            return self.const(x, dtype)
        if x.dtype == dtype:
            return x
        if x.op == "const":
            return self._fold("convert", (x,), dtype)
        if x.op == "convert" and _keeps_value(x.args[0].dtype, x.dtype):
            return self.convert(x.args[0], dtype)  # the first step lost nothing
        if dtype[0] in "iu" and x.dtype[0] in "iu" and x.op == "convert":
            inner = x.args[0]
            if inner.dtype[0] in "iu":
                low, high = self.range(inner)
                full_low, full_high = INTEGER_RANGE[x.dtype]
                narrowing = ITEMSIZE[dtype] <= ITEMSIZE[x.dtype]
                if (full_low <= low and high <= full_high) or narrowing:
                    return self.convert(inner, dtype)
        if dtype == "bool":
            return self.ne(x, self.const(0, x.dtype))
        return self._node("convert", (x,), dtype)

    def lookup(self, index: Expr, table: tuple[float, ...]) -> Expr:
        """table[index % 32], for a u32 index and 32 numbers (LOOKUP_ENTRIES); gives f32."""
        if index.op == "const":
            return self._fold("lookup", (index,), "f32", table)
        return self._node("lookup", (index,), "f32", table)

    def bitcast(self, x: Operand, dtype: str) -> Any:
        """The same bits as another dtype of the same size."""
        invariant(isinstance(x, Expr), "bitcast: expected an expression")
        assert isinstance(x, Expr)
        invariant(
            ITEMSIZE[x.dtype] == ITEMSIZE[dtype], f"bitcast: {x.dtype} to {dtype} changes size"
        )
        if x.dtype == dtype:
            return x
        if x.op == "const" and not (x.dtype in FLOATS and math.isnan(x.attr)):
            return self._fold("bitcast", (x,), dtype)
        if x.op == "bitcast":
            return self.bitcast(x.args[0], dtype)
        return self._node("bitcast", (x,), dtype)


def _implies(mask: Expr, condition: Expr) -> bool:
    """Whether the mask is a conjunction that contains the condition."""
    if mask is condition:
        return True
    return mask.op == "and" and any(_implies(part, condition) for part in mask.args)


def _is_zero(x: Expr, negative: bool) -> bool:
    """The constant that a sum (negative: -0.0) or a difference (0.0) ignores."""
    if x.attr != 0:
        return False
    return x.dtype not in FLOATS or (math.copysign(1.0, x.attr) < 0) == negative


def _has_exact_reciprocal(x: Expr) -> bool:
    mantissa, exponent = math.frexp(x.attr) if math.isfinite(x.attr) else (0.0, 0)
    limit = 120 if x.dtype == "f32" else 1000
    return abs(mantissa) == 0.5 and abs(exponent) < limit


def _keeps_value(source: str, target: str) -> bool:
    """Converting source -> target keeps every value (and a further conversion sees no
    difference, NaN included)."""
    if source == "bool":
        return True
    size, wide = ITEMSIZE[source], ITEMSIZE[target]
    if source in FLOATS:
        return target in FLOATS and wide > size
    if target in FLOATS:
        return False  # an int's exact float may convert to another int by saturation
    return wide > size and (source[0] == "u" or target[0] == "i")
