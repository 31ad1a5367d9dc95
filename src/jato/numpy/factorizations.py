"""jato.numpy.linalg, factorizations: cholesky, qr, svd and the eigenvalue problems.

NumPy's names and results over ops/linalg.py and ops/spectral.py, batched over leading axes and
differentiable where the factors are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jato.jit.eager import public
from jato.numpy.promote import dtype_of, promote_dtypes
from jato.ops import elementwise, spectral, structural
from jato.ops import linalg as solvers
from jato.ops.indexing import take_along
from jato.ops.matrices import adjoint, column_scaled
from jato.ops.shapes import broadcast_to
from jato.ops.sort import sort


class QRResult(NamedTuple):
    Q: Any
    R: Any


class SVDResult(NamedTuple):
    U: Any
    S: Any
    Vh: Any


class EighResult(NamedTuple):
    eigenvalues: Any
    eigenvectors: Any


class EigResult(NamedTuple):
    eigenvalues: Any
    eigenvectors: Any


def matrices(function: str, a: Any, square: bool = False, argument: str = "a") -> Any:
    """`a` in a floating dtype; ValueError unless it holds (square) matrices."""
    x = promote_dtypes(function, a, inexact=True)[0]
    if len(x.shape) < 2 or (square and x.shape[-1] != x.shape[-2]):
        kind = "square matrices" if square else "matrices"
        raise ValueError(
            f"{function}: argument '{argument}' must hold {kind} in its last two axes, got shape "
            f"{x.shape}"
        )
    return x


@public(static=("upper", "symmetrize_input"))
def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Any:
    """Lower factors L of Hermitian positive definite matrices, A = L L^H; NaN where there is none.

    upper: L^H instead; symmetrize_input: A is replaced by (A + A^H) / 2.
    Raises ValueError unless a holds square matrices.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 2.0]]))
    Array([[2., 0.],
           [1., 1.]], dtype=float32)
    """
    a = matrices("cholesky", a, square=True)
    if upper and not symmetrize_input:
        a = adjoint(a)
    factor = solvers.cholesky(a, symmetrize_input=symmetrize_input)
    return adjoint(factor) if upper else factor


@public(static=("mode",))
def qr(a: Any, mode: str = "reduced") -> Any:
    """A = Q R with orthonormal columns of Q and an upper triangular R.

    mode: "reduced" (Q has min(m, n) columns), "complete" (Q is square), "r" (R alone), "raw"
    (LAPACK's reflectors, transposed, and their factors).

    >>> import jato.numpy as jnp
    >>> jnp.abs(jnp.linalg.qr(jnp.array([[0.0, 2.0], [1.0, 0.0]]), mode="r"))
    Array([[1., 0.],
           [0., 2.]], dtype=float32)
    """
    a = matrices("qr", a)
    if mode == "raw":
        reflectors, taus = spectral.geqrf(a)
        return structural.transpose(
            reflectors, (*range(len(a.shape) - 2), len(a.shape) - 1, len(a.shape) - 2)
        ), taus
    if mode not in ("reduced", "r", "full", "complete"):
        raise ValueError(
            f"qr: argument 'mode' must be 'reduced', 'complete', 'r' or 'raw', got {mode!r}"
        )
    q, r = spectral.qr(a, full_matrices=mode in ("full", "complete"))
    return r if mode == "r" else QRResult(q, r)


@public(static=("full_matrices", "compute_uv", "hermitian", "subset_by_index"))
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: Any = None,
) -> Any:
    """A = U diag(S) Vh, with falling singular values S.

    full_matrices: U and Vh are square; compute_uv: else S alone; hermitian: A is taken to be
    Hermitian, which is quicker.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.svd(jnp.array([[0.0, 2.0], [1.0, 0.0]]), compute_uv=False)
    Array([2., 1.], dtype=float32)
    """
    a = matrices("svd", a)
    if not hermitian:
        found = spectral.svd(
            a, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index
        )
        return SVDResult(*found) if compute_uv else found
    if subset_by_index is not None:
        raise NotImplementedError("svd: argument 'subset_by_index' does not go with hermitian=True")
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(f"svd: hermitian=True needs square matrices, got shape {a.shape}")
    vectors, values = spectral.eigh(a)
    sizes = elementwise.abs(values)
    rank = len(values.shape)
    order = structural.broadcasted_iota(np.dtype("int32"), values.shape, rank - 1)
    falling, order = sort((elementwise.neg(sizes), order), dimension=-1, num_keys=1)
    if not compute_uv:
        return elementwise.neg(falling)
    signs = take_along(elementwise.sign(values), order, rank - 1)
    columns = broadcast_to(order, a.shape, (*range(rank - 1), rank))
    u = take_along(vectors, columns, rank)
    dtype = dtype_of(u)
    scaled = column_scaled(u, signs if dtype_of(signs) == dtype else signs.astype(dtype))
    return SVDResult(u, elementwise.neg(falling), adjoint(scaled))


def svdvals(x: Any, /) -> Any:
    """The singular values, falling.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.svdvals(jnp.array([[0.0, 2.0], [1.0, 0.0]]))
    Array([2., 1.], dtype=float32)
    """
    return svd(x, compute_uv=False)


def _triangle(function: str, uplo: Any) -> bool:
    if uplo not in (None, "L", "U", "l", "u"):
        raise ValueError(f"{function}: argument 'UPLO' must be 'L' or 'U', got {uplo!r}")
    return uplo in (None, "L", "l")


@public(static=("UPLO", "symmetrize_input"))
def eigh(a: Any, UPLO: Any = None, symmetrize_input: bool = True) -> Any:
    """Rising eigenvalues and eigenvectors (columns) of Hermitian matrices.

    UPLO: the triangle read when `symmetrize_input` is off; else A is replaced by (A + A^H) / 2.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    Array([1., 2.], dtype=float32)
    """
    lower = _triangle("eigh", UPLO)
    a = matrices("eigh", a, square=True)
    vectors, values = spectral.eigh(a, lower=lower, symmetrize_input=symmetrize_input)
    return EighResult(values, vectors)


@public(static=("UPLO", "symmetrize_input"))
def eigvalsh(a: Any, UPLO: Any = "L", *, symmetrize_input: bool = True) -> Any:
    """Rising eigenvalues of Hermitian matrices; see `eigh`.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.eigvalsh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))
    Array([1., 2.], dtype=float32)
    """
    lower = _triangle("eigvalsh", UPLO)
    a = matrices("eigvalsh", a, square=True)
    return spectral.eigh(a, lower=lower, symmetrize_input=symmetrize_input)[1]


@public()
def eig(a: Any) -> Any:
    """Eigenvalues and right eigenvectors (columns) of general matrices, complex.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.eig(jnp.array([[2.0]])).eigenvalues
    Array([2.+0.j], dtype=complex64)
    """
    a = matrices("eig", a, square=True)
    return EigResult(*spectral.eig(a, compute_left_eigenvectors=False))


@public()
def eigvals(a: Any) -> Any:
    """Eigenvalues of general matrices, complex.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.eigvals(jnp.array([[2.0]]))
    Array([2.+0.j], dtype=complex64)
    """
    a = matrices("eigvals", a, square=True)
    return spectral.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]
