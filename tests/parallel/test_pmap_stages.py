"""pmaps in stages: shares run apart from each other and meet at collectives.

Light functions are one program; here everything is worth a stage, unless a test says otherwise.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato import _native
from jato.core.primitive import AxisData
from jato.core.staging import trace_to_graph
from jato.core.types import type_of
from jato.experimental import io_callback
from jato.parallel import stages
from jato.transforms.batching import named_axis

lax = jato.lax
RNG = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def four_devices(monkeypatch):
    monkeypatch.setattr(stages, "LEAST_SHARE_NS", 0.0)
    with jato.config.override("jax_num_cpu_devices", 4):
        yield


def close(found, expected, tolerance=2e-5):
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=tolerance, atol=tolerance)


def agree(f, *args, tolerance=2e-5, **axes):
    """pmap(f) and vmap(f) give the same; the pmapped function."""
    mapped = jato.pmap(f, axis_name="i", **axes)
    found, tree = jato.tree_util.tree_flatten(mapped(*args))
    expected, other = jato.tree_util.tree_flatten(jato.vmap(f, axis_name="i", **axes)(*args))
    assert tree == other
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        close(x, y, tolerance)
    return mapped


def stages_of(f, *elements, size=4, dims=None, out_axes=None):
    """[(whole, names of operations), ...] of a function of one element."""
    axis = AxisData("i", size)
    with named_axis(axis):
        graph = trace_to_graph(lambda *xs: list(f(*xs)), [type_of(x) for x in elements], "f")
    count = len(graph.outputs)
    cut = stages.cut(graph, axis, 4, dims or [0] * len(elements), out_axes or [0] * count)
    return [(s.whole, [n.primitive.name for n in s.nodes]) for s in cut.stages]


# ---- where operations go


ROW = jnp.ones((5,))


def test_local_work_and_collectives_alternate():
    def f(x):
        total = lax.psum(jnp.sum(jnp.sin(x)), "i")
        return [jnp.exp(x * total)]

    local, whole, last = stages_of(f, ROW)
    assert local[0] is False and local[1][-1] == "reduce_sum"
    assert whole == (True, ["psum"])
    assert last[0] is False and "exp" in last[1]


def test_work_that_needs_no_collective_does_not_wait_for_it():
    def f(x, y):
        total = lax.psum(jnp.sum(jnp.sin(x)), "i")
        return [total * jnp.sum(jnp.exp(y))]

    (_, first), (whole, _), (_, last) = stages_of(f, ROW, ROW)
    assert whole and {"sin", "exp"} <= set(first) and last == ["mul"]


def test_cheap_work_waits_where_less_is_stored():
    def f(x):
        shifted = x + 1.0
        total = lax.psum(jnp.sum(jnp.sin(x)), "i")
        return [shifted * total]

    (_, first), _, (_, last) = stages_of(f, ROW)
    assert "add" not in first and last == ["add", "mul"]


def test_what_checkpoint_computes_again_is_not_stored():
    """Forward, a collective on its result, and the derivative, for which all is computed again."""

    def f(x):
        long = jato.checkpoint(lambda x: jnp.sum(jnp.sin(jnp.exp(x))))
        value, pull = jato.vjp(long, x)
        return pull(lax.pmean(value, "i"))

    (_, first), (whole, _), (_, last) = stages_of(f, ROW)
    assert first == ["exp", "sin", "reduce_sum"] and whole
    assert "exp" in last and "cos" in last
    agree(f, RNG.normal(size=(6, 5)).astype("f4"))


def test_what_all_members_share_is_computed_once():
    def f(x, w):
        mean = lax.pmean(jnp.sum(jnp.sin(x)), "i")
        return [jnp.sin(w) * mean, x * w]  # w and the mean are the same for all

    (whole, early), (local, _), (_, last) = stages_of(f, ROW, ROW, dims=[0, None], out_axes=[None, 0])[:3]
    assert whole and early == ["sin"] and not local
    assert "psum" in last and "div" in last and "mul" in last


def test_cheap_shared_values_are_computed_wherever_they_are_needed():
    parts = stages_of(lambda x: [jnp.sin(x) * (2 * jnp.arange(5.0)), lax.psum(jnp.sum(jnp.sin(x)), "i")], ROW)
    assert [whole for whole, _ in parts] == [False, True]


def test_the_number_of_a_member_is_no_communication():
    parts = stages_of(lambda x: [jnp.sin(x) * lax.axis_index("i")], ROW)
    assert [whole for whole, _ in parts] == [False]

    def looped(x):
        return [lax.fori_loop(0, 3, lambda k, c: jnp.sin(c) + lax.axis_index("i"), x)]

    assert [whole for whole, _ in stages_of(looped, ROW)] == [False]
    for size in (4, 7):
        x = RNG.normal(size=(size, 5)).astype("f4")
        agree(lambda x: looped(x)[0], x)
        agree(lambda x: jnp.sin(x) * lax.axis_index("i"), x)


def test_calls_are_looked_into_and_loops_are_not():
    inner = jato.jit(lambda x: lax.psum(jnp.sin(x), "i") + jnp.cos(x))

    @jato.custom_jvp
    def rule(x):
        return lax.psum(jnp.sin(x), "i") + jnp.cos(x)

    rule.defjvp(lambda p, t: (rule(p[0]), t[0]))
    for f in (inner, rule):
        parts = stages_of(lambda x, f=f: [f(x)], ROW)
        assert [whole for whole, _ in parts] == [False, True, False]
        agree(f, RNG.normal(size=(6, 5)).astype("f4"))

    def loop(x):
        return [lax.fori_loop(0, 3, lambda k, c: jnp.sin(c) + lax.psum(c, "i"), jnp.exp(x))]

    (_, first), (whole, second) = stages_of(loop, ROW)
    assert "exp" in first and whole and "scan" in second
    agree(lambda x: loop(x)[0], RNG.normal(size=(6, 5)).astype("f4"), tolerance=1e-3)


def test_light_functions_are_one_program(monkeypatch):
    monkeypatch.undo()

    def f(x):
        return jnp.sin(x) - lax.pmean(jnp.sin(x), "i")

    light = agree(f, RNG.normal(size=(8, 5)).astype("f4"))
    assert light.stats().programs == 1
    assert light.lookup(jnp.ones((8, 5))) is None or light.stats().traces == 1
    heavy = agree(f, RNG.normal(size=(8, 1 << 20)).astype("f4"))
    assert heavy.stats().programs == 3
    waits = agree(lambda n: lax.psum(lax.while_loop(lambda k: k < n, lambda k: k + 1, 0), "i"), np.arange(8))
    assert waits.stats().programs == 2


# ---- shares run apart


def count_trips(f, n):
    """Trips of each member's loop, counted where they happen."""
    counts, lock = {}, threading.Lock()

    def note(member):
        with lock:
            counts[int(member)] = counts.get(int(member), 0) + 1

    def counted(n):
        own = lax.axis_index("i")

        def body(k):
            io_callback(note, None, own)
            return k + 1

        return lax.psum(lax.while_loop(lambda k: k < n, body, 0), "i")

    found = np.asarray(f(counted)(n))
    jato.effects_barrier()
    return found, counts


