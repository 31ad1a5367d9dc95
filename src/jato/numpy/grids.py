"""Grids, triangles and diagonals: meshgrid, indices, mgrid, tri, tril, diag, trace, vander."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np
from jato.base.dtypes import canonicalize, is_inexact
from jato.core.array import require_integer
from jato.jit.eager import public
from jato.numpy.creation import asarray, default_float
from jato.numpy.makers import select_where
from jato.numpy.manipulation import moveaxis, stack
from jato.numpy.promote import (
    as_array,
    broadcast,
    cast,
    dtype_of,
    join_types,
    normalize_axis,
    normalize_shape,
    require_no_out,
)
from jato.numpy.ranges import arange, linspace
from jato.numpy.reductions import as_type
from jato.ops import elementwise, structural

# ---- grids


@public(static=("sparse", "indexing"))
def _meshgrid(xi: tuple[Any, ...], sparse: bool, indexing: str) -> list[Any]:
    arrays = [as_array("meshgrid", x, i) for i, x in enumerate(xi)]
    arrays = [structural.reshape(x, (math.prod(x.shape),)) for x in arrays]
    rank = len(arrays)
    order = list(range(rank))
    if indexing == "xy" and rank >= 2:
        order[0], order[1] = 1, 0
    shape = [1] * rank
    for x, axis in zip(arrays, order, strict=True):
        shape[axis] = x.shape[0]
    results = []
    for x, axis in zip(arrays, order, strict=True):
        target = [1] * rank if sparse else shape
        if sparse:
            target[axis] = x.shape[0]
        results.append(structural.broadcast_in_dim(x, tuple(target), (axis,)))
    return results


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Any]:
    """Coordinate arrays of a grid from coordinates along its axes.

    indexing: "xy" (the first argument varies along the second axis) or "ij".  sparse: leave the
    arrays to be broadcast.

    >>> import jato.numpy as jnp
    >>> jnp.meshgrid(jnp.array([1, 2]), jnp.array([3]))
    [Array([[1, 2]], dtype=int32), Array([[3, 3]], dtype=int32)]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: argument 'indexing' must be 'xy' or 'ij', got {indexing!r}")
    if not copy:
        raise ValueError("meshgrid: copy=False is not supported")
    return list(_meshgrid(tuple(xi), sparse, indexing))


@public(static=("dimensions", "dtype", "sparse"))
def _indices(dimensions: tuple[int, ...], dtype: Any, sparse: bool) -> Any:
    rank = len(dimensions)
    grids = []
    for i in range(rank):
        shape = tuple(s if k == i or not sparse else 1 for k, s in enumerate(dimensions))
        grids.append(structural.broadcasted_iota(dtype, shape, i))
    if sparse:
        return tuple(grids)
    return stack(grids) if grids else structural.full((0,), 0, dtype)


def indices(dimensions: Any, dtype: Any = None, sparse: bool = False) -> Any:
    """The index arrays of a grid, stacked; a tuple of arrays to be broadcast if `sparse`.

    >>> import jato.numpy as jnp
    >>> jnp.indices((2, 2))[0]
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    dtype = canonicalize(np.int64 if dtype is None else dtype)
    return _indices(normalize_shape("indices", dimensions, "dimensions"), dtype, sparse)


def fromfunction(function: Any, shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    """`function` of the index arrays of a grid.

    >>> import jato.numpy as jnp
    >>> jnp.fromfunction(lambda i, j: i + j, (2, 2), dtype=int)
    Array([[0, 1],
           [1, 2]], dtype=int32)
    """
    shape = normalize_shape("fromfunction", shape)
    return function(*indices(shape, dtype=dtype), **kwargs)


# ---- triangles and diagonals


@public(static=("N", "M", "k", "dtype"))
def _tri(N: int, M: int, k: int, dtype: Any) -> Any:
    return as_type(_below_diagonal(N, M, k), dtype)


def _below_diagonal(rows: int, columns: int, k: int) -> Any:
    row = structural.broadcasted_iota(np.int32, (rows, columns), 0)
    column = structural.broadcasted_iota(np.int32, (rows, columns), 1)
    return elementwise.ge(elementwise.add(row, np.int32(k)), column)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Any:
    """A matrix with ones on and below the k-th diagonal.

    >>> import jato.numpy as jnp
    >>> jnp.tri(2)
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    dtype = np.float32 if dtype is None else dtype  # with 64 bits too, as in JAX
    rows = require_integer(N, "tri", "N")
    columns = rows if M is None else require_integer(M, "tri", "M")
    if rows < 0 or columns < 0:
        raise ValueError(f"tri: sizes must not be negative, got {rows} and {columns}")
    return _tri(rows, columns, require_integer(k, "tri", "k"), default_float(dtype))


