"""jato.scipy.optimize: the minimum of a smooth function.

BFGS with a line search for the strong Wolfe conditions: J. Nocedal and S. Wright, "Numerical
Optimization" (2006), algorithms 6.1, 3.5 and 3.6.  All is one program: `minimize` can be jitted, mapped
and called in compiled functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jato.numpy as jnp
from jato.control.cond import cond
from jato.control.while_loop import while_loop
from jato.numpy.promote import as_array
from jato.scipy.special.arguments import named_operands
from jato.transforms.grad import value_and_grad

_SUFFICIENT_DECREASE, _CURVATURE = 1e-4, 0.9


class OptimizeResults(NamedTuple):
    """What `minimize` found.

    x: the last point; success: is it a minimum to tolerance?; status: 0 if so, 1: maxiter was reached,
    3: no further point was found; fun, jac: the value and the gradient there; hess_inv: an estimate of
    the inverse Hessian; nfev, njev, nit: how many values, gradients and steps it took.
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


class _Point(NamedTuple):
    """A point on the line of search: the step, the value and the slope there."""

    step: Any
    value: Any
    slope: Any


def _chosen(condition: Any, first: Any, second: Any) -> Any:
    kind = type(first)
    return kind(*(jnp.where(condition, x, y) for x, y in zip(first, second, strict=True)))


def _trial(low: _Point, high: _Point) -> Any:
    """The minimum of the cubic through both points and slopes, kept inside of the interval (3.59)."""
    width = high.step - low.step
    d1 = low.slope + high.slope - 3 * (low.value - high.value) / -width
    root = jnp.sqrt(jnp.maximum(d1 * d1 - low.slope * high.slope, 0)) * jnp.sign(width)
    bottom = high.slope - low.slope + 2 * root
    cubic = high.step - width * (high.slope + root - d1) / jnp.where(bottom == 0, 1, bottom)
    least, most = jnp.minimum(low.step, high.step), jnp.maximum(low.step, high.step)
    edge = 0.1 * (most - least)
    usable = (bottom != 0) & (cubic > least + edge) & (cubic < most - edge)
    return jnp.where(usable, cubic, 0.5 * (least + most))


def _line_search(
    along: Callable[[Any], tuple[Any, Any]], start: _Point, most: int
) -> tuple[Any, Any, Any]:
    """(step, was one found?, evaluations): a step that satisfies the strong Wolfe conditions.

    One loop: first the step grows until an interval holds a minimum, then the interval shrinks.
    """

    def evaluated(step: Any) -> _Point:
        return _Point(step, *along(step))

    def too_high(p: _Point, low: _Point) -> Any:
        limit = start.value + _SUFFICIENT_DECREASE * p.step * start.slope
        return ~(p.value <= limit) | (p.value >= low.value) & (low.step > 0)

    def unfinished(state: Any) -> Any:
        _, _, _, _, found, k = state
        return ~found & (k < most)

    def advance(state: Any) -> Any:
        low, high, zooming, best, found, k = state
        guess = jnp.where(zooming, _trial(low, high), jnp.where(k == 0, 1.0, 2 * low.step))
        p = evaluated(guess)
        high_there = jnp.where(zooming, too_high(p, low) | (p.value >= low.value), too_high(p, low))
        found = ~high_there & (jnp.abs(p.slope) <= -_CURVATURE * start.slope)
        # the interval ends at p, or begins there; then the end is where the slope leads down
        turned = jnp.where(zooming, p.slope * (high.step - low.step) >= 0, p.slope >= 0)
        new_high = _chosen(high_there, p, _chosen(turned, low, high))
        new_low = _chosen(high_there, low, p)
        zooming = zooming | high_there | turned
        best = _chosen(found, p, best)
        return new_low, new_high, zooming, best, found, k + 1

    no = jnp.zeros((), bool)
    low, _, _, best, found, k = while_loop(
        unfinished, advance, (start, start, no, start, no, jnp.zeros((), int))
    )
    # without the curvature condition a point lower than the start still serves
    step = jnp.where(found, best.step, low.step)
    return step, found | (low.step > 0), k


class _State(NamedTuple):
    x: Any
    value: Any
    slope: Any
    inverse: Any
    iterations: Any
    evaluations: Any
    failed: Any


