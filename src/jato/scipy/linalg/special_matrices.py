"""Matrices with a pattern.  Those made of vectors take batches of them, along leading axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import jato.numpy as jnp
from jato.base.dtypes import canonicalize, is_complex
from jato.jit.eager import public
from jato.numpy.promote import as_array, broadcast, common_shape, dtype_of, promote_dtypes
from jato.ops import elementwise, structural


@public()
def block_diag(*arrs: Any) -> Any:
    """Matrices along the diagonal of a larger one, zeros elsewhere.

    >>> import jato.numpy as jnp
    >>> block_diag(jnp.array([[1, 2]]), jnp.array([3]))
    Array([[1, 2, 0],
           [0, 0, 3]], dtype=int32)
    """
    if not arrs:
        return structural.full((1, 0), 0, np.dtype("float32"))
    items = promote_dtypes("block_diag", *arrs)
    for i, x in enumerate(items):
        if len(x.shape) > 2:
            raise ValueError(
                f"block_diag: argument {i} must have rank 2 or less, got shape {x.shape}"
            )
    blocks = [structural.reshape(x, (1,) * (2 - len(x.shape)) + x.shape) for x in items]
    width = sum(x.shape[1] for x in blocks)
    rows, before = [], 0
    for x in blocks:
        zero = np.zeros((), dtype_of(x))[()]
        rows.append(structural.pad(x, zero, [(0, 0, 0), (before, width - before - x.shape[1], 0)]))
        before += x.shape[1]
    return structural.concatenate(rows, 0)


@public()
def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix with c for its first column, r (default: conj(c)) for its first row, and constant
    diagonals; c and r are vectors, or batches of them.

    >>> import jato.numpy as jnp
    >>> toeplitz(jnp.array([1, 2]), jnp.array([1, 3, 4]))
    Array([[1, 3, 4],
           [2, 1, 3]], dtype=int32)
    """
    if r is None:
        (c,) = promote_dtypes("toeplitz", c)
        r = elementwise.conj(c) if is_complex(dtype_of(c)) else c
    c, r = promote_dtypes("toeplitz", c, r)
    c, r = (x if x.shape else structural.reshape(x, (1,)) for x in (c, r))
    lead = common_shape("toeplitz", (c.shape[:-1], r.shape[:-1]))
    m, n = c.shape[-1], r.shape[-1]
    if 0 in (m, n):
        return structural.full((*lead, m, n), 0, dtype_of(c))
    rank = len(lead)
    c, r = broadcast(c, (*lead, m)), broadcast(r, (*lead, n))
    rest = structural.slice_in_dim(r, 1, n, axis=-1)
    line = structural.concatenate([structural.rev(c, (rank,)), rest], rank)
    index = np.arange(m - 1, -1, -1)[:, None] + np.arange(n)[None]
    return line[..., index]


@public(static=("n",))
def hilbert(n: int) -> Any:
    """The matrix of 1 / (i + j + 1).

    >>> hilbert(2)
    Array([[1.        , 0.5       ],
           [0.5       , 0.33333334]], dtype=float32)
    """
    i = np.arange(n)
    found = promote_dtypes("hilbert", 1.0 / (i[:, None] + i[None] + 1), inexact=True)[0]
    return structural.reshape(found, (n, n))


def _vectors(function: str, argument: str, x: Any, least: int = 1, inexact: bool = False) -> Any:
    (x,) = promote_dtypes(function, as_array(function, x, argument), inexact=inexact)
    x = x if x.shape else x.reshape(1)
    if x.shape[-1] < least:
        raise ValueError(
            f"{function}: the last axis of argument '{argument}' must have {least} elements or more, got "
            f"shape {x.shape}"
        )
    return x


def _size(function: str, n: Any, least: int = 0, argument: str = "n") -> int:
    if not hasattr(n, "__index__") or n.__index__() < least:
        raise ValueError(
            f"{function}: argument '{argument}' must be an integer >= {least}, got {n!r}"
        )
    return int(n.__index__())


