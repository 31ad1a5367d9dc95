"""ArrayType: interning, attributes, errors."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

from jato import _native
from jato._native import ArrayType

F32, I32 = 11, 3


def test_equal_types_are_one_object():
    assert ArrayType((2, 3), F32) is ArrayType([2, np.int64(3)], F32)
    assert ArrayType((2, 3), F32) is not ArrayType((2, 3), F32, True)
    assert ArrayType((2, 3), F32) is not ArrayType((3, 2), F32)
    assert ArrayType((6,), F32) is not ArrayType((2, 3), F32)


def test_attributes():
    t = ArrayType((4, 0, 2), I32, True)
    assert (t.shape, t.ndim, t.size, t.nbytes, t.itemsize) == ((4, 0, 2), 3, 0, 0, 4)
    assert t.dtype == np.dtype("int32") and t.dtype_code == I32 and t.weak_type
    assert str(ArrayType((2, 3), F32)) == "float32[2,3]"
    assert repr(ArrayType((), F32, True)) == "ArrayType(float32[], weak_type=True)"
    assert t.update(weak_type=False) is ArrayType((4, 0, 2), I32)
    assert t.update(shape=(7,), dtype_code=F32) is ArrayType((7,), F32, True)


def test_scalar_shape_as_int():
    assert ArrayType(5, F32) is ArrayType((5,), F32)


def test_pickle_and_copy_keep_identity():
    t = ArrayType((2, 3), F32)
    assert pickle.loads(pickle.dumps(t)) is t
    assert copy.deepcopy(t) is t and copy.copy(t) is t


def test_unused_types_are_freed():
    gc.collect()
    before = _native.array_type_count()
    types = [ArrayType((n, 12345), F32) for n in range(2000)]
    assert _native.array_type_count() == before + 2000
    seen = weakref.ref(types[0])
    del types
    assert _native.array_type_count() == before and seen() is None


@pytest.mark.parametrize(
    ("shape", "code", "error", "text"),
    [
        ((-1,), F32, ValueError, "must not be negative"),
        ((2,), 17, ValueError, "dtype_code"),
        ((2,), -1, ValueError, "dtype_code"),
        ((2**40, 2**40), F32, ValueError, r"2\*\*63 bytes"),
        ((1,) * 65, F32, ValueError, "at most 64 axes"),
        ((1.5,), F32, TypeError, "float"),
        ("ab", F32, TypeError, None),
    ],
)
def test_errors(shape, code, error, text):
    with pytest.raises(error, match=text):
        ArrayType(shape, code)


def test_zero_sized_huge_shape_is_fine():
    assert ArrayType((2**40, 2**40, 0), F32).nbytes == 0
