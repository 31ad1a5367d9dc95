"""pmap's element graph, cut where members of the mapped axis communicate.

    local stage   operations that each device runs on its share, apart from the others
    whole stage   one program over the whole axis: collectives, operations that hold some (loops,
                  branches), and values that all members share, computed once

Stages are numbered: odd ones are local, even ones whole.  An operation is in the first stage its
operands allow.  Three things move it from there:

- It is cheap and nobody needs it yet: later, where less is stored between stages (`_sink`).
- Its local stage is so light that running it apart costs more than it gives: the stage becomes part
  of the whole ones around it (LEAST_SHARE_NS).  So a light function is one whole stage.
- It is cheap and all members share it: computed again wherever it is needed.

Start reading at `cut`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jato.base.caches import weakly_cached
from jato.control.call import GraphCall
from jato.core.effects import node_has_effect
from jato.core.graph import Atom, Graph, Node, Var
from jato.core.graph_dce import eliminate_dead_code
from jato.core.primitive import AxisData
from jato.core.staging import trace_to_graph
from jato.core.trace import set_trace
from jato.jit.pipeline import simplified
from jato.ops.shapes import BARRIER
from jato.parallel.collective_primitives import AXIS_INDEX
from jato.parallel.stage_cost import is_cheap, node_ns, stored_bytes
from jato.transforms.batching import batch_graph

# A local stage whose shares take less than this on average (on one core) joins the whole stages around
# it: waking a device and meeting the others costs 10 to 20 us for each, and one program fuses across
# it.  Measured: with 75 us on each of 4 devices both forms take the same time, with 20 us the stages
# take twice as long.
LEAST_SHARE_NS = 75_000.0

ARGUMENTS = -1  # the stage in which arguments are there


@dataclass(frozen=True, eq=False)
class Write:
    """A value that leaves a stage: result number `result`, or (None) for later stages.

    mapped    the mapped axis is first, or where `axis` says; else one value for all members
    axis      of a result, as out_axes has it
    """

    atom: Atom
    mapped: bool
    axis: int | None = 0
    result: int | None = None


@dataclass(frozen=True, eq=False)
class Stage:
    """nodes in order; `reads` are variables made elsewhere (constants of the graph left out)."""

    whole: bool
    nodes: list[Node]
    reads: list[Var]
    writes: list[Write]


@dataclass(frozen=True, eq=False)
class Cut:
    """graph     what was cut: calls inlined, `member` among its inputs
    member       the number of each member (axis_index): the last input
    mapped       the variables that differ between members
    stages       in the order in which they run
    """

    graph: Graph
    member: Var
    mapped: frozenset[Var]
    stages: list[Stage]


def cut(
    graph: Graph,
    axis: AxisData,
    devices: int,
    dims: Sequence[int | None],
    out_axes: Sequence[Any],
) -> Cut:
    """The stages of an element graph whose inputs are mapped at `dims`, for so many devices."""
    # what is computed twice might be stored twice between stages
    flat = simplified(with_collectives_on_top(graph, axis.name))
    flat, member = without_axis_index(flat, axis.name)
    return _Cutter(flat, member, axis, devices, dims, out_axes).cut()


# ---- which operations communicate


def communicates(node: Node, name: Any) -> bool:
    """Does it need values of other members?  Asking for one's own number is no communication."""
    graphs = node.primitive.subgraphs(node.params)
    if graphs:
        return any(graph_communicates(g, name) for g in graphs)
    return name in node.primitive.axis_names(node.params) and node.primitive is not AXIS_INDEX


@weakly_cached()
def graph_communicates(graph: Graph, name: Any) -> bool:
    return any(communicates(node, name) for node in graph.nodes)


@weakly_cached()
def asks_for_member(graph: Graph, name: Any) -> bool:
    """Is there an axis_index in it, at any depth?"""
    return any(
        (node.primitive is AXIS_INDEX and node.params["axis_name"] == name)
        or any(asks_for_member(g, name) for g in node.primitive.subgraphs(node.params))
        for node in graph.nodes
    )


