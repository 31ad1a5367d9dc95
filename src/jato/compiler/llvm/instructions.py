"""Scalar opcodes as LLVM instructions, for scalars and vectors alike.

`emit_operation(code, op, attr, dtype, source, operands, lanes)` writes the instructions of one
machine opcode and gives the text of its value.  `lanes == 0` is a scalar, otherwise a vector.
`code` is where the text goes (`Code`).

Dtypes in registers: bool is i1 (a byte in memory), f16 is half, bf16 is its bits in an i16 (LLVM's
own bfloat goes through a library call, or flushes subnormals).  Signedness lives in the opcodes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from jato.base.errors import invariant
from jato.loopir.grammar import ITEMSIZE

SCALAR_TYPE = {
    "bool": "i1", "i8": "i8", "u8": "i8", "i16": "i16", "u16": "i16", "i32": "i32", "u32": "i32",
    "i64": "i64", "u64": "i64", "f16": "half", "bf16": "i16", "f32": "float", "f64": "double",
}  # fmt: skip
MEMORY_TYPE = {**SCALAR_TYPE, "bool": "i8"}
BITS = {dtype: size * 8 for dtype, size in ITEMSIZE.items()} | {"bool": 1}
_FLOATS = ("f16", "bf16", "f32", "f64")
_INTRINSIC_SUFFIX = {"float": "f32", "double": "f64", "half": "f16"}


class Code:
    """One straight run of instructions, growing; `label` is the basic block it ends in."""

    __slots__ = ("function", "label", "lines")

    def __init__(self, function: FunctionText, label: str):
        self.function = function
        self.lines: list[str] = []
        self.label = label

    def ins(self, text: str) -> str:
        """Appends an instruction with a result; gives the result's name."""
        name = self.function.name("v")
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Appends an instruction without a result."""
        self.lines.append(f"  {text}")

    def start(self, label: str) -> None:
        """Begins a new basic block."""
        self.lines.append(f"{label}:")
        self.label = label

    def call(
        self, intrinsic: str, result: str, types: Sequence[str], operands: Sequence[str]
    ) -> str:
        """Calls an LLVM intrinsic with a result, declaring it."""
        self.function.declare(intrinsic, result, types)
        arguments = ", ".join(f"{t} {v}" for t, v in zip(types, operands, strict=True))
        return self.ins(f"call {result} @{intrinsic}({arguments})")


class FunctionText:
    """Names, labels and declarations of one function."""

    def __init__(self, declarations: dict[str, str]):
        self.declarations = declarations
        self._count = 0

    def name(self, prefix: str) -> str:
        self._count += 1
        return f"%{prefix}{self._count}"

    def label(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def declare(self, intrinsic: str, result: str, types: Sequence[str]) -> None:
        if intrinsic not in self.declarations:
            self.declarations[intrinsic] = f"declare {result} @{intrinsic}({', '.join(types)})"


def type_of(dtype: str, lanes: int) -> str:
    scalar = SCALAR_TYPE[dtype]
    return f"<{lanes} x {scalar}>" if lanes else scalar


def suffix(type_text: str) -> str:
    """The part of an intrinsic's name that stands for a type: v16f32, i64."""
    if type_text.startswith("<"):
        count, scalar = type_text[1:-1].split(" x ")
        return f"v{count}{_INTRINSIC_SUFFIX.get(scalar, scalar)}"
    return _INTRINSIC_SUFFIX.get(type_text, type_text)


def constant(value: object, dtype: str) -> str:
    """A scalar constant as LLVM text."""
    if dtype == "bool":
        return "true" if value else "false"
    if dtype in ("f32", "f64"):
        number = float(value)  # type: ignore[arg-type]
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    if dtype == "f16":
        return f"0xH{struct.unpack('<H', struct.pack('<e', float(value)))[0]:04X}"  # type: ignore[arg-type]
    if dtype == "bf16":
        bits = struct.unpack("<I", struct.pack("<f", float(value)))[0] >> 16  # type: ignore[arg-type]
        return str(bits if bits < 1 << 15 else bits - (1 << 16))
    bits = BITS[dtype]
    number = int(value)  # type: ignore[call-overload]
    return str(number if number < 1 << (bits - 1) else number - (1 << bits))


