"""The recipe as a whole: stages are told and verified, code is found again, eager shares it."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from watching import watch

import jato
import jato.numpy as jnp
from jato.base import observe
from jato.base.errors import MissingRule
from jato.compiler import kernel_cache
from jato.compiler.pipeline import compile_graph
from jato.core.graph import Graph
from jato.core.primitive import Primitive
from jato.core.staging import trace_to_graph
from jato.core.types import array_type
from jato.loopir.grammar import Kernel

X = np.linspace(0.1, 2, 60, dtype="float32").reshape(6, 10)


def test_stages_in_order():
    names = []
    with observe.listening(lambda e: e.kind == "stage" and names.append(e.name)):
        jato.jit(lambda x: jnp.sin(x).sum(0))(X)
    order = ["trace", "inline", "simplify", "contractions", "literals", "fusion", "schedule", "generalize"]
    assert [n for n in dict.fromkeys(names) if n in order] == order


def test_forms_of_the_stages():
    watched = watch(lambda x: jnp.sin(x).sum(0), X)
    assert all(isinstance(g, Graph) for g in watched.stages["simplify"])
    assert all(isinstance(k, Kernel) for k in watched.stages["schedule"][0])


def test_timings_are_told():
    times = {}
    with observe.listening(lambda e: e.kind == "timing" and times.setdefault(e.name, e.payload)):
        jato.jit(lambda x: jnp.sin(x) * 1.7)(X)
    assert {"trace", "graph", "schedule", "generalize", "codegen", "plan"} <= set(times)
    assert all(t >= 0 for t in times.values())


def test_equal_kernels_of_one_program_are_compiled_once():
    def f(x):
        a = jnp.sort(jnp.cos(x) * 1.25 + 0.5)
        return [jnp.sort(jnp.cos(a) * 1.25 + 0.5)]

    program = compile_graph(
        trace_to_graph(f, [array_type((40, 40), np.dtype("float32"))], "f", "test")
    )
    assert len(program.kernels) == 2 and program.compiled <= 1 and program.reused >= 1


def test_kernels_are_found_again():
    def f(x):
        return [jnp.tanh(x) * 1.125 - 0.375]

    graph = trace_to_graph(f, [array_type((100,), np.dtype("float32"))], "f", "test")
    compile_graph(graph)
    again = compile_graph(graph)
    assert again.compiled == 0 and again.reused == 1
    kernel_cache._codes.clear()
    assert compile_graph(graph).kernels == again.kernels


def test_a_second_process_compiles_nothing(tmp_path):
    code = (
        "import jato, jato.numpy as jnp\n"
        "f = jato.jit(lambda x: jnp.exp(x - x.max(1, keepdims=True)).sum(1))\n"
        "f(jnp.ones((8, 30)))\n"
        "print(f.stats().kernels_compiled, f.stats().kernels_reused)"
    )
    environment = {
        **os.environ, "JATO_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)
    }  # fmt: skip
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert runs == [["1", "0"], ["0", "1"]]


@pytest.mark.parametrize(
    "step",
    [
        lambda x: x + 1.5,
        lambda x: x[1:],
        lambda x: x[:, 3],
        lambda x: x.at[2].add(1.0),
        lambda x: jnp.concatenate([x, x]),
        lambda x: x.sum(1),
        lambda x: jnp.where(x > 0, x, 0),
        lambda x: x.T,
        lambda x: x.mean(),
        lambda x: jnp.take(x, jnp.array([0, -1]), 0),
    ],
)
def test_eager_compiles_no_kernel_for_new_shapes_and_indices(step):
    compiled = []

    def listen(event):
        if event.kind == "stage" and event.name == "generalize":
            compiled.extend(kernel_cache.key_of(k) for k in event.payload)

    for shape in ((20, 20), (20, 21)):
        step(jnp.ones(shape))
    with observe.listening(listen):
        step(jnp.ones((20, 20)))
        assert not compiled  # a known signature is dispatched natively
        for shape in ((30, 50), (21, 23), (40, 35)):
            step(jnp.ones(shape))
    assert all(key in kernel_cache._codes._entries for key in compiled)
    known = set(kernel_cache._codes._entries)
    for shape in ((31, 51), (22, 26), (41, 37)):
        step(jnp.ones(shape))
    assert set(kernel_cache._codes._entries) == known


def test_a_new_index_compiles_nothing():
    x = jnp.arange(50.0)
    x[3], x[5:9], x.at[4].set(1.0), x[3:20:2]
    known = set(kernel_cache._codes._entries)
    for i in (7, 11, -2):
        assert float(x[i]) == np.arange(50)[i]
        np.testing.assert_array_equal(x[i : i + 2], np.arange(50)[i : i + 2])
        x.at[i].set(2.0)
    assert len(set(kernel_cache._codes._entries) - known) <= 1


def test_a_primitive_without_a_way_to_run_is_named():
    class Lonely(Primitive):
        name = "lonely"
        fusable = False

        def type_rule(self, x):
            return x

    lonely = Lonely("lonely")
    try:
        with pytest.raises(MissingRule, match="lonely.*lower"):
            jato.jit(lambda x: lonely.bind(x))(X)
    finally:
        Primitive.registry.pop("lonely", None)
    np.testing.assert_array_equal(jato.jit(lambda x: x)(X), X)


def test_deep_chains_need_no_deep_recursion():
    def f(x):
        for i in range(3000):
            x = x + (i % 3) if i % 2 else x * 0.999
        return x

    want = X
    for i in range(3000):
        want = want + np.float32(i % 3) if i % 2 else want * np.float32(0.999)
    np.testing.assert_allclose(jato.jit(f)(X), want, 1e-3)


def test_many_inputs_and_results():
    xs = [np.full(5, i, "float32") for i in range(150)]
    got = jato.jit(lambda *xs: [x + i for i, x in enumerate(xs)])(*xs)
    for i, g in enumerate(got):
        np.testing.assert_array_equal(g, np.full(5, 2 * i))
    total = jato.jit(lambda *xs: sum(xs))(*xs)
    np.testing.assert_array_equal(total, np.full(5, sum(range(150))))