def test_each_shard_does_only_its_own_trips():
    n = np.array([1, 40, 3, 0], "int32")
    found, counts = count_trips(lambda f: jato.pmap(f, axis_name="i"), n)
    close(found, [44] * 4)
    assert counts == {0: 1, 1: 40, 2: 3}
    batched, counts = count_trips(lambda f: jato.vmap(f, axis_name="i"), n)
    close(batched, [44] * 4)
    assert sum(counts.values()) == 160  # one loop for all goes as far as the longest


def test_a_share_of_several_members_loops_as_far_as_its_longest():
    n = np.array([1, 2, 3, 9, 5, 1, 1, 0], "int32")
    _, counts = count_trips(lambda f: jato.pmap(f, axis_name="i"), n)
    assert counts == {0: 2, 1: 2, 2: 9, 3: 9, 4: 5, 5: 5, 6: 1, 7: 1}


def test_shards_meet_only_at_collectives():
    """Shard 0 waits, in a callback, for what shard 3 does before the same collective."""
    there = threading.Event()

    def meet(member):
        if int(member) == 3:
            there.set()
        else:
            assert there.wait(20)
        return np.float32(member)

    def f(x):
        own = jato.pure_callback(meet, jato.ShapeDtypeStruct((), "float32"), x, vmap_method="sequential")
        return lax.psum(own, "i") + own

    close(jato.pmap(f, axis_name="i")(np.arange(4)), 6 + np.arange(4))


