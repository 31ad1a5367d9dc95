"""Primitives over sliding windows: reduce_window sum, max, min, and who attained the extremum.

    reduce_window_sum                     linear; its transpose exchanges stride and dilation
    reduce_window_max / min               tangent: window_gather at the position of the extremum
    reduce_window_argmax / argmin         number of that position within the window (the first
                                          of equals or NaN; -1 in padding only)
    window_gather(x, choice)              per window the chosen element    <-> window_scatter_add
    window_scatter_add(source, choice)    adds up, per element, the windows that chose it

All lower to stencils: window_scatter_add sums, for each input element, over the windows that
contain it, so it needs no atomic writes and runs in parallel.  The geometry is convolution's
(`source_position`).  The functions that users call are in window.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.core.primitive import AxisData
from jato.core.types import ArrayType, Zero, array_type, tangent_type, type_of
from jato.ops.convolution import (
    UNROLLED_TAPS,
    Pads,
    all_of,
    input_gradient_pads,
    numpy_windows,
    source_position,
    window_count,
)
from jato.ops.cumulative import extreme_value
from jato.ops.families import TypeCached, check_kind, is_zero_tangent, transposed
from jato.ops.shapes import mapped_first


@dataclass(frozen=True)
class Window:
    """The geometry of a sliding window, one entry per axis of the operand."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    padding: Pads
    base_dilation: tuple[int, ...]
    window_dilation: tuple[int, ...]

    def counts(self, shape: Sequence[int]) -> tuple[int, ...]:
        """How many windows there are along each axis."""
        rows = zip(
            shape, self.sizes, self.strides, self.padding, self.base_dilation,
            self.window_dilation, strict=True,
        )  # fmt: skip
        return tuple(window_count(*row) for row in rows)

    def with_axis(self, d: int) -> Window:
        """The window with a mapped axis at position d, which it does not span."""

        def insert(values: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
            return (*values[:d], value, *values[d:])

        return Window(
            insert(self.sizes, 1), insert(self.strides, 1), insert(self.padding, (0, 0)),
            insert(self.base_dilation, 1), insert(self.window_dilation, 1),
        )  # fmt: skip

    def gradient(self, shape: Sequence[int]) -> Window:
        """The window over the cotangent whose sum is the gradient by the operand."""
        pads = tuple(
            input_gradient_pads(n, w, c, s, p, e, d)
            for n, w, c, s, p, e, d in zip(
                shape, self.sizes, self.counts(shape), self.strides, self.padding,
                self.base_dilation, self.window_dilation, strict=True,
            )
        )  # fmt: skip
        return Window(self.sizes, self.base_dilation, pads, self.strides, self.window_dilation)

    def spanned(self) -> list[int]:
        """The axes along which the window has more than one position."""
        return [i for i, w in enumerate(self.sizes) if w != 1]

    def source(
        self, b: Any, index: Sequence[Any], taps: Sequence[Any], shape: Sequence[int]
    ) -> tuple[tuple[Any, ...], Any]:
        """Loop IR: (position in the operand, condition or None) for a window and a tap in it."""
        counts = self.counts(shape)
        rows = [
            source_position(
                b, index[i], taps[i], shape[i], self.strides[i], self.padding[i][0],
                self.base_dilation[i], self.window_dilation[i], counts[i], self.sizes[i],
            )
            for i in range(len(shape))
        ]  # fmt: skip
        return tuple(x for x, _ in rows), all_of(b, [c for _, c in rows])

    def reduce(
        self, b: Any, element: Callable[[tuple[Any, ...]], Any], combine: Any, identity: Any
    ) -> Any:
        """Loop IR: reduces element(taps) over the window; axes not spanned make no loop."""
        axes = self.spanned()

        def full_taps(*some: Any) -> Any:
            taps: list[Any] = [b.index(0)] * len(self.sizes)
            for i, tap in zip(axes, some, strict=True):
                taps[i] = tap
            return element(tuple(taps))

        if not axes:
            return full_taps()
        extents = [self.sizes[i] for i in axes]
        straight = math.prod(extents) <= UNROLLED_TAPS
        return b.reduce(extents, full_taps, combine, identity, unroll=straight)

    def tap_number(self, b: Any, taps: Sequence[Any]) -> Any:
        """Loop IR: row-major number of a tap."""
        number = b.index(0)
        for i, w in enumerate(self.sizes):
            number = b.add(b.mul(number, b.index(w)), taps[i])
        return number

    def numpy_view(self, x: Any, fill: Any) -> Any:
        """NumPy: [count.., taps in row-major order]."""
        view = numpy_windows(
            x,
            fill,
            self.sizes,
            self.strides,
            self.padding,
            self.base_dilation,
            self.window_dilation,
        )
        return view.reshape(*view.shape[: x.ndim], math.prod(self.sizes))


class Windowed(TypeCached):
    """Unary members: param `window`."""

    fusable = True
    rereads = True
    takes = "iufc"

    def check_window(self, x: Any, window: Window) -> None:
        fields = (
            ("window_dimensions", window.sizes), ("window_strides", window.strides),
            ("padding", window.padding), ("base_dilation", window.base_dilation),
            ("window_dilation", window.window_dilation),
        )  # fmt: skip
        for name, values in fields:
            if len(values) != x.ndim:
                self.fail(f"expected {name} with one entry per axis of {x}, got {values}.")
            if name != "padding" and any(v < 1 for v in values):
                self.fail(f"expected {name} >= 1, got {values}.")

    def result_type(self, x: Any, *, window: Window) -> Any:
        check_kind(self, "operand", x, self.takes)
        self.check_window(x, window)
        return ArrayType(window.counts(x.shape), x.dtype_code, x.weak_type)

    def batch(self, axis: AxisData, operands: Any, dims: Any, *, window: Window) -> Any:
        return self.bind(operands[0], window=window.with_axis(dims[0])), dims[0]


class ReduceWindow(Windowed):
    """Reduces each window by `opcode`; padding counts as the identity."""

    opcode = ""

    def identity_value(self, dtype: Any) -> Any:
        raise NotImplementedError

    def accumulator(self, aval: Any) -> str:
        name = dtypes.scalar_name(aval)
        return {"f16": "f32", "bf16": "f32"}.get(name, name)

    def lower(self, b: Any, inputs: Any, index: Any, out: Any, *, window: Window) -> Any:
        x = inputs[0]
        shape = x.aval.shape
        name = self.accumulator(x.aval)
        identity = b.const(self.identity_value(x.aval.dtype), name)
        if 0 in shape:
            return b.const(self.identity_value(x.aval.dtype), dtypes.scalar_name(out))

        def value(taps: tuple[Any, ...]) -> Any:
            at, inside = window.source(b, index, taps, shape)
            if inside is None:
                return b.convert(x(at), name)
            return b.guarded(inside, lambda: b.convert(x(at), name), identity)

        total = window.reduce(b, value, self.opcode, identity)
        return b.convert(total, dtypes.scalar_name(out))

    def reference(self, x: Any, *, window: Window) -> Any:
        fill = np.asarray(self.identity_value(x.dtype)).astype(x.dtype)
        small = dtypes.is_floating(x.dtype) and x.dtype.itemsize == 2
        view = window.numpy_view(x, fill).astype(np.float32 if small else x.dtype)
        return self.numpy_reduce(view).astype(x.dtype)

    def numpy_reduce(self, view: Any) -> Any:
        raise NotImplementedError


class ReduceWindowSum(ReduceWindow):
    opcode = "add"

    def identity_value(self, dtype: Any) -> Any:
        return 0

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, window: Window) -> Any:
        out = self.bind(*primals, window=window)
        if is_zero_tangent(tangents[0]):
            return out, Zero(tangent_type(type_of(out)))
        return out, self.bind(tangents[0], window=window)

    @transposed
    def transpose(self, cotangent: Any, x: Any, *, window: Window) -> Sequence[Any]:
        if type_of(cotangent).size == 0:
            return [Zero(x.aval)]
        # the gradient window runs over the taps backwards, which a sum does not mind
        return [self.bind(cotangent, window=window.gradient(x.aval.shape))]

    def numpy_reduce(self, view: Any) -> Any:
        return view.sum(-1, dtype=view.dtype)


