"""Random array programs with an oracle, for differential tests.

A program is a list of steps over a growing pool of values; `build` makes it while it evaluates
the same steps with NumPy in exact arithmetic (int64, float64, complex128).  Data are small
integers, so most results are exact in every dtype and must agree to the last bit; each value
carries a bound of its rounding error, 0 for these.  Only exact values enter steps that jump
(comparisons, sorting, casts to integers).

Start at `build`; a kind of step is one entry of STEPS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import jato
import jato.numpy as jnp

LENGTHS = (0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100)
MOST_ELEMENTS = 6000
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = tuple(
    map(np.dtype, ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float16",
                   "float32", "float32", "float32", "complex64"))
) + (BFLOAT16,)  # fmt: skip
WIDE_DTYPES = (*DTYPES, *map(np.dtype, ("int64", "float64", "float64", "complex128")))
# Integers up to here are exact.
EXACT = {
    BFLOAT16: 2**8, np.dtype("float16"): 2**11, np.dtype("float32"): 2**24,
    np.dtype("float64"): 2**53, np.dtype("complex64"): 2**23, np.dtype("complex128"): 2**52,
}  # fmt: skip
# Values stay below, so that no bound of errors explodes.
LARGEST = 1e4


def is_float(dtype: np.dtype) -> bool:
    return dtype in EXACT and dtype.kind != "c"


def is_complex(dtype: np.dtype) -> bool:
    return dtype.kind == "c"


def is_integer(dtype: np.dtype) -> bool:
    return dtype.kind in "iu"


def epsilon(dtype: np.dtype) -> float:
    return 2.0 / EXACT[dtype] if dtype in EXACT else 0.0


@dataclass(eq=False)
class Value:
    """What NumPy says a value is: `data` in exact arithmetic, its dtype, a bound of the error."""

    data: np.ndarray
    dtype: np.dtype
    error: float = 0.0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def finite(self) -> bool:
        return bool(np.all(np.isfinite(self.data)))

    @property
    def largest(self) -> float:
        finite = np.abs(self.data[np.isfinite(self.data)]).astype(float)
        return float(finite.max()) if finite.size else 0.0


@dataclass
class Step:
    """function(jnp or np, *operands) -> value.  `growth`: how much it enlarges errors."""

    name: str
    operands: tuple[int, ...]
    function: Callable[..., Any]
    growth: float = 1.0
    rounds: bool = False
    # magnitude of what is added up inside, where that exceeds the result's
    inside: float = 0.0


@dataclass
class Program:
    inputs: list[np.ndarray] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    closed: frozenset[int] = frozenset()  # inputs that the jitted function closes over

    def run(self, *inputs: Any) -> list[Any]:
        values = list(inputs)
        for step in self.steps:
            values.append(step.function(jnp, *(values[i] for i in step.operands)))
        return [values[i] for i in self.results]

    def __str__(self) -> str:
        lines = [f"v{i} = input {a.dtype}{list(a.shape)}" for i, a in enumerate(self.inputs)]
        lines = [
            line + (" (closed over)" if i in self.closed else "") for i, line in enumerate(lines)
        ]
        for i, step in enumerate(self.steps, len(self.inputs)):
            v = self.values[i]
            args = ", ".join(f"v{j}" for j in step.operands)
            lines.append(f"v{i} = {step.name}({args})  : {v.dtype}{list(v.shape)} +-{v.error:.1e}")
        return "\n".join([*lines, "return " + ", ".join(f"v{i}" for i in self.results)])


def as_exact(data: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Data of a step in the oracle's arithmetic, wrapped as `dtype` wraps."""
    data = np.asarray(data)
    if dtype.kind == "b":
        return data.astype(bool)
    if is_integer(dtype):
        return data.astype(dtype).astype(np.int64)
    return data.astype(np.complex128 if is_complex(dtype) else np.float64)


