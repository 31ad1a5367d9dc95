"""Convolutions as matrix products of patches, against NumPy (the primitive's reference) and the peer."""

from __future__ import annotations

import numpy as np
import pytest

import jato
from jato import lax
from jato.ops.convolution import CONV

NHWC = ("NHWC", "HWIO", "NHWC")
NCHW = ("NCHW", "OIHW", "NCHW")

# image, kernel, strides, padding, layout, options
CASES = [
    ((2, 9, 11, 8), (3, 3, 8, 16), (1, 1), ((1, 1), (1, 1)), NHWC, {}),
    ((2, 9, 29, 8), (3, 3, 8, 40), (2, 1), ((1, 1), (1, 1)), NHWC, {}),
    ((2, 9, 11, 8), (3, 2, 8, 33), (2, 3), ((0, 0), (0, 0)), NHWC, {"rhs_dilation": (2, 1)}),
    ((2, 9, 11, 8), (3, 2, 8, 5), (1, 2), ((2, 3), (-1, 2)), NHWC, {"lhs_dilation": (2, 3)}),
    ((1, 7, 15, 3), (2, 3, 3, 4), (1, 1), ((-1, 0), (0, -2)), NHWC, {}),
    ((2, 8, 9, 11), (16, 8, 3, 3), (2, 2), ((1, 1), (1, 1)), NCHW, {}),
    ((2, 9, 11, 8), (3, 3, 4, 16), (1, 1), ((1, 1), (1, 1)), NHWC, {"feature_group_count": 2}),
    ((4, 9, 11, 8), (3, 3, 8, 16), (1, 1), ((1, 1), (1, 1)), NHWC, {"batch_group_count": 2}),
    ((2, 9, 11, 8), (3, 3, 2, 20), (2, 1), ((1, 1), (2, 2)), NHWC,
     {"feature_group_count": 4, "rhs_dilation": (1, 2)}),
    ((3, 14, 14, 8), (1, 1, 8, 16), (1, 1), ((0, 0), (0, 0)), NHWC, {}),
    ((3, 14, 14, 8), (1, 1, 8, 16), (2, 2), ((0, 0), (0, 0)), NHWC, {}),
    ((2, 8, 14, 14), (16, 8, 1, 1), (1, 1), ((0, 0), (0, 0)), NCHW, {}),
    ((4, 9, 11, 8), (9, 11, 8, 16), (1, 1), ((0, 0), (0, 0)), NHWC, {}),
    ((1, 60, 60, 1), (50, 50, 1, 4), (1, 1), ((0, 0), (0, 0)), NHWC, {}),
    ((2, 40, 8), (5, 8, 16), (2,), ((2, 2),), ("NWC", "WIO", "NWC"), {}),
    ((2, 8, 40), (16, 8, 5), (2,), ((2, 2),), ("NCW", "OIW", "NCW"), {}),
    ((2, 6, 7, 8, 8), (3, 2, 3, 8, 16), (2, 1, 1), ((1, 1),) * 3, ("NDHWC", "DHWIO", "NDHWC"), {}),
    ((2, 6, 7, 8, 8), (3, 2, 3, 8, 16), (2, 1, 2), ((1, 1), (0, 1), (1, 2)),
     ("NDHWC", "DHWIO", "NDHWC"), {"lhs_dilation": (1, 2, 1), "rhs_dilation": (2, 1, 1)}),
    ((2, 400, 4, 300), (2, 3, 300, 8), (1, 1), ((0, 1), (1, 1)), NHWC, {}),
    # dilated images: phases with many taps, one and none; strides and dilations with common factors
    ((2, 9, 11, 8), (3, 3, 8, 16), (1, 1), ((1, 2), (2, 1)), NHWC, {"lhs_dilation": (2, 2)}),
    ((2, 9, 11, 8), (1, 2, 8, 16), (1, 1), ((0, 0), (1, 1)), NHWC, {"lhs_dilation": (3, 2)}),
    ((2, 9, 11, 8), (2, 5, 8, 16), (2, 3), ((3, -2), (4, 4)), NHWC,
     {"lhs_dilation": (4, 6), "rhs_dilation": (2, 4)}),
    ((2, 9, 11, 8), (4, 3, 8, 16), (3, 2), ((-3, 9), (5, 0)), NHWC,
     {"lhs_dilation": (2, 3), "rhs_dilation": (3, 1)}),
    ((2, 9, 11, 8), (3, 4, 4, 16), (1, 1), ((2, 2), (3, 3)), NHWC,
     {"lhs_dilation": (2, 2), "feature_group_count": 2}),
    ((4, 9, 11, 8), (1, 4, 8, 16), (1, 1), ((0, 1), (3, 3)), NHWC,
     {"lhs_dilation": (2, 2), "batch_group_count": 2}),
    ((2, 1, 17, 8), (1, 5, 8, 16), (1, 1), ((0, 0), (2, 2)), NHWC, {"lhs_dilation": (5, 2)}),
]  # fmt: skip


