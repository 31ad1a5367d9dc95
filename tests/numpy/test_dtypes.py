"""Elementwise functions and reductions over all dtypes and special values: eager = jit = NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import pytest

import jato
import jato.numpy as jnp
import numpy as np

INTEGERS = ["int8", "int16", "int32", "uint8", "uint16", "uint32"]
FLOATS = ["float16", "bfloat16", "float32"]
COMPLEX = ["complex64"]
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 3e-6, "complex64": 3e-6}


def _dtype(name: str) -> Any:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def values(name: str, count: int = 37) -> np.ndarray[Any, Any]:
    """A spread of values with the special ones of the dtype."""
    rng = np.random.default_rng(count)
    dtype = _dtype(name)
    if name == "bool":
        return rng.random(count) > 0.5
    if name in INTEGERS:
        info = np.iinfo(dtype)
        special = [info.min, info.max, 0, 1]
        rest = rng.integers(max(info.min, -100), min(info.max, 100), count - 4)
        return np.array([*special, *rest]).astype(dtype)
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]
    real = np.array([*special, *(rng.standard_normal(count - 7) * 3)])
    if name in COMPLEX:
        return (rng.standard_normal(count) + 1j * rng.standard_normal(count)).astype(dtype)
    return real.astype(dtype)


def wide(x: Any) -> np.ndarray[Any, Any]:
    """bfloat16 as float32, which NumPy's assertions know."""
    x = np.asarray(x)
    return x.astype("f4") if x.dtype == ml_dtypes.bfloat16 else x


def check(function: Any, expected: Any, *args: Any, rtol: float = 0.0) -> None:
    eager = function(*[jnp.asarray(a) for a in args])
    jitted = jato.jit(function)(*args)
    for result in (eager, jitted):
        assert str(result.dtype) == str(np.asarray(expected).dtype), (result.dtype, expected.dtype)
        got, want = wide(result), wide(expected)
        if rtol:
            kind = np.complex64 if got.dtype.kind == "c" else np.float32
            np.testing.assert_allclose(got.astype(kind), want.astype(kind), rtol=rtol, atol=rtol)
        else:
            np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(wide(eager), wide(jitted))


EXACT_UNARY = [
    "absolute", "negative", "sign", "square", "floor", "ceil", "trunc", "isnan", "isinf", "isfinite",
    "signbit", "logical_not", "invert", "positive",
]  # fmt: skip


@pytest.mark.parametrize("name", EXACT_UNARY)
@pytest.mark.filterwarnings("ignore")
def test_exact_unary(name: str) -> None:
    for dtype in [*INTEGERS, *FLOATS]:
        if name == "invert" and dtype in FLOATS:
            continue
        x = values(dtype)
        check(getattr(jnp, name), getattr(np, name)(x), x)


FLOAT_UNARY = [
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "arcsin",
    "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "rint", "reciprocal",
    "deg2rad", "rad2deg",
]  # fmt: skip


@pytest.mark.parametrize("name", FLOAT_UNARY)
@pytest.mark.filterwarnings("ignore")
def test_float_unary(name: str) -> None:
    for dtype in FLOATS:
        x = values(dtype)
        expected = getattr(np, name)(x.astype("f4")).astype(x.dtype)
        check(getattr(jnp, name), expected, x, rtol=TOLERANCE[dtype])


COMPLEX_UNARY = [
    "exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "absolute", "conjugate", "real", "imag",
    "square", "reciprocal", "expm1", "log1p", "arctan", "arcsin", "arccos", "isfinite", "angle",
]  # fmt: skip


@pytest.mark.parametrize("name", COMPLEX_UNARY)
def test_complex_unary(name: str) -> None:
    x = values("complex64")
    check(getattr(jnp, name), getattr(np, name)(x), x, rtol=2e-5)


EXACT_BINARY = ["add", "subtract", "multiply", "maximum", "minimum"]


@pytest.mark.parametrize("name", EXACT_BINARY)
@pytest.mark.filterwarnings("ignore")
def test_exact_binary(name: str) -> None:
    for dtype in [*INTEGERS, *FLOATS]:
        x, y = values(dtype), values(dtype)[::-1].copy()
        expected = getattr(np, name)(x, y)
        check(getattr(jnp, name), expected, x, y)


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "divmod", "fmod"])
@pytest.mark.filterwarnings("ignore")
def test_division(name: str) -> None:
    for dtype in [*INTEGERS, "float32"]:
        x, y = values(dtype), values(dtype)[::-1].copy()
        if dtype in INTEGERS:
            y = np.where(y == 0, np.asarray(3, y.dtype), y)  # zero has its own test
        for ours, theirs in zip(
            jato.tree_util.tree_leaves(getattr(jnp, name)(x, y)),
            np.atleast_2d(getattr(np, name)(x, y)),
            strict=True,
        ):
            np.testing.assert_array_equal(np.asarray(ours), theirs)


def test_integer_division_by_zero_is_zero() -> None:
    for dtype in INTEGERS:
        x, zero = values(dtype), np.zeros(37, dtype)
        assert not np.asarray(jnp.floor_divide(x, zero)).any()
        assert not np.asarray(jnp.remainder(x, zero)).any()


COMPARISONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_of_mixed_integers_are_by_value(name: str) -> None:
    for left in INTEGERS:
        for right in INTEGERS:
            x, y = values(left), values(right)[::-1].copy()
            expected = getattr(np, name)(x.astype("i8"), y.astype("i8"))
            np.testing.assert_array_equal(np.asarray(getattr(jnp, name)(x, y)), expected)


