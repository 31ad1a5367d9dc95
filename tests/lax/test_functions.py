"""Functions of jato.lax that are composed of others: against jax.lax, NumPy, and definitions."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato import lax

RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


# ---- ragged products

MODES = {
    "rows": ((4, 3), (2, 3, 5), (((1,), (1,)), ((), ())), 0, (0,), [1, 2]),
    "batched rows": (
        (2, 4, 3),
        (2, 2, 3, 5),
        (((2,), (2,)), ((0,), (1,))),
        1,
        (0,),
        [[1, 3], [0, 2]],
    ),
    "broadcast": ((2, 4, 3), (2, 2, 3, 5), (((2,), (2,)), ((0,), (1,))), 1, (0,), [2, 1]),
    "contracted": ((4, 3), (4, 5), (((0,), (0,)), ((), ())), 0, (), [1, 2, 0]),
    "contracted, batched": (
        (2, 3, 4),
        (2, 4, 5),
        (((2,), (1,)), ((0,), (0,))),
        2,
        (),
        [[1, 2], [4, 0]],
    ),
    "mapped": ((2, 4, 3), (2, 3, 5), (((2,), (1,)), ((0,), (0,))), 0, (), [1, 1]),
}


@pytest.mark.parametrize("mode", MODES)
def test_ragged_dot_general(mode: str) -> None:
    left, right, dims, axis, groups, sizes = MODES[mode]
    lhs, rhs, counts = floats(*left), floats(*right), np.array(sizes, np.int32)

    def of(module: Any) -> Any:
        numbers = module.RaggedDotDimensionNumbers(dims, [axis], list(groups))
        return lambda x, y: module.ragged_dot_general(x, y, counts, numbers)

    expected = of(jax.lax)(lhs, rhs)
    np.testing.assert_allclose(of(lax)(lhs, rhs), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jato.jit(of(lax))(lhs, rhs), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("sizes", [[2, 3], [0, 0], [6, 0], [4, 5], [0, 6]])
def test_ragged_dot(sizes: list[int]) -> None:
    lhs, rhs, counts = floats(6, 3), floats(2, 3, 4), np.array(sizes, np.int32)
    expected = np.zeros((6, 4), np.float32)
    ends = np.minimum(np.cumsum(sizes), 6)
    expected[: ends[0]] = lhs[: ends[0]] @ rhs[0]
    expected[ends[0] : ends[1]] = lhs[ends[0] : ends[1]] @ rhs[1]
    np.testing.assert_allclose(lax.ragged_dot(lhs, rhs, counts), expected, rtol=1e-5, atol=1e-6)
    loss = lambda module: lambda x, y: (module.lax.ragged_dot(x, y, counts) ** 2).sum()
    mine = jato.grad(loss(jato), (0, 1))(lhs, rhs)
    peer = jax.grad(loss(jax), (0, 1))(lhs, rhs)
    for got, wanted in zip(mine, peer, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_ragged_dot_of_no_rows_and_other_dtypes() -> None:
    counts = np.array([0, 0], np.int32)
    assert lax.ragged_dot(floats(0, 3), floats(2, 3, 4), counts).shape == (0, 4)
    whole = lax.ragged_dot(np.ones((2, 1), np.int32), np.ones((2, 1, 1), np.int32), counts + 1)
    assert whole.dtype == np.int32 and whole.tolist() == [[1], [1]]
    half = lax.ragged_dot(floats(2, 3), floats(2, 3, 4), counts, preferred_element_type=np.float16)
    assert half.dtype == np.float16
    mapped = jato.vmap(lax.ragged_dot, (0, None, None))(floats(3, 2, 3), floats(2, 3, 4), counts)
    assert mapped.shape == (3, 2, 4)


def test_scaled_dot() -> None:
    lhs, rhs = floats(2, 3, 8), floats(2, 8, 6)
    lhs_scale, rhs_scale = floats(2, 3, 2), floats(2, 4, 3)
    wide = np.repeat(lhs_scale, 4, 2), np.repeat(np.repeat(rhs_scale, 2, 1), 2, 2)
    got = lax.scaled_dot(
        lhs, rhs, lhs_scale=lhs_scale, rhs_scale=rhs_scale, preferred_element_type=np.float32
    )
    np.testing.assert_allclose(got, (lhs * wide[0]) @ (rhs * wide[1]), rtol=1e-4, atol=1e-4)
    assert lax.scaled_dot(lhs, rhs).dtype.name == "bfloat16"
    numbers = (((2,), (2,)), ((), ()))
    got = lax.scaled_dot(lhs, lhs, dimension_numbers=numbers, preferred_element_type=np.float32)
    np.testing.assert_allclose(got, np.einsum("abk,cdk->abcd", lhs, lhs), rtol=1e-5, atol=1e-5)


# ---- scatters, bits, barriers


@pytest.mark.parametrize("unique", [False, True])
def test_scatter_apply(unique: bool) -> None:
    x = floats(5)
    places = np.array([[1], [3], [9]] if unique else [[1], [3], [1], [9]])

    def of(module: Any, function: Any) -> Any:
        numbers = module.ScatterDimensionNumbers((), (0,), (0,))
        return lambda x: module.scatter_apply(
            x, places, function, numbers, update_shape=(len(places),), unique_indices=unique,
            mode="drop",
        )  # fmt: skip

    expected = x.copy()
    for i in places[places < 5]:
        expected[i] = np.sin(expected[i]) + 1
    ours = of(lax, lambda v: jnp.sin(v) + 1)
    np.testing.assert_allclose(ours(x), expected, rtol=1e-6)
    np.testing.assert_allclose(jato.jit(ours)(x), expected, rtol=1e-6)
    peer = of(jax.lax, lambda v: jax.numpy.sin(v) + 1)(jax.numpy.asarray(x))
    np.testing.assert_allclose(ours(x), peer, rtol=1e-6)
    if unique:
        slope = np.where(np.isin(np.arange(5), places), np.cos(x), 1)
        np.testing.assert_allclose(jato.grad(lambda v: ours(v).sum())(x), slope, rtol=1e-6)
    with pytest.raises(
        TypeError, match=r"expected func \(<lambda>\) to keep float32\[5\], got bool"
    ):
        of(lax, lambda v: v > 1)(x)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
def test_rng_bit_generator(dtype: str) -> None:
    state = np.array([1, 2, 0xFFFFFFFF, 4], np.uint32)
    following, bits = lax.rng_bit_generator(state, (1000, 3), dtype)
    assert following.tolist() == [1, 2, 0, 5] and bits.shape == (1000, 3) and bits.dtype == dtype
    again = jato.jit(lambda s: lax.rng_bit_generator(s, (1000, 3), dtype))(state)
    np.testing.assert_array_equal(again[1], bits)
    other = np.asarray(lax.rng_bit_generator(following, (1000, 3), dtype)[1])
    assert (np.asarray(bits) != other).mean() > 0.9
    ones = np.unpackbits(np.asarray(bits).view(np.uint8)).mean()
    assert abs(ones - 0.5) < 0.02


def test_rng_bit_generator_of_wide_words() -> None:
    with jato.enable_x64(True):
        state = np.array([1, 2**32 - 1], np.uint64)
        following, bits = lax.rng_bit_generator(state, (4,), np.uint64)
        assert following.tolist() == [1, 2**32] and bits.dtype == np.uint64


def test_optimization_barrier() -> None:
    tree = {"a": floats(3), "b": (1.0, np.int32(2))}
    for run in (lax.optimization_barrier, jato.jit(lax.optimization_barrier)):
        out = run(tree)
        np.testing.assert_array_equal(out["a"], tree["a"])
        assert float(out["b"][0]) == 1.0 and int(out["b"][1]) == 2
    f = lambda x: (lax.optimization_barrier((x, x))[0] * x).sum()
    np.testing.assert_allclose(jato.grad(f)(tree["a"]), 2 * tree["a"], rtol=1e-6)
    np.testing.assert_allclose(jato.vmap(f)(floats(2, 3)).shape, (2,))
    keeps = lambda x: jnp.sin(x) + jnp.sin(lax.optimization_barrier(x))
    np.testing.assert_allclose(jato.jit(keeps)(tree["a"]), 2 * np.sin(tree["a"]), rtol=1e-6)


def test_small_ones() -> None:
    assert isinstance(lax.stage(np.ones(2)), jato.Array)
    assert lax.shape_as_value((2, 3)).tolist() == [2, 3] and lax.shape_as_value(()).shape == (0,)
    twice = lax.composite(lambda x, *, times: x * times, "example", version=1)
    assert float(jato.grad(lambda x: twice(x, times=3.0))(1.0)) == 3.0
    with pytest.raises(TypeError, match="composite: name must be a string"):
        lax.composite(lambda x: x, 3)


# ---- shapes


@pytest.mark.parametrize("padding", ["SAME", "VALID", [(0, 1), (2, 2)]])
@pytest.mark.parametrize("strides", [(1, 1), (1, 2), (3, 2)])
def test_shapes_of_convolutions(padding: Any, strides: tuple[int, int]) -> None:
    axes = ("NHWC", "HWIO", "NHWC")
    x, k = floats(2, 7, 6, 3), floats(3, 2, 3, 4)
    same = lax.conv_general_dilated(x, k, strides, padding, dimension_numbers=axes)
    assert lax.conv_general_shape_tuple(x.shape, k.shape, strides, padding, axes) == same.shape
    plain = lax.conv_shape_tuple((2, 3, 7, 6), (4, 3, 3, 2), strides, padding)
    assert plain == (2, 4, *same.shape[1:3])
    grown = lax.conv_transpose(x, k, strides, padding, dimension_numbers=axes)
    assert lax.conv_transpose_shape_tuple(x.shape, k.shape, strides, padding, axes) == grown.shape
    assert lax.conv_shape_tuple((4, 3, 7, 6), (4, 3, 3, 2), strides, padding, 2)[0] == 2


def test_shapes_of_windows() -> None:
    args = (5, 6), (2, 3), (1, 2), ((0, 0), (1, 1))
    for extra in ((), ((2, 1), (1, 2))):
        assert lax.reduce_window_shape_tuple(*args, *extra) == jax.lax.reduce_window_shape_tuple(
            *args, *extra
        )
    assert lax.reduce_window_shape_tuple((5, 6), (2, 3), (1, 2), "SAME") == (5, 3)
    for names in (("NHWC", "HWIO", "NHWC"), ("CNH", "HOI", "NHC")):
        assert lax.conv_general_permutations(names) == jax.lax.conv_general_permutations(names)


# ---- parameters


@pytest.mark.parametrize("name", ["exp", "sin", "log1p", "sqrt", "erfc", "tanh", "cbrt"])
def test_accuracy(name: str) -> None:
    x = np.float32(0.5)
    f = getattr(lax, name)
    for accuracy in (
        lax.AccuracyMode.HIGHEST,
        lax.AccuracyMode.DEFAULT,
        lax.Tolerance(rtol=1e-5, ulps=2),
    ):
        assert float(f(x, accuracy=accuracy)) == float(f(x))
    with pytest.raises(
        NotImplementedError, match=f"{name}: argument 'accuracy': .* within 2 units"
    ):
        f(x, accuracy=lax.Tolerance(ulps=1))
    with pytest.raises(NotImplementedError, match="'accuracy'"):
        f(x, accuracy=lax.Tolerance(rtol=1e-9))
    with pytest.raises(TypeError, match="expected a lax.Tolerance"):
        f(x, accuracy=3)


def test_absolute_accuracy() -> None:
    assert float(lax.sin(np.float32(0), accuracy=lax.Tolerance(atol=1e-6))) == 0
    with pytest.raises(NotImplementedError, match="exp: argument 'accuracy'"):
        lax.exp(np.float32(0), accuracy=lax.Tolerance(atol=1e-6))
    with pytest.raises(ValueError, match="no negative numbers"):
        lax.Tolerance(atol=-1)
    assert lax.Tolerance(1, 2, 3) == lax.Tolerance(1, 2, 3) != lax.Tolerance()


@pytest.mark.parametrize(
    "call",
    [
        lambda s: lax.full((2,), 1.0, sharding=s),
        lambda s: lax.full_like(np.ones(2), 1.0, sharding=s),
        lambda s: lax.reshape(np.ones(2), (2, 1), out_sharding=s),
        lambda s: lax.broadcast(np.ones(2), (2,), out_sharding=s),
        lambda s: lax.broadcast_in_dim(np.ones(2), (2, 2), (0,), out_sharding=s),
        lambda s: lax.broadcasted_iota("int32", (2,), 0, out_sharding=s),
        lambda s: lax.reduce_sum(np.ones(2), (0,), out_sharding=s),
        lambda s: lax.reduce_max(np.ones(2), (0,), out_sharding=s),
        lambda s: lax.reduce(np.ones(2), 0.0, lax.add, (0,), out_sharding=s),
        lambda s: lax.dot(np.ones(2), np.ones(2), out_sharding=s),
        lambda s: lax.empty((2,), "int32", out_sharding=s),
        lambda s: jato.pure_callback(abs, np.float32(1), np.float32(1), sharding=s),
        lambda s: jato.experimental.io_callback(abs, np.float32(1), np.float32(1), sharding=s),
    ],
)
def test_sharding_is_refused(call: Any) -> None:
    call(None)
    with pytest.raises(NotImplementedError, match="argument '(out_)?sharding': expected None"):
        call("devices")


def test_other_parameters() -> None:
    product = lax.mul(np.int8(100), np.int8(3), out_dtype=np.int32)
    assert int(product) == 300 and product.dtype == np.int32
    x = jnp.arange(5)
    for negative, place in ((True, 4), (False, 0)):
        options = {"allow_negative_indices": negative}
        assert int(lax.dynamic_index_in_dim(x, -1, keepdims=False, **options)) == place
        assert int(lax.dynamic_slice_in_dim(x, -1, 1, **options)[0]) == place
        assert int(lax.dynamic_update_index_in_dim(x, 9, -1, 0, **options)[place]) == 9
        row = np.array([9], np.int32)
        assert int(lax.dynamic_update_slice_in_dim(x, row, -1, 0, **options)[place]) == 9
    assert lax.switch(1, [lambda x: x, lambda x: 2 * x], operand=3) == 6
    assert lax.switch(1, [lambda x: 1, lambda x: 2], operand=None) == 2
    assert lax.cond(True, lambda x: 1, lambda x: 2, operand=None) == 1
    with pytest.raises(TypeError, match="unexpected keyword argument 'linear'"):
        lax.cond(True, abs, abs, 1, linear=(True,))
    with pytest.raises(TypeError, match="switch: give operands by position or `operand`, not both"):
        lax.switch(1, [lambda x: 1, lambda x: 2], 3, operand=None)
    assert lax.top_k(x, 2, is_stable=False)[1].tolist() == [4, 3]
