"""Choosing and finding: where, select, nonzero, searchsorted, interp, compress.

The size of what `nonzero` and its kin return depends on values.  Outside of transformations NumPy
finds it; inside, the argument `size` must say it.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jato.base.dtypes import canonicalize, is_complex, is_floating, is_integer
from jato.base.errors import ConcretizationTypeError
from jato.core.array import concrete, from_host
from jato.jit.eager import public
from jato.numpy.elementwise import as_bool, is_nan
from jato.numpy.elementwise import select_where as select_values
from jato.numpy.indexing import getitem_of, take
from jato.numpy.manipulation import ravel
from jato.numpy.promote import (
    as_array,
    as_operand,
    broadcast,
    cast,
    common_shape,
    dtype_of,
    join_types,
    normalize_axis,
    normalize_shape,
    promote_dtypes,
    require_no_out,
    shape_of,
)
from jato.numpy.reductions import as_type
from jato.ops import cumulative, elementwise, indexing, structural
from jato.ops import sort as sort_ops

# ---- where and select


@public()
def _where(condition: Any, x: Any, y: Any) -> Any:
    condition = as_bool(as_operand("where", condition))
    x, y = as_operand("where", x, 1), as_operand("where", y, 2)
    if getattr(x, "aval", 0) is not getattr(y, "aval", 1):
        dtype, weak = join_types(x, y)
        x, y = cast(x, dtype, weak), cast(y, dtype, weak)
    return select_values(condition, x, y)


def where(
    condition: Any,
    x: Any = None,
    y: Any = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """x where the condition holds, else y, elementwise; `nonzero(condition)` without x and y.

    condition, x, y: arrays or numbers of shapes that broadcast.  Raises ShapeMismatchError when
    they do not, ValueError when only one of x and y is given.

    >>> import jato.numpy as jnp
    >>> jnp.where(jnp.array([True, False]), 1.0, jnp.array([5.0, 6.0]))
    Array([1., 6.], dtype=float32)
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ValueError("where: give both 'x' and 'y', or neither")
    return _where(condition, x, y)


@public()
def _select(condlist: tuple[Any, ...], choicelist: tuple[Any, ...], default: Any) -> Any:
    values = [as_operand("select", v) for v in (*choicelist, default)]
    dtype, weak = join_types(*values)
    values = [cast(v, dtype, weak) for v in values]
    result = values[-1]
    for condition, value in zip(condlist[::-1], values[-2::-1], strict=True):
        result = select_values(as_bool(as_operand("select", condition)), value, result)
    return result


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """For each element the choice of the first condition that holds, else the default.

    >>> import jato.numpy as jnp
    >>> x = jnp.arange(4)
    >>> jnp.select([x < 1, x > 2], [x, 10 * x], 7)
    Array([ 0,  7,  7, 30], dtype=int32)
    """
    if len(condlist) != len(choicelist):
        raise ValueError(f"select: {len(condlist)} conditions, but {len(choicelist)} choices")
    if len(condlist) == 0:
        raise ValueError("select: the list of conditions must not be empty")
    return _select(tuple(condlist), tuple(choicelist), default)


@public(static=("mode",))
def _choose(a: Any, choices: tuple[Any, ...], mode: str) -> Any:
    a, count = as_array("choose", a), len(choices)
    dtype = dtype_of(a)
    if mode == "wrap":
        a = elementwise.remainder(a, dtype.type(count))
    else:
        a = elementwise.clamp(dtype.type(0), a, dtype.type(count - 1))
    values = promote_dtypes("choose", *choices)
    shape = common_shape("choose", [a.shape, *(v.shape for v in values)])
    a = broadcast(as_type(a, np.int32), shape)
    return elementwise.select_n(a, *(broadcast(v, shape) for v in values))


