"""Programs in the manner of the libraries that people use on top of JAX: optimizers as pairs of
functions over trees (optax), modules as pytrees (equinox), variables and state apart (flax),
samplers with named states and effect handlers (blackjax, numpyro), solvers of equations (diffrax,
jaxopt).  Each is checked against NumPy, SciPy or a closed form."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.optimize

import jato
import jato.numpy as jnp
from jato import lax

# ---- optimizers as pairs of functions


class Transformation(NamedTuple):
    init: Callable[..., Any]
    update: Callable[..., Any]


class AdamState(NamedTuple):
    count: Any
    mu: Any
    nu: Any


def scale_by_adam(b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Transformation:
    def init(params: Any) -> AdamState:
        zeros = jato.tree_util.tree_map(jnp.zeros_like, params)
        return AdamState(jnp.zeros([], jnp.int32), zeros, zeros)

    def update(updates: Any, state: AdamState, params: Any = None) -> Any:
        mu = jato.tree.map(lambda m, g: b1 * m + (1 - b1) * g, state.mu, updates)
        nu = jato.tree.map(lambda v, g: b2 * v + (1 - b2) * (g**2), state.nu, updates)
        count = state.count + jnp.array(1, dtype=jnp.int32)
        mu_hat = jato.tree.map(lambda m: m / (1 - b1**count), mu)
        nu_hat = jato.tree.map(lambda v: v / (1 - b2**count), nu)
        updates = jato.tree.map(lambda m, v: m / (jnp.sqrt(v) + eps), mu_hat, nu_hat)
        return updates, AdamState(count, mu, nu)

    return Transformation(init, update)


def clip_by_global_norm(limit: float) -> Transformation:
    def update(updates: Any, state: Any, params: Any = None) -> Any:
        norm = jnp.sqrt(sum(jnp.sum(x**2) for x in jato.tree.leaves(updates)))
        keep = jnp.squeeze(norm < limit)
        scaled = jato.tree.map(
            lambda t: lax.select(keep, t, (t / norm.astype(t.dtype)) * limit), updates
        )
        return scaled, state

    return Transformation(lambda params: (), update)


def add_decayed_weights(decay: float) -> Transformation:
    def update(updates: Any, state: Any, params: Any) -> Any:
        return jato.tree.map(lambda g, p: g + decay * p, updates, params), state

    return Transformation(lambda params: (), update)


def scale_by_schedule(schedule: Callable[[Any], Any]) -> Transformation:
    def update(updates: Any, count: Any, params: Any = None) -> Any:
        return jato.tree.map(lambda g: -schedule(count) * g, updates), count + 1

    return Transformation(lambda params: jnp.zeros([], jnp.int32), update)


def warmup_cosine(peak: float, warmup: int, total: int) -> Callable[[Any], Any]:
    def schedule(count: Any) -> Any:
        fraction = jnp.clip((count - warmup) / (total - warmup), 0.0, 1.0)
        cosine = 0.5 * peak * (1 + jnp.cos(jnp.pi * fraction))
        return jnp.where(count < warmup, peak * count / warmup, cosine)

    return schedule


def chain(*parts: Transformation) -> Transformation:
    def init(params: Any) -> Any:
        return tuple(part.init(params) for part in parts)

    def update(updates: Any, state: Any, params: Any = None) -> Any:
        states = []
        for part, s in zip(parts, state, strict=True):
            updates, s = part.update(updates, s, params)
            states.append(s)
        return updates, tuple(states)

    return Transformation(init, update)


def apply_updates(params: Any, updates: Any) -> Any:
    return jato.tree.map(lambda p, u: jnp.asarray(p + u).astype(p.dtype), params, updates)


def quadratic(params: Any) -> Any:
    return jnp.sum((params["w"] - 1.5) ** 2 * jnp.arange(1.0, 7.0)) + jnp.sum(params["b"] ** 4)


PARAMS = {"w": np.linspace(-2, 2, 6).astype(np.float32), "b": np.ones((2, 2), np.float32)}


def adamw(steps: int) -> Transformation:
    return chain(
        clip_by_global_norm(1.0),
        scale_by_adam(),
        add_decayed_weights(1e-2),
        scale_by_schedule(warmup_cosine(0.1, 10, steps)),
    )


def reference_adamw(params: dict[str, Any], steps: int) -> dict[str, Any]:
    params = {k: v.astype(float) for k, v in params.items()}
    mu = {k: 0 * v for k, v in params.items()}
    nu = {k: 0 * v for k, v in params.items()}
    for i in range(steps):
        grads = {
            "w": 2 * (params["w"] - 1.5) * np.arange(1.0, 7.0),
            "b": 4 * params["b"] ** 3,
        }
        norm = np.sqrt(sum(np.sum(g**2) for g in grads.values()))
        rate = 0.1 * i / 10 if i < 10 else 0.05 * (1 + np.cos(np.pi * (i - 10) / (steps - 10)))
        for k, g in grads.items():
            g = g if norm < 1 else g / norm
            mu[k] = 0.9 * mu[k] + 0.1 * g
            nu[k] = 0.999 * nu[k] + 0.001 * g**2
            m, v = mu[k] / (1 - 0.9 ** (i + 1)), nu[k] / (1 - 0.999 ** (i + 1))
            params[k] = params[k] - rate * (m / (np.sqrt(v) + 1e-8) + 1e-2 * params[k])
    return params


@pytest.mark.parametrize("mode", ["jit", "scan", "eager"])
def test_chained_optimizer(mode: str) -> None:
    steps = 60
    optimizer = adamw(steps)

    def step(carry: Any, _: Any) -> Any:
        params, state = carry
        updates, state = optimizer.update(jato.grad(quadratic)(params), state, params)
        return (apply_updates(params, updates), state), quadratic(params)

    carry = (jato.tree.map(jnp.asarray, PARAMS), optimizer.init(PARAMS))
    if mode == "scan":
        carry, losses = jato.jit(lambda c: lax.scan(step, c, None, length=steps))(carry)
        assert losses.shape == (steps,)
        assert losses[-1] < losses[0]
    else:
        do = jato.jit(step) if mode == "jit" else step
        for _ in range(steps):
            carry, _ = do(carry, None)
        if mode == "jit":
            assert do.stats().traces == 1
    expected = reference_adamw(PARAMS, steps)
    for k, v in expected.items():
        np.testing.assert_allclose(carry[0][k], v, rtol=2e-4, atol=2e-5)
    assert carry[1][1].count == steps


def test_optimizers_of_many_runs_under_vmap() -> None:
    """One optimizer per learning rate."""

    def run(rate: Any) -> Any:
        optimizer = chain(scale_by_adam(), scale_by_schedule(lambda _: rate))
        params = {"x": jnp.array([4.0, -3.0])}

        def step(carry: Any, _: Any) -> Any:
            params, state = carry
            updates, state = optimizer.update(
                jato.grad(lambda p: jnp.sum(p["x"] ** 2))(params), state
            )
            return (apply_updates(params, updates), state), None

        return lax.scan(step, (params, optimizer.init(params)), length=100)[0][0]["x"]

    rates = jnp.array([0.01, 0.1, 0.3])
    together = jato.jit(jato.vmap(run))(rates)
    apart = jnp.stack([run(r) for r in rates])
    np.testing.assert_allclose(together, apart, rtol=1e-4, atol=1e-5)
    assert jnp.abs(together[0]).max() > jnp.abs(together[1]).max()


def test_gradient_of_training_with_respect_to_the_rate() -> None:
    """Gradients flow through an inner loop of training (meta-learning)."""

    def final_loss(rate: Any) -> Any:
        def step(x: Any, _: Any) -> Any:
            return x - rate * jato.grad(lambda y: jnp.sum(jnp.cosh(y)))(x), None

        return jnp.sum(lax.scan(step, jnp.array([1.0, -2.0]), length=8)[0] ** 2)

    slope = jato.jit(jato.grad(final_loss))(0.05)
    numeric = (final_loss(0.05 + 1e-3) - final_loss(0.05 - 1e-3)) / 2e-3
    np.testing.assert_allclose(slope, numeric, rtol=2e-3)


# ---- modules as pytrees


def module(cls: Any) -> Any:
    """A frozen dataclass whose fields marked `static` are part of the tree's structure."""
    cls = dataclasses.dataclass(frozen=True)(cls)
    fields = dataclasses.fields(cls)
    return jato.tree_util.register_dataclass(
        cls,
        [f.name for f in fields if not f.metadata.get("static")],
        [f.name for f in fields if f.metadata.get("static")],
    )


