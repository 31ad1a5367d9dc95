"""Kernels to LLVM IR text, vector instructions and all; LLVM only selects and schedules them.

`emit_module(kernels, target)` gives the text of one module.  Text is written directly because it
is several times quicker than building it through an API, and because vector code that is right
from the start needs no optimisation passes (measured on an exp kernel: 2.2 ms all in, against 15
with a middle end).

Start reading at `emit_kernel`; values.py, memory.py, loops.py, reductions.py and packed_loops.py
hold the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from jato.compiler.llvm import abi
from jato.compiler.llvm import instructions as ins
from jato.compiler.llvm.instructions import FunctionText
from jato.compiler.llvm.loops import OpenLoop, Phi
from jato.compiler.llvm.packed_loops import PackedLoopEmitter
from jato.compiler.llvm.superwords import find_packing
from jato.compiler.llvm.target import Target
from jato.compiler.llvm.values import MathFunctions, Val, any_of
from jato.compiler.loops import walk
from jato.compiler.loops.walk import extent_of
from jato.loopir.grammar import ITEMSIZE, Buffer, Expr, For, If, Kernel, Loop, Prefetch, Reduce, Stmt, Store, TileCopy
from jato.loopir.scalar_ops import is_math

# Uses of one math opcode in a kernel from which it becomes a function of the module.
CALL_THRESHOLD = 8
# Iterations of an ordered loop between looks at the cancel flag.
CANCEL_PERIOD = 1024


def emit_module(kernels: Sequence[tuple[str, Kernel]], target: Target) -> str:
    """The text of a module with one function per (symbol, kernel)."""
    declarations: dict[str, str] = {}
    shared = MathFunctions(declarations, target)
    functions = [emit_kernel(symbol, kernel, target, shared) for symbol, kernel in kernels]
    width = f'"prefer-vector-width"="{target.vector_bits}" "min-legal-vector-width"="{target.vector_bits}"'
    common = f'nounwind {width} "no-trapping-math"="true"'
    return "\n".join(
        [
            "@zeros = private unnamed_addr constant [16 x i8] zeroinitializer, align 16",
            *functions,
            *shared.texts.values(),
            *declarations.values(),
            # LLVM finds out too late that it spills vectors: without stackrealign these lie across
            # cache lines, or not, as the callers' frames have it (n-body: 0.94 or 1.38 ms)
            f"attributes #0 = {{ {common} \"stackrealign\" }}",
            f"attributes #1 = {{ {common} }}",
            "!0 = !{}",
            "",
        ]
    )


def emit_kernel(symbol: str, kernel: Kernel, target: Target, shared: MathFunctions) -> str:
    """The text of one function; what it needs besides goes to `shared`."""
    return KernelEmitter(symbol, kernel, target, shared).run()


class KernelEmitter(PackedLoopEmitter):
    """Writes one kernel."""

    def __init__(self, symbol: str, kernel: Kernel, target: Target, shared: MathFunctions):
        super().__init__(FunctionText(shared.declarations), target, kernel.in_place)
        self.vector_bits = target.vector_bits
        self.functions = shared
        self.symbol = symbol
        self.kernel = kernel
        self._pointers: dict[Buffer, str] = {}
        self._tables: dict[str, str] = {}
        self._scratch_offsets, _ = abi.scratch_layout(kernel.buffers)
        self._positions = {b: i for i, b in enumerate(abi.argument_buffers(kernel.buffers))}

    def run(self) -> str:
        nodes = list(walk.expressions(self.kernel))
        self.find_pairs([n for n in nodes if n.op == "load"])
        self.find_scattered(nodes)
        uses = Counter((n.op, n.dtype) for n in nodes if is_math(n.op))
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

    def _read_before_writing(self, body: Sequence[Stmt]) -> None:
        """Evaluates what a run of stores needs before the first of them: in a kernel that works
        in place, it may overwrite what a later one reads."""
        for statement in body:
            if not isinstance(statement, Store):
                return
            needed = list(walk.expressions((statement,)))
            if any(node.op == "load" and node.attr.space != "in" for node in needed):
                return
            for root in walk.roots(statement):
                self.value(root)

    def statements(self, body: Sequence[Stmt]) -> None:
        skip = False
        for position, statement in enumerate(body):
            if skip:
                skip = False
                continue
            if isinstance(statement, Store):
                if self.in_place:
                    self._read_before_writing(body[position:])
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
            elif isinstance(statement, Prefetch):
                self.prefetch(statement)
            elif isinstance(statement, TileCopy):
                self._tile_copy(statement)
            else:
                self._if(statement)

    # ---- Loop

    def _loop(self, statement: Loop) -> None:
        """Iterations in order; looks at the cancel flag now and then."""
        start, stop = self.scalar(statement.start), self.scalar(statement.stop)
        extent = extent_of(statement.start, statement.stop)
        runs = statement.condition is None and extent is not None and extent > 0
        long = extent is None or extent > CANCEL_PERIOD
        if not self.lanes and not self.in_place:
            packing = find_packing(statement, self.vector_bits)
            if packing is not None:
                self.packed_loop(statement, packing, start, stop, runs, long)
                return
        widths = [self.lanes if c in self._varying else 0 for c in statement.carries]
        kinds = [ins.type_of(c.dtype, w) for c, w in zip(statement.carries, widths, strict=True)]
        inits = [self.text_of(e, w) for e, w in zip(statement.inits, widths, strict=True)]
        level = len(self.scopes) - 1
        alive_width = self._condition_lanes(statement)
        if statement.condition is not None:
            results = self._while(statement, start, stop, kinds, widths, inits, alive_width)
        else:
            loop = self._open(start, stop, 1, runs)
            self._bind(statement.var, loop.counter, 0)
            phis = self._bind_carries(loop, statement, kinds, widths, inits)
            go_on = self.not_cancelled(loop.counter) if long else ""
            self.statements(statement.body)
            for phi, e, width in zip(phis, statement.nexts, widths, strict=True):
                phi.next = self.text_of(e, width)
            results = self._close(loop, go_on)
        for result, text, width in zip(statement.results, results, widths, strict=True):
            self.define(result, Val(text, width, level))

    def _bind_carries(
        self, loop: OpenLoop, statement: Loop, kinds: list[str], widths: list[int],
        inits: list[str],
    ) -> list[Phi]:  # fmt: skip
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
        phis = [Phi(self.text.name("carry"), k, i) for k, i in zip(kinds, inits, strict=True)]
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
        running = self.not_cancelled(counter)
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

    def not_cancelled(self, counter: str) -> str:
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

    # ---- TileCopy

    def _tile_copy(self, s: TileCopy) -> None:
        """A call of the runtime's routine: vector code for it would take LLVM some ten
        milliseconds a copy."""
        start, step, rows, columns = (self.scalar(e) for e in s.numbers)
        code = self.code
        place = abi.ROUTINES[ITEMSIZE[s.tile.dtype], s.lanes, s.out]
        entry = code.ins(f"getelementptr ptr, ptr {self._table('routines')}, i64 {place}")
        routine = code.ins(f"load ptr, ptr {entry}, align 8, !invariant.load !0")
        array = self._address(code, s.array, start)
        code.do(
            f"call void {routine}(ptr {self.pointer(s.tile)}, ptr {array}, i64 {step}, "
            f"i64 {rows}, i64 {columns}, i64 {s.pitch})"
        )

    # ---- If

    def _if(self, statement: If) -> None:
        condition = self.scalar(statement.condition)

        def write() -> list[str]:
            self.statements(statement.then)
            return []

        self._branch(condition, self.text.label("then"), write)
