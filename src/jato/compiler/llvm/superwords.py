"""Superwords: which scalars of a loop's body are computed together, as lanes of one vector.

A loop that carries 60 numbers computes 60 times nearly the same.  As scalars these are hundreds of
instructions and more values than there are registers; as lanes of 4 vectors they are a few dozen
(superword-level parallelism: Larsen and Amarasinghe, PLDI 2000).  Measured for 60 carries
c[i] = a c[i] + b c[i+1] c[i+2]: 24 ns a step as scalars, 5 ns as vectors.

Takes   a loop of scalars: carries, stores of results, no inner loops.
Gives   `Packing`: the packs, each a list of expressions of one opcode that do not depend on one
        another, and the pack and lane of each; None where vectors would not pay.

What is packed together has the same structure (its constants, carries and elements of one row
aside), so that operands of the lanes are lanes of other packs, mostly in the same order.  Odd ones
join a pack of their opcode and height, the longest way down to a leaf: members of one height
cannot depend on each other, nor packs in a circle.  Lanes follow the order of the carries.

Operands that lie in other lanes or packs come through shuffles (`bundle_sources`).  No operation
is changed or reordered: each lane computes what the scalar would have.

Start reading at `find_packing`; packed_loops.py writes the code.
"""

from __future__ import annotations

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
    """Expressions computed as the lanes of one vector.

    row     of loads: (buffer, index without its constant); they are elements that follow each other
    carries of carries: their values at the end of the step are `nexts`, a pack of its own or loose
    """

    members: list[Expr]
    kind: str  # "operation", "row", "carry"
    text: str = ""

    @property
    def dtype(self) -> str:
        return self.members[0].dtype


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
    groups = body.groups()
    if not groups:
        return None
    widest = max(ITEMSIZE[e.dtype] for e in body.packable)
    longest = max(map(len, groups))
    lanes = vector_bits // (8 * widest)
    while lanes >= 2 * FEWEST_LANES and lanes // 2 >= longest:
        lanes //= 2
    if lanes < FEWEST_LANES:
        return None
    packing = _packed(loop, body, groups, lanes)
    return packing if GAIN * packed_cost(loop, body, packing) < body.scalar_cost() else None


def is_math(op: str) -> bool:
    return SCALAR_OPS[op].kind == "math"


def operands(e: Expr) -> tuple[Expr, ...]:
    return e.args


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
        self.uses: dict[Expr, int] | None = None
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

    def groups(self) -> list[list[Expr]]:
        """Expressions of one structure, and odd ones of the same opcode and height."""
        kinds: dict[Any, int] = {}
        kind: dict[Expr, int] = {}
        height: dict[Expr, int] = {}
        members: dict[int, list[Expr]] = {}
        packable = set(self.packable)
        for e in self.order:
            key: tuple[Any, ...]
            height[e] = 0
            if not self.variant[e]:
                key = ("fixed", e.dtype)
            elif e.op == "load" and len(e.args) == 1:
                key = ("load", e.dtype, e.attr)
            elif e.op == "var":
                key = ("carry", e.dtype)
            else:
                height[e] = 1 + max(height[a] for a in e.args)
                key = ("scalar", e)
            if e in packable:
                below = [kind[a] for a in e.args]
                if e.op in _COMMUTATIVE:
                    below.sort()
                key = (e.op, e.dtype, e.attr, *below)
            kind[e] = kinds.setdefault(key, len(kinds))
            if e in packable:
                members.setdefault(kind[e], []).append(e)
        groups = [part for group in members.values() for part in self._by_use(group, kind)]
        merged: dict[Any, list[Expr]] = {}
        found: list[list[Expr]] = []
        for group in sorted(groups, key=len, reverse=True):
            e = group[0]
            key = (e.op, e.dtype, e.attr, e.args[-1].dtype, height[e])
            home = merged.get(key)
            if home is not None and 2 * len(group) <= len(home):
                home += group
            else:
                found.append(group)
                merged.setdefault(key, group)
        found = [g for g in found if len(g) >= FEWEST_LANES]
        for group in found:
            group.sort(key=lambda e: (self.rank[e], e.serial))
        return found


    def _by_use(self, group: list[Expr], kind: dict[Expr, int]) -> list[list[Expr]]:
        """Parts of a group whose members have the same users, if there are enough of each: what
        is used in one place with neighbours has its lanes in their order."""
        if self.uses is None:
            self.uses = self._contexts(kind)
        parts: dict[Any, list[Expr]] = {}
        for e in group:
            parts.setdefault(self.uses[e], []).append(e)
        large = [p for p in parts.values() if len(p) >= 2 * FEWEST_LANES]
        if len(large) < 2:
            return [group]
        home = max(large, key=len)
        for part in parts.values():
            if len(part) < 2 * FEWEST_LANES:
                home += part
        return large

    def _contexts(self, kind: dict[Expr, int]) -> dict[Expr, int]:
        """Who uses an expression, and who uses those, down to carries and stores: equal numbers
        for equal contexts."""
        users: dict[Expr, set[tuple[int, ...]]] = {e: set() for e in self.order}
        for after in self.loop.nexts:
            users[after].add((-1,))
        for store in self.stores:
            users[store.value].add((-2,))
        numbers: dict[Any, int] = {}
        found: dict[Expr, int] = {}
        for e in reversed(self.order):
            found[e] = numbers.setdefault(frozenset(users[e]), len(numbers))
            for position, a in enumerate(e.args):
                side = 0 if e.op in _COMMUTATIVE else position
                users[a].add((kind[e], found[e], side))
        return found


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


