"""Reads at a place of its own for each lane.

The gather instructions of processors are sequences of loads inside, and slower than loads of
single elements that are put together (table in the first-level cache, 0.29 against 0.17 ns an
element on a Zen 5; equal where the second level is the limit).  So where all lanes are active,
which is asked once for a vector, elements are loaded one by one; else there is a gather.

    offsets = <16 x i32>          pairs = bitcast to <8 x i64>
    result[2 k] = base[low half of pairs[k]],  result[2 k + 1] = base[high half]

Elements of one or two bytes, which have no gather, gain the most: without it they are a branch
for each lane.  Start reading at `gather`.
"""

from __future__ import annotations

from dataclasses import dataclass

from jato.compiler.llvm import instructions as ins
from jato.compiler.llvm.instructions import Code


@dataclass(frozen=True)
class Places:
    """base + an offset in elements for each lane: `step` (a number, or the name of an i64 scalar)
    times the lane's number, or a vector."""

    element: str  # type of an element in memory
    align: int
    lanes: int
    base: str
    step: int | str | None = None
    offsets: str = ""
    width: str = ""  # i32 or i64, of the offsets

    @property
    def kind(self) -> str:
        return f"<{self.lanes} x {self.element}>"

    def addresses(self, code: Code) -> str:
        """A vector of pointers."""
        width, offsets = self.width, self.offsets
        if isinstance(self.step, int):
            width, offsets = "i32", ins.lane_numbers("i32", self.lanes, self.step)
        elif self.step is not None:
            width, kind = "i64", f"<{self.lanes} x i64>"
            step = ins.splat(code, self.step, "i64", self.lanes)
            offsets = code.ins(f"mul {kind} {step}, {ins.lane_numbers('i64', self.lanes, 1)}")
        return code.ins(
            f"getelementptr {self.element}, ptr {self.base}, <{self.lanes} x {width}> {offsets}"
        )


def gather(code: Code, places: Places, mask: str | None, other: str, attributes: str) -> str:
    """The elements at the places where `mask` (None: everywhere), elsewhere those of `other`."""
    if mask is None:
        return _one_by_one(code, places, attributes)
    text = code.function
    all_lanes, some, done = text.label("all"), text.label("some"), text.label("gathered")
    bits = code.ins(f"bitcast <{places.lanes} x i1> {mask} to i{places.lanes}")
    every = code.ins(f"icmp eq i{places.lanes} {bits}, -1")
    code.do(f"br i1 {every}, label %{all_lanes}, label %{some}")
    code.start(all_lanes)
    quick = _one_by_one(code, places, attributes)
    code.do(f"br label %{done}")
    code.start(some)
    slow = _masked(code, places, mask, other)
    code.do(f"br label %{done}")
    code.start(done)
    return code.ins(f"phi {places.kind} [{quick}, %{all_lanes}], [{slow}, %{some}]")


def _masked(code: Code, places: Places, mask: str, other: str) -> str:
    lanes, kind = places.lanes, places.kind
    types = [f"<{lanes} x ptr>", "i32", f"<{lanes} x i1>", kind]
    name = f"llvm.masked.gather.{ins.suffix(kind)}.v{lanes}p0"
    return code.call(name, kind, types, [places.addresses(code), str(places.align), mask, other])


def _one_by_one(code: Code, places: Places, attributes: str) -> str:
    result = "poison"
    for lane, (base, offset) in enumerate(_offsets(code, places)):
        address = code.ins(f"getelementptr {places.element}, ptr {base}, i64 {offset}")
        element = code.ins(
            f"load {places.element}, ptr {address}, align {places.align}{attributes}"
        )
        result = code.ins(
            f"insertelement {places.kind} {result}, {places.element} {element}, i32 {lane}"
        )
    return result


def _offsets(code: Code, places: Places) -> list[tuple[str, str]]:
    """(base, offset as i64) of each lane."""
    lanes, step = places.lanes, places.step
    if isinstance(step, str):
        return _steps(code, places, step)
    if step is not None:
        offsets = [str(lane * step) for lane in range(lanes)]
    elif places.width == "i64":
        kind = f"<{lanes} x i64>"
        offsets = [
            code.ins(f"extractelement {kind} {places.offsets}, i32 {k}") for k in range(lanes)
        ]
    else:
        offsets = []
        kind = f"<{lanes // 2} x i64>"
        pairs = code.ins(f"bitcast <{lanes} x i32> {places.offsets} to {kind}")
        for k in range(lanes // 2):
            pair = code.ins(f"extractelement {kind} {pairs}, i32 {k}")
            low = code.ins(f"trunc i64 {pair} to i32")
            offsets += [code.ins(f"sext i32 {low} to i64"), code.ins(f"ashr i64 {pair}, 32")]
    return [(places.base, offset) for offset in offsets]


def _steps(code: Code, places: Places, step: str) -> list[tuple[str, str]]:
    """Four offsets for all, a base for each four lanes: additions, which are hoisted or cheap."""
    offsets = ["0", step, code.ins(f"shl i64 {step}, 1"), code.ins(f"mul i64 {step}, 3")]
    four = code.ins(f"shl i64 {step}, 2")
    base, found = places.base, []
    for lane in range(places.lanes):
        if lane and lane % 4 == 0:
            base = code.ins(f"getelementptr {places.element}, ptr {base}, i64 {four}")
        found.append((base, offsets[lane % 4]))
    return found
