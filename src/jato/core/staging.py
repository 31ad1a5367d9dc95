"""Staging: runs a Python function on tracers and records a Graph.

`trace_to_graph(fun, avals)` is the entry.  The recording interpreter is `GraphTrace`; values it
meets that are not its own (arrays, outer tracers) become constants of the graph, each once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.frames import Frame, user_frame
from jato.core.array import from_host, to_host
from jato.core.graph import Atom, Graph, Literal, Node, Var
from jato.core.leaks import check_leaks
from jato.core.primitive import Primitive
from jato.core.trace import STATE, Trace, Tracer, check_not_leaked, current_trace, set_trace
from jato.core.types import ArrayType, type_of


class GraphTracer(Tracer):
    """A value of the graph being recorded.  `argument`: its name if it is an input."""

    __slots__ = ("argument", "frame", "variable")

    def __init__(self, trace: Trace, var: Var, frame: Frame | None = None, argument: str = ""):
        self.owner = trace
        self.aval = var.aval
        self.variable = var
        self.frame = frame
        self.argument = argument

    def origin(self) -> str:
        if self.argument:
            return f"It is the argument {self.argument}."
        if self.frame is not None:
            return f"It was computed at {self.frame}."
        return ""


class GraphTrace(Trace):
    """Records every operation as a node."""

    __slots__ = ("constants", "name", "nodes", "snapshots", "what")

    def __init__(self, parent: Trace | None, name: str, what: str = "jit"):
        super().__init__(parent)
        self.nodes: list[Node] = []
        # id of the captured object -> (object, its variable); holding it keeps the id valid
        self.constants: dict[int, tuple[Any, Var]] = {}
        # id of a NumPy array -> (the array, the copy taken of it when it was last used)
        self.snapshots: dict[int, tuple[np.ndarray, Any]] = {}
        self.name = name
        self.what = what

    def describe(self) -> str:
        return f"{self.what} of {self.name}"

    def atom(self, x: Any) -> Atom:
        """The graph's name for a value."""
        kind = type(x)
        if kind is GraphTracer and x.owner is self:
            return x.variable
        if isinstance(x, Tracer):
            check_not_leaked(x)
            return self._constant(x)
        if kind is float or kind is int or kind is bool or kind is complex:
            return Literal(x, type_of(x))
        if isinstance(x, np.generic):
            return Literal(x, type_of(x))
        return self._constant(x)

    def output(self, x: Any) -> Atom:
        """The graph's name for a result of the function."""
        try:
            return self.atom(x)
        except TypeError as error:
            if isinstance(x, Tracer):
                raise
            raise TypeError(f"{self.describe()}: a result of the function: {error}") from None

    def _constant(self, x: Any) -> Var:
        if isinstance(x, np.ndarray):
            x = self._snapshot(x)
        known = self.constants.get(id(x))
        if known is not None:
            return known[1]
        var = Var(type_of(x))
        self.constants[id(x)] = (x, var)
        return var

    def _snapshot(self, x: np.ndarray) -> Any:
        """An array with the present elements of x, which the function may overwrite later on."""
        known = self.snapshots.get(id(x))
        if known is not None and _same_bytes(x, to_host(known[1])):
            return known[1]
        copy = from_host(x)
        self.snapshots[id(x)] = (x, copy)
        return copy

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        atoms = [
            x.variable if type(x) is GraphTracer and x.owner is self else self.atom(x) for x in args
        ]
        out = primitive.type_rule(*[a.aval for a in atoms], **params)
        frame = STATE.frame or user_frame()
        if STATE.scope and frame is not None:
            frame = frame.within(STATE.scope)
        if primitive.multiple_results:
            outs = [Var(t) for t in out]
            self.nodes.append(Node(primitive, atoms, outs, params, frame))
            return [GraphTracer(self, v, frame) for v in outs]
        var = Var(out)
        self.nodes.append(Node(primitive, atoms, [var], params, frame))
        return GraphTracer(self, var, frame)


def _same_bytes(x: np.ndarray, copy: np.ndarray) -> bool:
    """Does x, in the dtype of its copy, have the copy's bits (0 and -0 differ, a NaN is itself)?"""
    if x.shape != copy.shape:
        return False
    dense = np.ascontiguousarray(x, copy.dtype)
    return dense.tobytes() == copy.tobytes()


def trace_to_graph(
    fun: Callable[..., Any],
    avals: Sequence[Any],
    name: str = "f",
    what: str = "jit",
    argument_names: Sequence[str] | None = None,
) -> Graph:
    """Records `fun`, a function of flat values that returns a list of flat values.

    Captured arrays, and tracers of outer traces, become `consts`.  Raises UnexpectedTracerError
    when the function uses a tracer that is no longer valid, and, under `checking_leaks`, when one of
    its own outlives it.
    """
    trace = GraphTrace(current_trace(), name, what)
    names = argument_names or [""] * len(avals)
    tracers = [
        GraphTracer(trace, Var(aval), argument=argument)
        for aval, argument in zip(avals, names, strict=True)
    ]
    try:
        with set_trace(trace):
            outs = fun(*tracers)
            outputs = [trace.output(x) for x in outs]
    finally:
        trace.valid = False
    graph = Graph(
        [t.variable for t in tracers],
        trace.nodes,
        outputs,
        [var for _, var in trace.constants.values()],
        [value for value, _ in trace.constants.values()],
        name,
    )
    del tracers, outs
    check_leaks(trace)
    return graph


def abstract_value(x: Any) -> Any:
    """The type of anything with a shape and dtype (arrays, ShapeDtypeStruct) or a number."""
    if isinstance(getattr(x, "aval", None), ArrayType):
        return x.aval
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return ArrayType(
            tuple(x.shape),
            dtypes.code_of(dtypes.canonicalize(x.dtype)),
            bool(getattr(x, "weak_type", False)),
        )
    return type_of(x)


