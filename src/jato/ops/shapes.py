"""Primitives that move or repeat elements, and their dual, the sum.

Families
    TypeCached   remembers the result types it has computed: tracing asks for them all the time
    Linear       linear in all operands: tangents and cotangents flow through the same kind of move
    Reduction    combines elements along axes; gives the compiler a protocol in place of `lower`

Entries: iota, reshape, transpose, rev, broadcast_in_dim, reduce_sum (the transpose of
broadcast_in_dim, hence here), stop_gradient.  The functions that users call are in structural.py.

A mapped axis is put in front by these rules unless it can stay.  Start reading at `Linear`, then
`BroadcastInDim`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import fail
from jato.core.primitive import AxisData, Primitive, UndefinedPrimal
from jato.core.types import ArrayType, Zero, array_type, tangent_type, type_of

Shape = tuple[int, ...]

_MAX_CACHED_TYPES = 4096  # per primitive; then it starts anew, so that memory stays bounded


class TypeCached(Primitive):
    """Computes each result type once; `result_type` is the rule itself.

    A hit costs 0.3 us.  Types are interned, so hashing the operands' types is hashing pointers.
    """

    def __init__(self, name: str):
        super().__init__(name)
        self._types: dict[Any, Any] = {}

    def type_rule(self, *avals: Any, **params: Any) -> Any:
        key = (avals, *params.items()) if params else avals
        found = self._types.get(key)
        if found is None:
            found = self.result_type(*avals, **params)
            if len(self._types) >= _MAX_CACHED_TYPES:
                self._types.clear()
            self._types[key] = found
        return found

    def result_type(self, *avals: Any, **params: Any) -> Any:
        """`type_rule` without the cache."""
        raise NotImplementedError

    def fail(self, problem: str, hint: str = "", error: type[Exception] = TypeError) -> Any:
        """Raises the error of a wrong operand or parameter of this primitive."""
        fail(error, self.name, problem, hint)


def transposed(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A `transpose` method made from one that need not think of zero cotangents."""

    def transpose(self: Any, cotangent: Any, *operands: Any, **params: Any) -> Sequence[Any]:
        if type(cotangent) is Zero:
            return [Zero(x.aval) if type(x) is UndefinedPrimal else None for x in operands]
        return rule(self, cotangent, *operands, **params)

    transpose.__doc__ = rule.__doc__
    return transpose


def is_zero_tangent(tangent: Any) -> bool:
    """Is it a symbolic zero, or of the type of integers' tangents?"""
    return type(tangent) is Zero or type_of(tangent).dtype == dtypes.float0


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
                f"expected new_sizes with {x.size} elements in all for x of type {x}, "
                f"got {new_sizes}, which has {math.prod(new_sizes)}."
            )
        return ArrayType(new_sizes, x.dtype_code, x.weak_type)

    @transposed
    def transpose(self, cotangent: Any, x: Any, *, new_sizes: Shape) -> Sequence[Any]:
        return [self.bind(cotangent, new_sizes=x.aval.shape)]

    def batch(self, axis: AxisData, operands: Any, dims: Any, *, new_sizes: Shape) -> Any:
        x = move_axis(operands[0], dims[0], 0)
        return self.bind(x, new_sizes=(axis.size, *new_sizes)), 0

    def lower(
        self, b: Any, inputs: Any, index: Any, out: Any, *, new_sizes: Shape
    ) -> Any:
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

    def lower(
        self, b: Any, inputs: Any, index: Any, out: Any, *, permutation: Shape
    ) -> Any:
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
                f"expected broadcast_dimensions to be increasing axes of shape {shape}, "
                f"got {dims}."
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


