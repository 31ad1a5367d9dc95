"""Random kernels: mixed dtypes, index patterns, guards, reductions; compiled against interpreted.

Every kernel is bit-exact: sums and products are made under `exact()`.
"""

import numpy as np
import pytest
from kernel_runner import check

from jato.loopir.builder import Builder
from jato.loopir.reference import NUMPY_DTYPES
from jato.loopir.scalar_ops import SCALAR_OPS

DTYPES = ["bool", "u8", "i16", "i32", "i64", "u32", "f16", "bf16", "f32", "f64"]
ROWS, COLUMNS = 3, 21
_NOT_HERE = ("convert", "bitcast", "select", "fma", "max", "min", "maxnum", "minnum", "lookup")
_LETTERS = {"bool": "b", "f16": "f", "bf16": "f"}


class Program:
    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.b = Builder()
        self.columns = self.b.param(0, 0, 1 << 40)
        self.inputs = [(self.b.input(f"x{k}", d), d) for k, d in enumerate(DTYPES)]
        self.order = self.b.input("order", "i32")

    def pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def load(self, row, column):
        b = self.b
        buffer, _ = self.pick(self.inputs)
        flat = b.add(b.mul(row, self.columns), column)
        last = b.sub(self.columns, 1)
        index = self.pick([
            lambda: flat,
            lambda: b.add(b.mul(row, self.columns), b.sub(last, column)),
            lambda: b.mul(column, 2),
            lambda: b.mul(column, 3),
            lambda: row,
            lambda: b.index(5),
            lambda: b.convert(b.load(self.order, column), "i64"),
            lambda: b.add(b.mul(column, ROWS), row),
            lambda: b.rem(flat, 7),
        ])()  # fmt: skip
        if self.rng.random() < 0.4:
            condition = b.lt(b.add(index, self.pick([0, 3, -2])), self.pick([4, 9, self.columns]))
            with b.guard(condition):
                return b.load(buffer, index)
        return b.load(buffer, index)

    def grow(self, nodes):
        b = self.b
        x = self.pick(nodes)
        same = [n for n in nodes if n.dtype == x.dtype]
        y, z = self.pick(same), self.pick(same)
        letter = _LETTERS.get(x.dtype, x.dtype[0])
        choice = self.rng.random()
        if choice < 0.2:
            return b.convert(x, self.pick(DTYPES))
        if choice < 0.3:
            return b.select(b.lt(x, y), z, x)
        if choice < 0.35 and x.dtype in ("f32", "f64"):
            return b.if_any(b.lt(x, y), lambda: b.abs(b.max(y, z)), x)
        op = self.pick(
            sorted(
                name
                for name, info in SCALAR_OPS.items()
                if info.kind == "machine" and letter in info.domain and name not in _NOT_HERE
            )
        )
        return b.op(op, *(x, y, z)[: SCALAR_OPS[op].arity])

    def values(self, row, column, count):
        nodes = [self.load(row, column) for _ in range(5)]
        nodes.append(self.b.convert(column, self.pick(["i32", "i64", "f32"])))
        with self.b.exact():
            for _ in range(count):
                nodes.append(self.grow(nodes))
        return nodes

    def kernel(self, lanes):
        b = self.b
        outputs = []
        with b.for_("r", b.grid_begin(), b.grid_end()) as r:
            with b.for_("c", 0, self.columns, lanes=lanes) as c:
                for node in self.values(r, c, 12)[-3:]:
                    out = b.output(f"y{len(outputs)}", node.dtype)
                    outputs.append((node.dtype, ROWS * COLUMNS))
                    b.store(out, b.add(b.mul(r, self.columns), c), node)
            for combine in ("add", "xor", "max"):
                total = b.reduce(
                    [self.columns], lambda j: b.convert(self.values(r, j, 6)[-1], "i64"), combine,
                    lanes=lanes,
                )  # fmt: skip
                out = b.output(f"y{len(outputs)}", "i64")
                outputs.append(("i64", ROWS))
                b.store(out, r, total)
        return b.kernel("random"), outputs


@pytest.mark.parametrize("seed", range(30))
def test_random_program(seed):
    program = Program(seed)
    kernel, outputs = program.kernel([1, 8, 16, 32][seed % 4])
    rng = np.random.default_rng(seed)
    size = 3 * COLUMNS
    arrays = []
    for _, dtype in program.inputs:
        values = rng.normal(size=size) * 10.0 ** rng.integers(-2, 4)
        kind = NUMPY_DTYPES[dtype]
        arrays.append((values if kind.kind != "u" else np.abs(values) % 200).astype(kind))
    columns = int(rng.choice([1, 5, 16, COLUMNS]))
    arrays.append(rng.integers(0, columns, size).astype(np.int32))
    arrays += [np.zeros(n, NUMPY_DTYPES[d]) for d, n in outputs]
    check(kernel, arrays, [columns], end=ROWS)
