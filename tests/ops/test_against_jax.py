"""Elementwise functions, reductions and structural functions against jax.lax: values on special
inputs, and derivatives at the points where conventions differ (ties, zeros, limits)."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from reference_rules import hold, numpy_evaluation, value

from jato.core.types import Zero, tangent_type, type_of
from jato.ops import convert, elementwise, reduce, structural

lax = jax.lax
nan, inf = np.nan, np.inf
LINE = np.array([-inf, -2.5, -1, -0.5, -0.0, 0.0, 0.3, 0.5, 1, 1.5, 2.5, inf, nan], np.float32)
X, Y = (g.ravel() for g in np.meshgrid(LINE, LINE))
WHOLE = np.array([-(2**31), -7, -1, 0, 1, 3, 31, 32, 2**31 - 1], np.int32)
I, J = (g.ravel() for g in np.meshgrid(WHOLE, WHOLE))
Z = (LINE[1:-4] + 1j * LINE[3:-2]).astype(np.complex64)  # finite: beyond, JAX is not C99

UNARY = [
    "neg",
    "sign",
    "abs",
    "floor",
    "ceil",
    "is_finite",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "logistic",
    "sqrt",
    "rsqrt",
    "cbrt",
    "erf",
    "erfc",
    "erf_inv",
    "lgamma",
    "digamma",
    "square",
    "reciprocal",
]
BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "rem",
    "max",
    "min",
    "pow",
    "atan2",
    "nextafter",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
]
INTEGER = [
    "add",
    "sub",
    "mul",
    "div",
    "rem",
    "max",
    "min",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "shift_left",
    "shift_right_logical",
    "shift_right_arithmetic",
    "eq",
    "lt",
    "ge",
]


def run(function, *operands):
    with numpy_evaluation():
        return value(function(*map(hold, operands)))


def agree(found, expected, tolerance=3e-6):
    expected = np.asarray(expected)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=1e-6)
    if found.dtype.kind == "f":
        zero = expected == 0
        np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(expected[zero]))


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    x = np.array([-inf, -3.0, 0.0, 2.0, inf, nan, 0.5], np.float32) if name == "lgamma" else LINE
    if name == "digamma":
        x = LINE[6:]
    agree(run(getattr(elementwise, name), x), getattr(lax, name)(x), 2e-5)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    x, y = X, Y
    if name == "pow":  # NaN where JAX's own pow is not C's
        x, y = x[~np.isnan(x)], y[~np.isnan(x)]
    if name in ("max", "min"):  # of 0.0 and -0.0 either is right
        x, y = x[(x != 0) | (y != 0)], y[(x != 0) | (y != 0)]
    agree(run(getattr(elementwise, name), x, y), getattr(lax, name)(x, y), 2e-5)


@pytest.mark.parametrize("name", INTEGER)
@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_integers(name, dtype):
    x, y = I.astype(dtype), J.astype(dtype)
    agree(run(getattr(elementwise, name), x, y), getattr(lax, name)(x, y))


@pytest.mark.parametrize(
    "name",
    ["neg", "sign", "abs", "exp", "log", "sqrt", "sin", "tanh", "square", "conj", "real", "imag"],
)
def test_complex(name):
    found, expected = run(getattr(elementwise, name), Z), np.asarray(getattr(lax, name)(Z))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_round_methods():
    x = np.array(
        [-2.5, -1.5, -0.5, -0.2, 0.49999997, 0.5, 1.5, 2.5, 8388609.0, inf, nan], np.float32
    )
    agree(run(elementwise.round, x), lax.round(x))
    method = lax.RoundingMethod.TO_NEAREST_EVEN
    agree(run(lambda v: elementwise.round(v, method), x), lax.round(x, method))


def test_bits():
    agree(run(elementwise.population_count, WHOLE), lax.population_count(WHOLE))
    agree(run(elementwise.clz, WHOLE), lax.clz(WHOLE))
    agree(run(elementwise.bitwise_not, WHOLE), lax.bitwise_not(WHOLE))


@pytest.mark.parametrize(
    "target", ["int8", "uint8", "int32", "uint32", "bool", "float16", "complex64"]
)
def test_conversion(target):
    x = np.array([-inf, -300, -1.5, -0.0, 0.7, 255.9, 3e9, inf, nan, 127, 128], np.float32)
    agree(
        run(lambda v: convert.convert_element_type(v, target), x),
        lax.convert_element_type(x, target),
        1e-3,
    )
    agree(
        run(lambda v: convert.convert_element_type(v, target), WHOLE),
        lax.convert_element_type(WHOLE, target),
        1e-3,
    )


@pytest.mark.parametrize("bits", [(5, 10), (8, 7), (8, 3), (4, 3), (5, 2)])
def test_reduce_precision(bits):
    x = np.concatenate(
        [LINE, np.linspace(-4, 4, 57, dtype=np.float32), np.float32([1e-40, 7e4, 3e38])]
    )
    agree(run(lambda v: convert.reduce_precision(v, *bits), x), lax.reduce_precision(x, *bits), 0)


@pytest.mark.parametrize("target,shape", [("int32", (4,)), ("uint8", (4,)), ("int16", (2, 2))])
def test_bitcast(target, shape):
    x = np.arange(4, dtype=np.float32).reshape(shape)
    agree(
        run(lambda v: convert.bitcast_convert_type(v, target), x),
        lax.bitcast_convert_type(x, target),
    )
    narrow = np.arange(16, dtype=np.uint8).reshape(4, 4)
    agree(
        run(lambda v: convert.bitcast_convert_type(v, "float32"), narrow),
        lax.bitcast_convert_type(narrow, "float32"),
    )


def tangent(function, operands, tangents):
    """The result's tangent by the rule of the one primitive that `function` binds."""
    from jato.core.primitive import Primitive  # noqa: PLC0415

    bound = []
    bind = Primitive.bind

    def record(self, *args, **params):
        bound.append((self, args, params))
        return bind(self, *args, **params)

    with numpy_evaluation():
        Primitive.bind = record
        try:
            function(*map(hold, operands))
        finally:
            Primitive.bind = bind
        primitive, args, params = bound[0]
        out, t = primitive.jvp(
            args, [t if isinstance(t, Zero) else hold(t) for t in tangents], **params
        )
    return np.zeros(type_of(out).shape, np.float32) if isinstance(t, Zero) else value(t)


