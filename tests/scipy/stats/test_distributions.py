"""The distributions against SciPy's: values, dtypes, ends of the support, derivatives, vmap, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats
from distribution_cases import CASES, DISCRETE, SPECS, arguments

import jato
import jato.numpy as jnp
from jato.scipy import stats

IDS = [".".join(spec) for spec in SPECS]


def _ours(name: str, function: str) -> Any:
    return getattr(getattr(stats, name), function)


def _expected(name: str, function: str, args: list[Any]) -> Any:
    """SciPy's values; where it computes inf - inf at an infinite point, a density's limit, 0."""
    args = [np.asarray(a, np.float64) for a in args]
    with np.errstate(all="ignore"):
        found = np.asarray(getattr(getattr(scipy.stats, name), function)(*args))
        finite = getattr(getattr(scipy.stats, name), function)(np.ones(1), *args[1:])
    if function in ("pdf", "pmf", "logpdf", "logpmf"):
        limit = -np.inf if function.startswith("log") else 0.0
        found = np.where(np.isinf(args[0]) & ~np.isnan(finite), limit, found)
    if (name, function) == ("bernoulli", "ppf"):
        # as in jax: the least value is 0, also of probability 0, and 1 is for p > 0 only
        q, p = args
        found = np.where((q == 0) | ((q == 1) & (p == 0)), 0 * (q + p * (p <= 1) / (p <= 1)), found)
    return found


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "function"), SPECS, ids=IDS)
def test_values(name: str, function: str) -> None:
    log = "log" in function
    with jato.enable_x64(True):
        args = arguments(name, function, np.float64)
        found = _ours(name, function)(*args)
        assert found.dtype == np.float64
        atol = 1e-13 if log else 1e-200
        np.testing.assert_allclose(found, _expected(name, function, args), rtol=2e-9, atol=atol)
    args = arguments(name, function, np.float32)
    found = np.asarray(_ours(name, function)(*args))
    assert found.dtype == np.float32
    expected = _expected(name, function, args)
    # a probability below the least float32 has no logarithm there
    known = ~(np.isneginf(found) & (expected < -100))
    atol = 2e-5 if log else 1e-7
    np.testing.assert_allclose(found[known], expected[known], rtol=2e-4, atol=atol)


def _interior(name: str, function: str) -> list[Any]:
    """Valid parameters of size 3, points (a column) inside of the support."""
    parameters = {
        "beta": ([0.5, 2.5, 30.0], [1.5, 3.0, 40.0]), "chi2": ([0.5, 3.5, 20.0],),
        "gamma": ([0.25, 2.5, 10.0],), "gennorm": ([0.75, 2.0, 3.5],), "pareto": ([0.5, 1.5, 4.0],),
        "t": ([0.5, 4.0, 100.0],), "truncnorm": ([-1.0, -0.5, -3.0], [1.0, 4.0, 0.5]),
        "vonmises": ([0.25, 1.0, 30.0],), "wrapcauchy": ([0.125, 0.5, 0.9],),
        "bernoulli": ([0.25, 0.5, 0.875],), "betabinom": ([7.0, 7.0, 20.0], [0.5, 1.0, 3.0], [1.0, 0.5, 4.0]),
        "binom": ([7.0, 7.0, 20.0], [0.25, 0.5, 0.875]), "geom": ([0.25, 0.5, 0.875],),
        "nbinom": ([0.5, 2.0, 12.0], [0.25, 0.5, 0.875]), "poisson": ([0.25, 2.0, 30.0],),
    }.get(name, ())  # fmt: skip
    if function in ("ppf", "isf"):
        x = np.array([0.1, 0.45, 0.85])
    elif name in DISCRETE:
        x = np.array([0.0, 1.0] if name == "bernoulli" else [1.0, 2.0, 5.0])
    elif name in ("beta", "uniform"):
        x = np.array([0.1, 0.45, 0.85])
    else:
        x = np.array([1.25, 1.75, 4.0]) if name == "pareto" else np.array([0.1, 0.3, 0.45])
    return [x[:, None], *[np.array(p) for p in parameters]]


@pytest.mark.parametrize(("name", "function"), SPECS, ids=IDS)
def test_derivatives(name: str, function: str) -> None:
    """By central differences, in all arguments that are not counts; jit and vmap agree."""
    f = _ours(name, function)
    with jato.enable_x64(True):
        args = _interior(name, function)
        smooth = [
            i for i in range(len(args))
            if not (name in DISCRETE and i == 0) and not ("binom" in name and name != "nbinom" and i == 1)
        ]  # fmt: skip
        for i in smooth if (name, function) != ("bernoulli", "ppf") else []:
            one = lambda x: f(*args[:i], x, *args[i + 1 :])
            h = 1e-6 * np.maximum(np.abs(args[i]), 1e-3)
            expected = (np.asarray(one(args[i] + h)) - np.asarray(one(args[i] - h))) / (2 * h)
            found = jato.jvp(one, (args[i],), (np.ones_like(args[i]),))[1]
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
            back = jato.grad(lambda x: one(x).sum())(args[i])
            axis = tuple(range(found.ndim - args[i].ndim))
            total = np.sum(found, axis=axis)
            total = (
                total.sum(-1, keepdims=True) if args[i].shape[-1] == 1 and found.ndim > 1 else total
            )
            np.testing.assert_allclose(back, total, rtol=1e-7, atol=1e-9)
        value = f(*args)
        np.testing.assert_allclose(jato.jit(f)(*args), value, rtol=1e-12)
        rows = jato.vmap(f, (0, *[None] * (len(args) - 1)))(*args)
        np.testing.assert_allclose(rows, value, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "function"), [s for s in SPECS if s[1] in ("pdf", "logpdf", "cdf", "sf")]
)
def test_derivatives_outside_are_zero(name: str, function: str) -> None:
    """Not NaN, which would spoil the derivative of a sum."""
    if name not in (
        "beta",
        "chi2",
        "expon",
        "gamma",
        "pareto",
        "truncnorm",
        "uniform",
        "wrapcauchy",
    ):
        return
    parameters = [np.float32(p[1]) for p in _interior(name, function)[1:]]
    slope = jato.grad(_ours(name, function))(np.float32(-7.0), *parameters)
    assert float(slope) == 0.0


def test_types() -> None:
    assert stats.gamma.logpdf(1, 2).dtype == np.float32
    assert stats.norm.logpdf(1.0, 2.0).weak_type
    half = jnp.ones(3, "float16")
    for name, (function, *parameters) in {
        "norm": ("pdf", 0.5), "beta": ("logpdf", 2.0, 3.0), "poisson": ("logpmf", 2.0),
        "t": ("pdf", 3.0), "truncnorm": ("logcdf", -1.0, 2.0), "gennorm": ("cdf", 2.0),
    }.items():  # fmt: skip
        f = _ours(name, function)
        assert f(half, *parameters).dtype == half.dtype
        # Python numbers inside a traced function are weak as well
        assert jato.jit(lambda x: f(x, *parameters))(half).dtype == half.dtype
    assert stats.norm.pdf(jnp.ones((3, 1)), jnp.ones(2)).shape == (3, 2)
    assert stats.binom.pmf(jnp.zeros((0, 2), int), 3, 0.5).shape == (0, 2)


@pytest.mark.parametrize("name", CASES)
def test_errors(name: str) -> None:
    module = getattr(stats, name)
    function = "logpmf" if name in DISCRETE else "logpdf"
    f, parameters = getattr(module, function), [0.5] * len(CASES[name].parameters)
    with pytest.raises(
        TypeError, match=rf"{name}.{function}: expected real .*complex64 for argument"
    ):
        f(1j, *parameters)
    with pytest.raises(TypeError, match=rf"{name}.{function}: argument [xk]: expected an array"):
        f("a", *parameters)
    with pytest.raises(ValueError, match="incompatible shapes"):
        f(jnp.ones(3), *[jnp.ones(2)] * max(1, len(parameters)))


def test_poisson_entropy() -> None:
    mu = np.array([0, 1e-3, 0.5, 2, 30, 59.9, 60.1, 300, 1e6])
    expected = [0.0, *[float(_entropy(m)) for m in mu[1:]]]
    with jato.enable_x64(True):
        np.testing.assert_allclose(stats.poisson.entropy(mu), expected, rtol=1e-9)
        slope = jato.grad(stats.poisson.entropy)
        for m in (0.5, 20.0, 80.0):
            difference = (_entropy(m + 1e-4) - _entropy(m - 1e-4)) / 2e-4
            np.testing.assert_allclose(slope(m), difference, rtol=1e-6)
    assert np.isnan(stats.poisson.entropy(-1.0))
    assert stats.poisson.entropy(np.float16([2, 3])).dtype == np.float16
    np.testing.assert_allclose(stats.poisson.entropy(np.float32(mu)), expected, rtol=2e-5)


def _entropy(mu: float) -> float:
    low = max(0, int(mu - 20 * np.sqrt(mu + 1)))
    k = np.arange(low, int(mu + 20 * np.sqrt(mu + 1)) + 20, dtype=float)
    log = scipy.stats.poisson.logpmf(k, mu)
    return float(-np.sum(np.exp(log) * log))


def test_dirichlet() -> None:
    rng = np.random.default_rng(0)
    alpha = np.array([0.5, 1.0, 4.0])
    x = rng.dirichlet(alpha, 5).T
    expected = [scipy.stats.dirichlet.logpdf(column, alpha) for column in x.T]
    with jato.enable_x64(True):
        np.testing.assert_allclose(stats.dirichlet.logpdf(x, alpha), expected, rtol=1e-12)
        np.testing.assert_allclose(stats.dirichlet.logpdf(x[:2], alpha), expected, rtol=1e-10)
        np.testing.assert_allclose(stats.dirichlet.pdf(x, alpha), np.exp(expected), rtol=1e-12)
        slope = jato.grad(lambda a: stats.dirichlet.logpdf(x, a).sum())(alpha)
        for i, h in enumerate(1e-6 * np.eye(3)):
            up, down = (
                sum(scipy.stats.dirichlet.logpdf(c, alpha + s) for c in x.T) for s in (h, -h)
            )
            np.testing.assert_allclose(slope[i], (up - down) / 2e-6, rtol=1e-6)
    outside = np.float32([[0.5, 0.6, -0.1], [0.5, 0.5, 0.1], [0.0, -0.1, 1.0]])
    found = stats.dirichlet.logpdf(outside, np.float32([1, 2, 1]))
    np.testing.assert_array_equal(np.isneginf(found), [False, True, True])
    assert np.isnan(stats.dirichlet.logpdf(np.float32([0.5, 0.5]), np.float32([1, -1])))
    with pytest.raises(ValueError, match="dirichlet.pdf: argument 'alpha' must be a vector"):
        stats.dirichlet.pdf(jnp.ones(2), jnp.ones((2, 2)))
    with pytest.raises(ValueError, match="dirichlet.logpdf: the first axis of argument 'x'"):
        stats.dirichlet.logpdf(jnp.ones(4), jnp.ones(3))


def test_multinomial() -> None:
    p = np.array([0.25, 0.25, 0.5])
    x = np.array([[1, 2, 3], [0, 0, 6], [6, 0, 0], [1, 2, 4], [-1, 3, 4]])
    expected = scipy.stats.multinomial.logpmf(x, 6, p)
    with jato.enable_x64(True):
        np.testing.assert_allclose(stats.multinomial.logpmf(x, 6, p), expected, rtol=1e-12)
        np.testing.assert_allclose(stats.multinomial.pmf(x, 6, p), np.exp(expected), rtol=1e-12)
        assert float(stats.multinomial.pmf(np.array([3, 0]), 3, np.array([1.0, 0.0]))) == 1
        rows = jato.vmap(stats.multinomial.logpmf, (0, None, None))(x, 6, p)
        np.testing.assert_allclose(rows, expected, rtol=1e-12)
        slope = jato.grad(lambda p: stats.multinomial.logpmf(x[0], 6, p))(p)
        np.testing.assert_allclose(slope, x[0] / p)
    with pytest.raises(ValueError, match="multinomial.pmf: argument 'x' must be of integers"):
        stats.multinomial.pmf(jnp.ones(2), 2, jnp.ones(2) / 2)
    with pytest.raises(ValueError, match="multinomial.logpmf: argument 'n' must be of integers"):
        stats.multinomial.logpmf(jnp.ones(2, int), 2.0, jnp.ones(2) / 2)


def test_multivariate_normal() -> None:
    rng = np.random.default_rng(1)
    factors = rng.normal(size=(4, 3, 3))
    cov = factors @ factors.transpose(0, 2, 1) + np.eye(3)
    mean, x = rng.normal(size=(4, 3)), rng.normal(size=(5, 4, 3))
    reference, ours = scipy.stats.multivariate_normal, stats.multivariate_normal
    expected = np.stack([reference.logpdf(x[:, i], mean[i], cov[i]) for i in range(4)], 1)
    with jato.enable_x64(True):
        np.testing.assert_allclose(ours.logpdf(x, mean, cov), expected, rtol=1e-10)
        for i in range(2):
            np.testing.assert_allclose(
                ours.logpdf(x[:, i], mean[i], cov[i]), expected[:, i], rtol=1e-10
            )
            np.testing.assert_allclose(
                ours.pdf(x[:, i], mean[i], cov[i]), np.exp(expected[:, i]), rtol=1e-10
            )
        mapped = jato.vmap(ours.logpdf, (1, 0, 0), 1)(x, mean, cov)
        np.testing.assert_allclose(mapped, expected, rtol=1e-10)
        np.testing.assert_allclose(
            ours.logpdf(x, mean[0], 2.0), reference.logpdf(x, mean[0], 2 * np.eye(3)), rtol=1e-10
        )
        np.testing.assert_allclose(
            ours.logpdf(x, 0.5, 2.0), reference.logpdf(x.reshape(-1), 0.5, 2.0).reshape(x.shape)
        )
        value = lambda c: ours.logpdf(x[0, 0], mean[0], c)
        direction = np.eye(3) + 0.1
        difference = (value(cov[0] + 1e-6 * direction) - value(cov[0] - 1e-6 * direction)) / 2e-6
        np.testing.assert_allclose(
            np.sum(jato.grad(value)(cov[0]) * direction), difference, rtol=1e-6
        )
    assert np.isnan(ours.logpdf(jnp.zeros(2), jnp.zeros(2), -jnp.eye(2)))
    with pytest.raises(NotImplementedError, match="allow_singular"):
        ours.logpdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2), allow_singular=True)
    with pytest.raises(
        ValueError, match=r"multivariate_normal.pdf: argument 'cov' must .*\(..., 2, 2\)"
    ):
        ours.pdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(3))
    with pytest.raises(ValueError, match="argument 'cov' must be a number"):
        ours.pdf(jnp.zeros(2), 0.0, jnp.eye(2))
    with pytest.raises(ValueError, match="last axis of argument 'x' must have size 2"):
        ours.pdf(jnp.zeros(3), jnp.zeros(2), jnp.eye(2))


def test_a_density_is_one_kernel() -> None:
    f = jato.jit(lambda x: stats.norm.logcdf(x) + stats.cauchy.logsf(x, 0.5, 2.0))
    f(jnp.ones(100))
    assert len(f.stats().kernels) == 1
