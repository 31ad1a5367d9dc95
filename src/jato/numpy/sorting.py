"""Sorting: sort, argsort, lexsort, partition, top_k.

nan comes last, -0.0 and 0.0 are equal, complex numbers are ordered by real, then imaginary part.
Sorts are stable unless `stable=False`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jato.base.dtypes import canonicalize, is_complex, is_floating
from jato.core.array import require_integer
from jato.jit.eager import public
from jato.numpy.manipulation import as_weak_array, moveaxis, sequence_items
from jato.numpy.promote import (
    as_array,
    broadcast,
    common_shape,
    dtype_of,
    index_dtype,
    normalize_axis,
)
from jato.numpy.reductions import as_type
from jato.ops import elementwise, structural
from jato.ops import sort as sort_ops

STATIC = ("axis", "kind", "order", "stable", "descending", "dtype")


def _along(function: str, a: Any, axis: int | None) -> tuple[Any, int]:
    a = as_array(function, a)
    if axis is None:
        return structural.reshape(a, (math.prod(a.shape),)), 0
    return a, normalize_axis(function, axis, len(a.shape))


def _check(function: str, kind: Any, order: Any) -> None:
    if order is not None:
        raise NotImplementedError(f"{function}: argument 'order' is not supported")
    if kind is not None and kind not in ("stable", "quicksort", "mergesort", "heapsort"):
        raise ValueError(f"{function}: unknown kind {kind!r}")


def _iota(a: Any, axis: int, dtype: Any = None) -> Any:
    return structural.broadcasted_iota(
        canonicalize(np.int64 if dtype is None else dtype), a.shape, axis
    )


@public(static=STATIC)
def sort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: Any = None,
    order: Any = None,
    stable: bool = True,
    descending: bool = False,
) -> Any:
    """The elements sorted along an axis; the flattened array if axis is None.

    >>> import jato.numpy as jnp
    >>> jnp.sort(jnp.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    _check("sort", kind, order)
    a, axis = _along("sort", a, axis)
    result = sort_ops.sort(a, dimension=axis, is_stable=stable)
    return structural.rev(result, (axis,)) if descending else result


@public(static=STATIC)
def argsort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: Any = None,
    order: Any = None,
    stable: bool = True,
    descending: bool = False,
    dtype: Any = None,
) -> Any:
    """The indices that sort an array along an axis.

    >>> import jato.numpy as jnp
    >>> jnp.argsort(jnp.array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
    """
    _check("argsort", kind, order)
    a, axis = _along("argsort", a, axis)
    positions = _iota(a, axis, dtype)
    if not descending:
        return sort_ops.sort((a, positions), dimension=axis, is_stable=stable, num_keys=1)[1]
    # reversed twice, equal elements keep their order
    flipped = structural.rev(a, (axis,))
    size = np.asarray(a.shape[axis] - 1, dtype_of(positions))[()]
    found = sort_ops.sort((flipped, positions), dimension=axis, is_stable=stable, num_keys=1)[1]
    return elementwise.sub(size, structural.rev(found, (axis,)))


@public(static=("axis",))
def lexsort(keys: Any, axis: int = -1, *, batch_size: Any = None) -> Any:
    """The indices that sort by several keys, the last one first in importance.

    >>> import jato.numpy as jnp
    >>> jnp.lexsort((jnp.array([1, 0, 2]), jnp.array([1, 1, 0])))
    Array([2, 1, 0], dtype=int32)
    """
    items = [as_weak_array("lexsort", k) for k in sequence_items("lexsort", keys)]
    shape = common_shape("lexsort", [k.shape for k in items])
    items = [broadcast(k, shape) for k in items]
    if not shape:
        return structural.full((), 0, canonicalize(np.int64))
    axis = normalize_axis("lexsort", axis, len(shape))
    operands = (*items[::-1], _iota(items[0], axis))
    return sort_ops.sort(operands, dimension=axis, is_stable=True, num_keys=len(items))[-1]


def _kth(function: str, kth: Any, size: int) -> int:
    k = require_integer(kth, function, "kth")
    if not -size <= k < size:
        raise ValueError(f"{function}: argument 'kth' is {k}, but the axis has size {size}")
    return k % size


@public(static=("kth", "axis"))
def partition(a: Any, kth: int, axis: int = -1) -> Any:
    """The elements reordered so that the kth is in sorted place, smaller ones before it.

    >>> import jato.numpy as jnp
    >>> jnp.partition(jnp.array([3, 1, 2]), 1)[1]
    Array(2, dtype=int32)
    """
    a, axis = _along("partition", a, axis)
    _kth("partition", kth, a.shape[axis])
    return sort_ops.sort(a, dimension=axis)


@public(static=("kth", "axis"))
def argpartition(a: Any, kth: int, axis: int = -1) -> Any:
    """The indices of a partition around the kth element.

    >>> import jato.numpy as jnp
    >>> jnp.argpartition(jnp.array([3, 1, 2]), 1)[1]
    Array(2, dtype=int32)
    """
    a, axis = _along("argpartition", a, axis)
    _kth("argpartition", kth, a.shape[axis])
    positions = _iota(a, axis, index_dtype(a.shape[axis]))
    return sort_ops.sort((a, positions), dimension=axis, num_keys=1)[1]


@public()
def sort_complex(a: Any) -> Any:
    """The elements sorted along the last axis, as complex numbers.

    >>> import jato.numpy as jnp
    >>> jnp.sort_complex(jnp.array([2.0, 1.0]))
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    a = as_array("sort_complex", a)
    if not is_complex(dtype_of(a)):
        wide = is_floating(dtype_of(a)) and dtype_of(a).itemsize == 8
        a = as_type(a, canonicalize(np.complex128 if wide else np.complex64))
    return sort_ops.sort(a, dimension=len(a.shape) - 1)


@public(static=("k", "axis", "mode", "sorted"))
def top_k(
    a: Any, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True
) -> tuple[Any, Any]:
    """The k largest (or "smallest") elements along an axis and their indices.

    >>> import jato.numpy as jnp
    >>> jnp.top_k(jnp.array([3, 1, 2]), 2)
    (Array([3, 2], dtype=int32), Array([0, 2], dtype=int32))
    """
    a, axis = _along("top_k", a, axis)
    if mode not in ("largest", "smallest"):
        raise ValueError(f"top_k: argument 'mode' must be 'largest' or 'smallest', got {mode!r}")
    if not 0 <= k <= a.shape[axis]:
        raise ValueError(f"top_k: argument 'k' is {k}, but the axis has size {a.shape[axis]}")
    if mode == "largest":
        a = moveaxis(a, axis, -1)
        values, indices = sort_ops.top_k(a, k)
        return moveaxis(values, -1, axis), moveaxis(indices, -1, axis)
    values, indices = sort_ops.sort((a, _iota(a, axis)), dimension=axis, num_keys=1)
    starts = (0,) * len(a.shape)
    limits = tuple(k if i == axis else s for i, s in enumerate(a.shape))
    return structural.slice(values, starts, limits), structural.slice(indices, starts, limits)
