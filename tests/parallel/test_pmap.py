"""pmap: vmap spread over devices, for any length of the mapped axis."""

from __future__ import annotations

import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato.parallel import stages


@pytest.fixture(autouse=True)
def four_devices():
    with jato.config.override("jax_num_cpu_devices", 4):
        yield


def f(x, y):
    return jnp.sin(x) @ y + x.sum()


X = np.random.default_rng(0).normal(size=(11, 3)).astype("float32")
Y = np.random.default_rng(1).normal(size=(11, 3)).astype("float32")


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 11])
@pytest.mark.parametrize("devices", [1, 2, 4, 8])
def test_any_length_over_any_number_of_devices(n, devices):
    with jato.config.override("jax_num_cpu_devices", devices):
        got = jato.pmap(f)(X[:n], Y[:n])
    want = [np.sin(x) @ y + x.sum() for x, y in zip(X[:n], Y[:n])]
    assert got.shape == (n,)
    np.testing.assert_allclose(got, want, 1e-5, 1e-5)


def test_number_of_devices_at_run_time():
    g = jato.pmap(lambda x: x * 2)
    for count in (1, 8, 3, 2):
        jato.config.update("jax_num_cpu_devices", count)
        assert len(jato.devices()) == jato.device_count() == jato.local_device_count() == count
        np.testing.assert_array_equal(g(np.arange(9.0, dtype="float32")), 2 * np.arange(9))
    with pytest.raises(ValueError, match="at least 1"):
        jato.config.update("jax_num_cpu_devices", 0)


# ---- axes


@pytest.mark.parametrize("in_axes", [0, (0, None), (None, 0), (1, 0), (0, 1), (-1, None), (1, 1)])
@pytest.mark.parametrize("out_axes", [0, 1, -1])
def test_axes_agree_with_vmap(in_axes, out_axes):
    rng = np.random.default_rng(2)

    def operand(axis):
        x = rng.normal(size=(6, 5, 2)).astype("float32")
        return x[0] if axis is None else np.moveaxis(x, 0, axis)

    pair = in_axes if isinstance(in_axes, tuple) else (in_axes, in_axes)
    a, b = map(operand, pair)

    def g(a, b):
        return a * 2 + b, a.sum()[None]

    options = dict(in_axes=in_axes, out_axes=out_axes)
    got, want = jato.pmap(g, **options)(a, b), jato.vmap(g, **options)(a, b)
    for p, v in zip(got, want, strict=True):
        assert p.shape == v.shape
        np.testing.assert_allclose(p, v, 1e-6)


def test_other_axes_of_results_are_cached_too():
    traces = []

    def g(x):
        traces.append(1)
        return x * 2

    h = jato.pmap(g, out_axes=1)
    x = np.ones((8, 3), "float32")
    assert h(x).shape == h(x + 1).shape == (3, 8)
    assert len(traces) == 1


def test_trees_of_axes():
    def g(tree, c):
        return {"s": tree["a"] + tree["b"] + c, "c": c}

    tree = {"a": np.arange(6.0, dtype="float32").reshape(2, 3), "b": np.float32(10)}
    got = jato.pmap(g, in_axes=({"a": 1, "b": None}, None), out_axes={"s": 0, "c": None})(tree, 1.0)
    np.testing.assert_array_equal(got["s"], tree["a"].T + 11)
    assert got["c"].shape == () and float(got["c"]) == 1


def test_keywords_are_mapped_along_their_first_axis():
    got = jato.pmap(lambda x, s: x * s)(np.ones(5, "float32"), s=np.arange(5.0, dtype="float32"))
    np.testing.assert_array_equal(got, np.arange(5))


def test_axis_size_alone():
    got = jato.pmap(lambda: jnp.ones(2), axis_size=5)()
    np.testing.assert_array_equal(got, np.ones((5, 2)))
    got = jato.pmap(lambda x: x + 1, in_axes=None, axis_size=3)(np.float32(1))
    np.testing.assert_array_equal(got, [2, 2, 2])


# ---- options


