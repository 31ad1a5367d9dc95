"""The contract between generated code and the runtime: the layout of KernelArgs and scratch.

Mirrors native/core/kernel_abi.h; a test compares the offsets with the native module's.

    void kernel(const KernelArgs* args, int64_t begin, int64_t end)
"""

from __future__ import annotations

from collections.abc import Sequence

from jato.loopir.grammar import ITEMSIZE, Buffer

# struct KernelArgs { void* const* buffers; const int64_t* params; void* scratch;
#                     const volatile int32_t* cancel; const TileCopyFn* routines; }
OFFSETS = {"buffers": 0, "params": 8, "scratch": 16, "cancel": 24, "routines": 32}
SIZE = 40
# Places in the table of routines, by (bytes of an element, lanes, out): native/core/tile_copy.h.
ROUTINES = {
    (size, lanes, out): position + 3 * out
    for out in (False, True)
    for position, (size, lanes) in enumerate(((4, 16), (4, 8), (8, 8)))
}
ALIGNMENT = 64  # of scratch and of every local buffer in it


def argument_buffers(buffers: Sequence[Buffer]) -> list[Buffer]:
    """The buffers a caller passes, in the order of KernelArgs.buffers: all but the local ones."""
    return [b for b in buffers if b.space != "local"]


def scratch_layout(buffers: Sequence[Buffer]) -> tuple[dict[Buffer, int], int]:
    """Offsets of the local buffers in scratch, and the bytes of scratch that a call needs."""
    offsets: dict[Buffer, int] = {}
    total = 0
    for buffer in buffers:
        if buffer.space == "local":
            offsets[buffer] = total
            size = buffer.size * ITEMSIZE[buffer.dtype]
            total += -(-size // ALIGNMENT) * ALIGNMENT
    return offsets, total
