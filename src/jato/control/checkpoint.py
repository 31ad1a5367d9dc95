"""checkpoint (remat): saves memory in reverse mode by computing intermediate values twice.

    checkpoint_p      a GraphCall whose partial evaluation stores its inputs as residuals, and
                      those intermediate values that the policy allows, and recomputes the rest
    policies          functions (primitive, *operand types, **params) -> may the result be stored?
    checkpoint_name   names a value for the policies that go by name

Start reading at `Checkpoint.partial_eval`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from jato.base.caches import weakly_cached
from jato.base.errors import check
from jato.base.pytree import FlatFunction, function_name, tree_flatten
from jato.base.signatures import leaf_names
from jato.control.call import GraphCall, merge, without_calls
from jato.control.scan_primitive import scan_p, stacked
from jato.core.graph import Graph, Node, Var, constants_to_inputs
from jato.core.graph_print import short_type
from jato.core.graph_dce import eliminate_dead_code
from jato.core.primitive import AxisData, Primitive
from jato.core.staging import trace_to_graph
from jato.core.types import type_of
from jato.ops.shapes import BARRIER
from jato.transforms.jvp import as_value
from jato.transforms.linearize import linearize_flat
from jato.transforms.partial_eval import PartialEvalTrace, SplitGraph, split_graph

Policy = Callable[..., Any]


# ---- names and policies


class Verdict:
    """What a policy may answer instead of a bool."""

    def __init__(self, name: str, stores: bool):
        self.name, self.stores = name, stores

    def __bool__(self) -> bool:
        return self.stores

    def __repr__(self) -> str:
        return self.name


Saveable = Verdict("Saveable", True)
Recompute = Verdict("Recompute", False)


class Offloadable(NamedTuple):
    """A policy's answer for a value to store in another memory; here it is the same memory."""

    src: str
    dst: str


class Name(Primitive):
    """The identity, with a name that policies can look at."""

    def type_rule(self, x: Any, *, name: str) -> Any:
        return x

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, name: str) -> Any:
        return self.bind(primals[0], name=name), tangents[0]

    def transpose(self, cotangent: Any, x: Any, *, name: str) -> Sequence[Any]:
        return [cotangent]

    def batch(self, axis: AxisData, operands: Any, dims: Any, *, name: str) -> Any:
        return self.bind(operands[0], name=name), dims[0]

    def expand(self, x: Any, *, name: str) -> Any:
        return x

    def reference(self, x: Any, *, name: str) -> Any:
        return x


name_p = Name("name")


def checkpoint_name(x: Any, name: str) -> Any:
    """`x` (a pytree), with a name for `checkpoint_policies.save_only_these_names` and others."""
    check(
        isinstance(name, str),
        TypeError,
        f"checkpoint_name: name must be a string, got {name!r}",
    )
    leaves, treedef = tree_flatten(x)
    return treedef.unflatten([name_p.bind(leaf, name=name) for leaf in leaves])


def _everything(primitive: Primitive, *avals: Any, **params: Any) -> bool:
    return True


def _nothing(primitive: Primitive, *avals: Any, **params: Any) -> bool:
    return False


def _dots(primitive: Primitive, *avals: Any, **params: Any) -> bool:
    return primitive.name in ("dot_general", "conv_general_dilated")


def _dots_without_batch(primitive: Primitive, *avals: Any, **params: Any) -> bool:
    if primitive.name != "dot_general":
        return False
    _, (lhs_batch, rhs_batch) = params["dimension_numbers"]
    return not lhs_batch and not rhs_batch


def _only_names(*names: str) -> Policy:
    """Stores only values with one of these names."""
    chosen = frozenset(names)

    def policy(primitive: Primitive, *avals: Any, **params: Any) -> bool:
        return primitive is name_p and params["name"] in chosen

    return policy


def _any_names_but(*names: str) -> Policy:
    """Stores only named values, except those with one of these names."""
    excluded = frozenset(names)

    def policy(primitive: Primitive, *avals: Any, **params: Any) -> bool:
        return primitive is name_p and params["name"] not in excluded

    return policy


def _anything_except_names(*names: str) -> Policy:
    """Stores everything but values with one of these names."""
    excluded = frozenset(names)

    def policy(primitive: Primitive, *avals: Any, **params: Any) -> bool:
        return primitive is not name_p or params["name"] not in excluded

    return policy


def _from_both(first: Policy, second: Policy) -> Policy:
    """Stores what either policy stores."""

    def policy(primitive: Primitive, *avals: Any, **params: Any) -> bool:
        return bool(first(primitive, *avals, **params)) or bool(second(primitive, *avals, **params))

    return policy