def splat_constant(text: str, scalar_type: str) -> str:
    """A constant in every lane."""
    if text in ("0", "false", "0x0000000000000000", "0xH0000"):
        return "zeroinitializer"
    return f"splat ({scalar_type} {text})"


def splat(code: Code, value: str, scalar_type: str, lanes: int) -> str:
    """A scalar register in every lane."""
    vector = f"<{lanes} x {scalar_type}>"
    first = code.ins(f"insertelement {vector} poison, {scalar_type} {value}, i64 0")
    return code.ins(
        f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer"
    )


def lane_numbers(scalar_type: str, lanes: int, step: int = 1) -> str:
    """The constant <0, step, 2 * step, ...>, wrapped to the type."""
    half = 1 << (int(scalar_type[1:]) - 1)
    numbers = ((i * step + half) % (2 * half) - half for i in range(lanes))
    return "<" + ", ".join(f"{scalar_type} {n}" for n in numbers) + ">"


def literal(value: int | float | bool, dtype: str, lanes: int) -> str:
    text = constant(value, dtype)
    return splat_constant(text, SCALAR_TYPE[dtype]) if lanes else text


def emit_operation(
    code: Code, op: str, attr: object, dtype: str, source: str, operands: Sequence[str], lanes: int
) -> str:
    """One machine opcode; `source` is the dtype of its (last) operand, `dtype` of its result."""
    simple = _SIMPLE.get(op)
    if simple is not None:
        integer, floating = simple
        if source in _FLOATS:
            invariant(floating, f"{op} on {source}")
            flags = "" if attr == "exact" else " contract"
            word = f"{floating}{flags}"
        else:
            word = integer
        return code.ins(f"{word} {type_of(source, lanes)} {operands[0]}, {operands[1]}")
    if op in _COMPARE:
        return _compare(code, op, source, operands, lanes)
    if op in ("convert", "bitcast"):
        function = convert if op == "convert" else _bitcast
        return function(code, operands[0], source, dtype, lanes)
    if op == "is_nan":
        return code.ins(f"fcmp uno {type_of(source, lanes)} {operands[0]}, {operands[0]}")
    return _SPECIAL[op](code, op, dtype, operands, lanes)


# opcode -> (integer instruction, float instruction)
_SIMPLE = {
    "add": ("add", "fadd"),
    "sub": ("sub", "fsub"),
    "mul": ("mul", "fmul"),
    "and": ("and", ""),
    "or": ("or", ""),
    "xor": ("xor", ""),
}
# opcode -> (signed, unsigned, float)
_COMPARE = {
    "eq": ("eq", "eq", "oeq"),
    "ne": ("ne", "ne", "une"),
    "lt": ("slt", "ult", "olt"),
    "le": ("sle", "ule", "ole"),
    "gt": ("sgt", "ugt", "ogt"),
    "ge": ("sge", "uge", "oge"),
}


def _compare(code: Code, op: str, source: str, operands: Sequence[str], lanes: int) -> str:
    signed, unsigned, ordered = _COMPARE[op]
    kind = type_of(source, lanes)
    if source in _FLOATS:
        return code.ins(f"fcmp {ordered} {kind} {operands[0]}, {operands[1]}")
    predicate = signed if source[0] == "i" else unsigned
    return code.ins(f"icmp {predicate} {kind} {operands[0]}, {operands[1]}")


def select(code: Code, condition: str, x: str, y: str, kind: str, lanes: int) -> str:
    """x where the condition, with `lanes` lanes of its own (0: one for all)."""
    mask = f"<{lanes} x i1>" if lanes else "i1"
    return code.ins(f"select {mask} {condition}, {kind} {x}, {kind} {y}")


def _bool_type(lanes: int) -> str:
    return type_of("bool", lanes)


def _neg(code: Code, op: str, dtype: str, v: Sequence[str], lanes: int) -> str:
    kind = type_of(dtype, lanes)
    if dtype in _FLOATS:
        return code.ins(f"fneg {kind} {v[0]}")
    return code.ins(f"sub {kind} {literal(0, dtype, lanes)}, {v[0]}")


def _abs(code: Code, op: str, dtype: str, v: Sequence[str], lanes: int) -> str:
    kind = type_of(dtype, lanes)
    if dtype in _FLOATS:
        return code.call(f"llvm.fabs.{suffix(kind)}", kind, [kind], v)
    if dtype[0] == "u":
        return v[0]
    return code.call(f"llvm.abs.{suffix(kind)}", kind, [kind, "i1"], [v[0], "false"])


