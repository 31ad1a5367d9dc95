"""pmap: vmap spread over devices.

The mapped axis, of any length N, is cut into contiguous shares, one per device (the first ones one
longer where N does not divide); each device runs the vmapped function on its share.  With N equal
to the number of devices this is JAX's pmap.  Memory is shared, so a share of an argument mapped
along axis 0 is a piece of it and no copy, and results are written piece by piece into one array
that the next pmap takes apart the same way.

Start at `pmap`; `PmapState.cold` compiles, one program per different share.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from jato import _native
from jato.base.config import config
from jato.base.pytree import broadcast_prefix, tree_flatten
from jato.base.signatures import leaf_names
from jato.core.placement import Device
from jato.core.types import ArrayType, type_of
from jato.jit.api import dress
from jato.jit.pipeline import JitState, split_arguments
from jato.jit.spec import JitSpec, make_spec
from jato.ops.structural import slice_in_dim, transpose
from jato.parallel.devices import pick_devices
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
      share of it.
    Raises:
      ValueError naming the arguments whose shapes do not fit.

    >>> import jato
    >>> import jato.numpy as jnp
    >>> jato.pmap(lambda x: x * 2)(jnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    """
    del backend, global_arg_shapes

    def decorate(f: Callable[..., Any]) -> Any:
        spec = make_spec(f, static_broadcasted_argnums or None, None, donate_argnums or None)
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
        size = self.axis_size(arguments, axes)[0]
        return self.mapped(arguments.function, axes, size)(*arguments.rest, **arguments.named)

    def cold(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], info: Any) -> Any:
        if config.jax_disable_jit:
            return self.traced(function, args, kwargs)
        arguments = split_arguments(self.spec, args, kwargs)
        leaves, in_tree = tree_flatten((arguments.rest, arguments.named))
        self.check_leaves(args, kwargs, arguments, leaves)
        axes = self.positional_axes(len(arguments.rest))
        size, dims = self.axis_size(arguments, axes)
        self.history.record(args, kwargs, arguments)
        targets = list(self.mapping.devices or pick_devices(None))[: max(1, size)]
        shares = shares_of(size, len(targets))
        avals = [type_of(x) for x in leaves]
        programs: dict[Any, Any] = {}
        parts = []
        out_tree = None
        share_outs: list[Any] = []
        for device, (start, stop) in zip(targets, shares, strict=True):
            moving = any(d not in (None, 0) for d in dims)
            key = (start, stop) if moving else stop - start
            if key not in programs:
                call = self.share_call(arguments, axes, dims, start, stop)
                in_avals = [
                    _with_length(a, stop - start) if d == 0 else a
                    for a, d in zip(avals, dims, strict=True)
                ]
                traced = self.trace(call, in_avals, in_tree)
                programs[key] = (traced, self.compile(traced))
            traced, program = programs[key]
            out_tree, share_outs = traced.out_tree, traced.graph.out_avals
            ins = [
                start * (a.nbytes // max(1, size)) if d == 0 else 0
                for a, d in zip(avals, dims, strict=True)
            ]
            outs = [start * (a.nbytes // max(1, stop - start)) for a in share_outs]
            parts.append((device.id, program.executable, ins, outs))
        whole = [ArrayType((size, *a.shape[1:]), a.dtype_code, a.weak_type) for a in share_outs]
        sizes = tuple(stop - start for start, stop in shares)
        entry = _native.Entry(
            None, out_tree, list(range(len(leaves))), [],
            self.donated_positions(args, kwargs, arguments, leaves), None,
            placement=SplitOverDevices(tuple(targets), sizes), shards=parts, output_types=whole,
        )  # fmt: skip
        axes_out = self.output_axes(out_tree)
        if all(a == 0 for a in axes_out):
            return entry
        # Results are made with the mapped axis in front; other places for it are a second step.
        flat = tree_flatten(entry.run(leaves))[0]
        return out_tree.unflatten(
            [_moved(x, a) for x, a in zip(flat, axes_out, strict=True)]
        )

    def share_call(
        self, arguments: Any, axes: Any, dims: list[int | None], start: int, stop: int
    ) -> Any:
        """The arguments with a function of one device's share, mapped axis of results in front."""
        m = self.mapping
        inner = vmap(
            arguments.function, in_axes=axes, out_axes=0, axis_name=m.axis_name,
            axis_size=stop - start,
        )  # fmt: skip

        def on_share(*args: Any, **kwargs: Any) -> Any:
            leaves, tree = tree_flatten((args, kwargs))
            cut = [
                x if d in (None, 0) else slice_in_dim(x, start, stop, axis=d)
                for x, d in zip(leaves, dims, strict=True)
            ]
            rest, named = tree.unflatten(cut)
            return inner(*rest, **named)

        on_share.__name__ = self.spec.name
        return type(arguments)(arguments.rest, arguments.named, arguments.static, on_share)

    def axis_size(self, arguments: Any, axes: Any) -> tuple[int, list[int | None]]:
        """(length of the mapped axis, mapped axis of each dynamic leaf); errors name arguments."""
        name = self.spec.name
        leaves, _ = tree_flatten((arguments.rest, arguments.named))
        try:
            flat = (
                [axes] * len(tree_flatten(arguments.rest)[0])
                if axes is None or isinstance(axes, int)
                else broadcast_prefix(axes, arguments.rest, is_leaf=lambda x: x is None)
            )
        except ValueError as error:
            raise ValueError(f"pmap of {name}: in_axes does not fit the arguments: {error}") from None
        flat = flat + [0] * (len(leaves) - len(flat))  # keyword arguments: axis 0
        names = leaf_names(self.spec.fun, arguments.rest, arguments.named)
        dims: list[int | None] = []
        lengths: dict[str, tuple[int, Any]] = {}
        for label, x, axis in zip(names, leaves, flat, strict=True):
            aval = type_of(x)
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


def _moved(x: Any, axis: Any) -> Any:
    """x with its axis 0 at `axis`; None: all elements along it are equal, one is wanted."""
    ndim = type_of(x).ndim
    if axis is None:
        return x[0]
    place = axis % ndim
    order = list(range(1, ndim))
    order.insert(place, 0)
    return x if place == 0 else transpose(x, order)
