"""DLPack, both ways.  Oracle: NumPy's implementation."""

import gc

import ml_dtypes
import numpy as np
import pytest

from jato import _native
from jato._native import from_dlpack, from_numpy, to_numpy


@pytest.mark.parametrize("dtype", ["bool", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16"])
def test_export(dtype, x64):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    a = from_numpy(x)
    y = np.from_dlpack(a)
    assert y.dtype == x.dtype and y.ctypes.data == a.unsafe_buffer_pointer()
    np.testing.assert_array_equal(y, x)
    assert not y.flags.writeable
    a.delete()
    del a
    np.testing.assert_array_equal(y, x)
    assert from_numpy(x).__dlpack_device__() == (1, 0)


def test_import_copies_what_can_change():
    x = np.arange(5, dtype="f4")
    a = from_dlpack(x)
    x[:] = 0
    assert a.tolist() == [0, 1, 2, 3, 4]


def test_import_shares_what_cannot():
    a = from_numpy(np.arange(1000, dtype="f4"))
    b = from_dlpack(a)
    assert b.unsafe_buffer_pointer() == a.unsafe_buffer_pointer()
    a.delete()
    del a
    gc.collect()
    assert to_numpy(b)[999] == 999


@pytest.mark.parametrize("view", [lambda x: x[::2], lambda x: x[::-1], lambda x: x.T, lambda x: x[:0]])
def test_strided_import(view):
    x = view(np.arange(12, dtype="i4").reshape(4, 3))
    np.testing.assert_array_equal(to_numpy(from_dlpack(x)), x)


def test_old_and_new_capsules():
    a = from_numpy(np.arange(3, dtype="f4"))
    for capsule in (a.__dlpack__(), a.__dlpack__(max_version=(1, 1)), a.__dlpack__(max_version=(0, 8))):
        assert from_dlpack(capsule).tolist() == [0, 1, 2]
    shared = a.__dlpack__(max_version=(1, 0))
    from_dlpack(shared)
    with pytest.raises(TypeError, match="unused"):
        from_dlpack(shared)  # consumed
    copied = from_dlpack(a.__dlpack__(max_version=(1, 0), copy=True))
    assert copied.unsafe_buffer_pointer() != a.unsafe_buffer_pointer()
    assert np.from_dlpack(a, copy=True).flags.writeable


def test_dropped_capsules_free_their_memory():
    a = from_numpy(np.zeros(10, "f4"))
    for _ in range(100):
        a.__dlpack__()
        a.__dlpack__(max_version=(1, 0))


def test_bfloat16():
    a = from_numpy(np.array([1.5, 2], ml_dtypes.bfloat16))
    assert from_dlpack(a).aval is a.aval


def test_errors():
    with pytest.raises(BufferError, match="cannot be exported"):
        _native.from_scalar(1, _native.ArrayType((), 16)).__dlpack__()
    with pytest.raises(BufferError, match="CPU"):
        from_numpy(np.zeros(1)).__dlpack__(dl_device=(2, 0))
    with pytest.raises(AttributeError):
        from_dlpack(3)
