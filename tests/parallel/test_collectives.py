"""Collectives under vmap with named axes, against JAX."""

import jax
import jax.numpy as oracle_np
import numpy as np
import pytest

import jato
import jato.numpy as jnp

RNG = np.random.default_rng(3)
X = RNG.normal(size=(4, 4, 8)).astype(np.float32)
GROUPS = [[0, 3], [1, 2]]

CALLS = {
    "psum": lambda lax, x: lax.psum(x, "i"),
    "psum_groups": lambda lax, x: lax.psum(x, "i", axis_index_groups=GROUPS),
    "pmean": lambda lax, x: lax.pmean(x, "i"),
    "pmax": lambda lax, x: lax.pmax(x, "i"),
    "pmin": lambda lax, x: lax.pmin(x, "i"),
    "all_gather": lambda lax, x: lax.all_gather(x, "i"),
    "all_gather_1": lambda lax, x: lax.all_gather(x, "i", axis=1),
    "all_gather_tiled": lambda lax, x: lax.all_gather(x, "i", axis=1, tiled=True),
    "all_gather_groups": lambda lax, x: lax.all_gather(x, "i", axis_index_groups=GROUPS),
    "psum_scatter": lambda lax, x: lax.psum_scatter(x, "i"),
    "psum_scatter_tiled": lambda lax, x: lax.psum_scatter(
        x, "i", scatter_dimension=1, tiled=True
    ),
    "all_to_all": lambda lax, x: lax.all_to_all(x, "i", 0, 1),
    "all_to_all_tiled": lambda lax, x: lax.all_to_all(x, "i", 1, 0, tiled=True),
    "ppermute": lambda lax, x: lax.ppermute(x, "i", [(0, 2), (1, 0), (2, 3), (3, 1)]),
    "ppermute_ring": lambda lax, x: lax.ppermute(x, "i", [(i, (i + 1) % 4) for i in range(4)]),
    "pshuffle": lambda lax, x: lax.pshuffle(x, "i", [2, 0, 3, 1]),
    "pswapaxes": lambda lax, x: lax.pswapaxes(x, "i", 0),
    "axis_index": lambda lax, x: x * lax.axis_index("i"),
    "axis_size": lambda lax, x: x * lax.axis_size("i") + lax.psum(1, "i"),
}
# JAX 0.10 has no batching rule for these with groups, nor a derivative for these
WITHOUT_GROUPS = [n for n in CALLS if not n.endswith("groups")]
DIFFERENTIABLE = [n for n in WITHOUT_GROUPS if n not in ("pmax", "pmin")]


def close(found, expected):
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("name", WITHOUT_GROUPS)
def test_value(name):
    f = CALLS[name]
    expected = jax.vmap(lambda x: f(jax.lax, x), axis_name="i")(X)
    close(jato.vmap(lambda x: f(jato.lax, x), axis_name="i")(X), expected)
    close(jato.jit(jato.vmap(lambda x: f(jato.lax, x), axis_name="i"))(X), expected)
    # jit inside, and mapped along another axis
    expected = jax.vmap(lambda x: f(jax.lax, x), axis_name="i", in_axes=1)(X)
    close(jato.vmap(jato.jit(lambda x: f(jato.lax, x)), axis_name="i", in_axes=1)(X), expected)


# JAX fails for all_to_all of a value that no member maps
@pytest.mark.parametrize("name", [n for n in WITHOUT_GROUPS if n[:5] not in ("all_t", "pswap")])
def test_value_that_no_member_maps(name):
    f = CALLS[name]
    run = lambda m, x: m.vmap(lambda i: f(m.lax, x), axis_name="i")(np.arange(4))  # noqa: E731
    close(run(jato, X[0]), run(jax, X[0]))


@pytest.mark.parametrize("name", WITHOUT_GROUPS)
@pytest.mark.parametrize("order", ["inside", "outside"])
def test_inside_and_outside_another_axis(name, order):
    f = CALLS[name]
    many = np.stack([X, X[::-1] * 2])

    def run(module, x):
        one = lambda x: f(module.lax, x)  # noqa: E731
        if order == "outside":
            return module.vmap(module.vmap(one, axis_name="j"), axis_name="i", in_axes=1)(x)
        return module.vmap(module.vmap(one, axis_name="i"), axis_name="j")(x)

    close(run(jato, many), run(jax, many))


