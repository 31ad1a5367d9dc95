"""sort and top_k against NumPy and JAX, and their rules against each other."""

import jax
import numpy as np
import pytest
from jax import lax
from reference_rules import check_batch, check_jvp, numpy_evaluation, value, x64

from jato.jit.api import jit
from jato.ops import sort
from jato.transforms.abstract_eval import make_jaxpr

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


# ---- the native routine: short rows, compiled


def short_rows(rows, n, dtype):
    """Rows with ties, zeros of both signs, infinities and NaN."""
    x = sample((rows, n), dtype)
    if np.dtype(dtype).kind != "f" and dtype != "bfloat16":
        return x
    special = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-40]).astype(dtype)
    return np.where(RNG.random((rows, n)) < 0.4, RNG.choice(special, (rows, n)), x).astype(dtype)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != np.complex64] + [np.int32, np.uint8])
@pytest.mark.parametrize("n", [0, 1, 2, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 97, 128, 129, 255, 256, 257])
def test_short_rows(dtype, n):
    x = short_rows(3, n, dtype)
    wide = x.astype(np.float32) if dtype in ("bfloat16", np.float16) else x
    order = np.argsort(wide, axis=-1, kind="stable")  # NumPy: NaN last, -0 equals 0
    want = np.take_along_axis(x, order, axis=-1)
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    with x64():
        values = np.asarray(jit(sort.sort)(x))
        pair = jit(lambda x, y: sort.sort((x, y)))
        for other in (np.int64, np.int8, np.complex128, np.float16):
            y = np.broadcast_to(np.arange(n) % 100, x.shape).astype(other)
            keys, moved = map(np.asarray, pair(x, y))
            np.testing.assert_array_equal(keys.view(bits), want.view(bits))
            np.testing.assert_array_equal(moved, np.take_along_axis(y, order, axis=-1))
        np.testing.assert_array_equal(values.view(bits), want.view(bits))


def test_short_rows_name_the_native_routine():
    x = np.ones((5, 16), np.float32)
    for operands, routine in (((x[0],), "sort"), ((x, x), "sort_pair")):
        graph = make_jaxpr(lambda *xs: sort.sort(xs))(*operands)
        (node,) = graph.eqns
        assert node.primitive.library_call(node)[0] == routine
    graph = make_jaxpr(lambda x: sort.sort(x, 0))(x)  # along another axis
    assert graph.eqns[0].primitive.library_call(graph.eqns[0]) is None
