"""Loops, reductions, memory access and branches: compiled code against the interpreter."""

import ctypes
import threading
import time

import numpy as np
import pytest
from kernel_runner import TARGETS, call, check

from jato.base.errors import InternalError
from jato.compiler.llvm.emit import emit_module
from jato.compiler.llvm.link import assembly, compile_kernels
from jato.compiler.llvm.memory import MOST_BRANCHED
from jato.loopir.builder import Builder
from jato.loopir.complex import Complex
from jato.loopir.grammar import Kernel
from jato.loopir.reference import NUMPY_DTYPES

W = 16
SIZES = [0, 1, W - 1, W, W + 1, 3 * W + 5]
rng = np.random.default_rng(0)


def floats(n: int, dtype: str = "f32") -> np.ndarray:
    return rng.normal(size=n).astype(NUMPY_DTYPES[dtype])


def zeros(n: int, dtype: str = "f32") -> np.ndarray:
    return np.zeros(n, NUMPY_DTYPES[dtype])


@pytest.mark.parametrize("lanes", [1, 4, 16, 64])
def test_elementwise_sizes(lanes):
    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=lanes) as i:
        b.store(y, i, b.sub(b.mul(b.load(x, i), 2.0), 1.5))
    kernel, codes = b.kernel("elementwise"), {}
    for n in {*SIZES, lanes - 1, lanes, lanes + 1, 3 * lanes + 5}:
        x = np.round(floats(n) * 64)  # exact with and without fma
        check(kernel, [x, zeros(n)], end=n, codes=codes)
        check(kernel, [x, zeros(n)], begin=n // 3, end=n - n // 4, codes=codes)


@pytest.mark.parametrize("extent", [1, 5, 16, 32, 37])
def test_constant_extents(extent):
    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    with b.for_("r", b.grid_begin(), b.grid_end()) as r, b.for_("i", 0, extent, lanes=W) as i:
        at = b.add(b.mul(r, extent), i)
        b.store(y, at, b.neg(b.load(x, at)))
    check(b.kernel("constant"), [floats(3 * extent), zeros(3 * extent)], end=3)


@pytest.mark.parametrize("dtype", ["f32", "f64", "i16"])
def test_rows_of_every_length_in_heavy_bodies(dtype):
    """Where there is much work for each load, loads branch around their masks; arrays end where
    memory ends."""
    b = Builder()
    x, y = b.input("x", dtype), b.input("y", dtype)
    z, s = b.output("z", dtype), b.output("s", dtype)
    n = b.param(0, 0, 1 << 20)

    def heavy(u, v):  # small whole numbers: exact
        for k in range(6):
            u = b.max(b.min(b.add(b.mul(u, 2), v), 9), b.sub(v, k))
        return u

    with b.for_("r", b.grid_begin(), b.grid_end()) as r:
        row = b.mul(r, n)
        with b.for_("i", 0, n, lanes=W) as i:
            at = b.add(row, i)
            b.store(z, at, heavy(b.load(x, at), b.load(y, i)))

        def element(k):
            return heavy(b.load(x, b.add(row, k)), b.load(y, k))

        b.store(s, r, b.reduce([n], element, "add", lanes=W))
    kernel, codes = b.kernel("heavy"), {}
    if TARGETS[0].has_masks and dtype == "f32":
        assert emit_module([("k", kernel)], TARGETS[0]).count("\nwhole") == 4
    rng = np.random.default_rng(0)
    for n in range(71):
        rows = 1 + n % 3
        x = rng.integers(-3, 4, rows * n).astype(NUMPY_DTYPES[dtype])
        y = rng.integers(-3, 4, n).astype(NUMPY_DTYPES[dtype])
        arrays = [x, y, zeros(rows * n, dtype), zeros(rows, dtype)]
        check(kernel, arrays, [n], end=rows, codes=codes)


def test_in_place_updates_each_element_once():
    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=W) as i:
        b.store(y, i, b.add(b.load(x, i), 1.0))
    kernel = b.kernel("in_place", in_place=True)
    for target in TARGETS:
        (code,) = compile_kernels([kernel], target)
        for n in SIZES:
            values = floats(n)
            expected = values + np.float32(1)
            call(code, [values, values], end=n)
            np.testing.assert_array_equal(values, expected)


