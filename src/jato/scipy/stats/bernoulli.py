"""The Bernoulli distribution: 1 with probability p, else 0."""

from __future__ import annotations

from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.special.entropies import xlog1py, xlogy
from jato.scipy.stats.arguments import named_operands, on_integers, probability, shifted


def _log_mass(function: str, k: Any, p: Any, loc: Any) -> Any:
    k, p = shifted(function, loc, k=k, p=p)
    p = probability(p)
    return on_integers(k, lambda k: xlogy(k, p) + xlog1py(1 - k, -p), 0, 0, 1)


@public(name="bernoulli.logpmf")
def logpmf(k: Any, p: Any, loc: Any = 0) -> Any:
    """The logarithm of the probability of k; -inf unless k - loc is 0 or 1.

    >>> round(float(logpmf(1, 0.5)), 4)
    -0.6931
    """
    return _log_mass("bernoulli.logpmf", k, p, loc)


@public(name="bernoulli.pmf")
def pmf(k: Any, p: Any, loc: Any = 0) -> Any:
    """The probability of k; 0 unless k - loc is 0 or 1.

    >>> float(pmf(1, 0.25))
    0.25
    """
    return jnp.exp(_log_mass("bernoulli.pmf", k, p, loc))


@public(name="bernoulli.cdf")
def cdf(k: Any, p: Any) -> Any:
    """The probability of values up to k.

    >>> float(cdf(0, 0.25))
    0.75
    """
    k, p = named_operands("bernoulli.cdf", k=k, p=p)
    p = probability(p)
    steps = jnp.where(k < 0, 0 * p, jnp.where(k < 1, 1 - p, 1 + 0 * p))
    return jnp.where(k == k, steps, k)


@public(name="bernoulli.ppf")
def ppf(q: Any, p: Any) -> Any:
    """The least value up to which lies at least the probability q.  NaN unless 0 <= q, p <= 1.

    >>> float(ppf(0.9, 0.25))
    1.0
    """
    q, p = named_operands("bernoulli.ppf", q=q, p=p)
    q, p = probability(q), probability(p)
    return jnp.where(q <= 1 - p, 0.0, 1.0) + 0 * (q + p)
