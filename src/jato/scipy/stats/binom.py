"""The binomial distribution: successes in n trials of probability p."""

from __future__ import annotations

import math
from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.special.entropies import xlog1py, xlogy
from jato.scipy.special.gamma_functions import betaln
from jato.scipy.stats.arguments import on_integers, probability, shifted


def log_choices(n: Any, k: Any) -> Any:
    """The logarithm of the binomial coefficient, for 0 <= k <= n."""
    return -jnp.log1p(n) - betaln(n - k + 1, k + 1)


def valid_trials(n: Any) -> Any:
    """n, NaN where it is no integer >= 0."""
    return jnp.where((n >= 0) & (jnp.floor(n) == n), n, math.nan)


def _log_mass(function: str, k: Any, n: Any, p: Any, loc: Any) -> Any:
    k, n, p = shifted(function, loc, k=k, n=n, p=p)
    n, p = valid_trials(n), probability(p)

    def formula(k: Any) -> Any:
        return log_choices(n, k) + xlogy(k, p) + xlog1py(n - k, -p)

    return on_integers(k, formula, 0, 0, n)


@public(name="binom.logpmf")
def logpmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """The logarithm of the probability of k successes; -inf unless k is an integer of [0, n].

    >>> round(float(logpmf(1, 2, 0.5)), 4)
    -0.6931
    """
    return _log_mass("binom.logpmf", k, n, p, loc)


@public(name="binom.pmf")
def pmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """The probability of k successes; 0 unless k is an integer of [0, n].

    >>> round(float(pmf(1, 2, 0.5)), 4)
    0.5
    """
    return jnp.exp(_log_mass("binom.pmf", k, n, p, loc))
