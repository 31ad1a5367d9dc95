"""Small programs with a definite answer, of the kind that users report: indices beyond the end,
gradients at kinks, carried numbers, containers, and memory that must not be shared."""

from __future__ import annotations

import numpy as np
import pytest

import jato
import jato.numpy as jnp

float32 = np.float32


def test_indices_beyond_the_end():
    x = jnp.arange(5.0)
    assert np.isnan(x.at[10].get(mode="fill"))
    assert float(x.at[10].get(mode="fill", fill_value=-1)) == -1
    assert float(jnp.take(x, 10, mode="clip")) == 4
    np.testing.assert_array_equal(x.at[10].set(9.0, mode="drop"), np.arange(5))
    assert float(jato.jit(lambda v, i: v[i])(x, 10)) == 4
    assert float(jato.jit(lambda v, i: v[i])(x, -1)) == 4
    assert float(jato.jit(lambda v, i: v[i])(x, -10)) == 0


def test_segments_out_of_range_are_dropped():
    def total(v):
        return jato.ops.segment_sum(v, jnp.array([0, -1]), num_segments=1)

    x = np.array([3.0, 5.0], "float32")
    np.testing.assert_array_equal(total(x), [3])
    np.testing.assert_array_equal(jato.jacrev(total)(x), [[1, 0]])
    np.testing.assert_array_equal(jato.jacfwd(total)(x), [[1, 0]])


def test_gradient_of_a_guarded_root():
    def g(x):
        small = x < 1
        return jnp.where(small, x, jnp.sqrt(jnp.where(small, 1.0, x)))

    for f in (jato.grad(g), jato.jit(jato.grad(g))):
        assert float(f(float32(0))) == 1
        assert float(f(float32(4))) == pytest.approx(0.25)


def test_gradients_at_zero_are_finite():
    np.testing.assert_array_equal(jato.grad(lambda v: jnp.sum(v**2))(jnp.zeros(2)), [0, 0])
    np.testing.assert_array_equal(jato.grad(lambda v: jnp.sum(v**3))(jnp.zeros(2)), [0, 0])
    np.testing.assert_array_equal(
        jato.grad(lambda v: jnp.linalg.norm(v) ** 2)(jnp.zeros(2)), [0, 0]
    )


def test_gradients_at_ties_are_shared():
    assert float(jato.grad(lambda v: jnp.maximum(v, 0.0))(float32(0))) == 0.5
    np.testing.assert_array_equal(jato.grad(jnp.max)(jnp.array([2.0, 2.0, 1.0])), [0.5, 0.5, 0])
    assert -1 <= float(jato.grad(jnp.abs)(float32(0))) <= 1


def test_a_loop_over_python_numbers_traces_once():
    traces = []

    @jato.jit
    def f(x, i):
        traces.append(1)
        return x + i

    x = 0
    for i in range(10):
        x = f(x, i)
    assert int(x) == 45 and len(traces) == 1


def test_the_order_of_a_dict_does_not_matter():
    traces = []

    @jato.jit
    def f(d):
        traces.append(1)
        return d["a"] - d["b"]

    assert float(f({"a": 1.0, "b": 2.0})) == float(f({"b": 2.0, "a": 1.0})) == -1
    assert len(traces) == 1


def test_trees_with_keys_of_mixed_type():
    got = jato.tree_util.tree_map(lambda v: v + 1, {1: 7, "y": 42})
    assert got == {1: 8, "y": 43}
    got = jato.jit(lambda d: {k: v * 2 for k, v in d.items()})({1: 1.0, "y": 2.0, (2, 3): 3.0})
    assert float(got[(2, 3)]) == 6


def aligned(count):
    """A NumPy array that could be used in place."""
    base = np.zeros(count + 16, "float32")
    start = (-base.ctypes.data % 64) // 4
    return base[start : start + count]


@pytest.mark.parametrize("count", [16, 4096, 1 << 20])
def test_changes_of_numpy_arrays_are_not_seen(count):
    a = aligned(count)
    placed, converted, computed = jato.device_put(a), jnp.asarray(a), jato.jit(lambda x: x)(a)
    later = jato.jit(lambda x: x + 1)(a)
    a[...] = -1
    for x, want in ((placed, 0), (converted, 0), (computed, 0), (later, 1)):
        assert float(x[0]) == want and float(x[-1]) == want


def test_a_copy_outlives_donation():
    x = jnp.asarray([0.0, 1.0])
    y = jnp.array(x, copy=True)
    jato.jit(lambda v: v.at[0].set(7.0), donate_argnums=0)(x)
    np.testing.assert_array_equal(y, [0, 1])


def test_read_only_memory_in_and_out():
    r = np.arange(3, dtype="float32")
    r.flags.writeable = False
    np.testing.assert_array_equal(jnp.from_dlpack(r), [0, 1, 2])
    assert not np.asarray(jnp.arange(3)).flags.writeable