def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Any:
    """For each element the value of the array `choices[a]` there.

    mode: "clip" or "wrap"; "raise" (NumPy's default) only for values known when traced.

    >>> import jato.numpy as jnp
    >>> jnp.choose(jnp.array([0, 1]), [jnp.array([1, 2]), jnp.array([3, 4])], mode="clip")
    Array([1, 4], dtype=int32)
    """
    require_no_out("choose", out)
    a = as_array("choose", a)
    if not is_integer(dtype_of(a)):
        raise ValueError(f"choose: argument 'a' must be integers, got dtype {dtype_of(a)}")
    items = (
        tuple(choices)
        if isinstance(choices, (list, tuple))
        else tuple(choices[i] for i in range(choices.shape[0]))
    )
    if mode == "raise":
        known = concrete(a)
        if known is None:
            raise ConcretizationTypeError(
                "choose: mode 'raise' needs values that are known when the function is traced. Use "
                "mode='clip' or mode='wrap'."
            )
        host = np.asarray(known)
        if host.size and (host.min() < 0 or host.max() >= len(items)):
            raise ValueError("choose: invalid entry in choice array")
        mode = "clip"
    if mode not in ("clip", "wrap"):
        raise ValueError(f"choose: argument 'mode' must be 'raise', 'clip' or 'wrap', got {mode!r}")
    return _choose(a, items, mode)


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """A function by cases: where condition i holds, function (or number) i of x.

    One more function than conditions is for the remaining elements (0 without it).  All functions
    are evaluated everywhere.

    >>> import jato.numpy as jnp
    >>> x = jnp.array([-1.0, 2.0])
    >>> jnp.piecewise(x, [x < 0], [lambda v: -v, 0.0])
    Array([1., 0.], dtype=float32)
    """
    x = as_array("piecewise", x)
    conditions = (
        list(condlist)
        if isinstance(condlist, (list, tuple))
        else ([condlist] if getattr(condlist, "shape", ()) == x.shape else list(condlist))
    )
    functions = list(funclist)
    if len(functions) not in (len(conditions), len(conditions) + 1):
        raise ValueError(
            f"piecewise: {len(conditions)} conditions need {len(conditions)} or "
            f"{len(conditions) + 1} functions, got {len(functions)}"
        )
    default = functions.pop() if len(functions) > len(conditions) else 0
    evaluate: Callable[[Any], Any] = lambda f: f(x, *args, **kw) if callable(f) else f  # noqa: E731
    # a later condition wins, as in NumPy
    result = cast(as_array("piecewise", evaluate(default)), dtype_of(x))
    for condition, function in zip(conditions, functions, strict=True):
        value = cast(as_array("piecewise", evaluate(function)), dtype_of(x))
        result = _where(condition, value, result)
    return broadcast(result, x.shape) if result.shape != x.shape else result


# ---- nonzero


@public(static=("size", "fill_value"))
def _nonzero_sized(a: Any, size: int, fill_value: Any) -> tuple[Any, ...]:
    a = as_array("nonzero", a)
    if not a.shape:
        a = structural.reshape(a, (1,))
    index_dtype = canonicalize(np.int64)
    mask = structural.reshape(as_bool(a), (math.prod(a.shape),))
    total = mask.shape[0]
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * len(a.shape)
    if total == 0 or size == 0:
        return tuple(structural.full((size,), f, index_dtype) for f in fills)
    counted = cumulative.cumsum(as_type(mask, index_dtype), 0)
    # element i goes to place counted[i] - 1; elements that are zero go nowhere
    place = elementwise.sub(counted, index_dtype.type(1))
    place = select_values(mask, place, index_dtype.type(size))
    numbers = indexing.ScatterDimensionNumbers((), (0,), (0,))
    flat = indexing.scatter(
        structural.full((size,), 0, index_dtype),
        structural.reshape(place, (total, 1)),
        structural.iota(index_dtype, total),
        numbers,
        mode="drop",
        unique_indices=False,
    )
    found = structural.slice(counted, (total - 1,), (total,))
    valid = elementwise.lt(structural.iota(index_dtype, size), broadcast(found, (size,)))
    results = []
    for axis, fill in enumerate(fills):
        below = math.prod(a.shape[axis + 1 :])
        index = elementwise.remainder(
            elementwise.floor_divide(flat, index_dtype.type(below)), index_dtype.type(a.shape[axis])
        )
        results.append(select_values(valid, index, index_dtype.type(fill)))
    return tuple(results)


