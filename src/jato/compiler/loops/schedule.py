"""Schedules: from a fusion group to loop nests.

Takes   a group of partition.py.
Gives   one kernel (two for a split reduction) with the arrays it works on and its grid.
Runs    after fusion; generalize.py then takes the shapes out of the kernel.

    map     no reductions. The trailing axes that can be walked as one become the vector loop, the
            others the grid.  A transposed read gets blocks, so that each cache line is used whole.
    rows    reductions. The grid runs over the kept axes; per row come the reductions, level after
            level (a level needs the results of the one before), then the results.  The vector loop
            runs along the last axis, kept or reduced.
    split   few rows and many elements: the first kernel reduces chunks, the second their results.

A shape is only used to choose between these forms and to bound ranges; extents become run-time
parameters afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil, prod
from typing import Any

from jato import _native
from jato.base import dtypes
from jato.compiler.fusion import cost
from jato.compiler.fusion.partition import Group
from jato.compiler.loops.lower import Index, Lowering
from jato.compiler.loops.walk import expressions, loads, statements
from jato.core.graph import Node, Var
from jato.core.types import array_type
from jato.loopir.builder import Builder
from jato.loopir.complex import Complex
from jato.loopir.grammar import For, Kernel
from jato.loopir.index_math import Linear
from jato.ops.reduction_family import Reduction

# A lane axis shorter than this is flattened together with the axes before it.
SHORT_AXIS = 16
# Elements of a vector loop that one grid step gets at the most, when there are few outer steps.
CHUNK = 1 << 14
# Block of a transposed read: 4 cache lines of 4-byte elements from each row, in and out.
TILE_WIDTH = 64
TILE_HEIGHT = 64
# Bodies costing more than this are not run on several vectors at once.
HEAVY = 6.0
# Reductions across rows at least this wide and deep sweep along the rows, with the accumulators of
# at most BLOCK columns in local memory; narrower ones keep them in registers.
WIDE_ROW = 128
DEEP = 32
BLOCK = 2048
BLOCKS_PER_THREAD = 2
# A running sum is folded after this many additions per lane, so that rounding errors grow with
# the logarithm of the length (Higham, Accuracy and Stability of Numerical Algorithms, 4.2).
FOLD = 512


@dataclass(eq=False)
class LoopNest:
    """A kernel and what it runs on.

    arguments      arrays of the kernel's buffers, in the kernel's order (local ones left out)
    grid           iterations of the outermost loop; a thread takes multiples of `grain`
    step_ns        estimate for one of them on one core
    in_place       an output may share the memory of an input of its type
    row_inputs     matrices of which grid step i reads row i and nothing else
    """

    kernel: Kernel
    arguments: list[Var]
    outputs: list[Var]
    grid: int
    grain: int
    step_ns: float
    bytes: int
    in_place: bool = False
    row_inputs: frozenset[Var] = frozenset()


def schedule(group: Group, vector_bytes: int) -> list[LoopNest]:
    return Scheduler(group, vector_bytes).run()


class Scheduler:
    def __init__(self, group: Group, vector_bytes: int):
        self.group = group
        self.nodes = group.nodes
        self.width = vector_bytes // _widest(group)
        self.unit_ns = cost.UNIT_NS * 16 / self.width
        self.saved = values_to_save(group, self.levels())

    def run(self) -> list[LoopNest]:
        if self.group.reduced is None:
            return [self.map()]
        if self.group.split:
            return self.split()
        return [self.rows()]

    # ---- map

    def map(self) -> LoopNest:
        shape = self.group.space
        dims = [n for n in shape if n != 1]
        size = prod(shape)
        if not dims or self.is_pointwise():
            return self.map_flat(dims)
        if dims[-1] < SHORT_AXIS and size > dims[-1]:
            return self.map_flat(dims)
        for first in range(len(dims) - 1):
            nest = self.map_rows(dims[:first], dims[first:]) if first else self.map_flat(dims)
            if nest is not None and not _divides(nest.kernel):
                return nest
        nest = self.map_rows(dims[:-1], dims[-1:]) if len(dims) > 1 else self.map_flat(dims)
        crossing = self.crossing_axis(dims) if len(dims) > 1 else None
        return nest if crossing is None else self.map_tiled(dims, crossing)

    def crossing_axis(self, dims: list[int]) -> int | None:
        """The axis (of those longer than 1) along which a read is contiguous that is strided
        along the last one; None if there is no such read."""
        b = Builder()
        lowering = Lowering(b, self.nodes)
        variables = tuple(b.var("i", "i64", 0, n - 1) for n in dims)
        with b.block() as body:
            self.store_all(lowering, self.full_index(lowering, variables))
        for load in loads(body):
            terms = b.linear(load.args[0]).terms
            if terms.get((variables[-1],), 0) in (0, 1, -1, 2):
                continue
            for axis, variable in enumerate(variables[:-1]):
                if terms.get((variable,)) == 1 and dims[axis] >= 4:
                    return axis
        return None

    def is_pointwise(self) -> bool:
        """All operands have the shape of the results or are scalars: any order of axes will do."""
        space = self.group.space
        for node in self.nodes:
            if cost.is_structural(node) or isinstance(node.primitive, Reduction):
                return False
            if node.primitive.rereads or node.outputs[0].aval.shape != space:
                return False
            if any(a.aval.shape not in ((), space) for a in node.inputs):
                return False
        return True

    def map_flat(self, dims: list[int]) -> LoopNest:
        """One vector loop over all elements."""
        b = Builder()
        lowering = Lowering(b, self.nodes)
        size = prod(dims)
        v = b.var("i", "i64", 0, max(0, size - 1))
        lanes = self.lanes(size, self.unroll())
        with b.block() as body:
            self.store_all(lowering, self.full_index(lowering, lowering.unravel(v, tuple(dims))))
        b.append(For(v, b.grid_begin(), b.grid_end(), tuple(body), lanes))
        in_place = self.is_pointwise()
        return self.nest(lowering, "map", size, max(64, 4 * lanes), 1, in_place)

    def map_rows(self, outer: list[int], inner: list[int]) -> LoopNest:
        """Grid over the outer axes (and chunks of the inner loop), vector loop over the inner."""
        b = Builder()
        lowering = Lowering(b, self.nodes)
        rows, length = prod(outer), prod(inner)
        chunks = ceil(length / CHUNK) if rows < 32 and length > 2 * CHUNK else 1
        g = b.var("g", "i64", 0, max(0, rows * chunks - 1))
        lanes = self.lanes(length, self.unroll())
        with b.block() as body:
            row, start, stop = _chunk(b, g, chunks, length)
            with b.for_("i", start, stop, lanes) as v:
                index = lowering.unravel(row, tuple(outer)) + lowering.unravel(v, tuple(inner))
                self.store_all(lowering, self.full_index(lowering, index))
        b.append(For(g, b.grid_begin(), b.grid_end(), tuple(body)))
        return self.nest(lowering, "map", rows * chunks, 1, ceil(length / chunks))

    def map_tiled(self, dims: list[int], crossing: int) -> LoopNest:
        """Blocks of the last axis by axis `crossing`, along which some reads are contiguous.

        before: for p: for i (lanes): out[p, i] = in[i, p]     a cache line per element read
        after:  for each block: tile[i, p] = in[i, p]  (p in lanes)
                                for p: for i (lanes): out[p, i] = tile[i, p]
        """
        b = Builder()
        others = [n for a, n in enumerate(dims[:-1]) if a != crossing]
        height, width = dims[crossing], dims[-1]
        down, across = ceil(height / TILE_HEIGHT), ceil(width / TILE_WIDTH)
        grid = prod(others) * down * across
        g = b.var("g", "i64", 0, max(0, grid - 1))
        with b.block() as body:
            block, column = b.div(g, b.index(across)), b.rem(g, b.index(across))
            other, row = b.div(block, b.index(down)), b.rem(block, b.index(down))
            left, top = b.mul(column, b.index(TILE_WIDTH)), b.mul(row, b.index(TILE_HEIGHT))
            right = b.min(b.add(left, b.index(TILE_WIDTH)), b.index(width))
            bottom = b.min(b.add(top, b.index(TILE_HEIGHT)), b.index(height))
            lowering = TileLowering(b, self.nodes, (left, right), (top, bottom), self.width)
            with b.block() as main:
                with b.for_("p", top, bottom) as p, b.for_("i", left, right, self.width) as v:
                    lowering.v, lowering.p = v, p
                    index = list(lowering.unravel(other, tuple(others)))
                    index.insert(crossing, p)
                    self.store_all(lowering, self.full_index(lowering, (*index, v)))
            for statement in (*lowering.copies, *main):
                b.append(statement)
        b.append(For(g, b.grid_begin(), b.grid_end(), tuple(body)))
        return self.nest(lowering, "map_tiled", grid, 1, TILE_WIDTH * TILE_HEIGHT)

    def full_index(self, lowering: Lowering, index: Index) -> Index:
        """The index in `space` for one over its axes longer than 1."""
        return _with_ones(lowering.b, self.group.space, index)

    def store_all(self, lowering: Lowering, index: Index) -> None:
        with lowering.scope():
            # in graph order, so that a long chain is no deep recursion
            for node in self.nodes:
                if (
                    node.outputs[0].aval.shape == self.group.space
                    and not cost.is_structural(node)
                    and not isinstance(node.primitive, Reduction)
                    and not node.primitive.rereads
                ):
                    lowering.value(node.outputs[0], index)
            for var in self.group.outputs:
                lowering.store(var, self.index_for(lowering, var, index))

    def index_for(self, lowering: Lowering, var: Var, index: Index) -> Index:
        if var.aval.shape == self.group.space:
            return index
        return _with_ones(
            lowering.b,
            var.aval.shape,
            tuple(i for i, n in zip(index, self.group.space, strict=True) if n != 1),
        )

    # ---- rows

    def rows(self) -> LoopNest:
        space, reduced = self.group.space, self.group.reduced or ()
        long_axes = [a for a, n in enumerate(space) if n != 1]
        if long_axes[-1] in reduced:
            axes = [a for a in long_axes if a in reduced]
            if len(axes) > 1:
                nest = self.rows_along(merged=True)
                if not _divides(nest.kernel):
                    return nest
            return self.rows_along(merged=False)
        kept, axes = self.axes()
        if space[kept[-1]] >= WIDE_ROW and prod(space[a] for a in axes) >= DEEP:
            return BlockedRows(self).build()
        return self.rows_across()

    def rows_along(self, merged: bool) -> LoopNest:
        """The vector loop runs along the reduced axes; one row per grid step."""
        b = Builder()
        lowering = Lowering(b, self.nodes)
        space = self.group.space
        kept, axes = self.axes()
        rows = prod(space[a] for a in kept)
        extents = [space[a] for a in axes]
        if merged:
            extents = [prod(extents)]
        g = b.var("g", "i64", 0, max(0, rows - 1))
        lanes = self.lanes(extents[-1], unroll=4)

        def index(d: Sequence[Any]) -> Index:
            inner = lowering.unravel(d[0], tuple(space[a] for a in axes)) if merged else tuple(d)
            return self.combine_index(lowering, dict(zip(kept, row, strict=True)), axes, inner)

        with b.block() as body, lowering.scope():
            row = lowering.unravel(g, tuple(space[a] for a in kept))
            for level in self.levels():
                self.reduce_level(lowering, level, extents, index, row, lanes)
            self.store_rows(lowering, row)
            wide = [v for v in self.group.outputs if v.aval.shape == space]
            if wide:
                with _nested(b, extents, self.lanes(extents[-1])) as d, lowering.scope():
                    self.store_wide(lowering, wide, index(d))
        b.append(For(g, b.grid_begin(), b.grid_end(), tuple(body)))
        return self.nest(lowering, "rows", rows, 1, prod(extents))

    def rows_across(self) -> LoopNest:
        """The vector loop runs along the last kept axis: each lane is a row of its own."""
        b = Builder()
        lowering = Lowering(b, self.nodes)
        space = self.group.space
        kept, axes = self.axes()
        outer, last = kept[:-1], kept[-1]
        extents = [space[a] for a in axes]
        length = space[last]
        lanes = self.lanes(length, unroll=4)
        blocks = ceil(length / lanes)
        grid = prod(space[a] for a in outer) * blocks
        g = b.var("g", "i64", 0, max(0, grid - 1))

        with b.block() as body:
            outer_row, block = b.div(g, b.index(blocks)), b.rem(g, b.index(blocks))
            start = b.mul(block, b.index(lanes))
            stop = b.min(b.add(start, b.index(lanes)), b.index(length))
            with b.for_("i", start, stop, lanes) as v, lowering.scope():
                row = (*lowering.unravel(outer_row, tuple(space[a] for a in outer)), v)
                places = dict(zip(kept, row, strict=True))

                def index(d: Sequence[Any]) -> Index:
                    return self.combine_index(lowering, places, axes, tuple(d))

                for level in self.levels():
                    self.reduce_level(lowering, level, extents, index, row, 1)
                self.store_rows(lowering, row)
                wide = [x for x in self.group.outputs if x.aval.shape == space]
                if wide:
                    with _nested(b, extents, 1) as d, lowering.scope():
                        self.store_wide(lowering, wide, index(d))
        b.append(For(g, b.grid_begin(), b.grid_end(), tuple(body)))
        return self.nest(lowering, "rows", grid, 1, prod(extents) * lanes)

    def axes(self) -> tuple[list[int], list[int]]:
        """Kept and reduced axes longer than 1."""
        space, reduced = self.group.space, self.group.reduced or ()
        kept = [a for a, n in enumerate(space) if n != 1 and a not in reduced]
        return kept, [a for a, n in enumerate(space) if n != 1 and a in reduced]

    def combine_index(
        self, lowering: Lowering, kept: dict[int, Any], axes: list[int], inner: Sequence[Any]
    ) -> Index:
        places = {**kept, **dict(zip(axes, inner, strict=True))}
        zero = lowering.b.index(0)
        return tuple(places.get(a, zero) for a in range(len(self.group.space)))

    def levels(self) -> list[list[Node]]:
        """Reductions by how many others they have to wait for."""
        depth: dict[Node, int] = {}
        producer = {v: n for n in self.nodes for v in n.outputs}
        levels: list[list[Node]] = []
        for node in self.nodes:
            before = 0
            for a in node.inputs:
                source = producer.get(a) if type(a) is Var else None
                if source is not None:
                    before = max(before, depth[source] + cost.is_big_reduction(source))
            depth[node] = before
            if cost.is_big_reduction(node):
                while len(levels) <= before:
                    levels.append([])
                levels[before].append(node)
        return levels

    def reduce_level(
        self,
        lowering: Lowering,
        level: list[Node],
        extents: list[int],
        index: Callable[[Sequence[Any]], Index],
        row: Index,
        lanes: int,
    ) -> None:
        """One loop for all reductions of a level; makes their results known for the row."""
        b = lowering.b
        saved = [(v, out) for v, out, loop in self.saved if level[0] in loop]
        parts = accumulate(lowering, level, extents, index, lanes, saved=saved)
        lowering.saved.update(saved)
        for node, values in zip(level, parts, strict=True):
            out = node.outputs[0]
            result = node.primitive.finish(b, values, out.aval, **node.params)
            lowering.define(out, _with_ones(b, out.aval.shape, row), result)

    def store_wide(self, lowering: Lowering, wide: list[Var], place: Index) -> None:
        for node in cone(lowering.producer, wide):
            if node.primitive.pointwise and node.outputs[0].aval.shape == self.group.space:
                lowering.value(node.outputs[0], place)
        for var in wide:
            lowering.store(var, place)

    def store_rows(self, lowering: Lowering, row: Index) -> None:
        for var in self.group.outputs:
            if var.aval.shape != self.group.space:
                lowering.store(var, _with_ones(lowering.b, var.aval.shape, row))

    # ---- split

    def split(self) -> list[LoopNest]:
        """Chunks of the longest run of elements first, then the chunks' results."""
        _, axes = self.axes()
        merged = self.split_chunks(merged=True) if len(axes) > 1 else None
        if merged is not None and not _divides(merged[0].kernel):
            return merged[1]()
        return self.split_chunks(merged=False)[1]()

    def split_chunks(self, merged: bool) -> tuple[LoopNest, Callable[[], list[LoopNest]]]:
        space = self.group.space
        kept, axes = self.axes()
        extents = [space[a] for a in axes]
        if merged:
            extents = [prod(extents)]
        rows = prod(space[a] for a in kept)
        inner = prod(extents[1:]) * rows
        chunk = max(1, ceil(cost.SPLIT_ELEMENTS / 2 / inner))
        chunk = max(chunk, ceil(extents[0] / 256))
        chunks = ceil(extents[0] / chunk)
        reductions = self.group.reductions()

        b = Builder()
        lowering = Lowering(b, self.nodes)
        partials: list[list[list[Var]]] = []  # per reduction, per accumulator: its parts
        c = b.var("c", "i64", 0, max(0, chunks - 1))
        across = bool(kept) and kept[-1] > axes[-1]
        lanes = 1 if across else self.lanes(extents[-1] if len(extents) > 1 else chunk, unroll=4)
        with b.block() as body:
            start = b.mul(c, b.index(chunk))
            stop = b.min(b.add(start, b.index(chunk)), b.index(extents[0]))
            count = b.sub(stop, start)
            row_lanes = self.lanes(rows) if across else 1
            with b.for_("r", 0, rows, row_lanes) as r, lowering.scope():
                row = lowering.unravel(r, tuple(space[a] for a in kept))
                places = dict(zip(kept, row, strict=True))

                def index(d: Sequence[Any]) -> Index:
                    first = b.add(start, d[0])
                    inner_index: Index = (first, *d[1:])
                    if merged:
                        inner_index = lowering.unravel(first, tuple(space[a] for a in axes))
                    return self.combine_index(lowering, places, axes, inner_index)

                parts = accumulate(
                    lowering, reductions, [count, *extents[1:]], index, lanes, bound=chunk
                )
                position = b.add(b.mul(c, b.index(rows)), r)
                for values in parts:
                    partials.append(_store_parts(lowering, values, position, chunks, rows))
        b.append(For(c, b.grid_begin(), b.grid_end(), tuple(body)))
        flat = [v for per in partials for pair in per for v in pair]
        first = self.nest(lowering, "split", chunks, 1, chunk * inner, outputs=flat)
        return first, lambda: [first, self.join_chunks(reductions, partials, chunks, rows)]

    def join_chunks(
        self, reductions: list[Node], partials: list[list[list[Var]]], chunks: int, rows: int
    ) -> LoopNest:
        b = Builder()
        space = self.group.space
        kept, _ = self.axes()
        made = {v for n in reductions for v in n.outputs}
        after = [n for n in self.nodes if self.depends_on(n, made)]
        lowering = Lowering(b, [*reductions, *after])
        r = b.var("r", "i64", 0, max(0, rows - 1))
        with b.block() as body, lowering.scope():
            row = lowering.unravel(r, tuple(space[a] for a in kept))
            def element(c: Any) -> tuple[Any, ...]:
                position = b.add(b.mul(c, b.index(rows)), r)
                values = []
                for per in partials:
                    for pair in per:
                        loaded = [lowering.load(v, (position,)) for v in pair]
                        values.append(Complex(*loaded) if len(pair) == 2 else loaded[0])
                return tuple(values)

            results = _reduce(lowering, reductions, [chunks], lambda d: element(d[0]), 1)
            for node, values in zip(reductions, results, strict=True):
                out = node.outputs[0]
                value = node.primitive.finish(b, values, out.aval, **node.params)
                lowering.define(out, _with_ones(b, out.aval.shape, row), value)
            self.store_rows(lowering, row)
        b.append(For(r, b.grid_begin(), b.grid_end(), tuple(body)))
        return self.nest(lowering, "join", rows, 1, chunks)

    def depends_on(self, node: Node, made: set[Var]) -> bool:
        if any(type(a) is Var and a in made for a in node.inputs):
            made.update(node.outputs)
            return True
        return bool(cost.is_structural(node) or not cost.is_big_reduction(node))

    # ---- common

    def unroll(self) -> int:
        """Vectors at once: several where each result is a sum, whose additions wait for each other."""
        return 4 if any(n.primitive.rereads for n in self.nodes) else 1

    def lanes(self, extent: int, unroll: int = 1) -> int:
        """Lanes of a loop of this extent: more vectors at once where there is enough to do."""
        if self.group.cost > HEAVY:
            unroll = 1  # enough independent work in one vector, and no registers to spare
        wide = self.width * unroll
        return wide if unroll > 1 and extent >= 4 * wide else self.width

    def nest(
        self,
        lowering: Lowering,
        kind: str,
        grid: int,
        grain: int,
        elements: int,
        in_place: bool = False,
        outputs: list[Var] | None = None,
    ) -> LoopNest:
        b = lowering.b
        names = {buffer: var for var, buffer in lowering.buffers.items()}
        names.update({buffer: var for var, buffer in lowering.outputs.items()})
        kernel = b.kernel(_kernel_name(kind, self.nodes), in_place=in_place)
        arguments = [names[buffer] for buffer in kernel.buffers if buffer.space != "local"]
        traffic = sum(v.aval.nbytes for v in arguments)
        work = self.group.cost * elements * self.unit_ns + traffic * cost.BYTE_NS / max(1, grid)
        stored = outputs if outputs is not None else list(self.group.outputs)
        rows = self.row_inputs(lowering, kernel, grid)
        return LoopNest(kernel, arguments, stored, grid, grain, work, traffic, in_place, rows)

    def row_inputs(self, lowering: Lowering, kernel: Kernel, grid: int) -> frozenset[Var]:
        b = lowering.b
        root = kernel.body[0]
        if not isinstance(root, For) or root.lanes != 1:
            return frozenset()
        found = {
            var: buffer
            for var, buffer in lowering.buffers.items()
            if var.aval.ndim == 2 and var.aval.shape[0] == grid > 1
        }
        if not found:
            return frozenset()
        by_buffer = {buffer: var for var, buffer in found.items()}
        for load in loads(kernel):
            var = by_buffer.get(load.attr)
            if var is None or var not in found:
                continue
            form = b.linear(load.args[0])
            length = var.aval.shape[1]
            rest = {m: c for m, c in form.terms.items() if m != (root.var,)}
            low, high = b.range_of_linear(Linear(rest, form.const))
            if form.terms.get((root.var,)) != length or low < 0 or high >= length:
                del found[var]
        return frozenset(found)


