"""jato.numpy.linalg, products: of vectors and matrices, chains and powers."""

from __future__ import annotations

from typing import Any

from jato.jit.eager import public
from jato.numpy import contractions, grids
from jato.numpy.creation import eye
from jato.numpy.manipulation import expand_dims, sequence_items
from jato.numpy.promote import as_array, broadcast, dtype_of, promote_dtypes
from jato.numpy.systems import inv
from jato.ops import structural


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
    """The n-th power of square matrices by repeated squaring; negative powers invert first.

    Raises ValueError for other shapes.

    >>> import jato.numpy as jnp
    >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 3)
    Array([[1, 3],
           [0, 1]], dtype=int32)
    """
    a = as_array("matrix_power", a)
    if len(a.shape) < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"matrix_power: argument 'a' must be square matrices, got shape {a.shape}")
    if n < 0:
        a, n = inv(a), -n
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
