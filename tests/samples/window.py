"""Samples of convolutions and of the primitives over windows."""

from __future__ import annotations

import numpy as np

from jato.ops import window
from jato.ops.convolution import CONV
from samples.elementwise import rng_for, values
from samples.sample import Sample

# lhs shape, rhs shape, keyword arguments
CONVS = {
    "plain 1d": ((2, 3, 10), (4, 3, 3), {"window_strides": (1,), "padding": "VALID"}),
    "no spatial axes": ((2, 3), (4, 3), {"window_strides": (), "padding": "VALID"}),
    "same 2d": ((2, 3, 7, 6), (4, 3, 3, 2), {"window_strides": (1, 1), "padding": "SAME"}),
    "same lower": ((1, 1, 7, 6), (1, 1, 2, 4), {"window_strides": (2, 1), "padding": "SAME_LOWER"}),
    "strides": ((2, 3, 9, 8), (4, 3, 3, 2), {"window_strides": (2, 3), "padding": [(1, 2), (0, 1)]}),
    "negative padding": ((2, 1, 9), (1, 1, 2), {"window_strides": (2,), "padding": [(-1, -2)]}),
    "lhs dilation": ((2, 3, 5, 4), (4, 3, 3, 2), {
        "window_strides": (1, 2), "padding": [(2, 1), (0, 3)], "lhs_dilation": (2, 3)}),
    "rhs dilation": ((2, 3, 9, 8), (4, 3, 3, 2), {
        "window_strides": (1, 2), "padding": "SAME", "rhs_dilation": (2, 3)}),
    "all": ((2, 2, 5, 4), (3, 2, 3, 2), {
        "window_strides": (3, 2), "padding": [(4, -1), (3, 2)], "lhs_dilation": (2, 3), "rhs_dilation": (3, 2)}),
    "groups": ((2, 6, 7), (9, 2, 3), {"window_strides": (2,), "padding": "SAME", "feature_group_count": 3}),
    "depthwise": ((2, 4, 7, 5), (8, 1, 3, 3), {
        "window_strides": (1, 1), "padding": "SAME", "feature_group_count": 4}),
    "batch groups": ((6, 2, 7), (9, 2, 3), {"window_strides": (1,), "padding": [(1, 0)], "batch_group_count": 3}),
    "nhwc": ((2, 7, 6, 3), (3, 2, 3, 4), {
        "window_strides": (1, 2), "padding": "SAME", "dimension_numbers": ("NHWC", "HWIO", "NHWC")}),
    "odd layout": ((7, 3, 2, 6), (2, 4, 3, 3), {
        "window_strides": (1, 2), "padding": "SAME", "dimension_numbers": ("HCNW", "WOIH", "CWHN")}),
    "odd layout groups": ((7, 4, 2, 6), (2, 6, 2, 3), {
        "window_strides": (1, 2), "padding": "SAME", "dimension_numbers": ("HCNW", "WOIH", "CWHN"),
        "feature_group_count": 2}),
    "window too big": ((1, 1, 3), (1, 1, 5), {"window_strides": (1,), "padding": "VALID"}),
    "no rows": ((0, 3, 5), (4, 3, 3), {"window_strides": (1,), "padding": "VALID"}),
    "3d": ((1, 2, 4, 5, 3), (2, 2, 2, 3, 2), {"window_strides": (1, 2, 1), "padding": "SAME"}),
}  # fmt: skip


def conv_params(left, right, kwargs):
    """The primitive's parameters for the arguments of the function."""
    caught = {}
    original = CONV.bind
    CONV.bind = lambda *args, **params: caught.update(params)
    try:
        window.conv_general_dilated(np.zeros(left), np.zeros(right), **kwargs)
    finally:
        del CONV.bind
    assert CONV.bind == original
    return caught


WINDOWS = {
    "1d": ((9,), {"window_dimensions": (3,), "window_strides": (1,), "padding": "VALID"}),
    "same": ((2, 7, 6), {"window_dimensions": (1, 3, 2), "window_strides": (1, 2, 2), "padding": "SAME"}),
    "strided over": ((10,), {"window_dimensions": (2,), "window_strides": (3,), "padding": "VALID"}),
    "dilations": ((7, 6), {
        "window_dimensions": (3, 2), "window_strides": (2, 1), "padding": [(2, 3), (1, 0)],
        "base_dilation": (2, 3), "window_dilation": (2, 3)}),
    "only padding": ((3,), {"window_dimensions": (2,), "window_strides": (1,), "padding": [(3, 2)]}),
    "negative padding": ((9,), {"window_dimensions": (2,), "window_strides": (2,), "padding": [(-2, -1)]}),
    "unit window": ((4, 3), {"window_dimensions": (1, 1), "window_strides": (2, 1), "padding": "VALID"}),
    "empty": ((0, 3), {"window_dimensions": (1, 2), "window_strides": (1, 1), "padding": "VALID"}),
    "no window": ((2,), {"window_dimensions": (3,), "window_strides": (1,), "padding": "VALID"}),
}  # fmt: skip


def window_of(shape, kwargs):
    kwargs = {"base_dilation": None, "window_dilation": None} | kwargs
    return window._window(
        "test", shape, kwargs["window_dimensions"], kwargs["window_strides"], kwargs["padding"],
        kwargs["base_dilation"], kwargs["window_dilation"],
    )  # fmt: skip


def convolutions():
    rng = rng_for("conv")
    found = []
    for name, (left, right, kwargs) in CONVS.items():
        params = conv_params(left, right, kwargs)
        some = name in ("all", "no spatial axes", "groups", "no rows")
        for dtype in ("float64", *(("float32", "float16", "int16", "complex64") if some else ())):
            operands = values(rng, dtype, left), values(rng, dtype, right)
            batch = dtype == "float64" and left[0] < 3
            found.append(Sample(operands, params, ulps=1e5, batch=batch))
    return found


def reductions(name, dtypes):
    rng = rng_for(name)
    found = []
    for key, (shape, kwargs) in WINDOWS.items():
        for dtype in dtypes:
            smooth = name == "reduce_window_sum" or key not in ("only padding", "dilations")
            params = {"window": window_of(shape, kwargs)}
            found.append(Sample((values(rng, dtype, shape),), params, smooth=smooth, ulps=1e4))
    return found


def choices(scatter):
    rng = rng_for("choice")
    found = []
    for shape, kwargs in WINDOWS.values():
        w = window_of(shape, kwargs)
        counts = w.counts(shape)
        params = {"window": w} | ({"shape": shape} if scatter else {})
        # only taps that exist may be chosen
        taps = w.numpy_view(np.ones(shape, bool), False)
        choice = np.where(taps.any(-1), taps.argmax(-1), -1).astype(np.int32)
        for dtype in ("float64", "float16", "int32"):
            x = values(rng, dtype, counts if scatter else shape)
            found.append(Sample((x, choice), params, ulps=64, batch=False))
    return found


def samples():
    numbers = ("float64", "float32", "float16", "int8", "uint32")
    return {
        "conv_general_dilated": convolutions(),
        "reduce_window_sum": reductions("reduce_window_sum", (*numbers, "complex64")),
        **{
            name: reductions(name, (*numbers, "bool"))
            for name in (
                "reduce_window_max",
                "reduce_window_min",
                "reduce_window_argmax",
                "reduce_window_argmin",
            )
        },
        "window_gather": choices(False),
        "window_scatter_add": choices(True),
    }
