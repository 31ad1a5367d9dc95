"""x[index] and x.at[index].set(...): NumPy's indexing, reading and updating.

An index is split into a static structure and values (`parse`):

    Index      per axis: how many elements, in which step, dropped or not; the result's layout
    starts     where each axis begins: numbers, values of the running program
    arrays     integer arrays (advanced indices)

Reading is then: window -> reverse -> gather -> reshape; updating is the same way back.  Because
starts are run-time values when called eagerly, a new index value neither traces nor compiles; in a
traced function they are literals, and the compiler sees plain slices.

Out of bounds (`mode`): x[i] reads the nearest element and `.at[].set` drops the update, as in
JAX; "fill", "clip", "drop" and "promise_in_bounds" choose.  A constant integer out of bounds in
x[i] raises IndexError.

Start at `parse`, then `read` and `write`.
"""

from __future__ import annotations

import builtins
import math
import warnings
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from jato.base import dtypes
from jato.base.caches import MISSING, LruCache
from jato.base.errors import NonConcreteBooleanIndexError, ShapeMismatchError
from jato.core.array import ArrayImpl, from_host
from jato.core.trace import Tracer, current_trace
from jato.jit.eager import public
from jato.numpy.elementwise import select_where
from jato.numpy.promote import (
    as_array,
    as_operand,
    broadcast,
    cast,
    common_shape,
    dtype_of,
    join_types,
)
from jato.ops import convert, elementwise, indexing, structural

_NEW_AXIS = -1
_ARRAYS = -2


@dataclass(frozen=True, eq=False)
class Index:
    """The structure of an index; equal ones are one object (`_interned`), since they are static
    arguments, hashed and compared at every call.

    shape    the operand's shape, with an axis of size 1 for every scalar bool in the index
    starts   per axis: first element, or None when it is a run-time value
    sizes    per axis: number of elements read
    steps    per axis; negative ones run backward
    points   axes indexed by an integer: dropped from the result
    dynamic  points whose start is a value of the program, so that it can be out of bounds
    arrays   axes indexed by integer arrays, in the order of the arrays
    layout   the result's axes: an axis of the operand, _NEW_AXIS, or _ARRAYS
    """

    shape: tuple[int, ...]
    starts: tuple[int | None, ...]
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    points: tuple[int, ...]
    dynamic: tuple[int, ...]
    arrays: tuple[int, ...]
    layout: tuple[int, ...]


_indices: weakref.WeakValueDictionary[Any, Index] = weakref.WeakValueDictionary()


def _interned(*fields: tuple[Any, ...]) -> Index:
    found = _indices.get(fields)
    if found is None:
        found = _indices.setdefault(fields, Index(*fields))
    return found


# ---- from what the user wrote to Index


def _too_many(rank: int, count: int) -> IndexError:
    return IndexError(f"Too many indices: array is {rank}-dimensional, but {count} were indexed")


def _wrong_index(item: Any) -> TypeError:
    if isinstance(item, (list, tuple)):
        return TypeError(
            "Using a list as an index is not allowed; use x[jnp.array(index)] instead of x[index]."
        )
    if isinstance(item, str):
        return TypeError(f"Arrays cannot be indexed by strings; got {item!r}")
    kind = getattr(item, "dtype", type(item).__name__)
    return TypeError(f"Indexer must have integer or boolean type, got indexer with type {kind}")


def _is_bool_index(item: Any) -> bool:
    if item is True or item is False or isinstance(item, np.bool_):
        return True
    return getattr(item, "dtype", None) == np.bool_


def _expand(index: Any, rank: int) -> list[Any]:
    """One item per axis: Ellipsis resolved, masks as integer arrays, missing axes as slices."""
    items = list(index) if isinstance(index, tuple) else [index]
    used = 0
    for item in items:
        if item is None or item is Ellipsis:
            continue
        if _is_bool_index(item):
            used += getattr(item, "ndim", 0)
        else:
            used += 1
    if used > rank:
        raise _too_many(rank, used)
    where = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(where) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    whole = [builtins.slice(None)] * (rank - used)
    if where:
        items[where[0] : where[0] + 1] = whole
    else:
        items += whole
    return items


