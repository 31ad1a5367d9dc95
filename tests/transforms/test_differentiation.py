"""jvp, vjp, grad, linearize, Jacobians and nestings of them, against JAX on the same functions."""

import doctest

import jax
import numpy as np
import pytest
from reference_eval import as_call, close, ours, theirs

import jato
from jato.base import dtypes
from jato.base.errors import UnexpectedTracerError
from jato.transforms.abstract_eval import make_jaxpr
from jato.transforms.grad import grad, hessian, jacfwd, jacrev, value_and_grad
from jato.transforms.jvp import jvp
from jato.transforms.linearize import linearize, vjp
from jato.transforms.transpose import linear_transpose
from jato.transforms.vmap import vmap

f32 = np.float32
X = np.array([0.3, -1.2, 2.5], f32)
Y = np.array([1.5, 0.7, -0.4], f32)
M = np.arange(6, dtype=f32).reshape(2, 3) / 4 - 0.6


def total(lax, x):
    for axis in reversed(range(len(x.shape))):
        x = lax.reduce_sum(x, axes=(axis,))
    return x


def polynomial(lax, x):
    return total(lax, lax.add(lax.mul(lax.mul(x, x), x), lax.sin(x)))


def product(lax, x):
    y = lax.mul(lax.exp(x), lax.cos(x))
    z = lax.div(y, lax.add(lax.mul(x, x), lax.full(x.shape, 1.0, x.dtype)))
    return total(lax, lax.mul(z, y))


def structural(lax, x):
    y = lax.reshape(x, (3, 1))
    z = lax.mul(lax.broadcast_in_dim(y, (3, 2), (0, 1)), lax.full((3, 2), 2.0, x.dtype))
    w = lax.transpose(lax.rev(z, (0,)), (1, 0))
    w = lax.pad(lax.slice(w, (0, 1), (2, 3)), f32(0), ((1, 1, 0), (0, 0, 1)))
    return total(lax, lax.mul(w, lax.sin(w)))


def branches(lax, x):
    y = lax.select_n(lax.gt(x, lax.full(x.shape, 0.0, x.dtype)), lax.sin(x), lax.mul(x, x))
    return total(lax, lax.max(y, lax.full(x.shape, 0.1, x.dtype)))


FUNCTIONS = [polynomial, product, structural, branches]


@pytest.fixture(params=FUNCTIONS, ids=lambda f: f.__name__)
def pair(request):
    return (lambda x: request.param(ours, x)), (lambda x: request.param(theirs, x))


@pytest.mark.parametrize("staged", [False, True], ids=["eager", "call"])
class TestAgainstJax:
    def test_jvp(self, pair, staged):
        mine, oracle = pair
        mine = as_call(mine) if staged else mine
        close(jvp(mine, (X,), (Y,)), jax.jvp(oracle, (X,), (Y,)))

    def test_grad(self, pair, staged):
        mine, oracle = pair
        mine = as_call(mine) if staged else mine
        close(grad(mine)(X), jax.grad(oracle)(X))
        close(as_call(grad(mine))(X), jax.grad(oracle)(X))

    def test_hessian(self, pair, staged):
        mine, oracle = pair
        mine = as_call(mine) if staged else mine
        expected = jax.hessian(oracle)(X)
        close(hessian(mine)(X), expected, 1e-4)
        close(jacrev(jacrev(mine))(X), expected, 1e-4)
        close(jacfwd(jacfwd(mine))(X), expected, 1e-4)
        close(jacrev(jacfwd(mine))(X), expected, 1e-4)

    def test_vmap_of_grad_and_grad_of_vmap(self, pair, staged):
        mine, oracle = pair
        mine = as_call(mine) if staged else mine
        close(vmap(grad(mine))(M), jax.vmap(jax.grad(oracle))(M))
        close(
            grad(lambda m: total(ours, vmap(mine)(m)))(M),
            jax.grad(lambda m: total(theirs, jax.vmap(oracle)(m)))(M),
        )

    def test_linearize_and_vjp(self, pair, staged):
        mine, oracle = pair
        mine = as_call(mine) if staged else mine
        out, push = linearize(mine, X)
        close(out, oracle(X))
        for direction in (Y, X):
            close(push(direction), jax.jvp(oracle, (X,), (direction,))[1])
        out, pull = vjp(mine, X)
        close(pull(f32(2)), jax.vjp(oracle, X)[1](f32(2)))


def test_third_derivative():
    def f(lax):
        return lambda x: lax.mul(lax.sin(x), lax.exp(x))

    mine, oracle = f(ours), f(theirs)
    for _ in range(3):
        mine, oracle = grad(mine), jax.grad(oracle)
    close(mine(0.7), oracle(0.7))


def test_perturbation_confusion():
    # d/dx [x * d/dy (x + y)] = 1, not 2
    f = lambda x: ours.mul(x, grad(lambda y: ours.add(x, y))(f32(1)))
    assert float(grad(f)(f32(1))) == 1