class BlockedRows:
    """Reductions over leading axes, the rows being the columns of a matrix.

    Memory is read in long pieces of rows: for each block of columns, for each d (a few at once),
    for i (lanes): acc[i] = combine(acc[i], x[d, i]).  Accumulators of a level stay in local memory
    for the levels after it.
    """

    def __init__(self, scheduler: Scheduler):
        self.scheduler = scheduler
        self.group = scheduler.group
        self.b = Builder()
        self.lowering = Lowering(self.b, scheduler.nodes)
        self.kept, self.axes = scheduler.axes()
        space = self.group.space
        self.extents = [space[a] for a in self.axes]
        self.lanes = scheduler.width
        self.at_once = 4
        # finished reductions and the local buffers of their accumulators
        self.done: list[tuple[Node, list[Any]]] = []
        self.start: Any = None
        self.stop: Any = None
        self.outer_row: Index = ()

    def build(self) -> LoopNest:
        b, space = self.b, self.group.space
        length = space[self.kept[-1]]
        outer = [space[a] for a in self.kept[:-1]]
        # long pieces of rows, and a few blocks for each thread
        pieces = BLOCKS_PER_THREAD * _native.default_num_threads()
        width = min(BLOCK, max(64, ceil(length / pieces / 64) * 64))
        blocks = ceil(length / width)
        grid = prod(outer) * blocks
        g = b.var("g", "i64", 0, max(0, grid - 1))
        with b.block() as body:
            block = b.rem(g, b.index(blocks))
            self.outer_row = self.lowering.unravel(b.div(g, b.index(blocks)), tuple(outer))
            self.start = b.mul(block, b.index(width))
            self.stop = b.min(b.add(self.start, b.index(width)), b.index(length))
            for level in self.scheduler.levels():
                work = sum(
                    cost.element_cost(n)
                    for n in cone(self.lowering.producer, [a for r in level for a in r.inputs])
                )
                # a light body on several vectors at once, a heavy one on several rows at once
                self.lanes = self.scheduler.width * (1 if work > HEAVY else 4)
                self.reduce(level)
            self.lanes = self.scheduler.width
            self.store()
        b.append(For(g, b.grid_begin(), b.grid_end(), tuple(body)))
        return self.scheduler.nest(
            self.lowering, "columns", grid, 1, prod(self.extents) * min(width, length)
        )

    @contextmanager
    def columns(self) -> Iterator[tuple[Any, Index]]:
        """The vector loop over the block's columns; gives (position in the block, row index)."""
        b, lowering = self.b, self.lowering
        with b.for_("i", self.start, self.stop, self.lanes) as v, lowering.scope():
            place, row = b.sub(v, self.start), (*self.outer_row, v)
            for node, buffers in self.done:
                out = node.outputs[0]
                values = tuple(b.load(x, place) for x in buffers)
                result = node.primitive.finish(b, values, out.aval, **node.params)
                lowering.define(out, _with_ones(b, out.aval.shape, row), result)
            yield place, row

    def index(self, row: Index, d: Sequence[Any]) -> Index:
        kept = dict(zip(self.kept, row, strict=True))
        return self.scheduler.combine_index(self.lowering, kept, self.axes, d)

    def reduce(self, level: list[Node]) -> None:
        b = self.b
        totals = self.accumulators(level)
        *outer, last = self.extents
        stretch = FOLD * self.at_once
        with _nested(b, outer, 1) as d:
            if last <= 2 * stretch:
                self.sweep(level, totals, d, b.index(0), last)
            else:
                partial = self.accumulators(level, initialize=False)
                with b.for_("s", 0, ceil(last / stretch)) as s:
                    self.fill(level, partial)
                    first = b.mul(s, b.index(stretch))
                    count = b.min(b.index(stretch), b.sub(b.index(last), first))
                    self.sweep(level, partial, d, first, count)
                    with self.columns() as (place, _):
                        self.merge(level, totals, [[b.load(x, place) for x in p] for p in partial], place)
        self.done += zip(level, totals, strict=True)

    def accumulators(self, level: list[Node], initialize: bool = True) -> list[list[Any]]:
        buffers = [
            [
                self.b.local(f"acc{len(self.b.buffers)}", x.dtype, BLOCK)
                for x in node.primitive.identity(self.b, node.inputs[0].aval, **node.params)
            ]
            for node in level
        ]
        if initialize:
            self.fill(level, buffers)
        return buffers

    def fill(self, level: list[Node], buffers: list[list[Any]]) -> None:
        with self.columns() as (place, _):
            for node, targets in zip(level, buffers, strict=True):
                values = node.primitive.identity(self.b, node.inputs[0].aval, **node.params)
                for target, value in zip(targets, values, strict=True):
                    self.b.store(target, place, value)

    def sweep(
        self, level: list[Node], buffers: list[list[Any]], d: list[Any], first: Any, count: Any
    ) -> None:
        """Takes in `count` rows from `first` on, `at_once` of them at a time and then the rest."""
        b, n = self.b, self.at_once
        whole = b.div(b._bound(count), b.index(n))
        if n > 1:
            with b.for_("q", 0, whole) as q:
                base = b.add(first, b.mul(q, b.index(n)))
                self.take_in(level, buffers, [[*d, b.add(base, k)] for k in range(n)])
        with b.for_("q", b.mul(whole, b.index(n)) if n > 1 else 0, b._bound(count)) as q:
            self.take_in(level, buffers, [[*d, b.add(first, q)]])

    def take_in(
        self, level: list[Node], buffers: list[list[Any]], rows: list[list[Any]]
    ) -> None:
        b, lowering = self.b, self.lowering
        chains = [
            [
                n
                for n in cone(lowering.producer, node.inputs)
                if n.primitive.pointwise and n.outputs[0].aval.shape == self.group.space
            ]
            for node in level
        ]
        with self.columns() as (place, row):
            found: list[list[Any]] = []
            for node, chain in zip(level, chains, strict=True):
                elements = []
                for d in rows:
                    at = self.index(row, d)
                    for n in chain:
                        lowering.value(n.outputs[0], at)
                    value = lowering.value(node.inputs[0], at)
                    elements.append(tuple(node.primitive.element(b, value, at, **node.params)))
                while len(elements) > 1:
                    elements = [
                        tuple(node.primitive.combine(b, elements[i], elements[i + 1]))
                        for i in range(0, len(elements) - 1, 2)
                    ]
                found.append(list(elements[0]))
            self.merge(level, buffers, found, place)

    def merge(
        self, level: list[Node], buffers: list[list[Any]], values: list[list[Any]], place: Any
    ) -> None:
        b = self.b
        for node, targets, new in zip(level, buffers, values, strict=True):
            old = tuple(b.load(x, place) for x in targets)
            joined = node.primitive.combine(b, old, tuple(new))
            for target, value in zip(targets, joined, strict=True):
                b.store(target, place, value)

    def store(self) -> None:
        group, lowering = self.group, self.lowering
        narrow = [v for v in group.outputs if v.aval.shape != group.space]
        wide = [v for v in group.outputs if v.aval.shape == group.space]
        if narrow:
            with self.columns() as (_, row):
                for var in narrow:
                    lowering.store(var, _with_ones(self.b, var.aval.shape, row))
        if wide:
            with _nested(self.b, self.extents, 1) as d, self.columns() as (_, row):
                self.scheduler.store_wide(lowering, wide, self.index(row, d))


