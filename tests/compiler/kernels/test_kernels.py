"""Steps that are scheduled by hand: products with epilogues, scatters, loops in registers, host calls."""

from __future__ import annotations

import numpy as np
import pytest
from watching import watch

import jato
import jato.numpy as jnp
from jato import lax

RNG = np.random.default_rng(0)


def text_of(function, *args):
    return jato.jit(function).lower(*args).compile().as_text()


def random(*shape):
    return RNG.normal(size=shape).astype("float32")


# ---- products


@pytest.mark.parametrize("shape", [(700, 64, 600), (1000, 200, 300), (513, 77, 1030)])
def test_an_epilogue_runs_on_blocks_of_rows(shape):
    m, k, n = shape
    a, b, c = random(m, k), random(k, n), random(n)

    def dense(a, b, c):
        return jnp.maximum(a @ b + c, 0)

    def rows(a, b, c):
        y = a @ b + c
        e = jnp.exp(y - y.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    y = a @ b + c
    np.testing.assert_allclose(jato.jit(dense)(a, b, c), np.maximum(y, 0), 1e-4, 1e-4)
    e = np.exp(y - y.max(1, keepdims=True))
    np.testing.assert_allclose(jato.jit(rows)(a, b, c), e / e.sum(1, keepdims=True), 1e-3, 1e-5)
    assert "tiled" in text_of(rows, a, b, c)


@pytest.mark.parametrize("shape", [(1000, 50, 200), (513, 77, 1030), (5000, 20, 33), (300, 9, 300)])
def test_reductions_of_a_product_run_on_blocks_of_its_rows(shape):
    m, k, n = shape
    a, b, c = random(m, k), random(k, n), random(n)
    y = a.astype("float64") @ b
    for f, want, rows in (
        (lambda a, b, c: jnp.mean(jnp.tanh(a @ b + c)), np.tanh(y + c).mean(), m * n >= 1 << 17),
        (lambda a, b, c: jnp.sum(jnp.square(a @ b)), np.square(y).sum(), m * n >= 1 << 17),
        (lambda a, b, c: jnp.max(a @ b + c, 0), (y + c).max(0), False),
        (lambda a, b, c: jnp.tanh(a @ b), np.tanh(y), m * n * 4 > 256 * 1024),
    ):
        np.testing.assert_allclose(jato.jit(f)(a, b, c), want, 2e-4, 1e-4)
        if rows:
            assert "tiled" in text_of(f, a, b, c)


def test_an_epilogue_that_reads_other_rows_is_no_epilogue():
    a, b = random(700, 64), random(64, 600)
    for f, want in (
        (lambda a, b: (a @ b)[::-1] + 1, (a @ b)[::-1] + 1),
        (lambda a, b: (a @ b).sum(0), (a @ b).sum(0)),
        (lambda a, b: (a @ b).T * 2, (a @ b).T * 2),
        (lambda a, b: jnp.roll(a @ b, 1, 0) + (a @ b), np.roll(a @ b, 1, 0) + a @ b),
        (lambda a, b: (a @ b + 1, (a @ b).max(0)), (a @ b + 1, (a @ b).max(0))),
    ):
        for g, w in zip(jato.tree.leaves(jato.jit(f)(a, b)), jato.tree.leaves(want), strict=True):
            np.testing.assert_allclose(g, w, 1e-3, 1e-3)


def test_chains_of_products():
    a = random(300, 300) / 10

    def f(a):
        b = jnp.tanh(a @ a)
        return (b @ a + b).sum(1), b

    b = np.tanh(a @ a)
    got = jato.jit(f)(a)
    np.testing.assert_allclose(got[0], (b @ a + b).sum(1), 1e-3, 1e-3)
    np.testing.assert_allclose(got[1], b, 1e-4, 1e-4)


# ---- scatters


@pytest.mark.parametrize(
    "dtype, kind",
    [
        (dtype, kind)
        for dtype in ("float32", "int8", "float16", "complex64", "bool")
        for kind in ("set", "add", "multiply", "max")
        if kind == "set" or dtype not in ("complex64", "bool") or (kind, dtype) == ("add", "complex64")
    ],
)
@pytest.mark.parametrize("shape", [(7,), (9, 20), (5, 1)])
def test_scatters(dtype, kind, shape):
    x = RNG.integers(0, 2, shape).astype(dtype)
    index = RNG.permutation(shape[0])[:4]  # no repeats: `set` has one answer
    updates = RNG.integers(0, 3, (len(index), *shape[1:])).astype(dtype)
    want = x.copy()
    if kind == "set":
        want[index] = updates
    else:
        ufunc = {"add": np.add, "multiply": np.multiply, "max": np.maximum}[kind]
        ufunc.at(want, index, updates)
    got = jato.jit(lambda x, i, u: getattr(x.at[i], kind)(u))(x, index, updates)
    np.testing.assert_array_equal(got, want)


def test_scatters_add_up_repeats_and_leave_the_operand():
    x = jnp.zeros(5)
    index = np.array([1, 1, 4, -1, 1])
    got = jato.jit(lambda x, i: (x.at[i].add(1.0), x))(x, index)
    np.testing.assert_array_equal(got[0], [0, 3, 0, 0, 2])
    np.testing.assert_array_equal(got[1], np.zeros(5))
    np.testing.assert_array_equal(x.at[np.array([], int)].add(1.0), np.zeros(5))
    np.testing.assert_array_equal(jnp.zeros((0, 3)).at[:].add(1.0), np.zeros((0, 3)))
    np.testing.assert_array_equal(x.at[7].set(1.0), np.zeros(5))


# ---- loops


def test_a_small_loop_is_one_kernel():
    watched = watch(lambda x: lax.fori_loop(0, 100, lambda i, c: c * 0.5 + i, x), np.float32(1))
    assert len(watched.kernels) == 1
    want = 1.0
    for i in range(100):
        want = want * 0.5 + i
    assert float(watched.results) == pytest.approx(want)


def test_a_loop_over_elements_is_one_kernel():
    x = np.linspace(0.5, 3, 1000, dtype="float32")
    watched = watch(lambda x: lax.fori_loop(0, 20, lambda i, c: 0.5 * (c + x / c), x), x)
    assert len(watched.kernels) == 1
    np.testing.assert_allclose(watched.results, np.sqrt(x), 1e-6)


@pytest.mark.parametrize("length", [0, 1, 7])
@pytest.mark.parametrize("reverse", [False, True])
def test_scans_over_slices(length, reverse):
    xs = RNG.integers(-3, 4, (length, 3)).astype("float32")

    def body(c, x):
        c = c * 0.5 + x
        return c, (c + 1, x.sum())

    got = jato.jit(lambda xs: lax.scan(body, jnp.zeros(3), xs, reverse=reverse))(xs)
    c, ys, sums = np.zeros(3, "float32"), np.zeros((length, 3)), np.zeros(length)
    for i in reversed(range(length)) if reverse else range(length):
        c = c * 0.5 + xs[i]
        ys[i], sums[i] = c + 1, xs[i].sum()
    for g, w in zip(jato.tree.leaves(got), (c, ys, sums), strict=True):
        np.testing.assert_allclose(g, w, 1e-6)


def test_loops_with_steps_that_need_memory():
    x = random(50)

    def body(i, c):
        a, b = c
        return jnp.sort(a)[::-1] + i, a @ jnp.ones((50, 50)) / 100 + b[::-1]

    got = jato.jit(lambda x: lax.fori_loop(0, 5, body, (x, x * 2)))(x)
    a, b = x, x * 2
    for i in range(5):
        a, b = np.sort(a)[::-1] + i, a @ np.ones((50, 50)) / 100 + b[::-1]
    np.testing.assert_allclose(got[0], a, 1e-4, 1e-4)
    np.testing.assert_allclose(got[1], b, 1e-4, 1e-4)


def test_carries_that_change_places():
    def body(i, c):
        a, b, d = c
        return b, d, a

    x = [random(100) for _ in range(3)]
    for n in range(7):
        got = jato.jit(lambda *x: lax.fori_loop(0, n, body, x))(*x)
        want = x
        for _ in range(n):
            want = (want[1], want[2], want[0])
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w)


