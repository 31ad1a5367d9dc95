"""Pictures with channels: moving, cutting, scaling arrays whose last axis is short, against NumPy."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest
from watching import watch

import jato
import jato.numpy as jnp

RNG = np.random.default_rng(5)


def lowered(xp, name):
    """name -> the program in this package (jato.numpy or numpy)."""
    return {
        "crop": lambda x: x[2:-1, 3:-2],
        "flip_rows": lambda x: x[::-1] + x,
        "flip_columns": lambda x: x[:, ::-1],
        "flip_both": lambda x: x[::-1, ::-1],
        "flip_channels": lambda x: x[..., ::-1],
        "every_second": lambda x: x[::2, ::2],
        "every_third_backwards": lambda x: x[:, ::-3],
        "blend": lambda x: x + x[:, ::-1] + x[::-1],
        "pad": lambda x: xp.pad(x, ((1, 2), (3, 4), (0, 0))),
        "pad_channels": lambda x: xp.pad(x, ((0, 0), (1, 0), (0, 2))),
        "pad_edge": lambda x: xp.pad(x, ((1, 2), (3, 4), (0, 0)), mode="edge"),
        "pad_reflect": lambda x: xp.pad(x, ((1, 2), (3, 4), (0, 0)), mode="reflect"),
        "pad_wrap": lambda x: xp.pad(x, ((1, 2), (3, 4), (0, 0)), mode="wrap"),
        "roll": lambda x: xp.roll(x, (1, -2), (0, 1)),
        "roll_channels": lambda x: xp.roll(x, 1, 2) + x,
        "scale_channels": lambda x: x * x[0, 0] + x[-1, -1],
        "scale_pixels": lambda x: x * x[:, :, :1],
        "scale_rows": lambda x: x + x[:, :1] + x[:1],
        "planes": lambda x: xp.stack([x[..., 0], x[..., -1]], -1),
        "alpha": lambda x: xp.concatenate([x, x[..., :1] + x[..., -1:]], -1),
        "rotate": lambda x: xp.rot90(x),
        "chw": lambda x: xp.transpose(x, (2, 0, 1)),
        "repeat": lambda x: xp.repeat(x, 2, 1),
        "tile": lambda x: xp.tile(x, (1, 2, 1)),
        "where": lambda x: xp.where(x[:, ::-1] > x, x, x[::-1]),
    }[name]


NAMES = (
    "crop flip_rows flip_columns flip_both flip_channels every_second every_third_backwards blend pad "
    "pad_channels pad_edge pad_reflect pad_wrap roll roll_channels scale_channels scale_pixels "
    "scale_rows planes alpha rotate chw repeat tile where"
).split()


def picture(shape, dtype="float32"):
    """Small integers: sums and products are exact in every dtype."""
    top = 2 if dtype == "bool" else 7
    return RNG.integers(0, top, shape).astype(dtype)


def same(name, x):
    got, want = jato.jit(lowered(jnp, name))(x), lowered(np, name)(x)
    np.testing.assert_array_equal(np.asarray(got), want, f"{name} of {x.shape} {x.dtype}")


@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_channels(name):
    for channels in (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17):
        same(name, picture((7, 41, channels)))


@pytest.mark.parametrize("name", NAMES)
def test_sizes(name):
    for height, width in ((7, 7), (6, 63), (5, 64), (70, 16), (5, 65), (9, 130), (3, 700), (129, 17)):
        same(name, picture((height, width, 3)))


@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "bool", "int16", "uint32", "float16", "complex64", "int32"]
)
def test_dtypes(dtype):
    for name in NAMES:
        if dtype == "bool" and name in ("scale_rows", "blend", "scale_channels", "alpha", "flip_rows",
                                        "roll_channels"):  # fmt: skip
            continue  # NumPy's sum of truth values is another
        if dtype == "complex64" and name == "where":
            continue
        for channels in (2, 3, 4):
            same(name, picture((9, 150, channels), dtype))


def test_64_bits():
    with jato.enable_x64(True):
        for dtype in ("float64", "int64", "complex128"):
            for name in NAMES:
                if not (dtype == "complex128" and name == "where"):
                    same(name, picture((9, 75, 3), dtype))


@pytest.mark.parametrize("shape", [(4000, 3), (5, 4, 6, 33, 3), (2, 3000, 5), (1, 1, 500, 3), (64, 3, 3)])
def test_other_ranks(shape):
    x, scale = picture(shape), picture(shape[-1:])
    f = jato.jit(lambda x, s: (x - s) * x[..., ::-1] + x[::-1])
    np.testing.assert_array_equal(f(x, scale), (x - scale) * x[..., ::-1] + x[::-1])
    g = jato.jit(lambda x: x * x[..., :1])
    np.testing.assert_array_equal(g(x), x * x[..., :1])


def test_bytes_to_numbers():
    x = RNG.integers(0, 256, (33, 47, 3)).astype("uint8")
    mean, deviation = RNG.random(3).astype("float32"), RNG.random(3).astype("float32") + 0.5
    f = jato.jit(lambda x, m, s: (x.astype("float32") / 255 - m) / s)
    want = (x.astype("float32") / np.float32(255) - mean) / deviation
    np.testing.assert_allclose(f(x, mean, deviation), want, 1e-6, 1e-6)


def test_costly_work_and_special_values():
    x = RNG.normal(size=(20, 70, 3)).astype("float32")
    x[3, 5, 1], x[4, 6, 2], x[5, 7, 0] = np.nan, np.inf, -0.0
    f = jato.jit(lambda x: jnp.exp(x[:, ::-1]) * x[0, 0] + jnp.sin(x))
    with np.errstate(all="ignore"):
        want = np.exp(x[:, ::-1]) * x[0, 0] + np.sin(x)
    np.testing.assert_allclose(f(x), want, 1e-5, 1e-5)


def test_no_gathers_and_no_divisions_in_rows_of_pixels():
    x = picture((64, 200, 3))
    for name in ("crop", "flip_rows", "pad", "flip_columns", "blend", "scale_channels", "scale_pixels"):
        (kernel,) = watch(lowered(jnp, name), x).patterns
        assert "row_tiles" not in kernel, (name, kernel)
        for line in kernel.splitlines():  # of one vector's lanes only
            assert ("div" not in line and "rem" not in line) or "3:i64" in line, (name, kernel)


def test_other_sizes_compile_nothing():
    names = "flip_columns scale_channels scale_pixels pad pad_reflect crop blend"
    for name in names.split():
        sizes = ((40, 70), (50, 170), (33, 1000), (16, 3000), (128, 128), (129, 131))
        patterns = {watch(lowered(jnp, name), picture((*size, 3))).patterns[0] for size in sizes}
        assert len(patterns) == 1, name


libc = ctypes.CDLL(None, use_errno=True)


def between_guard_pages(array, at_end):
    """A copy that ends (or begins) where a page begins (or ends) that must not be touched."""
    page = mmap.PAGESIZE
    room = -(-array.nbytes // page) * page
    area = mmap.mmap(-1, room + 2 * page)
    base = ctypes.addressof(ctypes.c_char.from_buffer(area))
    for guard in (base, base + page + room):
        assert libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(page), 0) == 0
    first = page + (room - array.nbytes if at_end else 0)
    copy = np.frombuffer(area, array.dtype, array.size, first).reshape(array.shape)
    copy[...] = array
    return copy


@pytest.mark.parametrize("at_end", [True, False])
def test_nothing_beyond_the_array_is_read(at_end):
    for channels in (2, 3, 5):
        for width in (16, 17, 64, 65, 99):
            x = picture((5, width, channels))
            guarded = between_guard_pages(x, at_end)
            for name in NAMES:
                got = jato.jit(lowered(jnp, name))(guarded)
                np.testing.assert_array_equal(got, lowered(np, name)(x), name)
