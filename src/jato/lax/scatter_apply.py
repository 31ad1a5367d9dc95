"""scatter_apply: a function applied to the elements at run-time positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jato.base.errors import check
from jato.base.pytree import function_name
from jato.control.while_loop import while_loop
from jato.core.types import type_of
from jato.ops.elementwise import add, gt, lt, select
from jato.ops.indexing import scatter_add
from jato.ops.reduce import reduce_max
from jato.ops.structural import full


def scatter_apply(
    operand: Any, scatter_indices: Any, func: Callable[[Any], Any], dimension_numbers: Any, *,
    update_shape: Any = (), indices_are_sorted: bool = False, unique_indices: bool = False,
    mode: Any = None,
) -> Any:  # fmt: skip
    """`operand` with func applied to the elements at these positions, once for each time they occur.

    operand, scatter_indices, dimension_numbers, mode: as of `scatter`; update_shape: the shape that
    updates would have; func: an elementwise function that keeps the dtype; unique_indices: no
    position occurs twice, so func is called once on the whole operand, and has its derivative;
    otherwise it is in a `while_loop`.
    Raises: TypeError if func changes the shape or dtype, or when the geometry does not fit.

    >>> from jato.ops.indexing import ScatterDimensionNumbers
    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> places = np.array([[1], [3], [1]])
    >>> scatter_apply(np.arange(5.0, dtype=np.float32), places, lambda x: x + 10, numbers,
    ...               update_shape=(3,)).tolist()
    [0.0, 21.0, 2.0, 13.0, 4.0]
    """
    aval = type_of(operand)
    ones = full(update_shape, np.int32(1))
    counts = scatter_add(
        full(aval.shape, np.int32(0)), scatter_indices, ones, dimension_numbers,
        indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode,
    )  # fmt: skip

    def applied(x: Any) -> Any:
        out = func(x)
        got = type_of(out)
        check(
            got.shape == aval.shape and got.dtype == aval.dtype,
            TypeError,
            f"scatter_apply: expected func ({function_name(func)}) to keep {aval}, got {got}",
        )
        return out

    if unique_indices:
        return select(gt(counts, np.int32(0)), applied(operand), operand)
    axes = tuple(range(len(aval.shape)))
    if aval.size == 0:
        return operand
    most = reduce_max(counts, axes)

    def once(state: Any) -> Any:
        times, x = state
        return add(times, np.int32(1)), select(gt(counts, times), applied(x), x)

    return while_loop(lambda state: lt(state[0], most), once, (np.int32(0), operand))[1]
