"""Vector math: errors in ULP against independent references, exact and special values."""

import numpy as np
import pytest
from kernel_runner import TARGETS, call
from math_oracle import (
    ARITY,
    LIMITS,
    OPCODES,
    TYPES,
    compile_all,
    compiled,
    exact,
    pairs,
    powers,
    reference,
    samples,
    special_values,
    ulp_error,
    worst,
)

from jato.compiler.llvm.link import compile_kernels
from jato.compiler.llvm.math import BY_TABLE, FORMULAS, compute, expand
from jato.compiler.llvm.target import host
from jato.loopir.builder import Builder
from jato.loopir.scalar_ops import SCALAR_OPS

BOTH = ["f32", "f64"]
# In f64 the C library has no long double version of these.
NO_LONG_DOUBLE = ("erf", "erfc", "erfinv", "lgamma", "digamma")


@pytest.fixture(scope="module", autouse=True)
def everything_compiled():
    compile_all([(opcode, dtype) for opcode in OPCODES for dtype in BOTH])


def check(opcode, dtype, *args, want=None, target=None):
    if want is None:
        with np.errstate(all="ignore"):
            want = reference(opcode, dtype)(*args)
    got = compiled(opcode, dtype, target)(*args)
    error = ulp_error(got, want, dtype)
    assert error.max() <= LIMITS.get(opcode, 2.0), f"{opcode} {dtype}: " + worst(
        error, got, want, *args
    )


def test_every_math_opcode_has_a_formula():
    assert set(FORMULAS) == {n for n, op in SCALAR_OPS.items() if op.kind == "math"}


@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize("opcode", sorted(FORMULAS))
@pytest.mark.parametrize("tables", [False, True])
def test_expansions_are_machine_opcodes(opcode, dtype, tables):
    b = Builder()
    args = [b.var(f"x{i}", dtype) for i in range(ARITY.get(opcode, 1))]
    root = expand(b, opcode, args, dtype, tables)
    assert root is compute(b, opcode, args, tables)  # what is replayed is what is computed
    pending, seen = [root], set()
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending.extend(node.args)
            if node.op not in ("const", "var", "if_any"):
                assert SCALAR_OPS[node.op].kind == "machine", node.op
    assert len(seen) < 400


@pytest.mark.parametrize("dtype", BOTH)
def test_results_do_not_depend_on_the_vector_width(dtype):
    """256-bit vectors without masks give the bits that the widest vectors give, but for formulas
    by tables, which they do not use."""
    narrow = TARGETS[-1]
    compile_all([(opcode, dtype) for opcode in OPCODES], narrow)
    for opcode in OPCODES:
        if (opcode, dtype) in BY_TABLE:
            continue
        args = (
            pairs(dtype, 2000) if opcode in ARITY else (samples(dtype, 1 << 20, 1000),)
        )
        got, want = (
            compiled(opcode, dtype, narrow)(*args),
            compiled(opcode, dtype)(*args),
        )
        same = (got == want) & (np.signbit(got) == np.signbit(want))
        assert (same | (np.isnan(got) & np.isnan(want))).all(), opcode


@pytest.mark.skipif(not host().has_tables, reason="no lookups on this machine")
@pytest.mark.parametrize(("opcode", "dtype"), sorted(BY_TABLE))
def test_tables_give_the_same_bits_in_every_vector(opcode, dtype):
    x = np.concatenate([samples(dtype, 1 << 16, 1000), special_values(dtype)])
    want = compiled(opcode, dtype)(x)
    for lanes in (1, 4, 8, 32):
        b = Builder()
        source, out = b.input("x", dtype), b.output("y", dtype)
        with b.for_("i", b.grid_begin(), b.grid_end(), lanes=lanes) as i:
            b.store(out, i, b.op(opcode, b.load(source, i)))
        got = np.empty_like(x)
        call(compile_kernels([b.kernel(opcode)], host())[0], [x, got], (), 0, x.size)
        np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))


# ---- accuracy


@pytest.mark.parametrize(("opcode", "dtype"), sorted(BY_TABLE))
def test_without_tables(opcode, dtype):
    """Where lookups are not cheap the other formula is used: here on the narrow target."""
    check(opcode, dtype, samples(dtype), target=TARGETS[-1])


