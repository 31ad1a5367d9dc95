"""The normal distribution with mean `loc` and standard deviation `scale`.

Each function broadcasts its arguments and gives floats.
"""

from __future__ import annotations

import math
from typing import Any

from jato.jit.eager import public
from jato.ops import elementwise as ops
from jato.scipy.special.arguments import real_operands
from jato.scipy.special.error_functions import log_ndtr, ndtr, ndtri


def _standardized(function: str, x: Any, loc: Any, scale: Any) -> tuple[Any, Any]:
    """((x - loc) / scale, scale)"""
    x, loc, scale = real_operands(function, x, loc, scale)
    return (x - loc) / scale, scale


@public()
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at x.

    >>> round(float(logpdf(0.0)), 4)
    -0.9189
    """
    z, scale = _standardized("norm.logpdf", x, loc, scale)
    return -0.5 * (z * z + math.log(2 * math.pi)) - ops.log(scale)


@public()
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at x.

    >>> round(float(pdf(0.0)), 4)
    0.3989
    """
    z, scale = _standardized("norm.pdf", x, loc, scale)
    return ops.exp(-0.5 * z * z) * (1 / math.sqrt(2 * math.pi)) / scale


@public()
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values up to x.

    >>> float(cdf(0.0))
    0.5
    """
    return ndtr(_standardized("norm.cdf", x, loc, scale)[0])


@public()
def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of cdf, accurate far to the left.

    >>> round(float(logcdf(0.0)), 4)
    -0.6931
    """
    return log_ndtr(_standardized("norm.logcdf", x, loc, scale)[0])


@public()
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability of values beyond x.

    >>> float(sf(0.0))
    0.5
    """
    return ndtr(ops.neg(_standardized("norm.sf", x, loc, scale)[0]))


@public()
def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of sf, accurate far to the right.

    >>> round(float(logsf(0.0)), 4)
    -0.6931
    """
    return log_ndtr(ops.neg(_standardized("norm.logsf", x, loc, scale)[0]))


@public()
def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The point up to which lies the probability q: the inverse of cdf.

    >>> float(ppf(0.5))
    0.0
    """
    q, loc, scale = real_operands("norm.ppf", q, loc, scale)
    return ndtri(q) * scale + loc


@public()
def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The point beyond which lies the probability q: the inverse of sf.

    >>> float(isf(0.5)) == 0.0
    True
    """
    q, loc, scale = real_operands("norm.isf", q, loc, scale)
    return loc - ndtri(q) * scale
