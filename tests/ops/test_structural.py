"""Functions that make, move, cut and join arrays: against NumPy and JAX, and their errors."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jato
from jato.core.types import array_type, type_of
from jato.ops import (
    arithmetic,
    reduce,
    structural,
)

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "name,args",
    [
        ("reshape", (X, (4, 6))),
        ("reshape", (X, (24,), (2, 0, 1))),
        ("transpose", (X, (2, 0, 1))),
        ("rev", (X, (0, 2))),
        ("broadcast", (X, (2, 1))),
        ("broadcast_in_dim", (X[0, 0], (3, 4, 2), (1,))),
        ("broadcasted_iota", (np.int32, (2, 3), 1)),
        ("iota", (np.float32, 5)),
        ("full", ((2, 3), 1.5, np.float32)),
        ("full", ((2,), np.float32(3))),
        ("full", ((2,), np.float32(3.7), np.int32)),
        ("full_like", (X, 2)),
        ("full_like", (1.5, 2)),
        ("full_like", (1, np.float32(2.5), None, (3,))),
        ("expand_dims", (X, (0, 3))),
        ("squeeze", (X[:1], (0,))),
        ("collapse", (X, 1)),
        ("collapse", (X, 0, 2)),
        ("slice", (X, (0, 1, 0), (2, 3, 3), (1, 1, 2))),
        ("slice_in_dim", (X, 1, -1, 1, 1)),
        ("slice_in_dim", (X, -2, None, 1, 2)),
        ("pad", (X, np.float32(7), [(1, 0, 0), (0, 2, 1), (-1, 0, 0)])),
        ("concatenate", ([X, X[:, :1]], 1)),
        ("split", (X, (1, 2), 1)),
        ("reduce_sum", (X, (0, 2))),
    ],
)
def test_against_jax(name, args):
    found = getattr(structural, name)(*args)
    expected = getattr(jax.lax, name)(*args)
    for x, y in zip(jax.tree.leaves(list(found) if isinstance(found, list) else [found]),
                    jax.tree.leaves(expected), strict=True):  # fmt: skip
        assert x.dtype == y.dtype and x.weak_type == y.weak_type
        np.testing.assert_array_equal(x, y)


def test_what_changes_nothing_is_returned_as_it_is():
    x = structural.iota("int32", 4)
    assert structural.reshape(x, (4,)) is x
    assert structural.transpose(x, (0,)) is x
    assert structural.broadcast_in_dim(x, (4,), (0,)) is x
    assert structural.slice(x, (0,), (4,)) is x
    assert structural.concatenate([x], 0) is x
    assert structural.rev(x, ()) is x
    # NumPy arrays become ours
    assert isinstance(structural.reshape(np.arange(4), (4,)), jato.Array)


def test_reductions_of_nothing():
    empty = np.zeros((0, 2), np.float32)
    np.testing.assert_array_equal(structural.reduce_sum(empty, (0,)), [0, 0])
    np.testing.assert_array_equal(reduce.reduce_prod(empty, (0,)), [1, 1])
    np.testing.assert_array_equal(reduce.reduce_max(empty, (0,)), [-np.inf, -np.inf])
    assert np.all(np.asarray(reduce.reduce_min(empty.astype("int8"), (0,))) == 127)
    with pytest.raises(ValueError, match=r"argmax: axis 0 of float32\[0,2\] is empty"):
        reduce.argmax(empty, 0)


def test_half_precision_sums_accumulate_in_float32():
    x = np.full(4096, 1.0, np.float16)  # a float16 accumulator would stop at 2048
    x[0] = 2048
    assert float(structural.reduce_sum(x, (0,))) == float(np.float16(6143))


@pytest.mark.parametrize(
    "call,error,words",
    [
        (lambda: structural.reshape(X, (5,)), TypeError, r"reshape: expected new_sizes with 24 elements"),
        (lambda: structural.reshape(X, (-1, 24)), TypeError, "reshape: expected new_sizes >= 0"),
        (lambda: structural.reshape(X, ("a",)), TypeError, "reshape: expected new_sizes to be integers"),
        (lambda: structural.transpose(X, (0, 1)), TypeError, "transpose: expected permutation"),
        (lambda: structural.rev(X, (3,)), TypeError, "rev: argument 'dimensions': expected different axes"),
        (lambda: structural.rev(X, (-1,)), TypeError, "rev: argument 'dimensions'"),
        (lambda: structural.rev(X, (0, 0)), TypeError, "rev: argument 'dimensions'"),
        (lambda: structural.broadcast_in_dim(X, (2, 3), (0, 1)), TypeError, "one entry for each axis"),
        (lambda: structural.broadcast_in_dim(X[0, 0], (3,), (0,)), TypeError, "extent of 3 or 1"),
        (lambda: structural.broadcast_in_dim(X[0], (3, 4), (1, 0)), TypeError, "increasing axes"),
        (lambda: structural.broadcasted_iota("bool", (2,), 0), TypeError, "iota: expected dtype"),
        (lambda: structural.broadcasted_iota("int32", (2,), 1), ValueError, "dimension 1 is out of"),
        (lambda: structural.full((2,), X), TypeError, "full: expected fill_value to be a scalar"),
        (lambda: structural.squeeze(X, (0,)), ValueError, "squeeze: expected extent 1"),
        (lambda: structural.expand_dims(X, (0, 0)), ValueError, "expand_dims: expected different"),
        (lambda: structural.slice(X, (0,), (1,)), TypeError, "slice: expected 3 start_indices"),
        (lambda: structural.slice(X[0, 0], (3,), (9,)), TypeError, "0 <= start <= limit <= 4 on axis 0"),
        (lambda: structural.slice(X[0, 0], (0,), (3,), (0,)), TypeError, "positive strides"),
        (lambda: structural.pad(X[0, 0], np.ones(2, np.float32), [(0, 0, 0)]), TypeError, "to be a scalar"),
        (lambda: structural.pad(X[0, 0], np.int32(1), [(0, 0, 0)]), TypeError, "of one dtype"),
        (lambda: structural.pad(X[0, 0], 0, [(0, 0, -1)]), TypeError, "interior padding >= 0"),
        (lambda: structural.pad(X[0, 0], 0, [(-3, -3, 0)]), ValueError, "cuts more"),
        (lambda: structural.concatenate([], 0), ValueError, "at least one array"),
        (lambda: structural.concatenate([X, X[0]], 0), TypeError, "agree in all axes but 0"),
        (lambda: structural.concatenate([X, X.astype(int)], 0), TypeError, "of one dtype"),
        (lambda: structural.concatenate([X, X], 3), ValueError, "dimension 3 is out of bounds"),
        (lambda: structural.split(X, (1, 1), 1), ValueError, "sizes that add up to 3"),
        (lambda: structural.reduce_sum(X > 3, (0,)), TypeError, "reduce_sum: expected operand"),
        (lambda: structural.reduce_sum(X, (0, 0)), ValueError, "reduce_sum: expected different axes"),
        (lambda: structural.broadcast_shapes((2,), (3,)), ValueError, "incompatible shapes"),
        (lambda: reduce.reduce(X, 0.0, lambda x, y: structural.reshape(x, (1,)), (0,)), TypeError,
         "reduce: expected computation to be an elementwise function"),
        (lambda: reduce.reduce((X, X), 0.0, arithmetic.add, (0,)), TypeError, "float"),
    ],
)  # fmt: skip
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_broadcast_shapes():
    assert structural.broadcast_shapes((3, 1), (4,)) == (3, 4)
    assert structural.broadcast_shapes((), (2, 1), (1, 5)) == (2, 5)
    assert structural.broadcast_shapes((0,), (1,)) == (0,)


def test_sums_over_padding_do_not_cancel():
    """The cotangent of the padding value: summed over the padding, not by a difference."""
    ct = np.array([1.0, np.inf, 1e30, 2.0], np.float32)

    def padded(value):
        return structural.pad(np.ones(2, np.float32), value, [(1, 1, 0)])

    _, pull = jato.vjp(padded, np.float32(0))
    assert float(pull(ct)[0]) == 3.0
    assert type_of(pull(ct)[0]) == array_type((), "float32")
