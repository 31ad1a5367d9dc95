"""JitFunction: signatures, caching, the cold path, static arguments, donation."""

import copy
import gc
import inspect
import pickle
import threading
import weakref
from collections import OrderedDict, namedtuple

import ml_dtypes
import numpy as np
import pytest
from programs import (
    LEAF,
    add_executable,
    f32,
    host_executable,
    jit_of,
    scale_executable,
)

from jato import _native
from jato._native import ArrayType, JitFunction, from_numpy, to_numpy, tree_flatten

Point = namedtuple("Point", "x y")


def ones(*shape):
    return from_numpy(np.ones(shape, "f4"))


def add(*types):
    return add_executable(types[0].size)


def test_cold_then_warm():
    f = jit_of(add)
    x, y = from_numpy(np.arange(8, dtype="f4")), ones(8)
    for _ in range(3):
        np.testing.assert_array_equal(to_numpy(f(x, y)), np.arange(8) + 1)
    assert f.counters == {"hits": 2, "misses": 1, "entries": 1} and f.cache_size() == 1
    f(ones(5), ones(5))
    assert f.cache_size() == 2
    f.cache_clear()
    assert f.cache_size() == 0
    f(x, y)
    assert len(f.calls) == 3


def signature_function(**options):
    """A function that only records how often it was compiled."""
    calls = []

    def cold(self, args, kwargs, info):
        calls.append(info)
        b = _native.ExecutableBuilder()
        for t in info.leaf_types:
            b.input(t)
        b.constant(ones(1))
        b.output_alias(f32(1), "constant", 0)
        return _native.Entry(b.finish(0, 1.0), LEAF, range(len(info.leaves)))

    f = JitFunction(lambda *a, **k: None, cold, lambda *a, **k: None, **options)
    f.calls = calls
    return f


def same_entry(f, *calls):
    before = len(f.calls)
    for args, kwargs in calls:
        f(*args, **kwargs)
    return len(f.calls) - before


def test_what_makes_a_new_entry():
    f = signature_function()
    distinct = [
        ((1,), {}), ((1.0,), {}), ((True,), {}), ((1j,), {}), ((np.float32(1),), {}), ((np.int8(1),), {}),
        ((ones(1),), {}), ((ones(2),), {}), ((ones(2, 1),), {}), (((ones(1),),), {}), (([ones(1)],), {}),
        (({"a": ones(1)},), {}), (({"b": ones(1)},), {}), (({1: ones(1)},), {}), (({True: ones(1)},), {}),
        ((OrderedDict(a=ones(1)),), {}), ((Point(1, 2),), {}), (((1, 2),), {}), ((1, 2), {}), ((None,), {}), ((), {}),
        (((), ()), {}), (([],), {}), (({},), {}), ((), {"a": 1}), ((), {"b": 1}), ((1,), {"a": 1}),
        ((np.ones(3, "f4"),), {}), ((np.ones(3, "i2"),), {}), ((np.ones(3, ml_dtypes.bfloat16),), {}),
        ((((1,), 2),), {}), (((1, (2,)),), {}), ((_native.with_placement(ones(1), "here"),), {}),
        ((_native.with_placement(ones(1), "there"),), {}),
    ]  # fmt: skip
    assert same_entry(f, *distinct) == len(distinct)
    assert same_entry(f, *distinct) == 0
    equal = [
        ((2,), {}), ((-7.5,), {}), ((np.int8(9),), {}), ((from_numpy(np.zeros(2, "f4")),), {}),
        ((np.zeros(3, "f8"),), {}), ((np.zeros(3, "f4")[::-1],), {}), ((np.zeros(2),), {}),
        ((_native.with_placement(ones(1), "he" + str("re")),), {}), (({"a": ones(1)},), {}),
    ]  # fmt: skip
    assert same_entry(f, *equal) == 0