def test_in_place_reads_before_it_writes():
    """The first output takes the memory of the second input."""
    b = Builder()
    x0, x1 = b.input("x0", "f32"), b.input("x1", "f32")
    y0, y1 = b.output("y0", "f32"), b.output("y1", "f32")
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=W) as i:
        b.store(y0, i, b.add(b.load(x0, i), 1.0))
        b.store(y1, i, b.mul(b.load(x1, i), 2.0))
    kernel = b.kernel("in_place", in_place=True)
    for target in TARGETS:
        (code,) = compile_kernels([kernel], target)
        for n in SIZES:
            first, second, result = floats(n), floats(n), zeros(n)
            expected = first + np.float32(1), second * np.float32(2)
            call(code, [first, second, second, result], end=n)
            np.testing.assert_array_equal(second, expected[0])
            np.testing.assert_array_equal(result, expected[1])


def test_read_modify_write_runs_once_per_index():
    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=W) as i:
        b.store(y, i, b.add(b.load(y, i), b.load(x, i)))
    kernel, codes = b.kernel("accumulate"), {}
    for n in SIZES:
        check(kernel, [floats(n), floats(n)], end=n, codes=codes)


def test_strides_reversal_and_broadcast():
    b = Builder()
    x, row, scalar = b.input("x", "f32"), b.input("row", "f32"), b.input("scalar", "f32")
    y = b.output("y", "f32")
    n, stride = b.param(0, 0, 1 << 40), b.param(1, -64, 64)
    with b.for_("r", b.grid_begin(), b.grid_end()) as r, b.for_("i", 0, n, lanes=W) as i:
        at = b.add(b.mul(r, n), i)
        last = b.sub(b.sub(n, 1), i)
        value = b.add(b.load(x, b.add(b.mul(r, n), last)), b.load(row, i))
        value = b.add(value, b.load(row, b.mul(r, 2)))
        value = b.add(value, b.load(scalar, 0))
        value = b.add(value, b.load(row, b.mul(i, stride)))
        for k in (2, 3, -2):
            base = b.mul(b.sub(n, 1), max(0, -k))
            value = b.add(value, b.load(row, b.add(b.mul(i, k), base)))
        b.store(y, at, value)
    kernel, codes = b.kernel("strides"), {}
    for size in SIZES:
        arrays = [floats(3 * size), floats(5 * size + 8), floats(1), zeros(3 * size)]
        check(kernel, arrays, [size, 5], end=3, codes=codes)


@pytest.mark.parametrize("step", [-1, 2, 3, -2, "run-time"])
def test_strided_stores(step):
    b = Builder()
    x, y = b.input("x", "f64"), b.output("y", "f64")
    n = b.param(0, 0, 1 << 30)
    factor = b.param(1, 1, 100) if step == "run-time" else b.index(step)
    base = b.mul(b.sub(n, 1), -step) if isinstance(step, int) and step < 0 else b.index(0)
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=W) as i:
        b.store(y, b.add(b.mul(i, factor), base), b.load(x, i))
    kernel, codes = b.kernel("stores"), {}
    for size in SIZES[1:]:
        check(
            kernel, [floats(size, "f64"), zeros(5 * size, "f64")], [size, 5], end=size, codes=codes
        )


@pytest.mark.parametrize("index_dtype", ["i32", "i64", "u8"])
@pytest.mark.parametrize("dtype", ["bool", "i8", "f16", "f32", "f64"])
def test_gather_and_scatter(index_dtype, dtype):
    b = Builder()
    x, at, y = b.input("x", dtype), b.input("at", index_dtype), b.output("y", dtype)
    n = b.param(0, 0, 1 << 30)
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=W) as i:
        place = b.convert(b.load(at, i), "i64")
        value = b.load(x, b.add(place, b.mul(n, 2)))
        b.store(y, place, value)
    kernel, codes = b.kernel("gather"), {}
    for size in SIZES[1:]:
        order = rng.permutation(size).astype(NUMPY_DTYPES[index_dtype])
        x = (floats(3 * size) * 3).astype(NUMPY_DTYPES[dtype])
        check(kernel, [x, order, zeros(size, dtype)], [size], end=size, codes=codes)


def test_scatter_last_write_wins_in_lane_order():
    b = Builder()
    x, at, y = b.input("x", "f32"), b.input("at", "i32"), b.output("y", "f32")
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=W) as i:
        b.store(y, b.convert(b.load(at, i), "i64"), b.load(x, i))
    at = np.array([0, 1, 0, 2, 1, 0] * 5, np.int32)
    check(b.kernel("scatter"), [floats(30), at, zeros(3)], end=30)