def _triangle(function: str, m: Any, k: int, lower: bool) -> Any:
    m = as_array(function, m)
    if len(m.shape) < 1:
        raise ValueError(f"{function}: argument 'm' must have rank 1 or more")
    if len(m.shape) == 1:
        m = broadcast(m, (m.shape[0], m.shape[0]))
    below = _below_diagonal(*m.shape[-2:], k if lower else k - 1)
    below = broadcast(below, m.shape)
    zeros = structural.full(m.shape, 0, dtype_of(m))
    return elementwise.select_n(below, zeros, m) if lower else elementwise.select_n(below, m, zeros)


@public(static=("k",))
def tril(m: Any, k: int = 0) -> Any:
    """The matrix with zeros above the k-th diagonal.

    >>> import jato.numpy as jnp
    >>> jnp.tril(jnp.ones((2, 2)))
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    return _triangle("tril", m, k, True)


@public(static=("k",))
def triu(m: Any, k: int = 0) -> Any:
    """The matrix with zeros below the k-th diagonal.

    >>> import jato.numpy as jnp
    >>> jnp.triu(jnp.ones((2, 2)))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    return _triangle("triu", m, k, False)


@public(static=("offset", "axis1", "axis2"))
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonals of the planes of two axes, along the last axis of the result.

    >>> import jato.numpy as jnp
    >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    a = as_array("diagonal", a)
    if len(a.shape) < 2:
        raise ValueError(f"diagonal: argument 'a' must have rank 2 or more, got shape {a.shape}")
    a = moveaxis(a, (axis1, axis2), (-2, -1))
    *batch, rows, columns = a.shape
    size = builtins.max(
        0, builtins.min(rows + builtins.min(offset, 0), columns - builtins.max(offset, 0))
    )
    if size == 0:
        return structural.full((*batch, 0), 0, dtype_of(a))
    begin = offset if offset >= 0 else -offset * columns
    flat = structural.reshape(a, (*batch, rows * columns))
    stop = begin + (size - 1) * (columns + 1) + 1
    last = len(batch)
    starts, limits = [0] * last + [begin], [*batch, stop]
    return structural.slice(flat, starts, limits, [1] * last + [columns + 1])


