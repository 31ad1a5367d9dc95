"""Questions about arrays, and reading and writing files: no computation."""

from __future__ import annotations

from typing import Any

import numpy as np
from jato.base.dtypes import is_complex
from jato.core.array import ARRAYS, from_host, to_host
from jato.core.array import array_repr as _repr
from jato.core.array import array_str as _str
from jato.jit.eager import public
from jato.numpy.promote import as_array, dtype_of, normalize_axes, shape_of
from jato.ops import elementwise, structural


def shape(a: Any) -> tuple[int, ...]:
    """The sizes of the axes.

    >>> import jato.numpy as jnp
    >>> jnp.shape(jnp.zeros((2, 3)))
    (2, 3)
    """
    return _shape_of("shape", a)


def ndim(a: Any) -> int:
    """The number of axes.

    >>> import jato.numpy as jnp
    >>> jnp.ndim(jnp.zeros((2, 3)))
    2
    """
    return len(_shape_of("ndim", a))


def size(a: Any, axis: Any = None) -> int:
    """The number of elements, or the product of the sizes of some axes.

    >>> import jato.numpy as jnp
    >>> jnp.size(jnp.zeros((2, 3)), 0)
    2
    """
    sizes = _shape_of("size", a)
    total = 1
    for i in normalize_axes("size", axis, len(sizes)):
        total *= sizes[i]
    return total


def _shape_of(function: str, a: Any) -> tuple[int, ...]:
    """The shape of an array, or of what only has a shape (ShapeDtypeStruct)."""
    known = getattr(a, "shape", None)
    return known if type(known) is tuple else tuple(as_array(function, a).shape)


def isscalar(element: Any) -> bool:
    """Is it a number, or an array of rank 0?

    >>> import jato.numpy as jnp
    >>> jnp.isscalar(1.0), jnp.isscalar(jnp.zeros(1))
    (True, False)
    """
    if isinstance(element, (*ARRAYS, np.ndarray)) or hasattr(element, "__jax_array__"):
        return (
            np.ndim(element) == 0
            if isinstance(element, np.ndarray)
            else not shape_of(as_array("isscalar", element))
        )
    return bool(np.isscalar(element))


def iscomplexobj(x: Any) -> bool:
    """Is the dtype complex?

    >>> import jato.numpy as jnp
    >>> jnp.iscomplexobj(jnp.array([1j]))
    True
    """
    if x is None:
        return False
    return is_complex(dtype_of(as_array("iscomplexobj", x)))


def isrealobj(x: Any) -> bool:
    """Is the dtype not complex?

    >>> import jato.numpy as jnp
    >>> jnp.isrealobj(jnp.array([1.0]))
    True
    """
    return not iscomplexobj(x)


@public()
def iscomplex(x: Any) -> Any:
    """Is the imaginary part nonzero, elementwise?

    >>> import jato.numpy as jnp
    >>> jnp.iscomplex(jnp.array([1j, 1.0]))
    Array([ True, False], dtype=bool)
    """
    x = as_array("iscomplex", x)
    if not is_complex(dtype_of(x)):
        return structural.full(x.shape, False, np.dtype("bool"))
    imaginary = elementwise.imag(x)
    return elementwise.ne(imaginary, np.zeros((), dtype_of(imaginary))[()])


@public()
def isreal(x: Any) -> Any:
    """Is the imaginary part zero, elementwise?

    >>> import jato.numpy as jnp
    >>> jnp.isreal(jnp.array([1j, 1.0]))
    Array([False,  True], dtype=bool)
    """
    return elementwise.bitwise_not(iscomplex(x))


def array_repr(
    arr: Any,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The text of `repr(arr)`.

    >>> import jato.numpy as jnp
    >>> jnp.array_repr(jnp.array([1]))
    'Array([1], dtype=int32)'
    """
    options = max_line_width, precision, suppress_small
    if options == (None, None, None) and hasattr(arr, "aval"):
        return _repr(arr)
    return np.array_repr(to_host(arr), *options)


def array_str(
    a: Any,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The text of `str(a)`.

    >>> import jato.numpy as jnp
    >>> jnp.array_str(jnp.array([1]))
    '[1]'
    """
    options = max_line_width, precision, suppress_small
    if options == (None, None, None) and hasattr(a, "aval"):
        return _str(a)
    return np.array_str(to_host(a), *options)


def save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Writes an array to a file in NumPy's format (.npy)."""
    np.save(file, to_host(arr), allow_pickle=allow_pickle)


def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Writes several arrays to a file in NumPy's format (.npz)."""
    np.savez(
        file,
        *map(to_host, args),
        allow_pickle=allow_pickle,
        **{name: to_host(x) for name, x in kwds.items()},
    )


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Reads what `save` wrote; of an archive (`savez`) NumPy's mapping of names to arrays.

    bfloat16 arrays, which NumPy writes as raw bytes, come back as bfloat16.
    """
    found = np.load(file, *args, **kwargs)
    if isinstance(found, np.ndarray):
        if found.dtype.kind == "V" and found.dtype.itemsize == 2:
            found = found.view(_BFLOAT16)
        return from_host(found)
    return found


_BFLOAT16 = np.dtype("bfloat16")