def with_collectives_on_top(graph: Graph, name: Any) -> Graph:
    """The graph with calls, and composed operations that communicate, spliced in; no dead code.

    y = call[graph=g] x          ->   the nodes of g with x for its input
    y = custom_jvp[function=g] x ->   the same, if g communicates
    """
    nodes: list[Node] = []
    constvars, consts = list(graph.constvars), list(graph.consts)

    def splice(part: Graph, names: dict[Var, Atom]) -> list[Atom]:
        def read(atom: Atom) -> Atom:
            return names.get(atom, atom) if type(atom) is Var else atom

        for node in part.nodes:
            atoms = [read(a) for a in node.inputs]
            primitive = node.primitive
            called = isinstance(primitive, GraphCall)
            if called or (primitive.expand is not None and communicates(node, name)):
                body = expansion(node, atoms)
                constvars.extend(body.constvars)
                consts.extend(body.consts)
                outs = splice(body, dict(zip(body.inputs, atoms, strict=True)))
                names.update(zip(node.outputs, outs, strict=True))
            else:
                made = [Var(v.aval) for v in node.outputs]
                nodes.append(Node(primitive, atoms, made, node.params, node.frame))
                names.update(zip(node.outputs, made, strict=True))
        return [read(a) for a in part.outputs]

    def expansion(node: Node, atoms: list[Atom]) -> Graph:
        if isinstance(node.primitive, GraphCall):
            return node.params["graph"]
        held = node.primitive.inlined(node.params)
        if held is not None:
            return held

        def body(*operands: Any) -> list[Any]:
            out = node.primitive.expand(*operands, **node.params)
            return list(out) if node.primitive.multiple_results else [out]

        with set_trace(None):
            return trace_to_graph(body, [a.aval for a in atoms], node.primitive.name)

    outputs = splice(graph, {})
    flat = Graph(graph.inputs, nodes, outputs, constvars, consts, graph.name)
    return eliminate_dead_code(flat)[0]


def without_axis_index(graph: Graph, name: Any) -> tuple[Graph, Var]:
    """(the graph with its own axis_index operations as a last, mapped input; that input)."""
    member = Var(AXIS_INDEX.type_rule(axis_name=name, axis_size=0))
    names: dict[Var, Var] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.primitive is AXIS_INDEX and node.params["axis_name"] == name:
            names[node.outputs[0]] = member
            continue
        inputs = [names.get(a, a) if type(a) is Var else a for a in node.inputs]
        nodes.append(Node(node.primitive, inputs, node.outputs, node.params, node.frame))
    outputs = [names.get(a, a) if type(a) is Var else a for a in graph.outputs]
    inputs = [*graph.inputs, member]
    return Graph(inputs, nodes, outputs, graph.constvars, graph.consts, graph.name), member


# ---- where operations go


