"""ensure_compile_time_eval: computing with known values while a function is being traced.

Under `jit` every operation is recorded, also one on constants.  Inside this context an operation
whose operands are all known runs at once and gives an array, whose numbers Python may look at.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jato import _native
from jato.core.primitive import Primitive
from jato.core.trace import STATE, Trace, Tracer, current_trace, set_trace


class CompileTimeTrace(Trace):
    """Runs operations on known values eagerly, all others in the trace around it."""

    __slots__ = ()

    def describe(self) -> str:
        return "ensure_compile_time_eval"

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        target = self.parent if any(isinstance(x, Tracer) for x in args) else None
        STATE.trace = target
        if target is None:
            _native.set_trace_active(False)
        try:
            return primitive.bind(*args, **params)
        finally:
            STATE.trace = self
            _native.set_trace_active(True)


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Inside the `with` block operations on known values run at once, even under jit.

    Operations on traced values are recorded as usual.

    >>> import jato, jato.numpy as jnp
    >>> @jato.jit
    ... def f(x):
    ...     with ensure_compile_time_eval():
    ...         size = int(jnp.sum(jnp.arange(4)))   # a Python integer
    ...     return jnp.zeros(size) + x
    >>> f(1.0).shape
    (6,)
    """
    if current_trace() is None:
        yield
        return
    trace = CompileTimeTrace(current_trace())
    try:
        with set_trace(trace):
            yield
    finally:
        trace.valid = False
