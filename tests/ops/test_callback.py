"""Callbacks: pure, with effects, for debugging; in loops, under transforms, calling jato."""

import functools
import gc
import threading

import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato.base import hooks
from jato.experimental import io_callback
from jato.jit.eager import eval_primitive


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    monkeypatch.setattr(hooks.eval_primitive, "_value", eval_primitive)


def struct(x):
    return jato.ShapeDtypeStruct(x.shape, x.dtype)


def sorted_by_numpy(x, **options):
    return jato.pure_callback(lambda v: np.sort(np.asarray(v)), struct(x), x, **options)


X = np.array([3.0, 1.0, 2.0], np.float32)

# ---- pure_callback


@pytest.mark.parametrize("wrap", [lambda f: f, jato.jit], ids=["eager", "jit"])
def test_pure(wrap):
    np.testing.assert_array_equal(wrap(lambda x: sorted_by_numpy(x) * 2)(X), [2, 4, 6])


def test_arguments_and_results_are_trees():
    def host(a, *, b):
        assert isinstance(a["x"], jato.Array) and isinstance(b, jato.Array)
        return {"sum": a["x"] + b, "pair": (np.float64(1.5), 3)}

    shapes = {
        "sum": jato.ShapeDtypeStruct((3,), "float32"),
        "pair": (jato.ShapeDtypeStruct((), "float32"), jato.ShapeDtypeStruct((), "int32")),
    }
    for wrap in (lambda f: f, jato.jit):
        out = wrap(lambda x: jato.pure_callback(host, shapes, {"x": x}, b=x * 10))(X)
        np.testing.assert_array_equal(out["sum"], X * 11)
        assert out["pair"][0].dtype == np.float32 and float(out["pair"][0]) == 1.5
        assert int(out["pair"][1]) == 3


def test_unused_pure_callback_is_dropped():
    calls = []

    def f(x):
        jato.pure_callback(lambda v: calls.append(1) or v, struct(x), x)
        return x + 1

    jato.jit(f)(X).block_until_ready()
    assert not calls


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "bfloat16", "complex64"])
def test_dtypes_pass_through(dtype):
    x = jnp.asarray([0, 1, 1], dtype)
    found = jato.jit(lambda x: jato.pure_callback(lambda v: v, struct(x), x))(x)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(found), np.asarray(x))


def test_zero_size_and_scalars():
    empty = jnp.zeros((0, 3))
    assert jato.jit(lambda x: sorted_by_numpy(x))(empty).shape == (0, 3)
    assert float(jato.jit(lambda: jato.pure_callback(lambda v: v + 1, struct(jnp.float32(0)), 2.0))()) == 3


@pytest.mark.parametrize(
    ("method", "shapes"),
    [
        ("sequential", {((3,), ())}),
        ("expand_dims", {((2, 3), (1,))}),
        ("broadcast_all", {((2, 3), (2,))}),
        ("legacy_vectorized", {((2, 3), ())}),
    ],
)
@pytest.mark.parametrize("wrap", [lambda f: f, jato.jit], ids=["eager", "jit"])
def test_vmap_methods(method, shapes, wrap):
    seen = set()

    def host(v, w):
        seen.add((v.shape, w.shape))
        w = np.asarray(w)
        return np.asarray(v) * (w[..., None] if w.ndim else w)

    def f(v):
        return jato.pure_callback(host, struct(v), v, np.float32(2), vmap_method=method)

    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(wrap(jato.vmap(f, in_axes=1))(x), x.T * 2)
    assert seen == shapes


def test_nested_vmap():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)[:, :, ::-1]
    for method in ("sequential", "broadcast_all"):
        f = jato.vmap(jato.vmap(functools.partial(sorted_by_numpy, vmap_method=method)), in_axes=1)
        np.testing.assert_array_equal(f(x), np.sort(x.transpose(1, 0, 2)))


