"""Ctrl-C while a result is waited for, however it is asked for."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, pickle, signal, threading
import numpy as np
import jato, jato.numpy as jnp
never = jato.jit(lambda x: jato.lax.while_loop(lambda x: (x > -1).all(), lambda x: jnp.sin(x) + 1, x))
x = never(jnp.ones(4))
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    {ask}
except KeyboardInterrupt:
    print("interrupted", float(jnp.sum(jnp.ones(5))))
"""


@pytest.mark.parametrize(
    "ask",
    ["np.asarray(x)", "repr(x)", "pickle.dumps(x)", "x.block_until_ready()", "np.sin(x)", "x.tolist()"],
)
def test_the_wait_ends_in_keyboard_interrupt(ask):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(ask=ask)], capture_output=True, text=True, timeout=30
    )
    assert done.stdout == "interrupted 5.0\n", done.stdout + done.stderr
