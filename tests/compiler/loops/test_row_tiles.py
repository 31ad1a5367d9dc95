"""Short rows through tiles: values at every size, dtype and layout, against NumPy."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest
from watching import watch

import jato
import jato.nn
import jato.numpy as jnp

RNG = np.random.default_rng(0)
ROWS = (63, 64, 65, 79, 80, 81, 130)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


PROGRAMS = {
    "softmax": (lambda x: jato.nn.softmax(x, -1), softmax),
    "argmax": (lambda x: jnp.argmax(x, -1), lambda x: x.argmax(-1)),
    "argmin": (lambda x: jnp.argmin(x, -1), lambda x: x.argmin(-1)),
    "variance": (lambda x: x.var(-1), lambda x: x.var(-1)),
    "extent": (lambda x: (x.max(-1), x.min(-1)), lambda x: (x.max(-1), x.min(-1))),
    "sum": (lambda x: (x * 2).sum(-1), lambda x: (x * 2).sum(-1)),
    "norm": (
        lambda x: x / jnp.sqrt((x * x).sum(-1, keepdims=True) + 1),
        lambda x: x / np.sqrt((x * x).sum(-1, keepdims=True) + 1),
    ),
    "both": (lambda x: (x - x.mean(-1, keepdims=True), x.max(-1)),
             lambda x: (x - x.mean(-1, keepdims=True), x.max(-1))),
    "part": (lambda x: x[..., 1:].max(-1), lambda x: x[..., 1:].max(-1)),
    "backwards": (lambda x: jnp.argmax(x[..., ::-1], -1), lambda x: x[..., ::-1].argmax(-1)),
}  # fmt: skip


def compare(got, want, rtol=2e-5):
    for g, w in zip(jato.tree.leaves(got), jato.tree.leaves(want), strict=True):
        assert g.shape == np.shape(w)
        np.testing.assert_allclose(np.asarray(g, np.float64), w, rtol, 1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_lengths_of_rows(name):
    ours, numpys = PROGRAMS[name]
    f = jato.jit(ours)
    for length in (2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 41, 63, 64, 65):
        x = RNG.normal(size=(81, length)).astype("float32")
        compare(f(x), numpys(x.astype(np.float64)))


@pytest.mark.parametrize("rows", ROWS)
def test_numbers_of_rows(rows):
    for ours, numpys in PROGRAMS.values():
        x = RNG.normal(size=(rows, 10)).astype("float32")
        compare(jato.jit(ours)(x), numpys(x.astype(np.float64)))


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "int32", "uint32", "float16", "bool", "complex64"]
)
def test_dtypes(dtype):
    x = RNG.integers(0, 2 if dtype == "bool" else 90, (100, 12)).astype(dtype)
    f = jato.jit(lambda x: (x.sum(-1), jnp.any(x, -1), x == x.sum(-1, keepdims=True)))
    wide = x.astype("complex64" if dtype == "complex64" else "float64")
    got, some, same = f(x)
    np.testing.assert_allclose(np.asarray(got, wide.dtype), wide.sum(-1), 2e-3)
    np.testing.assert_array_equal(some, x.any(-1))
    assert same.shape == x.shape


def test_64_bits():
    with jato.enable_x64(True):
        for dtype in ("float64", "int64", "uint64"):
            x = RNG.integers(0, 1 << 40, (100, 12)).astype(dtype)
            f = jato.jit(lambda x: (x.max(-1), jnp.argmax(x, -1), x - x.min(-1, keepdims=True)))
            most, where, above = f(x)
            np.testing.assert_array_equal(most, x.max(-1))
            np.testing.assert_array_equal(where, x.argmax(-1))
            np.testing.assert_array_equal(above, x - x.min(-1, keepdims=True))


def test_several_axes():
    x = RNG.normal(size=(9, 11, 4, 3)).astype("float32")
    compare(jato.jit(lambda x: x.max((2, 3)))(x), x.max((2, 3)))
    compare(jato.jit(lambda x: x.max((1, 3)))(x), x.max((1, 3)))
    compare(jato.jit(lambda x: jato.nn.softmax(x, -1))(x), softmax(x))
    y = RNG.normal(size=(100, 3)).astype("float32")
    compare(jato.jit(lambda x, y: (x * y.reshape(10, 10, 3)).max(-1))(x[0, :1, :1], y),
            (x[0, :1, :1] * y.reshape(10, 10, 3)).max(-1))  # fmt: skip


def test_special_values():
    x = RNG.normal(size=(128, 10)).astype("float32")
    x[3, 4] = np.nan
    x[5, :] = -np.inf
    x[7, 2], x[7, 8] = np.inf, np.inf
    x[9, :] = 0.0
    x[9, 3] = -0.0
    np.testing.assert_array_equal(jato.jit(lambda x: jnp.argmax(x, -1))(x), x.argmax(-1))
    np.testing.assert_array_equal(jato.jit(lambda x: x.max(-1))(x), x.max(-1))


@pytest.mark.parametrize(
    "points, centres, length", [(100, 16, 8), (70, 33, 5), (64, 64, 8), (3, 17, 7)]
)
def test_distances_between_all_pairs(points, centres, length):
    x = RNG.normal(size=(points, length)).astype("float32")
    c = RNG.normal(size=(centres, length)).astype("float32")
    want = ((x[:, None] - c[None]) ** 2).sum(-1)
    compare(jato.jit(lambda x, c: ((x[:, None] - c[None]) ** 2).sum(-1))(x, c), want)
    nearest = jato.jit(lambda x, c: ((x[:, None] - c[None]) ** 2).sum(-1).argmin(1))
    compare(nearest(x, c), want.argmin(1))


def test_one_kernel():
    x = RNG.normal(size=(100, 10)).astype("float32")
    assert len(watch(lambda x: jato.nn.softmax(x, -1), x).kernels) == 1


def test_gradients():
    x = RNG.normal(size=(80, 10)).astype("float32")
    loss = lambda x: (jato.nn.log_softmax(x, -1)[:, 3] * jnp.arange(80)).sum()
    p = softmax(x.astype(np.float64))
    want = (np.eye(10)[3] - p) * np.arange(80)[:, None]
    np.testing.assert_allclose(jato.jit(jato.grad(loss))(x), want, 1e-4, 1e-4)


def test_order_of_memory():
    """Reductions over transposed arrays: values, and no transposed copy where the order of the
    loops is free."""
    x = RNG.normal(size=(130, 65)).astype("float32")
    for axis in (0, 1):
        compare(jato.jit(lambda x: x.T.sum(axis))(x), x.astype(np.float64).T.sum(axis), 1e-4)
        compare(jato.jit(lambda x: (x.T * 2).max(axis))(x), (x.T * 2).max(axis))
        compare(jato.jit(lambda x: jnp.argmax(x.T, axis))(x), x.T.argmax(axis))
        compare(jato.jit(lambda x: jato.nn.softmax(x.T, axis))(x), softmax(x).T if axis == 0
                else softmax(np.ascontiguousarray(x.T)))  # fmt: skip
    y = RNG.normal(size=(70, 70)).astype("float32")
    compare(jato.jit(lambda y: (y + y.T).sum(1))(y), (y + y.T).astype(np.float64).sum(1), 1e-4)
    z = RNG.normal(size=(3, 40, 5, 17)).astype("float32")
    for order in ((3, 1, 0, 2), (0, 3, 1, 2), (2, 0, 3, 1)):
        for axes in ((0,), (3,), (0, 2), (1, 2), (2, 3), (0, 2, 3), (0, 1, 2, 3)):
            want = z.astype(np.float64).transpose(order).var(axes)
            compare(jato.jit(lambda z: z.transpose(order).var(axes))(z), want, 1e-4)
    assert len(watch(lambda x: x.T.sum(1), np.zeros((300, 200), "float32")).kernels) == 1


def test_merged_axes_need_no_division():
    for shape in ((32, 64, 64, 16), (8, 30, 30, 24), (5, 77, 81, 16)):
        x = np.ones(shape, "float32")
        watched = watch(lambda x: x.sum((0, 1, 2)), x)
        assert not any("div i64" in text or "rem i64" in text for text in watched.patterns)
        np.testing.assert_array_equal(watched.results, np.full(shape[-1], np.prod(shape[:-1])))


SHORT_AXES = {
    "channels": (lambda x, c: (x - c) / (c + 3), lambda x, c: (x - c) / (c + 3)),
    "to front": (lambda x, c: jnp.moveaxis(x, -1, 0) * 2, lambda x, c: np.moveaxis(x, -1, 0) * 2),
    "stack": (lambda x, c: jnp.stack([x[..., 0], x[..., 1] * 2, x[..., 0] + 1], -1),
              lambda x, c: np.stack([x[..., 0], x[..., 1] * 2, x[..., 0] + 1], -1)),
    "reversed": (lambda x, c: x[..., ::-1] + 1, lambda x, c: x[..., ::-1] + 1),
    "weights": (lambda x, c: (x * c).sum(-1), lambda x, c: (x * c).sum(-1)),
    "columns": (lambda x, c: x[..., 0] * x[..., 1] + x[..., -1],
                lambda x, c: x[..., 0] * x[..., 1] + x[..., -1]),
}  # fmt: skip


@pytest.mark.parametrize("name", SHORT_AXES)
@pytest.mark.parametrize("dtype", ("float32", "int32", "float16", "uint8"))
def test_short_axes(name, dtype):
    ours, numpys = SHORT_AXES[name]
    for rows in ((63,), (64,), (65,), (130,), (9, 16), (300,)):
        for length in (2, 3, 4, 5, 6, 7, 8, 9):
            x = RNG.integers(1, 9, (*rows, length)).astype(dtype)
            c = RNG.integers(1, 5, length).astype("float32")
            got = jato.jit(ours)(x, c)
            want = numpys(x.astype(np.float64), c.astype(np.float64))
            if dtype == "uint8" and name == "channels":
                want = (x.astype(np.float64) - c) / (c + 3)
            np.testing.assert_allclose(np.asarray(got, np.float64), want, 1e-3)


@pytest.mark.parametrize("rows", (64, 65, 200))
def test_small_matrices(rows):
    for n in (2, 3, 4):
        a = RNG.normal(size=(rows, n, n)).astype("float32")
        v = RNG.normal(size=(rows, n)).astype("float32")
        compare(
            jato.jit(lambda a, v: (a * v[:, None, :]).sum(-1))(a, v), np.einsum("rij,rj->ri", a, v)
        )
        compare(jato.jit(lambda a: a.swapaxes(1, 2) + jnp.eye(n))(a), a.swapaxes(1, 2) + np.eye(n))
    u, w = RNG.normal(size=(2, rows, 3)).astype("float32")
    compare(jato.jit(jnp.cross)(u, w), np.cross(u, w), 1e-4)


def test_rows_with_axes_between():
    """Rows that are further apart than they are long, at the end of the memory that is theirs."""
    page = mmap.PAGESIZE
    for shape in ((70, 3, 5), (81, 2, 9), (64, 7, 3), (100, 4, 17)):
        size = int(np.prod(shape)) * 4
        space = -(-size // page) * page
        memory = mmap.mmap(-1, space + page)
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(base + space), page, 0) == 0
        x = np.frombuffer(memory, np.float32, size // 4, space - size).reshape(shape)
        x[...] = RNG.normal(size=shape)
        for f, g in (
            (lambda x: x.transpose(1, 0, 2) + 1, lambda x: x.transpose(1, 0, 2) + 1),
            (lambda x: jato.nn.softmax(x.transpose(1, 0, 2), -1),
             lambda x: softmax(x.transpose(1, 0, 2))),
            (lambda x: x.transpose(1, 0, 2)[..., ::-1] * 2, lambda x: x.transpose(1, 0, 2)[..., ::-1] * 2),
            (lambda x: x[:, 1].max(-1), lambda x: x[:, 1].max(-1)),
            (lambda x: x[:, :, 0] + x[:, :, -1], lambda x: x[:, :, 0] + x[:, :, -1]),
        ):  # fmt: skip
            compare(jato.jit(f)(x), g(x))


def test_small_reductions_before_a_transposition():
    for shape in ((5, 63, 15), (3, 70, 70), (8, 64, 9)):
        x = RNG.normal(size=shape).astype("float32")
        compare(jato.jit(lambda x: x.max(0).T)(x), x.max(0).T)
        compare(jato.jit(lambda x: jnp.argmax(x, 0).T)(x), x.argmax(0).T)
        compare(jato.jit(lambda x: x.sum(0).T + 1)(x), x.sum(0).T + 1)


def test_small_reductions_before_a_reshape():
    """As many results as rows, of other axes."""
    a, b = RNG.integers(-9, 9, (60, 4)), RNG.integers(-9, 9, (4, 257))
    a, b = a.astype("int32"), b.astype("int32")
    compare(
        jato.jit(lambda a, b: (a[::-1] @ b).reshape(-1) * 2)(a, b), (a[::-1] @ b).reshape(-1) * 2
    )
    compare(
        jato.jit(lambda a, b: (a[::-1] @ b).reshape(257, 60)[:, ::-1])(a, b),
        (a[::-1] @ b).reshape(257, 60)[:, ::-1],
    )
    x = (np.eye(2) + RNG.normal(size=(100, 2, 2)) * 0.1).astype("float32")
    want = [x[0]]
    for each in x[1:]:
        want.append(want[-1] @ each)
    compare(jato.jit(lambda x: jato.lax.associative_scan(jnp.matmul, x))(x), np.stack(want))
    f = lambda x: jato.lax.associative_scan(jnp.matmul, x, reverse=True).sum()
    step = RNG.normal(size=x.shape).astype("float32")
    _, along = jato.jvp(f, (x,), (step,))
    compare((jato.jit(jato.grad(f))(x) * step).sum(), along)


def test_pairs_of_rows_apart():
    x = RNG.normal(size=(100, 2, 9)).astype("float32")
    f = lambda x: x.reshape(50, 2, 2, 9).transpose(1, 0, 2, 3).reshape(200, 9).sum(-1)
    compare(jato.jit(f)(x), f(x))
    g = lambda x: (x.reshape(100, 18)[:, ::2] * np.arange(9, dtype="float32")).sum(-1)
    compare(jato.jit(g)(x), g(x))