def _host(function: str, a: Any) -> np.ndarray[Any, Any]:
    known = concrete(a)
    if known is None:
        raise ConcretizationTypeError(
            f"{function}: the size of the result depends on a traced value of type {a.aval}. Give "
            f"the argument 'size'. {a.origin()}"
        )
    return np.asarray(known)


def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> tuple[Any, ...]:
    """The indices of the nonzero elements, one array per axis.

    size: the number of results: needed in a traced function; further ones are left out, missing
    ones have `fill_value` (0; or a tuple, one per axis).

    >>> import jato.numpy as jnp
    >>> jnp.nonzero(jnp.array([0, 3, 4]))
    (Array([1, 2], dtype=int32),)
    """
    a = as_array("nonzero", a)
    if size is not None:
        fill = 0 if fill_value is None else fill_value
        fill = tuple(int(f) for f in fill) if np.ndim(fill) else int(fill)
        return _nonzero_sized(a, int(size), fill)
    host = np.atleast_1d(_host("nonzero", a))
    return tuple(from_host(p, canonicalize(np.int64)) for p in np.nonzero(host))


def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The indices of the nonzero elements of the flattened array; see `nonzero`.

    >>> import jato.numpy as jnp
    >>> jnp.flatnonzero(jnp.array([[0, 3], [4, 0]]))
    Array([1, 2], dtype=int32)
    """
    return nonzero(ravel(as_array("flatnonzero", a)), size=size, fill_value=fill_value)[0]


@public()
def _columns(parts: tuple[Any, ...]) -> Any:
    count = parts[0].shape[0]
    return structural.concatenate([structural.reshape(p, (count, 1)) for p in parts], 1)


def argwhere(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The indices of the nonzero elements, one row each; see `nonzero`.

    >>> import jato.numpy as jnp
    >>> jnp.argwhere(jnp.array([0, 3]))
    Array([[1]], dtype=int32)
    """
    a = as_array("argwhere", a)
    if not shape_of(a):
        count = int(bool(_host("argwhere", a))) if size is None else size
        return from_host(np.zeros((count, 0), np.int32))
    return _columns(nonzero(a, size=size, fill_value=fill_value))


def compress(
    condition: Any,
    a: Any,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: Any = 0,
    out: None = None,
) -> Any:
    """The elements, or sub-arrays along an axis, where the condition (a vector) holds.

    >>> import jato.numpy as jnp
    >>> jnp.compress(jnp.array([True, False, True]), jnp.array([1, 2, 3]))
    Array([1, 3], dtype=int32)
    """
    require_no_out("compress", out)
    condition, a = as_array("compress", condition), as_array("compress", a, 1)
    if len(condition.shape) != 1:
        raise ValueError(
            f"compress: argument 'condition' must have rank 1, got shape {condition.shape}"
        )
    if axis is None:
        a, axis = ravel(a), 0
    limit = a.shape[normalize_axis("compress", axis, len(a.shape))]
    if condition.shape[0] > limit:
        condition = getitem_of(condition, builtins.slice(0, limit))
    if size is None:
        return take(a, flatnonzero(condition), axis, mode="clip")
    # places beyond the array read the fill value
    rows = flatnonzero(condition, size=size, fill_value=limit)
    return take(a, rows, axis, mode="fill", fill_value=fill_value)


def extract(condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0) -> Any:
    """The elements of the flattened array where the (flattened) condition holds.

    >>> import jato.numpy as jnp
    >>> jnp.extract(jnp.array([True, False]), jnp.array([1, 2]))
    Array([1], dtype=int32)
    """
    flat = ravel(as_array("extract", condition))
    return compress(flat, ravel(as_array("extract", arr, 1)), size=size, fill_value=fill_value)


def place(arr: Any, mask: Any, vals: Any, *, inplace: bool = True) -> Any:
    """The array with `vals`, in turn, where the mask holds; needs inplace=False.

    >>> import jato.numpy as jnp
    >>> jnp.place(jnp.zeros(3), jnp.array([True, False, True]), jnp.array([1.0, 2.0]), inplace=False)
    Array([1., 0., 2.], dtype=float32)
    """
    if inplace:
        raise ValueError("place: arrays are immutable; pass inplace=False and use the result")
    return _place(arr, mask, vals)


