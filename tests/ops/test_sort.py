"""sort and top_k against NumPy and JAX, and their rules against each other."""

import jax
import numpy as np
import pytest
from jax import lax
from reference_rules import check_batch, check_jvp, numpy_evaluation, value, x64

from jato.ops import sort

RNG = np.random.default_rng(0)
DTYPES = [
    np.float32,
    np.float64,
    np.float16,
    "bfloat16",
    np.int8,
    np.int64,
    np.uint16,
    np.uint64,
    np.bool_,
    np.complex64,
]
SHAPES = [((0,), 0), ((1,), 0), ((17,), 0), ((4, 9), 0), ((4, 9), -1), ((2, 5, 3), 1), ((3, 0), 0)]


def sample(shape, dtype):
    x = np.round(4 * RNG.standard_normal(shape), 0)  # with ties
    if dtype == np.complex64:
        return (x + 1j * np.round(2 * RNG.standard_normal(shape))).astype(dtype)
    if np.dtype(dtype).kind == "u":
        x = np.abs(x)
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("stable", [True, False])
def test_one_array(dtype, shape, axis, stable):
    x = sample(shape, dtype)
    with numpy_evaluation(), x64():
        got = value(sort.sort(x, axis, stable))
    np.testing.assert_array_equal(got, np.sort(x, axis))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("keys", [1, 2])
def test_several_arrays(dtype, shape, axis, keys):
    x, y = sample(shape, dtype), sample(shape, np.int32)
    z = np.arange(x.size, dtype=np.float32).reshape(shape)
    with jax.enable_x64(True), x64(), numpy_evaluation():
        want = lax.sort((x, y, z), axis % len(shape), num_keys=keys)
        got = sort.sort((x, y, z), axis, num_keys=keys)
    for a, c in zip(got, want, strict=True):
        np.testing.assert_array_equal(value(a), np.asarray(c))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, "bfloat16"])
def test_special_values(dtype):
    x = np.array([0.0, -0.0, -np.nan, np.nan, -np.inf, np.inf, -1, 1, -0.0, 0.0]).astype(dtype)
    with numpy_evaluation(), x64():
        got = value(sort.sort(x)).astype(np.float64)
        np.testing.assert_array_equal(got, [-np.inf, -1, 0, 0, 0, 0, 1, np.inf, np.nan, np.nan])
        np.testing.assert_array_equal(np.signbit(got[2:6]), [False, True, True, False])  # stable
        _, order = sort.sort((x, np.arange(10)))
        np.testing.assert_array_equal(value(order), [4, 6, 0, 1, 8, 9, 7, 5, 2, 3])


def test_many_elements():
    x = RNG.standard_normal(100_000).astype(np.float32)
    with numpy_evaluation():
        values, order = sort.sort_key_val(x, np.arange(x.size, dtype=np.int32))
    np.testing.assert_array_equal(value(order), np.argsort(x, kind="stable"))
    np.testing.assert_array_equal(value(values), np.sort(x))


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8, "bfloat16", np.float64])
@pytest.mark.parametrize("k", [0, 1, 3, 9])
def test_top_k(dtype, k):
    x = sample((4, 9), dtype) + np.zeros((), dtype)  # JAX puts -0 below +0 here, we do not
    with jax.enable_x64(True), x64(), numpy_evaluation():
        want = lax.top_k(x, k)
        got = sort.top_k(x, k)
        along = sort.top_k(x.T, k, axis=0)
    for a, c, e in zip(got, want, along, strict=True):
        np.testing.assert_array_equal(value(a), np.asarray(c))
        np.testing.assert_array_equal(value(e), np.asarray(c).T)


def test_top_k_of_many_and_nan():
    x = RNG.standard_normal((3, 1000)).astype(np.float32)
    x[0, 5] = np.nan
    with numpy_evaluation():
        values, indices = map(value, sort.top_k(x, 7))
    assert np.isnan(values[0, 0]) and indices[0, 0] == 5
    np.testing.assert_array_equal(values[1:], -np.sort(-x[1:])[:, :7])
    np.testing.assert_array_equal(np.take_along_axis(x, indices, 1), values)


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_rules(shape, axis):
    x = RNG.standard_normal(shape)
    y = RNG.standard_normal(shape)
    params = {"dimension": axis % len(shape), "is_stable": True, "num_keys": 1}
    check_jvp(sort.SORT, [x], params)
    check_jvp(sort.SORT, [x, y], params)
    check_jvp(sort.SORT, [x, np.round(y).astype(np.int32)], params)
    check_batch(sort.SORT, [x, y], params)
    k = min(2, shape[axis])
    check_jvp(sort.TOP_K, [x], {"k": k, "axis": axis % len(shape)})
    check_batch(sort.TOP_K, [x], {"k": k, "axis": axis % len(shape)})


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda x: sort.sort(x, 2), ValueError, "sort: argument 'dimension'"),
        (lambda x: sort.sort([]), TypeError, "at least one array"),
        (lambda x: sort.sort((x, x[0])), TypeError, "operands of one shape"),
        (lambda x: sort.sort((x, x), num_keys=3), ValueError, "num_keys between 1 and 2"),
        (lambda x: sort.top_k(x, 4), ValueError, "0 <= k <= 3"),
        (lambda x: sort.top_k(x, 1, axis=5), ValueError, "'axis'"),
        (lambda x: sort.top_k(x.astype(np.complex64), 1), ValueError, "expected operand to be real"),
    ],
)
def test_errors(call, error, match):
    with numpy_evaluation(), pytest.raises(error, match=match):
        call(np.zeros((2, 3), np.float32))
