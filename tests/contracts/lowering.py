"""Runs a primitive's `lower` through the loop-IR interpreter: one kernel, one node."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import ml_dtypes
import numpy as np

from jato.base import dtypes
from jato.loopir import interp
from jato.loopir.builder import Builder
from jato.loopir.verify import verify


class Operand:
    """What `lower` sees of an operand: its type, and its value at an index, loaded."""

    def __init__(self, b: Builder, aval: Any, name: str):
        self.b = b
        self.aval = aval
        self.buffer = b.input(name, dtypes.scalar_name(aval))

    def __call__(self, index: tuple[Any, ...]) -> Any:
        return self.b.load(self.buffer, offset(self.b, self.aval.shape, index))


def offset(b: Builder, shape: tuple[int, ...], index: tuple[Any, ...]) -> Any:
    assert len(shape) == len(index), (shape, index)
    total = b.index(0)
    for n, i in zip(shape, index, strict=True):
        total = b.add(b.mul(total, b.index(n)), i)
    return total


def flat(x: np.ndarray) -> np.ndarray:
    """The elements in memory as the interpreter wants them: complex numbers as pairs."""
    x = np.ascontiguousarray(x).reshape(-1)
    return x.view(x.real.dtype) if x.dtype.kind == "c" else x


def run_lower(primitive: Any, operands: list[Any], params: dict[str, Any]) -> np.ndarray:
    """The result for operands made by `hold`; random keys are uint64 words in memory."""
    avals = [x.aval for x in operands]
    out = primitive.type_rule(*avals, **params)
    b = Builder()
    inputs = [Operand(b, aval, f"x{i}") for i, aval in enumerate(avals)]
    target = b.output("out", dtypes.scalar_name(out))
    with ExitStack() as loops:
        index = tuple(loops.enter_context(b.for_(f"i{k}", 0, n)) for k, n in enumerate(out.shape))
        value = primitive.lower(b, inputs, index, out, **params)
        b.store(target, offset(b, out.shape, index), value)
    kernel = b.kernel(primitive.name)
    verify(kernel)
    dtype = np.dtype("uint64") if out.dtype is dtypes.key else out.dtype
    result = np.zeros(out.shape, dtype)
    memory = flat(result)
    with np.errstate(all="ignore"):
        interp.run(kernel, [*(flat(np.asarray(x)) for x in operands), memory])
    return memory.view(dtype).reshape(out.shape)


def same(found: np.ndarray, expected: np.ndarray, ulps: float, signs: bool = True) -> None:
    """Equal NaNs, infinities and (`signs`) signs of zeros; finite values within so many ULP."""
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if not dtypes.is_inexact(found.dtype):
        np.testing.assert_array_equal(found, expected)
        return
    if found.dtype.kind == "c":
        scale = np.abs(expected)
        _close(found.real, expected.real, ulps, scale, signs)
        _close(found.imag, expected.imag, ulps, scale, signs)
    else:
        _close(found, expected, ulps, np.abs(expected.astype(np.float64)), signs)


def _close(found: np.ndarray, expected: np.ndarray, ulps: float, scale: Any, signs: bool) -> None:
    dtype = found.dtype
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(
        np.where(np.isinf(found), found, 0), np.where(np.isinf(expected), expected, 0)
    )
    finite = np.isfinite(expected)
    scale = np.where(np.isfinite(scale), scale, 0)
    eps, tiny = float(ml_dtypes.finfo(dtype).eps), float(ml_dtypes.finfo(dtype).smallest_subnormal)
    allowed = ulps * np.maximum(scale * eps, tiny)
    wrong = finite & ~(np.abs(found - np.where(finite, expected, 0)) <= allowed)
    assert not wrong.any(), f"{found[wrong][:5]} instead of {expected[wrong][:5]}"
    zeros = signs & finite & (expected == 0) & (found == 0)
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]))