def test_guards_touch_nothing_outside():
    """A padded, shifted read: the arrays end at a page that faults."""
    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    n = b.param(0, 0, 1 << 40)
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=W) as i:
        total = b.const(0.0, "f32")
        for shift in (-3, 0, 2):
            at = b.add(i, shift)
            inside = b.and_(b.ge(at, 0), b.lt(at, n))
            part = b.guarded(inside, lambda at=at: b.load(x, at), b.const(0.0, "f32"))
            total = b.add(total, part)
        far = b.guarded(b.lt(i, 0), lambda: b.load(x, b.add(n, 1000)), b.const(7.0, "f32"))
        near = b.guarded(b.gt(n, 3), lambda: b.load(x, 3), b.const(-1.0, "f32"))
        two = b.guarded(b.lt(b.mul(i, 2), n), lambda: b.load(x, b.mul(i, 2)), b.const(5.0, "f32"))
        b.store(y, i, b.add(b.add(b.add(total, far), near), two), mask=b.ne(b.rem(i, 3), 1))
    kernel, codes = b.kernel("guards"), {}
    for size in SIZES:
        check(kernel, [floats(size), zeros(size)], [size], end=size, codes=codes)


def test_masked_scalar_access():
    b = Builder()
    x, y = b.input("x", "i32"), b.output("y", "i32")
    n = b.param(0, 0, 1 << 40)
    with b.for_("i", b.grid_begin(), b.grid_end()) as i:
        value = b.guarded(b.lt(i, n), lambda: b.load(x, i), b.const(-5, "i32"))
        b.store(y, i, value, mask=b.ne(value, 3))
    check(b.kernel("scalar"), [np.arange(5, dtype=np.int32), zeros(9, "i32")], [5], end=9)


@pytest.mark.parametrize("combine", ["add", "mul", "max", "min", "and", "or", "xor"])
@pytest.mark.parametrize("lanes", [1, 16, 64])
def test_reductions(combine, lanes):
    dtypes = (
        ["i32", "u8", "bool"] if combine in ("and", "or", "xor") else ["f32", "f64", "i64", "u8"]
    )
    for dtype in dtypes:
        b = Builder()
        x, y = b.input("x", dtype), b.output("y", dtype)
        n = b.param(0, 0, 1 << 40)
        with b.for_("r", b.grid_begin(), b.grid_end()) as r:
            at = lambda j: b.add(b.mul(r, n), j)  # noqa: E731
            b.store(y, r, b.reduce([n], lambda j: b.load(x, at(j)), combine, lanes=lanes))
        kernel, codes = b.kernel(combine), {}
        for size in {*SIZES, 5 * lanes + 3}:
            x = rng.integers(0, 5, 3 * size) if dtype != "bool" else rng.random(3 * size) < 0.7
            x = x.astype(NUMPY_DTYPES[dtype])  # small integers: exact in any order
            if combine == "mul":
                x = np.where(rng.random(3 * size) < 0.9, 1, x).astype(x.dtype)
            check(kernel, [x, zeros(3, dtype)], [size], end=3, codes=codes)


