"""Fourier transforms against SciPy's in extended precision: lengths, axes, dtypes, NaN, threads."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft

import jato
import jato.numpy as J

# around vector widths, all radices, primes above them, lengths taken as grids, long real rows of odd length
LENGTHS = (1, 2, 3, 5, 7, 8, 11, 13, 15, 16, 17, 29, 31, 32, 33, 37, 64, 74, 77, 100, 127, 128, 243, 254, 360,
           512, 625, 961, 1009, 1022, 1024, 2187, 4096, 10007, 15015, 65536)  # fmt: skip
BATCHES = ((), (3,), (2, 9), (16,), (33,))


pytestmark = pytest.mark.usefixtures("x64")


def numbers(shape, dtype):
    rng = np.random.default_rng(sum(shape) + len(shape))
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def near(found, wanted, message):
    """To a few roundings of the length of the whole, as good as SciPy."""
    found = np.asarray(found)
    assert found.shape == wanted.shape, message
    scale = np.linalg.norm(wanted) or 1
    error = np.linalg.norm(found - wanted) / scale / np.finfo(found.dtype).eps
    assert error < 4, (message, float(error))


def wide(x):
    return x.astype(np.clongdouble if np.iscomplexobj(x) else np.longdouble)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", LENGTHS)
def test_all_kinds_at_all_lengths(n, dtype):
    for batch in BATCHES:
        if n > 5000 and batch not in ((), (3,)):
            continue
        z = numbers((*batch, n), dtype)
        x, half = np.ascontiguousarray(z.real), np.ascontiguousarray(z[..., : n // 2 + 1])
        single = dtype == "complex64"
        for name, operand in (("fft", z), ("ifft", z), ("fft", x), ("ifft", x), ("rfft", x)):
            found = getattr(J.fft, name)(operand)
            assert found.dtype == dtype
            near(found, getattr(scipy.fft, name)(wide(operand)), (name, operand.dtype, batch))
        found = J.fft.irfft(half, n)
        assert found.dtype == ("float32" if single else "float64")
        near(found, scipy.fft.irfft(wide(half), n), ("irfft", batch))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [
    (1, 1), (3, 1), (1, 3), (5, 7), (16, 16), (17, 33), (64, 9), (300, 8), (37, 20), (1009, 3), (8, 1022),
    (3, 4, 5), (2, 3, 4, 5), (2, 2, 3, 2, 5), (600, 40),
])  # fmt: skip
def test_several_axes(shape, dtype):
    z = numbers(shape, dtype)
    x = np.ascontiguousarray(z.real)
    every = tuple(range(len(shape)))
    for axes in (every, every[1:], every[:-1]):
        near(J.fft.fftn(z, axes=axes), scipy.fft.fftn(wide(z), axes=axes), ("fftn", axes))
        near(J.fft.ifftn(z, axes=axes), scipy.fft.ifftn(wide(z), axes=axes), ("ifftn", axes))
        near(J.fft.fftn(x, axes=axes), scipy.fft.fftn(wide(x), axes=axes), ("fftn real", axes))
        near(J.fft.ifftn(x, axes=axes), scipy.fft.ifftn(wide(x), axes=axes), ("ifftn real", axes))
        half = scipy.fft.rfftn(x, axes=axes)
        near(J.fft.rfftn(x, axes=axes), scipy.fft.rfftn(wide(x), axes=axes), ("rfftn", axes))
        lengths = [shape[i] for i in axes]
        found = J.fft.irfftn(half, lengths, axes=axes)
        near(found, scipy.fft.irfftn(wide(half), lengths, axes=axes), ("irfftn", axes))


def test_whole_numbers_of_a_constant_are_exact():
    for n in (8, 64, 96, 1024, 4096):
        found = np.asarray(J.fft.fft(np.ones(n, np.float32)))
        assert found[0] == n
        assert not found[1:].any()


@pytest.mark.parametrize("n", [24, 25, 74, 1024, 1009])
def test_what_is_not_finite_stays_in_its_row(n):
    x = np.ones((40, n), np.float32)
    x[7, 3], x[20, 0], x[21] = np.nan, np.inf, 1e30
    others = [i for i in range(40) if i not in (7, 20, 21)]
    wanted = np.fft.rfft(np.ones(n))
    for found in (J.fft.rfft(x), J.fft.fft(x)[:, : n // 2 + 1], J.fft.fft(x + 0j)[:, : n // 2 + 1]):
        found = np.asarray(found)
        assert np.isnan(found[7]).all()
        np.testing.assert_allclose(found[others], np.broadcast_to(wanted, (37, n // 2 + 1)), atol=1e-3)


def test_the_first_and_last_of_a_half_spectrum_count_as_real():
    for n in (6, 7, 512, 2048):
        half = np.zeros(n // 2 + 1, np.complex128)
        half[0] = 1 + 5j
        if n % 2 == 0:
            half[-1] = 2 + 3j
        near(J.fft.irfft(half, n), scipy.fft.irfft(wide(half), n), n)


def test_threads_do_not_change_the_result():
    z = numbers((70, 4096), "complex64")
    together = np.asarray(J.fft.fft2(z))
    with jato.set_num_threads(1):
        alone = np.asarray(J.fft.fft2(z))
    np.testing.assert_array_equal(together, alone)


def test_nothing_to_transform():
    for shape in ((0, 4), (3, 0, 8)):
        assert J.fft.fft(np.zeros(shape, np.complex64)).shape == shape
        assert J.fft.rfft(np.zeros(shape, np.float32)).shape == (*shape[:-1], shape[-1] // 2 + 1)


@pytest.mark.parametrize("length", (131072, 131101, 200003))
def test_long_lengths_with_large_factors(length):
    """Beyond some length SciPy makes the tables, and quickly."""
    x = np.random.default_rng(0).normal(size=length).astype("float32")
    want = np.fft.fft(x.astype(np.float64))
    np.testing.assert_allclose(J.fft.fft(x), want, 1e-3, 1e-3 * np.abs(want).max())


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_lengths_below_one_are_refused(name):
    x = J.ones(6) if name in ("rfft", "ihfft") else J.ones(6, "complex64")
    for n in (0, -1, -5):
        with pytest.raises(ValueError, match=r"length must be positive|invalid number"):
            getattr(J.fft, name)(x, n=n)
