"""Random programs: eager, jit and NumPy agree on shape, dtype and values."""

from __future__ import annotations

import numpy as np
import pytest
from random_programs import DTYPES, WIDE_DTYPES, Program, build

import jato
import jato.numpy as jnp


def check(program: Program) -> None:
    """Runs the program in each way; AssertionError shows it."""
    arrays = [jnp.asarray(a) for a in program.inputs]
    opened = [i for i in range(len(arrays)) if i not in program.closed]

    def function(*given):
        inputs = list(arrays)
        for i, x in zip(opened, given, strict=True):
            inputs[i] = x
        return program.run(*inputs)

    jitted = jato.jit(function)
    ways = {
        "eager": program.run(*arrays),
        "jit": jitted(*(arrays[i] for i in opened)),
        "jit of NumPy views": jitted(*(program.inputs[i] for i in opened)),
    }
    for way, results in ways.items():
        for position, got in zip(program.results, results, strict=True):
            want = program.values[position]
            told = f"{way}, v{position}, of\n{program}"
            assert got.dtype == want.dtype, told
            assert got.shape == want.shape, told
            data = np.asarray(got)
            data = data.astype(want.data.dtype)
            if want.error == 0:
                np.testing.assert_array_equal(data, want.data, err_msg=told)
            else:
                np.testing.assert_allclose(data, want.data, 0, want.error, err_msg=told)


@pytest.mark.parametrize("seed", range(120))
def test_narrow_types(seed):
    check(build(seed, DTYPES))


@pytest.mark.parametrize("seed", range(1000, 1040))
def test_wide_types(seed):
    with jato.enable_x64(True):
        check(build(seed, WIDE_DTYPES))


@pytest.mark.parametrize("seed", range(2000, 2012))
def test_long_programs(seed):
    check(build(seed, DTYPES, length=60))
