"""Exponential integrals E1, Ei and En.

Near 0 they are a logarithm and a power series (DLMF 6.6.2, 8.19.8).  Farther out x exp(x) E1(x) and
x exp(-x) Ei(x) are Chebyshev series in 1/x (computed with mpmath to 40 digits), and En is a continued
fraction (DLMF 8.19.17).
"""

from __future__ import annotations

import math
from typing import Any

import jato.numpy as jnp
from jato.control.custom_jvp import custom_jvp
from jato.control.custom_rules import SymbolicZero
from jato.jit.eager import public
from jato.lax.iterations import Start, State, Step, away_from_zero, converged_value
from jato.lax.operands import narrow, wide
from jato.scipy.special.arguments import real_operand, real_operands
from jato.scipy.special.series import fitted, is_wide, polynomial, with_derivative

_EULER = 0.577215664901532861
_E1_NEAR = (
    0.69711337667969827, -0.1125352434836609, 0.0134322662479027795, -0.00192684518738114572,
    0.000309118337720603183, -5.35641321296184188e-5, 9.8278128802474924e-6,
    -1.88536898491651828e-6, 3.74943193568947354e-7, -7.68234558705526393e-8,
    1.61432705671987776e-8, -3.46680221149073546e-9, 7.58754209190362776e-10,
    -1.68864333298814126e-10, 3.81457067495522657e-11, -8.73302663244462927e-12,
    2.0236728645867961e-12, -4.74132830395558347e-13, 1.12211720483898643e-13,
    -2.68042254348403099e-14, 6.45785144177165303e-15, -1.56827605016664788e-15,
    3.83678653993154049e-16, -9.45171730275791305e-17, 2.34348122889495733e-17,
    -5.84586615802147146e-18, 1.46662298679477786e-18,
)  # fmt: skip
_E1_FAR = (
    0.905354099962349159, -0.0864811785525987149, 0.00722410154374659475,
    -0.00080975594575573862, 0.000109991344326613887, -1.71733299893776737e-5,
    2.98562751447928332e-6, -5.65964914577193006e-7, 1.15268083971414002e-7,
    -2.49503044026933823e-8, 5.69232420183375437e-9, -1.35995766480560034e-9,
    3.38466288876088459e-10, -8.73785390447468195e-11, 2.33158866322265972e-11,
    -6.41148104921378597e-12, 1.81224698020481643e-12, -5.25383176155846069e-13,
    1.5592182725919257e-13, -4.72916829708039872e-14, 1.4637618643932435e-14,
    -4.6173889887129241e-15, 1.48271034828936932e-15, -4.84167249623922915e-16,
    1.60621557570029041e-16, -5.40891753895717095e-17, 1.84747015934689788e-17,
    -6.39583079275909448e-18, 2.24278072169975946e-18,
)  # fmt: skip
_EI_NEAR = (
    1.17573026631905485, 0.0978044812311918032, 0.00640321134684211063,
    -0.000832166201060004941, -0.000252605551461552847, 2.54300455830609401e-5,
    6.83762883500784537e-6, -1.6374486807182681e-6, -7.38538663489269866e-9,
    6.20192735611289684e-8, -1.20888456087362781e-8, 2.6494440890615917e-10,
    4.08042474889878485e-10, -1.12218355312029713e-10, 1.31587168259825501e-11,
    9.06536684978108838e-13, -7.84163324131153338e-13, 1.90122420619778031e-13,
    -2.4481343288256485e-14, -3.46536802463326092e-16, 1.11006631847133377e-15,
    -3.34190937467351172e-16, 6.07144206513147974e-17, -5.79174658912141997e-18,
)  # fmt: skip
_EI_MIDDLE = (
    1.05466142921796785, 0.0292088962049931994, 0.000955864669356094708, 5.91224102378881132e-5,
    5.76142040250266586e-6, 5.13031710864589485e-7, -3.59079612744081522e-8,
    -2.76598678855039389e-8, -3.44102668224741699e-9, 7.64655156633710452e-10,
    2.15570993724657758e-10, -2.82160866779514696e-11, -1.05875087995234332e-11,
    1.75814407293050751e-12, 4.42090832537406881e-13, -1.31178208497183923e-13,
    -9.44280342134393749e-15, 8.42394194235795479e-15, -7.40104167822231259e-16,
    -3.50000742932998149e-16, 1.0645494183988829e-16, -1.01888622356283466e-18,
    -5.9574647635713327e-18, 1.39796067196021674e-18,
)  # fmt: skip
_EI_FAR = (
    1.01300094638894088, 0.013173609544194371, 0.000176205523711110845, 3.64235205341306208e-6,
    1.0363147927429253e-7, 3.81348068068883103e-9, 1.74720245779401606e-10,
    9.72302412915551168e-12, 6.46603930664023597e-13, 5.08862570166314725e-14,
    4.72153347840425171e-15, 5.18072280073842573e-16, 6.77609794232700863e-17,
    1.05706699433107192e-17, 1.90311226158364116e-18,
)  # fmt: skip


