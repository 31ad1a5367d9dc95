"""scan: a loop that carries a value, takes slices of arrays and stacks results.

    scan_p    operands: consts, carry, xs (arrays with a leading axis of `length`)
              graph: consts, carry, slices of xs -> carry, slices of ys

Every transform of a scan is a scan.  Partial evaluation splits it into a scan of the known part,
which stacks the residuals, and one of the unknown part, which takes them as xs; transposed, that
one runs backwards.  Start reading at `Scan`; `scan` is the user's function.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jato.base.caches import weakly_cached
from jato.base.config import config
from jato.base.errors import check
from jato.base.pytree import (
    function_name,
    keystr,
    tree_flatten,
    tree_leaves_with_path,
    tree_structure,
    treedef_children,
)
from jato.control.call import graph_axis_names, merge, pruned_graph
from jato.control.cond import union
from jato.control.staged_functions import (
    carried,
    convert_outputs,
    converted,
    flat_values,
    match_types,
    trace_functions,
)
from jato.core.graph import Graph, Node, Var, constants_to_inputs, evaluate
from jato.core.primitive import AxisData, Primitive, UndefinedPrimal
from jato.core.staging import trace_to_graph
from jato.core.types import ArrayType, Zero, tangent_type, type_of
from jato.ops.arithmetic import add
from jato.ops.shapes import instantiate, zeros
from jato.ops.structural import concatenate, expand_dims, reshape, slice_in_dim
from jato.transforms.batching import batch_graph, with_dim
from jato.transforms.jvp import jvp_graph, zero_of
from jato.transforms.partial_eval import PartialEvalTrace, SplitGraph, split_graph
from jato.transforms.transpose import backward_pass


def stacked(aval: Any, length: int) -> Any:
    """The type of `length` values along a new first axis."""
    return ArrayType((length, *aval.shape), aval.dtype_code, aval.weak_type)


def sliced(aval: Any) -> Any:
    """The type of one slice."""
    return ArrayType(aval.shape[1:], aval.dtype_code, aval.weak_type)


class Scan(Primitive):
    """`scan(*consts, *carry, *xs, graph, length, reverse, const_count, carry_count)`."""

    multiple_results = True

    def type_rule(
        self, *avals: Any, graph: Graph, length: int, carry_count: int, **params: Any
    ) -> list[Any]:
        outs = graph.out_avals
        return outs[:carry_count] + [stacked(a, length) for a in outs[carry_count:]]

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        graph: Graph,
        const_count: int,
        carry_count: int,
        **params: Any,
    ) -> tuple[list[Any], list[Any]]:
        nonzero = tuple(type(t) is not Zero for t in tangents)
        stop = const_count + carry_count
        carry_nonzero = nonzero[const_count:stop]
        y_count = len(graph.outputs) - carry_count
        while True:  # the carry's tangents that are not zero: a fixed point, reached from below
            mask = nonzero[:const_count] + carry_nonzero + nonzero[stop:]
            forced = carry_nonzero + (False,) * y_count
            derivative = jvp_graph(graph, mask, forced)
            if derivative.out_nonzero[:carry_count] == carry_nonzero:
                break
            carry_nonzero = union(carry_nonzero, derivative.out_nonzero[:carry_count])
        given = [instantiate(t) if m else None for t, m in zip(tangents, mask, strict=True)]

        def present(items: Sequence[Any]) -> list[Any]:
            return [t for t in items if t is not None]

        consts = [
            *derivative.consts,
            *primals[:const_count],
            *present(given[:const_count]),
        ]
        carry = [*primals[const_count:stop], *present(given[const_count:stop])]
        xs = [*primals[stop:], *present(given[stop:])]
        body = _interleaved(
            derivative.graph,
            len(derivative.consts),
            (const_count, carry_count, len(primals) - stop),
            tuple(sum(m) for m in (mask[:const_count], carry_nonzero, mask[stop:])),
            (carry_count, y_count),
            sum(carry_nonzero),
        )
        outs = self.bind(
            *consts,
            *carry,
            *xs,
            graph=body,
            const_count=len(consts),
            carry_count=len(carry),
            **params,
        )
        carry_out, ys = outs[: len(carry)], outs[len(carry) :]
        found = iter([*carry_out[carry_count:], *ys[y_count:]])
        out = [*carry_out[:carry_count], *ys[:y_count]]
        return out, [
            next(found) if nz else zero_of(type_of(x))
            for x, nz in zip(out, derivative.out_nonzero, strict=True)
        ]

    def batch(
        self,
        axis: AxisData,
        operands: Sequence[Any],
        dims: Sequence[int | None],
        *,
        graph: Graph,
        const_count: int,
        carry_count: int,
        **params: Any,
    ) -> tuple[list[Any], list[int | None]]:
        stop = const_count + carry_count
        y_count = len(graph.outputs) - carry_count
        mapped = tuple(d is not None for d in dims[const_count:stop])
        x_dims = [None if d is None else 0 for d in dims[stop:]]
        while True:
            carry_dims = [0 if m else None for m in mapped]
            batched = batch_graph(
                graph,
                axis,
                [*dims[:const_count], *carry_dims, *x_dims],
                mapped + (False,) * y_count,
            )
            grown = union(mapped, [d is not None for d in batched.out_dims[:carry_count]])
            if grown == mapped:
                break
            mapped = grown
        y_mapped = [d is not None for d in batched.out_dims[carry_count:]]
        batched = batch_graph(
            graph,
            axis,
            [*dims[:const_count], *carry_dims, *x_dims],
            (*mapped, *y_mapped),
        )
        carry = [
            with_dim(axis, x, d, 0) if m else x
            for x, d, m in zip(
                operands[const_count:stop], dims[const_count:stop], mapped, strict=True
            )
        ]
        # the scanned axis stays in front, the mapped one comes second
        xs = [
            x if d is None else with_dim(axis, x, d, 1)
            for x, d in zip(operands[stop:], dims[stop:], strict=True)
        ]
        outs = self.bind(
            *batched.consts,
            *operands[:const_count],
            *carry,
            *xs,
            graph=batched.graph,
            const_count=len(batched.consts) + const_count,
            carry_count=carry_count,
            **params,
        )
        return outs, [0 if m else None for m in mapped] + [1 if m else None for m in y_mapped]

    def partial_eval(
        self, trace: PartialEvalTrace, args: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        halves = divide(args, tuple(trace.is_unknown(x) for x in args), params)
        known_out: list[Any] = []
        if halves.split.known.outputs:
            known_out = trace.known(self, halves.known_operands, halves.known_params)
        # a carry that becomes unknown on the way starts from a known value, which recording
        # makes a constant
        unknown_out = trace.record(self, halves.unknown_operands(known_out), halves.unknown_params)
        visible = known_out[: len(known_out) - halves.split.stacked]
        return merge(halves.out_unknown, unknown_out, visible)

    def transpose(
        self,
        cotangent: Sequence[Any],
        *operands: Any,
        graph: Graph,
        length: int,
        reverse: bool,
        const_count: int,
        carry_count: int,
    ) -> list[Any]:
        stop = const_count + carry_count
        given = tuple(type(x) is UndefinedPrimal for x in operands)
        carry_linear = linear_carry(graph, given, const_count, carry_count)
        if not all(carry_linear):
            params = {
                "graph": graph,
                "length": length,
                "reverse": reverse,
                "const_count": const_count,
                "carry_count": carry_count,
            }
            return self._transpose_linear_half(cotangent, operands, given, params)
        linear = given[:const_count] + carry_linear + given[stop:]
        y_given = tuple(type(ct) is not Zero for ct in cotangent[carry_count:])
        backwards = transposed_body(graph, linear, y_given, const_count, carry_count)
        values = [x for x in operands[:const_count] if type(x) is not UndefinedPrimal]
        sums = [zeros(x.aval) for x in operands[:const_count] if type(x) is UndefinedPrimal]
        carry = [*sums, *map(instantiate, cotangent[:carry_count])]
        xs = [
            *[ct for ct in cotangent[carry_count:] if type(ct) is not Zero],
            *[x for x in operands[stop:] if type(x) is not UndefinedPrimal],
        ]
        outs = self.bind(
            *backwards.consts,
            *values,
            *carry,
            *xs,
            graph=backwards.graph,
            length=length,
            reverse=not reverse,
            const_count=len(backwards.consts) + len(values),
            carry_count=len(carry),
        )
        found = iter(outs)
        const_cts = [next(found) if is_linear else None for is_linear in given[:const_count]]
        carry_cts = [next(found) for _ in range(carry_count)]
        x_cts = [next(found) if is_linear else None for is_linear in given[stop:]]
        # a carry that starts from a known value is affine in it: nobody wants its cotangent
        wanted = given[const_count:stop]
        return [
            *const_cts,
            *[ct if w else None for ct, w in zip(carry_cts, wanted, strict=True)],
            *x_cts,
        ]

    def _transpose_linear_half(
        self,
        cotangent: Sequence[Any],
        operands: Sequence[Any],
        linear: tuple[bool, ...],
        params: dict[str, Any],
    ) -> list[Any]:
        """Runs what does not depend on linear operands (counters) forwards first."""
        halves = divide(operands, linear, params)
        known_out: list[Any] = []
        if halves.split.known.outputs:
            known_out = self.bind(*halves.known_operands, **halves.known_params)
        rest = halves.unknown_operands(known_out)
        wanted = [ct for ct, u in zip(cotangent, halves.out_unknown, strict=True) if u]
        found = self.transpose(wanted, *rest, **halves.unknown_params)
        by_operand = {
            id(x): ct for x, ct in zip(rest, found, strict=True) if type(x) is UndefinedPrimal
        }
        return [by_operand.get(id(x)) for x in operands]

    def prune(self, node: Node, used: Sequence[bool]) -> Node:
        """Drops ys that are not used and carries that nothing used depends on."""
        params = node.params
        graph, carry_count = params["graph"], params["carry_count"]
        const_count = params["const_count"]
        stop = const_count + carry_count
        carry_used = tuple(used[:carry_count])
        while True:
            _, needed = pruned_graph(graph, (*carry_used, *used[carry_count:]))
            grown = union(carry_used, needed[const_count:stop])
            if grown == carry_used:
                break
            carry_used = grown
        kept = (*carry_used, *used[carry_count:])
        if all(kept) and all(needed):
            return node
        smaller, _ = pruned_graph(graph, kept)
        keep = [*needed[:const_count], *carry_used, *needed[stop:]]
        smaller = Graph(
            [v for v, k in zip(graph.inputs, keep, strict=True) if k],
            smaller.nodes,
            smaller.outputs,
            name=graph.name,
        )
        return Node(
            self,
            [a for a, k in zip(node.inputs, keep, strict=True) if k],
            [v for v, k in zip(node.outputs, kept, strict=True) if k],
            {
                **params,
                "graph": smaller,
                "const_count": sum(needed[:const_count]),
                "carry_count": sum(carry_used),
            },
            node.frame,
        )

    def plan(self, context: Any, node: Node) -> None:
        params = node.params
        first = params["const_count"]
        second = first + params["carry_count"]
        context.loop(
            params["graph"],
            node.inputs[:first],
            node.inputs[first:second],
            node.inputs[second:],
            node.outputs[: params["carry_count"]],
            node.outputs[params["carry_count"] :],
            length=params["length"],
            reverse=params["reverse"],
        )

    def reference(
        self,
        *operands: Any,
        graph: Graph,
        length: int,
        reverse: bool,
        const_count: int,
        carry_count: int,
    ) -> list[Any]:
        stop = const_count + carry_count
        consts, carry, xs = operands[:const_count], operands[const_count:stop], operands[stop:]
        rows: list[list[Any]] = [[] for _ in graph.outputs[carry_count:]]
        for i in reversed(range(length)) if reverse else range(length):
            outs = evaluate(graph, *consts, *carry, *[np.asarray(x)[i] for x in xs])
            carry = outs[:carry_count]
            for row, y in zip(rows, outs[carry_count:], strict=True):
                row.append(np.asarray(y))
        avals = graph.out_avals[carry_count:]
        ys = [
            np.stack(row[::-1] if reverse else row) if row else np.zeros((0, *a.shape), a.dtype)
            for row, a in zip(rows, avals, strict=True)
        ]
        return [*carry, *ys]

    def subgraphs(self, params: dict[str, Any]) -> Sequence[Graph]:
        return (params["graph"],)

    def axis_names(self, params: dict[str, Any]) -> tuple[Any, ...]:
        return graph_axis_names(params["graph"])


scan_p = Scan("scan")


def _interleaved(
    graph: Graph,
    leading: int,
    counts: tuple[int, int, int],
    tangent_counts: tuple[int, ...],
    out_counts: tuple[int, int],
    carry_tangents: int,
) -> Graph:
    """Orders a derivative graph's inputs and outputs group by group.

    inputs: (leading, consts, carry, xs, their tangents) -> each group followed by its tangents;
    outputs: (carry, ys, their tangents) -> (carry, its tangents, ys, their tangents)."""
    inputs = graph.inputs
    ordered = inputs[:leading]
    position, tangent = leading, leading + sum(counts)
    for count, tangent_count in zip(counts, tangent_counts, strict=True):
        ordered = ordered + inputs[position : position + count]
        ordered = ordered + inputs[tangent : tangent + tangent_count]
        position, tangent = position + count, tangent + tangent_count
    outs = graph.outputs
    carry, ys = out_counts
    first = carry + ys
    outputs = (
        outs[:carry]
        + outs[first : first + carry_tangents]
        + outs[carry:first]
        + outs[first + carry_tangents :]
    )
    return Graph(ordered, graph.nodes, outputs, name=graph.name)


class ScanSplit(NamedTuple):
    """The bodies of the two halves of a scan.

    known:    known_consts, known consts, carry, xs -> known carry, known ys, stacked residuals
    unknown:  unknown_consts, const residuals, unknown consts; carry; x residuals, stacked
              residuals, unknown xs -> unknown carry, unknown ys
    """

    known: Graph
    known_consts: tuple[Any, ...]
    unknown: Graph
    unknown_consts: tuple[Any, ...]
    const_residuals: tuple[int, ...]  # positions among the known consts
    x_residuals: tuple[int, ...]  # positions among the known xs
    stacked: int


@weakly_cached()
def scan_split(
    graph: Graph,
    unknown: tuple[bool, ...],
    out_unknown: tuple[bool, ...],
    const_count: int,
    carry_count: int,
) -> ScanSplit:
    """Splits a scan's body.  A residual that is a const or a slice of an x is passed as it is."""
    halves: SplitGraph = split_graph(graph, unknown, out_unknown)
    known_const_count = sum(not u for u in unknown[:const_count])
    stop = const_count + carry_count
    known_carry_count = sum(not u for u in unknown[const_count:stop])
    known_stop = known_const_count + known_carry_count
    base = len(halves.known_consts)
    first = len(halves.unknown_consts)
    count = len(halves.residuals)
    inputs = halves.unknown.inputs
    consts: list[tuple[int, Var]] = []
    slices: list[tuple[int, Var]] = []
    stacked_vars: list[Var] = []
    outputs = list(halves.known.outputs[: sum(not u for u in out_unknown)])
    for var, residual in zip(inputs[first : first + count], halves.residuals, strict=True):
        if residual.is_input and residual.index < known_const_count:
            consts.append((residual.index, var))
        elif residual.is_input and residual.index >= known_stop:
            slices.append((residual.index - known_stop, var))
        else:  # a carry or an intermediate value: one for each step
            stacked_vars.append(var)
            source = halves.known.inputs[base:] if residual.is_input else halves.known.outputs
            outputs.append(source[residual.index])
    rest = inputs[first + count :]
    unknown_consts = sum(unknown[:const_count])
    unknown_carry = sum(unknown[const_count:stop])
    ordered = (
        inputs[:first]
        + [v for _, v in consts]
        + rest[: unknown_consts + unknown_carry]
        + [v for _, v in slices]
        + stacked_vars
        + rest[unknown_consts + unknown_carry :]
    )
    name = graph.name
    known, unknown_part, stacked_count = packed_residuals(
        Graph(halves.known.inputs, halves.known.nodes, outputs, name=name),
        Graph(ordered, halves.unknown.nodes, halves.unknown.outputs, name=name),
        stacked_vars,
    )
    return ScanSplit(
        known,
        halves.known_consts,
        unknown_part,
        halves.unknown_consts,
        tuple(i for i, _ in consts),
        tuple(i for i, _ in slices),
        stacked_count,
    )


