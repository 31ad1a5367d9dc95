"""x[index]: reading the elements that an index selects.

Reading is: window -> reverse -> gather -> reshape.  Because starts are run-time values when called
eagerly, a new index value neither traces nor compiles; in a traced function they are literals, and
the compiler sees plain slices.

Out of bounds (`mode`): x[i] reads the nearest element; "fill", "clip", "wrap" and
"promise_in_bounds" choose.  A constant integer out of bounds in x[i] raises IndexError.

The structure of an index is index_structure.py's business.  Start at `getitem`, then `read`.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np
from jato.base import dtypes
from jato.core.array import ArrayImpl, from_host
from jato.core.trace import current_trace
from jato.jit.eager import public
from jato.numpy.index_structure import (
    Index,
    array_shape,
    expand_index,
    gathered_shape,
    is_bool_index,
    is_strided,
    is_window,
    parse,
    result_shape,
    static_rows,
    wrong_index,
)
from jato.numpy.makers import select_where
from jato.numpy.promote import as_array, broadcast, cast, dtype_of, join_types
from jato.ops import convert, elementwise, indexing, structural

# ---- windows: the part of an index that is not arrays


def static_cut(x: Any, index: Index) -> Any:
    if not is_strided(index):
        return x
    firsts, limits, strides = zip(*static_rows(index), strict=True)
    return structural.slice(x, firsts, limits, strides)


def _cut_shape(index: Index) -> tuple[int, ...]:
    return tuple(
        whole if start is None else count
        for start, count, whole in zip(index.starts, index.sizes, index.shape, strict=True)
    )


def window_starts(index: Index, starts: tuple[Any, ...]) -> list[Any]:
    """One start per axis; user's integers count from the end when negative."""
    values = iter(starts)
    result = []
    for axis, start in enumerate(index.starts):
        if start is not None:
            result.append(np.int32(0))
            continue
        value = next(values)
        if type(value) is int:
            value = np.int32(value) if -(2**31) <= value < 2**31 else np.int64(value)
        value = _from_end(value, index.shape[axis]) if axis in index.dynamic else value
        result.append(value)
    return _one_dtype(result)


def _one_dtype(values: list[Any]) -> list[Any]:
    if builtins.any(hasattr(v, "aval") for v in values):
        dtype = join_types(*values)[0]
        return [cast(v, dtype) for v in values]
    return values


def _from_end(value: Any, size: int) -> Any:
    """value + size where value < 0."""
    if isinstance(value, np.generic):
        return type(value)(value + size) if value < 0 else value
    dtype = dtype_of(value)
    if dtypes.is_unsigned(dtype):
        return value
    if np.iinfo(dtype).max < size:
        value, dtype = convert.convert_element_type(value, np.int32), np.dtype(np.int32)
    shifted = elementwise.add(value, dtype.type(size))
    return select_where(elementwise.lt(value, dtype.type(0)), shifted, value)


def in_bounds(index: Index, starts: list[Any]) -> Any:
    """Are the dynamic points inside?  None when there is nothing to ask."""
    inside: Any = None
    for axis in index.dynamic:
        start = as_array("indexing", starts[axis])
        dtype = dtype_of(start)
        last = index.shape[axis]
        if np.iinfo(dtype).max < last:
            continue
        test = elementwise.lt(start, dtype.type(last))
        if not dtypes.is_unsigned(dtype):
            test = elementwise.bitwise_and(test, elementwise.ge(start, dtype.type(0)))
        inside = test if inside is None else elementwise.bitwise_and(inside, test)
    return inside


def reversed_axes(index: Index) -> tuple[int, ...]:
    return tuple(a for a, step in enumerate(index.steps) if step < 0 and index.sizes[a] > 1)


# ---- index arrays


def index_vectors(index: Index, arrays: tuple[Any, ...], wrap: bool) -> Any:
    """The arrays as [batch..., k] start indices for gather and scatter."""
    batch = array_shape(arrays)
    columns = []
    for axis, array in zip(index.arrays, arrays, strict=True):
        array = as_array("indexing", array)
        if wrap:
            array = from_end_of_axis(array, index.shape[axis])
        columns.append(structural.reshape(broadcast(array, batch), (*batch, 1)))
    if len(columns) == 1:
        return columns[0]
    dtype = join_types(*columns)[0]
    return structural.concatenate([cast(c, dtype) for c in columns], len(batch))


def from_end_of_axis(array: Any, size: int) -> Any:
    if isinstance(array, np.ndarray):
        if array.size and array.min() < 0:
            return np.where(array < 0, array + size, array).astype(
                np.int32 if array.itemsize < 4 else array.dtype
            )
        return array
    return _from_end(array, size)


def array_dimensions(index: Index, batch_rank: int, position: int) -> tuple[tuple[int, ...], ...]:
    """(window dims in the gathered array, operand axes indexed) without the dropped axes."""
    remaining = [a for a in range(len(index.shape)) if a not in index.points]
    places = tuple(remaining.index(a) for a in index.arrays)
    rank = len(remaining) - len(places) + batch_rank
    windows = tuple(d for d in range(rank) if not position <= d < position + batch_rank)
    return windows, places


def without_points(x: Any, index: Index) -> Any:
    if not index.points:
        return x
    shape = tuple(s for a, s in enumerate(x.shape) if a not in index.points)
    return structural.reshape(x, shape)


# ---- reading


