"""The steps of a program, and what each reads and writes.

    Launch   a kernel                      Slice    part of an array, by iteration of a loop
    Library  a routine of the runtime      Swap     exchanges two arrays
    Host     a call back into Python       Repeat   a loop of steps
    View     the same memory, reshaped     Choose   one of several blocks of steps
    Copy     a copy

Arrays are graph variables; plan.py makes steps, memory.py places their temporaries, assembly.py turns
them into an executable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jato.compiler.loops.nest import LoopNest
from jato.core.graph import Var


@dataclass(eq=False)
class Launch:
    """A compiled loop nest."""

    nest: LoopNest
    reads: list[Var]
    writes: list[Var]


@dataclass(eq=False)
class Library:
    """A routine of native/core/library.cpp; `epilogue` runs on each block of rows right after.

    A grid step of the epilogue works on `step_rows` rows, or a row takes `row_steps` of them."""

    name: str
    reads: list[Var]
    writes: list[Var]
    params: list[int]
    cost_ns: float
    rows: int = 0
    step_rows: int = 1
    row_steps: int = 1
    epilogue: LoopNest | None = None


@dataclass(eq=False)
class Host:
    """A call back into Python: function(*input arrays) -> output arrays, as NumPy arrays."""

    function: Callable[..., Sequence[Any]]
    reads: list[Var]
    writes: list[Var]
    cost_ns: float = 20_000.0


@dataclass(eq=False)
class View:
    """`target` is the same memory as `source` under another shape."""

    source: Var
    target: Var


@dataclass(eq=False)
class Copy:
    source: Var
    target: Var


@dataclass(eq=False)
class Slice:
    """`target` is the part of `base` at offset + iteration * stride bytes (of the inner loop)."""

    target: Var
    base: Var
    offset: int
    stride: int


@dataclass(eq=False)
class Swap:
    """Exchanges the memory of two temporaries: the carry of a loop and its next value."""

    first: Var
    second: Var


@dataclass(eq=False)
class Repeat:
    """Runs `body` `count` times, or while the bool `predicate` holds (the body renews it)."""

    body: list[Step]
    count: int = -1
    predicate: Var | None = None
    iteration: Var | None = None  # a 0-d int32 array that receives the iteration number


@dataclass(eq=False)
class Choose:
    """Runs the case that the int32 `index` names, clamped."""

    index: Var
    cases: list[list[Step]]


Step = Launch | Library | Host | View | Copy | Slice | Swap | Repeat | Choose


def all_steps(steps: Sequence[Step]) -> Iterator[Step]:
    """Every step, those of loops and branches after the loop or branch itself."""
    for step in steps:
        yield step
        for block in blocks_of(step):
            yield from all_steps(block)


def blocks_of(step: Step) -> list[list[Step]]:
    if isinstance(step, Repeat):
        return [step.body]
    return step.cases if isinstance(step, Choose) else []


def is_unbounded(step: Step) -> bool:
    """Is it a loop of which nobody knows how often it repeats?"""
    if isinstance(step, Launch):
        return step.nest.unbounded
    return isinstance(step, Repeat) and step.count < 0


def reads_of(step: Step) -> list[Var]:
    if isinstance(step, (View, Copy)):
        return [step.source]
    if isinstance(step, Slice):
        return [step.base]
    if isinstance(step, Swap):
        return [step.first, step.second]
    if isinstance(step, Repeat):
        return [] if step.predicate is None else [step.predicate]
    if isinstance(step, Choose):
        return [step.index]
    if isinstance(step, Library) and step.epilogue is not None:
        inner = [v for v in step.epilogue.arguments if v not in step.epilogue.outputs]
        return [*step.reads, *inner]
    return step.reads


def writes_of(step: Step) -> list[Var]:
    if isinstance(step, (View, Copy)):
        return [step.target]
    if isinstance(step, (Slice, Swap, Choose)):
        return []
    if isinstance(step, Repeat):
        return [] if step.iteration is None else [step.iteration]
    if isinstance(step, Library) and step.epilogue is not None:
        return [*step.writes, *step.epilogue.outputs]
    return step.writes