def _mask_positions(mask: Any, shape: tuple[int, ...], axis: int) -> list[Any]:
    """The integer arrays a boolean mask stands for."""
    if isinstance(mask, Tracer):
        known = mask.concrete()
        if known is None:
            raise NonConcreteBooleanIndexError(
                f"boolean indices must be known when the function is traced; got {mask.aval}. Use "
                f"jato.numpy.where(mask, x, fill), or nonzero(mask, size=n). {mask.origin()}"
            )
        mask = known
    host = np.asarray(mask)
    if host.shape != shape[axis : axis + host.ndim]:
        raise IndexError(
            f"boolean index did not match shape of indexed array in index {axis}: got {host.shape}, "
            f"expected {shape[axis : axis + host.ndim]}"
        )
    return [p.astype(np.int32) for p in np.nonzero(host)]


def _slice_part(item: Any, size: int) -> tuple[int, int, int]:
    """(start, count, step) of a slice with static bounds."""
    try:
        start, stop, step = item.indices(size)
    except TypeError as error:
        if "traced" in str(error):
            raise IndexError(
                f"Slice entries must be static integers, got {item}. Use lax.dynamic_slice for a "
                f"start that is a value of the program. {error}"
            ) from None
        raise TypeError(f"slice indices must be integers or None, got {item}") from None
    count = len(range(start, stop, step))
    return (start, count, step) if count else (0, 0, 1)


class _Parser:
    """Collects an Index item by item."""

    def __init__(self, shape: tuple[int, ...], keep_out_of_bounds: bool):
        self.shape = list(shape)
        self.operand = tuple(shape)
        self.keep_out_of_bounds = keep_out_of_bounds
        self.axis = 0
        self.starts: list[Any] = []
        self.sizes: list[int] = []
        self.steps: list[int] = []
        self.points: list[int] = []
        self.dynamic: list[int] = []
        self.array_axes: list[int] = []
        self.arrays: list[Any] = []
        self.layout: list[int] = []
        # positions in the layout before which integers and arrays stood
        self.advanced_at: list[int] = []

    def take(self, start: Any, size: int, step: int) -> None:
        self.starts.append(start)
        self.sizes.append(size)
        self.steps.append(step)
        self.axis += 1

    def slice(self, item: Any) -> None:
        start, count, step = _slice_part(item, self.shape[self.axis])
        self.layout.append(self.axis)
        self.take(start, count, step)

    def integer(self, i: int) -> None:
        size = self.shape[self.axis]
        self.advanced_at.append(len(self.layout))
        self.points.append(self.axis)
        if -size <= i < size:
            self.take(i + size if i < 0 else i, 1, 1)
        elif self.keep_out_of_bounds:
            self.dynamic.append(self.axis)
            self.take(i, builtins.min(size, 1), 1)
        else:
            raise IndexError(f"index {i} is out of bounds for axis {self.axis} with size {size}")

    def scalar(self, value: Any) -> None:
        """A 0-d integer whose value is not known."""
        self.advanced_at.append(len(self.layout))
        self.points.append(self.axis)
        self.dynamic.append(self.axis)
        self.take(value, 1, 1)

    def array(self, value: Any) -> None:
        self.advanced_at.append(len(self.layout))
        self.array_axes.append(self.axis)
        self.arrays.append(value)
        self.take(0, self.shape[self.axis], 1)

    def scalar_bool(self, value: bool) -> None:
        self.shape.insert(self.axis, 1)
        self.array(np.zeros(int(value), np.int32))

    def item(self, item: Any) -> None:
        if item is None:
            self.layout.append(_NEW_AXIS)
        elif isinstance(item, builtins.slice):
            self.slice(item)
        elif _is_bool_index(item):
            if getattr(item, "ndim", 0) == 0:
                if isinstance(item, Tracer) and item.concrete() is None:
                    raise NonConcreteBooleanIndexError(
                        f"a boolean index must be known when the function is traced; got {item.aval}"
                    )
                self.scalar_bool(bool(item))
            else:
                for positions in _mask_positions(item, tuple(self.shape), self.axis):
                    self.array(positions)
        elif isinstance(item, (int, np.integer)):
            self.integer(int(item))
        elif isinstance(item, (Tracer, ArrayImpl, np.ndarray)):
            self._array_item(item)
        elif hasattr(item, "__jax_array__"):
            self.item(item.__jax_array__())
        elif hasattr(item, "__index__"):
            self.integer(item.__index__())
        else:
            raise _wrong_index(item)

    def _array_item(self, item: Any) -> None:
        if not dtypes.is_integer(item.dtype):
            raise _wrong_index(item)
        if item.ndim:
            self.array(item)
        elif isinstance(item, np.ndarray):
            self.integer(int(item))
        else:
            self.scalar(item)

    def finish(self, eager: bool) -> tuple[Index, tuple[Any, ...], tuple[Any, ...]]:
        layout = list(self.layout)
        if self.array_axes:
            first, last = self.advanced_at[0], self.advanced_at[-1]
            layout.insert(first if first == last else 0, _ARRAYS)
        values = []
        static: list[int | None] = []
        for axis, start in enumerate(self.starts):
            window = self.sizes[axis] != self.shape[axis] or axis in self.dynamic
            runtime = axis in self.dynamic or (eager and window and self.steps[axis] in (1, -1))
            if not runtime:
                static.append(start)
                continue
            if type(start) is int and self.steps[axis] == -1:
                start = start - self.sizes[axis] + 1
            values.append(start)
            static.append(None)
        index = _interned(
            tuple(self.shape), tuple(static), tuple(self.sizes), tuple(self.steps),
            tuple(self.points), tuple(self.dynamic), tuple(self.array_axes), tuple(layout),
        )  # fmt: skip
        return index, tuple(values), tuple(self.arrays)


