"""Scatter: a copy of the operand, then a loop over the updates.

Takes   a node of the family ops.gather_scatter.Scatter, its operands in memory.
Gives   a copy step and a kernel that applies the updates in order, on one thread, since two of
        them may meet.  Where an update is a window of a contiguous axis, that axis is the vector
        loop: the elements of one window never meet.
"""

from __future__ import annotations

from math import prod
from typing import Any

from jato.compiler.loops.lower import Index, Lowering
from jato.compiler.loops.nest import LoopNest
from jato.compiler.plan import PlanContext
from jato.core.graph import Node
from jato.loopir.builder import Builder
from jato.loopir.grammar import For


def plan_scatter(context: PlanContext, node: Node) -> None:
    operand, _, updates = node.inputs
    out = node.outputs[0]
    if out.aval.size == 0:
        return
    context.copy(operand, out)
    if updates.aval.size:
        context.launch(_updates(node, context.vector_bytes))


def _updates(node: Node, vector_bytes: int) -> LoopNest:
    operand, indices, updates = node.inputs
    out = node.outputs[0]
    shape = updates.aval.shape
    window = node.params["dimension_numbers"].update_window_dims
    wide = bool(shape) and len(shape) - 1 in window and shape[-1] >= 8
    b = Builder()
    lowering = Lowering(b, [])
    outer = shape[:-1] if wide else shape
    count = prod(outer)
    g = b.var("g", "i64", 0, max(0, count - 1))

    def apply(index: Index) -> None:
        place, inside = node.primitive.operand_index(
            b, index, lambda i: lowering.value(indices, i), operand.aval, updates.aval,
            **node.params,
        )  # fmt: skip
        value = lowering.value(updates, index)
        target = lowering.output(out)
        at = lowering.offset(out.aval.shape, place)
        if inside is None:
            b.store(target, at, node.primitive.combine(b, b.load(target, at), value))
            return
        with b.guard(inside):
            old = b.load(target, at)
        b.store(target, at, node.primitive.combine(b, old, value), inside)

    with b.block() as body, lowering.scope():
        row = lowering.unravel(g, outer)
        if wide:
            lanes = max(1, vector_bytes // max(4, updates.aval.itemsize))
            with b.for_("i", 0, shape[-1], lanes) as v, lowering.scope():
                apply((*row, v))
        else:
            apply(row)
    b.append(For(g, b.grid_begin(), b.grid_end(), tuple(body)))
    names: dict[Any, Any] = {buffer: var for var, buffer in lowering.buffers.items()}
    names.update({buffer: var for var, buffer in lowering.outputs.items()})
    kernel = b.kernel(node.primitive.name)
    arguments = [names[x] for x in kernel.buffers if x.space != "local"]
    each = (shape[-1] if wide else 1) * 2.0
    return LoopNest(kernel, arguments, [out], count, max(1, count), each, updates.aval.nbytes)
