"""Small compositions of jato.lax, and that names are what they say."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato import lax
from jato.core.primitive import Primitive

GRID = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_primitives_are_named() -> None:
    names = [n for n in dir(lax) if n.endswith("_p")]
    assert len(names) > 100
    for name in names:
        assert isinstance(getattr(lax, name), Primitive), name
    assert lax.add_p.name == "add" and lax.scan_p.name == "scan"


@pytest.mark.parametrize(
    "call",
    [
        lambda lax: lax.broadcast_to_rank(GRID, 4),
        lambda lax: lax.index_in_dim(GRID, -1, 1),
        lambda lax: lax.index_in_dim(GRID, 0, 0, keepdims=False),
        lambda lax: lax.tile(GRID, (2, 3)),
        lambda lax: lax.approx_max_k(GRID, 2)[0],
        lambda lax: lax.approx_min_k(GRID, 2)[1],
        lambda lax: lax.map(lambda row: row.sum(), lax.add(GRID, np.float32(0))),
        lambda lax: lax.cond(True, lambda x: x + 1, lambda x: x - 1, GRID),
        lambda lax: lax.switch(1, [lambda x: x + 1, lambda x: x * 2], GRID),
        lambda lax: lax.fori_loop(0, 3, lambda i, x: x * 2, GRID),
        lambda lax: lax.while_loop(lambda x: x[0] < 9, lambda x: x * 2, np.float32([1, 3])),
        lambda lax: lax.scan(lambda c, x: (c + x, c), np.zeros(3, np.float32), GRID)[1],
        lambda lax: lax.associative_scan(lambda a, b: a * b, GRID + 1),
    ],
)
def test_against_peer(call) -> None:
    np.testing.assert_allclose(call(lax), call(jax.lax), rtol=1e-6)


def test_stacks() -> None:
    rows = lax.unstack(GRID)
    assert len(rows) == 2
    np.testing.assert_array_equal(lax.stack(rows, 1), np.stack(list(GRID), 1))
    np.testing.assert_array_equal(lax.broadcast_like(GRID[:1], GRID), np.tile(GRID[:1], (2, 1)))
    assert lax.dtype(1.0) == np.float32 and lax.empty((2,), int).shape == (2,)
    assert float(lax.one_minus_square(jnp.float32(0.5))) == 0.75


def test_errors() -> None:
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 1 of size 3"):
        lax.index_in_dim(GRID, 3, 1)
    with pytest.raises(ValueError, match="at most 1 axes"):
        lax.broadcast_to_rank(GRID, 1)
    with pytest.raises(ValueError, match="one number of repetitions per axis"):
        lax.tile(GRID, (2,))
    with pytest.raises(NotImplementedError, match="no function for 'cpu'"):
        lax.platform_dependent(1, cuda=lambda x: x)
    assert jato.lax.platform_dependent(1, cpu=lambda x: x + 1) == 2
