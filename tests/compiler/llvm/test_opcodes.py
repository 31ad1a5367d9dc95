"""Every machine opcode on every dtype: compiled code against the NumPy reference."""

import numpy as np
import pytest
from kernel_runner import call, check

from jato.compiler.llvm.link import compile_kernels
from jato.compiler.llvm.target import host
from jato.loopir.builder import Builder
from jato.loopir.grammar import SCALAR_DTYPES
from jato.loopir.reference import NUMPY_DTYPES
from jato.loopir.scalar_ops import SCALAR_OPS

_LETTERS = {"bool": "b", "f16": "f", "bf16": "f"}
_MACHINE = sorted(n for n, o in SCALAR_OPS.items() if o.kind == "machine")
_PLAIN = [n for n in _MACHINE if n not in ("convert", "bitcast", "select", "fma", "lookup")]
LANES = 16


def domain(op: str) -> list[str]:
    letters = SCALAR_OPS[op].domain
    return [d for d in SCALAR_DTYPES if _LETTERS.get(d, d[0]) in letters]


def samples(dtype: str, count: int, seed: int) -> np.ndarray:
    """Special values first, then random ones of all magnitudes."""
    rng = np.random.default_rng(seed)
    kind = NUMPY_DTYPES[dtype]
    if dtype == "bool":
        return rng.integers(0, 2, count).astype(bool)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        special = [0, 1, 2, 3, info.max, info.min, info.max - 1, info.min + 1, 7, info.bits]
        special += [-1, -2, info.bits - 1, info.bits + 1] if info.min else [info.bits - 1]
        raw = rng.integers(0, 256, (count, kind.itemsize), dtype=np.uint8).view(kind).ravel()
        small = rng.integers(0, 40, count).astype(kind)
        values = np.where(rng.random(count) < 0.5, raw, small).astype(kind)
    else:
        special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 1.5, 2.5, -2.5, 1e30, -1e30]
        special += [1e-40, 65504.0, 65520.0, 3.0e9, -3.0e9, 2.0**63, -(2.0**63), 2.0**31, 255.5]
        special += [
            1e-8,
            5.9604645e-08,
            1.00390625,
            1.01171875,
            1.0 + 2**-11,
            1.0 + 2**-11 + 2**-30,
        ]
        with np.errstate(all="ignore"):
            values = (rng.normal(size=count) * 10.0 ** rng.integers(-3, 6, count)).astype(kind)
    with np.errstate(all="ignore"):
        table = np.array(special, np.float64 if kind.kind not in "iu" else None).astype(kind)
    rng.shuffle(table)
    values[: min(len(table), count)] = table[:count]
    return values


def unary_kernel(name: str, source: str, target: str, apply: object, arity: int):
    b = Builder()
    inputs = [b.input(f"x{i}", source) for i in range(arity)]
    out = b.output("y", target)
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=LANES) as i:
        b.store(out, i, apply(b, *(b.load(x, i) for x in inputs)))  # type: ignore[operator]
    return b.kernel(name)


@pytest.mark.parametrize("op", _PLAIN)
def test_opcode(op):
    arity = SCALAR_OPS[op].arity
    for position, dtype in enumerate(domain(op)):
        result = "bool" if SCALAR_OPS[op].result == "bool" else dtype
        kernel = unary_kernel(op, dtype, result, lambda b, *v: b.op(op, *v), arity)
        count = 3 * LANES + 37
        arrays = [samples(dtype, count, 7 * position + k) for k in range(arity)]
        if op in ("max", "min", "maxnum", "minnum") and dtype not in ("bool",):
            # the sign of a zero result is not fixed when both zeros are compared
            arrays = [a + a.dtype.type(0) if a.dtype.kind not in "iu" else a for a in arrays]
        check(kernel, [*arrays, np.zeros(count, NUMPY_DTYPES[result])], end=count)


@pytest.mark.parametrize("source", SCALAR_DTYPES)
def test_convert(source):
    for target in SCALAR_DTYPES:
        kernel = unary_kernel(
            f"{source}_{target}", source, target, lambda b, x: b.convert(x, target), 1
        )
        x = samples(source, 85, 3)
        check(kernel, [x, np.zeros(85, NUMPY_DTYPES[target])], end=85)


def test_bitcast():
    pairs = "f32 i32, u32 f32, f64 i64, f16 u16, bf16 i16, i16 bf16, bool u8, i8 u8"
    for source, target in (pair.split() for pair in pairs.split(", ")):
        kernel = unary_kernel("bitcast", source, target, lambda b, x: b.bitcast(x, target), 1)
        x = samples(source, 37, 5)
        check(kernel, [x, np.zeros(37, NUMPY_DTYPES[target])], end=37)


