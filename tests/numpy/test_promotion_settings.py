"""Implicit promotion where the settings forbid it, of dtypes and of ranks."""

import jax
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


FLOAT_FUNCTIONS = {
    "sin": lambda m, x: m.numpy.sin(x),
    "mean": lambda m, x: m.numpy.mean(x),
    "std": lambda m, x: m.numpy.std(x),
    "divide": lambda m, x: x / x,
    "power": lambda m, x: m.numpy.float_power(x, x),
    "norm": lambda m, x: m.numpy.linalg.norm(x),
    "quantile": lambda m, x: m.numpy.quantile(x, 0.5),
    "histogram": lambda m, x: m.numpy.histogram(x)[1],
    "angle": lambda m, x: m.numpy.angle(x),
    "rint": lambda m, x: m.numpy.rint(x),
    "softmax": lambda m, x: m.nn.softmax(x),
    "gammaln": lambda m, x: m.scipy.special.gammaln(x),
    "number": lambda m, x: x * 1.5,
}


NARROW = ["bool", "int8", "uint16", "int32", "uint32"]
CASES = [(d, w) for w in (False, True) for d in NARROW + ["int64", "uint64"] * w]


@pytest.mark.parametrize(("dtype", "wide"), CASES)
@pytest.mark.parametrize("name", FLOAT_FUNCTIONS)
def test_floats_of_integers(name, dtype, wide):
    """With 64 bits on, integers of 64 bits become float64 and narrower ones float32."""
    if (name, dtype) == ("softmax", "bool"):
        pytest.skip("jax has no softmax of bools")
    found = []
    for m in (jax, jato):
        with m.enable_x64(wide):
            x = m.numpy.asarray(np.array([1, 1]), dtype)
            found.append(FLOAT_FUNCTIONS[name](m, x).dtype)
    assert found[0] == found[1]


def test_weak_floats_beside_numpy_integers():
    """Eagerly and traced alike: the result is as weak as the float."""
    for x in (np.int8(1), np.ones(2, np.int8), jato.numpy.int8(1)):
        assert (0.5 + jato.numpy.asarray(x)).weak_type
        assert jato.jit(lambda c, x=x: c + x)(0.5).weak_type
        assert jato.jit(lambda c, x=x: jato.numpy.maximum(x, c))(0.5).weak_type


@pytest.mark.parametrize("wide", [False, True])
def test_dtypes_of_positions(wide):
    a = np.array([0.0, 1, 2], np.float32)
    for function in (
        lambda m: m.numpy.searchsorted(a, a),
        lambda m: m.numpy.searchsorted(a, np.float32(0.5)),
        lambda m: m.numpy.digitize(a, a),
        lambda m: m.numpy.argpartition(a, 1),
        lambda m: m.numpy.argsort(a),
        lambda m: m.numpy.argmax(a),
        lambda m: m.numpy.nonzero(a)[0],
        lambda m: m.numpy.tri(3),
        lambda m: round(m.numpy.asarray(a)),
        lambda m: round(m.numpy.asarray(a), 1),
    ):
        results = []
        for m in (jax, jato):
            with m.enable_x64(wide):
                results.append(function(m))
        assert results[0].dtype == results[1].dtype
        np.testing.assert_array_equal(*map(np.asarray, results))
