"""Reductions over axes: sums, extrema and their positions, means, variances, any and all.

All take `axis` (None: all axes, an integer, or a tuple) and `keepdims`; elements where the mask
`where` is false are left out, and `initial` is one more element.  Sums of narrow integers are in
the default integer type; sums of 16-bit floats are accumulated in float32 by the compiler.

Start at `_reduce`, which all the plain ones use.  The `*_of` functions take the name of the public
function that errors are to name; nan_reductions.py uses them, too.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from jato.base.dtypes import (
    canonicalize,
    is_bool,
    is_complex,
    is_floating,
    is_inexact,
    is_integer,
    is_unsigned,
)
from jato.jit.eager import public
from jato.numpy.logic import as_bool
from jato.numpy.makers import is_nan, select_where
from jato.numpy.promote import (
    as_array,
    broadcast,
    broadcast_operands,
    cast,
    common_shape,
    dtype_of,
    float_of,
    normalize_axes,
    normalize_axis,
    promote_dtypes,
    require_no_out,
    shape_of,
)
from jato.ops import convert, elementwise, reduce, structural

STATIC = ("axis", "dtype", "keepdims", "promote_integers", "ddof", "correction")


def as_type(x: Any, dtype: Any) -> Any:
    """`x` in a dtype, strongly typed."""
    aval = getattr(x, "aval", None)
    if aval is not None and aval.dtype == dtype and not aval.weak_type:
        return x
    return convert.convert_element_type(x, dtype)


def keep_axes(result: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """The result of a reduction with the reduced axes as axes of size 1."""
    return structural.reshape(
        result, tuple(1 if i in axes else size for i, size in enumerate(shape))
    )


def _masked(function: str, a: Any, where: Any, identity: Any) -> Any:
    """`a` with the identity where the mask is false; broadcast to the mask if that is larger."""
    where = as_bool(as_array(function, where, "where"))
    return select_where(where, a, np.asarray(identity, dtype_of(a))[()])


def _reduce(
    function: str,
    a: Any,
    axis: Any,
    keepdims: bool,
    operation: Callable[[Any, tuple[int, ...]], Any],
    identity: Any = None,
    where: Any = None,
) -> Any:
    if where is not None:
        a = _masked(function, a, where, identity)
    shape = a.shape
    axes = normalize_axes(function, axis, len(shape))
    result = operation(a, axes)
    return keep_axes(result, shape, axes) if keepdims else result


def _sum_dtype(dtype: Any, promote_integers: bool) -> Any:
    """Integers narrower than the default integer are summed in it."""
    if not promote_integers or is_inexact(dtype):
        return dtype
    default = canonicalize(np.uint64 if is_unsigned(dtype) else np.int64)
    return default if is_bool(dtype) or dtype.itemsize < default.itemsize else dtype


def accumulate_arguments(function: str, a: Any, dtype: Any, promote_integers: bool) -> Any:
    a = as_array(function, a)
    target = canonicalize(dtype) if dtype is not None else _sum_dtype(dtype_of(a), promote_integers)
    return as_type(a, target)


@public(static=STATIC)
def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Any:
    """The sum of the elements along axes.

    a: array or number.  dtype: that of the result and of the additions.  promote_integers: sum
    narrow integers in the default integer type.  Raises AxisError for a wrong axis.

    >>> import jato.numpy as jnp
    >>> jnp.sum(jnp.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    Array([4., 6.], dtype=float32)
    """
    return sum_of("sum", a, axis, dtype, out, keepdims, initial, where, promote_integers)


def sum_of(
    function: str,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Any:
    require_no_out(function, out)
    a = accumulate_arguments(function, a, dtype, promote_integers)
    total, add = structural.reduce_sum, elementwise.add
    if is_bool(dtype_of(a)):
        total, add = reduce.reduce_or, elementwise.bitwise_or
    result = _reduce(function, a, axis, keepdims, total, 0, where)
    return result if initial is None else _with_initial(function, add, result, initial)


def _with_initial(function: str, operation: Any, result: Any, initial: Any) -> Any:
    initial = cast(as_array(function, initial, "initial"), dtype_of(result))
    if shape_of(initial):
        raise ValueError(
            f"{function}: argument 'initial' must be a number, got {shape_of(initial)}"
        )
    return operation(result, initial)


@public(static=STATIC)
def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Any:
    """The product of the elements along axes; arguments as for `sum`.

    >>> import jato.numpy as jnp
    >>> jnp.prod(jnp.array([2, 3, 4]))
    Array(24, dtype=int32)
    """
    return prod_of("prod", a, axis, dtype, out, keepdims, initial, where, promote_integers)


def prod_of(
    function: str,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Any:
    require_no_out(function, out)
    a = accumulate_arguments(function, a, dtype, promote_integers)
    product, multiply = reduce.reduce_prod, elementwise.mul
    if is_bool(dtype_of(a)):
        product, multiply = reduce.reduce_and, elementwise.bitwise_and
    result = _reduce(function, a, axis, keepdims, product, 1, where)
    return result if initial is None else _with_initial(function, multiply, result, initial)


def lowest(dtype: Any) -> Any:
    if is_bool(dtype):
        return False
    if is_integer(dtype):
        return np.iinfo(dtype).min
    return complex(-math.inf, -math.inf) if is_complex(dtype) else -math.inf


def highest(dtype: Any) -> Any:
    if is_bool(dtype):
        return True
    if is_integer(dtype):
        return np.iinfo(dtype).max
    return complex(math.inf, math.inf) if is_complex(dtype) else math.inf


def extremum(
    function: str, a: Any, axis: Any, keepdims: bool, initial: Any, where: Any, largest: bool
) -> Any:
    a = as_array(function, a)
    a = as_type(a, dtype_of(a))
    axes = normalize_axes(function, axis, len(a.shape))
    if initial is None:
        if any_zero(a.shape, axes):
            raise ValueError(
                f"zero-size array to reduction operation {function} which has no identity "
                f"(shape {a.shape}, axis {axis}). Give 'initial'."
            )
        if where is not None:
            raise ValueError(f"{function}: argument 'where' needs 'initial'")
    identity = (lowest if largest else highest)(dtype_of(a))
    operation = reduce.reduce_max if largest else reduce.reduce_min
    result = _reduce(function, a, axes, keepdims, operation, identity, where)
    if initial is None:
        return result
    return _with_initial(function, elementwise.max if largest else elementwise.min, result, initial)


def any_zero(shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    return builtins.any(shape[i] == 0 for i in axes)


@public(static=STATIC)
def max(
    a: Any,
    axis: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """The largest element along axes; nan if there is one.

    a: array or number.  Raises ValueError when there is no element and no `initial`.

    >>> import jato.numpy as jnp
    >>> jnp.max(jnp.array([[1, 5], [3, 2]]), axis=1)
    Array([5, 3], dtype=int32)
    """
    require_no_out("max", out)
    return extremum("max", a, axis, keepdims, initial, where, True)


@public(static=STATIC)
def min(
    a: Any,
    axis: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """The smallest element along axes; nan if there is one.

    a: array or number.  Raises ValueError when there is no element and no `initial`.

    >>> import jato.numpy as jnp
    >>> jnp.min(jnp.array([[1, 5], [3, 2]]), axis=1)
    Array([1, 2], dtype=int32)
    """
    require_no_out("min", out)
    return extremum("min", a, axis, keepdims, initial, where, False)


amax, amin = max, min


@public(static=STATIC)
def minmax(
    a: Any,
    axis: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> tuple[Any, Any]:
    """(min, max) along axes, in one pass over the data.

    >>> import jato.numpy as jnp
    >>> jnp.minmax(jnp.array([3, 1, 2]))
    (Array(1, dtype=int32), Array(3, dtype=int32))
    """
    require_no_out("minmax", out)
    return (
        extremum("minmax", a, axis, keepdims, initial, where, False),
        extremum("minmax", a, axis, keepdims, initial, where, True),
    )


@public(static=STATIC)
def ptp(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
    """max - min along axes.

    >>> import jato.numpy as jnp
    >>> jnp.ptp(jnp.array([3, 1, 7]))
    Array(6, dtype=int32)
    """
    require_no_out("ptp", out)
    largest, smallest = (
        extremum("ptp", a, axis, keepdims, None, None, which) for which in (True, False)
    )
    return elementwise.sub(largest, smallest)


@public(static=STATIC)
def any(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None
) -> Any:
    """Is any element along the axes nonzero?

    >>> import jato.numpy as jnp
    >>> jnp.any(jnp.array([[0, 1], [0, 0]]), axis=1)
    Array([ True, False], dtype=bool)
    """
    require_no_out("any", out)
    return _reduce(
        "any", as_bool(as_array("any", a)), axis, keepdims, reduce.reduce_or, False, where
    )


@public(static=STATIC)
def all(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None
) -> Any:
    """Are all elements along the axes nonzero?

    >>> import jato.numpy as jnp
    >>> jnp.all(jnp.array([[0, 1], [1, 1]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    require_no_out("all", out)
    return _reduce(
        "all", as_bool(as_array("all", a)), axis, keepdims, reduce.reduce_and, True, where
    )


@public(static=("axis", "keepdims"))
def count_nonzero(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The number of nonzero elements along axes.

    >>> import jato.numpy as jnp
    >>> jnp.count_nonzero(jnp.array([0, 3, 4]))
    Array(2, dtype=int32)
    """
    nonzero = as_bool(as_array("count_nonzero", a))
    return sum_of("count_nonzero", nonzero, axis, keepdims=keepdims)


def arg_extremum(function: str, a: Any, axis: Any, keepdims: bool, operation: Any) -> Any:
    a = as_array(function, a)
    shape = a.shape
    rank = len(shape)
    if axis is None:
        a, position = structural.reshape(a, (math.prod(shape),)), 0
        axes = tuple(range(rank))
    else:
        position = normalize_axis(function, axis, rank)
        axes = (position,)
    if a.shape[position] == 0:
        raise ValueError(f"{function}: attempt to get {function} of an empty sequence")
    if is_complex(dtype_of(a)):  # the first element that is the extremum, or nan
        best = reduce.reduce_max if operation is reduce.argmax else reduce.reduce_min
        kept = tuple(i for i in range(len(a.shape)) if i != position)
        there = structural.broadcast_in_dim(best(a, (position,)), a.shape, kept)
        a, operation = elementwise.bitwise_or(elementwise.eq(a, there), is_nan(a)), reduce.argmax
    result = operation(a, position, canonicalize(np.int64))
    return keep_axes(result, shape, axes) if keepdims else result


@public(static=("axis", "keepdims"))
def argmax(a: Any, axis: Any = None, out: None = None, keepdims: bool | None = None) -> Any:
    """The index of the (first) largest element along an axis; nan counts as the largest.

    axis: an integer, or None for the index into the flattened array.  Complex numbers are ordered
    by real, then imaginary part.

    >>> import jato.numpy as jnp
    >>> jnp.argmax(jnp.array([1, 5, 5]))
    Array(1, dtype=int32)
    """
    require_no_out("argmax", out)
    return arg_extremum("argmax", a, axis, builtins.bool(keepdims), reduce.argmax)


@public(static=("axis", "keepdims"))
def argmin(a: Any, axis: Any = None, out: None = None, keepdims: bool | None = None) -> Any:
    """The index of the (first) smallest element along an axis; nan counts as the smallest.

    axis: an integer, or None for the index into the flattened array.

    >>> import jato.numpy as jnp
    >>> jnp.argmin(jnp.array([4, 1, 1]))
    Array(1, dtype=int32)
    """
    require_no_out("argmin", out)
    return arg_extremum("argmin", a, axis, builtins.bool(keepdims), reduce.argmin)


# ---- mean and variance


def _mean_types(dtype: Any, asked: Any) -> tuple[Any, Any]:
    """(dtype to compute in, dtype of the result).  16-bit floats are averaged in float32."""
    result = canonicalize(asked) if asked is not None else float_of(dtype)
    compute = float_of(result)
    if is_floating(compute) and compute.itemsize == 2:
        compute = np.dtype(np.float32)
    return compute, result


def _count(
    function: str, a: Any, axes: tuple[int, ...], where: Any, keepdims: bool, dtype: Any
) -> Any:
    """How many elements each result is made of: a Python number, or an array with a mask."""
    if where is None:
        return math.prod(a.shape[i] for i in axes)
    mask = as_bool(as_array(function, where, "where"))
    mask = broadcast(mask, common_shape(function, (a.shape, mask.shape)))
    return _reduce(function, as_type(mask, dtype), axes, keepdims, structural.reduce_sum)


def _divide(x: Any, count: Any) -> Any:
    if type(count) is int:
        return elementwise.div(x, np.asarray(count, dtype_of(x))[()])
    count = cast(count, dtype_of(x))
    return elementwise.div(*broadcast_operands("mean", (x, count)))


def _mean(function: str, a: Any, axes: tuple[int, ...], keepdims: bool, where: Any) -> Any:
    total = _reduce(function, a, axes, keepdims, structural.reduce_sum, 0, where)
    real = np.finfo(dtype_of(a)).dtype if is_complex(dtype_of(a)) else dtype_of(a)
    return _divide(total, _count(function, a, axes, where, keepdims, real))


@public(static=STATIC)
def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Any:
    """The arithmetic mean along axes; nan of no elements.

    a: array or number; integers are averaged as floats.  dtype: that of the result.

    >>> import jato.numpy as jnp
    >>> jnp.mean(jnp.arange(4))
    Array(1.5, dtype=float32)
    """
    return mean_of("mean", a, axis, dtype, out, keepdims, where)


def mean_of(
    function: str, a: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, where: Any = None
) -> Any:
    require_no_out(function, out)
    a = as_array(function, a)
    axes = normalize_axes(function, axis, len(a.shape))
    compute, result_dtype = _mean_types(dtype_of(a), dtype)
    result = _mean(function, as_type(a, compute), axes, keepdims, where)
    return as_type(result, result_dtype)


@public(static=("axis", "returned", "keepdims"))
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: bool = False
) -> Any:
    """The weighted mean along axes, and the sum of the weights if `returned`.

    weights: of a's shape, or one-dimensional along `axis`; None for equal weights.

    >>> import jato.numpy as jnp
    >>> jnp.average(jnp.array([1.0, 2.0]), weights=jnp.array([3.0, 1.0]))
    Array(1.25, dtype=float32)
    """
    if weights is None:
        a = as_array("average", a)
        axes = normalize_axes("average", axis, len(a.shape))
        result = mean_of("average", a, axis, None, None, keepdims)
        total: Any = np.asarray(math.prod(a.shape[i] for i in axes), dtype_of(result))
    else:
        a, weights = promote_dtypes("average", a, weights, inexact=True)
        if a.shape != weights.shape:
            if axis is None:
                raise TypeError("average: axis must be given when shapes of a and weights differ")
            axes = normalize_axes("average", axis, len(a.shape))
            if weights.shape != tuple(a.shape[i] for i in axes):
                raise ValueError(
                    f"average: shape {weights.shape} of 'weights' is neither that of 'a', {a.shape}, "
                    f"nor that of its axis {axis}"
                )
            order = sorted(range(len(axes)), key=lambda k: axes[k])
            weights = structural.transpose(weights, tuple(order))
            weights = structural.broadcast_in_dim(weights, a.shape, tuple(sorted(axes)))
        total = sum_of("average", weights, axis, keepdims=keepdims)
        weighted = elementwise.mul(a, weights)
        result = elementwise.div(sum_of("average", weighted, axis, keepdims=keepdims), total)
    if not returned:
        return result
    return result, structural.broadcast_in_dim(
        total,
        result.shape,
        tuple(range(len(result.shape) - len(shape_of(total)), len(result.shape))),
    )


def variance_of(
    function: str,
    a: Any,
    axis: Any,
    dtype: Any,
    out: Any,
    ddof: Any,
    keepdims: bool,
    where: Any,
    mean: Any,
    root: bool = False,
) -> Any:
    """The variance, or its root: the standard deviation.  Two passes, hence stable."""
    require_no_out(function, out)
    a = as_array(function, a)
    axes = normalize_axes(function, axis, len(a.shape))
    compute, result_dtype = _mean_types(dtype_of(a), dtype)
    if is_complex(dtype_of(a)) and not is_complex(compute):
        compute = dtype_of(a)
    if is_complex(result_dtype):
        result_dtype = np.finfo(result_dtype).dtype
    a = as_type(a, compute)
    center = (
        _mean(function, a, axes, True, where)
        if mean is None
        else as_type(as_array(function, mean, "mean"), compute)
    )
    a, center = broadcast_operands(function, (a, center))
    deviation = elementwise.sub(a, center)
    if is_complex(compute):
        square = elementwise.add(
            elementwise.square(elementwise.real(deviation)),
            elementwise.square(elementwise.imag(deviation)),
        )
    else:
        square = elementwise.square(deviation)
    total = _reduce(function, square, axes, keepdims, structural.reduce_sum, 0, where)
    count = _count(function, square, axes, where, keepdims, dtype_of(square))
    if type(count) is int:
        freedom: Any = np.asarray(builtins.max(count - ddof, 0), dtype_of(square))[()]
        result = elementwise.div(total, freedom)
    else:
        freedom = elementwise.sub(count, np.asarray(ddof, dtype_of(square))[()])
        freedom = elementwise.max(freedom, np.asarray(0, dtype_of(square))[()])
        result = _divide(total, freedom)
    return as_type(elementwise.sqrt(result) if root else result, result_dtype)


def _freedom(function: str, ddof: Any, correction: Any) -> Any:
    if correction is None:
        return ddof
    if ddof != 0:
        raise ValueError(f"{function}: give 'ddof' or 'correction', not both")
    return correction


@public(static=STATIC)
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: float | None = None,
) -> Any:
    """The variance along axes: the mean of |a - mean(a)|**2.

    ddof (or correction): the divisor is the count less this.  mean: the mean, if known already,
    with the reduced axes kept.

    >>> import jato.numpy as jnp
    >>> jnp.var(jnp.array([1.0, 2.0, 3.0, 4.0]))
    Array(1.25, dtype=float32)
    """
    ddof = _freedom("var", ddof, correction)
    return variance_of("var", a, axis, dtype, out, ddof, keepdims, where, mean)


@public(static=STATIC)
def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: float | None = None,
) -> Any:
    """The standard deviation along axes, the square root of `var`.

    >>> import jato.numpy as jnp
    >>> jnp.std(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    ddof = _freedom("std", ddof, correction)
    return variance_of("std", a, axis, dtype, out, ddof, keepdims, where, mean, root=True)