@pytest.mark.parametrize("name", [n for n in CALLS if n not in ("pmax", "pmin", "axis_size")])
def test_transpose(name):
    """<A x, y> = <x, A^T y> over all members."""
    f = CALLS[name]

    def both(x, seed):
        y, pullback = jato.vjp(lambda x: f(jato.lax, x), x)
        ct = jnp.cos(seed + jnp.arange(y.size, dtype=np.float32).reshape(y.shape))
        return jnp.sum(y * ct), jnp.sum(pullback(ct)[0] * x)

    left, right = jato.vmap(both, axis_name="i")(X, np.arange(4, dtype=np.float32))
    np.testing.assert_allclose(np.sum(np.asarray(left)), np.sum(np.asarray(right)), rtol=1e-4)


# JAX's transpose of the untiled all_to_all is wrong under vmap
@pytest.mark.parametrize("name", [n for n in DIFFERENTIABLE if n != "all_to_all"])
def test_gradient_inside(name):
    f = CALLS[name]
    w = RNG.normal(size=(64,)).astype(np.float32)

    def run(module, np_):
        def loss(x):
            y = f(module.lax, np_.sin(x)).ravel()
            total = (y * w[: y.size] if y.size <= 64 else y.reshape(-1, 64) @ w).sum()
            return total * (1 + module.lax.axis_index("i"))

        return module.vmap(module.grad(loss), axis_name="i")(X)

    close(run(jato, jnp), run(jax, oracle_np))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient_outside(name):
    f = CALLS[name]

    def run(module, np_):
        mapped = module.vmap(lambda x: f(module.lax, np_.sin(x)), axis_name="i")

        def loss(x):
            y = mapped(x)
            return (y * np_.cos(np_.arange(y.size, dtype=np.float32).reshape(y.shape))).sum()

        return module.grad(loss)(X), module.jvp(loss, (X,), (X + 1,))[1]

    for found, expected in zip(run(jato, jnp), run(jax, oracle_np), strict=True):
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=2e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["psum", "pmax", "pmin"])
def test_reduction_by_groups(name):
    function = getattr(jato.lax, name)
    reduce = {"psum": np.sum, "pmax": np.max, "pmin": np.min}[name]
    for groups in (GROUPS, [[2], [0, 1, 3]]):
        found = jato.vmap(lambda x, g=groups: function(x, "i", axis_index_groups=g), axis_name="i")(X)
        for group in groups:
            for member in group:
                close(found[member], reduce(X[group], axis=0))


def test_exchanges_by_groups():
    gathered = jato.vmap(lambda x: CALLS["all_gather_groups"](jato.lax, x), axis_name="i")(X)
    x = X[:, :2]
    swapped = jato.vmap(
        lambda x: jato.lax.all_to_all(x, "i", 0, 1, axis_index_groups=GROUPS), axis_name="i"
    )(x)
    scattered = jato.vmap(
        lambda x: jato.lax.psum_scatter(x, "i", axis_index_groups=GROUPS), axis_name="i"
    )(x)
    for group in GROUPS:
        for place, member in enumerate(group):
            close(gathered[member], X[group])
            close(scattered[member], x[group, place].sum(0))
            close(swapped[member], x[group, place].T)
    mean = jato.vmap(lambda x: jato.lax.pmean(x, "i", axis_index_groups=GROUPS), axis_name="i")(X)
    close(mean[0], X[[0, 3]].mean(0))


@pytest.mark.parametrize("name", ["pmax", "pmin"])
def test_derivative_of_extremes(name):
    """JAX has none; the members that have the extreme share it."""
    f = getattr(jato.lax, name)
    x = np.array([1.0, 3.0, 3.0, 0.5], np.float32)
    out, tangent = jato.jvp(jato.vmap(lambda x: f(x, "i"), axis_name="i"), (x,), (x * 10,))
    close(out, np.full(4, x.max() if name == "pmax" else x.min()))
    close(tangent, 10 * np.asarray(out))
    inside = jato.vmap(jato.grad(lambda x: f(x, "i")), axis_name="i")(x)
    close(inside, [0, 2, 2, 0] if name == "pmax" else [0, 0, 0, 4])


def test_permutation_of_some():
    f = jato.vmap(lambda x: jato.lax.ppermute(x, "i", [(0, 2), (3, 1)]), axis_name="i")
    zero = np.zeros_like(X[0])
    close(f(X), np.stack([zero, X[3], X[0], zero]))
    close(jato.grad(lambda x: (f(x) * X).sum())(X), np.stack([X[2], zero, zero, X[1]]))


