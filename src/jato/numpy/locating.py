"""Places in sorted vectors and flat arrays: searchsorted, digitize, interp, unravel_index."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from jato.base.dtypes import canonicalize, is_complex, is_floating
from jato.jit.eager import public
from jato.numpy.makers import is_nan
from jato.numpy.makers import select_where as select_values
from jato.numpy.promote import (
    as_array,
    broadcast,
    cast,
    common_shape,
    dtype_of,
    index_dtype,
    normalize_shape,
    promote_dtypes,
)
from jato.numpy.reductions import as_type
from jato.numpy.searching import host_values, take_vector
from jato.ops import elementwise, structural
from jato.ops import sort as sort_ops

# ---- order statistics of positions


def _before(x: Any, y: Any) -> Any:
    """x < y in the order of sorting, where nan is last."""
    if is_complex(dtype_of(x)):
        re = _before(elementwise.real(x), elementwise.real(y))
        same = elementwise.eq(elementwise.real(x), elementwise.real(y))
        im = _before(elementwise.imag(x), elementwise.imag(y))
        return elementwise.bitwise_or(re, elementwise.bitwise_and(same, im))
    result = elementwise.lt(x, y)
    if is_floating(dtype_of(x)):
        last = elementwise.bitwise_and(is_nan(y), elementwise.bitwise_not(is_nan(x)))
        result = elementwise.bitwise_or(result, last)
    return result


# Longer vectors are searched by halving, which is seven steps where this is 64 comparisons and a sum
# of lanes.
MOST_COMPARED = 8


def _counts_before(a: Any, v: Any, side: str) -> Any:
    return _before(a, v) if side == "left" else elementwise.bitwise_not(_before(v, a))


def _search(a: Any, v: Any, dtype: Any, counts: Callable[[Any, Any], Any]) -> Any:
    """How many elements of a, which are the first ones, count for each of v."""
    return (_search_by_comparing if a.shape[0] <= MOST_COMPARED else _search_by_halving)(
        a, v, dtype, counts
    )


def _search_by_comparing(a: Any, v: Any, dtype: Any, counts: Callable[[Any, Any], Any]) -> Any:
    shape = (*v.shape, a.shape[0])
    wide_a = structural.broadcast_in_dim(a, shape, (len(v.shape),))
    wide_v = structural.broadcast_in_dim(v, shape, tuple(range(len(v.shape))))
    return structural.reduce_sum(as_type(counts(wide_a, wide_v), dtype), (len(v.shape),))


def _search_by_halving(a: Any, v: Any, dtype: Any, counts: Callable[[Any, Any], Any]) -> Any:
    """One comparison per bit of the position: place is the number of elements known to be before."""
    size = a.shape[0]
    place = structural.full(v.shape, 0, dtype)
    for bit in range(size.bit_length() - 1, -1, -1):
        trial = elementwise.add(place, dtype.type(1 << bit))
        inside = elementwise.le(trial, dtype.type(size))
        element = take_vector(
            a, elementwise.sub(elementwise.min(trial, dtype.type(size)), dtype.type(1))
        )
        advance = elementwise.bitwise_and(inside, counts(element, v))
        place = select_values(advance, trial, place)
    return place


@public(static=("side", "method"))
def searchsorted(
    a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan"
) -> Any:
    """The indices at which `v` would be inserted into the sorted vector `a`.

    side: "left" or "right" of equal elements.  sorter: indices that sort `a`.  method: accepted as
    in JAX; small vectors are compared as a whole, long ones searched by halving.

    >>> import jato.numpy as jnp
    >>> jnp.searchsorted(jnp.array([1, 3, 5]), jnp.array([3, 4]))
    Array([1, 2], dtype=int32)
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: argument 'side' must be 'left' or 'right', got {side!r}")
    if method not in ("scan", "scan_unrolled", "sort", "compare_all"):
        raise ValueError(f"searchsorted: unknown method {method!r}")
    if sorter is not None:
        a = take_vector(as_array("searchsorted", a), as_array("searchsorted", sorter, "sorter"))
    a, v = promote_dtypes("searchsorted", a, v)
    if len(a.shape) != 1:
        raise ValueError(f"searchsorted: argument 'a' must have rank 1, got shape {a.shape}")
    dtype = index_dtype(a.shape[0])
    if a.shape[0] == 0:
        return structural.full(v.shape, 0, dtype)
    search = _search_by_comparing if method == "compare_all" else _search
    return search(a, v, dtype, lambda x, y: _counts_before(x, y, side))


