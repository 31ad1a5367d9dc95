"""Results that are no arrays, and places for the mapped axis that do not exist."""

import numpy as np
import pytest

import jato


def say(x):
    return "a"


@pytest.mark.parametrize("transform", [jato.jit, jato.pmap])
def test_a_result_that_is_no_array_names_the_function(transform):
    with pytest.raises(TypeError, match=r"of say: a result of the function: .* got str"):
        transform(say)(np.ones(1))


@pytest.mark.parametrize("transform", [jato.pmap, jato.vmap])
@pytest.mark.parametrize("axis", [1, 5, -2])
def test_out_axes_beyond_the_rank_are_refused(transform, axis):
    with pytest.raises(ValueError, match=r"out_axes puts the mapped axis"):
        transform(lambda x: x, out_axes=axis)(np.ones(3))


@pytest.mark.parametrize("axis", ["a", 1.0])
def test_out_axes_are_integers(axis):
    with pytest.raises(TypeError, match="out_axes"):
        jato.pmap(lambda x: x, out_axes=axis)(np.ones((3, 2)))


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_out_axes_within_the_rank(axis):
    x = np.arange(6.0).reshape(3, 2)
    result = jato.pmap(lambda x: x * 2, out_axes=axis)(x)
    np.testing.assert_array_equal(result, np.moveaxis(x * 2, 0, axis))
