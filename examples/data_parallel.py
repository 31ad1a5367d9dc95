"""Data-parallel training: each device takes its share of the batch, `psum` adds up the gradients.

    python examples/data_parallel.py [--devices 4]
"""

import argparse
from functools import partial

import jato
import jato.numpy as jnp
import numpy as np
from digits import digits
from jato import lax
from mlp import accuracy, init, loss


def update(parameters, gradients):
    return jato.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)


@partial(jato.pmap, axis_name="devices", in_axes=(None, 0, 0), out_axes=(None, None))
def parallel_step(parameters, images, labels):
    """Each device: gradients of its share, their mean over all devices, the same update."""
    value, gradients = jato.value_and_grad(loss)(parameters, images, labels)
    count = lax.psum(1, "devices")
    gradients = jato.tree.map(lambda g: lax.psum(g, "devices") / count, gradients)
    return update(parameters, gradients), lax.pmean(value, "devices")


@jato.jit
def single_step(parameters, images, labels):
    value, gradients = jato.value_and_grad(loss)(parameters, images, labels)
    return update(parameters, gradients), value


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", type=int, default=4)
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()
    jato.config.update("jax_num_cpu_devices", options.devices)

    images, labels = digits(2000, seed=0)
    random = np.random.default_rng(0)
    parallel = single = init(jato.random.key(0))
    for i in range(options.steps):
        batch = random.integers(0, len(images), (options.devices, 32))
        parallel, value = parallel_step(parallel, images[batch], labels[batch])
        flat = batch.reshape(-1)
        single, single_value = single_step(single, images[flat], labels[flat])
        if i % 100 == 0:
            print(f"step {i:3}  loss {float(value):.5f}, on one device {float(single_value):.5f}")
    apart = jato.tree.map(lambda a, b: jnp.max(jnp.abs(a - b)), parallel, single)
    largest = max(map(float, jato.tree.leaves(apart)))
    reached = float(accuracy(parallel, *digits(1000, seed=1)))
    print(f"devices {jato.local_device_count()}; largest difference of parameters {largest:.2e}")
    print(f"accuracy {reached:.4f}")


if __name__ == "__main__":
    main()
