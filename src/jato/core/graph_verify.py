"""Checks that a Graph is well formed.  Run after every pass, in tests and when debugging.

A variable is defined once and before its use; the types of a node's outputs are what its
primitive's type rule gives; params are hashable; subgraphs of params are well formed.
"""

from __future__ import annotations

from typing import Any

from jato.base.errors import InternalError, invariant
from jato.core.graph import Atom, Graph, Literal, Node, Var
from jato.core.graph_print import short_type


def verify(graph: Graph, after: str = "") -> None:
    """Raises InternalError that names the node and what is wrong; `after` is the pass that ran."""
    place = f"graph {graph.name}" + (f" after {after}" if after else "")
    invariant(
        len(graph.constvars) == len(graph.consts),
        f"{place}: {len(graph.constvars)} constant variables for {len(graph.consts)} constants",
    )
    defined: set[Var] = set()
    for var in (*graph.constvars, *graph.inputs):
        _define(var, defined, place)
    for i, node in enumerate(graph.nodes):
        here = f"{place}, node {i} ({node.primitive.name})"
        for atom in node.inputs:
            _check_use(atom, defined, here)
        _check_types(node, here)
        for var in node.outputs:
            _define(var, defined, here)
        for subgraph in node.primitive.subgraphs(node.params):
            verify(subgraph, after)
    for atom in graph.outputs:
        _check_use(atom, defined, f"{place}, outputs")


def _define(var: Var, defined: set[Var], place: str) -> None:
    invariant(type(var) is Var, f"{place}: {var!r} is defined but is no variable")
    invariant(var not in defined, f"{place}: {var!r} is defined twice")
    defined.add(var)


def _check_use(atom: Atom, defined: set[Var], place: str) -> None:
    if type(atom) is Literal:
        invariant(atom.aval.shape == (), f"{place}: literal of type {short_type(atom.aval)}")
    else:
        invariant(atom in defined, f"{place}: {atom!r} is used before it is defined")


def _check_types(node: Node, place: str) -> None:
    try:
        hash(tuple(node.params.items()))
    except TypeError as error:
        raise InternalError(f"{place}: a parameter is not hashable: {error}") from None
    given = node.primitive.type_rule(*[a.aval for a in node.inputs], **node.params)
    expected: list[Any] = list(given) if node.primitive.multiple_results else [given]
    actual = [v.aval for v in node.outputs]
    same = len(expected) == len(actual) and all(
        a.shape == b.shape and a.dtype_code == b.dtype_code
        for a, b in zip(expected, actual, strict=True)
    )
    invariant(
        same,
        f"{place}: results of type {[short_type(t) for t in actual]}, the type rule gives "
        f"{[short_type(t) for t in expected]}",
    )
