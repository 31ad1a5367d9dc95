"""Samples of the elementwise family, made from what each entry says it takes."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from jato.core.primitive import Primitive
from jato.ops import arithmetic, complex_parts, rounding
from jato.ops.elementwise_family import Elementwise
from samples.sample import Sample

DTYPES = {
    "b": ["bool"],
    "i": ["int8", "int16", "int32", "int64"],
    "u": ["uint8", "uint16", "uint32", "uint64"],
    "f": ["float16", ml_dtypes.bfloat16, "float32", "float64"],
    "c": ["complex64", "complex128"],
}
# where a function is smooth and moderate; elsewhere (-3, 3)
DOMAINS = {
    "log": (0.1, 5), "log2": (0.1, 5), "log10": (0.1, 5), "sqrt": (0.1, 5), "rsqrt": (0.1, 5),
    "log1p": (-0.8, 3), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "atanh": (-0.9, 0.9),
    "acosh": (1.2, 4), "erf_inv": (-0.9, 0.9), "lgamma": (0.3, 5), "digamma": (0.3, 5),
    "trigamma": (0.3, 5), "cbrt": (0.2, 4), "tan": (-1, 1),
}  # fmt: skip
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1.5, 3.0, np.inf, -np.inf, np.nan, 1e-40, 1e30, -7.25]


def rng_for(name: str) -> np.random.Generator:
    return np.random.default_rng(sum(map(ord, name)))


def values(rng, dtype, shape, low=-3.0, high=3.0):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        near = rng.integers(-9 if dtype.kind == "i" else 0, 10, shape)
        ends = rng.choice(np.array([info.min, info.max, 0, 1], dtype), shape)
        return np.where(rng.random(shape) < 0.8, near.astype(dtype), ends)
    x = rng.uniform(low, high, shape)
    if dtype.kind == "c":
        x = x + 1j * rng.uniform(-1, 1, shape)
    return np.asarray(x, dtype)


def special(dtype, count):
    """All tuples of `count` special values, as one array per operand."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        line = np.array([0, 1, 2, 7, info.max, info.min, info.max - 1, info.min + 1], dtype)
    else:
        with np.errstate(all="ignore"):
            line = np.array(SPECIAL).astype(dtype)
    grid = np.meshgrid(*[line] * count, indexing="ij")
    return [g.ravel() for g in grid]


def shapes_for(arity):
    yield from ([(0,)] * arity, [(1,)] * arity, [(17,)] * arity, [()] * arity, [(2, 3)] * arity)
    if arity > 1:
        yield [(), *[(5,)] * (arity - 1)]
        yield [*[(2, 3)] * (arity - 1), ()]


def accuracy(p):
    if p.name in ("lgamma", "digamma"):
        return 1e4  # near their zeros only the error relative to their terms is bounded
    return 8.0 if p.cost > 5 else 2.0


def plain(p):
    rng = rng_for(p.name)
    low, high = DOMAINS.get(p.name, (-3, 3))
    found = []
    for kind in p.takes:
        for dtype in DTYPES.get(kind, ()):
            shapes = list(shapes_for(p.arity))
            if np.dtype(dtype) not in (np.dtype("float32"), np.dtype("float64"), np.dtype("int32")):
                shapes = [s for i, s in enumerate(shapes) if i in (0, 2, 5)]
            for shape in shapes:
                operands = tuple(values(rng, dtype, s, low, high) for s in shape)
                found.append(Sample(operands, smooth=kind in "fc", ulps=accuracy(p)))
            if kind in "iuf" and p.arity <= 2:
                operands = tuple(special(dtype, p.arity))
                found.append(
                    Sample(
                        operands, smooth=False, ulps=accuracy(p), batch=False, note="special",
                        signs=p.name not in ("max", "min"),
                    )
                )  # fmt: skip
    return found


def with_params(samples, *params):
    return [
        Sample(s.operands, p, s.smooth, s.ulps, s.batch, s.note, s.signs)
        for s in samples
        for p in params
    ]


def power():
    found = []
    rng = rng_for("pow")
    for dtype in ("float32", "float64", "bfloat16"):
        dtype = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
        for shapes in shapes_for(2):
            x, y = values(rng, dtype, shapes[0], 0.2, 3), values(rng, dtype, shapes[1])
            found.append(Sample((x, y), ulps=8))
        found.append(Sample(tuple(special(dtype, 2)), smooth=False, ulps=8, batch=False))
        found.append(Sample((values(rng, dtype, (9,)), rng.integers(-3, 4, 9).astype("int32"))))
    for dtype in ("int8", "int32", "int64", "uint8", "uint32"):
        found.append(Sample((values(rng, dtype, (9,)), values(rng, dtype, (9,)))))
        found.append(Sample(tuple(special(dtype, 2)), batch=False))
    for dtype in ("complex64", "complex128"):
        found.append(Sample((values(rng, dtype, (5,), 0.3, 2), values(rng, dtype, (5,))), ulps=64))
    return found


