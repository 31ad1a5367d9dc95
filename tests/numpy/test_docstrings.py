"""The examples in the docstrings of jato.numpy run and give what they show; every function has one."""

from __future__ import annotations

import doctest
import operator

import pytest

import jato.numpy as jnp
from jato.numpy import linalg

# functions that only write files or always raise
WITHOUT_EXAMPLE = {"fromfile", "load", "save", "savez"}


def _functions() -> list[str]:
    names = []
    for name in jnp.__all__:
        value = getattr(jnp, name)
        if callable(value) and str(getattr(value, "__module__", "")).startswith("jato.numpy."):
            if not isinstance(value, type):
                names.append(name)
    inner = [n for n, f in vars(linalg).items() if getattr(f, "__module__", "") == linalg.__name__]
    return sorted(names) + [f"linalg.{n}" for n in sorted(inner) if not n.startswith("_")]


@pytest.mark.parametrize("name", _functions())
def test_example(name: str) -> None:
    text = operator.attrgetter(name)(jnp).__doc__
    assert text, f"{name} has no docstring"
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert test.examples or name in WITHOUT_EXAMPLE, f"{name} has no example"
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=report.append, clear_globs=True)
    assert not report, "".join(report)
