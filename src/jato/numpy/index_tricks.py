"""Index arrays for triangles and diagonals; delete, insert and fill by index."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np
from jato.base.dtypes import canonicalize, is_bool, is_integer
from jato.base.errors import ConcretizationTypeError
from jato.core.array import concrete, from_host, require_integer
from jato.jit.eager import public
from jato.numpy.makers import select_where
from jato.numpy.manipulation import broadcast_to, moveaxis, ravel
from jato.numpy.promote import as_array, broadcast, cast, dtype_of, normalize_axes, normalize_axis
from jato.numpy.searching import nonzero, take_vector
from jato.numpy.sorting import argsort
from jato.numpy.taking import take
from jato.ops import elementwise, structural


def _indices(arrays: Any) -> tuple[Any, ...]:
    dtype = canonicalize(np.int64)
    return tuple(from_host(a, dtype) for a in arrays)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """The indices of the lower triangle of an n x m matrix, up to the k-th diagonal.

    >>> import jato.numpy as jnp
    >>> jnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return _indices(np.tril_indices(require_integer(n, "tril_indices", "n"), k, m))  # type: ignore[return-value]


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """The indices of the upper triangle of an n x m matrix, from the k-th diagonal on.

    >>> import jato.numpy as jnp
    >>> jnp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return _indices(np.triu_indices(require_integer(n, "triu_indices", "n"), k, m))  # type: ignore[return-value]


def _matrix_shape(function: str, arr: Any) -> tuple[int, int]:
    shape = as_array(function, arr).shape
    if len(shape) != 2:
        raise ValueError(f"{function}: argument 'arr' must have rank 2, got shape {shape}")
    return shape


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Any, Any]:
    """The indices of the lower triangle of a matrix.

    >>> import jato.numpy as jnp
    >>> jnp.tril_indices_from(jnp.zeros((1, 1)))
    (Array([0], dtype=int32), Array([0], dtype=int32))
    """
    n, m = _matrix_shape("tril_indices_from", arr)
    return tril_indices(n, k, m)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Any, Any]:
    """The indices of the upper triangle of a matrix.

    >>> import jato.numpy as jnp
    >>> jnp.triu_indices_from(jnp.zeros((1, 1)))
    (Array([0], dtype=int32), Array([0], dtype=int32))
    """
    n, m = _matrix_shape("triu_indices_from", arr)
    return triu_indices(n, k, m)


def diag_indices(n: int, ndim: int = 2) -> tuple[Any, ...]:
    """The indices of the main diagonal of an array with `ndim` axes of size n.

    >>> import jato.numpy as jnp
    >>> jnp.diag_indices(2)
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    n, ndim = require_integer(n, "diag_indices", "n"), require_integer(ndim, "diag_indices", "ndim")
    if n < 0 or ndim < 0:
        raise ValueError(f"diag_indices: arguments must not be negative, got n={n}, ndim={ndim}")
    return _indices([np.arange(n)] * ndim)


def diag_indices_from(arr: Any) -> tuple[Any, ...]:
    """The indices of the main diagonal of an array with equal sizes.

    >>> import jato.numpy as jnp
    >>> jnp.diag_indices_from(jnp.zeros((1, 1)))
    (Array([0], dtype=int32), Array([0], dtype=int32))
    """
    shape = as_array("diag_indices_from", arr).shape
    if len(shape) < 2 or len(set(shape)) != 1:
        raise ValueError(
            f"diag_indices_from: all sizes must be equal and rank at least 2, got {shape}"
        )
    return diag_indices(shape[0], len(shape))


