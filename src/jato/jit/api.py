"""jit: compiles a function, as decorator or as function.

Start at `jit`; what happens on a call with new arguments is in pipeline.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from jato import _native
from jato.base import caches
from jato.jit.pipeline import JitState, JitStats, remember
from jato.jit.spec import make_spec
from jato.jit.stages import Lowered, Traced, lower_call, trace_call


def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    in_shardings: Any = None,
    out_shardings: Any = None,
    abstracted_axes: Any = None,
    compiler_options: Any = None,
) -> Any:
    """Compiles `fun`: traced once per kind of arguments, fused, run as machine code from then on.

    Args:
      fun: a pure function of arrays, numbers and pytrees of them.  Left out, `jit(...)` is a
        decorator.
      static_argnums, static_argnames: arguments that are Python values chosen when the function is
        traced.  They need a hash; each new value is traced again.
      donate_argnums, donate_argnames: arguments whose memory results may take over.  They must
        not be used after the call.
      keep_unused: accepted; arguments that are not used cost nothing.
      device, backend, inline, in_shardings, out_shardings, abstracted_axes, compiler_options:
        accepted, without effect.
    Returns:
      A function with the same signature, and the attributes `trace`, `lower`, `stats`,
      `clear_cache`, `eval_shape`.
    Raises:
      TypeError or ValueError for wrong options; ValueError on a call with an unhashable static
      argument.

    >>> import jato
    >>> import jato.numpy as jnp
    >>> @jato.jit
    ... def scaled(x):
    ...     return x / jnp.sum(x)
    >>> scaled(jnp.array([1.0, 3.0]))
    Array([0.25, 0.75], dtype=float32)
    """

    def decorate(f: Callable[..., Any]) -> Any:
        spec = make_spec(
            f, static_argnums, static_argnames, donate_argnums, donate_argnames, keep_unused
        )
        state = JitState(spec)
        function = _native.JitFunction(
            f, state.cold, state.traced, spec.static_argnums, spec.static_argnames,
            spec.donate_argnums, spec.name,
        )  # fmt: skip
        return dress(function, state)

    return decorate if fun is None else decorate(fun)


def dress(function: Any, state: JitState) -> Any:
    """Gives the native function its Python attributes."""
    fun = state.spec.fun
    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        value = getattr(fun, name, None)
        if value is not None:
            setattr(function, name, value)
    remember(function, state)

    def trace(*args: Any, **kwargs: Any) -> Traced:
        """The traced program for these arguments (arrays or ShapeDtypeStructs)."""
        return trace_call(state, args, kwargs)

    def lower(*args: Any, **kwargs: Any) -> Lowered:
        """The program for these arguments, ready to compile."""
        return lower_call(state, args, kwargs)

    def eval_shape(*args: Any, **kwargs: Any) -> Any:
        """Shapes and dtypes of the results."""
        return trace_call(state, args, kwargs).out_info

    def stats() -> JitStats:
        """What tracing and compiling have cost so far (a copy)."""
        return dataclasses.replace(state.stats, passes_ms=dict(state.stats.passes_ms))

    def clear_cache() -> None:
        """Forgets all compiled programs of this function."""
        function.cache_clear()
        state.graphs.clear()

    function.trace = trace
    function.lower = lower
    function.eval_shape = eval_shape
    function.stats = stats
    function.clear_cache = clear_cache
    return function


def explain_retrace(function: Any) -> str:
    """Why a jitted function was traced the last time: which argument changed, from what to what.

    >>> import jato
    >>> import jato.numpy as jnp
    >>> f = jato.jit(lambda x: x + 1)
    >>> _ = f(jnp.zeros(3)), f(jnp.zeros(4))
    >>> print(jato.explain_retrace(f))
    <lambda> was traced 2 times; the last time because
      argument x changed from float32[3] to float32[4]
    """
    state = getattr(function, "_state", None)
    if not isinstance(state, JitState):
        raise TypeError(
            f"explain_retrace: expected a function made by jato.jit, got {type(function).__name__}"
        )
    traces = state.stats.traces
    if traces == 0:
        return f"{state.spec.name} was not traced yet"
    lines = state.history.explain()
    if not lines:
        return f"{state.spec.name} was traced once, for its first call"
    return "\n  ".join(
        [f"{state.spec.name} was traced {traces} times; the last time because", *lines]
    )


def clear_caches() -> None:
    """Empties all in-memory caches: programs of every jitted function, traces, kernels.

    Kernels on disk stay.
    """
    caches.clear_all()
