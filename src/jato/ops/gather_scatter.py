"""Reads and writes at many positions known at run time: gather and the scatters.

    gather                windows of the operand              <-> scatter_add
    scatter               writes windows; later updates win where windows overlap
    scatter_mul/min/max   combine windows with what is there

The duals sit together, since each is the other's transpose.  The geometry (dimension numbers) is
that of JAX; gather_geometry.py explains it.  What happens out of bounds:

    mode clip                 the window is moved inside
    mode fill (drop)          reads give `fill_value`, updates are dropped as a whole window
    mode promise_in_bounds    taken as clip: a broken promise must not read foreign memory

gather is fusable (`lower`).  The scatters are loops over updates: `Scatter.operand_index` tells
the compiler where an update lands, `combine` what happens there; the updates of one place are
applied in row-major order.  The functions that users call are in indexing.py.  Start reading at
`Gather.source_index`.
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
from jato.ops.elementwise import add, div, eq, mul, select_n
from jato.ops.families import TypeCached, is_zero_tangent
from jato.ops.gather_geometry import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    check_geometry,
    fill_of,
    locate,
    numpy_locate,
    other_axes,
    shifted,
)
from jato.ops.reduce import largest, smallest
from jato.ops.shapes import instantiate, mapped_first, move_axis, zeros
from jato.ops.structural import full, iota, reshape


class Gather(TypeCached):
    """operand, indices -> windows.  Params: dimension_numbers, slice_sizes, mode, fill_value."""

    fusable = True

    def result_type(
        self, operand: Any, indices: Any, *, dimension_numbers: GatherDimensionNumbers,
        slice_sizes: tuple[int, ...], mode: GatherScatterMode, fill_value: Any,
    ) -> Any:  # fmt: skip
        n = dimension_numbers
        check(
            dtypes.is_integer(indices.dtype) and indices.ndim >= 1,
            TypeError,
            "gather: argument 'start_indices': expected integers with at least one axis, got "
            f"{indices}.",
        )
        check_geometry(
            "gather", operand, indices, slice_sizes, n.collapsed_slice_dims, n.start_index_map,
            n.operand_batching_dims, n.start_indices_batching_dims,
        )  # fmt: skip
        kept = other_axes(operand.ndim, n.collapsed_slice_dims, n.operand_batching_dims)
        rank = len(n.offset_dims) + indices.ndim - 1
        check(
            len(kept) == len(n.offset_dims)
            and sorted(set(n.offset_dims)) == list(n.offset_dims)
            and all(0 <= d < rank for d in n.offset_dims),
            TypeError,
            f"gather: dimension_numbers: offset_dims must be {len(kept)} ascending axes of the "
            f"result (of rank {rank}), got {n.offset_dims}.",
        )
        window = dict(zip(n.offset_dims, (slice_sizes[d] for d in kept), strict=True))
        batch = iter(indices.shape[:-1])
        shape = tuple(window[d] if d in window else next(batch) for d in range(rank))
        return array_type(shape, operand.dtype, operand.weak_type)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = self.bind(*primals, **params)
        if is_zero_tangent(tangents[0]):
            return out, Zero(tangent_type(type_of(out)))
        return out, self.bind(tangents[0], primals[1], **(params | {"fill_value": 0}))

    def transpose(
        self, cotangent: Any, operand: Any, indices: Any, *,
        dimension_numbers: GatherDimensionNumbers, mode: GatherScatterMode, **params: Any,
    ) -> Sequence[Any]:  # fmt: skip
        if type(cotangent) is Zero:
            return [Zero(operand.aval), None]
        ct = SCATTER_ADD.bind(
            zeros(operand.aval), indices, cotangent,
            dimension_numbers=ScatterDimensionNumbers(*dimension_numbers),
            mode=mode, unique_indices=False,
        )  # fmt: skip
        return [ct, None]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[Any], *,
        dimension_numbers: GatherDimensionNumbers, slice_sizes: tuple[int, ...], **params: Any,
    ) -> Any:  # fmt: skip
        operand, indices = operands
        n = dimension_numbers
        offsets = shifted(n.offset_dims)
        collapsed = shifted(n.collapsed_slice_dims)
        starts = shifted(n.start_index_map)
        moving = shifted(n.operand_batching_dims)
        along = n.start_indices_batching_dims
        if dims[1] is None:
            operand = move_axis(operand, dims[0], 0)
            numbers = GatherDimensionNumbers((0, *offsets), collapsed, starts, moving, along)
            sizes = (axis.size, *slice_sizes)
        elif dims[0] is None:
            indices = move_axis(indices, dims[1], 0)
            numbers = n._replace(offset_dims=offsets, start_indices_batching_dims=shifted(along))
            sizes = slice_sizes
        else:
            operand = move_axis(operand, dims[0], 0)
            indices = move_axis(indices, dims[1], 0)
            numbers = GatherDimensionNumbers(
                offsets, collapsed, starts, (0, *moving), (0, *shifted(along))
            )
            sizes = (min(1, axis.size), *slice_sizes)
        return self.bind(
            operand, indices, dimension_numbers=numbers, slice_sizes=sizes, **params
        ), 0

    def source_index(
        self, b: Any, index: Sequence[Any], read_indices: Any, operand: Any, *,
        dimension_numbers: GatherDimensionNumbers, slice_sizes: tuple[int, ...],
        mode: GatherScatterMode, fill_value: Any,
    ) -> tuple[tuple[Any, ...], Any]:  # fmt: skip
        """Loop IR: (index into the operand, in-bounds condition or None) at a result's index."""
        n = dimension_numbers
        batch = [index[d] for d in other_axes(len(index), n.offset_dims)]
        moving = dict(zip(n.operand_batching_dims, n.start_indices_batching_dims, strict=True))
        at, inside = locate(
            b, read_indices, batch, operand.shape, slice_sizes, n.start_index_map, moving, mode
        )
        kept = other_axes(operand.ndim, n.collapsed_slice_dims, n.operand_batching_dims)
        for d, offset in zip(kept, n.offset_dims, strict=True):
            at[d] = b.add(at[d], index[offset])
        return tuple(at), inside

    def lower(
        self, b: Any, inputs: Sequence[Any], index: tuple[Any, ...], out: Any, **params: Any
    ) -> Any:
        operand = inputs[0]
        if 0 in operand.aval.shape:  # nothing to read: all is out of bounds
            return b.const(fill_of(params["fill_value"], out.dtype), dtypes.scalar_name(out))
        at, inside = self.source_index(b, index, inputs[1], operand.aval, **params)
        if inside is None:
            return operand(at)
        fill = b.const(fill_of(params["fill_value"], out.dtype), dtypes.scalar_name(out))
        return b.guarded(inside, lambda: operand(at), fill)

    def reference(
        self, operand: Any, indices: Any, *, dimension_numbers: GatherDimensionNumbers,
        slice_sizes: tuple[int, ...], mode: GatherScatterMode, fill_value: Any,
    ) -> Any:  # fmt: skip
        n = dimension_numbers
        moving = dict(zip(n.operand_batching_dims, n.start_indices_batching_dims, strict=True))
        at, inside = numpy_locate(
            indices, operand.shape, slice_sizes, n.start_index_map, moving, mode
        )
        kept = other_axes(operand.ndim, n.collapsed_slice_dims, n.operand_batching_dims)
        rank = len(n.offset_dims) + indices.ndim - 1
        places = other_axes(rank, n.offset_dims)
        shape = [1] * rank
        full_shape = [0] * rank
        for place, size in zip(places, indices.shape[:-1], strict=True):
            shape[place] = full_shape[place] = size
        at = [a.reshape(shape) for a in at]
        for d, offset in zip(kept, n.offset_dims, strict=True):
            full_shape[offset] = slice_sizes[d]
            along = [1] * rank
            along[offset] = slice_sizes[d]
            at[d] = at[d] + np.arange(slice_sizes[d]).reshape(along)
        good = np.broadcast_to(inside.reshape(shape), full_shape)
        fill = np.asarray(fill_of(fill_value, operand.dtype)).astype(operand.dtype)
        if 0 in operand.shape:
            return np.full(full_shape, fill, operand.dtype)
        at = np.broadcast_arrays(*at, np.zeros(full_shape, np.int8))[:-1]
        return np.where(good, operand[tuple(at)], fill)


