"""Discrete distributions: categorical, geometric, Poisson, binomial, multinomial.

Poisson and binomial samples are found by loops over the whole array, until every element has
been accepted.  Values equal JAX's for the same key.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import jato.numpy as jnp
from jato.base import dtypes
from jato.control.scan import scan
from jato.control.while_loop import while_loop
from jato.core.types import type_of
from jato.jit.eager import public
from jato.numpy.promote import (
    as_array,
    cast,
    dtype_of,
    normalize_shape,
    promote_dtypes,
    unary_float,
)
from jato.ops import elementwise as ops
from jato.ops import random_bits
from jato.ops.cumulative import cumsum
from jato.ops.reduce import reduce_and, reduce_or
from jato.ops.sort import top_k
from jato.ops.structural import expand_dims, full_like, reshape
from jato.random.arguments import float_dtype, integer_dtype, parameter, require_exact, sample_shape
from jato.random.continuous import gumbel
from jato.random.keys import single_key
from jato.random.uniforms import unit_floats

_CATEGORICAL_STATIC = ("axis", "shape", "replace", "mode", "out_sharding")


@public(static=_CATEGORICAL_STATIC)
def categorical(
    key: Any, logits: Any, axis: int = -1, shape: Any = None, replace: bool = True,
    mode: str | None = None, *, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """Indices drawn with probabilities softmax(logits) along `axis`.

    key: a key; logits: array; shape: of the result (default: that of logits without the axis),
    whose last axes are those; replace: False draws different categories, along the leading axes
    of the shape; mode: of gumbel.  The Gumbel-max trick.

    >>> import jato, jato.numpy as jnp
    >>> int(categorical(jato.random.PRNGKey(0), jnp.array([-jnp.inf, 0.0])))
    1
    """
    key = single_key("categorical", key)
    logits = unary_float("categorical", as_array("categorical", logits))
    rank = len(logits.shape)
    if not -rank <= axis < rank:
        raise ValueError(f"categorical: axis {axis} is out of bounds for logits of rank {rank}")
    axis %= rank
    size = logits.shape[axis]
    batch = tuple(n for d, n in enumerate(logits.shape) if d != axis)
    if shape is None:
        shape = batch
    else:
        shape = sample_shape("categorical", shape, np.empty(batch, np.bool_))
    prefix = shape[: len(shape) - len(batch)]
    if replace:
        drawn = list(shape[len(prefix) :])
        drawn.insert(axis, size)
        noise = gumbel(key, (*prefix, *drawn), logits.dtype, mode)
        noisy = noise + expand_dims(logits, tuple(range(len(prefix))))
        return jnp.argmax(noisy, axis=axis - rank)
    count = math.prod(prefix)
    if count > size:
        raise ValueError(
            f"categorical: cannot draw {count} categories without replacement from {size}"
        )
    noisy = logits + gumbel(key, logits.shape, logits.dtype, mode)
    indices = top_k(jnp.moveaxis(noisy, axis, -1), count)[1]
    return reshape(jnp.moveaxis(indices, -1, 0), shape)


@public(static=("shape", "dtype", "out_sharding"))
def geometric(
    key: Any, p: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """The number of coin flips until the first success of probability p: 1, 2, ...

    >>> import jato
    >>> bool(geometric(jato.random.PRNGKey(0), 0.5) >= 1)
    True
    """
    key, dtype = single_key("geometric", key), integer_dtype("geometric", dtype)
    shape = sample_shape("geometric", shape, p)
    p = unary_float("geometric", as_array("geometric", p))
    u = unit_floats(key, shape, dtype_of(p))
    u = jnp.where(ops.eq(u, full_like(u, 0)), 1, u)
    quotient = jnp.divide(ops.log(u), jnp.broadcast_to(ops.log1p(ops.neg(p)), shape))
    return cast(ops.floor(quotient) + 1, dtype)


def _any(x: Any) -> Any:
    return reduce_or(x, tuple(range(type_of(x).ndim)))


def _all(x: Any) -> Any:
    return reduce_and(x, tuple(range(type_of(x).ndim)))


def _poisson_by_products(key: Any, lam: Any, dtype: Any) -> Any:
    """For small rates: the number of uniform factors until their product is below exp(-lam).

    D. Knuth, The Art of Computer Programming, volume 2, 3.4.1.
    """
    shape = lam.shape
    limit = np.asarray(np.iinfo(dtype).max, dtype)[()]

    def body(state: Any) -> Any:
        i, count, key, log_product = state
        keys = random_bits.random_split(key, (2,))
        count = ops.select(log_product > -lam, count + 1, count)
        u = unit_floats(keys[1], shape, np.dtype("float32"))
        return i + 1, count, keys[0], log_product + ops.log(u)

    def running(state: Any) -> Any:
        return ops.bitwise_and(_any(state[3] > -lam), ops.lt(state[0], limit))

    start = (np.zeros((), dtype)[()], full_like(lam, 0, dtype), key, full_like(lam, 0))
    return while_loop(running, body, start)[1] - 1


def _poisson_by_rejection(key: Any, lam: Any, unused: Any, dtype: Any) -> Any:
    """For large rates: W. Hoermann, Insurance: Mathematics and Economics 12 (1993), PTRS.

    unused: whether no result is used at all.  Where one is, all rates are drawn for, since numbers
    are drawn again until the last is accepted."""
    shape = lam.shape
    log_lam = ops.log(lam)
    b = 0.931 + 2.53 * ops.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)
    limit = np.asarray(np.iinfo(dtype).max, dtype)[()]

    def body(state: Any) -> Any:
        i, found, accepted, key = state
        keys = random_bits.random_split(key, (3,))
        u = unit_floats(keys[1], shape, lam.dtype) - 0.5
        v = unit_floats(keys[2], shape, lam.dtype)
        shifted = 0.5 - ops.abs(u)
        k = ops.floor((2 * a / shifted + b) * u + lam + 0.43)
        s = ops.log(v * inverse_alpha / (a / (shifted * shifted) + b))
        t = -lam + k * log_lam - ops.lgamma(k + 1)
        at_once = (shifted >= 0.07) & (v <= v_r)
        never = (k < 0) | ((shifted < 0.013) & (v > shifted))
        accept = at_once | (ops.bitwise_not(never) & (s <= t))
        return i + 1, ops.select(accept, k, found), accepted | accept, keys[0]

    def running(state: Any) -> Any:
        return ops.bitwise_and(_any(ops.bitwise_not(state[2])), ops.lt(state[0], limit))

    accepted = jnp.broadcast_to(unused, shape)
    start = (np.zeros((), dtype)[()], full_like(lam, -1), accepted, key)
    return cast(while_loop(running, body, start)[1], dtype)


@public(static=("shape", "dtype", "method", "out_sharding"))
def poisson(
    key: Any, lam: Any, shape: Any = None, dtype: Any = None, *, method: str = "exact",
    out_sharding: Any = None,
) -> Any:  # fmt: skip
    """Samples of the Poisson distribution with mean lam.

    key: a key; lam: number or array >= 0; shape: of the result (default: that of lam);
    dtype: an integer dtype.

    >>> import jato
    >>> int(poisson(jato.random.PRNGKey(0), 0.0))
    0
    """
    require_exact("poisson", method)
    key, dtype = single_key("poisson", key), integer_dtype("poisson", dtype)
    shape = sample_shape("poisson", shape, lam)
    lam = parameter("poisson", lam, np.dtype("float32"), shape)
    small = ops.bitwise_or(ops.ne(lam, lam), lam < 10)
    # each method runs on harmless rates where the other one answers
    by_products = _poisson_by_products(key, ops.select(small, lam, full_like(lam, 0)), dtype)
    large = ops.select(small, full_like(lam, 1e5), lam)
    by_rejection = _poisson_by_rejection(key, large, _all(small), dtype)
    found = ops.select(small, by_products, by_rejection)
    return ops.select(ops.eq(lam, full_like(lam, 0)), full_like(found, 0), found)


# log(k!) minus Stirling's approximation, k = 0 ... 9
_STIRLING_TAIL = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
    0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.010411265261972,
    0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


def _stirling_tail(k: Any) -> Any:
    from_table = k <= 9
    small = ops.clamp(0.0, k, 9.0)
    square = (small + 1) * (small + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (small + 1)
    tabled = full_like(k, _STIRLING_TAIL[9])
    place = ops.floor(small)
    for i, value in enumerate(_STIRLING_TAIL[:9]):
        tabled = ops.select(ops.eq(place, full_like(place, i)), full_like(k, value), tabled)
    return ops.select(from_table, tabled, series)


def _binomial_by_waiting(key: Any, count: Any, p: Any, limit: Any) -> Any:
    """For small counts * p: how many geometric waiting times fit into `count`."""
    shape = count.shape
    log_failure = ops.log1p(ops.neg(p))

    def body(state: Any) -> Any:
        i, successes, waited, key = state
        keys = random_bits.random_split(key, (2,))
        successes = ops.select(waited <= count, successes + 1, successes)
        u = unit_floats(keys[0], shape, p.dtype)
        return i + 1, successes, waited + ops.ceil(ops.log(u) / log_failure), keys[1]

    def running(state: Any) -> Any:
        return ops.bitwise_and(_any(state[2] <= count), ops.lt(state[0], limit))

    zeros = full_like(p, 0)
    return while_loop(running, body, (np.int32(0), zeros, zeros, key))[1] - 1


def _binomial_by_rejection(key: Any, count: Any, p: Any, unused: Any, limit: Any) -> Any:
    """For large counts * p: W. Hoermann, J. Stat. Comput. Simul. 46 (1993), BTRS.

    unused: as for _poisson_by_rejection."""
    shape = count.shape
    deviation = ops.sqrt(count * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = count * p + 0.5
    v_r = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = ops.floor((count + 1) * p)

    def body(state: Any) -> Any:
        i, found, accepted, key = state
        keys = random_bits.random_split(key, (3,))
        u = unit_floats(keys[1], shape, p.dtype)
        v = unit_floats(keys[2], shape, p.dtype)
        u = u - 0.5
        shifted = 0.5 - ops.abs(u)
        at_once = (shifted >= 0.07) & (v <= v_r)
        k = ops.floor((2 * a / shifted + b) * u + c)
        never = (k < 0) | (k > count)
        left = ops.log(v * alpha / (a / (shifted * shifted) + b))
        right = (
            (m + 0.5) * ops.log((m + 1) / (odds * (count - m + 1)))
            + (count + 1) * ops.log((count - m + 1) / (count - k + 1))
            + (k + 0.5) * ops.log(odds * (count - k + 1) / (k + 1))
            + _stirling_tail(m)
            + _stirling_tail(count - m)
            - _stirling_tail(k)
            - _stirling_tail(count - k)
        )
        accept = at_once | (ops.bitwise_not(never) & (left <= right))
        return i + 1, ops.select(accept, k, found), accepted | accept, keys[0]

    def running(state: Any) -> Any:
        return ops.bitwise_and(_any(ops.bitwise_not(state[2])), ops.lt(state[0], limit))

    start = (np.int32(0), full_like(p, -1), jnp.broadcast_to(unused, shape), key)
    return while_loop(running, body, start)[1]


@public(static=("shape", "dtype"))
def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Any:
    """The number of successes in n trials of probability p, as floats.

    key: a key; n: counts; p: probabilities; shape: of the result (default: theirs, broadcast).
    NaN where n < 0 or p is NaN or outside of [0, 1].

    >>> import jato
    >>> float(binomial(jato.random.PRNGKey(0), 5, 1.0))
    5.0
    """
    key, dtype = single_key("binomial", key), float_dtype("binomial", dtype)
    shape = sample_shape("binomial", shape, n, p)
    p = unary_float("binomial", as_array("binomial", p))
    working = dtype_of(p)
    p = parameter("binomial", p, working, shape)
    n = parameter("binomial", n, working, shape)
    below_half = p < 0.5
    q = ops.select(below_half, p, 1 - p)
    bad_count = ops.ne(n, n) | (n < 0)
    bad_q = ops.ne(q, q) | (q < 0)
    infinite = ops.eq(n, full_like(n, math.inf))
    q = ops.select(bad_q, full_like(q, 0.01), q)
    waiting = bad_count | (n * q <= 10)
    trials = ops.floor(n)
    limit = np.int32(np.iinfo(np.int32).max)
    found = ops.select(
        waiting,
        _binomial_by_waiting(key, ops.select(waiting, trials, full_like(n, 0)), q, limit),
        _binomial_by_rejection(
            key,
            ops.select(waiting | infinite, full_like(n, 1e4), trials),
            ops.select(waiting | infinite, full_like(q, 0.5), q),
            _all(waiting | infinite),
            limit,
        ),
    )
    invalid = bad_q | bad_count
    found = ops.select(invalid, full_like(found, math.nan), found)
    found = ops.select(infinite & ops.bitwise_not(invalid), full_like(found, math.inf), found)
    kept = below_half | bad_count | ops.ne(q, q) | infinite
    return cast(ops.select(kept, found, trials - found), dtype)


@public(static=("shape", "dtype", "unroll"))
def multinomial(
    key: Any, n: Any, p: Any, *, shape: Any = None, dtype: Any = None, unroll: Any = 1
) -> Any:
    """How often each outcome occurs in n trials with probabilities p along the last axis.

    n: counts, of shape p.shape[:-1] or broadcasting to it; shape: of the result (default p's).

    >>> import jato, jato.numpy as jnp
    >>> float(multinomial(jato.random.PRNGKey(0), 9.0, jnp.array([0.5, 0.5])).sum())
    9.0
    """
    key = single_key("multinomial", key)
    n, p = promote_dtypes("multinomial", n, p, inexact=True)
    shape = p.shape if shape is None else normalize_shape("multinomial", shape)
    n, p = jnp.broadcast_to(n, shape[:-1]), jnp.moveaxis(jnp.broadcast_to(p, shape), -1, 0)
    # each outcome in turn: a binomial share of the trials that are left
    remaining = cumsum(p, 0, True)
    ratios = p / jnp.where(ops.eq(remaining, full_like(remaining, 0)), 1, remaining)
    keys = random_bits.random_split(key, (p.shape[0],))

    def outcome(left: Any, ratio_and_key: Any) -> Any:
        ratio, one_key = ratio_and_key
        count = binomial(one_key, left, jnp.clip(ratio, 0, 1), dtype=left.dtype)
        return left - count, count

    counts = scan(outcome, n, (ratios, keys))[1]
    counts = jnp.moveaxis(counts, 0, -1)
    return counts if dtype is None else cast(counts, dtypes.canonicalize(dtype))
