"""Makes the polynomial coefficients of compiler/llvm/math/coefficients.py.

    python docs/math_coefficients.py > src/jato/compiler/llvm/math/coefficients.py

Each polynomial is the minimax fit (Remez exchange, 60 digits, mpmath) of a smooth function g on an
interval, under a weight that turns the error of g into the error of the final result.  The
coefficients are then rounded one after the other, lowest power first, to the format they are used
in, and the rest is fitted again to what the rounding left (so that the rounded polynomial is
almost as good as the exact one).  The bits of accuracy reached are printed beside each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy
from mpmath import (
    asin,
    atan,
    erf,
    erfc,
    erfinv,
    exp,
    expm1,
    log,
    log1p,
    loggamma,
    lu_solve,
    matrix,
    mp,
    mpf,
    pi,
    psi,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)  # fmt: skip

mp.dps = 60
Function = Callable[[mpf], mpf]


def round_to(value: mpf, precision: str) -> mpf:
    if precision == "f32":
        # mpf -> float64 -> float32 rounds twice; harmless here: the refit absorbs it.
        return mpf(float(numpy.float32(float(value))))
    if precision == "f64":
        return mpf(float(value))
    return +value


def remez(
    g: Function, low: mpf, high: mpf, powers: list[int], weight: Function
) -> tuple[list[mpf], mpf]:
    """The minimax coefficients of sum c_k t^powers[k] for g under weight, and the error."""
    count = len(powers)
    grid_size = max(24 * (count + 1), 150) | 1  # odd: the middle, where weights vanish, is no point
    grid = [
        (low + high) / 2 - (high - low) / 2 * mp.cos(pi * i / grid_size)
        for i in range(grid_size + 1)
    ]
    g_grid = [g(t) for t in grid]
    w_grid = [abs(weight(t)) for t in grid]
    chosen = [round(i * grid_size / count) for i in range(count + 1)]
    coefficients: list[mpf] = []
    error = mpf(0)
    for _ in range(30):
        system, right = matrix(count + 1, count + 1), matrix(count + 1, 1)
        for row, point in enumerate(chosen):
            for column, power in enumerate(powers):
                system[row, column] = w_grid[point] * grid[point] ** power
            system[row, count] = (-1) ** row
            right[row] = w_grid[point] * g_grid[point]
        solution = lu_solve(system, right)
        coefficients, level = [solution[k] for k in range(count)], abs(solution[count])
        errors = []
        for t, g_value, w_value in zip(grid, g_grid, w_grid):
            value = sum((c * t**p for c, p in zip(coefficients, powers)), mpf(0))
            errors.append(w_value * (value - g_value))
        error = max(abs(e) for e in errors)
        if error <= level * mpf("1.005"):
            break
        chosen = alternation(errors, count + 1)
    return coefficients, error


def alternation(errors: list[mpf], count: int) -> list[int]:
    """`count` grid positions where the error alternates in sign and is largest."""
    runs: list[int] = []
    for i, e in enumerate(errors):
        if runs and (e > 0) == (errors[runs[-1]] > 0):
            if abs(e) > abs(errors[runs[-1]]):
                runs[-1] = i
        else:
            runs.append(i)
    while len(runs) > count:
        if len(runs) == count + 1:
            runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
        else:
            drop = min(
                range(len(runs) - 1),
                key=lambda k: max(abs(errors[runs[k]]), abs(errors[runs[k + 1]])),
            )
            del runs[drop : drop + 2]
    if len(runs) < count:  # the fit is exact to working precision
        missing = [i for i in range(len(errors)) if i not in runs]
        runs = sorted(runs + missing[: count - len(runs)])
    return runs


def absorb(error: numpy.ndarray, columns: numpy.ndarray) -> numpy.ndarray:
    """The combination of columns that, added to `error`, makes its maximum small.

    Lawson's algorithm (iteratively reweighted least squares): unlike Remez exchange it needs no
    Haar condition, which the higher powers alone do not satisfy.
    """
    scale = numpy.abs(columns).max(axis=0)
    weights = numpy.ones(len(error))
    best, best_level = numpy.zeros(columns.shape[1]), numpy.abs(error).max()
    for _ in range(20):
        root = numpy.sqrt(weights)
        delta = (
            numpy.linalg.lstsq(columns / scale * root[:, None], -error * root, rcond=1e-13)[0]
            / scale
        )
        left = numpy.abs(error + columns @ delta)
        if left.max() < best_level:
            best, best_level = delta, left.max()
        weights *= left / left.max() + 1e-9
        weights /= weights.mean()
    return best


def fit(
    g: Function, low: float | mpf, high: float | mpf, powers: list[int] | int, precision: str,
    weight: Function = lambda t: mpf(1), given: dict[int, float] | None = None,
    rounded: dict[int, float] | None = None,
) -> tuple[list[float], float]:  # fmt: skip
    """Rounded minimax coefficients (as many as `powers`) and the bits of accuracy.

    `given` fixes coefficients beforehand, before the exact fit; `rounded` says to what a coefficient
    of the exact fit is rounded.
    """
    if isinstance(powers, int):
        powers = list(range(powers))
    low, high = mpf(low), mpf(high)
    given = given or {}
    free = [p for p in powers if p not in given]

    def rest(t: mpf) -> mpf:
        return g(t) - sum((mpf(c) * t**p for p, c in given.items()), mpf(0))

    exact, _ = remez(rest, low, high, free, weight)
    values = dict(zip(free, exact))
    size = 301
    grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(pi * i / size) for i in range(size + 1)]
    w_grid = [abs(weight(t)) for t in grid]
    g_grid = [rest(t) for t in grid]
    columns = {p: numpy.array([float(w * t**p) for t, w in zip(grid, w_grid)]) for p in free}

    def errors() -> list[mpf]:
        return [
            w * (sum((c * t**p for p, c in values.items()), mpf(0)) - g_value)
            for t, w, g_value in zip(grid, w_grid, g_grid)
        ]

    for k, power in enumerate(free):
        known = (rounded or {}).get(power)
        values[power] = round_to(values[power], precision) if known is None else mpf(known)
        later = free[k + 1 :]
        if later:
            error = errors()
            level = max(abs(e) for e in error)
            delta = absorb(
                numpy.array([float(e / level) for e in error]),
                numpy.stack([columns[p] for p in later], axis=1),
            )
            for p, d in zip(later, delta):
                values[p] += mpf(float(d)) * level
    worst = max(abs(e) for e in errors())
    result = {**values, **{p: mpf(c) for p, c in given.items()}}
    return [float(result[p]) for p in powers], float(-mp.log(worst, 2)) if worst else 999.0


def parts(value: mpf, precision: str, *bits: int) -> list[float]:
    """value = sum of parts; part i keeps bits[i] significant bits (the last: all it can).

    All but the last are cut off, not rounded, so that all parts have one sign (and -0 survives a
    reduction by 0 times each of them).
    """
    result = []
    for position, count in enumerate(bits):
        if position + 1 < len(bits):
            exponent = mp.floor(mp.log(abs(value), 2)) - count + 1
            part = mp.floor(value / mpf(2) ** exponent) * mpf(2) ** exponent
        else:
            part = round_to(value, precision)
        result.append(float(part))
        value -= part
    return result


HALF_LN2 = log(mpf(2)) / 2 * mpf("1.0005")
SQRT_HALF, SQRT_TWO = sqrt(mpf(1) / 2) - 1, sqrt(mpf(2)) - 1


def odd(f: Function) -> Function:
    """f(x) = x + x^3 odd(f)(x^2)."""
    return lambda t: (f(sqrt(t)) / sqrt(t) - 1) / t


def odd_weight(f: Function) -> Function:
    return lambda t: t * sqrt(t) / f(sqrt(t))


# name -> tier -> (fit or parts).  Tiers: "f32" and "f64" are evaluated in the format of the
# result; "wide" is evaluated in f64 for a result in f32.
Tiers = dict[str, tuple[list[float], float]]


def tiers(
    g: Function, low: float | mpf, high: float | mpf, counts: dict[str, list[int] | int],
    weight: Function = lambda t: mpf(1), given: dict[int, float] | None = None,
) -> Tiers:  # fmt: skip
    return {
        tier: fit(g, low, high, powers, "f32" if tier == "f32" else "f64", weight, given)
        for tier, powers in counts.items()
    }


def constants(value: mpf, f32: tuple[int, ...], f64: tuple[int, ...]) -> Tiers:
    return {"f32": (parts(value, "f32", *f32), 0.0), "f64": (parts(value, "f64", *f64), 0.0)}


def table() -> dict[str, tuple[str, Callable[[], Tiers]]]:
    """name -> (what it is, how to make it)."""
    return {
        "LN2": (
            "ln 2 in two parts; n times the first is exact",
            lambda: constants(log(mpf(2)), (16, 0), (42, 0)),
        ),
        "EXP": (
            "e^r, |r| <= ln(2)/2",
            lambda: tiers(
                exp,
                -HALF_LN2,
                HALF_LN2,
                {"f32": 7, "f64": 12, "wide": 8},
                lambda r: exp(-r),
                {0: 1.0},
            ),
        ),
        "EXP2": (
            "2^r, |r| <= 1/2",
            lambda: tiers(
                lambda r: mpf(2) ** r,
                -0.5005,
                0.5005,
                {"f32": 7, "f64": 12, "wide": 8},
                lambda r: mpf(2) ** -r,
                {0: 1.0},
            ),
        ),
        "EXPM1": (
            "(e^r - 1 - r) / r^2, |r| <= ln(2)/2",
            lambda: tiers(
                lambda r: (expm1(r) - r) / r**2,
                -HALF_LN2,
                HALF_LN2,
                {"f32": 5, "f64": 10, "wide": 6},
                lambda r: r * r / expm1(r),
            ),
        ),
        "SINH": (
            "(sinh(x) - x) / x^3 in x^2, |x| <= 1",
            lambda: tiers(odd(sinh), 1e-9, 1, {"f32": 3, "f64": 7}, odd_weight(sinh)),
        ),
        "TANH": (
            "(tanh(x) - x) / x^3 in x^2, |x| <= 5/8",
            lambda: tiers(odd(tanh), 1e-9, 0.391, {"f32": 5, "f64": 11}, odd_weight(tanh)),
        ),
        "LOG1P": (
            "(log(1 + f) - f) / f^2, sqrt(1/2) <= 1 + f <= sqrt(2)",
            lambda: tiers(
                lambda f: (log1p(f) - f) / f**2,
                SQRT_HALF,
                SQRT_TWO,
                {"f32": 9, "wide": 12},
                lambda f: f * f / log1p(f),
            ),
        ),
    }


def table_of_logarithms() -> dict[str, tuple[str, Callable[[], Tiers]]]:
    # With s = f / (2 + f): log(1 + f) = 2 s + s^3 L(s^2).
    in_s = lambda t: (log((1 + sqrt(t)) / (1 - sqrt(t))) / sqrt(t) - 2) / t
    s_max = (SQRT_TWO / (2 + SQRT_TWO)) ** 2 * mpf("1.001")
    return {
        "LOG_S": (
            "(log((1+s)/(1-s)) - 2 s) / s^3 in s^2; s^2 <= 0.0295",
            lambda: tiers(in_s, 1e-9, s_max, {"f64": 7, "wide": 4}, lambda t: t),
        ),
        "TWO_THIRDS": ("2/3 in two parts", lambda: {"f64": (parts(mpf(2) / 3, "f64", 53, 0), 0.0)}),
        "LOG_Q": (
            "the same less its 2/3, over s^2 again",
            lambda: tiers(
                lambda t: (in_s(t) - mpf(2) / 3) / t, 1e-9, s_max, {"f64": 7}, lambda t: t * t
            ),
        ),
        "LOG2_E": (
            "log2(e) in two parts",
            lambda: constants(1 / log(mpf(2)), (24, 0), (53, 0)),
        ),
        "LOG10_E": (
            "log10(e) in two parts",
            lambda: constants(1 / log(mpf(10)), (24, 0), (53, 0)),
        ),
        "LOG10_2": (
            "log10(2) in two parts; n times the first is exact",
            lambda: constants(log(mpf(2)) / log(mpf(10)), (15, 0), (41, 0)),
        ),
    }


def table_of_trigonometry() -> dict[str, tuple[str, Callable[[], Tiers]]]:
    half_pi, quarter_pi = pi / 2 * mpf("1.003"), pi / 4 * mpf("1.003")
    return {
        "PI": ("pi in parts", lambda: constants(+pi, (24, 24, 0), (53, 53, 0))),
        "HALF_PI": ("pi/2 in parts", lambda: constants(pi / 2, (24, 24, 0), (53, 53, 0))),
        "SIN": (
            "(sin(x) - x) / x^3 in x^2, |x| <= pi/2",
            lambda: tiers(odd(sin), 1e-9, half_pi**2, {"f32": 4, "f64": 8}, odd_weight(sin)),
        ),
        "TAN": (
            "(tan(x) - x) / x^3 in x^2, |x| <= pi/4",
            lambda: tiers(odd(tan), 1e-9, quarter_pi**2, {"f32": 6, "f64": 14}, odd_weight(tan)),
        ),
        "ASIN": (
            "(asin(x) - x) / x^3 in x^2, |x| <= 1/2",
            lambda: tiers(odd(asin), 1e-9, 0.25, {"f32": 5, "f64": 12}, odd_weight(asin)),
        ),
        "ATAN": (
            "(atan(x) - x) / x^3 in x^2, |x| <= 1",
            lambda: tiers(odd(atan), 1e-9, 1, {"f32": 8, "f64": 19}, odd_weight(atan)),
        ),
    }


def table_of_gamma() -> dict[str, tuple[str, Callable[[], Tiers]]]:
    root = mp.findroot(lambda x: psi(0, x), mpf("1.4616"))

    def over_zero(y: mpf) -> mpf:
        return loggamma(2 + y) / y if y else psi(0, mpf(2))

    def stirling(t: mpf) -> mpf:
        x = 1 / sqrt(t)
        return x * (loggamma(x) - ((x - mpf(1) / 2) * log(x) - x + log(2 * pi) / 2))

    def digamma_rest(t: mpf) -> mpf:
        x = 1 / sqrt(t)
        return (psi(0, x) - log(x) + 1 / (2 * x)) * x * x

    def over_root(x: mpf) -> mpf:
        return psi(0, x) / (x - root)

    tiny = mpf("1e-12")
    return {
        "LGAMMA": (
            "lgamma(2 + y) / y in y - c, -1/2 <= y <= 1",
            lambda: centred(
                over_zero, mpf("-0.5"), mpf(1), {"f64": 21, "wide": 12}, lambda x: 1 / over_zero(x)
            ),
        ),
        "STIRLING": (
            "x times what Stirling's formula leaves, in 1/x^2, x >= 3",
            lambda: tiers(
                stirling,
                tiny,
                mpf(1) / 9,
                {"f64": 9, "wide": 4},
                lambda t: sqrt(t) / loggamma(1 / sqrt(t)),
            ),
        ),
        "DIGAMMA_ROOT": (
            "the positive zero in two parts",
            lambda: {"f64": (parts(root, "f64", 53, 0), 0.0)},
        ),
        "DIGAMMA": (
            "digamma(x) / (x - zero) in x - c, 1 <= x <= 2",
            lambda: centred(
                over_root, mpf(1), mpf(2), {"f64": 22, "wide": 12}, lambda x: 1 / over_root(x)
            ),
        ),
        "DIGAMMA_SERIES": (
            "x^2 (digamma(x) - log(x) + 1/(2 x)) in 1/x^2, x >= 2",
            lambda: tiers(
                digamma_rest,
                tiny,
                mpf(1) / 4,
                {"f64": 14, "wide": 6},
                lambda t: t / psi(0, 1 / sqrt(t)),
            ),
        ),
    }


def centred(
    g: Function, low: float | mpf, high: float | mpf, counts: dict[str, list[int] | int],
    weight: Function,
) -> Tiers:  # fmt: skip
    """Polynomials in t - c, the centre c in front."""
    centre = mpf(round(float(low + high) * 4)) / 8
    made = tiers(
        lambda t: g(centre + t), low - centre, high - centre, counts, lambda t: weight(centre + t)
    )
    return {tier: ([float(centre), *values], bits) for tier, (values, bits) in made.items()}


def inverse_error_ratio(w: mpf) -> mpf:
    """erfinv(x) / x with w = -log(1 - x^2), by Newton's method on erf or log(erfc)."""
    x = sqrt(-expm1(-w))
    complement = exp(-w) / (1 + x)  # 1 - x
    y = erfinv(x) if x < mpf("0.99") else sqrt(w - log(w + 1) / 2)
    for _ in range(60):
        slope = sqrt(pi) / 2 * exp(y * y)
        step = (erf(y) - x) * slope if x < 0.5 else (log(complement / erfc(y))) * erfc(y) * slope
        y -= step
        if abs(step) < mpf(10) ** -50 * abs(y):
            break
    return y / x


