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
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Union

import numpy as np

from jato.base.errors import invariant
from jato.loopir.complex import Complex, complex_op
from jato.loopir.grammar import ITEMSIZE, SCALAR_DTYPES, Buffer, Expr
from jato.loopir.index_math import IndexMath, Linear, Range, wrap
from jato.loopir.reference import NUMPY_DTYPES, evaluate
from jato.loopir.scalar_ops import SCALAR_OPS

Value = Union[Expr, Complex]
Operand = Union[Expr, Complex, bool, int, float, complex]

COMPLEX_PARTS = {"c64": "f32", "c128": "f64"}
_HALF = ("f16", "bf16")
_FLOATS = ("f16", "bf16", "f32", "f64")
_EXACT_OPS = ("add", "sub", "mul")


class ExpressionBuilder(IndexMath):
    """Makes expressions.  See the module's docstring."""

    def __init__(self, first_serial: int = 0) -> None:
        super().__init__()
        self._nodes: dict[Any, Expr] = {}
        self._next_serial = first_serial
        self._names: dict[str, int] = {}
        self._guards: list[Expr] = []
        self._exact = False
        self._pairs: set[Buffer] = set()  # buffers that hold complex numbers as (re, im)

    # ---- nodes

    def _node(self, op: str, args: tuple[Expr, ...], dtype: str, attr: Any = None) -> Expr:
        key = (op, args, dtype, attr)
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = Expr(op, args, dtype, attr, self._next_serial)
            self._next_serial += 1
        return node

    def _fresh(self, op: str, args: tuple[Expr, ...], dtype: str, attr: Any) -> Expr:
        node = Expr(op, args, dtype, attr, self._next_serial)
        self._next_serial += 1
        return node

    def const(self, value: Any, dtype: str) -> Any:
        """A constant; dtype "c64"/"c128" gives a Complex of two constants."""
        part = COMPLEX_PARTS.get(dtype)
        if part is not None:
            value = complex(value)
            return Complex(self.const(value.real, part), self.const(value.imag, part))
        if dtype in _FLOATS:
            if dtype == "f64":
                value = float(value)
            else:
                with np.errstate(over="ignore"):
                    value = float(NUMPY_DTYPES[dtype].type(value))
            key: Any = ("const", dtype, struct.pack("<d", value))
        elif dtype == "bool":
            value = bool(value)
            key = ("const", dtype, value)
        else:
            invariant(dtype in SCALAR_DTYPES, f"const: unknown dtype {dtype!r}")
            value = wrap(int(value), dtype)
            key = ("const", dtype, value)
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = self._fresh("const", (), dtype, value)
        return node

    def complex(self, re: Expr, im: Expr) -> Complex:
        """The complex number of two real parts of one dtype."""
        return Complex(re, im)

    def index(self, value: int) -> Expr:
        """The i64 constant `value`."""
        return self.const(value, "i64")

    def var(self, name: str, dtype: str, low: int | None = None, high: int | None = None) -> Expr:
        """A variable with a name of its own (made unique); bounds inclusive."""
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        node = self._fresh("var", (), dtype, f"{name}_{count}" if count else name)
        if low is not None and high is not None:
            self._ranges[node] = (low, high)
        return node

    def param(self, position: int, low: int | None = None, high: int | None = None) -> Expr:
        """The run-time integer at `position` of the kernel's params (i64)."""
        node = self._node("param", (), "i64", position)
        if low is not None and high is not None:
            self._ranges[node] = (low, high)
        return node

    def grid_begin(self) -> Expr:
        return self._node("grid_begin", (), "i64")

    def grid_end(self) -> Expr:
        return self._node("grid_end", (), "i64")

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
                return self.const(0, buffer.dtype)
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

    @contextmanager
    def exact(self) -> Iterator[None]:
        """Sums and products made inside are never contracted to one fma: error-free
        transformations (two-sum, Cody-Waite) rely on each rounding."""
        before, self._exact = self._exact, True
        try:
            yield
        finally:
            self._exact = before

    # ---- dispatch

    def op(self, name: str, *operands: Any) -> Any:
        """The opcode called `name`: op("and", x, y) is and_(x, y)."""
        method = getattr(self, f"{name}_" if name in ("and", "or", "not") else name)
        return method(*operands)

    def _coerce(self, x: Operand, dtype: str) -> Any:
        if isinstance(x, (Expr, Complex)):
            return x
        return self.const(x, dtype)

    def _pair(self, x: Operand, y: Operand) -> tuple[Any, Any]:
        """Both operands as values of one dtype."""
        if not isinstance(x, (Expr, Complex)):
            invariant(isinstance(y, (Expr, Complex)), "an operand must be an expression")
            x = self.const(x, dtype_of(y))
        elif not isinstance(y, (Expr, Complex)):
            y = self.const(y, dtype_of(x))
        return x, y

    def _binary(self, op: str, x: Operand, y: Operand) -> Any:
        """The common part of binary opcodes: dtypes, complex, halves, constants."""
        x, y = self._pair(x, y)
        if isinstance(x, Complex) or isinstance(y, Complex):
            return complex_op(self, op, self._as_complex(x, y), self._as_complex(y, x))
        dtype = x.dtype
        if y.dtype != dtype:
            invariant(False, f"{op}: operands of dtype {dtype} and {y.dtype}")
        self._check_domain(op, dtype)
        is_bool = SCALAR_OPS[op].result == "bool"
        if dtype in _HALF:
            value = getattr(self, op)(self._widen(x), self._widen(y))
            return value if is_bool else self.convert(value, dtype)
        if x.op == "const" and y.op == "const" and SCALAR_OPS[op].kind == "machine":
            return self._fold(op, (x, y), "bool" if is_bool else dtype)
        attr = "exact" if self._exact and op in _EXACT_OPS and dtype in _FLOATS else None
        return self._node(op, (x, y), "bool" if is_bool else dtype, attr)

    def _unary(self, op: str, x: Operand) -> Any:
        if isinstance(x, Complex):
            return complex_op(self, op, x)
        invariant(isinstance(x, Expr), f"{op}: expected an expression, got {type(x).__name__}")
        assert isinstance(x, Expr)
        self._check_domain(op, x.dtype)
        dtype = "bool" if SCALAR_OPS[op].result == "bool" else x.dtype
        if x.dtype in _HALF:
            value = getattr(self, op)(self._widen(x))
            return value if dtype == "bool" else self.convert(value, dtype)
        if x.op == "const" and SCALAR_OPS[op].kind == "machine":
            return self._fold(op, (x,), dtype)
        return self._node(op, (x,), dtype)

    def _check_domain(self, op: str, dtype: str) -> None:
        letter = "b" if dtype == "bool" else "i" if dtype[0] == "i" else dtype[0]
        if dtype == "bf16":
            letter = "f"
        if letter not in SCALAR_OPS[op].domain:
            invariant(False, f"{op} does not take {dtype}")

    def _as_complex(self, x: Any, like: Any) -> Complex:
        if isinstance(x, Complex):
            return x
        return Complex(x, self.const(0, x.dtype))

    def _widen(self, x: Expr) -> Expr:
        return self.convert(x, "f32")

    def _fold(self, op: str, constants: tuple[Expr, ...], dtype: str, attr: Any = None) -> Expr:
        values = tuple(_numpy_scalar(x) for x in constants)
        return self.const(evaluate(op, values, dtype, attr).item(), dtype)

    # ---- i64 sums and products

    def _rejoined(self, form: Linear) -> Linear:
        """C * (u div C) + (u rem C)  ->  u, at any common factor: an index taken apart and put
        together again."""
        for monomial, factor in form.terms.items():
            atom = monomial[0]
            if len(monomial) != 1 or atom.op != "rem" or atom.args[1].op != "const":
                continue
            whole, divisor = atom.args
            quotient = self.div(whole, divisor)
            if form.terms.get((quotient,)) != factor * divisor.attr:
                continue
            rest = {m: c for m, c in form.terms.items() if m not in (monomial, (quotient,))}
            inner = self.linear(whole)
            for m, c in inner.terms.items():
                total = wrap(rest.get(m, 0) + c * factor, "i64")
                if total:
                    rest[m] = total
                else:
                    rest.pop(m, None)
            return self._rejoined(Linear(rest, wrap(form.const + inner.const * factor, "i64")))
        return form

    def _from_linear(self, form: Linear) -> Expr:
        """The one expression of a linear form: invariant terms first, the constant last."""
        form = self._rejoined(form)
        acc: Expr | None = None
        const = form.const
        terms = sorted(form.terms.items(), key=_innermost)
        if terms and const and all(c < 0 for _, c in terms):
            acc, const = self.index(const), 0
        elif len(terms) > 1 and terms[0][1] < 0:
            first = next((i for i, (_, c) in enumerate(terms) if c > 0), 0)
            terms.insert(0, terms.pop(first))
        for monomial, coefficient in terms:
            term = monomial[0]
            for factor in monomial[1:]:
                term = self._node("mul", (term, factor), "i64")
            if abs(coefficient) != 1:
                term = self._node("mul", (term, self.index(abs(coefficient))), "i64")
            if acc is None:
                acc = term if coefficient > 0 else self._node("neg", (term,), "i64")
            else:
                acc = self._node("add" if coefficient > 0 else "sub", (acc, term), "i64")
        if acc is None:
            return self.index(const)
        if const:
            acc = self._node("add", (acc, self.index(const)), "i64")
        if not (len(form.terms) == 1 and form.terms.get((acc,)) == 1 and not form.const):
            self._linear[acc] = form
        return acc

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
            if y.op == "neg" and y.dtype == x.dtype and y.dtype not in _HALF:
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
            if x is y and x.dtype not in _FLOATS:
                return self.const(0, x.dtype)
            if y.op == "neg" and y.dtype == x.dtype and y.dtype not in _HALF:
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
                if y.attr == 0 and y.dtype not in _FLOATS:
                    return y
                if y.attr == -1 and y.dtype not in _HALF:
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
            if x.op in ("abs", "neg") and x.dtype not in _HALF:
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
        if dtype in _HALF:
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
        whole, rest = self.multiples_of(x, divisor)
        if whole.terms and self.range_of_linear(rest)[0] >= 0:
            small = self._from_linear(rest)
            quotient = self.add(self._from_linear(whole), self.div(small, y))
            return quotient, self.rem(small, y)
        inner = x.args[1] if x.op in ("div", "rem") else None
        if inner is not None and inner.op == "const" and inner.attr > 0:
            if x.op == "div" and inner.attr * divisor < 1 << 62:
                total = self.index(inner.attr * divisor)
                quotient = self.div(x.args[0], total)
                return quotient, self._node("rem", (x, y), "i64")
            if x.op == "rem" and inner.attr % divisor == 0:
                return self._node("div", (x, y), "i64"), self.rem(x.args[0], y)
        return None

    def max(self, x: Operand, y: Operand) -> Any:
        return self._extremum("max", x, y)

    def min(self, x: Operand, y: Operand) -> Any:
        return self._extremum("min", x, y)

    def _extremum(self, op: str, x: Operand, y: Operand) -> Any:
        x, y = self._pair(x, y)
        if x is y:
            return x
        if isinstance(x, Expr) and isinstance(y, Expr) and x.dtype == y.dtype:
            if x.dtype == "bool":
                return self.or_(x, y) if op == "max" else self.and_(x, y)
            if x.dtype not in _FLOATS:
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
        if x is y and isinstance(x, Expr) and x.dtype not in _FLOATS:
            return self.const(0, x.dtype)
        return self._bitwise("xor", x, y)

    def _bitwise(self, op: str, x: Operand, y: Operand) -> Any:
        x, y = self._pair(x, y)
        if isinstance(x, Expr) and isinstance(y, Expr):
            if x is y and op != "xor":
                return x
            if x.op == "const":
                x, y = y, x
            if y.op == "const" and x.dtype == y.dtype and x.dtype not in _FLOATS:
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
            if x.dtype == "bool" and x.op in _OPPOSITE and x.args[0].dtype not in _FLOATS:
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
            if x.dtype not in _FLOATS:
                known = self._decide(op, x, y)
                if known is not None:
                    return self.const(known, "bool")
            if x.op == "const" and op in ("eq", "ne"):
                x, y = y, x
        return self._binary(op, x, y)

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

    def select(self, condition: Any, x: Operand, y: Operand) -> Any:
        """x where `condition` (bool), else y."""
        x, y = self._pair(x, y)
        if isinstance(condition, (bool, np.bool_)):
            condition = self.const(condition, "bool")
        invariant(condition.dtype == "bool", f"select: condition of dtype {condition.dtype}")
        if condition.op == "const":
            return x if condition.attr else y
        if isinstance(x, Complex) or isinstance(y, Complex):
            x, y = self._as_complex(x, y), self._as_complex(y, x)
            return Complex(
                self.select(condition, x.re, y.re), self.select(condition, x.im, y.im)
            )
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
        if isinstance(x, Expr) and x.dtype not in _FLOATS:
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
                full_low, full_high = _int_range(x.dtype)
                narrowing = ITEMSIZE[dtype] <= ITEMSIZE[x.dtype]
                if (full_low <= low and high <= full_high) or narrowing:
                    return self.convert(inner, dtype)
        if dtype == "bool":
            return self.ne(x, self.const(0, x.dtype))
        return self._node("convert", (x,), dtype)

    def bitcast(self, x: Operand, dtype: str) -> Any:
        """The same bits as another dtype of the same size."""
        invariant(isinstance(x, Expr), "bitcast: expected an expression")
        assert isinstance(x, Expr)
        invariant(
            ITEMSIZE[x.dtype] == ITEMSIZE[dtype], f"bitcast: {x.dtype} to {dtype} changes size"
        )
        if x.dtype == dtype:
            return x
        if x.op == "const" and not (x.dtype in _FLOATS and math.isnan(x.attr)):
            return self._fold("bitcast", (x,), dtype)
        if x.op == "bitcast":
            return self.bitcast(x.args[0], dtype)
        return self._node("bitcast", (x,), dtype)

    # ---- floats

    def sqrt(self, x: Operand) -> Any:
        return self._unary("sqrt", x)

    def floor(self, x: Operand) -> Any:
        return self._unary("floor", x)

    def ceil(self, x: Operand) -> Any:
        return self._unary("ceil", x)

    def trunc(self, x: Operand) -> Any:
        return self._unary("trunc", x)

    def round_even(self, x: Operand) -> Any:
        return self._unary("round_even", x)

    def copysign(self, x: Operand, y: Operand) -> Any:
        return self._binary("copysign", x, y)

    # ---- functions (expanded by compiler/llvm/math)

    def exp(self, x: Operand) -> Any:
        return self._unary("exp", x)

    def exp2(self, x: Operand) -> Any:
        return self._unary("exp2", x)

    def expm1(self, x: Operand) -> Any:
        return self._unary("expm1", x)

    def log(self, x: Operand) -> Any:
        return self._unary("log", x)

    def log1p(self, x: Operand) -> Any:
        return self._unary("log1p", x)

    def log2(self, x: Operand) -> Any:
        return self._unary("log2", x)

    def log10(self, x: Operand) -> Any:
        return self._unary("log10", x)

    def sin(self, x: Operand) -> Any:
        return self._unary("sin", x)

    def cos(self, x: Operand) -> Any:
        return self._unary("cos", x)

    def tan(self, x: Operand) -> Any:
        return self._unary("tan", x)

    def asin(self, x: Operand) -> Any:
        return self._unary("asin", x)

    def acos(self, x: Operand) -> Any:
        return self._unary("acos", x)

    def atan(self, x: Operand) -> Any:
        return self._unary("atan", x)

    def sinh(self, x: Operand) -> Any:
        return self._unary("sinh", x)

    def cosh(self, x: Operand) -> Any:
        return self._unary("cosh", x)

    def tanh(self, x: Operand) -> Any:
        return self._unary("tanh", x)

    def asinh(self, x: Operand) -> Any:
        return self._unary("asinh", x)

    def acosh(self, x: Operand) -> Any:
        return self._unary("acosh", x)

    def atanh(self, x: Operand) -> Any:
        return self._unary("atanh", x)

    def logistic(self, x: Operand) -> Any:
        return self._unary("logistic", x)

    def erf(self, x: Operand) -> Any:
        return self._unary("erf", x)

    def erfc(self, x: Operand) -> Any:
        return self._unary("erfc", x)

    def rsqrt(self, x: Operand) -> Any:
        return self._unary("rsqrt", x)

    def cbrt(self, x: Operand) -> Any:
        return self._unary("cbrt", x)

    def erfinv(self, x: Operand) -> Any:
        return self._unary("erfinv", x)

    def lgamma(self, x: Operand) -> Any:
        return self._unary("lgamma", x)

    def digamma(self, x: Operand) -> Any:
        return self._unary("digamma", x)

    def atan2(self, x: Operand, y: Operand) -> Any:
        return self._binary("atan2", x, y)

    def hypot(self, x: Operand, y: Operand) -> Any:
        return self._binary("hypot", x, y)

    def nextafter(self, x: Operand, y: Operand) -> Any:
        x, y = self._pair(x, y)
        invariant(dtype_of(x) not in _HALF, "nextafter: f16/bf16 is done on bits by the ops layer")
        return self._binary("nextafter", x, y)

    def pow(self, x: Operand, y: Operand) -> Any:
        return self._binary("pow", x, y)


