"""Making arrays: from Python and NumPy values, filled, ranges, and grids.

`array`/`asarray` are the way in.  Outside of transformations they copy once, in NumPy; inside,
nested sequences that hold traced values are stacked.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np
from jato import _native
from jato.base import dtypes
from jato.base.dtypes import (
    canonicalize,
    is_complex,
    is_inexact,
    is_integer,
)
from jato.core.array import (
    ArrayImpl,
    from_host,
    from_number,
    require_concrete,
    require_integer,
)
from jato.core.trace import Tracer
from jato.jit.eager import public
from jato.numpy.elementwise import select_where
from jato.numpy.manipulation import (
    broadcast_to,
    moveaxis,
    stack,
)
from jato.numpy.promote import (
    as_array,
    broadcast,
    cast,
    dtype_of,
    float_of,
    is_weak,
    join_types,
    normalize_axis,
    normalize_shape,
    promote_dtypes,
)
from jato.numpy.reductions import as_type
from jato.ops import elementwise, structural
from jato.parallel.devices import device_put

_NUMBERS = (bool, int, float, complex)

# ---- from values


def _holds_tracer(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return builtins.any(map(_holds_tracer, x))
    return isinstance(x, Tracer)


def _plain(x: Any) -> Any:
    """Nested sequences with arrays as NumPy's (NumPy asks for their elements one by one)."""
    if isinstance(x, (list, tuple)):
        return [_plain(item) for item in x]
    if isinstance(x, ArrayImpl):
        return np.asarray(x)
    convert_itself = getattr(x, "__jax_array__", None)
    return np.asarray(convert_itself()) if convert_itself is not None else x


def _python_leaves(x: Any) -> bool:
    """Is `x` a nest of sequences of Python numbers?  Then the default dtypes are wanted."""
    if isinstance(x, (list, tuple)):
        return builtins.all(map(_python_leaves, x))
    return type(x) in _NUMBERS


def _check_has_no_none(x: Any) -> None:
    if x is None:
        raise ValueError("array: None is not a valid value for an array")
    if isinstance(x, (list, tuple)):
        for item in x:
            _check_has_no_none(item)


def _dtype_of_leaves(x: Any) -> Any:
    """Promoted dtype of the items of nested sequences, by jato's rules."""
    leaves: list[Any] = []

    def visit(item: Any) -> None:
        if isinstance(item, (list, tuple)):
            for i in item:
                visit(i)
        elif type(item) in _NUMBERS:
            leaves.append(item)
        else:
            leaves.append(as_array("array", item))

    visit(x)
    by_type = {(str(dtype_of(leaf)), is_weak(leaf)): leaf for leaf in leaves}
    return join_types(*by_type.values())[0] if leaves else canonicalize(np.float64)


def _from_sequence(x: Any, dtype: Any) -> Any:
    _check_has_no_none(x)
    if dtype is None:
        dtype = _dtype_of_leaves(x)
    if _holds_tracer(x):
        items = [_from_sequence(i, dtype) if isinstance(i, (list, tuple)) else i for i in x]
        return stack(items, dtype=dtype)
    try:
        host = np.asarray(_plain(x))
    except ValueError as error:
        raise ValueError(f"array: argument 'object' is not rectangular: {error}") from None
    if host.dtype.kind in "iu" and is_integer(dtype):
        info = np.iinfo(dtype)
        if (
            host.size
            and _python_leaves(x)
            and not (info.min <= host.min() and host.max() <= info.max)
        ):
            raise OverflowError(f"array: Python integers out of bounds for {dtype}")
    return from_host(host, dtype)


def _from_buffer(x: Any, dtype: Any) -> Any:
    if hasattr(x, "__array__") or isinstance(x, (bytes, bytearray, memoryview)):
        host = np.asarray(x) if hasattr(x, "__array__") else np.asarray(memoryview(x))
        return from_host(host, dtype)
    if hasattr(x, "__dlpack__"):
        return (
            as_type(_native.from_dlpack(x), dtype) if dtype is not None else _native.from_dlpack(x)
        )
    raise TypeError(
        f"array: argument 'object' of type {type(x).__name__} is not a number, an array or a "
        "sequence of them"
    )


