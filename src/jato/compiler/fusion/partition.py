"""Fusion: which operations share a kernel.

Takes   a simplified graph.
Gives   groups of nodes, in an order in which they can run; every other node alone.
Runs    after the graph passes; the loop passes then turn each group into loops.

A group has a *space*: the shape its loops run over, and the axes its reductions reduce.  Without
reductions it computes elementwise over the space.  With reductions, the kept axes are the *rows*:
for each row come the reductions and whatever uses their results on the same row (softmax, layer
norm).  Operations that only move elements belong to no space: they are evaluated where they are
used, as index arithmetic.

The walk is over the nodes in reverse order.  A node joins the group of its consumers when that is
legal and worth it, else it becomes the root of a new group and its result goes to memory.  Every
choice goes to `observe.decision` with its reason (reasons.py).

Start reading at `partition`, then `Partition.join`.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import prod

from jato.base import observe
from jato.compiler.fusion import cost
from jato.compiler.fusion.reasons import FUSED, Reason
from jato.core.effects import node_has_effect
from jato.core.graph import Graph, Node, Var
from jato.ops.contract import DotGeneral
from jato.ops.reduction_family import Reduction
from jato.ops.shapes import BroadcastInDim, Reshape, Transpose
from jato.ops.slicing import MOST_PARTS, Concatenate, Pad

Shape = tuple[int, ...]
# Operations that move elements, on the way from a value to a result, with the operand each takes.
Way = tuple[tuple["Node", int], ...]
# Elements of a transposed array that are worth a loop of their own.
TRANSPOSED = 1 << 14
# Places at which an operation that only moves elements, or a cheap one, is done for one element.
MOST_WAYS = 64
CHEAP_WAYS = 4
# Paddings and concatenations, one within the other, of one kernel, an interleaving counted twice and
# what is computed under them once: each element pays for the guards of all levels (an associative
# scan of 2^18 elements, whose 18 levels interleave what they combine: 215 ms, 0.2 in steps).
MOST_GUARDS = 3
SHORT_RUN = 16  # elements in a row from one operand of a concatenation, less than a vector


@dataclass(eq=False)
class Group:
    """Nodes that become one kernel.

    space      the shape the loops run over
    reduced    axes of `space` that the group's reductions reduce; None without reductions
    nodes      in graph order
    outputs    values the kernel stores, in graph order
    split      few rows and many elements: the reductions run in two stages
    """

    space: Shape
    reduced: tuple[int, ...] | None = None
    nodes: list[Node] = field(default_factory=list)
    outputs: list[Var] = field(default_factory=list)
    split: bool = False
    cost: float = 0.0
    repeated: float = 0.0  # the part of the cost that other groups have too
    # how many of its reductions, one after the other, wait for a node (itself counted)
    levels: dict[Node, int] = field(default_factory=dict)
    # the ways by which a node's value moves to the results that are computed from it: it is
    # computed once for each of them
    ways: dict[Node, frozenset[Way]] = field(default_factory=dict)
    # under how many paddings and concatenations, one within the other, a node is computed
    guards: dict[Node, int] = field(default_factory=dict)
    # nodes that are computed again for many elements, because they are cheap
    replicated: set[Node] = field(default_factory=set)
    replicated_cost: float = 0.0

    @property
    def rows(self) -> Shape:
        """The shape of the kept axes."""
        if self.reduced is None:
            return self.space
        return tuple(n for a, n in enumerate(self.space) if a not in self.reduced)

    def reductions(self) -> list[Node]:
        return [n for n in self.nodes if cost.is_big_reduction(n)]


def partition(graph: Graph, apart: Collection[Var] = ()) -> list[Group | Node]:
    """The steps of a graph; values in `apart` get memory and a kernel of their own.

    A reshape of something in memory costs nothing: such nodes are steps of their own (views)."""
    return Partition(graph, apart).run()


def is_fusable(node: Node) -> bool:
    return node.primitive.fusable and not isinstance(node.primitive, DotGeneral)


def guards_of(node: Node) -> int:
    """Do its elements come from one operand or another, depending on where they are?

    Twice as much where that changes from lane to lane, as in interleaving."""
    if isinstance(node.primitive, Pad):
        return 2 if any(interior for _, _, interior in node.params["padding_config"]) else 1
    if not isinstance(node.primitive, Concatenate):
        return 0
    axis, shape = node.params["dimension"], node.outputs[0].aval.shape
    runs = [a.aval.shape[axis] * prod(shape[axis + 1 :]) for a in node.inputs]
    return 2 if max(runs) < SHORT_RUN else 1


def nodes_of(step: Group | Node) -> Sequence[Node]:
    return step.nodes if isinstance(step, Group) else (step,)


class Partition:
    def __init__(self, graph: Graph, apart: Collection[Var]):
        self.graph = graph
        self.apart = apart
        self.position = {node: i for i, node in enumerate(graph.nodes)}
        self.producer = {v: node for node in graph.nodes for v in node.outputs}
        self.users: dict[Var, list[Node]] = {}
        for node in graph.nodes:
            for a in node.inputs:
                if type(a) is Var:
                    seen = self.users.setdefault(a, [])
                    if not seen or seen[-1] is not node:
                        seen.append(node)
        self.results = {a for a in graph.outputs if type(a) is Var}
        # effects happen in the order of the graph: each waits for the one before
        effects = [n for n in graph.nodes if not is_fusable(n) and node_has_effect(n)]
        self.effect_before = dict(zip(effects[1:], effects, strict=False))
        self.effect_after = dict(itertools.pairwise(effects))
        # the group(s) a node was put into; absent for nodes that run alone
        self.homes: dict[Node, list[Group]] = {}
        self.groups: dict[Group, None] = {}  # an ordered set
        # nodes before this place belong to no group yet
        self.placed_from = len(graph.nodes)
        # once all are placed: the last place in the graph that a step waits for
        self.latest: dict[Group | Node, int] = {}

    def run(self) -> list[Group | Node]:
        for node in reversed(self.graph.nodes):
            if is_fusable(node):
                self.placed_from = self.position[node]
                self.place(node)
        for group in self.groups:
            group.nodes.sort(key=self.position.__getitem__)
            group.outputs.sort(key=lambda v: self.position[self.producer[v]])
        self.placed_from = 0
        self.find_latest()
        self.merge_siblings()
        return self.order()

    # ---- one node

    def place(self, node: Node) -> None:
        """Joins the node to its consumers' groups, or makes it a root."""
        out = node.outputs[0]
        users = self.users.get(out, [])
        alone = [u for u in users if u not in self.homes]
        groups = list(dict.fromkeys(g for u in users for g in self.homes.get(u, [])))
        stored = out in self.results or bool(alone)
        if stored and isinstance(node.primitive, Reshape) and type(node.inputs[0]) is Var:
            return  # a view of its operand, which gets memory because this node reads it
        if not groups or out in self.apart:
            self.root(node)
            return
        if not stored and len(groups) == 1:
            reason = self.join(groups[0], node, users)
            self.decide(node, groups[0], reason)
            if reason not in FUSED:
                self.root(node)
            return
        price = 0.0 if cost.is_structural(node) else cost.element_cost(node)
        repeated = max(g.repeated for g in groups) + price
        if not stored and self.is_free(node) and repeated <= cost.MOST_REPEATED:
            reasons = [self.join(g, node, users) for g in groups]
            if all(r in FUSED for r in reasons):
                self.decide(node, groups[0], Reason.RECOMPUTED)
                for g in groups:
                    g.repeated += price
                return
            for g, r in zip(groups, reasons, strict=True):
                if r in FUSED:
                    self.leave(g, node)
        # Some other step needs it too.  If the groups can be one, it stays in a register; else it
        # is computed in one group, which stores it.
        groups = self.united(groups)
        if not stored and len(groups) == 1:
            reason = self.join(groups[0], node, users)
            if reason in FUSED:
                self.decide(node, groups[0], reason)
                return
        for g in groups:
            if self.can_store(g, node, alone, groups):
                g.outputs.append(out)
                reason = self.join(g, node, users)
                self.decide(node, g, reason)
                if reason in FUSED:
                    return
                g.outputs.pop()
        if not stored:
            self.decide(node, groups[0], Reason.SEVERAL_CONSUMERS)
        self.root(node)

    def root(self, node: Node) -> None:
        """A new group whose result is stored."""
        out = node.outputs[0]
        if cost.is_big_reduction(node):
            space = node.inputs[0].aval.shape
            group = Group(space, tuple(node.primitive.axes(node.params)))
            group.split = self.few_rows(node)
        else:
            group = Group(out.aval.shape)
        group.outputs.append(out)
        self.groups[group] = None
        self.enter(group, node)

    def enter(self, group: Group, node: Node) -> None:
        group.nodes.append(node)
        group.levels[node] = self.levels(group, node)
        group.ways[node] = self.ways(group, node)
        group.guards[node] = self.guards(group, node)
        # a row's value counts per row, not per element
        share = 1.0
        if group.reduced is not None and not cost.is_big_reduction(node):
            share = min(1.0, node.outputs[0].aval.size / max(1, prod(group.space)))
        group.cost += share * (1.0 if cost.is_big_reduction(node) else cost.element_cost(node))
        self.homes.setdefault(node, []).append(group)

    def levels(self, group: Group, node: Node) -> int:
        below = max((group.levels.get(u, 0) for u in self.users.get(node.outputs[0], [])), default=0)
        return below + cost.is_big_reduction(node)

    def guards(self, group: Group, node: Node) -> int:
        users = [u for u in self.users.get(node.outputs[0], []) if u in group.guards]
        return max((group.guards[u] + guards_of(u) for u in users), default=0)

    def leave(self, group: Group, node: Node) -> None:
        group.nodes.remove(node)
        del group.levels[node], group.ways[node], group.guards[node]
        if node in group.replicated:
            group.replicated.remove(node)
            group.replicated_cost -= cost.element_cost(node)
        group.cost -= cost.element_cost(node)
        self.homes[node].remove(group)
        if not self.homes[node]:
            del self.homes[node]

    def ways(self, group: Group, node: Node) -> frozenset[Way]:
        """Where the value is needed: x[1:] + x[:-1] needs x at two places for each element."""
        out = node.outputs[0]
        found: set[Way] = {()} if out in group.outputs else set()
        for user in self.users.get(out, []):
            below = group.ways.get(user)
            if below is None:
                continue
            # (what broadcasts repeat is a matter of is_replicated, and rows are computed once)
            p = user.primitive
            if p.pointwise or isinstance(p, BroadcastInDim | Reshape | Reduction):
                found |= below
                continue
            for k, a in enumerate(user.inputs):
                if a is out and len(found) <= MOST_WAYS:
                    found.update(((user, k), *way) for way in below)
        return frozenset(itertools.islice(found, MOST_WAYS + 1))

    def is_scattered(self, group: Group, node: Node) -> bool:
        """Would it be computed at more places for each element than is worth it?

        Each level of a chain like y = x[1::2] + x[::2] doubles the places."""
        count = len(self.ways(group, node))
        if count <= 1 or cost.is_big_reduction(node):
            return False
        if cost.is_structural(node):
            return count > MOST_WAYS
        return cost.element_cost(node) > cost.CHEAP or count > CHEAP_WAYS

    def is_free(self, node: Node) -> bool:
        """Worth recomputing in every consumer."""
        return cost.is_structural(node) or (
            not isinstance(node.primitive, Reduction)
            and not node.primitive.rereads
            and cost.element_cost(node) <= cost.CHEAP
        )

    def decide(self, node: Node, group: Group, reason: Reason) -> None:
        observe.decision("fuse" if reason in FUSED else "do not fuse", reason, (node, group))

    # ---- legality

    def join(self, group: Group, node: Node, users: list[Node]) -> Reason:
        """Puts the node into the group if it can be fused there; the reason either way."""
        users = [u for u in users if group in self.homes.get(u, [])]
        if group.cost + cost.element_cost(node) > cost.KERNEL_COST and not cost.is_big_reduction(node):
            return Reason.TOO_LARGE
        if len(group.nodes) >= cost.MOST_NODES:
            return Reason.TOO_LARGE
        if isinstance(node.primitive, Concatenate) and any(
            isinstance(u.primitive, Concatenate) and len(u.inputs) + len(node.inputs) > MOST_PARTS
            for u in users
        ):
            return Reason.TOO_LARGE
        if self.reach_rereading(group, users) and not self.passes_rereading(node):
            return Reason.REREAD
        if self.is_scattered(group, node):
            return Reason.REPLICATED
        inner = guards_of(node) if cost.is_structural(node) else 1
        if inner and self.guards(group, node) + inner > MOST_GUARDS:
            return Reason.GUARDED
        if isinstance(node.primitive, Transpose) and not self.in_memory_order(group, node):
            return Reason.ACROSS_MEMORY
        if cost.is_big_reduction(node):
            reason = self.join_reduction(group, node)
        elif node.primitive.rereads:
            # A window or contraction is computed where its value is used, once per element.
            same = all(self.is_identity(u) for u in users) and group.reduced is None
            reason = Reason.SAME_DOMAIN if same else Reason.OTHER_DOMAIN
        else:
            reason = self.join_plain(group, node, users)
        if reason in FUSED:
            self.enter(group, node)
        return reason

    def in_memory_order(self, group: Group, node: Node) -> bool:
        """Can a group with reductions read through this transposition along memory?

        x.T.sum(1) can, as its loops take any order of axes; (x + x.T).sum(1) and softmax(x.T)
        cannot: whichever order they take, one array is read or written across memory, an element
        of a cache line at a time.  Transposing it first goes through tiles."""
        permutation = node.params["permutation"]
        shape = node.inputs[0].aval.shape
        moved = [p for p in permutation if shape[p] != 1]
        if group.reduced is None or moved[-1:] == [max(moved, default=0)]:
            return True
        if node.outputs[0].aval.size < TRANSPOSED:
            return True
        if any(v.aval.shape == group.space for v in group.outputs):
            return False
        stack = [a for r in group.reductions() for a in r.inputs]
        seen = set(stack)
        while stack:
            atom = stack.pop()
            if type(atom) is not Var or 2 * atom.aval.size < prod(group.space):
                continue
            source = self.producer.get(atom)
            if source is None:
                return False
            if source.primitive.pointwise:
                stack += [a for a in source.inputs if a not in seen]
                seen.update(source.inputs)
            elif isinstance(source.primitive, Transpose):
                if source.params["permutation"] != permutation:
                    return False
            elif not isinstance(source.primitive, BroadcastInDim):
                return False
        return True

    def join_plain(self, group: Group, node: Node, users: list[Node]) -> Reason:
        if cost.is_structural(node):
            return Reason.INDEX_ARITHMETIC
        if self.is_replicated(group, node, users):
            price = cost.element_cost(node)
            if price > cost.CHEAP or price + group.replicated_cost > cost.MOST_REPEATED:
                return Reason.REPLICATED
            group.replicated.add(node)
            group.replicated_cost += price
        if any(cost.is_big_reduction(u) for u in users):
            return Reason.PRODUCER_OF_REDUCTION
        return Reason.SAME_DOMAIN

    def is_replicated(self, group: Group, node: Node, users: list[Node]) -> bool:
        """Would the group compute a value that these users need again for many elements?"""
        stack, seen = list(users), set(users)
        while stack:
            user = stack.pop()
            if user in group.replicated:
                return True
            if not cost.is_structural(user):
                continue
            out = user.outputs[0]
            larger = type(user.inputs[0]) is Var and out.aval.size > user.inputs[0].aval.size
            if larger and "broadcast_dimensions" in user.params:
                if not self.repeats_along_rows(group, node, user):
                    return True
            for following in self.users.get(out, []):
                if following not in seen and group in self.homes.get(following, []):
                    seen.add(following)
                    stack.append(following)
        return False

    def repeats_along_rows(self, group: Group, node: Node, broadcast: Node) -> bool:
        """Is the replicated value one per row, so that the loops compute it once per row?

        True when the broadcast adds trailing axes only, or only such as the group reduces (or
        will, because the value comes from a reduction of its space): these are the inner loops.
        A value along reduced axes is spread over the rows: tanh(x) in sum_k tanh(x)[k] w[k, j].
        """
        shape = broadcast.inputs[0].aval.shape
        out_shape = broadcast.outputs[0].aval.shape
        dims = broadcast.params["broadcast_dimensions"]
        carried = {d for d, n in zip(dims, shape, strict=True) if n > 1}
        added = {d for d, n in enumerate(out_shape) if n > 1 and d not in carried}
        if out_shape == group.space:
            reduced = self.axes_behind(group, node) if group.reduced is None else group.reduced
            if added <= {*reduced}:
                return True
            if group.reduced is not None and carried & {*reduced}:
                return False
        return not carried or max(carried) < min(added)

    def axes_behind(self, group: Group, node: Node) -> tuple[int, ...]:
        """Axes of the first reduction behind a value that can become a row chain of the group."""
        stack, seen = [node], {node}
        while stack:
            for a in stack.pop().inputs:
                source = self.producer.get(a) if type(a) is Var else None
                if source is None or source in seen:
                    continue
                seen.add(source)
                if not cost.is_big_reduction(source):
                    stack.append(source)
                    continue
                axes = tuple(source.primitive.axes(source.params))
                space = source.inputs[0].aval.shape
                if space == group.space and not self.few_rows(source):
                    if self.row_chain(group, space, axes) in FUSED:
                        return axes
        return ()

    def reach_rereading(self, group: Group, users: list[Node]) -> bool:
        """Is one of the users, or one that only moves its value on, a window or a contraction?"""
        for u in users:
            if u.primitive.rereads:
                return True
            if cost.is_structural(u):
                then = [v for v in self.users.get(u.outputs[0], []) if group in self.homes.get(v, [])]
                if self.reach_rereading(group, then):
                    return True
        return False

    def passes_rereading(self, node: Node) -> bool:
        if isinstance(node.primitive, Concatenate | Pad):
            return False  # a guard on every read of a window costs more than writing it once
        return cost.is_structural(node) and not node.primitive.rereads and all(
            type(a) is not Var or self.is_memory(a) or cost.is_structural(self.producer[a])
            for a in node.inputs
        )

    def is_memory(self, var: Var) -> bool:
        return var not in self.producer

    def is_identity(self, node: Node) -> bool:
        """Does the node read its operands at its own index?"""
        return node.primitive.pointwise

    def few_rows(self, node: Node) -> bool:
        return (
            node.outputs[0].aval.size < cost.FEW_ROWS
            and node.inputs[0].aval.size >= cost.SPLIT_ELEMENTS
        )

    def join_reduction(self, group: Group, node: Node) -> Reason:
        space: Shape = node.inputs[0].aval.shape
        axes = tuple(node.primitive.axes(node.params))
        out: Shape = node.outputs[0].aval.shape
        split = self.few_rows(node)
        if self.levels(group, node) > cost.MOST_LEVELS:
            return Reason.TOO_LARGE
        if group.reduced is not None:
            if group.space != space or group.reduced != axes:
                return Reason.OTHER_AXES
            if group.split:
                # two stages: no reduction may wait for another one
                if self.feeds_reduction(group, node):
                    return Reason.FEW_ROWS
                return Reason.EPILOGUE_OF_REDUCTION
            if not self.stays_in_row(group, node):
                return Reason.OTHER_DOMAIN
            return self.row_chain(group, space, axes)
        if group.space == space and out != space:  # its result is broadcast back over the rows
            if split:
                return Reason.FEW_ROWS
            if not self.stays_in_row(group, node):
                return Reason.OTHER_DOMAIN
            reason = self.row_chain(group, space, axes)
            if reason in FUSED:
                group.reduced = axes
            return reason
        if _squeeze(group.space) == _squeeze(out) and all(
            n.outputs[0].aval.size <= prod(out) for n in group.nodes
        ):
            if any(n.primitive.rereads for n in group.nodes):
                return Reason.OTHER_DOMAIN
            group.space, group.reduced, group.split = space, axes, split
            return Reason.EPILOGUE_OF_REDUCTION
        return Reason.OTHER_DOMAIN

    def stays_in_row(self, group: Group, node: Node) -> bool:
        """Is the reduction's result used in the row that it is the result of?

        False where it is spread along another axis, as the result of a matrix times a vector is
        by the next product.  A use that is none of the moves looked at here counts as True, and
        shows when the loops are built."""
        axes = node.primitive.axes(node.params)
        kept = tuple(a for a in range(len(group.space)) if a not in axes)
        # a value with the axis of the space that each of its axes runs along (None: of length 1)
        stack: list[tuple[Var, tuple[int | None, ...]]] = [(node.outputs[0], kept)]
        seen: set[Var] = set()
        while stack:
            value, places = stack.pop()
            if value in seen:
                continue
            seen.add(value)
            if value.aval.shape == group.space and any(
                p is not None and p != a and group.space[a] != 1 for a, p in enumerate(places)
            ):
                return False
            for user in self.users.get(value, []):
                moved = places_after(user, places) if group in self.homes.get(user, []) else None
                if moved is not None:
                    stack.append((user.outputs[0], moved))
        return True

    def row_chain(self, group: Group, space: Shape, axes: tuple[int, ...]) -> Reason:
        itemsize = max(v.aval.itemsize for v in group.outputs)
        last_kept = len(space) - 1 not in axes
        row = prod(space[a] for a in axes) * itemsize * (16 if last_kept else 1)
        if row > cost.ROW_BYTES:
            return Reason.ROWS_TOO_LONG
        return Reason.ROW_CHAIN

    def feeds_reduction(self, group: Group, node: Node) -> bool:
        """Does some reduction of the group depend on the node?"""
        reached: set[Node] = {node}
        for other in sorted(group.nodes, key=self.position.__getitem__):
            if any(type(a) is Var and self.producer.get(a) in reached for a in other.inputs):
                if cost.is_big_reduction(other):
                    return True
                reached.add(other)
        return False

    def can_store(
        self, group: Group, node: Node, alone: list[Node], groups: list[Group]
    ) -> bool:
        """Can the group store this value for the others without needing their results?"""
        shape = node.outputs[0].aval.shape
        if cost.is_big_reduction(node):
            fits = True  # join_reduction decides
        elif group.reduced is None:
            fits = shape == group.space
        else:
            fits = shape == group.space and not group.split
        if not fits:
            return False
        targets: list[Group | Node] = [g for g in groups if g is not group]
        targets += alone
        return not self.depends(group, targets)

    def depends(self, group: Group, targets: list[Group | Node]) -> bool:
        """Does the group need (through any steps) the result of one of the targets?

        The walk leaves out steps that lie before all of the targets with all that they wait for:
        it stays near, however long the program."""
        wanted = set(targets)
        first = min((self.position[n] for t in targets for n in nodes_of(t)), default=0)
        seen: set[Group | Node] = set()
        stack: list[Group | Node] = [group]
        while stack:
            for source in self.sources(stack.pop()):
                if source in wanted:
                    return True
                if source not in seen and self.latest.get(source, first) >= first:
                    seen.add(source)
                    stack.append(source)
        return False

    def find_latest(self) -> None:
        """Fills `latest`."""
        for step in self.order():
            own = max(self.position[n] for n in nodes_of(step))
            self.latest[step] = max([own, *(self.latest[x] for x in self.sources(step))])

    def raise_latest(self, group: Group, place: int) -> None:
        """Notes that the group, and all that needs it, waits for what is at `place`."""
        stack: list[Group | Node] = self.readers(group)
        self.latest[group] = place
        while stack:
            step = stack.pop()
            if self.latest[step] < place:
                self.latest[step] = place
                stack += self.readers(step)

    def readers(self, step: Group | Node) -> list[Group | Node]:
        """The steps that need this one."""
        found: list[Group | Node] = [
            home
            for v in step.outputs
            for user in self.users.get(v, [])
            for home in self.homes.get(user, [user])
        ]
        if step in self.effect_after:
            found.append(self.effect_after[step])
        return found

    def sources(self, step: Group | Node) -> list[Group | Node]:
        """The steps whose stored results this one reads, as far as nodes were placed yet."""
        nodes = nodes_of(step)
        found: list[Group | Node] = []
        if step in self.effect_before:
            found.append(self.effect_before[step])
        for node in nodes:
            for a in node.inputs:
                source = self.producer.get(a) if type(a) is Var else None
                if source is None or self.position[source] < self.placed_from:
                    continue
                homes = self.homes.get(source)
                if homes is None:
                    found.append(source)  # it runs alone
                elif step not in homes:
                    found += [g for g in homes if a in g.outputs]
        return found

    # ---- groups

    def merge_siblings(self) -> None:
        """Joins groups over the same space that read the same arrays and do not need each other.

        before: m = max(x); s = sum(x)   two loops over x      after: one loop
        """
        by_space: dict[object, list[Group]] = {}
        for group in self.groups:
            key = (group.space, group.reduced, group.split)
            by_space.setdefault(key, []).append(group)
        for siblings in by_space.values():
            for i, first in enumerate(siblings):
                if first not in self.groups:
                    continue
                reads = memory_inputs(first)
                tiny = first.reduced is None and prod(first.space) <= cost.TINY
                for second in siblings[i + 1 : i + cost.MOST_TINY]:
                    if second not in self.groups:
                        continue
                    few = len(first.outputs) + len(second.outputs) <= cost.MOST_TINY
                    if not (tiny and few) and not reads & memory_inputs(second):
                        continue
                    if first.cost + second.cost > cost.KERNEL_COST:
                        continue
                    if self.depends(first, [second]) or self.depends(second, [first]):
                        continue
                    self.merge(first, second)

    def united(self, groups: list[Group]) -> list[Group]:
        """The groups, elementwise ones over the same space that use a common value made one.

        before: d -> call, d -> put   d stored and loaded      after: one loop with two results
        """
        kept: list[Group] = []
        for group in groups:
            for first in kept:
                if (
                    first.reduced is None
                    and group.reduced is None
                    and first.space == group.space
                    and first.cost + group.cost <= cost.KERNEL_COST
                    and not self.depends(first, [group])
                    and not self.depends(group, [first])
                ):
                    self.merge(first, group)
                    break
            else:
                kept.append(group)
        return kept

    def merge(self, first: Group, second: Group) -> None:
        for node in second.nodes:
            self.homes[node].remove(second)
            if first not in self.homes[node]:
                self.homes[node].append(first)
                first.nodes.append(node)
        first.outputs += [v for v in second.outputs if v not in first.outputs]
        first.cost += second.cost
        first.repeated += second.repeated
        first.levels.update(second.levels)
        for node, ways in second.ways.items():
            both = first.ways.get(node, frozenset()) | ways
            first.ways[node] = frozenset(itertools.islice(both, MOST_WAYS + 1))
        for node, count in second.guards.items():
            first.guards[node] = max(count, first.guards.get(node, 0))
        first.replicated |= second.replicated
        first.replicated_cost += second.replicated_cost
        if self.latest:
            self.raise_latest(first, max(self.latest[first], self.latest[second]))
        first.nodes.sort(key=self.position.__getitem__)
        first.outputs.sort(key=lambda v: self.position[self.producer[v]])
        del self.groups[second]
        self.decide(second.nodes[-1], first, Reason.SIBLING)

    def order(self) -> list[Group | Node]:
        """All steps, each after what it reads."""
        steps: list[Group | Node] = [
            n for n in self.graph.nodes if n not in self.homes
        ]
        steps += self.groups

        def last(step: Group | Node) -> int:
            return self.position[step.nodes[-1] if isinstance(step, Group) else step]

        steps.sort(key=last)
        ordered: list[Group | Node] = []
        done: set[int] = set()
        for step in steps:
            stack: list[tuple[Group | Node, bool]] = [(step, False)]
            while stack:
                current, ready = stack.pop()
                if id(current) in done:
                    continue
                if ready:
                    done.add(id(current))
                    ordered.append(current)
                    continue
                stack.append((current, True))
                stack += [(s, False) for s in self.sources(current) if id(s) not in done]
        return ordered


def places_after(node: Node, places: tuple[int | None, ...]) -> tuple[int | None, ...] | None:
    """Where the axes of an operand, at `places`, are in the node's result; None if not clear."""
    out = node.outputs[0].aval.shape
    if node.primitive.pointwise:
        return places if len(places) == len(out) else None
    if isinstance(node.primitive, BroadcastInDim):
        spread: list[int | None] = [None] * len(out)
        for place, d in zip(places, node.params["broadcast_dimensions"], strict=True):
            spread[d] = place
        return tuple(spread)
    if isinstance(node.primitive, Transpose):
        return tuple(places[d] for d in node.params["permutation"])
    if isinstance(node.primitive, Reshape):
        shape = node.inputs[0].aval.shape
        if _squeeze(shape) != _squeeze(out):
            return None
        long = iter([p for p, n in zip(places, shape, strict=True) if n != 1])
        return tuple(None if n == 1 else next(long) for n in out)
    return None


def _squeeze(shape: Shape) -> Shape:
    return tuple(n for n in shape if n != 1)


def memory_inputs(group: Group) -> set[Var]:
    made = {v for n in group.nodes for v in n.outputs}
    return {a for n in group.nodes for a in n.inputs if type(a) is Var and a not in made}
