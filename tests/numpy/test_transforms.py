"""Derivatives of jato.numpy's functions against differences, and vmap against a loop."""

from __future__ import annotations

from typing import Any

import pytest

import jato
import jato.numpy as jnp
import numpy as np

_rng = np.random.default_rng(3)
X = _rng.standard_normal((3, 4))
K = np.array([2, 0, 1])

DIFFERENTIABLE = {
    "mean": jnp.mean,
    "var": lambda x: jnp.var(x, 1),
    "std": lambda x: jnp.std(x, 0, ddof=1),
    "max": lambda x: jnp.max(x, 1),
    "prod": lambda x: jnp.prod(x, 0),
    "cumsum": lambda x: jnp.cumsum(x, 1) ** 2,
    "cumprod": lambda x: jnp.cumprod(x, 1),
    "logaddexp": lambda x: jnp.logaddexp(x, x[0]),
    "hypot": lambda x: jnp.hypot(x, 1.5),
    "sinc": jnp.sinc,
    "arctan2": lambda x: jnp.arctan2(x, x[::-1]),
    "power": lambda x: jnp.abs(x) ** 2.5 + x**3,
    "reciprocal": jnp.reciprocal,
    "where": lambda x: jnp.where(x > 0, x**2, 3 * x),
    "clip": lambda x: jnp.clip(x, -0.5, 0.5) * x,
    "maximum": lambda x: jnp.maximum(x, x[0] * 2),
    "remainder": lambda x: x % 0.7,
    "reshape": lambda x: (x.reshape(4, 3) @ x).T,
    "pad": lambda x: jnp.pad(x, 1, mode="reflect") ** 2,
    "roll": lambda x: jnp.roll(x, 1, 1) * x,
    "tile": lambda x: jnp.tile(x, (2, 1)) ** 2,
    "repeat": lambda x: jnp.repeat(x, 2, axis=0) ** 2,
    "concatenate": lambda x: jnp.concatenate([x, x**2], 1),
    "stack": lambda x: jnp.stack([x, x * x]).sum(0),
    "split": lambda x: jnp.split(x, 2, axis=1)[1] ** 2,
    "tril": lambda x: jnp.tril(x) ** 2,
    "diagonal": lambda x: jnp.diagonal(x) ** 2,
    "trace": lambda x: jnp.trace(x @ x.T),
    "flip": lambda x: jnp.flip(x, 0) * x,
    "getitem": lambda x: x[1:, ::-2] ** 2 + x[0, 1],
    "gather": lambda x: x[K, K] ** 2 + x[K][:, 1],
    "take": lambda x: jnp.take(x, K, axis=1) ** 2,
    "take_along_axis": lambda x: jnp.take_along_axis(x, K[:, None], 1) ** 2,
    "at_set": lambda x: x.at[1].set(x[0] ** 2),
    "at_add": lambda x: x.at[K, K].add(x[0, :3] * x[1, :3]),
    "at_strided": lambda x: x.at[::2, 1:3].multiply(x[::2, :2]),
    "at_max": lambda x: x.at[0].max(x[1]),
    "dot": lambda x: jnp.dot(x, x.T),
    "einsum": lambda x: jnp.einsum("ij,kj,il->kl", x, x, x),
    "matmul": lambda x: x.T[None] @ x[None],
    "outer": lambda x: jnp.outer(x, x[0]),
    "cross": lambda x: jnp.cross(x[:, :3], x[0, 1:]),
    "kron": lambda x: jnp.kron(x, x[:2]),
    "convolve": lambda x: jnp.convolve(x.ravel(), x[0], mode="same"),
    "sort": lambda x: jnp.sort(x, 1) * X,
    "median": lambda x: jnp.median(x, 1),
    "quantile": lambda x: jnp.quantile(x, 0.3),
    "interp": lambda x: jnp.interp(x, np.arange(-3.0, 4.0), np.arange(-3.0, 4.0) ** 2),
    "cov": jnp.cov,
    "diff": lambda x: jnp.diff(x, 2, 1) ** 2,
    "gradient": lambda x: jnp.gradient(x, axis=1) ** 2,
    "trapezoid": lambda x: jnp.trapezoid(x**2, dx=0.5),
    "polyval": lambda x: jnp.polyval(x[0], x[1]),
    "norm": jnp.linalg.norm,
    "norm_3": lambda x: jnp.linalg.norm(x, 3, axis=1),
    "nanmean": lambda x: jnp.nanmean(x, 1),
    "average": lambda x: jnp.average(x, weights=jnp.abs(x)),
    "select": lambda x: jnp.select([x > 0, x > -1], [x**2, x**3], 0),
    "nan_to_num": lambda x: jnp.nan_to_num(x) ** 2,
    "linspace": lambda x: jnp.linspace(x[0], x[1], 4) ** 2,
    "unwrap": lambda x: jnp.unwrap(x.ravel() * 2),
}


pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivative(name: str) -> None:
    function = DIFFERENTIABLE[name]
    weights = np.cos(np.arange(200.0))

    def loss(x: Any) -> Any:
        out = jnp.ravel(function(x))
        return jnp.sum(out * weights[: out.shape[0]])

    direction = _rng.standard_normal(X.shape)
    step = 1e-6
    plus, minus = loss(jnp.asarray(X + step * direction)), loss(jnp.asarray(X - step * direction))
    expected = float((plus - minus) / (2 * step))
    reverse = float((jato.grad(loss)(X) * direction).sum())
    forward = float(jato.jvp(loss, (jnp.asarray(X),), (jnp.asarray(direction),))[1])
    jitted = float((jato.jit(jato.grad(loss))(X) * direction).sum())
    np.testing.assert_allclose([reverse, forward, jitted], expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_vmap(name: str) -> None:
    function = DIFFERENTIABLE[name]
    batch = _rng.standard_normal((2, *X.shape))
    together = np.asarray(jato.vmap(function)(batch))
    one_by_one = np.stack([np.asarray(function(jnp.asarray(x))) for x in batch])
    np.testing.assert_allclose(together, one_by_one, rtol=1e-9, atol=1e-11)


def test_derivative_of_the_norm_at_zero() -> None:
    np.testing.assert_array_equal(
        np.asarray(jato.grad(lambda v: jnp.linalg.norm(v) ** 2)(jnp.zeros(2))), [0, 0]
    )
    np.testing.assert_array_equal(np.asarray(jato.grad(jnp.linalg.norm)(jnp.zeros(2))), [0, 0])


def test_vmap_over_index_arrays() -> None:
    x = jnp.arange(12.0).reshape(3, 4)
    rows = jnp.asarray([2, 0])
    np.testing.assert_array_equal(
        np.asarray(jato.vmap(lambda i: x[i])(rows)), np.asarray(x)[[2, 0]]
    )
    updated = jato.vmap(lambda i, v: x[0].at[i].set(v))(rows, jnp.asarray([7.0, 8.0]))
    np.testing.assert_array_equal(np.asarray(updated), [[0, 1, 7, 3], [8, 1, 2, 3]])


@pytest.mark.parametrize("spec", ["ij->i", "ij->", "ij->ji", "ij,ij->j", "ij,kj->ik", "ij,kj->"])
def test_einsum_of_bools_is_any_of_all(spec):
    rng = np.random.default_rng(0)
    terms = spec.split("->")[0].split(",")
    operands = [rng.random((3, 4)) < 0.3 for _ in terms]
    expected = np.einsum(spec, *(x.astype(int) for x in operands)) > 0
    found = jnp.einsum(spec, *operands)
    assert found.dtype == bool
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("stat_length", [None, 1, 2, 3])
def test_pad_with_medians(dtype, stat_length):
    x = (10 * np.random.default_rng(0).standard_normal((4, 5))).astype(dtype)
    options = {} if stat_length is None else {"stat_length": stat_length}
    expected = np.pad(x, ((1, 2), (0, 3)), "median", **options)
    np.testing.assert_allclose(jnp.pad(x, ((1, 2), (0, 3)), "median", **options), expected, rtol=1e-6)


@pytest.mark.parametrize("fun", [lambda x: x * x, lambda x: x / x, lambda x: jnp.where(x > 0, x, 0.0)])
def test_what_is_not_linear_is_not_transposed(fun):
    x = np.ones(3, np.float32)
    with pytest.raises(TypeError, match="in which the function must be linear"):
        jato.linear_transpose(fun, x)(x)
