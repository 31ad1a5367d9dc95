"""jato.scipy.ndimage: arrays at places between their elements."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jato.numpy as jnp
import numpy as np
from jato.base.dtypes import is_complex, is_floating
from jato.jit.eager import public
from jato.numpy.promote import as_array, dtype_of
from jato.scipy.special.arguments import named_operands


def _mirrored(i: Any, n: int) -> Any:
    """... 2 1 0 1 2 ... n-1 n-2 ..."""
    return jnp.abs((i + n - 1) % max(1, 2 * (n - 1)) - (n - 1)) if n > 1 else 0 * i


# mode -> the element that stands for place i beyond an axis of n elements
_PLACES: dict[str, Callable[[Any, int], Any]] = {
    "constant": lambda i, n: jnp.clip(i, 0, n - 1),
    "nearest": lambda i, n: jnp.clip(i, 0, n - 1),
    "wrap": lambda i, n: i % n,
    "mirror": _mirrored,
    # ... 1 0 0 1 ... n-1 n-1 n-2 ...: every second one of the mirrored halves
    "reflect": lambda i, n: _mirrored(2 * i + 1, 2 * n + 1) // 2,
}


def _neighbours(x: Any, order: int) -> list[tuple[Any, Any]]:
    """(place, weight) of the elements that a coordinate touches; a weight of None is 1."""
    if order == 0:
        return [(jnp.floor(x + 0.5).astype(int), None)]
    below = jnp.floor(x)
    share = x - below
    place = below.astype(int)
    return [(place, 1 - share), (place + 1, share)]


@public(static=("order", "mode"))
def _map_coordinates(
    array: Any, coordinates: tuple[Any, ...], order: int, mode: str, cval: Any
) -> Any:  # fmt: skip
    names = [f"coordinates[{i}]" for i in range(len(coordinates))]
    points = named_operands("map_coordinates", **dict(zip(names, coordinates, strict=True)))
    array, dtype = jnp.asarray(array), dtype_of(array)
    kind = jnp.result_type(array, points[0])
    shape = jnp.broadcast_shapes(*(p.shape for p in points))
    total = jnp.zeros(shape, kind)
    axes = [
        [(i, (i >= 0) & (i < n), _PLACES[mode](i, n), w) for i, w in _neighbours(p, order)]
        for p, n in zip(points, array.shape, strict=True)
    ]
    for corner in itertools.product(*axes):
        value = array[tuple(place for _, _, place, _ in corner)].astype(kind)
        if mode == "constant":
            for _, inside, _, _ in corner:
                value = jnp.where(inside, value, jnp.asarray(cval).astype(kind))
        for *_, weight in corner:
            value = value if weight is None else value * weight
        total = total + value
    if not (is_floating(dtype) or is_complex(dtype)):
        # halves away from 0, as SciPy rounds
        total = jnp.copysign(jnp.floor(jnp.abs(total) + 0.5), total)
    return total.astype(dtype)


def map_coordinates(
    input: Any, coordinates: Sequence[Any], order: int, mode: str = "constant", cval: Any = 0.0
) -> Any:
    """An array at coordinates between its elements, in its dtype (integers are rounded).

    coordinates: for each axis of the input an array of places along it; they broadcast, and give the
    result's shape.  order: 0, the nearest element, or 1, linear between neighbours.  mode: what is
    beyond an axis: "constant" (cval), "nearest", "wrap", "mirror" (the last element is the centre) or
    "reflect" (its edge is).  NotImplementedError for other orders and modes, ValueError unless there
    are as many coordinates as axes.

    >>> import jato.numpy as jnp
    >>> map_coordinates(jnp.array([1.0, 3.0]), [jnp.array([0.5, 1.5])], 1)
    Array([2. , 1.5], dtype=float32)
    """
    array = as_array("map_coordinates", input, "input")
    if isinstance(coordinates, (list, tuple)):
        points = tuple(coordinates)
    else:
        points = tuple(as_array("map_coordinates", coordinates, "coordinates"))
    if len(points) != len(array.shape):
        raise ValueError(
            f"map_coordinates: argument 'coordinates' must have one array for each of {len(array.shape)} "
            f"axes, got {len(points)}"
        )
    if order not in (0, 1):
        raise NotImplementedError(
            f"map_coordinates: argument 'order' must be 0 or 1, got {order!r}"
        )
    if mode not in _PLACES:
        raise NotImplementedError(
            f"map_coordinates: argument 'mode' must be one of {', '.join(map(repr, _PLACES))}, got {mode!r}"
        )
    if not points:
        return array
    if 0 in np.shape(array):
        raise ValueError(f"map_coordinates: argument 'input' is empty, of shape {array.shape}")
    return _map_coordinates(array, points, order=int(order), mode=mode, cval=cval)
