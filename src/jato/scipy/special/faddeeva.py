"""Faddeeva's function w(z) = exp(-z**2) erfc(-i z), and Dawson's and the scaled error function.

With a step h, nodes t and a remainder R that is exact up to rounding,

    w(z) = R(z) + 2 h i z / pi * sum of exp(-t**2) / (z**2 - t**2)

the trapezoidal rule for its integral, corrected for the pole at z: M. Al Azah and S. Chandler-Wilde,
"Computation of the complex error function using modified trapezoidal rules", SIAM J. Numer. Anal. 59
(2021).  The nodes are (k + 1/2) h, or k h where x is near one of the former.  Large z need no R.  Start
at `_upper`; `_dawson` and `_scaled` are it on the real and the imaginary axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jato.numpy as jnp
from jato.base.dtypes import is_complex
from jato.jit.eager import public
from jato.lax.operands import narrow, wide
from jato.numpy.promote import as_array, cast, dtype_of, float_of
from jato.ops.complex_parts import complex as make_complex
from jato.scipy.special.arguments import real_operand
from jato.scipy.special.series import is_wide, with_derivative

_TWO_BY_ROOT_PI = 2 / math.sqrt(math.pi)


class _Rule(NamedTuple):
    """So many nodes, with a step for which the rule's error is that of the dtype."""

    count: int
    step: float

    @property
    def far(self) -> float:
        """Beyond, R is nothing: pi / h."""
        return math.pi / self.step


def _rule(x: Any) -> _Rule:
    count = 12 if is_wide(x) else 7
    return _Rule(count, math.sqrt(math.pi / count))


def _node_sum(rule: _Rule, whole: Any, term: Callable[[Any], Any], derivative: bool = False) -> Any:
    """2 h / pi times the sum of exp(-t**2) term(t**2), at k h (`whole`) or (k + 1/2) h.

    derivative: with t**2 as a factor.
    """
    total: Any = None
    for k in range(rule.count):
        halves, steps = (rule.step * (k + 0.5)) ** 2, (rule.step * (k + 1)) ** 2
        pairs = [(halves, math.exp(-halves)), (steps, math.exp(-steps))]
        factors = [weight * square if derivative else weight for square, weight in pairs]
        if whole is False:
            part = term(halves) * factors[0]
        else:
            part = jnp.where(whole, factors[1], factors[0]) * term(jnp.where(whole, steps, halves))
        total = part if total is None else total + part
    return total * (2 * rule.step / math.pi)


def _near_half_node(rule: _Rule, x: Any) -> Any:
    """Is x nearer to some (k + 1/2) h than to k h?"""
    place = x * (1 / rule.step)
    rest = place - jnp.floor(place)
    return (rest >= 0.25) & (rest <= 0.75)


# ---- Dawson's integral: sqrt(pi) / 2 times the imaginary part of w on the real axis


def _dawson_value(x: Any) -> Any:
    rule, size = _rule(x), jnp.abs(x)
    beyond = size > 1e4 / float(jnp.finfo(x.dtype).eps) ** 0.25
    y = jnp.where(beyond, 1, size)
    whole = _near_half_node(rule, y)
    square = y * y
    # tan(pi y / h), or -cot
    angle = y * (1 / rule.step)
    angle = math.pi * (angle - jnp.round(angle))
    tangent = jnp.tan(jnp.where(whole, 1, angle))
    cotangent = 1 / jnp.tan(jnp.where(whole, angle, 1))
    edge = jnp.where(whole, rule.step / (math.pi * jnp.where(whole, y, 1)), 0)
    remainder = jnp.exp(-square) * jnp.where(whole, -cotangent, tangent) + edge
    value = remainder + y * _node_sum(rule, whole, lambda t: 1 / (square - t))
    far = 1 / jnp.where(beyond, 2 * size, 1)
    return jnp.copysign(jnp.where(beyond, far, value / _TWO_BY_ROOT_PI), x)


def _dawson_slope(x: Any, value: Any) -> Any:
    """1 - 2 x D(x), for large x without cancellation."""
    rule = _rule(x)
    far = jnp.abs(x) > rule.far + 0.5
    square = jnp.square(jnp.where(far, x, rule.far + 1))
    large = _node_sum(rule, False, lambda t: 1 / (square - t), derivative=True)
    return jnp.where(far, large * (-math.sqrt(math.pi)), 1 - 2 * x * jnp.where(far, 0, value))


_dawson = with_derivative(_dawson_value, _dawson_slope)


@public()
def dawsn(x: Any) -> Any:
    """Dawson's integral: exp(-x**2) times the integral of exp(t**2) over [0, x].  Floats.

    >>> round(float(dawsn(1.0)), 4)
    0.5381
    """
    x = real_operand("dawsn", x)
    return narrow(_dawson(wide(x)), x)


# ---- the scaled complementary error function: w on the imaginary axis


