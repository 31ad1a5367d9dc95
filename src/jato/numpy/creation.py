"""Making arrays: from Python and NumPy values, filled, ranges, and grids.

`array`/`asarray` are the way in.  Outside of transformations they copy once, in NumPy; inside,
nested sequences that hold traced values are stacked.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
from jato import _native
from jato.base.errors import require_unsharded
from jato.base import dtypes
from jato.base.dtypes import canonicalize, is_complex, is_integer
from jato.core.array import ArrayImpl, from_host, from_number, require_integer
from jato.core.trace import Tracer
from jato.jit.eager import public
from jato.numpy.manipulation import broadcast_to, stack
from jato.numpy.promote import (
    as_array,
    as_operand,
    dtype_of,
    is_weak,
    join_types,
    normalize_shape,
)
from jato.numpy.reductions import as_type
from jato.ops import elementwise, structural
from jato.ops.convert import convert_element_type
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


def _number_types(x: Any, found: set[type]) -> bool:
    """Is `x` a nest of lists and tuples of Python numbers?  Their types are added to `found`."""
    for item in x:
        kind = type(item)
        if kind in _NUMBERS:
            found.add(kind)
        elif kind not in (list, tuple) or not _number_types(item, found):
            return False
    return True


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
    by_type = {(dtype_of(leaf), is_weak(leaf)): leaf for leaf in leaves}
    return join_types(*by_type.values())[0] if leaves else canonicalize(np.float64)


def _from_sequence(x: Any, dtype: Any) -> Any:
    types: set[type] = set()
    numbers = _number_types(x, types)
    if not numbers:
        _check_has_no_none(x)
    if dtype is None:
        dtype = _dtype_of_leaves([kind(0) for kind in types] if numbers else x)
    if not numbers and _holds_tracer(x):
        items = [_from_sequence(i, dtype) if isinstance(i, (list, tuple)) else i for i in x]
        return stack(items, dtype=dtype)
    try:
        host = np.asarray(x if numbers else _plain(x))
    except ValueError as error:
        raise ValueError(f"array: argument 'object' is not rectangular: {error}") from None
    if numbers and host.size and host.dtype.kind in "iu" and is_integer(dtype):
        info = np.iinfo(dtype)
        if not (info.min <= host.min() and host.max() <= info.max):
            raise OverflowError(f"array: Python integers out of bounds for {dtype}")
    if host.dtype.kind == "f" and is_integer(dtype) and numbers:
        if not np.isfinite(host).all():
            raise ValueError(f"array: NaN and infinity have no value of dtype {dtype}")
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
    if is_integer(dtype) and type(x) is float:
        return np.asarray(_whole(x)).astype(dtype)
    return np.asarray(x).astype(dtype)


def _whole(x: float) -> int:
    """The integer part; ValueError or OverflowError for what has none, as Python and NumPy say."""
    try:
        return int(x)
    except (ValueError, OverflowError) as error:
        raise type(error)(f"array: {error}") from None


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
    require_unsharded("array", out_sharding)
    _require_row_major("array", order)
    result = _convert(object, dtype, copy)
    if ndmin > result.ndim:
        result = structural.reshape(result, (1,) * (ndmin - result.ndim) + result.shape)
    return placed_on(result, device)


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
    require_unsharded("asarray", out_sharding)
    _require_row_major("asarray", order)
    result = _convert(a, dtype, builtins.bool(copy))
    if copy is False and result is not a:
        raise ValueError("asarray: a copy is needed, but copy=False was given")
    return placed_on(result, device)


def _require_row_major(function: str, order: str | None) -> None:
    """Elements always lie with the last axis fastest: "F" could only be ignored."""
    if order not in (None, "K", "C", "A"):
        raise NotImplementedError(
            f"{function}: argument 'order' must be 'K', 'C' or 'A', got {order!r}; arrays are "
            "always stored with the last axis fastest"
        )


def placed_on(x: Any, device: Any) -> Any:
    return x if device is None else device_put(x, device)


def copy(a: Any, order: str | None = None) -> Any:
    """A copy with a buffer of its own.

    >>> import jato.numpy as jnp
    >>> jnp.copy(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    _require_row_major("copy", order)
    return array(as_operand("copy", a), copy=True)


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
    return placed_on(_copy(result) if copy and result is x else result, device)


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
    return placed_on(_copy(result) if copy else result, device)


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


# ---- filled


def default_float(dtype: Any) -> Any:
    return canonicalize(np.float64 if dtype is None else dtype)


@public(static=("shape", "dtype"), name="full")
def _filled(shape: Any, value: Any, dtype: Any) -> Any:
    return structural.full(shape, value, dtype)


@public(static=("shape", "dtype", "value", "weak_type"), name="zeros or ones")
def _filled_static(shape: Any, value: Any, dtype: Any, weak_type: bool = False) -> Any:
    return _weakly(structural.full(shape, value, dtype), weak_type)


def _weakly(x: Any, weak_type: bool) -> Any:
    """`x`, weakly typed if so asked."""
    return convert_element_type(x, x.dtype, True) if weak_type else x


def zeros(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """An array of zeros; float32 by default.

    shape: integer or sequence of integers, known when traced.

    >>> import jato.numpy as jnp
    >>> jnp.zeros(2)
    Array([0., 0.], dtype=float32)
    """
    require_unsharded("zeros", out_sharding)
    return placed_on(
        _filled_static(normalize_shape("zeros", shape), 0, default_float(dtype)), device
    )


def ones(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """An array of ones; float32 by default.

    >>> import jato.numpy as jnp
    >>> jnp.ones(2)
    Array([1., 1.], dtype=float32)
    """
    require_unsharded("ones", out_sharding)
    return placed_on(
        _filled_static(normalize_shape("ones", shape), 1, default_float(dtype)), device
    )


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
    require_unsharded("full", out_sharding)
    shape = normalize_shape("full", shape)
    if isinstance(fill_value, (list, tuple)):
        fill_value = asarray(fill_value)
    dtype = None if dtype is None else canonicalize(dtype)
    return placed_on(_full(shape, fill_value, dtype), device)


def _like(function: str, a: Any, dtype: Any, shape: Any) -> tuple[Any, Any, bool]:
    weak = is_weak(a) or bool(getattr(a, "weak_type", False))
    if not (hasattr(a, "shape") and hasattr(a, "dtype")):
        a = as_array(function, a)
    target = canonicalize(a.dtype if dtype is None else dtype)
    sizes = tuple(a.shape) if shape is None else normalize_shape(function, shape)
    return sizes, target, dtype is None and weak


def zeros_like(
    a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """Zeros of the shape and dtype of `a`.

    >>> import jato.numpy as jnp
    >>> jnp.zeros_like(jnp.array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    require_unsharded("zeros_like", out_sharding)
    sizes, target, weak = _like("zeros_like", a, dtype, shape)
    return placed_on(_filled_static(sizes, 0, target, weak), device)


def ones_like(
    a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """Ones of the shape and dtype of `a`.

    >>> import jato.numpy as jnp
    >>> jnp.ones_like(jnp.array([1, 2]))
    Array([1, 1], dtype=int32)
    """
    require_unsharded("ones_like", out_sharding)
    sizes, target, weak = _like("ones_like", a, dtype, shape)
    return placed_on(_filled_static(sizes, 1, target, weak), device)


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
    require_unsharded("full_like", out_sharding)
    sizes, target, weak = _like("full_like", a, dtype, shape)
    result = full(sizes, fill_value, target)
    return placed_on(_weakly(result, weak), device)


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
    return placed_on(_eye(rows, columns, offset, default_float(dtype)), device)


def identity(n: int, dtype: Any = None) -> Any:
    """The n x n identity matrix.

    >>> import jato.numpy as jnp
    >>> jnp.identity(2, dtype=int)
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    return eye(n, dtype=dtype)