def parse(
    shape: tuple[int, ...], index: Any, keep_out_of_bounds: bool = False
) -> tuple[Index, tuple[Any, ...], tuple[Any, ...]]:
    """(structure, run-time starts, index arrays) of an index into an array of this shape.

    keep_out_of_bounds: constant integers may be out of bounds (`mode` decides), else they raise.
    """
    if isinstance(index, list):
        raise _wrong_index(index)
    key = _constant_key(index)
    if key is None:
        return _parse(shape, index, keep_out_of_bounds)
    key = (key, shape, keep_out_of_bounds, current_trace() is None)
    found = _parsed.get(key)
    if found is MISSING:
        found = _parse(shape, index, keep_out_of_bounds)
        _parsed.put(key, found)
    return found


# indices of integers and slices that were met before: parsing takes 4 us, finding one 0.5
_parsed = LruCache(1024)


def _constant_key(index: Any) -> Any:
    """A hashable form of an index without arrays; None for others."""
    kind = type(index)
    if kind is int or index is None or index is Ellipsis:
        return (index,)
    if kind is builtins.slice:
        return _slice_key(index)
    if kind is not tuple:
        return None
    parts = []
    for item in index:
        kind = type(item)
        if kind is int or item is None or item is Ellipsis:
            parts.append(item)
        elif kind is builtins.slice:
            part = _slice_key(item)
            if part is None:
                return None
            parts.append(part)
        else:
            return None
    return ("tuple", *parts)


_BOUND = (int, type(None))


def _slice_key(item: slice) -> Any:
    start, stop, step = item.start, item.stop, item.step
    if type(start) in _BOUND and type(stop) in _BOUND and type(step) in _BOUND:
        return ("slice", start, stop, step)
    return None


def _parse(
    shape: tuple[int, ...], index: Any, keep_out_of_bounds: bool
) -> tuple[Index, tuple[Any, ...], tuple[Any, ...]]:
    parser = _Parser(shape, keep_out_of_bounds)
    for item in _expand(index, len(shape)):
        parser.item(item)
    return parser.finish(current_trace() is None)


# ---- shapes of the intermediate values