def _entire(x: Any, terms: int) -> Any:
    """The integral of (exp(t) - 1) / t over [0, x]: sum of x**k / (k k!), k = 1 ..."""
    return x * polynomial(x, [1 / (k * math.factorial(k)) for k in range(1, terms + 1)])


def _e1_value(x: Any) -> Any:
    near = jnp.clip(x, 0, 1)
    small = -(jnp.log(near) + _EULER) - _entire(-near, 18 if is_wide(x) else 10)
    inverse = 1 / jnp.maximum(x, 1)
    series = jnp.where(
        inverse > 0.25,
        fitted(jnp.maximum(inverse, 0.25), (0.25, 1), _E1_NEAR),
        fitted(jnp.minimum(inverse, 0.25), (0, 0.25), _E1_FAR),
    )
    value = jnp.where(x > 1, jnp.exp(-jnp.maximum(x, 1)) * inverse * series, small)
    return jnp.where(x >= 0, value, math.nan)


_e1 = with_derivative(_e1_value, lambda x, value: -jnp.exp(-x) / x)


def _ei_value(x: Any) -> Any:
    """For x > 0."""
    near = jnp.clip(x, 0, 6)
    small = jnp.log(near) + _EULER + _entire(near, 42 if is_wide(x) else 26)
    inverse = 1 / jnp.maximum(x, 6)
    pieces = ((1 / 14, 1 / 6), (1 / 40, 1 / 14), (0, 1 / 40))
    close, middle, far = (
        fitted(jnp.clip(inverse, *ends), ends, c)
        for ends, c in zip(pieces, (_EI_NEAR, _EI_MIDDLE, _EI_FAR), strict=True)
    )
    series = jnp.where(inverse > 1 / 14, close, jnp.where(inverse > 1 / 40, middle, far))
    # in halves, for exp(x) overflows before exp(x) / x does
    half = jnp.exp(0.5 * jnp.maximum(x, 6))
    large = jnp.where(x == math.inf, math.inf, half * (inverse * series) * half)
    return jnp.where(x > 6, large, small)


_ei_positive = with_derivative(_ei_value, lambda x, value: jnp.exp(x) / x)


def _fraction(x: Any) -> tuple[Start, Step]:
    """exp(x) En(x), a continued fraction, by Lentz's method; n is the parameter."""

    def start(n: Any) -> State:
        b = x + n
        d = 1 / away_from_zero(b)
        return b, 1e30 + 0 * b, d, d

    def step(i: Any, n: Any, state: State) -> State:
        b, c, d, value = state
        numerator = -i * (n + (i - 1))
        b = b + 2
        d = 1 / away_from_zero(numerator * d + b)
        c = away_from_zero(b + numerator / c)
        return b, c, d, value * (c * d)

    return start, step


