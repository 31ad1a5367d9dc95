"""Branches of little work become selects: right in every case, and loops around them one kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato import lax


@pytest.mark.parametrize("chosen", [True, False])
def test_cond_of_scalars(chosen: bool) -> None:
    @jato.jit
    def f(p: Any, x: Any, y: Any) -> Any:
        return lax.cond(p, lambda x, y: (x + y, x), lambda x, y: (x * y, y), x, y)

    np.testing.assert_allclose(f(chosen, 3.0, 4.0), (7.0, 3.0) if chosen else (12.0, 4.0))


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 7])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_switch_clamps(index: int, count: int) -> None:
    branches = [lambda x: x + 1, lambda x: x * 10, lambda x: -x][:count]
    out = jato.jit(lambda i, x: lax.switch(i, branches, x))(index, jnp.arange(5.0))
    expected = branches[min(max(index, 0), count - 1)](np.arange(5.0))
    np.testing.assert_allclose(out, expected)


def test_branch_not_taken_does_no_harm() -> None:
    """Division by zero, roots of negative numbers and indices out of bounds."""
    x = jnp.arange(1.0, 4.0)

    @jato.jit
    def f(i: Any, n: Any) -> Any:
        return (
            lax.cond(n == 0, lambda: -1, lambda: 100 // n),
            lax.cond(n < 0, lambda: 0.0, lambda: jnp.sqrt(n.astype(float))),
            lax.cond(i < 3, lambda: x[i], lambda: -1.0),
        )

    np.testing.assert_allclose(f(2, 0), (-1, 0.0, 3.0))
    np.testing.assert_allclose(f(1_000_000, -4), (-25, 0.0, -1.0))
    np.testing.assert_allclose(f(0, 9), (11, 3.0, 1.0))


def test_gradient_takes_the_chosen_branch() -> None:
    f = jato.jit(jato.grad(lambda x: lax.cond(x > 1, lambda x: x**3, lambda x: jnp.log(x), x)))
    np.testing.assert_allclose([f(2.0), f(0.5)], [12.0, 2.0], rtol=1e-6)


def test_booleans_integers_and_arrays() -> None:
    @jato.jit
    def f(p: Any, mask: Any, n: Any) -> Any:
        return lax.cond(p, lambda: (mask, n.sum()), lambda: (~mask, n[0]))

    mask, n = np.array([True, False, True]), np.arange(5, 10, dtype=np.int32)
    for p in (True, False):
        got = f(p, mask, n)
        np.testing.assert_array_equal(got[0], mask if p else ~mask)
        assert got[1] == (35 if p else 5)


def test_loop_with_a_branch_is_one_kernel() -> None:
    x = np.random.default_rng(0).random(1000, dtype=np.float32)

    @jato.jit
    def largest(x: Any) -> Any:
        def step(i: Any, best: Any) -> Any:
            return lax.cond(x[i] > best[0], lambda: (x[i], i), lambda: best)

        return lax.fori_loop(0, len(x), step, (-jnp.inf, -1))

    value, place = largest(x)
    assert value == x.max()
    assert place == x.argmax()
    assert "loop" in largest.stats().kernels


def test_large_arrays_and_long_work_stay_branches() -> None:
    @jato.jit
    def f(p: Any, x: Any) -> Any:
        return lax.cond(p, lambda: jnp.sin(x), lambda: jnp.exp(x))

    x = np.linspace(0, 1, 1000, dtype=np.float32)
    np.testing.assert_allclose(f(True, x), np.sin(x), rtol=1e-6)
    np.testing.assert_allclose(f(False, x), np.exp(x), rtol=1e-6)
    assert {"map_sin", "map_exp"} <= set(f.stats().kernels)
