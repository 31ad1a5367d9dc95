"""The special functions of jato.lax against SciPy, and their derivatives against mpmath."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import jato
from jato import lax

RNG = np.random.default_rng(0)


def log_uniform(low: float, high: float, size: int) -> np.ndarray:
    return np.exp(RNG.uniform(np.log(low), np.log(high), size)).astype(np.float32)


A = log_uniform(1e-2, 1e3, 500)
B = log_uniform(1e-2, 1e2, 500)
X = (A * np.exp(RNG.normal(0, 1, 500))).astype(np.float32)
U = RNG.uniform(0, 1, 500).astype(np.float32)
LINE = np.concatenate([np.linspace(-30, 30, 401), [0, -0.0, 8, -8]]).astype(np.float32)
Q = log_uniform(1e-2, 30, 500)

CASES = {
    "igamma": (lax.igamma, scipy.special.gammainc, (A, X), 1e-4, 1e-12),
    "igammac": (lax.igammac, scipy.special.gammaincc, (A, X), 1e-4, 1e-12),
    "betainc": (lax.betainc, scipy.special.betainc, (np.minimum(A, 300), B, U), 2e-3, 1e-10),
    "bessel_i0e": (lax.bessel_i0e, scipy.special.i0e, (LINE,), 1e-6, 3e-15),
    "bessel_i1e": (lax.bessel_i1e, scipy.special.i1e, (LINE,), 2e-6, 3e-15),
    "zeta": (lax.zeta, scipy.special.zeta, (1 + B[:300] / 10, Q[:300]), 2e-6, 3e-14),
    "polygamma": (
        lax.polygamma,
        lambda m, x: scipy.special.polygamma(m.astype(int), x),
        (np.float32(RNG.integers(0, 6, 500)), Q),
        2e-6,
        3e-14,
    ),  # fmt: skip
}


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    function, reference, args, tolerance, wide_tolerance = CASES[name]
    wide = [x.astype(np.float64) for x in args]
    expected = reference(*wide)
    normal = np.abs(expected) > 1e-30
    np.testing.assert_allclose(
        np.asarray(function(*args))[normal], expected[normal], rtol=tolerance
    )
    with jato.enable_x64(True):
        np.testing.assert_allclose(function(*wide), expected, rtol=wide_tolerance, atol=1e-280)


@pytest.mark.parametrize(
    ("function", "reference", "args"),
    [
        (lax.igamma, scipy.special.gammainc, (0, 0)),
        (lax.igamma, scipy.special.gammainc, (0, 1)),
        (lax.igamma, scipy.special.gammainc, (1, 0)),
        (lax.igamma, scipy.special.gammainc, (-1, 1)),
        (lax.igamma, scipy.special.gammainc, (1, -1)),
        (lax.igamma, scipy.special.gammainc, (1, np.inf)),
        (lax.igamma, scipy.special.gammainc, (np.inf, 1)),
        (lax.igamma, scipy.special.gammainc, (np.nan, 1)),
        (lax.igammac, scipy.special.gammaincc, (0, 1)),
        (lax.igammac, scipy.special.gammaincc, (1, 0)),
        (lax.igammac, scipy.special.gammaincc, (1, np.inf)),
        (lax.igammac, scipy.special.gammaincc, (np.inf, 1)),
        (lax.betainc, scipy.special.betainc, (1, 2, 0)),
        (lax.betainc, scipy.special.betainc, (1, 2, 1)),
        (lax.betainc, scipy.special.betainc, (1, 2, 1.5)),
        (lax.betainc, scipy.special.betainc, (-1, 2, 0.5)),
        (lax.zeta, scipy.special.zeta, (1, 2)),
        (lax.zeta, scipy.special.zeta, (2, 0)),
        (lax.zeta, scipy.special.zeta, (2, -3)),
        (lax.zeta, scipy.special.zeta, (0.5, 2)),
    ],
)
def test_special_values(function: Any, reference: Any, args: Any) -> None:
    np.testing.assert_array_equal(function(*map(np.float32, args)), np.float32(reference(*args)))


# integers among the parameters: continued fractions end there, their derivatives do not
POINTS = [(1.0, 1.0), (0.3, 2.0), (5.0, 1.0), (3.0, 7.0), (0.02, 0.001), (80.0, 70.0), (2.0, 30.0)]


@pytest.mark.parametrize(("a", "x"), POINTS)
def test_gamma_derivatives(a: float, x: float) -> None:
    mpmath.mp.dps = 30
    slope = mpmath.diff(lambda a: mpmath.gammainc(a, 0, x, regularized=True), a)
    density = mpmath.mpf(x) ** (a - 1) * mpmath.exp(-x) / mpmath.gamma(a)
    with jato.enable_x64(True):
        found = jato.grad(lax.igamma, (0, 1))(a, x)
        np.testing.assert_allclose(found, [float(slope), float(density)], rtol=1e-10)
        np.testing.assert_allclose(lax.igamma_grad_a(a, x), float(slope), rtol=1e-10)
        np.testing.assert_allclose(lax.random_gamma_grad(a, x), float(-slope / density), rtol=1e-10)
        found = jato.grad(lax.igammac, (0, 1))(a, x)
        np.testing.assert_allclose(found, [float(-slope), float(-density)], rtol=1e-10)


@pytest.mark.parametrize(
    "point", [(2.0, 1.0, 0.3), (0.5, 3.0, 0.9), (4.0, 4.0, 0.5), (1.0, 1.0, 0.7), (20.0, 3.0, 0.8)]
)
def test_beta_derivatives(point: tuple[float, float, float]) -> None:
    mpmath.mp.dps = 30
    expected = [
        float(mpmath.diff(
            lambda *p: mpmath.betainc(p[0], p[1], 0, p[2], regularized=True), point,
            tuple(int(i == k) for i in range(3)),
        ))
        for k in range(3)
    ]  # fmt: skip
    with jato.enable_x64(True):
        found = jato.grad(lax.betainc, (0, 1, 2))(*point)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_bessel_and_zeta_derivatives() -> None:
    with jato.enable_x64(True):
        for x in (0.0, 0.5, -3.0, 20.0):
            expected = 0.5 if x == 0 else scipy.special.i0e(x) - scipy.special.i1e(x) / x
            expected -= np.sign(x) * scipy.special.i1e(x)
            np.testing.assert_allclose(jato.grad(lax.bessel_i1e)(x), expected, rtol=1e-12)
        slope = jato.grad(lax.zeta, 1)(2.0, 1.5)
        np.testing.assert_allclose(slope, -2 * scipy.special.zeta(3, 1.5), rtol=1e-12)
        slope = jato.grad(lambda x: lax.polygamma(1.0, x))(1.5)
        np.testing.assert_allclose(slope, scipy.special.polygamma(2, 1.5), rtol=1e-12)


def test_half_precision_and_errors() -> None:
    x = np.float16([0.5, 2.0])
    assert lax.igamma(x, x).dtype == np.float16
    np.testing.assert_allclose(lax.igamma(x, x), scipy.special.gammainc(x, x), rtol=2e-3)
    with pytest.raises(TypeError, match="igamma: argument 'x'"):
        lax.igamma(np.float32(1), np.float16(1))
    with pytest.raises(TypeError, match="expected floats"):
        lax.igamma(np.int32(1), np.int32(1))
