"""Memory plans: temporaries that are alive together never overlap, whatever loops and swaps do;
donated inputs are taken over where that is safe."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import jato
import jato.numpy as jnp
from jato.compiler.memory import (
    ALIGNMENT,
    Lifetime,
    Lifetimes,
    OutputWrite,
    assign_donations,
    assign_offsets,
)
from jato.compiler.steps import Choose, Copy, Library, Repeat, Step, Swap, View
from jato.core.graph import Var
from jato.core.types import array_type

F32 = np.dtype("float32")


def var(count=4, dtype=F32):
    return Var(array_type((count,), dtype))


# ---- offsets

lifetimes = st.lists(
    st.tuples(st.integers(0, 1000), st.integers(0, 30), st.integers(0, 10)), max_size=40
).map(lambda rows: [Lifetime(var(), size, born, born + long) for size, born, long in rows])


@given(lifetimes)
@settings(max_examples=200, deadline=None)
def test_no_two_live_temporaries_overlap(lives):
    offsets, total = assign_offsets(lives)
    assert set(offsets) == {life.var for life in lives}
    for i, a in enumerate(lives):
        start, stop = offsets[a.var], offsets[a.var] + a.size
        assert start % ALIGNMENT == 0 and stop <= total
        for b in lives[:i]:
            if a.born <= b.dies and b.born <= a.dies and a.size and b.size:
                assert stop <= offsets[b.var] or offsets[b.var] + b.size <= start


@given(lifetimes)
@settings(max_examples=100, deadline=None)
def test_the_arena_is_no_larger_than_everything_apart(lives):
    _, total = assign_offsets(lives)
    assert total <= sum(-(-max(life.size, 1) // ALIGNMENT) * ALIGNMENT for life in lives)


@given(lifetimes)
@settings(max_examples=100, deadline=None)
def test_many_temporaries_are_placed_in_order_of_birth(lives):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jato.compiler.memory.MOST_COMPARED", 0)
        offsets, total = assign_offsets(lives)
    assert set(offsets) == {life.var for life in lives}
    for i, a in enumerate(lives):
        start, stop = offsets[a.var], offsets[a.var] + a.size
        assert start % ALIGNMENT == 0 and stop <= total
        for b in lives[:i]:
            if a.born <= b.dies and b.born <= a.dies and a.size and b.size:
                assert stop <= offsets[b.var] or offsets[b.var] + b.size <= start


def test_many_of_one_size_take_no_more_than_live_at_once():
    lives = [Lifetime(var(), 256, i, i + i % 7) for i in range(5000)]
    _, total = assign_offsets(lives)
    assert total <= 7 * 256


def test_one_after_the_other_share():
    chain = [Lifetime(var(), 256, i, i + 1) for i in range(10)]
    assert assign_offsets(chain)[1] == 512


# ---- lifetimes, by running the steps on marked memory


class Maker:
    """Random steps in which everything is written before it is read."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.inputs = [var(self.rng.randint(1, 60)) for _ in range(2)]

    def compute(self, live: list[Var], count: int | None = None) -> tuple[Library, Var]:
        reads = self.rng.sample(live, min(len(live), self.rng.randint(1, 3)))
        out = var(count or self.rng.randint(1, 200))
        return Library("f", reads, [out], [], 1.0), out

    def steps(self, live: list[Var], depth: int) -> tuple[list[Step], list[Var]]:
        """(steps, what they made that may be read afterwards)."""
        live, made, steps = list(live), [], []
        for _ in range(self.rng.randint(1, 7)):
            kind = self.rng.random()
            if kind < 0.6 or depth == 0:
                step, out = self.compute(live)
                steps.append(step)
                new = [out]
            elif kind < 0.7:
                source = self.rng.choice(live)
                new = [var(source.aval.shape[0])]
                steps.append(View(source, new[0]))
            elif kind < 0.8:
                step, index = self.compute(live, 1)
                outs = [var(self.rng.randint(1, 99))]
                cases = []
                for _ in range(2):
                    inner, known = self.steps(live, depth - 1)
                    inner.append(Library("f", [self.rng.choice(known)], outs, [], 1.0))
                    cases.append(inner)
                steps += [step, Choose(index, cases)]
                new = outs
            else:
                loop, new = self.loop(live, depth)
                steps += loop
            live += new
            made += new
        return steps, made

    def loop(self, live: list[Var], depth: int) -> tuple[list[Step], list[Var]]:
        states = []
        steps: list[Step] = []
        for _ in range(self.rng.randint(1, 3)):
            init = self.rng.choice(live)
            state = var(init.aval.shape[0])
            states.append(state)
            steps.append(Copy(init, state))
        body, made = self.steps([*live, *states], depth - 1)
        swaps = []
        for state in states:
            if self.rng.random() < 0.8:
                step, following = self.compute([*live, *states, *made], state.aval.shape[0])
                body.append(step)
                swaps.append(Swap(state, following))
        predicate = None
        if self.rng.random() < 0.4:
            predicate = var(1)
            steps.append(Library("f", [states[0]], [predicate], [], 1.0))
            body.append(Library("f", [states[0]], [predicate], [], 1.0))
        steps.append(Repeat([*body, *swaps], 3, predicate))
        finals = [var(s.aval.shape[0]) for s in states]
        steps += [View(s, f) for s, f in zip(states, finals)]
        return steps, finals