def test_while_and_nested_loops():
    def collatz(n):
        def step(c):
            n, k = c
            return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), k + 1

        return lax.while_loop(lambda c: c[0] != 1, step, (n, 0))[1]

    assert [int(jato.jit(collatz)(n)) for n in (1, 6, 27)] == [0, 8, 111]
    np.testing.assert_array_equal(jato.jit(jato.vmap(collatz))(np.array([1, 6, 27])), [0, 8, 111])

    def outer(i, c):
        return lax.fori_loop(0, i, lambda j, d: d + jnp.sort(d) * j, c) - i

    x = random(20)
    want = x
    for i in range(4):
        for j in range(i):
            want = want + np.sort(want) * j
        want = want - i
    np.testing.assert_allclose(jato.jit(lambda x: lax.fori_loop(0, 4, outer, x))(x), want, 1e-4, 1e-4)


def test_branches():
    f = jato.jit(lambda i, x: lax.switch(i, [lambda x: x, lambda x: jnp.sort(x), lambda x: x[::-1] * 2], x))
    x = random(30)
    for i, want in ((-3, x), (0, x), (1, np.sort(x)), (2, x[::-1] * 2), (9, x[::-1] * 2)):
        np.testing.assert_array_equal(f(i, x), want)


# ---- whole plans


