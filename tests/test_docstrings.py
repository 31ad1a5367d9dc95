"""The examples in docstrings run and give what they show: those of every module of jato."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import jato
from jato import _native

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def module_names() -> list[str]:
    found = [m.name for m in pkgutil.walk_packages(jato.__path__, "jato.")]
    return ["jato", *(name for name in found if not name.endswith(("__main__", "_native")))]


def documented(module: ModuleType) -> Iterator[tuple[str, str]]:
    """(name, docstring) of the module and of what it defines: functions, jitted ones, classes."""
    if module.__doc__:
        yield module.__name__, module.__doc__
    for name, value in vars(module).items():
        if getattr(value, "__module__", None) == module.__name__:
            yield from _documented(f"{module.__name__}.{name}", value)


def _documented(name: str, value: Any) -> Iterator[tuple[str, str]]:
    is_function = callable(value) and not isinstance(value, type)
    if isinstance(value, type | _native.JitFunction) or is_function:
        text = getattr(value, "__doc__", None)
        if isinstance(text, str):
            yield name, text
    if isinstance(value, type):
        for inner, member in vars(value).items():
            if isinstance(member, property):
                member = member.fget
            if isinstance(member, classmethod | staticmethod):
                member = member.__func__
            own = getattr(member, "__module__", None) == value.__module__
            if own and callable(member) and not isinstance(member, type):
                yield from _documented(f"{name}.{inner}", member)


@pytest.mark.parametrize("name", module_names())
def test_examples(name: str, real_jax_aside: None) -> None:
    module = importlib.import_module(name)
    report: list[str] = []
    for label, text in documented(module):
        scope = dict(vars(module))
        test = doctest.DocTestParser().get_doctest(text, scope, label, module.__file__, 0)
        doctest.DocTestRunner(verbose=False, optionflags=OPTIONS).run(test, out=report.append)
    assert not report, "".join(report)