def gather_mode(mode: Any) -> str:
    name = "clip" if mode is None else getattr(mode, "name", str(mode)).lower()
    names = {"fill": "fill", "drop": "fill", "fill_or_drop": "fill", "clip": "clip"}
    names |= {"promise_in_bounds": "promise_in_bounds", "wrap": "wrap"}
    if name not in names:
        raise ValueError(
            f"argument 'mode' must be 'fill', 'drop', 'clip', 'wrap' or 'promise_in_bounds', got {mode!r}"
        )
    return names[name]


def fill_of(dtype: Any, fill_value: Any) -> Any:
    if fill_value is not None:
        return np.asarray(fill_value).astype(dtype)[()]
    if dtypes.is_inexact(dtype):
        return np.asarray(math.nan).astype(dtype)[()]
    if dtypes.is_bool(dtype):
        return np.bool_(True)
    info = np.iinfo(dtype)
    return dtype.type(info.max if dtypes.is_unsigned(dtype) else info.min)


def _read_window(x: Any, index: Index, starts: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    x = structural.reshape(x, index.shape) if x.shape != index.shape else x
    x = static_cut(x, index)
    where: list[Any] = []
    if is_window(index):
        where = window_starts(index, starts)
        x = indexing.dynamic_slice(x, where, index.sizes, allow_negative_indices=False)
    backward = reversed_axes(index)
    return (structural.rev(x, backward) if backward else x), where


def read(
    x: Any,
    starts: tuple[Any, ...],
    arrays: tuple[Any, ...],
    index: Index,
    mode: str = "clip",
    fill_value: Any = None,
    unique: bool = False,
    ordered: bool = False,
    wrap_negative: bool = True,
) -> Any:
    """The elements that an index selects."""
    if mode == "wrap":
        starts, arrays = modulo(index, starts, arrays)
        mode = "promise_in_bounds"
    x, where = _read_window(x, index, starts)
    if index.arrays:
        shape, position = gathered_shape(index, arrays)
        x = without_points(x, index)
        vectors = index_vectors(index, arrays, wrap_negative)
        windows, places = array_dimensions(index, len(vectors.shape) - 1, position)
        numbers = indexing.GatherDimensionNumbers(
            offset_dims=windows, collapsed_slice_dims=places, start_index_map=places
        )
        sizes = tuple(1 if i in places else s for i, s in enumerate(x.shape))
        if 0 in (x.shape[i] for i in places):
            _require_no_elements(shape, index)
            x = structural.full(shape, 0, dtype_of(x))
        else:
            fill = None if fill_value is None else fill_of(dtype_of(x), fill_value)
            x = indexing.gather(
                x, vectors, numbers, sizes, unique_indices=unique, indices_are_sorted=ordered,
                mode=mode, fill_value=fill,
            )  # fmt: skip
    target = result_shape(index, arrays)
    x = structural.reshape(x, target) if x.shape != target else x
    if mode == "fill" and index.dynamic:
        inside = in_bounds(index, where)
        if inside is not None:
            x = select_where(inside, x, fill_of(dtype_of(x), fill_value))
    return x


def _require_no_elements(shape: tuple[int, ...], index: Index) -> None:
    if math.prod(shape):
        raise IndexError(
            f"index is out of bounds for an axis of size 0 of an array of shape {index.shape}"
        )


def modulo(index: Index, starts: tuple[Any, ...], arrays: tuple[Any, ...]) -> tuple[Any, Any]:
    """Indices reduced into the bounds (mode "wrap")."""
    sizes = [index.shape[a] for a, s in enumerate(index.starts) if s is None]
    wrapped = tuple(_mod(s, n) for s, n in zip(starts, sizes, strict=True))
    return wrapped, tuple(
        _mod(a, index.shape[i]) for i, a in zip(index.arrays, arrays, strict=True)
    )


def _mod(value: Any, size: int) -> Any:
    if type(value) is int:
        return value % size
    value = as_array("indexing", value)
    return elementwise.remainder(value, dtype_of(value).type(size))


_READ_STATIC = ("index", "mode", "fill_value", "unique", "ordered", "wrap_negative")


read_elements = public(static=_READ_STATIC)(read)


def getitem(x: Any, index: Any) -> Any:
    """x[index]."""
    if type(x) is ArrayImpl and current_trace() is None and _has_mask(index):
        return _read_on_host(x, index)
    structure, starts, arrays = parse(x.shape, index)
    return read_elements(x, starts, arrays, structure)


def _has_mask(index: Any) -> bool:
    items = index if isinstance(index, tuple) else (index,)
    return builtins.any(is_bool_index(item) and getattr(item, "ndim", 0) > 0 for item in items)


def _read_on_host(x: Any, index: Any) -> Any:
    """A mask makes a result of a new size each time: NumPy does it without a program per size."""
    items = index if isinstance(index, tuple) else (index,)
    if builtins.any(isinstance(item, (list, str)) for item in items):
        raise wrong_index(next(item for item in items if isinstance(item, (list, str))))
    host = tuple(np.asarray(i) if isinstance(i, ArrayImpl) else i for i in items)
    expand_index(host, x.ndim)
    result = _host_view(x)[host]
    return _from_host_view(result, x)


def _host_view(x: Any) -> Any:
    return np.asarray(x)


def _from_host_view(values: Any, like: Any) -> Any:
    return from_host(values, like.dtype, like.weak_type)
