"""Memory planning: where temporaries live, and which outputs take over donated inputs.

Takes   the ordered steps of a program with what each reads and writes.
Gives   an offset in one arena for every temporary, and take-over pairs.
Runs    before plan.py builds the executable.

Temporaries whose lifetimes do not overlap share memory (first fit over the sorted holes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jato.core.graph import Var

ALIGNMENT = 64
PERIODS = 256


@dataclass(frozen=True)
class Lifetime:
    """A temporary is written first in step `born` and read last in step `dies`."""

    var: Var
    size: int
    born: int
    dies: int


def assign_offsets(lifetimes: Sequence[Lifetime]) -> tuple[dict[Var, int], int]:
    """(offset of each temporary, size of the arena)."""
    offsets: dict[Var, int] = {}
    # (offset, end, lifetime) of those placed, by the periods of the program they live in; most
    # live briefly, so that each is compared with few others
    period = 1 + max((t.dies for t in lifetimes), default=0) // PERIODS
    placed: list[list[tuple[int, int, Lifetime]]] = [[] for _ in range(PERIODS)]
    total = 0
    # large ones first: small ones fit into the holes
    for life in sorted(lifetimes, key=lambda t: (-t.size, t.born)):
        size = -(-max(life.size, 1) // ALIGNMENT) * ALIGNMENT
        lived = placed[life.born // period : life.dies // period + 1]
        taken = sorted(
            {
                (start, end)
                for others in lived
                for start, end, other in others
                if other.born <= life.dies and life.born <= other.dies
            }
        )
        offset = 0
        for start, end in taken:
            if offset + size <= start:
                break
            offset = max(offset, end)
        offsets[life.var] = offset
        for others in lived:
            others.append((offset, offset + size, life))
        total = max(total, offset + size)
    return offsets, total


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