_OPPOSITE = {"lt": "ge", "le": "gt"}


def dtype_of(x: Any) -> str:
    """The dtype of a value, "c64" or "c128" for pairs."""
    if isinstance(x, Complex):
        return "c64" if x.re.dtype == "f32" else "c128"
    return x.dtype


def _implies(mask: Expr, condition: Expr) -> bool:
    """Whether the mask is a conjunction that contains the condition."""
    if mask is condition:
        return True
    return mask.op == "and" and any(_implies(part, condition) for part in mask.args)


def _innermost(item: tuple[tuple[Expr, ...], int]) -> tuple[int, ...]:
    serials = [atom.serial for atom in item[0]]
    return (max(serials), *serials)


def _int_range(dtype: str) -> Range:
    info = np.iinfo(NUMPY_DTYPES[dtype])
    return int(info.min), int(info.max)


def _numpy_scalar(x: Expr) -> Any:
    return np.array(x.attr, NUMPY_DTYPES[x.dtype])


def _is_zero(x: Expr, negative: bool) -> bool:
    """The constant that a sum (negative: -0.0) or a difference (0.0) ignores."""
    if x.attr != 0:
        return False
    return x.dtype not in _FLOATS or (math.copysign(1.0, x.attr) < 0) == negative


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
    if source in _FLOATS:
        return target in _FLOATS and wide > size
    if target in _FLOATS:
        return False  # an int's exact float may convert to another int by saturation
    return wide > size and (source[0] == "u" or target[0] == "i")
