"""map, associative_scan, custom_vmap, sequential_vmap; against JAX or NumPy."""

import doctest

import jax
import numpy as np
import pytest
from reference_eval import as_call, close, ours

from jato.control import custom_batching as custom_batching_module
from jato.control import map as map_module
from jato.control.custom_batching import custom_vmap, sequential_vmap
from jato.control.map import associative_scan
from jato.control.map import map as lax_map
from jato.control.checkpoint import checkpoint
from jato.control.scan import scan
from jato.transforms.grad import grad
from jato.transforms.jvp import jvp
from jato.transforms.linearize import linearize
from jato.transforms.vmap import vmap

f32 = np.float32
X = np.linspace(-1, 2, 7, dtype=f32)
M = np.arange(14, dtype=f32).reshape(7, 2) / 5 - 1


@pytest.fixture(params=[False, True], ids=["eager", "call"])
def wrap(request):
    return as_call if request.param else (lambda f: f)


@pytest.mark.parametrize("batch_size", [None, 1, 3, 7, 10])
def test_map(wrap, batch_size):
    f = lambda t: {"s": ours.sin(t["x"]), "p": ours.mul(t["x"], ours.reduce_sum(t["m"], axes=(0,)))}
    found = wrap(lambda x, m: lax_map(f, {"x": x, "m": m}, batch_size=batch_size))(X, M)
    close(found, {"s": np.sin(X), "p": X * M.sum(1)})


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(size, reverse):
    x = np.arange(1, size + 1, dtype=np.int32)
    close(
        associative_scan(ours.add, x, reverse=reverse),
        jax.lax.associative_scan(jax.lax.add, x, reverse=reverse),
    )


def test_associative_scan_of_trees(wrap):
    # composition of affine maps: not commutative
    def compose(a, b):
        return ours.mul(a[0], b[0]), ours.add(ours.mul(b[0], a[1]), b[1])

    def oracle(a, b):
        return a[0] * b[0], b[0] * a[1] + b[1]

    f = wrap(lambda a, b: associative_scan(compose, (a, b), axis=1))
    expected = jax.lax.associative_scan(oracle, (M.T, M.T + 1), axis=1)
    close(f(M.T, M.T + 1), expected)
    scalar = lambda m: ours.reduce_sum(f(m, M.T)[1], axes=(0, 1))
    close(
        grad(scalar)(M.T),
        jax.grad(lambda m: jax.lax.associative_scan(oracle, (m, M.T), axis=1)[1].sum())(M.T),
        1e-4,
    )


def test_associative_scan_messages():
    with pytest.raises(
        ValueError, match=r"sizes along the axis differ: elems\[0\] has 7, elems\[1\]"
    ):
        associative_scan(lambda a, b: a, (X, X[:3]))
    with pytest.raises(ValueError, match="axis 1 is out of bounds for elems of rank 1"):
        associative_scan(ours.add, X, axis=1)


def make_scaled():
    """2*x, but 10*x under vmap, to be told from it."""

    @custom_vmap
    def scaled(x, y):
        return ours.mul(ours.add(x, x), y)

    @scaled.def_vmap
    def rule(axis_size, in_batched, x, y):
        assert axis_size == 7
        seen.append(in_batched)
        ten = ours.mul(x, ours.full(x.shape, 10.0, x.dtype))
        y = y if in_batched[1] else ours.broadcast_in_dim(y, (7,), ())
        return ours.mul(ten, y), True

    seen = []
    return scaled, seen


def test_custom_vmap(wrap):
    scaled, seen = make_scaled()
    close(scaled(X, X), 2 * X * X)
    close(vmap(wrap(scaled))(X, X), 10 * X * X)
    close(wrap(vmap(scaled, (0, None)))(X, f32(3)), 30 * X)
    assert seen == [[True, True], [True, False]]