class TileLowering(Lowering):
    """Lowering for map_tiled: reads that are contiguous along `p` and strided along the lanes `v`
    go through a tile of local memory, which `copies` fill beforehand."""

    def __init__(
        self, b: Builder, nodes: list[Node], columns: tuple[Any, Any], rows: tuple[Any, Any],
        width: int,
    ):  # fmt: skip
        super().__init__(b, nodes)
        self.columns = columns
        self.rows = rows
        self.width = width
        self.v: Any = None
        self.p: Any = None
        self.copies: list[Any] = []
        self.tiles: dict[Any, Any] = {}

    def load(self, var: Var, index: Index) -> Any:
        b = self.b
        form = b.linear(self.offset(var.aval.shape, index))
        stride = form.terms.get((self.v,), 0)
        crosses = form.terms.get((self.p,)) == 1 and stride not in (0, 1)
        if b._guards or not crosses or any(
            {self.v, self.p} & set(monomial) and len(monomial) > 1 for monomial in form.terms
        ):
            return super().load(var, index)
        rest = {m: c for m, c in form.terms.items() if m not in ((self.v,), (self.p,))}
        key = (var, tuple(rest.items()), form.const, stride)
        tile = self.tiles.get(key)
        # an odd distance between the tile's rows keeps them on different cache sets
        pitch = TILE_HEIGHT + 1
        if tile is None:
            dtype = dtypes.scalar_name(var.aval)
            tile = self.tiles[key] = b.local(f"tile{len(b.buffers)}", dtype, TILE_WIDTH * pitch)
            (left, right), (top, bottom) = self.columns, self.rows
            with b.block() as statements:
                with b.for_("r", left, right) as r, b.for_("c", top, bottom, self.width) as c:
                    base = b._from_linear(Linear(rest, form.const))
                    at = b.add(b.add(base, b.mul(r, b.index(stride))), c)
                    place = b.add(b.mul(b.sub(r, left), b.index(pitch)), b.sub(c, top))
                    b.store(tile, place, b.load(self.buffer(var), at))
            self.copies += statements
        place = b.add(
            b.mul(b.sub(self.v, self.columns[0]), b.index(pitch)), b.sub(self.p, self.rows[0])
        )
        return b.load(tile, place)


