"""Loops cut where their guards change, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato.compiler.loops.borders import cut_points
from jato.loopir.builder import Builder

WIDTHS = [63, 64, 65, 79, 80, 81, 97, 128, 200]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("shift", [1, -1, 15, 16, 17, 40, -33])
def test_roll(width, shift):
    x = np.random.default_rng(0).standard_normal((5, width)).astype(np.float32)
    f = jato.jit(lambda x: x + jnp.roll(x, shift, 1) * 2 + jnp.roll(x, 1, 0))
    expected = x + np.roll(x, shift, 1) * 2 + np.roll(x, 1, 0)
    np.testing.assert_allclose(np.asarray(f(x)), expected, rtol=1e-6)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("pads", [(1, 0), (0, 1), (2, 3), (16, 17), (70, 1), (0, 90)])
def test_pad(width, pads):
    x = np.random.default_rng(0).standard_normal((3, width)).astype(np.float32)
    found = jato.jit(lambda x: jnp.exp(jnp.pad(x, ((1, 1), pads))))(x)
    np.testing.assert_allclose(np.asarray(found), np.exp(np.pad(x, ((1, 1), pads))), rtol=1e-6)


@pytest.mark.parametrize("widths", [(64, 1), (1, 64), (20, 30, 40), (16, 16, 16, 16), (3,) * 40])
def test_concatenate(widths):
    rng = np.random.default_rng(0)
    parts = [rng.standard_normal((4, n)).astype(np.float32) for n in widths]
    found = jato.jit(lambda *p: jnp.concatenate(p, 1) + 1)(*parts)
    np.testing.assert_array_equal(np.asarray(found), np.concatenate(parts, 1) + 1)


def test_cut_points():
    b = Builder()
    v = b.var("i", "i64", 0, 99)
    out = b.output("out", "bool")
    with b.block() as body:
        b.store(out, v, b.lt(v, b.index(3)))
        b.store(out, v, b.ge(v, b.index(90)))
        b.store(out, v, b.le(b.index(7), v))
        b.store(out, v, b.gt(b.index(3), v))
        b.store(out, v, b.le(b.add(v, b.index(-50)), b.index(0)))
        b.store(out, v, b.lt(b.mul(v, b.index(2)), b.index(33)))  # not by one: left alone
    assert cut_points(b, body, v, 100) == [3, 7, 51, 90]
