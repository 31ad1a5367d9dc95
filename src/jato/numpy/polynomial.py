"""Polynomials as vectors of coefficients, the highest power first."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np
from jato.base.dtypes import is_complex
from jato.base.errors import ConcretizationTypeError
from jato.core.array import concrete, from_host
from jato.jit.eager import public
from jato.numpy.convolution import convolve
from jato.numpy.creation import asarray
from jato.numpy.promote import as_array, broadcast_operands, dtype_of, promote_dtypes
from jato.ops import elementwise, structural


def _vector(function: str, x: Any, position: int | str = 0) -> Any:
    x = as_array(function, x, position)
    return structural.reshape(x, (1,)) if not x.shape else x


def _coefficient(p: Any, i: int) -> Any:
    return structural.reshape(structural.slice_in_dim(p, i, i + 1, axis=0), p.shape[1:])


@public(static=("unroll",))
def polyval(p: Any, x: Any, *, unroll: int = 16) -> Any:
    """The polynomial's value at x, by Horner's rule.

    >>> import jato.numpy as jnp
    >>> jnp.polyval(jnp.array([1.0, 0.0, 2.0]), 3.0)
    Array(11., dtype=float32)
    """
    p, x = promote_dtypes("polyval", p, x)
    if not p.shape:
        raise ValueError("polyval: argument 'p' must have rank 1 or more")
    dtype = dtype_of(p)
    result: Any = structural.full(x.shape, 0, dtype)
    for i in range(p.shape[0]):
        result, c = broadcast_operands("polyval", (elementwise.mul(result, x), _coefficient(p, i)))
        result = elementwise.add(result, c)
    return result


def _padded(p: Any, size: int) -> Any:
    missing = size - p.shape[0]
    return structural.pad(p, np.zeros((), dtype_of(p))[()], [(missing, 0, 0)]) if missing else p


def _sum_of(function: str, a1: Any, a2: Any, operation: Any) -> Any:
    a1, a2 = promote_dtypes(function, _vector(function, a1), _vector(function, a2, 1))
    size = builtins.max(a1.shape[0], a2.shape[0])
    return operation(_padded(a1, size), _padded(a2, size))


@public()
def polyadd(a1: Any, a2: Any) -> Any:
    """The sum of two polynomials.

    >>> import jato.numpy as jnp
    >>> jnp.polyadd(jnp.array([1, 2]), jnp.array([3]))
    Array([1, 5], dtype=int32)
    """
    return _sum_of("polyadd", a1, a2, elementwise.add)


@public()
def polysub(a1: Any, a2: Any) -> Any:
    """The difference of two polynomials.

    >>> import jato.numpy as jnp
    >>> jnp.polysub(jnp.array([1, 2]), jnp.array([3]))
    Array([ 1, -1], dtype=int32)
    """
    return _sum_of("polysub", a1, a2, elementwise.sub)


def _without_leading_zeros(function: str, p: Any) -> Any:
    known = concrete(p)
    if known is None:
        raise ConcretizationTypeError(
            f"{function}: trim_leading_zeros=True needs values known when the function is traced"
        )
    host = np.asarray(known)
    places = np.flatnonzero(host)
    return from_host(host[places[0] :] if places.size else host[-1:], dtype_of(p))


def polymul(a1: Any, a2: Any, *, trim_leading_zeros: bool = False) -> Any:
    """The product of two polynomials.

    >>> import jato.numpy as jnp
    >>> jnp.polymul(jnp.array([1.0, 1.0]), jnp.array([1.0, -1.0]))
    Array([ 1.,  0., -1.], dtype=float32)
    """
    a1, a2 = asarray(a1), asarray(a2)
    if trim_leading_zeros and builtins.max(a1.size, a2.size) > 1:
        a1, a2 = (_without_leading_zeros("polymul", a) for a in (a1, a2))
    return _product(a1, a2)


@public(name="polymul")
def _product(a1: Any, a2: Any) -> Any:
    a1, a2 = _vector("polymul", a1), _vector("polymul", a2, 1)
    return (
        convolve(a1, a2, "full")
        if a1.shape[0] and a2.shape[0]
        else structural.full((1,), 0, dtype_of(a1))
    )


@public(static=("m",))
def polyder(p: Any, m: int = 1) -> Any:
    """The m-th derivative of a polynomial.

    >>> import jato.numpy as jnp
    >>> jnp.polyder(jnp.array([1.0, 2.0, 3.0]))
    Array([2., 2.], dtype=float32)
    """
    if m < 0:
        raise ValueError(f"polyder: argument 'm' must not be negative, got {m}")
    p = promote_dtypes("polyder", _vector("polyder", p), inexact=True)[0]
    n = p.shape[0]
    if m == 0:
        return p
    if m >= n:
        return structural.full((0,), 0, dtype_of(p))
    powers = np.arange(n - 1, m - 1, -1)
    factors = np.array([math.perm(int(k), m) for k in powers], np.float64)
    kept = structural.slice(p, (0,), (n - m,))
    return elementwise.mul(kept, factors.astype(dtype_of(p)))


@public(static=("m",))
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """The m-th integral of a polynomial; k: the constants of integration (0).

    >>> import jato.numpy as jnp
    >>> jnp.polyint(jnp.array([2.0, 2.0]))
    Array([1., 2., 0.], dtype=float32)
    """
    if m < 0:
        raise ValueError(f"polyint: argument 'm' must not be negative, got {m}")
    k = np.zeros(1) if k is None else k
    p, k = promote_dtypes(
        "polyint", _vector("polyint", p), _vector("polyint", k, "k"), inexact=True
    )
    if m == 0:
        return p
    dtype = dtype_of(p)
    if k.shape[0] == 1 and m > 1:
        k = structural.broadcast_in_dim(structural.reshape(k, ()), (m,), ())
    if k.shape != (m,):
        raise ValueError(
            f"polyint: argument 'k' must be a number or have {m} entries, got {k.shape}"
        )
    for i in range(m):
        n = p.shape[0]
        divisors = np.arange(n, 0, -1).astype(dtype)
        p = structural.concatenate(
            [elementwise.div(p, divisors), structural.slice(k, (i,), (i + 1,))], 0
        )
    return p


def polydiv(u: Any, v: Any, *, trim_leading_zeros: bool = False) -> tuple[Any, Any]:
    """(quotient, remainder) of two polynomials.

    trim_leading_zeros: leave out zeros in front of the remainder (its values must be known).

    >>> import jato.numpy as jnp
    >>> jnp.polydiv(jnp.array([1.0, 0.0, -1.0]), jnp.array([1.0, 1.0]))
    (Array([ 1., -1.], dtype=float32), Array([0., 0., 0.], dtype=float32))
    """
    quotient, rest = _divide(asarray(u), asarray(v))
    return quotient, _without_leading_zeros("polydiv", rest) if trim_leading_zeros else rest


@public(name="polydiv")
def _divide(u: Any, v: Any) -> tuple[Any, Any]:
    u, v = promote_dtypes("polydiv", _vector("polydiv", u), _vector("polydiv", v, 1), inexact=True)
    m, n = u.shape[0] - 1, v.shape[0] - 1
    if m < n:
        return structural.full((1,), 0, dtype_of(u)), u
    scale = elementwise.div(np.asarray(1, dtype_of(u))[()], _coefficient(v, 0))
    quotient = []
    rest = u
    for k in range(m - n + 1):
        d = elementwise.mul(scale, _coefficient(rest, k))
        quotient.append(structural.reshape(d, (1,)))
        shift = structural.pad(
            elementwise.mul(v, d), np.zeros((), dtype_of(u))[()], [(k, m - n - k, 0)]
        )
        rest = elementwise.sub(rest, shift)
        # the leading coefficient cancels exactly
        head = structural.full((k + 1,), 0, dtype_of(u))
        rest = structural.concatenate([head, structural.slice(rest, (k + 1,), (m + 1,))], 0)
    return structural.concatenate(quotient, 0), rest


@public()
def poly(seq_of_zeros: Any) -> Any:
    """The coefficients of the polynomial with the given zeros.

    >>> import jato.numpy as jnp
    >>> jnp.poly(jnp.array([1.0, 2.0]))
    Array([ 1., -3.,  2.], dtype=float32)
    """
    zeros = promote_dtypes("poly", _vector("poly", seq_of_zeros), inexact=True)[0]
    if len(zeros.shape) != 1:
        raise NotImplementedError(
            f"poly: a vector of zeros is expected, got shape {zeros.shape}; the characteristic "
            "polynomial of a matrix is not supported"
        )
    dtype = dtype_of(zeros)
    result = structural.full((1,), 1, dtype)
    padding = np.zeros((), dtype)[()]
    for i in range(zeros.shape[0]):
        shifted = structural.pad(
            elementwise.mul(result, _coefficient(zeros, i)), padding, [(1, 0, 0)]
        )
        result = elementwise.sub(structural.pad(result, padding, [(0, 1, 0)]), shifted)
    return result


def roots(p: Any, *, strip_zeros: bool = True) -> Any:
    """The zeros of a polynomial, complex; computed by NumPy from values that must be known.

    strip_zeros: must be True.

    >>> import jato.numpy as jnp
    >>> jnp.roots(jnp.array([1.0, -3.0, 2.0]))
    Array([2.+0.j, 1.+0.j], dtype=complex64)
    """
    p = _host_vector("roots", p)
    if not strip_zeros:
        raise NotImplementedError("roots: strip_zeros=False is not supported")
    found = np.roots(np.asarray(p, np.complex128 if is_complex(dtype_of(p)) else np.float64))
    return from_host(
        found,
        np.complex128
        if dtype_of(p).itemsize == 8 and not is_complex(dtype_of(p)) or dtype_of(p) == np.complex128
        else np.complex64,
    )


def _host_vector(function: str, p: Any) -> Any:
    p = as_array(function, p)
    known = concrete(p)
    if known is None:
        raise ConcretizationTypeError(
            f"{function}: the coefficients must be known, got {p.aval}. {p.origin()}"
        )
    if len(p.shape) != 1:
        raise ValueError(f"{function}: expected a vector of coefficients, got shape {p.shape}")
    return np.asarray(known)
