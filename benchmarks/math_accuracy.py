"""Measures every vector math function: largest error in ULP, time, operations.

    python benchmarks/math_accuracy.py            prints the table of docs/math_accuracy.md
    python benchmarks/math_accuracy.py --write    writes it

References and samples are those of tests/compiler/llvm/math_oracle.py, with more points: every
2053rd float for f32; for f64 random bit patterns, and mpmath where the C library has no long double.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "compiler" / "llvm")]

import math_oracle as oracle

from jato.compiler.llvm.math import expand
from jato.compiler.llvm.target import host
from jato.loopir.builder import Builder

NO_LONG_DOUBLE = {
    "erf": (-6.2, 6.2), "erfc": (-6.0, 27.3), "erfinv": (-1.0, 1.0), "lgamma": (0.0, 60.0),
    "digamma": (0.0, 60.0),
}  # fmt: skip
ANGLES = ("sin", "cos", "tan")
NOTES = {
    "lgamma": "x > 0; below -1/2 relative to the larger term of the reflection",
    "digamma": "x > 0; for x < 0 relative to the larger term of the reflection",
    "sin": "whole range; Payne-Hanek beyond 2^17 (f32), 2^45 (f64)",
    "cos": "as sin",
    "tan": "as sin",
    "pow": "exact powers are exact",
}


def arguments(opcode: str, dtype: str) -> list[tuple[tuple[np.ndarray, ...], bool]]:
    """(arguments, whether mpmath judges them)."""
    rng = np.random.default_rng(11)
    if oracle.ARITY.get(opcode, 1) == 2:
        sets = [(oracle.pairs(dtype, 400000), False)]
        return (
            [*sets, (oracle.powers(dtype, 400000), False)] if opcode == "pow" else sets
        )
    x = oracle.samples(dtype, 2053, 100000)
    if opcode in ANGLES:
        top = 127.9 if dtype == "f32" else 1023.9
        large = (2.0 ** rng.uniform(14, top, 3000)).astype(oracle.TYPES[dtype])
        near = (np.arange(1, 3000) * (np.pi / 2)).astype(oracle.TYPES[dtype])
        limit = 1e30 if dtype == "f32" else 1e6
        return [((x[~(np.abs(x) >= limit)],), False), ((large,), True), ((near,), True)]
    if opcode not in NO_LONG_DOUBLE:
        return [((x,), False)]
    if dtype == "f32":
        return [((x[x > 0] if opcode in ("lgamma", "digamma") else x[x != 0],), False)]
    low, high = NO_LONG_DOUBLE[opcode]
    small = 10.0 ** rng.uniform(-12, -1, 300)
    parts = [
        rng.uniform(low, high, 3000),
        rng.uniform(max(low, -3), min(high, 3), 3000),
        small,
    ]
    parts += [
        1 - small,
        1 - 2.0 ** rng.uniform(-52, -1, 600) if opcode == "erfinv" else 1 + small,
    ]
    return [((np.concatenate(parts),), True)]


def largest_error(opcode: str, dtype: str) -> float:
    function, worst = oracle.compiled(opcode, dtype), 0.0
    for args, judged_by_mpmath in arguments(opcode, dtype):
        judge = (
            oracle.exact(opcode)
            if judged_by_mpmath
            else oracle.reference(opcode, dtype)
        )
        with np.errstate(all="ignore"):
            want = judge(*args)
        worst = max(worst, oracle.ulp_error(function(*args), want, dtype).max())
    return worst


def node_count(opcode: str, dtype: str) -> tuple[int, int]:
    """(operations always run, operations of the rare path)."""
    b = Builder()
    args = [b.var(f"x{i}", dtype) for i in range(oracle.ARITY.get(opcode, 1))]
    root = expand(b, opcode, args, dtype, host().has_tables)

    def below(start: list, through_slow: bool) -> set:
        pending, seen = start, set()
        while pending:
            node = pending.pop()
            if node in seen or node.op in ("const", "var"):
                continue
            seen.add(node)
            rare = node.op == "if_any" and not through_slow
            pending.extend((node.args[0], node.args[2]) if rare else node.args)
        return {n for n in seen if n.op != "bitcast"}

    usual = below([root], False)
    return len(usual), len(below([root], True) - usual)


def nanoseconds(opcode: str, dtype: str) -> float:
    """Per element, one thread, data in cache; the call itself (1 us) is spread over the elements."""
    rng = np.random.default_rng(0)
    size = 16384 if dtype == "f32" else 8192
    low = 1.1 if opcode == "acosh" else 0.1
    args = [
        rng.uniform(low, low + 0.8, size).astype(oracle.TYPES[dtype]) for _ in range(2)
    ]
    run = oracle.prepared(opcode, dtype, args[: oracle.ARITY.get(opcode, 1)])
    best = np.inf
    for _ in range(300):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best / size * 1e9


def report() -> str:
    lines = [
        "# Accuracy and cost of the vector math functions",
        "",
        "Made by `python benchmarks/math_accuracy.py --write`; do not edit. Largest errors found, in",
        "units of the last place, against references of higher precision; infinities, NaN, signs of",
        "zeros and subnormals included. `ns`: per element on one thread, data in cache.",
        "`ops`: operations of the formula (+ those of a path taken only when some lane needs it).",
        "",
        f"Target: {host().arch}, {host().vector_bits}-bit vectors.",
        "",
        "| function | f32 ULP | ns | ops | f64 ULP | ns | ops | note |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for opcode in oracle.OPCODES:
        row = [f"`{opcode}`"]
        for dtype in ("f32", "f64"):
            usual, rare = node_count(opcode, dtype)
            row += [
                f"{largest_error(opcode, dtype):.2f}",
                f"{nanoseconds(opcode, dtype):.2f}",
                f"{usual} + {rare}" if rare else f"{usual}",
            ]
        lines.append("| " + " | ".join([*row, NOTES.get(opcode, "")]) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    lines += [
        "",
        "Contract: at most 2 ULP; 4 for `pow` and `erfinv`; 3 for `lgamma` and `digamma` at positive",
        "arguments.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = report()
    if "--write" in sys.argv:
        (ROOT / "docs" / "math_accuracy.md").write_text(text)
    else:
        print(text)
