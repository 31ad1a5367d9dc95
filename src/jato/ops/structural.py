"""Functions that make, move, cut and join arrays, under the names of jax.lax.

The primitives they bind are in shapes.py and slicing.py.  Arguments named in messages are those
of these functions.  Start reading at `broadcast_in_dim`.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import fail, require_unsharded
from jato.core.types import type_of
from jato.ops.convert import CONVERT
from jato.ops.families import Shape
from jato.ops.numbers import NUMBERS, number_as
from jato.ops.reduction_family import Reduction
from jato.ops.shapes import (
    BROADCAST_IN_DIM,
    IOTA,
    REDUCE_SUM,
    RESHAPE,
    REV,
    STOP_GRADIENT,
    TRANSPOSE,
    Linear,
)
from jato.ops.slicing import CONCATENATE, PAD, SLICE

__all__ = [
    "Linear",
    "Reduction",
    "broadcast",
    "broadcast_in_dim",
    "broadcast_shapes",
    "broadcasted_iota",
    "canonical_axes",
    "canonical_axis",
    "collapse",
    "concatenate",
    "expand_dims",
    "full",
    "full_like",
    "iota",
    "pad",
    "reduce_sum",
    "reshape",
    "rev",
    "slice",
    "slice_in_dim",
    "split",
    "squeeze",
    "stop_gradient",
    "transpose",
]


# ---- arguments


def canonical_shape(function: str, argument: str, shape: Any) -> Shape:
    """A shape as a tuple of Python integers >= 0 (also from one integer)."""
    try:
        sizes = tuple(operator.index(n) for n in shape)
    except TypeError:
        if isinstance(shape, (int, np.integer)):
            sizes = (int(shape),)
        elif hasattr(shape, "aval") or any(hasattr(n, "aval") for n in shape):
            raise
        else:
            fail(TypeError, function, f"expected {argument} to be integers, got {shape!r}.")
    for n in sizes:
        if n < 0:
            fail(TypeError, function, f"expected {argument} >= 0, got {sizes}.")
    return sizes


def canonical_axis(function: str, argument: str, axis: Any, ndim: int) -> int:
    """An axis counted from the end, if negative, as one counted from the front."""
    position = operator.index(axis)
    if not -ndim <= position < ndim:
        fail(
            ValueError,
            function,
            f"{argument} {position} is out of bounds for an array of dimension {ndim}.",
        )
    return position + ndim if position < 0 else position


def canonical_axes(function: str, argument: str, axes: Any, ndim: int) -> Shape:
    """Different axes, each counted from the front, in the order given."""
    found = tuple(canonical_axis(function, argument, a, ndim) for a in _items(axes))
    if len(set(found)) != len(found):
        fail(ValueError, function, f"expected different {argument}, got {tuple(_items(axes))}.")
    return found


def _items(x: Any) -> Sequence[Any]:
    return (x,) if isinstance(x, (int, np.integer)) else tuple(x)


def _is_array(x: Any) -> bool:
    """An array or tracer of ours: a function that changes nothing may return it."""
    return hasattr(x, "aval")


# ---- making arrays


def full(shape: Any, fill_value: Any, dtype: Any = None, *, sharding: Any = None) -> Any:
    """An array of `shape` filled with a scalar.

    fill_value: a number or a 0-d array; dtype: None takes the fill value's.
    TypeError if fill_value is not a scalar.

    >>> full((2,), 1.5, "float32").shape
    (2,)
    """
    if sharding is not None:
        require_unsharded("full", sharding, "sharding")
    sizes = canonical_shape("full", "shape", shape)
    aval = type_of(fill_value)
    if aval.shape:
        fail(TypeError, "full", f"expected fill_value to be a scalar, got {aval}.")
    if dtype is not None:
        wanted = dtypes.canonicalize(dtype)
        fill_value = _scalar_of(fill_value, wanted, False)
    return BROADCAST_IN_DIM.bind(fill_value, shape=sizes, broadcast_dimensions=())


def _scalar_of(value: Any, dtype: Any, weak_type: bool) -> Any:
    if not (_is_array(value) or dtype is dtypes.key):
        whole = dtypes.is_integer(dtype) and type(value) is float
        if not whole or -(2.0**31) < value < 2.0**31:  # beyond: as CONVERT does it
            with np.errstate(all="ignore"):
                value = np.asarray(value).astype(dtype)[()]
    aval = type_of(value)
    if aval.dtype == dtype and aval.weak_type == weak_type:
        return value
    if dtypes.key in (aval.dtype, dtype):
        fail(TypeError, "full", f"expected fill_value of dtype {dtype}, got {aval}.")
    return CONVERT.bind(value, new_dtype=dtype, weak_type=weak_type)


def full_like(
    x: Any, fill_value: Any, dtype: Any = None, shape: Any = None, sharding: Any = None
) -> Any:
    """`full` with the shape and dtype of `x` unless given; weakly typed if x is and dtype is None.

    >>> full_like(full((3,), 0.0), 2.0).shape
    (3,)
    """
    if sharding is not None:
        require_unsharded("full_like", sharding, "sharding")
    aval = type_of(x)
    sizes = aval.shape if shape is None else shape
    if dtype is not None or not aval.weak_type:
        return full(sizes, fill_value, aval.dtype if dtype is None else dtype)
    if type_of(fill_value).shape:
        fail(TypeError, "full_like", f"expected fill_value to be a scalar, got {fill_value}.")
    return full(sizes, _scalar_of(fill_value, aval.dtype, True))


def broadcasted_iota(
    dtype: Any, shape: Any, dimension: int, *, out_sharding: Any = None
) -> Any:
    """Integers 0, 1, 2, ... along `dimension` of an array of `shape`.

    dtype: integer, float or complex.  ValueError if dimension is no axis of shape.

    >>> broadcasted_iota("int32", (2, 3), 1).shape
    (2, 3)
    """
    if out_sharding is not None:
        require_unsharded("broadcasted_iota", out_sharding)
    sizes = canonical_shape("broadcasted_iota", "shape", shape)
    axis = canonical_axis("broadcasted_iota", "dimension", dimension, len(sizes))
    return IOTA.bind(dtype=dtypes.canonicalize(dtype), shape=sizes, dimension=axis)


def iota(dtype: Any, size: int) -> Any:
    """The integers 0 .. size-1 as an array of `dtype`.

    >>> iota("float32", 4).shape
    (4,)
    """
    return broadcasted_iota(dtype, (size,), 0)


# ---- moving


def reshape(
    operand: Any, new_sizes: Any, dimensions: Any = None, *, out_sharding: Any = None
) -> Any:
    """The elements of `operand`, in row-major order, as an array of shape `new_sizes`.

    dimensions: read the axes of operand in this order instead.  TypeError if the number of elements
    differs.  Here and below, `out_sharding` must be None.

    >>> reshape(iota("int32", 6), (2, 3)).shape
    (2, 3)
    """
    if out_sharding is not None:
        require_unsharded("reshape", out_sharding)
    if dimensions is not None:
        operand = transpose(operand, dimensions)
    sizes = canonical_shape("reshape", "new_sizes", new_sizes)
    if _is_array(operand) and operand.aval.shape == sizes:
        return operand
    return RESHAPE.bind(operand, new_sizes=sizes)


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Any:
    """`operand` with the axes start_dimension .. stop_dimension-1 made one.

    >>> collapse(full((2, 3, 4), 0.0), 1).shape
    (2, 12)
    """
    shape = type_of(operand).shape
    axes = range(len(shape))[start_dimension:stop_dimension]
    if not axes:
        fail(ValueError, "collapse", "expected start_dimension < stop_dimension.")
    merged = int(np.prod([shape[i] for i in axes], dtype=object))
    return reshape(operand, (*shape[: axes[0]], merged, *shape[axes[-1] + 1 :]))


def transpose(operand: Any, permutation: Any) -> Any:
    """`operand` with axis permutation[i] as its axis i.

    TypeError if permutation is not one.

    >>> transpose(full((2, 3), 0.0), (1, 0)).shape
    (3, 2)
    """
    order = tuple(operator.index(i) for i in permutation)
    if _is_array(operand) and order == tuple(range(operand.aval.ndim)):
        return operand
    return TRANSPOSE.bind(operand, permutation=order)


def rev(operand: Any, dimensions: Any) -> Any:
    """`operand` backwards along `dimensions`, counted from the front.

    TypeError if they are not different axes of it.

    >>> rev(iota("int32", 3), (0,)).shape
    (3,)
    """
    axes = tuple(sorted(map(operator.index, dimensions)))
    ndim = type_of(operand).ndim
    if axes and (len(set(axes)) != len(axes) or axes[0] < 0 or axes[-1] >= ndim):
        fail(
            TypeError,
            "rev",
            f"argument 'dimensions': expected different axes between 0 and {ndim - 1}, got "
            f"{tuple(dimensions)}.",
        )
    return operand if _is_array(operand) and not axes else REV.bind(operand, dimensions=axes)


def broadcast_in_dim(
    operand: Any, shape: Any, broadcast_dimensions: Any, *, out_sharding: Any = None
) -> Any:
    """`operand` repeated to `shape`, its axis i becoming axis broadcast_dimensions[i].

    An axis of extent 1 is repeated.  TypeError if an extent does not fit or the dimensions do
    not increase.

    >>> broadcast_in_dim(iota("int32", 3), (2, 3), (1,)).shape
    (2, 3)
    """
    if out_sharding is not None:
        require_unsharded("broadcast_in_dim", out_sharding)
    sizes = canonical_shape("broadcast_in_dim", "shape", shape)
    if _is_array(operand) and operand.aval.shape == sizes:
        return operand
    dims = tuple(operator.index(d) for d in broadcast_dimensions)
    return BROADCAST_IN_DIM.bind(operand, shape=sizes, broadcast_dimensions=dims)


def broadcast(operand: Any, sizes: Any, *, out_sharding: Any = None) -> Any:
    """`operand` repeated along new leading axes of `sizes`.

    >>> broadcast(iota("int32", 3), (2,)).shape
    (2, 3)
    """
    if out_sharding is not None:
        require_unsharded("broadcast", out_sharding)
    front = canonical_shape("broadcast", "sizes", sizes)
    shape = (*front, *type_of(operand).shape)
    return broadcast_in_dim(operand, shape, range(len(front), len(shape)))


def broadcast_shapes(*shapes: Any) -> Shape:
    """The shape that arrays of these shapes broadcast to, by NumPy's rule.

    ValueError if they do not.

    >>> broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    if len(set(shapes)) == 1:
        return shapes[0]
    ndim = max((len(s) for s in shapes), default=0)
    result = []
    for i in range(-ndim, 0):
        extents = {s[i] for s in shapes if len(s) >= -i} - {1}
        if len(extents) > 1:
            listed = ", ".join(str(tuple(s)) for s in shapes)
            fail(ValueError, "broadcast_shapes", f"incompatible shapes for broadcasting: {listed}.")
        result.append(extents.pop() if extents else 1)
    return tuple(result)


