"""Loop IR: kernels as loop nests over scalar expressions.

This is the language between the loop scheduler and LLVM.  It knows scalars, buffers and
indices; it knows neither arrays nor operations nor autodiff.

    kernel  = Kernel(name, buffers, params, body)
    stmt    = For(var, start, stop, body, lanes)            iterations in any order
            | Reduce(results, var, start, stop, body, elements, combine, identity, lanes)
            | Loop(carries, var, start, stop, body, nexts)  iterations in order, values carried
            | Store(buffer, index, value, mask)
            | If(condition, then)                           condition is uniform over the lanes
    expr    = const | var | param | grid | load | scalar operation     (class Expr)
    combine = Combine(left, right, result)                  (left, right) -> result, associative

Expressions are hash-consed by the builder, so that equality is identity and a shared
sub-expression is one object.  Every expression has one of the scalar dtypes

    bool  i8 i16 i32 i64  u8 u16 u32 u64  f16 bf16 f32 f64

`f16` and `bf16` occur only as the dtype of loads, stores and `convert`; arithmetic on them is
done by the builder in f32 and rounded after every operation.  Complex numbers are pairs of
expressions (builder.Complex); they never reach this file.

Index arithmetic is i64.  `For(lanes=W)` is a vectorised loop: its variable stands for W
consecutive values at a time and the last group is masked, so that a body is written once and
holds for every extent, 0 and 1 included.  `Reduce(lanes=W)` keeps W partial results and combines
them at the end.  W may exceed the machine's vector width: that is how a schedule asks for
independent work in each iteration.

Start reading at `Expr`, then `For` and `Reduce`; `interp.py` gives the meaning of all of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Union

SCALAR_DTYPES = (
    "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64",
)  # fmt: skip

ITEMSIZE = {
    "bool": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "f16": 2, "bf16": 2,
    "i32": 4, "u32": 4, "f32": 4, "i64": 8, "u64": 8, "f64": 8,
}  # fmt: skip


class Expr:
    """A scalar value.  Made by the builder only, which hash-conses.

    op      "const" (attr: the Python value), "var" (attr: unique name), "param" (attr: position),
            "grid_begin"/"grid_end" (the range of the outermost loop that this call shall run),
            "load" (attr: Buffer; args: index, or index, mask, other: `other` where mask is
            false, and then memory is not touched), or an opcode of scalar_ops.py.
    serial  position in the builder's order of creation: args come before their users.
    """

    __slots__ = ("args", "attr", "dtype", "op", "serial")

    def __init__(self, op: str, args: tuple[Expr, ...], dtype: str, attr: Any, serial: int):
        self.op = op
        self.args = args
        self.dtype = dtype
        self.attr = attr
        self.serial = serial

    def __repr__(self) -> str:
        return f"%{self.serial}:{self.op}"


@dataclass(frozen=True, eq=False)
class Buffer:
    """Memory a kernel touches.

    space: "in" (only read; may overlap other "in" buffers, never an "out" buffer, except at the
    same index of the same element when `Kernel.in_place` is set), "out" (written; may be read
    back), "local" (scratch of this call; `size` elements, an integer; 64-byte aligned).
    """

    name: str
    dtype: str
    space: str
    size: int = 0


@dataclass(frozen=True, eq=False)
class For:
    var: Expr
    start: Expr
    stop: Expr
    body: tuple[Stmt, ...]
    lanes: int = 1


@dataclass(frozen=True, eq=False)
class Combine:
    """An associative combination of two tuples of values, as expressions over placeholders."""

    left: tuple[Expr, ...]
    right: tuple[Expr, ...]
    result: tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class Reduce:
    """results = combine over var in [start, stop) of elements, starting from identity.

    `body` runs in each iteration before `elements` are evaluated (nested reductions live
    there).  The order of combination is free.
    """

    results: tuple[Expr, ...]
    var: Expr
    start: Expr
    stop: Expr
    body: tuple[Stmt, ...]
    elements: tuple[Expr, ...]
    combine: Combine
    identity: tuple[Expr, ...]
    lanes: int = 1


@dataclass(frozen=True, eq=False)
class Loop:
    """Iterations in order: carries[i] starts as inits[i] and becomes nexts[i] after each.

    After the loop the `results` hold the final carries.  `condition`, over the carries, ends the
    loop early when false (None: run to stop).
    """

    carries: tuple[Expr, ...]
    inits: tuple[Expr, ...]
    results: tuple[Expr, ...]
    var: Expr
    start: Expr
    stop: Expr
    body: tuple[Stmt, ...]
    nexts: tuple[Expr, ...]
    condition: Expr | None = None


@dataclass(frozen=True, eq=False)
class Store:
    buffer: Buffer
    index: Expr
    value: Expr
    mask: Expr | None = None


@dataclass(frozen=True, eq=False)
class If:
    condition: Expr
    then: tuple[Stmt, ...]


@dataclass(frozen=True, eq=False)
class TileCopy:
    """Rows of an array into a local tile that holds them column by column, or back:

        tile[c pitch + r] = array[start + r step + c]        (out: the other way round)

    for 0 <= r < rows <= pitch and 0 <= c < columns.  `pitch` is a multiple of `lanes`, the elements
    of a vector; the tile has room for a multiple of `lanes` columns; what it holds beyond `rows` and `columns` is not defined.  A routine of the runtime
    does it (native/core/tile_copy.h).
    """

    tile: Buffer
    array: Buffer
    start: Expr
    step: Expr
    rows: Expr
    columns: Expr
    pitch: int
    lanes: int
    out: bool

    @property
    def numbers(self) -> tuple[Expr, Expr, Expr, Expr]:
        return self.start, self.step, self.rows, self.columns


@dataclass(frozen=True, eq=False)
class Prefetch:
    """Asks for the memory of buffer[index], which a later iteration reads; changes no value."""

    buffer: Buffer
    index: Expr


Stmt = Union[For, Reduce, Loop, Store, If, TileCopy, Prefetch]


@dataclass(frozen=True, eq=False)
class Kernel:
    """One function of machine code: void kernel(const KernelArgs*, i64 begin, i64 end).

    `num_params` 64-bit integers (extents, strides, offsets) arrive at run time.  The outermost
    statements usually are For loops from grid_begin to grid_end; the runtime cuts the grid
    among threads.
    """

    name: str
    buffers: tuple[Buffer, ...]
    num_params: int
    body: tuple[Stmt, ...]
    in_place: bool = False
    notes: tuple[str, ...] = field(default=())
