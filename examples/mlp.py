"""A multilayer perceptron that reads digits.

    python examples/mlp.py [--images 4000] [--epochs 12]
"""

import argparse

import adam
import jato
import jato.numpy as jnp
import numpy as np
from digits import SIZE, digits

WIDTHS = [SIZE * SIZE, 128, 64, 10]


def init(key):
    """Weights of He's scale, and zeros."""
    keys = jato.random.split(key, len(WIDTHS) - 1)
    return [
        {"weight": jato.random.normal(k, (m, n)) * jnp.sqrt(2 / m), "bias": jnp.zeros(n)}
        for k, m, n in zip(keys, WIDTHS[:-1], WIDTHS[1:], strict=True)
    ]


def logits(parameters, images):
    x = images.reshape(len(images), -1)
    for layer in parameters[:-1]:
        x = jato.nn.gelu(x @ layer["weight"] + layer["bias"])
    return x @ parameters[-1]["weight"] + parameters[-1]["bias"]


def loss(parameters, images, labels):
    """Mean cross entropy."""
    scores = jato.nn.log_softmax(logits(parameters, images))
    return -jnp.mean(jnp.sum(jato.nn.one_hot(labels, 10) * scores, axis=1))


@jato.jit
def step(parameters, state, images, labels):
    value, gradients = jato.value_and_grad(loss)(parameters, images, labels)
    return *adam.update(parameters, gradients, state), value


@jato.jit
def accuracy(parameters, images, labels):
    return jnp.mean(jnp.argmax(logits(parameters, images), axis=1) == labels)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=4000)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch", type=int, default=100)
    options = parser.parse_args()

    images, labels = digits(options.images, seed=0)
    parameters = init(jato.random.key(0))
    state = adam.init(parameters)
    order = np.random.default_rng(0)
    for epoch in range(options.epochs):
        for batch in order.permutation(options.images).reshape(-1, options.batch):
            parameters, state, value = step(parameters, state, images[batch], labels[batch])
        print(f"epoch {epoch + 1:2}  loss {float(value):.4f}")
    unseen = digits(2000, seed=1)
    print(f"accuracy {float(accuracy(parameters, *unseen)):.4f} on unseen digits")


if __name__ == "__main__":
    main()
