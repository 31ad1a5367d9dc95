"""jato.random: keys, arguments, errors, derivatives, statistics."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats

import jato
import jato.numpy as jnp
from jato import random

KEY = random.key(0)


def test_key_kinds() -> None:
    raw, typed = random.PRNGKey(3), random.key(3)
    assert raw.shape == (2,) and raw.dtype == np.uint32
    assert typed.shape == () and random.key_impl(typed) == "threefry2x32"
    np.testing.assert_array_equal(random.key_data(typed), raw)
    np.testing.assert_array_equal(random.key_data(raw), raw)
    np.testing.assert_array_equal(random.key_data(random.wrap_key_data(raw)), raw)
    # what is made of a key is of its kind
    assert random.split(raw, 3).shape == (3, 2) and random.split(typed, 3).shape == (3,)
    assert random.fold_in(raw, 1).shape == (2,) and random.fold_in(typed, 1).shape == ()
    np.testing.assert_array_equal(random.normal(raw, (4,)), random.normal(typed, (4,)))
    np.testing.assert_array_equal(random.key_data(random.clone(typed)), raw)


def test_key_arrays_are_indexed_and_iterated() -> None:
    first, second = random.split(KEY)
    keys = random.split(KEY)
    np.testing.assert_array_equal(random.key_data(keys[1]), random.key_data(second))
    np.testing.assert_array_equal(random.key_data(keys)[0], random.key_data(first))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: random.normal(3), TypeError, "'key' must be a random key"),
        (lambda: random.normal(jnp.zeros(3)), TypeError, "'key' must be a random key"),
        (lambda: random.normal(random.split(KEY)), ValueError, "single key.*vmap"),
        (lambda: random.PRNGKey(1.5), TypeError, "seed must be an integer"),
        (lambda: random.PRNGKey(np.arange(2)), TypeError, "scalar seed"),
        (lambda: random.PRNGKey(1 << 64), OverflowError, "64 bits"),
        (lambda: random.key(0, impl="rbg"), ValueError, "unknown generator 'rbg'"),
        (lambda: random.fold_in(KEY, -1), OverflowError, "out of bounds for uint32"),
        (lambda: random.bits(KEY, (), np.int32), ValueError, "unsigned integer"),
        (lambda: random.uniform(KEY, (), int), ValueError, "float dtype"),
        (lambda: random.randint(KEY, (), 0, 5, float), ValueError, "integer dtype"),
        (lambda: random.normal(KEY, (-1,)), ValueError, "negative"),
        (lambda: random.uniform(KEY, (3,), minval=jnp.zeros(2)), ValueError, "broadcast"),
        (lambda: random.gamma(KEY, jnp.ones(2), (3,)), ValueError, "broadcast"),
        (lambda: random.bernoulli(KEY, 1), TypeError, "floating dtype"),
        (lambda: random.permutation(KEY, 1.5), TypeError, "integer or an array"),
        (lambda: random.choice(KEY, 3, (4,), replace=False), ValueError, "without replacement"),
        (lambda: random.choice(KEY, 3, (1,), p=jnp.ones(2)), ValueError, "shape \\(3,\\)"),
        (lambda: random.choice(KEY, 0, (1,)), ValueError, "empty"),
        (lambda: random.gumbel(KEY, mode="low-ish"), ValueError, "mode"),
        (lambda: random.dirichlet(KEY, 1.0), ValueError, "at least one axis"),
    ],
)
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_empty_shapes() -> None:
    assert random.normal(KEY, (0, 3)).shape == (0, 3)
    assert random.gamma(KEY, jnp.ones(0)).shape == (0,)
    assert random.permutation(KEY, 0).shape == (0,)
    assert random.choice(KEY, 5, (0,)).shape == (0,)
    assert random.poisson(KEY, jnp.ones((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("size", [1, 15, 16, 17, 63, 65, 1000])
def test_prefixes_agree(size: int) -> None:
    """Element i depends on the key and i only, whatever vectors and threads compute it."""
    whole = np.asarray(random.bits(KEY, (1001,)))
    np.testing.assert_array_equal(random.bits(KEY, (size,)), whole[:size])


@pytest.mark.parametrize(
    ("samples", "distribution"),
    [
        (lambda n: random.uniform(KEY, (n,)), scipy.stats.uniform()),
        (lambda n: random.normal(KEY, (n,)), scipy.stats.norm()),
        (lambda n: random.exponential(KEY, (n,)), scipy.stats.expon()),
        (lambda n: random.gumbel(KEY, (n,)), scipy.stats.gumbel_r()),
        (lambda n: random.gumbel(KEY, (n,), mode="highest"), scipy.stats.gumbel_r()),
        (lambda n: random.laplace(KEY, (n,)), scipy.stats.laplace()),
        (lambda n: random.gamma(KEY, 0.3, (n,)), scipy.stats.gamma(0.3)),
        (lambda n: random.gamma(KEY, 4.0, (n,)), scipy.stats.gamma(4.0)),
        (lambda n: random.beta(KEY, 2.0, 0.5, (n,)), scipy.stats.beta(2.0, 0.5)),
        (lambda n: random.t(KEY, 3.0, (n,)), scipy.stats.t(3.0)),
        (lambda n: random.wald(KEY, 1.0, (n,)), scipy.stats.invgauss(1.0)),
    ],
)
def test_distributions(samples: Any, distribution: Any) -> None:
    found = np.asarray(samples(20_000), np.float64)
    assert scipy.stats.kstest(found, distribution.cdf).pvalue > 1e-3


def test_permutation_is_one() -> None:
    found = np.asarray(random.permutation(KEY, 1000))
    assert sorted(found) == list(range(1000)) and (found != np.arange(1000)).any()
    rows = np.asarray(random.permutation(KEY, np.arange(12).reshape(4, 3)))
    assert sorted(map(tuple, rows)) == [(0, 1, 2), (3, 4, 5), (6, 7, 8), (9, 10, 11)]


def test_gamma_samples_are_differentiable() -> None:
    """Against differences of the quantile function at the sample's probability."""
    a = np.float32([0.4, 1.0, 3.0, 20.0])
    slopes = jato.grad(lambda a: jnp.sum(random.gamma(KEY, a)))(a)
    logs = jato.grad(lambda a: jnp.sum(random.loggamma(KEY, a)))(a)
    x = np.asarray(random.gamma(KEY, a), np.float64)
    wide, h = a.astype(np.float64), 1e-5
    p = scipy.stats.gamma.cdf(x, wide)
    expected = (scipy.stats.gamma.ppf(p, wide + h) - scipy.stats.gamma.ppf(p, wide - h)) / (2 * h)
    np.testing.assert_allclose(slopes, expected, rtol=1e-3)
    np.testing.assert_allclose(logs, expected / x, rtol=1e-3)


