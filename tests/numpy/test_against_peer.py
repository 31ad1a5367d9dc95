"""jato.numpy against recorded results of jax.numpy: values, dtypes and weak types.

Each case of peer_cases.py runs eagerly and under jit.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import jato
import jato.numpy as jnp
import numpy

_spec = importlib.util.spec_from_file_location(
    "peer_cases", Path(__file__).with_name("peer_cases.py")
)
assert _spec is not None and _spec.loader is not None
peer_cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(peer_cases)

RESULTS = peer_cases.load_results()
INPUTS = peer_cases.INPUTS


def _compare(got: Any, case: str) -> None:
    ours, expected = peer_cases.leaves(got), RESULTS[case]
    assert len(ours) == len(expected)
    for x, result in zip(ours, expected, strict=True):
        assert list(x.shape) == result["shape"]
        assert str(x.dtype) == result["dtype"]
        tolerance = 2e-3 if x.dtype == numpy.float16 else 2e-5
        numpy.testing.assert_allclose(
            numpy.asarray(x), result["values"], rtol=tolerance, atol=tolerance / 10
        )
        assert x.weak_type == result["weak_type"]


def test_every_case_is_recorded() -> None:
    missing = [c for c in peer_cases.CASES if c not in RESULTS]
    assert not missing, f"run python tests/numpy/peer_cases.py; not recorded: {missing}"


@pytest.mark.parametrize("case", RESULTS)
def test_eager(case: str) -> None:
    _compare(peer_cases.evaluate(case, jnp, {k: jnp.asarray(v) for k, v in INPUTS.items()}), case)


@pytest.mark.parametrize("case", RESULTS)
def test_jit(case: str) -> None:
    names = [n for n in INPUTS if n in case]
    function = jato.jit(lambda *a: peer_cases.evaluate(case, jnp, dict(zip(names, a, strict=True))))
    _compare(function(*[INPUTS[n] for n in names]), case)
