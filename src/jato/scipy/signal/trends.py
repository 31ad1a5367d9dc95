"""Trends taken out of data: means and straight lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jato.numpy as jnp
import numpy as np
from jato.jit.eager import public
from jato.numpy.promote import as_array, normalize_axis, promote_dtypes


def _without_line(x: Any) -> Any:
    """x minus its line of least squares, along the last axis."""
    n = x.shape[-1]
    x = x - jnp.mean(x, -1, keepdims=True)
    if n < 2:
        return x
    place = (np.arange(n) - (n - 1) / 2).astype(x.real.dtype)
    slope = jnp.sum(x * place, -1, keepdims=True) / float(np.sum(place.astype(float) ** 2))
    return x - slope * place


@public(static=("axis", "type", "bp"))
def _detrend(data: Any, axis: int, type: str, bp: tuple[int, ...]) -> Any:
    (x,) = promote_dtypes("detrend", data, inexact=True)
    x = jnp.moveaxis(x, axis, -1)
    if type == "constant":
        found = x - jnp.mean(x, -1, keepdims=True)
    else:
        pieces = [x[..., i:j] for i, j in zip(bp[:-1], bp[1:], strict=True)]
        found = jnp.concatenate([_without_line(piece) for piece in pieces], -1)
    return jnp.moveaxis(found, -1, axis)


def detrend(
    data: Any,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] = 0,
    overwrite_data: None = None,
) -> Any:
    """The data minus a trend along an axis, in floats.

    type: "linear", the line of least squares, or "constant", the mean; bp: where a new line begins.
    ValueError for another type and a bp outside of the data, NotImplementedError for overwrite_data.

    >>> import jato.numpy as jnp
    >>> detrend(jnp.array([1.0, 2.0, 4.0]), type="constant").round(2)
    Array([-1.33, -0.33,  1.67], dtype=float32)
    """
    if overwrite_data is not None:
        raise NotImplementedError(
            "detrend: argument 'overwrite_data' is not supported; use the result"
        )
    if type not in ("constant", "linear", "c", "l"):
        raise ValueError(f"detrend: argument 'type' must be 'linear' or 'constant', got {type!r}")
    data = as_array("detrend", data, "data")
    axis = normalize_axis("detrend", axis, len(data.shape))
    n = data.shape[axis]
    breaks = sorted({0, n, *(int(i) for i in np.ravel(bp))})
    if breaks[0] < 0 or breaks[-1] > n:
        raise ValueError(f"detrend: argument 'bp' must be places in 0 ... {n}, got {bp!r}")
    kind = "constant" if type[0] == "c" else "linear"
    return _detrend(data, axis=axis, type=kind, bp=tuple(breaks))
