"""jato.stages: the types of a jitted function's stages, ahead of time, as in jax.stages.

`f.trace(x)` is a Traced, its `.lower()` a Lowered, and that one's `.compile()` a Compiled; a
jitted function itself is a Wrapped.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from jato.jit.stages import (
    Compiled as Compiled,
    Lowered as Lowered,
    Traced as Traced,
)

__all__ = ["Compiled", "Lowered", "Traced", "Wrapped"]


@runtime_checkable
class Wrapped(Protocol):
    """A function that was given to jit (or pmap).

    >>> import jato
    >>> isinstance(jato.jit(lambda x: x), jato.stages.Wrapped)
    True
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def trace(self, *args: Any, **kwargs: Any) -> Traced: ...

    def lower(self, *args: Any, **kwargs: Any) -> Lowered: ...