@public()
def circulant(c: Any) -> Any:
    """The matrix whose columns are c, shifted in a circle: c[(i - j) mod n].

    >>> import jato.numpy as jnp
    >>> circulant(jnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    c = _vectors("circulant", "c", c, 0)
    i = np.arange(c.shape[-1])
    return c[..., (i[:, None] - i) % max(1, len(i))]


@public()
def companion(a: Any) -> Any:
    """The matrix whose eigenvalues are the zeros of a polynomial, coefficients from the highest power.

    a: (..., n), n >= 2 (else ValueError); the result is (..., n - 1, n - 1), of floats.

    >>> import jato.numpy as jnp
    >>> companion(jnp.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    a = _vectors("companion", "a", a, 2, inexact=True)
    top = -a[..., 1:] / a[..., :1]
    n = top.shape[-1]
    rest = jnp.broadcast_to(jnp.eye(n - 1, n, dtype=a.dtype), (*a.shape[:-1], n - 1, n))
    return jnp.concatenate([top[..., None, :], rest], -2)


@public(static=("n", "mode"))
def convolution_matrix(a: Any, n: int, mode: str = "full") -> Any:
    """The matrix C with C @ v = convolve(a, v, mode) for vectors v of n elements.

    a: (..., m); the rows are m + n - 1 ("full"), max(m, n) ("same") or max(m, n) - min(m, n) + 1
    ("valid").  ValueError for another mode, n < 1 and an empty a.

    >>> import jato.numpy as jnp
    >>> convolution_matrix(jnp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)
    """
    a, n = _vectors("convolution_matrix", "a", a), _size("convolution_matrix", n, 1)
    m = a.shape[-1]
    rows, skipped = {
        "full": (m + n - 1, 0),
        "same": (max(m, n), (min(m, n) - 1) // 2),
        "valid": (max(m, n) - min(m, n) + 1, min(m, n) - 1),
    }.get(mode, (0, 0))
    if not rows:
        raise ValueError(
            f"convolution_matrix: argument 'mode' must be 'full', 'same' or 'valid', got {mode!r}"
        )
    index = np.arange(rows)[:, None] - np.arange(n) + skipped
    return jnp.where((index >= 0) & (index < m), a[..., np.clip(index, 0, m - 1)], 0)


def dft(n: int, scale: str | None = None, *, dtype: Any = None) -> Any:
    """The matrix of the discrete Fourier transform, exp(-2 pi i j k / n).

    scale: None, "sqrtn" (by 1 / sqrt(n)) or "n" (by 1 / n); dtype: a complex one.  ValueError for
    others.

    >>> dft(2).real
    Array([[ 1.,  1.],
           [ 1., -1.]], dtype=float32)
    """
    n = _size("dft", n)
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"dft: argument 'scale' must be None, 'sqrtn' or 'n', got {scale!r}")
    i = np.arange(n)
    found = np.exp(-2j * np.pi * (i[:, None] * i % max(n, 1)) / max(n, 1))
    divisor = {None: 1, "sqrtn": math.sqrt(n), "n": n}[scale]
    kind = canonicalize(np.complex128 if dtype is None else dtype)
    if not is_complex(kind):
        raise ValueError(f"dft: argument 'dtype' must be complex, got {kind}")
    return jnp.asarray((found / max(divisor, 1)).astype(kind))


@public()
def fiedler(a: Any) -> Any:
    """The matrix of |a[i] - a[j]|.

    >>> import jato.numpy as jnp
    >>> fiedler(jnp.array([1, 4]))
    Array([[0, 3],
           [3, 0]], dtype=int32)
    """
    a = _vectors("fiedler", "a", a, 0)
    return jnp.abs(a[..., :, None] - a[..., None, :])


@public()
def fiedler_companion(a: Any) -> Any:
    """A matrix of five diagonals whose eigenvalues are the zeros of a polynomial.

    a: (..., n), coefficients from the highest power; the result is (..., n - 1, n - 1), of floats.
    M. Fiedler, "A note on companion matrices", Linear Algebra Appl. 372 (2003).

    >>> import jato.numpy as jnp
    >>> fiedler_companion(jnp.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    a = _vectors("fiedler_companion", "a", a, 1, inexact=True)
    n = a.shape[-1] - 1
    c = -a[..., 1:] / a[..., :1]
    # The product of matrices with blocks (c[k], 1; 1, 0) along the diagonal: first those that begin at
    # even places, then those at odd ones.
    odd, even = (_blocks(c, n, start) for start in (0, 1))
    return odd @ even


def _blocks(c: Any, n: int, start: int) -> Any:
    diagonal, beside = np.zeros(n, bool), np.zeros(max(n - 1, 0))
    kept = np.ones(n)
    for k in range(start, n, 2):
        diagonal[k] = True
        kept[k : k + 2] = 0
        if k + 1 < n:
            beside[k] = 1
    pattern = np.diag(kept) + np.diag(beside, 1) + np.diag(beside, -1)
    return jnp.where(np.diag(diagonal), c[..., None, :], pattern.astype(dtype_of(c)))


def hadamard(n: int, dtype: Any = int) -> Any:
    """Sylvester's matrix of 1 and -1 with orthogonal rows; n must be a power of 2 (else ValueError).

    >>> hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)
    """
    n = _size("hadamard", n, 1)
    if n & (n - 1):
        raise ValueError(f"hadamard: argument 'n' must be a power of 2, got {n}")
    found = np.ones((1, 1), int)
    while len(found) < n:
        found = np.block([[found, found], [found, -found]])
    return jnp.asarray(found.astype(canonicalize(dtype)))


@public()
def hankel(c: Any, r: Any = None) -> Any:
    """The matrix with c for its first column, r (default: zeros) for its last row and constant
    antidiagonals; r[0] is not used.

    >>> import jato.numpy as jnp
    >>> hankel(jnp.array([1, 2]), jnp.array([9, 3, 4]))
    Array([[1, 2, 3],
           [2, 3, 4]], dtype=int32)
    """
    c = _vectors("hankel", "c", c, 0)
    r = jnp.zeros_like(c) if r is None else _vectors("hankel", "r", r, 0)
    c, r = promote_dtypes("hankel", c, r)
    lead = common_shape("hankel", (c.shape[:-1], r.shape[:-1]))
    c, r = (broadcast(x, (*lead, x.shape[-1])) for x in (c, r))
    line = jnp.concatenate([c, r[..., 1:]], -1)
    return line[..., np.arange(c.shape[-1])[:, None] + np.arange(r.shape[-1])]


def helmert(n: int, full: bool = False) -> Any:
    """Orthonormal contrasts: rows (1, ..., 1, -k, 0, ...) / sqrt(k (k + 1)), k = 1, ..., n - 1.

    full: with 1 / sqrt(n) as the first row.  ValueError for n < 1.

    >>> helmert(2)
    Array([[ 0.70710677, -0.70710677]], dtype=float32)
    """
    n = _size("helmert", n, 1)
    k, i = np.arange(1, n)[:, None], np.arange(n)
    rows = np.where(i < k, 1, np.where(i == k, -k, 0)) / np.sqrt(k * (k + 1))
    if full:
        rows = np.concatenate([np.full((1, n), 1 / math.sqrt(n)), rows])
    return jnp.asarray(rows.astype(canonicalize(np.float64)))


def _exactly(rows: list[list[int]], n: int) -> Any:
    """Integers of any size, rounded once."""
    found = np.array(rows, dtype=object).reshape(n, n)
    with np.errstate(over="ignore"):
        return jnp.asarray(found.astype(np.float64).astype(canonicalize(np.float64)))


def invhilbert(n: int) -> Any:
    """The inverse of the Hilbert matrix, from exact integers.

    (-1)**(i+j) (i+j+1) C(n+i, n-j-1) C(n+j, n-i-1) C(i+j, i)**2.  ValueError unless n is an integer >= 0.

    >>> invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], dtype=float32)
    """
    n = _size("invhilbert", n)

    def element(i: int, j: int) -> int:
        outer = math.comb(n + i, n - j - 1) * math.comb(n + j, n - i - 1)
        return (-1) ** (i + j) * (i + j + 1) * outer * math.comb(i + j, i) ** 2

    return _exactly([[element(i, j) for j in range(n)] for i in range(n)], n)


def _pascal_kind(function: str, kind: str | None) -> str:
    if kind not in (None, "symmetric", "lower", "upper"):
        raise ValueError(
            f"{function}: argument 'kind' must be 'symmetric', 'lower' or 'upper', got {kind!r}"
        )
    return kind or "symmetric"


def pascal(n: int, kind: str | None = None) -> Any:
    """Binomial coefficients C(i + j, i) ("symmetric"), C(i, j) ("lower") or C(j, i) ("upper"); floats.

    ValueError for another kind and unless n is an integer >= 0.

    >>> pascal(3)
    Array([[1., 1., 1.],
           [1., 2., 3.],
           [1., 3., 6.]], dtype=float32)
    """
    n = _size("pascal", n)
    element = {
        "symmetric": lambda i, j: math.comb(i + j, i),
        "lower": math.comb,
        "upper": lambda i, j: math.comb(j, i),
    }[_pascal_kind("pascal", kind)]
    return _exactly([[element(i, j) for j in range(n)] for i in range(n)], n)


def invpascal(n: int, kind: str | None = None) -> Any:
    """The inverse of `pascal(n, kind)`, from exact integers.

    >>> invpascal(2)
    Array([[ 2., -1.],
           [-1.,  1.]], dtype=float32)
    """
    n = _size("invpascal", n)
    kind = _pascal_kind("invpascal", kind)
    lower = np.array(
        [[(-1) ** (i + j) * math.comb(i, j) for j in range(n)] for i in range(n)], dtype=object
    ).reshape(n, n)
    found = {"symmetric": lower.T.dot(lower), "lower": lower, "upper": lower.T}[kind]
    return _exactly(found.tolist(), n)


@public()
def leslie(f: Any, s: Any) -> Any:
    """The matrix of a population model: f, fecundities, in the first row, s, survivals, below the diagonal.

    f: (..., n), n >= 2; s: (..., n - 1).  ValueError for other shapes.

    >>> import jato.numpy as jnp
    >>> leslie(jnp.array([1, 2]), jnp.array([3]))
    Array([[1, 2],
           [3, 0]], dtype=int32)
    """
    f, s = promote_dtypes("leslie", _vectors("leslie", "f", f, 2), _vectors("leslie", "s", s, 1))
    n = f.shape[-1]
    if s.shape[-1] != n - 1:
        raise ValueError(
            f"leslie: argument 's' must have {n - 1} elements, one less than 'f', got shape {s.shape}"
        )
    lead = common_shape("leslie", (f.shape[:-1], s.shape[:-1]))
    f, s = broadcast(f, (*lead, n)), broadcast(s, (*lead, n - 1))
    below = jnp.where(
        np.eye(n - 1, n, dtype=bool), jnp.pad(s, [*[(0, 0)] * len(lead), (0, 1)])[..., None, :], 0
    )
    return jnp.concatenate([f[..., None, :], below], -2)