def static(**options: Any) -> Any:
    return dataclasses.field(metadata={"static": True}, **options)


@module
class Linear:
    weight: Any
    bias: Any
    use_bias: bool = static(default=True)

    @staticmethod
    def init(key: Any, inputs: int, outputs: int) -> Linear:
        k1, k2 = jato.random.split(key)
        bound = 1 / np.sqrt(inputs)
        return Linear(
            jato.random.uniform(k1, (outputs, inputs), minval=-bound, maxval=bound),
            jato.random.uniform(k2, (outputs,), minval=-bound, maxval=bound),
        )

    def __call__(self, x: Any) -> Any:
        y = self.weight @ x
        return y + self.bias if self.use_bias else y


@module
class Network:
    layers: list[Linear]
    scale: Any
    activation: Callable[..., Any] = static()

    @staticmethod
    def init(key: Any, width: int = 16) -> Network:
        keys = jato.random.split(key, 3)
        sizes = [2, width, width, 1]
        layers = [Linear.init(k, m, n) for k, m, n in zip(keys, sizes, sizes[1:], strict=False)]
        return Network(layers, jnp.ones(()), jnp.tanh)

    def __call__(self, x: Any) -> Any:
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return self.scale * self.layers[-1](x)[0]


def is_array(x: Any) -> bool:
    return isinstance(x, jato.Array | np.ndarray)


