"""Products of arrays: dot, matmul, einsum and their kin, convolution in one dimension.

All end in `dot_general` (ops/contract.py) with operands of one dtype.  `preferred_element_type`
is the dtype of the result; `precision` is accepted and has no effect: products are computed in
full precision.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

from jato.base.dtypes import canonicalize, is_bool, is_complex
from jato.base.errors import ShapeMismatchError
from jato.base.lazy import LazyModule
from jato.jit.eager import public
from jato.numpy.manipulation import hashable, moveaxis
from jato.numpy.promote import (
    as_operand,
    common_shape,
    dtype_of,
    normalize_axes,
    normalize_axis,
    promote_all,
    promote_dtypes,
    require_no_out,
    shape_of,
)
from jato.numpy.reductions import as_type
from jato.ops import contract, elementwise, structural, window

opt_einsum = LazyModule("opt_einsum")

_STATIC = ("precision", "preferred_element_type", "out_sharding")


def _dot_general(
    a: Any, b: Any, contracting: tuple[Any, Any], batch: tuple[Any, Any], preferred: Any
) -> Any:
    preferred = None if preferred is None else canonicalize(preferred)
    return contract.dot_general(a, b, (contracting, batch), preferred_element_type=preferred)


def _check_inner(function: str, a: Any, b: Any, i: int, j: int) -> None:
    if a.shape[i] != b.shape[j]:
        raise ShapeMismatchError(
            f"{function} requires contracting dimensions to have the same shape: axis {i} of shape "
            f"{a.shape} against axis {j} of shape {b.shape}"
        )


@public(static=_STATIC)
def dot(
    a: Any,
    b: Any,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """The dot product: of vectors, of matrices, or over the last axis of a and the last but one of b.

    a, b: arrays or numbers (a number multiplies).  Raises ShapeMismatchError.

    >>> import jato.numpy as jnp
    >>> jnp.dot(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]))
    Array(11., dtype=float32)
    """
    if not shape_of(as_operand("dot", a)) or not shape_of(as_operand("dot", b, 1)):
        product = _multiply("dot", a, b)
        return (
            product
            if preferred_element_type is None
            else as_type(product, canonicalize(preferred_element_type))
        )
    a, b = promote_dtypes("dot", a, b)
    i = len(a.shape) - 1
    j = builtins.max(len(b.shape) - 2, 0)
    _check_inner("dot", a, b, i, j)
    return _dot_general(a, b, ((i,), (j,)), ((), ()), preferred_element_type)


def _multiply(function: str, a: Any, b: Any) -> Any:
    x, y = promote_all(function, a, b)
    return elementwise.bitwise_and(x, y) if is_bool(dtype_of(x)) else elementwise.mul(x, y)


def _matmul(function: str, a: Any, b: Any, preferred: Any) -> Any:
    ta, tb = getattr(a, "aval", None), getattr(b, "aval", None)
    if ta is None or tb is None or ta.dtype_code != tb.dtype_code:
        a, b = promote_dtypes(function, a, b)
    for i, x in enumerate((a, b)):
        if not x.shape:
            raise ValueError(
                f"{function} input operand {i} must have ndim at least 1, but it has ndim 0"
            )
    rank_a, rank_b = len(a.shape), len(b.shape)
    i, j = rank_a - 1, builtins.max(rank_b - 2, 0)
    _check_inner(function, a, b, i, j)
    if rank_b <= 2:
        return _dot_general(a, b, ((i,), (j,)), ((), ()), preferred)
    if rank_a == 1:
        # b's last axis and its batch remain, in order
        return _dot_general(a, b, ((0,), (j,)), ((), ()), preferred)
    batch_a, batch_b = a.shape[:-2], b.shape[:-2]
    if math.prod(batch_a) == 1 and len(batch_a) <= len(batch_b):
        # one matrix against many: contract without a batch and put its rows in place
        flat = structural.reshape(a, a.shape[-2:])
        result = _dot_general(flat, b, ((1,), (rank_b - 2,)), ((), ()), preferred)
        return moveaxis(result, 0, -2)
    batch = common_shape(function, [batch_a, batch_b])
    a, b = _expand_batch(a, batch), _expand_batch(b, batch)
    axes = tuple(range(len(batch)))
    n = len(batch)
    return _dot_general(a, b, ((n + 1,), (n,)), (axes, axes), preferred)


def _expand_batch(x: Any, batch: tuple[int, ...]) -> Any:
    target = (*batch, *x.shape[-2:])
    if x.shape == target:
        return x
    rank = len(target)
    return structural.broadcast_in_dim(x, target, tuple(range(rank - len(x.shape), rank)))


@public(static=_STATIC)
def matmul(
    a: Any,
    b: Any,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """The matrix product over the last two axes; leading axes broadcast.

    a, b: arrays of rank 1 or more; a vector on the left is a row, on the right a column, and its
    axis is dropped.  Raises ShapeMismatchError, ValueError for numbers.

    >>> import jato.numpy as jnp
    >>> jnp.matmul(jnp.array([[1.0, 2.0]]), jnp.array([[3.0], [4.0]]))
    Array([[11.]], dtype=float32)
    """
    return _matmul("matmul", a, b, preferred_element_type)


@public(static=_STATIC)
def inner(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The sum of products over the last axes of both.

    >>> import jato.numpy as jnp
    >>> jnp.inner(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]))
    Array(11., dtype=float32)
    """
    if not shape_of(as_operand("inner", a)) or not shape_of(as_operand("inner", b, 1)):
        return _multiply("inner", a, b)
    a, b = promote_dtypes("inner", a, b)
    i, j = len(a.shape) - 1, len(b.shape) - 1
    _check_inner("inner", a, b, i, j)
    return _dot_general(a, b, ((i,), (j,)), ((), ()), preferred_element_type)