def test_order_of_keys_and_keywords_does_not_matter():
    f = signature_function()
    f({"a": 1, "b": 2.0}, p=1, q=2.0)
    f({"b": 2.0, "a": 1}, q=2.0, p=1)
    assert len(f.calls) == 1
    info = f.calls[0]
    assert info.leaves == [1, 2.0, 1, 2.0] and info.arguments == (0, "p", "q")


def test_call_signature():
    f = signature_function(static_argnums=(1,), static_argnames=("mode",), donate_argnums=(0,), donate_argnames=("z",))
    x, y = ones(2), np.arange(3.0)
    f({"b": x, "a": (y, 3)}, "static", z=[x, 2.5], mode=(1, 2))
    (info,) = f.calls
    assert info.leaves[0] is y and info.leaves[1] == 3 and info.leaves[2] is x and info.leaves[3] is x
    assert info.leaf_types == [f32(3), ArrayType((), 3, True), f32(2), f32(2), ArrayType((), 11, True)]
    assert info.leaf_arguments == [0, 0, 0, "z", "z"]
    assert info.donated == (0, 1, 2, 3, 4) and info.odd == ()
    assert info.arguments == (0, 1, "mode", "z")
    assert info.statics == ((1, "static"), ("mode", (1, 2)))
    dynamic = tree_flatten({"b": x, "a": (y, 3)})[1]
    assert info.argument_trees == (dynamic, None, None, tree_flatten([x, 2.5])[1])
    assert info.in_tree is tree_flatten((({"b": 0, "a": (0, 0)},), {"z": [0, 0]}))[1]
    again = f.call_signature({"b": x, "a": (y, 3)}, "static", z=[x, 2.5], mode=(1, 2))
    assert again.in_tree is info.in_tree
    assert f.lookup({"b": x, "a": (y, 3)}, "static", z=[x, 2.5], mode=(1, 2)) is not None
    assert f.lookup(1, "static") is None


def test_static_arguments():
    f = signature_function(static_argnums=(0,), static_argnames=("n",))
    values = [1, 1.0, True, 0.0, -0.0, "a", None, (1, 2), (1, 2.0), (1, True), len, float("inf"), b"a", 1j, frozenset({1})]
    assert same_entry(f, *[((v,), {}) for v in values]) == len(values)
    assert same_entry(f, *[((v,), {}) for v in values]) == 0
    assert same_entry(f, (((1, 2),), {}), ((str(b"a", "ascii"),), {}), ((1.0,), {})) == 0
    assert same_entry(f, (("k",), {"n": 1}), (("k",), {"n": 2}), (("k",), {"n": 1})) == 2


def test_negative_static_positions():
    f = signature_function(static_argnums=(-1,))
    f(1, "static")
    assert f.calls[0].statics == ((1, "static"),)
    f(1, 2, "static")
    assert f.calls[1].statics == ((2, "static"),)


@pytest.mark.parametrize("value", [[1], {}, np.ones(2), ones(2), {1}, (1, [2])], ids=repr)
def test_unhashable_static(value):
    f = JitFunction(lambda n: n, None, None, (0,), ("n",), (), "myfun")
    seen = []

    def error(function, key, v):
        seen.append((function, key, v))
        return ValueError("from Python: unhashable")

    before = _native.set_static_error(None)
    try:
        for call in (lambda: f(value), lambda: f(n=value)):
            with pytest.raises(ValueError, match=f"myfun.*{type(value).__name__}.*unhashable.*tuple"):
                call()
        _native.set_static_error(error)
        with pytest.raises(ValueError, match="from Python"):
            f(n=value)
        assert seen[0][0] is f.__wrapped__ and seen[0][1] == "n" and seen[0][2] is value
    finally:
        _native.set_static_error(before)


