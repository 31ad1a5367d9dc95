"""The built-in programs: a function and its inputs, for a package with JAX's API.

`build(name, J, ...)` gives a Program; J is `jato`, or the peer.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jato.base.lazy import LazyModule

matplotlib_image: Any = LazyModule("matplotlib.image")


@dataclass(frozen=True)
class Program:
    """function(*inputs) is what is timed; `inputs` are NumPy arrays or trees of them."""

    name: str
    function: Callable[..., Any]
    inputs: tuple[Any, ...]


def blur(J: Any, image: np.ndarray[Any, Any], size: int = 5) -> Program:
    """A Gaussian blur of a grey image [height, width] in float32, edges repeated."""
    jnp = J.numpy
    signal = importlib.import_module(f"{J.__name__}.scipy.signal")

    def gaussian_blur(image: Any, kernel: Any) -> Any:
        padded = jnp.pad(image, kernel.shape[0] // 2, mode="edge")
        return signal.convolve2d(padded, kernel, mode="valid")

    return Program("blur", gaussian_blur, (image, gaussian_kernel(size)))


def dense(J: Any) -> Program:
    """A dense layer and its mean: tanh(x @ w + b) with x of [1000, 500] and w of [500, 200]."""
    jnp = J.numpy

    def dense_layer(x: Any, weight: Any, bias: Any) -> Any:
        return jnp.mean(jnp.tanh(jnp.dot(x, weight) + bias))

    random = np.random.default_rng(0)
    shapes = (1000, 500), (500, 200), (200,)
    return Program(
        "dense", dense_layer, tuple(random.standard_normal(s, dtype=np.float32) for s in shapes)
    )


def gaussian_kernel(size: int) -> np.ndarray[Any, Any]:
    """Weights [size, size] of a Gaussian with a standard deviation of size / 4; their sum is 1.

    >>> gaussian_kernel(5).shape
    (5, 5)

    ValueError for an even or non-positive size.
    """
    if size < 1 or size % 2 == 0:
        raise ValueError(f"the size of the blur must be odd and positive, got {size}")
    line = np.arange(size) - size // 2
    weights = np.exp(-(line**2) / (2 * (size / 4) ** 2))
    kernel = np.outer(weights, weights)
    return (kernel / kernel.sum()).astype(np.float32)


def read_image(path: str) -> np.ndarray[Any, Any]:
    """A picture file as grey levels in [0, 1], float32 [height, width].

    Needs matplotlib (and Pillow, which comes with it, for anything but PNG).
    """
    pixels = np.asarray(matplotlib_image.imread(path))
    scale = 255.0 if pixels.dtype.kind == "u" else 1.0
    grey = pixels[..., :3] @ (0.299, 0.587, 0.114) if pixels.ndim == 3 else pixels
    return np.ascontiguousarray(grey / scale, dtype=np.float32)


def test_image(height: int = 1024, width: int = 1024) -> np.ndarray[Any, Any]:
    """Rings and noise, float32 [height, width]: what is blurred when no picture is given."""
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    rings = 0.5 + 0.4 * np.cos(60 * (x**2 + y**2))
    noise = np.random.default_rng(0).normal(scale=0.05, size=(height, width))
    return np.clip(rings + noise, 0, 1).astype(np.float32)


def build(name: str, J: Any, image: str | None = None, size: int = 5) -> Program:
    """The built-in program of this name."""
    if name == "dense":
        return dense(J)
    return blur(J, read_image(image) if image else test_image(), size)


BUILT_IN = ("blur", "dense")
