"""closure_convert: what a function captured, as arguments of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jato.base.errors import check
from jato.base.pytree import function_name, tree_flatten
from jato.core.graph import Graph, evaluate
from jato.core.staging import trace_to_graph
from jato.core.trace import Tracer
from jato.core.types import tangent_type, type_of


def closure_convert(
    fun: Callable[..., Any], *example_args: Any
) -> tuple[Callable[..., Any], list[Any]]:
    """(function, values): `fun` with the traced floating-point values it captured as arguments.

    function(*args, *values) computes fun(*args), so a custom derivative of a function that calls
    `fun` can treat what it captured as inputs.

    >>> converted, captured = closure_convert(lambda x: x, 1.0)
    >>> captured
    []
    """
    leaves, in_tree = tree_flatten(example_args)
    out_trees: list[Any] = []

    def flat(*values: Any) -> list[Any]:
        outs, tree = tree_flatten(fun(*in_tree.unflatten(values)))
        out_trees.append(tree)
        return outs

    graph = trace_to_graph(
        flat, [type_of(x) for x in leaves], function_name(fun), "closure_convert"
    )
    pairs = list(zip(graph.constvars, graph.consts, strict=True))
    hoisted = [
        (v, c)
        for v, c in pairs
        if isinstance(c, Tracer) and tangent_type(v.aval).dtype == v.aval.dtype
    ]
    taken = {v for v, _ in hoisted}
    kept = [(v, c) for v, c in pairs if v not in taken]
    inner = Graph(
        graph.inputs + [v for v, _ in hoisted],
        graph.nodes,
        graph.outputs,
        [v for v, _ in kept],
        [c for _, c in kept],
        graph.name,
    )

    def converted(*args_and_values: Any) -> Any:
        count = len(args_and_values) - len(hoisted)
        given, tree = tree_flatten(args_and_values[:count])
        check(
            tree == in_tree,
            TypeError,
            f"closure_convert of {function_name(fun)}: expected arguments of structure {in_tree}, "
            f"got {tree}",
        )
        return out_trees[-1].unflatten(evaluate(inner, *given, *args_and_values[count:]))

    return converted, [c for _, c in hoisted]