def split(tree: Any, keep: Callable[[Any], bool]) -> tuple[Any, Any]:
    """(the leaves to keep, the others), None in the gaps."""
    return (
        jato.tree.map(lambda x: x if keep(x) else None, tree),
        jato.tree.map(lambda x: None if keep(x) else x, tree),
    )


def combine(*trees: Any) -> Any:
    def first(*leaves: Any) -> Any:
        return next((x for x in leaves if x is not None), None)

    return jato.tree.map(first, *trees, is_leaf=lambda x: x is None)


def test_module_is_a_pytree() -> None:
    net = Network.init(jato.random.key(0))
    leaves, structure = jato.tree.flatten(net)
    assert len(leaves) == 7
    again = jato.tree.unflatten(structure, leaves)
    assert again.activation is jnp.tanh
    paths = [jato.tree_util.keystr(p) for p, _ in jato.tree_util.tree_flatten_with_path(net)[0]]
    assert paths[0] == ".layers[0].weight"
    assert paths[-1] == ".scale"


def test_module_trains_with_part_of_it_frozen() -> None:
    net = Network.init(jato.random.key(0))
    inputs = jato.random.normal(jato.random.key(1), (64, 2))
    targets = jnp.sin(inputs[:, 0]) * inputs[:, 1]
    marks = jato.tree.map(lambda _: True, net)
    marks = dataclasses.replace(marks, scale=False)
    trained = jato.tree.map(lambda x, m: x if m else None, net, marks)
    frozen = jato.tree.map(lambda x, m: None if m else x, net, marks)

    @jato.jit
    def step(trained: Any, frozen: Any) -> Any:
        def loss(trained: Any) -> Any:
            return jnp.mean((jato.vmap(combine(trained, frozen))(inputs) - targets) ** 2)

        value, slope = jato.value_and_grad(loss)(trained)
        assert slope.scale is None
        return jato.tree.map(lambda p, g: p - 0.1 * g, trained, slope), value

    values = []
    for _ in range(200):
        trained, value = step(trained, frozen)
        values.append(float(value))
    assert values[-1] < 0.35 * values[0]
    assert combine(trained, frozen).scale == 1
    assert step.stats().traces == 1


def test_ensemble_of_modules_by_vmap() -> None:
    keys = jato.random.split(jato.random.key(3), 5)
    ensemble = jato.vmap(Network.init)(keys)
    assert ensemble.layers[0].weight.shape == (5, 16, 2)
    x = jnp.array([0.3, -1.0])
    together = jato.jit(jato.vmap(lambda net, x: net(x), in_axes=(0, None)))(ensemble, x)
    apart = [Network.init(k)(x) for k in keys]
    np.testing.assert_allclose(together, apart, rtol=1e-5, atol=1e-6)


