"""Shapes and order: reshape, transpose, stack, split, pad, flip, roll, repeat, tile.

All of it is index arithmetic to the compiler: none of these functions moves data by itself when it
is used inside a larger function.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jato.base.errors import ShapeMismatchError
from jato.core.array import require_concrete, require_integer
from jato.jit.eager import public
from jato.numpy.promote import (
    argument_error,
    as_array,
    broadcast,
    cast,
    common_shape,
    dtype_of,
    join_types,
    normalize_axes,
    normalize_axis,
    normalize_shape,
    require_no_out,
    shape_of,
)
from jato.numpy.reductions import as_type, max, mean, min
from jato.ops import elementwise, indexing, structural

# ---- shape


def _resolve(function: str, shape: tuple[int, ...], target: Any) -> tuple[int, ...]:
    """The target shape with -1 replaced.  Raises ShapeMismatchError."""
    if hasattr(target, "__index__") and not getattr(target, "ndim", 0):
        target = (target,)
    if isinstance(target, np.ndarray):
        target = target.tolist()
    if not isinstance(target, (tuple, list)):
        raise TypeError(
            f"{function}: argument 'shape' must be an integer or a tuple of integers, got {target!r}"
        )
    sizes = [require_integer(s, function, "shape") for s in target]
    total = math.prod(shape)
    unknown = [i for i, s in enumerate(sizes) if s == -1]
    known = math.prod(s for s in sizes if s != -1)
    if len(unknown) > 1 or builtins.any(s < -1 for s in sizes):
        raise ValueError(
            f"{function}: argument 'shape' may have one -1 at most, got {tuple(target)}"
        )
    if unknown and (known == 0 or total % known):
        raise ShapeMismatchError(
            f"{function}: cannot reshape array of shape {shape} (size {total}) into shape "
            f"{tuple(sizes)}, because {known} does not divide {total}"
        )
    if unknown:
        sizes[unknown[0]] = total // known
    elif known != total:
        raise ShapeMismatchError(
            f"{function}: cannot reshape array of shape {shape} (size {total}) into shape "
            f"{tuple(sizes)} (size {known})"
        )
    return tuple(sizes)


def _check_order(function: str, order: str) -> None:
    if order not in ("C", "F", "A", "K"):
        raise ValueError(
            f"{function}: argument 'order' must be 'C', 'F', 'A' or 'K', got {order!r}"
        )


@public(static=("shape", "order", "copy", "out_sharding"))
def reshape(
    a: Any, shape: Any, order: str = "C", *, copy: Any = None, out_sharding: Any = None
) -> Any:
    """The elements in a new shape; one size may be -1 and is computed.

    a: array or number.  order: "C" (last axis fastest) or "F".  Raises ShapeMismatchError (a
    ValueError and a TypeError) when the sizes do not fit.

    >>> import jato.numpy as jnp
    >>> jnp.reshape(jnp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    a = as_array("reshape", a)
    _check_order("reshape", order)
    sizes = _resolve("reshape", a.shape, shape)
    if order == "F":
        flipped = structural.reshape(transpose(a), sizes[::-1])
        return transpose(flipped)
    return structural.reshape(a, sizes)


@public(static=("order", "out_sharding"))
def ravel(a: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    """The elements in one axis.

    >>> import jato.numpy as jnp
    >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]))
    Array([1, 2, 3, 4], dtype=int32)
    """
    a = as_array("ravel", a)
    _check_order("ravel", order)
    if order == "F":
        a = transpose(a)
    return structural.reshape(a, (math.prod(a.shape),))


@public(static=("axes",))
def transpose(a: Any, axes: Any = None) -> Any:
    """The axes in another order; reversed if `axes` is None.

    >>> import jato.numpy as jnp
    >>> jnp.transpose(jnp.zeros((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    a = as_array("transpose", a)
    rank = len(a.shape)
    if axes is None:
        order = tuple(range(rank))[::-1]
    else:
        order = normalize_axes("transpose", axes, rank, "axes")
        if len(order) != rank:
            raise ValueError(f"transpose: axes {tuple(axes)} don't match an array of rank {rank}")
    return structural.transpose(a, order)


permute_dims = transpose


@public()
def matrix_transpose(x: Any, /) -> Any:
    """The last two axes exchanged.  Raises ValueError for arrays of rank below 2.

    >>> import jato.numpy as jnp
    >>> jnp.matrix_transpose(jnp.zeros((5, 2, 3))).shape
    (5, 3, 2)
    """
    x = as_array("matrix_transpose", x)
    if len(x.shape) < 2:
        raise ValueError(f"matrix_transpose: x must have rank 2 or more, got shape {x.shape}")
    return swapaxes(x, -1, -2)


@public(static=("axis1", "axis2"))
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """Two axes exchanged.

    >>> import jato.numpy as jnp
    >>> jnp.swapaxes(jnp.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    a = as_array("swapaxes", a)
    rank = len(a.shape)
    i = normalize_axis("swapaxes", axis1, rank, "axis1")
    j = normalize_axis("swapaxes", axis2, rank, "axis2")
    order = list(range(rank))
    order[i], order[j] = j, i
    return structural.transpose(a, tuple(order))


@public(static=("source", "destination"))
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Axes moved to new positions, the others in order.

    >>> import jato.numpy as jnp
    >>> jnp.moveaxis(jnp.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    a = as_array("moveaxis", a)
    rank = len(a.shape)
    sources = normalize_axes("moveaxis", source, rank, "source")
    destinations = normalize_axes("moveaxis", destination, rank, "destination")
    if len(sources) != len(destinations):
        raise ValueError(
            f"moveaxis: 'source' and 'destination' must have equal lengths, got {source} and "
            f"{destination}"
        )
    order = [i for i in range(rank) if i not in sources]
    for where, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(where, axis)
    return structural.transpose(a, tuple(order))


@public(static=("axis", "start"))
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """An axis moved to lie before position `start`.

    >>> import jato.numpy as jnp
    >>> jnp.rollaxis(jnp.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    a = as_array("rollaxis", a)
    rank = len(a.shape)
    axis = normalize_axis("rollaxis", axis, rank)
    if not -rank <= start <= rank:
        raise ValueError(f"rollaxis: argument 'start' must be in [{-rank}, {rank}], got {start}")
    start = start + rank if start < 0 else start
    return moveaxis(a, axis, start - 1 if start > axis else start)


@public(static=("axis",))
def squeeze(a: Any, axis: Any = None) -> Any:
    """Axes of size 1 removed: all of them, or those given.  Raises ValueError for other sizes.

    >>> import jato.numpy as jnp
    >>> jnp.squeeze(jnp.zeros((1, 3, 1))).shape
    (3,)
    """
    a = as_array("squeeze", a)
    shape = a.shape
    if axis is None:
        axes = tuple(i for i, s in enumerate(shape) if s == 1)
    else:
        axes = normalize_axes("squeeze", axis, len(shape))
        if builtins.any(shape[i] != 1 for i in axes):
            raise ValueError(
                "squeeze: cannot select an axis to squeeze out which has size not equal to one, "
                f"got shape {shape} and axis {axis}"
            )
    return structural.reshape(a, tuple(s for i, s in enumerate(shape) if i not in axes))


@public(static=("axis",))
def expand_dims(a: Any, axis: Any) -> Any:
    """New axes of size 1, at positions of the result.

    >>> import jato.numpy as jnp
    >>> jnp.expand_dims(jnp.zeros(3), 0).shape
    (1, 3)
    """
    a = as_array("expand_dims", a)
    count = 1 if hasattr(axis, "__index__") else len(axis)
    rank = len(a.shape) + count
    axes = normalize_axes("expand_dims", axis, rank)
    sizes = iter(a.shape)
    return structural.reshape(a, tuple(1 if i in axes else next(sizes) for i in range(rank)))


@public(static=("shape", "out_sharding"))
def broadcast_to(array: Any, shape: Any, *, out_sharding: Any = None) -> Any:
    """The array repeated to `shape`: along new leading axes, and axes of size 1.

    Raises ShapeMismatchError when the shape does not broadcast to that.

    >>> import jato.numpy as jnp
    >>> jnp.broadcast_to(jnp.array([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    array = as_array("broadcast_to", array)
    target = normalize_shape("broadcast_to", shape)
    own = array.shape
    if len(own) > len(target) or builtins.any(
        s not in (1, t) for s, t in zip(own[::-1], target[::-1], strict=False)
    ):
        raise ShapeMismatchError(
            f"broadcast_to: incompatible shapes for broadcasting: {own} to {target}"
        )
    return broadcast(array, target)


@public()
def broadcast_arrays(*args: Any) -> list[Any]:
    """All arguments, broadcast to their common shape.

    >>> import jato.numpy as jnp
    >>> [x.shape for x in jnp.broadcast_arrays(jnp.zeros(3), jnp.zeros((2, 1)))]
    [(2, 3), (2, 3)]
    """
    arrays = [as_array("broadcast_arrays", x, i) for i, x in enumerate(args)]
    if not arrays:
        return []
    shape = common_shape("broadcast_arrays", [x.shape for x in arrays])
    return [broadcast(x, shape) for x in arrays]


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that all the shapes broadcast to.  Raises ShapeMismatchError.

    >>> import jato.numpy as jnp
    >>> jnp.broadcast_shapes((3,), (2, 1))
    (2, 3)
    """
    if not shapes:
        return ()
    return common_shape(
        "broadcast_shapes", [normalize_shape("broadcast_shapes", s, "shapes") for s in shapes]
    )


def _at_least(function: str, arrays: tuple[Any, ...], rank: int) -> Any:
    results = []
    for i, x in enumerate(arrays):
        x = as_array(function, x, i)
        shape = x.shape
        if len(shape) < rank:
            target = (1,) * (rank - len(shape)) + shape
            if rank == 3:
                target = {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}[len(shape)]
            x = structural.reshape(x, target)
        results.append(x)
    return results[0] if len(results) == 1 else results


@public()
def atleast_1d(*arys: Any) -> Any:
    """The arrays with at least one axis; a list of them, or one array for one argument.

    >>> import jato.numpy as jnp
    >>> jnp.atleast_1d(3.0).shape
    (1,)
    """
    return _at_least("atleast_1d", arys, 1)


@public()
def atleast_2d(*arys: Any) -> Any:
    """The arrays with at least two axes; new ones come first.

    >>> import jato.numpy as jnp
    >>> jnp.atleast_2d(jnp.zeros(3)).shape
    (1, 3)
    """
    return _at_least("atleast_2d", arys, 2)


@public()
def atleast_3d(*arys: Any) -> Any:
    """The arrays with at least three axes.

    >>> import jato.numpy as jnp
    >>> jnp.atleast_3d(jnp.zeros(3)).shape
    (1, 3, 1)
    """
    return _at_least("atleast_3d", arys, 3)


# ---- joining


def _sequence(function: str, arrays: Any, argument: str = "arrays") -> list[Any]:
    """The items of a sequence of arrays (or of an array's first axis)."""
    if hasattr(arrays, "shape"):
        if not arrays.shape:
            raise ValueError(f"{function}: argument '{argument}' must be a sequence of arrays")
        return [_item(as_array(function, arrays), i) for i in range(arrays.shape[0])]
    if not isinstance(arrays, (list, tuple)):
        raise argument_error(function, arrays, argument)
    if not arrays:
        raise ValueError(f"{function}: need at least one array")
    return [_element(function, x, i) for i, x in enumerate(arrays)]


def _element(function: str, x: Any, position: int) -> Any:
    """An item of a sequence: an array, a number, or a nested list of numbers."""
    if isinstance(x, (list, tuple)):
        x = np.asarray(x)
        if x.dtype == object:
            raise argument_error(function, x, position)
    return x if type(x) in (bool, int, float, complex) else as_array(function, x, position)


def _item(x: Any, i: int) -> Any:
    return structural.reshape(
        structural.slice(x, (i,) + (0,) * (len(x.shape) - 1), (i + 1, *x.shape[1:])), x.shape[1:]
    )


def _common_dtype(function: str, arrays: list[Any], dtype: Any) -> list[Any]:
    if dtype is not None:
        return [as_type(as_array(function, x), dtype) for x in arrays]
    target, weak = join_types(*arrays)
    return [cast(as_weak_array(function, x), target, weak) for x in arrays]


def as_weak_array(function: str, x: Any) -> Any:
    """A Python number as a weakly typed 0-d array; arrays as they are."""
    if type(x) in (bool, int, float, complex):
        return structural.full((), x, None)
    return as_array(function, x)


@public(static=("axis", "dtype"))
def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Any:
    """Arrays joined along an existing axis; flattened first if axis is None.

    arrays: a sequence of arrays whose other sizes agree.  Raises ShapeMismatchError when they do
    not, ValueError for no arrays or 0-d arrays.

    >>> import jato.numpy as jnp
    >>> jnp.concatenate([jnp.array([1, 2]), jnp.array([3])])
    Array([1, 2, 3], dtype=int32)
    """
    items = _common_dtype("concatenate", _sequence("concatenate", arrays), dtype)
    if axis is None:
        items = [structural.reshape(x, (math.prod(x.shape),)) for x in items]
        axis = 0
    rank = len(items[0].shape)
    if rank == 0:
        raise ValueError("concatenate: zero-dimensional arrays cannot be concatenated; use stack")
    axis = normalize_axis("concatenate", axis, rank)
    first = items[0].shape
    for i, x in enumerate(items):
        if len(x.shape) != rank or builtins.any(
            x.shape[k] != first[k] for k in range(rank) if k != axis
        ):
            raise ShapeMismatchError(
                f"concatenate: sizes must agree except along axis {axis}: array 0 has shape {first}, "
                f"array {i} has shape {x.shape}"
            )
    return items[0] if len(items) == 1 else structural.concatenate(items, axis)


@public(static=("axis",))
def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    """Arrays joined along an existing axis; see `concatenate`.

    >>> import jato.numpy as jnp
    >>> jnp.concat([jnp.array([1, 2]), jnp.array([3])])
    Array([1, 2, 3], dtype=int32)
    """
    return concatenate(arrays, axis)


@public(static=("axis", "dtype"))
def stack(arrays: Any, axis: int = 0, out: None = None, dtype: Any = None) -> Any:
    """Arrays of one shape joined along a new axis.  Raises ShapeMismatchError.

    >>> import jato.numpy as jnp
    >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    require_no_out("stack", out)
    items = _common_dtype("stack", _sequence("stack", arrays), dtype)
    shape = items[0].shape
    for i, x in enumerate(items):
        if x.shape != shape:
            raise ShapeMismatchError(
                f"stack: all arrays must have the same shape: array 0 has shape {shape}, array {i} "
                f"has shape {x.shape}"
            )
    axis = normalize_axis("stack", axis, len(shape) + 1)
    grown = (*shape[:axis], 1, *shape[axis:])
    return structural.concatenate([structural.reshape(x, grown) for x in items], axis)


def _stacked(function: str, tup: Any, rank: int, axis: int, dtype: Any) -> Any:
    items = _sequence(function, tup, "tup")
    items = [_at_least(function, (as_weak_array(function, x),), rank) for x in items]
    return concatenate(items, axis, dtype)


@public(static=("dtype",))
def vstack(tup: Any, dtype: Any = None) -> Any:
    """Arrays joined as rows: along the first axis, one-dimensional ones as rows.

    >>> import jato.numpy as jnp
    >>> jnp.vstack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    return _stacked("vstack", tup, 2, 0, dtype)


@public(static=("dtype",))
def hstack(tup: Any, dtype: Any = None) -> Any:
    """Arrays joined along the second axis; one-dimensional ones along the first.

    >>> import jato.numpy as jnp
    >>> jnp.hstack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([1, 2, 3, 4], dtype=int32)
    """
    items = _sequence("hstack", tup, "tup")
    items = [_at_least("hstack", (as_weak_array("hstack", x),), 1) for x in items]
    return concatenate(items, 0 if len(items[0].shape) == 1 else 1, dtype)


@public(static=("dtype",))
def dstack(tup: Any, dtype: Any = None) -> Any:
    """Arrays joined along the third axis.

    >>> import jato.numpy as jnp
    >>> jnp.dstack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[[1, 3],
            [2, 4]]], dtype=int32)
    """
    return _stacked("dstack", tup, 3, 2, dtype)


@public()
def column_stack(tup: Any) -> Any:
    """One-dimensional arrays as the columns of a matrix; matrices side by side.

    >>> import jato.numpy as jnp
    >>> jnp.column_stack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    columns = []
    for x in _sequence("column_stack", tup, "tup"):
        x = as_weak_array("column_stack", x)
        size = math.prod(x.shape)
        columns.append(x if len(x.shape) > 1 else structural.reshape(x, (size, 1)))
    return concatenate(columns, 1)


@public()
def block(arrays: Any) -> Any:
    """An array from nested lists of blocks: the innermost lists are joined along the last axis.

    >>> import jato.numpy as jnp
    >>> jnp.block([[jnp.ones((1, 2)), jnp.zeros((1, 1))]])
    Array([[1., 1., 0.]], dtype=float32)
    """
    depth = _depth(arrays)
    leaves = list(_leaves(arrays))
    rank = builtins.max(depth, *[len(shape_of(x)) for x in leaves])
    return _block(arrays, depth, rank)


def _depth(arrays: Any) -> int:
    if not isinstance(arrays, (list, tuple)):
        return 0
    if not arrays:
        raise ValueError("block: empty lists are not allowed")
    depths = {_depth(a) for a in arrays}
    if len(depths) > 1:
        raise ValueError("block: lists must be nested equally deep everywhere")
    return depths.pop() + 1


def _leaves(arrays: Any) -> Any:
    if isinstance(arrays, (list, tuple)):
        for a in arrays:
            yield from _leaves(a)
    else:
        yield as_weak_array("block", arrays)


def _block(arrays: Any, depth: int, rank: int) -> Any:
    if depth == 0:
        x = as_weak_array("block", arrays)
        return structural.reshape(x, (1,) * (rank - len(x.shape)) + tuple(x.shape))
    return concatenate([_block(a, depth - 1, rank) for a in arrays], -depth)


@public(static=("axis",))
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """`values` after `arr` along an axis; both flattened if axis is None.

    >>> import jato.numpy as jnp
    >>> jnp.append(jnp.array([1, 2]), jnp.array([3]))
    Array([1, 2, 3], dtype=int32)
    """
    return concatenate([as_weak_array("append", arr), as_weak_array("append", values)], axis)


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
        ends = [part + (i < rest) for i in range(count)]
        return [builtins.sum(ends[:i]) for i in range(count + 1)]
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
    return tuple(_item(x, i) for i in range(x.shape[0]))


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
    k = k % 4
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
    if size == 0:
        return a
    shift = elementwise.remainder(as_array("roll", shift), np.asarray(size, dtype_of(shift))[()])
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
        shifts = [_item(as_array("roll", shift), i) for i in range(shift.shape[0])]
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


@public(static=("repeats", "axis"))
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
    return _take_rows(a, positions, axis)


def _take_rows(a: Any, positions: Any, axis: int) -> Any:
    """Sub-arrays at in-bounds positions along an axis."""
    rank = len(a.shape)
    offsets = tuple(i for i in range(rank) if i != axis)
    numbers = indexing.GatherDimensionNumbers(
        offset_dims=offsets, collapsed_slice_dims=(axis,), start_index_map=(axis,)
    )
    sizes = tuple(1 if i == axis else s for i, s in enumerate(a.shape))
    starts = structural.reshape(positions, (*positions.shape, 1))
    return indexing.gather(a, starts, numbers, sizes, mode="clip")


@public(static=("axis", "total_repeat_length"))
def _repeat_dynamic(a: Any, repeats: Any, axis: int | None, total_repeat_length: int) -> Any:
    a, repeats = as_array("repeat", a), as_array("repeat", repeats)
    if axis is None:
        a, axis = structural.reshape(a, (math.prod(a.shape),)), 0
    axis = normalize_axis("repeat", axis, len(a.shape))
    size = a.shape[axis]
    repeats = broadcast_to(structural.reshape(repeats, (-1,) if repeats.shape else (1,)), (size,))
    # position j of the result shows the row whose run of repeats covers j
    ends = _running_sum(repeats)
    place = structural.broadcasted_iota(np.int32, (total_repeat_length, size), 0)
    ends = structural.broadcast_in_dim(ends, (total_repeat_length, size), (1,))
    rows = structural.reduce_sum(as_type(elementwise.ge(place, ends), np.int32), (1,))
    return _take_rows(a, rows, axis)


def _running_sum(x: Any) -> Any:
    size = x.shape[0]
    x = as_type(x, np.int32)
    row = structural.broadcasted_iota(np.int32, (size, size), 0)
    column = structural.broadcasted_iota(np.int32, (size, size), 1)
    kept = as_type(elementwise.le(column, row), np.int32)
    spread = structural.broadcast_in_dim(x, (size, size), (1,))
    return structural.reduce_sum(elementwise.mul(spread, kept), (1,))


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


# ---- padding


def _pad_widths(pad_width: Any, rank: int) -> list[tuple[int, int]]:
    """One (before, after) per axis from any of NumPy's forms."""
    if isinstance(pad_width, dict):
        widths = [(0, 0)] * rank
        for axis, width in pad_width.items():
            pair = (width, width) if hasattr(width, "__index__") else tuple(width)
            widths[normalize_axis("pad", axis, rank, "pad_width")] = pair
        return widths
    try:
        pairs = np.broadcast_to(np.asarray(pad_width), (rank, 2)).tolist()
    except ValueError:
        raise ValueError(
            f"pad: argument 'pad_width' must be an integer, a pair or a pair per axis ({rank}), got "
            f"{pad_width}"
        ) from None
    pairs = [
        (require_integer(b, "pad", "pad_width"), require_integer(e, "pad", "pad_width"))
        for b, e in pairs
    ]
    if builtins.any(b < 0 or e < 0 for b, e in pairs):
        raise ValueError(f"pad: argument 'pad_width' has negative entries: {pad_width}")
    return pairs


def _mirror_positions(size: int, before: int, after: int, mode: str) -> Any:
    return np.pad(np.arange(size, dtype=np.int32), (before, after), mode=mode)


def _pad_constant(array: Any, widths: list[tuple[int, int]], values: Any) -> Any:
    dtype = dtype_of(array)
    if not isinstance(values, (tuple, list)) and not shape_of(values):
        value = cast(
            values if type(values) in (bool, int, float, complex) else as_array("pad", values),
            dtype,
        )
        value = np.asarray(value, dtype)[()] if not hasattr(value, "aval") else value
        return structural.pad(array, value, [(b, a, 0) for b, a in widths])
    pairs = broadcast_to(as_array("pad", values, "constant_values"), (len(widths), 2))
    pairs = as_type(pairs, dtype)
    for axis, (before, after) in enumerate(widths):
        for side, amount in ((0, before), (1, after)):
            config = [(0, 0, 0)] * len(widths)
            config[axis] = (amount, 0, 0) if side == 0 else (0, amount, 0)
            value = structural.slice(pairs, (axis, side), (axis + 1, side + 1))
            array = structural.pad(array, structural.reshape(value, ()), config)
    return array


def _edge_part(array: Any, axis: int, first: bool, length: int) -> Any:
    size = array.shape[axis]
    length = builtins.min(length, size)
    begin = 0 if first else size - length
    return structural.slice_in_dim(array, begin, begin + length, axis=axis)


def _pad_statistic(array: Any, widths: list[tuple[int, int]], mode: str, stat_length: Any) -> Any:
    """Each side filled with the maximum, mean, ... of the elements next to it."""
    statistic = {"maximum": max, "minimum": min, "mean": mean}[mode]
    dtype = dtype_of(array)
    for axis, (before, after) in enumerate(widths):
        size = array.shape[axis]
        lengths = (size, size)
        if stat_length is not None:
            lengths = np.broadcast_to(np.asarray(stat_length), (len(widths), 2))[axis].tolist()
        parts = []
        for first, amount, length in ((True, before, lengths[0]), (False, after, lengths[1])):
            value = statistic(_edge_part(array, axis, first, length), axis, keepdims=True)
            if dtype.kind in "iu" and mode == "mean":
                value = elementwise.round(value, elementwise.RoundingMethod.TO_NEAREST_EVEN)
            value = as_type(value, dtype)
            target = tuple(amount if i == axis else s for i, s in enumerate(value.shape))
            parts.append(broadcast(value, target))
        array = structural.concatenate([parts[0], array, parts[1]], axis)
    return array


def _pad_ramp(array: Any, widths: list[tuple[int, int]], end_values: Any) -> Any:
    dtype = dtype_of(array)
    ends = np.broadcast_to(np.asarray(end_values), (len(widths), 2))
    for axis, (before, after) in enumerate(widths):
        parts = []
        for first, amount, end in ((True, before, ends[axis, 0]), (False, after, ends[axis, 1])):
            edge = as_type(
                _edge_part(array, axis, first, 1), np.float32 if dtype.itemsize < 8 else np.float64
            )
            ramp = np.arange(amount) / builtins.max(amount, 1)
            ramp = ramp if first else 1 - (np.arange(amount) + 1) / builtins.max(amount, 1)
            ramp = ramp.reshape([-1 if i == axis else 1 for i in range(len(array.shape))])
            weight = ramp.astype(dtype_of(edge))
            shape = tuple(amount if i == axis else s for i, s in enumerate(edge.shape))
            start = broadcast(np.asarray(end * (1 - weight), dtype_of(edge)), shape)
            value = elementwise.add(
                start, elementwise.mul(broadcast(edge, shape), broadcast(weight, shape))
            )
            if dtype.kind in "iu":
                value = elementwise.floor(value) if end >= 0 else value
            parts.append(as_type(value, dtype))
        array = structural.concatenate([parts[0], array, parts[1]], axis)
    return array


@public(static=("pad_width", "mode", "reflect_type", "stat_length", "end_values"))
def _pad(
    array: Any,
    pad_width: Any,
    mode: str,
    constant_values: Any,
    stat_length: Any = None,
    end_values: Any = 0,
    reflect_type: str = "even",
) -> Any:
    array = as_array("pad", array)
    shape = array.shape
    widths = _pad_widths(pad_width, len(shape))
    if mode == "constant":
        return _pad_constant(array, widths, constant_values)
    if mode == "empty":
        return _pad_constant(array, widths, 0)
    if mode in ("maximum", "minimum", "mean"):
        return _pad_statistic(array, widths, mode, stat_length)
    if mode == "linear_ramp":
        return _pad_ramp(array, widths, end_values)
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise NotImplementedError(f"pad: unknown mode {mode!r}")
    if reflect_type != "even":
        raise NotImplementedError("pad: argument 'reflect_type' must be 'even'")
    for axis, (before, after) in enumerate(widths):
        if before == after == 0:
            continue
        if shape[axis] == 0:
            raise ValueError(f"pad: cannot extend empty axis {axis} in mode {mode!r}")
        array = _pad_by_position(array, axis, before, after, mode)
    return array


def _pad_by_position(array: Any, axis: int, before: int, after: int, mode: str) -> Any:
    size = array.shape[axis]
    if mode == "edge":
        sides = []
        for first, amount in ((True, before), (False, after)):
            part = _edge_part(array, axis, first, 1)
            sides.append(
                broadcast(part, tuple(amount if i == axis else s for i, s in enumerate(part.shape)))
            )
        return structural.concatenate([sides[0], array, sides[1]], axis)
    positions = _mirror_positions(size, before, after, mode)
    # runs of neighbouring positions are slices: cheaper than a gather, and fusable
    breaks = np.flatnonzero(np.diff(np.diff(positions)) != 0) + 1
    if len(breaks) > 8:
        return _take_rows(array, positions, axis)
    return structural.concatenate(_runs(array, positions.tolist(), axis), axis)


def _runs(array: Any, positions: list[int], axis: int) -> list[Any]:
    """`positions` as slices, forward and reversed."""
    parts = []
    i = 0
    while i < len(positions):
        j = i + 1
        step = positions[j] - positions[i] if j < len(positions) else 1
        step = step if step in (1, -1) else 1
        while j < len(positions) and positions[j] - positions[j - 1] == step:
            j += 1
        low, high = (
            builtins.min(positions[i], positions[j - 1]),
            builtins.max(positions[i], positions[j - 1]),
        )
        part = structural.slice_in_dim(array, low, high + 1, axis=axis)
        parts.append(structural.rev(part, (axis,)) if step == -1 and high > low else part)
        i = j
    return parts


def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """The array with elements added around it.

    pad_width: an integer, a pair (before, after), a pair per axis, or a dict of axes.  mode:
    "constant" (`constant_values`), "edge", "reflect", "symmetric", "wrap", "linear_ramp"
    (`end_values`), "maximum", "mean", "minimum" (`stat_length`), "empty", or a function
    `f(row, (before, after), axis, kwargs)` that returns the new row.

    >>> import jato.numpy as jnp
    >>> jnp.pad(jnp.array([1, 2]), 1)
    Array([0, 1, 2, 0], dtype=int32)
    """
    known = {"constant_values", "stat_length", "end_values", "reflect_type"}
    if callable(mode):
        return _pad_with_function(array, pad_width, mode, kwargs)
    if set(kwargs) - known:
        raise ValueError(
            f"pad: unsupported arguments for mode {mode!r}: {sorted(set(kwargs) - known)}"
        )
    values = kwargs.pop("constant_values", 0)
    if isinstance(values, (list, tuple)):
        values = np.asarray(values)
        if values.dtype == object:
            raise TypeError("pad: argument 'constant_values' must be numbers, or an array")
    for name in ("stat_length", "end_values"):
        if isinstance(kwargs.get(name), (list, np.ndarray)):
            kwargs[name] = hashable(kwargs[name])
    if isinstance(pad_width, dict):
        pad_width = _pad_widths(pad_width, len(shape_of(as_array("pad", array))))
    return _pad(array, hashable(pad_width), mode, values, **kwargs)


def hashable(x: Any) -> Any:
    """Lists and arrays as tuples, all the way down."""
    if isinstance(x, np.ndarray) or (hasattr(x, "aval") and hasattr(x, "tolist")):
        x = x.tolist()
    return tuple(map(hashable, x)) if isinstance(x, (list, tuple)) else x


def _pad_with_function(array: Any, pad_width: Any, function: Any, kwargs: Any) -> Any:
    array = as_array("pad", array)
    widths = _pad_widths(pad_width, len(array.shape))
    array = _pad_constant(array, widths, 0)
    for axis, width in enumerate(widths):
        rows = moveaxis(array, axis, -1)
        shape = rows.shape
        flat = reshape(rows, (-1, shape[-1]))
        done = [function(row, width, axis, kwargs) for row in unstack(flat)]
        array = moveaxis(reshape(stack(done), shape), -1, axis)
    return array


def sequence_items(function: str, arrays: Sequence[Any]) -> list[Any]:
    """The arrays of a sequence argument, for other files."""
    return _sequence(function, arrays)
