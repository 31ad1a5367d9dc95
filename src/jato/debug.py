"""jato.debug: looking at values while a compiled function runs, under the names of jax.debug."""

import sys
from typing import Any

from jato.base.lazy import LazyModule
from jato.core.array import ArrayImpl
from jato.core.trace import Tracer
from jato.ops.callback import debug_callback as callback
from jato.ops.callback import debug_print as print

code = LazyModule("code")


def breakpoint(*, ordered: bool = False, **options: Any) -> None:
    """Stops when the running program gets here, in a Python prompt that knows the caller's variables.

    Arrays among the variables have the values that the program has computed.  End the prompt
    (Ctrl-D) to go on.  The prompt reads standard input; other options are accepted.
    """
    del options
    frame = sys._getframe(1)
    variables = {**frame.f_globals, **frame.f_locals}
    place = f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})"
    arrays = {k: v for k, v in frame.f_locals.items() if isinstance(v, (ArrayImpl, Tracer))}
    del frame
    known = {k: v for k, v in variables.items() if not isinstance(v, Tracer)}

    def prompt(**values: Any) -> None:
        code.interact(banner=f"jato.debug.breakpoint at {place}", local={**known, **values})

    callback(prompt, ordered=ordered, **arrays)


__all__ = ["breakpoint", "callback", "print"]