def _array_shape(arrays: tuple[Any, ...]) -> tuple[int, ...]:
    try:
        return common_shape("indexing", [a.shape for a in arrays])
    except ShapeMismatchError as error:
        raise IndexError(f"index arrays could not be broadcast together: {error}") from None


def result_shape(index: Index, arrays: tuple[Any, ...]) -> tuple[int, ...]:
    shape: list[int] = []
    for entry in index.layout:
        if entry == _ARRAYS:
            shape += _array_shape(arrays)
        else:
            shape.append(1 if entry == _NEW_AXIS else index.sizes[entry])
    return tuple(shape)


def _kept_axes(index: Index) -> list[int]:
    """Axes that are neither dropped nor indexed by arrays."""
    return [a for a in range(len(index.shape)) if a not in index.points and a not in index.arrays]


def _gathered_shape(index: Index, arrays: tuple[Any, ...]) -> tuple[tuple[int, ...], int]:
    """(shape of the gather's result, position of the arrays' axes in it)."""
    kept = _kept_axes(index)
    before = [e for e in index.layout[: index.layout.index(_ARRAYS)] if e != _NEW_AXIS]
    sizes = [index.sizes[a] for a in kept]
    position = len(before)
    return (*sizes[:position], *_array_shape(arrays), *sizes[position:]), position


# ---- windows: the part of an index that is not arrays


def _is_window(index: Index) -> bool:
    return builtins.any(s is None for s in index.starts)


def _is_strided(index: Index) -> bool:
    return builtins.any(
        s is not None and (n != whole or step not in (1, -1))
        for s, n, whole, step in zip(
            index.starts, index.sizes, index.shape, index.steps, strict=True
        )
    )


def _static_rows(index: Index) -> list[tuple[int, int, int]]:
    """Per axis (first, limit, stride > 0) of the part cut with known bounds."""
    rows = []
    for start, count, step, whole in zip(
        index.starts, index.sizes, index.steps, index.shape, strict=True
    ):
        if start is None or (count == whole and step in (1, -1)):
            rows.append((0, whole, 1))
        elif count == 0:
            rows.append((0, 0, 1))
        else:
            first = start if step > 0 else start + (count - 1) * step
            rows.append((first, first + (count - 1) * builtins.abs(step) + 1, builtins.abs(step)))
    return rows


def _cut(x: Any, index: Index) -> Any:
    if not _is_strided(index):
        return x
    firsts, limits, strides = zip(*_static_rows(index), strict=True)
    return structural.slice(x, firsts, limits, strides)


def _cut_shape(index: Index) -> tuple[int, ...]:
    return tuple(
        whole if start is None else count
        for start, count, whole in zip(index.starts, index.sizes, index.shape, strict=True)
    )


def _window_starts(index: Index, starts: tuple[Any, ...]) -> list[Any]:
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


def _in_bounds(index: Index, starts: list[Any]) -> Any:
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


def _reversed_axes(index: Index) -> tuple[int, ...]:
    return tuple(a for a, step in enumerate(index.steps) if step < 0 and index.sizes[a] > 1)


# ---- index arrays


def _index_vectors(index: Index, arrays: tuple[Any, ...], wrap: bool) -> Any:
    """The arrays as [batch..., k] start indices for gather and scatter."""
    batch = _array_shape(arrays)
    columns = []
    for axis, array in zip(index.arrays, arrays, strict=True):
        array = as_array("indexing", array)
        if wrap:
            array = _wrapped(array, index.shape[axis])
        columns.append(structural.reshape(broadcast(array, batch), (*batch, 1)))
    if len(columns) == 1:
        return columns[0]
    dtype = join_types(*columns)[0]
    return structural.concatenate([cast(c, dtype) for c in columns], len(batch))


def _wrapped(array: Any, size: int) -> Any:
    if isinstance(array, np.ndarray):
        if array.size and array.min() < 0:
            return np.where(array < 0, array + size, array).astype(
                np.int32 if array.itemsize < 4 else array.dtype
            )
        return array
    return _from_end(array, size)


