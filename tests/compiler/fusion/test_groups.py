"""Which operations share a kernel, and the reasons given."""

from __future__ import annotations

import numpy as np
import pytest
from watching import watch

import jato
import jato.numpy as jnp
from jato import lax
from jato.compiler.fusion.partition import memory_inputs

ROWS = np.linspace(-3, 3, 64 * 300, dtype="float32").reshape(64, 300)
VECTOR = np.linspace(0.1, 4, 1000, dtype="float32")


def softmax(x):
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def log_softmax(x):
    shifted = x - x.max(-1, keepdims=True)
    return shifted - jnp.log(jnp.exp(shifted).sum(-1, keepdims=True))


def logsumexp(x):
    peak = x.max(-1)
    return jnp.log(jnp.exp(x - peak[..., None]).sum(-1)) + peak


def layer_norm(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * 2 + 1


def adam(p, g, m, v):
    m = 0.9 * m + 0.1 * g
    v = 0.99 * v + 0.01 * g * g
    return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


def black_scholes(s, k, t):
    d1 = (jnp.log(s / k) + 0.545 * t) / (0.3 * jnp.sqrt(t))
    d2 = d1 - 0.3 * jnp.sqrt(t)
    half = np.float32(np.sqrt(0.5))

    def cdf(x):
        return 0.5 * (1 + jato.lax.erf(x * half))

    call = s * cdf(d1) - k * jnp.exp(-0.5 * t) * cdf(d2)
    return call, call - s + k * jnp.exp(-0.5 * t)


def cross_entropy(x):
    return -(log_softmax(x) * x).sum(-1)


@pytest.mark.parametrize(
    "function, args",
    [
        (softmax, (ROWS,)),
        (log_softmax, (ROWS,)),
        (logsumexp, (ROWS,)),
        (layer_norm, (ROWS,)),
        (cross_entropy, (ROWS,)),
        (lambda x: x.var(-1), (ROWS,)),
        (lambda x: (x.max(-1), x.min(-1), x.sum(-1)), (ROWS,)),
        (adam, (VECTOR,) * 4),
        (black_scholes, (VECTOR,) * 3),
        (lambda x: jnp.tanh(x.T[::2, ::-1]) + 1, (ROWS,)),
        (lambda x: jnp.concatenate([x, 2 * x], 1)[:, 100:400], (ROWS,)),
        (lambda x: jnp.pad(x, 1)[1:-1, :-2] + x, (ROWS,)),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_one_kernel(function, args):
    watched = watch(function, *args)
    assert len(watched.kernels) == 1, watched.decisions
    again = function(*map(jnp.asarray, args))
    for got, want in zip(jato.tree.leaves(watched.results), jato.tree.leaves(again), strict=True):
        np.testing.assert_allclose(got, want, 2e-5, 2e-5)


def test_blur_of_a_small_stencil_is_one_kernel():
    image = np.random.default_rng(0).random((40, 50), dtype="float32")

    def blur(x):
        p = jnp.pad(x, 1, mode="edge")
        return sum(p[i : i + 40, j : j + 50] for i in range(3) for j in range(3)) / 9

    watched = watch(blur, image)
    assert len(watched.kernels) == 1
    padded = np.pad(image, 1, mode="edge")
    want = sum(padded[i : i + 40, j : j + 50] for i in range(3) for j in range(3)) / 9
    np.testing.assert_allclose(watched.results, want, 1e-5)


def test_elementwise_operations_join_with_a_reason():
    watched = watch(lambda x: jnp.sin(x) * 2 + x, VECTOR)
    assert watched.reasons("sin") == {"SAME_DOMAIN"}
    (group,) = watched.groups
    assert group.space == (1000,) and group.reduced is None
    assert [n.primitive.name for n in group.nodes][0] == "sin"


def test_producers_and_epilogues_of_a_reduction():
    watched = watch(lambda x: jnp.sqrt((x * x).sum(1)), ROWS)
    assert watched.reasons("mul") | watched.reasons("square") == {"PRODUCER_OF_REDUCTION"}
    assert watched.reasons("reduce_sum") == {"EPILOGUE_OF_REDUCTION"}
    (group,) = watched.groups
    assert group.space == (64, 300) and group.reduced == (1,) and group.rows == (64,)


def test_moves_are_index_arithmetic():
    watched = watch(lambda x: x.T[3:] + 1, ROWS)
    assert watched.reasons("transpose") == {"INDEX_ARITHMETIC"}
    assert watched.reasons("slice") == {"INDEX_ARITHMETIC"}


def test_row_chain_is_told():
    watched = watch(softmax, ROWS)
    assert watched.reasons("reduce_sum") == {"ROW_CHAIN"}


def test_long_rows_are_reduced_apart():
    x = np.ones((200, 200_000), "float32")
    watched = watch(lambda x: x / x.sum(-1, keepdims=True), x)
    assert "ROWS_TOO_LONG" in watched.reasons("reduce_sum")
    assert len(watched.kernels) == 2
    np.testing.assert_allclose(np.asarray(watched.results)[5, :7], np.full(7, 1 / 200_000), 1e-5)


def test_few_rows_are_split():
    x = np.ones((2, 100_000), "float32")
    watched = watch(lambda x: x.sum(1), x)
    assert watched.groups[0].split and watched.forms == ["split", "join"]
    np.testing.assert_array_equal(watched.results, [100_000, 100_000])
    assert "FEW_ROWS" in watch(lambda x: x / x.sum(1, keepdims=True), x).reasons("reduce_sum")


def test_other_axes_are_another_kernel():
    watched = watch(lambda x: (x - x.sum(0)).sum(1), ROWS)
    assert len(watched.kernels) == 2
    np.testing.assert_allclose(watched.results, (ROWS - ROWS.sum(0)).sum(1), 1e-3, 2e-2)


def test_costly_replicated_values_are_stored():
    watched = watch(lambda x, y: jnp.exp(x)[None, :] * y, ROWS[0], ROWS)
    assert "REPLICATED" in watched.reasons("exp")
    assert len(watched.kernels) == 2


def test_a_value_per_row_is_not_replicated():
    watched = watch(lambda x, y: jnp.exp(x)[:, None] * y, ROWS[:, 0], ROWS)
    assert len(watched.kernels) == 1


def test_siblings_share_a_loop():
    watched = watch(lambda x: (jnp.sin(x), jnp.cos(x)), VECTOR)
    assert len(watched.kernels) == 1


def test_large_expressions_are_cut():
    def long(x):
        for i in range(200):
            x = jnp.sin(x) + i
        return x

    watched = watch(long, VECTOR)
    assert "TOO_LARGE" in {r for _, r, _ in watched.decisions}
    assert 2 <= len(watched.kernels) < 100
    want = VECTOR.astype(np.float64)
    for i in range(200):
        want = np.sin(want) + i
    assert np.isfinite(np.asarray(watched.results)).all()


def test_rereading_consumers_get_memory():
    """A convolution reads each element many times: its costly operand is computed once."""
    x, k = VECTOR, np.ones(5, "float32")
    watched = watch(lambda x, k: jnp.convolve(jnp.exp(-x), k, mode="valid"), x, k)
    assert "REREAD" in watched.reasons("exp") or len(watched.kernels) == 2
    np.testing.assert_allclose(watched.results, np.convolve(np.exp(-x), k, "valid"), 1e-5)


def test_library_steps_are_no_groups():
    a = np.ones((200, 200), "float32")
    watched = watch(lambda a: jnp.sort(a + 1) * 2, a)
    assert len(watched.kernels) == 2


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0), (3, 0, 4)])
def test_without_elements(shape):
    x = np.ones(shape, "float32")
    watched = watch(lambda x: (softmax(x + 1) if x.shape[-1] else x, x.sum(), x.sum(0), x * 2), x)
    assert watched.results[0].shape == shape
    assert float(watched.results[1]) == 0
    np.testing.assert_array_equal(watched.results[2], x.sum(0))


