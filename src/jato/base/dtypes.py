"""Element types: codes, canonical forms, weak types and promotion.

The codes are those of native/core/dtype.h.  A dtype is a NumPy dtype object, except for
`float0` (the tangent of integers) and `key` (a random key, physically 64 bits).  Promotion
follows JAX's lattice: Python scalars are weak and never widen an array.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from jato import _native
from jato.base.errors import check


class KeyDType:
    """The dtype of arrays of random keys (`random.key`); an element is one 64-bit counter key."""

    name = "key<fry>"
    itemsize = 8
    kind = "k"

    def __repr__(self) -> str:
        return self.name


bfloat16 = np.dtype(ml_dtypes.bfloat16)
float0 = np.dtype([("float0", np.void, 0)])
key = KeyDType()

# position = code
DTYPES: list[Any] = [
    *(np.dtype(n) for n in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16",
    )),
    bfloat16,
    *(np.dtype(n) for n in ("float32", "float64", "complex64", "complex128")),
    float0,
    key,
]  # fmt: skip
_native.set_dtype_objects(DTYPES)

# position = code: the scalar type of the loop IR that holds it ("c64"/"c128": a pair)
SCALAR_NAMES = (
    "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64",
    "c64", "c128", "bool", "u64",
)  # fmt: skip

_CODES: dict[Any, int] = {d: i for i, d in enumerate(DTYPES)}
_NARROW: dict[Any, Any] = {
    np.dtype("int64"): np.dtype("int32"),
    np.dtype("uint64"): np.dtype("uint32"),
    np.dtype("float64"): np.dtype("float32"),
    np.dtype("complex128"): np.dtype("complex64"),
}
_PYTHON = {
    bool: np.dtype("bool"),
    int: np.dtype("int64"),
    float: np.dtype("float64"),
    complex: np.dtype("complex128"),
}


class _State:
    x64 = False


def x64_enabled() -> bool:
    return _State.x64


def set_x64(value: bool) -> None:
    """Called by base/config.py when `jax_enable_x64` changes."""
    _State.x64 = bool(value)
    _native.set_x64(bool(value))


def as_dtype(dtype: Any) -> Any:
    """The dtype object for any spelling (np.float32, "f4", float, ...), as it is written."""
    if isinstance(dtype, np.dtype) and dtype in _CODES:
        return dtype
    if dtype is key or dtype is float0:
        return dtype
    if isinstance(dtype, type) and dtype in _PYTHON:
        return _PYTHON[dtype]
    inner = getattr(dtype, "dtype", None)
    if inner is not None and not isinstance(dtype, type) and not isinstance(dtype, np.dtype):
        dtype = inner
    if dtype is key:
        return key
    try:
        result = np.dtype(dtype)
    except TypeError:
        raise TypeError(
            f"expected a dtype (such as 'float32' or jato.numpy.float32), got {dtype!r}"
        ) from None
    result = result.newbyteorder("=") if not result.isnative else result
    if result not in _CODES:
        raise TypeError(
            f"dtype {result} is not supported. Supported: bool, int8..int64, uint8..uint64, "
            "float16, bfloat16, float32, float64, complex64, complex128."
        )
    return result


def canonicalize(dtype: Any) -> Any:
    """`as_dtype`, with 64-bit types narrowed to 32 bits unless jax_enable_x64 is set."""
    result = as_dtype(dtype)
    return result if _State.x64 else _NARROW.get(result, result)


def code_of(dtype: Any) -> int:
    code = _CODES.get(dtype) if not isinstance(dtype, (str, type)) else None
    return _CODES[as_dtype(dtype)] if code is None else code


def scalar_dtype(x: Any) -> Any:
    """The canonical dtype of a Python number."""
    known = _PYTHON.get(type(x))
    if known is not None:
        return known if _State.x64 else _NARROW.get(known, known)
    return canonicalize(_PYTHON[bool if isinstance(x, bool) else _python_kind(x)])


def _python_kind(x: Any) -> type:
    for kind in (int, float, complex):
        if isinstance(x, kind):
            return kind
    raise TypeError(f"expected a Python number, got {type(x).__name__}")


def scalar_name(aval_or_dtype: Any) -> str:
    """The loop IR's name of a dtype: "f32", "i64", "c64", ..."""
    return SCALAR_NAMES[code_of(getattr(aval_or_dtype, "dtype", aval_or_dtype))]


