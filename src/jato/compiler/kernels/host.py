"""Opaque primitives: a native routine where there is one, else a call back into Python.

The callback gets NumPy views of the operands and returns NumPy arrays (ops/opaque.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jato.compiler.kernels import blas
from jato.compiler.plan import PlanContext
from jato.compiler.steps import Host, Library
from jato.core.graph import Node


def plan_opaque(context: PlanContext, node: Node) -> None:
    native = node.primitive.library_call(node)
    operands = [context.in_memory(a) for a in node.inputs]
    if native is not None:
        name, params = native
        if name in blas.LAPACK_USERS:
            blas.load_lapack()
        work = node.primitive.library_cost(node)
        context.steps.append(Library(name, operands, list(node.outputs), list(params), work))
        return
    context.steps.append(Host(_Call(node), operands, list(node.outputs)))


class _Call:
    """primitive.host(*arrays, **params) -> list of arrays."""

    __slots__ = ("params", "primitive")

    def __init__(self, node: Node):
        self.primitive = node.primitive
        self.params = node.params

    def __call__(self, *arrays: Any) -> Sequence[Any]:
        return self.primitive.host(*arrays, **self.params)

    def __repr__(self) -> str:
        return self.primitive.name
