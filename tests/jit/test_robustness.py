"""Threads, fork, memory over many shapes and functions, Ctrl-C."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato import _native


def resident_bytes() -> int:
    """Memory of this process that is its own (not of mapped files)."""
    fields = Path("/proc/self/statm").read_text().split()
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")


def test_ten_threads_with_new_shapes_agree() -> None:
    @jato.jit
    def f(x: Any, y: Any) -> Any:
        return jnp.sum(jnp.tanh(x) * y, axis=-1)

    start = threading.Barrier(10)
    failures: list[str] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        start.wait()
        for n in (1, 7, 16, 33, 64, 100, 1000):  # each shape is new to all threads at once
            x, y = random.standard_normal((2, 3, n), dtype=np.float32)
            found = np.asarray(f(x, y))
            expected = np.sum(np.tanh(x.astype(np.float64)) * y, axis=-1)
            if not np.allclose(found, expected, rtol=1e-4, atol=1e-4):
                failures.append(f"seed {seed}, length {n}: {found} != {expected}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert not failures


FORK = """
    import os, sys, warnings
    import numpy as np
    import jato, jato.numpy as jnp
    warnings.simplefilter("ignore", DeprecationWarning)  # fork beside threads

    f = jato.jit(lambda x: jnp.sum(jnp.exp(x)))
    x = jnp.asarray(np.linspace(0, 1, 3_000_000, dtype=np.float32))  # enough for all threads
    expected = float(f(x))
    pending = f(x * 2)  # work that is under way when the process forks
    child = os.fork()
    if child == 0:
        new = jato.jit(lambda x: jnp.cumsum(x) + 1)  # compiled in the child
        right = float(f(x)) == expected and float(new(jnp.ones(5))[-1]) == 6.0
        os._exit(0 if right else 1)
    _, status = os.waitpid(child, 0)
    assert float(pending) > expected
    sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_computes() -> None:
    done = run(FORK)
    assert done.returncode == 0, done.stderr


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_memory_stays_flat_over_many_shapes() -> None:
    f = jato.jit(lambda x: jnp.sum(x * 2 + 1))
    f.clear_cache()
    for n in range(1, 301):
        f(jnp.ones(n))
    gc.collect()
    before, compiled = resident_bytes(), f.stats().kernels_compiled
    for n in range(301, 2301):
        f(jnp.ones(n))
    gc.collect()
    # A program is a few KiB; there are 2,000 of them, in a cache that holds 4,096.
    assert resident_bytes() - before < 30 << 20
    assert f.stats().kernels_compiled == compiled


def test_an_eager_operation_keeps_nothing_for_a_shape() -> None:
    held = _native.pool_stats()["in_use"]
    for n in range(1, 2001):
        np.asarray(jnp.ones(n) + 1)
    gc.collect()
    assert _native.pool_stats()["in_use"] - held < 1 << 20


def test_fresh_lambdas_are_freed() -> None:
    held = jnp.ones(100_000)  # captured: 400 kB each if it were copied or kept

    def once(i: int) -> None:
        captured = held + i
        jato.jit(lambda x: x + captured)(held).block_until_ready()

    for i in range(20):
        once(i)
    gc.collect()
    memory, in_use = resident_bytes(), _native.pool_stats()["in_use"]
    for i in range(200):
        once(i)
    gc.collect()
    assert _native.pool_stats()["in_use"] - in_use < 2 << 20
    assert resident_bytes() - memory < 30 << 20


INTERRUPTED = """
    import signal, sys, time
    import numpy as np
    import jato, jato.numpy as jnp

    x = jnp.asarray(np.random.default_rng(0).standard_normal((2000, 2000), dtype=np.float32))

    def eager():
        y = x
        for _ in range(100_000):
            y = jnp.tanh(y @ x)
        return y

    @jato.jit
    def jitted(x):
        return jato.lax.fori_loop(0, 100_000, lambda i, y: jnp.tanh(y @ x), x)

    work = {"eager": eager, "jitted": lambda: jitted(x).block_until_ready()}[sys.argv[1]]
    jnp.tanh(x[:10] @ x).block_until_ready()
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 1.5)
    start = time.monotonic()
    try:
        work()
    except KeyboardInterrupt:
        print(time.monotonic() - start - 1.5)
        assert float(jnp.ones(3).sum()) == 3.0  # everything works afterwards
"""


@pytest.mark.parametrize("mode", ["eager", "jitted"])
def test_interrupt_returns_within_a_second(mode: str) -> None:
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED), mode],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1.0
    assert time.monotonic() - start < 60


def test_interrupt_from_outside(tmp_path: Path) -> None:
    """As the terminal sends it: to the process, while it waits for a result."""
    code = """
        import numpy as np
        import jato, jato.numpy as jnp
        x = jnp.ones((1500, 1500))
        f = jato.jit(lambda x: jato.lax.fori_loop(0, 10**6, lambda i, y: jnp.tanh(y @ x), x))
        pending = f(x)
        print("waiting", flush=True)
        pending.block_until_ready()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    start = time.monotonic()
    _, errors = process.communicate(timeout=30)
    assert time.monotonic() - start < 3.0  # leaving the interpreter is part of it
    assert "KeyboardInterrupt" in errors
