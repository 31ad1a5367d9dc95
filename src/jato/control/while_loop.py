"""while_loop: repeats a graph until a condition fails.

    while_p    operands: consts of the condition, consts of the body, carry

    condition: its consts, carry -> bool        body: its consts, carry -> carry

Under vmap a mapped predicate lets the loop run until all elements are done; elements that are
done keep their carry.  Forward mode carries tangents along.  Reverse mode would have to store
every step of an unknown number of them, and is refused with an error that says what to use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jato.base.config import config
from jato.base.errors import check
from jato.base.pytree import function_name, tree_structure
from jato.control.call import graph_axis_names, merge
from jato.control.cond import union
from jato.control.staged_functions import (
    carried,
    convert_outputs,
    converted,
    flat_values,
    match_types,
    trace_functions,
)
from jato.core.graph import Graph, Node, evaluate
from jato.core.graph_dce import eliminate_dead_code
from jato.core.graph_print import short_type
from jato.core.primitive import AxisData, Primitive
from jato.core.staging import trace_to_graph
from jato.core.types import Zero, type_of
from jato.ops.reduce import reduce_or
from jato.ops.selection import select_n
from jato.ops.shapes import instantiate
from jato.ops.structural import broadcast_in_dim
from jato.transforms.batching import batch_graph, with_dim
from jato.transforms.jvp import jvp_graph, zero_of
from jato.transforms.partial_eval import PartialEvalTrace, split_graph

_REVERSE_MODE = (
    "reverse-mode differentiation does not work for while_loop, nor for fori_loop with bounds that "
    "are not known when it is traced, because the number of steps to store is not known. Use "
    "lax.scan, or fori_loop with Python integers as bounds (static_argnums under jit), or "
    "forward mode (jvp, jacfwd)."
)


class While(Primitive):
    """`while(*condition consts, *body consts, *carry)`.

    per_element: made by `batch`: the condition is `any` over the mapped axis, and the body leaves
    elements that are done as they are, so that each may be iterated by itself.
    """

    multiple_results = True

    def type_rule(self, *avals: Any, body: Graph, **params: Any) -> Any:
        return body.out_avals

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        condition: Graph,
        body: Graph,
        condition_consts: int,
        body_consts: int,
        per_element: bool = False,
    ) -> tuple[list[Any], list[Any]]:
        first = condition_consts + body_consts
        consts_nonzero = tuple(type(t) is not Zero for t in tangents[condition_consts:first])
        carry_nonzero = tuple(type(t) is not Zero for t in tangents[first:])
        while True:  # the carry's tangents that are not zero: a fixed point, reached from below
            derivative = jvp_graph(body, consts_nonzero + carry_nonzero, carry_nonzero)
            if derivative.out_nonzero == carry_nonzero:
                break
            carry_nonzero = union(carry_nonzero, derivative.out_nonzero)
        count = len(primals) - first
        tangent_count = sum(carry_nonzero)
        const_tangents = [t for t in tangents[condition_consts:first] if type(t) is not Zero]
        consts = [*derivative.consts, *primals[condition_consts:first], *const_tangents]
        outs = self.bind(
            *primals[:condition_consts],
            *consts,
            *primals[first:],
            *[instantiate(t) for t, nz in zip(tangents[first:], carry_nonzero, strict=True) if nz],
            condition=_ignoring(condition, derivative.graph.out_avals[count:]),
            body=_reordered(
                derivative.graph,
                len(derivative.consts) + body_consts,
                count,
                len(const_tangents),
                tangent_count,
            ),
            condition_consts=condition_consts,
            body_consts=len(consts),
        )
        found = iter(outs[count:])
        return outs[:count], [
            next(found) if nz else zero_of(type_of(x))
            for x, nz in zip(outs[:count], carry_nonzero, strict=True)
        ]

    def batch(
        self,
        axis: AxisData,
        operands: Sequence[Any],
        dims: Sequence[int | None],
        *,
        condition: Graph,
        body: Graph,
        condition_consts: int,
        body_consts: int,
        per_element: bool = False,
    ) -> tuple[list[Any], list[int | None]]:
        first = condition_consts + body_consts
        condition_dims = list(dims[:condition_consts])
        body_dims = list(dims[condition_consts:first])
        mapped = tuple(d is not None for d in dims[first:])
        while True:
            carry_dims = [0 if m else None for m in mapped]
            batched = batch_graph(body, axis, body_dims + carry_dims, mapped)
            test = batch_graph(condition, axis, condition_dims + carry_dims)
            grown = union(mapped, [d is not None for d in batched.out_dims])
            if test.out_dims[0] is not None:
                grown = (True,) * len(mapped)  # elements stop at different steps
            if grown == mapped:
                break
            mapped = grown
        carry = [
            with_dim(axis, x, d, 0 if m else None) if m else x
            for x, d, m in zip(operands[first:], dims[first:], mapped, strict=True)
        ]
        condition_in = [*test.consts, *operands[:condition_consts]]
        body_in = [*batched.consts, *operands[condition_consts:first]]
        test_graph, body_graph = test.graph, batched.graph
        if test.out_dims[0] is not None:
            test_graph, body_graph = _until_all_done(
                test_graph, len(condition_in), body_graph, len(body_in)
            )
            body_in = [*condition_in, *body_in]
        outs = self.bind(
            *condition_in,
            *body_in,
            *carry,
            condition=test_graph,
            body=body_graph,
            condition_consts=len(condition_in),
            body_consts=len(body_in),
            per_element=test.out_dims[0] is not None,
        )
        return outs, [0 if m else None for m in mapped]

    def partial_eval(
        self, trace: PartialEvalTrace, args: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        """Runs what does not depend on unknown values now; the whole loop stays recorded for the
        rest, and computes the known carry again."""
        condition_consts, body_consts = params["condition_consts"], params["body_consts"]
        first = condition_consts + body_consts
        unknown = [trace.is_unknown(x) for x in args]
        if any(unknown[:condition_consts]):
            return NotImplemented
        consts_unknown = tuple(unknown[condition_consts:first])
        carry_unknown = tuple(unknown[first:])
        while True:
            halves = split_graph(params["body"], consts_unknown + carry_unknown, carry_unknown)
            if halves.out_unknown == carry_unknown:
                break
            carry_unknown = union(carry_unknown, halves.out_unknown)
        condition_unknown = split_graph(
            params["condition"], (*unknown[:condition_consts], *carry_unknown)
        ).out_unknown[0]
        if condition_unknown or all(carry_unknown):
            return NotImplemented
        known_outs = trace.known(self, *_known_loop(args, params, unknown, carry_unknown))
        recorded = trace.record(self, args, params)
        kept = [x for x, u in zip(recorded, carry_unknown, strict=True) if u]
        return merge(carry_unknown, kept, known_outs)

    def transpose(self, cotangent: Any, *operands: Any, **params: Any) -> Any:
        raise ValueError(_REVERSE_MODE)

    def plan(self, context: Any, node: Node) -> None:
        params = node.params
        first = params["condition_consts"]
        second = first + params["body_consts"]
        context.loop(
            params["body"],
            node.inputs[first:second],
            node.inputs[second:],
            (),
            node.outputs,
            (),
            condition=params["condition"],
            condition_consts=node.inputs[:first],
            per_element=params.get("per_element", False),
        )

    def reference(
        self,
        *operands: Any,
        condition: Graph,
        body: Graph,
        condition_consts: int,
        body_consts: int,
        per_element: bool = False,
    ) -> list[Any]:
        first = condition_consts + body_consts
        carry = list(operands[first:])
        while bool(evaluate(condition, *operands[:condition_consts], *carry)[0]):
            carry = evaluate(body, *operands[condition_consts:first], *carry)
        return carry

    def subgraphs(self, params: dict[str, Any]) -> Sequence[Graph]:
        return (params["condition"], params["body"])

    def axis_names(self, params: dict[str, Any]) -> tuple[Any, ...]:
        names = graph_axis_names(params["condition"]) + graph_axis_names(params["body"])
        return tuple(dict.fromkeys(names))


while_p = While("while")


def _ignoring(condition: Graph, extra: Sequence[Any]) -> Graph:
    """The condition, given further carries that it does not look at."""
    count = len(condition.inputs)
    return trace_to_graph(
        lambda *xs: evaluate(condition, *xs[:count]),
        condition.in_avals + list(extra),
        condition.name,
    )


def _reordered(graph: Graph, consts: int, carry: int, const_tangents: int, tangents: int) -> Graph:
    """Inputs (consts, carry, tangents of consts, of carry) -> (consts, their tangents, ...)."""
    inputs = graph.inputs
    stop = consts + carry
    ordered = (
        inputs[:consts]
        + inputs[stop : stop + const_tangents]
        + inputs[consts:stop]
        + inputs[stop + const_tangents : stop + const_tangents + tangents]
    )
    return Graph(ordered, graph.nodes, graph.outputs, name=graph.name)


def _until_all_done(
    condition: Graph, condition_consts: int, body: Graph, body_consts: int
) -> tuple[Graph, Graph]:
    """(any element goes on, body whose elements that are done keep their carry)."""

    def any_left(*args: Any) -> list[Any]:
        (test,) = evaluate(condition, *args)
        return [reduce_or(test, axes=(0,))]

    def masked(*args: Any) -> list[Any]:
        condition_in = args[:condition_consts]
        body_in = args[condition_consts : condition_consts + body_consts]
        carry = args[condition_consts + body_consts :]
        (test,) = evaluate(condition, *condition_in, *carry)
        stepped = evaluate(body, *body_in, *carry)
        return [
            select_n(broadcast_in_dim(test, type_of(x).shape, (0,)), x, y)
            for x, y in zip(carry, stepped, strict=True)
        ]

    masked_avals = condition.in_avals[:condition_consts] + body.in_avals
    return (
        trace_to_graph(any_left, condition.in_avals, condition.name, "vmap"),
        trace_to_graph(masked, masked_avals, body.name, "vmap"),
    )


def _known_loop(
    args: Sequence[Any],
    params: dict[str, Any],
    unknown: Sequence[bool],
    carry_unknown: Sequence[bool],
) -> tuple[list[Any], dict[str, Any]]:
    """Operands and params of the loop over the known carry only."""
    condition_consts, body_consts = params["condition_consts"], params["body_consts"]
    first = condition_consts + body_consts
    known_carry = [not u for u in carry_unknown]
    body_known = [not u for u in unknown[condition_consts:first]]

    def kept(graph: Graph, consts: int, keep_consts: Sequence[bool], used: Any) -> Graph:
        smaller, _ = eliminate_dead_code(graph, used)
        keep = [*keep_consts, *known_carry]
        inputs = [v for v, k in zip(smaller.inputs, keep, strict=True) if k]
        return Graph(inputs, smaller.nodes, smaller.outputs, name=graph.name)

    condition = kept(params["condition"], condition_consts, [True] * condition_consts, None)
    body = kept(params["body"], body_consts, body_known, known_carry)
    operands = [
        *args[:condition_consts],
        *[x for x, k in zip(args[condition_consts:first], body_known, strict=True) if k],
        *[x for x, k in zip(args[first:], known_carry, strict=True) if k],
    ]
    return operands, {
        "condition": condition,
        "body": body,
        "condition_consts": condition_consts,
        "body_consts": sum(body_known),
    }


# ---- the user's side


def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any
) -> Any:
    """Repeats `value = body_fun(value)` while `cond_fun(value)` is true.

    init_val is a pytree; body_fun must keep its structure, shapes and dtypes.  Differentiable in
    forward mode only.

    >>> import jato.numpy as jnp
    >>> int(while_loop(lambda n: n < 100, lambda n: 2 * n, 3))
    192

    TypeError if cond_fun gives no bool scalar or body_fun changes a type, naming each leaf.
    """
    check(
        callable(cond_fun) and callable(body_fun),
        TypeError,
        "while_loop: cond_fun and body_fun must be functions",
    )
    values, value_tree = flat_values("while_loop: init_val", init_val)
    if config.jax_disable_jit:
        value = value_tree.unflatten(values)
        while bool(cond_fun(value)):
            value = body_fun(value)
        return value
    args_tree = tree_structure((init_val,))
    while True:  # twice when a weakly typed leaf takes the body's type
        avals = [type_of(x) for x in values]
        body = trace_functions("while_loop", [body_fun], args_tree, avals)
        joined = match_types(
            "while_loop",
            ("init_val", value_tree, avals),
            (f"the result of body_fun ({function_name(body_fun)})", body.out_trees[0],
             body.graphs[0].out_avals),
            "body_fun must return a value of the types it takes.",
            carried,
        )  # fmt: skip
        if all(t is a for t, a in zip(joined, avals, strict=True)):
            break
        values = [converted(x, t) for x, t in zip(values, joined, strict=True)]
    condition = trace_functions("while_loop", [cond_fun], args_tree, avals)
    _check_predicate(cond_fun, condition.graphs[0], condition.out_trees[0])
    outs = while_p.bind(
        *condition.captured,
        *body.captured,
        *values,
        condition=condition.graphs[0],
        body=convert_outputs(body.graphs[0], avals),
        condition_consts=len(condition.captured),
        body_consts=len(body.captured),
    )
    return value_tree.unflatten(outs)


def _check_predicate(cond_fun: Callable[..., Any], graph: Graph, tree: Any) -> None:
    avals = graph.out_avals
    good = tree == tree_structure(0) and avals[0].shape == () and avals[0].dtype == np.dtype("bool")
    shown = ", ".join(map(short_type, avals))
    check(
        good,
        TypeError,
        f"while_loop: cond_fun ({function_name(cond_fun)}) must return a bool scalar, got ({shown})",
    )
