"""Forward-mode differentiation: every value carries its tangent.

    JVPTracer     (primal, tangent): the tangent is an array or a tracer, never a symbolic zero,
                  for a value with a zero tangent is represented by its primal alone
    JVPTrace      runs each primitive's `jvp` rule under the parent trace
    jvp_graph     Graph -> Graph of primals and tangents

Since a primal is a value of the parent trace, it is concrete in eager code: `if x > 0` works
under an eager `grad`.  Start reading at `JVPTrace.process`; `jvp` is the user's function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from jato import _native
from jato.base import dtypes
from jato.base.caches import weakly_cached
from jato.base.errors import check
from jato.base.frames import user_frame
from jato.base.pytree import FlatFunction, function_name, tree_flatten, tree_map
from jato.base.signatures import leaf_names
from jato.core.array import ArrayImpl, from_host, from_number
from jato.core.graph import Graph, constants_to_inputs, evaluate
from jato.core.primitive import Primitive
from jato.core.staging import GraphTrace, trace_to_graph
from jato.core.trace import STATE, Trace, Tracer, current_trace, set_trace
from jato.core.types import Zero, tangent_type, type_of
from jato.ops.convert import convert_element_type
from jato.ops.shapes import instantiate


@lru_cache(8192)
def zero_of(aval: Any) -> Zero:
    """The symbolic zero tangent of a value of type `aval`."""
    return Zero(tangent_type(aval))


class JVPTracer(Tracer):
    """A value and its tangent."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: Trace, primal: Any, tangent: Any):
        self.owner = trace
        self.aval = type_of(primal)
        self.primal = primal
        self.tangent = tangent

    def concrete(self) -> Any:
        primal = self.primal
        return primal.concrete() if isinstance(primal, Tracer) else primal

    def origin(self) -> str:
        return self.primal.origin() if isinstance(self.primal, Tracer) else ""


class JVPTrace(Trace):
    """Computes primals and tangents together, in operations of the parent trace."""

    __slots__ = ("records", "what")

    def __init__(self, parent: Trace | None, what: str = "jvp"):
        super().__init__(parent)
        self.what = what
        # does a graph get the operations, so that their place in the user's code matters?
        while parent is not None and not isinstance(parent, GraphTrace):
            parent = parent.parent
        self.records = parent is not None

    def describe(self) -> str:
        return self.what

    def split(self, x: Any) -> tuple[Any, Any]:
        """(primal, tangent or Zero) of any value."""
        if type(x) is JVPTracer and x.owner is self:
            return x.primal, x.tangent
        return x, zero_of(type_of(x))

    def primal(self, x: Any) -> Any:
        """The value without its tangent; anything that is no value of this trace as it is."""
        return x.primal if type(x) is JVPTracer and x.owner is self else x

    def join(self, primal: Any, tangent: Any) -> Any:
        return primal if type(tangent) is Zero else JVPTracer(self, primal, tangent)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        primals: list[Any] = []
        tangents: list[Any] = []
        active = False
        for x in args:
            if type(x) is JVPTracer and x.owner is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
                active = True
            else:
                primals.append(x)
                tangents.append(None)
        parent = self.parent
        STATE.trace = parent
        if parent is None:
            _native.set_trace_active(False)
        previous = STATE.frame
        if self.records and previous is None:  # one look at the stack for all of the rule's work
            STATE.frame = user_frame()
        try:
            if not active:
                return primitive.bind(*args, **params)
            for i, tangent in enumerate(tangents):
                if tangent is None:
                    tangents[i] = zero_of(type_of(primals[i]))
            out, tangent_out = primitive.jvp(primals, tangents, **params)
        finally:
            STATE.trace = self
            STATE.frame = previous
            if parent is None:
                _native.set_trace_active(True)
        if primitive.multiple_results:
            return [
                p if type(t) is Zero else JVPTracer(self, p, t)
                for p, t in zip(out, tangent_out, strict=True)
            ]
        return out if type(tangent_out) is Zero else JVPTracer(self, out, tangent_out)


def jvp_flat(
    fun: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    trace: JVPTrace | None = None,
) -> tuple[list[Any], list[Any]]:
    """(outs, their tangents) of a function of flat values; tangents may be Zero in and out."""
    trace = trace or JVPTrace(current_trace())
    try:
        with set_trace(trace):
            outs = fun(*[trace.join(p, t) for p, t in zip(primals, tangents, strict=True)])
        pairs = [trace.split(x) for x in outs]
    finally:
        trace.valid = False
    return [p for p, _ in pairs], [t for _, t in pairs]


class JvpGraph(NamedTuple):
    """graph: consts, primals, nonzero tangents -> outs, their tangents that are not zero."""

    graph: Graph
    consts: tuple[Any, ...]
    out_nonzero: tuple[bool, ...]


