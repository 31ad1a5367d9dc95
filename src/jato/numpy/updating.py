"""x.at[index].set(...) and its kin: arrays with some elements changed.

An update reads the window of the index, combines it with the new values (directly, or by a scatter
for index arrays), and puts the window back: the way of indexing.py, forth and back.  Updates out
of bounds are dropped unless `mode` says otherwise.

Start at `IndexUpdateRef`, then `write`.
"""

from __future__ import annotations

import builtins
import warnings
from typing import Any

import numpy as np
from jato.base import dtypes
from jato.base.errors import ShapeMismatchError, require_unsharded
from jato.control.fori_loop import fori_loop
from jato.core.trace import Tracer
from jato.jit.eager import public
from jato.numpy.creation import asarray
from jato.numpy.elementwise import power, true_divide
from jato.numpy.index_structure import (
    Index,
    gathered_shape,
    is_strided,
    is_window,
    parse,
    result_shape,
    static_rows,
)
from jato.numpy.indexing import (
    array_dimensions,
    gather_mode,
    in_bounds,
    index_vectors,
    modulo,
    read_elements,
    reversed_axes,
    static_cut,
    window_starts,
    without_points,
)
from jato.numpy.makers import select_where
from jato.numpy.promote import as_array, as_operand, broadcast, dtype_of, join_types
from jato.numpy.reductions import as_type, max
from jato.ops import convert, elementwise, indexing, structural


def _scatter(x: Any, y: Any, index: Index, arrays: tuple[Any, ...], operation: str, mode: str,
             unique: bool, ordered: bool) -> Any:  # fmt: skip
    """Updates `y`, of the gathered shape, into the window `x` (points dropped)."""
    shape, position = gathered_shape(index, arrays)
    if 0 in (x.shape[i] for i in range(len(x.shape))) or 0 in shape:
        return x
    vectors = index_vectors(index, arrays, True)
    windows, places = array_dimensions(index, len(vectors.shape) - 1, position)
    numbers = indexing.ScatterDimensionNumbers(
        update_window_dims=windows, inserted_window_dims=places, scatter_dims_to_operand_dims=places
    )
    function = {
        "set": indexing.scatter, "add": indexing.scatter_add, "mul": indexing.scatter_mul,
        "min": indexing.scatter_min, "max": indexing.scatter_max,
    }[operation]  # fmt: skip
    return function(
        x, vectors, y, numbers, indices_are_sorted=ordered, unique_indices=unique, mode=mode
    )


_COMBINE = {
    "set": lambda old, new: new,
    "add": elementwise.add,
    "mul": elementwise.mul,
    "min": elementwise.min,
    "max": elementwise.max,
}


def _write_back(x: Any, cut: Any, index: Index) -> Any:
    """`x` with its statically cut part replaced by `cut`."""
    if not is_strided(index):
        return cut
    rows = static_rows(index)
    if 0 in cut.shape:
        return x
    if builtins.all(stride == 1 for _, _, stride in rows):
        return indexing.dynamic_update_slice(
            x, cut, [np.int32(first) for first, _, _ in rows], allow_negative_indices=False
        )
    # spread the elements to their places, and choose by a mask that is spread in the same way
    config = []
    for (first, limit, stride), whole in zip(rows, x.shape, strict=True):
        config.append((first, whole - limit, stride - 1))
    spread = structural.pad(cut, np.zeros((), dtype_of(cut))[()], config)
    mask = structural.pad(
        structural.full(cut.shape, True, np.dtype("bool")), np.bool_(False), config
    )
    return elementwise.select_n(mask, x, spread)


def write(
    x: Any,
    y: Any,
    starts: tuple[Any, ...],
    arrays: tuple[Any, ...],
    index: Index,
    operation: str,
    mode: str = "fill",
    unique: bool = False,
    ordered: bool = False,
) -> Any:
    """`x` with the elements that an index selects combined with `y`."""
    wide = _computes_in(x, y, operation)
    if wide is not None:
        options = (index, operation, mode, unique, ordered)
        return as_type(write(as_type(x, wide), y, starts, arrays, *options), dtype_of(x))
    shape = x.shape
    y = _as_update(y, x, result_shape(index, arrays))
    if mode == "wrap":
        starts, arrays = modulo(index, starts, arrays)
        mode = "promise_in_bounds"
    if 0 in shape:
        return x
    whole = structural.reshape(x, index.shape) if shape != index.shape else x
    cut = static_cut(whole, index)
    where = window_starts(index, starts) if is_window(index) else []
    window = cut
    if where:
        window = indexing.dynamic_slice(cut, where, index.sizes, allow_negative_indices=False)
    backward = reversed_axes(index)
    if index.arrays:
        turned = structural.rev(window, backward) if backward else window
        target, _ = gathered_shape(index, arrays)
        updates = structural.reshape(y, target)
        flat = _scatter(
            without_points(turned, index), updates, index, arrays, operation, mode, unique, ordered
        )
        updated = structural.reshape(flat, window.shape)
        updated = structural.rev(updated, backward) if backward else updated
    else:
        y = structural.reshape(y, index.sizes) if y.shape != index.sizes else y
        y = structural.rev(y, backward) if backward else y
        updated = _COMBINE[operation](window, y)
    if where:
        inside = in_bounds(index, where) if mode == "fill" else None
        if inside is not None:
            # a window that is out of bounds is clamped: writing back what was there drops it
            updated = select_where(inside, updated, window)
        cut = indexing.dynamic_update_slice(cut, updated, where, allow_negative_indices=False)
    else:
        cut = updated
    result = _write_back(whole, cut, index)
    return structural.reshape(result, shape) if result.shape != shape else result