def _array_dimensions(index: Index, batch_rank: int, position: int) -> tuple[tuple[int, ...], ...]:
    """(window dims in the gathered array, operand axes indexed) without the dropped axes."""
    remaining = [a for a in range(len(index.shape)) if a not in index.points]
    places = tuple(remaining.index(a) for a in index.arrays)
    rank = len(remaining) - len(places) + batch_rank
    windows = tuple(d for d in range(rank) if not position <= d < position + batch_rank)
    return windows, places


def _without_points(x: Any, index: Index) -> Any:
    if not index.points:
        return x
    shape = tuple(s for a, s in enumerate(x.shape) if a not in index.points)
    return structural.reshape(x, shape)


# ---- reading


def _gather_mode(mode: Any) -> str:
    name = "clip" if mode is None else getattr(mode, "name", str(mode)).lower()
    names = {"fill": "fill", "drop": "fill", "fill_or_drop": "fill", "clip": "clip"}
    names |= {"promise_in_bounds": "promise_in_bounds", "wrap": "wrap"}
    if name not in names:
        raise ValueError(
            f"argument 'mode' must be 'fill', 'drop', 'clip', 'wrap' or 'promise_in_bounds', got {mode!r}"
        )
    return names[name]


def _fill_of(dtype: Any, fill_value: Any) -> Any:
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
    x = _cut(x, index)
    where: list[Any] = []
    if _is_window(index):
        where = _window_starts(index, starts)
        x = indexing.dynamic_slice(x, where, index.sizes, allow_negative_indices=False)
    backward = _reversed_axes(index)
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
        starts, arrays = _modulo(index, starts, arrays)
        mode = "promise_in_bounds"
    x, where = _read_window(x, index, starts)
    if index.arrays:
        shape, position = _gathered_shape(index, arrays)
        x = _without_points(x, index)
        vectors = _index_vectors(index, arrays, wrap_negative)
        windows, places = _array_dimensions(index, len(vectors.shape) - 1, position)
        numbers = indexing.GatherDimensionNumbers(
            offset_dims=windows, collapsed_slice_dims=places, start_index_map=places
        )
        sizes = tuple(1 if i in places else s for i, s in enumerate(x.shape))
        if 0 in (x.shape[i] for i in places):
            _require_no_elements(shape, index)
            x = structural.full(shape, 0, dtype_of(x))
        else:
            fill = None if fill_value is None else _fill_of(dtype_of(x), fill_value)
            x = indexing.gather(
                x, vectors, numbers, sizes, unique_indices=unique, indices_are_sorted=ordered,
                mode=mode, fill_value=fill,
            )  # fmt: skip
    target = result_shape(index, arrays)
    x = structural.reshape(x, target) if x.shape != target else x
    if mode == "fill" and index.dynamic:
        inside = _in_bounds(index, where)
        if inside is not None:
            x = select_where(inside, x, _fill_of(dtype_of(x), fill_value))
    return x


def _require_no_elements(shape: tuple[int, ...], index: Index) -> None:
    if math.prod(shape):
        raise IndexError(
            f"index is out of bounds for an axis of size 0 of an array of shape {index.shape}"
        )


def _modulo(index: Index, starts: tuple[Any, ...], arrays: tuple[Any, ...]) -> tuple[Any, Any]:
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
_read = public(static=_READ_STATIC)(read)


def getitem(x: Any, index: Any) -> Any:
    """x[index]."""
    if type(x) is ArrayImpl and current_trace() is None and _has_mask(index):
        return _read_on_host(x, index)
    structure, starts, arrays = parse(x.shape, index)
    return _read(x, starts, arrays, structure)


def _has_mask(index: Any) -> bool:
    items = index if isinstance(index, tuple) else (index,)
    return builtins.any(_is_bool_index(item) and getattr(item, "ndim", 0) > 0 for item in items)


def _read_on_host(x: Any, index: Any) -> Any:
    """A mask makes a result of a new size each time: NumPy does it without a program per size."""
    items = index if isinstance(index, tuple) else (index,)
    if builtins.any(isinstance(item, (list, str)) for item in items):
        raise _wrong_index(next(item for item in items if isinstance(item, (list, str))))
    host = tuple(np.asarray(i) if isinstance(i, ArrayImpl) else i for i in items)
    _expand(host, x.ndim)
    result = _host_view(x)[host]
    return _from_host_view(result, x)


