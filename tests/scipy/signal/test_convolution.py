"""jato.scipy.signal against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import jato
from jato.scipy import signal

RNG = np.random.default_rng(0)
SHAPES = [
    ((10,), (3,)), ((3,), (10,)), ((9,), (4,)), ((7, 8), (3, 2)), ((3, 2), (7, 8)),
    ((5, 6, 4), (2, 3, 2)),
]  # fmt: skip


def _normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("shapes", SHAPES)
def test_any_rank(shapes: Any, mode: str) -> None:
    a, b = _normal(*shapes[0]), _normal(*shapes[1])
    names = ["convolve", "correlate"]
    names += ["convolve2d", "correlate2d"] if a.ndim == 2 else []
    for name in names:
        expected = getattr(scipy.signal, name)(a, b, mode)
        np.testing.assert_allclose(getattr(signal, name)(a, b, mode), expected, atol=1e-5)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("shapes", SHAPES)
def test_by_transforms(shapes: Any, mode: str) -> None:
    a, b = _normal(*shapes[0]), _normal(*shapes[1])
    expected = scipy.signal.fftconvolve(a, b, mode)
    np.testing.assert_allclose(signal.fftconvolve(a, b, mode), expected, atol=1e-4)
    for name in ("convolve", "correlate"):
        for x, y in ((a, b), (a + 1j, 1j * b)):
            expected = getattr(scipy.signal, name)(x, y, mode)
            found = getattr(signal, name)(x, y, mode, method="fft")
            np.testing.assert_allclose(found, expected, atol=1e-4)
    if a.ndim == 2:
        b = b[:1]
        expected = scipy.signal.fftconvolve(a, b, "full", axes=[1])
        np.testing.assert_allclose(signal.fftconvolve(a, b, axes=[-1]), expected, atol=1e-4)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("boundary", ["fill", "wrap", "symm"])
@pytest.mark.parametrize("shapes", [((5, 4), (3, 2)), ((2, 3), (4, 3)), ((6, 6), (1, 1))])
def test_boundaries(shapes: Any, boundary: str, mode: str) -> None:
    a, b = _normal(*shapes[0]), _normal(*shapes[1])
    for name in ("convolve2d", "correlate2d"):
        expected = getattr(scipy.signal, name)(a, b, mode, boundary, 1.5)
        found = getattr(signal, name)(a, b, mode, boundary, 1.5)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_complex_and_integers() -> None:
    a, b = _normal(6) + 1j * _normal(6), _normal(3) + 1j * _normal(3)
    for name in ("convolve", "correlate"):
        expected = getattr(scipy.signal, name)(a, b)
        np.testing.assert_allclose(getattr(signal, name)(a, b), expected, atol=1e-5)
    assert signal.convolve(np.arange(3), np.arange(2)).dtype == np.float32


def test_direct_and_for_all_sizes() -> None:
    f = jato.jit(lambda a, b: signal.convolve2d(a, b, "same"))
    f(_normal(64, 64), _normal(5, 5))
    first = f.stats()
    assert len(first.kernels) <= 2  # padding, and the sum itself
    f(_normal(96, 80), _normal(5, 5))
    assert f.stats().kernels_compiled == first.kernels_compiled


def test_gradient() -> None:
    a, b, w = _normal(9), _normal(4), _normal(12)
    found = jato.grad(lambda b: (signal.convolve(a, b) * w).sum())(b)
    np.testing.assert_allclose(found, scipy.signal.correlate(w, a, "valid"), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: signal.convolve(_normal(3), _normal(2), "half"), ValueError, "'mode'"),
        (lambda: signal.convolve(_normal(3), _normal(2, 2)), ValueError, "as many axes"),
        (lambda: signal.convolve(_normal(3), _normal(0)), ValueError, "empty"),
        (lambda: signal.convolve(_normal(3), _normal(2), method="slow"), ValueError, "'method'"),
        (lambda: signal.fftconvolve(_normal(3), _normal(2), axes=()), ValueError, "'axes' is empty"),
        (lambda: signal.fftconvolve(_normal(3), _normal(2, 2)), ValueError, "as many axes"),
        (lambda: signal.convolve2d(_normal(3), _normal(2)), ValueError, "two axes"),
        (
            lambda: signal.convolve2d(_normal(3, 3), _normal(2, 2), boundary="mirror"),
            ValueError, "argument 'boundary' must be",
        ),
        (
            lambda: signal.correlate2d(_normal(3, 3), _normal(2, 2), fillvalue="x"),
            TypeError, "argument 'fillvalue' must be",
        ),
        (
            lambda: signal.convolve(_normal(3, 1), _normal(2, 2), "valid"),
            ValueError, "along every axis",
        ),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
