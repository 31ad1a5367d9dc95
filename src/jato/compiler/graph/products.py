"""Matrix products on arrays where they lie: transposes become strides.

Takes   a graph whose dot_generals are worth a matrix product (graph/contractions.py).
Gives   each as a `Gemm`: sizes and strides of a batched product, as the native routine takes them.
Runs    as the last part of contractions.

    dot_general(transpose(x), y)    ->  gemm(x, y)
    transpose(dot_general(x, y))    ->  gemm(x, y) into the transposed array, where one of the
                                        matrix's axes stays contiguous
    axes that no matrix can hold    ->  up to two batch axes, else a copy (transpose, reshape)

    attention: bqhd, bkhd -> bhqk   one gemm per (b, h), rows h * d apart, no copies
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from jato.core.graph import Atom, Graph, Node, Var
from jato.core.primitive import Primitive
from jato.core.types import array_type
from jato.ops.contract import Dims, dims_of
from jato.ops.shapes import TRANSPOSE

# Batch axes that the native routine counts through.
MOST_BATCHES = 2


@dataclass(frozen=True)
class Layout:
    """A product C[i, j] = sum over l of A[i, l] B[l, j], for each index of the batch axes.

    a, b       strides of A (row, column) and of B; one of each pair is 1
    c_row      stride of C's rows; its columns are contiguous
    batches    (count, strides of A, B and C), outermost first
    swapped    A is the right operand and B the left one: C is the transposed product
    """

    m: int
    n: int
    k: int
    a: tuple[int, int]
    b: tuple[int, int]
    c_row: int
    batches: tuple[tuple[int, int, int, int], ...]
    swapped: bool


class Gemm(Primitive):
    """A form of the compiler, not an operation of its own: it is in no registry.

    Params: layout, and shape: that of the result."""

    def __init__(self) -> None:
        self.name = "gemm"

    def type_rule(self, lhs: Any, rhs: Any, *, layout: Layout, shape: tuple[int, ...]) -> Any:
        return array_type(shape, lhs.dtype)


GEMM = Gemm()


class Products:
    """The rewriting of one graph."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.producer = {v: n for n in graph.nodes for v in n.outputs}
        self.uses = Counter(a for n in graph.nodes for a in n.inputs if type(a) is Var)
        self.uses.update(a for a in graph.outputs if type(a) is Var)
        self.transposed = {
            n.inputs[0]: n
            for n in graph.nodes
            if n.primitive is TRANSPOSE and type(n.inputs[0]) is Var and self.uses[n.inputs[0]] == 1
        }

    def gemm(self, node: Node) -> Node | None:
        """The dot_general as a Gemm that may look through transposes; None if that needs copies."""
        sources = [self.source(a) for a in node.inputs]
        plain = [(a, _row_major(a.aval.shape)) for a in node.inputs]
        after = self.transposed.get(node.outputs[0])
        for target in (after, None) if after is not None else (None,):
            for x, y in (
                (sources[0], sources[1]), (sources[0], plain[1]),
                (plain[0], sources[1]), (plain[0], plain[1]),
            ):  # fmt: skip
                made = _gemm_node(node, x, y, target)
                if made is not None:
                    return made
        return None

    def source(self, atom: Atom) -> tuple[Atom, tuple[int, ...]]:
        """What lies in memory, and the strides in it of the operand's axes."""
        maker = self.producer.get(atom) if type(atom) is Var else None
        if maker is None or maker.primitive is not TRANSPOSE:
            return atom, _row_major(atom.aval.shape)
        inner = maker.inputs[0]
        strides = _row_major(inner.aval.shape)
        return inner, tuple(strides[d] for d in maker.params["permutation"])


def _gemm_node(
    node: Node,
    x: tuple[Atom, tuple[int, ...]],
    y: tuple[Atom, tuple[int, ...]],
    target: Node | None,
) -> Node | None:
    dims = dims_of(node.inputs[0].aval, node.inputs[1].aval, node.params["dimension_numbers"])
    out = node.outputs[0] if target is None else target.outputs[0]
    strides = _row_major(out.aval.shape)
    if target is not None:
        places = target.params["permutation"]
        strides = tuple(strides[places.index(d)] for d in range(len(places)))
    layout = layout_of(dims, x[1], y[1], strides)
    if layout is None:
        return None
    operands = [y[0], x[0]] if layout.swapped else [x[0], y[0]]
    params = {"layout": layout, "shape": out.aval.shape}
    return Node(GEMM, operands, [out], params, node.frame)


def layout_of(
    dims: Dims, x: Sequence[int], y: Sequence[int], out: Sequence[int]
) -> Layout | None:
    """The layout of a contraction from the strides of its operands' and its result's axes."""
    nb, nl = len(dims.batch_shape), len(dims.lhs_free)
    batches = _merged(
        [
            (size, x[i], y[j], c)
            for size, i, j, c in zip(
                dims.batch_shape, dims.lhs_batch, dims.rhs_batch, out[:nb], strict=True
            )
        ]
    )
    rows = _merged(
        [
            (size, x[i], 0, c)
            for size, i, c in zip(dims.lhs_free_shape, dims.lhs_free, out[nb : nb + nl], strict=True)
        ]
    )
    columns = _merged(
        [
            (size, 0, y[j], c)
            for size, j, c in zip(dims.rhs_free_shape, dims.rhs_free, out[nb + nl :], strict=True)
        ]
    )
    inner = _merged(
        [
            (size, x[i], y[j], 0)
            for size, i, j in zip(
                dims.contract_shape, dims.lhs_contract, dims.rhs_contract, strict=True
            )
        ]
    )
    if not rows or not columns or len(inner) != 1:
        return None
    # the longest axis is the matrix's, the others count through matrices
    row, column = max(rows), max(columns)
    rows.remove(row)
    columns.remove(column)
    batches = sorted([*batches, *rows, *columns], key=lambda axis: -axis[3])
    if len(batches) > MOST_BATCHES:
        return None
    (k, a_k, b_k, _), (m, a_m, _, c_m), (n, _, b_n, c_n) = inner[0], row, column
    if 1 not in (a_k, a_m) or 1 not in (b_k, b_n) or 1 not in (c_m, c_n):
        return None
    if c_n == 1:
        return Layout(m, n, k, (a_m, a_k), (b_k, b_n), c_m, tuple(batches), False)
    flipped = tuple((size, b, a, c) for size, a, b, c in batches)
    return Layout(n, m, k, (b_n, b_k), (a_k, a_m), c_n, flipped, True)


Axis = tuple[int, int, int, int]


def _merged(axes: Sequence[Axis]) -> list[Axis]:
    """Axes (size, strides in A, B and C), outermost first, with neighbours joined where one
    follows the other in all three arrays."""
    found: list[Axis] = []
    for axis in sorted((a for a in axes if a[0] != 1), key=lambda a: tuple(-s for s in a[1:])):
        size, *steps = axis
        if found and all(
            outer == size * step for outer, step in zip(found[-1][1:], steps, strict=True)
        ):
            found[-1] = (found[-1][0] * size, *steps)  # type: ignore[assignment]
        else:
            found.append(axis)
    return found


def _row_major(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(prod(shape[d + 1 :]) for d in range(len(shape)))