def _intrinsic(name: str) -> Callable[..., str]:
    def emit(code: Code, op: str, dtype: str, v: Sequence[str], lanes: int) -> str:
        kind = type_of(dtype, lanes)
        return code.call(f"llvm.{name}.{suffix(kind)}", kind, [kind] * len(v), v)

    return emit


def _bit_count(name: str) -> Callable[..., str]:
    def emit(code: Code, op: str, dtype: str, v: Sequence[str], lanes: int) -> str:
        kind = type_of(dtype, lanes)
        return code.call(f"llvm.{name}.{suffix(kind)}", kind, [kind, "i1"], [v[0], "false"])

    return emit


def _extremum(code: Code, op: str, dtype: str, v: Sequence[str], lanes: int) -> str:
    """NaN if either is NaN.  `y > x ? y : x` is one instruction, right but for a NaN in y.

    The check looks at the second operand: not the running total of a reduction, whose chain of
    dependences stays short, and not at all when it is a constant (relu)."""
    kind = type_of(dtype, lanes)
    if dtype == "bool":
        return code.ins(f"{'or' if op == 'max' else 'and'} {kind} {v[0]}, {v[1]}")
    if dtype not in _FLOATS:
        sign = "s" if dtype[0] == "i" else "u"
        return code.call(f"llvm.{sign}{op}.{suffix(kind)}", kind, [kind, kind], v)
    x, y = (v[1], v[0]) if _is_number(v[0]) else v
    best = _maxnum(code, op, dtype, (y, x), lanes)
    if _is_number(y):
        return best
    nan = code.ins(f"fcmp uno {kind} {y}, {y}")
    return select(code, nan, y, best, kind, lanes)


def _maxnum(code: Code, op: str, dtype: str, v: Sequence[str], lanes: int) -> str:
    kind = type_of(dtype, lanes)
    order = code.ins(f"fcmp {'ogt' if op.startswith('max') else 'olt'} {kind} {v[0]}, {v[1]}")
    return select(code, order, v[0], v[1], kind, lanes)


def _not(code: Code, op: str, dtype: str, v: Sequence[str], lanes: int) -> str:
    ones = literal(True if dtype == "bool" else -1, dtype, lanes)
    return code.ins(f"xor {type_of(dtype, lanes)} {v[0]}, {ones}")


def _shift(code: Code, op: str, dtype: str, v: Sequence[str], lanes: int) -> str:
    kind, bits = type_of(dtype, lanes), BITS[dtype]
    known = _constant_below(v[1], bits)
    if op == "shr_arithmetic":
        amount = v[1]
        if not known:
            limit = literal(bits - 1, dtype, lanes)
            amount = code.call(f"llvm.umin.{suffix(kind)}", kind, [kind, kind], [v[1], limit])
        return code.ins(f"ashr {kind} {v[0]}, {amount}")
    moved = code.ins(f"{'shl' if op == 'shl' else 'lshr'} {kind} {v[0]}, {v[1]}")
    if known:
        return moved
    inside = code.ins(f"icmp ult {kind} {v[1]}, {literal(bits, dtype, lanes)}")
    return select(code, inside, moved, literal(0, dtype, lanes), kind, lanes)


def _constant_below(text: str, limit: int) -> bool:
    if text == "zeroinitializer":
        return True
    digits = text[text.rfind(" ") + 1 : -1] if text.startswith("splat") else text
    return digits.isdigit() and int(digits) < limit


def _is_constant(text: str) -> bool:
    return not text.startswith("%") and not text.startswith("<")


def _is_number(text: str) -> bool:
    """A float constant that is not NaN."""
    return _is_constant(text) and "0x7FF8" not in text and "0xFFF8" not in text


def _mulhi(code: Code, op: str, dtype: str, v: Sequence[str], lanes: int) -> str:
    bits = BITS[dtype]
    kind = type_of(dtype, lanes)
    if bits == 64 and lanes:
        return _mulhi_by_halves(code, dtype, v, lanes)
    wide = f"<{lanes} x i{2 * bits}>" if lanes else f"i{2 * bits}"
    extend = "sext" if dtype[0] == "i" else "zext"
    x, y = (code.ins(f"{extend} {kind} {a} to {wide}") for a in v)
    product = code.ins(f"mul {wide} {x}, {y}")
    shift = f"splat (i{2 * bits} {bits})" if lanes else str(bits)
    high = code.ins(f"lshr {wide} {product}, {shift}")
    return code.ins(f"trunc {wide} {high} to {kind}")


