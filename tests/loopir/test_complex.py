"""Complex functions: accuracy against NumPy in long double, special values against NumPy."""

import ctypes

import numpy as np
import pytest

from jato.compiler.llvm.link import compile_kernels
from jato.loopir.builder import Builder
from jato.loopir.complex import FUNCTIONS, Complex, complex_op
from jato.loopir.grammar import Expr

PARTS = {"c64": "f32", "c128": "f64"}
TYPES = {"c64": np.complex64, "c128": np.complex128}
BINARY = ("add", "sub", "mul", "div", "pow")
UNARY = [
    "neg", "abs", "sign", "conj", "square", "reciprocal", "exp", "exp2", "expm1", "log", "log1p",
    "log2", "log10", "sqrt", "rsqrt", "logistic", "sin", "cos", "tan", "sinh", "cosh", "tanh",
    "asin", "acos", "atan", "asinh", "acosh", "atanh",
]  # fmt: skip
COMPARISONS = ("eq", "ne", "lt", "le", "is_nan")
# Norm of the error over the norm of the result, in units of the format's epsilon.
LIMITS = {
    "log10": 3.0,
    "tanh": 3.0,
    "tan": 3.0,
    "expm1": 3.0,
    "pow": 60.0,
    "logistic": 8.0,
    "exp2": 4.0,
}

NUMPY = {
    "neg": np.negative, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "rsqrt": lambda z: 1 / np.sqrt(z),
    "logistic": lambda z: 1 / (1 + np.exp(-z)), "reciprocal": lambda z: 1 / z,
}  # fmt: skip


def numpy_function(opcode):
    return NUMPY.get(opcode) or getattr(np, opcode)


def compile_all(dtype):
    kernels = []
    for opcode in [*UNARY, *BINARY, *COMPARISONS]:
        b = Builder()
        part = PARTS[dtype]
        count = 1 if opcode in UNARY or opcode == "is_nan" else 2
        inputs = [b.input(f"x{i}", part) for i in range(2 * count)]
        re, im = b.output("re", part), b.output("im", part)
        with b.for_("i", b.grid_begin(), b.grid_end(), lanes=8) as i:
            v = [b.load(x, i) for x in inputs]
            result = complex_op(b, opcode, *[Complex(*v[2 * k : 2 * k + 2]) for k in range(count)])
            if isinstance(result, Expr):
                result = Complex(b.convert(result, part), b.const(0, part))
            b.store(re, i, result.re)
            b.store(im, i, result.im)
        kernels.append(b.kernel(opcode))
    return {code.name: code for code in compile_kernels(kernels)}


@pytest.fixture(scope="module", params=["c64", "c128"])
def functions(request):
    dtype = request.param
    codes = compile_all(dtype)
    kind = np.float32 if dtype == "c64" else np.float64

    def call(opcode, *args):
        parts = [np.ascontiguousarray(p, kind) for z in args for p in (z.real, z.imag)]
        out = [np.empty_like(parts[0]) for _ in range(2)]
        arrays = [*parts, *out]
        pointers = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
        cancel, params = ctypes.c_int32(0), (ctypes.c_int64 * 1)()
        scratch = np.zeros(codes[opcode].scratch_bytes + 64, np.uint8)
        arguments = (ctypes.c_void_p * 4)(
            ctypes.addressof(pointers),
            ctypes.addressof(params),
            (scratch.ctypes.data + 63) & ~63,
            ctypes.addressof(cancel),
        )
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        function(codes[opcode].address)(ctypes.addressof(arguments), 0, len(out[0]))
        return pair(*out, TYPES[dtype])

    return dtype, call


def pair(re, im, kind):
    z = np.empty(np.shape(re), kind)
    z.real, z.imag = re, im
    return z


def numbers(dtype, seed=0, count=4000):
    """Of ordinary size, of all sizes, on and near the unit circle."""
    rng = np.random.default_rng(seed)
    top = 30 if dtype == "c64" else 250
    angle = rng.uniform(-4, 4, count)
    re = [rng.standard_normal(count), rng.standard_normal(count) * 10, np.cos(angle)]
    im = [rng.standard_normal(count), rng.standard_normal(count) * 10, np.sin(angle)]
    re.append(10.0 ** rng.uniform(-top, top, count) * rng.choice([-1, 1], count))
    im.append(10.0 ** rng.uniform(-top, top, count) * rng.choice([-1, 1], count))
    re.append(1 + 1e-3 * rng.standard_normal(count))
    im.append(1e-3 * rng.standard_normal(count))
    return pair(np.concatenate(re), np.concatenate(im), TYPES[dtype])


