"""Cosine transforms of jato.scipy.fft, and the trapezoidal rule, against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.integrate

import jato
import jato.numpy as jnp
from jato.scipy import fft, integrate

X = np.random.default_rng(0).normal(size=(4, 7, 6))


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
def test_transforms(type: int, norm: str | None) -> None:
    with jato.enable_x64(True):
        for name in ("dct", "idct"):
            ours, theirs = getattr(fft, name), getattr(scipy.fft, name)
            for options in ({}, {"axis": 1}, {"n": 9}, {"n": 4, "axis": 0}, {"n": 2, "axis": 1}):
                expected = theirs(X, type, norm=norm, **options)
                np.testing.assert_allclose(
                    ours(X, type, norm=norm, **options), expected, atol=1e-12
                )
        for name in ("dctn", "idctn"):
            ours, theirs = getattr(fft, name), getattr(scipy.fft, name)
            for options in ({}, {"axes": (0, 2)}, {"s": (3, 9)}, {"s": (8, 3), "axes": (1, 0)}):
                expected = theirs(X, type, norm=norm, **options)
                np.testing.assert_allclose(
                    ours(X, type, norm=norm, **options), expected, atol=1e-11
                )
    assert fft.dct(np.arange(5)).dtype == np.float32


def test_transformations() -> None:
    with jato.enable_x64(True):
        slope = jato.grad(lambda x: jnp.sum(fft.dct(x, norm="ortho") ** 2))(X)
        np.testing.assert_allclose(slope, 2 * X, atol=1e-12)  # it is orthogonal
        np.testing.assert_allclose(jato.vmap(fft.dct)(X), fft.dct(X), atol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fft.dct(X + 1j), TypeError, "dct: argument 'x' must be real"),
        (lambda: fft.idct(X, 5), ValueError, "idct: argument 'type' must be 1, 2, 3 or 4"),
        (lambda: fft.dctn(X, norm="all"), ValueError, "dctn: argument 'norm'"),
        (lambda: fft.dct(X, n=0), ValueError, "dct: argument 'n' must be integers >= 1"),
        (lambda: fft.dct(X, 1, n=1), ValueError, "integers >= 2"),
        (lambda: fft.idctn(X, s=(2, 2), axes=(0,)), ValueError, "idctn: argument 's'"),
        (lambda: fft.dct(X, axis=3), np.exceptions.AxisError, "dct: axes 3"),
    ],
)
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_trapezoid() -> None:
    x = np.sort(X[0, 0])
    for args in ((X,), (X, x), (X, None, 0.5)):
        np.testing.assert_allclose(
            integrate.trapezoid(*args), scipy.integrate.trapezoid(*args), rtol=1e-4, atol=1e-6
        )
