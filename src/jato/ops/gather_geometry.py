"""The geometry of gather and scatter: modes, dimension numbers, where windows lie.

`GatherDimensionNumbers` explains the roles of the axes.  `locate` is the index arithmetic that a
gather and a scatter share, as loop IR; `numpy_locate` is the same in NumPy.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jato.base import dtypes
from jato.base.errors import check


class GatherScatterMode(enum.Enum):
    """What gather and scatter do with windows that are out of bounds (see the module)."""

    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise_in_bounds"
    ONE_HOT = "one_hot"

    @staticmethod
    def from_any(mode: str | GatherScatterMode | None) -> GatherScatterMode:
        """Any spelling of a mode; None means FILL_OR_DROP."""
        if isinstance(mode, GatherScatterMode):
            return mode
        if mode is None or mode in ("fill", "drop"):
            return GatherScatterMode.FILL_OR_DROP
        if mode == "clip":
            return GatherScatterMode.CLIP
        if mode == "promise_in_bounds":
            return GatherScatterMode.PROMISE_IN_BOUNDS
        if mode == "one_hot":
            return GatherScatterMode.ONE_HOT
        raise ValueError(
            "argument 'mode': expected 'clip', 'fill', 'drop' or 'promise_in_bounds', got "
            f"{mode!r}."
        )


CLIP = GatherScatterMode.CLIP
FILL = GatherScatterMode.FILL_OR_DROP


class GatherDimensionNumbers(NamedTuple):
    """Geometry of gather.

    The last axis of `indices` holds a start per entry of `start_index_map` (the operand's axes
    that the starts address); its other axes are the batch.  A window of `slice_sizes` is read at
    each start; its axes `collapsed_slice_dims` and `operand_batching_dims`, of size 1, are
    dropped, the rest become the result's axes `offset_dims`.  The batch axes are the result's other
    axes.  `operand_batching_dims[i]` moves along with the indices' axis
    `start_indices_batching_dims[i]`.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Geometry of scatter: gather's with the roles of result and updates exchanged."""

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


def other_axes(rank: int, *taken: Sequence[int]) -> tuple[int, ...]:
    """The axes of 0..rank-1 that are in none of `taken`."""
    used = {d for dims in taken for d in dims}
    return tuple(d for d in range(rank) if d not in used)


def shifted(dims: Sequence[int]) -> tuple[int, ...]:
    return tuple(d + 1 for d in dims)


def _start_at(b: Any, read: Any, batch: Sequence[Any], k: int, last: int) -> tuple[Any, Any]:
    """Loop IR: component k of the start vector at a batch position, and `last` to compare it with,
    in the dtype of the comparison: i32 for such indices, of which a vector holds twice as many."""
    start = read((*batch, b.index(k)))
    if start.dtype == "i32" and last < 1 << 31:
        return start, b.const(last, "i32")
    return b.convert(start, "i64"), b.index(last)


def locate(
    b: Any, read: Any, batch: Sequence[Any], shape: Sequence[int], window: Sequence[int],
    start_dims: Sequence[int], moving: dict[int, int], mode: GatherScatterMode,
) -> tuple[list[Any], Any]:  # fmt: skip
    """Loop IR: (start of the window along each axis of the operand, in-bounds condition or None).

    `moving`: axis of the operand -> axis of the indices it moves along with.
    """
    at = [b.index(0)] * len(shape)
    for d, source in moving.items():
        at[d] = batch[source]
    inside = None
    for k, d in enumerate(start_dims):
        start, last = _start_at(b, read, batch, k, shape[d] - window[d])
        zero = b.const(0, start.dtype)
        if mode is FILL:
            good = b.and_(b.ge(start, zero), b.le(start, last))
            inside = good if inside is None else b.and_(inside, good)
        else:
            start = b.max(b.min(start, last), zero)
        at[d] = b.convert(start, "i64")
    return at, inside


def numpy_locate(
    indices: Any, shape: Sequence[int], window: Sequence[int], start_dims: Sequence[int],
    moving: dict[int, int], mode: GatherScatterMode,
) -> tuple[list[Any], Any]:  # fmt: skip
    """The same for all batch positions at once."""
    batch_shape = indices.shape[:-1]
    positions = np.indices(batch_shape, dtype=np.int64)
    at: list[Any] = [np.zeros(batch_shape, np.int64)] * len(shape)
    for d, source in moving.items():
        at[d] = positions[source]
    inside = np.ones(batch_shape, bool)
    for k, d in enumerate(start_dims):
        start = indices[..., k].astype(np.int64)
        last = shape[d] - window[d]
        inside &= (start >= 0) & (start <= last)
        at[d] = np.clip(start, 0, max(last, 0))
    return at, inside if mode is FILL else np.ones(batch_shape, bool)


def default_fill(dtype: Any) -> Any:
    """What a gather in mode fill gives out of bounds: NaN, the smallest signed or largest unsigned
    integer, True."""
    if dtypes.is_inexact(dtype):
        return float("nan")
    if dtypes.is_bool(dtype):
        return True
    info = np.iinfo(dtype)
    return info.max if dtypes.is_unsigned(dtype) else info.min


def fill_of(fill_value: Any, dtype: Any) -> Any:
    return default_fill(dtype) if fill_value is None else fill_value


def check_geometry(
    name: str, operand: Any, indices: Any, window: Sequence[int], dropped: Sequence[int],
    starts: Sequence[int], moving: Sequence[int], along: Sequence[int],
) -> None:  # fmt: skip
    """What gather and scatter demand of the operand, the indices and the window."""
    rank = operand.ndim
    check(
        len(window) == rank
        and all(0 <= w <= n for w, n in zip(window, operand.shape, strict=True)),
        TypeError,
        f"{name}: the window {tuple(window)} must have one size per axis of the operand, at most "
        f"its shape {operand.shape}.",
    )
    check(
        indices.shape[-1] == len(starts),
        TypeError,
        f"{name}: the last axis of the indices {indices} must have one start per addressed axis "
        f"of the operand: {len(starts)} (axes {tuple(starts)}).",
    )
    for what, dims in (("dropped", dropped), ("addressed", starts), ("batching", moving)):
        check(
            len(set(dims)) == len(dims) and all(0 <= d < rank for d in dims),
            TypeError,
            f"{name}: dimension_numbers: {what} axes {tuple(dims)} must be distinct axes of the "
            f"operand of rank {rank}.",
        )
    check(
        not set(moving) & (set(starts) | set(dropped)),
        TypeError,
        f"{name}: dimension_numbers: batching axes {tuple(moving)} of the operand must be neither "
        f"addressed {tuple(starts)} nor dropped {tuple(dropped)}.",
    )
    check(
        all(window[d] <= 1 for d in (*dropped, *moving)),
        TypeError,
        f"{name}: the window {tuple(window)} must have size 1 along the axes it drops: "
        f"{(*dropped, *moving)}.",
    )
    check(
        len(moving) == len(along)
        and all(
            0 <= a < indices.ndim - 1 and operand.shape[m] == indices.shape[a]
            for m, a in zip(moving, along, strict=True)
        ),
        TypeError,
        f"{name}: dimension_numbers: batching axes {tuple(moving)} of the operand {operand} and "
        f"{tuple(along)} of the indices {indices} must correspond and have equal sizes.",
    )
