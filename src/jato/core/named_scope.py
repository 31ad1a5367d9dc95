"""named_scope and named_call: the user's names for parts of a program.

They are added to the place in the user's code that messages and listings give for an operation:
`train.py:12 (layer) in encoder/attention`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any

from jato.base.errors import check
from jato.base.pytree import function_name
from jato.core.trace import STATE


class named_scope(contextlib.ContextDecorator):
    """A name for the operations inside a `with` block, or in a function it decorates; they nest.

    >>> import jato, jato.numpy as jnp
    >>> def f(x):
    ...     with named_scope("encoder"):
    ...         return jnp.sin(x)
    >>> str(jato.make_jaxpr(f)(1.0).eqns[0].frame).endswith("in encoder")
    True

    TypeError if the name is no string.
    """

    def __init__(self, name: str):
        check(
            isinstance(name, str), TypeError, f"named_scope: the name must be a string, got {name!r}"
        )
        self.name = name
        self._outer: list[str] = []

    def __enter__(self) -> named_scope:
        self._outer.append(STATE.scope)
        STATE.scope = f"{STATE.scope}/{self.name}" if STATE.scope else self.name
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        STATE.scope = self._outer.pop()


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """`fun`, whose operations are named after it (or `name`); see `named_scope`."""
    label = function_name(fun) if name is None else name

    @functools.wraps(fun)
    def named(*args: Any, **kwargs: Any) -> Any:
        with named_scope(label):
            return fun(*args, **kwargs)

    return named