class ReduceWindowExtremum(ReduceWindow):
    takes = "biuf"
    lowest = True
    chooser: Any = None

    def identity_value(self, dtype: Any) -> Any:
        return extreme_value(dtype, self.lowest)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, window: Window) -> Any:
        out = self.bind(*primals, window=window)
        if is_zero_tangent(tangents[0]):
            return out, Zero(tangent_type(type_of(out)))
        choice = type(self).chooser.bind(*primals, window=window)
        return out, WINDOW_GATHER.bind(tangents[0], choice, window=window)


class ReduceWindowArg(Windowed):
    """int32 number of the extremum's tap; -1 where there is only padding."""

    takes = "biuf"
    wins = "gt"

    def result_type(self, x: Any, *, window: Window) -> Any:
        check_kind(self, "operand", x, self.takes)
        self.check_window(x, window)
        return array_type(window.counts(x.shape), np.int32)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, window: Window) -> Any:
        out = self.bind(*primals, window=window)
        return out, Zero(tangent_type(type_of(out)))

    def lower(self, b: Any, inputs: Any, index: Any, out: Any, *, window: Window) -> Any:
        x = inputs[0]
        shape = x.aval.shape
        name = dtypes.scalar_name(x.aval)
        name = {"f16": "f32", "bf16": "f32"}.get(name, name)
        nothing = b.const(-1, "i32")
        if 0 in shape:
            return nothing

        def element(taps: tuple[Any, ...]) -> Any:
            at, inside = window.source(b, index, taps, shape)
            number = b.convert(window.tap_number(b, taps), "i32")
            if inside is None:
                return b.convert(x(at), name), number
            value = b.guarded(inside, lambda: b.convert(x(at), name), b.const(0, name))
            return value, b.select(inside, number, nothing)

        def combine(p: Any, q: Any) -> Any:
            """The better of two; of equals the lower number; a number of -1 loses."""
            (value_p, number_p), (value_q, number_q) = p, q
            better = b.op(self.wins, value_q, value_p)
            equal = b.eq(value_q, value_p)
            if name in ("f32", "f64"):
                nan_p, nan_q = b.is_nan(value_p), b.is_nan(value_q)
                equal = b.or_(equal, b.and_(nan_p, nan_q))
                better = b.or_(better, b.and_(nan_q, b.not_(nan_p)))
            better = b.or_(better, b.and_(equal, b.lt(number_q, number_p)))
            better = b.and_(better, b.ge(number_q, b.const(0, "i32")))
            better = b.or_(better, b.lt(number_p, b.const(0, "i32")))
            return b.select(better, value_q, value_p), b.select(better, number_q, number_p)

        return window.reduce(b, element, combine, (b.const(0, name), nothing))[1]

    def reference(self, x: Any, *, window: Window) -> Any:
        small = dtypes.is_floating(x.dtype) and x.dtype.itemsize == 2
        x = x.astype(np.float32) if small else x
        present = window.numpy_view(np.ones(x.shape, bool), False)
        view = window.numpy_view(
            x, np.asarray(extreme_value(x.dtype, self.wins == "gt")).astype(x.dtype)
        )
        if view.shape[-1] == 0 or view.size == 0:
            return np.full(view.shape[:-1], -1, np.int32)
        # a present element equal to the padding's value must be preferred to the padding
        best = (view.max if self.wins == "gt" else view.min)(-1, keepdims=True)
        hit = present & ((view == best) | ((view != view) & (best != best)))
        return np.where(present.any(-1), hit.argmax(-1), -1).astype(np.int32)


