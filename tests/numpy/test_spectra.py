"""Orthogonal factorizations and spectra against NumPy and SciPy: sizes, dtypes, batches, NaN, what is not computed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import jato
import jato.numpy as J
from jato import lax
from jato.ops.spectral import geqrf

DTYPES = ("float32", "float64", "complex64", "complex128")
SHAPES = ((1, 1), (3, 3), (7, 4), (4, 7), (33, 33), (70, 40), (40, 130), (2, 5, 3), (3, 16, 16), (0, 4, 4))
EMPTY = ((0, 0), (0, 3), (3, 0), (2, 3, 0), (2, 0, 3))


pytestmark = pytest.mark.usefixtures("x64")


def matrices(shape, dtype):
    rng = np.random.default_rng(sum(shape))
    a = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        a = a + 1j * rng.standard_normal(shape)
    return a.astype(dtype)


def adjoint(a):
    return np.conj(np.swapaxes(a, -1, -2))


def near(found, wanted, dtype, message=""):
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape, message
    assert found.dtype == wanted.dtype, message
    tolerance = 3e-5 if dtype in ("float32", "complex64") else 1e-12
    scale = max(1.0, float(np.abs(wanted).max(initial=0)))
    np.testing.assert_allclose(found / scale, wanted / scale, rtol=0, atol=tolerance, err_msg=message)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES + EMPTY)
def test_qr_has_the_signs_of_numpy(shape, dtype):
    a = matrices(shape, dtype)
    for mode in ("reduced", "complete"):
        q, r = J.linalg.qr(a, mode)
        wanted = np.linalg.qr(a, mode)
        near(q, wanted[0], dtype, mode)
        near(r, wanted[1], dtype, mode)
        assert not np.tril(np.asarray(r), -1).any()
    near(J.linalg.qr(a, "r"), np.linalg.qr(a, "r"), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [s for s in SHAPES + EMPTY if s[-2] >= s[-1]])
def test_reflectors_multiply_to_q(shape, dtype):
    a = matrices(shape, dtype)
    factors, taus = geqrf(a)
    assert taus.shape == (*shape[:-2], min(shape[-2:]))
    q = lax.linalg.householder_product(factors, taus)
    near(q, np.linalg.qr(a)[0], dtype)
    near(J.triu(factors)[..., : shape[-1], :], np.linalg.qr(a)[1], dtype)
    if 0 not in shape:
        part = lax.linalg.householder_product(factors, taus[..., :1])
        assert part.shape == shape


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_svd(shape, dtype):
    a = matrices(shape, dtype)
    wanted = np.linalg.svd(a, compute_uv=False)
    near(J.linalg.svd(a, compute_uv=False), wanted, dtype)
    k = min(shape[-2:])
    for full in (False, True):
        u, s, vh = map(np.asarray, J.linalg.svd(a, full_matrices=full))
        near(s, wanted, dtype)
        near((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, dtype)
        for x in (adjoint(u) @ u, vh @ adjoint(vh)):
            near(x, np.broadcast_to(np.eye(x.shape[-1], dtype=dtype), x.shape), dtype)
        expected = np.linalg.svd(a, full_matrices=full)
        assert u.shape == expected[0].shape
        assert vh.shape == expected[2].shape


@pytest.mark.parametrize("shape", EMPTY)
def test_svd_of_nothing(shape):
    a = np.zeros(shape, np.float32)
    for full in (False, True):
        for found, wanted in zip(J.linalg.svd(a, full), np.linalg.svd(a, full), strict=True):
            near(found, wanted, "float32")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*(s for s in SHAPES if s[-1] == s[-2]), (0, 0), (5, 2, 2)])
def test_spectra_of_square_matrices(shape, dtype):
    a = matrices(shape, dtype)
    h = a + adjoint(a)
    values, vectors = map(np.asarray, J.linalg.eigh(h))
    near(values, np.linalg.eigvalsh(h), dtype)
    near(J.linalg.eigvalsh(h), np.linalg.eigvalsh(h), dtype)
    near((vectors * values[..., None, :]) @ adjoint(vectors), h, dtype)

    values, vectors = map(np.asarray, J.linalg.eig(a))
    scale = np.maximum(np.abs(a).max(initial=0), 1) * shape[-1]
    residual = a @ vectors - vectors * values[..., None, :]
    small = 1e-5 if dtype in ("float32", "complex64") else 1e-13
    assert np.abs(residual).max(initial=0) <= small * scale
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), 1, rtol=1e-5)
    assert values.dtype == np.result_type(dtype, np.complex64)
    found = np.sort_complex(np.round(np.asarray(J.linalg.eigvals(a)) / scale, 4))
    np.testing.assert_allclose(found, np.sort_complex(np.round(values / scale, 4)), atol=2e-4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_left_and_right_eigenvectors_are_those_of_scipy(dtype):
    a = matrices((9, 9), dtype)
    wanted = scipy.linalg.eig(a, left=True, right=True)
    w, left, right = lax.linalg.eig(a)
    for found, expected in zip((w, left, right), wanted, strict=True):
        near(found, expected.astype(np.asarray(w).dtype), dtype)
    for index, kept in enumerate((left, right)):
        sides = {"compute_left_eigenvectors": index == 0, "compute_right_eigenvectors": index == 1}
        near(lax.linalg.eig(a, **sides)[1], kept, dtype)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_not_finite_is_nan_for_that_matrix_alone(dtype, bad):
    good = matrices((5, 5), dtype)
    good = good + adjoint(good)
    a = np.stack([good, good, good])
    a[1, 3, 1] = a[1, 1, 3] = bad
    found = {
        "svd": J.linalg.svd(a),
        "values": (J.linalg.svd(a, compute_uv=False),),
        "eigh": lax.linalg.eigh(a, symmetrize_input=False),
        "eigvalsh": (J.linalg.eigvalsh(a, symmetrize_input=False),),
        "eig": J.linalg.eig(a),
    }
    for name, results in found.items():
        for x in map(np.asarray, results):
            assert np.isnan(x[1]).all(), name
            assert np.isfinite(x[[0, 2]]).all(), name


def test_eigh_reads_one_triangle():
    a = matrices((6, 6), "complex128")
    h = a + adjoint(a)
    spoilt = np.tril(h) + np.triu(np.full((6, 6), np.nan), 1)
    spoilt.imag[range(6), range(6)] = np.inf
    found = J.linalg.eigvalsh(spoilt, symmetrize_input=False)
    near(found, np.linalg.eigvalsh(h), "complex128")
    np.testing.assert_array_equal(
        np.asarray(J.linalg.eigvalsh(np.conj(spoilt.T), "U", symmetrize_input=False)), np.asarray(found)
    )


def test_qr_of_nan_keeps_what_it_can():
    a = matrices((4, 3), "float64")
    a[:, 2] = np.nan
    q, r = map(np.asarray, J.linalg.qr(a))
    assert np.isnan(r[:, 2]).any()
    near(r[:2, :2], np.linalg.qr(a[:, :2])[1], "float64")


def test_results_that_nobody_uses_are_not_computed():
    a = matrices((6, 6), "float64")
    h = a + a.T
    cases = {
        "eigvalsh": (lambda x: J.linalg.eigh(x)[0], h),
        "qr_r": (lambda x: J.linalg.qr(x)[1], a),
        "singular_values": (lambda x: J.linalg.svd(x)[1], a),
        "eigenvalues": (lambda x: J.linalg.eig(x)[0], a),
        "eig_left": (lambda x: lax.linalg.eig(x)[1], a),
    }
    for name, (function, operand) in cases.items():
        text = jato.jit(function).lower(operand).compile().as_text()
        assert f"library {name}" in text or name in text, text


def test_derivatives_of_results_that_nobody_uses():
    a = matrices((5, 4), "float64")
    h = matrices((5, 5), "float64")
    cases = (
        (lambda x: J.linalg.eigh(x + x.T)[0] @ J.arange(5.0), h),
        (lambda x: J.abs(J.linalg.qr(x)[1]).sum(), a),
        (lambda x: J.linalg.svd(x, full_matrices=False)[1] @ J.arange(4.0), a),
    )
    for f, x in cases:
        found = np.asarray(jato.jit(jato.grad(f))(x))
        step = 1e-6
        for i, j in ((0, 0), (3, 2), (4, 1)):
            e = np.zeros_like(x)
            e[i, j] = step
            slope = (float(f(x + e)) - float(f(x - e))) / (2 * step)
            np.testing.assert_allclose(found[i, j], slope, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_determinants(n, dtype):
    a = matrices((17, n, n), dtype)
    near(J.linalg.det(a), np.linalg.det(a), dtype)
    near(J.linalg.det(a[0]), np.linalg.det(a[0]), dtype)
    if n == 0:
        return
    a[3] = 1
    a[5, 0, 0] = np.nan
    found = np.asarray(J.linalg.det(a))
    assert abs(found[3] - (1 if n == 1 else 0)) < 1e-6
    assert np.isnan(found[5])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_derivatives_of_determinants_of_singular_matrices(n):
    a = np.ones((n, n)) * 0.1
    a[0] = 0
    found = np.asarray(jato.grad(lambda x: J.linalg.det(x))(a))
    wanted = np.empty_like(a)
    for i in range(n):
        for j in range(n):
            rest = np.delete(np.delete(a, i, 0), j, 1)
            wanted[i, j] = (-1) ** (i + j) * np.linalg.det(rest)
    np.testing.assert_allclose(found, wanted, atol=1e-15)
    second = np.asarray(jato.hessian(lambda x: J.linalg.det(x))(a))
    assert np.isfinite(second).all()


@pytest.mark.parametrize("size", [1e-320, 1e-300, 1e-160, 1e160, 1e300])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_qr_of_tiny_and_huge_numbers(size, dtype):
    plain = matrices((6, 4), dtype)
    a = plain * size
    q, r = map(np.asarray, J.linalg.qr(a))
    eps = 1e-13 if size > 1e-310 else 1e-2  # subnormal numbers have few bits
    np.testing.assert_allclose(adjoint(q) @ q, np.eye(4), atol=max(eps, 1e-13))
    back = 1e300 if size < 1 else 1e-300
    near_to = eps * np.abs(a * back).max()
    np.testing.assert_allclose(q @ (r * back), a * back, atol=near_to)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(31, 32), (32, 32), (33, 32), (40, 5), (5, 40)])
def test_qr_around_the_switch_to_lapack(shape, dtype):
    a = matrices((2, *shape), dtype)
    a[1, :, 2] = 0
    a[1, :, 3] = a[1, :, 1]
    q, r = map(np.asarray, J.linalg.qr(a))
    near(q @ r, a, dtype)
    k = min(shape)
    near(adjoint(q) @ q, np.broadcast_to(np.eye(k, dtype=dtype), (2, k, k)), dtype)
    near(q[0], np.linalg.qr(a[0])[0], dtype)
    near(J.linalg.qr(np.zeros(shape, dtype))[1], np.zeros((k, shape[1]), dtype), dtype)
