"""The gamma function and what is made of it: beta, factorials, binomial coefficients, zeta.

lgamma and digamma are primitives (ops/special.py); the incomplete functions are loops
(lax/incomplete_gamma.py, lax/incomplete_beta.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import jato.numpy as jnp
from jato.jit.eager import public
from jato.lax import hurwitz_zeta, incomplete_beta, incomplete_gamma
from jato.ops import elementwise as ops
from jato.ops.structural import full_like
from jato.scipy.special.arguments import real_operand, real_operands


@public()
def gammaln(x: Any) -> Any:
    """log |Gamma(x)|.

    >>> float(gammaln(1.0))
    0.0
    """
    return ops.lgamma(real_operand("gammaln", x))


@public()
def loggamma(x: Any) -> Any:
    """log Gamma(x); NaN where Gamma(x) is negative.

    >>> float(loggamma(1.0))
    0.0
    """
    x = real_operand("loggamma", x)
    value = ops.lgamma(x)
    return ops.select(_sign(x) < 0.0, full_like(value, math.nan), value)


def _sign(x: Any) -> Any:
    """The sign of Gamma(x): negative between -1 and 0, -3 and -2, ..."""
    down = ops.floor(x)
    odd = ops.ne(ops.rem(down, full_like(down, 2.0)), full_like(down, 0.0))
    one = full_like(x, 1.0)
    sign = ops.select((x < 0.0) & odd, ops.neg(one), one)
    # Gamma(-0) = -inf
    at_zero = ops.eq(x, full_like(x, 0.0))
    sign = ops.select(at_zero & (1.0 / x < 0.0), ops.neg(one), sign)
    pole = (x < 0.0) & ops.eq(down, x)
    return ops.select(pole | ops.ne(x, x), full_like(x, math.nan), sign)


@public()
def gammasgn(x: Any) -> Any:
    """The sign of Gamma(x); NaN at the poles -1, -2, ...

    >>> float(gammasgn(-0.5))
    -1.0
    """
    return _sign(real_operand("gammasgn", x))


@public()
def gamma(x: Any) -> Any:
    """Gamma(x); NaN at the poles -1, -2, ...

    >>> float(gamma(5.0)).__round__(3)
    24.0
    """
    x = real_operand("gamma", x)
    return _sign(x) * ops.exp(ops.lgamma(x))


@public()
def digamma(x: Any) -> Any:
    """The derivative of gammaln.

    >>> round(float(digamma(1.0)), 4)
    -0.5772
    """
    return ops.digamma(real_operand("digamma", x))


@public()
def polygamma(n: Any, x: Any) -> Any:
    """The n-th derivative of digamma, for x > 0.

    n: 0, 1, 2, ... (an array of integers is converted).

    >>> round(float(polygamma(1, 1.0)), 4)
    1.6449
    """
    return hurwitz_zeta.polygamma(*_spread(real_operands("polygamma", n, x)))


def _spread(xs: list[Any]) -> list[Any]:
    return list(jnp.broadcast_arrays(*xs))


@public()
def zeta(x: Any, q: Any = None) -> Any:
    """The Hurwitz zeta function: the sum of (n + q)**-x over n = 0, 1, ...

    Without q, Riemann's (q = 1).  NaN for x < 1.

    >>> round(float(zeta(2.0)), 4)
    1.6449
    """
    return hurwitz_zeta.zeta(*_spread(real_operands("zeta", x, 1.0 if q is None else q)))


@public()
def betaln(a: Any, b: Any) -> Any:
    """log |B(a, b)|.

    >>> round(float(betaln(2.0, 3.0)), 4)
    -2.4849
    """
    return incomplete_beta.log_beta(*_spread(real_operands("betaln", a, b)))


@public()
def beta(a: Any, b: Any) -> Any:
    """B(a, b) = Gamma(a) Gamma(b) / Gamma(a + b).

    >>> round(float(beta(2.0, 3.0)), 4)
    0.0833
    """
    a, b = _spread(real_operands("beta", a, b))
    return _sign(a) * _sign(b) * _sign(a + b) * ops.exp(incomplete_beta.log_beta(a, b))


@public()
def gammainc(a: Any, x: Any) -> Any:
    """The regularized lower incomplete gamma function.

    >>> round(float(gammainc(1.0, 2.0)), 4)
    0.8647
    """
    return incomplete_gamma.igamma(*_spread(real_operands("gammainc", a, x)))


@public()
def gammaincc(a: Any, x: Any) -> Any:
    """The regularized upper incomplete gamma function.

    >>> round(float(gammaincc(1.0, 2.0)), 4)
    0.1353
    """
    return incomplete_gamma.igammac(*_spread(real_operands("gammaincc", a, x)))


@public()
def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function.

    >>> float(betainc(1.0, 1.0, 0.25))
    0.25
    """
    return incomplete_beta.betainc(*_spread(real_operands("betainc", a, b, x)))


@public(static=("exact",))
def factorial(n: Any, exact: bool = False) -> Any:
    """n! = Gamma(n + 1) as a float; 0 for negative n.

    exact: must be False.

    >>> round(float(factorial(4)), 3)
    24.0
    """
    if exact:
        raise NotImplementedError(
            "factorial: exact=True needs integers of any size; use math.factorial"
        )
    n = real_operand("factorial", n)
    return ops.select(n < 0.0, full_like(n, 0.0), ops.exp(ops.lgamma(n + 1.0)))


@public(static=("repetition",))
def comb(N: Any, k: Any, *, repetition: bool = False) -> Any:
    """The number of ways to take k things of N, as a float; 0 unless 0 <= k <= N.

    repetition: a thing may be taken more than once.

    >>> round(float(comb(5, 2)), 3)
    10.0
    """
    n, k = _spread(real_operands("comb", N, k))
    if repetition:
        none = ops.eq(n, full_like(n, 0.0)) & ops.eq(k, full_like(k, 0.0))
        n = ops.select(none, n, n + k - 1.0)
    inside = (k >= 0.0) & (k <= n) & (n >= 0.0)
    logarithm = ops.lgamma(n + 1.0) - ops.lgamma(k + 1.0) - ops.lgamma(n - k + 1.0)
    return ops.select(inside, ops.exp(logarithm), full_like(n, 0.0))


@public()
def poch(z: Any, m: Any) -> Any:
    """Pochhammer's symbol Gamma(z + m) / Gamma(z).

    >>> round(float(poch(2.0, 3.0)), 3)
    24.0
    """
    z, m = _spread(real_operands("poch", z, m))
    ratio = _sign(z + m) * _sign(z) * ops.exp(ops.lgamma(z + m) - ops.lgamma(z))
    return ops.select(ops.eq(m, full_like(m, 0.0)), full_like(ratio, 1.0), ratio)


@public(static=("d",))
def multigammaln(a: Any, d: int) -> Any:
    """The logarithm of the d-dimensional gamma function.

    d: a positive integer.

    >>> round(float(multigammaln(3.0, 1)), 4)
    0.6931
    """
    dimension = np.asarray(d)
    if dimension.dtype.kind not in "iu" or dimension.ndim or int(dimension) < 1:
        raise ValueError(f"multigammaln: argument 'd' must be a positive integer, got {d!r}")
    a = real_operand("multigammaln", a)
    d = int(dimension)
    total = full_like(a, d * (d - 1) / 4 * math.log(math.pi))
    for i in range(d):
        total = total + ops.lgamma(a - i / 2)
    return total
