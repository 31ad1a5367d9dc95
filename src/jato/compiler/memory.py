"""Memory planning: where temporaries live, and which outputs take over donated inputs.

Takes   the ordered steps of a program with what each reads and writes.
Gives   an offset in one arena for every temporary, and take-over pairs.
Runs    before assembly.py builds the executable.

Temporaries whose lifetimes do not overlap share memory (first fit over the sorted holes).
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jato.compiler.steps import (
    Choose,
    Repeat,
    Slice,
    Step,
    Swap,
    View,
    all_steps,
    blocks_of,
    reads_of,
    writes_of,
)
from jato.core.graph import Var

ALIGNMENT = 64

# Up to so many temporaries are each compared with all others.
MOST_COMPARED = 500


@dataclass(frozen=True)
class Lifetime:
    """A temporary is written first in step `born` and read last in step `dies`."""

    var: Var
    size: int
    born: int
    dies: int


class Lifetimes:
    """When temporaries are alive, by position of the steps in program order.

    A value that a loop uses but does not make lives until the loop ends; the two sides of a swap
    live as one, through the whole loop."""

    def __init__(self, root: Callable[[Var], Var], placed: dict[Var, int]):
        self.root = root
        self.placed = placed
        self.clock = 0
        self.born: dict[Var, int] = {}
        self.dies: dict[Var, int] = {}
        self.swaps: list[tuple[Var, Var]] = []

    def of(self, steps: Sequence[Step]) -> list[Lifetime]:
        self.walk(steps)
        for _ in range(2):  # a carry of nested loops is swapped in each of them
            for pair in self.swaps:
                temporary = [v for v in pair if v in self.born]
                if len(temporary) < len(pair):
                    # swapped with a result, whose memory may end up here until all is done
                    for v in temporary:
                        self.born[v], self.dies[v] = 0, self.clock
                    continue
                first = min(self.born[v] for v in temporary)
                last = max(self.dies[v] for v in temporary)
                for v in temporary:
                    self.born[v], self.dies[v] = first, last
        return [Lifetime(v, v.aval.nbytes, b, self.dies[v]) for v, b in self.born.items()]

    def walk(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self.clock += 1
            if isinstance(step, View):
                continue
            for v in (*reads_of(step), *writes_of(step)):
                self.touch(v)
            if isinstance(step, Swap):
                self.swaps.append((self.root(step.first), self.root(step.second)))
            start = self.clock
            for block in blocks_of(step):
                self.walk(block)
            if isinstance(step, (Repeat, Choose)):
                self.clock += 1
            if isinstance(step, Repeat):
                inside = {
                    self.root(v)
                    for s in all_steps(step.body)
                    if not isinstance(s, View)
                    for v in (*reads_of(s), *writes_of(s))
                }
                swapped = {v for pair in self.swaps for v in pair}
                # what slices point into is read and written through them, all the time
                whole = {self.root(s.base) for s in all_steps(step.body) if isinstance(s, Slice)}
                for v in inside:
                    if v in self.born and (self.born[v] < start or v in swapped | whole):
                        self.born[v] = min(self.born[v], start)
                        self.dies[v] = self.clock
                if step.predicate is not None:
                    self.touch(step.predicate)

    def touch(self, var: Var) -> None:
        root = self.root(var)
        if root not in self.placed:
            self.born.setdefault(root, self.clock)
            self.dies[root] = self.clock


def assign_offsets(lifetimes: Sequence[Lifetime]) -> tuple[dict[Var, int], int]:
    """(offset of each temporary, size of the arena)."""
    if len(lifetimes) > MOST_COMPARED:
        return _in_order_of_birth(lifetimes)
    offsets: dict[Var, int] = {}
    placed: list[tuple[int, int, Lifetime]] = []  # (offset, end, lifetime)
    total = 0
    # large ones first: small ones fit into the holes
    for life in sorted(lifetimes, key=lambda t: (-t.size, t.born)):
        size = _aligned(life.size)
        taken = sorted(
            (start, end)
            for start, end, other in placed
            if other.born <= life.dies and life.born <= other.dies
        )
        offset = 0
        for start, end in taken:
            if offset + size <= start:
                break
            offset = max(offset, end)
        offsets[life.var] = offset
        placed.append((offset, offset + size, life))
        total = max(total, offset + size)
    return offsets, total


def _in_order_of_birth(lifetimes: Sequence[Lifetime]) -> tuple[dict[Var, int], int]:
    """The same for many temporaries: each takes the smallest hole that the dead before it left."""
    offsets: dict[Var, int] = {}
    living: list[tuple[int, int, int]] = []  # heap of (dies, offset, size)
    holes: list[tuple[int, int]] = []  # (offset, end), in order, none next to another
    total = 0
    for life in sorted(lifetimes, key=lambda t: t.born):
        while living and living[0][0] < life.born:
            _, offset, size = heapq.heappop(living)
            _open(holes, offset, offset + size)
        size = _aligned(life.size)
        fitting = [(end - start, start, end) for start, end in holes if end - start >= size]
        if fitting:
            _, offset, end = min(fitting)
            i = bisect.bisect_left(holes, (offset, end))
            holes[i : i + 1] = [(offset + size, end)] if offset + size < end else []
        else:
            # a hole at the end of the arena grows with it
            offset = holes.pop()[0] if holes and holes[-1][1] == total else total
            total = offset + size
        offsets[life.var] = offset
        heapq.heappush(living, (life.dies, offset, size))
    return offsets, total


def _open(holes: list[tuple[int, int]], start: int, end: int) -> None:
    """Adds a hole, made one with its neighbours."""
    i = bisect.bisect_left(holes, (start, end))
    if i < len(holes) and holes[i][0] == end:
        end = holes.pop(i)[1]
    if i and holes[i - 1][1] == start:
        start = holes.pop(i - 1)[0]
        i -= 1
    holes.insert(i, (start, end))


def _aligned(size: int) -> int:
    return -(-max(size, 1) // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True)
class OutputWrite:
    """An output array: the step that writes it, and whether that step may write in place of an
    input that it reads at the same index only."""

    var: Var
    born: int
    in_place: bool


def assign_donations(
    donated: Sequence[Var],
    last_read: dict[Var, int],
    outputs: Sequence[OutputWrite],
    kept: set[Var],
) -> dict[Var, Var]:
    """output -> donated input whose memory it takes over.

    Legal when the input is read for the last time before the output is first written, or in the
    same step if that step works in place.  `kept` inputs are outputs themselves."""
    free = [v for v in donated if v not in kept]
    pairs: dict[Var, Var] = {}
    for out in outputs:
        for v in free:
            same = v.aval.shape == out.var.aval.shape and v.aval.dtype_code == out.var.aval.dtype_code
            if not same and v.aval.nbytes != out.var.aval.nbytes:
                continue
            last = last_read.get(v, -1)
            if last < out.born or (last == out.born and out.in_place and same):
                pairs[out.var] = v
                free.remove(v)
                break
    return pairs
