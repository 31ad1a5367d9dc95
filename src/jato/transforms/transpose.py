"""Reverse pass: runs a linear Graph backwards, from cotangents of outputs to those of inputs.

`backward_pass` is the interpreter; nodes that do not depend on a linear input are evaluated
forwards first.  `transpose_graph` is its Graph -> Graph form, `linear_transpose` the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jato.base import dtypes
from jato.base.caches import weakly_cached
from jato.base.errors import check
from jato.base.pytree import FlatFunction, function_name, tree_flatten
from jato.base.signatures import leaf_names
from jato.core.graph import Atom, Graph, Literal, Node, Var, constants_to_inputs
from jato.core.primitive import UndefinedPrimal
from jato.core.staging import abstract_value, trace_to_graph
from jato.core.trace import STATE
from jato.core.types import Zero, type_of
from jato.ops.arithmetic import add
from jato.ops.convert import convert_element_type
from jato.ops.shapes import instantiate
from jato.transforms.jvp import tangent_in, tangent_out, zero_of


def add_cotangents(left: Any, right: Any) -> Any:
    """The sum of two cotangents, either of which may be Zero."""
    if type(left) is Zero:
        return right
    if type(right) is Zero:
        return left
    return add(left, right)


def backward_pass(
    graph: Graph,
    operands: Sequence[Any],
    cotangents: Sequence[Any],
    sums: list[Any] | None = None,
) -> list[Any]:
    """Cotangents of the graph's inputs.

    `operands[i]` is UndefinedPrimal for an input the graph is linear in, else its value;
    `cotangents` belong to the outputs and may be Zero.  Gives an array or Zero for linear
    inputs, None for the others.  `sums` receives the sums of cotangents that are made here: their
    order is ours, that of sums within a rule is the rule's.
    """
    values: dict[Var, Any] = dict(zip(graph.constvars, graph.consts, strict=True))
    linear: set[Var] = set()
    for var, operand in zip(graph.inputs, operands, strict=True):
        if type(operand) is UndefinedPrimal:
            linear.add(var)
        else:
            values[var] = operand

    def read(atom: Atom) -> Any:
        return atom.value if type(atom) is Literal else values[atom]  # type: ignore[index]

    backwards: list[Node] = []
    for node in graph.nodes:
        if any(a in linear for a in node.inputs if type(a) is Var):
            linear.update(node.outputs)
            backwards.append(node)
            continue
        out = node.primitive.bind(*map(read, node.inputs), **node.params)
        values.update(
            zip(
                node.outputs,
                out if node.primitive.multiple_results else (out,),
                strict=True,
            )
        )

    found: dict[Var, Any] = {}

    def collect(atom: Atom, cotangent: Any) -> None:
        if type(atom) is Var and cotangent is not None and type(cotangent) is not Zero:
            known = found.get(atom)
            found[atom] = cotangent if known is None else add(known, cotangent)
            if sums is not None and found[atom] is not known and found[atom] is not cotangent:
                sums.append(found[atom])

    for atom, cotangent in zip(graph.outputs, cotangents, strict=True):
        if atom in linear:
            collect(atom, cotangent)
    frame = STATE.frame
    for node in reversed(backwards):
        received = [found.pop(v, None) for v in node.outputs]
        if all(ct is None for ct in received):
            continue
        given = [
            zero_of(v.aval) if ct is None else ct
            for v, ct in zip(node.outputs, received, strict=True)
        ]
        if node.frame is not None:
            STATE.frame = node.frame  # its reverse belongs to the same line of the user's
        try:
            results = node.primitive.transpose(
                given if node.primitive.multiple_results else given[0],
                *[UndefinedPrimal(a.aval) if a in linear else read(a) for a in node.inputs],
                **node.params,
            )
        finally:
            STATE.frame = frame
        for atom, cotangent in zip(node.inputs, results, strict=True):
            if atom in linear:
                collect(atom, cotangent)
    return [
        (_typed(found[v], v.aval) if v in found else zero_of(v.aval)) if v in linear else None
        for v in graph.inputs
    ]


def _typed(cotangent: Any, aval: Any) -> Any:
    """A cotangent of a weakly typed value, weakly typed: a learning rate that was a Python number
    has a gradient that promotes like one."""
    if not aval.weak_type or type_of(cotangent).weak_type:
        return cotangent
    return convert_element_type(cotangent, aval.dtype, True)


class TransposedGraph(NamedTuple):
    """graph: consts, values of the nonlinear inputs, cotangents that are not zero -> cotangents
    of the linear inputs that are not zero (`nonzero`, one entry for each linear input)."""

    graph: Graph
    consts: tuple[Any, ...]
    nonzero: tuple[bool, ...]


@weakly_cached()
def transpose_graph(
    graph: Graph, linear: tuple[bool, ...], given: tuple[bool, ...], forced: bool = False
) -> TransposedGraph:
    """Transposes a graph (without consts) that is linear in the inputs marked `linear`; `given`
    marks the outputs whose cotangent is not zero.  With `forced` every cotangent is an array."""
    avals = graph.in_avals
    value_avals = [a for a, is_linear in zip(avals, linear, strict=True) if not is_linear]
    cotangent_avals = [zero_of(a).aval for a, g in zip(graph.out_avals, given, strict=True) if g]
    nonzero: tuple[bool, ...] = ()

    def backwards(*args: Any) -> list[Any]:
        nonlocal nonzero
        values = iter(args[: len(value_avals)])
        received = iter(args[len(value_avals) :])
        operands = [
            UndefinedPrimal(a) if is_linear else next(values)
            for a, is_linear in zip(avals, linear, strict=True)
        ]
        cotangents = [
            next(received) if g else zero_of(a) for a, g in zip(graph.out_avals, given, strict=True)
        ]
        results = backward_pass(graph, operands, cotangents)
        wanted = [ct for ct, is_linear in zip(results, linear, strict=True) if is_linear]
        if forced:
            wanted = [instantiate(ct) for ct in wanted]
        nonzero = tuple(type(ct) is not Zero for ct in wanted)
        return [ct for ct in wanted if type(ct) is not Zero]

    traced = trace_to_graph(backwards, value_avals + cotangent_avals, graph.name, "transpose")
    closed, consts = constants_to_inputs(traced)
    return TransposedGraph(closed, tuple(consts), nonzero)


def linear_transpose(
    fun: Callable[..., Any], *primals: Any, reduce_axes: Any = ()
) -> Callable[..., Any]:
    """The transpose of a function that is linear in its arguments.

    `primals` give the shapes and dtypes only (arrays or ShapeDtypeStruct).  The returned function
    takes a cotangent shaped like the result and gives a tuple of cotangents shaped like the
    arguments.

    >>> import jato.numpy as jnp
    >>> linear_transpose(lambda x: 3 * x, jnp.ones(2))(jnp.ones(2))
    (Array([3., 3.], dtype=float32),)

    TypeError if `fun` is not linear or an argument has a dtype without derivative.
    """
    name = function_name(fun)
    leaves, in_tree = tree_flatten((primals, {}))
    avals = [abstract_value(x) for x in leaves]
    for i, aval in enumerate(avals):
        check(
            dtypes.is_inexact(aval.dtype),
            TypeError,
            f"linear_transpose of {name}: argument {leaf_names(fun, primals)[i]} must be of "
            f"floating or complex dtype, got {aval.dtype}",
        )
    flat = FlatFunction(fun, in_tree)
    graph = trace_to_graph(flat, avals, name, "linear_transpose")
    out_tree = flat.out_tree

    def transposed(cotangent: Any) -> Any:
        flat_cotangents, tree = tree_flatten(cotangent)
        check(
            tree == out_tree,
            TypeError,
            f"linear_transpose of {name}: expected a cotangent of structure {out_tree}, got {tree}",
        )
        given = [
            tangent_in(ct, aval, lambda: f"linear_transpose of {name}: cotangent")
            for ct, aval in zip(flat_cotangents, graph.out_avals, strict=True)
        ]
        found = backward_pass(graph, [UndefinedPrimal(a) for a in avals], given)
        args, _ = in_tree.unflatten([tangent_out(ct) for ct in found])
        return args

    return transposed