def test_reparameterized_gradients() -> None:
    slope = jato.grad(lambda s: jnp.sum(random.lognormal(KEY, s, (3,))))(0.5)
    z = np.asarray(random.normal(KEY, (3,)), np.float64)
    assert math.isclose(float(slope), float(np.sum(z * np.exp(0.5 * z))), rel_tol=1e-4)


def test_one_kernel_and_one_program_for_all_keys() -> None:
    f = jato.jit(lambda key: random.normal(key, (1000,)))
    for seed in range(3):
        f(random.PRNGKey(seed))
    assert f.stats().traces == 1 and len(f.stats().kernels) == 1


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_multivariate_normal(method: str) -> None:
    mean, cov = np.float32([1, -2]), np.float32([[2, 0.6], [0.6, 0.5]])
    found = np.asarray(random.multivariate_normal(KEY, mean, cov, (20_000,), method=method))
    np.testing.assert_allclose(found.mean(0), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(found.T), cov, atol=0.08)
    with pytest.raises(ValueError, match="mean must have shape"):
        random.multivariate_normal(KEY, mean, np.eye(3), method=method)


@pytest.mark.parametrize(("n", "m"), [(3, None), (3, 5), (5, 3)])
def test_orthogonal(n: int, m: int | None) -> None:
    q = np.asarray(random.orthogonal(KEY, n, (2,), m=m))
    assert q.shape == (2, n, m or n)
    rows = q if n <= (m or n) else np.swapaxes(q, 1, 2)
    identity = np.broadcast_to(np.eye(rows.shape[1]), (2, rows.shape[1], rows.shape[1]))
    np.testing.assert_allclose(rows @ np.swapaxes(rows, 1, 2), identity, atol=1e-5)
