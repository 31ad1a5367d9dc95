"""Products with logarithms, entropies, the logistic function and its inverse, softmax.

0 log 0 is 0 here, and the derivatives agree with that.
"""

from __future__ import annotations

import math
from typing import Any

from jato.control.custom_jvp import custom_jvp
from jato.jit.eager import public
from jato.lax.incomplete_gamma import log1p_minus
from jato.nn import normalization
from jato.ops import elementwise as ops
from jato.ops.structural import full_like
from jato.scipy.special.arguments import real_operand, real_operands


def _zero(x: Any) -> Any:
    return full_like(x, 0.0)


def _broadcast_pair(function: str, x: Any, y: Any) -> tuple[Any, Any]:
    x, y = real_operands(function, x, y)
    if x.shape == y.shape:
        return x, y
    return (x + _zero(y) if not x.shape else x), (y + _zero(x) if not y.shape else y)


@custom_jvp
def _xlogy(x: Any, y: Any) -> Any:
    zero = ops.eq(x, _zero(x))
    product = x * ops.log(ops.select(zero, full_like(y, 1.0), y))
    return ops.select(zero & ops.eq(y, y), _zero(x), ops.select(zero, y, product))


@_xlogy.defjvp
def _xlogy_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (tx, ty) = primals, tangents
    return _xlogy(x, y), tx * ops.log(y) + ty * _quotient(x, y)


def _quotient(x: Any, y: Any) -> Any:
    """x / y, and 0 where x is."""
    zero = ops.eq(x, _zero(x))
    return ops.select(zero, _zero(x), x / ops.select(zero, full_like(y, 1.0), y))


@public()
def xlogy(x: Any, y: Any) -> Any:
    """x log(y), and 0 where x is 0 (unless y is NaN).

    >>> float(xlogy(0.0, 0.0))
    0.0
    """
    return _xlogy(*_broadcast_pair("xlogy", x, y))


@custom_jvp
def _xlog1py(x: Any, y: Any) -> Any:
    zero = ops.eq(x, _zero(x))
    product = x * ops.log1p(ops.select(zero, _zero(y), y))
    return ops.select(zero & ops.eq(y, y), _zero(x), ops.select(zero, y, product))


@_xlog1py.defjvp
def _xlog1py_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (tx, ty) = primals, tangents
    return _xlog1py(x, y), tx * ops.log1p(y) + ty * _quotient(x, 1.0 + y)


@public()
def xlog1py(x: Any, y: Any) -> Any:
    """x log(1 + y), and 0 where x is 0 (unless y is NaN).

    >>> float(xlog1py(0.0, -1.0))
    0.0
    """
    return _xlog1py(*_broadcast_pair("xlog1py", x, y))


@custom_jvp
def _xlogx(x: Any) -> Any:
    return _xlogy(x, x)


@_xlogx.defjvp
def _xlogx_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return _xlogx(x), t * (ops.log(x) + 1.0)


@public()
def entr(x: Any) -> Any:
    """-x log(x); 0 at 0, -inf below.

    >>> float(entr(0.0))
    0.0
    """
    x = real_operand("entr", x)
    below = x < 0.0
    safe = ops.select(below, full_like(x, 1.0), x)
    return ops.select(below, full_like(x, -math.inf), 0.0 - _xlogx(safe))


@public()
def rel_entr(p: Any, q: Any) -> Any:
    """p log(p / q) for p, q > 0; 0 at p = 0 <= q; inf elsewhere.

    >>> float(rel_entr(0.0, 1.0))
    0.0
    """
    p, q = _broadcast_pair("rel_entr", p, q)
    zero, one = _zero(p), full_like(p, 1.0)
    both = (p > 0.0) & (q > 0.0)
    safe_p, safe_q = ops.select(both, p, one), ops.select(both, q, one)
    value = _xlogx(safe_p) - _xlogy(safe_p, safe_q)
    edge = ops.eq(p, zero) & (q >= 0.0)
    outside = ops.select(edge, zero, full_like(p, math.inf))
    found = ops.select(both, value, outside)
    return ops.select(ops.ne(p, p) | ops.ne(q, q), full_like(p, math.nan), found)


@public()
def kl_div(p: Any, q: Any) -> Any:
    """p log(p / q) - p + q: rel_entr, made non-negative and convex.

    >>> float(kl_div(1.0, 1.0))
    0.0
    """
    p, q = _broadcast_pair("kl_div", p, q)
    both = (p > 0.0) & (q > 0.0) & (p < math.inf) & (q < math.inf)
    safe_p = ops.select(both, p, full_like(p, 1.0))
    safe_q = ops.select(both, q, full_like(q, 1.0))
    # -p (log(q/p) - (q/p - 1)): nothing cancels where p is near q
    inside = 0.0 - safe_p * log1p_minus((safe_q - safe_p) / safe_p)
    edge = rel_entr(p, q) + ops.select(ops.eq(p, _zero(p)), q, _zero(q))
    return ops.select(both, inside, edge)


@public()
def expit(x: Any) -> Any:
    """1 / (1 + exp(-x)).

    >>> float(expit(0.0))
    0.5
    """
    return ops.logistic(real_operand("expit", x))


@custom_jvp
def _logit(p: Any) -> Any:
    return ops.log(p / (1.0 - p))


@_logit.defjvp
def _logit_jvp(primals: Any, tangents: Any) -> Any:
    (p,), (t,) = primals, tangents
    return _logit(p), t / (p * (1.0 - p))


@public()
def logit(x: Any) -> Any:
    """log(x / (1 - x)), the inverse of expit.

    >>> float(logit(0.5))
    0.0
    """
    return _logit(real_operand("logit", x))


@public()
def boxcox(x: Any, lmbda: Any) -> Any:
    """(x**lmbda - 1) / lmbda, and log(x) where lmbda is 0.

    >>> float(boxcox(1.0, 2.0))
    0.0
    """
    x, power = _broadcast_pair("boxcox", x, lmbda)
    return _power_transform(ops.log(x), power)


@public()
def boxcox1p(x: Any, lmbda: Any) -> Any:
    """boxcox(1 + x, lmbda), accurate for small x.

    >>> float(boxcox1p(0.0, 2.0))
    0.0
    """
    x, power = _broadcast_pair("boxcox1p", x, lmbda)
    return _power_transform(ops.log1p(x), power)


def _power_transform(log_x: Any, power: Any) -> Any:
    zero = ops.eq(power, _zero(power))
    safe = ops.select(zero, full_like(power, 1.0), power)
    return ops.select(zero, log_x, ops.expm1(safe * log_x) / safe)


@public(static=("axis",))
def softmax(x: Any, /, *, axis: Any = None) -> Any:
    """exp(x) / sum(exp(x)) along `axis` (default: all axes).

    >>> import jato.numpy as jnp
    >>> softmax(jnp.zeros(2))
    Array([0.5, 0.5], dtype=float32)
    """
    return normalization.softmax(x, axis)


@public(static=("axis",))
def log_softmax(x: Any, /, *, axis: Any = None) -> Any:
    """The logarithm of softmax along `axis` (default: all axes).

    >>> import jato.numpy as jnp
    >>> log_softmax(jnp.zeros(1))
    Array([0.], dtype=float32)
    """
    return normalization.log_softmax(x, axis)