def _convert(x: Any, dtype: Any, copy: bool) -> Any:
    dtype = None if dtype is None else canonicalize(dtype)
    if isinstance(x, (ArrayImpl, Tracer)):
        if dtype is not None and (x.dtype != dtype or x.weak_type):
            return astype(x, dtype)
        return _copy(x) if copy and isinstance(x, ArrayImpl) else x
    kind = type(x)
    if kind in _NUMBERS:
        if dtype is None:
            return from_number(x)
        return from_host(_number_as(x, dtype), dtype)
    if isinstance(x, (np.ndarray, np.generic)):
        if x.dtype.kind in "OUSMm":
            raise TypeError(f"array: dtype {x.dtype} is not a dtype of numbers")
        return from_host(x, dtype)
    if isinstance(x, (list, tuple)):
        return _from_sequence(x, dtype)
    if isinstance(x, range):
        return _from_sequence(list(x), dtype)
    convert_itself = getattr(x, "__jax_array__", None)
    if convert_itself is not None:
        return _convert(convert_itself(), dtype, copy)
    if x is None:
        raise ValueError("array: None is not a valid value for an array")
    if isinstance(x, str):
        raise TypeError(f"array: a string is not a number: {x!r}")
    if isinstance(x, _NUMBERS):
        return _convert(next(k(x) for k in _NUMBERS if isinstance(x, k)), dtype, copy)
    return _from_buffer(x, dtype)


def _number_as(x: Any, dtype: Any) -> Any:
    if is_integer(dtype) and type(x) is int:
        info = np.iinfo(dtype)
        if not info.min <= x <= info.max:
            raise OverflowError(f"array: Python integer {x} out of bounds for {dtype}")
    if is_integer(dtype) and type(x) is float and not math.isfinite(x):
        return astype(from_number(x), dtype)
    return np.asarray(x).astype(dtype)


@public()
def _copy(x: Any) -> Any:
    # a result that is an input would share the buffer
    return elementwise.select_n(structural.full(x.shape, False, np.dtype("bool")), x, x)


