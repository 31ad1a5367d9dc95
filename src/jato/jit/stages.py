"""The stages of a jitted function, ahead of time: trace -> lower -> compile.

    traced = f.trace(x)         Traced: the graph
    lowered = traced.lower()    Lowered: the graph as the compiler gets it
    compiled = lowered.compile()    Compiled: machine code, callable on arrays of these types
"""

from __future__ import annotations

from typing import Any

from jato.base.pytree import tree_flatten
from jato.compiler.pipeline import Program
from jato.core.array import ArrayImpl, from_host
from jato.core.graph_print import format_graph
from jato.core.staging import abstract_value
from jato.jit.pipeline import JitState, TracedCall, split_arguments
from jato.transforms.abstract_eval import ClosedJaxpr, struct_of


class Traced:
    """A function traced for one kind of arguments."""

    def __init__(self, state: JitState, traced: TracedCall, donated: list[int]):
        self._state = state
        self._traced = traced
        self._donated = donated

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The program, printable."""
        return ClosedJaxpr(self._traced.graph)

    @property
    def fun_name(self) -> str:
        return self._state.spec.name

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of the results, in their structure."""
        return self._traced.out_tree.unflatten(
            [struct_of(a) for a in self._traced.graph.out_avals]
        )

    @property
    def in_avals(self) -> Any:
        return self._traced.in_tree.unflatten(self._traced.graph.in_avals)

    def lower(self, **options: Any) -> Lowered:
        """The program for the compiler; options are accepted and ignored."""
        del options
        return Lowered(self._state, self._traced, self._donated)


class Lowered:
    """A traced program, ready to compile."""

    def __init__(self, state: JitState, traced: TracedCall, donated: list[int]):
        self._state = state
        self._traced = traced
        self._donated = donated

    @property
    def out_info(self) -> Any:
        return Traced(self._state, self._traced, self._donated).out_info

    @property
    def in_tree(self) -> Any:
        return self._traced.in_tree

    @property
    def out_tree(self) -> Any:
        return self._traced.out_tree

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as text."""
        del dialect, debug_info
        return format_graph(self._traced.graph)

    def compile(self, compiler_options: Any = None) -> Compiled:
        """Machine code."""
        del compiler_options
        return Compiled(self._traced, self._state.compile(self._traced, self._donated))


class Compiled:
    """A compiled program; call it with arguments of the types it was traced for."""

    def __init__(self, traced: TracedCall, program: Program):
        self._traced = traced
        self._program = program

    @property
    def in_tree(self) -> Any:
        return self._traced.in_tree

    @property
    def out_tree(self) -> Any:
        return self._traced.out_tree

    def as_text(self) -> str:
        """The steps of the program: its kernels, library calls and memory."""
        return self._program.executable.describe()

    def cost_analysis(self) -> dict[str, float]:
        """The compiler's estimate."""
        return {"optimal_seconds": self._program.executable.cost_ns * 1e-9}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = tree_flatten((args, kwargs))
        if in_tree != self._traced.in_tree:
            raise TypeError(
                f"{self._traced.graph.name}: compiled for arguments of structure "
                f"{self._traced.in_tree}, called with {in_tree}"
            )
        arrays = []
        for i, (x, aval) in enumerate(zip(leaves, self._traced.graph.in_avals, strict=True)):
            given = abstract_value(x)
            if given.shape != aval.shape or given.dtype != aval.dtype:
                raise TypeError(
                    f"{self._traced.graph.name}: compiled for {aval} as leaf {i} of its arguments, "
                    f"called with {given}"
                )
            arrays.append(x if isinstance(x, ArrayImpl) else from_host(x, aval.dtype))
        return self.out_tree.unflatten(self._program.executable.run(arrays))


def trace_call(state: JitState, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
    state.reject_static(args, kwargs)
    arguments = split_arguments(state.spec, args, kwargs)
    leaves, in_tree = tree_flatten((arguments.rest, arguments.named))
    traced = state.trace(arguments, [abstract_value(x) for x in leaves], in_tree)
    return Traced(state, traced, state.donated_positions(args, kwargs, arguments))


def lower_call(state: JitState, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Lowered:
    return trace_call(state, args, kwargs).lower()
