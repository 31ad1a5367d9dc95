"""Reductions over segments: rows of `data` combined by the segment that each belongs to.

One scatter into an array of identities.  An id outside of [0, num_segments) drops its row, a
negative one too: they do not count from the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import ConcretizationTypeError, check, require_unsharded
from jato.core.trace import Tracer
from jato.core.types import type_of
from jato.ops.elementwise import lt, select
from jato.ops.gather_geometry import GatherScatterMode, ScatterDimensionNumbers
from jato.ops.indexing import scatter_add, scatter_max, scatter_min, scatter_mul
from jato.ops.reduce import largest, reduce_max, reduce_min, reduce_prod, smallest
from jato.ops.structural import (
    concatenate,
    full,
    full_like,
    reduce_sum,
    reshape,
    slice_in_dim,
)


def _count(name: str, segment_ids: Any, num_segments: int | None) -> int:
    if num_segments is not None:
        count = num_segments.__index__()
        check(count >= 0, ValueError, f"{name}: num_segments must be >= 0, got {count}")
        return count
    if isinstance(segment_ids, Tracer):
        raise ConcretizationTypeError(
            f"{name}: the number of segments depends on the values of segment_ids, which are "
            "traced. Pass num_segments."
        )
    ids = np.asarray(segment_ids)
    return int(ids.max()) + 1 if ids.size else 0


def _segments(
    name: str, data: Any, segment_ids: Any, num_segments: int | None,
    scatter: Callable[..., Any], combine: Callable[..., Any], identity: Any,
    unique: bool, bucket_size: int | None, mode: Any,
) -> Any:  # fmt: skip
    count = _count(name, segment_ids, num_segments)
    aval, ids = type_of(data), type_of(segment_ids)
    check(
        dtypes.is_integer(ids.dtype),
        TypeError,
        f"{name}: segment_ids must be integers, got {ids.dtype}",
    )
    check(
        ids.ndim >= 1 and aval.shape[: ids.ndim] == ids.shape,
        ValueError,
        f"{name}: the shape of segment_ids must be the leading axes of data, got {ids.shape} "
        f"against {aval.shape}",
    )
    drops = GatherScatterMode.from_any(mode) is GatherScatterMode.FILL_OR_DROP
    if dtypes.is_signed(ids.dtype) and not drops:  # else negative ids are dropped anyway
        segment_ids = select(
            lt(segment_ids, full_like(segment_ids, 0)),
            full_like(segment_ids, int(np.iinfo(ids.dtype).max)),
            segment_ids,
        )
    rows = aval.shape[ids.ndim :]
    total = int(np.prod(ids.shape))
    flat = reshape(data, (total, *rows))
    index = reshape(segment_ids, (total, 1))
    numbers = ScatterDimensionNumbers(tuple(range(1, len(rows) + 1)), (0,), (0,))
    empty = full((count, *rows), identity, aval.dtype)
    size = bucket_size or max(total, 1)
    parts = [
        scatter(
            empty, slice_in_dim(index, start, min(start + size, total)),
            slice_in_dim(flat, start, min(start + size, total)), numbers,
            unique_indices=unique, mode=mode,
        )
        for start in range(0, max(total, 1), size)
    ]  # fmt: skip
    if len(parts) == 1:
        return parts[0]
    return combine(concatenate([reshape(p, (1, *type_of(p).shape)) for p in parts], 0), (0,))


def segment_sum(
    data: Any, segment_ids: Any, num_segments: int | None = None,
    indices_are_sorted: bool = False, unique_indices: bool = False,
    bucket_size: int | None = None, mode: Any = None, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """The sum of the rows of each segment; empty segments give 0.

    data: array; segment_ids: integers, one per leading element of data (several axes allowed);
    num_segments: number of segments (default: the largest id plus one, which needs concrete ids);
    indices_are_sorted, unique_indices: promises; bucket_size: rows added up separately first,
    which is more accurate; mode: of ids out of bounds.  Rows with such ids are dropped.
    TypeError or ValueError if ids and data do not fit; ConcretizationTypeError for traced ids
    without num_segments.

    >>> import numpy as np
    >>> segment_sum(np.arange(4, dtype=np.int32), np.array([0, 0, 1, 1]), 2)
    Array([1, 5], dtype=int32)
    """
    require_unsharded("segment_sum", out_sharding)
    return _segments(
        "segment_sum", data, segment_ids, num_segments, scatter_add, reduce_sum,
        0, unique_indices, bucket_size, mode,
    )  # fmt: skip


def segment_prod(
    data: Any, segment_ids: Any, num_segments: int | None = None,
    indices_are_sorted: bool = False, unique_indices: bool = False,
    bucket_size: int | None = None, mode: Any = None, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """The product of the rows of each segment; empty segments give 1.  See segment_sum.

    >>> import numpy as np
    >>> segment_prod(np.array([2, 3, 4], np.int32), np.array([0, 0, 1]), 2)
    Array([6, 4], dtype=int32)
    """
    require_unsharded("segment_prod", out_sharding)
    return _segments(
        "segment_prod", data, segment_ids, num_segments, scatter_mul, reduce_prod,
        1, unique_indices, bucket_size, mode,
    )  # fmt: skip


def segment_max(
    data: Any, segment_ids: Any, num_segments: int | None = None,
    indices_are_sorted: bool = False, unique_indices: bool = False,
    bucket_size: int | None = None, mode: Any = None, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """The maximum of the rows of each segment; empty segments give the dtype's smallest value.

    See segment_sum.

    >>> import numpy as np
    >>> segment_max(np.array([2, 3, 4], np.int32), np.array([0, 0, 1]), 2)
    Array([3, 4], dtype=int32)
    """
    require_unsharded("segment_max", out_sharding)
    return _segments(
        "segment_max", data, segment_ids, num_segments, scatter_max, reduce_max,
        smallest(type_of(data).dtype), unique_indices, bucket_size, mode,
    )  # fmt: skip


def segment_min(
    data: Any, segment_ids: Any, num_segments: int | None = None,
    indices_are_sorted: bool = False, unique_indices: bool = False,
    bucket_size: int | None = None, mode: Any = None, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """The minimum of the rows of each segment; empty segments give the dtype's largest value.

    See segment_sum.

    >>> import numpy as np
    >>> segment_min(np.array([2, 3, 4], np.int32), np.array([0, 0, 1]), 2)
    Array([2, 4], dtype=int32)
    """
    require_unsharded("segment_min", out_sharding)
    return _segments(
        "segment_min", data, segment_ids, num_segments, scatter_min, reduce_min,
        largest(type_of(data).dtype), unique_indices, bucket_size, mode,
    )  # fmt: skip
