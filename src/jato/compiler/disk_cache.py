"""Object code on disk, so that a second process compiles nothing that the first one compiled.

`get(key)` and `put(key, data)` over a folder: the setting `jax_compilation_cache_dir` or the
environment's `JATO_CACHE_DIR`, by default `jato` in the user's cache folder; the empty string turns
the cache off.  Writes are atomic (a temporary file, renamed).
Every file carries a checksum: a damaged one is removed and counts as absent.  The folder is kept
below a size (`JATO_CACHE_LIMIT` bytes, 512 MiB by default) by removing what was used least
recently.  Where the folder cannot be written, everything works without it, after one warning.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

from jato.base.config import config
from jato.base.lazy import LazyModule

# Only a process that compiles writes files; tempfile brings random, shutil and their kin.
tempfile: Any = LazyModule("tempfile")

_MAGIC = b"jatokern"
_DIGEST = 16
_SUFFIX = ".kernels"
DEFAULT_LIMIT = 512 << 20
# Puts between two looks at the size of the folder (the first put looks, too).
_TRIM_PERIOD = 200
# An entry's time of use is refreshed at most this often, so that reading stays a read.
_TOUCH_SECONDS = 3600.0

_lock = threading.Lock()
_puts = 0
_warned = False


def folder() -> Path | None:
    """Where the entries are; None when the cache is off."""
    given = config.jax_compilation_cache_dir
    if given is None:
        given = os.environ.get("JATO_CACHE_DIR")
    if given is not None:
        return Path(given).expanduser() if given else None
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "jato" if base and not base.startswith("~") else None


def get(key: str) -> bytes | None:
    """The data stored under `key` (letters and digits), or None."""
    root = folder()
    if root is None:
        return None
    path = _path(root, key)
    try:
        packed = _read(path)
    except OSError:
        return None
    data = _checked(packed)
    if data is None:
        _remove(path)
        return None
    try:
        if time.time() - path.stat().st_mtime > _TOUCH_SECONDS:
            os.utime(path)
    except OSError:
        pass
    return data


def put(key: str, data: bytes) -> None:
    """Stores data under `key`; never raises."""
    root = folder()
    if root is None:
        return
    path = _path(root, key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".tmp-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + _digest(data) + data)
            os.replace(temporary, path)
        except BaseException:
            _remove(Path(temporary))
            raise
    except OSError as error:
        _warn(root, error)
        return
    _trim_now_and_then(root)


def drop(key: str) -> None:
    """Removes an entry that turned out to be useless."""
    root = folder()
    if root is not None:
        _remove(_path(root, key))


def _path(root: Path, key: str) -> Path:
    return root / key[:2] / f"{key}{_SUFFIX}"


def _read(path: Path) -> bytes:
    """The content of a regular file; of anything else (a pipe, a device) nothing, and no wait."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return file.read() if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()


def _checked(packed: bytes) -> bytes | None:
    """The data of a file's content if it is whole."""
    start = len(_MAGIC) + _DIGEST
    data = packed[start:]
    whole = packed.startswith(_MAGIC) and packed[len(_MAGIC) : start] == _digest(data)
    return data if whole else None


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _warn(root: Path, error: OSError) -> None:
    global _warned
    with _lock:
        first, _warned = not _warned, True
    if first:
        warnings.warn(
            f"jato: cannot write compiled code to {root} ({error}); continuing without a disk "
            "cache. Set JATO_CACHE_DIR to a writable folder, or to '' to turn the cache off.",
            RuntimeWarning,
            stacklevel=2,
        )


def _limit() -> int:
    try:
        return int(os.environ.get("JATO_CACHE_LIMIT", DEFAULT_LIMIT))
    except ValueError:
        return DEFAULT_LIMIT


def _trim_now_and_then(root: Path) -> None:
    global _puts
    with _lock:
        due, _puts = _puts % _TRIM_PERIOD == 0, _puts + 1
    if due:
        trim(root, _limit())


def trim(root: Path, limit: int) -> None:
    """Removes least recently used entries until the folder holds at most `limit` bytes, and
    temporary files that a killed process left behind."""
    entries: list[tuple[float, int, Path]] = []
    now = time.time()
    try:
        for path in root.glob("??/*"):
            try:
                status = path.lstat()
            except FileNotFoundError:
                continue  # another process trims at the same time
            if path.suffix == _SUFFIX:
                entries.append((status.st_mtime, status.st_size, path))
            elif path.name.startswith(".tmp-") and now - status.st_mtime > _TOUCH_SECONDS:
                _remove(path)
    except OSError:
        return
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit:
            return
        _remove(path)
        total -= size
