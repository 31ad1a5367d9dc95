"""What the compiler did with a function: `watch(f, *args)` compiles it and keeps every stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import jato
from jato.base import observe
from jato.compiler.fusion.partition import Group
from jato.loopir.printer import kernel_text


@dataclass
class Watched:
    """results: of the call; stages: name -> intermediate forms, in order; decisions: (what,
    reason, name of the primitive)."""

    results: Any
    kernels: tuple[str, ...]
    stages: dict[str, list[Any]] = field(default_factory=dict)
    decisions: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def groups(self) -> list[Group]:
        return [s for s in self.stages["fusion"][-1] if isinstance(s, Group)]

    @property
    def patterns(self) -> list[str]:
        """Text of the kernels without their shapes: what is compiled once."""
        return [kernel_text(k) for k in self.stages["generalize"][-1]]

    @property
    def forms(self) -> list[str]:
        """The schedules' names: map, map_tiled, rows, columns, split, join, ..."""
        known = ("map_tiled", "map", "row_tiles", "rows", "columns", "split", "join")
        return [next((f for f in known if k == f or k.startswith(f + "_")), k) for k in self.kernels]

    def reasons(self, primitive: str) -> set[str]:
        return {reason for _, reason, name in self.decisions if name == primitive}


def watch(function: Any, *args: Any, **options: Any) -> Watched:
    """Compiles and runs jit(function, **options)(*args); all passes are verified on the way."""
    events: list[observe.Event] = []
    jitted = jato.jit(function, **options)
    with observe.listening(events.append):
        results = jitted(*(jato.numpy.asarray(a) if isinstance(a, np.ndarray) else a for a in args))
    watched = Watched(results, jitted.stats().kernels)
    for event in events:
        if event.kind == "stage":
            watched.stages.setdefault(event.name, []).append(event.payload)
        elif event.kind == "decision":
            node = event.subject[0]
            watched.decisions.append((event.name, event.payload.name, node.primitive.name))
    return watched
