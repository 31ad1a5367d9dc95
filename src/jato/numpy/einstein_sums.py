"""einsum: sums of products by index names.

opt_einsum chooses the order of the pairwise products; each becomes one dot_general, or an
elementwise product where nothing is summed.
"""

from __future__ import annotations

import builtins
from typing import Any

from jato.base.caches import MISSING, LruCache
from jato.base.dtypes import canonicalize, is_bool, promote_types
from jato.base.errors import require_unsharded
from jato.base.lazy import LazyModule
from jato.jit.eager import public
from jato.numpy.contractions import multiply_operands, product_over
from jato.numpy.manipulation import moveaxis
from jato.numpy.promote import dtype_of, hashable, promote_dtypes, require_no_out
from jato.numpy.reductions import as_type
from jato.ops import structural
from jato.ops.reduce import reduce_or

opt_einsum = LazyModule("opt_einsum")


# ---- einsum


class _Shaped:
    """What opt_einsum needs to know of an operand."""

    def __init__(self, shape: tuple[int, ...]):
        self.shape = shape


def _interleaved(operands: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """einsum(x, [0, 1], y, [1, 2], [0, 2]) -> subscripts and operands."""
    arrays = list(operands[0 : len(operands) // 2 * 2 : 2])
    lists = list(operands[1 : len(operands) // 2 * 2 : 2])
    letter = lambda i: "..." if i is Ellipsis else opt_einsum.get_symbol(int(i))  # noqa: E731
    terms = ["".join(map(letter, item)) for item in lists]
    subscripts = ",".join(terms)
    if len(operands) % 2:
        subscripts += "->" + "".join(map(letter, operands[-1]))
    return subscripts, arrays


def _optimize(optimize: Any) -> Any:
    return "optimal" if optimize is True else optimize


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: Any = None,
    _dot_general: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Einstein's summation: products summed over the indices that the output does not name.

    subscripts: as in "ij,jk->ik"; or operands and index lists in turn.  The order of the pairwise
    products is chosen by opt_einsum.

    >>> import jato.numpy as jnp
    >>> jnp.einsum("ij,j->i", jnp.ones((2, 3)), jnp.ones(3))
    Array([3., 3.], dtype=float32)
    """
    require_unsharded("einsum", out_sharding)
    require_no_out("einsum", out)
    if not isinstance(subscripts, str):
        subscripts, arrays = _interleaved((subscripts, *operands))
        operands = tuple(arrays)
    optimize = hashable(optimize) if isinstance(optimize, (list, tuple)) else optimize
    return _einsum(tuple(operands), subscripts, optimize, preferred_element_type)


def einsum_path(subscripts: Any, /, *operands: Any, optimize: Any = "auto") -> Any:
    """The order of pairwise products that `einsum` takes, and its description by opt_einsum.

    >>> import jato.numpy as jnp
    >>> jnp.einsum_path("ij,jk->ik", jnp.ones((2, 2)), jnp.ones((2, 2)))[0]
    [(0, 1)]
    """
    if isinstance(optimize, bool):
        optimize = "optimal" if optimize else [tuple(range(len(operands)))]
    return opt_einsum.contract_path(subscripts, *operands, optimize=optimize)


_einsum_plans = LruCache(1024)


def _einsum_plan(subscripts: str, shapes: tuple[tuple[int, ...], ...], optimize: Any) -> Any:
    """(input terms, output term, [positions to contract]).  Kept, since a path costs 100 us."""
    key = (subscripts, shapes, optimize)
    found = _einsum_plans.get(key)
    if found is MISSING:
        inputs, output, _ = opt_einsum.parser.parse_einsum_input(
            (subscripts, *map(_Shaped, shapes)), shapes=False
        )
        terms = inputs.split(",")
        _check_einsum(subscripts, terms, output, shapes)
        if len(shapes) <= 2:
            path: Any = [tuple(range(len(shapes)))]
        else:
            kind = "auto" if optimize is True else optimize
            path = (
                [tuple(range(len(shapes)))]
                if kind is False
                else opt_einsum.contract_path(subscripts, *map(_Shaped, shapes), optimize=kind)[0]
            )
        found = (terms, output, [tuple(p) for p in path])
        _einsum_plans.put(key, found)
    return found


def _check_einsum(subscripts: str, terms: list[str], output: str, shapes: Any) -> None:
    sizes: dict[str, int] = {}
    if len(terms) != len(shapes):
        raise ValueError(f"einsum: {subscripts!r} names {len(terms)} operands, got {len(shapes)}")
    for term, shape in zip(terms, shapes, strict=True):
        if len(term) != len(shape):
            raise ValueError(
                f"einsum: {subscripts!r} names {len(term)} axes ({term}) for shape {shape}"
            )
        for name, size in zip(term, shape, strict=True):
            if sizes.setdefault(name, size) != size and 1 not in (size, sizes[name]):
                raise ValueError(
                    f"einsum: index {name!r} of {subscripts!r} has sizes {sizes[name]} and {size}"
                )
            sizes[name] = builtins.max(size, sizes[name]) if size != 0 else 0
    for name in output:
        if name not in sizes:
            raise ValueError(
                f"einsum: output index {name!r} of {subscripts!r} is not in the inputs"
            )


@public(static=("subscripts", "optimize", "preferred_element_type"))
def _einsum(
    operands: tuple[Any, ...], subscripts: str, optimize: Any, preferred_element_type: Any
) -> Any:
    arrays = promote_dtypes("einsum", *operands)
    shapes = tuple(x.shape for x in arrays)
    terms, output, path = _einsum_plan(subscripts, shapes, optimize)
    live = [_diagonal(x, term) for x, term in zip(arrays, terms, strict=True)]
    if any_ones(live):
        live = _drop_broadcast_ones(live)
    for positions in path:
        chosen = [live[i] for i in positions]
        live = [item for i, item in enumerate(live) if i not in positions]
        needed = set(output).union(*(set(term) for _, term in live))
        result = chosen[0]
        for k, other in enumerate(chosen[1:]):
            rest = set().union(*(set(term) for _, term in chosen[k + 2 :]))
            result = _pair(result, other, needed | rest, preferred_element_type)
        result = _sum_out(result, needed)
        live.append(result)
    x, term = live[0]
    x, term = _sum_out((x, term), set(output))
    order = tuple(term.index(name) for name in output)
    x = structural.transpose(x, order) if order != tuple(range(len(order))) else x
    return x if preferred_element_type is None else as_type(x, canonicalize(preferred_element_type))


def any_ones(live: list[tuple[Any, str]]) -> bool:
    """Does an index have size 1 in one operand and another size elsewhere?"""
    sizes: dict[str, set[int]] = {}
    for x, term in live:
        for name, size in zip(term, x.shape, strict=True):
            sizes.setdefault(name, set()).add(size)
    return builtins.any(len(s) > 1 for s in sizes.values())


def _drop_broadcast_ones(live: list[tuple[Any, str]]) -> list[tuple[Any, str]]:
    largest: dict[str, int] = {}
    for x, term in live:
        for name, size in zip(term, x.shape, strict=True):
            largest[name] = size if largest.get(name, 1) == 1 else largest[name]
    result = []
    for x, term in live:
        gone = [i for i, name in enumerate(term) if x.shape[i] == 1 and largest[name] != 1]
        shape = tuple(s for i, s in enumerate(x.shape) if i not in gone)
        result.append(
            (structural.reshape(x, shape), "".join(n for i, n in enumerate(term) if i not in gone))
        )
    return result


def _diagonal(x: Any, term: str) -> tuple[Any, str]:
    """Indices named twice in one operand: its diagonal."""
    while len(set(term)) != len(term):
        name = next(n for n in term if term.count(n) > 1)
        i, j = term.index(name), term.rindex(name)
        x = moveaxis(x, (i, j), (-2, -1))
        *batch, n, _ = x.shape
        flat = structural.reshape(x, (*batch, n * n))
        limits = (*batch, n * n)
        rank = len(batch)
        x = (
            structural.slice(flat, (0,) * (rank + 1), limits, (1,) * rank + (n + 1,))
            if n
            else (structural.reshape(flat, (*batch, 0)))
        )
        term = "".join(c for k, c in enumerate(term) if k not in (i, j)) + name
    return x, term


def _sum_out(item: tuple[Any, str], needed: set[str]) -> tuple[Any, str]:
    x, term = item
    gone = tuple(i for i, name in enumerate(term) if name not in needed)
    if not gone:
        return item
    total = reduce_or if is_bool(dtype_of(x)) else structural.reduce_sum  # as products of bools
    return total(x, gone), "".join(n for n in term if n in needed)


def _pair(
    left: tuple[Any, str], right: tuple[Any, str], needed: set[str], preferred: Any
) -> tuple[Any, str]:
    """The product of two operands, summed over what nobody needs any more."""
    (x, a), (y, b) = left, right
    x, a = _sum_out((x, a), needed | set(b))
    y, b = _sum_out((y, b), needed | set(a))
    shared = [name for name in a if name in b]
    batch = [name for name in shared if name in needed]
    inner_names = [name for name in shared if name not in needed]
    numbers = (
        (tuple(map(a.index, inner_names)), tuple(map(b.index, inner_names))),
        (tuple(map(a.index, batch)), tuple(map(b.index, batch))),
    )
    term = (
        "".join(batch)
        + "".join(n for n in a if n not in shared)
        + "".join(n for n in b if n not in shared)
    )
    if not inner_names:
        if preferred is not None:
            wide = promote_types(dtype_of(x), canonicalize(preferred))
            x, y = as_type(x, wide), as_type(y, wide)
        return _outer_pair(x, a, y, b, term), term
    return product_over(x, y, *numbers, preferred), term


def _outer_pair(x: Any, a: str, y: Any, b: str, term: str) -> Any:
    """No sum: an elementwise product of broadcast operands, which fuses."""
    sizes = dict(zip(a, x.shape, strict=True)) | dict(zip(b, y.shape, strict=True))
    shape = tuple(sizes[n] for n in term)

    def spread(z: Any, names: str) -> Any:
        order = sorted(range(len(names)), key=lambda i: term.index(names[i]))
        z = structural.transpose(z, tuple(order))
        return structural.broadcast_in_dim(z, shape, tuple(term.index(names[i]) for i in order))

    return multiply_operands("einsum", spread(x, a), spread(y, b))
