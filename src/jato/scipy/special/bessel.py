"""Modified Bessel functions of the first kind, orders 0 and 1 (lax/bessel.py)."""

from __future__ import annotations

from typing import Any

from jato.jit.eager import public
from jato.lax.bessel import bessel_i0e, bessel_i1e
from jato.ops import elementwise as ops
from jato.scipy.special.arguments import real_operand


@public()
def i0e(x: Any) -> Any:
    """exp(-|x|) I0(x).

    >>> round(float(i0e(0.0)), 4)
    1.0
    """
    return bessel_i0e(real_operand("i0e", x))


@public()
def i0(x: Any) -> Any:
    """The modified Bessel function of order 0.

    >>> round(float(i0(0.0)), 4)
    1.0
    """
    x = real_operand("i0", x)
    return ops.exp(ops.abs(x)) * bessel_i0e(x)


@public()
def i1e(x: Any) -> Any:
    """exp(-|x|) I1(x).

    >>> float(i1e(0.0))
    0.0
    """
    return bessel_i1e(real_operand("i1e", x))


@public()
def i1(x: Any) -> Any:
    """The modified Bessel function of order 1.

    >>> float(i1(0.0))
    0.0
    """
    x = real_operand("i1", x)
    return ops.exp(ops.abs(x)) * bessel_i1e(x)