def test_static_values_with_python_equality():
    class Key:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            return 7  # everything collides

        def __eq__(self, other):
            return self.n == other.n

    f = signature_function(static_argnums=(0,))
    assert same_entry(f, *[((Key(i),), {}) for i in range(20)]) == 20
    assert same_entry(f, *[((Key(i),), {}) for i in range(20)]) == 0

    class Hostile(Key):
        __hash__ = Key.__hash__

        def __eq__(self, other):
            f.cache_clear()  # the cache changes while it is searched
            gc.collect()
            return self.n == other.n

    for i in range(5):
        f(Hostile(i))
        f(Hostile(i))

    class Raising(Key):
        __hash__ = Key.__hash__

        def __eq__(self, other):
            raise KeyError("no")

    f(Raising(1))
    with pytest.raises(KeyError):
        f(Raising(2))

    class RaisingHash:
        def __hash__(self):
            raise KeyError("hash")

    with pytest.raises(KeyError, match="hash"):
        f(RaisingHash())


def test_python_scalars():
    f = jit_of(lambda x, s: scale_executable(x, s))
    x = from_numpy(np.arange(4, dtype="f4"))
    for s in (2.0, 2.5, -0.25, float("inf"), np.float32(3), np.float64(3.25)):
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(to_numpy(f(x, s)), np.arange(4, dtype="f4") * np.float32(s))
    assert len(f.calls) == 2 and f.calls[0].leaf_types[1].weak_type and not f.calls[1].leaf_types[1].weak_type


@pytest.mark.parametrize("wide", [False, True])
def test_scalar_values_arrive(wide):
    _native.set_thread_x64(wide)
    try:
        def make(t):
            b = _native.ExecutableBuilder()
            b.input(t)
            b.output_alias(t, "input", 0)
            return b.finish(0, 1.0)

        f = jit_of(make)
        size = 8 if wide else 4
        for value, dtype in [
            (True, "bool"), (-5, f"i{size}"), (2**31 - 1, f"i{size}"), (2.5, f"f{size}"), (1 + 2j, f"c{2 * size}"),
            (np.int8(-3), "i1"), (np.uint16(65535), "u2"), (np.int64(-9), f"i{size}"), (np.uint64(9), f"u{size}"),
            (np.float64(0.5), f"f{size}"), (np.float16(0.5), "f2"), (np.complex128(1 - 1j), f"c{2 * size}"),
            (np.bool_(True), "bool"), (ml_dtypes.bfloat16(1.5), ml_dtypes.bfloat16),
            (np.array(7), f"i{size}"), (np.arange(3)[::-1], f"i{size}"), (np.arange(4).astype(">i2"), "i2"),
            (np.zeros((0, 2)), f"f{size}"),
        ]:  # fmt: skip
            result = f(value)
            assert result.dtype == np.dtype(dtype), value
            np.testing.assert_array_equal(to_numpy(result), np.asarray(value))
            assert result.weak_type == (type(value) in (int, float, complex))  # no bool is
    finally:
        _native.set_thread_x64(None)


def test_integers_out_of_range():
    f = signature_function()
    for value in (2**31, -(2**31) - 1, 2**200):
        with pytest.raises(OverflowError, match=f"{value} does not fit int32.*jax_enable_x64"):
            f(value)
    _native.set_thread_x64(True)
    try:
        f(2**31)
        with pytest.raises(OverflowError, match="int64"):
            f(2**63)
    finally:
        _native.set_thread_x64(None)


def test_int_subclasses():
    class Enumerated(int):
        pass

    f = signature_function()
    f(Enumerated(3))
    assert f.calls[0].leaf_types == [ArrayType((), 3, True)]


def test_x64_and_epoch_are_part_of_the_key():
    f = signature_function()
    f(ones(1))
    _native.set_thread_x64(True)
    f(ones(1))
    _native.set_thread_x64(None)
    epoch = _native.config_epoch()
    _native.set_thread_config_epoch(epoch + 1)
    f(ones(1))
    _native.set_thread_config_epoch(None)
    f(ones(1))
    assert len(f.calls) == 3 and _native.config_epoch() == epoch