def test_max_of_reduction_propagates_nan():
    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    n = b.param(0, 0, 1 << 40)
    b.store(y, 0, b.reduce([n], lambda j: b.load(x, j), "max", lanes=W))
    kernel, codes = b.kernel("nan"), {}
    for size in (1, 17, 40):
        for place in (0, size // 2, size - 1):
            x = floats(size)
            x[place] = np.nan
            check(kernel, [x, zeros(1)], [size], codes=codes)


@pytest.mark.parametrize("heavy", [False, True])
def test_argmax(heavy):
    """A combination of two values, first index wins; with a heavy body the tail is masked."""
    b = Builder()
    x, y, where = b.input("x", "f32"), b.output("y", "f32"), b.output("where", "i64")
    n = b.param(0, 0, 1 << 40)

    def element(j):
        value = b.load(x, j)
        for _ in range(12 if heavy else 0):
            value = b.add(b.abs(value), 1.0)
        return value, j

    def combine(left, right):
        better = b.or_(b.gt(left[0], right[0]),
                       b.and_(b.eq(left[0], right[0]), b.lt(left[1], right[1])))  # fmt: skip
        return b.select(better, left[0], right[0]), b.select(better, left[1], right[1])

    value, index = b.reduce([n], element, combine, (-np.inf, (1 << 62)), lanes=W)
    b.store(y, 0, value)
    b.store(where, 0, index)
    kernel, codes = b.kernel("argmax"), {}
    for size in SIZES[1:]:
        x = np.round(floats(size))
        check(kernel, [x, zeros(1), zeros(1, "i64")], [size], codes=codes)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_half_precision_sums_round_once(dtype):
    b = Builder()
    x, y = b.input("x", dtype), b.output("y", dtype)
    n = b.param(0, 0, 1 << 40)
    b.store(y, 0, b.reduce([n], lambda j: b.mul(b.load(x, j), b.load(x, j)), "add", lanes=W))
    kernel, codes = b.kernel("half"), {}
    for size in SIZES:
        x = rng.integers(-3, 4, size).astype(NUMPY_DTYPES[dtype])
        check(kernel, [x, zeros(1, dtype)], [size], codes=codes)


def test_nested_reduction_and_unrolling():
    b = Builder()
    x, y = b.input("x", "f64"), b.output("y", "f64")
    n, m = b.param(0, 0, 1 << 40), b.param(1, 0, 1 << 40)

    def element(i, j, k):
        return b.load(x, b.add(b.mul(b.add(b.mul(i, m), j), 3), k))

    b.store(y, 0, b.reduce([n, m, 3], element, "add", lanes=W))
    kernel, codes = b.kernel("nested"), {}
    for size in SIZES:
        x = rng.integers(-9, 9, 4 * size * 3).astype(np.float64)
        check(kernel, [x, zeros(1, "f64")], [4, size], codes=codes)
    assert check(kernel, [x, zeros(1, "f64")], [4, size], codes=codes)[1][0] == x.sum()


def test_reduction_inside_a_vector_loop():
    """Columns: each lane sums its own; the inner loop is serial."""
    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    rows, columns = b.param(0, 0, 1 << 40), b.param(1, 0, 1 << 40)
    with b.for_("c", b.grid_begin(), b.grid_end(), lanes=W) as c:
        total = b.reduce([rows], lambda r: b.load(x, b.add(b.mul(r, columns), c)), "add")
        count = b.reduce([rows], lambda r: b.convert(r, "f32"), "add")
        b.store(y, c, b.add(total, count))
    kernel, codes = b.kernel("columns"), {}
    for size in SIZES:
        x = rng.integers(-9, 9, 7 * size).astype(np.float32)
        check(kernel, [x, zeros(size)], [7, size], end=size, codes=codes)


def test_complex_pairs():
    b = Builder()
    x, y = b.input("x", "c64"), b.output("y", "c64")
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=W) as i:
        z = b.load(x, i)
        b.store(y, i, Complex(b.neg(z.im), b.sub(z.re, 1.0)))
    kernel, codes = b.kernel("complex"), {}
    for size in SIZES:
        check(kernel, [floats(2 * size), zeros(2 * size)], end=size, codes=codes)
    (code,) = compile_kernels([kernel], TARGETS[0])


def test_complex_reduction():
    b = Builder()
    x, y = b.input("x", "c128"), b.output("y", "c128")
    n = b.param(0, 0, 1 << 40)
    b.store(y, 0, b.reduce([n], lambda j: b.load(x, j), "add", lanes=W))
    kernel, codes = b.kernel("complex_sum"), {}
    for size in SIZES:
        x = rng.integers(-9, 9, 2 * size).astype(np.float64)
        check(kernel, [x, zeros(2, "f64")], [size], codes=codes)


def test_iota_values_and_index_arithmetic():
    b = Builder()
    y, z = b.output("y", "f32"), b.output("z", "i64")
    columns = b.param(0, 1, 1 << 40)
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=W) as i:
        row, column = b.div(i, columns), b.rem(i, columns)
        value = b.convert(b.convert(b.add(b.mul(i, 3), 1), "i32"), "f32")
        b.store(y, i, b.add(value, b.convert(row, "f32")))
        b.store(
            z, i, b.add(b.mul(column, column), b.select(b.eq(i, 5), b.index(-1), b.mul(i, columns)))
        )
    kernel, codes = b.kernel("iota"), {}
    for size in SIZES:
        for columns in (1, 3, 16, 100):
            check(kernel, [zeros(size), zeros(size, "i64")], [columns], end=size, codes=codes)


