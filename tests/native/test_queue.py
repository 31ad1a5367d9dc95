"""Queued execution: pending arrays, errors, order, devices, stages, signals, fork."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from programs import (
    LEAF,
    add_executable,
    f32,
    host_executable,
    jit_of,
    scale_executable,
    slow_executable,
)

from jato import _native
from jato._native import ArrayType, from_numpy, to_numpy

HEAVY = 1e9  # an estimate that sends any program to the queue


def ones(n=8):
    return from_numpy(np.ones(n, "f4"))


def slow(milliseconds, n=8):
    """A jitted copy that takes about that long."""
    return jit_of(lambda *types: slow_executable(int(milliseconds * 1e6 / 0.6), n))


def test_result_is_pending_then_ready():
    x = slow(60)(ones())
    assert not x.is_ready()
    assert x.shape == (8,) and x.dtype == np.float32  # known at once
    start = time.perf_counter()
    assert x.block_until_ready() is x
    assert x.is_ready() and x.tolist() == [1] * 8
    assert time.perf_counter() - start < 5


def test_pending_inputs_and_views_chain():
    f, add = slow(30), jit_of(lambda *types: add_executable())
    x = f(ones())
    y = add(x, x)  # light work on a pending input is queued behind it
    z = add(y, x)
    view = z[2:5]
    reshaped = _native.view(z, ArrayType((2, 4), 11))
    assert not view.is_ready()
    del x, y, z
    assert view.tolist() == [3, 3, 3] and reshaped.tolist() == [[3] * 4] * 2


def test_python_scalars_and_numpy_arrays_are_copied_into_the_queue():
    f = slow(30)
    scale = jit_of(lambda x, s: scale_executable(x, s))
    add = jit_of(lambda *types: add_executable())
    x = f(ones())
    host = np.arange(8, dtype="f4")
    results = [add(scale(x, float(i)), host) for i in range(5)]
    host[:] = -1  # after the call: must not be seen
    for i, r in enumerate(results):
        np.testing.assert_array_equal(to_numpy(r), np.arange(8, dtype="f4") + i)


def test_heavy_work_runs_in_order():
    log = []
    f = jit_of(lambda *types: host_executable(lambda x, out: (log.append(float(x[0])), out.__setitem__(..., x)), cost_ns=HEAVY))
    results = [f(from_numpy(np.full(8, i, "f4"))) for i in range(50)]
    assert [r.tolist()[0] for r in results] == list(range(50)) == log


def test_an_error_surfaces_at_each_use_and_in_dependents():
    class Custom(Exception):
        pass

    def fail(x, out):
        time.sleep(0.01)
        raise Custom("in the queue")

    f = jit_of(lambda *types: host_executable(fail, cost_ns=HEAVY))
    add = jit_of(lambda *types: add_executable())
    x = f(ones())
    y = add(x, x)
    for use in (x.block_until_ready, x.tolist, lambda: np.asarray(x), lambda: add(x, x).tolist(), y.tolist, lambda: add(ones(), y)):
        with pytest.raises(Custom, match="in the queue"):
            use()
    assert x.is_ready()
    assert add(ones(), ones()).tolist() == [2] * 8


def test_a_kept_error_looks_like_the_original():
    class Custom(Exception):
        def __init__(self, message, code):
            super().__init__(message, code)
            self.code = code

    def fail(x, out):
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise Custom("message", 7) from inner

    x = jit_of(lambda *types: host_executable(fail, cost_ns=HEAVY))(ones())
    for _ in range(3):
        with pytest.raises(Custom, match="message") as caught:
            x.tolist()
        assert caught.value.code == 7 and isinstance(caught.value.__cause__, KeyError)
        assert caught.traceback[-1].name == "fail"


def test_donation_in_the_queue():
    f = slow(20)
    add = jit_of(lambda *types: add_executable(cost_ns=HEAVY, take_over=0), donated=(0,))
    x = from_numpy(np.arange(8, dtype="f4"))
    address = x.unsafe_buffer_pointer()
    y = add(x, ones())
    assert x.is_deleted()
    assert y.tolist() == list(range(1, 9)) and y.unsafe_buffer_pointer() == address
    # a pending array is donated: its memory goes straight on
    x = f(ones())
    for _ in range(5):
        x = add(x, ones())
    address = x.block_until_ready().unsafe_buffer_pointer()
    x = add(x, ones())
    assert x.tolist() == [7] * 8 and x.unsafe_buffer_pointer() == address
    # the same pending array twice, and one with a view
    x = f(ones())
    assert add(x, x).tolist() == [2] * 8
    x = f(ones())
    view = x[:]
    assert add(x, ones()).tolist() == [2] * 8 and view.tolist() == [1] * 8


def test_memory_of_a_queue_does_not_pile_up():
    n = 1 << 20
    add = jit_of(lambda *types: add_executable(n, cost_ns=HEAVY))
    x, y = ones(n), ones(n)
    add(x, y).block_until_ready()
    _native.pool_reset_peak()
    base = _native.pool_stats()["in_use"]
    for _ in range(200):
        x = add(x, y)
    x.block_until_ready()
    assert _native.pool_stats()["peak"] - base < 12 * 4 * n
    assert x.tolist()[0] == 201


def test_wait_releases_the_gil():
    x = slow(100)(ones())
    ticks = []

    def tick():
        while not x.is_ready():
            ticks.append(1)
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    x.block_until_ready()
    thread.join()
    assert len(ticks) > 5


def test_deleting_while_another_thread_waits():
    x = slow(50)(ones())
    outcome = []

    def wait():
        try:
            outcome.append(x.tolist())
        except RuntimeError as error:
            outcome.append(str(error))

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.01)
    x.delete()
    thread.join()
    assert outcome == [[1] * 8] or "deleted" in outcome[0]


def test_two_devices_run_apart_and_feed_each_other(two_devices):
    first = jit_of(lambda *types: slow_executable(50_000_000), device=0, placement="a")
    second = jit_of(lambda *types: add_executable(cost_ns=HEAVY), device=1, placement="b")
    x = first(ones())
    y = second(ones(), ones())  # does not wait for device 0
    assert y.tolist() == [2] * 8
    z = second(x, y)  # does
    assert z.tolist() == [3] * 8 and z.placement == "b" and x.placement == "a"


def test_ordered_programs_do_not_overtake():
    log = []

    def note(name):
        return lambda x, out: (log.append(name), out.__setitem__(..., x))

    late = jit_of(lambda *types: host_executable(lambda x, out: (time.sleep(0.03), note("heavy")(x, out)), cost_ns=HEAVY))
    light = jit_of(lambda *types: host_executable(note("light")), ordered=True)
    x = late(ones())
    y = light(ones())
    x.block_until_ready(), y.block_until_ready()
    assert log == ["heavy", "light"]


def spread_entry(devices, cost_ns=HEAVY):
    """x + y of float32[8, 4], two rows to a device, y shared by all."""
    rows = 8 // len(devices)
    part = f32(rows, 4)
    executables = []
    for _ in devices:
        import kernels

        b = _native.ExecutableBuilder()
        x, y, out = b.input(part), b.input(part), b.output(part)
        b.launch(kernels.add(), [x, y, out], [], rows * 4)
        b.output_alias(part, "input", 0)
        executables.append(b.finish(0, cost_ns))
    step = rows * 16
    parts = [
        (d, e, [(0, i * step), (1, 0)], [(2, i * step), (3, i * step)])
        for i, (d, e) in enumerate(zip(devices, executables, strict=True))
    ]
    tree = _native.tree_flatten((0, 0))[1]
    return _native.Entry(
        None, tree, [0, 1], placement="spread", stages=[parts], output_types=[f32(8, 4), f32(8, 4)]
    )


@pytest.mark.parametrize("cost_ns", [1.0, HEAVY])
def test_parts_on_their_devices(two_devices, cost_ns):
    entry = spread_entry([0, 1, 0, 1], cost_ns)
    x = np.arange(32, dtype="f4").reshape(8, 4)
    y = np.ones((2, 4), "f4")
    a, b = entry.run([from_numpy(x), from_numpy(y)])
    c, _ = entry.run([a, y])  # results feed the next call, pending or not
    assert a.placement == "spread"
    np.testing.assert_array_equal(to_numpy(c), x + 2)
    np.testing.assert_array_equal(to_numpy(a), x + 1)
    np.testing.assert_array_equal(to_numpy(b), x)


def test_wrong_stages():
    add = add_executable()
    operands = [(0, 0), (0, 0)]

    def entry(*stages, buffers=()):
        return _native.Entry(None, LEAF, [0], stages=stages, buffers=buffers, output_types=[f32(8)])

    entry([(0, add, operands, [(1, 0)])])
    for stages, message in [
        ([], "no local stage"),
        ([[]], "empty"),
        ([[(-1, add, operands, [(1, 0)])]], "no local stage"),
        ([[(-2, add, operands, [(1, 0)])]], "no device"),
        ([[(-1, add, operands, [(1, 0)])] * 2], "one part"),
        ([[(0, add, [(0, 0)], [(1, 0)])]], "number of inputs"),
        ([[(0, add, [(0, 0), (2, 0)], [(1, 0)])]], "no slot 2"),
        ([[(0, add, operands, [(0, 0)])]], "no slot 0 to write"),
        ([[(0, add, [(0, 0), (1, 0)], [(1, 0)])]], "before it is written"),
        ([[(0, add, operands, [(1, 4)])]], "outside"),
    ]:
        with pytest.raises(ValueError, match=message):
            entry(*stages)
    with pytest.raises(ValueError, match="nothing writes"):
        entry([(0, add, operands, [(1, 0)])], buffers=[32])
    with pytest.raises(TypeError, match="a part is"):
        entry([3])
    with pytest.raises(TypeError, match="operand is"):
        entry([(0, add, [3], [])])


def test_callbacks_may_call_jato():
    inner = jit_of(lambda *types: add_executable(cost_ns=HEAVY))

    def callback(x, out):
        out[:] = to_numpy(inner(from_numpy(x), ones()))

    outer = jit_of(lambda *types: host_executable(callback, cost_ns=HEAVY))
    x = ones()
    for _ in range(5):
        x = outer(x)
    assert x.tolist() == [6] * 8


def test_callback_that_waits_for_its_own_queue():
    later = []

    def callback(x, out):
        while not later:
            time.sleep(0.001)
        later[0].tolist()

    first = jit_of(lambda *types: host_executable(callback, cost_ns=HEAVY))
    add = jit_of(lambda *types: add_executable(cost_ns=HEAVY))
    x = first(ones())
    later.append(add(ones(), ones()))
    with pytest.raises(RuntimeError, match="same device computes later"):
        x.block_until_ready()
    assert later[0].tolist() == [2] * 8


def test_error_classes_come_from_python():
    class Ours(Exception):
        pass

    seen = []

    def make(kind, message):
        seen.append(kind)
        return Ours(message)

    before = _native.set_cold_errors(make)
    try:
        with pytest.raises(Ours, match="(?i)memory"):
            b = _native.ExecutableBuilder()
            x = b.input(f32(1))
            out = b.output(ArrayType((2**50,), 11))
            b.copy(out, x, 4)
            b.finish(0, HEAVY).run([ones(1)])[0].block_until_ready()
        x = slow(10_000)(ones())
        time.sleep(0.01)
        _native.cancel_all()
        with pytest.raises(Ours):
            x.block_until_ready()
    finally:
        _native.set_cold_errors(before)
    assert seen == ["out_of_memory", "cancelled"]


def test_ctrl_c_ends_a_wait_and_cancels():
    x = slow(60_000)(ones())
    threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        x.block_until_ready()
    assert time.perf_counter() - start < 1
    with pytest.raises(RuntimeError, match="cancel"):
        x.block_until_ready()
    assert slow(1)(ones()).tolist() == [1] * 8  # the queue goes on


def run_python(code):
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.pathsep.join([here, os.path.abspath(os.path.join(here, "..", "..", "src"))])
    prelude = "import conftest; from test_queue import *\n"
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", prelude + textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_forked_child_computes():
    done = run_python(
        """
        add = jit_of(lambda *types: add_executable(cost_ns=HEAVY))
        add(ones(), ones()).block_until_ready()
        pending = slow(300)(ones())
        pid = os.fork()
        if pid == 0:
            ok = add(ones(), ones()).tolist() == [2] * 8
            try:
                pending.tolist()
                os._exit(3)
            except RuntimeError:
                os._exit(0 if ok else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert pending.tolist() == [1] * 8
        """
    )
    assert done.returncode == 0, done.stderr


def test_exit_waits_for_queued_callbacks():
    done = run_python(
        """
        def callback(x, out):
            time.sleep(0.05)
            print("callback ran", flush=True)
        f = jit_of(lambda *types: host_executable(callback, cost_ns=HEAVY))
        f(ones())
        """
    )
    assert done.returncode == 0 and "callback ran" in done.stdout, done.stderr


def test_many_queued_runs_leave_nothing():
    add = jit_of(lambda *types: add_executable(cost_ns=HEAVY))
    x = ones()
    for _ in range(2000):
        x = add(x, x)
        if _ % 100 == 0:
            x = ones()
    x.block_until_ready()
    _native.synchronize()
    gc.collect()
    assert _native.queue_depth(0) == 0


def test_thread_numbers():
    before = _native.num_threads()
    _native.push_num_threads(1)
    assert _native.num_threads() == 1
    _native.pop_num_threads()
    assert _native.num_threads() == before
    _native.set_num_threads(3)
    assert _native.num_threads() == 3
    _native.set_num_threads(0)
    assert _native.num_threads() == _native.default_num_threads()
    for bad in (-1, 100_000):
        with pytest.raises(ValueError, match="set_num_threads"):
            _native.set_num_threads(bad)
    with pytest.raises(TypeError):
        _native.set_num_threads("2")
    with pytest.raises(ValueError, match="queue_depth"):
        _native.queue_depth(99)


def test_profile():
    _native.profile_start()
    add_executable().run([ones(), ones()])
    records = _native.profile_stop()
    assert any(name == "add" and end >= start for name, start, end, thread, size in records)
