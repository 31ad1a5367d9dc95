"""JitSpec: every option of `jit` in one frozen record."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True)
class JitSpec:
    """What `jit(fun, ...)` was given, made canonical.

    Positions are >= 0 where the signature is known; an argument named by position is also known
    by name and the other way round, so that it may be passed either way.
    """

    fun: Callable[..., Any]
    name: str
    static_argnums: tuple[int, ...] = ()
    static_argnames: tuple[str, ...] = ()
    donate_argnums: tuple[int, ...] = ()
    donate_argnames: tuple[str, ...] = ()
    keep_unused: bool = False
    public: bool = False  # a function of jato itself: inlined into traces, scalars stay dynamic


def make_spec(
    fun: Callable[..., Any],
    static_argnums: Any = None,
    static_argnames: Any = None,
    donate_argnums: Any = None,
    donate_argnames: Any = None,
    keep_unused: bool = False,
) -> JitSpec:
    """Checks and canonicalizes the options of `jit`.  TypeError or ValueError with the reason."""
    if not callable(fun):
        raise TypeError(f"jit: expected a callable, got {type(fun).__name__}: {fun!r}")
    if inspect.isgeneratorfunction(fun) or inspect.iscoroutinefunction(fun):
        raise TypeError(f"jit: {function_name(fun)} is a generator or coroutine; jit needs a plain function")
    parameters = _parameters(fun)
    static_nums = _positions("static_argnums", static_argnums, parameters, fun)
    static_names = _names("static_argnames", static_argnames, parameters, fun)
    donate_nums = _positions("donate_argnums", donate_argnums, parameters, fun)
    donate_names = _names("donate_argnames", donate_argnames, parameters, fun)
    # JAX: what one of the pair leaves out is inferred from the other
    static_nums, static_names = _paired(static_nums, static_names, parameters)
    donate_nums, donate_names = _paired(donate_nums, donate_names, parameters)
    clash = set(static_nums) & set(donate_nums)
    if clash:
        raise ValueError(
            f"jit: argument {_describe(min(clash), parameters)} of {function_name(fun)} is both "
            "static and donated; a static argument has no memory to donate."
        )
    return JitSpec(
        fun, function_name(fun), static_nums, static_names, donate_nums, donate_names, keep_unused
    )


def function_name(fun: Any) -> str:
    inner = fun
    while hasattr(inner, "func"):  # functools.partial
        inner = inner.func
    return getattr(inner, "__name__", type(inner).__name__)


def _parameters(fun: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return None


def _positions(
    option: str, value: Any, parameters: list[inspect.Parameter] | None, fun: Any
) -> tuple[int, ...]:
    if value is None:
        return ()
    try:
        given = (operator.index(value),) if not isinstance(value, Sequence) else tuple(
            operator.index(i) for i in value
        )
    except TypeError:
        raise TypeError(
            f"jit: {option} must be an integer or a sequence of integers, got {value!r}"
        ) from None
    if parameters is None or any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return given
    count = sum(p.kind in _POSITIONAL for p in parameters)
    for i in given:
        if not -count <= i < count:
            raise ValueError(
                f"jit: {option}={value!r} is out of range: {function_name(fun)} takes {count} "
                f"positional argument{'s' if count != 1 else ''}"
            )
    return tuple(i + count if i < 0 else i for i in given)


def _names(
    option: str, value: Any, parameters: list[inspect.Parameter] | None, fun: Any
) -> tuple[str, ...]:
    if value is None:
        return ()
    given = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(n, str) for n in given):
        raise TypeError(f"jit: {option} must be a string or a sequence of strings, got {value!r}")
    if parameters is None or any(p.kind is p.VAR_KEYWORD for p in parameters):
        return given
    known = {p.name for p in parameters}
    for name in given:
        if name not in known:
            raise ValueError(
                f"jit: {option} names {name!r}, which is no parameter of {function_name(fun)} "
                f"({', '.join(p.name for p in parameters)})"
            )
    return given


def _paired(
    numbers: tuple[int, ...], names: tuple[str, ...], parameters: list[inspect.Parameter] | None
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    if parameters is None:
        return numbers, names
    position = {p.name: i for i, p in enumerate(parameters) if p.kind in _POSITIONAL}
    both = set(numbers) | {position[n] for n in names if n in position}
    by_keyword = {
        p.name
        for i, p in enumerate(parameters)
        if i in both and p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    }
    return tuple(sorted(both)), tuple(sorted(set(names) | by_keyword))


def _describe(position: int, parameters: list[inspect.Parameter] | None) -> str:
    if parameters is not None and position < len(parameters):
        return f"'{parameters[position].name}'"
    return f"number {position}"
