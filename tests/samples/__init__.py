"""Inputs for the contract tests: per family, not per primitive.

A module of this package has a function `samples() -> {primitive name: [Sample, ...]}`; `DECLARED`
lists the rules that a primitive lacks on purpose, each with the reason.
"""

from __future__ import annotations

from samples import (
    callbacks,
    contract,
    elementwise,
    indexing,
    linalg,
    random_bits,
    reduce,
    scans,
    structural,
    window,
)

FAMILIES = [structural, elementwise, reduce, scans, indexing, contract, window, random_bits, callbacks, linalg]

SAMPLES = {name: rows for family in FAMILIES for name, rows in family.samples().items()}

DECLARED = {
    ("trigamma", "jvp"): "its derivative, polygamma(2, x), is not a primitive",
    ("stop_gradient", "transpose"): "its linear part is zero by definition",
    ("nextafter", "transpose"): "not linear; x + one unit in the last place only looks so",
    **{
        (f"reduce_{name}", "transpose"): "linear over no axes only, and then simplified away"
        for name in ("max", "min", "prod")
    },
    **{
        (name, "transpose"): "linear for some samples only: along an axis of length 1"
        for name in ("cumprod", "cummax", "cummin", "cumlogsumexp", "sort", "top_k")
    },
    **{
        (f"reduce_window_{name}", "transpose"): "linear for windows of one element only"
        for name in ("max", "min")
    },
    **{
        (name, "transpose"): "not linear but for matrices of one element or none"
        for name in ("cholesky", "lu", "qr", "pivoted_qr", "svd", "eigh", "eig", "schur",
                     "hessenberg", "geqrf")
    },
    ("integer_pow", "transpose"): "not linear but for y = 1, which simplifies to x",
}
