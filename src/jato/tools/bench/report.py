"""What a benchmark says: a table for people, JSON for programs.

`Report` is the data of both, and of plot.py.
"""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from jato import _native
from jato.base.lazy import LazyModule
from jato.base.version import __version__
from jato.tools.bench.measure import Timing
from jato.tools.bench.modes import MODES, Results, largest_difference
from jato.tools.info import processor_name

rich_table: Any = LazyModule("rich.table")

# Differences up to this are rounding: float32 keeps 7 digits, and sums may run in another order.
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Report:
    """The results of jato, and of the peer when there is one.

    program   what was timed
    devices   logical devices, and items in the batch of pmap
    results   package -> Results, jato first
    """

    program: str
    devices: int
    results: dict[str, Results]

    def difference(self, package: str, mode: str) -> float:
        """From the eager result of the same package; for the peer's jit, from jato's."""
        results = self.results[package]
        if package != "jato" and mode == "jit":
            ours = self.results["jato"].result
            return max(results.difference[mode], largest_difference(results.result, ours))
        return results.difference[mode]

    @property
    def agree(self) -> bool:
        return all(self.difference(p, m) <= TOLERANCE for p in self.results for m in MODES)


def readable_seconds(seconds: float) -> str:
    """
    >>> readable_seconds(0.00125)
    '1.25 ms'
    """
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def table_of(report: Report) -> Any:
    """The rich Table of a report: one row for each package and mode."""
    table = rich_table.Table(title=f"{report.program}: time of one item", title_justify="left")
    for heading in ("mode", "first call", "median", "spread", "speed-up", "agrees"):
        table.add_column(heading, justify="left" if heading == "mode" else "right")
    peers = [p for p in report.results if p != "jato"]
    for peer in peers:
        table.add_column(peer, justify="right")
        table.add_column(f"vs {peer}", justify="right")
    ours = report.results["jato"].timings
    eager = ours["eager"].median
    for mode in MODES:
        timing = ours[mode]
        row = [mode, *_cells(timing), f"{eager / timing.median:.2f}x"]
        row.append(_agreement(report, "jato", mode))
        for peer in peers:
            theirs = report.results[peer].timings[mode].median
            row.append(readable_seconds(theirs) + _disagreement(report, peer, mode))
            row.append(f"{theirs / timing.median:.2f}x")
        table.add_row(*row)
    table.caption_justify = "left"
    table.caption = (
        f"pmap: a batch of {report.devices}, one item for each device. All modes: "
        f"{_native.num_threads()} threads.\nspread: half the distance of the quartiles."
    )
    return table


def _cells(timing: Timing) -> list[str]:
    low, high = timing.spread
    half = (high - low) / 2 / timing.median
    return [readable_seconds(timing.first), readable_seconds(timing.median), f"±{half:.0%}"]


def _agreement(report: Report, package: str, mode: str) -> str:
    difference = report.difference(package, mode)
    if difference == 0:
        return "exactly"
    return f"{'yes' if difference <= TOLERANCE else 'NO'}, {difference:.0e}"


def _disagreement(report: Report, package: str, mode: str) -> str:
    return "" if report.difference(package, mode) <= TOLERANCE else " (DIFFERS)"


def write_json(report: Report, path: str) -> None:
    """Writes everything that was measured, in seconds."""
    packages = {}
    for package, results in report.results.items():
        packages[package] = {
            "version": __version__ if package == "jato" else metadata.version(package),
            "modes": {mode: _mode_data(report, package, mode) for mode in results.timings},
        }
    data = {
        "program": report.program,
        "devices": report.devices,
        "threads": _native.num_threads(),
        "processor": processor_name(),
        "python": platform.python_version(),
        "tolerance": TOLERANCE,
        "agree": report.agree,
        "packages": packages,
    }
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def _mode_data(report: Report, package: str, mode: str) -> dict[str, Any]:
    timing = report.results[package].timings[mode]
    return {
        "first_call": _digits(timing.first),
        "median": _digits(timing.median),
        "quartiles": [_digits(t) for t in timing.spread],
        "repeats": [_digits(t) for t in timing.repeats],
        "difference": report.difference(package, mode),
    }


def _digits(seconds: float) -> float:
    return float(f"{seconds:.4g}")
