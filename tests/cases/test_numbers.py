"""Small programs with a definite answer by IEEE 754 and NumPy, of the kind that users report:
values at the edges, where systems that go fast like to be wrong."""

from __future__ import annotations

import numpy as np
import pytest

import jato
import jato.numpy as jnp

nan, inf = np.nan, np.inf
float32 = np.float32


@pytest.fixture(params=["eager", "jit"])
def run(request):
    """Calls a function eagerly or jitted; the results as NumPy arrays."""

    def call(function, *args):
        f = jato.jit(function) if request.param == "jit" else function
        return jato.tree.map(np.asarray, f(*map(jnp.asarray, args)))

    return call


@pytest.mark.parametrize("n", [1, 7, 15, 16, 17, 31, 49, 63, 64, 65, 100, 200, 1000])
@pytest.mark.parametrize("name", ["arctan", "sin", "exp", "tanh", "log1p"])
def test_no_length_is_special(run, name, n):
    """Vector loops and their rests compute the same function."""
    x = np.linspace(-0.9, 5, n)
    np.testing.assert_allclose(
        run(getattr(jnp, name), x.astype(float32)), getattr(np, name)(x), 2e-6, 1e-7
    )
    with jato.enable_x64(True):
        np.testing.assert_allclose(run(getattr(jnp, name), x), getattr(np, name)(x), 1e-14, 1e-15)


def test_products_summed_over_a_middle_axis(run):
    a = np.ones((3, 1, 2, 2, 8, 8, 8), "float32")
    y = run(lambda a, b: jnp.sum(a * b, axis=3), a, 2 * a)
    assert y.shape == (3, 1, 2, 8, 8, 8) and (y == 4).all()


def test_gradient_through_a_long_map():
    w = np.array([1, 2, 3], "float32")
    points = np.ones((50_000, 3), "float32")

    def distance(x, y):
        d = y - x
        return jnp.dot(d, w) + jnp.dot(jnp.dot(d, jnp.zeros((3, 3))), d)

    def mean(x):
        return jnp.mean(jato.vmap(lambda y: distance(x, y))(points))

    np.testing.assert_allclose(jato.jit(jato.grad(mean))(np.ones(3, "float32")), -w, 1e-3)


def test_what_was_written_is_not_reassociated(run):
    def g(m, s):
        masked = s + (-1e30) * (1.0 - m)
        return masked - masked.max()

    np.testing.assert_allclose(run(g, float32(1), np.array([0.7, 0.5], "float32")), [0, -0.2], 1e-5, 1e-7)
    y = run(lambda x: (x + 1e8) - 1e8, np.array([1.0, 100.0], "float32"))
    np.testing.assert_array_equal(y, (np.array([1.0, 100.0], "float32") + float32(1e8)) - float32(1e8))


def test_an_update_that_reads_what_it_replaces(run):
    x = np.arange(200, dtype="float32").reshape(2, 100)
    want = x.copy()
    want[0] = np.roll(x[0], 5)
    np.testing.assert_array_equal(run(lambda x: x.at[0].set(jnp.roll(x[0], 5)), x), want)
    want = x.copy()
    want[:, 1:] = x[:, :-1]
    np.testing.assert_array_equal(run(lambda x: x.at[:, 1:].set(x[:, :-1]), x), want)


@pytest.mark.parametrize("shape, axis", [((1_000_000,), 0), ((200_000, 3), 0), ((3, 300_000), 1)])
def test_long_sums_stay_accurate(run, shape, axis):
    x = np.full(shape, 0.1, "float32")
    want = shape[axis] * float(float32(0.1))
    np.testing.assert_allclose(run(lambda x: jnp.sum(x, axis), x), want, 5e-6)
    np.testing.assert_allclose(run(lambda x: jnp.mean(x, axis), x), float32(0.1), 5e-6)


def test_half_precision_sums_do_not_stop_growing(run):
    x = np.ones(5000, "float16")
    assert float(run(jnp.sum, x)) == 5000
    assert float(run(jnp.mean, jnp.full(70_000, 1.0, "float16"))) == 1


