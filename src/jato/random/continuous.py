"""Continuous distributions that are a function of uniform or normal samples.

Values equal JAX's for the same key, up to rounding of the functions applied.  All draw from
uniforms.py; those that need a loop are in gammas.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import jato.numpy as jnp
from jato.base import dtypes
from jato.jit.eager import public
from jato.numpy.promote import cast, normalize_shape
from jato.ops import elementwise as ops
from jato.ops import random_bits
from jato.ops.structural import full_like, reduce_sum, stop_gradient
from jato.random.arguments import float_dtype, parameter, sample_shape
from jato.random.keys import single_key, split
from jato.random.uniforms import rademacher, uniform_between, unit_floats


def _constant(value: float, dtype: Any) -> Any:
    return np.asarray(value, dtype)[()]


def _standard_normal(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """sqrt(2) erf_inv(u) with u uniform in (-1, 1)."""
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype), dtype=dtype)[()]
    u = uniform_between(key, shape, dtype, low, _constant(1, dtype))
    return ops.mul(ops.erf_inv(u), _constant(math.sqrt(2), dtype))


@public(static=("shape", "dtype", "out_sharding"))
def normal(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Samples of the standard normal distribution; of complex ones, with variance 1.

    key: a key; shape, dtype: of the result (float or complex; default float32).

    >>> import jato
    >>> normal(jato.random.PRNGKey(0), (2, 3)).shape
    (2, 3)
    """
    key = single_key("normal", key)
    shape = normalize_shape("normal", shape)
    dtype = dtypes.canonicalize(np.float64 if dtype is None else dtype)
    if not dtypes.is_inexact(dtype):
        raise ValueError(f"normal: argument 'dtype' must be float or complex, got {dtype}")
    if not dtypes.is_complex(dtype):
        return _standard_normal(key, shape, dtype)
    part = np.dtype(f"float{dtype.itemsize * 4}")
    keys = split(key)
    half = _constant(math.sqrt(0.5), part)
    real, imaginary = (ops.mul(_standard_normal(k, shape, part), half) for k in (keys[0], keys[1]))
    return ops.complex(real, imaginary)


