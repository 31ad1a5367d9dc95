"""Collectives under pmap: over all of the mapped axis, however many devices share it."""

import functools
import threading

import jax
import jax.numpy as oracle_np
import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato.experimental import io_callback

RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def four_devices():
    with jato.config.override("jax_num_cpu_devices", 4):
        yield


def close(found, expected, tolerance=2e-5):
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=tolerance, atol=tolerance)


X4 = RNG.normal(size=(4, 4, 6)).astype(np.float32)


def everything(module, np_, x):
    lax = module.lax
    return {
        "psum": lax.psum(x, "i"),
        "pmean": lax.pmean({"a": x}, "i"),
        "pmax": lax.pmax(x, "i") - lax.pmin(x, "i"),
        "gather": lax.all_gather(x, "i", axis=1),
        "scatter": lax.psum_scatter(x, "i"),
        "exchange": lax.all_to_all(x, "i", 0, 1, tiled=True),
        "permute": lax.ppermute(x, "i", [(i, (i + 1) % 4) for i in range(4)]),
        "index": lax.axis_index("i") + lax.axis_size("i") + lax.psum(1, "i"),
        "local": np_.sin(x),
        "loop": lax.fori_loop(0, 3, lambda n, c: np_.tanh(c + lax.pmean(c, "i")), x),
        "scan": lax.scan(lambda c, r: (c + lax.psum(r, "i"), c), x[0], x)[1],
    }


def test_one_element_for_each_device_agrees_with_jax():
    if jax.local_device_count() < 4:
        pytest.skip("the oracle has started with fewer devices")
    found = jato.pmap(lambda x: everything(jato, jnp, x), axis_name="i")(X4)
    expected = jax.pmap(lambda x: everything(jax, oracle_np, x), axis_name="i")(X4)
    assert jax.tree_util.tree_structure(found) == jax.tree_util.tree_structure(expected)
    jax.tree_util.tree_map(close, found, expected)


@pytest.mark.parametrize("size", [1, 3, 8, 13, 64])
def test_any_length_agrees_with_vmap(size):
    x = RNG.normal(size=(size, size, 2)).astype(np.float32)

    def f(x):
        lax = jato.lax
        return (
            lax.psum(x, "i"), lax.all_gather(x, "i"), lax.psum_scatter(x, "i"),
            lax.all_to_all(x, "i", 0, 0), lax.ppermute(x, "i", [(i, (i + 1) % size) for i in range(size)]),
            lax.axis_index("i") * lax.axis_size("i"),
        )  # fmt: skip

    found = jato.pmap(f, axis_name="i")(x)
    for y, z in zip(found, jato.vmap(f, axis_name="i")(x), strict=True):
        close(y, z)
    assert found[0].placement.devices == tuple(jato.devices()[: min(4, size)])


def test_results_feed_the_next_pmap():
    f = jato.pmap(lambda x: x - jato.lax.pmean(x, "i"), axis_name="i")
    g = jato.pmap(lambda x: x * 2)
    close(g(f(g(X4))), 4 * (X4 - X4.mean(0)))
    assert f.stats().traces == 1
    f(g(X4))
    assert f.stats().traces == 1


@pytest.mark.parametrize("out_axes", [0, 1, -1, None])
def test_out_axes(out_axes):
    def f(x):
        return jato.lax.psum(x, "i") if out_axes is None else x * jato.lax.axis_index("i")

    mapped = jato.pmap(f, axis_name="i", in_axes=1, out_axes=out_axes)
    x = np.moveaxis(X4, 0, 1)
    expected = X4.sum(0) if out_axes is None else np.moveaxis(
        X4 * np.arange(4)[:, None, None], 0, out_axes
    )
    close(mapped(x), expected)
    programs = mapped.stats().programs
    close(mapped(x), expected)
    assert mapped.stats().programs == programs  # remembered like every other
    plain = jato.pmap(lambda x: x + 1, in_axes=1, out_axes=(0 if out_axes is None else out_axes))
    close(plain(x), np.moveaxis(X4 + 1, 0, out_axes or 0))


def test_broadcast_and_static_arguments_donation_and_devices():
    @functools.partial(
        jato.pmap, axis_name="i", in_axes=(0, None, None), static_broadcasted_argnums=2,
        donate_argnums=0, devices=jato.devices()[1:3],
    )  # fmt: skip
    def step(x, w, power):
        return x + jato.lax.pmean((x * w) ** power, "i")

    x, w = jnp.asarray(X4), jnp.float32(0.5)
    close(step(x, w, 2), X4 + ((X4 * 0.5) ** 2).mean(0))
    assert x.is_deleted() and not w.is_deleted()


