"""What functions with custom rules (custom_jvp, custom_vjp, custom_vmap) have in common.

    CustomCall         the primitive of a call: `function` computes the results (a Python function
                       of flat values, or the Graph of it)
    CustomDerivative   the decorators' base
    FlatCall           one call: its arguments sorted out and flattened

A call is run, not traced, wherever that is possible (decision 0010): eagerly it is a plain call,
under jvp the rule runs on the values at hand (so Python control flow works as it does outside),
under vmap both are vectorized.  Only when a trace records a graph is `function` traced into one.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from jato.base.errors import check
from jato.base.pytree import function_name, tree_flatten, tree_unflatten
from jato.core.graph import Graph, constants_to_inputs, evaluate
from jato.core.graph_print import short_type
from jato.core.primitive import AxisData, Primitive
from jato.core.staging import GraphTrace, trace_to_graph
from jato.core.trace import STATE, Trace
from jato.core.types import Zero, type_of
from jato.transforms.batching import batch_flat, with_dim
from jato.transforms.jvp import as_value, tangent_out
from jato.transforms.partial_eval import PartialEvalTrace


# ---- the primitives


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


class CustomCall(Primitive):
    """Its parameters are `function`, `name`, rules, and `captured`: how many leading operands are
    values that `function` captured when it was traced; the rules do not take them."""

    multiple_results = True
    staged = False  # trace `function` under every trace, not only where a graph is recorded

    def bind(self, *args: Any, **params: Any) -> list[Any]:
        trace = STATE.trace
        function = params["function"]
        if trace is None:
            return run(function, args)
        if not isinstance(function, Graph) and (self.staged or records(trace, args)):
            graph, consts = stage(function, args, params["name"])
            captured = len(consts) + params["captured"]
            params = {**params, "function": graph, "captured": captured}
            return trace.process(self, (*consts, *args), params)
        return trace.process(self, args, params)

    def type_rule(self, *avals: Any, function: Graph, **params: Any) -> Any:
        return function.out_avals

    def expand(self, *operands: Any, function: Graph, **params: Any) -> list[Any]:
        return evaluate(function, *operands)

    def subgraphs(self, params: dict[str, Any]) -> Sequence[Graph]:
        return (params["function"],) if isinstance(params["function"], Graph) else ()


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


# ---- arguments of a call


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
        """The call's arguments by position, defaults filled in.  TypeError for keyword-only ones,
        unless they are left at their defaults."""
        if not kwargs and (len(args) == self.exact or self.signature is None):
            return args
        name = function_name(self.fun)
        if self.signature is None:
            raise TypeError(
                f"{name}: its signature is unknown, so arguments of a function with a custom "
                "derivative must be passed by position"
            )
        bound = self.signature.bind(*args, **kwargs)
        given = list(bound.kwargs)
        bound.apply_defaults()
        if given:
            raise TypeError(
                f"{name}: keyword-only arguments ({', '.join(given)}) are not possible in "
                "a function with a custom derivative. Make them positional."
            )
        return bound.args


def split_arguments(
    args: tuple[Any, ...], nondiff: Sequence[int]
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


# ---- the decorators


class CustomDerivative:
    """A function whose derivative rules the user supplies."""

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
        self.symbolic_zeros = False

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def for_rule(self, tangents: Sequence[Any]) -> list[Any]:
        """Tangents (or cotangents) in the form in which the user's rule receives them."""
        if self.symbolic_zeros:
            return [SymbolicZero(t.aval) if type(t) is Zero else t for t in tangents]
        return [tangent_out(t) for t in tangents]


class FlatCall:
    """One call of a function with a custom derivative; `values` are the flat differentiable
    arguments, `out_tree` the structure of the result once something has computed it."""

    def __init__(self, owner: CustomDerivative, args: tuple[Any, ...], kwargs: dict[str, Any]):
        self.fun = owner.fun
        self.name = name = function_name(owner.fun)
        self.args = owner.signature.positional(args, kwargs)
        diff, self.static, self.places = split_arguments(self.args, owner.nondiff_argnums)
        leaves, self.in_tree = tree_flatten(tuple(diff))
        self.values = [as_value(x, lambda: f"{name}: an argument") for x in leaves]
        self.out_tree: Any = None

    def with_values(self, given: Sequence[Any]) -> list[Any]:
        """All arguments, the differentiable ones made of other leaves."""
        return merged_arguments(self.places, tree_unflatten(self.in_tree, given), self.args)

    def flat_result(self, out: Any, what: str) -> list[Any]:
        outs, self.out_tree = tree_flatten(out)
        return [as_value(x, lambda: what) for x in outs]

    def function(self, *flat: Any) -> list[Any]:
        return self.flat_result(self.fun(*self.with_values(flat)), f"{self.name}: a result")
