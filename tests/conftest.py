"""What all tests share.

Files that compare with jax are skipped where it is not installed.  Processes that tests start find
the same jato, whatever folder they run in.
"""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path

import pytest

_JATO = importlib.util.find_spec("jato")
if _JATO is not None and _JATO.origin is not None:
    _FOLDERS = [str(Path(_JATO.origin).parents[1]), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, _FOLDERS))

HAVE_JAX = importlib.util.find_spec("jax") is not None
_IMPORTS_JAX = re.compile(r"^(import|from) jax\b", re.MULTILINE)


class NeedsJax(pytest.Module):
    """A test file that is not imported."""

    def collect(self) -> list[pytest.Item]:
        pytest.skip("needs jax: install the extra 'peer'", allow_module_level=True)


def needs_jax(path: Path) -> bool:
    """Does the file, or a helper of the tests beside it, import jax at its top?"""
    text = path.read_text(encoding="utf-8")
    helpers = [path.parent / f"{name}.py" for name in re.findall(r"^from (\w+) import", text, re.M)]
    texts = [text, *(h.read_text(encoding="utf-8") for h in helpers if h.is_file())]
    return any(_IMPORTS_JAX.search(t) for t in texts)


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    if not HAVE_JAX and needs_jax(module_path):
        return NeedsJax.from_parent(parent, path=module_path)
    return None
