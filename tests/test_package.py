"""The package as a user meets it: quick to import, typed, one version."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import pytest

import jato

ROOT = Path(__file__).parents[1]
HEAVY = ["llvmlite", "scipy", "matplotlib", "rich", "opt_einsum", "jax", "mpi4py", "pytest"]
# Modules that `import jato` may load above what `import numpy` does: jato's own and the standard
# library's.  A count stands for time here, because it is the same on every machine; 294 modules
# take 75 ms where their bytecode is cached, and 150 ms is the limit.
MODULE_BUDGET = 320


def loaded_by(statement: str) -> set[str]:
    code = f"import sys, json; {statement}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_import_is_light() -> None:
    added = loaded_by("import jato") - loaded_by("import numpy")
    heavy = {name.split(".")[0] for name in added} & set(HEAVY)
    assert not heavy, f"import jato loads {heavy}"
    assert len(added) < MODULE_BUDGET


def test_a_cached_program_needs_no_llvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JATO_CACHE_DIR", str(tmp_path))
    statement = "import jato.numpy as jnp; x = jnp.tanh(jnp.arange(5.0)); x.block_until_ready()"
    assert "llvmlite" in loaded_by(statement)
    assert "llvmlite" not in loaded_by(statement)


def test_typed() -> None:
    folder = Path(jato.__file__).parent
    assert (folder / "py.typed").is_file()
    assert (folder / "_native.pyi").is_file()


def test_version() -> None:
    assert jato.__version__.count(".") == 2
    try:
        installed = importlib.metadata.version("jato")
    except importlib.metadata.PackageNotFoundError:
        return  # run from the working tree
    assert installed == jato.__version__


def test_public_names_have_docstrings() -> None:
    bare = [
        name
        for name, value in vars(jato).items()
        if callable(value) and not name.startswith("_") and not (value.__doc__ or "").strip()
    ]
    assert not bare


def test_readmes_show_the_same_commands() -> None:
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh-CN.md")]
    for command in ("make demo", "make test", "python -m jato run", "pip install ."):
        assert all(command in text for text in texts), command
