"""Superwords: which scalars of a loop's body are computed together, as lanes of one vector.

A loop that carries 60 numbers computes 60 times nearly the same.  As scalars these are hundreds of
instructions and more values than there are registers; as lanes of 4 vectors they are a few dozen
(superword-level parallelism: Larsen and Amarasinghe, PLDI 2000).  Measured for 60 carries
c[i] = a c[i] + b c[i+1] c[i+2]: 24 ns a step as scalars, 5 ns as vectors.

Takes   a loop of scalars: carries, stores of results, no inner loops.
Gives   `Packing`: the packs, each a list of expressions of one opcode that do not depend on one
        another, and the pack and lane of each; None where vectors would not pay.

Values that become carries, or are stored, are packed by structure (which operations on carries,
constants and elements of a row they are), in the order of the carries.  From there down an operand
takes the lane of its user, together with the same operand of the other lanes, if its opcode and
height are theirs.  Height is the longest way down to a leaf: members of one height cannot depend on
each other, nor packs in a circle.

Operands that lie in other lanes or packs, such as a neighbour's, come through shuffles
(`bundle_sources`).  No operation is changed or reordered: each lane computes what the scalar would
have.

Start reading at `find_packing`; packed_loops.py writes the code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jato.loopir.grammar import ITEMSIZE, Buffer, Expr, Loop, Store
from jato.loopir.scalar_ops import SCALAR_OPS

# Fewer expressions of a kind stay scalars.
FEWEST_LANES = 4
# A body of at most this cost (in instructions) is left as it is: its scalars fit registers.
SMALL_BODY = 40.0
# Scalars in registers at a time; each carry beyond is stored and loaded in each step.
REGISTERS = 24
# Vector code must be cheaper by this factor: a shuffle waits longer than an operation.
GAIN = 1.5

_COMMUTATIVE = frozenset(("add", "mul", "and", "or", "xor", "eq", "ne"))
_SLOW = {"div": 6.0, "sqrt": 6.0}
_MATH_COST = 20.0
SHUFFLE_COST = 1.5
MOVE_COST = 2.0  # a scalar into a lane, or a lane into a scalar


@dataclass(eq=False)
class Pack:
    """Expressions computed as the lanes of one vector (None: a lane that holds nothing).

    row     of loads: (buffer, index without its constant); they are elements that follow each other
    carries of carries: their values at the end of the step are `nexts`, a pack of its own or loose
    """

    members: list[Expr | None]
    kind: str  # "operation", "row", "carry"
    text: str = ""

    @property
    def present(self) -> list[Expr]:
        return [e for e in self.members if e is not None]

    @property
    def dtype(self) -> str:
        return self.present[0].dtype


@dataclass(eq=False)
class Packing:
    """See the module's docstring.  places: the pack and lane of an expression; carries: packs of
    carries, with the expressions that they become; stores: runs of stores of consecutive elements."""

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
    body = _Body(loop)
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
    grouping = _Grouping(body, lanes)
    for part in grouping.packs():
        packing.add(Pack(part, "operation"))
    _pack_rows(body, packing)
    _pack_carries(loop, packing, grouping.carried)
    packing.stores = _runs_of_stores(body.stores, packing)
    return packing if GAIN * packed_cost(loop, body, packing) < body.scalar_cost() else None


def is_math(op: str) -> bool:
    return SCALAR_OPS[op].kind == "math"


def row_of(load: Expr) -> tuple[Buffer, Expr | None, int]:
    """(buffer, index without its constant, constant): the builder puts the constant last."""
    return (load.attr, *place_of(load.args[0]))


def place_of(index: Expr) -> tuple[Expr | None, int]:
    if index.op == "const":
        return None, int(index.attr)
    if index.op == "add" and index.args[1].op == "const":
        return index.args[0], int(index.args[1].attr)
    return index, 0


class _Body:
    """What a loop computes in each step: its expressions, operands first, and their kinds."""

    def __init__(self, loop: Loop):
        self.loop = loop
        self.stores: list[Store] = list(loop.body)  # type: ignore[arg-type]
        roots = [*loop.nexts, *[s.value for s in self.stores]]
        self.variant: dict[Expr, bool] = {e: True for e in (*loop.carries, loop.var)}
        self.rank: dict[Expr, int] = {}  # which root needs an expression first
        self.order: list[Expr] = []
        for number, root in enumerate(roots):
            self._visit(root, number)
        indices = [e.args[0] for e in self.order if e.op == "load"]
        indices += [s.index for s in self.stores]
        self.of_indices = _below(indices)
        self.packable = [e for e in self.order if self._may_pack(e)]
        self.reads_results = any(
            e.op == "load" and self.variant[e] and e.attr.space != "in" for e in self.order
        )

    def _visit(self, root: Expr, number: int) -> None:
        stack = [root]
        while stack:
            e = stack[-1]
            if e in self.rank:
                stack.pop()
                continue
            missing = [a for a in e.args if a not in self.rank]
            if missing:
                stack += reversed(missing)
                continue
            stack.pop()
            self.rank[e] = number
            self.order.append(e)
            if e not in self.variant:
                self.variant[e] = any(self.variant[a] for a in e.args)

    def _may_pack(self, e: Expr) -> bool:
        if not self.variant[e] or e in self.of_indices or e.op not in SCALAR_OPS or not e.args:
            return False
        types = {e.dtype, *[a.dtype for a in e.args]}
        if types & {"f16", "bf16"} or e.op in ("rem", "mulhi"):
            return False
        return e.op != "div" or e.dtype in ("f32", "f64")  # a lane without a value must not divide

    def scalar_cost(self) -> float:
        found = sum(_cost(e) for e in self.order if self.variant[e] and e not in self.of_indices)
        spilled = max(0, len(self.loop.carries) - REGISTERS)
        return found + 2.0 * spilled + len(self.stores)


Slot = tuple[int, int, int]  # layer, vector, lane


class _Grouping:
    """Sorts what may be packed into packs, users first."""

    def __init__(self, body: _Body, lanes: int):
        self.body, self.lanes = body, lanes
        self.kind: dict[Expr, int] = {}
        self.height: dict[Expr, int] = {}
        self.packable = set(body.packable)
        self.users: dict[Expr, list[tuple[Expr, int]]] = {}
        self.group: dict[Expr, int] = {}
        self.slot: dict[Expr, Slot] = {}
        self.groups: list[dict[Slot, Expr]] = []
        self.carried: list[dict[Slot, Expr]] = []  # next carries: the carries have the same lanes
        self.leaf: dict[Expr, Slot | None] = {}
        self._classify()

    def packs(self) -> list[list[Expr | None]]:
        self._place_roots()
        self._find_leaves()
        heights: dict[int, list[Expr]] = {}
        for e in self.body.packable:
            if e not in self.slot:
                heights.setdefault(self.height[e], []).append(e)
        for height in sorted(heights, reverse=True):
            self._place(heights[height])
        return [vector for group in self.groups for vector in _vectors(group, self.lanes)]

    def _classify(self) -> None:
        """Kinds (equal: the same structure), heights and users."""
        kinds: dict[Any, int] = {}
        kind, height, body = self.kind, self.height, self.body
        for e in body.order:
            key: tuple[Any, ...]
            height[e] = 0
            if not body.variant[e]:
                key = ("fixed", e.dtype)
            elif e.op == "load" and len(e.args) == 1:
                key = ("load", e.dtype, e.attr)
            elif e.op == "var":
                key = ("carry", e.dtype)
            else:
                height[e] = 1 + max(height[a] for a in e.args)
                key = ("scalar", e)
            if e in self.packable:
                args = self.ordered(e)
                key = (e.op, e.dtype, e.attr, *[kind[a] for a in args])
                for position, a in enumerate(args):
                    self.users.setdefault(a, []).append((e, position))
            kind[e] = kinds.setdefault(key, len(kinds))

    def _find_leaves(self) -> None:
        """The lane of a carry, or the place in its row, that an expression reads first."""
        loop = self.body.loop
        for carry, after in zip(loop.carries, loop.nexts, strict=True):
            self.leaf[carry] = self.slot.get(after)
        for e in self.body.order:
            if e.op == "load" and self.body.variant[e]:
                vector, lane = divmod(place_of(e.args[0])[1], self.lanes)
                self.leaf[e] = (0, vector, lane)
            elif e not in self.leaf:
                self.leaf[e] = next((self.leaf[a] for a in self.ordered(e) if self.leaf[a]), None)

    def ordered(self, e: Expr) -> tuple[Expr, ...]:
        """Operands, those of a commutative operation in the order of their kinds."""
        if e.op in _COMMUTATIVE and self.kind[e.args[0]] > self.kind[e.args[1]]:
            return e.args[::-1]
        return e.args

    def _alike(self, e: Expr) -> tuple[Any, ...]:
        """Equal: one instruction can compute both, and neither needs the other."""
        return e.op, e.dtype, e.attr, e.args[-1].dtype, self.height[e]

    def _place_roots(self) -> None:
        """Next carries and stored values that nothing else needs, by kind; odd kinds with others."""
        nexts = list(dict.fromkeys(e for e in self.body.loop.nexts if e in self.packable))
        stored = list(dict.fromkeys(s.value for s in self.body.stores))
        stored = [
            e for e in stored
            if e in self.packable and e not in self.users and e not in set(nexts)
        ]  # fmt: skip
        for roots in (nexts, stored):
            kinds: dict[int, list[Expr]] = {}
            for e in roots:
                kinds.setdefault(self.kind[e], []).append(e)
            homes: dict[Any, list[Expr]] = {}
            found: list[list[Expr]] = []
            for members in sorted(kinds.values(), key=len, reverse=True):
                e = members[0]
                home = homes.get(self._alike(e))
                if home is None or 2 * len(members) > len(home):
                    home = homes.get(e.dtype) if len(members) < FEWEST_LANES else None
                if home is not None:
                    home += members
                elif len(members) >= FEWEST_LANES:
                    found.append(members)
                    homes.setdefault(self._alike(e), members)
                    homes.setdefault(e.dtype, members)
            order = {e: number for number, e in enumerate(roots)}
            placed = {e for members in found for e in members}
            by_dtype: dict[str, list[Expr]] = {}
            for e in roots:
                if e not in placed:
                    by_dtype.setdefault(e.dtype, []).append(e)
            found += [members for members in by_dtype.values() if len(members) >= FEWEST_LANES]
            for members in found:
                self._place_root(sorted(members, key=order.__getitem__), roots is nexts)

    def _place_root(self, members: list[Expr], carried: bool) -> None:
        """A group in this order; what another operation computes has its lane, in another pack."""
        width = self.lanes
        slots = {(0, i // width, i % width): e for i, e in enumerate(members)}
        if carried:
            self.carried.append(slots)
        alike: dict[Any, dict[Slot, Expr]] = {}
        for slot, e in slots.items():
            alike.setdefault(self._alike(e), {})[slot] = e
        for group in alike.values():
            self._add(group)

    def _close(self, members: list[Expr]) -> None:
        """A group without holes, in this order."""
        width = self.lanes
        self._add({(0, i // width, i % width): e for i, e in enumerate(members)})

    def _add(self, group: dict[Slot, Expr]) -> None:
        for slot, e in group.items():
            self.group[e], self.slot[e] = len(self.groups), slot
        self.groups.append(group)

    def _place(self, members: list[Expr]) -> None:
        """Expressions of one height: each to the lane of a user, with those of the user's pack."""
        wishes: dict[Expr, list[tuple[Any, Slot]]] = {}
        counts: dict[Any, int] = {}
        for e in members:
            alike = self._alike(e)
            wishes[e] = [
                ((alike, self.group[user], position), self.slot[user])
                for user, position in self.users.get(e, ())
                if user in self.group
            ] or [((alike, None, 0), (0, 0, 0))]
            for key in dict.fromkeys(key for key, _ in wishes[e]):
                counts[key] = counts.get(key, 0) + 1
        chosen: dict[Any, list[tuple[Slot, Expr]]] = {}
        for e in members:
            key, slot = max(wishes[e], key=lambda wish: counts[wish[0]])
            chosen.setdefault(key, []).append((slot, e))
        for key in self._scattered(chosen):
            for slot, e in chosen.pop(key):
                own = ((self._alike(e), -1 - self.kind[e], 0), self.leaf[e] or slot)
                chosen.setdefault(own[0], []).append((own[1], e))
        first = len(self.groups)
        few: list[list[tuple[Slot, Expr]]] = []
        for key, wanted in chosen.items():
            if len(wanted) < FEWEST_LANES:
                few.append(wanted)
            elif key[1] is None:
                self._close(sorted((e for _, e in wanted), key=lambda e: self.body.rank[e]))
            else:
                self._open(wanted)
        for wanted in few:
            rest = [(slot, e) for slot, e in wanted if not self._fill(slot, e, first)]
            rest = [(slot, e) for slot, e in rest if any(u in self.slot for u, _ in self.users.get(e, ()))]
            if rest and any(a in self.packable or a.op == "var" for a in rest[0][1].args):
                self._open(rest)

    def _scattered(self, chosen: dict[Any, list[tuple[Slot, Expr]]]) -> list[Any]:
        """Wishes that would make many vectors of few lanes: their members are better close together,
        in the order of the carries that they read."""
        vectors: Counter[Any] = Counter()
        kinds: dict[Any, Counter[int]] = {}
        for key, wanted in chosen.items():
            vectors[key[0]] += len({slot[:2] for slot, _ in wanted})
            kinds.setdefault(key[0], Counter()).update(self.kind[e] for _, e in wanted)
        return [
            key
            for key in chosen
            if key[1] is not None
            and vectors[key[0]] > 2 * sum(-(-n // self.lanes) for n in kinds[key[0]].values())
        ]

    def _open(self, wanted: list[tuple[Slot, Expr]]) -> None:
        """A group in the lanes of its users; several for one lane are vectors of their own."""
        group: dict[Slot, Expr] = {}
        for (layer, vector, lane), e in wanted:
            again = 0
            while (slot := (layer + 64 * again, vector, lane)) in group:
                again += 1
            group[slot] = e
        vectors = len({slot[:2] for slot in group})
        if vectors > 1 and 2 * len(group) <= (vectors - 1) * self.lanes:
            self._close([e for _, e in sorted(group.items(), key=lambda item: item[0])])
        else:
            self._add(group)

    def _fill(self, slot: Slot, e: Expr, first: int) -> bool:
        """An odd one: into a pack like it, if its lane is free."""
        for number in range(first, len(self.groups)):
            group = self.groups[number]
            same = self._alike(next(iter(group.values()))) == self._alike(e)
            if same and slot not in group and any(slot[:2] == other[:2] for other in group):
                group[slot] = e
                self.group[e], self.slot[e] = number, slot
                return True
        return False


def _vectors(group: dict[Slot, Expr], lanes: int) -> list[list[Expr | None]]:
    vectors: dict[tuple[int, int], list[Expr | None]] = {}
    for (layer, vector, lane), e in group.items():
        vectors.setdefault((layer, vector), [None] * lanes)[lane] = e
    for members in vectors.values():
        while members[-1] is None:
            members.pop()
    return [members for _, members in sorted(vectors.items())]


def _cost(e: Expr) -> float:
    if e.op in ("const", "var", "param"):
        return 0.0
    if e.op in SCALAR_OPS and is_math(e.op):
        return _MATH_COST
    return _SLOW.get(e.op, 1.0) if e.dtype in ("f32", "f64") else 1.0


def _below(roots: Sequence[Expr]) -> set[Expr]:
    seen: set[Expr] = set()
    stack = list(roots)
    while stack:
        e = stack.pop()
        if e not in seen:
            seen.add(e)
            stack += e.args
    return seen


def _chunks(items: list[Any], size: int) -> list[list[Any]]:
    return [items[i : i + size] for i in range(0, len(items), size)]


def _pack_rows(body: _Body, packing: Packing) -> None:
    """Loads of elements that follow each other."""
    rows: dict[tuple[Buffer, Expr | None], dict[int, Expr]] = {}
    for e in body.order:
        if e.op == "load" and len(e.args) == 1 and body.variant[e] and e.dtype not in ("f16", "bf16"):
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
    """A carry has the lane of the value that it becomes; others are packed by where that is from."""
    carry_of: dict[Expr, Expr] = {}
    loose: dict[Any, list[tuple[Expr, Expr]]] = {}
    known = {e for group in groups for e in group.values()}
    for carry, after in zip(loop.carries, loop.nexts, strict=True):
        if after in known and after not in carry_of:
            carry_of[after] = carry
        else:
            loose.setdefault((after.op, carry.dtype), []).append((carry, after))
    for group in groups:
        for following in _vectors(group, packing.lanes):
            carried = Pack([carry_of[e] if e is not None else None for e in following], "carry")
            packing.add(carried)
            packing.carries.append((carried, following))
    for pairs in loose.values():
        if len(pairs) >= FEWEST_LANES and pairs[0][0].dtype not in ("f16", "bf16"):
            for part in _chunks(pairs, packing.lanes):
                carried = Pack([carry for carry, _ in part], "carry")
                packing.add(carried)
                packing.carries.append((carried, [after for _, after in part]))


def _runs_of_stores(stores: list[Store], packing: Packing) -> list[list[Store]]:
    rows: dict[tuple[Buffer, Expr | None], dict[int, Store]] = {}
    runs: list[list[Store]] = []
    for s in stores:
        base, offset = place_of(s.index)
        row = rows.setdefault((s.buffer, base), {})
        if offset in row or s.buffer.dtype in ("f16", "bf16"):
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
            if last is not None and e.op in _COMMUTATIVE:
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


def packed_cost(loop: Loop, body: _Body, packing: Packing) -> float:
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
            total += size * _SLOW[e.op] / 2 if e.op in _SLOW else _cost(e)
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
            total += _cost(e)
            moved.update(a for a in e.args if a.op != "load")
    total += MOVE_COST * sum(e in packing.places for e in moved)
    return total
