"""Tracing, lowering and compiling ahead of time; caches, counts, explanations, settings."""

from __future__ import annotations

import gc
import logging
import subprocess
import sys
import weakref

import numpy as np
import pytest

import jato
import jato.numpy as jnp


def test_trace_lower_compile():
    f = jato.jit(lambda x, n: jnp.sin(x) * n, static_argnums=1)
    traced = f.trace(jnp.ones(4), 3)
    assert "sin" in str(traced.jaxpr) and traced.fun_name == "<lambda>"
    assert traced.out_info.shape == (4,) and traced.out_info.dtype == jnp.float32
    lowered = traced.lower()
    assert "sin" in lowered.as_text()
    compiled = lowered.compile()
    assert "launch" in compiled.as_text()
    np.testing.assert_allclose(compiled(np.ones(4, "float32")), 3 * np.sin(np.ones(4)), 1e-6)
    assert f.stats().traces == 1


def test_lowering_of_shapes_alone():
    f = jato.jit(lambda x: x.sum(0))
    compiled = f.lower(jato.ShapeDtypeStruct((3, 2), jnp.int32)).compile()
    np.testing.assert_array_equal(compiled(jnp.ones((3, 2), "int32")), [3, 3])
    assert f.eval_shape(jnp.ones((3, 2))).shape == (2,)


def test_compiled_refuses_other_types():
    compiled = jato.jit(lambda x: x + 1).lower(jnp.ones(3)).compile()
    with pytest.raises(TypeError, match=r"float32\[3\].*float32\[4\]"):
        compiled(jnp.ones(4))
    with pytest.raises(TypeError, match="structure"):
        compiled(jnp.ones(3), jnp.ones(3))


# ---- caches


def test_nested_jit_is_one_program():
    inner = jato.jit(lambda x: jnp.sin(x) + 1)
    outer = jato.jit(lambda x: inner(x) * inner(x + 1))
    x = jnp.linspace(0, 1, 50)
    np.testing.assert_allclose(
        outer(x), (np.sin(x) + 1) * (np.sin(np.asarray(x) + 1) + 1), 1e-6
    )
    assert len(outer.stats().kernels) == 1
    assert inner.stats().traces == 1 and inner.stats().programs == 0


def test_clear_cache_traces_again():
    f = jato.jit(lambda x: x + 1)
    f(1.0), f(2.0)
    assert f.stats().traces == 1
    f.clear_cache()
    assert float(f(3.0)) == 4 and f.stats().traces == 2
    assert "cleared" in jato.explain_retrace(f)


def test_clear_caches_reaches_everything():
    f = jato.jit(lambda x: jnp.tan(x) - 1.25)
    f(jnp.ones(3))
    before = f.stats()
    jato.clear_caches()
    f(jnp.ones(3))
    after = f.stats()
    assert after.traces == before.traces + 1 and after.programs == before.programs + 1
    np.testing.assert_array_equal(jnp.arange(3) + 1, [1, 2, 3])


def test_a_new_shape_compiles_no_kernel():
    f = jato.jit(lambda x: jnp.tanh(x) * 3 - x.sum())
    f(jnp.ones((40, 50)))
    compiled = f.stats().kernels_compiled
    for shape in ((60, 50), (33, 70), (128, 128)):
        f(jnp.ones(shape))
    stats = f.stats()
    assert stats.traces == 4 and stats.kernels_compiled == compiled and stats.kernels_reused > 0


def test_stats_are_a_copy():
    f = jato.jit(lambda x: x + 1)
    f(1.0)
    stats = f.stats()
    assert stats.programs == 1 and stats.trace_ms > 0 and stats.compile_ms > 0
    assert {"graph", "schedule", "codegen", "plan"} <= set(stats.passes_ms)
    stats.traces = 99
    stats.passes_ms.clear()
    assert f.stats().traces == 1 and f.stats().passes_ms


def test_captured_arrays_are_held_by_reference_and_freed():
    def make():
        big = jnp.ones(1 << 20) * 2
        return jato.jit(lambda x: x + big), weakref.ref(big), big.unsafe_buffer_pointer()

    in_use = jato._native.pool_stats()["in_use"]
    f, big, place = make()
    assert float(f(1.0)[0]) == 3
    assert big().unsafe_buffer_pointer() == place
    used = jato._native.pool_stats()["in_use"] - in_use
    assert 0.9 * (1 << 22) < used < 1.5 * (1 << 22)  # no copy of it
    del f
    gc.collect()
    assert big() is None
    assert jato._native.pool_stats()["in_use"] - in_use < 1 << 20


def test_functions_are_freed():
    def make():
        f = jato.jit(lambda x: x * 2)
        f(jnp.ones(3))
        jato.grad(lambda x: f(x).sum())(jnp.ones(3))
        return weakref.ref(f)

    refs = [make() for _ in range(5)]
    gc.collect()
    assert all(r() is None for r in refs)


