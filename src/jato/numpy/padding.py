"""pad: elements added around an array, in NumPy's modes."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
from jato.core.array import require_integer
from jato.jit.eager import public
from jato.numpy.manipulation import broadcast_to, moveaxis, reshape, stack
from jato.numpy.promote import (
    as_array,
    broadcast,
    cast,
    dtype_of,
    hashable,
    normalize_axis,
    shape_of,
)
from jato.numpy.rearrangement import take_rows, unstack
from jato.numpy.reductions import as_type, max, mean, min
from jato.numpy.statistics import median
from jato.ops import elementwise, structural


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
    statistic = {"maximum": max, "minimum": min, "mean": mean, "median": median}[mode]
    dtype = dtype_of(array)
    for axis, (before, after) in enumerate(widths):
        size = array.shape[axis]
        lengths = (size, size)
        if stat_length is not None:
            lengths = np.broadcast_to(np.asarray(stat_length), (len(widths), 2))[axis].tolist()
        parts = []
        for first, amount, length in ((True, before, lengths[0]), (False, after, lengths[1])):
            value = statistic(_edge_part(array, axis, first, length), axis, keepdims=True)
            if dtype.kind in "iu" and mode in ("mean", "median"):
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
    if mode in ("maximum", "minimum", "mean", "median"):
        return _pad_statistic(array, widths, mode, stat_length)
    if mode == "linear_ramp":
        return _pad_ramp(array, widths, end_values)
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise NotImplementedError(f"pad: unknown mode {mode!r}")
    if reflect_type not in ("even", "odd"):
        raise ValueError(f"pad: argument 'reflect_type' must be 'even' or 'odd', got {reflect_type!r}")
    odd = reflect_type == "odd" and mode in ("reflect", "symmetric")
    for axis, (before, after) in enumerate(widths):
        if before == after == 0:
            continue
        if shape[axis] == 0:
            raise ValueError(f"pad: cannot extend empty axis {axis} in mode {mode!r}")
        if odd:
            array = _pad_odd(array, axis, before, after, mode)
        else:
            array = _pad_by_position(array, axis, before, after, mode)
    return array


def _pad_odd(array: Any, axis: int, before: int, after: int, mode: str) -> Any:
    """Each side filled with twice the edge less the mirror image, again and again if it is wide."""
    skip = 1 if mode == "reflect" else 0
    size = array.shape[axis]
    if size == 1:
        return _pad_by_position(array, axis, before, after, "edge")
    step = size - skip
    while before > 0 or after > 0:
        low, high = builtins.min(before, step), builtins.min(after, step)
        whole = array.shape[axis]
        sides = []
        for first, amount in ((True, low), (False, high)):
            edge = _edge_part(array, axis, first, 1)
            begin = skip if first else whole - skip - amount
            image = structural.slice_in_dim(array, begin, begin + amount, axis=axis)
            shape = tuple(image.shape)
            twice = elementwise.add(edge, edge)
            sides.append(elementwise.sub(broadcast(twice, shape), structural.rev(image, (axis,))))
        array = structural.concatenate([sides[0], array, sides[1]], axis)
        before, after = before - low, after - high
        step = array.shape[axis] - skip
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
        return take_rows(array, positions, axis)
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
    (`end_values`), "maximum", "mean", "median", "minimum" (`stat_length`), "empty", or a function
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
