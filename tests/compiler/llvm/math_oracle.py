"""Measures the vector math against references that are independent of it and more precise.

    function = compiled("exp", "f32")         machine code for the opcode, as a NumPy function
    x = samples("f32", stride=4099)           bit patterns over the whole range, and denser regions
    ulp_error(function(x), reference("exp", "f32")(x), "f32")

References: for f32 NumPy and SciPy in float64; for f64 the C library in long double (64 bits of
significand on x86, 113 elsewhere), or mpmath where it has no such function.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import scipy.special
from kernel_runner import call

from jato.compiler.llvm.link import compile_kernels
from jato.compiler.llvm.math import FORMULAS
from jato.compiler.llvm.target import Target, host
from jato.loopir.builder import Builder

TYPES = {"f32": np.float32, "f64": np.float64}
LANES = {"f32": 16, "f64": 8}
ARITY = {"atan2": 2, "hypot": 2, "nextafter": 2, "pow": 2}
OPCODES = sorted(FORMULAS)
# Errors allowed in ULP where it is not 2.  lgamma and digamma: where x > 0.
LIMITS = {"pow": 4.0, "erfinv": 4.0, "lgamma": 3.0, "digamma": 3.0, "nextafter": 0.0}

_COMPILED: dict[tuple[str, ...], Any] = {}


def kernel(opcode: str, dtype: str) -> Any:
    b = Builder()
    inputs = [b.input(f"x{i}", dtype) for i in range(ARITY.get(opcode, 1))]
    out = b.output("y", dtype)
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=LANES[dtype]) as i:
        b.store(out, i, b.op(opcode, *[b.load(x, i) for x in inputs]))
    return b.kernel(opcode)


def compile_all(pairs: Sequence[tuple[str, str]], target: Target | None = None) -> None:
    """Machine code for (opcode, dtype) pairs, in one module."""
    target = target or host()
    missing = [p for p in pairs if (*p, target.key) not in _COMPILED]
    if missing:
        codes = compile_kernels([kernel(*pair) for pair in missing], target)
        _COMPILED.update(
            ((*p, target.key), c) for p, c in zip(missing, codes, strict=True)
        )


def compiled(
    opcode: str, dtype: str, target: Target | None = None
) -> Callable[..., np.ndarray]:
    compile_all([(opcode, dtype)], target)
    code = _COMPILED[opcode, dtype, (target or host()).key]

    def function(*args: Any) -> np.ndarray:
        arrays = [
            np.ascontiguousarray(a, TYPES[dtype]) for a in np.broadcast_arrays(*args)
        ]
        out = np.empty_like(arrays[0])
        call(code, [*arrays, out], (), 0, out.size)
        return out

    return function


def prepared(
    opcode: str, dtype: str, args: Sequence[np.ndarray], size: int | None = None
) -> Callable[[], None]:
    """One call of the machine code, for timing: no allocation, no conversion."""
    compile_all([(opcode, dtype)])
    out = np.empty_like(args[0])
    code = _COMPILED[opcode, dtype, host().key]
    arrays = [*args, out]
    pointers = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
    zeros = (ctypes.c_int64 * 1)()
    scratch = np.zeros(code.scratch_bytes + 64, np.uint8)
    arguments = (ctypes.c_void_p * 4)(
        ctypes.addressof(pointers),
        ctypes.addressof(zeros),
        (scratch.ctypes.data + 63) & ~63,
        ctypes.addressof(zeros),
    )
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
        code.address
    )
    end = out.size if size is None else size

    def run() -> None:
        function(ctypes.addressof(arguments), 0, end)
        _ = arrays, pointers, scratch  # what the addresses point to

    return run


# ---- samples


def special_values(dtype: str) -> np.ndarray:
    info = np.finfo(TYPES[dtype])
    positive = [
        0.0, np.inf, np.nan, info.max, info.smallest_normal, info.smallest_subnormal, info.eps,
        0.5, 1.0, 1.5, 2.0, 3.0, 10.0, 100.0, 1000.0,
    ]  # fmt: skip
    return np.array([*positive, *[-v for v in positive]], TYPES[dtype])


def samples(
    dtype: str, stride: int = 16411, count: int = 60000, seed: int = 0
) -> np.ndarray:
    """Every `stride`-th float (or as many random bit patterns), and numbers of ordinary size."""
    rng = np.random.default_rng(seed)
    kind = TYPES[dtype]
    if dtype == "f32":
        first = int(rng.integers(stride))
        patterns = (
            np.arange(first, 2**32, stride, np.uint64)
            .astype(np.uint32)
            .view(np.float32)
        )
    else:
        patterns = rng.integers(0, 2**64, 2**32 // stride, np.uint64).view(np.float64)
    near = 10.0 ** rng.uniform(-8, -1, count) * rng.choice([-1, 1], count)
    groups = [rng.standard_normal(count) * scale for scale in (0.01, 1, 10, 100, 1000)]
    groups += [
        rng.uniform(-1, 1, count),
        rng.uniform(0, 4, count),
        1 + near,
        -1 + near,
        0.5 + near,
    ]
    ordinary = np.concatenate(groups).astype(kind)
    return np.concatenate([special_values(dtype), patterns, ordinary])


def pairs(
    dtype: str, count: int = 60000, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of special values, random bit patterns, ordinary numbers, bases with small integers."""
    rng = np.random.default_rng(seed)
    kind = TYPES[dtype]
    special = special_values(dtype)
    word = np.uint32 if dtype == "f32" else np.uint64
    bits = [
        rng.integers(0, np.iinfo(word).max, count, word).view(kind) for _ in range(2)
    ]
    normal = [rng.standard_normal(count) for _ in range(2)]
    scaled = 10.0 ** rng.uniform(-30, 30, count)
    integers = rng.integers(-9, 10, count)
    x = [
        np.repeat(special, len(special)),
        bits[0],
        normal[0],
        scaled,
        normal[1],
        rng.uniform(0, 9, count),
    ]
    y = [
        np.tile(special, len(special)),
        bits[1],
        normal[1],
        normal[0],
        integers,
        integers / 2,
    ]
    with np.errstate(all="ignore"):
        return np.concatenate(x).astype(kind), np.concatenate(y).astype(kind)


