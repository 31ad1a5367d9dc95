"""ExecutableBuilder and Executable from Python: every step kind, errors."""

import gc
import weakref

import kernels
import numpy as np
import pytest
from programs import add_executable, f32

from jato import _native
from jato._native import ArrayType, ExecutableBuilder, from_numpy, to_numpy

I32, BOOL = ArrayType((), 3), ArrayType((), 0)


def array(*values):
    return from_numpy(np.array(values, "f4"))


def test_run_and_describe():
    e = add_executable(4)
    assert e.run([array(1, 2, 3, 4), np.ones(4, "f4")])[0].tolist() == [2, 3, 4, 5]
    assert e.input_types == [f32(4), f32(4)] and e.output_types == [f32(4)]
    assert e.cost_ns == 10 and e.arena_bytes == 0
    assert "launch add" in e.describe()
    with pytest.raises(ValueError, match="expected 2 leaves, got 1"):
        e.run([array(1)])
    with pytest.raises(TypeError, match=r"leaf 1: expected an array of type float32\[4\], got float32\[3\]"):
        e.run([array(1, 2, 3, 4), array(1, 2, 3)])
    with pytest.raises(TypeError, match="got str"):
        e.run([array(1, 2, 3, 4), "x"])


def test_temporaries_constants_and_several_outputs():
    b = ExecutableBuilder()
    x = b.input(f32(3))
    c = b.constant(array(10, 20, 30))
    t = b.temp(0)
    y, z = b.output(f32(3)), b.output(f32(3))
    b.launch(kernels.add(), [x, c, t], [], 3)
    b.launch(kernels.add(), [t, t, y], [], 3)
    b.launch(kernels.add(), [t, y, z], [], 3)
    y_, z_ = b.finish(64, 10.0).run([array(1, 2, 3)])
    assert y_.tolist() == [22, 44, 66] and z_.tolist() == [33, 66, 99]


def test_aliases():
    b = ExecutableBuilder()
    x = b.input(f32(6))
    b.constant(array(5))
    y = b.output(f32(6))
    b.launch(kernels.add(), [x, x, y], [], 6)
    b.output_alias(f32(2, 3), "input", 0)
    b.output_alias(f32(1), "constant", 0)
    b.output_alias(f32(3, 2), "output", 0)
    a = from_numpy(np.arange(6, dtype="f4"))
    y_, xx, c, yy = b.finish(0, 1.0).run([a])
    assert xx.shape == (2, 3) and xx.unsafe_buffer_pointer() == a.unsafe_buffer_pointer()
    assert yy.unsafe_buffer_pointer() == y_.unsafe_buffer_pointer() and yy.shape == (3, 2)
    assert c.tolist() == [5]


def test_counted_loop_with_swapped_carries():
    # x doubles n times
    b = ExecutableBuilder()
    x, n = b.input(f32(4)), b.input(I32)
    p, q = b.temp(0), b.temp(64)
    out = b.output(f32(4))
    b.copy(p, x, 16)
    b.begin_loop(count_slot=n, count_dtype=3)
    b.launch(kernels.add(), [p, p, q], [], 4)
    b.swap(p, q)
    b.end()
    b.copy(out, p, 16)
    e = b.finish(128, 100.0)
    for count in (0, 1, 5):
        assert e.run([array(1, 2, 3, 4), from_numpy(np.int32(count))])[0].tolist() == [
            v * 2**count for v in (1, 2, 3, 4)
        ]


def test_scan_with_slices():
    # running sums of the rows of an input
    b = ExecutableBuilder()
    x = b.input(f32(5, 3))
    p, q = b.temp(0), b.temp(64)
    rows = b.output(f32(5, 3))
    row_in, row_out = b.view(), b.view()
    zero = b.constant(array(0, 0, 0))
    b.copy(p, zero, 12)
    b.begin_loop(count=5)
    b.slice(row_in, x, 0, 12)
    b.slice(row_out, rows, 0, 12)
    b.launch(kernels.add(), [p, row_in, q], [], 3)
    b.copy(row_out, q, 12)
    b.swap(p, q)
    b.end()
    x_ = np.arange(15, dtype="f4").reshape(5, 3)
    np.testing.assert_array_equal(to_numpy(b.finish(128, 1.0).run([from_numpy(x_)])[0]), np.cumsum(x_, 0))


