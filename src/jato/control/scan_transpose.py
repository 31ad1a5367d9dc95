"""The body of a scan that runs backwards: cotangents of the carry are the carry.

Start reading at `transposed_body`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any, NamedTuple

from jato.base.caches import weakly_cached
from jato.control.cond import union
from jato.control.structure import MANY_SCALARS, heights, kinds
from jato.core.graph import Atom, Graph, Node, Var, constants_to_inputs
from jato.core.primitive import UndefinedPrimal
from jato.core.staging import GraphTracer, trace_to_graph
from jato.core.types import Zero, tangent_type
from jato.ops.arithmetic import ADD, add
from jato.ops.shapes import instantiate
from jato.transforms.jvp import zero_of
from jato.transforms.transpose import backward_pass


@weakly_cached()
def linear_carry(
    graph: Graph, linear: tuple[bool, ...], const_count: int, carry_count: int
) -> tuple[bool, ...]:
    """Which carries depend on linear operands, at the start or on the way."""
    stop = const_count + carry_count
    carry = linear[const_count:stop]
    while True:
        mask = linear[:const_count] + carry + linear[stop:]
        reached = {v for v, m in zip(graph.inputs, mask, strict=True) if m}
        for node in graph.nodes:
            if any(a in reached for a in node.inputs):
                reached.update(node.outputs)
        grown = union(carry, [a in reached for a in graph.outputs[:carry_count]])
        if grown == carry:
            return carry
        carry = grown


class TransposedBody(NamedTuple):
    """consts, values of nonlinear consts; cotangents of linear consts so far and of the carry;
    cotangents of ys that are not zero, nonlinear xs -> cotangents of consts, carry; of linear
    xs."""

    graph: Graph
    consts: tuple[Any, ...]


@weakly_cached()
def transposed_body(
    graph: Graph,
    linear: tuple[bool, ...],
    y_given: tuple[bool, ...],
    const_count: int,
    carry_count: int,
) -> TransposedBody:
    avals = graph.in_avals
    stop = const_count + carry_count
    const_linear, x_linear = linear[:const_count], linear[stop:]
    value_avals = [a for a, is_linear in zip(avals, const_linear, strict=False) if not is_linear]
    sum_avals = [
        tangent_type(a) for a, is_linear in zip(avals, const_linear, strict=False) if is_linear
    ]
    carry_avals = [tangent_type(a) for a in avals[const_count:stop]]
    out_avals = graph.out_avals
    y_avals = [tangent_type(a) for a, g in zip(out_avals[carry_count:], y_given, strict=True) if g]
    x_avals = [a for a, is_linear in zip(avals[stop:], x_linear, strict=True) if not is_linear]
    added: list[Any] = []

    def backwards(*args: Any) -> list[Any]:
        given = iter(args)
        values = [next(given) for _ in value_avals]
        sums = [next(given) for _ in sum_avals]
        carry_cts = [next(given) for _ in carry_avals]
        ys = [next(given) for _ in y_avals]
        xs = [next(given) for _ in x_avals]
        nonlinear = iter(values + xs)
        operands = [
            UndefinedPrimal(a) if is_linear else next(nonlinear)
            for a, is_linear in zip(avals, linear, strict=True)
        ]
        y_values = iter(ys)
        y_cts = [
            next(y_values) if g else zero_of(a)
            for a, g in zip(out_avals[carry_count:], y_given, strict=True)
        ]
        found = backward_pass(graph, operands, carry_cts + y_cts, added)
        const_cts = [ct for ct, is_linear in zip(found, const_linear, strict=False) if is_linear]
        totals = [
            total if type(ct) is Zero else add(total, ct)
            for total, ct in zip(sums, const_cts, strict=True)
        ]
        added.extend(total for total, old in zip(totals, sums, strict=True) if total is not old)
        carried = [instantiate(ct) for ct in found[const_count:stop]]
        x_cts = [
            instantiate(ct)
            for ct, is_linear in zip(found[stop:], x_linear, strict=True)
            if is_linear
        ]
        return totals + carried + x_cts

    traced = trace_to_graph(
        backwards,
        value_avals + sum_avals + carry_avals + y_avals + x_avals,
        graph.name,
        "transpose",
    )
    closed, consts = constants_to_inputs(traced)
    if carry_count >= MANY_SCALARS:
        made = {total.variable for total in added if isinstance(total, GraphTracer)}
        closed = with_sums_in_order(closed, made)
    return TransposedBody(closed, tuple(consts))


def with_sums_in_order(graph: Graph, sums: Collection[Var]) -> Graph:
    """The graph with the terms of these sums of cotangents in the order of their structure.

        (a + f(b)) + g(b)  and  (g(c) + a) + f(c)   ->   (a + f) + g  in both

    What is added to a cotangent comes in the order of the operations that used the value, another
    one for each carry; then few of the sums are alike, and loops compute what is alike together.
    What takes longest to compute comes last.  Only sums of scalars change, and none that a rule of
    the user's makes (custom_vjp): (1e8 ct - 1e8 ct) + ct is not 0."""
    uses: Counter[Atom] = Counter(a for a in graph.outputs if type(a) is Var)
    for node in graph.nodes:
        uses.update(a for a in node.inputs if type(a) is Var)
    kind, height = kinds(graph, literals=False), heights(graph)
    terms: dict[Atom, list[Atom]] = {}  # of the sums that are terms of another sum
    nodes: list[Node] = []
    adders = {
        node: node.outputs[0]
        for node in graph.nodes
        if node.primitive is ADD
        and node.outputs[0].aval.shape == ()
        and node.outputs[0] in sums
    }
    inner = {
        a
        for node in adders
        for a in node.inputs
        if uses[a] == 1 and a.aval is node.outputs[0].aval
    }
    for node in graph.nodes:
        out = adders.get(node)
        if out is None:
            nodes.append(node)
            continue
        found = [t for a in node.inputs for t in terms.pop(a, [a])]
        if out in inner:
            terms[out] = found
            continue
        found.sort(key=lambda a: (height.get(a, 0), kind.get(a, -1)))
        total = found[0]
        for position, term in enumerate(found[1:], 2):
            partial = out if position == len(found) else Var(out.aval)
            nodes.append(Node(ADD, [total, term], [partial], node.params, node.frame))
            total = partial
    return Graph(graph.inputs, nodes, graph.outputs, name=graph.name)