def test_callbacks_run_on_the_thread_of_their_device():
    threads, lock = {}, threading.Lock()

    def note(member):
        with lock:
            threads.setdefault(int(member), set()).add(threading.get_ident())
        return np.float32(member)

    def f(x):
        own = jato.pure_callback(note, jato.ShapeDtypeStruct((), "float32"), x, vmap_method="sequential")
        return lax.psum(own, "i")

    mapped = jato.pmap(f, axis_name="i")
    for _ in range(3):
        close(mapped(np.arange(8)), [28] * 8)
    assert all(len(found) == 1 for found in threads.values())
    assert threads[0] == threads[1] and len(set().union(*threads.values())) == 4
    assert threading.get_ident() not in set().union(*threads.values())


def test_effects_keep_their_order_in_each_shard():
    log, lock = [], threading.Lock()

    def note(what):
        def write(member):
            with lock:
                log.append((what, int(member)))

        return write

    def f(x):
        io_callback(note("first"), None, lax.axis_index("i"))
        total = lax.psum(jnp.exp(x), "i")
        io_callback(note("second"), None, lax.axis_index("i"))  # needs no collective
        io_callback(note("third"), None, jnp.where(total > 0, lax.axis_index("i"), -1))
        return total

    mapped = jato.pmap(f, axis_name="i")
    for _ in range(3):
        mapped(np.ones(6, "f4"))
    jato.effects_barrier()
    assert len(log) == 3 * 3 * 6
    for member in range(6):
        assert [w for w, m in log if m == member] == ["first", "second", "third"] * 3
    # the third ones wait for the collective, and so for the first two of all members in that call
    for call in range(3):
        def places(what, member, call=call):
            return [k for k, entry in enumerate(log) if entry == (what, member)][call]

        firsts = [places("first", member) for member in range(6)]
        assert max(firsts) < min(places("third", member) for member in range(6))


# ---- errors and cancellation


def spin(n):
    return lax.while_loop(
        lambda c: c[0] < n, lambda c: (c[0] + 1, jnp.sin(c[1]) + 1.0), (jnp.int32(0), jnp.float32(1))
    )[1]


def failing(x):
    """Member 0 loops for minutes, if x says so, and member 2 fails."""

    def fail(n):
        if int(n) == 2:
            raise RuntimeError("shard 2 failed")
        return np.float32(0)

    own = jato.pure_callback(fail, jato.ShapeDtypeStruct((), "float32"), x, vmap_method="sequential")
    return lax.psum(own + spin(jnp.where(x == 0, 2**31 - 1, 3)), "i")


def test_an_error_of_one_shard_reaches_the_caller_and_frees_the_others():
    mapped = jato.pmap(failing, axis_name="i")
    good = np.arange(4) + 10
    expected = np.asarray(mapped(good))
    for _ in range(3):
        start = time.perf_counter()
        with pytest.raises(RuntimeError, match="shard 2 failed"):
            np.asarray(mapped(np.arange(4)))
        close(mapped(good), expected)
        assert time.perf_counter() - start < 10  # the loop of member 0 takes minutes
    jato.effects_barrier()
    # so do results that are computed from it
    with pytest.raises(RuntimeError, match="shard 2 failed"):
        (mapped(np.arange(4)) + 1).block_until_ready()
    close(mapped(good), expected)


def test_an_error_after_the_collective():
    def fail(x):
        raise ValueError("after")

    def f(x):
        total = lax.psum(jnp.sin(x), "i")
        return jato.pure_callback(
            fail, jato.ShapeDtypeStruct((), "float32"), total * x, vmap_method="sequential"
        )

    mapped = jato.pmap(f, axis_name="i")
    for _ in range(2):
        with pytest.raises(ValueError, match="after"):
            np.asarray(mapped(np.ones(5, "f4")))
    close(jato.pmap(lambda x: lax.psum(jnp.sin(x), "i"), axis_name="i")(np.zeros(4, "f4")), np.zeros(4))


def test_ctrl_c_while_one_shard_loops():
    mapped = jato.pmap(failing, axis_name="i")
    good = np.arange(4) + 10
    expected = np.asarray(mapped(good))
    result = mapped(np.array([0, 11, 12, 13]))
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        result.block_until_ready()
    assert time.perf_counter() - start < 1.2
    close(mapped(good), expected)


