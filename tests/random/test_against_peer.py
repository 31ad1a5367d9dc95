"""jato.random against jax.random: the same bits, and so the same samples, for the same key."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import jato
import sampling_cases

RESULTS = dict(np.load(sampling_cases.RESULTS))


def _agree(ours: Any, theirs: np.ndarray) -> None:
    half = np.asarray(ours).dtype.itemsize == 2
    ours = sampling_cases.as_numpy(ours)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    if ours.dtype.kind in "iub":
        np.testing.assert_array_equal(ours, theirs)
        return
    # the peer's erf_inv is off by 3e-6 in the tails
    tolerance = 1e-2 if half else 5e-6
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance / 4)


@pytest.mark.parametrize(
    "i", range(len(sampling_cases.CASES)), ids=[n for n, _, _ in sampling_cases.CASES]
)
def test_samples(i: int) -> None:
    _agree(sampling_cases.samples(jato, i), RESULTS[sampling_cases.label(i)])


def test_loops_under_vmap() -> None:
    for i, ours in enumerate(sampling_cases.vectorized(jato)):
        _agree(ours, RESULTS[f"vectorized{i}"])


@pytest.mark.parametrize("seed", [0, -1, 42, 2**31, 2**32 - 1, 2**32, 2**40 + 5, -(2**40)])
def test_seeds(seed: int) -> None:
    np.testing.assert_array_equal(jato.random.PRNGKey(seed), jax.random.PRNGKey(seed))
    with jato.enable_x64(True), jax.enable_x64(True):
        np.testing.assert_array_equal(jato.random.PRNGKey(seed), jax.random.PRNGKey(seed))


@pytest.mark.parametrize("seed", [np.int64(2**40 + 7), np.uint32(2**32 - 1), np.uint8(3), True])
def test_seeds_of_other_types(seed: Any) -> None:
    np.testing.assert_array_equal(jato.random.PRNGKey(seed), jax.random.PRNGKey(seed))


def test_traced_seed_and_fold_in() -> None:
    def f(module: Any) -> Any:
        def g(seed: Any) -> Any:
            key = module.random.PRNGKey(seed)
            return module.random.fold_in(key, seed + 1)

        return module.jit(g)(np.int32(-7))

    np.testing.assert_array_equal(f(jato), f(jax))


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64", "complex128"])
def test_64_bits(dtype: str) -> None:
    call = {
        "float64": lambda r, k: r.normal(k, (9,)),
        "int64": lambda r, k: r.randint(k, (9,), -(2**40), 2**40),
        "uint64": lambda r, k: r.bits(k, (9,)),
        "complex128": lambda r, k: r.normal(k, (9,), "complex128"),
    }[dtype]
    with jato.enable_x64(True), jax.enable_x64(True):
        ours = np.asarray(call(jato.random, jato.random.key(5)))
        theirs = np.asarray(call(jax.random, jax.random.key(5)))
    assert ours.dtype == theirs.dtype == dtype
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_under_vmap_and_jit() -> None:
    def f(module: Any) -> Any:
        def g(key: Any) -> Any:
            a, b = module.random.split(key)
            return module.random.normal(a, (3,)) + module.random.uniform(b, (3,))

        keys = module.random.split(module.random.key(1), 4)
        return module.jit(module.vmap(g))(keys)

    np.testing.assert_allclose(f(jato), f(jax), rtol=2e-6, atol=1e-6)
