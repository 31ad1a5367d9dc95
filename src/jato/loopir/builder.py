"""Builder: what schedulers and the `lower` rules of primitives are given to write kernels with.

Expressions come from `ExpressionBuilder` (expressions.py).  This file adds statements: they go to
the innermost open block, in order.

    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=16) as i:
        b.store(y, i, b.exp(b.load(x, i)))
    kernel = b.kernel("exp")

Complex values and 16-bit floats in reductions and loop carries are taken apart here (into pairs,
into f32), so that the statements of grammar.py only ever hold plain scalars.  Start at `for_`,
then `reduce`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Union

from jato.base.errors import invariant
from jato.loopir.complex import Complex
from jato.loopir.expressions import ExpressionBuilder
from jato.loopir.grammar import (
    Buffer,
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
from jato.loopir.index_math import FULL, INTEGER_RANGE
from jato.loopir.nodes import COMPLEX_PARTS, Operand, Value, dtype_of

Extent = Union[int, Expr]

_COMBINES = ("add", "mul", "max", "min", "and", "or", "xor")
UNROLL_LIMIT = 4
_COMPUTE = {"f16": "f32", "bf16": "f32"}


class Builder(ExpressionBuilder):
    """Makes expressions and statements.  See the module's docstring."""

    def __init__(self, first_serial: int = 0) -> None:
        super().__init__(first_serial)
        self.buffers: list[Buffer] = []
        self._blocks: list[list[Stmt]] = [[]]

    # ---- buffers and kernels

    def input(self, name: str, dtype: str) -> Buffer:
        """A buffer that is only read; dtype "c64"/"c128": (re, im) pairs, indexed by element."""
        return self._buffer(name, dtype, "in", 0)

    def output(self, name: str, dtype: str) -> Buffer:
        return self._buffer(name, dtype, "out", 0)

    def local(self, name: str, dtype: str, size: int) -> Buffer:
        """Scratch of `size` elements, private to one call of the kernel."""
        return self._buffer(name, dtype, "local", size * 2 if dtype in COMPLEX_PARTS else size)

    def _buffer(self, name: str, dtype: str, space: str, size: int) -> Buffer:
        buffer = Buffer(name, COMPLEX_PARTS.get(dtype, dtype), space, size)
        if dtype in COMPLEX_PARTS:
            self._pairs.add(buffer)
        self.buffers.append(buffer)
        return buffer

    def is_complex(self, buffer: Buffer) -> bool:
        """Whether loads of the buffer give pairs."""
        return buffer in self._pairs

    def kernel(
        self, name: str, *, num_params: int | None = None, in_place: bool = False,
        notes: Sequence[str] = (),
    ) -> Kernel:  # fmt: skip
        """The kernel made of all buffers and the statements written so far."""
        invariant(len(self._blocks) == 1, f"kernel {name}: a block is still open")
        if num_params is None:
            used = [key[3] for key in self._nodes if key[0] == "param"]
            num_params = max(used, default=-1) + 1
        body = tuple(self._blocks[0])
        return Kernel(name, tuple(self.buffers), num_params, body, in_place, tuple(notes))

    # ---- blocks and loops

    @contextmanager
    def block(self) -> Iterator[list[Stmt]]:
        """Collects the statements written inside into a list of its own."""
        statements: list[Stmt] = []
        self._blocks.append(statements)
        try:
            yield statements
        finally:
            self._blocks.pop()

    def append(self, statement: Stmt) -> None:
        """Adds a statement made elsewhere to the current block."""
        self._blocks[-1].append(statement)

    def _bound(self, x: Extent) -> Expr:
        return x if isinstance(x, Expr) else self.index(x)

    def _loop_var(self, name: str, start: Expr, stop: Expr) -> Expr:
        low, high = self.range(start)[0], self.range(stop)[1] - 1
        if low == FULL[0] or high == FULL[1] - 1:
            return self.var(name, "i64")
        return self.var(name, "i64", low, max(low, high))

    @contextmanager
    def for_(self, name: str, start: Extent, stop: Extent, lanes: int = 1) -> Iterator[Expr]:
        """A loop whose iterations may run in any order; yields its variable.

        One that runs exactly once leaves no trace: its variable is `start`."""
        first, last = self._bound(start), self._bound(stop)
        if first.op == last.op == "const" and last.attr - first.attr == 1:
            yield first
            return
        var = self._loop_var(name, first, last)
        with self.block() as body:
            yield var
        self.append(For(var, first, last, tuple(body), lanes))

    @contextmanager
    def if_(self, condition: Expr) -> Iterator[None]:
        """Statements under a condition that is uniform over the lanes."""
        with self.block() as body:
            yield
        if condition.op != "const":
            self.append(If(condition, tuple(body)))
        elif condition.attr:
            self._blocks[-1].extend(body)

    def store(self, buffer: Buffer, index: Operand, value: Value, mask: Expr | None = None) -> None:
        """buffer[index] = value, where `mask`.  A complex value goes into a complex buffer."""
        position: Any = self._coerce(index, "i64")
        if mask is not None and mask.op == "const":
            if not mask.attr:
                return
            mask = None
        if isinstance(value, Complex) or buffer in self._pairs:
            pair = value if isinstance(value, Complex) else self._as_complex(value, value)
            invariant(buffer in self._pairs, f"store: {buffer.name} is not complex")
            first = self.mul(position, 2)
            self.append(Store(buffer, first, pair.re, mask))
            self.append(Store(buffer, self.add(first, 1), pair.im, mask))
            return
        if value.dtype != buffer.dtype:
            invariant(False, f"store: {value.dtype} into {buffer.name} of {buffer.dtype}")
        self.append(Store(buffer, position, value, mask))

    def prefetch(self, buffer: Buffer, index: Operand) -> None:
        """Asks for the memory of buffer[index], for a later iteration."""
        self.append(Prefetch(buffer, self._coerce(index, "i64")))

    def tile_copy(
        self, tile: Buffer, array: Buffer, start: Operand, step: Operand, rows: Operand,
        columns: Operand, pitch: int, lanes: int, out: bool = False,
    ) -> None:  # fmt: skip
        """tile[c pitch + r] = array[start + r step + c], r < rows <= pitch, c < columns; `out`:
        the other way round."""
        at, distance, height, width = (
            self._coerce(x, "i64") for x in (start, step, rows, columns)
        )
        self.append(TileCopy(tile, array, at, distance, height, width, pitch, lanes, out))

    # ---- reductions

    def reduce(
        self,
        extents: Sequence[Extent],
        element: Callable[..., Any],
        combine: str | Callable[..., Any],
        identity: Any = None,
        *,
        lanes: int = 1,
        unroll: bool = False,
        names: Sequence[str] | None = None,
    ) -> Any:
        """Combines element(*indices) over all indices in the extents; appends the loops.

        element: one index per extent -> a value or a tuple of values.
        combine: "add" "mul" "max" "min" "and" "or" "xor", or a callable (left, right) -> result
            over tuples, associative and commutative.
        identity: a value (Python number or expression) per element; None: the one of the name.
        lanes: of the innermost loop.  Extents of at most 4 (all constant ones with `unroll`)
            become plain expressions.
        Gives a value, or a tuple as `element` does.  16-bit floats are accumulated in f32 and
        rounded once.
        """
        state = _Reduction(self, combine, identity, lanes, unroll, names)
        wide = state.run(list(extents), (), element)
        values = tuple(self.convert(v, d) for v, d in zip(wide, state.dtypes, strict=True))
        return values if state.is_tuple else values[0]

    # ---- ordered loops

    def loop(
        self,
        name: str,
        start: Extent,
        stop: Extent,
        inits: Sequence[Value],
        body: Callable[[Expr, tuple[Value, ...]], Sequence[Value]],
        condition: Callable[[tuple[Value, ...]], Expr] | None = None,
    ) -> tuple[Any, ...]:
        """Iterations in order: carries start as `inits` and become body(i, carries).

        `condition(carries)`, evaluated before each iteration, ends the loop when false."""
        packing = _Packing(self, inits)
        flat_inits = packing.flatten(inits)
        first, last = self._bound(start), self._bound(stop)
        carries = tuple(self.var(f"{name}_carry", x.dtype) for x in flat_inits)
        results = tuple(self.var(f"{name}_result", x.dtype) for x in flat_inits)
        var = self._loop_var(name, first, last)
        values = packing.unflatten(carries)
        test = None if condition is None else condition(values)
        with self.block() as statements:
            nexts = packing.flatten(body(var, values))
        for before, after in zip(flat_inits, nexts, strict=True):
            invariant(before.dtype == after.dtype, f"loop {name}: {before.dtype} -> {after.dtype}")
        self.append(
            Loop(carries, flat_inits, results, var, first, last, tuple(statements), nexts, test)
        )
        return packing.unflatten(results)


