"""numpy.linalg and numpy.fft against jax and NumPy: values, gradients, batches, singular input."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jato
import jato.numpy as J

RNG = np.random.default_rng(0)
SQUARE = RNG.standard_normal((4, 4)) + 4 * np.eye(4)
POSITIVE = SQUARE @ SQUARE.T
TALL = RNG.standard_normal((5, 3))
WIDE = TALL.T.copy()
COMPLEX = SQUARE + 1j * RNG.standard_normal((4, 4))
HERMITIAN = COMPLEX @ COMPLEX.conj().T
TALL_COMPLEX = TALL + 1j * RNG.standard_normal((5, 3))
BATCH = RNG.standard_normal((3, 4, 4)) + 3 * np.eye(4)
RIGHT = RNG.standard_normal((4, 3))
GRID = RNG.standard_normal((4, 6))
GRID_COMPLEX = GRID + 1j * RNG.standard_normal((4, 6))

CASES = {
    "solve": (lambda n, a, b: n.linalg.solve(a, b), SQUARE, RIGHT),
    "solve vector": (lambda n, a, b: n.linalg.solve(a, b), SQUARE, RIGHT[:, 0].copy()),
    "solve complex": (lambda n, a, b: n.linalg.solve(a, b), COMPLEX, RIGHT + 1j),
    "solve many": (lambda n, a, b: n.linalg.solve(a, b), SQUARE, RNG.standard_normal((2, 4, 3))),
    "inv": (lambda n, a: n.linalg.inv(a), BATCH),
    "det": (lambda n, a: n.linalg.det(a), BATCH),
    "det complex": (lambda n, a: n.linalg.det(a), COMPLEX),
    "slogdet": (lambda n, a: n.linalg.slogdet(a), SQUARE),
    "slogdet complex": (lambda n, a: n.linalg.slogdet(a), COMPLEX),
    "cholesky": (lambda n, a: n.linalg.cholesky(a), POSITIVE),
    "cholesky upper": (lambda n, a: n.linalg.cholesky(a, upper=True), HERMITIAN),
    "qr": (lambda n, a: n.linalg.qr(a), TALL),
    "qr complex": (lambda n, a: n.linalg.qr(a), TALL_COMPLEX),
    "svd": (lambda n, a: n.linalg.svd(a, full_matrices=False)[1], TALL),
    "svd vectors": (
        lambda n, a: [n.abs(x) for x in n.linalg.svd(a, full_matrices=False)], TALL_COMPLEX),
    "svd wide": (lambda n, a: [n.abs(x) for x in n.linalg.svd(a, full_matrices=False)], WIDE),
    "svd hermitian": (lambda n, a: n.linalg.svd(a, hermitian=True)[1], POSITIVE - 9 * np.eye(4)),
    "eigh": (lambda n, a: [n.abs(x) for x in n.linalg.eigh(a)], HERMITIAN),
    "eigvals": (lambda n, a: n.real(n.linalg.eigvals(a) ** 2).sum(), SQUARE),
    "pinv": (lambda n, a: n.linalg.pinv(a), TALL_COMPLEX),
    "lstsq": (lambda n, a, b: n.linalg.lstsq(a, b)[:2], TALL, RNG.standard_normal((5, 2))),
    "cond": (lambda n, a: [n.linalg.cond(a), n.linalg.cond(a, 1)], SQUARE),
    "norms": (lambda n, a: [n.linalg.norm(a, o) for o in (2, -2, "nuc", "fro", 1)], TALL),
    "matrix_power": (lambda n, a: n.linalg.matrix_power(a, -2), SQUARE),
    "tensorsolve": (lambda n, a, b: n.linalg.tensorsolve(a, b),
                    RNG.standard_normal((2, 3, 6)), RNG.standard_normal((2, 3))),
    "tensorinv": (lambda n, a: n.linalg.tensorinv(a), RNG.standard_normal((2, 3, 6))),
    "fft": (lambda n, a: n.fft.fft(a, 5, 0), GRID_COMPLEX),
    "fft real": (lambda n, a: n.fft.fft(a), GRID),
    "ifft": (lambda n, a: n.fft.ifft(a, norm="ortho"), GRID_COMPLEX),
    "rfft": (lambda n, a: n.fft.rfft(a, 7), GRID),
    "irfft": (lambda n, a: n.fft.irfft(a, 9, norm="forward"), GRID_COMPLEX),
    "hfft": (lambda n, a: n.fft.hfft(a), GRID_COMPLEX),
    "ihfft": (lambda n, a: n.fft.ihfft(a), GRID),
    "fft2": (lambda n, a: n.fft.fft2(a, (3, 8), (1, 0)), GRID_COMPLEX),
    "rfftn": (lambda n, a: n.fft.rfftn(a), GRID),
    "irfftn": (lambda n, a: n.fft.irfftn(a, (4, 9)), GRID_COMPLEX),
    "shifts": (lambda n, a: [n.fft.fftshift(a), n.fft.ifftshift(a, 1)], GRID),
}  # fmt: skip


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        jato.config.update("jax_enable_x64", True)
        yield
        jato.config.update("jax_enable_x64", False)


def weighted(n, function):
    """A real number that depends on all parts of all results."""

    def total(*args):
        parts = []
        for x in jax.tree_util.tree_leaves(function(n, *args)):
            steps = np.arange(x.size, dtype=float).reshape(x.shape)
            parts.append((n.real(x) * np.cos(steps)).sum() + (n.imag(x) * np.sin(steps)).sum())
        return sum(parts)

    return total


def agree(found, expected, tolerance):
    mine, theirs = map(jax.tree_util.tree_leaves, (found, expected))
    assert len(mine) == len(theirs)
    for x, y in zip(mine, theirs, strict=True):
        assert np.asarray(x).dtype == y.dtype
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_jax(name):
    function, *args = CASES[name]
    agree(function(J, *args), function(jnp, *args), 1e-9)
    if name == "eigvals":  # jax refuses a derivative through eigenvectors
        return
    positions = tuple(range(len(args)))
    mine = jato.jit(jato.grad(weighted(J, function), positions))(*args)
    agree(mine, jax.grad(weighted(jnp, function), positions)(*args), 1e-6)


@pytest.mark.parametrize("name", ["solve", "cholesky", "det", "slogdet", "eigh"])
def test_second_derivatives(name):
    function, *args = CASES[name]
    args = [np.real(x) for x in args]

    def at(n):
        return lambda a: weighted(n, function)(a, *args[1:])

    agree(jato.hessian(at(J))(args[0]), jax.hessian(at(jnp))(args[0]), 1e-5)


def test_eigenvalues_have_second_derivatives():
    def f(a):
        return J.real(J.linalg.eigvals(a) ** 3).sum()  # trace(A^3)

    wanted = jato.hessian(lambda a: J.trace(a @ a @ a))(SQUARE)
    agree(jato.hessian(f)(SQUARE), jnp.asarray(wanted), 1e-7)


@pytest.mark.parametrize("axes", [(0, 0), (None, 0), (0, None)])
def test_vmap_of_solve(axes):
    a = BATCH if axes[0] == 0 else SQUARE
    b = RNG.standard_normal((3, 4)) if axes[1] == 0 else RIGHT[:, 0]
    found = jato.vmap(J.linalg.solve, axes)(a, b)
    rows = [np.linalg.solve(a[i] if axes[0] == 0 else a, b[i] if axes[1] == 0 else b) for i in range(3)]
    np.testing.assert_allclose(np.asarray(found), rows, rtol=1e-10)


@pytest.mark.parametrize("size", [2, 8, 31, 33, 70, 200])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_sizes_around_the_switch_to_lapack(size, dtype):
    rng = np.random.default_rng(size)
    a = rng.standard_normal((2, size, size)) + 2 * size**0.5 * np.eye(size)
    b = rng.standard_normal((2, size, 3))
    if dtype.startswith("complex"):
        a, b = a + 1j * rng.standard_normal(a.shape), b + 1j
    a, b = a.astype(dtype), b.astype(dtype)
    near = 2e-4 if np.dtype(dtype).name in ("float32", "complex64") else 1e-10
    for x, y in ((a, b), (a[0], b[0]), (a[0], b[0, :, 0].copy())):
        found = np.asarray(J.linalg.solve(x, y))
        assert found.dtype == dtype
        np.testing.assert_allclose(found, np.linalg.solve(x, y), rtol=near, atol=near)
    positive = a @ np.conj(np.swapaxes(a, -1, -2))
    found = np.asarray(J.linalg.cholesky(positive))
    scale = np.abs(found).max()
    np.testing.assert_allclose(found / scale, np.linalg.cholesky(positive) / scale, atol=near)
    assert not np.triu(found, 1).any()


def test_what_does_not_exist_is_nan_for_that_matrix_alone():
    a = np.stack([np.eye(3), -np.eye(3)])
    found = np.asarray(J.linalg.cholesky(a))
    np.testing.assert_array_equal(found[0], np.eye(3))
    assert np.isnan(found[1][np.tril_indices(3)]).all() and not np.triu(found[1], 1).any()
    bad = np.stack([np.eye(3), np.full((3, 3), np.nan)])
    for f in (J.linalg.eigvalsh, J.linalg.svdvals):
        found = np.asarray(f(bad))
        np.testing.assert_allclose(found[0], 1)
        assert np.isnan(found[1]).all()
    assert not np.isfinite(np.asarray(J.linalg.inv(np.zeros((2, 2))))).all()
    assert float(J.linalg.det(np.zeros((2, 2)))) == 0
    assert float(J.linalg.slogdet(np.zeros((2, 2)))[1]) == -np.inf


def test_derivative_of_the_determinant_of_singular_matrices():
    a = np.arange(9.0).reshape(3, 3)
    cofactors = np.array([[-3, 6, -3], [6, -12, 6], [-3, 6, -3]], float)
    np.testing.assert_allclose(np.asarray(jato.grad(J.linalg.det)(a)), cofactors, atol=1e-9)
    np.testing.assert_allclose(
        np.asarray(jato.vmap(jato.grad(J.linalg.det))(np.stack([a, np.eye(3)]))),
        np.stack([cofactors, np.eye(3)]), atol=1e-9,
    )  # fmt: skip


def test_empty_matrices():
    empty = np.zeros((0, 0))
    assert J.linalg.inv(empty).shape == (0, 0)
    assert float(J.linalg.det(empty)) == 1
    assert J.linalg.cholesky(empty).shape == (0, 0)
    assert [x.shape for x in J.linalg.svd(np.zeros((0, 3)), full_matrices=False)] == [(0, 0), (0,), (0, 3)]
    assert J.linalg.solve(np.zeros((2, 0, 0)), np.zeros((2, 0, 3))).shape == (2, 0, 3)
    assert J.linalg.eigvalsh(np.zeros((3, 0, 0))).shape == (3, 0)
    assert [x.shape for x in J.linalg.qr(np.zeros((2, 0)))] == [(2, 0), (0, 0)]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: J.linalg.solve(np.ones((2, 3)), np.ones(2)), ValueError, "square matrices"),
        (lambda: J.linalg.solve(np.eye(2), np.ones(3)), ValueError, "as many rows"),
        (lambda: J.linalg.cholesky(np.ones(3)), ValueError, "square matrices"),
        (lambda: J.linalg.svd(np.ones((2, 2), np.float16)), TypeError, "dtypes float32"),
        (lambda: J.linalg.qr(np.eye(2), mode="x"), ValueError, "'mode'"),
        (lambda: J.linalg.eigh(np.eye(2), UPLO="X"), ValueError, "UPLO"),
        (lambda: J.linalg.lstsq(np.ones((2, 2)), np.ones(3)), ValueError, "shape"),
        (lambda: J.fft.fft(np.ones(3), 0), ValueError, "positive"),
        (lambda: J.fft.fft(np.ones(3), norm="x"), ValueError, "'norm'"),
        (lambda: J.fft.rfft(np.ones(3) * 1j), ValueError, "real"),
        (lambda: J.fft.fft(np.ones(3), axis=2), ValueError, "axes 2"),
        (lambda: jato.jacfwd(lambda a: J.abs(J.linalg.eig(a)[1]))(SQUARE),
         NotImplementedError, "eigvals"),
    ],
)  # fmt: skip
def test_errors_say_what_is_wrong(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_fft_keeps_single_precision():
    x = GRID.astype(np.float32)
    assert J.fft.fft(x).dtype == np.complex64
    assert J.fft.irfft(J.fft.rfft(x)).dtype == np.float32
    np.testing.assert_allclose(np.asarray(J.fft.irfft(J.fft.rfft(x))), x, atol=1e-6)


def test_frequencies():
    np.testing.assert_allclose(np.asarray(J.fft.fftfreq(7, 0.5)), np.fft.fftfreq(7, 0.5))
    np.testing.assert_allclose(np.asarray(J.fft.rfftfreq(8, 2.0)), np.fft.rfftfreq(8, 2.0))