def test_custom_derivative():
    @jato.custom_jvp
    def sine(x):
        return jato.pure_callback(lambda v: np.sin(v), struct(x), x, vmap_method="broadcast_all")

    sine.defjvp(lambda p, t: (sine(p[0]), jnp.cos(p[0]) * t[0]))
    np.testing.assert_allclose(jato.vmap(jato.jit(jato.grad(lambda x: sine(x) * 2)))(X), 2 * np.cos(X), rtol=1e-6)


def test_inside_loops_and_branches():
    def body(c, x):
        c = c + jato.pure_callback(lambda v: np.float32(v) * 2, struct(c), x)
        return c, c

    total, rows = jato.jit(lambda x: jato.lax.scan(body, jnp.float32(0), x))(X)
    np.testing.assert_allclose(rows, np.cumsum(2 * X))
    assert float(total) == 12.0
    f = jato.jit(lambda p, x: jato.lax.cond(p, sorted_by_numpy, lambda x: x, x))
    np.testing.assert_array_equal(f(True, X), np.sort(X))
    np.testing.assert_array_equal(f(False, X), X)


def test_callbacks_that_call_jato_from_a_jitted_loop():
    inner = jato.jit(lambda v: jnp.sum(jnp.sin(v) @ jnp.ones((64, 64))))
    calls = []

    def host(v):
        calls.append(threading.get_ident())
        return v + np.float32(jato.grad(lambda v: inner(v))(v)[0, 0]) * 0

    x = jnp.ones((64, 64))
    step = lambda i, c: jato.pure_callback(host, struct(c), c)  # noqa: E731
    out = jato.jit(lambda x: jato.lax.fori_loop(0, 100, step, x))(x)
    np.testing.assert_array_equal(out, np.ones((64, 64)))
    assert len(calls) == 100


def test_errors_of_a_callback_reach_the_caller():
    def fails(v):
        raise KeyError("from the callback")

    f = lambda x: jato.pure_callback(fails, struct(x), x) + 1  # noqa: E731
    with pytest.raises(KeyError, match="from the callback"):
        f(X)
    with pytest.raises(KeyError, match="from the callback"):
        np.asarray(jato.jit(f)(X))
    # on the device's own thread: at use, and at block_until_ready
    queued = jato.jit(lambda x: jato.lax.fori_loop(0, 100, lambda i, c: f(c), x))
    out = queued(X)
    for _ in range(2):
        with pytest.raises(KeyError, match="from the callback"):
            out.block_until_ready()
    with pytest.raises(KeyError, match="from the callback"):
        jato.block_until_ready(out + 1)
    np.testing.assert_array_equal(jnp.asarray(X) + 1, X + 1)  # the device goes on


def test_wrong_results_are_refused():
    def call(value, shape=(3,), dtype="float32"):
        out = jato.ShapeDtypeStruct(shape, dtype)
        return np.asarray(jato.jit(lambda x: jato.pure_callback(lambda v: value, out, x))(X))

    with pytest.raises(ValueError, match=r"returned shape \(2,\) for result 0.*says \(3,\)"):
        call(np.zeros(2, np.float32))
    with pytest.raises(TypeError, match="returned dtype int32 for result 0.*float32.*numpy.asarray"):
        call(np.zeros(3, np.int32))
    with pytest.raises(ValueError, match="must return what result_shape_dtypes describes"):
        call((np.zeros(3), 1))
    with pytest.raises(TypeError, match="returned dtype float32"):
        call(np.float32(1.5), (), "int32")


def test_wrong_uses_are_refused():
    with pytest.raises(TypeError, match="pure_callback: result_shape_dtypes"):
        jato.pure_callback(lambda x: x, "float32", X)
    with pytest.raises(ValueError, match="vmap_method must be one of"):
        sorted_by_numpy(X, vmap_method="parallel")
    with pytest.raises(TypeError, match=r"pure_callback: argument \[0\]\[0\] of .*got str 'text'"):
        jato.pure_callback(lambda x: x, struct(X), "text")
    with pytest.raises(NotImplementedError, match="vmap_method"):
        jato.vmap(sorted_by_numpy)(X[None])
    with pytest.raises(ValueError, match="pure_callback: the derivative of .*custom_jvp"):
        jato.grad(lambda x: jnp.sum(sorted_by_numpy(x)))(X)
    with pytest.raises(TypeError, match="expected a function"):
        jato.pure_callback(3, struct(X), X)