def test_custom_vmap_under_derivatives(wrap):
    scaled, _ = make_scaled()
    close(jvp(wrap(lambda x: scaled(x, f32(3))), (f32(2),), (f32(1),)), (f32(12), f32(6)))
    forward = lambda x: jvp(lambda v: scaled(v, f32(3)), (x,), (f32(1),))
    close(vmap(wrap(forward))(X), (30 * X, np.full(7, 30, f32)))
    close(grad(wrap(lambda x: scaled(x, x)))(f32(3)), f32(12))
    whole = lambda x: ours.reduce_sum(vmap(wrap(scaled))(x, X), axes=(0,))
    close(grad(whole)(X), 10 * X)


def test_custom_vmap_rule_in_reverse_mode(wrap):
    """The rule counts wherever the function is mapped, also after it was differentiated."""
    scaled, _ = make_scaled()
    one = lambda x: scaled(x, f32(3))
    close(vmap(wrap(grad(one)))(X), np.full(7, 30, f32))
    close(wrap(vmap(grad(scaled, (0, 1))))(X, X), (10 * X, 10 * X))
    close(vmap(lambda t: linearize(wrap(one), f32(1))[1](t))(X), 30 * X)
    loop = lambda x: scan(lambda c, _: (scaled(c, f32(1)), None), x, None, length=2)[0]
    close(vmap(wrap(grad(loop)))(X), np.full(7, 100, f32))
    close(vmap(grad(wrap(checkpoint(one))))(X), np.full(7, 30, f32))


def test_custom_vmap_second_derivatives(wrap):
    @custom_vmap
    def sine(x):
        return ours.sin(x)

    @sine.def_vmap
    def rule(axis_size, in_batched, x):
        return ours.mul(ours.sin(x), ours.full(x.shape, 10.0, x.dtype)), in_batched[0]

    close(grad(wrap(grad(sine)))(X[2]), -np.sin(X[2]))
    close(vmap(wrap(grad(grad(sine))))(X), -10 * np.sin(X))
    close(wrap(vmap(grad(lambda x: jvp(sine, (x,), (x,))[1])))(X), 10 * (np.cos(X) - X * np.sin(X)))


def test_custom_vmap_without_rule_is_not_mapped_in_reverse_mode():
    f = custom_vmap(lambda x: ours.mul(x, x))
    close(grad(f)(f32(3)), f32(6))
    with pytest.raises(AttributeError, match="has no vmap rule"):
        vmap(grad(f))(X)


def test_custom_vmap_messages():
    @custom_vmap
    def f(x):
        return x

    with pytest.raises(AttributeError, match="custom_vmap function f has no vmap rule"):
        vmap(f)(X)
    f.def_vmap(lambda size, mapped, x: x)
    with pytest.raises(TypeError, match=r"must return \(result, out_batched\)"):
        vmap(f)(X)
    f.def_vmap(lambda size, mapped, x: (x, (True, True)))
    with pytest.raises(TypeError, match="out_batched of the result's structure"):
        vmap(f)(X)
    f.def_vmap(lambda size, mapped, x: (f32(1), True))
    with pytest.raises(ValueError, match=r"first axis of size 7, got shape \(\)"):
        vmap(f)(X)


def test_sequential_vmap():
    f = sequential_vmap(lambda x, y: (ours.sin(x), ours.mul(x, y)))
    close(vmap(f, (0, None))(X, f32(3)), (np.sin(X), 3 * X))


@pytest.mark.parametrize("module", [map_module, custom_batching_module])
def test_doctests(module):
    if not hasattr(pytest.importorskip("jato.numpy"), "ones"):
        pytest.skip("jato.numpy is not there yet")
    assert doctest.testmod(module).failed == 0


def test_custom_vmap_of_a_captured_value(wrap):
    def f(y):
        g = custom_vmap(lambda x: ours.mul(x, y))
        g.def_vmap(lambda size, mapped, x: (ours.mul(x, y), mapped[0]))
        return g(np.float32(2))

    value, tangent = wrap(lambda y: jvp(f, (y,), (np.float32(1),)))(np.float32(3))
    assert (float(value), float(tangent)) == (6, 2)
    assert float(wrap(grad(f))(np.float32(3))) == 2
    with pytest.raises(TypeError, match="captured a value that is mapped"):
        vmap(f)(np.ones(3, np.float32))
