"""`python -m jato run SCRIPT [ARGS]`: runs a script whose `import jax` gives jato."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence

from jato.compat.importer import install


def run_script(script: str, arguments: Sequence[str] = ()) -> None:
    """Runs a Python file as `python SCRIPT ARGS` would, with `jax` standing for jato.

    script: a path, or a folder or zip file with a `__main__.py`.  The script sees its own
    `sys.argv`, and its folder as the first place to import from.  What it raises, SystemExit
    included, is passed on.
    """
    install()
    before = sys.argv[:], sys.path[0]
    sys.argv[:] = [script, *arguments]
    if os.path.isfile(script):  # for folders and zip files runpy does this
        sys.path[0] = os.path.dirname(os.path.abspath(script))
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        sys.argv[:], sys.path[0] = before
