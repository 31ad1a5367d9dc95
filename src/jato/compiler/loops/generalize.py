"""Generalisation: a kernel without its shapes.

Takes   a scheduled kernel, with constant extents, strides and offsets.
Gives   the kernel with run-time parameters in their place, and the parameters' values.
Runs    last of the loop passes.  The text of the result is the kernel's identity: two shapes that
        give the same text share machine code.

    For i in [0, 4096): y[i * 512 + 3] = ...   ->   For i in [0, p0): y[i * p1 + p2] = ...
    sum / 500.0, sum * 2**-9                   ->   sum / convert(p3)   with 500, 512 in `counts`

Constants that choose instructions stay: 0 and 1 and -1 anywhere, 2 as a factor (complex numbers
lie two by two), and those of a pattern over the lanes of one vector, i / 3 * 3 (`is_pattern`).
Each place gets a parameter of its own, even where values coincide: a square image and an oblong
one must not differ.

`counts` are lengths of axes and the numbers of elements that the program's reductions reduce: a
mean divides by one, a variance or a linspace by one less.  (Division by a power of two was made a
multiplication before, which is exact, and becomes a division again.)

Integers of type i32 become parameters too where they are added or compared: an index from the end
is made by adding the length.
"""

from __future__ import annotations

from typing import Any

from jato.compiler.loops.walk import extent_of, statements, variables_below
from jato.loopir.grammar import (
    Combine,
    Expr,
    For,
    If,
    Kernel,
    Loop,
    Prefetch,
    Reduce,
    Stmt,
    Store,
    TileCopy,
)

_KEPT = (0, 1, -1)
# i64 operands of these opcodes are numbers of iterations or distances, never instructions' fields
_VALUES_STAY = frozenset({"shl", "shr_logical", "shr_arithmetic"})
# where an i32 may be a parameter at no cost
_ADDED = frozenset("add sub min max eq ne lt le gt ge select".split())


def generalize(
    kernel: Kernel, counts: frozenset[int] = frozenset(), written_out: bool = False
) -> tuple[Kernel, list[int]]:
    """written_out: the kernel has a statement for each element of its arrays, so that a shape shows
    in it anyway: distances between elements stay in the instructions."""
    rewriter = _Rewriter(kernel, counts, written_out)
    body = rewriter.body(kernel.body)
    general = Kernel(
        kernel.name,
        kernel.buffers,
        kernel.num_params + len(rewriter.values),
        body,
        kernel.in_place,
        kernel.notes,
    )
    return general, rewriter.values


