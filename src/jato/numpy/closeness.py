"""Are two arrays equal, or close?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jato.base.dtypes import canonicalize, is_complex, is_inexact
from jato.jit.eager import public
from jato.numpy.logic import equal
from jato.numpy.makers import is_nan
from jato.numpy.promote import as_array, broadcast_operands, cast, dtype_of, promote_dtypes
from jato.numpy.reductions import all, as_type
from jato.ops import elementwise, structural


@public(static=("equal_nan",))
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Elementwise |a - b| <= atol + rtol * |b|; equal infinities are close.

    >>> import jato.numpy as jnp
    >>> jnp.isclose(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.1]))
    Array([ True, False], dtype=bool)
    """
    a, b = promote_dtypes("isclose", a, b)
    if not is_inexact(dtype_of(a)):
        a, b = (as_type(x, canonicalize(np.float64)) for x in (a, b))
    real = np.finfo(dtype_of(a)).dtype if is_complex(dtype_of(a)) else dtype_of(a)
    rtol, atol = (cast(as_array("isclose", t), real) for t in (rtol, atol))
    a, b = broadcast_operands("isclose", (a, b))
    rtol, size_of_b = broadcast_operands("isclose", (rtol, elementwise.abs(b)))
    bound, atol = broadcast_operands("isclose", (elementwise.mul(size_of_b, rtol), atol))
    bound = elementwise.add(bound, atol)
    distance, bound = broadcast_operands("isclose", (elementwise.abs(elementwise.sub(a, b)), bound))
    near = elementwise.le(distance, bound)
    # an infinite bound must not make an infinity close to a number
    finite_bound = elementwise.lt(size_of_b, np.asarray(math.inf, real)[()])
    near = elementwise.bitwise_and(*broadcast_operands("isclose", (near, finite_bound)))
    result = elementwise.bitwise_or(*broadcast_operands("isclose", (near, elementwise.eq(a, b))))
    if equal_nan:
        both = elementwise.bitwise_and(*broadcast_operands("isclose", (is_nan(a), is_nan(b))))
        result = elementwise.bitwise_or(*broadcast_operands("isclose", (result, both)))
    return result


@public(static=("equal_nan",))
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Are all elements close, in the sense of `isclose`?

    >>> import jato.numpy as jnp
    >>> jnp.allclose(jnp.array([1.0]), jnp.array([1.0 + 1e-7]))
    Array(True, dtype=bool)
    """
    return all(isclose(a, b, rtol, atol, equal_nan))


@public(static=("equal_nan",))
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Do two arrays have the same shape and elements?

    >>> import jato.numpy as jnp
    >>> jnp.array_equal(jnp.arange(3), jnp.arange(3))
    Array(True, dtype=bool)
    """
    a1, a2 = as_array("array_equal", a1), as_array("array_equal", a2, 1)
    if a1.shape != a2.shape:
        return structural.full((), False, np.dtype("bool"))
    same = equal(a1, a2)
    if equal_nan:
        both = elementwise.bitwise_and(is_nan(a1), is_nan(a2))
        same = elementwise.bitwise_or(same, both)
    return all(same)


@public()
def array_equiv(a1: Any, a2: Any) -> Any:
    """Do two arrays broadcast to arrays with the same elements?

    >>> import jato.numpy as jnp
    >>> jnp.array_equiv(jnp.ones((2, 2)), 1.0)
    Array(True, dtype=bool)
    """
    try:
        same = equal(as_array("array_equiv", a1), as_array("array_equiv", a2, 1))
    except ValueError:
        return structural.full((), False, np.dtype("bool"))
    return all(same)
