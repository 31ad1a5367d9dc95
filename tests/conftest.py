"""What all tests share.

Files that compare with jax are skipped where it is not installed.  Helpers beside the tests can be
imported by their names.  Processes that tests start find the same jato, whatever folder they run
in.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jato.compat import importer

TESTS = Path(__file__).parent
HAVE_JAX = importlib.util.find_spec("jax") is not None
# `theirs` is jax.lax (reference_eval.py).
_USES_JAX = re.compile(r"^(import|from) jax\b|^from reference_eval import .*\btheirs\b", re.M)

for _helper in sorted(TESTS.rglob("*.py")):
    if not _helper.name.startswith(("test_", "conftest", "__init__")):
        if str(_helper.parent) not in sys.path and _helper.parent.name != "samples":
            sys.path.append(str(_helper.parent))

_JATO = importlib.util.find_spec("jato")
if _JATO is not None and _JATO.origin is not None:
    _FOLDERS = [str(Path(_JATO.origin).parents[1]), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, _FOLDERS))


@pytest.fixture
def x64() -> Iterator[None]:
    """64-bit types are on.  For all tests of a file: pytestmark = pytest.mark.usefixtures("x64")."""
    import jato

    jato.config.update("jax_enable_x64", True)
    yield
    jato.config.update("jax_enable_x64", False)


@pytest.fixture
def real_jax_aside() -> Iterator[None]:
    """Hides the real jax, if some test imported it, from a test in which `jax` is to be jato."""
    hidden = {n: m for n, m in sys.modules.items() if n == "jax" or n.startswith("jax.")}
    for name in hidden:
        del sys.modules[name]
    yield
    importer.uninstall()
    sys.modules.update(hidden)


class NeedsJax(pytest.Module):
    """A test file that is not imported."""

    def collect(self) -> list[pytest.Item]:
        pytest.skip("needs jax: install the extra 'peer'", allow_module_level=True)


def needs_jax(path: Path) -> bool:
    """Does the file import jax at its top, itself or through a helper's name for it?"""
    return _USES_JAX.search(path.read_text(encoding="utf-8")) is not None


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    if not HAVE_JAX and needs_jax(module_path):
        return NeedsJax.from_parent(parent, path=module_path)
    return None
