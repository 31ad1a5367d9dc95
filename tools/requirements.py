"""Prints what to install to build and run the working tree, from pyproject.toml.

    python tools/requirements.py test-peer

The arguments are extras, joined by hyphens; `build` stands for no extra.  The requirements of the
build itself and those of the package are always there.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
# scikit-build-core fetches these by itself; building in the tree needs them in the environment.
BUILD_TOOLS = ["cmake>=3.18", "ninja>=1.11"]


def requirements(extras: list[str]) -> list[str]:
    """The requirements of the build, the package and the named extras."""
    data = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    project = data["project"]
    found = [*data["build-system"]["requires"], *BUILD_TOOLS, *project["dependencies"]]
    for extra in extras:
        found += project["optional-dependencies"][extra]
    return found


if __name__ == "__main__":
    names = sys.argv[1].split("-") if len(sys.argv) > 1 else []
    print("\n".join(requirements([name for name in names if name != "build"])))
