"""Loops of many scalars computed as lanes of vectors: what is packed, and bits as interpreted."""

from __future__ import annotations

import kernel_runner
import numpy as np
import pytest

from jato.compiler.llvm import emit
from jato.compiler.llvm.superwords import bundle_sources, columns, find_packing
from jato.loopir.builder import Builder
from jato.loopir.grammar import For, Loop

STEPS = 7


def kernel_of(count, body, dtype="f32", row=0, kept=0):
    """carries from `start`; body(b, carries, elements of this step's row) -> carries, kept values."""
    b = Builder()
    start, rows = b.input("start", dtype), b.input("rows", dtype)
    out, ys = b.output("out", dtype), b.output("ys", dtype)
    g = b.var("g", "i64", 0, 0)
    with b.block() as statements:
        inits = [b.load(start, b.index(i)) for i in range(count)]

        def step(t, carries):
            place = b.mul(t, b.index(row))
            elements = [b.load(rows, b.add(place, b.index(i))) for i in range(row)]
            after, values = body(b, carries, elements)
            for i, value in enumerate(values):
                b.store(ys, b.add(b.mul(t, b.index(kept)), b.index(i)), value)
            return tuple(after)

        results = b.loop("t", 0, STEPS, inits, step)
        for i, value in enumerate(results):
            b.store(out, b.index(i), value)
    b.append(For(g, b.grid_begin(), b.grid_end(), tuple(statements)))
    return b.kernel("loop")


def loop_of(kernel):
    (loop,) = (s for s in kernel.body[0].body if isinstance(s, Loop))
    return loop


def run(kernel, count, dtype, row=0, kept=0):
    rng = np.random.default_rng(count)
    numbers = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "u64": np.uint64}[dtype]

    def draw(n):
        if dtype[0] == "f":
            return rng.uniform(0.5, 1.5, n).astype(numbers)
        return rng.integers(0, 1000, n).astype(numbers)

    arrays = [draw(count), draw(row * STEPS), np.zeros(count, numbers), np.zeros(kept * STEPS, numbers)]
    kernel_runner.check(kernel, arrays, (), 0, 1)


# No product feeds a sum of floats: the machine may contract these, the interpreter does not.


def neighbours(b, c, x):
    n = len(c)
    return [b.div(b.add(c[i], c[(i + 1) % n]), b.add(c[(i + 3) % n], c[i])) for i in range(n)], []


def odd_ones(b, c, x):
    """One carry in seven has another operation, the first one another order."""
    out = []
    for i in range(len(c)):
        left, right = b.sub(c[i], c[i - 1]), b.max(c[i], c[i - 2])
        if i == 0:
            left, right = right, left
        out.append(b.sqrt(b.abs(left)) if i % 7 == 3 else b.add(left, right))
    return out, []


def choices(b, c, x):
    n = len(c)
    return [
        b.select(b.lt(c[i], c[(i + 1) % n]), b.sub(c[i], c[i - 1]), b.max(c[i], c[i - 3])) for i in range(n)
    ], []  # fmt: skip


def from_a_row(b, c, x):
    n = len(c)
    after = [b.sub(b.max(c[i], x[i]), b.sqrt(x[(i + 1) % n])) for i in range(n)]
    return after, [b.sub(after[i], x[-1 - i]) for i in range(n)]


def delayed(b, c, x):
    """Half of the carries are the values before."""
    n = len(c) // 2
    return [*[b.sub(b.max(c[i], c[n + i]), c[i - 1]) for i in range(n)], *c[:n], *c[2 * n :]], []


def scalar_chain(b, c, x):
    total = c[0]
    for value in c[1:]:
        total = b.max(b.sub(total, value), value)
    return [b.sub(value, total) for value in c], []


def integers(b, c, x):
    n = len(c)
    return [
        b.xor(b.mul(c[i], b.const(3, c[i].dtype)), b.shl(c[(i + 1) % n], b.const(2, c[i].dtype)))
        for i in range(n)
    ], []