def test_bound_methods_and_modules_are_callable_under_jit() -> None:
    net = Network.init(jato.random.key(0))
    x = jnp.array([1.0, 2.0])
    direct = net(x)
    np.testing.assert_allclose(jato.jit(lambda m, x: m(x))(net, x), direct, rtol=1e-6)
    np.testing.assert_allclose(jato.jit(net.__call__)(x), direct, rtol=1e-6)
    np.testing.assert_allclose(jato.jit(partial(Network.__call__, net))(x), direct, rtol=1e-6)
    arrays, rest = split(net, is_array)
    np.testing.assert_allclose(combine(arrays, rest)(x), direct, rtol=1e-6)


# ---- variables and state apart


class Scope:
    """Parameters by name, made when first asked for, and state that layers update."""

    def __init__(self, variables: Any, key: Any = None):
        self.params = dict(variables["params"])
        self.state = dict(variables["state"])
        self.key, self.count = key, 0

    def param(self, name: str, init: Callable[..., Any], *shape: int) -> Any:
        if name not in self.params:
            self.params[name] = init(self.next_key(), shape)
        return self.params[name]

    def next_key(self) -> Any:
        self.count += 1
        return jato.random.fold_in(self.key, self.count)


def dense(scope: Scope, x: Any, name: str, width: int) -> Any:
    weight = scope.param(f"{name}/kernel", jato.nn.initializers.lecun_normal(), x.shape[-1], width)
    return x @ weight + scope.param(f"{name}/bias", jato.nn.initializers.zeros, width)


def batch_norm(scope: Scope, x: Any, train: bool) -> Any:
    mean, var = scope.state.get("mean", jnp.zeros(x.shape[-1])), scope.state.get(
        "var", jnp.ones(x.shape[-1])
    )
    if train:
        batch_mean, batch_var = x.mean(0), x.var(0)
        scope.state = {"mean": 0.9 * mean + 0.1 * batch_mean, "var": 0.9 * var + 0.1 * batch_var}
        mean, var = batch_mean, batch_var
    return (x - mean) / jnp.sqrt(var + 1e-5)


def dropout(scope: Scope, x: Any, rate: float, train: bool) -> Any:
    if not train:
        return x
    keep = jato.random.bernoulli(scope.next_key(), 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), jnp.zeros_like(x))


def apply(variables: Any, x: Any, key: Any = None, train: bool = False) -> Any:
    scope = Scope(variables, key)
    x = jato.nn.relu(batch_norm(scope, dense(scope, x, "hidden", 32), train))
    x = dropout(scope, x, 0.1, train)
    return dense(scope, x, "output", 1)[:, 0], {"params": scope.params, "state": scope.state}


def test_functional_modules_with_state_and_random_streams() -> None:
    inputs = jato.random.normal(jato.random.key(0), (128, 4))
    targets = jnp.sum(inputs**2, axis=1)
    empty: Any = {"params": {}, "state": {}}
    shapes = jato.eval_shape(lambda k: apply(empty, inputs, k, True)[1], jato.random.key(1))
    assert shapes["params"]["hidden/kernel"].shape == (4, 32)
    variables = jato.jit(lambda k: apply(empty, inputs, k, True)[1])(jato.random.key(1))

    @partial(jato.jit, donate_argnums=0)
    def step(variables: Any, key: Any) -> Any:
        def loss(params: Any) -> Any:
            out, new = apply({**variables, "params": params}, inputs, key, train=True)
            return jnp.mean((out - targets) ** 2), new["state"]

        (value, state), slope = jato.value_and_grad(loss, has_aux=True)(variables["params"])
        params = jato.tree.map(lambda p, g: p - 0.02 * g, variables["params"], slope)
        return {"params": params, "state": state}, value

    values = []
    for key in jato.random.split(jato.random.key(2), 150):
        variables, value = step(variables, key)
        values.append(float(value))
    assert np.mean(values[-10:]) < 0.3 * values[0]
    out, same = jato.jit(apply, static_argnames="train")(variables, inputs)
    assert same["state"].keys() == {"mean", "var"}
    np.testing.assert_allclose(
        variables["state"]["mean"],
        np.mean(np.asarray(inputs) @ variables["params"]["hidden/kernel"], axis=0)
        + variables["params"]["hidden/bias"],
        atol=0.2,
    )
    assert out.shape == (128,)


