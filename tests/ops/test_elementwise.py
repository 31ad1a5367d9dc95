"""Operands of the elementwise family: numbers, weak types, scalars beside arrays, errors; its
peepholes; second derivatives against JAX."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jato
from jato.compiler.graph.simplify import simplify
from jato.core.graph import Literal
from jato.core.staging import trace_to_graph
from jato.core.types import array_type, type_of
from jato.ops import convert, elementwise, structural
from jato.ops.families import _MAX_CACHED_TYPES

F, I, C, B = (array_type((3,), d) for d in ("float32", "int32", "complex64", "bool"))
WEAK = array_type((3,), "float32", True)


def traced(function, *avals):
    return trace_to_graph(lambda *xs: [function(*xs)], avals)


def result(function, *avals):
    return traced(function, *avals).outputs[0].aval


# ---- numbers


@pytest.mark.parametrize(
    "aval,number,literal",
    [
        (F, 2, 2.0), (F, True, 1.0), (F, 1.5, 1.5), (I, 2, 2), (I, True, 1), (C, 2, 2 + 0j),
        (C, 1.5, 1.5 + 0j), (array_type((3,), "float16"), 2, np.float16(2)),
        (array_type((3,), "uint8"), 7, np.uint8(7)),
    ],
)  # fmt: skip
def test_numbers_take_the_dtype_of_the_array(aval, number, literal):
    graph = traced(lambda x: elementwise.add(x, number), aval)
    operand = graph.nodes[0].inputs[1]
    assert isinstance(operand, Literal)
    assert operand.value == literal and type(operand.value) is type(literal)
    assert graph.outputs[0].aval is aval


@pytest.mark.parametrize(
    "aval,number,error,words",
    [
        (I, 1.5, TypeError, r"add: expected a number of dtype int32, got 1.5 beside int32\[3\]"),
        (F, 1j, TypeError, r"add: expected a number of dtype float32, got 1j"),
        (I, 2**31, OverflowError, "2147483648"),
        (array_type((), "uint8"), -1, OverflowError, "-1"),
        (array_type((), "int8"), 300, OverflowError, "300"),
    ],
)
def test_numbers_that_do_not_fit(aval, number, error, words):
    with pytest.raises(error, match=words):
        traced(lambda x: elementwise.add(x, number), aval)


def test_numbers_only():
    assert float(elementwise.add(1, 2.5)) == 3.5
    assert elementwise.add(1, 2).dtype == np.int32
    assert elementwise.mul(2, 1j).dtype == np.complex64
    assert float(elementwise.pow(2.0, 3)) == 8


@pytest.mark.parametrize("shapes", [((3,), (1,)), ((3, 1), (1, 4)), ((0, 1), (1, 3)), ((1, 1), (2, 3))])
def test_axes_of_extent_one_are_repeated(shapes):
    x, y = (np.arange(1.0, 1 + np.prod(s, dtype=int), dtype=np.float32).reshape(s) for s in shapes)
    for ours, theirs in ((elementwise.add, np.add), (elementwise.lt, np.less), (elementwise.atan2, np.arctan2)):
        for call in (ours, jato.jit(ours)):
            np.testing.assert_allclose(call(x, y), theirs(x, y), rtol=1e-6)
    gradient = jato.grad(lambda x: structural.reduce_sum(elementwise.mul(x, y), (0, 1)[: x.ndim]))(x)
    np.testing.assert_allclose(gradient, np.broadcast_to(_share(x, y), x.shape), rtol=1e-6)
    batched = jato.vmap(elementwise.mul)(np.stack([x, x + 1]), np.stack([y, y]))
    np.testing.assert_allclose(batched[1], (x + 1) * y, rtol=1e-6)


def _share(x, y):
    """The derivative of sum(x * y) by x, where both broadcast."""
    full = np.broadcast_to(y, np.broadcast_shapes(x.shape, y.shape))
    repeated = tuple(i for i, n in enumerate(x.shape) if n == 1)
    return full.sum(axis=repeated, keepdims=True)


@pytest.mark.parametrize("shapes", [((3,), (1, 3)), ((3, 1), (4,)), ((2, 3), (3, 2)), ((2,), (3,))])
def test_other_shapes_do_not_broadcast(shapes):
    x, y = (np.ones(s, np.float32) for s in shapes)
    with pytest.raises(TypeError, match=r"add: expected operands of one shape \(or scalars\)"):
        elementwise.add(x, y)


# ---- types


def test_a_result_is_weak_iff_all_operands_are():
    assert result(elementwise.add, WEAK, WEAK) is WEAK
    assert result(elementwise.add, WEAK, F) is F
    assert result(lambda x: elementwise.add(x, 2), WEAK) is WEAK
    assert result(elementwise.sin, WEAK) is WEAK
    assert not result(elementwise.lt, WEAK, WEAK).weak_type  # a bool is never weak
    for move in (
        lambda x: structural.reshape(x, (3, 1)),
        lambda x: structural.broadcast_in_dim(x, (2, 3), (1,)),
        lambda x: structural.reduce_sum(x, (0,)),
        lambda x: structural.concatenate([x, x], 0),
    ):
        assert result(move, WEAK).weak_type and not result(move, F).weak_type
    strong = structural.full((1,), 0, "float32")
    assert not result(lambda x: structural.concatenate([x, strong], 0), WEAK).weak_type
    assert not result(lambda x: convert.convert_element_type(x, "float32"), WEAK).weak_type


def test_scalars_beside_arrays():
    scalar = array_type((), "float32")
    assert result(elementwise.add, scalar, F).shape == (3,)
    assert result(elementwise.clamp, scalar, F, scalar).shape == (3,)
    assert result(elementwise.select_n, array_type((), "bool"), F, scalar).shape == (3,)
    x = np.arange(3, dtype=np.float32)
    y, pull = jato.vjp(elementwise.mul, np.float32(2), x)
    first, second = pull(np.ones(3, np.float32))
    assert first.shape == () and float(first) == 3
    np.testing.assert_array_equal(second, [2, 2, 2])
    np.testing.assert_array_equal(y, [0, 2, 4])


@pytest.mark.parametrize(
    "function,avals,words",
    [
        (elementwise.add, (F, I), r"add: expected operands of one dtype, got float32\[3\], int32\[3\]. Try"),
        (elementwise.add, (F, array_type((4,), "float32")), "add: expected operands of one shape"),
        (elementwise.sin, (I,), r"sin: expected x to have a dtype of kind float or complex, got int32\[3\]"),
        (elementwise.bitwise_and, (F, F), "bitwise_and: expected x to have a dtype of kind bool or integer"),
        (elementwise.atan2, (F, C), "atan2: expected y to have a dtype of kind float"),
        (elementwise.neg, (B,), "neg: expected x"),
        (elementwise.select_n, (F, F, F), "select_n: expected which of dtype bool or int32"),
        (elementwise.select_n, (B, F, I), "select_n: expected cases of one dtype"),
        (elementwise.select_n, (B, F, F, F), "select_n: expected which of dtype int32 for 3 cases"),
        (lambda x: elementwise.integer_pow(x, -1), (I,), "integer_pow: expected y >= 0 for integers"),
        (lambda x: elementwise.complex(x, x), (array_type((), "float16"),), "complex: expected x and y"),
        (lambda x: convert.bitcast_convert_type(x, "int8"), (C,), "bitcast_convert_type: expected operand"),
    ],
)  # fmt: skip
def test_wrong_operands(function, avals, words):
    with pytest.raises(TypeError, match=words):
        traced(function, *avals)


def test_wrong_parameters():
    with pytest.raises(ValueError, match="round: expected rounding_method 0 or 1, got 2"):
        elementwise.round(1.5, 2)
    with pytest.raises(ValueError, match="reduce_precision: expected exponent_bits >= 1"):
        convert.reduce_precision(1.5, 0, 2)
    with pytest.raises(ValueError, match="select_n: expected at least one case"):
        elementwise.select_n(True)


def test_the_cache_of_types_is_bounded():
    from jato.ops.elementwise_family import ADD  # noqa: PLC0415

    for n in range(_MAX_CACHED_TYPES + 10):
        aval = array_type((n,), "float32")
        assert ADD.type_rule(aval, aval) is aval
    assert len(ADD._types) <= _MAX_CACHED_TYPES


# ---- peepholes


@pytest.mark.parametrize(
    "function,avals,nodes",
    [
        (lambda x: elementwise.mul(x, 1), (F,), 0),
        (lambda x: elementwise.add(x, -0.0), (F,), 0),
        (lambda x: elementwise.add(x, 0.0), (F,), 1),  # -0.0 + 0.0 is 0.0
        (lambda x: elementwise.add(x, 0), (I,), 0),
        (lambda x: elementwise.sub(x, 0.0), (F,), 0),
        (lambda x: elementwise.sub(x, -0.0), (F,), 1),
        (lambda x: elementwise.div(x, 1), (F,), 0),
        (lambda x: elementwise.mul(x, 0), (F,), 1),  # NaN and infinity
        (lambda x: elementwise.neg(elementwise.neg(x)), (F,), 0),
        (lambda x: elementwise.bitwise_not(elementwise.bitwise_not(x)), (B,), 0),
        (lambda x: elementwise.pow(x, 1.0), (F,), 0),
        (lambda x: elementwise.select_n(True, x, elementwise.neg(x)), (F,), 1),
        (lambda x, y: elementwise.real(elementwise.complex(x, y)), (F, F), 0),
        (lambda x, y: elementwise.imag(elementwise.complex(x, y)), (F, F), 0),
        (lambda x: elementwise.mul(x, structural.full((3,), 1.0)), (F,), 0),
        (lambda x: structural.reshape(structural.reshape(x, (3, 1)), (3,)), (F,), 0),
        (lambda x: structural.rev(structural.rev(x, (0,)), (0,)), (F,), 0),
        (lambda x: structural.broadcast(structural.broadcast(x, (2,)), (4,)), (F,), 1),
    ],
)  # fmt: skip
def test_simplify(function, avals, nodes):
    graph = traced(function, *avals)
    shorter = simplify(graph)
    assert len(shorter.nodes) == nodes, shorter.nodes
    assert shorter.out_avals == graph.out_avals


def test_simplify_of_pow():
    for exponent, name in ((2.0, "square"), (3.0, "integer_pow"), (-1.0, "integer_pow")):
        graph = simplify(traced(lambda x, e=exponent: elementwise.pow(x, e), F))
        assert [n.primitive.name for n in graph.nodes] == [name]
    graph = simplify(traced(lambda x: elementwise.pow(x, 0.5), F))
    assert [n.primitive.name for n in graph.nodes] == ["pow"]  # sqrt(-inf) is NaN, pow is inf


# ---- second derivatives

UNARY = (
    "exp exp2 expm1 log log1p sin cos tan asin acos atan sinh cosh tanh asinh atanh logistic sqrt "
    "rsqrt cbrt erf erfc erf_inv lgamma square reciprocal"
).split()


def both(name, x):
    """Second derivatives of a function of that name, by forward over reverse and the other way."""

    def second(array_system, lax):
        function = getattr(lax, name)
        return (
            array_system.jvp(array_system.grad(function), (x,), (np.float32(1),))[1],
            array_system.grad(lambda v: array_system.jvp(function, (v,), (np.float32(1),))[1])(x),
        )

    return second(jato, elementwise), second(jax, jax.lax)


@pytest.mark.parametrize("name", UNARY)
def test_second_derivatives(name):
    ours, theirs = both(name, np.float32(0.4))
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)


def test_second_derivatives_of_pow_and_hypot():
    def hessian(array_system, function, *xs):
        return array_system.jacfwd(array_system.grad(function, (0, 1)), (0, 1))(*xs)

    x, y = np.float32(1.3), np.float32(2.2)
    np.testing.assert_allclose(
        hessian(jato, elementwise.pow, x, y), hessian(jax, jax.lax.pow, x, y), rtol=1e-4
    )
    np.testing.assert_allclose(
        hessian(jato, elementwise.hypot, x, y), hessian(jax, jax.numpy.hypot, x, y), rtol=1e-4
    )
    product = jato.grad(lambda v: jato.grad(lambda w: jato.lax.reduce_prod(w, (0,)))(v)[0])
    v = np.array([0.0, 2.0, 3.0], np.float32)
    np.testing.assert_allclose(product(v), [0, 3, 2])


def test_derivative_of_the_sign_of_a_complex_number():
    z, t = np.complex64(3 + 4j), np.complex64(1 + 2j)
    step = np.complex128(1e-6)
    exact = lambda v: v / abs(v)  # noqa: E731
    numeric = (exact(complex(z) + step * complex(t)) - exact(complex(z) - step * complex(t))) / (
        2 * step
    )
    _, tangent = jato.jvp(elementwise.sign, (z,), (t,))
    np.testing.assert_allclose(tangent, numeric, rtol=1e-4)
    assert type_of(tangent).dtype == np.complex64
