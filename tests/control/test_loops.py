"""cond, switch, while_loop, fori_loop, scan: values, every derivative, vmap; against JAX."""

import doctest

import jax
import numpy as np
import pytest
from reference_eval import as_call, close, ours, theirs

import jato
from jato.base.config import disable_jit
from jato.control import cond as cond_module
from jato.control import fori_loop as fori_module
from jato.control import scan as scan_module
from jato.control import while_loop as while_module
from jato.control.cond import cond, switch
from jato.control.fori_loop import fori_loop
from jato.control.scan import scan
from jato.control.while_loop import while_loop
from jato.core.graph_dce import eliminate_dead_code
from jato.core.graph_verify import verify
from jato.jit.api import jit
from jato.transforms.abstract_eval import make_jaxpr
from jato.transforms.grad import grad, hessian, jacfwd, jacrev
from jato.transforms.jvp import jvp
from jato.transforms.linearize import linearize
from jato.transforms.transpose import linear_transpose
from jato.transforms.vmap import vmap

f32, i32 = np.float32, np.int32
X = np.array([0.3, -1.2, 2.5], f32)
M = np.arange(12, dtype=f32).reshape(4, 3) / 8 - 0.6


class Lax:
    """Both implementations under one interface."""

    def __init__(self, ops, control):
        self.ops, self.control = ops, control

    def __getattr__(self, name):
        found = self.control.get(name)
        return found if found is not None else getattr(self.ops, name)


MINE = Lax(ours, {"cond": cond, "switch": switch, "scan": scan, "while_loop": while_loop,
                  "fori_loop": fori_loop})  # fmt: skip
ORACLE = Lax(theirs, {})


def total(lax, x):
    for _ in range(len(x.shape)):
        x = lax.reduce_sum(x, axes=(0,))
    return x


@pytest.fixture(params=[False, True], ids=["eager", "call"])
def wrap(request):
    return as_call if request.param else (lambda f: f)


def check_all(wrap, make, x, tolerance=1e-4, reverse=True):
    """Value, forward, reverse, second order, vmap of a function from vectors to scalars."""
    mine, oracle = make(MINE), make(ORACLE)
    f = wrap(mine)
    batch = np.stack([x, x * f32(0.5), x + f32(0.1)])
    close(f(x), oracle(x), tolerance)
    close(jvp(f, (x,), (x,)), jax.jvp(oracle, (x,), (x,)), tolerance)
    close(jacfwd(f)(x), jax.jacfwd(oracle)(x), tolerance)
    close(vmap(f)(batch), jax.vmap(oracle)(batch), tolerance)
    close(vmap(jacfwd(f))(batch), jax.vmap(jax.jacfwd(oracle))(batch), tolerance)
    _out, push = linearize(f, x)
    close(push(x), jax.jvp(oracle, (x,), (x,))[1], tolerance)
    if not reverse:
        return
    close(grad(f)(x), jax.grad(oracle)(x), tolerance)
    close(wrap(grad(f))(x), jax.grad(oracle)(x), tolerance)
    close(hessian(f)(x), jax.hessian(oracle)(x), 10 * tolerance)
    close(vmap(grad(f))(batch), jax.vmap(jax.grad(oracle))(batch), tolerance)
    close(
        grad(lambda b: total(MINE, vmap(f)(b)))(batch),
        jax.grad(lambda b: total(ORACLE, jax.vmap(oracle)(b)))(batch),
        tolerance,
    )
    verify(make_jaxpr(grad(f))(x).graph)


# ---- cond and switch


def chosen(lax):
    def f(x):
        first = lax.reshape(lax.slice(x, (0,), (1,)), ())
        y = lax.cond(
            lax.gt(first, f32(0.2)),
            lambda v: lax.mul(lax.sin(v), v),
            lambda v: lax.exp(v),
            x,
        )
        return total(lax, lax.mul(y, x))

    return f


def captured(lax):
    def f(x):
        y = lax.mul(x, x)
        # branches differ in what they capture, in residuals and in zero derivatives
        z = lax.switch(
            2,
            [
                lambda v: (v, lax.full((), 1.0, f32)),
                lambda v: (lax.mul(lax.sin(y), v), total(lax, y)),
                lambda v: (lax.exp(lax.mul(v, y)), total(lax, lax.cos(x))),
            ],
            x,
        )
        return lax.add(total(lax, z[0]), z[1])

    return f


@pytest.mark.parametrize("make", [chosen, captured])
def test_cond(wrap, make):
    check_all(wrap, make, X)


