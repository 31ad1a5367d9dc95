"""Forms of loops: which one a group gets, and that each computes what NumPy does at every size."""

from __future__ import annotations

import numpy as np
import pytest
from watching import watch

import jato
import jato.numpy as jnp
from jato.compiler.llvm.target import host

# where there are vectors of 512 bits, rows are taken through tiles
SHORT = "row_tiles" if host().vector_bits == 512 else "rows"
RNG = np.random.default_rng(0)


def data(*shape, dtype="float32"):
    return RNG.integers(-4, 5, shape).astype(dtype)


@pytest.mark.parametrize(
    "function, shapes, forms",
    [
        (lambda x: x * 2 + 1, [(40, 50)], ["map"]),
        (lambda x: x[:, ::-1] + 1, [(40, 50)], ["map"]),
        (lambda x: x.T + 1, [(40, 50)], ["map_tiled"]),
        (lambda x: x.sum(1), [(40, 50)], ["rows"]),
        (lambda x: x.sum(0), [(40, 50)], ["rows"]),
        (lambda x: x.sum(0), [(100, 500)], ["columns"]),
        (lambda x: x.sum((0, 2)), [(10, 20, 30)], ["rows"]),
        (lambda x: x.sum(), [(300, 300)], ["split", "join"]),
        (lambda x: x.max(1), [(3, 50_000)], ["split", "join"]),
        (lambda x: jnp.cumsum(x, 0), [(30, 40)], ["cumsum"]),
        (lambda x: jnp.cumsum(x), [(100_000,)], ["cumsum"] * 3),
        (lambda x: x - x.sum(1, keepdims=True), [(40, 50)], ["rows"]),
        (lambda x: x - x.sum(1, keepdims=True), [(70, 20)], [SHORT]),
        (lambda x: x.max(1), [(70, 31)], [SHORT]),
        (lambda x: x.max(1), [(70, 32)], ["rows"]),
        (lambda x: x.argmax(1), [(70, 64)], [SHORT]),
        (lambda x: x.argmax(1), [(70, 65)], ["rows"]),
        (lambda x: ((x - 1) * x - x).sum(1), [(70, 15)], [SHORT]),
        (lambda x: ((x - 1) * x - x).sum(1), [(70, 16)], ["rows"]),
        (lambda x: x.sum(1), [(70, 8)], ["row_tiles" if SHORT == "row_tiles" else "map"]),
    ],
)  # fmt: skip
def test_forms(function, shapes, forms):
    args = [data(*s) for s in shapes]
    watched = watch(function, *args)
    assert watched.forms == forms
    want = function(*args) if not forms[0].startswith("cumsum") else None
    if want is not None:
        for g, w in zip(jato.tree.leaves(watched.results), jato.tree.leaves(want), strict=True):
            np.testing.assert_allclose(g, w, 1e-5)


SIZES = (1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 130)


@pytest.mark.parametrize("n", SIZES)
def test_transposes(n):
    x = data(n, 67)
    jitted = jato.jit(lambda x, y: (x.T + 1, x.T * y, x[::-1].T - y.T.T, (x.T + y).sum(0)))
    y = data(67, n)
    want = x.T + 1, x.T * y, x[::-1].T - y, (x.T + y).sum(0)
    for g, w in zip(jitted(x, y), want, strict=True):
        np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("order", [(0, 2, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)])
@pytest.mark.parametrize("shape", [(3, 70, 70), (65, 5, 66), (66, 67, 2), (1, 80, 9), (8, 1, 90)])
def test_transposes_of_three_axes(order, shape):
    x = data(*shape)
    y = jato.jit(lambda x: jnp.transpose(x, order) * 2)(x)
    np.testing.assert_array_equal(y, np.transpose(x, order) * 2)


@pytest.mark.parametrize("order", [(0, 2, 3, 1), (0, 3, 1, 2), (1, 0, 3, 2), (0, 1, 3, 2)])
@pytest.mark.parametrize("shape", [(2, 64, 64, 64), (3, 20, 17, 33), (1, 65, 18, 70)])
def test_transposes_in_a_batch_go_through_a_tile(order, shape):
    x = data(*shape)
    watched = watch(lambda x: jnp.transpose(x, order) * 2, x)
    np.testing.assert_array_equal(watched.results, np.transpose(x, order) * 2)
    assert watched.forms == ["map_tiled"]
    assert "local" in watched.patterns[0]  # the tile