def table_of_error_functions() -> dict[str, tuple[str, Callable[[], Tiers]]]:
    def erfcx(x: mpf) -> mpf:
        return exp(x * x) * erfc(x)

    def of_root(s: mpf) -> mpf:
        return inverse_error_ratio(s * s)

    def in_q(centre: int, low: float, high: float, count: int, tier: str) -> Tiers:
        def map_back(q: mpf) -> mpf:
            return centre * (1 + q) / (1 - q)

        def g(q: mpf) -> mpf:
            return (1 + 2 * map_back(q)) * erfcx(map_back(q))

        ends = [(mpf(a) - centre) / (mpf(a) + centre) for a in (low, high)]
        return tiers(g, *ends, {tier: count})

    def relative(f: Function) -> Function:
        return lambda t: 1 / f(t)

    centre = {"f64": ([4.0], 0.0), "wide": ([2.0], 0.0)}
    to_erf = lambda x: erfc(x) / erf(x)
    return {
        "ERF": (
            "erf(x) / x - 1 in x^2, |x| <= 1",
            lambda: tiers(
                lambda t: erf(sqrt(t)) / sqrt(t) - 1,
                1e-9,
                1,
                {"f32": 7, "f64": 12},
                lambda t: sqrt(t) / erf(sqrt(t)),
            ),
        ),
        "LOG_ERFC": (
            "log(erfc(x)), 1 <= x <= 4 (f32); log(erfc(x)) + x^2, 1 <= x <= 6 (f64)",
            lambda: {
                **tiers(lambda x: log(erfc(x)), 1, 4, {"f32": 7}, to_erf),
                **tiers(lambda x: log(erfcx(x)), 1, 6, {"f64": 17}, to_erf),
            },
        ),
        "ERFCX_CENTRE": ("k in q = (x - k)/(x + k)", lambda: centre),
        "ERFCX": (
            "(1 + 2 x) e^(x^2) erfc(x) in q; 1/2 <= x <= 27.5 (f64), 0 <= x <= 10.5 (wide)",
            lambda: {**in_q(4, 0.5, 27.5, 23, "f64"), **in_q(2, 0, 10.5, 12, "wide")},
        ),
        "ERFINV_W": (
            "erfinv(x) / x in w - c, w = -log(1 - x^2); w <= 5 (f32), 6.25 (f64)",
            lambda: {
                **centred(
                    inverse_error_ratio,
                    mpf("1e-20"),
                    mpf(5),
                    {"f32": 10},
                    relative(inverse_error_ratio),
                ),
                **centred(
                    inverse_error_ratio,
                    mpf("1e-20"),
                    mpf("6.25"),
                    {"f64": 23},
                    relative(inverse_error_ratio),
                ),
            },
        ),
        "ERFINV_ROOT": (
            "the same in sqrt(w) - c, up to 4.1",
            lambda: {
                **centred(of_root, sqrt(mpf(5)), mpf("4.1"), {"f32": 10}, relative(of_root)),
                **centred(of_root, mpf("2.5"), mpf(4), {"f64": 20}, relative(of_root)),
            },
        ),
        "ERFINV_FAR": (
            "the same up to 6.1",
            lambda: centred(of_root, mpf(4), mpf("6.1"), {"f64": 18}, relative(of_root)),
        ),
    }