def test_static_arguments():
    traces = []

    def g(x, n, y):
        traces.append(n)
        return x**n + y

    h = jato.pmap(g, static_broadcasted_argnums=1)
    x = np.arange(1.0, 6.0, dtype="float32")
    np.testing.assert_allclose(h(x, 2, x), x**2 + x, 1e-6)
    count = len(traces)
    h(x, 2, x)
    assert len(traces) == count
    np.testing.assert_allclose(h(x, 3, x), x**3 + x, 1e-6)
    with pytest.raises(ValueError, match="'n'.*list"):
        h(x, [1], x)
    h = jato.pmap(g, static_broadcasted_argnums=1, in_axes=(0, None, None))
    np.testing.assert_allclose(h(x, 2, 1.0), x**2 + 1, 1e-6)


def test_chosen_devices():
    two = jato.devices()[1:3]
    got = jato.pmap(lambda x: x + 1, devices=two)(np.zeros(5, "float32"))
    np.testing.assert_array_equal(got, np.ones(5))
    assert got.devices() == set(two)
    with pytest.raises(ValueError, match="not one of"):
        jato.pmap(lambda x: x, devices=[jato.Device(17)])
    with pytest.raises(ValueError, match="empty"):
        jato.pmap(lambda x: x, devices=[])


def test_results_are_spread_and_feed_the_next_without_a_copy():
    x = jnp.arange(1.0 * 2**20)
    y = jato.pmap(lambda v: v + 1)(x)
    assert y.devices() == set(jato.devices())
    g = jato.pmap(lambda v: v * 2)
    np.testing.assert_array_equal(g(y)[:5], [2, 4, 6, 8, 10])
    before = jato._native.pool_stats()["allocations"]
    jato.block_until_ready(g(y))
    # the result, and no copy of the argument
    assert jato._native.pool_stats()["allocations"] - before == 1


def test_donation():
    g = jato.pmap(lambda x: x + 1, donate_argnums=0)
    x = jnp.arange(6.0) + 0
    np.testing.assert_array_equal(g(x), np.arange(6) + 1)
    assert x.is_deleted()
    np.testing.assert_array_equal(g(jnp.arange(6.0) + 1), np.arange(6) + 2)


def test_programs_are_cached_per_share(monkeypatch):
    monkeypatch.setattr(stages, "LEAST_SHARE_NS", 0.0)  # else light work is one program
    g = jato.pmap(lambda x: jnp.tanh(x).sum())
    g(np.ones((8, 4), "float32"))
    stats = g.stats()
    assert stats.programs == 1  # four equal shares are one program
    g(np.ones((8, 4), "float32"))
    assert g.stats().programs == 1
    g(np.ones((9, 4), "float32"))  # 3, 2, 2, 2
    assert g.stats().programs == 3
    assert g.stats().kernels_compiled == stats.kernels_compiled


def test_trees_in_and_out_and_dtypes():
    got = jato.pmap(lambda t: (t["i"] + 1, {"b": ~t["b"]}, None))(
        {"i": np.arange(5, dtype="int8"), "b": np.array([True, False, True, True, False])}
    )
    np.testing.assert_array_equal(got[0], np.arange(5) + 1)
    assert got[0].dtype == jnp.int8 and got[2] is None
    np.testing.assert_array_equal(got[1]["b"], [False, True, False, False, True])


def test_results_that_do_not_depend_on_the_axis():
    a, b = jato.pmap(lambda x: (x, jnp.arange(3)))(np.ones((5, 2), "float32"))
    np.testing.assert_array_equal(b, np.tile(np.arange(3), (5, 1)))


def test_elements_of_no_size():
    got = jato.pmap(lambda x: (x * 2, x.sum()))(np.ones((5, 0), "float32"))
    assert got[0].shape == (5, 0)
    np.testing.assert_array_equal(got[1], np.zeros(5))


# ---- under other transforms


def test_under_jit():
    got = jato.jit(lambda x: jato.pmap(lambda v: v * 2)(x) + 1)(np.arange(6.0, dtype="float32"))
    np.testing.assert_array_equal(got, 2 * np.arange(6) + 1)


def test_under_vmap():
    x = np.arange(12.0, dtype="float32").reshape(2, 6)
    np.testing.assert_array_equal(jato.vmap(jato.pmap(lambda v: v * 2))(x), 2 * x)


