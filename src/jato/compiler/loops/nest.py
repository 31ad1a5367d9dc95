"""LoopNest, what scheduling gives, and the small pieces that all schedules use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from jato.compiler.fusion import cost
from jato.compiler.loops.lower import Index
from jato.compiler.loops.walk import expressions, extent_of, mentions, statements
from jato.core.graph import Node, Var
from jato.loopir.builder import Builder
from jato.loopir.grammar import Expr, For, Kernel, Reduce


# A part of a row of which less than one in so many is a border.
LEAST_PART = 8


@dataclass(eq=False)
class LoopNest:
    """A kernel and what it runs on.

    arguments      arrays of the kernel's buffers, in the kernel's order (local ones left out)
    grid           iterations of the outermost loop; a thread takes multiples of `grain`
    step_ns        estimate for one of them on one core
    in_place       an output may share the memory of an input of its type
    row_inputs     matrices that the grid walks row by row: (rows that a grid step reads, grid steps
                   that read a row); one of the two is 1, and no step reads anything else
    unbounded      it holds a loop of which nobody knows how often it repeats
    written_out    it has a statement for each element of its arrays
    """

    kernel: Kernel
    arguments: list[Var]
    outputs: list[Var]
    grid: int
    grain: int
    step_ns: float
    bytes: int
    in_place: bool = False
    row_inputs: dict[Var, tuple[int, int]] = field(default_factory=dict)
    unbounded: bool = False
    written_out: bool = False


# ---- indices and loops


def with_ones(b: Builder, shape: tuple[int, ...], index: Sequence[Any]) -> Index:
    """An index for `shape` from one over its axes longer than 1."""
    rest = iter(index)
    return tuple(b.index(0) if n == 1 else next(rest) for n in shape)


def chunk_bounds(b: Builder, g: Any, chunks: int, length: int) -> tuple[Any, Any, Any]:
    """(row, start, stop) of grid step g when each row is cut into chunks."""
    if chunks == 1:
        return g, b.index(0), b.index(length)
    size = ceil(length / chunks / 64) * 64
    start = b.mul(b.rem(g, b.index(chunks)), b.index(size))
    stop = b.limited(b.add(start, b.index(size)), b.index(length))
    return b.div(g, b.index(chunks)), start, stop


def whole_vectors(length: int, lanes: int) -> Iterator[tuple[int, int]]:
    """(first, lanes) of vectors, narrower ones last, that make up a row without masks."""
    first = 0
    while first < length:
        while lanes > length - first:
            lanes //= 2
        yield first, lanes
        first += lanes


class nested:
    """`with nested(b, extents, lanes) as indices`: one loop per extent, the last with lanes."""

    def __init__(self, b: Builder, extents: Sequence[int], lanes: int):
        self.b = b
        self.extents = list(extents)
        self.lanes = lanes
        self.open: list[Any] = []

    def __enter__(self) -> list[Any]:
        indices = []
        for depth, extent in enumerate(self.extents):
            last = depth == len(self.extents) - 1
            manager = self.b.for_("d", 0, extent, self.lanes if last else 1)
            indices.append(manager.__enter__())
            self.open.append(manager)
        return indices

    def __exit__(self, *exc: Any) -> None:
        for manager in reversed(self.open):
            manager.__exit__(*exc)


# ---- questions about kernels


def divides(kernel: Kernel, *of: Expr) -> bool:
    """Did a division of a vector loop's variable (or of one of these) survive simplification?"""
    variables: set[Expr] = set(of)
    if not of:
        variables = {
            s.var for s in statements(kernel.body) if isinstance(s, For | Reduce) and s.lanes > 1
        }
    return any(
        e.op in ("div", "rem") and e.dtype == "i64" and mentions((e.args[0],), *variables)
        for e in expressions(kernel)
    )


def grid_variables(kernel: Kernel) -> list[Expr]:
    """The variables of the outermost loops."""
    return [s.var for s in kernel.body if isinstance(s, For)]


def long_loops(kernel: Kernel, length: int) -> list[Expr]:
    """The variables of the vector loops, without those over a small part of `length`: the borders
    of a loop cut where its guards change."""
    loops = [s for s in statements(kernel.body) if isinstance(s, For) and s.lanes > 1]
    extents = {s.var: extent_of(s.start, s.stop) for s in loops}
    return [v for v, n in extents.items() if n is None or n * LEAST_PART >= length]


def kernel_name(kind: str, nodes: list[Node]) -> str:
    """For profiles and listings: the kind and the operations, shortened."""
    names: list[str] = []
    for node in nodes:
        if not cost.is_structural(node) and node.primitive.name not in names:
            names.append(node.primitive.name)
    return "_".join([kind, *names[:6]]) + (f"_and_{len(names) - 6}" if len(names) > 6 else "")
