"""jato.dlpack: arrays from other libraries without a copy, as in jax.dlpack."""

from __future__ import annotations

from typing import Any

from jato.base import dtypes
from jato.numpy import from_dlpack as from_dlpack

__all__ = ["from_dlpack", "is_supported_dtype"]


def is_supported_dtype(dtype: Any) -> bool:
    """Can arrays of this dtype be handed over through DLPack?

    >>> import jato.dlpack
    >>> jato.dlpack.is_supported_dtype("float32"), jato.dlpack.is_supported_dtype("float0")
    (True, False)
    """
    if dtype in ("float0", dtypes.float0):
        return False
    try:
        dtypes.as_dtype(dtype)
    except TypeError:
        return False
    return True
