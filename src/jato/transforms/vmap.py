"""vmap: the user's face of batching.

Flattens arguments and axes (prefixes of the arguments' trees), finds the size of the mapped
axis, runs the function on batch tracers and puts the axis of each result where it is wanted.
Every problem with an axis is reported with the argument's name and leaf.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from jato.base.errors import check
from jato.base.pytree import (
    FlatFunction,
    broadcast_prefix,
    function_name,
    keystr,
    prefix_mismatch,
    tree_flatten,
    tree_leaves,
    tree_leaves_with_path,
)
from jato.base.signatures import leaf_names
from jato.core.graph_print import short_type
from jato.core.primitive import AxisData
from jato.core.trace import current_trace
from jato.core.types import type_of
from jato.transforms.batching import BatchTrace, batch_flat, with_dim
from jato.transforms.jvp import as_value


def is_none(x: Any) -> bool:
    return x is None


def vmap(
    fun: Callable[..., Any],
    in_axes: int | None | Sequence[Any] = 0,
    out_axes: Any = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable | tuple[Hashable, ...] | None = None,
    sum_match: bool = False,
) -> Callable[..., Any]:
    """`fun` mapped over an axis of its arguments, as one vectorized computation.

    in_axes: which axis of each positional argument is mapped: an integer, None (not mapped), or a
    tuple with one entry per argument, whose entries may be trees that are prefixes of the
    arguments.  Keyword arguments are mapped along axis 0.  out_axes: where the mapped axis of
    each result goes, likewise; None only for results that do not depend on mapped arguments.
    axis_name: a name for collectives (`lax.psum`).  axis_size: needed only if nothing is mapped.
    spmd_axis_name: the mesh axes over which JAX's partitioner spreads the mapped axis; there is no
    partitioner here, so it has no effect.  sum_match must be False.

    >>> import jato.numpy as jnp
    >>> vmap(jnp.dot, in_axes=(0, None))(jnp.ones((2, 3)), jnp.ones(3))
    Array([3., 3.], dtype=float32)

    ValueError for axes that do not fit the arguments and for unequal sizes, naming the leaves.
    """
    name = function_name(fun)
    check(callable(fun), TypeError, f"vmap: expected a function, got {fun!r}")
    check(
        not sum_match,
        NotImplementedError,
        f"vmap of {name}: argument 'sum_match': expected False, got {sum_match!r}; reduce the "
        "result with sum instead",
    )
    if isinstance(in_axes, list):  # a frequent slip, which JAX forgives too
        in_axes = tuple(in_axes)
    _check_axes("in_axes", in_axes, name)
    _check_axes("out_axes", out_axes, name)
    check(
        isinstance(in_axes, (int, tuple)) or in_axes is None,
        TypeError,
        f"vmap of {name}: in_axes must be an integer, None or a tuple of these for the positional "
        f"arguments, got {in_axes!r}",
    )

    @functools.wraps(fun, updated=())
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = tree_flatten((args, kwargs))
        values = [
            as_value(
                x,
                lambda i=i: f"vmap of {name}: argument {leaf_names(fun, args, kwargs)[i]}",
            )  # type: ignore[misc]
            for i, x in enumerate(leaves)
        ]
        axes = _flat_in_axes(name, in_axes, args, kwargs)
        dims = _normalized(fun, name, axes, values, args, kwargs)
        size = _mapped_size(fun, name, axis_size, values, dims, args, kwargs)
        axis = AxisData(axis_name, size)
        flat = FlatFunction(fun, in_tree)
        trace = BatchTrace(current_trace(), axis, f"vmap of {name}")
        outs, out_dims = batch_flat(flat, axis, values, dims, trace)
        outs = [as_value(x, lambda: f"vmap: a result of {name}") for x in outs]
        return _mapped_out(name, axis, outs, out_dims, flat.out_tree, out_axes)

    return mapped


def _check_axes(what: str, axes: Any, name: str) -> None:
    for path, leaf in tree_leaves_with_path(axes, is_none):
        if leaf is not None and not _is_integer(leaf):
            raise TypeError(
                f"vmap of {name}: {what}{keystr(path)} must be an integer or None, got {leaf!r}"
            )


def _is_integer(x: Any) -> bool:
    if isinstance(x, bool):
        return False
    try:
        operator.index(x)
    except TypeError:
        return False
    return True


def _flat_in_axes(
    name: str, in_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[Any]:
    """One axis or None for each leaf of (args, kwargs)."""
    if not isinstance(in_axes, tuple):
        axes = [in_axes] * len(tree_leaves(args))
    else:
        check(
            len(in_axes) == len(args),
            ValueError,
            f"vmap of {name}: in_axes has {len(in_axes)} entries for {len(args)} positional "
            "arguments. Keyword arguments are always mapped along axis 0.",
        )
        try:
            axes = broadcast_prefix(in_axes, args, is_none)
        except ValueError:
            problem = prefix_mismatch(in_axes, args, is_none) or ""
            raise ValueError(
                f"vmap of {name}: in_axes is not a prefix of the arguments{problem}. "
                "in_axes needs one entry per argument, each an integer, None, or a tree shaped "
                "like the argument."
            ) from None
    return axes + [0] * len(tree_leaves(kwargs))


def _normalized(
    fun: Any,
    name: str,
    axes: Sequence[Any],
    values: Sequence[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> list[int | None]:
    dims: list[int | None] = []
    for i, (axis, value) in enumerate(zip(axes, values, strict=True)):
        if axis is None:
            dims.append(None)
            continue
        axis = operator.index(axis)
        aval = type_of(value)
        if not -aval.ndim <= axis < aval.ndim:
            leaf = leaf_names(fun, args, kwargs)[i]
            hint = " Try in_axes=None for it." if aval.ndim == 0 else ""
            raise ValueError(
                f"vmap of {name}: in_axes maps axis {axis} of argument {leaf}, which has type "
                f"{short_type(aval)}, of rank {aval.ndim} only.{hint}"
            )
        dims.append(axis % aval.ndim)
    return dims


def _mapped_size(
    fun: Any,
    name: str,
    axis_size: int | None,
    values: Sequence[Any],
    dims: Sequence[int | None],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> int:
    sizes = {type_of(v).shape[d] for v, d in zip(values, dims, strict=True) if d is not None}
    if axis_size is not None:
        sizes.add(axis_size)
    if len(sizes) == 1:
        return sizes.pop()
    check(
        bool(sizes),
        ValueError,
        f"vmap of {name}: no argument is mapped. At least one entry of in_axes must be an integer, "
        "or axis_size must be given.",
    )
    rows = [
        f"  axis {d} of argument {leaf}, of type {short_type(type_of(v))}, has size "
        f"{type_of(v).shape[d]}"
        for leaf, v, d in zip(leaf_names(fun, args, kwargs), values, dims, strict=True)
        if d is not None
    ]
    if axis_size is not None:
        rows.append(f"  axis_size is {axis_size}")
    raise ValueError(
        f"vmap of {name}: got inconsistent sizes for the mapped axes:\n" + "\n".join(rows) + "\n"
        "Use in_axes=None for an argument that is not mapped."
    )


def _mapped_out(
    name: str,
    axis: AxisData,
    outs: Sequence[Any],
    dims: Sequence[int | None],
    out_tree: Any,
    out_axes: Any,
) -> Any:
    wanted: list[Any]
    if isinstance(out_axes, int):
        wanted = [out_axes] * len(outs)
    else:
        tree = out_tree.unflatten(range(len(outs)))
        if isinstance(out_axes, list) and isinstance(tree, tuple):
            out_axes = tuple(out_axes)
        try:
            wanted = broadcast_prefix(out_axes, tree, is_none)
        except ValueError:
            problem = prefix_mismatch(out_axes, tree, is_none) or ""
            raise ValueError(
                f"vmap of {name}: out_axes is not a prefix of the result{problem}"
            ) from None
    results: list[Any] = []
    for i, (out, dim, want) in enumerate(zip(outs, dims, wanted, strict=True)):
        if want is None:
            if dim is not None:
                raise ValueError(
                    f"vmap of {name}: out_axes is None for {_result_name(out_tree, i)}, which "
                    "depends on a mapped argument. Give the position of its mapped axis."
                )
            results.append(out)
            continue
        rank = type_of(out).ndim + (1 if dim is None else 0)
        want = operator.index(want)
        if not -rank <= want < rank:
            raise ValueError(
                f"vmap of {name}: out_axes puts the mapped axis of {_result_name(out_tree, i)} at "
                f"{want}, but the result has rank {rank}"
            )
        results.append(with_dim(axis, out, dim, want % rank))
    return out_tree.unflatten(results)


def _result_name(out_tree: Any, i: int) -> str:
    paths = tree_leaves_with_path(out_tree.unflatten(range(out_tree.num_leaves)))
    path = keystr(paths[i][0])
    return f"result{path}" if path else "the result"
