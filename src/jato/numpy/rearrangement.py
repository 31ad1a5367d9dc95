"""Splitting, and the order of elements: split, flip, roll, rot90, repeat, tile, resize."""

from __future__ import annotations

import builtins
import itertools
import math
from typing import Any

import numpy as np
from jato.base.dtypes import is_integer
from jato.base.errors import require_unsharded
from jato.core.array import require_concrete, require_integer
from jato.jit.eager import public
from jato.numpy.manipulation import broadcast_to, item_at, moveaxis, ravel, swapaxes
from jato.numpy.promote import as_array, dtype_of, normalize_axes, normalize_axis, normalize_shape
from jato.numpy.reductions import as_type
from jato.ops import elementwise, indexing, structural
from jato.ops.cumulative import cumsum

# ---- splitting


def _split_points(function: str, size: int, sections: Any, uneven: bool) -> list[int]:
    if hasattr(sections, "__index__") and not getattr(sections, "ndim", 0):
        count = require_integer(sections, function, "indices_or_sections")
        if count <= 0:
            raise ValueError(f"{function}: number of sections must be larger than 0, got {count}")
        part, rest = divmod(size, count)
        if rest and not uneven:
            raise ValueError(
                f"{function}: array split does not result in an equal division: size {size} in "
                f"{count} sections leaves {rest}. Use array_split."
            )
        try:
            sizes = [part + 1] * rest + [part] * (count - rest)
        except (MemoryError, OverflowError):
            raise ValueError(f"{function}: {count} sections are more than memory holds") from None
        return [0, *itertools.accumulate(sizes)]
    if isinstance(sections, np.ndarray):
        sections = sections.tolist()
    points = [require_integer(i, function, "indices_or_sections") for i in sections]
    clipped = [builtins.min(builtins.max(p + size if p < 0 else p, 0), size) for p in points]
    return [0, *clipped, size]


def _split(function: str, ary: Any, sections: Any, axis: int, uneven: bool = False) -> list[Any]:
    ary = as_array(function, ary)
    shape = ary.shape
    axis = normalize_axis(function, axis, len(shape))
    points = _split_points(function, shape[axis], sections, uneven)
    parts = []
    for begin, end in zip(points[:-1], points[1:], strict=True):
        starts = [0] * len(shape)
        limits = list(shape)
        starts[axis], limits[axis] = begin, builtins.max(begin, end)
        parts.append(structural.slice(ary, tuple(starts), tuple(limits)))
    return parts


@public(static=("indices_or_sections", "axis"))
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """An array cut along an axis: into a number of equal parts, or before the given indices.

    Raises ValueError when equal parts are impossible.

    >>> import jato.numpy as jnp
    >>> jnp.split(jnp.arange(4), 2)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis)


@public(static=("indices_or_sections", "axis"))
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """As `split`, but the first parts may be one longer.

    >>> import jato.numpy as jnp
    >>> [x.shape for x in jnp.array_split(jnp.arange(5), 2)]
    [(3,), (2,)]
    """
    return _split("array_split", ary, indices_or_sections, axis, uneven=True)


@public(static=("indices_or_sections",))
def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`split` along the second axis; along the first for one-dimensional arrays.

    >>> import jato.numpy as jnp
    >>> [x.shape for x in jnp.hsplit(jnp.zeros((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    ary = as_array("hsplit", ary)
    return _split("hsplit", ary, indices_or_sections, 0 if len(ary.shape) == 1 else 1)


@public(static=("indices_or_sections",))
def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`split` along the first axis.

    >>> import jato.numpy as jnp
    >>> [x.shape for x in jnp.vsplit(jnp.zeros((2, 4)), 2)]
    [(1, 4), (1, 4)]
    """
    return _split("vsplit", ary, indices_or_sections, 0)


