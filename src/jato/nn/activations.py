"""Activation functions.

All take an array (or number), work elementwise in floats unless said otherwise, keep the shape,
and raise TypeError for what is no array.  `relu` and its kin have a derivative of 0 at 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import jato.numpy as jnp
from jato.control.custom_jvp import custom_jvp
from jato.jit.eager import public
from jato.numpy.promote import as_array, dtype_of, unary_float
from jato.ops import elementwise as ops
from jato.ops.structural import full_like


@custom_jvp
def _relu(x: Any) -> Any:
    return jnp.maximum(x, 0)


@_relu.defjvp
def _relu_jvp(primals: Any, tangents: Any) -> Any:
    # 0 at 0: Bertoin et al., "Numerical influence of ReLU'(0) on backpropagation", NeurIPS 2021
    (x,), (t,) = primals, tangents
    return _relu(x), ops.select(ops.gt(x, full_like(x, 0)), t, full_like(t, 0))


@custom_jvp
def _relu6(x: Any) -> Any:
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


@_relu6.defjvp
def _relu6_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    inside = ops.bitwise_and(ops.gt(x, full_like(x, 0)), ops.lt(x, full_like(x, 6)))
    return _relu6(x), ops.select(inside, t, full_like(t, 0))


@public()
def relu(x: Any) -> Any:
    """max(x, 0).

    >>> import jato.numpy as jnp
    >>> relu(jnp.array([-1.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """
    return _relu(as_array("relu", x))


@public()
def relu6(x: Any) -> Any:
    """min(max(x, 0), 6).

    >>> import jato.numpy as jnp
    >>> relu6(jnp.array([-1.0, 7.0]))
    Array([0., 6.], dtype=float32)
    """
    return _relu6(unary_float("relu6", x))


@public()
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)).

    >>> import jato.numpy as jnp
    >>> sigmoid(jnp.array([0.0]))
    Array([0.5], dtype=float32)
    """
    return ops.logistic(unary_float("sigmoid", x))


@public()
def softplus(x: Any) -> Any:
    """log(1 + exp(x)), without overflow.

    >>> import jato.numpy as jnp
    >>> softplus(jnp.array([1000.0]))
    Array([1000.], dtype=float32)
    """
    return jnp.logaddexp(unary_float("softplus", x), 0.0)


@public()
def sparse_plus(x: Any) -> Any:
    """0 below -1, x above 1, (x + 1)**2 / 4 between.

    >>> import jato.numpy as jnp
    >>> sparse_plus(jnp.array([-2.0, 0.0, 3.0]))
    Array([0.  , 0.25, 3.  ], dtype=float32)
    """
    x = unary_float("sparse_plus", x)
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


@public()
def soft_sign(x: Any) -> Any:
    """x / (1 + |x|).

    >>> import jato.numpy as jnp
    >>> soft_sign(jnp.array([1.0]))
    Array([0.5], dtype=float32)
    """
    x = unary_float("soft_sign", x)
    return x / (jnp.abs(x) + 1)


@public()
def silu(x: Any) -> Any:
    """x * sigmoid(x), also called swish.

    >>> import jato.numpy as jnp
    >>> silu(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    x = unary_float("silu", x)
    return x * ops.logistic(x)


swish = silu


@public()
def mish(x: Any) -> Any:
    """x * tanh(softplus(x)).

    >>> import jato.numpy as jnp
    >>> mish(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    x = unary_float("mish", x)
    return x * jnp.tanh(jnp.logaddexp(x, 0.0))


@public()
def log_sigmoid(x: Any) -> Any:
    """log(sigmoid(x)), accurate for large |x|.

    >>> import jato.numpy as jnp
    >>> log_sigmoid(jnp.array([-1000.0]))
    Array([-1000.], dtype=float32)
    """
    x = unary_float("log_sigmoid", x)
    return -jnp.logaddexp(-x, 0.0)


@custom_jvp
def _log1mexp(x: Any) -> Any:
    near = x < math.log(2)
    one = full_like(x, 1)
    small = ops.log(ops.neg(ops.expm1(ops.neg(ops.select(near, x, one)))))
    large = ops.log1p(ops.neg(ops.exp(ops.neg(ops.select(near, one, x)))))
    return ops.select(near, small, large)


@_log1mexp.defjvp
def _log1mexp_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return _log1mexp(x), ops.div(t, ops.expm1(x))


@public()
def log1mexp(x: Any) -> Any:
    """log(1 - exp(-x)) for x > 0, accurate near 0 and for large x; NaN below 0.

    M. Maechler, "Accurately computing log(1 - exp(-|a|))", 2012.

    >>> import jato.numpy as jnp
    >>> log1mexp(jnp.array([0.0, 1000.0])) + 0.0
    Array([-inf,   0.], dtype=float32)
    """
    return _log1mexp(unary_float("log1mexp", x))


@public()
def sparse_sigmoid(x: Any) -> Any:
    """0 below -1, 1 above 1, (x + 1) / 2 between: the derivative of sparse_plus.

    >>> import jato.numpy as jnp
    >>> sparse_sigmoid(jnp.array([-2.0, 0.0, 2.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return 0.5 * jnp.clip(unary_float("sparse_sigmoid", x) + 1.0, 0.0, 2.0)


@public()
def elu(x: Any, alpha: Any = 1.0) -> Any:
    """x for x > 0, else alpha * (exp(x) - 1).

    >>> import jato.numpy as jnp
    >>> elu(jnp.array([-1000.0, 2.0]))
    Array([-1.,  2.], dtype=float32)
    """
    x = unary_float("elu", x)
    safe = jnp.where(x > 0, 0.0, x)
    return jnp.where(x > 0, x, alpha * jnp.expm1(safe))


@public()
def celu(x: Any, alpha: Any = 1.0) -> Any:
    """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0).

    >>> import jato.numpy as jnp
    >>> celu(jnp.array([-1000.0, 2.0]))
    Array([-1.,  2.], dtype=float32)
    """
    x = unary_float("celu", x)
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


@public()
def selu(x: Any) -> Any:
    """The self-normalizing elu (Klambauer et al., NIPS 2017).

    >>> import jato.numpy as jnp
    >>> selu(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    x = unary_float("selu", x)
    safe = jnp.where(x > 0, 0.0, x)
    return scale * jnp.where(x > 0, x, alpha * jnp.expm1(safe))


@public()
def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Any:
    """x for x >= 0, else negative_slope * x.

    >>> import jato.numpy as jnp
    >>> leaky_relu(jnp.array([-100.0, 2.0]))
    Array([-1.,  2.], dtype=float32)
    """
    x = unary_float("leaky_relu", x)
    return jnp.where(x >= 0, x, negative_slope * x)


@public()
def hard_tanh(x: Any) -> Any:
    """x clipped to [-1, 1].

    >>> import jato.numpy as jnp
    >>> hard_tanh(jnp.array([-3.0, 0.5]))
    Array([-1. ,  0.5], dtype=float32)
    """
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


@public()
def hard_sigmoid(x: Any) -> Any:
    """relu6(x + 3) / 6.

    >>> import jato.numpy as jnp
    >>> hard_sigmoid(jnp.array([-3.0, 0.0, 3.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return _relu6(unary_float("hard_sigmoid", x) + 3.0) / 6.0


@public()
def hard_silu(x: Any) -> Any:
    """x * hard_sigmoid(x), also called hard_swish.

    >>> import jato.numpy as jnp
    >>> hard_silu(jnp.array([-3.0, 3.0]))
    Array([-0.,  3.], dtype=float32)
    """
    x = unary_float("hard_silu", x)
    return x * (_relu6(x + 3.0) / 6.0)


hard_swish = hard_silu


@public()
def squareplus(x: Any, b: Any = 4) -> Any:
    """(x + sqrt(x**2 + b)) / 2.

    >>> import jato.numpy as jnp
    >>> squareplus(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    x = unary_float("squareplus", x)
    return 0.5 * (x + jnp.sqrt(x * x + b))


@public(static=("approximate",))
def gelu(x: Any, approximate: bool = True) -> Any:
    """x * normal_cdf(x); by default its tanh approximation (Hendrycks and Gimpel, 2016).

    approximate: True: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x**3))); False: with erfc.

    >>> import jato.numpy as jnp
    >>> gelu(jnp.array([0.0, 100.0]))
    Array([  0., 100.], dtype=float32)
    """
    x = unary_float("gelu", x)
    if approximate:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
        return x * (0.5 * (1.0 + jnp.tanh(inner)))
    return 0.5 * x * ops.erfc(ops.mul(ops.neg(x), np.asarray(math.sqrt(0.5), dtype_of(x))[()]))


@public(static=("axis",))
def glu(x: Any, axis: int = -1) -> Any:
    """The first half of `x` along `axis` times the sigmoid of the second half.

    ValueError if the length of the axis is odd.

    >>> import jato.numpy as jnp
    >>> glu(jnp.array([2.0, 0.0]))
    Array([1.], dtype=float32)
    """
    x = unary_float("glu", x)
    length = x.shape[axis]
    if length % 2:
        raise ValueError(f"glu: axis {axis} must have an even length to be halved, got {length}")
    first, second = jnp.split(x, 2, axis)
    return first * ops.logistic(second)


@public()
def identity(x: Any) -> Any:
    """`x` itself.

    >>> import jato.numpy as jnp
    >>> identity(jnp.array([1.0]))
    Array([1.], dtype=float32)
    """
    return as_array("identity", x)
