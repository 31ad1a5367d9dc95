"""mode, rankdata and sem against SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

import jato
import jato.numpy as jnp
from jato.scipy import stats

RNG = np.random.default_rng(0)
COUNTS = RNG.integers(-3, 4, (5, 7, 3))


@pytest.mark.parametrize("axis", [0, 1, -1, None])
@pytest.mark.parametrize("keepdims", [False, True])
def test_mode(axis: int | None, keepdims: bool) -> None:
    for data in (COUNTS, COUNTS.astype(np.float32), COUNTS > 0):
        theirs = scipy.stats.mode(data.astype(int), axis=axis, keepdims=keepdims)
        ours = stats.mode(data, axis, keepdims=keepdims)
        assert ours.mode.dtype == jnp.asarray(data).dtype
        assert ours.count.dtype == np.int32
        np.testing.assert_array_equal(ours.mode, theirs.mode)
        np.testing.assert_array_equal(ours.count, theirs.count)


def test_mode_of_odd_values() -> None:
    assert stats.mode(jnp.asarray(3.0)) == (3, 1)
    mode, count = stats.mode(jnp.array([1.0, jnp.nan, jnp.nan]))
    assert np.isnan(mode)
    assert int(count) == 2
    mode, count = stats.mode(jnp.zeros((0, 2)))
    assert np.isnan(mode).all()
    assert mode.shape == count.shape == (2,)
    rows = jato.vmap(jato.jit(stats.mode))(COUNTS[..., 0])
    np.testing.assert_array_equal(rows.mode, scipy.stats.mode(COUNTS[..., 0], axis=1).mode)


@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
@pytest.mark.parametrize("axis", [0, -1, None])
def test_rankdata(method: str, axis: int | None) -> None:
    for data in (COUNTS, RNG.normal(size=(4, 3)).astype(np.float32)):
        expected = scipy.stats.rankdata(data, method, axis=axis)
        found = stats.rankdata(data, method, axis=axis)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, expected)
    broken = np.float32([[1, np.nan, 2], [3, 1, 1]])
    expected = scipy.stats.rankdata(broken, method, axis=axis)
    np.testing.assert_array_equal(stats.rankdata(broken, method, axis=axis), expected)
    assert stats.rankdata(jnp.zeros((0,)), method).shape == (0,)


@pytest.mark.parametrize("axis", [0, -1, None])
@pytest.mark.parametrize("policy", ["propagate", "omit"])
def test_sem(axis: int | None, policy: str) -> None:
    data = RNG.normal(size=(4, 5)).astype(np.float32)
    data[1, 2] = np.nan
    for ddof in (0, 1):
        expected = scipy.stats.sem(data.astype(float), axis, ddof, policy)
        found = stats.sem(data, axis, ddof, policy)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, np.ma.filled(expected, np.nan), rtol=1e-5)
        kept = stats.sem(data, axis, ddof, policy, keepdims=True)
        assert kept.ndim == 2
    assert stats.sem(jnp.array([1, 2, 4])).dtype == np.float32
    slope = jato.grad(stats.sem)(jnp.array([1.0, 2.0, 4.0]))
    assert np.isfinite(np.asarray(slope)).all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: stats.mode(jnp.ones(2), nan_policy="omit"),
            ValueError,
            "mode: argument 'nan_policy'",
        ),
        (lambda: stats.mode(jnp.ones(2, complex)), TypeError, "mode: argument 'a' must be real"),
        (lambda: stats.mode(jnp.ones(2), 1), np.exceptions.AxisError, "mode: axis 1"),
        (lambda: stats.rankdata(jnp.ones(2), "least"), ValueError, "rankdata: argument 'method'"),
        (lambda: stats.rankdata(jnp.ones(2), nan_policy="omit"), ValueError, "'nan_policy'"),
        (lambda: stats.sem(jnp.ones(2), nan_policy="raise"), ValueError, "'propagate' or 'omit'"),
    ],
)
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