def check(dtype, call, opcode, *args):
    with np.errstate(all="ignore"):
        want = numpy_reference(opcode)(*[z.astype(np.clongdouble) for z in args])
    got = call(opcode, *args).astype(np.clongdouble)
    info = np.finfo(TYPES[dtype])
    size = np.abs(want)
    with np.errstate(all="ignore"):
        usual = np.isfinite(size) & (size < info.max / 2) & (size > info.smallest_normal * 1000)
        error = np.where(usual, np.abs(got - want) / np.where(usual, size, 1) / info.eps, 0)
    worst = int(np.argmax(np.nan_to_num(error, nan=np.inf)))
    limit = LIMITS.get(opcode, 2.5) if dtype == "c128" else 2.5
    assert error[worst] <= limit, (opcode, [z[worst] for z in args], got[worst], want[worst])


def numpy_reference(opcode):
    if opcode == "expm1":  # NumPy's has no better one in long double
        return lambda z: (
            np.expm1(z.real) * np.cos(z.imag)
            - 2 * np.sin(z.imag / 2) ** 2
            + 1j * (np.exp(z.real) * np.sin(z.imag))
        )
    return numpy_function(opcode)


@pytest.mark.parametrize("opcode", UNARY)
def test_accuracy(functions, opcode):
    dtype, call = functions
    z = numbers(dtype)
    if opcode in ("exp2", "logistic"):
        z = z[(np.abs(z) < 5) & (np.abs(z) > 1e-3)]  # beyond, the angle's rounding decides
    if opcode in ("log", "log2", "log10", "log1p"):
        z = z[np.abs(np.abs(z) - 1) > 1e-3]  # long double's log cancels on the unit circle
        z = z[np.abs(z) > 1e-3] if opcode == "log1p" else z
        z = z[np.abs(np.abs(z + 1) - 1) > 1e-3] if opcode == "log1p" else z
    check(dtype, call, opcode, z)


@pytest.mark.parametrize("opcode", BINARY)
def test_accuracy_of_two(functions, opcode):
    dtype, call = functions
    x, y = numbers(dtype, 1), np.random.default_rng(3).permutation(numbers(dtype, 2))
    if opcode == "pow":
        x = x[(np.abs(x) > 1e-2) & (np.abs(x) < 1e2)]
        y = (
            numbers(dtype, 2)[: len(x)]
            if len(x) <= 4000
            else np.resize(numbers(dtype, 2)[:4000], len(x))
        )
    check(dtype, call, opcode, x, y)


def test_log_near_the_unit_circle(functions):
    """|z| - 1 keeps its own bits: compared in 60 digits."""
    import mpmath

    dtype, call = functions
    rng = np.random.default_rng(5)
    angle = rng.uniform(-3, 3, 200)
    z = pair(np.cos(angle), np.sin(angle), TYPES[dtype])
    got = call("log", z).real
    with mpmath.workdps(60):
        want = [float(mpmath.log(abs(mpmath.mpc(float(v.real), float(v.imag))))) for v in z]
    eps = np.finfo(TYPES[dtype]).eps
    assert (np.abs(got - want) <= 4 * eps * np.abs(want) + eps * 1e-17).all()


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, np.inf, -np.inf]


@pytest.mark.parametrize(
    "opcode",
    ["neg", "conj", "abs", "square", "reciprocal", "log", "log2", "sqrt", "rsqrt", "sinh", "cosh",
     "sin", "cos", "tan", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "exp"],
)  # fmt: skip
def test_special_values_are_numpys(functions, opcode):
    dtype, call = functions
    re, im = np.repeat(SPECIAL, len(SPECIAL)), np.tile(SPECIAL, len(SPECIAL))
    z = pair(re, im, TYPES[dtype])
    with np.errstate(all="ignore"):
        want = numpy_function(opcode)(z)
    got = call(opcode, z)
    if opcode == "abs":
        got = got.real
    for part in ("real", "imag"):
        g, w = getattr(got, part), getattr(want, part)
        with np.errstate(all="ignore"):
            close = np.abs(g - w) <= 1e-6 * np.abs(w) + 1e-7
        same = (np.isnan(g) & np.isnan(w)) | (g == w) | close
        # C99 leaves the sign of a zero open where the other part is NaN or the angle infinite.
        signed = np.isfinite(z) & (g == 0) & (w == 0)
        same &= ~signed | (np.signbit(g) == np.signbit(w))
        assert same.all(), (part, list(zip(z[~same], got[~same], want[~same], strict=True)))