def test_a_callback_that_waits_for_a_later_result_of_its_call_is_an_error():
    later = []

    def wait(x):
        if int(x) == 1:
            while not later:
                time.sleep(0.001)
            later[0].block_until_ready()
        return np.float32(x)

    def own(x):
        return jato.pure_callback(wait, jato.ShapeDtypeStruct((), "float32"), x, vmap_method="sequential")

    def f(x):
        return jnp.sin(lax.psum(own(x), "i") * x)

    big = jato.jit(lambda x: jnp.sin(x).sum())
    big(jnp.ones(1 << 22)).block_until_ready()
    result = jato.pmap(f, axis_name="i")(np.arange(4))  # holds device 0 until member 1 is done
    later.append(big(jnp.ones(1 << 22)))  # queued behind it
    with pytest.raises(RuntimeError, match="same device computes later"):
        result.block_until_ready()
    later[0].block_until_ready()
    # where device 0 has nothing to do after the collective, it does not wait for member 1
    later.clear()
    result = jato.pmap(lambda x: lax.psum(own(x), "i"), axis_name="i")(np.arange(4))
    later.append(big(jnp.ones(1 << 22)))
    close(result, [6] * 4)


def test_callbacks_of_shards_may_call_jato():
    big = jato.jit(lambda x: jnp.sin(x).sum())
    across = jato.pmap(lambda x: lax.psum(jnp.sin(x), "i"), axis_name="i")

    def compute(x):
        return np.float32(big(jnp.ones(1 << 20) * float(x)) + across(np.ones(4, "f4"))[0])

    def f(x):
        own = jato.pure_callback(compute, jato.ShapeDtypeStruct((), "float32"), x, vmap_method="sequential")
        return lax.psum(own, "i")

    expected = sum(np.sin(np.arange(4.0)) * (1 << 20)) + 16 * np.sin(1)
    for _ in range(3):
        close(jato.pmap(f, axis_name="i")(np.arange(4, dtype="f4")), [expected] * 4, 1e-3)


# ---- the same results as vmap


