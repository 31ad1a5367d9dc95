"""The geometric distribution: trials of probability p until the first success."""

from __future__ import annotations

from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.special.entropies import xlog1py
from jato.scipy.stats.arguments import on_integers, probability, shifted


def _log_mass(function: str, k: Any, p: Any, loc: Any) -> Any:
    k, p = shifted(function, loc, k=k, p=p)
    p = probability(p)
    return on_integers(k, lambda k: xlog1py(k - 1, -p) + jnp.log(p), 1, 1)


@public(name="geom.logpmf")
def logpmf(k: Any, p: Any, loc: Any = 0) -> Any:
    """The logarithm of the probability of k trials; -inf unless k is an integer >= 1.

    >>> round(float(logpmf(2, 0.5)), 4)
    -1.3863
    """
    return _log_mass("geom.logpmf", k, p, loc)


@public(name="geom.pmf")
def pmf(k: Any, p: Any, loc: Any = 0) -> Any:
    """The probability of k trials; 0 unless k is an integer >= 1.

    >>> round(float(pmf(2, 0.5)), 4)
    0.25
    """
    return jnp.exp(_log_mass("geom.pmf", k, p, loc))
