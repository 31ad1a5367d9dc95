"""Scatter: a copy of the operand, then loops over the updates.

Takes   a node of the family ops.gather_scatter.Scatter, its operands in memory.
Gives   for sums of whole rows by their index, the usual case, a native routine; else one of these,
        since two updates may meet in one place:

    private    few places, many updates that may be combined in any order: each of PARTS threads'
               shares has an array of its own, and these are combined at the end.  The number of
               shares is fixed, so that results do not depend on the number of threads.
    columns    updates are long rows: each thread applies all of them, to its own columns
    unique     the user promises that no two updates meet: any order
    serial     everything else: in order, on one thread

Where an update is a window of a contiguous axis, that axis is the vector loop: the elements of one
window never meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from jato.base import dtypes
from jato.compiler.loops.lower import Index, Lowering
from jato.compiler.loops.nest import LoopNest
from jato.compiler.plan import PlanContext
from jato.compiler.steps import Library
from jato.core.graph import Node, Var
from jato.core.types import array_type
from jato.loopir.builder import Builder
from jato.loopir.grammar import For
from jato.ops.gather_geometry import GatherScatterMode
from jato.ops.gather_scatter import SCATTER_ADD

_NATIVE_DTYPES = ("float32", "float64", "int32", "int64", "uint32", "uint64")
PARTS = 8  # private arrays
MANY_UPDATES = 1 << 14  # fewer are not worth more than one thread
COLUMNS = 32  # of a row of updates that one thread takes: whole cache lines


def plan_scatter(context: PlanContext, node: Node) -> None:
    operand, _, updates = node.inputs
    out = node.outputs[0]
    if out.aval.size == 0:
        return
    if updates.aval.size == 0:
        context.copy(operand, out)
        return
    if _sums_rows(node):
        context.steps.append(_sum_of_rows(context, node))
        return
    form = _Scatter(node, context.vector_bytes)
    if form.may_be_private():
        partial = Var(array_type((PARTS * out.aval.size,), out.aval.dtype))
        context.launch(form.private(partial))
        context.launch(form.combined(partial))
        return
    context.copy(operand, out)
    context.launch(form.columns() if form.has_columns() else form.rows())


def _sums_rows(node: Node) -> bool:
    """Is it operand[indices] += rows, over the first axis, of a dtype the native routine has?"""
    operand, indices, updates = (v.aval for v in node.inputs)
    n, batch = node.params["dimension_numbers"], indices.ndim - 1
    return (
        node.primitive is SCATTER_ADD
        and operand.dtype.name in _NATIVE_DTYPES
        and indices.dtype.name in ("int32", "int64")
        and indices.shape[-1] == 1
        and n.inserted_window_dims == n.scatter_dims_to_operand_dims == (0,)
        and not n.operand_batching_dims
        and n.update_window_dims == tuple(range(batch, updates.ndim))
        and updates.shape[batch:] == operand.shape[1:]
    )


def _sum_of_rows(context: PlanContext, node: Node) -> Library:
    operand, indices, updates = map(context.in_memory, node.inputs)
    out = node.outputs[0]
    places = operand.aval.shape[0]
    row = out.aval.size // places
    modes = GatherScatterMode.CLIP, GatherScatterMode.PROMISE_IN_BOUNDS
    clip = node.params["mode"] in modes
    params = [
        out.aval.dtype_code, indices.aval.dtype_code, indices.aval.size, places, row, int(clip)
    ]  # fmt: skip
    cost_ns = 1.0 * updates.aval.size + 0.1 * out.aval.size
    return Library("scatter_add_rows", [operand, indices, updates], [out], params, cost_ns)


class _Scatter:
    """A scatter and its pieces of kernels.  `wide`: the last axis of the updates is one of windows."""

    def __init__(self, node: Node, vector_bytes: int):
        self.node = node
        self.operand, self.indices, self.updates = node.inputs
        self.out = node.outputs[0]
        shape = self.updates.aval.shape
        window = node.params["dimension_numbers"].update_window_dims
        self.wide = bool(shape) and len(shape) - 1 in window and shape[-1] >= 4
        self.length = shape[-1] if self.wide else 1
        self.outer = shape[:-1] if self.wide else shape
        self.count = prod(self.outer)
        self.lanes = max(1, vector_bytes // max(4, self.updates.aval.itemsize))
        self.b = Builder()
        self.lowering = Lowering(self.b, [])

    # ---- which form

    def may_be_private(self) -> bool:
        size = self.updates.aval.size
        return (
            self.node.primitive.identity(self.out.aval.dtype) is not None
            and size >= MANY_UPDATES
            and 2 * PARTS * self.out.aval.size <= size
        )

    def has_columns(self) -> bool:
        many = self.updates.aval.size >= MANY_UPDATES
        return many and self.length >= 2 * COLUMNS and not self.node.params["unique_indices"]

    # ---- pieces

    def apply(self, index: Index, target: Any, base: Any = None) -> None:
        """Applies the update at `index` to the place it names in `target`, from `base` on."""
        b, lowering, primitive = self.b, self.lowering, self.node.primitive
        place, inside = primitive.operand_index(
            b, index, lambda i: lowering.value(self.indices, i), self.operand.aval,
            self.updates.aval, **self.node.params,
        )  # fmt: skip
        value = lowering.value(self.updates, index)
        at = lowering.offset(self.out.aval.shape, place)
        if base is not None:
            at = b.add(base, at)
        if inside is None:
            b.store(target, at, primitive.combine(b, b.load(target, at), value))
            return
        with b.guard(inside):
            old = b.load(target, at)
        b.store(target, at, primitive.combine(b, old, value), inside)

    def apply_row(self, row: Index, target: Any, base: Any = None, columns: Any = None) -> None:
        """Applies one element, or one window along the vector axis (or some `columns` of it)."""
        if not self.wide:
            self.apply(row, target, base)
            return
        first, last = columns or (0, self.length)
        lanes = self.lanes
        while lanes > self.length:
            lanes //= 2
        with self.b.for_("i", first, last, lanes) as i, self.lowering.scope():
            self.apply((*row, i), target, base)

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

    def rows(self) -> LoopNest:
        """unique and serial: one grid step for each row of updates."""
        b, lowering = self.b, self.lowering
        g = b.var("g", "i64", 0, max(0, self.count - 1))
        with b.block() as body, lowering.scope():
            self.apply_row(lowering.unravel(g, self.outer), lowering.output(self.out))
        unique = self.node.params["unique_indices"]
        grain = max(1, 512 // self.length) if unique else max(1, self.count)
        return self.nest(g, body, self.out, self.count, grain, self.length * 2.0)

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
                neutral = b.const(
                    self.node.primitive.identity(out.dtype), dtypes.scalar_name(out)
                )
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