class Machine:
    """Runs steps on memory whose cells know which write they hold."""

    def __init__(self, root, offsets, total):
        self.root = root
        self.cells = [0] * total
        self.place = dict(offsets)
        self.mark: dict[Var, int] = {}
        self.writes = 0

    def cells_of(self, v):
        start = self.place[v]
        return range(start, start + v.aval.nbytes)

    def read(self, v):
        v = self.root(v)
        if v in self.place:
            held = {self.cells[i] for i in self.cells_of(v)}
            assert held == {self.mark[v]}, "the value was overwritten while it was needed"

    def write(self, v, mark=None):
        v = self.root(v)
        self.writes += 1
        if v in self.place:
            self.mark[v] = self.writes
            for i in self.cells_of(v):
                self.cells[i] = self.writes

    def run(self, steps, rng):
        for step in steps:
            if isinstance(step, Library):
                for v in step.reads:
                    self.read(v)
                for v in step.writes:
                    self.write(v)
                for v in step.reads:  # a kernel reads while it writes
                    if self.root(v) not in map(self.root, step.writes):
                        self.read(v)
            elif isinstance(step, Copy):
                self.read(step.source)
                self.write(step.target)
            elif isinstance(step, Swap):
                self.read(step.second)
                a, b = self.root(step.first), self.root(step.second)
                self.place[a], self.place[b] = self.place[b], self.place[a]
                self.mark[a], self.mark[b] = self.mark[b], self.mark.get(a, 0)
            elif isinstance(step, Repeat):
                if step.predicate is not None:
                    self.read(step.predicate)
                for _ in range(rng.randint(0, 3) if step.predicate is not None else step.count):
                    self.run(step.body, rng)
                    if step.predicate is not None:
                        self.read(step.predicate)
            elif isinstance(step, Choose):
                self.read(step.index)
                self.run(rng.choice(step.cases), rng)


@pytest.mark.parametrize("seed", range(250))
def test_values_survive_until_their_last_use(seed):
    maker = Maker(seed)
    steps, made = maker.steps(maker.inputs, depth=3)
    steps.append(Library("f", maker.rng.sample(made, min(4, len(made))), [var(1)], [], 1.0))
    views = {}

    def collect(block):
        for s in block:
            if isinstance(s, View):
                views[s.target] = s.source
            elif isinstance(s, Repeat):
                collect(s.body)
            elif isinstance(s, Choose):
                for case in s.cases:
                    collect(case)

    collect(steps)

    def root(v):
        while v in views:
            v = views[v]
        return v

    placed = dict.fromkeys(maker.inputs, 0)
    offsets, total = assign_offsets(Lifetimes(root, placed).of(steps))
    for trial in range(3):
        Machine(root, offsets, total).run(steps, random.Random(trial))


# ---- donation


def test_an_input_is_taken_over_after_its_last_use():
    x, y, out = var(), var(), var()
    assert assign_donations([x], {x: 1}, [OutputWrite(out, 2, False)], set()) == {out: x}
    assert assign_donations([x], {x: 2}, [OutputWrite(out, 2, True)], set()) == {out: x}
    assert assign_donations([x], {x: 2}, [OutputWrite(out, 2, False)], set()) == {}
    assert assign_donations([x], {x: 3}, [OutputWrite(out, 2, True)], set()) == {}
    assert assign_donations([x], {x: 1}, [OutputWrite(out, 2, True)], {x}) == {}
    other = var(4, np.dtype("int32"))
    assert assign_donations([other], {other: 1}, [OutputWrite(out, 2, False)], set()) == {out: other}
    assert assign_donations([other], {other: 2}, [OutputWrite(out, 2, True)], set()) == {}
    small = var(3)
    assert assign_donations([small], {}, [OutputWrite(out, 2, False)], set()) == {}
    outs = [OutputWrite(out, 2, False), OutputWrite(y, 2, False)]
    assert assign_donations([x], {}, outs, set()) == {out: x}


def pointer(x):
    return x.unsafe_buffer_pointer()


@pytest.mark.parametrize("count", [10, 5000, 1 << 19])
def test_donation_reuses_memory(count):
    f = jato.jit(lambda x: jnp.tanh(x) * 2, donate_argnums=0)
    x = jnp.arange(float(count)) + 0
    want = np.tanh(np.asarray(x)) * 2
    before = pointer(x)
    y = f(x)
    np.testing.assert_allclose(y, want, 1e-6)
    assert pointer(y) == before and x.is_deleted()
    with pytest.raises(RuntimeError, match="deleted|donated"):
        x + 1


