"""Gradient descent on logistic regression: `jit` of `grad`, parameters in a dict.

    python examples/logistic_regression.py
"""

import jato
import jato.numpy as jnp
import numpy as np


def loss(parameters, inputs, labels):
    logits = inputs @ parameters["weight"] + parameters["bias"]
    return jnp.mean(jnp.logaddexp(0.0, logits) - labels * logits)


@jato.jit
def step(parameters, inputs, labels):
    value, slopes = jato.value_and_grad(loss)(parameters, inputs, labels)
    return value, jato.tree.map(lambda p, g: p - 0.5 * g, parameters, slopes)


def main() -> None:
    random = np.random.default_rng(0)
    inputs = random.normal(size=(2000, 20)).astype(np.float32)
    truth = random.normal(size=20)
    labels = (inputs @ truth + random.normal(size=2000) > 0).astype(np.float32)
    parameters = {"weight": jnp.zeros(20), "bias": jnp.zeros(())}
    for i in range(201):
        value, parameters = step(parameters, inputs, labels)
        if i % 50 == 0:
            print(f"step {i:3}  loss {float(value):.4f}")
    right = (inputs @ np.asarray(parameters["weight"]) + float(parameters["bias"]) > 0) == labels
    print(f"accuracy {right.mean():.3f}; traced {step.stats().traces} time")


if __name__ == "__main__":
    main()