@public(static=("k",))
def diag(v: Any, k: int = 0) -> Any:
    """A matrix with `v` on its k-th diagonal, or the k-th diagonal of a matrix.

    >>> import jato.numpy as jnp
    >>> jnp.diag(jnp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    v = as_array("diag", v)
    if len(v.shape) == 2:
        return diagonal(v, k)
    if len(v.shape) != 1:
        raise ValueError(f"diag: argument 'v' must have rank 1 or 2, got shape {v.shape}")
    size = v.shape[0] + builtins.abs(k)
    padded = structural.pad(
        v, np.zeros((), dtype_of(v))[()], [(builtins.max(k, 0), builtins.max(-k, 0), 0)]
    )
    row = structural.broadcasted_iota(np.int32, (size, size), 0)
    column = structural.broadcasted_iota(np.int32, (size, size), 1)
    on = elementwise.eq(elementwise.add(row, np.int32(k)), column)
    values = structural.broadcast_in_dim(padded, (size, size), (1,))
    return select_where(on, values, np.zeros((), dtype_of(v))[()])


@public(static=("k",))
def diagflat(v: Any, k: int = 0) -> Any:
    """A matrix with the elements of `v` on its k-th diagonal.

    >>> import jato.numpy as jnp
    >>> jnp.diagflat(jnp.array([[1, 2]]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    v = as_array("diagflat", v)
    return diag(structural.reshape(v, (math.prod(v.shape),)), k)


@public(static=("offset", "axis1", "axis2", "dtype"))
def trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None
) -> Any:
    """The sum along the diagonals of the planes of two axes.

    >>> import jato.numpy as jnp
    >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    require_no_out("trace", out)
    values = diagonal(a, offset, axis1, axis2)
    if dtype is None and not is_inexact(dtype_of(values)):
        dtype = canonicalize(np.uint64 if dtype_of(values).kind == "u" else np.int64)
    if dtype is not None:
        values = as_type(values, canonicalize(dtype))
    return structural.reduce_sum(values, (len(values.shape) - 1,))


@public(static=("N", "increasing"))
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """The Vandermonde matrix: powers of x as columns, the highest first.

    >>> import jato.numpy as jnp
    >>> jnp.vander(jnp.array([2, 3]), 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    x = as_array("vander", x)
    if len(x.shape) != 1:
        raise ValueError(f"vander: argument 'x' must have rank 1, got shape {x.shape}")
    count = x.shape[0] if N is None else N
    if count < 0:
        raise ValueError(f"vander: argument 'N' must not be negative, got {count}")
    powers: list[Any] = []
    for i in range(count):
        powers.append(
            structural.full(x.shape, 1, dtype_of(x)) if i == 0 else elementwise.mul(powers[-1], x)
        )
    if not powers:
        return structural.full((x.shape[0], 0), 0, dtype_of(x))
    return stack(powers if increasing else powers[::-1], 1)


# ---- windows


class _Grid:
    """`mgrid[0:2, 0:3]` and `ogrid`: index grids by slices; an imaginary step is a count."""

    def __init__(self, name: str, sparse: bool):
        self._name = name
        self._sparse = sparse

    def __repr__(self) -> str:
        return f"jato.numpy.{self._name}"

    def __getitem__(self, key: Any) -> Any:
        single = isinstance(key, slice)
        axes = [_axis_range(self._name, k) for k in ((key,) if single else key)]
        if single:
            return axes[0]
        dtype = join_types(*axes)[0]
        grids = meshgrid(*(cast(x, dtype) for x in axes), indexing="ij", sparse=self._sparse)
        return grids if self._sparse else stack(grids)


def _axis_range(name: str, key: Any) -> Any:
    if not isinstance(key, slice) or key.stop is None:
        raise TypeError(f"{name}: expected slices such as 0:3, got {key!r}")
    start = 0 if key.start is None else key.start
    step = 1 if key.step is None else key.step
    if isinstance(step, complex):
        return linspace(start, key.stop, int(builtins.abs(step)))
    return arange(start, key.stop, step)


mgrid = _Grid("mgrid", False)


ogrid = _Grid("ogrid", True)


class _Concatenator:
    """`r_[1:3, 5]` and `c_[x, y]`: arrays joined by indexing."""

    def __init__(self, name: str, column: bool):
        self._name = name
        self._column = column

    def __repr__(self) -> str:
        return f"jato.numpy.{self._name}"

    def __getitem__(self, key: Any) -> Any:
        axis, rank, column_at = (-1, 2, 0) if self._column else (0, 1, -1)
        items = list(key) if isinstance(key, tuple) else [key]
        if items and isinstance(items[0], str):
            axis, rank, column_at = self._directive(items.pop(0), axis, rank, column_at)
        parts = [self._part(item, rank, column_at) for item in items]
        dtype, weak = join_types(*parts)
        parts = [cast(p, dtype, weak) for p in parts]
        axis = normalize_axis(self._name, axis, parts[0].ndim)
        return structural.concatenate(parts, axis)

    def _directive(self, text: str, axis: int, rank: int, column_at: int) -> tuple[int, int, int]:
        if text in ("r", "c"):
            raise NotImplementedError(f"{self._name}: the directives 'r' and 'c' make matrices")
        try:
            numbers = [int(n) for n in text.split(",")]
        except ValueError:
            raise ValueError(f"{self._name}: unknown directive {text!r}") from None
        return tuple(
            [*numbers, axis, rank, column_at][i] if i < len(numbers) else (axis, rank, column_at)[i]
            for i in range(3)
        )  # type: ignore[return-value]

    def _part(self, item: Any, rank: int, column_at: int) -> Any:
        x = _axis_range(self._name, item) if isinstance(item, slice) else asarray(item)
        missing = rank - x.ndim
        if missing <= 0:
            return x
        if x.ndim == 0:
            return structural.reshape(x, (1,) * rank)
        # where the old axes start in the result: -1 puts them last, 0 first
        begin = column_at if column_at >= 0 else missing + column_at + 1
        shape = [1] * rank
        shape[begin : begin + x.ndim] = x.shape
        return structural.reshape(x, tuple(shape))


r_ = _Concatenator("r_", False)


c_ = _Concatenator("c_", True)