class Builder:
    def __init__(self, seed: int, dtypes: tuple[np.dtype, ...] = DTYPES):
        self.rng = np.random.default_rng(seed)
        self.dtypes = dtypes
        self.program = Program()
        self.arrays: list[Any] = []  # jato's eager values, for their dtypes

    # ---- choices

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def pick(self, items: Any) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def shape(self) -> tuple[int, ...]:
        rank = int(self.rng.choice(5, p=(0.07, 0.25, 0.38, 0.22, 0.08)))
        while True:
            found = tuple(int(self.pick(LENGTHS)) for _ in range(rank))
            if np.prod(found) <= MOST_ELEMENTS:
                return found

    def find(self, accept: Callable[[Value], bool]) -> int | None:
        """A value that is accepted, recent ones preferred."""
        values = self.program.values
        good = [i for i, v in enumerate(values) if accept(v)]
        if not good:
            return None
        weights = np.linspace(1.0, 3.0, len(good))
        return int(self.rng.choice(good, p=weights / weights.sum()))

    def value(self, i: int) -> Value:
        return self.program.values[i]

    # ---- inputs

    def add_input(self, shape: tuple[int, ...] | None = None) -> None:
        shape = self.shape() if shape is None else shape
        dtype = self.pick(self.dtypes)
        low, high = (0, 2) if dtype.kind == "b" else (0, 7) if dtype.kind == "u" else (-6, 7)
        data = self.rng.integers(low, high, shape)
        exact = as_exact(data, dtype)
        if is_complex(dtype):
            exact = exact + 1j * self.rng.integers(-6, 7, shape)
        if is_float(dtype) and exact.size and self.chance(0.1):
            flat = exact.reshape(-1)
            for special in (np.nan, np.inf, -np.inf):
                if self.chance(0.6):
                    flat[int(self.rng.integers(flat.size))] = special
            exact = flat.reshape(shape)
        self.program.inputs.append(self.view(np.asarray(exact, dtype)))
        self.program.values.append(Value(exact, dtype))
        self.arrays.append(jnp.asarray(self.program.inputs[-1]))

    def view(self, a: np.ndarray) -> np.ndarray:
        """The same numbers, perhaps laid out otherwise: transposed, reversed, strided, read-only."""
        kind = int(self.rng.integers(7))
        if kind == 0 and a.ndim:
            a = np.asfortranarray(a)
        elif kind == 1 and a.ndim:
            a = np.flip(np.flip(a, -1).copy(), -1)
        elif kind == 2 and a.ndim:
            base = np.zeros((*a.shape[:-1], 2 * a.shape[-1] + 1), a.dtype)
            base[..., 1::2] = a
            a = base[..., 1::2]
        elif kind == 3:
            base = np.empty((3, *a.shape), a.dtype)
            base[1] = a
            a = base[1]
        elif kind == 4:
            raw = np.zeros(a.nbytes + 1, np.uint8)[1:]  # not aligned
            b = raw[: a.nbytes].view(a.dtype).reshape(a.shape) if a.size else a
            b[...] = a
            a = b
        elif kind == 5:
            a = a.copy()
            a.flags.writeable = False
        return a

    # ---- steps

    def add(self, step: Step | None) -> bool:
        """Appends a step, unless its result is out of bounds."""
        if step is None:
            return False
        values = [self.value(i) for i in step.operands]
        with np.errstate(all="ignore"):
            data = np.asarray(step.function(np, *(v.data for v in values)))
        if data.size > MOST_ELEMENTS:
            return False
        array = step.function(jnp, *(self.arrays[i] for i in step.operands))
        dtype = np.dtype(array.dtype)
        exact = as_exact(data, dtype)
        value = Value(exact, dtype)
        if dtype in EXACT:
            incoming = max((v.error for v in values), default=0.0)
            magnitude = max(value.largest, step.inside)
            if magnitude > LARGEST:
                return False
            value.error = step.growth * incoming
            # A rounding occurs in the coarsest dtype around
            rough = max(epsilon(dtype), *(epsilon(v.dtype) for v in values))
            if step.rounds or magnitude > min(EXACT[dtype], 2 / rough):
                value.error += 16 * rough * max(magnitude, 1e-2)
            if value.error > 0.02 * max(value.largest, 1.0):
                return False
        elif any(v.error for v in values):
            return False
        self.program.steps.append(step)
        self.program.values.append(value)
        self.arrays.append(array)
        return True


