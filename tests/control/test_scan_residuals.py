"""Scalars that the steps of a scan keep for its backward pass: kept as one array, values right."""

from __future__ import annotations

import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato import lax


def body(np_, c, x):
    n = len(c)
    return tuple(
        0.9 * c[i] + 0.1 * np_.sin(c[(i + 1) % n]) * c[(i + 2) % n] + 0.01 * x for i in range(n)
    )


@pytest.mark.parametrize("count", (2, 7, 8, 9, 20))
@pytest.mark.parametrize("reverse", (False, True))
def test_many_scalar_carries(count, reverse):
    xs = np.linspace(-1, 1, 11).astype("float32")
    start = tuple(np.float32(0.1 * i) for i in range(count))

    def loss(np_, scan):
        def run(start, xs):
            return sum(c * (i + 1) for i, c in enumerate(scan(np_, start, xs)))

        return run

    def ours(np_, start, xs):
        return lax.scan(lambda c, x: (body(np_, c, x), None), start, xs, reverse=reverse)[0]

    def plain(np_, start, xs):
        c = start
        for x in xs[::-1] if reverse else xs:
            c = body(np_, c, x)
        return c

    f = loss(jnp, ours)
    found, found_xs = jato.jit(jato.grad(f, (0, 1)))(start, xs)
    reference = loss(np, plain)
    for i in range(count):
        step = 1e-5
        moved = [np.array(start, np.float64) for _ in range(2)]
        moved[0][i] += step
        moved[1][i] -= step
        want = (reference(moved[0], xs) - reference(moved[1], xs)) / (2 * step)
        np.testing.assert_allclose(found[i], want, 1e-4)
    ends = [xs.astype(np.float64) for _ in range(2)]
    ends[0][3] += 1e-5
    ends[1][3] -= 1e-5
    exact = tuple(map(np.float64, start))
    want = (reference(exact, ends[0]) - reference(exact, ends[1])) / 2e-5
    np.testing.assert_allclose(found_xs[3], want, 1e-4)
    # forward over reverse, and several at once
    direction = tuple(np.float32(1) for _ in start)
    hvp = jato.jvp(jato.grad(lambda s: f(s, xs)), (start,), (direction,))[1]
    ahead = jato.grad(lambda s: f(s, xs))(tuple(s + np.float32(1e-2) for s in start))
    behind = jato.grad(lambda s: f(s, xs))(tuple(s - np.float32(1e-2) for s in start))
    for h, a, b in zip(hvp, ahead, behind, strict=True):
        np.testing.assert_allclose(h, (a - b) / 2e-2, 2e-2, 2e-2)
    batch = tuple(np.stack([s, s + 1]) for s in start)
    many = jato.vmap(jato.grad(lambda s: f(s, xs)))(batch)
    for m, one in zip(many, found, strict=True):
        np.testing.assert_allclose(m[0], one, 1e-5)


def test_residuals_are_one_array():
    start = tuple(np.float32(0.1 * i) for i in range(20))
    f = lambda start: sum(
        lax.scan(lambda c, _: (body(jnp, c, 0.0), None), start, None, length=5)[0]
    )
    kept = jato.tree.leaves(jato.vjp(f, start)[1])
    assert len(kept) <= 4 and sum(x.size for x in kept) >= 100
