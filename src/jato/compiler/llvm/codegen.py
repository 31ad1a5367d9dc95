"""LLVM IR text to object code, several modules at once.

llvmlite lets one thread at a time into LLVM.  Code generation is safe in several threads, as long
as each has a context and a target machine of its own (LLVM's programmer's manual, "Threads and
LLVM"), and is most of what a compilation costs: it is called here without llvmlite's lock.  Two
kernels of a small program took 8.1 ms one after the other and 4.8 ms in two threads.

Start reading at `generate_all`.
"""

from __future__ import annotations

import ctypes
import queue
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from jato.base.errors import invariant
from jato.compiler.llvm.target import Target, borrowed_machine, ffi, llvm

MOST_THREADS = 8


def generate_all(texts: Sequence[Callable[[], str]], target: Target, threads: int) -> list[bytes]:
    """Object code of each module, in order.  `texts[i]()` gives the IR of one, and is called in
    this thread before the others start: they would wait for each other's turn in Python."""
    if len(texts) == 1 or threads < 2:
        return [generate(text(), target) for text in texts]
    work: queue.SimpleQueue[tuple[int, str] | None] = queue.SimpleQueue()
    results: list[bytes | BaseException] = [b""] * len(texts)
    helpers = [
        threading.Thread(target=_help, args=(work, results, target), name="jato-codegen")
        for _ in range(min(threads, MOST_THREADS, len(texts)) - 1)
    ]
    for i, text in enumerate(texts):
        work.put((i, text()))
    started: list[threading.Thread] = []
    try:
        for helper in helpers:
            helper.start()
            started.append(helper)
        while (item := _next(work)) is not None:
            results[item[0]] = generate(item[1], target)
    finally:
        while _next(work) is not None:  # after an error or Ctrl-C: nobody starts another one
            pass
        for _ in started:
            work.put(None)
        _join(started)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results  # type: ignore[return-value]


def _join(threads: Sequence[threading.Thread]) -> None:
    """Waits until all have ended, Ctrl-C or not: no thread may be in LLVM without the lock that
    this one holds."""
    interrupt: KeyboardInterrupt | None = None
    while any(thread.is_alive() for thread in threads):
        try:
            for thread in threads:
                thread.join()
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


def _next(work: queue.SimpleQueue[tuple[int, str] | None]) -> tuple[int, str] | None:
    try:
        return work.get_nowait()
    except queue.Empty:
        return None


def _help(
    work: queue.SimpleQueue[tuple[int, str] | None], results: list[bytes | BaseException],
    target: Target,
) -> None:  # fmt: skip
    while (item := work.get()) is not None:
        try:
            results[item[0]] = generate(item[1], target)
        except BaseException as error:
            results[item[0]] = error


def generate(text: str, target: Target) -> bytes:
    """Object code of one module."""
    with borrowed_machine(target) as machine:
        module = parse(text, machine, target)
        emit = _without_lock("LLVMPY_TargetMachineEmitToMemory")
        if emit is None:
            code: bytes = machine.emit_object(module)
            return code
        with ffi.OutputString() as problem:
            memory = emit(machine, module, 1, problem)
            if not memory:
                invariant(False, f"LLVM generates no code: {problem}")
        try:
            start = ffi.lib.LLVMPY_GetBufferStart(memory)
            return ctypes.string_at(start, ffi.lib.LLVMPY_GetBufferSize(memory))
        finally:
            ffi.lib.LLVMPY_DisposeMemoryBuffer(memory)


def assembly_of(text: str, target: Target) -> str:
    with borrowed_machine(target) as machine:
        listing: str = machine.emit_assembly(parse(text, machine, target))
        return listing


_headers: dict[Target, str] = {}


def parse(text: str, machine: Any, target: Target) -> Any:
    header = _headers.get(target)
    if header is None:  # as text: setting them on each module takes as long as parsing it
        layout, triple = str(machine.target_data), machine.triple
        header = f'target datalayout = "{layout}"\ntarget triple = "{triple}"\n'
        _headers[target] = header
    context = llvm.create_context()
    read = _without_lock("LLVMPY_ParseAssembly")
    try:
        if read is None:
            return llvm.parse_assembly(header + text, context)
        with ffi.OutputString() as problem:
            source = ctypes.c_char_p((header + text).encode())
            module = llvm.ModuleRef(read(context, source, problem), context)
            if problem:
                module.close()
                raise RuntimeError(str(problem))
            return module
    except RuntimeError as error:
        invariant(False, f"LLVM refuses the generated code: {error}")


@lru_cache(maxsize=8)
def _without_lock(name: str) -> Any:
    """This function of the library that llvmlite loaded; None where this llvmlite is made in another
    way.  Only for what touches nothing but a context, or a machine, of the thread's own."""
    try:
        wrapped = getattr(ffi.lib, name)
        plain = getattr(ctypes.CDLL(ffi.lib._name), name)
        plain.argtypes, plain.restype = wrapped.argtypes, wrapped.restype
        ffi.lib.LLVMPY_GetBufferStart, ffi.lib.LLVMPY_GetBufferSize  # noqa: B018
    except (AttributeError, OSError):
        return None
    return plain
