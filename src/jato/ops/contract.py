"""Contraction: dot_general, the sum of products over pairs of axes.

    out[batch.., lhs free.., rhs free..] = sum over contracted of lhs * rhs

`dimension_numbers` = ((lhs contracted, rhs contracted), (lhs batch, rhs batch)).  `Dims` gives the
compiler all axes and extents by role, so that it can hand big ones to a matrix-product kernel;
`lower` is the loop nest for small ones.  f16 and bf16 accumulate in f32, integers wrap, bools
are or-ed ands.  Sums are always computed in full precision of the dtype: `precision` is accepted
and remembered, and changes nothing on a CPU.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import check, require_unsharded, fail
from jato.core.primitive import AxisData, UndefinedPrimal
from jato.core.types import ArrayType, Zero, array_type, tangent_type, type_of
from jato.ops.convert import convert_element_type
from jato.ops.elementwise import add
from jato.ops.families import TypeCached, is_zero_tangent, transposed
from jato.ops.structural import transpose

DimensionNumbers = tuple[
    tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]
]


class Precision(enum.Enum):
    """How exactly float32 products are to be computed; a CPU always does it in full."""

    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"


@dataclass(frozen=True)
class Dims:
    """The axes of a contraction by role, and their extents.

    The result's axes are batch, then lhs_free, then rhs_free, each in this order.
    """

    lhs_batch: tuple[int, ...]
    rhs_batch: tuple[int, ...]
    lhs_contract: tuple[int, ...]
    rhs_contract: tuple[int, ...]
    lhs_free: tuple[int, ...]
    rhs_free: tuple[int, ...]
    batch_shape: tuple[int, ...]
    contract_shape: tuple[int, ...]
    lhs_free_shape: tuple[int, ...]
    rhs_free_shape: tuple[int, ...]

    @property
    def matrix_sizes(self) -> tuple[int, int, int, int]:
        """(batch, rows m, columns n, contracted k) as for a batched matrix product."""
        return (
            math.prod(self.batch_shape),
            math.prod(self.lhs_free_shape),
            math.prod(self.rhs_free_shape),
            math.prod(self.contract_shape),
        )


def dims_of(lhs: Any, rhs: Any, numbers: DimensionNumbers) -> Dims:
    """`Dims` for two operands' shapes."""
    (lc, rc), (lb, rb) = numbers
    lf = tuple(d for d in range(len(lhs.shape)) if d not in lc and d not in lb)
    rf = tuple(d for d in range(len(rhs.shape)) if d not in rc and d not in rb)
    return Dims(
        lb, rb, lc, rc, lf, rf,
        tuple(lhs.shape[d] for d in lb),
        tuple(lhs.shape[d] for d in lc),
        tuple(lhs.shape[d] for d in lf),
        tuple(rhs.shape[d] for d in rf),
    )  # fmt: skip


