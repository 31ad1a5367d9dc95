"""Elementwise rounding of floats to integers and to the next float.

Derivatives are 0, but for nextafter's.  Start reading at `_rounding`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jato.base.errors import fail
from jato.ops.elementwise_family import Elementwise


def _rounding(name: str, opcode: Any, reference: Any) -> Elementwise:
    return Elementwise(name, "f", lower=opcode, jvp=(None,), reference=reference)


FLOOR = _rounding("floor", "floor", np.floor)
CEIL = _rounding("ceil", "ceil", np.ceil)
TRUNC = _rounding("trunc", "trunc", np.trunc)


def floor(x: Any) -> Any:
    """The largest integer at most x, as a float.

    >>> float(floor(1.5))
    1.0
    """
    return FLOOR(x)


def ceil(x: Any) -> Any:
    """The smallest integer at least x, as a float.

    >>> float(ceil(1.5))
    2.0
    """
    return CEIL(x)


def trunc(x: Any) -> Any:
    """x without its fraction, as a float.

    >>> float(trunc(-1.5))
    -1.0
    """
    return TRUNC(x)


def _lower_round(b: Any, x: Any, *, to_even: bool) -> Any:
    if to_even:
        return b.round_even(x)
    whole = b.trunc(x)  # x - whole is exact, which x + 0.5 is not
    half = b.ge(b.abs(b.sub(x, whole)), b.const(0.5, x.dtype))
    return b.select(half, b.add(whole, b.copysign(b.const(1, x.dtype), x)), whole)


def _reference_round(x: Any, *, to_even: bool) -> Any:
    if to_even:
        return np.rint(x)
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole)


ROUND = Elementwise(
    "round", "f", lower=_lower_round, jvp=(None,), reference=_reference_round, cost=2.0
)


class RoundingMethod:
    """How `round` treats halves: AWAY_FROM_ZERO (0) or TO_NEAREST_EVEN (1)."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: Any, rounding_method: Any = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """To the nearest integer, as a float; halves by rounding_method.

    >>> float(round(2.5)), float(round(2.5, RoundingMethod.TO_NEAREST_EVEN))
    (3.0, 2.0)
    """
    method = int(rounding_method)
    if method not in (0, 1):
        fail(ValueError, "round", f"expected rounding_method 0 or 1, got {rounding_method!r}.")
    return ROUND(x, to_even=method == 1)


def _lower_is_finite(b: Any, x: Any) -> Any:
    return b.lt(b.abs(x), b.const(float("inf"), x.dtype))


IS_FINITE = Elementwise(
    "is_finite", "f", gives="bool", lower=_lower_is_finite, jvp=(None,), reference=np.isfinite
)


def is_finite(x: Any) -> Any:
    """Is x neither infinite nor NaN?  (floats)

    >>> bool(is_finite(1.0))
    True
    """
    return IS_FINITE(x)


class NextAfter(Elementwise):
    """The next float after x towards y; 16-bit floats step in their own format."""

    def reference(self, x: Any, y: Any) -> Any:
        x, y = np.broadcast_arrays(x, y)
        return np.where(x == y, y, np.nextafter(x, y))


def _lower_nextafter(b: Any, x: Any, y: Any) -> Any:
    if x.dtype not in ("f16", "bf16"):
        return b.nextafter(x, y)
    # the bits of a positive float, as an integer, are its rank among the positive floats
    bits = b.bitcast(x, "u16")
    one = b.const(1, "u16")
    up = b.eq(b.lt(x, y), b.gt(x, b.const(0, x.dtype)))
    stepped = b.select(up, b.add(bits, one), b.sub(bits, one))
    sign_bit = b.and_(b.bitcast(y, "u16"), b.const(0x8000, "u16"))
    stepped = b.select(b.eq(x, 0), b.or_(sign_bit, one), stepped)
    result = b.select(b.eq(x, y), y, b.bitcast(stepped, x.dtype))
    return b.select(b.or_(b.is_nan(x), b.is_nan(y)), b.add(x, y), result)


NEXTAFTER = NextAfter(
    "nextafter",
    "f",
    lower=_lower_nextafter,
    jvp=(lambda g, out, x, y: g, None),
    reference=np.nextafter,
    cost=6.0,
)


def nextafter(x1: Any, x2: Any) -> Any:
    """The next representable float after x1 in the direction of x2.

    >>> float(nextafter(0.0, 1.0)) > 0
    True
    """
    return NEXTAFTER(x1, x2)
