"""What the builder simplifies, and that simplifying never changes a value."""

import itertools
import math
import random

import numpy as np
import pytest

from jato.base.errors import InternalError
from jato.loopir import interp
from jato.loopir.builder import Builder, identity_of
from jato.loopir.grammar import For, If, Loop, Reduce, Store
from jato.loopir.reference import NUMPY_DTYPES
from jato.loopir.verify import verify


@pytest.fixture
def b():
    return Builder()


def index_vars(b):
    return b.var("i", "i64", 0, 9), b.var("j", "i64", 0, 7), b.param(0, 0, 1 << 40)


# ---- index arithmetic


def test_equal_addresses_are_one_object(b):
    i, j, n = index_vars(b)
    first = b.add(b.add(b.mul(i, n), j), 3)
    second = b.add(b.add(3, b.mul(n, i)), j)
    assert first is second
    assert b.sub(b.add(first, 5), 5) is first
    assert b.mul(b.add(i, n), 4) is b.add(b.mul(i, 4), b.mul(4, n))
    assert b.sub(first, first).attr == 0
    assert b.neg(b.neg(first)) is first


def test_products_of_indices_distribute(b):
    i, j, n = index_vars(b)
    m = b.param(1, 0, 1 << 20)
    assert b.mul(b.add(b.mul(i, n), j), m) is b.add(b.mul(b.mul(i, m), n), b.mul(m, j))


def test_quotient_and_remainder_of_a_flattened_index(b):
    i, j, _ = index_vars(b)
    flat = b.add(b.mul(i, 8), j)
    assert b.div(flat, 8) is i
    assert b.rem(flat, 8) is j
    assert b.div(flat, 4) is b.add(b.mul(i, 2), b.div(j, 4))
    assert b.rem(flat, 4) is b.rem(j, 4)
    assert b.div(b.add(flat, 8), 8) is b.add(i, 1)
    assert b.rem(flat, 16) is b.add(b.mul(b.rem(i, 2), 8), j)
    assert b.div(flat, 80).attr == 0
    assert b.rem(flat, 80) is flat
    assert b.div(b.div(flat, 2), 4) is i
    assert b.rem(b.rem(flat, 16), 8) is j


def test_ranges_decide_comparisons(b):
    i, j, n = index_vars(b)
    flat = b.add(b.mul(i, 8), j)
    assert b.range(flat) == (0, 79)
    assert b.lt(flat, 80).attr is True
    assert b.ge(flat, 0).attr is True
    assert b.lt(i, b.add(i, 1)).attr is True
    assert b.eq(flat, 100).attr is False
    assert b.lt(b.sub(i, 1), 0).op == "lt"
    assert b.range(b.rem(n, 5)) == (0, 4)
    assert b.max(i, 20).attr == 20
    assert b.min(j, 20) is j
    assert b.range(b.convert(i, "i32")) == (0, 9)
    assert b.convert(b.convert(i, "i32"), "i64") is i


def test_range_of_wrapping_data_is_not_trusted(b):
    x = b.input("x", "i64")
    value = b.load(x, 0)
    assert b.lt(value, b.add(value, 1)).op == "lt"
    assert b.convert(b.convert(value, "i32"), "i64").op == "convert"


def test_random_index_expressions_keep_their_value():
    """Simplified by the builder, and computed by hand with the opcodes' own meaning."""
    rng = np.random.default_rng(1)

    def trunc_div(x, y):
        q = abs(x) // abs(y)
        return q if (x < 0) == (y < 0) else -q

    for _ in range(400):
        b = Builder()
        sizes = [int(s) for s in rng.integers(1, 7, 3)]
        variables = [b.var(f"v{k}", "i64", 0, s - 1) for k, s in enumerate(sizes)]
        plans, nodes = [], list(variables)
        for _ in range(8):
            op = str(rng.choice(["add", "sub", "mulc", "div", "rem", "min", "max", "sel"]))
            p, q = (int(x) for x in rng.integers(0, len(nodes), 2))
            c = int(rng.choice([1, 2, 3, 4, 6, 8, 12]))
            plans.append((op, p, q, c))
            x, y = nodes[p], nodes[q]
            nodes.append({
                "add": lambda: b.add(x, y), "sub": lambda: b.sub(x, y), "mulc": lambda: b.mul(x, c),
                "div": lambda: b.div(x, c), "rem": lambda: b.rem(x, c), "min": lambda: b.min(x, y),
                "max": lambda: b.max(x, y), "sel": lambda: b.select(b.lt(x, y), x, b.sub(y, c)),
            }[op]())  # fmt: skip
        out = b.output("out", "i64")
        for k, node in enumerate(nodes):
            b.store(out, k, node)
        ranges = [b.range(node) for node in nodes]
        kernel_body = b.kernel("k")
        for point in itertools.product(*(range(s) for s in sizes)):
            values = list(point)
            for op, p, q, c in plans:
                x, y = values[p], values[q]
                values.append({
                    "add": x + y, "sub": x - y, "mulc": x * c, "div": trunc_div(x, c),
                    "rem": x - c * trunc_div(x, c), "min": min(x, y), "max": max(x, y),
                    "sel": x if x < y else y - c,
                }[op])  # fmt: skip
            got = np.zeros(len(values), np.int64)
            machine = interp._Machine({out: got}, (), 0, 0)
            for var, value in zip(variables, point, strict=True):
                machine.set(var, value)
            machine.block(kernel_body.body)
            assert got.tolist() == values
            for value, (low, high) in zip(values, ranges, strict=True):
                assert low <= value <= high
            if rng.random() < 0.7:
                break


