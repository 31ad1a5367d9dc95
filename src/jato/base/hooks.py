"""The two set-once hooks by which lower layers reach higher ones.

`eval_primitive`  runs one primitive on concrete arrays (filled by jit/eager.py)
`array_operator`  the table of operators of arrays and tracers (filled by numpy/methods.py)

Both are filled by the package `__init__`, once; everything else that goes up goes through the
methods of `core.Primitive`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jato.base.errors import invariant


class Hook:
    """A value set exactly once."""

    __slots__ = ("_value", "name")

    def __init__(self, name: str):
        self.name = name
        self._value: Any = None

    def fill(self, value: Any) -> None:
        invariant(self._value is None, f"hook {self.name} is filled twice")
        self._value = value

    def get(self) -> Any:
        invariant(self._value is not None, f"hook {self.name} is used before it is filled")
        return self._value


# (primitive, args, params) -> outputs, as Primitive.bind returns them
eval_primitive: Hook = Hook("eval_primitive")
# operator or method name ("add", "getitem", "sum", ...) -> function(self, ...)
array_operator: Hook = Hook("array_operator")

EvalPrimitive = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
OperatorTable = Mapping[str, Callable[..., Any]]
