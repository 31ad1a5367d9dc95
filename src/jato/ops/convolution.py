"""The primitive conv_general_dilated, and the geometry of windows.

Along one spatial axis, with kernel k, input position x and output position y,

    x * lhs_dilation = y * stride + k * rhs_dilation - pad_low

so that each of the three (result, gradient by the input, gradient by the kernel) is again such a
convolution with the roles exchanged; `_input_cotangent` and `_kernel_cotangent` do just that.
Channels: with `feature_group_count` G, output channel o of group g sees the input channels of
group g; with `batch_group_count` B, output channel o of group g sees the batch rows of group g.

`lower` is a stencil: a sum over the window and the input channels with reads outside the input
guarded.  Windows that never leave the input carry no guard.  Start reading at `Conv.lower`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jato.base import dtypes
from jato.core.graph import Literal
from jato.core.primitive import AxisData, UndefinedPrimal
from jato.core.types import array_type, type_of
from jato.ops.contract import Product, accumulator_dtype, sum_of
from jato.ops.convert import convert_element_type
from jato.ops.families import transposed
from jato.ops.shapes import move_axis, zeros
from jato.ops.slicing import PAD
from jato.ops.structural import reshape, rev

# Windows of up to so many taps become straight-line code: 2x faster than a loop over 5 x 5.
UNROLLED_TAPS = 9

# Beyond so many taps writing a padded image (0.3 ms for 1M pixels) is cheaper than a guard on every
# read: 5 x 5 taps take 0.8 against 2.7 ms, 3 x 3 taps 0.6 against 0.3.
GUARDED_TAPS = 12

# From so many output features (per group) on, and so many products per element of the result, a
# convolution is a matrix product of patches; below it is a stencil.
PRODUCT_FEATURES = 4
PRODUCT_TAPS = 4
PRODUCT_WORK = 32 * 1024

Pads = tuple[tuple[int, int], ...]


class ConvDimensionNumbers(NamedTuple):
    """Where the axes are.

    lhs_spec   batch, feature, spatial..
    rhs_spec   out feature, in feature, spatial..
    out_spec   batch, feature, spatial..
    """

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


# ---- geometry of windows along one axis


def dilated(size: int, dilation: int) -> int:
    """Extent with `dilation - 1` holes between neighbours."""
    return 0 if size == 0 else (size - 1) * dilation + 1


def window_count(
    size: int, window: int, stride: int, pads: tuple[int, int], base: int, dilation: int
) -> int:
    """How many windows fit: the extent of the result."""
    room = dilated(size, base) + pads[0] + pads[1] - dilated(window, dilation)
    return room // stride + 1 if room >= 0 else 0


def input_gradient_pads(
    size: int, window: int, count: int, stride: int, pads: tuple[int, int], base: int, dilation: int
) -> tuple[int, int]:
    """Padding of the window over the cotangent, dilated by `stride`, that gives the gradient."""
    low = dilated(window, dilation) - 1 - pads[0]
    high = dilated(size, base) - 1 - dilated(count, stride) - low + dilated(window, dilation)
    return low, high


def source_position(
    b: Any, y: Any, k: Any, size: int, stride: int, pad_low: int, base: int, dilation: int,
    count: int, window: int,
) -> tuple[Any, Any]:  # fmt: skip
    """Loop IR: (position in the input, condition that it exists or None if it always does)."""
    x = b.add(b.mul(y, b.index(stride)), b.mul(k, b.index(dilation)))
    x = b.add(x, b.index(-pad_low)) if pad_low else x
    highest = (count - 1) * stride + (window - 1) * dilation - pad_low
    inside = None
    if pad_low > 0:
        inside = b.ge(x, b.index(0))
    if highest > dilated(size, base) - 1:
        below = b.lt(x, b.index(dilated(size, base)))
        inside = below if inside is None else b.and_(inside, below)
    if base > 1:
        on_grid = b.eq(b.rem(x, b.index(base)), b.index(0))
        inside = on_grid if inside is None else b.and_(inside, on_grid)
        x = b.div(x, b.index(base))
    return x, inside


def all_of(b: Any, conditions: Sequence[Any]) -> Any:
    """Loop IR: their conjunction, None if there is none."""
    result = None
    for condition in conditions:
        if condition is not None:
            result = condition if result is None else b.and_(result, condition)
    return result


def has_channels(lhs: Any, rhs: Any, out: Any, params: dict[str, Any]) -> bool:
    """Is the convolution worth computing as a matrix product of patches?"""
    numbers: ConvDimensionNumbers = params["dimension_numbers"]
    groups = params["feature_group_count"] * params["batch_group_count"]
    features = rhs.shape[numbers.rhs_spec[0]] // groups
    taps = math.prod(rhs.shape) // max(1, rhs.shape[numbers.rhs_spec[0]])
    return (
        dtypes.is_floating(lhs.dtype)
        and lhs.dtype == rhs.dtype
        and dtypes.is_floating(out.dtype)
        and max(lhs.itemsize, out.itemsize) <= 8
        and len(numbers.lhs_spec) > 2
        and features >= PRODUCT_FEATURES
        and taps >= PRODUCT_TAPS
        and out.size * taps >= PRODUCT_WORK
    )


# ---- the primitive


def _sum_of_taps(b: Any, extents: tuple[int, ...], product: Any, name: str) -> Any:
    """The sum over channels and taps: a loop whose body is a few taps in a row.

    Straight-line taps overlap in the processor; more than UNROLLED_TAPS of them only take time
    to compile.  25 taps: 5 times 5.
    """
    if math.prod(extents) <= UNROLLED_TAPS:
        return sum_of(b, extents, product, name, unroll=True)
    *outer, last = extents
    straight = max(d for d in range(1, UNROLLED_TAPS + 1) if last % d == 0)

    def some_taps(*indices: Any) -> Any:
        *before, first = indices
        return sum_of(
            b, (straight,),
            lambda k: product(*before, b.add(b.mul(first, b.index(straight)), k)), name, unroll=True,
        )  # fmt: skip

    return sum_of(b, (*outer, last // straight), some_taps, name)


class Conv(Product):
    """Params: window_strides, padding ((low, high)..), lhs_dilation, rhs_dilation,
    dimension_numbers, feature_group_count, batch_group_count, precision, preferred_element_type."""

    fusable = True
    rereads = True

    def result_type(
        self, lhs: Any, rhs: Any, *, window_strides: tuple[int, ...], padding: Pads,
        lhs_dilation: tuple[int, ...], rhs_dilation: tuple[int, ...],
        dimension_numbers: ConvDimensionNumbers, feature_group_count: int, batch_group_count: int,
        precision: Any, preferred_element_type: Any,
    ) -> Any:  # fmt: skip
        numbers = dimension_numbers
        rank = lhs.ndim
        if rhs.ndim != rank or rank < 2:
            self.fail(f"expected lhs and rhs of one rank of at least 2, got {lhs} and {rhs}.")
        if lhs.dtype != rhs.dtype:
            self.fail(f"expected lhs and rhs of one dtype, got {lhs} and {rhs}.")
        spatial = rank - 2
        steps_of = {
            "window_strides": window_strides,
            "lhs_dilation": lhs_dilation,
            "rhs_dilation": rhs_dilation,
        }
        for name, values in (steps_of | {"padding": padding}).items():
            if len(values) != spatial:
                self.fail(
                    f"expected {name} with one entry per spatial axis ({spatial} for {lhs}), "
                    f"got {values}."
                )
        for name, steps in steps_of.items():
            if any(s < 1 for s in steps):
                self.fail(f"expected {name} >= 1, got {steps}.")
        groups, batch_groups = feature_group_count, batch_group_count
        channels, inputs, outputs = (
            lhs.shape[numbers.lhs_spec[1]],
            rhs.shape[numbers.rhs_spec[1]],
            rhs.shape[numbers.rhs_spec[0]],
        )  # fmt: skip
        rows = lhs.shape[numbers.lhs_spec[0]]
        if groups < 1 or batch_groups < 1 or (groups > 1 and batch_groups > 1):
            self.fail(
                "expected feature_group_count and batch_group_count >= 1, at most one of them "
                "above 1, "
                f"got {groups} and {batch_groups}.", error=ValueError,
            )  # fmt: skip
        if channels != groups * inputs:
            self.fail(
                f"expected lhs features = feature_group_count * rhs input features, got {channels} "
                f"(lhs {lhs}) and {groups} * {inputs} (rhs {rhs})."
            )
        if outputs % groups or outputs % batch_groups or rows % batch_groups:
            self.fail(
                f"expected the group count ({groups * batch_groups}) to divide the output features "
                f"({outputs}) and, for batch groups, the batch ({rows})."
            )
        shape = [0] * rank
        shape[numbers.out_spec[0]] = rows // batch_groups
        shape[numbers.out_spec[1]] = outputs
        for i in range(spatial):
            shape[numbers.out_spec[2 + i]] = window_count(
                lhs.shape[numbers.lhs_spec[2 + i]], rhs.shape[numbers.rhs_spec[2 + i]],
                window_strides[i], padding[i], lhs_dilation[i], rhs_dilation[i],
            )  # fmt: skip
        dtype = lhs.dtype if preferred_element_type is None else preferred_element_type
        weak = lhs.weak_type and rhs.weak_type and preferred_element_type is None
        return array_type(tuple(shape), dtype, weak)

    @transposed
    def transpose(self, cotangent: Any, lhs: Any, rhs: Any, **params: Any) -> Sequence[Any]:
        left = _aval(lhs)
        right = _aval(rhs)
        wide = type_of(cotangent).dtype
        results: list[Any] = [None, None]
        if isinstance(lhs, UndefinedPrimal):
            out = _input_cotangent(cotangent, convert_element_type(rhs, wide), left, right, params)
            results[0] = convert_element_type(out, left.dtype)
        if isinstance(rhs, UndefinedPrimal):
            out = _kernel_cotangent(cotangent, convert_element_type(lhs, wide), left, right, params)
            results[1] = convert_element_type(out, right.dtype)
        return results

    def batch(self, axis: AxisData, operands: Any, dims: Any, **params: Any) -> Any:
        (lhs, rhs), (ld, rd) = operands, dims
        numbers = params["dimension_numbers"]
        groups, batch_groups = params["feature_group_count"], params["batch_group_count"]
        n = axis.size
        if n == 0:
            left = [m for i, m in enumerate(type_of(lhs).shape) if i != ld]
            right = [m for i, m in enumerate(type_of(rhs).shape) if i != rd]
            one = self.type_rule(
                array_type(tuple(left), type_of(lhs).dtype),
                array_type(tuple(right), type_of(rhs).dtype), **params,
            )  # fmt: skip
            return zeros(array_type((0, *one.shape), one.dtype)), 0
        rows, features = numbers.out_spec[:2]
        if rd is None:  # more rows: (group, n, row)
            lhs = _merge(lhs, ld, numbers.lhs_spec[0], batch_groups)
            return _split(self.bind(lhs, rhs, **params), rows, 1, n)
        count = groups * batch_groups
        if ld is None:  # more output features: (group, n, feature)
            rhs = _merge(rhs, rd, numbers.rhs_spec[0], count)
            return _split(self.bind(lhs, rhs, **params), features, count, n)
        # every mapped row is a group of its own
        rhs = _merge(rhs, rd, numbers.rhs_spec[0], 1)
        if batch_groups > 1:
            lhs = _merge(lhs, ld, numbers.lhs_spec[0], 1)
            params["batch_group_count"] = n * batch_groups
        else:
            lhs = _merge(lhs, ld, numbers.lhs_spec[1], 1)
            params["feature_group_count"] = n * groups
        return _split(self.bind(lhs, rhs, **params), features, 1, n)

    def lower(
        self, b: Any, inputs: Any, index: Any, out: Any, *, window_strides: tuple[int, ...],
        padding: Pads, lhs_dilation: tuple[int, ...], rhs_dilation: tuple[int, ...],
        dimension_numbers: ConvDimensionNumbers, feature_group_count: int, batch_group_count: int,
        precision: Any, preferred_element_type: Any,
    ) -> Any:  # fmt: skip
        lhs, rhs = inputs
        numbers = dimension_numbers
        left, right = lhs.aval.shape, rhs.aval.shape
        name = accumulator_dtype(lhs.aval, out)
        row, feature = index[numbers.out_spec[0]], index[numbers.out_spec[1]]
        places = [index[d] for d in numbers.out_spec[2:]]
        channels, outputs = right[numbers.rhs_spec[1]], right[numbers.rhs_spec[0]]
        first_channel = b.index(0)
        if feature_group_count > 1:
            group = b.div(feature, b.index(outputs // feature_group_count))
            first_channel = b.mul(group, b.index(channels))
        if batch_group_count > 1:
            group = b.div(feature, b.index(outputs // batch_group_count))
            row = b.add(b.mul(group, b.index(out.shape[numbers.out_spec[0]])), row)
        spec = zip(numbers.lhs_spec[2:], numbers.rhs_spec[2:], numbers.out_spec[2:], strict=True)
        extents = [(left[i], right[k], out.shape[o]) for i, k, o in spec]

        def product(*reduced: Any) -> Any:
            channel, window = reduced[0], reduced[1:]
            positions, conditions = [], []
            for i, (size, taps, count) in enumerate(extents):
                x, inside = source_position(
                    b, places[i], window[i], size, window_strides[i], padding[i][0],
                    lhs_dilation[i], rhs_dilation[i], count, taps,
                )  # fmt: skip
                positions.append(x)
                conditions.append(inside)
            at: list[Any] = [None] * len(left)
            tap: list[Any] = [None] * len(right)
            for d, value in zip(
                numbers.lhs_spec, (row, b.add(first_channel, channel), *positions), strict=True
            ):
                at[d] = value
            for d, value in zip(numbers.rhs_spec, (feature, channel, *window), strict=True):
                tap[d] = value
            inside = all_of(b, conditions)
            if inside is None:
                x = b.convert(lhs(tuple(at)), name)
            else:
                zero = b.const(0, name)
                x = b.guarded(inside, lambda: b.convert(lhs(tuple(at)), name), zero)
            y = b.convert(rhs(tuple(tap)), name)
            return b.and_(x, y) if name == "bool" else b.mul(x, y)

        window = [right[d] for d in numbers.rhs_spec[2:]]
        if 0 in left or 0 in right:
            total = b.const(0, name)
        else:
            total = _sum_of_taps(b, (channels, *window), product, name)
        return b.convert(total, dtypes.scalar_name(out))

    def simplify(self, node: Any, rewriter: Any) -> Any:
        # padded convolution -> convolution of the padded image: no read needs a guard
        lhs, rhs = node.inputs
        if has_channels(lhs.aval, rhs.aval, node.outputs[0].aval, node.params):
            return None  # compiler/graph/convolutions.py
        padding, spec = node.params["padding"], node.params["dimension_numbers"].lhs_spec
        if all(p == (0, 0) for p in padding) or any(d != 1 for d in node.params["lhs_dilation"]):
            return None
        if (
            rhs.aval.size
            <= GUARDED_TAPS * rhs.aval.shape[node.params["dimension_numbers"].rhs_spec[0]]
        ):
            return None
        config = [(0, 0, 0)] * lhs.aval.ndim
        for d, (low, high) in zip(spec[2:], padding, strict=True):
            config[d] = (low, high, 0)
        zero = Literal(np.zeros((), lhs.aval.dtype)[()], array_type((), lhs.aval.dtype))
        (padded,) = rewriter.bind(PAD, lhs, zero, padding_config=tuple(config))
        params = node.params | {"padding": ((0, 0),) * len(padding)}
        return rewriter.bind(self, padded, rhs, **params)

    def reference(
        self, lhs: Any, rhs: Any, *, window_strides: tuple[int, ...], padding: Pads,
        lhs_dilation: tuple[int, ...], rhs_dilation: tuple[int, ...],
        dimension_numbers: ConvDimensionNumbers, feature_group_count: int, batch_group_count: int,
        precision: Any, preferred_element_type: Any,
    ) -> Any:  # fmt: skip
        dtype = np.dtype(preferred_element_type or lhs.dtype)
        small = dtypes.is_floating(dtype) and dtype.itemsize == 2
        wide = np.dtype(np.float32) if small else dtype
        x = np.transpose(lhs, dimension_numbers.lhs_spec).astype(wide)
        w = np.transpose(rhs, dimension_numbers.rhs_spec).astype(wide)
        patches = numpy_windows(
            x, 0, w.shape[2:], window_strides, padding, lhs_dilation, rhs_dilation
        )  # [n, c, y.., k..]
        rank = len(window_strides)
        rows, (outputs, channels) = x.shape[0] // batch_group_count, w.shape[:2]
        groups = feature_group_count * batch_group_count
        columns = []
        for g in range(groups):
            part = patches
            if batch_group_count > 1:
                part = part[g * rows : (g + 1) * rows]
            else:
                part = part[:, g * channels : (g + 1) * channels]
            kernel = w[g * outputs // groups : (g + 1) * outputs // groups]
            axes = [1, *range(2 + rank, 2 + 2 * rank)]
            columns.append(np.tensordot(part, kernel, (axes, [1, *range(2, 2 + rank)])))
        y = np.concatenate(columns, -1)  # [n, y.., o]
        y = np.moveaxis(y, -1, 1).astype(dtype)
        return np.ascontiguousarray(np.transpose(y, np.argsort(dimension_numbers.out_spec)))


def _aval(x: Any) -> Any:
    return x.aval if isinstance(x, UndefinedPrimal) else type_of(x)


def _merge(x: Any, mapped: int, axis: int, groups: int) -> Any:
    """Merges the mapped axis into `axis` (counted without it), between group and member."""
    x = move_axis(x, mapped, axis)
    if groups == 1:
        shape = list(type_of(x).shape)
        shape[axis : axis + 2] = [shape[axis] * shape[axis + 1]]
        return reshape(x, tuple(shape))
    shape = list(type_of(x).shape)
    n, size = shape[axis : axis + 2]
    x = reshape(x, (*shape[:axis], n, groups, size // groups, *shape[axis + 2 :]))
    x = move_axis(x, axis, axis + 1)
    return reshape(x, (*shape[:axis], n * size, *shape[axis + 2 :]))


def _split(x: Any, axis: int, groups: int, n: int) -> tuple[Any, int]:
    """The inverse of `_merge` on a result: (x, position of the mapped axis)."""
    shape = list(type_of(x).shape)
    size = shape[axis] // n
    if groups == 1:
        return reshape(x, (*shape[:axis], n, size, *shape[axis + 1 :])), axis
    x = reshape(x, (*shape[:axis], groups, n, size // groups, *shape[axis + 1 :]))
    x = move_axis(x, axis + 1, axis)
    return reshape(x, (*shape[:axis], n, size, *shape[axis + 1 :])), axis


def _input_cotangent(ct: Any, rhs: Any, left: Any, right: Any, params: dict[str, Any]) -> Any:
    """ct convolved with the flipped kernel whose in and out features are exchanged."""
    numbers: ConvDimensionNumbers = params["dimension_numbers"]
    lhs_spec, rhs_spec, out_spec = numbers
    groups, batch_groups = params["feature_group_count"], params["batch_group_count"]
    count = groups * batch_groups
    if 0 in left.shape or 0 in right.shape or type_of(ct).size == 0:
        return zeros(array_type(left.shape, type_of(ct).dtype))
    kernel = rev(rhs, rhs_spec[2:]) if rhs_spec[2:] else rhs
    if count > 1:  # [O, I] -> [O / count, count * I]
        kernel = _regroup(kernel, rhs_spec[0], rhs_spec[1], count)
    pads = tuple(
        input_gradient_pads(
            left.shape[i], right.shape[k], type_of(ct).shape[o], *rest
        )
        for i, k, o, *rest in zip(
            lhs_spec[2:], rhs_spec[2:], out_spec[2:], params["window_strides"], params["padding"],
            params["lhs_dilation"], params["rhs_dilation"], strict=True,
        )
    )  # fmt: skip
    out = CONV.bind(
        ct, kernel,
        window_strides=params["lhs_dilation"], padding=pads,
        lhs_dilation=params["window_strides"], rhs_dilation=params["rhs_dilation"],
        dimension_numbers=ConvDimensionNumbers(
            out_spec, (rhs_spec[1], rhs_spec[0], *rhs_spec[2:]), lhs_spec
        ),
        feature_group_count=count, batch_group_count=1,
        precision=params["precision"], preferred_element_type=None,
    )  # fmt: skip
    if batch_groups > 1:  # features (group, c) -> batch rows (group, n)
        rows, features = lhs_spec[:2]
        out, d = _split(out, features, 1, batch_groups)
        out = _merge(out, d, rows, 1)
    return out


def _regroup(kernel: Any, out_axis: int, in_axis: int, count: int) -> Any:
    """Moves the group from the output features to the front of the input features."""
    kernel, d = _split(kernel, out_axis, 1, count)
    return _merge(kernel, d, in_axis, 1)


def _kernel_cotangent(ct: Any, lhs: Any, left: Any, right: Any, params: dict[str, Any]) -> Any:
    """The input convolved with ct: batch and feature axes exchanged, stride and dilation too."""
    numbers: ConvDimensionNumbers = params["dimension_numbers"]
    lhs_spec, rhs_spec, out_spec = numbers
    if 0 in left.shape or 0 in right.shape or type_of(ct).size == 0:
        return zeros(array_type(right.shape, type_of(ct).dtype))
    pads = []
    for i, k, o, stride, (low, _), base, dilation in zip(
        lhs_spec[2:], rhs_spec[2:], out_spec[2:], params["window_strides"], params["padding"],
        params["lhs_dilation"], params["rhs_dilation"], strict=True,
    ):  # fmt: skip
        covered = dilated(right.shape[k], dilation) - 1 + dilated(type_of(ct).shape[o], stride)
        pads.append((low, covered - dilated(left.shape[i], base) - low))
    return CONV.bind(
        lhs, ct,
        window_strides=params["rhs_dilation"], padding=tuple(pads),
        lhs_dilation=params["lhs_dilation"], rhs_dilation=params["window_strides"],
        dimension_numbers=ConvDimensionNumbers(
            (lhs_spec[1], lhs_spec[0], *lhs_spec[2:]),
            (out_spec[1], out_spec[0], *out_spec[2:]),
            (rhs_spec[1], rhs_spec[0], *rhs_spec[2:]),
        ),
        feature_group_count=params["batch_group_count"],
        batch_group_count=params["feature_group_count"],
        precision=params["precision"], preferred_element_type=None,
    )  # fmt: skip


def numpy_windows(
    x: Any, fill: Any, window: Sequence[int], strides: Sequence[int], pads: Any,
    base: Sequence[int], dilation: Sequence[int],
) -> Any:  # fmt: skip
    """NumPy: all windows over the last axes of x: [lead.., count.., window..]."""
    rank = len(window)
    lead = x.shape[: x.ndim - rank]
    sizes = x.shape[x.ndim - rank :]
    holes = [dilated(n, d) for n, d in zip(sizes, base, strict=True)]
    spread = np.full((*lead, *holes), fill, x.dtype)
    spread[(..., *(np.s_[::d] for d in base))] = x
    for axis, (low, high) in enumerate(pads, start=len(lead)):
        if low < 0 or high < 0:
            end = spread.shape[axis] + min(high, 0)
            keep = [np.s_[:]] * spread.ndim
            keep[axis] = np.s_[max(-low, 0) : max(end, 0)]
            spread = spread[tuple(keep)]
        widths = [(0, 0)] * spread.ndim
        widths[axis] = (max(low, 0), max(high, 0))
        spread = np.pad(spread, widths, constant_values=fill)
    counts = [
        window_count(n, w, s, p, e, d)
        for n, w, s, p, e, d in zip(sizes, window, strides, pads, base, dilation, strict=True)
    ]
    index: list[Any] = []
    for i in range(rank):
        y = np.arange(counts[i])[:, None] * strides[i] + np.arange(window[i]) * dilation[i]
        shape = [1] * (2 * rank)
        shape[i], shape[rank + i] = y.shape
        index.append(y.reshape(shape))
    return spread[(np.s_[...], *index)] if rank else spread


CONV = Conv("conv_general_dilated")