@public()
def _place(arr: Any, mask: Any, vals: Any) -> Any:
    arr, mask, vals = (as_array("place", x, i) for i, x in enumerate((arr, mask, vals)))
    if math.prod(arr.shape) != math.prod(mask.shape):
        raise ValueError(
            f"place: arr and mask must have the same size, got {arr.shape} and {mask.shape}"
        )
    count = math.prod(vals.shape)
    if count == 0:
        raise ValueError("place: argument 'vals' must not be empty")
    flat = as_bool(structural.reshape(mask, (math.prod(mask.shape),)))
    if flat.shape[0] == 0:
        return arr
    order = elementwise.sub(cumulative.cumsum(as_type(flat, np.int32), 0), np.int32(1))
    order = elementwise.remainder(elementwise.max(order, np.int32(0)), np.int32(count))
    values = take_vector(structural.reshape(as_type(vals, dtype_of(arr)), (count,)), order)
    chosen = select_values(flat, values, structural.reshape(arr, flat.shape))
    return structural.reshape(chosen, arr.shape)


def take_vector(values: Any, positions: Any) -> Any:
    """values[positions] for in-bounds positions of any shape."""
    numbers = indexing.GatherDimensionNumbers((), (0,), (0,))
    starts = structural.reshape(positions, (*positions.shape, 1))
    return indexing.gather(values, starts, numbers, (1,), mode="clip")


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


def _counts_before(a: Any, v: Any, side: str) -> Any:
    return _before(a, v) if side == "left" else elementwise.bitwise_not(_before(v, a))


def _search_by_comparing(a: Any, v: Any, side: str, dtype: Any) -> Any:
    shape = (*v.shape, a.shape[0])
    wide_a = structural.broadcast_in_dim(a, shape, (len(v.shape),))
    wide_v = structural.broadcast_in_dim(v, shape, tuple(range(len(v.shape))))
    return structural.reduce_sum(
        as_type(_counts_before(wide_a, wide_v, side), dtype), (len(v.shape),)
    )


def _search_by_halving(a: Any, v: Any, side: str, dtype: Any) -> Any:
    """One comparison per bit of the position: place is the number of elements known to be before."""
    size = a.shape[0]
    place = structural.full(v.shape, 0, dtype)
    for bit in range(size.bit_length() - 1, -1, -1):
        trial = elementwise.add(place, dtype.type(1 << bit))
        inside = elementwise.le(trial, dtype.type(size))
        element = take_vector(
            a, elementwise.sub(elementwise.min(trial, dtype.type(size)), dtype.type(1))
        )
        advance = elementwise.bitwise_and(inside, _counts_before(element, v, side))
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
    dtype = canonicalize(np.int64)
    if a.shape[0] == 0:
        return structural.full(v.shape, 0, dtype)
    search = (
        _search_by_comparing if a.shape[0] <= 64 or method == "compare_all" else _search_by_halving
    )
    return search(a, v, side, dtype)


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
    index = canonicalize(np.int64)
    if size == 0:
        return structural.full(x.shape, 0, index)
    ascending = searchsorted(bins, x, "left" if right else "right")
    flipped = structural.rev(bins, (0,))
    descending = elementwise.sub(
        index.type(size), searchsorted(flipped, x, "right" if right else "left")
    )
    first, last = (
        structural.reshape(structural.slice(bins, (i,), (i + 1,)), ()) for i in (0, size - 1)
    )
    return select_values(elementwise.le(first, last), ascending, descending)


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
    index = canonicalize(np.int64)
    if size == 1:
        result = broadcast(fp, x.shape) if x.shape else _element(fp, 0)
        low = high = _element(xp, 0)
    else:
        i = elementwise.clamp(index.type(1), searchsorted(xp, x, "right"), index.type(size - 1))
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


@public(static=("shape",))
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
            host = _host("ravel_multi_index (mode 'raise')", part)
            if host.size and (host.min() < 0 or host.max() >= size):
                raise ValueError("ravel_multi_index: invalid entry in coordinates array")
        mode = "clip"
    target = canonicalize(np.int64 if dtype is None else dtype)
    return _ravel_indices(tuple(parts), sizes, mode, order, target)


@public(static=("sizes", "mode", "order", "dtype"))
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