# ---- scatter


class Scatter(TypeCached):
    """operand, indices, updates -> operand with updates applied.

    Params: dimension_numbers, mode, unique_indices (promised by the user; only a hint).
    Members say how an update meets the old value: `combine(b, old, new)`, `ufunc`.
    """

    ufunc: Any = None  # NumPy's, with .at; None: assignment

    def combine(self, b: Any, old: Any, new: Any) -> Any:
        """Loop IR: the value that replaces `old`."""
        raise NotImplementedError

    def identity(self, dtype: Any) -> Any:
        """The number that `combine` ignores, if updates may be combined in any order; else None."""
        return None

    # -- geometry

    @staticmethod
    def window(operand: Any, updates: Any, n: ScatterDimensionNumbers) -> tuple[int, ...]:
        """Extents of an update's window along the axes of the operand."""
        kept = other_axes(operand.ndim, n.inserted_window_dims, n.operand_batching_dims)
        sizes = [min(1, m) for m in operand.shape]
        for d, u in zip(kept, n.update_window_dims, strict=True):
            sizes[d] = updates.shape[u]
        return tuple(sizes)

    def operand_index(
        self, b: Any, index: Sequence[Any], read_indices: Any, operand: Any, updates: Any, *,
        dimension_numbers: ScatterDimensionNumbers, mode: GatherScatterMode, unique_indices: bool,
    ) -> tuple[tuple[Any, ...], Any]:  # fmt: skip
        """Loop IR: (index into the operand, in-bounds condition or None) of the update at `index`.

        `operand` and `updates` are ArrayTypes; `read_indices(index)` reads the indices."""
        n = dimension_numbers
        batch = [index[d] for d in other_axes(len(index), n.update_window_dims)]
        moving = dict(zip(n.operand_batching_dims, n.scatter_indices_batching_dims, strict=True))
        at, inside = locate(
            b, read_indices, batch, operand.shape, self.window(operand, updates, n),
            n.scatter_dims_to_operand_dims, moving, mode,
        )  # fmt: skip
        kept = other_axes(operand.ndim, n.inserted_window_dims, n.operand_batching_dims)
        for d, u in zip(kept, n.update_window_dims, strict=True):
            at[d] = b.add(at[d], index[u])
        return tuple(at), inside

    def gathered(
        self, x: Any, indices: Any, updates: Any, params: dict[str, Any], fill: Any = 0
    ) -> Any:
        """What x (of the operand's shape) holds where the updates go, in the updates' shape."""
        n = params["dimension_numbers"]
        return GATHER.bind(
            x, indices,
            dimension_numbers=GatherDimensionNumbers(*n),
            slice_sizes=self.window(type_of(x), updates, n),
            mode=params["mode"], fill_value=fill,
        )  # fmt: skip

    # -- rules

    def result_type(
        self, operand: Any, indices: Any, updates: Any, *,
        dimension_numbers: ScatterDimensionNumbers, mode: GatherScatterMode, unique_indices: bool,
    ) -> Any:  # fmt: skip
        n = dimension_numbers
        name = self.name
        check(
            dtypes.is_integer(indices.dtype) and indices.ndim >= 1,
            TypeError,
            f"{name}: argument 'scatter_indices': expected integers with at least one axis, "
            f"got {indices}.",
        )
        check(
            updates.dtype == operand.dtype,
            TypeError,
            f"{name}: argument 'updates': expected the operand's dtype {operand.dtype}, got "
            f"{updates.dtype}.",
        )
        kept = other_axes(operand.ndim, n.inserted_window_dims, n.operand_batching_dims)
        rank = len(n.update_window_dims) + indices.ndim - 1
        check(
            updates.ndim == rank
            and len(kept) == len(n.update_window_dims)
            and sorted(set(n.update_window_dims)) == list(n.update_window_dims)
            and all(0 <= d < rank for d in n.update_window_dims)
            and tuple(updates.shape[d] for d in other_axes(rank, n.update_window_dims))
            == indices.shape[:-1],
            TypeError,
            f"{name}: argument 'updates': expected the batch shape {indices.shape[:-1]} of the "
            f"indices and window axes {n.update_window_dims} for the operand's axes {kept}, "
            f"got shape {updates.shape}.",
        )
        check_geometry(
            name, operand, indices, self.window(operand, updates, n), n.inserted_window_dims,
            n.scatter_dims_to_operand_dims, n.operand_batching_dims,
            n.scatter_indices_batching_dims,
        )  # fmt: skip
        return array_type(operand.shape, operand.dtype, operand.weak_type and updates.weak_type)

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[Any], *,
        dimension_numbers: ScatterDimensionNumbers, **params: Any,
    ) -> Any:  # fmt: skip
        operand, indices, updates = operands
        n = dimension_numbers
        operand = mapped_first(operand, dims[0], axis.size)
        updates = mapped_first(updates, dims[2], axis.size)
        window = shifted(n.update_window_dims)
        inserted = shifted(n.inserted_window_dims)
        targets = shifted(n.scatter_dims_to_operand_dims)
        moving = shifted(n.operand_batching_dims)
        along = n.scatter_indices_batching_dims
        if dims[1] is None:
            numbers = ScatterDimensionNumbers((0, *window), inserted, targets, moving, along)
        else:
            indices = move_axis(indices, dims[1], 0)
            numbers = ScatterDimensionNumbers(
                window, inserted, targets, (0, *moving), (0, *shifted(along))
            )
        return self.bind(operand, indices, updates, dimension_numbers=numbers, **params), 0

    def reference(
        self, operand: Any, indices: Any, updates: Any, *,
        dimension_numbers: ScatterDimensionNumbers, mode: GatherScatterMode, unique_indices: bool,
    ) -> Any:  # fmt: skip
        n = dimension_numbers
        moving = dict(zip(n.operand_batching_dims, n.scatter_indices_batching_dims, strict=True))
        window = self.window(operand, updates, n)
        at, inside = numpy_locate(
            indices, operand.shape, window, n.scatter_dims_to_operand_dims, moving, mode
        )
        out = np.array(operand)
        if 0 in operand.shape or updates.size == 0:
            return out
        rank = updates.ndim
        shape = [1] * rank
        for place, size in zip(
            other_axes(rank, n.update_window_dims), indices.shape[:-1], strict=True
        ):
            shape[place] = size
        at = [a.reshape(shape) for a in at]
        kept = other_axes(operand.ndim, n.inserted_window_dims, n.operand_batching_dims)
        for d, u in zip(kept, n.update_window_dims, strict=True):
            along = [1] * rank
            along[u] = updates.shape[u]
            at[d] = at[d] + np.arange(updates.shape[u]).reshape(along)
        good = np.broadcast_to(inside.reshape(shape), updates.shape)
        at = [np.broadcast_to(a, updates.shape)[good] for a in at]
        if not at:  # rank-0 operand
            at, out = [np.zeros(int(good.sum()), np.int64)], out.reshape(1)
        if self.ufunc is None:
            out[tuple(at)] = updates[good]
        else:
            self.ufunc.at(out, tuple(at), updates[good])
        return out.reshape(operand.shape)