def bits_of_inverse_pi(first: int, words: int) -> list[int]:
    """Words of 64 bits of 1/pi; the first one is floor(2^first / pi) modulo 2^64."""
    with mp.workdps(600):
        whole = int(mp.floor(mpf(2) ** (first + 64 * (words - 1)) / pi))
    return [whole >> (64 * (words - 1 - i)) & (2**64 - 1) for i in range(words)]


def print_inverse_pi() -> None:
    print(
        "\n# 1/pi in words of 64 bits, the first being floor(2^(1068 - 1075 + 63) / pi) mod 2^64: for"
    )
    print("# M 2^(E - 1075) in units of 2^-63 from E = 1023 + 45 up to 2046.")
    print("INVERSE_PI_WORDS: tuple[int, ...] = (")
    for word in bits_of_inverse_pi(1068 - 1075 + 63, 19):
        print(f"    0x{word:016X},")
    print(")")
    print(
        "\n# (limit, c1, c2, c3): c1 + c2 + c3 = 1/pi for |x| >= limit, short of multiples of 2 in x / pi;"
    )
    print("# c1 and c2 have 29 bits.")
    print("INVERSE_PI_CUTS: dict[str, tuple[tuple[float, ...], ...]] = {")
    print('    "f32": (')
    for exponent in (17, 45, 73, 101):
        # x is a multiple of 2^(exponent - 23): bits of 1/pi from 2^(24 - exponent) on do not matter.
        unit = mpf(2) ** (24 - exponent)
        rest = (1 / pi) % unit
        row = [2.0**exponent]
        for _ in range(2):
            unit /= 2**29
            row.append(float(mp.floor(rest / unit) * unit))
            rest -= mpf(row[-1])
        row.append(float(rest))
        print(f"        ({', '.join(map(repr, row))}),")
    print("    ),")
    print("}")


