"""Vectorization: every value may carry a mapped axis.

    BatchTracer   (value, dim): the value has one axis more than the user sees, at position dim
    BatchTrace    runs each primitive's `batch` rule under the parent trace; operations on
                  unmapped values run there as they are, once
    batch_graph   Graph -> Graph over a mapped axis

A named axis is known to collectives by its name: they are batched even if no operand is mapped.
Start reading at `BatchTrace.process`; the user's function is in vmap.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from jato import _native
from jato.base.caches import weakly_cached
from jato.core.graph import Graph, constants_to_inputs, evaluate
from jato.core.leaks import check_leaks
from jato.core.primitive import AxisData, Primitive
from jato.core.staging import trace_to_graph
from jato.core.trace import STATE, Trace, Tracer, current_trace, set_trace
from jato.core.types import ArrayType, type_of
from jato.ops.shapes import mapped_first, move_axis


class BatchTracer(Tracer):
    """A value with a mapped axis at position `dim`, which its type does not show."""

    __slots__ = ("dim", "value")

    def __init__(self, trace: Trace, value: Any, dim: int):
        whole = type_of(value)
        shape = whole.shape
        self.owner = trace
        self.aval = ArrayType(shape[:dim] + shape[dim + 1 :], whole.dtype_code, whole.weak_type)
        self.value = value
        self.dim = dim

    def origin(self) -> str:
        return self.value.origin() if isinstance(self.value, Tracer) else ""


class BatchTrace(Trace):
    """Runs operations over a mapped axis, in operations of the parent trace."""

    __slots__ = ("axis", "what")

    def __init__(self, parent: Trace | None, axis: AxisData, what: str = "vmap"):
        super().__init__(parent)
        self.axis = axis
        self.what = what

    def describe(self) -> str:
        return self.what

    def split(self, x: Any) -> tuple[Any, int | None]:
        """(value, dim or None)."""
        if type(x) is BatchTracer and x.owner is self:
            return x.value, x.dim
        return x, None

    def join(self, value: Any, dim: int | None) -> Any:
        return value if dim is None else BatchTracer(self, value, dim)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        values: list[Any] = []
        dims: list[int | None] = []
        mapped = False
        for x in args:
            if type(x) is BatchTracer and x.owner is self:
                values.append(x.value)
                dims.append(x.dim)
                mapped = True
            else:
                values.append(x)
                dims.append(None)
        parent = self.parent
        axis = self.axis
        STATE.trace = parent
        if parent is None:
            _native.set_trace_active(False)
        try:
            if not mapped and (axis.name is None or axis.name not in primitive.axis_names(params)):
                return primitive.bind(*args, **params)
            out, dim = primitive.batch(axis, values, dims, **params)
        finally:
            STATE.trace = self
            if parent is None:
                _native.set_trace_active(True)
        if primitive.multiple_results:
            return [
                o if d is None else BatchTracer(self, o, d) for o, d in zip(out, dim, strict=True)
            ]
        return out if dim is None else BatchTracer(self, out, dim)


@contextmanager
def named_axis(axis: AxisData) -> Iterator[None]:
    """Makes the size of a named axis known to collectives inside the `with` block."""
    if axis.name is None:
        yield
        return
    sizes = STATE.axis_sizes
    STATE.axis_sizes = {**sizes, axis.name: axis.size}
    try:
        yield
    finally:
        STATE.axis_sizes = sizes


def batch_flat(
    fun: Callable[..., Sequence[Any]],
    axis: AxisData,
    values: Sequence[Any],
    dims: Sequence[int | None],
    trace: BatchTrace | None = None,
) -> tuple[list[Any], list[int | None]]:
    """(outs, their mapped dims) of a function of flat values."""
    trace = trace or BatchTrace(current_trace(), axis)
    try:
        with set_trace(trace), named_axis(axis):
            outs = fun(*[trace.join(v, d) for v, d in zip(values, dims, strict=True)])
        pairs = [trace.split(x) for x in outs]
    finally:
        trace.valid = False
    del outs
    check_leaks(trace)
    return [v for v, _ in pairs], [d for _, d in pairs]


def with_dim(axis: AxisData, value: Any, dim: int | None, wanted: int | None) -> Any:
    """The value with its mapped axis at `wanted`; an unmapped one is broadcast."""
    if dim == wanted:
        return value
    if dim is None:
        return move_axis(mapped_first(value, None, axis.size), 0, wanted)
    return move_axis(value, dim, wanted)


class BatchedGraph(NamedTuple):
    """graph: consts, values -> outs, mapped at out_dims."""

    graph: Graph
    consts: tuple[Any, ...]
    out_dims: tuple[int | None, ...]


def batch_graph(
    graph: Graph,
    axis: AxisData,
    dims: Sequence[int | None],
    out_mapped: Sequence[bool] | None = None,
) -> BatchedGraph:
    """A graph (without consts) over a mapped axis.

    An output marked in `out_mapped` has its mapped axis first, whether or not it depends on a
    mapped input; the others have it wherever the rules put it, or nowhere.
    """
    forced = None if out_mapped is None else tuple(out_mapped)
    return _batch_graph(graph, axis.name, axis.size, axis.start, tuple(dims), forced)


@weakly_cached()
def _batch_graph(
    graph: Graph,
    name: Any,
    size: int,
    start: int,
    dims: tuple[int | None, ...],
    out_mapped: tuple[bool, ...] | None,
) -> BatchedGraph:
    axis = AxisData(name, size, start)
    avals = [inserted(a, size, d) for a, d in zip(graph.in_avals, dims, strict=True)]
    out_dims: tuple[int | None, ...] = ()

    def batched(*values: Any) -> list[Any]:
        nonlocal out_dims
        outs, found = batch_flat(lambda *xs: evaluate(graph, *xs), axis, values, dims)
        if out_mapped is not None:
            for i, forced in enumerate(out_mapped):
                if forced:
                    outs[i] = with_dim(axis, outs[i], found[i], 0)
                    found[i] = 0
        out_dims = tuple(found)
        return outs

    traced = trace_to_graph(batched, avals, name=graph.name, what="vmap")
    closed, consts = constants_to_inputs(traced)
    return BatchedGraph(closed, tuple(consts), out_dims)


def inserted(aval: Any, size: int, dim: int | None) -> Any:
    """The type with an axis of `size` at `dim` (None: as it is)."""
    if dim is None:
        return aval
    shape = aval.shape
    return ArrayType((*shape[:dim], size, *shape[dim:]), aval.dtype_code, aval.weak_type)
