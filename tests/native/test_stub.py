"""The type stub names what the module has."""

import ast
from pathlib import Path

from jato import _native

STUB = Path(_native.__file__).with_name("_native.pyi")


def test_stub_lists_every_public_name():
    tree = ast.parse(STUB.read_text())
    listed = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            listed.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            listed.add(node.target.id)
        elif isinstance(node, ast.Assign):
            listed |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    public = {n for n in dir(_native) if not n.startswith("_")}
    assert public - listed == set()
    assert {n for n in listed if not n.startswith("_")} - public == set()


def test_stub_lists_every_method():
    tree = ast.parse(STUB.read_text())
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        cls = getattr(_native, node.name)
        for item in node.body:
            name = None
            if isinstance(item, ast.FunctionDef):
                name = item.name
            elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                name = item.target.id
            if name is None or name in ("__getattr__", "__setattr__", "__buffer__"):
                continue
            assert hasattr(cls, name), (node.name, name)
