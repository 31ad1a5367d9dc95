"""custom_vmap: a function whose vectorized form the user supplies.

    custom_vmap_call_p    `function` computes the results; `rule(size, mapped, values)` the results
                          over a mapped axis, which is the first one of each mapped value

Runs Python where it can, as custom_rules.py explains.  Under differentiation of unknown values
(reverse mode) the function itself is differentiated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from jato.base import dtypes
from jato.base.errors import check
from jato.base.pytree import function_name, prefix_mismatch, tree_flatten, tree_map
from jato.control.custom_rules import CustomCall, Signature, records, run
from jato.control.map import map as sequential_map
from jato.core.primitive import AxisData
from jato.core.trace import STATE, current_trace
from jato.core.types import Zero, type_of
from jato.ops.shapes import instantiate
from jato.transforms.batching import with_dim
from jato.transforms.jvp import as_value, jvp_flat, zero_of
from jato.transforms.partial_eval import PartialEvalTrace

# (axis size, which values are mapped, values) -> (results, which of them are mapped)
FlatRule = Callable[[int, Sequence[bool], Sequence[Any]], tuple[list[Any], list[bool]]]


class CustomVmapCall(CustomCall):
    """See the module's docstring."""

    def bind(self, *args: Any, **params: Any) -> list[Any]:
        trace = STATE.trace
        if isinstance(trace, PartialEvalTrace) and records(trace, args):
            return run(params["function"], args)
        return super().bind(*args, **params)

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
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        function: Any,
        rule: FlatRule,
        captured: int,
        name: str,
    ) -> tuple[list[Any], list[Any]]:
        """A custom_vmap function of primals and tangents, whose rule is the rule's derivative."""
        count = len(primals)
        nonzero = [type(t) is not Zero for t in tangents]

        def tangents_for(values: Sequence[Any], given: Sequence[Any]) -> list[Any]:
            following = iter(given)
            return [
                next(following) if nz else zero_of(type_of(x))
                for x, nz in zip(values, nonzero, strict=True)
            ]

        def both(*args: Any) -> list[Any]:
            values = args[:count]
            outs, found = jvp_flat(
                lambda *xs: run(function, xs), values, tangents_for(values, args[count:])
            )
            return outs + [instantiate(t) for t in found if dtypes.is_inexact(_tangent_dtype(t))]

        def derived_rule(
            size: int, mapped: Sequence[bool], args: Sequence[Any]
        ) -> tuple[list[Any], list[bool]]:
            axis = AxisData(None, size)
            values, given = list(args[captured:count]), list(args[count:])
            flags = list(mapped[captured:count])
            places = [i for i, nz in enumerate(nonzero[captured:]) if nz]
            for k, i in enumerate(places):  # a value and its tangent are mapped together
                tangent_mapped = mapped[count + k]
                if flags[i] and not tangent_mapped:
                    given[k] = with_dim(axis, given[k], None, 0)
                elif tangent_mapped and not flags[i]:
                    values[i], flags[i] = with_dim(axis, values[i], None, 0), True
            out_flags: list[bool] = []

            def batched(*xs: Any) -> list[Any]:
                outs, found = rule(size, flags, xs)
                out_flags[:] = found
                return outs

            following = iter(given)
            inner = [
                next(following) if i in places else zero_of(type_of(x))
                for i, x in enumerate(values)
            ]
            outs, found = jvp_flat(batched, values, inner)
            kept = [i for i, t in enumerate(found) if dtypes.is_inexact(_tangent_dtype(t))]
            return (
                outs + [instantiate(found[i]) for i in kept],
                out_flags + [out_flags[i] for i in kept],
            )

        outs = self.bind(
            *primals,
            *[t for t in tangents if type(t) is not Zero],
            function=both,
            rule=derived_rule,
            captured=captured,
            name=name,
        )
        # the results come first, then a tangent for each that has one
        inexact = [dtypes.is_inexact(type_of(x).dtype) for x in outs]
        total = next(n for n in range(len(outs) + 1) if n + sum(inexact[:n]) == len(outs))
        following = iter(outs[total:])
        return outs[:total], [
            next(following) if is_inexact else zero_of(type_of(x))
            for x, is_inexact in zip(outs[:total], inexact, strict=False)
        ]


def _tangent_dtype(tangent: Any) -> Any:
    return tangent.aval.dtype if type(tangent) is Zero else type_of(tangent).dtype


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

        outs = custom_vmap_call_p.bind(*values, function=function, rule=rule, captured=0, name=name)
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


def sequential_vmap(fun: Callable[..., Any]) -> custom_vmap:
    """`fun`, run for one element after the other when it is mapped.

    >>> from jato.transforms.vmap import vmap
    >>> import jato.numpy as jnp
    >>> vmap(sequential_vmap(lambda x: 2 * x))(jnp.ones(2))
    Array([2., 2.], dtype=float32)
    """
    mapped = custom_vmap(fun)

    @mapped.def_vmap
    def rule(axis_size: int, in_batched: list[Any], *args: Any) -> Any:
        leaves, treedef = tree_flatten(args)
        flags = tree_flatten(tuple(in_batched))[0]
        chosen = [x for x, f in zip(leaves, flags, strict=True) if f]

        def one(slices: list[Any]) -> Any:
            following = iter(slices)
            return fun(
                *treedef.unflatten(
                    [next(following) if f else x for x, f in zip(leaves, flags, strict=True)]
                )
            )

        out = sequential_map(one, chosen)
        return out, tree_map(lambda _: True, out)

    return mapped
