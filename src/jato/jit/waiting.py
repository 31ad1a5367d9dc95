"""Waiting for results.

Heavy programs run on their device's queue while Python goes on; results are arrays at once, and
whoever needs their numbers waits.  Errors of a queued program surface where its result is used.
"""

from __future__ import annotations

from typing import Any

from jato import _native
from jato.base.pytree import tree_leaves
from jato.ops.callback import raise_failure


def block_until_ready(x: Any) -> Any:
    """Waits until all arrays in the tree `x` are computed; returns `x`.

    Raises the error of the computation, if it failed.  Ctrl-C interrupts the wait and the
    computation.

    >>> import jato
    >>> import jato.numpy as jnp
    >>> jato.block_until_ready(jnp.ones(2) + 1)
    Array([2., 2.], dtype=float32)
    """
    _native.wait_for_tree(x, tree_leaves)
    return x


def effects_barrier() -> None:
    """Waits for everything that was queued on any device, prints and callbacks included.

    Raises the first error of a callback with effects that happened in the background since the last
    call.
    """
    _native.synchronize()
    raise_failure()
