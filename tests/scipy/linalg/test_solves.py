"""scipy.linalg and lax.linalg against SciPy and jax."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import scipy.linalg

import jato
import jato.lax.linalg as L
import jato.scipy.linalg as S

RNG = np.random.default_rng(1)
SQUARE = RNG.standard_normal((4, 4)) + 4 * np.eye(4)
COMPLEX = SQUARE + 1j * RNG.standard_normal((4, 4))
POSITIVE = COMPLEX @ COMPLEX.conj().T
RIGHT = RNG.standard_normal((4, 2))


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        jato.config.update("jax_enable_x64", True)
        yield
        jato.config.update("jax_enable_x64", False)


def close(found, expected):
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("lower", [False, True])
def test_solve_with_cholesky_factors(lower):
    close(S.cho_solve(S.cho_factor(POSITIVE, lower), RIGHT), np.linalg.solve(POSITIVE, RIGHT))
    close(S.solve(POSITIVE, RIGHT, lower=lower, assume_a="pos"), np.linalg.solve(POSITIVE, RIGHT))


@pytest.mark.parametrize("trans", [0, 1, 2])
@pytest.mark.parametrize("a", [SQUARE, COMPLEX])
def test_solve_with_lu_factors(a, trans):
    wanted = scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), RIGHT, trans)
    close(S.lu_solve(S.lu_factor(a), RIGHT, trans), wanted)
    close(S.lu_solve(S.lu_factor(a), RIGHT[:, 0], trans), wanted[:, 0])
    for lower in (False, True):
        for unit in (False, True):
            found = S.solve_triangular(a, RIGHT, trans, lower, unit)
            close(found, scipy.linalg.solve_triangular(a, RIGHT, trans, lower, unit))


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (2, 4, 3)])
def test_lu(shape):
    a = RNG.standard_normal(shape)
    p, lower, upper = map(np.asarray, S.lu(a))
    close(p @ lower @ upper, a)
    close(S.lu(a, permute_l=True)[0], p @ lower)
    if len(shape) > 2:  # jax takes one matrix
        return
    agree = jax.jacobian(lambda a: jax.scipy.linalg.lu(a)[1:])(a)
    mine = jato.jacrev(lambda a: S.lu(a)[1:])(a)
    for x, y in zip(mine, agree, strict=True):
        close(x, y)


@pytest.mark.parametrize("scale", [0.0, 0.1, 3.0, 40.0])
def test_expm(scale):
    a = RNG.standard_normal((4, 4)) * scale / 4
    close(S.expm(a), scipy.linalg.expm(a))
    close(jato.vmap(S.expm)(np.stack([a, a / 2])), scipy.linalg.expm(np.stack([a, a / 2])))
    upper = np.triu(a)
    close(S.expm(upper, upper_triangular=True), scipy.linalg.expm(upper))
    direction = RNG.standard_normal((4, 4))
    _, change = jato.jvp(S.expm, (a,), (direction,))
    wanted = scipy.linalg.expm_frechet(a, direction)[1]
    np.testing.assert_allclose(np.asarray(change), wanted, rtol=1e-7, atol=1e-9)


def test_expm_without_enough_squarings_is_nan():
    assert np.isnan(np.asarray(S.expm(np.eye(2) * 1e4, max_squarings=4))).all()


def test_special_matrices():
    close(S.block_diag(SQUARE, RIGHT, 3.0), scipy.linalg.block_diag(SQUARE, RIGHT, 3.0))
    close(S.toeplitz(RIGHT[:, 0]), scipy.linalg.toeplitz(RIGHT[:, 0]))
    close(S.toeplitz(RIGHT[:, 0], RIGHT[:3, 1]), scipy.linalg.toeplitz(RIGHT[:, 0], RIGHT[:3, 1]))
    close(S.hilbert(3), scipy.linalg.hilbert(3))


def test_factorizations():
    for f, g in ((S.det, scipy.linalg.det), (S.inv, scipy.linalg.inv)):
        close(f(COMPLEX), g(COMPLEX))
    t, z = map(np.asarray, S.schur(SQUARE, output="complex"))
    close(z @ t @ z.conj().T, SQUARE)
    q, r, order = map(np.asarray, S.qr(COMPLEX, pivoting=True))
    close(q @ r, COMPLEX[:, order])
    close(S.eigh(POSITIVE, eigvals_only=True), np.linalg.eigvalsh(POSITIVE))
    close(S.svd(COMPLEX, compute_uv=False), np.linalg.svd(COMPLEX, compute_uv=False))
    h, taus = L.hessenberg(SQUARE)
    wanted, other = jax.lax.linalg.hessenberg(SQUARE)
    close(h, wanted)
    close(taus, other)


def test_lax_linalg():
    a, taus = map(np.asarray, jax.numpy.linalg.qr(SQUARE, "raw"))
    q = L.householder_product(np.ascontiguousarray(a.T), taus)
    close(q, jax.lax.linalg.householder_product(a.T, taus))
    r, w = np.triu(SQUARE), RIGHT[:, 0]
    updated = np.asarray(L.cholesky_update(r, w))
    close(updated.T @ updated, r.T @ r + np.outer(w, w))
    full = L.symmetric_product(RIGHT, SQUARE, alpha=2.0, beta=0.5, symmetrize_output=True)
    close(full, jax.lax.linalg.symmetric_product(
        RIGHT, SQUARE, alpha=2.0, beta=0.5, symmetrize_output=True))  # fmt: skip
    d, b = RNG.standard_normal((3, 6)) + [[0], [4], [0]], RNG.standard_normal((6, 2))
    close(
        L.tridiagonal_solve(*d, b), jax.lax.linalg.tridiagonal_solve(*map(jax.numpy.asarray, d), b)
    )
    pivots = np.array([2, 2, 3], np.int32)
    close(L.lu_pivots_to_permutation(pivots, 5), jax.lax.linalg.lu_pivots_to_permutation(pivots, 5))
    v, values = L.eigh(POSITIVE, subset_by_index=(1, 3))
    close(values, np.linalg.eigvalsh(POSITIVE)[1:3])
    assert v.shape == (4, 2)


def test_errors_say_what_is_wrong():
    with pytest.raises(ValueError, match="'trans'"):
        S.solve_triangular(SQUARE, RIGHT, trans=5)
    with pytest.raises(ValueError, match="as many rows"):
        S.cho_solve((SQUARE, True), np.ones(3))
    with pytest.raises(TypeError, match="as many rows as a"):
        L.triangular_solve(SQUARE, np.ones((3, 2)), left_side=True)
    with pytest.raises(NotImplementedError, match="derivative of schur"):
        jato.jvp(lambda a: S.schur(a)[0], (SQUARE,), (SQUARE,))