def powers(
    dtype: str, count: int = 60000, seed: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Bases and exponents whose power fills the range: where an error of the logarithm shows."""
    rng = np.random.default_rng(seed)
    kind = TYPES[dtype]
    wide = 80 if dtype == "f32" else 700
    exponent = rng.uniform(-1.17, 1.11, 2 * count) * wide * 1.01
    base = np.concatenate(
        [
            np.exp(rng.uniform(-wide, wide, count)),
            1 + 10.0 ** rng.uniform(-6, -1, count) * rng.choice([-1, 1], count),
        ]
    ).astype(kind)
    return base, (exponent / np.log(base.astype(np.float64))).astype(kind)


# ---- references


def _logistic(x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x)))


_NUMPY: dict[str, Callable[..., Any]] = {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "atan2": np.arctan2, "pow": np.power,
    "logistic": _logistic, "rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip
_SCIPY = {
    "erf": scipy.special.erf, "erfc": scipy.special.erfc, "erfinv": scipy.special.erfinv,
    "lgamma": scipy.special.gammaln, "digamma": scipy.special.digamma,
}  # fmt: skip
_MPMATH: dict[str, Callable[[Any], Any]] = {
    "erf": mpmath.erf, "erfc": mpmath.erfc, "lgamma": lambda x: mpmath.re(mpmath.loggamma(x)),
    "digamma": lambda x: mpmath.psi(0, x), "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan,
    "erfinv": mpmath.erfinv,
}  # fmt: skip


def exact(opcode: str) -> Callable[[np.ndarray], np.ndarray]:
    """The reference by mpmath, for finite x (a few thousand points a second)."""
    function = _MPMATH[opcode]

    def evaluate(x: np.ndarray) -> np.ndarray:
        with mpmath.workprec(1200 if opcode in ("sin", "cos", "tan") else 150):
            values = [mpmath.nstr(function(mpmath.mpf(float(v))), 25) for v in x]
        return np.array([np.longdouble(v) for v in values])

    return evaluate


def reference(opcode: str, dtype: str) -> Callable[..., np.ndarray]:
    """The reference function; f64 has one only where the C library has it in long double."""
    if dtype == "f32" and opcode in _SCIPY:
        return lambda x: _SCIPY[opcode](x.astype(np.float64))
    if opcode == "nextafter":
        return np.nextafter
    function = _NUMPY[opcode] if opcode in _NUMPY else getattr(np, opcode)
    # hypot, atan2 and pow of f32 need more than float64 to be better than what they judge.
    wide = np.float64 if dtype == "f32" and opcode not in ARITY else np.longdouble
    return lambda *args: function(*[a.astype(wide) for a in args])


# ---- errors


def ulp_error(got: np.ndarray, want: np.ndarray, dtype: str) -> np.ndarray:
    """|got - want| in units of the last place of want; infinite where one is NaN or infinite and
    the other is not, and where two zeros differ in sign.
    """
    kind = TYPES[dtype]
    info = np.finfo(kind)
    want = want.astype(np.longdouble)
    with np.errstate(all="ignore"):
        rounded = want.astype(kind)
        regular = np.isfinite(rounded) & np.isfinite(got)
        size = np.where(regular, np.maximum(np.abs(want), info.smallest_normal), 1)
        unit = np.ldexp(
            np.longdouble(1), (np.frexp(size)[1] - 1 - info.nmant).astype(np.int64)
        )
        error = np.abs(got.astype(np.longdouble) - want) / unit
        same = (np.isnan(rounded) & np.isnan(got)) | (rounded == got)
        zero_sign = (
            (rounded == 0) & (got == 0) & (np.signbit(rounded) != np.signbit(got))
        )
    error = np.where(regular, error, np.where(same, 0, np.inf))
    return np.where(zero_sign, np.inf, error).astype(np.float64)


def worst(
    error: np.ndarray, got: np.ndarray, want: np.ndarray, *args: np.ndarray
) -> str:
    i = int(np.argmax(error))
    given = ", ".join(repr(a[i]) for a in args)
    return f"{error[i]:.3f} ULP at {given}: got {got[i]!r}, expected {want[i]!r}"
