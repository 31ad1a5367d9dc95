"""The family of elementwise primitives: one entry gives a formula, its derivatives and NumPy.

    SIN = Elementwise("sin", "fc", lower="sin", jvp=(lambda g, out, x: mul(g, cos(x)),),
                      reference=np.sin)

Operands have one dtype, and shape S or () each; the result has shape S.  It is weak iff all
operands are.  An entry states

    takes       kinds of dtype: b(ool) i(nt) u(nsigned) f(loat) c(omplex) k(ey)
    gives       dtype of the result: "same" as the operands, "bool", "real" (part of complex), or
                "complex" (of real)
    lower       name of an opcode, or formula(builder, *values)
    jvp         per operand: (tangent, out, *operands) -> its share of the result's tangent; None
                where the derivative is zero
    transpose   per operand, if linear in it: (cotangent, *operands) -> cotangent; else None
    reference   NumPy (16-bit floats are computed in float32 and rounded)
    simplify    (node, rewriter) -> atoms or None
    cost        of one element beside one addition

`add` is here because the family sums tangents.  Start reading at `Elementwise.jvp`, then `batch`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from jato.base import dtypes
from jato.core.graph import Literal
from jato.core.primitive import AxisData, UndefinedPrimal
from jato.core.types import ArrayType, Zero, array_type, tangent_type, type_of
from jato.ops.families import TypeCached, check_kind, is_zero_tangent, transposed
from jato.ops.numbers import NUMBERS, match_numbers
from jato.ops.shapes import BROADCAST_IN_DIM, broadcast_to, move_axis, sum_to_shape

_REAL = {13: 11, 14: 12}
_COMPLEX = {11: 13, 12: 14}
_ARGUMENTS = {1: ("x",), 2: ("x", "y")}


class Elementwise(TypeCached):
    """An operation on the elements at each index.  See the module's docstring."""

    fusable = True
    pointwise = True

    def __init__(
        self,
        name: str,
        takes: str,
        *,
        lower: str | Callable[..., Any],
        reference: Callable[..., Any],
        jvp: Sequence[Callable[..., Any] | None],
        gives: str = "same",
        transpose: Sequence[Callable[..., Any] | None] | None = None,
        simplify: Callable[..., Any] | None = None,
        cost: float = 1.0,
    ):
        super().__init__(name)
        self.takes = takes
        self.gives = gives
        self.formula = lower
        self.derivatives = tuple(jvp)
        self.duals = transpose
        self.cost = cost
        self._reference = reference
        self._simplify = simplify

    @property
    def arity(self) -> int:
        return len(self.derivatives)

    def __call__(self, *operands: Any, **params: Any) -> Any:
        """`bind`, where Python numbers take the dtype of the other operands, and axes of extent 1
        that of operands of the same rank."""
        for x in operands:
            if type(x) in NUMBERS:
                operands = tuple(match_numbers(self.name, operands))
                break
        try:
            return self.bind(*operands, **params)
        except TypeError:  # (looking at every operand's shape first would cost every call)
            stretched = _stretched(operands)
            if stretched is None:
                raise
        return self.bind(*stretched, **params)

    # ---- types

    def argument(self, i: int) -> str:
        return _ARGUMENTS[self.arity][i]

    def result_type(self, *avals: Any, **params: Any) -> Any:
        first = avals[0]
        for i, x in enumerate(avals):
            check_kind(self, self.argument(i), x, self.takes)
            if x.dtype_code != first.dtype_code:
                self.fail(
                    f"expected operands of one dtype, got {', '.join(map(str, avals))}.",
                    "Try lax.convert_element_type; the functions of jato.numpy promote.",
                )
        shape = self.common_shape(avals)
        return ArrayType(shape, self.result_code(first), all(x.weak_type for x in avals))

    def common_shape(self, avals: Sequence[Any]) -> tuple[int, ...]:
        shape: tuple[int, ...] = ()
        for x in avals:
            if x.shape and x.shape != shape:
                if shape:
                    self.fail(
                        f"expected operands of one shape (or scalars), got "
                        f"{', '.join(map(str, avals))}.",
                        "Try lax.broadcast_in_dim; the functions of jato.numpy broadcast.",
                    )
                shape = x.shape
        return shape

    def result_code(self, aval: Any) -> int:
        code = aval.dtype_code
        if self.gives == "bool":
            return 0
        if self.gives == "real":
            return _REAL.get(code, code)
        return _COMPLEX[code] if self.gives == "complex" else code

    # ---- derivatives

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = self.bind(*primals, **params)
        aval = type_of(out)
        total = None
        for tangent, rule in zip(tangents, self.rules_of(primals), strict=True):
            if rule is None or is_zero_tangent(tangent):
                continue
            share = rule(tangent, out, *primals, **params)
            total = share if total is None else ADD.bind(total, share)
        if total is None:
            return out, Zero(tangent_type(aval))
        if type_of(total).shape != aval.shape:
            total = broadcast_to(total, aval.shape, ())
        return out, total

    def rules_of(self, primals: Sequence[Any]) -> Sequence[Callable[..., Any] | None]:
        return self.derivatives

    @transposed
    def transpose(self, cotangent: Any, *operands: Any, **params: Any) -> Sequence[Any]:
        if self.duals is None:
            return super().transpose(cotangent, *operands, **params)
        found: list[Any] = []
        for x, dual in zip(operands, self.duals, strict=True):
            if type(x) is not UndefinedPrimal:
                found.append(None)
            elif dual is None:
                return super().transpose(cotangent, *operands, **params)
            else:
                found.append(sum_to_shape(dual(cotangent, *operands, **params), x.aval.shape))
        return found

    # ---- batching

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> Any:
        operands, out_dim = align_mapped(axis, operands, dims)
        return self.bind(*operands, **params), out_dim

    # ---- code

    def lower(
        self, b: Any, inputs: Sequence[Any], index: tuple[Any, ...], out: Any, **params: Any
    ) -> Any:
        values = [x(index) if x.aval.shape else x(()) for x in inputs]
        if isinstance(self.formula, str):
            return b.op(self.formula, *values)
        return self.formula(b, *values, **params)

    def simplify(self, node: Any, rewriter: Any) -> Any:
        return None if self._simplify is None else self._simplify(node, rewriter)

    def reference(self, *operands: Any, **params: Any) -> Any:
        arrays = [np.asarray(x) for x in operands]
        dtype = arrays[-1].dtype
        small = dtypes.is_floating(dtype) and dtype.itemsize == 2
        if small:
            arrays = [x.astype(np.float32) if x.dtype == dtype else x for x in arrays]
        with np.errstate(all="ignore"):
            result = np.asarray(self._reference(*arrays, **params))
            wanted = self.result_type(*map(type_of_exactly, operands), **params).dtype
            return result.astype(wanted, copy=False)