def test_pytrees_argnums_and_aux():
    def f(params, x, scale):
        y = ours.mul(ours.mul(params["w"], x), scale)
        return ours.add(total(ours, y), params["b"]), {"y": y, "n": 3}

    args = ({"w": X, "b": f32(2)}, Y, f32(3))
    (value, aux), (gp, gs) = value_and_grad(f, argnums=(0, 2), has_aux=True)(*args)
    np.testing.assert_allclose(float(value), np.sum(X * Y * 3) + 2, rtol=1e-6)
    close(gp, {"w": Y * 3, "b": f32(1)})
    close(gs, np.sum(X * Y))
    assert aux["n"] == 3
    close(aux["y"], X * Y * 3)

    close(grad(f, argnums=-2, has_aux=True)(*args)[0], X * 3)


def test_keyword_arguments_are_passed_on():
    f = lambda x, *, k: total(ours, ours.mul(x, k))
    close(grad(f)(X, k=Y), Y)


def test_value_is_concrete_in_eager_grad():
    def f(x):
        if x > 0:
            return ours.mul(x, x)
        return ours.neg(x)

    for value, slope in ((3.0, 6.0), (-3.0, -1.0)):
        # comparison operators come from the table of a higher layer: compare explicitly
        g = lambda x: f_explicit(x)

        def f_explicit(x):
            return ours.mul(x, x) if bool(ours.gt(x, f32(0))) else ours.neg(x)

        assert float(grad(g)(f32(value))) == slope


def test_integers_and_float0():
    f = lambda n, x: ours.mul(x, ours.convert_element_type(n, np.dtype("float32")))
    gn, gx = grad(f, argnums=(0, 1), allow_int=True)(3, 2.0)
    assert gn.dtype == dtypes.float0 and gn.shape == ()
    assert float(gx) == 3
    _out, pull = vjp(f, 3, f32(2))
    assert pull(f32(1))[0].dtype == dtypes.float0
    tangent = np.zeros((), dtypes.float0)
    _primal, direction = jvp(f, (3, f32(2)), (tangent, f32(1)))
    assert float(direction) == 3
    index = jvp(lambda x: ours.gt(x, X), (X,), (Y,))
    assert index[1].dtype == dtypes.float0 and index[1].shape == (3,)


def test_unused_and_constant():
    close(grad(lambda x, y: total(ours, y), argnums=0)(X, Y), np.zeros(3, f32))
    close(grad(lambda x: ours.full((), 1.0, f32))(X), np.zeros(3, f32))
    close(jvp(lambda x: Y, (X,), (X,)), (Y, np.zeros(3, f32)))
    close(grad(lambda x: x)(f32(2)), f32(1))


def test_captured_values():
    outer = lambda x: total(
        ours, ours.mul(grad(lambda y: total(ours, ours.mul(ours.mul(x, y), y)))(Y), x)
    )
    close(grad(outer)(X), 4 * X * Y)


@pytest.mark.parametrize("staged", [False, True], ids=["eager", "call"])
def test_complex_convention(staged):
    z = np.array([1 + 2j, -0.5 + 0.3j], np.complex64)

    def real_valued(lax):
        return lambda z: total(lax, lax.real(lax.mul(lax.mul(z, z), lax.exp(z))))

    def holomorphic(lax):
        return lambda z: total(lax, lax.mul(lax.sin(z), z))

    wrap = as_call if staged else (lambda f: f)
    close(grad(wrap(real_valued(ours)))(z), jax.grad(real_valued(theirs))(z), 1e-4)
    close(
        grad(wrap(holomorphic(ours)), holomorphic=True)(z),
        jax.grad(holomorphic(theirs), holomorphic=True)(z),
        1e-4,
    )
    f = lambda lax: lambda z: lax.mul(lax.conj(z), z)
    _out, pull = vjp(wrap(f(ours)), z)
    close(pull(z), jax.vjp(f(theirs), z)[1](z), 1e-4)
    close(
        jacfwd(wrap(lambda z: ours.mul(z, z)), holomorphic=True)(z),
        jax.jacfwd(lambda z: z * z, holomorphic=True)(z),
    )


def test_jacobians_of_trees():
    def f(lax):
        return lambda p: {"s": lax.mul(p["a"], lax.broadcast_in_dim(p["b"], (3,), ())), "t": p["b"]}

    p = {"a": X, "b": f32(2)}
    for mine, oracle in ((jacfwd, jax.jacfwd), (jacrev, jax.jacrev)):
        close(mine(f(ours))(p), oracle(f(theirs))(p))


def test_linear_transpose():
    f = lambda x: ours.mul(ours.rev(x, (0,)), Y)
    (found,) = linear_transpose(f, X)(X)
    close(found, (X * Y)[::-1])


