"""The family of reductions: primitives that combine the elements along some axes.

A member states its identity, element and combination; `lower` and the other rules follow, and the
compiler places loops by the same protocol.  Members: reduce_sum (shapes.py), the others in
reduce.py.
"""

from __future__ import annotations

from typing import Any

from jato.base import dtypes
from jato.core.primitive import AxisData
from jato.core.types import ArrayType
from jato.ops.families import Shape, TypeCached, check_axes, check_kind


class Reduction(TypeCached):
    """Combines the elements along some axes.  Its protocol stands in for `lower`:

    axes(params)                         the axes reduced, increasing
    opcode                               name of the combining opcode, if it is one
    accumulator_dtype(aval)              scalar dtype of the (first) accumulator
    identity(b, aval, **params)          tuple of expressions
    element(b, value, index, **params)   operand's value at its index -> tuple of expressions
    combine(b, left, right)              two such tuples -> one; associative and commutative
    finish(b, values, out, **params)     tuple -> the result's value

    f16 and bf16 accumulate in f32; complex numbers are two accumulators.
    """

    fusable = True
    opcode: str | None = None
    takes = "iufc"  # kinds of dtype: b(ool) i(nt) u(nsigned) f(loat) c(omplex)

    def axes(self, params: dict[str, Any]) -> Shape:
        return params["axes"]

    def accumulator_dtype(self, aval: Any) -> str:
        name = dtypes.scalar_name(aval)
        return {"f16": "f32", "bf16": "f32", "c64": "f32", "c128": "f64"}.get(name, name)

    def identity(self, b: Any, aval: Any, **params: Any) -> tuple[Any, ...]:
        raise NotImplementedError

    def element(self, b: Any, value: Any, index: Any, **params: Any) -> tuple[Any, ...]:
        if hasattr(value, "re"):
            return (value.re, value.im)
        return (b.convert(value, "f32") if value.dtype in ("f16", "bf16") else value,)

    def combine(self, b: Any, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(b.op(self.opcode, x, y) for x, y in zip(left, right, strict=True))

    def finish(self, b: Any, values: tuple[Any, ...], out: Any, **params: Any) -> Any:
        if len(values) == 2:
            return b.complex(*values)
        return b.convert(values[0], dtypes.scalar_name(out))

    # -- rules derived from it

    def result_type(self, x: Any, *, axes: Shape) -> Any:
        check_kind(self, "operand", x, self.takes)
        check_axes(self, "axes", axes, x)
        kept = tuple(n for i, n in enumerate(x.shape) if i not in axes)
        return ArrayType(kept, x.dtype_code, x.weak_type)

    def batch(self, axis: AxisData, operands: Any, dims: Any, **params: Any) -> Any:
        dim, axes = dims[0], params["axes"]
        params["axes"] = tuple(i + (i >= dim) for i in axes)
        out = self.bind(operands[0], **params)
        return out, dim - sum(i < dim for i in params["axes"])

    def lower(self, b: Any, inputs: Any, index: Any, out: Any, **params: Any) -> Any:
        x, axes = inputs[0], self.axes(params)
        kept = [i for i in range(x.aval.ndim) if i not in axes]

        def element(*reduced: Any) -> tuple[Any, ...]:
            position: list[Any] = [None] * x.aval.ndim
            for i, value in zip((*axes, *kept), (*reduced, *index), strict=True):
                position[i] = value
            return self.element(b, x(tuple(position)), tuple(position), **params)

        identity = self.identity(b, x.aval, **params)
        extents = [x.aval.shape[i] for i in axes]
        if not extents:
            values = element()
        elif len(identity) == 1 and self.opcode is not None:
            values = b.reduce(extents, lambda *i: element(*i)[0], self.opcode, identity[0])
        else:
            values = b.reduce(extents, element, lambda x, y: self.combine(b, x, y), identity)
        return self.finish(b, values if isinstance(values, tuple) else (values,), out, **params)

    def simplify(self, node: Any, rewriter: Any) -> Any:
        if not self.axes(node.params) and node.inputs[0].aval is node.outputs[0].aval:
            return [node.inputs[0]]
        return None
