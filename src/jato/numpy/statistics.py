"""Quantiles and covariance.

Quantiles sort along the (flattened) axes and interpolate between two neighbours; a nan makes its
whole row nan, except for the nan- forms, which leave it out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jato.base.dtypes import canonicalize, is_complex, is_integer
from jato.jit.eager import public
from jato.numpy import contractions
from jato.numpy.makers import is_nan, select_where
from jato.numpy.manipulation import moveaxis
from jato.numpy.promote import (
    as_array,
    broadcast,
    dtype_of,
    normalize_axes,
    promote_dtypes,
    require_no_out,
)
from jato.numpy.reductions import as_type, average
from jato.numpy.reductions import sum as asum
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
    *rest, size = rows.shape
    left = [1 if i in axes else s for i, s in enumerate(a.shape)] if keepdims else rest
    shape = (*q.shape, *left)
    if 0 in rest:  # no rows, whatever is in them
        return structural.full(shape, 0, dtype)
    if size == 0:
        raise ValueError(f"{function}: no elements along axis {axis} of shape {a.shape}")
    missing = is_nan(rows)
    rows = sort_ops.sort(rows, dimension=len(rows.shape) - 1)
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
    return structural.reshape(as_type(result, dtype), shape)


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


STATIC = ("axis", "method", "keepdims", "overwrite_input", "out_sharding")


def _check_options(function: str, out: Any, overwrite_input: bool, weights: Any) -> None:
    require_no_out(function, out)
    if overwrite_input:
        raise ValueError(f"{function}: arrays are immutable, overwrite_input=True is not supported")
    if weights is not None:
        raise NotImplementedError(f"{function}: argument 'weights' is not supported")


@public(static=STATIC)
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


@public(static=STATIC)
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


@public(static=STATIC)
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


@public(static=STATIC)
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


@public(static=STATIC)
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


@public(static=STATIC)
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
