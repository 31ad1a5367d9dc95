"""Long unrolled programs: right, and compiled in time that grows with their length, not its square."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jato
import jato.numpy as jnp

N = 24
X = np.linspace(0.5, 1.5, N, dtype=np.float32)
W = (np.random.default_rng(0).normal(size=(N, N)) / np.sqrt(N)).astype(np.float32)


def chain(np_: Any, x: Any, length: int) -> Any:
    for i in range(length):
        x = np_.sin(x) + 0.1 * i
    return x


def recurrence(np_: Any, x: Any, length: int) -> Any:
    a, b = x, x + 1
    for _ in range(length):
        a, b = b, a * np_.float32(0.5) + b * np_.float32(0.25)
    return b


def products(np_: Any, x: Any, length: int) -> Any:
    y = x
    for _ in range(length):
        y = np_.tanh(y @ W + x)
    return y


def normalizations(np_: Any, x: Any, length: int) -> Any:
    y = x
    for _ in range(length):
        y = y / np_.sum(y * x)
    return y


def rows(np_: Any, x: Any, length: int) -> Any:
    z = np_.sin(x)
    return np_.stack([np_.cos(z * np_.float32(i % 9)) for i in range(length)])


def columns(np_: Any, x: Any, length: int) -> Any:
    return np_.concatenate([x[:, None] * np_.float32(i) for i in range(length)], axis=1)


def running_sums(np_: Any, x: Any, length: int) -> Any:
    total, out = np_.zeros_like(x), []
    for i in range(length):
        total = total + x * np_.float32(i % 5)
        out.append(total.sum())
    return np_.stack(out)


PROGRAMS = [chain, recurrence, products, normalizations, rows, columns, running_sums]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("length", [40, 300])
def test_unrolled_programs_agree_with_numpy(program: Callable[..., Any], length: int) -> None:
    result = jato.jit(lambda x: program(jnp, x, length))(X)
    np.testing.assert_allclose(result, program(np, X, length), rtol=2e-3, atol=1e-5)


@pytest.mark.parametrize("program", [chain, recurrence, products, normalizations])
def test_gradients_of_unrolled_programs(program: Callable[..., Any]) -> None:
    def loss(x: Any) -> Any:
        return jnp.sum(program(jnp, x, 30) ** 2)

    slope = jato.jit(jato.grad(loss))(X)
    _, tangent = jato.jvp(loss, (X,), (W[0],))
    np.testing.assert_allclose(jnp.vdot(slope, W[0]), tangent, rtol=2e-3, atol=1e-4)


def seconds(program: Callable[..., Any], length: int, differentiate: bool) -> float:
    """CPU time to trace, compile and run once; the better of two, nothing cached in memory."""

    def run() -> float:
        jato.clear_caches()

        def call(x: Any) -> Any:
            return jnp.sum(program(jnp, x, length))

        function = jato.jit(jato.grad(call) if differentiate else call)
        start = time.thread_time()
        function(X).block_until_ready()
        return time.thread_time() - start

    return min(run(), run())


@pytest.mark.parametrize("differentiate", [False, True], ids=["value", "gradient"])
@pytest.mark.parametrize("program", [recurrence, products, running_sums], ids=lambda f: f.__name__)
def test_time_to_compile_grows_with_the_length(
    program: Callable[..., Any], differentiate: bool
) -> None:
    seconds(program, 10, differentiate)
    short, long = (seconds(program, n, differentiate) for n in (100, 500))
    assert long < 12 * short + 0.2  # 5 in theory; 25 if it grew with the square


def test_five_thousand_operations_in_five_seconds() -> None:
    assert seconds(recurrence, 1667, False) < 5


@pytest.mark.parametrize("length", (64, 1000, 5000))
def test_halves_of_halves(length: int) -> None:
    """A value read at two places by a value read at two places ... is stored on the way."""
    x = np.random.default_rng(0).random(length).astype("float32")
    scan = jato.jit(lambda x: jato.lax.associative_scan(jnp.add, x))
    np.testing.assert_allclose(scan(x), np.cumsum(x.astype(np.float64)), 1e-5)
    assert scan.stats().kernels_compiled < 40

    def smooth(np_: Any, x: Any) -> Any:
        for _ in range(24):
            x = (x[1:] + x[:-1]) * 0.5
        return x

    np.testing.assert_allclose(jato.jit(lambda x: smooth(jnp, x))(x), smooth(np, x), 1e-5)
