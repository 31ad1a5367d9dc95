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
from jato.control.scan import scan
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


class _Method(NamedTuple):
    """How curvature is remembered: start(x0) -> memory; direction(memory, slope), a way down;
    update(memory, s, y, first), after a step s that changed the slope by y."""

    start: Callable[[Any], Any]
    direction: Callable[[Any, Any], Any]
    update: Callable[[Any, Any, Any, Any], Any]


def _updated_inverse(inverse: Any, s: Any, y: Any, first: Any) -> Any:
    one = jnp.eye(s.shape[0], dtype=s.dtype)
    rho = 1 / jnp.dot(s, y)
    # the first estimate has the scale of the curvature that was seen (6.20)
    base = jnp.where(first, one / (rho * jnp.dot(y, y)), inverse)
    left = one - rho * jnp.outer(s, y)
    return left @ base @ left.T + rho * jnp.outer(s, s)


_BFGS = _Method(
    start=lambda x: jnp.eye(x.shape[0], dtype=x.dtype),
    direction=lambda inverse, slope: -inverse @ slope,
    update=_updated_inverse,
)


def _limited(count: int) -> _Method:
    """The last steps and changes of slope instead of a matrix: algorithm 7.4."""

    def start(x: Any) -> Any:
        rows = jnp.zeros((count, x.shape[0]), x.dtype)
        return rows, rows, jnp.zeros(count, x.dtype), jnp.ones((), x.dtype)

    def direction(memory: Any, slope: Any) -> Any:
        *history, scale = memory  # rho is 0 where there was no step yet

        def back(q: Any, step: Any) -> tuple[Any, Any]:
            s, y, rho = step
            share = rho * jnp.dot(s, q)
            return q - share * y, share

        q, shares = scan(back, slope, tuple(history), reverse=True)

        def forth(r: Any, step: Any) -> tuple[Any, None]:
            s, y, rho, share = step
            return r + s * (share - rho * jnp.dot(y, r)), None

        return -scan(forth, scale * q, (*history, shares))[0]

    def update(memory: Any, s: Any, y: Any, first: Any) -> Any:
        steps, changes, rhos, _ = memory
        rho = 1 / jnp.dot(s, y)
        appended = lambda rows, row: jnp.concatenate([rows[1:], row[None]])
        scale = 1 / (rho * jnp.dot(y, y))
        return appended(steps, s), appended(changes, y), appended(rhos, rho), scale

    return _Method(start, direction, update)


class _State(NamedTuple):
    x: Any
    value: Any
    slope: Any
    memory: Any
    iterations: Any
    evaluations: Any
    failed: Any
    settled: Any


def _minimized(
    f: Callable[[Any], Any], x0: Any, method: _Method, options: Mapping[str, Any]
) -> tuple[_State, Any, Any]:
    """(the last state, success, status)"""
    with_slope = value_and_grad(f)
    value, slope = with_slope(x0)
    zero, no = jnp.zeros((), int), jnp.zeros((), bool)

    def converged(state: _State) -> Any:
        return jnp.linalg.norm(state.slope, ord=options["norm"]) < options["gtol"]

    def unfinished(state: _State) -> Any:
        done = converged(state) | state.failed | state.settled
        left = state.iterations < options["maxiter"]
        if options["maxfun"] is not None:
            left &= state.evaluations < options["maxfun"]
        return ~done & left

    def step(state: _State) -> _State:
        direction = method.direction(state.memory, state.slope)
        descends = jnp.dot(direction, state.slope) < 0
        direction = jnp.where(descends, direction, -state.slope)

        def along(t: Any) -> tuple[Any, Any]:
            value, slope = with_slope(state.x + t * direction)
            return value, jnp.dot(slope, direction)

        start = _Point(jnp.zeros((), x0.dtype), state.value, jnp.dot(state.slope, direction))
        t, found, count = _line_search(along, start, options["line_search_maxiter"])
        s = t * direction
        x = state.x + s
        value, slope = with_slope(x)
        y = slope - state.slope
        drop = jnp.abs(state.value - value)
        size = jnp.maximum(jnp.maximum(jnp.abs(value), jnp.abs(state.value)), 1)
        memory = cond(
            found & (jnp.dot(s, y) > 0),
            lambda: method.update(state.memory, s, y, state.iterations == 0),
            lambda: state.memory,
        )
        moved = _State(
            x, value, slope, memory, state.iterations + 1, state.evaluations + count + 1,
            ~found | ~jnp.isfinite(value), found & (drop <= options["ftol"] * size) & (options["ftol"] > 0),
        )  # fmt: skip
        stayed = state._replace(
            iterations=moved.iterations, evaluations=moved.evaluations, failed=jnp.ones((), bool)
        )
        return cond(found, lambda: moved, lambda: stayed)

    first = _State(
        x0, value, slope, method.start(x0), zero, zero + 1, ~jnp.isfinite(value), no
    )  # fmt: skip
    last = while_loop(unfinished, step, first)
    success = converged(last) | last.settled
    return last, success, jnp.where(success, 0, jnp.where(last.failed, 3, 1))


