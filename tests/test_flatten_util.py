"""ravel_pytree against jax's."""

from __future__ import annotations

import jax.flatten_util
import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato.flatten_util import ravel_pytree

TREE = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": (np.int32(4), np.ones(2, bool))}


def test_round_trip() -> None:
    vector, unravel = ravel_pytree(TREE)
    np.testing.assert_array_equal(vector, jax.flatten_util.ravel_pytree(TREE)[0])
    back = unravel(vector)
    assert jato.tree.structure(back) == jato.tree.structure(TREE)
    for x, y in zip(jato.tree.leaves(back), jato.tree.leaves(TREE), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


def test_under_transforms() -> None:
    tree = {"w": jnp.ones((2, 2)), "b": jnp.zeros(2)}
    vector, unravel = ravel_pytree(tree)

    def loss(v):
        p = unravel(v)
        return jnp.sum(p["w"] @ jnp.arange(2.0) + p["b"] * 3)

    np.testing.assert_array_equal(jato.jit(jato.grad(loss))(vector), [3, 3, 0, 1, 0, 1])


def test_empty_and_errors() -> None:
    vector, unravel = ravel_pytree({})
    assert vector.shape == (0,) and unravel(vector) == {}
    _, unravel = ravel_pytree(TREE)
    with pytest.raises(ValueError, match="shape \\(9,\\)"):
        unravel(jnp.zeros(3))
    with pytest.raises(TypeError, match="dtype float32"):
        unravel(jnp.zeros(9, int))
