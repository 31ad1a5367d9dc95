"""Choosing and finding: where, select, choose, nonzero, compress.

The size of what `nonzero` and its kin return depends on values.  Outside of transformations NumPy
finds it; inside, the argument `size` must say it.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jato.base.dtypes import canonicalize, is_integer
from jato.base.errors import ConcretizationTypeError
from jato.core.array import concrete, from_host
from jato.jit.eager import public
from jato.numpy.logic import as_bool
from jato.numpy.makers import select_where as select_values
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
    promote_dtypes,
    require_no_out,
    shape_of,
)
from jato.numpy.reductions import as_type
from jato.numpy.taking import getitem_of, take
from jato.ops import cumulative, elementwise, indexing, structural

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


@public(static=("size", "fill_value"), name="nonzero")
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


def host_values(function: str, a: Any) -> np.ndarray[Any, Any]:
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
    if not a.shape:
        raise ValueError("nonzero: argument 'a' is a number; use atleast_1d(a).nonzero()")
    if size is not None:
        fill = 0 if fill_value is None else fill_value
        fill = tuple(int(f) for f in fill) if np.ndim(fill) else int(fill)
        return _nonzero_sized(a, int(size), fill)
    host = host_values("nonzero", a)
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
        count = int(bool(host_values("argwhere", a))) if size is None else size
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