class WindowGather(TypeCached):
    """(x, choice) -> x at the chosen tap of each window, 0 where choice is -1.  Linear in x."""

    fusable = True
    rereads = True

    def result_type(self, x: Any, choice: Any, *, window: Window) -> Any:
        if window.counts(x.shape) != choice.shape:
            self.fail(f"expected choice of shape {window.counts(x.shape)}, got {choice}.")
        return ArrayType(choice.shape, x.dtype_code, x.weak_type)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, window: Window) -> Any:
        out = self.bind(*primals, window=window)
        if is_zero_tangent(tangents[0]):
            return out, Zero(tangent_type(type_of(out)))
        return out, self.bind(tangents[0], primals[1], window=window)

    @transposed
    def transpose(self, cotangent: Any, x: Any, choice: Any, *, window: Window) -> Sequence[Any]:
        ct = WINDOW_SCATTER_ADD.bind(cotangent, choice, window=window, shape=x.aval.shape)
        return [ct, None]

    def batch(self, axis: AxisData, operands: Any, dims: Any, *, window: Window) -> Any:
        moved = [mapped_first(x, d, axis.size) for x, d in zip(operands, dims, strict=True)]
        return self.bind(*moved, window=window.with_axis(0)), 0

    def lower(self, b: Any, inputs: Any, index: Any, out: Any, *, window: Window) -> Any:
        x, choice = inputs
        shape = x.aval.shape
        zero = b.const(0, dtypes.scalar_name(out))
        if 0 in shape:
            return zero
        number = b.convert(choice(index), "i64")
        chosen = b.ge(number, b.index(0))
        rest = b.max(number, b.index(0))
        taps: list[Any] = [b.index(0)] * len(shape)
        for i in reversed(window.spanned()):
            taps[i] = b.rem(rest, b.index(window.sizes[i]))
            rest = b.div(rest, b.index(window.sizes[i]))
        at, _ = window.source(b, index, taps, shape)
        at = tuple(
            b.max(b.min(p, b.index(n - 1)), b.index(0)) for p, n in zip(at, shape, strict=True)
        )
        return b.guarded(chosen, lambda: x(at), zero)

    def reference(self, x: Any, choice: Any, *, window: Window) -> Any:
        view = window.numpy_view(x, np.zeros((), x.dtype))
        if view.shape[-1] == 0:
            return np.zeros(choice.shape, x.dtype)
        picked = np.take_along_axis(view, np.maximum(choice, 0)[..., None].astype(np.int64), -1)
        return np.where(choice >= 0, picked[..., 0], np.zeros((), x.dtype))


