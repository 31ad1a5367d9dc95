"""Random keys: made from a seed, split, folded, converted.

A key is typed (`key`: dtype key<fry>) or raw (`PRNGKey`: uint32[2]); every function takes both
and gives keys of the kind it was given.  The generator is Threefry-2x32 (ops/random_bits.py), with
bits equal to JAX's for the same seed.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import jato.numpy as jnp
from jato.base import dtypes
from jato.base.config import config
from jato.core.types import type_of
from jato.jit.eager import public
from jato.numpy.promote import normalize_shape
from jato.ops import elementwise as ops
from jato.ops import random_bits
from jato.ops.convert import convert_element_type
from jato.ops.structural import concatenate, reshape

_IMPLEMENTATION = "threefry2x32"
_MASK = 0xFFFFFFFF


def single_key(function: str, key: Any) -> Any:
    """The typed key in an argument `key`.  TypeError for anything else, ValueError for several."""
    if not hasattr(key, "dtype"):
        raise TypeError(
            f"{function}: argument 'key' must be a random key (jato.random.key or PRNGKey), "
            f"got {type(key).__name__}"
        )
    aval = type_of(key)
    if not random_bits.is_key(aval):
        key = _wrapped(function, key, aval)
        aval = type_of(key)
    if aval.shape:
        raise ValueError(
            f"{function} accepts a single key, but was given a key array of shape {aval.shape}. "
            "Use jato.vmap for batching."
        )
    return key


def _wrapped(function: str, key: Any, aval: Any) -> Any:
    if aval.dtype != np.uint32 or aval.ndim < 1 or aval.shape[-1] != 2:
        raise TypeError(
            f"{function}: argument 'key' must be a random key (jato.random.key) or raw key data "
            f"of dtype uint32 and shape (..., 2), got {aval.dtype}{list(aval.shape)}"
        )
    return random_bits.random_wrap(key)


def _check_implementation(function: str, impl: Any, dtype: Any = None) -> None:
    if impl is not None and dtype is not None:
        raise ValueError(f"{function}: give 'impl' or 'dtype', not both")
    chosen = dtype if impl is None else impl
    if chosen not in (None, _IMPLEMENTATION, dtypes.key):
        raise ValueError(f"{function}: unknown generator {chosen!r}; jato has {_IMPLEMENTATION!r}")


@public(name="PRNGKey")
def _raw_from_seed(seed: Any) -> Any:
    dtype = seed.dtype
    if dtype.itemsize == 8:
        high = convert_element_type(ops.shift_right_logical(seed, 32), np.uint32)
    else:
        high = ops.mul(convert_element_type(seed, np.uint32), 0)
    low = convert_element_type(seed, np.uint32)
    return concatenate([reshape(high, (1,)), reshape(low, (1,))], 0)


def _seed_words(function: str, seed: Any) -> Any:
    """uint32[2] from an integer seed; without 64-bit mode only its low half counts."""
    if isinstance(seed, (bool, int, np.integer, np.bool_)):
        number = operator.index(seed) if not isinstance(seed, np.bool_) else int(seed)
        if not -(1 << 63) <= number < 1 << 64:
            raise OverflowError(f"{function}: seed {number} does not fit into 64 bits")
        narrow = not dtypes.x64_enabled() or getattr(seed, "itemsize", 8) < 8
        high = 0 if narrow else number >> 32 & _MASK
        return jnp.asarray(np.array([high, number & _MASK], np.uint32))
    if not hasattr(seed, "dtype"):
        raise TypeError(f"{function}: the seed must be an integer, got {type(seed).__name__}")
    aval = type_of(seed)
    if random_bits.is_key(aval):
        raise TypeError(f"{function} accepts a scalar seed, but was given a random key")
    if aval.shape:
        raise TypeError(
            f"{function} accepts a scalar seed, but was given an array of shape {aval.shape}. "
            "Use jato.vmap for batching."
        )
    if not (dtypes.is_integer(aval.dtype) or dtypes.is_bool(aval.dtype)):
        raise TypeError(f"{function}: the seed must be an integer, got {aval.dtype}")
    if dtypes.is_bool(aval.dtype):
        seed = convert_element_type(seed, np.int32)
    return _raw_from_seed(seed)


def PRNGKey(seed: Any, *, impl: Any = None) -> Any:
    """A raw random key, uint32[2], from an integer seed; typed with `jax_enable_custom_prng`.

    impl: "threefry2x32" or None.  TypeError unless seed is an integer scalar; OverflowError beyond
    64 bits.

    >>> PRNGKey(42)
    Array([ 0, 42], dtype=uint32)
    """
    _check_implementation("PRNGKey", impl)
    words = _seed_words("PRNGKey", seed)
    return random_bits.random_wrap(words) if config.jax_enable_custom_prng else words


def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """A typed random key (scalar of dtype key<fry>) from an integer seed.  See PRNGKey.

    >>> key(42).shape
    ()
    """
    _check_implementation("key", impl, dtype)
    return random_bits.random_wrap(_seed_words("key", seed))


@public(static=("num",))
def split(key: Any, num: int | tuple[int, ...] = 2) -> Any:
    """New independent keys from one key, along a new leading axis (or several).

    key: a key; num: how many, or a shape.

    >>> split(PRNGKey(0)).shape
    (2, 2)
    """
    typed = single_key("split", key)
    keys = random_bits.random_split(typed, normalize_shape("split", num, "num"))
    return keys if typed is key else random_bits.random_unwrap(keys)


@public()
def _fold_in(key: Any, data: Any) -> Any:
    typed = single_key("fold_in", key)
    folded = random_bits.random_fold_in(typed, data)
    return folded if typed is key else random_bits.random_unwrap(folded)


def fold_in(key: Any, data: Any) -> Any:
    """A new key from a key and an integer.

    key: a key; data: an integer scalar, taken as uint32.  OverflowError for a Python integer
    that does not fit; TypeError for arrays that are not integer scalars.

    >>> fold_in(PRNGKey(0), 7).shape
    (2,)
    """
    if isinstance(data, (int, np.integer)):
        number = int(data)
        if isinstance(data, int) and not 0 <= number <= _MASK:
            raise OverflowError(f"fold_in: data {number} is out of bounds for uint32")
        return _fold_in(key, np.uint32(number & _MASK))
    if getattr(data, "shape", ()):
        raise TypeError(
            f"fold_in accepts a scalar, but was given an array of shape {data.shape}. "
            "Use jato.vmap for batching."
        )
    return _fold_in(key, data)


@public()
def key_data(keys: Any) -> Any:
    """The raw words of keys: key[...] -> uint32[..., 2]; raw keys are returned as they are.

    >>> key_data(key(42))
    Array([ 0, 42], dtype=uint32)
    """
    aval = type_of(keys)
    if random_bits.is_key(aval):
        return random_bits.random_unwrap(keys)
    return random_bits.random_unwrap(_wrapped("key_data", keys, aval))


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """Typed keys from raw words: uint32[..., 2] -> key[...].

    >>> wrap_key_data(PRNGKey(42)).shape
    ()
    """
    _check_implementation("wrap_key_data", impl, dtype)
    return _wrap(key_bits_array)


@public(name="wrap_key_data")
def _wrap(key_bits_array: Any) -> Any:
    return _wrapped("wrap_key_data", key_bits_array, type_of(key_bits_array))


@public()
def clone(key: Any) -> Any:
    """The same key; says that using it again is meant.

    >>> bool((clone(PRNGKey(3)) == PRNGKey(3)).all())
    True
    """
    if not random_bits.is_key(type_of(key)):
        _wrapped("clone", key, type_of(key))
    return key


def key_impl(keys: Any) -> str:
    """The name of the generator that keys belong to.

    >>> key_impl(key(0))
    'threefry2x32'
    """
    if not random_bits.is_key(type_of(keys)):
        _wrapped("key_impl", keys, type_of(keys))
    return _IMPLEMENTATION


def key_dtype(impl_spec: Any = None) -> Any:
    """The dtype of typed keys.

    >>> key_dtype() == key(0).dtype
    True
    """
    _check_implementation("key_dtype", impl_spec)
    return dtypes.key
