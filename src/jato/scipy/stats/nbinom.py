"""The negative binomial distribution: failures before the n-th success of probability p.

n may be any positive number.
"""

from __future__ import annotations

from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.special.entropies import xlog1py
from jato.scipy.special.gamma_functions import betaln
from jato.scipy.stats.arguments import on_integers, positive, probability, shifted


def _log_mass(function: str, k: Any, n: Any, p: Any, loc: Any) -> Any:
    k, n, p = shifted(function, loc, k=k, n=n, p=p)
    n, p = positive(n), probability(p)

    def formula(k: Any) -> Any:
        # Gamma(n + k) / (Gamma(n) k!) = 1 / ((n + k) B(n, k + 1))
        return n * jnp.log(p) + xlog1py(k, -p) - jnp.log(n + k) - betaln(n, k + 1)

    return on_integers(k, formula, 0)


@public(name="nbinom.logpmf")
def logpmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """The logarithm of the probability of k failures; -inf unless k is an integer >= 0.

    >>> round(float(logpmf(1, 1, 0.5)), 4)
    -1.3863
    """
    return _log_mass("nbinom.logpmf", k, n, p, loc)


@public(name="nbinom.pmf")
def pmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """The probability of k failures; 0 unless k is an integer >= 0.

    >>> round(float(pmf(1, 1, 0.5)), 4)
    0.25
    """
    return jnp.exp(_log_mass("nbinom.pmf", k, n, p, loc))
