"""The drop-in import of jax.  Each case runs in a process of its own: it changes sys.modules."""

from __future__ import annotations

import subprocess
import sys
import textwrap

from jato.compat.importer import module_names


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_name_resolves_to_the_same_module() -> None:
    names = sorted(module_names())
    run(f"""
        import importlib, sys
        import jato, jato.compat
        jato.compat.install()
        for name, own in jato.compat.module_names().items():
            module = importlib.import_module(name)
            assert sys.modules[name] is module
            assert not module.__spec__.name.startswith("jax"), name
        import jax, jax.numpy as jnp
        assert jnp is jato.numpy and jax is jato
        from jax import jit, numpy
        assert jit is jato.jit
        assert len({names!r}) == len(jato.compat.module_names())
    """)


def test_modules_that_jato_lacks() -> None:
    out = run("""
        import jato.compat
        jato.compat.install()
        try:
            import jax.no_such_module
        except ModuleNotFoundError as error:
            print(error.name, "|", error)
    """)
    assert out.startswith("jax.no_such_module | jato has no module for 'jax.no_such_module'")
    assert "jax.numpy" in out


def test_install_twice_and_uninstall() -> None:
    run("""
        import sys
        import jato.compat
        before = list(sys.meta_path)
        jato.compat.install()
        jato.compat.install()
        assert len(sys.meta_path) == len(before) + 1
        import jax
        jato.compat.uninstall()
        assert sys.meta_path == before and "jax" not in sys.modules
    """)


def test_too_late() -> None:
    out = run("""
        import sys, types
        sys.modules["jax"] = types.ModuleType("jax")
        import jato.compat
        try:
            jato.compat.install()
        except ImportError as error:
            print(error)
    """)
    assert "jax has been imported already" in out
    assert "python -m jato run" in out
