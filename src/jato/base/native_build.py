"""Was the native module built from the sources beside it?

A checkout whose C++ has changed since `make native` would otherwise fail in any way at all, wrong
numbers included.  The build writes the package's version and a hash of native/ into the module.
An installed package has no sources: there the version is compared and nothing else.  In a checkout
the times of the files are looked at (0.2 ms), and the hash is only computed (3 ms) when a source is
newer than the module.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from jato import _native
from jato.base.version import __version__

_FOLDERS = ("bind", "core")
_KINDS = (".cpp", ".h")


def require_current_module() -> None:
    """ImportError if the native module belongs to other sources than this package."""
    built = getattr(_native, "version", "unknown")
    if built != __version__:
        raise ImportError(
            f"jato {__version__}: the native module {_native.__file__} belongs to version {built}. "
            "Install jato again; in a checkout run `make native`."
        )
    native = Path(__file__).parents[3] / "native"
    sources = _sources(native)
    if not sources:
        return
    module_time = Path(_native.__file__).stat().st_mtime_ns
    if all(path.stat().st_mtime_ns <= module_time for path in sources):
        return
    if sources_hash(native) != _native.sources:
        raise ImportError(
            f"jato: the native module {_native.__file__} was built from other sources than those in "
            f"{native}. Run `make native` there."
        )


def _sources(native: Path) -> list[Path]:
    return [
        path for folder in _FOLDERS for path in (native / folder).glob("*") if path.suffix in _KINDS
    ]


def sources_hash(native: Path) -> str:
    """What native/sources_hash.cmake writes into the module."""
    listing = "".join(
        f"{name} {hashlib.sha256((native / name).read_bytes()).hexdigest()}\n"
        for name in sorted(str(path.relative_to(native)) for path in _sources(native))
    )
    return hashlib.sha256(listing.encode()).hexdigest()