# ---- samplers


class WalkState(NamedTuple):
    position: Any
    log_density: Any


def random_walk(log_density: Callable[..., Any], scale: float) -> Transformation:
    def init(position: Any) -> WalkState:
        return WalkState(position, log_density(position))

    def step(key: Any, state: WalkState) -> tuple[WalkState, Any]:
        move_key, accept_key = jato.random.split(key)
        leaves, structure = jato.tree.flatten(state.position)
        keys = jato.tree.unflatten(structure, list(jato.random.split(move_key, len(leaves))))
        proposal = jato.tree.map(
            lambda x, k: x + scale * jato.random.normal(k, x.shape), state.position, keys
        )
        value = log_density(proposal)
        accept = jnp.log(jato.random.uniform(accept_key)) < value - state.log_density
        new = WalkState(proposal, value)
        return jato.tree.map(partial(jnp.where, accept), new, state), accept

    return Transformation(init, step)


def test_sampler_with_named_state() -> None:
    def log_density(x: Any) -> Any:
        return -0.5 * jnp.sum((x["a"] - 2) ** 2) - 0.5 * jnp.sum(x["b"] ** 2) / 4

    kernel = random_walk(log_density, 1.5)

    @jato.jit
    def run(key: Any) -> Any:
        def one(state: WalkState, key: Any) -> Any:
            state, accepted = kernel.update(key, state)
            return state, (state.position, accepted)

        start = kernel.init({"a": jnp.zeros(()), "b": jnp.zeros(2)})
        return lax.scan(one, start, jato.random.split(key, 4000))[1]

    positions, accepted = jato.vmap(run)(jato.random.split(jato.random.key(0), 8))
    assert positions["b"].shape == (8, 4000, 2)
    assert 0.2 < accepted.mean() < 0.7
    a, b = positions["a"][:, 500:], positions["b"][:, 500:]
    np.testing.assert_allclose(a.mean(), 2, atol=0.1)
    np.testing.assert_allclose(a.std(), 1, atol=0.1)
    np.testing.assert_allclose(b.reshape(-1, 2).std(axis=0), [2, 2], atol=0.25)


class Handlers:
    """A stack of effect handlers that see every `sample` of a model while it is traced."""

    stack: list[Callable[[dict[str, Any]], None]] = []


def sample(name: str, log_prob: Callable[[Any], Any], observed: Any = None) -> Any:
    message = {"name": name, "log_prob": log_prob, "value": observed}
    for handler in reversed(Handlers.stack):
        handler(message)
    return message["value"]


def log_joint(model: Callable[[], None], values: dict[str, Any]) -> Any:
    total = []

    def handler(message: dict[str, Any]) -> None:
        if message["value"] is None:
            message["value"] = values[message["name"]]
        total.append(jnp.sum(message["log_prob"](message["value"])))

    Handlers.stack.append(handler)
    try:
        model()
    finally:
        Handlers.stack.pop()
    return sum(total)


def normal(mean: Any, scale: Any) -> Callable[[Any], Any]:
    return lambda x: -0.5 * ((x - mean) / scale) ** 2 - jnp.log(scale) - 0.5 * jnp.log(2 * jnp.pi)


def test_model_with_effect_handlers_and_newtons_method() -> None:
    """The mode and the Laplace approximation of a normal model are exact."""
    data = np.random.default_rng(0).normal(1.0, 2.0, 50).astype(np.float32)

    def model() -> None:
        mean = sample("mean", normal(0.0, 10.0))
        sample("data", normal(mean, 2.0), observed=data)

    def loss(x: Any) -> Any:
        return -log_joint(model, {"mean": x})

    @jato.jit
    def newton(x: Any) -> Any:
        return lax.fori_loop(
            0, 5, lambda _, x: x - jato.grad(loss)(x) / jato.grad(jato.grad(loss))(x), x
        )

    precision = 1 / 100 + 50 / 4
    np.testing.assert_allclose(newton(0.0), data.sum() / 4 / precision, rtol=1e-5)
    np.testing.assert_allclose(jato.hessian(loss)(0.3), precision, rtol=1e-5)


# ---- solvers


