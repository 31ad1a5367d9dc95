"""QR, singular values, eigenvalues, Schur, Hessenberg and polar forms.

`overwrite_*` and `check_finite` are accepted and ignored, `lapack_driver` too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import jato.numpy as jnp
from jato.base.dtypes import is_complex
from jato.jit.eager import public
from jato.numpy import linalg as jlinalg
from jato.numpy.factorizations import matrices
from jato.numpy.promote import as_array, broadcast, cast, common_shape, dtype_of, promote_dtypes
from jato.ops import spectral
from jato.ops.linalg import cholesky, triangular_solve
from jato.ops.matrices import adjoint, identity_like


@public(static=("full_matrices", "compute_uv", "overwrite_a", "check_finite", "lapack_driver"))
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """A = U diag(s) Vh: (U, s, Vh), or s alone.

    >>> import jato.numpy as jnp
    >>> svd(jnp.array([[2.0]]), compute_uv=False)
    Array([2.], dtype=float32)
    """
    found = jlinalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)
    return tuple(found) if compute_uv else found


@public(static=("overwrite_a", "lwork", "mode", "pivoting", "check_finite"))
def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """A = Q R: (Q, R), with `pivoting` (Q, R, order of columns); mode "full", "economic" or "r".

    >>> import jato.numpy as jnp
    >>> qr(jnp.eye(2), mode="r")[0].shape
    (2, 2)
    """
    if mode not in ("full", "r", "economic"):
        raise ValueError(f"qr: argument 'mode' must be 'full', 'r' or 'economic', got {mode!r}")
    found = spectral.qr(matrices("qr", a), pivoting=pivoting, full_matrices=mode != "economic")
    return tuple(found[1:]) if mode == "r" else tuple(found)


@public(
    static=(
        "lower",
        "eigvals_only",
        "overwrite_a",
        "overwrite_b",
        "turbo",
        "eigvals",
        "type",
        "check_finite",
    )
)
def eigh(
    a: Any,
    b: Any = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: Any = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """Rising eigenvalues and eigenvectors of Hermitian matrices: (w, v), or w alone.

    b: positive definite matrices, for the generalized problem: A v = w B v (type 1), A B v = w v
    (type 2) or B A v = w v (type 3).  lower: read the lower triangles of both, else the upper ones.
    eigvals: (first, last), which of the eigenvalues to give.  ValueError for other types and ranges.

    >>> import jato.numpy as jnp
    >>> eigh(jnp.array([[2.0]]), jnp.array([[4.0]]), eigvals_only=True)
    Array([0.5], dtype=float32)
    """
    if type not in (1, 2, 3):
        raise ValueError(f"eigh: argument 'type' must be 1, 2 or 3, got {type!r}")
    if b is None:
        a = matrices("eigh", a, square=True)
        vectors, values = spectral.eigh(a, lower=lower, symmetrize_input=False)
    else:
        values, vectors = _generalized(*promote_dtypes("eigh", a, b, inexact=True), lower, type)
    if eigvals is not None:
        first, last = eigvals
        if not 0 <= first <= last < values.shape[-1]:
            raise ValueError(
                f"eigh: argument 'eigvals' must be (first, last) with 0 <= first <= last < "
                f"{values.shape[-1]}, got {eigvals}"
            )
        values, vectors = values[..., first : last + 1], vectors[..., first : last + 1]
    return values if eigvals_only else (values, vectors)


def _generalized(a: Any, b: Any, lower: bool, type: int) -> tuple[Any, Any]:
    """(eigenvalues, eigenvectors) of A and B = L L^H, by the standard problem of one matrix.

    type 1: L^-1 A L^-H; types 2 and 3: L^H A L.
    """
    a = matrices("eigh", a, square=True)
    b = matrices("eigh", b, square=True, argument="b")
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(
            f"eigh: arguments 'a' and 'b' must be of one size, got {a.shape} and {b.shape}"
        )
    lead = common_shape("eigh", (a.shape[:-2], b.shape[:-2]))
    a, b = (broadcast(_hermitian(x, lower), (*lead, *x.shape[-2:])) for x in (a, b))
    factor = cholesky(b, symmetrize_input=False)

    def solved(x: Any, adjoint_: bool = False) -> Any:
        return triangular_solve(
            factor, x, left_side=True, lower=True, transpose_a=adjoint_, conjugate_a=adjoint_
        )

    if type == 1:
        form = solved(adjoint(solved(a)))
    else:
        form = adjoint(factor) @ a @ factor
    vectors, values = spectral.eigh(form, symmetrize_input=True)
    return values, factor @ vectors if type == 3 else solved(vectors, True)


def _hermitian(x: Any, lower: bool) -> Any:
    """The Hermitian matrix of which one triangle is given."""
    half = jnp.tril(x, -1) if lower else jnp.triu(x, 1)
    diagonal = jnp.real(jnp.diagonal(x, axis1=-2, axis2=-1))[..., None, :]
    return half + adjoint(half) + identity_like(x) * diagonal


@public(static=("output",))
def schur(a: Any, output: str = "real") -> tuple[Any, Any]:
    """A = Z T Z^H with a triangular T ("complex"), or one with 2 x 2 blocks ("real"): (T, Z).

    >>> import jato.numpy as jnp
    >>> schur(jnp.array([[2.0]]))[0]
    Array([[2.]], dtype=float32)
    """
    if output not in ("real", "complex"):
        raise ValueError(f"schur: argument 'output' must be 'real' or 'complex', got {output!r}")
    a = matrices("schur", a, square=True)
    if output == "complex":
        a = cast(a, np.result_type(dtype_of(a), np.complex64))
    found, vectors = spectral.schur(a)
    return found, vectors


@public(static=("calc_q", "overwrite_a", "check_finite"))
def hessenberg(
    a: Any, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """A = Q H Q^H with an H that is zero below its first subdiagonal: H, with calc_q (H, Q).

    a: square matrices (..., n, n).  ValueError for others.

    >>> import jato.numpy as jnp
    >>> hessenberg(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    a = matrices("hessenberg", a, square=True)
    n = a.shape[-1]
    if n < 2:
        return (a, identity_like(a)) if calc_q else a
    packed, taus = spectral.hessenberg(a)
    form = jnp.triu(packed, -1)
    if not calc_q:
        return form
    # the reflectors begin below the diagonal: they leave the first coordinate
    inner = spectral.householder_product(packed[..., 1:, :-1], taus)
    edge = [(0, 0)] * (len(a.shape) - 2)
    outer = jnp.pad(inner, [*edge, (1, 0), (1, 0)])
    return form, outer.at[..., 0, 0].set(1)


@public(static=("side", "method", "eps", "max_iterations"))
def polar(
    a: Any,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Any, Any]:
    """A = U P ("right"), or P U ("left"), with orthonormal U and Hermitian, semidefinite P: (U, P).

    a: matrices (..., m, n); U has their shape, P is (..., n, n), or (..., m, m) on the left.
    method: "qdwh" or "svd", which are the same here: the singular value decomposition; eps and
    max_iterations have no effect then.  ValueError for another side or method.

    >>> import jato.numpy as jnp
    >>> polar(jnp.array([[-2.0]]))
    (Array([[-1.]], dtype=float32), Array([[2.]], dtype=float32))
    """
    if side not in ("right", "left"):
        raise ValueError(f"polar: argument 'side' must be 'right' or 'left', got {side!r}")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"polar: argument 'method' must be 'qdwh' or 'svd', got {method!r}")
    a = matrices("polar", a)
    u, s, vh = jlinalg.svd(a, full_matrices=False)
    basis = adjoint(vh) if side == "right" else u
    return u @ vh, (basis * s[..., None, :].astype(basis.dtype)) @ adjoint(basis)


