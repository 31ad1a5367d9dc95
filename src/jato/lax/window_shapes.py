"""Shapes of the results of convolutions and windowed reductions, without computing them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jato.base.errors import check
from jato.ops.convolution import dilated
from jato.ops.window import conv_dimension_numbers, padtype_to_pads

Shape = tuple[int, ...]


def _windows(
    function: str, sizes: Sequence[int], window: Sequence[int], strides: Any, pads: Any
) -> Shape:
    """How many windows fit on each axis."""
    check(
        len(sizes) == len(window) == len(strides) == len(pads),
        TypeError,
        f"{function}: expected a window extent, a stride and a pair of paddings for each of "
        f"{len(sizes)} axes, got {len(window)}, {len(strides)} and {len(pads)}",
    )
    check(
        all(s >= 1 for s in strides), ValueError,
        f"{function}: strides must be positive, got {tuple(strides)}",
    )  # fmt: skip
    rows = zip(sizes, window, strides, pads, strict=True)
    return tuple(
        max((int(n) + int(low) + int(high) - int(k)) // int(s) + 1, 0)
        for n, k, s, (low, high) in rows
    )


def _pads(sizes: Sequence[int], window: Sequence[int], strides: Any, padding: Any) -> Any:
    if isinstance(padding, str):
        return padtype_to_pads(sizes, window, strides, padding)
    return padding


def conv_shape_tuple(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], strides: Sequence[int], pads: Any,
    batch_group_count: int = 1,
) -> Shape:  # fmt: skip
    """The shape of a convolution of images [n, c, ...] with kernels [o, i, ...].

    pads: 'SAME', 'VALID' or (low, high) pairs.  TypeError when the numbers of axes differ;
    ValueError if n is no multiple of batch_group_count.

    >>> conv_shape_tuple((2, 3, 5, 5), (4, 3, 3, 3), (1, 2), "VALID")
    (2, 4, 3, 2)
    """
    pairs = _pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    windows = _windows("conv_shape_tuple", lhs_shape[2:], rhs_shape[2:], strides, pairs)
    check(
        batch_group_count >= 1 and lhs_shape[0] % batch_group_count == 0,
        ValueError,
        f"conv_shape_tuple: expected a multiple of batch_group_count {batch_group_count} images, got "
        f"{lhs_shape[0]}",
    )
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *windows)


def conv_general_permutations(dimension_numbers: Any) -> tuple[Shape, Shape, Shape]:
    """The axes of image, kernel and result in the orders [n, c, ...], [o, i, ...] and [n, c, ...].

    dimension_numbers: names such as ("NHWC", "HWIO", "NHWC").  ValueError for names that do not fit.

    >>> conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    rank = len(dimension_numbers[0])
    numbers = conv_dimension_numbers((1,) * rank, (1,) * rank, dimension_numbers)
    return numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec


def _unpermuted(shape: Shape, order: Sequence[int]) -> Shape:
    """The shape whose axes, taken in this order, are `shape`."""
    return tuple(shape[list(order).index(d)] for d in range(len(shape)))


def conv_general_shape_tuple(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], window_strides: Sequence[int], padding: Any,
    dimension_numbers: Any,
) -> Shape:  # fmt: skip
    """The shape of a convolution with named axes; arguments as of `conv_general_dilated`.

    >>> conv_general_shape_tuple((2, 5, 5, 3), (3, 3, 3, 4), (1, 2), "SAME", ("NHWC", "HWIO", "NHWC"))
    (2, 5, 3, 4)
    """
    image, kernel, out = conv_general_permutations(dimension_numbers)
    lhs = tuple(lhs_shape[d] for d in image)
    rhs = tuple(rhs_shape[d] for d in kernel)
    return _unpermuted(conv_shape_tuple(lhs, rhs, window_strides, padding), out)


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], window_strides: Sequence[int], padding: Any,
    dimension_numbers: Any,
) -> Shape:  # fmt: skip
    """The shape of `conv_transpose` with named axes; arguments as of it.

    >>> axes = ("NHWC", "HWIO", "NHWC")
    >>> conv_transpose_shape_tuple((2, 5, 5, 3), (3, 3, 3, 4), (1, 2), "VALID", axes)
    (2, 7, 11, 4)
    """
    image, kernel, out = conv_general_permutations(dimension_numbers)
    lhs = tuple(lhs_shape[d] for d in image)
    rhs = tuple(rhs_shape[d] for d in kernel)
    sizes, window = lhs[2:], rhs[2:]
    check(
        len(sizes) == len(window_strides),
        TypeError,
        f"conv_transpose_shape_tuple: expected {len(sizes)} window_strides, got "
        f"{tuple(window_strides)}",
    )
    if isinstance(padding, str):
        check(
            padding in ("SAME", "VALID"),
            ValueError,
            "conv_transpose_shape_tuple: argument 'padding': expected 'SAME', 'VALID' or pairs, got "
            f"{padding!r}",
        )
        rows = zip(sizes, window, window_strides, strict=True)
        grown = tuple(n * s if padding == "SAME" else n * s + max(k - s, 0) for n, k, s in rows)
    else:
        rows = zip(sizes, window, window_strides, padding, strict=True)
        grown = tuple((n - 1) * s - k + 2 + low + high for n, k, s, (low, high) in rows)
    return _unpermuted((lhs[0], rhs[0], *grown), out)


def reduce_window_shape_tuple(
    operand_shape: Sequence[int], window_dimensions: Sequence[int], window_strides: Sequence[int],
    padding: Any, base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Shape:  # fmt: skip
    """The shape of `reduce_window`; arguments as of it, padding as a name or (low, high) pairs.

    >>> reduce_window_shape_tuple((5, 6), (2, 3), (1, 2), ((0, 0), (1, 1)))
    (4, 3)
    """
    sizes, window = tuple(operand_shape), tuple(window_dimensions)
    if base_dilation is not None:
        sizes = tuple(dilated(n, d) for n, d in zip(sizes, base_dilation, strict=True))
    if window_dilation is not None:
        window = tuple(dilated(k, d) for k, d in zip(window, window_dilation, strict=True))
    pads = _pads(sizes, window, window_strides, padding)
    return _windows("reduce_window_shape_tuple", sizes, window, window_strides, pads)
