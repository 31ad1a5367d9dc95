"""Machine code by kernel pattern: in memory, then on disk, then from LLVM.

`compile_kernels` takes generalized kernels and gives the code of each.  The key is the kernel's
text (without its name), the target and the version.  Patterns that are missing are compiled
together, in one LLVM module.  `clear_caches()` empties the memory cache; programs that still use a
piece of code keep it alive.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jato.base.caches import MISSING, LruCache
from jato.compiler.llvm import link, target
from jato.loopir.grammar import Kernel
from jato.loopir.printer import kernel_text

# Patterns kept in memory; a pattern's code is a few KiB.
LIMIT = 4096


@dataclass(frozen=True)
class Compiled:
    """`kernels[i]` is the code of the i-th kernel asked for; `compiled`: how many LLVM made."""

    kernels: list[Any]
    compiled: int


_codes = LruCache(LIMIT)
# Nobody compiles a pattern twice: LLVM works for one thread at a time anyway.
_building = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_building.acquire, after_in_parent=_building.release, after_in_child=_building.release
    )


def vector_bytes() -> int:
    """Bytes of the machine's vector registers."""
    return target.host().vector_bits // 8


def compile_kernels(kernels: Sequence[Kernel]) -> Compiled:
    keys = [key_of(kernel) for kernel in kernels]
    found: dict[str, Any] = {}
    compiled = 0
    if _missing(keys, kernels, found):
        with _building:
            missing = _missing(keys, kernels, found)  # another thread may have made some
            codes, compiled = link.build(missing) if missing else ({}, 0)
            for key, code in codes.items():
                _codes.put(key, code)
        found.update(codes)
    return Compiled([found[key] for key in keys], compiled)


def _missing(
    keys: Sequence[str], kernels: Sequence[Kernel], found: dict[str, Any]
) -> dict[str, Kernel]:
    """Adds what the cache has to `found`; the others."""
    missing: dict[str, Kernel] = {}
    for key, kernel in zip(keys, kernels, strict=True):
        if key not in found:
            code = _codes.get(key)
            if code is MISSING:
                missing[key] = kernel
            else:
                found[key] = code
    return missing


def key_of(kernel: Kernel) -> str:
    text = kernel_text(kernel)
    return hashlib.blake2b(f"{target.key()}\n{text}".encode(), digest_size=20).hexdigest()