class _Packing:
    """Between values (complex pairs, 16-bit floats) and the plain scalars of statements."""

    def __init__(self, b: Builder, values: Sequence[Any]):
        self.b = b
        self.dtypes = [dtype_of(v) for v in values]

    def flatten(self, values: Sequence[Any]) -> tuple[Expr, ...]:
        flat: list[Expr] = []
        invariant(len(values) == len(self.dtypes), "a loop changed the number of its values")
        for value, dtype in zip(values, self.dtypes, strict=True):
            if dtype in COMPLEX_PARTS:
                pair = self.b.convert(value, dtype)
                flat += [pair.re, pair.im]
            else:
                flat.append(self.b.convert(value, _COMPUTE.get(dtype, value.dtype)))
        return tuple(flat)

    def unflatten(self, flat: Sequence[Expr]) -> tuple[Any, ...]:
        values: list[Any] = []
        position = 0
        for dtype in self.dtypes:
            if dtype in COMPLEX_PARTS:
                values.append(Complex(flat[position], flat[position + 1]))
                position += 2
            else:
                values.append(self.b.convert(flat[position], dtype))
                position += 1
        return tuple(values)


class _Reduction:
    """One call of Builder.reduce: peels extents from the outside in."""

    def __init__(
        self, b: Builder, combine: Any, identity: Any, lanes: int, unroll: bool,
        names: Sequence[str] | None,
    ):  # fmt: skip
        self.b = b
        self.combine = combine
        self.identity = identity
        self.lanes = lanes
        self.unroll = unroll
        self.names = names
        self.is_tuple = False
        self.dtypes: list[str] = []

    def run(
        self, extents: list[Extent], indices: tuple[Expr, ...], element: Any
    ) -> tuple[Any, ...]:
        if not extents:
            value = element(*indices)
            self.is_tuple = isinstance(value, tuple)
            values = value if isinstance(value, tuple) else (value,)
            self.dtypes = [dtype_of(v) for v in values]
            return tuple(self.b.convert(v, _COMPUTE.get(dtype_of(v), dtype_of(v))) for v in values)
        extent, *inner = extents
        if self._unrolls(extent):
            count = range(_static(extent) or 0)
            return self._tree(
                [self.run(inner, (*indices, self.b.index(i)), element) for i in count]
            )
        return self._loop(self.b._bound(extent), inner, indices, element)

    def _innermost(self, inner: list[Extent]) -> bool:
        """Every extent further in is unrolled: this loop gets the lanes."""
        return all(self._unrolls(extent) for extent in inner)

    def _unrolls(self, extent: Extent) -> bool:
        count = _static(extent)
        return count is not None and (
            count == 1 or (count > 0 and (self.unroll or count <= UNROLL_LIMIT))
        )

    def _tree(self, values: list[tuple[Any, ...]]) -> tuple[Any, ...]:
        """Combines a list pairwise: short dependence chains."""
        while len(values) > 1:
            pairs = [self._join(values[i], values[i + 1]) for i in range(0, len(values) - 1, 2)]
            values = pairs + (values[-1:] if len(values) % 2 else [])
        return values[0]

    def _join(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        if isinstance(self.combine, str):
            return tuple(self.b.op(self.combine, x, y) for x, y in zip(left, right, strict=True))
        result = self.combine(left, right)
        return result if isinstance(result, tuple) else (result,)

    def _loop(
        self, stop: Expr, inner: list[Extent], indices: tuple[Expr, ...], element: Any
    ) -> tuple[Any, ...]:
        b = self.b
        depth = len(indices)
        name = self.names[depth] if self.names else "r"
        start = b.index(0)
        var = b._loop_var(name, start, stop)
        with b.block() as body:
            values = self.run(inner, (*indices, var), element)
        packing = _Packing(b, values)
        elements = packing.flatten(values)
        left = tuple(b.var("left", x.dtype) for x in elements)
        right = tuple(b.var("right", x.dtype) for x in elements)
        joined = self._join(packing.unflatten(left), packing.unflatten(right))
        result = packing.flatten(joined)
        results = tuple(b.var(f"{name}_total", x.dtype) for x in elements)
        identity = packing.flatten(self._identities(values))
        lanes = self.lanes if self._innermost(inner) else 1
        b.append(
            Reduce(
                results, var, start, stop, tuple(body), elements,
                Combine(left, right, result), identity, lanes,
            )
        )  # fmt: skip
        return packing.unflatten(results)

    def _identities(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        given = self.identity
        if given is None:
            invariant(self.combine in _COMBINES, f"reduce: {self.combine} needs an identity")
            given = tuple(identity_of(self.combine, dtype_of(v)) for v in values)
        elif not isinstance(given, tuple):
            given = (given,)
        return tuple(
            x if isinstance(x, (Expr, Complex)) else self.b.const(x, dtype_of(v))
            for x, v in zip(given, values, strict=True)
        )


def _static(extent: Extent) -> int | None:
    """The extent when it is a constant."""
    if isinstance(extent, Expr):
        return extent.attr if extent.op == "const" else None
    return extent


def identity_of(combine: str, dtype: str) -> Any:
    """The value that `combine` ignores, as a Python number."""
    if combine in ("add", "or", "xor"):
        return 0
    if combine == "mul":
        return 1
    if dtype in INTEGER_RANGE:
        low, high = INTEGER_RANGE[dtype]
        return {"max": low, "min": high, "and": high if low == 0 else -1}[combine]
    return -math.inf if combine == "max" else math.inf