def test_results_that_share_memory_or_repeat():
    def f(x):
        y = jnp.sort(x)
        return y, y.reshape(5, 4), y, x, x.reshape(2, 10), jnp.sort(x)[::-1], y + 0 * x

    x = random(20)
    y = np.sort(x)
    for g, w in zip(jato.jit(f)(x), (y, y.reshape(5, 4), y, x, x.reshape(2, 10), y[::-1], y), strict=True):
        np.testing.assert_array_equal(g, w)


def test_results_of_branches_and_loops_are_no_inputs_in_disguise():
    x = jnp.arange(5.0)
    got = jato.jit(lambda x: (lax.fori_loop(0, 0, lambda i, c: c + 1, x), lax.cond(True, lambda x: x, lambda x: x, x)))(x)
    for g in got:
        np.testing.assert_array_equal(g, np.arange(5))


@pytest.mark.parametrize("shape", [(3,), (5, 7)])
def test_loops_that_only_pass_values_on(shape):
    x = np.arange(np.prod((4, *shape)), dtype="float32").reshape(4, *shape)
    last, before = jato.jit(lambda x: lax.scan(lambda c, y: (y, c), x[0], x))(x)
    np.testing.assert_array_equal(last, x[-1])
    np.testing.assert_array_equal(before, [x[0], *x[:-1]])
    _, copies = jato.jit(lambda x: lax.scan(lambda c, _: (c, c), x, None, length=3))(x)
    np.testing.assert_array_equal(copies, [x] * 3)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)])
def test_steps_without_elements(shape):
    x = np.ones(shape, "float32")

    def f(x):
        flat = x.reshape(-1)
        return (
            jnp.sort(x, -1), jnp.cumsum(x, 0), x @ jnp.ones((shape[-1], 2)), jnp.concatenate([x, x]),
            x.sum(), x.prod(), x.any(), flat.at[:].set(1.0), lax.fori_loop(0, 3, lambda i, c: c * 2, x),
            jnp.pad(x, 1).sum(), x.T, jnp.tile(x, 2),
        )  # fmt: skip

    for g, w in zip(jato.jit(f)(x), f(jnp.asarray(x)), strict=True):
        assert g.shape == w.shape and g.dtype == w.dtype
        np.testing.assert_array_equal(g, w)


def test_listing_names_kernels_and_steps():
    text = text_of(lambda x: jnp.sort(jnp.sin(x)) + 1, np.ones((40, 40), "float32"))
    assert "launch map_sin" in text and "arena=" in text and "output 0" in text
