"""Patterns: a kernel's text without its shapes.  Shapes of one kind share it, constants stay right."""

from __future__ import annotations

import numpy as np
import pytest
from watching import watch

import jato
import jato.numpy as jnp
from jato.compiler.loops.generalize import generalize
from jato.loopir import interp
from jato.loopir.builder import Builder
from jato.loopir.printer import kernel_text
from jato.loopir.verify import verify


def ones(*shape, dtype="float32"):
    return np.ones(shape, dtype)


def outer(x, y):
    return x[:, None] * y[None, :]


@pytest.mark.parametrize(
    "function, first, others",
    [
        (lambda x: x + 1, [(64,)], [[(100,)], [(4096,)], [(8, 8)], [(3, 5, 7)], [(33,)]]),
        (lambda x: x.T + 1, [(200, 200)], [[(300, 130)], [(65, 200)], [(101, 999)]]),
        (lambda x: x.sum(1), [(64, 64)], [[(100, 64)], [(64, 100)], [(33, 200)]]),
        (lambda x: x.mean(1), [(64, 64)], [[(100, 64)], [(64, 100)], [(33, 200)]]),
        (lambda x: x.var(1), [(64, 65)], [[(100, 80)], [(64, 100)], [(33, 200)]]),
        (lambda x: x.var(1), [(64, 10)], [[(100, 33)], [(65, 64)], [(5000, 16)]]),
        (lambda x: x + jnp.linspace(0, 1, x.shape[0]), [(64,)], [[(100,)], [(77,)]]),
        (lambda x: x[jnp.arange(5) - 3], [(64,)], [[(100,)], [(77,)]]),
        (lambda x: x.sum(0), [(500, 500)], [[(400, 500)], [(500, 200)], [(1000, 130)]]),
        (lambda x: x - x.max(1, keepdims=True), [(64, 64)], [[(100, 50)], [(30, 100)]]),
        (lambda x: x - x.max(1, keepdims=True), [(64, 10)], [[(100, 30)], [(777, 40)]]),
        (outer, [(64,), (64,)], [[(64,), (100,)], [(100,), (64,)], [(50,), (50,)]]),
        (lambda x: x[::2, 3:], [(64, 64)], [[(100, 64)], [(64, 100)]]),
        (lambda x: jnp.pad(x, 2), [(64, 64)], [[(100, 64)], [(50, 80)]]),
        (lambda x: jnp.concatenate([x, x * 2]), [(64, 64)], [[(100, 40)], [(50, 80)]]),
        (lambda x: jnp.cumsum(x, 0), [(65, 65)], [[(100, 140)], [(50, 81)]]),
        (lambda x, i: x[i], [(64, 64), (20,)], [[(100, 64), (20,)], [(64, 50), (33,)]]),
        (lambda x: x.sum(), [(300, 300)], [[(500, 400)], [(200, 20, 30)]]),
        (lambda x: jnp.roll(x, 5, 1), [(64, 64)], [[(100, 64)], [(64, 90)]]),
        (lambda a, b: jnp.tanh(a @ b + 1), [(64, 64)] * 2, [[(100, 64), (64, 50)]]),
    ],
)  # fmt: skip
def test_shapes_of_a_kind_share_machine_code(function, first, others):
    def args(shapes):
        return [ones(*s) if i == 0 or len(shapes) == 2 and function.__code__.co_varnames[1] != "i"
                else np.arange(s[0], dtype="int32") for i, s in enumerate(shapes)]  # fmt: skip

    patterns = watch(function, *args(first)).patterns
    for shapes in others:
        assert watch(function, *args(shapes)).patterns == patterns, shapes


def test_a_square_is_no_special_oblong():
    """Equal extents get parameters of their own."""
    a = watch(lambda x: x.T * 2 + x.sum(0)[:, None], ones(40, 40)).patterns
    b = watch(lambda x: x.T * 2 + x.sum(0)[:, None], ones(40, 50)).patterns
    assert a == b


def test_axes_of_length_one_are_left_out():
    plain = watch(lambda x: x.sum(1), ones(40, 50)).patterns
    for shape, axis in (((40, 1, 50), 2), ((1, 40, 50), 2), ((40, 50, 1), 1)):
        assert watch(lambda x: x.sum(axis), ones(*shape)).patterns == plain


def test_indices_and_starts_are_parameters():
    f = jato.jit(lambda x, k: jnp.roll(x[k:], k) * 2, static_argnums=1)
    f(jnp.ones(100), 3)
    compiled = f.stats().kernels_compiled
    for k in (5, 17, 40):
        f(jnp.ones(100), k)
    assert f.stats().kernels_compiled == compiled


def test_the_same_pattern_computes_each_shape():
    f = jato.jit(lambda x: (x.T[::-1, 1:] * 3 - x.sum(0)[::-1, None]).reshape(-1)[::2])
    for m, n in ((5, 6), (64, 64), (33, 100), (100, 33), (2, 2), (7, 1), (2, 130)):
        x = np.random.default_rng(m).integers(-5, 5, (m, n)).astype("float32")
        want = (x.T[::-1, 1:] * 3 - x.sum(0)[::-1, None]).reshape(-1)[::2]
        np.testing.assert_array_equal(f(x), want)


def test_numbers_of_the_program_are_no_parameters():
    """Only index arithmetic is generalized, not data of type int64."""
    with jato.enable_x64(True):
        for k in (0, 1, 2, 7, 1 << 40):
            got = jato.jit(lambda x: x * k + (x // 5) - (x << 3))(np.arange(20))
            x = np.arange(20)
            np.testing.assert_array_equal(got, x * k + (x // 5) - (x << 3))


def test_generalized_kernels_compute_the_same():
    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    with b.for_("g", b.grid_begin(), b.grid_end()) as g:
        with b.for_("i", 3, 17, lanes=8) as i:
            b.store(y, b.add(b.mul(g, 20), i), b.load(x, b.add(b.mul(i, 5), g)))
    kernel = b.kernel("k")
    general, params = generalize(kernel)
    verify(general)
    assert sorted(params) == [3, 5, 17, 20] and general.num_params == 4
    assert "20:i64" not in kernel_text(general)
    results = []
    for k, p in ((kernel, []), (general, params)):
        out = np.zeros(100, "float32")
        buffers = {b.name: a for b, a in zip(k.buffers, [np.arange(100, dtype="float32"), out])}
        interp.run(k, list(buffers.values()), p, 0, 4)
        results.append(out)
    np.testing.assert_array_equal(*results)
    again, same = generalize(kernel)
    assert kernel_text(again) == kernel_text(general) and same == params


def test_the_tutorial_resize_compiles_once():
    def resize(image, scale):
        size = (image.shape[0] * scale, image.shape[1] * scale, 3)
        return jato.image.resize(image, size, method="bilinear")

    f = jato.jit(resize, static_argnums=1)
    f(ones(32, 32, 3), 2)
    compiled = f.stats().kernels_compiled
    f(ones(64, 64, 3), 2), f(ones(48, 80, 3), 2)
    assert f.stats().traces == 3 and f.stats().kernels_compiled == compiled
