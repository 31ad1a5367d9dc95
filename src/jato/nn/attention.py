"""Scaled dot-product attention.

    softmax(query key^T * scale + bias, masked) value

with the axes batch B, query position T, key position S, head N, feature H; K heads of keys, each
shared by N / K heads of queries.  The masked scores are softmaxed in float32.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import jato.numpy as jnp
from jato.base import dtypes
from jato.jit.eager import public
from jato.nn.normalization import logsumexp, softmax
from jato.numpy.promote import as_array, dtype_of, promote_all
from jato.ops.contract import dot_general
from jato.ops.structural import expand_dims, reshape, stop_gradient, transpose


def _rank_4(name: str, x: Any) -> Any:
    x = as_array("dot_product_attention", x, name)
    rank = len(x.shape)
    if rank > 4:
        raise ValueError(
            f"dot_product_attention: argument '{name}' must have at most 4 axes, got shape {x.shape}"
        )
    return expand_dims(x, tuple(range(4 - rank))) if rank < 4 else x


def _check_shape(name: str, shape: tuple[int, ...], expected: tuple[int | None, ...]) -> None:
    if len(shape) != len(expected) or any(
        e is not None and n != e for n, e in zip(shape, expected, strict=True)
    ):
        wanted = ", ".join("any" if e is None else str(e) for e in expected)
        raise ValueError(
            f"dot_product_attention: argument '{name}' must have shape ({wanted}), got {shape}"
        )


def _by_key_head(x: Any, heads: int) -> Any:
    """[B, N or 1, T, S] -> [B, K or 1, G or 1, T, S]"""
    batch, n, t, s = x.shape
    if n == 1:
        return reshape(x, (batch, 1, 1, t, s))
    return reshape(x, (batch, heads, n // heads, t, s))


def _allowed(
    mask: Any, is_causal: bool, window: tuple[int, int] | None, t: int, s: int,
    query_lengths: Any, key_lengths: Any, heads: int,
) -> Any:  # fmt: skip
    """Which keys a query may attend to, broadcasting to [B, K, G, T, S]; None for all."""
    query = jnp.arange(t)[:, None]
    key = jnp.arange(s)[None, :]
    conditions = []
    if mask is not None:
        conditions.append(_by_key_head(mask, heads))
    if is_causal:
        conditions.append(key <= query)
    if window is not None:
        conditions.append((query <= key + window[0]) & (query >= key - window[1]))
    if query_lengths is not None:
        conditions.append(query < query_lengths[:, None, None, None, None])
    if key_lengths is not None:
        conditions.append(key < key_lengths[:, None, None, None, None])
    result = None
    for condition in conditions:
        result = condition if result is None else jnp.logical_and(result, condition)
    return result


@public(static=("scale", "is_causal", "local_window_size", "implementation", "return_residual"))
def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """Scaled dot-product attention with several heads.

    query: [B, T, N, H] or [T, N, H]; key, value: [B, S, K, H] or [S, K, H] of query's dtype, K a
    divisor of N; bias: added to the scores, broadcasting to [B, N, T, S]; mask: bools that
    broadcast likewise, True where a key takes part; scale: of the scores (default 1/sqrt(H));
    is_causal: no key after the query's position; query_seq_lengths, key_value_seq_lengths:
    integers [B], positions beyond are padding; local_window_size: (left, right) distances that a
    query sees; implementation: None or "xla"; return_residual: also the logsumexp of the scores,
    [B, T, N].

    Returns an array of query's shape.  ValueError for shapes or dtypes that do not fit.

    >>> import jato.numpy as jnp
    >>> x = jnp.ones((1, 2, 1, 4))
    >>> dot_product_attention(x, x, x).shape
    (1, 2, 1, 4)
    """
    if implementation not in (None, "xla"):
        raise ValueError(
            f"dot_product_attention: unsupported implementation {implementation!r}; use None"
        )
    given = as_array("dot_product_attention", query, "query").shape
    query, key, value = (
        _rank_4(name, x) for name, x in (("query", query), ("key", key), ("value", value))
    )
    batch, s, heads, features = key.shape
    _check_shape("value", value.shape, (batch, s, heads, features))
    _check_shape("query", query.shape, (batch, None, None, features))
    _, t, n, _ = query.shape
    if heads == 0 or n % heads:
        raise ValueError(
            "dot_product_attention: the number of query heads must be a multiple of that of "
            f"key/value heads, got {n} and {heads}"
        )
    for name, x in (("query", query), ("value", value)):
        if dtype_of(x) != dtype_of(key):
            raise ValueError(
                f"dot_product_attention: argument '{name}' must have the dtype of 'key', "
                f"{dtype_of(key)}, got {dtype_of(x)}"
            )
    if mask is not None:
        mask = _rank_4("mask", mask)
        if not dtypes.is_bool(dtype_of(mask)):
            raise ValueError(
                f"dot_product_attention: argument 'mask' must be of bools, got {dtype_of(mask)}. "
                "Pass an additive mask as bias."
            )
    for name, x in (
        ("query_seq_lengths", query_seq_lengths), ("key_value_seq_lengths", key_value_seq_lengths)
    ):  # fmt: skip
        if x is not None:
            _check_shape(name, x.shape, (batch,))
    if isinstance(local_window_size, int):
        local_window_size = (local_window_size, local_window_size)

    groups = n // heads
    working = dtypes.promote((dtype_of(query), False), (np.dtype("float32"), False))[0]
    grouped = reshape(query, (batch, t, heads, groups, features))
    # [B, K, T, G, S]
    scores = dot_general(
        grouped, key, (((4,), (3,)), ((0, 2), (0, 2))), preferred_element_type=working
    )
    scores = transpose(scores, (0, 1, 3, 2, 4))
    factor = 1 / math.sqrt(features) if scale is None else scale
    scores = scores * np.asarray(factor, working)[()]
    if bias is not None:
        added = promote_all(
            "dot_product_attention", scores, _by_key_head(_rank_4("bias", bias), heads)
        )
        scores = (added[0] + added[1]).astype(working)
    allowed = _allowed(
        mask, is_causal, local_window_size, t, s, query_seq_lengths, key_value_seq_lengths, heads
    )
    if allowed is not None:
        # large, not infinite: a row without any key gives equal weights, not NaN
        lowest = -0.7 * min(float(jnp.finfo(working).max), float(np.finfo(np.float32).max))
        scores = jnp.where(allowed, scores, np.asarray(lowest, working)[()])
    scores = scores.astype(np.float32)
    weights = softmax(scores, -1).astype(dtype_of(key))
    # [B, K, G, T, H] -> [B, T, K, G, H]
    encoded = dot_general(weights, value, (((4,), (1,)), ((0, 1), (0, 2))))
    encoded = transpose(encoded, (0, 3, 1, 2, 4))
    if query_seq_lengths is not None:
        padding = (
            jnp.arange(t)[None, :, None, None, None] >= query_seq_lengths[:, None, None, None, None]
        )
        encoded = jnp.where(padding, 0, encoded)
    encoded = reshape(encoded, given)
    if not return_residual:
        return encoded
    residual = stop_gradient(logsumexp(scores, -1).astype(dtype_of(key)))
    return encoded, reshape(transpose(residual, (0, 3, 1, 2)), given[:-1])
