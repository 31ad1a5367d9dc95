"""How a jitted function takes its arguments: static ones, keywords, pytrees, numbers, errors."""

from __future__ import annotations

import dataclasses
import functools
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import jato
import jato.numpy as jnp


def counted(function, **options):
    """(jitted function, list with an entry per trace)."""
    traces = []

    @functools.wraps(function)
    def noted(*args, **kwargs):
        traces.append(1)
        return function(*args, **kwargs)

    return jato.jit(noted, **options), traces


# ---- static arguments


def test_static_values_choose_the_program():
    f, traces = counted(lambda x, n: x * n if n > 1 else x, static_argnums=1)
    assert float(f(2.0, 1)) == 2 and float(f(2.0, 3)) == 6 and float(f(5.0, 3)) == 15
    assert len(traces) == 2


def test_equal_static_values_of_one_type_share_a_program():
    f, traces = counted(lambda x, t: x + len(t), static_argnames="t")
    f(1.0, (1, 2)), f(1.0, tuple([1, 2])), f(1.0, t=(1, 2))
    assert len(traces) <= 2  # the keyword form is a call of its own
    f(1.0, (1, 3))
    assert len(traces) <= 3


def test_values_of_another_type_are_other_values():
    f = jato.jit(lambda x, s: x + (1.5 if isinstance(s, bool) else s / 2), static_argnums=1)
    assert float(f(0.0, 1)) == 0.5
    assert float(f(0.0, True)) == 1.5
    assert float(f(0.0, 1.0)) == 0.5
    g = jato.jit(lambda x, s: jnp.asarray(s), static_argnums=1)
    assert g(0, 1).dtype == jnp.int32 and g(0, 1.0).dtype == jnp.float32 and g(0, True).dtype == bool


def test_values_of_another_type_under_a_transform():
    g = jato.jit(lambda x, s: x * jnp.asarray(s), static_argnums=1)
    for s, dtype in ((1, "int32"), (1.0, "float32"), (True, "int32")):
        assert jato.eval_shape(lambda x: g(x, s), jnp.arange(3)).dtype == dtype


def test_static_hash_and_equality_of_own_class():
    @dataclasses.dataclass(frozen=True)
    class Options:
        size: int

    f, traces = counted(lambda x, o: x * o.size, static_argnums=1)
    assert float(f(1.0, Options(3))) == 3 and float(f(1.0, Options(3))) == 3
    assert float(f(1.0, Options(4))) == 4
    assert len(traces) == 2


@pytest.mark.parametrize(
    "bad, kind, remedy",
    [
        ([0], "list", "tuple"),
        ({"a": 1}, "dict", "tuple of items"),
        ({1}, "set", "frozenset"),
        (np.arange(3), "ndarray", "tuple(map(int"),
        (jnp.arange(3), "ArrayImpl", "tuple(map(int"),
        (type("Odd", (), {"__hash__": None})(), "Odd", "__hash__"),
    ],
)
@pytest.mark.parametrize("by_name", [False, True])
def test_unhashable_static_names_argument_type_and_remedy(bad, kind, remedy, by_name):
    f = jato.jit(lambda x, sizes: x, static_argnames="sizes")
    with pytest.raises(ValueError, match="hash") as error:
        f(1.0, sizes=bad) if by_name else f(1.0, bad)
    for part in ("'sizes'", kind, remedy):
        assert part in str(error.value)
    assert float(f(1.0, 3)) == 1  # nothing is broken