def test_pbroadcast():
    for source in (0, 3):
        f = lambda x, s=source: jato.lax.pbroadcast(x, "i", s)  # noqa: E731
        close(jato.vmap(f, axis_name="i")(X), np.broadcast_to(X[source], X.shape))
        close(jato.vmap(lambda x, f=f: f(2.5), axis_name="i")(X), np.full(4, 2.5))
        grad = jato.grad(lambda x, f=f: (jato.vmap(f, axis_name="i")(x) * X).sum())(X)
        expected = np.zeros_like(X)
        expected[source] = X.sum(0)
        close(grad, expected)
        inside = jato.vmap(jato.grad(lambda x, f=f: f(x).sum()), axis_name="i")(X)
        close(inside, np.where(np.arange(4)[:, None, None] == source, 4.0, 0.0) * np.ones_like(X))


def test_several_names():
    def run(module):
        lax = module.lax

        def f(x):
            both = ("i", "j")
            return (
                lax.psum(x, both), lax.pmax(x, both), lax.axis_index(both), lax.axis_size(both),
                lax.psum(x, ("i", 0)), lax.pmean(x, ("j", "i")), lax.psum(lax.axis_index("j"), "i"),
            )  # fmt: skip

        return module.vmap(module.vmap(f, axis_name="j"), axis_name="i")(X.reshape(4, 4, 2, 4))

    for found, expected in zip(run(jato), run(jax), strict=True):
        assert np.asarray(found).dtype == np.asarray(expected).dtype
        close(found, expected)


def test_gather_over_several_names():
    x = RNG.normal(size=(2, 3, 4, 5)).astype(np.float32)

    def gathered(**options):
        f = lambda x: jato.lax.all_gather(x, ("i", "j"), **options)  # noqa: E731
        return jato.vmap(jato.vmap(f, axis_name="j"), axis_name="i")(x)

    flat = x.reshape(6, 4, 5)
    close(gathered(), np.broadcast_to(flat, (2, 3, 6, 4, 5)))
    tiled = np.concatenate(list(flat), axis=1)
    close(gathered(axis=1, tiled=True), np.broadcast_to(tiled, (2, 3, 4, 30)))


def test_exchange_of_a_value_that_no_member_maps():
    f = lambda i: jato.lax.all_to_all(X[0], "i", 0, 1)  # noqa: E731
    found = jato.vmap(f, axis_name="i")(np.arange(4))
    close(found, np.broadcast_to(X[0][:, :, None], (4, 8, 4)))


def test_scatter_over_several_names():
    x = RNG.normal(size=(2, 3, 6, 5)).astype(np.float32)
    f = lambda x: jato.lax.psum_scatter(x, ("i", "j"))  # noqa: E731
    found = jato.vmap(jato.vmap(f, axis_name="j"), axis_name="i")(x)
    close(found, x.sum((0, 1)).reshape(2, 3, 5))


def test_dtypes_and_trees():
    def run(module):
        def f(x):
            tree = {"a": x > 0, "b": (x * 3).astype(np.int32), "c": 2, "d": 1.5, "e": True}
            return module.lax.psum(tree, "i"), module.lax.pmean(tree, "i")

        return module.vmap(f, axis_name="i")(X[0, 0])

    found, expected = jax.tree_util.tree_leaves(run(jato)), jax.tree_util.tree_leaves(run(jax))
    for x, y in zip(found, expected, strict=True):
        assert np.asarray(x).dtype == np.asarray(y).dtype
        close(x, y)


def test_size_is_a_python_number():
    seen = []
    jato.vmap(lambda x: seen.append((jato.lax.psum(1, "i"), jato.lax.axis_size("i"))) or x, axis_name="i")(X)
    assert seen == [(4, 4)]
    assert all(type(n) is int for n in seen[0])


