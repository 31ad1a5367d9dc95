"""The gamma distribution and what is made of it: beta, Dirichlet, chi-square, t, F, ...

Gamma samples come from the rejection method of G. Marsaglia and W. Tsang, "A simple method for
generating gamma variables", ACM TOMS 26 (2000), all elements at once until the last is accepted;
each has a key of its own, so that values equal JAX's.  Samples are differentiable in the
parameter (lax/incomplete_gamma.py).  Start at `_accepted_cubes`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import jato.numpy as jnp
from jato.control.custom_jvp import custom_jvp
from jato.control.while_loop import while_loop
from jato.jit.eager import public
from jato.lax.incomplete_gamma import random_gamma_grad
from jato.numpy.promote import normalize_shape, shape_of
from jato.ops import elementwise as ops
from jato.ops import random_bits
from jato.ops.reduce import reduce_max, reduce_or
from jato.ops.structural import broadcast_in_dim, full_like, reduce_sum, reshape, stop_gradient
from jato.random.arguments import float_dtype, parameter, require_exact, sample_shape
from jato.random.continuous import exponential, normal
from jato.random.keys import single_key, split
from jato.random.uniforms import rademacher, uniform_between, unit_floats


def _normals(keys: Any, dtype: Any) -> Any:
    """A standard normal sample from each key."""
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype), dtype=dtype)[()]
    u = uniform_between(keys, (), dtype, low, np.asarray(1, dtype)[()])
    return ops.mul(ops.erf_inv(u), np.asarray(math.sqrt(2), dtype)[()])


def _accepted_cubes(keys: Any, d: Any, c: Any) -> Any:
    """V = (1 + c x)^3 for the first pair of a normal x and a uniform U that is accepted.

    JAX nests two loops: x is drawn again (from x_key) until V > 0, then both until they are
    accepted.  Here one round makes one such step, so that one loop over the array does.
    """
    dtype = d.dtype

    def fresh(keys: Any) -> tuple[Any, Any, Any]:
        three = random_bits.random_split(keys, (3,))
        return three[..., 0], three[..., 1], three[..., 2]

    def body(state: Any) -> Any:
        key, x_key, u_key, cube, active = state
        two = random_bits.random_split(x_key, (2,))
        x = _normals(two[..., 1], dtype)
        root = 1 + x * c
        positive = root > 0
        square, v = x * x, root * root * root
        u = unit_floats(u_key, (), dtype)
        log_v = ops.log(ops.select(positive, v, full_like(v, 1)))
        rejected = (u >= 1 - 0.0331 * (square * square)) & (
            ops.log(u) >= square * 0.5 + d * (1 - v + log_v)
        )
        accepted = positive & ops.bitwise_not(rejected)
        again = fresh(key)
        next_key = ops.select(positive, again[0], key)
        next_x = ops.select(positive, again[1], two[..., 0])
        next_u = ops.select(positive, again[2], u_key)
        cube = ops.select(active & accepted, v, cube)
        return next_key, next_x, next_u, cube, active & ops.bitwise_not(accepted)

    def running(state: Any) -> Any:
        return reduce_or(state[4], (0,))

    start = (*fresh(keys), full_like(d, 1), full_like(d, True, np.bool_))
    return while_loop(running, body, start)[3]


def _flat_samples(keys: Any, a: Any, log_space: bool) -> Any:
    """Gamma samples (or their logarithms) for vectors of keys and parameters."""
    two = random_bits.random_split(keys, (2,))
    boosted = a < 1  # gamma(a) = gamma(a + 1) U^(1/a)
    shifted = ops.select(boosted, a + 1, a)
    third = np.asarray(1 / 3, a.dtype)[()]
    d = shifted - third
    cubes = _accepted_cubes(two[..., 0], d, third / ops.sqrt(d))
    u = unit_floats(two[..., 1], (), a.dtype)
    if log_space:
        log_u = ops.log1p(ops.neg(u))
        boost = ops.select(boosted & ops.ne(u, full_like(u, 0)), log_u / a, full_like(a, 0))
        return ops.log(d) + ops.log(cubes) + boost
    boost = ops.select(boosted, ops.pow(1 - u, 1 / a), full_like(a, 1))
    return d * cubes * boost


def _gamma_function(log_space: bool) -> Any:
    @custom_jvp
    def samples(key: Any, a: Any) -> Any:
        count = math.prod(a.shape)
        keys = random_bits.random_split(key, (count,))
        return reshape(_flat_samples(keys, reshape(a, (count,)), log_space), a.shape)

    @samples.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        key, a = primals
        found = samples(key, a)
        if not log_space:
            return found, random_gamma_grad(a, found) * tangents[1]
        smallest = np.finfo(a.dtype).tiny if a.dtype.itemsize > 2 else 1e-7
        plain = jnp.maximum(ops.exp(found), np.asarray(smallest, a.dtype)[()])
        return found, random_gamma_grad(a, plain) / plain * tangents[1]

    return samples


_gamma_samples = _gamma_function(False)
_log_gamma_samples = _gamma_function(True)


@public(static=("shape", "dtype", "method", "out_sharding"))
def gamma(
    key: Any, a: Any, shape: Any = None, dtype: Any = None, *, method: str = "exact",
    out_sharding: Any = None,
) -> Any:  # fmt: skip
    """Samples with density x**(a - 1) exp(-x) / Gamma(a) for x > 0.

    key: a key; a: number or array > 0, to which samples are differentiable; shape: of the result
    (default: that of a).

    >>> import jato
    >>> bool(gamma(jato.random.PRNGKey(0), 2.0) > 0)
    True
    """
    require_exact("gamma", method)
    key, dtype = single_key("gamma", key), float_dtype("gamma", dtype)
    shape = sample_shape("gamma", shape, a)
    return _gamma_samples(key, parameter("gamma", a, dtype, shape))


@public(static=("shape", "dtype", "method", "out_sharding"))
def loggamma(
    key: Any, a: Any, shape: Any = None, dtype: Any = None, *, method: str = "exact",
    out_sharding: Any = None,
) -> Any:  # fmt: skip
    """The logarithm of gamma samples; accurate where these would be 0 (small a).

    >>> import jato, jato.numpy as jnp
    >>> bool(jnp.isfinite(loggamma(jato.random.PRNGKey(0), 1e-4)))
    True
    """
    require_exact("loggamma", method)
    key, dtype = single_key("loggamma", key), float_dtype("loggamma", dtype)
    shape = sample_shape("loggamma", shape, a)
    return _log_gamma_samples(key, parameter("loggamma", a, dtype, shape))


@public(static=("shape", "dtype", "method", "out_sharding"))
def beta(
    key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None, *, method: str = "exact",
    out_sharding: Any = None,
) -> Any:  # fmt: skip
    """Samples with density proportional to x**(a - 1) (1 - x)**(b - 1) on [0, 1].

    >>> import jato
    >>> 0 <= float(beta(jato.random.PRNGKey(0), 2.0, 3.0)) <= 1
    True
    """
    require_exact("beta", method)
    key, dtype = single_key("beta", key), float_dtype("beta", dtype)
    shape = sample_shape("beta", shape, a, b)
    a, b = (parameter("beta", x, dtype, shape) for x in (a, b))
    keys = split(key)
    log_a, log_b = _log_gamma_samples(keys[0], a), _log_gamma_samples(keys[1], b)
    larger = jnp.maximum(log_a, log_b)
    part_a, part_b = ops.exp(log_a - larger), ops.exp(log_b - larger)
    return part_a / (part_a + part_b)


@public(static=("shape", "dtype", "out_sharding"))
def dirichlet(
    key: Any, alpha: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Points of the simplex with density proportional to the product of x**(alpha - 1).

    alpha: array, its last axis the components; shape: of the result without that axis.

    >>> import jato, jato.numpy as jnp
    >>> round(float(dirichlet(jato.random.PRNGKey(0), jnp.ones(3)).sum()), 4)
    1.0
    """
    key, dtype = single_key("dirichlet", key), float_dtype("dirichlet", dtype)
    own = shape_of(alpha)
    if not own:
        raise ValueError("dirichlet: argument 'alpha' must have at least one axis, got a scalar")
    batch = np.empty(own[:-1], np.bool_)
    shape = own[:-1] if shape is None else sample_shape("dirichlet", shape, batch)
    full = (*shape, own[-1])
    logs = _log_gamma_samples(key, parameter("dirichlet", alpha, dtype, full))
    # softmax
    axis = len(full) - 1
    kept = tuple(range(axis))
    largest = broadcast_in_dim(stop_gradient(reduce_max(logs, (axis,))), full, kept)
    parts = ops.exp(logs - largest)
    return parts / broadcast_in_dim(reduce_sum(parts, (axis,)), full, kept)


