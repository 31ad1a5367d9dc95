"""polyfit against numpy.polyfit; matrix_rank of Hermitian matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jato
import jato.numpy as jnp

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def wide_numbers() -> Any:
    with jato.enable_x64(True):
        yield


@pytest.mark.parametrize("degree", [0, 1, 3])
@pytest.mark.parametrize("points", [5, 9, 33])
@pytest.mark.parametrize("columns", [None, 1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_against_numpy(degree: int, points: int, columns: int | None, weighted: bool) -> None:
    x = RNG.normal(size=points)
    y = RNG.normal(size=(points,) if columns is None else (points, columns))
    w = RNG.uniform(1, 2, points) if weighted else None
    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)
    expected = np.polyfit(x, y, degree, w=w)
    close(jnp.polyfit(x, y, degree, w=w), expected)
    close(jato.jit(lambda x, y: jnp.polyfit(x, y, degree, w=w))(x, y), expected)
    for mine, theirs in zip(
        jnp.polyfit(x, y, degree, w=w, full=True),
        np.polyfit(x, y, degree, w=w, full=True),
        strict=True,
    ):
        close(mine, theirs)
    for cov in (True, "unscaled"):
        if points > degree + 1:
            found = jnp.polyfit(x, y, degree, w=w, cov=cov)
            wanted = np.polyfit(x, y, degree, w=w, cov=cov)
            close(found[0], wanted[0])
            if columns is None or cov is True:
                close(found[1], wanted[1])


def test_other_dtypes() -> None:
    assert jnp.polyfit(np.arange(4), np.arange(4), 1).dtype == np.float64
    assert (
        jnp.polyfit(np.arange(4, dtype=np.float32), np.ones(4, np.float32), 1).dtype == np.float32
    )
    x = np.arange(4.0)
    np.testing.assert_allclose(jnp.polyfit(x, 1j * x + 2, 1), [1j, 2], atol=1e-12)


def test_derivative() -> None:
    x, y = RNG.normal(size=6), RNG.normal(size=6)
    for f, at in ((lambda y: jnp.polyfit(x, y, 2), y), (lambda x: jnp.polyfit(x, y, 2), x)):
        direction = RNG.normal(size=6)
        _, tangent = jato.jvp(f, (at,), (direction,))
        step = 1e-6
        numeric = (np.asarray(f(at + step * direction)) - np.asarray(f(at - step * direction))) / (
            2 * step
        )
        np.testing.assert_allclose(tangent, numeric, rtol=1e-6, atol=1e-7)
        cotangent = np.array([1.0, 2.0, 3.0])
        gradient = jato.grad(lambda v, f=f: (f(v) * cotangent).sum())(at)
        np.testing.assert_allclose(gradient @ direction, tangent @ cotangent, rtol=1e-8)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda v: jnp.polyfit(v, v, -1), ValueError, "'deg' must not be negative"),
        (lambda v: jnp.polyfit(v, v, 1.5), TypeError, "float"),
        (
            lambda v: jnp.polyfit(v[:0], v[:0], 1),
            TypeError,
            "'x' must be a vector with at least one",
        ),
        (
            lambda v: jnp.polyfit(v, v[:2], 1),
            TypeError,
            "'y' must be a vector or a matrix with as many",
        ),
        (lambda v: jnp.polyfit(v, v, 1, w=v[:2]), TypeError, "'w' must have the shape of x"),
        (
            lambda v: jnp.polyfit(v, v, 2, cov=True),
            ValueError,
            "a scaled covariance needs more than 3",
        ),
    ],
)
def test_messages(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(np.arange(3.0))


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (1, 1), (0, 0)])
def test_rank_of_hermitian_matrices(shape: tuple[int, ...]) -> None:
    half = RNG.normal(size=(*shape[:-1], max(shape[-1] - 1, 0)))
    m = half @ np.swapaxes(half, -1, -2) - 0.5 * (shape[-1] == 1)
    found = jnp.linalg.matrix_rank(m, hermitian=True)
    np.testing.assert_array_equal(found, jnp.linalg.matrix_rank(m))
    if shape[-1]:
        np.testing.assert_array_equal(found, np.linalg.matrix_rank(m, hermitian=True))