def test_batch_norm_is_one_kernel_over_columns():
    def batch_norm(x):
        return (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5)

    x = np.random.default_rng(0).normal(3, 2, (64, 300)).astype("float32")
    watched = watch(batch_norm, x)
    assert watched.forms == ["columns"]
    np.testing.assert_allclose(watched.results, (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5), 1e-4, 1e-4)


def test_levels_of_interleaving_are_steps_of_their_own():
    """An associative scan interleaves what each of its levels combined: an element of one kernel for
    all levels would pass the guards of all of them, and read from each."""
    x = np.arange(1 << 12, dtype="float32") % 7
    watched = watch(lambda x: lax.associative_scan(jnp.add, x), x)
    np.testing.assert_array_equal(watched.results, np.cumsum(x))
    assert max(len(memory_inputs(group)) for group in watched.groups) <= 6


def test_padding_in_several_axes_is_one_loop():
    x = np.arange(600.0, dtype="float32").reshape(3, 4, 50)
    watched = watch(lambda x: jnp.pad(x * 2, ((1, 2), (1, 1), (2, 0)), mode="reflect"), x)
    want = np.pad(x * 2, ((1, 2), (1, 1), (2, 0)), mode="reflect")
    np.testing.assert_array_equal(watched.results, want)
    assert len(watched.groups) <= 2
