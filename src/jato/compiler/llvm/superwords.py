"""Superwords: which scalars of a loop's body are computed together, as lanes of one vector.

A loop that carries 60 numbers computes 60 times nearly the same.  As scalars these are hundreds of
instructions and more values than there are registers; as lanes of 4 vectors they are a few dozen
(superword-level parallelism: Larsen and Amarasinghe, PLDI 2000).  Measured for 60 carries
c[i] = a c[i] + b c[i+1] c[i+2]: 24 ns a step as scalars, 5 ns as vectors.

Takes   a loop of scalars: carries, stores of results, no inner loops.
Gives   `Packing`: the packs, each a list of expressions of one opcode that do not depend on one
        another, and the pack and lane of each; None where vectors would not pay.

Which expressions share a vector, and in which lanes, is found by lanes.py.

Operands that lie in other lanes or packs, such as a neighbour's, come through shuffles
(`bundle_sources`).  No operation is changed or reordered: each lane computes what the scalar would
have.

Start reading at `find_packing`; packed_loops.py writes the code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jato.compiler.llvm.lanes import (
    COMMUTATIVE,
    FEWEST_LANES,
    SLOW,
    Body,
    Grouping,
    Slot,
    cost,
    place_of,
    row_of,
    vectors,
)
from jato.loopir.grammar import ITEMSIZE, Buffer, Expr, Loop, Store

# A body of at most this cost (in instructions) is left as it is: its scalars fit registers.
SMALL_BODY = 40.0
# Vector code must be cheaper by this factor: a shuffle waits longer than an operation.
GAIN = 1.5
SHUFFLE_COST = 1.5
MOVE_COST = 2.0  # a scalar into a lane, or a lane into a scalar


@dataclass(eq=False)
class Pack:
    """Expressions computed as the lanes of one vector (None: a lane that holds nothing).

    kind   "operation" (of one opcode), "row" (loads of elements that follow each other), "carry"
    text   the register, once there is one
    """

    members: list[Expr | None]
    kind: str
    text: str = ""

    @property
    def present(self) -> list[Expr]:
        return [e for e in self.members if e is not None]

    @property
    def dtype(self) -> str:
        return self.present[0].dtype


@dataclass(eq=False)
class Packing:
    """See the module's docstring.

    places   the pack and lane of an expression
    carries  packs of carries, with the expressions that they become
    stores   runs of stores of consecutive elements
    """

    lanes: int
    places: dict[Expr, tuple[Pack, int]] = field(default_factory=dict)
    packs: list[Pack] = field(default_factory=list)
    carries: list[tuple[Pack, list[Expr | None]]] = field(default_factory=list)
    stores: list[list[Store]] = field(default_factory=list)

    def add(self, pack: Pack) -> None:
        self.packs.append(pack)
        for lane, member in enumerate(pack.members):
            if member is not None:
                self.places[member] = pack, lane


@dataclass
class Sources:
    """Where the lanes of an operand come from.

    run       all are consecutive elements in memory: one load
    packs     pack -> {lane: lane there}
    constants and scalars   {lane: expression}
    """

    run: bool = False
    packs: dict[Pack, dict[int, int]] = field(default_factory=dict)
    constants: dict[int, Expr] = field(default_factory=dict)
    scalars: dict[int, Expr] = field(default_factory=dict)

    def cost(self) -> float:
        if self.run:
            return 1.0
        count = len(self.packs) + bool(self.constants and self.packs) + bool(self.scalars)
        shuffles = count - 1 if count > 1 else 0
        if count == 1 and self.packs:
            (mapping,) = self.packs.values()
            shuffles = int(any(i != k for i, k in mapping.items()))
        distinct = len(set(self.scalars.values()))
        return SHUFFLE_COST * shuffles + (MOVE_COST * distinct if distinct else 0.0)


def find_packing(loop: Loop, vector_bits: int) -> Packing | None:
    """How to compute a loop of scalars with vectors, or None."""
    if loop.condition is not None or len(loop.carries) < FEWEST_LANES:
        return None
    if not all(type(s) is Store and s.mask is None for s in loop.body):
        return None
    body = Body(loop)
    if body.reads_results or body.scalar_cost() <= SMALL_BODY:
        return None
    if len(body.packable) < 2 * FEWEST_LANES:
        return None
    widest = max(ITEMSIZE[e.dtype] for e in body.packable)
    lanes = vector_bits // (8 * widest)
    while lanes >= 2 * FEWEST_LANES and lanes // 2 >= len(loop.carries):
        lanes //= 2
    if lanes < FEWEST_LANES:
        return None
    packing = Packing(lanes)
    grouping = Grouping(body, lanes)
    for part in grouping.packs():
        packing.add(Pack(part, "operation"))
    _pack_rows(body, packing)
    _pack_carries(loop, packing, grouping.carried)
    stores = _runs_of_stores(body.stores, packing)
    if stores is None:
        return None
    packing.stores = stores
    return packing if GAIN * packed_cost(loop, body, packing) < body.scalar_cost() else None


def _chunks(items: list[Any], size: int) -> list[list[Any]]:
    return [items[i : i + size] for i in range(0, len(items), size)]


def _pack_rows(body: Body, packing: Packing) -> None:
    """Loads of elements that follow each other."""
    rows: dict[tuple[Buffer, Expr | None], dict[int, Expr]] = {}
    for e in body.order:
        if e.dtype in ("f16", "bf16"):
            continue
        if e.op == "load" and len(e.args) == 1 and body.variant[e]:
            buffer, base, offset = row_of(e)
            rows.setdefault((buffer, base), {})[offset] = e
    for row in rows.values():
        for run in _consecutive(sorted(row.items())):
            if len(run) >= FEWEST_LANES:
                for part in _chunks(run, packing.lanes):
                    packing.add(Pack(part, "row"))


def _consecutive(items: list[tuple[int, Any]]) -> list[list[Any]]:
    """Runs of items at offsets that follow each other."""
    runs: list[list[Any]] = []
    last = None
    for offset, item in items:
        if last is None or offset != last + 1:
            runs.append([])
        runs[-1].append(item)
        last = offset
    return runs


def _pack_carries(loop: Loop, packing: Packing, groups: list[dict[Slot, Expr]]) -> None:
    """A carry has the lane of the value that it becomes; others are packed by that one's opcode."""
    carry_of: dict[Expr, Expr] = {}
    loose: dict[Any, list[tuple[Expr, Expr]]] = {}
    known = {e for group in groups for e in group.values()}
    for carry, after in zip(loop.carries, loop.nexts, strict=True):
        if after in known and after not in carry_of:
            carry_of[after] = carry
        else:
            loose.setdefault((after.op, carry.dtype), []).append((carry, after))
    for group in groups:
        for following in vectors(group, packing.lanes):
            carried = Pack([carry_of[e] if e is not None else None for e in following], "carry")
            packing.add(carried)
            packing.carries.append((carried, following))
    for pairs in loose.values():
        if len(pairs) >= FEWEST_LANES and pairs[0][0].dtype not in ("f16", "bf16"):
            for part in _chunks(pairs, packing.lanes):
                carried = Pack([carry for carry, _ in part], "carry")
                packing.add(carried)
                packing.carries.append((carried, [after for _, after in part]))


