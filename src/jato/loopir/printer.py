"""Kernels as text: to read, to compare in tests, and as the key of the code caches.

Every operation is a line `%n = op operands`, printed before the first statement that needs it;
constants stand inline.  Numbers follow the order of printing, never the builder's serials, so that
equal kernels give equal text.  `kernel_text` leaves out names, which do not change the code.

    kernel exp (params 0)
      in  x: f32
      out y: f32
      for i in grid_begin .. grid_end lanes 16
        %0 = load f32 x[i]
        %1 = exp f32 %0
        y[i] = %1
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jato.loopir.grammar import Buffer, Expr, For, If, Kernel, Loop, Prefetch, Reduce, Stmt, Store, TileCopy


def print_kernel(kernel: Kernel) -> str:
    """The kernel with its own names, for people and golden files."""
    return _Printer(kernel, named=True).run()


def kernel_text(kernel: Kernel) -> str:
    """The kernel without names or notes: equal text, equal machine code."""
    return _Printer(kernel, named=False).run()


class _Printer:
    def __init__(self, kernel: Kernel, named: bool):
        self.kernel = kernel
        self.named = named
        self.lines: list[str] = []
        self.names: dict[Expr, str] = {}
        self.buffers: dict[Buffer, str] = {}
        self.printed: list[list[Expr]] = [[]]
        self.indent = "  "
        self.count = 0
        self.vars = 0

    def run(self) -> str:
        kernel = self.kernel
        title = f"kernel {kernel.name}" if self.named else "kernel"
        flags = " in_place" if kernel.in_place else ""
        self.lines.append(f"{title} (params {kernel.num_params}){flags}")
        for position, buffer in enumerate(kernel.buffers):
            name = buffer.name if self.named else f"b{position}"
            self.buffers[buffer] = name
            size = f"[{buffer.size}]" if buffer.space == "local" else ""
            self.lines.append(f"  {buffer.space} {name}: {buffer.dtype}{size}")
        self._block(kernel.body)
        return "\n".join(self.lines) + "\n"

    # ---- statements

    def _block(self, body: Sequence[Stmt]) -> None:
        """Statements in a scope: what is printed inside is forgotten after."""
        self.printed.append([])
        for statement in body:
            self._statement(statement)
        for expr in self.printed.pop():
            del self.names[expr]

    def _inner(self, body: Sequence[Stmt], before: Iterable[Expr], after: str) -> None:
        """An indented body, then expressions that are evaluated in it, then a line."""
        self.indent += "  "
        self.printed.append([])
        for statement in body:
            self._statement(statement)
        values = self._list(before)
        if after:
            self._line(f"{after} {values}")
        for expr in self.printed.pop():
            del self.names[expr]
        self.indent = self.indent[:-2]

    def _line(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def _statement(self, s: Stmt) -> None:
        if isinstance(s, Store):
            mask = f" where {self._value(s.mask)}" if s.mask is not None else ""
            target = f"{self.buffers[s.buffer]}[{self._value(s.index)}]"
            self._line(f"{target} = {self._value(s.value)}{mask}")
        elif isinstance(s, If):
            self._line(f"if {self._value(s.condition)}")
            self._inner(s.then, (), "")
        elif isinstance(s, For):
            bounds = f"{self._value(s.start)} .. {self._value(s.stop)}"
            self._line(f"for {self._bind(s.var)} in {bounds}{_lanes(s.lanes)}")
            self._inner(s.body, (), "")
        elif isinstance(s, Reduce):
            self._reduce(s)
        elif isinstance(s, Prefetch):
            self._line(f"prefetch {self.buffers[s.buffer]}[{self._value(s.index)}]")
        elif isinstance(s, TileCopy):
            start, step, rows, columns = map(self._value, s.numbers)
            tile = f"{self.buffers[s.tile]}[c {s.pitch} + r]"
            array = f"{self.buffers[s.array]}[{start} + r {step} + c]"
            target, source = (array, tile) if s.out else (tile, array)
            self._line(
                f"{target} = {source} for r < {rows}, c < {columns}{_lanes(s.lanes)}"
            )
        else:
            self._loop(s)

    def _reduce(self, s: Reduce) -> None:
        bounds = f"{self._value(s.start)} .. {self._value(s.stop)}"
        identity = self._list(s.identity)
        results = ", ".join(self._bind(r) for r in s.results)
        types = ", ".join(r.dtype for r in s.results)
        self._line(
            f"{results}: {types} = reduce {self._bind(s.var)} in {bounds}{_lanes(s.lanes)} "
            f"from {identity}"
        )
        self._inner(s.body, s.elements, "element")
        left = ", ".join(self._bind(v) for v in s.combine.left)
        right = ", ".join(self._bind(v) for v in s.combine.right)
        self._line(f"  combine ({left}), ({right})")
        self.indent += "  "
        self._inner((), s.combine.result, "gives")
        self.indent = self.indent[:-2]

    def _loop(self, s: Loop) -> None:
        bounds = f"{self._value(s.start)} .. {self._value(s.stop)}"
        inits = self._list(s.inits)
        results = ", ".join(self._bind(r) for r in s.results)
        carries = ", ".join(f"{self._bind(c)}: {c.dtype}" for c in s.carries)
        self._line(
            f"{results} = loop {self._bind(s.var)} in {bounds} carries {carries} from {inits}"
        )
        if s.condition is not None:
            self._inner((), (s.condition,), "while")
        self._inner(s.body, s.nexts, "next")

    # ---- expressions

    def _bind(self, var: Expr) -> str:
        """Names a variable where it is introduced."""
        if self.named:
            name = str(var.attr)
        else:
            name = f"v{self.vars}"
            self.vars += 1
        self.names[var] = name
        return name

    def _list(self, exprs: Iterable[Expr]) -> str:
        return ", ".join([self._value(e) for e in exprs])

    def _value(self, root: Expr) -> str:
        names = self.names
        known = names.get(root)
        if known is not None:
            return known
        stack = [root]
        while stack:
            node = stack[-1]
            if node in names:
                stack.pop()
                continue
            pending = [a for a in node.args if a not in names]
            if pending:
                stack.extend(reversed(pending))
                continue
            stack.pop()
            names[node] = self._define(node)
            self.printed[-1].append(node)
        return names[root]

    def _define(self, node: Expr) -> str:
        op = node.op
        if op == "const":
            return f"{node.attr!r}:{node.dtype}"
        if op == "param":
            return f"p{node.attr}"
        if op in ("grid_begin", "grid_end"):
            return op
        if op == "var":
            return f"?{node.attr}" if self.named else "?"  # unbound: the verifier complains
        name = f"%{self.count}"
        self.count += 1
        args = [self.names[a] for a in node.args]
        if op == "load":
            tail = f" where {args[1]} else {args[2]}" if len(args) == 3 else ""
            text = f"load {node.dtype} {self.buffers[node.attr]}[{args[0]}]{tail}"
        else:
            exact = f".{node.attr}" if node.attr is not None else ""
            text = f"{op}{exact} {node.dtype} {', '.join(args)}"
        self._line(f"{name} = {text}")
        return name


def _lanes(lanes: int) -> str:
    return f" lanes {lanes}" if lanes > 1 else ""