@public(static=("shape", "dtype", "method", "out_sharding"))
def chisquare(
    key: Any, df: Any, shape: Any = None, dtype: Any = None, *, method: str = "exact",
    out_sharding: Any = None,
) -> Any:  # fmt: skip
    """The sum of df squared standard normal samples.

    >>> import jato
    >>> bool(chisquare(jato.random.PRNGKey(0), 2.0) > 0)
    True
    """
    require_exact("chisquare", method)
    key, dtype = single_key("chisquare", key), float_dtype("chisquare", dtype)
    shape = sample_shape("chisquare", shape, df)
    half = parameter("chisquare", df, dtype, shape) / 2
    return ops.exp(_log_gamma_samples(key, half)) * 2


@public(static=("shape", "dtype", "out_sharding"))
def t(key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Samples of Student's t distribution with df degrees of freedom.

    >>> import jato
    >>> t(jato.random.PRNGKey(0), 2.0, (3,)).shape
    (3,)
    """
    key, dtype = single_key("t", key), float_dtype("t", dtype)
    shape = sample_shape("t", shape, df)
    half = parameter("t", df, dtype, shape) / 2
    keys = split(key)
    return normal(keys[0], shape, dtype) * ops.sqrt(half / _gamma_samples(keys[1], half))


@public(static=("shape", "dtype", "out_sharding"))
def f(
    key: Any, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = None,
    *, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """Samples of the F distribution with dfnum and dfden degrees of freedom.

    >>> import jato
    >>> bool(f(jato.random.PRNGKey(0), 2.0, 3.0) > 0)
    True
    """
    key, dtype = single_key("f", key), float_dtype("f", dtype)
    shape = sample_shape("f", shape, dfnum, dfden)
    dfnum, dfden = (parameter("f", x, dtype, shape) for x in (dfnum, dfden))
    keys = split(key)  # of the denominator, of the numerator
    numerator = chisquare(keys[1], dfnum, shape, dtype) / dfnum
    return numerator / (chisquare(keys[0], dfden, shape, dtype) / dfden)


@public(static=("shape", "dtype", "out_sharding"))
def generalized_normal(
    key: Any, p: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Samples with density proportional to exp(-|x|**p).

    >>> import jato
    >>> generalized_normal(jato.random.PRNGKey(0), 2.0, (3,)).shape
    (3,)
    """
    key, dtype = single_key("generalized_normal", key), float_dtype("generalized_normal", dtype)
    shape = normalize_shape("generalized_normal", shape)
    keys = split(key)
    power = 1 / parameter("generalized_normal", p, dtype)
    size = _gamma_samples(keys[0], jnp.broadcast_to(power, shape))
    return rademacher(keys[1], shape, dtype) * size**power


@public(static=("d", "shape", "dtype", "out_sharding"))
def ball(
    key: Any, d: int, p: Any = 2, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Points of the unit ball in d dimensions under the p-norm.

    >>> import jato
    >>> ball(jato.random.PRNGKey(0), 3, shape=(2,)).shape
    (2, 3)
    """
    key, dtype = single_key("ball", key), float_dtype("ball", dtype)
    shape = normalize_shape("ball", shape)
    keys = split(key)
    p = parameter("ball", p, dtype)
    point = generalized_normal(keys[0], p, (*shape, d), dtype)
    radius = jnp.sum(jnp.abs(point) ** p, axis=-1) + exponential(keys[1], shape, dtype)
    return point / jnp.expand_dims(radius ** (1 / p), -1)
