"""custom_jvp: a function whose forward derivative the user supplies.

    custom_jvp          the decorator; collects the rule, flattens a call, binds the primitive
    custom_jvp_call_p   operands are the flat differentiable arguments; `function` computes the
                        results (a Python function of flat values, or the Graph of it),
                        `rule(primals, tangents)` results and their tangents

The primitive is run, not traced, wherever that is possible: eagerly it is a plain call, under
jvp the rule runs on the values at hand (so Python control flow works as it does outside), under
vmap both are vectorized.  Only when a trace records a graph is `function` traced into one.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from jato.base.errors import check
from jato.base.pytree import (
    function_name,
    prefix_mismatch,
    tree_flatten,
    tree_map,
    tree_unflatten,
)
from jato.core.graph import Graph, constants_to_inputs, evaluate
from jato.core.graph_print import short_type
from jato.core.primitive import AxisData, Primitive
from jato.core.staging import GraphTrace, trace_to_graph
from jato.core.trace import STATE, Trace, Tracer, current_trace
from jato.core.types import Zero, tangent_type, type_of
from jato.transforms.batching import batch_flat, inserted, with_dim
from jato.transforms.jvp import as_value, tangent_in, tangent_out
from jato.transforms.partial_eval import PartialEvalTrace

FlatRule = Callable[[Sequence[Any], Sequence[Any]], tuple[list[Any], list[Any]]]


def records(trace: Trace, args: Sequence[Any]) -> bool:
    """Will the trace put an operation on these arguments into a graph?"""
    if isinstance(trace, PartialEvalTrace):
        return any(trace.is_unknown(x) for x in args)
    return isinstance(trace, GraphTrace)


def stage(
    function: Callable[..., list[Any]], args: Sequence[Any], name: str
) -> tuple[Graph, list[Any]]:
    """(graph of a flat function without consts, what it captured)."""
    traced = trace_to_graph(function, [type_of(x) for x in args], name, "custom derivative of")
    return constants_to_inputs(traced)


def run(function: Graph | Callable[..., list[Any]], args: Sequence[Any]) -> list[Any]:
    return evaluate(function, *args) if isinstance(function, Graph) else function(*args)


class CustomJVPCall(Primitive):
    """See the module's docstring.  `captured`: how many leading operands are values that
    `function` captured when it was traced; the rule does not take them."""

    multiple_results = True

    def bind(self, *args: Any, **params: Any) -> list[Any]:
        trace = STATE.trace
        function = params["function"]
        if trace is None:
            return run(function, args)
        if records(trace, args) and not isinstance(function, Graph):
            graph, consts = stage(function, args, params["name"])
            params = {**params, "function": graph, "captured": len(consts)}
            return trace.process(self, (*consts, *args), params)
        return trace.process(self, args, params)

    def type_rule(self, *avals: Any, function: Graph, **params: Any) -> Any:
        return function.out_avals

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        function: Any,
        rule: FlatRule,
        captured: int,
        name: str,
    ) -> tuple[list[Any], list[Any]]:
        check_captured(name, tangents[:captured], "custom_jvp")
        return rule(primals[captured:], tangents[captured:])

    def batch(
        self,
        axis: AxisData,
        operands: Sequence[Any],
        dims: Sequence[int | None],
        *,
        function: Any,
        rule: FlatRule,
        captured: int,
        name: str,
    ) -> tuple[list[Any], list[int]]:
        def batched(*values: Any) -> list[Any]:
            return batched_outs(axis, lambda *xs: run(function, xs), values, dims)

        def batched_rule(
            primals: Sequence[Any], tangents: Sequence[Any]
        ) -> tuple[list[Any], list[Any]]:
            nonzero = [type(t) is not Zero for t in tangents]
            zeros: list[Zero | None] = []

            def flat(*values: Any) -> list[Any]:
                given = iter(values[len(primals) :])
                inner = [
                    next(given) if nz else Zero(tangent_type(type_of(x)))
                    for x, nz in zip(values[: len(primals)], nonzero, strict=True)
                ]
                outs, out_tangents = rule(values[: len(primals)], inner)
                zeros[:] = [t if type(t) is Zero else None for t in out_tangents]
                return outs + [t for t in out_tangents if type(t) is not Zero]

            mapped = list(dims[captured:])
            given = [t for t, nz in zip(tangents, nonzero, strict=True) if nz]
            given_dims = [d for d, nz in zip(mapped, nonzero, strict=True) if nz]
            found = batched_outs(axis, flat, [*primals, *given], mapped + given_dims)
            outs, rest = found[: len(zeros)], iter(found[len(zeros) :])
            return outs, [
                next(rest) if z is None else Zero(inserted(z.aval, axis.size, 0)) for z in zeros
            ]

        outs = self.bind(
            *operands, function=batched, rule=batched_rule, captured=captured, name=name
        )
        return outs, [0] * len(outs)

    def expand(self, *operands: Any, function: Graph, **params: Any) -> list[Any]:
        return evaluate(function, *operands)

    def subgraphs(self, params: dict[str, Any]) -> Sequence[Graph]:
        return (params["function"],) if isinstance(params["function"], Graph) else ()


custom_jvp_call_p = CustomJVPCall("custom_jvp_call")


def batched_outs(
    axis: AxisData,
    function: Callable[..., list[Any]],
    values: Sequence[Any],
    dims: Sequence[int | None],
) -> list[Any]:
    """The results of a function over a mapped axis, all with the mapped axis first."""
    outs, out_dims = batch_flat(function, axis, values, dims)
    return [with_dim(axis, x, d, 0) for x, d in zip(outs, out_dims, strict=True)]


def check_captured(name: str, tangents: Sequence[Any], kind: str) -> None:
    check(
        all(type(t) is Zero for t in tangents),
        TypeError,
        f"{kind} function {name} captured a value that is being differentiated, and its rule "
        "cannot give a derivative for it. Pass the value as an argument.",
    )


# ---- the decorator


class Signature:
    """Finds the positional form of calls; `inspect.signature` costs 20 us, so it is kept."""

    def __init__(self, fun: Callable[..., Any]):
        self.fun = fun
        self.signature: inspect.Signature | None = None
        self.exact = -1  # number of arguments of a call that is already in positional form
        try:
            self.signature = inspect.signature(fun)
        except (TypeError, ValueError):
            return
        kinds = [p.kind for p in self.signature.parameters.values()]
        if all(k in (k.POSITIONAL_ONLY, k.POSITIONAL_OR_KEYWORD) for k in kinds):
            self.exact = len(kinds)

    def positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The call's arguments by position, defaults filled in.  TypeError for keyword-only ones."""
        if not kwargs and (len(args) == self.exact or self.signature is None):
            return args
        name = function_name(self.fun)
        if self.signature is None:
            raise TypeError(
                f"{name}: its signature is unknown, so arguments of a function with a custom "
                "derivative must be passed by position"
            )
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"{name}: keyword-only arguments ({', '.join(bound.kwargs)}) are not possible in "
                "a function with a custom derivative. Make them positional."
            )
        return bound.args


