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
    """base + an offset in elements for each lane: `step` times its number, or a vector."""

    element: str  # type of an element in memory
    align: int
    lanes: int
    base: str
    step: int | None = None
    offsets: str = ""
    width: str = ""  # i32 or i64, of the offsets

    @property
    def kind(self) -> str:
        return f"<{self.lanes} x {self.element}>"

    def addresses(self, code: Code) -> str:
        """A vector of pointers."""
        width, offsets = self.width, self.offsets
        if self.step is not None:
            width, offsets = "i32", ins.lane_numbers("i32", self.lanes, self.step)
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
    for lane, offset in enumerate(_offsets(code, places)):
        address = code.ins(f"getelementptr {places.element}, ptr {places.base}, i64 {offset}")
        element = code.ins(
            f"load {places.element}, ptr {address}, align {places.align}{attributes}"
        )
        result = code.ins(
            f"insertelement {places.kind} {result}, {places.element} {element}, i32 {lane}"
        )
    return result


def _offsets(code: Code, places: Places) -> list[str]:
    """The offsets as i64."""
    lanes, offsets = places.lanes, places.offsets
    if places.step is not None:
        return [str(lane * places.step) for lane in range(lanes)]
    if places.width == "i64":
        return [
            code.ins(f"extractelement <{lanes} x i64> {offsets}, i32 {k}") for k in range(lanes)
        ]
    pairs = code.ins(f"bitcast <{lanes} x i32> {offsets} to <{lanes // 2} x i64>")
    found = []
    for k in range(lanes // 2):
        pair = code.ins(f"extractelement <{lanes // 2} x i64> {pairs}, i32 {k}")
        low = code.ins(f"trunc i64 {pair} to i32")
        found += [code.ins(f"sext i32 {low} to i64"), code.ins(f"ashr i64 {pair}, 32")]
    return found