def test_unhashable_static_under_a_transform():
    f = jato.jit(lambda x, sizes: x, static_argnums=1)
    with pytest.raises(ValueError, match="'sizes'.*list"):
        jato.vmap(lambda x: f(x, [1]))(jnp.arange(3.0))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"static_argnums": 5}, "static_argnums=5 is out of range"),
        ({"static_argnames": "z"}, "'z', which is no parameter"),
        ({"static_argnums": "a"}, "integer"),
        ({"static_argnames": 3}, "string|iterable"),
        ({"static_argnums": 0, "donate_argnums": 0}, "both static and donated"),
        ({"donate_argnums": 9}, "donate_argnums=9"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        jato.jit(lambda x, y: x, **options)


def test_only_functions():
    with pytest.raises(TypeError, match="callable"):
        jato.jit(3)

    def generator():
        yield 1

    with pytest.raises(TypeError, match="generator"):
        jato.jit(generator)


# ---- ways to pass arguments


def test_keywords_and_defaults():
    f, traces = counted(lambda x, y=2.0, *, z=1.0: x * y + z)
    assert float(f(3.0)) == 7
    assert float(f(3.0, 4.0)) == 13
    assert float(f(3.0, y=4.0, z=0.0)) == 12
    assert float(f(z=0.0, y=4.0, x=3.0)) == 12
    assert float(f(x=3.0, y=4.0, z=0.0)) == 12
    count = len(traces)
    f(y=5.0, x=3.0, z=9.0)
    assert len(traces) == count  # the order of keywords does not matter


def test_decorator_forms():
    @functools.partial(jato.jit, static_argnames=("n",))
    def f(x, n):
        return x**n

    @jato.jit(static_argnums=(1,))
    def g(x, n):
        """Doc."""
        return x**n

    assert float(f(2.0, n=3)) == float(g(2.0, 3)) == 8
    assert g.__name__ == "g" and g.__doc__ == "Doc." and g.__wrapped__(2.0, 2) == 4.0


def test_methods():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        @functools.partial(jato.jit, static_argnums=0)
        def apply(self, x):
            return x * self.scale

    assert float(Model(2.0).apply(3.0)) == 6 and float(Model(5.0).apply(3.0)) == 15


def test_partials_and_bound_methods_and_callables():
    assert float(jato.jit(functools.partial(lambda a, x: a * x, 3.0))(2.0)) == 6

    class Callable:
        def __call__(self, x):
            return x + 1

        def method(self, x):
            return x + 2

    assert float(jato.jit(Callable())(1.0)) == 2
    assert float(jato.jit(Callable().method)(1.0)) == 3


def test_star_arguments():
    f = jato.jit(lambda *xs, **named: sum(xs) + sum(named.values()))
    assert float(f(1.0, 2.0, a=3.0, b=4.0)) == 10
    assert float(f(1.0)) == 1


def test_pytrees_in_and_out():
    Point = namedtuple("Point", "x y")

    def f(tree, none):
        assert none is None
        return {"sum": tree["p"].x + tree["p"].y, "list": [tree[1], None], "o": tree["o"]}

    tree = {"p": Point(1.0, np.arange(3.0, dtype="float32")), 1: (2,), "o": OrderedDict(b=1, a=2)}
    got = jato.jit(f)(tree, None)
    np.testing.assert_array_equal(got["sum"], [1, 2, 3])
    assert got["list"][1] is None and isinstance(got["list"][0], tuple)
    assert isinstance(got["o"], OrderedDict) and list(got["o"]) == ["b", "a"]


def test_a_registered_class():
    @jato.tree_util.register_pytree_node_class
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

        def tree_flatten(self):
            return (self.a,), self.b

        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls(*children, aux)

    f, traces = counted(lambda p: Pair(p.a * p.b, p.b))
    assert float(f(Pair(2.0, 3)).a) == 6 and float(f(Pair(2.0, 4)).a) == 8
    assert len(traces) == 2
    f(Pair(5.0, 4))
    assert len(traces) == 2


# ---- kinds of values


def test_python_numbers_do_not_retrace():
    f, traces = counted(lambda x, i: x + i)
    x = 0
    for i in range(10):
        x = f(x, i)
    assert int(x) == 45 and len(traces) == 1


def test_weak_types_follow_python():
    assert jato.jit(lambda x: x * 2.5)(jnp.arange(3)).dtype == jnp.float32
    assert jato.jit(lambda x, s: x * s)(jnp.arange(3, dtype="int8"), 3).dtype == jnp.int8
    assert jato.jit(lambda x, s: x * s)(jnp.ones(3, "float16"), 3.0).dtype == jnp.float16
    assert jato.jit(lambda x, s: x * s)(jnp.ones(3, "float16"), np.float32(3)).dtype == jnp.float32


def test_weak_carry_settles():
    f, traces = counted(lambda x: x + np.float32(1))
    x = 0.0
    for _ in range(5):
        x = f(x)
    assert float(x) == 5 and len(traces) <= 2


@pytest.mark.parametrize("value", [True, 3, -2.5, 1j, np.float32(2), np.int8(-1), np.bool_(True)])
def test_scalars_of_all_kinds(value):
    got = jato.jit(lambda x: x)(value)
    assert got == value and got.shape == ()


def test_integers_that_do_not_fit():
    with pytest.raises(OverflowError):
        jato.jit(lambda x: x)(2**40)


def test_numpy_inputs_are_not_aliased():
    for shape in ((4,), (4096,), (1024, 1024)):
        a = np.zeros(shape, "float32")
        kept, sliced = jato.jit(lambda x: (x, x[:1]))(a)
        a[...] = 7
        assert float(np.asarray(kept).max()) == 0 and float(np.asarray(sliced).max()) == 0


@pytest.mark.parametrize("bad", ["text", object(), b"bytes", np.array(["a"]), np.datetime64("2020")])
def test_what_is_no_array_names_the_argument(bad):
    f = jato.jit(lambda x, options: x)
    with pytest.raises(TypeError, match="options"):
        f(1.0, bad)
    with pytest.raises(TypeError, match=r"options\[1\]\['k'\]|options\[1\]\[\"k\"\]|options"):
        f(1.0, [1, {"k": bad}])


def test_wrong_number_of_arguments_is_pythons_error():
    f = jato.jit(lambda x, y: x)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        f(1.0)
    with pytest.raises(TypeError):
        f(1.0, 2.0, 3.0)
    with pytest.raises(TypeError, match="unexpected keyword"):
        f(1.0, 2.0, z=1)


def test_what_is_no_result_is_named():
    with pytest.raises(TypeError, match="str"):
        jato.jit(lambda x: (x, "text"))(1.0)


def test_errors_of_the_function_pass_through_and_break_nothing():
    calls = []

    def f(x):
        calls.append(1)
        if len(calls) == 1:
            raise KeyError("mine")
        return x + 1

    g = jato.jit(f)
    with pytest.raises(KeyError, match="mine"):
        g(1.0)
    assert float(g(1.0)) == 2
    assert float(jnp.ones(()) + 1) == 2


# ---- results


def test_results_that_are_inputs_constants_or_repeated():
    constant = jnp.arange(3.0)

    def f(x):
        y = x + 1
        return x, y, y, constant, 3, x.reshape(3, 1), y.reshape(1, 3), x.reshape(-1), y[:0]

    x = jnp.arange(3.0) * 2
    got = jato.jit(f)(x)
    want = f(np.asarray(x))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, np.asarray(w))
        assert g.shape == np.asarray(w).shape


def test_no_arguments_and_no_results():
    assert jato.jit(lambda: ())() == ()
    assert jato.jit(lambda x: None)(1.0) is None
    assert int(jato.jit(lambda: 3)()) == 3
    np.testing.assert_array_equal(jato.jit(lambda: jnp.arange(4))(), np.arange(4))