class Product(TypeCached):
    """An operation that is linear in each of its two operands."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        lhs, rhs = primals
        out = self.bind(lhs, rhs, **params)
        terms = []
        if not is_zero_tangent(tangents[0]):
            terms.append(self.bind(tangents[0], rhs, **params))
        if not is_zero_tangent(tangents[1]):
            terms.append(self.bind(lhs, tangents[1], **params))
        if not terms:
            return out, Zero(tangent_type(type_of(out)))
        return out, terms[0] if len(terms) == 1 else add(*terms)


class DotGeneral(Product):
    """Params: dimension_numbers, precision, preferred_element_type (the result's dtype or None)."""

    fusable = True

    def result_type(
        self, lhs: Any, rhs: Any, *, dimension_numbers: DimensionNumbers, precision: Any,
        preferred_element_type: Any,
    ) -> Any:  # fmt: skip
        (lc, rc), (lb, rb) = dimension_numbers
        if lhs.dtype != rhs.dtype:
            self.fail(f"expected lhs and rhs of one dtype, got {lhs} and {rhs}.")
        for name, aval, dims in (("lhs", lhs, (*lc, *lb)), ("rhs", rhs, (*rc, *rb))):
            if any(not 0 <= d < aval.ndim for d in dims) or len(set(dims)) != len(dims):
                self.fail(
                    f"expected dimension_numbers to name different axes of {name} ({aval}), "
                    f"got {dims}."
                )
        for what, left, right in (("contracted", lc, rc), ("batch", lb, rb)):
            sizes = [lhs.shape[d] for d in left], [rhs.shape[d] for d in right]
            if sizes[0] != sizes[1]:
                self.fail(
                    f"expected equal extents of the {what} axes, got {sizes[0]} (axes {left} "
                    "of lhs "
                    f"{lhs}) and {sizes[1]} (axes {right} of rhs {rhs})."
                )
        d = dims_of(lhs, rhs, dimension_numbers)
        shape = d.batch_shape + d.lhs_free_shape + d.rhs_free_shape
        weak = lhs.weak_type and rhs.weak_type
        if preferred_element_type is not None:
            return array_type(shape, preferred_element_type)
        return ArrayType(shape, lhs.dtype_code, weak)

    @transposed
    def transpose(
        self, cotangent: Any, lhs: Any, rhs: Any, *, dimension_numbers: DimensionNumbers,
        precision: Any, preferred_element_type: Any,
    ) -> Sequence[Any]:  # fmt: skip
        results: list[Any] = [None, None]
        for i, x in enumerate((lhs, rhs)):
            if isinstance(x, UndefinedPrimal):
                other = rhs if i == 0 else lhs
                results[i] = _operand_cotangent(
                    cotangent, x.aval, other, i, dimension_numbers, precision
                )
        return results

    def batch(
        self, axis: AxisData, operands: Any, dims: Any, *, dimension_numbers: DimensionNumbers,
        **params: Any,
    ) -> Any:  # fmt: skip
        (lhs, rhs), (ld, rd) = operands, dims
        (lc, rc), (lb, rb) = dimension_numbers

        def moved(axes: tuple[int, ...], d: int | None) -> tuple[int, ...]:
            return axes if d is None else tuple(a + (a >= d) for a in axes)

        lc, lb, rc, rb = moved(lc, ld), moved(lb, ld), moved(rc, rd), moved(rb, rd)
        if ld is not None and rd is not None:  # one more batch axis
            numbers = ((lc, rc), ((ld, *lb), (rd, *rb)))
            return self.bind(lhs, rhs, dimension_numbers=numbers, **params), 0
        # one more free axis
        numbers = ((lc, rc), (lb, rb))
        roles = dims_of(type_of(lhs), type_of(rhs), numbers)
        if ld is not None:
            out_dim = len(lb) + roles.lhs_free.index(ld)
        else:
            out_dim = len(lb) + len(roles.lhs_free) + roles.rhs_free.index(rd)
        return self.bind(lhs, rhs, dimension_numbers=numbers, **params), out_dim

    def lower(
        self, b: Any, inputs: Any, index: Any, out: Any, *, dimension_numbers: DimensionNumbers,
        precision: Any, preferred_element_type: Any,
    ) -> Any:  # fmt: skip
        lhs, rhs = inputs
        roles = dims_of(lhs.aval, rhs.aval, dimension_numbers)
        batches, frees = len(roles.lhs_batch), len(roles.lhs_free)
        name = accumulator_dtype(lhs.aval, out)
        here = dict(zip(roles.lhs_batch, index, strict=False))
        here |= zip(roles.lhs_free, index[batches:], strict=False)
        there = dict(zip(roles.rhs_batch, index, strict=False))
        there |= zip(roles.rhs_free, index[batches + frees :], strict=True)

        def product(*k: Any) -> Any:
            left = here | dict(zip(roles.lhs_contract, k, strict=True))
            right = there | dict(zip(roles.rhs_contract, k, strict=True))
            x = b.convert(lhs(tuple(left[d] for d in range(len(left)))), name)
            y = b.convert(rhs(tuple(right[d] for d in range(len(right)))), name)
            return b.and_(x, y) if name == "bool" else b.mul(x, y)

        return b.convert(sum_of(b, roles.contract_shape, product, name), dtypes.scalar_name(out))

    def reference(
        self, lhs: Any, rhs: Any, *, dimension_numbers: DimensionNumbers, precision: Any,
        preferred_element_type: Any,
    ) -> Any:  # fmt: skip
        roles = dims_of(lhs, rhs, dimension_numbers)
        out = np.dtype(preferred_element_type or lhs.dtype)
        wide = np.result_type(
            *(
                np.float32 if d.itemsize == 2 and dtypes.is_floating(d) else d
                for d in (lhs.dtype, out)
            )
        )
        batch, m, n, k = roles.matrix_sizes
        x = np.transpose(lhs, roles.lhs_batch + roles.lhs_free + roles.lhs_contract)
        y = np.transpose(rhs, roles.rhs_batch + roles.rhs_contract + roles.rhs_free)
        z = np.matmul(x.reshape(batch, m, k).astype(wide), y.reshape(batch, k, n).astype(wide))
        return z.reshape(roles.batch_shape + roles.lhs_free_shape + roles.rhs_free_shape).astype(
            out
        )


def accumulator_dtype(operand: Any, out: Any) -> str:
    """The scalar dtype sums of products are kept in: the wider of operand's and result's, f32 at
    least for floats."""
    names = [dtypes.scalar_name(a) for a in (operand, out)]
    wide = [{"f16": "f32", "bf16": "f32"}.get(n, n) for n in names]
    return wide[0] if operand.itemsize >= out.itemsize else wide[1]


def sum_of(b: Any, extents: Sequence[int], product: Any, name: str, *, unroll: bool = False) -> Any:
    """Loop IR: the sum (of bools: the or) of product(*indices) over extents, of dtype `name`."""
    if not extents:
        return product()
    combine = "or" if name == "bool" else "add"
    return b.reduce(extents, product, combine, b.const(0, name), unroll=unroll)


def _operand_cotangent(
    ct: Any, aval: Any, other: Any, position: int, numbers: DimensionNumbers, precision: Any
) -> Any:
    """The cotangent of operand `position`: ct contracted with the other operand."""
    (lc, rc), (lb, rb) = numbers if position == 0 else tuple(pair[::-1] for pair in numbers)
    # from here on lhs = the operand that is asked for
    free = [d for d in range(aval.ndim) if d not in lc and d not in lb]
    other_free = [d for d in range(type_of(other).ndim) if d not in rc and d not in rb]
    start = len(lb) if position == 1 else len(lb) + len(free)
    ct_contract = tuple(range(start, start + len(other_free)))
    batch = tuple(range(len(lb)))
    dtype = type_of(ct).dtype
    if type_of(other).dtype != dtype:
        # the wider of the two carries the sums
        wide = dtypes.promote_types(dtype, type_of(other).dtype)
        ct, other = convert_element_type(ct, wide), convert_element_type(other, wide)
    out = DOT_GENERAL.bind(
        ct, other, dimension_numbers=((ct_contract, tuple(other_free)), (batch, rb)),
        precision=precision, preferred_element_type=None,
    )  # fmt: skip
    # axes now: batch, operand's free axes, then the contracted ones in the other's order
    by_other = sorted(range(len(rc)), key=lambda i: rc[i])
    order = [*lb, *free, *(lc[i] for i in by_other)]
    permutation = tuple(order.index(d) for d in range(aval.ndim))
    out = out if permutation == tuple(range(aval.ndim)) else transpose(out, permutation)
    return convert_element_type(out, aval.dtype)


DOT_GENERAL = DotGeneral("dot_general")


def canonical_precision(precision: Any) -> Any:
    """A hashable form of any spelling: None, 'highest', Precision.HIGH, or a pair."""
    if precision is None or isinstance(precision, Precision):
        return precision
    if isinstance(precision, (tuple, list)):
        return tuple(map(canonical_precision, precision))
    if isinstance(precision, str):
        spellings = {"fastest": "default", "float32": "highest", "bfloat16_3x": "high",
                     "tensorfloat32": "high", "bfloat16": "default"}  # fmt: skip
        name = spellings.get(precision, precision)
        for member in Precision:
            if member.value == name:
                return member
        return precision  # names of dot algorithms: nothing to choose on a CPU
    return getattr(precision, "name", str(precision))


def _dims(function: str, pair: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    try:
        left, right = pair
        return tuple(int(d) for d in left), tuple(int(d) for d in right)
    except (TypeError, ValueError):
        fail(
            TypeError, function,
            "expected dimension_numbers ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch)), "
            f"got the part {pair!r}.",
        )  # fmt: skip


def same_dtype(lhs: Any, rhs: Any) -> tuple[Any, Any]:
    """Two operands in the dtype they promote to."""
    a, c = type_of(lhs), type_of(rhs)
    if a.dtype == c.dtype:
        return lhs, rhs
    dtype, _ = dtypes.promote((a.dtype, a.weak_type), (c.dtype, c.weak_type))
    return convert_element_type(lhs, dtype), convert_element_type(rhs, dtype)


def dot_general(
    lhs: Any, rhs: Any, dimension_numbers: Any, precision: Any = None,
    preferred_element_type: Any = None, *, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """Sums of products over contracted axes, for each index of the batch axes.

    Args: lhs, rhs: arrays (different dtypes are promoted); dimension_numbers:
    ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch)); precision: accepted, always
    full on a CPU; preferred_element_type: dtype of the result.
    Returns: axes in the order batch, lhs's others, rhs's others.
    Raises: TypeError when extents differ or axes do not exist.

    >>> x = np.ones((2, 3), np.float32)
    >>> dot_general(x, x, (((1,), (1,)), ((), ()))).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    if out_sharding is not None:
        require_unsharded("dot_general", out_sharding)
    contract, batch = dimension_numbers
    numbers = _dims("dot_general", contract), _dims("dot_general", batch)
    lhs_rank, rhs_rank = type_of(lhs).ndim, type_of(rhs).ndim
    (lc, rc), (lb, rb) = numbers
    numbers = (
        (
            tuple(d + lhs_rank if d < 0 else d for d in lc),
            tuple(d + rhs_rank if d < 0 else d for d in rc),
        ),
        (
            tuple(d + lhs_rank if d < 0 else d for d in lb),
            tuple(d + rhs_rank if d < 0 else d for d in rb),
        ),
    )
    lhs, rhs = same_dtype(lhs, rhs)
    preferred = None
    if preferred_element_type is not None:
        preferred = dtypes.canonicalize(preferred_element_type)
        preferred = None if preferred == type_of(lhs).dtype else preferred
    return DOT_GENERAL.bind(
        lhs, rhs, dimension_numbers=numbers, precision=canonical_precision(precision),
        preferred_element_type=preferred,
    )  # fmt: skip


def dot(
    lhs: Any, rhs: Any, *, dimension_numbers: Any = None, precision: Any = None,
    preferred_element_type: Any = None, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """Vector and matrix products: the last axis of lhs with the first of rhs (ranks 1 and 2).

    With `dimension_numbers` it is `dot_general`.  Raises: TypeError for other ranks or lengths.

    >>> float(dot(np.array([1.0, 2.0]), np.array([3.0, 4.0])))
    11.0
    """
    if out_sharding is not None:
        require_unsharded("dot", out_sharding)
    if dimension_numbers is None:
        a, c = type_of(lhs), type_of(rhs)
        check(
            1 <= a.ndim <= 2 and 1 <= c.ndim <= 2 and a.shape[-1] == c.shape[0],
            TypeError,
            f"dot: expected vectors or matrices with lhs.shape[-1] == rhs.shape[0], got {a} "
            f"and {c}.",
        )
        dimension_numbers = (((a.ndim - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Any:
    """Matrix products over equal leading axes: [..., m, k] x [..., k, n] -> [..., m, n].

    Raises: TypeError for ranks below 2, different ranks or unequal extents.

    >>> batch_matmul(np.ones((5, 2, 3)), np.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    a, c = type_of(lhs), type_of(rhs)
    check(
        a.ndim == c.ndim >= 2,
        TypeError,
        f"batch_matmul: expected operands of one rank of at least 2, got {a} and {c}.",
    )
    lead = tuple(range(a.ndim - 2))
    return dot_general(lhs, rhs, (((a.ndim - 1,), (a.ndim - 2,)), (lead, lead)), precision)
