"""FunctionBuilder: the opcodes of one or two floats.

Those from `exp` on are `math` opcodes: compiler/llvm/math expands them when code is generated.
"""

from __future__ import annotations

from typing import Any

from jato.base.errors import invariant
from jato.loopir.nodes import HALF, NodeBuilder, Operand, dtype_of


class FunctionBuilder(NodeBuilder):
    """Adds functions to NodeBuilder."""

    def sqrt(self, x: Operand) -> Any:
        return self._unary("sqrt", x)

    def floor(self, x: Operand) -> Any:
        return self._unary("floor", x)

    def ceil(self, x: Operand) -> Any:
        return self._unary("ceil", x)

    def trunc(self, x: Operand) -> Any:
        return self._unary("trunc", x)

    def round_even(self, x: Operand) -> Any:
        return self._unary("round_even", x)

    def copysign(self, x: Operand, y: Operand) -> Any:
        return self._binary("copysign", x, y)

    # ---- functions (expanded by compiler/llvm/math)

    def exp(self, x: Operand) -> Any:
        return self._unary("exp", x)

    def exp2(self, x: Operand) -> Any:
        return self._unary("exp2", x)

    def expm1(self, x: Operand) -> Any:
        return self._unary("expm1", x)

    def log(self, x: Operand) -> Any:
        return self._unary("log", x)

    def log1p(self, x: Operand) -> Any:
        return self._unary("log1p", x)

    def log2(self, x: Operand) -> Any:
        return self._unary("log2", x)

    def log10(self, x: Operand) -> Any:
        return self._unary("log10", x)

    def sin(self, x: Operand) -> Any:
        return self._unary("sin", x)

    def cos(self, x: Operand) -> Any:
        return self._unary("cos", x)

    def tan(self, x: Operand) -> Any:
        return self._unary("tan", x)

    def asin(self, x: Operand) -> Any:
        return self._unary("asin", x)

    def acos(self, x: Operand) -> Any:
        return self._unary("acos", x)

    def atan(self, x: Operand) -> Any:
        return self._unary("atan", x)

    def sinh(self, x: Operand) -> Any:
        return self._unary("sinh", x)

    def cosh(self, x: Operand) -> Any:
        return self._unary("cosh", x)

    def tanh(self, x: Operand) -> Any:
        return self._unary("tanh", x)

    def asinh(self, x: Operand) -> Any:
        return self._unary("asinh", x)

    def acosh(self, x: Operand) -> Any:
        return self._unary("acosh", x)

    def atanh(self, x: Operand) -> Any:
        return self._unary("atanh", x)

    def logistic(self, x: Operand) -> Any:
        return self._unary("logistic", x)

    def erf(self, x: Operand) -> Any:
        return self._unary("erf", x)

    def erfc(self, x: Operand) -> Any:
        return self._unary("erfc", x)

    def rsqrt(self, x: Operand) -> Any:
        return self._unary("rsqrt", x)

    def cbrt(self, x: Operand) -> Any:
        return self._unary("cbrt", x)

    def erfinv(self, x: Operand) -> Any:
        return self._unary("erfinv", x)

    def lgamma(self, x: Operand) -> Any:
        return self._unary("lgamma", x)

    def digamma(self, x: Operand) -> Any:
        return self._unary("digamma", x)

    def atan2(self, x: Operand, y: Operand) -> Any:
        return self._binary("atan2", x, y)

    def hypot(self, x: Operand, y: Operand) -> Any:
        return self._binary("hypot", x, y)

    def nextafter(self, x: Operand, y: Operand) -> Any:
        x, y = self._pair(x, y)
        invariant(dtype_of(x) not in HALF, "nextafter: f16/bf16 is done on bits by the ops layer")
        return self._binary("nextafter", x, y)

    def pow(self, x: Operand, y: Operand) -> Any:
        return self._binary("pow", x, y)
