"""Matrix products on several threads: blocks of rows, each thread's or all threads' packed B."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import jato
import jato.numpy as jnp

THREADS = (1, 2, 3, 5, 8)
# Around tiles of 14 rows, blocks of 112 and 168 rows, and shares of a few threads.
ROWS = (13, 14, 29, 113, 127, 168, 225, 337, 1000)
COLUMNS = (1, 9, 16, 33, 47, 200)
DEPTHS = (1, 31, 33, 512, 1025)


def _integers(rng, *shape):
    """Small ones: products and sums of them are exact."""
    return rng.integers(-3, 4, shape).astype(np.float64)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threads", THREADS)
def test_sizes_around_tiles_and_shares(threads, dtype):
    rng = np.random.default_rng(threads)
    cases = list(itertools.product(ROWS, COLUMNS, DEPTHS))
    product = jato.jit(jnp.matmul)
    turned = jato.jit(lambda x, y: x.T @ y.T)
    with jato.enable_x64(), jato.set_num_threads(threads):
        for i in rng.permutation(len(cases))[:50]:
            m, n, k = cases[i]
            x, y = _integers(rng, m, k), _integers(rng, k, n)
            a, b = x.astype(dtype), y.astype(dtype)
            np.testing.assert_array_equal(product(a, b), x @ y)
            if i % 2:
                columns = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
                np.testing.assert_array_equal(turned(*columns), x @ y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [33, 200, 1030])  # the last: panels that threads share
def test_infinities_and_nans_stay_in_their_rows_and_columns(columns, dtype):
    rng = np.random.default_rng(columns)
    x, y = _integers(rng, 1000, 300) + 4, _integers(rng, 300, columns) + 4
    want = x @ y
    x[500, 299], x[13, 0], y[0, columns - 1] = np.inf, np.nan, np.inf
    want[500], want[13], want[:, columns - 1] = np.inf, np.nan, np.inf
    want[13] = np.nan
    for threads in THREADS:
        with jato.enable_x64(), jato.set_num_threads(threads):
            found = jato.jit(jnp.matmul)(x.astype(dtype), y.astype(dtype))
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize(
    ("m", "n", "k"), [(1000, 200, 64), (337, 33, 512), (225, 600, 520), (700, 1, 40)]
)
def test_what_follows_on_the_rows(m, n, k, threads):
    rng = np.random.default_rng(m)
    shapes = ((m, k), (k, n), (n,))
    a, b, c = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    b /= np.float32(k**0.5)
    p = a.astype(np.float64) @ b
    t = np.tanh(p + c)
    e = np.exp(p - p.max(1, keepdims=True))
    cases = (
        (lambda a, b, c: jnp.tanh(a @ b + c), t),
        (lambda a, b, c: jnp.mean(jnp.tanh(a @ b + c)), t.mean()),
        (lambda a, b, c: jnp.mean(jnp.tanh(a @ b + c), axis=0), t.mean(0)),
        (lambda a, b, c: jnp.mean(jnp.tanh(a @ b + c), axis=1), t.mean(1)),
        (lambda a, b, c: jato.nn.softmax(a @ b, axis=1), e / e.sum(1, keepdims=True)),
    )
    with jato.set_num_threads(threads):
        for f, want in cases:
            np.testing.assert_allclose(jato.jit(f)(a, b, c), want, rtol=3e-5, atol=3e-6)
