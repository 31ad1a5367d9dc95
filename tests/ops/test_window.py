"""Convolutions and window reductions against JAX, and their rules against each other."""

import jax
import numpy as np
import pytest
from jax import lax
from reference_rules import check_batch, check_jvp, check_transpose, numpy_evaluation, value, x64
from samples.window import CONVS, WINDOWS, conv_params, window_of

import jato
from jato.ops import elementwise, window
from jato.ops.convolution import CONV, ConvDimensionNumbers
from jato.ops.pooling import (
    REDUCE_WINDOW_ARGMAX,
    REDUCE_WINDOW_ARGMIN,
    REDUCE_WINDOW_MAX,
    REDUCE_WINDOW_MIN,
    REDUCE_WINDOW_SUM,
    WINDOW_GATHER,
    WINDOW_SCATTER_ADD,
    Window,
)

RNG = np.random.default_rng(0)


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("name", CONVS)
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.complex64, "bfloat16"])
def test_conv(name, dtype):
    left, right, kwargs = CONVS[name]
    lhs = (3 * floats(*left)).astype(dtype)
    rhs = (3 * floats(*right)).astype(dtype)
    want = lax.conv_general_dilated(lhs, rhs, **kwargs)
    with numpy_evaluation():
        got = window.conv_general_dilated(lhs, rhs, **kwargs)
    assert value(got).dtype == want.dtype
    tolerance = 2e-2 if dtype == "bfloat16" else 1e-4
    np.testing.assert_allclose(
        value(got).astype(np.complex64),
        np.asarray(want).astype(np.complex64),
        rtol=tolerance,
        atol=tolerance,
    )


@pytest.mark.parametrize("name", CONVS)
def test_conv_rules(name):
    left, right, kwargs = CONVS[name]
    params = conv_params(left, right, kwargs)
    lhs, rhs = floats(*left, dtype=np.float64), floats(*right, dtype=np.float64)
    check_jvp(CONV, [lhs, rhs], params, tolerance=1e-5)
    check_transpose(CONV, [lhs, rhs], params, [0])
    check_transpose(CONV, [lhs, rhs], params, [1])
    check_batch(CONV, [lhs, rhs], params, size=2)


def test_conv_element_type():
    lhs, rhs = floats(1, 2, 5).astype("bfloat16"), floats(3, 2, 2).astype("bfloat16")
    kwargs = {"window_strides": (1,), "padding": "SAME", "preferred_element_type": np.float32}
    want = lax.conv_general_dilated(lhs, rhs, **kwargs)
    with numpy_evaluation():
        got = window.conv_general_dilated(lhs, rhs, **kwargs)
    np.testing.assert_allclose(value(got), want, rtol=1e-5)


@pytest.mark.parametrize("padding", ["SAME", "VALID", [(1, 2), (0, 1)]])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3), (4, 1)])
@pytest.mark.parametrize("transpose_kernel", [False, True])
@pytest.mark.parametrize("dilation", [None, (2, 1)])
def test_conv_transpose(padding, strides, transpose_kernel, dilation):
    lhs, rhs = floats(2, 5, 4, 3), floats(3, 2, 4, 3) if transpose_kernel else floats(3, 2, 3, 4)
    kwargs = {"transpose_kernel": transpose_kernel, "rhs_dilation": dilation}
    want = lax.conv_transpose(lhs, rhs, strides, padding, **kwargs)
    with numpy_evaluation():
        got = window.conv_transpose(lhs, rhs, strides, padding, **kwargs)
    np.testing.assert_allclose(value(got), want, rtol=1e-4, atol=1e-4)


