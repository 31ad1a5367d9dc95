"""The beta-binomial distribution: successes in n trials whose probability is a beta(a, b) variate."""

from __future__ import annotations

from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.special.gamma_functions import betaln
from jato.scipy.stats.arguments import on_integers, positive, shifted
from jato.scipy.stats.binom import log_choices, valid_trials


def _log_mass(function: str, k: Any, n: Any, a: Any, b: Any, loc: Any) -> Any:
    k, n, a, b = shifted(function, loc, k=k, n=n, a=a, b=b)
    n, a, b = valid_trials(n), positive(a), positive(b)

    def formula(k: Any) -> Any:
        return log_choices(n, k) + betaln(k + a, n - k + b) - betaln(a, b)

    return on_integers(k, formula, 0, 0, n)


@public(name="betabinom.logpmf")
def logpmf(k: Any, n: Any, a: Any, b: Any, loc: Any = 0) -> Any:
    """The logarithm of the probability of k successes; -inf unless k is an integer of [0, n].

    >>> round(float(logpmf(1, 2, 1.0, 1.0)), 4)
    -1.0986
    """
    return _log_mass("betabinom.logpmf", k, n, a, b, loc)


@public(name="betabinom.pmf")
def pmf(k: Any, n: Any, a: Any, b: Any, loc: Any = 0) -> Any:
    """The probability of k successes; 0 unless k is an integer of [0, n].

    >>> round(float(pmf(1, 2, 1.0, 1.0)), 4)
    0.3333
    """
    return jnp.exp(_log_mass("betabinom.pmf", k, n, a, b, loc))