def test_cond_runs_one_branch_and_clamps(wrap):
    branches = [lambda x: x, lambda x: ours.neg(x), lambda x: ours.exp(x)]
    f = wrap(lambda i, x: switch(i, branches, x))
    for i, expected in ((-3, X), (0, X), (1, -X), (2, np.exp(X)), (9, np.exp(X))):
        close(f(i32(i), X), expected)
    close(vmap(f)(np.array([-1, 1, 5], i32), X), np.array([X[0], -X[1], np.exp(X[2])], f32))
    close(cond(3, lambda: f32(1), lambda: f32(2)), f32(1))
    close(cond(0.0, lambda x: x, lambda x: ours.neg(x), operand=X), -X)


def test_cond_weak_results_give_way():
    close(cond(True, lambda x: 1.0, lambda x: x, f32(2)), f32(1))


def test_cond_messages():
    with pytest.raises(TypeError, match="cond: pred must be a scalar"):
        cond(X, lambda: 1, lambda: 2)
    with pytest.raises(TypeError, match=r"\['a'\]: f32\[3\] in true_fun .* f32\[\] in false_fun"):
        cond(True, lambda: {"a": X}, lambda: {"a": f32(1)})
    with pytest.raises(TypeError, match="same structure.*length 1 against one of length 2"):
        cond(True, lambda: (X,), lambda: (X, X))
    with pytest.raises(TypeError, match="operand .* expected an array or a number, got str"):
        cond(True, lambda x: 1, lambda x: 2, "text")
    with pytest.raises(TypeError, match="index must be an integer scalar"):
        switch(1.5, [lambda: 1, lambda: 2])
    with pytest.raises(ValueError, match="at least one function"):
        switch(0, [])


# ---- while_loop


def counted(lax):
    def f(x):
        def body(carry):
            i, y, z = carry
            return lax.add(i, i32(1)), lax.mul(lax.sin(y), x), lax.add(z, total(lax, y))

        start = (i32(0), x, f32(0))
        _, y, z = lax.while_loop(lambda c: lax.lt(c[0], i32(4)), body, start)
        return lax.add(total(lax, y), z)

    return f


def until_large(lax):
    """Each element of a batch stops at its own step."""

    def f(x):
        def body(carry):
            y, steps = carry
            return lax.mul(y, lax.full((3,), 1.5, f32)), lax.add(steps, i32(1))

        y, steps = lax.while_loop(
            lambda c: lax.lt(total(lax, lax.mul(c[0], c[0])), f32(100)), body, (x, i32(0))
        )
        return lax.mul(total(lax, y), lax.convert_element_type(steps, np.dtype("float32")))

    return f


@pytest.mark.parametrize("make", [counted, until_large])
def test_while_loop(wrap, make):
    check_all(wrap, make, X, 1e-4, reverse=False)


def test_while_loop_in_reverse_mode_says_what_to_use(wrap):
    with pytest.raises(ValueError, match="does not work for while_loop.*lax.scan, or fori_loop"):
        grad(wrap(counted(MINE)))(X)


def test_while_loop_without_derivative_is_no_obstacle(wrap):
    def f(x):
        n = while_loop(lambda i: ours.lt(i, i32(10)), lambda i: ours.mul(i, i32(2)), i32(1))
        n = ours.convert_element_type(n, np.dtype("float32"))
        return total(ours, ours.mul(x, ours.full(x.shape, n, f32)))

    close(grad(wrap(f))(X), np.full(3, 16, f32))


def test_while_loop_messages():
    with pytest.raises(TypeError, match=r"cond_fun .* must return a bool scalar, got \(f32\[3\]\)"):
        while_loop(lambda x: x, lambda x: x, X)
    with pytest.raises(TypeError, match=r"\[1\]: f32\[\] in init_val, f32\[3\] in the result"):
        while_loop(lambda c: True, lambda c: (c[0], X), (X, f32(0)))
    with pytest.raises(TypeError, match="same structure"):
        while_loop(lambda c: True, lambda c: (c,), X)


def test_weak_carry_takes_the_body_type(wrap):
    close(
        wrap(lambda x: while_loop(lambda c: ours.lt(c, f32(5)), lambda c: ours.add(c, x), 0.0))(
            f32(2)
        ),
        f32(6),
    )
    carry, _ = scan(lambda c, a: (ours.add(c, a), None), 0.0, X)
    close(carry, X.sum())


# ---- scan and fori_loop


def recurrent(lax):
    weights = M[:3]

    def f(x):
        scale = lax.cos(x)

        def step(carry, row):
            state, count = carry
            state = lax.sin(lax.add(lax.mul(state, scale), row[0]))
            kept = lax.mul(state, row[1])
            return (state, lax.add(count, i32(1))), {"kept": kept, "count": count}

        rows = (weights, lax.mul(weights, lax.broadcast_in_dim(x, (3, 3), (1,))))
        (state, count), out = lax.scan(step, (x, i32(0)), rows)
        summed = lax.add(total(lax, state), total(lax, out["kept"]))
        return lax.add(summed, lax.convert_element_type(count, np.dtype("float32")))

    return f


