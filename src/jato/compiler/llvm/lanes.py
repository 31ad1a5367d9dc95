"""The body of a loop of scalars, and which of its expressions are of a kind: lanes of one vector.

`Body`      what a step computes, operands first, and what of it vectors can compute
`Grouping`  the packs: lists of expressions, each at its lane

Values that become carries, or are stored, are packed by structure (which operations on carries,
constants and elements of a row they are), in the order of the carries.  From there down an operand
takes the lane of its user, together with the same operand of the other lanes, if its opcode and
height are theirs.  Height is the longest way down to a leaf: members of one height cannot depend on
each other, nor packs in a circle.  Operands that would be spread over many vectors are put close
together instead, in the order of the carries that they read (random coupling).

Start reading at `Grouping.packs`; superwords.py makes a plan of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from jato.loopir.grammar import Buffer, Expr, Loop, Store
from jato.loopir.scalar_ops import MATH_COST, SCALAR_OPS, is_math

# Fewer expressions of a kind start no pack, unless packs that use them have lanes for them.
FEWEST_LANES = 4
# Scalars in registers at a time; each carry beyond is stored and loaded in each step.
REGISTERS = 24

COMMUTATIVE = frozenset(("add", "mul", "and", "or", "xor", "eq", "ne"))
# Instructions that an operation is worth, as a scalar; one of the others is 1.
SLOW = {"div": 6.0, "sqrt": 6.0}

Slot = tuple[int, int, int]  # layer, vector, lane


def row_of(load: Expr) -> tuple[Buffer, Expr | None, int]:
    """(buffer, index without its constant, constant): the builder puts the constant last."""
    return (load.attr, *place_of(load.args[0]))


def place_of(index: Expr) -> tuple[Expr | None, int]:
    if index.op == "const":
        return None, int(index.attr)
    if index.op == "add" and index.args[1].op == "const":
        return index.args[0], int(index.args[1].attr)
    return index, 0


class Body:
    """What a loop computes in each step."""

    def __init__(self, loop: Loop):
        self.loop = loop
        self.stores: list[Store] = list(loop.body)  # type: ignore[arg-type]
        roots = [*loop.nexts, *[s.value for s in self.stores]]
        self.variant: dict[Expr, bool] = dict.fromkeys((*loop.carries, loop.var), True)
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
        found = sum(cost(e) for e in self.order if self.variant[e] and e not in self.of_indices)
        spilled = max(0, len(self.loop.carries) - REGISTERS)
        return found + 2.0 * spilled + len(self.stores)


class Grouping:
    """Sorts what may be packed into packs, users first."""

    def __init__(self, body: Body, lanes: int):
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
        return [pack for group in self.groups for pack in vectors(group, self.lanes)]

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
        if e.op in COMMUTATIVE and self.kind[e.args[0]] > self.kind[e.args[1]]:
            return e.args[::-1]
        return e.args

    def _alike(self, e: Expr) -> tuple[Any, ...]:
        """Equal: one instruction can compute both, and neither needs the other."""
        return e.op, e.dtype, e.attr, e.args[-1].dtype, self.height[e]

    def _place_roots(self) -> None:
        """Next carries, and stored values that nothing else needs, by kind; odd ones with others."""
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
            rest = [
                (slot, e)
                for slot, e in rest
                if any(user in self.slot for user, _ in self.users.get(e, ()))
            ]
            if rest and any(a in self.packable or a.op == "var" for a in rest[0][1].args):
                self._open(rest)

    def _scattered(self, chosen: dict[Any, list[tuple[Slot, Expr]]]) -> list[Any]:
        """Wishes that would make many vectors of few lanes: their members are better close
        together, in the order of the carries that they read."""
        used: Counter[Any] = Counter()
        kinds: dict[Any, Counter[int]] = {}
        for key, wanted in chosen.items():
            used[key[0]] += len({slot[:2] for slot, _ in wanted})
            kinds.setdefault(key[0], Counter()).update(self.kind[e] for _, e in wanted)
        return [
            key
            for key in chosen
            if key[1] is not None
            and used[key[0]] > 2 * sum(-(-n // self.lanes) for n in kinds[key[0]].values())
        ]

    def _open(self, wanted: list[tuple[Slot, Expr]]) -> None:
        """A group in the lanes of its users; several for one lane are vectors of their own."""
        group: dict[Slot, Expr] = {}
        for (layer, vector, lane), e in wanted:
            again = 0
            while (slot := (layer + 64 * again, vector, lane)) in group:
                again += 1
            group[slot] = e
        count = len({slot[:2] for slot in group})
        if count > 1 and 2 * len(group) <= (count - 1) * self.lanes:
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


def vectors(group: dict[Slot, Expr], lanes: int) -> list[list[Expr | None]]:
    found: dict[tuple[int, int], list[Expr | None]] = {}
    for (layer, vector, lane), e in group.items():
        found.setdefault((layer, vector), [None] * lanes)[lane] = e
    for members in found.values():
        while members[-1] is None:
            members.pop()
    return [members for _, members in sorted(found.items())]


def cost(e: Expr) -> float:
    if e.op in ("const", "var", "param"):
        return 0.0
    if is_math(e.op):
        return MATH_COST
    return SLOW.get(e.op, 1.0) if e.dtype in ("f32", "f64") else 1.0


def _below(roots: Sequence[Expr]) -> set[Expr]:
    seen: set[Expr] = set()
    stack = list(roots)
    while stack:
        e = stack.pop()
        if e not in seen:
            seen.add(e)
            stack += e.args
    return seen
