"""What sorting tells: the most frequent value and ranks; and the standard error of the mean."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jato.numpy as jnp
from jato.base.dtypes import is_complex
from jato.jit.eager import public
from jato.lax import cummax
from jato.numpy.promote import as_array, dtype_of, normalize_axis
from jato.scipy.special.arguments import named_operands


class ModeResult(NamedTuple):
    """The most frequent values and how often they came."""

    mode: Any
    count: Any


def _check_policy(function: str, nan_policy: str, allowed: tuple[str, ...]) -> None:
    if nan_policy not in allowed:
        known = " or ".join(map(repr, allowed))
        raise ValueError(f"{function}: argument 'nan_policy' must be {known}, got {nan_policy!r}")


def _lines(function: str, a: Any, axis: int | None) -> tuple[Any, int]:
    """The array with the axis to work along last, and where that axis was; None: all in one line."""
    a = as_array(function, a, "a")
    if axis is None:
        return jnp.ravel(a), 0
    if not a.shape:
        a = jnp.reshape(a, (1,))
    axis = normalize_axis(function, axis, len(a.shape))
    return jnp.moveaxis(a, axis, -1), axis


def _is_nan(a: Any) -> Any:
    return a != a


def _starts(ordered: Any) -> Any:
    """Where a run of equal values begins, along the last axis of sorted values; NaN are equal."""
    first = jnp.ones((*ordered.shape[:-1], 1), bool)
    after, before = ordered[..., 1:], ordered[..., :-1]
    return jnp.concatenate([first, (after != before) & ~(_is_nan(after) & _is_nan(before))], -1)


@public(static=("axis", "nan_policy", "keepdims"))
def mode(
    a: Any, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """The most frequent value along an axis (None: of all) and its count: (mode, count).

    The least one of several.  NaN count as equal values, greater than all others; without values
    the mode is NaN.  The mode has the dtype of `a`, the count is of integers.
    ValueError for another nan_policy, TypeError for complex values.

    >>> import jato.numpy as jnp
    >>> mode(jnp.array([3, 1, 3, 2]))
    ModeResult(mode=Array(3, dtype=int32), count=Array(2, dtype=int32))
    """
    _check_policy("mode", nan_policy, ("propagate",))
    lines, place = _lines("mode", a, axis)
    if is_complex(dtype_of(lines)):
        raise TypeError(f"mode: argument 'a' must be real, got {dtype_of(lines)}")
    value, count = _longest_run(lines)
    if not keepdims:
        return ModeResult(value, count)
    if axis is None:
        shape = (1,) * len(getattr(a, "shape", ()))
        return ModeResult(value.reshape(shape), count.reshape(shape))
    return ModeResult(jnp.expand_dims(value, place), jnp.expand_dims(count, place))


def _longest_run(lines: Any) -> tuple[Any, Any]:
    """The first of the most frequent values along the last axis, and its count."""
    if lines.shape[-1] == 0:
        shape = lines.shape[:-1]
        return jnp.full(shape, math.nan), jnp.zeros(shape, int)
    ordered = jnp.sort(lines, -1)
    places = jnp.arange(lines.shape[-1])
    begun = cummax(jnp.where(_starts(ordered), places, 0), len(lines.shape) - 1)
    length = places - begun + 1  # of the run of equal values so far
    longest = jnp.argmax(length, -1, keepdims=True)
    return jnp.take_along_axis(ordered, longest, -1)[..., 0], jnp.max(length, -1)


_METHODS = ("average", "min", "max", "dense", "ordinal")


@public(static=("method", "axis", "nan_policy"))
def rankdata(
    a: Any, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Any:
    """The ranks of values, from 1, along an axis (None: of all, flattened).

    method: what equal values get: the "average", "min" or "max" of their ranks; "dense": as "min",
    and the next value the next rank; "ordinal": ranks by position.  Floats; where there is a NaN, all
    are NaN.  ValueError for another method or nan_policy.

    >>> import jato.numpy as jnp
    >>> rankdata(jnp.array([10, 30, 10]))
    Array([1.5, 3. , 1.5], dtype=float32)
    """
    _check_policy("rankdata", nan_policy, ("propagate",))
    if method not in _METHODS:
        raise ValueError(
            f"rankdata: argument 'method' must be one of {', '.join(map(repr, _METHODS))}, got {method!r}"
        )
    lines, place = _lines("rankdata", a, axis)
    n, last = lines.shape[-1], len(lines.shape) - 1
    order = jnp.argsort(lines, -1)
    position = jnp.argsort(order, -1)  # of each value among the sorted ones
    if method == "ordinal":
        ranks = position + 1
    else:
        starts = _starts(jnp.take_along_axis(lines, order, -1)) if n else lines != lines
        places = jnp.arange(n)
        least = cummax(jnp.where(starts, places, 0), last) + 1
        ends = jnp.concatenate(
            [starts[..., 1:], jnp.ones((*starts.shape[:-1], min(n, 1)), bool)], -1
        )
        most = n - jnp.flip(cummax(jnp.flip(jnp.where(ends, n - 1 - places, 0), -1), last), -1)
        found = {
            "average": lambda: 0.5 * (least + most), "min": lambda: least, "max": lambda: most,
            "dense": lambda: jnp.cumsum(starts, -1),
        }[method]()  # fmt: skip
        ranks = jnp.take_along_axis(found, position, -1)
    ranks = ranks.astype(jnp.result_type(float))
    ranks = jnp.where(jnp.any(_is_nan(lines), -1, keepdims=True), math.nan, ranks)
    return jnp.moveaxis(ranks, -1, place)


@public(static=("axis", "ddof", "nan_policy", "keepdims"))
def sem(
    a: Any,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """The standard error of the mean along an axis (None: of all): std(a, ddof) / sqrt(n).  Floats.

    nan_policy: "propagate", or "omit" to leave NaN out.  ValueError for another one.

    >>> import jato.numpy as jnp
    >>> float(sem(jnp.array([1.0, 3.0])))
    1.0
    """
    _check_policy("sem", nan_policy, ("propagate", "omit"))
    (a,) = named_operands("sem", a=a)
    a = a if a.shape else a.reshape(1)
    if nan_policy == "omit":
        spread = jnp.nanstd(a, axis, ddof=ddof, keepdims=keepdims)
        count = jnp.sum(~_is_nan(a), axis, keepdims=keepdims)
        return spread / jnp.sqrt(count.astype(a.dtype))
    spread = jnp.std(a, axis, ddof=ddof, keepdims=keepdims)
    n = math.prod(a.shape) if axis is None else a.shape[normalize_axis("sem", axis, len(a.shape))]
    return spread / math.sqrt(n) if n else spread * math.nan