def test_odd_leaves_are_never_cached():
    seen = []

    def cold(self, args, kwargs, info):
        seen.append(info.odd)
        return ("result", args, kwargs)

    f = JitFunction(lambda: 0, cold, None)
    stranger = object()
    for odd in (stranger, "text", np.array(["a"]), np.datetime64("2020-01-01"), {1, 2}):
        assert f(1, [odd], k=2) == ("result", (1, [odd]), {"k": 2})
    assert seen == [(1,)] * 5 and f.cache_size() == 0

    def bad(self, args, kwargs, info):
        return _native.Entry(add_executable(8), LEAF, [0, 1])

    with pytest.raises(TypeError, match="expected an array or a number.*got str"):
        JitFunction(lambda: 0, bad, None)("a", "b")


def test_cold_errors_pass_through_and_leave_nothing():
    def cold(self, args, kwargs, info):
        raise ZeroDivisionError("while compiling")

    f = JitFunction(lambda: 0, cold, None)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            f(1)
    assert f.cache_size() == 0


def test_trace_active_is_per_thread():
    seen = []

    def traced(self, args, kwargs):
        seen.append((self, args, kwargs))
        return "traced"

    f = jit_of(add, traced=traced)
    _native.set_trace_active(True)
    try:
        assert f(1, k=2) == "traced" and seen == [(f, (1,), {"k": 2})]
        assert _native.trace_active()
        other = []
        thread = threading.Thread(target=lambda: other.append((_native.trace_active(), f(ones(3), ones(3)).shape)))
        thread.start()
        thread.join()
        assert other == [(False, (3,))]
    finally:
        _native.set_trace_active(False)

    def plain(x, *, k):
        return x + k

    g = JitFunction(plain, None, plain)
    _native.set_trace_active(True)
    try:
        assert g(1, k=2) == 3
    finally:
        _native.set_trace_active(False)


def test_reentrant_cold_path():
    def cold(self, args, kwargs, info):
        if info.leaf_types[0].size < 4:
            self(ones(info.leaf_types[0].size + 1), ones(info.leaf_types[0].size + 1))
        self.cache_clear()
        return _native.Entry(add_executable(info.leaf_types[0].size), LEAF, [0, 1])

    f = JitFunction(lambda: 0, cold, None)
    assert f(ones(1), ones(1)).tolist() == [2]


def test_threads_compile_and_run_together():
    f = jit_of(add)
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(200):
            n = int(rng.integers(1, 30))
            x = rng.standard_normal(n).astype("f4")
            if not np.array_equal(to_numpy(f(from_numpy(x), x)), x + x):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(10)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and f.cache_size() == 29


def test_least_recently_used_entries_are_dropped():
    f = signature_function(static_argnums=(0,))
    f.cache_capacity = 10
    for i in range(100):
        f(i)
        f(0)
    assert f.cache_size() == 10 and f.lookup(0) is not None and f.lookup(50) is None
    with pytest.raises(ValueError, match="cache_capacity"):
        f.cache_capacity = 0


def test_clear_all():
    f, g = signature_function(), signature_function()
    f(1), g(1)
    _native.clear_jit_caches()
    assert f.cache_size() == g.cache_size() == 0


def test_trees_out():
    def cold(self, args, kwargs, info):
        b = _native.ExecutableBuilder()
        for t in info.leaf_types:
            b.input(t)
        for i, t in enumerate(info.leaf_types):
            b.output_alias(t, "input", i)
        return _native.Entry(b.finish(0, 1.0), tree_flatten(args)[1], range(len(info.leaves)))

    f = JitFunction(lambda: 0, cold, None)
    x = [from_numpy(np.full(3, i, "f4")) for i in range(6)]
    args = ({"b": x[0], "a": (x[1], [x[2], None])}, Point(x[3], OrderedDict(z=x[4])), [x[5], ()])
    result = f(*args)
    assert [a.tolist() for a in tree_flatten(result)[0]] == [a.tolist() for a in tree_flatten(args)[0]]
    assert tree_flatten(result)[1] is tree_flatten(args)[1]
    assert isinstance(result[1], Point) and list(result[0]) == ["a", "b"]
    assert f(*args)[0]["b"].unsafe_buffer_pointer() == x[0].unsafe_buffer_pointer()


