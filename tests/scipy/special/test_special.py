"""jato.scipy.special and jato.scipy.stats.norm against SciPy: values and derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats

import jato
import jato.numpy as jnp
from jato.scipy import special
from jato.scipy.stats import norm

RNG = np.random.default_rng(0)
EDGES = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, np.inf, -np.inf, np.nan]
X = np.float32([*RNG.normal(0, 3, 200), *RNG.uniform(-30, 30, 200), *EDGES])
P = np.float32(
    [*RNG.uniform(0, 1, 200), *np.exp(RNG.uniform(-80, 0, 200)), 0, 1, 0.5, -0.1, np.nan]
)
Q = np.float32([*np.exp(RNG.normal(0, 1.5, 300)), 0, 1, 2, 3, 10, 30])
Q2 = RNG.permutation(Q)

# function -> arguments, relative tolerance in float32
UNARY = {
    "erf": (X, 1e-6), "erfc": (X, 1e-6), "erfinv": (P, 1e-6), "erfcinv": (2 * P, 1e-6),
    "ndtr": (X, 2e-5), "log_ndtr": (X, 1e-5), "ndtri": (P, 1e-6), "expit": (X, 1e-6),
    "logit": (P, 2e-5), "entr": (X, 1e-6), "gammaln": (Q, 1e-6), "gamma": (X, 1e-5),
    "gammasgn": (X, 0), "digamma": (Q[:300], 1e-6), "i0e": (X, 1e-6), "i1e": (X, 2e-6),
    "i0": (X, 2e-6), "i1": (X, 2e-6), "loggamma": (Q, 1e-6), "factorial": (np.float32(range(-2, 30)), 2e-5),
}  # fmt: skip
BINARY = {
    "xlogy": (Q, Q2, 1e-6), "xlog1py": (Q, Q2, 1e-6), "rel_entr": (Q, Q2, 2e-5),
    "kl_div": (Q, Q2, 1e-5), "betaln": (Q, Q2, 1e-5), "beta": (Q, Q2, 1e-4),
    "boxcox": (Q, X[:306] / 8, 1e-5), "boxcox1p": (Q, X[:306] / 8, 1e-5),
    "gammainc": (Q, Q2, 2e-4), "gammaincc": (Q, Q2, 2e-4), "poch": (Q[:300], Q2[:300] / 10, 1e-4),
    "zeta": (1 + Q[:300] / 10, Q2[:300] + 0.1, 2e-6),
    "comb": (np.float32([5, 5, 5, 5, 0, 3]), np.float32([0, 2, 5, 6, 0, -1]), 1e-5),
}  # fmt: skip


def _agree(ours: Any, theirs: Any, tolerance: float, smallest: float = 1e-30) -> None:
    with np.errstate(all="ignore"):
        theirs = np.where(
            np.abs(theirs) > np.finfo(np.float32).max, np.copysign(np.inf, theirs), theirs
        )
    np.testing.assert_allclose(np.asarray(ours, np.float64), theirs, rtol=tolerance, atol=smallest)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    x, tolerance = UNARY[name]
    reference = getattr(scipy.special, name)
    _agree(getattr(special, name)(x), reference(x.astype(np.float64)), tolerance)
    wide = x[np.isfinite(x)].astype(np.float64)
    with jato.enable_x64(True):
        ours = getattr(special, name)(wide)
        assert ours.dtype == np.float64
        # a logarithm near its zero and the tails keep fewer digits
        _agree(ours, reference(wide), min(1e-11, tolerance), 1e-290 if name != "logit" else 1e-15)


@pytest.mark.parametrize("name", ["erfcinv", "ndtr", "log_ndtr", "ndtri"])
def test_half_precision(name: str) -> None:
    x = np.float16([0.01, 0.3, 0.9, 1.0] if name.endswith("i") else [0.01, 0.3, 1.5, 1.9])
    found = getattr(special, name)(x)
    assert found.dtype == np.float16
    _agree(found, getattr(scipy.special, name)(x.astype(np.float64)), 2e-3)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    x, y, tolerance = BINARY[name]
    wide = x.astype(np.float64), y.astype(np.float64)
    expected = getattr(scipy.special, name)(*wide)
    _agree(getattr(special, name)(x, y), expected, tolerance)
    with jato.enable_x64(True):
        _agree(getattr(special, name)(*wide), expected, 2e-10, 1e-15)


def test_other_arguments() -> None:
    _agree(special.polygamma(2, Q[:300]), scipy.special.polygamma(2, Q[:300].astype(float)), 2e-6)
    _agree(special.zeta(3.0), scipy.special.zeta(3.0), 1e-6)
    _agree(special.multigammaln(Q + 3, 3), scipy.special.multigammaln(Q.astype(float) + 3, 3), 1e-5)
    _agree(special.betainc(2.0, 3.0, P[:200]), scipy.special.betainc(2, 3, P[:200]), 1e-5)
    grid = X[:12].reshape(3, 4)
    _agree(special.logsumexp(grid, 1), scipy.special.logsumexp(grid, 1), 1e-6)
    _agree(special.softmax(grid), scipy.special.softmax(grid), 1e-6)
    _agree(special.log_softmax(grid, axis=0), scipy.special.log_softmax(grid, 0), 2e-6)
    # numbers, integers, broadcasting
    assert special.gammaln(5).dtype == np.float32
    assert special.xlogy(jnp.ones((3, 1)), jnp.ones(2)).shape == (3, 2)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: special.gammaln(1j), TypeError, "expected real arguments"),
        (lambda: special.factorial(3, exact=True), NotImplementedError, "math.factorial"),
        (lambda: special.multigammaln(3.0, 0), ValueError, "positive integer"),
    ],
)
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_derivatives_at_zero() -> None:
    assert float(jato.grad(special.xlogy, 0)(0.0, 2.0)) == pytest.approx(np.log(2))
    assert float(jato.grad(special.xlogy, 1)(0.0, 2.0)) == 0
    assert float(jato.grad(special.xlog1py, 1)(0.0, -0.5)) == 0
    assert np.isinf(jato.grad(special.entr)(0.0))


@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("ndtr", [-3.0, 0.0, 2.0]), ("log_ndtr", [-30.0, -5.0, 0.0, 3.0]), ("ndtri", [1e-9, 0.3, 0.9]),
        ("erfcinv", [1e-6, 0.5, 1.5]), ("logit", [0.1, 0.5, 0.99]), ("entr", [0.2, 3.0]),
        ("gammaln", [0.3, 5.0]), ("digamma", [0.3, 5.0]), ("i0e", [-2.0, 9.0]), ("i1", [0.5]),
    ],
)  # fmt: skip
def test_derivatives(name: str, points: list[float]) -> None:
    """Against central differences of SciPy's function."""
    with jato.enable_x64(True):
        for x in points:
            h = 1e-5 * min(1.0, abs(x) or 1.0)
            reference = getattr(scipy.special, name)
            expected = (reference(x + h) - reference(x - h)) / (2 * h)
            np.testing.assert_allclose(jato.grad(getattr(special, name))(x), expected, rtol=1e-6)
            forward = jato.jvp(getattr(special, name), (x,), (1.0,))[1]
            np.testing.assert_allclose(forward, expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["pdf", "logpdf", "cdf", "logcdf", "sf", "logsf"])
def test_norm(name: str) -> None:
    reference = getattr(scipy.stats.norm, name)(X.astype(float), 0.5, 2)
    _agree(getattr(norm, name)(X, 0.5, 2), reference, 5e-5)


@pytest.mark.parametrize("name", ["ppf", "isf"])
def test_norm_quantiles(name: str) -> None:
    reference = getattr(scipy.stats.norm, name)(P.astype(float), 0.5, 2)
    _agree(getattr(norm, name)(P, 0.5, 2), reference, 1e-5, 1e-6)


def test_norm_is_one_kernel() -> None:
    f = jato.jit(lambda x: norm.logcdf(x) + norm.logpdf(x))
    f(X)
    assert len(f.stats().kernels) == 1
