"""pickle and copy of what is no plain array of numbers."""

import copy
import pickle

import numpy as np
import pytest

import jato
import jato.numpy as jnp


def test_keys_pickle():
    keys = jato.random.split(jato.random.key(3), 3)
    back = pickle.loads(pickle.dumps(keys))
    assert back.dtype == keys.dtype and back.shape == keys.shape
    np.testing.assert_array_equal(jato.random.key_data(back), jato.random.key_data(keys))


def test_traced_values_are_copied_by_reference():
    @jato.jit
    def f(tree):
        other = copy.deepcopy(tree)
        return other["a"] + copy.copy(tree["a"])

    assert f({"a": jnp.ones(2)}).tolist() == [2, 2]
    assert jato.grad(lambda x: copy.deepcopy(x) * x)(3.0) == 6


@pytest.mark.parametrize("run", [lambda f: f, jato.jit, jato.grad], ids="eager jit grad".split())
def test_assignment_says_what_to_write(run):
    def f(x):
        x[0] = 1
        return x.sum()

    with pytest.raises(TypeError, match=r"write x = x\.at\[index\]\.set\(value\)"):
        run(f)(jnp.ones(3))