def choice():
    found = []
    rng = rng_for("select")
    for dtype in ("bool", "int8", "uint64", "float16", "float32", "float64", "complex128"):
        for which, case in (((), (3,)), ((3,), (3,)), ((3,), ()), ((), ()), ((2, 0), (2, 0))):
            x, y, z = (values(rng, dtype, case) for _ in range(3))
            found.append(Sample((values(rng, "bool", which), x, y)))
            positions = rng.integers(-1, 5, which).astype("int32")
            found.append(Sample((positions, x, y, z), batch=which == (3,)))
    found.append(Sample((np.array(True), np.ones(3), np.float64(2.0))))
    return found


def clamp():
    found = []
    rng = rng_for("clamp")
    for dtype in ("int32", "uint8", "float16", "float32", "float64"):
        for limit, shape in (((), (7,)), ((7,), (7,)), ((), ()), ((), (0,)), ((2, 3), (2, 3))):
            low = values(rng, dtype, limit, -1, 0)
            high = values(rng, dtype, limit, 0.5, 1)
            found.append(Sample((low, values(rng, dtype, shape), high)))
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0])
    found.append(Sample((np.float64(-1), x, np.float64(1)), smooth=False))
    return found


def conversions():
    found = []
    rng = rng_for("convert")
    names = [d for kind in DTYPES.values() for d in kind]
    for source in names:
        x = values(rng, source, (11,))
        if np.dtype(source).kind == "f" or source is ml_dtypes.bfloat16:
            with np.errstate(all="ignore"):
                edges = np.array([np.nan, np.inf, -np.inf, 300, -300, 7e4, -1, -0.0, 3e9, 1e19])
                x = np.concatenate([x, edges.astype(source)])
        for target in names:
            params = {"new_dtype": np.dtype(target), "weak_type": False}
            found.append(Sample((x,), params, smooth=False, batch=target == "float32"))
    for shape in ((), (0,), (2, 3)):
        x = values(rng, "float64", shape)
        found.append(Sample((x,), {"new_dtype": np.dtype("float64"), "weak_type": True}))
        found.append(Sample((x,), {"new_dtype": np.dtype("complex128"), "weak_type": False}))
    return found


def bitcasts():
    found = []
    rng = rng_for("bitcast")
    for source, target, shape in (
        ("float32", "int32", (5,)), ("int32", "float32", (5,)), ("float16", "uint16", (2, 2)),
        ("float64", "int64", ()), ("uint8", "int8", (0,)), ("float32", "uint8", (2, 3)),
        ("float64", "uint32", (3,)), ("uint8", "float32", (3, 4)), ("uint32", "float64", (2, 2)),
        ("uint16", "uint32", (2, 0, 2)), (ml_dtypes.bfloat16, "int16", (4,)), ("bool", "bool", (3,)),
    ):  # fmt: skip
        params = {"new_dtype": np.dtype(target)}
        operand = values(rng, source, shape)
        found.append(Sample((operand,), params, smooth=False, ulps=0, batch=bool(operand.ndim)))
    return found


def samples():
    found = {
        p.name: plain(p)
        for p in Primitive.registry.values()
        if isinstance(p, Elementwise) and p.arity in (1, 2) and type(p) is Elementwise
    }
    found["sign"] = plain(complex_parts.SIGN)
    found["complex"] = [s for s in plain(complex_parts.COMPLEX) if s.operands[0].dtype.itemsize > 2]
    found["nextafter"] = plain(rounding.NEXTAFTER)
    found["pow"] = power()
    found["select_n"] = choice()
    found["clamp"] = clamp()
    found["convert_element_type"] = conversions()
    found["bitcast_convert_type"] = bitcasts()
    found["round"] = with_params(found["round"], {"to_even": False}, {"to_even": True})
    formats = [
        {"exponent_bits": 5, "mantissa_bits": 10},
        {"exponent_bits": 8, "mantissa_bits": 3},
        {"exponent_bits": 11, "mantissa_bits": 52},
    ]
    found["reduce_precision"] = [
        Sample(s.operands, s.params, False, 0, s.batch, s.note)
        for s in with_params(found["reduce_precision"], *formats)
    ]
    powers = [{"y": y} for y in (0, 1, 2, 3, 5, 8)]
    whole = [
        Sample(s.operands, {}, s.smooth, 32, s.batch, s.note) for s in plain(arithmetic.INTEGER_POW)
    ]
    found["integer_pow"] = with_params(whole, *powers) + with_params(
        [s for s in whole if s.operands[0].dtype.kind in "fcV"], {"y": -1}, {"y": -3}
    )
    return found
