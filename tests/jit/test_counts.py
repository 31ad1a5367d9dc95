"""What is counted: kernels of a program, compilations, allocations."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato import _native


def softmax(x: Any) -> Any:
    e = jnp.exp(x - jnp.max(x, axis=-1, keepdims=True))
    return e / jnp.sum(e, axis=-1, keepdims=True)


def layer_norm(x: Any, scale: Any, bias: Any) -> Any:
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.var(x, axis=-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * scale + bias


def normal_cdf(x: Any) -> Any:
    return 0.5 * (1 + jato.lax.erf(x / np.sqrt(2)))


def black_scholes(spot: Any, strike: Any, years: Any, rate: Any, volatility: Any) -> Any:
    deviation = volatility * jnp.sqrt(years)
    d1 = (jnp.log(spot / strike) + (rate + volatility**2 / 2) * years) / deviation
    d2 = d1 - deviation
    discounted = strike * jnp.exp(-rate * years)
    call = spot * normal_cdf(d1) - discounted * normal_cdf(d2)
    put = discounted * normal_cdf(-d2) - spot * normal_cdf(-d1)
    return call, put


def arrays(*shapes: tuple[int, ...]) -> list[Any]:
    random = np.random.default_rng(0)
    return [jnp.asarray(random.uniform(0.5, 1.5, s).astype(np.float32)) for s in shapes]


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[int], list[Any]]]] = {
    "softmax": (softmax, lambda n: arrays((n, 100))),
    "layer norm": (layer_norm, lambda n: arrays((n, 100), (100,), (100,))),
    "black-scholes": (black_scholes, lambda n: arrays(*[(n,)] * 5)),
}


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> Any:
    return PROGRAMS[request.param]


def test_one_kernel(program: Any) -> None:
    function, inputs = program
    jitted = jato.jit(function)
    jitted(*inputs(64))
    assert len(jitted.stats().kernels) == 1


def test_a_new_shape_compiles_nothing(program: Any, no_caches: None) -> None:
    function, inputs = program
    jitted = jato.jit(function)
    jitted(*inputs(64))
    before = jitted.stats()
    for n in (65, 128, 1000):
        jitted(*inputs(n))
    after = jitted.stats()
    assert after.traces == before.traces + 3
    assert after.kernels_compiled == before.kernels_compiled
    assert after.kernels_reused == before.kernels_reused + 3


@pytest.fixture
def no_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was compiled before, in this process or another, must not hide a compilation."""
    monkeypatch.setenv("JATO_CACHE_DIR", "")
    jato.clear_caches()


# Rows on either side of where other lanes are chosen (see "What is cached" in ARCHITECTURE.md).
SIZES = {
    "long rows": [(300, 600), (400, 1000), (512, 512), (520, 777)],
    "short rows": [(90, 100), (99, 101), (80, 120), (96, 112)],
}


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(
    "ours, numpys",
    [
        (lambda x: x.mean(), lambda x: x.mean()),
        (lambda x: x.mean(axis=0), lambda x: x.mean(axis=0)),
        (lambda x: x.std(axis=1, ddof=1), lambda x: x.std(axis=1, ddof=1)),
        (
            lambda x: layer_norm(x, 2.0, 1.0),
            lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * 2 + 1,
        ),
    ],
)
def test_a_mean_over_another_length_compiles_nothing(
    ours: Callable[[Any], Any], numpys: Callable[[Any], Any], sizes: str, no_caches: None
) -> None:
    jitted = jato.jit(ours)
    compiled = None
    for shape in SIZES[sizes]:
        (x,) = arrays(shape)
        want = numpys(np.asarray(x, np.float64))
        np.testing.assert_allclose(jitted(x), want, rtol=2e-5, atol=2e-5)
        if compiled is None:
            compiled = jitted.stats().kernels_compiled
            assert compiled > 0
    assert jitted.stats().kernels_compiled == compiled


