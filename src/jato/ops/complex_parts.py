"""Elementwise sign and magnitude, and the parts of complex numbers.

Derivatives follow JAX: a tangent of a complex number is complex, and |z|' is Re(conj(z) z') / |z|.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.core.types import type_of
from jato.ops.arithmetic import div, mul, neg, sub
from jato.ops.elementwise_family import Elementwise, replaces
from jato.ops.selection import eq, ge, select_n
from jato.ops.shapes import scalar_of
from jato.ops.structural import full_like

# ---- sign and magnitude


def _reference_abs(x: Any) -> Any:
    if x.dtype.kind == "c":
        return np.hypot(x.real, x.imag)
    return np.abs(x)


def _abs_jvp(g: Any, out: Any, x: Any) -> Any:
    dtype = type_of(x).dtype
    if dtypes.is_complex(dtype):
        safe = select_n(eq(out, 0), out, scalar_of(1, type_of(out).dtype))
        return div(real(mul(g, conj(x))), safe)
    return select_n(ge(x, 0), neg(g), g)


ABS = Elementwise(
    "abs",
    "iufc",
    gives="real",
    lower=lambda b, x: x if x.dtype[0] == "u" else b.abs(x),
    jvp=(_abs_jvp,),
    reference=_reference_abs,
)


def abs(x: Any) -> Any:
    """The magnitude, elementwise; real for complex x.  The derivative at 0 is that from above.

    >>> float(abs(-1.5))
    1.5
    """
    return ABS(x)


def _lower_sign(b: Any, x: Any) -> Any:
    if hasattr(x, "re"):
        size = b.abs(x)
        size = b.select(b.eq(size, 0), b.const(1, size.dtype), size)
        return b.complex(b.div(x.re, size), b.div(x.im, size))
    one = b.const(1, x.dtype)
    if x.dtype[0] == "u":
        return b.select(b.ne(x, 0), one, x)
    return b.select(b.gt(x, 0), one, b.select(b.lt(x, 0), b.const(-1, x.dtype), x))


def _complex_sign_jvp(g: Any, out: Any, x: Any) -> Any:
    """Of z / |z|: the part of g at right angles to z, over |z|."""
    size = abs(x)
    size = select_n(eq(size, 0), size, scalar_of(1, type_of(size).dtype))
    along = mul(out, complex(real(mul(g, conj(out))), 0))
    return div(sub(g, along), complex(size, 0))


class Sign(Elementwise):
    """Only complex numbers have a sign with a derivative."""

    def rules_of(self, primals: Any) -> Any:
        return (_complex_sign_jvp if dtypes.is_complex(type_of(primals[0]).dtype) else None,)


def _reference_sign(x: Any) -> Any:
    return np.where(x == 0, x, np.sign(x))  # keeps -0.0, as JAX does


SIGN = Sign("sign", "iufc", lower=_lower_sign, jvp=(None,), reference=_reference_sign)


def sign(x: Any) -> Any:
    """-1, 0 or 1; signed zeros and NaN stay; x / |x| for complex numbers.

    >>> float(sign(-2.5))
    -1.0
    """
    return SIGN(x)


COPYSIGN = Elementwise(
    "copysign",
    "f",
    lower="copysign",
    jvp=(lambda g, out, x, y: mul(g, mul(sign_of_bit(x), sign_of_bit(y))), None),
    reference=np.copysign,
)


def sign_of_bit(x: Any) -> Any:
    """1 or -1 by the sign bit, for zeros and NaN too."""
    return COPYSIGN(full_like(x, 1), x)


def copysign(x: Any, y: Any) -> Any:
    """The magnitude of x with the sign of y, elementwise.

    >>> float(copysign(1.0, -0.0))
    -1.0
    """
    return COPYSIGN(x, y)


# ---- complex parts


REAL = Elementwise(
    "real",
    "c",
    gives="real",
    lower=lambda b, x: x.re,
    jvp=(lambda g, out, x: real(g),),
    transpose=(lambda ct, x: complex(ct, 0),),
    reference=np.real,
    simplify=lambda node, rewriter: _part_of_complex(node, rewriter, 0),
)
IMAG = Elementwise(
    "imag",
    "c",
    gives="real",
    lower=lambda b, x: x.im,
    jvp=(lambda g, out, x: imag(g),),
    transpose=(lambda ct, x: complex(0, neg(ct)),),
    reference=np.imag,
    simplify=lambda node, rewriter: _part_of_complex(node, rewriter, 1),
)


def _reference_complex(x: Any, y: Any) -> Any:
    x, y = np.broadcast_arrays(x, y)
    out = np.empty(x.shape, np.result_type(x, np.complex64))
    out.real, out.imag = x, y
    return out


class Complex(Elementwise):
    """Real and imaginary part to complex; there are no 16-bit complex numbers."""

    def result_code(self, aval: Any) -> int:
        if aval.itemsize == 2:
            self.fail(f"expected x and y of dtype float32 or float64, got {aval}.")
        return super().result_code(aval)


COMPLEX = Complex(
    "complex",
    "f",
    gives="complex",
    lower=lambda b, x, y: b.complex(x, y),
    jvp=(lambda g, out, x, y: complex(g, 0), lambda g, out, x, y: complex(0, g)),
    transpose=(lambda ct, x, y: real(ct), lambda ct, x, y: neg(imag(ct))),
    reference=_reference_complex,
)
CONJ = Elementwise(
    "conj",
    "c",
    lower=lambda b, x: b.complex(x.re, b.neg(x.im)),
    jvp=(lambda g, out, x: conj(g),),
    transpose=(lambda ct, x: conj(ct),),
    reference=np.conj,
)


def _part_of_complex(node: Any, rewriter: Any, i: int) -> Any:
    inner = rewriter.producer(node.inputs[0])  # real(complex(x, y)) -> x
    if inner is not None and inner.primitive is COMPLEX:
        return replaces(inner.inputs[i], node)
    return None


def real(x: Any) -> Any:
    """The real part of a complex array.

    >>> float(real(1 + 2j))
    1.0
    """
    return REAL(x)


def imag(x: Any) -> Any:
    """The imaginary part of a complex array.

    >>> float(imag(1 + 2j))
    2.0
    """
    return IMAG(x)


def complex(x: Any, y: Any) -> Any:
    """x + 1j * y, elementwise, of two float arrays (float32 or float64).

    >>> complex(1.0, 2.0).dtype.name
    'complex64'
    """
    return COMPLEX(x, y)


def conj(x: Any) -> Any:
    """The complex conjugate; real x gives a complex array.

    >>> conj(1 + 2j).dtype.name
    'complex64'
    """
    if not dtypes.is_complex(type_of(x).dtype):
        return complex(x, 0)
    return CONJ(x)


# ---- order


def in_order(comparison: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """comparison(x, y), one of lt, le, gt and ge; complex numbers by real, then imaginary part.

    >>> bool(in_order(ge, np.complex64(1 + 2j), np.complex64(1 + 3j)))
    False
    """
    if not dtypes.is_complex(type_of(x).dtype):
        return comparison(x, y)
    tied = eq(real(x), real(y))
    return select_n(tied, comparison(real(x), real(y)), comparison(imag(x), imag(y)))