def _computes_in(x: Any, y: Any, operation: str) -> Any:
    """The wider dtype in which an update is computed that is not in x's; else None."""
    dtype = dtype_of(x)
    if operation == "set" or dtype is dtypes.key:
        return None
    joined = join_types(x, as_operand("scatter", y))[0]
    if joined == dtype:
        return None
    _warn_of_loss(dtype_of(y), dtype)
    return joined


def _warn_of_loss(given: Any, dtype: Any) -> None:
    warnings.warn(
        f"values of dtype {given} are written into an array of dtype {dtype}, which loses "
        "information. Convert one of them with astype.",
        FutureWarning,
        stacklevel=4,
    )


def _as_update(y: Any, x: Any, shape: tuple[int, ...]) -> Any:
    """The new values in x's dtype, broadcast to the indexed shape."""
    y = as_operand("scatter", y)
    dtype = dtype_of(x)
    if dtype is not dtypes.key and join_types(x, y)[0] != dtype:
        _warn_of_loss(dtype_of(y), dtype)
    value = as_array("scatter", y)
    if dtype_of(value) != dtype or (hasattr(value, "aval") and value.aval.weak_type):
        value = convert.convert_element_type(value, dtype)
    own = value.shape
    if len(own) > len(shape) or builtins.any(
        s not in (1, t) for s, t in zip(own[::-1], shape[::-1], strict=False)
    ):
        raise ShapeMismatchError(
            f"x.at[index]: values of shape {own} do not broadcast to the indexed shape {shape}"
        )
    return broadcast(value, shape)


_WRITE_STATIC = ("index", "operation", "mode", "unique", "ordered")


_write = public(static=_WRITE_STATIC)(write)


@public(static=("operation",))
def _write_masked(x: Any, mask: Any, y: Any, operation: str) -> Any:
    """x.at[mask].op(number), for a mask whose values need not be known."""
    extra = len(x.shape) - len(mask.shape)
    mask = (
        structural.broadcast_in_dim(mask, x.shape, tuple(range(len(mask.shape)))) if extra else mask
    )
    wide = _computes_in(x, y, operation)
    if wide is not None:
        return as_type(_write_masked(as_type(x, wide), mask, y, operation), dtype_of(x))
    y = _as_update(y, x, ())
    return select_where(mask, _COMBINE[operation](x, broadcast(y, x.shape)), x)


class IndexUpdateHelper:
    """`x.at`: index it to say which elements are meant.

    >>> import jato.numpy as jnp
    >>> jnp.zeros(3).at[1].set(5.0)
    Array([0., 5., 0.], dtype=float32)
    """

    __slots__ = ("array",)

    def __init__(self, array: Any):
        self.array = array

    def __getitem__(self, index: Any) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({self.array!r})"


