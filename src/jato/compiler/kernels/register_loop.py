"""Loops whose carries live in registers: a whole scan or while loop as one kernel.

Takes   the optimized graphs of a loop's body (and condition), its operands and results.
Gives   one loop nest, or None where the loop does not fit; then it becomes steps of the plan.

    pointwise   every value in the body has one shape (or is a scalar) and is computed element by
                element: each lane runs its own loop.       for i (lanes): for t: c = f(c)
    scalars     all carries together are a few numbers: each is a register.   for t: a, b = f(a, b)

A value that is needed elsewhere than at its own element (a neighbour, a sum over the array) shows
when lowering asks for a carry at an index that no register holds: the loop does not fit.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from jato.base import dtypes
from jato.compiler.fusion import cost
from jato.compiler.loops.lower import Index, Lowering, UnplacedReduction
from jato.compiler.loops.nest import LoopNest
from jato.core.graph import Atom, Graph, Node, Var
from jato.loopir.builder import Builder
from jato.loopir.grammar import For
from jato.ops.reduction_family import Reduction

# Numbers carried in registers, and the work of one iteration in scalar operations.
MOST_SCALARS = 64
MOST_LOADS = 512
MOST_WORK = 4000.0
# Scalars of one step wait for each other, but so many carries keep the machine busy: those of one
# kind become lanes of vectors (llvm/superwords.py).
MANY_CARRIES = 16

# Several vectors of elements run together while their carries and slices take at most so many
# registers (of 32), and their bodies at most so much work (code that is compiled).
REGISTERS = 16
WIDE_WORK = 160.0
FOREVER = 1 << 62


@dataclass(frozen=True, eq=False)
class LoopOperands:
    """A loop ready to be planned; graphs are instantiated on these variables.

    body         carries, slices -> next carries, ys      (constants already in place)
    condition    carries -> bool, or None
    carries      the variables of the carries inside the graphs; inits: what they start as
    slices       variables of one iteration's slices; xs: the arrays they are taken from
    finals, ys   results: the last carries, and the stacked values
    per_element  the condition is `any` over elements, and the body leaves finished ones alone
    """

    body: Graph
    condition: Graph | None
    carries: Sequence[Var]
    inits: Sequence[Atom]
    slices: Sequence[Var]
    xs: Sequence[Atom]
    finals: Sequence[Var]
    ys: Sequence[Var]
    length: int | None
    reverse: bool = False
    per_element: bool = False


def register_loop(loop: LoopOperands, vector_bytes: int) -> LoopNest | None:
    graphs = [loop.body, *([loop.condition] if loop.condition else [])]
    nodes = [n for g in graphs for n in g.nodes]
    if not all(_may_inline(n) for n in nodes) or loop.length == 0:
        return None
    shape = _common_shape(loop, nodes)
    scalars = sum(v.aval.size for v in loop.carries)
    loads = sum(v.aval.size for v in loop.slices)
    work = sum(cost.element_cost(n) * n.outputs[0].aval.size for n in nodes)
    attempts: list[_Pointwise | _Scalars] = []
    if shape is not None and shape != () and prod(shape) > 0:
        attempts.append(_Pointwise(loop, shape, vector_bytes))
    if scalars <= MOST_SCALARS and loads <= MOST_LOADS and work <= MOST_WORK and not loop.per_element:
        attempts.insert(0 if shape in (None, ()) or prod(shape) <= 8 else 1, _Scalars(loop))
    for attempt in attempts:
        try:
            nest = attempt.build()
        except UnplacedReduction:
            continue
        if nest is not None:
            return nest
    return None


def _may_inline(node: Node) -> bool:
    return node.primitive.fusable and len(node.outputs) == 1


def _common_shape(loop: LoopOperands, nodes: Sequence[Node]) -> tuple[int, ...] | None:
    """The one shape of all values that are no scalars; () if all are; None if they differ."""
    values: list[Atom] = [*loop.carries, *loop.slices]
    for node in nodes:
        if loop.per_element and isinstance(node.primitive, Reduction):
            continue  # the `any` of the condition
        if not node.primitive.pointwise and not _is_scalar_broadcast(node):
            return None
        values += [*node.inputs, *node.outputs]
    shapes = {v.aval.shape for v in values} - {()}
    if len(shapes) > 1:
        return None
    if any(y.aval.ndim == 1 for y in loop.ys) and shapes:
        return None  # a scalar result per iteration, but many lanes
    return shapes.pop() if shapes else ()


def _is_scalar_broadcast(node: Node) -> bool:
    return cost.is_structural(node) and all(a.aval.shape == () for a in node.inputs)


class _Attempt:
    """What both forms share: the loop, its stores, and the loop nest around it."""

    def __init__(self, loop: LoopOperands):
        self.loop = loop
        self.b = Builder()
        graphs = [loop.body, *([loop.condition] if loop.condition else [])]
        self.lowering = Lowering(self.b, [n for g in graphs for n in g.nodes])
        self.order = [n for g in graphs for n in g.nodes]

    def elements(self, var: Atom) -> list[Index]:
        """The indices of the elements of a carry (slice, y) that registers hold."""
        raise NotImplementedError

    def define(self, var: Var, values: Sequence[Any]) -> None:
        for index, value in zip(self.elements(var), values, strict=True):
            self.lowering.define(var, index, value)

    def values(self, atoms: Sequence[Atom], like: Sequence[Var]) -> list[Any]:
        found = []
        for atom, var in zip(atoms, like, strict=True):
            found += [self.lowering.value(atom, index) for index in self.elements(var)]
        return found

    def split(self, flat: Sequence[Any]) -> list[list[Any]]:
        rest = iter(flat)
        return [[next(rest) for _ in self.elements(c)] for c in self.loop.carries]

    def run(self) -> None:
        """Writes the ordered loop and the stores of the last carries."""
        loop, b, lowering = self.loop, self.b, self.lowering
        inits = self.values(loop.inits, loop.carries)

        def step(i: Any, flat: tuple[Any, ...]) -> tuple[Any, ...]:
            with lowering.scope():
                for carry, values in zip(loop.carries, self.split(flat), strict=True):
                    self.define(carry, values)
                last = b.index((loop.length or 1) - 1)
                place = b.sub(last, i) if loop.reverse else i
                for part, x in zip(loop.slices, loop.xs, strict=True):
                    self.define(
                        part, [lowering.value(x, (place, *e)) for e in self.elements(part)]
                    )
                self.evaluate_in_order(loop.body)
                count = len(loop.carries)
                for atom, y in zip(loop.body.outputs[count:], loop.ys, strict=True):
                    for e in self.elements_of_slice(y):
                        at = lowering.offset(y.aval.shape, (place, *e))
                        b.store(lowering.output(y), at, lowering.value(atom, e))
                return tuple(self.values(loop.body.outputs[:count], loop.carries))

        def test(flat: tuple[Any, ...]) -> Any:
            assert loop.condition is not None
            with lowering.scope():
                for carry, values in zip(loop.carries, self.split(flat), strict=True):
                    self.define(carry, values)
                return self.condition_value(loop.condition)

        stop = loop.length if loop.length is not None else FOREVER
        results = b.loop("t", 0, stop, inits, step, test if loop.condition is not None else None)
        for var, carry, values in zip(
            loop.finals, loop.carries, self.split(results), strict=True
        ):
            for index, value in zip(self.elements(carry), values, strict=True):
                b.store(lowering.output(var), lowering.offset(var.aval.shape, index), value)

    def condition_value(self, condition: Graph) -> Any:
        return self.lowering.value(condition.outputs[0], ())

    def evaluate_in_order(self, graph: Graph) -> None:
        """Values of the body in graph order, so that a long body is no deep recursion."""

    def elements_of_slice(self, y: Var) -> list[Index]:
        raise NotImplementedError

    def work(self) -> float:
        """Of one step, for an element; the `any` over elements is a test of each element here."""
        nodes = [n for n in self.order if not cost.is_structural(n)]
        if self.loop.per_element:
            nodes = [n for n in nodes if not isinstance(n.primitive, Reduction)]
        return sum(map(cost.element_cost, nodes))

    def nest(self, grid: int, lanes: int, elements: int) -> LoopNest | None:
        loop, lowering = self.loop, self.lowering
        inside = {*loop.carries, *loop.slices}
        if inside & set(lowering.buffers):
            return None  # a carry was needed at an index that no register holds
        names: dict[Any, Var] = {buffer: var for var, buffer in lowering.buffers.items()}
        names.update({buffer: var for var, buffer in lowering.outputs.items()})
        kernel = self.b.kernel("loop")
        arguments = [names[x] for x in kernel.buffers if x.space != "local"]
        work = self.work()
        steps = loop.length if loop.length is not None else 100
        each = steps * max(1.0, work) * cost.UNIT_NS
        if lanes == 1:
            each *= 10 if len(loop.carries) < MANY_CARRIES else 3
        outputs = [v for v in (*loop.finals, *loop.ys) if v in lowering.outputs]
        grain = lanes if grid > 1 else 1
        return LoopNest(
            kernel, arguments, outputs, grid, grain, each * elements, 0,
            unbounded=loop.length is None, written_out=isinstance(self, _Scalars),
        )  # fmt: skip


class _Pointwise(_Attempt):
    def __init__(self, loop: LoopOperands, shape: tuple[int, ...], vector_bytes: int):
        super().__init__(loop)
        self.shape = shape
        values = [v for n in self.order for v in (*n.inputs, *n.outputs)]
        widest = max(
            {"c64": 4, "c128": 8, "f16": 4, "bf16": 4}.get(
                dtypes.scalar_name(v.aval), v.aval.itemsize
            )
            for v in (*loop.carries, *loop.slices, *values)
        )
        width = max(1, vector_bytes // widest)
        self.lanes = width * self.vectors(width)
        self.here: Index = ()

    def vectors(self, width: int) -> int:
        """How many vectors of elements run together.

        A step waits for the one before it, so one vector leaves most of the machine idle; several
        are limited by the registers that carries and what the body reads take."""
        loop = self.loop
        most = 4 if loop.condition is None else 2  # together until the last element is done
        held = sum(1 + (v.aval.dtype.kind == "c") for v in (*loop.carries, *loop.slices))
        work = self.work()
        vectors = min(most, REGISTERS // max(1, held), int(WIDE_WORK // max(1.0, work)))
        vectors = min(vectors, prod(self.shape) // width)  # whole ones: a last part may overlap
        return 1 if vectors < 2 else 2 if vectors < 4 else 4

    def elements(self, var: Atom) -> list[Index]:
        return [self.here if var.aval.shape == self.shape else ()]

    def elements_of_slice(self, y: Var) -> list[Index]:
        return [self.here]

    def condition_value(self, condition: Graph) -> Any:
        out = condition.outputs[0]
        if self.loop.per_element:
            producer = self.lowering.producer.get(out) if isinstance(out, Var) else None
            if producer is None or not isinstance(producer.primitive, Reduction):
                return self.lowering.value(out, ())
            tested = producer.inputs[0]
            return self.lowering.value(tested, self.here if tested.aval.shape else ())
        return self.lowering.value(out, ())

    def evaluate_in_order(self, graph: Graph) -> None:
        for node in graph.nodes:
            out = node.outputs[0]
            self.lowering.value(out, self.here if out.aval.shape == self.shape else ())

    def build(self) -> LoopNest | None:
        b = self.b
        size = prod(self.shape)
        v = b.var("i", "i64", 0, size - 1)
        with b.block() as body, self.lowering.scope():
            long_axes = [n for n in self.shape if n != 1]
            places = iter(self.lowering.unravel(v, tuple(long_axes)))
            self.here = tuple(b.index(0) if n == 1 else next(places) for n in self.shape)
            self.run()
        b.append(For(v, b.grid_begin(), b.grid_end(), tuple(body), self.lanes))
        return self.nest(size, self.lanes, 1)


class _Scalars(_Attempt):
    def elements(self, var: Atom) -> list[Index]:
        return [
            tuple(map(self.b.index, place))
            for place in itertools.product(*map(range, var.aval.shape))
        ]

    def elements_of_slice(self, y: Var) -> list[Index]:
        return [
            tuple(map(self.b.index, place))
            for place in itertools.product(*map(range, y.aval.shape[1:]))
        ]

    def build(self) -> LoopNest | None:
        b = self.b
        with b.block() as body, self.lowering.scope():
            self.run()
        g = b.var("g", "i64", 0, 0)
        b.append(For(g, b.grid_begin(), b.grid_end(), tuple(body)))
        return self.nest(1, 1, 1)


