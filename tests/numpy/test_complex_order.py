"""The order of complex numbers: by real, then imaginary part.  Against NumPy, and jax where
NumPy has no such function or treats nan otherwise."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato import lax

SIZES = [1, 2, 7, 8, 9, 16, 17, 63]


def tied(size: int, seed: int = 0, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Small whole parts, so that many numbers have a part in common or are equal."""
    rng = np.random.default_rng(seed)
    parts = rng.integers(-2, 3, (2, size))
    return (parts[0] + 1j * parts[1]).astype(np.complex64).reshape(shape or (size,))


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal"])
@pytest.mark.parametrize("size", SIZES)
def test_comparisons(name: str, size: int) -> None:
    x, y = tied(size), tied(size, 1)
    expected = getattr(np, name)(x, y)
    np.testing.assert_array_equal(getattr(jnp, name)(x, y), expected)
    np.testing.assert_array_equal(jato.jit(getattr(jnp, name))(x, y), expected)
    np.testing.assert_array_equal(getattr(jnp, name)(x, 0), getattr(np, name)(x, 0))


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "fmax", "fmin"])
def test_nan_as_in_jax(name: str) -> None:
    line = np.array([0, 1, np.nan], np.float32)
    z = (line[:, None] + 1j * line).astype(np.complex64).ravel()
    x, y = (g.ravel() for g in np.meshgrid(z, z))
    np.testing.assert_array_equal(getattr(jnp, name)(x, y), getattr(jax.numpy, name)(x, y))


@pytest.mark.parametrize("name", ["argmax", "argmin", "max", "min", "sort", "nanargmax", "nanmin"])
@pytest.mark.parametrize("size", SIZES)
def test_along_an_axis(name: str, size: int) -> None:
    x = tied(3 * size, size, (3, size))
    for axis in (0, 1):
        expected = getattr(np, name)(x, axis=axis)
        np.testing.assert_array_equal(getattr(jnp, name)(x, axis=axis), expected)
    if name != "sort":
        np.testing.assert_array_equal(getattr(jnp, name)(x), getattr(np, name)(x))


def test_nan_wins() -> None:
    z = np.array([1, 2 + 1j, complex(0, np.nan), complex(np.nan, 0), 5], np.complex64)
    for name in ("argmax", "argmin"):
        assert int(getattr(jnp, name)(z)) == getattr(np, name)(z) == 2
    assert int(jnp.nanargmax(z)) == 4 and int(jnp.nanargmin(z)) == 0
    assert np.isnan(np.asarray(jnp.max(z))) and np.isnan(np.asarray(jnp.min(z)))


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("size", [0, *SIZES, 5000])
def test_running_extrema(name: str, size: int) -> None:
    x = tied(2 * size, 3, (2, size))
    accumulate = (np.maximum if name == "cummax" else np.minimum).accumulate
    np.testing.assert_array_equal(getattr(lax, name)(x, 1), accumulate(x, 1))
    expected = accumulate(x[:, ::-1], 1)[:, ::-1]
    np.testing.assert_array_equal(getattr(lax, name)(x, 1, reverse=True), expected)


@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_derivative_of_running_extrema(name: str) -> None:
    rng = np.random.default_rng(0)
    x, t = ((rng.normal(size=9) + 1j * rng.normal(size=9)).astype(np.complex64) for _ in range(2))
    mine = jato.jvp(getattr(lax, name), (x,), (t,))
    peer = jax.jvp(getattr(jax.lax, name), (x,), (t,))
    np.testing.assert_allclose(mine[1], peer[1], rtol=1e-6)


@pytest.mark.parametrize("size", SIZES)
def test_clamp(size: int) -> None:
    low, x, high = (tied(size, seed) for seed in range(3))
    np.testing.assert_array_equal(lax.clamp(low, x, high), np.minimum(np.maximum(x, low), high))


def test_what_has_no_order() -> None:
    z = tied(4)
    for name in ("lt", "le", "gt", "ge"):
        with pytest.raises(TypeError, match=f"{name}: expected x to have a dtype of kind bool"):
            getattr(lax, name)(z, z)
    with pytest.raises(TypeError, match="argmax: expected operand to have a dtype of kind bool"):
        lax.argmax(z, 0)
    with pytest.raises(ValueError, match="top_k: expected operand to be real, got complex64"):
        lax.top_k(z, 2)