def _host_view(x: Any) -> Any:
    return np.asarray(x)


def _from_host_view(values: Any, like: Any) -> Any:
    return from_host(values, like.dtype, like.weak_type)


# ---- updating


def _scatter(x: Any, y: Any, index: Index, arrays: tuple[Any, ...], operation: str, mode: str,
             unique: bool, ordered: bool) -> Any:  # fmt: skip
    """Updates `y`, of the gathered shape, into the window `x` (points dropped)."""
    shape, position = _gathered_shape(index, arrays)
    if 0 in (x.shape[i] for i in range(len(x.shape))) or 0 in shape:
        return x
    vectors = _index_vectors(index, arrays, True)
    windows, places = _array_dimensions(index, len(vectors.shape) - 1, position)
    numbers = indexing.ScatterDimensionNumbers(
        update_window_dims=windows, inserted_window_dims=places, scatter_dims_to_operand_dims=places
    )
    function = {
        "set": indexing.scatter, "add": indexing.scatter_add, "mul": indexing.scatter_mul,
        "min": indexing.scatter_min, "max": indexing.scatter_max,
    }[operation]  # fmt: skip
    return function(
        x, vectors, y, numbers, indices_are_sorted=ordered, unique_indices=unique, mode=mode
    )


_COMBINE = {
    "set": lambda old, new: new,
    "add": elementwise.add,
    "mul": elementwise.mul,
    "min": elementwise.min,
    "max": elementwise.max,
}


def _write_back(x: Any, cut: Any, index: Index) -> Any:
    """`x` with its statically cut part replaced by `cut`."""
    if not _is_strided(index):
        return cut
    rows = _static_rows(index)
    if 0 in cut.shape:
        return x
    if builtins.all(stride == 1 for _, _, stride in rows):
        return indexing.dynamic_update_slice(
            x, cut, [np.int32(first) for first, _, _ in rows], allow_negative_indices=False
        )
    # spread the elements to their places, and choose by a mask that is spread in the same way
    config = []
    for (first, limit, stride), whole in zip(rows, x.shape, strict=True):
        config.append((first, whole - limit, stride - 1))
    spread = structural.pad(cut, np.zeros((), dtype_of(cut))[()], config)
    mask = structural.pad(
        structural.full(cut.shape, True, np.dtype("bool")), np.bool_(False), config
    )
    return elementwise.select_n(mask, x, spread)


def write(
    x: Any,
    y: Any,
    starts: tuple[Any, ...],
    arrays: tuple[Any, ...],
    index: Index,
    operation: str,
    mode: str = "fill",
    unique: bool = False,
    ordered: bool = False,
) -> Any:
    """`x` with the elements that an index selects combined with `y`."""
    shape = x.shape
    y = _as_update(y, x, result_shape(index, arrays))
    if mode == "wrap":
        starts, arrays = _modulo(index, starts, arrays)
        mode = "promise_in_bounds"
    if 0 in shape:
        return x
    whole = structural.reshape(x, index.shape) if shape != index.shape else x
    cut = _cut(whole, index)
    where = _window_starts(index, starts) if _is_window(index) else []
    window = cut
    if where:
        window = indexing.dynamic_slice(cut, where, index.sizes, allow_negative_indices=False)
    backward = _reversed_axes(index)
    if index.arrays:
        turned = structural.rev(window, backward) if backward else window
        target, _ = _gathered_shape(index, arrays)
        updates = structural.reshape(y, target)
        flat = _scatter(
            _without_points(turned, index), updates, index, arrays, operation, mode, unique, ordered
        )
        updated = structural.reshape(flat, window.shape)
        updated = structural.rev(updated, backward) if backward else updated
    else:
        y = structural.reshape(y, index.sizes) if y.shape != index.sizes else y
        y = structural.rev(y, backward) if backward else y
        updated = _COMBINE[operation](window, y)
    if where:
        inside = _in_bounds(index, where) if mode == "fill" else None
        if inside is not None:
            # a window that is out of bounds is clamped: writing back what was there drops it
            updated = select_where(inside, updated, window)
        cut = indexing.dynamic_update_slice(cut, updated, where, allow_negative_indices=False)
    else:
        cut = updated
    result = _write_back(whole, cut, index)
    return structural.reshape(result, shape) if result.shape != shape else result


