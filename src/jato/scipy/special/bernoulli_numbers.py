"""Bernoulli's numbers, exactly, through the tangent numbers.

R. Brent and D. Harvey, "Fast computation of Bernoulli, Tangent and Secant numbers" (2011).
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

import jato.numpy as jnp
import numpy as np
from jato.base.dtypes import canonicalize
from jato.jit.eager import public

# beyond this B(n) is no float64
_LARGEST = 258


def _tangent_numbers(count: int) -> list[int]:
    numbers = [math.factorial(k) for k in range(count)]
    for k in range(1, count):
        for j in range(k, count):
            numbers[j] = (j - k) * numbers[j - 1] + (j - k + 2) * numbers[j]
    return numbers


@functools.lru_cache(maxsize=8)
def bernoulli_fractions(n: int) -> tuple[Fraction, ...]:
    """B(0) ... B(n), with B(1) = -1/2."""
    found = [Fraction(1), Fraction(-1, 2)] + [Fraction(0)] * max(0, n - 1)
    for k, tangent in enumerate(_tangent_numbers(n // 2), 1):
        found[2 * k] = Fraction((-1) ** (k - 1) * 2 * k * tangent, 4**k * (4**k - 1))
    return tuple(found[: n + 1])


@public(static=("n",))
def bernoulli(n: int) -> Any:
    """The Bernoulli numbers B(0) ... B(n), with B(1) = -1/2: floats of shape (n + 1,).

    Those too large for the dtype are infinite.  ValueError if n is no integer >= 0.

    >>> bernoulli(2)
    Array([ 1.        , -0.5       ,  0.16666667], dtype=float32)
    """
    try:
        count = n.__index__()
    except (AttributeError, TypeError):
        count = -1
    if count < 0:
        raise ValueError(f"bernoulli: argument 'n' must be an integer >= 0, got {n!r}")
    values = [float(b) for b in bernoulli_fractions(min(count, _LARGEST))]
    for k in range(_LARGEST + 1, count + 1):
        values.append(0.0 if k % 2 else math.copysign(math.inf, -1 if k % 4 == 0 else 1))
    with np.errstate(over="ignore"):
        return jnp.asarray(np.array(values).astype(canonicalize(np.float64)))
