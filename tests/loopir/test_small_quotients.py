"""Bytes divided by constants: the corrected product is the quotient, bit by bit."""

import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato.loopir.builder import Builder
from jato.loopir.small_quotients import _corrects

DIVISORS = [*range(3, 300, 7), 255, 127.5, 0.1, 0.3, 58.395, 57.12, 57.375, 0.229, -7, 1e-10, 1e10]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "bool"])
def test_every_byte_by_many_divisors(dtype):
    x = np.arange(256).astype("uint8")
    x = (x & 1).astype(bool) if dtype == "bool" else x.view(dtype)
    f = jato.jit(lambda x: [x.astype("float32") / d for d in DIVISORS])
    for found, d in zip(f(x), DIVISORS, strict=True):
        want = x.astype("float32") / np.float32(d)
        np.testing.assert_array_equal(np.asarray(found).view("uint32"), want.view("uint32"), str(d))


def test_divisors_beyond_the_range_divide():
    x = np.arange(256).astype("uint8")
    for d in (1e-30, 1e38, 3e-45, np.inf, np.nan):
        with np.errstate(all="ignore"):
            want = x.astype("float32") / np.float32(d)
        found = jato.jit(lambda x, d=d: x.astype("float32") / np.float32(d))(x)
        np.testing.assert_array_equal(found, want)
        assert not _corrects(float(np.float32(d)), 0, 255)


def test_only_bytes_and_constants():
    b = Builder()
    i = b.var("i", "i64", 0, 9)
    byte, word, real = (b.load(b.input(n, t), i) for n, t in (("a", "u8"), ("b", "i32"), ("c", "f32")))
    assert b.div(b.convert(byte, "f32"), b.const(255.0, "f32")).op == "fma"
    assert b.div(b.convert(word, "f32"), b.const(255.0, "f32")).op == "div"
    assert b.div(real, b.const(255.0, "f32")).op == "div"
    assert b.div(b.convert(byte, "f32"), real).op == "div"
    assert b.div(b.convert(byte, "f32"), b.const(4.0, "f32")).op == "mul"


def test_gradients_see_a_division():
    g = jato.grad(lambda x: jnp.sum(x / 255.0))(jnp.ones(3))
    np.testing.assert_allclose(g, np.full(3, 1 / 255), 1e-6)
