"""The distributions against jax.scipy.stats: values where both agree with the definition, and types."""

from __future__ import annotations

import jax
import jax.scipy.stats
import numpy as np
import pytest
from distribution_cases import DISCRETE, SPECS, arguments

from jato.scipy import stats


CHOSEN = [s for s in SPECS if s[1] in ("logpdf", "logpmf", "cdf", "logcdf", "ppf", "isf")]


@pytest.mark.parametrize(("name", "function"), CHOSEN, ids=[".".join(s) for s in CHOSEN])
def test_values(name: str, function: str) -> None:
    points, *rest = arguments(name, function, np.float32)
    # jax has values of its own at infinity, for counts that are no integers and at the ends of [0, 1]
    kept = np.isfinite(points[:, 0])
    if name in DISCRETE:
        kept &= np.floor(points[:, 0]) == points[:, 0]
    if function in ("ppf", "isf"):
        kept = (points[:, 0] > 0.01) & (points[:, 0] < 1)
    if name == "t":  # its lgamma(df + 1/2) - lgamma(df) loses all digits for large df
        rest[0] = rest[0][rest[0] < 1e3]
    args = [points[kept], *rest]
    expected = np.asarray(getattr(getattr(jax.scipy.stats, name), function)(*args))
    found = getattr(getattr(stats, name), function)(*args)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    # and for parameters that are not valid; where it gives no number, SciPy decides
    found = np.asarray(found)
    both = np.isfinite(found) & np.isfinite(expected)
    assert both.any()
    np.testing.assert_allclose(found[both], expected[both], rtol=1e-3, atol=1e-4)
