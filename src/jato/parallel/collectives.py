"""Collectives: sums, exchanges and numbers of the members of a mapped axis, under jax.lax's names.

They work inside a function mapped with a named axis: `vmap(f, axis_name="i")`, `pmap(f,
axis_name="i")`, at any depth, under jit, grad and in loops.  Under pmap they span the whole
mapped axis, however many devices share it.  The rules are in collective_primitives.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from jato.base import dtypes
from jato.base.errors import check
from jato.base.pytree import tree_map
from jato.core.trace import STATE
from jato.core.types import type_of
from jato.ops.arithmetic import add, div, mul
from jato.ops.convert import convert_element_type
from jato.ops.reduce import reduce_max, reduce_min
from jato.ops.structural import canonical_axis, reduce_sum, reshape
from jato.parallel.collective_primitives import (
    ALL_GATHER,
    ALL_TO_ALL,
    AXIS_INDEX,
    PBROADCAST,
    PMAX,
    PMIN,
    PPERMUTE,
    PSUM,
    PSUM_SCATTER,
    Collective,
    Groups,
    participants,
    unbound,
)
from jato.transforms.jvp import as_value

_NUMBERS = (bool, int, float, complex)


def axis_size(axis_name: Any) -> int:
    """How many members the named axis has (the product, for a tuple of names), as an int.

    >>> import jato, jato.numpy as jnp
    >>> jato.vmap(lambda x: x * axis_size("i"), axis_name="i")(jnp.ones(3))
    Array([3., 3., 3.], dtype=float32)

    NameError if no transformation around the call gives the name.
    """
    return math.prod(_size("axis_size", name) for name in _names(axis_name))


def axis_index(axis_name: Any) -> Any:
    """The number of this member of the named axis, an int32 scalar.

    For a tuple of names, the number among all their members, the last name running fastest.

    >>> import jato, jato.numpy as jnp
    >>> jato.vmap(lambda x: x + axis_index("i"), axis_name="i")(jnp.zeros(3))
    Array([0., 1., 2.], dtype=float32)

    NameError if no transformation around the call gives the name.
    """
    index: Any = None
    for name in _names(axis_name):
        size = _size("axis_index", name)
        own = AXIS_INDEX.bind(axis_name=name, axis_size=size)
        index = own if index is None else add(mul(index, size), own)
    check(index is not None, ValueError, "axis_index: expected an axis name, got an empty tuple")
    return index


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The sum of `x` over all members of the named axis; each gets it.

    x: a tree of arrays; bools are counted.  axis_name: a name or a tuple of names (integers among
    them are axes of x itself).  axis_index_groups: lists of member numbers that partition the
    axis; the sum is then over each group.  The sum of a Python number is a Python number.

    >>> import jato, jato.numpy as jnp
    >>> jato.vmap(lambda x: x / psum(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([0.25, 0.75], dtype=float32)

    NameError if no transformation around the call gives the name; ValueError for groups that do
    not partition the axis.
    """
    return tree_map(lambda leaf: _sum("psum", leaf, axis_name, axis_index_groups), x)


