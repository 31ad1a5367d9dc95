"""convolve and correlate of vectors: one-dimensional stencils."""

from __future__ import annotations

from typing import Any

from jato.base.dtypes import canonicalize
from jato.jit.eager import public
from jato.numpy.contractions import STATIC, conjugated
from jato.numpy.promote import promote_dtypes
from jato.ops import structural, window


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
        v = conjugated(v)
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


@public(static=(*STATIC, "mode"))
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


@public(static=(*STATIC, "mode"))
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
