"""Partial evaluation: runs what depends on known values only, records the rest as a Graph.

    PartialEvalTrace     its tracers are the unknown values; known ones are values of the parent
    split_graph          Graph -> a graph of the known part and one of the unknown part, joined by
                         residuals: known values that the unknown part needs

`linearize` runs jvp on top of it: primals known, tangents unknown.  Start reading at
`PartialEvalTrace.process`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from jato import _native
from jato.base.caches import weakly_cached
from jato.core.graph import (
    Atom,
    Graph,
    Literal,
    Node,
    Var,
    constants_to_inputs,
    evaluate,
)
from jato.core.graph_dce import eliminate_dead_code
from jato.core.primitive import Primitive
from jato.core.staging import GraphTrace, GraphTracer, trace_to_graph
from jato.core.trace import STATE, Trace, current_trace, set_trace


# The cost up to which a value is computed again rather than kept: an addition or a multiplication.
CHEAP = 2.0


class PartialEvalTrace(GraphTrace):
    """Records operations with an unknown operand; all others run under the parent."""

    def __init__(self, parent: Trace | None, name: str, what: str = "linearize"):
        super().__init__(parent, name, what)

    def new_unknown(self, aval: Any) -> GraphTracer:
        """A tracer for an unknown input."""
        return GraphTracer(self, Var(aval))

    def is_unknown(self, x: Any) -> bool:
        return type(x) is GraphTracer and x.owner is self

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        for x in args:
            if type(x) is GraphTracer and x.owner is self:
                break
        else:
            return self.known(primitive, args, params)
        out = primitive.partial_eval(self, args, params)
        return self.record(primitive, args, params) if out is NotImplemented else out

    def known(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Runs an operation on known values, under the parent."""
        parent = self.parent
        STATE.trace = parent
        if parent is None:
            _native.set_trace_active(False)
        try:
            return primitive.bind(*args, **params)
        finally:
            STATE.trace = self
            if parent is None:
                _native.set_trace_active(True)

    def record(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Adds an operation to the graph of the unknown part."""
        atoms = [
            x.variable if type(x) is GraphTracer and x.owner is self else self.atom(x) for x in args
        ]
        out = primitive.type_rule(*[a.aval for a in atoms], **params)
        if primitive.multiple_results:
            outs = [Var(t) for t in out]
            self.nodes.append(Node(primitive, atoms, outs, params, STATE.frame))
            return [GraphTracer(self, v) for v in outs]
        var = Var(out)
        self.nodes.append(Node(primitive, atoms, [var], params, STATE.frame))
        return GraphTracer(self, var)

    def to_graph(self, inputs: Sequence[GraphTracer], outs: Sequence[Any]) -> Graph:
        """What was recorded, as far as `outs` need it; known values became consts."""
        outputs = [self.atom(x) for x in outs]
        pairs = list(self.constants.values())
        graph = Graph(
            [t.variable for t in inputs],
            self.nodes,
            outputs,
            [var for _, var in pairs],
            [value for value, _ in pairs],
            self.name,
        )
        return eliminate_dead_code(graph)[0]


class Residual(NamedTuple):
    """Where a residual comes from: position `index` among the known inputs or known outputs."""

    is_input: bool
    index: int


class SplitGraph(NamedTuple):
    """The two halves of a graph.

    known:    known_consts, known inputs -> known outputs of the original, further residuals
    unknown:  unknown_consts, residuals, unknown inputs -> unknown outputs of the original
    """

    known: Graph
    known_consts: tuple[Any, ...]
    unknown: Graph
    unknown_consts: tuple[Any, ...]
    residuals: tuple[Residual, ...]
    out_unknown: tuple[bool, ...]

    def residual_values(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
        """The residuals, given the values of the known inputs and all outputs of `known`."""
        return [inputs[r.index] if r.is_input else outputs[r.index] for r in self.residuals]


@weakly_cached()
def split_graph(
    graph: Graph, unknown: tuple[bool, ...], instantiate: tuple[bool, ...] | None = None
) -> SplitGraph:
    """Splits a graph (without consts) by which inputs are unknown.

    Outputs marked in `instantiate` count as unknown even if they are not.  Residuals that are
    inputs of the known part are passed on as they are, not copied through it.
    """
    known_avals = [a for a, u in zip(graph.in_avals, unknown, strict=True) if not u]
    out_unknown: list[bool] = []
    recorded: Graph | None = None
    residual_vars: list[Var] = []
    residuals: list[Residual] = []

    def known_part(*known: Any) -> list[Any]:
        nonlocal recorded
        trace = PartialEvalTrace(current_trace(), graph.name, "partial evaluation")
        waiting = iter(known)
        unknowns: list[GraphTracer] = []
        args: list[Any] = []
        for aval, is_unknown in zip(graph.in_avals, unknown, strict=True):
            args.append(trace.new_unknown(aval) if is_unknown else next(waiting))
            if is_unknown:
                unknowns.append(args[-1])
        with set_trace(trace):
            outs = evaluate(graph, *args)
        forced = instantiate or (False,) * len(outs)
        out_unknown.extend(trace.is_unknown(x) or f for x, f in zip(outs, forced, strict=True))
        whole = trace.to_graph(unknowns, [x for x, u in zip(outs, out_unknown, strict=True) if u])
        trace.valid = False
        known_outs = [x for x, u in zip(outs, out_unknown, strict=True) if not u]
        recorded = _separate_residuals(whole, known, known_outs, residual_vars, residuals)
        return known_outs

    known_graph = trace_to_graph(known_part, known_avals, graph.name, "partial evaluation")
    assert recorded is not None
    known_closed, known_consts = constants_to_inputs(known_graph)
    unknown_closed = Graph(
        recorded.constvars + recorded.inputs, recorded.nodes, recorded.outputs, name=graph.name
    )
    split = SplitGraph(
        known_closed,
        tuple(known_consts),
        unknown_closed,
        tuple(recorded.consts),
        tuple(residuals),
        tuple(out_unknown),
    )
    return recompute_cheap_residuals(split)


def recompute_cheap_residuals(split: SplitGraph) -> SplitGraph:
    """A residual that takes an addition or so to compute from other residuals is not passed on.

    before:  known: b = 2 * a; pass a, b      after:  known: pass a;  unknown: b = 2 * a
    """
    known, unknown = split.known, split.unknown
    first = len(split.unknown_consts)
    variables = unknown.inputs[first : first + len(split.residuals)]
    inputs = known.inputs[len(split.known_consts) :]
    there: dict[Atom, Var] = {}  # a known value -> the same in the unknown part
    wanted: dict[Atom, Var] = {}
    for var, residual in zip(variables, split.residuals, strict=True):
        if residual.is_input:
            there[inputs[residual.index]] = var
        else:
            wanted[known.outputs[residual.index]] = var
    made: list[Node] = []
    for node in known.nodes:
        if not node.outputs or node.outputs[0] not in wanted:
            continue
        there[node.outputs[0]] = var = wanted[node.outputs[0]]
        if is_cheap(node) and all(type(a) is Literal or a in there for a in node.inputs):
            atoms = [a if type(a) is Literal else there[a] for a in node.inputs]
            made.append(Node(node.primitive, atoms, [var], node.params, node.frame))
    if not made:
        return split
    gone = {node.outputs[0] for node in made}
    kept = len(split.out_unknown) - sum(split.out_unknown)  # known results; residuals follow
    outputs = list(known.outputs[:kept])
    residuals: list[Residual] = []
    for var, residual in zip(variables, split.residuals, strict=True):
        if var in gone:
            continue
        if not residual.is_input and residual.index >= kept:
            outputs.append(known.outputs[residual.index])
            residual = Residual(False, len(outputs) - 1)
        residuals.append(residual)
    passed = [v for v in unknown.inputs if v not in gone]
    return split._replace(
        known=eliminate_dead_code(Graph(known.inputs, known.nodes, outputs, name=known.name))[0],
        unknown=Graph(passed, [*made, *unknown.nodes], unknown.outputs, name=unknown.name),
        residuals=tuple(residuals),
    )


def is_cheap(node: Node) -> bool:
    """Is the result worth computing twice rather than keeping?"""
    primitive = node.primitive
    return primitive.pointwise and primitive.cost <= CHEAP and len(node.outputs) == 1


def _separate_residuals(
    graph: Graph,
    known: Sequence[GraphTracer],
    known_outs: list[Any],
    residual_vars: list[Var],
    residuals: list[Residual],
) -> Graph:
    """Turns consts that are tracers of the known part into inputs; extends `known_outs` by those
    that are neither inputs nor outputs of it already."""
    sources: dict[Var, Residual] = {t.variable: Residual(True, i) for i, t in enumerate(known)}
    for i, x in enumerate(known_outs):
        if type(x) is GraphTracer:
            sources.setdefault(x.variable, Residual(False, i))
    renamed: dict[Var, Atom] = {}  # several tracers of one variable are one residual
    first: dict[Var, Var] = {}
    constants: list[tuple[Var, Any]] = []
    for var, value in zip(graph.constvars, graph.consts, strict=True):
        if type(value) is not GraphTracer:
            constants.append((var, value))
            continue
        if value.variable in first:
            renamed[var] = first[value.variable]
            continue
        first[value.variable] = var
        if value.variable not in sources:
            sources[value.variable] = Residual(False, len(known_outs))
            known_outs.append(value)
        residual_vars.append(var)
        residuals.append(sources[value.variable])
    return Graph(
        residual_vars + graph.inputs,
        [_renamed(n, renamed) for n in graph.nodes] if renamed else graph.nodes,
        [a if type(a) is Literal else renamed.get(a, a) for a in graph.outputs],  # type: ignore[arg-type]
        [v for v, _ in constants],
        [c for _, c in constants],
        graph.name,
    )


def _renamed(node: Node, names: dict[Var, Atom]) -> Node:
    inputs = [a if type(a) is Literal else names.get(a, a) for a in node.inputs]  # type: ignore[arg-type]
    return Node(node.primitive, inputs, node.outputs, node.params, node.frame)
