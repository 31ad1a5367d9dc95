"""What operations cost before anything is compiled; rough, to choose where a pmap is cut.

Nanoseconds on one core for one element of the mapped axis.  Infinite: nobody knows (a loop that runs
until something is true), or Python runs (a callback).  Start at `graph_ns`.
"""

from __future__ import annotations

import math

from jato.base.caches import weakly_cached
from jato.control.cond import Cond
from jato.control.scan_primitive import Scan
from jato.control.while_loop import While
from jato.core.graph import Graph, Node
from jato.ops.callback import HostCallback
from jato.ops.contract import Product
from jato.ops.opaque import Opaque
from jato.ops.reduction_family import Reduction

# One unit of a primitive's `cost` for each element, and a byte that is written (and soon read); the
# compiler's own estimates are finer (compiler/fusion/cost.py).
UNIT_NS = 0.03
BYTE_NS = 0.015
# A value of at most this cost is recomputed rather than stored.
CHEAP = 2.0
# Multiply-adds of a matrix product or convolution in a nanosecond.
PRODUCT_RATE = 50.0
# An element of what has no estimate of its own (sorting, scatter, solutions).
OTHER_NS = 5.0


def node_ns(node: Node) -> float:
    primitive, params = node.primitive, node.params
    if isinstance(primitive, (HostCallback, While)):
        return math.inf
    graphs = [graph_ns(g) for g in primitive.subgraphs(params)]
    if isinstance(primitive, Scan):
        return params["length"] * graphs[0]
    if isinstance(primitive, Cond):
        return max(graphs)
    if graphs:
        return sum(graphs)
    if isinstance(primitive, Opaque):
        return primitive.library_cost(node)
    elements = sum(v.aval.size for v in node.outputs)
    if isinstance(primitive, Product):
        # m * k, k * n and m * n elements: the root of the product is m * k * n
        lhs, rhs = (max(a.aval.size, 1) for a in node.inputs[:2])
        return math.sqrt(float(lhs) * rhs * max(elements, 1)) / PRODUCT_RATE
    if isinstance(primitive, Reduction):
        return node.inputs[0].aval.size * UNIT_NS + stored_bytes(node) * BYTE_NS
    if primitive.fusable:
        return elements * primitive.cost * UNIT_NS + stored_bytes(node) * BYTE_NS
    return OTHER_NS * (elements + sum(a.aval.size for a in node.inputs))


@weakly_cached()
def graph_ns(graph: Graph) -> float:
    return sum(map(node_ns, graph.nodes))


def stored_bytes(node: Node) -> int:
    return sum(v.aval.nbytes for v in node.outputs)


def is_cheap(node: Node) -> bool:
    """Is it better computed again, or later, than stored?"""
    primitive = node.primitive
    # reads its operands at the index of the result, or only moves elements
    plain = primitive.pointwise or not (primitive.rereads or isinstance(primitive, Reduction))
    return primitive.fusable and plain and primitive.cost <= CHEAP
