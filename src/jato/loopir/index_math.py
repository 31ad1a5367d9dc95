"""Integer facts of expressions: linear forms and ranges.

Linear form   sum of coefficient * monomial + constant, where a monomial is a sorted tuple of
              atoms (variables, parameters, anything that is not a sum or product).  Equal
              addresses have equal forms, and the builder makes one expression of each form.
              The form is exact in arithmetic modulo 2^64, as the machine's is.
Range         (low, high), inclusive, of an integer expression.  Loop variables bring theirs.

`IndexMath` is the part of the builder that computes them; start at `linear` and `range`.
"""

from __future__ import annotations

from math import gcd

from jato.loopir.grammar import Expr

Monomial = tuple[Expr, ...]
Range = tuple[int, int]

INTEGER_RANGE: dict[str, Range] = {
    "bool": (0, 1),
    **{f"i{n}": (-(1 << (n - 1)), (1 << (n - 1)) - 1) for n in (8, 16, 32, 64)},
    **{f"u{n}": (0, (1 << n) - 1) for n in (8, 16, 32, 64)},
}
FULL = INTEGER_RANGE["i64"]
# A sum longer than this is not an address: it is kept as it was written.
MAX_TERMS = 16
# Ranges look this far down; beyond, only the dtype is known (chains can be thousands long).
MAX_DEPTH = 40


class Linear:
    """`terms`: monomial -> coefficient (never 0); `const`: the constant."""

    __slots__ = ("const", "terms")

    def __init__(self, terms: dict[Monomial, int], const: int):
        self.terms = terms
        self.const = const


def wrap(value: int, dtype: str) -> int:
    """`value` modulo the size of the dtype, in its range."""
    low, high = INTEGER_RANGE[dtype]
    return (value - low) % (high - low + 1) + low


def add_terms(terms: dict[Monomial, int], form: Linear, factor: int) -> None:
    """Adds factor * form, its constant left out, to terms; those that cancel are dropped."""
    for monomial, coefficient in form.terms.items():
        total = wrap(terms.get(monomial, 0) + factor * coefficient, "i64")
        if total:
            terms[monomial] = total
        else:
            terms.pop(monomial, None)


def _times(a: Range, b: Range) -> Range:
    products = (a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1])
    return min(products), max(products)


def _quotient(x: int, y: int) -> int:
    q = abs(x) // abs(y)
    return q if (x < 0) == (y < 0) else -q


