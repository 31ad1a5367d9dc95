"""jato.image against jax.image, against exact results, and its promise about kernels."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato import image

RNG = np.random.default_rng(0)
METHODS = ["linear", "cubic", "lanczos3", "lanczos5", "cubic-pytorch", "area"]
SIZES = [
    ((16,), (7,)), ((5, 9, 3), (11, 4, 3)), ((64, 20, 3), (16, 33, 3)), ((1, 3), (4, 4)),
]  # fmt: skip


def _random(*shape: int) -> np.ndarray:
    return RNG.random(shape).astype(np.float32)


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", ["nearest", *METHODS])
def test_resize(method: str, antialias: bool) -> None:
    for old, new in SIZES:
        x = _random(*old)
        ours = image.resize(x, new, method, antialias)
        theirs = jax.image.resize(x, new, method, antialias)
        np.testing.assert_allclose(ours, theirs, atol=6e-6)


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_scale_and_translate(method: str, antialias: bool) -> None:
    x = _random(9, 12, 3)
    for scale, shift in (([1.5, 0.7], [1.0, -2.3]), ([0.3, 2.0], [0.0, 0.0])):
        args = ((8, 14, 3), (0, 1), np.float32(scale), np.float32(shift), method, antialias)
        ours = image.scale_and_translate(x, *args)
        np.testing.assert_allclose(ours, jax.image.scale_and_translate(x, *args), atol=1e-5)


def test_constant_images_stay_constant() -> None:
    for method in METHODS:
        for size in (5, 13, 40):
            found = image.resize(np.full((13, 13), 2.5, np.float32), (size, size), method)
            np.testing.assert_allclose(found, 2.5, rtol=1e-6)


def test_nearest_is_exact() -> None:
    """Pixel o of n shows pixel floor((o + 1/2) m / n), in exact arithmetic."""
    for m, n in ((100, 99), (99, 100), (7, 3), (3, 7), (1000, 7)):
        found = np.asarray(image.resize(np.arange(m, dtype=np.int32), (n,), "nearest"))
        np.testing.assert_array_equal(found, [(2 * o + 1) * m // (2 * n) for o in range(n)])


def test_dtypes() -> None:
    grid = np.arange(16, dtype=np.uint8).reshape(4, 4)
    assert image.resize(grid, (2, 2), "nearest").dtype == np.uint8
    assert image.resize(grid, (2, 2), "linear").dtype == np.float32
    assert image.resize(jnp.asarray(grid, jnp.bfloat16), (2, 2), "linear").dtype == jnp.bfloat16
    assert image.resize(grid, (0, 2), "linear").shape == (0, 2)
    assert image.ResizeMethod.from_string("bicubic") is image.ResizeMethod.CUBIC
    same = image.resize(_random(4, 4), (2, 2), image.ResizeMethod.LANCZOS3)
    assert same.shape == (2, 2)


@pytest.mark.parametrize("channels", [(), (3,)])
def test_another_size_compiles_nothing(channels: tuple[int, ...]) -> None:
    f = jato.jit(lambda x: image.resize(x, (128, 128, *channels), method="bilinear"))
    f(_random(256, 256, *channels))
    first = f.stats()
    f(_random(512, 512, *channels))
    second = f.stats()
    assert second.traces == 2
    assert second.kernels_compiled == first.kernels_compiled
    assert second.kernels_reused > first.kernels_reused


def test_gradients() -> None:
    x = _random(9, 12, 3)

    def energy(module: Any) -> Any:
        return lambda x: (module.resize(x, (4, 20, 3), "cubic") ** 2).sum()

    ours, theirs = jato.grad(energy(image))(x), jax.grad(energy(jax.image))(x)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)

    def moved(module: Any) -> Any:
        def f(scale: Any, shift: Any) -> Any:
            args = ((8, 14, 3), (0, 1), scale, shift, "linear")
            return (module.scale_and_translate(x, *args) ** 2).sum()

        return f

    place = np.float32([1.3, 0.8]), np.float32([0.5, -1])
    ours = jato.grad(moved(image), (0, 1))(*place)
    theirs = jax.grad(moved(jax.image), (0, 1))(*place)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)


def test_vmap() -> None:
    batch = _random(3, 9, 6)
    found = jato.vmap(lambda x: image.resize(x, (4, 8), "linear"))(batch)
    for one, x in zip(found, batch, strict=True):
        np.testing.assert_allclose(one, image.resize(x, (4, 8), "linear"), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: image.resize(x, (2, 2), "linear"), ValueError, "as many axes"),
        (lambda x: image.resize(x, (2,), "best"), ValueError, "Unknown resize method 'best'"),
        (lambda x: image.resize(x, (2,), 3), TypeError, "ResizeMethod"),
        (
            lambda x: image.scale_and_translate(x, (2,), (0,), [1.0], [0.0], "nearest"),
            ValueError, "use resize",
        ),
        (
            lambda x: image.scale_and_translate(x, (2,), (0,), np.ones(2), np.zeros(1), "linear"),
            ValueError, "'scale' must have one element",
        ),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(_random(4))
