"""Spence's function, the dilogarithm.

    spence(w) = sum of B(n) u**(n+1) / (n+1)!,  u = -log(w),  B(n) Bernoulli's numbers

converges fast for 1/2 <= w <= 1, to where the functional equations for 1/x and 1 - x lead from all
of (0, inf): L. Lewin, "Polylogarithms and Associated Functions" (1981).
"""

from __future__ import annotations

import math
from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.lax.operands import narrow, wide
from jato.scipy.special.arguments import real_operand
from jato.scipy.special.bernoulli_numbers import bernoulli_fractions
from jato.scipy.special.series import is_wide, polynomial, with_derivative

_COEFFICIENTS = [float(b) / math.factorial(n + 1) for n, b in enumerate(bernoulli_fractions(18))]


def _value(x: Any) -> Any:
    y = jnp.where(x > 1, 1 / x, x)
    reflected = y < 0.5
    u = jnp.where(reflected, -jnp.log1p(-y), jnp.abs(jnp.log(x)))
    # the first terms, then those of odd powers: B(3), B(5) ... are 0
    terms = _COEFFICIENTS[2 : 19 if is_wide(x) else 11 : 2]
    core = u - 0.25 * u * u + u * u * u * polynomial(u * u, terms)
    product = jnp.where(y > 0, jnp.log(jnp.where(y > 0, y, 1)) * u, 0)
    inner = jnp.where(reflected, math.pi**2 / 6 + product - core, core)
    half_square = 0.5 * jnp.square(jnp.log(jnp.where(x > 1, x, 1)))
    value = jnp.where(x > 1, -half_square - inner, inner)
    return jnp.where(x >= 0, value, math.nan)


def _slope(x: Any, value: Any) -> Any:
    """log(x) / (1 - x)"""
    t = x - 1
    near = jnp.abs(t) < 1e-3
    ratio = jnp.log1p(jnp.where(near, 1, t)) / jnp.where(near, 1, t)
    return -jnp.where(near, polynomial(t, [1, -1 / 2, 1 / 3, -1 / 4, 1 / 5, -1 / 6]), ratio)


_spence = with_derivative(_value, _slope)


@public()
def spence(x: Any) -> Any:
    """Spence's function: the integral of log(t) / (1 - t) over [1, x].  Floats; NaN for x < 0.

    It is the dilogarithm of 1 - x.

    >>> round(float(spence(0.0)), 4)
    1.6449
    """
    x = real_operand("spence", x)
    return narrow(_spence(wide(x)), x)
