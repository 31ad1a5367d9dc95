"""Inlining: calls and composed primitives become the operations they stand for.

Takes   any graph.
Gives   a graph in which no node has an `expand` rule.
Runs    first, because every later pass wants to see through calls.

    y = call[graph=g] x          ->   the nodes of g with x for its input
    y = composed x               ->   the nodes of composed.expand(x)
"""

from __future__ import annotations

from typing import Any

from jato.core.graph import Atom, Graph, Literal, Node, Var
from jato.core.primitive import Primitive
from jato.core.staging import trace_to_graph
from jato.core.trace import set_trace


def inline(graph: Graph) -> Graph:
    if not any(node.primitive.expand is not None for node in graph.nodes):
        return graph
    splicer = _Splicer()
    env: dict[Var, Atom] = {v: v for v in graph.inputs}
    env.update((v, v) for v in graph.constvars)
    splicer.constvars += graph.constvars
    splicer.consts += graph.consts
    splicer.splice(graph, env)
    outputs = [_read(env, a) for a in graph.outputs]
    return Graph(
        graph.inputs, splicer.nodes, outputs, splicer.constvars, splicer.consts, graph.name
    )


class _Splicer:
    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.constvars: list[Var] = []
        self.consts: list[Any] = []
        # (primitive, operand types, params) -> graph: an op used often is traced once
        self.expansions: dict[Any, Graph] = {}

    def splice(self, graph: Graph, env: dict[Var, Atom]) -> None:
        """Appends the nodes of `graph`, whose inputs `env` gives; fills env with its values."""
        for node in graph.nodes:
            atoms = [_read(env, a) for a in node.inputs]
            if node.primitive.expand is None:
                outs = [Var(v.aval) for v in node.outputs]
                self.nodes.append(Node(node.primitive, atoms, outs, node.params, node.frame))
                env.update(zip(node.outputs, outs, strict=True))
                continue
            body = self.expansion(node.primitive, atoms, node.params)
            inner: dict[Var, Atom] = dict(zip(body.inputs, atoms, strict=True))
            for var, value in zip(body.constvars, body.consts, strict=True):
                inner[var] = self.constant(var, value)
            start = len(self.nodes)
            self.splice(body, inner)
            for new in self.nodes[start:]:  # messages and profiles name the user's line
                new.frame = node.frame
            for outer, a in zip(node.outputs, body.outputs, strict=True):
                env[outer] = _read(inner, a)

    def constant(self, var: Var, value: Any) -> Var:
        for known, v in zip(self.constvars, self.consts, strict=True):
            if v is value:
                return known
        self.constvars.append(var)
        self.consts.append(value)
        return var

    def expansion(self, primitive: Primitive, atoms: list[Atom], params: dict[str, Any]) -> Graph:
        held = primitive.inlined(params)
        if held is not None:
            return held
        try:
            key = (primitive, tuple(a.aval for a in atoms), tuple(params.items()))
            known = self.expansions.get(key)
        except TypeError:  # a param without a hash
            key, known = None, None
        if known is not None:
            return known
        expand = primitive.expand

        def body(*operands: Any) -> list[Any]:
            assert expand is not None
            out = expand(*operands, **params)
            return list(out) if primitive.multiple_results else [out]

        with set_trace(None):
            graph = trace_to_graph(body, [a.aval for a in atoms], primitive.name)
        if key is not None:
            self.expansions[key] = graph
        return graph


def _read(env: dict[Var, Atom], atom: Atom) -> Atom:
    return atom if type(atom) is Literal else env[atom]  # type: ignore[index]
