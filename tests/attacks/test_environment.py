"""Mistyped environment variables, and strange things in the cache folder."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import jato, jato.numpy as jnp
print(float(jato.jit(lambda x: jnp.sin(x) * 0)(jnp.ones(17)).sum()))
"""


def run(**environment):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("JATO_NUM_THREADS", "two"),
        ("JATO_NUM_THREADS", "-3"),
        ("JATO_MEMORY_LIMIT", "plenty"),
        ("JATO_MEMORY_LIMIT", "-1"),
        ("JATO_CACHE_LIMIT", "1.5"),
        ("JATO_NUM_CPU_DEVICES", "x"),
    ],
)
def test_a_mistyped_variable_is_named(variable, text):
    done = run(**{variable: text})
    assert done.returncode != 0
    assert f"ValueError: environment variable {variable}" in done.stderr


@pytest.mark.parametrize("text", ["200M", "200MiB", "0.5G", "", "1000000000"])
def test_memory_limits(text):
    assert run(JATO_MEMORY_LIMIT=text).stdout == "0.0\n"


@pytest.mark.parametrize("strange", ["fifo", "device", "empty", "folder"])
def test_what_is_no_entry_is_never_waited_for(tmp_path, strange):
    folder = str(tmp_path)
    assert run(JATO_CACHE_DIR=folder).stdout == "0.0\n"
    entries = [p for p in tmp_path.glob("??/*") if p.suffix == ".kernels"]
    assert entries
    for path in entries:
        path.unlink()
        if strange == "fifo":
            os.mkfifo(path)
        elif strange == "device":
            path.symlink_to("/dev/zero")
        elif strange == "empty":
            path.touch()
        else:
            path.mkdir()
    done = run(JATO_CACHE_DIR=folder)
    if strange == "folder":  # cannot be replaced: one warning, an error here
        assert "RuntimeWarning" in done.stderr
    else:
        assert done.stdout == "0.0\n", done.stderr
        assert all(p.is_file() and p.stat().st_size > 0 for p in entries)
