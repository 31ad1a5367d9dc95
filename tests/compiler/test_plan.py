"""Memory of loops: what slices point into lives as long as the loop."""

from __future__ import annotations

import numpy as np

import jato
import jato.numpy as jnp
from jato import lax


def test_results_of_iterations_that_nobody_reads_keep_their_memory_to_themselves():
    # the stacked states are needed by the gradient, the stacked results are not; both are written
    # throughout the loop, next to the product's temporary
    rng = np.random.default_rng(0)
    steps, rows, width = 3, 16, 64
    p = (rng.standard_normal((2 * width, 4 * width)) * 0.1).astype(np.float32)
    xs = rng.standard_normal((steps, rows, width)).astype(np.float32)

    def cell(p, carry, x):
        h, c = carry
        i, f, o, u = jnp.split(jnp.concatenate([x, h], -1) @ p, 4, -1)
        c = jnp.tanh(f) * c + jnp.tanh(i) * jnp.tanh(u)
        h = jnp.tanh(o) * jnp.tanh(c)
        return (h, c), h

    def scanned(p, xs):
        zero = jnp.zeros((rows, width))
        return lax.scan(lambda c, x: cell(p, c, x), (zero, zero), xs)[1].sum()

    def unrolled(p, xs):
        zero = jnp.zeros((rows, width))
        carry, total = (zero, zero), 0.0
        for t in range(steps):
            carry, y = cell(p, carry, xs[t])
            total = total + y.sum()
        return total

    found = jato.jit(jato.grad(scanned, argnums=(0, 1)))(p, xs)
    expected = jato.jit(jato.grad(unrolled, argnums=(0, 1)))(p, xs)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-4, atol=1e-4)