# ---- explanations


def test_explain_retrace():
    f = jato.jit(lambda x, d, flag=True: x, static_argnames="flag")
    assert "not traced yet" in jato.explain_retrace(f)
    f(jnp.zeros(3), {"a": 1.0})
    assert "once" in jato.explain_retrace(f)
    f(jnp.zeros((3, 1)), {"a": 1.0})
    assert "x changed from float32[3] to float32[3,1]" in jato.explain_retrace(f)
    f(jnp.zeros((3, 1)), {"a": jnp.zeros(2)})
    text = jato.explain_retrace(f)
    assert "d['a']" in text and "to float32[2]" in text
    f(jnp.zeros((3, 1)), {"a": jnp.zeros(2)}, flag=False)
    assert "flag" in jato.explain_retrace(f) and "static False" in jato.explain_retrace(f)
    with pytest.raises(TypeError, match="jato.jit"):
        jato.explain_retrace(lambda x: x)


def test_log_compiles(caplog):
    f = jato.jit(lambda x: x)
    with jato.log_compiles(True), caplog.at_level(logging.INFO, "jato.jit"):
        f(jnp.zeros(2))
        f(jnp.zeros(2))
        f(jnp.zeros(3))
    assert len(caplog.records) == 2
    assert "float32[2]" in caplog.text and "from float32[2] to float32[3]" in caplog.text


def test_log_compiles_by_environment():
    code = "import jato; f = jato.jit(lambda x: x); f(1.0); f(2)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={"JATO_LOG_COMPILES": "1", "PYTHONPATH": ":".join(sys.path), "PATH": ""},
    )  # fmt: skip
    assert done.stderr.count("tracing and compiling <lambda>") == 2, done.stderr


# ---- settings


def test_disable_jit_runs_python():
    seen = []

    @jato.jit
    def f(x):
        seen.append(x)
        return x + 1 if x > 0 else x

    with jato.disable_jit():
        assert float(f(jnp.float32(2))) == 3 and float(f(jnp.float32(-2))) == -2
    assert [float(x) for x in seen] == [2, -2]
    with pytest.raises(jato.errors.TracerBoolConversionError):
        f(jnp.float32(2))


def test_x64_is_part_of_the_signature():
    f = jato.jit(lambda x: x * 1.5 + jnp.arange(2))
    assert f(2.0).dtype == jnp.float32
    with jato.enable_x64(True):
        assert f(2.0).dtype == jnp.float64
    assert f(2.0).dtype == jnp.float32


def test_debug_nans_names_function_operation_and_place():
    @jato.jit
    def f(x):
        y = x - 1
        return jnp.log(y) * 2

    assert np.isnan(f(0.5))
    with jato.debug_nans():
        assert float(f(2.0)) == 0
        with pytest.raises(FloatingPointError, match=r"^f: .*nan.*log\(float32\[\]\).*test_stages"):
            f(0.5)
        with pytest.raises(FloatingPointError, match="nan"):
            jnp.zeros(3) / 0
        with pytest.raises(FloatingPointError, match="sqrt"):
            jnp.sqrt(jnp.array([1.0, -1.0], "bfloat16"))
        with pytest.raises(FloatingPointError):
            jato.grad(jnp.sqrt)(-1.0)
        np.testing.assert_array_equal(jnp.ones(2) / 0, [np.inf, np.inf])
        np.testing.assert_array_equal(f(jnp.array([2.0, np.e + 1])), [0, 2])
    assert np.isnan(f(0.5))  # and nothing of the checks is left
    assert np.isnan(jnp.log(-1.0))


def test_debug_nans_traces_once():
    f = jato.jit(lambda x: x + 1)
    with jato.debug_nans():
        for i in range(4):
            assert float(f(float(i))) == i + 1
        assert f.stats().traces == 1
        f(jnp.ones(2))
        assert f.stats().traces == 2


def test_debug_nans_with_donation_and_static_arguments():
    f = jato.jit(lambda x, n: jnp.log(x) * n, static_argnums=1, donate_argnums=0)
    with jato.debug_nans():
        assert float(f(jnp.float32(1), 3)) == 0
        with pytest.raises(FloatingPointError, match="log"):
            f(jnp.float32(-1), 3)


def test_debug_infs():
    with jato.debug_infs():
        with pytest.raises(FloatingPointError, match="inf"):
            jnp.ones(3) / 0
        with pytest.raises(FloatingPointError, match=r"div|exp"):
            jato.jit(lambda x: jnp.exp(x) / 2)(jnp.full(3, 1e4))
        assert np.isnan(jnp.zeros(()) / 0)
    assert np.isinf(jnp.ones(()) / 0)