def reversed_scan(lax):
    def f(x):
        last, ys = lax.scan(lambda c, a: (lax.mul(c, a), lax.sin(c)), f32(1.3), x, reverse=True)
        return lax.mul(last, total(lax, ys))

    return f


def fori(lax):
    def f(x):
        def body(i, c):
            scaled = lax.mul(
                c, lax.full((3,), lax.convert_element_type(i, np.dtype("float32")), f32)
            )
            return lax.add(lax.sin(scaled), x)

        return total(lax, lax.fori_loop(1, 4, body, x))

    def full(shape, value, dtype):
        return lax.broadcast_in_dim(value, shape, ())

    return f


def without_derivative_of_carry(lax):
    def f(x):
        def step(carry, _):
            return lax.mul(carry, f32(2)), lax.mul(x, lax.broadcast_in_dim(carry, (3,), ()))

        _, ys = lax.scan(step, f32(1), None, length=3)
        return total(lax, lax.mul(ys, ys))

    return f


def nested(lax):
    def f(x):
        def outer(c, a):
            inner, _ = lax.scan(lambda d, b: (lax.mul(lax.cos(d), b), None), c, x)
            return lax.mul(inner, a), inner

        last, ys = lax.scan(outer, f32(0.7), x)
        return lax.add(last, total(lax, ys))

    return f


SCANS = [recurrent, reversed_scan, fori, without_derivative_of_carry, nested]


@pytest.mark.parametrize("make", SCANS, ids=lambda f: f.__name__)
def test_scan(wrap, make):
    check_all(wrap, make, X)


def test_scan_of_length_zero():
    carry, ys = scan(lambda c, a: (ours.add(c, a), ours.sin(a)), f32(3), np.zeros(0, f32))
    close(carry, f32(3))
    close(ys, np.zeros(0, f32))
    close(fori_loop(3, 1, lambda i, c: ours.neg(c), X), X)


def test_jacrev_of_scan():
    f = lambda lax: lambda x: lax.scan(lambda c, a: (lax.mul(c, a), lax.sin(c)), f32(0.4), x)
    close(jacrev(f(MINE))(X), jax.jacrev(f(ORACLE))(X))


def test_transpose_with_a_counter():
    def f(x):
        return fori_loop(0, 3, lambda i, c: ours.add(c, c), x)

    close(linear_transpose(f, X)(X), (8 * X,))


def test_residuals_are_not_copied():
    """xs and consts that the reverse pass needs are passed as they are, not stacked."""

    def f(x):
        last, _ = scan(lambda c, a: (ours.mul(c, a), None), f32(2), x)
        return last

    text = str(make_jaxpr(grad(f))(X))
    forward = text.split("scan[")[1].split("] ")[0]
    assert "const_count=0" in forward
    line = next(row for row in text.splitlines() if "= scan[" in row)
    outs = line.split("=")[0].split()
    assert len(outs) == 2  # the carry, and its values before each step


def test_dead_results_are_dropped():
    def f(x):
        (a, _), _ = scan(
            lambda c, v: ((ours.mul(c[0], v), ours.add(c[1], ours.exp(v))), ours.sin(v)),
            (f32(1), f32(0)),
            x,
        )
        return a

    graph = eliminate_dead_code(make_jaxpr(f)(X).graph)[0]
    (node,) = graph.nodes
    assert [n.primitive.name for n in node.params["graph"].nodes] == ["mul"]
    verify(graph)


@pytest.mark.parametrize("unroll", [0, 1, 2, 5, 100, True, False, np.int32(2)])
def test_unroll(unroll):
    step = lambda c, x: (c + x, c * x)
    close(scan(step, f32(0), X, unroll=unroll), theirs.scan(step, f32(0), X, unroll=unroll))
    assert int(fori_loop(0, 5, lambda i, c: c + i, i32(0), unroll=unroll)) == 10


def test_unroll_messages():
    step = lambda c, x: (c + x, None)
    add_index = lambda i, c: c + i
    with pytest.raises(ValueError, match="scan: argument 'unroll' must not be negative, got -1"):
        scan(step, f32(0), X, unroll=-1)
    for wrong in ("a", None, 2.0):
        with pytest.raises(TypeError, match="scan: argument 'unroll': expected a bool or an"):
            scan(step, f32(0), X, unroll=wrong)
    with pytest.raises(TypeError, match="fori_loop: argument 'unroll': expected a bool or an"):
        fori_loop(0, 5, add_index, 0, unroll=2.0)
    with pytest.raises(ValueError, match="'unroll' is 2, but unrolling needs bounds that are known"):
        jit(lambda n: fori_loop(0, n, add_index, 0, unroll=2))(5)
    assert int(jit(lambda n: fori_loop(0, n, add_index, 0, unroll=1))(5)) == 10
    with pytest.raises(ValueError, match="length must not be negative, got -1"):
        scan(step, f32(0), None, length=-1)


