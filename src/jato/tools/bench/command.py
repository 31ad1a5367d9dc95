"""The command `bench`: from options to table, picture and file.

Start at `run_bench`.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jato import _native
from jato.base.lazy import LazyModule
from jato.compat.importer import install
from jato.tools.bench.modes import MODES, run_modes
from jato.tools.bench.peer import run_peer, write_outcome
from jato.tools.bench.plot import plot_report
from jato.tools.bench.programs import BUILT_IN, Program, build
from jato.tools.bench.report import Report, table_of, write_json
from jato.tools.bench.target import load_target

rich_console: Any = LazyModule("rich.console")
rich_progress: Any = LazyModule("rich.progress")

HELP = "times a function eagerly, jitted and pmapped"
DESCRIPTION = """\
Times a function in the three modes: eager, jit and pmap.

TARGET is `blur`, `dense`, or FILE:FUNCTION.  The function's inputs come from --shape, or from a
function FUNCTION_inputs() in the same file, which returns the tuple of arguments.  The file may
import jax: it gets jato.

Each mode's first call, in which it is compiled, is timed apart; then it is warmed up, and the
modes take turns.  Every call waits for its result.  pmap works on a batch of as many items as
there are devices; all times are those of one item.  The results of the modes are compared; the
exit status is 1 when they differ."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="TARGET", help="blur, dense, or FILE:FUNCTION")
    parser.add_argument("--shape", help="shapes of the inputs, for example 1024x1024,5x5")
    parser.add_argument("--image", help="blur: the picture to blur (else a test image)")
    parser.add_argument("--size", type=int, default=5, help="blur: width of the kernel (5)")
    parser.add_argument("--devices", type=int, help="logical devices for pmap (one per core, 2 or more)")
    parser.add_argument("--repeats", type=int, default=15, help="how often each mode is timed (15)")
    parser.add_argument("--plot", metavar="FILE", help="save a picture (.png, .svg, .pdf)")
    parser.add_argument("--json", metavar="FILE", help="save all numbers")
    parser.add_argument("--peer", metavar="PACKAGE", help="time this package beside jato (jax)")
    # What peer.py passes to the process it starts.
    parser.add_argument("--module", default="jato", help=argparse.SUPPRESS)
    parser.add_argument("--outcome", help=argparse.SUPPRESS)


def run_bench(options: argparse.Namespace) -> int:
    """Runs the benchmark that the options describe; the exit status."""
    if options.repeats < 1:
        raise ValueError(f"bench: --repeats must be at least 1, got {options.repeats}")
    devices = options.devices or max(2, _native.num_threads())
    J = importlib.import_module(options.module)
    if options.module == "jato":
        install()
    program = program_of(options, J)
    if options.outcome:
        write_outcome(run_modes(J, program, devices, options.repeats), Path(options.outcome))
        return 0
    console = rich_console.Console()
    with progress_of(console, program.name, options.repeats) as tick:
        results = {"jato": run_modes(J, program, devices, options.repeats, tick)}
        if options.peer:
            tick(f"{options.peer}, in a process of its own")
            results[options.peer] = run_peer(options.peer, peer_arguments(options, devices))
    report = Report(program.name, devices, results)
    console.print(table_of(report))
    if options.json:
        write_json(report, options.json)
    if options.plot:
        plot_report(report, options.plot)
    if not report.agree:
        console.print("[bold red]The results differ.[/bold red]")
        return 1
    return 0


def program_of(options: argparse.Namespace, J: Any) -> Program:
    if options.target in BUILT_IN:
        return build(options.target, J, options.image, options.size)
    return load_target(options.target, options.shape)


def peer_arguments(options: argparse.Namespace, devices: int) -> list[str]:
    """The options that the peer's process needs."""
    arguments = [options.target, "--devices", str(devices), "--repeats", str(options.repeats)]
    arguments += ["--size", str(options.size)]
    for name in ("shape", "image"):
        value = getattr(options, name)
        if value is not None:
            arguments += [f"--{name}", value]
    return arguments


@contextmanager
def progress_of(console: Any, name: str, repeats: int) -> Iterator[Callable[[str], None]]:
    """A bar on terminals; the function it gives moves it one step on."""
    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
    )
    with rich_progress.Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(name, total=len(MODES) * (repeats + 1))

        def tick(what: str) -> None:
            progress.update(task, description=f"{name}, {what}", advance=1, refresh=True)

        yield tick
