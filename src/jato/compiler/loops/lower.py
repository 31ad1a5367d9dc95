"""Lowering: from the nodes of a group to loop-IR expressions.

`Lowering.value(atom, index)` is the heart: the value of an atom at an index (a tuple of i64
expressions).  Values in memory become loads, nodes of the group ask their primitive's `lower`,
which asks for its operands in turn; so index arithmetic composes by itself and the same rule
serves the fused and the unfused case.

A result is remembered for the rest of the block it was made in (a nested reduction made in an
inner loop, whoever opened it, is not visible outside), and per guard.  Reductions are placed by schedule.py, which
remembers their results with `define`; meeting one that was not placed raises UnplacedReduction,
and the caller fuses less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from jato.base import dtypes
from jato.base.errors import invariant
from jato.compiler.fusion import cost
from jato.core.graph import Atom, Literal, Node, Var
from jato.loopir.builder import Builder
from jato.loopir.grammar import Buffer, Expr
from jato.loopir.index_math import Linear

Index = tuple[Expr, ...]

# Types whose numbers are numbers of i32.
NARROW = frozenset({"i32", "i16", "u16", "i8", "u8", "bool"})


class UnplacedReduction(Exception):
    """A reduction's value is needed at an index where the schedule did not compute it."""

    def __init__(self, node: Node):
        self.node = node
        super().__init__(node.primitive.name)


class Operand:
    """What `lower` rules see of an operand: its type, and its value at an index."""

    __slots__ = ("atom", "aval", "lowering")

    def __init__(self, lowering: Lowering, atom: Atom):
        self.lowering = lowering
        self.atom = atom
        self.aval = atom.aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> str:
        return dtypes.scalar_name(self.aval)

    def __call__(self, index: Index) -> Any:
        return self.lowering.value(self.atom, index)


@dataclass(slots=True, eq=False)
class Scope:
    """Values known in a block of statements, the `depth`-th of those open when it was made.

    explicit: made by `Lowering.scope`, which also ends it; others end with their block."""

    block: list[Any]
    depth: int
    explicit: bool
    values: dict[Any, Any] = field(default_factory=dict)


