"""LAPACK by SciPy and NumPy: the host routines of the linear algebra primitives.

Each takes and gives C-contiguous ndarrays with any number of leading batch axes.  Nothing here
raises for numbers: a factorization that does not exist (a matrix that is not positive definite, an
iteration that does not converge) gives NaN for that matrix and leaves the others alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jato.base.lazy import LazyModule

lapack: Any = LazyModule("scipy.linalg.lapack")
blas: Any = LazyModule("scipy.linalg.blas")
scipy_linalg: Any = LazyModule("scipy.linalg")


def _letter(dtype: np.dtype[Any]) -> str:
    return {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}[dtype.name]


def _routine(module: Any, name: str, dtype: np.dtype[Any]) -> Any:
    return getattr(module, _letter(dtype) + name)


def _real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.zeros((), dtype).real.dtype


def _complex(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.result_type(dtype, np.complex64)


def _indices(x: np.ndarray) -> Any:
    return np.ndindex(x.shape[:-2])


def cholesky(a: np.ndarray) -> np.ndarray:
    """Lower factors, from the lower triangles."""
    potrf = _routine(lapack, "potrf", a.dtype)
    out = np.zeros(a.shape, a.dtype)
    if a.size:
        for i in _indices(a):
            factor, info = potrf(a[i], lower=1, clean=1)
            out[i] = factor if info == 0 else np.tril(np.full(a.shape[-2:], np.nan))
    return out


def lu(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(L below the diagonal and U on and above it, row exchanges)."""
    getrf = _routine(lapack, "getrf", a.dtype)
    out = np.empty(a.shape, a.dtype)
    pivots = np.empty((*a.shape[:-2], min(a.shape[-2:])), np.int32)
    if a.size:
        for i in _indices(a):
            out[i], pivots[i], _ = getrf(a[i])
    return out, pivots


def lu_solve(factors: np.ndarray, pivots: np.ndarray, b: np.ndarray, operation: int) -> np.ndarray:
    """operation(A) X = B (0: A, 1: transposed, 2: adjoint)."""
    getrs = _routine(lapack, "getrs", b.dtype)
    out = np.empty(b.shape, b.dtype)
    if b.size:
        for i in _indices(b):
            out[i], _ = getrs(factors[i], pivots[i], b[i], trans=operation)
    return out


def triangular_solve(
    a: np.ndarray, b: np.ndarray, left: bool, lower: bool, transpose: bool, unit: bool
) -> np.ndarray:
    trsm = _routine(blas, "trsm", b.dtype)
    out = np.empty(b.shape, b.dtype)
    if b.size:
        for i in _indices(b):
            out[i] = trsm(1, a[i], b[i], side=not left, lower=lower, trans_a=transpose, diag=unit)
    return out


# ---- routines of numpy.linalg take batches, but give up on all of them when one fails


def _forgiving(
    function: Callable[..., Any], operand: np.ndarray, types: Sequence[tuple[tuple[int, ...], Any]]
) -> list[np.ndarray]:
    """function(operand) as a list of results; NaN for the matrices where it fails."""
    try:
        with np.errstate(all="ignore"):
            return [np.ascontiguousarray(x, t) for x, (_, t) in zip(function(operand), types, strict=True)]
    except np.linalg.LinAlgError:
        pass
    lead = operand.shape[:-2]
    outs = [np.empty((*lead, *shape), dtype) for shape, dtype in types]
    for i in _indices(operand):
        try:
            with np.errstate(all="ignore"):
                found = function(operand[i])
        except np.linalg.LinAlgError:
            found = [np.nan] * len(outs)
        for out, value in zip(outs, found, strict=True):
            out[i] = value
    return outs


def qr(a: np.ndarray, full: bool) -> list[np.ndarray]:
    """[Q, R]."""
    m, n = a.shape[-2:]
    k = m if full else min(m, n)
    types = [((m, k), a.dtype), ((k, n), a.dtype)]
    return _forgiving(lambda x: np.linalg.qr(x, "complete" if full else "reduced"), a, types)


