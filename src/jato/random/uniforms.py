"""Bits, uniform floats and integers, coin flips: what the other distributions are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

import jato.numpy as jnp
from jato.base import dtypes
from jato.core.types import type_of
from jato.jit.eager import public
from jato.numpy.promote import as_array, cast, dtype_of, normalize_shape, shape_of
from jato.ops import elementwise as ops
from jato.ops import random_bits
from jato.ops.convert import bitcast_convert_type, convert_element_type
from jato.ops.structural import full_like
from jato.random.arguments import float_dtype, integer_dtype, parameter, sample_shape
from jato.random.keys import single_key, split


@public(static=("shape", "dtype", "out_sharding"))
def bits(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Uniform random bits as unsigned integers.

    key: a key; shape: of the result; dtype: an unsigned integer dtype (default uint32, uint64 in
    64-bit mode).  ValueError for other dtypes.

    >>> import jato
    >>> bits(jato.random.key(0), (2,)).dtype
    dtype('uint32')
    """
    key = single_key("bits", key)
    dtype = dtypes.canonicalize(np.uint64 if dtype is None else dtype)
    if not dtypes.is_unsigned(dtype):
        raise ValueError(f"bits: argument 'dtype' must be an unsigned integer dtype, got {dtype}")
    return random_bits.random_bits(key, dtype.itemsize * 8, normalize_shape("bits", shape))


