"""Tiles: transposed reads through local memory."""

from __future__ import annotations

from typing import Any

from jato.base import dtypes
from jato.compiler.loops.lower import Index, Lowering
from jato.compiler.loops.walk import variables_below
from jato.core.graph import Node, Var
from jato.loopir.builder import Builder
from jato.loopir.grammar import Expr
from jato.loopir.index_math import Linear

# Block of a transposed read: 4 cache lines of 4-byte elements from each row, in and out.
TILE_WIDTH = 64
TILE_HEIGHT = 64


class TileLowering(Lowering):
    """Lowering for ElementwiseSchedule.tiled: reads that are contiguous along `p` and strided along the lanes `v`
    go through a tile of local memory, which `copies` fill beforehand."""

    def __init__(
        self, b: Builder, nodes: list[Node], block: Expr, columns: tuple[Any, Any],
        rows: tuple[Any, Any], width: int,
    ):  # fmt: skip
        super().__init__(b, nodes)
        self.block = block
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
        rest = {m: c for m, c in form.terms.items() if m not in ((self.v,), (self.p,))}
        # the copies are made before the loops over the block: they know the block alone
        known = variables_below((self.block, *self.columns, *self.rows))
        if b._guards or not crosses or any(not variables_below(m) <= known for m in rest):
            return super().load(var, index)
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
