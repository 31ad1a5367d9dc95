"""Why a jitted function was traced again: which argument changed, from what to what.

Each trace records a short description of its arguments.  `explain` compares the last one with
the most similar before it.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from jato.base.pytree import tree_flatten
from jato.base.signatures import leaf_names, parameter_names
from jato.core.types import type_of
from jato.jit.spec import JitSpec

# Calls remembered per function.
LIMIT = 16


class History:
    """The last traces of one jitted function."""

    def __init__(self, spec: JitSpec):
        self.spec = spec
        self.calls: deque[dict[str, str]] = deque(maxlen=LIMIT)

    def record(self, args: tuple[Any, ...], kwargs: dict[str, Any], arguments: Any) -> None:
        self.calls.append(_describe(self.spec, args, kwargs))

    def explain(self) -> list[str]:
        """One line per argument that differs from the nearest earlier trace; [] for the first."""
        if len(self.calls) < 2:
            return []
        last = self.calls[-1]
        best = min(list(self.calls)[:-1], key=lambda c: len(_differences(c, last)))
        lines = _differences(best, last)
        return lines or ["the same arguments: the cache had been cleared or a setting changed"]


def _differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    lines: list[str] = []
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if old is None:
            lines.append(f"argument {name} is new: {new}")
        elif new is None:
            lines.append(f"argument {name} is gone (was {old})")
        else:
            lines.append(f"argument {name} changed from {old} to {new}")
    return lines


def _describe(spec: JitSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    names = parameter_names(spec.fun, len(args))
    for i, (name, value) in enumerate(zip(names, args, strict=True)):
        if i in spec.static_argnums:
            found[name] = f"static {value!r:.80}"
        else:
            found.update(_describe_leaves(name, value))
    for name, value in kwargs.items():
        if name in spec.static_argnames:
            found[name] = f"static {value!r:.80}"
        else:
            found.update(_describe_leaves(name, value))
    return found


def _describe_leaves(name: str, value: Any) -> dict[str, str]:
    leaves, _ = tree_flatten(value)

    def holder(x: Any) -> None:
        del x

    suffixes = leaf_names(holder, (value,))
    return {
        name + suffix[1:]: _describe_leaf(x) for suffix, x in zip(suffixes, leaves, strict=True)
    }


def _describe_leaf(x: Any) -> str:
    try:
        kind = "" if not isinstance(x, np.ndarray) else " (NumPy)"
        return f"{type_of(x)}{kind}"
    except TypeError:
        return type(x).__name__


def describe_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    leaves, _ = tree_flatten((args, kwargs))
    shown = ", ".join(_describe_leaf(x) for x in leaves[:8])
    return shown + (f", ... ({len(leaves)} leaves)" if len(leaves) > 8 else "")