def test_conv_transpose_consistent_padding():
    lhs, rhs = floats(2, 5, 4, 3), floats(3, 2, 3, 4)
    want = lax.conv_transpose(lhs, rhs, (2, 2), [(1, 0), (0, 1)], use_consistent_padding=True)
    with numpy_evaluation():
        got = window.conv_transpose(lhs, rhs, (2, 2), [(1, 0), (0, 1)], use_consistent_padding=True)
    np.testing.assert_allclose(value(got), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("numbers", [None, ("NHWC", "HWIO", "NHWC")])
def test_patches_and_local(numbers):
    lhs = floats(2, 3, 6, 5) if numbers is None else floats(2, 6, 5, 3)
    args = ((2, 3), (1, 2), "SAME")
    want = lax.conv_general_dilated_patches(lhs, *args, dimension_numbers=numbers)
    spatial = want.shape[2:] if numbers is None else want.shape[1:3]
    rhs = floats(4, 18, *spatial) if numbers is None else floats(*spatial, 18, 4)
    local = lax.conv_general_dilated_local(
        lhs, rhs, (1, 2), "SAME", (2, 3), dimension_numbers=numbers
    )
    with numpy_evaluation():
        got = window.conv_general_dilated_patches(lhs, *args, dimension_numbers=numbers)
        mine = window.conv_general_dilated_local(
            lhs, rhs, (1, 2), "SAME", (2, 3), dimension_numbers=numbers
        )
    np.testing.assert_allclose(value(got), want, rtol=1e-5)
    np.testing.assert_allclose(value(mine), local, rtol=1e-4, atol=1e-5)


def test_dimension_numbers():
    for names in [None, ("NHWC", "HWIO", "NHWC"), ("CNHW", "IOWH", "NCWH")]:
        want = lax.conv_dimension_numbers((1, 2, 3, 4), (1, 2, 3, 4), names)
        assert window.conv_dimension_numbers(
            (1, 2, 3, 4), (1, 2, 3, 4), names
        ) == ConvDimensionNumbers(want.lhs_spec, want.rhs_spec, want.out_spec)


# ---- reduce_window

MONOIDS = {
    "add": (elementwise.add, lax.add, 0), "max": (elementwise.max, lax.max, -np.inf),
    "min": (elementwise.min, lax.min, np.inf), "mul": (elementwise.mul, lax.mul, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("monoid", MONOIDS)
@pytest.mark.parametrize("init", ["identity", 0.5])
def test_reduce_window(name, monoid, init):
    shape, kwargs = WINDOWS[name]
    ours, theirs, identity = MONOIDS[monoid]
    x = floats(*shape)
    start = np.float32(identity if init == "identity" else init)
    want = lax.reduce_window(x, start, theirs, **kwargs)
    with numpy_evaluation():
        got = window.reduce_window(x, float(start), ours, **kwargs)
    np.testing.assert_allclose(value(got), want, rtol=1e-4, atol=1e-4)


def test_reduce_window_integers_bools_and_nan():
    args = ((2,), (1,), "SAME")
    with numpy_evaluation():
        x = np.array([3, -5, 7], np.int8)
        low = np.iinfo(np.int8).min
        np.testing.assert_array_equal(
            value(window.reduce_window(x, low, elementwise.max, *args)),
            lax.reduce_window(x, np.int8(low), lax.max, *args),
        )
        mask = np.array([True, False, False])
        got = window.reduce_window(mask, False, elementwise.bitwise_or, *args)
        np.testing.assert_array_equal(value(got), [True, False, False])
        y = np.array([np.nan, 1, 2, 3], np.float32)
        np.testing.assert_array_equal(
            value(window.reduce_window(y, -np.inf, elementwise.max, *args)), [np.nan, 2, 3, 3]
        )


def test_reduce_window_of_tuples():
    x, i = floats(6), np.arange(6, dtype=np.int32)

    def ours(left, right):
        take = elementwise.ge(left[0], right[0])
        return elementwise.select(take, left[0], right[0]), elementwise.select(
            take, left[1], right[1]
        )

    def theirs(left, right):
        take = left[0] >= right[0]
        return lax.select(take, left[0], right[0]), lax.select(take, left[1], right[1])

    args = ((3,), (1,), "VALID")
    want = lax.reduce_window((x, i), (np.float32(-np.inf), np.int32(-1)), theirs, *args)
    with numpy_evaluation():
        got = window.reduce_window((x, i), (-np.inf, -1), ours, *args)
    for a, c in zip(got, want, strict=True):
        np.testing.assert_array_equal(value(a), c)


@pytest.mark.parametrize("name", WINDOWS)
def test_window_rules(name):
    shape, kwargs = WINDOWS[name]
    w = window_of(shape, kwargs)
    x = floats(*shape, dtype=np.float64)
    params = {"window": w}
    check_jvp(REDUCE_WINDOW_SUM, [x], params)
    check_transpose(REDUCE_WINDOW_SUM, [x], params, [0])
    finite = name not in ("only padding", "dilations")  # inf - inf
    for primitive in (REDUCE_WINDOW_MAX, REDUCE_WINDOW_MIN):
        if finite:
            check_jvp(primitive, [x], params)
    for primitive in (REDUCE_WINDOW_SUM, REDUCE_WINDOW_MAX, REDUCE_WINDOW_MIN, REDUCE_WINDOW_ARGMAX,
                      REDUCE_WINDOW_ARGMIN):  # fmt: skip
        check_batch(primitive, [x], params)
    with numpy_evaluation(), x64():
        choice = value(REDUCE_WINDOW_ARGMAX.bind(x, window=w))
        flat = value(REDUCE_WINDOW_MAX.bind(x, window=w))
        picked = value(WINDOW_GATHER.bind(x, choice, window=w))
        np.testing.assert_array_equal(picked, np.where(choice >= 0, flat, 0))
    source = floats(*choice.shape, dtype=np.float64)
    check_jvp(WINDOW_GATHER, [x, choice], params)
    check_transpose(WINDOW_GATHER, [x, choice], params, [0])
    check_jvp(WINDOW_SCATTER_ADD, [source, choice], params | {"shape": shape})
    check_transpose(WINDOW_SCATTER_ADD, [source, choice], params | {"shape": shape}, [0])
    check_batch(WINDOW_GATHER, [x, choice], params, vary=_same_choice)
    check_batch(WINDOW_SCATTER_ADD, [source, choice], params | {"shape": shape}, vary=_same_choice)


def _same_choice(i, k, x):
    return np.where(k == 1, np.minimum(x, 0), x).astype(x.dtype) if i == 1 else x + k


def test_select_and_scatter_add():
    x = np.round(2 * floats(2, 6, 7))  # with ties
    source = floats(2, 3, 3)
    args = ((1, 2, 3), (1, 2, 2), "VALID")
    want = jax.vjp(lambda x: lax.reduce_window(x, -np.inf, lax.max, *args), x)[1](source)[0]
    with numpy_evaluation():
        got = window.select_and_scatter_add(source, x, elementwise.ge, *args)
        np.testing.assert_allclose(value(got), want, rtol=1e-6)
        got = window.select_and_gather_add(x, x, elementwise.le, *args)
        np.testing.assert_allclose(value(got), lax.reduce_window(x, np.inf, lax.min, *args))


def test_first_nan_is_chosen():
    x = np.array([1.0, np.nan, np.nan, 0.0])
    with numpy_evaluation(), x64():
        w = Window((4,), (1,), ((0, 0),), (1,), (1,))
        assert value(REDUCE_WINDOW_ARGMAX.bind(x, window=w)) == [1]
        assert value(REDUCE_WINDOW_ARGMIN.bind(x, window=w)) == [1]


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: window.conv(floats(1, 2, 5), floats(1, 3, 2), (1,), "VALID"), TypeError, "lhs features"),
        (lambda: window.conv(floats(1, 2, 5), floats(1, 2), (1,), "VALID"), TypeError, "of one rank"),
        (lambda: window.conv(floats(1, 2, 5), floats(1, 2, 3), (1, 1), "VALID"), TypeError, "window_strides"),
        (lambda: window.conv(floats(1, 2, 5), floats(1, 2, 3), (1,), "BEST"), ValueError, "'padding'.*'BEST'"),
        (lambda: window.conv(floats(1, 2, 5), floats(1, 2, 3), (1,), [3]), TypeError, "'padding'.*pair"),
        (lambda: window.conv(floats(1, 2, 5), floats(1, 2, 3), (0,), "VALID"), TypeError, "window_strides.*positive"),
        (lambda: window.conv_general_dilated(floats(1, 2, 5), floats(1, 2, 3), (1,), "SAME", (2,)),
         ValueError, "conv_transpose"),
        (lambda: window.conv_general_dilated(floats(1, 2, 5), floats(1, 2, 3), (1,), "SAME",
                                             dimension_numbers=("NCW", "OIW", "NCH")), ValueError, "letters"),
        (lambda: window.conv_general_dilated(floats(1, 4, 5), floats(3, 2, 3), (1,), "SAME", feature_group_count=2),
         TypeError, "divide the output features"),
        (lambda: window.reduce_window(floats(5), floats(1), elementwise.add, (2,), (1,), "SAME"), TypeError,
         "'init_value'.*scalar"),
        (lambda: window.reduce_window(floats(5), 0.0, elementwise.add, (2, 2), (1,), "SAME"), TypeError,
         "'window_dimensions'.*one per axis"),
        (lambda: window.reduce_window(floats(9999), 0.0, elementwise.mul, (5000,), (1,), "SAME"), ValueError, "taps"),
    ],
)  # fmt: skip
def test_errors(call, error, match):
    with numpy_evaluation(), pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize("strides", [(0,), (-1,)])
@pytest.mark.parametrize("padding", ["SAME", "VALID", [(1, 1)]])
def test_strides_are_positive(strides, padding):
    x, w = np.ones((1, 1, 8), np.float32), np.ones((1, 1, 3), np.float32)
    for call in (
        lambda: jato.lax.conv_general_dilated(x, w, strides, padding),
        lambda: jato.lax.reduce_window(x[0, 0], 0.0, jato.lax.add, (3,), strides, padding),
    ):
        with pytest.raises(TypeError, match="window_strides.*expected positive integers"):
            call()