def test_branch():
    b = ExecutableBuilder()
    index, x = b.input(I32), b.input(f32(2))
    out = b.output(f32(2))
    b.begin_branch(index)
    b.copy(out, x, 8)
    b.next_case()
    b.launch(kernels.add(), [x, x, out], [], 2)
    b.end()
    e = b.finish(0, 1.0)
    for i, expected in ((0, [1, 2]), (1, [2, 4]), (7, [2, 4]), (-3, [1, 2])):
        assert e.run([from_numpy(np.int32(i)), array(1, 2)])[0].tolist() == expected


def test_library_steps():
    assert {"copy", "fill", "gemm"} <= set(_native.library_names())
    b = ExecutableBuilder()
    x, out = b.input(f32(2)), b.output(f32(2))
    b.library("copy", [x, out], [8], 1.0)
    assert b.finish(0, 1.0).run([array(3, 4)])[0].tolist() == [3, 4]
    with pytest.raises(ValueError, match="nonsense"):
        ExecutableBuilder().library("nonsense", [], [], 0.0)


def test_host_step_with_several_operands():
    def function(x, n, y, z):
        assert (x.dtype, n.shape, y.flags.writeable, z.dtype) == ("f4", (), True, "bool")
        y[...] = x * n
        z[...] = x.sum() > 3

    b = ExecutableBuilder()
    x, n = b.input(f32(2)), b.input(I32)
    y, z = b.output(f32(2)), b.output(BOOL)
    b.host(function, [(x, f32(2)), (n, I32)], [(y, f32(2)), (z, BOOL)])
    e = b.finish(0, 1.0)
    y_, z_ = e.run([array(1, 2), 3])
    assert y_.tolist() == [3, 6] and z_.item() is False
    weak = weakref.ref(function)
    del function, b, e
    _native.synchronize()
    gc.collect()
    assert weak() is None


def test_keep_alive_is_held():
    class Code:
        pass

    code = Code()
    weak = weakref.ref(code)
    b = ExecutableBuilder()
    b.input(f32(1))
    b.output_alias(f32(1), "input", 0)
    e = b.finish(0, 1.0, code)
    assert e.keep_alive is code
    del code, b
    gc.collect()
    assert weak() is not None
    del e
    gc.collect()
    assert weak() is None


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda b: b.input((3,)), TypeError),
        (lambda b: b.output(None), TypeError),
        (lambda b: b.constant(np.zeros(3)), TypeError),
        (lambda b: b.output_alias(f32(1), "nonsense", 0), ValueError),
        (lambda b: b.launch(kernels.add(), [5], [], 1), ValueError),
        (lambda b: b.end(), ValueError),
        (lambda b: (b.begin_loop(count=3), b.finish(0, 1.0)), ValueError),
        (lambda b: b.host(3, [(0, None)], []), TypeError),
    ],
)
def test_builder_errors(use, error):
    with pytest.raises(error):
        use(ExecutableBuilder())


def test_out_of_memory():
    b = ExecutableBuilder()
    x, out = b.input(f32(1)), b.output(ArrayType((2**50,), 11))
    b.launch(kernels.add(), [x, x, out], [], 1)
    e = b.finish(0, 1.0)
    with pytest.raises(Exception, match=r"(?i)memory") as caught:
        e.run([array(1)])
    assert isinstance(caught.value, (MemoryError, RuntimeError))


def test_abi_offsets():
    assert _native.abi_offsets() == {"buffers": 0, "params": 8, "scratch": 16, "cancel": 24, "routines": 32, "size": 40}
