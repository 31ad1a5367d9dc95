"""A report as a picture: one bar for each package and mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jato.base.lazy import LazyModule
from jato.tools.bench.modes import MODES
from jato.tools.bench.report import Report, readable_seconds

matplotlib_figure: Any = LazyModule("matplotlib.figure")

_COLORS = {"jato": "#1f6f8b", "peer": "#c9b79c"}


def plot_report(report: Report, path: str) -> None:
    """Draws the median time of each mode, with the quartiles, and saves it.

    path: a file name that ends in .png, .svg or .pdf.  The axis of times is logarithmic when the
    modes differ by more than a factor of 20.
    """
    figure = matplotlib_figure.Figure(figsize=(7.5, 4.2), layout="constrained")
    axes = figure.add_subplot()
    packages = list(report.results)
    width = 0.8 / len(packages)
    largest = smallest = report.results["jato"].timings["eager"].median
    for i, package in enumerate(packages):
        timings = [report.results[package].timings[mode] for mode in MODES]
        medians = [t.median * 1e3 for t in timings]
        low = [1e3 * (t.median - t.spread[0]) for t in timings]
        high = [1e3 * (t.spread[1] - t.median) for t in timings]
        places = [m + (i - (len(packages) - 1) / 2) * width for m in range(len(MODES))]
        color = _COLORS["jato" if package == "jato" else "peer"]
        bars = axes.bar(
            places, medians, width * 0.92, yerr=(low, high), capsize=4, color=color, label=package
        )
        axes.bar_label(bars, [readable_seconds(t.median) for t in timings], padding=3)
        largest = max(largest, *(t.spread[1] for t in timings))
        smallest = min(smallest, *(t.median for t in timings))
    if largest > 20 * smallest:
        axes.set_yscale("log")
        axes.set_ylim(smallest * 1e3 / 3, largest * 1e3 * 3)
    else:
        axes.set_ylim(0, largest * 1e3 * 1.18)
    axes.set_xticks(range(len(MODES)), _labels(report))
    axes.set_ylabel("milliseconds for one item")
    axes.set_title(f"{report.program} in three modes", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    if len(packages) > 1:
        axes.legend(frameon=False)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def _labels(report: Report) -> list[str]:
    timings = report.results["jato"].timings
    eager = timings["eager"].median
    return [
        f"{mode}\n{eager / timings[mode].median:.2f} x eager's speed"
        if mode != "eager"
        else f"{mode}\n "
        for mode in MODES
    ]
