"""Imports of `jax` and its modules that give jato's: a finder on `sys.meta_path`.

The data is names.toml: module of jax -> module of jato.  The same module object stands under both
names, so that `jax.numpy is jato.numpy`.  Start at `install`.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.resources
import sys
import tomllib
from collections.abc import Sequence
from types import ModuleType
from typing import Any

_ROOT = "jax"
# Names of jax that stand for modules of jato in sys.modules.
_aliases: set[str] = set()


@functools.cache
def module_names() -> dict[str, str]:
    """Module of jax -> module of jato that stands for it.

    >>> module_names()["jax.numpy"]
    'jato.numpy'
    """
    text = importlib.resources.files(__package__).joinpath("names.toml").read_text("utf-8")
    return dict(tomllib.loads(text)["modules"])


def install() -> None:
    """Lets `import jax`, `import jax.numpy`, ... resolve to jato, from now on in this process.

    Calling it again changes nothing.  ImportError when the real jax has been imported already:
    modules that hold on to it would go on using it.

    >>> import jato
    >>> install()
    >>> import jax.numpy as jnp
    >>> jnp is jato.numpy
    True
    >>> uninstall()
    """
    if any(isinstance(finder, JaxFinder) for finder in sys.meta_path):
        return
    loaded = sys.modules.get(_ROOT)
    if loaded is not None and loaded is not sys.modules.get(module_names()[_ROOT]):
        raise ImportError(
            "jato.compat.install: jax has been imported already "
            f"({getattr(loaded, '__file__', 'unknown place')}). Call install() before the first "
            "import of jax, or run the script with `python -m jato run SCRIPT`."
        )
    sys.meta_path.insert(0, JaxFinder())


def uninstall() -> None:
    """Undoes `install`: later imports of jax find what is installed under that name."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, JaxFinder)]
    for name in _aliases:
        sys.modules.pop(name, None)
    _aliases.clear()


class JaxFinder(importlib.abc.MetaPathFinder):
    """Finds `jax` and everything below it; what jato does not have is an error that says so."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        if fullname != _ROOT and not fullname.startswith(_ROOT + "."):
            return None
        name = module_names().get(fullname)
        if name is None:
            raise ModuleNotFoundError(
                f"jato has no module for {fullname!r}. It stands for: "
                f"{', '.join(sorted(module_names()))}.",
                name=fullname,
            )
        return importlib.machinery.ModuleSpec(fullname, AliasLoader(name, fullname), is_package=True)


class AliasLoader(importlib.abc.Loader):
    """Loads a module by handing out one that exists under another name."""

    def __init__(self, name: str, alias: str):
        self._name = name
        self._alias = alias
        self._own: dict[str, Any] = {}

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        del spec
        module = self._import()
        # The import system writes its spec into what it gets; exec_module restores the module's own.
        self._own = {key: vars(module).get(key) for key in ("__spec__", "__path__")}
        return module

    def exec_module(self, module: ModuleType) -> None:
        _aliases.add(self._alias)
        for key, value in self._own.items():
            if value is not None:
                setattr(module, key, value)
            elif key in vars(module):
                delattr(module, key)

    def _import(self) -> ModuleType:
        """The module, which may be an attribute of its package only (jato.errors)."""
        try:
            return importlib.import_module(self._name)
        except ModuleNotFoundError as error:
            package, _, attribute = self._name.rpartition(".")
            module = getattr(sys.modules.get(package), attribute, None)
            if error.name == self._name and isinstance(module, ModuleType):
                return module
            raise