KINKS = np.array([-2, -1, -0.0, 0.0, 0.5, 1, 2, 3], np.float32)
A, B = (g.ravel() for g in np.meshgrid(KINKS, KINKS))


@pytest.mark.parametrize(
    "name",
    [
        "abs",
        "sign",
        "floor",
        "ceil",
        "sqrt",
        "log",
        "square",
        "tanh",
        "logistic",
        "rsqrt",
        "atan",
        "asinh",
        "erf",
        "erf_inv",
        "log1p",
        "expm1",
        "cbrt",
        "exp2",
        "tan",
    ],
)
def test_derivative_of_one(name):
    t = np.ones_like(KINKS)
    found = tangent(getattr(elementwise, name), [KINKS], [t])
    expected = jax.jvp(getattr(lax, name), [KINKS], [t])[1]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["max", "min", "atan2", "add", "sub", "mul", "div", "rem"])
def test_derivatives_of_two(name):
    for tangents in ([np.ones_like(A), 0 * A], [0 * A, np.ones_like(A)]):
        found = tangent(getattr(elementwise, name), [A, B], tangents)
        expected = np.asarray(jax.jvp(getattr(lax, name), [A, B], tangents)[1])
        known = np.isfinite(expected)
        np.testing.assert_allclose(found[known], expected[known], rtol=1e-5, atol=1e-6)


def test_derivative_of_pow():
    for tangents in ([np.ones_like(A), 0 * A], [0 * A, np.ones_like(A)]):
        found = tangent(elementwise.pow, [A, B], tangents)
        expected = np.asarray(jax.jvp(lax.pow, [A, B], tangents)[1])
        known = np.isfinite(expected)
        np.testing.assert_allclose(found[known], expected[known], rtol=1e-5, atol=1e-6)
    zero = np.zeros(2, np.float32)  # x ** 0 at 0: JAX has NaN, the function is constant
    np.testing.assert_array_equal(tangent(elementwise.pow, [zero, zero], [zero + 1, zero]), zero)


def test_derivative_of_clamp_and_select():
    x = np.array([-1, 0, 0.5, 1, 2], np.float32)
    one, zero = np.float32(1), np.float32(0)
    for i in range(3):
        tangents = [zero, 0 * x, zero]
        tangents[i] = tangents[i] + 1
        found = tangent(elementwise.clamp, [zero, x, one], tangents)
        spread = [np.broadcast_to(np.float32(v), x.shape) for v in (zero, x, one)]
        every = [np.broadcast_to(np.float32(t), x.shape) for t in tangents]
        np.testing.assert_allclose(found, jax.jvp(lax.clamp, spread, every)[1])
    which = x > 0.2
    nothing = Zero(tangent_type(hold(which).aval))
    found = tangent(elementwise.select_n, [which, x, x], [nothing, x, x + 5])
    np.testing.assert_allclose(found, np.where(which, x + 5, x))


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min", "reduce_prod", "reduce_sum"])
def test_derivative_of_reductions(name):
    x = np.array([[2, 2, 1], [0, 0, 3], [0, 1, 4], [5, 5, 5]], np.float32)
    t = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9], [1, 2, 4]], np.float32)
    module = structural if name == "reduce_sum" else reduce
    found = tangent(lambda v: getattr(module, name)(v, (1,)), [x], [t])
    np.testing.assert_allclose(
        found, jax.jvp(lambda v: getattr(lax, name)(v, (1,)), [x], [t])[1], rtol=1e-6
    )


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions(name):
    rows = np.array(
        [[0, 1, nan], [nan, nan, 1], [5, 5, 5], [-inf] * 3, [inf] * 3, [0.0, -0.0, 0]], np.float32
    )
    found = run(lambda v: getattr(reduce, name)(v, 1), rows)
    agree(found, getattr(lax, name)(rows, 1, np.int32))
    halves = np.array([0.0] * 50 + [nan] * 50, np.float32)
    assert int(run(lambda v: getattr(reduce, name)(v, 0), halves)) == 50


def test_reduce_recognises_monoids_and_takes_any_function():
    x = np.arange(1, 8, dtype=np.float32)
    for ours, theirs in (
        (elementwise.add, lax.add),
        (elementwise.max, lax.max),
        (elementwise.mul, lax.mul),
    ):
        found = run(lambda v, f=ours: reduce.reduce(v, 1.0, f, (0,)), x)
        agree(found, lax.reduce(x, np.float32(1), theirs, (0,)))

    def larger(left, right):  # (value, position) of the larger value
        take = elementwise.ge(left[0], right[0])
        return tuple(elementwise.select(take, a, b) for a, b in zip(left, right, strict=True))

    operands = (np.array([[3, 9, 1], [2, 7, 8]], np.float32), np.array([[0, 1, 2]] * 2, np.int32))
    with numpy_evaluation():
        best, where = reduce.reduce(tuple(map(hold, operands)), (-inf, -1), larger, (1,))
    np.testing.assert_array_equal(value(best), [9, 8])
    np.testing.assert_array_equal(value(where), [1, 2])
