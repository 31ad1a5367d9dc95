"""custom_vjp: a function whose reverse derivative the user supplies.

    custom_vjp            the decorator
    custom_vjp_call_p     `function` computes the results; `forward(perturbed, *operands)` results
                          and residuals, where perturbed says which operands are differentiated;
                          `backward(residuals, cotangents)` cotangents of the operands
    custom_vjp_linear_p   what jvp leaves for the reverse pass: an operation on tangents of which
                          only the transpose (`backward`) is known

Runs Python where it can, as custom_rules.py explains.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from jato.base import dtypes
from jato.base.errors import MissingRule
from jato.base.pytree import (
    tree_map,
    Partial,
    function_name,
    prefix_mismatch,
    tree_flatten,
    tree_unflatten,
)
from jato.base.signatures import parameter_names
from jato.control.closure_convert import closure_convert
from jato.control.custom_rules import (
    CustomCall,
    CustomDerivative,
    FlatCall,
    SymbolicZero,
    batched_outs,
    check_captured,
    run,
)
from jato.core.primitive import AxisData, Primitive
from jato.core.trace import STATE, current_trace
from jato.core.types import Zero, tangent_type, type_of
from jato.ops.structural import reduce_sum
from jato.transforms.batching import batch_flat, inserted, with_dim
from jato.transforms.jvp import as_value, tangent_in, tangent_out, zero_of

Forward = Callable[..., tuple[list[Any], list[Any]]]
Backward = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


class CustomVJPCall(CustomCall):
    """See the module's docstring."""

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        function: Any,
        forward: Forward,
        backward: Backward,
        captured: int,
        name: str,
    ) -> tuple[list[Any], list[Any]]:
        check_captured(name, tangents[:captured], "custom_vjp")
        primals, tangents = primals[captured:], tangents[captured:]
        outs, residuals = forward([type(t) is not Zero for t in tangents], *primals)
        active = tuple(dtypes.is_inexact(type_of(x).dtype) for x in primals)
        out_avals = tuple(tangent_type(type_of(x)) for x in outs)
        directions = [tangent_out(t) for t, a in zip(tangents, active, strict=True) if a]
        found = custom_vjp_linear_p.bind(
            *residuals,
            *directions,
            residual_count=len(residuals),
            active=active,
            backward=backward,
            out_avals=out_avals,
            name=name,
        )
        return outs, [
            t if dtypes.is_inexact(a.dtype) else Zero(a)
            for t, a in zip(found, out_avals, strict=True)
        ]

    def batch(
        self,
        axis: AxisData,
        operands: Sequence[Any],
        dims: Sequence[int | None],
        *,
        function: Any,
        forward: Forward,
        backward: Backward,
        captured: int,
        name: str,
    ) -> tuple[list[Any], list[int]]:
        mapped = list(dims[captured:])
        residual_dims: list[int | None] = []

        def batched(*values: Any) -> list[Any]:
            return batched_outs(axis, lambda *xs: run(function, xs), values, dims)

        def batched_forward(perturbed: Sequence[bool], *values: Any) -> tuple[list[Any], list[Any]]:
            count = 0

            def flat(*xs: Any) -> list[Any]:
                nonlocal count
                outs, residuals = forward(perturbed, *xs)
                count = len(outs)
                return outs + residuals

            found, found_dims = batch_flat(flat, axis, values, mapped)
            residual_dims[:] = found_dims[count:]  # the same whenever it runs
            outs = [
                with_dim(axis, x, d, 0)
                for x, d in zip(found[:count], found_dims[:count], strict=True)
            ]
            return outs, found[count:]

        def batched_backward(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
            return batch_backward(axis, backward, residuals, residual_dims, cotangents, mapped)

        outs = self.bind(
            *operands,
            function=batched,
            forward=batched_forward,
            backward=batched_backward,
            captured=captured,
            name=name,
        )
        return outs, [0] * len(outs)

    def transpose(self, cotangent: Sequence[Any], *operands: Any, **params: Any) -> NoReturn:
        raise MissingRule(
            self.name,
            "transpose",
            f"The custom_vjp function {params['name']} was applied to a tangent; its rules do not say "
            "how to transpose it. Use custom_derivatives.linear_call.",
        )


def batch_backward(
    axis: AxisData,
    backward: Backward,
    residuals: Sequence[Any],
    residual_dims: Sequence[int | None],
    cotangents: Sequence[Any],
    operand_dims: Sequence[int | None],
) -> list[Any]:
    """Runs a backward rule over a mapped axis that cotangents have first (Zero ones too).

    The cotangent of an operand that was not mapped is summed over the axis."""
    nonzero = [type(ct) is not Zero for ct in cotangents]
    zeros: list[Zero | None] = []

    def flat(*values: Any) -> list[Any]:
        given = iter(values[len(residuals) :])
        inner = [
            next(given) if nz else Zero(tangent_type(_without_first(ct.aval)))
            for ct, nz in zip(cotangents, nonzero, strict=True)
        ]
        found = backward(values[: len(residuals)], inner)
        zeros[:] = [ct if type(ct) is Zero else None for ct in found]
        return [ct for ct in found if type(ct) is not Zero]

    given = [ct for ct, nz in zip(cotangents, nonzero, strict=True) if nz]
    found, dims = batch_flat(flat, axis, [*residuals, *given], [*residual_dims, *[0] * len(given)])
    pairs = iter(zip(found, dims, strict=True))
    results: list[Any] = []
    for zero, wanted in zip(zeros, operand_dims, strict=True):
        if zero is not None:
            results.append(Zero(inserted(zero.aval, axis.size, wanted)))
            continue
        value, dim = next(pairs)
        if wanted is not None:
            results.append(with_dim(axis, value, dim, wanted))
        else:
            whole = with_dim(axis, value, dim, 0)
            results.append(reduce_sum(whole, axes=(0,)))
    return results


def _without_first(aval: Any) -> Any:
    return type(aval)(aval.shape[1:], aval.dtype_code, aval.weak_type)


class CustomVJPLinear(Primitive):
    """Operands: residuals, then tangents of the active operands of the call."""

    multiple_results = True

    def bind(self, *args: Any, **params: Any) -> list[Any]:
        if STATE.trace is None:
            _no_forward_mode(params["name"])
        return super().bind(*args, **params)

    def type_rule(self, *avals: Any, out_avals: tuple[Any, ...], **params: Any) -> Any:
        return list(out_avals)

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        name: str,
        **params: Any,
    ) -> NoReturn:
        _no_forward_mode(name)

    def transpose(
        self,
        cotangent: Sequence[Any],
        *operands: Any,
        residual_count: int,
        active: tuple[bool, ...],
        backward: Backward,
        **params: Any,
    ) -> list[Any]:
        found = backward(operands[:residual_count], cotangent)
        return [None] * residual_count + [
            ct for ct, is_active in zip(found, active, strict=True) if is_active
        ]

    def batch(
        self,
        axis: AxisData,
        operands: Sequence[Any],
        dims: Sequence[int | None],
        *,
        residual_count: int,
        active: tuple[bool, ...],
        backward: Backward,
        out_avals: tuple[Any, ...],
        name: str,
    ) -> tuple[list[Any], list[int]]:
        residual_dims = list(dims[:residual_count])
        tangents = [
            with_dim(axis, x, d, 0)
            for x, d in zip(operands[residual_count:], dims[residual_count:], strict=True)
        ]
        operand_dims = [0 if a else None for a in active]

        def batched(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
            return batch_backward(
                axis, backward, residuals, residual_dims, cotangents, operand_dims
            )

        outs = self.bind(
            *operands[:residual_count],
            *tangents,
            residual_count=residual_count,
            active=active,
            backward=batched,
            out_avals=tuple(inserted(a, axis.size, 0) for a in out_avals),
            name=name,
        )
        return outs, [0] * len(outs)

    def expand(self, *operands: Any, name: str, **params: Any) -> NoReturn:
        _no_forward_mode(name)


custom_vjp_call_p = CustomVJPCall("custom_vjp_call")
custom_vjp_linear_p = CustomVJPLinear("custom_vjp_linear")


def _no_forward_mode(name: str) -> NoReturn:
    raise TypeError(
        f"can't apply forward-mode differentiation (jvp) to the custom_vjp function {name}: only "
        "its reverse derivative is defined. Use grad, vjp or jacrev, or define it with custom_jvp."
    )


class CustomVJPPrimal:
    """What a forward rule made with symbolic_zeros=True receives: `value`, and whether it is
    `perturbed`, that is, differentiated with respect to."""

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool):
        self.value = value
        self.perturbed = perturbed


