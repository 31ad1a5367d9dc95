"""Graphs: text, verifier, dead code elimination, evaluation."""

import jax
import numpy as np
import pytest
from reference_eval import as_call, close, ours

from jato.base.errors import InternalError
from jato.core.effects import graph_has_effect
from jato.core.graph import Graph, Node, Var, constants_to_inputs, evaluate
from jato.core.graph_dce import eliminate_dead_code
from jato.core.graph_print import format_graph
from jato.core.graph_verify import verify
from jato.core.primitive import Primitive
from jato.core.staging import trace_to_graph
from jato.core.types import array_type
from jato.transforms.abstract_eval import (
    ShapeDtypeStruct,
    eval_shape,
    make_jaxpr,
)
from jato.transforms.grad import grad
from jato.transforms.vmap import vmap

f32 = np.float32
T = array_type((3,), "float32")
X = np.array([0.3, -1.2, 2.5], f32)


def total(x):
    return ours.reduce_sum(x, axes=(0,))


def test_text_is_as_jax_prints_it():
    mine = make_jaxpr(lambda x: ours.sin(x))(X)
    assert str(mine) == str(jax.make_jaxpr(lambda x: jax.lax.sin(x))(X))
    lines = format_graph(trace_to_graph(lambda x: [ours.mul(ours.sin(x), X), x], [T])).splitlines()
    assert lines == [
        "{ lambda a:f32[3]; b:f32[3]. let",
        "    c:f32[3] = sin b",
        "    d:f32[3] = mul c a",
        "  in (d, b) }",
    ]


def test_verifier_accepts_what_the_transforms_make():
    f = as_call(lambda x: total(ours.mul(ours.sin(x), x)))
    verify(make_jaxpr(f)(X).graph)
    verify(make_jaxpr(grad(f))(X).graph)
    verify(make_jaxpr(vmap(grad(f)))(np.stack([X, X])).graph)


def test_verifier_finds_faults():
    graph = trace_to_graph(lambda x: [ours.sin(x)], [T])
    node = graph.nodes[0]
    with pytest.raises(InternalError, match="used before it is defined"):
        verify(Graph(graph.inputs, [], graph.outputs))
    with pytest.raises(InternalError, match="after fuse, node 1 .sin.*defined twice"):
        verify(Graph(graph.inputs, [node, node], graph.outputs), after="fuse")
    wrong = Node(node.primitive, node.inputs, [Var(array_type((2,), "float32"))], node.params)
    with pytest.raises(InternalError, match=r"f32\[2\].*the type rule gives \['f32\[3\]'\]"):
        verify(Graph(graph.inputs, [wrong], wrong.outputs))
    unhashable = Node(node.primitive, node.inputs, node.outputs, {"accuracy": []})
    with pytest.raises(InternalError, match="not hashable"):
        verify(Graph(graph.inputs, [unhashable], graph.outputs))


class Shout(Primitive):
    multiple_results = True
    has_effect = True

    def type_rule(self, *avals):
        return []


shout = Shout("test_shout")


def test_dead_code():
    def f(x, y):
        ours.exp(x)
        shout.bind(ours.cos(y))
        return [ours.sin(x), ours.mul(y, X)]

    graph = trace_to_graph(f, [T, T])
    assert graph_has_effect(graph)
    smaller, needed = eliminate_dead_code(graph, [True, False], keep_inputs=False)
    assert [n.primitive.name for n in smaller.nodes] == ["cos", "test_shout", "sin"]
    assert needed == [True, True] and smaller.consts == []
    pure = trace_to_graph(lambda x, y: [ours.sin(x), ours.mul(y, X)], [T, T])
    smaller, needed = eliminate_dead_code(pure, [True, False], keep_inputs=False)
    assert needed == [True, False] and len(smaller.inputs) == 1 and len(smaller.nodes) == 1


def test_dead_code_reaches_into_calls():
    f = as_call(lambda x, y: (ours.sin(x), ours.exp(y)))
    graph = trace_to_graph(lambda x, y: [f(x, y)[0]], [T, T])
    smaller, needed = eliminate_dead_code(graph, keep_inputs=False)
    assert needed == [True, False]
    assert [n.primitive.name for n in smaller.nodes[0].params["graph"].nodes] == ["sin"]
    verify(smaller)


def test_evaluate_and_consts():
    graph = trace_to_graph(lambda x: [ours.mul(x, X), x], [T])
    found = evaluate(graph, X)
    close(found, [X * X, X])
    closed, consts = constants_to_inputs(graph)
    assert not closed.consts
    close(evaluate(closed, *consts, X), [X * X, X])


def test_eval_shape():
    f = lambda p, n: {"out": total(p["x"]), "n": n}
    found = eval_shape(f, {"x": ShapeDtypeStruct((3,), "float32")}, 2)
    assert found["out"] == ShapeDtypeStruct((), "float32")
    assert found["n"] == ShapeDtypeStruct((), "int32", weak_type=True)
    with pytest.raises(TypeError, match=r"eval_shape of <lambda>: argument p\['x'\].* str"):
        eval_shape(f, {"x": "text"}, 2)


def test_make_jaxpr_options():
    jaxpr, shape = make_jaxpr(
        lambda x, n: ours.integer_pow(x, n), static_argnums=1, return_shape=True
    )(X, 3)
    assert shape == ShapeDtypeStruct((3,), "float32")
    assert jaxpr.in_avals == [T] and len(jaxpr.eqns) == 1


def test_transformed_operations_keep_their_place_in_the_users_code():
    def f(x):
        y = ours.sin(x)
        return total(ours.mul(y, x))

    first = f.__code__.co_firstlineno + 1
    for g in (f, grad(f), as_call(f), grad(as_call(f)), vmap(as_call(f))):
        x = np.stack([X, X]) if "mapped" in g.__code__.co_name else X
        graph = make_jaxpr(g)(x).graph
        inner = [n for s in graph.subgraphs() for n in s.nodes]
        lines = {n.primitive.name: n.frame.line for n in [*graph.nodes, *inner] if n.frame}
        assert lines["sin"] == first, (g, lines)
