"""fori_loop: a counted loop.

With bounds that are known when it is traced it is a `scan` (differentiable in every mode), else a
`while_loop`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any


from jato.base import dtypes
from jato.base.errors import check
from jato.base.pytree import function_name
from jato.control.scan import check_unroll, scan
from jato.control.staged_functions import flat_values
from jato.control.while_loop import while_loop
from jato.core.graph_print import short_type
from jato.core.trace import Tracer
from jato.core.types import type_of
from jato.ops.arithmetic import add
from jato.ops.convert import convert_element_type
from jato.ops.selection import lt


def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> Any:
    """value = body_fun(i, value) for i = lower, ..., upper - 1.

    With Python integers as bounds it is a `scan` and differentiable in reverse mode; with traced
    bounds a `while_loop`.  unroll: as in `scan`, a hint that is checked; traced bounds allow none.

    >>> int(fori_loop(0, 5, lambda i, total: total + i, 0))
    10

    TypeError if a bound is no integer scalar or body_fun changes a type; ValueError for a negative
    `unroll`, or one beside traced bounds.
    """
    check(callable(body_fun), TypeError, "fori_loop: body_fun must be a function")
    if unroll is not None:
        check_unroll("fori_loop", unroll)
    bounds, _ = flat_values("fori_loop: bound", (lower, upper))
    for name, bound in zip(("lower", "upper"), bounds, strict=True):
        aval = type_of(bound)
        check(
            aval.shape == () and dtypes.is_integer(aval.dtype),
            TypeError,
            f"fori_loop: {name} must be an integer scalar, got {short_type(aval)}",
        )
    dtype = dtypes.promote(*((type_of(b).dtype, type_of(b).weak_type) for b in bounds))[0]
    known = [_known_integer(b) for b in (lower, upper)]
    if None not in known:
        return _static_fori(known[0], known[1], body_fun, init_val)
    check(
        unroll is None or unroll is False or unroll == 1,
        ValueError,
        f"fori_loop: argument 'unroll' is {unroll!r}, but unrolling needs bounds that are known "
        "when the loop is traced; pass Python integers as lower and upper",
    )
    # the counter is as weak as the lower bound: beside narrow integers it takes their dtype
    start = convert_element_type(bounds[0], dtype, type_of(bounds[0]).weak_type)
    stop = convert_element_type(bounds[1], dtype)

    def body(carry: Any) -> Any:
        i, value = carry
        return add(i, 1), body_fun(i, value)

    body.__name__ = function_name(body_fun)
    limit = stop
    return while_loop(lambda carry: lt(carry[0], limit), body, (start, init_val))[1]


def _known_integer(bound: Any) -> int | None:
    """The value of a bound that is known while tracing."""
    if isinstance(bound, Tracer):
        bound = bound.concrete()
        if bound is None:
            return None
    return operator.index(bound)


def _static_fori(
    lower: int, upper: int, body_fun: Callable[[Any, Any], Any], init_val: Any
) -> Any:
    def step(carry: Any, _: Any) -> Any:
        i, value = carry
        return (add(i, 1), body_fun(i, value)), None

    step.__name__ = function_name(body_fun)
    return scan(step, (lower, init_val), None, length=max(upper - lower, 0))[0][1]
