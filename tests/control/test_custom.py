"""custom_jvp, custom_vjp, custom_gradient, closure_convert, checkpoint, under every transform."""

import doctest

import jax
import numpy as np
import pytest
from reference_eval import as_call, close, ours, theirs

import jato
import jato.lax
from jato.compiler.pipeline import optimize
from jato.control import checkpoint as checkpoint_module
from jato.control import custom_jvp as custom_jvp_module
from jato.control import custom_vjp as custom_vjp_module
from jato.control.checkpoint import checkpoint, checkpoint_name, checkpoint_policies, name_p
from jato.control.closure_convert import closure_convert
from jato.control.custom_batching import custom_vmap
from jato.control.custom_jvp import custom_jvp
from jato.control.custom_vjp import custom_gradient, custom_vjp
from jato.core.staging import trace_to_graph
from jato.core.types import type_of
from jato.jit.api import jit
from jato.ops.contract import DOT_GENERAL
from jato.transforms.abstract_eval import make_jaxpr
from jato.transforms.grad import grad, hessian, jacrev, value_and_grad
from jato.transforms.jvp import jvp
from jato.transforms.vmap import vmap

f32 = np.float32
X = np.array([0.3, -1.2, 2.5], f32)
M = np.arange(6, dtype=f32).reshape(2, 3) / 4 - 0.6


def total(x):
    for _ in range(len(x.shape)):
        x = ours.reduce_sum(x, axes=(0,))
    return x


def scaled(factor, x):
    return ours.mul(ours.full(x.shape, factor, x.dtype), x)


@pytest.fixture(params=[False, True], ids=["eager", "call"])
def wrap(request):
    return as_call if request.param else (lambda f: f)


def make_cube():
    """x^3 with derivative 30 x^2, to be told from the true one."""

    @custom_jvp
    def cube(x):
        return ours.mul(ours.mul(x, x), x)

    @cube.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return cube(x), ours.mul(scaled(30, ours.mul(x, x)), t)

    return cube


class TestCustomJVP:
    def test_values_and_derivatives(self, wrap):
        cube = make_cube()
        f = lambda x: total(cube(x))
        close(cube(X), X**3, 1e-4)
        close(jvp(wrap(cube), (X,), (X,))[1], 30 * X**3, 1e-4)
        close(grad(wrap(f))(X), 30 * X**2, 1e-4)
        close(wrap(grad(wrap(f)))(X), 30 * X**2, 1e-4)
        close(hessian(wrap(f))(X), np.diag(60 * X), 1e-4)

    def test_under_vmap(self, wrap):
        cube = make_cube()
        close(vmap(wrap(cube))(X), X**3, 1e-4)
        close(grad(lambda x: total(vmap(wrap(cube))(x)))(X), 30 * X**2, 1e-4)
        close(vmap(grad(wrap(lambda x: total(cube(x)))))(M), 30 * M**2, 1e-4)
        close(wrap(vmap(vmap(grad(cube))))(M), 30 * M**2, 1e-4)

    def test_python_control_flow_runs_on_values(self):
        @custom_jvp
        def f(x):
            return ours.mul(x, x) if bool(ours.gt(x, f32(0))) else x

        f.defjvp(lambda p, t: (f(*p), t[0] if float(p[0]) > 0 else scaled(7, t[0])))
        assert float(grad(f)(f32(2))) == 1
        assert float(grad(f)(f32(-2))) == 7

    def test_nondiff_arguments(self, wrap):
        @custom_jvp
        def plain(power, x):
            return ours.mul(x, x)

        def apply(power, x):
            return ours.integer_pow(x, power)

        f = custom_jvp(apply, nondiff_argnums=(0,))
        f.defjvp(lambda power, p, t: (f(power, *p), scaled(power * 10, t[0])))
        close(grad(wrap(lambda x: total(f(3, x))))(X), np.full(3, 30, f32))
        by_name = custom_jvp(apply, nondiff_argnames=("power",))
        by_name.defjvp(lambda power, p, t: (by_name(power, *p), scaled(power, t[0])))
        close(grad(wrap(lambda x: total(by_name(3, x=x))))(X), np.full(3, 3, f32))

    def test_defjvps_and_pytrees(self, wrap):
        @custom_jvp
        def f(x, y):
            return {"p": ours.mul(x, y)}

        f.defjvps(
            lambda t, out, x, y: {"p": scaled(2, ours.mul(t, y))},
            lambda t, out, x, y: {"p": scaled(3, ours.mul(x, t))},
        )

        def g(x, y):
            return total(f(x, y)["p"])

        # sums of terms use `+`, which a higher layer supplies: one argument at a time
        f.defjvps(lambda t, out, x, y: {"p": scaled(2, ours.mul(t, y))}, None)
        close(grad(wrap(g), argnums=(0, 1))(X, X), (2 * X, 0 * X))

    def test_symbolic_zeros(self):
        seen = []

        @custom_jvp
        def f(x, y):
            return ours.mul(x, y)

        def rule(primals, tangents):
            seen.append([type(t).__name__ for t in tangents])
            return f(*primals), ours.mul(tangents[0], primals[1])

        f.defjvp(rule, symbolic_zeros=True)
        close(grad(lambda x: total(f(x, X)))(X), X)
        assert seen[0][1] == "SymbolicZero"

    def test_messages(self):
        @custom_jvp
        def f(x):
            return x

        with pytest.raises(AttributeError, match="custom_jvp function f has no derivative rule"):
            f(X)
        f.defjvp(lambda p, t: p[0])
        with pytest.raises(TypeError, match="rule of f must return .result, tangent"):
            grad(f)(f32(1))
        f.defjvp(lambda p, t: (p[0], (t[0], t[0])))
        with pytest.raises(TypeError, match="tangent of the result's structure"):
            grad(f)(f32(1))
        f.defjvp(lambda p, t: (p[0], ours.full((2,), 1.0, f32)))
        with pytest.raises(ValueError, match=r"tangent of the result: expected shape \(\)"):
            grad(f)(f32(1))
        f.defjvp(lambda p, t: (p[0], t[0]))
        with pytest.raises(TypeError, match="keyword-only"):
            g = custom_jvp(lambda *, k: k)
            g.defjvp(lambda p, t: (p, t))
            grad(lambda x: g(k=x))(f32(1))


