"""Checks of a primitive's rules against each other and against numbers, for tests of ops/.

Operations run through the NumPy `reference` of each primitive (`numpy_evaluation`), so that these
checks need no compiler.  Every evaluation also checks `type_rule` against what `reference` returns.

    check_jvp        jvp against central differences, in 64 bits
    check_transpose  <ct, f(t)> = <transpose(ct), t>
    check_batch      batch against a loop, for every set of mapped operands
"""

from __future__ import annotations

import itertools
from contextlib import contextmanager

import numpy as np

from jato.base import dtypes, hooks
from jato.core.primitive import AxisData, UndefinedPrimal
from jato.core.types import ArrayType, Zero, array_type, tangent_type, type_of


class Held:
    """A NumPy value with its ArrayType."""

    __array_priority__ = 1000

    def __init__(self, value, aval):
        self.value, self.aval = value, aval
        self.shape, self.dtype, self.ndim, self.size = aval.shape, aval.dtype, aval.ndim, aval.size
        self.weak_type = aval.weak_type

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.value, dtype)

    def __repr__(self):
        return f"Held({self.aval})"


def hold(x, dtype=None):
    """A NumPy value as an operand; dtype "key" makes random keys of uint64 words."""
    if isinstance(x, Held):
        return x
    x = np.asarray(x)
    if dtype == "key":
        return Held(x.astype(np.uint64), array_type(x.shape, dtypes.key))
    return Held(x, array_type(x.shape, dtypes.as_dtype(x.dtype) if dtype is None else dtype))


def _physical(aval):
    return np.dtype(np.uint64) if aval.dtype is dtypes.key else aval.dtype


def evaluate(primitive, args, params):
    avals = [type_of(x) for x in args]
    arrays = [np.asarray(x).astype(_physical(a)) for x, a in zip(args, avals, strict=True)]
    types = primitive.type_rule(*avals, **params)
    with np.errstate(all="ignore"):
        outs = primitive.reference(*arrays, **params)
    several = primitive.multiple_results
    pairs = list(zip(outs, types, strict=True)) if several else [(outs, types)]
    held = []
    for out, aval in pairs:
        out = np.asarray(out)
        assert out.shape == aval.shape, (primitive, out.shape, aval)
        assert out.dtype == _physical(aval), (primitive, out.dtype, aval)
        held.append(Held(out, aval))
    return held if several else held[0]


@contextmanager
def numpy_evaluation():
    """Runs eager operations through `reference` while it is open."""
    before = hooks.eval_primitive._value
    hooks.eval_primitive._value = evaluate
    try:
        yield
    finally:
        hooks.eval_primitive._value = before


@contextmanager
def x64():
    before = dtypes.x64_enabled()
    dtypes.set_x64(True)
    try:
        yield
    finally:
        dtypes.set_x64(before)


def _outs(primitive, result):
    return list(result) if primitive.multiple_results else [result]


def value(x):
    return np.zeros(x.aval.shape, x.aval.dtype) if isinstance(x, Zero) else np.asarray(x)


def random_like(rng, aval):
    if dtypes.is_complex(aval.dtype):
        return hold(
            (rng.standard_normal(aval.shape) + 1j * rng.standard_normal(aval.shape)).astype(
                aval.dtype
            )
        )
    return hold(rng.standard_normal(aval.shape).astype(aval.dtype))


def check_jvp(primitive, operands, params, wrt=None, tolerance=1e-6, step=1e-6):
    """Tangents of the operands `wrt` (default: all inexact ones), one at a time and all together."""
    with numpy_evaluation(), x64():
        rng = np.random.default_rng(0)
        operands = [hold(x) for x in operands]
        floats = [i for i, x in enumerate(operands) if dtypes.is_inexact(x.aval.dtype)]
        wrt = floats if wrt is None else wrt
        for chosen in [[i] for i in wrt] + ([wrt] if len(wrt) > 1 else []):
            tangents = [
                random_like(rng, x.aval) if i in chosen else Zero(tangent_type(x.aval))
                for i, x in enumerate(operands)
            ]
            result, tangent = primitive.jvp(operands, tangents, **params)

            def moved(h, tangents=tangents, chosen=chosen):
                at = [
                    hold(value(x) + h * value(t)) if i in chosen else x
                    for i, (x, t) in enumerate(zip(operands, tangents, strict=True))
                ]
                return _outs(primitive, primitive.bind(*at, **params))

            plain = _outs(primitive, primitive.bind(*operands, **params))
            for got, want in zip(_outs(primitive, result), plain, strict=True):
                np.testing.assert_array_equal(value(got), value(want))
            for t, up, down, out in zip(
                _outs(primitive, tangent), moved(step), moved(-step), plain, strict=True
            ):
                if not dtypes.is_inexact(out.aval.dtype):
                    assert t.aval.dtype == dtypes.float0
                    continue
                assert type_of(t) == tangent_type(out.aval) or isinstance(t, Zero), (t, out)
                numeric = (value(up) - value(down)) / (2 * step)
                np.testing.assert_allclose(value(t), numeric, rtol=tolerance, atol=tolerance)


