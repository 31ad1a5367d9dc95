"""Walking over kernels: all expressions that statements need, each once; lengths of loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jato.loopir.grammar import Expr, For, If, Kernel, Loop, Prefetch, Reduce, Store, TileCopy


def statements(body: Sequence[Any]) -> Iterator[Any]:
    """All statements, outer ones first."""
    for statement in body:
        yield statement
        if isinstance(statement, (For, Reduce, Loop)):
            yield from statements(statement.body)
        elif isinstance(statement, If):
            yield from statements(statement.then)


def bound_by(statement: Any) -> Sequence[Expr]:
    """The variables that a statement gives values to."""
    if isinstance(statement, For):
        return (statement.var,)
    if isinstance(statement, Reduce):
        return (statement.var, *statement.results)
    if isinstance(statement, Loop):
        return (statement.var, *statement.carries, *statement.results)
    return ()


def roots(statement: Any) -> list[Expr]:
    """The expressions that a statement itself evaluates (not those of its body)."""
    if isinstance(statement, Store):
        found = [statement.index, statement.value]
        return found if statement.mask is None else [*found, statement.mask]
    if isinstance(statement, For):
        return [statement.start, statement.stop]
    if isinstance(statement, Reduce):
        combine = statement.combine
        return [
            statement.start, statement.stop, *statement.elements, *statement.identity,
            *combine.result,
        ]  # fmt: skip
    if isinstance(statement, Loop):
        found = [statement.start, statement.stop, *statement.inits, *statement.nexts]
        return found if statement.condition is None else [*found, statement.condition]
    if isinstance(statement, Prefetch):
        return [statement.index]
    if isinstance(statement, TileCopy):
        return [*statement.numbers]
    return [statement.condition]


def expressions(kernel: Kernel | Sequence[Any]) -> Iterator[Expr]:
    """Every expression reachable from the statements, once, users before their operands."""
    body = kernel.body if isinstance(kernel, Kernel) else kernel
    seen: set[Expr] = set()
    for statement in statements(body):
        stack = roots(statement)
        while stack:
            e = stack.pop()
            if e in seen:
                continue
            seen.add(e)
            yield e
            stack += e.args


def mentions(roots: Sequence[Expr], *variables: Expr) -> bool:
    """Does any of the expressions depend on one of the variables?"""
    stack, seen = [*roots], set()
    while stack:
        e = stack.pop()
        if e in variables:
            return True
        if e not in seen:
            seen.add(e)
            stack += e.args
    return False


def variables_below(roots: Sequence[Expr]) -> set[Expr]:
    """The variables that the expressions depend on."""
    stack, seen = [*roots], set()
    while stack:
        e = stack.pop()
        if e not in seen:
            seen.add(e)
            stack += e.args
    return {e for e in seen if e.op == "var"}


def loads(kernel: Kernel | Sequence[Any]) -> Iterator[Expr]:
    return (e for e in expressions(kernel) if e.op == "load")


_INTEGER: dict[str, Callable[[int, int], int]] = {
    "add": int.__add__,
    "sub": int.__sub__,
    "mul": int.__mul__,
    "min": min,
    "max": max,
    "div": int.__floordiv__,
    "rem": int.__mod__,
}


def lane_values(e: Expr, var: Expr, lanes: Sequence[int]) -> list[int] | None:
    """The values of an i64 of `var` and constants alone, for each value of var; None for others."""
    if e is var:
        return list(lanes)
    if e.op == "const":
        return [int(e.attr)] * len(lanes)
    if e.op not in _INTEGER or e.dtype != "i64":
        return None
    x, y = (lane_values(a, var, lanes) for a in e.args)
    if x is None or y is None or (e.op in ("div", "rem") and (min(x) < 0 or min(y) <= 0)):
        return None
    return [_INTEGER[e.op](p, q) for p, q in zip(x, y, strict=True)]


def extent_of(start: Expr, stop: Expr) -> int | None:
    """stop - start when both are constants."""
    if start.op == stop.op == "const":
        return max(0, int(stop.attr) - int(start.attr))
    return None
