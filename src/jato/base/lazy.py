"""LazyModule: a module that is imported when first used.

For heavy third-party packages (llvmlite, scipy), so that `import jato` stays quick without an
import inside a function.
"""

from __future__ import annotations

import importlib
from typing import Any


class LazyModule:
    """Stands for the module called `name`; the first attribute access imports it."""

    def __init__(self, name: str):
        self.__dict__["_name"] = name

    def __getattr__(self, attribute: str) -> Any:
        module = importlib.import_module(self.__dict__["_name"])
        self.__dict__.update(vars(module))
        return getattr(module, attribute)