def check_transpose(primitive, operands, params, linear, tolerance=1e-9):
    """The dot-product test, linear in the operands `linear` together."""
    with numpy_evaluation(), x64():
        rng = np.random.default_rng(1)
        operands = [hold(x) for x in operands]
        out = primitive.bind(*operands, **params)
        ct = random_like(rng, out.aval)
        marked = [UndefinedPrimal(x.aval) if i in linear else x for i, x in enumerate(operands)]
        cts = primitive.transpose(ct, *marked, **params)
        assert len(cts) == len(operands)
        total = 0
        for i, x in enumerate(operands):
            if i not in linear:
                assert cts[i] is None
                continue
            got = cts[i].aval
            assert (got.shape, got.dtype) == (x.aval.shape, x.aval.dtype), (cts[i], x)
            total = total + np.sum(value(cts[i]) * value(x))
        # real parts: parts of complex numbers are linear over the reals only
        wanted = np.sum(value(ct) * value(out)).real
        np.testing.assert_allclose(np.real(total), wanted, rtol=tolerance, atol=tolerance)
        zeros = primitive.transpose(Zero(out.aval), *marked, **params)
        for i in linear:
            assert isinstance(zeros[i], Zero), zeros


def check_batch(primitive, operands, params, size=3, fixed=(), vary=None):
    """Every set of mapped operands (without `fixed`), axes at varying places, sizes `size` and 0.

    `vary(i, k, x)` makes the k-th version of operand i (default: rolled values)."""
    vary = vary or (lambda i, k, x: np.roll(x, k * (i + 1)) if x.ndim else x + x.dtype.type(k))
    with numpy_evaluation(), x64():
        operands = [hold(x) for x in operands]
        free = [i for i in range(len(operands)) if i not in fixed]
        for count in range(1, len(free) + 1):
            for mapped in itertools.combinations(free, count):
                for place in (0, -1):
                    dims = [
                        (0 if place == 0 else x.aval.ndim) if i in mapped else None
                        for i, x in enumerate(operands)
                    ]
                    _compare_batch(primitive, operands, params, dims, size, vary)
                _compare_batch(primitive, operands, params, dims, 0, vary)


def _compare_batch(primitive, operands, params, dims, size, vary):
    def dtype(x):
        return "key" if x.aval.dtype is dtypes.key else x.aval.dtype

    versions = [
        [vary(i, k, value(x)) if d is not None else value(x) for k in range(size)]
        for i, (x, d) in enumerate(zip(operands, dims, strict=True))
    ]
    stacked = []
    for i, (x, d) in enumerate(zip(operands, dims, strict=True)):
        if d is None:
            stacked.append(x)
            continue
        shape = list(x.aval.shape)
        shape.insert(d, 0)
        array = np.stack(versions[i], d) if size else np.zeros(shape, _physical(x.aval))
        stacked.append(hold(array, dtype(x)))
    outs, out_dims = primitive.batch(AxisData(None, size), stacked, dims, **params)
    if not primitive.multiple_results:
        outs, out_dims = [outs], [out_dims]
    one = primitive.type_rule(*[x.aval for x in operands], **params)
    ones = one if primitive.multiple_results else [one]
    for out, d, aval in zip(outs, out_dims, ones, strict=True):
        shape = list(aval.shape)
        if d is not None:
            shape.insert(d, size)
        assert out.aval.shape == tuple(shape), (primitive, dims, out.aval, shape)
    for k in range(size):
        args = [hold(v[k], dtype(x)) for v, x in zip(versions, operands, strict=True)]
        wants = _outs(primitive, primitive.bind(*args, **params))
        for out, d, want in zip(outs, out_dims, wants, strict=True):
            got = value(out) if d is None else np.take(value(out), k, d)
            single = dtypes.is_inexact(want.aval.dtype) and value(want).real.dtype.itemsize < 8
            near = 1e-5 if single else 1e-9  # sums may be done in another order
            np.testing.assert_allclose(
                got, value(want), rtol=near, atol=near, err_msg=f"{primitive} {dims} {k}"
            )


__all__ = [
    "ArrayType", "Held", "check_batch", "check_jvp", "check_transpose", "evaluate", "hold",
    "numpy_evaluation", "value", "x64",
]  # fmt: skip
