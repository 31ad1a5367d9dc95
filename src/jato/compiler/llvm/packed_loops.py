"""Loops of scalars written with vectors, as superwords.py packs them.

Takes   a Loop of the loop IR and its Packing.
Gives   the loop's text.  Packs are vector registers, carries of a pack one phi; operands whose
        lanes come from several packs are shuffled together, two registers at a time; what is left
        scalar is moved in and out of lanes.

Start reading at `packed_loop`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jato.base.errors import invariant
from jato.compiler.llvm import instructions as ins
from jato.compiler.llvm.instructions import Code
from jato.compiler.llvm.reductions import ReduceEmitter
from jato.compiler.llvm.superwords import Pack, Packing, bundle_sources, columns
from jato.compiler.llvm.values import MathFunctions, Val
from jato.loopir.grammar import ITEMSIZE, Buffer, Expr, Loop, Store
from jato.loopir.scalar_ops import is_math


class PackedLoopEmitter(ReduceEmitter):
    """Adds packed loops to the emitter."""

    functions: MathFunctions
    _packing: Packing
    _bundles: dict[tuple[Expr | None, ...], str]

    def packed_loop(
        self, statement: Loop, packing: Packing, start: str, stop: str, runs: bool, cancel: bool
    ) -> None:
        """Writes the loop and defines its results."""
        self._packing, self._bundles = packing, {}
        inits = dict(zip(statement.carries, statement.inits, strict=True))
        level = len(self.scopes) - 1
        starts = []
        for pack, following in packing.carries:
            first: list[Expr | None] = [None] * len(following)
            for carry in pack.present:
                first[packing.places[carry][1]] = inits[carry]
            starts.append(self._scalars_as_vector(first, pack.dtype, level, True))
        loose = [c for c in statement.carries if c not in packing.places]
        loose_inits = [self.text_of(inits[c], 0) for c in loose]
        loop = self._open(start, stop, 1, runs)
        inside = len(self.scopes) - 1
        self._bind(statement.var, loop.counter, 0)
        phis = []
        for (pack, _), init in zip(packing.carries, starts, strict=True):
            phi = self._carry(loop, self._kind(pack.dtype), init)
            pack.text = phi.name
            phis.append(phi)
        for carry, init in zip(loose, loose_inits, strict=True):
            phi = self._carry(loop, ins.type_of(carry.dtype, 0), init)
            self.define(carry, Val(phi.name, 0, inside))
            phis.append(phi)
        go_on = self.not_cancelled(loop.counter) if cancel else ""
        for run in packing.stores:
            self._store_run(run)
        nexts = dict(zip(statement.carries, statement.nexts, strict=True))
        for phi, (pack, following) in zip(phis, packing.carries, strict=False):
            phi.next = self._bundle(following, pack.dtype)
        for phi, carry in zip(phis[len(packing.carries) :], loose, strict=True):
            phi.next = self._scalar_of(nexts[carry])
        finals = self._close(loop, go_on)
        vectors = {pack: text for (pack, _), text in zip(packing.carries, finals, strict=False)}
        scalars = dict(zip(loose, finals[len(packing.carries) :], strict=True))
        for carry, result in zip(statement.carries, statement.results, strict=True):
            text = scalars.get(carry)
            if text is None:
                pack, lane = packing.places[carry]
                text = self._extract(self.code, vectors[pack], pack.dtype, lane)
            self.define(result, Val(text, 0, level))

    def not_cancelled(self, counter: str) -> str:
        raise NotImplementedError  # emit.py

    # ---- in order: operands first

    def _ready(self, e: Expr) -> bool:
        place = self._packing.places.get(e)
        return e in self.values or e.op == "const" or (place is not None and place[0].text != "")

    def _require(self, wanted: Sequence[Expr | None]) -> None:
        """Evaluates expressions, as lanes of their packs or as scalars."""
        places = self._packing.places
        begun: set[Pack | Expr] = set()
        stack = [e for e in reversed(wanted) if e is not None]
        while stack:
            e = stack[-1]
            if self._ready(e):
                stack.pop()
                continue
            place = places.get(e)
            if place is None or place[0].kind == "row":
                needed: Sequence[Expr] = e.args
            else:
                needed = [a for member in place[0].present for a in member.args]
            pending = [a for a in needed if not self._ready(a)]
            if pending:
                unit = e if place is None else place[0]
                invariant(unit not in begun, "packs that need each other")
                begun.add(unit)
                stack += reversed(pending)
                continue
            stack.pop()
            if place is None:
                self._evaluate_scalar(e)
            elif place[0].kind == "row":
                place[0].text = self._load_run(place[0].present)
            else:
                place[0].text = self._compute(place[0])

    def _evaluate_scalar(self, e: Expr) -> None:
        for a in e.args:
            self._scalar_of(a)
        self.value(e)

    def _scalar_of(self, e: Expr) -> str:
        """The value of an expression as a scalar."""
        if e not in self.values:
            place = self._packing.places.get(e)
            if place is not None and place[0].kind != "row":
                self._require([e])
                text = self._extract(self.code, place[0].text, e.dtype, place[1])
                self.define(e, Val(text, 0, len(self.scopes) - 1))
            elif place is None:
                self._require([e])
        return self.text_of(e, 0)

    # ---- vectors

    def _kind(self, dtype: str) -> str:
        return ins.type_of(dtype, self._packing.lanes)

    def _compute(self, pack: Pack) -> str:
        e, lanes, code = pack.present[0], self._packing.lanes, self.code
        filled = is_math(e.op)  # they may branch: each lane needs a value
        vectors = []
        for position, column in enumerate(columns(self._packing, pack)):
            if filled:
                value = next(a for a in column if a is not None)
                column = [a or value for a in column]
                column += [value] * (lanes - len(column))
            vectors.append(self._bundle(column, e.args[position].dtype))
        if filled:
            symbol = self.functions.symbol(e.op, e.dtype, len(vectors), lanes)
            kind = self._kind(e.dtype)
            return code.ins(
                f"call fastcc {kind} @{symbol}({', '.join(f'{kind} {v}' for v in vectors)})"
            )
        if e.op == "select":
            which, x, y = vectors
            return ins.select(code, which, x, y, self._kind(e.dtype), lanes)
        return ins.emit_operation(code, e.op, e.attr, e.dtype, e.args[-1].dtype, vectors, lanes)

    def _bundle(self, wanted: Sequence[Expr | None], dtype: str) -> str:
        """A vector with these values in its lanes (None: any)."""
        key = tuple(wanted)
        known = self._bundles.get(key)
        if known is None:
            known = self._bundles[key] = self._joined(wanted, dtype)
        return known

    def _joined(self, wanted: Sequence[Expr | None], dtype: str) -> str:
        sources = bundle_sources(self._packing, wanted)
        if sources.run:
            return self._load_run([e for e in wanted if e is not None])
        self._require(wanted)
        parts = [(pack.text, lanes) for pack, lanes in sources.packs.items()]
        if sources.constants or sources.scalars:
            loose: list[Expr | None] = [None] * len(wanted)
            for lane, e in (*sources.constants.items(), *sources.scalars.items()):
                loose[lane] = e
            text = self._scalars_as_vector(loose, dtype, 0, not sources.packs)
            parts.append((text, {lane: lane for lane, e in enumerate(loose) if e is not None}))
        while len(parts) > 1:
            pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
            parts = [self._shuffled(p[0], p[-1], dtype) if len(p) == 2 else p[0] for p in pairs]
        text, lanes = parts[0]
        if any(lane != there for lane, there in lanes.items()):
            text, _ = self._shuffled((text, lanes), ("poison", {}), dtype)
        return text

    def _shuffled(
        self, one: tuple[str, dict[int, int]], other: tuple[str, dict[int, int]], dtype: str
    ) -> tuple[str, dict[int, int]]:
        """Two registers in one; each wanted lane then is at its place."""
        width = self._packing.lanes
        order = {**one[1], **{lane: width + there for lane, there in other[1].items()}}
        mask = ", ".join(f"i32 {order.get(lane, 'poison')}" for lane in range(width))
        kind = self._kind(dtype)
        text = self.code.ins(
            f"shufflevector {kind} {one[0]}, {kind} {other[0]}, <{width} x i32> <{mask}>"
        )
        return text, {lane: lane for lane in order}

    def _scalars_as_vector(
        self, wanted: Sequence[Expr | None], dtype: str, level: int, fill: bool
    ) -> str:
        """Constants and scalars in lanes; what does not change in the loop before it."""
        width, scalar_type = self._packing.lanes, ins.SCALAR_TYPE[dtype]
        kind = self._kind(dtype)
        present = [e for e in wanted if e is not None]
        if all(e is present[0] for e in present) or (
            present[0].op == "const" and all(e.op == "const" and e.attr == present[0].attr
                and type(e.attr) is type(present[0].attr) and str(e.attr) == str(present[0].attr)
                for e in present)
        ):
            return self.text_of(present[0], width)
        constants = [
            ins.constant(e.attr, dtype) if e is not None and e.op == "const" else None
            for e in (*wanted, *[None] * (width - len(wanted)))
        ]
        rest = ins.constant(_zero(dtype), dtype) if fill else "poison"
        text = ", ".join(f"{scalar_type} {c or rest}" for c in constants)
        text = f"<{text}>"
        moved = [(lane, e) for lane, e in enumerate(wanted) if e is not None and e.op != "const"]
        values = [(lane, self.value(e)) for lane, e in moved]
        values.sort(key=lambda item: item[1].level)
        at = level
        for lane, val in values:
            at = max(at, val.level)
            code = self.scopes[at].code
            text = code.ins(
                f"insertelement {kind} {text}, {scalar_type} {val.text}, i64 {lane}"
            )
        return text

    def _extract(self, code: Code, text: str, dtype: str, lane: int) -> str:
        return code.ins(f"extractelement {self._kind(dtype)} {text}, i64 {lane}")

    # ---- memory

    def _load_run(self, loads: Sequence[Expr]) -> str:
        """Consecutive elements; lanes beyond them hold nothing."""
        buffer: Buffer = loads[0].attr
        code, count, width = self.code, len(loads), self._packing.lanes
        scalar_type = ins.MEMORY_TYPE[buffer.dtype]
        address = self._address(code, buffer, self.scalar(loads[0].args[0]))
        align = ITEMSIZE[buffer.dtype]
        if count < width and self.has_masks:
            kind = f"<{width} x {scalar_type}>"
            types = ["ptr", "i32", f"<{width} x i1>", kind]
            masked = [address, str(align), _first(count, width), "zeroinitializer"]
            text = code.call(f"llvm.masked.load.{ins.suffix(kind)}.p0", kind, types, masked)
            return self._from_memory(code, buffer, text, width)
        kind = f"<{count} x {scalar_type}>"
        text = code.ins(f"load {kind}, ptr {address}, align {align}{self._invariant(buffer)}")
        if count < width:
            mask = ", ".join(f"i32 {i if i < count else 'poison'}" for i in range(width))
            text = code.ins(f"shufflevector {kind} {text}, {kind} poison, <{width} x i32> <{mask}>")
        return self._from_memory(code, buffer, text, width)

    def _store_run(self, run: Sequence[Store]) -> None:
        first = run[0]
        if len(run) == 1:
            self._scalar_of(first.value)
            self.store(first, None)
            return
        buffer, count, width = first.buffer, len(run), self._packing.lanes
        text = self._bundle([s.value for s in run], buffer.dtype)
        code = self.code
        text = self._to_memory(code, buffer, text, width)
        scalar_type = ins.MEMORY_TYPE[buffer.dtype]
        kind = f"<{width} x {scalar_type}>"
        if count < width and self.has_masks:
            address = self._address(code, buffer, self.scalar(first.index))
            align = ITEMSIZE[buffer.dtype]
            self._write(code, kind, text, address, align, _first(count, width), width)
            return
        if count < width:
            mask = ", ".join(f"i32 {i}" for i in range(count))
            text = code.ins(f"shufflevector {kind} {text}, {kind} poison, <{count} x i32> <{mask}>")
            kind = f"<{count} x {scalar_type}>"
        address = self._address(code, buffer, self.scalar(first.index))
        self._write(code, kind, text, address, ITEMSIZE[buffer.dtype], None, count)


def _first(count: int, lanes: int) -> str:
    """The mask of the first lanes."""
    return "<" + ", ".join(f"i1 {'true' if i < count else 'false'}" for i in range(lanes)) + ">"


def _zero(dtype: str) -> Any:
    return False if dtype == "bool" else 0.0 if dtype in ("f32", "f64") else 0