# ---- floats


def test_float_identities_change_no_bit(b):
    x = b.load(b.input("x", "f32"), 0)
    assert b.mul(x, 1.0) is x
    assert b.sub(x, 0.0) is x
    assert b.add(x, -0.0) is x
    assert b.add(x, 0.0).op == "add"  # -0.0 + 0.0 is 0.0
    assert b.mul(x, 0.0).op == "mul"  # NaN, infinities, signs
    assert b.sub(x, x).op == "sub"
    assert b.eq(x, x).op == "eq"
    assert b.div(x, 4.0).op == "mul"
    assert b.div(x, 3.0).op == "div"
    assert b.neg(b.neg(x)) is x
    assert b.add(x, b.neg(x)).op == "sub"
    assert b.not_(b.lt(x, 1.0)).op == "not"  # not the same as >= for NaN
    assert b.not_(b.eq(x, 1.0)).op == "ne"


def test_constants_fold_like_the_machine(b):
    third = b.div(b.const(1.0, "f32"), 3.0)
    assert third.attr == float(np.float32(1) / np.float32(3))
    assert b.const(0.0, "f32") is not b.const(-0.0, "f32")
    assert b.const(math.nan, "f64") is b.const(math.nan, "f64")
    assert b.convert(b.const(300, "i32"), "u8").attr == 44
    assert b.convert(b.const(math.nan, "f32"), "i32").attr == 0
    assert b.convert(b.const(1e10, "f32"), "i32").attr == 2**31 - 1
    assert b.const(-1, "u8").attr == 255
    assert b.const(1 / 3, "f16").attr == float(np.float16(1 / 3))
    assert b.bitcast(b.const(1.0, "f32"), "i32").attr == 0x3F800000
    assert b.add(b.const(200, "u8"), 100).attr == 44
    assert b.sqrt(b.const(2.0, "f32")).attr == float(np.sqrt(np.float32(2)))


def test_conversions_that_lose_nothing_vanish(b):
    x = b.load(b.input("x", "f32"), 0)
    h = b.load(b.input("h", "f16"), 0)
    k = b.load(b.input("k", "i16"), 0)
    flag = b.load(b.input("flag", "bool"), 0)
    assert b.convert(b.convert(x, "f64"), "f32") is x
    assert b.convert(b.convert(h, "f32"), "f16") is h
    assert b.convert(b.convert(x, "f16"), "f32").op == "convert"
    assert b.convert(b.convert(k, "i64"), "i16") is k
    assert b.convert(b.convert(k, "i32"), "f32").args[0] is k
    assert b.convert(b.convert(flag, "i32"), "f32").args[0] is flag
    wrapped = b.convert(b.convert(k, "u16"), "f32")
    assert wrapped.args[0].op == "convert"
    assert b.convert(x, "bool").op == "ne"


def test_half_arithmetic_goes_through_f32(b):
    h = b.load(b.input("h", "bf16"), 0)
    total = b.add(h, 1.0)
    assert total.dtype == "bf16" and total.op == "convert" and total.args[0].dtype == "f32"
    assert b.lt(h, 2.0).dtype == "bool"


def test_exact_sums_are_marked(b):
    x = b.load(b.input("x", "f32"), 0)
    with b.exact():
        inside = b.mul(x, x)
    assert inside.attr == "exact" and b.mul(x, x).attr is None


