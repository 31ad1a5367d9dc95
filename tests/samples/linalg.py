"""Samples of linear algebra and Fourier transforms."""

from __future__ import annotations

import numpy as np

from samples.elementwise import rng_for, values
from samples.sample import Sample

DTYPES = ("float64", "float32", "complex128", "complex64")
SIDES = [
    {"left_side": left, "lower": lower, "transpose_a": t, "conjugate_a": c, "unit_diagonal": unit}
    for left, lower, t, c, unit in (
        (True, True, False, False, False), (True, False, True, True, False),
        (False, True, True, False, True), (False, False, False, True, True),
    )
]  # fmt: skip


def regular(rng, dtype, shape):
    """Matrices far from singular, without symmetry; off the diagonal small against it."""
    x = values(rng, dtype, shape, -1, 1)
    diagonal = np.arange(1, shape[-1] + 1) * 3.0
    return (x + np.eye(*shape[-2:]) * diagonal[: shape[-1]]).astype(dtype)


def with_real_diagonal(a):
    return np.where(np.eye(a.shape[-1], dtype=bool), a.real, a).astype(a.dtype)


def systems():
    rng = rng_for("systems")
    found = {n: [] for n in ("cholesky", "lu", "triangular_solve", "tridiagonal_solve")}
    for dtype in DTYPES:
        for lead, n in (((), 3), ((2,), 4), ((), 1), ((), 0)):
            # positive definite whatever its upper triangle is: dominated by the diagonal
            a = regular(rng, dtype, (*lead, n, n))
            found["cholesky"].append(Sample((with_real_diagonal(a),), batch=False, ulps=1e3))
        for shape in ((3, 3), (2, 3, 2), (2, 4), (0, 2), (1, 1)):
            found["lu"].append(Sample((regular(rng, dtype, shape),), ulps=1e3, batch=False))
        for params in SIDES:
            for lead, rows, columns in (((), 3, 2), ((2,), 2, 3), ((), 2, 1), ((), 3, 0)):
                n = rows if params["left_side"] else columns
                a = regular(rng, dtype, (*lead, n, n))
                b = values(rng, dtype, (*lead, rows, columns))
                constant = n == 1 and params["unit_diagonal"]  # in a: linear by chance
                found["triangular_solve"].append(Sample((a, b), params, not constant, ulps=1e3))
        for lead, n in (((), 4), ((2,), 3), ((), 1)):
            dl, du = (values(rng, dtype, (*lead, n), -1, 1) for _ in range(2))
            d = values(rng, dtype, (*lead, n), 3, 5)
            b = values(rng, dtype, (*lead, n, 2))
            for perturb in (False, True):
                row = Sample((dl, d, du, b), {"perturb": perturb}, ulps=1e3, batch=False)
                found["tridiagonal_solve"].append(row)
    pivots = np.array([[2, 2, 3], [0, 1, 2]], np.int32)
    found["lu_pivots_to_permutation"] = [Sample((pivots,), {"size": 5}, batch=False)]
    return found


def spectra():
    rng = rng_for("spectra")
    found = {n: [] for n in ("qr", "svd", "eigh", "eig", "schur", "hessenberg", "geqrf", "pivoted_qr")}
    found |= {"tridiagonal": [], "ormqr": []}
    for dtype in DTYPES:
        for shape in ((3, 3), (2, 3, 2), (2, 4), (1, 1)):
            a = regular(rng, dtype, shape)
            real = dtype.startswith("float")
            for full in (False, True):
                params = {"full_matrices": full}
                found["pivoted_qr"].append(Sample((a,), params, ulps=1e3, batch=False))
                for q in (False, True):
                    row = Sample((a,), params | {"compute_q": q}, ulps=1e3, batch=False)
                    found["qr"].append(row)
                # phases of complex singular vectors are free: their derivative is tested apart
                smooth = real and not (full and shape[-2] != shape[-1])
                params = params | {"compute_uv": True}
                found["svd"].append(Sample((a,), params, smooth=smooth, ulps=1e3, batch=False))
            params = {"full_matrices": False, "compute_uv": False}
            # its derivative takes the values from the full factorization: other roundings
            found["svd"].append(Sample((a,), params, smooth=False, ulps=1e3, batch=False))
            found["geqrf"].append(Sample((a,), smooth=False, ulps=1e3, batch=False))
        for lead, n in (((), 3), ((2,), 2), ((), 1)):
            a = regular(rng, dtype, (*lead, n, n))
            params = {"compute_vectors": True}
            found["eigh"].append(Sample((a,), params, smooth=real, ulps=1e3, batch=False))
            # their derivative takes the values from the full factorization: other roundings
            params = {"compute_vectors": False}
            found["eigh"].append(Sample((a,), params, smooth=False, ulps=1e3, batch=False))
            for left, right in ((False, False), (False, True), (True, True)):
                params = {"left": left, "right": right, "vector_derivatives": False}
                smooth = not (left or right)
                found["eig"].append(Sample((a,), params, smooth=smooth, ulps=1e3, batch=False))
            for vectors in (False, True):
                params = {"vectors": vectors}
                found["schur"].append(Sample((a,), params, smooth=False, ulps=1e3, batch=False))
            found["hessenberg"].append(Sample((a,), smooth=False, ulps=1e3, batch=False))
            params = {"lower": n != 2}
            found["tridiagonal"].append(Sample((a,), params, smooth=False, ulps=1e3, batch=False))
        for left, transpose in ((True, False), (True, True), (False, False), (False, True)):
            a, c = regular(rng, dtype, (2, 4, 3)), values(rng, dtype, (2, 4, 4))
            params = {"left": left, "transpose": transpose}
            taus = values(rng, dtype, (2, 3))
            row = Sample((a, taus, c), params, smooth=False, ulps=1e3, batch=False)
            found["ormqr"].append(row)
    return found


def transforms():
    rng = rng_for("fft")
    found = []
    for dtype in DTYPES:
        real = dtype.startswith("float")
        for shape, lengths in (((2, 5), (5,)), ((3, 4), (3, 4)), ((2, 3, 6), (3, 6)), ((1,), (1,))):
            for kind in ("fft", "ifft", *(("rfft",) if real else ("irfft",))):
                size = lengths[-1] // 2 + 1 if kind == "irfft" else lengths[-1]
                x = values(rng, dtype, (*shape[:-1], size))
                params = {"kind": kind, "lengths": lengths}
                # a sum of nothing but zeros has the sign that its order gives it
                found.append(Sample((x,), params, ulps=1e3, signs=False))
    return {"fft": found}


def samples():
    return {**systems(), **spectra(), **transforms()}
