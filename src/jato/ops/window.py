"""Convolutions and sliding-window reductions: the functions of jax.lax.

The primitives are in convolution.py and pooling.py.  Start reading at `conv_general_dilated`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import check, fail, require_unsharded
from jato.core.graph import Graph, evaluate
from jato.core.types import type_of
from jato.ops.contract import canonical_precision, dot_general, same_dtype
from jato.ops.convert import convert_element_type
from jato.ops.convolution import CONV, ConvDimensionNumbers, Pads, dilated
from jato.ops.elementwise import eq, ge, gt, le, lt, select_n
from jato.ops.families import kind_of
from jato.ops.pooling import (
    REDUCE_WINDOW_ARGMAX,
    REDUCE_WINDOW_ARGMIN,
    REDUCE_WINDOW_MAX,
    REDUCE_WINDOW_MIN,
    REDUCE_WINDOW_SUM,
    WINDOW_GATHER,
    WINDOW_SCATTER_ADD,
    ReduceWindow,
    Window,
)
from jato.ops.reduce import combiner, monoid_of
from jato.ops.structural import (
    broadcast_in_dim,
    broadcasted_iota,
    full,
    pad,
    reshape,
    rev,
    transpose,
)
from jato.ops.structural import slice as static_slice

_UNROLLED_TAPS = 4096


# ---- arguments


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
) -> list[tuple[int, int]]:
    """'SAME', 'SAME_LOWER' or 'VALID' as (low, high) per axis.

    SAME: ceil(size / stride) windows; of an odd total the extra element goes high (with SAME_LOWER
    low).
    Raises: ValueError for other names.

    >>> padtype_to_pads((5,), (3,), (2,), "SAME")
    [(1, 1)]
    """
    name = getattr(padding, "name", padding)
    check(
        name in ("SAME", "SAME_LOWER", "VALID"),
        ValueError,
        "argument 'padding': expected 'SAME', 'SAME_LOWER', 'VALID' or (low, high) pairs, got "
        f"{padding!r}.",
    )
    check(
        min(window_strides, default=1) >= 1,
        ValueError,
        f"argument 'window_strides': expected positive integers, got {tuple(window_strides)}.",
    )
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    pads = []
    for size, window, stride in zip(in_shape, window_shape, window_strides, strict=True):
        count = -(-size // stride)
        total = (count - 1) * stride + window - size
        total = total if total > 0 else 0
        small, large = total // 2, total - total // 2
        pads.append((small, large) if name == "SAME" else (large, small))
    return pads


def _steps(function: str, name: str, values: Any, count: int) -> tuple[int, ...]:
    """One integer per axis; None gives ones."""
    if values is None:
        return (1,) * count
    result = (
        (int(values),) * count if isinstance(values, (int, np.integer)) else tuple(map(int, values))
    )
    check(
        len(result) == count,
        TypeError,
        f"{function}: argument '{name}': expected {count} entries, one per axis, got {result}.",
    )
    check(
        min(result, default=1) >= 1,
        TypeError,
        f"{function}: argument '{name}': expected positive integers, got {result}.",
    )
    return result


def _pairs(function: str, padding: Any) -> Pads:
    try:
        return tuple((int(low), int(high)) for low, high in padding)
    except (TypeError, ValueError):
        fail(
            TypeError, function,
            "argument 'padding': expected 'SAME', 'VALID' or a (low, high) pair per axis, got "
            f"{padding!r}.",
        )  # fmt: skip


_DEFAULT_SPECS = {
    n: ("NC" + "".join(map(str, range(n))), "OI" + "".join(map(str, range(n)))) for n in range(10)
}


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Positions of the axes from names such as ("NHWC", "HWIO", "NHWC"); None: NC.., OI.., NC..

    N batch, C feature (I, O of the kernel), other letters spatial.
    Raises: ValueError for names that do not fit the ranks or each other.

    >>> conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC")).lhs_spec
    (0, 3, 1, 2)
    """
    rank = len(lhs_shape)
    check(
        rank == len(rhs_shape) and rank >= 2,
        TypeError,
        "convolution: expected lhs and rhs of one rank of at least 2, got shapes "
        f"{tuple(lhs_shape)} "
        f"and {tuple(rhs_shape)}.",
    )
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if hasattr(dimension_numbers, "lhs_spec"):
        d = dimension_numbers
        return ConvDimensionNumbers(
            *(tuple(map(int, s)) for s in (d.lhs_spec, d.rhs_spec, d.out_spec))
        )
    if dimension_numbers is None:
        image, kernel = _DEFAULT_SPECS[rank - 2]
        dimension_numbers = (image, kernel, image)
    specs = tuple(dimension_numbers)
    problem = (
        f"convolution: argument 'dimension_numbers': expected three strings of {rank} "
        "different letters, "
        "the first and last with N and C, the second with O and I, and the same spatial letters, "
        f"got {dimension_numbers!r}."
    )
    check(len(specs) == 3 and all(isinstance(s, str) for s in specs), TypeError, problem)
    spatial = [c for c in specs[1] if c not in "OI"]
    for spec, pair in zip(specs, ("NC", "OI", "NC"), strict=True):
        letters = set(pair) | set(spatial)
        check(
            len(spec) == rank and set(spec) == letters and len(letters) == rank, ValueError, problem
        )
    return ConvDimensionNumbers(
        *(
            tuple(spec.index(c) for c in (*pair, *spatial))
            for spec, pair in zip(specs, ("NC", "OI", "NC"), strict=True)
        )
    )


