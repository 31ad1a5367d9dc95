"""Reductions other than the sum: extrema and where they are, products, logic, and any other.

max, min, prod, and, or, xor, argmax and argmin are members of the family `Reduction` (shapes.py;
the sum is there too).  `reduce` takes any associative function: it recognises these, and combines
neighbours pairwise otherwise, which is also how the product's derivative is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import fail, require_unsharded
from jato.core.graph import Graph, evaluate
from jato.core.staging import trace_to_graph
from jato.core.types import ArrayType, Zero, array_type, tangent_type, type_of
from jato.ops.arithmetic import MAX, MIN, MUL, add, div, mul
from jato.ops.elementwise_family import ADD, Elementwise
from jato.ops.families import Shape, check_kind, is_zero_tangent
from jato.ops.numbers import NUMBERS, number_as
from jato.ops.reduction_family import Reduction
from jato.ops.selection import AND, OR, XOR, eq, select_n
from jato.ops.shapes import REDUCE_SUM, broadcast_to, instantiate
from jato.ops.structural import (
    canonical_axes,
    canonical_axis,
    concatenate,
    full,
    reshape,
    slice_in_dim,
    transpose,
)


def smallest(dtype: Any) -> Any:
    """The value that max ignores, as a Python number: -inf or the smallest integer."""
    if dtypes.is_bool(dtype):
        return False
    return int(np.iinfo(dtype).min) if dtypes.is_integer(dtype) else -math.inf


def largest(dtype: Any) -> Any:
    """The value that min ignores."""
    if dtypes.is_bool(dtype):
        return True
    return int(np.iinfo(dtype).max) if dtypes.is_integer(dtype) else math.inf


# ---- extrema


class Extremum(Reduction):
    """max or min over axes; NaN if there is one.  Complex numbers are ordered by their real
    part, then by their imaginary part."""

    takes = "biufc"

    def __init__(self, name: str, pointwise: Elementwise, ignored: Callable[[Any], Any]):
        super().__init__(name)
        self.opcode = pointwise.name
        self.of_two = pointwise
        self.ignored = ignored

    def identity(self, b: Any, aval: Any, *, axes: Shape) -> tuple[Any, ...]:
        value = b.const(self.ignored(aval.dtype), self.accumulator_dtype(aval))
        return (value, value) if dtypes.is_complex(aval.dtype) else (value,)

    def combine(self, b: Any, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(left) == 1:
            return super().combine(b, left, right)
        result = self.of_two.formula(b, b.complex(*left), b.complex(*right))  # type: ignore[operator]
        return result.re, result.im

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, axes: Shape) -> Any:
        """Shares the tangent equally among the elements that tie."""
        (x,) = primals
        out = self.bind(x, axes=axes)
        if is_zero_tangent(tangents[0]):
            return out, Zero(tangent_type(type_of(out)))
        aval = type_of(x)
        kept = [i for i in range(aval.ndim) if i not in axes]
        here = eq(x, broadcast_to(out, aval.shape, kept))
        zero, one = full((), 0, aval.dtype), full((), 1, aval.dtype)
        count = REDUCE_SUM.bind(select_n(here, zero, one), axes=axes)
        total = REDUCE_SUM.bind(select_n(here, zero, tangents[0]), axes=axes)
        return out, div(total, count)

    def reference(self, x: Any, *, axes: Shape) -> Any:
        function = np.max if self.opcode == "max" else np.min
        wide = x.astype(np.float32) if x.dtype.itemsize == 2 and dtypes.is_floating(x.dtype) else x
        start = np.array(self.ignored(x.dtype)).astype(wide.dtype)[()]
        if dtypes.is_complex(x.dtype):
            start = x.dtype.type(complex(start.real, start.real))
        return np.asarray(function(wide, axis=axes, initial=start)).astype(x.dtype)


REDUCE_MAX = Extremum("reduce_max", MAX, smallest)
REDUCE_MIN = Extremum("reduce_min", MIN, largest)


# ---- product


class ReduceProd(Reduction):
    """The product over axes."""

    opcode = "mul"

    def identity(self, b: Any, aval: Any, *, axes: Shape) -> tuple[Any, ...]:
        one = b.const(1, self.accumulator_dtype(aval))
        if dtypes.is_complex(aval.dtype):
            return one, b.const(0, one.dtype)
        return (one,)

    def combine(self, b: Any, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(left) == 1:
            return super().combine(b, left, right)
        product = b.mul(b.complex(*left), b.complex(*right))
        return product.re, product.im

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, axes: Shape) -> Any:
        """(p, p') (q, q') -> (p q, p' q + p q'), pairwise: right where elements are 0."""
        out = self.bind(*primals, axes=axes)
        if is_zero_tangent(tangents[0]):
            return out, Zero(tangent_type(type_of(out)))
        if any(type_of(primals[0]).shape[i] == 0 for i in axes):
            return out, Zero(tangent_type(type_of(out)))

        def product_rule(left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
            (p, dp), (q, dq) = left, right
            return [mul(p, q), add(mul(dp, q), mul(p, dq))]

        pair = pairwise(product_rule, [primals[0], instantiate(tangents[0])], axes)
        return out, pair[1]

    def reference(self, x: Any, *, axes: Shape) -> Any:
        wide = np.float32 if x.dtype.itemsize == 2 and dtypes.is_floating(x.dtype) else x.dtype
        with np.errstate(all="ignore"):
            return np.prod(x, axis=axes, dtype=wide).astype(x.dtype)


REDUCE_PROD = ReduceProd("reduce_prod")


# ---- logic


class BitReduction(Reduction):
    """and, or, xor of all bits over axes."""

    takes = "biu"

    def __init__(self, opcode: str, start: int):
        super().__init__(f"reduce_{opcode}")
        self.opcode = opcode
        self.start = start

    def identity(self, b: Any, aval: Any, *, axes: Shape) -> tuple[Any, ...]:
        return (b.const(self.start, self.accumulator_dtype(aval)),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, axes: Shape) -> Any:
        out = self.bind(*primals, axes=axes)
        return out, Zero(tangent_type(type_of(out)))

    def reference(self, x: Any, *, axes: Shape) -> Any:
        function = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[self.opcode]
        return np.asarray(function.reduce(x, axis=axes), x.dtype)


REDUCE_AND = BitReduction("and", -1)
REDUCE_OR = BitReduction("or", 0)
REDUCE_XOR = BitReduction("xor", 0)


# ---- where the extremum is


# Floats -> integers of their size.
_KEYS = {"f32": "i32", "f64": "i64"}


class ArgExtremum(Reduction):
    """The first position of the max or min along one axis; the first NaN wins.

    Accumulates (key, position): integers in the order of the elements.  -0 and 0 have one key, NaN
    one beyond all others.  The next key waits for one instruction, the position for three; with
    floats, whose NaN take comparisons of comparisons, both waited for the result of a dozen
    (100,000 rows of ten on one thread: 320 us).
    """

    takes = "biuf"

    def __init__(self, name: str, better: str, ignored: Callable[[Any], Any]):
        super().__init__(name)
        self.better = better
        self.ignored = ignored

    def result_type(self, x: Any, *, axes: Shape, index_dtype: Any) -> Any:
        check_kind(self, "operand", x, self.takes)
        if len(axes) != 1 or not 0 <= axes[0] < x.ndim:
            self.fail(f"expected one axis of {x}, got {axes}.", error=ValueError)
        (axis,) = axes
        if not dtypes.is_integer(index_dtype):
            self.fail(f"expected index_dtype to be an integer type, got {index_dtype}.")
        if x.shape[axis] == 0:
            self.fail(f"axis {axis} of {x} is empty: it has no extremum.", error=ValueError)
        shape = x.shape[:axis] + x.shape[axis + 1 :]
        return ArrayType(shape, dtypes.code_of(index_dtype), False)

    def accumulator_dtype(self, aval: Any) -> str:
        name = "i32" if dtypes.is_bool(aval.dtype) else super().accumulator_dtype(aval)
        return _KEYS.get(name, name)

    def identity(self, b: Any, aval: Any, *, axes: Shape, index_dtype: Any) -> tuple[Any, ...]:
        dtype = aval.dtype
        if dtypes.is_floating(dtype):
            dtype = np.dtype("int64" if dtype.itemsize == 8 else "int32")
        worst = b.const(self.ignored(dtype), self.accumulator_dtype(aval))
        last = b.const(int(np.iinfo(index_dtype).max), dtypes.scalar_name(index_dtype))
        return worst, last

    def element(
        self, b: Any, value: Any, index: Any, *, axes: Shape, index_dtype: Any
    ) -> tuple[Any, ...]:
        if value.dtype == "bool":
            value = b.convert(value, "i32")
        elif value.dtype in ("f16", "bf16"):
            value = b.convert(value, "f32")
        if value.dtype in _KEYS:
            value = self.key(b, value)
        return value, b.convert(index[axes[0]], dtypes.scalar_name(index_dtype))

    def key(self, b: Any, x: Any) -> Any:
        """Negative floats have their other bits inverted, since larger ones are smaller numbers."""
        name = _KEYS[x.dtype]
        last_bit = 63 if name == "i64" else 31
        bits = b.bitcast(b.add(x, b.const(0.0, x.dtype)), name)  # -0 + 0 is 0
        sign = b.shr_arithmetic(bits, b.const(last_bit, name))
        inverted = b.and_(sign, b.const((1 << last_bit) - 1, name))
        beyond = (1 << last_bit) - 2 if self.better == "gt" else 1 - (1 << last_bit)
        return b.select(b.is_nan(x), b.const(beyond, name), b.xor(bits, inverted))

    def combine(self, b: Any, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        (x, i), (y, j) = left, right
        best = b.max(x, y) if self.better == "gt" else b.min(x, y)
        place = b.select(b.eq(x, y), b.min(i, j), i)
        return best, b.select(b.op(self.better, y, x), j, place)

    def finish(self, b: Any, values: tuple[Any, ...], out: Any, **params: Any) -> Any:
        return values[1]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = self.bind(*primals, **params)
        return out, Zero(tangent_type(type_of(out)))

    def simplify(self, node: Any, rewriter: Any) -> Any:
        return None

    def reference(self, x: Any, *, axes: Shape, index_dtype: Any) -> Any:
        if dtypes.is_floating(x.dtype) and x.dtype.itemsize == 2:
            x = x.astype(np.float32)
        function = np.argmax if self.better == "gt" else np.argmin
        return np.asarray(function(x, axis=axes[0])).astype(index_dtype)


ARGMAX = ArgExtremum("argmax", "gt", smallest)
ARGMIN = ArgExtremum("argmin", "lt", largest)


# ---- functions


def _axes(function: str, axes: Any, x: Any) -> Shape:
    return tuple(sorted(canonical_axes(function, "axes", axes, type_of(x).ndim)))


def reduce_max(operand: Any, axes: Any, *, out_sharding: Any = None) -> Any:
    """The largest element over `axes`; NaN if there is one; -inf or the smallest integer of none.

    >>> float(reduce_max(full((3,), 2.0), (0,)))
    2.0
    """
    if out_sharding is not None:
        require_unsharded("reduce_max", out_sharding)
    return REDUCE_MAX.bind(operand, axes=_axes("reduce_max", axes, operand))


def reduce_min(operand: Any, axes: Any, *, out_sharding: Any = None) -> Any:
    """The smallest element over `axes`; NaN if there is one.

    >>> float(reduce_min(full((3,), 2.0), (0,)))
    2.0
    """
    if out_sharding is not None:
        require_unsharded("reduce_min", out_sharding)
    return REDUCE_MIN.bind(operand, axes=_axes("reduce_min", axes, operand))


def reduce_prod(operand: Any, axes: Any) -> Any:
    """The product over `axes`; float16 and bfloat16 are accumulated in float32.

    >>> float(reduce_prod(full((3,), 2.0), (0,)))
    8.0
    """
    return REDUCE_PROD.bind(operand, axes=_axes("reduce_prod", axes, operand))


def reduce_and(operand: Any, axes: Any) -> Any:
    """The bitwise and over `axes`; whether all are true, for bools.

    >>> bool(reduce_and(full((3,), True), (0,)))
    True
    """
    return REDUCE_AND.bind(operand, axes=_axes("reduce_and", axes, operand))


def reduce_or(operand: Any, axes: Any) -> Any:
    """The bitwise or over `axes`; whether any is true, for bools.

    >>> bool(reduce_or(full((3,), False), (0,)))
    False
    """
    return REDUCE_OR.bind(operand, axes=_axes("reduce_or", axes, operand))


def reduce_xor(operand: Any, axes: Any) -> Any:
    """The bitwise exclusive or over `axes`.

    >>> int(reduce_xor(full((3,), 5), (0,)))
    5
    """
    return REDUCE_XOR.bind(operand, axes=_axes("reduce_xor", axes, operand))


def argmax(operand: Any, axis: int, index_dtype: Any = np.int32) -> Any:
    """The first position of the largest element along `axis`; of the first NaN, if there is one.

    index_dtype: an integer dtype.  ValueError if the axis is empty.

    >>> int(argmax(full((3,), 2.0), 0))
    0
    """
    at = canonical_axis("argmax", "axis", axis, type_of(operand).ndim)
    return ARGMAX.bind(operand, axes=(at,), index_dtype=dtypes.canonicalize(index_dtype))


def argmin(operand: Any, axis: int, index_dtype: Any = np.int32) -> Any:
    """The first position of the smallest element along `axis`; of the first NaN, if there is one.

    >>> int(argmin(full((3,), 2.0), 0))
    0
    """
    at = canonical_axis("argmin", "axis", axis, type_of(operand).ndim)
    return ARGMIN.bind(operand, axes=(at,), index_dtype=dtypes.canonicalize(index_dtype))


# ---- any associative function


def pairwise(
    combine: Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]],
    operands: Sequence[Any],
    axes: Shape,
) -> list[Any]:
    """Combines the elements over axes (none of them empty), neighbours first, in their order."""
    ndim = type_of(operands[0]).ndim
    kept = [i for i in range(ndim) if i not in axes]
    shape = type_of(operands[0]).shape
    n = math.prod(shape[i] for i in axes)
    rest = tuple(shape[i] for i in kept)
    values = [reshape(transpose(x, (*axes, *kept)), (n, *rest)) for x in operands]
    while n > 1:
        even = n - n % 2
        left = [slice_in_dim(x, 0, even, 2) for x in values]
        right = [slice_in_dim(x, 1, even, 2) for x in values]
        joined = list(combine(left, right))
        if n % 2:
            last = [slice_in_dim(x, n - 1, n) for x in values]
            joined = [concatenate([x, y], 0) for x, y in zip(joined, last, strict=True)]
        values, n = joined, (n + 1) // 2
    return [reshape(x, rest) for x in values]


_MONOIDS: dict[Elementwise, Reduction] = {
    ADD: REDUCE_SUM,
    MUL: REDUCE_PROD,
    MAX: REDUCE_MAX,
    MIN: REDUCE_MIN,
    AND: REDUCE_AND,
    OR: REDUCE_OR,
    XOR: REDUCE_XOR,
}


def monoid_of(graph: Graph) -> Elementwise | None:
    """The elementwise primitive that a function of two scalars is, if it is one of the known."""
    if len(graph.nodes) != 1 or len(graph.inputs) != 2 or len(graph.outputs) != 1:
        return None
    (node,) = graph.nodes
    is_it = graph.outputs[0] is node.outputs[0] and set(node.inputs) == set(graph.inputs)
    known = is_it and node.primitive in _MONOIDS
    return node.primitive if known else None  # type: ignore[return-value]


def combiner(function: str, computation: Callable[..., Any], avals: Sequence[Any]) -> Graph:
    """The graph of an associative function of twice the scalars `avals`.

    TypeError unless it is elementwise and gives scalars of the same dtypes.
    """
    scalars = [array_type((), x.dtype) for x in avals]
    single = len(scalars) == 1

    def flat(*args: Any) -> list[Any]:
        if single:
            out = computation(*args)
        else:
            out = computation(args[: len(scalars)], args[len(scalars) :])
        return list(out) if isinstance(out, (tuple, list)) else [out]

    graph = trace_to_graph(flat, scalars + scalars, name=getattr(computation, "__name__", "f"))
    got = [(a.aval.shape, a.aval.dtype) for a in graph.outputs]
    wanted = [((), x.dtype) for x in scalars]
    if got != wanted or any(not isinstance(n.primitive, Elementwise) for n in graph.nodes):
        fail(
            TypeError,
            function,
            "expected computation to be an elementwise function that gives scalars of the dtypes "
            f"it takes, {', '.join(str(x) for x in scalars)}; got results "
            f"{', '.join(str(a.aval) for a in graph.outputs)}.",
        )
    return graph


def reduce(
    operands: Any, init_values: Any, computation: Callable[..., Any], dimensions: Any,
    out_sharding: Any = None,
) -> Any:  # fmt: skip
    """Combines elements over `dimensions` with an associative elementwise function.

    operands: an array, or a tuple or list of arrays of one shape; init_values: a scalar each,
    combined with the result; computation(x, y) -> z on scalars, or on tuples of them.  Gives what
    `operands` is.  TypeError if computation is not elementwise or changes dtypes.

    >>> float(reduce(full((3,), 2.0), 0.0, lambda x, y: ADD(x, y), (0,)))
    6.0
    """
    if out_sharding is not None:
        require_unsharded("reduce", out_sharding)
    many = isinstance(operands, (tuple, list))
    arrays = list(operands) if many else [operands]
    starts = list(init_values) if many else [init_values]
    if len(arrays) != len(starts) or not arrays:
        problem = f"expected one init_value per operand, got {len(starts)} for {len(arrays)}."
        fail(TypeError, "reduce", problem)
    avals = [type_of(x) for x in arrays]
    if any(x.shape != avals[0].shape for x in avals):
        fail(
            TypeError,
            "reduce",
            f"expected operands of one shape, got {', '.join(map(str, avals))}.",
        )
    axes = _axes("reduce", dimensions, arrays[0])
    starts = [
        number_as("reduce", x, a) if type(x) in NUMBERS else x
        for x, a in zip(starts, avals, strict=True)
    ]
    graph = combiner("reduce", computation, avals)
    monoid = monoid_of(graph)
    if monoid is not None:
        results = [monoid.bind(_MONOIDS[monoid].bind(arrays[0], axes=axes), starts[0])]
    else:
        results = _reduce_any(graph, arrays, starts, axes)
    return type(operands)(results) if many else results[0]


def _reduce_any(
    graph: Graph, arrays: Sequence[Any], starts: Sequence[Any], axes: Shape
) -> list[Any]:
    shape = type_of(arrays[0]).shape
    rest = tuple(n for i, n in enumerate(shape) if i not in axes)

    def combine(left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
        into = type_of(right[0]).shape
        out = evaluate(graph, *left, *right)
        return [x if type_of(x).shape == into else full(into, x) for x in out]

    if any(shape[i] == 0 for i in axes):
        return [full(rest, x) for x in starts]
    values = pairwise(combine, arrays, axes)
    return combine([full(rest, x) for x in starts], values)
