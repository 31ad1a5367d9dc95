"""custom_jvp: a function whose forward derivative the user supplies.

    custom_jvp          the decorator; collects the rule, flattens a call, binds the primitive
    custom_jvp_call_p   operands are the flat differentiable arguments; `function` computes the
                        results, `rule(primals, tangents)` results and their tangents

custom_rules.py has what it shares with the other custom rules.
"""

from __future__ import annotations

import functools
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
from jato.control.custom_rules import (
    CustomCall,
    CustomDerivative,
    FlatCall,
    SymbolicZero,
    batched_outs,
    check_captured,
    run,
)
from jato.control.call import call_p
from jato.core.primitive import AxisData
from jato.core.trace import current_trace
from jato.core.types import Zero, tangent_type, type_of
from jato.transforms.batching import inserted
from jato.transforms.jvp import tangent_in, tangent_out

FlatRule = Callable[[Sequence[Any], Sequence[Any]], tuple[list[Any], list[Any]]]


class CustomJVPCall(CustomCall):
    """See the module's docstring."""

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

    def transpose(
        self, cotangent: Sequence[Any], *operands: Any, function: Any, **params: Any
    ) -> list[Any]:
        """The function itself is transposed: a rule may apply linear functions to tangents."""
        return call_p.transpose(cotangent, *operands, graph=function, name=params["name"])


custom_jvp_call_p = CustomJVPCall("custom_jvp_call")


# ---- the decorator


class custom_jvp(CustomDerivative):
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
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None

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
        call = _Rule(self, args, kwargs)
        outs = custom_jvp_call_p.bind(
            *call.values, function=call.function, rule=call.rule, captured=0, name=call.name
        )
        return call.out_tree.unflatten(outs)


class _Rule(FlatCall):
    """The flat functions of one call of a custom_jvp function."""

    def __init__(self, owner: custom_jvp, args: tuple[Any, ...], kwargs: dict[str, Any]):
        super().__init__(owner, args, kwargs)
        self.owner = owner

    def rule(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        assert self.owner.jvp is not None
        name = self.name
        pair = self.owner.jvp(
            *self.static,
            tree_unflatten(self.in_tree, primals),
            tree_unflatten(self.in_tree, self.owner.for_rule(tangents)),
        )
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
            raise TypeError(
                f"the jvp rule of {name} must return (result, tangent), got {type(pair).__name__}"
            )
        outs = self.flat_result(pair[0], f"the jvp rule of {name}: a result")
        out_tangents, tangent_tree = tree_flatten(pair[1], lambda x: isinstance(x, SymbolicZero))
        if self.out_tree != tangent_tree:
            problem = (
                prefix_mismatch(pair[0], pair[1]) or f": {self.out_tree} against {tangent_tree}"
            )
            raise TypeError(
                f"the jvp rule of {name} must return a tangent of the result's structure{problem}"
            )
        return outs, [
            tangent_in(
                Zero(t.aval) if isinstance(t, SymbolicZero) else t,
                type_of(x),
                lambda: f"the jvp rule of {name}: a tangent of the result",
            )
            for x, t in zip(outs, out_tangents, strict=True)
        ]
