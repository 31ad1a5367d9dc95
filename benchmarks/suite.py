"""The benchmark cases: small programs in JAX's API, run by run.py on jato and on jax.

A case is a function of the package J that gives (function, inputs).  Its kind says what is timed:

    eager     the function as it is
    jit       J.jit(function), after the first call
    compile   the first call of a fresh J.jit(function), with empty caches
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Build = Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]
LARGE = 1 << 22


@dataclass(frozen=True)
class Case:
    name: str
    kind: str
    build: Build


CASES: dict[str, Case] = {}


def case(name: str, *kinds: str) -> Callable[[Build], Build]:
    """Adds a case for each kind; the name tells it, except for `jit`."""

    def add(build: Build) -> Build:
        for kind in kinds or ("jit",):
            full = name if kind == "jit" else f"{name} ({kind})"
            CASES[full] = Case(full, kind, build)
        return build

    return add


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def arrays(J: Any, *shapes: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(J.numpy.asarray(normal(*shape)) for shape in shapes)


# ---- what a call costs


@case("call/add, 8 floats", "jit", "eager")
def _(J):
    return lambda a, b: a + b, arrays(J, (8,), (8,))


@case("call/100 arrays in and out")
def _(J):
    return lambda *xs: [x + 1 for x in xs], arrays(J, *[(8,)] * 100)


@case("call/dict of 20 arrays")
def _(J):
    tree = {f"layer{i}": {"w": x, "b": x} for i, x in enumerate(arrays(J, *[(8,)] * 10))}
    return lambda t: {k: v["w"] * v["b"] for k, v in t.items()}, (tree,)


@case("call/slice and index", "eager")
def _(J):
    return lambda a: a[2:7, 3] + a[1:6, 4], arrays(J, (10, 10))


# ---- elementwise


@case("map/2 a + b", "jit", "eager")
def _(J):
    return lambda a, b: 2 * a + b, arrays(J, (LARGE,), (LARGE,))


@case("map/exp", "jit", "eager")
def _(J):
    return lambda a: J.numpy.exp(a), arrays(J, (LARGE,))


@case("map/gelu")
def _(J):
    return J.nn.gelu, arrays(J, (LARGE,))


@case("map/black-scholes")
def _(J):
    jnp, erf = J.numpy, J.lax.erf

    def price(x):
        spot = 50 + 100 * jnp.abs(x)
        d1 = (jnp.log(spot / 100) + 0.07) / 0.2
        return spot * (1 + erf(d1 / 1.4142135)) - 95.12 * (1 + erf((d1 - 0.2) / 1.4142135))

    return price, arrays(J, (LARGE,))


@case("map/transpose + 1")
def _(J):
    return lambda a: a.T + 1, arrays(J, (2048, 2048))


# ---- reductions and row-wise chains


@case("reduce/sum", "jit", "eager")
def _(J):
    return lambda a: a.sum(), arrays(J, (LARGE,))


@case("reduce/softmax")
def _(J):
    return lambda a: J.nn.softmax(a, axis=-1), arrays(J, (4096, 1000))


@case("reduce/layer norm")
def _(J):
    jnp = J.numpy

    def layer_norm(x, scale, bias):
        mean = x.mean(-1, keepdims=True)
        return (x - mean) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale + bias

    return layer_norm, arrays(J, (4096, 1000), (1000,), (1000,))


@case("reduce/column means")
def _(J):
    return lambda a: a.mean(axis=0), arrays(J, (4096, 1000))


# ---- products, stencils, images


@case("dot/1024", "jit")
def _(J):
    return lambda a, b: a @ b, arrays(J, (1024, 1024), (1024, 1024))


@case("dot/dense layer")
def _(J):
    return lambda x, w, b: J.numpy.tanh(x @ w + b), arrays(J, (1000, 500), (500, 200), (200,))


@case("stencil/blur 5x5", "jit", "eager", "compile")
def _(J):
    jnp = J.numpy

    def blur(image, kernel):
        return jnp.convolve(image.ravel(), kernel.ravel(), mode="same").reshape(image.shape)

    return blur, arrays(J, (1024, 1024), (5, 5))


@case("stencil/heat equation")
def _(J):
    def step(u):
        return u.at[1:-1, 1:-1].add(
            0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
        )

    return step, arrays(J, (1024, 1024))


@case("image/resize 512 to 128", "jit", "compile")
def _(J):
    image = importlib.import_module(f"{J.__name__}.image")
    return lambda x: image.resize(x, (128, 128, 3), method="bilinear"), arrays(J, (512, 512, 3))


# ---- transforms


@case("grad/two-layer network", "jit", "compile")
def _(J):
    jnp = J.numpy

    def loss(parameters, x):
        (w1, b1), (w2, b2) = parameters
        return jnp.mean((jnp.tanh(x @ w1 + b1) @ w2 + b2) ** 2)

    w1, b1, w2, b2, x = arrays(J, (64, 128), (128,), (128, 10), (10,), (256, 64))
    return J.grad(loss), (((w1, b1), (w2, b2)), x)
