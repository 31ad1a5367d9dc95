"""One function in three modes: eager, jit, pmap.

eager and jit take one item, the inputs of the program.  pmap takes a batch of them, as many as
there are devices, in one call; its times are divided by their number.  So all three say what one
item costs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jato.tools.bench.measure import Timing, measure
from jato.tools.bench.programs import Program

MODES = ("eager", "jit", "pmap")


@dataclass(frozen=True)
class Results:
    """What came out.

    timings     mode -> seconds per item
    difference  mode -> largest difference from the eager result, relative to its largest value
    result      leaves of the jitted result, as NumPy arrays
    """

    timings: dict[str, Timing]
    difference: dict[str, float]
    result: list[np.ndarray[Any, Any]]


def run_modes(
    J: Any,
    program: Program,
    devices: int,
    repeats: int,
    tick: Callable[[str], None] = lambda what: None,
) -> Results:
    """Times `program` with the package J in all modes on `devices` logical devices."""
    J.config.update("jax_num_cpu_devices", devices)
    tree_map = J.tree_util.tree_map
    function = program.function
    inputs = tree_map(J.numpy.asarray, program.inputs)
    batch = tree_map(lambda x: J.numpy.stack([x] * devices), inputs)
    jitted, mapped = J.jit(function), J.pmap(function)
    calls: dict[str, Callable[[], Any]] = {
        "eager": lambda: J.block_until_ready(function(*inputs)),
        "jit": lambda: J.block_until_ready(jitted(*inputs)),
        "pmap": lambda: J.block_until_ready(mapped(*batch)),
    }
    timings = measure(calls, repeats, tick=tick)
    timings["pmap"] = timings["pmap"].divided(devices)
    leaves = {mode: _leaves(J, call()) for mode, call in calls.items()}
    expected = leaves["eager"]
    difference = {
        "eager": 0.0,
        "jit": largest_difference(leaves["jit"], expected),
        "pmap": largest_difference(leaves["pmap"], [x[None] for x in expected]),
    }
    return Results(timings, difference, leaves["jit"])


def _leaves(J: Any, tree: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(x) for x in J.tree_util.tree_leaves(tree)]


def largest_difference(
    found: list[np.ndarray[Any, Any]], expected: list[np.ndarray[Any, Any]]
) -> float:
    """The largest |found - expected| over all leaves, relative to each leaf's largest value.

    Values that are not finite must be the same in both; where they are not the answer is infinity.
    """
    worst = 0.0
    for a, b in zip(found, expected, strict=True):
        a, b = np.broadcast_arrays(a, b)
        if a.dtype.kind not in "fciub":
            a, b = a.astype(np.float64), b.astype(np.float64)
        finite = np.isfinite(a) & np.isfinite(b)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=a.dtype.kind in "fc"):
            return float("inf")
        if finite.any():
            wide = np.complex128 if a.dtype.kind == "c" else np.float64
            x, y = a[finite].astype(wide), b[finite].astype(wide)
            worst = max(worst, float(np.abs(x - y).max() / max(np.abs(y).max(), 1e-30)))
    return worst
