"""Loads and stores: from the lane coefficient of an index to the cheapest access.

  coefficient 0     scalar load, spread when needed
  1                 vector load or store
  -1                the same, reversed
  2, with a load or store of the other half beside it (complex numbers)
                    one access of twice the width, shuffled
  2 or 4            with cheap masks: a masked load of the whole stretch, then a shuffle
  a pattern known here, such as i / 3 * 3 of one vector: the stretch it lies in, sorted by shuffles
  anything else     gather (gathers.py) or scatter: 32-bit offsets from a scalar base for constant
                    strides and for 32-bit index data, 64-bit ones otherwise

Masks: the active lanes of the loop (`self.mask`) and the mask of the load or store itself.  What
is masked off is not touched.  Start reading at `load` and `store`.
"""

from __future__ import annotations

from collections.abc import Sequence

from jato.compiler.llvm import instructions as ins
from jato.compiler.llvm.gathers import Places, gather
from jato.compiler.llvm.instructions import Code, FunctionText
from jato.compiler.llvm.target import Target
from jato.compiler.llvm.values import Val, ValueEmitter, any_of
from jato.compiler.loops import walk
from jato.loopir.grammar import ITEMSIZE, Buffer, Expr, Prefetch, Store

# Bytes of a cache line, and how far ahead of a vector access its line is asked for.  Measured at
# 512 to 4096 bytes on a machine with 100 ns of memory latency: flat around 1024, for reads and writes.
LINE = 64
PREFETCH_DISTANCE = 1024
# Vectors from which the lanes of one are sorted, at the most; a gather takes about as long as this
# many loads.
MOST_SORTED = 4
# Accesses of one buffer in one loop body that prefetch.
MOST_PREFETCHES = 4
# Loads of one loop body that branch around their mask, to a load of the whole vector.  A load by a mask
# takes 1.3 cycles more (Zen 5; tanh(x + b) over rows of 200: 42 instead of 34 us), and the branch goes
# the same way but in the last iteration.  A copy of the body without masks runs as fast, but costs
# twice the code generation.  Loads of several vectors do not branch: such bodies are light, and take
# 1.2 times as long with branches.
MOST_BRANCHED = 4