@public()
def outer(a: Any, b: Any, out: None = None) -> Any:
    """All products of elements of a with elements of b, as a matrix.

    >>> import jato.numpy as jnp
    >>> jnp.outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    require_no_out("outer", out)
    a, b = promote_dtypes("outer", a, b)
    a = structural.reshape(a, (math.prod(a.shape), 1))
    b = structural.reshape(b, (1, math.prod(b.shape)))
    return _multiply("outer", a, b)


def _conjugated(x: Any) -> Any:
    return elementwise.conj(x) if is_complex(dtype_of(x)) else x


@public(static=_STATIC)
def vdot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The dot product of the flattened arrays, the first one conjugated.

    >>> import jato.numpy as jnp
    >>> jnp.vdot(jnp.array([1j]), jnp.array([1j]))
    Array(1.+0.j, dtype=complex64)
    """
    a, b = promote_dtypes("vdot", a, b)
    a, b = (structural.reshape(x, (math.prod(x.shape),)) for x in (a, b))
    _check_inner("vdot", a, b, 0, 0)
    return _dot_general(_conjugated(a), b, ((0,), (0,)), ((), ()), preferred_element_type)


def _vector_product(function: str, x1: Any, x2: Any, axis: int, preferred: Any) -> Any:
    x1, x2 = promote_dtypes(function, x1, x2)
    for x in (x1, x2):
        if not x.shape:
            raise ValueError(f"{function}: arguments must have rank 1 or more, got a number")
    x1, x2 = (moveaxis(x, normalize_axis(function, axis, len(x.shape)), -1) for x in (x1, x2))
    _check_inner(function, x1, x2, len(x1.shape) - 1, len(x2.shape) - 1)
    batch = common_shape(function, [x1.shape[:-1], x2.shape[:-1]])
    rank = len(batch)
    target = (*batch, x1.shape[-1])
    x1, x2 = (
        structural.broadcast_in_dim(x, target, tuple(range(rank + 1 - len(x.shape), rank + 1)))
        for x in (x1, x2)
    )
    axes = tuple(range(rank))
    return _dot_general(_conjugated(x1), x2, ((rank,), (rank,)), (axes, axes), preferred)


