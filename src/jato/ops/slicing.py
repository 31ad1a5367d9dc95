"""Primitives that cut and join: slice, its dual pad, concatenate.

Start reading at `Slice`.  The functions that users call are in structural.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.core.primitive import AxisData, UndefinedPrimal
from jato.core.types import ArrayType, Zero, tangent_type, type_of
from jato.ops.families import Shape, is_zero_tangent, transposed
from jato.ops.shapes import (
    REDUCE_SUM,
    RESHAPE,
    Linear,
    broadcast_to,
    instantiate,
    mapped_first,
    scalar_of,
)

PaddingConfig = tuple[tuple[int, int, int], ...]


class Slice(Linear):
    """out[i] = x[start + i * stride], up to limit."""

    def result_type(
        self, x: Any, *, start_indices: Shape, limit_indices: Shape, strides: Shape
    ) -> Any:
        for name, values in (
            ("start_indices", start_indices),
            ("limit_indices", limit_indices),
            ("strides", strides),
        ):
            if len(values) != x.ndim:
                self.fail(f"expected {x.ndim} {name} for operand of type {x}, got {values}.")
        rows = zip(start_indices, limit_indices, strides, x.shape, strict=True)
        for axis, (start, limit, stride, n) in enumerate(rows):
            if not 0 <= start <= limit <= n:
                self.fail(
                    f"expected 0 <= start <= limit <= {n} on axis {axis} of x ({x}), got start "
                    f"{start}, limit {limit}."
                )
            if stride < 1:
                self.fail(f"expected positive strides, got {strides}.")
        shape = tuple(
            -(-(limit - start) // stride)
            for start, limit, stride in zip(start_indices, limit_indices, strides, strict=True)
        )
        return ArrayType(shape, x.dtype_code, x.weak_type)

    @transposed
    def transpose(
        self, cotangent: Any, x: Any, *, start_indices: Shape, limit_indices: Shape, strides: Shape
    ) -> Sequence[Any]:
        rows = zip(x.aval.shape, type_of(cotangent).shape, start_indices, strides, strict=True)
        config = tuple(
            (start, n - (start + (m - 1) * stride + 1) if m else n - start, stride - 1)
            for n, m, start, stride in rows
        )
        return [pad_zeros(cotangent, config)]

    def batch(
        self,
        axis: AxisData,
        operands: Any,
        dims: Any,
        *,
        start_indices: Shape,
        limit_indices: Shape,
        strides: Shape,
    ) -> Any:
        dim = dims[0]

        def insert(values: Shape, value: int) -> Shape:
            return (*values[:dim], value, *values[dim:])

        out = self.bind(
            operands[0],
            start_indices=insert(start_indices, 0),
            limit_indices=insert(limit_indices, axis.size),
            strides=insert(strides, 1),
        )
        return out, dim

    def lower(
        self,
        b: Any,
        inputs: Any,
        index: Any,
        out: Any,
        *,
        start_indices: Shape,
        limit_indices: Shape,
        strides: Shape,
    ) -> Any:
        position = tuple(
            b.add(b.mul(i, b.index(stride)), b.index(start))
            for i, start, stride in zip(index, start_indices, strides, strict=True)
        )
        return inputs[0](position)

    def simplify(self, node: Any, rewriter: Any) -> Any:
        (x,) = node.inputs
        return [x] if x.aval is node.outputs[0].aval else None

    def reference(
        self, x: Any, *, start_indices: Shape, limit_indices: Shape, strides: Shape
    ) -> Any:
        rows = zip(start_indices, limit_indices, strides, strict=True)
        return np.asarray(x)[tuple(slice(*row) for row in rows)].copy()


class Pad(Linear):
    """x with `padding_value` before, after and between its elements: (low, high, interior) per
    axis.  Negative low and high cut.

    The padding value is a scalar for users.  Under vmap it may have one axis or more: those of
    the first axes of x, which are not padded then.
    """

    def result_type(self, x: Any, padding_value: Any, *, padding_config: PaddingConfig) -> Any:
        if padding_value.dtype_code != x.dtype_code:
            self.fail(f"expected operand and padding_value of one dtype, got {x} and {padding_value}.")
        if len(padding_config) != x.ndim:
            self.fail(
                f"expected padding_config with {x.ndim} entries (low, high, interior) for {x}, "
                f"got {padding_config}."
            )
        k = padding_value.ndim
        if padding_value.shape != x.shape[:k] or any(
            padding_config[i] != (0, 0, 0) for i in range(k)
        ):
            self.fail(f"expected padding_value to be a scalar, got {padding_value}.")
        shape = []
        for axis, (n, (low, high, interior)) in enumerate(
            zip(x.shape, padding_config, strict=True)
        ):
            if interior < 0:
                self.fail(f"expected interior padding >= 0, got {interior} for axis {axis}.")
            extent = low + high + n + max(n - 1, 0) * interior
            if extent < 0:
                self.fail(
                    f"the padding ({low}, {high}, {interior}) of axis {axis} of x ({x}) cuts more "
                    "than there is.",
                    error=ValueError,
                )
            shape.append(extent)
        return ArrayType(tuple(shape), x.dtype_code, x.weak_type and padding_value.weak_type)

    @transposed
    def transpose(
        self, cotangent: Any, x: Any, padding_value: Any, *, padding_config: PaddingConfig
    ) -> Sequence[Any]:
        shape = x.aval.shape if type(x) is UndefinedPrimal else type_of(x).shape
        config = []
        crop = []
        for low, high, interior in padding_config:
            crop.append((max(-low, 0), max(-high, 0), 0))
            config.append((max(low, 0), max(high, 0), interior))
        if any(low or high for low, high, _ in crop):  # what was cut off has a cotangent of zero
            cotangent = pad_zeros(cotangent, tuple(crop))
        out: list[Any] = [None, None]
        if type(x) is UndefinedPrimal:
            out[0] = _strided(
                cotangent,
                [
                    (low, low + max(n - 1, 0) * (interior + 1) + min(n, 1), interior + 1)
                    for n, (low, _, interior) in zip(shape, config, strict=True)
                ],
            )
        if type(padding_value) is UndefinedPrimal:
            out[1] = _sum_of_padding(cotangent, shape, config, padding_value.aval)
        return out

    def batch(
        self, axis: AxisData, operands: Any, dims: Any, *, padding_config: PaddingConfig
    ) -> Any:
        x, padding_value = operands
        x_dim, value_dim = dims
        x = mapped_first(x, x_dim, axis.size)
        if value_dim is not None or type_of(padding_value).ndim:
            padding_value = mapped_first(padding_value, value_dim, axis.size)
        return self.bind(x, padding_value, padding_config=((0, 0, 0), *padding_config)), 0

    def lower(
        self, b: Any, inputs: Any, index: Any, out: Any, *, padding_config: PaddingConfig
    ) -> Any:
        x, padding_value = inputs
        inside = b.const(True, "bool")
        position = []
        for i, n, (low, high, interior) in zip(index, x.aval.shape, padding_config, strict=True):
            if low == high == interior == 0:
                position.append(i)
                continue
            place = b.sub(i, b.index(low))
            if low > 0:
                inside = b.and_(inside, b.ge(place, b.index(0)))
            inside = b.and_(inside, b.lt(place, b.index(n + max(n - 1, 0) * interior)))
            if interior:
                step = b.index(interior + 1)
                inside = b.and_(inside, b.eq(b.rem(place, step), b.index(0)))
                place = b.div(place, step)
            position.append(place)
        value = padding_value(index[: padding_value.aval.ndim])
        return b.guarded(inside, lambda: x(tuple(position)), value)

    def simplify(self, node: Any, rewriter: Any) -> Any:
        x = node.inputs[0]
        unpadded = all(c == (0, 0, 0) for c in node.params["padding_config"])
        return [x] if unpadded and x.aval is node.outputs[0].aval else None

    def reference(self, x: Any, padding_value: Any, *, padding_config: PaddingConfig) -> Any:
        padding_value = np.asarray(padding_value)
        full, cut, inner = [], [], []
        for n, (low, high, interior) in zip(x.shape, padding_config, strict=True):
            extent = n + max(n - 1, 0) * interior
            begin = max(low, 0)
            full.append(begin + extent + max(high, 0))
            inner.append(slice(begin, begin + extent, interior + 1))
            cut.append(slice(max(-low, 0), full[-1] - max(-high, 0)))
        spread = padding_value.reshape(padding_value.shape + (1,) * (x.ndim - padding_value.ndim))
        out = np.broadcast_to(spread, full).astype(x.dtype)
        out[tuple(inner)] = x
        return out[tuple(cut)].copy()


def pad_zeros(x: Any, config: PaddingConfig) -> Any:
    """`x` padded with zeros."""
    return PAD.bind(x, scalar_of(0, type_of(x).dtype), padding_config=config)


def _strided(x: Any, rows: Sequence[tuple[int, int, int]]) -> Any:
    starts, limits, strides = zip(*rows, strict=True) if rows else ((), (), ())
    return SLICE.bind(x, start_indices=starts, limit_indices=limits, strides=strides)


def _sum_of_padding(
    cotangent: Any, shape: Shape, config: Sequence[tuple[int, int, int]], aval: Any
) -> Any:
    """The sum over the padded places, gathered axis by axis from disjoint regions.

    (Not the sum of everything less the sum over x: that cancels, and inf - inf is NaN.)
    """
    k = aval.ndim
    kept = tuple(range(k))
    parts: list[Any] = []
    rest = cotangent  # what is not yet known to be padding
    for axis in range(k, len(shape)):
        n, (low, _, interior) = shape[axis], config[axis]
        extent = n + max(n - 1, 0) * interior
        total = type_of(rest).shape[axis]
        for begin, end in ((0, low), (low + extent, total)):
            if end > begin:
                parts.append(_total(_range(rest, axis, begin, end), kept))
        rest = _range(rest, axis, low, low + extent)
        if interior and n > 1:
            before = [(0, 0, 0)] * axis
            after = [(0, 0, 0)] * (len(shape) - axis - 1)
            rows = type_of(rest).shape
            split = (*rows[:axis], n, interior + 1, *rows[axis + 1 :])
            whole = pad_zeros(rest, (*before, (0, interior, 0), *after))
            grid = RESHAPE.bind(whole, new_sizes=split)
            parts.append(_total(_range(grid, axis + 1, 1, interior + 1), kept))
            rest = RESHAPE.bind(
                _range(grid, axis + 1, 0, 1),
                new_sizes=(*split[:axis], n, *split[axis + 2 :]),
            )
    if not parts:
        return Zero(aval)
    columns = [broadcast_to(p, (*aval.shape, 1), kept) for p in parts]
    return REDUCE_SUM.bind(CONCATENATE.bind(*columns, dimension=k), axes=(k,))


def _range(x: Any, axis: int, begin: int, end: int) -> Any:
    rows = [(0, n, 1) for n in type_of(x).shape]
    rows[axis] = (begin, end, 1)
    return _strided(x, rows)


def _total(x: Any, kept: Shape) -> Any:
    return REDUCE_SUM.bind(x, axes=tuple(i for i in range(type_of(x).ndim) if i not in kept))


# Every element of a concatenation is looked for in each operand in turn; more operands than these
# are put together in parts, which have memory of their own.
MOST_PARTS = 16


class Concatenate(Linear):
    """The operands one after the other along `dimension`."""

    def result_type(self, *operands: Any, dimension: int) -> Any:
        if not operands:
            self.fail("expected at least one array in operands, got none.", error=ValueError)
        first = operands[0]
        if not 0 <= dimension < first.ndim:
            self.fail(
                f"expected dimension to be an axis of the operands (first: {first}), "
                f"got {dimension}.",
                error=ValueError if first.ndim else TypeError,
            )
        extent = 0
        for position, x in enumerate(operands):
            if x.dtype_code != first.dtype_code:
                self.fail(
                    f"expected operands of one dtype, got {first} and, at position {position}, {x}."
                )
            if x.ndim != first.ndim or any(
                n != m
                for i, (n, m) in enumerate(zip(x.shape, first.shape, strict=True))
                if i != dimension
            ):
                self.fail(
                    f"expected operands that agree in all axes but {dimension}, got {first} and, "
                    f"at position {position}, {x}."
                )
            extent += x.shape[dimension]
        shape = (*first.shape[:dimension], extent, *first.shape[dimension + 1 :])
        return ArrayType(shape, first.dtype_code, all(x.weak_type for x in operands))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, dimension: int) -> Any:
        out = self.bind(*primals, dimension=dimension)
        if all(is_zero_tangent(t) for t in tangents):
            return out, Zero(tangent_type(type_of(out)))
        return out, self.bind(*map(instantiate, tangents), dimension=dimension)

    @transposed
    def transpose(self, cotangent: Any, *operands: Any, dimension: int) -> Sequence[Any]:
        out: list[Any] = []
        begin = 0
        for x in operands:
            undefined = type(x) is UndefinedPrimal
            end = begin + (x.aval if undefined else type_of(x)).shape[dimension]
            out.append(_range(cotangent, dimension, begin, end) if undefined else None)
            begin = end
        return out

    def batch(self, axis: AxisData, operands: Any, dims: Any, *, dimension: int) -> Any:
        moved = [mapped_first(x, d, axis.size) for x, d in zip(operands, dims, strict=True)]
        return self.bind(*moved, dimension=dimension + 1), 0

    def lower(self, b: Any, inputs: Any, index: Any, out: Any, *, dimension: int) -> Any:
        place = index[dimension]
        end = out.shape[dimension]
        value: Any = b.const(0, dtypes.scalar_name(out))
        for x in reversed(inputs):
            begin = end - x.aval.shape[dimension]
            if begin == end:
                continue
            inside = b.and_(b.ge(place, b.index(begin)), b.lt(place, b.index(end)))
            position = (*index[:dimension], b.sub(place, b.index(begin)), *index[dimension + 1 :])
            value = b.guarded(inside, lambda x=x, position=position: x(position), value)
            end = begin
        return value

    def simplify(self, node: Any, rewriter: Any) -> Any:
        # empty operands add nothing
        dimension = node.params["dimension"]
        filled = [x for x in node.inputs if x.aval.shape[dimension]]
        if len(filled) <= 1:
            x = filled[0] if filled else node.inputs[0]
            return [x] if x.aval is node.outputs[0].aval else None
        if len(filled) > MOST_PARTS:
            # concatenate(a, b, ...) -> concatenate(concatenate(a, ...), concatenate(...), ...)
            size = max(MOST_PARTS, -(-len(filled) // MOST_PARTS))
            filled = [
                rewriter.bind(self, *filled[i : i + size], dimension=dimension)[0]
                for i in range(0, len(filled), size)
            ]
        elif len(filled) == len(node.inputs):
            return None
        return rewriter.bind(self, *filled, dimension=dimension)

    def reference(self, *operands: Any, dimension: int) -> Any:
        return np.concatenate(operands, axis=dimension)


SLICE = Slice("slice")
PAD = Pad("pad")
CONCATENATE = Concatenate("concatenate")
