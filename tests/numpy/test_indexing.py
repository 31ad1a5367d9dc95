"""x[index] and x.at[index].op(...) against NumPy, for random indices, eagerly and under jit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jato
import jato.numpy as jnp
import numpy as np

SHAPES = [(7,), (3, 4), (2, 3, 5), (1, 6), (4, 1, 3)]


@st.composite
def _slices(draw: Any, size: int) -> slice:
    bound = st.one_of(st.none(), st.integers(-size - 2, size + 2))
    step = draw(st.sampled_from([None, 1, 1, 2, 3, -1, -2]))
    return slice(draw(bound), draw(bound), step)


@st.composite
def basic_index(draw: Any, shape: tuple[int, ...]) -> Any:
    """Integers, slices, None and an ellipsis."""
    items: list[Any] = []
    axes = list(shape)
    ellipsis_at = draw(st.one_of(st.none(), st.integers(0, len(axes))))
    used = draw(st.integers(0, len(axes)))
    for position in range(used):
        if ellipsis_at == position:
            items.append(Ellipsis)
            axes = axes[:position] + axes[len(axes) - (used - position) :]
        if draw(st.booleans()) and draw(st.booleans()):
            items.append(None)
        size = axes[position]
        items.append(
            draw(st.one_of(st.integers(-size, size - 1), _slices(size), st.just(slice(None))))
        )
    return tuple(items)


@st.composite
def advanced_index(draw: Any, shape: tuple[int, ...]) -> Any:
    """Like basic_index, with integer arrays that broadcast and at most one mask."""
    items: list[Any] = []
    count = 0
    batch = draw(st.sampled_from([(), (2,), (3, 2)]))
    for size in shape:
        kind = draw(st.sampled_from(["array", "slice", "integer", "whole", "mask"]))
        if kind == "array" or (kind == "mask" and (count or batch)):
            own = draw(st.sampled_from([batch, (1,) * len(batch), batch[1:]]))
            values = draw(st.lists(st.integers(-size, size - 1), min_size=12, max_size=12))
            items.append(np.resize(np.array(values, np.int32), own or (1,)))
            count += 1
        elif kind == "mask":
            items.append(np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size))))
            count += 1
            batch = (1,)
        elif kind == "slice":
            items.append(draw(_slices(size)))
        elif kind == "integer":
            items.append(draw(st.integers(-size, size - 1)))
        else:
            items.append(slice(None))
        if draw(st.sampled_from([False, False, False, True])):
            items.append(None)
    return tuple(items)


def _data(shape: tuple[int, ...]) -> Any:
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


@st.composite
def cases(draw: Any, index: Any) -> tuple[Any, Any]:
    shape = draw(st.sampled_from(SHAPES))
    return _data(shape), draw(index(shape))


def _check_read(x: Any, index: Any) -> None:
    expected = x[index]
    np.testing.assert_array_equal(np.asarray(jnp.asarray(x)[index]), expected)
    np.testing.assert_array_equal(np.asarray(jato.jit(lambda v: v[index])(x)), expected)


@given(cases(basic_index))
@settings(max_examples=120, deadline=None, derandomize=True)
def test_read_basic(case: Any) -> None:
    _check_read(*case)


@given(cases(advanced_index))
@settings(max_examples=120, deadline=None, derandomize=True)
def test_read_advanced(case: Any) -> None:
    _check_read(*case)


UPDATES = {
    "set": lambda x, i, v: x.__setitem__(i, v),
    "add": lambda x, i, v: np.add.at(x, i, v),
    "multiply": lambda x, i, v: np.multiply.at(x, i, v),
    "min": lambda x, i, v: np.minimum.at(x, i, v),
    "max": lambda x, i, v: np.maximum.at(x, i, v),
}


def _check_update(x: Any, index: Any, operation: str) -> None:
    selected = x[index]
    values = np.float32(2.5) if operation == "set" else _data(selected.shape) / 7
    expected = x.copy()
    UPDATES[operation](expected, index, values)
    eager = getattr(jnp.asarray(x).at[index], operation)(values)
    np.testing.assert_allclose(np.asarray(eager), expected, rtol=1e-6)
    jitted = jato.jit(lambda v: getattr(v.at[index], operation)(values))(x)
    np.testing.assert_allclose(np.asarray(jitted), expected, rtol=1e-6)


@given(cases(basic_index), st.sampled_from(sorted(UPDATES)))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_update_basic(case: Any, operation: str) -> None:
    _check_update(*case, operation)


@given(cases(advanced_index), st.sampled_from(sorted(UPDATES)))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_update_advanced(case: Any, operation: str) -> None:
    _check_update(*case, operation)


def test_set_with_values_of_the_selected_shape() -> None:
    x = _data((3, 4))
    for index in [np.s_[1], np.s_[:, ::-2], np.s_[::2, 1:3], np.s_[..., None, 2], np.s_[[2, 0], :]]:
        index = tuple(np.array(i) if isinstance(i, list) else i for i in index) if isinstance(
            index, tuple
        ) else index  # fmt: skip
        values = -_data(x[index].shape)
        expected = x.copy()
        expected[index] = values
        np.testing.assert_array_equal(np.asarray(jnp.asarray(x).at[index].set(values)), expected)


def test_a_traced_integer_is_clamped_when_read_and_dropped_when_written() -> None:
    x = jnp.arange(5.0)
    read = jato.jit(lambda v, i: v[i])
    assert [float(read(x, i)) for i in (0, 4, -1, 10, -10)] == [0, 4, 4, 4, 0]
    write = jato.jit(lambda v, i: v.at[i].set(9.0))
    assert np.asarray(write(x, 10)).tolist() == [0, 1, 2, 3, 4]
    assert np.asarray(write(x, -1)).tolist() == [0, 1, 2, 3, 9]
    assert np.asarray(write(x, -6)).tolist() == [0, 1, 2, 3, 4]


def test_masks_under_jit() -> None:
    x = jnp.arange(5.0)
    masked = jato.jit(lambda v, m: v.at[m].set(0.0))
    assert np.asarray(masked(x, x > 2)).tolist() == [0, 1, 2, 0, 0]
    with pytest.raises(jato.errors.NonConcreteBooleanIndexError, match="nonzero"):
        jato.jit(lambda v, m: v[m])(x, x > 2)


def test_a_new_index_value_compiles_and_traces_nothing() -> None:
    x = jnp.arange(40.0).reshape(8, 5)
    for i in range(2):
        x[:, i]
        x[1 : 3 + i]
        x.at[i].set(1.0)
        x[jnp.asarray(i)]
    from jato.numpy.indexing import read_elements as _read
    from jato.numpy.updating import _write

    before = (_read.cache_size(), _write.cache_size())
    for i in range(2, 5):
        x[:, i], x.at[i].set(1.0), x[jnp.asarray(i)]
    assert (_read.cache_size(), _write.cache_size()) == before


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        (7, IndexError, "index 7 is out of bounds for axis 0 with size 3"),
        ((0, 0, 0), IndexError, "(?i)too many indices"),
        ([0, 1], TypeError, "jnp.array"),
        ("a", TypeError, "strings"),
        (1.5, TypeError, "integer or boolean"),
        ((Ellipsis, Ellipsis), IndexError, "single ellipsis"),
        (np.array([True, False]), IndexError, "boolean index did not match"),
        ((np.array([0, 1]), np.array([0, 1, 2])), IndexError, "broadcast"),
        (jnp.ones(2), TypeError, "integer or boolean"),
    ],
)
def test_wrong_indices(index: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        jnp.zeros((3, 4))[index]


def test_wrong_updates() -> None:
    x = jnp.zeros((3, 4))
    with pytest.raises(ValueError, match=r"values of shape \(3,\) do not broadcast"):
        x.at[0].set(jnp.ones(3))
    with pytest.warns(FutureWarning, match="loses information"):
        jnp.zeros(3, "i4").at[0].set(1.5)
    with pytest.raises(ValueError, match="mode"):
        x.at[0].get(mode="nowhere")
    with pytest.raises(IndexError, match="static"):
        jato.jit(lambda v, i: v[i:])(x, 1)


@pytest.mark.filterwarnings("ignore:values of dtype:FutureWarning")
def test_updates_are_computed_in_the_wider_dtype() -> None:
    x = jnp.array([7, -4, 3])
    index = np.array([0, 1, 1])
    for f, expected in [
        (lambda x: x.at[0].add(2.5), [9, -4, 3]),
        (lambda x: x.at[1].add(2.5), [7, -1, 3]),
        (lambda x: x.at[index].multiply(2.5), [17, -25, 3]),
        (lambda x: x.at[x > 0].multiply(1.5), [10, -4, 4]),
        (lambda x: x.at[2].min(0.5), [7, -4, 0]),
        (lambda x: x.at[0].set(2.5), [2, -4, 3]),
    ]:
        assert f(x).tolist() == expected and f(x).dtype == np.int32
        assert jato.jit(f)(x).tolist() == expected


def test_apply_as_often_as_indexed() -> None:
    double = lambda x, i: x.at[i].apply(lambda v: 2 * v)
    x, i = jnp.arange(4.0), jnp.array([1, 3, 1, -1])
    for f in (double, jato.jit(double), lambda x, i: jato.jit(lambda x: double(x, i))(x)):
        assert f(x, i).tolist() == [0, 4, 2, 12]
    gradient = jato.grad(lambda x: double(x, np.array([1, 3, 1, -1])).sum())(x)
    assert gradient.tolist() == [1, 4, 1, 4]


def test_lists_are_values():
    x = jnp.zeros((2, 3))
    expected = np.zeros((2, 3), np.float32)
    expected[1] = [1, 2, 3]
    np.testing.assert_array_equal(x.at[1].set([1.0, 2, 3]), expected)
    np.testing.assert_array_equal(x.at[1].add((1, 2.0, 3)), expected)
    with pytest.raises((TypeError, ValueError), match=r"inhomogeneous|array"):
        x.at[1].set([[1.0], [2.0, 3.0]])


def test_lax_gather_clips_by_default():
    x = np.arange(30, dtype=np.float32).reshape(5, 6)
    rows = jato.lax.GatherDimensionNumbers((1,), (0,), (0,))
    starts = np.array([[9], [-3], [2]])
    for call in (jato.lax.gather, jato.jit(jato.lax.gather, static_argnums=(2, 3))):
        np.testing.assert_array_equal(call(x, starts, rows, (1, 6)), x[[4, 0, 2]])
    windows = jato.lax.GatherDimensionNumbers((1,), (0,), (0, 1))
    found = jato.lax.gather(x, np.array([[4, 5], [9, -2]]), windows, (1, 2))
    np.testing.assert_array_equal(found, [x[4, 4:6], x[4, 0:2]])