def make_product():
    """x*y with cotangents ten times the true ones."""

    @custom_vjp
    def product(x, y):
        return ours.mul(x, y)

    def forward(x, y):
        return ours.mul(x, y), {"x": x, "y": y}

    def backward(kept, ct):
        return scaled(10, ours.mul(ct, kept["y"])), scaled(10, ours.mul(ct, kept["x"]))

    product.defvjp(forward, backward)
    return product


class TestCustomVJP:
    def test_values_and_derivatives(self, wrap):
        product = make_product()
        f = lambda x, y: total(product(x, y))
        close(product(X, X), X * X)
        close(grad(wrap(f), argnums=(0, 1))(X, 2 * X), (20 * X, 10 * X), 1e-4)
        close(wrap(grad(wrap(f)))(X, X), 10 * X, 1e-4)
        square = lambda x: total(product(x, x))
        # the rules themselves are differentiated: d/dx 20 x
        close(jacrev(grad(wrap(square)))(X), 20 * np.eye(3, dtype=f32), 1e-4)

    def test_under_vmap(self, wrap):
        product = make_product()
        f = lambda x, y: total(vmap(wrap(product), (0, None))(x, y))
        close(grad(f, argnums=(0, 1))(X, f32(2)), (np.full(3, 20, f32), 10 * X.sum()), 1e-4)
        inner = lambda x: total(product(x, x))
        close(vmap(grad(wrap(inner)))(M), 20 * M, 1e-4)
        close(wrap(vmap(vmap(grad(lambda x: product(x, x)))))(M), 20 * M, 1e-4)

    def test_forward_mode_is_refused(self, wrap):
        product = make_product()
        with pytest.raises(TypeError, match="forward-mode .* custom_vjp function product"):
            jvp(wrap(product), (X, X), (X, X))

    def test_none_nondiff_and_integers(self, wrap):
        def apply(mode, x, n):
            return ours.mul(x, x)

        f = custom_vjp(apply, nondiff_argnums=(0,))
        f.defvjp(
            lambda mode, x, n: (ours.mul(x, x), None),
            lambda mode, kept, ct: (scaled(len(mode), ct), None),
        )
        close(grad(wrap(lambda x: total(f("four", x, 3))))(X), np.full(3, 4, f32))

    def test_python_control_flow_runs_on_values(self):
        @custom_vjp
        def f(x):
            return x

        f.defvjp(
            lambda x: (x, None if float(x) > 0 else (x,)),
            lambda kept, ct: (ct if kept is None else scaled(5, ct),),
        )
        assert float(grad(f)(f32(1))) == 1
        assert float(grad(f)(f32(-1))) == 5

    def test_messages(self):
        @custom_vjp
        def f(x, y):
            return ours.mul(x, y)

        with pytest.raises(AttributeError, match="custom_vjp function f has no derivative rules"):
            f(X, X)
        run = lambda: grad(lambda x: total(f(x, X)))(X)
        f.defvjp(lambda x, y: x, lambda kept, ct: (ct, ct))
        with pytest.raises(TypeError, match=r"forward rule .* must return \(result, residuals\)"):
            run()
        f.defvjp(lambda x, y: (x, None), lambda kept, ct: (ct,))
        with pytest.raises(TypeError, match="one cotangent for each of its 2 .* got a tuple of 1"):
            run()
        f.defvjp(lambda x, y: (x, None), lambda kept, ct: ((ct, ct), ct))
        with pytest.raises(TypeError, match="cotangent of argument x|cotangent of x"):
            run()
        f.defvjp(lambda x, y: (x, None), lambda kept, ct: (f32(1), ct))
        with pytest.raises(ValueError, match=r"cotangent of x: expected shape \(3,\)"):
            run()

    def test_custom_gradient(self, wrap):
        @custom_gradient
        def f(x):
            y = ours.sin(x)
            return ours.mul(x, x), lambda ct: (ours.mul(ct, y),)

        close(f(X), X * X)
        close(grad(wrap(lambda x: total(f(x))))(X), np.sin(X))

    def test_closure_convert(self):
        def f(x):
            converted, captured = closure_convert(lambda y: ours.mul(x, y), X)
            assert len(captured) == 1
            return total(converted(X, *captured))

        close(grad(f)(X), X)

    def test_keyword_only_arguments(self):
        def f(x, *, times=2.0):
            return times * x

        g = custom_vjp(f)
        g.defvjp(lambda x: (g(x), None), lambda _, ct: (10 * ct,))
        close(grad(g)(f32(1)), f32(10))
        with pytest.raises(TypeError, match=r"keyword-only arguments \(times\) are not possible"):
            grad(lambda x: g(x, times=3.0))(f32(1))

    def test_symbolic_zeros_tell_what_is_differentiated(self):
        seen = []
        f = custom_vjp(ours.mul)

        def forward(x, y):
            seen.append((x.perturbed, y.perturbed))
            return f(x.value, y.value), (x.value, y.value)

        f.defvjp(
            forward, lambda r, ct: (ours.mul(ct, r[1]), ours.mul(ct, r[0])), symbolic_zeros=True
        )
        of_vector = lambda x, y: total(vmap(f)(x, y))
        for argnums, flags in ((0, (True, False)), (1, (False, True)), ((0, 1), (True, True))):
            for run in (grad(f, argnums), jit(grad(f, argnums)), grad(jit(f), argnums)):
                run(f32(2), f32(3))
                assert seen.pop() == flags
            grad(of_vector, argnums)(X, X)
            assert seen.pop() == flags
            vmap(grad(f, argnums))(X, X)
            assert seen.pop() == flags