@public(static=("right", "method"))
def digitize(x: Any, bins: Any, right: bool = False, *, method: str | None = None) -> Any:
    """The index of the bin each element falls into; bins ascend or descend.

    >>> import jato.numpy as jnp
    >>> jnp.digitize(jnp.array([0.5, 2.5]), jnp.array([0.0, 1.0, 2.0]))
    Array([1, 3], dtype=int32)
    """
    x, bins = as_array("digitize", x), as_array("digitize", bins, 1)
    if len(bins.shape) != 1:
        raise ValueError(f"digitize: argument 'bins' must have rank 1, got shape {bins.shape}")
    size = bins.shape[0]
    index = index_dtype(bins.shape[0])
    if size == 0:
        return structural.full(x.shape, 0, index)
    x, bins = promote_dtypes("digitize", x, bins)
    first, last = _element(bins, 0), _element(bins, size - 1)
    ascends = elementwise.le(first, last)
    ascending = select_values(ascends, bins, structural.rev(bins, (0,)))

    side = "left" if right else "right"
    place = _search(ascending, x, index, lambda a, v: _counts_before(a, v, side))
    return select_values(ascends, place, elementwise.sub(index.type(size), place))


def _element(x: Any, i: int) -> Any:
    return structural.reshape(structural.slice(x, (i,), (i + 1,)), ())


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """Linear interpolation at x of the points (xp, fp), xp ascending.

    left, right: values outside of xp (the end values by default, or "extrapolate").  period: xp is
    periodic with this period.

    >>> import jato.numpy as jnp
    >>> jnp.interp(jnp.array([0.5]), jnp.array([0.0, 1.0]), jnp.array([0.0, 10.0]))
    Array([5.], dtype=float32)
    """
    beyond = tuple(isinstance(s, str) for s in (left, right))
    for side in (left, right):
        if isinstance(side, str) and side != "extrapolate":
            raise ValueError(
                f"interp: the only text for 'left' and 'right' is 'extrapolate', got {side!r}"
            )
    left, right = (None if b else s for b, s in zip(beyond, (left, right), strict=True))
    return _interp(x, xp, fp, left, right, period, beyond)


@public(static=("beyond",))
def _interp(x: Any, xp: Any, fp: Any, left: Any, right: Any, period: Any, beyond: Any) -> Any:
    xp, fp = as_array("interp", xp, 1), as_array("interp", fp, 2)
    if xp.shape != fp.shape or len(xp.shape) != 1:
        raise ValueError(
            f"interp: xp and fp must be vectors of one length, got {xp.shape} and {fp.shape}"
        )
    x, xp = promote_dtypes("interp", x, xp, inexact=True)
    fp = promote_dtypes("interp", fp, inexact=True)[0]
    if period is not None:
        x, xp, fp = _unrolled_period(x, xp, fp, cast(as_array("interp", period), dtype_of(x)))
    size = xp.shape[0]
    if size == 1:
        result = broadcast(fp, x.shape) if x.shape else _element(fp, 0)
        low = high = _element(xp, 0)
    else:
        place = searchsorted(xp, x, "right")
        index = np.dtype(dtype_of(place))
        i = elementwise.clamp(index.type(1), place, index.type(size - 1))
        before = elementwise.sub(i, index.type(1))
        x0, x1 = take_vector(xp, before), take_vector(xp, i)
        f0, f1 = take_vector(fp, before), take_vector(fp, i)
        width = elementwise.sub(x1, x0)
        zero = elementwise.eq(width, np.zeros((), dtype_of(width))[()])
        safe = select_values(zero, np.ones((), dtype_of(width))[()], width)
        slope = elementwise.div(elementwise.sub(x, x0), safe)
        slope, rise = promote_dtypes("interp", slope, elementwise.sub(f1, f0))
        step = elementwise.mul(slope, rise)
        f0 = cast(f0, dtype_of(step))
        result = select_values(zero, f0, elementwise.add(f0, step))
        low, high = _element(xp, 0), _element(xp, size - 1)
    if period is None:
        dtype = dtype_of(result)
        if not beyond[0]:
            value = _element(fp, 0) if left is None else as_array("interp", left)
            result = select_values(elementwise.lt(x, low), cast(value, dtype), result)
        if not beyond[1]:
            value = _element(fp, fp.shape[0] - 1) if right is None else as_array("interp", right)
            result = select_values(elementwise.gt(x, high), cast(value, dtype), result)
    return result