def _mulhi_by_halves(code: Code, dtype: str, v: Sequence[str], lanes: int) -> str:
    """The schoolbook product of 32-bit halves: LLVM would take 128-bit lanes apart."""
    kind = type_of(dtype, lanes)
    low_mask, shift = f"splat (i64 {0xFFFFFFFF})", "splat (i64 32)"

    def both(word: str, x: str, y: str) -> str:
        return code.ins(f"{word} {kind} {x}, {y}")

    x0, y0 = both("and", v[0], low_mask), both("and", v[1], low_mask)
    x1, y1 = both("lshr", v[0], shift), both("lshr", v[1], shift)
    low = both("mul", x0, y0)
    cross = both("add", both("mul", x1, y0), both("lshr", low, shift))
    other = both("add", both("mul", x0, y1), both("and", cross, low_mask))
    high = both("add", both("mul", x1, y1), both("lshr", cross, shift))
    high = both("add", high, both("lshr", other, shift))
    if dtype[0] == "u":
        return high
    sign = "splat (i64 63)"
    first = both("and", both("ashr", v[0], sign), v[1])
    second = both("and", both("ashr", v[1], sign), v[0])
    return both("sub", both("sub", high, first), second)


# ---- division


def _div(code: Code, op: str, dtype: str, v: Sequence[str], lanes: int) -> str:
    kind = type_of(dtype, lanes)
    if dtype in _FLOATS:
        # frem is a call per lane: see remainder.py, which leaves only rare cases to it
        return code.ins(f"{'fdiv' if op == 'div' else 'frem'} {kind} {v[0]}, {v[1]}")
    signed = dtype[0] == "i"
    if _is_constant(v[1]) and v[1] != "zeroinitializer" and v[1] not in ("0", "-1"):
        word = ("s" if signed else "u") + op
        if not (signed and v[1].endswith(" -1)")):
            return code.ins(f"{word} {kind} {v[0]}, {v[1]}")
    return _safe_division(code, op, dtype, v, lanes)


def _safe_division(code: Code, op: str, dtype: str, v: Sequence[str], lanes: int) -> str:
    """x / 0 = -1 and MIN / -1 = MIN without trapping: such divisors are replaced by 1."""
    kind, x, y = type_of(dtype, lanes), v[0], v[1]
    signed = dtype[0] == "i"
    one, ones, zero = literal(1, dtype, lanes), literal(-1, dtype, lanes), literal(0, dtype, lanes)
    by_zero = code.ins(f"icmp eq {kind} {y}, {zero}")
    bad = by_zero
    by_minus_one = ""
    if signed:
        by_minus_one = code.ins(f"icmp eq {kind} {y}, {ones}")
        bad = code.ins(f"or {_bool_type(lanes)} {by_zero}, {by_minus_one}")
    divisor = select(code, bad, one, y, kind, lanes)
    quotient = _quotient(code, dtype, x, divisor, lanes)
    if signed:
        negated = code.ins(f"sub {kind} {zero}, {x}")
        quotient = select(code, by_minus_one, negated, quotient, kind, lanes)
    quotient = select(code, by_zero, ones, quotient, kind, lanes)
    if op == "div":
        return quotient
    return code.ins(f"sub {kind} {x}, {code.ins(f'mul {kind} {quotient}, {y}')}")


def _quotient(code: Code, dtype: str, x: str, y: str, lanes: int) -> str:
    """Machines divide vectors of floats only; an f64 quotient of i32s truncates right."""
    kind, letter = type_of(dtype, lanes), "s" if dtype[0] == "i" else "u"
    if not lanes or BITS[dtype] > 32:
        return code.ins(f"{letter}div {kind} {x}, {y}")
    wide = type_of("f64" if BITS[dtype] == 32 else "f32", lanes)
    p, q = (code.ins(f"{letter}itofp {kind} {a} to {wide}") for a in (x, y))
    ratio = code.ins(f"fdiv {wide} {p}, {q}")
    return code.ins(f"fpto{letter}i {wide} {ratio} to {kind}")