def type_of_exactly(x: Any) -> Any:
    """The type of an ndarray without narrowing 64 bits."""
    return array_type(np.shape(x), np.asarray(x).dtype)


# ---- operands


def _stretched(operands: Sequence[Any]) -> list[Any] | None:
    """Operands of one rank with their axes of extent 1 repeated; None if that changes nothing.

    Scalars stay scalars."""
    shapes = [type_of(x).shape for x in operands]
    extents = [set(sizes) - {1} for sizes in zip_longest(*filter(None, shapes), fillvalue=-1)]
    if any(len(e) > 1 or -1 in e for e in extents):
        return None
    full = tuple(next(iter(e), 1) for e in extents)
    if all(shape in ((), full) for shape in shapes):
        return None
    rest = tuple(range(len(full)))
    return [
        x if shape in ((), full) else broadcast_to(x, full, rest)
        for x, shape in zip(operands, shapes, strict=True)
    ]


def align_mapped(
    axis: AxisData, operands: Sequence[Any], dims: Sequence[Any]
) -> tuple[list[Any], int]:
    """Operands with their mapped axes in one place, and the place.

    Scalars that are not mapped stay scalars.
    """
    avals = [type_of(x) for x in operands]
    shape: tuple[int, ...] = ()  # of one example
    out_dim = 0
    for x, d in zip(avals, dims, strict=True):
        if d is None:
            shape = x.shape or shape
        elif x.ndim > 1:
            shape = x.shape[:d] + x.shape[d + 1 :]
            out_dim = d
    full = (*shape[:out_dim], axis.size, *shape[out_dim:])
    rest = [i for i in range(len(full)) if i != out_dim]
    aligned = []
    for x, aval, d in zip(operands, avals, dims, strict=True):
        if d is None:
            aligned.append(broadcast_to(x, full, rest) if aval.shape else x)
        elif aval.ndim == 1 and shape:
            aligned.append(broadcast_to(x, full, (out_dim,)))
        else:
            aligned.append(move_axis(x, d, out_dim))
    return aligned, out_dim


# ---- peepholes


def scalar_value(atom: Any, rewriter: Any) -> Any:
    """The Python number that an atom holds at every index, or None if it is not known."""
    if type(atom) is Literal:
        value = atom.value
        return value.item() if isinstance(value, np.generic) else value
    node = rewriter.producer(atom)
    if node is not None and node.primitive is BROADCAST_IN_DIM:
        return scalar_value(node.inputs[0], rewriter)
    return None


def replaces(atom: Any, node: Any) -> Any:
    """[atom] if it has the type of the node's result, so that it can stand for it."""
    return [atom] if atom.aval is node.outputs[0].aval else None


def is_negative_zero(value: Any) -> bool:
    return isinstance(value, float) and value == 0 and np.signbit(value)


# ---- addition


def _simplify_add(node: Any, rewriter: Any) -> Any:
    # x + (-0.0) -> x; integers: x + 0 -> x.  (-0.0) + 0.0 is 0.0, so floats keep x + 0.0
    for x, y in (node.inputs, reversed(node.inputs)):
        value = scalar_value(y, rewriter)
        if is_negative_zero(value) or (type(value) is int and value == 0):
            return replaces(x, node)
    return None


ADD = Elementwise(
    "add",
    "iufc",
    lower="add",
    jvp=(lambda g, out, x, y: g, lambda g, out, x, y: g),
    transpose=(lambda ct, x, y: ct, lambda ct, x, y: ct),
    reference=np.add,
    simplify=_simplify_add,
)
