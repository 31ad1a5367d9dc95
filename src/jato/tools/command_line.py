"""The command line: `python -m jato run | bench | info`, also installed as `jato`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from jato.tools.bench import command as bench
from jato.tools.info import print_info
from jato.tools.run_script import run_script


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="jato", description=__doc__.partition(":")[0])
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="runs a script; its `import jax` gives jato")
    run.add_argument("script", metavar="SCRIPT")
    run.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER)
    timed = commands.add_parser(
        "bench",
        help=bench.HELP,
        description=bench.DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    bench.add_arguments(timed)
    commands.add_parser("info", help="prints versions, machine, devices, caches")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; the exit status.  A mistake in the options is one line on standard error."""
    options = make_parser().parse_args(arguments)
    if options.command == "info":
        print_info()
        return 0
    if options.command == "run":
        if not os.path.exists(options.script):
            print(f"jato run: there is no file {options.script!r}", file=sys.stderr)
            return 2
        run_script(options.script, options.arguments)
        return 0
    try:
        return bench.run_bench(options)
    except (ValueError, RuntimeError, OSError) as error:
        print(f"jato: {error}", file=sys.stderr)
        return 2