_LIMITED = "l-bfgs-experimental-do-not-rely-on-this"
_COMMON = {"gtol": 1e-5, "norm": math.inf, "maxiter": None, "line_search_maxiter": 10}
_OPTIONS: dict[str, dict[str, Any]] = {
    "bfgs": _COMMON,
    _LIMITED: {**_COMMON, "line_search_maxiter": 20, "maxcor": 10, "ftol": 0.0, "maxfun": None},
}


def _chosen_options(
    method: str, tol: Any, options: Mapping[str, Any] | None, size: int
) -> dict[str, Any]:
    known = _OPTIONS[method]
    given = dict(options or {})
    unknown = set(given) - set(known)
    if unknown:
        raise ValueError(
            f"minimize: argument 'options' may have {', '.join(map(repr, known))}, got "
            f"{', '.join(map(repr, sorted(unknown)))}"
        )
    chosen = {
        "ftol": 0.0,
        "maxfun": None,
        **known,
        **({} if tol is None else {"gtol": tol}),
        **given,
    }
    chosen["maxiter"] = 200 * size if chosen["maxiter"] is None else int(chosen["maxiter"])
    chosen["line_search_maxiter"] = int(chosen["line_search_maxiter"])
    return chosen


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

    fun: gives a number and is differentiable; x0: a vector; method: "BFGS", or with memory for the last
    steps only "l-bfgs-experimental-do-not-rely-on-this" (its hess_inv is None); tol: the norm of the
    gradient at which it ends (1e-5).  options: "gtol", as tol; "norm", the order of that norm (infinity);
    "maxiter" (200 times the elements of x0); "line_search_maxiter" (10); with limited memory "maxcor", how
    many steps are remembered (10), "ftol", the relative change of the value at which it ends (0), and
    "maxfun", the most evaluations.  ValueError for other methods and options and if fun gives no
    number, TypeError unless args is a tuple.

    >>> import jato.numpy as jnp
    >>> minimize(lambda x: jnp.sum((x - 3.0) ** 2), jnp.zeros(1), method="BFGS").x
    Array([3.], dtype=float32)
    """
    if not isinstance(args, tuple):
        raise TypeError(f"minimize: argument 'args' must be a tuple, got {type(args).__name__}")
    name = method.lower() if isinstance(method, str) else ""
    if name not in _OPTIONS:
        raise ValueError(
            f"minimize: argument 'method' must be 'BFGS' or {_LIMITED!r}, got {method!r}"
        )
    (start,) = named_operands("minimize", x0=as_array("minimize", x0, "x0"))
    if len(start.shape) != 1:
        raise ValueError(f"minimize: argument 'x0' must be a vector, got shape {start.shape}")

    def f(x: Any) -> Any:
        value = jnp.asarray(fun(x, *args))
        if value.shape:
            raise ValueError(
                f"minimize: argument 'fun' must give a number, got an array of shape {value.shape}"
            )
        return value

    chosen = _chosen_options(name, tol, options, start.shape[0])
    kind = _BFGS if name == "bfgs" else _limited(int(chosen["maxcor"]))
    last, success, status = _minimized(f, start, kind, chosen)
    inverse = last.memory if name == "bfgs" else None
    count = last.evaluations
    return OptimizeResults(
        last.x, success, status, last.value, last.slope, inverse, count, count, last.iterations
    )
