"""Expressions to LLVM values, each once, in the outermost scope where its operands are known.

Scope   a place that instructions go to: the function, the preheader or body of a loop, a branch.
        The open scopes form a chain; level = position in it.  An expression goes to the highest
        level among its operands, so that whatever does not change in a loop is computed before it.
Val     what is known of an expression: a scalar register or constant (lanes == 0), a vector
        register, or an affine value: base + coefficient * lane, kept as two scalars until someone
        needs the vector.  Addresses stay affine to the end and so cost scalar arithmetic only.

Start reading at `value`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Union

from jato.base.errors import invariant
from jato.compiler.llvm import instructions as ins
from jato.compiler.llvm import lookups, math, remainder
from jato.compiler.llvm.instructions import Code, FunctionText
from jato.compiler.llvm.target import Target
from jato.loopir.builder import Builder
from jato.loopir.grammar import Expr
from jato.loopir.scalar_ops import is_math

Coefficient = Union[int, str]

_AFFINE_OPS = frozenset(("add", "sub", "mul", "neg", "convert"))
_INDEX_OPS = frozenset(("add", "sub", "mul", "neg", "div", "rem", "min", "max"))
_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
_INTEGERS = frozenset(("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"))
# Indices are far below this, so that their sums and differences do not wrap.
_INDEX_LIMIT = 1 << 48
_STEP_LIMIT = 1 << 20
# Serials of expressions made by expansion lie above those of the kernel's own builder.
_EXPANSION_SERIAL = 1 << 40


class Val:
    """See the module's docstring.  `index`: an i64 made of loop variables and parameters only,
    known to be far from wrapping."""

    __slots__ = ("coefficient", "index", "lanes", "level", "splats", "text")

    def __init__(
        self, text: str, lanes: int, level: int, coefficient: Coefficient | None = None,
        index: bool = False,
    ):  # fmt: skip
        self.text = text
        self.lanes = lanes
        self.level = level
        self.coefficient = coefficient
        self.index = index
        self.splats: dict[int, str] | None = None


class Scope:
    """`loads_may_leave`: whatever is here runs whenever the parent scope does."""

    __slots__ = ("code", "defined", "level", "loads_may_leave")

    def __init__(self, code: Code, level: int, loads_may_leave: bool):
        self.code = code
        self.level = level
        self.loads_may_leave = loads_may_leave
        self.defined: list[Expr] = []


class ValueEmitter:
    """Evaluates expressions within scopes; memory.py and emit.py build on it."""

    def __init__(self, text: FunctionText, target: Target):
        self.text = text
        self.target = target
        self.scopes: list[Scope] = [Scope(Code(text, "entry"), 0, False)]
        self.values: dict[Expr, Val] = {}
        self.expansions: dict[Expr, Expr] = {}
        self.expander = Builder(_EXPANSION_SERIAL)
        self.lookup_tables: dict[tuple[float, ...], tuple[str, str]] = {}
        self.functions: MathFunctions | None = None
        self.called: frozenset[tuple[str, str]] = frozenset()  # (opcode, dtype) not expanded here
        self.lanes = 0  # of the enclosing vector loop
        self.mask: str | None = None  # its active lanes; None: all
        self.floor = 0  # level of the innermost rare block being emitted: nothing leaves it

    # ---- scopes

    @property
    def scope(self) -> Scope:
        return self.scopes[-1]

    @property
    def code(self) -> Code:
        return self.scopes[-1].code

    def push(self, label: str, loads_may_leave: bool) -> Scope:
        """Opens a scope whose code begins at a block of this name."""
        return self._push(Code(self.text, label), loads_may_leave)

    def push_inline(self) -> Scope:
        """Opens a scope that shares the code of the current one (values are forgotten after)."""
        return self._push(self.code, True)

    def _push(self, code: Code, loads_may_leave: bool) -> Scope:
        scope = Scope(code, len(self.scopes), loads_may_leave)
        self.scopes.append(scope)
        return scope

    def pop(self) -> Scope:
        scope = self.scopes.pop()
        for expr in scope.defined:
            self.values.pop(expr, None)
        return scope

    def define(self, expr: Expr, val: Val) -> Val:
        self.values[expr] = val
        self.scopes[val.level].defined.append(expr)
        return val

    # ---- registers

    def scalar(self, expr: Expr) -> str:
        """The value of an expression that is the same in all lanes."""
        val = self.value(expr)
        invariant(val.lanes == 0, f"{expr!r} differs between lanes where one value is needed")
        return val.text

    def vector(self, val: Val, dtype: str, lanes: int) -> str:
        """A value in `lanes` lanes; lanes == 0 asks for a scalar."""
        if val.coefficient is None and val.lanes == lanes:
            return val.text
        invariant(lanes > 0 and val.lanes in (0, lanes), "a vector of another width")
        if val.splats is None:
            val.splats = {}
        known = val.splats.get(lanes)
        if known is None:
            known = val.splats[lanes] = self._spread(val, dtype, lanes)
        return known

    def _spread(self, val: Val, dtype: str, lanes: int) -> str:
        scalar_type = ins.SCALAR_TYPE[dtype]
        if not val.text.startswith("%"):
            base = ins.splat_constant(val.text, scalar_type)
        else:
            base = ins.splat(self.scopes[val.level].code, val.text, scalar_type, lanes)
        if val.coefficient is None:
            return base
        code = self.scopes[val.level].code
        kind = ins.type_of(dtype, lanes)
        if isinstance(val.coefficient, int):
            steps = ins.lane_numbers(scalar_type, lanes, val.coefficient)
        else:
            factor = ins.splat(code, val.coefficient, scalar_type, lanes)
            steps = code.ins(f"mul {kind} {factor}, {ins.lane_numbers(scalar_type, lanes)}")
        return steps if base == "zeroinitializer" else code.ins(f"add {kind} {base}, {steps}")

    def text_of(self, expr: Expr, lanes: int) -> str:
        """The value of an expression in `lanes` lanes (0: scalar)."""
        return self.vector(self.value(expr), expr.dtype, lanes)

    # ---- evaluation

    def value(self, root: Expr) -> Val:
        """The value of an expression, emitted if it is new.  Iterative: chains can be long."""
        known = self.values.get(root)
        if known is not None:
            return known
        values = self.values
        stack = [root]
        while stack:
            node = stack[-1]
            if node in values:
                stack.pop()
                continue
            pending = [arg for arg in self.needs(node) if arg not in values]
            if pending:
                stack.extend(reversed(pending))
                continue
            stack.pop()
            self.emit(node)
        return values[root]

    def needs(self, node: Expr) -> tuple[Expr, ...]:
        """What must be evaluated before a node."""
        if node.op == "if_any":
            return (node.args[0], node.args[2])
        if self.is_expanded(node):
            return (self.expansion(node),)
        return node.args

    def is_expanded(self, node: Expr) -> bool:
        """Emitted as other opcodes: math, and the remainder of floats."""
        if node.op == "rem":
            return node.dtype in ("f32", "f64") and node.attr != remainder.LIBRARY
        return is_math(node.op) and (node.op, node.dtype) not in self.called

    def expansion(self, node: Expr) -> Expr:
        """A math opcode in terms of machine opcodes."""
        known = self.expansions.get(node)
        if known is None:
            with self.expander.exact():
                if node.op == "rem":
                    known = remainder.expand_remainder(self.expander, node)
                else:
                    known = math.expand(
                        self.expander, node.op, node.args, node.dtype, self.target.has_tables
                    )
            self.expansions[node] = known
        return known

    def emit(self, node: Expr) -> Val:
        """Emits one node whose needs are met."""
        op = node.op
        if op == "const":
            small = node.dtype == "i64" and abs(node.attr) < _INDEX_LIMIT
            text = ins.constant(node.attr, node.dtype)
            return self.define(node, Val(text, 0, 0, None, small))
        if op == "load":
            return self.define(node, self.load(node))
        if op == "if_any":
            return self.define(node, self._if_any(node))
        if op in ("param", "grid_begin", "grid_end"):
            return self.define(node, self.argument(node))
        if op == "var":
            invariant(False, f"variable {node.attr} is used outside its loop")
        if self.is_expanded(node):
            val = self.values[self.expansion(node)]
            return self.define(node, val)
        return self.define(node, self._operation(node))

    def load(self, node: Expr) -> Val:
        raise NotImplementedError  # memory.py

    def argument(self, node: Expr) -> Val:
        raise NotImplementedError  # emit.py

    def _operation(self, node: Expr) -> Val:
        args = node.args
        vals = [self.values[a] for a in args]
        level = max(self.floor, *[v.level for v in vals])
        lanes = max(v.lanes for v in vals)
        op, dtype = node.op, node.dtype
        index = dtype == "i64" and op in _INDEX_OPS and all(v.index for v in vals)
        code = self.scopes[level].code
        if lanes:
            if op in _AFFINE_OPS and dtype in _INTEGERS:
                affine = self._affine(code, node, vals, level, index)
                if affine is not None:
                    return affine
            if op in _COMPARISONS and args[0].dtype == "i64" and all(v.index for v in vals):
                text = self._compare_indices(code, op, vals, lanes)
                if text is not None:
                    return Val(text, lanes, level)
        if op == "select":
            return self._select(code, node, vals, lanes, level)
        if is_math(op) and self.functions is not None:
            return self._call(code, node, vals, lanes, level)
        operands = [self.vector(v, a.dtype, lanes) for v, a in zip(vals, args, strict=True)]
        if op == "lookup":
            return Val(lookups.lookup(code, operands[0], self._halves(node.attr), lanes), lanes, level)
        if index and lanes and op in ("div", "rem") and vals[1].lanes == 0:
            text = self._divide_indices(code, op, operands[0], vals[1], lanes)
            return Val(text, lanes, level, None, True)
        text = ins.emit_operation(code, op, node.attr, dtype, args[-1].dtype, operands, lanes)
        return Val(text, lanes, level, None, index)

    def _halves(self, table: tuple[float, ...]) -> tuple[str, str]:
        """The two registers of a table, loaded once in the outermost scope."""
        known = self.lookup_tables.get(table)
        if known is None:
            known = self.lookup_tables[table] = lookups.table_halves(self.scopes[0].code, table)
        return known

    def _call(self, code: Code, node: Expr, vals: list[Val], lanes: int, level: int) -> Val:
        """A math opcode as a call of the module's function for it."""
        assert self.functions is not None
        symbol = self.functions.symbol(node.op, node.dtype, len(vals), lanes)
        kind = ins.type_of(node.dtype, lanes)
        operands = ", ".join(f"{kind} {self.vector(v, node.dtype, lanes)}" for v in vals)
        return Val(code.ins(f"call fastcc {kind} @{symbol}({operands})"), lanes, level)

    def _select(self, code: Code, node: Expr, vals: list[Val], lanes: int, level: int) -> Val:
        condition, x, y = vals
        wide = condition.lanes
        mask = self.vector(condition, "bool", wide) if wide else condition.text
        p, q = self.vector(x, node.dtype, lanes), self.vector(y, node.dtype, lanes)
        text = ins.select(code, mask, p, q, ins.type_of(node.dtype, lanes), wide)
        return Val(text, lanes, level)

    def _divide_indices(self, code: Code, op: str, x: str, divisor: Val, lanes: int) -> str:
        """Indices by a uniform divisor, in f64: machines do not divide vectors of i64."""
        kind, y, zero = ins.type_of("i64", lanes), divisor.text, ""
        if y.startswith("%"):
            outer = self.scopes[divisor.level].code
            zero = outer.ins(f"icmp eq i64 {y}, 0")
            safe = outer.ins(f"select i1 {zero}, i64 1, i64 {y}")
            spread = ins.splat(outer, safe, "i64", lanes)
        else:
            spread = ins.splat_constant(y if y != "0" else "1", "i64")
            zero = "true" if y == "0" else ""
        quotient = ins.index_quotient(code, x, spread, lanes)
        if zero:
            quotient = ins.select(code, zero, "splat (i64 -1)", quotient, kind, 0)
        if op == "div":
            return quotient
        product = code.ins(f"mul {kind} {quotient}, {self.vector(divisor, 'i64', lanes)}")
        return code.ins(f"sub {kind} {x}, {product}")

    # ---- affine values

    def _affine(
        self, code: Code, node: Expr, vals: list[Val], level: int, index: bool
    ) -> Val | None:
        """Sums, products with a uniform value and narrowing keep base + coefficient * lane."""
        if any(v.lanes and v.coefficient is None for v in vals):
            return None
        lanes = max(v.lanes for v in vals)
        op, dtype = node.op, node.dtype
        kind = ins.SCALAR_TYPE[dtype]
        steps = [0 if v.coefficient is None else v.coefficient for v in vals]
        first = vals[0]
        if op == "convert":
            source = node.args[0].dtype
            if ins.BITS[dtype] > ins.BITS[source] or not isinstance(steps[0], int):
                return None
            base = ins.convert(code, first.text, source, dtype, 0)
            return Val(base, lanes, level, steps[0])
        if op == "neg":
            base = self._scalar_op(code, "sub", kind, "0", first.text)
            return Val(base, lanes, level, self._step(code, "sub", kind, 0, steps[0]), index)
        if op == "mul":
            if all(v.lanes for v in vals):
                return None
            factor = vals[1] if first.lanes else first
            step = steps[0] if first.lanes else steps[1]
            base = self._scalar_op(code, "mul", kind, first.text, vals[1].text)
            by: Coefficient = factor.text
            if not factor.text.startswith("%"):
                by = int(factor.text)
            step = self._step(code, "mul", kind, step, by)
        else:
            base = self._scalar_op(code, op, kind, first.text, vals[1].text)
            step = self._step(code, op, kind, steps[0], steps[1])
        if step == 0:
            return Val(base, 0, level, None, index)
        return Val(base, lanes, level, step, index)

    def _scalar_op(self, code: Code, op: str, kind: str, x: str, y: str) -> str:
        if y == "0" and op != "mul":
            return x
        if x == "0" and op == "add":
            return y
        return code.ins(f"{op} {kind} {x}, {y}")

    def _step(self, code: Code, op: str, kind: str, x: Coefficient, y: Coefficient) -> Coefficient:
        if isinstance(x, int) and isinstance(y, int):
            return x + y if op == "add" else x - y if op == "sub" else x * y
        if op == "mul" and (x == 1 or y == 1):
            return y if x == 1 else x
        return self._scalar_op(code, op, kind, str(x), str(y))

    def _compare_indices(self, code: Code, op: str, vals: list[Val], lanes: int) -> str | None:
        """base + step * lane < other  ->  <0, step, ..> < splat(other - base), in 32 bits."""
        steps = [0 if v.coefficient is None else v.coefficient for v in vals]
        if any(v.lanes and v.coefficient is None for v in vals):
            return None
        if not all(isinstance(s, int) and abs(s) < _STEP_LIMIT for s in steps):
            return None
        step = int(steps[0]) - int(steps[1])
        distance = self._scalar_op(code, "sub", "i64", vals[1].text, vals[0].text)
        limit = (1 << 31) - 1
        pair = ["i64", "i64"]
        low = code.call("llvm.smax.i64", "i64", pair, [distance, str(-limit)])
        clamped = code.call("llvm.smin.i64", "i64", pair, [low, str(limit)])
        small = code.ins(f"trunc i64 {clamped} to i32")
        other = ins.splat(code, small, "i32", lanes)
        predicate = {"eq": "eq", "ne": "ne"}.get(op) or "s" + op
        numbers = ins.lane_numbers("i32", lanes, step)
        return code.ins(f"icmp {predicate} <{lanes} x i32> {numbers}, {other}")

    # ---- branches inside expressions

    def _if_any(self, node: Expr) -> Val:
        """fast; then, if a lane of the mask is set, a block that computes slow and selects."""
        mask, slow, fast = node.args
        condition, fast_val = self.values[mask], self.values[fast]
        level = max(self.floor, self.depth(slow), condition.level, fast_val.level)
        inner, self.scopes = self.scopes[level + 1 :], self.scopes[: level + 1]
        code, wide = self.code, condition.lanes
        rare_label, done = self.text.label("rare"), self.text.label("joined")
        outer_floor, self.floor = self.floor, level + 1
        self.push(rare_label, False)
        slow_val = self.value(slow)
        self.floor = outer_floor
        lanes = max(slow_val.lanes, wide, fast_val.lanes)
        kind = ins.type_of(node.dtype, lanes)
        y = self.vector(fast_val, node.dtype, lanes)
        x = self.vector(slow_val, node.dtype, lanes)
        chosen = ins.select(self.code, condition.text, x, y, kind, wide)
        rare = self.pop().code
        self.scopes += inner
        any_lane = any_of(code, condition.text, wide)
        before = code.label
        code.do(f"br i1 {any_lane}, label %{rare_label}, label %{done}")
        code.lines.append(f"{rare_label}:")
        code.lines += rare.lines
        code.do(f"br label %{done}")
        code.start(done)
        text = code.ins(f"phi {kind} [{y}, %{before}], [{chosen}, %{rare.label}]")
        return Val(text, lanes, level)

    def depth(self, root: Expr) -> int:
        """The level an expression that is not yet emitted will go to."""
        level = 0
        seen: set[Expr] = set()
        stack: list[Expr] = [root]
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            known = self.values.get(node)
            if known is not None:
                level = max(level, known.level)
            elif node.op == "load":
                return len(self.scopes) - 1
            else:
                children: Iterable[Expr] = node.args if node.op == "if_any" else self.needs(node)
                stack.extend(children)
        return level


