"""Kernels to callable machine code.

    build({key: kernel})           -> code by key; from the disk cache where it is there
    compile_kernels([kernel, ...]) -> [CompiledKernel, ...]     through LLVM, in one module
    load_object(bytes)             -> [CompiledKernel, ...]     what an earlier process compiled

A CompiledKernel keeps its code in memory alive; dropping the last one of a module frees the code.
All functions are thread-safe: one thread at a time compiles, with helpers (codegen.py).
"""

from __future__ import annotations

import json
import os
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from typing import Any

from jato import _native
from jato.base.errors import invariant
from jato.compiler import disk_cache
from jato.compiler.llvm import abi, codegen, elf
from jato.compiler.llvm.emit import emit_module
from jato.compiler.llvm.target import Target, host, initialize, llvm
from jato.loopir.grammar import Kernel

_LOCK = threading.RLock()
if hasattr(os, "register_at_fork"):
    # a child must not find LLVM halfway through a compilation of another thread
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
    )
# Kernels of one module.  Python sees Ctrl-C between modules only, a kernel takes some 10 to 40 ms,
# and a module costs 0.7 ms by itself.
MODULE_KERNELS = 16
_MAGIC = b"jato1"
_REFERENCE = b"see "


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel in memory: `address` of its function (kernel_abi.h), scratch it needs per call.

    `code` owns the memory.  `object` holds every kernel of the module it was compiled in, for
    `load_object` in another process."""

    name: str
    key: str
    address: int
    scratch_bytes: int
    object: bytes = field(repr=False)
    code: Any = field(repr=False)
    milliseconds: float = 0.0


def build(kernels: Mapping[str, Kernel]) -> tuple[dict[str, CompiledKernel], int]:
    """Code for kernels by key (a key names the kernel's text and target), and how many of them
    LLVM had to compile.  The others came from the disk cache."""
    found: dict[str, CompiledKernel] = {}
    for key in kernels:
        if key not in found:
            stored = _from_disk(key)
            found.update((k, v) for k, v in stored.items() if k in kernels)
    missing = [key for key in kernels if key not in found]
    threads = min(_native.num_threads(), codegen.MOST_THREADS)
    size = MODULE_KERNELS
    if threads > 1:  # two modules for each thread, as kernels differ in what they take
        size = max(1, min(size, ceil(len(missing) / (2 * threads))))
    groups = [missing[i : i + size] for i in range(0, len(missing), size)]
    compiled = compile_modules([[(key, kernels[key]) for key in keys] for keys in groups])
    for keys, module in zip(groups, compiled, strict=True):
        found.update(zip(keys, module, strict=True))
        _to_disk(keys, module[0].object)
    return found, len(missing)


def _from_disk(key: str) -> dict[str, CompiledKernel]:
    """The module that holds a kernel, by key.  An entry is a module, or the name of one."""
    packed = disk_cache.get(key)
    if packed is not None and packed.startswith(_REFERENCE):
        packed = disk_cache.get(packed[len(_REFERENCE) :].decode())
    if packed is None:
        return {}
    try:
        return {kernel.key: kernel for kernel in load_object(packed)}
    except (ValueError, KeyError, struct.error):
        disk_cache.drop(key)
        return {}


def _to_disk(keys: Sequence[str], module: bytes) -> None:
    """Stores a module under its first key, and under the others a reference to it."""
    disk_cache.put(keys[0], module)
    for key in keys[1:]:
        disk_cache.put(key, _REFERENCE + keys[0].encode())


def compile_kernels(
    kernels: Sequence[Kernel], target: Target | None = None, keys: Sequence[str] | None = None
) -> list[CompiledKernel]:
    """Machine code for all kernels, in order, from one LLVM module."""
    if not kernels:
        return []
    keys = [""] * len(kernels) if keys is None else keys
    return compile_modules([[*zip(keys, kernels, strict=True)]], target)[0]


def compile_modules(
    modules: Sequence[Sequence[tuple[str, Kernel]]], target: Target | None = None
) -> list[list[CompiledKernel]]:
    """Machine code for modules of (key, kernel), several of them at a time."""
    began = time.perf_counter()
    target = host() if target is None else target
    texts = [partial(_text, module, target) for module in modules]
    # Its objects die under the lock, too: disposing of them enters LLVM.
    with _LOCK:
        objects = codegen.generate_all(texts, target, _native.num_threads())
    count = sum(map(len, modules))
    milliseconds = (time.perf_counter() - began) * 1e3 / max(1, count)
    return [
        load_object(_MAGIC + _header(module) + code, milliseconds)
        for module, code in zip(modules, objects, strict=True)
    ]


def _text(module: Sequence[tuple[str, Kernel]], target: Target) -> str:
    return emit_module([(f"k{i}", kernel) for i, (_, kernel) in enumerate(module)], target)


def _header(module: Sequence[tuple[str, Kernel]]) -> bytes:
    table = [
        {"name": k.name, "key": key, "symbol": f"k{i}", "scratch": abi.scratch_layout(k.buffers)[1]}
        for i, (key, k) in enumerate(module)
    ]
    header = json.dumps(table).encode()
    return struct.pack("<I", len(header)) + header


def assembly(kernels: Sequence[Kernel], target: Target | None = None) -> str:
    """The machine code of kernels as assembly text, for people."""
    target = host() if target is None else target
    text = emit_module([(f"k{i}", k) for i, k in enumerate(kernels)], target)
    with _LOCK:
        return codegen.assembly_of(text, target)


def load_object(packed: bytes, milliseconds: float = 0.0) -> list[CompiledKernel]:
    """The kernels of an object made by `compile_kernels`; ValueError when it is damaged."""
    if packed[: len(_MAGIC)] != _MAGIC or len(packed) < len(_MAGIC) + 4:
        raise ValueError("not object code of this version of jato")
    (size,) = struct.unpack_from("<I", packed, len(_MAGIC))
    start = len(_MAGIC) + 4
    table = json.loads(packed[start : start + size])
    image = load_image(packed[start + size :])
    return [
        CompiledKernel(
            entry["name"], entry["key"], image.symbols[entry["symbol"]], entry["scratch"], packed,
            image, milliseconds,
        )
        for entry in table
    ]  # fmt: skip


def load_image(code: bytes) -> Any:
    """Object code in memory: something with `symbols` that owns it."""
    try:
        return elf.load(code)
    except elf.Unsupported:
        with _LOCK:
            return _EngineImage(code)


class _EngineImage:
    """Object code loaded by LLVM, where our own loader does not know the format."""

    def __init__(self, code: bytes):
        initialize()
        machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
            opt=2, jit=True
        )
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self.symbols = _EngineSymbols(self._engine)


class _EngineSymbols:
    def __init__(self, engine: Any):
        self._engine = engine

    def __getitem__(self, name: str) -> int:
        address = int(self._engine.get_function_address(name))
        invariant(address, f"no function {name} in the object")
        return address
