"""Inputs for the contract tests: per family, not per primitive.

A module of this package has a function `samples() -> {primitive name: [Sample, ...]}`; `DECLARED`
lists the rules that a primitive lacks on purpose, each with the reason.
"""

from __future__ import annotations

from samples import elementwise, reduce, structural

FAMILIES = [structural, elementwise, reduce]

SAMPLES = {name: rows for family in FAMILIES for name, rows in family.samples().items()}

DECLARED = {
    ("trigamma", "jvp"): "its derivative, polygamma(2, x), is not a primitive",
    ("stop_gradient", "transpose"): "its linear part is zero by definition",
    ("nextafter", "transpose"): "not linear; x + one unit in the last place only looks so",
    **{
        (f"reduce_{name}", "transpose"): "linear over no axes only, and then simplified away"
        for name in ("max", "min", "prod")
    },
    ("integer_pow", "transpose"): "not linear but for y = 1, which simplifies to x",
}
