"""Counting: bincount, histogram in one and more dimensions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jato.base.dtypes import canonicalize, is_inexact, is_integer
from jato.base.errors import ConcretizationTypeError, require_unsharded
from jato.core.array import concrete, require_integer
from jato.jit.eager import public
from jato.numpy.creation import asarray
from jato.numpy.locating import searchsorted
from jato.numpy.makers import select_where
from jato.numpy.promote import as_array, cast, dtype_of, float_of, promote_dtypes
from jato.numpy.ranges import linspace
from jato.numpy.reductions import as_type
from jato.numpy.reductions import max as amax
from jato.numpy.reductions import min as amin
from jato.numpy.reductions import sum as asum
from jato.ops import elementwise, indexing, structural


@public(static=("length",))
def _bincount(x: Any, weights: Any, length: int) -> Any:
    x = as_array("bincount", x)
    count = x.shape[0]
    x = elementwise.max(x, dtype_of(x).type(0)) if dtype_of(x).kind == "i" else x
    if weights is None:
        values: Any = structural.full((count,), 1, canonicalize(np.int64))
    else:
        values = as_array("bincount", weights)
        if values.shape != x.shape:
            raise ValueError(f"bincount: shapes of x and weights differ: {x.shape}, {values.shape}")
        values = as_type(values, dtype_of(values))
    zeros = structural.full((length,), 0, dtype_of(values))
    if count == 0 or length == 0:
        return zeros
    numbers = indexing.ScatterDimensionNumbers((), (0,), (0,))
    return indexing.scatter_add(
        zeros, structural.reshape(x, (count, 1)), values, numbers, mode="drop"
    )


def bincount(
    x: Any,
    weights: Any = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: Any = None,
) -> Any:
    """How often each value 0, 1, 2, ... occurs in a vector of integers; negative ones count as 0.

    weights: what each occurrence counts.  length: the size of the result, needed in a traced
    function; larger values are left out.

    >>> import jato.numpy as jnp
    >>> jnp.bincount(jnp.array([0, 2, 2]))
    Array([1, 0, 2], dtype=int32)
    """
    require_unsharded("bincount", out_sharding)
    x = as_array("bincount", x)
    if not is_integer(dtype_of(x)) and dtype_of(x) != np.bool_:
        raise TypeError(f"bincount: argument 'x' must be integers, got dtype {dtype_of(x)}")
    if len(x.shape) != 1:
        raise ValueError(f"bincount: argument 'x' must have rank 1, got shape {x.shape}")
    minlength = require_integer(minlength, "bincount", "minlength")
    if length is None:
        known = concrete(x)
        if known is None:
            raise ConcretizationTypeError(
                "bincount: the size of the result depends on a traced value. Give the argument "
                f"'length'. {x.origin()}"
            )
        host = np.asarray(known)
        length = max(minlength, int(host.max()) + 1 if host.size else 0)
    return _bincount(x, weights, max(int(length), minlength))


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """The edges of the bins that `histogram` uses.

    >>> import jato.numpy as jnp
    >>> jnp.histogram_bin_edges(jnp.array([0.0, 4.0]), 2)
    Array([0., 2., 4.], dtype=float32)
    """
    if isinstance(bins, str):
        raise NotImplementedError("histogram_bin_edges: give a number of bins or their edges")
    a = as_array("histogram_bin_edges", a)
    if isinstance(bins, (list, tuple)):
        bins = asarray(bins)
    if hasattr(bins, "shape") and len(bins.shape) == 1:
        return asarray(bins)
    count = require_integer(bins, "histogram_bin_edges", "bins")
    if count < 1:
        raise ValueError(f"histogram: argument 'bins' must be positive, got {count}")
    dtype = float_of(dtype_of(a))
    low, high = _bounds(a, None if range is None else tuple(range), dtype)
    return linspace(low, high, count + 1, dtype=dtype)


@public(static=("dtype",))
def _bounds(a: Any, bounds: Any, dtype: Any) -> tuple[Any, Any]:
    if bounds is not None:
        low, high = (as_type(as_array("histogram", b), dtype) for b in bounds)
    elif math.prod(a.shape) == 0:
        low, high = (structural.full((), v, dtype) for v in (0, 1))
    else:
        low, high = as_type(amin(a), dtype), as_type(amax(a), dtype)
    same = elementwise.eq(low, high)
    half = np.asarray(0.5, dtype)[()]
    return (
        select_where(same, elementwise.sub(low, half), low),
        select_where(same, elementwise.add(high, half), high),
    )


@public(static=("density",))
def _histogram(a: Any, edges: Any, weights: Any, density: bool) -> Any:
    a, edges = promote_dtypes("histogram", a, edges, inexact=True)
    a = structural.reshape(a, (math.prod(a.shape),))
    dtype = dtype_of(a)
    if weights is None:
        weights = structural.full(a.shape, 1, dtype)
    else:
        weights = as_array("histogram", weights)
        weights = structural.reshape(
            as_type(weights, dtype_of(weights)), (math.prod(weights.shape),)
        )
        if weights.shape != a.shape:
            raise ValueError(
                f"histogram: shapes of a and weights differ: {a.shape}, {weights.shape}"
            )
    counts = _count_in_bins((a,), (edges,), weights)
    if not density:
        return counts
    counts = as_type(counts, dtype) if not is_inexact(dtype_of(counts)) else counts
    widths = elementwise.sub(*_neighbours(edges))
    return elementwise.div(elementwise.div(counts, cast(widths, dtype_of(counts))), asum(counts))


def _neighbours(edges: Any) -> tuple[Any, Any]:
    n = edges.shape[0]
    return structural.slice(edges, (1,), (n,)), structural.slice(edges, (0,), (n - 1,))


def _count_in_bins(columns: tuple[Any, ...], edges: tuple[Any, ...], weights: Any) -> Any:
    """Weights added up per cell of the grid; the last bin of each axis is closed."""
    flat: Any = None
    inside: Any = None
    for x, edge in zip(columns, edges, strict=True):
        bins = edge.shape[0] - 1
        last = structural.reshape(structural.slice(edge, (bins,), (bins + 1,)), ())
        place = as_type(searchsorted(edge, x, "right"), np.int32)
        place = select_where(elementwise.eq(x, last), np.int32(bins), place)
        valid = elementwise.bitwise_and(
            elementwise.ge(place, np.int32(1)), elementwise.le(place, np.int32(bins))
        )
        place = elementwise.sub(place, np.int32(1))
        flat = (
            place if flat is None else elementwise.add(elementwise.mul(flat, np.int32(bins)), place)
        )
        inside = valid if inside is None else elementwise.bitwise_and(inside, valid)
    shape = tuple(e.shape[0] - 1 for e in edges)
    total = math.prod(shape)
    flat = select_where(inside, flat, np.int32(total))
    zeros = structural.full((total,), 0, dtype_of(weights))
    if flat.shape[0] == 0 or total == 0:
        return structural.reshape(zeros, shape)
    numbers = indexing.ScatterDimensionNumbers((), (0,), (0,))
    counts = indexing.scatter_add(
        zeros, structural.reshape(flat, (*flat.shape, 1)), weights, numbers, mode="drop"
    )
    return structural.reshape(counts, shape)


def histogram(
    a: Any,
    bins: Any = 10,
    range: Any = None,
    weights: Any = None,
    density: bool | None = None,
    out_sharding: Any = None,
) -> tuple[Any, Any]:
    """(how many elements fall into each bin, the edges of the bins).

    bins: a number of equal bins over `range` (by default that of the data), or their edges.
    density: normalize to an integral of 1.

    >>> import jato.numpy as jnp
    >>> jnp.histogram(jnp.array([0.0, 1.0, 4.0]), 2)[0]
    Array([2., 1.], dtype=float32)
    """
    require_unsharded("histogram", out_sharding)
    a = as_array("histogram", a)
    edges = histogram_bin_edges(a, bins, range, weights)
    return _histogram(a, edges, weights, bool(density)), edges


@public(static=("density",), name="histogramdd")
def _histogram_grid(
    columns: tuple[Any, ...], edges: tuple[Any, ...], weights: Any, density: bool
) -> Any:
    dtype = promote_dtypes("histogramdd", *columns, *edges, inexact=True)
    columns, edges = tuple(dtype[: len(columns)]), tuple(dtype[len(columns) :])
    work = dtype_of(columns[0])
    if weights is None:
        count = work if density else canonicalize(np.int64)
        weights = structural.full(columns[0].shape, 1, count)
    else:
        weights = as_type(as_array("histogramdd", weights), dtype_of(weights))
    counts = _count_in_bins(columns, edges, weights)
    if density:
        counts = elementwise.div(counts, asum(counts))
        for axis, edge in enumerate(edges):
            widths = elementwise.sub(*_neighbours(edge))
            counts = elementwise.div(
                counts, structural.broadcast_in_dim(widths, counts.shape, (axis,))
            )
    return counts


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Any, list[Any]]:
    """(counts on a grid, the edges along each axis) of points, one per row of `sample`.

    >>> import jato.numpy as jnp
    >>> jnp.histogramdd(jnp.array([[0.0, 0.0], [1.0, 1.0]]), 2)[0]
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    if isinstance(sample, (list, tuple)):
        columns = tuple(asarray(c) for c in sample)
    else:
        sample = as_array("histogramdd", sample)
        if len(sample.shape) != 2:
            raise ValueError(
                f"histogramdd: argument 'sample' must have rank 2, got shape {sample.shape}"
            )
        columns = tuple(_column(sample, i) for i in _count_range(sample.shape[1]))
    rank = len(columns)
    per_axis = list(bins) if isinstance(bins, (list, tuple)) else [bins] * rank
    if len(per_axis) != rank:
        raise ValueError(f"histogramdd: {len(per_axis)} entries in 'bins' for {rank} axes")
    ranges = [None] * rank if range is None else list(range)
    if len(ranges) != rank:
        raise ValueError(f"histogramdd: {len(ranges)} entries in 'range' for {rank} axes")
    edges = [
        histogram_bin_edges(c, b, r) for c, b, r in zip(columns, per_axis, ranges, strict=True)
    ]
    return _histogram_grid(columns, tuple(edges), weights, bool(density)), edges


_count_range = range


@public(static=("i",))
def _column(x: Any, i: int) -> Any:
    return structural.reshape(structural.slice(x, (0, i), (x.shape[0], i + 1)), (x.shape[0],))


def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Any = None,
    weights: Any = None,
    density: bool | None = None,
) -> tuple[Any, Any, Any]:
    """(counts on a grid, edges along x, edges along y) of points (x, y).

    >>> import jato.numpy as jnp
    >>> jnp.histogram2d(jnp.array([0.0, 1.0]), jnp.array([0.0, 1.0]), 2)[0]
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    if not isinstance(bins, (list, tuple)) and getattr(bins, "ndim", 0) == 1:
        bins = (bins, bins)
    elif isinstance(bins, (list, tuple)) and len(bins) not in (1, 2):
        bins = (asarray(bins), asarray(bins))
    counts, edges = histogramdd((x, y), bins, range, weights, density)
    return counts, edges[0], edges[1]