# So many scalars that each step keeps for the backward pass are kept as one array.
MANY_RESIDUALS = 8


def packed_residuals(
    known: Graph, unknown: Graph, residuals: Sequence[Var]
) -> tuple[Graph, Graph, int]:
    """The halves with scalar residuals of one dtype as one array, and the number of residuals.

    residuals: the unknown half's variables; the known half gives them last, in this order.  Apart,
    each is an array of its own that is written element by element: 60 carries are 60 cache lines
    and 60 addresses in each step."""
    by_type: dict[int, list[int]] = {}
    for k, var in enumerate(residuals):
        if var.aval.shape == () and not var.aval.weak_type:
            by_type.setdefault(var.aval.dtype_code, []).append(k)
    packs = [ks for ks in by_type.values() if len(ks) >= MANY_RESIDUALS]
    if not packs or graph_axis_names(known) or graph_axis_names(unknown):
        return known, unknown, len(residuals)
    alone = [k for k in range(len(residuals)) if not any(k in ks for ks in packs)]
    first_out = len(known.outputs) - len(residuals)
    first_in = unknown.inputs.index(residuals[0])

    def pack(*args: Any) -> list[Any]:
        outs = evaluate(known, *args)
        made = outs[first_out:]
        rows = [concatenate([reshape(made[k], (1,)) for k in ks], 0) for ks in packs]
        return outs[:first_out] + rows + [made[k] for k in alone]

    def unpack(*args: Any) -> list[Any]:
        count = len(packs) + len(alone)
        given = args[first_in : first_in + count]
        values: dict[int, Any] = dict(zip(alone, given[len(packs) :], strict=True))
        for row, ks in zip(given, packs, strict=False):
            for place, k in enumerate(ks):
                values[k] = reshape(slice_in_dim(row, place, place + 1), ())
        inside = [values[k] for k in range(len(residuals))]
        return evaluate(unknown, *args[:first_in], *inside, *args[first_in + count :])

    rows = [ArrayType((len(ks),), residuals[ks[0]].aval.dtype_code, False) for ks in packs]
    avals = unknown.in_avals
    avals[first_in : first_in + len(residuals)] = rows + [residuals[k].aval for k in alone]
    new_known = trace_to_graph(pack, known.in_avals, known.name)
    new_unknown = trace_to_graph(unpack, avals, unknown.name)
    if new_known.consts or new_unknown.consts or new_unknown.out_avals != unknown.out_avals:
        return known, unknown, len(residuals)
    return new_known, new_unknown, len(rows) + len(alone)