def expand_dims(array: Any, dimensions: Any) -> Any:
    """`array` with axes of extent 1 at these positions of the result.

    >>> expand_dims(iota("int32", 3), (0,)).shape
    (1, 3)
    """
    shape = type_of(array).shape
    ndim = len(shape) + len(_items(dimensions))
    added = set(canonical_axes("expand_dims", "dimensions", dimensions, ndim))
    rest = iter(shape)
    return reshape(array, tuple(1 if i in added else next(rest) for i in range(ndim)))


def squeeze(array: Any, dimensions: Any) -> Any:
    """`array` without these axes, which must be of extent 1 (ValueError).

    >>> squeeze(full((1, 3, 1), 0.0), (0,)).shape
    (3, 1)
    """
    aval = type_of(array)
    axes = canonical_axes("squeeze", "dimensions", dimensions, aval.ndim)
    for i in axes:
        if aval.shape[i] != 1:
            fail(
                ValueError,
                "squeeze",
                f"expected extent 1 on the axes of dimensions, got {aval.shape[i]} on axis {i} "
                f"of {aval}.",
            )
    return reshape(array, tuple(n for i, n in enumerate(aval.shape) if i not in axes))


# ---- summing


def reduce_sum(operand: Any, axes: Any, *, out_sharding: Any = None) -> Any:
    """The sum over `axes`; float16 and bfloat16 are accumulated in float32.

    operand: integer, float or complex.  TypeError for bool, ValueError for wrong axes.

    >>> reduce_sum(full((2, 3), 1.0), (1,)).shape
    (2,)
    """
    if out_sharding is not None:
        require_unsharded("reduce_sum", out_sharding)
    found = canonical_axes("reduce_sum", "axes", axes, type_of(operand).ndim)
    return REDUCE_SUM.bind(operand, axes=tuple(sorted(found)))


