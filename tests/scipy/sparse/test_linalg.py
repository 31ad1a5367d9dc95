"""Krylov methods of jato.scipy.sparse.linalg against solves with factors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato.scipy.sparse import linalg

RNG = np.random.default_rng(0)
N = 12
GENERAL = RNG.normal(size=(N, N)) + 6 * np.eye(N)
POSITIVE = GENERAL @ GENERAL.T / N + np.eye(N)
COMPLEX = GENERAL + 1j * RNG.normal(size=(N, N))
RIGHT = RNG.normal(size=N)
METHODS = {
    "cg": (linalg.cg, {}), "bicgstab": (linalg.bicgstab, {}), "gmres": (linalg.gmres, {}),
    "restarted": (linalg.gmres, {"restart": 7, "solve_method": "incremental"}),
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_solutions(name: str) -> None:
    method, options = METHODS[name]
    options = {**options, "tol": 1e-12}
    with jato.enable_x64(True):
        for a in (
            (POSITIVE, POSITIVE + 0.3 * (COMPLEX.imag - COMPLEX.imag.T) * 1j)
            if name == "cg"
            else (GENERAL, POSITIVE, COMPLEX)
        ):
            expected = np.linalg.solve(a, RIGHT)
            close = lambda x: np.testing.assert_allclose(x, expected, rtol=1e-8, atol=1e-8)
            b = RIGHT.astype(a.dtype)
            x, info = method(a, b, **options)
            assert info is None
            close(x)
            close(method(lambda v: a @ v, b, **options)[0])
            close(method(a, b, b, **options)[0])
            close(method(a, b, M=np.diag(1 / np.diag(a)), **options)[0])
            close(method(a, b, M=lambda v: v / np.diag(a), **options)[0])
            close(jato.jit(lambda a, b: method(a, b, **options)[0])(a, b))
        np.testing.assert_array_equal(method(POSITIVE, 0 * RIGHT)[0], 0 * RIGHT)
        np.testing.assert_allclose(method(np.eye(N), RIGHT)[0], RIGHT)
    found = method(np.float32(POSITIVE), np.float32(RIGHT), **{**options, "tol": 1e-6})[0]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.linalg.solve(POSITIVE, RIGHT), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_derivatives(name: str) -> None:
    method, options = METHODS[name]
    a = POSITIVE if name == "cg" else GENERAL
    step, move = RNG.normal(size=(N, N)), RNG.normal(size=N)
    step = step + step.T if name == "cg" else step
    with jato.enable_x64(True):
        f = lambda a, b: jnp.sum(method(a, b, tol=1e-13, **options)[0] ** 3)
        g = lambda t: f(a + t * step, RIGHT + t * move)
        difference = (g(1e-5) - g(-1e-5)) / 2e-5
        np.testing.assert_allclose(jato.jvp(g, (0.0,), (1.0,))[1], difference, rtol=1e-6)
        in_a, in_b = jato.grad(f, (0, 1))(a, RIGHT)
        np.testing.assert_allclose(np.sum(in_a * step) + in_b @ move, difference, rtol=1e-6)
        several = np.stack([RIGHT, 2 * RIGHT])
        rows = jato.vmap(lambda b: method(a, b, tol=1e-12, **options)[0])(several)
        np.testing.assert_allclose(rows, np.linalg.solve(a, several.T).T, rtol=1e-7)


@pytest.mark.parametrize("name", METHODS)
def test_pytrees(name: str) -> None:
    method, options = METHODS[name]
    b = {"x": np.float32(RIGHT[:4]).reshape(2, 2), "y": (np.float32(3.0),)}
    scale = lambda tree: {"x": 2 * tree["x"], "y": (4 * tree["y"][0],)}
    found = method(scale, b, **options)[0]
    np.testing.assert_allclose(found["x"], b["x"] / 2, rtol=1e-5)
    np.testing.assert_allclose(found["y"][0], 0.75, rtol=1e-5)


def test_few_steps() -> None:
    first = linalg.cg(np.float32(POSITIVE), np.float32(RIGHT), maxiter=1)[0]
    r = np.float32(RIGHT)
    np.testing.assert_allclose(first, r * (r @ r) / (r @ POSITIVE @ r), rtol=1e-4)
    np.testing.assert_array_equal(linalg.gmres(np.float32(POSITIVE), r, maxiter=0)[0], 0 * r)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: linalg.cg(np.ones((2, 3)), np.ones(2)),
            "cg: argument 'A' must be a function or a square",
        ),
        (lambda: linalg.cg(np.eye(3), np.ones(2)), "cg: argument 'b' must be one array of 3 rows"),
        (
            lambda: linalg.bicgstab(lambda v: v[:1], np.ones(2)),
            "bicgstab: the result of A must have",
        ),
        (lambda: linalg.gmres(np.eye(2), np.ones(2), np.ones(3)), "gmres: argument 'x0' must have"),
        (
            lambda: linalg.gmres(np.eye(2), np.ones(2), solve_method="best"),
            "argument 'solve_method'",
        ),
        (lambda: linalg.gmres(np.eye(2), np.ones(2), restart=0), "argument 'restart'"),
        (lambda: linalg.cg(np.eye(2), np.ones(2), maxiter=-1), "cg: argument 'maxiter'"),
        (lambda: linalg.cg(np.eye(2), ()), "cg: argument 'b' has no arrays"),
    ],
)
def test_errors(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