def _packed(loop: Loop, body: _Body, groups: list[list[Expr]], lanes: int) -> Packing:
    packing = Packing(lanes)
    for group in groups:
        for part in _chunks(group, lanes):
            packing.add(Pack(part, "operation"))
    _pack_rows(body, packing)
    _pack_carries(loop, packing)
    packing.stores = _runs_of_stores(body.stores, packing)
    return packing


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


def _pack_carries(loop: Loop, packing: Packing) -> None:
    """A carry has the lane of the value that it becomes; others are packed by where that is from."""
    following: dict[Pack, list[Expr | None]] = {}
    by_lane: dict[Pack, dict[int, Expr]] = {}
    loose: dict[Any, list[tuple[Expr, Expr]]] = {}
    for carry, after in zip(loop.carries, loop.nexts, strict=True):
        place = packing.places.get(after)
        if place is not None and place[0].kind == "operation":
            pack, lane = place
            if lane not in by_lane.setdefault(pack, {}):
                by_lane[pack][lane] = carry
                continue
        loose.setdefault((after.op, carry.dtype), []).append((carry, after))
    for pack, chosen in by_lane.items():
        members: list[Any] = [chosen.get(lane) for lane in range(len(pack.members))]
        following[pack] = list(pack.members)
        carried = Pack([m for m in members if m is not None], "carry")
        packing.packs.append(carried)
        for lane, member in enumerate(members):
            if member is not None:
                packing.places[member] = carried, lane
        packing.carries.append((carried, following[pack]))
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


def columns(pack: Pack) -> list[list[Expr]]:
    """The operands of a pack, lane by lane; commutative ones where the lanes before have theirs."""
    first = pack.members[0]
    found: list[list[Expr]] = [[a] for a in first.args]
    for e in pack.members[1:]:
        args = e.args
        if e.op in _COMMUTATIVE and _unlike(args, found) > _unlike(args[::-1], found):
            args = args[::-1]
        for column, a in zip(found, args, strict=True):
            column.append(a)
    return found


def _unlike(args: Sequence[Expr], found: list[list[Expr]]) -> int:
    return sum(not _alike(a, column[-1]) for a, column in zip(args, found, strict=True))


def _alike(x: Expr, y: Expr) -> bool:
    if x.op == "const" or y.op == "const":
        return x.op == y.op
    return x.op == y.op and x.attr == y.attr if x.op == "load" else x.op == y.op and (
        len(x.args) == len(y.args)
        and all(p.op == q.op for p, q in zip(x.args, y.args, strict=True))
    )


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
            e = pack.members[0]
            size = ITEMSIZE[e.dtype] * packing.lanes / 16
            total += size * _SLOW[e.op] / 2 if e.op in _SLOW else _cost(e)
            for column in columns(pack):
                total += bundle(column)
        elif pack.kind == "row":
            used_rows.add(pack)
    total += len(used_rows)
    for carried, following in packing.carries:
        if any(packing.places.get(a) is None for a in following if a is not None) or not any(
            pack.members == following for pack in packing.packs
        ):
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
