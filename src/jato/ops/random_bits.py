"""Random bits: the Threefry-2x32 counter generator (20 rounds), equal bit for bit to JAX's.

A key is two 32-bit words (k0, k1).  An array of keys has dtype `key`, physically one u64 per key:

    word = k0 << 32 | k1

Raw keys, uint32[..., 2] arrays with k0 first, are accepted by every function and then returned
by those that return keys; `random_wrap` and `random_unwrap` convert.

Everything is an elementwise function of (key, 64-bit counter), so it fuses into its consumer and
runs in parallel.  With (y0, y1) = threefry(key, hi(i), lo(i)), i the row-major position:

    random_bits   32 bits and less: low bits of y0 ^ y1; 64 bits: y0 << 32 | y1
    random_split  new key i = (y0, y1)
    fold_in       new key = threefry(key, 0, data)

Source: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11.  Start reading at
`threefry_words`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.base.errors import check
from jato.core.primitive import AxisData
from jato.core.types import Zero, array_type, tangent_type, type_of
from jato.ops.convert import convert_element_type
from jato.ops.families import TypeCached
from jato.ops.shapes import mapped_first, move_axis
from jato.ops.structural import broadcast_in_dim, concatenate, reshape, slice

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry_words(
    key: tuple[Any, Any],
    counter: tuple[Any, Any],
    add: Callable[[Any, Any], Any],
    xor: Callable[[Any, Any], Any],
    rotate: Callable[[Any, int], Any],
    constant: Callable[[int], Any],
) -> tuple[Any, Any]:
    """The 20 rounds over any representation of 32-bit words (loop IR, NumPy)."""
    schedule = (key[0], key[1], xor(xor(key[0], key[1]), constant(_PARITY)))
    x0 = add(counter[0], schedule[0])
    x1 = add(counter[1], schedule[1])
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            x0 = add(x0, x1)
            x1 = xor(x0, rotate(x1, distance))
        x0 = add(x0, schedule[(group + 1) % 3])
        x1 = add(add(x1, schedule[(group + 2) % 3]), constant(group + 1))
    return x0, x1


def _lower_threefry(b: Any, word: Any, hi: Any, lo: Any) -> tuple[Any, Any]:
    """Loop IR: key word (u64) and counter halves (u32) -> two u32."""
    k0 = b.convert(b.shr_logical(word, b.const(32, "u64")), "u32")
    k1 = b.convert(word, "u32")

    def rotate(x: Any, distance: int) -> Any:
        left = b.shl(x, b.const(distance, "u32"))
        return b.or_(left, b.shr_logical(x, b.const(32 - distance, "u32")))

    return threefry_words(
        (k0, k1), (hi, lo), b.add, b.xor, rotate, lambda value: b.const(value, "u32")
    )


def _numpy_threefry(words: Any, hi: Any, lo: Any) -> tuple[Any, Any]:
    words = np.asarray(words, np.uint64)
    k0 = (words >> np.uint64(32)).astype(np.uint32)
    k1 = words.astype(np.uint32)

    def rotate(x: Any, distance: int) -> Any:
        return (x << np.uint32(distance)) | (x >> np.uint32(32 - distance))

    with np.errstate(over="ignore"):
        y0, y1 = threefry_words(
            (k0, k1),
            (np.asarray(hi, np.uint32), np.asarray(lo, np.uint32)),
            np.add,
            np.bitwise_xor,
            rotate,
            np.uint32,
        )
    return np.asarray(y0), np.asarray(y1)


def _pack(b: Any, hi: Any, lo: Any) -> Any:
    return b.or_(b.shl(b.convert(hi, "u64"), b.const(32, "u64")), b.convert(lo, "u64"))


def _numpy_pack(hi: Any, lo: Any) -> Any:
    return hi.astype(np.uint64) << np.uint64(32) | lo.astype(np.uint64)


def _linear_index(b: Any, index: Sequence[Any], shape: Sequence[int]) -> Any:
    position = b.index(0)
    for i, size in zip(index, shape, strict=True):
        position = b.add(b.mul(position, b.index(size)), i)
    return position


class Random(TypeCached):
    """Functions of integers: no derivative."""

    fusable = True

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = self.bind(*primals, **params)
        return out, Zero(tangent_type(type_of(out)))


class Counter(Random):
    """Values at the positions of `shape`, for every key of an array: keys.shape + shape."""

    cost = 80.0  # twenty rounds of integer arithmetic

    def out_dtype(self, params: dict[str, Any]) -> Any:
        raise NotImplementedError

    def result_type(self, keys: Any, *, shape: tuple[int, ...], **params: Any) -> Any:
        check_key(self.name, keys)
        return array_type(keys.shape + shape, self.out_dtype(params))

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> Any:
        return self.bind(move_axis(operands[0], dims[0], 0), **params), 0

    def words(
        self, b: Any, inputs: Sequence[Any], index: tuple[Any, ...], shape: tuple[int, ...]
    ) -> Any:
        rank = len(index) - len(shape)
        position = _linear_index(b, index[rank:], shape)
        if math.prod(shape) <= 1 << 32:  # the usual case: one word less to compute
            hi = b.const(0, "u32")
        else:
            hi = b.convert(b.shr_logical(b.convert(position, "u64"), b.const(32, "u64")), "u32")
        return _lower_threefry(b, inputs[0](index[:rank]), hi, b.convert(position, "u32"))

    def numpy_words(self, keys: Any, shape: tuple[int, ...]) -> Any:
        keys = np.asarray(keys, np.uint64)
        position = np.arange(math.prod(shape), dtype=np.uint64).reshape(shape)
        return _numpy_threefry(
            keys.reshape(keys.shape + (1,) * len(shape)),
            (position >> np.uint64(32)).astype(np.uint32),
            position.astype(np.uint32),
        )


class RandomBits(Counter):
    """keys[k..] -> u8 | u16 | u32 | u64 [k.., *shape]"""

    def out_dtype(self, params: dict[str, Any]) -> Any:
        return np.dtype(f"uint{params['bit_width']}")

    def lower(
        self, b: Any, inputs: Sequence[Any], index: tuple[Any, ...], out: Any, *,
        bit_width: int, shape: tuple[int, ...],
    ) -> Any:  # fmt: skip
        y0, y1 = self.words(b, inputs, index, shape)
        if bit_width == 64:
            return _pack(b, y0, y1)
        return b.convert(b.xor(y0, y1), f"u{bit_width}")

    def reference(self, keys: Any, *, bit_width: int, shape: tuple[int, ...]) -> Any:
        y0, y1 = self.numpy_words(keys, shape)
        if bit_width == 64:
            return _numpy_pack(y0, y1)
        return (y0 ^ y1).astype(f"uint{bit_width}")


class RandomSplit(Counter):
    """keys[k..] -> keys[k.., *shape]"""

    def out_dtype(self, params: dict[str, Any]) -> Any:
        return dtypes.key

    def lower(
        self, b: Any, inputs: Sequence[Any], index: tuple[Any, ...], out: Any, *,
        shape: tuple[int, ...],
    ) -> Any:  # fmt: skip
        return _pack(b, *self.words(b, inputs, index, shape))

    def reference(self, keys: Any, *, shape: tuple[int, ...]) -> Any:
        return _numpy_pack(*self.numpy_words(keys, shape))


class Threefry(Random):
    """key, u32 counter halves -> key made of the two words.  Operands of one shape or scalar."""

    cost = 80.0

    def result_type(self, keys: Any, hi: Any, lo: Any) -> Any:
        check_key(self.name, keys)
        shapes = {a.shape for a in (keys, hi, lo) if a.shape}
        check(
            len(shapes) <= 1,
            TypeError,
            f"{self.name}: operands must have one shape, or be scalars; got "
            f"{keys.shape}, {hi.shape} and {lo.shape}.",
        )
        return array_type(shapes.pop() if shapes else (), dtypes.key)

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> Any:
        rank = max(type_of(x).ndim - (d is not None) for x, d in zip(operands, dims, strict=True))
        moved = []
        for x, d in zip(operands, dims, strict=True):
            if d is None and not type_of(x).shape:
                moved.append(x)  # a scalar stays one
                continue
            x = mapped_first(x, d, axis.size)
            if type_of(x).ndim - 1 < rank:  # a mapped scalar meets arrays
                x = _spread(x, operands, dims, rank)
            moved.append(x)
        return self.bind(*moved, **params), 0

    def lower(self, b: Any, inputs: Sequence[Any], index: tuple[Any, ...], out: Any) -> Any:
        word, hi, lo = (read(index if read.aval.shape else ()) for read in inputs)
        return _pack(b, *_lower_threefry(b, word, hi, lo))

    def reference(self, keys: Any, hi: Any, lo: Any) -> Any:
        return _numpy_pack(*_numpy_threefry(*np.broadcast_arrays(keys, hi, lo)))


def _spread(x: Any, operands: Sequence[Any], dims: Sequence[Any], rank: int) -> Any:
    """Broadcasts x[n] to [n, *shape], shape being that of the operands of full rank."""
    for y, d in zip(operands, dims, strict=True):
        shape = list(type_of(y).shape)
        if d is not None:
            del shape[d]
        if len(shape) == rank:
            break
    n = type_of(x).shape[0]
    return broadcast_in_dim(x, (n, *shape), (0,))


class RandomWrap(Random):
    """u32[.., 2] -> key[..]"""

    def result_type(self, raw: Any) -> Any:
        check(
            raw.dtype == np.uint32 and raw.ndim >= 1 and raw.shape[-1] == 2,
            TypeError,
            f"random_wrap: expected raw key data of dtype uint32 and shape (..., 2), got {raw}.",
        )
        return array_type(raw.shape[:-1], dtypes.key)

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> Any:
        return self.bind(move_axis(operands[0], dims[0], 0)), 0

    def lower(self, b: Any, inputs: Sequence[Any], index: tuple[Any, ...], out: Any) -> Any:
        return _pack(b, inputs[0]((*index, b.index(0))), inputs[0]((*index, b.index(1))))

    def simplify(self, node: Any, rewriter: Any) -> Any:
        # wrap(unwrap(x)) -> x
        source = rewriter.producer(node.inputs[0])
        if source is not None and source.primitive is RANDOM_UNWRAP:
            return [source.inputs[0]]
        return None

    def reference(self, raw: Any) -> Any:
        return _numpy_pack(raw[..., 0], raw[..., 1])


class RandomUnwrap(Random):
    """key[..] -> u32[.., 2]"""

    def result_type(self, keys: Any) -> Any:
        check_key(self.name, keys)
        return array_type((*keys.shape, 2), np.uint32)

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> Any:
        return self.bind(move_axis(operands[0], dims[0], 0)), 0

    def lower(self, b: Any, inputs: Sequence[Any], index: tuple[Any, ...], out: Any) -> Any:
        word = inputs[0](index[:-1])
        first = b.eq(index[-1], b.index(0))
        high = b.convert(b.shr_logical(word, b.const(32, "u64")), "u32")
        return b.select(first, high, b.convert(word, "u32"))

    def simplify(self, node: Any, rewriter: Any) -> Any:
        # unwrap(wrap(x)) -> x
        source = rewriter.producer(node.inputs[0])
        if source is not None and source.primitive is RANDOM_WRAP:
            return [source.inputs[0]]
        return None

    def reference(self, keys: Any) -> Any:
        keys = np.asarray(keys, np.uint64)
        return np.stack([(keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32)], -1)


RANDOM_BITS = RandomBits("random_bits")
RANDOM_SPLIT = RandomSplit("random_split")
THREEFRY2X32 = Threefry("threefry2x32")
RANDOM_WRAP = RandomWrap("random_wrap")
RANDOM_UNWRAP = RandomUnwrap("random_unwrap")


def is_key(aval: Any) -> bool:
    """Does this ArrayType hold random keys?"""
    return aval.dtype is dtypes.key


def check_key(function: str, aval: Any) -> None:
    check(
        is_key(aval),
        TypeError,
        f"{function}: argument 'key': expected an array of random keys (jato.random.key) or raw "
        f"uint32 keys of shape (..., 2) (jato.random.PRNGKey), got {aval}.",
    )


def _as_keys(key: Any) -> tuple[Any, bool]:
    """(array of keys, was it raw?)"""
    aval = type_of(key)
    if not is_key(aval) and aval.dtype == np.uint32 and aval.ndim >= 1 and aval.shape[-1] == 2:
        return RANDOM_WRAP.bind(key), True
    return key, False


def _shape(function: str, shape: Any) -> tuple[int, ...]:
    result = tuple(int(n) for n in shape) if not isinstance(shape, int) else (shape,)
    check(
        all(n >= 0 for n in result),
        ValueError,
        f"{function}: argument 'shape': expected sizes >= 0, got {result}.",
    )
    return result


def random_wrap(raw: Any) -> Any:
    """Key array from raw data: uint32[..., 2] -> key[...].

    >>> random_wrap(np.zeros((3, 2), np.uint32)).shape
    (3,)
    """
    return RANDOM_WRAP.bind(raw)


def random_unwrap(keys: Any) -> Any:
    """Raw data of a key array: key[...] -> uint32[..., 2].

    >>> random_unwrap(random_wrap(np.array([5, 6], np.uint32))).tolist()
    [5, 6]
    """
    return RANDOM_UNWRAP.bind(keys)


def random_bits(key: Any, bit_width: int, shape: Sequence[int]) -> Any:
    """Uniform random bits.

    Args: key: key[k...] or raw uint32[k..., 2]; bit_width: 8, 16, 32 or 64; shape: of the values
    made from each key.
    Returns: unsigned integers of that width and of shape k + shape.
    Raises: TypeError if `key` is no key; ValueError for other widths or negative sizes.

    >>> random_bits(np.array([0, 42], np.uint32), 32, (2,)).dtype
    dtype('uint32')
    """
    check(
        bit_width in (8, 16, 32, 64),
        ValueError,
        f"random_bits: argument 'bit_width': expected 8, 16, 32 or 64, got {bit_width}.",
    )
    keys, _ = _as_keys(key)
    return RANDOM_BITS.bind(keys, bit_width=bit_width, shape=_shape("random_bits", shape))


def random_split(key: Any, shape: Sequence[int] | int = (2,)) -> Any:
    """New keys from each key: key[k...] -> key[k..., *shape] (raw keys give raw keys).

    >>> random_split(np.array([0, 42], np.uint32), 3).shape
    (3, 2)
    """
    keys, raw = _as_keys(key)
    out = RANDOM_SPLIT.bind(keys, shape=_shape("random_split", shape))
    return RANDOM_UNWRAP.bind(out) if raw else out


def random_fold_in(key: Any, data: Any) -> Any:
    """A new key from a key and an integer (converted to uint32); raw keys give raw keys.

    >>> random_fold_in(np.array([0, 42], np.uint32), 7).shape
    (2,)
    """
    keys, raw = _as_keys(key)
    out = THREEFRY2X32.bind(keys, np.uint32(0), _as_word("random_fold_in", data))
    return RANDOM_UNWRAP.bind(out) if raw else out


def _as_word(function: str, data: Any) -> Any:
    if isinstance(data, (int, np.integer)) and not isinstance(data, bool):
        return np.uint32(int(data) & 0xFFFFFFFF)
    check(
        dtypes.is_integer(type_of(data).dtype),
        TypeError,
        f"{function}: argument 'data': expected an integer, got {type_of(data)}.",
    )
    return convert_element_type(data, np.dtype("uint32"))


def threefry2x32(k0: Any, k1: Any, x0: Any, x1: Any) -> list[Any]:
    """The raw generator on four uint32 arrays of one shape: [y0, y1].

    Raises: TypeError for other dtypes or unequal shapes.
    """
    avals = [type_of(x) for x in (k0, k1, x0, x1)]
    check(
        all(a.dtype == np.uint32 for a in avals) and len({a.shape for a in avals}) == 1,
        TypeError,
        f"threefry2x32: expected four uint32 arrays of one shape, got {avals}.",
    )
    shape = avals[0].shape
    raw = concatenate([reshape(k, (*shape, 1)) for k in (k0, k1)], len(shape))
    words = RANDOM_UNWRAP.bind(THREEFRY2X32.bind(RANDOM_WRAP.bind(raw), x0, x1))
    zeros = (0,) * len(shape)
    return [reshape(slice(words, (*zeros, i), (*shape, i + 1)), shape) for i in (0, 1)]
