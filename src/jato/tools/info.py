"""`python -m jato info`: what jato runs on here.

`collect` gives sections of (label, value); `print_info` shows them as a table.
"""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from jato import _native
from jato.base.lazy import LazyModule
from jato.base.version import __version__
from jato.compiler import disk_cache
from jato.compiler.llvm import target
from jato.parallel.devices import devices

rich_console: Any = LazyModule("rich.console")
rich_table: Any = LazyModule("rich.table")

Section = list[tuple[str, str]]

_PACKAGES = ("numpy", "scipy", "llvmlite", "ml_dtypes", "opt_einsum", "matplotlib", "jax")
_SETTINGS = (
    "JATO_NUM_THREADS",
    "JATO_NUM_CPU_DEVICES",
    "JATO_CACHE_DIR",
    "JATO_CACHE_LIMIT",
    "JATO_MEMORY_LIMIT",
    "JATO_LOG_COMPILES",
)


def collect() -> dict[str, Section]:
    """The sections that `info` prints.

    >>> sorted(collect())
    ['caches', 'devices', 'environment', 'machine', 'memory pool', 'versions']
    """
    return {
        "versions": [("jato", __version__), ("python", sys.version.split()[0]), *map(_version, _PACKAGES)],
        "machine": _machine(),
        "devices": [
            ("threads", str(_native.num_threads())),
            ("devices", ", ".join(map(str, devices()))),
        ],
        "caches": _caches(),
        "memory pool": [(name, _bytes_or_count(name, n)) for name, n in _pool()],
        "environment": [(name, os.environ.get(name, "not set")) for name in _SETTINGS],
    }


def print_info() -> None:
    """Prints all sections to standard output."""
    table = rich_table.Table(show_header=False, box=None, pad_edge=False)
    for title, rows in collect().items():
        table.add_row(f"[bold]{title}[/bold]", "")
        for label, value in rows:
            table.add_row(f"  {label}", value)
    rich_console.Console(soft_wrap=True).print(table)


def _version(package: str) -> tuple[str, str]:
    try:
        return package, metadata.version(package)
    except metadata.PackageNotFoundError:
        return package, "not installed"


def _machine() -> Section:
    host = target.host()
    return [
        ("system", f"{platform.system()} {platform.release()}"),
        ("processor", processor_name()),
        ("cores of this process", str(available_cores())),
        ("vectors", f"{host.vector_bits} bits" + (", with masks" if host.has_masks else "")),
    ]


def available_cores() -> int:
    """Cores that the affinity mask leaves to this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor_name() -> str:
    """The CPU's name as its maker gives it, else the architecture."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _caches() -> Section:
    folder = disk_cache.folder()
    if folder is None:
        return [("kernels on disk", "off")]
    entries = [path.stat().st_size for path in folder.glob("??/*.kernels")]
    return [
        ("kernels on disk", str(folder)),
        ("entries", f"{len(entries)}, {readable_bytes(sum(entries))}"),
    ]


def _pool() -> list[tuple[str, int]]:
    return list(_native.pool_stats().items())


def _bytes_or_count(name: str, value: int) -> str:
    return str(value) if name in ("allocations", "reuses") else readable_bytes(value)


def readable_bytes(count: int) -> str:
    """
    >>> readable_bytes(3 << 20)
    '3.0 MiB'
    """
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.1f} {unit}" if unit != "B" else f"{count} B"
        size /= 1024
    return f"{size:.1f} TiB"