@pytest.mark.parametrize("rows", (1, 2, 5, 33, 70))
@pytest.mark.parametrize("n", SIZES)
def test_reductions_both_ways(rows, n):
    x = data(rows, n)
    f = jato.jit(lambda x: (x.sum(0), x.sum(1), x.max(0), x.min(1), x.argmax(0), x.argmin(1), x.sum()))
    want = x.sum(0), x.sum(1), x.max(0), x.min(1), x.argmax(0), x.argmin(1), x.sum()
    for g, w in zip(f(x), want, strict=True):
        np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(9, 10, 11), (1, 40, 17), (40, 1, 33), (33, 40, 1), (2, 3, 300), (300, 3, 2)])
def test_reductions_over_any_axes(axes, shape):
    x = data(*shape)
    f = jato.jit(lambda x: (x.sum(axes), x - x.max(axes, keepdims=True), jnp.abs(x).sum(axes)))
    want = x.sum(axes), x - x.max(axes, keepdims=True), abs(x).sum(axes)
    for g, w in zip(f(x), want, strict=True):
        np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("shape", [(31, 129), (32, 128), (33, 512), (200, 513), (1100, 130), (64, 1030)])
def test_columns(shape):
    """Reductions down the columns of wide matrices, with results per column and per element."""
    x = data(*shape)
    f = jato.jit(lambda x: (x.sum(0), x - x.sum(0), (x - x.max(0)).sum(0), x * x.min(0)))
    want = x.sum(0), x - x.sum(0), (x - x.max(0)).sum(0), x * x.min(0)
    for g, w in zip(f(x), want, strict=True):
        np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32", "complex64"])
def test_split_reductions(dtype):
    x = (data(2, 40_000) > 2).astype("float32") if dtype == "bool" else data(2, 40_000) * 0 + 1
    x[1, 17] = 0
    x = np.asarray(jnp.asarray(x).astype(dtype))
    total, most, hit = jato.jit(lambda x: (x.sum(1), x.real.max(1), (x != 0).all(1)))(x)
    want = x.astype("complex128" if dtype == "complex64" else "float64").sum(1)
    if dtype == "int8":
        assert total.dtype == jnp.int8 or total.dtype == jnp.int32
    if dtype not in ("bfloat16", "int8"):
        np.testing.assert_allclose(np.asarray(total).astype(want.dtype), want, 2e-3)
    assert [bool(h) for h in hit] == [bool((r != 0).all()) for r in x]
    np.testing.assert_array_equal(np.asarray(most).astype("float32"), x.real.max(1).astype("float32"))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 17, 33), (2, 70_000, 1), (40_000, 1, 2), (1, 2, 50_001)])
@pytest.mark.parametrize("reverse", [False, True])
def test_scans(axis, shape, reverse):
    x = data(*shape)
    y = jato.jit(lambda x: jato.lax.cumsum(x, axis, reverse=reverse))(x)
    z = jato.jit(lambda x: jato.lax.cummax(x, axis, reverse=reverse))(x)
    seen = np.flip(x, axis) if reverse else x
    for got, want in ((y, np.cumsum(seen, axis, "float64")), (z, np.maximum.accumulate(seen, axis))):
        np.testing.assert_array_equal(got, np.flip(want, axis) if reverse else want)


def test_a_row_that_several_loops_need_is_computed_once():
    def softmax(x):
        e = jnp.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    watched = watch(softmax, data(40, 300))
    assert watched.patterns[0].count(" exp ") == 1


