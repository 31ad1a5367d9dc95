"""jato.scipy.ndimage, interpolate and cluster.vq against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.interpolate
import scipy.ndimage

import jato
import jato.numpy as jnp
from jato.scipy.cluster.vq import vq
from jato.scipy.interpolate import RegularGridInterpolator
from jato.scipy.ndimage import map_coordinates

RNG = np.random.default_rng(0)
MODES = {
    "constant": "grid-constant",
    "nearest": "nearest",
    "wrap": "grid-wrap",
    "mirror": "mirror",
    "reflect": "reflect",
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("shape", [(5,), (4, 6), (3, 1, 4)])
def test_map_coordinates(shape: tuple[int, ...], order: int, mode: str) -> None:
    x = RNG.normal(size=shape)
    places = RNG.uniform(-8, 12, (len(shape), 3, 7))
    theirs = MODES[mode]
    with jato.enable_x64(True):
        found = map_coordinates(x, list(places), order, mode, 2.5)
        expected = scipy.ndimage.map_coordinates(x, places, order=order, mode=theirs, cval=2.5)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        np.testing.assert_allclose(map_coordinates(x, places, order, mode, 2.5), found)
        traced = jato.jit(lambda places: map_coordinates(x, places, order, mode, 2.5))(places)
        np.testing.assert_allclose(traced, found)
        whole = RNG.integers(-9, 9, shape)
        found = map_coordinates(whole, list(places), order, mode)
        assert found.dtype == whole.dtype
        expected = scipy.ndimage.map_coordinates(whole, places, order=order, mode=theirs)
        assert (np.asarray(found) == expected).mean() > 0.95  # halves are rounded by the last bit
    assert map_coordinates(np.float32(x), list(np.float32(places)), order, mode).dtype == np.float32


def test_derivative_of_coordinates() -> None:
    x = jnp.asarray(RNG.normal(size=(4, 5)))
    f = lambda a, i, j: map_coordinates(a, [i, j], 1).sum()
    in_i = jato.grad(f, 1)(x, jnp.array([1.25]), jnp.array([2.5]))
    np.testing.assert_allclose(in_i, [np.mean(x[2, 2:4] - x[1, 2:4])], rtol=1e-5)
    weights = jato.grad(f)(x, jnp.array([1.25]), jnp.array([2.5]))
    np.testing.assert_allclose(weights[1:3, 2:4], [[0.375, 0.375], [0.125, 0.125]])


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("fill", [np.nan, 1.5, None])
@pytest.mark.parametrize("trailing", [(), (2,)])
def test_interpolator(method: str, fill: Any, trailing: tuple[int, ...]) -> None:
    grid = tuple(np.sort(RNG.uniform(-1, 1, n)) for n in (4, 6, 3))
    values = RNG.normal(size=(4, 6, 3, *trailing))
    points = RNG.uniform(-1, 1, (5, 7, 3))
    points[0, 0, 1] = np.nan
    points[0, 1] = [g[-1] for g in grid]
    with jato.enable_x64(True):
        ours = RegularGridInterpolator(grid, values, method, fill_value=fill)
        theirs = scipy.interpolate.RegularGridInterpolator(grid, values, method, False, fill)
        expected = theirs(points)
        np.testing.assert_allclose(ours(points), expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(jato.jit(ours)(points), expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(ours(tuple(np.moveaxis(points, -1, 0))), expected, rtol=1e-9)
        other = "nearest" if method == "linear" else "linear"
        np.testing.assert_allclose(
            ours(points, other), theirs(points, other), rtol=1e-9, atol=1e-12
        )


def test_interpolator_in_one_dimension() -> None:
    line = RegularGridInterpolator([np.arange(4)], np.arange(4) ** 2)
    np.testing.assert_allclose(line(np.float32([0.5, 2.5])), [0.5, 6.5])
    np.testing.assert_allclose(jato.grad(lambda x: line(x)[0])(np.float32([2.5])), [5])
    single = RegularGridInterpolator([np.array([1.0])], np.array([7.0]))
    np.testing.assert_array_equal(single(np.float32([[1.0], [2.0]])), [7, np.nan])


def test_vq() -> None:
    points, book = (
        RNG.normal(size=(20, 3)).astype(np.float32),
        RNG.normal(size=(5, 3)).astype(np.float32),
    )
    for args in ((points, book), (points[:, 0], book[:, 0])):
        found, expected = vq(*args), scipy.cluster.vq.vq(*args)
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: map_coordinates(np.ones((2, 2)), [np.ones(1)], 1), ValueError, "for each of 2 axes, got 1"),
        (lambda: map_coordinates(np.ones(2), [np.ones(1)], 3), NotImplementedError, "argument 'order'"),
        (lambda: map_coordinates(np.ones(2), [np.ones(1)], 1, "fold"), NotImplementedError, "'mode'"),
        (lambda: map_coordinates(np.ones(0), [np.ones(1)], 1), ValueError, "'input' is empty"),
        (lambda: RegularGridInterpolator([np.ones(2)], np.ones(2)), ValueError, "must rise strictly"),
        (lambda: RegularGridInterpolator([np.arange(2)], np.ones(3)), ValueError, "vector of 3 coordinates"),
        (lambda: RegularGridInterpolator([np.arange(2)] * 2, np.ones(2)), ValueError, "has 2 axes"),
        (lambda: RegularGridInterpolator([np.arange(2)], np.ones(2), "cubic"), ValueError, "'method'"),
        (
            lambda: RegularGridInterpolator([np.arange(2)], np.ones(2), bounds_error=True),
            NotImplementedError, "'bounds_error'",
        ),
        (
            lambda: RegularGridInterpolator([np.arange(2)] * 2, np.ones((2, 2)))(np.ones(3)),
            ValueError, "argument 'xi' must hold the 2 coordinates",
        ),
        (lambda: vq(np.ones((2, 3)), np.ones((2, 2))), ValueError, "vq: argument 'code_book'"),
        (lambda: vq(np.ones(3), np.ones((2, 2))), ValueError, "vq: arguments 'obs' and 'code_book'"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
