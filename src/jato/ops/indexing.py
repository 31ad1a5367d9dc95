"""The functions of jax.lax that index with values known at run time.

The primitives are in gather_scatter.py (gather, scatter, ...) and dynamic_slices.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jato.base.errors import check
from jato.core.types import type_of
from jato.ops.dynamic_slices import DYNAMIC_SLICE, DYNAMIC_UPDATE_SLICE
from jato.ops.elementwise import neg
from jato.ops.gather_geometry import (
    FILL,
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from jato.ops.gather_scatter import (
    GATHER,
    SCATTER,
    SCATTER_ADD,
    SCATTER_MAX,
    SCATTER_MIN,
    SCATTER_MUL,
    Scatter,
)
from jato.ops.structural import concatenate, reshape, squeeze
from jato.ops.structural import slice as static_slice


def _axis(function: str, axis: int, rank: int) -> int:
    check(
        -rank <= axis < rank,
        ValueError,
        f"{function}: argument 'axis': expected an axis of an array of rank {rank}, got {axis}.",
    )
    return axis % rank


def _start_list(starts: Any) -> list[Any]:
    if isinstance(starts, (list, tuple)):
        return list(starts)
    aval = type_of(starts)
    check(
        aval.ndim == 1,
        TypeError,
        f"argument 'start_indices': expected a sequence of scalars or one axis, got {aval}.",
    )
    return [squeeze(static_slice(starts, (i,), (i + 1,)), (0,)) for i in range(aval.shape[0])]


def dynamic_slice(
    operand: Any, start_indices: Any, slice_sizes: Sequence[int], *,
    allow_negative_indices: bool = True,
) -> Any:  # fmt: skip
    """A window of fixed size at a position known at run time.

    Args: operand: any array; start_indices: one integer scalar per axis (or one 1-d array), of
    which negative ones count from the end; slice_sizes: the result's shape.
    A window that sticks out is moved inside.
    Raises: TypeError when the numbers or sizes do not fit the operand.

    >>> dynamic_slice(np.arange(5), (3,), (2,)).tolist()
    [3, 4]
    """
    return DYNAMIC_SLICE.bind(
        operand, *_start_list(start_indices),
        slice_sizes=tuple(map(int, slice_sizes)), negative=bool(allow_negative_indices),
    )  # fmt: skip


def dynamic_update_slice(
    operand: Any, update: Any, start_indices: Any, *, allow_negative_indices: bool = True
) -> Any:
    """`operand` with a window of the shape of `update` overwritten at run-time `start_indices`.

    Args and clamping as in `dynamic_slice`.  Raises: TypeError when shapes or dtypes do not fit.

    >>> dynamic_update_slice(np.arange(4), np.array([9]), (1,)).tolist()
    [0, 9, 2, 3]
    """
    return DYNAMIC_UPDATE_SLICE.bind(
        operand, update, *_start_list(start_indices), negative=bool(allow_negative_indices)
    )


def dynamic_slice_in_dim(
    operand: Any, start_index: Any, slice_size: int, axis: int = 0, *,
    allow_negative_indices: bool = True,
) -> Any:  # fmt: skip
    """`dynamic_slice` along one axis, the others whole.

    >>> dynamic_slice_in_dim(np.arange(5), 1, 2).tolist()
    [1, 2]
    """
    shape = list(type_of(operand).shape)
    axis = _axis("dynamic_slice_in_dim", axis, len(shape))
    starts: list[Any] = [0] * len(shape)
    starts[axis] = start_index
    shape[axis] = int(slice_size)
    return dynamic_slice(operand, starts, shape, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: Any, index: Any, axis: int = 0, keepdims: bool = True, *,
    allow_negative_indices: bool = True,
) -> Any:  # fmt: skip
    """The element `index` (clamped) along one axis; `keepdims` keeps it as an axis of size 1.

    >>> int(dynamic_index_in_dim(np.arange(5), 3, keepdims=False))
    3
    """
    axis = _axis("dynamic_index_in_dim", axis, type_of(operand).ndim)
    out = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    return out if keepdims else squeeze(out, (axis,))


def dynamic_update_slice_in_dim(
    operand: Any, update: Any, start_index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """`dynamic_update_slice` along one axis.

    >>> dynamic_update_slice_in_dim(np.arange(4), np.array([9]), 2, 0).tolist()
    [0, 1, 9, 3]
    """
    rank = type_of(operand).ndim
    starts: list[Any] = [0] * rank
    starts[_axis("dynamic_update_slice_in_dim", axis, rank)] = start_index
    return dynamic_update_slice(
        operand, update, starts, allow_negative_indices=allow_negative_indices
    )


def dynamic_update_index_in_dim(
    operand: Any, update: Any, index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """Overwrites the element `index` along one axis; `update` may lack that axis.

    >>> dynamic_update_index_in_dim(np.arange(3), np.int32(7), 0, 0).tolist()
    [7, 1, 2]
    """
    shape = type_of(operand).shape
    axis = _axis("dynamic_update_index_in_dim", axis, len(shape))
    if type_of(update).ndim != len(shape):
        update_shape = list(type_of(update).shape)
        update_shape.insert(axis, 1)
        update = reshape(update, tuple(update_shape))
    return dynamic_update_slice_in_dim(
        operand, update, index, axis, allow_negative_indices=allow_negative_indices
    )


def gather(
    operand: Any, start_indices: Any, dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int], *, unique_indices: bool = False, indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None, fill_value: Any = None,
) -> Any:  # fmt: skip
    """Windows of `operand` at run-time positions; see GatherDimensionNumbers.

    Args: start_indices: integers [batch..., starts]; mode: 'clip' (default: windows are
    moved inside), 'fill' or 'promise_in_bounds'; fill_value: what 'fill' gives (default NaN, or the
    extreme integer).
    Raises: TypeError when the geometry is inconsistent.

    >>> rows = GatherDimensionNumbers((), (0,), (0,))
    >>> gather(np.arange(5), np.array([[3], [0]]), rows, (1,)).tolist()
    [3, 0]
    """
    if isinstance(fill_value, np.ndarray):
        fill_value = fill_value.item()
    return GATHER.bind(
        operand, start_indices,
        dimension_numbers=_tuples(GatherDimensionNumbers, dimension_numbers),
        slice_sizes=tuple(map(int, slice_sizes)), mode=_mode("clip" if mode is None else mode),
        fill_value=fill_value,
    )  # fmt: skip


def _mode(mode: Any) -> GatherScatterMode:
    parsed = GatherScatterMode.from_any(mode)
    return FILL if parsed is GatherScatterMode.ONE_HOT else parsed


def _tuples(kind: Any, numbers: Any) -> Any:
    """Any object with the fields (jax's own included) -> our record with tuples of ints."""
    return kind(*(tuple(int(d) for d in getattr(numbers, field)) for field in kind._fields))


def _scatter(
    primitive: Scatter, operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: Any,
    unique_indices: bool, mode: Any,
) -> Any:  # fmt: skip
    return primitive.bind(
        operand, scatter_indices, updates,
        dimension_numbers=_tuples(ScatterDimensionNumbers, dimension_numbers),
        mode=_mode(mode), unique_indices=bool(unique_indices),
    )  # fmt: skip


def scatter(
    operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:  # fmt: skip
    """`operand` with windows overwritten by `updates`; the last update of a place wins.

    Args: scatter_indices: integers [batch..., starts]; mode: 'fill'/'drop' (default: windows that
    stick out are dropped), 'clip', 'promise_in_bounds'; unique_indices: a promise that no place is
    written twice.  Raises: TypeError when the geometry is inconsistent.

    >>> places = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter(np.arange(3), np.array([[2]]), np.array([5]), places).tolist()
    [0, 1, 5]
    """
    return _scatter(
        SCATTER, operand, scatter_indices, updates, dimension_numbers, unique_indices, mode
    )


def scatter_add(
    operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:  # fmt: skip
    """`scatter` that adds updates to what is there.

    >>> places = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_add(np.arange(3), np.array([[2]]), np.array([5]), places).tolist()
    [0, 1, 7]
    """
    return _scatter(
        SCATTER_ADD, operand, scatter_indices, updates, dimension_numbers, unique_indices, mode
    )


def scatter_sub(
    operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:  # fmt: skip
    """`scatter` that subtracts updates from what is there.

    >>> places = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_sub(np.arange(3), np.array([[2]]), np.array([5]), places).tolist()
    [0, 1, -3]
    """
    return scatter_add(
        operand, scatter_indices, neg(updates), dimension_numbers,
        unique_indices=unique_indices, mode=mode,
    )  # fmt: skip


def scatter_mul(
    operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:  # fmt: skip
    """`scatter` that multiplies what is there by the updates.

    >>> places = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_mul(np.arange(3), np.array([[2]]), np.array([5]), places).tolist()
    [0, 1, 10]
    """
    return _scatter(
        SCATTER_MUL, operand, scatter_indices, updates, dimension_numbers, unique_indices, mode
    )


def scatter_min(
    operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:  # fmt: skip
    """`scatter` that keeps the smaller of the update and what is there; NaN wins.

    >>> places = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_min(np.arange(3), np.array([[2]]), np.array([5]), places).tolist()
    [0, 1, 2]
    """
    return _scatter(
        SCATTER_MIN, operand, scatter_indices, updates, dimension_numbers, unique_indices, mode
    )


def scatter_max(
    operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:  # fmt: skip
    """`scatter` that keeps the larger of the update and what is there; NaN wins.

    >>> places = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_max(np.arange(3), np.array([[2]]), np.array([5]), places).tolist()
    [0, 1, 5]
    """
    return _scatter(
        SCATTER_MAX, operand, scatter_indices, updates, dimension_numbers, unique_indices, mode
    )


def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Any:
    """Elements of `src` along `axes` at the positions of equal-length index vectors `idxs`.

    The result has the vectors' axis first, then the axes of `src` that are not taken.

    >>> index_take(np.arange(5) * 10, (np.array([1, 4]),), (0,)).tolist()
    [10, 40]
    """
    shape = type_of(src).shape
    indices = concatenate([reshape(i, (type_of(i).shape[0], 1)) for i in idxs], 1)
    taken = tuple(int(a) for a in axes)
    sizes = tuple(1 if d in taken else n for d, n in enumerate(shape))
    numbers = GatherDimensionNumbers(tuple(range(1, len(shape) - len(taken) + 1)), taken, taken)
    return gather(src, indices, numbers, sizes, mode="fill")


def take_along(x: Any, indices: Any, axis: int, mode: Any = "clip") -> Any:
    """x[..., indices[..., j, ...], ...] along one axis; the other axes correspond.

    >>> take_along(np.array([[1, 2], [3, 4]]), np.array([[1], [0]]), 1).tolist()
    [[2], [3]]
    """
    shape = type_of(indices).shape
    rank = len(shape)
    others = tuple(d for d in range(rank) if d != axis)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    return gather(
        x, reshape(indices, (*shape, 1)), numbers,
        tuple(min(1, n) for n in type_of(x).shape), mode=mode,
    )  # fmt: skip