@pytest.mark.parametrize("count", (4, 9, 16, 17, 31, 60, 64))
@pytest.mark.parametrize("body", (neighbours, odd_ones, choices, delayed, scalar_chain))
@pytest.mark.parametrize("dtype", ("f32", "f64"))
def test_floats(body, count, dtype):
    run(kernel_of(count, body, dtype), count, dtype)


@pytest.mark.parametrize("count", (5, 16, 29, 60))
@pytest.mark.parametrize("dtype", ("i32", "u64"))
def test_integers(count, dtype):
    run(kernel_of(count, integers, dtype), count, dtype)


@pytest.mark.parametrize("count", (8, 13, 16, 30, 60))
@pytest.mark.parametrize("dtype", ("f32", "f64"))
def test_rows_are_not_read_beyond_their_end(count, dtype):
    kernel = kernel_of(count, from_a_row, dtype, row=count, kept=count)
    run(kernel, count, dtype, count, count)


def test_sixty_neighbours_are_four_vectors():
    loop = loop_of(kernel_of(60, neighbours))
    packing = find_packing(loop, 512)
    assert packing.lanes == 16
    operations = [p for p in packing.packs if p.kind == "operation"]
    assert [len(p.members) for p in operations] == [16, 16, 16, 12] * 3
    assert [len(p.members) for p, _ in packing.carries] == [16, 16, 16, 12]
    for pack, following in packing.carries:  # a carry has the lane of what it becomes
        nexts = dict(zip(loop.carries, loop.nexts, strict=True))
        assert [nexts[c] for c in pack.members] == following
    # own values are in place, a neighbour's come from two registers
    shuffles = [
        len(bundle_sources(packing, column).packs) for pack in operations for column in columns(packing, pack)
    ]
    assert sorted(set(shuffles)) == [1, 2]


def test_several_of_another_kind_are_packs_of_their_own():
    packing = find_packing(loop_of(kernel_of(60, odd_ones)), 512)
    assert [len(p.present) for p, _ in packing.carries] == [16, 16, 16, 3, 9]


def test_one_of_another_kind_keeps_its_lane():
    def body(b, c, x):
        out = [b.add(b.sub(c[i], c[i - 1]), b.max(c[i], c[i - 2])) for i in range(60)]
        out[20] = b.sqrt(b.abs(c[20]))
        return out, []

    kernel = kernel_of(60, body)
    loop = loop_of(kernel)
    packing = find_packing(loop, 512)
    carries = [p for p, _ in packing.carries]
    assert [len(p.present) for p in carries] == [16, 16, 16, 12]
    assert packing.places[loop.carries[20]] == (carries[1], 4)
    assert packing.places[loop.nexts[20]][1] == 4
    assert packing.places[loop.nexts[21]][1] == 5
    run(kernel, 60, "f32")


def test_narrow_vectors_for_few_carries():
    def long(b, c, x):
        n = len(c)
        out = list(c)
        for _ in range(6):
            out = [b.div(b.add(out[i], c[i - 1]), b.sqrt(c[i])) for i in range(n)]
        return out, []

    assert find_packing(loop_of(kernel_of(7, long)), 512).lanes == 8
    assert find_packing(loop_of(kernel_of(16, long)), 512).lanes == 16
    assert find_packing(loop_of(kernel_of(16, long)), 256).lanes == 8
    assert find_packing(loop_of(kernel_of(16, long, "f64")), 512).lanes == 8


def test_small_loops_stay_scalar():
    def decay(b, c, x):
        return [b.sub(v, b.const(1.0, "f32")) for v in c], []

    assert find_packing(loop_of(kernel_of(8, decay)), 512) is None
    assert find_packing(loop_of(kernel_of(3, neighbours)), 512) is None


def test_packed_loops_are_written_with_vectors():
    (target, *_) = kernel_runner.TARGETS
    text = emit.emit_module([("k", kernel_of(60, neighbours))], target)
    lanes = target.lanes("f32")
    assert f"phi <{lanes} x float>" in text and "phi float" not in text