def build(seed: int, dtypes: tuple[np.dtype, ...] = DTYPES, length: int | None = None) -> Program:
    """The program of a seed."""
    b = Builder(seed, dtypes)
    for _ in range(int(b.rng.integers(1, 4))):
        b.add_input()
    if b.chance(0.5):  # one that fits another
        b.add_input(b.value(0).shape)
    wanted = length or int(b.rng.integers(1, 14))
    tries = 0
    while len(b.program.steps) < wanted and tries < 10 * wanted:
        tries += 1
        b.add(b.pick(STEPS)(b))
    program = b.program
    count = len(program.values)
    program.results = [count - 1]
    program.results += [i for i in range(count - 1) if b.chance(0.15)]
    if b.chance(0.1):
        program.results.append(count - 1)
    program.closed = frozenset(i for i in range(len(program.inputs)) if b.chance(0.15))
    return program


# ---- kinds of steps


def unary(b: Builder) -> Step | None:
    name = b.pick(("negative", "abs", "sign", "square", "floor", "invert", "conj", "real", "imag",
                   "logical_not", "isnan", "positive"))  # fmt: skip
    jumps = name in ("sign", "floor", "logical_not", "isnan")

    def accept(v: Value) -> bool:
        if jumps and v.error:
            return False
        if name == "invert":
            return v.dtype.kind in "biu"
        if name in ("conj", "real", "imag"):
            return is_complex(v.dtype)
        if name in ("floor", "isnan"):
            return is_float(v.dtype)
        if name == "sign":
            return not is_complex(v.dtype) and v.dtype.kind != "b"
        if name in ("negative", "abs", "positive", "square"):
            return v.dtype.kind != "b"
        return True

    i = b.find(accept)
    if i is None:
        return None
    v = b.value(i)
    return Step(
        name, (i,), lambda xp, x: getattr(xp, name)(x),
        growth=2 * v.largest + 1 if name == "square" else 1.0,
        rounds=name == "abs" and is_complex(v.dtype),
    )  # fmt: skip


def smooth(b: Builder) -> Step | None:
    functions: dict[str, Callable[..., Any]] = {
        "sin": lambda xp, x: xp.sin(x),
        "cos": lambda xp, x: xp.cos(x),
        "tanh": lambda xp, x: xp.tanh(x),
        "arctan": lambda xp, x: xp.arctan(x),
        "exp(-x^2)": lambda xp, x: xp.exp(-(x * x)),
        "sqrt(x^2+1)": lambda xp, x: xp.sqrt(x * x + 1),
        "log1p(|x|)": lambda xp, x: xp.log1p(xp.abs(x)),
        "1/(1+|x|)": lambda xp, x: 1 / (1 + xp.abs(x)),
        "arcsinh": lambda xp, x: xp.arcsinh(x),
        "x/3": lambda xp, x: x / 3,
    }
    name = b.pick(tuple(functions))
    i = b.find(lambda v: is_float(v.dtype) and v.finite and v.largest < 100)
    if i is None:
        return None
    square = b.value(i).largest ** 2 if "^2" in name else 0.0
    return Step(name, (i,), functions[name], rounds=True, inside=square)


def compatible(a: tuple[int, ...], c: tuple[int, ...]) -> bool:
    try:
        return bool(np.prod(np.broadcast_shapes(a, c)) <= MOST_ELEMENTS)
    except ValueError:
        return False


def binary(b: Builder) -> Step | None:
    name = b.pick(("add", "subtract", "multiply", "maximum", "minimum", "add", "multiply"))
    i = b.find(lambda v: v.dtype.kind != "b")
    if i is None:
        return None
    v = b.value(i)
    j = b.find(lambda w: w.dtype == v.dtype and compatible(v.shape, w.shape))
    if j is None:
        return None
    w = b.value(j)
    if name in ("maximum", "minimum") and is_complex(v.dtype):
        return None
    growth = v.largest + w.largest + 1 if name == "multiply" else 2.0
    return Step(f"{name}", (i, j), lambda xp, x, y: getattr(xp, name)(x, y), growth=growth,
                inside=2 * v.largest * w.largest if is_complex(v.dtype) else 0.0)  # fmt: skip


