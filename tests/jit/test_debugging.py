"""disable_jit, ensure_compile_time_eval, checking_leaks, named scopes, profiler."""

import gc
import json
import threading

import numpy as np
import pytest

import jato
import jato.numpy as jnp
from jato import lax
from jato.base.errors import UnexpectedTracerError

# ---- disable_jit


def test_disable_jit_runs_python():
    seen = []

    @jato.jit
    def f(x):
        seen.append(float(x[0]))  # only possible with numbers
        if x[0] > 0:
            return x * 2
        return x

    with pytest.raises(jato.base.errors.ConcretizationTypeError):
        f(jnp.ones(2))
    with jato.disable_jit():
        np.testing.assert_array_equal(f(jnp.ones(2)), [2, 2])
    assert seen == [1.0]
    with pytest.raises(jato.base.errors.ConcretizationTypeError):
        f(jnp.ones(2))


def test_disable_jit_reaches_control_flow():
    steps = []

    def run():
        note = lambda x: steps.append(type(x).__name__) or x  # noqa: E731
        a = lax.while_loop(lambda c: c < 3, lambda c: note(c) + 1, jnp.int32(0))
        b = lax.fori_loop(0, 2, lambda i, c: note(c) + i, jnp.int32(1))
        c, ys = lax.scan(lambda c, x: (note(c) + x, c), jnp.int32(0), jnp.arange(3))
        d = lax.cond(True, lambda x: note(x), lambda x: x, c)
        return [int(a), int(b), int(c), int(d), ys.tolist()]

    expected = run()
    assert all("Tracer" in s for s in steps)
    steps.clear()
    with jato.disable_jit():
        assert run() == expected
    assert steps and all(s == "ArrayImpl" for s in steps)


# ---- ensure_compile_time_eval


def test_compile_time_evaluation():
    @jato.jit
    def f(x):
        with jato.ensure_compile_time_eval():
            table = jnp.sin(jnp.arange(3.0))
            count = int(jnp.sum(jnp.arange(4)))
            steps = int(lax.fori_loop(0, 3, lambda i, c: c + i, 0))
            jitted = float(jato.jit(lambda v: v * 2)(jnp.float32(1.5)))
            y = x * table[0]  # traced values are recorded as ever
            assert isinstance(y, jato.core.trace.Tracer)
        return jnp.zeros(count) + x * jitted + steps + y

    np.testing.assert_array_equal(f(2.0), np.full(6, 9.0))
    with jato.ensure_compile_time_eval():
        assert float(jnp.sum(jnp.ones(3))) == 3
    np.testing.assert_array_equal(jato.vmap(f)(jnp.ones(2)), np.full((2, 6), 6.0))


# ---- leaks

box = []


@pytest.mark.parametrize(
    "run",
    [
        lambda f: jato.jit(f)(1.0),
        lambda f: jato.vmap(f)(jnp.ones(2)),
        lambda f: lax.scan(lambda c, x: (f(x), x), 0.0, jnp.ones(3)),
        lambda f: jato.make_jaxpr(f)(1.0),
    ],
    ids=["jit", "vmap", "scan", "make_jaxpr"],
)
def test_leaked_tracers_are_reported(run):
    def f(x):
        box.append(x)
        return x * 2

    try:
        with jato.checking_leaks(), pytest.raises(Exception, match=r"Leaked trace: .*of"):
            run(f)
        box.clear()
        run(f)  # not looked for by default
    finally:
        box.clear()


def test_leak_names_the_argument_and_the_holder():
    class Model:
        pass

    model = Model()

    @jato.jit
    def forward(weights):
        model.cache = weights + 1
        return weights

    with jato.checking_leaks(), pytest.raises(UnexpectedTracerError) as error:
        forward(1.0)
    assert "an object of class Model, as 'cache'" in str(error.value)
    assert "jit of forward" in str(error.value)