def _sum(function: str, leaf: Any, axis_name: Any, groups: Any) -> Any:
    names, positions = _split(axis_name)
    if type(leaf) in _NUMBERS and not positions and groups is None:
        return leaf * math.prod(_size(function, name) for name in names)
    value = _value(function, leaf)
    if dtypes.is_bool(type_of(value).dtype):
        value = convert_element_type(value, "int32")
    return _reduced(function, value, names, positions, groups, PSUM, reduce_sum)


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean of `x` over all members of the named axis (or of each group); see `psum`.

    >>> import jato, jato.numpy as jnp
    >>> jato.vmap(lambda x: pmean(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([2., 2.], dtype=float32)
    """

    def mean(leaf: Any) -> Any:
        count = _sum("pmean", 1, axis_name, None)
        if axis_index_groups is not None:
            (name,) = _names(axis_name)
            groups = _groups("pmean", axis_index_groups, _size("pmean", name), equal=True)
            count = participants(_size("pmean", name), groups)
        elif any(isinstance(a, int) for a in _names(axis_name)):
            _, positions = _split(axis_name)
            shape = type_of(leaf).shape
            count *= math.prod(shape[p] for p in positions)
        total = _sum("pmean", leaf, axis_name, axis_index_groups)
        if type(total) in _NUMBERS:
            return total / count
        if not dtypes.is_inexact(type_of(total).dtype):
            total = convert_element_type(total, dtypes.scalar_dtype(1.0))
        return div(total, count)

    return tree_map(mean, x)


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The largest `x` over all members of the named axis (or of each group); see `psum`.

    Differentiable; members that share the maximum share its derivative.
    """
    names, positions = _split(axis_name)
    return tree_map(
        lambda leaf: _reduced(
            "pmax", _value("pmax", leaf), names, positions, axis_index_groups, PMAX, reduce_max
        ),
        x,
    )


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The smallest `x` over all members of the named axis (or of each group); see `pmax`."""
    names, positions = _split(axis_name)
    return tree_map(
        lambda leaf: _reduced(
            "pmin", _value("pmin", leaf), names, positions, axis_index_groups, PMIN, reduce_min
        ),
        x,
    )


def all_gather(
    x: Any,
    axis_name: Any,
    *,
    axis_index_groups: Any = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """The values of all members, along a new axis at position `axis`.

    tiled: they are concatenated along the existing axis `axis` instead.  axis_name may be a tuple
    (the last name runs fastest).  axis_index_groups: groups of equal size, each gathers its own.
    `to` is accepted.

    >>> import jato, jato.numpy as jnp
    >>> jato.vmap(lambda x: all_gather(x, "i"), axis_name="i")(jnp.array([1.0, 2.0]))
    Array([[1., 2.],
           [1., 2.]], dtype=float32)
    """
    del to
    names = _names(axis_name)
    _one_for_groups("all_gather", names, axis_index_groups)

    def gather(leaf: Any) -> Any:
        out = _value("all_gather", leaf)
        ndim = type_of(out).ndim
        place = canonical_axis("all_gather", "axis", axis, ndim if tiled else ndim + 1)
        for name in reversed(names):
            size = _size("all_gather", name)
            groups = _groups("all_gather", axis_index_groups, size, equal=True)
            out = ALL_GATHER.bind(
                out, axis_name=name, axis_size=size, dimension=place, groups=groups
            )
            if name is not names[-1] or tiled:
                out = _joined(out, place)
        return out

    return tree_map(gather, x)


def psum_scatter(
    x: Any,
    axis_name: Any,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """The sum over all members, of which each keeps its own piece along `scatter_dimension`.

    That axis must have as many elements as there are members, and vanishes; with `tiled` it must
    be a multiple of them and is cut into equal pieces.

    >>> import jato, jato.numpy as jnp
    >>> jato.vmap(lambda x: psum_scatter(x, "i"), axis_name="i")(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([4., 6.], dtype=float32)

    ValueError if the axis does not fit the number of members.
    """
    names = _names(axis_name)
    _one_for_groups("psum_scatter", names, axis_index_groups)

    def scatter(leaf: Any) -> Any:
        out = _value("psum_scatter", leaf)
        place = canonical_axis(
            "psum_scatter", "scatter_dimension", scatter_dimension, type_of(out).ndim
        )
        counts = []
        for name in names:
            size = _size("psum_scatter", name)
            groups = _groups("psum_scatter", axis_index_groups, size, equal=True)
            counts.append(participants(size, groups))
        out = _cut(
            "psum_scatter", "scatter_dimension", out, place, counts, exact=not tiled
        )
        for name in names:
            size = _size("psum_scatter", name)
            groups = _groups("psum_scatter", axis_index_groups, size, equal=True)
            out = PSUM_SCATTER.bind(
                out, axis_name=name, axis_size=size, dimension=place, groups=groups
            )
        return out

    return tree_map(scatter, x)


def all_to_all(
    x: Any,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Exchanges pieces: piece j of member i becomes piece i of member j.

    `split_axis` of x must have as many elements as there are members; it vanishes, and a new
    axis, over the members the pieces came from, appears at `concat_axis` of the result.  With
    `tiled`, `split_axis` is cut into equal pieces and these are concatenated along `concat_axis`.

    >>> import jato, jato.numpy as jnp
    >>> jato.vmap(lambda x: all_to_all(x, "i", 0, 0), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)

    ValueError if the axis does not fit the number of members.
    """
    (name,) = _single("all_to_all", axis_name)
    size = _size("all_to_all", name)
    groups = _groups("all_to_all", axis_index_groups, size, equal=True)
    count = participants(size, groups)

    def exchange(leaf: Any) -> Any:
        value = _value("all_to_all", leaf)
        ndim = type_of(value).ndim
        split = canonical_axis("all_to_all", "split_axis", split_axis, ndim)
        concat = canonical_axis("all_to_all", "concat_axis", concat_axis, ndim)
        value = _cut("all_to_all", "split_axis", value, split, [count], exact=not tiled)
        out = ALL_TO_ALL.bind(
            value, axis_name=name, axis_size=size, split_axis=split, concat_axis=concat,
            groups=groups,
        )  # fmt: skip
        return _joined(out, concat) if tiled else out

    return tree_map(exchange, x)


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Exchanges the named axis and axis `axis` of x: all_to_all with both at the same place."""
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Sends `x` between members: for each (source, destination) of `perm`.

    A member that is no destination gets zeros.

    >>> import jato, jato.numpy as jnp
    >>> send = lambda x: ppermute(x, "i", [(0, 1), (1, 2)])
    >>> jato.vmap(send, axis_name="i")(jnp.array([1.0, 2.0, 3.0]))
    Array([0., 1., 2.], dtype=float32)

    ValueError if a member is named twice as a source or destination, or does not exist.
    """
    (name,) = _single("ppermute", axis_name)
    size = _size("ppermute", name)
    pairs = tuple((int(source), int(to)) for source, to in perm)
    for what, members in (("source", [s for s, _ in pairs]), ("destination", [d for _, d in pairs])):
        check(
            len(set(members)) == len(members) and all(0 <= m < size for m in members),
            ValueError,
            f"ppermute: each {what} in perm must be a different member of axis {name!r}, from 0 to "
            f"{size - 1}, got {members}",
        )
    return tree_map(
        lambda leaf: PPERMUTE.bind(
            _value("ppermute", leaf), axis_name=name, axis_size=size, perm=pairs
        ),
        x,
    )


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Member i gets the value of member perm[i]; `perm` is a permutation of all members.

    ValueError if it is none.
    """
    size = axis_size(axis_name)
    order = [int(p) for p in perm]
    check(
        sorted(order) == list(range(size)),
        ValueError,
        f"pshuffle: perm must be a permutation of the {size} members of axis {axis_name!r}, got "
        f"{order}",
    )
    return ppermute(x, axis_name, [(source, to) for to, source in enumerate(order)])


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """The value of member `source`, for all members.

    >>> import jato, jato.numpy as jnp
    >>> jato.vmap(lambda x: pbroadcast(x, "i", 1), axis_name="i")(jnp.array([1.0, 2.0, 3.0]))
    Array([2., 2., 2.], dtype=float32)

    ValueError if there is no such member.
    """
    (name,) = _single("pbroadcast", axis_name)
    size = _size("pbroadcast", name)
    check(
        0 <= source < size,
        ValueError,
        f"pbroadcast: source must be a member of axis {name!r}, from 0 to {size - 1}, got {source}",
    )
    return tree_map(
        lambda leaf: PBROADCAST.bind(
            _value("pbroadcast", leaf), axis_name=name, axis_size=size, source=int(source)
        ),
        x,
    )


# ---- arguments


def _names(axis_name: Any) -> tuple[Any, ...]:
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def _single(function: str, axis_name: Any) -> tuple[Any]:
    names = _names(axis_name)
    check(
        len(names) == 1,
        NotImplementedError,
        f"{function}: expected one axis name, got {axis_name!r}",
    )
    return names  # type: ignore[return-value]


def _one_for_groups(function: str, names: tuple[Any, ...], groups: Any) -> None:
    check(
        groups is None or len(names) == 1,
        ValueError,
        f"{function}: axis_index_groups needs a single axis name, got {names!r}",
    )


def _split(axis_name: Any) -> tuple[list[Any], list[int]]:
    """(names, positional axes)."""
    names = _names(axis_name)
    return [n for n in names if not isinstance(n, int)], [n for n in names if isinstance(n, int)]


def _size(function: str, name: Any) -> int:
    sizes = STATE.axis_sizes
    try:
        return sizes[name]
    except (KeyError, TypeError):
        raise unbound(function, name, sizes) from None


def _value(function: str, leaf: Any) -> Any:
    return as_value(leaf, lambda: f"{function}: argument x")


def _groups(function: str, groups: Any, size: int, equal: bool = False) -> Groups:
    if groups is None:
        return None
    found = tuple(tuple(int(m) for m in group) for group in groups)
    members = sorted(m for group in found for m in group)
    check(
        members == list(range(size)),
        ValueError,
        f"{function}: axis_index_groups must name each of the {size} members once, got {groups}",
    )
    check(
        not equal or len({len(g) for g in found}) == 1,
        ValueError,
        f"{function}: axis_index_groups must be of equal size, got {groups}",
    )
    return found


def _reduced(
    function: str,
    value: Any,
    names: Sequence[Any],
    positions: Sequence[int],
    groups: Any,
    primitive: Collective,
    reduce: Callable[..., Any],
) -> Any:
    _one_for_groups(function, tuple(names), groups)
    if positions:
        ndim = type_of(value).ndim
        axes = tuple(canonical_axis(function, "axis_name", p, ndim) for p in positions)
        value = reduce(value, axes)
    for name in names:
        size = _size(function, name)
        value = primitive.bind(
            value, axis_name=name, axis_size=size, groups=_groups(function, groups, size)
        )
    return value


def _joined(x: Any, place: int) -> Any:
    """Axes `place` and `place + 1` as one."""
    shape = type_of(x).shape
    return reshape(x, (*shape[:place], shape[place] * shape[place + 1], *shape[place + 2 :]))


def _cut(
    function: str, argument: str, x: Any, place: int, counts: Sequence[int], exact: bool
) -> Any:
    """Axis `place` cut into `counts` pieces; `exact`: nothing is left in each."""
    shape = type_of(x).shape
    total = math.prod(counts)
    length = shape[place]
    fits = length == total if exact else length % total == 0
    wanted = f"{total} elements" if exact else f"a multiple of {total} elements"
    hint = " Try tiled=True." if exact and length % total == 0 else ""
    check(
        fits,
        ValueError,
        f"{function}: axis {argument}={place} of an array of shape {shape} must have {wanted}, one "
        f"for each member, got {length}.{hint}",
    )
    rest = () if exact else (length // total,)
    return reshape(x, (*shape[:place], *counts, *rest, *shape[place + 1 :]))


__all__ = [
    "all_gather", "all_to_all", "axis_index", "axis_size", "pbroadcast", "pmax", "pmean", "pmin",
    "ppermute", "pshuffle", "psum", "psum_scatter", "pswapaxes",
]  # fmt: skip
