"""jato.nn against jax.nn: values, derivatives, special values, and what is one kernel."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato import nn

RNG = np.random.default_rng(0)
# no value where a function has a kink
X = np.float32([*RNG.normal(0, 2, 60), *RNG.uniform(-20, 20, 40), -100.0, 100.0]).reshape(2, 51)
ACTIVATIONS = [
    "celu", "elu", "gelu", "hard_sigmoid", "hard_silu", "hard_tanh", "identity", "leaky_relu",
    "log_sigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softplus",
    "sparse_plus", "sparse_sigmoid", "squareplus", "tanh",
]  # fmt: skip


def _normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    ours, theirs = getattr(nn, name), getattr(jax.nn, name)
    np.testing.assert_allclose(ours(X), theirs(X), rtol=1e-5, atol=1e-6)
    slope = jato.grad(lambda x: ours(x).sum())(X)
    expected = jax.grad(lambda x: theirs(x).sum())(X)
    np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=2e-6)
    f = jato.jit(ours)
    f(X)
    assert len(f.stats().kernels) <= 1


def test_parameters() -> None:
    for call in (
        lambda nn: nn.elu(X, 0.5), lambda nn: nn.celu(X, 2.0), lambda nn: nn.leaky_relu(X, 0.3),
        lambda nn: nn.gelu(X, approximate=False), lambda nn: nn.squareplus(X, 1.0),
        lambda nn: nn.glu(X[:, :50]), lambda nn: nn.glu(X, 0),
        lambda nn: nn.log1mexp(np.float32([0.01, 0.5, 0.7, 3, 20])),
    ):  # fmt: skip
        np.testing.assert_allclose(call(nn), call(jax.nn), rtol=2e-5, atol=1e-6)
    with pytest.raises(ValueError, match="even length"):
        nn.glu(X)


def test_kinks() -> None:
    assert float(jato.grad(nn.relu)(0.0)) == 0
    assert float(jato.grad(nn.relu6)(0.0)) == 0 and float(jato.grad(nn.relu6)(6.0)) == 0
    assert nn.relu(np.int32([-1, 2])).dtype == np.int32
    assert np.isnan(nn.relu(np.float32(np.nan)))
    for name in ("sigmoid", "softplus", "log_sigmoid", "silu", "gelu", "elu"):
        found = getattr(nn, name)(np.float32([np.inf, -1e4]))
        assert not np.isnan(found).any(), name


ROWS = _normal(4, 5, 7)
MASK = RNG.random((4, 5, 7)) > 0.3


@pytest.mark.parametrize(
    "call",
    [
        lambda nn: nn.softmax(ROWS),
        lambda nn: nn.softmax(ROWS, axis=(0, 2)),
        lambda nn: nn.softmax(ROWS, axis=1, where=MASK),
        lambda nn: nn.log_softmax(ROWS, axis=0),
        lambda nn: nn.logsumexp(ROWS),
        lambda nn: nn.logsumexp(ROWS, axis=1, keepdims=True),
        lambda nn: nn.logsumexp(ROWS, axis=2, b=np.abs(ROWS)),
        lambda nn: nn.logsumexp(ROWS, axis=2, b=ROWS, return_sign=True),
        lambda nn: nn.logsumexp(ROWS, axis=1, where=MASK),
        lambda nn: nn.logmeanexp(ROWS, axis=1),
        lambda nn: nn.standardize(ROWS),
        lambda nn: nn.standardize(ROWS, axis=(0, 1), epsilon=0.1),
        lambda nn: nn.one_hot(np.int32([0, 2, 5, -1]), 4),
        lambda nn: nn.one_hot(np.int32([[0, 2]]), 4, axis=0, dtype=np.int32),
    ],
)
def test_axes(call: Any) -> None:
    ours, theirs = call(nn), call(jax.nn)
    for a, b in zip(jax.tree.leaves(theirs), jato.tree.leaves(ours), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(b, a, rtol=2e-5, atol=2e-6)


def test_infinite_rows() -> None:
    rows = np.float32([[-np.inf, -np.inf], [np.inf, 0], [1000, 1000], [np.nan, 0]])
    with np.errstate(invalid="ignore"):
        expected = [-np.inf, np.inf, 1000 + np.log(2), np.nan]
    np.testing.assert_allclose(nn.logsumexp(rows, 1), expected, rtol=1e-6)
    np.testing.assert_allclose(nn.softmax(rows[2]), [0.5, 0.5])


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp", "standardize"])
def test_one_kernel(name: str) -> None:
    f = jato.jit(lambda x: getattr(nn, name)(x, axis=-1))
    f(_normal(64, 100))
    assert len(f.stats().kernels) == 1


ATTENTION = [
    ((2, 5, 4, 8), (2, 6, 2, 8), {}),
    ((2, 5, 4, 8), (2, 5, 4, 8), {"is_causal": True, "return_residual": True}),
    ((5, 4, 8), (6, 1, 8), {"bias": _normal(1, 4, 5, 6)}),
    ((2, 5, 4, 8), (2, 6, 2, 8), {"mask": RNG.random((2, 4, 5, 6)) > 0.3}),
    (
        (2, 5, 4, 8), (2, 6, 2, 8),
        {
            "mask": RNG.random((1, 1, 5, 6)) > 0.3, "query_seq_lengths": np.int32([3, 5]),
            "key_value_seq_lengths": np.int32([6, 2]),
        },
    ),
    ((2, 5, 4, 8), (2, 6, 2, 8), {"local_window_size": (2, 1), "scale": 0.3}),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(ATTENTION)))
def test_attention(case: int) -> None:
    query, key, keywords = ATTENTION[case]
    args = _normal(*query), _normal(*key), _normal(*key)
    ours = nn.dot_product_attention(*args, **keywords)
    theirs = jax.nn.dot_product_attention(*args, **keywords)
    for a, b in zip(jax.tree.leaves(theirs), jato.tree.leaves(ours), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=2e-6)


def test_attention_gradients() -> None:
    args = _normal(2, 5, 4, 8), _normal(2, 5, 2, 8), _normal(2, 5, 2, 8)

    def energy(module: Any) -> Any:
        return lambda *a: (module.dot_product_attention(*a, is_causal=True) ** 2).sum()

    ours = jato.grad(energy(nn), (0, 1, 2))(*args)
    theirs = jax.grad(energy(jax.nn), (0, 1, 2))(*args)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": _normal(2, 5, 4, 7)}, "'value' must have shape"),
        ({"query": _normal(2, 5, 3, 8)}, "multiple"),
        ({"query": _normal(2, 5, 4, 8).astype(np.float16)}, "dtype of 'key'"),
        ({"mask": np.ones((1, 1, 5, 5), np.float32)}, "'mask' must be of bools"),
        ({"query_seq_lengths": np.int32([1])}, "'query_seq_lengths' must have shape"),
        ({"implementation": "cudnn"}, "unsupported implementation"),
    ],
)
def test_attention_errors(change: dict[str, Any], message: str) -> None:
    args = {name: _normal(2, 5, 4, 8) for name in ("query", "key", "value")}
    if change.get("query", np.zeros(4)).shape[-2:] == (3, 8):
        args["key"] = args["value"] = _normal(2, 5, 2, 8)
    with pytest.raises(ValueError, match=message):
        nn.dot_product_attention(**(args | change))


INITIALIZERS = [
    lambda i: i.glorot_uniform(), lambda i: i.glorot_normal(), lambda i: i.lecun_uniform(),
    lambda i: i.lecun_normal(), lambda i: i.he_uniform(), lambda i: i.he_normal(),
    lambda i: i.normal(0.1), lambda i: i.uniform(0.1), lambda i: i.truncated_normal(0.1),
    lambda i: i.constant(3.0), lambda i: i.variance_scaling(2.0, "fan_geo_avg", "normal"),
    lambda i: i.variance_scaling(1.0, "fan_out", "normal", in_axis=0, out_axis=(1, 2)),
    lambda i: i.zeros, lambda i: i.ones,
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(INITIALIZERS)))
def test_initializers(case: int) -> None:
    ours = INITIALIZERS[case](nn.initializers)(jato.random.key(3), (3, 4, 5))
    theirs = INITIALIZERS[case](jax.nn.initializers)(jax.random.key(3), (3, 4, 5))
    np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=1e-7)


def test_initializer_variance_and_errors() -> None:
    for distribution in ("normal", "uniform", "truncated_normal"):
        for dtype in (np.float32, np.complex64):
            init = nn.initializers.variance_scaling(4.0, "fan_in", distribution)
            weights = np.asarray(init(jato.random.key(0), (100, 200), dtype))
            assert weights.dtype == dtype
            assert math.isclose(np.var(weights), 4 / 100, rel_tol=0.05)
    with pytest.raises(ValueError, match="'mode'"):
        nn.initializers.variance_scaling(1.0, "fan", "normal")(jato.random.key(0), (2, 2))
    with pytest.raises(ValueError, match="'distribution'"):
        nn.initializers.variance_scaling(1.0, "fan_in", "even")(jato.random.key(0), (2, 2))
    with pytest.raises(ValueError, match="at least two axes"):
        nn.initializers.he_normal()(jato.random.key(0), (3,))
    assert isinstance(nn.initializers.he_normal(), nn.initializers.Initializer)


def test_under_transforms() -> None:
    found = jato.jit(jato.vmap(jato.grad(lambda x: jnp.sum(nn.gelu(x)))))(X)
    np.testing.assert_allclose(
        found, jato.grad(lambda x: nn.gelu(x).sum())(X), rtol=1e-5, atol=1e-6
    )


def test_scaled_matmul():
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=s).astype(np.float32) for s in ((2, 3, 8), (2, 5, 8)))
    a_scale, b_scale = (rng.normal(size=s).astype(np.float32) for s in ((2, 3, 2), (2, 5, 4)))
    expected = np.einsum("bmk,bnk->bmn", a * a_scale.repeat(4, -1), b * b_scale.repeat(2, -1))
    np.testing.assert_allclose(jato.nn.scaled_matmul(a, b, a_scale, b_scale), expected, rtol=1e-4, atol=1e-5)
    half = jato.nn.scaled_matmul(a, b, a_scale, b_scale, preferred_element_type=np.float16)
    assert half.dtype == np.float16
    with pytest.raises(TypeError, match="expected scales for each row of lhs and rhs"):
        jato.nn.scaled_matmul(a, b, a_scale[:, :1], b_scale)
    with pytest.raises(TypeError, match="to divide those of lhs"):
        jato.nn.scaled_matmul(a, b, np.ones((2, 3, 3), np.float32), b_scale)
