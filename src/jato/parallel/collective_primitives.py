"""Collectives as primitives: operations over a mapped axis that has a name.

    psum pmax pmin             one value for all members of the axis (or of each group of them)
    all_gather psum_scatter    transposes of each other; so is all_to_all of itself
    ppermute pbroadcast        values move between members
    axis_index                 the member's own number

All take `axis_name` and its `axis_size`; `groups` (None: all members) is a tuple of tuples of
member numbers.  A collective is batched over its own axis even if no operand is mapped; there it
becomes ordinary reductions and moves (`over_axis`), so that none reaches the compiler.  Over any
other axis it is the same collective on larger values.  The user's functions are in
collectives.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jato.core.primitive import AxisData
from jato.core.types import ArrayType, Zero, array_type, tangent_type, type_of
from jato.ops.arithmetic import add, div, mul
from jato.ops.convert import convert_element_type
from jato.ops.elementwise import eq, select_n
from jato.ops.families import TypeCached, transposed
from jato.ops.indexing import index_take
from jato.ops.reduce import reduce_max, reduce_min
from jato.ops.shapes import instantiate, mapped_first, move_axis
from jato.ops.structural import (
    broadcast_in_dim,
    concatenate,
    expand_dims,
    full_like,
    iota,
    reduce_sum,
    reshape,
    slice_in_dim,
    squeeze,
)

Groups = tuple[tuple[int, ...], ...] | None
Batched = tuple[Any, int | None]


class Collective(TypeCached):
    """One operand, one result, linear unless a member says otherwise.

    axes: the parameters that name an axis of the operand or the result, which move when another
    mapped axis is put in front.
    """

    axes: tuple[str, ...] = ()

    def axis_names(self, params: dict[str, Any]) -> tuple[Any, ...]:
        return (params["axis_name"],)

    def result_type(self, x: Any, **params: Any) -> Any:
        return x

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = self.bind(*primals, **params)
        if type(tangents[0]) is Zero:
            return out, Zero(tangent_type(type_of(out)))
        return out, self.bind(instantiate(tangents[0]), **params)

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> Batched:
        if params["axis_name"] == axis.name:
            return self.over_axis(axis.size, operands[0], dims[0], **params)
        if not self.axes:
            return self.bind(operands[0], **params), dims[0]
        moved = {name: params[name] + 1 for name in self.axes}
        return self.bind(move_axis(operands[0], dims[0], 0), **{**params, **moved}), 0

    def over_axis(self, size: int, x: Any, dim: int | None, **params: Any) -> Batched:
        """The result for all members at once; `x` has them along `dim` (None: all alike)."""
        raise NotImplementedError

    def plan(self, context: Any, node: Any) -> Any:
        raise unbound(self.name, node.params["axis_name"], {})


def unbound(function: str, name: Any, known: dict[Any, int]) -> NameError:
    """The error for an axis name that no transformation around the call gives."""
    here = f"The names known here are {', '.join(map(repr, known))}." if known else (
        "No axis has a name here."
    )
    return NameError(
        f"{function}: unbound axis name: {name!r}. {here} "
        "Name the axis in the vmap or pmap around the call: vmap(f, axis_name=...)."
    )


# ---- rows of all members, in front


def take_rows(x: Any, rows: Sequence[int]) -> Any:
    """x[rows] for known row numbers."""
    count = type_of(x).shape[0]
    if count and len(rows) == count:
        shift = rows[0]
        if all(r == (i + shift) % count for i, r in enumerate(rows)):  # a rotation is two slices
            if shift == 0:
                return x
            return concatenate([slice_in_dim(x, shift, count), slice_in_dim(x, 0, shift)], 0)
    return index_take(x, (np.asarray(rows, np.int32),), (0,))


def by_group(x: Any, groups: tuple[tuple[int, ...], ...]) -> Any:
    """(members, ...) -> (groups, members of a group, ...)."""
    shape = type_of(x).shape
    rows = take_rows(x, [member for group in groups for member in group])
    return reshape(rows, (len(groups), len(groups[0]), *shape[1:]))


def group_numbers(groups: tuple[tuple[int, ...], ...], size: int) -> tuple[list[int], list[int]]:
    """(group, place in it) of each member."""
    number, place = [0] * size, [0] * size
    for g, group in enumerate(groups):
        for p, member in enumerate(group):
            number[member], place[member] = g, p
    return number, place


def _merge_leading(x: Any) -> Any:
    first, second, *rest = type_of(x).shape
    return reshape(x, (first * second, *rest))


def participants(axis_size: int, groups: Groups) -> int:
    """How many members take part together."""
    return axis_size if groups is None else len(groups[0])


# ---- one value for all


class GroupReduction(Collective):
    """psum, pmax, pmin: `reduce` over the members of each group."""

    def __init__(self, name: str, reduce: Callable[..., Any]):
        super().__init__(name)
        self.reduce = reduce

    def alike(self, x: Any, count: int) -> Any:
        """The result where `count` members have the same value."""
        return x

    def over_axis(self, size: int, x: Any, dim: int | None, *, groups: Groups, **params: Any) -> Batched:
        if groups is None:
            return (self.alike(x, size), None) if dim is None else (self.reduce(x, (dim,)), None)
        rows = mapped_first(x, dim, size)
        totals = [expand_dims(self.reduce(take_rows(rows, g), (0,)), (0,)) for g in groups]
        number, _ = group_numbers(groups, size)
        return take_rows(concatenate(totals, 0), number), 0


class Sum(GroupReduction):
    """The sum; each member gets it, so the cotangents of all are summed for each in turn."""

    def alike(self, x: Any, count: int) -> Any:
        return mul(x, count)

    @transposed
    def transpose(self, cotangent: Any, x: Any, **params: Any) -> Sequence[Any]:
        return [self.bind(cotangent, **params)]


class Extreme(GroupReduction):
    """The largest or smallest; members that share it share its derivative."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = self.bind(*primals, **params)
        tangent = tangents[0]
        if type(tangent) is Zero:
            return out, Zero(tangent_type(type_of(out)))
        chosen = eq(primals[0], out)
        count = PSUM.bind(convert_element_type(chosen, type_of(tangent).dtype), **params)
        total = PSUM.bind(select_n(chosen, full_like(tangent, 0), tangent), **params)
        return out, div(total, count)