def qr_pivoted(a: np.ndarray, full: bool) -> list[np.ndarray]:
    """[Q, R, the order of columns (int32)] with A[:, order] = Q R."""
    m, n = a.shape[-2:]
    k = m if full else min(m, n)
    types: list[Any] = [((m, k), a.dtype), ((k, n), a.dtype), ((n,), np.int32)]
    outs = [np.empty((*a.shape[:-2], *shape), dtype) for shape, dtype in types]
    for i in _indices(a):
        found = scipy_linalg.qr(
            a[i], mode="full" if full else "economic", pivoting=True, check_finite=False
        )
        for out, value in zip(outs, found, strict=True):
            out[i] = value
    return outs


def svd(a: np.ndarray, full: bool) -> list[np.ndarray]:
    """[singular values, U, V adjoint]."""
    m, n = a.shape[-2:]
    k = min(m, n)
    u, v = ((m, m), (n, n)) if full else ((m, k), (k, n))
    types = [((k,), _real(a.dtype)), (u, a.dtype), (v, a.dtype)]

    def run(x: np.ndarray) -> Sequence[np.ndarray]:
        left, values, right = np.linalg.svd(x, full)
        return values, left, right

    return _forgiving(run, a, types)


def singular_values(a: np.ndarray) -> list[np.ndarray]:
    types = [((min(a.shape[-2:]),), _real(a.dtype))]
    return _forgiving(lambda x: [np.linalg.svd(x, compute_uv=False)], a, types)


def eigh(a: np.ndarray) -> list[np.ndarray]:
    """[eigenvectors, eigenvalues] of Hermitian matrices, from the lower triangles."""
    n = a.shape[-1]

    def run(x: np.ndarray) -> Sequence[np.ndarray]:
        values, vectors = np.linalg.eigh(x, "L")
        return vectors, values

    return _forgiving(run, a, [((n, n), a.dtype), ((n,), _real(a.dtype))])


def eig(a: np.ndarray, left: bool, right: bool) -> list[np.ndarray]:
    """[eigenvalues, left eigenvectors if `left`, right ones if `right`], complex."""
    n = a.shape[-1]
    dtype = _complex(a.dtype)
    types = [((n,), dtype)] + [((n, n), dtype)] * (left + right)
    outs = [np.empty((*a.shape[:-2], *shape), t) for shape, t in types]
    for i in _indices(a):
        try:
            # SciPy's, which the native routine calls: NumPy's may give a vector the other sign
            found = scipy_linalg.eig(a[i], left=left, right=right)
            found = found if left or right else (found,)
        except (np.linalg.LinAlgError, ValueError):  # no convergence; NaN or infinity
            found = [np.nan] * len(outs)
        for out, value in zip(outs, found, strict=True):
            out[i] = value
    return outs


def schur(a: np.ndarray, vectors: bool) -> list[np.ndarray]:
    """[T, the unitary matrix if `vectors`]: real Schur form of real matrices."""
    outs = [np.empty(a.shape, a.dtype) for _ in range(1 + vectors)]
    for i in _indices(a):
        try:
            found = scipy_linalg.schur(a[i])
        except (np.linalg.LinAlgError, ValueError):
            found = [np.nan] * 2
        for out, value in zip(outs, found, strict=False):
            out[i] = value
    return outs


def hessenberg(a: np.ndarray) -> list[np.ndarray]:
    """[H with the reflectors below its first subdiagonal, their factors]."""
    gehrd = _routine(lapack, "gehrd", a.dtype)
    n = a.shape[-1]
    out, taus = np.empty(a.shape, a.dtype), np.zeros((*a.shape[:-2], max(n - 1, 0)), a.dtype)
    if a.size:
        for i in _indices(a):
            out[i], taus[i], _ = gehrd(a[i])
    return [out, taus]