# ---- effects


def test_io_happens_once_and_in_order():
    log = []

    def f(x):
        io_callback(lambda v: log.append(("a", int(v))), None, x, ordered=True)
        y = x * 2
        io_callback(lambda v: log.append(("b", int(v))), None, y)
        jato.lax.fori_loop(0, 2, lambda i, c: io_callback(lambda i: log.append(("c", int(i))), None, i) or c, 0)
        return io_callback(lambda v: log.append(("d", int(v))) or np.int32(7), jato.ShapeDtypeStruct((), "int32"), x)

    expected = [("a", 3), ("b", 6), ("c", 0), ("c", 1), ("d", 3)]
    for wrap in (lambda f: f, jato.jit):
        assert int(wrap(f)(3)) == 7
        jato.effects_barrier()
        assert log == expected
        log.clear()


def test_unused_effects_in_loops_and_calls_are_kept():
    log = []
    note = lambda v: io_callback(lambda v: log.append(int(v)), None, v)  # noqa: E731

    @jato.jit
    def f(x):
        jato.lax.scan(lambda c, x: (note(x), (c, x))[1], 0, x)  # nothing of it is used
        jato.jit(lambda x: note(x[0] * 10))(x)
        jato.jit(lambda x: note(x[0] * 10))(x)
        jato.lax.cond(x[0] > 0, note, lambda v: None, x[1])
        jato.lax.while_loop(lambda c: c < 2, lambda c: (note(c + 100), c + 1)[1], 0)

    assert f(jnp.array([4, 5])) is None
    jato.effects_barrier()
    assert log == [4, 5, 40, 40, 5, 100, 101]


def test_programs_with_effects_run_in_the_order_of_their_calls():
    log = []

    @jato.jit
    def f(n):
        heavy = jato.lax.fori_loop(0, 30_000 - 1000 * n, lambda i, c: jnp.sin(c) + 1, 0.5)
        io_callback(lambda n, _: log.append(int(n)), None, n, heavy, ordered=True)

    for n in range(20):
        f(n)
    io_callback(lambda: log.append("eager"), None, ordered=True)
    assert log == [*range(20), "eager"]


def test_error_of_an_effect_surfaces_at_the_barrier():
    def fails(_):
        raise RuntimeError("effect failed")

    f = jato.jit(
        lambda x: io_callback(fails, None, jato.lax.fori_loop(0, 10**6, lambda i, c: jnp.sin(c), x))
    )
    with pytest.raises(RuntimeError, match="effect failed"):
        f(1.0)
        jato.effects_barrier()
    jato.effects_barrier()


def test_io_under_vmap():
    log = []
    f = lambda x: io_callback(lambda v: log.append(float(v)), None, x)  # noqa: E731
    jato.vmap(f)(X)
    jato.jit(jato.vmap(f))(X)
    jato.effects_barrier()
    assert log == [3.0, 1.0, 2.0] * 2
    with pytest.raises(ValueError, match="ordered callback.*cannot be mapped"):
        jato.vmap(lambda x: io_callback(lambda v: None, None, x, ordered=True))(X)
    with pytest.raises(ValueError, match="io_callback: the derivative"):
        jato.grad(lambda x: (f(x), x)[1])(1.0)


def test_a_captured_result_of_the_same_device_is_refused_not_waited_for():
    slow = jato.jit(lambda x: jato.lax.fori_loop(0, 2_000_000, lambda i, c: jnp.sin(c), x))
    box = []

    def host(v):
        return v + float(box[0])

    run = jato.jit(
        lambda x: jato.lax.fori_loop(
            0, 100, lambda i, c: jato.pure_callback(host, struct(c), c), x
        )
    )
    box.append(slow(jnp.float32(1.0)))
    np.asarray(run(jnp.float32(0)))  # what was queued earlier is ready by then
    first = jato.jit(lambda x: jato.lax.fori_loop(0, 20_000_000, lambda i, c: jnp.cos(c), x))(1.0)
    out = run(first)
    box[0] = slow(jnp.float32(2.0))
    with pytest.raises(RuntimeError, match="waits for a result that the same device computes later"):
        out.block_until_ready()


