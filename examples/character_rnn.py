"""A recurrent net (GRU) that learns to write a text letter by letter: `scan` over time, twice.

    python examples/character_rnn.py [--steps 400]
"""

import argparse

import adam
import jato
import jato.numpy as jnp
import numpy as np
from jato import lax

TEXT = (
    "the wind was a torrent of darkness among the gusty trees. "
    "the moon was a ghostly galleon tossed upon cloudy seas. "
    "the road was a ribbon of moonlight over the purple moor. "
    "and the highwayman came riding up to the old inn door. "
)
LETTERS = sorted(set(TEXT))
CODES = {letter: code for code, letter in enumerate(LETTERS)}


def init(key, hidden):
    keys = jato.random.split(key, 3)
    normal = jato.nn.initializers.glorot_normal()
    return {
        "gates": normal(keys[0], (len(LETTERS) + hidden, 2 * hidden)),
        "gates_bias": jnp.zeros(2 * hidden),
        "candidate": normal(keys[1], (len(LETTERS) + hidden, hidden)),
        "candidate_bias": jnp.zeros(hidden),
        "output": normal(keys[2], (hidden, len(LETTERS))),
    }


def cell(parameters, state, letter):
    """One step of a gated recurrent unit; the new state and the scores of the next letter."""
    x = jato.nn.one_hot(letter, len(LETTERS))
    gates = jnp.concatenate([x, state], axis=-1) @ parameters["gates"] + parameters["gates_bias"]
    reset, keep = jnp.split(jato.nn.sigmoid(gates), 2, axis=-1)
    candidate = jnp.tanh(
        jnp.concatenate([x, reset * state], axis=-1) @ parameters["candidate"]
        + parameters["candidate_bias"]
    )
    state = keep * state + (1 - keep) * candidate
    return state, state @ parameters["output"]


def loss(parameters, letters):
    """Mean cross entropy of letters[1:], given those before; letters: [time, batch]."""
    hidden = parameters["output"].shape[0]
    start = jnp.zeros((letters.shape[1], hidden))
    _, scores = lax.scan(lambda s, x: cell(parameters, s, x), start, letters[:-1])
    picked = jnp.take_along_axis(jato.nn.log_softmax(scores), letters[1:, :, None], axis=-1)
    return -jnp.mean(picked)


@jato.jit
def step(parameters, state, letters):
    value, gradients = jato.value_and_grad(loss)(parameters, letters)
    return *adam.update(parameters, gradients, state, rate=1e-2), value


@jato.jit
def write(parameters, prompt):
    """The 60 letters that the net finds most likely after the prompt."""
    start = jnp.zeros(parameters["output"].shape[0])
    state, scores = lax.scan(lambda s, x: cell(parameters, s, x), start, prompt)

    def next_letter(carry, _):
        state, letter = carry
        state, scores = cell(parameters, state, letter)
        return (state, jnp.argmax(scores)), letter

    return lax.scan(next_letter, (state, jnp.argmax(scores[-1])), length=60)[1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--hidden", type=int, default=64)
    options = parser.parse_args()

    codes = np.array([CODES[c] for c in TEXT * 2], np.int32)
    random = np.random.default_rng(0)
    parameters = init(jato.random.key(0), options.hidden)
    state = adam.init(parameters)
    for i in range(options.steps):
        starts = random.integers(0, len(TEXT), 16)
        letters = codes[np.arange(33)[:, None] + starts]
        parameters, state, value = step(parameters, state, letters)
        if i % 100 == 0:
            print(f"step {i:3}  loss {float(value):.4f}")
    prompt = "the moon was a "
    written = write(parameters, np.array([CODES[c] for c in prompt], np.int32))
    print(f"final loss {float(value):.4f}")
    print(f"text: {prompt}{''.join(LETTERS[c] for c in np.asarray(written))}")


if __name__ == "__main__":
    main()