def test_comparisons_of_indices():
    b = Builder()
    y = b.output("y", "u8")
    n, m = b.param(0), b.param(1)
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=W) as i:
        bits = b.const(0, "u8")
        pairs = [(i, n), (b.mul(i, 2), m), (b.sub(n, i), m), (b.add(i, 3), b.mul(i, 2))]
        tests = [b.op(op, p, q) for p, q in pairs for op in ("lt", "le", "eq", "ne", "gt", "ge")]
        for k, test in enumerate(tests):
            flag = b.convert(test, "u8")
            bits = b.add(b.mul(bits, 3), b.mul(flag, k + 1))
        b.store(y, i, bits)
    kernel, codes = b.kernel("comparisons"), {}
    for n, m in [(0, 0), (5, 8), (-3, 100), (1 << 40, -(1 << 40)), (17, 34)]:
        check(kernel, [zeros(53, "u8")], [n, m], end=53, codes=codes)


def test_i64_arithmetic_wraps():
    """i64 data near the ends of its range is not mistaken for an index."""
    b = Builder()
    x, y, z = b.input("x", "i64"), b.output("y", "i64"), b.output("z", "bool")
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=W) as i:
        value = b.add(b.mul(b.load(x, i), 3), b.add(i, (1 << 63) - 10))
        b.store(y, i, value)
        b.store(z, i, b.lt(b.add(b.load(x, 0), i), b.load(x, 1)))
    big = np.array(
        [(1 << 63) - 5, -(1 << 63) + 40, *rng.integers(-(1 << 62), 1 << 62, 60)], np.int64
    )
    with np.errstate(over="ignore"):
        check(b.kernel("wrap"), [big, zeros(62, "i64"), zeros(62, "bool")], end=62)


def test_ordered_loop():
    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    n = b.param(0, 0, 1 << 40)

    def body(j, carries):
        total = b.add(b.mul(carries[0], 0.5), b.load(x, j))
        b.store(y, j, total)
        return total, b.add(carries[1], 1)

    total, count = b.loop("j", 0, n, [b.const(0.0, "f32"), b.const(0, "i32")], body)
    b.store(y, n, b.add(total, b.convert(count, "f32")))
    kernel, codes = b.kernel("scan"), {}
    for size in (0, 1, 5, 3000):
        x = rng.integers(-9, 9, size).astype(np.float32)
        check(kernel, [x, zeros(size + 1)], [size], codes=codes, rtol=1e-6)


@pytest.mark.parametrize("lanes", [1, 16])
def test_loop_with_a_condition_per_lane(lanes):
    """Collatz: each lane stops when it gets to 1."""
    b = Builder()
    x, y, z = b.input("x", "i32"), b.output("y", "i32"), b.output("z", "f16")
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=lanes) as i:

        def body(j, c):
            value, steps, half = c
            even = b.eq(b.and_(value, 1), 0)
            value = b.select(even, b.shr_logical(value, 1), b.add(b.mul(value, 3), 1))
            return value, b.add(steps, 1), b.add(half, 0.5)

        inits = [b.load(x, i), b.const(0, "i32"), b.const(0.25, "f16")]
        result = b.loop("j", 0, 200, inits, body, lambda c: b.gt(c[0], 1))
        b.store(y, i, result[1])
        b.store(z, i, result[2])
    kernel, codes = b.kernel("collatz"), {}
    for size in SIZES:
        x = rng.integers(0, 100, size).astype(np.int32)
        check(kernel, [x, zeros(size, "i32"), zeros(size, "f16")], end=size, codes=codes)


def test_loop_stops_when_cancelled():
    b = Builder()
    y = b.output("y", "i64")
    total = b.loop("j", 0, b.param(0), [b.index(1)], lambda j, c: [b.xor(b.mul(c[0], 3), j)])
    b.store(y, 0, total[0])
    (code,) = compile_kernels([b.kernel("long")])
    cancel = ctypes.c_int32(0)
    array = np.zeros(1, np.int64)
    pointers = (ctypes.c_void_p * 1)(array.ctypes.data)
    params = (ctypes.c_int64 * 1)(1 << 60)
    arguments = (ctypes.c_void_p * 4)(
        ctypes.addressof(pointers), ctypes.addressof(params), 0, ctypes.addressof(cancel)
    )
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code.address)
    thread = threading.Thread(target=lambda: function(ctypes.addressof(arguments), 0, 0))
    thread.start()
    time.sleep(0.02)
    cancel.value = 1
    thread.join(5)
    assert not thread.is_alive()


