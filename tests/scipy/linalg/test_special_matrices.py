"""The special matrices of jato.scipy.linalg against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import jato
import jato.scipy.linalg as S

RNG = np.random.default_rng(3)


def close(found: Any, expected: Any) -> None:
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 7])
def test_of_vectors(n: int) -> None:
    a = RNG.integers(1, 9, n)
    close(S.circulant(a), scipy.linalg.circulant(a))
    close(S.fiedler(a), scipy.linalg.fiedler(a))
    close(S.hankel(a), scipy.linalg.hankel(a))
    close(S.hankel(a, np.arange(4)), scipy.linalg.hankel(np.append(a[:-1], a[-1]), np.arange(4)))
    close(
        S.fiedler_companion(a),
        np.reshape(scipy.linalg.fiedler_companion(a.astype(float)), (n - 1, n - 1)),
    )
    rows = RNG.integers(1, 9, (2, n))
    for name in ("circulant", "fiedler", "hankel", "fiedler_companion", *["companion"] * (n > 1)):
        f = getattr(S, name)
        close(f(rows), np.stack([np.asarray(f(row)) for row in rows]))
        close(jato.vmap(f)(rows), f(rows))
    if n > 1:
        close(S.companion(a), scipy.linalg.companion(a.astype(float)))
        f, s = a.astype(np.float32), RNG.uniform(size=n - 1)
        close(S.leslie(f, s), scipy.linalg.leslie(f, s))
        assert S.leslie(rows, s).shape == (2, n, n)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 5), (5, 3), (4, 4), (4, 2), (2, 5)])
def test_convolution_matrix(m: int, n: int, mode: str) -> None:
    a, v = RNG.integers(-5, 5, m), RNG.integers(-5, 5, n)
    found = S.convolution_matrix(a, n, mode)
    close(found, scipy.linalg.convolution_matrix(a, n, mode))
    close(found @ v, np.convolve(a, v, mode))


@pytest.mark.parametrize("n", [1, 2, 4, 8])
def test_of_sizes(n: int) -> None:
    close(S.hadamard(n), scipy.linalg.hadamard(n))
    assert S.hadamard(n, np.float32).dtype == np.float32
    close(S.helmert(n), scipy.linalg.helmert(n))
    close(S.helmert(n, full=True), scipy.linalg.helmert(n, full=True))
    close(S.invhilbert(n), scipy.linalg.invhilbert(n))
    for kind in ("symmetric", "lower", "upper"):
        close(S.pascal(n, kind), scipy.linalg.pascal(n, kind))
        close(S.invpascal(n, kind), scipy.linalg.invpascal(n, kind))
    for scale in (None, "sqrtn", "n"):
        close(S.dft(n, scale), scipy.linalg.dft(n, scale))
    assert S.pascal(n).dtype == np.float32
    assert S.dft(n).dtype == np.complex64


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: S.companion(np.ones(1)), "companion: the last axis of argument 'a' must have 2"),
        (lambda: S.convolution_matrix(np.ones(2), 0), "convolution_matrix: argument 'n'"),
        (
            lambda: S.convolution_matrix(np.ones(2), 2, "most"),
            "convolution_matrix: argument 'mode'",
        ),
        (lambda: S.convolution_matrix(np.ones(0), 2), "last axis of argument 'a' must have 1"),
        (lambda: S.dft(2, "m"), "dft: argument 'scale'"),
        (lambda: S.dft(2, dtype=np.float32), "dft: argument 'dtype' must be complex"),
        (lambda: S.hadamard(6), "hadamard: argument 'n' must be a power of 2"),
        (lambda: S.helmert(0), "helmert: argument 'n'"),
        (lambda: S.pascal(2, "middle"), "pascal: argument 'kind'"),
        (lambda: S.invpascal(1.5), "invpascal: argument 'n'"),
        (lambda: S.leslie(np.ones(3), np.ones(3)), "leslie: argument 's' must have 2"),
        (lambda: S.fiedler_companion(np.ones(0)), "fiedler_companion: the last axis"),
    ],
)
def test_errors(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
