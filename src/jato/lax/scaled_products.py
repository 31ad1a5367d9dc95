"""scaled_dot: products of operands that carry a scale for each block."""

from __future__ import annotations

from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import check
from jato.core.types import type_of
from jato.ops.contract import dot_general
from jato.ops.convert import convert_element_type
from jato.ops.elementwise import mul
from jato.ops.structural import broadcast_in_dim, reshape

_BATCHED = (((2,), (1,)), ((0,), (0,)))


def scaled_dot(
    lhs: Any, rhs: Any, *, lhs_scale: Any = None, rhs_scale: Any = None,
    dimension_numbers: Any = None, preferred_element_type: Any = None,
) -> Any:  # fmt: skip
    """(lhs * lhs_scale) (rhs * rhs_scale): `dot_general` of operands with a scale for each block.

    A scale has the rank of its operand; each of its extents divides the operand's, and an element
    of it counts for a block of as many.  dimension_numbers: as of `dot_general`, by default those of
    batched matrices [b, m, k] and [b, k, n]; preferred_element_type: of the result, by default
    bfloat16.  Products and sums are float32 or wider.
    Raises: TypeError when shapes do not fit.

    >>> x = np.ones((1, 2, 4), np.float32)
    >>> scale = np.array([[[2.0, 3.0], [2.0, 3.0]]], np.float32)
    >>> scaled_dot(x, np.ones((1, 4, 1), np.float32), lhs_scale=scale,
    ...            preferred_element_type=np.float32).tolist()
    [[[10.0], [10.0]]]
    """
    wanted = dtypes.canonicalize(
        "bfloat16" if preferred_element_type is None else preferred_element_type
    )
    wide = dtypes.promote_types(wanted, np.dtype("float32"))
    parts = [
        _scaled(name, x, scale, wide)
        for name, x, scale in (("lhs", lhs, lhs_scale), ("rhs", rhs, rhs_scale))
    ]
    out = dot_general(*parts, _BATCHED if dimension_numbers is None else dimension_numbers)
    return convert_element_type(out, wanted)


def _scaled(name: str, x: Any, scale: Any, dtype: Any) -> Any:
    values = convert_element_type(x, dtype)
    if scale is None:
        return values
    shape, blocks = type_of(x).shape, type_of(scale).shape
    check(
        len(shape) == len(blocks)
        and all(b and n % b == 0 for n, b in zip(shape, blocks, strict=True)),
        TypeError,
        f"scaled_dot: expected the extents of {name}_scale to divide those of {name}, {shape}, got "
        f"{blocks}",
    )
    spread = tuple(e for n, b in zip(shape, blocks, strict=True) for e in (b, n // b))
    places = tuple(range(0, 2 * len(shape), 2))
    factors = convert_element_type(scale, dtype)
    return mul(values, reshape(broadcast_in_dim(factors, spread, places), shape))
