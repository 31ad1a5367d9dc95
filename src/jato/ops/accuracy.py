"""The `accuracy` argument of elementwise functions: `AccuracyMode`, `Tolerance`.

There is one implementation of each function.  It is within MOST_ULPS units in the last place
(docs/math_accuracy.md), so a request for more than that is refused, and any other one is met.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import fail
from jato.core.types import type_of

MOST_ULPS = 2
_AT_MOST_ONE = ("sin", "cos", "tanh", "logistic")


class AccuracyMode(enum.Enum):
    """How to choose among implementations: both mean the only one there is."""

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """The error that a caller accepts: absolute, relative, or in units in the last place.

    ValueError for negative numbers.

    >>> Tolerance(rtol=1e-5, ulps=4)
    Tolerance(atol=0.0, rtol=1e-05, ulps=4)
    """

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0):
        if atol < 0 or rtol < 0 or ulps < 0:
            fail(ValueError, "Tolerance", f"expected no negative numbers, got {atol, rtol, ulps}.")
        self.atol, self.rtol, self.ulps = atol, rtol, ulps

    def __repr__(self) -> str:
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tolerance) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.atol, self.rtol, self.ulps))


def check_accuracy(function: str, accuracy: Any, x: Any) -> None:
    """NotImplementedError for an accuracy that the function does not reach; TypeError for others.

    An error of 0 is not a demand.  An absolute error can be promised where values are at most 1."""
    if accuracy is None or isinstance(accuracy, AccuracyMode):
        return
    if not isinstance(accuracy, Tolerance):
        fail(
            TypeError, function,
            f"argument 'accuracy': expected a lax.Tolerance or lax.AccuracyMode, got {accuracy!r}.",
        )  # fmt: skip
    dtype = type_of(x).dtype
    step = MOST_ULPS * float(np.spacing(np.ones((), np.float32)))
    if dtypes.is_inexact(dtype) and dtype.itemsize > 4 and dtype != np.complex64:
        step = MOST_ULPS * float(np.finfo(np.float64).eps)
    absolute = accuracy.atol > 0 and not (accuracy.rtol or accuracy.ulps)
    missed = absolute and (function not in _AT_MOST_ONE or accuracy.atol < step)
    if missed or (0 < accuracy.ulps < MOST_ULPS) or (0 < accuracy.rtol < step):
        fail(
            NotImplementedError, function,
            f"argument 'accuracy': the function is within {MOST_ULPS} units in the last place, a "
            f"relative error of {step:.2g}, not within {accuracy}.",
        )  # fmt: skip