# ---- debug


def test_print(capsys):
    def f(x, name):
        jato.debug.print("{name}: {} {y:.2f} {}", x, x[0], y=x[1], name=name)
        return x + 1

    f(jnp.asarray(X), "eager")
    jato.jit(f, static_argnames="name")(X, name="jit")
    jato.effects_barrier()
    assert capsys.readouterr().out == "eager: [3. 1. 2.] 1.00 3.0\njit: [3. 1. 2.] 1.00 3.0\n"


def test_print_under_transforms(capsys):
    def f(x):
        jato.debug.print("x {}", x)
        return jnp.sin(x)

    def printed(run):
        np.asarray(run())
        jato.effects_barrier()
        return capsys.readouterr().out.split("\n")[:-1]

    assert printed(lambda: jato.grad(f)(1.5)) == ["x 1.5"]
    assert printed(lambda: jato.jit(jato.grad(f))(1.5)) == ["x 1.5"]
    assert printed(lambda: jato.vmap(f)(X)) == ["x 3.0", "x 1.0", "x 2.0"]
    assert printed(lambda: jato.jit(jato.vmap(jato.grad(f)))(X)) == ["x 3.0", "x 1.0", "x 2.0"]
    assert printed(lambda: jato.vmap(lambda x: f(1.0) + x)(X)) == ["x 1.0"]
    scanned = lambda x: jnp.sum(jato.lax.scan(lambda c, x: (c, f(x) * c), 1.0, x)[1])  # noqa: E731
    assert printed(lambda: jato.jit(jato.grad(scanned))(X)) == ["x 3.0", "x 1.0", "x 2.0"]


def test_print_ordered_and_formats(capsys):
    @jato.jit
    def f(x):
        jato.lax.fori_loop(0, 3, lambda i, c: jato.debug.print("{i}", i=i, ordered=True) or c, x)

    f(1.0)
    jato.effects_barrier()
    assert capsys.readouterr().out == "0\n1\n2\n"
    with pytest.raises(ValueError, match="does not mention argument 1"):
        jato.debug.print("{}", 1, 2)
    with pytest.raises(ValueError, match="does not mention argument 'y'"):
        jato.debug.print("", y=2)
    with pytest.raises(IndexError):
        jato.debug.print("{} {}", 1)
    with pytest.raises(TypeError, match="fmt must be a string"):
        jato.debug.print(3)
    jato.debug.print("{}", 1, 2, skip_format_check=True)


def test_debug_callback_gets_other_values_as_they_are():
    seen = []

    @jato.jit
    def f(x):
        jato.debug.callback(lambda *a, **k: seen.append((a, k)), "text", x, option={"k": None}, o=object)

    f(2)
    jato.effects_barrier()
    ((text, x), options), = seen  # fmt: skip
    assert text == "text" and int(x) == 2 and options == {"option": {"k": None}, "o": object}


def test_random_keys_are_handed_over_as_keys():
    seen = []
    key = jato.random.key(3)
    jato.jit(lambda k: jato.debug.callback(lambda k: seen.append(jato.random.bits(k)), k))(key)
    jato.effects_barrier()
    assert int(seen[0]) == int(jato.random.bits(key))


def test_callbacks_are_freed_with_the_function():
    import weakref

    class Host:
        def __call__(self, v):
            return v

    host = Host()
    probe = weakref.ref(host)
    f = jato.jit(lambda x: jato.pure_callback(host, struct(x), x))  # noqa: F821
    np.asarray(f(X))
    jato.pure_callback(host, struct(X), X)
    del f, host
    gc.collect()
    assert probe() is None
