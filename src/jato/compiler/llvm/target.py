"""The machine that code is generated for: vector width, masks, and what identifies it.

`host()` is found from /proc/cpuinfo where there is one, so that a process which finds all its
kernels in the disk cache never loads LLVM; elsewhere LLVM is asked.  `borrowed_machine` is where
LLVM enters.
"""

from __future__ import annotations

import hashlib
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from jato.base.lazy import LazyModule
from jato.loopir.grammar import ITEMSIZE

llvm: Any = LazyModule("llvmlite.binding")
ffi: Any = LazyModule("llvmlite.binding.ffi")
metadata: Any = LazyModule("importlib.metadata")

_X86 = ("x86_64", "amd64", "AMD64")
_WIDE = ("avx512f", "avx512bw", "avx512dq", "avx512vl")
_LOCK = threading.RLock()


@dataclass(frozen=True)
class Target:
    """A machine as code generation sees it.

    arch         "x86_64", "aarch64", ...
    vector_bits  width of the vectors worth using
    has_masks    loads and stores can be masked lane by lane at nearly no cost (AVX-512), so that
                 the tail of a loop needs no code of its own
    identity     what object code depends on: a digest of the CPU and of LLVM's version
    disabled     features of the host that must not be used (tests generate AVX2 code with it)
    """

    arch: str
    vector_bits: int
    has_masks: bool
    identity: str
    disabled: tuple[str, ...] = ()

    @property
    def has_tables(self) -> bool:
        """One instruction looks up 32 floats held in two registers (AVX-512)."""
        return self.vector_bits == 512 and self.arch == "x86_64"

    @property
    def key(self) -> str:
        off = ",".join(self.disabled)
        return f"{self.arch};{self.vector_bits};{int(self.has_masks)};{self.identity};{off}"

    def lanes(self, dtype: str) -> int:
        """Elements of this dtype in one vector register."""
        return max(1, self.vector_bits // (8 * ITEMSIZE[dtype]))


@lru_cache(maxsize=1)
def host() -> Target:
    """The machine this process runs on."""
    machine = platform.machine()
    description, features = _cpu()
    version = metadata.version("llvmlite")
    identity = hashlib.sha256(f"{description};llvmlite {version}".encode()).hexdigest()[:24]
    if machine not in _X86:
        return Target(machine, 128, False, identity)
    if features.issuperset(_WIDE):
        return Target("x86_64", 512, True, identity)
    return Target("x86_64", 256 if {"avx2", "fma"} <= features else 128, False, identity)


def vector_bytes() -> int:
    """Bytes in one vector register of this machine."""
    return host().vector_bits // 8


@lru_cache(maxsize=1)
def key() -> str:
    """What object code depends on besides the kernel: machine, LLVM, and this code generator.

    The generator is identified by its own sources: a release, or an edit, starts afresh."""
    here = Path(__file__).parent
    sources = [*here.rglob("*.py"), *(here.parent.parent / "loopir").glob("*.py")]
    digest = hashlib.blake2b(digest_size=12)
    for path in sorted(sources):
        digest.update(path.read_bytes())
    return f"{host().key};{digest.hexdigest()}"


def without_masks(target: Target) -> Target:
    """The same machine restricted to 256-bit vectors without masks (what AVX2 offers)."""
    off = tuple(f"avx512{x}" for x in _AVX512_PARTS) + ("evex512",)
    return Target(target.arch, min(256, target.vector_bits), False, target.identity, off)


_AVX512_PARTS = (
    "f", "bw", "dq", "vl", "cd", "ifma", "vbmi", "vbmi2", "vnni", "bitalg", "vpopcntdq",
    "bf16", "fp16", "vp2intersect",
)  # fmt: skip


def _cpu() -> tuple[str, set[str]]:
    """A description of the CPU, and its feature names."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    first = text.split("\n\n")[0]
    fields: dict[str, str] = {}
    for line in first.splitlines():
        name, _, value = line.partition(":")
        fields[name.strip()] = value.strip()
    flags = fields.get("flags") or fields.get("Features")
    if flags:
        names = ("vendor_id", "cpu family", "model", "stepping", "model name", "CPU part")
        description = ";".join(fields.get(n, "") for n in names)
        return f"{description};{' '.join(sorted(flags.split()))}", set(flags.split())
    initialize()
    available = {k for k, v in llvm.get_host_cpu_features().items() if v}
    return f"{llvm.get_host_cpu_name()};{' '.join(sorted(available))}", available


def initialize() -> None:
    """Makes LLVM ready for the host machine (once)."""
    with _LOCK:
        _initialize_once()


@lru_cache(maxsize=1)
def _initialize_once() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # Loop strength reduction takes a quarter of code generation.  The emitter hoists what is
    # invariant and addresses are one addition; measured, the code is as fast without it.
    llvm.set_option("jato", "--disable-lsr")


_idle: dict[Target, list[Any]] = {}


@contextmanager
def borrowed_machine(target: Target) -> Iterator[Any]:
    """An llvmlite TargetMachine for this thread alone; they are kept, making one takes 0.2 ms."""
    with _LOCK:
        kept = _idle.setdefault(target, [])
        machine = kept.pop() if kept else _new_machine(target)
    try:
        yield machine
    finally:
        with _LOCK:
            kept.append(machine)


def _new_machine(target: Target) -> Any:
    initialize()
    features = dict(llvm.get_host_cpu_features())
    # a preference for narrow vectors would split every one of ours
    features = {k: v for k, v in features.items() if k != "prefer-256-bit"}
    for name in target.disabled:
        if name in features:
            features[name] = False
    flat = ",".join(f"{'+' if on else '-'}{name}" for name, on in sorted(features.items()))
    # A disabled feature may be implied by the CPU's name: then name a plainer CPU.
    cpu = "x86-64-v3" if target.disabled else llvm.get_host_cpu_name()
    # opt=2 is the code generation level: 0 aborts on AVX-512 masks, 3 costs time and gains nothing
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=cpu, features=flat, opt=2, reloc="pic", codemodel="small"
    )
