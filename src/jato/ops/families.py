"""What the families of primitives share: cached types, zero cotangents, checks of operands.

    TypeCached   remembers the result types it has computed: tracing asks for them all the time
    transposed   a `transpose` rule that need not think of zero cotangents

The families themselves: Linear (shapes.py), Reduction (reduction_family.py), Elementwise
(elementwise_family.py), ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jato.base import dtypes
from jato.base.errors import fail
from jato.core.primitive import Primitive, UndefinedPrimal
from jato.core.types import Zero, type_of

Shape = tuple[int, ...]

_MAX_CACHED_TYPES = 4096  # per primitive; then it starts anew, so that memory stays bounded


class TypeCached(Primitive):
    """Computes each result type once; `result_type` is the rule itself.

    A hit costs 0.3 us.  Types are interned, so hashing the operands' types is hashing pointers.
    """

    def __init__(self, name: str):
        super().__init__(name)
        self._types: dict[Any, Any] = {}

    def type_rule(self, *avals: Any, **params: Any) -> Any:
        key = (avals, *params.items()) if params else avals
        found = self._types.get(key)
        if found is None:
            found = self.result_type(*avals, **params)
            if len(self._types) >= _MAX_CACHED_TYPES:
                self._types.clear()
            self._types[key] = found
        return found

    def result_type(self, *avals: Any, **params: Any) -> Any:
        """`type_rule` without the cache."""
        raise NotImplementedError

    def fail(self, problem: str, hint: str = "", error: type[Exception] = TypeError) -> Any:
        """Raises the error of a wrong operand or parameter of this primitive."""
        fail(error, self.name, problem, hint)


def transposed(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A `transpose` method made from one that need not think of zero cotangents."""

    def transpose(self: Any, cotangent: Any, *operands: Any, **params: Any) -> Sequence[Any]:
        if type(cotangent) is Zero:
            return [Zero(x.aval) if type(x) is UndefinedPrimal else None for x in operands]
        return rule(self, cotangent, *operands, **params)

    transpose.__doc__ = rule.__doc__
    return transpose


def is_zero_tangent(tangent: Any) -> bool:
    """Is it a symbolic zero, or of the type of integers' tangents?"""
    return type(tangent) is Zero or type_of(tangent).dtype == dtypes.float0


# ---- checks that type rules share

_KINDS = {
    "b": "bool", "i": "integer", "u": "unsigned integer", "f": "float", "c": "complex",
    "k": "random key",
}  # fmt: skip


def kind_of(aval: Any) -> str:
    """The letter of the dtype's kind: b i u f c, k for random keys, 0 for float0."""
    return "biiiiuuuuffffcc0k"[aval.dtype_code]


def check_kind(primitive: TypeCached, argument: str, aval: Any, takes: str) -> None:
    """Raises TypeError unless the operand's dtype is of a kind in `takes`."""
    if kind_of(aval) not in takes:
        names = [_KINDS[k] for k in takes if not (k == "u" and "i" in takes)]
        expected = " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
        primitive.fail(
            f"expected {argument} to have a dtype of kind {expected}, got {aval}.",
            "Try lax.convert_element_type; the functions of jato.numpy convert by themselves.",
        )


def check_axes(primitive: TypeCached, argument: str, axes: Shape, aval: Any) -> None:
    """Raises ValueError unless `axes` are different axes of the operand."""
    if any(not 0 <= i < aval.ndim for i in axes) or len(set(axes)) != len(axes):
        primitive.fail(
            f"expected {argument} to be different axes in 0..{aval.ndim - 1} of {aval}, "
            f"got {axes}.",
            error=ValueError,
        )
