"""Spectra and trends of jato.scipy.signal against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import jato
import jato.numpy as jnp
from jato.scipy import signal

RNG = np.random.default_rng(0)
LINE = RNG.normal(size=301)
MANY = RNG.normal(size=(2, 203, 3))
OTHER = RNG.normal(size=(2, 203, 3))


def close(found: Any, expected: Any) -> None:
    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        assert x.shape == np.shape(y)
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-11)


STFT = [
    {}, {"nperseg": 64}, {"nperseg": 63, "noverlap": 20}, {"nperseg": 32, "nfft": 50},
    {"nperseg": 64, "boundary": None}, {"nperseg": 64, "boundary": "even", "padded": False},
    {"nperseg": 64, "boundary": "odd", "detrend": "linear"}, {"nperseg": 50, "boundary": "constant"},
    {"window": ("tukey", 0.3), "nperseg": 40, "fs": 8.0}, {"window": np.arange(1.0, 21.0), "nperseg": 20},
    {"nperseg": 40, "return_onesided": False, "detrend": "constant"},
    {"nperseg": 40, "detrend": lambda x: x - 1},
]  # fmt: skip


@pytest.mark.parametrize("options", STFT)
@pytest.mark.parametrize(("x", "axis"), [(LINE, -1), (MANY, 1), (LINE * 1j + LINE[::-1], 0)])
@pytest.mark.filterwarnings("ignore:Input data is complex", "ignore:nperseg")
def test_stft(x: np.ndarray, axis: int, options: dict[str, Any]) -> None:
    if not options:
        x = np.concatenate([x, x], axis)  # longer than the default segments
    with jato.enable_x64(True):
        close(signal.stft(x, axis=axis, **options), scipy.signal.stft(x, axis=axis, **options))
    found = signal.stft(
        x.astype(np.complex64 if np.iscomplexobj(x) else np.float32), axis=axis, **options
    )
    assert [y.dtype for y in found] == [np.float32, np.float32, np.complex64]


ISTFT = [
    {"nperseg": 64}, {"nperseg": 63, "noverlap": 40}, {"nperseg": 32, "nfft": 50}, {"fs": 8.0, "nperseg": 40},
    {"nperseg": 64, "boundary": None},
]  # fmt: skip


@pytest.mark.parametrize("options", ISTFT)
@pytest.mark.parametrize(("x", "axis"), [(LINE, -1), (MANY, 1)])
@pytest.mark.filterwarnings("ignore:NOLA")
def test_istft(x: np.ndarray, axis: int, options: dict[str, Any]) -> None:
    z = scipy.signal.stft(x, axis=axis, **options)[2]
    back = dict(
        options,
        boundary=options.get("boundary", "zeros") is not None,
        freq_axis=axis if x.ndim > 1 else -2,
    )
    with jato.enable_x64(True):
        times, found = signal.istft(z, **back)
        expected = scipy.signal.istft(z, **back)
        close([found], [expected[1]])
        # SciPy's times are as many as the first axis is long
        np.testing.assert_allclose(times, np.arange(found.shape[-1]) / options.get("fs", 1))
        if "boundary" not in options:
            signal_again = signal.istft(z, **back)[1]
            # the time axis comes last but for its place among the others
            lined = np.moveaxis(x, axis, -1)
            np.testing.assert_allclose(signal_again[..., : lined.shape[-1]], lined, atol=1e-9)
        two = scipy.signal.stft(x, axis=axis, nperseg=40, return_onesided=False)[2]
        swapped = np.moveaxis(two, -1, 0)
        kept = {
            "input_onesided": False,
            "nperseg": 40,
            "time_axis": 0,
            "freq_axis": axis + 1 if x.ndim > 1 else 1,
        }
        close([signal.istft(swapped, **kept)[1]], [scipy.signal.istft(swapped, **kept)[1]])


DENSITIES = [
    {}, {"nperseg": 64}, {"nperseg": 63, "noverlap": 20}, {"nperseg": 32, "nfft": 51, "scaling": "spectrum"},
    {"nperseg": 40, "average": "median"}, {"nperseg": 40, "detrend": "linear", "fs": 10.0},
    {"nperseg": 40, "return_onesided": False, "detrend": False}, {"window": "boxcar", "nperseg": 21},
]  # fmt: skip


@pytest.mark.parametrize("options", DENSITIES)
@pytest.mark.parametrize("kind", [1, 1j])
@pytest.mark.filterwarnings("ignore:Input data is complex", "ignore:nperseg")
def test_densities(options: dict[str, Any], kind: Any) -> None:
    x, y = kind * MANY + 1, kind * OTHER
    with jato.enable_x64(True):
        close(signal.welch(x, axis=1, **options), scipy.signal.welch(x, axis=1, **options))
        close(signal.csd(x, y, axis=1, **options), scipy.signal.csd(x, y, axis=1, **options))
        alone = signal.csd(x, None, axis=1, **options)
        close(alone, signal.welch(x, axis=1, **options))
    if kind == 1:
        power = jato.jit(lambda x: signal.welch(x, nperseg=64)[1])(np.float32(LINE))
        np.testing.assert_allclose(power, scipy.signal.welch(LINE, nperseg=64)[1], rtol=1e-3)


def test_derivatives_and_maps() -> None:
    with jato.enable_x64(True):
        f = lambda x: jnp.sum(signal.welch(x, nperseg=32)[1] ** 2)
        step = RNG.normal(size=LINE.shape)
        difference = (f(LINE + 1e-6 * step) - f(LINE - 1e-6 * step)) / 2e-6
        np.testing.assert_allclose(np.sum(jato.grad(f)(LINE) * step), difference, rtol=1e-6)
        rows = jato.vmap(lambda x: signal.stft(x, nperseg=32)[2])(MANY[..., 0])
        np.testing.assert_allclose(rows, signal.stft(MANY[..., 0], nperseg=32)[2], rtol=1e-12)


@pytest.mark.parametrize("bp", [0, 50, [20, 150]])
@pytest.mark.parametrize("kind", ["linear", "constant"])
def test_detrend(kind: str, bp: Any) -> None:
    with jato.enable_x64(True):
        for x in (MANY, MANY + 2j * OTHER):
            close([signal.detrend(x, 1, kind, bp)], [scipy.signal.detrend(x, 1, kind, bp)])
    assert signal.detrend(np.arange(5)).dtype == np.float32


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: signal.detrend(LINE, type="square"), ValueError, "detrend: argument 'type'"),
        (lambda: signal.detrend(LINE, bp=900), ValueError, "detrend: argument 'bp'"),
        (lambda: signal.detrend(LINE, overwrite_data=True), NotImplementedError, "'overwrite_data'"),
        (lambda: signal.stft(LINE, nperseg=20, noverlap=20), ValueError, "stft: argument 'noverlap'"),
        (lambda: signal.stft(LINE, nperseg=20, nfft=10), ValueError, "stft: argument 'nfft'"),
        (lambda: signal.stft(LINE, nperseg=0), ValueError, "stft: argument 'nperseg'"),
        (lambda: signal.stft(LINE, boundary="wrap"), ValueError, "stft: argument 'boundary'"),
        (lambda: signal.stft(LINE, nperseg=20, detrend="no"), ValueError, "stft: argument 'detrend'"),
        (lambda: signal.welch(LINE, window=np.ones((2, 2))), ValueError, "welch: argument 'window'"),
        (lambda: signal.welch(LINE, window=np.ones(900)), ValueError, "900 points, more than the 301"),
        (lambda: signal.welch(LINE, window=np.ones(9), nperseg=8), ValueError, "length 9 of the window"),
        (lambda: signal.welch(LINE, scaling="log"), ValueError, "welch: argument 'scaling'"),
        (lambda: signal.csd(LINE, LINE, average="max"), ValueError, "csd: argument 'average'"),
        (lambda: signal.csd(LINE, LINE[1:]), ValueError, "csd: arguments 'x' and 'y'"),
        (lambda: signal.istft(LINE), ValueError, "istft: argument 'Zxx'"),
        (lambda: signal.istft(MANY, time_axis=1, freq_axis=1), ValueError, "must differ"),
        (lambda: signal.welch(LINE, nperseg=400), UserWarning, "segments have 301"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
