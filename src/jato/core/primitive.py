"""Primitive: one object with all the rules of one operation.

A rule is a method.  A missing one raises MissingRule naming the primitive and the rule.  Families
(ops/elementwise.py, ops/structural.py, ...) are subclasses that supply the rules their members
share.  `Primitive.registry` is the only list of primitives.

    type_rule     types of the operands -> type of the result(s)
    jvp           forward derivative, in terms of other primitives
    transpose     reverse derivative, for primitives linear in some operands
    batch         the same operation with a mapped axis on some operands
    partial_eval  what to do when only some operands are known (default: all or nothing)
    lower         value of the result at an index (fusable primitives)
    expand        the same as other primitives (composed ones; runs before fusion)
    plan          steps of the executable (opaque and higher-order ones)
    simplify      peepholes that mention only this primitive
    reference     NumPy

A fusable primitive defines `lower`; a composed one `expand`; all others `plan`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from jato.base import hooks
from jato.base.errors import MissingRule, invariant
from jato.core import trace as trace_module

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jato.core.graph import Graph


class UndefinedPrimal:
    """Stands for a linear operand in `transpose`: only its type is known."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any):
        self.aval = aval

    def __repr__(self) -> str:  # in the messages about operands that are not linear
        return f"{self.aval}, in which the function must be linear"


class Primitive:
    """See the module's docstring.  `multiple_results`: results are lists in every rule."""

    registry: ClassVar[dict[str, Primitive]] = {}
    multiple_results: bool = False
    # fusable = has `lower`; the compiler asks these, never a list of names
    fusable: bool = False
    # not removed when its results are unused, not reordered (callbacks, prints)
    has_effect: bool = False
    # reads its operands only at the index of the result (operands of rank 0 aside)
    pointwise: bool = False
    # cost of one element beside one addition; fusion recomputes only what is cheap
    cost: float = 1.0
    # one element of the result reads many elements of an operand, or the same one as other
    # results do (windows, contractions, gathers): its operands are computed once, into memory
    rereads: bool = False

    def __init__(self, name: str):
        invariant(name not in Primitive.registry, f"primitive {name} is defined twice")
        self.name = name
        Primitive.registry[name] = self

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return _registered, (self.name,)

    def bind(self, *args: Any, **params: Any) -> Any:
        """Runs the primitive under the current trace.  Params are hashable and static."""
        current = trace_module.STATE.trace
        if current is None:
            return hooks.eval_primitive.get()(self, args, params)
        return current.process(self, args, params)

    # ---- rules; operands come as positional arguments, params as keywords

    def type_rule(self, *avals: Any, **params: Any) -> Any:
        """ArrayTypes of the operands -> ArrayType (or list of them)."""
        raise MissingRule(self.name, "type_rule")

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        """(primals, tangents) -> (out, tangent_out); tangents may be Zero(aval), as may
        tangent_out.  With multiple_results both are lists."""
        raise MissingRule(self.name, "jvp")

    def transpose(self, cotangent: Any, *operands: Any, **params: Any) -> Sequence[Any]:
        """Cotangents of the operands that are UndefinedPrimal; None for the others.

        `cotangent` (a list with multiple_results) is an array or Zero.  A returned cotangent
        has exactly the operand's shape and dtype, or is Zero or None."""
        raise MissingRule(self.name, "transpose")

    def batch(self, axis: AxisData, operands: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        """(out, out_dim).  dims[i] is the position of the mapped axis of operand i or None; at
        least one is not None, unless `axis.name in self.axis_names(params)`.  With
        multiple_results (outs, out_dims)."""
        raise MissingRule(self.name, "batch")

    def partial_eval(self, trace: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Called by partial evaluation when some operands are unknown.  NotImplemented: stage
        the whole operation (the default)."""
        return NotImplemented

    def lower(self, b: Any, inputs: Sequence[Any], index: tuple[Any, ...], out: Any, **params: Any) -> Any:
        """Value of the result at `index`, as loop-IR expression(s) made with builder `b`.

        inputs[i](index) is the value of operand i at an index (a tuple of i64 expressions, one
        per axis); inputs[i].aval is its type.  `out` is the result's ArrayType."""
        raise MissingRule(self.name, "lower")

    expand: Callable[..., Any] | None = None  # def expand(self, *operands, **params) -> results

    def inlined(self, params: dict[str, Any]) -> Graph | None:
        """The graph that `expand` would give, where the params hold it already."""
        return None

    def plan(self, context: Any, node: Any) -> Any:
        """Adds the steps of this node to the executable being planned."""
        raise MissingRule(self.name, "plan")

    def simplify(self, node: Any, rewriter: Any) -> Any:
        """None, or the atoms (list) that replace the node's outputs.  The rewriter can emit new
        nodes (`rewriter.bind(primitive, *atoms, **params) -> list of atoms`) and tell what
        defines an atom (`rewriter.producer(atom) -> Node | None`)."""
        return None

    def reference(self, *operands: Any, **params: Any) -> Any:
        """The same with NumPy, for tests: ndarrays in, ndarray (or list) out."""
        raise MissingRule(self.name, "reference")

    # ---- structure

    def prune(self, node: Any, used: Sequence[bool]) -> Any:
        """The node that computes at least the outputs marked `used` (at least one is not);
        higher-order primitives shrink the graphs they hold, factorizations compute less."""
        return node

    def axis_names(self, params: dict[str, Any]) -> tuple[Any, ...]:
        """Names of mapped axes this operation communicates over (collectives)."""
        return ()

    def subgraphs(self, params: dict[str, Any]) -> Sequence[Graph]:
        """Graphs held in the params."""
        return ()


class AxisData:
    """The axis that batching adds: its name (or None) and size, and the number of its first member,
    which is not 0 where it is a piece of a longer axis."""

    __slots__ = ("name", "size", "start")

    def __init__(self, name: Any, size: int, start: int = 0):
        self.name = name
        self.size = size
        self.start = start


def _registered(name: str) -> Primitive:
    return Primitive.registry[name]