def test_local_buffers_and_if():
    """Softmax-like: a row goes through scratch; rows of odd number are skipped."""
    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    n = b.param(0, 0, 64)
    scratch, flags = b.local("scratch", "f32", 64), b.local("flags", "bool", 64)
    with b.for_("r", b.grid_begin(), b.grid_end()) as r, b.if_(b.eq(b.rem(r, 2), 0)):
        with b.for_("i", 0, n, lanes=W) as i:
            value = b.load(x, b.add(b.mul(r, n), i))
            b.store(scratch, i, b.mul(value, 2.0))
            b.store(flags, i, b.gt(value, 0.0))
        top = b.reduce([n], lambda j: b.load(scratch, j), "max", lanes=W)
        with b.for_("k", 0, n, lanes=W) as k:
            value = b.select(b.load(flags, k), b.sub(b.load(scratch, k), top), top)
            b.store(y, b.add(b.mul(r, n), k), value)
    kernel, codes = b.kernel("local"), {}
    for size in SIZES:
        check(kernel, [floats(5 * size), zeros(5 * size)], [size], end=5, codes=codes)


def test_if_any_runs_only_where_needed():
    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    scale = b.input("scale", "f32")
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=W) as i:
        v = b.load(x, i)
        shared = b.mul(b.load(scale, 0), 3.0)
        result = b.if_any(b.gt(v, 2.0), lambda: b.mul(b.sqrt(v), shared), b.add(v, 1.0))
        uniform = b.if_any(
            b.gt(b.load(scale, 0), 0.0), lambda: b.sqrt(b.load(scale, 0)), b.load(scale, 0)
        )
        nested = b.if_any(
            b.lt(v, 0.0), lambda: b.if_any(b.lt(v, -1.0), lambda: b.neg(v), v), result
        )
        b.store(y, i, b.add(nested, uniform))
    kernel, codes = b.kernel("if_any"), {}
    for size in SIZES:
        for scale in (-1.0, 2.0):
            x = np.round(floats(size) * 8) / 4
            check(kernel, [x, zeros(size), np.array([scale], np.float32)], end=size, codes=codes)


def test_bool_buffers_hold_bytes():
    b = Builder()
    x, y = b.input("x", "bool"), b.output("y", "bool")
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=W) as i:
        b.store(y, i, b.not_(b.load(x, i)))
    for target in TARGETS:
        (code,) = compile_kernels([b.kernel("not")], target)
        x = np.array([0, 1, 2, 255] * 9, np.uint8)  # any nonzero byte is true
        y = np.zeros(36, np.uint8)
        call(code, [x, y], end=36)
        assert set(y) == {0, 1}
        np.testing.assert_array_equal(y, x == 0)


def test_long_chain_does_not_recurse():
    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    with b.for_("i", b.grid_begin(), b.grid_end()) as i:
        value = b.load(x, i)
        for _ in range(3000):
            value = b.abs(b.sub(value, 1.0))
        b.store(y, i, value)
    check(b.kernel("chain"), [floats(3), zeros(3)], end=3, targets=TARGETS[:1])


def test_unbound_variable_is_a_bug_with_a_name():
    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    b.store(y, 0, b.load(x, b.var("ghost", "i64")))
    with pytest.raises(InternalError, match="ghost"):
        compile_kernels([b.kernel("bad")])


def test_hoisting_never_reads_for_loops_that_do_not_run():
    """x is empty when n is 0: the invariant load must stay inside the loop that is skipped."""
    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    n = b.param(0, 0, 1 << 40)
    with b.for_("r", b.grid_begin(), b.grid_end()) as r, b.for_("i", 0, n, lanes=W) as i:
        b.store(y, b.add(b.mul(r, n), i), b.add(b.load(x, 0), b.load(x, b.mul(r, 0))))
    kernel, codes = b.kernel("hoist"), {}
    for size in (0, 3, 20):
        check(kernel, [floats(min(1, size)), zeros(2 * size)], [size], end=2, codes=codes)


