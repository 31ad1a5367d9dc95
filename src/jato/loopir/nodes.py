"""NodeBuilder: hash-consed expressions, constants, variables, and what all opcodes share.

Equal expressions are one object: `_node` looks every new one up.  `_unary` and `_binary` do what
is common to opcodes: they check dtypes, delegate complex operands to complex.py, compute 16-bit
floats in f32, fold constants.  The opcodes themselves are methods of the subclasses in
functions.py and expressions.py.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Union

import numpy as np

from jato.base.errors import invariant
from jato.loopir.complex import Complex, complex_op
from jato.loopir.grammar import SCALAR_DTYPES, Buffer, Expr
from jato.loopir.index_math import MAX_TERMS, IndexMath, Linear, add_terms, wrap
from jato.loopir.reference import NUMPY_DTYPES, evaluate
from jato.loopir.scalar_ops import SCALAR_OPS

Value = Union[Expr, Complex]
Operand = Union[Expr, Complex, bool, int, float, complex]

COMPLEX_PARTS = {"c64": "f32", "c128": "f64"}
HALF = ("f16", "bf16")
FLOATS = ("f16", "bf16", "f32", "f64")
_EXACT_OPS = ("add", "sub", "mul")


class NodeBuilder(IndexMath):
    """Makes nodes; one builder, one set of hash-consed expressions."""

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
        if dtype in FLOATS:
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
        constant: Expr = self.const(value, "i64")
        return constant

    def stride(self, value: int) -> Expr:
        """The i32 `value` as a conversion that is not folded, so that it becomes a parameter."""
        if value in (0, 1, -1):
            constant: Expr = self.const(value, "i32")
            return constant
        return self._node("convert", (self.index(value),), "i32")

    def widened(self, x: Expr) -> Expr:
        """An i32 expression as i64, through i32 even where it was converted to that."""
        return self._node("convert", (x,), "i64")

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

    def _binary(self, op: str, x: Any, y: Any) -> Any:
        """The common part of binary opcodes: dtypes, complex, halves, constants."""
        x, y = self._pair(x, y)
        if isinstance(x, Complex) or isinstance(y, Complex):
            return complex_op(self, op, self._as_complex(x, y), self._as_complex(y, x))
        dtype = x.dtype
        if y.dtype != dtype:
            invariant(False, f"{op}: operands of dtype {dtype} and {y.dtype}")
        self._check_domain(op, dtype)
        is_bool = SCALAR_OPS[op].result == "bool"
        if dtype in HALF:
            value = getattr(self, op)(self._widen(x), self._widen(y))
            return value if is_bool else self.convert(value, dtype)
        if x.op == "const" and y.op == "const" and SCALAR_OPS[op].kind == "machine":
            return self._fold(op, (x, y), "bool" if is_bool else dtype)
        attr = "exact" if self._exact and op in _EXACT_OPS and dtype in FLOATS else None
        return self._node(op, (x, y), "bool" if is_bool else dtype, attr)

    def _unary(self, op: str, x: Operand) -> Any:
        if isinstance(x, Complex):
            return complex_op(self, op, x)
        invariant(isinstance(x, Expr), f"{op}: expected an expression, got {type(x).__name__}")
        assert isinstance(x, Expr)
        self._check_domain(op, x.dtype)
        dtype = "bool" if SCALAR_OPS[op].result == "bool" else x.dtype
        if x.dtype in HALF:
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

    def _widen(self, x: Expr) -> Any:
        return self.convert(x, "f32")

    def _fold(self, op: str, constants: tuple[Expr, ...], dtype: str, attr: Any = None) -> Expr:
        values = tuple(_numpy_scalar(x) for x in constants)
        folded: Expr = self.const(evaluate(op, values, dtype, attr).item(), dtype)
        return folded

    def convert(self, x: Operand, dtype: str) -> Any:
        raise NotImplementedError  # expressions.py

    def div(self, x: Operand, y: Operand) -> Any:
        raise NotImplementedError  # expressions.py

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
            add_terms(rest, inner, factor)
            return self._rejoined(Linear(rest, wrap(form.const + inner.const * factor, "i64")))
        return form

    def _without_remainders(self, form: Linear) -> Linear:
        """The form with every u rem C written as u - C (u div C), if quotients cancel then.

        An index is taken apart axis by axis; where the parts were simplified in different ways,
        they only fit together again like this."""
        before = _divisions(form)
        if before < 2 or not any(m[0].op == "rem" for m in form.terms if len(m) == 1):
            return form
        terms, const = dict(form.terms), form.const
        for _ in range(4):
            taken = [
                m for m in terms
                if len(m) == 1 and m[0].op == "rem" and m[0].args[1].op == "const"
                and self.range(m[0].args[0])[0] >= 0
            ]  # fmt: skip
            if not taken:
                break
            for monomial in taken:
                factor = terms.pop(monomial, 0)
                if not factor:
                    continue  # cancelled by another one
                whole, divisor = monomial[0].args
                quotient = self.div(whole, divisor)
                for part, scale in ((whole, factor), (quotient, -factor * divisor.attr)):
                    inner = self.linear(part)
                    const = wrap(const + inner.const * scale, "i64")
                    add_terms(terms, inner, scale)
            if len(terms) > MAX_TERMS:
                return form
        found = Linear(terms, const)
        return found if _divisions(found) < before else form

    def _from_linear(self, form: Linear) -> Expr:
        """The one expression of a linear form: invariant terms first, the constant last."""
        form = self._without_remainders(self._rejoined(form))
        acc: Expr | None = None
        const = form.const
        terms = sorted(form.terms.items(), key=_innermost)
        if terms and const and all(c < 0 for _, c in terms):
            # what is left over comes last: elements of one row, read backwards, share the rest
            step = max(-c for _, c in terms)
            acc = self.index(const // step * step) if const >= step else None
            const = const % step if acc is not None else const
            if acc is None:
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


def dtype_of(x: Any) -> str:
    """The dtype of a value, "c64" or "c128" for pairs."""
    if isinstance(x, Complex):
        return "c64" if x.re.dtype == "f32" else "c128"
    return str(x.dtype)


def _divisions(form: Linear) -> int:
    return sum(atom.op in ("div", "rem") for monomial in form.terms for atom in monomial)


def _innermost(item: tuple[tuple[Expr, ...], int]) -> tuple[int, ...]:
    serials = [atom.serial for atom in item[0]]
    return (max(serials), *serials)


def _numpy_scalar(x: Expr) -> Any:
    return np.array(x.attr, NUMPY_DTYPES[x.dtype])
