"""Promotion: operands of different dtypes, kinds and shapes become operands that `ops` takes.

The dtype follows JAX's lattice (base/dtypes.py): Python numbers are weak and do not widen an
array.  Python numbers stay Python numbers as long as they can, so that the operation writes them
into the program in the other operand's dtype.

    promote         arithmetic: common dtype, common shape (or rank 0)
    promote_float   the same, integers become floats
    as_array        one operand of a structural function

All have a fast path for operands whose types agree: it costs well under a microsecond, which is
what tracing can afford (design.md: 5 us an operation, everything included).
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from jato.base import dtypes
from jato.base.config import config
from jato.base.dtypes import canonicalize, code_of
from jato.base.errors import ShapeMismatchError
from jato.core.trace import current_trace
from jato.ops import convert, structural

_BOOL, _FIRST_INEXACT, _LAST_INEXACT = 0, 9, 14


_PYTHON_NUMBERS = frozenset((bool, int, float, complex))


_join_cache: dict[Any, tuple[Any, bool]] = {}


def argument_error(function: str, x: Any, position: int | str) -> TypeError:
    """The error for something that is neither an array nor a number."""
    where = f"at position {position}" if isinstance(position, int) else f"for '{position}'"
    hint = " Convert it with jato.numpy.asarray." if isinstance(x, (list, tuple)) else ""
    return TypeError(
        f"{function} requires ndarray or scalar arguments, got {type(x).__name__} {where}.{hint}"
    )


def as_operand(function: str, x: Any, position: int | str = 0) -> Any:
    """`x` as something with an ArrayType: array, tracer, NumPy array, or Python number."""
    if hasattr(x, "aval") or type(x) in _PYTHON_NUMBERS:
        return x
    if isinstance(x, (np.ndarray, np.generic)):
        if x.dtype.kind in "OUSMm" or (x.dtype.kind == "V" and x.dtype not in dtypes.DTYPES[:15]):
            raise TypeError(f"{function}: dtype {x.dtype} is not a dtype of numbers")
        target = canonicalize(x.dtype)
        return x if x.dtype == target else np.asarray(x, target)
    convert_itself = getattr(x, "__jax_array__", None)
    if convert_itself is not None and not isinstance(x, type):
        return as_operand(function, convert_itself(), position)
    if isinstance(x, (bool, int, float, complex)):  # subclasses such as IntEnum
        for kind in (bool, int, float, complex):
            if isinstance(x, kind):
                return kind(x)
    raise argument_error(function, x, position)


def as_array(function: str, x: Any, position: int | str = 0) -> Any:
    """`x` as an array, tracer or NumPy array, in its canonical dtype.

    While a function is traced a Python number is a weakly typed tracer, as it is eagerly, where the
    compiled function takes it as an argument."""
    if hasattr(x, "aval"):
        return x
    x = as_operand(function, x, position)
    if type(x) not in _PYTHON_NUMBERS:
        return x
    if current_trace() is None or type(x) is bool:
        return np.asarray(x, dtypes.scalar_dtype(x))
    return structural.full((), x)


def as_typed(x: Any, dtype: Any) -> Any:
    """A Python number as an array of a dtype; arrays as they are."""
    return np.asarray(x).astype(dtype) if type(x) in _PYTHON_NUMBERS else x


def shape_of(x: Any) -> tuple[int, ...]:
    return () if type(x) in _PYTHON_NUMBERS else x.shape


def dtype_of(x: Any) -> Any:
    """The canonical dtype of an operand."""
    aval = getattr(x, "aval", None)
    if aval is not None:
        return aval.dtype
    return dtypes.scalar_dtype(x) if type(x) in _PYTHON_NUMBERS else canonicalize(x.dtype)


def is_weak(x: Any) -> bool:
    aval = getattr(x, "aval", None)
    return type(x) in _PYTHON_NUMBERS if aval is None else aval.weak_type


# ---- dtypes


def join_types(*xs: Any) -> tuple[Any, bool]:
    """(dtype, weak) that the operands promote to."""
    codes = [_type_key(x) for x in xs]
    key = (dtypes.x64_enabled(), *(codes if len(codes) <= 2 else sorted(set(codes))))
    found = _join_cache.get(key)
    if found is None or config.jax_numpy_dtype_promotion == "strict":
        if config.jax_numpy_dtype_promotion == "strict":
            _require_one_dtype(xs)
        found = dtypes.promote(*[(dtype_of(x), is_weak(x)) for x in xs])
        _join_cache[key] = found
    return found


def _require_one_dtype(xs: Sequence[Any]) -> None:
    """ValueError unless the operands have one dtype, numbers of no wider kind aside."""
    strong = {dtype_of(x) for x in xs if not is_weak(x)}
    if len(strong) > 1 or any(
        _kind(dtype_of(x)) > _kind(d) or (_kind(d) == 0) != (_kind(dtype_of(x)) == 0)
        for d in strong
        for x in xs
        if is_weak(x)
    ):
        listed = ", ".join(f"{dtype_of(x)}{' (weak)' * is_weak(x)}" for x in xs)
        raise ValueError(
            f"operands of dtypes {listed} have no implicit promotion while "
            "jax_numpy_dtype_promotion is 'strict'. Convert them with .astype."
        )


def _kind(dtype: Any) -> int:
    """0 bool, 1 integer, 2 real, 3 complex."""
    if dtypes.is_bool(dtype):
        return 0
    return 1 if dtypes.is_integer(dtype) else 2 if dtypes.is_floating(dtype) else 3


def _type_key(x: Any) -> int:
    aval = getattr(x, "aval", None)
    if aval is not None:
        return aval.dtype_code * 2 + aval.weak_type
    return code_of(dtype_of(x)) * 2 + (type(x) in _PYTHON_NUMBERS)


def float_of(dtype: Any) -> Any:
    """The dtype in which a function with real results works: floats as they are, for integers of
    64 bits float64 (float32 where 64 bits are off), for narrower ones and bools float32."""
    if dtypes.is_inexact(dtype):
        return dtype
    return canonicalize(np.float64 if dtype.itemsize == 8 else np.float32)


def index_dtype(size: int) -> Any:
    """The dtype of positions that do not depend on 64 bits being enabled: int32 where it holds
    them."""
    return np.dtype(np.int32) if size < 2**31 - 1 else canonicalize(np.int64)


def cast(x: Any, dtype: Any, weak_type: bool = False) -> Any:
    """`x` in another dtype; Python numbers stay Python numbers where that is the dtype of one."""
    kind = type(x)
    if kind in _PYTHON_NUMBERS:
        return _cast_number(x, np.dtype(dtype))
    aval = getattr(x, "aval", None)
    if aval is None:
        if weak_type:  # integers beside a weak float: NumPy's arrays cannot be weak
            return convert.convert_element_type(x, dtype, True)
        return x if x.dtype == dtype else x.astype(dtype)
    if aval.dtype_code == code_of(dtype) and (weak_type or not aval.weak_type):
        return x
    return convert.convert_element_type(x, dtype, weak_type)


def _cast_number(number: Any, dtype: Any) -> Any:
    """A Python number in a dtype.  Integers are int32 (int64) first, and wrap: OverflowError if
    they do not fit into that."""
    kind = type(number)
    if dtypes.is_complex(dtype):
        number = complex(number)
    elif dtypes.is_floating(dtype) and kind is not complex:
        number = float(number)
    elif dtypes.is_integer(dtype) and (kind is int or kind is bool):
        number = int(number)
        try:
            found = dtype.type(number)
        except OverflowError:
            return np.asarray(number, canonicalize(np.int64)).astype(dtype)[()]
        return number if dtypes.scalar_dtype(number) == dtype else found
    elif dtype != np.bool_ or kind is not bool:
        return np.asarray(number).astype(dtype)[()]
    return number if dtypes.scalar_dtype(number) == dtype else dtype.type(number)


def _join_and_cast(xs: Sequence[Any], inexact: bool) -> list[Any]:
    dtype, weak = join_types(*xs)
    if inexact:
        dtype = float_of(dtype)
    code = code_of(dtype)
    result = []
    for x in xs:
        aval = getattr(x, "aval", None)
        if aval is not None and aval.dtype_code == code:
            result.append(x)
        else:
            result.append(cast(x, dtype, weak))
    return result


# ---- shapes


def common_shape(function: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that all `shapes` broadcast to.  Raises ShapeMismatchError."""
    rank = max(map(len, shapes))
    result = []
    for i in range(-rank, 0):
        size = 1
        for shape in shapes:
            if -i <= len(shape) and shape[i] != 1:
                if size not in (1, shape[i]):
                    listed = ", ".join(map(str, shapes))
                    raise ShapeMismatchError(
                        f"{function} got incompatible shapes for broadcasting: {listed}. Sizes "
                        "of an axis, counted from the last, must be equal or 1."
                    )
                size = shape[i]
        result.append(size)
    return tuple(result)


