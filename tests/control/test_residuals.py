"""What the forward pass of a scan keeps for its gradient, and that loops of many scalars stay one kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

import jato
import jato.numpy as jnp
from jato import lax
from jato.core.staging import trace_to_graph
from jato.core.types import array_type
from jato.transforms.partial_eval import split_graph

SCALAR = array_type((), np.dtype("float32"))


def halves(function: Any, *unknown: bool) -> Any:
    graph = trace_to_graph(lambda *xs: [function(*xs)], [SCALAR] * len(unknown), "f")
    return split_graph(graph, unknown)


def test_cheap_residual_is_computed_again_from_another() -> None:
    """a * t + 2 * a * t needs a and 2 * a: only a is kept."""
    split = halves(lambda a, t: a * t + (2.0 * a) * t * t, False, True)
    assert [r.is_input for r in split.residuals] == [True]
    assert len(split.known.nodes) == 0


def test_costly_residual_is_kept() -> None:
    split = halves(lambda a, t: a * t + jnp.sin(a) * t, False, True)
    assert sorted(r.is_input for r in split.residuals) == [False, True]
    assert [n.primitive.name for n in split.known.nodes] == ["sin"]


def test_chain_of_cheap_residuals_ends_at_a_costly_one() -> None:
    def f(a: Any, t: Any) -> Any:
        b = jnp.exp(a)
        c = b + 1.0
        d = c * b
        return b * t + c * t * t + d * t * t * t

    split = halves(f, False, True)
    assert len(split.residuals) == 1
    assert [n.primitive.name for n in split.known.nodes] == ["exp"]


def test_gradient_of_a_scan_of_sixty_scalars() -> None:
    """Both directions are one kernel each, and agree with the loop unrolled."""
    count = 60

    def body(carry: Any, x: Any) -> Any:
        new = [
            0.9 * carry[i] + 0.1 * carry[i - 1] * jnp.cos(carry[i - 7]) + x for i in range(count)
        ]
        return tuple(new), new[0]

    def scanned(carry: Any, xs: Any) -> Any:
        carry, ys = lax.scan(body, carry, xs)
        return sum(carry) + jnp.sum(ys)

    def unrolled(carry: Any, xs: Any) -> Any:
        total = 0.0
        for x in xs:
            carry, y = body(carry, x)
            total = total + y
        return total + sum(carry)

    start = tuple(jnp.float32(i / count) for i in range(count))
    xs = jnp.linspace(0.0, 0.1, 5)
    slope = jato.jit(jato.grad(scanned))
    expected = jato.jit(jato.grad(unrolled))(start, xs)
    np.testing.assert_allclose(slope(start, xs), expected, rtol=1e-4, atol=1e-6)
    assert slope.stats().kernels.count("loop") == 2
