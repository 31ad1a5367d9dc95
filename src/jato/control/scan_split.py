"""Partial evaluation of scans: two scans, of the known and of the unknown part.

The known one stacks the residuals, the unknown one takes them as xs.  Scalar residuals are kept as
one array, those of one structure next to each other.

Start reading at `divide`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from jato.base.caches import weakly_cached
from jato.control.call import graph_axis_names
from jato.control.cond import union
from jato.control.structure import MANY_SCALARS, kinds
from jato.core.graph import Graph, Var, evaluate
from jato.core.staging import trace_to_graph
from jato.core.types import ArrayType
from jato.ops.structural import concatenate, reshape, slice_in_dim
from jato.transforms.partial_eval import SplitGraph, split_graph


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
    many = [ks for ks in by_type.values() if len(ks) >= MANY_SCALARS]
    packs = [_by_kind(known, ks, len(residuals)) for ks in many]
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


def _by_kind(known: Graph, ks: Sequence[int], count: int) -> list[int]:
    """Residuals (numbers among the last `count` results) with those of the same structure next to
    each other: loops compute and use them together, as lanes of vectors."""
    atoms = known.outputs[len(known.outputs) - count :]
    kind = kinds(known, literals=True)
    if 4 * len({kind.get(atoms[k], -1) for k in ks}) > len(ks):  # each carry has its own constants
        kind = kinds(known, literals=False)
    first: dict[int, int] = {}
    for k in ks:
        first.setdefault(kind.get(atoms[k], -1), k)
    return sorted(ks, key=lambda k: (first[kind.get(atoms[k], -1)], k))


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
