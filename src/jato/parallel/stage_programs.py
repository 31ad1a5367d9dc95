"""Stages of a pmap as graphs to compile, with the places in memory that they read and write.

Arguments, values between stages and results are slots, as native/core/stages.h numbers them.  A
value that differs between members has the mapped axis in front in its slot, so that a device's
share of it is a piece; a value that all share is there once.

Start at `StageBuilder.local_part`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jato import _native
from jato.core.graph import Graph, Var, evaluate
from jato.core.placement import Device
from jato.core.primitive import AxisData
from jato.core.staging import trace_to_graph
from jato.core.types import ArrayType, type_of
from jato.jit.pipeline import TracedCall
from jato.ops.structural import slice_in_dim, transpose
from jato.parallel.stages import Cut, Stage, asks_for_member
from jato.transforms.batching import batch_graph, inserted

# (device, executable, [(slot, offset) read], [(slot, offset) written]), as _native.Entry takes it
Part = tuple[int, Any, list[tuple[int, int]], list[tuple[int, int]]]
ALL_DEVICES = -1


@dataclass(frozen=True)
class ElementCall:
    """A call traced on one element.

    element    its graph, without the mapped axis
    avals      types of the dynamic leaves, with it; dims: where each has it, or None
    size       its length; out_axes: where it goes in each result, or None
    """

    element: TracedCall
    avals: list[Any]
    dims: list[int | None]
    size: int
    out_axes: list[Any]


class StageBuilder:
    """Compiles the stages of one call and gives each value its slot.

    constants   the entry's: the numbers of the members, where the function asks for them
    buffers     bytes of the values between stages; results: types of the results
    """

    def __init__(
        self,
        call: ElementCall,
        parts: Cut,
        name: Hashable | None,
        function: str,
        compile_program: Callable[[TracedCall], Any],
    ):
        self.call = call
        self.cut = parts
        self.name = name
        self.function = function
        self.compile_program = compile_program
        self.programs: dict[Any, Any] = {}
        graph = parts.graph
        self.dims: dict[Var, int | None] = dict(zip(graph.inputs, [*call.dims, 0], strict=True))
        self.avals: dict[Var, Any] = dict(zip(graph.inputs, call.avals, strict=False))
        self.slots: dict[Var, int] = {v: i for i, v in enumerate(graph.inputs)}
        self.constants: list[Any] = []
        if any(parts.member in stage.reads for stage in parts.stages):
            self.constants.append(_native.from_numpy(np.arange(call.size, dtype=np.int32)))
        self.avals[parts.member] = inserted(parts.member.aval, call.size, 0)
        self.buffers: list[int] = []
        inputs = len(call.avals) + len(self.constants)
        for write in itertools.chain.from_iterable(s.writes for s in parts.stages):
            if write.result is None:
                self.store(write.atom, write.mapped, inputs + len(self.buffers))
                self.buffers.append(self.avals[write.atom].nbytes)
        self.first_result = inputs + len(self.buffers)
        self.results: list[Any] = [None] * len(call.out_axes)
        for write in itertools.chain.from_iterable(s.writes for s in parts.stages):
            if write.result is not None:
                self.results[write.result] = self.result_type(write.atom.aval, write.axis)
                if write.axis == 0 and write.mapped and write.atom in parts.mapped:
                    if write.atom not in self.slots:  # later stages read it there
                        self.store(write.atom, True, self.first_result + write.result)

    def store(self, var: Var, mapped: bool, slot: int) -> None:
        self.slots[var] = slot
        self.dims[var] = 0 if mapped else None
        self.avals[var] = inserted(var.aval, self.call.size, self.dims[var])

    def result_type(self, aval: Any, axis: Any) -> Any:
        return aval if axis is None else inserted(aval, self.call.size, axis % (aval.ndim + 1))

    def kernels(self) -> tuple[str, ...]:
        return tuple(name for program in self.programs.values() for name in program.kernels)

    def whole_part(self, stage: Stage) -> Part:
        program = self.compile_program(self.traced(stage, 0, self.call.size))
        self.programs[stage] = program
        return (ALL_DEVICES, program.executable, *self.places(stage, 0, self.call.size))

    def local_part(self, stage: Stage, device: Device, share: tuple[int, int]) -> Part:
        start, stop = share
        key = (stage, share if self.depends_on_place(stage) else stop - start)
        if key not in self.programs:
            self.programs[key] = self.compile_program(self.traced(stage, start, stop))
        return (device.id, self.programs[key].executable, *self.places(stage, start, stop))

    def depends_on_place(self, stage: Stage) -> bool:
        """Do shares of equal length need programs of their own?"""
        return any(self.dims[v] not in (None, 0) for v in stage.reads) or any(
            asks_for_member(g, self.name)
            for node in stage.nodes
            for g in node.primitive.subgraphs(node.params)
        )

    def places(
        self, stage: Stage, start: int, stop: int
    ) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        def offset(var: Var) -> int:
            return start * (self.avals[var].nbytes // self.call.size) if self.dims[var] == 0 else 0

        reads = [(self.slots[v], offset(v)) for v in stage.reads]
        writes = []
        for write in stage.writes:
            if write.result is None:
                writes.append((self.slots[write.atom], offset(write.atom)))
            else:
                piece = self.results[write.result].nbytes // self.call.size if start else 0
                writes.append((self.first_result + write.result, start * piece))
        return reads, writes

    def traced(self, stage: Stage, start: int, stop: int) -> TracedCall:
        """The stage for members start to stop; what is mapped along axis 0 comes as pieces."""
        whole = (start, stop) == (0, self.call.size)
        graph = self.cut.graph
        used = {a for node in stage.nodes for a in node.inputs} | {w.atom for w in stage.writes}
        constants = [
            (v, c) for v, c in zip(graph.constvars, graph.consts, strict=True) if v in used
        ]
        element = Graph(
            [*(v for v, _ in constants), *stage.reads],
            stage.nodes,
            [w.atom for w in stage.writes],
            name=self.function,
        )
        read_dims = [self.dims[v] for v in stage.reads]
        axis = AxisData(self.name, stop - start, start)
        batched = batch_graph(
            element,
            axis,
            [None] * len(constants) + read_dims,
            tuple(w.mapped for w in stage.writes),
        )

        def on_share(*leaves: Any) -> list[Any]:
            pieces = [
                x if whole or d in (None, 0) else slice_in_dim(x, start, stop, axis=d)
                for x, d in zip(leaves, read_dims, strict=True)
            ]
            outs = evaluate(batched.graph, *batched.consts, *(c for _, c in constants), *pieces)
            return [
                moved(x, w.axis) if w.mapped else x
                for x, w in zip(outs, stage.writes, strict=True)
            ]

        avals = [
            _with_length(self.avals[v], stop - start) if d == 0 else self.avals[v]
            for v, d in zip(stage.reads, read_dims, strict=True)
        ]
        traced = trace_to_graph(on_share, avals, self.function, "pmap")
        call = self.call.element
        return TracedCall(traced, call.in_tree, call.out_tree, call.names)


def shares_of(size: int, parts: int) -> list[tuple[int, int]]:
    """Contiguous shares [start, stop) of an axis, as equal as possible, longer ones first."""
    base, extra = divmod(size, parts)
    shares, start = [], 0
    for i in range(parts):
        stop = start + base + (i < extra)
        shares.append((start, stop))
        start = stop
    return shares


def _with_length(aval: Any, length: int) -> Any:
    return ArrayType((length, *aval.shape[1:]), aval.dtype_code, aval.weak_type)


def moved(x: Any, axis: Any) -> Any:
    """x with its axis 0 at `axis`; None: all elements along it are equal, one is wanted."""
    ndim = type_of(x).ndim
    if axis is None:
        return x[0]
    place = axis % ndim
    order = list(range(1, ndim))
    order.insert(place, 0)
    return x if place == 0 else transpose(x, order)