def split_arguments(
    fun: Callable[..., Any], args: tuple[Any, ...], nondiff: Sequence[int]
) -> tuple[list[Any], list[Any], list[int]]:
    """(differentiable arguments, the others, positions of the differentiable ones)."""
    static = {n % len(args) for n in nondiff if -len(args) <= n < len(args)}
    places = [i for i in range(len(args)) if i not in static]
    return [args[i] for i in places], [args[i] for i in sorted(static)], places


def nondiff_positions(
    fun: Callable[..., Any], nondiff_argnums: Any, nondiff_argnames: Any
) -> tuple[int, ...]:
    """All positions named by number or by name."""
    numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
    names = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else tuple(nondiff_argnames)
    if names:
        parameters = list(inspect.signature(fun).parameters)
        for name in names:
            check(
                name in parameters,
                ValueError,
                f"{function_name(fun)} has no argument '{name}' (nondiff_argnames)",
            )
            numbers = (*numbers, parameters.index(name))
    return tuple(sorted(set(numbers)))


def merged_arguments(places: Sequence[int], given: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    merged = list(args)
    for i, x in zip(places, given, strict=True):
        merged[i] = x
    return merged


class SymbolicZero:
    """What a rule made with symbolic_zeros=True receives for a tangent that is zero."""

    def __init__(self, aval: Any):
        self.aval = aval
        self.shape, self.dtype, self.ndim = aval.shape, aval.dtype, aval.ndim

    def __repr__(self) -> str:
        return f"SymbolicZero({short_type(self.aval)})"


class custom_jvp:
    """A function with a forward derivative of the user's making.

    The rule takes (primals, tangents), two tuples shaped like the arguments, and gives
    (result, tangent of the result).  Arguments in `nondiff_argnums` (or `nondiff_argnames`) are
    passed to the rule first, as they are.

    >>> import jato.numpy as jnp
    >>> @custom_jvp
    ... def cube(x):
    ...     return x * x * x
    >>> @cube.defjvp
    ... def cube_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return cube(x), 3 * x * x * t

    Raises AttributeError when called before a rule is defined.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.signature = Signature(fun)
        self.nondiff_argnums = nondiff_positions(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Sets the rule and returns it, so that it is a decorator."""
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """One function per argument: jvp(tangent, result, *arguments); None for no dependence.

        The tangents of all arguments are summed."""
        check(
            not self.nondiff_argnums,
            TypeError,
            f"defjvps of {function_name(self.fun)} does not go with nondiff_argnums; use defjvp",
        )

        def jvp(primals: Any, tangents: Any) -> Any:
            result = self(*primals)
            zeros = tree_map(lambda x: tangent_out(Zero(tangent_type(type_of(x)))), result)
            terms = [
                rule(tangent, result, *primals)
                for rule, tangent in zip(jvps, tangents, strict=True)
                if rule is not None
            ]
            total = (
                functools.reduce(lambda a, b: tree_map(lambda x, y: x + y, a, b), terms)
                if terms
                else zeros
            )
            return result, total

        self.defjvp(jvp)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None:
            raise AttributeError(
                f"custom_jvp function {function_name(self.fun)} has no derivative rule; "
                "define one with defjvp"
            )
        if current_trace() is None:
            return self.fun(*args, **kwargs)
        name = function_name(self.fun)
        args = self.signature.positional(args, kwargs)
        diff, static, places = split_arguments(self.fun, args, self.nondiff_argnums)
        leaves, in_tree = tree_flatten(tuple(diff))
        values = [as_value(x, lambda: f"{name}: an argument") for x in leaves]
        out_trees: list[Any] = []

        def function(*flat: Any) -> list[Any]:
            given = tree_unflatten(in_tree, flat)
            out = self.fun(*merged_arguments(places, given, args))
            outs, tree = tree_flatten(out)
            out_trees.append(tree)
            return [as_value(x, lambda: f"{name}: a result") for x in outs]

        def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            return self._run_rule(name, static, in_tree, primals, tangents, out_trees)

        outs = custom_jvp_call_p.bind(*values, function=function, rule=rule, captured=0, name=name)
        return out_trees[-1].unflatten(outs)

    def _run_rule(
        self,
        name: str,
        static: list[Any],
        in_tree: Any,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        out_trees: list[Any],
    ) -> tuple[list[Any], list[Any]]:
        assert self.jvp is not None
        given = [
            (SymbolicZero(t.aval) if type(t) is Zero else t)
            if self.symbolic_zeros
            else tangent_out(t)
            for t in tangents
        ]
        pair = self.jvp(*static, tree_unflatten(in_tree, primals), tree_unflatten(in_tree, given))
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
            raise TypeError(
                f"the jvp rule of {name} must return (result, tangent), got {type(pair).__name__}"
            )
        outs, out_tree = tree_flatten(pair[0])
        out_tangents, tangent_tree = tree_flatten(pair[1], lambda x: isinstance(x, SymbolicZero))
        if out_tree != tangent_tree:
            problem = prefix_mismatch(pair[0], pair[1]) or f": {out_tree} against {tangent_tree}"
            raise TypeError(
                f"the jvp rule of {name} must return a tangent of the result's structure{problem}"
            )
        out_trees.append(out_tree)
        outs = [as_value(x, lambda: f"the jvp rule of {name}: a result") for x in outs]
        return outs, [
            tangent_in(
                Zero(t.aval) if isinstance(t, SymbolicZero) else t,
                type_of(x),
                lambda: f"the jvp rule of {name}: a tangent of the result",
            )
            for x, t in zip(outs, out_tangents, strict=True)
        ]


def closure_convert(
    fun: Callable[..., Any], *example_args: Any
) -> tuple[Callable[..., Any], list[Any]]:
    """(function, values): `fun` with the traced floating-point values it captured as arguments.

    function(*args, *values) computes fun(*args), so a custom derivative of a function that calls
    `fun` can treat what it captured as inputs.

    >>> converted, captured = closure_convert(lambda x: x, 1.0)
    >>> captured
    []
    """
    leaves, in_tree = tree_flatten(example_args)
    out_trees: list[Any] = []

    def flat(*values: Any) -> list[Any]:
        outs, tree = tree_flatten(fun(*in_tree.unflatten(values)))
        out_trees.append(tree)
        return outs

    graph = trace_to_graph(
        flat, [type_of(x) for x in leaves], function_name(fun), "closure_convert"
    )
    pairs = list(zip(graph.constvars, graph.consts, strict=True))
    hoisted = [
        (v, c)
        for v, c in pairs
        if isinstance(c, Tracer) and tangent_type(v.aval).dtype == v.aval.dtype
    ]
    taken = {v for v, _ in hoisted}
    kept = [(v, c) for v, c in pairs if v not in taken]
    inner = Graph(
        graph.inputs + [v for v, _ in hoisted],
        graph.nodes,
        graph.outputs,
        [v for v, _ in kept],
        [c for _, c in kept],
        graph.name,
    )

    def converted(*args_and_values: Any) -> Any:
        count = len(args_and_values) - len(hoisted)
        given, tree = tree_flatten(args_and_values[:count])
        check(
            tree == in_tree,
            TypeError,
            f"closure_convert of {function_name(fun)}: expected arguments of structure {in_tree}, "
            f"got {tree}",
        )
        return out_trees[-1].unflatten(evaluate(inner, *given, *args_and_values[count:]))

    return converted, [c for _, c in hoisted]
