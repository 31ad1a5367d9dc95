"""Leaked tracers: found when a trace ends, with `jax_check_tracer_leaks` (`checking_leaks()`).

A tracer is leaked if something still holds it after the function it was made for has returned: a
global, an attribute, a closure.  Looking for them means a run of the garbage collector for each
trace, so it is off by default.
"""

from __future__ import annotations

import gc
from types import FrameType, ModuleType
from typing import Any

from jato.base.config import config
from jato.base.errors import UnexpectedTracerError
from jato.core.trace import Trace, Tracer


def check_leaks(trace: Trace) -> None:
    """Raises UnexpectedTracerError if a tracer of a finished trace is alive; only if wanted.

    The caller must hold no tracer itself."""
    if not config.jax_check_tracer_leaks:
        return
    if not _tracers_of(trace):
        return
    gc.collect()  # some may be held by cycles only
    leaked = _tracers_of(trace)
    if not leaked:
        return
    lines = []
    for tracer in leaked:
        lines.append(f"  {tracer!r}. {tracer.origin()} Held by {_holder(tracer, leaked)}.")
    raise UnexpectedTracerError(
        f"Leaked trace: {trace.describe()} has ended, but its tracers are still in use. Leaked "
        f"tracer(s):\n" + "\n".join(lines) + "\nReturn the values from the function instead."
    )


def _tracers_of(trace: Trace) -> list[Any]:
    return [x for x in gc.get_referrers(trace) if isinstance(x, Tracer) and x.owner is trace]


def _holder(tracer: Tracer, leaked: list[Any]) -> str:
    identity = id(tracer)  # a comprehension that named the tracer would hold it in a cell
    for holder in gc.get_referrers(tracer):
        if holder is leaked or isinstance(holder, (FrameType, Tracer)):
            continue
        if isinstance(holder, dict):
            names = [k for k, v in holder.items() if id(v) == identity and isinstance(k, str)]
            owners = [
                x for x in gc.get_referrers(holder) if getattr(x, "__dict__", None) is holder
            ]
            owner = owners[0] if owners else None
            where = f"module {owner.__name__}" if isinstance(owner, ModuleType) else (
                "a dict" if owner is None else f"an object of class {type(owner).__name__}"
            )
            return f"{where}, as {names[0]!r}" if names else where
        names = [k for k, v in getattr(holder, "__dict__", {}).items() if id(v) == identity]
        if names:
            return f"an object of class {type(holder).__name__}, as {names[0]!r}"
        return f"a {type(holder).__name__}"
    return "something that cannot be found"
