"""map and associative_scan: the compositions built on scan and slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jato.base.errors import check
from jato.base.pytree import function_name, keystr, tree_flatten, tree_leaves_with_path, tree_map
from jato.control.scan import scan
from jato.control.staged_functions import flat_values
from jato.core.types import type_of
from jato.ops.structural import concatenate, expand_dims, reshape, rev, slice, slice_in_dim
from jato.transforms.vmap import vmap


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """Applies `f` to each slice of `xs` along the leading axis, one after the other; stacks results.

    batch_size: so many slices are handled at once, by vmap.

    >>> import jato.numpy as jnp
    >>> map(lambda x: x * x, jnp.array([1.0, 2.0, 3.0]))
    Array([1., 4., 9.], dtype=float32)

    ValueError if the leaves of xs have different leading axes.
    """
    check(callable(f), TypeError, f"map: expected a function, got {f!r}")
    if batch_size is None:
        return scan(_pairing(f, f), None, xs)[1]
    check(batch_size > 0, ValueError, f"map: batch_size must be positive, got {batch_size}")
    leaves, treedef = flat_values("map: xs", xs)
    check(bool(leaves), ValueError, "map: xs has no leaves")
    length = type_of(leaves[0]).shape[0]
    count, rest = divmod(length, batch_size)
    mapped = vmap(f)
    parts: list[Any] = []
    if count or not rest:
        whole = [
            reshape(
                slice_in_dim(x, 0, count * batch_size),
                (count, batch_size, *type_of(x).shape[1:]),
            )
            for x in leaves
        ]
        _, stacked = scan(_pairing(mapped, f), None, treedef.unflatten(whole))
        parts.append(
            tree_map(lambda y: reshape(y, (count * batch_size, *type_of(y).shape[2:])), stacked)
        )
    if rest:
        tail = [slice_in_dim(x, count * batch_size, length) for x in leaves]
        parts.append(mapped(treedef.unflatten(tail)))
    if len(parts) == 1:
        return parts[0]
    return tree_map(lambda *ys: concatenate(list(ys), 0), *parts)


def _pairing(f: Callable[[Any], Any], named: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def step(carry: Any, x: Any) -> Any:
        return carry, f(x)

    step.__name__ = function_name(named)
    return step


def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """All prefix combinations of `elems` under an associative `fn`, in logarithmic depth.

    elems is a pytree of arrays with equal sizes along `axis`; fn(a, b) combines two such trees
    elementwise along that axis.  (Blelloch, "Prefix sums and their applications", 1990.)

    >>> import jato.numpy as jnp
    >>> associative_scan(jnp.add, jnp.arange(1, 6))
    Array([ 1,  3,  6, 10, 15], dtype=int32)

    ValueError if the sizes along the axis differ.
    """
    check(callable(fn), TypeError, f"associative_scan: expected a function, got {fn!r}")
    leaves, treedef = flat_values("associative_scan: elems", elems)
    check(bool(leaves), ValueError, "associative_scan: elems has no leaves")
    axes = _axes(elems, leaves, axis)
    if reverse:
        leaves = [rev(x, (a,)) for x, a in zip(leaves, axes, strict=True)]

    def combine(left: list[Any], right: list[Any]) -> list[Any]:
        found, tree = tree_flatten(fn(treedef.unflatten(left), treedef.unflatten(right)))
        check(
            tree == treedef,
            TypeError,
            f"associative_scan: fn must return the structure of elems, {treedef}, got {tree}",
        )
        return found

    found = _prefixes(combine, leaves, axes)
    if reverse:
        found = [rev(x, (a,)) for x, a in zip(found, axes, strict=True)]
    return treedef.unflatten(found)


def _axes(elems: Any, leaves: Sequence[Any], axis: int) -> list[int]:
    """The axis of each leaf, not negative."""
    axes: list[int] = []
    sizes: dict[str, int] = {}
    for (path, _), x in zip(tree_leaves_with_path(elems), leaves, strict=True):
        aval = type_of(x)
        check(
            -aval.ndim <= axis < aval.ndim,
            ValueError,
            f"associative_scan: axis {axis} is out of bounds for elems{keystr(path)} of rank "
            f"{aval.ndim}",
        )
        axes.append(axis % aval.ndim)
        sizes[f"elems{keystr(path)}"] = aval.shape[axes[-1]]
    check(
        len(set(sizes.values())) == 1,
        ValueError,
        "associative_scan: sizes along the axis differ: "
        + ", ".join(f"{name} has {size}" for name, size in sizes.items()),
    )
    return axes


def _part(x: Any, axis: int, start: int, stop: int, stride: int = 1) -> Any:
    shape = type_of(x).shape
    starts, stops, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], stops[axis], strides[axis] = start, max(stop, start), stride
    return slice(x, tuple(starts), tuple(stops), tuple(strides))


def _prefixes(
    combine: Callable[[list[Any], list[Any]], list[Any]], leaves: list[Any], axes: list[int]
) -> list[Any]:
    """Pairs are combined, their prefixes found recursively; those are the odd results, and the
    even ones are one combination away."""
    size = type_of(leaves[0]).shape[axes[0]]
    if size < 2:
        return leaves

    def parts(values: list[Any], start: int, stop: int, stride: int = 1) -> list[Any]:
        return [_part(x, a, start, stop, stride) for x, a in zip(values, axes, strict=True)]

    pairs = combine(parts(leaves, 0, size - 1, 2), parts(leaves, 1, size, 2))
    odd = _prefixes(combine, pairs, axes)
    count = size // 2
    before = odd if size % 2 else parts(odd, 0, count - 1)
    even = parts(leaves, 0, 1)
    if size > 2:
        later = combine(before, parts(leaves, 2, size, 2))
        even = [concatenate([a, b], d) for a, b, d in zip(even, later, axes, strict=True)]
    return [_interleave(a, b, d) for a, b, d in zip(even, odd, axes, strict=True)]


def _interleave(even: Any, odd: Any, axis: int) -> Any:
    """even[0], odd[0], even[1], ...; `even` may be one longer."""
    count = type_of(odd).shape[axis]
    shape = list(type_of(odd).shape)
    shape[axis] = 2 * count
    pairs = [expand_dims(x, (axis + 1,)) for x in (_part(even, axis, 0, count), odd)]
    mixed = reshape(concatenate(pairs, axis + 1), tuple(shape))
    size = type_of(even).shape[axis]
    if size == count:
        return mixed
    return concatenate([mixed, _part(even, axis, count, size)], axis)
