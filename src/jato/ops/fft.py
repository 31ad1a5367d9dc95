"""Fourier transforms over the last axes: `fft` with the kinds fft, ifft, rfft and irfft.

Data: `lengths` of the axes transformed, in order; they are the last len(lengths) axes of the
real array (rfft: of the operand, irfft: of the result), whose half spectrum has n // 2 + 1
elements.  The inverse kinds divide by the number of points.  Computed by native/core/fft.cpp, over more
than four axes by SciPy.

All kinds are linear.  fft and ifft are symmetric matrices, their own transposes; those of the
real kinds pass through the full spectrum (`FFT.transpose`).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jato import _native
from jato.base import dtypes
from jato.base.errors import fail
from jato.base.lazy import LazyModule
from jato.core.primitive import AxisData
from jato.core.types import Zero, array_type, tangent_type, type_of
from jato.ops.elementwise import conj, mul, real
from jato.ops.families import is_zero_tangent, transposed
from jato.ops.opaque import Opaque
from jato.ops.shapes import broadcast_to, move_axis
from jato.ops.structural import pad

scipy_fft: Any = LazyModule("scipy.fft")

# Below this many points threads cost more than they give.
_PARALLEL_POINTS = 1 << 16


# What native/core/fft.h takes; SciPy does the rest.
_NATIVE_RANK = 4
# A length with a large prime factor is a convolution, whose tables take long to make: 0.2 s for
# 100,003 points, 2.5 s for 2,000,003.  Longer ones are SciPy's, too.
_LARGEST_CONVOLVED = 1 << 17
_LARGEST_RADIX = 31


class FftType(enum.Enum):
    """Which transform: the names of jax.lax.FftType."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


_KINDS = ("fft", "ifft", "rfft", "irfft")


def _has_small_factors(n: int) -> bool:
    for factor in (2, *range(3, _LARGEST_RADIX + 1, 2)):
        while n % factor == 0 and n > 1:
            n //= factor
    return n <= 1


class FFT(Opaque):
    """See the module.  `fft` and `ifft` take real operands too, at half the work."""

    multiple_results = False

    def result_type(self, x: Any, *, kind: str, lengths: tuple[int, ...]) -> Any:
        wanted = "c" if kind == "irfft" else "f" if kind == "rfft" else "fc"
        if x.dtype.kind not in wanted or x.dtype.itemsize < 4:
            names = {"c": "complex", "f": "float32 or float64"}
            self.fail(
                f"expected x to be {' or '.join(names[k] for k in wanted)} for kind {kind}, got {x}."
            )
        ndim = len(lengths)
        shape = (*lengths[:-1], lengths[-1] // 2 + 1) if kind == "irfft" else lengths
        if not 1 <= ndim <= x.ndim or x.shape[x.ndim - ndim :] != shape or 0 in lengths:
            self.fail(
                f"expected the last axes of x to have the positive extents {shape} for kind "
                f"{kind} with lengths {lengths}, got {x}.",
                error=ValueError,
            )
        lead = x.shape[: x.ndim - ndim]
        if kind == "rfft":
            lengths = (*lengths[:-1], lengths[-1] // 2 + 1)
        dtype = np.result_type(x.dtype, np.complex64)
        return array_type((*lead, *lengths), np.zeros((), dtype).real.dtype if kind == "irfft" else dtype)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = self.bind(*primals, **params)
        if is_zero_tangent(tangents[0]):
            return out, Zero(tangent_type(type_of(out)))
        return out, self.bind(tangents[0], **params)

    @transposed
    def transpose(self, cotangent: Any, x: Any, *, kind: str, lengths: tuple[int, ...]) -> Any:
        aval = x.aval
        if kind in ("fft", "ifft"):
            out = self.bind(cotangent, kind=kind, lengths=lengths)
            return [out if dtypes.is_complex(aval.dtype) else real(out)]
        if kind == "rfft":
            # zeros for the half that is not there, then the full transform
            missing = lengths[-1] - lengths[-1] // 2 - 1
            zero = np.zeros((), type_of(cotangent).dtype)[()]
            full = pad(cotangent, zero, [*((0, 0, 0) for _ in range(aval.ndim - 1)), (0, missing, 0)])
            return [real(self.bind(full, kind="fft", lengths=lengths))]
        # Elements of the half spectrum count twice, except those that are their own mirror image.
        half = self.bind(cotangent, kind="rfft", lengths=lengths)
        count = lengths[-1] // 2 + 1
        weight = np.full(count, 2.0 / math.prod(lengths))
        weight[0] /= 2
        if lengths[-1] % 2 == 0:
            weight[-1] /= 2
        dtype = type_of(half).dtype
        weights = broadcast_to(weight.astype(dtype), type_of(half).shape, (aval.ndim - 1,))
        return [mul(conj(half), weights)]

    def batch(self, axis: AxisData, operands: Any, dims: Any, **params: Any) -> Any:
        return self.bind(move_axis(operands[0], dims[0], 0), **params), 0

    def library_call(self, node: Any) -> tuple[str, tuple[int, ...]] | None:
        x, kind, lengths = node.inputs[0].aval, node.params["kind"], node.params["lengths"]
        if len(lengths) > _NATIVE_RANK or any(
            n > _LARGEST_CONVOLVED and not _has_small_factors(n) for n in lengths
        ):
            return None
        batch = math.prod(x.shape[: x.ndim - len(lengths)])
        padding = (1,) * (_NATIVE_RANK - len(lengths))
        return "fft", (x.dtype_code, _KINDS.index(kind), batch, len(lengths), *lengths, *padding)

    def library_cost(self, node: Any) -> float:
        return 200.0 + 0.05 * node.outputs[0].aval.size * math.log2(2 * math.prod(node.params["lengths"]))

    def host(self, x: np.ndarray, *, kind: str, lengths: tuple[int, ...]) -> list[np.ndarray]:
        axes = tuple(range(x.ndim - len(lengths), x.ndim))
        workers = _native.num_threads() if x.size >= _PARALLEL_POINTS else 1
        if x.size == 0:
            out = self.type_rule(array_type(x.shape, x.dtype), kind=kind, lengths=lengths)
            return [np.zeros(out.shape, out.dtype)]
        if kind == "irfft":
            return [scipy_fft.irfftn(x, lengths, axes, workers=workers)]
        return [getattr(scipy_fft, kind + "n")(x, None, axes, workers=workers)]

    def reference(self, x: Any, **params: Any) -> Any:
        return self.host(np.asarray(x), **params)[0]


FFT_PRIMITIVE = FFT("fft")


def fft(x: Any, fft_type: Any, fft_lengths: Any) -> Any:
    """The Fourier transform over the last len(fft_lengths) axes.

    x: complex array; real for RFFT.  fft_type: an `FftType`, or its name or number.
    fft_lengths: extents of these axes, of the real array for RFFT and IRFFT.
    Raises: TypeError for another dtype, ValueError for other extents or an unknown type.

    >>> fft(np.ones(2, np.complex64), "FFT", (2,)).tolist()
    [(2+0j), 0j]
    """
    return FFT_PRIMITIVE.bind(x, kind=_kind(fft_type), lengths=tuple(int(n) for n in fft_lengths))


def _kind(fft_type: Any) -> str:
    name = getattr(fft_type, "name", fft_type)
    if isinstance(name, int) and 0 <= name < len(_KINDS):
        return _KINDS[name]
    if isinstance(name, str) and name.lower() in _KINDS:
        return name.lower()
    fail(
        ValueError, "fft", f"expected fft_type to be one of FFT, IFFT, RFFT, IRFFT, got {fft_type!r}."
    )  # fmt: skip
