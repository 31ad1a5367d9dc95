"""resize: an image of another size.

Each axis is resampled by itself.  A pixel of the result is a weighted sum of the few pixels of the
image that the kernel reaches; their positions and weights follow from the sizes, so they are
computed once, when tracing, and are constants of the program:

    out[a, o, b] = sum over t of weight[o, t] * image[a, pixel[o, t], b]

Sizes and constants are run-time values of the kernel: images of other sizes share it.
Start reading at `resize`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import jato.numpy as jnp
from jato.image.methods import (
    SMALLEST_TOTAL,
    Interpolation,
    ResizeMethod,
    as_method,
    interpolation,
    overlap,
    taps,
)
from jato.jit.eager import public
from jato.numpy.promote import as_array, dtype_of, normalize_shape, unary_float
from jato.ops.gather_geometry import GatherDimensionNumbers
from jato.ops.indexing import gather
from jato.ops.structural import broadcast_in_dim, full, reduce_sum, reshape

# When an image shrinks the number of taps depends on its size.  A sum of so many or more is a loop;
# shorter ones are unrolled by the compiler, and would make a kernel for each number.
LEAST_LOOP = 9

# Rows of fewer elements than this are too short for vectors: positions are then given per element.
SHORT_ROW = 16


class Window(NamedTuple):
    """Which pixels make which pixel of the result: arrays [outputs, taps]."""

    pixels: np.ndarray
    weights: np.ndarray


def window(size: int, outputs: int, how: Interpolation, antialias: bool) -> Window:
    """The window of an axis of `size` pixels that becomes one of `outputs`."""
    step = size / outputs
    stretch = max(step, 1.0) if antialias else 1.0
    centres = (np.arange(outputs) + 0.5) * step - 0.5
    reach = how.radius * stretch
    count = math.ceil(step) + 1 if how.area else taps(reach)
    if stretch > 1 or (how.area and step > 1):
        count = max(count, LEAST_LOOP)
    if how.area:
        first = np.floor(np.arange(outputs) * step)
    else:
        first = np.floor(centres - reach) + 1
    if not how.clamped:
        count = min(count, size)
        first = np.clip(first, 0, size - count)
    pixels = first[:, None] + np.arange(count)
    if how.area:
        left = np.arange(outputs)[:, None] * step
        weights = overlap(left, left + step, pixels, np)
    else:
        weights = how.kernel(np.abs(centres[:, None] - pixels) / stretch, np)
    total = weights.sum(1, keepdims=True)
    valid = np.abs(total) > SMALLEST_TOTAL
    weights = np.where(valid, weights / np.where(valid, total, 1.0), 0.0)
    return Window(np.clip(pixels, 0, size - 1).astype(np.int32), weights)


def _resampled(x: Any, axis: int, how: Window) -> Any:
    """`x` with one axis resampled."""
    shape = x.shape
    outputs, count = how.pixels.shape
    before, size, after = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    weights = how.weights.astype(x.dtype)
    pixels = how.pixels
    sizes: tuple[int, ...]
    result: tuple[int, ...]
    if after < SHORT_ROW:
        # the row of pixels and what follows as one axis, taps first
        elements = (pixels.T[:, :, None] * after + np.arange(after)).reshape(count, outputs * after)
        weights = np.repeat(weights.T, after, axis=1)
        rows = reshape(x, (before, size * after))
        numbers = GatherDimensionNumbers((0,), (1,), (1,))
        sizes, result = (before, 1), (before, count, outputs * after)
        places, taps_axis, pixels = (1, 2), 1, elements
    else:
        rows = reshape(x, (before, size, after))
        numbers = GatherDimensionNumbers((0, 3), (1,), (1,))
        sizes, result = (before, 1, after), (before, outputs, count, after)
        places, taps_axis = (1, 2), 2
    index = jnp.asarray(pixels.astype(np.int32)[..., None])
    taken = gather(rows, index, numbers, sizes, mode="promise_in_bounds")
    weighted = taken * broadcast_in_dim(jnp.asarray(weights), result, places)
    summed = reduce_sum(weighted, (taps_axis,))
    return reshape(summed, (*shape[:axis], outputs, *shape[axis + 1 :]))


def _nearest(x: Any, axis: int, outputs: int) -> Any:
    """The pixel that holds the centre (o + 1/2) size / outputs; in integers, so that it is exact."""
    size = x.shape[axis]
    pixels = ((2 * np.arange(outputs, dtype=np.int64) + 1) * size // (2 * outputs)).astype(np.int32)
    rank = len(x.shape)
    offset = tuple(d for d in range(rank) if d != axis)
    numbers = GatherDimensionNumbers(offset, (axis,), (axis,))
    sizes = tuple(1 if d == axis else n for d, n in enumerate(x.shape))
    index = jnp.asarray(pixels[:, None])
    return gather(x, index, numbers, sizes, mode="promise_in_bounds")


@public(static=("shape", "method", "antialias", "precision"))
def resize(
    image: Any, shape: Any, method: str | ResizeMethod, antialias: bool = True,
    precision: Any = None,
) -> Any:  # fmt: skip
    """`image` resampled to `shape`.

    image: array, integers become floats (but "nearest" keeps the dtype); shape: of the result, as
    many axes, unequal ones are resampled; method: "nearest", "linear" (bilinear, trilinear,
    triangle), "cubic" (bicubic, tricubic), "lanczos3", "lanczos5", "cubic-pytorch", "area", or a
    ResizeMethod; antialias: shrinking averages over the pixels that fall together; precision: no
    effect, weights are exact.  Pixel i covers [i, i + 1).

    A second image size traces again but compiles no new kernel.

    ValueError for other methods or a shape of another rank.

    >>> import jato.numpy as jnp
    >>> resize(jnp.array([0.0, 1.0]), (4,), "linear")
    Array([0.  , 0.25, 0.75, 1.  ], dtype=float32)
    """
    x = as_array("resize", image)
    shape = normalize_shape("resize", shape)
    if len(shape) != len(x.shape):
        raise ValueError(
            f"resize: argument 'shape' must have as many axes as the image: {shape} against {x.shape}"
        )
    method = as_method(method)
    if method is not ResizeMethod.NEAREST:
        x = unary_float("resize", x)
    if 0 in x.shape or 0 in shape:
        return full(shape, 0, dtype_of(x))
    axes = [d for d in range(len(shape)) if x.shape[d] != shape[d]]
    # what shrinks most goes first, so that the rest has less to do
    axes.sort(key=lambda d: shape[d] / x.shape[d])
    for d in axes:
        if method is ResizeMethod.NEAREST:
            x = _nearest(x, d, shape[d])
        else:
            how = interpolation(method, antialias)
            x = _resampled(x, d, window(x.shape[d], shape[d], how, antialias))
    return x
