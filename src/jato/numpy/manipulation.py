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
from jato.core.array import require_integer
from jato.jit.eager import public
from jato.numpy.promote import (
    argument_error,
    as_array,
    broadcast,
    cast,
    common_shape,
    join_types,
    normalize_axes,
    normalize_axis,
    normalize_shape,
    require_no_out,
    shape_of,
)
from jato.numpy.reductions import as_type
from jato.ops import structural

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
            raise ValueError(f"transpose: axes {order} don't match an array of rank {rank}")
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
        return [item_at(as_array(function, arrays), i) for i in range(arrays.shape[0])]
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


def item_at(x: Any, i: int) -> Any:
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


# ---- padding


def sequence_items(function: str, arrays: Sequence[Any]) -> list[Any]:
    """The arrays of a sequence argument, for other files."""
    return _sequence(function, arrays)
