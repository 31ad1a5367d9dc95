"""The disk cache: atomic, checked, bounded, and never in the way."""

import os
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

from jato.base.config import config
from jato.compiler import disk_cache


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("JATO_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(disk_cache, "_warned", False)
    monkeypatch.setattr(disk_cache, "_puts", 0)
    return tmp_path / "cache"


def test_round_trip(folder):
    assert disk_cache.get("ab12") is None
    disk_cache.put("ab12", b"code")
    assert disk_cache.get("ab12") == b"code"
    disk_cache.put("ab12", b"other")
    assert disk_cache.get("ab12") == b"other"
    disk_cache.drop("ab12")
    assert disk_cache.get("ab12") is None


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "magic"])
def test_damaged_entries_are_dropped(folder, damage):
    disk_cache.put("ab12", b"code" * 100)
    (path,) = folder.glob("*/*")
    data = bytearray(path.read_bytes())
    if damage == "truncate":
        data = data[:-7]
    elif damage == "flip":
        data[-1] ^= 1
    elif damage == "empty":
        data = bytearray()
    else:
        data[0] ^= 1
    path.write_bytes(data)
    assert disk_cache.get("ab12") is None
    assert not path.exists()


def test_empty_variable_turns_it_off(monkeypatch):
    monkeypatch.setenv("JATO_CACHE_DIR", "")
    disk_cache.put("ab12", b"code")
    assert disk_cache.get("ab12") is None


def test_the_setting_comes_before_the_environment(folder, tmp_path, monkeypatch):
    with config.override("jax_compilation_cache_dir", str(tmp_path / "other")):
        assert disk_cache.folder() == tmp_path / "other"
    assert disk_cache.folder() == folder
    monkeypatch.setenv("JATO_CACHE_DIR", "~/kernels")
    assert disk_cache.folder() == Path("~/kernels").expanduser()


def test_default_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("JATO_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform.startswith("linux"):
        assert disk_cache.folder() == tmp_path / "jato"


def test_unwritable_folder_warns_once(folder):
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("a file where the folder should be")
    with pytest.warns(RuntimeWarning, match="cannot write compiled code to .*JATO_CACHE_DIR"):
        disk_cache.put("ab12", b"code")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        disk_cache.put("cd34", b"code")
    assert disk_cache.get("ab12") is None


def test_bounded_by_least_recent_use(folder):
    for k in range(6):
        disk_cache.put(f"{k}{k}key", b"x" * 1000)
        path = next(folder.glob(f"{k}{k}/*"))
        os.utime(path, (time.time() - 10000 + k, time.time() - 10000 + k))
    assert disk_cache.get("00key") is not None  # used now: the most recent one
    disk_cache.trim(folder, 3200)
    assert [disk_cache.get(f"{k}{k}key") is not None for k in range(6)] == [
        True, False, False, False, True, True,
    ]  # fmt: skip


def test_left_over_temporary_files_are_removed(folder):
    disk_cache.put("ab12", b"code")
    stale = folder / "ab" / ".tmp-killed"
    stale.write_bytes(b"half")
    os.utime(stale, (0, 0))
    disk_cache.trim(folder, 1 << 20)
    assert not stale.exists() and disk_cache.get("ab12") == b"code"


def test_concurrent_writers_leave_whole_entries(folder):
    def work(value):
        for _ in range(50):
            disk_cache.put("ab12", bytes([value]) * 5000)
            data = disk_cache.get("ab12")
            assert data is not None and len(set(data)) == 1

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(folder.glob("*/*"))) == 1


def test_second_process_compiles_nothing_and_needs_no_llvm(folder):
    program = """
import sys
from jato.compiler.llvm import link
from jato.loopir.builder import Builder
def kernel(c):
    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=16) as i:
        b.store(y, i, b.mul(b.load(x, i), c))
    return b.kernel("scale")
codes, compiled = link.build({"aa1": kernel(2.0), "bb2": kernel(3.0)})
print(compiled, len(codes), "llvmlite" in sys.modules)
"""
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert runs[0].stdout.split() == ["2", "2", "True"]
    assert runs[1].stdout.split() == ["0", "2", "False"]