@pytest.mark.parametrize(
    "name, function",
    [
        ("input returned", lambda x, e, s: (x * 1, e / s)),
        ("exponentials returned", lambda x, e, s: (e, e / s)),
        ("two results", lambda x, e, s: (e / s, e * s)),
        ("sum with the input", lambda x, e, s: (x + e / s, x + 1)),
        ("reversed", lambda x, e, s: (e / s)[:, ::-1]),
        ("reversed and straight", lambda x, e, s: ((e / s)[:, ::-1], e * 2)),
        ("rows reversed", lambda x, e, s: ((e / s)[::-1], e + 1)),
        ("shifted", lambda x, e, s: jnp.concatenate([e[:, 1:], e[:, :1]], 1) / s),
        ("transposed", lambda x, e, s: (e / s).T),
        ("as integers", lambda x, e, s: ((e / s * 1000).astype("int32"), x)),
        ("halves", lambda x, e, s: ((e / s).astype("float16"), e / s)),
    ],
)  # fmt: skip
def test_rows_kept_in_the_memory_of_a_result(name, function):
    """softmax keeps exp(x) where its result goes; whatever else is asked for, it must be right."""
    x = data(30, 40)

    def run(x, xp):
        e = xp.exp(x - x.max(1, keepdims=True))
        return function(x, e, e.sum(1, keepdims=True))

    got = jato.jit(lambda x: run(x, jnp))(x)
    want = jato.jit(lambda x: run(x, jnp))
    with jato.disable_jit():
        want = run(jnp.asarray(x), jnp)
    for g, w in zip(jato.tree.leaves(got), jato.tree.leaves(want), strict=True):
        np.testing.assert_allclose(np.asarray(g).astype("f"), np.asarray(w).astype("f"), 1e-3 if "halves" in name else 1e-5, 1.0 if "integers" in name else 1e-6)


def test_nested_small_reductions():
    """A reduction inside of another one's loop is computed where it is used."""
    x = data(5, 7)

    def f(x):
        small = x.max(1)
        return jnp.log(jnp.exp(x - small[:, None]).sum(1)) + small, small * 2

    got = jato.jit(f)(x)
    np.testing.assert_allclose(got[0], np.log(np.exp(x.astype("f8")).sum(1)), 1e-5)
    np.testing.assert_array_equal(got[1], x.max(1) * 2)


def test_a_scalar_of_small_reductions_under_a_guard():
    x = data(1, 7, 1)

    def f(x):
        total = jnp.log(jnp.exp(x - x.max()).sum()) + x.max()
        return jnp.concatenate([x * 2, x, jnp.minimum(x, total)], 1)

    total = np.log(np.exp(x.astype("f8")).sum())
    want = np.concatenate([x * 2, x, np.minimum(x, total)], 1)
    np.testing.assert_allclose(jato.jit(f)(x), want, 1e-5)


@pytest.mark.parametrize("shape", [(4, 2), (31, 24, 2), (5, 3), (5, 4), (3, 8)])
def test_short_last_axes_of_bools(shape):
    x = data(*shape) > 0
    f = jato.jit(lambda x: (x.any(-1), x.all(-1), x.sum(-1), jnp.argmax(x, -1)))
    want = x.any(-1), x.all(-1), x.sum(-1), x.argmax(-1)
    for g, w in zip(f(x), want, strict=True):
        np.testing.assert_array_equal(g, w)


def test_long_sums_are_folded():
    x = np.full(2_000_003, 0.1, "float32")
    for f in (jnp.sum, lambda x: x.reshape(1, -1).sum(1)[0], lambda x: (x * 1).sum()):
        assert float(jato.jit(f)(x)) == pytest.approx(2_000_003 * float(np.float32(0.1)), rel=5e-6)


@pytest.mark.parametrize("length", [16, 17, 31, 32, 33, 64, 127, 128, 129])
def test_short_rows_under_several_axes(length):
    """The last outer axis is a loop of its own where the rows' places would be divided for."""
    a, b = data(40, 1, length), data(1, 9, length)
    watched = watch(lambda a, b: a * b, a, b)
    np.testing.assert_array_equal(watched.results, a * b)
    if host().vector_bits == 512:
        loops = watched.patterns[0].count("  for ")
        assert loops == (3 if length <= 128 else 2), watched.patterns[0]
    c, d = data(5, 8, 4, length), data(8, 4)
    kron = jato.jit(lambda c, d: (c * d[:, :, None], jnp.kron(c[0, 0], d), c[:, ::-1] - c))
    want = c * d[:, :, None], np.kron(c[0, 0], d), c[:, ::-1] - c
    for g, w in zip(kron(c, d), want, strict=True):
        np.testing.assert_array_equal(g, w)
