"""custom_vmap: a function whose vectorized form the user supplies.

    custom_vmap_call_p    `function` computes the results; `rule(size, mapped, values)` the results
                          over a mapped axis, which is the first one of each mapped value

Runs Python where it can, as custom_rules.py explains.  The derivatives of such a function are
custom_vmap functions too, and their rules the derivatives of its rule: tangents (`pushed`), and
transposed, cotangents (`pulled`), which compute the function again instead of storing what it
computed.  So `vmap(grad(f))` differentiates the rule of f, and `grad(f)` the function itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from jato.base import dtypes
from jato.base.errors import check
from jato.base.pytree import function_name, prefix_mismatch, tree_flatten, tree_map
from jato.control.custom_rules import CustomCall, Signature, run
from jato.control.map import map as sequential_map
from jato.core.graph import Graph, constants_to_inputs, evaluate
from jato.core.primitive import AxisData, UndefinedPrimal
from jato.core.staging import trace_to_graph
from jato.core.trace import current_trace
from jato.core.types import Zero, type_of
from jato.ops.shapes import instantiate
from jato.ops.structural import reduce_sum
from jato.transforms.batching import inserted, with_dim
from jato.transforms.jvp import as_value, jvp_flat, zero_of
from jato.transforms.transpose import backward_pass, transpose_graph

# (axis size, which values are mapped, values) -> (results, which of them are mapped)
FlatRule = Callable[[int, Sequence[bool], Sequence[Any]], tuple[list[Any], list[bool]]]


class CustomVmapCall(CustomCall):
    """See the module's docstring.  The last `linear_count` operands are directions: the results are
    linear in them.  Under every trace `function` becomes a graph, which shows what it captured."""

    staged = True

    def batch(
        self,
        axis: AxisData,
        operands: Sequence[Any],
        dims: Sequence[int | None],
        *,
        rule: FlatRule,
        captured: int,
        name: str,
        **params: Any,
    ) -> tuple[list[Any], list[int | None]]:
        check(
            all(d is None for d in dims[:captured]),
            TypeError,
            f"custom_vmap function {name} captured a value that is mapped, which its rule does "
            "not know of. Pass the value as an argument.",
        )
        mapped = [d is not None for d in dims[captured:]]
        values = [
            x if d is None else with_dim(axis, x, d, 0)
            for x, d in zip(operands[captured:], dims[captured:], strict=True)
        ]
        outs, out_mapped = rule(axis.size, mapped, values)
        return outs, [0 if m else None for m in out_mapped]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[list[Any], list[Any]]:
        """The tangents are a custom_vmap function of primals and directions: `pushed`."""
        outs = self.bind(*primals, **params)
        nonzero = [type(t) is not Zero for t in tangents]
        directions = [t for t in tangents if type(t) is not Zero]
        found = iter(
            self.bind(
                *primals,
                *directions,
                **params
                | {
                    "function": pushed(params["function"], nonzero),
                    "rule": pushed_rule(
                        params["rule"], nonzero, params["captured"], params["name"]
                    ),
                    "linear_count": len(directions),
                },
            )
        )
        avals = [type_of(x) for x in outs]
        return outs, [next(found) if dtypes.is_inexact(a.dtype) else zero_of(a) for a in avals]

    def transpose(
        self,
        cotangent: Sequence[Any],
        *operands: Any,
        function: Graph,
        rule: FlatRule,
        captured: int,
        name: str,
        linear_count: int,
    ) -> list[Any]:
        """The cotangents are a custom_vmap function of primals and cotangents: `pulled`.

        Linear operands are directions, or arguments of a linear function applied to a tangent."""
        linear = [type(x) is UndefinedPrimal for x in operands]
        check(
            not any(linear[:captured]),
            TypeError,
            f"custom_vmap function {name} captured a tangent, which its rule does not know of. "
            "Pass the value as an argument.",
        )
        order = sorted(range(len(operands)), key=lambda i: linear[i])  # known ones first
        count = len(operands) - sum(linear)
        graph = Graph(
            [function.inputs[i] for i in order], function.nodes, function.outputs, name=name
        )
        given = [type(ct) is not Zero for ct in cotangent]
        cotangents = [ct for ct in cotangent if type(ct) is not Zero]
        found = self.bind(
            *[operands[i] for i in order[:count]],
            *cotangents,
            function=pulled(graph, count, given),
            rule=pulled_rule(
                reordered_rule(rule, [i - captured for i in order[captured:]]),
                graph.in_avals[count:],
                graph.out_avals,
                given,
            ),
            captured=captured,
            name=name,
            linear_count=len(cotangents),
        )
        following = iter(found)
        return [next(following) if is_linear else None for is_linear in linear]


def _inexact(tangent: Any) -> bool:
    aval = tangent.aval if type(tangent) is Zero else type_of(tangent)
    return dtypes.is_inexact(aval.dtype)


# ---- derivatives of a function: values, directions -> tangents


def pushed(function: Any, nonzero: Sequence[bool]) -> Callable[..., list[Any]]:
    """operands, the tangents that are `nonzero` -> tangents of the inexact results."""

    def tangents_of(*args: Any) -> list[Any]:
        values, given = args[: len(nonzero)], iter(args[len(nonzero) :])
        tangents = [
            next(given) if nz else zero_of(type_of(x))
            for x, nz in zip(values, nonzero, strict=True)
        ]
        _, found = jvp_flat(lambda *xs: run(function, xs), values, tangents)
        return [instantiate(t) for t in found if _inexact(t)]

    return tangents_of


def pushed_rule(rule: FlatRule, nonzero: Sequence[bool], captured: int, name: str) -> FlatRule:
    """The rule of `pushed(function)`: the derivative of the function's rule."""
    perturbed = list(nonzero[captured:])

    def derived(
        size: int, mapped: Sequence[bool], args: Sequence[Any]
    ) -> tuple[list[Any], list[bool]]:
        check(
            not any(nonzero[:captured]),
            TypeError,
            f"custom_vmap function {name} captured a value that is being differentiated, which "
            "its rule does not know of. Pass the value as an argument.",
        )
        axis = AxisData(None, size)
        count = len(perturbed)
        values, given = list(args[:count]), list(args[count:])
        flags = list(mapped[:count])
        for k, i in enumerate(i for i, nz in enumerate(perturbed) if nz):
            # a value and its tangent are mapped together
            if flags[i] and not mapped[count + k]:
                given[k] = with_dim(axis, given[k], None, 0)
            elif mapped[count + k] and not flags[i]:
                values[i], flags[i] = with_dim(axis, values[i], None, 0), True
        out_flags: list[bool] = []

        def batched(*xs: Any) -> list[Any]:
            outs, out_flags[:] = rule(size, flags, xs)
            return outs

        following = iter(given)
        tangents = [
            next(following) if nz else zero_of(type_of(x))
            for x, nz in zip(values, perturbed, strict=True)
        ]
        _, found = jvp_flat(batched, values, tangents)
        kept = [i for i, t in enumerate(found) if _inexact(t)]
        return [instantiate(found[i]) for i in kept], [out_flags[i] for i in kept]

    return derived


