"""Small compositions of jato.lax: ranks, static indices, tiles, stacks, the k largest, barriers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jato.base.errors import check, require_unsharded
from jato.base.pytree import tree_map
from jato.core.types import type_of
from jato.ops.elementwise import neg
from jato.ops.shapes import BARRIER
from jato.ops.sort import top_k
from jato.ops.structural import (
    broadcast_in_dim,
    canonical_axis,
    canonical_shape,
    concatenate,
    expand_dims,
    full,
    reshape,
    slice_in_dim,
    squeeze,
)


def dtype(x: Any) -> Any:
    """The dtype of an array or number.

    >>> dtype(1.0)
    dtype('float32')
    """
    return type_of(x).dtype


def empty(shape: Any, dtype: Any, *, out_sharding: Any = None) -> Any:
    """An array whose contents do not matter; they are zeros.

    >>> empty((2,), "int32")
    Array([0, 0], dtype=int32)
    """
    require_unsharded("empty", out_sharding)
    return full(shape, 0, dtype)


def broadcast_to_rank(x: Any, rank: int) -> Any:
    """`x` with leading axes of size 1 until it has `rank` of them.  ValueError if it has more.

    >>> import numpy as np
    >>> broadcast_to_rank(np.zeros(3, np.float32), 2).shape
    (1, 3)
    """
    shape = type_of(x).shape
    check(
        len(shape) <= rank,
        ValueError,
        f"broadcast_to_rank: expected an array of at most {rank} axes, got shape {shape}",
    )
    return x if len(shape) == rank else expand_dims(x, tuple(range(rank - len(shape))))


def broadcast_like(arr: Any, like_arr: Any) -> Any:
    """`arr` broadcast to the shape of `like_arr` by NumPy's rules.

    >>> import numpy as np
    >>> broadcast_like(np.ones((1, 2), np.float32), np.zeros((3, 2))).shape
    (3, 2)
    """
    own, target = type_of(arr).shape, type_of(like_arr).shape
    if own == target:
        return arr
    return broadcast_in_dim(arr, target, tuple(range(len(target) - len(own), len(target))))


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    """The element at a static `index` along one axis; `keepdims` keeps it as an axis of size 1.

    IndexError if the index is out of bounds.

    >>> import numpy as np
    >>> index_in_dim(np.arange(3, dtype=np.int32), -1, keepdims=False)
    Array(2, dtype=int32)
    """
    shape = type_of(operand).shape
    check(
        -len(shape) <= axis < len(shape),
        ValueError,
        f"index_in_dim: axis {axis} is out of bounds for an array of rank {len(shape)}",
    )
    size = shape[axis]
    check(
        -size <= index < size,
        IndexError,
        f"index_in_dim: index {index} is out of bounds for axis {axis} of size {size}",
    )
    index %= size
    found = slice_in_dim(operand, index, index + 1, 1, axis % len(shape))
    return found if keepdims else squeeze(found, (axis % len(shape),))


def stack(operands: Sequence[Any], axis: int = 0) -> Any:
    """Arrays of one shape and dtype along a new axis.

    >>> import numpy as np
    >>> stack([np.zeros(2, np.float32), np.ones(2, np.float32)])
    Array([[0., 0.],
           [1., 1.]], dtype=float32)
    """
    rank = type_of(operands[0]).ndim + 1
    place = axis + rank if axis < 0 else axis
    return concatenate([expand_dims(x, (place,)) for x in operands], place)


def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """The slices of an array along an axis, without that axis, as a tuple.

    ValueError if the axis does not exist.

    >>> import numpy as np
    >>> len(unstack(np.zeros((3, 2), np.float32)))
    3
    """
    axis = canonical_axis("unstack", "axis", axis, type_of(x).ndim)
    return tuple(index_in_dim(x, i, axis, False) for i in range(type_of(x).shape[axis]))


def tile(operand: Any, reps: Sequence[int]) -> Any:
    """`operand` repeated reps[d] times along each axis d.

    >>> import numpy as np
    >>> tile(np.arange(2, dtype=np.int32), (2,))
    Array([0, 1, 0, 1], dtype=int32)
    """
    shape = type_of(operand).shape
    check(
        len(reps) == len(shape),
        ValueError,
        f"tile: expected one number of repetitions per axis of {shape}, got {tuple(reps)}",
    )
    spread = tuple(n for pair in zip(reps, shape, strict=True) for n in pair)
    places = tuple(range(1, 2 * len(shape), 2))
    repeated = broadcast_in_dim(operand, spread, places)
    return reshape(repeated, tuple(r * n for r, n in zip(reps, shape, strict=True)))


def one_minus_square(x: Any) -> Any:
    """1 - x**2, as (1 - x)(1 + x): accurate near 1.

    >>> float(one_minus_square(0.5))
    0.75
    """
    from_one = 1 - x
    return from_one * (1 + x)


def optimization_barrier(operand: Any, /) -> Any:
    """The same values, from which the compiler cannot tell that they are the same.

    operand: a pytree.  What is computed from the result is not merged with equal work on the
    operand, which costs no copy.  Differentiable; tangents pass a barrier of their own.

    >>> optimization_barrier({"a": 1.0})
    {'a': Array(1., dtype=float32, weak_type=True)}
    """
    return tree_map(BARRIER.bind, operand)


def stage(x: Any, /) -> Any:
    """A number or NumPy array as a value of the function that is being traced, or as an array.

    >>> stage(1.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return BARRIER.bind(x)


def shape_as_value(shape: Sequence[int]) -> Any:
    """A shape as a vector of int32.

    >>> shape_as_value((2, 3))
    Array([2, 3], dtype=int32)
    """
    return stage(np.array(canonical_shape("shape_as_value", "shape", shape), np.int32))


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """A function that calls `decomposition`, under a name by which a compiler might know it.

    This compiler knows none, so name and version say something to readers only.  Positional
    arguments are arrays, keyword arguments static settings.
    Raises: TypeError if decomposition is no function, or name or version of another type.

    >>> doubled = composite(lambda x, *, times: x * times, "example.scaled")
    >>> float(doubled(2.0, times=3))
    6.0
    """
    check(
        callable(decomposition), TypeError,
        f"composite: decomposition must be a function, got {decomposition!r}",
    )  # fmt: skip
    check(isinstance(name, str), TypeError, f"composite: name must be a string, got {name!r}")
    check(isinstance(version, int), TypeError, f"composite: version must be an int, got {version!r}")

    @functools.wraps(decomposition, updated=())
    def call(*args: Any, **settings: Any) -> Any:
        return decomposition(*args, **settings)

    return call


def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """Calls the function given for the platform in use (`cpu=`), or `default`.

    NotImplementedError if there is neither.

    >>> platform_dependent(1, cpu=lambda x: x + 1, default=lambda x: x)
    2
    """
    chosen = per_platform.get("cpu", default)
    if chosen is None:
        raise NotImplementedError(
            f"platform_dependent: no function for 'cpu' among {sorted(per_platform)}; pass default="
        )
    return chosen(*args)


def approx_max_k(
    operand: Any, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
    reduction_input_size_override: int = -1, aggregate_to_topk: bool = True,
) -> list[Any]:  # fmt: skip
    """The k largest elements along an axis and their positions: [values, indices].

    The answer is exact, whatever `recall_target` allows.

    >>> import numpy as np
    >>> approx_max_k(np.array([1.0, 3.0, 2.0], np.float32), 2)[1]
    Array([1, 2], dtype=int32)
    """
    return top_k(operand, k, axis=reduction_dimension)


def approx_min_k(
    operand: Any, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
    reduction_input_size_override: int = -1, aggregate_to_topk: bool = True,
) -> list[Any]:  # fmt: skip
    """The k smallest elements along an axis and their positions: [values, indices].  Exact.

    >>> import numpy as np
    >>> approx_min_k(np.array([1.0, 3.0, 2.0], np.float32), 2)[1]
    Array([0, 2], dtype=int32)
    """
    values, indices = top_k(neg(operand), k, axis=reduction_dimension)
    return [neg(values), indices]
