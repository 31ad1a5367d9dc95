"""A native module that does not belong to the package is refused when jato is imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jato import _native
from jato.base import native_build

NATIVE = Path(native_build.__file__).parents[3] / "native"


@pytest.mark.skipif(not NATIVE.is_dir(), reason="no sources beside the package")
def test_the_build_and_python_hash_alike():
    assert native_build.sources_hash(NATIVE) == _native.sources


def test_another_version_is_refused(monkeypatch):
    monkeypatch.setattr(native_build, "__version__", "9.9")
    with pytest.raises(ImportError, match=r"9\.9: the native module .* belongs to version .*make native"):
        native_build.require_current_module()


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with one source that is older than the module."""
    source = tmp_path / "native" / "core" / "pool.cpp"
    source.parent.mkdir(parents=True)
    source.write_text("int x;\n")
    os.utime(source, (1, 1))
    monkeypatch.setattr(native_build, "__file__", str(tmp_path / "src" / "jato" / "base" / "b.py"))
    return source


def test_changed_sources_are_refused(checkout, monkeypatch):
    native_build.require_current_module()  # older: nothing is read
    os.utime(checkout, (2**33, 2**33))
    with pytest.raises(ImportError, match=r"built from other sources .*make native"):
        native_build.require_current_module()
    same = native_build.sources_hash(checkout.parents[1])
    monkeypatch.setattr(_native, "sources", same)
    native_build.require_current_module()  # newer, but as they were


def test_the_check_costs_little():
    code = (
        "import time, jato\nfrom jato.base.native_build import require_current_module as check\n"
        "print(min((lambda t: (check(), time.perf_counter() - t)[1])(time.perf_counter())"
        " for _ in range(20)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(out.stdout) < 5e-3