def test_select_and_logic(b):
    x = b.load(b.input("x", "f32"), 0)
    c = b.lt(x, 1.0)
    assert b.select(True, x, 0.0) is x
    assert b.select(c, x, x) is x
    assert b.select(b.not_(c), x, b.neg(x)) is b.select(c, b.neg(x), x)
    assert b.and_(c, True) is c
    assert b.or_(c, True).attr is True
    assert b.and_(c, False).attr is False
    assert b.select(c, b.const(True, "bool"), b.const(False, "bool")) is c


# ---- guards


def test_guards_become_masks_of_loads(b):
    i, _, n = index_vars(b)
    x = b.input("x", "f32")
    inside = b.lt(i, n)
    zero, one = b.const(0.0, "f32"), b.const(1.0, "f32")
    plain = b.guarded(inside, lambda: b.load(x, i), zero)
    assert plain.op == "load" and plain.args[1] is inside
    assert b.guarded(inside, lambda: b.load(x, i), one).args[2] is one
    assert b.guarded(b.lt(i, 100), lambda: b.load(x, i), zero).args == (i,)
    assert b.guarded(b.lt(i, 0), lambda: b.load(x, i), one) is one
    both = b.guarded(inside, lambda: b.guarded(b.ge(n, 5), lambda: b.load(x, i), zero), zero)
    load = both if both.op == "load" else both.args[1]
    assert load.args[1].op == "and"
    outside = b.load(x, i)
    assert outside.args == (i,)


def test_loads_of_written_buffers_are_never_merged(b):
    x, y = b.input("x", "f32"), b.output("y", "f32")
    assert b.load(x, 0) is b.load(x, 0)
    assert b.load(y, 0) is not b.load(y, 0)


# ---- statements


def test_loops_and_blocks(b):
    y = b.output("y", "i64")
    with b.for_("i", 0, 10) as i:
        assert b.range(i) == (0, 9)
        with b.if_(b.lt(i, 5)):
            b.store(y, i, i)
        with b.if_(b.lt(i, 100)):
            b.store(y, i, b.index(1))
        with b.for_("one", 3, 4) as one:
            assert one.attr == 3
            b.store(y, one, i)
    kernel = b.kernel("k")
    (loop,) = kernel.body
    assert isinstance(loop, For)
    assert [type(s) for s in loop.body] == [If, Store, Store]
    verify(kernel)


def test_small_reductions_unroll(b):
    x = b.input("x", "f32")
    total = b.reduce([2, 3], lambda i, j: b.load(x, b.add(b.mul(i, 3), j)), "add")
    assert total.op == "add"
    assert b.kernel("k").body == ()
    b.reduce([5], lambda j: b.load(x, j), "add")
    assert isinstance(b.kernel("k").body[0], Reduce)
    same = b.reduce([5], lambda j: b.load(x, j), "max", unroll=True)
    assert same.op == "max"


def test_reduction_lanes_go_to_the_innermost_loop(b):
    x = b.input("x", "f32")
    b.reduce([9, 9, 3], lambda i, j, k: b.load(x, b.add(b.add(i, j), k)), "add", lanes=16)
    outer = b.kernel("k").body[0]
    assert outer.lanes == 1
    assert outer.body[0].lanes == 16


@pytest.mark.parametrize("combine", ["add", "mul", "max", "min", "and", "or", "xor"])
def test_identities(combine):
    for dtype in ("bool", "i8", "u32", "f32"):
        if combine in ("and", "or", "xor") and dtype == "f32":
            continue
        if combine in ("add", "mul") and dtype == "bool":
            continue
        identity = identity_of(combine, dtype)
        values = np.array([0, 1]).astype(NUMPY_DTYPES[dtype])
        b = Builder()
        for value in values:
            got = b.op(combine, b.const(identity, dtype), b.const(value.item(), dtype))
            assert got.attr == value


def test_loop_carries_of_every_kind(b):
    x = b.load(b.input("x", "f16"), 0)
    results = b.loop("j", 0, 10, [x, b.index(0)], lambda j, c: (b.mul(c[0], 2.0), b.add(c[1], j)))
    assert results[0].dtype == "f16"
    (loop,) = b.kernel("k").body
    assert isinstance(loop, Loop) and [c.dtype for c in loop.carries] == ["f32", "i64"]


# ---- misuse


def test_errors_name_what_is_wrong(b):
    x, k = b.load(b.input("x", "f32"), 0), b.load(b.input("k", "i32"), 0)
    with pytest.raises(InternalError, match="add: operands of dtype f32 and i32"):
        b.add(x, k)
    with pytest.raises(InternalError, match="sqrt does not take i32"):
        b.sqrt(k)
    with pytest.raises(InternalError, match="bitcast: f32 to f64"):
        b.bitcast(x, "f64")
    with pytest.raises(InternalError, match="store: f32 into y of i32"):
        b.store(b.output("y", "i32"), 0, x)


