"""Permutations and choices."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

import jato.numpy as jnp
from jato.base.dtypes import canonicalize
from jato.base.errors import require_unsharded
from jato.core.types import type_of
from jato.jit.eager import public
from jato.numpy.promote import (
    as_array,
    cast,
    dtype_of,
    normalize_axis,
    normalize_shape,
    unary_float,
)
from jato.ops import elementwise as ops
from jato.ops import random_bits
from jato.ops.sort import sort_key_val, top_k
from jato.ops.structural import iota, reshape, slice_in_dim
from jato.random.continuous import gumbel
from jato.random.keys import single_key
from jato.random.uniforms import randint, unit_floats


def _shuffled(key: Any, x: Any, axis: int) -> Any:
    """x sorted by random words along an axis, often enough that equal words do not matter."""
    size = max(1, math.prod(x.shape))
    for _ in range(math.ceil(3 * math.log(size) / math.log(0xFFFFFFFF))):
        keys = random_bits.random_split(key, (2,))
        key = keys[0]
        words = random_bits.random_bits(keys[1], 32, x.shape)
        x = sort_key_val(words, x, axis)[1]
    return x


@public(static=("count", "dtype"), name="permutation")
def _permuted_range(key: Any, count: int, dtype: Any) -> Any:
    return _shuffled(single_key("permutation", key), iota(dtype, count), 0)


@public(static=("axis", "independent"), name="permutation")
def _permuted(key: Any, x: Any, axis: int, independent: bool) -> Any:
    key = single_key("permutation", key)
    x = as_array("permutation", x)
    if independent or len(x.shape) == 1:
        return _shuffled(key, x, axis)
    order = _shuffled(key, iota(canonicalize(np.int64), x.shape[axis]), 0)
    return jnp.take(x, order, axis=axis)


def _range_length(function: str, x: Any) -> int | None:
    """The integer x of "the numbers below x"; None if x is an array with axes."""
    if getattr(x, "ndim", 0):
        return None
    dtype = dtype_of(as_array(function, x))
    if dtype.kind not in "iu":
        raise TypeError(
            f"{function}: expected an integer or an array with axes, got a scalar of {dtype}"
        )
    return operator.index(x)


def permutation(
    key: Any, x: Any, axis: int = 0, independent: bool = False, *, out_sharding: Any = None
) -> Any:
    """The elements of x in random order along `axis`; for an integer x, those of arange(x).

    key: a key; independent: every line along the axis is permuted by itself.

    >>> import jato
    >>> sorted(permutation(jato.random.PRNGKey(0), 4).tolist())
    [0, 1, 2, 3]
    """
    require_unsharded("permutation", out_sharding)
    x = np.asarray(x) if isinstance(x, (list, tuple)) else x
    count = _range_length("permutation", x)
    if count is not None:
        normalize_axis("permutation", axis, 1)
        return _permuted_range(key, max(count, 0), canonicalize(np.int64))
    return _permuted(key, x, normalize_axis("permutation", axis, len(x.shape)), independent)


def choice(
    key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0,
    mode: str | None = None,
) -> Any:  # fmt: skip
    """Random elements of `a` along `axis`; of an integer a, numbers below it.

    key: a key; shape: how many; replace: may an element be drawn twice; p: probabilities of the
    elements, one axis (default: all equal); mode: of gumbel (weighted draws without replacement).
    ValueError if more are drawn without replacement than there are.

    >>> import jato
    >>> int(choice(jato.random.PRNGKey(0), 1))
    0
    """
    shape = normalize_shape("choice", shape)
    a = np.asarray(a) if isinstance(a, (list, tuple)) else a
    count = _range_length("choice", a)
    population = count
    if population is None:
        axis = normalize_axis("choice", axis, len(a.shape))
        population = a.shape[axis]
    draws = math.prod(shape)
    if draws and population <= 0:
        raise ValueError("choice: 'a' must not be empty unless no samples are taken")
    if draws > population and not replace:
        raise ValueError(
            f"choice: cannot take {draws} samples from {population} elements without replacement"
        )
    p = np.asarray(p) if isinstance(p, (list, tuple)) else p
    if p is not None and getattr(p, "shape", None) != (population,):
        raise ValueError(
            f"choice: argument 'p' must have shape {(population,)}, one probability per element, "
            f"got {getattr(p, 'shape', type(p).__name__)}"
        )
    if count is not None:
        return _chosen(key, None, p, shape, replace, axis, mode, count)
    return _chosen(key, a, p, shape, replace, axis, mode, population)


@public(static=("shape", "replace", "axis", "mode", "population"), name="choice")
def _chosen(
    key: Any, a: Any, p: Any, shape: tuple[int, ...], replace: bool, axis: int, mode: Any,
    population: int,
) -> Any:  # fmt: skip
    draws = math.prod(shape)
    if draws == 0:
        if a is None:
            return jnp.zeros(shape, int)
        a = as_array("choice", a)
        return jnp.zeros((*a.shape[:axis], *shape, *a.shape[axis + 1 :]), dtype_of(a))
    if p is None and not replace:
        if a is None:
            order = _permuted_range(key, population, canonicalize(np.int64))
            return reshape(slice_in_dim(order, 0, draws), shape)
        drawn = slice_in_dim(_permuted(key, a, axis, False), 0, draws, 1, axis)
        return reshape(drawn, (*drawn.shape[:axis], *shape, *drawn.shape[axis + 1 :]))
    found = _indices(key, p, shape, draws, replace, mode, population)
    return found if a is None else jnp.take(as_array("choice", a), found, axis=axis)


def _indices(
    key: Any, p: Any, shape: tuple[int, ...], draws: int, replace: bool, mode: Any, population: int
) -> Any:
    if p is None:
        return randint(key, shape, 0, population)
    p = unary_float("choice", as_array("choice", p))
    integer = canonicalize(np.int64)
    if replace:
        total = jnp.cumsum(p)
        u = unit_floats(single_key("choice", key), shape, type_of(total).dtype)
        return cast(jnp.searchsorted(total, total[-1] * (1 - u)), integer)
    noisy = gumbel(key, (population,), dtype_of(p), mode) + ops.log(p)
    return cast(reshape(top_k(noisy, draws)[1], shape), integer)
