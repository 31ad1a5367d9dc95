"""Runs a kernel twice, interpreted and compiled, on the same arrays, and compares bit by bit.

`check(kernel, arrays, params, begin, end)` is the oracle of the tests in this folder.  Buffers end
where a guard page begins, so that any access past the end of an array crashes the test.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence

import numpy as np

from jato import _native
from jato.compiler.llvm.link import CompiledKernel, compile_kernels
from jato.compiler.llvm.target import Target, host, without_masks
from jato.loopir import interp
from jato.loopir.grammar import Kernel
from jato.loopir.verify import verify

TARGETS = [host(), without_masks(host())]
_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_libc = ctypes.CDLL(None)


def guarded_copy(array: np.ndarray) -> np.ndarray:
    """A copy whose last byte is followed by memory that must not be touched."""
    page = mmap.PAGESIZE
    size = -(-max(1, array.nbytes) // page) * page
    memory = mmap.mmap(-1, size + page)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert _libc.mprotect(ctypes.c_void_p(base + size), ctypes.c_size_t(page), 0) == 0
    view = np.frombuffer(memory, np.uint8, array.nbytes, size - array.nbytes).view(array.dtype)
    view[...] = array.ravel()
    return view


def call(
    code: CompiledKernel,
    arrays: Sequence[np.ndarray],
    params: Sequence[int] = (),
    begin: int = 0,
    end: int = 0,
) -> None:
    """Calls compiled code on arrays (one per buffer that is not local)."""
    pointers = (ctypes.c_void_p * max(1, len(arrays)))(*[a.ctypes.data for a in arrays])
    values = (ctypes.c_int64 * max(1, len(params)))(*params)
    scratch = np.zeros(code.scratch_bytes + 64, np.uint8)
    cancel = ctypes.c_int32(0)
    arguments = (ctypes.c_void_p * 5)(
        ctypes.addressof(pointers),
        ctypes.addressof(values),
        (scratch.ctypes.data + 63) & ~63,
        ctypes.addressof(cancel),
        _native.kernel_routines(),
    )
    _FUNCTION(code.address)(ctypes.addressof(arguments), begin, end)


def check(
    kernel: Kernel,
    arrays: Sequence[np.ndarray],
    params: Sequence[int] = (),
    begin: int = 0,
    end: int = 0,
    *,
    rtol: float = 0.0,
    targets: Sequence[Target] = tuple(TARGETS),
    codes: dict[str, CompiledKernel] | None = None,
) -> list[np.ndarray]:
    """Compares compiled code with the interpreter; gives the interpreter's arrays."""
    verify(kernel)
    expected = [a.ravel().copy() for a in arrays]
    interp.run(kernel, expected, params, begin, end)
    for target in targets:
        code = codes.get(target.key) if codes is not None else None
        if code is None:
            (code,) = compile_kernels([kernel], target)
            if codes is not None:
                codes[target.key] = code
        actual = [guarded_copy(a) for a in arrays]
        call(code, actual, params, begin, end)
        for got, want, given in zip(actual, expected, arrays, strict=True):
            assert_same(
                got, want, rtol, f"{kernel.name} on {target.vector_bits} bits, n={end}", given
            )
    return expected


def assert_same(
    got: np.ndarray, want: np.ndarray, rtol: float, title: str, given: np.ndarray | None = None
) -> None:
    if want.dtype.kind in "biu":
        same = got == want
    else:
        a, b = got.astype(np.float64), want.astype(np.float64)
        with np.errstate(all="ignore"):
            close = np.abs(a - b) <= rtol * np.abs(b) if rtol else a == b
            zero = (b != 0) | (np.signbit(a) == np.signbit(b)) | bool(rtol)
        same = ((a == b) | close) & zero | (np.isnan(a) & np.isnan(b))
    if not same.all():
        at = int(np.flatnonzero(~same)[0])
        raise AssertionError(f"{title}: element {at} is {got[at]!r}, expected {want[at]!r}")
