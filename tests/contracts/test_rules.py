"""Every primitive's rules against each other and against numbers, on the samples of its family.

Operations run through the primitives' NumPy `reference` here, so that a rule is tested and not
the compiler.  A rule that is missing fails its test unless samples.DECLARED says why.
"""

from __future__ import annotations

import numpy as np
import pytest
from reference_rules import (
    check_batch,
    check_jvp,
    check_transpose,
    evaluate,
    hold,
    numpy_evaluation,
    x64,
)
from samples import DECLARED, SAMPLES

from jato.base import dtypes
from jato.base.errors import MissingRule
from jato.core.primitive import Primitive
from jato.core.types import Zero, tangent_type

NAMES = sorted(SAMPLES)


def declared(name: str, rule: str) -> None:
    if (name, rule) in DECLARED:
        pytest.skip(DECLARED[name, rule])


def is_double(sample) -> bool:
    """Do all inexact operands have 64 bits, so that differences say something?"""
    return all(
        np.asarray(x).dtype in (np.float64, np.complex128)
        for x in sample.operands
        if dtypes.is_inexact(np.asarray(x).dtype)
    )


@pytest.mark.parametrize("name", NAMES)
def test_type_rule_says_what_reference_gives(name):
    with x64():
        for sample in SAMPLES[name]:
            evaluate(Primitive.registry[name], [hold(x) for x in sample.operands], sample.params)


@pytest.mark.parametrize("name", NAMES)
def test_jvp_against_differences(name):
    declared(name, "jvp")
    primitive = Primitive.registry[name]
    smooth = [s for s in SAMPLES[name] if s.smooth and is_double(s)]
    for sample in smooth:
        check_jvp(primitive, sample.operands, sample.params, tolerance=2e-5, step=3e-6)


@pytest.mark.parametrize("name", NAMES)
def test_jvp_of_zero_and_of_integers_is_zero(name):
    primitive = Primitive.registry[name]
    with numpy_evaluation(), x64():
        for sample in SAMPLES[name]:
            operands = [hold(x) for x in sample.operands]
            tangents = [Zero(tangent_type(x.aval)) for x in operands]
            _, tangent = primitive.jvp(operands, tangents, **sample.params)
            found = tangent if primitive.multiple_results else [tangent]
            assert all(isinstance(t, Zero) for t in found)


def linear_sets(primitive, sample):
    """Sets of inexact operands in which the reference is linear, found by trying."""
    floats = [i for i, x in enumerate(sample.operands) if dtypes.is_inexact(np.asarray(x).dtype)]
    sets = [(i,) for i in floats] + ([tuple(floats)] if len(floats) > 1 else [])
    rng = np.random.default_rng(3)

    def at(chosen, scale, shift):
        operands = [
            np.asarray(x * scale + s if i in chosen else x)
            for i, (x, s) in enumerate(zip(sample.operands, shift, strict=True))
        ]
        return primitive.reference(*operands, **sample.params)

    def is_linear(chosen, scale):
        zero = [np.zeros_like(x) for x in sample.operands]
        other = [
            np.asarray(rng.normal(0, 30, np.shape(x)), np.asarray(x).dtype)
            if i in chosen
            else np.zeros_like(x)
            for i, x in enumerate(sample.operands)
        ]
        with np.errstate(all="ignore"):
            f, g, both = at(chosen, 1, zero), at(chosen, 0, other), at(chosen, scale, other)
            sums = np.allclose(both, scale * f + g, rtol=1e-9, atol=1e-9)
        return f.size and f.dtype.kind in "fc" and np.isfinite(f).all() and sums

    for chosen in sets:
        if all(is_linear(chosen, scale) for scale in (3, -3, 0.1, -40, 1e6)):
            yield chosen


@pytest.mark.parametrize("name", NAMES)
def test_transpose_by_dot_product(name):
    declared(name, "transpose")
    primitive = Primitive.registry[name]
    for sample in SAMPLES[name]:
        if not is_double(sample) or not sample.smooth:
            continue
        for chosen in linear_sets(primitive, sample):
            check_transpose(primitive, sample.operands, sample.params, list(chosen))


@pytest.mark.parametrize("name", NAMES)
def test_batch_against_a_loop(name):
    primitive = Primitive.registry[name]
    seen = set()
    for sample in SAMPLES[name]:
        arrays = [hold(x) for x in sample.operands]
        key = (tuple((x.shape, x.dtype.kind) for x in arrays), tuple(sample.params.items()))
        if not sample.batch or key in seen or not arrays:
            continue
        seen.add(key)
        check_batch(primitive, arrays, sample.params)


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_is_there(name):
    primitive = Primitive.registry[name]
    kind = type(primitive)
    for rule in ("type_rule", "jvp", "batch", "reference"):
        assert getattr(kind, rule) is not getattr(Primitive, rule), f"{name} lacks {rule}"
    ways = [
        kind.lower is not Primitive.lower,
        kind.plan is not Primitive.plan,
        kind.expand is not None,
        hasattr(primitive, "library_call"),
        hasattr(primitive, "combine"),  # loops that carry accumulators or meet updates
    ]
    assert any(ways), f"{name} has neither lower nor expand nor plan"


# Primitives whose operands are outputs of another one, so that independent samples mean nothing.
TESTED_ELSEWHERE = {
    "lu_solve": "takes what lu gives; tests/numpy/test_linalg.py solves with it",
    "householder_product": "takes what geqrf gives; tests/numpy/test_linalg.py checks qr",
}


def test_every_primitive_of_ops_has_samples():
    here = {
        name for name, p in Primitive.registry.items() if type(p).__module__.startswith("jato.ops.")
    }
    assert not sorted(here - set(SAMPLES) - set(TESTED_ELSEWHERE))


def test_missing_rules_name_primitive_and_rule():
    with (
        pytest.raises(MissingRule, match=r"'trigamma' has no 'jvp' rule"),
        numpy_evaluation(),
        x64(),
    ):
        x = hold(np.array(1.0))
        Primitive.registry["trigamma"].jvp([x], [x])