def test_loops_and_branches():
    def run(module, np_):
        lax = module.lax

        def scanned(x):
            def step(carry, row):
                carry = np_.tanh(carry + lax.pmean(row * carry, "i"))
                return carry, lax.psum(carry, "i")

            return lax.scan(step, x[0], x)

        def counted(x):
            return lax.fori_loop(0, 3, lambda n, c: c / (1 + lax.psum(c * c, "i")) + n, x)

        def until(x):
            # members stop together because the condition is about all of them
            return lax.while_loop(
                lambda c: lax.pmax(np_.max(c), "i") < 50.0, lambda c: c * 2 + lax.pmin(c, "i") ** 2, x
            )

        def branched(x):
            all_positive = lax.psum(x.sum(), "i") > 0
            return lax.cond(all_positive, lambda x: lax.psum(x, "i"), lambda x: x - lax.pmean(x, "i"), x)

        def loss(x):
            return np_.sum(module.vmap(scanned, axis_name="i")(x)[1] ** 2)

        mapped = [module.vmap(f, axis_name="i")(X) for f in (scanned, counted, until, branched)]
        mapped.append(module.vmap(branched, axis_name="i")(-X))
        return [*mapped, module.grad(loss)(X), module.jit(module.grad(loss))(X)]

    found, expected = run(jato, jnp), run(jax, oracle_np)
    for x, y in zip(jax.tree_util.tree_leaves(found), jax.tree_util.tree_leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=3e-4, atol=3e-4)


def test_collective_of_unmapped_values_in_a_loop():
    def f(x):
        return jato.lax.fori_loop(0, 2, lambda n, c: jato.lax.psum(c, "i"), jnp.float32(1.0)) + x

    close(jato.vmap(f, axis_name="i")(jnp.zeros(3)), np.full(3, 9.0))


def test_custom_rules_and_checkpoint():
    def run(module, np_):
        @module.custom_vjp
        def f(x):
            return module.lax.psum(x, "i")

        f.defvjp(lambda x: (f(x), x), lambda x, ct: (module.lax.pmean(ct * x, "i"),))

        def loss(x):
            return module.checkpoint(lambda x: np_.sum(f(np_.sin(x)) ** 2))(x)

        return module.vmap(module.grad(loss), axis_name="i")(X)

    close(run(jato, jnp), run(jax, oracle_np))


def test_one_jitted_function_under_axes_of_two_sizes():
    f = jato.jit(lambda x: x * 0 + jato.lax.psum(1, "i") * 10 + jato.lax.axis_size("i"))
    close(jato.vmap(f, axis_name="i")(jnp.zeros(3)), np.full(3, 33.0))
    close(jato.vmap(f, axis_name="i")(jnp.zeros(5)), np.full(5, 55.0))


def test_errors():
    vmap = lambda f, x=X: jato.vmap(f, axis_name="i")(x)  # noqa: E731
    lax = jato.lax
    with pytest.raises(NameError, match="psum: unbound axis name: 'q'.*known here are 'i'"):
        vmap(lambda x: lax.psum(x, "q"))
    for f in (lax.psum, lax.all_gather, lax.pmean):
        with pytest.raises(NameError, match="unbound axis name: 'i'.*No axis has a name"):
            f(jnp.ones(2), "i")
    with pytest.raises(NameError, match="axis_index"):
        lax.axis_index("i")
    with pytest.raises(NameError, match="unbound"):
        jato.jit(lambda x: lax.psum(x, "i"))(1.0)
    with pytest.raises(ValueError, match=r"psum_scatter: axis scatter_dimension=1.*4 elements.*tiled"):
        vmap(lambda x: lax.psum_scatter(x, "i", scatter_dimension=1))
    with pytest.raises(ValueError, match="all_to_all: axis split_axis=0.*a multiple of 4"):
        vmap(lambda x: lax.all_to_all(x[:3], "i", 0, 0, tiled=True))
    with pytest.raises(ValueError, match="ppermute: each destination"):
        vmap(lambda x: lax.ppermute(x, "i", [(0, 1), (2, 1)]))
    with pytest.raises(ValueError, match="pshuffle: perm must be a permutation"):
        vmap(lambda x: lax.pshuffle(x, "i", [0, 0, 1, 2]))
    with pytest.raises(ValueError, match="axis_index_groups must name each of the 4 members once"):
        vmap(lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1]]))
    with pytest.raises(ValueError, match="of equal size"):
        vmap(lambda x: lax.all_gather(x, "i", axis_index_groups=[[0], [1, 2, 3]]))
    with pytest.raises(ValueError, match="pbroadcast: source"):
        vmap(lambda x: lax.pbroadcast(x, "i", 4))
    with pytest.raises(TypeError, match="psum: argument x"):
        vmap(lambda x: lax.psum("text", "i"))