def _as_update(y: Any, x: Any, shape: tuple[int, ...]) -> Any:
    """The new values in x's dtype, broadcast to the indexed shape."""
    y = as_operand("scatter", y)
    dtype = dtype_of(x)
    if dtype is not dtypes.key and join_types(x, y)[0] != dtype:
        warnings.warn(
            f"values of dtype {dtype_of(y)} are written into an array of dtype {dtype}, which loses "
            "information. Convert one of them with astype.",
            FutureWarning,
            stacklevel=3,
        )
    value = as_array("scatter", y)
    if dtype_of(value) != dtype or (hasattr(value, "aval") and value.aval.weak_type):
        value = convert.convert_element_type(value, dtype)
    own = value.shape
    if len(own) > len(shape) or builtins.any(
        s not in (1, t) for s, t in zip(own[::-1], shape[::-1], strict=False)
    ):
        raise ShapeMismatchError(
            f"x.at[index]: values of shape {own} do not broadcast to the indexed shape {shape}"
        )
    return broadcast(value, shape)


_WRITE_STATIC = ("index", "operation", "mode", "unique", "ordered")
_write = public(static=_WRITE_STATIC)(write)


@public(static=("operation",))
def _write_masked(x: Any, mask: Any, y: Any, operation: str) -> Any:
    """x.at[mask].op(number), for a mask whose values need not be known."""
    extra = len(x.shape) - len(mask.shape)
    mask = (
        structural.broadcast_in_dim(mask, x.shape, tuple(range(len(mask.shape)))) if extra else mask
    )
    y = _as_update(y, x, ())
    return select_where(mask, _COMBINE[operation](x, broadcast(y, x.shape)), x)


class IndexUpdateHelper:
    """`x.at`: index it to say which elements are meant.

    >>> import jato.numpy as jnp
    >>> jnp.zeros(3).at[1].set(5.0)
    Array([0., 5., 0.], dtype=float32)
    """

    __slots__ = ("array",)

    def __init__(self, array: Any):
        self.array = array

    def __getitem__(self, index: Any) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({self.array!r})"


