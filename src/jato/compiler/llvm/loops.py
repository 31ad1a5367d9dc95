"""Loops over indices: their skeleton, and vector loops with their tails.

Tails of vector loops, for `lanes` = W and n iterations:
  n known to be W           no loop
  n a known multiple of W   nothing
  masks are cheap           the last iteration overlaps the one before (i = min(i, n - W)), its
                            mask fixed before the loop; a mask for each iteration, computed in
                            the last one only, where repeating an iteration could be seen (in
                            place, read-modify-write)
  otherwise                 a scalar loop over the rest

A loop is written into scopes of its own, preheader and body; `_close` joins their text to the
parent's.  Start reading at `_for`, then `_open` and `_close`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jato.base.errors import invariant
from jato.compiler.llvm import instructions as ins
from jato.compiler.llvm.instructions import Code, FunctionText
from jato.compiler.llvm.memory import MemoryEmitter
from jato.compiler.llvm.target import Target
from jato.compiler.llvm.values import Val
from jato.compiler.loops import walk
from jato.compiler.loops.walk import extent_of
from jato.loopir.grammar import Expr, For, Loop, Reduce, Stmt, Store
from jato.loopir.scalar_ops import MATH_COST, SCALAR_OPS, is_math

# A loop body branches around the masks of its loads when it has at least so many operations for each
# load (stencils, which have fewer, take 1.15 times as long with branches).
WORK_FOR_BRANCH = 4


@dataclass
class Phi:
    """A value carried around a loop."""

    name: str
    kind: str
    init: str
    next: str = ""


class OpenLoop:
    """A loop being written: its scopes, counter and carried values."""

    def __init__(self, start: str, stop: str, step: int, counter: str, head: str, preheader: str):
        self.start = start
        self.stop = stop
        self.step = step
        self.counter = counter
        self.head = head
        self.preheader = preheader  # empty: the loop is known to run, the parent leads into it
        self.phis: list[Phi] = []


class LoopEmitter(MemoryEmitter):
    """Adds loops to MemoryEmitter."""

    def __init__(self, text: FunctionText, target: Target, in_place: bool):
        super().__init__(text, target, in_place)
        self._varying: set[Expr] = set()

    def statements(self, body: Sequence[Stmt]) -> None:
        raise NotImplementedError  # emit.py

    # ---- the skeleton of a loop

    def _open(self, start: str, stop: str, step: int, runs: bool) -> OpenLoop:
        """Opens the scopes of a loop; `runs`: it is known to run at least once."""
        preheader = ""
        if not runs:
            preheader = self.text.label("enter")
            self.push(preheader, False)
        head = self.text.label("loop")
        counter = self.text.name("i")
        self.push(head, True)
        return OpenLoop(start, stop, step, counter, head, preheader)

    def _carry(self, loop: OpenLoop, kind: str, init: str) -> Phi:
        phi = Phi(self.text.name("carry"), kind, init)
        loop.phis.append(phi)
        return phi

    def _close(self, loop: OpenLoop, go_on: str = "") -> list[str]:
        """Writes the loop into the parent; gives the final values of what it carries.

        go_on: an i1 that must be true for another iteration, besides the counter's bound."""
        body = self.code
        following = body.ins(f"add i64 {loop.counter}, {loop.step}")
        again = body.ins(f"icmp slt i64 {following}, {loop.stop}")
        if go_on:
            again = body.ins(f"and i1 {again}, {go_on}")
        done = self.text.label("done")
        body.do(f"br i1 {again}, label %{loop.head}, label %{done}")
        self.pop()
        enter: Code | None = None
        if loop.preheader:
            enter = self.pop().code
        parent = self.code
        before = parent.label
        if enter is not None:
            runs = parent.ins(f"icmp slt i64 {loop.start}, {loop.stop}")
            parent.do(f"br i1 {runs}, label %{loop.preheader}, label %{done}")
            parent.lines.append(f"{loop.preheader}:")
            parent.lines += enter.lines
            entry = enter.label
        else:
            entry = before
        parent.do(f"br label %{loop.head}")
        parent.lines.append(f"{loop.head}:")
        parent.do(
            f"{loop.counter} = phi i64 [{loop.start}, %{entry}], [{following}, %{body.label}]"
        )
        for phi in loop.phis:
            parent.do(
                f"{phi.name} = phi {phi.kind} [{phi.init}, %{entry}], [{phi.next}, %{body.label}]"
            )
        parent.lines += body.lines
        parent.start(done)
        if enter is None:
            return [phi.next for phi in loop.phis]
        return [
            parent.ins(f"phi {p.kind} [{p.init}, %{before}], [{p.next}, %{body.label}]")
            for p in loop.phis
        ]

    def _branch(
        self, condition: str, label: str, write: Callable[[], Sequence[str]]
    ) -> tuple[Sequence[str], str, str]:
        """A block entered when `condition`; gives its values and the labels they come from."""
        code = self.code
        self.push(label, False)
        values = write()
        inner = self.pop().code
        done = self.text.label("after")
        before = code.label
        code.do(f"br i1 {condition}, label %{label}, label %{done}")
        code.lines.append(f"{label}:")
        code.lines += inner.lines
        code.do(f"br label %{done}")
        code.start(done)
        return values, before, inner.label

    def _bind(self, var: Expr, text: str, lanes: int) -> None:
        """A loop variable: `lanes` consecutive values from `text` on."""
        level = len(self.scopes) - 1
        self.define(var, Val(text, lanes, level, 1 if lanes else None, True))

    # ---- For

    def _for(self, statement: For) -> None:
        start, stop = self.scalar(statement.start), self.scalar(statement.stop)
        lanes = statement.lanes if statement.lanes > 1 else 0
        if not lanes:
            self._plain_for(statement, start, stop, self._runs(statement.start, statement.stop))
            return
        invariant(self.lanes == 0, "a vector loop inside a vector loop")
        extent = extent_of(statement.start, statement.stop)
        if extent == lanes:
            self.push_inline()
            if statement.start.op == "const":
                first = int(statement.start.attr)
                self.lane_var = (statement.var, range(first, first + lanes))
            self._vector_body(statement, start, lanes, None)
            self.lane_var = None
            self.pop()
        elif extent is not None and extent % lanes == 0:
            self._vector_for(statement, start, stop, lanes, extent > 0)
        elif not self.has_masks:
            middle = self._whole_groups(start, stop, lanes)
            self._vector_for(statement, start, middle, lanes, False)
            self._plain_for(statement, middle, stop, False)
        elif self._repeatable(statement.body):
            self._overlapping_for(statement, start, stop, lanes, extent)
        else:
            self._masked_for(statement, start, stop, lanes)

    def _runs(self, start: Expr, stop: Expr) -> bool:
        extent = extent_of(start, stop)
        return extent is not None and extent > 0

    def _whole_groups(self, start: str, stop: str, lanes: int) -> str:
        """start + the largest multiple of `lanes` up to stop - start (never below start)."""
        code = self.code
        length = code.ins(f"sub i64 {stop}, {start}")
        length = code.call("llvm.smax.i64", "i64", ["i64", "i64"], [length, "0"])
        whole = code.ins(f"and i64 {length}, {-lanes}")
        return code.ins(f"add i64 {start}, {whole}")

    def _plain_for(self, statement: For, start: str, stop: str, runs: bool) -> None:
        loop = self._open(start, stop, 1, runs)
        self._bind(statement.var, loop.counter, 0)
        self.statements(statement.body)
        self._close(loop)

    def _vector_for(self, statement: For, start: str, stop: str, lanes: int, runs: bool) -> None:
        loop = self._open(start, stop, lanes, runs)
        self._vector_body(statement, loop.counter, lanes, None)
        self._close(loop)

    def _vector_body(self, statement: For, index: str, lanes: int, mask: str | None) -> None:
        self._bind(statement.var, index, lanes)
        self.lanes, self.mask = lanes, mask
        self._mark_varying(statement)
        self.statements(statement.body)
        self.lanes, self.mask = 0, None

    def _overlapping_for(
        self, statement: For, start: str, stop: str, lanes: int, extent: int | None
    ) -> None:
        """i = min(i, stop - W), and for fewer than W iterations a mask: one body for every n."""
        loop = self._open(start, stop, lanes, self._runs(statement.start, statement.stop))
        outer = self.scopes[-2].code
        last = outer.ins(f"sub i64 {stop}, {lanes}")
        mask = None
        pair = ["i64", "i64"]
        if extent is None or extent < lanes:
            last = outer.call("llvm.smax.i64", "i64", pair, [last, start])
            mask = self._first_lanes(outer, start, stop, lanes)
            extent_text = outer.ins(f"sub i64 {stop}, {start}")
            all_active = outer.ins(f"icmp sge i64 {extent_text}, {lanes}")
            if self._is_heavy(statement):
                self.all_active[mask] = (all_active, self.code)
        index = self.code.call("llvm.smin.i64", "i64", pair, [loop.counter, last])
        self._vector_body(statement, index, lanes, mask)
        self._close(loop)

    def _masked_for(self, statement: For, start: str, stop: str, lanes: int) -> None:
        loop = self._open(start, stop, lanes, self._runs(statement.start, statement.stop))
        mask = self._mask_of_iteration(statement, loop.counter, stop, lanes)
        self._vector_body(statement, loop.counter, lanes, mask)
        self._close(loop)

    def _mask_of_iteration(
        self, statement: For | Reduce, index: str, stop: str, lanes: int
    ) -> str:
        """The mask of the lanes below stop - index in an iteration; where loads may branch around it,
        only the last one computes it."""
        code = self.code
        if not self._is_heavy(statement):
            return self._first_lanes(code, index, stop, lanes)
        rest = code.ins(f"sub i64 {stop}, {index}")
        all_active = code.ins(f"icmp sge i64 {rest}, {lanes}")
        before, cut, done = code.label, self.text.label("cut"), self.text.label("go")
        code.do(f"br i1 {all_active}, label %{done}, label %{cut}")
        code.start(cut)
        part = self._first_lanes(code, index, stop, lanes)
        code.do(f"br label %{done}")
        code.start(done)
        kind = f"<{lanes} x i1>"
        mask = code.ins(f"phi {kind} [splat (i1 true), %{before}], [{part}, %{cut}]")
        self.all_active[mask] = (all_active, code)
        return mask

    def _is_heavy(self, statement: For | Reduce) -> bool:
        """May loads of this body branch around their masks (memory.py)?  Where there is so much work
        that the branches do not show: a stencil takes 1.15 times as long with them."""
        loads = work = 0
        for node in walk.expressions([statement]):
            if node.op == "load":
                loads += 1
            elif node.op in SCALAR_OPS and node.dtype != "i64":  # that of most indices
                work += MATH_COST if is_math(node.op) else 1
        return work >= WORK_FOR_BRANCH * loads

    def _first_lanes(self, code: Code, index: str, stop: str, lanes: int) -> str:
        """The mask of the lanes below stop - index."""
        rest = code.ins(f"sub i64 {stop}, {index}")
        rest = code.call("llvm.smin.i64", "i64", ["i64", "i64"], [rest, str(lanes)])
        kind = "i32" if lanes <= 16 else "i8" if lanes <= 64 else "i16"
        count = ins.splat(code, code.ins(f"trunc i64 {rest} to {kind}"), kind, lanes)
        return code.ins(f"icmp ult <{lanes} x {kind}> {ins.lane_numbers(kind, lanes)}, {count}")

    def _repeatable(self, body: Sequence[Stmt]) -> bool:
        """Running an iteration twice cannot be seen: nothing is read that it might write."""
        if self.in_place:
            return False
        written = {s.buffer for s in walk.statements(body) if isinstance(s, Store)}
        return not any(
            node.op == "load" and node.attr in written for node in walk.expressions(body)
        )

    # ---- which variables differ between lanes

    def _mark_varying(self, statement: For | Reduce) -> None:
        """Finds the results and carries inside a vector loop that differ between its lanes."""
        inner = [s for s in walk.statements(statement.body) if isinstance(s, (Reduce, Loop))]
        if not inner:
            return
        varying: set[Expr] = {statement.var}
        changed = True
        while changed:
            changed = False
            memo: dict[Expr, bool] = {}
            for s in inner:
                if isinstance(s, Reduce):
                    sources: list[tuple[Expr, tuple[Expr, ...]]] = [
                        (r, (*s.elements, *s.identity)) for r in s.results
                    ]
                else:
                    sources = []
                    stops = (s.condition,) if s.condition is not None else ()
                    for carry, result, init, following in zip(
                        s.carries, s.results, s.inits, s.nexts, strict=True
                    ):
                        sources.append((carry, (init, following, *stops)))
                        sources.append((result, (carry,)))
                for var, causes in sources:
                    if var not in varying and any(
                        self._depends_on_lane(c, varying, memo) for c in causes
                    ):
                        varying.add(var)
                        changed = True
                        memo = {}
        self._varying = varying

    def _depends_on_lane(self, root: Expr, varying: set[Expr], memo: dict[Expr, bool]) -> bool:
        stack = [root]
        while stack:
            node = stack[-1]
            if node in memo:
                stack.pop()
                continue
            if node in varying:
                memo[node] = True
                stack.pop()
                continue
            pending = [a for a in node.args if a not in memo]
            if pending:
                stack.extend(pending)
                continue
            memo[node] = any(memo[a] for a in node.args)
            stack.pop()
        return memo[root]
