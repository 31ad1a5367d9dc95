"""A small transformer that learns to continue a text: causal attention, layer norm, a scan over layers.

    python examples/transformer.py [--steps 300]
"""

import argparse

import adam
import jato
import jato.numpy as jnp
import numpy as np
from character_rnn import CODES, LETTERS, TEXT
from jato import lax

CONTEXT, WIDTH, HEADS, LAYERS = 32, 48, 4, 2


def init(key):
    """Parameters; those of the layers are stacked along a leading axis."""
    keys = jato.random.split(key, 6)

    def weight(key, rows, columns, *stack):
        return jato.random.normal(key, (*stack, rows, columns)) / np.sqrt(rows)

    return {
        "letters": 0.3 * jato.random.normal(keys[0], (len(LETTERS), WIDTH)),
        "positions": 0.3 * jato.random.normal(keys[1], (CONTEXT, WIDTH)),
        "layers": {
            "attention": weight(keys[2], WIDTH, 3 * WIDTH, LAYERS),
            "mix": weight(keys[3], WIDTH, WIDTH, LAYERS),
            "expand": weight(keys[4], WIDTH, 4 * WIDTH, LAYERS),
            "reduce": weight(keys[5], 4 * WIDTH, WIDTH, LAYERS),
        },
    }


def norm(x):
    mean = x.mean(axis=-1, keepdims=True)
    return (x - mean) * lax.rsqrt(x.var(axis=-1, keepdims=True) + 1e-5)


def attention(x, layer):
    """Each letter of x [time, width] looks at itself and those before."""
    time = x.shape[0]
    queries, keys, values = jnp.split((x @ layer["attention"]).reshape(time, HEADS, -1), 3, axis=-1)
    scores = jnp.einsum("qhd,khd->hqk", queries, keys) / np.sqrt(WIDTH // HEADS)
    scores = jnp.where(jnp.tril(jnp.ones((time, time), bool)), scores, -jnp.inf)
    mixed = jnp.einsum("hqk,khd->qhd", jato.nn.softmax(scores, axis=-1), values)
    return mixed.reshape(time, WIDTH) @ layer["mix"]


def logits(parameters, letters):
    """Scores of the letter after each of `letters` [time]."""
    x = parameters["letters"][letters] + parameters["positions"][: len(letters)]

    def apply(x, layer):
        x = x + attention(norm(x), layer)
        x = x + jato.nn.gelu(norm(x) @ layer["expand"]) @ layer["reduce"]
        return x, None

    x, _ = lax.scan(apply, x, parameters["layers"])
    return norm(x) @ parameters["letters"].T


def loss(parameters, texts):
    """Mean cross entropy over texts [batch, time + 1]."""
    scores = jato.vmap(logits, in_axes=(None, 0))(parameters, texts[:, :-1])
    return -jnp.mean(jnp.take_along_axis(jato.nn.log_softmax(scores), texts[:, 1:, None], axis=-1))


@jato.jit
def step(parameters, state, texts):
    value, gradients = jato.value_and_grad(loss)(parameters, texts)
    return *adam.update(parameters, gradients, state, rate=3e-3), value


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()

    codes = np.array([CODES[c] for c in TEXT * 2], np.int32)
    random = np.random.default_rng(0)
    parameters = init(jato.random.key(1))
    state = adam.init(parameters)
    for i in range(options.steps):
        starts = random.integers(0, len(TEXT), 16)
        parameters, state, value = step(parameters, state, codes[starts[:, None] + np.arange(CONTEXT + 1)])
        if i % 50 == 0:
            print(f"step {i:3}  loss {float(value):.4f}")
    print(f"final loss {float(value):.4f} (a uniform guess: {np.log(len(LETTERS)):.4f})")


if __name__ == "__main__":
    main()