class ScatterSet(Scatter):
    def combine(self, b: Any, old: Any, new: Any) -> Any:
        return new

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        # updates are applied in order, so the tangents' winners are the values' winners
        operand, indices, updates = primals
        out = self.bind(operand, indices, updates, **params)
        if is_zero_tangent(tangents[0]) and is_zero_tangent(tangents[2]):
            return out, Zero(tangent_type(type_of(out)))
        tangent = self.bind(instantiate(tangents[0]), indices, instantiate(tangents[2]), **params)
        return out, tangent

    def transpose(
        self, cotangent: Any, operand: Any, indices: Any, updates: Any, **params: Any
    ) -> Sequence[Any]:
        operand_aval = _aval(operand)
        updates_aval = _aval(updates)
        results: list[Any] = [None, None, None]
        if isinstance(operand, UndefinedPrimal):
            results[0] = (
                Zero(operand_aval) if type(cotangent) is Zero
                else self.bind(cotangent, indices, zeros(updates_aval), **params)
            )  # fmt: skip
        if isinstance(updates, UndefinedPrimal):
            if type(cotangent) is Zero:
                results[2] = Zero(updates_aval)
            else:
                ct = self.gathered(cotangent, indices, updates_aval, params)
                if not params["unique_indices"]:
                    ct = self._winners_only(ct, indices, operand_aval, updates_aval, params)
                results[2] = ct
        return results

    def _winners_only(
        self, ct: Any, indices: Any, operand: Any, updates: Any, params: dict[str, Any]
    ) -> Any:
        """Cotangents of the updates that were not overwritten by later ones; 0 for the others.

        Which those are is found by scattering the updates' numbers."""
        dtype = np.dtype("int32" if updates.size < 2**31 else "int64")
        numbers = reshape(iota(dtype, updates.size), updates.shape)
        written = self.bind(full(operand.shape, -1, dtype), indices, numbers, **params)
        winner = self.gathered(written, indices, updates, params, fill=-1)
        return select_n(eq(winner, numbers), zeros(updates), ct)


