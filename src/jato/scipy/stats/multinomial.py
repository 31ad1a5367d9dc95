"""The multinomial distribution: how often each of several outcomes came in n trials."""

from __future__ import annotations

import math
from typing import Any

import jato.numpy as jnp
from jato.base.dtypes import is_integer
from jato.jit.eager import public
from jato.numpy.promote import as_array, dtype_of
from jato.scipy.special.entropies import xlogy
from jato.scipy.special.gamma_functions import gammaln
from jato.scipy.stats.arguments import named_operands


def _log_mass(function: str, x: Any, n: Any, p: Any) -> Any:
    counts, trials = as_array(function, x, "x"), as_array(function, n, "n")
    for name, array in (("x", counts), ("n", trials)):
        if not is_integer(dtype_of(array)):
            raise ValueError(
                f"{function}: argument '{name}' must be of integers, got {dtype_of(array)}; use astype(int)"
            )
    if not counts.shape:
        raise ValueError(f"{function}: argument 'x' must have an axis of outcomes, got a number")
    (p,) = named_operands(function, p=p)
    floats = counts.astype(p.dtype)
    outside = (jnp.sum(counts, -1) != trials) | jnp.any(counts < 0, -1)
    ways = gammaln(trials.astype(p.dtype) + 1) - jnp.sum(gammaln(jnp.maximum(floats, 0) + 1), -1)
    value = ways + jnp.sum(xlogy(floats, p), -1)
    return jnp.where(outside, -math.inf, value)


@public(name="multinomial.logpmf")
def logpmf(x: Any, n: Any, p: Any) -> Any:
    """The logarithm of the probability of the counts x, of integers, in n trials.

    x: shape (..., k); n: integers of shape (...); p: probabilities of shape (..., k), which broadcast.
    -inf unless the counts are >= 0 and their sum is n.  ValueError if x or n are no integers.

    >>> import jato.numpy as jnp
    >>> round(float(logpmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5]))), 4)
    -0.6931
    """
    return _log_mass("multinomial.logpmf", x, n, p)


@public(name="multinomial.pmf")
def pmf(x: Any, n: Any, p: Any) -> Any:
    """The probability of the counts x in n trials.  See `logpmf`.

    >>> import jato.numpy as jnp
    >>> round(float(pmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5]))), 4)
    0.5
    """
    return jnp.exp(_log_mass("multinomial.pmf", x, n, p))