def test_tanh_in_each_piece():
    """Every float from 1/16 to where tanh is 1, in steps: a piece has its largest error somewhere."""
    for first in np.arange(1 / 16, 9.5, 0.25):
        check("tanh", "f32", np.arange(first, first + 0.25, 2.0**-20, dtype=np.float32))
    x = np.float32(2.0) ** np.arange(-149, -3).astype(np.float32)
    check("tanh", "f32", np.concatenate([x, -x]))


@pytest.mark.parametrize("opcode", [o for o in OPCODES if ARITY.get(o, 1) == 1])
def test_f32(opcode):
    x = samples("f32")
    if opcode in ("sin", "cos", "tan"):
        x = x[
            np.isnan(x) | (np.abs(x) < 1e30)
        ]  # float64's own reduction is exact enough there
    if opcode in NO_LONG_DOUBLE:
        x = x[x > 0] if opcode in ("lgamma", "digamma") else x[x != 0]  # SciPy's -0
    check(opcode, "f32", x)


@pytest.mark.parametrize(
    "opcode", [o for o in OPCODES if ARITY.get(o, 1) == 1 and o not in NO_LONG_DOUBLE]
)
def test_f64(opcode):
    x = samples("f64")
    if opcode in ("sin", "cos", "tan"):
        x = x[np.isnan(x) | (np.abs(x) < 1e6)]
    check(opcode, "f64", x)


@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize("opcode", ["atan2", "hypot", "nextafter", "pow"])
def test_of_two_arguments(opcode, dtype):
    check(opcode, dtype, *pairs(dtype))


@pytest.mark.parametrize("dtype", BOTH)
def test_pow_over_the_range_of_results(dtype):
    check("pow", dtype, *powers(dtype))


@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize("opcode", ["sin", "cos", "tan"])
def test_large_angles(opcode, dtype):
    rng = np.random.default_rng(0)
    top = 127.9 if dtype == "f32" else 1023.9
    limit = 17 if dtype == "f32" else 45
    x = 2.0 ** rng.uniform(limit - 2, top, 700) * rng.choice([-1, 1], 700)
    around = [2.0**limit, np.nextafter(2.0**limit, 0), 2.0**45, 2.0**73, 2.0**101]
    # The multiples of pi/2 that are hardest for each format.
    hard = [16367173 * 2.0**72] if dtype == "f32" else [6381956970095103.0 * 2.0**797]
    x = np.array([*x, *around, *hard, np.finfo(TYPES[dtype]).max], TYPES[dtype])
    check(opcode, dtype, x, want=exact(opcode)(x))


@pytest.mark.parametrize("opcode", ["sin", "cos", "tan"])
@pytest.mark.parametrize("dtype", BOTH)
def test_near_multiples_of_half_pi(opcode, dtype):
    k = np.arange(-500, 500)
    x = (k * (np.pi / 2)).astype(TYPES[dtype])
    check(opcode, dtype, x, want=exact(opcode)(x))


def test_one_large_angle_among_small_ones():
    x = np.linspace(0, 3, 64).astype(np.float32)
    alone = compiled("sin", "f32")(x)
    x[21] = 1e30
    mixed = compiled("sin", "f32")(x)
    assert (np.delete(mixed, 21) == np.delete(alone, 21)).all()
    assert abs(mixed[21] - float(exact("sin")(x[21:22])[0])) < 1e-7


@pytest.mark.parametrize(
    ("opcode", "low", "high"),
    [
        ("erf", -6.2, 6.2),
        ("erfc", -6, 27.3),
        ("erfinv", -1, 1),
        ("lgamma", 0, 40),
        ("digamma", 0, 40),
    ],
)
def test_f64_against_mpmath(opcode, low, high):
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [rng.uniform(low, high, 500), rng.uniform(max(low, -2), min(high, 3), 500)]
    )
    small = 10.0 ** rng.uniform(-12, -1, 100)
    x = np.concatenate([x, small, 1 - small])
    if opcode == "erfinv":
        x = np.concatenate([x, 1 - 2.0 ** rng.uniform(-52, -1, 300)])
    if opcode == "lgamma":
        x = np.concatenate([x, 2 + small, 2 - small, 10.0 ** rng.uniform(1, 300, 100)])
    check(opcode, "f64", x, want=exact(opcode)(x))


