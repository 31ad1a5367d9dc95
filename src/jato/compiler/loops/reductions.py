"""Loops that reduce: several reductions over the same elements in one loop nest.

`accumulate` is what the schedules call; `cone` and `values_to_save` say what a loop computes
element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jato.base import dtypes
from jato.compiler.fusion import cost
from jato.compiler.fusion.partition import Group
from jato.compiler.loops.lower import Index, Lowering
from jato.core.graph import Node, Var
from jato.core.types import array_type
from jato.loopir.complex import Complex

# A running sum is folded after this many additions per lane, so that rounding errors grow with
# the logarithm of the length (Higham, Accuracy and Stability of Numerical Algorithms, 4.2).
FOLD = 512


def values_to_save(
    group: Group, levels: list[list[Node]]
) -> list[tuple[Var, Var, list[Node]]]:
    """Costly values of whole rows that several loops need: (value, output, first loop).

    The first loop writes such a value into the memory of an output of its type, the later ones
    read it there, at their own index; the last of them overwrites it with the output itself.  If
    that loop reads the value, then the output must depend on it, so that it is read before it is
    overwritten.

    softmax:  max of x;  e = exp(x - max) -> out, sum of e;  out = out / sum
    """
    wide = [v for v in group.outputs if v.aval.shape == group.space]
    if not levels or not wide:
        return []
    producer = {v: n for n in group.nodes for v in n.outputs}
    loops: list[list[Node]] = [*levels, []]
    free = [v for v in wide if dtypes.scalar_name(v.aval) not in ("f16", "bf16", "c64", "c128")]
    saved: list[tuple[Var, Var, list[Node]]] = []

    def needed(loop: list[Node], outputs: Sequence[Var] = wide) -> dict[Node, bool]:
        """What a loop computes element by element, without what is saved, and whether also at
        another index than its own.  The last loop, of no reductions, computes outputs."""
        stops = {v for v, _, _ in saved}
        roots: list[Any] = [a for n in loop for a in n.inputs] if loop else list(outputs)
        stack = [(a, False) for a in roots]
        found: dict[Node, bool] = {}
        while stack:
            a, moved = stack.pop()
            node = producer.get(a) if type(a) is Var else None
            if node is None or cost.is_big_reduction(node) or found.get(node, -1) >= moved:
                continue
            if a in stops and any(first is not loop for v, _, first in saved if v is a):
                continue
            found[node] = moved
            moved = moved or not node.primitive.pointwise
            stack += [(x, moved) for x in node.inputs]
        return found

    cones = [needed(loop) for loop in loops]
    for node in reversed(group.nodes):
        out = node.outputs[0]
        if out.aval.shape != group.space or cost.element_cost(node) <= cost.CHEAP:
            continue
        if out in wide:
            continue
        users = [i for i, found in enumerate(cones) if node in found]
        if len(users) < 2 or any(cones[i][node] for i in users[1:]):
            continue
        last = len(loops) - 1
        target = next(
            (
                v
                for v in free
                if v.aval.dtype_code == out.aval.dtype_code
                and (users[-1] != last or node in needed([], [v]))
            ),
            None,
        )
        if target is not None:
            saved.append((out, target, loops[users[0]]))
            free.remove(target)
            cones = [needed(loop) for loop in loops]
    return saved


def cone(producer: dict[Var, Node], roots: Sequence[Any]) -> list[Node]:
    """The nodes that compute `roots`, up to reductions and memory, operands first."""
    order: list[Node] = []
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = []

    def push(atoms: Sequence[Any]) -> None:
        for a in atoms:
            node = producer.get(a) if type(a) is Var else None
            if node is not None and node not in seen and not cost.is_big_reduction(node):
                stack.append((node, False))

    push(roots)
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            push(node.inputs)
    return order


def accumulate(
    lowering: Lowering,
    reductions: list[Node],
    extents: Sequence[Any],
    index: Callable[[Sequence[Any]], Index],
    lanes: int,
    bound: int | None = None,
    saved: Sequence[tuple[Var, Var]] = (),
) -> list[tuple[Any, ...]]:
    """Accumulators of several reductions over the same elements, in one loop nest.

    saved: (value, output): values that the loop also writes into an output's memory."""
    b = lowering.b
    space = reductions[0].inputs[0].aval.shape
    chain = [
        n
        for n in cone(lowering.producer, [a for r in reductions for a in r.inputs])
        if n.primitive.pointwise and n.outputs[0].aval.shape == space
    ]

    def element(d: Sequence[Any]) -> tuple[Any, ...]:
        place = index(d)
        for node in chain:  # in graph order, so that a long chain is no deep recursion
            lowering.value(node.outputs[0], place)
        for var, out in saved:
            lowering.write(out, place, lowering.value(var, place))
        values: list[Any] = []
        for node in reductions:
            operands = [lowering.value(a, place) for a in node.inputs]
            values += node.primitive.element(b, operands[0], place, **node.params)
        return tuple(values)

    last = extents[-1]
    length = bound if len(extents) == 1 and bound is not None else last
    if isinstance(length, int) and length > 2 * FOLD * lanes:
        return _folded(lowering, reductions, extents, element, lanes)
    return reduce_together(lowering, reductions, extents, element, lanes)