def index_quotient(code: Code, x: str, y: str, lanes: int) -> str:
    """x div y of non-negative i64s below 2^53, y > 0: the f64 quotient truncates right."""
    kind, wide = type_of("i64", lanes), type_of("f64", lanes)
    p, q = (code.ins(f"sitofp {kind} {a} to {wide}") for a in (x, y))
    return code.ins(f"fptosi {wide} {code.ins(f'fdiv {wide} {p}, {q}')} to {kind}")


# ---- conversions


def convert(code: Code, x: str, source: str, target: str, lanes: int) -> str:
    """float -> int saturates, NaN to 0; int -> int wraps; anything -> bool is != 0."""
    if source == target:
        return x
    kind, result = type_of(source, lanes), type_of(target, lanes)
    if source == "bf16":
        return convert(code, _from_bf16(code, x, lanes), "f32", target, lanes)
    if target == "bf16":
        return _to_bf16(code, _as_f32(code, x, source, lanes), lanes)
    if source in _FLOATS:
        return _convert_float(code, x, source, target, lanes)
    if target == "bool":
        return code.ins(f"icmp ne {kind} {x}, {literal(0, source, lanes)}")
    if target == "f16":
        wide = convert(code, x, source, "f32", lanes)
        return code.ins(f"fptrunc {type_of('f32', lanes)} {wide} to {result}")
    if target in _FLOATS:
        if source == "bool":
            one, zero = literal(1.0, target, lanes), literal(0.0, target, lanes)
            return select(code, x, one, zero, result, lanes)
        return code.ins(f"{'si' if source[0] == 'i' else 'ui'}tofp {kind} {x} to {result}")
    if SCALAR_TYPE[source] == SCALAR_TYPE[target]:
        return x
    if BITS[target] < BITS[source]:
        return code.ins(f"trunc {kind} {x} to {result}")
    return code.ins(f"{'sext' if source[0] == 'i' else 'zext'} {kind} {x} to {result}")


def _convert_float(code: Code, x: str, source: str, target: str, lanes: int) -> str:
    kind, result = type_of(source, lanes), type_of(target, lanes)
    if target == "bool":
        return code.ins(f"fcmp une {kind} {x}, {literal(0.0, source, lanes)}")
    if target in _FLOATS:
        if target == "f16" and source == "f64":
            x = _round_to_odd(code, x, lanes)
            kind = type_of("f32", lanes)
        word = "fpext" if BITS[target] > BITS[source] else "fptrunc"
        return code.ins(f"{word} {kind} {x} to {result}")
    if source == "f16":
        x, kind = code.ins(f"fpext {kind} {x} to {type_of('f32', lanes)}"), type_of("f32", lanes)
        source = "f32"
    if lanes:
        return _saturated(code, x, source, target, lanes)
    name = f"llvm.fpto{'s' if target[0] == 'i' else 'u'}i.sat.{suffix(result)}.{suffix(kind)}"
    return code.call(name, result, [kind], [x])


def _saturated(code: Code, x: str, source: str, target: str, lanes: int) -> str:
    """Vectors of f32 or f64 -> integers.  LLVM has an intrinsic for this, which it takes apart into
    scalars for vectors of 16 or 8: 60 to 120 instructions, where these are seven."""
    signed, bits = target[0] == "i", BITS[target]
    wide = target if bits >= 32 else "i32"
    kind, whole, result = (type_of(t, lanes) for t in (source, wide, target))
    low = literal(-(2.0 ** (bits - 1)) if signed else 0.0, source, lanes)
    high = literal(2.0 ** (bits - 1 if signed else bits), source, lanes)
    above = code.ins(f"fcmp oge {kind} {x}, {low}")
    bounded = select(code, above, x, low, kind, lanes)
    below = code.ins(f"fcmp olt {kind} {bounded}, {high}")
    bounded = select(code, below, bounded, literal(0.0, source, lanes), kind, lanes)
    word = "fptosi" if wide[0] == "i" else "fptoui"
    number = code.ins(f"{word} {kind} {bounded} to {whole}")
    greatest = 2 ** (bits - 1 if signed else bits) - 1
    number = select(code, below, number, literal(greatest, wide, lanes), whole, lanes)
    is_number = code.ins(f"fcmp ord {kind} {x}, {x}")
    number = select(code, is_number, number, literal(0, wide, lanes), whole, lanes)
    return number if wide == target else code.ins(f"trunc {whole} {number} to {result}")


