"""Dead code elimination: Graph -> Graph without nodes whose results nobody uses.

Nodes with effects stay.  Higher-order nodes lose unused results and operands through
`Primitive.prune`.  Used by the transforms (residuals) and the compiler.
"""

from __future__ import annotations

from collections.abc import Sequence

from jato.core.effects import node_has_effect
from jato.core.graph import Graph, Node, Var


def eliminate_dead_code(
    graph: Graph, used: Sequence[bool] | None = None, keep_inputs: bool = True
) -> tuple[Graph, list[bool]]:
    """(graph computing only the outputs marked `used`, which inputs it needs).

    With `keep_inputs` the new graph takes all inputs, else only the needed ones.  Constants that
    are not needed are dropped in any case.
    """
    if used is None:
        used = [True] * len(graph.outputs)
    outputs = [a for a, u in zip(graph.outputs, used, strict=True) if u]
    live: set[Var] = {a for a in outputs if type(a) is Var}
    nodes: list[Node] = []
    for node in reversed(graph.nodes):
        used_outputs = [v in live for v in node.outputs]
        if not any(used_outputs) and not node_has_effect(node):
            continue
        if not all(used_outputs):
            node = node.primitive.prune(node, used_outputs)
        nodes.append(node)
        live.update(a for a in node.inputs if type(a) is Var)
    nodes.reverse()
    needed = [v in live for v in graph.inputs]
    inputs = graph.inputs if keep_inputs else [
        v for v, n in zip(graph.inputs, needed, strict=True) if n
    ]
    constants = [(v, c) for v, c in zip(graph.constvars, graph.consts, strict=True) if v in live]
    smaller = Graph(
        inputs, nodes, outputs, [v for v, _ in constants], [c for _, c in constants], graph.name
    )
    return smaller, needed