# ---- reductions


def values_to_save(
    group: Group, levels: list[list[Node]]
) -> list[tuple[Var, Var, list[Node]]]:
    """Costly values of whole rows that several loops need: (value, output, first loop).

    The first loop writes such a value into the memory of an output of its type, the later ones
    read it there; the last of them overwrites it with the output itself.  If that loop reads the
    value, then the output must depend on it, so that it is read before it is overwritten.

    softmax:  max of x;  e = exp(x - max) -> out, sum of e;  out = out / sum
    """
    wide = [v for v in group.outputs if v.aval.shape == group.space]
    if not levels or not wide:
        return []
    producer = {v: n for n in group.nodes for v in n.outputs}
    loops: list[list[Node]] = [*levels, []]
    free = [v for v in wide if dtypes.scalar_name(v.aval) not in ("f16", "bf16", "c64", "c128")]
    saved: list[tuple[Var, Var, list[Node]]] = []

    def needed(loop: list[Node], outputs: Sequence[Var] = wide) -> set[Node]:
        """What a loop computes element by element, without what is saved; the last loop, of no
        reductions, computes outputs."""
        stops = {v for v, _, _ in saved}
        stack: list[Any] = [a for n in loop for a in n.inputs] if loop else list(outputs)
        found: set[Node] = set()
        while stack:
            a = stack.pop()
            node = producer.get(a) if type(a) is Var else None
            if node is None or node in found or cost.is_big_reduction(node):
                continue
            if a in stops and any(first is not loop for v, _, first in saved if v is a):
                continue
            found.add(node)
            stack += node.inputs
        return found

    for node in reversed(group.nodes):
        out = node.outputs[0]
        if out.aval.shape != group.space or cost.element_cost(node) <= cost.CHEAP:
            continue
        if out in wide:
            continue
        users = [loop for loop in loops if node in needed(loop)]
        target = next(
            (
                v
                for v in free
                if v.aval.dtype_code == out.aval.dtype_code
                and (users[-1:] != [[]] or node in needed([], [v]))
            ),
            None,
        )
        if len(users) > 1 and target is not None:
            saved.append((out, target, users[0]))
            free.remove(target)
    return saved