def test_linspace_ends_where_it_was_told(run):
    a, b = -2.3328583, 2.8459014
    for n in (2, 3, 10, 50, 1000):
        y = run(lambda: jnp.linspace(a, b, n))
        assert y[0] == float32(a) and y[-1] == float32(b)


@pytest.mark.parametrize(
    "x, where",
    [([0, 1, nan], 2), ([nan] * 9, 0), ([0] * 50 + [nan] * 50, 50), ([nan, 5, nan], 0),
     ([1, 1, 1], 0), ([-inf, -inf], 0), ([inf, nan], 1)],
)  # fmt: skip
def test_arg_reductions_take_the_first_nan(run, x, where):
    x = np.array(x, "float32")
    assert int(run(jnp.argmax, x)) == int(np.argmax(x)) == where
    assert int(run(jnp.argmin, x)) == int(np.argmin(x))


def test_max_and_min_carry_nans(run):
    for n in (1, 2, 16, 17, 100, 1000):
        for where in {0, n // 2, n - 1}:
            x = np.arange(n, dtype="float32")
            x[where] = nan
            assert np.isnan(run(jnp.max, x)) and np.isnan(run(jnp.min, x))
            assert np.isnan(run(jnp.maximum, x, x[::-1].copy())[where])


def test_sorting_puts_nans_last_and_is_stable(run):
    x = np.array([-nan, nan, -inf, inf, -1, 1], "float32")
    np.testing.assert_array_equal(run(jnp.sort, x), [-inf, -1, 1, inf, nan, nan])
    for zeros in ([0.0, -0.0], [-0.0, 0.0]):
        np.testing.assert_array_equal(run(jnp.argsort, np.array(zeros, "float32")), [0, 1])


def test_subnormals_are_kept(run):
    x = np.array([1e-40, 1.4e-45, -1e-42], "float32")
    np.testing.assert_allclose(run(lambda x: jnp.log(abs(x)), x), np.log(abs(x)), 1e-6)
    np.testing.assert_allclose(run(lambda x: jnp.sqrt(abs(x)), x), np.sqrt(abs(x)), 1e-6)
    np.testing.assert_array_equal(run(lambda x: x == 0, x), [False] * 3)
    np.testing.assert_array_equal(run(lambda x: x * 1.0 + 0.0, x), x)
    np.testing.assert_array_equal(run(lambda x: x.sum(), x), x.sum())
    assert run(lambda x: jnp.exp(x), float32(-100)) == np.exp(float32(-100))


def test_integer_division_never_traps(run):
    least = np.iinfo("int32").min
    for a in (5, 0, -5):
        assert int(run(lambda a, b: a // b, np.int32(a), np.int32(0))) == 0
        assert int(run(lambda a, b: a % b, np.int32(a), np.int32(0))) == 0
    assert int(run(lambda a, b: a % b, np.uint32(7), np.uint32(0))) == 0
    assert int(run(jnp.floor_divide, np.int32(least), np.int32(-1))) == least
    assert int(run(jnp.remainder, np.int32(least), np.int32(-1))) == 0
    for n in (1, 16, 17):
        x = np.full(n, least)
        np.testing.assert_array_equal(run(jnp.floor_divide, x.astype("int32"), np.int32(-1)), x)


@pytest.mark.parametrize("x", [6.0, -6.0, 5.5, -5.5, 0.0, -0.0, inf, -inf, nan])
@pytest.mark.parametrize("y", [3.0, -3.0, 0.0, -0.0, inf, -inf, nan, 0.1])
def test_float_division_and_remainder_are_numpys(run, x, y):
    with np.errstate(all="ignore"):
        for name in ("floor_divide", "remainder", "fmod"):
            want = getattr(np, name)(float32(x), float32(y))
            got = run(getattr(jnp, name), float32(x), float32(y))
            np.testing.assert_array_equal(got, want, err_msg=name)
            if not np.isnan(want):
                assert np.signbit(got) == np.signbit(want), (name, got, want)


def test_comparisons_of_mixed_integers(run):
    assert run(lambda a, b: a > b, np.uint32(2**32 - 1), np.int8(1))
    assert run(lambda a, b: a < b, np.int8(-1), np.uint8(200))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "int32", "uint32"])
def test_conversions_agree_between_ways_and_lengths(dtype):
    x = np.array([-1.0, 300.0, 70000.0, 3e9, -3e9, 5e9, 0.9, -0.9, 126.6, inf, -inf], "float32")
    eager = np.asarray(jnp.asarray(x).astype(dtype))
    jitted = np.asarray(jato.jit(lambda v: v.astype(dtype))(x))
    np.testing.assert_array_equal(eager, jitted)
    long = np.asarray(jato.jit(lambda v: v.astype(dtype))(np.tile(x, 40)))
    np.testing.assert_array_equal(long, np.tile(eager, 40))
    for v, e in zip(x, eager):
        assert np.asarray(jnp.float32(v).astype(dtype)) == e
    i = np.array([-255, -1, 256, 255, 257, 2**31 - 1], "int32")
    np.testing.assert_array_equal(jnp.asarray(i).astype(dtype), i.astype(dtype))


def test_complex_edges(run):
    z = np.array([0, 1, -1, 1j, -1j, 3 + 4j, complex(-0.0, 0.0)], "complex64")
    np.testing.assert_allclose(run(jnp.abs, z), np.abs(z), 1e-6)
    np.testing.assert_allclose(run(jnp.sqrt, z), np.sqrt(z), 1e-6, 1e-7)
    np.testing.assert_allclose(run(jnp.exp, z), np.exp(z), 1e-6)
    assert run(jnp.abs, np.complex64(3e38 + 1e38j)) == pytest.approx(np.hypot(3e38, 1e38), 1e-6)


def test_products_of_narrow_integers_in_a_wide_dtype(run):
    """`preferred_element_type` is the dtype of the products, not only of their sum."""
    a, b = np.full((5, 9), 100, "int8"), np.full((9, 4), -100, "int8")
    wide = {"preferred_element_type": np.int32}
    np.testing.assert_array_equal(run(lambda a, b: jnp.matmul(a, b, **wide), a, b), -90000)
    np.testing.assert_array_equal(run(lambda a, b: jnp.einsum("ij,jk->ijk", a, b, **wide), a, b), -10000)
    np.testing.assert_array_equal(run(lambda a: jnp.dot(a, 100, **wide), a), 10000)
    big = np.full((64, 64), 100, "int8")
    np.testing.assert_array_equal(run(lambda a: jnp.matmul(a, a, **wide), big), 640000)


def test_python_numbers_take_the_dtype_of_the_array(run):
    """As operands of a traced function they wrap and round as arguments do."""
    s, u, x = np.int8([1, -2]), np.uint32([3, 1]), float32([0.5, 2])
    assert run(lambda s: s * 300, s).tolist() == [44, -88]
    assert run(lambda u: -1 >> u, u).tolist() == [2**29 - 1, 2**31 - 1]
    np.testing.assert_allclose(run(lambda x: 2**x, x), 2**x)
    assert run(lambda z: jnp.greater(z, 1), np.complex64([2, 0])).tolist() == [True, False]
    with pytest.raises(OverflowError, match="1099511627776"):
        run(lambda s: s * 2**40, s)


def test_masked_rows_have_no_probabilities(run):
    where = np.array([[False, False], [True, False]])
    assert run(lambda x: jato.nn.softmax(x, where=where), np.ones((2, 2))).tolist() == [[0, 0], [1, 0]]


def test_integers_of_what_is_no_number():
    for values in (nan, [1.5, nan], inf):
        for make in (jnp.array, lambda v, t: jato.jit(lambda: jnp.array(v, t))()):
            with pytest.raises((ValueError, OverflowError), match="array: "):
                make(values, int)
    assert int(jato.lax.full((), nan, "int32")) == 0