def test_transposed_functions_pass_through_call():
    pull = as_call(lambda x: vjp(lambda v: ours.mul(v, ours.sin(v)), x)[1])(X)
    close(pull(np.ones(3, f32)), (np.sin(X) + X * np.cos(X),))


def test_each_graph_transform_is_made_once():
    traced = []

    def f(x):
        traced.append(1)
        return polynomial(ours, x)

    g = as_call(f)
    text = str(make_jaxpr(grad(g))(X))
    assert traced == [1]
    assert text.count("call[") == 2  # one for the known part, one for the reverse pass


def test_leaked_tracer_is_reported():
    kept = []

    def f(x):
        kept.append(x)
        return total(ours, x)

    as_call(grad(f))(X)
    with pytest.raises(UnexpectedTracerError, match="grad of f was used after"):
        make_jaxpr(lambda: ours.sin(kept[0]))()


MESSAGES = [
    (lambda: grad(lambda x: x)(X), TypeError, r"scalar-output functions, .*shape \(3,\)"),
    (lambda: grad(lambda x: (x, x))(f32(1)), TypeError, "has_aux=True"),
    (lambda: grad(total)(3, X), TypeError, "got int32 for argument lax"),
    (lambda: grad(lambda p: p["w"])({"w": 3}), TypeError, r"int32 for argument p\['w'\]"),
    (lambda: grad(lambda x: x)("text"), TypeError, "argument x: expected an array.* got str"),
    (lambda: grad(lambda x: x, argnums=1)(X), TypeError, "argnums=1 for a call with 1"),
    (lambda: grad(lambda x: x, argnums="x"), TypeError, "argnums must be an integer"),
    (lambda: grad(3), TypeError, "expected a function"),
    (lambda: grad(lambda x: x)(np.complex64(1)), TypeError, "holomorphic=True"),
    (lambda: grad(lambda x: x, holomorphic=True)(f32(1)), TypeError, "needs complex arguments"),
    (lambda: grad(lambda x: x, has_aux=True)(f32(1)), TypeError, r"returns \(result, aux\)"),
    (lambda: jvp(lambda x: x, X, X), TypeError, "primals must be a tuple"),
    (lambda: jvp(lambda x: x, (X,), (Y, Y)), TypeError, "same structure"),
    (lambda: jvp(lambda x: x, (X,), (Y[:2],)), ValueError, r"tangent of x: expected shape \(3,\)"),
    (lambda: jvp(lambda x: x, (X,), (np.arange(3),)), TypeError, "expected dtype float32"),
    (lambda: jvp(lambda n: n, (3,), (f32(1),)), TypeError, "float0"),
    (lambda: vjp(lambda x: x, X)[1]((X, X)), ValueError, "structure of the result"),
    (lambda: vjp(lambda x: x, X)[1](X[:2]), ValueError, r"expected shape \(3,\)"),
    (lambda: linear_transpose(lambda x: x, np.arange(3)), TypeError, "argument x must be of float"),
    (lambda: jacfwd(lambda x: x)(np.arange(3)), TypeError, "jacfwd of <lambda> needs real"),
    (lambda: jacrev(lambda x: ours.gt(x, X))(X), TypeError, "needs a result of real"),
]


@pytest.mark.parametrize(("call", "error", "message"), MESSAGES)
def test_messages(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_doctests():
    if not hasattr(pytest.importorskip("jato.numpy"), "ones"):
        pytest.skip("jato.numpy is not there yet")
    from jato.transforms import abstract_eval, linearize, transpose
    from jato.transforms import grad as grad_module
    from jato.transforms import jvp as jvp_module
    from jato.transforms import vmap as vmap_module

    for module in (abstract_eval, linearize, transpose, grad_module, jvp_module, vmap_module):
        assert doctest.testmod(module).failed == 0


def test_programs_of_make_jaxpr_are_read_by_jaxs_names():
    ours_, theirs_ = (
        make(lambda x: m.numpy.sin(x) * 2)(np.ones(3, np.float32))
        for make, m in ((make_jaxpr, jato), (jax.make_jaxpr, jax))
    )
    for read in (
        lambda j: [e.primitive.name for e in j.jaxpr.eqns],
        lambda j: [len(e.invars) for e in j.jaxpr.eqns],
        lambda j: [e.outvars[0].aval.shape for e in j.eqns],
        lambda j: [v.aval.shape for v in j.jaxpr.invars + j.jaxpr.outvars],
        lambda j: j.jaxpr.eqns[-1].outvars[0] is j.jaxpr.outvars[0],
        lambda j: (len(j.jaxpr.constvars), len(j.consts)),
    ):
        assert read(ours_) == read(theirs_)


def test_shapes_of_what_only_has_a_shape():
    x = jato.ShapeDtypeStruct((2, 3), np.float32)
    assert (jato.numpy.shape(x), jato.numpy.ndim(x), jato.numpy.size(x)) == ((2, 3), 2, 6)