def test_scan_messages():
    step = lambda c, a: (c, a)
    with pytest.raises(ValueError, match="same leading axis, got .*'a'.*: 3, .*'b'.*: 4"):
        scan(step, 0.0, {"a": X, "b": M})
    with pytest.raises(ValueError, match="xs has no leaves, so length must be given"):
        scan(step, 0.0, None)
    with pytest.raises(ValueError, match="length is 5, but xs has 3"):
        scan(step, 0.0, X, length=5)
    with pytest.raises(ValueError, match="is a scalar, but every leaf"):
        scan(step, 0.0, f32(1))
    with pytest.raises(TypeError, match=r"must return a pair \(carry, y\)"):
        scan(lambda c, a: c, f32(0), X)
    with pytest.raises(TypeError, match=r"\['k'\]: f32\[\] in init, f32\[3\] in the carry"):
        scan(lambda c, a: ({"k": X}, a), {"k": f32(0)}, X)
    with pytest.raises(TypeError, match="lower must be an integer scalar"):
        fori_loop(0.5, 3, lambda i, c: c, X)


def test_disable_jit_runs_python():
    seen = []

    def step(c, a):
        seen.append(c)
        return ours.add(c, a), ours.mul(c, a)

    with disable_jit():
        found = scan(step, f32(1), X)
        close(
            while_loop(lambda c: bool(ours.lt(c, f32(5))), lambda c: ours.add(c, c), f32(1)), f32(8)
        )
        close(cond(True, lambda x: ours.neg(x), lambda x: x, X), -X)
    assert [np.asarray(c).shape for c in seen] == [()] * 3
    close(found, scan(step, f32(1), X))


def test_doctests():
    if not hasattr(pytest.importorskip("jato.numpy"), "ones"):
        pytest.skip("jato.numpy is not there yet")
    for module in (cond_module, while_module, fori_module, scan_module):
        assert doctest.testmod(module).failed == 0
def test_counters_are_weak(wrap):
    """Beside narrow integers the counter takes their dtype, as JAX's does."""
    for f in (
        lambda lax, c: lax.fori_loop(0, 3, lambda i, c: c * 2 + i, c),
        lambda lax, c: lax.fori_loop(0, c + 3, lambda i, c: c * 2 + i, c),
    ):
        lax = type("lax", (), {"fori_loop": staticmethod(fori_loop)})
        found, expected = wrap(lambda c: f(lax, c))(np.int8(1)), f(theirs, np.int8(1))
        assert found.dtype == np.int8 and int(found) == int(expected)




@pytest.mark.parametrize("start", [0, 0.5, np.int32(0), np.float32(0), np.int8(1)])
@pytest.mark.parametrize("step", [1, 1.5, np.float16(1), np.float32(1.5), np.int8(1)])
def test_weak_starts_of_loops(start, step):
    """A Python number gives way to the body's dtype and is strong from then on, as in JAX."""
    loops = (
        lambda m: m.lax.scan(lambda c, _: (m.numpy.add(c, step), c), start, None, length=3)[0],
        lambda m: m.lax.fori_loop(0, 3, lambda i, c: m.numpy.add(c, step), start),
        lambda m: m.lax.while_loop(lambda c: c < 4, lambda c: m.numpy.add(c, step), start),
    )
    for loop in loops:
        try:
            expected = loop(jax)
        except TypeError:
            with pytest.raises(TypeError, match="must have equal types"):
                loop(jato)
            continue
        found = loop(jato)
        assert (found.dtype, found.weak_type) == (expected.dtype, expected.weak_type)
        close(found, expected)


def test_results_of_branches_have_one_dtype():
    with pytest.raises(TypeError, match="must have equal types"):
        cond(True, lambda x: x, lambda x: 1, 1.0)


def test_gradients_by_weak_values_are_weak():
    for f in (
        lambda x: x * np.float32(2),
        lambda x: jato.numpy.sum(x * np.ones(3, np.float32)),
        lambda x: fori_loop(0, 3, lambda i, c: c * x, 1.0),
        lambda x: cond(x > 0, lambda y: y * 2, lambda y: y * np.float32(3), x),
    ):
        assert grad(f)(2.0).weak_type
        assert not grad(f)(np.float32(2)).weak_type
    assert grad(lambda x: 3.0)(2.0).weak_type and not grad(lambda x: 3.0)(np.float32(2)).weak_type


def test_bools_are_never_weak():
    for f in (lambda: True, lambda: (True, False)[0]):
        assert not jit(f)().weak_type
    assert not jit(lambda x: x)(True).weak_type
    assert not scan(lambda c, x: (True, c), False, X)[0].weak_type
