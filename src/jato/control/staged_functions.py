"""What the control-flow operators share: tracing the functions they are given.

trace_functions   Python functions -> graphs that take the same operands, captured values first
match_types       compares two lists of types leaf by leaf; weak types give way
convert_outputs   a graph whose outputs have given types
unite_consts      graphs derived from such graphs -> the same graphs, sharing their constants
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jato.base import dtypes
from jato.base.pytree import (
    FlatFunction,
    function_name,
    keystr,
    prefix_mismatch,
    tree_flatten,
    tree_leaves_with_path,
    tree_unflatten,
)
from jato.core.graph import Graph, Var, constants_to_inputs, evaluate
from jato.core.graph_print import short_type
from jato.core.staging import trace_to_graph
from jato.core.types import ArrayType, type_of
from jato.ops.convert import convert_element_type
from jato.transforms.jvp import as_value


class Staged(NamedTuple):
    """graphs: captured values, then arguments -> flat results; one tree for each."""

    graphs: list[Graph]
    captured: list[Any]
    out_trees: list[Any]


def flat_values(what: str, tree: Any) -> tuple[list[Any], Any]:
    """(leaves of an operand as arrays or tracers, structure).  TypeError names the leaf."""
    leaves, treedef = tree_flatten(tree)

    def describe(i: int) -> str:
        return f"{what}{keystr(tree_leaves_with_path(tree)[i][0])}"

    return [
        as_value(x, lambda i=i: describe(i))  # type: ignore[misc]
        for i, x in enumerate(leaves)
    ], treedef


def trace_functions(
    what: str, funs: Sequence[Callable[..., Any]], args_tree: Any, avals: Sequence[Any]
) -> Staged:
    """Traces functions of the same arguments (`args_tree` is the structure of their tuple)."""
    in_tree = tree_flatten((args_tree.unflatten([0] * len(avals)), {}))[1]
    traced: list[Graph] = []
    out_trees: list[Any] = []
    for fun in funs:
        flat = FlatFunction(fun, in_tree)

        def checked(*xs: Any, flat: FlatFunction = flat) -> list[Any]:
            name = function_name(flat.fun)
            return [as_value(x, lambda: f"{what}: a result of {name}") for x in flat(*xs)]

        traced.append(trace_to_graph(checked, avals, function_name(fun), what))
        out_trees.append(flat.out_tree)
    graphs, captured = unite_consts([constants_to_inputs(g) for g in traced])
    return Staged(graphs, captured, out_trees)


def unite_consts(parts: Sequence[tuple[Graph, Sequence[Any]]]) -> tuple[list[Graph], list[Any]]:
    """Makes graphs take the constants of all of them as their first inputs.

    Each part is a graph and the constants that are its first inputs now.  Gives the graphs and
    the list of all constants, each once."""
    order: dict[int, int] = {}
    values: list[Any] = []
    for _, consts in parts:
        for value in consts:
            if id(value) not in order:
                order[id(value)] = len(values)
                values.append(value)
    graphs: list[Graph] = []
    for graph, consts in parts:
        first = [Var(type_of(v)) for v in values]
        for value, var in zip(consts, graph.inputs, strict=False):
            first[order[id(value)]] = var
        rest = graph.inputs[len(consts) :]
        graphs.append(Graph(first + rest, graph.nodes, graph.outputs, name=graph.name))
    return graphs, values


# ---- comparing types


def equal_but_for_weakness(left: Any, right: Any) -> Any:
    """The type of two results of one dtype: weak if both are; None if they differ."""
    if left is right:
        return left
    if left.shape != right.shape or left.dtype != right.dtype:
        return None
    return ArrayType(left.shape, left.dtype_code, False)


def carried(start: Any, result: Any) -> Any:
    """The type of a loop's value that starts as `start` and that the body returns as `result`.

    A weakly typed start (a Python number) gives way to the body's dtype, and is then an array like
    any other; None if the types differ otherwise.
    """
    if start.shape != result.shape or start.dtype == result.dtype or not start.weak_type:
        return equal_but_for_weakness(start, result)
    if dtypes.float0 == result.dtype or dtypes.key == result.dtype:
        return None
    dtype, _ = dtypes.promote((start.dtype, True), (result.dtype, result.weak_type))
    return ArrayType(start.shape, dtypes.code_of(dtype), False)


def match_types(
    what: str,
    left: tuple[str, Any, Sequence[Any]],
    right: tuple[str, Any, Sequence[Any]],
    hint: str = "",
    join: Callable[[Any, Any], Any] = equal_but_for_weakness,
) -> list[Any]:
    """The common types of two lists of results, each (its name, structure, types).

    `join` gives the common type of two, None if there is none.

    TypeError naming every leaf that differs, with both its types."""
    left_name, left_tree, left_avals = left
    right_name, right_tree, right_avals = right
    if left_tree != right_tree:
        mine = tree_unflatten(left_tree, [0] * len(left_avals))
        theirs = tree_unflatten(right_tree, [0] * len(right_avals))
        problem = prefix_mismatch(mine, theirs) or f": {left_tree} against {right_tree}"
        raise TypeError(
            f"{what}: {left_name} and {right_name} must have the same structure; they differ"
            f"{problem}. {hint}".rstrip()
        )
    joined = [join(a, b) for a, b in zip(left_avals, right_avals, strict=True)]
    if any(t is None for t in joined):
        paths = tree_leaves_with_path(tree_unflatten(left_tree, range(len(left_avals))))
        rows = [
            f"  {keystr(path) or 'the value'}: {short_type(a)} in {left_name}, {short_type(b)} in "
            f"{right_name}"
            for (path, _), t, a, b in zip(paths, joined, left_avals, right_avals, strict=True)
            if t is None
        ]
        raise TypeError(
            f"{what}: {left_name} and {right_name} must have equal types, but they differ:\n"
            + "\n".join(rows)
            + (f"\n{hint}" if hint else "")
        )
    return joined


def converted(x: Any, aval: Any) -> Any:
    """A value in a given type of the same shape."""
    known = type_of(x)
    if known is aval:
        return x
    return convert_element_type(x, aval.dtype, weak_type=aval.weak_type)


def convert_outputs(graph: Graph, avals: Sequence[Any]) -> Graph:
    """The graph with its first outputs converted to these types; itself if they have them."""
    if all(a.aval is t for a, t in zip(graph.outputs, avals, strict=False)):
        return graph

    def run(*args: Any) -> list[Any]:
        outs = evaluate(graph, *args)
        return [converted(x, t) for x, t in zip(outs, avals, strict=False)] + outs[len(avals) :]

    return trace_to_graph(run, graph.in_avals, graph.name, "conversion of results")