def _folded(
    lowering: Lowering,
    reductions: list[Node],
    extents: Sequence[Any],
    element: Callable[[Sequence[Any]], tuple[Any, ...]],
    lanes: int,
) -> list[tuple[Any, ...]]:
    """The innermost extent in stretches of FOLD additions a lane."""
    b = lowering.b
    stretch = FOLD * lanes
    last = b._bound(extents[-1])
    count = b.div(b.add(last, b.index(stretch - 1)), b.index(stretch))

    def outer(d: Sequence[Any]) -> tuple[Any, ...]:
        start = b.mul(d[-1], b.index(stretch))
        length = b.limited(b.sub(last, start), b.index(stretch))
        inner = reduce_together(
            lowering, reductions, [length], lambda e: element((*d[:-1], b.add(start, e[0]))), lanes
        )
        return tuple(v for part in inner for v in part)

    return reduce_together(lowering, reductions, [*extents[:-1], count], outer, 1)


def reduce_together(
    lowering: Lowering,
    reductions: list[Node],
    extents: Sequence[Any],
    element: Callable[[Sequence[Any]], tuple[Any, ...]],
    lanes: int,
) -> list[tuple[Any, ...]]:
    """b.reduce over the concatenated accumulators of all reductions."""
    b = lowering.b
    identities = [tuple(n.primitive.identity(b, n.inputs[0].aval, **n.params)) for n in reductions]
    sizes = [len(i) for i in identities]

    def split(values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        parts, start = [], 0
        for size in sizes:
            parts.append(tuple(values[start : start + size]))
            start += size
        return parts

    def combine(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        joined: list[Any] = []
        for node, p, q in zip(reductions, split(left), split(right), strict=True):
            joined += node.primitive.combine(b, p, q)
        return tuple(joined)

    def in_scope(*d: Any) -> tuple[Any, ...]:
        with lowering.scope():
            return element(d)

    total = b.reduce(
        list(extents), in_scope, combine, tuple(v for i in identities for v in i), lanes=lanes
    )
    return split(total if isinstance(total, tuple) else (total,))


def store_parts(
    lowering: Lowering, values: tuple[Any, ...], position: Any, chunks: int, rows: int
) -> list[list[Var]]:
    """Writes accumulators to fresh arrays of (chunks, rows); complex ones as two."""
    made: list[list[Var]] = []
    for value in values:
        pair = [value.re, value.im] if isinstance(value, Complex) else [value]
        variables = []
        for part in pair:
            dtype = dtypes.DTYPES[dtypes.SCALAR_NAMES.index(part.dtype)]
            var = Var(array_type((chunks * rows,), dtype))
            lowering.b.store(lowering.output(var), position, part)
            variables.append(var)
        made.append(variables)
    return made
