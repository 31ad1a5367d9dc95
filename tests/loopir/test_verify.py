"""The verifier: one test per rule, and its message."""

from dataclasses import replace

import pytest

from jato.base.errors import InternalError
from jato.loopir.builder import Builder
from jato.loopir.grammar import Buffer, Combine, Expr, For, Kernel, Reduce, Store
from jato.loopir.verify import verify


def kernel_of(*body, buffers=(), params=0):
    return Kernel("bad", tuple(buffers), params, tuple(body))


@pytest.fixture
def b():
    return Builder()


def refused(kernel, message):
    with pytest.raises(InternalError, match=message):
        verify(kernel)


def test_unbound_variable(b):
    y = b.output("y", "i64")
    refused(
        kernel_of(Store(y, b.index(0), b.var("i", "i64")), buffers=b.buffers), "i is used where"
    )


def test_variable_used_after_its_loop(b):
    y = b.output("y", "i64")
    with b.for_("i", 0, 9) as i:
        b.store(y, i, i)
    b.store(y, 0, i)
    refused(b.kernel("k"), "kernel k, in store to y: variable i is used where it is not bound")


def test_dtypes_of_operations(b):
    y = b.output("y", "f32")
    i, x = b.index(1), b.const(1.0, "f32")
    for node, message in [
        (Expr("add", (i, x), "f32", None, 0), "add of unequal dtypes"),
        (Expr("add", (x,), "f32", None, 0), "add takes 2 operands, got 1"),
        (Expr("lt", (x, x), "f32", None, 0), "lt of .* is f32, expected bool"),
        (Expr("sqrt", (i,), "i64", None, 0), "sqrt does not take i64"),
        (Expr("frobnicate", (x,), "f32", None, 0), "unknown opcode frobnicate"),
        (Expr("select", (x, x, x), "f32", None, 0), "select of"),
        (Expr("bitcast", (i,), "f32", None, 0), "bitcast i64 to f32"),
        (Expr("const", (), "f32", 1, 0), "f32 constant 1"),
        (Expr("param", (), "i64", 3, 0), "param 3 of 0"),
        (Expr("if_any", (x, x, x), "f32", None, 0), "if_any takes"),
        (Expr("add", (x, x), "c64", None, 0), "dtype c64"),
    ]:
        value = node if node.dtype == "f32" else Expr("convert", (node,), "f32", None, 1)
        refused(kernel_of(Store(y, b.index(0), value), buffers=[y]), message)


def test_buffers(b):
    x, y = b.input("x", "f32"), b.output("y", "f32")
    one = b.const(1.0, "f32")
    refused(kernel_of(Store(x, b.index(0), one), buffers=[x]), "x is only to be read")
    refused(kernel_of(Store(y, b.index(0), one)), "y is not a buffer of this kernel")
    refused(kernel_of(Store(y, one, one), buffers=[y]), "is f32, expected i64")
    refused(kernel_of(Store(y, b.index(0), b.load(x, 0)), buffers=[y]), "load of x, not a buffer")
    refused(kernel_of(buffers=[x, Buffer("x", "f32", "in")]), "names repeat")
    refused(kernel_of(buffers=[Buffer("s", "f32", "local")]), "s has no size")
    refused(kernel_of(buffers=[Buffer("s", "f32", "shared")]), "space shared")


def test_vector_loops(b):
    y = b.output("y", "i64")
    i, j = b.var("i", "i64"), b.var("j", "i64")
    inner = For(j, b.index(0), b.index(9), (Store(y, j, i),), 8)
    refused(
        kernel_of(For(i, b.index(0), b.index(9), (inner,), 8), buffers=[y]), "inside a vector loop"
    )
    refused(kernel_of(replace(inner, lanes=3), buffers=[y]), "lanes 3")


def test_reductions(b):
    x = b.input("x", "f32")
    b.reduce([9], lambda j: b.load(x, j), "add")
    (good,) = b.kernel("k").body
    verify(kernel_of(good, buffers=[x]))
    assert isinstance(good, Reduce)
    refused(kernel_of(replace(good, identity=()), buffers=[x]), "unequal length")
    refused(kernel_of(replace(good, identity=(b.index(0),)), buffers=[x]), "is i64, expected f32")
    refused(kernel_of(good, good, buffers=[x]), "bound twice")
    wrong = Combine(good.combine.left, good.combine.right, (b.index(0),))
    refused(kernel_of(replace(good, combine=wrong), buffers=[x]), "is i64, expected f32")
