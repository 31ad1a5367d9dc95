"""Machine code by kernel pattern: in memory, then on disk, then from LLVM.

`compile_kernels` takes generalized kernels and gives the code of each.  The key is the kernel's
text (without its name), the target and the version.  Patterns that are missing are compiled
together, in one LLVM module.  `clear` empties the memory cache; programs that still use a piece
of code keep it alive.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jato.base import caches
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


_lock = threading.Lock()
_codes: OrderedDict[str, Any] = OrderedDict()


def vector_bytes() -> int:
    """Bytes of the machine's vector registers."""
    return target.host().vector_bits // 8


def compile_kernels(kernels: Sequence[Kernel]) -> Compiled:
    keys = [key_of(kernel) for kernel in kernels]
    found: dict[str, Any] = {}
    missing: dict[str, Kernel] = {}
    with _lock:
        for key, kernel in zip(keys, kernels, strict=True):
            code = _codes.get(key)
            if code is not None:
                _codes.move_to_end(key)
                found[key] = code
            else:
                missing.setdefault(key, kernel)
    compiled = 0
    if missing:
        codes, compiled = link.build(missing)
        found.update(codes)
        with _lock:
            for key, code in codes.items():
                _codes[key] = code
            while len(_codes) > LIMIT:
                _codes.popitem(last=False)
    return Compiled([found[key] for key in keys], compiled)


def key_of(kernel: Kernel) -> str:
    text = kernel_text(kernel)
    return hashlib.blake2b(f"{target.key()}\n{text}".encode(), digest_size=20).hexdigest()


def clear() -> None:
    with _lock:
        _codes.clear()


caches.register(clear)
