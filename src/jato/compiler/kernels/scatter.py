"""Scatter: a copy of the operand, then loops over the updates.

Takes   a node of the family ops.gather_scatter.Scatter, its operands in memory.
Gives   loops over the updates, in one of these forms, since two updates may meet in one place:

    apart      along some axes of the updates no two of them meet (windows that lie whole along an
               axis of the operand; axes of a batch; all axes, where the user promises it): these
               are shared among the threads, the updates along the others are applied in order
    private    few places, many updates that may be combined in any order: each of PARTS threads'
               shares has an array of its own, and these are combined at the end.  The number of
               shares is fixed, so that results do not depend on the number of threads.
    columns    updates are long rows: each thread applies all of them, to its own columns
    in order   everything else, on one thread: `apart` without such axes

Where an update is a window of a contiguous axis, that axis is the vector loop: the elements of one
window never meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from math import prod
from typing import Any

from jato.base import dtypes
from jato.compiler.loops.lower import Index, Lowering
from jato.compiler.loops.nest import LoopNest, whole_vectors
from jato.compiler.plan import PlanContext
from jato.core.graph import Node, Var
from jato.core.types import array_type
from jato.loopir.builder import Builder
from jato.loopir.grammar import For
from jato.ops.gather_geometry import other_axes

PARTS = 8  # private arrays
MANY_UPDATES = 1 << 14  # fewer are not worth more than one thread
COLUMNS = 32  # of a row of updates that one thread takes: whole cache lines
SHORT_ROW = 64  # elements; rows up to here are written out, as vectors without masks


def plan_scatter(context: PlanContext, node: Node) -> None:
    operand, _, updates = node.inputs
    out = node.outputs[0]
    if out.aval.size == 0:
        return
    if updates.aval.size == 0:
        context.copy(operand, out)
        return
    form = _Scatter(node, context.vector_bytes)
    shared = form.axes_apart()
    if not shared and form.may_be_private():
        partial = Var(array_type((PARTS * out.aval.size,), out.aval.dtype))
        context.launch(form.private(partial))
        context.launch(form.combined(partial))
        return
    context.copy(operand, out)
    context.launch(form.columns() if not shared and form.has_columns() else form.apart(shared))


class _Scatter:
    """A scatter and its pieces of kernels.  `wide`: the last axis of the updates is one of windows."""

    def __init__(self, node: Node, vector_bytes: int):
        self.node = node
        self.operand, self.indices, self.updates = node.inputs
        self.out = node.outputs[0]
        shape = self.updates.aval.shape
        window = node.params["dimension_numbers"].update_window_dims
        self.wide = bool(shape) and len(shape) - 1 in window and shape[-1] >= 2
        self.length = shape[-1] if self.wide else 1
        self.outer = shape[:-1] if self.wide else shape
        self.count = prod(self.outer)
        self.lanes = max(1, vector_bytes // max(4, self.updates.aval.itemsize))
        self.b = Builder()
        self.lowering = Lowering(self.b, [])

    # ---- which form

    def axes_apart(self) -> list[int]:
        """Axes of the updates (not the vector axis) along which no two of them meet, if these are
        long enough to be shared among threads; else none."""
        n = self.node.params["dimension_numbers"]
        axes = range(len(self.outer))
        if self.node.params["unique_indices"]:
            # a last axis of its own is a loop, whose positions need no division
            apart = list(axes[:-1]) if not self.wide and prod(self.outer[:-1]) >= PARTS else [*axes]
        else:
            shape = self.updates.aval.shape
            batch = other_axes(len(shape), n.update_window_dims)
            kept = other_axes(
                self.operand.aval.ndim, n.inserted_window_dims, n.operand_batching_dims
            )
            apart = [batch[a] for a in n.scatter_indices_batching_dims]
            apart += [
                u for d, u in zip(kept, n.update_window_dims, strict=True)
                if d not in n.scatter_dims_to_operand_dims
            ]  # fmt: skip
            apart = sorted(a for a in apart if a in axes)
        many = self.updates.aval.size >= MANY_UPDATES
        return apart if many and prod(self.outer[a] for a in apart) >= PARTS else []

    def may_be_private(self) -> bool:
        size = self.updates.aval.size
        return (
            self.node.primitive.identity(self.out.aval.dtype) is not None
            and size >= MANY_UPDATES
            and 2 * PARTS * self.out.aval.size <= size
        )

    def has_columns(self) -> bool:
        return self.updates.aval.size >= MANY_UPDATES and self.length >= 2 * COLUMNS

    # ---- pieces

    def located(self, index: Index) -> tuple[Index, Any]:
        """The place of the update at `index`, and the condition that it is inside (or None)."""
        return self.node.primitive.operand_index(
            self.b, index, lambda i: self.lowering.value(self.indices, i), self.operand.aval,
            self.updates.aval, **self.node.params,
        )  # fmt: skip

    def apply(self, index: Index, target: Any, base: Any) -> None:
        """Combines the update at `index` with what is at its place in `target`, from `base` on."""
        b, lowering = self.b, self.lowering
        place, _ = self.located(index)
        at = lowering.offset(self.out.aval.shape, place)
        if base is not None:
            at = b.add(base, at)
        value = lowering.value(self.updates, index)
        b.store(target, at, self.node.primitive.combine(b, b.load(target, at), value))

    def apply_row(self, row: Index, target: Any, base: Any = None, columns: Any = None) -> None:
        """Applies one element, or one window along the vector axis (or some `columns` of it).

        A window is inside as a whole or dropped, by a branch that is taken nearly always.  Masks
        cost more: the load of a masked old value is slow (262,144 maxima of numbers on one thread
        took 218 us, with the branch 133)."""
        b, lowering = self.b, self.lowering
        _, inside = self.located((*row, b.index(0)) if self.wide else row)
        with nullcontext() if inside is None else b.if_(inside), lowering.scope():
            if not self.wide:
                self.apply(row, target, base)
            elif columns is None and self.length <= SHORT_ROW:
                for first, lanes in whole_vectors(self.length, self.lanes):
                    with b.for_("i", first, first + lanes, lanes) as i, lowering.scope():
                        self.apply((*row, i), target, base)
            else:
                first, last = columns or (0, self.length)
                with b.for_("i", first, last, self.lanes) as i, lowering.scope():
                    self.apply((*row, i), target, base)

    @contextmanager
    def each(self, axes: Sequence[int]) -> Iterator[dict[int, Any]]:
        """Nested loops over these axes of the updates: axis -> position."""
        with ExitStack() as stack:
            yield {
                a: stack.enter_context(self.b.for_("u", 0, self.outer[a])) for a in axes
            }  # fmt: skip

    def nest(
        self, g: Any, body: Sequence[Any], written: Var, grid: int, grain: int, step_ns: float
    ) -> LoopNest:
        b, lowering = self.b, self.lowering
        b.append(For(g, b.grid_begin(), b.grid_end(), tuple(body)))
        names: dict[Any, Any] = {buffer: var for var, buffer in lowering.buffers.items()}
        names.update({buffer: var for var, buffer in lowering.outputs.items()})
        kernel = b.kernel(self.node.primitive.name)
        arguments = [names[x] for x in kernel.buffers if x.space != "local"]
        traffic = self.updates.aval.nbytes
        return LoopNest(kernel, arguments, [written], grid, grain, step_ns, traffic)

    # ---- forms

    def apart(self, shared: Sequence[int]) -> LoopNest:
        """One grid step for each place along the `shared` axes, loops over the others."""
        b, lowering = self.b, self.lowering
        extents = tuple(self.outer[a] for a in shared)
        grid = prod(extents)
        others = [a for a in range(len(self.outer)) if a not in shared]
        g = b.var("g", "i64", 0, grid - 1)
        with b.block() as body, lowering.scope():
            places = dict(zip(shared, lowering.unravel(g, extents), strict=True))
            with self.each(others) as more, lowering.scope():
                places |= more
                row = tuple(places[a] for a in range(len(self.outer)))
                self.apply_row(row, lowering.output(self.out))
        elements = self.updates.aval.size // grid
        return self.nest(g, body, self.out, grid, max(1, 512 // elements), elements * 1.0)

    def columns(self) -> LoopNest:
        b, lowering = self.b, self.lowering
        grid = -(-self.length // COLUMNS)
        g = b.var("g", "i64", 0, grid - 1)
        with b.block() as body, lowering.scope():
            first = b.mul(g, b.index(COLUMNS))
            last = b.limited(b.add(first, b.index(COLUMNS)), b.index(self.length))
            with b.for_("u", 0, self.count) as u, lowering.scope():
                row = lowering.unravel(u, self.outer)
                self.apply_row(row, lowering.output(self.out), columns=(first, last))
        return self.nest(g, body, self.out, grid, 1, self.count * COLUMNS * 0.5)

    def private(self, partial: Var) -> LoopNest:
        """Share g of the updates goes into row g of `partial`; row 0 starts as the operand."""
        b, lowering, out = self.b, self.lowering, self.out.aval
        g = b.var("g", "i64", 0, PARTS - 1)
        share = -(-self.count // PARTS)
        with b.block() as body, lowering.scope():
            target = lowering.output(partial)
            base = b.mul(g, b.index(out.size))
            first = b.eq(g, b.index(0))
            with b.for_("e", 0, out.size, self.lanes) as e, lowering.scope():
                with b.guard(first):
                    start = lowering.value(self.operand, lowering.unravel(e, out.shape))
                neutral = b.const(self.node.primitive.identity(out.dtype), dtypes.scalar_name(out))
                b.store(target, b.add(base, e), b.select(first, start, neutral))
            begin = b.mul(g, b.index(share))
            end = b.limited(b.add(begin, b.index(share)), b.index(self.count))
            with b.for_("u", begin, end) as u, lowering.scope():
                self.apply_row(lowering.unravel(u, self.outer), target, base)
        return self.nest(g, body, partial, PARTS, 1, share * self.length * 1.0)

    def combined(self, partial: Var) -> LoopNest:
        """out[e] = the rows of `partial` combined."""
        self.b = b = Builder()
        self.lowering = lowering = Lowering(b, [])
        size = self.out.aval.size
        blocks = -(-size // 1024)
        g = b.var("g", "i64", 0, blocks - 1)
        with b.block() as body, lowering.scope():
            first = b.mul(g, b.index(1024))
            last = b.limited(b.add(first, b.index(1024)), b.index(size))
            with b.for_("e", first, last, self.lanes) as e, lowering.scope():
                total: Any = None
                for part in range(PARTS):
                    value = lowering.value(partial, (b.add(b.index(part * size), e),))
                    total = value if total is None else self.node.primitive.combine(b, total, value)
                b.store(lowering.output(self.out), e, total)
        return self.nest(g, body, self.out, blocks, 1, 1024.0)
