"""Reductions and running sums that leave out nan."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from jato.base.dtypes import is_inexact
from jato.jit.eager import public
from jato.numpy.cumulative import cumulate
from jato.numpy.logic import as_bool
from jato.numpy.makers import is_nan, select_where
from jato.numpy.promote import as_array, broadcast_operands, dtype_of, require_no_out
from jato.numpy.reductions import (
    STATIC,
    all,
    arg_extremum,
    extremum,
    highest,
    lowest,
    mean_of,
    prod_of,
    sum_of,
    variance_of,
)
from jato.ops import cumulative, elementwise, reduce


def _without_nan(function: str, a: Any, value: Any) -> tuple[Any, Any]:
    """(a with nan replaced, mask of nan or None)."""
    a = as_array(function, a)
    if not is_inexact(dtype_of(a)):
        return a, None
    mask = is_nan(a)
    return select_where(mask, np.asarray(value, dtype_of(a))[()], a), mask


@public(static=STATIC)
def nansum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """The sum along axes, nan counting as 0; arguments as for `sum`.

    >>> import jato.numpy as jnp
    >>> jnp.nansum(jnp.array([1.0, jnp.nan]))
    Array(1., dtype=float32)
    """
    a = _without_nan("nansum", a, 0)[0]
    return sum_of("nansum", a, axis, dtype, out, keepdims, initial, where)


@public(static=STATIC)
def nanprod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """The product along axes, nan counting as 1; arguments as for `sum`.

    >>> import jato.numpy as jnp
    >>> jnp.nanprod(jnp.array([2.0, jnp.nan]))
    Array(2., dtype=float32)
    """
    a = _without_nan("nanprod", a, 1)[0]
    return prod_of("nanprod", a, axis, dtype, out, keepdims, initial, where)


def _nan_extremum(
    function: str, a: Any, axis: Any, keepdims: bool, initial: Any, where: Any, largest: bool
) -> Any:
    a = as_array(function, a)
    a, mask = _without_nan(function, a, (lowest if largest else highest)(dtype_of(a)))
    result = extremum(function, a, axis, keepdims, initial, where, largest)
    if mask is None or initial is not None:
        return result
    nothing = all(mask, axis, None, keepdims)
    return select_where(nothing, np.asarray(math.nan, dtype_of(a))[()], result)


@public(static=STATIC)
def nanmax(
    a: Any,
    axis: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """The largest element along axes that is not nan; nan if there is none.

    >>> import jato.numpy as jnp
    >>> jnp.nanmax(jnp.array([1.0, jnp.nan]))
    Array(1., dtype=float32)
    """
    require_no_out("nanmax", out)
    return _nan_extremum("nanmax", a, axis, keepdims, initial, where, True)


@public(static=STATIC)
def nanmin(
    a: Any,
    axis: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """The smallest element along axes that is not nan; nan if there is none.

    >>> import jato.numpy as jnp
    >>> jnp.nanmin(jnp.array([1.0, jnp.nan]))
    Array(1., dtype=float32)
    """
    require_no_out("nanmin", out)
    return _nan_extremum("nanmin", a, axis, keepdims, initial, where, False)


def _nan_arg(
    function: str, a: Any, axis: Any, keepdims: bool, worst: Callable[..., Any], operation: Any
) -> Any:
    a = as_array(function, a)
    a, mask = _without_nan(function, a, worst(dtype_of(a)))
    result = arg_extremum(function, a, axis, keepdims, operation)
    if mask is None:
        return result
    return select_where(
        all(mask, axis, None, keepdims), np.asarray(-1, dtype_of(result))[()], result
    )


@public(static=("axis", "keepdims"))
def nanargmax(a: Any, axis: Any = None, out: None = None, keepdims: bool | None = None) -> Any:
    """The index of the largest element that is not nan; -1 if there is none.

    >>> import jato.numpy as jnp
    >>> jnp.nanargmax(jnp.array([jnp.nan, 1.0]))
    Array(1, dtype=int32)
    """
    require_no_out("nanargmax", out)
    return _nan_arg("nanargmax", a, axis, builtins.bool(keepdims), lowest, reduce.argmax)


@public(static=("axis", "keepdims"))
def nanargmin(a: Any, axis: Any = None, out: None = None, keepdims: bool | None = None) -> Any:
    """The index of the smallest element that is not nan; -1 if there is none.

    >>> import jato.numpy as jnp
    >>> jnp.nanargmin(jnp.array([jnp.nan, 1.0]))
    Array(1, dtype=int32)
    """
    require_no_out("nanargmin", out)
    return _nan_arg("nanargmin", a, axis, builtins.bool(keepdims), highest, reduce.argmin)


def _nan_mask(function: str, a: Any, where: Any) -> tuple[Any, Any]:
    """(a without nan, mask of what counts or None)."""
    a, mask = _without_nan(function, a, 0)
    if mask is None:
        return a, where
    counts = elementwise.bitwise_not(mask)
    if where is None:
        return a, counts
    where = as_bool(as_array(function, where, "where"))
    return a, elementwise.bitwise_and(*broadcast_operands(function, (counts, where)))


@public(static=STATIC)
def nanmean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    where: Any = None,
) -> Any:
    """The mean along axes of the elements that are not nan.

    >>> import jato.numpy as jnp
    >>> jnp.nanmean(jnp.array([1.0, jnp.nan, 3.0]))
    Array(2., dtype=float32)
    """
    a, where = _nan_mask("nanmean", a, where)
    return mean_of("nanmean", a, axis, dtype, out, keepdims, where)


@public(static=STATIC)
def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
) -> Any:
    """The variance along axes of the elements that are not nan.

    >>> import jato.numpy as jnp
    >>> jnp.nanvar(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    a, where = _nan_mask("nanvar", a, where)
    return variance_of("nanvar", a, axis, dtype, out, ddof, keepdims, where, mean)


@public(static=STATIC)
def nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
) -> Any:
    """The standard deviation along axes of the elements that are not nan.

    >>> import jato.numpy as jnp
    >>> jnp.nanstd(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    a, where = _nan_mask("nanstd", a, where)
    return variance_of("nanstd", a, axis, dtype, out, ddof, keepdims, where, mean, root=True)


@public(static=("axis", "dtype"))
def nancumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """The running sums along an axis, nan counting as 0.

    >>> import jato.numpy as jnp
    >>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 3.0]))
    Array([1., 1., 4.], dtype=float32)
    """
    a = _without_nan("nancumsum", a, 0)[0]
    return cumulate("nancumsum", a, axis, dtype, cumulative.cumsum, out)


@public(static=("axis", "dtype"))
def nancumprod(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """The running products along an axis, nan counting as 1.

    >>> import jato.numpy as jnp
    >>> jnp.nancumprod(jnp.array([1.0, jnp.nan, 3.0]))
    Array([1., 1., 3.], dtype=float32)
    """
    a = _without_nan("nancumprod", a, 1)[0]
    return cumulate("nancumprod", a, axis, dtype, cumulative.cumprod, out)