def _offloading(source: str, target: str) -> None:
    memories = ("device", "pinned_host", "unpinned_host")
    for what, memory in (("source", source), ("target", target)):
        check(
            memory in memories,
            ValueError,
            f"checkpoint_policies: the {what} of offloading must be one of {memories}, got "
            f"{memory!r}",
        )


def _offload_dots_without_batch(offload_src: str, offload_dst: str) -> Policy:
    """Stores products without batch axes: device and host share one memory."""
    _offloading(offload_src, offload_dst)
    return _dots_without_batch


def _save_and_offload(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Stores values with a name of either list: device and host share one memory."""
    _offloading(offload_src, offload_dst)
    both = set(names_which_can_be_saved) & set(names_which_can_be_offloaded)
    check(
        not both,
        ValueError,
        f"save_and_offload_only_these_names: {sorted(both)} cannot be both saved and offloaded",
    )
    return _only_names(*names_which_can_be_saved, *names_which_can_be_offloaded)


checkpoint_policies = SimpleNamespace(
    everything_saveable=_everything,
    nothing_saveable=_nothing,
    dots_saveable=_dots,
    checkpoint_dots=_dots,
    dots_with_no_batch_dims_saveable=_dots_without_batch,
    checkpoint_dots_with_no_batch_dims=_dots_without_batch,
    save_only_these_names=_only_names,
    save_any_names_but_these=_any_names_but,
    save_anything_except_these_names=_anything_except_names,
    save_from_both_policies=_from_both,
    offload_dot_with_no_batch_dims=_offload_dots_without_batch,
    save_and_offload_only_these_names=_save_and_offload,
)


# ---- the primitive


class RecomputingSplit(NamedTuple):
    """known: consts, known inputs -> known outputs, stored values.
    unknown: consts, known inputs it needs (`needed`), stored values, unknown inputs -> unknown outs.
    """

    known: Graph
    known_consts: tuple[Any, ...]
    unknown: Graph
    unknown_consts: tuple[Any, ...]
    needed: tuple[bool, ...]
    stored: int
    out_unknown: tuple[bool, ...]


@weakly_cached()
def recomputing_split(
    graph: Graph, unknown: tuple[bool, ...], policy: Policy, prevent_cse: bool
) -> RecomputingSplit:
    """Splits a graph so that the unknown part recomputes what the policy does not store.

    prevent_cse: barriers keep what is recomputed apart from what was computed before."""
    if policy is not _nothing:
        graph = without_calls(graph)  # the policy decides about what jitted functions compute too
    halves = split_graph(graph, unknown)
    known_count = sum(not u for u in halves.out_unknown)
    first_nodes, stored_vars, remaining = _divide(halves.known, policy)
    recompute = _recomputation(halves, stored_vars, remaining)
    width = len(halves.known.inputs)  # leading known consts included
    smaller, needed = eliminate_dead_code(recompute, keep_inputs=False)
    needs_known = needed[:width]
    needs_stored = needed[width : width + len(stored_vars)]
    stored_vars = [v for v, n in zip(stored_vars, needs_stored, strict=True) if n]
    # consts and unknown inputs that died must stay inputs: the caller passes them
    fixed = needed[width + len(needs_stored) :]
    if not all(fixed):
        kept = recompute.inputs[width + len(needs_stored) :]
        smaller = Graph(
            smaller.inputs[: sum(needed[: width + len(needs_stored)])] + kept,
            smaller.nodes,
            smaller.outputs,
            name=graph.name,
        )
    if prevent_cse:
        smaller = _with_barriers(smaller, sum(needs_known))
    known = Graph(
        halves.known.inputs,
        first_nodes,
        halves.known.outputs[:known_count] + stored_vars,
        name=graph.name,
    )
    return RecomputingSplit(
        eliminate_dead_code(known)[0],
        halves.known_consts,
        smaller,
        halves.unknown_consts,
        tuple(needs_known),
        len(stored_vars),
        halves.out_unknown,
    )


def _divide(graph: Graph, policy: Policy) -> tuple[list[Node], list[Var], list[Node]]:
    """(nodes of the first run, results the policy stores, nodes that are run again)."""
    first: list[Node] = []
    stored: list[Var] = []
    remaining: list[Node] = []
    for node in graph.nodes:
        if _is_stored(node, policy):
            first.append(node)
            stored.extend(node.outputs)
            continue
        twice = (node, [], node)
        if node.primitive is scan_p and policy is not _nothing:
            twice = _divided_scan(node, policy)
        first.append(twice[0])
        stored.extend(twice[1])
        remaining.append(twice[2])
    return first, stored, remaining


def _is_stored(node: Node, policy: Policy) -> bool:
    return bool(policy(node.primitive, *[a.aval for a in node.inputs], **node.params))


def _divided_scan(node: Node, policy: Policy) -> tuple[Node, list[Var], Node]:
    """(scan that stacks what the policy stores of each step, these stacks, scan that takes them)."""
    params = node.params
    body = without_calls(params["graph"])
    chosen = [n for n in body.nodes if _is_stored(n, policy)]
    values = [v for n in chosen for v in n.outputs]
    if not values:
        return node, [], node
    stacks = [Var(stacked(v.aval, params["length"])) for v in values]
    stacking = Graph(body.inputs, body.nodes, body.outputs + values, name=body.name)
    taken = set(chosen)
    rest = [n for n in body.nodes if n not in taken]
    taking = Graph(body.inputs + values, rest, body.outputs, name=body.name)
    forward = Node(
        scan_p, node.inputs, [*node.outputs, *stacks], {**params, "graph": stacking}, node.frame
    )
    again = Node(
        scan_p, [*node.inputs, *stacks], node.outputs, {**params, "graph": taking}, node.frame
    )
    return forward, stacks, again


def _recomputation(halves: SplitGraph, stored: list[Var], nodes: list[Node]) -> Graph:
    """known inputs, stored values, unknown consts, unknown inputs -> unknown outputs."""
    known, unknown = halves.known, halves.unknown
    const_count = len(halves.unknown_consts)
    first_input = len(halves.known_consts)
    residual_vars = unknown.inputs[const_count : const_count + len(halves.residuals)]
    names: dict[Any, Any] = {}
    for var, residual in zip(residual_vars, halves.residuals, strict=True):
        names[var] = (
            known.inputs[first_input + residual.index]
            if residual.is_input
            else known.outputs[residual.index]
        )

    def rename(atom: Any) -> Any:
        return names.get(atom, atom)

    renamed = [
        Node(n.primitive, [rename(a) for a in n.inputs], n.outputs, n.params, n.frame)
        for n in unknown.nodes
    ]
    rest = unknown.inputs[:const_count] + unknown.inputs[const_count + len(residual_vars) :]
    return Graph(
        known.inputs + stored + rest,
        nodes + renamed,
        [rename(a) for a in unknown.outputs],
        name=known.name,
    )


def _with_barriers(graph: Graph, count: int) -> Graph:
    """A graph in which the first `count` inputs are read through barriers."""
    behind = {v: Var(v.aval) for v in graph.inputs[:count]}

    def read(atom: Any) -> Any:
        return behind.get(atom, atom) if type(atom) is Var else atom

    barriers = [Node(BARRIER, [v], [w], {}) for v, w in behind.items()]
    nodes = [
        Node(n.primitive, [read(a) for a in n.inputs], n.outputs, n.params, n.frame)
        for n in graph.nodes
    ]
    return Graph(graph.inputs, barriers + nodes, [read(a) for a in graph.outputs], name=graph.name)


class Checkpoint(GraphCall):
    """`checkpoint(*operands, graph, name, policy, prevent_cse)`."""

    def partial_eval(
        self, trace: PartialEvalTrace, args: Sequence[Any], params: dict[str, Any]
    ) -> list[Any]:
        unknown = tuple(trace.is_unknown(x) for x in args)
        halves = recomputing_split(
            params["graph"], unknown, params["policy"], params["prevent_cse"]
        )
        known_in = [
            *halves.known_consts,
            *[x for x, u in zip(args, unknown, strict=True) if not u],
        ]
        known_out: list[Any] = []
        if halves.known.outputs:
            known_out = trace.known(self, known_in, {**params, "graph": halves.known})
        unknown_out: list[Any] = []
        if halves.unknown.outputs:
            operands = [
                *[x for x, n in zip(known_in, halves.needed, strict=True) if n],
                *known_out[len(known_out) - halves.stored :],
                *halves.unknown_consts,
                *[x for x, u in zip(args, unknown, strict=True) if u],
            ]
            unknown_out = trace.record(self, operands, {**params, "graph": halves.unknown})
        return merge(halves.out_unknown, unknown_out, known_out)


checkpoint_p = Checkpoint("checkpoint")


def _checked_prevent_cse(name: str, prevent_cse: Any, count: int | None = None) -> None:
    """One bool, or one for each argument."""
    single = isinstance(prevent_cse, bool)
    several = isinstance(prevent_cse, (tuple, list)) and all(
        isinstance(x, bool) for x in prevent_cse
    )
    check(
        single or several,
        TypeError,
        f"checkpoint of {name}: argument 'prevent_cse': expected a bool or a tuple of bools, got "
        f"{prevent_cse!r}",
    )
    check(
        single or count is None or len(prevent_cse) == count,
        ValueError,
        f"checkpoint of {name}: argument 'prevent_cse' has {not single and len(prevent_cse)} "
        f"entries, but the call has {count} arguments",
    )


def checkpoint(
    fun: Callable[..., Any],
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    concrete: bool = False,
) -> Callable[..., Any]:
    """`fun`, whose intermediate values are recomputed in the reverse pass instead of stored.

    policy: which values may be stored after all, one of `checkpoint_policies`; by default none.
    static_argnums, static_argnames: positions and names of arguments that are not arrays; a name
    counts where the argument is passed by keyword.  prevent_cse: whether values are computed again
    where both passes are compiled together, which would find them equal; False is for bodies of
    loops, whose passes are two loops.  A tuple has one bool for each argument; one True counts for
    all.  Also called `remat`.

    >>> from jato.transforms.grad import grad
    >>> float(grad(checkpoint(lambda x: x * x))(3.0))
    6.0

    TypeError if fun or policy is no function; ValueError for a position that a call does not have.
    """
    check(callable(fun), TypeError, f"checkpoint: expected a function, got {fun!r}")
    name = function_name(fun)
    check(
        not concrete,
        NotImplementedError,
        f"checkpoint of {name}: the concrete option does not exist any more; use static_argnums",
    )
    check(
        policy is None or callable(policy),
        TypeError,
        f"checkpoint of {name}: argument 'policy': expected a function such as those of "
        f"checkpoint_policies, got {policy!r}",
    )
    _checked_prevent_cse(name, prevent_cse)
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    chosen = policy if policy is not None else _nothing

    @functools.wraps(fun, updated=())
    def recomputed(*args: Any, **kwargs: Any) -> Any:
        check(
            all(-len(args) <= n < len(args) for n in numbers),
            ValueError,
            f"checkpoint of {name}: static_argnums are {numbers}, but the call has {len(args)} "
            "positional arguments",
        )
        fixed = {n % len(args) for n in numbers}
        fixed_named = {k: x for k, x in kwargs.items() if k in names}
        named = {k: x for k, x in kwargs.items() if k not in names}
        dynamic = [i for i in range(len(args)) if i not in fixed]
        given = tuple(args[i] for i in dynamic)
        _checked_prevent_cse(name, prevent_cse, len(args))

        def of_dynamic(*values: Any, **others: Any) -> Any:
            merged = list(args)
            for i, x in zip(dynamic, values, strict=True):
                merged[i] = x
            return fun(*merged, **others, **fixed_named)

        leaves, in_tree = tree_flatten((given, named))
        values = [
            as_value(
                x,
                lambda i=i: f"checkpoint of {name}: argument {leaf_names(fun, given, named)[i]}",
            )  # type: ignore[misc]
            for i, x in enumerate(leaves)
        ]
        flat = FlatFunction(of_dynamic, in_tree)
        traced = trace_to_graph(flat, [type_of(x) for x in values], name, "checkpoint")
        graph, consts = constants_to_inputs(traced)
        outs = checkpoint_p.bind(
            *consts,
            *values,
            graph=graph,
            name=name,
            policy=chosen,
            prevent_cse=prevent_cse if isinstance(prevent_cse, bool) else any(prevent_cse),
        )
        return flat.out_tree.unflatten(outs)

    return recomputed


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Prints the type of each value that the reverse pass of f(*args, **kwargs) stores, and which
    argument it is, if it is one.

    >>> import jato.numpy as jnp
    >>> print_saved_residuals(lambda x, y: jnp.sin(x) * y, 1.0, jnp.ones(2))
    f32[2] from the argument y
    f32[] computed in <lambda>
    f32[] computed in <lambda>
    """
    leaves, in_tree = tree_flatten((args, kwargs))
    values = [as_value(x, lambda: "print_saved_residuals: an argument") for x in leaves]
    flat = FlatFunction(f, in_tree)
    _, program, consts, _ = linearize_flat(flat, values, function_name(f))
    names = leaf_names(f, args, kwargs)
    rows = []
    for value in consts:
        known = [n for n, x in zip(names, values, strict=True) if x is value]
        place = f"from the argument {known[0]}" if known else f"computed in {function_name(f)}"
        rows.append((not known, f"{short_type(type_of(value))} {place}"))
    for _, row in sorted(rows, key=lambda r: r[0]):
        print(row)


remat = checkpoint