def mask_indices(n: int, mask_func: Any, k: int = 0, *, size: int | None = None) -> Any:
    """The indices at which `mask_func(ones((n, n)), k)` is nonzero.

    >>> import jato.numpy as jnp
    >>> jnp.mask_indices(2, jnp.triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return nonzero(mask_func(broadcast_to(1, (n, n)), k), size=size)


def ix_(*args: Any) -> tuple[Any, ...]:
    """Vectors as index arrays of an open mesh: x[ix_([0, 2], [1])] is the sub-matrix.

    >>> import jato.numpy as jnp
    >>> [i.shape for i in jnp.ix_(jnp.array([0, 2]), jnp.array([1]))]
    [(2, 1), (1, 1)]
    """
    result = []
    for i, x in enumerate(args):
        x = as_array("ix_", x, i)
        if len(x.shape) != 1:
            raise ValueError(f"ix_: arguments must have rank 1, got shape {x.shape}")
        if is_bool(dtype_of(x)):
            x = nonzero(x)[0]
        shape = tuple(-1 if k == i else 1 for k in range(len(args)))
        result.append(_reshaped(x, shape))
    return tuple(result)


@public(static=("shape",))
def _reshaped(x: Any, shape: tuple[int, ...]) -> Any:
    size = math.prod(x.shape)
    return structural.reshape(x, tuple(size if s == -1 else s for s in shape))


# ---- delete and insert


def _positions(function: str, obj: Any, size: int) -> np.ndarray[Any, Any]:
    """Positions in [0, size] that an index means; known when traced."""
    if isinstance(obj, builtins.slice):
        return np.arange(size)[obj]
    known = concrete(obj)
    if known is None:
        raise ConcretizationTypeError(
            f"{function}: argument 'obj' must be known when the function is traced, since the size of "
            f"the result depends on it; got {obj.aval}. {obj.origin()}"
        )
    host = np.asarray(known)
    if host.dtype == bool:
        if host.shape != (size,):
            raise ValueError(f"{function}: a mask must have shape ({size},), got {host.shape}")
        return np.flatnonzero(host)
    if host.size == 0:
        return host.astype(np.int64)
    if host.dtype.kind not in "iu":
        raise TypeError(f"{function}: argument 'obj' must be integers, got dtype {host.dtype}")
    return host


def delete(
    arr: Any, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Any:
    """The array without the elements, or sub-arrays along `axis`, at the indices `obj`.

    obj: integer, slice, mask or array of integers.  Traced integers are possible with
    assume_unique_indices=True.

    >>> import jato.numpy as jnp
    >>> jnp.delete(jnp.array([1, 2, 3]), 1)
    Array([1, 3], dtype=int32)
    """
    arr = as_array("delete", arr)
    if axis is None:
        arr, axis = ravel(arr), 0
    axis = normalize_axis("delete", axis, len(arr.shape))
    size = arr.shape[axis]
    if assume_unique_indices and hasattr(obj, "dtype") and is_integer(obj.dtype):
        return _delete_traced(arr, obj, axis)
    places = _positions("delete", obj, size)
    if places.size and (places.min() < -size or places.max() >= size):
        bad = places[(places < -size) | (places >= size)].ravel()[0]
        raise IndexError(f"delete: index {bad} is out of bounds for axis {axis} with size {size}")
    kept = np.delete(np.arange(size, dtype=np.int32), places)
    return take(arr, kept, axis, mode="clip")


@public(static=("axis",), name="delete")
def _delete_traced(arr: Any, obj: Any, axis: int) -> Any:
    arr, obj = as_array("delete", arr), as_array("delete", obj)
    size, dtype = arr.shape[axis], dtype_of(obj)
    obj = structural.reshape(obj, (math.prod(obj.shape),))
    obj = select_where(
        elementwise.lt(obj, dtype.type(0)), elementwise.add(obj, dtype.type(size)), obj
    )
    count = obj.shape[0]
    # kept position j skips all deleted ones before it: add one for each, in ascending order
    gone = argsort(obj)
    gone = take_vector(obj, gone)
    shifted = elementwise.sub(gone, structural.iota(dtype, count))
    place = structural.iota(dtype, size - count)
    wide = (size - count, count)
    passed = elementwise.ge(
        structural.broadcast_in_dim(place, wide, (0,)),
        structural.broadcast_in_dim(shifted, wide, (1,)),
    )
    skip = structural.reduce_sum(select_where(passed, dtype.type(1), dtype.type(0)), (1,))
    return take(arr, elementwise.add(place, skip), axis, mode="clip")


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """The array with `values` put before the indices `obj` (known when traced) along an axis.

    >>> import jato.numpy as jnp
    >>> jnp.insert(jnp.array([1, 3]), 1, 2)
    Array([1, 2, 3], dtype=int32)
    """
    arr, values = as_array("insert", arr), as_array("insert", values, 2)
    if axis is None:
        arr, axis = ravel(arr), 0
    axis = normalize_axis("insert", axis, len(arr.shape))
    size = arr.shape[axis]
    places = _positions("insert", obj, size)
    scalar = places.ndim == 0
    places = places.reshape(-1)
    if places.size and (places.min() < -size or places.max() > size):
        raise IndexError(
            f"insert: indices {places} are out of bounds for axis {axis} with size {size}"
        )
    places = np.where(places < 0, places + size, places)
    count = places.size
    if count == 1:
        # one place takes all values
        count = (
            values.shape[axis]
            if len(values.shape) == len(arr.shape) and not (scalar and len(values.shape) == 0)
            else 1
        )
        if scalar and len(values.shape) >= 1:
            values = _front_to(values, axis, len(arr.shape))
            count = values.shape[axis]
        places = np.repeat(places, count)
    order = np.argsort(places, kind="stable")
    final = np.empty(count, np.int64)
    final[order] = places[order] + np.arange(count)
    kept = np.ones(size + count, bool)
    kept[final] = False
    old = np.cumsum(kept) - 1
    new = np.zeros(size + count, np.int32)
    new[final] = np.arange(count)
    return _insert(arr, values, old.astype(np.int32), new, kept, axis, count)


@public(static=("axis", "rank"))
def _front_to(values: Any, axis: int, rank: int) -> Any:
    """NumPy: values of an insertion at one place have the new axis first."""
    values = as_array("insert", values)
    if len(values.shape) < rank:
        values = structural.reshape(values, (1,) * (rank - len(values.shape)) + values.shape)
    return moveaxis(values, 0, axis)


@public(static=("axis", "count"))
def _insert(arr: Any, values: Any, old: Any, new: Any, kept: Any, axis: int, count: int) -> Any:
    arr = as_array("insert", arr)
    shape = tuple(count if i == axis else s for i, s in enumerate(arr.shape))
    values = broadcast(cast(as_array("insert", values), dtype_of(arr)), shape)
    if arr.shape[axis] == 0:
        return values
    if count == 0:
        return arr
    from_arr = take(arr, elementwise.max(as_array("insert", old), np.int32(0)), axis, mode="clip")
    from_values = take(values, new, axis, mode="clip")
    mask = structural.broadcast_in_dim(as_array("insert", kept), from_arr.shape, (axis,))
    return elementwise.select_n(mask, from_values, from_arr)


def fill_diagonal(a: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Any:
    """The array with `val` on its main diagonal; needs inplace=False.

    >>> import jato.numpy as jnp
    >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 5.0, inplace=False)
    Array([[5., 0.],
           [0., 5.]], dtype=float32)
    """
    if inplace:
        raise NotImplementedError(
            "fill_diagonal: arrays are immutable; pass inplace=False and use the result"
        )
    if wrap:
        raise NotImplementedError("fill_diagonal: argument 'wrap' is not supported")
    return _fill_diagonal(a, val)


@public()
def _fill_diagonal(a: Any, val: Any) -> Any:
    a, val = as_array("fill_diagonal", a), as_array("fill_diagonal", val, 1)
    shape = a.shape
    if len(shape) < 2:
        raise ValueError(f"fill_diagonal: argument 'a' must have rank 2 or more, got shape {shape}")
    if len(shape) > 2 and len(set(shape)) != 1:
        raise ValueError(f"fill_diagonal: all sizes must be equal, got {shape}")
    size = builtins.min(shape)
    val = cast(val, dtype_of(a))
    first = structural.broadcasted_iota(np.int32, shape, 0)
    on: Any = None
    for axis in range(1, len(shape)):
        same = elementwise.eq(first, structural.broadcasted_iota(np.int32, shape, axis))
        on = same if on is None else elementwise.bitwise_and(on, same)
    if val.shape:
        flat = structural.reshape(val, (math.prod(val.shape),))
        turns = -(-size // flat.shape[0])
        row = structural.slice(structural.concatenate([flat] * turns, 0), (0,), (size,))
        if size < shape[0]:
            row = structural.pad(row, np.zeros((), dtype_of(a))[()], [(0, shape[0] - size, 0)])
        val = structural.broadcast_in_dim(row, shape, (0,))
    return select_where(on, val, a)


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """An array without its leading ("f") and trailing ("b") zeros; values must be known.

    axis: along which axes (default: all) slices of only zeros are left out.

    >>> import jato.numpy as jnp
    >>> jnp.trim_zeros(jnp.array([0, 1, 0, 2, 0]))
    Array([1, 0, 2], dtype=int32)
    """
    filt = as_array("trim_zeros", filt)
    known = concrete(filt)
    if known is None:
        raise ConcretizationTypeError("trim_zeros: the size of the result depends on traced values")
    ends = trim.lower() if isinstance(trim, str) else trim
    if ends not in ("f", "b", "fb", "bf"):
        raise ValueError(f"trim_zeros: argument 'trim' must be 'f', 'b' or 'fb', got {trim!r}")
    host = np.asarray(known)
    cuts = [builtins.slice(None)] * host.ndim
    places = np.nonzero(host)
    for i in normalize_axes("trim_zeros", axis, host.ndim):
        first, stop = 0, 0
        if places[i].size:
            first = places[i].min() if "f" in ends else 0
            stop = places[i].max() + 1 if "b" in ends else host.shape[i]
        cuts[i] = builtins.slice(first, stop)
    return from_host(host[tuple(cuts)], dtype_of(filt))
