"""Quantiles, covariance, histograms.

Quantiles sort along the (flattened) axes and interpolate between two neighbours; a nan makes its
whole row nan, except for the nan- forms, which leave it out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jato.base.dtypes import canonicalize, is_complex, is_inexact, is_integer
from jato.base.errors import ConcretizationTypeError
from jato.core.array import concrete, require_integer
from jato.jit.eager import public
from jato.numpy import contractions
from jato.numpy.creation import asarray, linspace
from jato.numpy.elementwise import is_nan, select_where
from jato.numpy.manipulation import moveaxis
from jato.numpy.promote import (
    as_array,
    broadcast,
    cast,
    dtype_of,
    normalize_axes,
    promote_dtypes,
    require_no_out,
)
from jato.numpy.reductions import as_type, average
from jato.numpy.reductions import max as amax
from jato.numpy.reductions import min as amin
from jato.numpy.reductions import sum as asum
from jato.numpy.searching import searchsorted
from jato.ops import elementwise, indexing, structural
from jato.ops import sort as sort_ops

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def _rows(a: Any, axes: tuple[int, ...]) -> Any:
    """The given axes moved to the end and flattened into one."""
    kept = [i for i in range(len(a.shape)) if i not in axes]
    size = math.prod(a.shape[i] for i in axes)
    a = structural.transpose(a, (*kept, *axes))
    return structural.reshape(a, (*a.shape[: len(kept)], size))


def _pick(rows: Any, index: Any) -> Any:
    """rows[..., index[q, ...]] -> [q, ...]: one element of each row per q."""
    rank = len(rows.shape) - 1
    numbers = indexing.GatherDimensionNumbers(
        (), (rank,), (rank,), tuple(range(rank)), tuple(range(rank))
    )
    index = moveaxis(index, 0, -1)
    starts = structural.reshape(index, (*index.shape, 1))
    return moveaxis(indexing.gather(rows, starts, numbers, (1,) * (rank + 1), mode="clip"), -1, 0)


def _quantile(
    function: str, a: Any, q: Any, axis: Any, method: str, keepdims: bool, ignore_nan: bool
) -> Any:
    if method not in _METHODS:
        raise ValueError(f"{function}: argument 'method' must be one of {_METHODS}, got {method!r}")
    a = promote_dtypes(function, a, inexact=True)[0]
    if is_complex(dtype_of(a)):
        raise ValueError(f"{function}: complex numbers have no order")
    dtype = dtype_of(a)
    a = as_type(a, dtype)
    work = np.dtype(np.float32) if dtype.itemsize == 2 else dtype
    q = as_type(as_array(function, q, 1), work)
    if len(q.shape) > 1:
        raise ValueError(f"{function}: argument 'q' must have rank 0 or 1, got shape {q.shape}")
    axes = normalize_axes(function, axis, len(a.shape))
    rows = _rows(a, axes)
    size = rows.shape[-1]
    if size == 0:
        raise ValueError(f"{function}: no elements along axis {axis} of shape {a.shape}")
    missing = is_nan(rows)
    rows = sort_ops.sort(rows, dimension=len(rows.shape) - 1)
    rest = rows.shape[:-1]
    count = q.shape[0] if q.shape else 1
    full_shape = (count, *rest)
    place = structural.broadcast_in_dim(structural.reshape(q, (count,)), full_shape, (0,))
    number = lambda v: np.asarray(v, work)[()]  # noqa: E731
    last: Any = number(size - 1)
    if ignore_nan:
        present = structural.reduce_sum(
            as_type(elementwise.bitwise_not(missing), work), (len(rest),)
        )
        last = broadcast(elementwise.sub(present, number(1)), full_shape)
    place = elementwise.mul(place, last)
    low = elementwise.floor(place)
    high = elementwise.ceil(place)
    weight = elementwise.sub(place, low)
    floor_index, ceil_index = (
        as_type(elementwise.max(i, number(0)), np.int32) for i in (low, high)
    )
    below, above = (as_type(_pick(rows, i), work) for i in (floor_index, ceil_index))
    result = _between(below, above, weight, method, number)
    if ignore_nan:
        result = select_where(elementwise.lt(last, number(0)), number(math.nan), result)
    else:
        bad = as_type(structural.reduce_sum(as_type(missing, work), (len(rest),)), work)
        result = select_where(
            broadcast(elementwise.gt(bad, number(0)), full_shape), number(math.nan), result
        )
    result = as_type(result, dtype)
    if keepdims:
        shape = tuple(1 if i in axes else s for i, s in enumerate(a.shape))
        result = structural.reshape(result, (count, *shape))
    return result if q.shape else structural.reshape(result, result.shape[1:])


def _between(below: Any, above: Any, weight: Any, method: str, number: Any) -> Any:
    if method == "lower":
        return below
    if method == "higher":
        return above
    if method == "midpoint":
        middle = elementwise.mul(elementwise.add(below, above), number(0.5))
        return select_where(elementwise.eq(weight, number(0)), below, middle)
    if method == "nearest":
        # halves go to the even position, as rounding does: position parity is not known here,
        # so that the lower one is taken, which is what JAX does
        return select_where(elementwise.le(weight, number(0.5)), below, above)
    rise = elementwise.mul(elementwise.sub(above, below), weight)
    return select_where(elementwise.eq(below, above), below, elementwise.add(below, rise))


_STATIC = ("axis", "method", "keepdims", "overwrite_input", "out_sharding")


def _check_options(function: str, out: Any, overwrite_input: bool, weights: Any) -> None:
    require_no_out(function, out)
    if overwrite_input:
        raise ValueError(f"{function}: arrays are immutable, overwrite_input=True is not supported")
    if weights is not None:
        raise NotImplementedError(f"{function}: argument 'weights' is not supported")


@public(static=_STATIC)
def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """The q-th quantiles (q in [0, 1]) along axes.

    method: "linear", "lower", "higher", "midpoint" or "nearest".  An array q makes a new first
    axis.

    >>> import jato.numpy as jnp
    >>> jnp.quantile(jnp.array([0.0, 1.0, 2.0, 3.0]), 0.5)
    Array(1.5, dtype=float32)
    """
    _check_options("quantile", out, overwrite_input, weights)
    return _quantile("quantile", a, q, axis, method, keepdims, False)


@public(static=_STATIC)
def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """`quantile` of the elements that are not nan.

    >>> import jato.numpy as jnp
    >>> jnp.nanquantile(jnp.array([0.0, jnp.nan, 2.0]), 0.5)
    Array(1., dtype=float32)
    """
    _check_options("nanquantile", out, overwrite_input, weights)
    return _quantile("nanquantile", a, q, axis, method, keepdims, True)


def _from_percent(q: Any) -> Any:
    q = promote_dtypes("percentile", q, inexact=True)[0]
    return elementwise.div(q, np.asarray(100, dtype_of(q))[()])


@public(static=_STATIC)
def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
    out_sharding: Any = None,
) -> Any:
    """The q-th percentiles (q in [0, 100]) along axes; see `quantile`.

    >>> import jato.numpy as jnp
    >>> jnp.percentile(jnp.array([0.0, 1.0, 2.0]), 50)
    Array(1., dtype=float32)
    """
    _check_options("percentile", out, overwrite_input, weights)
    return _quantile("percentile", a, _from_percent(q), axis, method, keepdims, False)


@public(static=_STATIC)
def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """`percentile` of the elements that are not nan.

    >>> import jato.numpy as jnp
    >>> jnp.nanpercentile(jnp.array([0.0, jnp.nan, 2.0]), 50)
    Array(1., dtype=float32)
    """
    _check_options("nanpercentile", out, overwrite_input, weights)
    return _quantile("nanpercentile", a, _from_percent(q), axis, method, keepdims, True)


@public(static=_STATIC)
def median(
    a: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Any:
    """The median along axes.

    >>> import jato.numpy as jnp
    >>> jnp.median(jnp.array([3.0, 1.0, 2.0, 10.0]))
    Array(2.5, dtype=float32)
    """
    _check_options("median", out, overwrite_input, None)
    return _quantile("median", a, 0.5, axis, "midpoint", keepdims, False)


@public(static=_STATIC)
def nanmedian(
    a: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Any:
    """The median along axes of the elements that are not nan.

    >>> import jato.numpy as jnp
    >>> jnp.nanmedian(jnp.array([3.0, jnp.nan, 2.0]))
    Array(2.5, dtype=float32)
    """
    _check_options("nanmedian", out, overwrite_input, None)
    return _quantile("nanmedian", a, 0.5, axis, "midpoint", keepdims, True)


# ---- covariance


@public(static=("rowvar", "bias", "ddof", "dtype"))
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    dtype: Any = None,
) -> Any:
    """The covariance matrix of variables in rows (columns unless `rowvar`).

    y: further variables.  bias: divide by the count; else by the count less 1 (or `ddof`).
    fweights, aweights: repetitions and importance of the observations.

    >>> import jato.numpy as jnp
    >>> jnp.cov(jnp.array([[1.0, 2.0], [2.0, 4.0]]))
    Array([[0.5, 1. ],
           [1. , 2. ]], dtype=float32)
    """
    matrix = _observations("cov", m, rowvar)
    if y is not None:
        matrix, other = promote_dtypes("cov", matrix, _observations("cov", y, rowvar), inexact=True)
        matrix = structural.concatenate([matrix, other], 0)
    matrix = promote_dtypes("cov", matrix, inexact=True)[0]
    if dtype is not None:
        matrix = as_type(matrix, canonicalize(dtype))
    work = dtype_of(matrix)
    ddof = ddof if ddof is not None else (0 if bias else 1)
    count = matrix.shape[1]
    weights = _weights(fweights, aweights, count, work)
    mean, total = average(matrix, 1, weights, True)
    if weights is None:
        norm: Any = np.asarray(max(count - ddof, 0), work)[()]
    else:
        sum_of_weights = structural.reshape(structural.slice(total, (0,), (1,)), ())
        if ddof == 0:
            norm = sum_of_weights
        elif aweights is None:
            norm = elementwise.sub(sum_of_weights, np.asarray(ddof, work)[()])
        else:
            squares = asum(elementwise.mul(weights, as_type(as_array("cov", aweights), work)))
            norm = elementwise.sub(
                sum_of_weights,
                elementwise.mul(
                    np.asarray(ddof, work)[()], elementwise.div(squares, sum_of_weights)
                ),
            )
    centered = elementwise.sub(matrix, structural.broadcast_in_dim(mean, matrix.shape, (0,)))
    right = centered
    if weights is not None:
        right = elementwise.mul(centered, structural.broadcast_in_dim(weights, matrix.shape, (1,)))
    if is_complex(work):
        right = elementwise.conj(right)
    product = contractions.matmul(centered, structural.transpose(right, (1, 0)))
    product = elementwise.div(product, norm)
    return structural.reshape(product, ()) if product.shape == (1, 1) else product


def _observations(function: str, x: Any, rowvar: bool) -> Any:
    x = as_array(function, x)
    if len(x.shape) > 2:
        raise ValueError(f"{function}: arguments must have rank 2 at most, got shape {x.shape}")
    if len(x.shape) < 2:
        return structural.reshape(x, (1, math.prod(x.shape)))
    return x if rowvar or x.shape[0] == 1 else structural.transpose(x, (1, 0))


def _weights(fweights: Any, aweights: Any, count: int, dtype: Any) -> Any:
    result: Any = None
    for name, w in (("fweights", fweights), ("aweights", aweights)):
        if w is None:
            continue
        w = as_array("cov", w, name)
        if w.shape != (count,):
            raise ValueError(f"cov: argument '{name}' must have shape ({count},), got {w.shape}")
        if name == "fweights" and not is_integer(dtype_of(w)):
            raise TypeError("cov: argument 'fweights' must be integers")
        w = as_type(w, dtype)
        result = w if result is None else elementwise.mul(result, w)
    return result


@public(static=("rowvar", "dtype"))
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, dtype: Any = None) -> Any:
    """The correlation coefficients of variables in rows (columns unless `rowvar`).

    >>> import jato.numpy as jnp
    >>> jnp.corrcoef(jnp.array([[1.0, 2.0], [2.0, 1.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.shape:
        return elementwise.div(c, c)
    n = c.shape[0]
    flat = structural.reshape(c, (n * n,))
    variances = structural.slice(flat, (0,), (n * n,), (n + 1,))
    variances = elementwise.real(variances) if is_complex(dtype_of(c)) else variances
    deviation = elementwise.sqrt(variances)
    scale = elementwise.mul(
        structural.broadcast_in_dim(deviation, (n, n), (0,)),
        structural.broadcast_in_dim(deviation, (n, n), (1,)),
    )
    if is_complex(dtype_of(c)):
        parts = (
            elementwise.div(part, scale) for part in (elementwise.real(c), elementwise.imag(c))
        )
        one = np.asarray(1, dtype_of(scale))[()]
        re, im = (elementwise.clamp(-one, p, one) for p in parts)
        return elementwise.complex(re, im)
    one = np.asarray(1, dtype_of(c))[()]
    return elementwise.clamp(-one, elementwise.div(c, scale), one)


# ---- counting


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
    dtype = dtype_of(a) if is_inexact(dtype_of(a)) else canonicalize(np.float64)
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
    a = as_array("histogram", a)
    edges = histogram_bin_edges(a, bins, range, weights)
    return _histogram(a, edges, weights, bool(density)), edges


@public(static=("density",))
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
