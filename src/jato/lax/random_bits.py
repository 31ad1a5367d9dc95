"""Random bits from an explicit state: rng_bit_generator."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from jato.base.errors import check, fail, require_unsharded
from jato.core.types import type_of
from jato.ops.convert import bitcast_convert_type
from jato.ops.elementwise import add, eq, select
from jato.ops.random_bits import random_bits, random_fold_in
from jato.ops.structural import concatenate, reshape, slice_in_dim

_WIDTHS = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}


class RandomAlgorithm(enum.IntEnum):
    """Generators for `rng_bit_generator`; the default is Threefry."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


def rng_bit_generator(
    key: Any, shape: Any, dtype: Any = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT, *, out_sharding: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """(the next state, bits) from a state: a key of two words and a counter of two words.

    key: uint32[4] or uint64[2]; shape, dtype: of the bits, an unsigned integer type.  Each state
    has bits of its own, those of the Threefry generator of `jato.random` for the key folded with the
    counter; they are not the bits of another system.
    Raises: TypeError for other keys and dtypes; NotImplementedError for RNG_PHILOX.

    >>> state = np.array([1, 2, 3, 4], np.uint32)
    >>> state, bits = rng_bit_generator(state, (3,))
    >>> state.tolist(), bits.shape
    ([1, 2, 4, 4], (3,))
    """
    what = "rng_bit_generator"
    require_unsharded(what, out_sharding)
    aval = type_of(key)
    wide = aval.dtype == np.uint64
    check(
        aval.dtype in (np.uint32, np.uint64) and aval.shape == ((2,) if wide else (4,)),
        TypeError,
        f"{what}: expected key to be uint32[4] or uint64[2], got {aval}",
    )
    name = np.dtype(dtype).name
    if name not in _WIDTHS:
        fail(TypeError, what, f"expected dtype to be an unsigned integer type, got {name}.")
    if RandomAlgorithm(algorithm) is RandomAlgorithm.RNG_PHILOX:
        fail(
            NotImplementedError, what, "argument 'algorithm': Philox is not implemented.",
            "Try RandomAlgorithm.RNG_THREE_FRY.",
        )  # fmt: skip
    words = reshape(bitcast_convert_type(key, np.uint32), (4,)) if wide else key
    low, high = (reshape(slice_in_dim(words, i, i + 1), ()) for i in (2, 3))
    folded = random_fold_in(random_fold_in(slice_in_dim(words, 0, 2), low), high)
    bits = random_bits(folded, _WIDTHS[name], shape)
    one = np.uint32(1)
    following = add(low, one)
    carried = select(eq(following, np.uint32(0)), add(high, one), high)
    tail = [reshape(x, (1,)) for x in (following, carried)]
    state = concatenate([slice_in_dim(words, 0, 2), *tail], 0)
    return bitcast_convert_type(reshape(state, (2, 2)), np.uint64) if wide else state, bits
