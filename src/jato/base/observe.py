"""Events for those who ask what happened: stages of the compiler and its decisions.

The compiler and the transforms emit; `explain`, tests and logs listen.  With no listener an event
costs one attribute read, provided that the emitter builds its text only `if observe.heard()`.

    stage(name, ir)            an intermediate form after a pass
    decision(name, reason)     why something was or was not done ("not fused", "retrace", ...)
    timing(name, seconds)      how long a step of compilation took
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    kind: str  # "stage" | "decision" | "timing"
    name: str
    payload: Any  # the IR, the reason, the seconds
    subject: Any = None  # what it is about: a graph, a kernel, a function name


Listener = Callable[[Event], None]
_listeners: tuple[Listener, ...] = ()


def heard() -> bool:
    """Is anybody listening?"""
    return bool(_listeners)


def stage(name: str, ir: Any, subject: Any = None) -> None:
    """Tells what the program looks like after the pass `name`."""
    if _listeners:
        _send(Event("stage", name, ir, subject))


def decision(name: str, reason: Any, subject: Any = None) -> None:
    """Tells what was decided and why."""
    if _listeners:
        _send(Event("decision", name, reason, subject))


def timing(name: str, seconds: float, subject: Any = None) -> None:
    """Tells how long a step took."""
    if _listeners:
        _send(Event("timing", name, seconds, subject))


def _send(event: Event) -> None:
    for listener in _listeners:
        listener(event)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Sends all events to `listener` inside the `with` block.

    >>> events = []
    >>> with listening(events.append):
    ...     decision("fuse", "same rows")
    >>> events[0].payload
    'same rows'
    """
    global _listeners
    _listeners = (*_listeners, listener)
    try:
        yield
    finally:
        _listeners = tuple(other for other in _listeners if other is not listener)
