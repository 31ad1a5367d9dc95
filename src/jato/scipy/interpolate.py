"""jato.scipy.interpolate: values on a rectangular grid, between its points."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import jato.numpy as jnp
import numpy as np
from jato.core.trace import Tracer
from jato.jit.eager import public
from jato.numpy.promote import as_array, promote_dtypes
from jato.scipy.special.arguments import named_operands

_METHODS = ("linear", "nearest")


def _cell(grid: Any, x: Any) -> tuple[Any, Any]:
    """(the cell of the grid that x is in, or the outermost one; its place there, 0 to 1 inside)."""
    n = grid.shape[0]
    cell = jnp.clip(jnp.searchsorted(grid, x, side="right") - 1, 0, max(0, n - 2))
    if n == 1:
        return cell, x - grid[0]
    low = grid[cell]
    return cell, (x - low) / (grid[cell + 1] - low)


@public(static=("method", "extrapolated"))
def _interpolated(
    points: tuple[Any, ...], values: Any, x: Any, fill_value: Any, method: str, extrapolated: bool
) -> Any:
    (x,) = named_operands("RegularGridInterpolator", xi=x)
    (values,) = promote_dtypes("RegularGridInterpolator", values, inexact=True)
    rank = len(points)
    cells = [_cell(grid, x[..., i]) for i, grid in enumerate(points)]
    more = (...,) + (None,) * (len(values.shape) - rank)
    if method == "nearest":
        place = tuple(
            jnp.where(share > 0.5, cell + 1, cell) if grid.shape[0] > 1 else cell
            for (cell, share), grid in zip(cells, points, strict=True)
        )
        found = values[place]
    else:
        found = jnp.zeros((), values.dtype)
        # an axis of one point has no neighbour
        sides = [(0, 1) if grid.shape[0] > 1 else (0,) for grid in points]
        for corner in itertools.product(*sides):
            weight = jnp.ones((), x.dtype)
            for side, (_, share), ends in zip(corner, cells, sides, strict=True):
                weight = weight * (1 if len(ends) == 1 else share if side else 1 - share)
            place = tuple(cell + side for side, (cell, _) in zip(corner, cells, strict=True))
            found = found + jnp.broadcast_to(weight, x.shape[:-1])[more] * values[place]
    if not extrapolated:
        outside = [(x[..., i] < grid[0]) | (x[..., i] > grid[-1]) for i, grid in enumerate(points)]
        found = jnp.where(jnp.any(jnp.stack(outside), 0)[more], fill_value, found)
    return jnp.where(jnp.any(jnp.isnan(x), -1)[more], math.nan, found)


class RegularGridInterpolator:
    """Values given on a rectangular grid, interpolated between its points.

    points: for each of d axes a rising vector of at least one coordinate; values: (n1, ..., nd, ...);
    method: "linear" or "nearest"; fill_value: outside of the grid, or None, which continues the
    outermost cells; bounds_error: must be False.  Calling it with xi (..., d), or d arrays that
    broadcast, and maybe another method gives floats of shape (..., trailing axes of the values).
    ValueError for other methods and shapes and for coordinates that do not rise, NotImplementedError
    for bounds_error.

    >>> import jato.numpy as jnp
    >>> line = RegularGridInterpolator((jnp.array([0.0, 2.0]),), jnp.array([1.0, 5.0]))
    >>> line(jnp.array([[0.5], [3.0]]))
    Array([ 2., nan], dtype=float32)
    """

    def __init__(
        self,
        points: Sequence[Any],
        values: Any,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: Any = math.nan,
    ) -> None:
        if bounds_error:
            raise NotImplementedError(
                "RegularGridInterpolator: argument 'bounds_error' must be False; compiled functions do "
                "not raise. Use fill_value."
            )
        self._check_method(method)
        self.method = method
        self.fill_value = fill_value
        self.values = jnp.asarray(as_array("RegularGridInterpolator", values, "values"))
        shape = self.values.shape
        if len(points) > len(shape):
            raise ValueError(
                f"RegularGridInterpolator: argument 'points' has {len(points)} axes, 'values' only "
                f"{len(shape)}"
            )
        self.grid = tuple(
            promote_dtypes("RegularGridInterpolator", jnp.asarray(p), inexact=True)[0]
            for p in points
        )
        for i, grid in enumerate(self.grid):
            if grid.ndim != 1 or grid.shape[0] != shape[i] or not shape[i]:
                raise ValueError(
                    f"RegularGridInterpolator: points[{i}] must be a vector of {shape[i]} coordinates, as axis "
                    f"{i} of 'values', got shape {grid.shape}"
                )
            if not isinstance(grid, Tracer) and not np.all(np.diff(np.asarray(grid)) > 0):
                raise ValueError(f"RegularGridInterpolator: points[{i}] must rise strictly")

    @staticmethod
    def _check_method(method: str) -> None:
        if method not in _METHODS:
            raise ValueError(
                f"RegularGridInterpolator: argument 'method' must be 'linear' or 'nearest', got {method!r}"
            )

    def __call__(self, xi: Any, method: str | None = None) -> Any:
        method = self.method if method is None else method
        self._check_method(method)
        if isinstance(xi, tuple):
            x = jnp.stack(jnp.broadcast_arrays(*xi), -1)
        else:
            x = jnp.asarray(xi)
        d = len(self.grid)
        if d == 1 and x.ndim <= 1:
            x = x[..., None]
        if not x.ndim or x.shape[-1] != d:
            raise ValueError(
                f"RegularGridInterpolator: the last axis of argument 'xi' must hold the {d} coordinates of a "
                f"point, got shape {x.shape}"
            )
        fill = math.nan if self.fill_value is None else self.fill_value
        return _interpolated(
            self.grid, self.values, x, fill, method=method, extrapolated=self.fill_value is None
        )