# ---- convolution


def conv_general_dilated(
    lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any,
    lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None, feature_group_count: int = 1, batch_group_count: int = 1,
    precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """Convolution (without flipping the kernel) over any number of spatial axes.

    Args: lhs: images; rhs: kernel; window_strides, lhs_dilation (of the image), rhs_dilation (of
    the kernel): one per spatial axis; padding: 'SAME', 'VALID', 'SAME_LOWER' or (low, high) pairs,
    which may be negative; dimension_numbers: names of axes, default ("NCHW", "OIHW", "NCHW");
    feature_group_count: groups of channels that do not mix; batch_group_count: the same for rows.
    Raises: TypeError or ValueError when sizes do not fit.

    >>> x, k = np.ones((1, 1, 5), np.float32), np.ones((1, 1, 3), np.float32)
    >>> conv_general_dilated(x, k, (1,), "VALID").shape
    (1, 1, 3)
    """
    name = "conv_general_dilated"
    require_unsharded(name, out_sharding)
    left, right = type_of(lhs), type_of(rhs)
    numbers = conv_dimension_numbers(left.shape, right.shape, dimension_numbers)
    spatial = left.ndim - 2
    strides = _steps(name, "window_strides", window_strides, spatial)
    base = _steps(name, "lhs_dilation", lhs_dilation, spatial)
    dilation = _steps(name, "rhs_dilation", rhs_dilation, spatial)
    if isinstance(padding, str) or hasattr(padding, "name"):
        check(
            all(d == 1 for d in base),
            ValueError,
            f"{name}: argument 'padding': with lhs_dilation {base} expected (low, high) pairs, got "
            f"{padding!r}. Try lax.conv_transpose.",
        )
        sizes = [left.shape[d] for d in numbers.lhs_spec[2:]]
        window = [
            dilated(right.shape[d], r) for d, r in zip(numbers.rhs_spec[2:], dilation, strict=True)
        ]
        pads: Pads = tuple(padtype_to_pads(sizes, window, strides, padding))
    else:
        pads = _pairs(name, padding)
    lhs, rhs = same_dtype(lhs, rhs)
    preferred = None
    if preferred_element_type is not None:
        preferred = dtypes.canonicalize(preferred_element_type)
        preferred = None if preferred == type_of(lhs).dtype else preferred
    return CONV.bind(
        lhs, rhs, window_strides=strides, padding=pads, lhs_dilation=base, rhs_dilation=dilation,
        dimension_numbers=numbers, feature_group_count=int(feature_group_count),
        batch_group_count=int(batch_group_count), precision=canonical_precision(precision),
        preferred_element_type=preferred,
    )  # fmt: skip


def conv(
    lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any, precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:  # fmt: skip
    """`conv_general_dilated` without dilation, axes NC.., OI.., NC..

    >>> conv(np.ones((1, 1, 5)), np.ones((1, 1, 3)), (1,), "VALID").tolist()
    [[[3.0, 3.0, 3.0]]]
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def conv_with_general_padding(
    lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any, lhs_dilation: Any,
    rhs_dilation: Any, precision: Any = None, preferred_element_type: Any = None,
) -> Any:  # fmt: skip
    """`conv_general_dilated` with axes NC.., OI.., NC..

    >>> x, k = np.ones((1, 1, 3)), np.ones((1, 1, 2))
    >>> conv_with_general_padding(x, k, (1,), [(1, 0)], (1,), (1,)).shape
    (1, 1, 3)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def _transpose_pads(window: int, stride: int, padding: Any) -> tuple[int, int]:
    """Padding with which the result has size * stride (SAME) or all of it (VALID)."""
    name = getattr(padding, "name", padding)
    total = window + stride - 2
    if name == "SAME":
        low = window - 1 if stride > window - 1 else -(-total // 2)
    elif name == "VALID":
        total += window - stride if window > stride else 0
        low = window - 1
    else:
        raise ValueError(
            "conv_transpose: argument 'padding': expected 'SAME', 'VALID' or (low, high) "
            f"pairs, got {padding!r}."
        )
    return low, total - low


def conv_transpose(
    lhs: Any, rhs: Any, strides: Sequence[int], padding: Any,
    rhs_dilation: Sequence[int] | None = None, dimension_numbers: Any = None,
    transpose_kernel: bool = False, precision: Any = None,
    preferred_element_type: Any = None, use_consistent_padding: bool = False,
) -> Any:  # fmt: skip
    """Convolution with a fractional stride: the shape of the gradient of a strided convolution.

    Args: as conv_general_dilated; dimension_numbers: default ("NHWC", "HWIO", "NHWC") for two
    spatial axes; transpose_kernel: flips the kernel and exchanges its channels, which gives the
    gradient itself; use_consistent_padding: pairs in `padding` are those of the convolution whose
    gradient it is.

    >>> conv_transpose(np.ones((1, 4, 1)), np.ones((2, 1, 1)), (2,), "SAME").shape
    (1, 8, 1)
    """
    rank = type_of(lhs).ndim
    if dimension_numbers is None:
        axes = "HWD"[: rank - 2]
        dimension_numbers = (f"N{axes}C", f"{axes}IO", f"N{axes}C")
    numbers = conv_dimension_numbers(type_of(lhs).shape, type_of(rhs).shape, dimension_numbers)
    strides = _steps("conv_transpose", "strides", strides, rank - 2)
    dilation = _steps("conv_transpose", "rhs_dilation", rhs_dilation, rank - 2)
    spatial = numbers.rhs_spec[2:]
    window = [dilated(type_of(rhs).shape[d], r) for d, r in zip(spatial, dilation, strict=True)]
    if isinstance(padding, str) or hasattr(padding, "name"):
        pads = tuple(_transpose_pads(k, s, padding) for k, s in zip(window, strides, strict=True))
    else:
        pads = _pairs("conv_transpose", padding)
        if use_consistent_padding:
            pads = tuple((k - 1 - p[0], k - 1 - p[1]) for k, p in zip(window, pads, strict=True))
    if transpose_kernel:
        rhs = rev(rhs, spatial)
        order = list(range(rank))
        first, second = numbers.rhs_spec[:2]
        order[first], order[second] = second, first
        rhs = transpose(rhs, tuple(order))
    return conv_general_dilated(
        lhs, rhs, (1,) * len(strides), pads, strides, dilation, numbers, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def conv_general_dilated_patches(
    lhs: Any, filter_shape: Sequence[int], window_strides: Sequence[int], padding: Any,
    lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None, precision: Any = None, preferred_element_type: Any = None,
) -> Any:  # fmt: skip
    """The windows that a convolution sees: feature c * taps + tap holds channel c at that tap.

    >>> conv_general_dilated_patches(np.ones((1, 1, 5)), (3,), (1,), "VALID").shape
    (1, 3, 3)
    """
    taps = tuple(map(int, filter_shape))
    aval = type_of(lhs)
    rank = aval.ndim
    numbers = conv_dimension_numbers(aval.shape, (0,) * rank, dimension_numbers)
    channels, count = aval.shape[numbers.lhs_spec[1]], math.prod(taps)
    # one-hot kernels, [channel, tap] x 1 x spatial
    row = broadcasted_iota("int32", (channels, count, count), 1)
    column = broadcasted_iota("int32", (channels, count, count), 2)
    hot = reshape(convert_element_type(eq(row, column), aval.dtype), (channels * count, 1, *taps))
    kernel = transpose(hot, tuple(int(d) for d in np.argsort(numbers.rhs_spec)))
    return conv_general_dilated(
        lhs, kernel, window_strides, padding, lhs_dilation, rhs_dilation, numbers,
        feature_group_count=channels, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def conv_general_dilated_local(
    lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any, filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None, precision: Any = None,
) -> Any:  # fmt: skip
    """Convolution with a kernel of its own at each position.

    rhs has the result's spatial axes; its input features count channel * taps + tap.

    >>> x, k = np.ones((1, 1, 5)), np.ones((2, 3, 3))
    >>> conv_general_dilated_local(x, k, (1,), "VALID", (3,)).shape
    (1, 2, 3)
    """
    numbers = conv_dimension_numbers(type_of(lhs).shape, type_of(rhs).shape, dimension_numbers)
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers, precision
    )
    out_spec, rhs_spec = numbers.out_spec, numbers.rhs_spec
    out = dot_general(
        patches, rhs, (((out_spec[1],), (rhs_spec[1],)), (out_spec[2:], rhs_spec[2:])), precision
    )  # spatial.., batch, feature
    spatial = len(out_spec) - 2
    order = [0] * len(out_spec)
    for source, destination in enumerate((*out_spec[2:], out_spec[0], out_spec[1])):
        order[destination] = source
    return transpose(out, tuple(order)) if spatial else out


# ---- windows


def _window(
    function: str,
    shape: Sequence[int],
    sizes: Any,
    strides: Any,
    padding: Any,
    base: Any,
    dilation: Any,
) -> Window:
    rank = len(shape)
    sizes = _steps(function, "window_dimensions", sizes, rank)
    strides = _steps(function, "window_strides", strides, rank)
    base = _steps(function, "base_dilation", base, rank)
    dilation = _steps(function, "window_dilation", dilation, rank)
    if isinstance(padding, str) or hasattr(padding, "name"):
        spread = [dilated(n, d) for n, d in zip(shape, base, strict=True)]
        windows = [dilated(n, d) for n, d in zip(sizes, dilation, strict=True)]
        pads: Pads = tuple(padtype_to_pads(spread, windows, strides, padding))
    else:
        pads = _pairs(function, padding)
    return Window(sizes, strides, pads, base, dilation)


_WINDOW_PRIMITIVES: dict[str, ReduceWindow] = {
    "add": REDUCE_WINDOW_SUM,
    "max": REDUCE_WINDOW_MAX,
    "min": REDUCE_WINDOW_MIN,
}


def reduce_window(
    operand: Any, init_value: Any, computation: Callable[..., Any],
    window_dimensions: Sequence[int], window_strides: Sequence[int] | None, padding: Any,
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:  # fmt: skip
    """Reduces every position of a sliding window.

    Args: operand: an array (or a tuple of arrays of one shape); init_value: the scalar that every
    window starts from (padding contributes nothing); computation: (accumulated, value) ->
    accumulated, associative and elementwise (on tuples if operand is one): lax.add, max and min
    have kernels of their own, others are unrolled over the taps; the rest: one entry per axis.
    Raises: TypeError or ValueError when entries do not fit.

    >>> from jato.ops.elementwise import add
    >>> reduce_window(np.arange(4.0), 0.0, add, (2,), (1,), "VALID").tolist()
    [1.0, 3.0, 5.0]
    """
    several = isinstance(operand, (list, tuple))
    operands = list(operand) if several else [operand]
    inits = list(init_value) if several else [init_value]
    shape = type_of(operands[0]).shape
    window = _window(
        "reduce_window",
        shape,
        window_dimensions,
        window_strides,
        padding,
        base_dilation,
        window_dilation,
    )
    inits = [_scalar_like(i, x) for i, x in zip(inits, operands, strict=True)]
    graph = combiner("reduce_window", computation, [type_of(x) for x in operands])
    monoid = monoid_of(graph)
    primitive = _WINDOW_PRIMITIVES.get(monoid.name) if monoid is not None else None
    if monoid is None or primitive is None or kind_of(type_of(operands[0])) not in primitive.takes:
        outs = _unrolled(operands, inits, graph, window)
        return tuple(outs) if several else outs[0]
    out = primitive.bind(operands[0], window=window)
    if not _is_identity(inits[0], primitive, type_of(operands[0]).dtype):
        out = monoid.bind(out, inits[0])
    return (out,) if several else out


def _scalar_like(value: Any, x: Any) -> Any:
    """An initial value in the operand's dtype: a NumPy scalar where it is a number."""
    dtype = type_of(x).dtype
    aval = type_of(value)
    check(
        not aval.shape,
        TypeError,
        f"reduce_window: argument 'init_value': expected a scalar, got {aval}.",
    )
    if hasattr(value, "aval"):
        return convert_element_type(value, dtype)
    return np.asarray(value).astype(dtype)[()]


def _is_identity(init: Any, primitive: ReduceWindow, dtype: Any) -> bool:
    if hasattr(init, "aval"):
        return False
    identity = np.asarray(primitive.identity_value(dtype)).astype(dtype)[()]
    return bool(init == identity)


def _padded(x: Any, init: Any, window: Window) -> tuple[Any, Window]:
    """The operand with its padding and base dilation written out."""
    config = [
        (low, high, base - 1)
        for (low, high), base in zip(window.padding, window.base_dilation, strict=True)
    ]
    if all(row == (0, 0, 0) for row in config):
        return x, window
    x = pad(x, init, config)
    rank = len(window.sizes)
    return x, Window(
        window.sizes, window.strides, ((0, 0),) * rank, (1,) * rank, window.window_dilation
    )


def _unrolled(operands: list[Any], inits: list[Any], graph: Graph, window: Window) -> list[Any]:
    """One strided slice per tap, folded by the computation."""
    check(
        math.prod(window.sizes) <= _UNROLLED_TAPS,
        ValueError,
        "reduce_window: a general computation is unrolled over the window; its "
        f"{math.prod(window.sizes)} "
        f"taps exceed {_UNROLLED_TAPS}. Try lax.add, lax.max or lax.min.",
    )
    counts = window.counts(type_of(operands[0]).shape)
    state = [broadcast_in_dim(i, counts, ()) for i in inits]
    if math.prod(counts) == 0:
        return state
    pairs = [_padded(x, init, window) for x, init in zip(operands, inits, strict=True)]
    flat = pairs[0][1]
    exists = None  # where the padded operand is not padding
    if flat is not window:
        shape = type_of(operands[0]).shape
        exists, _ = _padded(full(shape, True), np.False_, window)
    for taps in itertools.product(*map(range, window.sizes)):
        starts = [t * d for t, d in zip(taps, flat.window_dilation, strict=True)]
        limits = [a + (c - 1) * s + 1 for a, c, s in zip(starts, counts, flat.strides, strict=True)]
        values = [static_slice(x, starts, limits, flat.strides) for x, _ in pairs]
        joined = evaluate(graph, *state, *values)
        if exists is not None:
            good = static_slice(exists, starts, limits, flat.strides)
            joined = [select_n(good, old, new) for old, new in zip(state, joined, strict=True)]
        state = joined
    return state


def _chooser(function: str, select: Any) -> Any:
    """The primitive that finds the tap which a comparison selects."""
    name = getattr(select, "name", None) or getattr(select, "__name__", "")
    if select in (ge, gt) or name in ("ge", "gt"):
        return REDUCE_WINDOW_ARGMAX
    if select in (le, lt) or name in ("le", "lt"):
        return REDUCE_WINDOW_ARGMIN
    fail(ValueError, function, f"argument 'select': expected lax.ge or lax.le, got {select!r}.")


def select_and_scatter_add(
    source: Any, operand: Any, select: Any, window_dimensions: Sequence[int],
    window_strides: Sequence[int], padding: Any,
) -> Any:  # fmt: skip
    """Adds each source value at the element of the operand's window that `select` (ge or le) picks.

    The gradient of a maximum or minimum over windows.  Returns the operand's shape.

    >>> x, ct = np.array([1.0, 3.0, 2.0, 0.0]), np.array([5.0, 7.0])
    >>> select_and_scatter_add(ct, x, ge, (2,), (2,), "VALID").tolist()
    [0.0, 5.0, 7.0, 0.0]
    """
    shape = type_of(operand).shape
    window = _window(
        "select_and_scatter_add", shape, window_dimensions, window_strides, padding, None, None
    )
    choice = _chooser("select_and_scatter_add", select).bind(operand, window=window)
    return WINDOW_SCATTER_ADD.bind(source, choice, window=window, shape=shape)


def select_and_gather_add(
    tangents: Any, operand: Any, select: Any, window_dimensions: Sequence[int],
    window_strides: Sequence[int], padding: Any, base_dilation: Any = None,
    window_dilation: Any = None,
) -> Any:  # fmt: skip
    """The tangent at the element of each window of the operand that `select` (ge or le) picks.

    >>> x = np.array([1.0, 3.0, 2.0, 0.0])
    >>> select_and_gather_add(10 * x, x, ge, (2,), (2,), "VALID").tolist()
    [30.0, 20.0]
    """
    window = _window(
        "select_and_gather_add", type_of(operand).shape, window_dimensions, window_strides, padding,
        base_dilation, window_dilation,
    )  # fmt: skip
    choice = _chooser("select_and_gather_add", select).bind(operand, window=window)
    return WINDOW_GATHER.bind(tangents, choice, window=window)
