"""fwd_and_bwd: the two passes of reverse mode as two compiled functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jato.base.errors import check
from jato.base.pytree import function_name
from jato.jit.api import jit
from jato.transforms.linearize import vjp


def fwd_and_bwd(
    fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:  # fmt: skip
    """(forward, backward): forward(*args) gives (result, residuals) and, with `has_aux`, what fun
    returned beside the result; backward(residuals, cotangent) the cotangents.

    argnums: position of the argument to differentiate, or several, for which backward gives a tuple;
    jitted: both are compiled, once for all calls of equal types.
    Raises: TypeError if fun is no function; ValueError for positions that a call does not have.

    >>> forward, backward = fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
    >>> out, residuals = forward(2.0, 3.0)
    >>> [float(ct) for ct in backward(residuals, 1.0)]
    [3.0, 2.0]
    """
    check(callable(fun), TypeError, f"fwd_and_bwd: expected a function, got {fun!r}")
    single = isinstance(argnums, int)
    places = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    name = function_name(fun)

    def forward(*args: Any) -> Any:
        check(
            all(-len(args) <= i < len(args) for i in places),
            ValueError,
            f"fwd_and_bwd of {name}: argnums are {places}, but the call has {len(args)} arguments",
        )

        def of_chosen(*chosen: Any) -> Any:
            merged = list(args)
            for i, x in zip(places, chosen, strict=True):
                merged[i] = x
            return fun(*merged)

        of_chosen.__name__ = name
        found = vjp(of_chosen, *(args[i] for i in places), has_aux=has_aux)
        return (found[0], found[1], found[2]) if has_aux else (found[0], found[1])

    def backward(residuals: Any, cotangent: Any) -> Any:
        cotangents = residuals(cotangent)
        return cotangents[0] if single else cotangents

    return (jit(forward), jit(backward)) if jitted else (forward, backward)