def _power_series(x: Any, log_term: Any) -> tuple[Start, Step]:
    """-sum of (-x)**m / ((m - n + 1) m!), with the logarithm's coefficient where m = n - 1.

    log_term: psi(n) - log(x).
    """

    def term(m: Any, n: Any, power: Any) -> Any:
        distance = m - n + 1
        singular = distance == 0
        return power * jnp.where(singular, log_term, -1 / jnp.where(singular, 1, distance))

    def start(n: Any) -> State:
        one = 1 + 0 * x
        return one, term(0, n, one)

    def step(i: Any, n: Any, state: State) -> State:
        power, total = state
        power = -power * x / i
        return power, total + term(i, n, power)

    return start, step


def _series_value(n: Any, x: Any) -> Any:
    """En(x) for 0 < x <= 1 and n >= 1.  A logarithm in a later term than those summed counts nothing."""
    start, step = _power_series(x, jnp.where(n < 40, _digamma_of_integer(n), 0) - jnp.log(x))
    state = start(n)
    for i in range(1, 20 if is_wide(x) else 12):
        state = step(float(i), n, state)
    return state[-1]


def _digamma_of_integer(n: Any) -> Any:
    total = 0 * n - _EULER
    for k in range(1, 40):
        total = total + jnp.where(n > k, 1 / k, 0)
    return total


def _en_value(n: Any, x: Any) -> Any:
    order = jnp.maximum(n, 1)
    small = (x > 0) & (x <= 1) & (jnp.floor(n) == n)
    large = (x > 0) & ~small & (x < math.inf)
    near = _series_value(order, jnp.where(small, x, 1))
    place = jnp.where(large, x, 1)
    far = jnp.exp(-place) * converged_value(*_fraction(place), order, large & (n > 0), 10_000)
    value = jnp.where(small, near, far)
    value = jnp.where(n == 0, jnp.exp(-x) / x, value)
    at_zero = jnp.where(n > 1, 1 / jnp.where(n > 1, n - 1, 1), math.inf)
    value = jnp.where(x == 0, at_zero, jnp.where(x == math.inf, 0, value))
    return jnp.where((x >= 0) & (n >= 0), value, math.nan)


@custom_jvp
def _en(n: Any, x: Any) -> Any:
    return _en_value(n, x)


def _en_rule(primals: Any, tangents: Any) -> Any:
    (n, x), (tn, tx) = primals, tangents
    value = _en(n, x)
    if not isinstance(tn, SymbolicZero):
        raise TypeError("expn: not differentiable in argument 'n', the order")
    if isinstance(tx, SymbolicZero):
        return value, 0 * value
    # d/dx En = -E(n-1), and E(-1) = exp(-x) (1 + 1/x) / x
    lower = jnp.where(n >= 1, _en(jnp.maximum(n - 1, 0), x), jnp.exp(-x) * (1 + 1 / x) / x)
    return value, -lower * tx


_en.defjvp(_en_rule, symbolic_zeros=True)


@public()
def exp1(x: Any) -> Any:
    """The exponential integral E1(x), of exp(-t) / t over [x, inf).  Floats; NaN for x < 0.

    >>> round(float(exp1(1.0)), 4)
    0.2194
    """
    x = real_operand("exp1", x)
    return narrow(_e1(wide(x)), x)


@public()
def expi(x: Any) -> Any:
    """The exponential integral Ei(x), of exp(t) / t over (-inf, x] (the principal value).  Floats.

    >>> round(float(expi(1.0)), 4)
    1.8951
    """
    x = real_operand("expi", x)
    y = wide(x)
    below = y < 0
    negative = -_e1(-jnp.where(below, y, -1))
    return narrow(jnp.where(below, negative, _ei_positive(jnp.where(below, 1, y))), x)


@public()
def expn(n: Any, x: Any) -> Any:
    """The exponential integral En(x), of exp(-x t) / t**n over [1, inf), for n >= 0, x >= 0.

    Floats; NaN for negative arguments.  Differentiable in x; TypeError for the derivative in n.

    >>> round(float(expn(2, 1.0)), 4)
    0.1485
    """
    n, x = jnp.broadcast_arrays(*real_operands("expn", n, x))
    return narrow(_en(wide(n), wide(x)), x)
