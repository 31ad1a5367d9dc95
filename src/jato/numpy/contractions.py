"""Products of arrays: dot, matmul, tensordot, outer, kron, cross and their kin.

All end in `dot_general` (ops/contract.py) with operands of one dtype.  `preferred_element_type`
is the dtype of the result; `precision` is accepted and has no effect: products are computed in
full precision.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

from jato.base.dtypes import canonicalize, is_bool, is_complex, promote_types
from jato.base.errors import ShapeMismatchError
from jato.jit.eager import public
from jato.numpy.manipulation import moveaxis
from jato.numpy.promote import (
    as_array,
    as_operand,
    common_shape,
    dtype_of,
    join_types,
    normalize_axes,
    normalize_axis,
    promote_all,
    promote_dtypes,
    require_no_out,
    shape_of,
)
from jato.numpy.reductions import as_type
from jato.ops import contract, elementwise, structural

STATIC = ("precision", "preferred_element_type", "out_sharding")


def product_over(
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


@public(static=STATIC)
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
        if preferred_element_type is None:
            return multiply_operands("dot", a, b)
        preferred = canonicalize(preferred_element_type)
        wide = promote_types(join_types(as_operand("dot", a), as_operand("dot", b, 1))[0], preferred)
        product = multiply_operands("dot", *(as_type(as_array("dot", x), wide) for x in (a, b)))
        return as_type(product, preferred)
    a, b = promote_dtypes("dot", a, b)
    i = len(a.shape) - 1
    j = builtins.max(len(b.shape) - 2, 0)
    _check_inner("dot", a, b, i, j)
    return product_over(a, b, ((i,), (j,)), ((), ()), preferred_element_type)


def multiply_operands(function: str, a: Any, b: Any) -> Any:
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
        return product_over(a, b, ((i,), (j,)), ((), ()), preferred)
    if rank_a == 1:
        # b's last axis and its batch remain, in order
        return product_over(a, b, ((0,), (j,)), ((), ()), preferred)
    batch_a, batch_b = a.shape[:-2], b.shape[:-2]
    if math.prod(batch_a) == 1 and len(batch_a) <= len(batch_b):
        # one matrix against many: contract without a batch and put its rows in place
        flat = structural.reshape(a, a.shape[-2:])
        result = product_over(flat, b, ((1,), (rank_b - 2,)), ((), ()), preferred)
        return moveaxis(result, 0, -2)
    batch = common_shape(function, [batch_a, batch_b])
    a, b = _expand_batch(a, batch), _expand_batch(b, batch)
    axes = tuple(range(len(batch)))
    n = len(batch)
    return product_over(a, b, ((n + 1,), (n,)), (axes, axes), preferred)


def _expand_batch(x: Any, batch: tuple[int, ...]) -> Any:
    target = (*batch, *x.shape[-2:])
    if x.shape == target:
        return x
    rank = len(target)
    return structural.broadcast_in_dim(x, target, tuple(range(rank - len(x.shape), rank)))


@public(static=STATIC)
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


@public(static=STATIC)
def inner(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The sum of products over the last axes of both.

    >>> import jato.numpy as jnp
    >>> jnp.inner(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]))
    Array(11., dtype=float32)
    """
    if not shape_of(as_operand("inner", a)) or not shape_of(as_operand("inner", b, 1)):
        return multiply_operands("inner", a, b)
    a, b = promote_dtypes("inner", a, b)
    i, j = len(a.shape) - 1, len(b.shape) - 1
    _check_inner("inner", a, b, i, j)
    return product_over(a, b, ((i,), (j,)), ((), ()), preferred_element_type)


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
    return multiply_operands("outer", a, b)


def conjugated(x: Any) -> Any:
    return elementwise.conj(x) if is_complex(dtype_of(x)) else x


@public(static=STATIC)
def vdot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The dot product of the flattened arrays, the first one conjugated.

    >>> import jato.numpy as jnp
    >>> jnp.vdot(jnp.array([1j]), jnp.array([1j]))
    Array(1.+0.j, dtype=complex64)
    """
    a, b = promote_dtypes("vdot", a, b)
    a, b = (structural.reshape(x, (math.prod(x.shape),)) for x in (a, b))
    _check_inner("vdot", a, b, 0, 0)
    return product_over(conjugated(a), b, ((0,), (0,)), ((), ()), preferred_element_type)


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
    return product_over(conjugated(x1), x2, ((rank,), (rank,)), (axes, axes), preferred)


@public(static=(*STATIC, "axis"))
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
    row = structural.reshape(conjugated(x1), (*x1.shape[:-1], 1, x1.shape[-1]))
    product = _matmul("vecmat", row, x2, None)
    return structural.reshape(product, (*product.shape[:-2], product.shape[-1]))


@public(static=(*STATIC, "axes"))
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
    return product_over(a, b, (left, right), ((), ()), preferred_element_type)


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
    product = multiply_operands(
        "kron", structural.reshape(a, wide_a), structural.reshape(b, wide_b)
    )
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