def scalar_operand(b: Builder) -> Step | None:
    i = b.find(lambda v: v.dtype.kind != "b")
    if i is None:
        return None
    k = int(b.rng.integers(1, 5))
    name, function = b.pick((
        ("x + k", lambda xp, x: x + k), ("k - x", lambda xp, x: k - x),
        ("x * k", lambda xp, x: x * k), ("x + x", lambda xp, x: x + x),
    ))  # fmt: skip
    return Step(name.replace("k", str(k)), (i,), function, growth=k)


def integer_binary(b: Builder) -> Step | None:
    i = b.find(lambda v: v.dtype.kind in "biu")
    if i is None:
        return None
    v = b.value(i)
    j = b.find(lambda w: w.dtype == v.dtype and compatible(v.shape, w.shape))
    assert j is not None
    name = b.pick(("bitwise_and", "bitwise_or", "bitwise_xor"))
    return Step(name, (i, j), lambda xp, x, y: getattr(xp, name)(x, y))


def integer_scalar(b: Builder) -> Step | None:
    i = b.find(lambda v: is_integer(v.dtype))
    if i is None:
        return None
    k = int(b.rng.integers(1, 7))
    name, function = b.pick((
        ("x // k", lambda xp, x: x // k), ("x % k", lambda xp, x: x % k),
        ("x >> k", lambda xp, x: x >> k), ("x << k", lambda xp, x: x << k),
        ("x // -k", lambda xp, x: x // -k if v_signed else x // k),
        ("x ** 2", lambda xp, x: x**2),
    ))  # fmt: skip
    v_signed = b.value(i).dtype.kind == "i"
    return Step(name.replace("k", str(k)), (i,), function)


def compare(b: Builder) -> Step | None:
    name = b.pick(("less", "less_equal", "greater", "equal", "not_equal"))
    i = b.find(lambda v: not v.error and not is_complex(v.dtype) and v.dtype.kind != "b")
    if i is None:
        return None
    v = b.value(i)
    j = b.find(
        lambda w: not w.error and w.dtype == v.dtype and compatible(v.shape, w.shape)
    )
    assert j is not None
    return Step(name, (i, j), lambda xp, x, y: getattr(xp, name)(x, y))


def where(b: Builder) -> Step | None:
    c = b.find(lambda v: v.dtype.kind == "b")
    i = b.find(lambda v: c is not None and compatible(v.shape, b.value(c).shape))
    if c is None or i is None:
        return None
    v = b.value(i)
    shape = np.broadcast_shapes(v.shape, b.value(c).shape)
    j = b.find(lambda w: w.dtype == v.dtype and compatible(shape, w.shape))
    if j is None:
        return None
    return Step("where", (c, i, j), lambda xp, p, x, y: xp.where(p, x, y))


def cast(b: Builder) -> Step | None:
    dtype = b.pick(b.dtypes)

    def accept(v: Value) -> bool:
        if is_complex(v.dtype) and not is_complex(dtype):
            return False
        if dtype.kind in "biu" and (v.error or not v.finite):
            return False
        if is_integer(dtype) and v.dtype in EXACT:
            info = np.iinfo(dtype)
            return bool(v.data.size == 0 or (v.data.min() >= info.min and v.data.max() <= info.max))
        return v.largest <= EXACT.get(dtype, 2**60)

    i = b.find(accept)
    if i is None:
        return None

    def function(xp: Any, x: Any) -> Any:
        if xp is np:
            return as_exact(x != 0 if dtype.kind == "b" else x, dtype)
        return x.astype(dtype)

    return Step(f"astype {dtype}", (i,), function, rounds=not b.value(i).error == 0)


def transposed(b: Builder) -> Step | None:
    i = b.find(lambda v: v.data.ndim >= 2)
    if i is None:
        return None
    order = tuple(map(int, b.rng.permutation(b.value(i).data.ndim)))
    return Step(f"transpose{order}", (i,), lambda xp, x: xp.transpose(x, order))


def reshaped(b: Builder) -> Step | None:
    i = b.find(lambda v: True)
    assert i is not None
    shape = list(b.value(i).shape)
    kind = b.pick(("merge", "split", "one", "flat"))
    if kind == "merge" and len(shape) >= 2:
        a = int(b.rng.integers(len(shape) - 1))
        shape[a : a + 2] = [shape[a] * shape[a + 1]]
    elif kind == "split" and shape:
        a = int(b.rng.integers(len(shape)))
        n = shape[a]
        divisors = [d for d in range(1, n + 1) if n % d == 0] or [1]
        d = b.pick(divisors)
        shape[a : a + 1] = [d, n // d]
    elif kind == "one":
        shape.insert(int(b.rng.integers(len(shape) + 1)), 1)
    else:
        shape = [int(np.prod(shape))]
    return Step(f"reshape{shape}", (i,), lambda xp, x: xp.reshape(x, tuple(shape)))


def sliced(b: Builder) -> Step | None:
    i = b.find(lambda v: v.data.ndim >= 1)
    if i is None:
        return None
    index: list[Any] = []
    for n in b.value(i).shape:
        kind = b.pick(("all", "part", "step", "back", "number"))
        lo = int(b.rng.integers(0, n + 1))
        hi = int(b.rng.integers(lo, n + 1))
        k = int(b.rng.integers(1, 4))
        if kind == "number" and n and b.chance(0.5):
            index.append(int(b.rng.integers(-n, n)))
        elif kind == "part":
            index.append(slice(lo, hi))
        elif kind == "step":
            index.append(slice(lo if b.chance(0.5) else None, None, k))
        elif kind == "back":
            index.append(slice(None, None, -k))
        else:
            index.append(slice(None))
    where_to = tuple(index)
    return Step(f"index{where_to}", (i,), lambda xp, x: x[where_to])


def padded(b: Builder) -> Step | None:
    i = b.find(lambda v: v.data.ndim >= 1 and v.data.size > 0)
    if i is None:
        return None
    widths = tuple(tuple(map(int, b.rng.integers(0, 4, 2))) for _ in b.value(i).shape)
    mode = b.pick(("constant", "constant", "edge", "wrap", "reflect"))
    return Step(f"pad {mode} {widths}", (i,), lambda xp, x: xp.pad(x, widths, mode=mode))


def joined(b: Builder) -> Step | None:
    i = b.find(lambda v: v.data.ndim >= 1)
    if i is None:
        return None
    v = b.value(i)
    axis = int(b.rng.integers(v.data.ndim))

    def fits(w: Value) -> bool:
        return (
            w.dtype == v.dtype
            and w.data.ndim == v.data.ndim
            and all(m == n for a, (m, n) in enumerate(zip(w.shape, v.shape)) if a != axis)
        )

    parts = (i, *(b.find(fits) for _ in range(int(b.rng.integers(1, 4)))))
    return Step(f"concatenate axis {axis}", parts, lambda xp, *x: xp.concatenate(x, axis))  # type: ignore[arg-type]


def moved(b: Builder) -> Step | None:
    i = b.find(lambda v: v.data.ndim >= 1)
    if i is None:
        return None
    v = b.value(i)
    axis = int(b.rng.integers(v.data.ndim))
    k = int(b.rng.integers(0, 4))
    name, function = b.pick((
        ("flip", lambda xp, x: xp.flip(x, axis)),
        ("roll", lambda xp, x: xp.roll(x, k, axis)),
        ("repeat", lambda xp, x: xp.repeat(x, k, axis)),
        ("tile", lambda xp, x: xp.tile(x, k)),
        ("broadcast", lambda xp, x: xp.broadcast_to(x, (k, *x.shape))),
        ("stack", lambda xp, x: xp.stack([x, x], axis)),
        ("moveaxis", lambda xp, x: xp.moveaxis(x, axis, 0)),
    ))  # fmt: skip
    return Step(f"{name} {k} axis {axis}", (i,), function)


def taken(b: Builder) -> Step | None:
    i = b.find(lambda v: v.data.ndim >= 1 and v.data.size > 0)
    if i is None:
        return None
    v = b.value(i)
    axis = int(b.rng.integers(v.data.ndim))
    n = v.shape[axis]
    positions = b.rng.integers(-n, n, b.pick(((), (3,), (17,), (2, 5))))
    return Step(f"take {positions.tolist()} axis {axis}", (i,),
                lambda xp, x: xp.take(x, positions, axis, mode="wrap"))  # fmt: skip


def gathered(b: Builder) -> Step | None:
    """Elements at positions that are values of the program."""
    i = b.find(lambda v: v.data.ndim >= 1 and v.shape[0] > 0)
    j = b.find(lambda v: v.dtype == np.int32 and v.data.ndim <= 2)
    if i is None or j is None:
        return None
    n = b.value(i).shape[0]
    if b.value(j).data.size * b.value(i).data.size // n > MOST_ELEMENTS:
        return None
    return Step("gather", (i, j), lambda xp, x, p: x[p % n])


def updated(b: Builder) -> Step | None:
    i = b.find(lambda v: v.data.ndim >= 1 and v.shape[0] > 0 and v.dtype.kind != "b")
    if i is None:
        return None
    v = b.value(i)
    positions = b.rng.integers(0, v.shape[0], int(b.rng.integers(0, 6)))
    kind = b.pick(("add", "max", "set"))
    if kind == "set":
        positions = np.unique(positions)
    if kind == "max" and is_complex(v.dtype):
        return None

    def function(xp: Any, x: Any) -> Any:
        if xp is jnp:
            return getattr(x.at[positions], kind)(3)
        y = x.copy()
        if kind == "set":
            y[positions] = 3
        else:
            getattr(np, {"add": "add", "max": "maximum"}[kind]).at(y, positions, 3)
        return y

    return Step(f"at[{positions.tolist()}].{kind}(3)", (i,), function, inside=v.largest + 18)


def reduced(b: Builder) -> Step | None:
    name = b.pick(("sum", "sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "mean",
                   "var", "logsumexp", "count_nonzero"))  # fmt: skip
    jumps = name in ("any", "all", "argmax", "argmin", "count_nonzero", "prod")
    floats = name in ("mean", "var", "logsumexp")

    def accept(v: Value) -> bool:
        if jumps and v.error or floats and not (is_float(v.dtype) and v.finite):
            return False
        if name == "prod" and not v.finite:
            return False
        if name in ("max", "min", "argmax", "argmin") and is_complex(v.dtype):
            return False
        return name != "logsumexp" or v.largest < 50

    i = b.find(accept)
    if i is None:
        return None
    v = b.value(i)
    rank = v.data.ndim
    axes: Any = tuple(a for a in range(rank) if b.chance(0.5))
    if name.startswith("arg"):
        axes = int(b.rng.integers(rank)) if rank else None
    elif b.chance(0.25):
        axes = None
    every = range(rank) if axes is None else (axes,) if isinstance(axes, int) else axes
    count = int(np.prod([v.shape[a] for a in every]))
    if count == 0 and name not in ("sum", "prod", "any", "all", "count_nonzero"):
        return None
    keep = b.chance(0.3)

    def function(xp: Any, x: Any) -> Any:
        if name == "logsumexp":
            peak = xp.max(x, axis=axes, keepdims=True)
            total = xp.log(xp.sum(xp.exp(x - peak), axis=axes, keepdims=True)) + peak
            return total if keep else xp.squeeze(total, tuple(every))
        return getattr(xp, name)(x, axis=axes, keepdims=keep)

    with np.errstate(all="ignore"):
        inside = float(np.nansum(np.abs(np.where(np.isfinite(v.data), v.data, 0)))) if name == "sum" else 0.0
    growth = {"sum": count, "var": 4 * v.largest}.get(name, 1.0)
    if name == "var":
        inside = v.largest**2
    if name == "prod" and v.dtype in EXACT:
        with np.errstate(over="ignore"):
            inside = float(np.prod(np.maximum(np.abs(v.data), 1)))
    if name == "mean":
        inside = float(np.abs(v.data).sum())  # exact only if the sum is
    return Step(f"{name} axes {axes}{' kept' if keep else ''}", (i,), function, growth=growth,
                rounds=floats, inside=min(inside, LARGEST) if name == "mean" else inside)  # fmt: skip


def cumulative(b: Builder) -> Step | None:
    name = b.pick(("cumsum", "cummax", "cummin"))
    i = b.find(lambda v: v.data.ndim >= 1 and not (name != "cumsum" and (is_complex(v.dtype) or v.dtype.kind == "b")))
    if i is None:
        return None
    v = b.value(i)
    axis = int(b.rng.integers(v.data.ndim))

    def function(xp: Any, x: Any) -> Any:
        if name == "cumsum":
            return xp.cumsum(x, axis)
        if xp is np:
            return {"cummax": np.maximum, "cummin": np.minimum}[name].accumulate(x, axis)
        return getattr(jato.lax, name)(x, axis)

    finite = np.abs(np.where(np.isfinite(v.data), v.data, 0)).astype(float)
    inside = float(finite.sum(axis).max()) if name == "cumsum" and v.data.size else 0.0
    return Step(f"{name} axis {axis}", (i,), function, growth=v.shape[axis], inside=inside)


def product(b: Builder) -> Step | None:
    i = b.find(lambda v: v.data.ndim >= 1 and v.finite and v.dtype.kind != "b")
    if i is None:
        return None
    v = b.value(i)
    n = v.shape[-1]
    j = b.find(
        lambda w: w.dtype == v.dtype
        and w.finite
        and w.data.ndim >= 1
        and w.shape[-2 if w.data.ndim > 1 else 0] == n
        and (w.data.ndim <= 2 or v.shape[:-2] == w.shape[:-2])
    )
    if j is None:
        return None
    w = b.value(j)
    bound = n * v.largest * w.largest * (2 if is_complex(v.dtype) else 1)
    if is_integer(v.dtype):
        bound = 0.0
    return Step("matmul", (i, j), lambda xp, x, y: xp.matmul(x, y), inside=bound,
                growth=n * (v.largest + w.largest) + 1)  # fmt: skip


def sorting(b: Builder) -> Step | None:
    name = b.pick(("sort", "argsort"))
    i = b.find(lambda v: v.data.ndim >= 1 and not v.error and not is_complex(v.dtype))
    if i is None:
        return None
    axis = int(b.rng.integers(b.value(i).data.ndim))

    def function(xp: Any, x: Any) -> Any:
        return getattr(xp, name)(x, axis=axis, stable=True)

    return Step(f"{name} axis {axis}", (i,), function)


def row_chain(b: Builder) -> Step | None:
    """Softmax and its kin, written out."""
    i = b.find(lambda v: is_float(v.dtype) and v.finite and v.largest < 50 and v.data.size > 0 and v.data.ndim >= 1)
    if i is None:
        return None
    v = b.value(i)
    axis: Any = b.pick((int(b.rng.integers(v.data.ndim)), -1))

    def softmax(xp: Any, x: Any) -> Any:
        e = xp.exp(x - xp.max(x, axis=axis, keepdims=True))
        return e / xp.sum(e, axis=axis, keepdims=True)

    def centred(xp: Any, x: Any) -> Any:
        return x - xp.mean(x, axis=axis, keepdims=True)

    def normalized(xp: Any, x: Any) -> Any:
        m = xp.mean(x, axis=axis, keepdims=True)
        return (x - m) / xp.sqrt(xp.mean((x - m) ** 2, axis=axis, keepdims=True) + 1)

    name, function = b.pick((("softmax", softmax), ("centred", centred), ("normalized", normalized)))
    return Step(f"{name} axis {axis}", (i,), function, growth=2 * v.largest + 2, rounds=True,
                inside=v.largest**2)  # fmt: skip


def looped(b: Builder) -> Step | None:
    """A loop of the compiled program, or a branch; Python's own for NumPy."""
    i = b.find(lambda v: v.data.ndim >= 1 and v.finite and v.dtype.kind != "b")
    if i is None:
        return None
    v = b.value(i)
    k = int(b.rng.integers(0, 4))
    bodies: dict[str, Callable[..., Any]] = {
        "roll": lambda xp, n, c: xp.roll(c, 1, 0) - c,
        "add": lambda xp, n, c: c + c[::-1],
        "step": lambda xp, n, c: c + xp.asarray(n).astype(c.dtype),
        "sort": lambda xp, n, c: xp.flip(xp.sort(c, -1), -1) + c if not complex_values else c,
        "scan": lambda xp, n, c: xp.cumsum(c, 0).astype(c.dtype) - c,
    }
    complex_values = is_complex(v.dtype)
    name = b.pick(tuple(bodies))
    if v.error and name == "sort":
        return None
    body = bodies[name]

    def function(xp: Any, x: Any) -> Any:
        if xp is jnp:
            return jato.lax.fori_loop(0, k, lambda n, c: body(jnp, n, c), x)
        for n in range(k):
            x = body(np, np.int32(n), x)
            if is_integer(v.dtype):
                x = as_exact(x, v.dtype)
        return x

    many = v.shape[0] if name == "scan" else 2
    return Step(f"loop {name} {k}", (i,), function, growth=float(many + 1) ** k,
                inside=(v.largest + 3) * float(many + 1) ** k if k else 0.0)  # fmt: skip


def chosen(b: Builder) -> Step | None:
    i = b.find(lambda v: v.data.ndim >= 1)
    j = b.find(lambda v: v.dtype == np.int32 and v.data.size > 0)
    if i is None or j is None:
        return None

    def function(xp: Any, x: Any, p: Any) -> Any:
        k = p.reshape(-1)[0] % 3
        if xp is jnp:
            return jato.lax.switch(k, [lambda x: x, lambda x: jnp.flip(x, 0), lambda x: x * 0 + x], x)
        return (x, np.flip(x, 0), x * 0 + x)[int(k)]

    if b.value(i).dtype.kind == "b":
        return None
    return Step("switch", (i, j), function)


def dynamic(b: Builder) -> Step | None:
    """A slice whose start is a value of the program."""
    i = b.find(lambda v: v.data.ndim >= 1 and v.shape[0] > 0)
    j = b.find(lambda v: v.dtype == np.int32 and v.data.size > 0)
    if i is None or j is None:
        return None
    n = b.value(i).shape[0]
    size = int(b.rng.integers(1, n + 1))

    def function(xp: Any, x: Any, p: Any) -> Any:
        start = p.reshape(-1)[0]
        if xp is jnp:
            return jato.lax.dynamic_slice_in_dim(x, start, size, 0)
        k = int(start) + (n if start < 0 else 0)
        k = min(max(k, 0), n - size)
        return x[k : k + size]

    return Step(f"dynamic_slice {size}", (i, j), function)


def more(b: Builder) -> Step | None:
    i = b.find(lambda v: v.data.ndim >= 1 and v.data.size > 0 and v.dtype.kind != "b")
    if i is None:
        return None
    v = b.value(i)
    axis = int(b.rng.integers(v.data.ndim))
    order = b.rng.permutation(v.shape[axis])
    names: dict[str, Callable[..., Any]] = {
        "diff": lambda xp, x: xp.diff(x, axis=axis),
        "tril": lambda xp, x: xp.tril(x) if x.ndim > 1 else x,
        "outer": lambda xp, x: xp.outer(x, x[..., :1]) if x.size < 60 else x,
        "take_along": lambda xp, x: xp.take_along_axis(
            x, order.reshape([-1 if a == axis else 1 for a in range(x.ndim)]), axis
        ),
        "split": lambda xp, x: xp.concatenate(xp.array_split(x, 3, axis)[::-1], axis),
        "rot90": lambda xp, x: xp.rot90(x) if x.ndim > 1 else x,
        "swap": lambda xp, x: xp.swapaxes(x, 0, -1),
        "ravel": lambda xp, x: xp.ravel(x)[::3],
        "stack": lambda xp, x: xp.vstack([x, x[::-1]]),
        "column": lambda xp, x: x[..., None] + x[..., :1, None],
    }
    name = b.pick(tuple(names))
    square = 4 * v.largest**2 if name == "outer" else 0.0
    return Step(f"{name} axis {axis}", (i,), names[name], growth=2 * v.largest + 2, inside=square)


STEPS: tuple[Callable[[Builder], Step | None], ...] = (
    unary, unary, smooth, binary, binary, binary, scalar_operand, integer_binary, integer_scalar,
    compare, where, cast, transposed, transposed, reshaped, reshaped, sliced, sliced, padded, joined,
    moved, moved, taken, gathered, updated, reduced, reduced, reduced, cumulative, product, sorting,
    row_chain, looped, chosen, dynamic, more, more,
)  # fmt: skip
