"""The compiled primitive against `reference`: alone, and fused with what produces and consumes it.

Only the dtypes that differ for the compiler are taken here (test_lower.py has all of them), and
each shape once per kind.
"""

from __future__ import annotations

import numpy as np
import pytest
from lowering import same
from reference_rules import x64
from samples import SAMPLES

import jato
from jato.base import dtypes
from jato.core.primitive import Primitive
from jato.ops.arithmetic import neg
from jato.ops.selection import bitwise_not
from jato.ops.structural import rev

DTYPES = {"float32", "bfloat16", "int32", "uint8", "bool", "complex64"}
COMPILED = sorted(
    name for name in SAMPLES if type(Primitive.registry[name]).lower is not Primitive.lower
)


def chosen(name):
    """Samples of these dtypes, one for each shape."""
    seen = set()
    for sample in SAMPLES[name]:
        arrays = [np.asarray(x) for x in sample.operands]
        key = tuple((x.shape, x.dtype) for x in arrays), tuple(sample.params.items())
        if all(x.dtype.name in DTYPES for x in arrays) and key not in seen:
            seen.add(key)
            yield sample, arrays


def check(function, sample, arrays, expected):
    try:
        found = np.asarray(function(*arrays))
        same(found, expected, sample.ulps, sample.signs)
    except Exception as error:
        error.add_note(repr(sample))
        raise


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_against_reference(name):
    primitive = Primitive.registry[name]
    with x64():
        for sample, arrays in chosen(name):
            expected = np.asarray(primitive.reference(*arrays, **sample.params))
            check(lambda *xs, s=sample: primitive.bind(*xs, **s.params), sample, arrays, expected)


def backwards(x):
    return rev(x, range(x.ndim)) if x.ndim else x


@pytest.mark.parametrize("name", COMPILED)
def test_fused_against_reference(name):
    """-f(x backwards), with x given backwards."""
    primitive = Primitive.registry[name]
    with x64():
        for sample, arrays in list(chosen(name))[:3]:
            expected = np.asarray(primitive.reference(*arrays, **sample.params))
            negate = bitwise_not if dtypes.is_bool(expected.dtype) else neg
            expected = ~expected if dtypes.is_bool(expected.dtype) else -expected

            def fused(*xs, sample=sample, negate=negate):
                return negate(primitive.bind(*map(backwards, xs), **sample.params))

            check(jato.jit(fused), sample, [np.array(np.flip(x)) for x in arrays], expected)
