"""The closed table of scalar opcodes: name, arity, result type.

Kinds of opcode:
  machine     the LLVM emitter knows it (a few instructions)
  math        expanded by compiler/llvm/math/ into machine opcodes before emission

The NumPy reference of each opcode is what loopir/interp.py runs.

Result types: "same" (the type of the first operand; all operands alike), "bool" (comparison),
"attr" (the target dtype is given), "i32"...
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ScalarOp:
    name: str
    arity: int
    result: str  # "same" | "bool" | "attr"
    kind: str  # "machine" | "math"
    domain: str  # dtypes it takes: letters of b(ool) i(nt) u(int) f(loat)


SCALAR_OPS: dict[str, ScalarOp] = {}


def _define(names: str, arity: int, result: str, kind: str, domain: str) -> None:
    for name in names.split():
        SCALAR_OPS[name] = ScalarOp(name, arity, result, kind, domain)


# Arithmetic.  Integers wrap.  Floats are IEEE, round to nearest.
_define("add sub mul", 2, "same", "machine", "iuf")
_define("neg abs", 1, "same", "machine", "iuf")
_define("fma", 3, "same", "machine", "f")  # one rounding
# div: floats IEEE.  Integers: quotient rounded toward zero; x/0 = -1 (all ones), MIN/-1 = MIN.
# rem: sign of the dividend.  Integers: x rem 0 = x, MIN rem -1 = 0.  Floats: C's fmod.
# The builder's floor_divide/remainder of the ops layer are composed from these.
_define("div rem", 2, "same", "machine", "iuf")
# max, min: NaN if either operand is NaN.
_define("max min", 2, "same", "machine", "biuf")
# maxnum, minnum: one hardware instruction; the second operand if either is NaN.
_define("maxnum minnum", 2, "same", "machine", "f")
_define("and or xor", 2, "same", "machine", "biu")
_define("not", 1, "same", "machine", "biu")
# Shifts by >= the bit width give 0 (or the sign for shr of signed integers).
_define("shl shr_logical shr_arithmetic", 2, "same", "machine", "iu")
_define("popcount clz ctz", 1, "same", "machine", "iu")
_define("mulhi", 2, "same", "machine", "iu")  # high half of the double-width product
# Comparisons.  Floats: ordered (false with NaN) except ne, which is true with NaN.
_define("eq ne lt le gt ge", 2, "bool", "machine", "biuf")
_define("select", 3, "same2", "machine", "biuf")  # select(bool, x, y), type of x
_define("sqrt floor ceil trunc round_even copysign", 1, "same", "machine", "f")
SCALAR_OPS["copysign"] = ScalarOp("copysign", 2, "same", "machine", "f")
_define("is_nan", 1, "bool", "machine", "f")
# Conversions.  float -> int saturates, NaN -> 0.  int -> int wraps.  any -> bool is != 0.
# bitcast keeps the bits (equal itemsize).
_define("convert bitcast", 1, "attr", "machine", "biuf")
# lookup: entry (operand modulo LOOKUP_ENTRIES) of a table of f32, which is the attribute.  Only the
# expansions of math opcodes make it, for machines that hold such a table in two registers.
LOOKUP_ENTRIES = 32
_define("lookup", 1, "attr", "machine", "u")
# Functions of one real argument, f32 and f64: at most 2 ULP, special values exact.
_define(
    "exp exp2 expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh "
    "atanh logistic erf erfc rsqrt cbrt",
    1, "same", "math", "f",
)  # fmt: skip
_define("erfinv lgamma digamma", 1, "same", "math", "f")  # erfinv: 4 ULP
_define("atan2 hypot nextafter", 2, "same", "math", "f")
_define("pow", 2, "same", "math", "f")  # 4 ULP


# What a math opcode costs where another operation counts 1: about as many as its formula has.
MATH_COST = 20


def is_math(op: str) -> bool:
    """Whether an operation of the loop IR is an opcode of kind `math`."""
    info = SCALAR_OPS.get(op)
    return info is not None and info.kind == "math"
