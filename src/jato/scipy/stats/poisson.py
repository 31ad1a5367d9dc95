"""The Poisson distribution: the number of events of which mu are expected."""

from __future__ import annotations

import math
from typing import Any

import jato.numpy as jnp
import numpy as np
from jato.jit.eager import public
from jato.scipy.special.arguments import computed_dtype
from jato.scipy.special.entropies import xlogy
from jato.scipy.special.gamma_functions import gammaincc, gammaln
from jato.scipy.stats.arguments import named_operands, on_integers, shifted


def _log_mass(function: str, k: Any, mu: Any, loc: Any) -> Any:
    k, mu = shifted(function, loc, k=k, mu=mu)
    mu = jnp.where(mu >= 0, mu, math.nan)
    return on_integers(k, lambda k: xlogy(k, mu) - gammaln(k + 1) - mu, 0)


@public(name="poisson.logpmf")
def logpmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The logarithm of the probability of k events; -inf unless k is an integer >= 0.

    >>> float(logpmf(0, 2.0))
    -2.0
    """
    return _log_mass("poisson.logpmf", k, mu, loc)


@public(name="poisson.pmf")
def pmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The probability of k events; 0 unless k is an integer >= 0.

    >>> round(float(pmf(0, 2.0)), 4)
    0.1353
    """
    return jnp.exp(_log_mass("poisson.pmf", k, mu, loc))


@public(name="poisson.cdf")
def cdf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The probability of up to k events.

    >>> round(float(cdf(0, 2.0)), 4)
    0.1353
    """
    k, mu = shifted("poisson.cdf", loc, k=k, mu=mu)
    below = k < 0
    value = gammaincc(jnp.floor(jnp.where(below, 0, k)) + 1, mu)
    return jnp.where(below & (value == value), 0, value)


# From here on the entropy is a series in 1/mu, whose error is then below the dtype's precision, and so
# many terms of the sum are all that count before.
_LARGE = {4: 12.0, 8: 60.0}
_TERMS = {4: 64, 8: 160}


@public(name="poisson.entropy")
def entropy(mu: Any, loc: Any = 0) -> Any:
    """The entropy, in nats: of any loc the same.  NaN for mu < 0.

    The sum over the probabilities for small mu, else the asymptotic series of R. Evans and
    J. Boersma, "The entropy of a Poisson distribution", SIAM Review 30 (1988).

    >>> round(float(entropy(2.0)), 4)
    1.7049
    """
    mu, loc = named_operands("poisson.entropy", mu=mu, loc=loc)
    dtype, inner = mu.dtype, computed_dtype(mu)
    mu = jnp.where(mu >= 0, mu + 0 * loc, math.nan).astype(inner)
    switch = _LARGE[inner.itemsize]
    large = mu >= switch
    m = jnp.where(large, 1, mu)[..., None]
    k = np.arange(_TERMS[inner.itemsize])
    log_factorials = np.array([math.lgamma(i + 1) for i in k], inner)
    # 0 log 0 is 0
    logs = jnp.maximum(xlogy(k.astype(inner), m) - log_factorials - m, -1e4)
    exact = -jnp.sum(jnp.exp(logs) * logs, -1)
    inverse = 1 / jnp.where(large, mu, switch)
    corrections = 0 * inverse
    for c in (863 / 2520, 9 / 80, 19 / 360, 1 / 24, 1 / 12):
        corrections = (corrections + c) * inverse
    series = 0.5 * (math.log(2 * math.pi * math.e) - jnp.log(inverse)) - corrections
    return jnp.where(large, series, exact).astype(dtype)