class _Rewriter:
    def __init__(self, kernel: Kernel, counts: frozenset[int], written_out: bool):
        self.written_out = written_out
        self.lane_vars = {
            s.var
            for s in statements(kernel.body)
            if isinstance(s, For) and s.lanes > 1 and extent_of(s.start, s.stop) == s.lanes
        }
        self.divisors = counts | {n - 1 for n in counts if n > 2}
        self.first = kernel.num_params
        self.values: list[int] = []
        self.done: dict[Expr, Expr] = {}
        self.serial = 0

    def parameter(self, value: int) -> Expr:
        position = self.first + len(self.values)
        self.values.append(value)
        return self.node("param", (), "i64", position)

    def node(self, op: str, args: tuple[Expr, ...], dtype: str, attr: Any) -> Expr:
        self.serial += 1
        return Expr(op, args, dtype, attr, self.serial)

    # ---- expressions

    def expr(self, e: Expr) -> Expr:
        """The expression with its i64 constants made parameters; iterative, for deep chains."""
        done = self.done
        stack = [e]
        while stack:
            x = stack[-1]
            if x in done:
                stack.pop()
                continue
            missing = [a for a in x.args if a not in done and not _is_constant(a)]
            if missing:
                stack += reversed(missing)
                continue
            stack.pop()
            divided = self.by_count(x)
            if divided is not None:
                done[x] = divided
            elif x.args:
                args = tuple(self.operand(x, a, i) for i, a in enumerate(x.args))
                done[x] = self.node(x.op, args, x.dtype, x.attr)
            else:
                done[x] = self.leaf(x)
        return done[e]

    def by_count(self, x: Expr) -> Expr | None:
        """x / count, or x * (1 / count), with the count as a parameter; None for anything else."""
        if x.op not in ("div", "mul") or x.dtype not in ("f32", "f64"):
            return None
        for value, other in (x.args, x.args[::-1]) if x.op == "mul" else ((x.args[1], x.args[0]),):
            if value.op == "const" and value.attr and other.op != "const":
                count = value.attr if x.op == "div" else 1 / value.attr
                if count in self.divisors and (x.op == "div" or _is_power_of_two(int(count))):
                    divisor = self.node("convert", (self.parameter(int(count)),), x.dtype, None)
                    return self.node("div", (self.done[other], divisor), x.dtype, None)
        return None

    def operand(self, user: Expr, a: Expr, position: int) -> Expr:
        if not _is_constant(a):
            if a.op == "const" and self.is_length(user, a):
                return self.node("convert", (self.parameter(int(a.attr)),), a.dtype, None)
            return self.done[a]
        value = a.attr
        keep = value in _KEPT or user.op in _VALUES_STAY or self.is_pattern(user, position)
        if user.op == "mul" and value == 2:
            keep = True
        if user.op == "select" and position == 0:
            keep = True
        if self.written_out and user.op in ("add", "mul"):
            keep = True
        return self.leaf(a) if keep else self.parameter(value)

    def is_pattern(self, user: Expr, position: int) -> bool:
        """Does the constant shape a pattern over the lanes of one vector, such as i / 3 * 3?

        Such a vector is read with contiguous loads and sorted (llvm/memory.py): instructions."""
        other = user.args[1 - position] if len(user.args) == 2 else None
        if other is None or not variables_below((other,)) or user.dtype != "i64":
            return False
        if user.op == "mul" and other.op not in ("div", "rem"):
            return False
        if user.op not in ("mul", "div", "rem") or (user.op != "mul" and position != 1):
            return False
        return self.lanes_only(other)

    def lanes_only(self, e: Expr) -> bool:
        """Is it made of constants and the variables of loops over one vector?"""
        if e.op == "var":
            return e in self.lane_vars
        if e.op == "const":
            return True
        return bool(e.args) and e.op not in ("load", "param") and all(map(self.lanes_only, e.args))

    def is_length(self, user: Expr, constant: Expr) -> bool:
        """May the constant be the length of an axis, or an index from its end?"""
        if constant.dtype == "i32":
            return user.op in _ADDED and abs(constant.attr) > 2
        return constant.dtype in ("f32", "f64") and constant.attr in self.divisors

    def leaf(self, x: Expr) -> Expr:
        if x.op == "const" or x.op == "var":
            found = self.done.get(x)
            if found is None:
                found = self.done[x] = self.node(x.op, (), x.dtype, x.attr)
            return found
        return self.node(x.op, (), x.dtype, x.attr)

    def bound(self, e: Expr) -> Expr:
        """A loop bound or an index: a constant becomes a parameter unless it is 0 or 1."""
        if _is_constant(e):
            return self.leaf(e) if e.attr in _KEPT else self.parameter(e.attr)
        return self.expr(e)

    # ---- statements

    def body(self, statements: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(self.statement(s) for s in statements)

    def statement(self, s: Stmt) -> Stmt:
        if isinstance(s, Store):
            mask = None if s.mask is None else self.expr(s.mask)
            return Store(s.buffer, self.bound(s.index), self.bound(s.value), mask)
        if isinstance(s, For):
            if s.lanes > 1 and extent_of(s.start, s.stop) == s.lanes:
                start, stop = self.leaf(s.start), self.leaf(s.stop)  # one vector, without a tail
            else:
                start, stop = self.bound(s.start), self.bound(s.stop)
            return For(self.expr(s.var), start, stop, self.body(s.body), s.lanes)
        if isinstance(s, Reduce):
            start, stop = self.bound(s.start), self.bound(s.stop)
            identity = tuple(map(self.bound, s.identity))
            body = self.body(s.body)
            elements = tuple(map(self.bound, s.elements))
            combine = Combine(
                tuple(map(self.expr, s.combine.left)),
                tuple(map(self.expr, s.combine.right)),
                tuple(map(self.expr, s.combine.result)),
            )
            return Reduce(
                tuple(map(self.expr, s.results)), self.expr(s.var), start, stop, body, elements,
                combine, identity, s.lanes,
            )  # fmt: skip
        if isinstance(s, Loop):
            start, stop = self.bound(s.start), self.bound(s.stop)
            inits = tuple(map(self.bound, s.inits))
            carries = tuple(map(self.expr, s.carries))
            condition = None if s.condition is None else self.expr(s.condition)
            body = self.body(s.body)
            return Loop(
                carries, inits, tuple(map(self.expr, s.results)), self.expr(s.var), start, stop,
                body, tuple(map(self.bound, s.nexts)), condition,
            )  # fmt: skip
        if isinstance(s, Prefetch):
            return Prefetch(s.buffer, self.bound(s.index))
        if isinstance(s, TileCopy):
            begin, step, rows, columns = map(self.bound, s.numbers)
            return TileCopy(s.tile, s.array, begin, step, rows, columns, s.pitch, s.lanes, s.out)
        if isinstance(s, If):
            return If(self.expr(s.condition), self.body(s.then))
        raise TypeError(type(s).__name__)


def _is_constant(e: Expr) -> bool:
    return e.op == "const" and e.dtype == "i64"


def _is_power_of_two(n: int) -> bool:
    return n & (n - 1) == 0