@pytest.mark.parametrize("lanes", [1, 16])
def test_many_uses_of_a_function_share_one_body(lanes):
    """Twelve sines are one function and twelve calls, and give what single ones give."""

    def kernel(uses):
        b = Builder()
        x, y = b.input("x", "f32"), b.output("y", "f32")
        with b.for_("i", b.grid_begin(), b.grid_end(), lanes=lanes) as i:
            for k in range(uses):
                value = b.add(b.sin(b.add(b.load(x, i), float(k))), b.exp(b.const(2.0, "f32")))
                b.store(y, b.add(b.mul(i, uses), k), value)
        return b.kernel("sines")

    text = emit_module([("k", kernel(12))], TARGETS[0])
    assert text.count("@sin_f32") == 13 and "@exp_f32" not in text
    assert "@sin_f32" not in emit_module([("k", kernel(3))], TARGETS[0])
    x = np.concatenate([floats(30), [1e8, np.inf]]).astype(np.float32)
    check(kernel(12), [x, zeros(12 * 32)], end=32, rtol=1e-6)


# ---- what is not in the code: counted in the IR, so that nothing slows down unseen


def loop_bodies(text: str) -> str:
    """The lines of the innermost loop."""
    start = text.rindex("\nloop")
    return text[start : text.index("\ndone", start)]


def ir_of(b: Builder) -> str:
    return emit_module([("k", b.kernel("k"))], TARGETS[0])


def test_invariants_leave_the_loop():
    b = Builder()
    x, s, y = b.input("x", "f32"), b.input("s", "f32"), b.output("y", "f32")
    n = b.param(0, 0, 1 << 40)
    with b.for_("r", b.grid_begin(), b.grid_end()) as r, b.for_("i", 0, n, lanes=W) as i:
        factor = b.exp(b.mul(b.load(s, r), 3.0))
        b.store(y, b.add(b.mul(r, n), i), b.mul(b.load(x, i), factor))
    inner = loop_bodies(ir_of(b))
    # one by the mask, one of all lanes
    assert inner.count("= load") == 1 and inner.count("call <16 x float> @llvm.masked.load") == 1
    assert inner.count("fmul") == 1
    assert "fma" not in inner and "mul i64" not in inner and "splat" not in inner
    assert "insertelement" not in inner


def arithmetic(degree: int, loads: int, lanes: int, in_place: bool = False) -> Kernel:
    """y[i] = some work on x[i] + ... + x[i + loads - 1]; `in_place`: y may be x."""
    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=lanes) as i:
        t = b.load(x, i)
        for k in range(1, loads):
            t = b.add(t, b.load(x, b.add(i, k)))
        result = t
        for _ in range(degree):
            result = b.max(b.min(b.neg(b.abs(b.mul(result, t))), 4.0), -4.0)
        b.store(y, i, result)
    return b.kernel("arithmetic", in_place=in_place)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("loads", [1, 2, 6])
def test_branches_around_masks_change_nothing(loads, in_place):
    codes = {}
    kernel = arithmetic(6, loads, W, in_place)
    for n in SIZES:
        check(kernel, [floats(n + loads - 1), zeros(n)], end=n, codes=codes)


@pytest.mark.skipif(not TARGETS[0].has_masks, reason="no cheap masks on this machine")
@pytest.mark.parametrize(
    ("degree", "loads", "lanes", "branches"),
    [
        (6, 1, W, 1),
        (6, 2, W, 2),
        (6, 6, W, MOST_BRANCHED),
        (0, 1, W, 0),  # light
        (1, 3, W, 0),
        (6, 1, 4 * W, 0),  # several vectors
    ],
)
def test_heavy_bodies_branch_around_masks(degree, loads, lanes, branches):
    inner = loop_bodies(emit_module([("k", arithmetic(degree, loads, lanes))], TARGETS[0]))
    assert inner.count(f"= load <{lanes} x float>") == branches
    assert inner.count(f"= call <{lanes} x float> @llvm.masked.load") == loads


def test_equal_addresses_are_loaded_once():
    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=W) as i:
        left = b.load(x, b.add(b.add(i, 2), b.mul(i, 0)))
        b.store(y, i, b.mul(left, b.load(x, b.add(2, i))))
    assert loop_bodies(ir_of(b)).count("masked.load") == 1