PIECES = 32  # compiler/llvm looks them up in two registers of 16


def pieces(f: Function, width: float, limit: float, degree: int) -> tuple[list[list[float]], float]:
    """Polynomials of t = x - n width for f, odd and f(x) ~ x, on 32 pieces, lowest power first.

    The last piece reaches to `limit`.  A constant is the float nearest to f(n width): its rounding
    is most of the error, and `width` is chosen so that it is small for small n, where it counts.
    """
    rows, worst = [], mpf(999)
    for n in range(PIECES):
        centre, half = mpf(width) * n, mpf(width) / 2 * mpf("1.0001")
        if n == 0:
            values, bits = fit(
                lambda t: f(t) / t, 1e-6, half, degree, "f32", lambda t: t / f(t), {0: 1.0}
            )
            values = [0.0, *values]
        else:
            values, bits = fit(
                lambda t: f(centre + t), -half, half if n < PIECES - 1 else limit - centre,
                degree + 1, "f32", lambda t: 1 / f(centre + t),
                rounded={0: float(round_to(f(centre), "f32"))},
            )  # fmt: skip
        rows.append(values)
        worst = min(worst, bits)
    return rows, float(worst)


def print_pieces(name: str, f: Function, width: float, limit: float, degree: int) -> None:
    rows, bits = pieces(f, width, limit, degree)
    print(f"\n# {name} on {PIECES} pieces about n {width}, up to {limit} (2^-{bits:.1f})")
    print(f"{name.upper()}_PIECES: Pieces = (\n    {width!r},\n    {limit!r},\n    (")
    for power in range(degree + 1):
        print("        (")
        for row in rows:
            print(f"            {row[power]!r},")
        print("        ),")
    print("    ),\n)")