def unit_floats(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Floats of [0, 1): random mantissa bits below the exponent of 1, minus 1."""
    info = jnp.finfo(dtype)
    width = info.bits
    drawn = 8 if info.nmant < 8 else width  # bfloat16 and narrower: one byte is enough
    word = np.dtype(f"uint{width}")
    raw = random_bits.random_bits(key, drawn, shape)
    if drawn != width:
        raw = convert_element_type(raw, word)
    one = int(np.array(1, dtype).view(word))
    mantissa = ops.shift_right_logical(raw, full_like(raw, drawn - info.nmant))
    floats = bitcast_convert_type(ops.bitwise_or(mantissa, full_like(raw, one)), dtype)
    return ops.sub(floats, full_like(floats, 1))


def uniform_between(key: Any, shape: tuple[int, ...], dtype: Any, low: Any, high: Any) -> Any:
    """Floats of [low, high); low and high are numbers or arrays of the dtype that broadcast."""
    floats = unit_floats(key, shape, dtype)
    if isinstance(low, (int, float, np.floating)) and isinstance(high, (int, float, np.floating)):
        low, high = np.asarray(low, dtype)[()], np.asarray(high, dtype)[()]
        if low == 0 and high == 1:
            return floats
        span = np.subtract(high, low, dtype=dtype)
    else:
        span = high - low
    return jnp.maximum(low, floats * span + low)


@public(static=("shape", "dtype", "out_sharding"))
def uniform(
    key: Any,
    shape: Any = (),
    dtype: Any = None,
    minval: Any = 0.0,
    maxval: Any = 1.0,
    *,
    out_sharding: Any = None,
) -> Any:
    """Uniform floats in [minval, maxval).

    key: a key; shape, dtype: of the result; minval, maxval: numbers or arrays that broadcast to
    the shape.  ValueError for a dtype that is not floating.

    >>> import jato
    >>> float(uniform(jato.random.PRNGKey(0), minval=2.0, maxval=3.0)) >= 2.0
    True
    """
    key = single_key("uniform", key)
    dtype = float_dtype("uniform", dtype)
    shape = sample_shape("uniform", shape, minval, maxval)
    low, high = (parameter("uniform", x, dtype) for x in (minval, maxval))
    return uniform_between(key, shape, dtype, low, high)


def _clipped(x: Any, dtype: Any) -> Any:
    """Integers of any dtype in another one, clipped to its range."""
    own, target = np.iinfo(type_of(x).dtype), np.iinfo(dtype)
    low, high = max(own.min, target.min), min(own.max, target.max)
    if (low, high) != (own.min, own.max):
        x = ops.clamp(full_like(x, int(low)), x, full_like(x, int(high)))
    return cast(x, dtype)


@public(static=("shape", "dtype", "out_sharding"))
def randint(
    key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Uniform integers in [minval, maxval).

    key: a key; shape: of the result; minval, maxval: integers or arrays of them that broadcast to
    the shape; dtype: an integer dtype (default int32, int64 in 64-bit mode).  Where
    maxval <= minval the result is minval.

    >>> import jato
    >>> int(randint(jato.random.PRNGKey(0), (), 5, 6))
    5
    """
    key = single_key("randint", key)
    dtype = integer_dtype("randint", dtype)
    shape = sample_shape("randint", shape, minval, maxval)
    low, high = (_integers("randint", x) for x in (minval, maxval))
    drawn = dtype
    if np.iinfo(dtype).bits < 32:
        # drawn in int32, so that maxval may be one past the largest value
        drawn, info = np.dtype("int32"), np.iinfo(dtype)
        low = jnp.clip(cast(low, drawn), int(info.min), int(info.max))
        high = jnp.clip(cast(high, drawn), int(info.min), int(info.max) + 1)
    return cast(_integers_between(key, shape, drawn, low, high), dtype)


def _integers(function: str, x: Any) -> Any:
    x = as_array(function, x)
    if type_of(x).weak_type or not dtypes.is_integer(dtype_of(x)):
        kept = dtype_of(x) if dtypes.is_integer(dtype_of(x)) else dtypes.canonicalize(np.int64)
        x = convert_element_type(x, kept)
    return x


def _integers_between(key: Any, shape: tuple[int, ...], dtype: Any, low: Any, high: Any) -> Any:
    """Two words a number, reduced modulo the span as one wide word: the bias is negligible."""
    width = np.iinfo(dtype).bits
    word = np.dtype(f"uint{width}")
    past_end = ops.gt(high, _clipped(np.asarray(np.iinfo(dtype).max, dtype), type_of(high).dtype))
    low, high = (jnp.broadcast_to(_clipped(x, dtype), shape) for x in (low, high))
    past_end = jnp.broadcast_to(past_end, shape)
    first, second = (random_bits.random_bits(k, width, shape) for k in _two_keys(key))
    one = full_like(first, 1)
    span = convert_element_type(ops.sub(high, low), word)
    span = ops.select(ops.le(high, low), one, span)
    span = ops.select(ops.bitwise_and(past_end, ops.gt(high, low)), ops.add(span, one), span)
    # 2^width modulo the span, from its square root
    multiplier = ops.rem(full_like(span, 1 << (width // 2)), span)
    multiplier = ops.rem(ops.mul(multiplier, multiplier), span)
    offset = ops.add(ops.mul(ops.rem(first, span), multiplier), ops.rem(second, span))
    return ops.add(low, convert_element_type(ops.rem(offset, span), dtype))


def _two_keys(key: Any) -> tuple[Any, Any]:
    keys = split(key)
    return keys[0], keys[1]


@public(static=("shape", "mode", "out_sharding"))
def bernoulli(
    key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low", *, out_sharding: Any = None
) -> Any:
    """True with probability p.

    key: a key; p: float or array of them; shape: of the result (default: that of p), to which p
    broadcasts; mode: "high" resolves probabilities near 0 more finely.

    >>> import jato
    >>> bernoulli(jato.random.PRNGKey(0), 1.0, (2,))
    Array([ True,  True], dtype=bool)
    """
    if mode not in ("high", "low"):
        raise ValueError(f"bernoulli: argument 'mode' must be 'high' or 'low', got {mode!r}")
    key = single_key("bernoulli", key)
    dtype = dtype_of(p)
    if not dtypes.is_floating(dtype):
        raise TypeError(f"bernoulli: argument 'p' must be of a floating dtype, got {dtype}")
    shape = shape_of(p) if shape is None else sample_shape("bernoulli", shape, p)
    p = parameter("bernoulli", p, dtype)
    if mode == "low":
        return jnp.less(unit_floats(key, shape, dtype), p)
    both = unit_floats(key, (2, *shape), dtype)
    fine = both[1] * np.asarray(2.0 ** -jnp.finfo(dtype).nmant, dtype)[()]
    return jnp.less(fine, p - both[0])


@public(static=("shape", "dtype", "out_sharding"))
def rademacher(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """-1 or 1, each with probability 1/2.

    key: a key; shape, dtype: of the result (default dtype int32).

    >>> import jato
    >>> abs(int(rademacher(jato.random.PRNGKey(0))))
    1
    """
    key = single_key("rademacher", key)
    dtype = dtypes.canonicalize(np.int64 if dtype is None else dtype)
    shape = normalize_shape("rademacher", shape)
    heads = bernoulli(key, 0.5, shape)
    return ops.select(heads, full_like(heads, 1, dtype), full_like(heads, -1, dtype))