class ScatterAdd(Scatter):
    ufunc = np.add

    def combine(self, b: Any, old: Any, new: Any) -> Any:
        return b.or_(old, new) if getattr(old, "dtype", "") == "bool" else b.add(old, new)

    def identity(self, dtype: Any) -> Any:
        return -0.0 if dtypes.is_floating(dtype) else 0  # -0 + 0 would be 0

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        operand, indices, updates = primals
        out = self.bind(operand, indices, updates, **params)
        if is_zero_tangent(tangents[2]):
            return out, Zero(tangent_type(type_of(out))) if is_zero_tangent(
                tangents[0]
            ) else tangents[0]
        tangent = self.bind(instantiate(tangents[0]), indices, tangents[2], **params)
        return out, tangent

    def transpose(
        self, cotangent: Any, operand: Any, indices: Any, updates: Any, **params: Any
    ) -> Sequence[Any]:
        results: list[Any] = [None, None, None]
        if isinstance(operand, UndefinedPrimal):
            results[0] = cotangent
        if isinstance(updates, UndefinedPrimal):
            results[2] = (
                Zero(updates.aval) if type(cotangent) is Zero
                else self.gathered(cotangent, indices, updates.aval, params)
            )  # fmt: skip
        return results


class ScatterMul(Scatter):
    """Linear in the operand; its derivative by the updates is exact to first order everywhere, and
    to all orders where updates of one place hold at most one zero."""

    ufunc = np.multiply

    def combine(self, b: Any, old: Any, new: Any) -> Any:
        return b.and_(old, new) if getattr(old, "dtype", "") == "bool" else b.mul(old, new)

    def identity(self, dtype: Any) -> Any:
        return 1

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        operand, indices, updates = primals
        out = self.bind(operand, indices, updates, **params)
        terms = []
        if not is_zero_tangent(tangents[0]):
            terms.append(self.bind(tangents[0], indices, updates, **params))
        if not is_zero_tangent(tangents[2]):
            if params["unique_indices"]:
                factor = self.gathered(operand, indices, type_of(updates), params)
            else:
                factor = self._other_factors(operand, indices, updates, params)
            blank = zeros(type_of(operand))
            terms.append(SCATTER_ADD.bind(blank, indices, mul(factor, tangents[2]), **params))
        if not terms:
            return out, Zero(tangent_type(type_of(out)))
        return out, terms[0] if len(terms) == 1 else add(*terms)

    def _other_factors(
        self, operand: Any, indices: Any, updates: Any, params: dict[str, Any]
    ) -> Any:
        """For each update the product of everything else multiplied into its place."""
        aval = type_of(updates)
        one = full(aval.shape, 1, aval.dtype)
        zero = zeros(aval)
        is_zero = eq(updates, zero)
        nonzero = select_n(is_zero, updates, one)
        product = self.gathered(
            self.bind(operand, indices, nonzero, **params), indices, aval, params
        )
        ones = convert_element_type(is_zero, np.dtype("int32"))
        count = SCATTER_ADD.bind(
            full(type_of(operand).shape, 0, np.dtype("int32")), indices, ones, **params
        )
        others = self.gathered(count, indices, aval, params)
        no_other_zero = eq(others, ones)
        return select_n(no_other_zero, zero, div(product, nonzero))

    def transpose(
        self, cotangent: Any, operand: Any, indices: Any, updates: Any, **params: Any
    ) -> Sequence[Any]:
        if type(cotangent) is Zero:
            return [Zero(operand.aval), None, None]
        return [self.bind(cotangent, indices, updates, **params), None, None]


