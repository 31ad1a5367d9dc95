"""Reductions: partial results in lanes, a tail, and the combination across lanes.

Tails, for `lanes` = W: nothing when the extent is a known multiple of W; with cheap masks a masked
last iteration after the loop when the body is small, else a mask in every iteration that only the
last one computes; without masks a scalar loop over the rest.  Masked-off lanes contribute the identity.

Start reading at `_reduce`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jato.compiler.llvm import instructions as ins
from jato.compiler.llvm.loops import LoopEmitter
from jato.compiler.llvm.values import Val
from jato.compiler.loops.walk import extent_of
from jato.loopir.grammar import Expr, Reduce
from jato.loopir.scalar_ops import MATH_COST, is_math

# A reduction whose element has at most this many operations gets its tail as a copy of the body.
PEEL_LIMIT = 12
# Partial results of a reduction that each lane of an outer loop does for itself.
UNROLL = 4


class ReduceEmitter(LoopEmitter):
    """Adds reductions to LoopEmitter."""

    def _reduce(self, statement: Reduce) -> None:
        start, stop = self.scalar(statement.start), self.scalar(statement.stop)
        lanes = statement.lanes if statement.lanes > 1 and not self.lanes else 0
        dtypes = [e.dtype for e in statement.elements]
        level = len(self.scopes) - 1
        if not lanes:
            width = self.lanes if statement.results[0] in self._varying else 0
            init = [self.text_of(e, width) for e in statement.identity]
            if width and self._unrolls(statement):
                totals = self._unrolled_reduce(statement, start, stop, width, init)
            else:
                runs = self._runs(statement.start, statement.stop)
                totals = self._reduce_loop(statement, start, stop, width, 0, init, runs, False)
            for result, text in zip(statement.results, totals, strict=True):
                self.define(result, Val(text, width, level))
            return
        init = [self.text_of(e, lanes) for e in statement.identity]
        totals = self._vector_reduce(statement, start, stop, lanes, init)
        sums = self._across(statement, totals, dtypes, lanes)
        extent = extent_of(statement.start, statement.stop)
        if not self.has_masks and (extent is None or extent % lanes):
            middle = self._whole_groups(start, stop, lanes)
            sums = self._reduce_loop(statement, middle, stop, 0, 0, sums, False, False)
        for result, text in zip(statement.results, sums, strict=True):
            self.define(result, Val(text, 0, level))

    def _vector_reduce(
        self, statement: Reduce, start: str, stop: str, lanes: int, init: list[str]
    ) -> list[str]:
        """`lanes` partial results over all iterations (without masks: over whole groups)."""
        extent = extent_of(statement.start, statement.stop)
        if extent is not None and extent % lanes == 0:
            return self._reduce_loop(statement, start, stop, lanes, lanes, init, extent > 0, False)
        if not self.has_masks:
            middle = self._whole_groups(start, stop, lanes)
            return self._reduce_loop(statement, start, middle, lanes, lanes, init, False, False)
        small = not statement.body and operations_below(statement.elements, PEEL_LIMIT)
        if not small or (extent is not None and extent < lanes):
            runs = self._runs(statement.start, statement.stop)
            return self._reduce_loop(statement, start, stop, lanes, lanes, init, runs, True)
        middle = self._whole_groups(start, stop, lanes)
        runs = extent is not None and extent >= lanes
        totals = self._reduce_loop(statement, start, middle, lanes, lanes, init, runs, False)
        code = self.code
        rest = code.ins(f"icmp slt i64 {middle}, {stop}")

        def tail() -> list[str]:
            mask = self._first_lanes(self.code, middle, stop, lanes)
            return self._iteration(statement, middle, lanes, lanes, mask, totals)

        values, before, inside = self._branch(rest, self.text.label("tail"), tail)
        kinds = [ins.type_of(e.dtype, lanes) for e in statement.elements]
        return [
            code.ins(f"phi {kind} [{total}, %{before}], [{value}, %{inside}]")
            for kind, total, value in zip(kinds, totals, values, strict=True)
        ]

    def _unrolls(self, statement: Reduce) -> bool:
        """Does a chain of combinations, one for each iteration, take longer than the work?"""
        extent = extent_of(statement.start, statement.stop)
        long = extent is None or extent >= 2 * UNROLL
        return long and not statement.body and operations_below(statement.elements, PEEL_LIMIT)

    def _unrolled_reduce(
        self, statement: Reduce, start: str, stop: str, width: int, init: list[str]
    ) -> list[str]:
        """UNROLL partial results side by side, then the rest one by one.

        x @ w for a row x of 32 and a 32 x 32 matrix: 49 instead of 73 ns with tanh."""
        middle = self._whole_groups(start, stop, UNROLL)
        loop = self._open(start, middle, UNROLL, False)
        kinds = [ins.type_of(e.dtype, width) for e in statement.elements]
        parts = [
            [self._carry(loop, kind, text) for kind, text in zip(kinds, init, strict=True)]
            for _ in range(UNROLL)
        ]
        for offset, phis in enumerate(parts):
            self.push_inline()
            index = self.code.ins(f"add i64 {loop.counter}, {offset}") if offset else loop.counter
            nexts = self._iteration(statement, index, width, 0, None, [p.name for p in phis])
            self.pop()
            for phi, text in zip(phis, nexts, strict=True):
                phi.next = text
        flat = self._close(loop)
        count = len(kinds)
        sets = [flat[i : i + count] for i in range(0, len(flat), count)]
        while len(sets) > 1:
            sets = [
                self._combine(statement, sets[i], sets[i + 1], width)
                for i in range(0, len(sets), 2)
            ]
        return self._reduce_loop(statement, middle, stop, width, 0, sets[0], False, False)

    def _reduce_loop(
        self, statement: Reduce, start: str, stop: str, width: int, lanes: int, init: list[str],
        runs: bool, masked: bool,
    ) -> list[str]:  # fmt: skip
        """A loop over [start, stop), `lanes` at a time (0: one); results have `width` lanes."""
        loop = self._open(start, stop, lanes or 1, runs)
        phis = [
            self._carry(loop, ins.type_of(e.dtype, width), text)
            for e, text in zip(statement.elements, init, strict=True)
        ]
        mask = self._mask_of_iteration(statement, loop.counter, stop, lanes) if masked else None
        nexts = self._iteration(
            statement, loop.counter, width, lanes, mask, [phi.name for phi in phis]
        )
        for phi, text in zip(phis, nexts, strict=True):
            phi.next = text
        return self._close(loop)

    def _iteration(
        self, statement: Reduce, index: str, width: int, lanes: int, mask: str | None,
        totals: Sequence[str],
    ) -> list[str]:  # fmt: skip
        """One step of a reduction in the current scope: the new partial results."""
        saved = self.lanes, self.mask
        self._bind(statement.var, index, lanes)
        if lanes:
            self.lanes, self.mask = lanes, mask
            self._mark_varying(statement)
        self.statements(statement.body)
        elements = [self.text_of(e, width) for e in statement.elements]
        if mask is not None:
            elements = [
                ins.select(
                    self.code, mask, text, self.text_of(identity, width),
                    ins.type_of(e.dtype, width), width,
                )
                for text, e, identity in zip(
                    elements, statement.elements, statement.identity, strict=True
                )
            ]  # fmt: skip
        self.lanes, self.mask = saved
        return self._combine(statement, totals, elements, width)

    def _combine(
        self, statement: Reduce, left: Sequence[str], right: Sequence[str], lanes: int
    ) -> list[str]:
        """The statement's combination of two tuples of registers."""
        combine = statement.combine
        scope = self.push_inline()
        for placeholders, texts in ((combine.left, left), (combine.right, right)):
            for var, text in zip(placeholders, texts, strict=True):
                self.define(var, Val(text, lanes, scope.level))
        results = [self.text_of(e, lanes) for e in combine.result]
        self.pop()
        return results

    def _across(
        self, statement: Reduce, totals: list[str], dtypes: list[str], lanes: int
    ) -> list[str]:
        """Combines the lanes: halves with halves, down to one."""
        code = self.code
        while lanes > 1:
            half = lanes // 2
            sides: list[list[str]] = []
            for first in (0, half):
                side = []
                for text, dtype in zip(totals, dtypes, strict=True):
                    kind = ins.type_of(dtype, lanes)
                    if half == 1:
                        side.append(code.ins(f"extractelement {kind} {text}, i64 {first}"))
                    else:
                        order = ", ".join(f"i32 {first + i}" for i in range(half))
                        side.append(
                            code.ins(
                                f"shufflevector {kind} {text}, {kind} poison, "
                                f"<{half} x i32> <{order}>"
                            )
                        )
                sides.append(side)
            totals = self._combine(statement, sides[0], sides[1], half if half > 1 else 0)
            lanes = half
        return totals


def operations_below(roots: Iterable[Expr], limit: int) -> bool:
    """Whether the expressions have at most `limit` operations (a math opcode counts for many)."""
    count = 0
    seen: set[Expr] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.op not in ("const", "var", "param", "grid_begin", "grid_end"):
            count += MATH_COST if is_math(node.op) else 1
            if count > limit:
                return False
        stack.extend(node.args)
    return True
