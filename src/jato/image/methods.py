"""The interpolation kernels, and the weights they give.

A kernel is an even function of the distance, in pixels, zero beyond its radius.  `library` is the
module to compute with: numpy where positions are known when tracing, jato.numpy otherwise.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any, NamedTuple


class ResizeMethod(enum.Enum):
    """How pixels are interpolated."""

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of a name such as "bilinear".  ValueError for unknown names.

        >>> ResizeMethod.from_string("bilinear")
        <ResizeMethod.LINEAR: 1>
        """
        found = _NAMES.get(s)
        if found is None:
            raise ValueError(f"Unknown resize method {s!r}; the methods are {sorted(_NAMES)}")
        return found


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    "linear": ResizeMethod.LINEAR,
    "bilinear": ResizeMethod.LINEAR,
    "trilinear": ResizeMethod.LINEAR,
    "triangle": ResizeMethod.LINEAR,
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    "cubic": ResizeMethod.CUBIC,
    "bicubic": ResizeMethod.CUBIC,
    "tricubic": ResizeMethod.CUBIC,
    "cubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "bicubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "area": ResizeMethod.AREA,
}


class Interpolation(NamedTuple):
    """A method made precise: kernel(distances, library), its radius; edges repeat if clamped."""

    kernel: Callable[[Any, Any], Any]
    radius: int
    clamped: bool = False
    area: bool = False


def _triangle(x: Any, library: Any) -> Any:
    return library.maximum(0.0, 1.0 - x)


def _lanczos(radius: int) -> Callable[[Any, Any], Any]:
    def kernel(x: Any, library: Any) -> Any:
        inner = library.sinc(x) * library.sinc(x / radius)
        return library.where(x > radius, 0.0, inner)

    return kernel


def _cubic(a: float) -> Callable[[Any, Any], Any]:
    """R. Keys, IEEE Trans. Acoustics, Speech, and Signal Processing 29 (1981)."""

    def kernel(x: Any, library: Any) -> Any:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return library.where(x >= 2, 0.0, library.where(x >= 1, far, near))

    return kernel


_INTERPOLATIONS = {
    ResizeMethod.LINEAR: Interpolation(_triangle, 1),
    ResizeMethod.LANCZOS3: Interpolation(_lanczos(3), 3),
    ResizeMethod.LANCZOS5: Interpolation(_lanczos(5), 5),
    ResizeMethod.CUBIC: Interpolation(_cubic(-0.5), 2),
    ResizeMethod.CUBIC_PYTORCH: Interpolation(_cubic(-0.75), 2, clamped=True),
    ResizeMethod.AREA: Interpolation(_triangle, 1, area=True),
}


def as_method(method: str | ResizeMethod) -> ResizeMethod:
    if isinstance(method, ResizeMethod):
        return method
    if not isinstance(method, str):
        raise TypeError(f"method must be a string or a ResizeMethod, got {type(method).__name__}")
    return ResizeMethod.from_string(method)


def interpolation(method: ResizeMethod, antialias: bool) -> Interpolation:
    """PyTorch's cubic differs from the plain one only without antialiasing."""
    if method is ResizeMethod.CUBIC_PYTORCH and antialias:
        method = ResizeMethod.CUBIC
    return _INTERPOLATIONS[method]


# Weights that sum to less are no interpolation: the position lies outside of the image.
SMALLEST_TOTAL = 1000 * 2.0**-23


def overlap(left: Any, right: Any, pixel: Any, library: Any) -> Any:
    """How much of [left, right] lies on pixel [pixel, pixel + 1]."""
    inside = library.minimum(right, pixel + 1.0) - library.maximum(left, pixel)
    return library.maximum(0.0, inside)


def taps(radius: float) -> int:
    """How many pixels are nearer than `radius` to a position, at most."""
    return math.ceil(2 * radius)