class Lowering:
    """Values of a group's atoms as expressions of one kernel."""

    def __init__(self, b: Builder, nodes: Iterable[Node]):
        self.b = b
        self.producer: dict[Var, Node] = {v: n for n in nodes for v in n.outputs}
        self.buffers: dict[Var, Buffer] = {}  # arrays in memory that the kernel reads
        self.outputs: dict[Var, Buffer] = {}
        self.operands: dict[Node, list[Operand]] = {}
        # values that an earlier loop of the kernel wrote into the memory of an output
        self.saved: dict[Var, Var] = {}
        # values known in each open block of statements, innermost last
        self.scopes: list[Scope] = [Scope(b._blocks[-1], len(b._blocks), True)]

    # ---- values

    def value(self, atom: Atom, index: Index) -> Any:
        """The value of an atom at an index: Expr, or Complex."""
        if type(atom) is Literal:
            return self.literal(atom)
        key = (atom, index, tuple(self.b._guards))
        self.leave_closed_blocks()
        for scope in reversed(self.scopes):
            known = scope.values.get(key)
            if known is not None:
                return known
        node = self.producer.get(atom)  # type: ignore[arg-type]
        saved = self.saved.get(atom)  # type: ignore[arg-type]
        if saved is not None:
            result = self.load_saved(saved, index)
        elif node is None:
            result = self.load(atom, index)  # type: ignore[arg-type]
        elif cost.is_big_reduction(node):
            raise UnplacedReduction(node)
        else:
            result = node.primitive.lower(
                self.b, self.inputs_of(node), index, node.outputs[0].aval, **node.params
            )
        self.current_scope().values[key] = result
        return result

    def inputs_of(self, node: Node) -> list[Operand]:
        operands = self.operands.get(node)
        if operands is None:
            operands = self.operands[node] = [Operand(self, a) for a in node.inputs]
        return operands

    def define(self, var: Var, index: Index, value: Any) -> None:
        """Makes a value known for the rest of the current block."""
        self.current_scope().values[var, index, tuple(self.b._guards)] = value

    def literal(self, atom: Literal) -> Any:
        aval = atom.aval
        value = atom.value
        return self.b.const(
            value.item() if hasattr(value, "item") else value, dtypes.scalar_name(aval)
        )

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Values computed inside are forgotten afterwards (their statements are in the block)."""
        blocks = self.b._blocks
        scope = Scope(blocks[-1], len(blocks), True)
        self.scopes.append(scope)
        try:
            yield
        finally:
            while self.scopes.pop() is not scope:
                pass

    def current_scope(self) -> Scope:
        """The scope of the innermost open block; blocks that rules open get theirs here."""
        self.leave_closed_blocks()
        blocks = self.b._blocks
        if self.scopes[-1].block is not blocks[-1]:
            self.scopes.append(Scope(blocks[-1], len(blocks), False))
        return self.scopes[-1]

    def leave_closed_blocks(self) -> None:
        blocks = self.b._blocks
        while not self.scopes[-1].explicit:
            scope = self.scopes[-1]
            if len(blocks) >= scope.depth and blocks[scope.depth - 1] is scope.block:
                return
            self.scopes.pop()

    # ---- memory

    def load(self, var: Var, index: Index) -> Any:
        return self.b.load(self.buffer(var), self.offset(var.aval.shape, index))

    def buffer(self, var: Var) -> Buffer:
        """The kernel's buffer for an array it reads."""
        buffer = self.buffers.get(var)
        if buffer is None:
            buffer = self.buffers[var] = self.b.input(
                f"in{len(self.buffers)}", dtypes.scalar_name(var.aval)
            )
        return buffer

    def output(self, var: Var) -> Buffer:
        buffer = self.outputs.get(var)
        if buffer is None:
            buffer = self.outputs[var] = self.b.output(
                f"out{len(self.outputs)}", dtypes.scalar_name(var.aval)
            )
        return buffer

    def store(self, var: Var, index: Index) -> None:
        """Writes the value of an output at an index of its shape."""
        self.write(var, index, self.value(var, index))

    def write(self, var: Var, index: Index, value: Any) -> None:
        """Writes into the memory of an output."""
        self.b.store(self.output(var), self.offset(var.aval.shape, index), value)

    def load_saved(self, var: Var, index: Index) -> Any:
        """What an earlier loop of the kernel wrote there."""
        return self.b.load(self.output(var), self.offset(var.aval.shape, index))

    def offset(self, shape: tuple[int, ...], index: Index) -> Expr:
        """Row-major position of an index."""
        invariant(len(shape) == len(index), f"index of rank {len(index)} for shape {shape}")
        b = self.b
        total = b.index(0)
        stride = 1
        for n, i in zip(reversed(shape), reversed(index), strict=True):
            if n != 1:
                total = b.add(total, b.mul(i, b.index(stride)))
            stride *= n
        return self.narrow(total, stride)

    def narrow(self, position: Expr, size: int) -> Expr:
        """The position in an array of `size` elements, with data multiplied and added as i32.

        convert(x) * 512 + convert(y) + i   ->   convert(x * 512 + y) + i

        A vector holds twice as many of these, and processors multiply i64 slowly.  What overflows on
        the way does no harm: modulo 2**32 the sum is right, and what is read lies in the array."""
        b = self.b
        form = b.linear(position)
        data = {
            m: c for m, c in form.terms.items()
            if len(m) == 1 and m[0].op == "convert" and m[0].args[0].dtype in NARROW
        }  # fmt: skip
        if not data or size > 1 << 31:
            return position
        rest = Linear({m: c for m, c in form.terms.items() if m not in data}, form.const)
        low, high = b.range_of_linear(rest)
        if low <= size - (1 << 31) or high >= 1 << 31:
            return position
        total = b.const(0, "i32")
        for (atom,), c in data.items():
            total = b.add(total, b.mul(b.convert(atom.args[0], "i32"), b.stride(c)))
        return b.add(b.widened(total), b._from_linear(rest))

    def unravel(self, position: Expr, shape: tuple[int, ...]) -> Index:
        """The index at a row-major position, which must be within the shape."""
        b = self.b
        index: list[Expr] = []
        stride = 1
        strides: list[int] = []
        for n in reversed(shape):
            strides.append(stride)
            stride *= n
        for n, step in zip(shape, reversed(strides), strict=True):
            if n == 1:
                index.append(b.index(0))
                continue
            i = b.div(position, b.index(step)) if step != 1 else position
            first = step * n == stride  # nothing is left over for axes before it
            index.append(i if first else b.rem(i, b.index(n)))
        return tuple(index)
