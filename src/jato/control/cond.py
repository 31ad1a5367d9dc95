"""cond and switch: one of several graphs, chosen at run time.

    cond_p    operands: an int32 index (clamped), then the operands that all `branches` take

Every transform of a cond is a cond of the transformed branches; an index that is mapped runs all
branches and selects.  Start reading at `Cond`; `cond` and `switch` are the user's functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.config import config
from jato.base.errors import check
from jato.base.pytree import function_name
from jato.control.call import graph_axis_names, merge, pruned_graph
from jato.control.staged_functions import (
    Staged,
    convert_outputs,
    flat_values,
    match_types,
    trace_functions,
    unite_consts,
)
from jato.core.graph import Atom, Graph, Literal, Node, Var, evaluate
from jato.core.primitive import AxisData, Primitive, UndefinedPrimal
from jato.core.staging import trace_to_graph
from jato.core.types import ArrayType, Zero, type_of
from jato.ops.convert import convert_element_type
from jato.ops.reduction_family import Reduction
from jato.ops.arithmetic import CLAMP, clamp
from jato.ops.selection import GT, SELECT_N, eq, ne, select_n
from jato.ops.shapes import zeros
from jato.ops.structural import broadcast_in_dim
from jato.transforms.batching import batch_graph, with_dim
from jato.transforms.jvp import as_value, jvp_graph, zero_of
from jato.transforms.partial_eval import PartialEvalTrace, SplitGraph, split_graph
from jato.transforms.transpose import transpose_graph

_INDEX = np.dtype("int32")

# Branches of at most so many additions together, on arrays of so few elements, all run: a branch of
# the plan costs more, and a loop around it could not live in registers.
MOST_WORK = 128.0
MOST_ELEMENTS = 64


class Cond(Primitive):
    """`cond(index, *operands, branches)`."""

    multiple_results = True

    def type_rule(self, index: Any, *avals: Any, branches: tuple[Graph, ...]) -> Any:
        return branches[0].out_avals

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, branches: tuple[Graph, ...]
    ) -> tuple[list[Any], list[Any]]:
        nonzero = tuple(type(t) is not Zero for t in tangents[1:])
        first = [jvp_graph(b, nonzero) for b in branches]
        forced = union(*(d.out_nonzero for d in first))
        derivatives = [jvp_graph(b, nonzero, forced) for b in branches]
        graphs, consts = unite_consts([(d.graph, d.consts) for d in derivatives])
        given = [t for t in tangents[1:] if type(t) is not Zero]
        outs = self.bind(primals[0], *consts, *primals[1:], *given, branches=tuple(graphs))
        count = len(branches[0].outputs)
        found = iter(outs[count:])
        return outs[:count], [
            next(found) if nz else zero_of(a)
            for a, nz in zip(branches[0].out_avals, forced, strict=True)
        ]

    def batch(
        self,
        axis: AxisData,
        operands: Sequence[Any],
        dims: Sequence[int | None],
        *,
        branches: tuple[Graph, ...],
    ) -> tuple[list[Any], list[int | None]]:
        index, index_dim = operands[0], dims[0]
        if index_dim is not None:
            return self._select(axis, operands, dims, branches)
        first = [batch_graph(b, axis, dims[1:]) for b in branches]
        mapped = union(*([d is not None for d in b.out_dims] for b in first))
        batched = [batch_graph(b, axis, dims[1:], mapped) for b in branches]
        graphs, consts = unite_consts([(b.graph, b.consts) for b in batched])
        outs = self.bind(index, *consts, *operands[1:], branches=tuple(graphs))
        return outs, [0 if m else None for m in mapped]

    def _select(
        self,
        axis: AxisData,
        operands: Sequence[Any],
        dims: Sequence[int | None],
        branches: tuple[Graph, ...],
    ) -> tuple[list[Any], list[int | None]]:
        """A mapped index: every branch runs, each element selects its own."""
        index = with_dim(axis, operands[0], dims[0], 0)
        index = clamp(np.int32(0), index, np.int32(len(branches) - 1))
        everything = (True,) * len(branches[0].outputs)
        results: list[list[Any]] = []
        for branch in branches:
            batched = batch_graph(branch, axis, dims[1:], everything)
            results.append(evaluate(batched.graph, *batched.consts, *operands[1:]))
        return [select_by_index(index, cases) for cases in zip(*results, strict=True)], [0] * len(
            everything
        )

    def partial_eval(
        self, trace: PartialEvalTrace, args: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        if trace.is_unknown(args[0]):
            return NotImplemented
        branches: tuple[Graph, ...] = params["branches"]
        unknown = tuple(trace.is_unknown(x) for x in args[1:])
        out_unknown = union(*(split_graph(b, unknown).out_unknown for b in branches))
        halves = [split_graph(b, unknown, out_unknown) for b in branches]
        known_in = [x for x, u in zip(args[1:], unknown, strict=True) if not u]
        known_count = sum(not u for u in out_unknown)

        slots, places = residual_slots(halves)
        known_graphs, known_consts = unite_consts(
            [
                (with_residual_outputs(h, known_count, slots, p), h.known_consts)
                for h, p in zip(halves, places, strict=True)
            ]
        )
        known_out: list[Any] = []
        if known_count or slots:
            known_out = trace.known(
                self, [args[0], *known_consts, *known_in], {"branches": tuple(known_graphs)}
            )
        unknown_graphs, unknown_consts = unite_consts(
            [
                (from_residual_slots(h, known_in, slots, p), h.unknown_consts)
                for h, p in zip(halves, places, strict=True)
            ]
        )
        operands = [
            args[0],
            *unknown_consts,
            *known_in,
            *known_out[known_count:],
            *[x for x, u in zip(args[1:], unknown, strict=True) if u],
        ]
        unknown_out = trace.record(self, operands, {"branches": tuple(unknown_graphs)})
        return merge(out_unknown, unknown_out, known_out[:known_count])

    def transpose(
        self, cotangent: Sequence[Any], *operands: Any, branches: tuple[Graph, ...]
    ) -> list[Any]:
        linear = tuple(type(x) is UndefinedPrimal for x in operands[1:])
        given = tuple(type(ct) is not Zero for ct in cotangent)
        transposed = [transpose_graph(b, linear, given, True) for b in branches]
        graphs, consts = unite_consts([(t.graph, t.consts) for t in transposed])
        outs = self.bind(
            operands[0],
            *consts,
            *[x for x, is_linear in zip(operands[1:], linear, strict=True) if not is_linear],
            *[ct for ct, g in zip(cotangent, given, strict=True) if g],
            branches=tuple(graphs),
        )
        found = iter(outs)
        return [None, *(next(found) if is_linear else None for is_linear in linear)]

    def prune(self, node: Node, used: Sequence[bool]) -> Node:
        pruned = [pruned_graph(b, tuple(used)) for b in node.params["branches"]]
        needed = union(*(n for _, n in pruned))
        branches = tuple(
            Graph(
                [v for v, n in zip(b.inputs, needed, strict=True) if n],
                smaller.nodes,
                smaller.outputs,
                name=b.name,
            )
            for b, (smaller, _) in zip(node.params["branches"], pruned, strict=True)
        )
        inputs = [a for a, n in zip(node.inputs[1:], needed, strict=True) if n]
        outputs = [v for v, u in zip(node.outputs, used, strict=True) if u]
        return Node(self, [node.inputs[0], *inputs], outputs, {"branches": branches}, node.frame)

    def simplify(self, node: Node, rewriter: Any) -> Any:
        """Branches of little work on few numbers: all run, and a select takes one's results.

        cond(i, x; x + 1 | x * 2)   ->   select_n(i > 0, x + 1, x * 2)     inside of a kernel
        """
        index, *operands = node.inputs
        branches: tuple[Graph, ...] = node.params["branches"]
        if sum(map(work_of, branches)) > MOST_WORK:
            return None
        results = []
        for branch in branches:
            env: dict[Atom, Atom] = dict(zip(branch.inputs, operands, strict=True))
            for inner in branch.nodes:
                atoms = [env.get(a, a) for a in inner.inputs]
                env[inner.outputs[0]] = rewriter.bind(inner.primitive, *atoms, **inner.params)[0]
            results.append([env.get(a, a) for a in branch.outputs])
        if len(branches) == 1:
            return results[0]
        zero = Literal(0, index.aval)
        if len(branches) == 2:
            (which,) = rewriter.bind(GT, index, zero)
        else:
            last = Literal(len(branches) - 1, index.aval)
            (which,) = rewriter.bind(CLAMP, zero, index, last)
        return [
            cases[0]
            if all(a is cases[0] for a in cases)
            else rewriter.bind(SELECT_N, which, *cases)[0]
            for cases in zip(*results, strict=True)
        ]

    def plan(self, context: Any, node: Node) -> None:
        index, *operands = node.inputs
        context.branch(index, node.params["branches"], operands, node.outputs)

    def reference(self, index: Any, *operands: Any, branches: tuple[Graph, ...]) -> list[Any]:
        chosen = min(max(int(index), 0), len(branches) - 1)
        return evaluate(branches[chosen], *operands)

    def subgraphs(self, params: dict[str, Any]) -> Sequence[Graph]:
        return params["branches"]

    def axis_names(self, params: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(n for b in params["branches"] for n in graph_axis_names(b)))


cond_p = Cond("cond")


def work_of(branch: Graph) -> float:
    """Additions that it takes to run a branch inside of a kernel; infinite where it cannot."""
    total = 0.0
    values = [*branch.outputs, *(v for n in branch.nodes for v in n.outputs)]
    if branch.constvars or any(v.aval.size > MOST_ELEMENTS for v in values):
        return inf
    for node in branch.nodes:
        primitive = node.primitive
        if not primitive.fusable or primitive.rereads or len(node.outputs) != 1:
            return inf
        reduces = isinstance(primitive, Reduction)
        total += primitive.cost * (node.inputs if reduces else node.outputs)[0].aval.size
    return total


def union(*masks: Sequence[bool]) -> tuple[bool, ...]:
    return tuple(any(column) for column in zip(*masks, strict=True))


def select_by_index(index: Any, cases: Sequence[Any]) -> Any:
    """Element i of the first axis from cases[index[i]]."""
    aval = type_of(cases[0])
    which = broadcast_in_dim(index, aval.shape, (0,))
    if len(cases) == 2:
        return select_n(ne(which, broadcast_in_dim(np.int32(0), aval.shape, ())), *cases)
    result = cases[0]
    for i, case in enumerate(cases[1:], 1):
        chosen = eq(which, broadcast_in_dim(np.int32(i), aval.shape, ()))
        result = select_n(chosen, result, case)
    return result


# ---- residuals of branches: each branch has its own, they share slots by type


def residual_slots(halves: Sequence[SplitGraph]) -> tuple[list[Any], list[dict[int, int]]]:
    """(types of the slots, for each branch: position among its known outputs -> slot)."""
    slots: list[Any] = []
    places: list[dict[int, int]] = []
    for half in halves:
        free = list(range(len(slots)))
        place: dict[int, int] = {}
        for position in sorted({r.index for r in half.residuals if not r.is_input}):
            aval = half.known.outputs[position].aval
            slot = next((s for s in free if slots[s] is aval), None)
            if slot is None:
                slot = len(slots)
                slots.append(aval)
            else:
                free.remove(slot)
            place[position] = slot
        places.append(place)
    return slots, places


def with_residual_outputs(
    half: SplitGraph, known_count: int, slots: Sequence[Any], place: dict[int, int]
) -> Graph:
    """The known part of a branch: known outputs, then all slots, zeros where it has no value."""
    from_slot = {slot: position for position, slot in place.items()}
    graph = half.known
    nodes = list(graph.nodes)
    outputs = graph.outputs[:known_count]
    for slot, aval in enumerate(slots):
        if slot in from_slot:
            outputs.append(graph.outputs[from_slot[slot]])
            continue
        filler = zero_node(aval)
        nodes.append(filler)
        outputs.append(filler.outputs[0])
    return Graph(graph.inputs, nodes, outputs, name=graph.name)


def zero_node(aval: Any) -> Node:
    """The node that makes zeros of a type."""
    node = trace_to_graph(lambda: [zeros(aval)], [], "zeros", "cond").nodes[0]
    return Node(node.primitive, node.inputs, [Var(aval)], node.params)


def from_residual_slots(
    half: SplitGraph,
    known_in: Sequence[Any],
    slots: Sequence[Any],
    place: dict[int, int],
) -> Graph:
    """The unknown part of a branch: consts, known inputs, slots, unknown inputs -> outputs."""
    const_count = len(half.unknown_consts)
    graph = half.unknown
    consts = graph.inputs[:const_count]
    residual_vars = graph.inputs[const_count : const_count + len(half.residuals)]
    inputs = [Var(type_of(x)) for x in known_in]
    slot_vars = [Var(t) for t in slots]
    for var, residual in zip(residual_vars, half.residuals, strict=True):
        if residual.is_input:
            inputs[residual.index] = var
        else:
            slot_vars[place[residual.index]] = var
    rest = graph.inputs[const_count + len(residual_vars) :]
    return Graph(consts + inputs + slot_vars + rest, graph.nodes, graph.outputs, name=graph.name)


# ---- the user's side


_NOT_GIVEN: Any = object()


def _operands(what: str, operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    if operand is _NOT_GIVEN:
        return operands
    check(not operands, TypeError, f"{what}: give operands by position or `operand`, not both")
    return (operand,)


def cond(
    pred: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = _NOT_GIVEN,
) -> Any:
    """true_fun(*operands) if pred else false_fun(*operands), chosen at run time.

    pred: a scalar bool or number.  Both functions are traced; they must give results of the same
    structure, shapes and dtypes.  Only one of them runs, unless `pred` is mapped by vmap.

    >>> import jato.numpy as jnp
    >>> float(cond(True, jnp.sin, jnp.cos, 0.0))
    0.0

    TypeError if pred is no scalar or the results differ, naming each leaf that does.
    """
    check(
        callable(true_fun) and callable(false_fun),
        TypeError,
        "cond: true_fun and false_fun must be functions",
    )
    operands = _operands("cond", operands, operand)
    choice = as_value(pred, lambda: "cond: pred")
    aval = type_of(choice)
    check(
        aval.shape == () and dtypes.code_of(aval.dtype) <= 14,
        TypeError,
        f"cond: pred must be a scalar bool or number, got {aval}. Try jnp.where for arrays.",
    )
    if config.jax_disable_jit:
        return true_fun(*operands) if bool(choice) else false_fun(*operands)
    if aval.dtype != np.dtype("bool"):
        choice = ne(choice, zeros(ArrayType((), aval.dtype_code, False)))
    index = convert_element_type(choice, _INDEX)
    return _choose("cond", index, [false_fun, true_fun], operands, reverse_names=True)


def switch(
    index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = _NOT_GIVEN
) -> Any:
    """branches[index](*operands), chosen at run time; the index is clamped into range.

    >>> import jato.numpy as jnp
    >>> float(switch(2, [jnp.sin, jnp.cos, jnp.exp], 0.0))
    1.0

    TypeError if the index is no integer scalar or results differ; ValueError without branches.
    """
    branches = list(branches)
    check(bool(branches), ValueError, "switch: branches must hold at least one function, got none")
    check(all(map(callable, branches)), TypeError, "switch: branches must be functions")
    operands = _operands("switch", operands, operand)
    choice = as_value(index, lambda: "switch: index")
    aval = type_of(choice)
    check(
        aval.shape == () and dtypes.is_integer(aval.dtype),
        TypeError,
        f"switch: index must be an integer scalar, got {aval}",
    )
    if len(branches) == 1:
        return branches[0](*operands)
    if config.jax_disable_jit:
        return branches[min(max(int(choice), 0), len(branches) - 1)](*operands)
    last = np.asarray(len(branches) - 1, aval.dtype)[()]
    zero = np.asarray(0, aval.dtype)[()]
    choice = convert_element_type(clamp(zero, choice, last), _INDEX)
    return _choose("switch", choice, branches, operands)


def _choose(
    what: str,
    index: Any,
    branches: Sequence[Callable[..., Any]],
    operands: tuple[Any, ...],
    reverse_names: bool = False,
) -> Any:
    values, args_tree = flat_values(f"{what}: operand ", operands)
    staged = trace_functions(what, branches, args_tree, [type_of(x) for x in values])
    names = [_branch_name(what, i, f) for i, f in enumerate(branches)]
    graphs = _matched(what, staged, names, reverse_names)
    outs = cond_p.bind(index, *staged.captured, *values, branches=tuple(graphs))
    return staged.out_trees[0].unflatten(outs)


def _branch_name(what: str, i: int, fun: Callable[..., Any]) -> str:
    role = ("false_fun", "true_fun")[i] if what == "cond" else f"branches[{i}]"
    return f"{role} ({function_name(fun)})"


def _matched(what: str, staged: Staged, names: list[str], reverse: bool) -> list[Graph]:
    """The branches, converted to common result types."""
    first = len(staged.graphs) - 1 if reverse else 0
    avals = staged.graphs[first].out_avals
    for i, graph in enumerate(staged.graphs):
        if i != first:
            avals = match_types(
                what,
                (names[first], staged.out_trees[first], avals),
                (names[i], staged.out_trees[i], graph.out_avals),
            )
    return [convert_outputs(g, avals) for g in staged.graphs]