class custom_vjp(CustomDerivative):
    """A function with a reverse derivative of the user's making.

    forward(*arguments) gives (result, residuals); backward(residuals, cotangent of the result)
    gives a tuple with the cotangent of each argument (None for zero).  Arguments in
    `nondiff_argnums` (or `nondiff_argnames`) are passed to backward first, as they are.

    >>> @custom_vjp
    ... def halved_gradient(x):
    ...     return x
    >>> halved_gradient.defvjp(lambda x: (x, None), lambda _, ct: (0.5 * ct,))

    Raises AttributeError when called before the rules are defined; TypeError under jvp.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Sets the two rules.

        `optimize_remat` changes nothing: the forward rule is traced with what is around it, so
        under `checkpoint` what it computes and nobody uses is removed without it."""
        self.fwd = fwd
        self.bwd = bwd
        self.symbolic_zeros = symbolic_zeros

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"custom_vjp function {function_name(self.fun)} has no derivative rules; "
                "define them with defvjp"
            )
        if current_trace() is None:
            return self.fun(*args, **kwargs)
        call = _Rules(self, args, kwargs)
        outs = custom_vjp_call_p.bind(
            *call.values,
            function=call.function,
            forward=call.forward,
            backward=call.backward,
            captured=0,
            name=call.name,
        )
        return call.out_tree.unflatten(outs)


