"""The operators and methods of arrays and tracers, as two tables.

    OPERATORS   "add" -> function(x, y), ...: what + - * / and indexing call
    METHODS     attribute -> function or property: sum, reshape, T, at, ...

The package's `__init__` gives them to the native array, to tracers, and to the class `Array`
(`install`).  Operands are arrays, tracers or numbers; the array is the first of them or the second.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jato import _native
from jato.base import dtypes
from jato.base.errors import ConcretizationTypeError
from jato.core.array import Array, ArrayImpl, array_format, array_repr, array_str, require_concrete
from jato.core.placement import Device, Shard, SingleDevice
from jato.core.trace import Tracer, install_operators
from jato.jit.eager import public
from jato.numpy import (
    contractions,
    creation,
    cumulative,
    elementwise,
    grids,
    indexing,
    locating,
    logic,
    manipulation,
    rearrangement,
    reductions,
    rounding,
    searching,
    sorting,
    taking,
    updating,
)
from jato.numpy.promote import as_array
from jato.ops import convert

OPERATORS: dict[str, Any] = {
    "add": elementwise.add,
    "sub": elementwise.subtract,
    "mul": elementwise.multiply,
    "truediv": elementwise.true_divide,
    "floordiv": elementwise.floor_divide,
    "mod": elementwise.remainder,
    "divmod": elementwise.divmod,
    "pow": elementwise.power,
    "matmul": contractions.matmul,
    "and": logic.bitwise_and,
    "or": logic.bitwise_or,
    "xor": logic.bitwise_xor,
    "lshift": logic.left_shift,
    "rshift": logic.right_shift,
    "eq": logic.equal,
    "ne": logic.not_equal,
    "lt": logic.less,
    "le": logic.less_equal,
    "gt": logic.greater,
    "ge": logic.greater_equal,
    "neg": elementwise.negative,
    "pos": elementwise.positive,
    "abs": elementwise.absolute,
    "invert": logic.invert,
    "getitem": indexing.getitem,
}


def _sizes(shape: tuple[Any, ...]) -> Any:
    """reshape(2, 3) and reshape((2, 3)) alike."""
    return shape[0] if len(shape) == 1 else shape


def _reshape(self: Any, *args: Any, order: str = "C", **options: Any) -> Any:
    """The elements in a new shape; see `jato.numpy.reshape`."""
    if not args and "shape" in options:
        args = (options.pop("shape"),)
    return manipulation.reshape(self, _sizes(args), order)


def _transpose(self: Any, *axes: Any) -> Any:
    """The axes in another order; see `jato.numpy.transpose`."""
    order = _sizes(axes) if axes else None
    return manipulation.transpose(self, order)


def _astype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    """The elements converted to a dtype; see `jato.numpy.astype`."""
    return creation.astype(self, dtype, copy=copy, device=device)


def _flatten(self: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    """The elements in one axis."""
    return manipulation.ravel(self, order)


def _copy(self: Any) -> Any:
    """A copy."""
    return creation.copy(self)


def _clip(self: Any, min: Any = None, max: Any = None) -> Any:
    """The elements limited to [min, max]."""
    return elementwise.clip(self, min, max)


def _dot(self: Any, b: Any, **options: Any) -> Any:
    """The dot product; see `jato.numpy.dot`."""
    return contractions.dot(self, b, **options)


def _sort(self: Any, axis: int | None = -1, **options: Any) -> Any:
    """The elements in ascending order along an axis."""
    return sorting.sort(self, axis, **options)


@public(static=("dtype",))
def _bits_as(x: Any, dtype: Any) -> Any:
    return convert.bitcast_convert_type(as_array("view", x), dtype)


def _view(self: Any, dtype: Any = None, type: None = None) -> Any:
    """The same bits as elements of another dtype; the last axis grows or shrinks with its size."""
    if type is not None:
        raise NotImplementedError("view: argument 'type' is not supported, only 'dtype'")
    if dtype is None:
        return self
    target = dtypes.canonicalize(dtype)
    if target == self.dtype:
        return self
    if target == np.bool_ or self.dtype == np.bool_:
        raise TypeError("view: not possible from or to bool; use astype")
    old, new = self.dtype.itemsize, target.itemsize
    if old == new:
        return _bits_as(self, target)
    if not self.shape:
        raise ValueError("view: a 0-d array can only be viewed as a dtype of the same size")
    last = self.shape[-1]
    if old > new:
        return _bits_as(self, target).reshape((*self.shape[:-1], last * (old // new)))
    if last * old % new:
        raise ValueError(
            f"view: the last axis ({last} x {old} bytes) is not a multiple of {new} bytes"
        )
    parts = self.reshape((*self.shape[:-1], last * old // new, new // old))
    return _bits_as(parts, target)


def _round(self: Any, ndigits: int | None = None) -> Any:
    """round(x): the nearest integers, as integers; round(x, n): in x's dtype."""
    if ndigits is None and not dtypes.is_integer(self.dtype):
        return rounding.round(self).astype(dtypes.canonicalize(np.int64))
    return rounding.round(self, ndigits or 0)


def _to_device(self: Any, device: Any, *, stream: Any = None) -> Any:
    """The array on a device."""
    return creation.asarray(self, device=device)


def _tobytes(self: Any, order: str = "C") -> bytes:
    """The elements as bytes."""
    return require_concrete(self, "tobytes", "self", "Return the array instead.").tobytes(order)  # type: ignore[arg-type]


