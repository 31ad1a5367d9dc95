"""Literals as operands of steps that need memory.

Takes   a simplified graph.
Gives   the same, with literals that are operands of operations outside kernels turned into the
        0-d arrays they stand for.
Runs    before fusion.  Kernels write literals into their code.
"""

from __future__ import annotations

import numpy as np

from jato import _native
from jato.core.graph import Atom, Graph, Literal, Node, Var
from jato.ops.cumulative import Cumulative
from jato.ops.contract import DotGeneral


def materialize_literals(graph: Graph) -> Graph:
    if not any(_needs(n) for n in graph.nodes):
        return graph
    nodes: list[Node] = []
    constvars, consts = list(graph.constvars), list(graph.consts)
    for node in graph.nodes:
        if not _needs(node):
            nodes.append(node)
            continue
        inputs: list[Atom] = []
        for a in node.inputs:
            if isinstance(a, Literal):
                var = Var(a.aval)
                constvars.append(var)
                consts.append(_native.from_numpy(np.asarray(a.value, a.aval.dtype)))
                inputs.append(var)
            else:
                inputs.append(a)
        nodes.append(Node(node.primitive, inputs, node.outputs, node.params, node.frame))
    return Graph(graph.inputs, nodes, graph.outputs, constvars, consts, graph.name)


def _needs(node: Node) -> bool:
    alone = not node.primitive.fusable or isinstance(node.primitive, (Cumulative, DotGeneral))
    return alone and any(isinstance(a, Literal) for a in node.inputs)