def test_leaf_selection_and_constants():
    c = from_numpy(np.full(4, 10, "f4"))
    weak = weakref.ref(c)

    def cold(self, args, kwargs, info):
        return _native.Entry(add_executable(4), LEAF, [2], [c])  # noqa: F821  (deleted below)

    f = JitFunction(lambda: 0, cold, None)
    assert f(1, "unused".__len__(), ones(4)).tolist() == [11] * 4
    del c, cold
    gc.collect()
    assert weak() is not None and f(1, 6, ones(4)).tolist() == [11] * 4
    del f
    gc.collect()
    assert weak() is None


def test_wrong_entries():
    executable = add_executable(4)
    Entry = _native.Entry
    with pytest.raises(ValueError, match="2 inputs, but 1 leaves"):
        Entry(executable, LEAF, [0])
    with pytest.raises(ValueError, match="out_tree has 2 leaves"):
        Entry(executable, tree_flatten((1, 2))[1], [0, 1])
    with pytest.raises(ValueError, match="takes over input 0, which is not donated"):
        Entry(add_executable(4, take_over=0), LEAF, [0, 1])
    with pytest.raises(TypeError, match="Executable"):
        Entry(None, LEAF, [0])
    with pytest.raises(TypeError, match="PyTreeDef"):
        Entry(executable, None, [0, 1])
    with pytest.raises(ValueError, match="leaf 5 is selected"):
        Entry(executable, LEAF, [0, 5]).run([ones(4)])


def donating(*types):
    return add_executable(types[0].size, take_over=0)


def test_donation_reuses_memory():
    f = jit_of(donating, donated=(0,), donate_argnums=(0,))
    x, y = from_numpy(np.arange(64, dtype="f4")), ones(64)
    address = x.unsafe_buffer_pointer()
    z = f(x, y)
    assert z.unsafe_buffer_pointer() == address and z.tolist() == list(range(1, 65))
    assert x.is_deleted() and not y.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        f(x, y)


@pytest.mark.parametrize("share", ["view", "numpy", "buffer", "dlpack", "twice", "alias"])
def test_donation_never_overwrites_what_is_seen(share):
    f = jit_of(donating, donated=(0,))
    x, y = from_numpy(np.arange(64, dtype="f4")), ones(64)
    if share == "twice":
        assert f(x, x).tolist() == [2 * i for i in range(64)]
        assert x.is_deleted()
        return
    if share == "alias":
        y = x[:]
        assert f(x, y).tolist() == [2 * i for i in range(64)]
        assert y.tolist() == list(range(64))
        return
    seen = {
        "view": lambda: x[1:],
        "numpy": lambda: to_numpy(x)[1:],
        "buffer": lambda: np.frombuffer(memoryview(x), "f4")[1:],
        "dlpack": lambda: np.from_dlpack(x)[1:],
    }[share]()
    assert f(x, y).tolist() == list(range(1, 65))
    assert list(map(float, seen)) == list(range(1, 64))


def test_numpy_arguments_are_not_donated_away():
    f = jit_of(donating, donated=(0,))
    x = np.arange(8, dtype="f4")
    assert f(x, ones(8)).tolist() == list(range(1, 9))
    assert x.tolist() == list(range(8))


def test_result_never_aliases_a_numpy_argument():
    def make(t):
        b = _native.ExecutableBuilder()
        b.input(t)
        b.output_alias(t, "input", 0)
        return b.finish(0, 1.0)

    x = np.zeros(8, "f4")
    y = jit_of(make)(x)
    x[:] = 1
    assert y.tolist() == [0] * 8


def test_callable_object():
    def fun(x, y=1):
        "Documentation."

    f = jit_of(add, name="fun")
    assert callable(f) and f.name == "fun" and "fun" in repr(f)
    f.extra = 3
    assert f.extra == 3 and f.__dict__["extra"] == 3
    g = JitFunction(fun, None, None, (1,), ("y",), (0,), None, ("x",))
    assert g.__wrapped__ is fun and g.name == "fun"
    assert (g.static_argnums, g.static_argnames, g.donate_argnums, g.donate_argnames) == ((1,), ("y",), (0,), ("x",))
    assert str(inspect.signature(g)) == "(x, y=1)"
    assert copy.deepcopy(g) is g and weakref.ref(g)() is g
    with pytest.raises(TypeError):
        JitFunction(fun, None, None, static_argnames=(1,))
    with pytest.raises(TypeError):
        JitFunction(fun, None, None, static_argnums=("a",))


