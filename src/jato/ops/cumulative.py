"""Running sums, products, extrema and log-sum-exps along an axis.

    y[.., i, ..] = x[.., 0, ..] o ... o x[.., i, ..]      reverse: from the other end

`Cumulative` gives the compiler the protocol of `Reduction` (identity, element, combine, finish)
with `axis` and `reverse` in the params: a kernel carries the accumulators along the axis, and
blocks of a long axis may be scanned in parallel, since `combine` is associative.  f16 and bf16
accumulate in f32.

The derivatives of all but cumsum are scans of pairs (value, tangent), composed here of log2(n)
rounds of shifted combinations (Hillis and Steele, "Data parallel algorithms", CACM 1986): linear in
the tangent and free of divisions, so zeros do no harm.  Start reading at `Cumulative`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.core.primitive import AxisData
from jato.core.types import Zero, tangent_type, type_of
from jato.ops.elementwise import (
    add,
    div,
    eq,
    exp,
    gt,
    in_order,
    log,
    lt,
    max,
    mul,
    select_n,
    sub,
)
from jato.ops.arithmetic import MAX, MIN
from jato.ops.families import (
    TypeCached,
    check_axes,
    check_kind,
    is_zero_tangent,
    transposed,
)
from jato.ops.structural import full, pad, slice_in_dim

State = tuple[Any, ...]


class Cumulative(TypeCached):
    """See the module.  Params: axis (>= 0), reverse."""

    opcode: str | None = None  # name of the combining opcode, if it is one
    takes = "iufc"

    # -- the protocol; see shapes.Reduction

    def accumulator_dtype(self, aval: Any) -> str:
        name = dtypes.scalar_name(aval)
        return {"f16": "f32", "bf16": "f32", "c64": "f32", "c128": "f64"}.get(name, name)

    def identity(self, b: Any, aval: Any, **params: Any) -> State:
        raise NotImplementedError

    def element(self, b: Any, value: Any, index: Any, **params: Any) -> State:
        if hasattr(value, "re"):
            return (value.re, value.im)
        return (b.convert(value, "f32") if value.dtype in ("f16", "bf16") else value,)

    def combine(self, b: Any, left: State, right: State) -> State:
        return tuple(b.op(self.opcode, x, y) for x, y in zip(left, right, strict=True))

    def finish(self, b: Any, values: State, out: Any, **params: Any) -> Any:
        if dtypes.is_complex(out.dtype):
            return b.complex(*values)
        return b.convert(values[0], dtypes.scalar_name(out))

    # -- rules

    def result_type(self, x: Any, *, axis: int, reverse: bool) -> Any:
        check_kind(self, "operand", x, self.takes)
        check_axes(self, "axis", (axis,), x)
        return x

    def batch(self, mapped: AxisData, operands: Any, dims: Any, *, axis: int, reverse: bool) -> Any:
        dim = dims[0]
        return self.bind(operands[0], axis=axis + (axis >= dim), reverse=reverse), dim

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, axis: int, reverse: bool
    ) -> Any:
        (x,), (t,) = primals, tangents
        out = self.bind(x, axis=axis, reverse=reverse)
        if is_zero_tangent(t):
            return out, Zero(tangent_type(type_of(out)))
        return out, self.tangent(x, t, axis, reverse)

    def tangent(self, x: Any, t: Any, axis: int, reverse: bool) -> Any:
        """The tangent of the result, linear in t."""
        raise NotImplementedError

    def simplify(self, node: Any, rewriter: Any) -> Any:
        (x,) = node.inputs
        return [x] if x.aval.shape[node.params["axis"]] == 1 else None

    def reference(self, x: Any, *, axis: int, reverse: bool) -> Any:
        wide = np.float32 if dtypes.is_floating(x.dtype) and x.dtype.itemsize == 2 else x.dtype
        x = np.asarray(x)
        y = np.flip(x, axis) if reverse else x
        y = self.numpy_scan(y.astype(wide), axis)
        return (np.flip(y, axis) if reverse else y).astype(x.dtype)

    def numpy_scan(self, x: Any, axis: int) -> Any:
        raise NotImplementedError


def log_scan(
    combine: Callable[[State, State], State], state: State, fills: Sequence[Any], axis: int,
    reverse: bool,
) -> State:  # fmt: skip
    """Inclusive scan of a tuple of arrays by an associative `combine`, in log2(n) rounds.

    `fills`: the identity, that is shifted in.  The earlier element is always the left one."""
    n = type_of(state[0]).shape[axis]
    shift = 1
    while shift < n:
        earlier = tuple(
            _shifted(x, shift, fill, axis, reverse) for x, fill in zip(state, fills, strict=True)
        )
        state = combine(earlier, state)
        shift *= 2
    return state


def _shifted(x: Any, shift: int, fill: Any, axis: int, reverse: bool) -> Any:
    """x moved by `shift` towards later positions, with `fill` entering."""
    aval = type_of(x)
    n = aval.shape[axis]
    config = [(0, 0, 0)] * aval.ndim
    config[axis] = (0, shift, 0) if reverse else (shift, 0, 0)
    kept = (
        slice_in_dim(x, shift, n, axis=axis)
        if reverse
        else slice_in_dim(x, 0, n - shift, axis=axis)
    )
    return pad(kept, full((), fill, aval.dtype), config)


class CumSum(Cumulative):
    """Running sum: linear; its transpose is the running sum from the other end."""

    opcode = "add"

    def identity(self, b: Any, aval: Any, **params: Any) -> State:
        zero = b.const(0, self.accumulator_dtype(aval))
        return (zero, zero) if dtypes.is_complex(aval.dtype) else (zero,)

    def tangent(self, x: Any, t: Any, axis: int, reverse: bool) -> Any:
        return self.bind(t, axis=axis, reverse=reverse)

    @transposed
    def transpose(self, cotangent: Any, x: Any, *, axis: int, reverse: bool) -> Sequence[Any]:
        return [self.bind(cotangent, axis=axis, reverse=not reverse)]

    def numpy_scan(self, x: Any, axis: int) -> Any:
        return np.cumsum(x, axis, dtype=x.dtype)


class CumProd(Cumulative):
    opcode = "mul"

    def identity(self, b: Any, aval: Any, **params: Any) -> State:
        one = b.const(1, self.accumulator_dtype(aval))
        return (one, b.const(0, one.dtype)) if dtypes.is_complex(aval.dtype) else (one,)

    def combine(self, b: Any, left: State, right: State) -> State:
        if len(left) == 1:
            return super().combine(b, left, right)
        product = b.mul(b.complex(*left), b.complex(*right))
        return (product.re, product.im)

    def tangent(self, x: Any, t: Any, axis: int, reverse: bool) -> Any:
        def combine(left: State, right: State) -> State:  # d(p q) = dp q + p dq
            (p, dp), (q, dq) = left, right
            return mul(p, q), add(mul(dp, q), mul(p, dq))

        return log_scan(combine, (x, t), (1, 0), axis, reverse)[1]

    def numpy_scan(self, x: Any, axis: int) -> Any:
        return np.cumprod(x, axis, dtype=x.dtype)


class CumExtremum(Cumulative):
    """Running maximum or minimum; NaN stays.  Tangents of equal values are averaged.  Complex
    numbers are ordered by their real part, then by their imaginary part."""

    takes = "biufc"
    of_two: Any = None
    lowest = True  # is the identity the lowest value of the dtype?
    wins: Any = None  # wins(x, y): x replaces y

    def identity(self, b: Any, aval: Any, **params: Any) -> State:
        worst = b.const(extreme_value(aval.dtype, self.lowest), self.accumulator_dtype(aval))
        return (worst, worst) if dtypes.is_complex(aval.dtype) else (worst,)

    def combine(self, b: Any, left: State, right: State) -> State:
        if len(left) == 1:
            return super().combine(b, left, right)
        best = self.of_two.formula(b, b.complex(*left), b.complex(*right))
        return best.re, best.im

    def tangent(self, x: Any, t: Any, axis: int, reverse: bool) -> Any:
        dtype = type_of(x).dtype
        wins = type(self).wins

        def combine(left: State, right: State) -> State:
            (p, dp), (q, dq) = left, right
            left_wins, right_wins = in_order(wins, p, q), in_order(wins, q, p)
            mean = mul(add(dp, dq), full(type_of(dp).shape, 0.5, type_of(dp).dtype))
            tangent = select_n(left_wins, select_n(right_wins, mean, dq), dp)
            return select_n(left_wins, q, p), tangent

        lowest = extreme_value(dtype, self.lowest)
        if dtypes.is_complex(dtype):
            lowest = complex(lowest, lowest)
        return log_scan(combine, (x, t), (lowest, 0), axis, reverse)[1]


class CumMax(CumExtremum):
    opcode = "max"
    of_two = MAX
    wins = staticmethod(gt)

    def numpy_scan(self, x: Any, axis: int) -> Any:
        return np.maximum.accumulate(x, axis)


class CumMin(CumExtremum):
    opcode = "min"
    of_two = MIN
    lowest = False
    wins = staticmethod(lt)

    def numpy_scan(self, x: Any, axis: int) -> Any:
        return np.minimum.accumulate(x, axis)


class CumLogSumExp(Cumulative):
    """log of the running sum of exp(x).  The accumulator is (m, s) with the sum s * exp(m)."""

    takes = "f"

    def identity(self, b: Any, aval: Any, **params: Any) -> State:
        name = self.accumulator_dtype(aval)
        return b.const(-np.inf, name), b.const(0, name)

    def element(self, b: Any, value: Any, index: Any, **params: Any) -> State:
        value = b.convert(value, "f32") if value.dtype in ("f16", "bf16") else value
        return value, b.const(1, value.dtype)

    def combine(self, b: Any, left: State, right: State) -> State:
        (m1, s1), (m2, s2) = left, right
        m = b.max(m1, m2)
        one = b.const(1, m.dtype)

        def scale(part: Any) -> Any:  # equal infinities must not give inf - inf
            return b.select(b.eq(part, m), one, b.exp(b.sub(part, m)))

        return m, b.add(b.mul(s1, scale(m1)), b.mul(s2, scale(m2)))

    def finish(self, b: Any, values: State, out: Any, **params: Any) -> Any:
        m, s = values
        return b.convert(b.add(m, b.log(s)), dtypes.scalar_name(out))

    def tangent(self, x: Any, t: Any, axis: int, reverse: bool) -> Any:
        def combine(left: State, right: State) -> State:
            (p, dp), (q, dq) = left, right
            m = max(p, q)
            one = full(type_of(m).shape, 1, type_of(m).dtype)
            weights = [select_n(eq(part, m), exp(sub(part, m)), one) for part in (p, q)]
            total = add(*weights)
            tangent = add(*(mul(div(w, total), d) for w, d in zip(weights, (dp, dq), strict=True)))
            return add(m, log(total)), tangent

        return log_scan(combine, (x, t), (-np.inf, 0), axis, reverse)[1]

    def numpy_scan(self, x: Any, axis: int) -> Any:
        with np.errstate(invalid="ignore"):
            return np.logaddexp.accumulate(x, axis)


def extreme_value(dtype: Any, lowest: bool) -> Any:
    """The lowest or highest value of a real dtype (of a part of a complex one), with infinities."""
    if dtypes.is_bool(dtype):
        return not lowest
    if dtypes.is_integer(dtype):
        return np.iinfo(dtype).min if lowest else np.iinfo(dtype).max
    return -np.inf if lowest else np.inf


CUMSUM = CumSum("cumsum")
CUMPROD = CumProd("cumprod")
CUMMAX = CumMax("cummax")
CUMMIN = CumMin("cummin")
CUMLOGSUMEXP = CumLogSumExp("cumlogsumexp")


def _cumulative(primitive: Cumulative, operand: Any, axis: int, reverse: bool) -> Any:
    rank = type_of(operand).ndim
    if not -rank <= axis < rank:
        primitive.fail(
            f"expected axis to be one of {type_of(operand)}, got {axis}.", error=ValueError
        )
    return primitive.bind(operand, axis=axis % rank, reverse=bool(reverse))


def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Running sum along an axis, from the end if `reverse`.  Raises ValueError for a wrong axis.

    >>> cumsum(np.array([1, 2, 3])).tolist()
    [1, 3, 6]
    """
    return _cumulative(CUMSUM, operand, axis, reverse)


def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Running product along an axis, from the end if `reverse`.  ValueError for a wrong axis.

    >>> cumprod(np.array([1, 2, 3]), reverse=True).tolist()
    [6, 6, 3]
    """
    return _cumulative(CUMPROD, operand, axis, reverse)


def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Running maximum along an axis; once NaN it stays NaN.  Raises ValueError for a wrong axis.

    >>> cummax(np.array([1, 3, 2])).tolist()
    [1, 3, 3]
    """
    return _cumulative(CUMMAX, operand, axis, reverse)


def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Running minimum along an axis; once NaN it stays NaN.  Raises ValueError for a wrong axis.

    >>> cummin(np.array([2, 3, 1])).tolist()
    [2, 2, 1]
    """
    return _cumulative(CUMMIN, operand, axis, reverse)


def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """log of the running sum of exponentials, without overflow.  ValueError for a wrong axis.

    >>> cumlogsumexp(np.array([0.0, -np.inf])).tolist()
    [0.0, 0.0]
    """
    return _cumulative(CUMLOGSUMEXP, operand, axis, reverse)