def test_under_other_transforms():
    f = jato.pmap(lambda x: jnp.sin(x) / jato.lax.psum(x * x, "i"), axis_name="i")
    loss = lambda x: jnp.sum(f(x) ** 2)  # noqa: E731
    g = jax.vmap(lambda x: oracle_np.sin(x) / jax.lax.psum(x * x, "i"), axis_name="i")
    expected = jax.grad(lambda x: (g(x) ** 2).sum())(X4)
    close(jato.grad(loss)(X4), expected, 1e-3)
    close(jato.jit(jato.grad(loss))(X4), expected, 1e-3)
    with jato.disable_jit():
        close(f(X4), g(X4))
    nested = jato.pmap(
        lambda x: jato.pmap(lambda y: y + jato.lax.psum(y, ("i", "j")), axis_name="j")(x),
        axis_name="i",
    )
    close(nested(X4), X4 + X4.sum((0, 1)))
    inside = jato.pmap(jato.jit(lambda x: x - jato.lax.pmax(x, "i")), axis_name="i")
    close(inside(X4), X4 - X4.max(0))


def test_data_parallel_training_equals_training_on_one_device():
    x = RNG.normal(size=(4, 8, 3)).astype(np.float32)
    y = np.tanh(x @ np.array([1.0, -2.0, 0.5], np.float32))

    def loss(w, x, y):
        return jnp.mean((jnp.tanh(x @ w) - y) ** 2)

    def step(w, x, y):
        value, grads = jato.value_and_grad(loss)(w, x, y)
        value, grads = jato.lax.pmean((value, grads), "batch")
        return w - 0.5 * grads, value

    parallel = jato.pmap(step, axis_name="batch", in_axes=(0, 0, 0))
    single = jato.jit(lambda w: w - 0.5 * jato.grad(loss)(w, x.reshape(-1, 3), y.reshape(-1)))
    w, w1 = jnp.zeros((4, 3)), jnp.zeros(3)
    for _ in range(20):
        w, value = parallel(w, x, y)
        w1 = single(w1)
    for row in np.asarray(w):
        close(row, w1, 1e-4)
    assert np.asarray(value).max() < 0.05


def test_lower_and_shapes():
    f = jato.pmap(lambda x: jato.lax.psum(x, "i"), axis_name="i")
    assert f.eval_shape(X4).shape == (4, 4, 6)
    assert "reduce_sum" in str(f.trace(X4).jaxpr)
    close(f.lower(X4).compile()(X4), np.broadcast_to(X4.sum(0), X4.shape))


def test_error_of_one_shard_reaches_the_caller_and_frees_the_others():
    def fails(n):
        if int(n) == 2:
            raise RuntimeError("shard 2 failed")
        return n

    def local(x):
        return jato.pure_callback(
            fails, jato.ShapeDtypeStruct((), "int32"), x, vmap_method="sequential"
        )

    def across(x):
        return jato.lax.psum(local(x), "i")

    for f in (local, across):
        mapped = jato.pmap(f, axis_name="i")
        with pytest.raises(RuntimeError, match="shard 2 failed"):
            np.asarray(mapped(np.arange(4)))
        close(mapped(np.arange(4) + 10), [10, 11, 12, 13] if f is local else [46] * 4)
        # heavy: on the devices' queues
        heavy = jato.pmap(
            lambda x, f=f: jato.lax.fori_loop(0, 50, lambda i, c: f(c) * 0 + c, x), axis_name="i"
        )
        with pytest.raises(RuntimeError, match="shard 2 failed"):
            heavy(np.arange(4)).block_until_ready()
        close(heavy(np.arange(4) + 10), np.arange(4) + 10)
    jato.effects_barrier()


def test_effects_of_shards():
    log, lock = [], threading.Lock()

    def note(n):
        with lock:
            log.append(int(n))

    jato.pmap(lambda x: io_callback(note, None, x))(np.arange(4))
    jato.effects_barrier()
    assert sorted(log) == [0, 1, 2, 3]


def test_errors():
    with pytest.raises(NameError, match="unbound axis name: 'j'"):
        jato.pmap(lambda x: jato.lax.psum(x, "j"), axis_name="i")(X4)
    with pytest.raises(ValueError, match="mapped axes differ in length"):
        jato.pmap(lambda x, y: jato.lax.psum(x + y, "i"), axis_name="i")(X4, X4[:2])
