"""Out of memory: errors name the operation and the size, surface where they belong, break nothing."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato import _native
from jato.base.errors import OutOfMemoryError

SOURCE = Path(__file__).parents[2] / "src"
MIB = 1 << 20


@pytest.fixture
def limit():
    """64 MiB more than what is in use."""
    jato.effects_barrier()
    _native.pool_trim()
    _native.set_memory_limit(_native.pool_stats()["in_use"] + 64 * MIB)
    yield
    _native.set_memory_limit(0)


def outer(x):
    return x[:, None] * x[None, :]


@jato.jit
def grown(x):
    return outer(x) + 1


@pytest.mark.usefixtures("limit")
def test_jitted_function():
    x = jnp.ones(8192)  # 256 MiB asked for
    with pytest.raises(OutOfMemoryError, match=r"grown: out of memory: 256\.0 MiB requested.*JATO_MEMORY_LIMIT"):
        grown(x).block_until_ready()
    np.testing.assert_array_equal(grown(jnp.ones(100)), np.full((100, 100), 2))


def test_a_product_needs_no_block_for_all_of_its_operand():
    x, y = jnp.ones((512, 2000)), jnp.ones((2000, 4096))  # packed as a whole y is 31 MiB
    product = jato.jit(jnp.matmul)
    jato.block_until_ready((x, y))
    _native.pool_trim()
    _native.set_memory_limit(_native.pool_stats()["in_use"] + 16 * MIB)
    try:
        found = np.asarray(product(x, y))
    finally:
        _native.set_memory_limit(0)
    assert found.min() == found.max() == 2000


@pytest.mark.usefixtures("limit")
def test_surfaces_at_each_use_and_at_block_until_ready():
    x = jnp.ones(8192)
    busy = jato.jit(lambda c: jato.lax.fori_loop(0, 20_000_000, lambda i, c: jnp.sin(c), c))(0.5)
    out = grown(x)  # a result that is not there yet, behind the busy one
    after = out + 1
    del busy
    for _ in range(2):
        with pytest.raises(OutOfMemoryError, match="grown"):
            out.block_until_ready()
        with pytest.raises(OutOfMemoryError, match="grown"):
            np.asarray(out)
        with pytest.raises(OutOfMemoryError):
            jato.block_until_ready({"tree": [after]})
        with pytest.raises(OutOfMemoryError):
            float(jnp.sum(after))
    assert float(jnp.sum(jnp.ones(10))) == 10


@pytest.mark.usefixtures("limit")
def test_temporaries_and_eager_functions_and_shards():
    x = jnp.ones((1024, 1024))
    loop = jato.jit(
        lambda x: jato.lax.fori_loop(0, 2, lambda i, c: jnp.sort(jnp.tile(c, 20))[: c.size], x).sum()
    )
    with pytest.raises(OutOfMemoryError, match="MiB requested"):
        loop(x.ravel()).block_until_ready()
    with pytest.raises(OutOfMemoryError, match="out of memory: 256"):
        jnp.full((8192, 8192), 1.0).block_until_ready()
    with pytest.raises(OutOfMemoryError, match="outer: out of memory: 256.0 MiB requested"):
        jato.pmap(outer)(jnp.ones((4, 4096))).block_until_ready()
    with pytest.raises(MemoryError):  # its class is also Python's
        jnp.asarray(np.ones(100 * MIB, np.int8))
    np.testing.assert_array_equal(x[0, :3], np.ones(3))


def test_memory_is_free_again_after_a_failure(limit):
    for _ in range(5):
        with pytest.raises(OutOfMemoryError):
            grown(jnp.ones(8192)).block_until_ready()
        kept = grown(jnp.ones(3500))  # 47 MiB: fits only if nothing is left behind
        kept.block_until_ready()
        del kept


def test_environment_variable():
    script = (
        "import jato.numpy as jnp\n"
        "try:\n    (jnp.ones(10_000_000) + 1).block_until_ready()\n"
        "except MemoryError as error:\n    print(type(error).__name__, error)\n"
        "print(float(jnp.ones(10).sum()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "JATO_MEMORY_LIMIT": str(8 * MIB)},
    )  # fmt: skip
    assert "OutOfMemoryError" in done.stdout and "the limit is 8.0 MiB" in done.stdout
    assert done.stdout.endswith("10.0\n")


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4, 2)])
def test_arrays_without_elements(shape):
    x = jnp.zeros(shape)
    for f in (lambda x: x + 1, lambda x: jnp.sort(x, axis=-1), lambda x: x.sum(), outer_sum, jnp.ravel):
        eager, jitted = f(x), jato.jit(f)(x)
        expected = np.asarray(f(np.zeros(shape, np.float32)))
        assert eager.shape == jitted.shape == expected.shape
        np.testing.assert_array_equal(eager, expected)
        np.testing.assert_array_equal(jitted, expected)
    mapped = jato.vmap(lambda x: x * 2)(jnp.zeros((2, *shape)))
    assert mapped.shape == (2, *shape)
    looped = jato.jit(lambda x: jato.lax.fori_loop(0, 3, lambda i, c: c + 1, x))(x)
    assert looped.shape == shape


def outer_sum(x):
    return (x[..., None] + x[..., None, :]).sum(-1)