@public(static=("indices_or_sections",))
def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`split` along the third axis.

    >>> import jato.numpy as jnp
    >>> [x.shape for x in jnp.dsplit(jnp.zeros((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return _split("dsplit", ary, indices_or_sections, 2)


@public(static=("axis",))
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The sub-arrays along an axis, as a tuple.

    >>> import jato.numpy as jnp
    >>> jnp.unstack(jnp.array([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    x = as_array("unstack", x)
    if not x.shape:
        raise ValueError("unstack: x must have rank 1 or more")
    x = moveaxis(x, axis, 0)
    return tuple(item_at(x, i) for i in range(x.shape[0]))


# ---- order of elements


@public(static=("axis",))
def flip(m: Any, axis: Any = None) -> Any:
    """The elements in reversed order along axes; all axes if None.

    >>> import jato.numpy as jnp
    >>> jnp.flip(jnp.array([1, 2, 3]))
    Array([3, 2, 1], dtype=int32)
    """
    m = as_array("flip", m)
    return structural.rev(m, normalize_axes("flip", axis, len(m.shape)))


@public()
def flipud(m: Any) -> Any:
    """The first axis reversed.

    >>> import jato.numpy as jnp
    >>> jnp.flipud(jnp.array([[1], [2]]))
    Array([[2],
           [1]], dtype=int32)
    """
    return flip(m, 0)


@public()
def fliplr(m: Any) -> Any:
    """The second axis reversed.

    >>> import jato.numpy as jnp
    >>> jnp.fliplr(jnp.array([[1, 2]]))
    Array([[2, 1]], dtype=int32)
    """
    return flip(m, 1)


@public(static=("k", "axes"))
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """The array turned by k quarter turns in the plane of two axes.

    >>> import jato.numpy as jnp
    >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], dtype=int32)
    """
    m = as_array("rot90", m)
    i, j = normalize_axes("rot90", axes, len(m.shape), "axes")
    k = require_integer(k, "rot90", "k") % 4
    if k == 0:
        return m
    if k == 2:
        return structural.rev(m, (i, j))
    return swapaxes(flip(m, j), i, j) if k == 1 else flip(swapaxes(m, i, j), j)


def _roll_static(a: Any, shift: int, axis: int) -> Any:
    size = a.shape[axis]
    shift = shift % size if size else 0
    if shift == 0:
        return a
    parts = _split("roll", a, [size - shift], axis)
    return structural.concatenate(parts[::-1], axis)


def _roll_dynamic(a: Any, shift: Any, axis: int) -> Any:
    """The shift is a value: read at (i - shift) mod size, by slicing the array put twice."""
    size = a.shape[axis]
    shift = as_array("roll", shift, 1)
    if not is_integer(dtype_of(shift)) or shift.shape:
        raise TypeError(
            "roll: argument 'shift' must be an integer or a tuple of integers, got "
            f"{dtype_of(shift)} of shape {tuple(shift.shape)}"
        )
    if size == 0:
        return a
    shift = elementwise.remainder(shift, np.asarray(size, dtype_of(shift))[()])
    twice = structural.concatenate([a, a], axis)
    start = elementwise.sub(np.asarray(size, dtype_of(shift))[()], shift)
    return indexing.dynamic_slice_in_dim(twice, start, size, axis)


@public(static=("axis",))
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """The elements moved by `shift` places along axes; what leaves at the end enters in front.

    shift: integer or array of integers, one per axis; axis: None rolls the flattened array.

    >>> import jato.numpy as jnp
    >>> jnp.roll(jnp.arange(4), 1)
    Array([3, 0, 1, 2], dtype=int32)
    """
    a = as_array("roll", a)
    if axis is None:
        flat = structural.reshape(a, (math.prod(a.shape),))
        total = shift
        if isinstance(shift, (tuple, list)):
            total = builtins.sum(shift)
        return structural.reshape(roll(flat, total, 0), a.shape)
    axes = (axis,) if hasattr(axis, "__index__") else tuple(axis)
    if isinstance(shift, (tuple, list)):
        shifts = list(shift)
    elif hasattr(shift, "shape") and len(shift.shape) == 1:
        shifts = [item_at(as_array("roll", shift), i) for i in range(shift.shape[0])]
    else:
        shifts = [shift]
    if len(shifts) != len(axes):
        if 1 not in (len(shifts), len(axes)):
            raise ValueError(f"roll: {len(shifts)} shifts for {len(axes)} axes")
        count = builtins.max(len(shifts), len(axes))
        shifts, axes = shifts * (count // len(shifts)), axes * (count // len(axes))
    for one, where in zip(shifts, axes, strict=True):
        where = normalize_axis("roll", where, len(a.shape))
        static = type(one) is int or isinstance(one, np.integer)
        a = _roll_static(a, int(one), where) if static else _roll_dynamic(a, one, where)
    return a


# ---- repetition


def _repeat_counts(repeats: Any) -> Any:
    """Static counts where the value is known: an int, or a tuple of ints."""
    host = require_concrete(
        repeats, "repeat", "repeats", "Give total_repeat_length to repeat by traced counts."
    )
    return int(host) if host.ndim == 0 else tuple(host.tolist())


@public(static=("repeats", "axis"), name="repeat")
def _repeat_static(a: Any, repeats: Any, axis: int | None) -> Any:
    a = as_array("repeat", a)
    if axis is None:
        a, axis = structural.reshape(a, (math.prod(a.shape),)), 0
    axis = normalize_axis("repeat", axis, len(a.shape))
    shape = a.shape
    if isinstance(repeats, tuple) and len(repeats) == 1:
        repeats = repeats[0]
    if isinstance(repeats, int):
        if repeats < 0:
            raise ValueError(f"repeat: argument 'repeats' must not be negative, got {repeats}")
        wide = (*shape[: axis + 1], repeats, *shape[axis + 1 :])
        dims = tuple(i for i in range(len(wide)) if i != axis + 1)
        spread = structural.broadcast_in_dim(a, wide, dims)
        return structural.reshape(
            spread, (*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :])
        )
    if len(repeats) != shape[axis]:
        raise ValueError(
            f"repeat: argument 'repeats' has length {len(repeats)}, but axis {axis} has size "
            f"{shape[axis]}"
        )
    positions = np.repeat(np.arange(shape[axis], dtype=np.int32), repeats)
    return take_rows(a, positions, axis)


def take_rows(a: Any, positions: Any, axis: int) -> Any:
    """Sub-arrays at in-bounds positions along an axis."""
    rank = len(a.shape)
    offsets = tuple(i for i in range(rank) if i != axis)
    numbers = indexing.GatherDimensionNumbers(
        offset_dims=offsets, collapsed_slice_dims=(axis,), start_index_map=(axis,)
    )
    sizes = tuple(1 if i == axis else s for i, s in enumerate(a.shape))
    starts = structural.reshape(positions, (*positions.shape, 1))
    return indexing.gather(a, starts, numbers, sizes, mode="clip")


@public(static=("axis", "total_repeat_length"), name="repeat")
def _repeat_dynamic(a: Any, repeats: Any, axis: int | None, total_repeat_length: int) -> Any:
    a, repeats = as_array("repeat", a), as_array("repeat", repeats)
    if axis is None:
        a, axis = structural.reshape(a, (math.prod(a.shape),)), 0
    axis = normalize_axis("repeat", axis, len(a.shape))
    size = a.shape[axis]
    repeats = broadcast_to(structural.reshape(repeats, (math.prod(repeats.shape),)), (size,))
    # position j of the result shows the row whose run of repeats covers j: the number of runs that
    # end up to j
    ends = cumsum(as_type(repeats, np.int32))
    numbers = indexing.ScatterDimensionNumbers((), (0,), (0,))
    places, one = structural.reshape(ends, (size, 1)), structural.full((size,), 1, np.int32)
    empty = structural.full((total_repeat_length,), 0, np.int32)
    rows = cumsum(indexing.scatter_add(empty, places, one, numbers, mode="drop"))
    # beyond the last run: the last row again
    return take_rows(a, elementwise.min(rows, np.int32(size - 1)), axis)


def repeat(
    a: Any,
    repeats: Any,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Any:
    """Each element, or sub-array along `axis`, repeated.

    repeats: an integer, or one per element; traced counts need `total_repeat_length`, the size of
    the result along the axis.

    >>> import jato.numpy as jnp
    >>> jnp.repeat(jnp.array([1, 2]), 2)
    Array([1, 1, 2, 2], dtype=int32)
    """
    require_unsharded("repeat", out_sharding)
    if total_repeat_length is not None:
        return _repeat_dynamic(a, repeats, axis, total_repeat_length)
    counts = repeats if type(repeats) is int else _repeat_counts(repeats)
    return _repeat_static(a, counts, axis)


@public(static=("reps",))
def tile(A: Any, reps: Any) -> Any:
    """The array repeated as a whole, `reps` times along each axis.

    >>> import jato.numpy as jnp
    >>> jnp.tile(jnp.array([1, 2]), 2)
    Array([1, 2, 1, 2], dtype=int32)
    """
    A = as_array("tile", A)
    counts = normalize_shape("tile", reps, "reps")
    shape = A.shape
    rank = builtins.max(len(counts), len(shape))
    counts = (1,) * (rank - len(counts)) + counts
    shape = (1,) * (rank - len(shape)) + shape
    wide = tuple(x for pair in zip(counts, shape, strict=True) for x in pair)
    spread = structural.broadcast_in_dim(
        structural.reshape(A, shape), wide, tuple(range(1, 2 * rank, 2))
    )
    return structural.reshape(spread, tuple(c * s for c, s in zip(counts, shape, strict=True)))


@public(static=("new_shape",))
def resize(a: Any, new_shape: Any) -> Any:
    """An array of a new shape, filled with repeated copies of a's elements.

    >>> import jato.numpy as jnp
    >>> jnp.resize(jnp.array([1, 2, 3]), (5,))
    Array([1, 2, 3, 1, 2], dtype=int32)
    """
    a = ravel(as_array("resize", a))
    shape = normalize_shape("resize", new_shape, "new_shape")
    size, total = a.shape[0], math.prod(shape)
    if size == 0 or total == 0:
        return structural.full(shape, 0, dtype_of(a))
    copies = tile(a, -(-total // size))
    return structural.reshape(structural.slice(copies, (0,), (total,)), shape)