@weakly_cached()
def jvp_graph(
    graph: Graph, nonzero: tuple[bool, ...], forced: tuple[bool, ...] | None = None
) -> JvpGraph:
    """The forward derivative of a graph (without consts) as a graph.

    `nonzero` marks the inputs that have a tangent; outputs marked in `forced` get an array as
    their tangent even if it is zero.
    """
    avals = graph.in_avals
    tangent_avals = [tangent_type(a) for a, nz in zip(avals, nonzero, strict=True) if nz]
    out_nonzero: tuple[bool, ...] = ()

    def both(*values: Any) -> list[Any]:
        nonlocal out_nonzero
        given = iter(values[len(avals) :])
        tangents = [next(given) if nz else zero_of(a) for a, nz in zip(avals, nonzero, strict=True)]
        outs, tangents_out = jvp_flat(
            lambda *xs: evaluate(graph, *xs), values[: len(avals)], tangents
        )
        if forced is not None:
            tangents_out = [
                instantiate(t) if f else t for t, f in zip(tangents_out, forced, strict=True)
            ]
        out_nonzero = tuple(type(t) is not Zero for t in tangents_out)
        return outs + [t for t in tangents_out if type(t) is not Zero]

    traced = trace_to_graph(both, avals + tangent_avals, name=graph.name, what="jvp")
    closed, consts = constants_to_inputs(traced)
    return JvpGraph(closed, tuple(consts), out_nonzero)


# ---- the user's side


def as_value(x: Any, describe: Callable[[], str]) -> Any:
    """An argument of a transformed function as an array or tracer.

    TypeError, which calls `describe()` for the name of the argument, for anything else."""
    if isinstance(x, (ArrayImpl, Tracer)):
        return x
    if isinstance(x, (bool, int, float, complex)):
        return from_number(x)
    if isinstance(x, (np.ndarray, np.generic)):
        return x if x.dtype == dtypes.float0 else from_host(x)
    convert = getattr(x, "__jax_array__", None)
    if convert is not None:
        return convert()
    raise TypeError(
        f"{describe()}: expected an array or a number, got {type(x).__name__} {x!r:.60}"
    )


def tangent_in(x: Any, primal_aval: Any, describe: Callable[[], str]) -> Any:
    """A tangent (or cotangent) that the user gives, checked against its primal; Zero for float0.

    A Python number takes the primal's dtype."""
    expected = tangent_type(primal_aval)
    if isinstance(x, Zero):
        return Zero(expected)
    value = as_value(x, describe)
    given = type_of(value)
    check(
        given.shape == expected.shape,
        ValueError,
        f"{describe()}: expected shape {expected.shape}, got {given.shape}",
    )
    if expected.dtype == dtypes.float0:
        if given.dtype != dtypes.float0:
            raise TypeError(
                f"{describe()}: the value has dtype {primal_aval.dtype}, whose derivative has "
                f"dtype float0, got {given.dtype}. "
                "Try numpy.zeros(shape, dtype=jato.dtypes.float0)."
            )
        return Zero(expected)
    if given.dtype != expected.dtype:
        joined, _ = dtypes.promote((given.dtype, given.weak_type), (expected.dtype, False))
        if given.weak_type and joined == expected.dtype:
            return convert_element_type(value, expected.dtype)
        raise TypeError(f"{describe()}: expected dtype {expected.dtype}, got {given.dtype}")
    return value


def tangent_out(tangent: Any) -> Any:
    """A tangent as the user sees it: Zero becomes an array, of float0 for integers."""
    if type(tangent) is not Zero:
        return tangent
    if tangent.aval.dtype == dtypes.float0:
        return np.zeros(tangent.aval.shape, dtypes.float0)
    zero = instantiate(tangent)
    return convert_element_type(zero, tangent.aval.dtype, True) if tangent.aval.weak_type else zero


def jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
) -> Any:
    """Value and directional derivative of `fun` at `primals` along `tangents`.

    `primals` and `tangents` are tuples of pytrees of equal structure, shapes and dtypes (float0
    for the tangents of integers).  Gives (out, tangent_out), or (out, tangent_out, aux) with
    `has_aux`, where `fun` returns (out, aux).

    >>> import jato.numpy as jnp
    >>> jvp(jnp.sin, (0.0,), (2.0,))
    (Array(0., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))

    TypeError or ValueError if the structures, shapes or dtypes do not match.
    """
    check(callable(fun), TypeError, f"jvp: expected a function, got {fun!r}")
    for name, given in (("primals", primals), ("tangents", tangents)):
        check(
            isinstance(given, (tuple, list)),
            TypeError,
            f"jvp: {name} must be a tuple or list of arguments, got {type(given).__name__}. "
            f"Try ({name},)",
        )
    flat_primals, in_tree = tree_flatten((tuple(primals), {}))
    flat_tangents, tangent_tree = tree_flatten((tuple(tangents), {}))
    check(
        in_tree == tangent_tree,
        TypeError,
        f"jvp: primals and tangents must have the same structure, got {in_tree} and {tangent_tree}",
    )

    def describe(kind: str, i: int) -> str:
        return f"jvp of {function_name(fun)}: {kind} of {leaf_names(fun, tuple(primals))[i]}"

    values = [
        as_value(x, lambda i=i: describe("primal", i))  # type: ignore[misc]
        for i, x in enumerate(flat_primals)
    ]
    directions = [
        tangent_in(t, type_of(x), lambda i=i: describe("tangent", i))  # type: ignore[misc]
        for i, (x, t) in enumerate(zip(values, flat_tangents, strict=True))
    ]
    flat_fun = FlatFunction(fun, in_tree, has_aux)
    trace = JVPTrace(current_trace(), f"jvp of {function_name(fun)}")
    outs, tangents_out = jvp_flat(flat_fun, values, directions, trace)
    outs = [as_value(x, lambda: f"jvp: a result of {function_name(fun)}") for x in outs]
    out = flat_fun.out_tree.unflatten(outs)
    out_tangent = flat_fun.out_tree.unflatten([tangent_out(t) for t in tangents_out])
    if has_aux:
        return out, out_tangent, tree_map(trace.primal, flat_fun.aux)
    return out, out_tangent