def cone(producer: dict[Var, Node], roots: Sequence[Any]) -> list[Node]:
    """The nodes that compute `roots`, up to reductions and memory, operands first."""
    order: list[Node] = []
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = []

    def push(atoms: Sequence[Any]) -> None:
        for a in atoms:
            node = producer.get(a) if type(a) is Var else None
            if node is not None and node not in seen and not cost.is_big_reduction(node):
                stack.append((node, False))

    push(roots)
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            push(node.inputs)
    return order


def accumulate(
    lowering: Lowering,
    reductions: list[Node],
    extents: Sequence[Any],
    index: Callable[[Sequence[Any]], Index],
    lanes: int,
    bound: int | None = None,
    saved: Sequence[tuple[Var, Var]] = (),
) -> list[tuple[Any, ...]]:
    """Accumulators of several reductions over the same elements, in one loop nest.

    saved: (value, output): values that the loop also writes into an output's memory."""
    b = lowering.b
    space = reductions[0].inputs[0].aval.shape
    chain = [
        n
        for n in cone(lowering.producer, [a for r in reductions for a in r.inputs])
        if n.primitive.pointwise and n.outputs[0].aval.shape == space
    ]

    def element(d: Sequence[Any]) -> tuple[Any, ...]:
        place = index(d)
        for node in chain:  # in graph order, so that a long chain is no deep recursion
            lowering.value(node.outputs[0], place)
        for var, out in saved:
            position = lowering.offset(out.aval.shape, place)
            b.store(lowering.output(out), position, lowering.value(var, place))
        values: list[Any] = []
        for node in reductions:
            operands = [lowering.value(a, place) for a in node.inputs]
            values += node.primitive.element(b, operands[0], place, **node.params)
        return tuple(values)

    last = extents[-1]
    length = bound if len(extents) == 1 and bound is not None else last
    if isinstance(length, int) and length > 2 * FOLD * lanes:
        return _folded(lowering, reductions, extents, element, lanes)
    return _reduce(lowering, reductions, extents, element, lanes)


