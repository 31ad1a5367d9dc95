"""jnp.float32 and its kin: dtypes that can be called to make an array, and questions about dtypes.

Each is a class with a `dtype` attribute, so that NumPy accepts it wherever it accepts a dtype, and
`x.dtype == jnp.float32` holds.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes

import numpy as np
from jato.base import dtypes
from jato.numpy.creation import asarray
from jato.numpy.promote import as_array, dtype_of, is_weak


class _ScalarMeta(type):
    """Class of the scalar types: equal to their dtype, callable to convert."""

    dtype: Any

    def __hash__(cls) -> int:
        return hash(cls.dtype)

    def __eq__(cls, other: object) -> bool:
        if isinstance(other, _ScalarMeta):
            return bool(cls.dtype == other.dtype)
        return cls is other or bool(cls.dtype == other)

    def __call__(cls, x: Any = 0) -> Any:
        return asarray(x, dtype=cls.dtype)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.dtype.type)

    def __repr__(cls) -> str:
        return f"<class 'jato.numpy.{cls.__name__}'>"


def _scalar_type(name: str, dtype: Any) -> Any:
    text = f"The dtype {dtype.name}; called, it converts to an array of that dtype."
    return _ScalarMeta(name, (), {"dtype": dtype, "__doc__": text, "__module__": "jato.numpy"})


bool_ = _scalar_type("bool", np.dtype("bool"))


int8 = _scalar_type("int8", np.dtype("int8"))


int16 = _scalar_type("int16", np.dtype("int16"))


int32 = _scalar_type("int32", np.dtype("int32"))


int64 = _scalar_type("int64", np.dtype("int64"))


uint8 = _scalar_type("uint8", np.dtype("uint8"))


uint16 = _scalar_type("uint16", np.dtype("uint16"))


uint32 = _scalar_type("uint32", np.dtype("uint32"))


uint64 = _scalar_type("uint64", np.dtype("uint64"))


float16 = _scalar_type("float16", np.dtype("float16"))


bfloat16 = _scalar_type("bfloat16", dtypes.bfloat16)


float32 = _scalar_type("float32", np.dtype("float32"))


float64 = _scalar_type("float64", np.dtype("float64"))


complex64 = _scalar_type("complex64", np.dtype("complex64"))


complex128 = _scalar_type("complex128", np.dtype("complex128"))


int_, uint, float_, complex_ = int64, uint64, float64, complex128


single, double, csingle, cdouble = float32, float64, complex64, complex128


def finfo(dtype: Any) -> Any:
    """Limits of a float dtype: max, min, tiny, eps, bits, ...

    >>> import jato.numpy as jnp
    >>> float(jnp.finfo(jnp.float32).eps)
    1.1920928955078125e-07
    """
    return ml_dtypes.finfo(dtypes.as_dtype(dtype))


def iinfo(dtype: Any) -> Any:
    """Limits of an integer dtype: max, min, bits.

    >>> import jato.numpy as jnp
    >>> jnp.iinfo(jnp.int8).max
    127
    """
    return ml_dtypes.iinfo(dtypes.as_dtype(dtype))


def _number_types(dtype: Any) -> Any:
    return np.dtype(dtype.dtype) if isinstance(dtype, _ScalarMeta) else dtype


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Is dtype arg1 of the kind arg2?  bfloat16 is a floating type; a random key's is a prng_key.

    >>> import jato.numpy as jnp
    >>> jnp.issubdtype(jnp.bfloat16, jnp.floating)
    True
    """
    if arg1 is dtypes.key or getattr(arg1, "dtype", None) is dtypes.key:
        return arg2 is np.generic or getattr(arg2, "__name__", "") in ("prng_key", "extended")
    if getattr(arg2, "__name__", "") in ("prng_key", "extended"):
        return False
    arg1, arg2 = _number_types(arg1), _number_types(arg2)
    if not isinstance(arg1, type) or not issubclass(arg1, np.generic):
        arg1 = dtypes.as_dtype(arg1)
    if arg1 == dtypes.bfloat16:
        if isinstance(arg2, type) and issubclass(arg2, np.generic) and arg2 in (
            np.floating, np.inexact, np.number, np.generic
        ):  # fmt: skip
            return True
        return bool(arg2 == dtypes.bfloat16)
    if arg2 == dtypes.bfloat16:
        return False
    return bool(np.issubdtype(arg1, arg2))


def isdtype(dtype: Any, kind: Any) -> bool:
    """Is the dtype of a kind: "bool", "signed integer", "integral", "real floating", "numeric", ...?

    >>> import jato.numpy as jnp
    >>> jnp.isdtype(jnp.float32, "real floating")
    True
    """
    d = dtypes.as_dtype(dtype)
    tests = {
        "bool": dtypes.is_bool(d),
        "signed integer": dtypes.is_signed(d),
        "unsigned integer": dtypes.is_unsigned(d),
        "integral": dtypes.is_integer(d),
        "real floating": dtypes.is_floating(d),
        "complex floating": dtypes.is_complex(d),
        "numeric": dtypes.is_integer(d) or dtypes.is_inexact(d),
    }
    for one in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(one, str) and one in tests:
            if tests[one]:
                return True
        elif isinstance(one, str):
            raise ValueError(f"isdtype: unknown kind {one!r}; expected one of {sorted(tests)}")
        elif d == dtypes.as_dtype(one):
            return True
    return False


def result_type(*args: Any) -> Any:
    """The dtype to which arrays, numbers and dtypes promote.

    >>> import jato.numpy as jnp
    >>> jnp.result_type(jnp.int32, 1.0)
    dtype('float32')
    """
    if not args:
        raise ValueError("result_type: at least one array or dtype is required")
    pairs = []
    for arg in args:
        if isinstance(arg, (type, str, np.dtype)) or arg is dtypes.key:
            pairs.append(
                (dtypes.as_dtype(arg), isinstance(arg, type) and arg in (int, float, complex))
            )
        elif isinstance(arg, (list, tuple)) or arg is None:
            raise TypeError(f"result_type: expected arrays, numbers or dtypes, got {arg!r}")
        else:
            arg = arg if type(arg) in (bool, int, float, complex) else as_array("result_type", arg)
            pairs.append((dtype_of(arg), is_weak(arg)))
    return dtypes.promote(*pairs)[0]


def promote_types(a: Any, b: Any) -> Any:
    """The dtype to which two dtypes promote.

    >>> import jato.numpy as jnp
    >>> jnp.promote_types("int8", "float16")
    dtype('float16')
    """
    return dtypes.promote_types(_number_types(a), _number_types(b))


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Can one dtype be cast to another under a casting rule?

    >>> import jato.numpy as jnp
    >>> jnp.can_cast("int8", "int16")
    True
    """
    return bool(np.can_cast(dtypes.as_dtype(from_), dtypes.as_dtype(to), casting=casting))  # type: ignore[arg-type]