def geqrf(a: np.ndarray) -> list[np.ndarray]:
    """[R above, reflectors below the diagonal; their factors]."""
    routine = _routine(lapack, "geqrf", a.dtype)
    out = np.empty(a.shape, a.dtype)
    taus = np.empty((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
    if a.size:
        for i in _indices(a):
            out[i], taus[i], _, _ = routine(a[i])
    return [out, taus]


def householder_product(a: np.ndarray, taus: np.ndarray) -> np.ndarray:
    """The first n columns of the product of the reflectors in the columns of a [m, n], m >= n."""
    orgqr = _routine(lapack, "ungqr" if a.dtype.kind == "c" else "orgqr", a.dtype)
    out = np.empty(a.shape, a.dtype)
    if a.size:
        for i in _indices(a):
            if taus.shape[-1] == 0:
                out[i] = np.eye(*a.shape[-2:])
            else:
                out[i], _, _ = orgqr(a[i], taus[i])
    return out


def tridiagonal_solve(
    dl: np.ndarray, d: np.ndarray, du: np.ndarray, b: np.ndarray, perturb: bool
) -> np.ndarray:
    """X of T X = B; dl[0] and du[-1] are not used.  perturb: see `_perturbed_solve`."""
    gtsv = _routine(lapack, "gtsv", b.dtype)
    out = np.empty(b.shape, b.dtype)
    if perturb:
        if b.size:
            for i in _indices(b):
                out[i] = _perturbed_solve(dl[i], d[i], du[i], b[i])
        return out
    if d.shape[-1] == 1:
        with np.errstate(all="ignore"):
            return b / d[..., None]
    if b.size:
        for i in _indices(b):
            _, _, _, out[i], info = gtsv(dl[i][1:], d[i], du[i][:-1], b[i])
            if info > 0:
                out[i] = np.nan
    return out


def _perturbed_solve(
    dl: np.ndarray, d: np.ndarray, du: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """X of T X = B by elimination, each pivot at least eps times the largest element of U."""
    n = d.shape[0]
    size = max(n, 3)  # the routines want three rows
    dl, d, du = (np.concatenate([x, np.full(size - n, fill, x.dtype)])
                 for x, fill in ((dl, 0), (d, 1), (du, 0)))  # fmt: skip
    if n < size:
        dl[n:], du[n - 1 :] = 0, 0
    gttrf, gttrs = (_routine(lapack, name, b.dtype) for name in ("gttrf", "gttrs"))
    dl, d, du, du2, pivots, _ = gttrf(dl[1:], d, du[:-1])
    largest = max(np.abs(x[: max(n - i, 0)]).max(initial=0) for i, x in enumerate((d, du, du2)))
    least = np.finfo(b.dtype).eps * largest
    with np.errstate(all="ignore"):
        phase = np.where(d == 0, 1, d / np.abs(d))
    d = np.where(np.abs(d) < least, least * phase, d).astype(b.dtype)
    rows = np.concatenate([b, np.zeros((size - n, b.shape[1]), b.dtype)])
    return gttrs(dl, d, du, du2, pivots, rows)[0][:n]


def tridiagonal(a: np.ndarray, lower: bool) -> list[np.ndarray]:
    """[T with the reflectors beside it, its diagonal, its other band, factors of the reflectors]."""
    routine = _routine(lapack, "hetrd" if a.dtype.kind == "c" else "sytrd", a.dtype)
    lead, n = a.shape[:-2], a.shape[-1]
    real = _real(a.dtype)
    out, d = np.array(a), np.empty((*lead, n), real)
    e = np.empty((*lead, max(n - 1, 0)), real)
    taus = np.empty(e.shape, a.dtype)
    if a.size:
        for i in _indices(a):
            if n == 1:
                d[i] = a[i][0].real
            else:
                out[i], d[i], e[i], taus[i], _ = routine(a[i], lower=lower)
    return [out, d, e, taus]


def ormqr(
    a: np.ndarray, taus: np.ndarray, c: np.ndarray, left: bool, transpose: bool
) -> np.ndarray:
    """op(Q) C or C op(Q), Q the product of the reflectors in the columns of a."""
    kind = "c" if a.dtype.kind == "c" else "r"
    routine = _routine(lapack, "unmqr" if kind == "c" else "ormqr", a.dtype)
    out = np.array(c)
    k = taus.shape[-1]
    if c.size and k:
        flag = ("C" if kind == "c" else "T") if transpose else "N"
        side = "L" if left else "R"
        for i in _indices(c):
            _, work, _ = routine(side, flag, a[i][:, :k], taus[i], c[i], -1)
            out[i], _, _ = routine(side, flag, a[i][:, :k], taus[i], c[i], int(work[0].real))
    return out