class Halves(NamedTuple):
    """A scan split by which of its operands are unknown."""

    split: ScanSplit
    out_unknown: tuple[bool, ...]
    known_operands: list[Any]
    known_params: dict[str, Any]
    consts: list[Any]
    carry: list[Any]
    known_xs: list[Any]
    unknown_xs: list[Any]
    unknown_params: dict[str, Any]

    def unknown_operands(self, known_out: Sequence[Any]) -> list[Any]:
        """Operands of the unknown half, given all results of the known one."""
        return [
            *self.consts,
            *self.carry,
            *self.known_xs,
            *known_out[len(known_out) - self.split.stacked :],
            *self.unknown_xs,
        ]


def divide(args: Sequence[Any], unknown: tuple[bool, ...], params: dict[str, Any]) -> Halves:
    """Splits a scan.  A carry is unknown if it starts unknown or becomes so on the way."""
    graph, const_count, carry_count = params["graph"], params["const_count"], params["carry_count"]
    stop = const_count + carry_count
    carry_unknown = unknown[const_count:stop]
    y_count = len(graph.outputs) - carry_count
    while True:
        mask = unknown[:const_count] + carry_unknown + unknown[stop:]
        halves = split_graph(graph, mask, carry_unknown + (False,) * y_count)
        if halves.out_unknown[:carry_count] == carry_unknown:
            break
        carry_unknown = union(carry_unknown, halves.out_unknown[:carry_count])
    split = scan_split(graph, mask, halves.out_unknown, const_count, carry_count)

    def chosen(first: int, last: int, is_unknown: bool) -> list[Any]:
        return [
            x for x, u in zip(args[first:last], mask[first:last], strict=True) if u == is_unknown
        ]

    known_consts, known_xs = chosen(0, const_count, False), chosen(stop, len(args), False)
    known_carry, carry = chosen(const_count, stop, False), chosen(const_count, stop, True)
    consts = [
        *split.unknown_consts,
        *[known_consts[i] for i in split.const_residuals],
        *chosen(0, const_count, True),
    ]
    common = {"length": params["length"], "reverse": params["reverse"]}
    return Halves(
        split,
        halves.out_unknown,
        [*split.known_consts, *known_consts, *known_carry, *known_xs],
        {
            "graph": split.known,
            "const_count": len(split.known_consts) + len(known_consts),
            "carry_count": len(known_carry),
            **common,
        },
        consts,
        carry,
        [known_xs[i] for i in split.x_residuals],
        chosen(stop, len(args), True),
        {
            "graph": split.unknown,
            "const_count": len(consts),
            "carry_count": len(carry),
            **common,
        },
    )


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
    cotangents of ys that are not zero, nonlinear xs -> cotangents of consts, carry; of linear xs."""

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
        found = backward_pass(graph, operands, carry_cts + y_cts)
        const_cts = [ct for ct, is_linear in zip(found, const_linear, strict=False) if is_linear]
        totals = [
            total if type(ct) is Zero else add(total, ct)
            for total, ct in zip(sums, const_cts, strict=True)
        ]
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
    return TransposedBody(closed, tuple(consts))


# ---- the user's side


def scan(
    f: Callable[[Any, Any], Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> Any:
    """Carries a value through a loop: `carry, y = f(carry, x)` for each slice x of `xs`.

    init and xs are pytrees; each leaf of xs has a leading axis of the same length.  Gives (last
    carry, ys), the leaves of ys stacked along a new leading axis.  length is needed if xs has no
    leaves.  reverse runs from the last slice to the first.  unroll (a number of steps or a bool) is
    a hint that is checked and not followed: a step is part of the compiled loop and costs no
    dispatch.  Bodies of 2, 4 and 10 steps took 0.7 to 2.2 times the time of one; only carries that
    are small vectors gained.

    >>> import jato.numpy as jnp
    >>> total, sums = scan(lambda c, x: (c + x, c + x), 0.0, jnp.array([1.0, 2.0, 3.0]))
    >>> sums
    Array([1., 3., 6.], dtype=float32)

    ValueError for unequal lengths and a negative `unroll`; TypeError if f changes the carry's type,
    naming each leaf.
    """
    check(callable(f), TypeError, "scan: f must be a function")
    check_unroll("scan", unroll)
    name = function_name(f)
    carry, carry_tree = flat_values("scan: init", init)
    slices, xs_tree = flat_values("scan: xs", xs)
    count = _scan_length(name, xs, slices, length)
    if config.jax_disable_jit:
        return _scan_in_python(f, init, xs_tree, slices, count, reverse)
    args_tree = tree_structure((init, xs))
    x_avals = [sliced(type_of(x)) for x in slices]
    while True:  # twice when a weakly typed leaf takes the body's type
        avals = [type_of(x) for x in carry]
        staged = trace_functions("scan", [f], args_tree, avals + x_avals)
        graph, out_tree = staged.graphs[0], staged.out_trees[0]
        new_tree, carry_out = _carry_of(name, out_tree, graph)
        joined = match_types(
            "scan",
            ("init", carry_tree, avals),
            (f"the carry that f ({name}) returns", new_tree, carry_out),
            "f must return a carry of the types it takes.",
            carried,
        )
        if all(t is a for t, a in zip(joined, avals, strict=True)):
            break
        carry = [converted(x, t) for x, t in zip(carry, joined, strict=True)]
    outs = scan_p.bind(
        *staged.captured,
        *carry,
        *slices,
        graph=convert_outputs(graph, avals),
        length=count,
        reverse=bool(reverse),
        const_count=len(staged.captured),
        carry_count=len(carry),
    )
    return out_tree.unflatten(outs)


def check_unroll(function: str, unroll: Any) -> None:
    """TypeError or ValueError unless `unroll` is a bool or a number of steps."""
    check(
        isinstance(unroll, (int, np.bool_, np.integer)),
        TypeError,
        f"{function}: argument 'unroll': expected a bool or an integer that is not negative, got "
        f"{unroll!r}",
    )
    check(
        int(unroll) >= 0,
        ValueError,
        f"{function}: argument 'unroll' must not be negative, got {unroll}",
    )


def _carry_of(name: str, out_tree: Any, graph: Graph) -> tuple[Any, list[Any]]:
    """(structure, types) of the carry that the body returns."""
    example = out_tree.unflatten([0] * len(graph.outputs))
    if not (isinstance(example, (tuple, list)) and len(example) == 2):
        raise TypeError(
            f"scan: f ({name}) must return a pair (carry, y), got {out_tree}. "
            "Use None for y if there is nothing to stack."
        )
    tree = treedef_children(out_tree)[0]
    return tree, graph.out_avals[: tree.num_leaves]


def _scan_length(name: str, xs: Any, slices: Sequence[Any], length: int | None) -> int:
    paths = [keystr(path) for path, _ in tree_leaves_with_path(xs)]
    lengths: dict[str, int] = {}
    for path, x in zip(paths, slices, strict=True):
        shape = type_of(x).shape
        check(
            bool(shape),
            ValueError,
            f"scan of {name}: xs{path} is a scalar, but every leaf of xs needs a leading axis",
        )
        lengths[path] = shape[0]
    if length is not None:
        length = operator.index(length)
        check(
            length >= 0, ValueError, f"scan of {name}: length must not be negative, got {length}"
        )
        wrong = [f"xs{p} has {n}" for p, n in lengths.items() if n != length]
        check(not wrong, ValueError, f"scan of {name}: length is {length}, but {', '.join(wrong)}")
        return length
    check(
        bool(lengths),
        ValueError,
        f"scan of {name}: xs has no leaves, so length must be given",
    )
    check(
        len(set(lengths.values())) == 1,
        ValueError,
        f"scan of {name}: the leaves of xs must have the same leading axis, got "
        + ", ".join(f"xs{p}: {n}" for p, n in lengths.items()),
    )
    return next(iter(lengths.values()))


def _row(x: Any, i: int) -> Any:
    return reshape(slice_in_dim(x, i, i + 1, axis=0), type_of(x).shape[1:])


def _scan_in_python(
    f: Callable[[Any, Any], Any],
    carry: Any,
    xs_tree: Any,
    slices: Sequence[Any],
    length: int,
    reverse: bool,
) -> Any:
    """The loop under `jax_disable_jit`."""
    check(length > 0, ValueError, "scan with jax_disable_jit needs a length of at least 1")
    rows: list[Any] = []
    for i in reversed(range(length)) if reverse else range(length):
        carry, y = f(carry, xs_tree.unflatten([_row(x, i) for x in slices]))
        leaves, y_tree = tree_flatten(y)
        rows.append(leaves)
    if reverse:
        rows.reverse()
    stacks = [
        concatenate([expand_dims(y, (0,)) for y in column], 0) for column in zip(*rows, strict=True)
    ]
    return carry, y_tree.unflatten(stacks)
