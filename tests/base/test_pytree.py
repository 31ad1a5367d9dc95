"""Pytrees against jax.tree_util, and the messages about prefixes."""

import collections
import dataclasses
import doctest
import pickle

import jax
import jax.tree_util as oracle
import numpy as np
import pytest

from jato import tree as short_names
from jato import tree_util
from jato.base import caches, config, observe, pytree, signatures

Point = collections.namedtuple("Point", ["x", "y"])
TREES = [
    1,
    None,
    (),
    [1, (2, None, [3])],
    {"b": 1, "a": {"c": 2}},
    Point(1, [2, 3]),
    collections.OrderedDict([("z", 1), ("a", 2)]),
    collections.defaultdict(list, {"k": (1, 2)}),
    {"a": Point({"d": 1}, None)},
]


@pytest.mark.parametrize("module", [pytree, caches, config, observe, signatures])
def test_doctests(module):
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_flatten_agrees_with_jax(tree):
    leaves, treedef = pytree.tree_flatten(tree)
    assert leaves == oracle.tree_leaves(tree)
    assert treedef.unflatten(leaves) == tree
    assert treedef.num_leaves == len(leaves)
    paths = [pytree.keystr(p) for p, _ in pytree.tree_leaves_with_path(tree)]
    assert paths == [oracle.keystr(p) for p, _ in oracle.tree_leaves_with_path(tree)]


def test_dict_keys_of_mixed_type():
    tree = {1: "one", "a": "letter", 2: "two"}
    leaves, treedef = pytree.tree_flatten(tree)
    assert treedef.unflatten(leaves) == tree
    assert pytree.tree_map(lambda x: x, tree) == tree


def test_is_leaf_and_none():
    assert pytree.tree_leaves((0, None), is_leaf=lambda x: x is None) == [0, None]


def test_map_over_several_trees():
    assert pytree.tree_map(lambda x, y: (x, y), [1, 2], [3, {"a": 4}]) == [(1, 3), (2, {"a": 4})]


def test_map_mismatch_names_the_place():
    with pytest.raises(ValueError, match=r"tree 2 differs .* at \['w'\].*length 2 against .* 3"):
        pytree.tree_map(lambda x, y: x, {"w": (1, 2)}, {"w": (1, 2, 3)})
    with pytest.raises(ValueError, match=r"keys \['a'\] against \['b'\]"):
        pytree.tree_map(lambda x, y: x, {"a": 1}, {"b": 1})


def test_registered_dataclass():
    @pytree.register_dataclass
    @dataclasses.dataclass
    class Layer:
        weight: object
        bias: object
        name: str = dataclasses.field(default="dense", metadata={"static": True})

    layer = Layer(1, {"b": 2}, "first")
    leaves, treedef = pytree.tree_flatten(layer)
    assert leaves == [1, 2]
    assert treedef.unflatten([3, 4]) == Layer(3, {"b": 4}, "first")
    assert treedef != pytree.tree_structure(Layer(1, {"b": 2}, "second"))
    paths = [pytree.keystr(p) for p, _ in pytree.tree_leaves_with_path(layer)]
    assert paths == [".weight", ".bias['b']"]


def test_register_dataclass_checks_fields():
    @dataclasses.dataclass
    class Pair:
        a: int
        b: int

    with pytest.raises(ValueError, match="fields of Pair"):
        pytree.register_dataclass(Pair, data_fields=["a"], meta_fields=[])


def test_registered_class_and_static():
    @pytree.register_pytree_node_class
    class Box:
        def __init__(self, content):
            self.content = content

        def tree_flatten(self):
            return (self.content,), None

        @classmethod
        def tree_unflatten(cls, auxiliary, children):
            return cls(*children)

    assert pytree.tree_map(lambda x: x + 1, Box([1])).content == [2]

    @pytree.register_static
    @dataclasses.dataclass(frozen=True)
    class Option:
        value: int

    assert pytree.tree_leaves(Option(1)) == []
    assert pytree.tree_structure(Option(1)) != pytree.tree_structure(Option(2))


def test_partial_is_a_tree():
    partial = pytree.Partial(pow, 2)
    leaves, treedef = pytree.tree_flatten(partial)
    assert leaves == [2]
    assert treedef.unflatten([3])(2) == 9


