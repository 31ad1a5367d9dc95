"""Ctrl-C stops compiled loops and long compilations within a second, and leaves everything usable.

Each case runs in a process of its own, which sends itself SIGINT.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"

SCRIPT = """
import os, signal, threading, time
import jato, jato.numpy as jnp
from jato import lax

DELAY = 0.3

def many_kernels(x):
    for i in range(300):
        x = jnp.sin(x) * (i + 1.5) + jnp.cos(x) ** (i % 7 + 2)
        x = x - jnp.sum(x[: 3 + i % 50])
    return x

def run():
    {body}

def fire():
    time.sleep(DELAY)
    os.kill(os.getpid(), signal.SIGINT)

jnp.ones(3) + 1
threading.Thread(target=fire).start()
start = time.perf_counter()
try:
    run()
    print("finished")
except KeyboardInterrupt:
    took = time.perf_counter() - start - DELAY
    print("in time" if took < 1 else f"late by {{took}} s")
# what comes next works
assert float(jnp.sum(jnp.ones(5) + 1)) == 10
out = jato.jit(lambda n: lax.while_loop(lambda c: c < n, lambda c: c + 3, 0))(10)
assert int(out) == 12, out
"""

FOREVER = {
    "while of scalars": """
    lax.while_loop(lambda c: c[0] < 2**31 - 1, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, 0.5))[1].item()""",
    "while of a vector": """
    lax.while_loop(lambda c: c[0] < 2**31 - 1, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, jnp.ones(64)))[1].tolist()""",
    "while of matrices": """
    x = jnp.ones((50, 50))
    step = lambda c: jnp.sort(c @ c, axis=0) * 1e-2
    jato.block_until_ready(lax.while_loop(lambda c: c[0, 0] < 1e9, step, x))""",
    "batched while": """
    grow = lambda x: lax.while_loop(lambda c: c < 1e9, lambda c: c * 1.0, x)
    jato.jit(jato.vmap(grow))(jnp.ones(50)).tolist()""",
    "fori with a traced bound": """
    f = jato.jit(lambda n: lax.fori_loop(0, n, lambda i, c: jnp.sin(c) + 1, 0.5))
    jato.block_until_ready(f(2**31 - 1))""",
    "fori with a static bound": """
    f = jato.jit(lambda x: lax.fori_loop(0, 2**31 - 1, lambda i, c: jnp.sin(c) + 1, x))
    float(f(0.5))""",
    "scan": """
    f = jato.jit(lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=2**31 - 1)[0])
    f(jnp.ones(8)).tolist()""",
    "loop of large products": """
    f = jato.jit(lambda x: lax.fori_loop(0, 10**6, lambda i, c: c @ c * 1e-3, x))
    f(jnp.ones((500, 500))).block_until_ready()""",
    "loop with a callback": """
    same = lambda c: jato.pure_callback(lambda v: v, jato.ShapeDtypeStruct((), "float32"), c)
    float(jato.jit(lambda x: lax.fori_loop(0, 10**9, lambda i, c: same(c), x))(1.0))""",
    "pmap": """
    jato.config.update("jax_num_cpu_devices", 2)
    f = jato.pmap(lambda n: lax.while_loop(lambda c: c[0] < 2**31 - 1, lambda c: (c[0] + 1, c[1] * 0.5), (n, 1.0))[1])
    f(jnp.arange(2)).tolist()""",
    "compilation": """
    jato.jit(many_kernels)(jnp.ones(1000))""",
    "eager loop of Python": """
    x = jnp.ones((300, 300))
    while True:
        x = x @ x * 1e-3""",
}


@pytest.mark.parametrize("name", FOREVER)
def test_ctrl_c(name):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "JATO_CACHE_DIR": ""}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(body=FOREVER[name].strip())],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "in time", done.stdout + done.stderr
    assert done.returncode == 0, done.stderr