class ScatterExtremum(Scatter):
    """Tangents are shared evenly among the operand and the updates that attain the extremum."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        operand, indices, updates = primals
        out = self.bind(operand, indices, updates, **params)
        if is_zero_tangent(tangents[0]) and is_zero_tangent(tangents[2]):
            return out, Zero(tangent_type(type_of(out)))
        dtype = type_of(operand).dtype
        kept = convert_element_type(eq(operand, out), dtype)
        won = convert_element_type(
            eq(updates, self.gathered(out, indices, type_of(updates), params, fill=None)), dtype
        )
        count = SCATTER_ADD.bind(kept, indices, won, **params)
        zero, one = zeros(type_of(count)), full(type_of(count).shape, 1, dtype)
        share = div(one, select_n(eq(count, zero), count, one))
        terms = []
        if not is_zero_tangent(tangents[0]):
            terms.append(mul(mul(kept, share), tangents[0]))
        if not is_zero_tangent(tangents[2]):
            weight = mul(won, self.gathered(share, indices, type_of(updates), params))
            terms.append(SCATTER_ADD.bind(zero, indices, mul(weight, tangents[2]), **params))
        return out, terms[0] if len(terms) == 1 else add(*terms)


class ScatterMin(ScatterExtremum):
    ufunc = np.minimum

    def identity(self, dtype: Any) -> Any:
        return None if dtypes.is_complex(dtype) else largest(dtype)

    def combine(self, b: Any, old: Any, new: Any) -> Any:
        return b.min(old, new)


class ScatterMax(ScatterExtremum):
    ufunc = np.maximum

    def identity(self, dtype: Any) -> Any:
        return None if dtypes.is_complex(dtype) else smallest(dtype)

    def combine(self, b: Any, old: Any, new: Any) -> Any:
        return b.max(old, new)


def _aval(x: Any) -> Any:
    return x.aval if isinstance(x, UndefinedPrimal) else type_of(x)


GATHER = Gather("gather")
SCATTER = ScatterSet("scatter")
SCATTER_ADD = ScatterAdd("scatter_add")
SCATTER_MUL = ScatterMul("scatter_mul")
SCATTER_MIN = ScatterMin("scatter_min")
SCATTER_MAX = ScatterMax("scatter_max")
