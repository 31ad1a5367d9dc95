"""What an index means: NumPy's indices as a static structure and run-time values.

    Index      per axis: how many elements, in which step, dropped or not; the result's layout
    starts     where each axis begins: numbers, values of the running program
    arrays     integer arrays (advanced indices)

`parse` makes these from what the user wrote; indexing.py reads with them, updating.py writes.
"""

from __future__ import annotations

import builtins
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from jato.base import dtypes
from jato.base.caches import MISSING, LruCache
from jato.base.errors import NonConcreteBooleanIndexError, ShapeMismatchError
from jato.core.array import ArrayImpl
from jato.core.trace import Tracer, current_trace
from jato.core.types import type_of
from jato.numpy.promote import common_shape
from jato.ops import structural

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


def wrong_index(item: Any) -> TypeError:
    if isinstance(item, (list, tuple)):
        return TypeError(
            "Using a list as an index is not allowed; use x[jnp.array(index)] instead of x[index]."
        )
    if isinstance(item, str):
        return TypeError(f"Arrays cannot be indexed by strings; got {item!r}")
    kind = getattr(item, "dtype", type(item).__name__)
    return TypeError(f"Indexer must have integer or boolean type, got indexer with type {kind}")


def is_bool_index(item: Any) -> bool:
    if item is True or item is False or isinstance(item, np.bool_):
        return True
    return getattr(item, "dtype", None) == np.bool_


def _unnested(item: Any) -> Any:
    """An item of an index; a sequence of numbers as an array."""
    if not isinstance(item, (list, tuple)):
        return item
    parts = [_unnested(i) for i in item]
    if any(isinstance(i, Tracer) for i in parts):
        rows = [structural.reshape(i, (1, *type_of(i).shape)) for i in parts]
        return structural.concatenate(rows, 0)
    host = np.asarray([np.asarray(i) for i in parts])
    return host if host.size else host.astype(np.int32)


def expand_index(index: Any, rank: int) -> list[Any]:
    """One item per axis: Ellipsis resolved, masks as integer arrays, missing axes as slices."""
    items = [_unnested(i) for i in index] if isinstance(index, tuple) else [index]
    used = 0
    for item in items:
        if item is None or item is Ellipsis:
            continue
        if is_bool_index(item):
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
        elif is_bool_index(item):
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
            raise wrong_index(item)

    def _array_item(self, item: Any) -> None:
        if not dtypes.is_integer(item.dtype):
            raise wrong_index(item)
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
        raise wrong_index(index)
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
    for item in expand_index(index, len(shape)):
        parser.item(item)
    return parser.finish(current_trace() is None)


# ---- shapes of the intermediate values


def array_shape(arrays: tuple[Any, ...]) -> tuple[int, ...]:
    try:
        return common_shape("indexing", [a.shape for a in arrays])
    except ShapeMismatchError as error:
        raise IndexError(f"index arrays could not be broadcast together: {error}") from None


def result_shape(index: Index, arrays: tuple[Any, ...]) -> tuple[int, ...]:
    shape: list[int] = []
    for entry in index.layout:
        if entry == _ARRAYS:
            shape += array_shape(arrays)
        else:
            shape.append(1 if entry == _NEW_AXIS else index.sizes[entry])
    return tuple(shape)


def _kept_axes(index: Index) -> list[int]:
    """Axes that are neither dropped nor indexed by arrays."""
    return [a for a in range(len(index.shape)) if a not in index.points and a not in index.arrays]


def gathered_shape(index: Index, arrays: tuple[Any, ...]) -> tuple[tuple[int, ...], int]:
    """(shape of the gather's result, position of the arrays' axes in it)."""
    kept = _kept_axes(index)
    before = [e for e in index.layout[: index.layout.index(_ARRAYS)] if e != _NEW_AXIS]
    sizes = [index.sizes[a] for a in kept]
    position = len(before)
    return (*sizes[:position], *array_shape(arrays), *sizes[position:]), position


# ---- windows: the part of an index that is not arrays


def is_window(index: Index) -> bool:
    return builtins.any(s is None for s in index.starts)


def is_strided(index: Index) -> bool:
    return builtins.any(
        s is not None and (n != whole or step not in (1, -1))
        for s, n, whole, step in zip(
            index.starts, index.sizes, index.shape, index.steps, strict=True
        )
    )


def static_rows(index: Index) -> list[tuple[int, int, int]]:
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
