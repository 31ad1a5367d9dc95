"""Schedules: from a fusion group to loop nests.

Takes   a group of partition.py.
Gives   one kernel (two for a split reduction) with the arrays it works on and its grid.
Runs    after fusion; generalize.py then takes the shapes out of the kernel.

A shape is only used to choose between the forms and to bound ranges; extents become run-time
parameters afterwards.
"""

from __future__ import annotations

from math import prod

from jato.compiler.fusion.partition import Group
from jato.compiler.loops.columns import DEEP, WIDE_ROW, ColumnSchedule
from jato.compiler.loops.elementwise import ElementwiseSchedule
from jato.compiler.loops.nest import LoopNest
from jato.compiler.loops.row_tiles import RowTileSchedule
from jato.compiler.loops.rows import RowSchedule
from jato.compiler.loops.short_axis import ShortAxisSchedule
from jato.compiler.loops.split import SplitSchedule


def schedule(group: Group, vector_bytes: int) -> list[LoopNest]:
    """The loop nests of a group, in order."""
    if group.reduced is None:
        short = ShortAxisSchedule(group, vector_bytes)
        nest = short.whole_vectors_of_rows()
        nest = nest or RowTileSchedule(group, vector_bytes).build()
        nest = nest or short.single_rows()
        return [nest or ElementwiseSchedule(group, vector_bytes).build()]
    if not group.split:
        nest = RowTileSchedule(group, vector_bytes).build()
        if nest is not None:
            return [nest]
    if group.split:
        return SplitSchedule(group, vector_bytes).build()
    rows = RowSchedule(group, vector_bytes)
    space, last = group.space, rows.memory_order[-1]
    depth = prod(space[a] for a in group.reduced)
    if last not in group.reduced and space[last] >= WIDE_ROW and depth >= DEEP:
        return [ColumnSchedule(group, vector_bytes).build()]
    return [rows.build()]