def rk4(field: Callable[..., Any], y: Any, t: Any, h: Any, *args: Any) -> Any:
    def moved(step: Any, slope: Any) -> Any:
        return jato.tree.map(lambda a, b: a + step * b, y, slope)

    k1 = field(t, y, *args)
    k2 = field(t + h / 2, moved(h / 2, k1), *args)
    k3 = field(t + h / 2, moved(h / 2, k2), *args)
    k4 = field(t + h, moved(h, k3), *args)
    return jato.tree.map(
        lambda y, a, b, c, d: y + h / 6 * (a + 2 * b + 2 * c + d), y, k1, k2, k3, k4
    )


def lotka(t: Any, y: Any, rates: Any) -> Any:
    prey, hunters = y
    return (
        rates[0] * prey - rates[1] * prey * hunters,
        -rates[2] * hunters + rates[3] * prey * hunters,
    )


RATES = np.array([1.1, 0.4, 0.4, 0.1], np.float32)


def test_fixed_steps_and_their_gradient() -> None:
    def final(rates: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            t, y = carry
            return (t + 0.05, rk4(lotka, y, t, 0.05, rates)), y

        (_, y), path = lax.scan(step, (0.0, (10.0, 5.0)), length=100)
        return y[0], path

    value, path = jato.jit(final)(RATES)
    exact = scipy.integrate.solve_ivp(
        lambda t, y: np.array(
            [1.1 * y[0] - 0.4 * y[0] * y[1], -0.4 * y[1] + 0.1 * y[0] * y[1]]
        ),
        (0, 5), [10, 5], rtol=1e-9, atol=1e-9,
    )  # fmt: skip
    np.testing.assert_allclose(value, exact.y[0, -1], rtol=1e-3)
    assert path[0].shape == (100,)
    reverse = jato.jit(jato.grad(lambda r: final(r)[0]))(RATES)
    forward = jato.jit(jato.jacfwd(lambda r: final(r)[0]))(RATES)
    np.testing.assert_allclose(reverse, forward, rtol=1e-3, atol=1e-5)


def test_adaptive_steps_in_a_while_loop() -> None:
    """Step doubling: the step shrinks until two half steps agree with a whole one."""

    def solve(rate: Any) -> Any:
        def field(t: Any, y: Any) -> Any:
            return -rate * y + jnp.sin(t)

        def going(state: Any) -> Any:
            return (state[0] < 4.0) & (state[3] < 10_000)

        def step(state: Any) -> Any:
            t, y, h, count = state
            h = jnp.minimum(h, 4.0 - t)
            whole = rk4(field, y, t, h)
            half = rk4(field, rk4(field, y, t, h / 2), t + h / 2, h / 2)
            error = jnp.abs(whole - half) / 1e-5
            good = error < 1
            factor = jnp.clip(0.9 * (error + 1e-8) ** -0.2, 0.2, 5.0)
            return jnp.where(good, t + h, t), jnp.where(good, half, y), h * factor, count + 1

        return lax.while_loop(going, step, (jnp.float32(0), jnp.float32(1), jnp.float32(0.1), 0))

    rates = np.array([0.5, 2.0, 40.0], np.float32)
    t, y, _, count = jato.jit(jato.vmap(solve))(rates)
    np.testing.assert_allclose(t, 4.0)
    r = rates.astype(float)
    exact = (1 + 1 / (r**2 + 1)) * np.exp(-4 * r) + (r * np.sin(4) - np.cos(4)) / (r**2 + 1)
    np.testing.assert_allclose(y, exact, atol=2e-4)
    assert count[2] > count[0]


def test_implicit_gradient_of_a_root() -> None:
    """x**3 + a x = b solved by Newton in a while loop; its gradient by the implicit function theorem."""

    def residual(x: Any, a: Any, b: Any) -> Any:
        return x**3 + a * x - b

    @jato.custom_vjp
    def root(a: Any, b: Any) -> Any:
        def going(state: Any) -> Any:
            return jnp.abs(residual(state, a, b)) > 1e-6 * (1 + jnp.abs(b))

        def step(x: Any) -> Any:
            return x - residual(x, a, b) / jato.grad(residual)(x, a, b)

        return lax.while_loop(going, step, jnp.ones_like(b))

    def forward(a: Any, b: Any) -> Any:
        x = root(a, b)
        return x, (x, a, b)

    def backward(saved: Any, ct: Any) -> Any:
        x, a, b = saved
        slope, by_a, by_b = jato.grad(residual, argnums=(0, 1, 2))(x, a, b)
        return -ct * by_a / slope, -ct * by_b / slope

    root.defvjp(forward, backward)
    x = jato.jit(root)(2.0, 12.0)
    np.testing.assert_allclose(x, 2.0, rtol=1e-5)
    da, db = jato.jit(jato.grad(root, argnums=(0, 1)))(2.0, 12.0)
    np.testing.assert_allclose([da, db], [-2 / 14, 1 / 14], rtol=1e-4)
    many = jato.vmap(jato.grad(root, argnums=1), (None, 0))(2.0, jnp.array([3.0, 12.0, 33.0]))
    np.testing.assert_allclose(many, [1 / 5, 1 / 14, 1 / 29], rtol=1e-4)


def test_quasi_newton_with_line_search() -> None:
    """BFGS with backtracking, two while loops deep, on Rosenbrock's function."""

    def rosenbrock(x: Any) -> Any:
        return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    def minimize(start: Any) -> Any:
        def step(state: Any) -> Any:
            x, g, inverse, count = state
            direction = -inverse @ g
            slope = g @ direction

            def too_long(rate: Any) -> Any:
                bound = rosenbrock(x) + 1e-4 * rate * slope
                return (rosenbrock(x + rate * direction) > bound) & (rate > 1e-6)

            rate = lax.while_loop(too_long, lambda r: 0.5 * r, jnp.float32(1))
            s = rate * direction
            new = jato.grad(rosenbrock)(x + s)
            y = new - g
            rho = 1 / jnp.where(y @ s > 1e-10, y @ s, jnp.inf)
            left = jnp.eye(len(x)) - rho * jnp.outer(s, y)
            updated = left @ inverse @ left.T + rho * jnp.outer(s, s)
            return x + s, new, updated, count + 1

        def going(state: Any) -> Any:
            return (jnp.max(jnp.abs(state[1])) > 1e-3) & (state[3] < 200)

        state = (start, jato.grad(rosenbrock)(start), jnp.eye(len(start)), 0)
        return lax.while_loop(going, step, state)

    x, _, _, count = jato.jit(minimize)(jnp.array([-1.2, 1.0, 0.5]))
    np.testing.assert_allclose(x, 1.0, atol=2e-3)
    assert count < 100


def test_gaussian_process_by_linear_solves() -> None:
    random = np.random.default_rng(0)
    x = np.sort(random.uniform(0, 5, 30)).astype(np.float32)
    y = (np.sin(x) + 0.1 * random.normal(size=30)).astype(np.float32)

    def kernel(a: Any, b: Any, length: Any) -> Any:
        return jnp.exp(-0.5 * (a[:, None] - b[None]) ** 2 / length**2)

    def evidence(logs: Any) -> Any:
        gram = kernel(x, x, jnp.exp(logs[0])) + jnp.exp(logs[1]) * jnp.eye(len(x))
        factor = jnp.linalg.cholesky(gram)
        white = jnp.linalg.solve(factor, y)
        return 0.5 * jnp.sum(white**2) + jnp.sum(jnp.log(jnp.diag(factor)))

    def reference(logs: Any) -> Any:
        gram = np.exp(-0.5 * (x[:, None] - x[None]) ** 2.0 / np.exp(2 * logs[0]))
        gram = gram.astype(float) + np.exp(logs[1]) * np.eye(len(x))
        factor = scipy.linalg.cholesky(gram, lower=True)
        white = scipy.linalg.solve_triangular(factor, y, lower=True)
        return 0.5 * np.sum(white**2) + np.sum(np.log(np.diag(factor)))

    logs = np.array([0.2, -3.0], np.float32)
    value, slope = jato.jit(jato.value_and_grad(evidence))(logs)
    np.testing.assert_allclose(value, reference(logs.astype(float)), rtol=1e-3)
    numeric = scipy.optimize.approx_fprime(logs.astype(float), reference, 1e-6)
    np.testing.assert_allclose(slope, numeric, rtol=2e-2, atol=1e-2)
