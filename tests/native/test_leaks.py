"""Nothing is left behind: repeated operations do not add objects."""

import gc
import sys

import numpy as np
import pytest
from programs import LEAF, add_executable, f32, host_executable, jit_of, scale_executable

from jato import _native
from jato._native import JitFunction, from_dlpack, from_numpy, to_numpy, tree_flatten

X = from_numpy(np.arange(64, dtype="f4"))
TREE = {"b": (1, [X, None]), "a": {"k": 2.5}}
ADD = jit_of(lambda *types: add_executable(64))
QUEUED = jit_of(lambda *types: add_executable(64, cost_ns=1e9))
DONATING = jit_of(lambda *types: add_executable(64, take_over=0), donated=(0,))
SCALE = jit_of(lambda x, s: scale_executable(x, s))
STATIC = JitFunction(lambda: 0, lambda *a: _native.Entry(add_executable(64), LEAF, [0, 0]), None, (1,))


def failing(x, out):
    raise KeyError("no")


FAILING = jit_of(lambda *types: host_executable(failing, 64))
FAILING_QUEUED = jit_of(lambda *types: host_executable(failing, 64, cost_ns=1e9))


class Number:
    def __hash__(self):
        return 1

    def __eq__(self, other):
        return True


def raises(error, f, *args):
    with pytest.raises(error):
        f(*args)


def new_function():
    f = JitFunction(lambda: 0, lambda *a: _native.Entry(add_executable(64), LEAF, [0, 1]), None)
    f.own = f
    f(X, X)


OPERATIONS = {
    "from_numpy": lambda: from_numpy(np.ones((3, 4), "f4")),
    "from_list": lambda: from_numpy([1, 2, 3]),
    "to_numpy": lambda: to_numpy(X)[1:],
    "asarray": lambda: np.asarray(X),
    "back": lambda: from_numpy(to_numpy(X)),
    "buffer": lambda: memoryview(X)[1:],
    "dlpack": lambda: from_dlpack(np.arange(4)),
    "dlpack_out": lambda: (X.__dlpack__(), X.__dlpack__(max_version=(1, 0)), np.from_dlpack(X)),
    "index": lambda: (X[1], X[2:5], X[None], X[...], list(X[:3])),
    "index_error": lambda: raises(IndexError, lambda: X[99]),
    "numbers": lambda: (float(X[1]), X.tolist(), X[0].item(), bool(X[0])),
    "attributes": lambda: (X.shape, X.dtype, X.aval, X.placement, X.ndim, repr(X.aval), hash(X.aval)),
    "types": lambda: [f32(n, 7) for n in range(20)],
    "update": lambda: X.aval.update(shape=(8, 8)),
    "view": lambda: _native.view(X, f32(8, 8)),
    "flatten": lambda: tree_flatten(TREE),
    "unflatten": lambda: tree_flatten(TREE)[1].unflatten([1, 2, 3]),
    "up_to": lambda: tree_flatten((1, 2))[1].flatten_up_to(([1], {"a": 2})),
    "up_to_error": lambda: raises(ValueError, tree_flatten((1, 2))[1].flatten_up_to, [3]),
    "compose": lambda: tree_flatten(TREE)[1].compose(tree_flatten([1, 2])[1]).children(),
    "state": lambda: tree_flatten(TREE)[1].__reduce__(),
    "call": lambda: ADD(X, X),
    "call_numpy": lambda: ADD(np.ones(64), np.ones(64, "f4")),
    "call_scalar": lambda: (SCALE(X, 2.0), SCALE(X, np.float32(3))),
    "call_queued": lambda: QUEUED(X, np.ones(64, "f4")).block_until_ready(),
    "call_donating": lambda: DONATING(from_numpy(np.ones(64, "f4")), X),
    "call_error": lambda: raises(KeyError, FAILING, X),
    "call_error_queued": lambda: raises(KeyError, FAILING_QUEUED(X).tolist),
    "static": lambda: (STATIC(X, 1), STATIC(X, (1, "a")), STATIC(X, Number())),
    "unhashable": lambda: raises(ValueError, STATIC, X, [1]),
    "overflow": lambda: raises(OverflowError, SCALE, X, 2**40),
    "signature": lambda: ADD.call_signature({"a": X}, [1, 2.0], k=(X,)),
    "lookup": lambda: ADD.lookup(X, X),
    "new_function": new_function,
    "build": lambda: add_executable(64).describe(),
    "build_error": lambda: raises(ValueError, _native.ExecutableBuilder().end),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_leaks(name):
    operation = OPERATIONS[name]

    def settle():
        _native.synchronize()
        gc.collect()
        return sys.getallocatedblocks()

    for _ in range(30):
        operation()
    before = settle()
    references = sys.getrefcount(X), sys.getrefcount(X.aval), sys.getrefcount(None)
    for _ in range(300):
        operation()
    after = settle()
    assert after - before < 200, f"{after - before} blocks more after 300 rounds"
    assert sys.getrefcount(X) - references[0] < 20
    assert sys.getrefcount(X.aval) - references[1] < 50
    assert abs(sys.getrefcount(None) - references[2]) < 100