module_level = jit_of(add, name="module_level")
module_level.__qualname__ = "module_level"
module_level.__module__ = __name__


def test_pickled_by_name():
    assert pickle.loads(pickle.dumps(module_level)) is module_level


def test_binds_as_method():
    seen = []

    class Model:
        method = JitFunction(lambda self, x: x, lambda f, args, kwargs, info: seen.append(args) or "cold", None)

    m = Model()
    assert m.method(3) == "cold" and seen == [(m, 3)]
    assert Model.method is Model.__dict__["method"]


def test_subclass_keeps_the_fast_call():
    class Jitted(JitFunction):
        def lower(self):
            return "lowered"

    f = Jitted(lambda: 0, lambda *a: _native.Entry(add_executable(2), LEAF, [0, 1]), None)
    assert f(ones(2), ones(2)).tolist() == [2, 2] and f.lower() == "lowered"


def test_cycles_are_collected():
    def make():
        def cold(self, args, kwargs, info):
            entry = _native.Entry(add_executable(2), LEAF, [0, 1], info=[])
            entry.info.append(self)
            entry.info.append(cold)
            return entry

        f = JitFunction(lambda: f, cold, None)
        f.me = f
        f(ones(2), ones(2))
        return weakref.ref(f)

    reference = make()
    gc.collect()
    assert reference() is None


def test_custom_nodes_that_change_their_surroundings():
    class Rude:
        def __init__(self, container):
            self.container = container

    def flatten(node):
        node.container.clear()
        gc.collect()
        return (from_numpy(np.full(2, 3, "f4")),), None

    _native.register_node(Rude, flatten, lambda aux, children: None)
    f = signature_function()
    items = [from_numpy(np.zeros(2, "f4")), from_numpy(np.zeros(2, "f4"))]
    items.append(Rude(items))
    items.append(from_numpy(np.zeros(2, "f4")))
    with pytest.raises(RuntimeError, match="changed its length"):
        f(items)
    table = {"a": from_numpy(np.zeros(2, "f4"))}
    table["b"] = Rude(table)
    table["c"] = from_numpy(np.zeros(2, "f4"))
    table["d"] = [from_numpy(np.zeros(2, "f4"))]
    with pytest.raises(RuntimeError, match="different children"):
        f(table)


def test_deep_arguments_raise():
    tree = ones(1)
    for _ in range(100_000):
        tree = [tree]
    with pytest.raises(RecursionError):
        signature_function()(tree)
    while isinstance(tree, list):
        tree = tree[0]


def test_warm_calls_allocate_nothing_but_results():
    f = jit_of(add)
    x, y = ones(8), ones(8)
    f(x, y)
    keep = [f(x, y) for _ in range(10)]
    before = _native.pool_stats()["allocations"]
    gc.collect()
    objects = len(gc.get_objects())
    for _ in range(100):
        keep.append(f(x, y))
    assert _native.pool_stats()["allocations"] - before == 100
    assert len(gc.get_objects()) <= objects + 1


def test_host_steps_and_their_errors():
    def double(x, out):
        assert not x.flags.writeable
        out[:] = 2 * x

    f = jit_of(lambda t: host_executable(double, t.size))
    assert f(from_numpy(np.arange(3, dtype="f4"))).tolist() == [0, 2, 4]

    class Custom(Exception):
        pass

    error = Custom("mine")

    def fail(x, out):
        raise error

    g = jit_of(lambda t: host_executable(fail, t.size))
    for _ in range(2):
        with pytest.raises(Custom) as caught:
            g(ones(3))
        assert caught.value is error
