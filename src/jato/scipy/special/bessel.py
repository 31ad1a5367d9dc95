"""Bessel functions of the first kind: modified ones of orders 0 and 1 (lax/bessel.py), and J.

J of many orders by Miller's backward recurrence (F. Olver, J. Res. NBS 68B (1964)), for large arguments
by Hankel's expansion of J0 and J1 (DLMF 10.17.3) and the recurrence forward.
"""

from __future__ import annotations

import math
from typing import Any

import jato.numpy as jnp
from jato.control.custom_jvp import custom_jvp
from jato.control.scan import scan
from jato.jit.eager import public
from jato.lax.bessel import bessel_i0e, bessel_i1e
from jato.lax.operands import narrow, wide
from jato.ops import elementwise as ops
from jato.scipy.special.arguments import real_operand
from jato.scipy.special.series import polynomial


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


# from here on Hankel's expansion has all digits of float64
_LARGE = 25.0


def _hankel(z: Any, order: int) -> Any:
    """J0 or J1 of z >= _LARGE."""
    u = 1 / (8 * z)
    coefficients, c = [1.0], 1.0
    for k in range(1, 24):
        c *= (4 * order**2 - (2 * k - 1) ** 2) / k
        coefficients.append(c)
    even = [(-1) ** k * c for k, c in enumerate(coefficients[0::2])]
    odd = [(-1) ** k * c for k, c in enumerate(coefficients[1::2])]
    square = u * u
    # cos and sin of z - (order / 2 + 1/4) pi
    sine, cosine = jnp.sin(z), jnp.cos(z)
    first = cosine + sine if order == 0 else sine - cosine
    second = sine - cosine if order == 0 else -sine - cosine
    return (first * polynomial(square, even) - second * u * polynomial(square, odd)) / jnp.sqrt(
        math.pi * z
    )


def _forward(z: Any, v: int) -> Any:
    """J of orders 0 ... v for z >= max(v, _LARGE)."""
    orders = [_hankel(z, 0), _hankel(z, 1)]
    for n in range(1, v):
        orders.append(2 * n / z * orders[n] - orders[n - 1])
    return jnp.stack(orders[: v + 1])


def _backward(z: Any, v: int, start: int) -> Any:
    """J of orders 0 ... v for 0 < z < start - 20, from two arbitrary values at `start`.

    J(0) + 2 J(2) + 2 J(4) + ... = 1 gives their factor.  Values that grow too large are scaled down,
    and each remembers how often that had happened.
    """
    small = 1e-15

    def step(state: Any, n: Any) -> Any:
        above, current, total, scalings = state
        below = 2 * n / z * current - above
        # below is J(n - 1): even orders count
        even = (n - 1) == 2 * jnp.floor((n - 1) / 2)
        total = total + jnp.where(even, jnp.where(n == 1, 1, 2) * below, 0)
        large = jnp.abs(below) > 1e15
        factor = jnp.where(large, small, 1)
        scalings = scalings + jnp.where(large, 1, 0)
        below = below * factor
        return (current * factor, below, total * factor, scalings), (below, scalings)

    zero = jnp.zeros_like(z)
    first = (zero, zero + small, zero + (2 * small if start % 2 == 0 else 0), zero)
    orders = jnp.arange(start, 0, -1).astype(z.dtype)
    (_, _, total, scalings), (values, then) = scan(step, first, orders)
    values, then = jnp.flip(values[start - 1 - v :], 0), jnp.flip(then[start - 1 - v :], 0)
    return values / total * jnp.power(small, scalings - then)


def _orders(z: Any, v: int, n_iter: int) -> Any:
    size = jnp.abs(z)
    # backward in any case below v, where forward is not stable
    switch = max(_LARGE, float(v))
    start = max(n_iter, int(switch) + 40)
    far = size >= switch
    tiny = float(jnp.finfo(z.dtype).tiny) ** 0.5
    regular = ~far & (size > tiny)
    near = _backward(jnp.where(regular, size, 1), v, start)
    at_zero = (jnp.arange(v + 1) == 0).astype(z.dtype).reshape(-1, *[1] * z.ndim)
    near = jnp.where(regular, near, at_zero)
    finite = far & (size < math.inf)
    large = jnp.where(finite, _forward(jnp.where(finite, size, switch), v), 0)
    value = jnp.where(far, large, near)
    parity = (jnp.arange(v + 1) % 2).reshape(-1, *[1] * z.ndim)
    value = jnp.where((z < 0) & (parity == 1), -value, value)
    return jnp.where(z == z, value, z)


def _differentiable_orders(v: int, n_iter: int) -> Any:
    @custom_jvp
    def orders(z: Any) -> Any:
        return _orders(z, v, n_iter)

    @orders.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (z,), (t,) = primals, tangents
        # J(n)' = (J(n - 1) - J(n + 1)) / 2, and J(-1) = -J(1)
        more = _differentiable_orders(v + 1, n_iter)(z)
        below = jnp.concatenate([-more[1:2], more[:-2]])
        return more[:-1], 0.5 * (below - more[1:]) * t

    return orders


@public(static=("v", "n_iter"))
def bessel_jn(z: Any, *, v: int, n_iter: int = 50) -> Any:
    """Bessel functions of the first kind J of orders 0, 1, ..., v: floats of shape (v + 1, *z.shape).

    v: an integer >= 0; n_iter: at least so many steps of the backward recurrence (those that all
    digits need are done in any case).  ValueError if v or n_iter are no such integers.

    >>> [round(float(y), 4) for y in bessel_jn(1.0, v=1)]
    [0.7652, 0.4401]
    """
    for name, value in (("v", v), ("n_iter", n_iter)):
        if not hasattr(value, "__index__") or value.__index__() < 0:
            raise ValueError(
                f"bessel_jn: argument '{name}' must be an integer >= 0 known when the function is "
                f"traced, got {value!r}"
            )
    z = real_operand("bessel_jn", z)
    return narrow(_differentiable_orders(v.__index__(), n_iter.__index__())(wide(z)), z)
