"""A small convolutional net that reads digits.

    python examples/convnet.py [--images 3000] [--epochs 5]
"""

import argparse

import adam
import jato
import jato.numpy as jnp
import numpy as np
from digits import digits
from jato import lax


def init(key):
    keys = jato.random.split(key, 3)
    normal = jato.nn.initializers.he_normal()
    return {
        "first": normal(keys[0], (3, 3, 1, 8)),
        "second": normal(keys[1], (3, 3, 8, 16)),
        "dense": normal(keys[2], (4 * 4 * 16, 10)),
        "bias": jnp.zeros(10),
    }


def layer(images, kernel):
    """Convolution, rectifier, and the maximum of each 2 x 2 block."""
    x = lax.conv_general_dilated(
        images, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return lax.reduce_window(
        jato.nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
    )


def logits(parameters, images):
    x = layer(images[..., None], parameters["first"])
    x = layer(x, parameters["second"])
    return x.reshape(len(x), -1) @ parameters["dense"] + parameters["bias"]


def loss(parameters, images, labels):
    """Mean cross entropy."""
    scores = jato.nn.log_softmax(logits(parameters, images))
    return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1))


@jato.jit
def step(parameters, state, images, labels):
    value, gradients = jato.value_and_grad(loss)(parameters, images, labels)
    return *adam.update(parameters, gradients, state, rate=4e-3), value


@jato.jit
def accuracy(parameters, images, labels):
    return jnp.mean(jnp.argmax(logits(parameters, images), axis=1) == labels)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=3000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=50)
    options = parser.parse_args()

    images, labels = digits(options.images, seed=0)
    parameters = init(jato.random.key(0))
    state = adam.init(parameters)
    order = np.random.default_rng(0)
    for epoch in range(options.epochs):
        for batch in order.permutation(options.images).reshape(-1, options.batch):
            parameters, state, value = step(parameters, state, images[batch], labels[batch])
        print(f"epoch {epoch + 1:2}  loss {float(value):.4f}")
    unseen = digits(1000, seed=1)
    print(f"accuracy {float(accuracy(parameters, *unseen)):.4f} on unseen digits")


if __name__ == "__main__":
    main()
