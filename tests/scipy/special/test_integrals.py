"""Integrals, hypergeometric functions, Bessel functions and harmonics of jato.scipy.special.

Values against SciPy, hypergeometric ones against mpmath; derivatives against central differences.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import jato
import jato.numpy as jnp
from jato.scipy import special

RNG = np.random.default_rng(0)
POSITIVE = np.concatenate(
    [
        np.exp(RNG.uniform(-20, 7, 200)),
        RNG.uniform(0, 30, 200),
        [0, 0.5, 1, 2, 4, 6, 8, 0.9999, 1.0001],
    ]
)
EDGES = np.array([np.inf, np.nan, -1.0])
REAL = np.concatenate([POSITIVE, -POSITIVE, [np.inf, -np.inf, np.nan]])
ORDERS = RNG.integers(0, 60, POSITIVE.size).astype(float)
SPREAD = np.concatenate([RNG.normal(0, 4, 400), [0, 1, 0, -1, 1, 0, np.nan, np.inf, 1]])
SLOPES = np.concatenate(
    [RNG.standard_cauchy(400), [1, np.inf, np.inf, 2, -np.inf, 0, 1, 1, np.nan]]
)
# arguments; relative tolerances in float64 and float32; the absolute one near zeros
CASES = {
    "spence": ((np.concatenate([POSITIVE, [-1, np.nan]]),), 1e-13, 1e-6, 0),
    "exp1": ((np.concatenate([POSITIVE, EDGES]),), 1e-14, 1e-6, 0),
    "expi": ((REAL,), 1e-13, 2e-6, 1),
    "expn": ((ORDERS, POSITIVE), 1e-13, 2e-6, 0),
    "dawsn": ((REAL,), 1e-13, 2e-6, 0),
    "erfcx": ((REAL,), 1e-13, 1e-5, 0),
    "sici": ((REAL,), 1e-13, 2e-6, 1),
    "fresnel": ((REAL,), 1e-12, 2e-6, 1),
    "owens_t": ((SPREAD, SLOPES), 1e-11, 1e-5, 0),
}


def _finite_in_single(x: Any) -> Any:
    most = np.finfo(np.float32).max
    return np.where(np.abs(x) > most, np.copysign(np.inf, x), x)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    args, wide, single, near_zero = CASES[name]
    reference, ours = getattr(scipy.special, name), getattr(special, name)
    several = lambda x: x if isinstance(x, tuple) else (x,)
    with jato.enable_x64(True):
        for found, expected in zip(several(ours(*args)), several(reference(*args)), strict=True):
            assert found.dtype == np.float64
            np.testing.assert_allclose(found, expected, rtol=wide, atol=1e-300 + 1e-15 * near_zero)
    args = [np.float32(x) for x in args]
    exact = several(reference(*[x.astype(float) for x in args]))
    for found, expected in zip(several(ours(*args)), exact, strict=True):
        assert found.dtype == np.float32
        # below the least normal number digits are lost
        least = 2e-38 + 2e-7 * near_zero
        np.testing.assert_allclose(found, _finite_in_single(expected), rtol=single, atol=least)


def test_complex_functions() -> None:
    radius, angle = np.exp(RNG.uniform(-8, 6, 300)), RNG.uniform(0, 2 * np.pi, 300)
    z = np.concatenate(
        [radius * np.exp(1j * angle), RNG.uniform(-8, 8, 300) + 1j * RNG.uniform(-3, 8, 300)]
    )
    for name in ("wofz", "erfcx"):
        for dtype, tolerance in ((np.complex128, 1e-12), (np.complex64, 2e-5)):
            with jato.enable_x64(dtype == np.complex128):
                found = getattr(special, name)(z.astype(dtype))
                assert found.dtype == dtype
            expected = getattr(scipy.special, name)(z.astype(dtype).astype(complex))
            kept = np.abs(expected) < 1e37
            distance = np.abs(np.asarray(found).astype(complex) - expected)
            assert (distance[kept] <= tolerance * np.abs(expected[kept])).all()
    assert special.wofz(1).dtype == np.complex64
    np.testing.assert_allclose(special.wofz(2.0), scipy.special.wofz(2.0), rtol=1e-6)


def _mpmath(name: str, *args: np.ndarray) -> np.ndarray:
    function = getattr(mpmath, name)
    return np.array(
        [float(mpmath.re(function(*map(mpmath.mpf, row)))) for row in zip(*args, strict=True)]
    )


def _close(name: str, args: list[np.ndarray], wide: float, single: float) -> None:
    ours = getattr(special, name)
    with jato.enable_x64(True):
        np.testing.assert_allclose(ours(*args), _mpmath(name, *args), rtol=wide)
    args = [np.float32(x) for x in args]
    expected = _finite_in_single(_mpmath(name, *[x.astype(float) for x in args]))
    np.testing.assert_allclose(ours(*args), expected, rtol=single, atol=1e-36)


def test_hyp1f1() -> None:
    n = 60
    a, b = RNG.uniform(0.01, 8, n), RNG.uniform(0.1, 8, n)
    _close("hyp1f1", [a, b, RNG.uniform(-60, 60, n)], 1e-12, 1e-4)
    _close("hyp1f1", [a, b, RNG.uniform(-600, 80, n)], 1e-11, 1e-4)
    _close("hyp1f1", [a - 4, b, RNG.uniform(-30, 30, n)], 1e-11, 1e-3)
    nothing = np.array([0.0, 1, -2, 1, 2, -2, 1, 1])
    b = np.array([0.0, 0, -3, -1, 2, -1, 3, 3])
    x = np.array([1.0, 1, 1, 1, 0, 2, np.inf, -np.inf])
    expected = [1, np.inf, scipy.special.hyp1f1(-2, -3, 1.0), np.inf, 1, np.inf, np.inf, 0]
    np.testing.assert_allclose(special.hyp1f1(nothing, b, x), expected, rtol=1e-6)
    assert np.isnan(special.hyp1f1(np.nan, 1.0, 1.0))


def test_hyp2f1() -> None:
    n = 60
    a, b, c = RNG.uniform(0.01, 5, n), RNG.uniform(0.1, 5, n), RNG.uniform(0.1, 5, n)
    near = 1 - 10 ** RNG.uniform(-5, -1, n)
    far = -(10 ** RNG.uniform(-3, 4, n))
    _close("hyp2f1", [a, b, c, RNG.uniform(0, 1, n)], 1e-11, 1e-3)
    _close("hyp2f1", [a, b, c, near], 1e-11, 1e-3)
    _close("hyp2f1", [a - 3, b - 3, c, far], 1e-9, 5e-3)
    # c - a - b and b - a are integers: the coefficients of the transformed series have poles
    a, b, c = (RNG.integers(1, 5, n).astype(float) for _ in range(3))
    _close("hyp2f1", [a, b, c + 1, near], 1e-9, 2e-3)
    _close("hyp2f1", [a, b, c, far], 1e-9, 2e-3)
    a = np.array([-2.0, 1, 1, 0, -2, 1, 1, 2])
    b = np.array([1.0, 0.5, 1, 1, 1, 1, 1, 3])
    c = np.array([2.0, 2, 2, -2, -3, -2, 3, 4])
    x = np.array([1.5, 1, 1, 0.5, 0.5, 0.5, 0, 1.5])
    expected = scipy.special.hyp2f1(a, b, c, x)
    expected[-1] = np.nan
    np.testing.assert_allclose(special.hyp2f1(a, b, c, x), expected, rtol=1e-5)


@pytest.mark.parametrize("v", [0, 1, 7, 40])
def test_bessel_jn(v: int) -> None:
    z = np.concatenate(
        [10 ** RNG.uniform(-12, 4, 100), RNG.uniform(-60, 60, 100), [0, 1, 25, 24.999]]
    )
    expected = np.stack([scipy.special.jv(n, z) for n in range(v + 1)])
    with jato.enable_x64(True):
        found = special.bessel_jn(z, v=v)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
    single = np.float32(z)
    expected = np.stack([scipy.special.jv(n, single.astype(float)) for n in range(v + 1)])
    np.testing.assert_allclose(special.bessel_jn(single, v=v), expected, rtol=5e-4, atol=1e-6)
    assert special.bessel_jn(jnp.ones((2, 3)), v=v, n_iter=80).shape == (v + 1, 2, 3)
    assert np.isnan(special.bessel_jn(np.nan, v=v)).all()
    np.testing.assert_array_equal(special.bessel_jn(np.inf, v=v), np.zeros(v + 1))


def test_sph_harm_y() -> None:
    n, m = RNG.integers(0, 20, 200), RNG.integers(-21, 22, 200)
    theta, phi = RNG.uniform(0, np.pi, 200), RNG.uniform(0, 7, 200)
    expected = scipy.special.sph_harm_y(n, m, theta, phi)
    with jato.enable_x64(True):
        np.testing.assert_allclose(special.sph_harm_y(n, m, theta, phi), expected, atol=1e-13)
        traced = jato.jit(lambda n: special.sph_harm_y(n, m, theta, phi, n_max=19))(n)
        np.testing.assert_allclose(traced, expected, atol=1e-13)
        real = lambda t: special.sph_harm_y(5, 2, t, 0.5).real
        difference = (real(0.7 + 1e-6) - real(0.7 - 1e-6)) / 2e-6
        np.testing.assert_allclose(jato.grad(real)(0.7), difference, rtol=1e-7)
    assert special.sph_harm_y(2, 1, np.float32(0.5), np.float32(0.5)).dtype == np.complex64
    clipped = special.sph_harm_y(jnp.array([10]), 2, 0.5, 0.5, n_max=6)
    np.testing.assert_allclose(clipped, special.sph_harm_y(jnp.array([6]), 2, 0.5, 0.5), rtol=1e-6)


def test_bernoulli() -> None:
    with jato.enable_x64(True):
        np.testing.assert_allclose(special.bernoulli(60), scipy.special.bernoulli(60), rtol=1e-11)
        exact = [float(mpmath.bernoulli(n)) for n in (100, 258)]
        np.testing.assert_allclose(special.bernoulli(258)[np.array([100, 258])], exact, rtol=1e-15)
        np.testing.assert_array_equal(special.bernoulli(262)[259:], [0, -np.inf, 0, np.inf])
    assert special.bernoulli(0).shape == (1,)
    assert np.isneginf(special.bernoulli(80)[-1])  # in float32


POINTS = {
    "spence": [0.2, 1.0, 1.0005, 3.0], "exp1": [0.3, 2.0, 30.0], "expi": [-2.0, 0.3, 5.0, 50.0],
    "dawsn": [-0.5, 3.0, 100.0], "erfcx": [-1.0, 2.0, 60.0],
}  # fmt: skip


@pytest.mark.parametrize("name", POINTS)
def test_derivatives(name: str) -> None:
    with jato.enable_x64(True), mpmath.workdps(40):
        for x in POINTS[name]:
            expected = float(mpmath.diff(_REFERENCES[name], x))
            np.testing.assert_allclose(jato.grad(getattr(special, name))(x), expected, rtol=1e-12)
            second = float(mpmath.diff(_REFERENCES[name], x, 2))
            twice = jato.grad(jato.grad(getattr(special, name)))(x)
            # second derivatives differentiate the formula of the first one
            np.testing.assert_allclose(twice, second, rtol=1e-6)


_REFERENCES = {
    "spence": lambda x: mpmath.polylog(2, 1 - x).real if x != 1 else mpmath.mpf(0),
    "exp1": mpmath.e1, "expi": mpmath.ei,
    "dawsn": lambda x: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-(x**2)) * mpmath.erfi(x),
    "erfcx": lambda x: mpmath.exp(x**2) * mpmath.erfc(x),
}  # fmt: skip


@pytest.mark.parametrize(
    ("function", "args", "smooth"),
    [
        (lambda x: special.sici(x)[0], [2.0], [0]), (lambda x: special.sici(x)[1], [9.0], [0]),
        (lambda x: special.fresnel(x)[0], [1.0], [0]), (lambda x: special.fresnel(x)[1], [2.75], [0]),
        (special.expn, [3.0, 0.7], [1]), (special.expn, [1.0, 2.5], [1]), (special.expn, [0.0, 2.5], [1]),
        (special.owens_t, [0.7, 0.4], [0, 1]), (special.owens_t, [-0.7, 3.0], [0, 1]),
        (special.hyp1f1, [1.5, 2.5, 0.7], [0, 1, 2]), (special.hyp1f1, [1.5, 2.25, -30.0], [0, 1, 2]),
        (special.hyp2f1, [1.5, 2.5, 3.25, 0.7], [0, 1, 2, 3]),
        (special.hyp2f1, [1.0, 2.0, 3.0, -2.0], [0, 1, 2, 3]),
        (lambda z: special.bessel_jn(z, v=3).sum(), [2.0], [0]),
        (lambda z: special.bessel_jn(z, v=3)[2], [40.0], [0]),
    ],
)  # fmt: skip
def test_slopes(function: Any, args: list[float], smooth: list[int]) -> None:
    with jato.enable_x64(True):
        for i in smooth:
            one = lambda x: function(*args[:i], x, *args[i + 1 :])
            h = 1e-5
            x = args[i]
            difference = (8 * (one(x + h) - one(x - h)) - (one(x + 2 * h) - one(x - 2 * h))) / (
                12 * h
            )
            np.testing.assert_allclose(jato.grad(one)(x), difference, rtol=2e-8)
            forward = jato.jvp(one, (x,), (1.0,))[1]
            np.testing.assert_allclose(forward, difference, rtol=2e-8)


@pytest.mark.parametrize("name", [*CASES, "hyp1f1", "hyp2f1"])
def test_shapes_and_transformations(name: str) -> None:
    f = getattr(special, name)
    count = {"expn": 2, "owens_t": 2, "hyp1f1": 3, "hyp2f1": 4}.get(name, 1)
    x = RNG.uniform(0.1, 0.9, (3, 2)).astype(np.float32)
    leading = [np.float32(2.0)] * (count - 1)
    first = lambda y: y[0] if isinstance(y, tuple) else y
    value = first(f(*leading, x))
    assert value.shape == (3, 2)
    np.testing.assert_allclose(first(jato.jit(f)(*leading, x)), value, rtol=1e-6)
    mapped = jato.vmap(f, (*[None] * (count - 1), 0))(*leading, x)
    np.testing.assert_allclose(first(mapped), value, rtol=1e-6)
    assert first(f(*leading, np.zeros((0, 2), np.float32))).shape == (0, 2)
    half = first(f(*[np.float16(2.0)] * (count - 1), x.astype(np.float16)))
    assert half.dtype == np.float16
    np.testing.assert_allclose(np.float32(half), value, rtol=1e-2, atol=2e-3)
    assert first(f(*[1] * count)).dtype == np.float32  # integers become floats


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: special.bernoulli(-1), ValueError, "bernoulli: argument 'n' must be an integer"),
        (lambda: special.bernoulli(1.5), ValueError, "got 1.5"),
        (lambda: special.spence(1j), TypeError, "spence: expected real arguments"),
        (
            lambda: jato.grad(special.expn)(2.0, 1.0),
            TypeError,
            "expn: not differentiable in argument 'n'",
        ),
        (
            lambda: special.bessel_jn(1.0, v=-1),
            ValueError,
            "bessel_jn: argument 'v' must be an integer",
        ),
        (lambda: special.bessel_jn(1.0, v=1, n_iter=2.5), ValueError, "argument 'n_iter'"),
        (
            lambda: special.sph_harm_y(1.0, 0, 0.0, 0.0),
            TypeError,
            "argument 'n' must be of integers",
        ),
        (lambda: special.sph_harm_y(1, 0, 0.0, 0.0, 1), NotImplementedError, "argument 'diff_n'"),
        (lambda: special.sph_harm_y(1, 0, 0.0, 0.0, n_max=-1), ValueError, "argument 'n_max'"),
        (lambda: special.hyp2f1(jnp.ones(2), jnp.ones(3), 1.0, 0.5), ValueError, "hyp2f1"),
        (
            lambda: jato.jit(lambda n: special.sph_harm_y(n, 0, 0.0, 0.0))(1),
            TypeError,
            "argument 'n' is traced",
        ),
    ],
)
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