@public(static=(*_STATIC, "axis"))
def vecdot(
    x1: Any,
    x2: Any,
    /,
    *,
    axis: int = -1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """The dot product of vectors along an axis, the first conjugated; other axes broadcast.

    >>> import jato.numpy as jnp
    >>> jnp.vecdot(jnp.array([[1.0, 2.0]]), jnp.array([3.0, 4.0]))
    Array([11.], dtype=float32)
    """
    return _vector_product("vecdot", x1, x2, axis, preferred_element_type)


@public()
def matvec(x1: Any, x2: Any, /) -> Any:
    """Matrices times vectors; leading axes broadcast.

    >>> import jato.numpy as jnp
    >>> jnp.matvec(jnp.array([[1.0, 2.0]]), jnp.array([3.0, 4.0]))
    Array([11.], dtype=float32)
    """
    x1, x2 = promote_dtypes("matvec", x1, x2)
    if len(x1.shape) < 2 or not x2.shape:
        raise ValueError(
            f"matvec: expected a matrix and a vector, got shapes {x1.shape} and {x2.shape}"
        )
    column = structural.reshape(x2, (*x2.shape, 1))
    product = _matmul("matvec", x1, column, None)
    return structural.reshape(product, product.shape[:-1])


@public()
def vecmat(x1: Any, x2: Any, /) -> Any:
    """Conjugated vectors times matrices; leading axes broadcast.

    >>> import jato.numpy as jnp
    >>> jnp.vecmat(jnp.array([3.0, 4.0]), jnp.array([[1.0], [2.0]]))
    Array([11.], dtype=float32)
    """
    x1, x2 = promote_dtypes("vecmat", x1, x2)
    if len(x2.shape) < 2 or not x1.shape:
        raise ValueError(
            f"vecmat: expected a vector and a matrix, got shapes {x1.shape} and {x2.shape}"
        )
    row = structural.reshape(_conjugated(x1), (*x1.shape[:-1], 1, x1.shape[-1]))
    product = _matmul("vecmat", row, x2, None)
    return structural.reshape(product, (*product.shape[:-2], product.shape[-1]))


@public(static=(*_STATIC, "axes"))
def tensordot(
    a: Any,
    b: Any,
    axes: Any = 2,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """The sum of products over axes of a and axes of b.

    axes: a number n (the last n axes of a with the first n of b) or a pair of axes or tuples.

    >>> import jato.numpy as jnp
    >>> jnp.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), 1).shape
    (2, 4)
    """
    a, b = promote_dtypes("tensordot", a, b)
    if hasattr(axes, "__index__"):
        n = axes.__index__()
        if not 0 <= n <= builtins.min(len(a.shape), len(b.shape)):
            raise TypeError(
                f"tensordot: argument 'axes' is {n}, but ranks are {len(a.shape)} and {len(b.shape)}"
            )
        left = tuple(range(len(a.shape) - n, len(a.shape)))
        right = tuple(range(n))
    else:
        if len(axes) != 2:
            raise TypeError(f"tensordot: argument 'axes' must be a number or a pair, got {axes}")
        left = normalize_axes("tensordot", axes[0], len(a.shape), "axes")
        right = normalize_axes("tensordot", axes[1], len(b.shape), "axes")
        if len(left) != len(right):
            raise TypeError(f"tensordot: axes lists must have equal length, got {axes}")
    for i, j in zip(left, right, strict=True):
        _check_inner("tensordot", a, b, i, j)
    return _dot_general(a, b, (left, right), ((), ()), preferred_element_type)


@public()
def kron(a: Any, b: Any) -> Any:
    """The Kronecker product: each element of a times the whole of b, as blocks.

    >>> import jato.numpy as jnp
    >>> jnp.kron(jnp.array([1, 2]), jnp.array([1, 1]))
    Array([1, 1, 2, 2], dtype=int32)
    """
    a, b = promote_dtypes("kron", a, b)
    rank = builtins.max(len(a.shape), len(b.shape))
    shape_a = (1,) * (rank - len(a.shape)) + a.shape
    shape_b = (1,) * (rank - len(b.shape)) + b.shape
    wide_a = tuple(n for s in shape_a for n in (s, 1))
    wide_b = tuple(n for s in shape_b for n in (1, s))
    product = _multiply("kron", structural.reshape(a, wide_a), structural.reshape(b, wide_b))
    return structural.reshape(product, tuple(s * t for s, t in zip(shape_a, shape_b, strict=True)))


@public(static=("axisa", "axisb", "axisc", "axis"))
def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    """The cross product of vectors of length 3 (or 2, with third component 0).

    >>> import jato.numpy as jnp
    >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = promote_dtypes("cross", a, b)
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    sizes = (a.shape[-1], b.shape[-1])
    if builtins.any(n not in (2, 3) for n in sizes):
        raise ValueError(f"cross: dimension must be either 2 or 3, got {sizes}")
    batch = common_shape("cross", [a.shape[:-1], b.shape[:-1]])

    def parts(x: Any) -> list[Any]:
        result = []
        for i in range(x.shape[-1]):
            limits = (*x.shape[:-1], i + 1)
            part = structural.slice(x, (0,) * (len(x.shape) - 1) + (i,), limits)
            part = structural.reshape(part, x.shape[:-1])
            rank = len(batch)
            result.append(
                structural.broadcast_in_dim(part, batch, tuple(range(rank - len(part.shape), rank)))
            )
        return result

    u, v = parts(a), parts(b)
    difference = lambda p, q, r, s: elementwise.sub(elementwise.mul(p, q), elementwise.mul(r, s))  # noqa: E731
    if sizes == (2, 2):
        return difference(u[0], v[1], u[1], v[0])
    zero = structural.full(batch, 0, dtype_of(a))
    u, v = (x + [zero] * (3 - len(x)) for x in (u, v))
    columns = [
        difference(u[1], v[2], u[2], v[1]),
        difference(u[2], v[0], u[0], v[2]),
        difference(u[0], v[1], u[1], v[0]),
    ]
    stacked = structural.concatenate(
        [structural.reshape(c, (*batch, 1)) for c in columns], len(batch)
    )
    return moveaxis(stacked, -1, axisc)


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


_einsum_plans: dict[Any, tuple[list[str], str, list[tuple[tuple[int, ...], str]]]] = {}


def _einsum_plan(subscripts: str, shapes: tuple[tuple[int, ...], ...], optimize: Any) -> Any:
    """(input terms, output term, [(positions to contract, resulting term)]).  Kept: a path costs 100 us."""
    key = (subscripts, shapes, optimize)
    found = _einsum_plans.get(key)
    if found is None:
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
        if len(_einsum_plans) > 1024:
            _einsum_plans.clear()
        _einsum_plans[key] = found
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
        live = _drop_broadcast_ones(live, output)
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


def _drop_broadcast_ones(live: list[tuple[Any, str]], output: str) -> list[tuple[Any, str]]:
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
    if is_bool(dtype_of(x)):
        raise TypeError("einsum: sums of bools are not defined; convert to integers")
    return structural.reduce_sum(x, gone), "".join(n for n in term if n in needed)


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
        return _outer_pair(x, a, y, b, term), term
    return _dot_general(x, y, *numbers, preferred), term


def _outer_pair(x: Any, a: str, y: Any, b: str, term: str) -> Any:
    """No sum: an elementwise product of broadcast operands, which fuses."""
    sizes = dict(zip(a, x.shape, strict=True)) | dict(zip(b, y.shape, strict=True))
    shape = tuple(sizes[n] for n in term)

    def spread(z: Any, names: str) -> Any:
        order = sorted(range(len(names)), key=lambda i: term.index(names[i]))
        z = structural.transpose(z, tuple(order))
        return structural.broadcast_in_dim(z, shape, tuple(term.index(names[i]) for i in order))

    return _multiply("einsum", spread(x, a), spread(y, b))


# ---- convolution


def _convolve(function: str, a: Any, v: Any, mode: str, preferred: Any, flip: bool) -> Any:
    if mode not in ("full", "same", "valid"):
        raise ValueError(
            f"{function}: argument 'mode' must be 'full', 'same' or 'valid', got {mode!r}"
        )
    a, v = promote_dtypes(function, a, v, inexact=True)
    for name, x in (("a", a), ("v", v)):
        if len(x.shape) != 1:
            raise ValueError(f"{function}: argument '{name}' must have rank 1, got shape {x.shape}")
        if x.shape[0] == 0:
            raise ValueError(f"{function}: argument '{name}' must not be empty")
    swapped = v.shape[0] > a.shape[0]
    if function == "correlate":
        v = _conjugated(v)
    if swapped:
        a, v = v, a
    if flip:
        v = structural.rev(v, (0,))
    n = v.shape[0]
    padding = {"full": (n - 1, n - 1), "valid": (0, 0), "same": (n // 2, n - 1 - n // 2)}[mode]
    if function == "correlate" and mode == "same":
        padding = (n // 2, n - 1 - n // 2)
    result = window.conv_general_dilated(
        structural.reshape(a, (1, 1, a.shape[0])),
        structural.reshape(v, (1, 1, n)),
        (1,),
        [padding],
        preferred_element_type=None if preferred is None else canonicalize(preferred),
    )
    result = structural.reshape(result, (result.shape[-1],))
    if function == "correlate" and swapped:
        result = structural.rev(result, (0,))
    return result


@public(static=(*_STATIC, "mode"))
def convolve(
    a: Any, v: Any, mode: str = "full", *, precision: Any = None, preferred_element_type: Any = None
) -> Any:
    """The discrete convolution of two vectors, in floats.

    mode: "full" (every overlap), "same" (as long as the longer one), "valid" (full overlap only).
    Raises ValueError for other ranks and for empty arrays.

    >>> import jato.numpy as jnp
    >>> jnp.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0]))
    Array([1., 3., 5., 3.], dtype=float32)
    """
    return _convolve("convolve", a, v, mode, preferred_element_type, True)


@public(static=(*_STATIC, "mode"))
def correlate(
    a: Any,
    v: Any,
    mode: str = "valid",
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """The cross-correlation of two vectors, in floats; v is conjugated.

    mode: as for `convolve`.

    >>> import jato.numpy as jnp
    >>> jnp.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0]))
    Array([3., 5.], dtype=float32)
    """
    return _convolve("correlate", a, v, mode, preferred_element_type, False)