class TestCheckpoint:
    @staticmethod
    def function(lax):
        def f(x):
            y = lax.sin(lax.mul(x, x))
            return lax.reduce_sum(lax.mul(lax.exp(y), y), axes=(0,))

        return f

    def test_derivatives(self, wrap):
        mine, oracle = checkpoint(self.function(ours)), self.function(theirs)
        close(mine(X), oracle(X))
        close(grad(wrap(mine))(X), jax.grad(oracle)(X), 1e-4)
        close(wrap(hessian(wrap(mine)))(X), jax.hessian(oracle)(X), 1e-3)
        close(vmap(grad(wrap(mine)))(M), jax.vmap(jax.grad(oracle))(M), 1e-4)
        close(jvp(wrap(mine), (X,), (X,)), jax.jvp(oracle, (X,), (X,)), 1e-4)

    def recomputed(self, policy):
        text = str(make_jaxpr(grad(checkpoint(self.function(ours), policy=policy)))(X))
        _forward, reverse = text.split("checkpoint[")[1:]
        return reverse.count(" sin "), reverse.count(" exp ")

    def test_policies(self):
        assert self.recomputed(None) == (1, 1)
        assert self.recomputed(checkpoint_policies.nothing_saveable) == (1, 1)
        assert self.recomputed(checkpoint_policies.everything_saveable) == (0, 0)
        assert self.recomputed(checkpoint_policies.dots_saveable) == (1, 1)

    def test_names(self):
        def f(x):
            y = checkpoint_name(ours.sin(x), "kept")
            return total(ours.mul(ours.exp(y), y))

        expected = jax.grad(lambda x: (jax.numpy.exp(jax.numpy.sin(x)) * jax.numpy.sin(x)).sum())(X)
        for policy, sines in (
            (checkpoint_policies.save_only_these_names("kept"), 0),
            (checkpoint_policies.save_only_these_names("other"), 1),
            (checkpoint_policies.save_any_names_but_these("kept"), 1),
            (checkpoint_policies.save_anything_except_these_names("kept"), 0),
        ):
            g = grad(checkpoint(f, policy=policy))
            close(g(X), expected, 1e-4)
            reverse = str(make_jaxpr(g)(X)).split("checkpoint[")[2]
            assert reverse.count(" sin ") == sines

    @pytest.mark.parametrize(("prevent_cse", "sines"), [(True, 2), (False, 1), ((False, True), 2)])
    def test_prevent_cse(self, prevent_cse, sines):
        """Where both passes are one program, only barriers keep the recomputed values apart."""
        f = checkpoint(lambda x, y: total(ours.exp(ours.mul(ours.sin(x), y))), prevent_cse=prevent_cse)

        def both(x, y):
            value, gradient = value_and_grad(f)(x, y)
            return [value, gradient]

        graph = trace_to_graph(both, [type_of(X)] * 2, "g")
        names = [node.primitive.name for node in optimize(graph).nodes]
        assert names.count("sin") == sines
        close(jit(grad(f))(X, X), np.exp(np.sin(X) * X) * np.cos(X) * X, 1e-4)

    def test_policies_see_into_jitted_functions(self):
        sine = jit(jit(lambda x: checkpoint_name(ours.sin(x), "kept")))

        def f(x):
            y = sine(x)
            return total(ours.mul(ours.exp(y), y))

        expected = jax.grad(lambda x: (jax.numpy.exp(jax.numpy.sin(x)) * jax.numpy.sin(x)).sum())(X)
        for name, sines in (("kept", 0), ("other", 1)):
            g = grad(checkpoint(f, policy=checkpoint_policies.save_only_these_names(name)))
            close(g(X), expected, 1e-4)
            reverse = str(make_jaxpr(g)(X)).split("checkpoint[")[2]
            assert reverse.count(" sin ") == sines

    @pytest.mark.parametrize("reverse", [False, True])
    @pytest.mark.parametrize(
        ("policy", "products"),
        [
            (None, 3),
            (checkpoint_policies.dots_saveable, 2),
            (checkpoint_policies.dots_with_no_batch_dims_saveable, 2),
            (checkpoint_policies.save_only_these_names("other"), 3),
            (checkpoint_policies.everything_saveable, 2),
        ],
    )
    def test_policies_see_into_scans(self, policy, products, reverse):
        """One product forwards, one backwards, and one again unless it is stored."""
        w = np.linspace(-1, 1, 9, dtype=f32).reshape(3, 3)
        xs = np.linspace(0, 1, 12, dtype=f32).reshape(4, 3)

        def of(lax, save):
            def body(c, x):
                y = lax.dot(lax.sin(lax.add(c, x)), w)
                return y, lax.sin(y)

            def f(c, xs):
                carry, ys = save(lambda c, xs: lax.scan(body, c, xs, reverse=reverse))(c, xs)
                return lax.add(carry.sum(), lax.mul(ys, ys).sum())

            return f

        mine = grad(of(jato.lax, lambda f: checkpoint(f, policy=policy)), (0, 1))
        close(mine(X, xs), jax.grad(of(jax.lax, lambda f: f), (0, 1))(X, xs), 1e-4)
        close(jit(mine)(X, xs), jax.grad(of(jax.lax, lambda f: f), (0, 1))(X, xs), 1e-4)
        assert str(make_jaxpr(mine)(X, xs)).count("dot_general") == products

    def test_offloading_policies_store(self):
        policies = checkpoint_policies
        chosen = policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"], names_which_can_be_offloaded=["kept"],
            offload_src="device", offload_dst="pinned_host",
        )  # fmt: skip
        assert chosen(name_p, name="kept") and not chosen(name_p, name="b")
        dots = policies.offload_dot_with_no_batch_dims("device", "pinned_host")
        assert dots(DOT_GENERAL, dimension_numbers=(((1,), (0,)), ((), ())))
        assert not dots(DOT_GENERAL, dimension_numbers=(((2,), (1,)), ((0,), (0,))))
        with pytest.raises(ValueError, match="target of offloading must be one of"):
            policies.offload_dot_with_no_batch_dims("device", "disk")
        with pytest.raises(ValueError, match=r"\['a'\] cannot be both saved and offloaded"):
            policies.save_and_offload_only_these_names(
                names_which_can_be_saved=["a"], names_which_can_be_offloaded=["a"],
                offload_src="device", offload_dst="pinned_host",
            )  # fmt: skip

    def test_policies_of_words(self):
        """A policy may answer with the words of jax.ad_checkpoint."""
        words = jato.ad_checkpoint
        answers = {"sin": words.Saveable, "exp": words.Offloadable("device", "pinned_host")}
        policy = lambda primitive, *_, **__: answers.get(primitive.name, words.Recompute)
        assert self.recomputed(policy) == (0, 0)
        assert self.recomputed(lambda *_, **__: words.Recompute) == (1, 1)

    def test_printed_residuals(self, capsys):
        f = lambda x, y: total(ours.mul(ours.sin(x), y))
        jato.ad_checkpoint.print_saved_residuals(f, X, X[:3])
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("f32[3] from the argument") and len(lines) >= 2
        jato.ad_checkpoint.print_saved_residuals(checkpoint(f), X, X)
        assert "computed" not in capsys.readouterr().out

    def test_static_names(self):
        f = checkpoint(lambda x, n: ours.integer_pow(x, n), static_argnames="n")
        close(grad(lambda x: f(x, n=3))(f32(2)), f32(12))

    def test_messages(self):
        f = lambda x: x
        with pytest.raises(TypeError, match="'prevent_cse': expected a bool or a tuple of bools, got 3"):
            checkpoint(f, prevent_cse=3)
        with pytest.raises(ValueError, match="'prevent_cse' has 2 entries, but the call has 1"):
            checkpoint(f, prevent_cse=(True, False))(f32(1))
        with pytest.raises(TypeError, match="'policy': expected a function"):
            checkpoint(f, policy=3)
        with pytest.raises(ValueError, match=r"static_argnums are \(5,\), but the call has 1"):
            checkpoint(f, static_argnums=5)(f32(1))

    def test_static_arguments_and_aux(self, wrap):
        f = checkpoint(lambda x, n: (total(ours.integer_pow(x, n)), x), static_argnums=1)
        gradient, aux = grad(wrap(lambda x: f(x, 3)), has_aux=True)(X)
        close(gradient, 3 * X**2, 1e-4)
        close(aux, X)

    def test_captured_values(self):
        f = lambda x: total(checkpoint(lambda y: ours.mul(ours.sin(x), y))(x))
        close(grad(f)(X), np.cos(X) * X + np.sin(X), 1e-4)