class IndexUpdateRef:
    """`x.at[index]`: makes a new array with some elements changed, or reads them.

    Methods: set, add, subtract, multiply, divide, power, min, max, apply, get.  All take
    `indices_are_sorted`, `unique_indices` (promises) and `mode`: "drop" (default: updates out of
    bounds are left out), "clip", "wrap", "promise_in_bounds"; `get` clips by default and takes
    "fill" with `fill_value`.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any):
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        fill_value: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """The elements.  mode "fill": `fill_value` (nan by default) where out of bounds."""
        structure, starts, arrays = parse(self.array.shape, self.index, keep_out_of_bounds=True)
        if mode is None:
            mode = "clip" if fill_value is None else "fill"
        if fill_value is not None:
            fill_value = np.asarray(fill_value).item()
        return _read(
            self.array, starts, arrays, structure, _gather_mode(mode), fill_value,
            unique_indices, indices_are_sorted, wrap_negative_indices,
        )  # fmt: skip

    def _update(self, operation: str, values: Any, options: dict[str, Any]) -> Any:
        mode = options.pop("mode", None)
        ordered = options.pop("indices_are_sorted", False)
        unique = options.pop("unique_indices", False)
        options.pop("out_sharding", None)
        options.pop("wrap_negative_indices", None)
        if options:
            raise TypeError(f"x.at[index].{operation}: unexpected arguments {sorted(options)}")
        if isinstance(values, (list, tuple, str)) or values is None:
            raise TypeError(
                f"x.at[index].{operation} requires an array or a number, got {type(values).__name__}. "
                "Convert it with jato.numpy.asarray."
            )
        if self._masks_by_value(values):
            return _write_masked(self.array, self.index, values, operation)
        structure, starts, arrays = parse(self.array.shape, self.index, keep_out_of_bounds=True)
        mode = "fill" if mode is None else _gather_mode(mode)
        return _write(
            self.array, values, starts, arrays, structure, operation, mode, unique, ordered
        )

    def _masks_by_value(self, values: Any) -> bool:
        """Is the index one mask of the array's leading axes, and the value one number?"""
        index = self.index
        return (
            getattr(index, "dtype", None) == np.bool_
            and getattr(index, "ndim", 0) > 0
            and not getattr(values, "shape", ())
            and tuple(index.shape) == tuple(self.array.shape[: index.ndim])
        )

    def set(self, values: Any, **options: Any) -> Any:
        """The elements replaced by `values`."""
        return self._update("set", values, options)

    def add(self, values: Any, **options: Any) -> Any:
        """`values` added; an element indexed twice is added to twice."""
        return self._update("add", values, options)

    def subtract(self, values: Any, **options: Any) -> Any:
        """`values` subtracted."""
        return self._update("add", elementwise_negative(values), options)

    def multiply(self, values: Any, **options: Any) -> Any:
        """The elements multiplied by `values`."""
        return self._update("mul", values, options)

    mul = multiply
    sub = subtract

    def divide(self, values: Any, **options: Any) -> Any:
        """The elements divided by `values`."""
        x = self.array
        ones = structural_ones(x)
        scale = IndexUpdateRef(ones, self.index)._update("mul", values, options)
        return divide_in_dtype(x, scale)

    def power(self, values: Any, **options: Any) -> Any:
        """The elements raised to the power `values`."""
        read_options = {k: v for k, v in options.items() if k != "mode"}
        old = self.get(mode="clip", **read_options)
        return self._update("set", power_in_dtype(old, values), options)

    def min(self, values: Any, **options: Any) -> Any:
        """The smaller of element and value."""
        return self._update("min", values, options)

    def max(self, values: Any, **options: Any) -> Any:
        """The larger of element and value."""
        return self._update("max", values, options)

    def apply(self, func: Any, **options: Any) -> Any:
        """The elements replaced by `func` of them."""
        read_options = {k: v for k, v in options.items() if k != "mode"}
        return self._update("set", func(self.get(mode="clip", **read_options)), options)


@public()
def elementwise_negative(x: Any) -> Any:
    return (
        elementwise.neg(as_array("subtract", x)) if not isinstance(x, (int, float, complex)) else -x
    )


@public()
def structural_ones(x: Any) -> Any:
    return structural.full(x.shape, 1, dtype_of(x))


@public()
def divide_in_dtype(x: Any, y: Any) -> Any:
    if dtypes.is_inexact(dtype_of(x)):
        return elementwise.div(x, y)
    return convert.convert_element_type(
        elementwise.div(*(convert.convert_element_type(v, np.float32) for v in (x, y))), dtype_of(x)
    )


@public()
def power_in_dtype(x: Any, y: Any) -> Any:
    y = cast(as_array("power", y), dtype_of(x))
    work = x if dtypes.is_inexact(dtype_of(x)) else convert.convert_element_type(x, np.float32)
    y = cast(y, dtype_of(work))
    y = broadcast(y, work.shape)
    return convert.convert_element_type(elementwise.pow(work, y), dtype_of(x))


# ---- take and put


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
        a, indices, axis, "fill" if mode is None else _gather_mode(mode), fill_value,
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
        indices = _wrapped(indices, arr.shape[axis])
    numbers = indexing.GatherDimensionNumbers((), (axis,), (axis,), tuple(others), tuple(others))
    fill = None if fill_value is None else _fill_of(dtype_of(arr), fill_value)
    starts = structural.reshape(indices, (*indices.shape, 1))
    return indexing.gather(
        arr, starts, numbers, (1,) * rank, mode="fill" if mode is None else _gather_mode(mode),
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
    return _read(x, starts, arrays, structure)


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
