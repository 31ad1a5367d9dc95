"""What things cost, in units of one vectorised addition per element; rough on purpose."""

from __future__ import annotations

from math import prod

from jato.core.graph import Node
from jato.ops.reduction_family import Reduction

# A value costing at most this is recomputed rather than stored and loaded again (a load and a
# store of one element are worth about four additions even in the first-level cache).
CHEAP = 2.0

# A kernel recomputes values of at most this cost together: of a long chain that many kernels use,
# parts are stored.
MOST_REPEATED = 12.0

# The work of one kernel.  Beyond it fusing saves no memory traffic worth mentioning, while
# compile time grows; and equal parts of an unrolled loop compile once only if they are separate.
KERNEL_COST = 260.0
MOST_NODES = 400  # operations that cost nothing per element, such as those on scalars, count too

# Arrays of at most this many elements take less time than the launch of a kernel: operations on
# them share a kernel even if they have nothing in common, up to so many results.
TINY = 256
MOST_TINY = 32

# Reductions of at most this many elements are unrolled into the expression that uses them.
UNROLLED = 8

# So many reductions of a row may wait for one another in a kernel.  Each passes over the row once
# more and computes again what the ones before it computed element by element.
MOST_LEVELS = 6

# A row of this many bytes stays in the second-level cache between two passes over it.
ROW_BYTES = 512 * 1024

# Fewer rows than this, over many elements: all cores share the rows' elements.
FEW_ROWS = 64
SPLIT_ELEMENTS = 1 << 15

# Nanoseconds of one unit per element on one core (16 lanes, a few units per cycle), and of one
# byte from memory.
UNIT_NS = 0.03
BYTE_NS = 0.06


def reduced_size(node: Node) -> int:
    """How many elements go into one result of a reduction."""
    shape = node.inputs[0].aval.shape
    return prod(shape[a] for a in node.primitive.axes(node.params))


def is_big_reduction(node: Node) -> bool:
    return isinstance(node.primitive, Reduction) and reduced_size(node) > UNROLLED


def is_structural(node: Node) -> bool:
    """Does it only move elements, so that it costs index arithmetic and nothing else?"""
    p = node.primitive
    return p.fusable and not p.pointwise and not p.rereads and not (
        isinstance(p, Reduction) or p.cost > CHEAP
    )


def element_cost(node: Node) -> float:
    """Cost of one element of the result."""
    if isinstance(node.primitive, Reduction):
        return 1.0 * reduced_size(node)
    return node.primitive.cost
