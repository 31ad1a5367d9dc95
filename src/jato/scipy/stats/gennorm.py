"""The generalized normal distribution: density beta exp(-|x|**beta) / (2 Gamma(1/beta)), beta > 0."""

from __future__ import annotations

import math
from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.special.gamma_functions import gammainc, gammaincc, gammaln
from jato.scipy.stats.arguments import named_operands, positive


def _power(function: str, x: Any, beta: Any) -> tuple[Any, Any, Any]:
    """x, |x|**beta, beta"""
    x, beta = named_operands(function, x=x, beta=beta)
    beta = positive(beta)
    zero = x == 0
    size = jnp.power(jnp.where(zero, 1, jnp.abs(x)), beta)
    return x, jnp.where(zero, 0 * beta, size), beta


def _log_density(function: str, x: Any, beta: Any) -> Any:
    _, size, beta = _power(function, x, beta)
    return jnp.log(beta) - math.log(2) - gammaln(1 / beta) - size


@public(name="gennorm.logpdf")
def logpdf(x: Any, beta: Any) -> Any:
    """The logarithm of the density at x.

    >>> round(float(logpdf(0.0, 1.0)), 4)
    -0.6931
    """
    return _log_density("gennorm.logpdf", x, beta)


@public(name="gennorm.pdf")
def pdf(x: Any, beta: Any) -> Any:
    """The density at x.

    >>> round(float(pdf(0.0, 1.0)), 4)
    0.5
    """
    return jnp.exp(_log_density("gennorm.pdf", x, beta))


@public(name="gennorm.cdf")
def cdf(x: Any, beta: Any) -> Any:
    """The probability of values up to x.

    >>> float(cdf(0.0, 2.0))
    0.5
    """
    x, size, beta = _power("gennorm.cdf", x, beta)
    left = 0.5 * gammaincc(1 / beta, size)
    return jnp.where(x < 0, left, 0.5 + 0.5 * gammainc(1 / beta, size))