@public(static=("mode", "pivoting", "conjugate", "overwrite_a", "overwrite_c"))
def qr_multiply(
    a: Any,
    c: Any,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Any, ...]:
    """With A = Q R: (c Q, R), or for mode "left" (Q c, R); with `pivoting` the order of columns too.

    a: (..., m, n), k = min(m, n); c: (..., p, m), or (..., k, p) on the left, or a vector, and then so
    is the product; conjugate: conj(Q) for Q.  ValueError for another mode and shapes that do not fit.

    >>> import jato.numpy as jnp
    >>> qr_multiply(jnp.eye(2), jnp.array([[1.0, 2.0]]))[0].shape
    (1, 2)
    """
    if mode not in ("left", "right"):
        raise ValueError(f"qr_multiply: argument 'mode' must be 'left' or 'right', got {mode!r}")
    a, c = promote_dtypes("qr_multiply", a, c, inexact=True)
    a = matrices("qr_multiply", a)
    vector = len(c.shape) == 1
    m, n = a.shape[-2:]
    if vector:
        c = c[None] if mode == "right" else c[:, None]
    own, wanted = (c.shape[-1], m) if mode == "right" else (c.shape[-2:-1], min(m, n))
    if len(c.shape) < 2 or (own if mode == "right" else own[0]) != wanted:
        raise ValueError(
            f"qr_multiply: argument 'c' must have {wanted} {'columns' if mode == 'right' else 'rows'} for "
            f"matrices of shape {a.shape}, got shape {c.shape}"
        )
    q, *rest = spectral.qr(a, pivoting=pivoting, full_matrices=False)
    q = jnp.conj(q) if conjugate else q
    product = c @ q if mode == "right" else q @ c
    if vector:
        product = product[..., 0, :] if mode == "right" else product[..., 0]
    return product, *rest


