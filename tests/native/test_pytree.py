"""Pytrees.  Oracle: jax.tree_util."""

import copy
import gc
import pickle
import sys
import weakref
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

import jax.tree_util as oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jato import _native
from jato._native import tree_flatten

Point = namedtuple("Point", "x y")


class Pair:
    def __init__(self, a, b, tag="tag"):
        self.a, self.b, self.tag = a, b, tag

    def __eq__(self, other):
        return (self.a, self.b, self.tag) == (other.a, other.b, other.tag)


class Record:
    def __init__(self, x, y, label=0):
        self.x, self.y, self.label = x, y, label


def to_pair(tag, children):
    return Pair(*children, tag)


_native.register_node(Pair, lambda p: ((p.a, p.b), p.tag), to_pair)
oracle.register_pytree_node(Pair, lambda p: ((p.a, p.b), p.tag), to_pair)
_native.register_dataclass(Record, ("x", "y"), ("label",))


def structure(tree):
    return tree_flatten(tree)[1]


TREES: list[Any] = [
    1, None, (), [], {}, (1,), (1, 2), [1, [2, None]], {"b": 1, "a": (2, 3)},
    OrderedDict(z=1, a=[2]), defaultdict(list, {"k": 1, "c": 2}), Point(1, (2, 3)),
    Pair(1, [2, {"x": 3}]), {"n": None, "p": Point(1, Pair(2, 3))}, [(), {}, None],
    {3: "x", 1: "y", 2: "z"}, {(1, 2): 3, (0, 5): 4}, ([[[[1]]]], 2),
]  # fmt: skip


@pytest.mark.parametrize("tree", TREES, ids=[f"tree{i}" for i in range(len(TREES))])
def test_like_jax(tree):
    leaves, treedef = tree_flatten(tree)
    expected_leaves, expected = oracle.tree_flatten(tree)
    assert leaves == expected_leaves
    assert repr(treedef) == repr(expected)
    assert (treedef.num_leaves, treedef.num_nodes) == (expected.num_leaves, expected.num_nodes)
    assert treedef.unflatten(leaves) == tree
    assert type(treedef.unflatten(leaves)) is type(tree)
    assert treedef.node_data() == expected.node_data()
    assert [repr(c) for c in treedef.children()] == [repr(c) for c in expected.children()]
    assert treedef.flatten_up_to(tree) == expected.flatten_up_to(tree)
    assert _native.make_treedef(treedef.node_data(), treedef.children()) is treedef
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    assert copy.deepcopy(treedef) == treedef
    assert hash(treedef) == hash(structure(copy.deepcopy(tree)))