def array(
    object: Any,
    dtype: Any = None,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """An array with a copy of the values.

    object: number, array, NumPy array, buffer, or nested sequences of them.  dtype: by default
    that of the values, in 32 bits unless 64 bits are enabled; Python numbers give weakly typed
    0-d arrays.  ndmin: new axes of size 1 in front up to this rank.  Raises TypeError for what is
    not numeric, ValueError for ragged sequences and None, OverflowError for integers too large.

    >>> import jato.numpy as jnp
    >>> jnp.array([1, 2.5])
    Array([1. , 2.5], dtype=float32)
    """
    result = _convert(object, dtype, copy)
    if ndmin > result.ndim:
        result = structural.reshape(result, (1,) * (ndmin - result.ndim) + result.shape)
    return _placed(result, device)


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """An array of the values; arrays that fit already are returned as they are.

    Arguments and errors as for `array`.  copy: True forces a copy; False raises ValueError where
    one is needed.

    >>> import jato.numpy as jnp
    >>> jnp.asarray([1, 2])
    Array([1, 2], dtype=int32)
    """
    result = _convert(a, dtype, builtins.bool(copy))
    if copy is False and result is not a:
        raise ValueError("asarray: a copy is needed, but copy=False was given")
    return _placed(result, device)


def _placed(x: Any, device: Any) -> Any:
    return x if device is None else device_put(x, device)


def copy(a: Any, order: str | None = None) -> Any:
    """A copy with a buffer of its own.

    >>> import jato.numpy as jnp
    >>> jnp.copy(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    return array(as_array("copy", a), copy=True)


@public(static=("dtype",))
def _astype(x: Any, dtype: Any) -> Any:
    dtype = canonicalize(dtype)
    if is_complex(dtype_of(x)) and not is_complex(dtype):
        x = (
            elementwise.real(x)
            if dtype != np.bool_
            else elementwise.ne(x, np.zeros((), dtype_of(x))[()])
        )
    return as_type(x, dtype)


def astype(x: Any, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Any:
    """The elements converted to a dtype.

    Floats become integers toward zero, those beyond the range the nearest bound, nan 0; integers
    wrap; complex numbers lose the imaginary part.

    >>> import jato.numpy as jnp
    >>> jnp.astype(jnp.array([1.7, -1.0]), jnp.uint8)
    Array([1, 0], dtype=uint8)
    """
    x = as_array("astype", x)
    if dtype is None:
        dtype = np.float64
    result = _astype(x, dtypes.as_dtype(dtype))
    return _placed(_copy(result) if copy and result is x else result, device)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """An array from another library's, through DLPack; shared where that is safe.

    >>> import jato.numpy as jnp, numpy as np
    >>> jnp.from_dlpack(np.arange(3, dtype=np.float32))
    Array([0., 1., 2.], dtype=float32)
    """
    if isinstance(x, np.ndarray):
        # NumPy memory may change under us unless it is read-only and owned by an array like that
        return asarray(x, device=device)
    result = _native.from_dlpack(x)
    return _placed(_copy(result) if copy else result, device)


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Any:
    """A one-dimensional array from the bytes of a buffer.

    >>> import jato.numpy as jnp
    >>> jnp.frombuffer(bytes([1, 2]), dtype=jnp.uint8)
    Array([1, 2], dtype=uint8)
    """
    return from_host(np.frombuffer(buffer, dtypes.as_dtype(dtype), count, offset))


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Any:
    """A one-dimensional array from numbers in a text, separated by `sep`.

    >>> import jato.numpy as jnp
    >>> jnp.fromstring("1 2", dtype=int, sep=" ")
    Array([1, 2], dtype=int32)
    """
    return from_host(np.fromstring(string, dtypes.as_dtype(dtype), count, sep=sep))


def fromiter(iterable: Any, dtype: Any, count: int = -1) -> Any:
    """A one-dimensional array from an iterable of numbers.

    >>> import jato.numpy as jnp
    >>> jnp.fromiter(range(3), dtype=int)
    Array([0, 1, 2], dtype=int32)
    """
    return from_host(np.fromiter(iterable, dtypes.as_dtype(dtype), count))


def fromfile(*args: Any, **kwargs: Any) -> Any:
    """Not supported, since it would run outside of a trace; use `asarray(numpy.fromfile(...))`."""
    raise NotImplementedError("fromfile: use jato.numpy.asarray(numpy.fromfile(...))")


def fromfunction(function: Any, shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    """`function` of the index arrays of a grid.

    >>> import jato.numpy as jnp
    >>> jnp.fromfunction(lambda i, j: i + j, (2, 2), dtype=int)
    Array([[0, 1],
           [1, 2]], dtype=int32)
    """
    shape = normalize_shape("fromfunction", shape)
    return function(*indices(shape, dtype=dtype), **kwargs)


# ---- filled


def _default_float(dtype: Any) -> Any:
    return canonicalize(np.float64 if dtype is None else dtype)


@public(static=("shape", "dtype"))
def _filled(shape: Any, value: Any, dtype: Any) -> Any:
    return structural.full(shape, value, dtype)


@public(static=("shape", "dtype", "value"))
def _filled_static(shape: Any, value: Any, dtype: Any) -> Any:
    return structural.full(shape, value, dtype)


def zeros(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """An array of zeros; float32 by default.

    shape: integer or sequence of integers, known when traced.

    >>> import jato.numpy as jnp
    >>> jnp.zeros(2)
    Array([0., 0.], dtype=float32)
    """
    return _placed(
        _filled_static(normalize_shape("zeros", shape), 0, _default_float(dtype)), device
    )


def ones(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """An array of ones; float32 by default.

    >>> import jato.numpy as jnp
    >>> jnp.ones(2)
    Array([1., 1.], dtype=float32)
    """
    return _placed(_filled_static(normalize_shape("ones", shape), 1, _default_float(dtype)), device)


def empty(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """The same as `zeros`: there are no uninitialized arrays.

    >>> import jato.numpy as jnp
    >>> jnp.empty(2)
    Array([0., 0.], dtype=float32)
    """
    return zeros(shape, dtype, device=device, out_sharding=out_sharding)


@public(static=("shape", "dtype"))
def _full(shape: Any, fill_value: Any, dtype: Any) -> Any:
    if type(fill_value) in _NUMBERS:
        return structural.full(shape, fill_value, dtype)
    fill_value = as_array("full", fill_value)
    if dtype is not None:
        fill_value = as_type(fill_value, dtype)
    return broadcast_to(fill_value, shape)


def full(
    shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """An array filled with a value (or an array that broadcasts to the shape).

    >>> import jato.numpy as jnp
    >>> jnp.full(2, 7.0, dtype=jnp.float32)
    Array([7., 7.], dtype=float32)
    """
    shape = normalize_shape("full", shape)
    if isinstance(fill_value, (list, tuple)):
        fill_value = asarray(fill_value)
    dtype = None if dtype is None else canonicalize(dtype)
    return _placed(_full(shape, fill_value, dtype), device)


def _like(function: str, a: Any, dtype: Any, shape: Any) -> tuple[Any, Any, bool]:
    if not (hasattr(a, "shape") and hasattr(a, "dtype")):
        a = as_array(function, a)
    target = canonicalize(a.dtype if dtype is None else dtype)
    sizes = tuple(a.shape) if shape is None else normalize_shape(function, shape)
    return sizes, target, dtype is None and bool(getattr(a, "weak_type", False))


def zeros_like(
    a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """Zeros of the shape and dtype of `a`.

    >>> import jato.numpy as jnp
    >>> jnp.zeros_like(jnp.array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    sizes, target, _ = _like("zeros_like", a, dtype, shape)
    return _placed(_filled_static(sizes, 0, target), device)


def ones_like(
    a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """Ones of the shape and dtype of `a`.

    >>> import jato.numpy as jnp
    >>> jnp.ones_like(jnp.array([1, 2]))
    Array([1, 1], dtype=int32)
    """
    sizes, target, _ = _like("ones_like", a, dtype, shape)
    return _placed(_filled_static(sizes, 1, target), device)


def empty_like(
    prototype: Any,
    dtype: Any = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """The same as `zeros_like`.

    >>> import jato.numpy as jnp
    >>> jnp.empty_like(jnp.array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    return zeros_like(prototype, dtype, shape, device=device, out_sharding=out_sharding)


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """An array of the shape and dtype of `a`, filled with a value.

    >>> import jato.numpy as jnp
    >>> jnp.full_like(jnp.array([1, 2]), 7)
    Array([7, 7], dtype=int32)
    """
    sizes, target, _ = _like("full_like", a, dtype, shape)
    return full(sizes, fill_value, target, device=device)


@public(static=("N", "M", "k", "dtype"))
def _eye(N: int, M: int, k: int, dtype: Any) -> Any:
    row = structural.broadcasted_iota(np.int32, (N, M), 0)
    column = structural.broadcasted_iota(np.int32, (N, M), 1)
    return as_type(elementwise.eq(elementwise.add(row, np.int32(k)), column), dtype)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, *, device: Any = None) -> Any:
    """A matrix with ones on the k-th diagonal.

    >>> import jato.numpy as jnp
    >>> jnp.eye(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    rows = require_integer(N, "eye", "N")
    columns = rows if M is None else require_integer(M, "eye", "M")
    if rows < 0 or columns < 0:
        raise ValueError(f"eye: sizes must not be negative, got {rows} and {columns}")
    offset = require_integer(k, "eye", "k")
    offset = builtins.max(-rows, builtins.min(offset, columns))
    return _placed(_eye(rows, columns, offset, _default_float(dtype)), device)


def identity(n: int, dtype: Any = None) -> Any:
    """The n x n identity matrix.

    >>> import jato.numpy as jnp
    >>> jnp.identity(2, dtype=int)
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    return eye(n, dtype=dtype)


# ---- ranges


def _range_value(x: Any, argument: str) -> Any:
    if type(x) in (int, float):
        return x
    if isinstance(x, Tracer):
        x = require_concrete(
            x, "arange", argument, "Its value decides the result's shape; mark it static."
        )
    host = np.asarray(x)
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


@public(static=("size", "dtype"))
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
    if stop is None:
        start, stop = 0, start
    start, stop = _range_value(start, "start"), _range_value(stop, "stop")
    step = 1 if step is None else _range_value(step, "step")
    if builtins.any(isinstance(v, (complex, np.complexfloating)) for v in (start, stop, step)):
        raise TypeError("arange: complex numbers have no order")
    if dtype is None:
        target = join_types(start, stop, step)[0]
    else:
        target = canonicalize(dtype)
    if step == 0:
        raise ZeroDivisionError("arange: argument 'step' must not be zero")
    size = builtins.max(0, math.ceil((stop - start) / step))
    if type(start) is int and type(step) is int and type(stop) is int:
        size = builtins.max(0, -((start - stop) // step))
    if target == np.bool_:
        return _placed(from_host(np.arange(start, stop, step, dtype=bool)), device)
    if start == 0 and step == 1:
        return _placed(_iota(size, target), device)
    if is_integer(target) and type(start) is int and type(step) is int:
        return _placed(_arange(_fit(start, target), _fit(step, target), size, target), device)
    if is_integer(target):
        start, step = int(start), int(step)
        return _placed(_arange(_fit(start, target), _fit(step, target), size, target), device)
    return _placed(_arange(float(start), float(step), size, target), device)


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


@public(static=("num", "endpoint", "retstep", "dtype", "axis"))
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
    return _linspace_public(start, stop, count, bool(endpoint), bool(retstep), dtype, axis)


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


# ---- grids


@public(static=("sparse", "indexing"))
def _meshgrid(xi: tuple[Any, ...], sparse: bool, indexing: str) -> list[Any]:
    arrays = [as_array("meshgrid", x, i) for i, x in enumerate(xi)]
    arrays = [structural.reshape(x, (math.prod(x.shape),)) for x in arrays]
    rank = len(arrays)
    order = list(range(rank))
    if indexing == "xy" and rank >= 2:
        order[0], order[1] = 1, 0
    shape = [1] * rank
    for x, axis in zip(arrays, order, strict=True):
        shape[axis] = x.shape[0]
    results = []
    for x, axis in zip(arrays, order, strict=True):
        target = [1] * rank if sparse else shape
        if sparse:
            target[axis] = x.shape[0]
        results.append(structural.broadcast_in_dim(x, tuple(target), (axis,)))
    return results


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Any]:
    """Coordinate arrays of a grid from coordinates along its axes.

    indexing: "xy" (the first argument varies along the second axis) or "ij".  sparse: leave the
    arrays to be broadcast.

    >>> import jato.numpy as jnp
    >>> jnp.meshgrid(jnp.array([1, 2]), jnp.array([3]))
    [Array([[1, 2]], dtype=int32), Array([[3, 3]], dtype=int32)]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: argument 'indexing' must be 'xy' or 'ij', got {indexing!r}")
    if not copy:
        raise ValueError("meshgrid: copy=False is not supported")
    return list(_meshgrid(tuple(xi), sparse, indexing))


@public(static=("dimensions", "dtype", "sparse"))
def _indices(dimensions: tuple[int, ...], dtype: Any, sparse: bool) -> Any:
    rank = len(dimensions)
    grids = []
    for i in range(rank):
        shape = tuple(s if k == i or not sparse else 1 for k, s in enumerate(dimensions))
        grids.append(structural.broadcasted_iota(dtype, shape, i))
    if sparse:
        return tuple(grids)
    return stack(grids) if grids else structural.full((0,), 0, dtype)


def indices(dimensions: Any, dtype: Any = None, sparse: bool = False) -> Any:
    """The index arrays of a grid, stacked; a tuple of arrays to be broadcast if `sparse`.

    >>> import jato.numpy as jnp
    >>> jnp.indices((2, 2))[0]
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    dtype = canonicalize(np.int64 if dtype is None else dtype)
    return _indices(normalize_shape("indices", dimensions, "dimensions"), dtype, sparse)


# ---- triangles and diagonals


@public(static=("N", "M", "k", "dtype"))
def _tri(N: int, M: int, k: int, dtype: Any) -> Any:
    return as_type(_below_diagonal(N, M, k), dtype)


def _below_diagonal(rows: int, columns: int, k: int) -> Any:
    row = structural.broadcasted_iota(np.int32, (rows, columns), 0)
    column = structural.broadcasted_iota(np.int32, (rows, columns), 1)
    return elementwise.ge(elementwise.add(row, np.int32(k)), column)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Any:
    """A matrix with ones on and below the k-th diagonal.

    >>> import jato.numpy as jnp
    >>> jnp.tri(2)
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    rows = require_integer(N, "tri", "N")
    columns = rows if M is None else require_integer(M, "tri", "M")
    return _tri(rows, columns, require_integer(k, "tri", "k"), _default_float(dtype))


def _triangle(function: str, m: Any, k: int, lower: bool) -> Any:
    m = as_array(function, m)
    if len(m.shape) < 1:
        raise ValueError(f"{function}: argument 'm' must have rank 1 or more")
    if len(m.shape) == 1:
        m = broadcast(m, (m.shape[0], m.shape[0]))
    below = _below_diagonal(*m.shape[-2:], k if lower else k - 1)
    below = broadcast(below, m.shape)
    zeros = structural.full(m.shape, 0, dtype_of(m))
    return elementwise.select_n(below, zeros, m) if lower else elementwise.select_n(below, m, zeros)


@public(static=("k",))
def tril(m: Any, k: int = 0) -> Any:
    """The matrix with zeros above the k-th diagonal.

    >>> import jato.numpy as jnp
    >>> jnp.tril(jnp.ones((2, 2)))
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    return _triangle("tril", m, k, True)


@public(static=("k",))
def triu(m: Any, k: int = 0) -> Any:
    """The matrix with zeros below the k-th diagonal.

    >>> import jato.numpy as jnp
    >>> jnp.triu(jnp.ones((2, 2)))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    return _triangle("triu", m, k, False)


@public(static=("offset", "axis1", "axis2"))
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonals of the planes of two axes, along the last axis of the result.

    >>> import jato.numpy as jnp
    >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    a = as_array("diagonal", a)
    if len(a.shape) < 2:
        raise ValueError(f"diagonal: argument 'a' must have rank 2 or more, got shape {a.shape}")
    a = moveaxis(a, (axis1, axis2), (-2, -1))
    *batch, rows, columns = a.shape
    size = builtins.max(
        0, builtins.min(rows + builtins.min(offset, 0), columns - builtins.max(offset, 0))
    )
    if size == 0:
        return structural.full((*batch, 0), 0, dtype_of(a))
    begin = offset if offset >= 0 else -offset * columns
    flat = structural.reshape(a, (*batch, rows * columns))
    stop = begin + (size - 1) * (columns + 1) + 1
    last = len(batch)
    starts, limits = [0] * last + [begin], [*batch, stop]
    return structural.slice(flat, starts, limits, [1] * last + [columns + 1])


@public(static=("k",))
def diag(v: Any, k: int = 0) -> Any:
    """A matrix with `v` on its k-th diagonal, or the k-th diagonal of a matrix.

    >>> import jato.numpy as jnp
    >>> jnp.diag(jnp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    v = as_array("diag", v)
    if len(v.shape) == 2:
        return diagonal(v, k)
    if len(v.shape) != 1:
        raise ValueError(f"diag: argument 'v' must have rank 1 or 2, got shape {v.shape}")
    size = v.shape[0] + builtins.abs(k)
    padded = structural.pad(
        v, np.zeros((), dtype_of(v))[()], [(builtins.max(k, 0), builtins.max(-k, 0), 0)]
    )
    row = structural.broadcasted_iota(np.int32, (size, size), 0)
    column = structural.broadcasted_iota(np.int32, (size, size), 1)
    on = elementwise.eq(elementwise.add(row, np.int32(k)), column)
    values = structural.broadcast_in_dim(padded, (size, size), (1,))
    return select_where(on, values, np.zeros((), dtype_of(v))[()])


@public(static=("k",))
def diagflat(v: Any, k: int = 0) -> Any:
    """A matrix with the elements of `v` on its k-th diagonal.

    >>> import jato.numpy as jnp
    >>> jnp.diagflat(jnp.array([[1, 2]]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    v = as_array("diagflat", v)
    return diag(structural.reshape(v, (math.prod(v.shape),)), k)


@public(static=("offset", "axis1", "axis2", "dtype"))
def trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None
) -> Any:
    """The sum along the diagonals of the planes of two axes.

    >>> import jato.numpy as jnp
    >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    values = diagonal(a, offset, axis1, axis2)
    if dtype is None and not is_inexact(dtype_of(values)):
        dtype = canonicalize(np.uint64 if dtype_of(values).kind == "u" else np.int64)
    if dtype is not None:
        values = as_type(values, canonicalize(dtype))
    return structural.reduce_sum(values, (len(values.shape) - 1,))


@public(static=("N", "increasing"))
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """The Vandermonde matrix: powers of x as columns, the highest first.

    >>> import jato.numpy as jnp
    >>> jnp.vander(jnp.array([2, 3]), 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    x = as_array("vander", x)
    if len(x.shape) != 1:
        raise ValueError(f"vander: argument 'x' must have rank 1, got shape {x.shape}")
    count = x.shape[0] if N is None else N
    if count < 0:
        raise ValueError(f"vander: argument 'N' must not be negative, got {count}")
    powers: list[Any] = []
    for i in range(count):
        powers.append(
            structural.full(x.shape, 1, dtype_of(x)) if i == 0 else elementwise.mul(powers[-1], x)
        )
    if not powers:
        return structural.full((x.shape[0], 0), 0, dtype_of(x))
    return stack(powers if increasing else powers[::-1], 1)


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


class _Grid:
    """`mgrid[0:2, 0:3]` and `ogrid`: index grids by slices; an imaginary step is a count."""

    def __init__(self, name: str, sparse: bool):
        self._name = name
        self._sparse = sparse

    def __repr__(self) -> str:
        return f"jato.numpy.{self._name}"

    def __getitem__(self, key: Any) -> Any:
        single = isinstance(key, slice)
        axes = [_axis_range(self._name, k) for k in ((key,) if single else key)]
        if single:
            return axes[0]
        dtype = join_types(*axes)[0]
        grids = meshgrid(*(cast(x, dtype) for x in axes), indexing="ij", sparse=self._sparse)
        return grids if self._sparse else stack(grids)


def _axis_range(name: str, key: Any) -> Any:
    if not isinstance(key, slice) or key.stop is None:
        raise TypeError(f"{name}: expected slices such as 0:3, got {key!r}")
    start = 0 if key.start is None else key.start
    step = 1 if key.step is None else key.step
    if isinstance(step, complex):
        return linspace(start, key.stop, int(builtins.abs(step)))
    return arange(start, key.stop, step)


mgrid = _Grid("mgrid", False)
ogrid = _Grid("ogrid", True)


class _Concatenator:
    """`r_[1:3, 5]` and `c_[x, y]`: arrays joined by indexing."""

    def __init__(self, name: str, column: bool):
        self._name = name
        self._column = column

    def __repr__(self) -> str:
        return f"jato.numpy.{self._name}"

    def __getitem__(self, key: Any) -> Any:
        axis, rank, column_at = (-1, 2, 0) if self._column else (0, 1, -1)
        items = list(key) if isinstance(key, tuple) else [key]
        if items and isinstance(items[0], str):
            axis, rank, column_at = self._directive(items.pop(0), axis, rank, column_at)
        parts = [self._part(item, rank, column_at) for item in items]
        dtype, weak = join_types(*parts)
        parts = [cast(p, dtype, weak) for p in parts]
        axis = normalize_axis(self._name, axis, parts[0].ndim)
        return structural.concatenate(parts, axis)

    def _directive(self, text: str, axis: int, rank: int, column_at: int) -> tuple[int, int, int]:
        if text in ("r", "c"):
            raise NotImplementedError(f"{self._name}: the directives 'r' and 'c' make matrices")
        try:
            numbers = [int(n) for n in text.split(",")]
        except ValueError:
            raise ValueError(f"{self._name}: unknown directive {text!r}") from None
        return tuple(
            [*numbers, axis, rank, column_at][i] if i < len(numbers) else (axis, rank, column_at)[i]
            for i in range(3)
        )  # type: ignore[return-value]

    def _part(self, item: Any, rank: int, column_at: int) -> Any:
        x = _axis_range(self._name, item) if isinstance(item, slice) else asarray(item)
        missing = rank - x.ndim
        if missing <= 0:
            return x
        if x.ndim == 0:
            return structural.reshape(x, (1,) * rank)
        # where the old axes start in the result: -1 puts them last, 0 first
        begin = column_at if column_at >= 0 else missing + column_at + 1
        shape = [1] * rank
        shape[begin : begin + x.ndim] = x.shape
        return structural.reshape(x, tuple(shape))


r_ = _Concatenator("r_", False)
c_ = _Concatenator("c_", True)
