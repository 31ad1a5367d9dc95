"""scaled_matmul: products of matrices that carry a scale for each block of a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from jato.base.errors import check
from jato.core.types import type_of
from jato.jit.eager import public
from jato.lax.scaled_products import scaled_dot


@public(static=("preferred_element_type",))
def scaled_matmul(
    lhs: Any, rhs: Any, lhs_scales: Any, rhs_scales: Any, preferred_element_type: Any = np.float32
) -> Any:
    """Products of scaled rows: [b, m, k] and [b, n, k] -> [b, m, n].

    lhs_scales: [b, m, j] and rhs_scales: [b, n, j'], where j and j' divide k: element i of a row is
    multiplied by its block's scale.  Sums are float32 or wider.
    Raises: TypeError when shapes do not fit.

    >>> import jato.numpy as jnp
    >>> a, b = jnp.array([[[1.0, 2.0, 3.0]]]), jnp.array([[[4.0, 5.0, 6.0]]])
    >>> half = jnp.full((1, 1, 1), 0.5)
    >>> scaled_matmul(a, b, half, half)
    Array([[[8.]]], dtype=float32)
    """
    left, right = type_of(lhs), type_of(rhs)
    fits = left.ndim == right.ndim == 3
    check(
        fits and left.shape[0] == right.shape[0] and left.shape[2] == right.shape[2],
        TypeError,
        f"scaled_matmul: expected lhs [b, m, k] and rhs [b, n, k], got {left} and {right}",
    )
    rows = type_of(lhs_scales).shape[:2], type_of(rhs_scales).shape[:2]
    check(
        rows == (left.shape[:2], right.shape[:2]),
        TypeError,
        "scaled_matmul: expected scales for each row of lhs and rhs, got shapes "
        f"{type_of(lhs_scales).shape} and {type_of(rhs_scales).shape}",
    )
    return scaled_dot(
        lhs, rhs, lhs_scale=lhs_scales, rhs_scale=rhs_scales,
        dimension_numbers=(((2,), (2,)), ((0,), (0,))),
        preferred_element_type=preferred_element_type,
    )  # fmt: skip