nested = st.recursive(
    st.one_of(st.integers(-5, 5), st.none(), st.floats(allow_nan=False)),
    lambda children: st.one_of(
        st.lists(children, max_size=3),
        st.lists(children, max_size=3).map(tuple),
        st.dictionaries(st.text("abc", max_size=2), children, max_size=3),
        st.dictionaries(st.text("abc", max_size=2), children, max_size=3).map(OrderedDict),
        st.builds(Point, children, children),
        st.builds(Pair, children, children),
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(nested, nested)
def test_random_trees_like_jax(tree, other):
    leaves, treedef = tree_flatten(tree)
    expected_leaves, expected = oracle.tree_flatten(tree)
    assert leaves == expected_leaves and repr(treedef) == repr(expected)
    assert treedef.unflatten(leaves) == tree
    assert (treedef == structure(other)) == (expected == oracle.tree_structure(other))
    composed = treedef.compose(structure(other))
    assert repr(composed) == repr(expected.compose(oracle.tree_structure(other)))
    full = treedef.unflatten([other] * treedef.num_leaves)
    assert composed == structure(full)
    assert composed.num_nodes == structure(full).num_nodes
    assert composed.num_leaves == structure(full).num_leaves
    up_to = treedef.flatten_up_to(full)
    assert up_to == expected.flatten_up_to(full)
    leaf_test = lambda x: isinstance(x, list)
    assert tree_flatten(tree, leaf_test)[0] == oracle.tree_flatten(tree, leaf_test)[0]


@settings(max_examples=100, deadline=None)
@given(nested, nested)
def test_flatten_up_to_fails_where_jax_fails(prefix, tree):
    def outcome(flatten):
        try:
            return flatten().__repr__()
        except ValueError:
            return "error"

    assert outcome(lambda: structure(prefix).flatten_up_to(tree)) == outcome(
        lambda: oracle.tree_structure(prefix).flatten_up_to(tree)
    )


def test_interning():
    assert structure({"a": [1, 2]}) is structure({"a": [3, 4]})
    assert structure({1: 0}) is not structure({True: 0})  # equal, but not the same keys
    assert structure({1: 0}) == structure({True: 0})
    assert structure({1.0: 0}).unflatten([5]).__repr__() == "{1.0: 5}"
    reference = weakref.ref(structure([1, {"only": (2, 3)}]))
    gc.collect()
    assert reference() is None


def test_mixed_keys_work():
    tree = {"b": 1, 2: 2, "a": 3, 1: 4, None: 5}
    leaves, treedef = tree_flatten(tree)
    assert leaves == [5, 4, 2, 3, 1]  # NoneType, int, str; sorted inside
    assert treedef.unflatten(leaves) == tree
    reordered = {None: 5, "a": 3, 1: 4, "b": 1, 2: 2}
    assert tree_flatten(reordered) == (leaves, treedef)
    a, b = object(), object()
    assert tree_flatten({a: 1, b: 2})[0] == [1, 2]


def test_dataclass():
    leaves, treedef = tree_flatten(Record([1, 2], 3, "label"))
    assert leaves == [1, 2, 3] and repr(treedef) == "PyTreeDef(CustomNode(Record[('label',)], [[*, *], *]))"
    again = treedef.unflatten([7, 8, 9])
    assert (again.x, again.y, again.label) == ([7, 8], 9, "label")
    assert treedef != structure(Record([1, 2], 3, "other"))


def test_treedef_tuple():
    parts = [structure([1]), structure({"a": 1})]
    assert _native.treedef_tuple(parts) is structure(([1], {"a": 1}))
    assert _native.treedef_tuple([]) is structure(())


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: structure((1, 2)).unflatten([1]), ValueError, "Too few leaves.*expected 2, got 1"),
        (lambda: structure((1, 2)).unflatten([1, 2, 3]), ValueError, "Too many leaves.*expected 2"),
        (lambda: structure((1, 2)).unflatten(3), TypeError, "iterable"),
        (lambda: structure((1, 2)).flatten_up_to([1, 2]), ValueError, "Expected tuple, got"),
        (lambda: structure((1, 2)).flatten_up_to((1, 2, 3)), ValueError, "Tuple arity mismatch: 3 != 2"),
        (lambda: structure([1]).flatten_up_to([]), ValueError, "List arity mismatch"),
        (lambda: structure({"a": 1}).flatten_up_to({"b": 1}), ValueError, "Dict key mismatch.*'a'.*'b'"),
        (lambda: structure(None).flatten_up_to(3), ValueError, "Expected None, got 3"),
        (lambda: structure(Point(1, 2)).flatten_up_to((1, 2)), ValueError, "Expected named tuple"),
        (lambda: structure(Pair(1, 2)).flatten_up_to(3), ValueError, "Custom node type mismatch"),
        (lambda: structure(Pair(1, 2)).flatten_up_to(Pair(1, 2, "x")), ValueError, "custom node data"),
        (lambda: _native.register_node(Pair, id, id), ValueError, "Duplicate"),
        (lambda: _native.register_node(tuple, id, id), ValueError, "Duplicate"),
        (lambda: _native.register_node(3, id, id), TypeError, "expected a class"),
        (lambda: structure(1).compose(2), TypeError, "PyTreeDef"),
        (lambda: _native.make_treedef((tuple, None), [1]), TypeError, "PyTreeDef"),
        (lambda: _native.PyTreeDef(), TypeError, None),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_errors_of_user_functions_pass_through():
    class Bad:
        pass

    class Worse:
        pass

    _native.register_node(Bad, lambda b: 3, lambda aux, children: None)
    _native.register_node(Worse, lambda b: 1 / 0, lambda aux, children: None)
    with pytest.raises(TypeError, match="must return a pair"):
        tree_flatten([Bad()])
    with pytest.raises(ZeroDivisionError):
        tree_flatten({"a": 1, "w": Worse()})
    with pytest.raises(ZeroDivisionError):
        tree_flatten([1], lambda x: 1 / 0)


def test_deep_trees_raise_instead_of_crashing():
    tree: Any = 1
    for _ in range(100_000):
        tree = [tree]
    with pytest.raises(RecursionError):
        tree_flatten(tree)
    while isinstance(tree, list):  # take apart without recursion
        tree = tree[0]


def test_cycles_through_node_data_are_collected():
    class Node:
        pass

    class Holder:
        pass

    _native.register_node(Node, lambda n: ((), n.data), lambda aux, children: Node())
    node, holder = Node(), Holder()
    node.data = holder
    holder.treedef = structure(node)
    reference = weakref.ref(holder)
    del node, holder
    gc.collect()
    assert reference() is None


@given(st.lists(st.text(max_size=9), unique=True, max_size=80), st.randoms())
@settings(max_examples=60, deadline=None)
def test_dicts_with_the_same_keys_come_again_and_again(names, random):
    """Orders of keys are remembered by the addresses of the strings: also when the same strings come
    in another order, others with their text, and new ones at an address that was freed."""
    for _ in range(3):
        keys = ["".join(list(name)) for name in names]  # strings of this round
        for _ in range(3):
            tree = {key: i for i, key in enumerate(keys)}
            for _ in range(3):
                leaves, treedef = tree_flatten(tree)
                assert leaves == [tree[key] for key in sorted(tree)]
                assert list(treedef.unflatten(leaves)) == sorted(tree)
                assert treedef.unflatten(leaves) == tree
            random.shuffle(keys)
        del keys, tree


def test_clearing_caches_lets_go_of_keys():
    names = ["".join(("layer", str(i), "_", str(j))) for i in range(30) for j in "wb"]
    counts = [sys.getrefcount(name) for name in names]
    tree = dict.fromkeys(reversed(names), 0)
    for _ in range(3):
        tree_flatten(tree)
    del tree
    assert [sys.getrefcount(name) for name in names] != counts  # remembered
    _native.clear_jit_caches()
    gc.collect()
    assert sys.getrefcount(names[0]) <= counts[0] + 1  # a treedef may live on