def _folded(
    lowering: Lowering,
    reductions: list[Node],
    extents: Sequence[Any],
    element: Callable[[Sequence[Any]], tuple[Any, ...]],
    lanes: int,
) -> list[tuple[Any, ...]]:
    """The innermost extent in stretches of FOLD additions a lane."""
    b = lowering.b
    stretch = FOLD * lanes
    last = b._bound(extents[-1])
    count = b.div(b.add(last, b.index(stretch - 1)), b.index(stretch))

    def outer(d: Sequence[Any]) -> tuple[Any, ...]:
        start = b.mul(d[-1], b.index(stretch))
        length = b.min(b.index(stretch), b.sub(last, start))
        inner = _reduce(
            lowering, reductions, [length], lambda e: element((*d[:-1], b.add(start, e[0]))), lanes
        )
        return tuple(v for part in inner for v in part)

    return _reduce(lowering, reductions, [*extents[:-1], count], outer, 1)


def _reduce(
    lowering: Lowering,
    reductions: list[Node],
    extents: Sequence[Any],
    element: Callable[[Sequence[Any]], tuple[Any, ...]],
    lanes: int,
) -> list[tuple[Any, ...]]:
    """b.reduce over the concatenated accumulators of all reductions."""
    b = lowering.b
    identities = [tuple(n.primitive.identity(b, n.inputs[0].aval, **n.params)) for n in reductions]
    sizes = [len(i) for i in identities]

    def split(values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        parts, start = [], 0
        for size in sizes:
            parts.append(tuple(values[start : start + size]))
            start += size
        return parts

    def combine(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        joined: list[Any] = []
        for node, p, q in zip(reductions, split(left), split(right), strict=True):
            joined += node.primitive.combine(b, p, q)
        return tuple(joined)

    def in_scope(*d: Any) -> tuple[Any, ...]:
        with lowering.scope():
            return element(d)

    total = b.reduce(
        list(extents), in_scope, combine, tuple(v for i in identities for v in i), lanes=lanes
    )
    return split(total if isinstance(total, tuple) else (total,))


def _store_parts(
    lowering: Lowering, values: tuple[Any, ...], position: Any, chunks: int, rows: int
) -> list[list[Var]]:
    """Writes accumulators to fresh arrays of (chunks, rows); complex ones as two."""
    made: list[list[Var]] = []
    for value in values:
        pair = [value.re, value.im] if isinstance(value, Complex) else [value]
        variables = []
        for part in pair:
            dtype = dtypes.DTYPES[dtypes.SCALAR_NAMES.index(part.dtype)]
            var = Var(array_type((chunks * rows,), dtype))
            lowering.b.store(lowering.output(var), position, part)
            variables.append(var)
        made.append(variables)
    return made


# ---- small helpers


def _with_ones(b: Builder, shape: tuple[int, ...], index: Sequence[Any]) -> Index:
    """An index for `shape` from one over its axes longer than 1."""
    rest = iter(index)
    return tuple(b.index(0) if n == 1 else next(rest) for n in shape)


def _chunk(b: Builder, g: Any, chunks: int, length: int) -> tuple[Any, Any, Any]:
    """(row, start, stop) of grid step g when each row is cut into chunks."""
    if chunks == 1:
        return g, b.index(0), b.index(length)
    size = ceil(length / chunks / 64) * 64
    start = b.mul(b.rem(g, b.index(chunks)), b.index(size))
    stop = b.min(b.add(start, b.index(size)), b.index(length))
    return b.div(g, b.index(chunks)), start, stop


class _nested:
    """`with _nested(b, extents, lanes) as indices`: one loop per extent, the last with lanes."""

    def __init__(self, b: Builder, extents: Sequence[int], lanes: int):
        self.b = b
        self.extents = list(extents)
        self.lanes = lanes
        self.open: list[Any] = []

    def __enter__(self) -> list[Any]:
        indices = []
        for depth, extent in enumerate(self.extents):
            last = depth == len(self.extents) - 1
            manager = self.b.for_("d", 0, extent, self.lanes if last else 1)
            indices.append(manager.__enter__())
            self.open.append(manager)
        return indices

    def __exit__(self, *exc: Any) -> None:
        for manager in reversed(self.open):
            manager.__exit__(*exc)


def _widest(group: Group) -> int:
    """Bytes of the widest scalar that the vector loop computes with."""
    widest = 1
    for node in group.nodes:
        for a in (*node.inputs, *node.outputs):
            if a.aval.ndim:
                name = dtypes.scalar_name(a.aval)
                size = {"c64": 4, "c128": 8, "f16": 4, "bf16": 4}.get(name, a.aval.itemsize)
                widest = max(widest, size)
    return widest


def _divides(kernel: Kernel) -> bool:
    """Did a division of a vector loop's variable survive simplification?"""
    variables = {s.var for s in statements(kernel.body) if getattr(s, "lanes", 1) > 1}
    return any(
        e.op in ("div", "rem") and e.dtype == "i64" and _mentions(e.args[0], variables)
        for e in expressions(kernel)
    )


def _mentions(expr: Any, variables: set[Any]) -> bool:
    stack = [expr]
    while stack:
        e = stack.pop()
        if e in variables:
            return True
        stack += e.args
    return False


def _kernel_name(kind: str, nodes: list[Node]) -> str:
    """For profiles and listings: the kind and the operations, shortened."""
    names: list[str] = []
    for node in nodes:
        if not cost.is_structural(node) and node.primitive.name not in names:
            names.append(node.primitive.name)
    return "_".join([kind, *names[:6]]) + (f"_and_{len(names) - 6}" if len(names) > 6 else "")
