"""pmap: vmap spread over devices.

The mapped axis, of any length N, is cut into contiguous shares, one per device (the first ones one
longer where N does not divide); each device runs the vmapped function on its share.  With N equal
to the number of devices this is JAX's pmap.  Memory is shared, so a share of an argument mapped
along axis 0 is a piece of it and no copy, and results are written piece by piece into one array
that the next pmap takes apart the same way.

Where the function communicates over the axis it is cut into stages (stages.py): shares run apart
from each other and meet at collectives.  Light functions are one program over the whole axis.

Start at `pmap`; `PmapState.cold` compiles.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from jato import _native
from jato.base import observe
from jato.base.config import config
from jato.base.pytree import broadcast_prefix, tree_flatten
from jato.base.signatures import leaf_names
from jato.core.effects import graph_has_effect
from jato.core.graph import Graph, constants_to_inputs, evaluate
from jato.core.placement import Device
from jato.core.primitive import AxisData
from jato.core.staging import trace_to_graph
from jato.core.types import ArrayType, type_of
from jato.jit import debug_values
from jato.jit.api import dress
from jato.jit.pipeline import JitState, TracedCall, split_arguments
from jato.jit.spec import JitSpec, make_spec
from jato.parallel.devices import pick_devices
from jato.parallel.stage_programs import ElementCall, StageBuilder, moved, shares_of
from jato.parallel.stages import Cut, cut
from jato.transforms.batching import batch_graph, named_axis
from jato.transforms.vmap import vmap


@dataclass(frozen=True)
class MapSpec:
    """The options of pmap that jit does not have."""

    in_axes: Any
    out_axes: Any
    axis_name: Hashable | None
    axis_size: int | None
    devices: tuple[Device, ...] | None


@dataclass(frozen=True)
class SplitOverDevices:
    """The placement of a result of pmap: consecutive pieces of axis 0 on these devices."""

    devices: tuple[Device, ...]
    sizes: tuple[int, ...]

    @property
    def device_set(self) -> frozenset[Device]:
        return frozenset(self.devices)

    @property
    def key(self) -> Any:
        return ("split", tuple(d.id for d in self.devices), self.sizes)

    def pieces(self, shape: tuple[int, ...]) -> list[tuple[Device, tuple[slice, ...]]]:
        """Which device holds which part of an array of this shape."""
        ends = itertools.accumulate(self.sizes)
        rest = (slice(None),) * (len(shape) - 1)
        rows = zip(self.devices, self.sizes, ends, strict=True)
        return [(device, (slice(end - size, end), *rest)) for device, size, end in rows]


def pmap(
    fun: Callable[..., Any] | None = None,
    axis_name: Hashable | None = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Device] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
    global_arg_shapes: Any = None,
) -> Any:
    """`fun` mapped over an axis of its arguments, the work spread over the devices.

    Args:
      fun: function of one element along the mapped axis.
      axis_name: a name for collectives.
      in_axes: the mapped axis of each positional argument (integer, None for an argument that all
        devices get whole, or trees of these); out_axes: where the mapped axis of results goes.
      static_broadcasted_argnums: positions of arguments that are Python values.
      devices: the devices to use; None: all.
      axis_size: the length of the mapped axis, if no argument tells.
      donate_argnums: arguments that must not be used after the call.
      backend, global_arg_shapes: accepted.
    Returns:
      A compiled function.  The mapped axis may have any length: each device gets a contiguous
      share of it.  Shares run apart from each other up to a collective; an error in one reaches the
      caller and ends the others.  What is light (less than about 0.1 ms for a device), and loops
      that hold a collective, run as one program for all of them.
    Raises:
      ValueError naming the arguments whose shapes do not fit.

    >>> import jato
    >>> import jato.numpy as jnp
    >>> jato.pmap(lambda x: x * 2)(jnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    """
    del backend, global_arg_shapes

    def decorate(f: Callable[..., Any]) -> Any:
        spec = make_spec(f, static_broadcasted_argnums, None, donate_argnums)
        chosen = None if devices is None else tuple(pick_devices(devices))
        if isinstance(in_axes, list):
            axes: Any = tuple(in_axes)
        else:
            axes = in_axes
        mapping = MapSpec(axes, out_axes, axis_name, axis_size, chosen)
        state = PmapState(spec, mapping)
        function = _native.JitFunction(
            f, state.cold, state.traced, spec.static_argnums, spec.static_argnames,
            spec.donate_argnums, spec.name,
        )  # fmt: skip
        return dress(function, state)

    return decorate if fun is None else decorate(fun)


class PmapState(JitState):
    """The Python half of a pmapped function."""

    def __init__(self, spec: JitSpec, mapping: MapSpec):
        super().__init__(spec)
        self.mapping = mapping

    def mapped(self, function: Callable[..., Any], axes: Any, size: int) -> Callable[..., Any]:
        """The function of whole (shares of) arguments; results have the mapped axis where
        out_axes says."""
        m = self.mapping
        return vmap(function, in_axes=axes, out_axes=m.out_axes, axis_name=m.axis_name, axis_size=size)

    def positional_axes(self, count: int) -> Any:
        """in_axes of the dynamic positional arguments."""
        axes = self.mapping.in_axes
        if axes is None or isinstance(axes, int):
            return axes
        if not isinstance(axes, tuple):
            raise TypeError(
                f"pmap of {self.spec.name}: in_axes must be an integer, None or a tuple with one "
                f"entry per positional argument, got {axes!r}"
            )
        static = self.spec.static_argnums
        total = count + len([i for i in static if i < len(axes)])
        if len(axes) != total:
            raise ValueError(
                f"pmap of {self.spec.name}: in_axes has {len(axes)} entries, the call {total} "
                "positional arguments"
            )
        return tuple(a for i, a in enumerate(axes) if i not in static)

    def traced(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Under another transform: vmap, on whatever device that runs."""
        arguments = split_arguments(self.spec, args, kwargs)
        axes = self.positional_axes(len(arguments.rest))
        leaves, _ = tree_flatten((arguments.rest, arguments.named))
        size = self.axis_size(arguments, axes, [type_of(x) for x in leaves])[0]
        return self.mapped(arguments.function, axes, size)(*arguments.rest, **arguments.named)

    def cold(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], info: Any) -> Any:
        if config.jax_disable_jit:
            return self.traced(function, args, kwargs)
        arguments = split_arguments(self.spec, args, kwargs)
        leaves, in_tree = tree_flatten((arguments.rest, arguments.named))
        self.check_leaves(args, kwargs, arguments, leaves)
        if debug_values.wanted():
            return self.checked(arguments, leaves, in_tree)
        self.history.record(args, kwargs, arguments)
        call = self.element_call(arguments, [type_of(x) for x in leaves], in_tree)
        donated = self.donated_positions(args, kwargs, arguments)
        return self.entry(call, donated)

    def checked_entry(
        self, arguments: Any, avals: tuple[Any, ...], in_tree: Any
    ) -> tuple[Graph | None, Any]:
        return None, self.entry(self.element_call(arguments, avals, in_tree), [])

    def entry(self, call: ElementCall, donated: list[int]) -> Any:
        devices, _ = self.targets(call.size)
        axis = AxisData(self.mapping.axis_name, call.size)
        if len(devices) == 1:
            return self.whole_entry(call, donated)
        parts = cut(call.element.graph, axis, len(devices), call.dims, call.out_axes)
        observe.stage("stages", parts.stages, self.spec.name)
        if all(stage.whole for stage in parts.stages):
            return self.whole_entry(call, donated)
        return self.staged_entry(call, parts, donated)

    def trace(self, arguments: Any, avals: Sequence[Any], in_tree: Any) -> TracedCall:
        """The whole call as one program (`trace`, `lower`, `eval_shape`)."""
        call = self.element_call(arguments, avals, in_tree)
        return self.program(call)

    def element_call(self, arguments: Any, avals: Sequence[Any], in_tree: Any) -> ElementCall:
        """The user's function traced once, on one element along the mapped axis."""
        axes = self.positional_axes(len(arguments.rest))
        size, dims = self.axis_size(arguments, axes, avals)
        elements = [_without(a, d) for a, d in zip(avals, dims, strict=True)]
        with named_axis(AxisData(self.mapping.axis_name, size)):
            element = super().trace(arguments, elements, in_tree)
        out_axes = self.output_axes(element.out_tree)
        for axis, out in zip(out_axes, element.graph.outputs, strict=True):
            self.check_output_axis(axis, out.aval)
        return ElementCall(element, list(avals), dims, size, out_axes)

    def program(self, call: ElementCall) -> TracedCall:
        """The function of the whole axis."""
        axis = AxisData(self.mapping.axis_name, call.size)
        closed, consts = constants_to_inputs(call.element.graph)
        dims = [None] * len(consts) + call.dims
        batched = batch_graph(closed, axis, dims, (True,) * len(closed.outputs))

        def on_axis(*leaves: Any) -> list[Any]:
            outs = evaluate(batched.graph, *batched.consts, *consts, *leaves)
            return [moved(x, a) for x, a in zip(outs, call.out_axes, strict=True)]

        graph = trace_to_graph(on_axis, call.avals, self.spec.name, "pmap")
        element = call.element
        return TracedCall(graph, element.in_tree, element.out_tree, element.names)

    def whole_entry(self, call: ElementCall, donated: list[int]) -> Any:
        """One program for all shares: collectives over the mapped axis are reductions and moves
        in memory that all devices share, and kernels use all cores."""
        traced = self.program(call)
        program = self.compile(traced, donated)
        return _native.Entry(
            program.executable, traced.out_tree, list(range(len(call.avals))), [], donated,
            device=self.targets(call.size)[0][0].id, placement=self.placement(call),
            ordered=graph_has_effect(traced.graph),
        )  # fmt: skip

    def staged_entry(self, call: ElementCall, parts: Cut, donated: list[int]) -> Any:
        """Local stages on their devices, one program for equal shares; whole ones in between."""
        targets, shares = self.targets(call.size)
        builder = StageBuilder(call, parts, self.mapping.axis_name, self.spec.name, self.compile)
        stages = [
            [builder.whole_part(stage)] if stage.whole else [
                builder.local_part(stage, device, share)
                for device, share in zip(targets, shares, strict=True)
            ]
            for stage in parts.stages
        ]  # fmt: skip
        with self.lock:
            self.stats.kernels = builder.kernels()
        return _native.Entry(
            None, call.element.out_tree, list(range(len(call.avals))), builder.constants, donated,
            None, placement=self.placement(call), stages=stages, buffers=builder.buffers,
            output_types=builder.results, ordered=graph_has_effect(call.element.graph),
        )  # fmt: skip

    def placement(self, call: ElementCall) -> SplitOverDevices | None:
        if any(axis != 0 for axis in call.out_axes):
            return None
        targets, shares = self.targets(call.size)
        return SplitOverDevices(tuple(targets), tuple(b - a for a, b in shares))

    def targets(self, size: int) -> tuple[list[Device], list[tuple[int, int]]]:
        """The devices to use and the share of each."""
        devices = list(self.mapping.devices or pick_devices(None))[:size]
        return devices, shares_of(size, len(devices))

    def axis_size(
        self, arguments: Any, axes: Any, avals: Sequence[Any]
    ) -> tuple[int, list[int | None]]:
        """(length of the mapped axis, mapped axis of each dynamic leaf); errors name arguments."""
        name = self.spec.name
        try:
            flat = (
                [axes] * len(tree_flatten(arguments.rest)[0])
                if axes is None or isinstance(axes, int)
                else broadcast_prefix(axes, arguments.rest, is_leaf=lambda x: x is None)
            )
        except ValueError as error:
            raise ValueError(f"pmap of {name}: in_axes does not fit the arguments: {error}") from None
        flat = flat + [0] * (len(avals) - len(flat))  # keyword arguments: axis 0
        names = leaf_names(self.spec.fun, arguments.rest, arguments.named)
        dims: list[int | None] = []
        lengths: dict[str, tuple[int, Any]] = {}
        for label, aval, axis in zip(names, avals, flat, strict=True):
            if axis is None:
                dims.append(None)
                continue
            if not -aval.ndim <= axis < aval.ndim:
                raise ValueError(
                    f"pmap of {name}: argument {label} of shape {aval.shape} has no axis {axis} to "
                    "map over. Give it a leading axis (x[None]), or in_axes=None to hand it whole to "
                    "every device."
                )
            d = axis % aval.ndim
            dims.append(d)
            lengths[label] = (aval.shape[d], aval.shape)
        found = {n for n, _ in lengths.values()}
        if self.mapping.axis_size is not None:
            found.add(self.mapping.axis_size)
        if len(found) > 1:
            listed = ", ".join(
                f"{label} of shape {shape} has length {n}" for label, (n, shape) in lengths.items()
            )
            wanted = f" and axis_size={self.mapping.axis_size}" if self.mapping.axis_size else ""
            raise ValueError(
                f"pmap of {name}: mapped axes differ in length: {listed}{wanted}. Make them equal, or "
                "use in_axes=None for arguments that every device gets whole."
            )
        if not found:
            raise ValueError(
                f"pmap of {name}: no argument is mapped; map at least one (in_axes) or give axis_size"
            )
        size = found.pop()
        if size == 0:
            raise ValueError(f"pmap of {name}: the mapped axis has length 0")
        return size, dims

    def check_output_axis(self, axis: Any, element: Any) -> None:
        if axis is None:
            return
        if not isinstance(axis, int):
            raise TypeError(
                f"pmap of {self.spec.name}: out_axes must hold integers or None, got {axis!r}"
            )
        rank = element.ndim + 1
        if not -rank <= axis < rank:
            raise ValueError(
                f"pmap of {self.spec.name}: out_axes puts the mapped axis of a result at {axis}, but "
                f"the result has rank {rank}: each element has shape {element.shape}"
            )

    def output_axes(self, out_tree: Any) -> list[Any]:
        out_axes = self.mapping.out_axes
        if out_axes is None or isinstance(out_axes, int):
            return [out_axes] * out_tree.num_leaves
        dummy = out_tree.unflatten([0] * out_tree.num_leaves)
        try:
            return broadcast_prefix(out_axes, dummy, is_leaf=lambda x: x is None)
        except ValueError as error:
            raise ValueError(
                f"pmap of {self.spec.name}: out_axes does not fit the result: {error}"
            ) from None


def _without(aval: Any, dim: int | None) -> Any:
    if dim is None:
        return aval
    shape = (*aval.shape[:dim], *aval.shape[dim + 1 :])
    return ArrayType(shape, aval.dtype_code, aval.weak_type)
