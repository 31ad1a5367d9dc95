"""jato.numpy.fft: Fourier transforms with NumPy's names and parameters.

Each function brings its axes to the end, cuts or pads them to the length asked for, and binds
ops/fft.py; `norm` scales the result.  Computed in the precision of the operand; integers become
float32 (float64 with x64).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jato.base.dtypes import canonicalize, is_complex
from jato.jit.eager import public
from jato.numpy.creation import placed_on
from jato.numpy.ranges import arange
from jato.numpy.rearrangement import roll
from jato.numpy.promote import as_array, cast, dtype_of, normalize_axes, normalize_axis, promote_dtypes
from jato.ops import elementwise, structural
from jato.ops.fft import FFT_PRIMITIVE

_NORMS = ("backward", "ortho", "forward")
_STATIC = ("n", "axis", "norm")
_STATIC_N = ("s", "axes", "norm")


def _length(function: str, n: Any) -> int:
    try:
        length = n.__index__()
    except (AttributeError, TypeError):
        raise TypeError(f"{function}: a length must be an integer, got {n!r}") from None
    if length < 1:
        raise ValueError(f"{function}: a length must be positive, got {length}")
    return length


def _fitted(x: Any, shape: Sequence[int]) -> Any:
    """x with its last axes cut or padded with zeros to `shape`."""
    lead = len(x.shape) - len(shape)
    changes = [want - have for want, have in zip(shape, x.shape[lead:], strict=True)]
    if not any(changes):
        return x
    zero = np.zeros((), dtype_of(x))[()]
    return structural.pad(x, zero, [*[(0, 0, 0)] * lead, *((0, c, 0) for c in changes)])


def _scaled(x: Any, norm: str | None, inverse: bool, points: int) -> Any:
    """The result of an unscaled forward or a 1/points inverse transform, in the norm asked for."""
    if norm == "ortho":
        factor = math.sqrt(points) if inverse else 1 / math.sqrt(points)
    elif norm == "forward":
        factor = float(points) if inverse else 1.0 / points
    else:
        return x
    return elementwise.mul(x, np.asarray(factor, dtype_of(x))[()])


def _transform(function: str, kind: str, a: Any, s: Any, axes: Any, norm: Any) -> Any:
    if norm is not None and norm not in _NORMS:
        raise ValueError(
            f"{function}: argument 'norm' must be 'backward', 'ortho' or 'forward', got {norm!r}"
        )
    x = promote_dtypes(function, a, inexact=True)[0]
    dtype = dtype_of(x)
    if np.dtype(dtype).itemsize == 2:
        x = cast(x, np.dtype("float32"))
    rank = len(x.shape)
    if kind == "rfft" and is_complex(dtype):
        raise ValueError(f"{function}: argument 'a' must be real, got dtype {dtype}")
    if kind == "irfft" and not is_complex(dtype):
        x = cast(x, np.result_type(dtype_of(x), np.complex64))
    if axes is None:
        axes = range(rank) if s is None else range(rank - len(s), rank)
    places = [normalize_axis(function, axis, rank, "axes") for axis in axes]
    if s is not None and len(s) != len(places):
        raise ValueError(f"{function}: as many lengths as axes are needed, got {s} and {tuple(axes)}")
    if len(set(places)) != len(places):  # an axis named twice is transformed twice
        return _one_by_one(function, kind, x, s, places, norm)
    if not places:
        return x if kind == "irfft" or is_complex(dtype) else cast(x, np.result_type(dtype_of(x), np.complex64))
    lead = [i for i in range(rank) if i not in places]
    moved = structural.transpose(x, (*lead, *places)) if places != list(range(rank - len(places), rank)) else x
    extents = list(moved.shape[len(lead) :])
    lengths = [n if s is None or s[i] is None or s[i] == -1 else _length(function, s[i])
               for i, n in enumerate(extents)]  # fmt: skip
    if kind == "irfft":
        if s is None or s[-1] in (None, -1):
            lengths[-1] = 2 * (extents[-1] - 1)
        shape = [*lengths[:-1], lengths[-1] // 2 + 1]
    else:
        shape = lengths
    if min(lengths) < 1:
        raise ValueError(f"{function}: invalid number of data points ({min(lengths)}) along an axis")
    out = FFT_PRIMITIVE.bind(_fitted(moved, shape), kind=kind, lengths=tuple(lengths))
    out = _scaled(out, norm, kind in ("ifft", "irfft"), math.prod(lengths))
    if moved is x:
        return out
    order = [*lead, *places]
    return structural.transpose(out, tuple(order.index(i) for i in range(rank)))


def _one_by_one(function: str, kind: str, x: Any, s: Any, places: list[int], norm: Any) -> Any:
    full = {"rfft": "fft", "irfft": "ifft"}.get(kind, kind)
    steps = list(enumerate(places))
    for i, axis in reversed(steps) if kind != "irfft" else steps:
        this = kind if i == len(places) - 1 else full
        x = _transform(function, this, x, None if s is None else (s[i],), (axis,), norm)
    return x


def _single(function: str, kind: str, a: Any, n: Any, axis: Any, norm: Any) -> Any:
    if not hasattr(axis, "__index__"):
        raise ValueError(f"{function}: argument 'axis' must be an integer, got {axis!r}")
    return _transform(function, kind, a, None if n is None else (_length(function, n),), (axis,), norm)


@public(static=_STATIC)
def fft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    """The discrete Fourier transform along an axis, complex.

    n: length the axis is cut or padded to; norm: "backward" (no scale), "ortho", "forward" (1/n).

    >>> import jato.numpy as jnp
    >>> jnp.fft.fft(jnp.array([1.0, 1j]))
    Array([1.+1.j, 1.-1.j], dtype=complex64)
    """
    return _single("fft", "fft", a, n, axis, norm)


@public(static=_STATIC)
def ifft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    """The inverse of `fft`.

    >>> import jato.numpy as jnp
    >>> jnp.fft.ifft(jnp.array([1 + 1j, 1 - 1j]))
    Array([1.+0.j, 0.+1.j], dtype=complex64)
    """
    return _single("ifft", "ifft", a, n, axis, norm)


@public(static=_STATIC)
def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    """The first n // 2 + 1 elements of `fft` of real numbers; the others are their conjugates.

    >>> import jato.numpy as jnp
    >>> jnp.fft.rfft(jnp.array([1.0, 1.0, 1.0, 1.0]))
    Array([4.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)
    """
    return _single("rfft", "rfft", a, n, axis, norm)


@public(static=_STATIC)
def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    """The inverse of `rfft`: real numbers, n of them (by default 2 (m - 1) of m elements).

    >>> import jato.numpy as jnp
    >>> jnp.fft.irfft(jnp.array([4.0, 0.0, 0.0]))
    Array([1., 1., 1., 1.], dtype=float32)
    """
    return _single("irfft", "irfft", a, n, axis, norm)


@public(static=_STATIC)
def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    """The real spectrum of a signal with Hermitian symmetry, given its first half.

    >>> import jato.numpy as jnp
    >>> jnp.fft.hfft(jnp.array([1.0, 0.0]))
    Array([1., 1.], dtype=float32)
    """
    x = promote_dtypes("hfft", a, inexact=True)[0]
    return _single("hfft", "irfft", elementwise.conj(x) if is_complex(dtype_of(x)) else x,
                   n, axis, _swapped(norm))  # fmt: skip


@public(static=_STATIC)
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    """The inverse of `hfft`.

    >>> import jato.numpy as jnp
    >>> jnp.fft.ihfft(jnp.array([1.0, 1.0]))
    Array([1.-0.j, 0.-0.j], dtype=complex64)
    """
    return elementwise.conj(_single("ihfft", "rfft", a, n, axis, _swapped(norm)))


def _swapped(norm: Any) -> Any:
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


@public(static=_STATIC_N)
def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Any:
    """`fft` over two axes.

    >>> import jato.numpy as jnp
    >>> jnp.fft.fft2(jnp.array([[1.0, 1j]]))
    Array([[1.+1.j, 1.-1.j]], dtype=complex64)
    """
    return _transform("fft2", "fft", a, s, axes, norm)


@public(static=_STATIC_N)
def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Any:
    """`ifft` over two axes.

    >>> import jato.numpy as jnp
    >>> jnp.fft.ifft2(jnp.array([[1 + 1j, 1 - 1j]]))
    Array([[1.+0.j, 0.+1.j]], dtype=complex64)
    """
    return _transform("ifft2", "ifft", a, s, axes, norm)


@public(static=_STATIC_N)
def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Any:
    """`rfft` over the last of two axes, `fft` over the other.

    >>> import jato.numpy as jnp
    >>> jnp.fft.rfft2(jnp.ones((1, 2)))
    Array([[2.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _transform("rfft2", "rfft", a, s, axes, norm)


@public(static=_STATIC_N)
def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Any:
    """The inverse of `rfft2`.

    >>> import jato.numpy as jnp
    >>> jnp.fft.irfft2(jnp.array([[2.0, 0.0]]))
    Array([[1., 1.]], dtype=float32)
    """
    return _transform("irfft2", "irfft", a, s, axes, norm)


@public(static=_STATIC_N)
def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    """`fft` over several axes, by default all.

    >>> import jato.numpy as jnp
    >>> jnp.fft.fftn(jnp.array([[1.0, 1j]]))
    Array([[1.+1.j, 1.-1.j]], dtype=complex64)
    """
    return _transform("fftn", "fft", a, s, axes, norm)


@public(static=_STATIC_N)
def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    """The inverse of `fftn`.

    >>> import jato.numpy as jnp
    >>> jnp.fft.ifftn(jnp.array([[1 + 1j, 1 - 1j]]))
    Array([[1.+0.j, 0.+1.j]], dtype=complex64)
    """
    return _transform("ifftn", "ifft", a, s, axes, norm)


@public(static=_STATIC_N)
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    """`rfft` over the last of several axes, `fft` over the others.

    >>> import jato.numpy as jnp
    >>> jnp.fft.rfftn(jnp.ones((1, 2)))
    Array([[2.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _transform("rfftn", "rfft", a, s, axes, norm)


@public(static=_STATIC_N)
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    """The inverse of `rfftn`.

    >>> import jato.numpy as jnp
    >>> jnp.fft.irfftn(jnp.array([[2.0, 0.0]]))
    Array([[1., 1.]], dtype=float32)
    """
    return _transform("irfftn", "irfft", a, s, axes, norm)


# ---- frequencies and shifts


def _frequencies(function: str, n: Any, d: Any, dtype: Any, first: int, count: int) -> Any:
    n = _length(function, n)
    dtype = canonicalize(np.float64 if dtype is None else dtype)
    steps = arange(first, first + count, dtype=dtype)
    return elementwise.div(steps, np.asarray(n * d, dtype)[()])


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of the elements of `fft`, for samples d apart.

    >>> import jato.numpy as jnp
    >>> jnp.fft.fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    count = _length("fftfreq", n)
    steps = _frequencies("fftfreq", n, d, dtype, -(count // 2), count)
    return placed_on(ifftshift(steps), device)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of the elements of `rfft`, for samples d apart.

    >>> import jato.numpy as jnp
    >>> jnp.fft.rfftfreq(4)
    Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    result = _frequencies("rfftfreq", n, d, dtype, 0, _length("rfftfreq", n) // 2 + 1)
    return placed_on(result, device)


def _shift(function: str, x: Any, axes: Any, sign: int) -> Any:
    x = as_array(function, x)
    places = normalize_axes(function, axes, len(x.shape), "axes")
    # to the middle: n // 2 forward, n - n // 2 back
    amounts = tuple(x.shape[i] // 2 if sign > 0 else -(x.shape[i] // 2) for i in places)
    return roll(x, amounts, places) if places else x


@public(static=("axes",))
def fftshift(x: Any, axes: Any = None) -> Any:
    """Moves the element of frequency zero to the middle.

    >>> import jato.numpy as jnp
    >>> jnp.fft.fftshift(jnp.array([0, 1, -1]))
    Array([-1,  0,  1], dtype=int32)
    """
    return _shift("fftshift", x, axes, 1)


@public(static=("axes",))
def ifftshift(x: Any, axes: Any = None) -> Any:
    """The inverse of `fftshift`.

    >>> import jato.numpy as jnp
    >>> jnp.fft.ifftshift(jnp.array([-1, 0, 1]))
    Array([ 0,  1, -1], dtype=int32)
    """
    return _shift("ifftshift", x, axes, -1)
