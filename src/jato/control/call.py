"""call: a graph as one operation.  What `jit` becomes under another transform.

    GraphCall    family of primitives that run the graph in their parameter `graph` (which has no
                 consts) on their operands; supplies every rule through the Graph -> Graph forms
                 of the transforms, each remembered as long as the graph lives
    call_p       its plain member

So `grad(jit(f))`, `jit(grad(f))` and `vmap(jit(grad(jit(f))))` need nothing special: each
transform of a call is a call of the transformed graph, which the compiler inlines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jato.base.caches import weakly_cached
from jato.base.errors import invariant
from jato.core.graph import Graph, Node, Var, evaluate
from jato.core.graph_dce import eliminate_dead_code
from jato.core.primitive import AxisData, Primitive, UndefinedPrimal
from jato.core.types import Zero
from jato.transforms.batching import batch_graph
from jato.transforms.jvp import jvp_graph, zero_of
from jato.transforms.partial_eval import PartialEvalTrace, split_graph
from jato.transforms.transpose import transpose_graph


class GraphCall(Primitive):
    """Runs `graph`; all other parameters are handed on to the transformed calls."""

    multiple_results = True

    def type_rule(self, *avals: Any, graph: Graph, **params: Any) -> Any:
        invariant(
            len(avals) == len(graph.inputs) and not graph.consts,
            f"{self.name} of {graph.name}: {len(avals)} operands for {len(graph.inputs)} inputs",
        )
        return graph.out_avals

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        graph: Graph,
        **params: Any,
    ) -> tuple[list[Any], list[Any]]:
        derivative = jvp_graph(graph, tuple(type(t) is not Zero for t in tangents))
        given = [t for t in tangents if type(t) is not Zero]
        outs = self.bind(*derivative.consts, *primals, *given, graph=derivative.graph, **params)
        count = len(graph.outputs)
        found = iter(outs[count:])
        return outs[:count], [
            next(found) if nonzero else zero_of(atom.aval)
            for atom, nonzero in zip(graph.outputs, derivative.out_nonzero, strict=True)
        ]

    def partial_eval(
        self, trace: PartialEvalTrace, args: Sequence[Any], params: dict[str, Any]
    ) -> list[Any]:
        unknown = tuple(trace.is_unknown(x) for x in args)
        halves = split_graph(params["graph"], unknown)
        known_in = [x for x, u in zip(args, unknown, strict=True) if not u]
        known_out: list[Any] = []
        if halves.known.outputs:
            known_out = trace.known(
                self,
                [*halves.known_consts, *known_in],
                {**params, "graph": halves.known},
            )
        unknown_out: list[Any] = []
        if halves.unknown.outputs:
            operands = [
                *halves.unknown_consts,
                *halves.residual_values(known_in, known_out),
                *[x for x, u in zip(args, unknown, strict=True) if u],
            ]
            unknown_out = trace.record(self, operands, {**params, "graph": halves.unknown})
        return merge(halves.out_unknown, unknown_out, known_out)

    def transpose(
        self, cotangent: Sequence[Any], *operands: Any, graph: Graph, **params: Any
    ) -> list[Any]:
        linear = tuple(type(x) is UndefinedPrimal for x in operands)
        given = tuple(type(ct) is not Zero for ct in cotangent)
        backwards = transpose_graph(graph, linear, given)
        outs: list[Any] = []
        if backwards.graph.outputs:
            outs = self.bind(
                *backwards.consts,
                *[x for x, is_linear in zip(operands, linear, strict=True) if not is_linear],
                *[ct for ct, g in zip(cotangent, given, strict=True) if g],
                graph=backwards.graph,
                **params,
            )
        found, nonzero = iter(outs), iter(backwards.nonzero)
        return [
            (next(found) if next(nonzero) else zero_of(x.aval)) if is_linear else None
            for x, is_linear in zip(operands, linear, strict=True)
        ]

    def batch(
        self,
        axis: AxisData,
        operands: Sequence[Any],
        dims: Sequence[Any],
        *,
        graph: Graph,
        **params: Any,
    ) -> tuple[list[Any], Sequence[Any]]:
        batched = batch_graph(graph, axis, dims)
        outs = self.bind(*batched.consts, *operands, graph=batched.graph, **params)
        return outs, batched.out_dims

    def expand(self, *operands: Any, graph: Graph, **params: Any) -> list[Any]:
        return evaluate(graph, *operands)

    def subgraphs(self, params: dict[str, Any]) -> Sequence[Graph]:
        return (params["graph"],)

    def axis_names(self, params: dict[str, Any]) -> tuple[Any, ...]:
        return graph_axis_names(params["graph"])

    def prune(self, node: Node, used: Sequence[bool]) -> Node:
        smaller, needed = pruned_graph(node.params["graph"], tuple(used))
        inputs = [a for a, n in zip(node.inputs, needed, strict=True) if n]
        outputs = [v for v, u in zip(node.outputs, used, strict=True) if u]
        params = {**node.params, "graph": smaller}
        return Node(node.primitive, inputs, outputs, params, node.frame)


class Call(GraphCall):
    """`call(*operands, graph, name)`."""


call_p = Call("call")


def call(graph: Graph, *operands: Any, name: str | None = None) -> list[Any]:
    """Runs a graph as one operation; its consts become operands."""
    closed = graph
    if graph.consts:
        closed = Graph(graph.constvars + graph.inputs, graph.nodes, graph.outputs, name=graph.name)
        operands = (*graph.consts, *operands)
    return call_p.bind(*operands, graph=closed, name=name or graph.name)


@weakly_cached()
def without_calls(graph: Graph) -> Graph:
    """The graph with the operations of each call in its place."""
    if not any(node.primitive is call_p for node in graph.nodes):
        return graph
    nodes: list[Node] = []

    def splice(part: Graph, names: dict[Any, Any]) -> list[Any]:
        """Appends the nodes of a graph whose inputs have these names; gives its results."""
        for node in part.nodes:
            atoms = [names.get(a, a) if type(a) is Var else a for a in node.inputs]
            if node.primitive is call_p:
                inner = node.params["graph"]
                outs = splice(inner, dict(zip(inner.inputs, atoms, strict=True)))
            else:
                outs = [Var(v.aval) for v in node.outputs]
                nodes.append(Node(node.primitive, atoms, outs, node.params, node.frame))
            names.update(zip(node.outputs, outs, strict=True))
        return [names.get(a, a) if type(a) is Var else a for a in part.outputs]

    outputs = splice(graph, {})
    return Graph(graph.inputs, nodes, outputs, graph.constvars, graph.consts, graph.name)


def merge(mask: Sequence[bool], where_true: Sequence[Any], where_false: Sequence[Any]) -> list[Any]:
    """Interleaves two lists: an item of the first where the mask is true, else of the second."""
    first, second = iter(where_true), iter(where_false)
    return [next(first) if m else next(second) for m in mask]


@weakly_cached()
def pruned_graph(graph: Graph, used: tuple[bool, ...]) -> tuple[Graph, list[bool]]:
    """(graph computing the outputs marked `used` from the inputs it needs, which those are)."""
    return eliminate_dead_code(graph, used, keep_inputs=False)


@weakly_cached()
def graph_axis_names(graph: Graph) -> tuple[Any, ...]:
    """Names of the mapped axes that operations of the graph communicate over."""
    names: dict[Any, None] = {}
    for node in graph.nodes:
        names.update(dict.fromkeys(node.primitive.axis_names(node.params)))
    return tuple(names)
