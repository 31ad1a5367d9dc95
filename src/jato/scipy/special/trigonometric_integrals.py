"""Sine, cosine and Fresnel integrals.

Power series near 0.  Farther out the integrals are their limits and

    f(x) cos + g(x) sin        (DLMF 6.5, 7.5)

with auxiliary functions that fall without oscillation: their Chebyshev series (computed with mpmath to
40 digits) in 1/x**2 and 1/x**4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jato.numpy as jnp
from jato.jit.eager import public
from jato.lax.operands import narrow, wide
from jato.scipy.special.arguments import real_operand
from jato.scipy.special.series import fitted, is_wide, polynomial, with_derivative

_EULER = 0.577215664901532861
# x f(x) and x**2 g(x) for 4 <= x <= 8 and x >= 8
_F_NEAR = (
    0.943331044232439165, -0.0279720696506624827, 0.00153481073001244389,
    -0.000137669785750761141, 1.60806956801389588e-5, -2.21845465098003343e-6,
    3.43455511527450508e-7, -5.78933831759750883e-8, 1.04203106934846872e-8,
    -1.97631864277585775e-9, 3.91229454875878689e-10, -8.02683136185160152e-11,
    1.69768803640734179e-11, -3.68591179375136594e-12, 8.18740959795980787e-13,
    -1.85557429553784343e-13, 4.28119251629794595e-14, -1.00367153830738067e-14,
    2.38710708293423411e-15, -5.75201687692592877e-16, 1.40259721849544943e-16,
    -3.45759510074794988e-17, 8.60920198342357516e-18, -2.16353941340131918e-18,
)  # fmt: skip
_F_FAR = (
    0.986040656962382598, -0.0134717382082952131, 0.000453292841165226543,
    -3.06728865165516512e-5, 3.13199197601087252e-6, -4.2110196496309775e-7,
    6.90724483028171901e-8, -1.31832129042293977e-8, 2.83697432997416451e-9,
    -6.73292342548632426e-10, 1.73396869397908458e-10, -4.7869389042489192e-11,
    1.40323465212929003e-11, -4.33495712553199074e-12, 1.40272653426815466e-12,
    -4.73061734642999645e-13, 1.65578775058055638e-13, -5.99380824604281718e-14,
    2.23721329825067676e-14, -8.58806523143341794e-15, 3.3829238741050624e-15,
    -1.36472817689046204e-15, 5.62868998561352214e-16, -2.36980035434109566e-16,
    1.01711065268688416e-16, -4.44475164215310995e-17, 1.97548552132079245e-17,
    -8.92108355611541562e-18, 4.08967926885660528e-18, -1.90166649078319326e-18,
)  # fmt: skip
_G_NEAR = (
    0.854947911646948118, -0.0647070282614815034, 0.00510976697673045877,
    -0.000566613447572834785, 7.65441719224894335e-5, -1.17774069290587314e-5,
    1.98838854043796316e-6, -3.60012248088707933e-7, 6.88534450576737025e-8,
    -1.37639871744086801e-8, 2.85392219234378962e-9, -6.10262034070459079e-10,
    1.3397839026782298e-10, -3.00934551266800127e-11, 6.89606404328109921e-12,
    -1.6084941526249265e-12, 3.81149484523727484e-13, -9.16075795339852442e-14,
    2.23016163244052145e-14, -5.49292863388416847e-15, 1.36740554476806396e-15,
    -3.43745069172379209e-16, 8.71944046966373903e-17, -2.23028598164924212e-17,
    5.74900233393824371e-18, -1.49263287859245063e-18,
)  # fmt: skip
_G_FAR = (
    0.960747839752035963, -0.0371138962123980561, 0.00194143988899190367,
    -0.000171659884251470793, 2.11263775323146573e-5, -3.27163256711531559e-6,
    6.00692116147770564e-7, -1.25867944033870737e-7, 2.93256345799577613e-8,
    -7.45695920627628408e-9, 2.04105478358747131e-9, -5.95022303876333272e-10,
    1.83229674111181437e-10, -5.92050607828413023e-11, 1.9965165181282272e-11,
    -6.99511400784722338e-12, 2.53685773928604085e-12, -9.49285116435665537e-13,
    3.65523115291583613e-13, -1.44487391498130323e-13, 5.85131214376755428e-14,
    -2.42329021481230717e-14, 1.0247042520028651e-14, -4.41796082069726822e-15,
    1.93968077707752579e-15, -8.6623311643318274e-16, 3.93092605191299182e-16,
    -1.81097292634603783e-16, 8.46299431646307767e-17, -4.00867851855536951e-17,
    1.92327687413452904e-17, -9.34047737737079759e-18, 4.58911005537663707e-18,
    -2.27973953489282853e-18, 1.14451701283305534e-18,
)  # fmt: skip
# pi x f(x) and pi**2 x**3 g(x) for 1.6 <= x <= 2.5 and x >= 2.5
_FRESNEL_F_NEAR = (
    0.978765500448335057, -0.0133006370597047584, 0.00066130844542973359,
    -6.09977660233052503e-5, 7.73268068961536477e-6, -1.19294846650666068e-6,
    2.10515459534494187e-7, -4.09888178270509761e-8, 8.606259354604978e-9,
    -1.91861132862350285e-9, 4.49146019299351016e-10, -1.09515524679415019e-10,
    2.76412566265759107e-11, -7.18676182671623248e-12, 1.91747574049067581e-12,
    -5.23350942735582282e-13, 1.45750044849765642e-13, -4.13284320964214215e-14,
    1.19105484233100963e-14, -3.4833062003551361e-15, 1.03242158495949528e-15,
    -3.09765660919293705e-16, 9.39915593260905942e-17, -2.88167650436232565e-17,
    8.92006752419498151e-18, -2.78587044431142665e-18,
)  # fmt: skip
_FRESNEL_F_FAR = (
    0.996332895740156388, -0.00359830967065788089, 6.57137006798975508e-5,
    -2.85367801988877907e-6, 2.03924328732271106e-7, -2.02661093306317726e-8,
    2.55208759791136786e-9, -3.84554116487569391e-10, 6.67531636406520506e-11,
    -1.29992222281836513e-11, 2.78547536610357382e-12, -6.47283755167595508e-13,
    1.6129097288670447e-13, -4.27141678500546061e-14, 1.19359091224832127e-14,
    -3.49863377904453886e-15, 1.0704597151201907e-15, -3.40469047425582578e-16,
    1.12174599419972475e-16, -3.81689608825424153e-17, 1.33779535071195462e-17,
    -4.81882914645973923e-18, 1.78030698292181626e-18,
)  # fmt: skip
_FRESNEL_G_NEAR = (
    0.908469568833852044, -0.0528080326939681785, 0.00408533749397972746,
    -0.00048091369748632005, 7.17633474832640469e-5, -1.24896827503282496e-5,
    2.42316149121726651e-6, -5.09920176414092307e-7, 1.1432204703634494e-7,
    -2.69698809720239887e-8, 6.63521278964057095e-9, -1.69100041211069941e-9,
    4.44123983047706198e-10, -1.19721523082982997e-10, 3.30165872478690429e-11,
    -9.29029371937334817e-12, 2.66139187331933882e-12, -7.74765579000057575e-13,
    2.28842458102987805e-13, -6.84902465728818568e-14, 2.07466305056624938e-14,
    -6.35418018847592049e-15, 1.96600804672982504e-15, -6.1403197316934798e-16,
    1.93455476322301208e-16, -6.1445823984487709e-17, 1.96648122190201456e-17,
    -6.3381434261490975e-18, 2.05645225344834568e-18,
)  # fmt: skip
_FRESNEL_G_FAR = (
    0.982434032233483972, -0.0170027980013711911, 0.000528754447158930552,
    -3.12784007413708359e-5, 2.76054858619922543e-6, -3.21108924967379701e-7,
    4.57813562239260634e-8, -7.63787257869375948e-9, 1.44484872658553928e-9,
    -3.03032895569550591e-10, 6.93047875952051264e-11, -1.70665009428347935e-11,
    4.48059231403189426e-12, -1.24424279706383986e-12, 3.63133097252477572e-13,
    -1.10794329765437757e-13, 3.51833687037070987e-14, -1.15850866015912642e-14,
    3.94288111195588799e-15, -1.38319257951142152e-15, 4.98959081381900313e-16,
    -1.84692333538624571e-16, 7.00214363962552487e-17, -2.71455759575191685e-17,
    1.07452877594966822e-17, -4.33729706726369807e-18, 1.7831608366592401e-18,
)  # fmt: skip


def _in_two_pieces(
    u: Any, middle: float, most: float, far: Sequence[float], near: Sequence[float]
) -> Any:
    """A function of u = 1/x**k, by its series on [0, middle] and [middle, most]."""
    return jnp.where(
        u > middle,
        fitted(jnp.maximum(u, middle), (middle, most), near),
        fitted(jnp.minimum(u, middle), (0, middle), far),
    )


# ---- sine and cosine integrals, of |x|


def _auxiliary(x: Any) -> tuple[Any, Any, Any]:
    """f, g and x, at least 4."""
    x = jnp.maximum(x, 4)
    inverse = 1 / x
    u = inverse * inverse
    f = inverse * _in_two_pieces(u, 1 / 64, 1 / 16, _F_FAR, _F_NEAR)
    return f, u * _in_two_pieces(u, 1 / 64, 1 / 16, _G_FAR, _G_NEAR), x


def _si_value(x: Any) -> Any:
    size = jnp.abs(x)
    near = jnp.minimum(size, 4)
    terms = [
        (-1) ** k / ((2 * k + 1) * math.factorial(2 * k + 1))
        for k in range(14 if is_wide(x) else 9)
    ]
    small = near * polynomial(near * near, terms)
    f, g, far = _auxiliary(size)
    angle = jnp.where(far < math.inf, far, 0)
    large = math.pi / 2 - f * jnp.cos(angle) - g * jnp.sin(angle)
    return jnp.copysign(jnp.where(size > 4, large, small), x)


def _ci_value(x: Any) -> Any:
    size = jnp.abs(x)
    near = jnp.minimum(size, 4)
    terms = [
        (-1) ** k / (2 * k * math.factorial(2 * k)) for k in range(1, 15 if is_wide(x) else 10)
    ]
    square = near * near
    small = jnp.log(near) + (_EULER + square * polynomial(square, terms))
    f, g, far = _auxiliary(size)
    angle = jnp.where(far < math.inf, far, 0)
    large = f * jnp.sin(angle) - g * jnp.cos(angle)
    return jnp.where(x == -math.inf, math.nan, jnp.where(size > 4, large, small))


def _sine_quotient(x: Any, value: Any) -> Any:
    zero = x == 0
    return jnp.where(zero, 1, jnp.sin(x) / jnp.where(zero, 1, x))


_si = with_derivative(_si_value, _sine_quotient)
_ci = with_derivative(_ci_value, lambda x, value: jnp.cos(x) / x)


@public()
def sici(x: Any) -> tuple[Any, Any]:
    """The sine and the cosine integral: (Si(x), Ci(x)).  Floats.

    Si is the integral of sin(t) / t over [0, x]; Ci(x) = -(that of cos(t) / t over [x, inf)), and
    for x < 0 the real part, Ci(-x).

    >>> [round(float(y), 4) for y in sici(1.0)]
    [0.9461, 0.3374]
    """
    x = real_operand("sici", x)
    return narrow(_si(wide(x)), x), narrow(_ci(wide(x)), x)


# ---- Fresnel integrals


def _phase(x: Any) -> tuple[Any, Any]:
    """sin and cos of pi x**2 / 2.  The square is taken modulo 4 in parts, so that a large x keeps its
    digits: with x = n + r, x**2 = n**2 + 2 n r + r**2."""
    whole = jnp.round(x)
    rest = x - whole
    # n**2 is 0 (n even) or 1 modulo 4
    odd = whole - 2 * jnp.floor(0.5 * whole)
    twice = 2 * whole * rest
    angle = (0.5 * math.pi) * (odd + (twice - 4 * jnp.round(0.25 * twice)) + rest * rest)
    return jnp.sin(angle), jnp.cos(angle)


def _fresnel_series(x: Any, sine: bool) -> Any:
    """sum of (-1)**k (pi/2)**j x**(2 j + 1) / (j! (2 j + 1)), j = 2 k + 1 for the sine, else 2 k."""
    orders = [2 * k + sine for k in range(13 if is_wide(x) else 9)]
    terms = [
        (-1) ** k * (math.pi / 2) ** j / (math.factorial(j) * (2 * j + 1))
        for k, j in enumerate(orders)
    ]
    square = x * x
    return x * (square if sine else 1) * polynomial(square * square, terms)


def _fresnel_value(x: Any, sine: bool) -> Any:
    size = jnp.abs(x)
    small = _fresnel_series(jnp.minimum(size, 1.6), sine)
    # where neither f nor the digits of x count any more
    beyond = size > (1e17 if is_wide(x) else 1e8)
    far = jnp.where(beyond, 1.6, jnp.maximum(size, 1.6))
    inverse = 1 / far
    u = jnp.square(inverse * inverse)
    ends = 2.5**-4, 1.6**-4
    f = inverse * _in_two_pieces(u, *ends, _FRESNEL_F_FAR, _FRESNEL_F_NEAR) / math.pi
    g = inverse**3 * _in_two_pieces(u, *ends, _FRESNEL_G_FAR, _FRESNEL_G_NEAR) / math.pi**2
    sin, cos = _phase(far)
    large = 0.5 - f * cos - g * sin if sine else 0.5 + f * sin - g * cos
    value = jnp.where(beyond, 0.5, jnp.where(size > 1.6, large, small))
    return jnp.copysign(jnp.where(x == x, value, x), x)


_s = with_derivative(lambda x: _fresnel_value(x, True), lambda x, value: _phase(x)[0])
_c = with_derivative(lambda x: _fresnel_value(x, False), lambda x, value: _phase(x)[1])


@public()
def fresnel(x: Any) -> tuple[Any, Any]:
    """Fresnel's integrals (S(x), C(x)): of sin and cos of pi t**2 / 2 over [0, x].  Floats.

    >>> [round(float(y), 4) for y in fresnel(1.0)]
    [0.4383, 0.7799]
    """
    x = real_operand("fresnel", x)
    return narrow(_s(wide(x)), x), narrow(_c(wide(x)), x)