def test_transpose_and_treedefs():
    outer, inner = pytree.tree_structure([0, 0]), pytree.tree_structure({"a": 0, "b": 0})
    tree = [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    assert pytree.tree_transpose(outer, inner, tree) == {"a": [1, 3], "b": [2, 4]}
    assert pytree.treedef_tuple([outer, inner]) == pytree.tree_structure(([0, 0], {"a": 0, "b": 0}))
    assert pytree.treedef_children(outer) == [pytree.tree_structure(0)] * 2
    assert pytree.treedef_is_leaf(pytree.tree_structure(0))
    assert not pytree.treedef_is_leaf(outer)


def test_broadcast_prefix():
    tree = ({"w": 1, "b": (2, 3)}, 4)
    assert pytree.broadcast_prefix((0, 1), tree) == [0, 0, 0, 1]
    assert pytree.broadcast_prefix(({"w": 0, "b": None}, 1), tree, lambda x: x is None) == [
        None,
        None,
        0,
        1,
    ]
    with pytest.raises(ValueError, match="length 1 against one of length 2"):
        pytree.broadcast_prefix((0,), tree)


def test_treedef_pickles():
    treedef = pytree.tree_structure({"a": [1, None]})
    assert pickle.loads(pickle.dumps(treedef)) == treedef


def test_leaf_names():
    def f(x, *rest, scale=1):
        pass

    names = signatures.leaf_names(f, (1, [2, 3], 4), {"scale": {"k": 5}})
    assert names == ["x", "rest[0][0]", "rest[0][1]", "rest[1]", "scale['k']"]


def test_leaves_chosen_by_path():
    tree = {"a": [1, [2, None]], "b": (3, {"c": 4})}
    deep = lambda path, x: len(path) == 2
    for module in (tree_util, jax.tree_util):
        pairs = module.tree_leaves_with_path(tree, is_leaf=deep, is_leaf_takes_path=True)
        assert [x for _, x in pairs] == [1, [2, None], 3, {"c": 4}]
        mapped = module.tree_map_with_path(
            lambda path, x: len(path), tree, is_leaf=deep, is_leaf_takes_path=True
        )
        assert mapped == {"a": [2, 2], "b": (2, 2)}
    seen = []
    tree_util.tree_flatten_with_path(tree, is_leaf=lambda x: seen.append(x))
    assert len(seen) == 10  # each node once


def test_one_level():
    Pair = collections.namedtuple("Pair", "x y")
    trees = [{"b": 1, "a": (2,)}, (1, [2]), None, Pair(1, 2), collections.OrderedDict(b=1, a=2)]
    for tree in trees:
        mine, peer = tree_util.flatten_one_level(tree), jax.tree_util.flatten_one_level(tree)
        assert list(mine[0]) == list(peer[0]) and mine[1] == peer[1]
        keys = [str(k) for k, _ in tree_util.flatten_one_level_with_keys(tree)[0]]
        if type(tree) is Pair:  # jax 0.10.2 names both .x
            assert keys == [".x", ".y"]
        else:
            assert keys == [str(k) for k, _ in jax.tree_util.flatten_one_level_with_keys(tree)[0]]
    with pytest.raises(ValueError, match="expected a container, got a leaf of type int"):
        tree_util.flatten_one_level(3)
    for kind in (dict, int, list, type(None), collections.OrderedDict, np.ndarray, Pair):
        assert tree_util.is_tree_node(kind) == jax.tree_util.is_tree_node(kind)


@pytest.mark.parametrize("size", [1, 2, 5, 7, 16])
def test_folding_in_halves(size):
    leaves = [str(i) for i in range(size)]
    join = lambda a, b: f"({a}{b})"
    expected = jax.tree.reduce_associative(join, leaves)
    assert short_names.reduce_associative(join, leaves) == expected
    assert short_names.reduce_associative(join, [], identity="none") == "none"
    with pytest.raises(TypeError, match="the tree has no leaves; give identity"):
        short_names.reduce_associative(join, [])


def test_static_fields():
    @tree_util.register_dataclass
    @dataclasses.dataclass
    class Layer:
        weight: float
        name: str = short_names.static(default="dense", metadata={"a": 1})

    leaves, treedef = tree_util.tree_flatten(Layer(1.0))
    assert leaves == [1.0] and treedef.unflatten([2.0]) == Layer(2.0, "dense")
    assert dataclasses.fields(Layer)[1].metadata == {"a": 1, "static": True}
