"""block_until_ready on trees."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest

import jato
import jato.numpy as jnp

Pair = namedtuple("Pair", "left right")


class Result:
    def __init__(self):
        self.waited = 0

    def block_until_ready(self):
        self.waited += 1
        return self


def test_all_kinds_of_trees_come_back_as_they_are():
    x = jnp.ones(3) + 1
    leaf = Result()
    tree = (x, [x, {"a": x, "b": (leaf, None)}], Pair(x, leaf), 3.5, "text", np.ones(2), leaf)
    assert jato.block_until_ready(tree) is tree
    assert leaf.waited == 3
    assert jato.block_until_ready(x) is x
    assert jato.block_until_ready(None) is None


def test_errors_of_a_leaf_show():
    class Failing:
        def block_until_ready(self):
            raise ValueError("of the leaf")

    with pytest.raises(ValueError, match="of the leaf"):
        jato.block_until_ready([jnp.ones(1), Failing()])
    gone = jnp.ones(2)
    gone.delete()
    with pytest.raises(RuntimeError):
        jato.block_until_ready((jnp.ones(1), gone))


def test_a_tree_that_holds_itself_is_refused():
    tree: list[object] = []
    tree.append(tree)
    with pytest.raises(RecursionError):
        jato.block_until_ready(tree)


def test_many_leaves_and_queued_work():
    f = jato.jit(lambda x: [x @ x + i for i in range(3)])
    out = f(jnp.ones((300, 300)))
    jato.block_until_ready(out)
    assert all(a.is_ready() for a in out)
    many = [jnp.float32(i) for i in range(1000)]
    assert jato.block_until_ready(many) is many