def reordered_rule(rule: FlatRule, order: Sequence[int]) -> FlatRule:
    """The rule that takes argument order[k] of `rule` at place k."""

    def reordered(
        size: int, mapped: Sequence[bool], args: Sequence[Any]
    ) -> tuple[list[Any], list[bool]]:
        flags, values = list(mapped), list(args)
        for k, i in enumerate(order):
            flags[i], values[i] = mapped[k], args[k]
        return rule(size, flags, values)

    return reordered


# ---- transposes of functions that are linear in directions: values, cotangents -> cotangents


def pulled(graph: Graph, count: int, given: Sequence[bool]) -> Callable[..., list[Any]]:
    """The first `count` operands, the cotangents that are `given` -> cotangents of the others."""
    linear = tuple(i >= count for i in range(len(graph.inputs)))
    backwards = transpose_graph(graph, linear, tuple(given), True)
    return lambda *args: evaluate(backwards.graph, *backwards.consts, *args)


def pulled_rule(
    rule: FlatRule, direction_avals: Sequence[Any], out_avals: Sequence[Any], given: Sequence[bool]
) -> FlatRule:
    """The rule of `pulled(function)`: the transpose of the function's rule, all directions mapped."""

    def transposed(
        size: int, mapped: Sequence[bool], args: Sequence[Any]
    ) -> tuple[list[Any], list[bool]]:
        axis = AxisData(None, size)
        count = len(args) - sum(given)
        values = args[:count]
        flags = [*mapped[:count], *[True] * len(direction_avals)]
        out_flags: list[bool] = []

        def forwards(*xs: Any) -> list[Any]:
            outs, out_flags[:] = rule(size, flags, xs)
            return outs

        linear = [inserted(a, size, 0) for a in direction_avals]
        traced = trace_to_graph(forwards, [*map(type_of, values), *linear], "custom_vmap rule")
        graph, consts = constants_to_inputs(traced)
        received = iter(zip(args[count:], mapped[count:], strict=True))
        cotangents: list[Any] = []
        for aval, is_given, whole in zip(out_avals, given, out_flags, strict=True):
            if not is_given:
                cotangents.append(zero_of(inserted(aval, size, 0) if whole else aval))
                continue
            ct, is_mapped = next(received)
            ct = with_dim(axis, ct, 0 if is_mapped else None, 0)
            cotangents.append(ct if whole else reduce_sum(ct, axes=(0,)))
        operands = [*consts, *values, *[UndefinedPrimal(a) for a in linear]]
        found = backward_pass(graph, operands, cotangents)[len(consts) + count :]
        return [instantiate(ct) for ct in found], [True] * len(found)

    return transposed


