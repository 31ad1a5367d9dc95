"""`lower` through the loop-IR interpreter against `reference`, on the samples of each family."""

from __future__ import annotations

import numpy as np
import pytest
from lowering import run_lower, same
from reference_rules import hold, x64
from samples import SAMPLES

from jato.core.primitive import Primitive

LOWERED = sorted(
    name for name in SAMPLES if type(Primitive.registry[name]).lower is not Primitive.lower
)


@pytest.mark.parametrize("name", LOWERED)
def test_lower_against_reference(name):
    primitive = Primitive.registry[name]
    with x64():
        for sample in SAMPLES[name]:
            operands = [hold(x) for x in sample.operands]
            with np.errstate(all="ignore"):
                expected = primitive.reference(*map(np.asarray, operands), **sample.params)
            try:
                found = run_lower(primitive, operands, sample.params)
                same(found, np.asarray(expected), sample.ulps, sample.signs)
            except Exception as error:
                error.add_note(f"{name}: {sample!r}")
                raise