def _runs_of_stores(stores: list[Store], packing: Packing) -> list[list[Store]] | None:
    """Stores of elements that follow each other; None where two go to one place, whose order counts."""
    rows: dict[tuple[Buffer, Expr | None], dict[int, Store]] = {}
    runs: list[list[Store]] = []
    for s in stores:
        base, offset = place_of(s.index)
        row = rows.setdefault((s.buffer, base), {})
        if offset in row:
            return None
        if s.buffer.dtype in ("f16", "bf16"):
            runs.append([s])
        else:
            row[offset] = s
    for row in rows.values():
        for run in _consecutive(sorted(row.items())):
            for part in _chunks(run, packing.lanes):
                few = sum(s.value in packing.places for s in part) < FEWEST_LANES
                runs += [[s] for s in part] if few else [part]
    return runs


# ---- operands


def columns(packing: Packing, pack: Pack) -> list[list[Expr | None]]:
    """The operands of a pack, lane by lane; commutative ones where the lanes before have theirs."""
    found: list[list[Expr | None]] = [[] for _ in pack.present[0].args]
    last: tuple[Expr, ...] | None = None
    for e in pack.members:
        args: tuple[Expr | None, ...] = (None,) * len(found)
        if e is not None:
            args = given = e.args
            if last is not None and e.op in COMMUTATIVE:
                turned = given[::-1]
                if _likeness(packing, turned, last) > _likeness(packing, given, last):
                    args = given = turned
            last = given
        for column, a in zip(found, args, strict=True):
            column.append(a)
    return found


def _likeness(packing: Packing, args: Sequence[Expr], before: Sequence[Expr]) -> int:
    found = 0
    for x, y in zip(args, before, strict=True):
        p, q = packing.places.get(x), packing.places.get(y)
        if x.op == y.op:
            found += 1
        if p is not None and q is not None and p[0] is q[0]:
            found += 2
    return found


def bundle_sources(packing: Packing, wanted: Sequence[Expr | None]) -> Sources:
    sources = Sources()
    present = [e for e in wanted if e is not None]
    if len(present) > 1 and all(e.op == "load" and e in packing.places for e in present):
        if None not in wanted[: len(present)]:
            places = [row_of(e) for e in present]
            buffer, base, first = places[0]
            if all(
                p[0] is buffer and p[1] is base and p[2] == first + i for i, p in enumerate(places)
            ):
                return Sources(run=True)
    for lane, e in enumerate(wanted):
        if e is None:
            continue
        place = packing.places.get(e)
        if place is not None:
            sources.packs.setdefault(place[0], {})[lane] = place[1]
        elif e.op == "const":
            sources.constants[lane] = e
        else:
            sources.scalars[lane] = e
    return sources


def packed_cost(loop: Loop, body: Body, packing: Packing) -> float:
    """Instructions of one step with this packing."""
    total = 0.0
    bundles: set[tuple[Expr | None, ...]] = set()
    moved: set[Expr] = set()

    def bundle(wanted: Sequence[Expr | None]) -> float:
        key = tuple(wanted)
        if key in bundles:
            return 0.0
        bundles.add(key)
        sources = bundle_sources(packing, wanted)
        sources.scalars = {k: e for k, e in sources.scalars.items() if body.variant.get(e, False)}
        return sources.cost()

    used_rows: set[Pack] = set()
    for pack in packing.packs:
        if pack.kind == "operation":
            e = pack.present[0]
            size = ITEMSIZE[e.dtype] * packing.lanes / 16
            total += size * SLOW[e.op] / 2 if e.op in SLOW else cost(e)
            for column in columns(packing, pack):
                total += bundle(column)
        elif pack.kind == "row":
            used_rows.add(pack)
    total += len(used_rows)
    for _, following in packing.carries:
        total += bundle(following)
    for run in packing.stores:
        if len(run) == 1:
            total += 1.0
            moved.update([run[0].value])
        else:
            total += 1.0 + bundle([s.value for s in run])
    for e in body.order:
        if body.variant[e] and e not in body.of_indices and e not in packing.places:
            total += cost(e)
            moved.update(a for a in e.args if a.op != "load")
    total += MOVE_COST * sum(e in packing.places for e in moved)
    return total