def test_index_arithmetic_against_integers():
    """Random sums of quotients and remainders: simplified forms give what Python's integers do."""
    rng = random.Random(0)
    for _ in range(400):
        b = Builder()
        limits = [rng.choice((3, 4, 7, 64, 100)) for _ in range(2)]
        variables = [b.var("v", "i64", 0, n - 1) for n in limits]

        def index(depth, b=b, variables=variables):
            if depth == 0 or rng.random() < 0.2:
                if rng.random() < 0.7:
                    place = rng.randrange(2)
                    return variables[place], lambda values: values[place]
                number = rng.randrange(0, 20)
                return b.index(number), lambda values: number
            x, f = index(depth - 1)
            k = rng.choice((1, 2, 3, 4, 8, 10, 16, 64))
            # division of what may be negative is another matter
            kind = rng.randrange(5) if b.range(x)[0] >= 0 else rng.randrange(2)
            if kind == 0:
                y, g = index(depth - 1)
                return b.add(x, y), lambda v: f(v) + g(v)
            if kind == 1:
                return b.mul(x, k), lambda v: f(v) * k
            if kind == 2:
                return b.div(x, k), lambda v: f(v) // k
            if kind == 3:
                return b.rem(x, k), lambda v: f(v) % k
            y, g = index(depth - 1)
            return b.sub(b.add(b.mul(b.div(x, k), k), b.rem(x, k)), y), lambda v: f(v) - g(v)

        x, f = index(4)
        y = b.output("y", "i64")
        with b.block() as body:
            b.store(y, 0, x)
        for _ in range(20):
            values = [rng.randrange(n) for n in limits]
            array = np.zeros(1, np.int64)
            machine = interp._Machine({y: array}, (), 0, 0)
            for variable, value in zip(variables, values, strict=True):
                machine.set(variable, value)
            machine.block(tuple(body))
            assert array[0] == f(values)


def test_comparisons_of_roots_with_constants():
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        name = {"float32": "f32", "float64": "f64"}[np.dtype(dtype).name]
        for bound in (2.0, 0.1, 3.7, 1e-3, 123.0):
            c = dtype(bound)
            near = np.nextafter(c * c, dtype(rng.choice((0, 9e9))), dtype=dtype)
            ends = np.array([0.0, -0.0, -1.0, np.nan, np.inf, -np.inf, c * c, near, 1e-30, 1e30], dtype)
            x = np.concatenate([ends, (c * c * (1 + rng.normal(size=200) * 1e-6)).astype(dtype)])
            for op in ("lt", "le", "gt", "ge"):
                b = Builder()
                source, target = b.input("x", name), b.output("y", "bool")
                with b.for_("i", b.grid_begin(), b.grid_end()) as i:
                    root = b.sqrt(b.load(source, i))
                    b.store(target, i, getattr(b, op)(root, b.const(float(c), name)))
                made = np.zeros(x.size, bool)
                interp.run(b.kernel("k"), [x, made], (), 0, x.size)
                compare = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
                with np.errstate(invalid="ignore"):
                    np.testing.assert_array_equal(made, compare[op](np.sqrt(x), c))


def test_comparing_a_quotient_compares_the_dividend(b):
    """v / n + c < k, for all small numbers, is what it says and needs no division."""
    v = b.var("v", "i64", 0, 40)
    for n, c, k in itertools.product((1, 2, 3, 7), (-9, -1, 0, 4), (-3, 0, 1, 5, 20)):
        quotient = b.add(b.div(v, n), c)
        for op, known in (("lt", lambda x: x < k), ("le", lambda x: x <= k), ("gt", lambda x: x > k),
                          ("ge", lambda x: x >= k)):  # fmt: skip
            node = getattr(b, op)(quotient, k)
            assert not any(a.op == "div" for a in node.args), (op, n, c, k)
            inner = Builder()
            place, out = inner.var("i", "i64", 0, 40), inner.output("o", "bool")
            same = getattr(inner, op)(inner.add(inner.div(place, n), c), k)
            with inner.block() as body:
                inner.store(out, place, same)
            inner.append(For(place, inner.grid_begin(), inner.grid_end(), tuple(body)))
            found = np.zeros(41, bool)
            interp.run(inner.kernel("k"), [found], (), 0, 41)
            assert found.tolist() == [known(i // n + c) for i in range(41)], (op, n, c, k)
