"""Graph passes: each gives a verified graph that computes the same, with fewer or other operations."""

from __future__ import annotations

import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato.compiler.graph.contractions import canonical_contractions
from jato.compiler.graph.inline import inline
from jato.compiler.graph.literals import materialize_literals
from jato.compiler.graph.simplify import simplify
from jato.core.graph import Literal, evaluate
from jato.core.graph_verify import verify
from jato.core.staging import trace_to_graph
from jato.core.types import type_of


def graph_of(function, *args):
    def flat(*xs):
        return jato.tree.leaves(function(*xs))

    return trace_to_graph(flat, [type_of(a) for a in args], "f", "test")


def names(graph):
    return [node.primitive.name for node in graph.nodes]


def passed(function, graph, *args):
    """The pass's result, after checking that it computes what the graph does."""
    after = function(graph)
    verify(after)
    for got, want in zip(evaluate(after, *args), evaluate(graph, *args), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), 1e-5, 1e-5)
    return after


X = np.linspace(-2, 2, 12, dtype="float32").reshape(3, 4)


def test_calls_are_inlined():
    inner = jato.jit(lambda x, y: (jnp.sin(x) + y, x))
    middle = jato.jit(lambda x: inner(x, inner(x, 1.0)[1]))
    graph = graph_of(lambda x: middle(x)[0] * 2, X)
    assert names(graph)[0] == "call"
    after = passed(inline, graph, X)
    assert "call" not in names(after) and names(after).count("sin") == 2
    assert inline(after) is after


def test_composed_primitives_are_expanded():
    graph = graph_of(lambda x: jnp.logaddexp(x, 1.0) + jnp.var(x), X)
    after = passed(inline, graph, X)
    assert all(n.primitive.expand is None for n in after.nodes)


def test_equal_operations_become_one():
    after = passed(simplify, graph_of(lambda x: jnp.sin(x) + jnp.sin(x) * jnp.sin(x * 1), X), X)
    assert names(after).count("sin") == 1


def test_literals_that_differ_in_type_or_sign_are_no_equals():
    def f(x):
        return jnp.copysign(x, 0.0), jnp.copysign(x, -0.0), x * 1, x + 1.0, x + True

    after = simplify(graph_of(f, X))
    got = evaluate(after, X)
    np.testing.assert_array_equal(got[0], np.abs(X))
    np.testing.assert_array_equal(got[1], -np.abs(X))


def test_unused_operations_are_dropped():
    def f(x):
        jnp.exp(x)
        jnp.sort(x)
        return x + 1

    assert names(passed(simplify, graph_of(f, X), X)) == ["add"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 1,
        lambda x: -(-x),
        lambda x: x.T.T,
        lambda x: x.reshape(12).reshape(3, 4),
        lambda x: x[:, :],
        lambda x: x.astype("float32"),
        lambda x: jnp.broadcast_to(x, (3, 4)),
        lambda x: jnp.concatenate([x]),
    ],
)
def test_what_does_nothing_is_gone(function):
    assert names(passed(simplify, inline(graph_of(function, X)), X)) == []


@pytest.mark.parametrize("x", [np.inf, -np.inf, np.nan, -0.0, 0.0, 1e-45])
@pytest.mark.parametrize(
    "function, reference",
    [
        (lambda x: x * 0, lambda x: x * np.float32(0)),
        (lambda x: x - x, lambda x: x - x),
        (lambda x: x + 0.0, lambda x: x + np.float32(0)),
        (lambda x: x - 0.0, lambda x: x - np.float32(0)),
        (lambda x: 0.0 - x, lambda x: np.float32(0) - x),
        (lambda x: x / x, lambda x: x / x),
        (lambda x: x**2, lambda x: x * x),
        (lambda x: x**0, lambda x: x**0),
        (lambda x: jnp.maximum(x, x), lambda x: x),
        (lambda x: jnp.where(x == x, 1.0, 2.0), lambda x: np.float32(1 if x == x else 2)),
        (lambda x: -(0.0 - x), lambda x: -(np.float32(0) - x)),
        (lambda x: x / 2.0, lambda x: x / np.float32(2)),
        (lambda x: x / 3.0, lambda x: x / np.float32(3)),
    ],
)
def test_peepholes_keep_ieee(x, function, reference):
    x = np.float32(x)
    with np.errstate(all="ignore"):
        want = np.float32(reference(x))
    got = np.asarray(jato.jit(function)(x))
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, want)
    if not np.isnan(want):
        assert np.signbit(got) == np.signbit(want)


A = np.arange(6, dtype="float32").reshape(2, 3)
B = np.arange(12, dtype="float32").reshape(3, 4) / 7
SQUARE = np.linspace(-1, 1, 40 * 40, dtype="float32").reshape(40, 40)


@pytest.mark.parametrize(
    "function, args, product",
    [
        (lambda a, b: a @ b, (A, B), False),
        (lambda a, b: a @ b, (SQUARE, SQUARE[0]), False),
        (lambda a, b: a @ b, (SQUARE, SQUARE), True),
        (lambda a, b: a.T @ b, (SQUARE, SQUARE), True),
        (lambda a, b: jnp.einsum("ij,kj->ki", a, b), (SQUARE, SQUARE), True),
        (lambda a, b: jnp.einsum("bij,bjk->bik", a, b), (SQUARE[None].repeat(2, 0),) * 2, True),
        (lambda a, b: jnp.einsum("ibj,jbk->kbi", a, b), (SQUARE[:, None].repeat(3, 1),) * 2, True),
        (lambda a, b: jnp.tensordot(a, b, 2), (SQUARE, SQUARE), False),
        (lambda a, b: a @ b, (SQUARE.astype("int32"), SQUARE.astype("int32")), False),
        (lambda a, b: a @ b, (SQUARE.astype("float16"), SQUARE.astype("float16")), True),
        (lambda a, b: a @ b, (SQUARE.astype("complex64"), SQUARE.astype("complex64")), True),
        (lambda a, b: jnp.outer(a, b), (SQUARE[0], SQUARE[1]), False),
        (lambda a, b: a @ b, (np.ones((3, 0), "float32"), np.ones((0, 4), "float32")), False),
        (lambda a, b: a @ b, (np.ones((0, 30), "float32"), np.ones((30, 4), "float32")), False),
    ],
)  # fmt: skip
def test_contractions(function, args, product):
    graph = simplify(inline(graph_of(function, *args)))
    after = passed(canonical_contractions, graph, *args)
    assert ("gemm" in names(after)) == product
    assert "dot_general" not in names(after)
    got = np.asarray(jato.jit(function)(*args))
    with np.errstate(all="ignore"):
        want = np.asarray(function(*(jnp.asarray(a.astype("complex128" if a.dtype.kind == "c" else "float32")) for a in args)))
    np.testing.assert_allclose(got.astype(want.dtype), want, 2e-2 if args[0].dtype == "float16" else 1e-4, 1e-2 if args[0].dtype == "float16" else 1e-4)


def test_literals_of_steps_outside_kernels_get_memory():
    graph = simplify(inline(graph_of(lambda i: jato.lax.cumsum(jnp.zeros(4)).at[i].set(2.0), np.int32(1))))
    after = materialize_literals(graph)
    verify(after)
    for node in after.nodes:
        if not node.primitive.fusable:
            assert not any(isinstance(a, Literal) for a in node.inputs)
