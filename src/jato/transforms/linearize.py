"""Linearization: jvp on top of partial evaluation.

The primals are known and computed at once; the tangents are unknown, and what happens to them is
recorded as a linear Graph.  Transposed, that graph is the reverse pass: `vjp`.

    LinearProgram    the recorded graph, with what zero tangents were left out

Start reading at `linearize_flat`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jato.base import dtypes
from jato.base.errors import check
from jato.base.pytree import (
    FlatFunction,
    Partial,
    function_name,
    tree_flatten,
    tree_map,
)
from jato.base.signatures import leaf_names
from jato.core.graph import Graph, constants_to_inputs, evaluate
from jato.core.primitive import UndefinedPrimal
from jato.core.staging import GraphTracer
from jato.core.trace import current_trace, set_trace
from jato.core.types import Zero, tangent_type, type_of
from jato.transforms.jvp import (
    JVPTrace,
    JVPTracer,
    as_value,
    tangent_in,
    tangent_out,
    zero_of,
)
from jato.transforms.partial_eval import PartialEvalTrace
from jato.transforms.transpose import backward_pass


class LinearProgram(NamedTuple):
    """The derivative of a flat function at a point.

    graph: consts, nonzero tangents -> nonzero tangents out.  An input is `active` when its
    tangents are not float0; an output is `nonzero` when it depends on an active input.
    """

    graph: Graph
    in_avals: tuple[Any, ...]
    out_avals: tuple[Any, ...]
    active: tuple[bool, ...]
    nonzero: tuple[bool, ...]

    def push(self, consts: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """Tangents of the outputs (or Zero) for tangents of the inputs (or Zero)."""
        given = [tangent_out(t) for t, a in zip(tangents, self.active, strict=True) if a]
        outs = iter(evaluate(self.graph, *consts, *given))
        return [
            next(outs) if nz else zero_of(a)
            for a, nz in zip(self.out_avals, self.nonzero, strict=True)
        ]

    def pull(self, consts: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """Cotangents of the inputs (or Zero) for cotangents of the outputs (or Zero)."""
        given = [ct for ct, nz in zip(cotangents, self.nonzero, strict=True) if nz]
        linear = [
            UndefinedPrimal(tangent_type(a))
            for a, is_active in zip(self.in_avals, self.active, strict=True)
            if is_active
        ]
        found = iter(backward_pass(self.graph, [*consts, *linear], given)[len(consts) :])
        return [
            next(found) if is_active else zero_of(a)
            for a, is_active in zip(self.in_avals, self.active, strict=True)
        ]


def linearize_flat(
    fun: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    name: str,
    what: str = "linearize",
    active: Sequence[bool] | None = None,
) -> tuple[list[Any], LinearProgram, list[Any], JVPTrace]:
    """(outs, program, its consts, trace) of a function of flat values.

    The trace is finished; it strips auxiliary values of their tangents (`trace.primal`).
    """
    avals = [type_of(x) for x in primals]
    if active is None:
        active = [dtypes.is_inexact(a.dtype) for a in avals]
    recorder = PartialEvalTrace(current_trace(), name, what)
    trace = JVPTrace(recorder, f"{what} of {name}")
    unknowns: list[GraphTracer] = []
    args: list[Any] = []
    for x, aval, is_active in zip(primals, avals, active, strict=True):
        if not is_active:
            args.append(x)
            continue
        unknowns.append(recorder.new_unknown(tangent_type(aval)))
        args.append(JVPTracer(trace, x, unknowns[-1]))
    try:
        with set_trace(trace):
            outs = fun(*args)
        pairs = [trace.split(x) for x in outs]
        out_primals = [p for p, _ in pairs]
        # a tangent may be known: a derivative rule that ignores the tangents it gets
        nonzero = tuple(type(t) is not Zero for _, t in pairs)
        graph = recorder.to_graph(unknowns, [t for _, t in pairs if type(t) is not Zero])
    finally:
        trace.valid = False
        recorder.valid = False
    closed, consts = constants_to_inputs(graph)
    out_avals = tuple(type_of(p) for p in out_primals)
    program = LinearProgram(closed, tuple(avals), out_avals, tuple(active), nonzero)
    return out_primals, program, consts, trace


# ---- functions handed to the user: `Partial(part, *residuals)`, so that they pass through jit


class _Pullback:
    """Calls a LinearProgram backwards on pytrees."""

    def __init__(self, name: str, program: LinearProgram, args_tree: Any, out_tree: Any):
        self.name = name
        self.program = program
        self.args_tree = args_tree  # of the tuple of primals
        self.out_tree = out_tree

    def __call__(self, *consts_and_cotangent: Any) -> Any:
        *consts, cotangent = consts_and_cotangent
        leaves, tree = tree_flatten(cotangent)
        if tree != self.out_tree:
            raise ValueError(
                f"vjp of {self.name}: the cotangent must have the structure of the result, "
                f"{self.out_tree}, got {tree}"
            )
        given = [
            tangent_in(ct, aval, lambda: f"vjp of {self.name}: a cotangent")
            for ct, aval in zip(leaves, self.program.out_avals, strict=True)
        ]
        found = self.program.pull(consts, given)
        return self.args_tree.unflatten([tangent_out(ct) for ct in found])


class _Pushforward:
    """Calls a LinearProgram forwards on pytrees."""

    def __init__(self, name: str, program: LinearProgram, args_tree: Any, out_tree: Any):
        self.name = name
        self.program = program
        self.args_tree = args_tree
        self.out_tree = out_tree

    def __call__(self, *consts_and_tangents: Any) -> Any:
        count = len(self.program.graph.inputs) - sum(self.program.active)
        consts, tangents = consts_and_tangents[:count], consts_and_tangents[count:]
        leaves, tree = tree_flatten(tangents)
        if tree != self.args_tree:
            raise TypeError(
                f"linearize of {self.name}: the tangents must have the structure of the arguments, "
                f"{self.args_tree}, got {tree}"
            )
        given = [
            tangent_in(t, aval, lambda: f"linearize of {self.name}: a tangent")
            for t, aval in zip(leaves, self.program.in_avals, strict=True)
        ]
        found = self.program.push(consts, given)
        return self.out_tree.unflatten([tangent_out(t) for t in found])


def _linearized(
    fun: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool, what: str
) -> tuple[Any, LinearProgram, list[Any], Any, Any, Any]:
    name = function_name(fun)
    check(callable(fun), TypeError, f"{what}: expected a function, got {fun!r}")
    leaves, in_tree = tree_flatten((primals, {}))
    values = [
        as_value(x, lambda i=i: f"{what} of {name}: argument {leaf_names(fun, primals)[i]}")  # type: ignore[misc]
        for i, x in enumerate(leaves)
    ]
    flat = FlatFunction(fun, in_tree, has_aux)
    outs, program, consts, trace = linearize_flat(flat, values, name, what)
    outs = [as_value(x, lambda: f"{what}: a result of {name}") for x in outs]
    aux = tree_map(trace.primal, flat.aux) if has_aux else None
    args_tree = tree_flatten(primals)[1]
    return flat.out_tree.unflatten(outs), program, consts, args_tree, flat.out_tree, aux


def _require_defaults(function: str, **given: tuple[Any, Any]) -> None:
    """NotImplementedError for arguments, each (value, default), that have another value."""
    for name, (value, default) in given.items():
        check(
            value is default,
            NotImplementedError,
            f"{function}: argument '{name}': expected {default!r}, got {value!r}",
        )


def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Any = (),
    saveable_args: bool = True, in_nzs: Any = None,
) -> Any:  # fmt: skip
    """Value of `fun` and the function that pulls cotangents back through it.

    Gives (out, vjp_fun), or (out, vjp_fun, aux) with `has_aux`.  vjp_fun(cotangent), with a
    cotangent shaped like `out`, gives a tuple with one entry per primal (float0 for integers).
    It is a pytree whose leaves are the stored residuals, so jit can return it.

    >>> import jato.numpy as jnp
    >>> out, pull = vjp(lambda x, y: x * y, jnp.array([2.0]), jnp.array([5.0]))
    >>> pull(jnp.ones(1))
    (Array([5.], dtype=float32), Array([2.], dtype=float32))

    reduce_axes, saveable_args and in_nzs must have their defaults.
    TypeError for arguments that are no arrays; ValueError for a cotangent of another structure.
    """
    check(
        not reduce_axes,
        NotImplementedError,
        f"vjp: argument 'reduce_axes': expected (), got {reduce_axes!r}",
    )
    _require_defaults("vjp", saveable_args=(saveable_args, True), in_nzs=(in_nzs, None))
    out, program, consts, args_tree, out_tree, aux = _linearized(fun, primals, has_aux, "vjp")
    pull = Partial(_Pullback(function_name(fun), program, args_tree, out_tree), *consts)
    return (out, pull, aux) if has_aux else (out, pull)


def linearize(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False, in_nzs: Any = None
) -> Any:
    """Value of `fun` and its derivative at `primals` as a linear function of tangents.

    Gives (out, jvp_fun), or (out, jvp_fun, aux).  Calling jvp_fun many times costs only the
    linear part each time.  in_nzs must be None.

    >>> import jato.numpy as jnp
    >>> out, push = linearize(lambda x: x * x, jnp.array([3.0]))
    >>> push(jnp.ones(1))
    Array([6.], dtype=float32)
    """
    _require_defaults("linearize", in_nzs=(in_nzs, None))
    out, program, consts, args_tree, out_tree, aux = _linearized(fun, primals, has_aux, "linearize")
    push = Partial(_Pushforward(function_name(fun), program, args_tree, out_tree), *consts)
    return (out, push, aux) if has_aux else (out, push)