PSUM = Sum("psum", reduce_sum)
PMAX = Extreme("pmax", reduce_max)
PMIN = Extreme("pmin", reduce_min)


# ---- gathering and scattering


class AllGather(Collective):
    """The values of all members along a new axis `dimension`."""

    axes = ("dimension",)

    def result_type(
        self, x: Any, *, axis_name: Any, axis_size: int, dimension: int, groups: Groups
    ) -> Any:
        shape = list(x.shape)
        shape.insert(dimension, participants(axis_size, groups))
        return ArrayType(tuple(shape), x.dtype_code, x.weak_type)

    @transposed
    def transpose(self, cotangent: Any, x: Any, **params: Any) -> Sequence[Any]:
        return [PSUM_SCATTER.bind(cotangent, **params)]

    def over_axis(
        self, size: int, x: Any, dim: int | None, *, dimension: int, groups: Groups, **params: Any
    ) -> Batched:
        rows = mapped_first(x, dim, size)
        if groups is None:
            return move_axis(rows, 0, dimension), None
        number, _ = group_numbers(groups, size)
        return move_axis(take_rows(by_group(rows, groups), number), 1, dimension + 1), 0


class SumScatter(Collective):
    """The sum over members; each keeps its own place along `dimension`, which vanishes."""

    axes = ("dimension",)

    def result_type(
        self, x: Any, *, axis_name: Any, axis_size: int, dimension: int, groups: Groups
    ) -> Any:
        shape = list(x.shape)
        del shape[dimension]
        return ArrayType(tuple(shape), x.dtype_code, x.weak_type)

    @transposed
    def transpose(self, cotangent: Any, x: Any, **params: Any) -> Sequence[Any]:
        return [ALL_GATHER.bind(cotangent, **params)]

    def over_axis(
        self, size: int, x: Any, dim: int | None, *, dimension: int, groups: Groups, **params: Any
    ) -> Batched:
        if groups is None:
            if dim is None:
                return mul(x, size), dimension
            return reduce_sum(move_axis(x, dim, 0), (0,)), dimension
        totals = reduce_sum(by_group(mapped_first(x, dim, size), groups), (1,))
        each = _merge_leading(move_axis(totals, dimension + 1, 1))
        number, place = group_numbers(groups, size)
        count = len(groups[0])
        return take_rows(each, [n * count + p for n, p in zip(number, place, strict=True)]), 0