@public(static=("check_finite",))
def rsf2csf(T: Any, Z: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """The complex Schur form of the real one: (T, Z) triangular and unitary, with equal Z T Z^H.

    >>> import jato.numpy as jnp
    >>> T, Z = rsf2csf(jnp.array([[0.0, 1.0], [-1.0, 0.0]]), jnp.eye(2))
    >>> abs(float(T[1, 0].real)) < 1e-6
    True
    """
    form, vectors = promote_dtypes("rsf2csf", T, Z, inexact=True)
    form = matrices("rsf2csf", form, square=True, argument="T")
    vectors = matrices("rsf2csf", vectors, square=True, argument="Z")
    if form.shape[-1] != vectors.shape[-1]:
        raise ValueError(
            f"rsf2csf: arguments 'T' and 'Z' must be of one size, got {form.shape} and {vectors.shape}"
        )
    lead = common_shape("rsf2csf", (form.shape[:-2], vectors.shape[:-2]))
    form, vectors = (broadcast(x, (*lead, *x.shape[-2:])) for x in (form, vectors))
    kind = np.result_type(dtype_of(form), np.complex64)
    triangle, inner = spectral.schur(cast(form, kind))
    return triangle, cast(vectors, kind) @ inner


@public(static=("eigvals_only", "select", "select_range"))
def _eigh_tridiagonal(d: Any, e: Any, eigvals_only: bool, select: str, select_range: Any) -> Any:
    d, e = promote_dtypes("eigh_tridiagonal", d, e, inexact=True)
    n = d.shape[0]
    a = jnp.diag(d) + jnp.diag(e, -1) + jnp.diag(jnp.conj(e), 1)
    vectors, values = spectral.eigh(a, symmetrize_input=False)
    first, last = (0, n - 1) if select == "a" else select_range
    values, vectors = values[first : last + 1], vectors[:, first : last + 1]
    return values if eigvals_only else (values, vectors)


def eigh_tridiagonal(
    d: Any,
    e: Any,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: Any = None,
    tol: float | None = None,
    key: Any = None,
) -> Any:
    """Rising eigenvalues and eigenvectors of a Hermitian tridiagonal matrix: (w, v), or w alone.

    d: the real diagonal (n,); e: the subdiagonal (n - 1,); select: "a", all, or "i", those of the
    positions select_range = (first, last).  tol and key have no effect: the matrix is solved as a
    full one.  NotImplementedError for select="v", ValueError for other values and shapes.

    >>> import jato.numpy as jnp
    >>> eigh_tridiagonal(jnp.array([2.0, 1.0]), jnp.array([0.0]), eigvals_only=True)
    Array([1., 2.], dtype=float32)
    """
    d, e = as_array("eigh_tridiagonal", d, "d"), as_array("eigh_tridiagonal", e, "e")
    if len(d.shape) != 1 or e.shape != (d.shape[0] - 1,):
        raise ValueError(
            "eigh_tridiagonal: arguments 'd' and 'e' must be vectors of n and n - 1 elements, got shapes "
            f"{d.shape} and {e.shape}"
        )
    if is_complex(dtype_of(d)):
        raise TypeError(f"eigh_tridiagonal: argument 'd' must be real, got {dtype_of(d)}")
    if select == "v":
        raise NotImplementedError(
            "eigh_tridiagonal: select='v' has a result of unknown size; take all and choose"
        )
    if select not in ("a", "i"):
        raise ValueError(f"eigh_tridiagonal: argument 'select' must be 'a' or 'i', got {select!r}")
    if select == "i":
        select_range = tuple(int(i) for i in np.asarray(select_range).ravel())
        if len(select_range) != 2 or not 0 <= select_range[0] <= select_range[1] < d.shape[0]:
            raise ValueError(
                "eigh_tridiagonal: argument 'select_range' must be (first, last) with 0 <= first <= last < "
                f"{d.shape[0]}, got {select_range}"
            )
    return _eigh_tridiagonal(
        d, e, eigvals_only=eigvals_only, select=select, select_range=select_range
    )
