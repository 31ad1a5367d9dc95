"""dot_general against JAX, and its rules against each other."""

import numpy as np
import pytest
from jax import lax
from reference_rules import check_batch, check_jvp, check_transpose, numpy_evaluation, value
from samples.contract import DOTS

from jato.ops import contract
from jato.ops.contract import DOT_GENERAL, dims_of

RNG = np.random.default_rng(0)


def operands(name, dtype):
    left, right, numbers = DOTS[name]
    return (
        (3 * RNG.standard_normal(left)).astype(dtype),
        (3 * RNG.standard_normal(right)).astype(dtype),
        numbers,
    )


@pytest.mark.parametrize("name", DOTS)
@pytest.mark.parametrize(
    "dtype", [np.float32, np.int32, np.uint8, np.complex64, np.bool_, np.float16, "bfloat16"]
)
def test_dot_general(name, dtype):
    lhs, rhs, numbers = operands(name, dtype)
    want = np.asarray(lax.dot_general(lhs, rhs, numbers))
    with numpy_evaluation():
        got = value(contract.dot_general(lhs, rhs, numbers))
    assert got.dtype == want.dtype
    tolerance = {"bfloat16": 2e-2, np.float16: 2e-3}.get(dtype, 1e-4)
    np.testing.assert_allclose(
        got.astype(np.complex64), want.astype(np.complex64), rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("name", DOTS)
def test_rules(name):
    lhs, rhs, numbers = operands(name, np.float64)
    params = {"dimension_numbers": numbers, "precision": None, "preferred_element_type": None}
    check_jvp(DOT_GENERAL, [lhs, rhs], params, tolerance=1e-5)
    check_transpose(DOT_GENERAL, [lhs, rhs], params, [0])
    check_transpose(DOT_GENERAL, [lhs, rhs], params, [1])
    check_batch(DOT_GENERAL, [lhs, rhs], params)
    check_transpose(DOT_GENERAL, [lhs + 1j * lhs, rhs - 1j * rhs], params, [1])


def test_element_type():
    x = RNG.standard_normal((3, 4)).astype(np.float16)
    with numpy_evaluation():
        got = value(
            contract.dot_general(x, x, (((1,), (1,)), ((), ())), preferred_element_type=np.float32)
        )
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, x.astype(np.float32) @ x.astype(np.float32).T, rtol=1e-6)
        wide = contract.dot_general(x.astype(np.int8), x.astype(np.int8).T, (((1,), (0,)), ((), ())),
                                    preferred_element_type=np.int32)  # fmt: skip
        assert wide.dtype == np.int32
    params = {"dimension_numbers": (((1,), (1,)), ((), ())), "precision": None,
              "preferred_element_type": np.dtype(np.float64)}  # fmt: skip
    x = x.astype(np.float32)
    check_transpose(DOT_GENERAL, [x, x], params, [0], tolerance=1e-5)
    check_transpose(DOT_GENERAL, [x, x], params, [1], tolerance=1e-5)


def test_dot_and_batch_matmul():
    a, c, v = (RNG.standard_normal(s).astype(np.float32) for s in ((3, 4), (4, 5), (4,)))
    with numpy_evaluation():
        for left, right in [(a, c), (a, v), (v, c), (v, v)]:
            np.testing.assert_allclose(value(contract.dot(left, right)), left @ right, rtol=1e-5)
        stack = RNG.standard_normal((2, 3, 4)).astype(np.float32)
        got = contract.batch_matmul(stack, np.swapaxes(stack, 1, 2))
        np.testing.assert_allclose(value(got), stack @ np.swapaxes(stack, 1, 2), rtol=1e-5)
        mixed = contract.dot(a, v.astype(np.float16))
        assert mixed.dtype == np.float32


def test_dims():
    d = dims_of(np.zeros((3, 2, 4, 6)), np.zeros((4, 6, 5, 2)), (((2,), (0,)), ((1, 3), (3, 1))))
    assert (d.lhs_free, d.rhs_free, d.batch_shape) == ((0,), (2,), (2, 6))
    assert d.matrix_sizes == (12, 3, 5, 4)


def test_precision_spellings():
    canonical = contract.canonical_precision
    assert canonical("highest") is canonical(lax.Precision.HIGHEST) or canonical(
        lax.Precision.HIGHEST
    )
    hash(canonical(("high", None)))
    assert canonical(None) is None


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda x: contract.dot(x, x), r"lhs.shape\[-1\] == rhs.shape\[0\], got .*3,4"),
        (
            lambda x: contract.dot_general(x, x, (((1,), (0,)), ((), ()))),
            r"equal extents of the contracted axes, got \[4\]",
        ),
        (lambda x: contract.dot_general(x, x, (((7,), (0,)), ((), ()))), "different axes of lhs"),
        (lambda x: contract.dot_general(x, x, ((1, 0), ((), ()))), "dimension_numbers"),
        (lambda x: contract.batch_matmul(x, x[0]), "one rank of at least 2"),
    ],
)
def test_errors(call, match):
    with numpy_evaluation(), pytest.raises(TypeError, match=match):
        call(np.zeros((3, 4), np.float32))