def allocations(call: Callable[[], Any], times: int) -> int:
    held = [call() for _ in range(3)]
    jato.block_until_ready(held)
    before = _native.pool_stats()
    held = [call() for _ in range(times)]
    jato.block_until_ready(held)
    after = _native.pool_stats()
    return after["allocations"] - before["allocations"]


def test_a_cached_call_allocates_only_its_results(program: Any) -> None:
    function, inputs = program
    jitted = jato.jit(function)
    values = inputs(300)
    results = len(jato.tree.leaves(jitted(*values)))
    assert allocations(lambda: jitted(*values), times=20) == 20 * results


def test_a_cached_call_makes_no_python_garbage(program: Any) -> None:
    function, inputs = program
    jitted = jato.jit(function)
    values = inputs(16)
    jato.block_until_ready(jitted(*values))
    before = sys.getallocatedblocks()
    for _ in range(200):
        jitted(*values)
    assert sys.getallocatedblocks() - before < 50


def test_donated_memory_is_reused() -> None:
    step = jato.jit(lambda x: x * 1.5 + 1, donate_argnums=0)
    x = step(jnp.zeros(100_000))
    address = x.unsafe_buffer_pointer()
    before = _native.pool_stats()["allocations"]
    for _ in range(10):
        x = step(x)
    assert x.unsafe_buffer_pointer() == address
    assert _native.pool_stats()["allocations"] == before


SECOND_PROCESS = """
    import json
    import numpy as np
    import jato, jato.numpy as jnp

    @jato.jit
    def f(x, w, b):
        y = jnp.tanh(x @ w + b)
        return y / jnp.sum(y * y, axis=1, keepdims=True), jnp.sort(y, axis=0)

    x = jnp.asarray(np.linspace(0, 1, 600, dtype=np.float32).reshape(20, 30))
    y, z = f(x, jnp.ones((30, 10)), jnp.zeros(10))
    eager = jnp.where(x > 0.5, x, -x).sum()
    stats = f.stats()
    print(json.dumps([stats.kernels_compiled, stats.kernels_reused, float(y.sum()), float(eager)]))
"""


def test_a_second_process_compiles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JATO_CACHE_DIR", str(tmp_path))
    outputs = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(SECOND_PROCESS)],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        outputs.append(json.loads(done.stdout))
    first, second = outputs
    assert first[0] > 0 and first[1] == 0
    assert second[0] == 0 and second[1] == first[0]
    assert second[2:] == first[2:]


def test_resizing_a_second_size_compiles_nothing() -> None:
    @jato.jit
    def resize(image: Any) -> Any:
        return jato.image.resize(image, (128, 128), method="bilinear")

    resize(jnp.ones((256, 256)))
    compiled = resize.stats().kernels_compiled
    resize(jnp.ones((512, 512)))
    stats = resize.stats()
    assert stats.traces == 2
    assert stats.kernels_compiled == compiled
    assert stats.kernels_reused >= 1


@pytest.mark.parametrize(
    "function", [lambda x: x.T + 1, lambda x: x.sum(0), jnp.std, lambda x: jnp.cumsum(x, 0)]
)
def test_multiples_of_a_block_compile_nothing(
    function: Callable[[Any], Any], no_caches: None
) -> None:
    jitted = jato.jit(function)
    jitted(jnp.ones((1000, 1000)))
    compiled = jitted.stats().kernels_compiled
    for shape in ((1024, 1024), (1024, 1000), (1000, 1024), (896, 1152)):
        jitted(jnp.ones(shape))
    assert jitted.stats().kernels_compiled == compiled


def test_threads_compile_a_pattern_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JATO_CACHE_DIR", "")
    jato.clear_caches()
    jitted = jato.jit(lambda x: jnp.tanh(x) * 1.75 - x)
    shapes = [(n, n + 1) for n in range(20, 30)]
    with ThreadPoolExecutor(10) as pool:
        results = list(pool.map(lambda s: jitted(jnp.full(s, 2.0)), shapes))
    assert [r.shape for r in results] == shapes
    assert jitted.stats().kernels_compiled == 1
