"""Differences and integrals of sampled functions: diff, gradient, trapezoid, unwrap."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np
from jato.base.dtypes import is_bool, is_floating, is_integer
from jato.jit.eager import public
from jato.numpy.makers import select_where
from jato.numpy.manipulation import as_weak_array, concatenate, moveaxis
from jato.numpy.promote import (
    as_array,
    broadcast,
    cast,
    dtype_of,
    normalize_axes,
    normalize_axis,
    promote_dtypes,
)
from jato.numpy.reductions import as_type
from jato.ops import cumulative, elementwise, structural


def _part(x: Any, axis: int, begin: int, end: int, step: int = 1) -> Any:
    return structural.slice_in_dim(x, begin, end, step, axis)


@public(static=("n", "axis"))
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """The n-th differences of neighbours along an axis.

    prepend, append: values put at the ends first.

    >>> import jato.numpy as jnp
    >>> jnp.diff(jnp.array([1, 4, 9]))
    Array([3, 5], dtype=int32)
    """
    a = as_array("diff", a)
    if n < 0:
        raise ValueError(f"diff: argument 'n' must not be negative, got {n}")
    if not a.shape:
        raise ValueError("diff: argument 'a' must have rank 1 or more")
    axis = normalize_axis("diff", axis, len(a.shape))
    if n == 0:
        return a
    ends = []
    for value in (prepend, append):
        if value is None:
            continue
        value = as_weak_array("diff", value)
        if not value.shape:
            value = broadcast(value, tuple(1 if i == axis else s for i, s in enumerate(a.shape)))
        ends.append(value)
    if ends:
        parts = [ends[0], a] if prepend is not None else [a]
        a = concatenate(parts + ([ends[-1]] if append is not None else []), axis)
    for _ in range(n):
        size = a.shape[axis]
        high, low = (
            _part(a, axis, builtins.min(1, size), size),
            _part(a, axis, 0, builtins.max(size - 1, 0)),
        )
        a = elementwise.ne(high, low) if is_bool(dtype_of(a)) else elementwise.sub(high, low)
    return a


@public()
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """The differences of neighbours in the flattened array, with values added at the ends.

    >>> import jato.numpy as jnp
    >>> jnp.ediff1d(jnp.array([1, 4, 9]), to_begin=jnp.array([0]))
    Array([0, 3, 5], dtype=int32)
    """
    ary = as_array("ediff1d", ary)
    result = diff(structural.reshape(ary, (math.prod(ary.shape),)))
    dtype = dtype_of(result)

    def end(value: Any) -> Any:
        value = cast(as_array("ediff1d", value), dtype)
        return structural.reshape(value, (math.prod(value.shape),))

    parts = ([] if to_begin is None else [end(to_begin)]) + [result]
    return concatenate(parts + ([] if to_end is None else [end(to_end)]))


def _spacing(f: Any, spacing: Any, axis: int) -> Any:
    """A number, or positions along the axis in f's dtype."""
    spacing = cast(as_array("gradient", spacing), dtype_of(f))
    if spacing.shape and spacing.shape != (f.shape[axis],):
        raise ValueError(
            f"gradient: distances must be numbers or match the axis: shape {spacing.shape} for axis "
            f"{axis} of size {f.shape[axis]}"
        )
    return spacing


def _gradient(f: Any, spacing: Any, axis: int) -> Any:
    size = f.shape[axis]
    if size < 2:
        raise ValueError(f"gradient: axis {axis} has size {size}; at least 2 elements are needed")
    left, middle, right = (
        _part(f, axis, 0, size - 2),
        _part(f, axis, 1, size - 1),
        _part(f, axis, 2, size),
    )
    first = elementwise.sub(_part(f, axis, 1, 2), _part(f, axis, 0, 1))
    last = elementwise.sub(_part(f, axis, size - 1, size), _part(f, axis, size - 2, size - 1))
    if not spacing.shape:
        inner = elementwise.div(elementwise.sub(right, left), elementwise.mul(spacing, 2))
        return structural.concatenate(
            [elementwise.div(first, spacing), inner, elementwise.div(last, spacing)], axis
        )
    steps = diff(spacing)
    spread = lambda v, like: structural.broadcast_in_dim(v, like.shape, (axis,))  # noqa: E731
    h1 = spread(_part(steps, 0, 0, size - 2), middle)
    h2 = spread(_part(steps, 0, 1, size - 1), middle)
    both = elementwise.add(h1, h2)
    terms = [
        elementwise.mul(left, elementwise.neg(elementwise.div(h2, elementwise.mul(h1, both)))),
        elementwise.mul(middle, elementwise.div(elementwise.sub(h2, h1), elementwise.mul(h1, h2))),
        elementwise.mul(right, elementwise.div(h1, elementwise.mul(h2, both))),
    ]
    inner = elementwise.add(elementwise.add(terms[0], terms[1]), terms[2])
    first = elementwise.div(first, spread(_part(steps, 0, 0, 1), first))
    last = elementwise.div(last, spread(_part(steps, 0, size - 2, size - 1), last))
    return structural.concatenate([first, inner, last], axis)