class WindowScatterAdd(TypeCached):
    """(source, choice) -> array of `shape`: each window's value added at its chosen element."""

    fusable = True

    def result_type(
        self, source: Any, choice: Any, *, window: Window, shape: tuple[int, ...]
    ) -> Any:
        if not window.counts(shape) == choice.shape == source.shape:
            self.fail(
                f"expected source and choice of shape {window.counts(shape)}, got {source} and "
                f"{choice}."
            )
        return ArrayType(shape, source.dtype_code, source.weak_type)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = self.bind(*primals, **params)
        if is_zero_tangent(tangents[0]):
            return out, Zero(tangent_type(type_of(out)))
        return out, self.bind(tangents[0], primals[1], **params)

    @transposed
    def transpose(
        self, cotangent: Any, source: Any, choice: Any, *, window: Window, shape: Any
    ) -> Sequence[Any]:
        return [WINDOW_GATHER.bind(cotangent, choice, window=window), None]

    def batch(self, axis: AxisData, operands: Any, dims: Any, *, window: Window, shape: Any) -> Any:
        moved = [mapped_first(x, d, axis.size) for x, d in zip(operands, dims, strict=True)]
        return self.bind(*moved, window=window.with_axis(0), shape=(axis.size, *shape)), 0

    def lower(
        self, b: Any, inputs: Any, index: Any, out: Any, *, window: Window, shape: Any
    ) -> Any:
        source, choice = inputs
        name = dtypes.scalar_name(out)
        wide = {"f16": "f32", "bf16": "f32"}.get(name, name)
        zero = b.const(0, wide)
        if 0 in choice.aval.shape:
            return b.const(0, name)
        # the taps of the gradient window count backwards
        back = window.gradient(shape)

        def value(taps: tuple[Any, ...]) -> Any:
            at, inside = back.source(b, index, taps, choice.aval.shape)
            forward = [b.sub(b.index(w - 1), t) for w, t in zip(window.sizes, taps, strict=True)]
            number = b.convert(window.tap_number(b, forward), "i32")

            def read() -> Any:
                chosen = b.eq(choice(at), number)
                return b.select(chosen, b.convert(source(at), wide), zero)

            return read() if inside is None else b.guarded(inside, read, zero)

        return b.convert(window.reduce(b, value, "add", zero), name)

    def reference(self, source: Any, choice: Any, *, window: Window, shape: Any) -> Any:
        small = dtypes.is_floating(source.dtype) and source.dtype.itemsize == 2
        out = np.zeros(math.prod(shape), np.float32 if small else source.dtype)
        places = window.numpy_view(np.arange(out.size).reshape(shape), -1)
        if places.shape[-1]:
            at = np.take_along_axis(places, np.maximum(choice, 0)[..., None].astype(np.int64), -1)[
                ..., 0
            ]
            good = (choice >= 0) & (at >= 0)
            np.add.at(out, at[good], source[good].astype(out.dtype))
        return out.reshape(shape).astype(source.dtype)


class ReduceWindowMax(ReduceWindowExtremum):
    opcode = "max"

    def numpy_reduce(self, view: Any) -> Any:
        return view.max(-1, initial=extreme_value(view.dtype, True))


class ReduceWindowMin(ReduceWindowExtremum):
    opcode = "min"
    lowest = False

    def numpy_reduce(self, view: Any) -> Any:
        return view.min(-1, initial=extreme_value(view.dtype, False))


class ReduceWindowArgMax(ReduceWindowArg):
    pass


class ReduceWindowArgMin(ReduceWindowArg):
    wins = "lt"


REDUCE_WINDOW_SUM = ReduceWindowSum("reduce_window_sum")
REDUCE_WINDOW_MAX = ReduceWindowMax("reduce_window_max")
REDUCE_WINDOW_MIN = ReduceWindowMin("reduce_window_min")
REDUCE_WINDOW_ARGMAX = ReduceWindowArgMax("reduce_window_argmax")
REDUCE_WINDOW_ARGMIN = ReduceWindowArgMin("reduce_window_argmin")
WINDOW_GATHER = WindowGather("window_gather")
WINDOW_SCATTER_ADD = WindowScatterAdd("window_scatter_add")
ReduceWindowMax.chooser = REDUCE_WINDOW_ARGMAX
ReduceWindowMin.chooser = REDUCE_WINDOW_ARGMIN
