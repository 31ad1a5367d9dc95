"""Imports go down: the table of docs/ARCHITECTURE.md, checked on the syntax of every file.

Also: no cycle of modules, no import inside a function, no `import *`, and no heavy package at the
top of a file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
PACKAGE = SOURCE / "jato"

# layer -> layers it may import, besides itself
BELOW = {
    "base": set(),
    "loopir": {"base"},
    "core": {"base"},
    "ops": {"core", "base"},
    "transforms": {"ops", "core", "base"},
    "compiler": {"ops", "core", "loopir", "base"},
    "control": {"transforms", "ops", "core", "base"},
    "jit": {"compiler", "control", "transforms", "ops", "core", "base"},
    "parallel": {"jit", "control", "transforms", "ops", "core", "base"},
}
# The users' modules: each may import all of the above but the compiler's, and those before it.
FACES = [
    "tree", "tree_util", "lax", "numpy", "random", "nn", "image", "scipy", "dtypes", "dlpack", "typing", "stages", "flatten_util", "debug", "profiler",
    "ad_checkpoint", "custom_batching", "custom_derivatives", "experimental",
]  # fmt: skip
INTERNAL = {"compiler", "loopir"}
ON_TOP = {"tools", "compat", "__init__", "__main__"}
# Packages that cost tens of milliseconds to import: behind base/lazy.py.
HEAVY = {"llvmlite", "scipy", "matplotlib", "rich", "opt_einsum", "mpi4py", "jax"}


@dataclass(frozen=True)
class Import:
    source: str  # the module that imports
    target: str  # the module that is imported, as far as the syntax tells
    line: int
    names: tuple[str, ...] = ()
    for_types: bool = False  # below `if TYPE_CHECKING`
    in_function: bool = False


@cache
def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@cache
def modules() -> set[str]:
    return {module_name(path) for path in files()} | {"jato", "jato._native"}


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


def layer_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


@cache
def imports_of(path: Path) -> list[Import]:
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    return list(_walk(tree, module_name(path), for_types=False, in_function=False))


def _walk(node: ast.AST, source: str, for_types: bool, in_function: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(source, alias.name, child.lineno, (), for_types, in_function)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{source}:{child.lineno}: imports are absolute"
            names = tuple(alias.name for alias in child.names)
            yield Import(source, child.module or "", child.lineno, names, for_types, in_function)
        else:
            inner = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            typing_only = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            yield from _walk(child, source, for_types or typing_only, in_function or inner)


def all_imports() -> list[Import]:
    return [found for path in files() for found in imports_of(path)]


def targets(found: Import) -> list[str]:
    """The modules of jato that an import names: `from jato.numpy import linalg` is two."""
    if found.target.split(".")[0] != "jato":
        return []
    below = [f"{found.target}.{name}" for name in found.names]
    return [m for m in below if m in modules()] or [found.target]


def allowed(layer: str) -> set[str]:
    if layer in ON_TOP:
        return {*BELOW, *FACES, *ON_TOP} - ({"tools", "compat"} if layer == "__init__" else set())
    if layer in FACES:
        return {*(set(BELOW) - INTERNAL), *FACES[: FACES.index(layer)], layer}
    return BELOW[layer] | {layer}


def test_every_folder_has_a_place() -> None:
    known = {*BELOW, *FACES, *ON_TOP}
    assert {layer_of(module_name(path)) for path in files()} <= known


def test_imports_go_down() -> None:
    wrong = []
    for found in all_imports():
        layer = layer_of(found.source)
        if found.for_types and layer == "ops":  # the builder's type, for hints
            continue
        for target in targets(found):
            lower = layer_of(target)
            if lower != "_native" and lower not in allowed(layer) and target != "jato":
                wrong.append(f"{found.source}:{found.line} imports {target}")
            if target == "jato" and layer not in ON_TOP:
                wrong.append(f"{found.source}:{found.line} imports the package itself")
    assert not wrong, "\n".join(wrong)


def test_no_cycles() -> None:
    graph: dict[str, set[str]] = {}
    for found in all_imports():
        if not found.for_types:
            graph.setdefault(found.source, set()).update(targets(found))
    # Importing a submodule runs its packages first, but that is no dependency on their names.
    done: set[str] = set()
    path: list[str] = []

    def visit(module: str) -> None:
        if module in done:
            return
        assert module not in path, " -> ".join([*path[path.index(module) :], module])
        path.append(module)
        for target in sorted(graph.get(module, ())):
            if target != module:
                visit(target)
        path.pop()
        done.add(module)

    for module in sorted(graph):
        visit(module)


def test_no_imports_in_functions() -> None:
    wrong = [f"{i.source}:{i.line} {i.target}" for i in all_imports() if i.in_function]
    assert not wrong, "\n".join(wrong)


def test_no_import_star() -> None:
    wrong = [f"{i.source}:{i.line} {i.target}" for i in all_imports() if "*" in i.names]
    assert not wrong, "\n".join(wrong)


def test_heavy_packages_are_lazy() -> None:
    wrong = [
        f"{i.source}:{i.line} {i.target}"
        for i in all_imports()
        if i.target.split(".")[0] in HEAVY and not i.for_types
    ]
    assert not wrong, "\n".join(wrong)


def test_nothing_imports_the_tools() -> None:
    wrong = [
        f"{i.source}:{i.line} {target}"
        for i in all_imports()
        for target in targets(i)
        if layer_of(target) in {"tools", "compat"}
        and layer_of(i.source) not in {"tools", "compat", "__main__"}
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder", sorted(BELOW))
def test_folders_exist(folder: str) -> None:
    assert (PACKAGE / folder / "__init__.py").is_file()
