"""Spectra of signals from transforms of overlapping segments.

P. Welch, "The use of fast Fourier transform for the estimation of power spectra", IEEE Trans. Audio
Electroacoust. 15 (1967).  `_transforms` is what all share; `_segmentation` checks their arguments.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jato.numpy as jnp
import numpy as np
from jato.base.dtypes import is_complex
from jato.base.lazy import LazyModule
from jato.jit.eager import public
from jato.numpy.promote import as_array, dtype_of, normalize_axis, promote_dtypes
from jato.scipy.signal.trends import detrend as without_trend

_windows: Any = LazyModule("scipy.signal.windows")


class _Segmentation(NamedTuple):
    """How a signal is cut and transformed; hashable, what programs are specialized to."""

    length: int
    overlap: int
    points: int  # of the transform
    window: tuple[float, ...]

    @property
    def step(self) -> int:
        return self.length - self.overlap


def _integer(function: str, name: str, value: Any, least: int) -> int:
    if not hasattr(value, "__index__") or value.__index__() < least:
        raise ValueError(
            f"{function}: argument '{name}' must be an integer >= {least}, got {value!r}"
        )
    return int(value.__index__())


def _segmentation(
    function: str, window: Any, nperseg: Any, noverlap: Any, nfft: Any, size: int | None
) -> _Segmentation:
    """size: of the signal; longer segments are cut to it.  Without a size, nperseg is given."""
    if isinstance(window, (str, tuple)):
        length = 256 if nperseg is None else _integer(function, "nperseg", nperseg, 1)
        if size is not None and length > size:
            if nperseg is not None:
                warnings.warn(
                    f"{function}: argument 'nperseg' is {length}, more than the {size} points of the signal; "
                    f"segments have {size}",
                    UserWarning,
                    stacklevel=3,
                )
            length = size
        values = _windows.get_window(window, length)
    else:
        values = np.asarray(window, np.float64)
        if values.ndim != 1:
            raise ValueError(
                f"{function}: argument 'window' must be a name, a tuple or a vector, got shape {values.shape}"
            )
        length = len(values)
        if nperseg is not None and nperseg != length:
            raise ValueError(
                f"{function}: argument 'nperseg' must be the length {length} of the window, got {nperseg}"
            )
        if size is not None and length > size:
            raise ValueError(
                f"{function}: argument 'window' has {length} points, more than the {size} of the signal"
            )
    points = length if nfft is None else _integer(function, "nfft", nfft, 1)
    if points < length:
        raise ValueError(
            f"{function}: argument 'nfft' must be at least the length {length} of a segment, got {points}"
        )
    overlap = length // 2 if noverlap is None else _integer(function, "noverlap", noverlap, 0)
    if overlap >= length:
        raise ValueError(
            f"{function}: argument 'noverlap' must be less than the length {length} of a segment, got {overlap}"
        )
    return _Segmentation(length, overlap, points, tuple(float(w) for w in values))


def _trend_remover(function: str, detrend: Any) -> Callable[[Any], Any]:
    if not detrend:
        return lambda x: x
    if isinstance(detrend, str):
        if detrend not in ("constant", "linear"):
            raise ValueError(
                f"{function}: argument 'detrend' must be 'constant', 'linear', False or a function, got "
                f"{detrend!r}"
            )
        return lambda x: without_trend(x, -1, detrend)
    return detrend  # type: ignore[no-any-return]


def _extended(x: Any, n: int, boundary: str | None) -> Any:
    """x with n more points on either side of the last axis."""
    if boundary is None or n == 0:
        return x
    first, last = x[..., :1], x[..., -1:]
    left, right = x[..., n:0:-1], x[..., -2 : -n - 2 : -1]
    if boundary == "odd":
        left, right = 2 * first - left, 2 * last - right
    elif boundary != "even":
        factor = 1 if boundary == "constant" else 0
        shape = (*x.shape[:-1], n)
        left, right = (jnp.broadcast_to(factor * edge, shape) for edge in (first, last))
    return jnp.concatenate([left, x, right], -1)


def _transforms(x: Any, cut: _Segmentation, detrend: Any, one_sided: bool) -> Any:
    """The transforms of the windowed segments of the last axis: (..., segments, frequencies)."""
    count = (x.shape[-1] - cut.overlap) // cut.step
    index = np.arange(count)[:, None] * cut.step + np.arange(cut.length)
    segments = _trend_remover("", detrend)(x[..., index])
    windowed = segments * np.array(cut.window).astype(x.real.dtype)
    transform = jnp.fft.rfft if one_sided else jnp.fft.fft
    return transform(windowed, cut.points)


def _frequencies(cut: _Segmentation, fs: Any, one_sided: bool) -> Any:
    grid = np.fft.rfftfreq(cut.points) if one_sided else np.fft.fftfreq(cut.points)
    return jnp.asarray(grid) * fs


@public(static=("axis", "cut", "detrend", "one_sided", "boundary", "padded"))
def _stft(
    x: Any, fs: Any, axis: int, cut: _Segmentation, detrend: Any, one_sided: bool, boundary: Any,
    padded: bool,
) -> tuple[Any, Any, Any]:  # fmt: skip
    (x,) = promote_dtypes("stft", x, inexact=True)
    rank = len(x.shape)
    x = _extended(jnp.moveaxis(x, axis, -1), cut.length // 2, boundary)
    if padded:
        more = -(x.shape[-1] - cut.length) % cut.step % cut.length
        x = jnp.pad(x, [*[(0, 0)] * (rank - 1), (0, more)])
    found = _transforms(x, cut, detrend, one_sided) * (1 / sum(cut.window))
    half = cut.length / 2
    times = np.arange(found.shape[-2]) * cut.step + (0 if boundary is not None else half)
    return (
        _frequencies(cut, fs, one_sided),
        jnp.asarray(times) / fs,
        jnp.moveaxis(found, -1, axis),
    )


def stft(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Any, Any, Any]:
    """The short-time Fourier transform of a signal: (frequencies, times, transforms).

    x: the signal along `axis`, which the frequencies take; the times come last.  fs: samples in a unit
    of time; window: a name or tuple of SciPy's, or a vector; nperseg, noverlap: points of a segment,
    and how many the next one shares (default: half); nfft: points of a transform, the rest zeros;
    detrend: "constant", "linear", False or a function of segments along the last axis;
    return_onesided: only frequencies >= 0, for real signals; boundary: by what half a segment on
    either side is added: "zeros", "even", "odd", "constant", or None; padded: zeros make the last
    segment whole.  ValueError for arguments that do not fit; complex results.

    >>> import jato.numpy as jnp
    >>> stft(jnp.ones(8), nperseg=4)[2].shape
    (3, 5)
    """
    if boundary not in (None, "zeros", "even", "odd", "constant"):
        raise ValueError(
            "stft: argument 'boundary' must be 'zeros', 'even', 'odd', 'constant' or None, got "
            f"{boundary!r}"
        )
    x = as_array("stft", x, "x")
    axis = normalize_axis("stft", axis, len(x.shape))
    cut = _segmentation("stft", window, nperseg, noverlap, nfft, x.shape[axis])
    _trend_remover("stft", detrend)
    if boundary in ("even", "odd") and cut.length // 2 >= x.shape[axis]:
        raise ValueError(
            f"stft: boundary={boundary!r} needs more points than the {x.shape[axis]} of the signal"
        )
    one_sided = bool(return_onesided) and not is_complex(dtype_of(x))
    return _stft(
        x, fs, axis=axis, cut=cut, detrend=detrend, one_sided=one_sided, boundary=boundary,
        padded=bool(padded),
    )  # fmt: skip


def _median_bias(n: int) -> float:
    """The median of n variates of the exponential distribution, of mean 1."""
    even = 2 * np.arange(1, (n - 1) // 2 + 1)
    return float(1 + np.sum(1 / (even + 1) - 1 / even))


@public(static=("axis", "cut", "detrend", "one_sided", "scaling", "average"))
def _csd(
    x: Any, y: Any, fs: Any, axis: int, cut: _Segmentation, detrend: Any, one_sided: bool, scaling: str,
    average: str,
) -> tuple[Any, Any]:  # fmt: skip
    same = y is None
    x, *rest = promote_dtypes("csd", x, *([] if same else [y]), inexact=True)
    first = _transforms(jnp.moveaxis(x, axis, -1), cut, detrend, one_sided)
    if same:
        power = jnp.square(jnp.abs(first))
    else:
        power = jnp.conj(first) * _transforms(
            jnp.moveaxis(rest[0], axis, -1), cut, detrend, one_sided
        )
    window = np.array(cut.window)
    if scaling == "density":
        power = power * (1 / float(np.sum(window**2))) / fs
    else:
        power = power * (1 / float(np.sum(window)) ** 2)
    if one_sided:  # the other half of the frequencies; 0 and the highest one stand alone
        twice = np.full(power.shape[-1], 2.0)
        twice[0] = 1
        if cut.points % 2 == 0:
            twice[-1] = 1
        power = power * twice.astype(power.real.dtype)
    if average == "mean":
        power = jnp.mean(power, -2)
    else:
        bias = _median_bias(power.shape[-2])
        middle = lambda x: jnp.median(x, -2) / bias
        power = middle(power) if same else middle(power.real) + 1j * middle(power.imag)
    return _frequencies(cut, fs, one_sided), jnp.moveaxis(power, -1, axis)


def _spectral_density(
    function: str, x: Any, y: Any, fs: Any, window: Any, nperseg: Any, noverlap: Any, nfft: Any,
    detrend: Any, return_onesided: bool, scaling: str, axis: int, average: str,
) -> tuple[Any, Any]:  # fmt: skip
    for name, value, known in (
        ("scaling", scaling, ("density", "spectrum")),
        ("average", average, ("mean", "median")),
    ):
        if value not in known:
            raise ValueError(
                f"{function}: argument '{name}' must be {known[0]!r} or {known[1]!r}, got {value!r}"
            )
    x = as_array(function, x, "x")
    axis = normalize_axis(function, axis, len(x.shape))
    complex_ = is_complex(dtype_of(x))
    if y is not None:
        y = as_array(function, y, "y")
        complex_ = complex_ or is_complex(dtype_of(y))
        if len(y.shape) != len(x.shape) or y.shape[axis] != x.shape[axis]:
            raise ValueError(
                f"{function}: arguments 'x' and 'y' must have as many axes and points, got shapes {x.shape} "
                f"and {y.shape}"
            )
    cut = _segmentation(function, window, nperseg, noverlap, nfft, x.shape[axis])
    _trend_remover(function, detrend)
    return _csd(
        x, y, fs, axis=axis, cut=cut, detrend=detrend, one_sided=bool(return_onesided) and not complex_,
        scaling=scaling, average=average,
    )  # fmt: skip


def csd(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """The cross power spectral density of two signals, by Welch's method: (frequencies, density).

    x, y: signals of equally many points along `axis`; other axes broadcast.  y=None is x, with real
    results; else they are complex.  nperseg: 256 by default; scaling: "density", power in a unit of
    frequency, or "spectrum", power; average: of the segments, "mean" or "median".  The other arguments
    are those of `stft`.  ValueError for arguments that do not fit.

    >>> import jato.numpy as jnp
    >>> csd(jnp.ones(8), jnp.ones(8), nperseg=4)[1].shape
    (3,)
    """
    return _spectral_density(
        "csd", x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average
    )  # fmt: skip


def welch(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """The power spectral density of a signal, by Welch's method: (frequencies, density), real.

    See `csd`.

    >>> import jato.numpy as jnp
    >>> welch(jnp.ones(8), nperseg=4)[1].shape
    (3,)
    """
    return _spectral_density(
        "welch", x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis,
        average,
    )  # fmt: skip


@public(static=("cut", "one_sided", "boundary", "time_axis", "freq_axis"))
def _istft(
    transforms: Any, fs: Any, cut: _Segmentation, one_sided: bool, boundary: bool, time_axis: int,
    freq_axis: int,
) -> tuple[Any, Any]:  # fmt: skip
    (z,) = promote_dtypes("istft", transforms, inexact=True)
    z = jnp.moveaxis(z, (time_axis, freq_axis), (-2, -1))
    inverse = jnp.fft.irfft if one_sided else jnp.fft.ifft
    segments = inverse(z, cut.points)[..., : cut.length]
    window = np.array(cut.window)
    count = z.shape[-2]
    index = np.arange(count)[:, None] * cut.step + np.arange(cut.length)
    size = cut.length + (count - 1) * cut.step
    weights = np.zeros(size)
    for row in index:
        weights[row] += window**2
    scaled = segments * (window * np.sum(window)).astype(segments.real.dtype)
    x = jnp.zeros((*segments.shape[:-2], size), segments.dtype).at[..., index].add(scaled)
    x = x / np.where(weights > 1e-10, weights, 1).astype(x.real.dtype)
    if boundary:
        half = cut.length // 2
        x = x[..., half : size - half]
    times = jnp.arange(x.shape[-1]) / fs
    place = time_axis - (freq_axis < time_axis)
    return times, jnp.moveaxis(x, -1, place)


def istft(
    Zxx: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Any, Any]:
    """The signal of a short-time Fourier transform: (times, signal); the inverse of `stft`.

    Zxx: the transforms along `time_axis` and `freq_axis`; input_onesided: they are those of a real
    signal; boundary: half a segment on either side was added and is taken off.  The others are the
    arguments that `stft` got; nperseg follows from Zxx.  ValueError for arguments that do not fit.

    >>> import jato.numpy as jnp
    >>> istft(stft(jnp.arange(8.0), nperseg=4)[2])[1].round(3)
    Array([0., 1., 2., 3., 4., 5., 6., 7.], dtype=float32)
    """
    z = as_array("istft", Zxx, "Zxx")
    rank = len(z.shape)
    if rank < 2:
        raise ValueError(f"istft: argument 'Zxx' must have two axes or more, got shape {z.shape}")
    time_axis = normalize_axis("istft", time_axis, rank, "time_axis")
    freq_axis = normalize_axis("istft", freq_axis, rank, "freq_axis")
    if time_axis == freq_axis:
        raise ValueError("istft: arguments 'time_axis' and 'freq_axis' must differ")
    bins = z.shape[freq_axis]
    points = 2 * (bins - 1) if input_onesided else bins
    length = points if nperseg is None else _integer("istft", "nperseg", nperseg, 1)
    if nfft is None and input_onesided and length == points + 1:
        nfft = length
    cut = _segmentation("istft", window, length, noverlap, points if nfft is None else nfft, None)
    return _istft(
        z, fs, cut=cut, one_sided=bool(input_onesided), boundary=bool(boundary), time_axis=time_axis,
        freq_axis=freq_axis,
    )  # fmt: skip
