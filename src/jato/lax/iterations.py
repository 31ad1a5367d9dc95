"""Series and continued fractions, evaluated for whole arrays until every element has converged.

A recurrence is two functions of a parameter p: start(p) gives the state before the first step, a
tuple of arrays whose last is the approximation; step(i, p, state) gives the state after step i.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jato.control.while_loop import while_loop
from jato.core.types import type_of
from jato.ops import elementwise as ops
from jato.ops.reduce import reduce_or
from jato.ops.structural import full_like
from jato.transforms.jvp import jvp

State = tuple[Any, ...]
Start = Callable[[Any], State]
Step = Callable[[Any, Any, State], State]


def any_true(x: Any) -> Any:
    return reduce_or(x, tuple(range(type_of(x).ndim)))


def away_from_zero(x: Any) -> Any:
    """`x`, or a tiny number in place of zero: what Lentz's method divides by."""
    tiny = float(np.finfo(type_of(x).dtype).tiny) * 16
    return ops.select(ops.abs(x) < tiny, full_like(x, tiny), x)


def converged_value(start: Start, step: Step, p: Any, active: Any, most: int) -> Any:
    """The limit of a recurrence, for the elements that are `active`; at most so many steps."""
    epsilon = float(np.finfo(type_of(p).dtype).eps)

    def body(carry: Any) -> Any:
        i, state, running = carry
        after = step(i, p, state)
        value = ops.select(running, after[-1], state[-1])
        moving = ops.abs(after[-1] - state[-1]) > epsilon * ops.abs(after[-1])
        return i + 1.0, (*after[:-1], value), running & moving

    def running(carry: Any) -> Any:
        return any_true(carry[2]) & (carry[0] < float(most))

    first = np.ones((), type_of(p).dtype)[()]
    return while_loop(running, body, (first, tuple(start(p)), active))[1][-1]


def converged_slope(start: Start, step: Step, p: Any, active: Any, most: int) -> tuple[Any, Any]:
    """The limit of a recurrence and its derivative in p.

    The derivative has a test of its own: a fraction that ends (a factor is 0) has a value at once,
    while its derivative goes on.
    """
    epsilon = float(np.finfo(type_of(p).dtype).eps)
    one = full_like(p, 1.0)

    def body(carry: Any) -> Any:
        i, state, slopes, running = carry
        after, after_slopes = jvp(
            lambda p, *state: tuple(step(i, p, state)), (p, *state), (one, *slopes)
        )
        value = ops.select(running, after[-1], state[-1])
        slope = ops.select(running, after_slopes[-1], slopes[-1])
        size = ops.abs(after[-1])
        moving = ops.abs(after[-1] - state[-1]) > epsilon * size
        size = ops.max(size, ops.abs(after_slopes[-1]))
        moving = moving | (ops.abs(after_slopes[-1] - slopes[-1]) > epsilon * size)
        return i + 1.0, (*after[:-1], value), (*after_slopes[:-1], slope), running & moving

    def running(carry: Any) -> Any:
        return any_true(carry[3]) & (carry[0] < float(most))

    first = np.ones((), type_of(p).dtype)[()]
    state, slopes = jvp(lambda p: tuple(start(p)), (p,), (one,))
    found = while_loop(running, body, (first, tuple(state), tuple(slopes), active))
    return found[1][-1], found[2][-1]