@pytest.mark.parametrize(
    "name, function",
    [
        ("reverse", lambda x: x[::-1]),
        ("transpose", lambda x: x.reshape(64, 32).T.reshape(-1)),
        ("roll", lambda x: jnp.roll(x, 7)),
        ("cumsum", lambda x: jnp.cumsum(x)),
        ("softmax", lambda x: jnp.exp(x - x.max()) / jnp.exp(x - x.max()).sum()),
        ("normalized rows", lambda x: (x.reshape(32, 64) / x.reshape(32, 64).sum(1, keepdims=True)).ravel()),
        ("sorted", lambda x: jnp.sort(x)[::-1]),
        ("scatter", lambda x: x.at[::2].add(x[1::2])),
        ("gather", lambda x: x[(jnp.arange(2048) * 7) % 2048]),
        ("product", lambda x: (x.reshape(32, 64) @ x.reshape(64, 32)).sum() + x),
        ("stencil", lambda x: jnp.pad(x, 1)[:-2] + jnp.pad(x, 1)[2:]),
        ("two", lambda x: (x + 1, x * 2)),
        ("input too", lambda x: (x, x + 1)),
        ("reshaped input", lambda x: (x.reshape(2, -1), x + 1)),
        ("loop", lambda x: jato.lax.fori_loop(0, 5, lambda i, c: jnp.roll(c, 1) + x, x)),
        ("another type", lambda x: (x > 3, x.astype("int32"))),
    ],
)  # fmt: skip
def test_donation_never_breaks_results(name, function):
    x = np.linspace(-2, 2, 2048, dtype="float32")
    want = jato.jit(function)(x)
    for _ in range(2):
        got = jato.jit(function, donate_argnums=0)(jnp.asarray(x))
        for g, w in zip(jato.tree.leaves(got), jato.tree.leaves(want), strict=True):
            np.testing.assert_array_equal(g, w)


def test_donation_by_name_of_trees_and_several():
    f = jato.jit(lambda p, g: {k: p[k] - g[k] for k in p}, donate_argnames="p")
    p = {"a": jnp.arange(3000.0), "b": jnp.ones((50, 50)) * 2}
    g = {"a": jnp.ones(3000), "b": jnp.ones((50, 50))}
    places = {k: pointer(v) for k, v in p.items()}
    new = f(p, g)
    assert {k: pointer(v) for k, v in new.items()} == places
    np.testing.assert_array_equal(new["a"], np.arange(3000) - 1)
    assert not g["a"].is_deleted() and p["a"].is_deleted()
    assert f(p=new, g=g)["b"].shape == (50, 50)


def test_the_same_array_given_twice():
    f = jato.jit(lambda x, y: (x * 2 + y, y), donate_argnums=0)
    x = jnp.arange(1000.0) + 0
    first, second = f(x, x)
    np.testing.assert_array_equal(first, np.arange(1000) * 3)
    np.testing.assert_array_equal(second, np.arange(1000))


def test_shared_memory_is_not_taken_over():
    x = jnp.arange(1000.0) + 0
    view = x.reshape(10, 100)
    y = jato.jit(lambda x: x * 2, donate_argnums=0)(x)
    np.testing.assert_array_equal(view.reshape(-1), np.arange(1000))
    np.testing.assert_array_equal(y, np.arange(1000) * 2)
    as_numpy = np.asarray(y)
    z = jato.jit(lambda x: x + 1, donate_argnums=0)(y)
    np.testing.assert_array_equal(as_numpy, np.arange(1000) * 2)
    np.testing.assert_array_equal(z, np.arange(1000) * 2 + 1)


@pytest.mark.parametrize(
    "function, count",
    [
        (lambda x: jnp.tanh(x), 1),
        (lambda x: (x, x + 1, x - 1), 2),
        (lambda x: jnp.exp(x - x.max(1, keepdims=True)), 1),
    ],
)
def test_a_cached_call_allocates_nothing_but_its_results(function, count):
    f = jato.jit(function)
    x = jnp.ones((64, 64))
    jato.block_until_ready(f(x))
    before = jato._native.pool_stats()["allocations"]
    kept = jato.block_until_ready(f(x))
    assert jato._native.pool_stats()["allocations"] - before == count
    del kept


# ---- whole programs: constants, literals, aliases


def test_constants_of_all_kinds():
    big = np.arange(1000, dtype="float32")
    f = jato.jit(lambda x: (x + big, big, big[::2], 3.0, np.float32(2), jnp.asarray(big)))
    want = [2 + big, big, big[::2], 3.0, 2, big]
    for got, w in zip(f(2.0), want, strict=True):
        np.testing.assert_array_equal(got, w)
    big[...] = 0  # was copied when traced
    np.testing.assert_array_equal(f(2.0)[1], np.arange(1000))


def test_large_intermediates_share_memory():
    def f(x):
        for i in range(12):
            x = jnp.sort(x + i)  # a library routine in between: nothing fuses
        return x.sum()

    x = jnp.ones(1 << 16)
    text = jato.jit(f).lower(x).compile().as_text()
    arena = int(text.rsplit("arena=", 1)[1].split()[0])
    assert arena <= 4 * x.nbytes