def _byteswap(self: Any) -> Any:
    """The elements with the order of their bytes reversed."""
    if self.dtype.itemsize == 1:
        return self
    octets = _bits_as(self, np.dtype(np.uint8))
    return _bits_as(rearrangement.flip(octets, -1), self.dtype)


def _placement_set(self: Any) -> frozenset[Device]:
    if isinstance(self, Tracer):
        raise ConcretizationTypeError(
            f"the devices of a traced value of type {self.aval} are not known. {self.origin()}"
        )
    placement = self.placement
    return frozenset({Device(0)}) if placement is None else placement.device_set


def _devices(self: Any) -> set[Device]:
    """The devices that hold the array."""
    return set(_placement_set(self))


def _device(self: Any) -> Any:
    """The device that holds the array, or its placement if there are several."""
    held = _placement_set(self)
    return next(iter(held)) if len(held) == 1 else self.placement


def _sharding(self: Any) -> Any:
    """How the array is spread over devices."""
    _placement_set(self)
    return SingleDevice(Device(0)) if self.placement is None else self.placement


def _shards(self: Any) -> list[Shard]:
    """What each device holds."""
    pieces = _sharding(self).pieces(self.shape)
    if len(pieces) == 1:
        return [Shard(*pieces[0], 0, self)]
    return [Shard(device, index, 0, self[index]) for device, index in pieces]


def _addressable_data(self: Any, index: int) -> Any:
    """What a device of this process holds.  IndexError for a number of no device."""
    return _shards(self)[index].data


def _platform(self: Any) -> str:
    """ "cpu"."""
    return "cpu"


def _flat(self: Any) -> Any:
    raise NotImplementedError("arrays do not have .flat; use arr.flatten()")


def _at(self: Any) -> Any:
    """`x.at[index]`: see `IndexUpdateRef`."""
    return updating.IndexUpdateHelper(self)


def _array_namespace(self: Any, /, *, api_version: str | None = None) -> Any:
    """The module with the functions for this array (array API standard)."""
    if _namespace and api_version in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        return _namespace[0]
    raise ValueError(
        f"__array_namespace__: version {api_version!r} of the array API is not supported"
    )


_namespace: list[Any] = []


METHODS: dict[str, Any] = {
    "addressable_data": _addressable_data,
    "addressable_shards": property(_shards),
    "all": reductions.all,
    "any": reductions.any,
    "argmax": reductions.argmax,
    "argmin": reductions.argmin,
    "argpartition": sorting.argpartition,
    "argsort": sorting.argsort,
    "astype": _astype,
    "at": property(_at),
    "byteswap": _byteswap,
    "choose": searching.choose,
    "clip": _clip,
    "clone": _copy,
    "compress": lambda self, condition, axis=None, **options: searching.compress(
        condition, self, axis, **options
    ),
    "conj": rounding.conjugate,
    "conjugate": rounding.conjugate,
    "copy": _copy,
    "committed": property(lambda self: getattr(self, "placement", None) is not None),
    "device": property(_device),
    "devices": _devices,
    "is_fully_addressable": property(lambda self: True),
    "is_fully_replicated": property(lambda self: len(_placement_set(self)) == 1),
    "on_device_size_in_bytes": lambda self: self.nbytes,
    "platform": _platform,
    "sharding": property(_sharding),
    "copy_to_host_async": lambda self: None,
    "cumprod": cumulative.cumprod,
    "cumsum": cumulative.cumsum,
    "diagonal": grids.diagonal,
    "dot": _dot,
    "flat": property(_flat),
    "flatten": _flatten,
    "global_shards": property(_shards),
    "imag": property(lambda self: rounding.imag(self)),
    "max": reductions.max,
    "mean": reductions.mean,
    "min": reductions.min,
    "mT": property(lambda self: manipulation.matrix_transpose(self)),
    "nonzero": searching.nonzero,
    "prod": reductions.prod,
    "ptp": reductions.ptp,
    "ravel": manipulation.ravel,
    "real": property(lambda self: rounding.real(self)),
    "repeat": rearrangement.repeat,
    "reshape": _reshape,
    "round": rounding.round,
    "searchsorted": locating.searchsorted,
    "sort": _sort,
    "squeeze": manipulation.squeeze,
    "std": reductions.std,
    "sum": reductions.sum,
    "swapaxes": manipulation.swapaxes,
    "T": property(lambda self: manipulation.transpose(self)),
    "take": taking.take,
    "to_device": _to_device,
    "tobytes": _tobytes,
    "trace": grids.trace,
    "transpose": _transpose,
    "var": reductions.var,
    "view": _view,
    "__array_namespace__": _array_namespace,
    "__round__": _round,
}


def install(namespace: Any) -> None:
    """Gives the tables to native arrays, tracers and `Array`; called once by the package."""
    _namespace[:] = [namespace]
    _native.set_array_operators(OPERATORS)
    printing = {"__repr__": array_repr, "__str__": array_str, "__format__": array_format}
    _native.set_array_methods({**METHODS, **printing})
    install_operators(OPERATORS, METHODS)
    for source in (ArrayImpl, Tracer):
        for name in dir(source):
            if not hasattr(Array, name):
                setattr(Array, name, getattr(source, name))
    for name, method in METHODS.items():
        setattr(Array, name, method)
