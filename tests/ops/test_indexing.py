"""gather, scatter and dynamic slices against JAX, and their rules against each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from reference_rules import (
    check_batch,
    check_jvp,
    check_transpose,
    hold,
    numpy_evaluation,
    value,
    x64,
)
from samples.indexing import GATHERS

from jato.core.types import Zero, tangent_type
from jato.ops import dynamic_slices, gather_geometry, indexing
from jato.ops.gather_geometry import (
    CLIP,
    FILL,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
)
from jato.ops.gather_scatter import (
    GATHER,
    SCATTER,
    SCATTER_ADD,
    SCATTER_MAX,
    SCATTER_MIN,
    SCATTER_MUL,
)

RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def jax_numbers(n, kind=lax.GatherDimensionNumbers):
    return kind(*n)


@pytest.mark.parametrize("name", GATHERS)
@pytest.mark.parametrize("mode", ["clip", "fill"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8, np.bool_, np.complex64])
def test_gather(name, mode, dtype):
    shape, indices, numbers, sizes = GATHERS[name]
    x = (10 * floats(*shape)).astype(dtype)
    indices = np.asarray(indices, np.int32)
    want = lax.gather(x, indices, jax_numbers(numbers), sizes, mode=mode)
    with numpy_evaluation():
        got = indexing.gather(x, indices, jax_numbers(numbers), sizes, mode=mode)
    np.testing.assert_array_equal(value(got), want)


def test_gather_from_empty():
    numbers = GatherDimensionNumbers((), (0,), (0,))
    with numpy_evaluation(), pytest.raises(TypeError, match="window"):
        indexing.gather(
            np.zeros((0,), np.float32), np.zeros((2, 1), np.int32), numbers, (1,), mode="fill"
        )


def test_fill_value():
    numbers = GatherDimensionNumbers((), (0,), (0,))
    x = np.arange(5.0, dtype=np.float32)
    with numpy_evaluation():
        got = indexing.gather(x, np.array([[10]]), numbers, (1,), mode="fill", fill_value=-1)
    assert value(got) == [-1]


@pytest.mark.parametrize("name", GATHERS)
@pytest.mark.parametrize("mode", [CLIP, FILL])
def test_gather_rules(name, mode):
    shape, indices, numbers, sizes = GATHERS[name]
    x = floats(*shape).astype(np.float64)
    indices = np.asarray(indices, np.int32)
    params = {"dimension_numbers": numbers, "slice_sizes": sizes, "mode": mode, "fill_value": None}
    zero = params | {"fill_value": 0}
    check_jvp(GATHER, [x, indices], zero)
    check_transpose(GATHER, [x, indices], zero, [0])
    check_batch(GATHER, [x, indices], params, vary=vary_indices)


def vary_indices(i, k, x):
    return x + k if i == 1 and x.dtype.kind == "i" else x + x.dtype.type(k)


SCATTERS = {
    name: (shape, indices, ScatterDimensionNumbers(*n), sizes)
    for name, (shape, indices, n, sizes) in GATHERS.items()
    if name not in ("empty window",)
}
JAX_SCATTERS = {
    "scatter": lax.scatter, "scatter_add": lax.scatter_add, "scatter_mul": lax.scatter_mul,
    "scatter_min": lax.scatter_min, "scatter_max": lax.scatter_max, "scatter_sub": lax.scatter_sub,
}  # fmt: skip


def updates_for(name, x, mode="clip"):
    shape, indices, numbers, sizes = GATHERS[name]
    out = lax.gather(x, np.asarray(indices, np.int32), jax_numbers(numbers), sizes, mode=mode)
    return floats(*out.shape)


@pytest.mark.parametrize("name", SCATTERS)
@pytest.mark.parametrize("mode", ["clip", "drop"])
@pytest.mark.parametrize("which", JAX_SCATTERS)
def test_scatter(name, mode, which):
    shape, indices, numbers, _ = SCATTERS[name]
    x = floats(*shape)
    indices = np.asarray(indices, np.int32)
    updates = updates_for(name, x)
    if which == "scatter" and name == "swapped":
        pytest.skip("windows overlap in part: which of them wins is not defined")
    mode_of_jax = "fill" if mode == "drop" else mode
    want = JAX_SCATTERS[which](
        x, indices, updates, jax_numbers(numbers, lax.ScatterDimensionNumbers), mode=mode_of_jax
    )
    with numpy_evaluation():
        got = getattr(indexing, which)(x, indices, updates, numbers, mode=mode)
    np.testing.assert_allclose(value(got), want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", SCATTERS)
@pytest.mark.parametrize("primitive", [SCATTER, SCATTER_ADD, SCATTER_MUL, SCATTER_MIN, SCATTER_MAX])
@pytest.mark.parametrize("mode", [CLIP, FILL])
def test_scatter_rules(name, primitive, mode):
    shape, indices, numbers, _ = SCATTERS[name]
    x = floats(*shape).astype(np.float64)
    indices = np.asarray(indices, np.int32)
    updates = updates_for(name, x.astype(np.float32)).astype(np.float64)
    params = {"dimension_numbers": numbers, "mode": mode, "unique_indices": False}
    check_jvp(primitive, [x, indices, updates], params)
    if primitive in (SCATTER, SCATTER_ADD):
        for linear in ([0, 2], [0], [2]):
            start = [
                x * 0 if 0 not in linear else x,
                indices,
                updates * 0 if 2 not in linear else updates,
            ]
            check_transpose(primitive, start, params, linear)
    if primitive is SCATTER_MUL:
        check_transpose(primitive, [x, indices, updates], params, [0])
    check_batch(primitive, [x, indices, updates], params, vary=vary_indices, size=2)


def test_scatter_mul_with_zeros():
    """Duplicate places with none, one and two zeros among the updates, and a zero operand."""
    x = np.array([2.0, 3.0, 0.0, 5.0])
    indices = np.array([[0], [0], [1], [1], [2], [2], [3], [3]])
    updates = np.array([2.0, 3.0, 0.0, 4.0, 0.0, 1.0, 0.0, 0.0])
    params = {
        "dimension_numbers": ScatterDimensionNumbers((), (0,), (0,)),
        "mode": CLIP,
        "unique_indices": False,
    }
    check_jvp(SCATTER_MUL, [x, indices, updates], params)


def test_scatter_extremum_shares_ties():
    x, i, u = np.array([1.0, 2.0]), np.array([[0], [1], [1]]), np.array([1.0, 2.0, 3.0])
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    with jax.enable_x64(True):

        def f(x, u):
            return lax.scatter_max(x, i, u, numbers)

        tx, tu = np.array([1.0, 10.0]), np.array([3.0, 5.0, 7.0])
        _, want = jax.jvp(f, (x, u), (tx, tu))
    with numpy_evaluation(), x64():
        params = {
            "dimension_numbers": ScatterDimensionNumbers((), (0,), (0,)),
            "mode": CLIP,
            "unique_indices": False,
        }
        _, got = SCATTER_MAX.jvp(
            [hold(x), hold(i), hold(u)], [hold(tx), _zero(i), hold(tu)], **params
        )
    np.testing.assert_allclose(value(got), want)


def _zero(x):
    return Zero(tangent_type(hold(x).aval))


def test_scatter_is_ordered():
    """The last update of a place wins, for values and derivatives."""
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    i, u = np.array([[1], [1], [0]]), np.array([1.0, 2.0, 3.0])
    with numpy_evaluation():
        got = indexing.scatter(np.zeros(2), i, u, numbers)
    np.testing.assert_array_equal(value(got), [3, 2])


# ---- dynamic slices

STARTS = [(0, 0), (2, 1), (7, 9), (-1, -2), (-100, 3), (3, -4)]


@pytest.mark.parametrize("starts", STARTS)
@pytest.mark.parametrize("sizes", [(2, 3), (4, 5), (0, 2), (1, 1)])
@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.uint32])
def test_dynamic_slice(starts, sizes, dtype):
    x = floats(4, 5)
    starts = [np.asarray(s).astype(dtype) for s in starts]
    with numpy_evaluation():
        got = indexing.dynamic_slice(x, starts, sizes)
        np.testing.assert_array_equal(value(got), lax.dynamic_slice(x, starts, sizes))
        update = floats(*sizes)
        got = indexing.dynamic_update_slice(x, update, starts)
        np.testing.assert_array_equal(value(got), lax.dynamic_update_slice(x, update, starts))


def test_dynamic_slice_rules():
    x, update = floats(4, 5).astype(np.float64), floats(2, 3).astype(np.float64)
    for a, c in [(0, 0), (1, 4), (-1, -3), (9, 1)]:
        starts = [np.int32(a), np.int32(c)]
        params = {"slice_sizes": (2, 3), "negative": True}
        check_jvp(dynamic_slices.DYNAMIC_SLICE, [x, *starts], params)
        check_transpose(dynamic_slices.DYNAMIC_SLICE, [x, *starts], params, [0])
        check_batch(dynamic_slices.DYNAMIC_SLICE, [x, *starts], params)
        params = {"negative": True}
        check_jvp(dynamic_slices.DYNAMIC_UPDATE_SLICE, [x, update, *starts], params)
        check_transpose(dynamic_slices.DYNAMIC_UPDATE_SLICE, [x, update, *starts], params, [0, 1])
        check_transpose(dynamic_slices.DYNAMIC_UPDATE_SLICE, [x * 0, update, *starts], params, [1])
        check_batch(dynamic_slices.DYNAMIC_UPDATE_SLICE, [x, update, *starts], params, size=2)


def test_slices_in_one_dimension():
    x = floats(4, 5)
    with numpy_evaluation():
        for ours, theirs in [
            (indexing.dynamic_slice_in_dim(x, 1, 2, axis=-1), lax.dynamic_slice_in_dim(x, 1, 2, axis=-1)),
            (indexing.dynamic_index_in_dim(x, -1, 0), lax.dynamic_index_in_dim(x, -1, 0)),
            (indexing.dynamic_index_in_dim(x, 2, 1, keepdims=False), lax.dynamic_index_in_dim(x, 2, 1, keepdims=False)),
            (indexing.dynamic_update_slice_in_dim(x, x[:2], 1, 0), lax.dynamic_update_slice_in_dim(x, x[:2], 1, 0)),
            (indexing.dynamic_update_index_in_dim(x, x[0], 1, 0), lax.dynamic_update_index_in_dim(x, x[0], 1, 0)),
            (indexing.index_take(x, (np.array([0, 3]), np.array([1, 4])), (0, 1)),
             lax.index_take(x, (jnp.array([0, 3]), jnp.array([1, 4])), (0, 1))),
            (indexing.take_along(x, np.array([[1, 0]] * 4), 1), np.take_along_axis(x, np.array([[1, 0]] * 4), 1)),
        ]:  # fmt: skip
            np.testing.assert_array_equal(value(ours), theirs)


# ---- errors


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: indexing.dynamic_slice(floats(3), [0.5], (2,)), TypeError, "start_indices.*integer scalars"),
        (lambda: indexing.dynamic_slice(floats(3), [0, 1], (2,)), ValueError, "one start index per axis"),
        (lambda: indexing.dynamic_slice(floats(3), [0], (4,)), TypeError, "slice_sizes.*at most its shape"),
        (lambda: indexing.dynamic_update_slice(floats(3), floats(4), [0]), TypeError, "'update'.*at most its shape"),
        (lambda: indexing.dynamic_update_slice(floats(3), np.ones(1, int), [0]), TypeError, "'update'.*dtype"),
        (lambda: indexing.dynamic_index_in_dim(floats(3), 0, 1), ValueError, "'axis'"),
        (lambda: indexing.gather(floats(3), np.zeros((1, 1)), GatherDimensionNumbers((), (0,), (0,)), (1,)),
         TypeError, "expected integers"),
        (lambda: indexing.gather(floats(3), np.zeros((1, 2), int), GatherDimensionNumbers((), (0,), (0,)), (1,)),
         TypeError, "last axis of the indices"),
        (lambda: indexing.gather(floats(3), np.zeros((1, 1), int), GatherDimensionNumbers((), (0,), (0,)), (4,)),
         TypeError, "window"),
        (lambda: indexing.gather(floats(3), np.zeros((1, 1), int), GatherDimensionNumbers((5,), (), (0,)), (1,)),
         TypeError, "offset_dims"),
        (lambda: indexing.gather(floats(3), np.zeros((1, 1), int), GatherDimensionNumbers((), (0,), (0,)), (1,),
                                 mode="wrap"), ValueError, "'mode'"),
        (lambda: indexing.scatter(floats(3), np.zeros((1, 1), int), np.ones(1, int),
                                  ScatterDimensionNumbers((), (0,), (0,))), TypeError, "'updates'.*dtype"),
        (lambda: indexing.scatter(floats(3), np.zeros((1, 1), int), floats(2),
                                  ScatterDimensionNumbers((), (0,), (0,))), TypeError, "'updates'.*batch shape"),
    ],
)  # fmt: skip
def test_errors(call, error, match):
    with numpy_evaluation(), pytest.raises(error, match=match):
        call()


def test_modes():
    parse = gather_geometry.GatherScatterMode.from_any
    assert parse(None) is parse("fill") is parse("drop") is FILL
    assert parse("clip") is CLIP
