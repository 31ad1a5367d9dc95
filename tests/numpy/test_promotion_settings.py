"""Implicit promotion where the settings forbid it, of dtypes and of ranks."""

import numpy as np
import pytest

import jato
import jato.numpy as jnp


def test_strict_promotion_refuses_mixed_dtypes():
    integers, floats = jnp.arange(3), jnp.ones(3)
    with jato.numpy_dtype_promotion("strict"):
        for f in (jnp.add, jato.jit(jnp.add)):
            with pytest.raises(ValueError, match="dtypes int32, float32 have no implicit promotion"):
                f(integers, floats)
        with pytest.raises(ValueError, match="int32, float32 \\(weak\\)"):
            integers * 1.5
        np.testing.assert_array_equal(floats * 2 + 0.5, [2.5] * 3)
        np.testing.assert_array_equal(integers + 1, [1, 2, 3])
    np.testing.assert_array_equal(integers + floats, [1, 2, 3])


@pytest.mark.parametrize("transform", [lambda f: f, jato.jit])
def test_ranks(transform):
    add = transform(lambda x, y: x + y)
    x, y = jnp.ones((2, 3)), jnp.ones(3)
    with jato.numpy_rank_promotion("raise"):
        with pytest.raises(ValueError, match="add: operands of shapes .* differ in rank"):
            add(x, y)
        assert add(x, y[None]).shape == (2, 3)
        assert add(x, 1.0).shape == (2, 3)
    with jato.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="differ in rank"):
        assert add(x, y).shape == (2, 3)
    assert add(x, y).shape == (2, 3)


def test_explain_cache_misses(caplog):
    f = jato.jit(lambda x: x)
    with jato.explain_cache_misses(True):
        f(jnp.zeros(2))
        f(jnp.zeros(3))
    assert "from float32[2] to float32[3]" in caplog.text


def test_typed_keys_by_setting():
    with jato.base.config.config.override("jax_enable_custom_prng", True):
        assert jato.random.PRNGKey(0).shape == ()
    assert jato.random.PRNGKey(0).shape == (2,)
