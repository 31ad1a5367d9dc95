"""Convolutions with channels as library steps.

Takes   a conv_product in the form that graph/convolutions.py makes.
Gives   one library step: the runtime multiplies patches of slabs of the image (native/core/convolution.h)
        and splits the work over threads.
"""

from __future__ import annotations

from math import prod

from jato.compiler.graph.convolutions import MOST_AXES
from jato.compiler.plan import PlanContext
from jato.compiler.steps import Library
from jato.core.graph import Node


def plan_conv(context: PlanContext, node: Node) -> None:
    image, other = (a.aval for a in node.inputs)
    out = node.outputs[0].aval
    if out.size == 0:
        return
    params = node.params
    by_feature, by_batch = params["feature_group_count"], params["batch_group_count"]
    groups = by_feature * by_batch
    images, *extents, channels = image.shape
    pixel = channels
    is_result = params["form"] == "result"
    window = other.shape[: len(extents)] if is_result else other.shape[1:-1]
    counts = out.shape[1:-1] if is_result else out.shape[: len(extents)]
    # what the groups divide: the images or their channels
    if (by_batch if is_result else by_feature) > 1:
        images //= groups
        offset = images * prod(extents) * pixel
    else:
        channels //= groups
        offset = channels
    missing = MOST_AXES - len(extents)
    ones, zeros = [1] * missing, [0] * missing
    numbers = [
        out.dtype_code, images, groups, channels, other.shape[-1] // groups, offset, pixel,
        *ones, *extents, *ones, *window, *ones, *counts,
        *ones, *params["window_strides"], *ones, *params["rhs_dilation"],
        *zeros, *(low for low, _ in params["padding"]), *ones, *params["lhs_dilation"],
    ]  # fmt: skip
    work = groups * images * channels * (other.shape[-1] // groups) * prod(window) * prod(counts)
    name = "conv" if is_result else "conv_kernel"
    operands = [context.in_memory(a) for a in node.inputs]
    context.steps.append(Library(name, operands, [node.outputs[0]], numbers, work / 50.0))