def test_under_grad_and_grad_inside():
    x = np.arange(6.0, dtype="float32")
    got = jato.grad(lambda x: jato.pmap(lambda v: v**3)(x).sum())(x)
    np.testing.assert_allclose(got, 3 * x**2, 1e-6)
    np.testing.assert_allclose(jato.pmap(jato.grad(lambda v: v**3))(x), 3 * x**2, 1e-6)


def test_jit_inside_and_disable_jit():
    x = np.arange(6.0, dtype="float32")
    np.testing.assert_array_equal(jato.pmap(jato.jit(lambda v: v + 1))(x), x + 1)
    with jato.disable_jit():
        np.testing.assert_array_equal(jato.pmap(lambda v: v + 1)(x), x + 1)


# ---- errors


def test_lengths_that_differ_name_each_argument():
    with pytest.raises(ValueError) as error:
        jato.pmap(lambda images, scale: images * scale)(np.ones((6, 2)), np.ones(5))
    text = str(error.value)
    for part in ("images", "(6, 2)", "length 6", "scale", "(5,)", "length 5", "in_axes=None"):
        assert part in text, text


@pytest.mark.parametrize("axes, x", [(0, 3.0), (2, np.ones((2, 2))), (-3, np.ones((2, 2)))])
def test_a_missing_axis_names_the_argument(axes, x):
    with pytest.raises(ValueError, match=r"argument weights of shape .* has no axis .*in_axes=None"):
        jato.pmap(lambda weights: weights, in_axes=axes)(x)


@pytest.mark.parametrize(
    "options, args, message",
    [
        ({"in_axes": None}, (1.0,), "no argument is mapped"),
        ({"in_axes": (0, 0)}, (np.ones(3),), "2 entries"),
        ({"in_axes": "a"}, (np.ones(3),), "in_axes must be"),
        ({"out_axes": (0, 0, 0)}, (np.ones(3),), "out_axes"),
        ({}, (np.ones((0, 3)),), "length 0"),
        ({"axis_size": 4}, (np.ones(3),), "axis_size=4"),
    ],
)
def test_wrong_axes(options, args, message):
    with pytest.raises((TypeError, ValueError), match=message):
        jato.pmap(lambda x: (x, x), **options)(*args)


def test_what_is_no_array_is_named():
    with pytest.raises(TypeError, match="label"):
        jato.pmap(lambda x, label: x)(np.ones(3), "text")


def test_an_error_in_the_function_leaves_it_usable():
    fail = [True]

    def g(x):
        if fail[0]:
            raise RuntimeError("mine")
        return x + 1

    h = jato.pmap(g)
    with pytest.raises(RuntimeError, match="mine"):
        h(np.ones(3, "float32"))
    fail[0] = False
    np.testing.assert_array_equal(h(np.ones(3, "float32")), [2, 2, 2])


def test_debug_nans():
    g = jato.pmap(jnp.log)
    with jato.debug_nans():
        with pytest.raises(FloatingPointError, match="log"):
            g(np.array([1.0, 2, -1], "float32"))
        np.testing.assert_array_equal(g(np.ones(3, "float32")), [0, 0, 0])
    assert np.isnan(np.asarray(g(np.array([1.0, 2, -1], "float32")))).any()


def test_shards():
    x = jnp.ones((3, 2))
    (shard,) = x.addressable_shards
    assert shard.data is x and shard.index == (slice(None),) * 2 and shard.replica_id == 0
    assert x.addressable_data(0) is x and len(x.global_shards) == 1
    with pytest.raises(IndexError):
        x.addressable_data(1)
    count = len(jato.devices())
    y = jato.pmap(lambda v: 2 * v)(np.arange(2.0 * count, dtype=np.float32).reshape(count, 2))
    assert [s.device for s in y.addressable_shards] == jato.devices()
    for shard in y.addressable_shards:
        np.testing.assert_array_equal(shard.data, np.asarray(y)[shard.index])


def test_default_device():
    for device in (None, "cpu", jato.devices()[0]):
        with jato.default_device(device):
            assert jnp.ones(2).devices() == {jato.devices()[0]}
    with pytest.raises(NotImplementedError, match="default_device: expected None, 'cpu' or"):
        with jato.default_device("gpu"):
            pass