def _minimized(
    f: Callable[[Any], Any], x0: Any, gtol: float, norm: float, most: int, search: int
) -> OptimizeResults:
    with_slope = value_and_grad(f)
    value, slope = with_slope(x0)
    one = jnp.eye(x0.shape[0], dtype=x0.dtype)
    zero = jnp.zeros((), int)

    def converged(state: _State) -> Any:
        return jnp.linalg.norm(state.slope, ord=norm) < gtol

    def unfinished(state: _State) -> Any:
        return ~converged(state) & ~state.failed & (state.iterations < most)

    def step(state: _State) -> _State:
        direction = -state.inverse @ state.slope
        descends = jnp.dot(direction, state.slope) < 0
        direction = jnp.where(descends, direction, -state.slope)

        def along(t: Any) -> tuple[Any, Any]:
            value, slope = with_slope(state.x + t * direction)
            return value, jnp.dot(slope, direction)

        start = _Point(jnp.zeros((), x0.dtype), state.value, jnp.dot(state.slope, direction))
        t, found, count = _line_search(along, start, search)
        s = t * direction
        x = state.x + s
        value, slope = with_slope(x)
        y = slope - state.slope
        curvature = jnp.dot(s, y)
        usable = found & (curvature > 0)
        rho = 1 / jnp.where(usable, curvature, 1)
        # the first estimate has the scale of the curvature that was seen (6.20)
        scale = jnp.where(state.iterations == 0, curvature / jnp.maximum(jnp.dot(y, y), 1e-30), 1)
        base = jnp.where((state.iterations == 0) & usable, scale * one, state.inverse)
        left = one - rho * jnp.outer(s, y)
        updated = left @ base @ left.T + rho * jnp.outer(s, s)
        moved = _State(
            x, value, slope, jnp.where(usable, updated, state.inverse), state.iterations + 1,
            state.evaluations + count + 1, ~found | ~jnp.isfinite(value),
        )  # fmt: skip
        stayed = state._replace(
            iterations=state.iterations + 1,
            evaluations=moved.evaluations,
            failed=jnp.ones((), bool),
        )
        return cond(found, lambda: moved, lambda: stayed)

    first = _State(x0, value, slope, one, zero, zero + 1, ~jnp.isfinite(value))
    last = while_loop(unfinished, step, first)
    success = converged(last)
    status = jnp.where(success, 0, jnp.where(last.failed, 3, 1))
    return OptimizeResults(
        last.x, success, status, last.value, last.slope, last.inverse, last.evaluations, last.evaluations,
        last.iterations,
    )  # fmt: skip


_OPTIONS: dict[str, Any] = {
    "gtol": 1e-5, "norm": math.inf, "maxiter": None, "line_search_maxiter": 10,
}  # fmt: skip


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """A minimum of fun(x, *args) near x0.

    fun: gives a number and is differentiable; x0: a vector;
    method: "BFGS"; tol: the norm of the gradient at which it ends (1e-5); options: "gtol", as tol,
    "norm", the order of that norm (infinity), "maxiter" (200 times the elements of x0),
    "line_search_maxiter" (10).  ValueError for other methods and options and if fun gives no number,
    TypeError unless args is a tuple.

    >>> import jato.numpy as jnp
    >>> minimize(lambda x: jnp.sum((x - 3.0) ** 2), jnp.zeros(1), method="BFGS").x
    Array([3.], dtype=float32)
    """
    if not isinstance(args, tuple):
        raise TypeError(f"minimize: argument 'args' must be a tuple, got {type(args).__name__}")
    if not isinstance(method, str) or method.lower() != "bfgs":
        raise ValueError(f"minimize: argument 'method' must be 'BFGS', got {method!r}")
    given = dict(options or {})
    unknown = set(given) - set(_OPTIONS)
    if unknown:
        raise ValueError(
            f"minimize: argument 'options' may have {', '.join(map(repr, _OPTIONS))}, got "
            f"{', '.join(map(repr, sorted(unknown)))}"
        )
    chosen = {**_OPTIONS, **({} if tol is None else {"gtol": tol}), **given}
    (start,) = named_operands("minimize", x0=as_array("minimize", x0, "x0"))
    if len(start.shape) != 1:
        raise ValueError(f"minimize: argument 'x0' must be a vector, got shape {start.shape}")
    size = start.shape[0]
    most = 200 * size if chosen["maxiter"] is None else int(chosen["maxiter"])

    def f(x: Any) -> Any:
        value = jnp.asarray(fun(x, *args))
        if value.shape:
            raise ValueError(
                f"minimize: argument 'fun' must give a number, got an array of shape {value.shape}"
            )
        return value

    search = int(chosen["line_search_maxiter"])
    return _minimized(f, start, chosen["gtol"], chosen["norm"], most, search)
