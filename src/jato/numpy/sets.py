"""Arrays as sets: unique and its kin, union, intersection, difference, membership.

The size of the result depends on values: outside of transformations NumPy finds it, inside the
argument `size` must say it; further elements are left out and missing ones are `fill_value`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from jato.base import dtypes
from jato.base.dtypes import canonicalize, is_inexact
from jato.base.errors import ConcretizationTypeError
from jato.core.array import concrete, from_host
from jato.jit.eager import public
from jato.numpy.locating import searchsorted
from jato.numpy.makers import is_nan, select_where
from jato.numpy.manipulation import moveaxis
from jato.numpy.promote import as_array, broadcast, cast, dtype_of, normalize_axis, promote_dtypes
from jato.numpy.reductions import any as any_true
from jato.numpy.reductions import as_type
from jato.numpy.searching import nonzero, take_vector
from jato.ops import cumulative, elementwise, indexing, structural
from jato.ops import sort as sort_ops


class UniqueAll(NamedTuple):
    """Result of `unique_all`."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """Result of `unique_counts`."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """Result of `unique_inverse`."""

    values: Any
    inverse_indices: Any


def host_values(function: str, *xs: Any) -> list[np.ndarray[Any, Any]]:
    hosts = []
    for x in xs:
        known = concrete(x)
        if known is None:
            raise ConcretizationTypeError(
                f"{function}: the size of the result depends on a traced value of type {x.aval}. "
                f"Give the argument 'size'. {x.origin()}"
            )
        hosts.append(np.asarray(known))
    return hosts


def _flat(x: Any) -> Any:
    return structural.reshape(x, (math.prod(x.shape),))


def _differs(x: Any, equal_nan: bool) -> Any:
    """For rows of a sorted [n, ...] array: is it unlike the one before?  The first one is."""
    n = x.shape[0]
    later, earlier = structural.slice_in_dim(x, 1, n), structural.slice_in_dim(x, 0, n - 1)
    unlike = elementwise.ne(later, earlier)
    if equal_nan and is_inexact(dtype_of(x)):
        both = elementwise.bitwise_and(is_nan(later), is_nan(earlier))
        unlike = elementwise.bitwise_and(unlike, elementwise.bitwise_not(both))
    if len(x.shape) > 1:
        unlike = any_true(unlike, tuple(range(1, len(x.shape))))
    return structural.concatenate([structural.full((1,), True, np.dtype("bool")), unlike], 0)


def _sorted_rows(rows: Any) -> tuple[Any, Any]:
    """([n, ...] rows in lexicographic order, the permutation)."""
    n = rows.shape[0]
    positions = structural.iota(np.int32, n)
    if len(rows.shape) == 1:
        values, order = sort_ops.sort((rows, positions), dimension=0, num_keys=1)
        return values, order
    width = math.prod(rows.shape[1:])
    flat = structural.reshape(rows, (n, width))
    columns = tuple(
        structural.reshape(structural.slice_in_dim(flat, i, i + 1, axis=1), (n,))
        for i in range(width)
    )
    order = sort_ops.sort((*columns, positions), dimension=0, num_keys=max(width, 1))[-1]
    return take_rows(rows, order), order


def take_rows(rows: Any, positions: Any) -> Any:
    rank = len(rows.shape)
    numbers = indexing.GatherDimensionNumbers(tuple(range(1, rank)), (0,), (0,))
    starts = structural.reshape(positions, (*positions.shape, 1))
    return indexing.gather(rows, starts, numbers, (1, *rows.shape[1:]), mode="clip")


@public(static=("axis", "equal_nan", "size"), name="unique")
def _unique_sized(
    ar: Any, axis: int, equal_nan: bool, size: int, fill_value: Any
) -> tuple[Any, ...]:
    """(values, indices, inverse, counts) with `size` places."""
    rows = moveaxis(as_array("unique", ar), axis, 0)
    n = rows.shape[0]
    index = canonicalize(np.int64)
    if n == 0:
        shape = (size, *rows.shape[1:])
        fill = 0 if fill_value is None else fill_value
        empty = structural.full((size,), 0, index)
        values = broadcast(cast(as_array("unique", fill), dtype_of(rows)), shape)
        return moveaxis(values, 0, axis), empty, structural.full((0,), 0, index), empty
    values, order = _sorted_rows(rows)
    new = _differs(values, equal_nan)
    group = elementwise.sub(cumulative.cumsum(as_type(new, np.int32), 0), np.int32(1))
    count = elementwise.add(_last(group), np.int32(1))
    starts = nonzero(new, size=size, fill_value=0)[0]
    place = structural.iota(np.int32, size)
    valid = elementwise.lt(place, broadcast(count, (size,)))
    unique_rows = take_rows(values, starts)
    fill = (
        take_rows(values, np.zeros(1, np.int32))
        if fill_value is None
        else cast(as_array("unique", fill_value), dtype_of(rows))
    )
    mask = structural.broadcast_in_dim(valid, unique_rows.shape, (0,))
    unique_rows = select_where(
        mask, unique_rows, broadcast(fill, unique_rows.shape) if fill.shape else fill
    )
    indices = select_where(valid, take_vector(as_type(order, index), starts), index.type(0))
    numbers = indexing.ScatterDimensionNumbers((), (0,), (0,))
    inverse = indexing.scatter(
        structural.full((n,), 0, index), structural.reshape(order, (n, 1)),
        as_type(group, index), numbers, mode="drop",
    )  # fmt: skip
    counts = indexing.scatter_add(
        structural.full((size,), 0, index), structural.reshape(group, (n, 1)),
        structural.full((n,), 1, index), numbers, mode="drop",
    ) if size else structural.full((0,), 0, index)  # fmt: skip
    return moveaxis(unique_rows, 0, axis), indices, inverse, counts


def _last(x: Any) -> Any:
    n = x.shape[0]
    return structural.reshape(structural.slice(x, (n - 1,), (n,)), ())


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: Any = None,
    sorted: bool = True,
) -> Any:
    """The sorted different elements, or sub-arrays along `axis`.

    return_index, return_inverse, return_counts: also where each occurs first, which one each
    element is, how often each occurs.  size, fill_value: see the module; the fill is the smallest
    element by default.

    >>> import jato.numpy as jnp
    >>> jnp.unique(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    ar = as_array("unique", ar)
    index = canonicalize(np.int64)
    if size is None:
        host = host_values("unique", ar)[0]
        result = np.unique(
            host, return_index=True, return_inverse=True, return_counts=True, axis=axis,
            equal_nan=equal_nan,
        )  # fmt: skip
        parts = (from_host(result[0], dtype_of(ar)), *(from_host(p, index) for p in result[1:]))
        inverse_shape = ar.shape if axis is None else (ar.shape[axis],)
        parts = (parts[0], parts[1], parts[2].reshape(inverse_shape), parts[3])
    else:
        shape = ar.shape
        flat, where = (
            (_flatten(ar), 0) if axis is None else (ar, normalize_axis("unique", axis, len(shape)))
        )
        parts = _unique_sized(flat, where, equal_nan, int(size), fill_value)
        if axis is None:
            parts = (parts[0], parts[1], parts[2].reshape(shape), parts[3])
    wanted = (True, return_index, return_inverse, return_counts)
    chosen = tuple(p for p, w in zip(parts, wanted, strict=True) if w)
    return chosen[0] if len(chosen) == 1 else chosen


@public()
def _flatten(x: Any) -> Any:
    return _flat(as_array("unique", x))


def unique_all(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """(values, indices, inverse_indices, counts) of the different elements; see `unique`.

    >>> import jato.numpy as jnp
    >>> jnp.unique_all(jnp.array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)
    """
    return UniqueAll(
        *unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    )


def unique_counts(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """(values, counts) of the different elements; see `unique`.

    >>> import jato.numpy as jnp
    >>> jnp.unique_counts(jnp.array([3, 1, 3])).values
    Array([1, 3], dtype=int32)
    """
    return UniqueCounts(
        *unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    )


def unique_inverse(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """(values, inverse_indices) of the different elements; see `unique`.

    >>> import jato.numpy as jnp
    >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    return UniqueInverse(
        *unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    )


def unique_values(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The sorted different elements; see `unique`.

    >>> import jato.numpy as jnp
    >>> jnp.unique_values(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


# ---- membership

# accepted as hints: a few elements are compared with each, many by binary search
_ISIN_METHODS = ("auto", "compare_all", "binary_search", "sort")


@public(static=("assume_unique", "invert", "method"))
def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Any:
    """For each element: does it occur in `test_elements`?  (nan never does.)

    >>> import jato.numpy as jnp
    >>> jnp.isin(jnp.array([1, 2, 3]), jnp.array([2, 5]))
    Array([False,  True, False], dtype=bool)
    """
    if method not in _ISIN_METHODS:
        raise ValueError(f"isin: argument 'method' must be one of {_ISIN_METHODS}, got {method!r}")
    element, tests = promote_dtypes("isin", element, test_elements)
    tests = _flat(tests)
    count = tests.shape[0]
    if count == 0:
        return structural.full(element.shape, bool(invert), np.dtype("bool"))
    if count <= 32:
        rank = len(element.shape)
        shape = (*element.shape, count)
        left = structural.broadcast_in_dim(element, shape, tuple(range(rank)))
        found = any_true(
            elementwise.eq(left, structural.broadcast_in_dim(tests, shape, (rank,))), rank
        )
    else:
        ordered = sort_ops.sort(tests, dimension=0)
        place = searchsorted(ordered, element)
        place = elementwise.min(place, dtype_of(place).type(count - 1))
        found = elementwise.eq(take_vector(ordered, place), element)
    return elementwise.bitwise_not(found) if invert else found


@public(static=("size", "kind"))
def _sized(ar1: Any, ar2: Any, fill_value: Any, size: int, kind: str) -> tuple[Any, Any, Any]:
    """Different elements of ar1 that are (intersect), or are not (difference), in ar2; sorted."""
    ar1, ar2 = promote_dtypes(kind, ar1, ar2)
    x, other = _flat(ar1), _flat(ar2)
    dtype = dtype_of(x)
    index = canonicalize(np.int64)
    n = x.shape[0]
    if n == 0 or size == 0:
        fill = 0 if fill_value is None else fill_value
        return (
            broadcast(cast(as_array(kind, fill), dtype), (size,)),
            structural.full((size,), 0, index),
            structural.full((), 0, index),
        )
    values, order = _sorted_rows(x)
    keep = _differs(values, True)
    if kind == "xor":
        keep = elementwise.bitwise_and(keep, _occurs_once(values))
    elif kind != "union":
        member = isin(values, other)
        keep = elementwise.bitwise_and(
            keep, member if kind == "intersect" else elementwise.bitwise_not(member)
        )
    places = nonzero(keep, size=size, fill_value=0)[0]
    found = structural.reduce_sum(as_type(keep, index), (0,))
    valid = elementwise.lt(structural.iota(index, size), broadcast(found, (size,)))
    chosen = take_vector(values, places)
    fill = (
        take_vector(values, np.zeros((), np.int32))
        if fill_value is None
        else cast(as_array(kind, fill_value), dtype)
    )
    return select_where(valid, chosen, fill), take_vector(as_type(order, index), places), found


def _occurs_once(values: Any) -> Any:
    new = _differs(values, True)
    n = values.shape[0]
    next_new = structural.concatenate(
        [structural.slice_in_dim(new, 1, n), structural.full((1,), True, np.dtype("bool"))], 0
    )
    return elementwise.bitwise_and(new, next_new)


def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The sorted elements that occur in either array.

    >>> import jato.numpy as jnp
    >>> jnp.union1d(jnp.array([1, 2]), jnp.array([2, 3]))
    Array([1, 2, 3], dtype=int32)
    """
    return unique(_joined(ar1, ar2), size=size, fill_value=fill_value)


@public()
def _joined(ar1: Any, ar2: Any) -> Any:
    ar1, ar2 = promote_dtypes("union1d", ar1, ar2)
    return structural.concatenate([_flat(ar1), _flat(ar2)], 0)


def setdiff1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The sorted elements of ar1 that do not occur in ar2.

    >>> import jato.numpy as jnp
    >>> jnp.setdiff1d(jnp.array([1, 2, 3]), jnp.array([2]))
    Array([1, 3], dtype=int32)
    """
    ar1, ar2 = as_array("setdiff1d", ar1), as_array("setdiff1d", ar2, 1)
    if size is None:
        host = np.setdiff1d(*host_values("setdiff1d", ar1, ar2), assume_unique=assume_unique)
        return from_host(host, dtype_of(ar1))
    return _sized(ar1, ar2, fill_value, int(size), "difference")[0]


def setxor1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The sorted elements that occur in exactly one of the arrays.

    >>> import jato.numpy as jnp
    >>> jnp.setxor1d(jnp.array([1, 2]), jnp.array([2, 3]))
    Array([1, 3], dtype=int32)
    """
    ar1, ar2 = as_array("setxor1d", ar1), as_array("setxor1d", ar2, 1)
    if size is None:
        host = np.setxor1d(*host_values("setxor1d", ar1, ar2), assume_unique=assume_unique)
        return from_host(host, dtypes.promote_types(dtype_of(ar1), dtype_of(ar2)))
    if not assume_unique:
        # each array's elements once; the surplus places repeat an element, so count only first ones
        raise NotImplementedError(
            "setxor1d: with 'size' the arrays must be unique (assume_unique=True)"
        )
    both = _joined(ar1, ar2)
    return _sized(both, both, fill_value, int(size), "xor")[0]


def intersect1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The sorted elements that occur in both arrays, and where, if `return_indices`.

    >>> import jato.numpy as jnp
    >>> jnp.intersect1d(jnp.array([1, 2]), jnp.array([2, 3]))
    Array([2], dtype=int32)
    """
    ar1, ar2 = as_array("intersect1d", ar1), as_array("intersect1d", ar2, 1)
    index = canonicalize(np.int64)
    if size is None:
        hosts = host_values("intersect1d", ar1, ar2)
        values, i, j = np.intersect1d(*hosts, assume_unique=assume_unique, return_indices=True)
        result = from_host(values, dtypes.promote_types(dtype_of(ar1), dtype_of(ar2)))
        return (result, from_host(i, index), from_host(j, index)) if return_indices else result
    values, i, count = _sized(ar1, ar2, fill_value, int(size), "intersect")
    if not return_indices:
        return values
    _, j, _ = _sized(ar2, ar1, fill_value, int(size), "intersect")
    return values, _masked_index(i, count, ar1.size), _masked_index(j, count, ar2.size)


@public(static=("fill",))
def _masked_index(indices: Any, count: Any, fill: int) -> Any:
    size = indices.shape[0]
    dtype = dtype_of(indices)
    valid = elementwise.lt(structural.iota(dtype, size), broadcast(count, (size,)))
    return select_where(valid, indices, dtype.type(fill))
