"""Vector math: every `math` opcode of scalar_ops.py as a formula in `machine` opcodes.

The formulas have no branches and no tables, so that they become straight vector code of any width:
reduction of the argument, one polynomial (coefficients.py, made by docs/math_coefficients.py), special
values by select.  Errors are below 2 ULP over the whole range (docs/math_accuracy.md); infinities,
NaN, signed zeros and subnormals as in C99.

Sums and products are made under `builder.exact()`: the emitter contracts none of them, because
some compensate the rounding of others.  fma is written where it is meant.

Start reading at `expand`, then exponential.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jato.compiler.llvm.math import (
    exponential,
    inverse_trigonometric,
    logarithm,
    power,
    trigonometric,
)
from jato.loopir.formula import Value
from jato.loopir.grammar import Expr

FORMULAS: dict[str, Callable[..., Value]] = {
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "logistic": exponential.logistic,
    "sinh": exponential.sinh,
    "cosh": exponential.cosh,
    "tanh": exponential.tanh,
    "log": logarithm.log,
    "log1p": logarithm.log1p,
    "log2": logarithm.log2,
    "log10": logarithm.log10,
    "asinh": logarithm.asinh,
    "acosh": logarithm.acosh,
    "atanh": logarithm.atanh,
    "sin": trigonometric.sin,
    "cos": trigonometric.cos,
    "tan": trigonometric.tan,
    "asin": inverse_trigonometric.asin,
    "acos": inverse_trigonometric.acos,
    "atan": inverse_trigonometric.atan,
    "atan2": inverse_trigonometric.atan2,
    "pow": power.pow,
    "rsqrt": power.rsqrt,
    "cbrt": power.cbrt,
    "hypot": power.hypot,
    "nextafter": power.nextafter,
}


def expand(builder: Any, opcode: str, args: Sequence[Expr], dtype: str) -> Expr:
    """The expression for `opcode` of `args` (f32 or f64), made of machine opcodes.

    >>> from jato.loopir.builder import Builder
    >>> b = Builder()
    >>> expand(b, "rsqrt", [b.var("x", "f32")], "f32").op
    'div'
    """
    with builder.exact():
        return FORMULAS[opcode](*[Value(builder, arg) for arg in args]).expr