def broadcast(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` repeated along new leading axes and axes of size 1."""
    own = shape_of(x)
    if own == shape:
        return x
    rank = len(shape)
    return structural.broadcast_in_dim(x, shape, tuple(range(rank - len(own), rank)))


def broadcast_operands(function: str, xs: Sequence[Any]) -> list[Any]:
    """Operands of one shape, or of rank 0."""
    shapes = [shape_of(x) for x in xs]
    several = {s for s in shapes if s}
    if len(several) <= 1:
        return list(xs)
    if config.jax_numpy_rank_promotion != "allow":
        _notice_ranks(function, several)
    target = common_shape(function, shapes)
    return [broadcast(x, target) if s else x for x, s in zip(xs, shapes, strict=True)]


def _notice_ranks(function: str, shapes: Collection[tuple[int, ...]]) -> None:
    """Warns or raises ValueError, as `jax_numpy_rank_promotion` says, if the ranks differ."""
    if len({len(s) for s in shapes}) == 1:
        return
    message = (
        f"{function}: operands of shapes {', '.join(map(str, shapes))} differ in rank. Reshape them, "
        "or set jax_numpy_rank_promotion to 'allow'."
    )
    if config.jax_numpy_rank_promotion == "raise":
        raise ValueError(message)
    warnings.warn(message, stacklevel=2)


# ---- operands of elementwise functions


def promote(function: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands of an arithmetic operation."""
    try:
        a, b = x.aval, y.aval
    except AttributeError:
        return _promote_number(function, x, y, False)
    if a is b or (
        a.dtype_code == b.dtype_code and (a.shape == b.shape or not a.shape or not b.shape)
    ):
        return x, y
    return tuple(promote_all(function, x, y))  # type: ignore[return-value]


def promote_float(function: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands of an operation on real or complex numbers."""
    try:
        a, b = x.aval, y.aval
    except AttributeError:
        return _promote_number(function, x, y, True)
    code = a.dtype_code
    if (
        code == b.dtype_code
        and _FIRST_INEXACT <= code <= _LAST_INEXACT
        and (a.shape == b.shape or not a.shape or not b.shape)
    ):
        return x, y
    return tuple(promote_all(function, x, y, inexact=True))  # type: ignore[return-value]


def _promote_number(function: str, x: Any, y: Any, inexact: bool) -> tuple[Any, Any]:
    """One operand at least is not an array; a Python number is the usual case."""
    number, array = (y, x) if hasattr(x, "aval") else (x, y)
    aval = getattr(array, "aval", None)
    if aval is not None:
        code, kind = aval.dtype_code, type(number)
        if (kind is float or kind is int) and _FIRST_INEXACT <= code <= _LAST_INEXACT:
            # in the dtype of the array, for those who ask either operand for its dtype
            number = _cast_number(number, aval.dtype)
            return (x, number) if array is x else (number, y)
        if kind is int and not inexact and _BOOL < code < _FIRST_INEXACT:
            number = _cast_number(number, aval.dtype)
            return (x, number) if array is x else (number, y)
    return tuple(promote_all(function, x, y, inexact=inexact))  # type: ignore[return-value]


def promote_all(function: str, *xs: Any, inexact: bool = False) -> list[Any]:
    """Any number of operands: common dtype; one shape, or rank 0."""
    operands = [as_operand(function, x, i) for i, x in enumerate(xs)]
    return broadcast_operands(function, _join_and_cast(operands, inexact))


def promote_dtypes(function: str, *xs: Any, inexact: bool = False) -> list[Any]:
    """Arrays (never Python numbers) with a common dtype, shapes as they are."""
    return _join_and_cast([as_array(function, x, i) for i, x in enumerate(xs)], inexact)


def unary(function: str, x: Any) -> Any:
    """The operand of an elementwise function that keeps the dtype."""
    return x if hasattr(x, "aval") else as_operand(function, x)


def unary_float(function: str, x: Any) -> Any:
    """The operand of an elementwise function on real or complex numbers."""
    try:
        if _FIRST_INEXACT <= x.aval.dtype_code <= _LAST_INEXACT:
            return x
    except AttributeError:
        x = as_operand(function, x)
    dtype = dtype_of(x)
    return cast(x, float_of(dtype), is_weak(x))


def unary_widest_float(function: str, x: Any) -> Any:
    """As `unary_float`, but bools and integers of every width become the widest float."""
    x = unary(function, x)
    if dtypes.is_inexact(dtype_of(x)):
        return x
    return cast(x, canonicalize(np.float64), is_weak(x))


# ---- arguments that are not arrays


def normalize_axis(function: str, axis: Any, rank: int, argument: str = "axis") -> int:
    """An axis counted from either end -> from the front.  Raises AxisError, TypeError."""
    try:
        i = axis.__index__()
    except AttributeError:
        raise TypeError(
            f"{function}: argument '{argument}' must be an integer, got {type(axis).__name__}"
        ) from None
    if not -rank <= i < rank:
        raise np.exceptions.AxisError(
            f"{function}: {argument} {i} is out of bounds for array of dimension {rank}"
        )
    return i + rank if i < 0 else i


def normalize_axes(function: str, axis: Any, rank: int, argument: str = "axis") -> tuple[int, ...]:
    """None (all), one axis or several -> a tuple of distinct axes in the order given."""
    if axis is None:
        return tuple(range(rank))
    if hasattr(axis, "__index__"):
        return (normalize_axis(function, axis, rank, argument),)
    if not isinstance(axis, (tuple, list, np.ndarray)):
        raise TypeError(
            f"{function}: argument '{argument}' must be an integer or a tuple of integers, got "
            f"{type(axis).__name__}"
        )
    axes = tuple(normalize_axis(function, a, rank, argument) for a in axis)
    if len(set(axes)) != len(axes):
        raise ValueError(f"{function}: duplicate value in '{argument}': {tuple(axis)}")
    return axes


def normalize_shape(function: str, shape: Any, argument: str = "shape") -> tuple[int, ...]:
    """An integer or a sequence of integers -> a tuple of sizes."""
    sizes = (shape,) if hasattr(shape, "__index__") and not getattr(shape, "ndim", 0) else shape
    try:
        result = tuple(s if type(s) is int else s.__index__() for s in sizes)
    except (AttributeError, TypeError) as error:
        if isinstance(error, TypeError) and "traced" in str(error):
            raise TypeError(
                f"{function}: argument '{argument}' must be an integer or a sequence of integers "
                f"known when the function is traced. {error}"
            ) from None
        raise TypeError(
            f"{function}: argument '{argument}' must be an integer or a sequence of integers, "
            f"got {shape!r}"
        ) from None
    if any(s < 0 for s in result):
        raise ValueError(f"{function}: argument '{argument}' has a negative size: {result}")
    return result


def require_no_out(function: str, out: Any) -> None:
    if out is not None:
        raise NotImplementedError(
            f"{function}: arrays are immutable, so argument 'out' is not supported. Use the result."
        )


# ---- padding


def hashable(x: Any) -> Any:
    """Lists and arrays as tuples, all the way down."""
    if isinstance(x, np.ndarray) or (hasattr(x, "aval") and hasattr(x, "tolist")):
        x = x.tolist()
    return tuple(map(hashable, x)) if isinstance(x, (list, tuple)) else x
