"""What the special functions share: sums with fixed coefficients, and derivatives that are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jato.control.custom_jvp import custom_jvp
from jato.core.types import type_of
from jato.lax.bessel import chebyshev


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """sum of c[k] x**k by Horner's rule."""
    total = x * 0.0 + coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def fitted(x: Any, ends: tuple[float, float], coefficients: Sequence[float]) -> Any:
    """The Chebyshev series of a function on the interval between `ends`."""
    low, high = ends
    return chebyshev(x * (2 / (high - low)) - (high + low) / (high - low), coefficients)


def is_wide(x: Any) -> bool:
    """Does x have the digits of float64?"""
    return np.finfo(type_of(x).dtype).eps < 1e-10


def with_derivative(
    function: Callable[[Any], Any], derivative: Callable[[Any, Any], Any]
) -> Callable[[Any], Any]:
    """The function with its derivative given, as derivative(x, function(x))."""
    known: Any = custom_jvp(function)

    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        value = known(x)
        return value, derivative(x, value) * t

    known.defjvp(rule)
    return known
