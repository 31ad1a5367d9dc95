"""scale_and_translate: resampling by any scale and shift, which may be traced and differentiated.

Each axis is contracted with a matrix of weights [pixels, outputs] computed in the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jato.numpy as jnp
from jato.image.methods import (
    SMALLEST_TOTAL,
    Interpolation,
    ResizeMethod,
    as_method,
    interpolation,
    overlap,
)
from jato.jit.eager import public
from jato.numpy.promote import (
    as_array,
    cast,
    dtype_of,
    normalize_axis,
    normalize_shape,
    promote_dtypes,
    unary_float,
)
from jato.ops.contract import dot_general


def _distance_weights(
    size: int, outputs: int, scale: Any, translation: Any, how: Interpolation, antialias: bool,
    margin: int,
) -> Any:  # fmt: skip
    """Kernel values [size + 2 margin, outputs] of all pixels, those beyond the edges included."""
    dtype = dtype_of(scale)
    inverse = 1.0 / scale
    stretch = jnp.maximum(inverse, 1.0) if antialias else 1.0
    pixels = jnp.arange(-margin, size + margin, dtype=dtype)[:, None]
    places = jnp.arange(outputs, dtype=dtype)[None, :]
    if how.area:
        left = (places - translation) * inverse
        return overlap(left, left + inverse, pixels, jnp)
    centres = (places + 0.5 - translation) * inverse - 0.5
    return how.kernel(jnp.abs(centres - pixels) / stretch, jnp)


def _weights(
    size: int, outputs: int, scale: Any, translation: Any, how: Interpolation, antialias: bool
) -> Any:
    margin = how.radius if how.clamped and not antialias else 0
    weights = _distance_weights(size, outputs, scale, translation, how, antialias, margin)
    if margin:
        # what lies beyond an edge repeats the pixel there
        first = jnp.sum(weights[:margin], axis=0, keepdims=True)
        last = jnp.sum(weights[size + margin :], axis=0, keepdims=True)
        rows = jnp.arange(size)[:, None]
        inner = weights[margin : size + margin]
        weights = inner + jnp.where(rows == 0, first, 0.0) + jnp.where(rows == size - 1, last, 0.0)
    total = jnp.sum(weights, axis=0, keepdims=True)
    valid = jnp.abs(total) > SMALLEST_TOTAL
    weights = jnp.where(valid, weights / jnp.where(valid, total, 1.0), 0.0)
    if margin:
        return weights
    inverse = 1.0 / scale
    centres = (jnp.arange(outputs, dtype=dtype_of(scale)) + 0.5 - translation) * inverse - 0.5
    inside = (centres >= -0.5) & (centres <= size - 0.5)
    return jnp.where(inside[None, :], weights, 0.0)


@public(static=("shape", "spatial_dims", "method", "antialias", "precision"), name="resize")
def _resample(
    image: Any, shape: tuple[int, ...], spatial_dims: tuple[int, ...], scale: Any,
    translation: Any, method: ResizeMethod, antialias: bool, precision: Any,
) -> Any:  # fmt: skip
    x = unary_float("scale_and_translate", as_array("scale_and_translate", image))
    scale, translation = promote_dtypes("scale_and_translate", scale, translation, inexact=True)
    how = interpolation(method, antialias)
    rank = len(shape)
    for i, axis in enumerate(spatial_dims):
        weights = _weights(x.shape[axis], shape[axis], scale[i], translation[i], how, antialias)
        product = dot_general(x, cast(weights, x.dtype), (((axis,), (0,)), ((), ())))
        x = jnp.moveaxis(product, rank - 1, axis)
    return x


def scale_and_translate(
    image: Any, shape: Any, spatial_dims: Sequence[int], scale: Any, translation: Any,
    method: str | ResizeMethod, antialias: bool = True, precision: Any = None,
) -> Any:  # fmt: skip
    """`image` scaled and shifted along some axes, onto an image of `shape`.

    image: array; shape: of the result, as many axes; spatial_dims: the axes that change; scale,
    translation: one per spatial axis; the pixel position y of the result shows the image at
    (y - translation) / scale, zero outside.  method, antialias: as in `resize`, without "nearest".
    Differentiable in image, scale and translation.

    ValueError for "nearest", other methods, or shapes that do not fit.

    >>> import jato.numpy as jnp
    >>> x = jnp.array([1.0, 2.0, 3.0])
    >>> scale_and_translate(x, (3,), (0,), jnp.ones(1), jnp.ones(1), "linear")
    Array([0., 1., 2.], dtype=float32)
    """
    shape = normalize_shape("scale_and_translate", shape)
    rank = len(getattr(image, "shape", ()))
    if len(shape) != rank:
        raise ValueError(
            f"scale_and_translate: argument 'shape' must have as many axes as the image ({rank}), "
            f"got {shape}"
        )
    method = as_method(method)
    if method is ResizeMethod.NEAREST:
        raise ValueError(
            "scale_and_translate: the method 'nearest' is not defined here; use resize"
        )
    axes = tuple(normalize_axis("scale_and_translate", d, rank) for d in spatial_dims)
    scale, translation = jnp.asarray(scale), jnp.asarray(translation)
    for name, x in (("scale", scale), ("translation", translation)):
        if x.shape != (len(axes),):
            raise ValueError(
                f"scale_and_translate: argument '{name}' must have one element per spatial axis, "
                f"shape ({len(axes)},), got {x.shape}"
            )
    return _resample(image, shape, axes, scale, translation, method, antialias, precision)