class IndexUpdateRef:
    """`x.at[index]`: makes a new array with some elements changed, or reads them.

    Methods: set, add, subtract, multiply, divide, power, min, max, apply, get.  All take
    `indices_are_sorted`, `unique_indices` (promises) and `mode`: "drop" (default: updates out of
    bounds are left out), "clip", "wrap", "promise_in_bounds"; `get` clips by default and takes
    "fill" with `fill_value`.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any):
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        fill_value: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """The elements.  mode "fill": `fill_value` (nan by default) where out of bounds."""
        require_unsharded("x.at[index].get", out_sharding)
        structure, starts, arrays = parse(self.array.shape, self.index, keep_out_of_bounds=True)
        if mode is None:
            mode = "clip" if fill_value is None else "fill"
        if fill_value is not None:
            fill_value = np.asarray(fill_value).item()
        return read_elements(
            self.array, starts, arrays, structure, gather_mode(mode), fill_value,
            unique_indices, indices_are_sorted, wrap_negative_indices,
        )  # fmt: skip

    def _update(self, operation: str, values: Any, options: dict[str, Any]) -> Any:
        mode = options.pop("mode", None)
        ordered = options.pop("indices_are_sorted", False)
        unique = options.pop("unique_indices", False)
        require_unsharded(f"x.at[index].{operation}", options.pop("out_sharding", None))
        if not options.pop("wrap_negative_indices", True):
            raise NotImplementedError(
                f"x.at[index].{operation}: argument 'wrap_negative_indices': expected True; "
                "negative indices count from the end"
            )
        if options:
            raise TypeError(f"x.at[index].{operation}: unexpected arguments {sorted(options)}")
        if isinstance(values, (list, tuple)):
            values = asarray(values)
        if isinstance(values, str) or values is None:
            raise TypeError(
                f"x.at[index].{operation} requires an array or a number, got {type(values).__name__}. "
                "Convert it with jato.numpy.asarray."
            )
        if self._masks_by_value(values):
            return _write_masked(self.array, self.index, values, operation)
        structure, starts, arrays = parse(self.array.shape, self.index, keep_out_of_bounds=True)
        mode = "fill" if mode is None else gather_mode(mode)
        return _write(
            self.array, values, starts, arrays, structure, operation, mode, unique, ordered
        )

    def _masks_by_value(self, values: Any) -> bool:
        """Is the index one mask of the array's leading axes, and the value one number?"""
        index = self.index
        return (
            getattr(index, "dtype", None) == np.bool_
            and getattr(index, "ndim", 0) > 0
            and not getattr(values, "shape", ())
            and tuple(index.shape) == tuple(self.array.shape[: index.ndim])
        )

    def set(self, values: Any, **options: Any) -> Any:
        """The elements replaced by `values`."""
        return self._update("set", values, options)

    def add(self, values: Any, **options: Any) -> Any:
        """`values` added; an element indexed twice is added to twice."""
        return self._update("add", values, options)

    def subtract(self, values: Any, **options: Any) -> Any:
        """`values` subtracted."""
        return self._update("add", elementwise_negative(values), options)

    def multiply(self, values: Any, **options: Any) -> Any:
        """The elements multiplied by `values`."""
        return self._update("mul", values, options)

    mul = multiply
    sub = subtract

    def divide(self, values: Any, **options: Any) -> Any:
        """The elements divided by `values`."""
        x = self.array
        ones = structural_ones(x)
        scale = IndexUpdateRef(ones, self.index)._update("mul", values, options)
        return true_divide(x, scale)

    def power(self, values: Any, **options: Any) -> Any:
        """The elements raised to the power `values`."""
        scale = IndexUpdateRef(structural_ones(self.array), self.index)._update("mul", values, options)
        return power(self.array, scale)

    def min(self, values: Any, **options: Any) -> Any:
        """The smaller of element and value."""
        return self._update("min", values, options)

    def max(self, values: Any, **options: Any) -> Any:
        """The larger of element and value."""
        return self._update("max", values, options)

    def apply(self, func: Any, **options: Any) -> Any:
        """The elements replaced by `func` of them, as often as they are indexed."""
        most = 1 if options.get("unique_indices") else self._most_repeated()
        if most == 1:
            read_options = {k: v for k, v in options.items() if k != "mode"}
            return self._update("set", func(self.get(mode="clip", **read_options)), options)
        zeros = structural.full(self.array.shape, np.int32(0))
        counts = IndexUpdateRef(zeros, self.index)._update("add", 1, options)
        if most is None:
            most = max(counts, initial=0)
        return fori_loop(
            0, most, lambda i, x: select_where(elementwise.gt(counts, i), func(x), x), self.array
        )

    def _most_repeated(self) -> int | None:
        """How often an element is indexed at most; None if the index is not known."""
        structure, _, arrays = parse(self.array.shape, self.index, keep_out_of_bounds=True)
        if builtins.any(isinstance(a, Tracer) for a in arrays):
            return None
        if not arrays or 0 in result_shape(structure, arrays):
            return 1
        hosts = np.broadcast_arrays(*(np.asarray(a) for a in arrays))
        sizes = [structure.shape[axis] for axis in structure.arrays]
        places = [np.where(a < 0, a + n, a).ravel() for a, n in zip(hosts, sizes, strict=True)]
        return int(np.unique(np.stack(places), axis=1, return_counts=True)[1].max())


@public()
def elementwise_negative(x: Any) -> Any:
    return (
        elementwise.neg(as_array("subtract", x)) if not isinstance(x, (int, float, complex)) else -x
    )


@public()
def structural_ones(x: Any) -> Any:
    return structural.full(x.shape, 1, dtype_of(x))
