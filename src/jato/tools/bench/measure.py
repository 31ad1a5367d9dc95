"""Times of calls: the first one apart, then repeats in turns.

The data is `Timing`.  Start at `measure`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Call = Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """Seconds of one call.

    first    the first call, in which tracing and compiling happen
    repeats  seconds per call, one number for each repeat
    """

    first: float
    repeats: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.repeats)

    @property
    def spread(self) -> tuple[float, float]:
        """The quartiles: half of all repeats lie between them."""
        if len(self.repeats) < 2:
            return self.repeats[0], self.repeats[0]
        low, _, high = statistics.quantiles(self.repeats, n=4, method="inclusive")
        return low, high

    def divided(self, items: int) -> Timing:
        """The times of one item where a call works on several; the first call stays whole."""
        return Timing(self.first, tuple(t / items for t in self.repeats))


def measure(
    calls: Mapping[str, Call],
    repeats: int,
    least_seconds: float = 0.02,
    tick: Callable[[str], None] = lambda what: None,
) -> dict[str, Timing]:
    """Times each call.  A call must wait for its result (`block_until_ready`).

    Each call runs once for `first` and once to warm up.  A repeat is a loop that takes at least
    `least_seconds`; the calls take turns, so that a change of the machine's speed hits all.
    tick: told what is going on, once for each step.
    """
    first: dict[str, float] = {}
    loops: dict[str, int] = {}
    for name, call in calls.items():
        tick(f"{name}: first call")
        first[name] = _seconds(call, 1)
        loops[name] = max(1, round(least_seconds / max(_seconds(call, 1), 1e-7)))
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            tick(name)
            seconds[name].append(_seconds(call, loops[name]) / loops[name])
    return {name: Timing(first[name], tuple(seconds[name])) for name in calls}


def _seconds(call: Call, loops: int) -> float:
    start = time.perf_counter()
    for _ in range(loops):
        call()
    return time.perf_counter() - start
