"""Graph: a traced function as data.

    graph  = inputs, constvars (bound to `consts`), nodes in order of execution, outputs
    node   = outputs <- primitive [params] inputs
    atom   = Var | Literal          Literal: a scalar written into the program

`consts` are arrays that the function captured; they are held by reference.  Start reading at
`Graph`; `evaluate` runs one on any values under the current trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Union

from jato.base.frames import Frame
from jato.core.primitive import Primitive
from jato.core.trace import STATE


class Var:
    __slots__ = ("aval",)

    def __init__(self, aval: Any):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var:{self.aval}@{id(self) & 0xFFFF:x}"


class Literal:
    """A 0-d value known when the program was traced (a Python number or NumPy scalar)."""

    __slots__ = ("aval", "value")

    def __init__(self, value: Any, aval: Any):
        self.value = value
        self.aval = aval

    def __repr__(self) -> str:
        return f"{self.value!r}"


Atom = Union[Var, Literal]


class Node:
    """One operation: `outputs` (always a list) of `primitive` applied to `inputs`."""

    __slots__ = ("frame", "inputs", "outputs", "params", "primitive")
    # A Primitive; families have methods of their own, which a check of the class vouches for.
    primitive: Any

    def __init__(
        self,
        primitive: Primitive,
        inputs: Sequence[Atom],
        outputs: Sequence[Var],
        params: dict[str, Any],
        frame: Frame | None = None,
    ):
        self.primitive = primitive
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self.params = params
        self.frame = frame

    # JAX's names, for programs that read what make_jaxpr returns

    @property
    def invars(self) -> list[Atom]:
        return self.inputs

    @property
    def outvars(self) -> list[Var]:
        return self.outputs

    def __repr__(self) -> str:
        return f"{self.outputs} = {self.primitive.name} {self.inputs}"


class Graph:
    """A function as a list of nodes.  Treated as immutable once built: passes make new ones."""

    __slots__ = ("__weakref__", "consts", "constvars", "inputs", "name", "nodes", "outputs")

    def __init__(
        self,
        inputs: Sequence[Var],
        nodes: Sequence[Node],
        outputs: Sequence[Atom],
        constvars: Sequence[Var] = (),
        consts: Sequence[Any] = (),
        name: str = "f",
    ):
        self.inputs = list(inputs)
        self.nodes = list(nodes)
        self.outputs = list(outputs)
        self.constvars = list(constvars)
        self.consts = list(consts)
        self.name = name

    @property
    def in_avals(self) -> list[Any]:
        return [v.aval for v in self.inputs]

    @property
    def out_avals(self) -> list[Any]:
        return [a.aval for a in self.outputs]

    # JAX's names, for programs that read what make_jaxpr returns

    @property
    def eqns(self) -> list[Node]:
        return self.nodes

    @property
    def invars(self) -> list[Var]:
        return self.inputs

    @property
    def outvars(self) -> list[Atom]:
        return self.outputs

    def subgraphs(self) -> Iterator[Graph]:
        for node in self.nodes:
            yield from node.primitive.subgraphs(node.params)


def evaluate(graph: Graph, *args: Any) -> list[Any]:
    """Runs the graph's operations on values, arrays or tracers, under the current trace."""
    env: dict[Var, Any] = dict(zip(graph.constvars, graph.consts, strict=True))
    env.update(zip(graph.inputs, args, strict=True))

    def read(atom: Atom) -> Any:
        return atom.value if type(atom) is Literal else env[atom]  # type: ignore[index]

    last_use: dict[Var, int] = {}
    for i, node in enumerate(graph.nodes):
        for atom in node.inputs:
            if type(atom) is Var:
                last_use[atom] = i
    kept = {a for a in graph.outputs if type(a) is Var}
    frame = STATE.frame
    try:
        for i, node in enumerate(graph.nodes):
            STATE.frame = node.frame or frame  # what is recorded now keeps its place
            out = node.primitive.bind(*map(read, node.inputs), **node.params)
            outs = out if node.primitive.multiple_results else (out,)
            env.update(zip(node.outputs, outs, strict=True))
            for atom in node.inputs:  # frees memory as early as a straight program would
                if type(atom) is Var and last_use[atom] == i and atom not in kept:
                    env.pop(atom, None)
    finally:
        STATE.frame = frame
    return [read(a) for a in graph.outputs]


def constants_to_inputs(graph: Graph) -> tuple[Graph, list[Any]]:
    """(graph without consts whose first inputs are the former constvars, the consts)."""
    moved = Graph(graph.constvars + graph.inputs, graph.nodes, graph.outputs, name=graph.name)
    return moved, graph.consts