def test_no_false_alarm():
    def loss(w, x):
        h = jato.checkpoint(lambda w: jnp.tanh(x @ w))(w)
        total, _ = lax.scan(lambda c, row: (c + jnp.sum(row), None), 0.0, h)
        return lax.cond(total > 0, lambda t: t, lambda t: -t, total)

    with jato.checking_leaks():
        f = jato.vmap(jato.value_and_grad(loss), in_axes=(None, 0))
        jato.make_jaxpr(f)(jnp.ones((3, 2)), jnp.ones((2, 4, 3)))
        lax.while_loop(lambda c: c < 3.0, lambda c: c + 1, 0.0)


def test_a_tracer_in_another_thread_is_refused_with_a_reason():
    errors = []

    def f(x):
        def work():
            try:
                jnp.sin(x)
            except UnexpectedTracerError as error:
                errors.append(str(error))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return x

    jato.jit(f)(1.0)
    assert "used outside of it" in errors[0] and "argument x" in errors[0]


# ---- names


def test_named_scope():
    @jato.named_scope("layer")
    def layer(x):
        with jato.named_scope("inner"):
            y = jnp.sin(x)
        return y + 1

    frames = [str(n.frame) for n in jato.make_jaxpr(layer)(1.0).eqns]
    assert frames[0].endswith("(layer) in layer/inner")
    assert frames[1].endswith("(layer) in layer")
    named = jato.named_call(lambda x: jnp.cos(x), name="head")
    assert str(jato.make_jaxpr(named)(1.0).eqns[0].frame).endswith("in head")
    assert float(jato.jit(jato.grad(named))(0.0)) == 0
    with pytest.raises(TypeError, match="named_scope: the name must be a string"):
        jato.named_scope(3)


# ---- profiler


def test_profiler_writes_a_chrome_trace(tmp_path):
    @jato.profiler.annotate_function(name="my step")
    def step(x):
        return (x @ x).block_until_ready()

    f = jato.jit(lambda x: jnp.exp(x) * 2)
    x = jnp.ones((200, 200))
    f(x), step(x)
    with jato.profiler.trace(tmp_path / "out"):
        with jato.profiler.StepTraceAnnotation("train", step_num=7):
            f(x).block_until_ready()
        step(x)
    events = json.loads((tmp_path / "out" / "jato.trace.json").read_text())["traceEvents"]
    bars = {e["name"]: e for e in events if e["ph"] == "X"}
    assert bars["train"]["args"] == {"step_num": 7}
    assert "my step" in bars
    kernels = [e for e in events if e["ph"] == "X" and "bytes" in e["args"]]
    assert kernels and all(e["dur"] >= 0 for e in kernels)
    train = bars["train"]
    assert any(train["ts"] <= e["ts"] and e["ts"] + e["dur"] <= train["ts"] + train["dur"] for e in kernels)
    with pytest.raises(RuntimeError, match="no recording is in progress"):
        jato.profiler.stop_trace()
    jato.profiler.start_trace(tmp_path)
    with pytest.raises(RuntimeError, match="is in progress"):
        jato.profiler.start_trace(tmp_path)
    jato.profiler.stop_trace()


# ---- memory


def test_fresh_functions_leave_memory_flat():
    def used():
        gc.collect()
        return len(gc.get_objects())

    def round_of(count):
        for i in range(count):
            x = jnp.float32(i)
            lax.switch(i % 3, [lambda x: x + 1, lambda x: x * 2, lambda x, i=i: x - i], x)
            lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0)
            jato.jit(lambda x: jnp.sin(x))(x)
            jato.debug.callback(lambda v: None, x)

    round_of(130)  # the caches are full
    before = used()
    round_of(200)
    assert used() - before < 2000


# ---- breakpoint


def test_breakpoint_shows_the_values_of_the_program(monkeypatch, capsys):
    lines = iter(["print('x is', float(x), 'y is', y.tolist(), 'n is', n)"])

    def read(prompt=""):
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", read)

    @jato.jit
    def f(x):
        n = 3
        y = jnp.arange(n) * x
        jato.debug.breakpoint()
        return y

    np.testing.assert_array_equal(f(2.0), [0, 2, 4])
    jato.effects_barrier()
    captured = capsys.readouterr()
    assert "x is 2.0 y is [0.0, 2.0, 4.0] n is 3" in captured.out
    assert "jato.debug.breakpoint at " in captured.err