class MemoryEmitter(ValueEmitter):
    """Adds loads and stores to ValueEmitter."""

    def __init__(self, text: FunctionText, target: Target, in_place: bool):
        super().__init__(text, target)
        self.in_place = in_place
        self.has_masks = target.has_masks
        self.pairs: dict[Expr, Expr] = {}  # load of one half of (2i, 2i + 1) -> of the other
        # mask of a loop's first lanes -> (i1: it has all lanes, code of the loop's body)
        self.all_active: dict[str, tuple[str, Code]] = {}
        self._branched: dict[Code, int] = {}
        self._prefetches: dict[tuple[Code, Buffer], int] = {}
        # the load being emitted reads the same row in each iteration of an outer loop
        self._stays_in_cache = False
        # expressions whose value comes from memory: what follows such a place is not accessed next
        self.from_memory: set[Expr] = set()
        self._is_scattered = False  # the access being emitted is at such a place
        # the variable of a loop over one vector, and its values
        self.lane_var: tuple[Expr, Sequence[int]] | None = None

    def pointer(self, buffer: Buffer) -> str:
        raise NotImplementedError  # emit.py

    # ---- loads

    def load(self, node: Expr) -> Val:
        buffer: Buffer = node.attr
        vals = [self.values[a] for a in node.args]
        index = vals[0]
        mask = vals[1] if len(vals) > 1 else None
        other = vals[2] if len(vals) > 1 else None
        level = self._load_level(buffer, max(v.level for v in vals))
        self._is_scattered = node.args[0] in self.from_memory
        code = self.scopes[level].code
        if index.lanes == 0:
            return self._load_scalar(code, buffer, index, mask, other, level)
        lanes = index.lanes
        # a loop opens two scopes: beyond level 2 there is a loop around this one
        self._stays_in_cache = level > 2 and _variables(node.args[0]) < 2
        active = self._active(code, mask, lanes)
        passthrough = self._passthrough(code, buffer, other, lanes)
        step = index.coefficient
        if mask is not None and step in (1, -1, 2, 4):
            index = self._inside(code, index, mask, lanes)
        if step == 1:
            text = self._load_contiguous(code, buffer, index.text, active, passthrough, lanes)
        elif step == -1:
            text = self._load_reversed(code, buffer, index.text, active, passthrough, lanes)
        elif step == 2 and node in self.pairs and self.pairs[node] not in self.values:
            return self._load_pair(code, node, index, active, lanes, level)
        elif step in (2, 4) and self.has_masks and passthrough == "zeroinitializer":
            text = self._load_stretch(code, buffer, index, int(step), active, lanes)
        else:
            sorted_text = None
            if active is None and passthrough == "zeroinitializer":
                sorted_text = self._load_pattern(code, buffer, node.args[0], lanes)
            if sorted_text is not None:
                text = sorted_text
            else:
                places = self._places(code, buffer, node.args[0], index, lanes)
                text = gather(code, places, active, passthrough, self._invariant(buffer))
        return Val(self._from_memory(code, buffer, text, lanes), lanes, level)

    def _load_pattern(self, code: Code, buffer: Buffer, index: Expr, lanes: int) -> str | None:
        """Contiguous loads and shuffles, where the places of the lanes relative to each other are
        known and near each other; else None."""
        if self.lane_var is None or not self.has_masks or len(self.lane_var[1]) != lanes:
            return None
        uniform: list[tuple[str, str]] = []
        places = self._pattern(index, "add", uniform)
        if places is None:
            return None
        first = min(places)
        places = [p - first for p in places]
        span = max(places) + 1
        if span > MOST_SORTED * lanes:
            return None
        base = str(first)
        for op, text in uniform:
            base = self._scalar_op(code, op, "i64", base, text)
        kind = f"<{lanes} x {ins.MEMORY_TYPE[buffer.dtype]}>"
        result, before = "", 0
        for part in range(0, span, lanes):
            if not any(part <= p < part + lanes for p in places):
                continue
            mask = None
            if span - part < lanes:  # nothing beyond the last element is touched
                mask = f"<{', '.join(f'i1 {str(i < span - part).lower()}' for i in range(lanes))}>"
            at = self._scalar_op(code, "add", "i64", base, str(part))
            address = self._address(code, buffer, at)
            vector = self._load_vector(code, buffer, address, kind, lanes, mask, "zeroinitializer")
            # lanes from vectors before keep their place, once they are there
            order = [
                (lanes if result else 0) + p - part
                if part <= p < part + lanes
                else (k if before else 0)
                for k, p in enumerate(places)
            ]
            lanes_text = ", ".join(f"i32 {i}" for i in order)
            pair = f"{result}, {kind} {vector}" if result else f"{vector}, {kind} poison"
            result = code.ins(f"shufflevector {kind} {pair}, <{lanes} x i32> <{lanes_text}>")
            before += 1
        return result

    def _pattern(self, e: Expr, op: str, uniform: list[tuple[str, str]]) -> list[int] | None:
        """The part of an index that differs between lanes, as numbers; the rest goes to `uniform`,
        with what is done with it (add or sub)."""
        known = self.values.get(e)
        assert self.lane_var is not None
        var, values = self.lane_var
        if known is not None and known.lanes == 0:
            uniform.append((op, known.text))
            return [0] * len(values)
        if e.op in ("add", "sub"):
            x = self._pattern(e.args[0], op, uniform)
            flipped = {"add": "sub", "sub": "add"}[op] if e.op == "sub" else op
            y = self._pattern(e.args[1], flipped, uniform)
            if x is None or y is None:
                return None
            return [p + q if e.op == "add" else p - q for p, q in zip(x, y, strict=True)]
        return walk.lane_values(e, var, values)

    def _load_level(self, buffer: Buffer, level: int) -> int:
        """How far out a load may go: not above a loop or branch that might not run."""
        top = len(self.scopes) - 1
        if buffer.space != "in":
            return top
        while top > level and self.scopes[top].loads_may_leave:
            top -= 1
        return max(top, level)

    def _inside(self, code: Code, index: Val, mask: Val, lanes: int) -> Val:
        """The index, or one near the buffer's start where the mask has no lane.

        A masked access faults nowhere, but when it would have, suppressing that costs processors
        hundreds of cycles; guarded reads beyond an array (padding, pieces of a concatenation) do."""
        any_lane = any_of(code, mask.text, mask.lanes)
        start = lanes - 1 if index.coefficient == -1 else 1
        text = code.ins(f"select i1 {any_lane}, i64 {index.text}, i64 {start}")
        return Val(text, index.lanes, index.level, index.coefficient)

    def _active(self, code: Code, mask: Val | None, lanes: int) -> str | None:
        """The lanes an access touches; None: all."""
        if mask is None:
            return self.mask
        text = self.vector(mask, "bool", lanes)
        if self.mask is None:
            return text
        return code.ins(f"and <{lanes} x i1> {text}, {self.mask}")

    def _passthrough(self, code: Code, buffer: Buffer, other: Val | None, lanes: int) -> str:
        if other is None:
            return "zeroinitializer"
        text = self.vector(other, buffer.dtype, lanes)
        if buffer.dtype == "bool" and text.startswith("%"):
            return code.ins(f"zext <{lanes} x i1> {text} to <{lanes} x i8>")
        return "splat (i8 1)" if text == "splat (i1 true)" else text

    def _from_memory(self, code: Code, buffer: Buffer, text: str, lanes: int) -> str:
        """Bytes to bools."""
        if buffer.dtype != "bool":
            return text
        kind = f"<{lanes} x i8>" if lanes else "i8"
        zero = "zeroinitializer" if lanes else "0"
        return code.ins(f"icmp ne {kind} {text}, {zero}")

    def _address(self, code: Code, buffer: Buffer, index: str) -> str:
        element = ins.MEMORY_TYPE[buffer.dtype]
        pointer = self.pointer(buffer)
        if index == "0":
            return pointer
        return code.ins(f"getelementptr {element}, ptr {pointer}, i64 {index}")

    def _load_scalar(
        self,
        code: Code,
        buffer: Buffer,
        index: Val,
        mask: Val | None,
        other: Val | None,
        level: int,
    ) -> Val:
        element = ins.MEMORY_TYPE[buffer.dtype]
        align = ITEMSIZE[buffer.dtype]
        address = self._address(code, buffer, index.text)
        if mask is not None:
            # where the mask is false, read a zero of our own: no branch, no stray access
            active = self._active(code, mask, mask.lanes) if mask.lanes else mask.text
            any_lane = any_of(code, active or "true", mask.lanes)
            address = code.ins(f"select i1 {any_lane}, ptr {address}, ptr @zeros")
        text = code.ins(
            f"load {element}, ptr {address}, align {align}{self._invariant(buffer, mask)}"
        )
        value = Val(self._from_memory(code, buffer, text, 0), 0, level)
        if mask is None or other is None:
            return value
        lanes = max(mask.lanes, other.lanes)
        x = self.vector(value, buffer.dtype, lanes)
        y = self.vector(other, buffer.dtype, lanes)
        kind = ins.type_of(buffer.dtype, lanes)
        return Val(ins.select(code, mask.text, x, y, kind, mask.lanes), lanes, level)

    def _invariant(self, buffer: Buffer, mask: Val | None = None) -> str:
        """Memory that nobody writes while the kernel runs: LLVM may move the load."""
        free = buffer.space == "in" and not self.in_place and mask is None
        return ", !invariant.load !0" if free else ""

    def _load_contiguous(
        self, code: Code, buffer: Buffer, index: str, mask: str | None, other: str, lanes: int
    ) -> str:
        kind = f"<{lanes} x {ins.MEMORY_TYPE[buffer.dtype]}>"
        return self._load_vector(
            code, buffer, self._address(code, buffer, index), kind, lanes, mask, other
        )

    def _load_vector(
        self, code: Code, buffer: Buffer, address: str, kind: str, lanes: int, mask: str | None,
        other: str, pairs: bool = False,
    ) -> str:  # fmt: skip
        """`pairs`: the mask has a lane for each two elements."""
        align = ITEMSIZE[buffer.dtype]
        if buffer.space != "local" and not self._stays_in_cache and not self._is_scattered:
            self._prefetch(code, buffer, address, lanes * align, write=False)
        if mask is None:
            return code.ins(f"load {kind}, ptr {address}, align {align}{self._invariant(buffer)}")
        types = ["ptr", "i32", f"<{lanes} x i1>", kind]
        name = f"llvm.masked.load.{ins.suffix(kind)}.p0"

        def masked() -> str:
            wide = double(code, mask, lanes // 2) if pairs else mask
            return code.call(name, kind, types, [address, str(align), wide, other])

        narrow = lanes // 2 if pairs else lanes
        all_active = self._branches_to_whole(code, mask, narrow * align)
        if all_active is None:
            return masked()
        whole, part, done = self._open_branches(code, all_active)
        first = code.ins(f"load {kind}, ptr {address}, align {align}{self._invariant(buffer)}")
        self._next_branch(code, part, done)
        second = masked()
        self._next_branch(code, done, done)
        return code.ins(f"phi {kind} [{first}, %{whole}], [{second}, %{part}]")

    def _branches_to_whole(self, code: Code, mask: str, size: int) -> str | None:
        """The condition under which an access by this mask is one of all lanes, `size` bytes, if it is
        worth a branch: in the loop's own code, and a few times.  (In a short loop within, the
        branches cost more than the masks: sums of columns took 1.2 times as long.)"""
        condition, body = self.all_active.get(mask, (None, None))
        if code is not body or size * 8 > self.target.vector_bits:
            return None
        count = self._branched.get(code, 0)
        if count >= MOST_BRANCHED:
            return None
        self._branched[code] = count + 1
        return condition

    def _open_branches(self, code: Code, condition: str) -> tuple[str, str, str]:
        """Begins the block of all lanes; gives the labels of that, of the masked one and of the end."""
        whole, part, done = (self.text.label(x) for x in ("whole", "part", "joined"))
        code.do(f"br i1 {condition}, label %{whole}, label %{part}")
        code.start(whole)
        return whole, part, done

    def _next_branch(self, code: Code, label: str, done: str) -> None:
        code.do(f"br label %{done}")
        code.start(label)

    def _prefetch(
        self, code: Code, buffer: Buffer, address: str, size: int, write: bool
    ) -> None:
        """Asks for the cache lines of a later iteration.

        A body of some tens of instructions fills the reorder buffer within ten iterations, which
        is too few cache misses at a time: exp of 16M floats took 0.66 ns an element without this,
        with 0.2 in cache.  Addresses past the end of the array do no harm.  Reads of one buffer
        beyond the fourth are taken for a stencil's, whose lines the first ones ask for."""
        count = self._prefetches.get((code, buffer), 0)
        if size < LINE // 2 or count >= MOST_PREFETCHES:
            return
        self._prefetches[code, buffer] = count + 1
        for line in range(0, size, LINE):
            ahead = code.ins(f"getelementptr i8, ptr {address}, i64 {PREFETCH_DISTANCE + line}")
            operands = [ahead, str(int(write)), "3", "1"]
            call_void(code, "llvm.prefetch.p0", ["ptr", "i32", "i32", "i32"], operands)

    def find_scattered(self, nodes: Sequence[Expr]) -> None:
        """Finds expressions that depend on a load."""
        reads: dict[Expr, bool] = {}  # does the value come from memory?
        for root in nodes:
            stack = [root]
            while stack:
                node = stack[-1]
                if node in reads:
                    stack.pop()
                elif missing := [a for a in node.args if a not in reads]:
                    stack += missing
                else:
                    reads[stack.pop()] = node.op == "load" or any(reads[a] for a in node.args)
        self.from_memory.update(e for e, is_read in reads.items() if is_read)

    def prefetch(self, statement: Prefetch) -> None:
        """Asks for each cache line of a run, or for the line of each lane."""
        buffer, index = statement.buffer, self.value(statement.index)
        code, size = self.code, ITEMSIZE[buffer.dtype]
        if index.lanes == 0 or index.coefficient in (0, 1):
            addresses = [self._address(code, buffer, index.text)]
            if index.lanes:
                for line in range(LINE, index.lanes * size, LINE):
                    addresses.append(
                        code.ins(f"getelementptr i8, ptr {addresses[0]}, i64 {line}")
                    )
        else:
            places = self.vector(index, "i64", index.lanes)
            addresses = [
                self._address(
                    code, buffer,
                    code.ins(f"extractelement <{index.lanes} x i64> {places}, i64 {lane}"),
                )
                for lane in range(index.lanes)
            ]  # fmt: skip
        for address in addresses:
            call_void(
                code, "llvm.prefetch.p0", ["ptr", "i32", "i32", "i32"], [address, "0", "3", "1"]
            )

    def _load_reversed(
        self, code: Code, buffer: Buffer, index: str, mask: str | None, other: str, lanes: int
    ) -> str:
        kind = f"<{lanes} x {ins.MEMORY_TYPE[buffer.dtype]}>"
        first = code.ins(f"sub i64 {index}, {lanes - 1}")
        if mask is not None:
            mask = reverse(code, mask, f"<{lanes} x i1>", lanes)
        if other != "zeroinitializer":
            other = reverse(code, other, kind, lanes)
        text = self._load_contiguous(code, buffer, first, mask, other, lanes)
        return reverse(code, text, kind, lanes)

    def _load_pair(
        self,
        code: Code,
        node: Expr,
        index: Val,
        mask: str | None,
        lanes: int,
        level: int,
    ) -> Val:
        """One load of 2 * lanes elements for the halves at 2i and 2i + 1, masked ones 0 (the only
        pairs that find_pairs takes)."""
        buffer, partner = node.attr, self.pairs[node]
        scalar = ins.MEMORY_TYPE[buffer.dtype]
        wide = f"<{2 * lanes} x {scalar}>"
        is_first = _offset(node.args[0]) < _offset(partner.args[0])
        base = index.text if is_first else code.ins(f"sub i64 {index.text}, 1")
        address = self._address(code, buffer, base)
        both = self._load_vector(
            code, buffer, address, wide, 2 * lanes, mask, "zeroinitializer", pairs=True
        )
        halves = [
            self._from_memory(code, buffer, _every_second(code, both, wide, lanes, start), lanes)
            for start in (0, 1)
        ]
        mine, theirs = halves if is_first else reversed(halves)
        self.define(partner, Val(theirs, lanes, level))
        return Val(mine, lanes, level)

    def _load_stretch(
        self, code: Code, buffer: Buffer, index: Val, step: int, mask: str | None, lanes: int
    ) -> str:
        """Every `step`-th element of a stretch; the elements between are masked off, so that
        nothing beyond the last one is touched."""
        width = step * lanes
        wide = f"<{width} x {ins.MEMORY_TYPE[buffer.dtype]}>"
        if mask is None:
            wanted = ", ".join(f"i1 {'false' if i % step else 'true'}" for i in range(width))
            active = f"<{wanted}>"
        else:
            order = ", ".join(f"i32 {lanes if i % step else i // step}" for i in range(width))
            active = code.ins(
                f"shufflevector <{lanes} x i1> {mask}, <{lanes} x i1> zeroinitializer, "
                f"<{width} x i32> <{order}>"
            )
        address = self._address(code, buffer, index.text)
        every = self._load_vector(code, buffer, address, wide, width, active, "zeroinitializer")
        order = ", ".join(f"i32 {i * step}" for i in range(lanes))
        return code.ins(f"shufflevector {wide} {every}, {wide} poison, <{lanes} x i32> <{order}>")

    def _places(
        self, code: Code, buffer: Buffer, index_expr: Expr, index: Val, lanes: int
    ) -> Places:
        """A scalar base plus offsets as narrow as is known to be right."""
        element, align = ins.MEMORY_TYPE[buffer.dtype], ITEMSIZE[buffer.dtype]
        step = index.coefficient
        if isinstance(step, str) or (step is not None and abs(step) * lanes < 1 << 31):
            return Places(element, align, lanes, self._address(code, buffer, index.text), step)
        base_text, varying = "0", index_expr
        while varying.op == "add" and step is None:
            parts = [self.values[a] for a in varying.args if a in self.values]
            if len(parts) != 2 or (parts[0].lanes == 0) == (parts[1].lanes == 0):
                break
            uniform = 0 if parts[0].lanes == 0 else 1
            base_text = self._scalar_op(code, "add", "i64", base_text, parts[uniform].text)
            varying = varying.args[1 - uniform]
        if step is None and varying.op == "convert" and varying.args[0].dtype == "i32":
            narrow = varying.args[0]
            offsets, width = self.vector(self.value(narrow), "i32", lanes), "i32"
        else:
            if varying not in self.values:
                varying, base_text = index_expr, "0"
            offsets, width = self.vector(self.values[varying], "i64", lanes), "i64"
        base = self._address(code, buffer, base_text)
        return Places(element, align, lanes, base, None, offsets, width)

    # ---- stores

    def store(self, statement: Store, partner: Store | None) -> None:
        """Emits a store; with `partner`, the store of the other half of a complex pair."""
        buffer = statement.buffer
        index = self.value(statement.index)
        value = self.value(statement.value)
        self._is_scattered = statement.index in self.from_memory
        mask = None if statement.mask is None else self.value(statement.mask)
        code = self.code
        lanes = max(index.lanes, value.lanes, mask.lanes if mask is not None else 0)
        if not lanes:
            self._store_scalar(buffer, index.text, value.text, mask)
            return
        active = self._active(code, mask, lanes)
        text = self._to_memory(code, buffer, self.vector(value, buffer.dtype, lanes), lanes)
        step = index.coefficient
        if partner is not None:
            other_value = self.value(partner.value)
            second = self.vector(other_value, buffer.dtype, lanes)
            self._store_pair(code, buffer, index.text, text, second, active, lanes)
        elif step == 1:
            self._store_vector(code, buffer, index.text, text, active, lanes)
        elif step == -1:
            kind = f"<{lanes} x {ins.MEMORY_TYPE[buffer.dtype]}>"
            first = code.ins(f"sub i64 {index.text}, {lanes - 1}")
            if active is not None:
                active = reverse(code, active, f"<{lanes} x i1>", lanes)
            self._store_vector(code, buffer, first, reverse(code, text, kind, lanes), active, lanes)
        else:
            self._scatter(code, statement, index, text, active, lanes)

    def is_store_pair(self, first: Store, second: Store) -> bool:
        """Two stores to elements 2i + c and 2i + c + 1 of one buffer, over the lanes i."""
        if first.buffer is not second.buffer or first.mask is not second.mask:
            return False
        if _terms(first.index) is not _terms(second.index):
            return False
        if _offset(second.index) - _offset(first.index) != 1:
            return False
        return self.lanes > 0 and self.value(first.index).coefficient == 2

    def _to_memory(self, code: Code, buffer: Buffer, text: str, lanes: int) -> str:
        if buffer.dtype != "bool":
            return text
        return code.ins(f"zext <{lanes} x i1> {text} to <{lanes} x i8>")

    def _store_scalar(self, buffer: Buffer, index: str, value: str, mask: Val | None) -> None:
        code = self.code
        element = ins.MEMORY_TYPE[buffer.dtype]
        done = ""
        if mask is not None:
            then, done = self.text.label("store"), self.text.label("stored")
            code.do(f"br i1 {mask.text}, label %{then}, label %{done}")
            code.start(then)
        if buffer.dtype == "bool":
            value = code.ins(f"zext i1 {value} to i8")
        address = self._address(code, buffer, index)
        code.do(f"store {element} {value}, ptr {address}, align {ITEMSIZE[buffer.dtype]}")
        if done:
            code.do(f"br label %{done}")
            code.start(done)

    def _store_vector(
        self, code: Code, buffer: Buffer, index: str, value: str, mask: str | None, lanes: int
    ) -> None:
        kind = f"<{lanes} x {ins.MEMORY_TYPE[buffer.dtype]}>"
        address = self._address(code, buffer, index)
        if buffer.space == "out" and not self._is_scattered:
            self._prefetch(code, buffer, address, lanes * ITEMSIZE[buffer.dtype], write=True)
        self._write(code, kind, value, address, ITEMSIZE[buffer.dtype], mask, lanes)

    def _write(
        self,
        code: Code,
        kind: str,
        value: str,
        address: str,
        align: int,
        mask: str | None,
        lanes: int,
    ) -> None:
        if mask is None:
            code.do(f"store {kind} {value}, ptr {address}, align {align}")
            return
        types = [kind, "ptr", "i32", f"<{lanes} x i1>"]
        name = f"llvm.masked.store.{ins.suffix(kind)}.p0"
        call_void(code, name, types, [value, address, str(align), mask])

    def _store_pair(
        self, code: Code, buffer: Buffer, index: str, first: str, second: str, mask: str | None,
        lanes: int,
    ) -> None:  # fmt: skip
        scalar = ins.MEMORY_TYPE[buffer.dtype]
        kind, wide = f"<{lanes} x {scalar}>", f"<{2 * lanes} x {scalar}>"
        order = ", ".join(f"i32 {i}, i32 {lanes + i}" for i in range(lanes))
        both = code.ins(
            f"shufflevector {kind} {first}, {kind} {second}, <{2 * lanes} x i32> <{order}>"
        )
        address, align = self._address(code, buffer, index), ITEMSIZE[buffer.dtype]
        if mask is None:
            self._write(code, wide, both, address, align, None, 2 * lanes)
            return
        all_active = self._branches_to_whole(code, mask, lanes * align)
        if all_active is None:
            self._write(code, wide, both, address, align, double(code, mask, lanes), 2 * lanes)
            return
        _, part, done = self._open_branches(code, all_active)
        self._write(code, wide, both, address, align, None, 2 * lanes)
        self._next_branch(code, part, done)
        self._write(code, wide, both, address, align, double(code, mask, lanes), 2 * lanes)
        self._next_branch(code, done, done)

    def _scatter(
        self, code: Code, statement: Store, index: Val, text: str, mask: str | None, lanes: int
    ) -> None:
        buffer = statement.buffer
        kind = f"<{lanes} x {ins.MEMORY_TYPE[buffer.dtype]}>"
        if index.lanes == 0:
            pointer = self._address(code, buffer, index.text)
            addresses = ins.splat(code, pointer, "ptr", lanes)
        else:
            addresses = self._places(code, buffer, statement.index, index, lanes).addresses(code)
        types = [kind, f"<{lanes} x ptr>", "i32", f"<{lanes} x i1>"]
        name = f"llvm.masked.scatter.{ins.suffix(kind)}.v{lanes}p0"
        align = str(ITEMSIZE[buffer.dtype])
        call_void(code, name, types, [text, addresses, align, mask or "splat (i1 true)"])

    # ---- pairs

    def find_pairs(self, loads: Sequence[Expr]) -> None:
        """Finds loads of (2i + c, 2i + c + 1) that can share one access."""
        groups: dict[tuple[object, ...], dict[int, Expr]] = {}
        for node in loads:
            buffer = node.attr
            if buffer.space == "in" and (len(node.args) == 1 or node.args[2].op == "const"):
                key = (buffer, _terms(node.args[0]), node.args[1:])
                groups.setdefault(key, {})[_offset(node.args[0])] = node
        for group in groups.values():
            for offset in sorted(group):
                first, second = group[offset], group.get(offset + 1)
                if second is None or first in self.pairs:
                    continue
                if len(first.args) == 1 or first.args[2].attr == 0:
                    self.pairs[first], self.pairs[second] = second, first


def _variables(index: Expr) -> int:
    """How many loops an index moves with: 0, 1, or 2 for more.  Visits each expression once."""
    found: set[Expr] = set()
    seen: set[Expr] = set()
    stack = [index]
    while stack and len(found) < 2:
        e = stack.pop()
        if e in seen:
            continue
        seen.add(e)
        if e.op == "var":
            found.add(e)
        stack += e.args
    return len(found)


def call_void(code: Code, name: str, types: Sequence[str], operands: Sequence[str]) -> None:
    code.function.declare(name, "void", types)
    arguments = ", ".join(f"{t} {v}" for t, v in zip(types, operands, strict=True))
    code.do(f"call void @{name}({arguments})")


def reverse(code: Code, text: str, kind: str, lanes: int) -> str:
    order = ", ".join(f"i32 {i}" for i in range(lanes - 1, -1, -1))
    return code.ins(f"shufflevector {kind} {text}, {kind} poison, <{lanes} x i32> <{order}>")


def double(code: Code, mask: str, lanes: int) -> str:
    """Each lane of a mask twice: m0 m0 m1 m1 ..."""
    kind = f"<{lanes} x i1>"
    order = ", ".join(f"i32 {i // 2}" for i in range(2 * lanes))
    return code.ins(f"shufflevector {kind} {mask}, {kind} poison, <{2 * lanes} x i32> <{order}>")


def _every_second(code: Code, text: str, kind: str, lanes: int, start: int) -> str:
    order = ", ".join(f"i32 {2 * i + start}" for i in range(lanes))
    return code.ins(f"shufflevector {kind} {text}, {kind} poison, <{lanes} x i32> <{order}>")


def _base_of(index: Expr) -> Expr:
    """The index without its trailing constant (the builder puts it last)."""
    if index.op == "add" and index.args[1].op == "const":
        return index.args[0]
    return index


def _terms(index: Expr) -> Expr | None:
    return None if index.op == "const" else _base_of(index)


def _offset(index: Expr) -> int:
    if index.op == "const":
        return int(index.attr)
    if index.op == "add" and index.args[1].op == "const":
        return int(index.args[1].attr)
    return 0