def test_complex_halves_share_one_load_and_one_store():
    b = Builder()
    x, y = b.input("x", "c64"), b.output("y", "c64")
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=W) as i:
        z = b.load(x, i)
        b.store(y, i, Complex(z.im, z.re))
    inner = loop_bodies(ir_of(b))
    assert inner.count("masked.load") == 1 and inner.count("masked.store") == 1
    assert "gather" not in inner and "scatter" not in inner


def test_whole_groups_need_no_masks():
    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    with b.for_("r", b.grid_begin(), b.grid_end()) as r, b.for_("i", 0, 64, lanes=W) as i:
        at = b.add(b.mul(r, 64), i)
        b.store(y, at, b.load(x, at))
    assert "masked" not in ir_of(b)
    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    with b.for_("r", b.grid_begin(), b.grid_end()) as r, b.for_("i", 0, 67, lanes=W) as i:
        at = b.add(b.mul(r, 67), i)
        b.store(y, at, b.load(x, at))
    assert "masked" not in ir_of(b)  # the last group overlaps the one before


def test_relu_is_one_instruction():
    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=W) as i:
        b.store(y, i, b.max(b.load(x, i), 0.0))
    text = assembly([b.kernel("relu")], TARGETS[0])
    if TARGETS[0].arch == "x86_64":
        assert "vmaxps" in text and "unord" not in text


def test_exact_products_are_not_contracted():
    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=W) as i:
        v = b.load(x, i)
        with b.exact():
            b.store(y, i, b.sub(b.mul(v, v), b.mul(v, 3.0)))
    text = assembly([b.kernel("exact")], TARGETS[0])
    assert "fmadd" not in text and "fmsub" not in text and "fnmadd" not in text
    x = floats(100)
    check(b.kernel("exact"), [x, zeros(100)], end=100)


@pytest.mark.parametrize(
    "dtype, lanes", [("f32", 16), ("i32", 16), ("f32", 8), ("f64", 8), ("u64", 8)]
)
@pytest.mark.parametrize("vectors", [1, 4])
def test_tile_copies(dtype, lanes, vectors):
    """Into a tile, and from it into another array, at every number of rows and columns."""
    b = Builder()
    x, y = b.input("x", dtype), b.output("y", dtype)
    pitch = lanes * vectors
    tile = b.local("tile", dtype, 48 * pitch)
    b.tile_copy(tile, x, b.param(0), b.param(1), b.param(2), b.param(3), pitch, lanes)
    b.tile_copy(tile, y, b.param(0), b.param(3), b.param(2), b.param(3), pitch, lanes, out=True)
    kernel, codes = b.kernel("tiles"), {}
    for rows in {*range(1, lanes + 1), pitch - 1, pitch, pitch // 2, pitch // 2 + 1}:
        for columns in (1, 2, 3, 4, 5, 6, 7, lanes - 1, lanes, lanes + 1, 47, 48):
            for start, step in ((0, columns), (3, columns + 5)):
                size = start + (rows - 1) * step + columns
                values = rng.integers(0, 99, size).astype(NUMPY_DTYPES[dtype])
                made = zeros(start + rows * columns, dtype)
                check(kernel, [values, made], [start, step, rows, columns], codes=codes)


def test_heavy_bodies_over_complex_numbers():
    """Pairs of real and imaginary parts are read and written whole, or by a mask twice as wide."""
    b = Builder()
    n = b.param(0, 0, 1 << 40)
    x, y = b.input("x", "c64"), b.output("y", "c64")
    with b.for_("r", b.grid_begin(), b.grid_end()) as r, b.for_("i", 0, n, lanes=W) as i:
        place = b.add(b.mul(r, n), i)
        z = b.load(x, place)
        b.store(y, place, Complex(b.exp(z.im), b.mul(b.exp(z.re), z.im)))
    kernel, codes = b.kernel("pairs"), {}
    inner = loop_bodies(emit_module([("k", kernel)], TARGETS[0]))
    if TARGETS[0].has_masks:
        assert inner.count("label %whole") == 2  # of the read and of the write
    rng = np.random.default_rng(0)
    for size in (0, 1, W - 1, W, W + 1, 2 * W + 5, 70):
        values = rng.normal(size=(3, 2 * size)).astype(np.float32)
        check(kernel, [values, np.zeros_like(values)], (size,), 0, 3, rtol=3e-7, codes=codes)