@custom_jvp
def half(x):
    return ours.div(x, f32(2))


half.defjvp(lambda primals, tangents: (half(*primals), half(*tangents)))


@pytest.mark.parametrize(
    "linear",
    [
        half,
        jit(half),
        checkpoint(half),
        lambda t: jato.lax.cond(t.ndim == 0, half, jato.lax.neg, t),
        lambda t: jato.lax.fori_loop(0, 1, lambda i, c: half(c), t),
        lambda t: jato.lax.scan(lambda c, _: (half(c), None), t, None, length=1)[0],
        custom_vmap(half),
    ],
)
def test_linear_functions_of_tangents(linear, wrap):
    """A rule may call functions with rules of their own on a tangent; reverse mode transposes them."""
    f = custom_jvp(lambda x: ours.mul(x, f32(3)))
    f.defjvp(lambda primals, tangents: (f(*primals), primals[0] * linear(*tangents)))
    assert float(wrap(grad(f))(f32(4))) == 2
    assert float(grad(grad(f))(f32(4))) == 0.5
    if not isinstance(linear, custom_vmap):
        close(wrap(vmap(grad(f)))(X), X / 2, 1e-6)


def test_linear_functions_with_a_backward_rule_are_refused():
    f = custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, ct: (ct,))
    with pytest.raises(NotImplementedError, match="custom_vjp function .* applied to a tangent"):
        jato.linear_transpose(f, f32(1))(f32(1))


@pytest.mark.parametrize("module", [checkpoint_module, custom_jvp_module, custom_vjp_module])
def test_doctests(module):
    if not hasattr(pytest.importorskip("jato.numpy"), "ones"):
        pytest.skip("jato.numpy is not there yet")
    assert doctest.testmod(module).failed == 0
