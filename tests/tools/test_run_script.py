"""`python -m jato run`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def jato(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "jato", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=cwd,
    )


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "neighbour.py").write_text("value = 3\n")
    path = tmp_path / "script.py"
    path.write_text(
        "import sys\n"
        "import jax\n"
        "import jax.numpy as jnp\n"
        "from jax import jit\n"
        "import neighbour\n"
        "print(jax.__name__, sys.argv, __name__)\n"
        "print(jit(lambda x: x * neighbour.value)(jnp.arange(3)))\n"
        "sys.exit(int(sys.argv[2]))\n"
    )
    return path


def test_script_sees_jato_as_jax(script: Path, tmp_path: Path) -> None:
    done = jato("run", str(script), "--flag", "7", cwd=tmp_path.parent)
    assert done.returncode == 7, done.stderr
    first, second = done.stdout.splitlines()
    assert first == f"jato ['{script}', '--flag', '7'] __main__"
    assert second == "[0 3 6]"


def test_error_in_the_script(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("import jax\njax.jit(3)\n")
    done = jato("run", "bad.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "bad.py" in done.stderr and "TypeError" in done.stderr


def test_no_such_script(tmp_path: Path) -> None:
    done = jato("run", "missing.py", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.strip() == "jato run: there is no file 'missing.py'"


def test_info(tmp_path: Path) -> None:
    done = jato("info", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("jato", "llvmlite", "vectors", "threads", "kernels on disk", "JATO_CACHE_DIR"):
        assert word in done.stdout


def test_no_command(tmp_path: Path) -> None:
    done = jato(cwd=tmp_path)
    assert done.returncode == 2
    assert "COMMAND" in done.stderr