def test_division_neither_overflows_nor_underflows(functions):
    dtype, call = functions
    big = np.finfo(TYPES[dtype]).max / 4
    z = pair([big, 1 / big], [big, 1 / big], TYPES[dtype])
    assert np.allclose(call("div", z, z), 1)
    one = np.ones_like(z)
    zero = np.zeros_like(z)
    assert np.isinf(call("div", one, zero).real).all()
    assert np.isnan(call("div", zero, zero)).all()


def test_product_with_the_conjugate_is_real():
    b = Builder()
    z = b.complex(b.var("x", "f32"), b.var("y", "f32"))
    product = b.mul(z, complex_op(b, "conj", z))
    # x * -y + y * x, term by term: exactly zero
    assert product.im.op in ("add", "sub")
    assert product.im.attr == "exact"


def test_products_are_those_of_numpy(functions):
    dtype, call = functions
    z = numbers(dtype)
    with np.errstate(all="ignore"):
        z = z[np.isfinite(z * z)]
        w = z[::-1].copy()
        expected = z * w
    found = call("mul", z, w)
    tolerance = 2 * np.finfo(found.real.dtype).eps * np.abs(z) * np.abs(w)
    assert (np.abs(found - expected) <= tolerance).all()


def test_sign(functions):
    dtype, call = functions
    z = np.array([0, 3 + 4j, -2, 5j, np.inf, complex(0, -np.inf)], TYPES[dtype])
    assert np.allclose(call("sign", z), [0, 0.6 + 0.8j, -1, 1j, 1, -1j])


def test_powers(functions):
    dtype, call = functions
    x = np.array([0, 0, 0, 2, 1j, -1, 3 + 4j], TYPES[dtype])
    y = np.array([0, 2, -1 + 1j, 10, 2, 0.5, 0], TYPES[dtype])
    got = call("pow", x, y)
    assert np.isnan(got[2])
    assert np.allclose(np.delete(got, 2), [1, 0, 1024, -1, 1j, 1], atol=1e-7)


def test_comparisons(functions):
    dtype, call = functions
    values = [0, 1, 1j, 1 + 1j, -1, complex(np.nan, 0), complex(0, np.nan)]
    x = np.repeat(np.array(values, TYPES[dtype]), len(values))
    y = np.tile(np.array(values, TYPES[dtype]), len(values))
    assert (call("eq", x, y).real == (x == y)).all()
    assert (call("ne", x, y).real == (x != y)).all()
    assert (call("is_nan", x).real == np.isnan(x)).all()
    real = ~(np.isnan(x) | np.isnan(y))
    x, y = x[real], y[real]
    assert (call("lt", x, y).real == (x < y)).all()
    assert (call("le", x, y).real == (x <= y)).all()


def test_unknown_opcode_names_the_ones_there_are():
    b = Builder()
    z = Complex(b.var("x", "f32"), b.var("y", "f32"))
    with pytest.raises(NotImplementedError, match=r"\[floor\] is not defined.*expected one of abs"):
        complex_op(b, "floor", z)


def test_every_function_is_tested():
    assert set(FUNCTIONS) == {*UNARY, *BINARY, *COMPARISONS, "max", "min", "real", "imag"}


def test_parts_and_extremes():
    b = Builder()
    z = Complex(b.var("x", "f32"), b.var("y", "f32"))
    w = Complex(b.const(1.0, "f32"), b.const(2.0, "f32"))
    assert complex_op(b, "real", z) is z.re
    assert complex_op(b, "imag", z) is z.im
    assert complex_op(b, "max", w, w).re is w.re
    assert z.dtype == "c64"
