"""Sorting: `sort` of one or several arrays by the first of them, and `top_k`.

Order: ascending; NaN last, all NaN alike; -0 equals +0; False before True; complex numbers by
real, then imaginary part.  Equal keys keep their order when `is_stable`, which costs little: it is
always so where several arrays are sorted.

The host routines map keys to unsigned integers of the same order (`ordered_bits`).  Keys of up to
32 bits are packed with the position into one 64-bit word, so that NumPy's vectorised (unstable)
sort of integers gives the stable order at once: 1M float32 with positions in 12 ms on AVX-512,
where a merge sort takes 90.  Start reading at `Sort`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import check
from jato.core.primitive import AxisData
from jato.core.types import Zero, array_type, tangent_type, type_of
from jato.ops.families import is_zero_tangent
from jato.ops.indexing import take_along
from jato.ops.opaque import Opaque
from jato.ops.shapes import mapped_first, move_axis
from jato.ops.structural import broadcasted_iota

_FEW = 128  # so many are kept in order while a row is read once
_PACKED_LIMIT = 1 << 32  # positions of a packed word

# What the native routine sorts.  It spares 10 to 25 us of a step in Python and is faster than what
# needs positions too; of many longer rows by themselves NumPy's vectors are faster: 1000 x 32 float32
# in 53 us against 160, but 1000 x 256 with positions in 14 ms against 5.
_SHORT = 256
_TINY = 8
_FEW_KEYS = 512


def ordered_bits(x: np.ndarray) -> np.ndarray:
    """Unsigned integers, as wide as x, that compare as its elements do (NaN largest, -0 = 0)."""
    kind = x.dtype.kind
    if kind == "b":
        return x.view(np.uint8)
    if kind == "u":
        return x
    width = x.dtype.itemsize * 8
    unsigned = np.dtype(f"uint{width}")
    top = unsigned.type(1 << (width - 1))
    if kind == "i":
        return x.view(unsigned) ^ top
    x = np.where(x == 0, np.zeros((), x.dtype), x)  # one zero
    bits = x.view(unsigned)
    flipped = np.where(bits & top, ~bits, bits | top)
    return np.where(np.isnan(x), ~unsigned.type(0), flipped)


def _key_columns(x: np.ndarray) -> list[np.ndarray]:
    """The unsigned keys of x, most significant first."""
    if x.dtype.kind == "c":
        return [
            ordered_bits(np.ascontiguousarray(x.real)),
            ordered_bits(np.ascontiguousarray(x.imag)),
        ]
    return [ordered_bits(x)]


def _packed(key: np.ndarray) -> np.ndarray:
    """key << 32 | position along the last axis."""
    position = np.arange(key.shape[-1], dtype=np.uint64)
    return key.astype(np.uint64) << np.uint64(32) | position


def _positions(packed: np.ndarray) -> np.ndarray:
    return (packed & np.uint64(0xFFFFFFFF)).astype(np.int64)


def _stable_order(keys: list[np.ndarray]) -> np.ndarray:
    """Positions along the last axis in ascending, stable order of the keys."""
    key = keys[0]
    if len(keys) > 1:
        return np.lexsort(keys[::-1], axis=-1)
    if key.dtype.itemsize <= 4 and key.shape[-1] < _PACKED_LIMIT:
        packed = _packed(key)
        packed.sort(axis=-1)
        return _positions(packed)
    return np.argsort(key, axis=-1, kind="stable")


def _sort_values(x: np.ndarray, stable: bool) -> np.ndarray:
    """One array sorted along its last axis."""
    if x.dtype.kind in "biu":
        return np.sort(x, axis=-1)
    if x.dtype.kind == "f":
        # equal floats look alike, except zeros of both signs, whose order must be kept
        if not stable or not (np.signbit(x) & (x == 0)).any():
            return np.sort(x, axis=-1)
        return np.sort(x, axis=-1, kind="stable")
    return np.take_along_axis(x, _stable_order(_key_columns(x)), axis=-1)


class Sort(Opaque):
    """Sorts all operands, of one shape, along `dimension` by the first `num_keys` of them."""

    def result_type(self, *operands: Any, dimension: int, is_stable: bool, num_keys: int) -> Any:
        shape = operands[0].shape
        if any(x.shape != shape for x in operands):
            self.fail(f"expected operands of one shape, got {', '.join(map(str, operands))}.")
        if not 0 <= dimension < len(shape):
            self.fail(
                f"expected dimension to be an axis of {operands[0]}, got {dimension}.",
                error=ValueError,
            )
        if not 1 <= num_keys <= len(operands):
            self.fail(
                f"expected num_keys between 1 and {len(operands)}, the number of operands, got "
                f"{num_keys}.",
                error=ValueError,
            )
        return list(operands)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        if all(map(is_zero_tangent, tangents)):
            outs = self.bind(*primals, **params)
            return outs, [Zero(tangent_type(type_of(x))) for x in outs]
        shape, dimension = type_of(primals[0]).shape, params["dimension"]
        dtype = np.dtype("int32" if max(shape) < 2**31 else "int64")
        *outs, order = self.bind(
            *primals, broadcasted_iota(dtype, shape, dimension), **(params | {"is_stable": True})
        )
        moved = [
            Zero(tangent_type(type_of(x)))
            if is_zero_tangent(t)
            else take_along(t, order, dimension)
            for x, t in zip(outs, tangents, strict=True)
        ]
        return outs, moved

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> Any:
        moved = [mapped_first(x, d, axis.size) for x, d in zip(operands, dims, strict=True)]
        params["dimension"] += 1
        return self.bind(*moved, **params), [0] * len(moved)

    def library_call(self, node: Any) -> tuple[str, tuple[int, ...]] | None:
        keys, *others = [a.aval for a in node.inputs]
        n = keys.shape[-1]
        if dtypes.is_complex(keys.dtype) or len(others) > 1 or node.params["num_keys"] > 1:
            return None
        if node.params["dimension"] != keys.ndim - 1 or n > _SHORT:
            return None
        if not others and keys.size > _FEW_KEYS and n > _TINY:
            return None
        rows = keys.size // max(n, 1)
        if others:
            return "sort_pair", (keys.dtype_code, rows, n, others[0].itemsize)
        return "sort", (keys.dtype_code, rows, n)

    def library_cost(self, node: Any) -> float:
        n = node.inputs[0].aval.shape[-1]
        return 3.0 * node.inputs[0].aval.size * max(n, 2).bit_length()

    def host(
        self, *operands: np.ndarray, dimension: int, is_stable: bool, num_keys: int
    ) -> list[np.ndarray]:
        last = [np.ascontiguousarray(np.moveaxis(x, dimension, -1)) for x in operands]
        if len(last) == 1:
            outs = [_sort_values(last[0], is_stable)]
        else:
            order = _stable_order([column for x in last[:num_keys] for column in _key_columns(x)])
            outs = [np.take_along_axis(x, order, axis=-1) for x in last]
        return [np.ascontiguousarray(np.moveaxis(x, -1, dimension)) for x in outs]


class TopK(Opaque):
    """The k largest along `axis` in descending order, and where they are (int32).

    NaN counts as largest; of equal elements the first come first."""

    def result_type(self, x: Any, *, k: int, axis: int) -> Any:
        if not 0 <= axis < x.ndim:
            self.fail(f"expected axis to be an axis of {x}, got {axis}.", error=ValueError)
        if not 0 <= k <= x.shape[axis]:
            self.fail(
                f"expected 0 <= k <= {x.shape[axis]}, the extent of axis {axis} of {x}, got {k}.",
                error=ValueError,
            )
        if dtypes.is_complex(x.dtype):
            self.fail(f"expected operand to be real, got {x}.", "Try sort.", error=ValueError)
        shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
        return [array_type(shape, x.dtype, x.weak_type), array_type(shape, np.int32)]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, k: int, axis: int) -> Any:
        values, indices = self.bind(*primals, k=k, axis=axis)
        no_tangent = Zero(tangent_type(type_of(indices)))
        if is_zero_tangent(tangents[0]):
            return [values, indices], [Zero(tangent_type(type_of(values))), no_tangent]
        return [values, indices], [take_along(tangents[0], indices, axis), no_tangent]

    def batch(self, mapped: AxisData, operands: Any, dims: Any, *, k: int, axis: int) -> Any:
        return self.bind(move_axis(operands[0], dims[0], 0), k=k, axis=axis + 1), [0, 0]

    def library_call(self, node: Any) -> tuple[str, tuple[int, ...]] | None:
        x, k = node.inputs[0].aval, node.params["k"]
        last = node.params["axis"] == x.ndim - 1
        if not last or k > _FEW or x.itemsize == 2 and dtypes.is_floating(x.dtype):
            return None
        return "top_k", (x.dtype_code, x.size // max(x.shape[-1], 1), x.shape[-1], k)

    def library_cost(self, node: Any) -> float:
        return 1.0 * node.inputs[0].aval.size

    def host(self, x: np.ndarray, *, k: int, axis: int) -> list[np.ndarray]:
        x = np.ascontiguousarray(np.moveaxis(x, axis, -1))
        if 0 < 16 * k < x.shape[-1] and x.dtype.kind in "iuf":
            order = _few_largest(x.reshape(-1, x.shape[-1]), k).reshape(*x.shape[:-1], k)
        else:
            order = _stable_order([~ordered_bits(x)])[..., :k]
        outs = np.take_along_axis(x, order, axis=-1), order.astype(np.int32)
        return [np.ascontiguousarray(np.moveaxis(o, -1, axis)) for o in outs]


def _few_largest(x: np.ndarray, k: int) -> np.ndarray:
    """Positions of the k largest of each row, in order, when k is much less than the length.

    One selection gives the k-th largest; only what is not below it is ordered.  NumPy selects NaN
    as largest, as we do."""
    n = x.shape[-1]
    least = np.partition(x, n - k, axis=-1)[:, n - k : n - k + 1]
    row, position = np.divmod(np.flatnonzero(~(x < least)), n)
    order = np.lexsort((position, ~ordered_bits(x[row, position]), row))
    row, position = row[order], position[order]
    first = np.searchsorted(row, np.arange(len(x)))  # ties may give a row more than k
    return position[first[:, None] + np.arange(k)]


SORT = Sort("sort")
TOP_K = TopK("top_k")


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Sorts an array along an axis; or several arrays by the first `num_keys` of them.

    Args: operand: an array, or a sequence of arrays of one shape; dimension: the axis;
    is_stable: equal elements keep their order; num_keys: how many arrays make the key.
    Returns: the sorted array, or a tuple of arrays.  NaN is last; -0 equals +0.
    Raises: TypeError for unequal shapes or no operand; ValueError for a wrong axis or num_keys.

    >>> sort(np.array([3, 1, 2])).tolist()
    [1, 2, 3]
    """
    several = isinstance(operand, (list, tuple))
    operands = list(operand) if several else [operand]
    check(
        len(operands) > 0,
        TypeError,
        "sort: argument 'operand': expected at least one array, got none.",
    )
    rank = type_of(operands[0]).ndim
    check(
        -rank <= dimension < rank,
        ValueError,
        f"sort: argument 'dimension': expected an axis of {type_of(operands[0])}, got {dimension}.",
    )
    outs = SORT.bind(
        *operands, dimension=dimension % rank, is_stable=bool(is_stable), num_keys=int(num_keys)
    )
    return tuple(outs) if several else outs[0]


def sort_key_val(
    keys: Any, values: Any, dimension: int = -1, is_stable: bool = True
) -> tuple[Any, Any]:
    """Sorts `keys` along an axis and moves `values` alike: (keys, values).

    >>> [x.tolist() for x in sort_key_val(np.array([3, 1, 2]), np.arange(3))]
    [[1, 2, 3], [1, 2, 0]]
    """
    return sort((keys, values), dimension, is_stable, 1)


def top_k(operand: Any, k: int, *, axis: int = -1, is_stable: bool = True) -> list[Any]:
    """The k largest elements along an axis, descending, and their positions: [values, indices].

    Of equal elements the first is taken first, whatever `is_stable` says; NaN counts as largest.
    Raises: ValueError when k exceeds the extent or the axis does not exist.

    >>> [x.tolist() for x in top_k(np.array([3, 1, 2]), 2)]
    [[3, 2], [0, 2]]
    """
    rank = type_of(operand).ndim
    check(
        -rank <= axis < rank,
        ValueError,
        f"top_k: argument 'axis': expected an axis of {type_of(operand)}, got {axis}.",
    )
    return TOP_K.bind(operand, k=int(k), axis=axis % rank)
