"""Ranges and windows: arange, linspace, logspace, geomspace, hanning and its kin.

linspace meets both ends to the bit.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np
from jato.base.dtypes import canonicalize, is_complex, is_integer
from jato.base.errors import require_unsharded
from jato.core.array import from_host, require_concrete, require_integer
from jato.core.trace import Tracer
from jato.jit.eager import public
from jato.numpy.creation import asarray, placed_on
from jato.numpy.manipulation import broadcast_to, moveaxis
from jato.numpy.promote import (
    as_array,
    as_operand,
    broadcast,
    dtype_of,
    float_of,
    join_types,
    normalize_axis,
    promote_dtypes,
)
from jato.numpy.reductions import as_type
from jato.ops import elementwise, structural

# ---- ranges


def _range_value(x: Any, argument: str) -> Any:
    if type(x) in (int, float):
        return x
    if isinstance(x, Tracer):
        x = require_concrete(
            x, "arange", argument, "Its value decides the result's shape; mark it static."
        )
    host = np.asarray(x)
    if host.dtype.kind in "OUSMm":
        raise TypeError(f"arange: argument '{argument}' must be a number, got {x!r:.60}")
    if host.ndim:
        raise TypeError(f"arange: argument '{argument}' must be a number, got shape {host.shape}")
    return host.item() if not isinstance(x, np.generic) else x


@public(static=("size", "dtype"))
def _arange(start: Any, step: Any, size: int, dtype: Any) -> Any:
    if is_integer(dtype):
        # as integers all the way; wraps as conversion would
        steps = structural.iota(dtype, size)
    else:
        steps = structural.iota(dtype, size)
    start, step = (as_type(as_array("arange", v), dtype) for v in (start, step))
    return elementwise.add(elementwise.mul(steps, step), start)


@public(static=("size", "dtype"), name="arange")
def _iota(size: int, dtype: Any) -> Any:
    return structural.iota(dtype, size)


def arange(
    start: Any,
    stop: Any = None,
    step: Any = None,
    dtype: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Evenly spaced values in [start, stop), `step` apart; [0, start) for one argument.

    The arguments must be known when traced, since they decide the size.

    >>> import jato.numpy as jnp
    >>> jnp.arange(2, 8, 3)
    Array([2, 5], dtype=int32)
    """
    require_unsharded("arange", out_sharding)
    given = [x for x in (start, stop, step) if x is not None]
    if stop is None:
        start, stop = 0, start
    start, stop = _range_value(start, "start"), _range_value(stop, "stop")
    step = 1 if step is None else _range_value(step, "step")
    if builtins.any(isinstance(v, (complex, np.complexfloating)) for v in (start, stop, step)):
        raise TypeError("arange: complex numbers have no order")
    if dtype is None:
        target = join_types(*(as_operand("arange", x) for x in given))[0]
    else:
        target = canonicalize(dtype)
    if step == 0:
        raise ZeroDivisionError("arange: argument 'step' must not be zero")
    length = (stop - start) / step
    if not math.isfinite(length):
        raise ValueError(
            f"arange: arguments must be finite numbers, got start {start}, stop {stop}, step {step}"
        )
    size = builtins.max(0, math.ceil(length))
    if type(start) is int and type(step) is int and type(stop) is int:
        size = builtins.max(0, -((start - stop) // step))
    if target == np.bool_:
        return placed_on(from_host(np.arange(start, stop, step, dtype=bool)), device)
    if start == 0 and step == 1:
        return placed_on(_iota(size, target), device)
    if is_integer(target) and type(start) is int and type(step) is int:
        return placed_on(_arange(_fit(start, target), _fit(step, target), size, target), device)
    if is_integer(target):
        start, step = int(start), int(step)
        return placed_on(_arange(_fit(start, target), _fit(step, target), size, target), device)
    return placed_on(_arange(float(start), float(step), size, target), device)


def _fit(value: int, dtype: Any) -> Any:
    """The integer modulo 2**bits, as the dtype's scalar."""
    bits = dtype.itemsize * 8
    value &= (1 << bits) - 1
    if dtype.kind == "i" and value >> (bits - 1):
        value -= 1 << bits
    return dtype.type(value)


def _linspace(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int) -> Any:
    """(values, step).  The first and the last value are start and stop to the bit."""
    start, stop = promote_dtypes("linspace", start, stop, inexact=True)
    target = float_of(dtype_of(start))
    shape = np.broadcast_shapes(start.shape, stop.shape)
    start, stop = (
        broadcast_to(as_type(start, target), shape),
        broadcast_to(as_type(stop, target), shape),
    )
    axis = normalize_axis("linspace", axis, len(shape) + 1)
    intervals = num - 1 if endpoint else num
    real = np.finfo(target).dtype if is_complex(target) else target
    if intervals > 0:
        step = elementwise.div(elementwise.sub(stop, start), np.asarray(intervals, target)[()])
    else:
        step = elementwise.mul(elementwise.sub(stop, start), np.asarray(math.nan, target)[()])
    if num == 0:
        values = structural.full((0, *shape), 0, target)
    elif intervals <= 0:
        values = structural.reshape(start, (1, *shape))
    else:
        full_shape = (num, *shape)
        index = structural.broadcasted_iota(real, full_shape, 0)
        weight = elementwise.div(index, np.asarray(intervals, real)[()])
        first, last = broadcast(start, full_shape), broadcast(stop, full_shape)
        rest = elementwise.sub(np.asarray(1, real)[()], weight)
        rest, weight = (as_type(w, target) for w in (rest, weight))
        values = elementwise.add(elementwise.mul(first, rest), elementwise.mul(last, weight))
        if endpoint:
            at_end = elementwise.eq(index, np.asarray(num - 1, real)[()])
            values = elementwise.select_n(at_end, values, last)
    values = moveaxis(values, 0, axis) if axis else values
    if is_integer(dtype) and not is_complex(target):
        values = elementwise.floor(values)
    return as_type(values, dtype), step


@public(static=("num", "endpoint", "retstep", "dtype", "axis"), name="linspace")
def _linspace_public(
    start: Any, stop: Any, num: int, endpoint: bool, retstep: bool, dtype: Any, axis: int
) -> Any:
    if dtype is None:
        dtype = float_of(join_types(as_array("linspace", start), as_array("linspace", stop))[0])
    values, step = _linspace(start, stop, num, endpoint, dtype, axis)
    return (values, step) if retstep else values


def _known_count(function: str, num: Any) -> int:
    count = require_integer(num, function, "num")
    if count < 0:
        raise ValueError(f"{function}: argument 'num' must not be negative, got {count}")
    return count


def _listed(x: Any) -> Any:
    return asarray(x) if isinstance(x, (list, tuple)) else x


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """`num` evenly spaced values from start to stop, which are met exactly.

    start, stop: numbers or arrays that broadcast; `axis` is the new axis.  endpoint: is stop the
    last value?  retstep: return (values, step).

    >>> import jato.numpy as jnp
    >>> jnp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    count = _known_count("linspace", num)
    dtype = None if dtype is None else canonicalize(dtype)
    start, stop = _listed(start), _listed(stop)
    result = _linspace_public(start, stop, count, bool(endpoint), bool(retstep), dtype, axis)
    return placed_on(result, device)


@public(static=("num", "endpoint", "dtype", "axis"))
def _logspace(
    start: Any, stop: Any, num: int, endpoint: bool, base: Any, dtype: Any, axis: int
) -> Any:
    work = float_of(join_types(*(as_array("logspace", v) for v in (start, stop, base)))[0])
    values, _ = _linspace(start, stop, num, endpoint, work, axis)
    base = as_type(as_array("logspace", base), work)
    if base.shape:
        base = broadcast(structural.reshape(base, (*base.shape,)), values.shape)
    result = elementwise.pow(broadcast_to(base, values.shape), values)
    return as_type(result, work if dtype is None else dtype)


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """`num` values from base**start to base**stop, evenly spaced in the exponent.

    >>> import jato.numpy as jnp
    >>> jnp.logspace(0, 3, 4, base=2.0)
    Array([1., 2., 4., 8.], dtype=float32)
    """
    dtype = None if dtype is None else canonicalize(dtype)
    return _logspace(
        _listed(start),
        _listed(stop),
        _known_count("logspace", num),
        bool(endpoint),
        base,
        dtype,
        axis,
    )


@public(static=("num", "endpoint", "dtype", "axis"))
def _geomspace(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int) -> Any:
    start, stop = promote_dtypes("geomspace", start, stop, inexact=True)
    work = dtype_of(start)
    shape = np.broadcast_shapes(start.shape, stop.shape)
    start, stop = (broadcast_to(as_type(v, work), shape) for v in (start, stop))
    sign = elementwise.sign(start)
    logs = [elementwise.log(elementwise.div(v, sign)) for v in (start, stop)]
    values, _ = _linspace(logs[0], logs[1], num, endpoint, work, 0)
    full_shape = (num, *shape)
    result = elementwise.mul(elementwise.exp(values), broadcast(sign, full_shape))
    # the ends are met exactly
    index = structural.broadcasted_iota(np.int32, full_shape, 0)
    if num:
        result = elementwise.select_n(
            elementwise.eq(index, np.int32(0)), result, broadcast(start, full_shape)
        )
    if endpoint and num > 1:
        last = elementwise.eq(index, np.int32(num - 1))
        result = elementwise.select_n(last, result, broadcast(stop, full_shape))
    axis = normalize_axis("geomspace", axis, len(full_shape))
    result = moveaxis(result, 0, axis) if axis else result
    return as_type(result, work if dtype is None else dtype)


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    """`num` values from start to stop in geometric progression.

    >>> import jato.numpy as jnp
    >>> jnp.geomspace(1.0, 16.0, 2)
    Array([ 1., 16.], dtype=float32)
    """
    dtype = None if dtype is None else canonicalize(dtype)
    return _geomspace(
        _listed(start), _listed(stop), _known_count("geomspace", num), bool(endpoint), dtype, axis
    )


# ---- windows


def _window(function: str, M: int, formula: Any) -> Any:
    size = require_integer(M, function, "M")
    return from_host(formula(size), canonicalize(np.float64))


def bartlett(M: int) -> Any:
    """The Bartlett window, a triangle.

    >>> import jato.numpy as jnp
    >>> jnp.bartlett(3)
    Array([0., 1., 0.], dtype=float32)
    """
    return _window("bartlett", M, np.bartlett)


def blackman(M: int) -> Any:
    """The Blackman window.

    >>> import jato.numpy as jnp
    >>> jnp.blackman(3).shape
    (3,)
    """
    return _window("blackman", M, np.blackman)


def hamming(M: int) -> Any:
    """The Hamming window.

    >>> import jato.numpy as jnp
    >>> jnp.hamming(3)
    Array([0.08, 1.  , 0.08], dtype=float32)
    """
    return _window("hamming", M, np.hamming)


def hanning(M: int) -> Any:
    """The Hann window.

    >>> import jato.numpy as jnp
    >>> jnp.hanning(3)
    Array([0., 1., 0.], dtype=float32)
    """
    return _window("hanning", M, np.hanning)


def kaiser(M: int, beta: Any) -> Any:
    """The Kaiser window.

    >>> import jato.numpy as jnp
    >>> jnp.kaiser(3, 0.0)
    Array([1., 1., 1.], dtype=float32)
    """
    return _window("kaiser", M, lambda size: np.kaiser(size, float(beta)))
