"""Owen's T function.

    T(h, a) = integral over [0, a] of exp(-h**2 (1 + x**2) / 2) / (2 pi (1 + x**2))

by Gauss-Legendre quadrature for 0 <= a <= 1, over the part where the exponential counts (method T5 of
M. Patefield and D. Tandy, J. Stat. Software 5 (2000)); for a > 1 through T(a h, 1 / a): D. Owen, Ann.
Math. Stat. 27 (1956).
"""

from __future__ import annotations

import math
from typing import Any

import jato.numpy as jnp
import numpy as np
from jato.control.custom_jvp import custom_jvp
from jato.jit.eager import public
from jato.lax.operands import narrow, wide
from jato.scipy.special.arguments import real_operands
from jato.scipy.special.error_functions import erf, ndtr
from jato.scipy.special.series import is_wide


def _quadrature(h: Any, a: Any) -> Any:
    """T for 0 <= a <= 1."""
    # the integrand is exp(-(h x)**2 / 2) and less: nothing is left where h x > limit
    limit, nodes = (9.0, 32) if is_wide(h) else (6.0, 14)
    width = jnp.minimum(a, limit / jnp.maximum(h, limit))
    scaled = -0.5 * jnp.square(jnp.where(h < math.inf, h, 0))
    total = 0 * width
    for node, weight in zip(*np.polynomial.legendre.leggauss(nodes), strict=True):
        square = jnp.square(0.5 * (float(node) + 1) * width)
        total = total + float(weight) * jnp.exp(scaled * square) / (1 + square)
    return jnp.exp(-0.5 * h * h) * (width * total) / (4 * math.pi)


@custom_jvp
def _owens_t(h: Any, a: Any) -> Any:
    h, size = jnp.abs(h), jnp.abs(a)
    steep = size > 1
    product = jnp.where(h == 0, 0, h * size)
    inner = _quadrature(jnp.where(steep, product, h), jnp.where(steep, 1 / size, size))
    # of h and a h the probabilities beyond
    first, second = ndtr(-h), ndtr(-product)
    outer = 0.5 * (first + second) - first * second - inner
    return jnp.copysign(jnp.where(steep, outer, inner), a)


@_owens_t.defjvp
def _owens_t_rule(primals: Any, tangents: Any) -> Any:
    (h, a), (th, ta) = primals, tangents
    density = jnp.exp(-0.5 * h * h)
    in_h = (
        density * erf(jnp.where(h == 0, 0, a * h) * math.sqrt(0.5)) / (-2 * math.sqrt(2 * math.pi))
    )
    in_a = density * jnp.exp(-0.5 * jnp.square(jnp.where(h == 0, 0, a * h))) / (1 + a * a)
    return _owens_t(h, a), in_h * th + in_a / (2 * math.pi) * ta


@public()
def owens_t(h: Any, a: Any) -> Any:
    """Owen's T: the probability of X > h and 0 < Y < a X, for independent standard normal X and Y.

    Floats; even in h, odd in a.

    >>> round(float(owens_t(0.0, 1.0)), 4)
    0.125
    """
    h, a = jnp.broadcast_arrays(*real_operands("owens_t", h, a))
    return narrow(_owens_t(wide(h), wide(a)), h)
