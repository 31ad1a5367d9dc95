"""Reads at places that come from memory (gathers): asked for some iterations ahead.

    for i: out[i] = table[index[i]]    ->    for i: prefetch table[index[i + 128]]
                                                    out[i] = table[index[i]]

The machine cannot guess these places, and a vector of them waits for as many cache misses.  A
million elements of 64 MB, one thread: 4.8 ms without, 2.2 with.  Arrays that stay in the cache are
left alone, and so are reads that stay within a short row of a large one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jato.compiler.loops.lower import Lowering
from jato.compiler.loops.walk import loads, mentions
from jato.loopir.grammar import ITEMSIZE, Expr, Stmt

# Arrays of fewer bytes are expected in the second-level cache.
CACHED_BYTES = 1 << 20
# The same where each lane asks for a line of its own, which costs as much as its read.  Random reads
# without and with this, ns each, tables of 1 to 64 MB: 1 0.42 0.57, 4 0.60 0.68, 8 0.65 0.72,
# 16 1.9 1.1, 32 4.1 2.1, 64 5.1 3.4 (caches of 1 MB and 32 MB).
CACHED_LANES_BYTES = 12 << 20
# How far ahead: elements where each lane reads its own place, bytes where it is a row for all.
ELEMENTS_AHEAD = 128
BYTES_AHEAD = 4096
MOST = 4  # such reads in one loop body


def prefetch_elements(lowering: Lowering, body: Sequence[Stmt], lane: Expr, stop: Any) -> None:
    """Writes prefetches of what the lanes read at places of their own; `body` comes after."""
    b = lowering.b
    ahead = b.add(lane, b.index(ELEMENTS_AHEAD))
    inside = b.lt(ahead, b._bound(stop))
    for load in _scattered(lowering, body, lane, CACHED_LANES_BYTES):
        if _span(lowering, load, lane) < CACHED_LANES_BYTES:
            continue
        place = _moved(lowering, load.args[0], lane, ahead, inside)
        b.prefetch(load.attr, place)


def prefetch_rows(
    lowering: Lowering, body: Sequence[Stmt], lane: Expr, row: Expr, rows: int, row_bytes: int
) -> None:
    """The same for places that depend on the row alone."""
    b = lowering.b
    count = max(1, min(ELEMENTS_AHEAD, BYTES_AHEAD // max(1, row_bytes)))
    ahead = b.limited(b.add(row, b.index(count)), b.index(max(0, rows - 1)))
    lanes_own = {*_scattered(lowering, body, lane, CACHED_BYTES)}
    for load in _scattered(lowering, body, row, CACHED_BYTES):
        if load not in lanes_own:
            b.prefetch(load.attr, _moved(lowering, load.args[0], row, ahead, None))


def _scattered(lowering: Lowering, body: Sequence[Stmt], variable: Expr, size: int) -> list[Expr]:
    """Loads from arrays of `size` bytes at places that were loaded from a place with `variable`."""
    large = {buffer for var, buffer in lowering.buffers.items() if var.aval.nbytes >= size}
    found = [
        e for e in loads(body)
        if e.attr in large and mentions(loads_below(e.args[0]), variable)
    ]  # fmt: skip
    return found if len(found) <= MOST else []


def _span(lowering: Lowering, load: Expr, lane: Expr) -> int:
    """Bytes among which the lanes' places lie while other variables stay: table[row, index[i]]."""
    terms = lowering.b.linear(load.args[0]).terms
    data = {m: c for m, c in terms.items() if any(loads_below(x) for x in m)}
    strides = [abs(c) for m, c in terms.items() if m not in data]
    own = mentions([x for m in terms if m not in data for x in m], lane)
    if own or not strides or min(strides) <= max(map(abs, data.values()), default=0):
        return max(v.aval.nbytes for v, buffer in lowering.buffers.items() if buffer is load.attr)
    return min(strides) * ITEMSIZE[load.attr.dtype]


def loads_below(root: Expr) -> list[Expr]:
    found, stack, seen = [], [root], set()
    while stack:
        e = stack.pop()
        if e in seen:
            continue
        seen.add(e)
        if e.op == "load":
            found.append(e)
        stack += e.args
    return found


def _moved(
    lowering: Lowering, root: Expr, variable: Expr, ahead: Expr, inside: Expr | None
) -> Expr:
    """The expression with `ahead` for the variable; its loads only where `inside`."""
    b = lowering.b
    done: dict[Expr, Any] = {variable: ahead}
    stack = [root]
    while stack:
        e = stack[-1]
        if e in done:
            stack.pop()
            continue
        missing = [a for a in e.args if a not in done]
        if missing:
            stack += missing
            continue
        stack.pop()
        args = tuple(done[a] for a in e.args)
        if args == e.args:
            done[e] = e
        elif e.op == "load" and inside is not None:
            mask = b.and_(args[1], inside) if len(args) > 1 else inside
            other = args[2] if len(args) > 1 else b.const(0, e.dtype)
            done[e] = b._node("load", (args[0], mask, other), e.dtype, e.attr)
        else:
            done[e] = b._node(e.op, args, e.dtype, e.attr)
    result: Expr = done[root]
    return result
