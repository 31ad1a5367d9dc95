"""First and second derivatives and vmap of composed programs, against JAX."""

import jax
import numpy as np
import pytest

import jato

RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


X, M, V = floats(6), floats(4, 5), floats(5)
IMAGE, KERNEL = floats(2, 2, 6, 5), floats(3, 2, 3, 2)
INDEX = np.array([[2], [0], [2], [9]], np.int32)


def rows(lax):
    return lax.GatherDimensionNumbers((), (0,), (0,))


def places(lax):
    return lax.ScatterDimensionNumbers((), (0,), (0,))


PROGRAMS = {
    "gather": (lambda lax, x: lax.gather(lax.sin(x), INDEX, rows(lax), (1,), mode="clip"), X),
    "scatter": (lambda lax, x: lax.scatter(lax.sin(x), INDEX, x[:4] * x[:4], places(lax), mode="clip"), X),
    "scatter_add": (lambda lax, x: lax.scatter_add(lax.sin(x), INDEX, x[:4] * x[:4], places(lax)), X),
    "scatter_mul": (lambda lax, x: lax.scatter_mul(
        lax.sin(x), INDEX[1:], x[:3] * x[:3], places(lax), unique_indices=True), X),
    "scatter_max": (lambda lax, x: lax.scatter_max(lax.sin(x), INDEX, x[:4] * x[:4], places(lax)), X),
    "dynamic_slice": (lambda lax, x: lax.dynamic_slice(x * x, (2,), (3,)), X),
    "dynamic_update_slice": (lambda lax, x: lax.dynamic_update_slice(lax.sin(x), x[:2] * x[1:3], (3,)), X),
    "matmul": (lambda lax, x: lax.dot(lax.sin(x), lax.transpose(x, (1, 0))), M),
    "batched dot": (lambda lax, x: lax.dot_general(x, x * x, (((1,), (1,)), ((0,), (0,)))), M),
    "cumsum": (lambda lax, x: lax.cumsum(x * x, 1, reverse=True), M),
    "cumprod": (lambda lax, x: lax.cumprod(x, 1), M),
    "cummax": (lambda lax, x: lax.cummax(x * x, 1), M),
    "cumlogsumexp": (lambda lax, x: lax.cumlogsumexp(x, 0), M),
    "sort": (lambda lax, x: lax.sort(x * x * x, dimension=1), M),
    "sort two": (lambda lax, x: lax.sort((x, lax.sin(x)), dimension=0)[1], M),
    "top_k": (lambda lax, x: lax.top_k(x * x, 3)[0], M),
    "convolve image": (lambda lax, x: lax.conv_general_dilated(
        x * x, KERNEL, (2, 1), "SAME", rhs_dilation=(1, 2)), IMAGE),
    "convolve kernel": (lambda lax, x: lax.conv_general_dilated(IMAGE, lax.sin(x), (1, 2), [(1, 0), (0, 2)]), KERNEL),
    "convolve itself": (lambda lax, x: lax.conv_general_dilated(x, x, (1,), "SAME"), floats(2, 2, 3)),
    "window sum": (lambda lax, x: lax.reduce_window(x * x, 0.0, lax.add, (2, 3), (1, 2), "SAME"), M),
    "window max": (lambda lax, x: lax.reduce_window(x * x, -np.inf, lax.max, (2, 3), (1, 2), "SAME"), M),
    "window min": (lambda lax, x: lax.reduce_window(x * x, np.inf, lax.min, (2, 3), (1, 2), "VALID"), M),
}  # fmt: skip
# JAX has no second derivative of its gather-add over windows
FIRST_ONLY = {"window max", "window min"}


def scalar(root, function):
    """A scalar with weights, so that every element counts differently."""

    def loss(x):
        y = function(root.lax, x)
        weights = np.cos(np.arange(np.prod(y.shape), dtype=np.float32)).reshape(y.shape)
        return (y * weights).sum()

    return loss


@pytest.mark.parametrize("name", PROGRAMS)
def test_grad(name):
    function, x = PROGRAMS[name]
    want = jax.grad(scalar(jax, function))(x)
    got = jato.grad(scalar(jato, function))(x)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4, atol=1e-4)
    compiled = jato.jit(jato.grad(scalar(jato, function)))(x)
    np.testing.assert_allclose(np.asarray(compiled), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - FIRST_ONLY))
def test_second_derivative(name):
    function, x = PROGRAMS[name]
    t = floats(*x.shape)

    def along(root):
        g = root.grad(scalar(root, function))
        return np.asarray(root.jvp(g, (x,), (t,))[1]), np.asarray(
            root.grad(lambda x: (g(x) * t).sum())(x)
        )

    for got, want in zip(along(jato), along(jax), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", PROGRAMS)
def test_vmap_of_grad(name):
    function, x = PROGRAMS[name]
    xs = np.stack([x, 2 * x, -x], 1)
    gradient = jato.grad(scalar(jato, function))
    want = np.stack([np.asarray(gradient(xs[:, i])) for i in range(3)])  # compared with JAX above
    np.testing.assert_allclose(
        np.asarray(jato.vmap(gradient, in_axes=1)(xs)), want, rtol=1e-4, atol=1e-4
    )


def test_window_of_any_function():
    """JAX has no gradient here: the oracle is the same product written out."""

    def windows(x):
        return jato.lax.reduce_window(x, 1.0, jato.lax.mul, (2, 2), (1, 1), "VALID").sum()

    def written_out(x):
        return (x[1:, 1:] * x[:-1, 1:] * x[1:, :-1] * x[:-1, :-1]).sum()

    got = jato.grad(windows)(M)
    np.testing.assert_allclose(
        np.asarray(got), jax.grad(written_out)(jax.numpy.asarray(M)), rtol=1e-5
    )
