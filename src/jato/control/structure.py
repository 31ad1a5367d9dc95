"""The structure of values in a graph: which are computed alike, and how long that takes.

Loops over many scalars compute and use what is alike together, as lanes of vectors
(compiler/llvm/superwords.py); the graphs of scans are arranged for it.
"""

from __future__ import annotations

from typing import Any

from jato.core.graph import Atom, Graph, Literal

# So many scalars are worth arranging: those that each step keeps for the backward pass are kept as
# one array.
MANY_SCALARS = 8


def kinds(graph: Graph, literals: bool) -> dict[Atom, int]:
    """Equal numbers for values of one structure: the same operations on inputs and, with
    `literals`, the same constants."""
    numbers: dict[Any, int] = {}
    kind: dict[Atom, int] = {}

    def below(atom: Atom) -> Any:
        if type(atom) is Literal:
            return repr(atom.value) if literals else None
        return kind.get(atom)

    for var in graph.inputs:
        kind[var] = numbers.setdefault(var.aval, len(numbers))
    for node in graph.nodes:
        operands = tuple(map(below, node.inputs))
        for position, var in enumerate(node.outputs):
            key = (node.primitive, position, operands)
            kind[var] = numbers.setdefault(key, len(numbers))
    return kind


def heights(graph: Graph) -> dict[Atom, int]:
    """How many operations lie between inputs and a value, on the longest way."""
    height: dict[Atom, int] = {}
    for node in graph.nodes:
        below = max((height.get(a, 0) for a in node.inputs), default=0)
        for var in node.outputs:
            height[var] = below + 1
    return height