def blocks(size):
    """Functions of a (size, 2) array, each with its collective."""
    ring = [(i, (i + 1) % size) for i in range(size)]
    half = [list(range(size // 2)), list(range(size // 2, size))] if size % 2 == 0 else None
    return [
        lambda x: x - lax.pmean(jnp.sin(x), "i"),
        lambda x: jnp.tanh(x) / (1 + lax.psum(x * x, "i")),
        lambda x: lax.pmax(jnp.cos(x), "i") - lax.pmin(x, "i"),
        lambda x: jnp.sin(lax.all_gather(x, "i")).sum(0) * 0.1,
        lambda x: lax.all_to_all(jnp.sin(x), "i", 0, 0),
        lambda x: lax.ppermute(jnp.sin(x), "i", ring) + x,
        lambda x: lax.pshuffle(x * 2, "i", list(reversed(range(size)))),
        lambda x: x + lax.psum_scatter(jnp.cos(x), "i"),
        lambda x: lax.pbroadcast(jnp.exp(-x * x), "i", size - 1) * x,
        lambda x: x * lax.axis_index("i") / lax.axis_size("i"),
        lambda x: jnp.sin(x) + (lax.psum(x, "i", axis_index_groups=half) if half else x),
        lambda x: lax.fori_loop(0, 2, lambda k, c: jnp.sin(c) + lax.pmean(c, "i"), x),
        lambda x: lax.cond(lax.psum(x[0, 0], "i") > 0, jnp.sin, lambda v: v - lax.psum(v, "i"), x),
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 6, 7, 13])
@pytest.mark.parametrize("devices", [2, 3, 4])
def test_every_collective(size, devices):
    x = RNG.normal(size=(size, size, 2)).astype("f4")
    with jato.config.override("jax_num_cpu_devices", devices):
        for f in blocks(size):
            agree(f, x)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.choice([2, 3, 4, 5, 8]))
    some = blocks(size)
    chosen = [some[k] for k in rng.integers(len(some), size=4)]

    def f(x, w):
        kept = []
        for g in chosen:
            x = jnp.tanh(g(x) + w)
            kept.append(jnp.sum(x))
        return x, kept, w * lax.pmean(kept[0], "i")

    x = rng.normal(size=(size, size, 2)).astype("f4")
    w = rng.normal(size=(size, 2)).astype("f4")
    agree(f, x, w, in_axes=(0, None), tolerance=2e-4)
    agree(f, np.moveaxis(x, 0, 1), w, in_axes=(1, None), out_axes=(2, 0, None), tolerance=2e-4)

    def loss(x, w):
        out, kept, scaled = f(x, w)
        return lax.pmean(jnp.sum(out) + kept[1] + jnp.sum(scaled), "i")

    agree(jato.grad(loss, argnums=(0, 1)), x, w, in_axes=(0, None), tolerance=1e-3)


def test_in_other_transforms():
    x = RNG.normal(size=(4, 3)).astype("f4")
    f = jato.pmap(lambda x: jnp.sin(x) / lax.psum(x * x, "i"), axis_name="i")
    g = jato.vmap(lambda x: jnp.sin(x) / lax.psum(x * x, "i"), axis_name="i")
    close(jato.jit(f)(x), g(x))
    close(jato.grad(lambda x: f(x).sum())(x), jato.grad(lambda x: g(x).sum())(x), 1e-4)
    agree(lambda x: jato.vmap(lambda y: y + lax.psum(y, ("i", "j")), axis_name="j")(jnp.sin(x)), x)
    agree(lambda x: jato.pmap(lambda y: y - lax.pmean(y, "i"), axis_name="j")(jnp.sin(x)), x)
    agree(jato.jit(lambda x: jnp.sin(x) - lax.pmax(x, "i")), x)


def test_donation():
    f = jato.pmap(lambda x: jnp.sin(x) - lax.pmean(x, "i"), axis_name="i", donate_argnums=0)
    x = RNG.normal(size=(6, 3)).astype("f4")
    given = jnp.asarray(x)
    close(f(given), np.sin(x) - x.mean(0))
    assert given.is_deleted()
    pending = jato.pmap(lambda x: lax.psum(jnp.sin(x), "i"), axis_name="i")(x)
    close(f(pending), np.sin(np.broadcast_to(np.sin(x).sum(0), x.shape)) - np.sin(x).sum(0), 1e-4)
    assert pending.is_deleted()


def test_debug_nans():
    f = jato.pmap(lambda x: jnp.log(x) - lax.pmean(jnp.log(x), "i"), axis_name="i")
    with jato.debug_nans():
        with pytest.raises(FloatingPointError):
            f(np.array([1, 2, -1, 4], "f4"))
        close(f(np.ones(4, "f4")), np.zeros(4))


def test_constants_numbers_and_results_without_a_stage_of_their_own():
    table = jnp.arange(3.0)

    def f(x, w):
        total = lax.psum(jnp.sin(x), "i")
        return total * table, x, w, 3, jnp.arange(2), x, total, total

    agree(f, RNG.normal(size=(5, 3)).astype("f4"), np.ones(2, "f4"), in_axes=(0, None))
    agree(f, RNG.normal(size=(5, 3)).astype("f4"), np.ones(2, "f4"), in_axes=(0, None), out_axes=(0, 1, None, None, 0, -1, None, 0))


def test_elements_of_no_size_and_keys():
    agree(lambda x: (lax.psum(jnp.sin(x), "i"), x * 2, jnp.sum(x)), np.ones((5, 0), "f4"))
    keys = jato.random.split(jato.random.key(0), 5)
    agree(lambda k: lax.pmean(jato.random.normal(k, (3,)), "i"), keys)


# ---- memory, caches, threads


def test_results_stay_on_their_devices_and_feed_the_next_without_a_copy():
    _native.pool_trim()  # kept blocks of other tests may be larger than what is asked for, and count so
    f = jato.pmap(lambda x: jnp.sin(x) - lax.pmean(jnp.sin(x), "i"), axis_name="i")
    x = jnp.ones((8, 1 << 16))
    y = jato.block_until_ready(f(x))
    assert y.devices() == set(jato.devices())
    assert [s.data.shape[0] for s in y.addressable_shards] == [2] * 4
    jato.block_until_ready(f(y))
    traces = f.stats().traces
    _native.pool_reset_peak()
    before = _native.pool_stats()["in_use"]
    z = jato.block_until_ready(f(y))
    after = _native.pool_stats()
    assert after["in_use"] - before <= 1.1 * z.nbytes
    # the result, the sines, their mean and little else: no copy of the argument
    assert after["peak"] - before <= 2.6 * z.nbytes
    assert f.stats().traces == traces


def test_memory_between_stages_does_not_pile_up():
    f = jato.pmap(lambda x: x * 0.5 + lax.pmean(jnp.sin(x), "i"), axis_name="i")
    x = jato.block_until_ready(f(jnp.ones((4, 1 << 18))))
    _native.pool_reset_peak()
    base = _native.pool_stats()["in_use"]
    for _ in range(50):
        x = f(x)
    jato.block_until_ready(x)
    assert _native.pool_stats()["peak"] - base < 8 * x.nbytes


def test_a_heavy_call_returns_before_it_is_done():
    go = threading.Event()

    def wait(x):
        go.wait(20)
        return x

    def f(x):
        return lax.psum(
            jato.pure_callback(wait, jato.ShapeDtypeStruct((), "float32"), x, vmap_method="sequential"), "i"
        )

    mapped = jato.pmap(f, axis_name="i")
    first = mapped(np.ones(4, "f4"))
    second = mapped(first)
    assert not first.is_ready() and not second.is_ready()
    go.set()
    close(second, [16] * 4)


def test_equal_shares_share_their_programs():
    f = jato.pmap(lambda x: jnp.sin(x) * lax.axis_index("i") - lax.pmean(jnp.exp(x), "i"), axis_name="i")
    f(np.ones((12, 100), "f4"))
    first = f.stats()
    assert first.programs == 3 and len(first.kernels) >= 3
    f(np.ones((12, 100), "f4"))
    assert f.stats().programs == 3
    f(np.ones((13, 100), "f4"))  # 4, 3, 3, 3
    assert f.stats().programs == 8
    assert f.stats().kernels_compiled == first.kernels_compiled


def test_kernels_come_from_the_disk(tmp_path):
    code = textwrap.dedent(
        """
        import numpy as np, jato, jato.numpy as jnp
        from jato.parallel import stages
        stages.LEAST_SHARE_NS = 0.0
        f = jato.pmap(lambda x: jnp.sin(x) - jato.lax.pmean(jnp.sin(x), "i"), axis_name="i")
        np.testing.assert_allclose(f(np.ones((4, 300), "f4")), 0, atol=1e-6)
        print(f.stats().programs, f.stats().kernels_compiled)
        """
    )
    environment = {**os.environ, "JATO_CACHE_DIR": str(tmp_path), "JATO_NUM_CPU_DEVICES": "4"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert runs[0][0] == runs[1][0] == "3"
    assert int(runs[0][1]) > 0 and runs[1][1] == "0"


@pytest.mark.parametrize("threads", [1, 2])
def test_many_calls_from_several_threads(threads):
    """More devices than threads of the pool, and calls that share some of the devices."""
    devices = jato.devices()
    functions = [
        jato.pmap(lambda x: jnp.sin(x) - lax.pmean(jnp.sin(x), "i"), axis_name="i", devices=chosen)
        for chosen in (devices, devices[::-1], devices[1:3], [devices[3], devices[0]])
    ]
    heavy = np.ones((4, 1 << 14), "f4")
    errors = []

    def work(f, k):
        try:
            x = heavy * k
            for _ in range(15):
                x = f(x) + k
            close(x, np.full_like(heavy, k), 1e-4)
        except BaseException as error:
            errors.append(error)

    with jato.config.override("jax_num_cpu_devices", 4), jato.set_num_threads(threads):
        workers = [
            threading.Thread(target=work, args=(f, k)) for k, f in enumerate(functions * 2, start=1)
        ]
        for w in workers:
            w.start()
        for w in workers:
            w.join(60)
    assert not errors and not any(w.is_alive() for w in workers)


def test_fork_between_calls():
    f = jato.pmap(lambda x: jnp.sin(x) - lax.pmean(jnp.sin(x), "i"), axis_name="i")
    x = np.ones((4, 1 << 14), "f4")
    jato.block_until_ready(f(x))
    child = os.fork()
    if child == 0:
        try:
            good = np.allclose(np.asarray(f(x)), 0, atol=1e-5)
        finally:
            os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    close(f(x), np.zeros_like(x))
