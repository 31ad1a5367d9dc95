"""jato.flatten_util: a pytree of arrays as one vector, and back."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import jato.numpy as jnp
from jato.base import dtypes
from jato.base.pytree import tree_flatten
from jato.core.types import type_of
from jato.numpy.promote import as_array
from jato.ops.convert import convert_element_type
from jato.ops.structural import concatenate, reshape, slice_in_dim


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """All leaves of a pytree as one vector, and the function that makes the pytree of a vector.

    pytree: a pytree of arrays and numbers.  Returns (vector, unravel); leaves of different dtypes
    are promoted to a common one, and unravel converts them back.  unravel raises ValueError for a
    vector of another length and TypeError for one of another dtype.

    >>> import jato.numpy as jnp
    >>> vector, unravel = ravel_pytree({"a": jnp.ones(2), "b": 3.0})
    >>> vector
    Array([1., 1., 3.], dtype=float32)
    >>> unravel(vector * 2)["b"]
    Array(6., dtype=float32)
    """
    leaves, treedef = tree_flatten(pytree)
    arrays = [as_array("ravel_pytree", x, i) for i, x in enumerate(leaves)]
    avals = [type_of(x) for x in arrays]
    if not arrays:
        vector = jnp.zeros(0, dtypes.canonicalize(np.float64))
        dtype = type_of(vector).dtype
    else:
        dtype = dtypes.promote(*((a.dtype, a.weak_type) for a in avals))[0]
        flat = [
            convert_element_type(reshape(x, (a.size,)), dtype)
            for x, a in zip(arrays, avals, strict=True)
        ]
        vector = concatenate(flat, 0)
    length = sum(math.prod(a.shape) for a in avals)

    def unravel(vector: Any) -> Any:
        vector = as_array("unravel", vector)
        aval = type_of(vector)
        if aval.shape != (length,):
            raise ValueError(
                f"unravel: expected a vector of shape {(length,)}, got one of shape {aval.shape}"
            )
        if aval.dtype != dtype and len({a.dtype for a in avals}) > 1:
            raise TypeError(f"unravel: expected a vector of dtype {dtype}, got {aval.dtype}")
        parts, start = [], 0
        for a in avals:
            part = reshape(slice_in_dim(vector, start, start + a.size), a.shape)
            start += a.size
            if a.dtype == aval.dtype or aval.dtype != dtype:
                parts.append(part)
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a complex vector of a tree with real leaves
                parts.append(convert_element_type(part, a.dtype))
        return treedef.unflatten(parts)

    return vector, unravel
