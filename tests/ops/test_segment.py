"""Reductions over segments against loops of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import jato
from jato import ops
from jato.base.errors import ConcretizationTypeError

RNG = np.random.default_rng(0)
DATA = RNG.standard_normal((20, 3)).astype(np.float32)
IDS = RNG.integers(-1, 7, 20).astype(np.int32)
CASES = {
    "segment_sum": (np.add, 0), "segment_prod": (np.multiply, 1),
    "segment_max": (np.maximum, -np.inf), "segment_min": (np.minimum, np.inf),
}  # fmt: skip


def _expected(name: str, data: np.ndarray, ids: np.ndarray, count: int) -> np.ndarray:
    combine, identity = CASES[name]
    out = np.full((count, *data.shape[ids.ndim :]), identity, data.dtype)
    for i in np.ndindex(ids.shape):
        if 0 <= ids[i] < count:
            out[ids[i]] = combine(out[ids[i]], data[i])
    return out


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("bucket_size", [None, 6])
def test_values(name: str, bucket_size: int | None) -> None:
    function = getattr(ops, name)
    for count in (5, 9):
        expected = _expected(name, DATA, IDS, count)
        found = function(DATA, IDS, count, bucket_size=bucket_size)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(
        function(DATA, IDS), _expected(name, DATA, IDS, IDS.max() + 1), rtol=1e-5
    )


def test_axes_and_dtypes() -> None:
    ids = IDS[:18].reshape(3, 6)
    data = RNG.integers(-9, 9, (3, 6, 2)).astype(np.int32)
    np.testing.assert_array_equal(
        ops.segment_sum(data, ids, 7), _expected("segment_sum", data, ids, 7)
    )
    assert int(ops.segment_max(data, ids, 99)[98, 0]) == np.iinfo(np.int32).min
    assert ops.segment_sum(data[:0], ids[:0], 4).shape == (4, 2)


def test_gradient_drops_what_was_dropped() -> None:
    found = jato.grad(lambda x: ops.segment_sum(x, np.int32([0, -1, 1]), 1).sum())(
        np.float32([1, 2, 3])
    )
    np.testing.assert_array_equal(found, [1, 0, 0])


def test_errors() -> None:
    with pytest.raises(TypeError, match="must be integers"):
        ops.segment_sum(DATA, DATA[:, 0], 3)
    with pytest.raises(ValueError, match="leading axes"):
        ops.segment_sum(DATA, IDS[:7], 3)
    with pytest.raises(ConcretizationTypeError, match="Pass num_segments"):
        jato.jit(ops.segment_sum)(DATA, IDS)
    assert jato.jit(ops.segment_sum, static_argnums=2)(DATA, IDS, 7).shape == (7, 3)
