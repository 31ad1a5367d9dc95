"""Decompositions and functions of matrices of jato.scipy.linalg against SciPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import jato
import jato.numpy as jnp
import jato.scipy.linalg as S

RNG = np.random.default_rng(2)
SQUARE = RNG.normal(size=(5, 5))
COMPLEX = SQUARE + 1j * RNG.normal(size=(5, 5))
POSITIVE = SQUARE @ SQUARE.T + np.eye(5)


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    with jato.enable_x64(True):
        yield


def close(found: Any, expected: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "a", [SQUARE, COMPLEX, np.stack([SQUARE, POSITIVE]), SQUARE[:1, :1], SQUARE[:2, :2]]
)
def test_hessenberg(a: Any) -> None:
    h, q = map(np.asarray, S.hessenberg(a, calc_q=True))
    close(q @ h @ q.conj().swapaxes(-1, -2), a)
    close(q @ q.conj().swapaxes(-1, -2), np.broadcast_to(np.eye(a.shape[-1]), a.shape))
    np.testing.assert_array_equal(np.tril(h, -2), 0 * a)
    np.testing.assert_array_equal(S.hessenberg(a), h)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("a", [SQUARE, COMPLEX, SQUARE[:3], SQUARE[:, :3]])
def test_polar(a: Any, side: str) -> None:
    for found, expected in zip(S.polar(a, side), scipy.linalg.polar(a, side), strict=True):
        close(found, expected)
    assert S.polar(np.stack([a, a]), side, method="svd")[0].shape == (2, *a.shape)
    with pytest.raises(ValueError, match="polar: argument 'side'"):
        S.polar(a, "middle")
    with pytest.raises(ValueError, match="polar: argument 'method'"):
        S.polar(a, method="newton")


@pytest.mark.parametrize("mode", ["left", "right"])
@pytest.mark.parametrize("shape", [(5, 5), (5, 3), (3, 5)])
@pytest.mark.parametrize("options", [{}, {"pivoting": True}, {"conjugate": True}])
def test_qr_multiply(shape: tuple[int, int], mode: str, options: dict[str, bool]) -> None:
    a = COMPLEX[: shape[0], : shape[1]]
    k = min(shape)
    c = RNG.normal(size=(k, 2) if mode == "left" else (2, shape[0]))
    for vector in (False, True):
        right = (c[:, 0] if mode == "left" else c[0]) if vector else c
        found, expected = (
            S.qr_multiply(a, right, mode, **options),
            scipy.linalg.qr_multiply(a, right, mode, **options),
        )
        assert len(found) == len(expected)
        for x, y in zip(found, expected, strict=True):
            close(x, y)
    with pytest.raises(ValueError, match="qr_multiply: argument 'c' must have"):
        S.qr_multiply(a, np.ones((7, 7)), mode)
    with pytest.raises(ValueError, match="qr_multiply: argument 'mode'"):
        S.qr_multiply(a, c, "both")


def test_rsf2csf() -> None:
    t, z = map(np.asarray, S.rsf2csf(*S.schur(SQUARE)))
    close(z @ t @ z.conj().T, SQUARE)
    close(np.tril(t, -1), np.zeros_like(t))
    with pytest.raises(ValueError, match="rsf2csf: arguments 'T' and 'Z'"):
        S.rsf2csf(np.eye(2), np.eye(3))


def test_eigh_tridiagonal() -> None:
    d, e = RNG.normal(size=6), RNG.normal(size=5)
    values, vectors = scipy.linalg.eigh_tridiagonal(d, e)
    close(S.eigh_tridiagonal(d, e, eigvals_only=True), values)
    found, basis = map(np.asarray, S.eigh_tridiagonal(d, e))
    close(found, values)
    close(np.abs(basis), np.abs(vectors))
    some = S.eigh_tridiagonal(d, e, eigvals_only=True, select="i", select_range=(1, 3))
    close(some, values[1:4])
    with pytest.raises(ValueError, match="arguments 'd' and 'e' must be vectors"):
        S.eigh_tridiagonal(d, d)
    with pytest.raises(ValueError, match="argument 'select_range'"):
        S.eigh_tridiagonal(d, e, select="i", select_range=(3, 9))
    with pytest.raises(NotImplementedError, match="select='v'"):
        S.eigh_tridiagonal(d, e, select="v")
    with pytest.raises(ValueError, match="argument 'select'"):
        S.eigh_tridiagonal(d, e, select="x")
    with pytest.raises(TypeError, match="argument 'd' must be real"):
        S.eigh_tridiagonal(1j * d, e)


def test_expm_frechet() -> None:
    direction = RNG.normal(size=(5, 5))
    for found, expected in zip(
        S.expm_frechet(SQUARE, direction), scipy.linalg.expm_frechet(SQUARE, direction), strict=True
    ):
        close(found, expected)
    alone = S.expm_frechet(SQUARE, direction, compute_expm=False)
    close(alone, scipy.linalg.expm_frechet(SQUARE, direction)[1])
    with pytest.raises(ValueError, match="expm_frechet: arguments 'A' and 'E'"):
        S.expm_frechet(SQUARE, np.eye(2))


@pytest.mark.parametrize("method", ["schur", "eigen"])
@pytest.mark.parametrize("kind", [np.real, np.asarray])
def test_solve_sylvester(method: str, kind: Any) -> None:
    a, b = kind(COMPLEX), kind(COMPLEX[:3, :3]) + 3 * np.eye(3)
    c = kind(COMPLEX[:, :3])
    found = S.solve_sylvester(a, b, c, method=method)
    close(found, scipy.linalg.solve_sylvester(a, b, c))
    many = S.solve_sylvester(np.stack([a, 2 * a]), b, c, method=method)
    close(many[0], found)
    if method == "schur":
        f = lambda a, b: jnp.sum(jnp.abs(S.solve_sylvester(a, b, c)))
        for i, x in enumerate((a, b)):
            step = RNG.normal(size=x.shape)
            move = lambda h: f(a + h * step, b) if i == 0 else f(a, b + h * step)
            slope = jato.jvp(move, (0.0,), (1.0,))[1]
            close(slope, (move(1e-6) - move(-1e-6)) / 2e-6, 1e-6)
            back = np.sum(np.real(jato.grad(f, i)(a, b)) * step)
            close(back, slope, 1e-8)
    assert np.isnan(S.solve_sylvester(POSITIVE, -POSITIVE, POSITIVE, method=method)).all()
    with pytest.raises(ValueError, match="argument 'method' must be"):
        S.solve_sylvester(a, b, c, method="lu")
    with pytest.raises(ValueError, match=r"argument 'C' must have shape \(..., 5, 3\)"):
        S.solve_sylvester(a, b, c.T)


@pytest.mark.parametrize("a", [POSITIVE, SQUARE, COMPLEX, np.zeros((2, 2)), POSITIVE[:1, :1]])
def test_sqrtm(a: Any) -> None:
    root = S.sqrtm(a)
    assert root.dtype == np.complex128
    close(root @ root, a)
    if np.linalg.det(a) != 0:
        close(root, scipy.linalg.sqrtm(a))
    close(jato.jit(S.sqrtm)(a), root)
    with pytest.raises(NotImplementedError, match="argument 'blocksize'"):
        S.sqrtm(a, 2)
    with pytest.raises(ValueError, match="argument 'A' must be one square matrix"):
        S.sqrtm(np.stack([a, a]))


def test_derivative_of_sqrtm() -> None:
    f = lambda a: jnp.sum(S.sqrtm(a).real ** 3)
    step = RNG.normal(size=(5, 5))
    expected = (f(POSITIVE + 1e-6 * step) - f(POSITIVE - 1e-6 * step)) / 2e-6
    close(np.sum(jato.grad(f)(POSITIVE) * step), expected, 1e-6)


@pytest.mark.parametrize("a", [SQUARE, COMPLEX, np.eye(3)])
def test_funm(a: Any) -> None:
    close(S.funm(a, jnp.exp), scipy.linalg.expm(a), 1e-8)
    value, error = S.funm(a, jnp.sin, disp=False)
    close(value, scipy.linalg.sinm(a), 1e-8)
    assert 0 <= float(error) < 1e-12


@pytest.mark.parametrize("type", [1, 2, 3])
@pytest.mark.parametrize("a", [SQUARE, COMPLEX])
@pytest.mark.parametrize("lower", [True, False])
def test_generalized_eigenvalues(a: Any, type: int, lower: bool) -> None:
    values, vectors = S.eigh(a, POSITIVE, lower=lower, type=type)
    expected, _ = scipy.linalg.eigh(a, POSITIVE, lower=lower, type=type)
    close(values, expected)
    half = np.tril(a) if lower else np.triu(a)
    full = half + half.conj().T - np.diag(np.diag(half).real)
    full = full - 1j * np.diag(np.diag(full).imag) if np.iscomplexobj(a) else full
    v = np.asarray(vectors)
    left, right = {1: (full, POSITIVE), 2: (full @ POSITIVE, np.eye(5)),
                   3: (POSITIVE @ full, np.eye(5))}[type]  # fmt: skip
    close(left @ v, right @ v * values)
    metric = np.linalg.inv(POSITIVE) if type == 3 else POSITIVE
    close(v.conj().T @ metric @ v, np.eye(5))
    some = S.eigh(np.stack([a, a]), POSITIVE, lower=lower, type=type, eigvals=(1, 3))
    close(some[0][1], expected[1:4])
    assert some[1].shape == (2, 5, 3)


def test_errors_of_eigh() -> None:
    with pytest.raises(ValueError, match="eigh: argument 'type' must be 1, 2 or 3"):
        S.eigh(SQUARE, POSITIVE, type=4)
    with pytest.raises(ValueError, match="eigh: arguments 'a' and 'b' must be of one size"):
        S.eigh(SQUARE, POSITIVE[:2, :2])
    with pytest.raises(ValueError, match="eigh: argument 'eigvals' must be"):
        S.eigh(SQUARE, eigvals=(0, 5))
