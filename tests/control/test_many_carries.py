"""Scans over many scalars, forward and backward: values against NumPy and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato import lax
from jato.control.scan_transpose import with_sums_in_order
from jato.core.graph import evaluate
from jato.ops.arithmetic import ADD, add, mul, neg

STEPS = 6
RANDOM = np.random.default_rng(0)
PARTNERS = RANDOM.integers(0, 60, (60, 3))
WEIGHTS = RANDOM.uniform(-1, 1, (60, 3))


def product(np_, c):
    n = len(c)
    return [0.99 * c[i] + 0.1 * c[(i + 1) % n] * c[(i + 2) % n] for i in range(n)]


def oscillators(np_, c):
    m = len(c) // 2
    x, v = c[:m], c[m : 2 * m]
    pull = [-x[i] + 0.3 * (x[(i + 1) % m] - 2 * x[i] + x[i - 1]) for i in range(m)]
    fast = [v[i] + 0.1 * pull[i] for i in range(m)]
    return [*[x[i] + 0.1 * fast[i] for i in range(m)], *fast, *c[2 * m :]]


def predators(np_, c):
    out = []
    for i in range(len(c) // 2):
        x, y = c[2 * i], c[2 * i + 1]
        out += [x + 0.1 * (1.1 * x - 0.4 * x * y), y + 0.1 * (0.1 * x * y - 0.4 * y)]
    return [*out, *c[len(out) :]]


def sparse(np_, c):
    n = len(c)
    out = []
    for i in range(n):
        p, q, r = (c[k % n] for k in PARTNERS[i])
        u, v, w = (float(x) for x in WEIGHTS[i])
        out.append(0.9 * c[i] + u * 0.1 * p + v * 0.1 * q * r + w * 0.01)
    return out


def quotients(np_, c):
    n = len(c)
    return [(c[i] + 0.1 * c[i - 1]) / (1 + c[i] * c[(i + 1) % n]) for i in range(n)]


def mixed(np_, c):
    n = len(c)
    out = []
    for i in range(n):
        a, b = c[(i + 1) % n], c[(i + 7) % n]
        out.append(
            [
                lambda x, a=a, b=b: 0.9 * x + 0.1 * a * b,
                lambda x, a=a, b=b: 0.9 * x + 0.1 * np_.sin(a),
                lambda x, a=a, b=b: np_.sqrt(x * x + 0.1 * b * b + 0.01),
                lambda x, a=a, b=b: np_.where(a > b, x, 0.9 * x + 0.1 * b),
                lambda x, a=a, b=b: np_.maximum(x * 0.99, a * 0.5),
                lambda x, a=a, b=b: x * 0.5 + 0.1 * np_.exp(-a),
            ][i % 6](c[i])
        )
    return out


def common_field(np_, c):
    total = c[0]
    for value in c[1:]:
        total = total + value
    return [x + 0.1 * (total / len(c) - x) * x for x in c]


BODIES = (product, oscillators, predators, sparse, quotients, mixed, common_field)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("count", (12, 17, 60))
def test_values_and_gradients(body, count):
    start = tuple(np.float32(0.3 + 0.013 * ((7 * i) % 61)) for i in range(count))
    weights = RANDOM.uniform(-1, 1, count)

    def ours(cs):
        step = lambda c, _: (tuple(body(jnp, c)), c[1])  # noqa: E731
        return lax.scan(step, cs, None, length=STEPS)

    def plain(cs):
        seen = []
        for _ in range(STEPS):
            seen.append(cs[1])
            cs = body(np, cs)
        return cs, seen

    exact = [np.float64(x) for x in start]
    last, seen = jato.jit(ours)(start)
    want, want_seen = plain(exact)
    np.testing.assert_allclose(last, want, 1e-4, 1e-5)
    np.testing.assert_allclose(seen, want_seen, 1e-4, 1e-5)

    def loss(cs):
        out, ys = ours(cs)
        return sum(float(w) * x for w, x in zip(weights, out, strict=True)) + jnp.sum(ys)

    def reference(cs):
        out, ys = plain(cs)
        return sum(w * x for w, x in zip(weights, out, strict=True)) + sum(ys)

    found = jato.jit(jato.grad(loss))(start)
    for i in range(count):
        ends = [list(exact), list(exact)]
        ends[0][i] += 1e-6
        ends[1][i] -= 1e-6
        slope = (reference(ends[0]) - reference(ends[1])) / 2e-6
        np.testing.assert_allclose(found[i], slope, 2e-3, 2e-4)


@pytest.mark.parametrize("dtype", ("int32", "uint8", "bool", "bfloat16"))
def test_other_dtypes(dtype):
    count = 30
    values = [jnp.asarray(i % 2 if dtype == "bool" else i, dtype) for i in range(count)]

    def body(c, x):
        if dtype == "bool":
            return tuple((c[i] ^ c[i - 1]) | (c[i - 2] & x) for i in range(count)), c[3]
        return tuple(c[i] - c[i - 1] + c[i - 2] for i in range(count)), c[3]

    xs = jnp.asarray([True, False, True])
    last, seen = jato.jit(lambda c: lax.scan(body, c, xs))(tuple(values))
    want = tuple(values)
    rows = []
    for x in xs:
        want, y = body(want, x)
        rows.append(y)
    for got, expected in zip([*last, *seen], [*want, *rows], strict=True):
        assert got.dtype == expected.dtype == jnp.dtype(dtype)
        assert bool(got == expected)


def test_long_loops_look_at_the_cancel_flag_and_count_right():
    start = tuple(jnp.float32(i) for i in range(20))

    def body(c, _):
        return tuple(jnp.maximum(c[i], c[i - 1]) + (c[i - 2] - c[i - 2]) for i in range(20)), None

    last, _ = jato.jit(lambda c: lax.scan(body, c, None, length=5000))(start)
    assert [float(x) for x in last] == [19.0] * 20


def sums(a, b, c):
    x = add(add(mul(a, 2.0), neg(b)), c)
    y = add(c, add(neg(a), mul(b, 3.0)))
    return x, y


def added(graph):
    return {node.outputs[0] for node in graph.nodes if node.primitive is ADD}


def test_terms_of_sums_come_in_the_order_of_their_structure():
    graph = jato.make_jaxpr(sums)(*[jnp.float32(0)] * 3)
    graph = getattr(graph, "graph", graph)
    ordered = with_sums_in_order(graph, added(graph))
    assert len(ordered.nodes) == len(graph.nodes)
    producer = {v: n for n in ordered.nodes for v in n.outputs}

    def terms(atom):
        node = producer.get(atom)
        if node is None:
            return ["input"]
        if node.primitive is ADD:
            return [t for a in node.inputs for t in terms(a)]
        return [node.primitive.name]

    first, second = (terms(a) for a in ordered.outputs)
    assert first == second and first[0] == "input" and sorted(first) == ["input", "mul", "neg"]
    given = [np.float32(x) for x in (1.5, -2.0, 0.25)]
    for got, want in zip(evaluate(ordered, *given), sums(*map(jnp.asarray, given)), strict=True):
        np.testing.assert_allclose(got, want, 1e-6)


def test_a_sum_that_is_used_twice_stays():
    def f(a, b, c):
        inner = add(a, b)
        return add(inner, c), mul(inner, 2.0)

    graph = jato.make_jaxpr(f)(*[jnp.float32(0)] * 3)
    graph = getattr(graph, "graph", graph)
    ordered = with_sums_in_order(graph, added(graph))
    found = evaluate(ordered, np.float32(1), np.float32(2), np.float32(4))
    assert [float(x) for x in found] == [7.0, 6.0]


def test_sums_of_a_rule_of_the_users_keep_their_order():
    @jato.custom_vjp
    def same(x):
        return x

    def backward(_, ct):
        large = ct * np.float32(1e8)
        return ((large - ct * np.float32(0.5e8)) + (-large * np.float32(0.5)) + ct,)

    def cancelling(_, ct):
        large = ct * np.float32(1e8)
        return ((large + (-large)) + ct,)

    def loss(c):
        last, _ = lax.scan(lambda c, _: (tuple(map(same, c)), None), c, None, length=1)
        return sum(last)

    start = tuple(jnp.float32(i) for i in range(20))
    for rule in (backward, cancelling):
        same.defvjp(lambda x: (x, None), rule)
        one = jato.grad(same)(jnp.float32(1))
        found = jato.jit(jato.grad(loss))(start)
        assert [float(x) for x in found] == [float(one)] * 20 == [1.0] * 20
