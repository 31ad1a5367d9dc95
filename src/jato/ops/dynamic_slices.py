"""Windows of fixed size at positions known at run time: dynamic_slice, dynamic_update_slice.

    dynamic_slice(operand, *starts)    <->    dynamic_update_slice(operand, update, *starts)

A window that would stick out is moved inside.  With the parameter `negative`, starts below 0 count
from the end first.  Both are index arithmetic with starts read at run time, and fuse.  The
functions that users call are in indexing.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import check
from jato.core.primitive import AxisData, UndefinedPrimal
from jato.core.types import Zero, array_type, tangent_type, type_of
from jato.ops.convert import convert_element_type
from jato.ops.elementwise import add, lt, select_n
from jato.ops.families import TypeCached, is_zero_tangent
from jato.ops.gather_geometry import (
    CLIP,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    shifted,
)
from jato.ops.gather_scatter import (
    GATHER,
    SCATTER,
)
from jato.ops.shapes import instantiate, mapped_first, move_axis, zeros
from jato.ops.structural import concatenate, full, reshape


def _clamped_starts(b: Any, starts: Sequence[Any], sizes: Sequence[int], shape: Sequence[int],
                    negative: bool) -> list[Any]:  # fmt: skip
    """Loop IR: the starts, moved so that the window is inside."""
    result = []
    for read, size, extent in zip(starts, sizes, shape, strict=True):
        if size == extent:
            result.append(b.index(0))
            continue
        start = b.convert(read(()), "i64")
        if negative and not dtypes.is_unsigned(read.aval.dtype):
            start = b.select(b.lt(start, b.index(0)), b.add(start, b.index(extent)), start)
        result.append(b.max(b.min(start, b.index(extent - size)), b.index(0)))
    return result


def _numpy_starts(starts: Sequence[Any], sizes: Sequence[int], shape: Sequence[int],
                  negative: bool) -> list[int]:  # fmt: skip
    result = []
    for start, size, extent in zip(map(int, starts), sizes, shape, strict=True):
        start += extent if negative and start < 0 else 0
        result.append(max(min(start, extent - size), 0))
    return result


def _check_starts(name: str, operand: Any, starts: Sequence[Any]) -> None:
    check(
        len(starts) == operand.ndim,
        ValueError,
        f"{name}: expected one start index per axis of the operand {operand}, got {len(starts)}.",
    )
    for s in starts:
        check(
            not s.shape and dtypes.is_integer(s.dtype),
            TypeError,
            f"{name}: argument 'start_indices': expected integer scalars, got {s}.",
        )


def _start_vectors(starts: Sequence[Any], dims: Sequence[Any], axis: AxisData) -> Any:
    """Mapped start scalars -> one array of starts, [axis.size, number of starts]."""
    dtype = np.dtype("int64" if any(type_of(s).itemsize == 8 for s in starts) else "int32")
    columns = []
    for s, d in zip(starts, dims, strict=True):
        s = mapped_first(convert_element_type(s, dtype), d, axis.size)
        columns.append(reshape(s, (axis.size, 1)))
    return concatenate(columns, 1) if columns else full((axis.size, 0), 0, dtype)


def _wrapped(starts: Sequence[Any], shape: Sequence[int], negative: bool) -> list[Any]:
    """Starts with the extent added to negative ones, as operations."""
    if not negative:
        return list(starts)
    result = []
    for s, n in zip(starts, shape, strict=True):
        aval = type_of(s)
        if dtypes.is_unsigned(aval.dtype):
            result.append(s)
            continue
        zero = full(aval.shape, 0, aval.dtype)
        extent = full(aval.shape, n, aval.dtype)
        result.append(select_n(lt(s, zero), s, add(s, extent)))
    return result


class DynamicSlice(TypeCached):
    """operand, one start per axis -> window of `slice_sizes`, moved inside where necessary."""

    fusable = True

    def result_type(
        self, operand: Any, *starts: Any, slice_sizes: tuple[int, ...], negative: bool
    ) -> Any:
        _check_starts(self.name, operand, starts)
        check(
            len(slice_sizes) == operand.ndim
            and all(0 <= n <= m for n, m in zip(slice_sizes, operand.shape, strict=True)),
            TypeError if len(slice_sizes) == operand.ndim else ValueError,
            f"dynamic_slice: argument 'slice_sizes': expected one size per axis of the operand, "
            f"at most its shape {operand.shape}, got {slice_sizes}.",
        )
        return array_type(slice_sizes, operand.dtype, operand.weak_type)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = self.bind(*primals, **params)
        if is_zero_tangent(tangents[0]):
            return out, Zero(tangent_type(type_of(out)))
        return out, self.bind(tangents[0], *primals[1:], **params)

    def transpose(self, cotangent: Any, operand: Any, *starts: Any, slice_sizes: tuple[int, ...],
                  negative: bool) -> Sequence[Any]:  # fmt: skip
        if type(cotangent) is Zero:
            return [Zero(operand.aval), *[None] * len(starts)]
        blank = zeros(operand.aval)
        ct = DYNAMIC_UPDATE_SLICE.bind(blank, cotangent, *starts, negative=negative)
        return [ct, *[None] * len(starts)]

    def batch(self, axis: AxisData, operands: Sequence[Any], dims: Sequence[Any], *,
              slice_sizes: tuple[int, ...], negative: bool) -> Any:  # fmt: skip
        operand, *starts = operands
        d, *start_dims = dims
        if all(s is None for s in start_dims):
            operand = move_axis(operand, d, 0)
            out = self.bind(
                operand, 0, *starts, slice_sizes=(axis.size, *slice_sizes), negative=negative
            )
            return out, 0
        shape = list(type_of(operand).shape)
        if d is not None:
            del shape[d]
        starts = _wrapped(starts, shape, negative)
        indices = _start_vectors(starts, start_dims, axis)
        rank = len(slice_sizes)
        numbers = GatherDimensionNumbers(tuple(range(1, rank + 1)), (), tuple(range(rank)))
        params = {"slice_sizes": slice_sizes, "mode": CLIP, "fill_value": None,
                  "dimension_numbers": numbers}  # fmt: skip
        if d is None:
            return GATHER.bind(operand, indices, **params), 0
        # indices are already [n, rank]: their first axis moves along with the operand's
        numbers = GatherDimensionNumbers(
            tuple(range(1, rank + 1)), (), shifted(range(rank)), (0,), (0,)
        )
        params |= {"slice_sizes": (min(1, axis.size), *slice_sizes), "dimension_numbers": numbers}
        return GATHER.bind(move_axis(operand, d, 0), indices, **params), 0

    def lower(self, b: Any, inputs: Sequence[Any], index: tuple[Any, ...], out: Any, *,
              slice_sizes: tuple[int, ...], negative: bool) -> Any:  # fmt: skip
        shape = inputs[0].aval.shape
        starts = _clamped_starts(b, inputs[1:], slice_sizes, shape, negative)
        return inputs[0](tuple(b.add(s, i) for s, i in zip(starts, index, strict=True)))

    def simplify(self, node: Any, rewriter: Any) -> Any:
        # the whole operand
        if node.params["slice_sizes"] == node.inputs[0].aval.shape:
            return [node.inputs[0]]
        return None

    def reference(
        self, operand: Any, *starts: Any, slice_sizes: tuple[int, ...], negative: bool
    ) -> Any:
        at = _numpy_starts(starts, slice_sizes, operand.shape, negative)
        return operand[tuple(np.s_[s : s + n] for s, n in zip(at, slice_sizes, strict=True))]


class DynamicUpdateSlice(TypeCached):
    """operand, update, one start per axis -> operand with the window overwritten."""

    fusable = True

    def result_type(self, operand: Any, update: Any, *starts: Any, negative: bool) -> Any:
        _check_starts(self.name, operand, starts)
        check(
            update.ndim == operand.ndim
            and all(n <= m for n, m in zip(update.shape, operand.shape, strict=True)),
            TypeError,
            f"dynamic_update_slice: argument 'update': expected the operand's rank and sizes of at "
            f"most its shape {operand.shape}, got {update.shape}.",
        )
        check(
            update.dtype == operand.dtype,
            TypeError,
            f"dynamic_update_slice: argument 'update': expected the operand's dtype "
            f"{operand.dtype}, got {update.dtype}.",
        )
        return array_type(operand.shape, operand.dtype, operand.weak_type and update.weak_type)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = self.bind(*primals, **params)
        if is_zero_tangent(tangents[0]) and is_zero_tangent(tangents[1]):
            return out, Zero(tangent_type(type_of(out)))
        return out, self.bind(
            instantiate(tangents[0]), instantiate(tangents[1]), *primals[2:], **params
        )

    def transpose(self, cotangent: Any, operand: Any, update: Any, *starts: Any,
                  negative: bool) -> Sequence[Any]:  # fmt: skip
        results: list[Any] = [None] * (2 + len(starts))
        update_aval = update.aval if isinstance(update, UndefinedPrimal) else type_of(update)
        for i, x in enumerate((operand, update)):
            if not isinstance(x, UndefinedPrimal):
                continue
            if type(cotangent) is Zero:
                results[i] = Zero(x.aval)
            elif i == 0:
                results[i] = self.bind(cotangent, zeros(update_aval), *starts, negative=negative)
            else:
                results[i] = DYNAMIC_SLICE.bind(
                    cotangent, *starts, slice_sizes=update_aval.shape, negative=negative
                )
        return results

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[Any], *, negative: bool
    ) -> Any:
        operand, update, *starts = operands
        operand_dim, update_dim, *start_dims = dims
        operand = mapped_first(operand, operand_dim, axis.size)
        update = mapped_first(update, update_dim, axis.size)
        if all(s is None for s in start_dims):
            return self.bind(operand, update, 0, *starts, negative=negative), 0
        starts = _wrapped(starts, type_of(operand).shape[1:], negative)
        indices = _start_vectors(starts, start_dims, axis)
        rank = type_of(operand).ndim - 1
        numbers = ScatterDimensionNumbers(
            tuple(range(1, rank + 1)), (), shifted(range(rank)), (0,), (0,)
        )
        out = SCATTER.bind(
            operand, indices, update, dimension_numbers=numbers, mode=CLIP, unique_indices=True
        )
        return out, 0

    def lower(self, b: Any, inputs: Sequence[Any], index: tuple[Any, ...], out: Any, *,
              negative: bool) -> Any:  # fmt: skip
        operand, update, *starts = inputs
        sizes = update.aval.shape
        if 0 in sizes:
            return operand(index)
        inside = b.const(True, "bool")
        at = []
        clamped = _clamped_starts(b, starts, sizes, operand.aval.shape, negative)
        for i, start, size, extent in zip(index, clamped, sizes, operand.aval.shape, strict=True):
            position = b.sub(i, start)
            if size != extent:
                inside = b.and_(inside, b.ge(position, b.index(0)))
                inside = b.and_(inside, b.lt(position, b.index(size)))
            at.append(position)
        outside = b.not_(inside)
        return b.select(
            inside,
            b.guarded(inside, lambda: update(tuple(at)), 0),
            b.guarded(outside, lambda: operand(index), 0),
        )

    def reference(self, operand: Any, update: Any, *starts: Any, negative: bool) -> Any:
        at = _numpy_starts(starts, update.shape, operand.shape, negative)
        out = np.array(operand)
        out[tuple(np.s_[s : s + n] for s, n in zip(at, update.shape, strict=True))] = update
        return out


DYNAMIC_SLICE = DynamicSlice("dynamic_slice")
DYNAMIC_UPDATE_SLICE = DynamicUpdateSlice("dynamic_update_slice")
