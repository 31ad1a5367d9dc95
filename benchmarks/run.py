"""`make bench`: the suite on jato, and on jax beside it where it is installed.

    python benchmarks/run.py [--only WORD ...] [--json FILE] [--rounds N] [--alone]

Each package runs in a process of its own.  For each case the processes take turns, so that a
change of the machine's speed hits both; the time is the median of the rounds.  Results are
compared.  The exit status is 1 when a case fails or results differ.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import math
import os
import pickle
import statistics
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from suite import CASES, Case  # noqa: E402

ROUND_SECONDS = 0.05


# ---- a process that runs cases of one package


def serve(package: str) -> None:
    """Answers requests (a pickled case name) on standard input with ("ok", seconds, leaves)."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a package prints must not be read as an answer
    J = importlib.import_module(package)
    for module in ("numpy", "lax", "nn", "image", "tree_util"):
        importlib.import_module(f"{package}.{module}")
    prepared: dict[str, Any] = {}
    while True:
        try:
            name = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            if name not in prepared:
                prepared = {name: prepare(J, CASES[name])}
            call, leaves = prepared[name]
            answer = ("ok", one_round(J, CASES[name], call), leaves)
        except Exception:
            answer = ("failed", traceback.format_exc(limit=-3), [])
        pickle.dump(answer, answers)
        answers.flush()


def prepare(J: Any, case: Case) -> tuple[Any, list[np.ndarray]]:
    """(a call that waits for its result, the result's leaves)."""
    function, inputs = case.build(J)
    if case.kind == "compile":

        def first_call() -> float:
            J.clear_caches()
            fresh = J.jit(lambda *args: function(*args))
            start = time.perf_counter()
            J.block_until_ready(fresh(*inputs))
            return time.perf_counter() - start

        call: Any = first_call
        result = J.jit(function)(*inputs)
    else:
        timed = J.jit(function) if case.kind == "jit" else function

        def call() -> Any:
            return J.block_until_ready(timed(*inputs))

        result = call()
    return call, [np.asarray(leaf) for leaf in J.tree_util.tree_leaves(result)]


def one_round(J: Any, case: Case, call: Any) -> float:
    """Seconds of one call, over a loop of at least ROUND_SECONDS."""
    if case.kind == "compile":
        return call()
    call()
    loops, total = 1, 0.0
    while True:
        start = time.perf_counter()
        for _ in range(loops):
            call()
        total = time.perf_counter() - start
        if total >= ROUND_SECONDS:
            return total / loops
        loops = max(2 * loops, int(loops * 1.2 * ROUND_SECONDS / max(total, 1e-9)))


# ---- the process that asks


@dataclass
class Worker:
    package: str
    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, package: str) -> Worker:
        command = [sys.executable, __file__, "--serve", package]
        # Compile times are to be those of LLVM, not of a file found on disk.
        environment = {**os.environ, "JATO_CACHE_DIR": "", "JAX_PLATFORMS": "cpu"}
        pipe = subprocess.PIPE
        return cls(package, subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment))

    def ask(self, name: str) -> tuple[str, Any, list[np.ndarray]]:
        assert self.process.stdin is not None and self.process.stdout is not None
        pickle.dump(name, self.process.stdin)
        self.process.stdin.flush()
        return pickle.load(self.process.stdout)


@dataclass
class Outcome:
    name: str
    seconds: dict[str, float] = field(default_factory=dict)
    problem: str = ""

    @property
    def ratio(self) -> float | None:
        """jax's time over jato's."""
        if "jax" not in self.seconds or "jato" not in self.seconds:
            return None
        return self.seconds["jax"] / self.seconds["jato"]


def run_case(name: str, workers: list[Worker], rounds: int) -> Outcome:
    outcome = Outcome(name)
    times: dict[str, list[float]] = {worker.package: [] for worker in workers}
    results: dict[str, list[np.ndarray]] = {}
    for _ in range(rounds):
        for worker in workers:
            status, value, leaves = worker.ask(name)
            if status != "ok":
                outcome.problem = f"{worker.package} failed:\n{value}"
                return outcome
            times[worker.package].append(value)
            results[worker.package] = leaves
    outcome.seconds = {package: statistics.median(t) for package, t in times.items()}
    if len(results) == 2 and not agree(results["jato"], results["jax"]):
        outcome.problem = "the results differ"
    return outcome


def agree(ours: list[np.ndarray], theirs: list[np.ndarray]) -> bool:
    return len(ours) == len(theirs) and all(
        a.shape == b.shape and np.allclose(a, b, rtol=1e-3, atol=1e-3 * (np.abs(b).max() + 1e-6))
        for a, b in zip(ours, theirs, strict=True)
    )


def readable(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for scale, unit in ((1e-3, "ms"), (1e-6, "us")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", default=[""], help="cases whose names contain a word")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="save all numbers")
    parser.add_argument("--alone", action="store_true", help="jato only")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return 0
    packages = ["jato"]
    if not options.alone and importlib.util.find_spec("jax") is not None:
        packages.append("jax")
    workers = [Worker.start(package) for package in packages]
    outcomes = []
    print(f"{'case':34}{'jato':>12}{'jax':>12}{'ratio':>9}")
    for name in CASES:
        if not any(word in name for word in options.only):
            continue
        outcome = run_case(name, workers, options.rounds)
        outcomes.append(outcome)
        cells = [readable(outcome.seconds.get(package)) for package in ("jato", "jax")]
        ratio = f"{outcome.ratio:.2f}" if outcome.ratio else ""
        print(f"{name:34}{cells[0]:>12}{cells[1]:>12}{ratio:>9}  {outcome.problem}", flush=True)
    ratios = [outcome.ratio for outcome in outcomes if outcome.ratio]
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"geometric mean of {len(ratios)} ratios: {mean:.2f} (above 1: jato is faster)")
    if options.json:
        data = [{"case": o.name, "seconds": o.seconds, "problem": o.problem} for o in outcomes]
        options.json.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    for worker in workers:
        assert worker.process.stdin is not None
        worker.process.stdin.close()
        worker.process.wait()
    return 1 if any(outcome.problem for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
