"""Convolution and correlation of arrays of any rank.

All are one convolution (ops/window.py), a stencil that fuses with its neighbours.  A Fourier
transform pays only for long kernels; fftconvolve and method="fft" use it.
"""

from __future__ import annotations

from typing import Any

import jato.numpy as jnp
from jato.base.dtypes import is_complex
from jato.jit.eager import public
from jato.numpy.promote import dtype_of, normalize_axes, promote_dtypes
from jato.ops.structural import rev, slice_in_dim
from jato.ops.window import conv_general_dilated

_STATIC = ("mode", "method", "precision", "boundary")
_PAD_MODES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def _check_mode(function: str, mode: Any) -> None:
    if mode not in ("full", "same", "valid"):
        raise ValueError(
            f"{function}: argument 'mode' must be 'full', 'same' or 'valid', got {mode!r}"
        )


def _operands(function: str, in1: Any, in2: Any) -> tuple[Any, Any]:
    in1, in2 = promote_dtypes(function, in1, in2, inexact=True)
    if len(in1.shape) != len(in2.shape):
        raise ValueError(
            f"{function}: in1 and in2 must have as many axes, got shapes {in1.shape} and {in2.shape}"
        )
    if 0 in in1.shape or 0 in in2.shape:
        raise ValueError(f"{function}: empty arrays: shapes {in1.shape} and {in2.shape}")
    return in1, in2


def _swaps(function: str, in1: Any, in2: Any, mode: str) -> bool:
    """'valid' wants the larger array first; one must be larger along every axis."""
    if mode != "valid":
        return False
    first = all(a >= b for a, b in zip(in1.shape, in2.shape, strict=True))
    second = all(a <= b for a, b in zip(in1.shape, in2.shape, strict=True))
    if not (first or second):
        raise ValueError(
            f"{function}: in mode 'valid' one array must be at least as large as the other along "
            f"every axis, got shapes {in1.shape} and {in2.shape}"
        )
    return not first


