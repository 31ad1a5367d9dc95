"""Kernels to LLVM IR text, vector instructions and all; LLVM only selects and schedules them.

`emit_module(kernels, target)` gives the text of one module.  Text is written directly because it
is several times quicker than building it through an API, and because vector code that is right
from the start needs no optimisation passes (measured on an exp kernel: 2.2 ms all in, against 15
with a middle end).

Tails of vector loops, for `lanes` = W and n iterations:
  n a known multiple of W   nothing
  masks are cheap           For: the last iteration overlaps the one before (i = min(i, n - W)), its
                            mask fixed before the loop; per-iteration masks where repeating an
                            iteration could be seen (in place, read-modify-write).
                            Reduce: a masked last iteration after the loop when the body is small,
                            else masks in every iteration
  otherwise                 a scalar loop over the rest

Start reading at `emit_kernel`, then `_for` and `_reduce`; values.py and memory.py hold the rest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from jato.base.errors import invariant
from jato.compiler.llvm import abi
from jato.compiler.llvm import instructions as ins
from jato.compiler.llvm.instructions import Code, FunctionText
from jato.compiler.llvm.memory import MemoryEmitter
from jato.compiler.llvm.target import Target
from jato.compiler.llvm.values import MathFunctions, Val, any_of
from jato.loopir.grammar import Buffer, Expr, For, If, Kernel, Loop, Reduce, Stmt, Store
from jato.loopir.scalar_ops import SCALAR_OPS

# A reduction whose element has at most this many operations gets its tail as a copy of the body.
PEEL_LIMIT = 12
# Uses of one math opcode in a kernel from which it becomes a function of the module.
CALL_THRESHOLD = 8
# Iterations of an ordered loop between looks at the cancel flag.
CANCEL_PERIOD = 1024


def emit_module(kernels: Sequence[tuple[str, Kernel]], target: Target) -> str:
    """The text of a module with one function per (symbol, kernel)."""
    declarations: dict[str, str] = {}
    shared = MathFunctions(declarations)
    functions = [emit_kernel(symbol, kernel, target, shared) for symbol, kernel in kernels]
    width = target.vector_bits
    return "\n".join(
        [
            "@zeros = private unnamed_addr constant [16 x i8] zeroinitializer, align 16",
            *functions,
            *shared.texts.values(),
            *declarations.values(),
            f'attributes #0 = {{ nounwind "prefer-vector-width"="{width}" '
            f'"min-legal-vector-width"="{width}" "no-trapping-math"="true" }}',
            "!0 = !{}",
            "",
        ]
    )


def emit_kernel(symbol: str, kernel: Kernel, target: Target, shared: MathFunctions) -> str:
    """The text of one function; what it needs besides goes to `shared`."""
    return KernelEmitter(symbol, kernel, target, shared).run()


@dataclass
class _Phi:
    """A value carried around a loop."""

    name: str
    kind: str
    init: str
    next: str = ""


class _OpenLoop:
    """A loop being written: its scopes, counter and carried values."""

    def __init__(self, start: str, stop: str, step: int, counter: str, head: str, preheader: str):
        self.start = start
        self.stop = stop
        self.step = step
        self.counter = counter
        self.head = head
        self.preheader = preheader  # empty: the loop is known to run, the parent leads into it
        self.phis: list[_Phi] = []


class KernelEmitter(MemoryEmitter):
    """Writes one kernel."""

    def __init__(self, symbol: str, kernel: Kernel, target: Target, shared: MathFunctions):
        super().__init__(FunctionText(shared.declarations), kernel.in_place, target.has_masks)
        self.functions = shared
        self.symbol = symbol
        self.kernel = kernel
        self.target = target
        self._pointers: dict[Buffer, str] = {}
        self._tables: dict[str, str] = {}
        self._scratch_offsets, _ = abi.scratch_layout(kernel.buffers)
        self._positions = {b: i for i, b in enumerate(abi.argument_buffers(kernel.buffers))}
        self._varying: set[Expr] = set()

    def run(self) -> str:
        nodes = nodes_of(self.kernel.body)
        self.find_pairs([n for n in nodes if n.op == "load"])
        uses = Counter((n.op, n.dtype) for n in nodes if is_math(n))
        self.called = frozenset(key for key, count in uses.items() if count >= CALL_THRESHOLD)
        self.statements(self.kernel.body)
        self.code.do("ret void")
        lines = self.scopes[0].code.lines
        head = f"define void @{self.symbol}(ptr noalias readonly %args, i64 %begin, i64 %end) #0 {{"
        return "\n".join([head, "entry:", *lines, "}", ""])

    # ---- arguments

    def _table(self, field: str) -> str:
        """One pointer of KernelArgs."""
        known = self._tables.get(field)
        if known is None:
            code = self.scopes[0].code
            address = code.ins(f"getelementptr i8, ptr %args, i64 {abi.OFFSETS[field]}")
            known = code.ins(f"load ptr, ptr {address}, align 8, !invariant.load !0")
            self._tables[field] = known
        return known

    def pointer(self, buffer: Buffer) -> str:
        known = self._pointers.get(buffer)
        if known is None:
            code = self.scopes[0].code
            if buffer.space == "local":
                offset = self._scratch_offsets[buffer]
                known = code.ins(f"getelementptr i8, ptr {self._table('scratch')}, i64 {offset}")
            else:
                table = self._table("buffers")
                address = code.ins(f"getelementptr ptr, ptr {table}, i64 {self._positions[buffer]}")
                known = code.ins(f"load ptr, ptr {address}, align 8, !invariant.load !0")
            self._pointers[buffer] = known
        return known

    def argument(self, node: Expr) -> Val:
        if node.op == "grid_begin":
            return Val("%begin", 0, 0, None, True)
        if node.op == "grid_end":
            return Val("%end", 0, 0, None, True)
        code = self.scopes[0].code
        address = code.ins(f"getelementptr i64, ptr {self._table('params')}, i64 {node.attr}")
        text = code.ins(f"load i64, ptr {address}, align 8, !invariant.load !0")
        return Val(text, 0, 0, None, True)

    # ---- statements

    def statements(self, body: Sequence[Stmt]) -> None:
        skip = False
        for position, statement in enumerate(body):
            if skip:
                skip = False
                continue
            if isinstance(statement, Store):
                following = body[position + 1] if position + 1 < len(body) else None
                pair = isinstance(following, Store) and self.is_store_pair(statement, following)
                self.store(statement, following if pair and isinstance(following, Store) else None)
                skip = pair
            elif isinstance(statement, For):
                self._for(statement)
            elif isinstance(statement, Reduce):
                self._reduce(statement)
            elif isinstance(statement, Loop):
                self._loop(statement)
            else:
                self._if(statement)

    # ---- the skeleton of a loop

    def _open(self, start: str, stop: str, step: int, runs: bool) -> _OpenLoop:
        """Opens the scopes of a loop; `runs`: it is known to run at least once."""
        preheader = ""
        if not runs:
            preheader = self.text.label("enter")
            self.push(preheader, False)
        head = self.text.label("loop")
        counter = self.text.name("i")
        self.push(head, True)
        return _OpenLoop(start, stop, step, counter, head, preheader)

    def _carry(self, loop: _OpenLoop, kind: str, init: str) -> _Phi:
        phi = _Phi(self.text.name("carry"), kind, init)
        loop.phis.append(phi)
        return phi

    def _close(self, loop: _OpenLoop, go_on: str = "") -> list[str]:
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
        extent = _extent(statement.start, statement.stop)
        if extent is not None and extent % lanes == 0:
            self._vector_for(statement, start, stop, lanes, extent > 0)
        elif not self.target.has_masks:
            middle = self._whole_groups(start, stop, lanes)
            self._vector_for(statement, start, middle, lanes, False)
            self._plain_for(statement, middle, stop, False)
        elif self._repeatable(statement.body):
            self._overlapping_for(statement, start, stop, lanes, extent)
        else:
            self._masked_for(statement, start, stop, lanes, extent)

    def _runs(self, start: Expr, stop: Expr) -> bool:
        extent = _extent(start, stop)
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
        index = self.code.call("llvm.smin.i64", "i64", pair, [loop.counter, last])
        self._vector_body(statement, index, lanes, mask)
        self._close(loop)

    def _masked_for(
        self, statement: For, start: str, stop: str, lanes: int, extent: int | None
    ) -> None:
        loop = self._open(start, stop, lanes, self._runs(statement.start, statement.stop))
        mask = self._first_lanes(self.code, loop.counter, stop, lanes)
        self._vector_body(statement, loop.counter, lanes, mask)
        self._close(loop)

    def _first_lanes(self, code: Code, index: str, stop: str, lanes: int) -> str:
        """The mask of the lanes below stop - index."""
        rest = code.ins(f"sub i64 {stop}, {index}")
        rest = code.call("llvm.smin.i64", "i64", ["i64", "i64"], [rest, str(lanes)])
        kind = "i32" if lanes <= 16 else "i8" if lanes <= 64 else "i16"
        count = ins.splat(code, code.ins(f"trunc i64 {rest} to {kind}"), kind, lanes)
        return code.ins(f"icmp ult <{lanes} x {kind}> {ins.lane_numbers(kind, lanes)}, {count}")

    def _repeatable(self, body: Sequence[Stmt]) -> bool:
        """Running an iteration twice cannot be seen: nothing is read that might be written."""
        return not self.in_place and not any(
            node.op == "load" and node.attr.space != "in" for node in nodes_of(body)
        )

    # ---- Reduce

    def _reduce(self, statement: Reduce) -> None:
        start, stop = self.scalar(statement.start), self.scalar(statement.stop)
        lanes = statement.lanes if statement.lanes > 1 and not self.lanes else 0
        dtypes = [e.dtype for e in statement.elements]
        level = len(self.scopes) - 1
        if not lanes:
            width = self.lanes if statement.results[0] in self._varying else 0
            init = [self.text_of(e, width) for e in statement.identity]
            runs = self._runs(statement.start, statement.stop)
            totals = self._reduce_loop(statement, start, stop, width, 0, init, runs, False)
            for result, text in zip(statement.results, totals, strict=True):
                self.define(result, Val(text, width, level))
            return
        init = [self.text_of(e, lanes) for e in statement.identity]
        totals = self._vector_reduce(statement, start, stop, lanes, init)
        sums = self._across(statement, totals, dtypes, lanes)
        extent = _extent(statement.start, statement.stop)
        if not self.target.has_masks and (extent is None or extent % lanes):
            middle = self._whole_groups(start, stop, lanes)
            sums = self._reduce_loop(statement, middle, stop, 0, 0, sums, False, False)
        for result, text in zip(statement.results, sums, strict=True):
            self.define(result, Val(text, 0, level))

    def _vector_reduce(
        self, statement: Reduce, start: str, stop: str, lanes: int, init: list[str]
    ) -> list[str]:
        """`lanes` partial results over all iterations (without masks: over whole groups)."""
        extent = _extent(statement.start, statement.stop)
        if extent is not None and extent % lanes == 0:
            return self._reduce_loop(statement, start, stop, lanes, lanes, init, extent > 0, False)
        if not self.target.has_masks:
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
        mask = self._first_lanes(self.code, loop.counter, stop, lanes) if masked else None
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

    # ---- Loop

    def _loop(self, statement: Loop) -> None:
        """Iterations in order; looks at the cancel flag now and then."""
        start, stop = self.scalar(statement.start), self.scalar(statement.stop)
        extent = _extent(statement.start, statement.stop)
        widths = [self.lanes if c in self._varying else 0 for c in statement.carries]
        kinds = [ins.type_of(c.dtype, w) for c, w in zip(statement.carries, widths, strict=True)]
        inits = [self.text_of(e, w) for e, w in zip(statement.inits, widths, strict=True)]
        level = len(self.scopes) - 1
        alive_width = self._condition_lanes(statement)
        runs = statement.condition is None and extent is not None and extent > 0
        if statement.condition is not None:
            results = self._while(statement, start, stop, kinds, widths, inits, alive_width)
        else:
            loop = self._open(start, stop, 1, runs)
            self._bind(statement.var, loop.counter, 0)
            phis = self._bind_carries(loop, statement, kinds, widths, inits)
            go_on = ""
            if extent is None or extent > CANCEL_PERIOD:
                go_on = self._not_cancelled(loop.counter)
            self.statements(statement.body)
            for phi, e, width in zip(phis, statement.nexts, widths, strict=True):
                phi.next = self.text_of(e, width)
            results = self._close(loop, go_on)
        for result, text, width in zip(statement.results, results, widths, strict=True):
            self.define(result, Val(text, width, level))

    def _bind_carries(
        self, loop: _OpenLoop, statement: Loop, kinds: list[str], widths: list[int],
        inits: list[str],
    ) -> list[_Phi]:  # fmt: skip
        level = len(self.scopes) - 1
        phis = []
        for carry, kind, width, init in zip(statement.carries, kinds, widths, inits, strict=True):
            phi = self._carry(loop, kind, init)
            self.define(carry, Val(phi.name, width, level))
            phis.append(phi)
        return phis

    def _condition_lanes(self, statement: Loop) -> int:
        condition = statement.condition
        if condition is None or not self.lanes:
            return 0
        return self.lanes if self._depends_on_lane(condition, self._varying, {}) else 0

    def _while(
        self, statement: Loop, start: str, stop: str, kinds: list[str], widths: list[int],
        inits: list[str], wide: int,
    ) -> list[str]:  # fmt: skip
        """A loop that tests before each iteration.  With a condition per lane (`wide`), lanes
        that are finished keep their values until all are."""
        test, body, done = (self.text.label(x) for x in ("test", "body", "done"))
        counter = self.text.name("i")
        parent = self.code
        head = self.push(test, True)  # the test runs whenever the statement does
        level = len(self.scopes) - 1
        self.define(statement.var, Val(counter, 0, level, None, True))
        phis = [_Phi(self.text.name("carry"), k, i) for k, i in zip(kinds, inits, strict=True)]
        for carry, phi, width in zip(statement.carries, phis, widths, strict=True):
            self.define(carry, Val(phi.name, width, level))
        saved = self.mask
        alive = ""
        assert statement.condition is not None
        if wide:
            alive = self.text_of(statement.condition, wide)
            if saved is not None:
                alive = self.code.ins(f"and <{wide} x i1> {alive}, {saved}")
            again = any_of(self.code, alive, wide)
        else:
            again = self.scalar(statement.condition)
        code = self.code
        inside = code.ins(f"icmp slt i64 {counter}, {stop}")
        again = code.ins(f"and i1 {inside}, {again}")
        running = self._not_cancelled(counter)
        again = self.code.ins(f"and i1 {again}, {running}")
        inner = self.push(body, False)
        if wide:
            self.mask = alive
        self.statements(statement.body)
        for phi, e, width in zip(phis, statement.nexts, widths, strict=True):
            text = self.text_of(e, width)
            if wide and width:
                text = ins.select(self.code, alive, text, phi.name, phi.kind, wide)
            phi.next = text
        self.mask = saved
        following = self.code.ins(f"add i64 {counter}, 1")
        self.pop()
        self.pop()
        before = parent.label
        parent.do(f"br label %{test}")
        parent.lines.append(f"{test}:")
        tail = inner.code.label
        parent.do(f"{counter} = phi i64 [{start}, %{before}], [{following}, %{tail}]")
        for phi in phis:
            parent.do(f"{phi.name} = phi {phi.kind} [{phi.init}, %{before}], [{phi.next}, %{tail}]")
        parent.lines += head.code.lines
        parent.do(f"br i1 {again}, label %{body}, label %{done}")
        parent.lines.append(f"{body}:")
        parent.lines += inner.code.lines
        parent.do(f"br label %{test}")
        parent.start(done)
        return [phi.name for phi in phis]

    def _not_cancelled(self, counter: str) -> str:
        """An i1 that is false once the caller wants this kernel to stop."""
        flag = self._table("cancel")
        code = self.code
        low = code.ins(f"and i64 {counter}, {CANCEL_PERIOD - 1}")
        due = code.ins(f"icmp eq i64 {low}, 0")
        look, seen = self.text.label("look"), self.text.label("looked")
        before = code.label
        code.do(f"br i1 {due}, label %{look}, label %{seen}")
        code.start(look)
        value = code.ins(f"load volatile i32, ptr {flag}, align 4")
        clear = code.ins(f"icmp eq i32 {value}, 0")
        code.do(f"br label %{seen}")
        code.start(seen)
        return code.ins(f"phi i1 [true, %{before}], [{clear}, %{look}]")

    # ---- If

    def _if(self, statement: If) -> None:
        condition = self.scalar(statement.condition)

        def write() -> list[str]:
            self.statements(statement.then)
            return []

        self._branch(condition, self.text.label("then"), write)

    # ---- which variables differ between lanes

    def _mark_varying(self, statement: For | Reduce) -> None:
        """Finds the results and carries inside a vector loop that differ between its lanes."""
        inner = [s for s in _nested(statement.body) if isinstance(s, (Reduce, Loop))]
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


def _extent(start: Expr, stop: Expr) -> int | None:
    """stop - start when both are constants."""
    if start.op == stop.op == "const":
        return max(0, stop.attr - start.attr)
    return None


def _nested(body: Iterable[Stmt]) -> Iterable[Stmt]:
    """All statements of a body, inner ones included."""
    for statement in body:
        yield statement
        if isinstance(statement, If):
            yield from _nested(statement.then)
        elif not isinstance(statement, Store):
            yield from _nested(statement.body)


def expressions_of(statement: Stmt) -> Iterable[Expr]:
    """The expressions a statement itself evaluates, not those of statements inside it."""
    if isinstance(statement, Store):
        mask = () if statement.mask is None else (statement.mask,)
        return (statement.index, statement.value, *mask)
    if isinstance(statement, If):
        return (statement.condition,)
    bounds = (statement.start, statement.stop)
    if isinstance(statement, For):
        return bounds
    if isinstance(statement, Reduce):
        return (*bounds, *statement.elements, *statement.identity, *statement.combine.result)
    condition = () if statement.condition is None else (statement.condition,)
    return (*bounds, *statement.inits, *statement.nexts, *condition)


def nodes_of(body: Iterable[Stmt]) -> list[Expr]:
    """All expressions in a body, in a fixed order."""
    nodes: dict[Expr, None] = {}
    for statement in _nested(body):
        stack = list(expressions_of(statement))
        while stack:
            node = stack.pop()
            if node not in nodes:
                nodes[node] = None
                stack.extend(node.args)
    return list(nodes)


def is_math(node: Expr) -> bool:
    info = SCALAR_OPS.get(node.op)
    return info is not None and info.kind == "math"


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
            count += 10 if is_math(node) else 1
            if count > limit:
                return False
        stack.extend(node.args)
    return True


_SYMBOL = re.compile(r"[^A-Za-z0-9_]")


def symbol_of(name: str) -> str:
    """A kernel's name as a linker symbol."""
    return _SYMBOL.sub("_", name)
