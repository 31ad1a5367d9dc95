"""What the distributions share: arguments, standardizing, values outside of the support.

Arguments become floats of one dtype (integers promote, Python numbers are weak) and broadcast.
`on_support` evaluates a formula where it makes sense only, so that derivatives beyond are 0 and
not NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jato.numpy as jnp
from jato.scipy.special.arguments import named_operands as named_operands


def standardized(function: str, loc: Any, scale: Any, **arguments: Any) -> list[Any]:
    """[(x - loc) / scale, the other arguments ..., scale]; x is the first of `arguments`.

    A scale that is not positive gives NaN.
    """
    x, *shapes, loc, scale = named_operands(function, **arguments, loc=loc, scale=scale)
    scale = positive(scale)
    return [(x - loc) / scale, *shapes, scale]


def quantile_arguments(function: str, loc: Any, scale: Any, **arguments: Any) -> list[Any]:
    """[probability, the other arguments ..., loc, scale]; NaN for probabilities outside [0, 1]."""
    q, *rest = named_operands(function, **arguments, loc=loc, scale=scale)
    return [probability(q), *rest[:-1], positive(rest[-1])]


def shifted(function: str, loc: Any, **arguments: Any) -> list[Any]:
    """[k - loc, the other arguments ...] of a distribution on the integers."""
    k, *shapes, loc = named_operands(function, **arguments, loc=loc)
    return [k - loc, *shapes]


def positive(x: Any) -> Any:
    """x, NaN where it is not positive."""
    return jnp.where(x > 0, x, math.nan)


def probability(p: Any) -> Any:
    """p, NaN outside of [0, 1]."""
    return jnp.where((p >= 0) & (p <= 1), p, math.nan)


def on_support(
    x: Any, outside: Any, formula: Callable[[Any], Any], inner: Any, beyond: float = -math.inf
) -> Any:
    """formula(x), and `beyond` where x is `outside`; there the formula sees `inner` instead.

    Where the formula gives NaN for `inner`, the parameters are to blame, and NaN stays.
    """
    value = formula(jnp.where(outside, inner, x))
    return jnp.where(outside & (value == value), beyond, value)


def on_integers(
    k: Any, formula: Callable[[Any], Any], inner: Any, least: Any = 0, most: Any = math.inf
) -> Any:
    """formula(k) for the integers least <= k <= most, -inf elsewhere."""
    outside = (k < least) | (k > most) | (k == math.inf) | (jnp.floor(k) != k)
    return on_support(k, outside & (k == k), formula, inner)


def log1m_exp(x: Any) -> Any:
    """log(1 - exp(-x)) for x >= 0, without cancellation: M. Maechler, "Accurately computing
    log(1 - exp(-|a|))" (2012)."""
    small = x < math.log(2)
    near = jnp.log(-jnp.expm1(-jnp.where(small, x, 1)))
    return jnp.where(small, near, jnp.log1p(-jnp.exp(-jnp.where(small, 1, x))))


def log1p_square(x: Any) -> Any:
    """log(1 + x**2), also where the square overflows."""
    large = jnp.abs(x) > 1e4
    far = 2 * jnp.log(jnp.abs(jnp.where(large, x, 1)))
    return jnp.where(large, far, jnp.log1p(jnp.square(jnp.where(large, 0, x))))