def _scaled_value(x: Any) -> Any:
    rule, y = _rule(x), jnp.abs(x)
    beyond = y > 1e4 / float(jnp.finfo(x.dtype).eps) ** 0.25
    place = jnp.where(beyond, 1, y)
    square = place * place
    near = jnp.minimum(place, rule.far)
    remainder = 2 * jnp.exp(near * near) / (1 + jnp.exp(2 * math.pi / rule.step * near))
    value = place * _node_sum(rule, False, lambda t: 1 / (square + t))
    value = value + jnp.where(place < rule.far, remainder, 0)
    value = jnp.where(beyond, 1 / (math.sqrt(math.pi) * jnp.where(beyond, y, 1)), value)
    left = jnp.where(x < 0, x, 0)
    return jnp.where(x < 0, 2 * jnp.exp(left * left) - value, value)


def _scaled_slope(x: Any, value: Any) -> Any:
    """2 x erfcx(x) - 2 / sqrt(pi), for large x without cancellation."""
    rule = _rule(x)
    far = x > rule.far
    square = jnp.square(jnp.where(far, x, rule.far + 1))
    large = -2 * _node_sum(rule, False, lambda t: 1 / (square + t), derivative=True)
    return jnp.where(far, large, 2 * x * jnp.where(far, 0, value) - _TWO_BY_ROOT_PI)


_scaled = with_derivative(_scaled_value, _scaled_slope)


@public()
def erfcx(x: Any) -> Any:
    """exp(x**2) erfc(x), which does not overflow for large x.  Floats, or complex for complex x.

    >>> round(float(erfcx(10.0)), 4)
    0.0561
    """
    x = as_array("erfcx", x, "x")
    if is_complex(dtype_of(x)):
        return _faddeeva(x * 1j)
    x = real_operand("erfcx", x)
    return narrow(_scaled(wide(x)), x)


# ---- the complex function


def _upper(z: Any) -> Any:
    """w(z) for Re z, Im z >= 0."""
    x, y = jnp.real(z), jnp.imag(z)
    rule = _rule(x)
    plain = y >= rule.far
    whole = ~plain & (y < x) & _near_half_node(rule, x)
    square = z * z
    value = 1j * z * _node_sum(rule, whole, lambda t: 1 / (square - t))
    # exp(-z**2) / (1 +- exp(-2 pi i z / h)), for the pole at z if it is below the line y = pi / h
    place = jnp.where(plain, 0, z)
    turn = jnp.exp(-2j * math.pi / rule.step * place)
    remainder = 2 * jnp.exp(-place * place) / (1 + jnp.where(whole, -1, 1) * turn)
    edge = 1j * rule.step / math.pi / jnp.where(whole, z, 1)
    return value + jnp.where(plain, 0, remainder) + jnp.where(whole, edge, 0)


def _faddeeva_value(z: Any) -> Any:
    x, y = jnp.real(z), jnp.imag(z)
    beyond = jnp.maximum(jnp.abs(x), jnp.abs(y)) > 1e4 / float(jnp.finfo(x.dtype).eps) ** 0.25
    quadrant = make_complex(jnp.abs(x), jnp.abs(y))
    near = _upper(jnp.where(beyond, 1 + 1j, quadrant))
    far = (1j / math.sqrt(math.pi)) / jnp.where(beyond, quadrant, 1)
    value = jnp.where(beyond, far, near)
    value = jnp.where((x < 0) != (y < 0), jnp.conj(value), value)
    # w(z) + w(-z) = 2 exp(-z**2)
    below = jnp.where(y < 0, z, 0)
    return jnp.where(y < 0, 2 * jnp.exp(-below * below) - value, value)


def _faddeeva_slope(z: Any, value: Any) -> Any:
    """2 i / sqrt(pi) - 2 z w(z), for large z above the real axis without cancellation."""
    rule = _rule(jnp.real(z))
    far = (jnp.imag(z) >= 0) & (jnp.abs(z) > 2 * rule.far)
    square = jnp.square(jnp.where(far, z, 2 * rule.far + 1))
    large = -2j * _node_sum(rule, False, lambda t: 1 / (square - t), derivative=True)
    return jnp.where(far, large, 1j * _TWO_BY_ROOT_PI - 2 * z * jnp.where(far, 0, value))


_faddeeva = with_derivative(_faddeeva_value, _faddeeva_slope)


@public()
def wofz(z: Any) -> Any:
    """Faddeeva's function exp(-z**2) erfc(-i z).  Complex, for real z too.

    >>> abs(complex(wofz(1j)) - float(erfcx(1.0))) < 1e-6
    True
    """
    z = as_array("wofz", z, "z")
    dtype = dtype_of(z)
    if not is_complex(dtype):
        z = wide(cast(z, float_of(dtype)))
        z = make_complex(z, jnp.zeros_like(z))
    return _faddeeva(z)