custom_vmap_call_p = CustomVmapCall("custom_vmap_call")


class custom_vmap:
    """A function with a vectorized form of the user's making.

    The rule takes (axis_size, in_batched, *arguments): in_batched is a list shaped like the
    arguments that tells which leaves are mapped (along their first axis); it gives (result,
    out_batched).

    >>> import jato.numpy as jnp
    >>> @custom_vmap
    ... def f(x):
    ...     return jnp.sum(x)
    >>> @f.def_vmap
    ... def rule(axis_size, in_batched, x):
    ...     return jnp.sum(x, axis=1), True

    Raises AttributeError when mapped before a rule is defined.
    """

    def __init__(self, fun: Callable[..., Any]):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.signature = Signature(fun)
        self.vmap_rule: Callable[..., Any] | None = None

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Sets the rule and returns it, so that it is a decorator."""
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current_trace() is None:
            return self.fun(*args, **kwargs)
        name = function_name(self.fun)
        args = self.signature.positional(args, kwargs)
        leaves, in_tree = tree_flatten(args)
        values = [as_value(x, lambda: f"{name}: an argument") for x in leaves]
        out_trees: list[Any] = []

        def function(*flat: Any) -> list[Any]:
            outs, tree = tree_flatten(self.fun(*in_tree.unflatten(flat)))
            out_trees.append(tree)
            return [as_value(x, lambda: f"{name}: a result") for x in outs]

        def rule(
            size: int, mapped: Sequence[bool], flat: Sequence[Any]
        ) -> tuple[list[Any], list[bool]]:
            return self._run_rule(name, in_tree, size, mapped, flat, out_trees)

        outs = custom_vmap_call_p.bind(
            *values, function=function, rule=rule, captured=0, name=name, linear_count=0
        )
        return out_trees[-1].unflatten(outs)

    def _run_rule(
        self,
        name: str,
        in_tree: Any,
        size: int,
        mapped: Sequence[bool],
        flat: Sequence[Any],
        out_trees: list[Any],
    ) -> tuple[list[Any], list[bool]]:
        if self.vmap_rule is None:
            raise AttributeError(
                f"custom_vmap function {name} has no vmap rule; define one with def_vmap"
            )
        pair = self.vmap_rule(size, list(in_tree.unflatten(mapped)), *in_tree.unflatten(flat))
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise TypeError(
                f"the vmap rule of {name} must return (result, out_batched), got "
                f"{type(pair).__name__}"
            )
        outs, tree = tree_flatten(pair[0])
        flags, flag_tree = tree_flatten(pair[1])
        if tree != flag_tree:
            problem = prefix_mismatch(pair[0], pair[1]) or f": {tree} against {flag_tree}"
            raise TypeError(
                f"the vmap rule of {name} must return out_batched of the result's structure{problem}"
            )
        out_trees.append(tree)
        values = [as_value(x, lambda: f"the vmap rule of {name}: a result") for x in outs]
        for x, flag in zip(values, flags, strict=True):
            shape = type_of(x).shape
            check(
                not flag or (bool(shape) and shape[0] == size),
                ValueError,
                f"the vmap rule of {name}: a result marked as mapped must have a first axis of "
                f"size {size}, got shape {shape}",
            )
        return values, [bool(f) for f in flags]


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """`f`, run for one element after the other when it is mapped.

    >>> from jato.transforms.vmap import vmap
    >>> import jato.numpy as jnp
    >>> vmap(sequential_vmap(lambda x: 2 * x))(jnp.ones(2))
    Array([2., 2.], dtype=float32)
    """
    mapped = custom_vmap(f)

    @mapped.def_vmap
    def rule(axis_size: int, in_batched: list[Any], *args: Any) -> Any:
        leaves, treedef = tree_flatten(args)
        flags = tree_flatten(tuple(in_batched))[0]
        chosen = [x for x, flag in zip(leaves, flags, strict=True) if flag]

        def one(slices: list[Any]) -> Any:
            following = iter(slices)
            return f(
                *treedef.unflatten(
                    [next(following) if flag else x for x, flag in zip(leaves, flags, strict=True)]
                )
            )

        out = sequential_map(one, chosen)
        return out, tree_map(lambda _: True, out)

    return mapped
