"""The meaning of kernels: a slow interpreter in NumPy scalars, the oracle for code generation.

`run(kernel, arrays, params)` executes a kernel on NumPy arrays in place, one iteration after
another, `lanes` ignored.  It shares nothing with the LLVM path but the grammar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jato.base.errors import invariant
from jato.loopir.grammar import Buffer, Expr, For, If, Kernel, Prefetch, Reduce, Stmt, Store, TileCopy
from jato.loopir.reference import NUMPY_DTYPES, evaluate


def run(
    kernel: Kernel,
    arrays: Sequence[np.ndarray],
    params: Sequence[int] = (),
    begin: int = 0,
    end: int = 0,
) -> None:
    """Runs grid iterations [begin, end); `arrays`: flat, one per buffer that is not local."""
    memory: dict[Buffer, np.ndarray] = {}
    remaining = iter(arrays)
    for buffer in kernel.buffers:
        dtype = NUMPY_DTYPES[buffer.dtype]
        if buffer.space == "local":
            memory[buffer] = np.zeros(buffer.size, dtype)
        else:
            array = next(remaining)
            invariant(array.ndim == 1 and array.dtype == dtype, f"array for {buffer.name}")
            memory[buffer] = array
    _Machine(memory, params, begin, end).block(kernel.body)


class _Machine:
    def __init__(
        self, memory: Mapping[Buffer, np.ndarray], params: Sequence[int], begin: int, end: int
    ):
        self.memory = memory
        self.params = params
        self.grid = {"grid_begin": begin, "grid_end": end}
        self.values: dict[Expr, Any] = {}
        self.scopes: list[list[Expr]] = [[]]

    # ---- scopes: a value lives until the iteration that computed it ends

    def enter(self) -> None:
        self.scopes.append([])

    def leave(self) -> None:
        for expr in self.scopes.pop():
            self.values.pop(expr, None)

    def set(self, expr: Expr, value: Any) -> None:
        self.values[expr] = np.asarray(value, NUMPY_DTYPES[expr.dtype])[()]
        self.scopes[-1].append(expr)

    # ---- statements

    def block(self, body: Sequence[Stmt]) -> None:
        for statement in body:
            if isinstance(statement, Store):
                self.store(statement)
            elif isinstance(statement, If):
                if self.eval(statement.condition):
                    self.enter()
                    self.block(statement.then)
                    self.leave()
            elif isinstance(statement, For):
                for i in self.range(statement):
                    self.enter()
                    self.set(statement.var, i)
                    self.block(statement.body)
                    self.leave()
            elif isinstance(statement, Reduce):
                self.reduce(statement)
            elif isinstance(statement, Prefetch):
                self.eval(statement.index)
            elif isinstance(statement, TileCopy):
                self.tile_copy(statement)
            else:
                self.loop(statement)

    def range(self, s: Any) -> range:
        return range(int(self.eval(s.start)), int(self.eval(s.stop)))

    def store(self, s: Store) -> None:
        index, value = int(self.eval(s.index)), self.eval(s.value)
        if s.mask is None or self.eval(s.mask):
            array = self.memory[s.buffer]
            invariant(0 <= index < array.size, f"store to {s.buffer.name}[{index}] of {array.size}")
            array[index] = value

    def tile_copy(self, s: TileCopy) -> None:
        start, step, rows, columns = (int(self.eval(e)) for e in s.numbers)
        tile, array = self.memory[s.tile], self.memory[s.array]
        invariant(rows <= s.pitch, f"{rows} rows in a tile of {s.pitch}")
        for r in range(rows):
            for c in range(columns):
                inside, outside = c * s.pitch + r, start + r * step + c
                if s.out:
                    array[outside] = tile[inside]
                else:
                    tile[inside] = array[outside]

    def reduce(self, s: Reduce) -> None:
        totals = [self.eval(e) for e in s.identity]
        combine = s.combine
        for i in self.range(s):
            self.enter()
            self.set(s.var, i)
            self.block(s.body)
            elements = [self.eval(e) for e in s.elements]
            for var, value in zip(combine.left, totals, strict=True):
                self.set(var, value)
            for var, value in zip(combine.right, elements, strict=True):
                self.set(var, value)
            totals = [self.eval(e) for e in combine.result]
            self.leave()
        for var, value in zip(s.results, totals, strict=True):
            self.set(var, value)

    def loop(self, s: Any) -> None:
        values = [self.eval(e) for e in s.inits]
        for i in self.range(s):
            self.enter()
            for var, value in zip(s.carries, values, strict=True):
                self.set(var, value)
            self.set(s.var, i)
            if s.condition is not None and not self.eval(s.condition):
                self.leave()
                break
            self.block(s.body)
            values = [self.eval(e) for e in s.nexts]
            self.leave()
        for var, value in zip(s.results, values, strict=True):
            self.set(var, value)

    # ---- expressions

    def eval(self, root: Expr) -> Any:
        values = self.values
        stack = [root]
        while stack:
            node = stack[-1]
            if node in values:
                stack.pop()
                continue
            pending = [a for a in node.args if a not in values]
            if pending:
                stack.extend(pending)
                continue
            stack.pop()
            self.set(node, self.node(node))
        return values[root]

    def node(self, node: Expr) -> Any:
        op = node.op
        if op == "const":
            return node.attr
        if op == "param":
            return self.params[node.attr]
        if op in self.grid:
            return self.grid[op]
        if op == "load":
            return self.load(node)
        invariant(op != "var", f"variable {node.attr} is not bound")
        operands = tuple(self.values[a] for a in node.args)
        return evaluate(op, operands, node.dtype, node.attr)

    def load(self, node: Expr) -> Any:
        args = node.args
        if len(args) == 3 and not self.values[args[1]]:
            return self.values[args[2]]
        array, index = self.memory[node.attr], int(self.values[args[0]])
        invariant(0 <= index < array.size, f"load of {node.attr.name}[{index}] of {array.size}")
        return array[index]
