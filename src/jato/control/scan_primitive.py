"""scan as a primitive: a loop that carries a value, takes slices of arrays and stacks results.

    scan_p    operands: consts, carry, xs (arrays with a leading axis of `length`)
              graph: consts, carry, slices of xs -> carry, slices of ys

Every transform of a scan is a scan.  Partial evaluation splits it into a scan of the known part,
which stacks the residuals, and one of the unknown part, which takes them as xs (scan_split.py);
transposed, that one runs backwards (scan_transpose.py).  Start reading at `Scan`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jato.control.call import graph_axis_names, merge, pruned_graph
from jato.control.cond import union
from jato.control.scan_split import divide
from jato.control.scan_transpose import linear_carry, transposed_body
from jato.core.graph import Graph, Node, evaluate
from jato.core.primitive import AxisData, Primitive, UndefinedPrimal
from jato.core.types import ArrayType, Zero, type_of
from jato.ops.shapes import instantiate, zeros
from jato.transforms.batching import batch_graph, with_dim
from jato.transforms.jvp import jvp_graph, zero_of
from jato.transforms.partial_eval import PartialEvalTrace


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