def any_of(code: Code, mask: str, lanes: int) -> str:
    """Whether any lane of a mask is set (lanes == 0: it is one bit already)."""
    if not lanes:
        return mask
    bits = code.ins(f"bitcast <{lanes} x i1> {mask} to i{lanes}")
    return code.ins(f"icmp ne i{lanes} {bits}, 0")


class MathFunctions:
    """Functions of one module for math opcodes that a kernel uses many times.

    Expanding `sin` at each of 50 uses would cost 50 times its code generation; the call costs
    little beside the function.  `symbol` makes a function when it is first asked for."""

    def __init__(self, declarations: dict[str, str], target: Target):
        self.declarations = declarations
        self.target = target
        self.texts: dict[str, str] = {}

    def symbol(self, op: str, dtype: str, arity: int, lanes: int) -> str:
        name = f"{op}_{dtype}_{lanes}"
        if name not in self.texts:
            self.texts[name] = ""
            self.texts[name] = self._function(name, op, dtype, arity, lanes)
        return name

    def _function(self, name: str, op: str, dtype: str, arity: int, lanes: int) -> str:
        emitter = ValueEmitter(FunctionText(self.declarations), self.target)
        kind = ins.type_of(dtype, lanes)
        args = [emitter.expander.var(f"x{i}", dtype) for i in range(arity)]
        for i, arg in enumerate(args):
            emitter.define(arg, Val(f"%x{i}", lanes, 0))
        node = Expr(op, tuple(args), dtype, None, 0)
        result = emitter.text_of(emitter.expansion(node), lanes)
        parameters = ", ".join(f"{kind} %x{i}" for i in range(arity))
        return "\n".join(
            [
                f"define internal fastcc {kind} @{name}({parameters}) noinline #1 {{",
                "entry:",
                *emitter.code.lines,
                f"  ret {kind} {result}",
                "}",
                "",
            ]
        )