def _arrays(image, kernel, dtype=np.float32):
    rng = np.random.default_rng(0)
    return rng.standard_normal(image).astype(dtype), rng.standard_normal(kernel).astype(dtype)


def _function(strides, padding, layout, options, library=lax):
    return lambda x, k: library.conv_general_dilated(
        x, k, strides, padding, dimension_numbers=layout, **options
    )


def _reference(x, k, strides, padding, layout, options):
    spatial = len(strides)
    parameters = {
        "lhs_dilation": (1,) * spatial, "rhs_dilation": (1,) * spatial, "feature_group_count": 1,
        "batch_group_count": 1, **options,
    }  # fmt: skip
    numbers = lax.conv_dimension_numbers(x.shape, k.shape, layout)
    return CONV.reference(
        x.astype(np.float64), k.astype(np.float64), window_strides=strides, padding=padding,
        dimension_numbers=numbers, precision=None, preferred_element_type=None, **parameters,
    )  # fmt: skip


def _close(found, expected, tolerance):
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(np.asarray(found, np.float64) / scale, expected / scale, atol=tolerance)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{c[1]}")
def test_result_agrees_with_numpy(case):
    image, kernel, *rest = case
    x, k = _arrays(image, kernel)
    compiled = jato.jit(_function(*rest)).lower(x, k).compile()
    assert "conv" in compiled.as_text() or "gemm" in compiled.as_text()
    _close(compiled(x, k), _reference(x, k, *rest), 2e-6)


@pytest.mark.parametrize("case", CASES[:-1], ids=lambda c: f"{c[0]}-{c[1]}")
def test_gradients_agree_with_the_peer(case):
    jax = pytest.importorskip("jax")
    image, kernel, *rest = case
    x, k = _arrays(image, kernel)

    def gradients(module, library):
        f = _function(*rest, library)
        return module.jit(module.grad(lambda x, k: (f(x, k) ** 2).sum(), argnums=(0, 1)))(x, k)

    for found, expected in zip(gradients(jato, lax), gradients(jax, jax.lax), strict=True):
        _close(found, np.asarray(expected, np.float64), 2e-5)


def test_float64_and_half():
    case = ((2, 9, 11, 8), (3, 3, 8, 17), (2, 1), ((1, 1), (1, 1)), NHWC, {})
    x, k = _arrays(*case[:2], np.float64)
    with jato.enable_x64(True):
        _close(jato.jit(_function(*case[2:]))(x, k), _reference(x, k, *case[2:]), 1e-14)
    x, k = x.astype(np.float16), k.astype(np.float16)
    found = jato.jit(_function(*case[2:]))(x, k)
    assert found.dtype == np.float16
    _close(found, _reference(x, k, *case[2:]), 1e-3)


@pytest.mark.parametrize("width", [1, 2, 13, 14, 15, 27, 28, 29])
@pytest.mark.parametrize("features", [4, 15, 16, 17, 31, 32, 33])
def test_widths_around_the_register_tile(width, features):
    case = ((2, 40, width, 16), (3, 3, 16, features), (1, 1), ((1, 1), (1, 1)), NHWC, {})
    x, k = _arrays(*case[:2])
    _close(jato.jit(_function(*case[2:]))(x, k), _reference(x, k, *case[2:]), 2e-6)


def test_the_sum_does_not_depend_on_chance():
    x, k = _arrays((8, 32, 32, 16), (8, 32, 32, 32))
    f = jato.jit(
        lambda x, k: lax.conv_general_dilated(
            x, k, (1, 1), ((1, 1), (1, 1)), dimension_numbers=("CHWN", "IHWO", "HWNC")
        )
    )
    first = np.asarray(f(x, k))
    for _ in range(5):
        assert np.array_equal(first, np.asarray(f(x, k)))


def test_a_constant_kernel_and_no_images():
    kernel = np.ones((3, 3, 8, 16), np.float32)
    f = jato.jit(lambda x: lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=NHWC))
    x = np.ones((2, 20, 20, 8), np.float32)
    _close(f(x), _reference(x, kernel, (1, 1), ((1, 1), (1, 1)), NHWC, {}), 2e-6)
    assert f(np.ones((0, 20, 20, 8), np.float32)).shape == (0, 20, 20, 16)