ALL_GATHER = AllGather("all_gather")
PSUM_SCATTER = SumScatter("psum_scatter")


class AllToAll(Collective):
    """Piece j of member i along `split_axis` becomes piece i of member j along `concat_axis`."""

    axes = ("split_axis", "concat_axis")

    def result_type(
        self,
        x: Any,
        *,
        axis_name: Any,
        axis_size: int,
        split_axis: int,
        concat_axis: int,
        groups: Groups,
    ) -> Any:
        shape = list(x.shape)
        del shape[split_axis]
        shape.insert(concat_axis, x.shape[split_axis])
        return ArrayType(tuple(shape), x.dtype_code, x.weak_type)

    @transposed
    def transpose(
        self, cotangent: Any, x: Any, *, split_axis: int, concat_axis: int, **params: Any
    ) -> Sequence[Any]:
        return [self.bind(cotangent, split_axis=concat_axis, concat_axis=split_axis, **params)]

    def over_axis(
        self,
        size: int,
        x: Any,
        dim: int | None,
        *,
        split_axis: int,
        concat_axis: int,
        groups: Groups,
        **params: Any,
    ) -> Batched:
        rows = mapped_first(x, dim, size)
        if groups is None:  # (from, ..., to, ...) -> (to, ..., from, ...)
            return move_axis(move_axis(rows, split_axis + 1, 0), 1, concat_axis + 1), 0
        grouped = by_group(rows, groups)  # (group, from, ..., to, ...)
        swapped = move_axis(move_axis(grouped, split_axis + 2, 1), 2, concat_axis + 2)
        number, place = group_numbers(groups, size)
        count = len(groups[0])
        chosen = [n * count + p for n, p in zip(number, place, strict=True)]
        return take_rows(_merge_leading(swapped), chosen), 0


ALL_TO_ALL = AllToAll("all_to_all")


# ---- moving


class Permute(Collective):
    """Member `to` gets the value of member `from`, for each (from, to) of `perm`; others zeros."""

    @transposed
    def transpose(self, cotangent: Any, x: Any, *, perm: Any, **params: Any) -> Sequence[Any]:
        return [self.bind(cotangent, perm=tuple((to, source) for source, to in perm), **params)]

    def over_axis(self, size: int, x: Any, dim: int | None, *, perm: Any, **params: Any) -> Batched:
        rows = mapped_first(x, dim, size)
        sources = [-1] * size
        for source, to in perm:
            sources[to] = source
        moved = take_rows(rows, [max(s, 0) for s in sources])
        if -1 not in sources:
            return moved, 0
        received = broadcast_in_dim(np.asarray(sources) >= 0, type_of(moved).shape, (0,))
        return select_n(received, full_like(moved, 0), moved), 0


class BroadcastFrom(Collective):
    """Every member gets the value of member `source`."""

    @transposed
    def transpose(
        self, cotangent: Any, x: Any, *, axis_name: Any, axis_size: int, source: int
    ) -> Sequence[Any]:
        total = PSUM.bind(cotangent, axis_name=axis_name, axis_size=axis_size, groups=None)
        own = AXIS_INDEX.bind(axis_name=axis_name, axis_size=axis_size)
        mine = broadcast_in_dim(eq(own, np.int32(source)), type_of(total).shape, ())
        return [select_n(mine, full_like(total, 0), total)]

    def over_axis(self, size: int, x: Any, dim: int | None, *, source: int, **params: Any) -> Batched:
        if dim is None:
            return x, None
        return squeeze(slice_in_dim(x, source, source + 1, axis=dim), (dim,)), None


PPERMUTE = Permute("ppermute")
PBROADCAST = BroadcastFrom("pbroadcast")


class AxisIndex(Collective):
    """The number of the member: int32."""

    def result_type(self, *, axis_name: Any, axis_size: int) -> Any:
        return array_type((), np.int32)

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> Batched:
        numbers = iota(np.int32, axis.size)
        return (add(numbers, np.int32(axis.start)) if axis.start else numbers), 0


AXIS_INDEX = AxisIndex("axis_index")
