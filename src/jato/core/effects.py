"""Effects: operations that do something besides computing their results (callbacks, prints).

`Primitive.has_effect` marks them.  They are never removed or reordered among themselves; a
higher-order operation has an effect when a graph it holds has one.
"""

from __future__ import annotations

from jato.base.caches import weakly_cached
from jato.core.graph import Graph, Node


def node_has_effect(node: Node) -> bool:
    """Must the node run even if nobody uses its results?"""
    return node.primitive.has_effect or any(
        graph_has_effect(g) for g in node.primitive.subgraphs(node.params)
    )


@weakly_cached()
def graph_has_effect(graph: Graph) -> bool:
    """Does the graph, or a graph inside it, hold an operation with an effect?"""
    return any(node_has_effect(n) for n in graph.nodes)
