"""Elements at indices along an axis: take, take_along_axis, put, put_along_axis."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np
from jato.base import dtypes
from jato.jit.eager import public
from jato.numpy.index_structure import Index, parse
from jato.numpy.indexing import fill_of, from_end_of_axis, gather_mode, read, read_elements
from jato.numpy.promote import as_array, as_operand, broadcast, common_shape, dtype_of
from jato.numpy.updating import IndexUpdateRef
from jato.ops import elementwise, indexing, structural


def _axis_index(x: Any, indices: Any, axis: int) -> tuple[Index, tuple[Any, ...], tuple[Any, ...]]:
    """x[:, ..., indices] at an axis."""
    index = (builtins.slice(None),) * axis + (indices,)
    return parse(x.shape, index, keep_out_of_bounds=True)


def take(
    a: Any,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Any:
    """The elements, or sub-arrays along `axis`, at `indices`.

    axis None: of the flattened array.  mode: "fill" (default: `fill_value`, nan by default, where
    out of bounds; negative indices count from the end), "clip" (negative ones are 0), "wrap".

    >>> import jato.numpy as jnp
    >>> jnp.take(jnp.array([1.0, 2.0]), jnp.array([1, 5]))
    Array([ 2., nan], dtype=float32)
    """
    if out is not None:
        raise NotImplementedError("take: argument 'out' is not supported")
    a = as_array("take", a)
    indices = as_operand("take", indices, 1)
    if not (dtypes.is_integer(dtype_of(indices))):
        raise ValueError(f"take: indices must have an integer type, got {dtype_of(indices)}")
    if mode == "raise":
        raise NotImplementedError(
            "take: mode 'raise' cannot be checked in compiled code; use 'fill'"
        )
    if fill_value is not None:
        fill_value = np.asarray(fill_value).item()
    return _take(
        a, indices, axis, "fill" if mode is None else gather_mode(mode), fill_value,
        unique_indices, indices_are_sorted,
    )  # fmt: skip


@public(static=("axis", "mode", "fill_value", "unique", "ordered"))
def _take(
    a: Any, indices: Any, axis: Any, mode: str, fill_value: Any, unique: bool, ordered: bool
) -> Any:
    a = as_array("take", a)
    if axis is None:
        a, axis = structural.reshape(a, (math.prod(a.shape),)), 0
    axis = _checked_axis("take", axis, len(a.shape))
    indices = as_array("take", indices)
    structure, starts, arrays = _axis_index(a, indices, axis)
    wrap = mode != "clip"
    if not wrap and starts:
        # without counting from the end: negative indices are clipped to 0
        starts = tuple(
            elementwise.max(s, dtype_of(s).type(0)) if hasattr(s, "aval") else builtins.max(s, 0)
            for s in starts
        )
    return read(a, starts, arrays, structure, mode, fill_value, unique, ordered, wrap)


def _checked_axis(function: str, axis: Any, rank: int) -> int:
    if not -rank <= axis < rank:
        raise np.exceptions.AxisError(
            f"{function}: axis {axis} is out of bounds for array of dimension {rank}"
        )
    return axis % rank


@public(static=("axis", "mode", "fill_value", "wrap_negative_indices"))
def take_along_axis(
    arr: Any,
    indices: Any,
    axis: int | None = -1,
    mode: str | None = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool = True,
) -> Any:
    """Elements at `indices` along an axis, the other axes corresponding (they broadcast).

    mode: "fill" (default), "clip" or "promise_in_bounds".

    >>> import jato.numpy as jnp
    >>> jnp.take_along_axis(jnp.array([[1, 2], [3, 4]]), jnp.array([[1], [0]]), 1)
    Array([[2],
           [3]], dtype=int32)
    """
    arr, indices = as_array("take_along_axis", arr), as_array("take_along_axis", indices, 1)
    if not dtypes.is_integer(dtype_of(indices)):
        raise TypeError(f"take_along_axis: indices must be integers, got {dtype_of(indices)}")
    if axis is None:
        if len(indices.shape) != 1:
            raise ValueError("take_along_axis: indices must have rank 1 if axis is None")
        arr, axis = structural.reshape(arr, (math.prod(arr.shape),)), 0
    rank = len(arr.shape)
    if len(indices.shape) != rank:
        raise ValueError(
            f"take_along_axis: indices and arr must have the same rank, got {len(indices.shape)} and {rank}"
        )
    axis = _checked_axis("take_along_axis", axis, rank)
    others = [i for i in range(rank) if i != axis]
    common = (
        common_shape("take_along_axis", [tuple(x.shape[i] for i in others) for x in (arr, indices)])
        if others
        else ()
    )

    def widened(x: Any) -> tuple[int, ...]:
        sizes = list(common)
        sizes.insert(axis, x.shape[axis])
        return tuple(sizes)

    arr, indices = broadcast(arr, widened(arr)), broadcast(indices, widened(indices))
    if 0 in indices.shape:
        return structural.full(indices.shape, 0, dtype_of(arr))
    if wrap_negative_indices:
        indices = from_end_of_axis(indices, arr.shape[axis])
    numbers = indexing.GatherDimensionNumbers((), (axis,), (axis,), tuple(others), tuple(others))
    fill = None if fill_value is None else fill_of(dtype_of(arr), fill_value)
    starts = structural.reshape(indices, (*indices.shape, 1))
    return indexing.gather(
        arr, starts, numbers, (1,) * rank, mode="fill" if mode is None else gather_mode(mode),
        fill_value=fill,
    )  # fmt: skip


def put(a: Any, ind: Any, v: Any, mode: str | None = None, *, inplace: bool = True) -> Any:
    """The array with `v` (repeated as needed) at the flat indices `ind`; needs inplace=False.

    >>> import jato.numpy as jnp
    >>> jnp.put(jnp.zeros(3), jnp.array([0, 2]), 5.0, inplace=False)
    Array([5., 0., 5.], dtype=float32)
    """
    _require_not_inplace("put", inplace)
    a = as_array("put", a)
    ind = _flat(as_array("put", ind, 1))
    v = _flat(as_array("put", v, 2))
    count = ind.shape[0]
    if count == 0:
        return a
    if v.shape[0] == 0:
        raise ValueError("put: argument 'v' must not be empty")
    values = getitem_of(v, np.arange(count, dtype=np.int32) % v.shape[0])
    flat = _flat(a)
    result = IndexUpdateRef(flat, ind).set(
        values, mode={None: "clip", "clip": "clip", "wrap": "wrap"}[mode]
    )
    return reshape_to(result, a.shape)


def _require_not_inplace(function: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(f"{function}: arrays are immutable; pass inplace=False and use the result")


@public()
def _flat(x: Any) -> Any:
    return structural.reshape(x, (math.prod(x.shape),))


@public(static=("shape",))
def reshape_to(x: Any, shape: tuple[int, ...]) -> Any:
    return structural.reshape(x, shape)


def getitem_of(x: Any, index: Any) -> Any:
    """x[index] for NumPy arrays too."""
    structure, starts, arrays = parse(x.shape, index)
    return read_elements(x, starts, arrays, structure)


def put_along_axis(
    arr: Any, indices: Any, values: Any, axis: int | None, inplace: bool = True, *, mode: Any = None
) -> Any:
    """The array with `values` at `indices` along an axis, as in `take_along_axis`.

    >>> import jato.numpy as jnp
    >>> jnp.put_along_axis(jnp.zeros((1, 2)), jnp.array([[1]]), 5.0, 1, inplace=False)
    Array([[0., 5.]], dtype=float32)
    """
    _require_not_inplace("put_along_axis", inplace)
    arr, indices = as_array("put_along_axis", arr), as_array("put_along_axis", indices, 1)
    if axis is None:
        flat = _flat(arr)
        return reshape_to(
            put_along_axis(flat, _flat(indices), values, 0, False, mode=mode), arr.shape
        )
    rank = len(arr.shape)
    axis = _checked_axis("put_along_axis", axis, rank)
    shape = list(arr.shape)
    shape[axis] = indices.shape[axis]
    grids = []
    for i in range(rank):
        if i == axis:
            grids.append(_broadcast(indices, tuple(shape)))
        else:
            where = [1] * rank
            where[i] = -1
            grids.append(np.arange(shape[i], dtype=np.int32).reshape(where))
    return IndexUpdateRef(arr, tuple(grids)).set(values, mode=mode)


@public(static=("shape",))
def _broadcast(x: Any, shape: tuple[int, ...]) -> Any:
    return broadcast(x, shape)
