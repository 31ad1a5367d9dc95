"""jato.scipy.cluster.vq: the nearest codes of a book."""

from __future__ import annotations

from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.scipy.special.arguments import named_operands


@public(static=("check_finite",))
def vq(obs: Any, code_book: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """The nearest code of each observation, by Euclidean distance: (places, distances).

    obs: (m, n); code_book: (k, n); vectors hold observations and codes that are numbers.  Results: (m,),
    integers and floats.  check_finite: no effect.  ValueError for shapes that do not fit.

    >>> import jato.numpy as jnp
    >>> vq(jnp.array([[1.0, 1.0]]), jnp.array([[0.0, 0.0], [1.0, 2.0]]))
    (Array([1], dtype=int32), Array([1.], dtype=float32))
    """
    obs, book = named_operands("vq", obs=obs, code_book=code_book)
    if len(obs.shape) != len(book.shape) or len(obs.shape) not in (1, 2):
        raise ValueError(
            "vq: arguments 'obs' and 'code_book' must both be vectors or matrices, got shapes "
            f"{obs.shape} and {book.shape}"
        )
    if len(obs.shape) == 1:
        obs, book = obs[:, None], book[:, None]
    if obs.shape[1] != book.shape[1] or not book.shape[0]:
        raise ValueError(
            "vq: argument 'code_book' must hold codes with as many elements as the observations, got "
            f"shapes {obs.shape} and {book.shape}"
        )
    squares = jnp.sum(jnp.square(obs[:, None, :] - book[None]), -1)
    nearest = jnp.argmin(squares, -1)
    return nearest, jnp.sqrt(jnp.min(squares, -1))
