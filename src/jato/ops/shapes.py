"""Primitives that move or repeat elements, and their dual, the sum.

The family `Linear`: linear in all operands, so that tangents flow through the same kind of move.
Entries: iota, reshape, optimization_barrier, transpose, rev, broadcast_in_dim, reduce_sum (the transpose of
broadcast_in_dim, hence here), stop_gradient.  The functions that users call are in structural.py.

A mapped axis is put in front by these rules unless it can stay.  Start reading at `Linear`, then
`BroadcastInDim`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import fail
from jato.core.primitive import AxisData
from jato.core.types import ArrayType, Zero, array_type, tangent_type, type_of
from jato.ops.families import Shape, TypeCached, check_axes, is_zero_tangent, transposed
from jato.ops.reduction_family import Reduction


class Linear(TypeCached):
    """Linear in all operands (alike in type): the tangent is the same operation on tangents."""

    fusable = True

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = self.bind(*primals, **params)
        if all(is_zero_tangent(t) for t in tangents):
            return out, Zero(tangent_type(type_of(out)))
        return out, self.bind(*map(instantiate, tangents), **params)


# ---- making and moving, as the rules need it


def scalar_of(value: Any, dtype: Any) -> Any:
    """A Python number as a NumPy scalar of `dtype`."""
    return dtypes.as_dtype(dtype).type(value)


def zeros(aval: Any) -> Any:
    """An array of zeros of this type (strong)."""
    dtype = aval.dtype
    if dtype is dtypes.key:
        zero = array_type((), dtypes.key)
        fail(TypeError, "zeros", f"random keys have no zero ({zero})")
    value = np.zeros((), dtype)[()]
    return BROADCAST_IN_DIM.bind(value, shape=aval.shape, broadcast_dimensions=())


def instantiate(x: Any) -> Any:
    """A symbolic zero as an array; anything else as it is."""
    return zeros(x.aval) if type(x) is Zero else x


def broadcast_to(x: Any, shape: Shape, dimensions: Sequence[int]) -> Any:
    """`x` with its axis i at `dimensions[i]` of `shape`."""
    return BROADCAST_IN_DIM.bind(x, shape=tuple(shape), broadcast_dimensions=tuple(dimensions))


def move_axis(x: Any, source: int, destination: int) -> Any:
    """`x` with one axis moved, the others in order."""
    if source == destination:
        return x
    order = [i for i in range(type_of(x).ndim) if i != source]
    order.insert(destination, source)
    return TRANSPOSE.bind(x, permutation=tuple(order))


def mapped_first(x: Any, dim: int | None, size: int) -> Any:
    """`x` with its mapped axis in front; repeated along a new one where it has none."""
    if dim is not None:
        return move_axis(x, dim, 0)
    shape = type_of(x).shape
    return broadcast_to(x, (size, *shape), range(1, len(shape) + 1))


def sum_to_shape(x: Any, shape: Shape) -> Any:
    """The cotangent of an operand that was broadcast from `shape`: () or that of `x`."""
    aval = type_of(x)
    if aval.shape == shape:
        return x
    return REDUCE_SUM.bind(x, axes=tuple(range(aval.ndim)))


# ---- iota


class Iota(TypeCached):
    """out[..., i, ...] = i along `dimension`."""

    fusable = True

    def result_type(self, *, dtype: Any, shape: Shape, dimension: int) -> Any:
        kind = dtypes.code_of(dtype)
        if kind == 0 or kind >= dtypes.code_of(dtypes.float0):
            self.fail(f"expected dtype to be an integer, float or complex type, got {dtype}.")
        if not 0 <= dimension < len(shape):
            problem = f"expected 0 <= dimension < {len(shape)}, got {dimension} (shape {shape})."
            self.fail(problem, error=ValueError)
        return array_type(shape, dtype)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = self.bind(**params)
        return out, Zero(tangent_type(type_of(out)))

    def transpose(self, cotangent: Any, *operands: Any, **params: Any) -> Sequence[Any]:
        return []

    def batch(self, axis: AxisData, operands: Any, dims: Any, **params: Any) -> Any:
        return self.bind(**params), None

    def lower(
        self, b: Any, inputs: Any, index: Any, out: Any, *, dtype: Any, shape: Any, dimension: int
    ) -> Any:
        return b.convert(index[dimension], dtypes.scalar_name(dtype))

    def reference(self, *, dtype: Any, shape: Shape, dimension: int) -> Any:
        along = [1] * len(shape)
        along[dimension] = -1
        steps = np.arange(shape[dimension]).astype(dtype).reshape(along)
        return np.broadcast_to(steps, shape).copy()


# ---- reshape


def _matching_axes(old: Shape, new: Shape) -> list[tuple[range, range]]:
    """The axes of two shapes of equal size in the smallest groups of equal products.

    (2, 3, 4) -> (6, 4)  gives  [((0, 1), (0,)), ((2,), (1,))]: index arithmetic stays within a
    group, so that an axis which survives costs no division.  No extent may be 0.
    """
    groups = []
    i = j = 0
    while i < len(old) or j < len(new):
        begin_i, begin_j = i, j
        product_i = product_j = 1
        if i < len(old):
            product_i, i = old[i], i + 1
        if j < len(new):
            product_j, j = new[j], j + 1
        while product_i != product_j:
            if product_i < product_j:
                product_i, i = product_i * old[i], i + 1
            else:
                product_j, j = product_j * new[j], j + 1
        groups.append((range(begin_i, i), range(begin_j, j)))
    return groups


class Reshape(Linear):
    """The same elements in row-major order under another shape."""

    def result_type(self, x: Any, *, new_sizes: Shape) -> Any:
        if math.prod(new_sizes) != x.size:
            self.fail(
                f"expected new_sizes with {x.size} elements in all for operand of type {x}, "
                f"got {new_sizes}, which has {math.prod(new_sizes)}."
            )
        return ArrayType(new_sizes, x.dtype_code, x.weak_type)

    @transposed
    def transpose(self, cotangent: Any, x: Any, *, new_sizes: Shape) -> Sequence[Any]:
        return [self.bind(cotangent, new_sizes=x.aval.shape)]

    def batch(self, axis: AxisData, operands: Any, dims: Any, *, new_sizes: Shape) -> Any:
        x = move_axis(operands[0], dims[0], 0)
        return self.bind(x, new_sizes=(axis.size, *new_sizes)), 0

    def lower(self, b: Any, inputs: Any, index: Any, out: Any, *, new_sizes: Shape) -> Any:
        old = inputs[0].aval.shape
        if out.size == 0:
            return inputs[0](tuple(b.index(0) for _ in old))
        position: list[Any] = [None] * len(old)
        for olds, news in _matching_axes(old, new_sizes):
            linear = b.index(0)
            for axis in news:
                linear = b.add(b.mul(linear, b.index(new_sizes[axis])), index[axis])
            for axis in reversed(olds):
                extent = b.index(old[axis])
                if axis == olds[0]:
                    position[axis] = linear
                else:
                    position[axis] = b.rem(linear, extent)
                    linear = b.div(linear, extent)
        return inputs[0](tuple(position))

    def simplify(self, node: Any, rewriter: Any) -> Any:
        (x,) = node.inputs
        if x.aval is node.outputs[0].aval:
            return [x]
        inner = rewriter.producer(x)
        if inner is not None and inner.primitive is self:  # reshape(reshape x) -> reshape x
            return rewriter.bind(self, inner.inputs[0], **node.params)
        return None

    def reference(self, x: Any, *, new_sizes: Shape) -> Any:
        return np.reshape(x, new_sizes)


class Barrier(Reshape):
    """The identity, which simplification leaves alone: what is computed from the result is never
    merged with what is computed from the operand.  In memory it is a view, in a kernel nothing."""

    pointwise = True
    cost = 0.0

    def result_type(self, x: Any) -> Any:
        return x

    @transposed
    def transpose(self, cotangent: Any, x: Any) -> Sequence[Any]:
        return [self.bind(cotangent)]

    def batch(self, axis: AxisData, operands: Any, dims: Any) -> Any:
        return self.bind(operands[0]), dims[0]

    def lower(self, b: Any, inputs: Any, index: Any, out: Any) -> Any:
        return inputs[0](index)

    def simplify(self, node: Any, rewriter: Any) -> Any:
        return None

    def reference(self, x: Any) -> Any:
        return np.asarray(x)


# ---- transpose


class Transpose(Linear):
    """out[index] = x[...]: axis i of the result is axis permutation[i] of x."""

    def result_type(self, x: Any, *, permutation: Shape) -> Any:
        if sorted(permutation) != list(range(x.ndim)):
            self.fail(
                f"expected permutation to be one of the axes 0..{x.ndim - 1} of {x}, "
                f"got {permutation}."
            )
        return ArrayType(tuple(x.shape[i] for i in permutation), x.dtype_code, x.weak_type)

    @transposed
    def transpose(self, cotangent: Any, x: Any, *, permutation: Shape) -> Sequence[Any]:
        return [self.bind(cotangent, permutation=_inverse(permutation))]

    def batch(self, axis: AxisData, operands: Any, dims: Any, *, permutation: Shape) -> Any:
        dim = dims[0]
        order = (dim, *(i + (i >= dim) for i in permutation))
        return self.bind(operands[0], permutation=order), 0

    def lower(self, b: Any, inputs: Any, index: Any, out: Any, *, permutation: Shape) -> Any:
        return inputs[0](tuple(index[i] for i in _inverse(permutation)))

    def simplify(self, node: Any, rewriter: Any) -> Any:
        permutation = node.params["permutation"]
        if permutation == tuple(range(len(permutation))):
            return [node.inputs[0]]
        inner = rewriter.producer(node.inputs[0])
        if inner is not None and inner.primitive is self:
            first = inner.params["permutation"]
            both = tuple(first[i] for i in permutation)
            return rewriter.bind(self, inner.inputs[0], permutation=both)
        return None

    def reference(self, x: Any, *, permutation: Shape) -> Any:
        return np.transpose(x, permutation)


def _inverse(permutation: Shape) -> Shape:
    inverse = [0] * len(permutation)
    for i, p in enumerate(permutation):
        inverse[p] = i
    return tuple(inverse)


# ---- rev


class Rev(Linear):
    """x backwards along `dimensions`."""

    def result_type(self, x: Any, *, dimensions: Shape) -> Any:
        check_axes(self, "dimensions", dimensions, x)
        return x

    @transposed
    def transpose(self, cotangent: Any, x: Any, *, dimensions: Shape) -> Sequence[Any]:
        return [self.bind(cotangent, dimensions=dimensions)]

    def batch(self, axis: AxisData, operands: Any, dims: Any, *, dimensions: Shape) -> Any:
        dim = dims[0]
        moved = tuple(i + (i >= dim) for i in dimensions)
        return self.bind(operands[0], dimensions=moved), dim

    def lower(self, b: Any, inputs: Any, index: Any, out: Any, *, dimensions: Shape) -> Any:
        position = [
            b.sub(b.index(n - 1), i) if axis in dimensions else i
            for axis, (i, n) in enumerate(zip(index, out.shape, strict=True))
        ]
        return inputs[0](tuple(position))

    def simplify(self, node: Any, rewriter: Any) -> Any:
        dimensions = node.params["dimensions"]
        if all(node.outputs[0].aval.shape[i] == 1 for i in dimensions):
            return [node.inputs[0]]
        inner = rewriter.producer(node.inputs[0])
        if inner is not None and inner.primitive is self:
            odd = tuple(sorted(set(dimensions) ^ set(inner.params["dimensions"])))
            return rewriter.bind(self, inner.inputs[0], dimensions=odd)
        return None

    def reference(self, x: Any, *, dimensions: Shape) -> Any:
        return np.flip(x, dimensions)


# ---- broadcast_in_dim and its dual, reduce_sum


class BroadcastInDim(Linear):
    """Axis i of x becomes axis broadcast_dimensions[i] of `shape`; extents of 1 are repeated."""

    def result_type(self, x: Any, *, shape: Shape, broadcast_dimensions: Shape) -> Any:
        dims = broadcast_dimensions
        if len(dims) != x.ndim:
            self.fail(
                f"expected broadcast_dimensions with one entry for each axis of x ({x}), "
                f"got {dims}."
            )
        if any(not 0 <= d < len(shape) for d in dims) or any(
            a >= b for a, b in itertools.pairwise(dims)
        ):
            self.fail(
                f"expected broadcast_dimensions to be increasing axes of shape {shape}, got {dims}."
            )
        for n, d in zip(x.shape, dims, strict=True):
            if n != 1 and n != shape[d]:
                self.fail(
                    f"expected an extent of {shape[d]} or 1 for axis {d} of shape {shape}, "
                    f"got {n} (x is {x}, broadcast_dimensions {dims})."
                )
        return ArrayType(shape, x.dtype_code, x.weak_type)

    @transposed
    def transpose(
        self, cotangent: Any, x: Any, *, shape: Shape, broadcast_dimensions: Shape
    ) -> Sequence[Any]:
        repeated = [
            d
            for n, d in zip(x.aval.shape, broadcast_dimensions, strict=True)
            if n == 1 and shape[d] != 1
        ]
        added = [d for d in range(len(shape)) if d not in broadcast_dimensions]
        axes = tuple(sorted(repeated + added))
        out = REDUCE_SUM.bind(cotangent, axes=axes) if axes else cotangent
        return [RESHAPE.bind(out, new_sizes=x.aval.shape) if repeated else out]

    def batch(
        self,
        axis: AxisData,
        operands: Any,
        dims: Any,
        *,
        shape: Shape,
        broadcast_dimensions: Shape,
    ) -> Any:
        x = move_axis(operands[0], dims[0], 0)
        moved = (0, *(d + 1 for d in broadcast_dimensions))
        return broadcast_to(x, (axis.size, *shape), moved), 0

    def lower(
        self,
        b: Any,
        inputs: Any,
        index: Any,
        out: Any,
        *,
        shape: Shape,
        broadcast_dimensions: Shape,
    ) -> Any:
        pairs = zip(inputs[0].aval.shape, broadcast_dimensions, strict=True)
        return inputs[0](tuple(b.index(0) if n == 1 else index[d] for n, d in pairs))

    def simplify(self, node: Any, rewriter: Any) -> Any:
        (x,) = node.inputs
        if x.aval is node.outputs[0].aval:
            return [x]
        inner = rewriter.producer(x)
        if inner is not None and inner.primitive is self:
            outer_dims = node.params["broadcast_dimensions"]
            dims = tuple(outer_dims[d] for d in inner.params["broadcast_dimensions"])
            shape = node.params["shape"]
            return rewriter.bind(self, inner.inputs[0], shape=shape, broadcast_dimensions=dims)
        return None

    def reference(self, x: Any, *, shape: Shape, broadcast_dimensions: Shape) -> Any:
        spread = [1] * len(shape)
        for n, d in zip(x.shape, broadcast_dimensions, strict=True):
            spread[d] = n
        return np.broadcast_to(np.reshape(x, spread), shape).copy()


class ReduceSum(Reduction):
    """Sum over `axes`.  Linear; the dual of broadcast_in_dim."""

    opcode = "add"

    def identity(self, b: Any, aval: Any, *, axes: Shape) -> tuple[Any, ...]:
        zero = b.const(0, self.accumulator_dtype(aval))
        return (zero, zero) if dtypes.is_complex(aval.dtype) else (zero,)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, axes: Shape) -> Any:
        out = self.bind(*primals, axes=axes)
        if is_zero_tangent(tangents[0]):
            return out, Zero(tangent_type(type_of(out)))
        return out, self.bind(*tangents, axes=axes)

    @transposed
    def transpose(self, cotangent: Any, x: Any, *, axes: Shape) -> Sequence[Any]:
        kept = tuple(i for i in range(x.aval.ndim) if i not in axes)
        return [broadcast_to(cotangent, x.aval.shape, kept)]

    def reference(self, x: Any, *, axes: Shape) -> Any:
        wide = np.float32 if dtypes.is_floating(x.dtype) and x.dtype.itemsize == 2 else x.dtype
        return np.sum(x, axis=axes, dtype=wide).astype(x.dtype)


# ---- stop_gradient


class StopGradient(TypeCached):
    """x, with a derivative of zero."""

    fusable = True

    def result_type(self, x: Any) -> Any:
        return x

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return self.bind(*primals), Zero(tangent_type(type_of(primals[0])))

    @transposed
    def transpose(self, cotangent: Any, x: Any) -> Sequence[Any]:
        return [Zero(x.aval)]

    def batch(self, axis: AxisData, operands: Any, dims: Any) -> Any:
        return self.bind(operands[0]), dims[0]

    def lower(self, b: Any, inputs: Any, index: Any, out: Any) -> Any:
        return inputs[0](index)

    def simplify(self, node: Any, rewriter: Any) -> Any:
        return list(node.inputs)

    def reference(self, x: Any) -> Any:
        return np.asarray(x)


IOTA = Iota("iota")
RESHAPE = Reshape("reshape")
BARRIER = Barrier("optimization_barrier")
TRANSPOSE = Transpose("transpose")
REV = Rev("rev")
BROADCAST_IN_DIM = BroadcastInDim("broadcast_in_dim")
REDUCE_SUM = ReduceSum("reduce_sum")
STOP_GRADIENT = StopGradient("stop_gradient")