@pytest.mark.skipif(not host().has_tables, reason="no lookups on this machine")
@pytest.mark.parametrize("lanes", [1, 4, 8, 16, 32, 64])
def test_lookup(lanes):
    rng = np.random.default_rng(lanes)
    table = tuple(rng.standard_normal(32).astype(np.float32).tolist())
    b = Builder()
    x, out = b.input("x", "u32"), b.output("y", "f32")
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=lanes) as i:
        b.store(out, i, b.lookup(b.load(x, i), table))
    for count in (0, 1, lanes - 1, lanes, 3 * lanes + 5):
        index = rng.integers(0, 1 << 32, count, dtype=np.uint32)
        want = np.array(table, np.float32)[index % 32]
        got = np.zeros(count, np.float32)
        call(compile_kernels([b.kernel("lookup")], host())[0], [index, got], (), 0, count)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", SCALAR_DTYPES)
def test_select(dtype):
    b = Builder()
    c, x, y = b.input("c", "bool"), b.input("x", dtype), b.input("y", dtype)
    out = b.output("z", dtype)
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=LANES) as i:
        b.store(out, i, b.select(b.load(c, i), b.load(x, i), b.load(y, i)))
    arrays = [samples("bool", 50, 1), samples(dtype, 50, 2), samples(dtype, 50, 3)]
    check(b.kernel("select"), [*arrays, np.zeros(50, NUMPY_DTYPES[dtype])], end=50)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_fma_rounds_once(dtype):
    kernel = unary_kernel("fma", dtype, dtype, lambda b, x, y, z: b.fma(x, y, z), 3)
    arrays = [samples(dtype, 85, k) for k in range(3)]
    check(kernel, [*arrays, np.zeros(85, NUMPY_DTYPES[dtype])], end=85)


@pytest.mark.parametrize("op", ["div", "rem"])
@pytest.mark.parametrize("dtype", ["i8", "u8", "i32", "u32", "i64", "u64"])
def test_division_by_constants(op, dtype):
    b = Builder()
    x, out = b.input("x", dtype), b.output("y", dtype)
    divisors = [0, 1, 2, 3, 7, 10, 100] + ([-1, -2, -7] if dtype[0] == "i" else [])
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=LANES) as i:
        for k, d in enumerate(divisors):
            value = b.op(op, b.load(x, i), b.const(d, dtype))
            b.store(out, b.add(b.mul(i, len(divisors)), k), value)
    arrays = [samples(dtype, 60, 1), np.zeros(60 * len(divisors), NUMPY_DTYPES[dtype])]
    check(b.kernel("constants"), arrays, end=60)


@pytest.mark.parametrize("op", ["shl", "shr_logical", "shr_arithmetic"])
def test_shift_by_constants(op):
    for dtype in ("i8", "u16", "i32", "u64"):
        b = Builder()
        x, out = b.input("x", dtype), b.output("y", dtype)
        amounts = [0, 1, 7, 8, 15, 31, 32, 63, 64]
        amounts = [a for a in amounts if a < 128]
        with b.for_("i", b.grid_begin(), b.grid_end(), lanes=LANES) as i:
            for k, amount in enumerate(amounts):
                value = b.op(op, b.load(x, i), b.const(amount, dtype))
                b.store(out, b.add(b.mul(i, len(amounts)), k), value)
        arrays = [samples(dtype, 40, 1), np.zeros(40 * len(amounts), NUMPY_DTYPES[dtype])]
        check(b.kernel("shifts"), arrays, end=40)


# functions whose reference here is rough, or whose domain is narrow: (low, high, tolerance factor)
_DOMAINS = {
    "log": (1e-3, 50), "log2": (1e-3, 50), "log10": (1e-3, 50), "log1p": (-0.9, 50),
    "asin": (-1, 1), "acos": (-1, 1), "atanh": (-0.99, 0.99), "acosh": (1, 50),
    "erfinv": (-0.99, 0.99), "rsqrt": (1e-3, 50), "pow": (1e-2, 5), "lgamma": (3, 30),
    "digamma": (3, 30),
}  # fmt: skip


@pytest.mark.parametrize("op", sorted(n for n, o in SCALAR_OPS.items() if o.kind == "math"))
def test_functions_as_emitted(op):
    """Accuracy has its own tests; here: whole expansions survive emission, in every lane count."""
    low, high = _DOMAINS.get(op, (-3.0, 3.0))
    arity = SCALAR_OPS[op].arity
    for dtype, rtol in (("f32", 2e-6), ("f64", 1e-13)):
        kernel = unary_kernel(op, dtype, dtype, lambda b, *v: b.op(op, *v), arity)
        rng = np.random.default_rng(0)
        arrays = [rng.uniform(low, high, 37).astype(NUMPY_DTYPES[dtype]) for _ in range(arity)]
        check(kernel, [*arrays, np.zeros(37, NUMPY_DTYPES[dtype])], end=37, rtol=rtol)