# ---- cutting and joining


def slice(operand: Any, start_indices: Any, limit_indices: Any, strides: Any = None) -> Any:
    """operand[start:limit:stride] on every axis; indices are static.

    TypeError unless 0 <= start <= limit <= extent and stride >= 1.

    >>> slice(iota("int32", 10), (2,), (8,), (3,)).shape
    (2,)
    """
    starts = tuple(operator.index(i) for i in start_indices)
    limits = tuple(operator.index(i) for i in limit_indices)
    steps = (1,) * len(starts) if strides is None else tuple(operator.index(i) for i in strides)
    whole = _is_array(operand) and not any(starts) and limits == operand.aval.shape
    if whole and all(s == 1 for s in steps):
        return operand
    return SLICE.bind(operand, start_indices=starts, limit_indices=limits, strides=steps)


def slice_in_dim(
    operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Any:
    """operand[start:limit:stride] on one axis; None and negative indices as in Python.

    >>> slice_in_dim(iota("int32", 10), -3, None).shape
    (3,)
    """
    shape = type_of(operand).shape
    at = canonical_axis("slice_in_dim", "axis", axis, len(shape))
    n = shape[at]
    start = 0 if start_index is None else operator.index(start_index)
    limit = n if limit_index is None else operator.index(limit_index)
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[at] = start + n if start < 0 else start
    limits[at] = limit + n if limit < 0 else limit
    strides[at] = operator.index(stride)
    return slice(operand, starts, limits, strides)


def pad(operand: Any, padding_value: Any, padding_config: Any) -> Any:
    """`operand` with (low, high, interior) elements added before, after and between, on each axis.

    padding_value: a scalar of the dtype of operand.  Negative low and high cut.  TypeError for a wrong
    config, ValueError if it cuts more than there is.

    >>> pad(iota("int32", 3), 0, [(1, 2, 1)]).shape
    (8,)
    """
    config = tuple(
        (operator.index(l), operator.index(h), operator.index(i)) for l, h, i in padding_config
    )
    if type(padding_value) in NUMBERS:
        padding_value = number_as("pad", padding_value, type_of(operand))
    elif type_of(padding_value).ndim:
        found = type_of(padding_value)
        fail(TypeError, "pad", f"expected padding_value to be a scalar, got {found}.")
    return PAD.bind(operand, padding_value, padding_config=config)


def concatenate(operands: Sequence[Any], dimension: int) -> Any:
    """The arrays one after the other along `dimension`.

    operands: arrays of one dtype that agree in all other axes (TypeError).

    >>> concatenate([iota("int32", 2), iota("int32", 3)], 0).shape
    (5,)
    """
    arrays = list(operands)
    if not arrays:
        fail(ValueError, "concatenate", "expected at least one array in operands, got none.")
    if len(arrays) == 1 and _is_array(arrays[0]) and arrays[0].aval.ndim:
        return arrays[0]
    ndim = type_of(arrays[0]).ndim
    axis = canonical_axis("concatenate", "dimension", dimension, ndim)
    return CONCATENATE.bind(*arrays, dimension=axis)


def split(operand: Any, sizes: Any, axis: int = 0) -> list[Any]:
    """`operand` cut along `axis` into parts of these sizes, which add up to its extent (ValueError).

    >>> [part.shape for part in split(iota("int32", 5), (2, 3))]
    [(2,), (3,)]
    """
    shape = type_of(operand).shape
    at = canonical_axis("split", "axis", axis, len(shape))
    parts = canonical_shape("split", "sizes", sizes)
    if sum(parts) != shape[at]:
        fail(ValueError, "split", f"expected sizes that add up to {shape[at]}, got {parts}.")
    ends = np.cumsum([0, *parts]).tolist()
    return [slice_in_dim(operand, a, b, axis=at) for a, b in itertools.pairwise(ends)]


def stop_gradient(x: Any) -> Any:
    """`x`, treated as a constant by differentiation.

    >>> stop_gradient(iota("float32", 2)).shape
    (2,)
    """
    if not dtypes.is_inexact(type_of(x).dtype):
        return x
    return STOP_GRADIENT.bind(x)
