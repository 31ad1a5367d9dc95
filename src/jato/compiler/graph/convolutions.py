"""Convolutions with channels in the form that the native routines compute.

Takes   a simplified graph.
Gives   every convolution with enough channels as a product of a matrix of patches: a `ConvProduct`,
        or a dot_general where the patches are the pixels themselves.
Runs    after simplify and before contractions.

    window smaller than the result   ->  transpose, conv_product "result", transpose
    window larger (a gradient by the kernel)  ->  transpose, conv_product "kernel", transpose
    1 x 1 windows without stride, windows as large as the image  ->  dot_general

Other convolutions stay what they are: stencils, which the loop passes compile.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from jato.base import dtypes
from jato.compiler.graph.contractions import splice
from jato.core.graph import Graph, Node
from jato.core.primitive import Primitive
from jato.core.staging import trace_to_graph
from jato.core.trace import set_trace
from jato.core.types import array_type
from jato.ops.contract import dot_general
from jato.ops.convert import convert_element_type
from jato.ops.convolution import CONV, Pads, has_channels, window_count
from jato.ops.structural import reshape, transpose

# The native routines take so many spatial axes.
MOST_AXES = 3


class ConvProduct(Primitive):
    """A form of the compiler, not an operation of its own: it is in no registry.

    form "result"   image [n, in.., c], kernel [window.., c / groups, f]  ->  [n, out.., f]
    form "kernel"   image [n, in.., c], other [n, window.., f]            ->  [out.., c, f]

    Params: form, window_strides, padding, lhs_dilation, rhs_dilation, feature_group_count,
    batch_group_count.  As in ops/convolution.py the "kernel" form has the image's channels for
    its batch and the images for its features; the groups are counted so, too."""

    def __init__(self) -> None:
        self.name = "conv_product"

    def type_rule(
        self, lhs: Any, rhs: Any, *, form: str, window_strides: tuple[int, ...], padding: Pads,
        lhs_dilation: tuple[int, ...], rhs_dilation: tuple[int, ...], feature_group_count: int,
        batch_group_count: int,
    ) -> Any:  # fmt: skip
        spatial = lhs.ndim - 2
        window = rhs.shape[:spatial] if form == "result" else rhs.shape[1:-1]
        out = tuple(
            map(window_count, lhs.shape[1:-1], window, window_strides, padding, lhs_dilation,
                rhs_dilation)
        )  # fmt: skip
        if form == "result":
            shape = (lhs.shape[0] // batch_group_count, *out, rhs.shape[-1])
        else:
            shape = (*out, lhs.shape[-1] // batch_group_count, rhs.shape[-1])
        return array_type(shape, lhs.dtype)


CONV_PRODUCT = ConvProduct()


def canonical_convolutions(graph: Graph) -> Graph:
    if not any(_is_product(n) for n in graph.nodes):
        return graph
    return splice(graph, lambda node: _rewritten(node) if _is_product(node) else None)


def _is_product(node: Node) -> bool:
    if node.primitive is not CONV:
        return False
    lhs, rhs = (a.aval for a in node.inputs)
    return lhs.ndim - 2 <= MOST_AXES and has_channels(lhs, rhs, node.outputs[0].aval, node.params)


def _rewritten(node: Node) -> Graph:
    lhs, rhs = (a.aval for a in node.inputs)
    out = node.outputs[0].aval
    wide = lhs.dtype if lhs.itemsize > 2 else dtypes.DTYPES[11]
    if out.itemsize > lhs.itemsize:
        wide = out.dtype

    def body(x: Any, y: Any) -> list[Any]:
        if wide != lhs.dtype:
            x, y = convert_element_type(x, wide), convert_element_type(y, wide)
        result = _product(x, y, out, node.params)
        return [convert_element_type(result, out.dtype, out.weak_type)]

    with set_trace(None):
        return trace_to_graph(body, [lhs, rhs], "conv_general_dilated")


def _product(x: Any, y: Any, out: Any, params: dict[str, Any]) -> Any:
    """A convolution of arrays of any layout in terms of dot_general or ConvProduct."""
    rows, features, *image = params["dimension_numbers"].lhs_spec
    outputs, inputs, *window = params["dimension_numbers"].rhs_spec
    out_rows, out_features, *places = params["dimension_numbers"].out_spec
    taps = [y.aval.shape[d] for d in window]
    counts = [out.shape[d] for d in places]
    plain = (
        params["feature_group_count"] == params["batch_group_count"] == 1
        and all(p == (0, 0) for p in params["padding"])
        and all(d == 1 for d in params["lhs_dilation"])
    )
    if plain and all(n == 1 for n in taps) and all(s == 1 for s in params["window_strides"]):
        y = reshape(
            _moved(y, (inputs, outputs, *window)), (y.aval.shape[inputs], y.aval.shape[outputs])
        )
        result = dot_general(x, y, (((features,), (0,)), ((), ())))
        # axes of the image in order, without the features; then the output features
        axes = [d for d in range(x.aval.ndim) if d != features]
        return _reordered(
            result, [*(axes.index(d) for d in (rows, *image)), len(axes)],
            (out_rows, *places, out_features),
        )  # fmt: skip
    if plain and taps == [x.aval.shape[d] for d in image]:
        result = dot_general(x, y, (((features, *image), (inputs, *window)), ((), ())))
        result = reshape(result, (*result.aval.shape, *([1] * len(places))))
        return _reordered(
            result, range(result.aval.ndim), (out_rows, out_features, *places)
        )
    options = {
        k: params[k]
        for k in (
            "window_strides", "padding", "lhs_dilation", "rhs_dilation", "feature_group_count",
            "batch_group_count",
        )
    }  # fmt: skip
    if prod(taps) > prod(counts):
        x = _moved(x, (features, *image, rows))
        y = _moved(y, (inputs, *window, outputs))
        result = CONV_PRODUCT.bind(x, y, form="kernel", **options)
        return _reordered(result, range(result.aval.ndim), (*places, out_rows, out_features))
    x = _moved(x, (rows, *image, features))
    y = _moved(y, (*window, inputs, outputs))
    result = CONV_PRODUCT.bind(x, y, form="result", **options)
    return _reordered(result, range(result.aval.ndim), (out_rows, *places, out_features))


def _moved(x: Any, axes: Sequence[int]) -> Any:
    return x if tuple(axes) == tuple(range(x.aval.ndim)) else transpose(x, tuple(axes))


def _reordered(x: Any, axes: Sequence[int], places: Sequence[int]) -> Any:
    """x with its axis axes[i] at places[i]."""
    order = [0] * len(places)
    for axis, place in zip(axes, places, strict=True):
        order[place] = axis
    return _moved(x, order)
