"""Products of arrays whose rows come in groups of unequal sizes: ragged_dot, ragged_dot_general.

A group is a mask over the ragged axis, so that a product over all groups is one `dot_general` of the
masked left operand, contracted over the groups too.  It costs as many multiplications as there are
groups times rows; `vmap`, derivatives and fusion are those of `dot_general`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import check, require_unsharded
from jato.core.types import type_of
from jato.ops.contract import dot_general
from jato.ops.cumulative import cumsum
from jato.ops.elementwise import bitwise_and, ge, lt, select, sub
from jato.ops.structural import (
    broadcast_in_dim,
    broadcasted_iota,
    expand_dims,
    full_like,
    transpose,
)


@dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """Which axes `ragged_dot_general` contracts, maps, and finds groups in.

    dot_dimension_numbers: as in `dot_general`; lhs_ragged_dimensions: the one axis of lhs that is
    cut into groups; rhs_group_dimensions: the axis of rhs that has an entry per group, or none."""

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]


def ragged_dot(
    lhs: Any, rhs: Any, group_sizes: Any, precision: Any = None,
    preferred_element_type: Any = None, group_offset: Any = None, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """Rows of lhs times the matrix of their group: [m, k], [g, k, n] and sizes [g] -> [m, n].

    The first group_sizes[0] rows belong to group 0, and so on; rows after the last group give 0.
    precision, preferred_element_type: as in `dot_general`; group_offset, out_sharding: None.
    Raises: TypeError when shapes or dtypes do not fit.

    >>> sizes = np.array([1, 2], np.int32)
    >>> rhs = np.array([[[1.0]], [[10.0]]], np.float32)
    >>> ragged_dot(np.ones((4, 1), np.float32), rhs, sizes).tolist()
    [[1.0], [10.0], [10.0], [0.0]]
    """
    ranks = type_of(lhs).ndim, type_of(rhs).ndim, type_of(group_sizes).ndim
    check(
        ranks == (2, 3, 1),
        TypeError,
        "ragged_dot: expected lhs, rhs and group_sizes of ranks 2, 3 and 1, got "
        f"{type_of(lhs)}, {type_of(rhs)} and {type_of(group_sizes)}",
    )
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(
        lhs, rhs, group_sizes, numbers, precision, preferred_element_type, group_offset,
        out_sharding,
    )  # fmt: skip


def ragged_dot_general(
    lhs: Any, rhs: Any, group_sizes: Any, ragged_dot_dimension_numbers: Any, precision: Any = None,
    preferred_element_type: Any = None, group_offset: Any = None, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """`dot_general` where one axis of lhs is cut into groups.

    The ragged axis of lhs may be one that stays (rhs has a matrix for each group, and rows without a
    group give 0), one that is contracted (the result has a first axis with a product for each
    group), or one that is mapped (groups make no difference).  group_sizes: integers [g], or with
    the extents of the mapped axes and of those axes of lhs before the ragged one that are of its
    kind in front.  group_offset, out_sharding: None.
    Raises: TypeError when axes or shapes do not fit.

    >>> numbers = RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
    >>> x, sizes = np.ones((3, 1), np.float32), np.array([1, 2], np.int32)
    >>> ragged_dot_general(x, x, sizes, numbers).tolist()
    [[[1.0]], [[2.0]]]
    """
    what = "ragged_dot_general"
    require_unsharded(what, out_sharding)
    check(
        group_offset is None,
        NotImplementedError,
        f"{what}: argument 'group_offset': expected None, got {group_offset!r}; pass the groups that "
        "rhs has",
    )
    sizes = type_of(group_sizes)
    check(
        dtypes.is_integer(sizes.dtype) and sizes.ndim >= 1,
        TypeError,
        f"{what}: expected group_sizes to be integers with at least one axis, got {sizes}",
    )
    numbers = ragged_dot_dimension_numbers
    (contract, other_contract), (batch, other_batch) = (
        tuple(tuple(map(int, dims)) for dims in pair) for pair in numbers.dot_dimension_numbers
    )
    ragged = tuple(numbers.lhs_ragged_dimensions)
    groups = tuple(numbers.rhs_group_dimensions)
    check(
        len(ragged) == 1 and 0 <= ragged[0] < type_of(lhs).ndim,
        TypeError,
        f"{what}: expected one axis of lhs in lhs_ragged_dimensions, got {ragged}",
    )
    (axis,) = ragged
    stays = axis not in contract and axis not in batch
    check(
        len(groups) == stays,
        TypeError,
        f"{what}: expected {'one axis' if stays else 'no axis'} of rhs in rhs_group_dimensions, as "
        f"the ragged axis {axis} of lhs {'stays' if stays else 'does not stay'}, got {groups}",
    )
    options = {"precision": precision, "preferred_element_type": preferred_element_type}
    if axis in batch:
        return dot_general(lhs, rhs, numbers.dot_dimension_numbers, **options)
    kind = [d for d in range(type_of(lhs).ndim) if d not in contract and d not in batch]
    before = [d for d in (kind if stays else contract) if d < axis]
    masked = _masked(what, lhs, group_sizes, axis, (*batch, *before))
    moved, moved_batch = (tuple(d + 1 for d in dims) for dims in (contract, batch))
    if not stays:
        # axes: mapped ones, groups, what is left of lhs, of rhs
        dims = (moved, other_contract), (moved_batch, other_batch)
        out = dot_general(masked, rhs, dims, **options)
        rank, at = type_of(out).ndim, len(batch)
        order = (at, *range(at), *range(at + 1, rank))
        return transpose(out, order)
    count = type_of(rhs).shape[groups[0]]
    check(
        count == sizes.shape[-1],
        TypeError,
        f"{what}: expected as many groups in rhs as in group_sizes, {sizes.shape[-1]}, got {count}",
    )
    dims = ((0, *moved), (groups[0], *other_contract)), (moved_batch, other_batch)
    return dot_general(masked, rhs, dims, **options)


def _masked(what: str, lhs: Any, group_sizes: Any, axis: int, outer: Sequence[int]) -> Any:
    """lhs for each group, 0 outside of the group: [g, *lhs]."""
    shape, sizes = type_of(lhs).shape, type_of(group_sizes)
    if sizes.ndim == 1:
        outer = ()
    prefix = tuple(shape[d] for d in outer)
    check(
        sizes.shape[:-1] == prefix,
        TypeError,
        f"{what}: expected group_sizes of shape {(*prefix, 'groups')} for lhs {type_of(lhs)}, got "
        f"{sizes}",
    )
    rank = sizes.ndim
    ends = cumsum(group_sizes, rank - 1)
    starts = sub(ends, group_sizes)
    full = (sizes.shape[-1], *shape)
    places = (*(d + 1 for d in outer), 0)
    order = sorted(range(rank), key=lambda i: places[i])
    bounds = [broadcast_in_dim(transpose(x, order), full, sorted(places)) for x in (starts, ends)]
    position = broadcasted_iota(sizes.dtype, full, axis + 1)
    inside = bitwise_and(ge(position, bounds[0]), lt(position, bounds[1]))
    spread = broadcast_in_dim(expand_dims(lhs, (0,)), full, range(len(full)))
    return select(inside, spread, full_like(spread, np.zeros((), type_of(lhs).dtype)[()]))
