"""gaussian_kde against SciPy's; samples by their moments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

import jato
import jato.numpy as jnp
from jato.scipy.stats import gaussian_kde

RNG = np.random.default_rng(0)
LINE = RNG.normal(size=40)
PLANE = RNG.normal(size=(2, 30)) * [[1.0], [3.0]]
WEIGHTS = RNG.uniform(0.5, 2, 30)


@pytest.mark.parametrize(
    ("data", "method", "weights"),
    [
        (LINE, None, None), (PLANE, "scott", None), (PLANE, "silverman", WEIGHTS), (LINE, 0.3, None),
        (PLANE, lambda e: e.neff ** (-1.0 / (e.d + 4)), WEIGHTS),
    ],
    ids=["line", "plane", "weighted", "number", "function"],
)  # fmt: skip
def test_values(data: Any, method: Any, weights: Any) -> None:
    theirs = scipy.stats.gaussian_kde(data, method, weights)
    with jato.enable_x64(True):
        ours = gaussian_kde(data, method, weights)
        assert (ours.d, ours.n) == (theirs.d, theirs.n)
        for name in ("neff", "covariance", "inv_cov", "weights", "dataset"):
            np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9)
        points = RNG.normal(size=(theirs.d, 7))
        np.testing.assert_allclose(ours(points), theirs(points), rtol=1e-9)
        np.testing.assert_allclose(ours.evaluate(points[:, 0]), theirs(points[:, 0]), rtol=1e-9)
        np.testing.assert_allclose(ours.pdf(points), theirs.pdf(points), rtol=1e-9)
        np.testing.assert_allclose(
            ours.logpdf(100 * points), theirs.logpdf(100 * points), rtol=1e-9
        )
        mean, cov = np.ones(theirs.d), np.eye(theirs.d) + 0.5
        np.testing.assert_allclose(
            ours.integrate_gaussian(mean, cov), theirs.integrate_gaussian(mean, cov), rtol=1e-9
        )
        shifted = scipy.stats.gaussian_kde(data + 1)
        np.testing.assert_allclose(
            ours.integrate_kde(gaussian_kde(data + 1)), theirs.integrate_kde(shifted), rtol=1e-9
        )
        if theirs.d == 1:
            found = ours.integrate_box_1d(-0.5, 2)
            np.testing.assert_allclose(found, theirs.integrate_box_1d(-0.5, 2), rtol=1e-9)
    single = gaussian_kde(data.astype(np.float32), method, weights)
    assert single(points).dtype == np.float32
    np.testing.assert_allclose(single(points), theirs(points), rtol=2e-4)


def test_is_a_pytree() -> None:
    density = gaussian_kde(LINE)
    traced = jato.jit(lambda density, x: density.logpdf(x))(density, 0.5)
    np.testing.assert_allclose(traced, density.logpdf(0.5), rtol=1e-6)
    slope = jato.grad(lambda x: gaussian_kde(x)(0.5)[0])(jnp.asarray(LINE))
    assert np.isfinite(np.asarray(slope)).all()


def test_resample() -> None:
    density = gaussian_kde(PLANE, weights=WEIGHTS)
    found = np.asarray(density.resample(jato.random.key(0), (20, 500)))
    assert found.shape == (2, 20, 500)
    mean = PLANE @ (WEIGHTS / WEIGHTS.sum())
    spread = np.cov(PLANE, aweights=WEIGHTS) + np.asarray(density.covariance)
    flat = found.reshape(2, -1)
    np.testing.assert_allclose(flat.mean(1), mean, atol=0.15)
    np.testing.assert_allclose(np.cov(flat), spread, rtol=0.1)
    assert density.resample(jato.random.key(0)).shape == (2,)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: gaussian_kde(1.0), ValueError, "argument 'dataset' must hold two samples"),
        (lambda: gaussian_kde(PLANE + 1j), TypeError, "expected real arguments"),
        (lambda: gaussian_kde(LINE, "best"), ValueError, "argument 'bw_method' must be 'scott'"),
        (lambda: gaussian_kde(LINE, weights=[1.0]), TypeError, "weights"),
        (lambda: gaussian_kde(LINE, weights=WEIGHTS), ValueError, r"'weights' must have shape \(40,\)"),
        (lambda: gaussian_kde(PLANE)(np.ones((3, 2))), ValueError, "gaussian_kde.evaluate: argument 'points'"),
        (lambda: gaussian_kde(PLANE).integrate_box_1d(0, 1), ValueError, "must have one dimension, not 2"),
        (lambda: gaussian_kde(LINE).integrate_kde(gaussian_kde(PLANE)), ValueError, "of dimension 1, got 2"),
        (lambda: gaussian_kde(LINE).integrate_gaussian(np.ones(2), 1), ValueError, "'mean' and 'cov'"),
        (lambda: gaussian_kde(LINE).set_bandwidth(), NotImplementedError, "bw_method"),
        (lambda: gaussian_kde(LINE).integrate_box(0, 1), NotImplementedError, "integrate_box_1d"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