def _as_f32(code: Code, x: str, source: str, lanes: int) -> str:
    """f32 such that rounding it once more, to bf16, is correct (int64: as NumPy, twice)."""
    if source == "f64":
        return _round_to_odd(code, x, lanes)
    return convert(code, x, source, "f32", lanes)


def _round_to_odd(code: Code, x: str, lanes: int) -> str:
    """f64 -> f32 toward zero with the last bit set if inexact: a later rounding cannot err."""
    wide, narrow, bits = type_of("f64", lanes), type_of("f32", lanes), type_of("i32", lanes)
    one = literal(1, "i32", lanes)
    near = code.ins(f"fptrunc {wide} {x} to {narrow}")
    back = code.ins(f"fpext {narrow} {near} to {wide}")
    raw = code.ins(f"bitcast {narrow} {near} to {bits}")
    big = code.call(f"llvm.fabs.{suffix(wide)}", wide, [wide], [back])
    size = code.call(f"llvm.fabs.{suffix(wide)}", wide, [wide], [x])
    over = code.ins(f"fcmp ogt {wide} {big}, {size}")
    lower = code.ins(f"sub {bits} {raw}, {one}")
    toward_zero = select(code, over, lower, raw, bits, lanes)
    odd = code.ins(f"or {bits} {toward_zero}, {one}")
    inexact = code.ins(f"fcmp one {wide} {back}, {x}")
    chosen = select(code, inexact, odd, raw, bits, lanes)
    return code.ins(f"bitcast {bits} {chosen} to {narrow}")


def _from_bf16(code: Code, x: str, lanes: int) -> str:
    wide = type_of("i32", lanes)
    bits = code.ins(f"zext {type_of('bf16', lanes)} {x} to {wide}")
    high = code.ins(f"shl {wide} {bits}, {literal(16, 'i32', lanes)}")
    return code.ins(f"bitcast {wide} {high} to {type_of('f32', lanes)}")


def _to_bf16(code: Code, x: str, lanes: int) -> str:
    """Round to nearest even on the bits; NaN stays NaN (quiet)."""
    narrow, bits = type_of("f32", lanes), type_of("i32", lanes)

    def both(word: str, p: str, q: str) -> str:
        return code.ins(f"{word} {bits} {p}, {q}")

    sixteen = literal(16, "i32", lanes)
    raw = code.ins(f"bitcast {narrow} {x} to {bits}")
    last = both("and", both("lshr", raw, sixteen), literal(1, "i32", lanes))
    rounded = both("add", both("add", raw, last), literal(0x7FFF, "i32", lanes))
    nan = code.ins(f"fcmp uno {narrow} {x}, {x}")
    quiet = both("or", raw, literal(0x400000, "i32", lanes))
    chosen = select(code, nan, quiet, rounded, bits, lanes)
    return code.ins(f"trunc {bits} {both('lshr', chosen, sixteen)} to {type_of('bf16', lanes)}")


def _bitcast(code: Code, x: str, source: str, target: str, lanes: int) -> str:
    kind, result = type_of(source, lanes), type_of(target, lanes)
    if source == "bool":
        return code.ins(f"zext {kind} {x} to {result}")
    if target == "bool":
        return code.ins(f"icmp ne {kind} {x}, {literal(0, source, lanes)}")
    if kind == result:
        return x
    return code.ins(f"bitcast {kind} {x} to {result}")


_SPECIAL: dict[str, Callable[..., str]] = {
    "neg": _neg,
    "abs": _abs,
    "fma": _intrinsic("fma"),
    "div": _div,
    "rem": _div,
    "max": _extremum,
    "min": _extremum,
    "maxnum": _maxnum,
    "minnum": _maxnum,
    "not": _not,
    "shl": _shift,
    "shr_logical": _shift,
    "shr_arithmetic": _shift,
    "popcount": _intrinsic("ctpop"),
    "clz": _bit_count("ctlz"),
    "ctz": _bit_count("cttz"),
    "mulhi": _mulhi,
    "sqrt": _intrinsic("sqrt"),
    "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"),
    "trunc": _intrinsic("trunc"),
    "round_even": _intrinsic("roundeven"),
    "copysign": _intrinsic("copysign"),
}
