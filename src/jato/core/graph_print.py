"""Text of a Graph, in the notation of JAX's jaxprs.

    { lambda c:f32[3]; a:f32[3]. let b:f32[3] = mul a c in (b,) }

Left of the semicolon the captured constants, right of it the arguments.  Start at `format_graph`.
"""

from __future__ import annotations

from typing import Any

from jato.core.graph import Atom, Graph, Literal, Node, Var

_LINE = 80
_SHORT = (
    "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64",
    "c64", "c128", "float0", "key<fry>",
)  # fmt: skip


def short_type(aval: Any) -> str:
    """`f32[2,3]`."""
    return f"{_SHORT[aval.dtype_code]}[{','.join(map(str, aval.shape))}]"


class _Names:
    """Gives variables the names a, b, ..., z, ba, bb, ..."""

    def __init__(self) -> None:
        self.names: dict[Var, str] = {}

    def __getitem__(self, var: Var) -> str:
        name = self.names.get(var)
        if name is None:
            name = self.names[var] = _letters(len(self.names))
        return name


def _letters(n: int) -> str:
    text = chr(ord("a") + n % 26)
    while n >= 26:
        n //= 26
        text = chr(ord("a") + n % 26) + text
    return text


def format_graph(graph: Graph, frames: bool = False) -> str:
    """The graph as text; with `frames`, each line ends with its place in the user's code."""
    return "\n".join(_graph_lines(graph, _Names(), frames))


def _graph_lines(graph: Graph, names: _Names, frames: bool) -> list[str]:
    constants = " ".join(_binder(v, names) for v in graph.constvars)
    inputs = " ".join(_binder(v, names) for v in graph.inputs)
    head = f"{{ lambda {constants}; {inputs}. let"
    body: list[str] = []
    for node in graph.nodes:
        body.extend(_node_lines(node, names, frames))
    outputs = ", ".join(_atom(a, names) for a in graph.outputs)
    if len(graph.outputs) == 1:
        outputs += ","
    one_line = f"{head} {'; '.join(body)}{' ' if body else ''}in ({outputs}) }}"
    if len(body) <= 1 and len(one_line) <= _LINE and not frames:
        return [one_line]
    return [head, *("    " + line for line in body), f"  in ({outputs}) }}"]


def _binder(var: Var, names: _Names) -> str:
    return f"{names[var]}:{short_type(var.aval)}"


def _atom(atom: Atom, names: _Names) -> str:
    if isinstance(atom, Literal):
        return f"{_number(atom.value)}:{short_type(atom.aval)}"
    return names[atom]


def _number(value: Any) -> str:
    item = getattr(value, "item", None)
    return str(item() if item is not None else value)


def _node_lines(node: Node, names: _Names, frames: bool) -> list[str]:
    inputs = " ".join(_atom(a, names) for a in node.inputs)
    outputs = " ".join(_binder(v, names) for v in node.outputs)
    params: list[str] = []
    for key in sorted(node.params):
        lines = _param_lines(node.params[key], frames)
        params.append(f"{key}={lines[0]}")
        params.extend(lines[1:])
    head = f"{outputs} = {node.primitive.name}"
    tail = (f" {inputs}" if inputs else "") + (f"  # {node.frame}" if frames and node.frame else "")
    flat = f"{head}[{' '.join(params)}]" if params else head
    if len(flat) + len(tail) <= _LINE and all("{" not in p for p in params):
        return [flat + tail]
    if not params:
        return [flat + tail]
    return [f"{head}[", *("  " + p for p in params), f"]{tail}"]


def _param_lines(value: Any, frames: bool) -> list[str]:
    if isinstance(value, Graph):
        return _graph_lines(value, _Names(), frames)
    if isinstance(value, tuple) and value and all(isinstance(v, Graph) for v in value):
        lines = ["("]
        for graph in value:
            lines.extend("  " + line for line in _graph_lines(graph, _Names(), frames))
        return [*lines, ")"]
    if callable(value) and hasattr(value, "__name__"):
        return [value.__name__]
    return str(value).splitlines() or [""]
