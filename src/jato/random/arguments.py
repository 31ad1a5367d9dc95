"""Arguments that the distributions share: the dtype of the samples, their shape, parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

import jato.numpy as jnp
from jato.base import dtypes
from jato.core.types import type_of
from jato.numpy.promote import as_array, common_shape, normalize_shape, shape_of
from jato.ops.convert import convert_element_type


def float_dtype(function: str, dtype: Any) -> Any:
    """The canonical dtype of samples; the default float for None.  ValueError unless floating."""
    result = dtypes.canonicalize(np.float64 if dtype is None else dtype)
    if not dtypes.is_floating(result):
        raise ValueError(f"{function}: argument 'dtype' must be a float dtype, got {result}")
    return result


def integer_dtype(function: str, dtype: Any) -> Any:
    """The canonical dtype of samples; the default integer for None.  ValueError unless integer."""
    result = dtypes.canonicalize(np.int64 if dtype is None else dtype)
    if not dtypes.is_integer(result):
        raise ValueError(f"{function}: argument 'dtype' must be an integer dtype, got {result}")
    return result


def sample_shape(function: str, shape: Any, *parameters: Any) -> tuple[int, ...]:
    """`shape`, or for None that of the parameters.  ValueError unless they broadcast to it."""
    shapes = [shape_of(p) for p in parameters]
    if shape is None:
        return common_shape(function, shapes) if shapes else ()
    shape = normalize_shape(function, shape)
    if any(shapes) and common_shape(function, [shape, *shapes]) != shape:
        raise ValueError(
            f"{function}: argument 'shape': {shape} is not what the parameters, of shapes "
            f"{', '.join(map(str, shapes))}, broadcast to"
        )
    return shape


def parameter(function: str, x: Any, dtype: Any, shape: tuple[int, ...] | None = None) -> Any:
    """A parameter in the dtype of the samples, broadcast to their shape if one is given."""
    x = as_array(function, x)
    if type_of(x).dtype != dtype or type_of(x).weak_type:
        x = convert_element_type(x, dtype)
    return x if shape is None else jnp.broadcast_to(x, shape)


def require_exact(function: str, method: Any) -> None:
    """NotImplementedError for a method other than "exact"."""
    if method != "exact":
        raise NotImplementedError(
            f"{function}: argument 'method': expected 'exact', got {method!r}"
        )