def is_bool(dtype: Any) -> bool:
    return code_of(dtype) == 0


def is_signed(dtype: Any) -> bool:
    return 1 <= code_of(dtype) <= 4


def is_unsigned(dtype: Any) -> bool:
    return 5 <= code_of(dtype) <= 8


def is_integer(dtype: Any) -> bool:
    return 1 <= code_of(dtype) <= 8


def is_floating(dtype: Any) -> bool:
    return 9 <= code_of(dtype) <= 12


def is_complex(dtype: Any) -> bool:
    return 13 <= code_of(dtype) <= 14


def is_inexact(dtype: Any) -> bool:
    return 9 <= code_of(dtype) <= 14


# ---- promotion (https://docs.jax.dev/en/latest/type_promotion.html)
# The lattice as "immediate successors"; i*, f*, c* are the weak Python types.

_B, _I, _F, _C = "bool", "i*", "f*", "c*"
_SUCCESSORS: dict[str, tuple[str, ...]] = {
    "bool": ("i*",),
    "i*": ("uint8", "int8"),
    "uint8": ("int16", "uint16"),
    "uint16": ("int32", "uint32"),
    "uint32": ("int64", "uint64"),
    "uint64": ("f*",),
    "int8": ("int16",),
    "int16": ("int32",),
    "int32": ("int64",),
    "int64": ("f*",),
    "f*": ("bfloat16", "float16", "c*"),
    "bfloat16": ("float32",),
    "float16": ("float32",),
    "float32": ("float64", "complex64"),
    "float64": ("complex128",),
    "c*": ("complex64",),
    "complex64": ("complex128",),
    "complex128": (),
}


def _ancestors() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}

    def visit(name: str) -> frozenset[str]:
        if name not in found:
            found[name] = frozenset({name}).union(*(visit(s) for s in _SUCCESSORS[name]))
        return found[name]

    for name in _SUCCESSORS:
        visit(name)
    return found


_UPPER = _ancestors()
_WEAK_DTYPE = {"i*": int, "f*": float, "c*": complex}
_joins: dict[tuple[str, str], str] = {}


def _join(a: str, b: str) -> str:
    if a == b:
        return a
    found = _joins.get((a, b))
    if found is None:
        common = _UPPER[a] & _UPPER[b]
        # the least upper bound is the common ancestor from which all others are reached
        found = _joins[a, b] = next(n for n in common if common <= _UPPER[n])
    return found


def _node(dtype: Any, weak: bool) -> str:
    d = as_dtype(dtype)
    if weak and not is_bool(d):
        return "i*" if is_integer(d) else "f*" if is_floating(d) else "c*"
    return d.name


def promote(*items: tuple[Any, bool]) -> tuple[Any, bool]:
    """Joins (dtype, weak) pairs: (canonical dtype, weak)."""
    first = as_dtype(items[0][0])
    if first is key or first == float0:
        check(
            all(as_dtype(d) == first for d, _ in items),
            TypeError,
            f"arrays of dtype {first} do not mix with other dtypes",
        )
        return first, False
    check(
        all(as_dtype(d) is not key and as_dtype(d) != float0 for d, _ in items),
        TypeError,
        "arrays of random keys do not mix with numbers; use random.key_data",
    )
    if len(items) == 1:
        return canonicalize(first), bool(items[0][1])
    # weak types of one kind keep the widest dtype among them (f16 weak + f32 weak -> f32)
    name = _node(*items[0])
    for item in items[1:]:
        name = _join(name, _node(*item))
    if name in _WEAK_DTYPE:
        return canonicalize(_PYTHON[_WEAK_DTYPE[name]]), True
    return canonicalize(np.dtype(name) if name != "bfloat16" else bfloat16), False


def promote_types(a: Any, b: Any) -> Any:
    """The dtype two dtypes promote to; Python's int, float and complex are weak."""
    pair = [(d, isinstance(d, type) and d in (int, float, complex)) for d in (a, b)]
    return promote(*pair)[0]
