"""jato.scipy.fft: discrete cosine transforms, under the names of jax.scipy.fft.

All types are the real part of one complex transform of twice the length, with phases before and after:
J. Makhoul, "A fast cosine transform in one and two dimensions", IEEE Trans. ASSP 28 (1980).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jato.numpy as jnp
import numpy as np
from jato.base.dtypes import is_complex
from jato.jit.eager import public
from jato.numpy.promote import as_array, dtype_of, normalize_axes, promote_dtypes

_NORMS = (None, "backward", "ortho", "forward")
_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


def _phases(type: int, n: int) -> tuple[Any, Any]:
    """What the input and the output are multiplied by."""
    i = np.arange(n)
    ones = np.ones(n)
    if type == 1:
        ones[[0, -1]] = 0.5
        return ones, 2 * np.ones(n)
    if type == 2:
        return ones, 2 * np.exp(-0.5j * np.pi * i / n)
    turn = np.exp(-0.5j * np.pi * i / n)
    if type == 3:
        turn[0] = 0.5
        return turn, 2 * np.ones(n)
    return turn, 2 * np.exp(-0.25j * np.pi * (2 * i + 1) / n)


def _unscaled(x: Any, type: int) -> Any:
    n = x.shape[-1]
    kind = np.result_type(dtype_of(x), np.complex64)
    before, after = (np.asarray(p).astype(kind) for p in _phases(type, n))
    points = 2 * (n - 1) if type == 1 else 2 * n
    return (jnp.fft.fft(x * before, points)[..., :n] * after).real


def _orthogonal_weights(type: int, n: int) -> tuple[Any, Any]:
    """Factors of input and output that make the transform orthogonal."""
    before, after = np.ones(n), np.ones(n)
    if type == 1:
        before[[0, -1]] = math.sqrt(2)
        after[[0, -1]] = math.sqrt(0.5)
        return before, after / math.sqrt(2 * (n - 1))
    if type == 2:
        after[0] = math.sqrt(0.5)
    elif type == 3:
        before[0] = math.sqrt(2)
    return before, after / math.sqrt(2 * n)


def _transform(x: Any, type: int, norm: str | None, inverse: bool) -> Any:
    """Along the last axis."""
    type = _INVERSE[type] if inverse else type
    n = x.shape[-1]
    if norm == "ortho":
        before, after = (w.astype(x.dtype) for w in _orthogonal_weights(type, n))
        return _unscaled(x * before, type) * after
    scaled = norm == "forward" if not inverse else norm != "forward"
    factor = 1 / (2 * (n - 1) if type == 1 else 2 * n) if scaled else 1
    return _unscaled(x, type) * factor


def _fitted(x: Any, n: int, axis: int) -> Any:
    have = x.shape[axis]
    if n <= have:
        return x[(slice(None),) * axis + (slice(n),)]
    return jnp.pad(x, [(0, n - have if i == axis else 0) for i in range(x.ndim)])


@public(static=("function", "type", "sizes", "axes", "norm", "inverse"))
def _cosine(
    x: Any, function: str, type: int, sizes: Any, axes: tuple[int, ...], norm: str | None, inverse: bool
) -> Any:  # fmt: skip
    (x,) = promote_dtypes(function, x, inexact=True)
    for n, axis in zip(sizes, axes, strict=True):
        x = jnp.moveaxis(_fitted(x, n, axis), axis, -1)
        x = jnp.moveaxis(_transform(x, type, norm, inverse), -1, axis)
    return x


def _checked(
    function: str, x: Any, type: int, sizes: Any, axes: Any, norm: str | None, inverse: bool, name: str
) -> Any:  # fmt: skip
    x = as_array(function, x, "x")
    if is_complex(dtype_of(x)):
        raise TypeError(f"{function}: argument 'x' must be real, got {dtype_of(x)}")
    if type not in _INVERSE:
        raise ValueError(f"{function}: argument 'type' must be 1, 2, 3 or 4, got {type!r}")
    if norm not in _NORMS:
        raise ValueError(
            f"{function}: argument 'norm' must be 'backward', 'ortho', 'forward' or None, got {norm!r}"
        )
    if axes is None and sizes is not None:
        axes = range(-len(sizes), 0)
    along = normalize_axes(function, None if axes is None else tuple(axes), x.ndim, "axes")
    sizes = [x.shape[i] for i in along] if sizes is None else list(sizes)
    least = 2 if type == 1 else 1
    if len(sizes) != len(along) or not all(hasattr(n, "__index__") and n >= least for n in sizes):
        raise ValueError(
            f"{function}: argument '{name}' must be integers >= {least}, one for each of {len(along)} axes, got "
            f"{tuple(sizes)}"
        )
    return _cosine(
        x, function=function, type=int(type), sizes=tuple(int(n) for n in sizes), axes=along, norm=norm,
        inverse=inverse,
    )  # fmt: skip


def dct(
    x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Any:
    """The discrete cosine transform of real x along an axis, in floats.

    type: 1, 2, 3 or 4, as SciPy numbers them; n: points, cut or padded with zeros; norm: None or
    "backward" (no factor), "forward" (1 / (2 n), or 1 / (2 n - 2) for type 1) or "ortho".
    TypeError for complex x, ValueError for others.

    >>> import jato.numpy as jnp
    >>> dct(jnp.ones(2)).round(3)
    Array([4., 0.], dtype=float32)
    """
    return _checked("dct", x, type, None if n is None else (n,), (axis,), norm, False, "n")


def idct(
    x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Any:
    """The inverse of `dct` of the same type and norm.

    >>> import jato.numpy as jnp
    >>> idct(dct(jnp.array([1.0, 2.0]))).round(3)
    Array([1., 2.], dtype=float32)
    """
    return _checked("idct", x, type, None if n is None else (n,), (axis,), norm, True, "n")


def dctn(
    x: Any,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Any:
    """`dct` along several axes (default: the last ones, as many as in s, or all).

    >>> import jato.numpy as jnp
    >>> dctn(jnp.ones((2, 2))).round(3)
    Array([[16.,  0.],
           [ 0.,  0.]], dtype=float32)
    """
    return _checked("dctn", x, type, s, axes, norm, False, "s")


def idctn(
    x: Any,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Any:
    """The inverse of `dctn` of the same type and norm.

    >>> import jato.numpy as jnp
    >>> idctn(dctn(jnp.ones((1, 2)))).round(3)
    Array([[1., 1.]], dtype=float32)
    """
    return _checked("idctn", x, type, s, axes, norm, True, "s")
