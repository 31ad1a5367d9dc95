"""jato.numpy.linalg, norms: of vectors and matrices, and the condition number.

`_square_root` makes the derivative of a norm at 0 be 0; orders 2, -2 and "nuc" of matrices need
singular values.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jato.base.dtypes import is_complex
from jato.jit.eager import public
from jato.numpy.factorizations import svdvals
from jato.numpy.makers import is_nan, select_where
from jato.numpy.promote import dtype_of, normalize_axes, promote_dtypes
from jato.numpy.reductions import as_type, keep_axes
from jato.numpy.reductions import max as amax
from jato.numpy.reductions import min as amin
from jato.numpy.reductions import sum as asum
from jato.numpy.systems import inv
from jato.ops import elementwise, structural


def _square_root(x: Any) -> Any:
    """sqrt whose derivative at 0 is 0, so that norms can be differentiated there."""
    zero, one = (np.asarray(v, dtype_of(x))[()] for v in (0, 1))
    at_zero = elementwise.eq(x, zero)
    return select_where(at_zero, zero, elementwise.sqrt(select_where(at_zero, one, x)))


def _squares(x: Any) -> Any:
    if is_complex(dtype_of(x)):
        return elementwise.add(
            elementwise.square(elementwise.real(x)), elementwise.square(elementwise.imag(x))
        )
    return elementwise.square(x)


def _euclidean(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return _square_root(asum(_squares(x), axes, None, None, keepdims))


def _vector_norm(function: str, x: Any, order: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if order is None or order == 2:
        return _euclidean(x, axes, keepdims)
    if isinstance(order, str):
        raise ValueError(f"{function}: argument 'ord' is {order!r}, which is not a norm of vectors")
    size = elementwise.abs(x)
    if order == math.inf:
        return amax(size, axes, None, keepdims, initial=0)
    if order == -math.inf:
        return amin(size, axes, None, keepdims)
    if order == 0:
        nonzero = elementwise.ne(x, np.zeros((), dtype_of(x))[()])
        return asum(as_type(nonzero, dtype_of(size)), axes, None, None, keepdims)
    if order == 1:
        return asum(size, axes, None, None, keepdims)
    power = np.asarray(order, dtype_of(size))[()]
    total = asum(elementwise.pow(size, power), axes, None, None, keepdims)
    return elementwise.pow(total, np.asarray(1 / order, dtype_of(size))[()])


def _matrix_norm(x: Any, order: Any, axes: tuple[int, int], keepdims: bool) -> Any:
    if order is None or order in ("fro", "f"):
        return _euclidean(x, axes, keepdims)
    if order in (2, -2, "nuc"):
        rank = len(x.shape)
        lead = [i for i in range(rank) if i not in axes]
        values = svdvals(structural.transpose(x, (*lead, *axes)))
        result = asum(values, -1) if order == "nuc" else (amax if order == 2 else amin)(values, -1)
        return keep_axes(result, x.shape, axes) if keepdims else result
    if order not in (1, -1, math.inf, -math.inf):
        raise ValueError(f"norm: argument 'ord' is {order!r}, which is not a norm of matrices")
    row, column = axes
    summed, rest = (row, column) if abs(order) == 1 else (column, row)
    sums = asum(elementwise.abs(x), summed)
    rest = rest - 1 if rest > summed else rest
    extremum = amax if order > 0 else amin
    result = extremum(sums, rest)
    return keep_axes(result, x.shape, axes) if keepdims else result


@public(static=("ord", "axis", "keepdims"))
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of vectors or matrices.

    axis: one axis for vectors, two for matrices; None for the whole array.  ord: None (Euclidean,
    Frobenius), 1, -1, 2, -2, inf, -inf, "fro", "nuc"; for vectors any number.  Its derivative at 0 is 0.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    x = promote_dtypes("norm", x, inexact=True)[0]
    x = as_type(x, dtype_of(x))
    rank = len(x.shape)
    if axis is None and (
        ord is None or (ord in ("f", "fro") and rank == 2) or (ord == 2 and rank == 1)
    ):
        return _euclidean(x, tuple(range(rank)), keepdims)
    axes = normalize_axes("norm", axis, rank)
    if len(axes) == 1:
        return _vector_norm("norm", x, ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, ord, axes, keepdims)  # type: ignore[arg-type]
    raise ValueError(f"norm: expected one or two axes, got {axis} for an array of shape {x.shape}")


@public(static=("axis", "keepdims", "ord"))
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norm of vectors along axes, of the flattened array if axis is None.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.vector_norm(jnp.array([3.0, -4.0]), ord=1)
    Array(7., dtype=float32)
    """
    x = promote_dtypes("vector_norm", x, inexact=True)[0]
    axes = normalize_axes("vector_norm", axis, len(x.shape))
    return _vector_norm("vector_norm", as_type(x, dtype_of(x)), ord, axes, keepdims)


@public(static=("keepdims", "ord"))
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of the matrices in the last two axes.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.matrix_norm(jnp.array([[3.0, 4.0]]))
    Array(5., dtype=float32)
    """
    x = promote_dtypes("matrix_norm", x, inexact=True)[0]
    rank = len(x.shape)
    if rank < 2:
        raise ValueError(f"matrix_norm: argument 'x' must have rank 2 or more, got shape {x.shape}")
    return _matrix_norm(as_type(x, dtype_of(x)), ord, (rank - 2, rank - 1), keepdims)


@public(static=("p",))
def cond(x: Any, p: Any = None) -> Any:
    """The condition number of matrices: the norm times the norm of the inverse.

    p: order of the norm; None and 2: the ratio of the extreme singular values.  Infinite for
    singular matrices.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.cond(jnp.array([[4.0, 0.0], [0.0, 2.0]]))
    Array(2., dtype=float32)
    """
    x = promote_dtypes("cond", x, inexact=True)[0]
    rank = len(x.shape)
    if rank < 2 or 0 in x.shape[-2:]:
        raise ValueError(f"cond: argument 'x' must hold matrices with elements, got shape {x.shape}")
    if p in (None, 2, -2):
        values = svdvals(x)
        largest, least = values[..., 0], values[..., -1]
        result = elementwise.div(least, largest) if p == -2 else elementwise.div(largest, least)
    else:
        if x.shape[-1] != x.shape[-2]:
            raise ValueError(f"cond: order {p!r} needs square matrices, got shape {x.shape}")
        axes = (rank - 2, rank - 1)
        result = elementwise.mul(_matrix_norm(x, p, axes, False), _matrix_norm(inv(x), p, axes, False))
    undefined = structural.reduce_sum(
        as_type(is_nan(x), np.dtype("int32")), (rank - 2, rank - 1)
    )
    known = elementwise.eq(undefined, np.int32(0))
    infinite = np.asarray(np.inf, dtype_of(result))[()]
    return select_where(elementwise.bitwise_and(known, is_nan(result)), infinite, result)
