"""Functions of integers and bits: gcd, lcm, packbits, unpackbits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jato.base.dtypes import is_bool, is_integer, is_unsigned
from jato.jit.eager import public
from jato.numpy.logic import as_bool
from jato.numpy.makers import select_where
from jato.numpy.promote import (
    as_array,
    as_typed,
    broadcast,
    dtype_of,
    normalize_axis,
    promote_all,
    shape_of,
)
from jato.numpy.reductions import as_type
from jato.ops import elementwise, structural


def _integers(function: str, x1: Any, x2: Any) -> tuple[Any, Any]:
    x1, x2 = promote_all(function, x1, x2)
    if not is_integer(dtype_of(x1)) or not is_integer(dtype_of(x2)):
        raise ValueError(f"{function}: expected integers, got dtype {dtype_of(x1)}")
    dtype = dtype_of(x1) if hasattr(x1, "dtype") else dtype_of(x2)
    x1, x2 = as_typed(x1, dtype), as_typed(x2, dtype)
    shape = shape_of(x1) or shape_of(x2)
    return broadcast(x1, shape), broadcast(x2, shape)


def _magnitude(x: Any) -> Any:
    return x if is_unsigned(dtype_of(x)) else elementwise.abs(x)


def _gcd(a: Any, b: Any) -> Any:
    """Euclid's algorithm, as many steps as the longest case (Fibonacci numbers) takes."""
    dtype = dtype_of(a)
    zero = dtype.type(0)
    steps = math.ceil(dtype.itemsize * 8 / math.log2((1 + math.sqrt(5)) / 2)) + 1
    for _ in range(steps):
        done = elementwise.eq(b, zero)
        a, b = (
            select_where(done, a, b),
            select_where(done, zero, elementwise.rem(a, select_where(done, dtype.type(1), b))),
        )
    return a


@public()
def gcd(x1: Any, x2: Any) -> Any:
    """The greatest common divisor, elementwise.  Raises ValueError for other than integers.

    >>> import jato.numpy as jnp
    >>> jnp.gcd(jnp.array([12, 7]), 18)
    Array([6, 1], dtype=int32)
    """
    return _gcd(*map(_magnitude, _integers("gcd", x1, x2)))


@public()
def lcm(x1: Any, x2: Any) -> Any:
    """The least common multiple, elementwise; 0 where either is 0.

    >>> import jato.numpy as jnp
    >>> jnp.lcm(jnp.array([4, 7]), 6)
    Array([12, 42], dtype=int32)
    """
    x1, x2 = map(_magnitude, _integers("lcm", x1, x2))
    divisor = _gcd(x1, x2)
    zero, one = dtype_of(x1).type(0), dtype_of(x1).type(1)
    safe = select_where(elementwise.eq(divisor, zero), one, divisor)
    return elementwise.mul(x1, elementwise.div(x2, safe))


def _last(function: str, a: Any, axis: int | None) -> tuple[Any, tuple[int, ...], int]:
    """(a with the axis last, the order that puts it back, size)."""
    if axis is None:
        a, axis = structural.reshape(a, (math.prod(a.shape),)), 0
    rank = len(a.shape)
    axis = normalize_axis(function, axis, rank)
    order = (*(i for i in range(rank) if i != axis), axis)
    back = tuple(order.index(i) for i in range(rank))
    return structural.transpose(a, order), back, a.shape[axis]


def _shifts(bitorder: str, function: str) -> Any:
    if bitorder not in ("big", "little"):
        raise ValueError(
            f"{function}: argument 'bitorder' must be 'big' or 'little', got {bitorder!r}"
        )
    shifts = np.arange(8, dtype=np.uint8)
    return shifts[::-1] if bitorder == "big" else shifts


@public(static=("axis", "bitorder"))
def packbits(a: Any, axis: int | None = None, bitorder: str = "big") -> Any:
    """Eight bools (or integers, nonzero being true) each as the bits of one uint8.

    >>> import jato.numpy as jnp
    >>> jnp.packbits(jnp.array([1, 0, 1]))
    Array([160], dtype=uint8)
    """
    a = as_array("packbits", a)
    if not (is_integer(dtype_of(a)) or is_bool(dtype_of(a))):
        raise TypeError(f"packbits: expected bools or integers, got dtype {dtype_of(a)}")
    a, back, size = _last("packbits", as_bool(a), axis)
    missing = -size % 8
    rank = len(a.shape)
    a = structural.pad(a, np.bool_(False), [(0, 0, 0)] * (rank - 1) + [(0, missing, 0)])
    bits = structural.reshape(as_type(a, np.uint8), (*a.shape[:-1], (size + missing) // 8, 8))
    shifts = structural.broadcast_in_dim(_shifts(bitorder, "packbits").copy(), bits.shape, (rank,))
    packed = structural.reduce_sum(elementwise.shift_left(bits, shifts), (rank,))
    return structural.transpose(packed, back)


@public(static=("axis", "count", "bitorder"))
def unpackbits(
    a: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Any:
    """The bits of uint8 numbers as zeros and ones; the first `count` of them.

    >>> import jato.numpy as jnp
    >>> jnp.unpackbits(jnp.array([160], dtype=jnp.uint8), count=3)
    Array([1, 0, 1], dtype=uint8)
    """
    a = as_array("unpackbits", a)
    if dtype_of(a) != np.uint8:
        raise TypeError(f"unpackbits: expected uint8, got dtype {dtype_of(a)}")
    a, back, size = _last("unpackbits", a, axis)
    rank = len(a.shape)
    wide = (*a.shape, 8)
    shifts = structural.broadcast_in_dim(_shifts(bitorder, "unpackbits").copy(), wide, (rank,))
    spread = structural.broadcast_in_dim(a, wide, tuple(range(rank)))
    bits = elementwise.bitwise_and(elementwise.shift_right_logical(spread, shifts), np.uint8(1))
    bits = structural.reshape(bits, (*a.shape[:-1], size * 8))
    if count is not None:
        total = count if count >= 0 else size * 8 + count
        if total > size * 8:
            bits = structural.pad(
                bits, np.uint8(0), [(0, 0, 0)] * (rank - 1) + [(0, total - size * 8, 0)]
            )
        else:
            bits = structural.slice_in_dim(bits, 0, total, axis=rank - 1)
    return structural.transpose(bits, back)