def test_comparison_with_a_python_number_out_of_range() -> None:
    x = jnp.asarray(np.array([0, 255], "u1"))
    assert np.asarray(x < 300).tolist() == [True, True]
    assert np.asarray(x > -1).tolist() == [True, True]
    assert np.asarray(jato.jit(lambda v: v < 300)(x)).tolist() == [True, True]
    assert np.asarray(jato.jit(lambda v: -1 < v)(x)).tolist() == [True, True]


def test_integer_powers_wrap() -> None:
    base = np.array([-3, -1, 0, 1, 2, 7, 11], "i4")
    exponent = np.array([31, 1001, 0, 5, 31, 40, 3], "i4")
    with np.errstate(all="ignore"):
        expected = base**exponent
    check(jnp.power, expected, base, exponent)
    negative = np.array([-1], "i4")
    assert np.asarray(jnp.power(np.array([1, -1, 2, 0], "i4"), negative)).tolist() == [1, -1, 0, 0]


def test_conversions() -> None:
    for source in ["bool", *INTEGERS, *FLOATS]:
        x = values(source)
        for target in ["bool", *INTEGERS, *FLOATS]:
            eager = np.asarray(jnp.asarray(x).astype(_dtype(target)))
            jitted = np.asarray(jato.jit(lambda v, t=target: v.astype(_dtype(t)))(x))
            np.testing.assert_array_equal(wide(eager), wide(jitted))
            if source in FLOATS and target in INTEGERS:
                info = np.iinfo(target)
                clipped = np.clip(
                    np.nan_to_num(x.astype("f8"), nan=0.0, posinf=2e10, neginf=-2e10),
                    info.min,
                    info.max,
                )
                np.testing.assert_array_equal(eager, np.trunc(clipped).astype(target))
            else:
                with np.errstate(all="ignore"):
                    np.testing.assert_array_equal(wide(eager), wide(x.astype(_dtype(target))))


@pytest.mark.parametrize(
    "name", ["sum", "prod", "max", "min", "any", "all", "mean", "argmax", "argmin"]
)
def test_reductions(name: str) -> None:
    for dtype in ["bool", *INTEGERS, *FLOATS]:
        for count in (1, 2, 15, 16, 17, 100):
            x = values(dtype, 110)[7 : 7 + count]
            if name in ("max", "min") and dtype == "bool":
                continue
            exact = x.astype("f8") if dtype in FLOATS else x
            with np.errstate(all="ignore"):
                expected = getattr(np, name)(exact)
            got = np.asarray(getattr(jnp, name)(x))
            if name in ("sum", "prod") and dtype not in FLOATS:
                expected = np.asarray(expected).astype(got.dtype)
                np.testing.assert_array_equal(got, expected)
            elif dtype in FLOATS and name in ("sum", "prod", "mean"):
                tolerance = {"float16": 2e-2, "bfloat16": 5e-2, "float32": 1e-4}[dtype]
                with np.errstate(all="ignore"):
                    rounded = np.asarray(expected).astype(got.dtype).astype("f8")
                np.testing.assert_allclose(
                    got.astype("f8"), rounded, rtol=tolerance, atol=tolerance
                )
            else:
                np.testing.assert_allclose(
                    got.astype("f8"), np.asarray(expected).astype("f8"), rtol=1e-6
                )


def test_sizes_around_the_vector_width() -> None:
    for count in (0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 65):
        x = np.arange(count, dtype="f4") - 3
        np.testing.assert_array_equal(np.asarray(jnp.cumsum(x)), np.cumsum(x))
        np.testing.assert_array_equal(np.asarray(jnp.flip(x) + x), x[::-1] + x)
        np.testing.assert_array_equal(np.asarray(jnp.where(x > 0, x, -x)), np.abs(x))
        np.testing.assert_array_equal(np.asarray(jnp.pad(x, 2)), np.pad(x, 2))
        assert float(jnp.sum(x)) == x.sum()
        np.testing.assert_array_equal(np.asarray(jnp.sort(-x)), np.sort(-x))


def test_64_bits(x64: None) -> None:
    assert jnp.arange(3).dtype == jnp.int64
    assert jnp.zeros(2).dtype == jnp.float64
    assert jnp.sin(np.arange(3, dtype="i4")).dtype == jnp.float32  # as in JAX: by width
    assert jnp.sin(np.arange(3, dtype="i8")).dtype == jnp.float64
    assert jnp.sum(np.arange(3, dtype="i4")).dtype == jnp.int64
    assert jnp.argmax(np.arange(3.0)).dtype == jnp.int64
    assert (jnp.ones(2, "f4") * 2.0).dtype == jnp.float32
    x = np.linspace(-3, 3, 50)
    np.testing.assert_allclose(np.asarray(jnp.exp(x)), np.exp(x), rtol=1e-15)
    np.testing.assert_allclose(np.asarray(jnp.var(x)), np.var(x), rtol=1e-15)
    assert bool(jnp.array(2**63, "u8") > jnp.array(-1, "i4"))
    assert int(jnp.array(3, "i8") ** 39) == 3**39


def test_python_integers_out_of_range() -> None:
    for bad in (lambda: jnp.asarray(2**40), lambda: jnp.array([2**40])):
        with pytest.raises(OverflowError, match=r"1099511627776|out of bounds"):
            bad()