@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize("opcode", ["lgamma", "digamma"])
def test_gamma_functions_of_negative_numbers(opcode, dtype):
    """There the error is relative to the larger term of the reflection formula."""
    x = np.random.default_rng(0).uniform(-20, 0, 600).astype(TYPES[dtype])
    got, want = compiled(opcode, dtype)(x), exact(opcode)(x)
    if dtype == "f32":
        assert ulp_error(got, want, dtype).max() <= 2
    else:
        scale = np.abs(want) + np.abs(exact(opcode)(1 - x))
        assert (np.abs(got - want) <= 8 * np.finfo(np.float64).eps * scale).all()


# ---- exact and special values


def equal(opcode, dtype, table):
    """table: rows of (*args, result); NaN and the sign of zero count."""
    columns = [np.array(c, TYPES[dtype]) for c in zip(*table, strict=True)]
    got, want = compiled(opcode, dtype)(*columns[:-1]), columns[-1]
    same = ((got == want) & (np.signbit(got) == np.signbit(want))) | (
        np.isnan(got) & np.isnan(want)
    )
    assert same.all(), [
        (row, g) for row, g, ok in zip(table, got, same, strict=True) if not ok
    ]


INF, NAN = np.inf, np.nan
UNARY = {
    "exp": [
        (0, 1),
        (-0.0, 1),
        (INF, INF),
        (-INF, 0),
        (NAN, NAN),
        (1e4, INF),
        (-1e4, 0),
    ],
    "exp2": [(0, 1), (-0.0, 1), (3, 8), (-3, 0.125), (INF, INF), (-INF, 0), (NAN, NAN)],
    "expm1": [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -1), (NAN, NAN), (-1e4, -1)],
    "log": [
        (1, 0),
        (0, -INF),
        (-0.0, -INF),
        (INF, INF),
        (-1, NAN),
        (-INF, NAN),
        (NAN, NAN),
    ],
    "log2": [(1, 0), (8, 3), (0.125, -3), (0, -INF), (INF, INF), (-1, NAN), (NAN, NAN)],
    "log10": [
        (1, 0),
        (1000, 3),
        (0, -INF),
        (-0.0, -INF),
        (INF, INF),
        (-1, NAN),
        (NAN, NAN),
    ],
    "log1p": [
        (0, 0),
        (-0.0, -0.0),
        (-1, -INF),
        (-2, NAN),
        (INF, INF),
        (-INF, NAN),
        (NAN, NAN),
    ],
    "sin": [(0, 0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "cos": [(0, 1), (-0.0, 1), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "tan": [(0, 0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "asin": [
        (0, 0),
        (-0.0, -0.0),
        (1, np.pi / 2),
        (-1, -np.pi / 2),
        (2, NAN),
        (NAN, NAN),
    ],
    "acos": [(1, 0), (-1, np.pi), (0, np.pi / 2), (1.5, NAN), (-INF, NAN), (NAN, NAN)],
    "atan": [
        (0, 0),
        (-0.0, -0.0),
        (INF, np.pi / 2),
        (-INF, -np.pi / 2),
        (1, np.pi / 4),
        (NAN, NAN),
    ],
    "sinh": [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (1e4, INF)],
    "cosh": [(0, 1), (-0.0, 1), (INF, INF), (-INF, INF), (NAN, NAN), (-1e4, INF)],
    "tanh": [(0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1), (NAN, NAN), (50, 1)],
    "asinh": [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "acosh": [(1, 0), (INF, INF), (0.5, NAN), (-INF, NAN), (NAN, NAN)],
    "atanh": [
        (0, 0),
        (-0.0, -0.0),
        (1, INF),
        (-1, -INF),
        (2, NAN),
        (INF, NAN),
        (NAN, NAN),
    ],
    "logistic": [
        (0, 0.5),
        (-0.0, 0.5),
        (INF, 1),
        (-INF, 0),
        (NAN, NAN),
        (1e4, 1),
        (-1e4, 0),
    ],
    "erf": [(0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1), (NAN, NAN), (10, 1)],
    "erfc": [(0, 1), (-0.0, 1), (INF, 0), (-INF, 2), (NAN, NAN), (-10, 2), (30, 0)],
    "erfinv": [
        (0, 0),
        (-0.0, -0.0),
        (1, INF),
        (-1, -INF),
        (1.5, NAN),
        (-INF, NAN),
        (NAN, NAN),
    ],
    "rsqrt": [(4, 0.5), (0, INF), (-0.0, -INF), (INF, 0), (-1, NAN), (NAN, NAN)],
    "cbrt": [
        (0, 0),
        (-0.0, -0.0),
        (27, 3),
        (-8, -2),
        (INF, INF),
        (-INF, -INF),
        (NAN, NAN),
    ],
    "lgamma": [
        (1, 0),
        (2, 0),
        (0, INF),
        (-0.0, INF),
        (-3, INF),
        (INF, INF),
        (-INF, INF),
        (NAN, NAN),
    ],
    "digamma": [(0, -INF), (-0.0, INF), (-3, NAN), (INF, INF), (NAN, NAN)],
}


@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize("opcode", sorted(UNARY))
def test_special_values(opcode, dtype):
    equal(opcode, dtype, UNARY[opcode])


def test_every_function_has_special_values():
    assert set(UNARY) == {o for o in OPCODES if o not in ARITY}


@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize("opcode", ["atan2", "hypot", "pow", "nextafter"])
def test_special_pairs(opcode, dtype):
    """All pairs of special values as the C library has them, signs of zeros included."""
    special = special_values(dtype)
    x, y = np.repeat(special, len(special)), np.tile(special, len(special))
    function = {"atan2": np.arctan2, "pow": np.power}.get(opcode) or getattr(np, opcode)
    with np.errstate(all="ignore"):
        want = function(x, y)
    got = compiled(opcode, dtype)(x, y)
    with np.errstate(all="ignore"):
        close = (got == want) | (
            np.abs(got - want) <= 2 * np.finfo(TYPES[dtype]).eps * np.abs(want)
        )
    same = (close & (np.signbit(got) == np.signbit(want))) | (
        np.isnan(got) & np.isnan(want)
    )
    assert same.all(), [
        (a, b, g, w) for a, b, g, w in zip(x[~same], y[~same], got[~same], want[~same])
    ]


@pytest.mark.parametrize("dtype", BOTH)
def test_powers_of_two_and_ten_are_exact(dtype):
    info = np.finfo(TYPES[dtype])
    k = np.arange(info.minexp - info.nmant, info.maxexp)
    x = np.ldexp(TYPES[dtype](1), k)
    assert (compiled("log2", dtype)(x) == k).all()
    assert (compiled("exp2", dtype)(k) == x).all()
    n = np.arange(11 if dtype == "f32" else 23)
    assert (compiled("log10", dtype)([10.0**v for v in n]) == n).all()


@pytest.mark.parametrize("dtype", BOTH)
def test_exact_powers_are_exact(dtype):
    power = compiled("pow", dtype)
    assert (
        power(np.full(40, 2.0), np.arange(-20.0, 20)) == 2.0 ** np.arange(-20, 20)
    ).all()
    bits = 24 if dtype == "f32" else 53
    bases = np.repeat(np.arange(1.0, 200), 10)
    exponents = np.tile(np.arange(1.0, 11), 199)
    fits = bases**exponents < 2.0**bits
    bases, exponents = bases[fits], exponents[fits]
    assert (power(bases, exponents) == bases**exponents).all()
    assert (
        power(bases**2, np.full(len(bases), 0.5))[bases < 99] == bases[bases < 99]
    ).all()


@pytest.mark.parametrize("dtype", BOTH)
def test_subnormal_results_round_once(dtype):
    smallest = np.finfo(TYPES[dtype]).smallest_subnormal
    x = (
        np.log(float(smallest)) + np.linspace(-2, 15, 2000)
        if dtype == "f32"
        else np.linspace(-746, -708, 2000)
    )
    check("exp", dtype, x.astype(TYPES[dtype]))
    check("logistic", dtype, x.astype(TYPES[dtype]))


@pytest.mark.parametrize(
    "opcode", ["sin", "tanh", "erf", "atan", "sinh", "log1p", "expm1", "asinh"]
)
@pytest.mark.parametrize("dtype", BOTH)
def test_tiny_arguments_are_kept(opcode, dtype):
    """f(x) = x (times 2 / sqrt(pi) for erf) down to the smallest subnormal."""
    info = np.finfo(TYPES[dtype])
    x = np.ldexp(TYPES[dtype](1), np.arange(info.minexp - info.nmant, -60))
    factor = 2 / np.sqrt(np.longdouble(np.pi)) if opcode == "erf" else 1
    error = ulp_error(
        compiled(opcode, dtype)(x), x.astype(np.longdouble) * factor, dtype
    )
    assert error.max() <= 1.0