def all_tables() -> dict[str, tuple[str, Callable[[], Tiers]]]:
    return {
        **table(), **table_of_logarithms(), **table_of_trigonometry(),
        **table_of_error_functions(), **table_of_gamma(),
    }  # fmt: skip


def main() -> None:
    print("# Made by docs/math_coefficients.py; do not edit.")
    print('"""Coefficients of the vector math functions, lowest power first.\n')
    print("Keys: the format they are evaluated in; `wide` is f64 for a result in f32.")
    print('"""\n')
    print("# fmt: off")
    only = sys.argv[1:]
    for name, (comment, make) in all_tables().items():
        if only and name not in only:
            continue
        print(f"\n# {comment}")
        print(f"{name}: dict[str, tuple[float, ...]] = {{")
        for tier, (values, bits) in make().items():
            note = f"  # 2^-{bits:.1f}" if bits else ""
            print(f'    "{tier}": ({note}')
            for value in values:
                print(f"        {value!r},")
            print("    ),")
        print("}")
    print_inverse_pi()
    print("\n# (width, limit, coefficients): the nth numbers of the coefficients belong to the piece about")
    print("# n width")
    print("Pieces = tuple[float, float, tuple[tuple[float, ...], ...]]")
    # Of the widths k / 2^14 from 0.2 to 0.21 one for which tanh(n width), n up to 6, is within 0.3 units
    # of a float's last place, and whose result is the most exact: 1.04 ULP.  From 9.02 on tanh is 1.
    print_pieces("tanh", tanh, 0.20330810546875, 9.02, 5)


if __name__ == "__main__":
    main()
