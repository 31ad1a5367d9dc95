"""Running sums, products and extrema against JAX, and their rules against each other."""

import jax
import numpy as np
import pytest
from jax import lax
from reference_rules import (
    check_batch,
    check_jvp,
    check_transpose,
    hold,
    numpy_evaluation,
    value,
    x64,
)

from jato.ops import cumulative

RNG = np.random.default_rng(0)
NAMES = ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"]
SHAPES = [((5,), 0), ((1,), 0), ((0,), 0), ((3, 4), 0), ((3, 4), -1), ((2, 9, 3), 1), ((3, 0), 0)]


def primitive(name):
    return getattr(cumulative, name.upper())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.float16, np.complex64])
def test_values(name, shape, axis, reverse, dtype):
    if name == "cumlogsumexp" and dtype in (np.int32, np.complex64):
        pytest.skip("not defined")
    x = (2 * RNG.standard_normal(shape)).astype(dtype)
    want = np.asarray(getattr(lax, name)(x, axis % x.ndim, reverse))
    with numpy_evaluation():
        got = value(getattr(cumulative, name)(x, axis, reverse))
    assert got.dtype == want.dtype
    tolerance = 1e-2 if dtype == np.float16 else 1e-5
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("reverse", [False, True])
def test_rules(name, shape, axis, reverse):
    x = RNG.standard_normal(shape)
    params = {"axis": axis % len(shape), "reverse": reverse}
    check_jvp(primitive(name), [x], params, tolerance=1e-5)
    check_batch(primitive(name), [x], params)
    if name == "cumsum":
        check_transpose(primitive(name), [x], params, [0])


def tangent(name, x, t):
    with numpy_evaluation(), x64():
        return value(primitive(name).jvp([hold(x)], [hold(t)], axis=0, reverse=False)[1])


def test_product_of_zeros():
    x, t = np.array([2.0, 0.0, 3.0, 0.0, 4.0]), np.arange(1.0, 6.0)
    with jax.enable_x64(True):
        want = jax.jvp(lax.cumprod, (x,), (t,))[1]
    np.testing.assert_allclose(tangent("cumprod", x, t), want)


def test_ties_are_averaged():
    np.testing.assert_allclose(
        tangent("cummax", np.array([2.0, 2.0]), np.array([1.0, 5.0])), [1, 3]
    )


def test_infinities_and_nan():
    x = np.array([-np.inf, -np.inf, 1.0, np.inf, 2.0, np.nan, 1.0])
    with numpy_evaluation(), x64():
        got = value(cumulative.cumlogsumexp(x))
        np.testing.assert_array_equal(got, [-np.inf, -np.inf, 1, np.inf, np.inf, np.nan, np.nan])
        np.testing.assert_array_equal(value(cumulative.cummin(x)), [*[-np.inf] * 5, np.nan, np.nan])
        assert np.isfinite(tangent("cumlogsumexp", x[:3], np.ones(3))[2])


def test_errors():
    with numpy_evaluation():
        with pytest.raises(ValueError, match="cumsum: expected axis.*got 2"):
            cumulative.cumsum(np.zeros((2, 3), np.float32), 2)
        with pytest.raises(TypeError, match="cumlogsumexp.*complex"):
            cumulative.cumlogsumexp(np.zeros(3, np.complex64))