@dataclass(eq=False)
class _Cutter:
    """
    mapped    variables that differ between members
    whole     nodes that must be in a whole stage
    shared    cheap nodes that all members share, by what they make: computed wherever needed
    joined    nodes of light local stages
    """

    graph: Graph
    member: Var
    axis: AxisData
    devices: int
    dims: Sequence[int | None]
    out_axes: Sequence[Any]
    mapped: set[Var] = field(default_factory=set)
    whole: set[Node] = field(default_factory=set)
    shared: dict[Var, Node] = field(default_factory=dict)
    joined: set[Node] = field(default_factory=set)

    def cut(self) -> Cut:
        graph = self.graph
        dims = [*self.dims, 0]
        self.mapped.update(v for v, d in zip(graph.inputs, dims, strict=True) if d is not None)
        if not self.meets():
            # Nothing in it needs the others: values that all share are computed by each device.
            level = dict.fromkeys(graph.nodes, 1)
            stages = self.stages(dict.fromkeys(level, 0) if self.light(level) else level)
        else:
            self.classify()
            while True:
                level = self.first_stages()
                self._sink(level)
                light = self.light(level)
                if not light:
                    break
                self.joined |= light
            stages = self.stages(level)
        return Cut(graph, self.member, frozenset(self.mapped), stages)

    def meets(self) -> bool:
        return any(axis != 0 for axis in self.out_axes) or graph_communicates(self.graph, self.axis.name)

    def classify(self) -> None:
        free: set[Var] = {*self.graph.inputs, *self.graph.constvars} - self.mapped
        for node in self.graph.nodes:
            operands = [a for a in node.inputs if type(a) is Var]
            if communicates(node, self.axis.name):
                self.whole.add(node)
                self.mapped.update(self.mapped_outputs(node))
            elif any(a in self.mapped for a in operands):
                self.mapped.update(node.outputs)
            elif is_cheap(node) and all(a in free for a in operands):
                self.shared.update(dict.fromkeys(node.outputs, node))
                free.update(node.outputs)
            else:
                self.whole.add(node)

    def mapped_outputs(self, node: Node) -> list[Var]:
        """Which results of a communicating node differ between members."""
        operands = list(dict.fromkeys(a for a in node.inputs if type(a) is Var))
        alone = Graph(operands, [node], node.outputs, name=node.primitive.name)
        dims = [0 if a in self.mapped else None for a in operands]
        out_dims = batch_graph(alone, self.axis, dims).out_dims
        return [v for v, d in zip(node.outputs, out_dims, strict=True) if d is not None]

    def first_stages(self) -> dict[Node, int]:
        """The first stage that each node can be in; effects keep their order."""
        level: dict[Node, int] = {}
        made = dict.fromkeys([*self.graph.inputs, *self.graph.constvars, *self.shared], ARGUMENTS)
        last_effect = ARGUMENTS
        for node in self.graph.nodes:
            if self.is_shared(node):
                continue
            before = max((made[a] for a in node.inputs if type(a) is Var), default=ARGUMENTS)
            if node_has_effect(node):
                before = max(before, last_effect)
            level[node] = stage = (
                _whole_from(before) if node in self.whole or node in self.joined else _local_from(before)
            )
            if node_has_effect(node):
                last_effect = stage
            made.update(dict.fromkeys(node.outputs, stage))
        return level

    def is_shared(self, node: Node) -> bool:
        return node.outputs != [] and self.shared.get(node.outputs[0]) is node

    def result_stages(self, level: dict[Node, int]) -> list[int]:
        """The stage that makes each result."""
        made = {v: stage for node, stage in level.items() for v in node.outputs}
        locals_ = [stage for stage in level.values() if stage % 2]
        found = []
        for atom, axis in zip(self.graph.outputs, self.out_axes, strict=True):
            stage = made.get(atom, ARGUMENTS) if type(atom) is Var else ARGUMENTS
            if axis != 0:
                stage = _whole_from(stage)
            elif stage == ARGUMENTS:
                stage = min(locals_, default=0)
            found.append(stage)
        return found

    def _sink(self, level: dict[Node, int]) -> None:
        """Cheap nodes that only later stages use go there, if no more is stored between stages.

        Reductions and the like stay: their results are smaller than what they read.  What
        checkpoint computes again goes in any case: it must not be stored."""
        last: dict[Var, int] = {}  # the last stage that uses a variable, among nodes seen so far
        first: dict[Var, int] = {}
        for atom, stage in zip(self.graph.outputs, self.result_stages(level), strict=True):
            if type(atom) is Var:
                _note_use(first, last, atom, stage)
        made = {v: node for node in level for v in node.outputs}
        again = _recomputed(self.graph)
        for node in reversed(list(level)):
            stage = level[node]
            movable = stage % 2 == 1 and (is_cheap(node) or node in again)
            if movable and all(v in first for v in node.outputs):
                target = min(first[v] for v in node.outputs)
                if target > stage and node in again:
                    level[node] = stage = target - (target % 2 == 0 and not is_cheap(node))
                elif target > stage:
                    more = 0
                    for a in {a for a in node.inputs if type(a) is Var and a in made}:
                        origin = level[made[a]]
                        if origin % 2 and origin < target and last.get(a, origin) < target:
                            more += a.aval.nbytes
                    if more < stored_bytes(node) or (target % 2 and more == stored_bytes(node)):
                        level[node] = stage = target
            for a in node.inputs:
                if type(a) is Var:
                    _note_use(first, last, a, stage)

    def light(self, level: dict[Node, int]) -> set[Node]:
        """The nodes of local stages that are not worth one."""
        cost: dict[int, float] = {}
        for node, stage in level.items():
            if stage % 2:
                cost[stage] = cost.get(stage, 0.0) + node_ns(node) * self.axis.size
        return {
            node for node, stage in level.items()
            if stage % 2 and cost[stage] < LEAST_SHARE_NS * self.devices
        }  # fmt: skip

    # ---- the stages themselves

    def stages(self, level: dict[Node, int]) -> list[Stage]:
        results = self.result_stages(level)
        uses: dict[Var, int] = {}  # the last stage that uses a variable
        for node, stage in level.items():
            for a in node.inputs:
                if type(a) is Var:
                    uses[a] = max(uses.get(a, ARGUMENTS), stage)
        for atom, stage in zip(self.graph.outputs, results, strict=True):
            if type(atom) is Var:
                uses[atom] = max(uses.get(atom, ARGUMENTS), stage)
        return [
            self.stage(number, level, results, uses)
            for number in sorted({*level.values(), *results})
        ]

    def stage(
        self, number: int, level: dict[Node, int], results: list[int], uses: dict[Var, int]
    ) -> Stage:
        nodes = [node for node in self.graph.nodes if level.get(node) == number]
        own = {v for node in nodes for v in node.outputs}
        writes = []
        for j, (atom, axis) in enumerate(zip(self.graph.outputs, self.out_axes, strict=True)):
            if results[j] == number:
                alone = axis is None and not (type(atom) is Var and atom in self.mapped)
                writes.append(Write(atom, not alone, axis, j))
        in_place = {w.atom for w in writes if w.axis == 0 and type(w.atom) is Var and w.atom in self.mapped}
        writes += [
            Write(v, v in self.mapped)
            for node in nodes
            for v in node.outputs
            if uses.get(v, number) > number and v not in in_place
        ]
        wanted = [a for node in nodes for a in node.inputs] + [w.atom for w in writes]
        again = self.shared_for(wanted)
        own.update(v for node in again for v in node.outputs)
        nodes = again + nodes
        wanted += [a for node in again for a in node.inputs]
        constants = set(self.graph.constvars)
        reads = dict.fromkeys(
            a for a in wanted if type(a) is Var and a not in own and a not in constants
        )
        return Stage(number % 2 == 0, nodes, list(reads), writes)

    def shared_for(self, atoms: Sequence[Atom]) -> list[Node]:
        """The shared nodes behind these values, in order."""
        needed: set[Node] = set()
        open_ = list(atoms)
        while open_:
            node = self.shared.get(open_.pop())  # type: ignore[arg-type]
            if node is not None and node not in needed:
                needed.add(node)
                open_ += node.inputs
        return [node for node in self.graph.nodes if node in needed]


def _recomputed(graph: Graph) -> set[Node]:
    """Operations on values behind barriers (checkpoint), which have no effects."""
    behind: set[Var] = set()
    found = set()
    for node in graph.nodes:
        if node.primitive is BARRIER or any(a in behind for a in node.inputs):
            behind.update(node.outputs)
            if not node_has_effect(node):
                found.add(node)
    return found


def _whole_from(before: int) -> int:
    """The first whole stage in which a value of stage `before` is there."""
    return before + before % 2


def _local_from(before: int) -> int:
    """The first local one: a local stage goes on with its own values."""
    return max(1, before | 1)


def _note_use(first: dict[Var, int], last: dict[Var, int], var: Var, stage: int) -> None:
    first[var] = min(first.get(var, stage), stage)
    last[var] = max(last.get(var, stage), stage)