class Reduction(TypeCached):
    """Combines the elements along some axes.  Its protocol stands in for `lower`:

    axes(params)                         the axes reduced, increasing
    opcode                               name of the combining opcode, if it is one
    accumulator_dtype(aval)              scalar dtype of the (first) accumulator
    identity(b, aval, **params)          tuple of expressions
    element(b, value, index, **params)   operand's value at its index -> tuple of expressions
    combine(b, left, right)              two such tuples -> one; associative and commutative
    finish(b, values, out, **params)     tuple -> the result's value

    f16 and bf16 accumulate in f32; complex numbers are two accumulators.
    """

    fusable = True
    opcode: str | None = None
    takes = "iufc"  # kinds of dtype: b(ool) i(nt) u(nsigned) f(loat) c(omplex)

    def axes(self, params: dict[str, Any]) -> Shape:
        return params["axes"]

    def accumulator_dtype(self, aval: Any) -> str:
        name = dtypes.scalar_name(aval)
        return {"f16": "f32", "bf16": "f32", "c64": "f32", "c128": "f64"}.get(name, name)

    def identity(self, b: Any, aval: Any, **params: Any) -> tuple[Any, ...]:
        raise NotImplementedError

    def element(self, b: Any, value: Any, index: Any, **params: Any) -> tuple[Any, ...]:
        if hasattr(value, "re"):
            return (value.re, value.im)
        return (b.convert(value, "f32") if value.dtype in ("f16", "bf16") else value,)

    def combine(self, b: Any, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(b.op(self.opcode, x, y) for x, y in zip(left, right, strict=True))

    def finish(self, b: Any, values: tuple[Any, ...], out: Any, **params: Any) -> Any:
        if len(values) == 2:
            return b.complex(*values)
        return b.convert(values[0], dtypes.scalar_name(out))

    # -- rules derived from it

    def result_type(self, x: Any, *, axes: Shape) -> Any:
        check_kind(self, "x", x, self.takes)
        check_axes(self, "axes", axes, x)
        kept = tuple(n for i, n in enumerate(x.shape) if i not in axes)
        return ArrayType(kept, x.dtype_code, x.weak_type)

    def batch(self, axis: AxisData, operands: Any, dims: Any, **params: Any) -> Any:
        dim, axes = dims[0], params["axes"]
        params["axes"] = tuple(i + (i >= dim) for i in axes)
        out = self.bind(operands[0], **params)
        return out, dim - sum(i < dim for i in params["axes"])

    def lower(self, b: Any, inputs: Any, index: Any, out: Any, **params: Any) -> Any:
        x, axes = inputs[0], self.axes(params)
        kept = [i for i in range(x.aval.ndim) if i not in axes]

        def element(*reduced: Any) -> tuple[Any, ...]:
            position: list[Any] = [None] * x.aval.ndim
            for i, value in zip((*axes, *kept), (*reduced, *index), strict=True):
                position[i] = value
            return self.element(b, x(tuple(position)), tuple(position), **params)

        identity = self.identity(b, x.aval, **params)
        extents = [x.aval.shape[i] for i in axes]
        if not extents:
            values = element()
        elif len(identity) == 1 and self.opcode is not None:
            values = b.reduce(extents, lambda *i: element(*i)[0], self.opcode, identity[0])
        else:
            values = b.reduce(extents, element, lambda x, y: self.combine(b, x, y), identity)
        return self.finish(b, values if isinstance(values, tuple) else (values,), out, **params)

    def simplify(self, node: Any, rewriter: Any) -> Any:
        if not self.axes(node.params) and node.inputs[0].aval is node.outputs[0].aval:
            return [node.inputs[0]]
        return None


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


# ---- checks that the type rules share

_KINDS = {
    "b": "bool", "i": "integer", "u": "unsigned integer", "f": "float", "c": "complex",
    "k": "random key",
}  # fmt: skip


def kind_of(aval: Any) -> str:
    """The letter of the dtype's kind: b i u f c, k for random keys, 0 for float0."""
    return "biiiiuuuuffffcc0k"[aval.dtype_code]


def check_kind(primitive: TypeCached, argument: str, aval: Any, takes: str) -> None:
    """Raises TypeError unless the operand's dtype is of a kind in `takes`."""
    if kind_of(aval) not in takes:
        names = [_KINDS[k] for k in takes if not (k == "u" and "i" in takes)]
        expected = " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
        primitive.fail(
            f"expected {argument} to have a dtype of kind {expected}, got {aval}.",
            "Try lax.convert_element_type; the functions of jato.numpy convert by themselves.",
        )


def check_axes(primitive: TypeCached, argument: str, axes: Shape, aval: Any) -> None:
    """Raises ValueError unless `axes` are different axes of the operand."""
    if any(not 0 <= i < aval.ndim for i in axes) or len(set(axes)) != len(axes):
        primitive.fail(
            f"expected {argument} to be different axes in 0..{aval.ndim - 1} of {aval}, "
            f"got {axes}.",
            error=ValueError,
        )


IOTA = Iota("iota")
RESHAPE = Reshape("reshape")
TRANSPOSE = Transpose("transpose")
REV = Rev("rev")
BROADCAST_IN_DIM = BroadcastInDim("broadcast_in_dim")
REDUCE_SUM = ReduceSum("reduce_sum")
STOP_GRADIENT = StopGradient("stop_gradient")
