"""Running sums and products along an axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jato.base.dtypes import canonicalize, is_bool
from jato.jit.eager import public
from jato.numpy.logic import as_bool
from jato.numpy.promote import as_array, dtype_of, normalize_axis, require_no_out
from jato.numpy.reductions import accumulate_arguments, as_type
from jato.ops import cumulative, structural


def cumulate(function: str, a: Any, axis: Any, dtype: Any, operation: Any, out: Any = None) -> Any:
    """`function` is the public function that errors are to name."""
    require_no_out(function, out)
    a = as_array(function, a)
    if dtype is None:
        dtype = np.int64 if is_bool(dtype_of(a)) else dtype_of(a)
    a = as_type(a, canonicalize(dtype))
    if axis is None:
        a, axis = structural.reshape(a, (math.prod(a.shape),)), 0
    axis = normalize_axis(function, axis, len(a.shape))
    if is_bool(dtype_of(a)):  # a sum of bools is "any", a product "all"
        return as_bool(operation(as_type(a, np.int32), axis))
    return operation(a, axis)


@public(static=("axis", "dtype"))
def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """The running sums along an axis; of the flattened array if axis is None.

    >>> import jato.numpy as jnp
    >>> jnp.cumsum(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return cumulate("cumsum", a, axis, dtype, cumulative.cumsum, out)


@public(static=("axis", "dtype"))
def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """The running products along an axis; of the flattened array if axis is None.

    >>> import jato.numpy as jnp
    >>> jnp.cumprod(jnp.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return cumulate("cumprod", a, axis, dtype, cumulative.cumprod, out)


def _cumulative(
    function: str,
    x: Any,
    axis: Any,
    dtype: Any,
    include_initial: bool,
    operation: Any,
    initial: int,
) -> Any:
    x = as_array(function, x)
    if axis is None:
        if len(x.shape) != 1:
            raise ValueError(
                f"{function}: argument 'axis' is needed for an array of rank {len(x.shape)}"
            )
        axis = 0
    axis = normalize_axis(function, axis, len(x.shape))
    result = cumulate(
        function, accumulate_arguments(function, x, dtype, True), axis, dtype, operation
    )
    if not include_initial:
        return result
    config = [(1, 0, 0) if i == axis else (0, 0, 0) for i in range(len(x.shape))]
    return structural.pad(result, np.asarray(initial, dtype_of(result))[()], config)


@public(static=("axis", "dtype", "include_initial"))
def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """The running sums along an axis, with a 0 in front if `include_initial`.

    >>> import jato.numpy as jnp
    >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """
    return _cumulative("cumulative_sum", x, axis, dtype, include_initial, cumulative.cumsum, 0)


@public(static=("axis", "dtype", "include_initial"))
def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """The running products along an axis, with a 1 in front if `include_initial`.

    >>> import jato.numpy as jnp
    >>> jnp.cumulative_prod(jnp.array([1, 2, 3]), include_initial=True)
    Array([1, 1, 2, 6], dtype=int32)
    """
    return _cumulative("cumulative_prod", x, axis, dtype, include_initial, cumulative.cumprod, 1)