class IndexMath:
    """Linear forms and ranges of the expressions of one builder."""

    def __init__(self) -> None:
        self._linear: dict[Expr, Linear] = {}
        self._ranges: dict[Expr, Range] = {}

    # ---- linear forms

    def linear(self, x: Expr) -> Linear:
        """The linear form of an i64 expression; a single atom when it has no other."""
        form = self._linear.get(x)
        if form is not None:
            return form
        if x.op == "const":
            return Linear({}, x.attr)
        return Linear({(x,): 1}, 0)

    def linear_sum(self, x: Expr, y: Expr, sign: int) -> Linear | None:
        """The form of x + sign * y, or None when it is too long to be an address."""
        a, b = self.linear(x), self.linear(y)
        if len(a.terms) + len(b.terms) > MAX_TERMS:
            return None
        terms = dict(a.terms)
        add_terms(terms, b, sign)
        return Linear(terms, wrap(a.const + sign * b.const, "i64"))

    def linear_product(self, x: Expr, y: Expr) -> Linear | None:
        """The form of x * y when it stays short: one factor is constant, or both are indices."""
        a, b = self.linear(x), self.linear(y)
        if a.terms and b.terms:
            short = len(a.terms) * len(b.terms) <= 8
            if not (short and self.is_index(a) and self.is_index(b)):
                return None
        terms: dict[Monomial, int] = {}
        left = [*a.terms.items(), ((), a.const)] if a.const else list(a.terms.items())
        right = [*b.terms.items(), ((), b.const)] if b.const else list(b.terms.items())
        for first, p in left:
            for second, q in right:
                monomial = (
                    tuple(sorted(first + second, key=_serial))
                    if first and second
                    else (first or second)
                )
                terms[monomial] = wrap(terms.get(monomial, 0) + p * q, "i64")
        const = terms.pop((), 0)
        return Linear({m: c for m, c in terms.items() if c}, const)

    def is_index(self, form: Linear) -> bool:
        """All atoms are loop variables, parameters or quotients of them, not data."""
        return all(
            atom.op in ("var", "param", "grid_begin", "grid_end")
            or (atom.op in ("div", "rem") and atom.args[0].op != "load")
            for monomial in form.terms
            for atom in monomial
        )

    def split_by(self, x: Expr, divisor: int) -> tuple[Linear, Linear, int] | None:
        """x = g * big + small with 0 <= small < g and g a divisor of `divisor`; None without.

        Then, for x >= 0,  x div d = big div (d/g)  and  x rem d = g * (big rem (d/g)) + small.
        """
        form = self.linear(x)
        best = None
        for candidate in sorted({gcd(c, divisor) for c in form.terms.values()}, reverse=True):
            if candidate <= 1:
                break
            big = {m: c // candidate for m, c in form.terms.items() if c % candidate == 0}
            small = {m: c for m, c in form.terms.items() if c % candidate}
            rest = Linear(small, form.const % candidate)
            low, high = self.range_of_linear(rest)
            if low >= 0 and high < candidate:
                best = Linear(big, form.const // candidate), rest, candidate
                break
        return best

    def multiples_of(self, x: Expr, divisor: int) -> tuple[Linear, Linear]:
        """x = divisor * first + second, with every term that `divisor` divides in the first."""
        form = self.linear(x)
        whole = {m: c // divisor for m, c in form.terms.items() if c % divisor == 0}
        rest = {m: c for m, c in form.terms.items() if c % divisor}
        return Linear(whole, form.const // divisor), Linear(rest, form.const % divisor)

    # ---- ranges

    def range(self, x: Expr) -> Range:
        """Inclusive bounds of an integer or bool expression."""
        return self._range(x, 0)

    def difference_range(self, x: Expr, y: Expr) -> Range | None:
        """Bounds of the mathematical difference x - y of i64s; None when it might wrap."""
        a, b = self.range(x), self.range(y)
        if a == FULL or b == FULL:
            return None
        direct = (a[0] - b[1], a[1] - b[0])
        form = self.linear_sum(x, y, -1)
        if form is None:
            return direct
        low, high = self._sum_range(form, 0)
        return max(low, direct[0]), min(high, direct[1])

    def known_within(self, x: Expr, low: int, high: int) -> Expr:
        """x, of which the caller knows more than its parts tell: min(c + n, m) - c is at most n."""
        bounds = self.range(x)
        self._ranges[x] = (max(low, bounds[0]), min(high, bounds[1]))
        return x

    def range_of_linear(self, form: Linear) -> Range:
        low, high = self._sum_range(form, 0)
        return (low, high) if FULL[0] <= low and high <= FULL[1] else FULL

    def _sum_range(self, form: Linear, depth: int) -> Range:
        low = high = form.const
        for monomial, coefficient in form.terms.items():
            bounds = (coefficient, coefficient)
            for atom in monomial:
                bounds = _times(bounds, self._range(atom, depth + 1))
            low += bounds[0]
            high += bounds[1]
        return low, high

    def _range(self, x: Expr, depth: int) -> Range:
        known = self._ranges.get(x)
        if known is not None:
            return known
        full = INTEGER_RANGE[x.dtype]
        if x.op == "const":
            return (int(x.attr), int(x.attr))
        if depth > MAX_DEPTH:
            return full
        bounds = self._range_of_op(x, depth + 1)
        if bounds is None or bounds[0] < full[0] or bounds[1] > full[1]:
            bounds = full
        self._ranges[x] = bounds
        return bounds

    def _range_of_op(self, x: Expr, depth: int) -> Range | None:
        op, args = x.op, x.args
        if x in self._linear:
            return self._sum_range(self._linear[x], depth)
        if op in ("grid_begin", "grid_end"):
            return (0, 1 << 62)
        if not args or args[0].dtype in ("f16", "bf16", "f32", "f64") or op in ("load", "var"):
            return None
        if op == "select":
            p, q = self._range(args[1], depth), self._range(args[2], depth)
            return min(p[0], q[0]), max(p[1], q[1])
        if op not in _RANGE_OPS:
            return None
        a = self._range(args[0], depth)
        if op == "convert":
            return a
        if op == "abs":
            return (0 if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1]))), max(
                abs(a[0]), abs(a[1])
            )
        if op == "neg":
            return -a[1], -a[0]
        b = self._range(args[1], depth)
        return _range_of_binary(op, a, b)


_RANGE_OPS = frozenset(
    ("convert", "abs", "neg", "add", "sub", "mul", "div", "rem", "max", "min", "and")
    + ("shr_logical", "shr_arithmetic")
)


def _range_of_binary(op: str, a: Range, b: Range) -> Range | None:
    if op == "add":
        return a[0] + b[0], a[1] + b[1]
    if op == "sub":
        return a[0] - b[1], a[1] - b[0]
    if op == "mul":
        return _times(a, b)
    if op == "max":
        return max(a[0], b[0]), max(a[1], b[1])
    if op == "min":
        return min(a[0], b[0]), min(a[1], b[1])
    if op == "and":
        bounds = [r[1] for r in (a, b) if r[0] >= 0]
        return (0, min(bounds)) if bounds else None
    if op == "div" and b[0] > 0:
        ends = [_quotient(p, q) for p in a for q in b]
        return min(ends), max(ends)
    if op == "rem" and b[0] > 0:
        limit = b[1] - 1
        return (0, min(a[1], limit)) if a[0] >= 0 else (max(a[0], -limit), max(min(a[1], limit), 0))
    if op.startswith("shr") and a[0] >= 0 and 0 <= b[0] == b[1] < 64:
        return a[0] >> b[0], a[1] >> b[0]
    return None


def _serial(x: Expr) -> int:
    return x.serial
