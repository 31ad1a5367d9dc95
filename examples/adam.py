"""Adam (Kingma and Ba, 2015) on any tree of parameters."""

import jato
import jato.numpy as jnp


def init(parameters):
    """The state of the optimizer: a step count and two running means per parameter."""
    zeros = jato.tree.map(jnp.zeros_like, parameters)
    return {"count": jnp.zeros((), jnp.int32), "mean": zeros, "square": zeros}


def update(parameters, gradients, state, rate=1e-3, decay=0.9, decay_square=0.999):
    """(new parameters, new state) after one step."""
    count = state["count"] + 1
    mean = jato.tree.map(lambda m, g: decay * m + (1 - decay) * g, state["mean"], gradients)
    square = jato.tree.map(
        lambda s, g: decay_square * s + (1 - decay_square) * g * g, state["square"], gradients
    )
    scale = rate * jnp.sqrt(1 - decay_square**count) / (1 - decay**count)
    parameters = jato.tree.map(
        lambda p, m, s: p - scale * m / (jnp.sqrt(s) + 1e-8), parameters, mean, square
    )
    return parameters, {"count": count, "mean": mean, "square": square}
