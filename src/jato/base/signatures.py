"""Names of arguments, for messages: which parameter of the user's function, which leaf of it.

Looked up only when something went wrong; `inspect.signature` costs some 20 us.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from jato.base.pytree import keystr, tree_leaves_with_path


def parameter_names(fun: Callable[..., Any], count: int) -> list[str]:
    """What the user calls the first `count` positional arguments of `fun`."""
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return [f"number {i}" for i in range(count)]
    names: list[str] = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names.extend(f"{parameter.name}[{i}]" for i in range(count - len(names)))
            break
        if parameter.kind in (
            parameter.POSITIONAL_ONLY,
            parameter.POSITIONAL_OR_KEYWORD,
        ):
            names.append(parameter.name)
    names.extend(f"number {i}" for i in range(len(names), count))
    return names[:count]


def leaf_names(
    fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
) -> list[str]:
    """One name for each leaf of (args, kwargs), in flattening order: `params['w'][0]`.

    >>> leaf_names(lambda x, y: None, (1, {"a": 2}))
    ['x', "y['a']"]
    """
    names: list[str] = []
    for name, value in zip(parameter_names(fun, len(args)), args, strict=True):
        names.extend(name + keystr(path) for path, _ in tree_leaves_with_path(value))
    for path, _ in tree_leaves_with_path(kwargs or {}):
        names.append(str(path[0].key) + keystr(path[1:]))
    return names