def _unrolled_period(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    """Everything modulo the period, sorted, with a point more at both ends."""
    period = elementwise.abs(period)
    x, xp = elementwise.remainder(x, period), elementwise.remainder(xp, period)
    order = sort_ops.sort((xp, structural.iota(np.int32, xp.shape[0])), num_keys=1)[1]
    xp, fp = take_vector(xp, order), take_vector(fp, order)
    n = xp.shape[0]
    last, first = structural.slice(xp, (n - 1,), (n,)), structural.slice(xp, (0,), (1,))
    xp = structural.concatenate(
        [elementwise.sub(last, period), xp, elementwise.add(first, period)], 0
    )
    fp = structural.concatenate(
        [structural.slice(fp, (n - 1,), (n,)), fp, structural.slice(fp, (0,), (1,))], 0
    )
    return x, xp, fp


# ---- index arithmetic


@public(static=("shape",), name="unravel_index")
def _unravel(indices: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    indices = as_array("unravel_index", indices)
    dtype = dtype_of(indices)
    total = math.prod(shape)
    # out of bounds: the nearest element; negative ones count from the end
    negative = elementwise.lt(indices, dtype.type(0))
    indices = select_values(negative, elementwise.add(indices, dtype.type(total)), indices)
    indices = elementwise.clamp(dtype.type(0), indices, dtype.type(max(total - 1, 0)))
    results = []
    for axis in range(len(shape)):
        below = math.prod(shape[axis + 1 :])
        quotient = elementwise.floor_divide(indices, dtype.type(below))
        results.append(elementwise.remainder(quotient, dtype.type(shape[axis])))
    return tuple(results)


def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """Flat indices as one index array per axis of an array of `shape`.

    >>> import jato.numpy as jnp
    >>> jnp.unravel_index(jnp.array([1, 5]), (2, 3))
    (Array([0, 1], dtype=int32), Array([1, 2], dtype=int32))
    """
    return _unravel(indices, normalize_shape("unravel_index", shape))


def ravel_multi_index(
    multi_index: Any, dims: Any, mode: str = "raise", order: str = "C", *, dtype: Any = None
) -> Any:
    """Index arrays, one per axis, as flat indices into an array of shape `dims`.

    mode: "clip" or "wrap"; "raise" for values known when traced.

    >>> import jato.numpy as jnp
    >>> jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([1, 2])), (2, 3), mode="clip")
    Array([1, 5], dtype=int32)
    """
    sizes = normalize_shape("ravel_multi_index", dims, "dims")
    parts = [as_array("ravel_multi_index", p, i) for i, p in enumerate(multi_index)]
    if len(parts) != len(sizes):
        raise ValueError(
            f"ravel_multi_index: {len(parts)} index arrays for {len(sizes)} dimensions"
        )
    if mode == "raise":
        for part, size in zip(parts, sizes, strict=True):
            host = host_values("ravel_multi_index (mode 'raise')", part)
            if host.size and (host.min() < 0 or host.max() >= size):
                raise ValueError("ravel_multi_index: invalid entry in coordinates array")
        mode = "clip"
    target = canonicalize(np.int64 if dtype is None else dtype)
    return _ravel_indices(tuple(parts), sizes, mode, order, target)


@public(static=("sizes", "mode", "order", "dtype"), name="ravel_multi_index")
def _ravel_indices(parts: tuple[Any, ...], sizes: Any, mode: str, order: str, dtype: Any) -> Any:
    strides = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    if order == "F":
        strides = [math.prod(sizes[:i]) for i in range(len(sizes))]
    total: Any = None
    for part, size, stride in zip(parts, sizes, strides, strict=True):
        part = as_type(as_array("ravel_multi_index", part), dtype)
        if mode == "wrap":
            part = elementwise.remainder(part, dtype.type(size))
        else:
            part = elementwise.clamp(dtype.type(0), part, dtype.type(size - 1))
        term = elementwise.mul(part, dtype.type(stride))
        if total is not None:
            shape = common_shape("ravel_multi_index", [total.shape, term.shape])
            term = elementwise.add(broadcast(total, shape), broadcast(term, shape))
        total = term
    return total
