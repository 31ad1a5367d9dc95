"""Simplification and common-subexpression elimination in one walk.

Takes   a graph without composed primitives.
Gives   the same function with fewer nodes: each primitive's `simplify` peepholes applied, equal
        operations computed once, unused ones gone.
Runs    after inline, because most of what it finds comes from composing library functions.

    x + 0            ->  x                 (the primitive's own rule)
    a = sin x; b = sin x  ->  a = b = sin x
"""

from __future__ import annotations

from typing import Any

from jato.core.effects import node_has_effect
from jato.core.graph import Atom, Graph, Literal, Node, Var
from jato.core.primitive import Primitive


class Rewriter:
    """What a `simplify` rule may use: emit nodes, and ask what defines an atom."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._known: dict[Any, list[Var]] = {}
        self._producers: dict[Var, Node] = {}

    def producer(self, atom: Atom) -> Node | None:
        """The node that computes an atom, or None for inputs, constants and literals."""
        return self._producers.get(atom) if type(atom) is Var else None

    def bind(self, primitive: Primitive, *atoms: Atom, **params: Any) -> list[Atom]:
        """Emits (or finds) an operation; the results as atoms."""
        out = primitive.type_rule(*[a.aval for a in atoms], **params)
        avals = out if primitive.multiple_results else [out]
        return self.emit(Node(primitive, atoms, [Var(t) for t in avals], params))

    def emit(self, node: Node) -> list[Atom]:
        replaced = node.primitive.simplify(node, self)
        if replaced is not None:
            return list(replaced)
        key = None if node_has_effect(node) else _key(node)
        if key is not None:
            known = self._known.get(key)
            if known is not None:
                return list(known)
            self._known[key] = node.outputs
        self.nodes.append(node)
        for var in node.outputs:
            self._producers[var] = node
        return list(node.outputs)


def simplify(graph: Graph) -> Graph:
    rewriter = Rewriter()
    env: dict[Var, Atom] = {}
    for node in graph.nodes:
        inputs = [a if type(a) is Literal else env.get(a, a) for a in node.inputs]  # type: ignore[arg-type]
        outs = rewriter.emit(Node(node.primitive, inputs, node.outputs, node.params, node.frame))
        for old, new in zip(node.outputs, outs, strict=True):
            if old is not new:
                env[old] = new
    outputs = [a if type(a) is Literal else env.get(a, a) for a in graph.outputs]  # type: ignore[arg-type]
    nodes = live_nodes(rewriter.nodes, outputs)
    return Graph(graph.inputs, nodes, outputs, graph.constvars, graph.consts, graph.name)


def live_nodes(nodes: list[Node], outputs: list[Atom]) -> list[Node]:
    """The nodes that outputs or effects need, in order."""
    needed = {a for a in outputs if type(a) is Var}
    kept: list[Node] = []
    for node in reversed(nodes):
        used = [v in needed for v in node.outputs]
        if node_has_effect(node) or any(used):
            if not all(used) and not node.primitive.subgraphs(node.params):
                node = node.primitive.prune(node, used)  # eigenvalues without eigenvectors
            kept.append(node)
            needed.update(a for a in node.inputs if type(a) is Var)
    kept.reverse()
    return kept


def _key(node: Node) -> Any:
    """Equal keys: equal operations.  None if a param has no hash."""
    atoms = tuple(
        a if type(a) is Var else (a.aval, type(a.value), repr(a.value))  # type: ignore[union-attr]
        for a in node.inputs
    )
    key = (node.primitive, atoms, tuple(node.params.items()))
    try:
        hash(key)
    except TypeError:
        return None
    return key