class _Rules(FlatCall):
    """The flat functions of one call of a custom_vjp function."""

    def __init__(self, owner: custom_vjp, args: tuple[Any, ...], kwargs: dict[str, Any]):
        super().__init__(owner, args, kwargs)
        self.owner = owner
        self.in_avals = [type_of(x) for x in self.values]
        self.residual_tree: Any = None

    def forward(self, perturbed: Sequence[bool], *flat: Any) -> tuple[list[Any], list[Any]]:
        assert self.owner.fwd is not None
        given: Sequence[Any] = flat
        if self.owner.symbolic_zeros:
            given = [CustomVJPPrimal(x, p) for x, p in zip(flat, perturbed, strict=True)]
        pair = self.owner.fwd(*self.with_values(given))
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
            raise TypeError(
                f"the forward rule of custom_vjp function {self.name} must return "
                f"(result, residuals), got {type(pair).__name__}"
            )
        outs = self.flat_result(pair[0], f"{self.name}: a result of the forward rule")
        residuals, self.residual_tree = tree_flatten(pair[1])
        return outs, [
            as_value(x, lambda: f"the forward rule of {self.name}: a residual") for x in residuals
        ]

    def backward(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        assert self.owner.bwd is not None
        found = self.owner.bwd(
            *self.static,
            tree_unflatten(self.residual_tree, residuals),
            tree_unflatten(self.out_tree, self.owner.for_rule(cotangents)),
        )
        return self._cotangents(found)

    def _cotangents(self, found: Any) -> list[Any]:
        expected = tree_unflatten(self.in_tree, range(len(self.in_avals)))
        if isinstance(found, list):
            found = tuple(found)
        if not isinstance(found, tuple) or len(found) != len(expected):
            shown = f"a tuple of {len(found)}" if isinstance(found, tuple) else type(found).__name__
            raise TypeError(
                f"the backward rule of custom_vjp function {self.name} must return a tuple with "
                f"one cotangent for each of its {len(expected)} differentiable arguments, got "
                f"{shown}"
            )
        results: list[Any] = []
        names = parameter_names(self.fun, len(self.args))
        for tree, given, place in zip(expected, found, self.places, strict=True):
            positions, treedef = tree_flatten(tree)
            try:
                leaves = [None] * len(positions) if given is None else treedef.flatten_up_to(given)
            except (ValueError, TypeError, KeyError):
                raise TypeError(
                    f"the backward rule of {self.name}: the cotangent of argument {names[place]} "
                    f"differs in structure from it{prefix_mismatch(tree, given) or ''}"
                ) from None
            for position, leaf in zip(positions, leaves, strict=True):
                results.append(self._cotangent(leaf, self.in_avals[position], names[place]))
        return results

    def _cotangent(self, leaf: Any, aval: Any, argument: str) -> Any:
        if leaf is None or isinstance(leaf, SymbolicZero):
            return zero_of(aval)
        return tangent_in(
            leaf,
            aval,
            lambda: f"the backward rule of {self.name}: cotangent of {argument}",
        )


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function from one that returns (result, its own vjp function).

    >>> @custom_gradient
    ... def f(x):
    ...     return x * x, lambda ct: (3 * ct,)
    >>> float(f(2.0))
    4.0
    """

    @custom_vjp
    def wrapped(*args: Any) -> Any:
        return fun(*args)[0]

    def forward(*args: Any) -> Any:
        result, rule = fun(*args)
        zeros = tree_unflatten(
            tree_flatten(result)[1],
            [tangent_out(zero_of(type_of(x))) for x in tree_flatten(result)[0]],
        )
        converted, captured = closure_convert(rule, zeros)
        return result, Partial(_CapturedLast(converted), *captured)

    def backward(rule: Any, cotangent: Any) -> Any:
        found = rule(cotangent)
        return tuple(found) if isinstance(found, (tuple, list)) else (found,)

    wrapped.defvjp(forward, backward)
    functools.update_wrapper(wrapped, fun)
    return wrapped


class _CapturedLast:
    """Calls converted(cotangent, *captured) as f(*captured, cotangent)."""

    def __init__(self, converted: Callable[..., Any]):
        self.converted = converted

    def __call__(self, *captured_and_cotangent: Any) -> Any:
        *captured, cotangent = captured_and_cotangent
        return self.converted(cotangent, *captured)


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The arguments of a forward rule made with symbolic_zeros=True, without who is perturbed.

    >>> custom_vjp_primal_tree_values({"a": CustomVJPPrimal(1.0, True)})
    {'a': 1.0}
    """
    return tree_map(lambda x: x.value if isinstance(x, CustomVJPPrimal) else x, tree)
