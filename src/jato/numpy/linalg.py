"""jato.numpy.linalg: norms and products.  (Factorizations need LAPACK and are not here yet.)"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jato.base.dtypes import is_complex
from jato.jit.eager import public
from jato.numpy import contractions, grids, manipulation
from jato.numpy.creation import eye
from jato.numpy.makers import select_where
from jato.numpy.manipulation import expand_dims, sequence_items
from jato.numpy.promote import as_array, broadcast, dtype_of, normalize_axes, promote_dtypes
from jato.numpy.reductions import as_type, keep_axes
from jato.numpy.reductions import max as amax
from jato.numpy.reductions import min as amin
from jato.numpy.reductions import sum as asum
from jato.ops import elementwise, structural

matrix_transpose = manipulation.matrix_transpose


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
    if order not in (1, -1, math.inf, -math.inf):
        if order in (2, -2, "nuc"):
            raise NotImplementedError(
                f"norm: order {order!r} of matrices needs singular values, which are not available yet"
            )
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
    Frobenius), 1, -1, inf, -inf, "fro"; for vectors any number.  Its derivative at 0 is 0.

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


# ---- products


def matmul(
    x1: Any, x2: Any, /, *, precision: Any = None, preferred_element_type: Any = None
) -> Any:
    """The matrix product; see `jato.numpy.matmul`.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.matmul(jnp.ones((1, 2)), jnp.ones((2, 1)))
    Array([[2.]], dtype=float32)
    """
    return contractions.matmul(
        x1, x2, precision=precision, preferred_element_type=preferred_element_type
    )


def vecdot(
    x1: Any,
    x2: Any,
    /,
    *,
    axis: int = -1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """The dot product of vectors; see `jato.numpy.vecdot`.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.vecdot(jnp.ones(2), jnp.ones(2))
    Array(2., dtype=float32)
    """
    return contractions.vecdot(
        x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type
    )


def tensordot(
    x1: Any,
    x2: Any,
    /,
    *,
    axes: Any = 2,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """The sum of products over axes; see `jato.numpy.tensordot`.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.tensordot(jnp.ones(2), jnp.ones(2), axes=1)
    Array(2., dtype=float32)
    """
    return contractions.tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type
    )


def outer(x1: Any, x2: Any, /) -> Any:
    """All products of elements of two vectors.  Raises ValueError for other ranks.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3]))
    Array([[3],
           [6]], dtype=int32)
    """
    x1, x2 = as_array("outer", x1), as_array("outer", x2, 1)
    if len(x1.shape) != 1 or len(x2.shape) != 1:
        raise ValueError(f"outer: arguments must have rank 1, got shapes {x1.shape} and {x2.shape}")
    return contractions.outer(x1, x2)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross product of vectors of length 3.  Raises ValueError for other lengths.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    x1, x2 = as_array("cross", x1), as_array("cross", x2, 1)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"cross: both arrays must have 3 elements along axis {axis}")
    return contractions.cross(x1, x2, axis=axis)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of the matrices in the last two axes.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    return grids.diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums of the diagonals of the matrices in the last two axes.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    return grids.trace(x, offset, -2, -1, dtype)


def _chain_order(sizes: list[int]) -> list[list[int]]:
    """split[i][j]: where the cheapest product of matrices i..j is cut (dynamic programming)."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            options = [
                cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                for k in range(i, j)
            ]
            cost[i][j] = min(options)
            split[i][j] = i + options.index(cost[i][j])
    return split


@public(static=("precision",))
def multi_dot(arrays: Any, *, precision: Any = None) -> Any:
    """The product of several matrices in the cheapest order; the first and last may be vectors.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.multi_dot([jnp.ones((1, 2)), jnp.ones((2, 3)), jnp.ones((3, 1))])
    Array([[6.]], dtype=float32)
    """
    items = promote_dtypes("multi_dot", *sequence_items("multi_dot", arrays))
    if len(items) < 2:
        raise ValueError(f"multi_dot: at least two arrays are needed, got {len(items)}")
    row, column = len(items[0].shape) == 1, len(items[-1].shape) == 1
    items[0] = expand_dims(items[0], 0) if row else items[0]
    items[-1] = expand_dims(items[-1], 1) if column else items[-1]
    for i, x in enumerate(items):
        if len(x.shape) != 2:
            raise ValueError(f"multi_dot: array {i} must have rank 2, got shape {x.shape}")
    split = _chain_order([x.shape[0] for x in items] + [items[-1].shape[1]])

    def product(i: int, j: int) -> Any:
        if i == j:
            return items[i]
        return contractions.dot(product(i, split[i][j]), product(split[i][j] + 1, j))

    result = product(0, len(items) - 1)
    dropped = [axis for axis, drop in ((0, row), (1, column)) if drop]
    return structural.reshape(
        result, tuple(s for i, s in enumerate(result.shape) if i not in dropped)
    )


@public(static=("n",))
def matrix_power(a: Any, n: int) -> Any:
    """The n-th power of square matrices, n >= 0, by repeated squaring.

    Raises ValueError for other shapes, NotImplementedError for negative n.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 3)
    Array([[1, 3],
           [0, 1]], dtype=int32)
    """
    a = as_array("matrix_power", a)
    if len(a.shape) < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"matrix_power: argument 'a' must be square matrices, got shape {a.shape}")
    if n < 0:
        raise NotImplementedError(
            "matrix_power: negative powers need an inverse, which is not available yet"
        )
    if n == 0:
        return broadcast(eye(a.shape[-1], dtype=dtype_of(a)), a.shape)
    result: Any = None
    square = a
    while n:
        if n & 1:
            result = square if result is None else contractions.matmul(result, square)
        n >>= 1
        square = contractions.matmul(square, square) if n else square
    return result
