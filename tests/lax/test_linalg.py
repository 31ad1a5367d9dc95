"""jato.lax.linalg: values against SciPy and by their definitions, derivatives against jax and by
finite differences."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import scipy.linalg

import jato
from jato.lax import linalg

RNG = np.random.default_rng(0)
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


@pytest.fixture(autouse=True)
def wide_numbers() -> Any:
    with jato.enable_x64(True), jax.enable_x64(True):
        yield


def matrix(dtype: Any, *shape: int) -> np.ndarray:
    x = RNG.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * RNG.normal(size=shape)
    return x.astype(dtype)


def tolerance(dtype: Any) -> float:
    return 2e-4 if np.dtype(dtype).itemsize == (8 if np.dtype(dtype).kind == "c" else 4) else 1e-10


def close(got: Any, expected: Any, dtype: Any) -> None:
    jax.tree.map(
        lambda g, e: np.testing.assert_allclose(g, e, rtol=tolerance(dtype), atol=tolerance(dtype)),
        tuple(got),
        tuple(expected),
    )


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x, -1, -2).conj()


# ---- values


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 17])
def test_tridiagonal(dtype: Any, lower: bool, n: int) -> None:
    a = matrix(dtype, 2, n, n)
    a = a + adjoint(a)
    packed, d, e, taus = linalg.tridiagonal(a, lower=lower)
    assert packed.shape == a.shape and d.shape == (2, n)
    assert e.shape == taus.shape == (2, max(n - 1, 0))
    assert d.dtype == e.dtype == np.zeros((), dtype).real.dtype and taus.dtype == dtype
    for i in range(2 if n else 0):
        t = np.diag(np.asarray(d[i])) + sum(np.diag(np.asarray(e[i]), k) for k in (-1, 1))
        values = np.linalg.eigvalsh(a[i])
        np.testing.assert_allclose(np.linalg.eigvalsh(t), values, atol=30 * tolerance(dtype))
    other = np.triu if lower else np.tril
    spoiled = a + other(np.ones_like(a), 1 if lower else -1)
    close(linalg.tridiagonal(spoiled, lower=lower)[1:], (d, e, taus), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (1, 1), (17, 9)])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_ormqr(dtype: Any, shape: tuple[int, int], left: bool, transpose: bool) -> None:
    m = shape[0]
    a = matrix(dtype, *shape)
    (packed, taus), _ = scipy.linalg.qr(a, mode="raw")
    packed, taus = np.array(packed, dtype), np.array(taus, dtype)
    q = np.asarray(scipy.linalg.qr(a)[0], dtype)
    c = matrix(dtype, m, 4) if left else matrix(dtype, 4, m)
    op = adjoint(q) if transpose else q
    expected = op @ c if left else c @ op
    options = {"left": left, "transpose": transpose}
    close([linalg.ormqr(packed, taus, c, **options)], [expected], dtype)
    batch = [np.stack([x, x]) for x in (packed, taus, c)]
    close([linalg.ormqr(*batch, **options)], [np.stack([expected] * 2)], dtype)
    # linear in c: <ct, f(c)> = <f^T(ct), c>
    f = lambda c: linalg.ormqr(packed, taus, c, **options)
    ct = matrix(dtype, *c.shape)
    (back,) = jato.linear_transpose(f, c)(ct)
    close([np.sum(np.asarray(back) * c)], [np.sum(ct * expected)], np.float32)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (9, 4), (20, 20), (0, 0), (3, 0)])
def test_qdwh(dtype: Any, shape: tuple[int, int]) -> None:
    x = matrix(dtype, *shape)
    u, h, steps, converged = linalg.qdwh(x)
    assert bool(converged) and int(steps) <= 7 and u.dtype == dtype
    if x.size:
        close((u, h), scipy.linalg.polar(x), np.float32 if tolerance(dtype) > 1e-5 else dtype)
    assert int(linalg.qdwh(x, max_iterations=1)[2]) <= 1
    if shape == (9, 4):
        peer = jax.lax.linalg.qdwh(jax.numpy.asarray(x))
        close((u, h), peer[:2], dtype)


def test_qdwh_of_nearly_singular_matrices() -> None:
    u, s, v = np.linalg.svd(matrix(np.float64, 6, 6))
    for smallest in (1e-3, 1e-9, 1e-14):
        x = (u * np.geomspace(1, smallest, 6)) @ v
        unitary, h, _, converged = linalg.qdwh(x)
        assert bool(converged)
        np.testing.assert_allclose(adjoint(np.asarray(unitary)) @ unitary, np.eye(6), atol=1e-12)
        np.testing.assert_allclose(np.asarray(unitary) @ np.asarray(h), x, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 7])
def test_cholesky_update(dtype: Any, n: int) -> None:
    r, w = np.triu(matrix(dtype, 2, n, n)), matrix(dtype, 2, n)
    got = np.asarray(linalg.cholesky_update(r, w))
    total = adjoint(r) @ r + w[..., :, None] * w[..., None, :].conj()
    close([adjoint(got) @ got], [total], dtype)
    assert (np.diagonal(got, axis1=-2, axis2=-1).real > 0).all()
    np.testing.assert_array_equal(np.tril(got, -1), 0)
    if np.dtype(dtype).kind == "f":
        close([got[0]], [jax.lax.linalg.cholesky_update(r[0], w[0])], dtype)


@pytest.mark.parametrize("n", [1, 2, 3, 8])
@pytest.mark.parametrize("dtype", DTYPES)
def test_perturbed_tridiagonal_solve(dtype: Any, n: int) -> None:
    bands = [matrix(dtype, 2, n) for _ in range(3)]
    b = matrix(dtype, 2, n, 2)
    exact = linalg.tridiagonal_solve(*bands, b)
    close([linalg.tridiagonal_solve(*bands, b, perturb_singular=True)], [exact], dtype)


def test_singular_tridiagonal_solve() -> None:
    one = np.ones(4)
    d = np.array([1.0, 2.0, 2.0, 1.0])  # rows of the matrix add up to 0
    b = np.array([[1.0], [-1.0], [2.0], [1.0]])
    plain = np.asarray(linalg.tridiagonal_solve(-one, d, -one, b))
    assert not np.isfinite(plain).all()
    x = np.asarray(linalg.tridiagonal_solve(-one, d, -one, b, perturb_singular=True))
    assert np.isfinite(x).all() and np.abs(x).max() > 1e14  # along the null vector of ones
    np.testing.assert_allclose(x / x[0], np.ones((4, 1)), rtol=1e-12)


@pytest.mark.parametrize("symmetrize", [True, False])
def test_symmetric_product(symmetrize: bool) -> None:
    a, c = matrix(np.float64, 2, 3, 4), matrix(np.float64, 2, 3, 3)
    c = c + adjoint(c)
    got = linalg.symmetric_product(a, c, alpha=2.0, beta=3.0, symmetrize_output=symmetrize)
    close([got], [2 * a @ adjoint(a) + 3 * c], np.float64)


# ---- derivatives


def jvps(module: Any, function: Any, x: np.ndarray, t: np.ndarray) -> Any:
    return module.jvp(function, (x,), (t,))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("sides", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_derivative_of_eig(dtype: Any, sides: tuple[bool, bool], n: int) -> None:
    x, t = matrix(dtype, n, n), matrix(dtype, n, n)

    def of(la: Any) -> Any:
        return lambda a: tuple(
            la.eig(
                a, compute_left_eigenvectors=sides[0], compute_right_eigenvectors=sides[1],
                enable_eigvec_derivs=True,
            )
        )  # fmt: skip

    outs, tangents = jvps(jato, of(linalg), x, t)
    expected, peer = jvps(jax, of(jax.lax.linalg), x, t)
    close(outs, expected, dtype)
    close(tangents, peer, dtype)
    step = 1e-6
    ahead, back = (of(linalg)(x + s * t) for s in (step, -step))
    numeric = [
        (np.asarray(p) - np.asarray(m)) / (2 * step) for p, m in zip(ahead, back, strict=True)
    ]
    close(tangents, numeric, np.float32)


def test_reverse_mode_of_eigenvectors() -> None:
    x, w = matrix(np.float64, 4, 4), matrix(np.complex128, 4, 4)

    def of(module: Any, la: Any) -> Any:
        def loss(a: Any) -> Any:
            _, left, right = la.eig(a, enable_eigvec_derivs=True)
            return (abs(right - w) ** 2).sum() + (left * w).real.sum()

        return module.grad(loss)

    expected = of(jax, jax.lax.linalg)(x)
    close([of(jato, linalg)(x)], [expected], np.float64)
    close([jato.jit(of(jato, linalg))(x)], [expected], np.float64)
    close([jato.vmap(of(jato, linalg))(np.stack([x, x]))[1]], [expected], np.float64)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5), (1, 1), (4, 1), (1, 4)])
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("pivoting", [True, False])
def test_derivative_of_qr(dtype: Any, shape: Any, full: bool, pivoting: bool) -> None:
    x, t = matrix(dtype, *shape), matrix(dtype, *shape)

    def of(la: Any) -> Any:
        return lambda a: tuple(la.qr(a, full_matrices=full, pivoting=pivoting)[:2])

    outs, tangents = jvps(jato, of(linalg), x, t)
    # A = Q R, Q^H Q = 1 and the shape of R stay
    q, r = map(np.asarray, outs)
    dq, dr = map(np.asarray, tangents)
    moved = t
    if pivoting:
        moved = t[:, np.asarray(linalg.qr(x, pivoting=True)[2])]
    close([dq @ r + q @ dr, dq.conj().T @ q + q.conj().T @ dq], [moved, 0 * q.conj().T @ q], dtype)
    close([np.tril(dr, -1)], [0 * dr], dtype)
    if pivoting and shape[0] < shape[1]:
        return  # jax 0.10.2 takes the rest of R from columns in their old order
    _, peer = jvps(jax, of(jax.lax.linalg), x, t)
    close(tangents, peer, dtype)


def test_derivative_of_the_complement() -> None:
    """The columns of Q that A does not determine, as LAPACK chooses them."""
    for dtype in (np.float64, np.complex128):
        x, t = matrix(dtype, 6, 3), matrix(dtype, 6, 3)
        _, tangent = jvps(jato, lambda a: linalg.qr(a)[0], x, t)
        step = 1e-6
        ahead, back = (np.asarray(linalg.qr(x + s * t)[0]) for s in (step, -step))
        close([tangent], [(ahead - back) / (2 * step)], np.float32)


def test_what_has_no_derivative() -> None:
    a = matrix(np.float64, 3, 3)
    for f in (
        lambda a: linalg.schur(a)[0],
        lambda a: linalg.hessenberg(a)[0],
        lambda a: linalg.tridiagonal(a)[1],
        lambda a: linalg.householder_product(a, np.ones(3)),
        lambda a: linalg.ormqr(a, np.ones(3), np.ones((3, 3))),
    ):
        with pytest.raises(NotImplementedError, match="the derivative of"):
            jato.grad(lambda a, f=f: f(a).sum())(a)
    with pytest.raises(NotImplementedError, match="enable_eigvec_derivs=True"):
        jato.grad(lambda a: abs(linalg.eig(a)[2]).sum())(a)


# ---- messages


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda a: linalg.svd(a, algorithm=linalg.SvdAlgorithm.POLAR), NotImplementedError, "'algorithm'"),
        (lambda a: linalg.eigh(a, implementation=linalg.EighImplementation.JACOBI),
         NotImplementedError, "'implementation'"),
        (lambda a: linalg.eig(a, implementation=linalg.EigImplementation.MAGMA),
         NotImplementedError, "'implementation'"),
        (lambda a: linalg.eig(a, use_magma=True), NotImplementedError, "'use_magma'"),
        (lambda a: linalg.qr(a, use_magma=True), NotImplementedError, "'use_magma'"),
        (lambda a: linalg.eig(a[:2]), ValueError, "eig: expected x to hold square matrices"),
        (lambda a: linalg.tridiagonal(a[:2]), ValueError, "tridiagonal: expected a to hold square"),
        (lambda a: linalg.ormqr(a, a[0], a[:2]), ValueError, "ormqr: expected c with as many rows"),
        (lambda a: linalg.qdwh(a[:2]), ValueError, "qdwh: expected x to be a matrix with at least"),
        (lambda a: linalg.qdwh(a > 0), TypeError, "qdwh: expected x of dtype"),
        (lambda a: linalg.qdwh(a, dynamic_shape=(2, 2)), ValueError, "'dynamic_shape'"),
        (lambda a: linalg.qdwh(a, max_iterations=0), ValueError, "'max_iterations' must be positive"),
        (lambda a: linalg.cholesky_update(a, a), ValueError, "cholesky_update: expected r_matrix"),
        (lambda a: linalg.symmetric_product(a, a[:2]), ValueError, "symmetric_product: expected c_matrix"),
        (lambda a: linalg.cholesky(a[:2]), ValueError, "cholesky: expected x to hold square matrices"),
    ],
)  # fmt: skip
def test_messages(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(matrix(np.float64, 3, 3))
