"""Vector math: every `math` opcode of scalar_ops.py as a formula in `machine` opcodes.

The formulas have no branches, so that they become straight vector code of any width: reduction of
the argument, one polynomial (coefficients.py, made by docs/math_coefficients.py), special values by
select.  Where a table can be held in registers, some have a second formula: one of many polynomials,
chosen by the argument (piecewise.py, BY_TABLE).

Errors are below 2 ULP over the whole range (docs/math_accuracy.md); infinities, NaN, signed zeros and
subnormals as in C99.

Sums and products are made under `builder.exact()`: the emitter contracts none of them, because
some compensate the rounding of others.  fma is written where it is meant.

Start reading at `expand`, then exponential.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jato.compiler.llvm.math import (
    error_function,
    exponential,
    gamma,
    inverse_trigonometric,
    logarithm,
    piecewise,
    power,
    trigonometric,
)
from jato.loopir.expressions import ExpressionBuilder
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
    "erf": error_function.erf,
    "erfc": error_function.erfc,
    "erfinv": error_function.erfinv,
    "lgamma": gamma.lgamma,
    "digamma": gamma.digamma,
}
# (opcode, dtype) -> a faster formula for machines with lookups (Target.has_tables).
BY_TABLE: dict[tuple[str, str], Callable[..., Value]] = {
    ("tanh", "f32"): piecewise.tanh,
}


# (opcode, dtype, by table) -> the formula once expanded: (op, positions of its args, dtype, attr) in
# order of creation; the operands come first.  Replaying it costs a tenth of computing it again.
Step = tuple[str, tuple[int, ...], str, Any]
_RECORDED: dict[tuple[str, str, bool], list[Step]] = {}


def expand(
    builder: Any, opcode: str, args: Sequence[Expr], dtype: str, tables: bool = False
) -> Expr:
    """The expression for `opcode` of `args` (f32 or f64), made of machine opcodes.

    `tables`: the machine has lookups.

    >>> from jato.loopir.builder import Builder
    >>> b = Builder()
    >>> expand(b, "rsqrt", [b.var("x", "f32")], "f32").op
    'div'
    """
    if any(arg.op == "const" for arg in args):
        return compute(builder, opcode, args, tables)  # much of it folds
    tables = tables and (opcode, dtype) in BY_TABLE
    steps = _RECORDED.get((opcode, dtype, tables))
    if steps is None:
        fresh = ExpressionBuilder()
        operands = [fresh.var(f"x{i}", dtype) for i in range(len(args))]
        steps = record(operands, compute(fresh, opcode, operands, tables))
        _RECORDED[opcode, dtype, tables] = steps
    made, node = list(args), builder._node  # already simplified: no need to go by the methods
    for op, positions, result, attr in steps:
        if op == "const":
            made.append(builder.const(attr, result))
        else:
            made.append(node(op, tuple([made[i] for i in positions]), result, attr))
    return made[-1]


def compute(builder: Any, opcode: str, args: Sequence[Expr], tables: bool = False) -> Expr:
    formula = BY_TABLE.get((opcode, args[0].dtype)) if tables else None
    with builder.exact():
        return (formula or FORMULAS[opcode])(*[Value(builder, arg) for arg in args]).expr


def record(operands: Sequence[Expr], root: Expr) -> list[Step]:
    """The nodes below `root` in order of creation, args as positions in operands + nodes."""
    reached: dict[Expr, None] = {}
    pending = [root]
    while pending:
        node = pending.pop()
        if node not in reached:
            reached[node] = None
            pending.extend(node.args)
    nodes = sorted((n for n in reached if n not in operands), key=lambda n: n.serial)
    position = {node: i for i, node in enumerate([*operands, *nodes])}
    return [(n.op, tuple(position[a] for a in n.args), n.dtype, n.attr) for n in nodes]
