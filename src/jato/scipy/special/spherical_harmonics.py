"""Spherical harmonics, by the recurrences of normalized associated Legendre functions.

From P(m, m) upwards in the degree, which is stable: S. Holmes and W. Featherstone, J. Geodesy 76
(2002).
"""

from __future__ import annotations

import math
from typing import Any

import jato.numpy as jnp
import numpy as np
from jato.base.dtypes import is_integer
from jato.control.scan import scan
from jato.core.trace import Tracer
from jato.jit.eager import public
from jato.numpy.promote import as_array, dtype_of
from jato.ops.complex_parts import complex as make_complex
from jato.scipy.special.arguments import named_operands


def _legendre(n: Any, m: Any, sine: Any, cosine: Any, n_max: int) -> Any:
    """The normalized function of degree n and order m >= 0, for floats n and m of one shape."""
    steps = jnp.arange(1, n_max + 1).astype(cosine.dtype)

    def along_diagonal(value: Any, k: Any) -> Any:
        factor = -jnp.sqrt((2 * k + 1) / (2 * k)) * sine
        return jnp.where(k <= m, value * factor, value), None

    first = jnp.full_like(cosine, math.sqrt(1 / (4 * math.pi)))
    diagonal, _ = scan(along_diagonal, first, steps)

    def upwards(state: Any, k: Any) -> Any:
        below, current = state
        degree = m + k
        a = jnp.sqrt((4 * degree * degree - 1) / (degree * degree - m * m))
        last = degree - 1
        b = jnp.sqrt((last * last - m * m) / (4 * last * last - 1))
        above = a * (cosine * current - jnp.where(k == 1, 0, b) * below)
        more = degree <= n
        return (jnp.where(more, current, below), jnp.where(more, above, current)), None

    # the square root is taken of positive numbers only: for k = 1, b is not used
    (_, value), _ = scan(upwards, (jnp.zeros_like(diagonal), diagonal), steps)
    return value


def _checked_degree(n: Any, n_max: Any) -> int:
    if n_max is None:
        if isinstance(n, Tracer):
            raise TypeError(
                "sph_harm_y: argument 'n' is traced, so its maximum is not known; give it as n_max"
            )
        return int(np.max(np.asarray(n), initial=0))
    if not hasattr(n_max, "__index__") or n_max.__index__() < 0:
        raise ValueError(f"sph_harm_y: argument 'n_max' must be an integer >= 0, got {n_max!r}")
    return int(n_max.__index__())


@public(static=("n_max",), name="sph_harm_y")
def _sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, n_max: int) -> Any:
    theta, phi = named_operands("sph_harm_y", theta=theta, phi=phi)
    n, m, theta, phi = jnp.broadcast_arrays(n, m, theta, phi)
    n = jnp.minimum(n, n_max)
    order = jnp.abs(m)
    outside = (n < 0) | (order > n)
    degree = jnp.where(outside, 0, n).astype(theta.dtype)
    size = jnp.where(outside, 0, order).astype(theta.dtype)
    value = _legendre(degree, size, jnp.sin(theta), jnp.cos(theta), n_max)
    value = jnp.where(outside, 0, value)
    # Y(n, -m) = (-1)**m conj(Y(n, m))
    value = jnp.where((m < 0) & (order % 2 == 1), -value, value)
    angle = m.astype(phi.dtype) * phi
    return make_complex(value * jnp.cos(angle), value * jnp.sin(angle))


def sph_harm_y(
    n: Any, m: Any, theta: Any, phi: Any, diff_n: int | None = None, n_max: int | None = None
) -> Any:
    """The spherical harmonics of degree n and order m at the angles theta (from the pole) and phi.

    n, m: integers, n >= 0 and |m| <= n (0 elsewhere); theta, phi: real; all broadcast.  n_max: the
    largest n, greater ones count as it; needed where n is traced.  Complex.
    NotImplementedError for diff_n, TypeError for n and m that are no integers.

    >>> complex(sph_harm_y(1, 0, 0.0, 0.0)).real.__round__(4)
    0.4886
    """
    if diff_n:
        raise NotImplementedError(
            "sph_harm_y: argument 'diff_n' is not supported; differentiate with jato.jvp"
        )
    n, m = as_array("sph_harm_y", n, "n"), as_array("sph_harm_y", m, "m")
    for name, x in (("n", n), ("m", m)):
        if not is_integer(dtype_of(x)):
            raise TypeError(
                f"sph_harm_y: argument '{name}' must be of integers, got {dtype_of(x)}; use astype(int)"
            )
    return _sph_harm_y(n, m, theta, phi, n_max=_checked_degree(n, n_max))