@public(static=("shape", "dtype", "out_sharding"))
def truncated_normal(
    key: Any,
    lower: Any,
    upper: Any,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Samples of the standard normal distribution that lie between lower and upper.

    key: a key; lower, upper: numbers or arrays; shape: of the result (default: theirs, broadcast).

    >>> import jato
    >>> bool(truncated_normal(jato.random.PRNGKey(0), 1.0, 2.0) > 1.0)
    True
    """
    key = single_key("truncated_normal", key)
    dtype = float_dtype("truncated_normal", dtype)
    shape = sample_shape("truncated_normal", shape, lower, upper)
    lower, upper = (parameter("truncated_normal", x, dtype) for x in (lower, upper))
    root = _constant(math.sqrt(2), dtype)
    low, high = (ops.erf(x / root) for x in (lower, upper))
    sample = ops.erf_inv(uniform_between(key, shape, dtype, low, high)) * root
    inside = (
        ops.nextafter(stop_gradient(lower), full_like(lower, math.inf)),
        ops.nextafter(stop_gradient(upper), full_like(upper, -math.inf)),
    )
    return jnp.clip(sample, *inside)


@public(static=("shape", "dtype", "out_sharding"))
def lognormal(
    key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """exp(sigma * z) with z standard normal.

    >>> import jato
    >>> float(lognormal(jato.random.PRNGKey(0), 0.0))
    1.0
    """
    shape = sample_shape("lognormal", shape, sigma)
    z = normal(key, shape, dtype)
    return ops.exp(z * parameter("lognormal", sigma, z.dtype))


@public(static=("shape", "dtype", "out_sharding"))
def exponential(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Samples with density exp(-x) for x >= 0.

    >>> import jato
    >>> bool(exponential(jato.random.PRNGKey(0)) >= 0)
    True
    """
    key, dtype = single_key("exponential", key), float_dtype("exponential", dtype)
    u = unit_floats(key, normalize_shape("exponential", shape), dtype)
    return ops.neg(ops.log1p(ops.neg(u)))


@public(static=("shape", "dtype", "out_sharding"))
def laplace(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Samples with density exp(-|x|) / 2.

    >>> import jato
    >>> laplace(jato.random.PRNGKey(0), (2,)).shape
    (2,)
    """
    key, dtype = single_key("laplace", key), float_dtype("laplace", dtype)
    low = _constant(-1 + float(jnp.finfo(dtype).epsneg), dtype)
    u = uniform_between(key, normalize_shape("laplace", shape), dtype, low, _constant(1, dtype))
    return ops.mul(ops.sign(u), ops.log1p(ops.neg(ops.abs(u))))


@public(static=("shape", "dtype", "out_sharding"))
def logistic(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Samples with distribution function 1 / (1 + exp(-x)).

    >>> import jato
    >>> logistic(jato.random.PRNGKey(0), (2,)).shape
    (2,)
    """
    key, dtype = single_key("logistic", key), float_dtype("logistic", dtype)
    low = _constant(float(jnp.finfo(dtype).tiny), dtype)
    u = uniform_between(key, normalize_shape("logistic", shape), dtype, low, _constant(1, dtype))
    return ops.sub(ops.log(u), ops.log1p(ops.neg(u)))


@public(static=("shape", "dtype", "out_sharding"))
def cauchy(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Samples with density 1 / (pi (1 + x**2)).

    >>> import jato
    >>> cauchy(jato.random.PRNGKey(0), (2,)).shape
    (2,)
    """
    key, dtype = single_key("cauchy", key), float_dtype("cauchy", dtype)
    low = _constant(float(jnp.finfo(dtype).eps), dtype)
    u = uniform_between(key, normalize_shape("cauchy", shape), dtype, low, _constant(1, dtype))
    return ops.tan(ops.mul(ops.sub(u, 0.5), _constant(math.pi, dtype)))


@public(static=("shape", "dtype", "mode", "out_sharding"))
def gumbel(
    key: Any,
    shape: Any = (),
    dtype: Any = None,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Samples with distribution function exp(-exp(-x)).

    mode: "low" (default), or "high" or "highest", which resolve the tails more finely.

    >>> import jato
    >>> gumbel(jato.random.PRNGKey(0), (2,)).shape
    (2,)
    """
    if mode not in (None, "low", "high", "highest"):
        raise ValueError(f"gumbel: mode must be 'low', 'high' or 'highest', got {mode!r}")
    key, dtype = single_key("gumbel", key), float_dtype("gumbel", dtype)
    shape = normalize_shape("gumbel", shape)
    if mode in (None, "low"):
        low = _constant(float(jnp.finfo(dtype).tiny), dtype)
        u = uniform_between(key, shape, dtype, low, _constant(1, dtype))
        return ops.neg(ops.log(ops.neg(ops.log(u))))
    if mode == "highest" and dtype == np.float32:
        return _gumbel_of_64_bits(key, shape)
    info = jnp.finfo(dtype)
    both = unit_floats(key, (2, *shape), dtype)
    high, fine = both[0], both[1] * _constant(2.0**-info.nmant, dtype)
    u = jnp.where(high >= 0.5, high, high + fine + _constant(float(info.tiny), dtype))
    return ops.neg(ops.log(ops.neg(ops.log1p(ops.neg(u)))))


def _gumbel_of_64_bits(key: Any, shape: tuple[int, ...]) -> Any:
    """From the 64-bit fixed-point number u, or 1 - u where u > 1/2, at full float precision."""
    bits = random_bits.random_bits(key, 32, (2, *shape))
    high, low = bits[0], bits[1]
    below_half = high < np.uint32(1 << 31)
    minus_low = ops.bitwise_not(low) + np.uint32(1)
    carry = cast(ops.eq(low, full_like(low, 0)), np.uint32)
    minus_high = ops.bitwise_not(high) + carry
    u = _fraction_of_words(
        jnp.where(below_half, high, minus_high), jnp.where(below_half, low, minus_low)
    )
    inner = jnp.where(below_half, ops.log1p(ops.neg(u)), ops.log(u))
    return ops.neg(ops.log(ops.neg(inner)))


def _fraction_of_words(high: Any, low: Any) -> Any:
    """high 2^-32 + low 2^-64 as float32, rounded towards zero."""
    leading, leading_low = ops.clz(high), ops.clz(low)
    no_high = ops.eq(leading, full_like(leading, 32))
    shift = jnp.where(no_high, full_like(leading, 0), leading)
    joined = jnp.where(
        no_high,
        ops.shift_left(low, jnp.minimum(leading_low, np.uint32(31))),
        ops.bitwise_or(
            ops.shift_left(high, shift),
            jnp.where(
                ops.eq(shift, full_like(shift, 0)),
                full_like(low, 0),
                ops.shift_right_logical(low, ops.bitwise_and(32 - shift, full_like(shift, 31))),
            ),
        ),
    )
    # the leading one is the implicit bit; the exponent of 2^-1 is 126
    mantissa = ops.bitwise_and(
        ops.shift_right_logical(joined, full_like(joined, 8)), full_like(joined, (1 << 23) - 1)
    )
    zeros = jnp.where(no_high, leading_low + np.uint32(32), leading)
    exponent = ops.shift_left(np.uint32(126) - zeros, full_like(zeros, 23))
    return jnp.asarray(ops.bitwise_or(exponent, mantissa)).view(np.float32)


@public(static=("shape", "dtype", "out_sharding"))
def pareto(
    key: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Samples with density b / x**(b + 1) for x >= 1.

    >>> import jato
    >>> bool(pareto(jato.random.PRNGKey(0), 2.0) >= 1.0)
    True
    """
    dtype = float_dtype("pareto", dtype)
    shape = sample_shape("pareto", shape, b)
    return ops.exp(exponential(key, shape, dtype) / parameter("pareto", b, dtype))


@public(static=("shape", "dtype", "out_sharding"))
def rayleigh(
    key: Any, scale: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Samples with density x exp(-x**2 / (2 scale**2)) / scale**2 for x >= 0.

    >>> import jato
    >>> float(rayleigh(jato.random.PRNGKey(0), 0.0))
    0.0
    """
    key, dtype = single_key("rayleigh", key), float_dtype("rayleigh", dtype)
    shape = sample_shape("rayleigh", shape, scale)
    scale = parameter("rayleigh", scale, dtype, shape)
    u = unit_floats(key, shape, dtype)
    return ops.mul(scale, ops.sqrt(ops.mul(ops.log(u), -2)))


@public(static=("shape", "dtype", "out_sharding"))
def triangular(
    key: Any, left: Any, mode: Any, right: Any, shape: Any = None, dtype: Any = None,
    *, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """Samples with a density that rises from left to mode and falls to right, linearly.

    >>> import jato
    >>> bool(triangular(jato.random.PRNGKey(0), 1.0, 2.0, 3.0) > 1.0)
    True
    """
    key, dtype = single_key("triangular", key), float_dtype("triangular", dtype)
    shape = sample_shape("triangular", shape, left, mode, right)
    left, mode, right = (parameter("triangular", x, dtype, shape) for x in (left, mode, right))
    u = unit_floats(key, shape, dtype)
    rising = left + ops.sqrt(u * (right - left) * (mode - left))
    falling = right - ops.sqrt((1 - u) * (right - left) * (right - mode))
    return ops.select(u < (mode - left) / (right - left), rising, falling)


@public(static=("shape", "dtype", "out_sharding"))
def wald(
    key: Any, mean: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Samples of the Wald (inverse Gaussian) distribution with scale 1.

    Michael, Schucany and Haas, The American Statistician 30 (1976).

    >>> import jato
    >>> bool(wald(jato.random.PRNGKey(0), 1.0) > 0.0)
    True
    """
    key, dtype = single_key("wald", key), float_dtype("wald", dtype)
    shape = sample_shape("wald", shape, mean)
    mean = parameter("wald", mean, dtype, shape)
    keys = split(key)
    square = ops.square(_standard_normal(keys[0], shape, dtype))
    u = unit_floats(keys[1], shape, dtype)
    mean_square = ops.square(mean)
    root = ops.sqrt(4 * mean * square + mean_square * ops.square(square))
    smaller = mean + mean_square * square / 2 - mean / 2 * root
    return ops.select(u <= mean / (mean + smaller), smaller, mean_square / smaller)


@public(static=("shape", "dtype"))
def weibull_min(
    key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: Any = None
) -> Any:
    """Samples with distribution function 1 - exp(-(x / scale)**concentration) for x >= 0.

    >>> import jato
    >>> bool(weibull_min(jato.random.PRNGKey(0), 1.0, 2.0) >= 0.0)
    True
    """
    key, dtype = single_key("weibull_min", key), float_dtype("weibull_min", dtype)
    u = unit_floats(key, normalize_shape("weibull_min", shape), dtype)
    return jnp.power(ops.neg(ops.log1p(ops.neg(u))), 1.0 / concentration) * scale


@public(static=("shape", "dtype", "out_sharding"))
def maxwell(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """The length of a vector of three standard normal samples.

    >>> import jato
    >>> bool(maxwell(jato.random.PRNGKey(0)) > 0.0)
    True
    """
    shape, dtype = normalize_shape("maxwell", shape), float_dtype("maxwell", dtype)
    z = _standard_normal(single_key("maxwell", key), (*shape, 3), dtype)
    return ops.sqrt(reduce_sum(ops.square(z), (len(shape),)))


@public(static=("shape", "dtype"))
def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Any = (), dtype: Any = None) -> Any:
    """loc + scale * s * m with a sign s and m of the Maxwell distribution.

    The result has the shape `shape` + that of the parameters (theirs twice if shape is ()).

    >>> import jato
    >>> double_sided_maxwell(jato.random.PRNGKey(0), 0.0, 1.0, (2,)).shape
    (2,)
    """
    key = single_key("double_sided_maxwell", key)
    dtype = float_dtype("double_sided_maxwell", dtype)
    own = sample_shape("double_sided_maxwell", None, loc, scale)
    full = (normalize_shape("double_sided_maxwell", shape) or own) + own
    keys = split(key)
    lengths = maxwell(keys[0], full, dtype)
    return rademacher(keys[1], full, dtype) * lengths * scale + loc
