"""Checks that a kernel is well formed; run after every pass over loops.

Takes a Kernel, gives nothing, raises InternalError that names the kernel, the statement and the
rule that is broken.  It checks: dtypes and arities of all operations, variables used only where
they are bound, buffers that belong to the kernel, stores into writable buffers, vector loops not
nested, lanes a power of two, reductions whose parts agree.
"""

from __future__ import annotations

from collections.abc import Sequence

from jato.base.errors import InternalError
from jato.loopir.grammar import (
    ITEMSIZE,
    SCALAR_DTYPES,
    Expr,
    For,
    If,
    Kernel,
    Loop,
    Prefetch,
    Reduce,
    Stmt,
    Store,
    TileCopy,
)
from jato.loopir.scalar_ops import LOOKUP_ENTRIES, SCALAR_OPS

_LETTER = {"bool": "b", "f16": "h", "bf16": "h"}
MAX_LANES = 512


def verify(kernel: Kernel) -> None:
    """Raises InternalError when the kernel breaks a rule of grammar.py."""
    _Verifier(kernel).run()


class _Verifier:
    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.bound: set[Expr] = set()
        self.checked: set[Expr] = set()
        self.buffers = set(kernel.buffers)
        self.vector = False
        self.where = "the body"

    def run(self) -> None:
        names = [b.name for b in self.kernel.buffers]
        self.check(len(set(names)) == len(names), f"buffer names repeat: {names}")
        for buffer in self.kernel.buffers:
            self.check(buffer.dtype in SCALAR_DTYPES, f"buffer {buffer.name}: dtype {buffer.dtype}")
            self.check(
                buffer.space in ("in", "out", "local"),
                f"buffer {buffer.name}: space {buffer.space}",
            )
            self.check(
                buffer.space != "local" or buffer.size > 0, f"buffer {buffer.name} has no size"
            )
        self.block(self.kernel.body)

    def check(self, condition: bool, problem: str) -> None:
        if not condition:
            raise InternalError(f"kernel {self.kernel.name}, in {self.where}: {problem}")

    # ---- statements

    def block(self, body: Sequence[Stmt]) -> None:
        self.check(isinstance(body, tuple), "a body is a tuple of statements")
        introduced: list[Expr] = []
        for statement in body:
            self.statement(statement, introduced)
        self.bound.difference_update(introduced)

    def statement(self, s: Stmt, introduced: list[Expr]) -> None:
        outer = self.where
        if isinstance(s, Store):
            self.where = f"store to {s.buffer.name}"
            self.store(s)
        elif isinstance(s, If):
            self.where = "if"
            self.expr(s.condition, "bool")
            self.block(s.then)
        elif isinstance(s, For):
            self.where = f"for {s.var.attr}"
            self.bounds(s)
            self.vector_body(s, lambda: self.block(s.body))
        elif isinstance(s, Reduce):
            self.where = f"reduce {s.var.attr}"
            self.bounds(s)
            self.reduce(s)
            introduced += s.results
            self.bound.update(s.results)
        elif isinstance(s, Loop):
            self.where = f"loop {s.var.attr}"
            self.loop(s)
            introduced += s.results
            self.bound.update(s.results)
        elif isinstance(s, Prefetch):
            self.where = f"prefetch of {s.buffer.name}"
            self.check(s.buffer in self.buffers, "not a buffer of this kernel")
            self.expr(s.index, "i64")
        elif isinstance(s, TileCopy):
            self.where = f"tile copy of {s.array.name}"
            self.tile_copy(s)
        else:
            self.check(False, f"unknown statement {type(s).__name__}")
        self.where = outer

    def bounds(self, s: For | Reduce | Loop) -> None:
        self.expr(s.start, "i64")
        self.expr(s.stop, "i64")
        self.variable(s.var, "i64")

    def variable(self, var: Expr, dtype: str | None = None) -> None:
        self.check(var.op == "var", f"{var!r} is bound but is not a variable")
        self.check(var not in self.bound, f"variable {var.attr} is bound twice")
        self.check(dtype is None or var.dtype == dtype, f"variable {var.attr} is {var.dtype}")
        self.check(
            var.dtype not in ("f16", "bf16"), f"variable {var.attr}: {var.dtype} is for memory only"
        )

    def vector_body(self, s: For | Reduce, body: object) -> None:
        lanes = s.lanes
        self.check(
            0 < lanes <= MAX_LANES and lanes & (lanes - 1) == 0,
            f"lanes {lanes}: a power of two up to {MAX_LANES} is needed",
        )
        self.check(lanes == 1 or not self.vector, "a vector loop inside a vector loop")
        outer, self.vector = self.vector, self.vector or lanes > 1
        self.bound.add(s.var)
        body()  # type: ignore[operator]
        self.bound.discard(s.var)
        self.vector = outer

    def store(self, s: Store) -> None:
        self.check(s.buffer in self.buffers, f"{s.buffer.name} is not a buffer of this kernel")
        self.check(s.buffer.space != "in", f"{s.buffer.name} is only to be read")
        self.expr(s.index, "i64")
        self.expr(s.value, s.buffer.dtype)
        if s.mask is not None:
            self.expr(s.mask, "bool")

    def tile_copy(self, s: TileCopy) -> None:
        for buffer in (s.tile, s.array):
            self.check(buffer in self.buffers, f"{buffer.name} is not a buffer of this kernel")
        self.check(s.tile.space == "local", f"{s.tile.name} is not local")
        written = s.array if s.out else s.tile
        self.check(written.space != "in", f"{written.name} is only to be read")
        self.check(s.tile.dtype == s.array.dtype, f"{s.tile.dtype} and {s.array.dtype}")
        self.check(not self.vector, "inside a vector loop")
        size = ITEMSIZE[s.tile.dtype]
        self.check((size, s.lanes) in ((4, 16), (4, 8), (8, 8)), f"{s.lanes} lanes of {size} bytes")
        self.check(s.pitch % s.lanes == 0, f"pitch {s.pitch} of {s.lanes} lanes")
        self.check(s.tile.size % (s.pitch * s.lanes) == 0, f"{s.tile.name} has no whole blocks")
        for number in s.numbers:
            self.expr(number, "i64")

    def reduce(self, s: Reduce) -> None:
        combine = s.combine
        parts = (s.results, s.elements, s.identity, combine.left, combine.right, combine.result)
        self.check(len({len(p) for p in parts}) == 1 and s.results != (), "parts of unequal length")
        for identity, result in zip(s.identity, s.results, strict=True):
            self.expr(identity, result.dtype)

        def inside() -> None:
            introduced: list[Expr] = []
            for statement in s.body:
                self.statement(statement, introduced)
            for element, result in zip(s.elements, s.results, strict=True):
                self.expr(element, result.dtype)
            self.bound.difference_update(introduced)

        self.vector_body(s, inside)
        placeholders = (*combine.left, *combine.right)
        for var in (*placeholders, *s.results):
            self.variable(var)
        for group in (combine.left, combine.right):
            for var, result in zip(group, s.results, strict=True):
                self.check(var.dtype == result.dtype, f"placeholder {var.attr} is {var.dtype}")
        self.bound.update(placeholders)
        for value, result in zip(combine.result, s.results, strict=True):
            self.expr(value, result.dtype)
        self.bound.difference_update(placeholders)

    def loop(self, s: Loop) -> None:
        self.bounds(s)
        parts = (s.carries, s.inits, s.results, s.nexts)
        self.check(len({len(p) for p in parts}) == 1, "parts of unequal length")
        for carry, init, result in zip(s.carries, s.inits, s.results, strict=True):
            self.variable(carry)
            self.variable(result, carry.dtype)
            self.expr(init, carry.dtype)
        self.bound.update(s.carries)
        self.bound.add(s.var)
        if s.condition is not None:
            self.expr(s.condition, "bool")
        introduced: list[Expr] = []
        for statement in s.body:
            self.statement(statement, introduced)
        for carry, following in zip(s.carries, s.nexts, strict=True):
            self.expr(following, carry.dtype)
        self.bound.difference_update(introduced)
        self.bound.difference_update(s.carries)
        self.bound.discard(s.var)

    # ---- expressions

    def expr(self, root: Expr, dtype: str) -> None:
        """Checks an expression, and that it has this dtype."""
        self.check(isinstance(root, Expr), f"{root!r} is not an expression")
        self.check(root.dtype == dtype, f"{root!r} is {root.dtype}, expected {dtype}")
        seen: set[Expr] = set()
        stack = [root]
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            if node.op == "var":
                self.check(
                    node in self.bound, f"variable {node.attr} is used where it is not bound"
                )
            elif node not in self.checked:
                self.node(node)
                self.checked.add(node)
            stack.extend(node.args)

    def node(self, node: Expr) -> None:
        op, args, dtype = node.op, node.args, node.dtype
        self.check(dtype in SCALAR_DTYPES, f"{node!r}: dtype {dtype}")
        if op == "load":
            self.load(node)
        elif op == "const":
            kind = bool if dtype == "bool" else float if dtype[0] in "fb" else int
            self.check(type(node.attr) is kind, f"{dtype} constant {node.attr!r}")
        elif op == "param":
            self.check(
                dtype == "i64" and 0 <= node.attr < self.kernel.num_params,
                f"param {node.attr} of {self.kernel.num_params}",
            )
        elif op in ("grid_begin", "grid_end"):
            self.check(dtype == "i64", f"{op} is {dtype}")
        elif op == "if_any":
            self.check(
                len(args) == 3
                and args[0].dtype == "bool"
                and args[1].dtype == args[2].dtype == dtype,
                "if_any takes (bool, x, x)",
            )
        else:
            self.check(op in SCALAR_OPS, f"unknown opcode {op}")
            self.operation(node)

    def operation(self, node: Expr) -> None:
        op, args, dtype = node.op, node.args, node.dtype
        info = SCALAR_OPS[op]
        types = [a.dtype for a in args]
        self.check(len(args) == info.arity, f"{op} takes {info.arity} operands, got {len(args)}")
        if op == "convert":
            return
        if op == "bitcast":
            self.check(ITEMSIZE[types[0]] == ITEMSIZE[dtype], f"bitcast {types[0]} to {dtype}")
            return
        if op == "lookup":
            right = types[0] == "u32" and dtype == "f32" and len(node.attr) == LOOKUP_ENTRIES
            self.check(right, f"lookup of {types[0]} in a table of {len(node.attr)} {dtype}")
            return
        if info.result == "same2":
            self.check(types[0] == "bool" and types[1] == types[2] == dtype, f"{op} of {types}")
            return
        letter = _LETTER.get(types[0], types[0][0])
        self.check(letter in info.domain, f"{op} does not take {types[0]}")
        self.check(len(set(types)) == 1, f"{op} of unequal dtypes {types}")
        expected = "bool" if info.result == "bool" else types[0]
        self.check(dtype == expected, f"{op} of {types} is {dtype}, expected {expected}")

    def load(self, node: Expr) -> None:
        buffer, args = node.attr, node.args
        self.check(buffer in self.buffers, f"load of {buffer.name}, not a buffer of this kernel")
        self.check(len(args) in (1, 3), f"load of {buffer.name} with {len(args)} operands")
        self.check(args[0].dtype == "i64", f"index of {buffer.name} is {args[0].dtype}")
        self.check(node.dtype == buffer.dtype, f"load of {buffer.name} as {node.dtype}")
        if len(args) == 3:
            self.check(
                args[1].dtype == "bool" and args[2].dtype == buffer.dtype,
                f"mask or other of the load of {buffer.name}",
            )
