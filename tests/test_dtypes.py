"""jato.dtypes against jax.dtypes."""

import copy
import pickle

import jax
import numpy as np
import pytest

import jato

VALUES = {
    "key": lambda m: m.random.key(0),
    "keys": lambda m: m.random.split(m.random.key(0)),
    "raw key": lambda m: m.random.PRNGKey(0),
    "float32": lambda m: m.numpy.ones(2),
    "bfloat16": lambda m: m.numpy.ones(2, m.numpy.bfloat16),
    "int8": lambda m: m.numpy.ones(2, np.int8),
    "complex": lambda m: m.numpy.ones(2, np.complex64),
    "bool": lambda m: m.numpy.ones(2, bool),
}
KINDS = ["prng_key", "extended"]


@pytest.mark.parametrize("name", VALUES)
def test_kinds(name):
    for function in (lambda m: m.dtypes.issubdtype, lambda m: m.numpy.issubdtype):
        answers = []
        for m in (jax, jato):
            dtype = VALUES[name](m).dtype
            kinds = [getattr(m.dtypes, k) for k in KINDS]
            kinds += [np.floating, np.integer, np.generic, np.number, np.bool_]
            answers.append([bool(function(m)(dtype, kind)) for kind in kinds])
        assert answers[0] == answers[1]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64", "complex128", "float16", "int8", "bool", "bfloat16"])
def test_functions(dtype, wide):
    answers = []
    for m in (jax, jato):
        with m.enable_x64(wide):
            answers.append(
                (m.dtypes.canonicalize_dtype(dtype), m.dtypes.itemsize_bits(dtype),
                 m.dtypes.result_type(m.dtypes.canonicalize_dtype(dtype), 1.5))
            )  # fmt: skip
    assert answers[0] == answers[1]
    for x in (True, 1, 1.5, 1j, np.int8(1), np.float32(1), np.ones(2, bool), np.ones(2, np.complex64)):
        assert jato.dtypes.scalar_type_of(x) is jax.dtypes.scalar_type_of(x)


def test_keys_are_no_numbers():
    with pytest.raises(ValueError, match="canonicalize_dtype: key<fry> is the dtype of random keys"):
        jato.dtypes.canonicalize_dtype(jato.random.key(0).dtype)
    assert jato.dtypes.canonicalize_dtype(jato.random.key(0).dtype, True).name == "key<fry>"
    with pytest.raises(TypeError, match="scalar_type_of: expected a number"):
        jato.dtypes.scalar_type_of(jato.random.key(0))


def test_keys_travel_and_print():
    keys = jato.random.split(jato.random.key(3))
    for other in (pickle.loads(pickle.dumps(keys)), copy.deepcopy(keys)):
        np.testing.assert_array_equal(jato.random.key_data(other), jato.random.key_data(keys))
    theirs = jax.random.split(jax.random.key(3))
    assert repr(keys) == repr(theirs) and str(keys) == str(theirs)
    assert repr(keys[0]) == repr(theirs[0])
    assert str(jato.typeof(keys)) == str(jax.typeof(theirs)) == "key<fry>[2]"
