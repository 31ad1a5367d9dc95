"""Wrong arguments of public functions: the message names the function the user called."""

import pickle

import numpy as np
import pytest

import jato.numpy as jnp

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jnp.rot90(X, 1.5), TypeError, "rot90: argument 'k' must be an integer, got float"),
        (lambda: jnp.roll(X, 1.5), TypeError, "roll: argument 'shift' must be an integer"),
        (lambda: jnp.roll(X, np.ones(2), (0, 1)), TypeError, "roll: argument 'shift'"),
        (lambda: jnp.tri(-2), ValueError, "tri: sizes must not be negative"),
        (lambda: jnp.arange("a"), TypeError, "arange: argument 'stop' must be a number, got 'a'"),
        (lambda: jnp.arange(np.inf), ValueError, "arange: arguments must be finite"),
        (lambda: jnp.arange(0, np.nan), ValueError, "arange: arguments must be finite"),
        (lambda: jnp.transpose(X, 0), ValueError, r"transpose: axes \(0,\) don't match"),
        (lambda: jnp.histogram(X, bins=-1), ValueError, "histogram: argument 'bins' must be positive"),
        (lambda: jnp.histogram(X, bins=0), ValueError, "histogram: argument 'bins' must be positive"),
        (lambda: jnp.where("a", 1, 2), TypeError, "^where: argument condition"),
        (lambda: jnp.full(2, "a"), TypeError, "^full: argument fill_value"),
    ],
)
def test_messages(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("function", [jnp.median, jnp.nanmedian])
@pytest.mark.parametrize("axis", [-1, 0, (0, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_medians_of_no_rows_are_empty(function, axis, keepdims):
    x = np.zeros((4, 0, 3), np.float32)
    expected = np.sum(x, axis=axis, keepdims=keepdims).shape
    assert function(x, axis=axis, keepdims=keepdims).shape == expected


def test_quantiles_of_no_rows_are_empty():
    assert jnp.quantile(np.zeros((0, 3)), np.array([0.1, 0.2]), axis=1).shape == (2, 0)


def test_public_functions_pickle():
    functions = [getattr(jnp, n) for n in dir(jnp) if not n.startswith("_")]
    functions = [f for f in functions if callable(f) and not isinstance(f, type)]
    assert len(functions) > 100
    assert [f for f in functions if pickle.loads(pickle.dumps(f)) is not f] == []


def test_large_unsigned_exponents_overflow():
    exponents = np.array([0, 1, 200, 2**31 - 1, 2**31, 2**32 - 1], np.uint32)
    result = jnp.ldexp(np.ones(6, np.float32), exponents)
    assert result.tolist() == [1, 2, np.inf, np.inf, np.inf, np.inf]
    assert jnp.ldexp(np.float32(1), np.uint32(2**32 - 1)) == np.inf


def test_arguments_that_are_no_numbers_are_named():
    x = jnp.arange(4.0)
    for function in (jnp.partition, jnp.argpartition):
        for bad in (None, "a", 1.5, [1, 2], object()):
            with pytest.raises((TypeError, ValueError), match="kth"):
                function(x, bad)
    with pytest.raises(ValueError, match="array_split: .* sections are more than memory holds"):
        jnp.array_split(x, 2**70)
    with pytest.raises(TypeError, match=r"format '.2f' is for one number"):
        format(x, ".2f")


def test_texts_of_what_numpy_prints():
    for value in (np.arange(3), [1.5, 2], 3):
        assert jnp.array_str(value) == np.array_str(np.asarray(value))
        assert jnp.array_repr(value) == np.array_repr(np.asarray(value))
