"""jato.nn.initializers: functions that make the first values of weights.

An initializer is called as init(key, shape, dtype).  Those of a family differ in the variance:

    lecun    1 / fan_in        he (kaiming)   2 / fan_in       glorot (xavier)   2 / (fan_in + fan_out)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

import jato.numpy as jnp
from jato import random
from jato.base.errors import require_unsharded
from jato.base import dtypes
from jato.numpy.promote import normalize_shape


@runtime_checkable
class Initializer(Protocol):
    """The type of initializers."""

    def __call__(self, key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        raise NotImplementedError


def _dtype(dtype: Any) -> Any:
    return dtypes.canonicalize(np.float64 if dtype is None else dtype)


def zeros(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """Zeros.

    >>> zeros(None, (2,))
    Array([0., 0.], dtype=float32)
    """
    require_unsharded("zeros", out_sharding)
    return jnp.zeros(shape, _dtype(dtype))


def ones(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """Ones.

    >>> ones(None, (2,))
    Array([1., 1.], dtype=float32)
    """
    require_unsharded("ones", out_sharding)
    return jnp.ones(shape, _dtype(dtype))


def constant(value: Any, dtype: Any = None) -> Callable[..., Any]:
    """An initializer that gives `value`.

    >>> constant(3.0)(None, (2,))
    Array([3., 3.], dtype=float32)
    """

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        require_unsharded("init", out_sharding)
        return jnp.full(shape, value, dtype=_dtype(dtype))

    return init


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Callable[..., Any]:
    """An initializer of uniform values in [0, scale).

    >>> import jato
    >>> uniform()(jato.random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        require_unsharded("init", out_sharding)
        kind = _dtype(dtype)
        return random.uniform(key, shape, kind) * jnp.asarray(scale, kind)

    return init


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Callable[..., Any]:
    """An initializer of normal values with mean 0.

    >>> import jato
    >>> normal(5.0)(jato.random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        require_unsharded("init", out_sharding)
        kind = _dtype(dtype)
        return random.normal(key, shape, kind) * jnp.asarray(stddev, kind)

    return init


def truncated_normal(
    stddev: Any = 1e-2, dtype: Any = None, lower: Any = -2.0, upper: Any = 2.0
) -> Callable[..., Any]:
    """An initializer of normal values within [lower, upper] (before they are scaled by stddev).

    >>> import jato
    >>> truncated_normal(5.0)(jato.random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        require_unsharded("init", out_sharding)
        kind = _dtype(dtype)
        return random.truncated_normal(key, lower, upper, shape, kind) * jnp.asarray(stddev, kind)

    return init


def _size(shape: Sequence[int], axis: int | Sequence[int]) -> int:
    return shape[axis] if isinstance(axis, int) else math.prod(shape[a] for a in axis)


def _fans(
    shape: Sequence[int], in_axis: Any, out_axis: Any, batch_axis: Any
) -> tuple[float, float]:
    """How many inputs an output has, and how many outputs an input."""
    if len(shape) <= 1 and isinstance(in_axis, int) and in_axis == -2:
        raise ValueError(
            f"variance_scaling: a shape of {len(shape)} axes has no input and output axis; give at "
            "least two axes or in_axis"
        )
    inputs, outputs = _size(shape, in_axis), _size(shape, out_axis)
    field = math.prod(shape) / inputs / outputs / _size(shape, batch_axis)
    return inputs * field, outputs * field


def _complex_disk(key: Any, shape: Any, dtype: Any, radius: Callable[[Any], Any]) -> Any:
    """Complex values of uniform angle; radius(u) with u uniform in [0, 1)."""
    part = np.dtype(f"float{dtype.itemsize * 4}")
    keys = random.split(key)
    u, turn = (random.uniform(k, shape, part) for k in (keys[0], keys[1]))
    angle = 2 * math.pi * turn
    size = radius(u)
    return (size * jnp.cos(angle) + 1j * (size * jnp.sin(angle))).astype(dtype)


def variance_scaling(
    scale: Any,
    mode: str,
    distribution: str,
    in_axis: int | Sequence[int] = -2,
    out_axis: int | Sequence[int] = -1,
    batch_axis: int | Sequence[int] = (),
    dtype: Any = None,
) -> Callable[..., Any]:
    """An initializer whose variance is `scale` over a count of connections.

    mode: "fan_in", "fan_out", "fan_avg" or "fan_geo_avg", which count; distribution:
    "truncated_normal" (at two standard deviations), "normal" or "uniform"; in_axis, out_axis,
    batch_axis: axes of the shape.  ValueError for other modes or distributions.

    >>> import jato
    >>> variance_scaling(1.0, "fan_in", "normal")(jato.random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        require_unsharded("init", out_sharding)
        shape, kind = normalize_shape("variance_scaling", shape), _dtype(dtype)
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        counts = {
            "fan_in": fan_in,
            "fan_out": fan_out,
            "fan_avg": (fan_in + fan_out) / 2,
            "fan_geo_avg": math.sqrt(fan_in * fan_out),
        }
        if mode not in counts:
            raise ValueError(
                f"variance_scaling: argument 'mode' must be one of {sorted(counts)}, got {mode!r}"
            )
        if dtypes.is_complex(kind):
            return _complex(key, shape, kind, scale / counts[mode], distribution)
        variance = jnp.asarray(scale / counts[mode], kind)
        if distribution == "truncated_normal":
            # the standard deviation of the normal distribution truncated to [-2, 2]
            deviation = jnp.sqrt(variance) / jnp.asarray(0.87962566103423978, kind)
            return random.truncated_normal(key, -2, 2, shape, kind) * deviation
        if distribution == "normal":
            return random.normal(key, shape, kind) * jnp.sqrt(variance)
        if distribution == "uniform":
            return random.uniform(key, shape, kind, -1) * jnp.sqrt(3 * variance)
        raise _unknown(distribution)

    return init


def _unknown(distribution: Any) -> ValueError:
    return ValueError(
        "variance_scaling: argument 'distribution' must be 'truncated_normal', 'normal' or "
        f"'uniform', got {distribution!r}"
    )


def _complex(key: Any, shape: Any, dtype: Any, variance: float, distribution: str) -> Any:
    deviation = math.sqrt(variance)
    if distribution == "normal":
        return random.normal(key, shape, dtype) * np.asarray(deviation, dtype)
    if distribution == "uniform":
        found = _complex_disk(key, shape, dtype, lambda u: jnp.sqrt(2 * u))
        return found * np.asarray(deviation, dtype)
    if distribution != "truncated_normal":
        raise _unknown(distribution)
    # |z| below 2; 0.953... is the standard deviation that is left
    share = 1 - math.exp(-4)
    found = _complex_disk(key, shape, dtype, lambda u: jnp.sqrt(-jnp.log1p(-share * u)))
    return found * np.asarray(deviation / 0.95311164380491208, dtype)


def _family(scale: float, mode: str, distribution: str, name: str, summary: str) -> Any:
    def make(
        in_axis: int | Sequence[int] = -2,
        out_axis: int | Sequence[int] = -1,
        batch_axis: int | Sequence[int] = (),
        dtype: Any = None,
    ) -> Callable[..., Any]:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""{summary}: variance_scaling({scale}, {mode!r}, {distribution!r}).

    >>> import jato
    >>> jato.nn.initializers.{name}()(jato.random.key(0), (2, 3)).shape
    (2, 3)
    """
    return make


glorot_uniform = _family(1.0, "fan_avg", "uniform", "glorot_uniform", "Glorot and Bengio, 2010")
glorot_normal = _family(
    1.0, "fan_avg", "truncated_normal", "glorot_normal", "Glorot and Bengio, 2010"
)
lecun_uniform = _family(1.0, "fan_in", "uniform", "lecun_uniform", "LeCun et al., 1998")
lecun_normal = _family(1.0, "fan_in", "truncated_normal", "lecun_normal", "LeCun et al., 1998")
he_uniform = _family(2.0, "fan_in", "uniform", "he_uniform", "He et al., 2015")
he_normal = _family(2.0, "fan_in", "truncated_normal", "he_normal", "He et al., 2015")
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Callable[..., Any]:
    """An initializer of matrices with orthonormal rows or columns (whichever are fewer), times scale.

    column_axis: the axis of the columns; the others together are the rows.

    >>> import jato
    >>> orthogonal()(jato.random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        require_unsharded("init", out_sharding)
        shape, kind = normalize_shape("orthogonal", shape), _dtype(dtype)
        if len(shape) < 2:
            raise ValueError(f"orthogonal: the shape must have at least two axes, got {shape}")
        if 0 in shape:
            return jnp.zeros(shape, kind)
        columns = shape[column_axis]
        others = list(shape)
        del others[column_axis]
        q = random.orthogonal(key, math.prod(others), (), kind, columns)
        q = jnp.moveaxis(jnp.reshape(q, (*others, columns)), -1, column_axis)
        return jnp.asarray(scale, kind) * q

    return init


def delta_orthogonal(
    scale: Any = 1.0, column_axis: int = -1, dtype: Any = None
) -> Callable[..., Any]:
    """An initializer of convolution kernels: orthogonal in the centre, zero elsewhere.

    The shape has 3 to 5 axes, the last two are the input and output features.
    (Xiao et al., ICML 2018.)

    >>> import jato
    >>> delta_orthogonal()(jato.random.key(0), (3, 2, 2)).shape
    (3, 2, 2)
    """

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: Any = None) -> Any:
        require_unsharded("init", out_sharding)
        shape, kind = normalize_shape("delta_orthogonal", shape), _dtype(dtype)
        if len(shape) not in (3, 4, 5):
            raise ValueError(f"delta_orthogonal: the shape must have 3 to 5 axes, got {shape}")
        if shape[-1] < shape[-2]:
            raise ValueError(
                f"delta_orthogonal: needs at least as many outputs as inputs, got shape {shape}"
            )
        matrix = orthogonal(scale, column_axis, kind)(key, shape[-2:])
        centre = tuple((n - 1) // 2 for n in shape[:-2])
        return jnp.zeros(shape, kind).at[centre].set(matrix)

    return init
