"""Opaque: the family of primitives that name a routine of a library instead of a loop nest.

Sorts, factorizations and Fourier transforms do not fit `lower`; fusion stops at them.  A member
states

    library_call(node)     (routine, params) of the native library, or None where there is none
    host(*operands)        the same with NumPy or SciPy: ndarrays in, a list of ndarrays out

and the compiler uses the first that exists.  `host` gets C-contiguous read-only arrays, must not
write to them, and returns arrays of exactly the result types; it is the NumPy `reference` too.
Keys of random numbers come as uint64, and float0 never comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jato.base.errors import MissingRule
from jato.core.primitive import AxisData
from jato.core.types import Zero, tangent_type, type_of
from jato.ops.families import TypeCached
from jato.ops.shapes import mapped_first


class Opaque(TypeCached):
    """See the module.  `fusable` is false, so the compiler asks `library_call`, then `host`."""

    fusable = False
    multiple_results = True

    def library_call(self, node: Any) -> tuple[str, tuple[int, ...]] | None:
        """Name and integer parameters of a native routine for this node, or None."""
        return None

    def library_cost(self, node: Any) -> float:
        """Estimated nanoseconds of the routine on one thread."""
        return 10.0 * sum(v.aval.size for v in node.outputs)

    def host(self, *operands: np.ndarray, **params: Any) -> list[np.ndarray]:
        """The results by NumPy or SciPy."""
        raise MissingRule(self.name, "host")

    def reference(self, *operands: Any, **params: Any) -> list[Any]:
        return [np.asarray(x) for x in self.host(*map(np.asarray, operands), **params)]


class BatchedOpaque(Opaque):
    """Works on the last axes of its operands, for every index of the leading ones alike."""

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> Any:
        moved = [mapped_first(x, d, axis.size) for x, d in zip(operands, dims, strict=True)]
        outs = self.bind(*moved, **params)
        return outs, [0] * len(outs)


def zero_tangents(outs: Sequence[Any]) -> list[Zero]:
    """The symbolic zero tangents of some results."""
    return [Zero(tangent_type(type_of(x))) for x in outs]
