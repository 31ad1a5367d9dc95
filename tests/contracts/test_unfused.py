"""Compiled primitives that test_jit.py leaves out against `reference`: those without `lower`, which
are loops and library calls of their own, and those on random keys, which NumPy cannot hold.
"""

from __future__ import annotations

import numpy as np
import pytest
from lowering import same
from reference_rules import hold
from samples import SAMPLES

import jato
from jato import _native
from jato.base import dtypes
from jato.core.primitive import Primitive
from jato.ops.random_bits import random_unwrap, random_wrap

WORD = np.uint64(32)
NAMES = [
    name
    for name in sorted(SAMPLES)
    if type(Primitive.registry[name]).lower is Primitive.lower
    or name.startswith(("random", "threefry"))
]


def to_array(x):
    """A sample's operand as an array; random keys, which NumPy cannot hold, through their words."""
    operand = hold(x)
    x = np.asarray(operand)
    if operand.aval.dtype is not dtypes.key:
        return _native.from_numpy(x)
    words = np.stack([(x >> WORD).astype(np.uint32), x.astype(np.uint32)], -1)
    return random_wrap(_native.from_numpy(words))


def to_numpy(x):
    if x.aval.dtype is not dtypes.key:
        return np.asarray(x)
    words = np.asarray(random_unwrap(x)).astype(np.uint64)
    return words[..., 0] << WORD | words[..., 1]


@pytest.fixture(autouse=True)
def x64():
    before = jato.config.jax_enable_x64
    jato.config.update("jax_enable_x64", True)
    yield
    jato.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("name", NAMES)
def test_compiled_against_reference(name):
    primitive = Primitive.registry[name]
    for sample in SAMPLES[name]:
        with np.errstate(all="ignore"):
            wants = primitive.reference(
                *(np.asarray(hold(x)) for x in sample.operands), **sample.params
            )
        founds = primitive.bind(*map(to_array, sample.operands), **sample.params)
        if not primitive.multiple_results:
            founds, wants = [founds], [wants]
        for found, want in zip(founds, wants, strict=True):
            try:
                same(to_numpy(found), np.asarray(want), sample.ulps, sample.signs)
            except AssertionError as error:
                error.add_note(f"{name}: {sample!r}")
                raise