@public(static=("axis", "edge_order"))
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int | None = None) -> Any:
    """Derivatives along axes by central differences; one-sided at the ends.

    varargs: the distance of samples (1 by default), or positions; one for all axes or one per axis.
    Returns an array for one axis, else a list.

    >>> import jato.numpy as jnp
    >>> jnp.gradient(jnp.array([0.0, 1.0, 4.0]))
    Array([1., 2., 3.], dtype=float32)
    """
    if edge_order is not None and edge_order != 1:
        raise NotImplementedError("gradient: argument 'edge_order' must be 1")
    f = promote_dtypes("gradient", f, inexact=True)[0]
    axes = normalize_axes("gradient", axis, len(f.shape))
    spacings = list(varargs) if varargs else [1.0]
    if len(spacings) == 1:
        spacings *= len(axes)
    if len(spacings) != len(axes):
        raise TypeError(f"gradient: {len(spacings)} distances for {len(axes)} axes")
    results = [_gradient(f, _spacing(f, s, i), i) for s, i in zip(spacings, axes, strict=True)]
    return results[0] if len(results) == 1 else results


@public(static=("axis",))
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral along an axis by the trapezoidal rule.

    x: the positions of the samples; dx: their distance, if equal.

    >>> import jato.numpy as jnp
    >>> jnp.trapezoid(jnp.array([0.0, 1.0, 2.0]))
    Array(2., dtype=float32)
    """
    if x is None:
        y = promote_dtypes("trapezoid", y, inexact=True)[0]
        step: Any = cast(as_array("trapezoid", dx), dtype_of(y))
    else:
        y, x = promote_dtypes("trapezoid", y, x, inexact=True)
        if len(x.shape) == 1:
            step = diff(x)
        else:
            step = moveaxis(diff(x, axis=axis), axis, -1)
    y = moveaxis(y, axis, -1)
    size = y.shape[-1]
    last = len(y.shape) - 1
    pairs = elementwise.add(_part(y, last, 1, size), _part(y, last, 0, size - 1))
    if step.shape:
        shape = np.broadcast_shapes(pairs.shape, step.shape)
        pairs, step = broadcast(pairs, shape), broadcast(step, shape)
    half = np.asarray(0.5, dtype_of(pairs))[()]
    return elementwise.mul(
        structural.reduce_sum(elementwise.mul(pairs, step), (len(pairs.shape) - 1,)), half
    )


@public(static=("axis",))
def unwrap(p: Any, discont: Any = None, axis: int = -1, period: Any = 2 * math.pi) -> Any:
    """Phases made continuous along an axis, by adding multiples of the period.

    discont: jumps up to this (half the period by default) are left alone.

    >>> import jato.numpy as jnp
    >>> jnp.unwrap(jnp.array([0.0, 6.0]), period=6.0)
    Array([0., 0.], dtype=float32)
    """
    p = as_array("unwrap", p)
    dtype = dtype_of(p)
    whole = is_integer(dtype) and isinstance(period, int)
    if not is_floating(dtype) and not whole:
        p = promote_dtypes("unwrap", p, inexact=True)[0]
        dtype = dtype_of(p)
    axis = normalize_axis("unwrap", axis, len(p.shape))
    period = cast(as_array("unwrap", period), dtype)
    two = np.asarray(2, dtype)[()]
    half = (
        elementwise.floor_divide(period, two) if is_integer(dtype) else elementwise.div(period, two)
    )
    steps = diff(p, axis=axis)
    shifted = elementwise.sub(elementwise.remainder(elementwise.add(steps, half), period), half)
    at_edge = elementwise.bitwise_and(
        elementwise.eq(shifted, elementwise.neg(half)),
        elementwise.gt(steps, np.zeros((), dtype)[()]),
    )
    shifted = select_where(at_edge, half, shifted)
    correction = elementwise.sub(shifted, steps)
    limit = half if discont is None else cast(as_array("unwrap", discont), dtype)
    small = elementwise.lt(elementwise.abs(steps), limit)
    correction = select_where(small, np.zeros((), dtype)[()], correction)
    total = cumulative.cumsum(correction, axis)
    size = p.shape[axis]
    rest = elementwise.add(_part(p, axis, 1, size), as_type(total, dtype))
    return structural.concatenate([_part(p, axis, 0, 1), rest], axis) if size else p
