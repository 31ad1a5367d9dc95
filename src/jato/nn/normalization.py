"""Functions over an axis: softmax and its logarithm, log-sum-exp, standardization, one-hot.

The maximum is taken out before exponentials, so that nothing overflows; a row of -inf gives NaN
for softmax and -inf for logsumexp, as in JAX.  Each of them is one kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import jato.numpy as jnp
from jato.base import dtypes
from jato.jit.eager import public
from jato.numpy.promote import as_array, unary_float
from jato.ops.structural import stop_gradient


def _finite_maximum(x: Any, axis: Any, where: Any = None) -> Any:
    """The maximum along the axis, kept; constant for derivatives, 0 where it is infinite."""
    largest = jnp.max(x, axis=axis, keepdims=True, where=where, initial=-jnp.inf)
    return stop_gradient(jnp.where(jnp.isfinite(largest), largest, 0.0))


@public(static=("axis",))
def softmax(x: Any, axis: Any = -1, where: Any = None, initial: Any = None) -> Any:
    """exp(x) / sum(exp(x)) along `axis`.

    x: array; axis: axis or axes; where: mask of the elements that take part, others give 0.

    >>> import jato.numpy as jnp
    >>> softmax(jnp.array([0.0, 0.0]))
    Array([0.5, 0.5], dtype=float32)
    """
    del initial
    x = unary_float("softmax", x)
    largest = jnp.max(x, axis=axis, keepdims=True, where=where, initial=-jnp.inf)
    exponentials = jnp.exp(x - stop_gradient(largest))
    if where is not None:
        exponentials = jnp.where(where, exponentials, 0.0)
    result = exponentials / jnp.sum(exponentials, axis=axis, keepdims=True, where=where)
    return result if where is None else jnp.where(where, result, 0.0)


@public(static=("axis",))
def log_softmax(x: Any, axis: Any = -1, where: Any = None, initial: Any = None) -> Any:
    """log(softmax(x)) along `axis`, accurate for small probabilities.

    >>> import jato.numpy as jnp
    >>> log_softmax(jnp.array([0.0, -1000.0]))
    Array([    0., -1000.], dtype=float32)
    """
    del initial
    x = unary_float("log_softmax", x)
    largest = jnp.max(x, axis=axis, keepdims=True, where=where, initial=-jnp.inf)
    shifted = x - stop_gradient(largest)
    total = jnp.sum(jnp.exp(shifted), axis=axis, keepdims=True, where=where)
    result = shifted - jnp.log(total)
    return result if where is None else jnp.where(where, result, -jnp.inf)


@public(static=("axis", "keepdims", "return_sign"))
def logsumexp(
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    """log(sum(b * exp(a))) along `axis`, without overflow.

    a: array; b: factors, broadcast against a; where: mask of the elements that take part.
    Returns the logarithm, with `return_sign` also the sign of the sum (without it a negative sum
    gives nan).

    >>> import jato.numpy as jnp
    >>> logsumexp(jnp.array([1000.0, -jnp.inf]))
    Array(1000., dtype=float32)
    """
    a = unary_float("logsumexp", a)
    if b is not None:
        b = unary_float("logsumexp", b)
        a, b = jnp.broadcast_arrays(a, b)
        a = jnp.where(b != 0, a, -jnp.inf)
    real = jnp.real(a) if dtypes.is_complex(a.dtype) else a
    shift = _finite_maximum(real, axis, where)
    terms = jnp.exp(a - shift)
    if b is not None:
        terms = b * terms
    total = jnp.sum(terms, axis=axis, keepdims=keepdims, where=where)
    sign = jnp.sign(total)
    if return_sign or not dtypes.is_complex(a.dtype):
        magnitude = jnp.abs(total) if return_sign else total
    else:
        magnitude = total
    result = jnp.log(magnitude) + (shift if keepdims else jnp.squeeze(shift, axis=axis))
    return (result, sign) if return_sign else result


@public(static=("axis", "keepdims"))
def logmeanexp(x: Any, axis: Any = None, where: Any = None, keepdims: bool = False) -> Any:
    """log(mean(exp(x))) along `axis`, without overflow.

    >>> import jato.numpy as jnp
    >>> logmeanexp(jnp.array([1000.0, 1000.0]))
    Array(1000., dtype=float32)
    """
    x = unary_float("logmeanexp", x)
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    ones = jnp.ones_like(x)
    count = jnp.sum(ones, axis=axis, where=where, keepdims=keepdims)
    return total - jnp.log(count)


@public(static=("axis", "algorithm"))
def standardize(
    x: Any,
    axis: Any = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: Any = 1e-5,
    where: Any = None,
    *,
    algorithm: str = "fast",
) -> Any:
    """(x - mean) / sqrt(variance + epsilon) along `axis`.

    mean, variance: computed from x unless given; algorithm: no effect, the accurate one is taken.

    >>> import jato.numpy as jnp
    >>> standardize(jnp.array([1.0, 3.0]), epsilon=0.0)
    Array([-1.,  1.], dtype=float32)
    """
    x = unary_float("standardize", x)
    if mean is None:
        mean = jnp.mean(x, axis, keepdims=True, where=where)
    if variance is None:
        # E[x^2] - E[x]^2 would cancel; the mean of squared deviations does not
        variance = jnp.mean(jnp.square(x - mean), axis, keepdims=True, where=where)
    return (x - mean) / jnp.sqrt(variance + epsilon)


@public(static=("num_classes", "dtype", "axis", "out_sharding"))
def one_hot(
    x: Any, num_classes: int, *, dtype: Any = None, axis: int = -1, out_sharding: Any = None
) -> Any:
    """Vectors of `num_classes` elements, 1 at the position that x says and 0 elsewhere.

    x: integer array; out-of-range values give zeros.  dtype: of the result (default float).
    axis: where the new axis goes.

    >>> import jato.numpy as jnp
    >>> one_hot(jnp.array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    x = as_array("one_hot", x)
    target = dtypes.canonicalize(np.float64 if dtype is None else dtype)
    place = axis + x.ndim + 1 if axis < 0 else axis
    if not 0 <= place <= x.ndim:
        raise ValueError(f"one_hot: axis {axis} is out of bounds for a result of rank {x.ndim + 1}")
    shape = [1] * (x.ndim + 1)
    shape[place] = num_classes
    classes = jnp.arange(num_classes, dtype=x.dtype).reshape(shape)
    return (jnp.expand_dims(x, place) == classes).astype(target)
