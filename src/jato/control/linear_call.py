"""linear_call: a linear function with a transpose of the user's making.

    linear_call_p    operands: what the functions captured, residuals, then linear ones
                     forward, backward: graphs of (captured, residuals, linear operands) -> results,
                     and of (captured, residuals, cotangents) -> cotangents

Transposed, the two change places.  Start reading at `LinearCall`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jato.base.errors import check
from jato.base.pytree import function_name, tree_flatten
from jato.control.staged_functions import flat_values, match_types
from jato.core.graph import Graph, constants_to_inputs, evaluate
from jato.core.primitive import AxisData, Primitive, UndefinedPrimal
from jato.core.staging import trace_to_graph
from jato.core.types import Zero, type_of
from jato.ops.shapes import instantiate
from jato.transforms.batching import batch_graph, with_dim
from jato.transforms.jvp import as_value, zero_of


class LinearCall(Primitive):
    """`linear_call(*of forward, *of backward, *residuals, *linear, forward, backward, counts)`.

    counts: how many operands of the first three kinds there are."""

    multiple_results = True

    def type_rule(self, *avals: Any, forward: Graph, **params: Any) -> list[Any]:
        return forward.out_avals

    def expand(
        self, *operands: Any, forward: Graph, counts: tuple[int, ...], **params: Any
    ) -> list[Any]:
        mine, _, residuals, linear = _split(operands, counts)
        return evaluate(forward, *mine, *residuals, *linear)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[list[Any], list[Any]]:
        outs = self.bind(*primals, **params)
        *fixed, linear = _split(tangents, params["counts"])
        check(
            all(type(t) is Zero for group in fixed for t in group),
            NotImplementedError,
            "linear_call: no derivative is defined for residual_args and captured values",
        )
        if all(type(t) is Zero for t in linear):
            return outs, [zero_of(type_of(x)) for x in outs]
        known = primals[: len(primals) - len(linear)]
        return outs, self.bind(*known, *map(instantiate, linear), **params)

    def transpose(
        self, cotangent: Sequence[Any], *operands: Any, forward: Graph, backward: Graph,
        counts: tuple[int, ...],
    ) -> list[Any]:  # fmt: skip
        mine, others, residuals, linear = _split(operands, counts)
        found = self.bind(
            *others, *mine, *residuals, *map(instantiate, cotangent),
            forward=backward, backward=forward, counts=(counts[1], counts[0], counts[2]),
        )  # fmt: skip
        return [None] * sum(counts) + [
            ct if type(x) is UndefinedPrimal else None for ct, x in zip(found, linear, strict=True)
        ]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], *,
        forward: Graph, backward: Graph, counts: tuple[int, ...],
    ) -> tuple[list[Any], list[int | None]]:  # fmt: skip
        mine, others, residuals, linear = _split(operands, counts)
        my_dims, other_dims, residual_dims, linear_dims = _split(dims, counts)
        ahead = batch_graph(
            forward, axis, [*my_dims, *residual_dims, *[0] * len(linear)],
            [True] * len(forward.outputs),
        )  # fmt: skip
        back = batch_graph(
            backward, axis, [*other_dims, *residual_dims, *[0] * len(forward.outputs)],
            [True] * len(backward.outputs),
        )  # fmt: skip
        outs = self.bind(
            *ahead.consts, *mine, *back.consts, *others, *residuals,
            *[with_dim(axis, x, d, 0) for x, d in zip(linear, linear_dims, strict=True)],
            forward=ahead.graph, backward=back.graph,
            counts=(len(ahead.consts) + len(mine), len(back.consts) + len(others), len(residuals)),
        )  # fmt: skip
        return outs, [0] * len(outs)

    def subgraphs(self, params: dict[str, Any]) -> Sequence[Graph]:
        return params["forward"], params["backward"]


linear_call_p = LinearCall("linear_call")


def _split(operands: Sequence[Any], counts: Sequence[int]) -> list[Any]:
    groups, start = [], 0
    for count in counts:
        groups.append(operands[start : start + count])
        start += count
    return [*groups, operands[start:]]


def linear_call(
    fun: Callable[[Any, Any], Any],
    fun_transpose: Callable[[Any, Any], Any],
    residual_args: Any,
    linear_args: Any,
) -> Any:
    """fun(residual_args, linear_args), whose transpose is `fun_transpose`.

    fun: linear in its second argument; fun_transpose(residual_args, cotangent of the result): the
    cotangent of linear_args, linear in its second argument.  Transposed twice it is `fun` again.
    Raises: TypeError if fun_transpose does not give the types of linear_args; NotImplementedError
    where residual_args are differentiated.

    >>> import jato
    >>> scaled = lambda x: linear_call(lambda r, x: x / r, lambda r, ct: ct / r, 4.0, x)
    >>> float(jato.grad(scaled)(3.0))
    0.25
    """
    what = "linear_call"
    residuals, residual_tree = flat_values(f"{what}: residual_args", residual_args)
    linear, linear_tree = flat_values(f"{what}: linear_args", linear_args)
    residual_avals, linear_avals = ([type_of(x) for x in xs] for xs in (residuals, linear))
    forward, captured, out_tree = _traced(
        fun, residual_tree, linear_tree, residual_avals, linear_avals
    )
    backward, others, found_tree = _traced(
        fun_transpose, residual_tree, out_tree, residual_avals, forward.out_avals
    )
    match_types(
        what,
        ("linear_args", linear_tree, linear_avals),
        (f"the result of {function_name(fun_transpose)}", found_tree, backward.out_avals),
    )
    outs = linear_call_p.bind(
        *captured, *others, *residuals, *linear,
        forward=forward, backward=backward, counts=(len(captured), len(others), len(residuals)),
    )  # fmt: skip
    return out_tree.unflatten(outs)


def _traced(
    fun: Callable[[Any, Any], Any], residual_tree: Any, tree: Any, residual_avals: Any, avals: Any
) -> tuple[Graph, Sequence[Any], Any]:
    """(graph of captured values, residuals and operands; what it captured; its result's tree)."""
    trees: list[Any] = []
    count = len(residual_avals)

    def flat(*leaves: Any) -> list[Any]:
        out = fun(residual_tree.unflatten(leaves[:count]), tree.unflatten(leaves[count:]))
        outs, out_tree = tree_flatten(out)
        trees.append(out_tree)
        return [as_value(x, lambda: f"linear_call: a result of {function_name(fun)}") for x in outs]

    traced = trace_to_graph(flat, [*residual_avals, *avals], function_name(fun), "linear_call")
    graph, captured = constants_to_inputs(traced)
    return graph, captured, trees[-1]
