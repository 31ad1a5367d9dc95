"""polyfit: polynomials through points, by least squares."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from jato.base.errors import check
from jato.jit.eager import public
from jato.numpy.contractions import outer
from jato.numpy.promote import dtype_of, promote_dtypes
from jato.numpy.systems import inv, lstsq
from jato.ops import elementwise, structural
from jato.ops.convert import convert_element_type
from jato.ops.matrices import adjoint, matmul


@public(static=("deg", "rcond", "full", "cov"))
def polyfit(
    x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None,
    cov: Any = False,
) -> Any:  # fmt: skip
    """The polynomial of degree deg that fits points best: the coefficients, highest power first.

    x: [m]; y: [m], or [m, k] for k polynomials; deg: an integer, known when traced; rcond: singular
    values below rcond times the largest count as 0 (default: m eps); w: weights [m] of the
    differences, before they are squared.
    Returns: p [deg + 1] or [deg + 1, k].  With `full`: (p, sums of squared differences, rank,
    singular values of the matrix of powers with columns of length 1, rcond).  With `cov`: (p, its
    covariance matrix [deg + 1, deg + 1] or [deg + 1, deg + 1, k]), scaled by the differences' mean
    square unless cov is "unscaled".
    Raises: TypeError for other shapes; ValueError for a negative deg, or where `cov` has too few
    points.

    >>> import jato.numpy as jnp
    >>> p = jnp.polyfit(jnp.array([0.0, 1.0, 2.0]), jnp.array([1.0, 3.0, 5.0]), 1)
    >>> [round(float(c), 3) for c in p]
    [2.0, 1.0]
    """
    order = operator.index(deg) + 1
    check(order >= 1, ValueError, f"polyfit: argument 'deg' must not be negative, got {deg}")
    x, y = promote_dtypes("polyfit", x, y, inexact=True)
    check(
        len(x.shape) == 1 and x.shape[0] > 0,
        TypeError,
        f"polyfit: argument 'x' must be a vector with at least one element, got shape {x.shape}",
    )
    check(
        len(y.shape) in (1, 2) and y.shape[0] == x.shape[0],
        TypeError,
        f"polyfit: argument 'y' must be a vector or a matrix with as many rows as x, {x.shape[0]}, "
        f"got shape {y.shape}",
    )
    count = x.shape[0]
    powers = _powers(x, order)
    if w is not None:
        powers, weights = promote_dtypes("polyfit", powers, w, inexact=True)
        check(
            weights.shape == (count,),
            TypeError,
            f"polyfit: argument 'w' must have the shape of x, ({count},), got {weights.shape}",
        )
        y = promote_dtypes("polyfit", y, weights, inexact=True)[0]
        powers = elementwise.mul(powers, structural.broadcast_in_dim(weights, powers.shape, (0,)))
        y = elementwise.mul(y, structural.broadcast_in_dim(weights, y.shape, (0,)))
    if rcond is None:
        rcond = count * float(np.finfo(dtype_of(powers)).eps)
    lengths = elementwise.sqrt(
        structural.reduce_sum(elementwise.square(elementwise.abs(powers)), (0,))
    )
    scale = convert_element_type(lengths, dtype_of(powers))
    scaled = elementwise.div(powers, structural.broadcast_in_dim(scale, powers.shape, (1,)))
    found, residuals, rank, s = lstsq(scaled, y, rcond)
    found = elementwise.div(found, structural.broadcast_in_dim(scale, found.shape, (0,)))
    if full:
        return found, residuals, rank, s, np.asarray(rcond, dtype_of(s))
    if not cov:
        return found
    base = elementwise.div(inv(matmul(adjoint(scaled), scaled)), outer(scale, scale))
    if isinstance(cov, str) and cov == "unscaled":
        factor = structural.full_like(residuals, 1)
    else:
        check(
            count > order,
            ValueError,
            f"polyfit: a scaled covariance needs more than {order} points, got {count}. Try "
            'cov="unscaled"',
        )
        factor = elementwise.div(residuals, np.asarray(count - order, dtype_of(residuals))[()])
    factor = convert_element_type(factor, dtype_of(base))
    if len(y.shape) == 1:
        return found, elementwise.mul(base, structural.reshape(factor, ()))
    shape = (*base.shape, factor.shape[0])
    spread = (structural.broadcast_in_dim(v, shape, d) for v, d in ((base, (0, 1)), (factor, (2,))))
    return found, elementwise.mul(*spread)


def _powers(x: Any, order: int) -> Any:
    """[x^(order - 1), ..., x, 1] as columns, by multiplication."""
    columns = [structural.full_like(x, 1)]
    for _ in range(order - 1):
        columns.append(elementwise.mul(columns[-1], x))
    wide = [structural.expand_dims(c, (1,)) for c in reversed(columns)]
    return structural.concatenate(wide, 1)
