"""jato.typing: types for annotations of functions that take arrays.

`ArrayLike` is what array functions accept: arrays of jato and of NumPy, and Python's and NumPy's
numbers (no lists).  `DTypeLike` is what names an element type.

>>> import jato.numpy as jnp
>>> from jato.typing import ArrayLike
>>> def doubled(x: ArrayLike):
...     return jnp.asarray(x) * 2
>>> doubled(3.0)
Array(6., dtype=float32, weak_type=True)
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, Union

import numpy as np

from jato.core.array import Array

__all__ = ["ArrayLike", "DTypeLike"]


class SupportsDType(Protocol):
    """Something with a dtype."""

    @property
    def dtype(self) -> np.dtype[Any]: ...


ArrayLike: TypeAlias = Union[Array, np.ndarray, np.bool_, np.number, bool, int, float, complex]
DTypeLike: TypeAlias = Union[str, type[Any], np.dtype, SupportsDType]
