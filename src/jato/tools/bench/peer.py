"""The same benchmark with another package, in a process of its own.

The process runs this command line with `--module PACKAGE`; it leaves its times in a JSON file and
its result in an .npz file.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jato.tools.bench.measure import Timing
from jato.tools.bench.modes import Results


def run_peer(module: str, arguments: Sequence[str]) -> Results:
    """Runs `bench` with these arguments on the package `module`.

    RuntimeError when the package is not installed or the process fails; its last words are in the
    message.
    """
    if importlib.util.find_spec(module) is None:
        raise RuntimeError(
            f"bench: the peer {module!r} is not installed; `pip install 'jato[peer]'` brings jax"
        )
    with tempfile.TemporaryDirectory(prefix="jato-bench-") as folder:
        outcome = Path(folder) / "outcome"
        command = [sys.executable, "-m", "jato", "bench", *arguments]
        command += ["--module", module, "--outcome", str(outcome)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=_environment(module)
        )
        if done.returncode != 0:
            tail = "\n".join(done.stderr.strip().splitlines()[-5:])
            raise RuntimeError(f"bench: the peer {module} failed:\n{tail}")
        return read_outcome(outcome)


def _environment(module: str) -> dict[str, str]:
    environment = dict(os.environ)
    if module == "jax":
        environment["JAX_PLATFORMS"] = "cpu"
    return environment


def write_outcome(results: Results, path: Path) -> None:
    """Leaves results where `read_outcome` finds them: path.json and path.npz."""
    data = {
        "timings": {m: {"first": t.first, "repeats": t.repeats} for m, t in results.timings.items()},
        "difference": results.difference,
    }
    path.with_suffix(".json").write_text(json.dumps(data), encoding="utf-8")
    leaves: dict[str, Any] = {f"leaf{i}": leaf for i, leaf in enumerate(results.result)}
    np.savez(path.with_suffix(".npz"), **leaves)


def read_outcome(path: Path) -> Results:
    """The results that `write_outcome` left at this path."""
    data = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    timings = {m: Timing(t["first"], tuple(t["repeats"])) for m, t in data["timings"].items()}
    with np.load(path.with_suffix(".npz")) as leaves:
        result = [leaves[f"leaf{i}"] for i in range(len(leaves.files))]
    return Results(timings, data["difference"], result)
