"""Small modules with JAX's names: jato.typing, jato.dlpack, jato.stages."""

import typing

import numpy as np

import jato
import jato.numpy as jnp
from jato import dlpack, stages
from jato import typing as jtyping


def test_array_like():
    kinds = typing.get_args(jtyping.ArrayLike)
    for x in (jnp.ones(3), np.ones(3), np.float32(1), True, 1, 1.0, 1j):
        assert isinstance(x, kinds)
    assert not isinstance([1.0], kinds)


def test_dlpack():
    x = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(dlpack.from_dlpack(x), x)
    for name in ("bool", "int8", "uint64", "float16", "bfloat16", "float64", "complex64"):
        assert dlpack.is_supported_dtype(name), name
    for name in ("float0", "O", "M8[s]", "nonsense"):
        assert not dlpack.is_supported_dtype(name), name


def test_stages():
    f = jato.jit(lambda x: x * 2)
    assert isinstance(f, stages.Wrapped) and not isinstance(len, stages.Wrapped)
    traced = f.trace(jnp.ones(3))
    assert isinstance(traced, stages.Traced)
    assert isinstance(traced.lower(), stages.Lowered)
    assert isinstance(traced.lower().compile(), stages.Compiled)