def _convolution(
    x: Any, kernel: Any, mode: str, early: bool = True, boundary: str = "fill", fillvalue: Any = 0
) -> Any:
    """The convolution of x with a kernel given reversed.

    early: 'same' begins n // 2 elements before x for a kernel of length n, else (n - 1) // 2
    (SciPy's correlate2d differs so from its correlate).
    """
    rank = len(x.shape)
    before = [(n if early else n - 1) // 2 for n in kernel.shape]
    padding = {
        "full": [(n - 1, n - 1) for n in kernel.shape],
        "valid": [(0, 0)] * rank,
        "same": [(low, n - 1 - low) for low, n in zip(before, kernel.shape, strict=True)],
    }[mode]
    if rank == 0:
        return x * kernel
    if mode != "valid" and (boundary != "fill" or fillvalue != 0):
        outside = {"constant_values": fillvalue} if boundary == "fill" else {}
        x, padding = jnp.pad(x, padding, _PAD_MODES[boundary], **outside), [(0, 0)] * rank
    result = conv_general_dilated(
        x.reshape((1, 1, *x.shape)), kernel.reshape((1, 1, *kernel.shape)), (1,) * rank, padding
    )
    return result.reshape(result.shape[2:])


def _all_axes(x: Any) -> tuple[int, ...]:
    return tuple(range(len(x.shape)))


def _convolve(
    function: str, in1: Any, in2: Any, mode: str, boundary: str = "fill", fillvalue: Any = 0
) -> Any:
    _check_mode(function, mode)
    in1, in2 = _operands(function, in1, in2)
    if _swaps(function, in1, in2, mode):
        in1, in2 = in2, in1
    return _convolution(in1, rev(in2, _all_axes(in2)), mode, True, boundary, fillvalue)


def _correlate(
    function: str, in1: Any, in2: Any, mode: str, early: bool = True, boundary: str = "fill",
    fillvalue: Any = 0,
) -> Any:  # fmt: skip
    _check_mode(function, mode)
    in1, in2 = _operands(function, in1, in2)
    if is_complex(dtype_of(in2)):
        in2 = jnp.conj(in2)
    if _swaps(function, in1, in2, mode):
        return rev(_convolution(in2, in1, mode), _all_axes(in1))
    return _convolution(in1, in2, mode, early, boundary, fillvalue)


def _transform_axes(function: str, axes: Any, rank: int) -> tuple[int, ...]:
    found = normalize_axes(function, axes, rank, "axes")
    if not found and rank:
        raise ValueError(f"{function}: argument 'axes' is empty")
    return tuple(sorted(found))


def _by_transform(function: str, in1: Any, in2: Any, mode: str, axes: Any) -> Any:
    """The convolution along axes, by products of Fourier transforms; along others they broadcast."""
    _check_mode(function, mode)
    in1, in2 = _operands(function, in1, in2)
    rank = len(in1.shape)
    if rank == 0:
        return in1 * in2
    along = _transform_axes(function, axes, rank)
    first, second = ([x.shape[i] for i in along] for x in (in1, in2))
    if mode == "valid":
        if not all(a >= b for a, b in zip(first, second, strict=True)):
            if not all(a <= b for a, b in zip(first, second, strict=True)):
                raise ValueError(
                    f"{function}: in mode 'valid' one array must be at least as large as the other along "
                    f"every axis, got shapes {in1.shape} and {in2.shape}"
                )
            in1, in2, first, second = in2, in1, second, first
    sizes = [a + b - 1 for a, b in zip(first, second, strict=True)]
    lengths = [next_fast_length(n) for n in sizes]
    complex_ = is_complex(dtype_of(in1))
    forward, back = (jnp.fft.fftn, jnp.fft.ifftn) if complex_ else (jnp.fft.rfftn, jnp.fft.irfftn)
    product = forward(in1, lengths, along) * forward(in2, lengths, along)
    full = back(product, lengths, along)
    for i, a, b, size in zip(along, first, second, sizes, strict=True):
        start, stop = {
            "full": (0, size), "same": ((b - 1) // 2, (b - 1) // 2 + a), "valid": (b - 1, a),
        }[mode]  # fmt: skip
        full = slice_in_dim(full, start, stop, axis=i)
    return full


def next_fast_length(n: int) -> int:
    """The least number >= n without prime factors greater than 5."""
    while True:
        rest = n
        for p in (2, 3, 5):
            while rest % p == 0:
                rest //= p
        if rest == 1:
            return n
        n += 1


def _correlate_by_transform(in1: Any, in2: Any, mode: str) -> Any:
    _check_mode("correlate", mode)
    in1, in2 = _operands("correlate", in1, in2)
    in2 = jnp.conj(in2) if is_complex(dtype_of(in2)) else in2
    return _by_transform("correlate", in1, rev(in2, _all_axes(in2)), mode, None)


@public(static=("mode", "axes"))
def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """The convolution of two arrays of equal rank, by Fourier transforms, in floats.

    mode: as for `convolve`; axes: those to convolve along (default: all); along others the arrays
    broadcast.  Quicker than `convolve` for long kernels; small values beside large ones lose digits.

    >>> import jato.numpy as jnp
    >>> fftconvolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0])).round(3)
    Array([1., 3., 5., 3.], dtype=float32)
    """
    return _by_transform("fftconvolve", in1, in2, mode, axes)


@public(static=_STATIC)
def convolve(
    in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None
) -> Any:
    """The convolution of two arrays of equal rank, in floats.

    mode: "full" (every overlap), "same" (the shape of in1, centred), "valid" (full overlap);
    method: "auto" and "direct" are the same here, "fft" is `fftconvolve`; precision: no effect, all bits are kept.
    ValueError for other modes, unequal ranks or empty arrays.

    >>> import jato.numpy as jnp
    >>> convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0]), "same")
    Array([1., 3., 5.], dtype=float32)
    """
    _check_method("convolve", method)
    if method == "fft":
        return _by_transform("convolve", in1, in2, mode, None)
    return _convolve("convolve", in1, in2, mode)


def _check_method(function: str, method: str) -> None:
    if method not in ("auto", "direct", "fft"):
        raise ValueError(
            f"{function}: argument 'method' must be 'auto', 'direct' or 'fft', got {method!r}"
        )


def _check_boundary(function: str, in1: Any, in2: Any, boundary: str, fillvalue: Any) -> None:
    if boundary not in _PAD_MODES:
        raise ValueError(
            f"{function}: argument 'boundary' must be 'fill', 'wrap' or 'symm', got {boundary!r}"
        )
    if not isinstance(fillvalue, (int, float, complex)):
        raise TypeError(f"{function}: argument 'fillvalue' must be a number, got {fillvalue!r}")
    for name, x in (("in1", in1), ("in2", in2)):
        if len(getattr(x, "shape", ())) != 2:
            raise ValueError(f"{function}: argument '{name}' must have two axes")


@public(static=(*_STATIC, "fillvalue"))
def convolve2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0,
    precision: Any = None,
) -> Any:  # fmt: skip
    """The convolution of two matrices.  See `convolve`.

    boundary: what lies outside of in1: "fill", `fillvalue`; "wrap", in1 again; "symm", its mirror
    image.  ValueError for another boundary.

    >>> import jato.numpy as jnp
    >>> convolve2d(jnp.ones((2, 2)), jnp.ones((1, 2)), "valid")
    Array([[2.],
           [2.]], dtype=float32)
    """
    _check_boundary("convolve2d", in1, in2, boundary, fillvalue)
    return _convolve("convolve2d", in1, in2, mode, boundary, fillvalue)


@public(static=_STATIC)
def correlate(
    in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None
) -> Any:
    """The cross-correlation of two arrays of equal rank, in floats; in2 is conjugated.

    See `convolve`.

    >>> import jato.numpy as jnp
    >>> correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0]), "valid")
    Array([3., 5.], dtype=float32)
    """
    _check_method("correlate", method)
    if method == "fft":
        return _correlate_by_transform(in1, in2, mode)
    return _correlate("correlate", in1, in2, mode)


@public(static=(*_STATIC, "fillvalue"))
def correlate2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0,
    precision: Any = None,
) -> Any:  # fmt: skip
    """The cross-correlation of two matrices; in2 is conjugated.  See `convolve2d`.

    >>> import jato.numpy as jnp
    >>> correlate2d(jnp.ones((2, 2)), jnp.ones((1, 2)), "valid")
    Array([[2.],
           [2.]], dtype=float32)
    """
    _check_boundary("correlate2d", in1, in2, boundary, fillvalue)
    return _correlate("correlate2d", in1, in2, mode, False, boundary, fillvalue)
