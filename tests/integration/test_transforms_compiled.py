"""Transforms of functions of jato.numpy, compiled and eager, against JAX on the same functions."""

import gc

import jax
import jax.numpy as oracle_np
import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato.control.cond import cond as jato_cond
from jato.control.fori_loop import fori_loop as jato_fori_loop
from jato.control.scan import scan as jato_scan
from jato.control.while_loop import while_loop
from jato.core.graph import Graph
from jato.transforms.grad import grad, hessian, jacfwd, jacrev, value_and_grad
from jato.transforms.jvp import jvp
from jato.transforms.vmap import vmap

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5,)).astype(np.float32)
W = RNG.normal(size=(5, 4)).astype(np.float32)


def softmax_cross_entropy(np_, x):
    z = np_.dot(x, np_.asarray(W))
    z = z - np_.max(z)
    return -(z - np_.log(np_.sum(np_.exp(z))))[2]


def layer_norm(np_, x):
    centred = x - np_.mean(x)
    y = centred / np_.sqrt(np_.mean(centred**2) + 1e-5)
    return np_.sum(y * np_.tanh(y) * np_.arange(5.0))


def mlp(np_, x):
    h = np_.tanh(x @ np_.asarray(W) + 0.5)
    h = np_.where(h > 0, h, 0.1 * h)
    return np_.mean(h**3) + np_.sum(np_.maximum(x, 0.2))


def indexing(np_, x):
    y = np_.concatenate([x[1:4], x[::2]])
    return np_.sum(y[::-1] * np_.sin(y)) + x[-1] ** 2


def scanned(np_, x):
    scan = jax.lax.scan if np_ is oracle_np else jato_scan
    weights = np_.asarray(W)

    def step(carry, row):
        state, count = carry
        state = np_.tanh(state * row + weights[:, 0])
        return (state, count + 1), np_.sum(state)

    (state, count), sums = scan(step, (x, 0), weights.T)
    return np_.sum(state * x) + np_.sum(sums**2) * count


def branched(np_, x):
    cond = jax.lax.cond if np_ is oracle_np else jato_cond
    y = cond(np_.sum(x) > 0, lambda v: np_.sin(v) * v, lambda v: np_.exp(-v), x)
    return np_.sum(y * x)


def counted(np_, x):
    fori_loop = jax.lax.fori_loop if np_ is oracle_np else jato_fori_loop
    return np_.sum(fori_loop(0, 4, lambda i, c: np_.sin(c) * x + i, x))


FUNCTIONS = [scanned, branched, counted, softmax_cross_entropy, layer_norm, mlp, indexing]


def close(found, expected, tolerance=2e-4):
    for x, y in zip(
        jax.tree_util.tree_leaves(found), jax.tree_util.tree_leaves(expected), strict=True
    ):
        x, y = np.asarray(x), np.asarray(y)
        assert x.shape == y.shape and x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


@pytest.fixture(params=FUNCTIONS, ids=lambda f: f.__name__)
def pair(request):
    return (lambda x: request.param(jnp, x)), (lambda x: request.param(oracle_np, x))


@pytest.mark.parametrize("mode", ["eager", "jit outside", "jit inside", "jit both"])
def test_derivatives(pair, mode):
    f, oracle = pair
    outer = jato.jit if mode in ("jit outside", "jit both") else (lambda g: g)
    f = jato.jit(f) if mode in ("jit inside", "jit both") else f
    batch = np.stack([X, -X, 0.5 * X])
    close(outer(f)(X), oracle(X))
    close(outer(value_and_grad(f))(X), jax.value_and_grad(oracle)(X))
    close(outer(lambda x: jvp(f, (x,), (x,)))(X), jax.jvp(oracle, (X,), (X,)))
    close(outer(vmap(grad(f)))(batch), jax.vmap(jax.grad(oracle))(batch))
    if mode == "jit both":
        expected = jax.hessian(oracle)(X)
        close(outer(hessian(f))(X), expected, 2e-3)
        close(outer(jacfwd(jacrev(f)))(X), expected, 2e-3)


def test_python_branches_on_values_under_eager_grad():
    def f(x):
        return x * x if x > 0 else -x

    assert float(grad(f)(3.0)) == 6
    assert float(grad(f)(-3.0)) == -1
    assert float(grad(grad(f))(3.0)) == 2


@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_while_loop(mode):
    wrap = jato.jit if mode == "jit" else (lambda g: g)

    def collatz(n):
        step = lambda c: (jnp.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1)
        return while_loop(lambda c: c[0] != 1, step, (n, 0))[1]

    starts = np.array([1, 7, 27, 6], np.int32)
    assert [int(wrap(collatz)(n)) for n in starts] == [0, 16, 111, 8]
    assert np.asarray(wrap(jato.vmap(collatz))(starts)).tolist() == [0, 16, 111, 8]

    def root(x):
        return while_loop(lambda y: jnp.abs(y * y - x) > 1e-4, lambda y: 0.5 * (y + x / y), x)

    value, slope = wrap(lambda x: jvp(root, (x,), (1.0,)))(2.0)
    np.testing.assert_allclose([float(value), float(slope)], [2**0.5, 0.5 / 2**0.5], rtol=1e-3)


def test_training_step():
    def loss(params, batch):
        inputs, targets = batch
        hidden = jnp.tanh(inputs @ params["w1"] + params["b1"])
        return jnp.mean((hidden @ params["w2"] - targets) ** 2)

    @jato.jit
    def step(params, batch):
        value, gradients = jato.value_and_grad(loss)(params, batch)
        updated = jato.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, gradients)
        return updated, value

    params = {"w1": W, "b1": np.zeros(4, np.float32), "w2": W[:4, :1]}
    inputs = RNG.normal(size=(32, 5)).astype(np.float32)
    batch = (inputs, np.sin(inputs[:, :1]))
    losses = []
    for _ in range(30):
        params, value = step(params, batch)
        losses.append(float(value))
    assert losses[-1] < 0.7 * losses[0]
    assert step.stats().traces <= 2


def test_custom_rules_and_checkpoint_compiled():
    @jato.custom_jvp
    def clipped(x):
        return jnp.clip(x, -1.0, 1.0)

    clipped.defjvp(lambda p, t: (clipped(*p), 3.0 * t[0]))

    @jato.custom_vjp
    def scaled(x):
        return x * 2.0

    scaled.defvjp(lambda x: (x * 2.0, x), lambda kept, ct: (ct * kept,))
    f = jato.jit(lambda x: jnp.sum(clipped(x)) + jnp.sum(jato.checkpoint(scaled)(x)))
    close(jato.jit(jato.grad(f))(X), 3.0 + X)
    close(jato.grad(f)(X), 3.0 + X)
    close(jato.vmap(jato.grad(f))(W.T), 3.0 + W.T)


def test_fresh_functions_are_freed():
    def graphs_alive():
        gc.collect()
        return sum(isinstance(o, Graph) for o in gc.get_objects())

    def once():
        f = lambda v: jnp.sum(jnp.sin(v) * v)
        jato.grad(jato.jit(f))(X)
        jato.jit(jato.vmap(jato.grad(f)))(W)

    once()
    jato.clear_caches()
    before = graphs_alive()
    for _ in range(5):
        once()
    jato.clear_caches()
    assert graphs_alive() <= before
