"""Matrix products on arrays where they lie, against NumPy in float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato import lax


def _array(*shape, dtype=np.float32):
    rng = np.random.default_rng(sum(shape))
    values = rng.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def _plan(f, *arrays):
    return jato.jit(f).lower(*arrays).compile().as_text()


def _close(found, expected, tolerance=1e-5):
    assert found.shape == expected.shape
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(np.asarray(found) / scale, expected / scale, atol=tolerance)


@pytest.mark.parametrize("subscripts", [
    "bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd", "bhqk,bhkd->bqhd", "bqhd,bhqk->bkhd", "ij,jk->ik",
    "ij,jk->ki", "ji,jk->ik", "ji,kj->ki", "ij,kj->ik", "bij,bjk->bik", "bij,bjk->bki", "ibj,bjk->bik",
    "bsd,dhe->bshe", "bshe,dhe->bsd", "bshe,dhe->bds", "aibj,ajbk->abik", "abij,abjk->baik",
    "ij,jk->ik", "aij,bjk->abik", "abcij,abcjk->cabik", "ijab,jkba->abik", "iajb,jakc->ikbc",
])  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_einsum(subscripts, dtype):
    sizes = dict(zip("abcijkqhdse", (2, 3, 2, 33, 34, 35, 17, 4, 16, 20, 24), strict=True))
    terms = subscripts.split("->")[0].split(",")
    x, y = (_array(*(sizes[c] for c in term), dtype=dtype) for term in terms)
    wide = np.complex128 if dtype == np.complex64 else np.float64
    with jato.enable_x64(dtype == np.float64):
        found = jato.jit(lambda x, y: jnp.einsum(subscripts, x, y))(x, y)
    _close(found, np.einsum(subscripts, x.astype(wide), y.astype(wide)))


def test_every_transposition_of_operands_and_result():
    x, y = _array(3, 40, 50), _array(3, 50, 60)
    expected = np.matmul(x.astype(np.float64), y)
    for p, q, r in itertools.product(itertools.permutations(range(3)), repeat=3):
        def f(x, y, p=p, q=q, r=r):
            product = jnp.transpose(x, p) @ jnp.transpose(y, q)
            return jnp.transpose(product, r)

        back_x, back_y = np.argsort(p), np.argsort(q)
        found = jato.jit(f)(np.transpose(x, back_x).copy(), np.transpose(y, back_y).copy())
        _close(found, np.transpose(expected, r))


def test_attention_needs_no_copies():
    q, k = _array(2, 64, 4, 32), _array(2, 48, 4, 32)
    text = _plan(lambda q, k: jnp.einsum("bqhd,bkhd->bhqk", q, k), q, k)
    assert "gemm" in text
    assert "launch" not in text


def test_the_gradient_of_a_weight_is_written_where_it_belongs():
    x, w = _array(64, 100), _array(100, 80)
    text = _plan(jato.grad(lambda w, x: jnp.sum(jnp.sin(x @ w))), w, x)
    assert "tiled" not in text


@pytest.mark.parametrize("batch", [1, 7, 300])
@pytest.mark.parametrize("edge", [1, 7, 8, 15, 16, 17, 33])
def test_batches_of_small_matrices(batch, edge):
    x, y = _array(batch, edge, edge + 1), _array(batch, edge + 1, edge + 2)
    _close(jato.jit(jnp.matmul)(x, y), np.matmul(x.astype(np.float64), y))


@pytest.mark.parametrize("m", [1, 13, 14, 15, 28, 29, 43, 170])
@pytest.mark.parametrize("k", [1, 16, 255, 257, 600])
@pytest.mark.parametrize("n", [16, 31, 33, 520])
def test_sizes_around_the_blocks(m, k, n):
    for left, right in itertools.product((False, True), repeat=2):
        x = _array(k, m).T if left else _array(m, k)
        y = _array(n, k).T if right else _array(k, n)
        f = jato.jit(
            lambda x, y, left=left, right=right: (x.T if left else x) @ (y.T if right else y)
        )
        found = f(np.ascontiguousarray(x.T if left else x), np.ascontiguousarray(y.T if right else y))
        _close(found, x.astype(np.float64) @ y, 2e-6 * max(1, k) ** 0.5)


def test_halves_are_multiplied_in_float32():
    x, y = _array(40, 300).astype(np.float16), _array(300, 50).astype(np.float16)
    found = jato.jit(jnp.matmul)(x, y)
    assert found.dtype == np.float16
    _close(found, x.astype(np.float64) @ y, 1e-3)
    wide = jato.jit(lambda x, y: lax.dot(x, y, preferred_element_type=np.float32))(x, y)
    assert wide.dtype == np.float32
    _close(wide, x.astype(np.float64) @ y, 1e-5)


@pytest.mark.parametrize("k", [1, 2, 7, 8, 9, 10, 11, 12, 33])
@pytest.mark.parametrize("n", [15, 16, 17, 64])
def test_a_row_times_a_matrix_sums_in_several_parts(k, n):
    x, y = _array(1, k), _array(k, n)
    _close(jato.jit(jnp.matmul)(x, y), x.astype(np.float64) @ y)


@pytest.mark.parametrize(("dtype", "rest"), [("float32", 4084), ("float64", 4090)])
def test_more_columns_than_are_packed_at_a_time(dtype, rest):
    """4096 of them are; the rest here is whole strips, one of one vector and a folded one."""
    with jato.enable_x64(), jato.set_num_threads(1):
        for m in (13, 60):
            x, y = _array(m, 64).astype(dtype), _array(64, 4096 + rest).astype(dtype)
            _close(jato.jit(jnp.matmul)(x, y), x.astype(np.float64) @ y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 7, 8, 9, 15, 17, 19, 20, 24, 25, 33, 36, 40, 41])
def test_a_few_columns_at_any_depth(n, dtype):
    """Columns that fill a part of a vector share it with further steps of the depth: an infinity or
    a NaN in one row, at the last step too, is that row's affair, and times zero in no other lane."""
    with jato.enable_x64():
        for m, k in ((40, 32), (300, 33), (41, 63), (77, 514)):
            x, y = _array(m, k).astype(dtype), _array(k, n).astype(dtype)
            product = jato.jit(jnp.matmul)
            close = 1e-4 if dtype == "float32" else 1e-12
            np.testing.assert_allclose(product(x, y), x.astype("f8") @ y, close, close * 10)
            x[3, k - 1], x[5, 0], y[k - 1, n - 1] = np.inf, np.nan, 2.0
            with np.errstate(all="ignore"):
                want = x.astype("f8") @ y
            np.testing.assert_allclose(product(x, y), want, close, close * 10)
